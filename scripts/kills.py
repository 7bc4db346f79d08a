#!/usr/bin/env python3
"""Kills training at random times and checks that it resumes without any difference.

    just kills [n=100] [seed=1]

The program first trains an undisturbed short run of a game (including the conversion of its data)
and of a robot. Then it trains each again and kills it with SIGKILL, until n kills are counted. The
time of a kill is uniform over the duration of the run. For half of the first starts it is uniform
over the time to the first checkpoint, including the conversion. The next start of the same command
resumes the run.

Each finished run is compared with the undisturbed run: the last checkpoints byte by byte, all rows
of metrics.csv and held_out.csv except times, all points in TensorBoard's files, and for the game the
converted data byte by byte. If there is a difference, or a run does not resume, the exit code is 1.
"""

import csv
import hashlib
import json
import logging
import os
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from words import options, whole

ROOT = Path(__file__).resolve().parent.parent
# Columns of metrics.csv that contain times.
TIMES = {"timesteps_per_s", "waited_share", "seconds"}
UPDATES = 120
COMMON = (f"evaluation.episodes=0 model.n_layers=1 model.context_length=5 train.updates={UPDATES} "
          "train.log_every=1 train.checkpoint_every=3 train.keep_checkpoints=3")
KINDS = {
    "game": f"game=seaquest data.transitions=4000 model.d_model=32 model.n_heads=2 "
            f"train.batch_size=4 {COMMON}",
    "robot": f"env=hopper model.d_model=32 train.batch_size=16 train.held_out=0.1 {COMMON}",
}


class Bench:
    """One kind of run, in its own directory."""

    def __init__(self, program: Path, kind: str, folder: Path):
        self.program, self.kind, self.folder = program, kind, folder
        self.whole = folder / "whole"
        began = time.monotonic()
        process = self.start("whole")
        self.to_first_checkpoint = None
        while process.poll() is None:
            if self.to_first_checkpoint is None and self.checkpoints("whole"):
                self.to_first_checkpoint = time.monotonic() - began
            time.sleep(0.002)
        self.seconds = time.monotonic() - began
        if not self.finished("whole"):
            sys.exit(f"the undisturbed {kind} run did not finish: see {self.log}")
        self.expected = self.facts("whole")

    @property
    def log(self) -> Path:
        return self.folder / "log"

    def start(self, name: str) -> subprocess.Popen:
        words = [*KINDS[self.kind].split(), f"runs={self.folder / name / 'runs'}"]
        if self.kind == "game":
            words.append(f"data.cache={self.folder / name / 'cache'}")
        log = self.log.open("a", encoding="utf-8")
        return subprocess.Popen([self.program, "train", *words], cwd=ROOT, stdout=log, stderr=log)

    def runs(self, name: str) -> list[Path]:
        """Started runs. A kill can leave an empty directory of a run that has not started."""
        folders = sorted((self.folder / name / "runs").glob("*"))
        return [folder for folder in folders if (folder / "config.toml").is_file()]

    def finished(self, name: str) -> bool:
        return [run for run in self.runs(name) if (run / "finished").is_file()] != []

    def checkpoints(self, name: str, prefix: str = "step-") -> list[Path]:
        return [folder for run in self.runs(name) for folder in run.glob(f"checkpoints/{prefix}*")]

    def until(self, draw: random.Random) -> float:
        """A random time for a kill. Half of a run's first starts are killed before a checkpoint."""
        early = not self.checkpoints("killed") and self.to_first_checkpoint
        return draw.uniform(0.0, draw.choice([early or self.seconds, self.seconds]))

    def left(self) -> dict:
        """The state of a killed run, from its files."""
        return {
            "before_a_checkpoint": not self.checkpoints("killed"),
            "in_a_checkpoint": self.checkpoints("killed", ".step-") != [],
            "in_a_conversion": any((self.folder / "killed").rglob(".frames-*.partial")),
        }

    def facts(self, name: str) -> dict:
        """The results that must not depend on kills."""
        (run,) = self.runs(name)
        facts = {}
        for file in sorted((run / "checkpoints").rglob("*")):
            if file.is_file():
                facts[str(file.relative_to(run))] = hashlib.sha256(file.read_bytes()).hexdigest()
        for file in sorted(run.glob("*.csv")):
            with file.open(encoding="utf-8") as rows:
                facts[file.name] = [{key: cell for key, cell in row.items() if key not in TIMES}
                                    for row in csv.DictReader(rows)]
        facts["events"] = points(run)
        for file in sorted((self.folder / name / "cache").rglob("frames.safetensors")):
            facts[file.parent.name] = hashlib.sha256(file.read_bytes()).hexdigest()
        return facts


