"""A process that does rounds of work on request, turns of several of them, and replies that are kept.

The lines are those of crates/train/benches/training_cost and of trainer.py: the process prints a
number when it is ready; for each line it is sent, the seconds of one step; when its input ends,
the most kilobytes (1024 bytes) it had in memory.
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

# A round in which other programs took more than this share of the machine is done again.
OTHERS_ALLOWED = 0.05
# Rounds that may be done again; after that, disturbed ones are kept and counted.
EXTRA_ROUNDS = 10
# Seconds before each turn: the threads of the one before go on spinning for a while.
SETTLING = 0.4


class Peer:
    """One variant's process. `name` labels it; what it says on stderr goes to `log`."""

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
        """Used so far by all threads of the process."""
        return processor_seconds(self.process.pid)


def kept_name(name: str, of: object) -> str:
    """The name of the file that keeps what was measured of just this."""
    digest = hashlib.sha256(json.dumps(of).encode("utf-8")).hexdigest()
    return f"{name}-{digest[:12]}.json"


def runs_of(program: str, words: list[str], folder: Path) -> list[tuple[Path, dict, dict]]:
    """The runs of a study's cells, no other that is beside them: each with its settings and its
    evaluation."""
    told = subprocess.run([program, "study", "status", *words, "--json"], cwd=folder, check=True,
                          stdout=subprocess.PIPE, text=True)
    found = []
    for cell in json.loads(told.stdout)["cells"]:
        if cell["state"] != "played":
            sys.exit(f"{cell['cell']} is not played, but {cell['state']}")
        run = folder / cell["run"]
        config = tomllib.loads((run / "config.toml").read_text(encoding="utf-8"))
        played = json.loads((run / "evaluation.json").read_text(encoding="utf-8"))
        found.append((run, config, played))
    return found


def kept_reply(folder: Path, name: str, command: list[str], log, of: object = None) -> dict:
    """What a command says in JSON, from `folder` if it said so before to the same words, and of
    the same `of`: what the files say that it reads."""
    # Where Python and the script are does not matter.
    path = folder / kept_name(name, [command[2:], of])
    if not path.exists():
        reply = subprocess.run(command, check=True, stdout=subprocess.PIPE, stderr=log, text=True)
        json.loads(reply.stdout)  # or nothing is kept
        made = path.with_suffix(".part")
        made.write_text(reply.stdout, encoding="ascii")
        os.replace(made, path)
    return json.loads(path.read_text(encoding="ascii"))


def processor_seconds(pid: int) -> float:
    """Used so far by all threads of a process."""
    with open(f"/proc/{pid}/stat", encoding="ascii") as stat:
        fields = stat.read().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def machine_seconds() -> tuple[float, float]:
    """Processor seconds since start: busy, and in all."""
    with open("/proc/stat", encoding="ascii") as stat:
        ticks = [int(field) for field in stat.readline().split()[1:9]]
    hertz = os.sysconf("SC_CLK_TCK")
    return (sum(ticks) - ticks[3] - ticks[4]) / hertz, sum(ticks) / hertz


class Watch:
    """How much of the machine other programs take between its making and `others`."""

    def __init__(self, peers: list[Peer]):
        self.peers = peers
        self.used = self.own()
        self.busy, self.total = machine_seconds()

    def own(self) -> float:
        """Processor seconds of the peers, of this process, and of its children that ended."""
        ended = (resource.getrusage(who) for who in (resource.RUSAGE_SELF,
                                                     resource.RUSAGE_CHILDREN))
        return (sum(usage.ru_utime + usage.ru_stime for usage in ended)
                + sum(peer.processor_seconds() for peer in self.peers))

    def others(self) -> float:
        """Their share of all processors' time, from 0 to 1."""
        busy, total = machine_seconds()
        return max(0.0, busy - self.busy - self.own() + self.used) / max(total - self.total, 1e-9)


def start(named: dict[str, list[str]], log, environment: dict[str, str]) -> list[Peer]:
    """Starts each command, one after the other, and waits until it is ready. Without the first
    there is nothing to compare; another that cannot start is reported and left out."""
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
    """Rounds in which every peer has its turn; ends them all. Returns how many of the rounds
    that were kept had other programs running."""
    disturbed, extra = 0, EXTRA_ROUNDS
    while len(peers[0].times) < rounds:
        watch = Watch(peers)
        # Another one begins each time.
        first = len(peers[0].times) % len(peers)
        times = {peer: peer.round() for peer in peers[first:] + peers[:first]}
        others = watch.others()
        if others > OTHERS_ALLOWED:
            if extra > 0:
                extra -= 1
                print(f"  other programs took {100 * others:.0f} % of the machine: this round "
                      "is done again", file=sys.stderr)
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
    """Of the ratio within each round."""
    return summary([a / b for a, b in zip(of, to)])


def cell(numbers: dict, scale: float = 1.0, digits: int = 0) -> str:
    """`median (least–largest)`."""
    median, least, largest = (scale * numbers[key] for key in ("median", "least", "largest"))
    return f"{median:.{digits}f} ({least:.{digits}f}–{largest:.{digits}f})"


def table(head: list[str], rows: list[list[str]]) -> str:
    """Markdown, the first column to the left and the others to the right."""
    lines = [head, ["---"] + ["---:"] * (len(head) - 1), *rows]
    return "".join(f"| {' | '.join(line)} |\n" for line in lines)
