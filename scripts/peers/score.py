"""Time to score: seconds from cold files until an agent plays as well as the data on average, and
as 95 % of the best that any method reaches in the time that all of them get. By turns, each method
here and in d3rlpy."""

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

# One seed of training; all agents play the same episodes.
SEED, EPISODES = 1, 20
# When agents are looked at, in parts of the run: from the fourth on each look comes a third or a half
# later than the one before, for what is compared are ratios of times.
PARTS = (1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 64, 96)


@dataclass
class Method:
    """One algorithm, here and there."""

    name: str
    # Words of `overtone train`; what d3rlpy is told is d3rlpy_agent.py's.
    words: list
    # How many parts a run has, which is when the first look comes, and the updates of a first short
    # run, which tells the pace.
    parts: int
    pilot: int
    # Whether d3rlpy has it too.
    there: bool = True

    def looks(self, updates: int) -> list[int]:
        """After how many updates copies are looked at, in a run of so many."""
        part = updates // self.parts
        return [part * parts for parts in PARTS if parts <= self.parts]


METHODS = {"dt": Method("Decision Transformer", ["algorithm=decision_transformer"], 24, 48),
           "td3_bc": Method("TD3+BC", ["algorithm=td3_bc"], 96, 480),
           "iql": Method("IQL", ["algorithm=iql"], 96, 480),
           "rvs": Method("RvS", ["algorithm=rvs"], 96, 480, there=False)}
SIDES = {"overtone": "Overtone", "d3rlpy": "d3rlpy"}


class Clock(threading.Thread):
    """What a process has used of the processors, four times a second."""

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
            pass  # it has ended

    def used(self, at: float) -> float:
        """Processor seconds until then, on the line between two looks."""
        after = next((i for i, (when, _) in enumerate(self.seen) if when >= at), None)
        if after is None or after == 0:
            return self.seen[-1 if after is None else 0][1]
        (t0, used0), (t1, used1) = self.seen[after - 1:after + 1]
        return used0 + (used1 - used0) * (at - t0) / max(t1 - t0, 1e-9)


