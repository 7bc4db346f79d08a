"""The judge on halves of a shop's logs, where it must not find a policy better that is not:

    .venv-public/bin/python scripts/public/judge_shop.py [SPLITS] [PROGRAM]

Each log is halved at random, and by each half the judge estimates both policies by importance weights. The policy
that recorded a half is as good as the half. Prints the answers, and how many intervals hold the mean of the
policy's own log.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
from collections import Counter
from pathlib import Path

import numpy as np

import outside
import shop

POLICIES = ("random", "bts")


def main(splits: int = 20, program: str = "target/release/overtone") -> None:
    logs = {policy: shop.convert(policy, "men") for policy in POLICIES}
    answers = {(by, judged): Counter() for by in POLICIES for judged in POLICIES}
    random = np.random.default_rng(0)
    with tempfile.TemporaryDirectory() as folder:
        for policy, log in logs.items():
            np.savez(f"{folder}/{policy}.npz", **log)
        for _ in range(splits):
            for (by, judged), counts in answers.items():
                log = logs[by]
                n_rounds = len(log["actions"])
                half = random.permutation(n_rounds)[: n_rounds // 2]
                path = f"{folder}/half.npz"
                np.savez(path, **{name: values[half] if values.ndim else values for name, values in log.items()})
                probs = outside.bandit(path, f"{folder}/{judged}.npz")
                command = ["judge", f"dataset={path}", f"probs={probs}", "steps=0", "discount=1", "updates=0"]
                subprocess.run([program, *command], check=True, capture_output=True)
                row, = json.loads(Path(probs).with_suffix(".judgement.json").read_text("utf-8"))["policies"]
                verdict = row["verdict"]
                counts[verdict if isinstance(verdict, str) else next(iter(verdict))] += 1
                interval = row["estimates"][-1]["interval"]
                counts["holds"] += int(interval["low"] <= logs[judged]["rewards"].mean() <= interval["high"])
    for (by, judged), counts in answers.items():
        print(f"{judged} by {splits} halves of the log of {by}: {dict(counts)}")


if __name__ == "__main__":
    main(*(kind(word) for kind, word in zip((int, str), sys.argv[1:])))
