#!/usr/bin/env python3
"""Measures a GPU with existing programs, on a machine without cargo, within half an hour:

    gpu.py PROGRAMS [parts=check,losses,pytorch,values] [data=FILE.npz] [key=value...]

PROGRAMS has `overtone` and `overtone-gpu-check`, built with the feature `cuda` and without `python`
(docs/gpu.md). The numbers of each part go to out=docs/results/gpu/measured.json, and the table of all parts to
page=docs/gpu.md. A part that ended is kept: a call that was interrupted goes on with again=false.

    check     comparisons, equal bits, launches, and times of steps, by overtone-gpu-check
    losses    losses on held-out episodes of Seaquest's starter set, `bf16` and `f32`: updates=2000 of the
              paper's model, seeds=1,2, two runs at once
    pytorch   the same step in PyTorch, eager and compiled, in `f32`, TF32 and `bf16`, if torch is installed
    values    IQL and ReBRAC on data=FILE.npz in OGBench's layout: value_updates=1000000, both at once. Their
              runs stay in runs=runs/gpu: export them to play them where the task is installed

`device=cuda` is the default; device=cpu with size=tiny and few updates is a dry run.
"""

from __future__ import annotations

import datetime
import json
import re
import shutil
import subprocess
import sys
import time
from pathlib import Path

HERE = Path(__file__).resolve().parent
ROOT = HERE.parent.parent
OPTIONS = {"parts": "check,losses,pytorch,values", "data": "", "device": "cuda", "size": "auto",
           "updates": "2000", "seeds": "1,2", "value_updates": "1000000", "rounds": "7", "steps": "10",
           "batch": "128", "again": "true", "out": str(ROOT / "docs/results/gpu/measured.json"), "runs": str(ROOT / "runs/gpu"),
           "page": str(ROOT / "docs/gpu.md")}
VARIANTS = ["eager", "eager+tf32", "compile+tf32", "bf16", "bf16+channels_last+sdpa+fused",
            "bf16+channels_last+sdpa+fused+compile"]
BEGIN, END = "<!-- gpu: written by scripts/peers/gpu.py -->", "<!-- end of gpu -->"


def output(command: list[str], seconds: float = 1500) -> str:
    """The output of a command; it ends this program if it fails."""
    print("  " + " ".join(command), file=sys.stderr, flush=True)
    ended = subprocess.run(command, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                           timeout=seconds, check=False)
    if ended.returncode != 0:
        sys.exit(f"{command[0]} failed:\n{ended.stdout[-2000:]}")
    return ended.stdout


def together(commands: dict[str, list[str]]) -> dict[str, float]:
    """Runs commands at once, each with a log in the runs' directory; the seconds of each."""
    started, logs, ended = time.monotonic(), {}, {}
    for name, command in commands.items():
        print("  " + " ".join(command), file=sys.stderr, flush=True)
        log = open(Path(command_runs(command)) / f"{name}.log", "w", encoding="utf-8")
        logs[name] = (subprocess.Popen(command, cwd=ROOT, stdout=log, stderr=subprocess.STDOUT), log)
    while len(ended) < len(logs):
        for name, (process, log) in logs.items():
            if name not in ended and process.poll() is not None:
                ended[name] = time.monotonic() - started
                if process.returncode != 0:
                    sys.exit(f"{name} failed; see {log.name}")
        time.sleep(0.2)
    return ended


def command_runs(command: list[str]) -> str:
    """The directory of a command's runs; it exists and is empty afterwards."""
    runs = next(word.partition("=")[2] for word in command if word.startswith("runs="))
    shutil.rmtree(runs, ignore_errors=True)
    Path(runs).mkdir(parents=True)
    return runs


def check(programs: Path, options: dict) -> dict:
    """The rows of overtone-gpu-check."""
    said = output([str(programs / "overtone-gpu-check"), f"device={options['device']}", f"size={options['size']}"])
    rows = [[cell.strip() for cell in line.strip("| ").split("|")] for line in said.splitlines()
            if line.startswith("| ") and not line.startswith(("| part", "| ---"))]
    device = next(line for line in said.splitlines() if ", size " in line)
    return {"device": device, "rows": [dict(zip(["part", "what", "value", "verdict", "note"], row)) for row in rows]}


def losses(programs: Path, options: dict) -> dict:
    """The last held-out loss of each run, and its milliseconds a step."""
    found = []
    for seed in options["seeds"].split(","):
        commands = {}
        for precision in ("bf16", "f32"):
            name = f"{precision}-{seed}"
            commands[name] = [
                str(programs / "overtone"), "train", "game=seaquest", "profile=paper", f"device={options['device']}",
                f"train.precision={precision}", f"train.updates={options['updates']}", f"seed={seed}",
                "train.held_out=0.1", f"train.checkpoint_every={options['updates']}", "evaluation.every=0",
                "evaluation.episodes=0", f"runs={options['runs']}/losses/{name}"]
        seconds = together(commands)
        for precision in ("bf16", "f32"):
            held_out = next(Path(options["runs"], "losses", f"{precision}-{seed}").glob("*/held_out.csv"))
            loss = held_out.read_text(encoding="ascii").splitlines()[-1].split(",")[1]
            found.append({"precision": precision, "seed": int(seed), "held_out_loss": float(loss),
                          "seconds": round(seconds[f"{precision}-{seed}"], 1)})
    return {"updates": int(options["updates"]), "runs": found}


