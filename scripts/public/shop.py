"""Open Bandit Dataset: recommendations of a shop with their propensities (Saito et al. 2021, CC BY 4.0).

A round is an episode of one step: the observation is the one-hot user features and the position, the action the
item, the reward the click. The wheel of `obp` holds 10,000 rounds of each policy and campaign.
"""

from __future__ import annotations

import csv
from importlib.metadata import files
from pathlib import Path

import numpy as np

FEATURES = ("position", "user_feature_0", "user_feature_1", "user_feature_2", "user_feature_3")


def convert(policy: str, campaign: str) -> dict[str, np.ndarray]:
    """The log of `policy`, `random` or `bts`, in the layout of the own `.npz` form."""
    rows = _rows(policy, campaign)
    # Both logs need the same columns, so the values of both are counted.
    other = _rows({"random": "bts", "bts": "random"}[policy], campaign)
    columns = []
    for feature in FEATURES:
        values = sorted({row[feature] for row in rows + other})
        places = np.array([values.index(row[feature]) for row in rows])
        columns.append(np.eye(len(values), dtype=np.float32)[places])
    items = np.array([int(row["item_id"]) for row in rows])
    propensities = np.array([float(row["propensity_score"]) for row in rows])
    return {
        "observations": np.concatenate(columns, axis=1),
        "actions": items.astype(np.int64),
        "rewards": np.array([float(row["click"]) for row in rows], np.float32),
        "terminals": np.ones(len(rows), bool),
        "timeouts": np.zeros(len(rows), bool),
        "n_actions": np.array(1 + max(int(row["item_id"]) for row in rows + other)),
        "behavior_log_probs": np.log(propensities).astype(np.float32),
    }


def _rows(policy: str, campaign: str) -> list[dict[str, str]]:
    name = f"obp/dataset/obd/{policy}/{campaign}/{campaign}.csv"
    place = next(file for file in files("obp") if str(file) == name)
    with Path(place.locate()).open(encoding="utf-8") as file:
        return list(csv.DictReader(file))
