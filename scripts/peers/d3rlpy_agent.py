"""Trains an agent of d3rlpy on a file in D4RL's format, or in OGBench's, and evaluates it.

    python scripts/peers/d3rlpy_agent.py td3_bc|iql|dt hopper_medium.hdf5 updates=5000 threads=1
    python scripts/peers/d3rlpy_agent.py bc|iql|td3_bc|rebrac cube.npz task=ogbench:cube-single-singletask-v0

The settings are from d3rlpy's `reproductions/offline`, with these changes for short runs:

    all     observations are standardized (there not for IQL)
    iql     the actor's learning rate falls as a cosine over this run (there over its 500,000 updates)
    dt      learning rate 1e-3 after 100 updates of warm-up (there 1e-4 after 10,000)

Truncated episodes stay episodes in d3rlpy's data; an incomplete episode at the end of the file is
left out. The agent plays Gymnasium's `-v4` task from `episodes=20` starts, or from the starts in
`seeds`, a file with a JSON list of Gymnasium's seeds. A Decision Transformer has the target return
`target`. Copies of the agent are made after each number of updates in `evaluate=N,N` (by default
the last), and play after training.

With `task`, the settings are the defaults of d3rlpy's classes with batches of 256, and standardized
observations but for IQL. A row with a mask of 0 ends an episode of d3rlpy's data.

Prints one line of JSON: the processor seconds of training, and for each copy its updates, its time
(`time.time()`), its returns, and how many of its episodes end in `info["success"]`.
"""

import copy
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
from d3rlpy.algos import (  # noqa: E402
    BCConfig, DecisionTransformerConfig, IQLConfig, ReBRACConfig, TD3PlusBCConfig)
from d3rlpy.models import VectorEncoderFactory  # noqa: E402
from d3rlpy.optimizers import (  # noqa: E402
    AdamFactory, CosineAnnealingLRFactory, GPTAdamWFactory, WarmupSchedulerFactory)
from d3rlpy.preprocessing import (  # noqa: E402
    MultiplyRewardScaler, ReturnBasedRewardScaler, StandardObservationScaler)

ENVIRONMENTS = {"halfcheetah": "HalfCheetah-v4", "hopper": "Hopper-v4", "walker2d": "Walker2d-v4"}
CONTEXT, DT_BATCH = 20, 64


def public_dataset_of(path):
    """OGBench's single-task layout: the last row of a trajectory is its final observation."""
    with np.load(path) as columns:
        solved, last = columns["masks"] == 0, columns["terminals"].astype(bool)
        return d3rlpy.dataset.MDPDataset(
            columns["observations"].astype(np.float32), columns["actions"].astype(np.float32),
            columns["rewards"].astype(np.float32), solved.astype(np.float32),
            (last & ~solved).astype(np.float32))


def dataset_of(path):
    with h5py.File(path) as file:
        columns = {name: file[name][()] for name in
                   ("observations", "actions", "rewards", "terminals", "timeouts")}
    terminals, timeouts = columns["terminals"].astype(bool), columns["timeouts"].astype(bool)
    whole = np.nonzero(terminals | timeouts)[0][-1] + 1  # without an incomplete last episode
    return d3rlpy.dataset.MDPDataset(
        columns["observations"][:whole].astype(np.float32),
        columns["actions"][:whole].astype(np.float32),
        columns["rewards"][:whole].astype(np.float32),
        terminals[:whole].astype(np.float32),
        (timeouts & ~terminals)[:whole].astype(np.float32))


def public_algorithm_of(name, dataset):
    """The algorithm by the defaults of its class, ready for its first update."""
    scaled = dict(batch_size=256, observation_scaler=StandardObservationScaler(eps=1e-3))
    configs = {"bc": (BCConfig, scaled), "iql": (IQLConfig, dict(batch_size=256)),
               "td3_bc": (TD3PlusBCConfig, scaled), "rebrac": (ReBRACConfig, scaled)}
    if name not in configs:
        sys.exit(f"unknown algorithm `{name}`: expected {', '.join(configs)}")
    config, settings = configs[name]
    algorithm = config(**settings).create(device="cpu:0")
    if algorithm.observation_scaler:
        algorithm.observation_scaler.fit_with_transition_picker(
            dataset.episodes, dataset.transition_picker)
    algorithm.build_with_dataset(dataset)
    return algorithm


