#!/usr/bin/env python3
"""Trains and plays every game with both heads on the starter sets, and prints a Markdown table.

    just starter-table [runs=FOLDER] [key=value...]

Runs that are finished in FOLDER (default: runs/starter-table) are not trained again. Options
go to `overtone train`. 1300 updates, half of the quick profile, and 20 episodes a run unless they
say otherwise.
"""

import json
import os
import subprocess
import sys
from pathlib import Path

GAMES = ["Seaquest", "BankHeist", "Gravitar", "DoubleDunk"]
HEADS = {"linear": "linear", "fourier": "fourier14"}
# Seaquest's target is the yardstick's; the others' is the default, the data's 90th percentile.
TARGETS = {"Seaquest": "32"}
UPDATES, EPISODES = 1300, 20


def evaluation_of(runs: Path, game: str, head: str) -> dict | None:
    """The report of the finished run of this game and head, if there is one."""
    for folder in sorted(runs.glob(f"*-{game.lower()}-{HEADS[head]}-s*")):
        report = folder / "evaluation.json"
        if report.is_file():
            return json.loads(report.read_text(encoding="utf-8"))
    return None


def data_of(root: Path, game: str) -> str:
    """Mean raw return of a starter set's finished episodes: under random play, and of all."""
    stats = json.loads((root / "datasets/starter" / game / "stats.json").read_text(encoding="utf-8"))
    returns = [episode["ret"] for episode in stats["episode_log"] if episode["finished"]]
    random = next(s["return_mean"] for s in stats["stages"] if s["policy"] == "uniform random")
    return f"{random:.1f} / {sum(returns) / len(returns):.1f}"


def spread(summary: dict, digits: int) -> str:
    """Mean ± sample standard deviation; the mean alone for a single episode."""
    mean = f"{summary['mean']:.{digits}f}"
    return mean if summary["sd"] is None else f"{mean} ± {summary['sd']:.{digits}f}"


def main() -> None:
    root = Path(__file__).resolve().parent.parent
    options = sys.argv[1:]
    runs = Path(next((o.split("=", 1)[1] for o in options if o.startswith("runs=")), root / "runs/starter-table"))
    extra = [o for o in options if not o.startswith("runs=")]
    target = Path(os.environ.get("CARGO_TARGET_DIR", root / "target"))
    rows = []
    for game in GAMES:
        for head in HEADS:
            report = evaluation_of(runs, game, head)
            if report is None:
                command = [
                    target / "release/overtone", "train", f"game={game.lower()}", f"head={head}",
                    f"train.updates={UPDATES}", f"evaluation.episodes={EPISODES}",
                    f"evaluation.target={TARGETS.get(game, 'p90')}", f"runs={runs}", *extra,
                ]
                subprocess.run(command, cwd=root, check=True, stdout=sys.stderr)
                report = evaluation_of(runs, game, head)
            rows.append((game, head, report))
    print("| game | head | target (clipped) | raw return | median | normalized | episodes | mean length | data: random / all |")
    print("| --- | --- | --- | --- | --- | --- | --- | --- | --- |")
    for game, head, report in rows:
        (result,) = report["targets"]
        raw, normalized, length = result["raw_return"], result["normalized"], result["length"]
        print(
            f"| {game} | {HEADS[head]} | {result['target_return']:g} "
            f"| {spread(raw, 1)} | {raw['median']:g} "
            f"| {spread(normalized, 2)} | {raw['n']} | {length['mean']:.0f} | {data_of(root, game)} |"
        )


if __name__ == "__main__":
    main()
