"""Returns of Overtone's defaults on the default datasets of the robots, and of d3rlpy's agents after
some minutes of one core, from the same starts."""

import hashlib
import json
import math
import os
import resource
import statistics
import subprocess
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from process import kept_name, kept_reply, runs_of, table
from recorded import returns_of

STUDY, SEEDS = "studies/robots.toml", [1, 2, 3, 4]
FILES = Path("datasets/starter/mujoco")
# The acting mode of a Decision Transformer that no episode chose.
WITHOUT_SELECTION = "top_percent=10"
ROBOTS = ["hopper", "walker2d", "halfcheetah"]
NAMES = {"decision_transformer": "Decision Transformer", "td3_bc": "TD3+BC", "iql": "IQL"}
# Settings that differ from the default, so that both programs learn the same.
AS_THEIRS = {"iql": ["iql.beta=3"]}
# Names in d3rlpy_agent.py, and updates of a short first run that measures the updates per second.
THEIRS = {"decision_transformer": ("dt", 48), "td3_bc": ("td3_bc", 480), "iql": ("iql", 480)}


def overtone(program: str, root: Path, folder: Path, jobs: int, log) -> dict:
    """Runs the cells of the study that are missing; gives the evaluation of each cell."""
    alone = os.environ | {"RAYON_NUM_THREADS": "1"}
    for algorithm, name in NAMES.items():
        print(f"returns: {name}", file=sys.stderr)
        subprocess.run(
            [program, "study", "run", str(root / STUDY), f"algorithm={algorithm}",
             *AS_THEIRS.get(algorithm, []), "dataset=switching", f"runs={folder}",
             f"name={algorithm}", f"jobs={jobs}", "cpus=1"],
            check=True, stdout=log, stderr=log, env=alone)
    found = {}
    runs = [run for algorithm in NAMES
            for run in runs_of(program, [algorithm, f"runs={folder}"], folder)]
    for path, config, played in runs:
        rows = (path / "metrics.csv").read_text(encoding="ascii").splitlines()
        found[config["algorithm"], played["task"]["name"], config["seed"]] = {
            "mean": played["targets"][0]["raw_return"]["mean"],
            "starts": [episode["environment_seed"] for episode in played["episodes"]],
            "target": played["targets"][0]["target_return"],
            "reference": [played["task"]["reference"][end] for end in ("low", "high")],
            "updates": int(rows[-1].split(",")[0])}
        if config["algorithm"] == "decision_transformer":
            episodes = len(played["episodes"])
            subprocess.run([program, "evaluate", "rollouts", f"run={path}", WITHOUT_SELECTION,
                            f"episodes={episodes}"], check=True, stdout=log, stderr=log, env=alone)
            # evaluation.json if this mode was chosen, otherwise a new file.
            newest = max(path.glob("evaluation*.json"), key=lambda file: file.stat().st_mtime)
            unselected = json.loads(newest.read_text(encoding="utf-8"))
            found[config["algorithm"], played["task"]["name"], config["seed"]]["top_10"] = (
                unselected["targets"][0]["raw_return"]["mean"])
    return found


def processor_seconds_of(program: str, algorithm: str, folder: Path, log) -> float:
    """Processor seconds of one whole run of this program: reading, training, choosing the acting
    mode, 20 episodes."""
    of = hashlib.sha256(Path(program).read_bytes()).hexdigest()
    kept = folder / kept_name(f"{algorithm}-cost", [of, AS_THEIRS.get(algorithm, [])])
    if not kept.exists():
        print(f"returns: cost of one run of {NAMES[algorithm]}", file=sys.stderr)
        ended = resource.getrusage(resource.RUSAGE_CHILDREN)
        with tempfile.TemporaryDirectory() as runs:
            subprocess.run(
                [program, "train", f"env={ROBOTS[0]}", f"algorithm={algorithm}", f"runs={runs}",
                 *AS_THEIRS.get(algorithm, []), "evaluation.episodes=20", "evaluation.every=0"],
                check=True, stdout=log, stderr=log, env=os.environ | {"RAYON_NUM_THREADS": "1"})
        now = resource.getrusage(resource.RUSAGE_CHILDREN)
        used = now.ru_utime + now.ru_stime - ended.ru_utime - ended.ru_stime
        kept.write_text(json.dumps(used), encoding="ascii")
    return json.loads(kept.read_text(encoding="ascii"))


class D3rlpy:
    """Trains and evaluates d3rlpy's agents on one thread each; reuses runs that ended."""

    def __init__(self, python: str, here: Path, root: Path, folder: Path, log):
        self.command = [python, str(here / "d3rlpy_agent.py")]
        self.files, self.folder, self.log = root / FILES, folder, log

    def kept(self, name: str, words: list[str], of: object = None) -> dict:
        """The reply to these words, from a file with this name if it exists."""
        command = [*self.command, *words, "threads=1"]
        return kept_reply(self.folder, name, command, self.log, of)

    def file(self, robot: str) -> str:
        return str(self.files / f"{robot}_switching.hdf5")

    def updates(self, algorithm: str, minutes: float) -> int:
        """Number of updates in these processor minutes, by a short run."""
        name, pilot = THEIRS[algorithm]
        words = [name, self.file(ROBOTS[0]), f"updates={pilot}", "episodes=0"]
        measured = self.kept(f"{name}-pace", words)
        return math.floor(60 * minutes * measured["updates"] / measured["processor_seconds"])

    def run(self, cell: tuple, minutes: float, starts: list[int], target: float) -> dict:
        """The reply of an agent with this target return, if it uses one."""
        algorithm, robot, seed = cell
        listed = self.folder / f"starts-{robot}-{seed}-{algorithm}.json"
        listed.write_text(json.dumps(starts), encoding="ascii")
        updates = self.updates(algorithm, minutes)
        print(f"returns: d3rlpy's {NAMES[algorithm]} on {robot}, seed {seed}", file=sys.stderr)
        name = THEIRS[algorithm][0]
        return self.kept(f"{name}-{robot}-{seed}-{updates}-{target:g}", [
            name, self.file(robot), f"updates={updates}", f"seed={seed}", f"seeds={listed}",
            f"target={target}"], starts)


