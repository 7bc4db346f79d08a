"""OGBench's cube, scene and puzzle, recorded by the oracles in its package (Park et al. 2025).

Oracles, noise and limits are those of OGBench's data generation: *play* follows smoothly noisy plans, *noisy* is
Markovian with Gaussian noise and random actions. A trajectory has 1,001 rows. Rewards and masks are those of the
default single task: −1 a step until it is solved; a mask of 0 stops the backup where it is.
"""

from __future__ import annotations

import os
from importlib import import_module

os.environ.setdefault("MUJOCO_GL", "egl")

import gymnasium
import numpy as np
import ogbench.manipspace  # noqa: F401  (registers the environments)
from ogbench.relabel_utils import relabel_dataset

from progress import Progress

ROWS = 1001
SEED = 0

#: The parts that a trajectory may move.
PARTS = {
    "cube": ("cube",),
    "scene": ("cube", "button", "drawer", "window"),
    "puzzle": ("button",),
}

#: The share of random actions of *noisy*.
RANDOM_ACTIONS = {"puzzle-3x3": 0.2}

#: The bounds of the probability of stacking a cube.
STACKING = {"cube-single": (0.0, 0.0)}

#: Deviation of the noise of *noisy* in each number of an action, relative to that of a trajectory.
NOISE = np.array([1.0, 1.0, 1.0, 3.0, 10.0])


def record(name: str, kind: str, trajectories: int) -> dict[str, np.ndarray]:
    """The arrays of OGBench's single-task layout."""
    random = np.random.default_rng(SEED)
    np.random.seed(SEED)  # The environments and oracles draw from it too.
    environment = gymnasium.make(
        f"{name}-v0", terminate_at_goal=False, mode="data_collection", max_episode_steps=ROWS
    )
    oracles = {part: _oracle(name, kind, part, environment) for part in PARTS[name.split("-")[0]]}
    columns: dict[str, list[object]] = {}
    progress, done = Progress("trajectories", trajectories), 0
    while done < trajectories:
        rows = _trajectory(name, kind, environment, oracles, random)
        if name == "scene" and not _is_in_sight(np.array(rows["qpos"])):
            continue
        for key, values in rows.items():
            columns.setdefault(key, []).extend(values)
        done += 1
        progress.done(done)
    arrays = {key: np.array(values, np.float32) for key, values in columns.items()}
    for key, kind_of in [("terminals", bool), ("button_states", np.int64)]:
        if key in arrays:
            arrays[key] = arrays[key].astype(kind_of)
    single = f"{name}-singletask-v0"
    relabel_dataset(single, gymnasium.make(single), arrays)
    kept = ("observations", "actions", "rewards", "masks", "terminals")
    return {key: arrays[key] for key in kept}


def _trajectory(name, kind, environment, oracles, random):
    observation, info = environment.reset(seed=int(random.integers(2**31)))
    stacking = random.uniform(*STACKING.get(name, (0.5, 0.5)))
    noise = NOISE * random.uniform(0, 0.1)
    oracle = oracles[info["privileged/target_task"]]
    oracle.reset(observation, info)
    rows, is_over = {}, False
    while not is_over:
        if kind == "noisy" and random.random() < RANDOM_ACTIONS.get(name, 0.1):
            action = random.uniform(-1, 1, environment.action_space.shape)
        else:
            action = np.array(oracle.select_action(observation, info))
            if kind == "noisy":
                action = action + random.normal(0, noise)
        action = np.clip(action, -1, 1)
        following, _, terminated, truncated, info = environment.step(action)
        is_over = terminated or truncated
        row = {
            "observations": observation, "actions": action, "terminals": is_over,
            "qpos": info["prev_qpos"], "qvel": info["prev_qvel"],
        }
        if "prev_button_states" in info:
            row["button_states"] = info["prev_button_states"]
        for key, value in row.items():
            rows.setdefault(key, []).append(value)
        if oracle.done:
            target, target_info = environment.unwrapped.set_new_target(p_stack=stacking)
            oracle = oracles[target_info["privileged/target_task"]]
            oracle.reset(target, target_info)
        observation = following
    return rows


def _oracle(name, kind, part, environment):
    form = "plan" if kind == "play" else "markov"
    module = import_module(f"ogbench.manipspace.oracles.{form}.{part}_{form}")
    options = {"noise": 0.1, "noise_smoothing": 0.5} if form == "plan" else {"min_norm": 0.4}
    if name.startswith("puzzle"):
        options["gripper_always_closed"] = True
    if (form, part, name) == ("markov", "cube", "scene"):
        options["max_step"] = 100
    return getattr(module, f"{part.capitalize()}{form.capitalize()}Oracle")(env=environment, **options)


def _is_in_sight(positions: np.ndarray) -> bool:
    """Whether the cube of `scene` stayed on the table or in the drawer."""
    _, y, z = positions[:, 14:17].T
    return not ((y >= 0.29) | ((y <= -0.3) & ((z < 0.06) | (z > 0.08)))).any()
