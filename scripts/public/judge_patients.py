"""The judge on ICU-Sepsis, where the return of every policy is known exactly:

    .venv-public/bin/python scripts/public/judge_patients.py [RECORDINGS] [UPDATES]

Trains agents of three algorithms on one recording, restricts them to admissible treatments, and judges each by other
recordings of 200 patients. Prints how many intervals hold the truth, and the answers. Needs the package `overtone`.
"""

from __future__ import annotations

import sys
import tempfile
from collections import Counter
from pathlib import Path

import numpy as np
import overtone as ov

import patients

DISCOUNT = 0.99
PATIENTS = 200
TASK = "own/icu-sepsis"


def dataset(arrays: dict[str, np.ndarray], folder: str, name: str) -> ov.Dataset:
    return ov.from_arrays(
        arrays["observations"], arrays["actions"], arrays["rewards"], arrays["terminals"],
        n_actions=int(arrays["n_actions"]), behavior_log_probs=arrays["behavior_log_probs"],
        task=TASK, path=str(Path(folder) / f"{name}.npz"),
    )


def policies(ward, folder: str) -> dict[str, np.ndarray]:
    """`[states, actions]` of the clinicians and of agents, all among admissible treatments."""
    allowed = patients.masks(ward)
    states = np.eye(len(allowed), dtype=np.float32)
    data = dataset(patients.record(1500, seed=1), folder, "training")
    all_policies = {"clinicians": patients.clinicians(ward)}
    for algorithm in ("behavior_cloning", "discrete_cql", "iql"):
        run = ov.train(data, algorithm=algorithm, progress="none", run_dir=folder)
        policy = run.policy(n_agents=len(states), temperature=1.0)
        policy.act(states, starts=np.ones(len(states), bool))
        probs = np.where(allowed, policy.probabilities + 1e-9, 0.0)
        all_policies[algorithm] = probs / np.maximum(probs.sum(1, keepdims=True), 1e-30)
    return all_policies


def main(recordings: int = 100, updates: int = 200) -> None:
    ward = patients.environment()
    with tempfile.TemporaryDirectory() as folder:
        known = policies(ward, folder)
        truths = {name: patients.truth(ward, policy, DISCOUNT) for name, policy in known.items()}
        counts: dict[str, Counter[str]] = {name: Counter() for name in known}
        for recording in range(recordings):
            arrays = patients.record(PATIENTS, seed=100 + recording)
            data = dataset(arrays, folder, "judging")
            states = arrays["observations"].argmax(1)
            for name, policy in known.items():
                judged = ov.judge(
                    data, probs=policy[states], discount=DISCOUNT, updates=updates, steps=0, progress="none"
                )
                row, = judged.table
                count = counts[name]
                if row["low"] is not None:
                    holds = row["low"] <= truths[name] <= row["high"]
                    # Intervals that no check but the difference refuses, and all.
                    if set(row["reasons"]) <= {"difference"}:
                        count["sound intervals"] += 1
                        count["hold"] += holds
                    count["intervals"] += 1
                    count["all hold"] += holds
                answer = row["answer"]
                is_wrong = (answer == "better than recorded" and truths[name] <= truths["clinicians"]) or (
                    answer == "worse than recorded" and truths[name] >= truths["clinicians"]
                )
                count[f"{answer}{' (wrong)' if is_wrong else ''}"] += 1
                count.update(row["reasons"])
            if (recording + 1) % 10 == 0:
                print(f"{recording + 1}/{recordings} recordings", flush=True)
    for name, count in counts.items():
        print(f"{name}: truth {truths[name]:.4f}; {dict(count)}")


if __name__ == "__main__":
    main(*map(int, sys.argv[1:3]))
