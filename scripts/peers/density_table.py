#!/usr/bin/env python3
"""Trains the toy networks here and in PyTorch by turns, and prints a Markdown table of both.

    just bench-peers [--rounds 3] [--epochs 5]

Every core is busy all the time on either side; a cell is the median over rounds of the
microseconds that a step of one run takes, with the smallest and the largest. A ratio is the
median of the rounds' own ratios.
"""

import argparse
import os
import re
import statistics
import subprocess
import sys

import density

# Our name of a head and the script's.
HEADS = {"linear": "linear", "fourier-12 γ=0": "fourier-12",
         "fourier-12 γ=1e-6": "fourier-12-reg", "gmm": "gmm"}
FORMS = ("eager", "stacked", "stacked-compiled")
RUNS = 32


def ours(program: str) -> dict[str, float]:
    """Microseconds of a step by head."""
    said = subprocess.run([program, "lab", "density", "timing=true"], check=True,
                          stdout=subprocess.PIPE, text=True).stdout
    rows = (re.match(r"\s*(\S.*?)\s{2,}[\d.]+\s+([\d.]+)$", line) for line in said.splitlines())
    return {HEADS[row[1]]: float(row[2]) for row in rows if row and row[1] in HEADS}


def theirs(form: str, head: str, epochs: int) -> float:
    """Microseconds of a step in PyTorch."""
    seconds, *_ = density.measure(head, form, RUNS, epochs, os.cpu_count())
    return 1e6 * seconds / density.STEPS


def cell(values: list[float]) -> str:
    digits = 1 if max(values) < 1000 else 0
    low, high = min(values), max(values)
    return f"{statistics.median(values):.{digits}f} ({low:.{digits}f}–{high:.{digits}f})"


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--program", default="target/release/overtone")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--epochs", type=int, default=5, help="that are timed, of each run")
    chosen = parser.parse_args()
    seen: dict[tuple[str, str], list[float]] = {}
    for index in range(chosen.rounds):
        print(f"round {index + 1} of {chosen.rounds}", file=sys.stderr)
        for head, step in ours(chosen.program).items():
            seen.setdefault((head, "overtone"), []).append(step)
            for form in FORMS:
                step = theirs(form, head, chosen.epochs)
                seen.setdefault((head, form), []).append(step)
    print("| head | Overtone, µs a step | " + " | ".join(f"PyTorch {f}, µs | ratio" for f in FORMS)
          + " |\n|" + " ---: |" * (2 + 2 * len(FORMS)))
    for head in HEADS.values():
        own = seen[head, "overtone"]
        cells = [head, cell(own)]
        for form in FORMS:
            other = seen[head, form]
            ratio = statistics.median(b / a for a, b in zip(own, other))
            cells += [cell(other), f"{ratio:.1f}×"]
        print(f"| {' | '.join(cells)} |")


if __name__ == "__main__":
    main()
