"""TD3+BC or IQL of d3rlpy on one of D4RL's files: steps a second, and what its agent returns.

    python scripts/peers/d3rlpy_values.py td3_bc hopper_medium.hdf5 steps=5000 episodes=20

Sizes as in Overtone's presets: two hidden layers of 256, batch 256, Adam 3e-4, observations
normalized. IQL's rewards are multiplied by 1000 / (largest - smallest episode return), which d3rlpy
has a scaler for. An episode that a limit cut is one in d3rlpy's data too. `threads=2` is the
default. Playing is in Gymnasium's `-v4`, which needs gymnasium and mujoco; episodes=0 plays none.
"""

import json
import logging
import sys
import time

import h5py
import numpy as np
import structlog
import torch

structlog.configure(wrapper_class=structlog.make_filtering_bound_logger(logging.ERROR))

import d3rlpy  # noqa: E402 (quiet first)
from d3rlpy.algos import IQLConfig, TD3PlusBCConfig  # noqa: E402
from d3rlpy.preprocessing import (  # noqa: E402
    ReturnBasedRewardScaler, StandardObservationScaler)

ENVIRONMENTS = {"halfcheetah": "HalfCheetah-v4", "hopper": "Hopper-v4", "walker2d": "Walker2d-v4"}


def dataset_of(path):
    with h5py.File(path) as file:
        columns = {name: file[name][()] for name in
                   ("observations", "actions", "rewards", "terminals", "timeouts")}
    terminals, timeouts = columns["terminals"].astype(bool), columns["timeouts"].astype(bool)
    whole = np.nonzero(terminals | timeouts)[0][-1] + 1  # a fragment at the end is left out
    return d3rlpy.dataset.MDPDataset(
        columns["observations"][:whole].astype(np.float32),
        columns["actions"][:whole].astype(np.float32),
        columns["rewards"][:whole].astype(np.float32),
        terminals[:whole].astype(np.float32),
        (timeouts & ~terminals)[:whole].astype(np.float32))


def algorithm_of(name, dataset):
    common = dict(batch_size=256, actor_learning_rate=3e-4, critic_learning_rate=3e-4,
                  observation_scaler=StandardObservationScaler(eps=1e-3))
    if name == "td3_bc":
        return TD3PlusBCConfig(**common).create(device="cpu:0")
    returns = [episode.compute_return() for episode in dataset.episodes]
    scaler = ReturnBasedRewardScaler(return_min=min(returns), return_max=max(returns),
                                     multiplier=1000.0)
    return IQLConfig(**common, reward_scaler=scaler, expectile=0.7, weight_temp=3.0,
                     max_weight=100.0).create(device="cpu:0")


def play(algorithm, environment, episodes):
    import gymnasium

    env, returns = gymnasium.make(environment), []
    for seed in range(episodes):
        observation, _ = env.reset(seed=seed)
        total, over = 0.0, False
        while not over:
            action = algorithm.predict(observation[None].astype(np.float32))[0]
            observation, reward, ended, cut, _ = env.step(np.clip(action, -1.0, 1.0))
            total, over = total + reward, ended or cut
        returns.append(total)
    return returns


def main():
    name, path, *words = sys.argv[1:]
    options = {"steps": 5000, "episodes": 20, "threads": 2, "seed": 1, "warm": 100}
    options |= {key: int(value) for key, value in (word.split("=") for word in words)}
    torch.set_num_threads(options["threads"])
    d3rlpy.seed(options["seed"])
    dataset = dataset_of(path)
    algorithm = algorithm_of(name, dataset)
    # As its own `fit` does before its first step.
    algorithm.observation_scaler.fit_with_transition_picker(
        dataset.episodes, dataset.transition_picker)
    if algorithm.reward_scaler is not None and not algorithm.reward_scaler.built:
        algorithm.reward_scaler.fit_with_transition_picker(
            dataset.episodes, dataset.transition_picker)
    algorithm.build_with_dataset(dataset)
    draw = lambda: algorithm.update(dataset.sample_transition_batch(256))
    for _ in range(options["warm"]):
        draw()
    began, cpu = time.perf_counter(), time.process_time()
    for _ in range(options["steps"] - options["warm"]):
        draw()
    seconds, cpu = time.perf_counter() - began, time.process_time() - cpu
    found = {"algorithm": name, "file": path.rpartition("/")[2], **options,
             "steps_per_second": round((options["steps"] - options["warm"]) / seconds, 1),
             "cpu_ms_per_step": round(1000 * cpu / (options["steps"] - options["warm"]), 2)}
    if options["episodes"]:
        robot = path.rpartition("/")[2].partition("_")[0]
        returns = play(algorithm, ENVIRONMENTS[robot], options["episodes"])
        found |= {"mean": round(float(np.mean(returns)), 1), "std": round(float(np.std(returns)), 1)}
    print(json.dumps(found))


if __name__ == "__main__":
    main()
