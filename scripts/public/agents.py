"""Trains agents of Overtone and of d3rlpy on a public set for some minutes of one core, and plays them:

    just bench-public SET
    just bench-public cube-single-play minutes=20 seeds=1,2 agents=iql,rebrac,d3rlpy:iql runs=FOLDER

A short run of each agent tells how many updates it makes in `minutes=3` of one core. Overtone's agents have
their defaults otherwise, and d3rlpy's the defaults of its classes (`scripts/peers/d3rlpy_agent.py`). `seeds=1,2`
agents each play `episodes=50` with their last weights; no episode chooses anything. A set that is missing is
recorded. Runs that ended are kept in `runs=runs/public`, so a call that was interrupted goes on. The numbers go
to docs/results/raw/public-agents.json, and the table to docs/results/public.md.
"""

from __future__ import annotations

import hashlib
import json
import math
import os
import resource
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

HERE = Path(__file__).resolve().parent
ROOT = HERE.parent.parent
sys.path.insert(0, str(HERE.parent / "peers"))

from bench import circumstances, replaced  # noqa: E402
from process import kept_name, kept_reply, table  # noqa: E402

PAGE, NUMBERS = ROOT / "docs/results/public.md", ROOT / "docs/results/raw/public-agents.json"
OPTIONS = {"minutes": "3", "seeds": "1,2", "episodes": "50", "agents": "", "runs": str(ROOT / "runs/public"),
           "data": str(ROOT / "datasets/published/public"), "program": str(ROOT / "target/release/overtone")}
PACKAGES = ["ogbench", "mujoco", "gymnasium", "d3rlpy", "torch", "numpy"]

#: The single task of each set.
TASKS = {
    "cube-single-play": "ogbench:cube-single-singletask-v0",
    "cube-single-play-small": "ogbench:cube-single-singletask-v0",
    "cube-single-noisy": "ogbench:cube-single-singletask-v0",
    "scene-play": "ogbench:scene-singletask-v0",
    "puzzle-3x3-play": "ogbench:puzzle-3x3-singletask-v0",
    "pointmaze-medium-navigate": "ogbench:pointmaze-medium-singletask-v0",
}

#: Overtone's agents: settings beside the defaults that only say which agent it is, without episodes of choice;
#: and updates of the short run.
OURS = {
    "behavior_cloning": ([], 300),
    "decision_transformer": (["evaluation.top_percent=10"], 150),
    "rvs": (["evaluation.top_percent=10"], 1000),
    "td3_bc": ([], 1000),
    "iql": ([], 3000),
    "rebrac": ([], 1000),
}
#: d3rlpy's agents, and updates of their short runs.
THEIRS = {"bc": 500, "td3_bc": 300, "iql": 300, "rebrac": 300}

TITLES = {"behavior_cloning": "behaviour cloning", "decision_transformer": "Decision Transformer",
          "rvs": "RvS-R", "td3_bc": "TD3+BC", "iql": "IQL", "rebrac": "ReBRAC", "bc": "behaviour cloning"}


#: Of all processes: one thread, and the simulators' packages.
ENVIRONMENT = {"RAYON_NUM_THREADS": "1", "OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1",
               "VIRTUAL_ENV": sys.prefix, "MUJOCO_GL": "egl"}


class Bench:
    """The runs of one set, kept in a folder."""

    def __init__(self, name: str, options: dict[str, str]):
        self.name, self.task = name, TASKS[name]
        self.path = Path(options["data"]) / f"{name}.npz"
        self.folder = Path(options["runs"]) / name
        self.folder.mkdir(parents=True, exist_ok=True)
        self.program, self.episodes = options["program"], options["episodes"]
        self.log = open(self.folder / "log.txt", "a", encoding="utf-8")
        if not self.path.exists():
            subprocess.run([sys.executable, str(HERE / "record.py"), name, options["data"]], check=True)
        self.sha256 = hashlib.sha256(self.path.read_bytes()).hexdigest()

    def words(self, agent: str, updates: int, seed: int, runs: str) -> list[str]:
        """The command that trains an agent of Overtone."""
        return [self.program, "train", f"task=gymnasium/{self.task}", f"dataset={self.path}",
                "data.layout=ogbench", f"algorithm={agent}", f"train.updates={updates}", f"seed={seed}",
                *OURS[agent][0], "evaluation.every=0", "device=cpu", f"runs={runs}"]

    def seconds(self, agent: str, updates: int) -> float:
        """Processor seconds of a run that does not play."""
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        with tempfile.TemporaryDirectory() as runs:
            subprocess.run([*self.words(agent, updates, 1, runs), "evaluation.episodes=0"], check=True,
                           stdout=self.log, stderr=self.log)
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime

    def pace(self, agent: str) -> float:
        """Processor seconds of an update."""
        who, _, name = agent.rpartition(":")
        if who:
            reply = self.theirs(name, THEIRS[name], 1, "0")
            return reply["processor_seconds"] / reply["updates"]
        kept = self.folder / kept_name(f"{agent}-pace", [OURS[agent], self.sha256])
        if not kept.exists():
            print(f"{self.name}: pace of {agent}", file=sys.stderr)
            n = OURS[agent][1]
            pace = (self.seconds(agent, 3 * n) - self.seconds(agent, n)) / (2 * n)
            kept.write_text(json.dumps(pace), encoding="ascii")
        return json.loads(kept.read_text(encoding="ascii"))

    def theirs(self, name: str, updates: int, seed: int, episodes: str) -> dict:
        command = [sys.executable, str(HERE.parent / "peers/d3rlpy_agent.py"), name, str(self.path),
                   f"task={self.task}", f"updates={updates}", f"seed={seed}", f"episodes={episodes}", "threads=1"]
        return kept_reply(self.folder, f"d3rlpy-{name}-{updates}-{seed}", command, self.log, self.sha256)

    def run(self, agent: str, updates: int, seed: int) -> dict:
        """Success and mean return of the last weights."""
        print(f"{self.name}: {agent}, {updates} updates, seed {seed}", file=sys.stderr)
        who, _, name = agent.rpartition(":")
        if who:
            played = self.theirs(name, updates, seed, self.episodes)["copies"][-1]
            returns, solved = played["returns"], played["solved"]
        else:
            kept = self.folder / kept_name(f"{agent}-{updates}-{seed}", [OURS[agent], self.sha256, self.episodes])
            if not kept.exists():
                with tempfile.TemporaryDirectory() as runs:
                    subprocess.run([*self.words(agent, updates, seed, runs),
                                    f"evaluation.episodes={self.episodes}"], check=True,
                                   stdout=self.log, stderr=self.log)
                    played = next(Path(runs).glob("*/evaluation.json"))
                    kept.write_text(played.read_text(encoding="utf-8"), encoding="utf-8")
            episodes = json.loads(kept.read_text(encoding="utf-8"))["episodes"]
            returns = [episode["raw_return"] for episode in episodes]
            solved = sum(episode["success"] for episode in episodes)
        return {"seed": seed, "solved": solved, "episodes": len(returns), "mean": statistics.mean(returns)}