def pytorch(programs: Path, options: dict) -> dict:
    """Milliseconds a step of each variant, in turns."""
    try:
        import torch
    except ImportError:
        return {"left_out": "PyTorch is not installed"}
    sys.path.insert(0, str(HERE))
    from process import start

    batch, steps, device = options["batch"], options["steps"], options["device"]
    commands = {variant: [sys.executable, str(HERE / "gpu_step.py"), batch, variant, steps, device]
                for variant in VARIANTS}
    Path(options["runs"]).mkdir(parents=True, exist_ok=True)
    with open(Path(options["runs"], "pytorch.log"), "w", encoding="utf-8") as log:
        peers = start(commands, log, {})
        for _ in range(int(options["rounds"])):
            for peer in peers:
                peer.times.append(1e3 * peer.round())
        for peer in peers:
            peer.kill()
    return {"torch": torch.__version__, "batch": int(batch), "ms": {peer.name: peer.times for peer in peers}}


def values(programs: Path, options: dict) -> dict:
    """Milliseconds an update of IQL and ReBRAC, side by side. The runs stay."""
    if not options["data"]:
        return {"left_out": "data=FILE.npz was not given"}
    # As the user's own task, so that neither Python nor OGBench is needed.
    n = options["value_updates"]
    commands = {algorithm: [
        str(programs / "overtone"), "train", "own=cube-single", f"dataset={options['data']}", "data.layout=ogbench",
        f"algorithm={algorithm}", f"device={options['device']}", f"train.updates={n}", "seed=1",
        "evaluation.every=0", "evaluation.episodes=0", f"runs={options['runs']}/values/{algorithm}"]
        for algorithm in ("iql", "rebrac")}
    seconds = together(commands)
    return {"updates": int(n), "data": Path(options["data"]).name,
            "runs": [{"algorithm": name, "seconds": round(took, 1), "ms": round(1e3 * took / int(n), 3)}
                     for name, took in seconds.items()]}


PARTS = {"check": check, "losses": losses, "pytorch": pytorch, "values": values}


def median(numbers: list[float]) -> str:
    ordered = sorted(numbers)
    return f"{ordered[len(ordered) // 2]:.2f} ({ordered[0]:.2f}–{ordered[-1]:.2f})"


def table(found: dict[str, dict]) -> str:
    """Everything in one Markdown table."""
    lines = ["| what | number | |", "| --- | ---: | --- |"]
    for row in found.get("check", {}).get("rows", []):
        if row["part"] in ("launches", "time") and ("step" in row["what"] or "batch" in row["what"]):
            lines.append(f"| {row['what']} | {row['value']} | {row['note']} |")
    for run in found.get("losses", {}).get("runs", []):
        lines.append(f"| held-out loss, `{run['precision']}`, seed {run['seed']} | {run['held_out_loss']:.4f} | "
                     f"{found['losses']['updates']} updates, {run['seconds']:.0f} s |")
    for name, ms in found.get("pytorch", {}).get("ms", {}).items():
        lines.append(f"| PyTorch, {name}, batch {found['pytorch']['batch']} | {median(ms)} ms | |")
    for run in found.get("values", {}).get("runs", []):
        lines.append(f"| {run['algorithm']}, {found['values']['updates']} updates | {run['ms']} ms an update | "
                     f"{run['seconds']:.0f} s |")
    left_out = [f"{name}: {part['left_out']}" for name, part in found.items() if "left_out" in part]
    about = found.get("check", {}).get("device", "")
    notes = [about, *left_out] if about else left_out
    return "\n".join(lines) + ("\n\n" + "; ".join(notes) + ".\n" if notes else "\n")


def main() -> None:
    words = [word for word in sys.argv[1:] if "=" not in word]
    options = OPTIONS | dict(word.split("=", 1) for word in sys.argv[1:] if "=" in word)
    if len(words) != 1 or set(options) != set(OPTIONS):
        sys.exit(__doc__)
    programs, out = Path(words[0]).resolve(), Path(options["out"])
    parts = options["parts"].split(",")
    if unknown := [part for part in parts if part not in PARTS]:
        sys.exit(f"parts={unknown[0]}: expected {', '.join(PARTS)}")
    found = json.loads(out.read_text(encoding="utf-8")) if out.exists() else {}
    for part in parts:
        if part in found and options["again"] != "true":
            continue
        print(part, file=sys.stderr, flush=True)
        about = {"date": datetime.date.today().isoformat(), "command": " ".join(["gpu.py", *sys.argv[1:]])}
        found[part] = PARTS[part](programs, options) | about
        out.write_text(json.dumps(found, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
    page = Path(options["page"])
    text = page.read_text(encoding="utf-8")
    written = f"{BEGIN}\n\n{table(found)}\n{END}"
    if BEGIN in text:
        text = re.sub(re.escape(BEGIN) + ".*?" + re.escape(END), lambda _: written, text, flags=re.DOTALL)
    else:
        text = f"{text.rstrip()}\n\n{written}\n"
    page.write_text(text, encoding="utf-8")
    print(table(found))


if __name__ == "__main__":
    main()
