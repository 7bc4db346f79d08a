"""Write crates/judge/tests/golden/weights.json: importance-weighted estimates by scope-rl.

    pip install --no-deps scope-rl==0.2.1
    pip install numpy scikit-learn
    python scripts/peers/weights_golden.py

Only the estimators are loaded, not the rest of scope-rl, which requires torch, d3rlpy and gym. All
episodes have the same length, as these estimators require. scope-rl adds 1e-10 to the mean weight
that it divides by, so rewards are small enough for differences below 1e-10.
"""

import importlib
import importlib.util
import json
import sys
import types
from importlib.metadata import version
from pathlib import Path

import numpy as np

EPISODES, STEPS, ACTIONS = 30, 5, 3
OUT = Path(__file__).parents[2] / "crates/judge/tests/golden/weights.json"


class Unused:
    """Stands for a name that the estimators import and do not use."""


def estimators():
    """scope-rl's estimators for discrete actions, without what the package imports on its own."""
    root = Path(importlib.util.find_spec("scope_rl").submodule_search_locations[0])
    for name in ("scope_rl", "scope_rl.ope", "scope_rl.ope.discrete"):
        package = types.ModuleType(name)
        package.__path__ = [str(root.joinpath(*name.split(".")[1:]))]
        sys.modules[name] = package
    for name in ("d3rlpy", "d3rlpy.preprocessing", "gym"):
        sys.modules[name] = types.ModuleType(name)
    sys.modules["d3rlpy.preprocessing"].ActionScaler = Unused
    sys.modules["gym"].Env = Unused
    return importlib.import_module("scope_rl.ope.discrete.basic_estimators")


def softmax(logits: np.ndarray) -> np.ndarray:
    exp = np.exp(logits)
    return exp / exp.sum(-1, keepdims=True)


def main() -> None:
    scope = estimators()
    draw = np.random.default_rng(11)
    rows = EPISODES * STEPS
    behavior = softmax(draw.normal(0.0, 1.0, (rows, ACTIONS)))
    policy = softmax(draw.normal(0.0, 1.0, (rows, ACTIONS)))
    action = np.array([draw.choice(ACTIONS, p=p) for p in behavior])
    reward = draw.normal(0.04, 0.1, rows)
    q = draw.normal(0.1, 0.1, (rows, ACTIONS))
    taken = np.arange(rows), action
    inputs = {
        "step_per_trajectory": STEPS,
        "action": action,
        "reward": reward,
        "pscore": behavior[taken],
        "evaluation_policy_action_dist": policy,
        "state_action_value_prediction": q,
    }
    by_episode = lambda x: x.reshape(EPISODES, STEPS).tolist()
    found = {}
    for gamma in (1.0, 0.9):
        of = lambda name: float(getattr(scope, name)().estimate_policy_value(gamma=gamma, **inputs))
        names = {"pdis": "PerDecisionImportanceSampling", "wpdis": "SelfNormalizedPDIS",
                 "wdr": "SelfNormalizedDR"}
        found[str(gamma)] = {name: of(estimator) for name, estimator in names.items()}
    golden = {
        "source": f"scope-rl {version('scope-rl')}",
        "rewards": by_episode(reward),
        "log_ratios": by_episode(np.log(policy[taken] / behavior[taken])),
        "of_actions": by_episode(q[taken]),
        "of_histories": by_episode((q * policy).sum(1)),
        "estimates": found,
    }
    OUT.parent.mkdir(exist_ok=True)
    OUT.write_text(json.dumps(golden, separators=(",", ":")) + "\n")


if __name__ == "__main__":
    main()