def measure(name: str, options: dict[str, str]) -> None:
    """Trains and plays what is missing; writes the page after each agent."""
    bench = Bench(name, options)
    minutes, seeds = float(options["minutes"]), [int(seed) for seed in options["seeds"].split(",")]
    agents = options["agents"].split(",") if options["agents"] else [*OURS, *(f"d3rlpy:{name}" for name in THEIRS)]
    words = [f"{key}={options[key]}" for key in ("minutes", "seeds") if options[key] != OPTIONS[key]]
    about = circumstances(" ".join(["just bench-public", name, *words]), PACKAGES)
    for agent in agents:
        pace = bench.pace(agent)
        updates = max(100 * math.floor(60 * minutes / pace / 100), 100)
        runs = [bench.run(agent, updates, seed) for seed in seeds]
        row = {"set": name, "sha256": bench.sha256, "agent": agent, "minutes": minutes, "updates": updates,
               "runs": runs, **about}
        rows = json.loads(NUMBERS.read_text(encoding="utf-8")) if NUMBERS.exists() else []
        place = (name, agent, minutes)
        rows = [old for old in rows if (old["set"], old["agent"], old["minutes"]) != place] + [row]
        NUMBERS.write_text(json.dumps(rows, indent=1) + "\n", encoding="utf-8")
        PAGE.write_text(replaced(PAGE.read_text(encoding="utf-8"), "public-agents", markdown(rows),
                                 "just bench-public"), encoding="utf-8")


def spread(values: list[float], digits: int) -> str:
    """Mean, and the lowest and highest seed."""
    low, high = (f"{end:.{digits}f}" for end in (min(values), max(values)))
    return f"{statistics.mean(values):.{digits}f} [{low}, {high}]"


def markdown(rows: list[dict]) -> str:
    """A table for each set."""
    text = []
    for name in [name for name in TASKS if any(row["set"] == name for row in rows)]:
        lines = []
        order = [*OURS, *(f"d3rlpy:{theirs}" for theirs in THEIRS)]
        of_set = [row for row in rows if row["set"] == name]
        for row in sorted(of_set, key=lambda row: (row["minutes"], order.index(row["agent"]))):
            who, _, agent = row["agent"].rpartition(":")
            success = [100 * run["solved"] / run["episodes"] for run in row["runs"]]
            lines.append([who or "Overtone", TITLES[agent], f"{row['minutes']:g}", f"{row['updates']:,}",
                          str(len(row["runs"])), spread(success, 0),
                          spread([run["mean"] for run in row["runs"]], 1)])
        heads = ["program", "agent", "minutes of a core", "updates", "seeds", "solved, %", "return"]
        versions = of_set[-1]["versions"]
        text.append(f"### {name}\n\n{table(heads, lines)}\n*Newest row: {of_set[-1]['date']}, `just bench-public {name}`; "
                    f"d3rlpy {versions['d3rlpy']}, OGBench {versions['ogbench']}, Overtone {versions['overtone']}.*\n")
    return "\n".join(text)


def main(name: str = "", *words: str) -> None:
    given = dict(word.split("=", 1) for word in words if "=" in word)
    if name not in TASKS or len(given) != len(words) or not given.keys() <= OPTIONS.keys():
        sys.exit(f"just bench-public SET [KEY=VALUE...]: SET is {', '.join(TASKS)}; KEY is {', '.join(OPTIONS)}")
    os.environ.update(ENVIRONMENT)
    measure(name, OPTIONS | given)


if __name__ == "__main__":
    main(*sys.argv[1:])