def algorithm_of(name, dataset, updates):
    """The algorithm with its networks, ready for its first update."""
    scaled = dict(observation_scaler=StandardObservationScaler(eps=1e-3))
    common = scaled | dict(batch_size=256, actor_learning_rate=3e-4, critic_learning_rate=3e-4)
    if name == "td3_bc":
        config = TD3PlusBCConfig(**common)
    elif name == "iql":
        falling = AdamFactory(lr_scheduler_factory=CosineAnnealingLRFactory(T_max=updates))
        config = IQLConfig(**common, actor_optim_factory=falling, expectile=0.7, weight_temp=3.0,
                           max_weight=100.0,
                           reward_scaler=ReturnBasedRewardScaler(multiplier=1000.0))
    elif name == "dt":
        optimizer = GPTAdamWFactory(weight_decay=1e-4, clip_grad_norm=0.25,
                                    lr_scheduler_factory=WarmupSchedulerFactory(warmup_steps=100))
        config = DecisionTransformerConfig(
            **scaled, batch_size=DT_BATCH, context_size=CONTEXT, max_timestep=1000, num_heads=1,
            num_layers=3, learning_rate=1e-3, optim_factory=optimizer,
            encoder_factory=VectorEncoderFactory([128], exclude_last_activation=True),
            reward_scaler=MultiplyRewardScaler(0.001))
    else:
        sys.exit(f"unknown algorithm `{name}`: expected td3_bc, iql or dt")
    algorithm = config.create(device="cpu:0")
    # As in `fit` before its first step.
    if name == "dt":
        algorithm.observation_scaler.fit_with_trajectory_slicer(
            dataset.episodes, dataset.trajectory_slicer)
    else:
        algorithm.observation_scaler.fit_with_transition_picker(
            dataset.episodes, dataset.transition_picker)
    if name == "iql":
        # `fit` would leave out the last reward of a truncated episode.
        returns = [episode.compute_return() for episode in dataset.episodes]
        algorithm.reward_scaler.return_min = float(min(returns))
        algorithm.reward_scaler.return_max = float(max(returns))
    algorithm.build_with_dataset(dataset)
    return algorithm


class Players:
    """One episode for each seed, in parallel, with `algorithm.predict` for each observation."""

    def __init__(self, algorithm, environment, seeds):
        import gymnasium

        self.algorithm = algorithm
        self.envs = [gymnasium.make(environment) for _ in seeds]
        self.seen = np.stack([env.reset(seed=seed)[0] for env, seed in zip(self.envs, seeds)])
        self.seen = self.seen.astype(np.float32)
        self.returns = np.zeros(len(seeds))
        self.solved = 0
        self.playing = np.arange(len(seeds))

    def actions(self):
        """Actions of the running episodes."""
        return self.algorithm.predict(self.seen[self.playing])

    def took(self, index, action, reward):
        """Records a step of one episode."""

    def play(self):
        while len(self.playing):
            running = []
            for index, action in zip(self.playing, self.actions()):
                bounded = np.clip(action, -1.0, 1.0)
                self.seen[index], reward, ended, cut, info = self.envs[index].step(bounded)
                self.returns[index] += reward
                self.took(index, action, reward)
                if not (ended or cut):
                    running.append(index)
                else:
                    self.solved += bool(info.get("success"))
            self.playing = np.array(running, dtype=int)
        return {"returns": self.returns.tolist(), "solved": self.solved}


