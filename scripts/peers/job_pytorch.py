#!/usr/bin/env python3
"""A straightforward PyTorch program that trains on DQN-replay files and evaluates:

    job_pytorch.py FOLDER UPDATES BATCH EPISODES

Prints `first update`, `trained` and `played` after each of these.
"""

import gzip
import os
import sys
from pathlib import Path

import numpy as np
import torch
from torch.utils.data import DataLoader, Dataset

import atari_dt
import play

CONTEXT = atari_dt.CONTEXT


class Contexts(Dataset):
    """Windows that end inside an episode, as in the published program."""

    def __init__(self, folder: Path):
        observations, actions, rewards, ends = [], [], [], []
        n_files = len(list(folder.glob("add_count_ckpt.*.gz")))
        for index in range(n_files):
            frames, action, reward, terminal = (
                np.load(gzip.open(folder / f"$store$_{name}_ckpt.{index}.gz"))
                for name in ("observation", "action", "reward", "terminal"))
            last = np.flatnonzero(terminal)[-1] + 1
            for i in range(last):
                observations.append(np.stack([frames[j] for j in range(i - 3, i + 1)]))
            ends += list(len(actions) + np.flatnonzero(terminal) + 1)
            actions += list(action[:last])
            rewards += list(reward[:last])
        self.observations, self.actions = observations, np.array(actions, np.int64)
        self.ends = np.array(ends)
        self.timesteps = np.zeros(len(actions), np.int64)
        self.returns = np.zeros(len(actions), np.float32)
        rewards, start = np.array(rewards, np.float32), 0
        for end in ends:
            self.returns[start:end] = rewards[start:end][::-1].cumsum()[::-1]
            self.timesteps[start:end] = np.arange(end - start)
            start = end

    def __len__(self):
        return len(self.observations) - 3 * CONTEXT

    def __getitem__(self, index):
        end = min(self.ends[np.searchsorted(self.ends, index, "right")], index + CONTEXT)
        start = max(end - CONTEXT, 0)
        observations = torch.tensor(np.array(self.observations[start:end]), dtype=torch.float32)
        return (observations / 255, torch.from_numpy(self.actions[start:end]),
                torch.from_numpy(self.returns[start:end]), self.timesteps[start])


def main():
    folder, updates, batch, episodes = sys.argv[1:]
    torch.set_num_threads(os.cpu_count())
    torch.manual_seed(123)
    data = Contexts(Path(folder))
    model = atari_dt.DecisionTransformer(int(data.timesteps.max()) + play.MAX_TIMESTEP)
    optimizer = atari_dt.optimizer(model)
    workers = min(4, os.cpu_count())  # four as published, at most the number that PyTorch advises
    loader = DataLoader(data, int(batch), shuffle=True, num_workers=workers)
    for update, inputs in enumerate(loader, 1):
        loss = model.loss(*inputs)
        model.zero_grad()
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        loss.item()
        if update == 1:
            print("first update", flush=True)
        if update == int(updates):
            break
    print("trained", flush=True)
    player, played = play.Player(model, play.Game("seaquest", 1)), 0
    while played < int(episodes):
        played += player.step()
    print("played", flush=True)


if __name__ == "__main__":
    main()
