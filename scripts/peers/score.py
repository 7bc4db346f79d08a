"""Time to a score: seconds from cold files until an agent reaches the mean return of the dataset,
and 95 % of the best agent. Each algorithm trains in turns in Overtone and in d3rlpy."""

import csv
import io
import json
import math
import os
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from dataclasses import dataclass
from pathlib import Path

from job import forget_files
from process import Watch, processor_seconds, table
from recorded import returns_of

# One training seed; all agents play the same episodes.
SEED, EPISODES = 1, 20
# Times of evaluations, in parts of the run. The comparison is of ratios of times, so from the
# fourth on each evaluation is a third or a half later than the previous one.
PARTS = (1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 64, 96)


@dataclass
class Method:
    """One algorithm, in both programs."""

    name: str
    # Words of `overtone train`; d3rlpy_agent.py has the settings of d3rlpy.
    words: list
    # Parts of a run (the first evaluation comes after one part), and updates of a short first run
    # that measures the updates per second.
    parts: int
    pilot: int
    in_d3rlpy: bool = True

    def evaluations(self, updates: int) -> list[int]:
        """Numbers of updates after which copies are evaluated, in a run of `updates`."""
        part = updates // self.parts
        return [part * parts for parts in PARTS if parts <= self.parts]


METHODS = {"dt": Method("Decision Transformer", ["algorithm=decision_transformer"], 24, 48),
           "td3_bc": Method("TD3+BC", ["algorithm=td3_bc"], 96, 480),
           "iql": Method("IQL", ["algorithm=iql"], 96, 480),
           "rvs": Method("RvS", ["algorithm=rvs"], 96, 480, in_d3rlpy=False)}
SIDES = {"overtone": "Overtone", "d3rlpy": "d3rlpy"}


class Clock(threading.Thread):
    """Processor seconds of a process, read four times a second."""

    def __init__(self, pid: int):
        super().__init__(daemon=True)
        self.pid, self.seen = pid, [(time.time(), 0.0)]
        self.start()

    def run(self):
        try:
            while True:
                self.seen.append((time.time(), processor_seconds(self.pid)))
                time.sleep(0.25)
        except OSError:
            pass  # the process has ended

    def used(self, at: float) -> float:
        """Processor seconds until a time, interpolated between two readings."""
        after = next((i for i, (when, _) in enumerate(self.seen) if when >= at), None)
        if after is None or after == 0:
            return self.seen[-1 if after is None else 0][1]
        (t0, used0), (t1, used1) = self.seen[after - 1:after + 1]
        return used0 + (used1 - used0) * (at - t0) / max(t1 - t0, 1e-9)


class Overtone:
    """Trains with the quick profile and evaluates with the program `overtone`."""

    def __init__(self, program: str, path: Path, threads: int, log):
        self.program, self.log = program, log
        robot, _, dataset = path.stem.removesuffix("-v2").partition("_")
        self.task = [f"env={robot}", f"dataset={dataset.replace('_', '-')}",
                     f"data.path={path.parent}"]
        self.environment = os.environ | {"RAYON_NUM_THREADS": str(threads)}

    def train(self, key: str, at: list[int], folder: Path, _played: dict):
        """The clock of a training, and updates and time of each copy of the agent. All numbers of
        updates are multiples of the first."""
        updates, every = at[-1], at[0]
        command = [self.program, "train", *self.task, *METHODS[key].words, "profile=quick",
                   "device=cpu", f"seed={SEED}", f"runs={folder}", f"train.updates={updates}",
                   f"train.checkpoint_every={every}",
                   f"train.keep_checkpoints={updates // every}", "evaluation.protocol=v4",
                   "evaluation.episodes=0"]
        process = subprocess.Popen(command, stdout=self.log, stderr=self.log,
                                   env=self.environment)
        clock = Clock(process.pid)
        if process.wait() != 0:
            raise RuntimeError(f"overtone train failed (exit {process.returncode}); "
                               f"see {self.log.name}")
        made = []
        for path in sorted(folder.glob("*/checkpoints/step-*")):
            after = int(path.name.removeprefix("step-"))
            if after in at:
                files = [file.stat().st_mtime for file in path.rglob("*") if file.is_file()]
                made.append({"updates": after, "time": max(files)})
        return clock, made

    def play(self, made: list, folder: Path) -> dict:
        """Adds the returns of each copy. Gives Gymnasium's seeds of the starts and the target
        return."""
        run = next(folder.iterdir())
        steps = [str(copy["updates"]) for copy in made]
        subprocess.run([self.program, "evaluate", "rollouts", f"run={run}",
                        f"checkpoint={','.join(steps)}", f"episodes={EPISODES}", "protocol=v4"],
                       check=True, stdout=self.log, stderr=self.log, env=self.environment)
        for copy, step in zip(made, steps):
            report = json.loads((run / f"evaluation-{step}.json").read_text(encoding="utf-8"))
            copy["returns"] = [row["raw_return"] for row in report["episodes"]]
        return {"starts": [row["environment_seed"] for row in report["episodes"]],
                "target": report["targets"][0]["target_return"] or 0.0}


