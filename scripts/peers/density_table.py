"""Trains the toy networks here and in PyTorch by turns.

Every core is busy all the time on either side; a number is the median over rounds of the
microseconds that a step of one run takes, with the smallest and the largest.
"""

import os
import re
import subprocess
import sys

import density
from process import cell, ratios, summary, table

# Our name of a head and the script's.
HEADS = {"linear": "linear", "fourier-12 γ=0": "fourier-12",
         "fourier-12 γ=1e-6": "fourier-12-reg", "gmm": "gmm"}
FORMS = ("eager", "stacked", "stacked-compiled")
RUNS = 32
# Of each run, timed.
EPOCHS = 3


def ours(program: str) -> dict[str, float]:
    """Microseconds of a step by head."""
    said = subprocess.run([program, "density", "timing=true"], check=True,
                          stdout=subprocess.PIPE, text=True).stdout
    rows = (re.match(r"\s*(\S.*?)\s{2,}[\d.]+\s+([\d.]+)$", line) for line in said.splitlines())
    return {HEADS[row[1]]: float(row[2]) for row in rows if row and row[1] in HEADS}


def theirs(form: str, head: str, epochs: int) -> float:
    """Microseconds of a step in PyTorch."""
    seconds, *_ = density.measure(head, form, RUNS, epochs, os.cpu_count())
    return 1e6 * seconds / density.STEPS


def measure(program: str, rounds: int, epochs: int = EPOCHS) -> dict:
    """A section of the results: the seconds of a step by head and form."""
    seen: dict[str, dict[str, list[float]]] = {}
    for index in range(rounds):
        print(f"toy networks: round {index + 1} of {rounds}", file=sys.stderr)
        for head, step in ours(program).items():
            of_head = seen.setdefault(head, {})
            of_head.setdefault("overtone", []).append(step)
            for form in FORMS:
                of_head.setdefault(form, []).append(theirs(form, head, epochs))
    rows = {}
    for head, of_head in seen.items():
        own = of_head["overtone"]
        rows[head] = {name: {"microseconds": summary(times), "ratio": ratios(times, own)}
                      for name, times in of_head.items()}
    return {"rounds": rounds, "epochs": epochs, "rows": rows}


def markdown(section: dict) -> str:
    rows = []
    for head, of_head in section["rows"].items():
        cells = [head, cell(of_head["overtone"]["microseconds"], 1, 1)]
        for form in FORMS:
            cells += [cell(of_head[form]["microseconds"], 1, 1),
                      f"{of_head[form]['ratio']['median']:.1f}"]
        rows.append(cells)
    head = ["head", "Overtone, µs a step"]
    for form in FORMS:
        head += [f"PyTorch {form}, µs", "ratio"]
    return (
        "## The lab's small networks\n\n"
        + table(head, rows)
        + f"\nOne step (32 rows) of the networks of `just lab density`, {section['rounds']} rounds "
        "in turns, all cores busy; wall time divided by the steps of all runs. *Ratio* is the "
        "median of the rounds' ratios; above 1, Overtone is faster. *eager* has one process a core, "
        "and a module and an optimizer for each run, like the published code. *stacked* trains "
        f"{RUNS} runs as one network with batched products. *stacked-compiled* adds "
        "`torch.compile`. All use Overtone's form of the Fourier head, which is cheaper than the "
        "published one.\n\n")