def points(run: Path) -> dict:
    """Steps and values in a run's TensorBoard files by tag, without times."""
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

    # TensorBoard warns that it drops points after the checkpoint of a killed run, which is expected.
    logging.getLogger("tensorboard").setLevel(logging.ERROR)
    events = EventAccumulator(str(run), size_guidance={"scalars": 0})
    events.Reload()
    tags = [tag for tag in events.Tags()["scalars"] if not tag.startswith("perf/")]
    return {tag: [(point.step, point.value) for point in events.Scalars(tag)] for tag in tags}


def main() -> None:
    given = options(sys.argv[1:], ["n", "seed"])
    n, seed = whole("n", given.get("n", "100"), 1), whole("seed", given.get("seed", "1"), 0)
    program = Path(os.environ.get("CARGO_TARGET_DIR", ROOT / "target")) / "release/overtone"
    draw = random.Random(seed)
    folder = Path(tempfile.mkdtemp(prefix="overtone-kills-"))
    benches = {}
    for kind in KINDS:
        (folder / kind).mkdir()
        benches[kind] = Bench(program, kind, folder / kind)
        print(f"{kind}: {UPDATES} updates in {benches[kind].seconds:.1f} s undisturbed")
    began = ["before_a_checkpoint", "in_a_checkpoint", "in_a_conversion"]
    counts = {kind: dict.fromkeys(["kills", "ended", *began], 0) for kind in KINDS}
    while sum(count["kills"] for count in counts.values()) < n:
        kind = draw.choice(list(KINDS))
        bench, count = benches[kind], counts[kind]
        process = bench.start("killed")
        try:
            process.wait(timeout=bench.until(draw))
        except subprocess.TimeoutExpired:
            process.send_signal(signal.SIGKILL)
            process.wait()
            count["kills"] += 1
            for what, there in bench.left().items():
                count[what] += there
            if bench.finished("killed"):
                # The run was killed after its last file was written.
                check(bench, count)
            continue
        if process.returncode != 0:
            sys.exit(f"a killed {kind} run did not resume: see {bench.log}")
        check(bench, count)
    # Finish the last runs without kills.
    for kind, bench in benches.items():
        if bench.runs("killed") and not bench.finished("killed"):
            if bench.start("killed").wait() != 0:
                sys.exit(f"a killed {kind} run did not resume: see {bench.log}")
        if bench.finished("killed"):
            check(bench, counts[kind])
    print(json.dumps(counts))
    kills, ended = (sum(count[key] for count in counts.values()) for key in ("kills", "ended"))
    print(f"{kills} kills, {ended} finished runs, all equal to the undisturbed runs")
    shutil.rmtree(folder)


def check(bench: Bench, count: dict) -> None:
    """Compares the finished run, and deletes it before the next one."""
    got = bench.facts("killed")
    for key in sorted(bench.expected | got):
        if bench.expected.get(key) != got.get(key):
            sys.exit(f"{bench.kind}: {key} differs from the undisturbed run: see {bench.folder}")
    count["ended"] += 1
    shutil.rmtree(bench.folder / "killed")


if __name__ == "__main__":
    main()
