"""Write crates/eval/tests/golden/selection.json: returns of DeepMind's published policies, and the
curve that unifloral's own program computes from them.

    python selection_golden.py ACTIVE_OPS UNIFLORAL

ACTIVE_OPS is a clone of github.com/google-deepmind/active_ops (5c7b245): returns of 76 policies in
`cartpole_swingup` and their fitted-Q estimates, licensed under CC BY 4.0. UNIFLORAL is a clone of
github.com/EmptyJackson/unifloral (f2dc127). Requires jax, numpy and pandas.
"""

import json
import pickle
import sys
from pathlib import Path

import numpy as np

EPISODES = 100
CANDIDATES = 8
TRIALS = 20_000
BUDGETS = [1, 2, 5, 10, 20, 35, 50, 100, 140, 200]
OUT = Path(__file__).parents[2] / "crates/eval/tests/golden/selection.json"


def main() -> None:
    active_ops, unifloral = map(Path, sys.argv[1:])
    sys.path.insert(0, str(unifloral))
    from evaluation import run_bandit_trials

    load = lambda name: pickle.loads((active_ops / "data" / name).read_bytes())
    returns, estimates = load("full_reward_samples.pkl"), load("ope_values.pkl")
    names = sorted(returns)
    # The first of 5,000 episodes, as numbers that are the same in 32 and 64 bits.
    table = [[round(float(x), 3) for x in returns[name][:EPISODES]] for name in names]
    _, best = run_bandit_trials(
        np.array(table), seed=17, num_subsample=CANDIDATES, num_repeats=TRIALS,
        max_pulls=max(BUDGETS),
    )
    best = np.asarray(best, dtype=np.float64)
    golden = {
        "source": "google-deepmind/active_ops 5c7b245 (CC BY 4.0), EmptyJackson/unifloral f2dc127",
        "returns": table,
        "estimates": [round(float(estimates[name]), 4) for name in names],
        "unifloral": {
            "candidates": CANDIDATES,
            "budgets": BUDGETS,
            "mean": [best[:, n - 1].mean() for n in BUDGETS],
            "standard_error": [best[:, n - 1].std() / TRIALS**0.5 for n in BUDGETS],
        },
    }
    OUT.write_text(json.dumps(golden, separators=(",", ":")) + "\n")


if __name__ == "__main__":
    main()
