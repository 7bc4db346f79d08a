"""A whole job, from the start of the process and cold files to an evaluated agent, in `overtone train`
and in a straightforward PyTorch program."""

import os
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path

from process import Watch, cell, ratios, summary, table

GAME, UPDATES, BATCH = "seaquest", 60, 16
# Overtone plays its episodes in one batch; the PyTorch program plays one after the other.
EPISODES, PYTORCH_EPISODES = 20, 3


def forget_files() -> bool:
    """Drops the page cache. Gives whether the machine allowed it."""
    os.sync()
    try:
        Path("/proc/sys/vm/drop_caches").write_text("3\n", encoding="ascii")
        return True
    except OSError:
        return False


class Memory(threading.Thread):
    """Peak memory of a process and its children: the largest sum of their proportional set sizes
    in MB (10^6 bytes), read every quarter of a second."""

    def __init__(self, pid: int):
        super().__init__(daemon=True)
        self.pid, self.peak, self.over = pid, 0.0, threading.Event()
        self.start()

    def run(self):
        while not self.over.wait(0.25):
            self.peak = max(self.peak, sum(map(self.of, self.tree())) * 1024 / 1e6)

    def tree(self) -> list[int]:
        parent = {}
        for entry in os.scandir("/proc"):
            if entry.name.isdigit():
                try:
                    stat = Path(entry.path, "stat").read_text(encoding="utf-8", errors="replace")
                    parent[int(entry.name)] = int(stat.rpartition(")")[2].split()[1])
                except OSError:
                    pass
        found = [self.pid]
        for pid in found:
            found += [child for child, of in parent.items() if of == pid]
        return found

    @staticmethod
    def of(pid: int) -> int:
        """Kilobytes of one process; 0 if it has ended."""
        try:
            text = Path(f"/proc/{pid}/smaps_rollup").read_text(encoding="ascii")
        except OSError:
            return 0
        return next((int(line.split()[1]) for line in text.splitlines()
                     if line.startswith("Pss:")), 0)

    def stop(self) -> float:
        self.over.set()
        self.join()
        return self.peak


def rows_of(runs: Path) -> list[str]:
    """Rows of the newest run's metrics.csv so far, without its header."""
    for path in runs.glob("*/metrics.csv"):
        return path.read_text(encoding="ascii").splitlines()[1:]
    return []


def first_row(runs: Path, process, began: float) -> float:
    """Seconds until metrics.csv has its first row."""
    while process.poll() is None:
        if rows_of(runs):
            return time.perf_counter() - began
        time.sleep(0.005)
    raise RuntimeError(f"overtone ended before its first update (exit {process.returncode})")


def overtone(program: str, folder: Path, log, updates: int, episodes: int) -> dict:
    """Trains and evaluates with `overtone train`. Converted data stays in `folder`; each call has
    a new directory of runs."""
    cold = forget_files()
    runs = Path(tempfile.mkdtemp(dir=folder))
    began = time.perf_counter()
    process = subprocess.Popen(
        [program, "train", f"game={GAME}", "profile=quick", "device=cpu", f"runs={runs}",
         f"data.cache={folder / 'cache'}", f"train.updates={updates}", "train.log_every=1",
         f"train.batch_size={BATCH}", "evaluation.target=32", f"evaluation.episodes={episodes}",
         "evaluation.every=0"],
        stdout=subprocess.PIPE, stderr=log, text=True)
    memory = Memory(process.pid)
    first = first_row(runs, process, began)
    seconds_playing = trained = None
    for line in process.stdout:
        now = time.perf_counter()
        if line.startswith("trained for"):
            trained = now
        elif line.startswith("report:"):
            seconds_playing = now - trained
    if process.wait() != 0:
        raise RuntimeError(f"overtone train failed (exit {process.returncode}); see {log.name}")
    times = [float(row.split(",")[9]) for row in rows_of(runs)]
    result = {"cold": cold, "first_update": first, "peak_mb": memory.stop()}
    if updates > 1:
        result["updates_per_second"] = (len(times) - 1) / max(times[-1] - times[0], 1e-9)
    if episodes:
        result["episodes_per_minute"] = 60 * episodes / seconds_playing
    return result


