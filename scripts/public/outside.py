"""Outside policies for the judge, as `probs` of `overtone judge`: FILE.npz → FILE.POLICY.npy.

    .venv-public/bin/python scripts/public/outside.py bandit LOG OTHER    # OTHER's policy at LOG's rows
"""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np

#: Recommendation slots of the shop's page: the first columns of an observation.
SLOTS = 3


def bandit(log: str, other: str) -> str:
    """Writes the probability of each recorded item of `log` under the policy of `other`.

    Both policies choose an item by its slot. Thompson sampling learns meanwhile, so its policy is its average: the
    share of each item among the rounds of a slot in its log.
    """
    with np.load(other) as file:
        slots, n_items = file["observations"][:, :SLOTS].argmax(1), int(file["n_actions"])
        counts = np.zeros((SLOTS, n_items))
        np.add.at(counts, (slots, file["actions"]), 1)
    shares = counts / counts.sum(1, keepdims=True)
    with np.load(log) as file:
        probs = shares[file["observations"][:, :SLOTS].argmax(1)]
    path = Path(log).with_suffix(f".{Path(other).stem}.npy")
    np.save(path, probs)
    print(f"{path}: {probs.shape[0]} rows")
    return str(path)


if __name__ == "__main__":
    {"bandit": bandit}[sys.argv[1]](*sys.argv[2:4])
