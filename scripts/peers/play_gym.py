#!/usr/bin/env python3
"""The published evaluation loop of a PyTorch Decision Transformer on HalfCheetah: one environment, and
the whole padded context through the whole model for each action.

    play_gym.py VARIANT STEPS        rounds of STEPS steps, with the protocol of trainer.py

The environment is Gymnasium's HalfCheetah-v4. A variant is `published` or `sdpa` (see gym_dt.py).
The published loop also keeps all observations of an episode in one tensor and copies it at each
step; this one keeps only the context.
"""

import os
import sys
import time

TARGET, SCALE = 12.0, 1000.0


class Player:
    """An agent in an environment."""

    def __init__(self, model, env):
        self.model, self.env = model.eval(), env
        self.begin()

    def begin(self):
        import gym_dt
        import torch

        context = gym_dt.CONTEXT
        self.observations = torch.zeros(1, context, gym_dt.OBSERVATION)
        self.actions = torch.zeros(1, context, gym_dt.ACTION)
        self.returns = torch.zeros(1, context)
        self.timesteps = torch.zeros(1, context, dtype=torch.long)
        self.mask = torch.zeros(1, context)
        self.timestep, self.to_go = 0, TARGET
        self.see(self.env.reset(seed=1)[0])

    def see(self, observation):
        """Moves the context forward by one timestep."""
        import torch

        for rows in (self.observations, self.actions, self.returns, self.timesteps, self.mask):
            rows[:, :-1] = rows[:, 1:].clone()
        self.observations[0, -1] = torch.from_numpy(observation)
        self.actions[0, -1] = 0
        self.returns[0, -1] = self.to_go
        self.timesteps[0, -1] = self.timestep
        self.mask[0, -1] = 1

    def step(self):
        import torch

        with torch.inference_mode():
            action = self.model.predict(self.observations, self.actions, self.returns,
                                        self.timesteps, self.mask)[0, -1]
        self.actions[0, -1] = action
        observation, reward, terminated, truncated, _ = self.env.step(action.numpy())
        self.timestep += 1
        self.to_go -= float(reward) / SCALE
        if terminated or truncated:
            self.begin()
        else:
            self.see(observation)


def main():
    variant, steps = sys.argv[1:]
    import gym_dt
    import gymnasium
    import torch

    torch.set_num_threads(os.cpu_count())
    torch.manual_seed(1)
    model = gym_dt.DecisionTransformer(variant == "published", variant == "sdpa")
    player = Player(model, gymnasium.make("HalfCheetah-v4"))
    for _ in range(gym_dt.CONTEXT + 10):  # from here on the context is full
        player.step()
    print(0, flush=True)
    for _ in sys.stdin:
        start = time.perf_counter()
        for _ in range(int(steps)):
            player.step()
        print((time.perf_counter() - start) / int(steps), flush=True)
    with open("/proc/self/status", encoding="ascii") as status:
        print(next(line for line in status if line.startswith("VmHWM:")).split()[1], flush=True)


if __name__ == "__main__":
    main()