def measure(program: str, python: str, here: Path, root: Path, log, runs: Path, minutes: float,
            jobs: int) -> dict:
    """Mean return of every run in both programs; a section of the results."""
    folder = runs / "d3rlpy"
    folder.mkdir(parents=True, exist_ok=True)
    costs = {algorithm: processor_seconds_of(program, algorithm, folder, log)
             for algorithm in NAMES}
    ours = overtone(program, root, runs, jobs, log)
    theirs = D3rlpy(python, here, root, folder, log)
    for algorithm in NAMES:
        theirs.updates(algorithm, minutes)
    cells = [(algorithm, robot, seed) for seed in SEEDS for robot in ROBOTS for algorithm in NAMES]

    def run(cell: tuple) -> dict:
        # Only a Decision Transformer has a target; all play the same starts.
        decision_transformer = ours["decision_transformer", *cell[1:]]
        return theirs.run(cell, minutes, decision_transformer["starts"],
                          decision_transformer["target"])

    with ThreadPoolExecutor(max_workers=jobs) as pool:
        replies = dict(zip(cells, pool.map(run, cells)))
    rows = []
    for (algorithm, robot, seed), reply in replies.items():
        own = ours[algorithm, robot, seed]
        rows.append({"algorithm": algorithm, "robot": robot, "seed": seed,
                     "reference": own["reference"],
                     "overtone": {key: own[key] for key in ("mean", "updates", "top_10")
                                  if key in own} | {"seconds": costs[algorithm]},
                     "d3rlpy": {"mean": statistics.mean(reply["copies"][-1]["returns"]),
                                "updates": reply["updates"],
                                "seconds": reply["processor_seconds"]}})
    recorded = {robot: returns_of(Path(theirs.file(robot))) for robot in ROBOTS}
    recorded = {robot: [statistics.mean(returns), max(returns)]
                for robot, returns in recorded.items()}
    episodes = len(next(iter(ours.values()))["starts"])
    return {"minutes": minutes, "recorded": recorded, "episodes": episodes, "rows": rows}


def spread(values: list[float], digits: int) -> str:
    """Mean, and the lowest and highest seed."""
    ends = [f"{end:.{digits}f}" for end in (min(values), max(values))]
    return f"{statistics.mean(values):.{digits}f} [{ends[0]}, {ends[1]}]"


def normalized(row: dict, mean: float) -> float:
    low, high = row["reference"]
    return 100 * (mean - low) / (high - low)


def cells_of(means: list[float], rows: list[dict]) -> list[str]:
    """The returns of the robots, and the normalized score of all, from a mean for each row."""
    returns = [[mean for mean, row in zip(means, rows) if row["robot"] == robot]
               for robot in ROBOTS]
    averages = [statistics.mean(normalized(row, mean) for mean, row in zip(means, rows)
                                if row["seed"] == seed)
                for seed in sorted({row["seed"] for row in rows})]
    return [*(spread(each, 0) for each in returns), spread(averages, 1)]


def markdown(section: dict) -> str:
    rows = section["rows"]
    ends = [[f"{end:.0f}" for end in section["recorded"][robot]] for robot in ROBOTS]
    lines = [["dataset", "mean / best", "", "", *(" / ".join(pair) for pair in ends), ""]]
    for side, who in (("overtone", "Overtone"), ("d3rlpy", "d3rlpy")):
        for algorithm, name in NAMES.items():
            own = [row for row in rows if row["algorithm"] == algorithm]
            updates = statistics.median(row[side]["updates"] for row in own)
            seconds = statistics.median(row[side]["seconds"] for row in own)
            means = [row[side]["mean"] for row in own]
            lines.append([who, name, f"{updates:.0f}", f"{seconds:.0f}", *cells_of(means, own)])
            if all("top_10" in row[side] for row in own):
                means = [row[side]["top_10"] for row in own]
                lines.append([who, "the same, top 10 %", "", "", *cells_of(means, own)])
    first = [row for row in rows if row["algorithm"] == "iql"]
    best = [max(row["d3rlpy"]["mean"] for row in rows
                if (row["robot"], row["seed"]) == (one["robot"], one["seed"])) for one in first]
    lines.append(["d3rlpy", "best of the three for each seed", "", "", *cells_of(best, first)])
    text = (table(["", "", "updates", "core seconds", *(f"{robot} switching" for robot in ROBOTS),
                   "normalized, all three"], lines)
            + f"\n{section['minutes']:g} minutes of one core to train each d3rlpy agent; Overtone "
            f"trains by its defaults. {len(SEEDS)} seeds, {section['episodes']} episodes each from "
            "the same starts.\n")
    if "decision_transformer" in section:
        # Measured again, after the other rows.
        later = section["decision_transformer"]
        machine = later["machine"]
        text += (f"\n*Overtone's Decision Transformer: {later['date']}, `{later['command']}`; "
                 f"{machine['processor']} (family/model {machine['family_model']}), "
                 f"{machine['cores']} cores, {machine['memory_gib']} GiB; Overtone "
                 f"{later['versions']['overtone']}. All other rows are of an earlier run:*\n")
    return text
