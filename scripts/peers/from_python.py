"""Acting from Python: many agents compared with the same loop in Rust, one compared with d3rlpy."""

import subprocess
import sys
from pathlib import Path

from process import cell, ratios, start, summary, table, take_turns

AGENTS = 100
# Agents with their words of `overtone train` and the turns of a round.
KINDS = {
    "Decision Transformer, context of 5": (["model.context_length=5"], 100),
    "Decision Transformer, context of 20": (["model.context_length=20"], 20),
    "TD3+BC": (["algorithm=td3_bc"], 1000),
}
CONTEXT, STEPS = 20, 300


def untrained(program: str, words: list, folder: Path, log) -> tuple[Path, Path]:
    """A run of one update, and its checkpoint."""
    subprocess.run([program, "train", "env=halfcheetah", *words, "profile=quick", "device=cpu",
                    "train.updates=1", "evaluation.episodes=0", f"runs={folder}"],
                   check=True, stdout=log, stderr=log)
    (run,) = folder.iterdir()
    (checkpoint,) = (run / "checkpoints").iterdir()
    return run, checkpoint


def measure(bench: str, program: str, python: str, here: Path, log, environment, rounds: int,
            folder: Path) -> dict:
    """A section of the results."""
    script = str(here / "acting.py")
    section = {"rounds": rounds, "agents": AGENTS, "kinds": [], "disturbed": 0}
    for number, (kind, (words, steps)) in enumerate(KINDS.items()):
        print(f"acting: {kind}", file=sys.stderr)
        run, checkpoint = untrained(program, words, folder / str(number), log)
        counts = [str(AGENTS), str(steps)]
        peers = start({"Rust": [bench, str(checkpoint), *counts],
                       "Python": [python, script, "many", str(run), *counts]}, log, environment)
        section["disturbed"] += take_turns(peers, rounds)
        rust, ours = peers
        section["kinds"].append({
            "name": kind, "rust": summary(rust.times), "python": summary(ours.times),
            "ratio": ratios(ours.times, rust.times)})
    print("acting: one environment of Gymnasium", file=sys.stderr)
    run, _ = untrained(program, [f"model.context_length={CONTEXT}"], folder / "one", log)
    peers = start({"Overtone": [python, script, "overtone", str(run), str(STEPS)],
                   "d3rlpy": [python, script, "d3rlpy", str(CONTEXT), str(STEPS)]},
                  log, environment)
    section["disturbed"] += take_turns(peers, rounds)
    ours, theirs = ([1 / seconds for seconds in peer.times] for peer in peers)
    section["one"] = {"overtone": summary(ours), "d3rlpy": summary(theirs),
                      "ratio": ratios(ours, theirs)}
    return section


def markdown(section: dict) -> str:
    rows = [[kind["name"], cell(kind["rust"], 1e3, 2), cell(kind["python"], 1e3, 2),
             cell(kind["ratio"], 1, 3)] for kind in section["kinds"]]
    one = section["one"]
    loop = [["**Overtone**, `policy.as_d3rlpy()`", cell(one["overtone"]), ""],
            ["d3rlpy, its stateful wrapper", cell(one["d3rlpy"]), cell(one["ratio"], 1, 2)]]
    return (
        table(["milliseconds per turn of all agents", "Rust", "Python", "ratio"], rows)
        + "\n" + table(["one agent", "steps per second", "ratio"], loop)
        + f"\nFirst table: `policy.act` of {section['agents']} agents of HalfCheetah's sizes with "
        "full contexts, and the same loop in Rust (`crates/agents/benches/acting.rs`); *ratio* is "
        "Python's time divided by Rust's. Second table: the plain loop of Gymnasium over one "
        "HalfCheetah-v5, simulator included, with untrained Decision Transformers of 3 layers, one "
        f"head, width 128 and a context of {CONTEXT}; *ratio* is Overtone's speed divided by "
        f"d3rlpy's. {section['rounds']} alternating rounds; other programs ran during "
        f"{section['disturbed']} of all rounds.\n")
