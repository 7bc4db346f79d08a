#!/usr/bin/env python3
"""The published evaluation loop of a PyTorch Decision Transformer in an Atari game: one environment,
and the whole context encoded again for each action.

    play.py GAME VARIANT STEPS        rounds of STEPS steps, with the protocol of trainer.py

The emulator is ale-py's own interface, as in the published evaluation. Observations follow Overtone's
protocol `matched` (sticky actions, frame skip 4, the maximum of the last two grey screens, area
interpolation). A variant is `eager` or `channels_last+sdpa`. The published loop also keeps all
observations of an episode in one tensor and copies it at each step; this one keeps only the context.
"""

import os
import sys
import time
from collections import deque

CONTEXT, MAX_TIMESTEP, TARGET = 30, 4000, 32.0
FRAME_SKIP, STICKY, MAX_FRAMES = 4, 0.25, 108_000


class Game:
    """One emulator."""

    def __init__(self, name: str, seed: int):
        import ale_py
        import ale_py.roms
        import numpy as np

        ale_py.ALEInterface.setLoggerMode(ale_py.LoggerMode.Error)
        self.ale = ale_py.ALEInterface()
        self.ale.setInt("random_seed", seed)
        self.ale.setFloat("repeat_action_probability", STICKY)
        self.ale.setInt("max_num_frames_per_episode", MAX_FRAMES)
        self.ale.loadROM(ale_py.roms.get_rom_path(name))
        self.actions = self.ale.getMinimalActionSet()
        height, width = self.ale.getScreenDims()
        self.screens = np.zeros((2, height, width), np.uint8)
        self.frames = deque(maxlen=4)

    def observation(self):
        """The last four frames, oldest first: [4, 84, 84]."""
        import cv2
        import numpy as np

        frame = cv2.resize(self.screens.max(0), (84, 84), interpolation=cv2.INTER_AREA)
        self.frames.append(frame)
        return np.stack(self.frames)

    def reset(self):
        import numpy as np

        self.ale.reset_game()
        self.frames.extend(np.zeros((84, 84), np.uint8) for _ in range(4))
        self.screens[:] = 0
        self.ale.getScreenGrayscale(self.screens[0])
        return self.observation()

    def step(self, action: int):
        """The next observation, the raw reward, and whether the episode is over."""
        reward = 0.0
        for frame in range(FRAME_SKIP):
            reward += self.ale.act(self.actions[action])
            if frame >= FRAME_SKIP - 2:
                self.ale.getScreenGrayscale(self.screens[frame - FRAME_SKIP + 2])
            if self.ale.game_over():
                break
        return self.observation(), reward, self.ale.game_over()


class Player:
    """An agent in a game."""

    def __init__(self, model, game: Game):
        self.model, self.game = model.eval(), game
        self.begin()

    def begin(self):
        import torch

        first = torch.from_numpy(self.game.reset()).float() / 255
        self.observations = deque([first], maxlen=CONTEXT)
        self.returns = deque([TARGET], maxlen=CONTEXT)
        self.actions = deque(maxlen=CONTEXT - 1)
        self.timestep = 0

    def step(self) -> bool:
        """Takes one step. Gives whether it ended the episode."""
        import torch

        with torch.inference_mode():
            # The reference indexes the global position by the current timestep.
            logits = self.model.logits(
                torch.stack(list(self.observations))[None],
                torch.tensor([list(self.actions)], dtype=torch.long),
                torch.tensor([list(self.returns)]),
                torch.tensor([min(self.timestep, MAX_TIMESTEP)]))
            action = torch.multinomial(logits[0, -1].softmax(-1), 1).item()
        observation, reward, over = self.game.step(action)
        self.timestep += 1
        if over:
            self.begin()
            return True
        self.observations.append(torch.from_numpy(observation).float() / 255)
        self.returns.append(self.returns[-1] - max(-1.0, min(1.0, reward)))
        self.actions.append(action)
        return False


def main():
    name, variant, steps = sys.argv[1:]
    import atari_dt
    import torch

    torch.set_num_threads(os.cpu_count())
    torch.manual_seed(1)
    words = variant.split("+")
    model = atari_dt.DecisionTransformer(MAX_TIMESTEP, False, "channels_last" in words,
                                         "sdpa" in words)
    player = Player(model, Game(name, 1))
    for _ in range(CONTEXT + 10):  # from here on the context is full
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