class Overtone:
    """Trains by the quick profile and plays with Overtone's own program."""

    def __init__(self, program: str, path: Path, threads: int, log):
        self.program, self.log = program, log
        robot, _, dataset = path.stem.removesuffix("-v2").partition("_")
        self.task = [f"env={robot}", f"dataset={dataset.replace('_', '-')}",
                     f"data.path={path.parent}"]
        self.environment = os.environ | {"RAYON_NUM_THREADS": str(threads)}

    def train(self, key: str, looks: list[int], folder: Path, _played: dict):
        """The clock of a training, and of each copy of the agent when it was made: after so many
        updates, which are multiples of the first."""
        updates, every = looks[-1], looks[0]
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
            if after in looks:
                files = [file.stat().st_mtime for file in path.rglob("*") if file.is_file()]
                made.append({"updates": after, "time": max(files)})
        return clock, made

    def play(self, made: list, folder: Path) -> dict:
        """Adds what each copy returned. How it was played: Gymnasium's seeds of the starts, and
        the return asked for."""
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
    """Trains and plays with d3rlpy_agent.py."""

    def __init__(self, python: str, script: Path, path: Path, threads: int, log):
        self.command, self.log = [python, str(script)], log
        self.path, self.threads = path, threads

    def train(self, key: str, looks: list[int], folder: Path, played: dict):
        """The same; the copies have played as `played` says, or not at all."""
        words = [f"updates={looks[-1]}", f"looks={','.join(map(str, looks))}",
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
    """How many updates fit into so many seconds, by a short run with two copies; as many in each
    part."""
    first, second = made
    pace = (second["updates"] - first["updates"]) / (second["time"] - first["time"])
    start = first["time"] - began - first["updates"] / pace
    return max(1, math.floor(pace * (budget - start) / parts)) * parts


def curve(side, key: str, budget: float, played: dict) -> tuple[dict, dict]:
    """What a method returned and when on one side, and how it was played: a short run for its
    pace, then the run, from cold files."""
    method = METHODS[key]
    with tempfile.TemporaryDirectory() as folder:
        began = time.time()
        _, made = side.train(key, [method.pilot // 2, method.pilot], Path(folder), {})
        looks = method.looks(updates_in(budget, began, made, method.parts))
    with tempfile.TemporaryDirectory() as folder:
        cold, watch, began = forget_files(), Watch([]), time.time()
        clock, made = side.train(key, looks, Path(folder), played)
        others = watch.others()
        if isinstance(side, Overtone):
            played = side.play(made, Path(folder))
    points = [{"updates": copy["updates"], "seconds": copy["time"] - began,
               "processor_seconds": clock.used(copy["time"]),
               "mean": sum(copy["returns"]) / len(copy["returns"])} for copy in made]
    return {"points": points, "others": others, "cold": cold}, played


def measure(program: str, python: str, here: Path, log, data: Path, minutes: float,
            files: list[str], threads: int):
    """Every method on both sides, for every file; yields the section of the results after each."""
    paths = {name: data / f"{name}-v2.hdf5" for name in files}
    for path in paths.values():
        if not path.is_file():
            sys.exit(f"there is no {path}: say data=FOLDER, where it is, and files=NAME,NAME")
    section = {"minutes": minutes, "threads": threads, "episodes": EPISODES, "files": {}}
    for name, path in paths.items():
        ours = Overtone(program, path, threads, log)
        theirs = D3rlpy(python, here / "d3rlpy_agent.py", path, threads, log)
        found = {"data": statistics.mean(returns_of(path)), "methods": {}}
        for key, method in METHODS.items():
            print(f"score: {method.name} on {name}", file=sys.stderr)
            mine, played = curve(ours, key, 60 * minutes, {})
            found["methods"][key] = {"overtone": mine, "target": played["target"]}
            if method.there:
                # Both play the same starts, and are asked for the same return, where for any.
                other, _ = curve(theirs, key, 60 * minutes, played)
                found["methods"][key]["d3rlpy"] = other
        section["files"][name] = found
        yield section


def joined(earlier: list[dict], section: dict) -> list[dict]:
    """Sections measured earlier, without the files that were measured again, and this one."""
    kept = [old | {"files": {name: found for name, found in old["files"].items()
                             if name not in section["files"]}} for old in earlier]
    return [old for old in kept if old["files"]] + [section]


def reached(points: list, goal: float) -> dict | None:
    """The first point that returns as much."""
    return next((point for point in points if point["mean"] >= goal), None)


def brief(seconds: float) -> str:
    return f"{seconds:.1f}" if seconds < 10 else f"{seconds:.0f}"


def within_limit(found: dict, limit: float) -> dict:
    """The looks that count, of each method and side: within the time that all get, or the first."""
    return {(key, side): [point for point in sides[side]["points"]
                          if point["seconds"] <= limit] or sides[side]["points"][:1]
            for key, sides in found["methods"].items() for side in SIDES if side in sides}


def goals_of(found: dict, within: dict) -> list[float]:
    """The data's mean, and 95 % of the best of all looks."""
    return [found["data"], 0.95 * max(point["mean"] for points in within.values() for point in points)]


def lead(within: dict, goal: float, limit: float) -> str:
    """How many times sooner the first of Overtone's agents is at a goal than the first of
    d3rlpy's, in words."""
    mine, theirs = (min((point["seconds"] for (_, of), points in within.items() if of == side
                         if (point := reached(points, goal))), default=None) for side in SIDES)
    match mine, theirs:
        case None, None:
            return "neither"
        case None, _:
            return f"less than {theirs / limit:.2g} (not within {limit:.0f} s, {brief(theirs)} s)"
        case _, None:
            return f"more than {limit / mine:.2g} ({brief(mine)} s, not within {limit:.0f})"
    return f"{theirs / mine:.2g} ({brief(mine)} and {brief(theirs)} s)"


def leads(sections: list[dict]) -> str:
    """That of every file."""
    rows = []
    for section in sections:
        limit = 60 * section["minutes"]
        for name, found in section["files"].items():
            within = within_limit(found, limit)
            rows.append([name, *(lead(within, goal, limit) for goal in goals_of(found, within))])
    return ("How many times sooner the first of Overtone's agents is there than the first of "
            "d3rlpy's:\n\n" + table(["", "the data's mean", "95 % of the best"], sorted(rows)))


def markdown(section: dict) -> str:
    text, limit = "", 60 * section["minutes"]
    for name, found in section["files"].items():
        within = within_limit(found, limit)
        goals = goals_of(found, within)
        rows = []
        for (key, side), points in within.items():
            times = []
            for goal in goals:
                point = reached(points, goal)
                times.append("not reached" if point is None else
                             f"{brief(point['seconds'])} ({brief(point['processor_seconds'])})")
            top = max(points, key=lambda point: point["mean"])
            rows.append([METHODS[key].name, SIDES[side], str(points[-1]["updates"]), *times,
                         f"{top['mean']:.0f} at {brief(top['seconds'])}", f"{points[-1]['mean']:.0f}"])
        others = max(sides[side]["others"] for sides in found["methods"].values()
                     for side in SIDES if side in sides)
        text += (f"**{name}**: the data's mean is {goals[0]:.0f}, 95 % of the best {goals[1]:.0f}. "
                 f"Other programs took up to {100 * others:.0f} % of the machine.\n\n"
                 + table(["", "", "updates", "seconds to the data's mean (of processors)",
                          "seconds to 95 % of the best", "best, at second", "at the end"], rows)
                 + "\n")
    cold = all(sides[side]["cold"] for found in section["files"].values()
               for sides in found["methods"].values() for side in SIDES if side in sides)
    files = "Files were dropped from memory first." if cold else (
        "Files may have been in memory: dropping them was not allowed.")
    return (f"{section['minutes']:g} minutes for each, {section['threads']} threads, "
            f"{section['episodes']} episodes a look, one seed. {files} Looks that came later are in "
            f"score.json and in no row.\n\n{text}")
