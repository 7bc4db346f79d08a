"""The released evaluation with OpenCV: the reference of tests/released.rs."""

from collections import deque

import ale_py
import cv2
import numpy as np


def play(rom, ale_seed, noops, actions):
    """Observations [steps + 1, 4, 84, 84], summed rewards, and whether the game is over."""
    ale = ale_py.ALEInterface()
    ale_py.ALEInterface.setLoggerMode(ale_py.LoggerMode.Error)
    ale.setFloat("repeat_action_probability", 0.0)
    ale.setInt("max_num_frames_per_episode", 108_000)
    ale.setInt("random_seed", ale_seed)
    ale.loadROM(rom)
    action_set = ale.getMinimalActionSet()

    def screen():
        return cv2.resize(ale.getScreenGrayscale(), (84, 84), interpolation=cv2.INTER_LINEAR)

    shown = []
    for count in noops:  # one number of no-ops for each reset
        stack = deque([np.zeros((84, 84), np.uint8)] * 3, maxlen=4)
        ale.reset_game()
        for _ in range(count):
            ale.act(0)
        stack.append(screen())
        shown.append(np.array(stack))
    observations, rewards = shown[:1], []
    for action in actions:
        pair = np.zeros((2, 84, 84), np.uint8)
        reward = 0
        for frame in range(4):
            reward += ale.act(action_set[action])
            if frame >= 2:
                pair[frame - 2] = screen()
            if ale.game_over():
                break
        stack.append(pair.max(axis=0))
        observations.append(np.array(stack))
        rewards.append(reward)
        if ale.game_over():
            break
    return np.concatenate(observations).tobytes(), rewards, ale.game_over()
