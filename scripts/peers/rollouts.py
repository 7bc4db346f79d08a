"""Evaluation: `overtone evaluate rollouts` compared with the published loops in PyTorch."""

import json
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path

from process import Watch, cell, ratios, start, summary, table


@dataclass
class Task:
    """The same evaluation in both programs."""

    # Words of `overtone train` for an untrained agent, and the target return.
    words: list
    target: str
    episodes: int
    # The PyTorch program, its words before the variant, and the steps of its rounds.
    program: str
    leading: list
    steps: int
    variants: dict


TASKS = {
    "rollouts": Task(
        ["game=seaquest"], "32", 50, "play.py", ["seaquest"], 200,
        {"eager": "PyTorch, the published loop",
         "channels_last+sdpa": "the same, channels_last and sdpa"}),
    "robots": Task(
        ["env=halfcheetah"], "12000", 100, "play_gym.py", [], 400,
        {"published": "PyTorch, the published loop", "sdpa": "the same, sdpa"}),
}


def untrained_run(program: str, task: Task, folder: Path, log) -> Path:
    """A run of one update, for an untrained agent."""
    cache = [f"data.cache={folder / 'cache'}"] if task.words[0].startswith("game=") else []
    subprocess.run([program, "train", *task.words, "profile=quick", "device=cpu",
                    "train.updates=1", "evaluation.episodes=0", f"runs={folder / 'runs'}", *cache],
                   check=True, stdout=log, stderr=log)
    return next((folder / "runs").iterdir())


def play(program: str, task: Task, run: Path, log) -> dict:
    """One evaluation in a process of its own."""
    began = time.perf_counter()
    subprocess.run([program, "evaluate", "rollouts", f"run={run}", f"episodes={task.episodes}",
                    f"target={task.target}", "device=cpu"], check=True, stdout=log, stderr=log)
    seconds = time.perf_counter() - began
    report = json.loads((run / "evaluation.json").read_text())
    return {"steps": report["steps"], "playing": report["wall_seconds"], "process": seconds}


def measure(part: str, program: str, python: str, here: Path, log, environment, rounds: int,
            folder: Path):
    """A section of the results."""
    task = TASKS[part]
    run = untrained_run(program, task, folder, log)
    peers = start({variant: [python, str(here / task.program), *task.leading, variant,
                             str(task.steps)] for variant in task.variants}, log, environment)
    ours, others = [], []
    for index in range(rounds):
        print(f"playing: round {index + 1} of {rounds}", file=sys.stderr)
        watch = Watch(peers)
        ours.append(play(program, task, run, log))
        for peer in peers:
            peer.times.append(peer.round())
        others.append(watch.others())
    for peer in peers:
        peer.finish()
    playing = [row["steps"] / row["playing"] for row in ours]
    process = [row["steps"] / row["process"] for row in ours]
    section = {"rounds": rounds, "episodes": task.episodes, "steps": [row["steps"] for row in ours],
               "playing": summary(playing), "process": summary(process), "others": max(others),
               "peers": []}
    for peer in peers:
        rates = [1 / seconds for seconds in peer.times]
        section["peers"].append({"name": peer.name, "rate": summary(rates),
                                 "ratio": ratios(playing, rates),
                                 "ratio_process": ratios(process, rates)})
    return section


def markdown(part: str, section: dict) -> str:
    task = TASKS[part]
    steps = sum(section["steps"]) / len(section["steps"])
    rows = [[f"**Overtone**, {section['episodes']} episodes as one batch",
             cell(section["playing"]), "", ""],
            ["the same, the whole process", cell(section["process"]), "", ""]]
    for peer in section["peers"]:
        rows.append([task.variants[peer["name"]], cell(peer["rate"], 1, 1),
                     cell(peer["ratio"], 1, 1), cell(peer["ratio_process"], 1, 1)])
    return (
        table(["", "steps per second", "ratio", "ratio, whole process"], rows)
        + f"\n{section['rounds']} alternating rounds; {section['episodes']} episodes, {steps:.0f} "
        f"steps. Other programs used up to {100 * section['others']:.0f} % of the machine.\n")
