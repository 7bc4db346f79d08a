"""Shared parts of the tests: small data, small agents, an empty working directory."""

from __future__ import annotations

import os
import tempfile
import unittest
from pathlib import Path
from typing import Any

import numpy as np

import overtone as ov

ROOT = Path(__file__).resolve().parents[2]
HOPPER = ROOT / "datasets/starter/mujoco/hopper_medium.hdf5"

#: A minimal agent and run.
TINY: dict[str, Any] = {
    "model": {"d_model": 16, "n_layers": 1},
    "train": {"updates": 6, "batch_size": 4, "log_every": 2, "checkpoint_every": 2},
    "evaluation.episodes": 0,
}


def carts(episodes: int = 20, seed: int = 0) -> dict[str, np.ndarray]:
    """Random numbers in the shape of CartPole's: half of the episodes end, half are cut."""
    random = np.random.default_rng(seed)
    lengths = random.integers(5, 30, episodes)
    n = int(lengths.sum())
    last = np.zeros(n, bool)
    last[np.cumsum(lengths) - 1] = True
    ended = last.copy()
    ended[np.flatnonzero(last)[1::2]] = False
    return {
        "observations": random.normal(size=(n, 4)).astype(np.float32),
        "actions": random.integers(0, 2, n),
        "rewards": np.ones(n, np.float32),
        "terminations": ended,
        "truncations": last & ~ended,
    }


class Desk(unittest.TestCase):
    """Each test has its own empty directory."""

    def setUp(self) -> None:
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.addCleanup(os.chdir, os.getcwd())
        os.chdir(folder.name)
        old = os.environ.get("XDG_CACHE_HOME")
        os.environ["XDG_CACHE_HOME"] = folder.name
        self.addCleanup(
            lambda: os.environ.pop("XDG_CACHE_HOME")
            if old is None
            else os.environ.__setitem__("XDG_CACHE_HOME", old)
        )
        self.folder = Path(folder.name)

    def train(self, **settings: Any) -> ov.Run:
        """A tiny run on Hopper's dataset."""
        settings = {"env": "hopper", **TINY, **settings}
        return ov.train(HOPPER, progress="none", **settings)
