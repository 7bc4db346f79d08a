#!/usr/bin/env python3
"""Evaluates an exported agent with Hugging Face's transformers, and compares it with Overtone.

    overtone train env=hopper … evaluation.episodes=3 evaluation.protocol=v5
    overtone export run=RUN to=FOLDER
    .venv-peers/bin/pip install transformers 'gymnasium[mujoco]'
    .venv-peers/bin/python scripts/peers/hf_decision_transformer.py RUN FOLDER

Repeats each episode of the run's evaluation with `DecisionTransformerModel`: the same environment,
seed and target. Prints both returns; the exit code is 1 if they differ by more than a fraction of
1e-4.
"""

import json
import sys
from pathlib import Path

import gymnasium
import numpy as np
import torch
from transformers import DecisionTransformerModel


def main() -> int:
    run, folder = map(Path, sys.argv[1:3])
    evaluation = json.loads((run / "evaluation-v5.json").read_text())
    agent = json.loads((folder / "overtone.json").read_text())["state"]["agent"]
    mean, std = (np.array(agent["normalization"][name]) for name in ("mean", "std"))
    context, scale = agent["algorithm"]["context_length"], agent["return_scale"]
    model = DecisionTransformerModel.from_pretrained(folder).eval()
    names = {"hopper": "Hopper-v5", "walker2d": "Walker2d-v5", "halfcheetah": "HalfCheetah-v5"}
    environment = gymnasium.make(names[agent["task"]["name"]])
    worst = 0.0
    for episode in evaluation["episodes"]:
        observation, _ = environment.reset(seed=episode["environment_seed"])
        seen, acted, to_go, total, over = [], [], [episode["target_return"] / scale], 0.0, False
        while not over:
            seen.append((observation - mean) / (std + 1e-6))
            acted.append(np.zeros(model.config.act_dim))
            first = max(0, len(seen) - context)
            rows = len(seen) - first
            tensor = lambda values: torch.tensor(np.array(values[first:]), dtype=torch.float32)[None]
            with torch.no_grad():
                _, actions, _ = model(
                    states=tensor(seen), actions=tensor(acted), rewards=None,
                    returns_to_go=tensor(to_go)[..., None],
                    timesteps=torch.arange(first, first + rows)[None],
                    attention_mask=torch.ones(1, rows), return_dict=False,
                )
            acted[-1] = actions[0, -1].numpy()
            observation, reward, ended, cut, _ = environment.step(acted[-1])
            total, over = total + float(reward), ended or cut
            to_go.append(to_go[-1] - float(reward) / scale)
        difference = abs(total - episode["raw_return"]) / abs(episode["raw_return"])
        worst = max(worst, difference)
        print(f"overtone {episode['raw_return']:.5f}, transformers {total:.5f}: {difference:.1e}")
    return int(worst > 1e-4)


if __name__ == "__main__":
    sys.exit(main())
