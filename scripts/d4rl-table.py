#!/usr/bin/env python3
"""Trains and plays robots with softmax and with Fourier attention, and prints a Markdown table.

    just d4rl-table [quick=true] [path=FOLDER] [seeds=1,2] [runs=FOLDER] [key=value...]

FOLDER holds D4RL files such as hopper_medium-v2.hdf5; without it, the published files in
datasets/published/d4rl, or the starter sets (medium only), are used. quick=true takes the size
that 2 cores do in about an hour. Runs that are finished in runs (default: runs/d4rl-table) are
not trained again. Other options go to `overtone train`.
"""

import json
import math
import os
import statistics
import subprocess
import sys
import time
from pathlib import Path

ENVS = ["hopper", "halfcheetah", "walker2d"]
QUALITIES = ["medium", "medium-replay", "medium-expert"]
ATTENTION = {"softmax": "tanh", "fourier": "tanh-attention-fourier4"}
# What quick=true changes of the quick profile: the size for an hour.
QUICK = ["train.updates=700", "evaluation.episodes=20"]


def option(words: list[str], name: str, default: str) -> str:
    return next((word.split("=", 1)[1] for word in words if word.startswith(f"{name}=")), default)


def finished(runs: Path, env: str, quality: str, attention: str, seed: str) -> Path | None:
    """The folder of the finished run of this kind, if there is one."""
    for folder in sorted(runs.glob(f"*-{env}-{quality}-{ATTENTION[attention]}-s{seed}")):
        if (folder / "evaluation.json").is_file():
            return folder
    return None


def data_of(run: Path) -> tuple[float, float]:
    """Mean and largest raw return of the episodes a run was trained on."""
    state = sorted((run / "checkpoints").glob("step-*"))[-1] / "state.json"
    returns = json.loads(state.read_text(encoding="utf-8"))["episode_returns"]
    return statistics.fmean(returns), max(returns)


def main() -> None:
    root = Path(__file__).resolve().parent.parent
    words = sys.argv[1:]
    own = ("quick", "path", "seeds", "runs")
    runs = Path(option(words, "runs", str(root / "runs/d4rl-table")))
    seeds = option(words, "seeds", "1,2").split(",")
    path = option(words, "path", "")
    quick = option(words, "quick", "false") == "true"
    extra = [word for word in words if word.split("=", 1)[0] not in own]
    program = Path(os.environ.get("CARGO_TARGET_DIR", root / "target")) / "release/overtone"
    started = time.monotonic()
    trained = 0
    table = []
    for env in ENVS:
        for quality in QUALITIES:
            for attention in ATTENTION:
                found = []
                for seed in seeds:
                    run = finished(runs, env, quality, attention, seed)
                    if run is None:
                        command = [
                            program, "train", f"env={env}", f"dataset={quality}", f"attention={attention}",
                            f"seed={seed}", f"runs={runs}", *([f"data.path={path}"] if path else []),
                            *(QUICK if quick else []), *extra,
                        ]
                        subprocess.run(command, cwd=root, check=True, stdout=sys.stderr)
                        trained += 1
                        run = finished(runs, env, quality, attention, seed)
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
