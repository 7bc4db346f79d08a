"""Plays the agent in this directory by onnxruntime and numpy: `python play.py Hopper-v4 10`.
In a program: agent = Agent(directory), agent.begin(seed), agent.act(observation, last_reward)."""
import json, sys
from pathlib import Path
import numpy as np, onnxruntime

TYPES = {"tensor(float)": np.float32, "tensor(int64)": np.int64, "tensor(uint8)": np.uint8}


class Agent:
    def __init__(self, folder):
        self.about = json.loads((Path(folder) / "agent.json").read_text())
        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = 1
        self.session = onnxruntime.InferenceSession(str(Path(folder) / "agent.onnx"), options)
        self.inputs = {each.name: each for each in self.session.get_inputs()}

    def begin(self, seed=0, target=None):
        self.random, self.n = np.random.default_rng(seed), 0
        self.left = np.float32(self.about["target_return"] if target is None else target)
        self.window = {k: np.zeros(each.shape, TYPES[each.type]) for k, each in self.inputs.items()}

    def act(self, observation, reward=0.0):
        observation = np.reshape(observation, self.inputs["observations"].shape[1:])
        if not np.isfinite(observation).all():
            raise ValueError("observation: expected finite numbers")
        if self.n > 0 and not self.about["delayed_reward"]:
            clips = self.about["clip_rewards"]
            self.left -= np.float32(np.clip(reward, -1, 1) if clips else reward)
        new = dict(observations=observation, returns_to_go=self.left, timesteps=self.n, mask=1)
        for name, rows in self.window.items():
            rows[:-1], rows[-1] = rows[1:], new.get(name, 0)
        output = self.session.run(None, self.window)[0]
        action = output if "logits" not in self.about["outputs"] else self.choose(output)
        self.took(action)
        self.n += 1
        return action

    def took(self, action):  # for an action that differs from the agent's
        if "actions" in self.window:
            self.window["actions"][-1] = action

    def choose(self, logits):
        if self.about["choice"] == "mode" or self.random.random() < self.about["greedy"]:
            return int(logits.argmax())
        scaled = np.exp((logits - logits.max()).astype(np.float64) / self.about["temperature"])
        return int(self.random.choice(len(logits), p=scaled / scaled.sum()))


if __name__ == "__main__":
    import gymnasium
    if len(sys.argv) < 2:
        sys.exit("Name an environment: python play.py Hopper-v4 [EPISODES]")
    agent, env = Agent(Path(__file__).parent), gymnasium.make(sys.argv[1])
    shape = () if "logits" in agent.about["outputs"] else (len(agent.about["actions"]["low"]),)
    is_other = env.action_space.shape != shape or getattr(env.action_space, "start", 0)
    if is_other or len(env.observation_space.shape or ()) != 1:
        sys.exit("play.py plays vectors with one action, or indices from 0: use its class Agent")
    for episode in range(int(sys.argv[2]) if len(sys.argv) > 2 else 10):
        (observation, _), reward, total, over = env.reset(seed=episode), 0.0, 0.0, False
        agent.begin(seed=episode)
        while not over:
            observation, reward, ended, cut, _ = env.step(agent.act(observation, reward))
            total, over = total + reward, ended or cut
        print(f"episode {episode}: return {total:.1f}")
