"""OGBench's point mazes, recorded by the way of the shortest path (Park et al. 2025).

A trajectory has 1,001 rows and goes from goal to goal, with Gaussian noise of deviation 0.5. Goals are dead ends,
corners and crossings, no halls. Rewards and masks are those of the default single task.
"""

from __future__ import annotations

import os

os.environ.setdefault("MUJOCO_GL", "egl")

import gymnasium
import numpy as np
import ogbench.locomaze  # noqa: F401  (registers the environments)
from ogbench.relabel_utils import relabel_dataset

from progress import Progress

ROWS = 1001
NOISE = 0.5
SEED = 0


def record(name: str, trajectories: int) -> dict[str, np.ndarray]:
    """The arrays of OGBench's single-task layout."""
    random = np.random.default_rng(SEED)
    np.random.seed(SEED)
    environment = gymnasium.make(f"{name}-v0", terminate_at_goal=False, max_episode_steps=ROWS)
    maze = environment.unwrapped
    grid = maze.maze_map
    free = [tuple(cell) for cell in np.argwhere(grid == 0)]
    goals = [cell for cell in free if not _is_hall(grid, *cell)]
    columns: dict[str, list[object]] = {}
    progress = Progress("trajectories", trajectories)
    for trajectory in range(trajectories):
        task = {
            "init_ij": free[random.integers(len(free))],
            "goal_ij": goals[random.integers(len(goals))],
        }
        observation, _ = environment.reset(
            seed=int(random.integers(2**31)), options={"task_info": task}
        )
        is_over = False
        while not is_over:
            subgoal, _ = maze.get_oracle_subgoal(maze.get_xy(), maze.cur_goal_xy)
            direction = subgoal - maze.get_xy()
            action = direction / (np.linalg.norm(direction) + 1e-6) + random.normal(0, NOISE, 2)
            action = np.clip(action, -1, 1)
            following, _, terminated, truncated, info = environment.step(action)
            is_over = terminated or truncated
            if info["success"]:
                maze.set_goal(goals[random.integers(len(goals))])
            row = {
                "observations": observation, "actions": action, "terminals": is_over,
                "qpos": info["prev_qpos"], "qvel": info["prev_qvel"],
            }
            for key, value in row.items():
                columns.setdefault(key, []).append(value)
            observation = following
        progress.done(trajectory + 1)
    arrays = {key: np.array(values, np.float32) for key, values in columns.items()}
    arrays["terminals"] = arrays["terminals"].astype(bool)
    single = f"{name}-singletask-v0"
    relabel_dataset(single, gymnasium.make(single), arrays)
    kept = ("observations", "actions", "rewards", "masks", "terminals")
    return {key: arrays[key] for key in kept}


def _is_hall(grid: np.ndarray, i: int, j: int) -> bool:
    """Whether a cell has walls on two opposite sides, and none on the others."""
    sides = (grid[i - 1, j], grid[i + 1, j], grid[i, j - 1], grid[i, j + 1])
    return sides in {(0, 0, 1, 1), (1, 1, 0, 0)}