def pytorch(python: str, script: str, data: Path, log, environment) -> dict:
    """Trains and evaluates with the PyTorch program."""
    cold = forget_files()
    began = time.perf_counter()
    process = subprocess.Popen(
        [python, script, str(data), str(UPDATES), str(BATCH), str(PYTORCH_EPISODES)],
        stdout=subprocess.PIPE, stderr=log, text=True, env=os.environ | environment)
    memory = Memory(process.pid)
    at = {line.strip(): time.perf_counter() - began for line in process.stdout}
    if process.wait() != 0:
        raise RuntimeError(f"the PyTorch program failed (exit {process.returncode}); see {log.name}")
    return {"cold": cold, "first_update": at["first update"], "peak_mb": memory.stop(),
            "updates_per_second": (UPDATES - 1) / (at["trained"] - at["first update"]),
            "episodes_per_minute": 60 * PYTORCH_EPISODES / (at["played"] - at["trained"])}


def megabytes(folder: Path, but: tuple[str, ...] = ()) -> float:
    """Size of the files of a directory, without the directories named in `but`."""
    total = 0
    for path, folders, files in os.walk(folder):
        folders[:] = [name for name in folders if name not in but]
        total += sum(os.lstat(os.path.join(path, name)).st_size for name in files)
    return total / 1e6


def measure(program: str, python: str, script: str, root: Path, log, environment, rounds: int):
    """A section of the results."""
    data = root / "datasets/starter/Seaquest/1/replay_logs"
    ours, again, theirs, others = [], [], [], []
    for index in range(rounds):
        print(f"whole job: round {index + 1} of {rounds}", file=sys.stderr)
        watch = Watch([])
        with tempfile.TemporaryDirectory() as folder:
            ours.append(overtone(program, Path(folder), log, UPDATES, EPISODES))
            again.append(overtone(program, Path(folder), log, 1, 0))
        theirs.append(pytorch(python, script, data, log, environment))
        others.append(watch.others())
    section = {"rounds": rounds, "updates": UPDATES, "batch": BATCH,
               "others": max(others),
               "cold": all(row["cold"] for row in ours + again + theirs),
               "again": summary([row["first_update"] for row in again]),
               "again_ratio": ratios([row["first_update"] for row in theirs],
                                     [row["first_update"] for row in again]),
               "rows": {}}
    for key in ("first_update", "updates_per_second", "peak_mb", "episodes_per_minute"):
        mine, other = ([row[key] for row in side] for side in (ours, theirs))
        more_is_better = key in ("updates_per_second", "episodes_per_minute")
        section["rows"][key] = {
            "overtone": summary(mine), "pytorch": summary(other),
            "ratio": ratios(mine, other) if more_is_better else ratios(other, mine)}
    packages = Path(python).parent.parent
    section["sizes"] = {
        "program": os.path.getsize(program) / 1e6,
        "playing": megabytes(root / ".venv"),
        "pytorch": megabytes(packages, ("inductor",)),
        "pytorch_without_cuda": megabytes(packages, ("inductor", "nvidia", "triton"))}
    return section


def markdown(section: dict) -> str:
    names = {"first_update": ("seconds to the end of the first update", 2),
             "updates_per_second": (f"updates per second, the next {section['updates'] - 1}", 2),
             "peak_mb": ("peak memory, MB", 0),
             "episodes_per_minute": ("episodes played per minute", 1)}
    rows = []
    for key, (name, digits) in names.items():
        row = section["rows"][key]
        rows.append([name, cell(row["overtone"], 1, digits), cell(row["pytorch"], 1, digits),
                     cell(row["ratio"], 1, 1)])
    by_first = section["rows"]["first_update"]["pytorch"]
    rows.insert(1, ["the same, data converted by an earlier run", cell(section["again"], 1, 2),
                    cell(by_first, 1, 2), cell(section["again_ratio"], 1, 1)])
    sizes = section["sizes"]
    rows.append(["to install, MB", f"{sizes['program']:.0f} to train, "
                 f"and {sizes['playing']:.0f} of Python packages to play",
                 f"{sizes['pytorch']:.0f} ({sizes['pytorch_without_cuda']:.0f} without NVIDIA's packages)", ""])
    cold = ("Files were dropped from memory first." if section["cold"] else
            "Files may have been in memory: the machine did not allow to drop them.")
    return (
        table(["", "Overtone", "PyTorch", "ratio"], rows)
        + f"\n{section['rounds']} rounds in turns, batches of {section['batch']}. {cold} Other "
        f"programs used up to {100 * section['others']:.0f} % of the machine.\n")