class TransformerPlayers(Players):
    """A batch of episodes, each with the acting of d3rlpy's `StatefulTransformerWrapper`."""

    def __init__(self, algorithm, environment, seeds, target):
        super().__init__(algorithm, environment, seeds)
        rows = (len(seeds), CONTEXT)
        self.observations = np.zeros((*rows, self.seen.shape[1]), np.float32)
        self.taken = np.zeros((*rows, algorithm.action_size), np.float32)
        self.to_go = np.zeros((*rows, 1), np.float32)
        self.timesteps, self.masks = np.zeros(rows, np.int64), np.zeros(rows, np.float32)
        self.rest, self.time = np.full(len(seeds), target, np.float64), 0

    def actions(self):
        self.time = min(self.time + 1, self.algorithm.config.max_timestep)
        newest = [(self.observations, self.seen), (self.taken, 0.0), (self.masks, 1.0),
                  (self.to_go, self.rest[:, None]), (self.timesteps, self.time)]
        for rows, values in newest:
            rows[:, :-1] = rows[:, 1:].copy()
            rows[:, -1] = values
        chosen = [torch.from_numpy(rows[self.playing]) for rows, _ in newest]
        observations, taken, masks, to_go, timesteps = chosen
        config, network = self.algorithm.config, self.algorithm.impl.modules.transformer
        network.eval()
        with torch.no_grad():
            actions = network(config.observation_scaler.transform(observations), taken,
                              config.reward_scaler.transform(to_go), timesteps, 1 - masks)
        return actions[:, -1].numpy()

    def took(self, index, action, reward):
        self.taken[index, -1] = action
        self.rest[index] -= reward


def modules_of(algorithm, name):
    """The network that acts."""
    modules = algorithm.impl.modules
    return getattr(modules, {"dt": "transformer", "bc": "imitator"}.get(name, "policy"))


def main():
    name, path, *words = sys.argv[1:]
    options = {"updates": "5000", "evaluate": "", "threads": "2", "seed": "1", "seeds": "",
               "episodes": "20", "target": "0", "task": ""}
    options |= dict(word.split("=", 1) for word in words)
    updates = int(options["updates"])
    at = {int(number) for number in options["evaluate"].split(",") if number} or {updates}
    torch.set_num_threads(int(options["threads"]))
    d3rlpy.seed(int(options["seed"]))
    if options["task"]:
        dataset = public_dataset_of(path)
        algorithm = public_algorithm_of(name, dataset)
    else:
        dataset = dataset_of(path)
        algorithm = algorithm_of(name, dataset, updates)
    if name == "dt":
        update = lambda: algorithm.update(dataset.sample_trajectory_batch(DT_BATCH, CONTEXT))
    else:
        update = lambda: algorithm.update(dataset.sample_transition_batch(256))

    copies, began, cpu = [], time.perf_counter(), time.process_time()
    for done in range(1, updates + 1):
        update()
        if done in at:
            copies.append({"updates": done, "time": time.time(),
                           "weights": copy.deepcopy(modules_of(algorithm, name).state_dict())})
    seconds, cpu = time.perf_counter() - began, time.process_time() - cpu

    seeds = list(range(int(options["episodes"])))
    if options["seeds"]:
        with open(options["seeds"], encoding="ascii") as file:
            seeds = json.load(file)
    if seeds:
        robot = path.rpartition("/")[2].partition("_")[0]
        for made in copies:
            modules_of(algorithm, name).load_state_dict(made["weights"])
            where = (algorithm, options["task"] or ENVIRONMENTS[robot], seeds)
            players = (TransformerPlayers(*where, float(options["target"])) if name == "dt"
                       else Players(*where))
            made |= players.play()
    for made in copies:
        del made["weights"]
    print(json.dumps({"algorithm": name, "file": path.rpartition("/")[2], "updates": updates,
                      "seed": int(options["seed"]), "threads": int(options["threads"]),
                      "seconds": round(seconds, 2), "processor_seconds": round(cpu, 2),
                      "copies": copies}))


if __name__ == "__main__":
    main()
