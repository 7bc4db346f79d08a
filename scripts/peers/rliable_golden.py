"""Generates a golden file: statistics of a few score matrices by `rliable`.

    pip install rliable==1.2.0 'pandas<3'
    python scripts/peers/rliable_golden.py crates/eval/tests/golden/rliable.json

Point estimates are exact. Intervals are random: the file has the smallest and the largest value of
each end over 20 bootstrap seeds. The end of a bootstrap with very many replications lies between
them, unless all seeds err to the same side (once in half a million).
"""

import json
import sys
from importlib.metadata import version

import numpy as np
from rliable import library, metrics

SEEDS = 20
REPLICATIONS = 1000


def matrices() -> dict[str, np.ndarray]:
    """Scores `[runs, tasks]`."""
    draw = np.random.default_rng(7)
    skewed = draw.lognormal(0.0, 1.0, (10, 3)) * [1.0, 5.0, 0.2]
    return {
        "one_task": draw.normal(60.0, 15.0, (5, 1)),
        "one_run": draw.normal(0.5, 1.0, (1, 4)),
        "skewed": skewed,
        "negative": draw.normal(-40.0, 30.0, (7, 5)),
        "ties": draw.integers(0, 4, (6, 3)).astype(float),
        "many": draw.normal(0.6, 0.4, (9, 12)),
    }


def pairs(scores: dict[str, np.ndarray]) -> dict[str, tuple[np.ndarray, np.ndarray]]:
    """Two matrices of the same tasks."""
    draw = np.random.default_rng(8)
    return {
        "more_runs": (scores["skewed"], scores["skewed"][:6] * 0.7),
        "ties": (scores["ties"], draw.integers(0, 4, (8, 3)).astype(float)),
        "negative": (scores["negative"], scores["negative"] + draw.normal(-5.0, 20.0, (7, 5))),
        "equal": (scores["many"], scores["many"]),
    }


def ends(data, function) -> dict | None:
    """Smallest and largest over seeds of both ends of each number's interval."""
    if min(len(matrix) for matrix in (data if isinstance(data, list) else [data])) < 2:
        return None
    found = []
    for seed in range(SEEDS):
        np.random.seed(seed)
        _, intervals = library.get_interval_estimates({"": data}, function, reps=REPLICATIONS)
        found.append(intervals[""])
    found = np.array(found)  # [seeds, 2, numbers]
    ranges = np.stack([found.min(0), found.max(0)], axis=-1)
    return {"low": ranges[0].tolist(), "high": ranges[1].tolist()}


def aggregates(scores: np.ndarray, gamma: float) -> np.ndarray:
    return np.array([metrics.aggregate_mean(scores), metrics.aggregate_median(scores),
                     metrics.aggregate_iqm(scores), metrics.aggregate_optimality_gap(scores, gamma)])


def main() -> None:
    scores = matrices()
    cases = {}
    for name, matrix in scores.items():
        gamma = float(np.quantile(matrix, 0.8))
        taus = np.quantile(matrix, [0.0, 0.2, 0.5, 0.9]).round(1)
        cases[name] = {
            "scores": matrix.T.tolist(),
            "gamma": gamma,
            "aggregates": aggregates(matrix, gamma).tolist(),
            "intervals": ends(matrix, lambda x, gamma=gamma: aggregates(x, gamma)),
            "taus": taus.tolist(),
            "profile": library.score_distributions(matrix, taus).tolist(),
            "profile_intervals": ends(matrix, lambda x, t=taus: library.score_distributions(x, t)),
        }
    improvements = {}
    for name, (x, y) in pairs(scores).items():
        probability = lambda x, y: np.array([metrics.probability_of_improvement(x, y)])
        improvements[name] = {
            "x": x.T.tolist(), "y": y.T.tolist(),
            "probability": float(probability(x, y)[0]),
            "interval": ends([x, y], probability),
        }
    made = {"rliable": version("rliable"), "numpy": np.__version__, "scipy": version("scipy"),
            "seeds": SEEDS, "replications": REPLICATIONS}
    with open(sys.argv[1], "w", encoding="utf-8") as file:
        json.dump({"made_with": made, "cases": cases, "improvements": improvements}, file, indent=1)
        file.write("\n")


if __name__ == "__main__":
    main()
