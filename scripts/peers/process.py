"""Processes that do rounds of work on request, turns of several of them, and stored replies.

The protocol is the same as in crates/train/benches/training_cost and trainer.py. The process prints
a number when it is ready. For each input line it prints the seconds of one step, and when its input
ends, its peak memory in kilobytes (1024 bytes).
"""

import hashlib
import json
import os
import resource
import statistics
import subprocess
import sys
import time
from pathlib import Path

try:
    import tomllib
except ModuleNotFoundError:  # Python 3.10
    from pip._vendor import tomli as tomllib

# A round is repeated if other programs used more than this fraction of the machine.
OTHERS_ALLOWED = 0.05
# Number of repeated rounds; after that, disturbed rounds are kept and counted.
EXTRA_ROUNDS = 10
# Seconds before each turn, because the threads of the previous process still spin for a while.
SETTLING = 0.4


class Peer:
    """The process of one variant. `name` labels it; its stderr goes to `log`."""

    def __init__(self, name: str, command: list[str], log, environment: dict[str, str]):
        self.name, self.times, self.peak_mb = name, [], None
        self.process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=log, text=True,
            env=os.environ | environment)

    def answer(self) -> float:
        line = self.process.stdout.readline()
        if not line:
            raise RuntimeError(f"`{self.name}` ended early (exit {self.process.wait()})")
        return float(line)

    def round(self) -> float:
        """Seconds of a step."""
        time.sleep(SETTLING)
        self.process.stdin.write("round\n")
        self.process.stdin.flush()
        return self.answer()

    def finish(self) -> None:
        """Ends the process and keeps its peak memory in MB (10^6 bytes)."""
        self.process.stdin.close()
        self.peak_mb = self.answer() * 1024 / 1e6
        self.process.wait()

    def kill(self) -> None:
        self.process.kill()
        self.process.wait()

    def processor_seconds(self) -> float:
        """Processor seconds of all threads of the process until now."""
        return processor_seconds(self.process.pid)


def kept_name(name: str, of: object) -> str:
    """Name of the file that stores the measurement of `of`."""
    digest = hashlib.sha256(json.dumps(of).encode("utf-8")).hexdigest()
    return f"{name}-{digest[:12]}.json"


def runs_of(program: str, words: list[str], folder: Path) -> list[tuple[Path, dict, dict]]:
    """The runs of the cells of a study, and no others in the directory: each with its settings and
    its evaluation."""
    status = subprocess.run([program, "study", "status", *words, "json=true"], cwd=folder, check=True,
                          stdout=subprocess.PIPE, text=True)
    found = []
    for cell in json.loads(status.stdout)["cells"]:
        if cell["state"] != "played":
            sys.exit(f"{cell['cell']}: expected state `played`, got `{cell['state']}`")
        run = folder / cell["run"]
        config = tomllib.loads((run / "config.toml").read_text(encoding="utf-8"))
        played = json.loads((run / "evaluation.json").read_text(encoding="utf-8"))
        found.append((run, config, played))
    return found


def kept_reply(folder: Path, name: str, command: list[str], log, of: object = None) -> dict:
    """The JSON reply of a command. `folder` stores it for the same words and the same `of`, the
    content of the files that the command reads."""
    # The paths of Python and of the script do not count.
    path = folder / kept_name(name, [command[2:], of])
    if not path.exists():
        reply = subprocess.run(command, check=True, stdout=subprocess.PIPE, stderr=log, text=True)
        json.loads(reply.stdout)  # an invalid reply is not stored
        made = path.with_suffix(".part")
        made.write_text(reply.stdout, encoding="ascii")
        os.replace(made, path)
    return json.loads(path.read_text(encoding="ascii"))


def processor_seconds(pid: int) -> float:
    """Processor seconds of all threads of a process until now."""
    with open(f"/proc/{pid}/stat", encoding="ascii") as stat:
        fields = stat.read().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def machine_seconds() -> tuple[float, float]:
    """Processor seconds of the machine since its start: busy, and total."""
    with open("/proc/stat", encoding="ascii") as stat:
        ticks = [int(field) for field in stat.readline().split()[1:9]]
    hertz = os.sysconf("SC_CLK_TCK")
    return (sum(ticks) - ticks[3] - ticks[4]) / hertz, sum(ticks) / hertz


class Watch:
    """Load of other programs from the construction of this object to `others`."""

    def __init__(self, peers: list[Peer]):
        self.peers = peers
        self.used = self.own()
        self.busy, self.total = machine_seconds()

    def own(self) -> float:
        """Processor seconds of the peers, this process, and its children that ended."""
        ended = (resource.getrusage(who) for who in (resource.RUSAGE_SELF,
                                                     resource.RUSAGE_CHILDREN))
        return (sum(usage.ru_utime + usage.ru_stime for usage in ended)
                + sum(peer.processor_seconds() for peer in self.peers))

    def others(self) -> float:
        """Fraction of the time of all processors that other programs used."""
        busy, total = machine_seconds()
        return max(0.0, busy - self.busy - self.own() + self.used) / max(total - self.total, 1e-9)


def start(named: dict[str, list[str]], log, environment: dict[str, str]) -> list[Peer]:
    """Starts one command after the other, and waits until it is ready. Raises if the first cannot
    start; reports and leaves out another that cannot start."""
    ready = []
    for name, command in named.items():
        peer = Peer(name, command, log, environment)
        try:
            peer.answer()
            ready.append(peer)
        except (RuntimeError, ValueError) as error:
            peer.kill()
            if not ready:
                raise
            print(f"left out: {error}; see {log.name}", file=sys.stderr)
    return ready


def take_turns(peers: list[Peer], rounds: int) -> int:
    """Rounds with a turn of every peer; ends all peers. Returns the number of kept rounds that other
    programs disturbed."""
    disturbed, extra = 0, EXTRA_ROUNDS
    while len(peers[0].times) < rounds:
        watch = Watch(peers)
        # Each round starts with another peer.
        first = len(peers[0].times) % len(peers)
        times = {peer: peer.round() for peer in peers[first:] + peers[:first]}
        others = watch.others()
        if others > OTHERS_ALLOWED:
            if extra > 0:
                extra -= 1
                print(f"  other programs used {100 * others:.0f} % of the machine: "
                      "repeating this round", file=sys.stderr)
                continue
            disturbed += 1
        for peer, seconds in times.items():
            peer.times.append(seconds)
    for peer in peers:
        peer.finish()
    return disturbed


def summary(values: list[float]) -> dict:
    """Median, least and largest."""
    return {"median": statistics.median(values), "least": min(values), "largest": max(values)}


def ratios(of: list[float], to: list[float]) -> dict:
    """Summary of the ratio within each round."""
    return summary([a / b for a, b in zip(of, to)])


def cell(numbers: dict, scale: float = 1.0, digits: int = 0) -> str:
    """`median (least–largest)`."""
    median, least, largest = (scale * numbers[key] for key in ("median", "least", "largest"))
    return f"{median:.{digits}f} ({least:.{digits}f}–{largest:.{digits}f})"


def table(head: list[str], rows: list[list[str]]) -> str:
    """A Markdown table; the first column is left-aligned, the others are right-aligned."""
    lines = [head, ["---"] + ["---:"] * (len(head) - 1), *rows]
    return "".join(f"| {' | '.join(line)} |\n" for line in lines)