class D3rlpy:
    """Trains and evaluates with d3rlpy_agent.py."""

    def __init__(self, python: str, script: Path, path: Path, threads: int, log):
        self.command, self.log = [python, str(script)], log
        self.path, self.threads = path, threads

    def train(self, key: str, at: list[int], folder: Path, played: dict):
        """The same. Copies play the starts and target of `played`, or do not play if it is empty."""
        words = [f"updates={at[-1]}", f"evaluate={','.join(map(str, at))}",
                 f"threads={self.threads}", f"seed={SEED}"]
        if played:
            file = folder / "starts.json"
            file.write_text(json.dumps(played["starts"]), encoding="ascii")
            words += [f"seeds={file}", f"target={played['target']}"]
        else:
            words.append("episodes=0")
        process = subprocess.Popen([*self.command, key, str(self.path), *words],
                                   stdout=subprocess.PIPE, stderr=self.log, text=True)
        clock = Clock(process.pid)
        reply = process.stdout.read()
        if process.wait() != 0:
            raise RuntimeError(f"d3rlpy's {key} failed (exit {process.returncode}); "
                               f"see {self.log.name}")
        return clock, json.loads(reply)["copies"]


def updates_in(budget: float, began: float, made: list, parts: int) -> int:
    """Number of updates that fit into `budget` seconds, by a short run with two copies: a multiple
    of `parts`."""
    first, second = made
    rate = (second["updates"] - first["updates"]) / (second["time"] - first["time"])
    start = first["time"] - began - first["updates"] / rate
    return max(1, math.floor(rate * (budget - start) / parts)) * parts


