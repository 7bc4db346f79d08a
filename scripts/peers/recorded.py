"""Returns of the episodes of a dataset in D4RL's format."""

from pathlib import Path


def returns_of(path: Path) -> list[float]:
    """Return of each complete episode of the file."""
    import h5py
    import numpy as np

    with h5py.File(path) as file:
        rewards = file["rewards"][()].astype(np.float64)
        ends = np.nonzero(file["terminals"][()].astype(bool) | file["timeouts"][()].astype(bool))[0]
    sums = np.concatenate([[0.0], np.cumsum(rewards)])[np.concatenate([[0], ends + 1])]
    return np.diff(sums).tolist()
