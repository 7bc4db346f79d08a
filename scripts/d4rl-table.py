#!/usr/bin/env python3
"""Trains and plays robots with softmax and with Fourier attention, and prints a Markdown table.

    just d4rl-table [quick=true] [path=FOLDER] [seeds=1,2] [runs=FOLDER] [key=value...]

FOLDER holds D4RL files such as hopper_medium-v2.hdf5; without it, the published files in
datasets/published/d4rl, or the starter sets (medium only), are used. quick=true takes the size
that 2 cores do in about an hour. Runs of the same settings that were played in runs (default:
runs/d4rl-table) are not trained again. Other options go to `overtone train`.
"""

import json
import math
import statistics
import sys
import time
from pathlib import Path

import table_runs
from words import options, stop, whole

ENVS = ["hopper", "halfcheetah", "walker2d"]
QUALITIES = ["medium", "medium-replay", "medium-expert"]
ATTENTION = ["softmax", "fourier"]
# What quick=true changes of the quick profile: the size for an hour.
QUICK = {"train.updates": "700", "evaluation.episodes": "20"}
# What makes a row of the table, and a run of it.
ABOUT = ["task", "dataset", "attention.kind", "seed"]


def data_of(run: Path) -> tuple[float, float]:
    """Mean and largest raw return of the episodes a run was trained on."""
    state = sorted((run / "checkpoints").glob("step-*"))[-1] / "state.json"
    returns = json.loads(state.read_text(encoding="utf-8"))["episode_returns"]
    return statistics.fmean(returns), max(returns)


def main() -> None:
    given = options(sys.argv[1:])
    runs = Path(given.pop("runs", table_runs.ROOT / "runs/d4rl-table")).absolute()
    seeds = [str(whole("seeds", seed, 0)) for seed in given.pop("seeds", "1,2").split(",")]
    path = given.pop("path", "")
    if path and not Path(path).exists():
        stop(f"path={path}: there is no such folder")
    quick = given.pop("quick", "false")
    if quick not in ("true", "false"):
        stop(f"quick={quick}: expected true or false")
    table_runs.check_words("vectors", [f"{key}={text}" for key, text in given.items()])
    started = time.monotonic()
    trained = 0
    table = []
    for env in ENVS:
        for quality in QUALITIES:
            for attention in ATTENTION:
                found = []
                for seed in seeds:
                    wanted = {"env": env, "dataset": quality, "attention": attention, "seed": seed}
                    wanted |= {"data.path": str(Path(path).absolute())} if path else {}
                    wanted |= (QUICK if quick == "true" else {}) | given
                    words = [f"{key}={text}" for key, text in wanted.items()]
                    run, new = table_runs.find_or_train(runs, "vectors", words, ABOUT)
                    trained += new
                    found.append(run)
                table.append((env, quality, attention, found))

    print("| environment | data | attention | target | raw return | normalized, mean ± sd over seeds | each seed | data: mean / best return |")
    print("| --- | --- | --- | --- | --- | --- | --- | --- |")
    for env, quality, attention, found in table:
        reports = [json.loads((run / "evaluation.json").read_text(encoding="utf-8")) for run in found]
        mean, best = data_of(found[0])
        for place, target in enumerate(reports[0]["targets"]):
            results = [report["targets"][place] for report in reports]
            raw = [result["raw_return"]["mean"] for result in results]
            normalized = [result["normalized"]["mean"] for result in results]
            spread = f" ± {statistics.stdev(normalized):.1f}" if len(normalized) > 1 else ""
            print(
                f"| {env} | {quality} | {attention} | {target['target_return']:g} | {statistics.fmean(raw):.0f} "
                f"| {statistics.fmean(normalized):.1f}{spread} | {', '.join(f'{x:.1f}' for x in normalized)} "
                f"| {mean:.0f} / {best:.0f} |"
            )
    minutes = math.ceil((time.monotonic() - started) / 60)
    print(f"{trained} runs trained and played in {minutes} minutes", file=sys.stderr)


if __name__ == "__main__":
    main()