def curve(side, key: str, budget: float, played: dict) -> tuple[dict, dict]:
    """Returns of an algorithm over time in one program, and how its copies played. A short run
    measures the updates per second; the run itself starts from cold files."""
    method = METHODS[key]
    with tempfile.TemporaryDirectory() as folder:
        began = time.time()
        _, made = side.train(key, [method.pilot // 2, method.pilot], Path(folder), {})
        at = method.evaluations(updates_in(budget, began, made, method.parts))
    with tempfile.TemporaryDirectory() as folder:
        cold, watch, began = forget_files(), Watch([]), time.time()
        clock, made = side.train(key, at, Path(folder), played)
        others = watch.others()
        if isinstance(side, Overtone):
            played = side.play(made, Path(folder))
    points = [{"updates": copy["updates"], "seconds": copy["time"] - began,
               "processor_seconds": clock.used(copy["time"]),
               "mean": sum(copy["returns"]) / len(copy["returns"])} for copy in made]
    return {"points": points, "others": others, "cold": cold}, played


def measure(program: str, python: str, here: Path, log, data: Path, minutes: float,
            files: list[str], threads: int):
    """Each algorithm in both programs, for each file; yields the section after each file."""
    paths = {name: data / f"{name}-v2.hdf5" for name in files}
    for path in paths.values():
        if not path.is_file():
            sys.exit(f"{path} not found: use data=FOLDER and files=NAME,NAME")
    section = {"minutes": minutes, "threads": threads, "episodes": EPISODES, "files": {}}
    for name, path in paths.items():
        ours = Overtone(program, path, threads, log)
        theirs = D3rlpy(python, here / "d3rlpy_agent.py", path, threads, log)
        found = {"data": statistics.mean(returns_of(path)), "methods": {}}
        for key, method in METHODS.items():
            print(f"score: {method.name} on {name}", file=sys.stderr)
            mine, played = curve(ours, key, 60 * minutes, {})
            found["methods"][key] = {"overtone": mine, "target": played["target"]}
            if method.in_d3rlpy:
                # Both play the same starts with the same target return, if they have one.
                other, _ = curve(theirs, key, 60 * minutes, played)
                found["methods"][key]["d3rlpy"] = other
        section["files"][name] = found
        yield section


def joined(earlier: list[dict], section: dict) -> list[dict]:
    """Earlier sections without the files of the new section, and the new section."""
    kept = [old | {"files": {name: found for name, found in old["files"].items()
                             if name not in section["files"]}} for old in earlier]
    return [old for old in kept if old["files"]] + [section]


def reached(points: list, goal: float) -> dict | None:
    """The first point with this return or more."""
    return next((point for point in points if point["mean"] >= goal), None)


def brief(seconds: float) -> str:
    return f"{seconds:.1f}" if seconds < 10 else f"{seconds:.0f}"


def within_limit(found: dict, limit: float) -> dict:
    """Evaluations of each algorithm and program within the time limit, or the first one."""
    return {(key, side): [point for point in sides[side]["points"]
                          if point["seconds"] <= limit] or sides[side]["points"][:1]
            for key, sides in found["methods"].items() for side in SIDES if side in sides}


def goals_of(found: dict, within: dict) -> list[float]:
    """The mean return of the dataset, and 95 % of the best evaluation."""
    return [found["data"], 0.95 * max(point["mean"] for points in within.values() for point in points)]


def lead(within: dict, goal: float, limit: float) -> str:
    """Time of d3rlpy's first agent at a goal divided by the time of Overtone's, in words."""
    mine, theirs = (min((point["seconds"] for (_, of), points in within.items() if of == side
                         if (point := reached(points, goal))), default=None) for side in SIDES)
    match mine, theirs:
        case None, None:
            return "neither"
        case None, _:
            return f"less than {theirs / limit:.2g} (d3rlpy {brief(theirs)} s)"
        case _, None:
            return f"more than {limit / mine:.2g} ({brief(mine)} s)"
    return f"{theirs / mine:.2g} ({brief(mine)} and {brief(theirs)} s)"


def markdown(sections: list[dict]) -> str:
    """The factor of each file."""
    rows = []
    for section in sections:
        limit = 60 * section["minutes"]
        for name, found in section["files"].items():
            within = within_limit(found, limit)
            rows.append([name, *(lead(within, goal, limit) for goal in goals_of(found, within))])
    head = table(["Overtone's first agent is earlier by a factor of", "dataset mean",
                  "95 % of the best"], sorted(rows))
    cold = all(sides[side]["cold"] for section in sections for found in section["files"].values()
               for sides in found["methods"].values() for side in SIDES if side in sides)
    files = "Files were dropped from memory first." if cold else (
        "Files may have been in memory: the machine did not allow to drop them.")
    last = sections[-1]
    return (f"{head}\n{last['minutes']:g} minutes for each agent, {last['threads']} threads, "
            f"{last['episodes']} episodes per evaluation, one seed. {files} *More than*: d3rlpy was not "
            f"there in time; *less than*: Overtone was not.\n")


def csv_of(sections: list[dict]) -> str:
    """Each agent: when it reached both goals, and its best and last evaluation."""
    text = io.StringIO()
    out = csv.writer(text, lineterminator="\n")
    out.writerow(["file", "algorithm", "program", "updates", "dataset_mean", "seconds_to_mean",
                  "processor_seconds_to_mean", "best_95_percent", "seconds_to_95_percent",
                  "processor_seconds_to_95_percent", "best", "seconds_to_best", "last",
                  "other_programs_percent"])
    for section in sections:
        for name, found in section["files"].items():
            within = within_limit(found, 60 * section["minutes"])
            goals = goals_of(found, within)
            for (key, side), points in within.items():
                times = []
                for goal in goals:
                    point = reached(points, goal)
                    times.append([f"{goal:.0f}"] + (["", ""] if point is None else [
                        brief(point["seconds"]), brief(point["processor_seconds"])]))
                best = max(points, key=lambda point: point["mean"])
                out.writerow([name, METHODS[key].name, SIDES[side], points[-1]["updates"],
                              *times[0], *times[1], f"{best['mean']:.0f}", brief(best["seconds"]),
                              f"{points[-1]['mean']:.0f}",
                              f"{100 * found['methods'][key][side]['others']:.0f}"])
    return text.getvalue()
