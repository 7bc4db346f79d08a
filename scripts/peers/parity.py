"""Parity: TD3+BC and IQL in Overtone and in d3rlpy, after the same number of updates on the same
files, evaluated from the same starts. One thread for each run."""

import json
import math
import statistics
import subprocess
import sys
from pathlib import Path

from process import kept_reply, runs_of, table

STUDY = "studies/parity.toml"
NAMES = {"td3_bc": "TD3+BC", "iql": "IQL"}
# docs/results/d3rlpy.md lists the settings that differ.


def overtone(program: str, root: Path, folder: Path, data: Path, log) -> dict:
    """Runs the cells of the study that are missing; gives each evaluation by its cell."""
    subprocess.run([program, "study", "run", str(root / STUDY), f"data.path={data}", "jobs=1",
                    "cpus=1"], cwd=folder, check=True, stdout=log, stderr=log)
    found = {}
    for run, config, played in runs_of(program, [Path(STUDY).stem], folder):
        rows = (run / "metrics.csv").read_text(encoding="ascii").splitlines()
        found[config["algorithm"], played["task"]["name"], config["seed"]] = {
            "returns": [episode["raw_return"] for episode in played["episodes"]],
            "starts": [episode["environment_seed"] for episode in played["episodes"]],
            "reference": [played["task"]["reference"][end] for end in ("low", "high")],
            "updates": int(rows[-1].split(",")[0])}
    return found


def d3rlpy(python: str, here: Path, folder: Path, path: Path, cell: tuple, ours: dict, log) -> dict:
    """The reply of d3rlpy's agent for a cell, trained once and kept."""
    algorithm, _, seed = cell
    starts = folder / "starts.json"
    starts.write_text(json.dumps(ours["starts"]), encoding="ascii")
    command = [python, str(here / "d3rlpy_agent.py"), algorithm, str(path), "threads=1",
               f"updates={ours['updates']}", f"seed={seed}", f"seeds={starts}"]
    return kept_reply(folder, "_".join(map(str, cell)), command, log, ours["starts"])


def measure(program: str, python: str, here: Path, root: Path, log, data: Path) -> dict:
    """Mean returns of every run in both programs; a section of the results."""
    if not data.is_dir():
        sys.exit(f"{data} is not a directory: use data=FOLDER with hopper_medium_replay-v2.hdf5")
    folder = root / "runs/parity"
    folder.mkdir(parents=True, exist_ok=True)
    ours = overtone(program, root, folder, data, log)
    rows = []
    for cell in sorted(ours):
        algorithm, robot, seed = cell
        print(f"parity: d3rlpy's {algorithm} on {robot}, seed {seed}", file=sys.stderr)
        theirs = d3rlpy(python, here, folder, data / f"{robot}_medium_replay-v2.hdf5", cell,
                        ours[cell], log)
        rows.append({"algorithm": algorithm, "robot": robot, "seed": seed,
                     "updates": ours[cell]["updates"], "reference": ours[cell]["reference"],
                     "overtone": statistics.mean(ours[cell]["returns"]),
                     "d3rlpy": statistics.mean(theirs["copies"][-1]["returns"]),
                     "episodes": len(ours[cell]["returns"])})
    return {"rows": rows}


def mean_of(values: list[float]) -> tuple[float, float]:
    """Mean and its standard error."""
    return statistics.mean(values), statistics.stdev(values) / math.sqrt(len(values))


def line(name: str, algorithm: str, sides: list[tuple[float, float]], digits: int) -> list[str]:
    """A row of the table: both means, their difference, its standard error, their ratio."""
    (mine, my_error), (other, other_error) = sides
    difference, error = mine - other, math.hypot(my_error, other_error)
    return [NAMES[algorithm], name, f"{mine:.{digits}f} ± {my_error:.{digits}f}",
            f"{other:.{digits}f} ± {other_error:.{digits}f}", f"{difference:+.{digits}f}",
            f"{error:.{digits}f}", f"{difference / error:+.1f}"]


def markdown(section: dict) -> str:
    rows, lines = section["rows"], []
    for algorithm in NAMES:
        normalized = {"overtone": [], "d3rlpy": []}
        for robot in ("hopper", "walker2d", "halfcheetah"):
            own = [row for row in rows if (row["algorithm"], row["robot"]) == (algorithm, robot)]
            low, high = own[0]["reference"]
            sides = [mean_of([row[side] for row in own]) for side in normalized]
            lines.append(line(f"{robot} medium-replay", algorithm, sides, 0))
            for side, (mean, error) in zip(normalized, sides):
                normalized[side].append(
                    (100 * (mean - low) / (high - low), 100 * error / (high - low)))
        # Only seeds are random, not files: the squared errors of the means of the files add up.
        together = [(statistics.mean(mean for mean, _ in files),
                     math.hypot(*(error for _, error in files)) / len(files))
                    for files in normalized.values()]
        lines.append(line("all three, normalized", algorithm, together, 1))
    first = rows[0]
    seeds = len({row["seed"] for row in rows})
    return (table(["", "file", "Overtone", "d3rlpy", "difference", "its standard error", "ratio"],
                  lines)
            + f"\n{first['updates']} updates, {seeds} seeds, {first['episodes']} episodes each from "
            "the same starts.\n")
