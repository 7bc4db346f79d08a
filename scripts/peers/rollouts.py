"""Playing: `overtone evaluate rollouts` against the published loop in PyTorch."""

import json
import subprocess
import sys
import time
from pathlib import Path

from process import Watch, cell, ratios, start, summary, table

GAME, EPISODES, STEPS = "seaquest", 50, 200
VARIANTS = {"eager": "PyTorch, the published loop",
            "channels_last+sdpa": "the same, channels_last and sdpa"}


def untrained_run(program: str, folder: Path, log) -> Path:
    """A run of one update: an agent to play, as good as a random one."""
    subprocess.run([program, "train", f"game={GAME}", "profile=quick", "device=cpu",
                    "train.updates=1", "evaluation.episodes=0", f"runs={folder / 'runs'}",
                    f"data.cache={folder / 'cache'}"], check=True, stdout=log, stderr=log)
    return next((folder / "runs").iterdir())


def play(program: str, run: Path, log) -> dict:
    """One evaluation in a process of its own."""
    began = time.perf_counter()
    subprocess.run([program, "evaluate", "rollouts", f"run={run}", f"episodes={EPISODES}",
                    "target=32", "device=cpu"], check=True, stdout=log, stderr=log)
    seconds = time.perf_counter() - began
    report = json.loads((run / "evaluation.json").read_text())
    return {"steps": report["steps"], "playing": report["wall_seconds"], "process": seconds}


def measure(program: str, python: str, player: str, log, environment, rounds: int, folder: Path):
    """A section of the results."""
    run = untrained_run(program, folder, log)
    peers = start({variant: [python, player, GAME, variant, str(STEPS)] for variant in VARIANTS},
                  log, environment)
    ours, others = [], []
    for index in range(rounds):
        print(f"playing: round {index + 1} of {rounds}", file=sys.stderr)
        watch = Watch(peers)
        ours.append(play(program, run, log))
        for peer in peers:
            peer.times.append(peer.round())
        others.append(watch.others())
    for peer in peers:
        peer.finish()
    playing = [row["steps"] / row["playing"] for row in ours]
    process = [row["steps"] / row["process"] for row in ours]
    section = {"rounds": rounds, "episodes": EPISODES, "steps": [row["steps"] for row in ours],
               "playing": summary(playing), "process": summary(process), "others": max(others),
               "peers": []}
    for peer in peers:
        rates = [1 / seconds for seconds in peer.times]
        section["peers"].append({"name": peer.name, "rate": summary(rates),
                                 "ratio": ratios(playing, rates),
                                 "ratio_process": ratios(process, rates)})
    return section


def markdown(section: dict) -> str:
    steps = sum(section["steps"]) / len(section["steps"])
    rows = [[f"**Overtone**, {section['episodes']} episodes as one batch",
             cell(section["playing"]), "", ""],
            ["the same, the whole process", cell(section["process"]), "", ""]]
    for peer in section["peers"]:
        rows.append([VARIANTS[peer["name"]], cell(peer["rate"], 1, 1),
                     cell(peer["ratio"], 1, 1), cell(peer["ratio_process"], 1, 1)])
    return (
        "## Playing\n\n"
        f"Seaquest, the `atari` preset, emulator included, actions sampled: steps per second, "
        f"{section['rounds']} alternating rounds. *ratio* is how many times faster Overtone plays: "
        "first while it plays, then by the time of its whole process, which also starts its "
        "emulators and ends with the few longest episodes. PyTorch's rate is that of the loop "
        f"alone, with a full context. Overtone's {section['episodes']} episodes are "
        f"{steps:.0f} steps in all. Other programs took up to {100 * section['others']:.0f} % of the "
        "machine.\n\n"
        + table(["", "steps per second", "ratio", "ratio, whole process"], rows)
        + "\nThe published loop plays one environment and encodes all 30 observations of the context "
        "for each action. This one spares it what the published one also does: it copies every "
        "observation of the episode at each step.\n\n")
