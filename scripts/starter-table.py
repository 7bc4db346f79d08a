#!/usr/bin/env python3
"""Trains and plays every game with both heads on the starter sets, and prints a Markdown table.

    just starter-table [runs=FOLDER] [key=value...]

Runs of the same settings that were played in FOLDER (default: runs/starter-table) are not
trained again. Options go to `overtone train`. 1300 updates, half of the quick profile, and 20
episodes a run unless they say otherwise.
"""

import json
import sys
from pathlib import Path

import table_runs
from words import options

GAMES = ["Seaquest", "BankHeist", "Gravitar", "DoubleDunk"]
HEADS = ["linear", "fourier"]
# Seaquest's target is the yardstick's; the others' is the default, the data's 90th percentile.
TARGETS = {"Seaquest": "32"}
UPDATES, EPISODES, SEED = 1300, 20, 123


def name_of(run: Path) -> str:
    """The head of a run: `linear`, `fourier14`."""
    config = table_runs.read(run / "config.toml")
    return config["head.kind"] + (str(config["head.frequencies"]) if config["head.kind"] == "fourier" else "")


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
    root = table_runs.ROOT
    given = options(sys.argv[1:])
    runs = Path(given.pop("runs", root / "runs/starter-table")).absolute()
    table_runs.check_words("pixels", [f"{key}={text}" for key, text in given.items()])
    rows = []
    for game in GAMES:
        for head in HEADS:
            wanted = {
                "game": game, "head": head, "seed": SEED, "train.updates": UPDATES,
                "evaluation.episodes": EPISODES, "evaluation.target": TARGETS.get(game, "p90"),
            } | given
            words = [f"{key}={text}" for key, text in wanted.items()]
            run, _ = table_runs.find_or_train(runs, "pixels", words, ["task", "head.kind", "seed"])
            report = json.loads((run / "evaluation.json").read_text(encoding="utf-8"))
            rows.append((game, name_of(run), report))
    print("| game | head | target (clipped) | raw return | median | normalized | episodes | mean length | data: random / all |")
    print("| --- | --- | --- | --- | --- | --- | --- | --- | --- |")
    for game, head, report in rows:
        (result,) = report["targets"]
        raw, normalized, length = result["raw_return"], result["normalized"], result["length"]
        print(
            f"| {game} | {head} | {result['target_return']:g} "
            f"| {spread(raw, 1)} | {raw['median']:g} "
            f"| {spread(normalized, 2)} | {raw['n']} | {length['mean']:.0f} | {data_of(root, game)} |"
        )


if __name__ == "__main__":
    main()
