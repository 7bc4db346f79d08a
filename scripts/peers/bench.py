#!/usr/bin/env python3
"""Compares Overtone with other libraries, in turns on this machine.

    just bench-peers                      all speed parts (about half an hour)
    just bench-peers training job         some of them
    just bench-peers rollouts rounds=1    fewer rounds
    just bench-peers parity data=FOLDER   agents of Overtone and d3rlpy (about an hour)
    just bench-peers score data=FOLDER minutes=5 files=hopper_medium    time to a score
    just bench-peers earned               returns after minutes of one core (four hours of a core)

Speed parts: training (a training step), rollouts (games), robots (simulated robots), python (acting
from Python; run `just wheel` first), job (from cold files to an agent that has played).

Agent parts run only if named: parity (TD3+BC and IQL after the same number of updates), score
(seconds until an agent reaches a score: Decision Transformer, TD3+BC, IQL, and RvS in Overtone
only; `minutes=20` for each, `threads=2`) and earned (returns of the first three after `minutes=3.5`
of one core; `jobs=1` at once, kept in `runs=runs/earned`). Parity and earned reuse runs that ended.
Parity and score need data=FOLDER with files named like D4RL's (hopper_medium_replay-v2.hdf5).
Score uses files=NAME,NAME, by default medium-replay of three robots; earned uses the default
datasets of the robots.

Each part replaces its numbers in docs/results/raw/PART.json and its table on a page of docs/results.
"""

import argparse
import datetime
import json
import os
import platform
import re
import subprocess
import sys
import tempfile
from functools import partial
from pathlib import Path

import earned
import from_python
import job
import parity
import rollouts
import score
import training

HERE = Path(__file__).resolve().parent
ROOT = HERE.parent.parent
RESULTS = ROOT / "docs/results"
# Speed parts and their rounds.
PARTS = {"training": 5, "rollouts": 2, "robots": 3, "python": 12, "job": 2}
AGENTS = ["parity", "score", "earned"]
OPTIONS = {"rounds": r"[1-9]\d*", "data": r".+", "minutes": r"\d+(\.\d+)?", "files": r".+",
           "threads": r"[1-9]\d*", "jobs": r"[1-9]\d*", "runs": r".+"}
FILES = "hopper_medium_replay,walker2d_medium_replay,halfcheetah_medium_replay"
PACKAGES = ["torch", "numpy", "d3rlpy", "ale-py", "mujoco", "gymnasium"]
BENCH = ["bench", "--workspace", "--locked", "--no-run",
         "--message-format", "json-render-diagnostics", "--bench"]


def built_bench(name: str, features: str) -> str:
    """Path of an Overtone bench, compiled if necessary."""
    command = ["cargo", *BENCH, name, "--features", features]
    reply = subprocess.run(command, cwd=ROOT, check=True, stdout=subprocess.PIPE, text=True).stdout
    for line in reply.splitlines():
        message = json.loads(line)
        if (message.get("reason") == "compiler-artifact" and message.get("executable")
                and message["target"]["name"] == name):
            return message["executable"]
    raise RuntimeError(f"cargo did not print the path of the bench {name}")


def install_wheel(folder: Path) -> None:
    """Installs the wheel of `just wheel` next to the other libraries."""
    wheels = sorted(folder.glob("overtone_rl-*.whl"))
    if not wheels:
        sys.exit(f"no wheel in {folder}: run `just wheel` first")
    subprocess.run([sys.executable, "-m", "pip", "install", "--quiet", "--no-deps",
                    "--disable-pip-version-check", "--force-reinstall", str(wheels[-1])], check=True)


def machine() -> dict:
    """Processor, memory and system of this machine."""
    info = Path("/proc/cpuinfo").read_text(encoding="utf-8")

    def value_of(key: str) -> str:
        # Some processors lack some of these keys.
        found = re.search(rf"^{key}[ \t]*:[ \t]*(.*)$", info, re.M)
        return found[1] if found else ""

    flags = set((value_of("flags") or value_of("Features")).split())
    sets = ["avx2", "fma", "avx512f", "avx512_bf16", "avx512_vnni", "amx_tile", "amx_bf16"]
    memory = re.search(r"MemTotal:\s*(\d+)", Path("/proc/meminfo").read_text(encoding="ascii"))
    return {"processor": value_of("model name") or platform.machine(),
            "family_model": "/".join(value_of(key) for key in ("cpu family", "model")),
            "cores": os.cpu_count(), "instruction_sets": [x for x in sets if x in flags],
            "memory_gib": round(int(memory[1]) / 2**20), "system": platform.release()}


def versions(names: list[str]) -> dict:
    from importlib.metadata import version

    commit = subprocess.run(["git", "describe", "--always", "--dirty"], cwd=ROOT,
                            stdout=subprocess.PIPE, text=True, check=False).stdout.strip()
    compiler = subprocess.run(["rustc", "--version"], cwd=ROOT, stdout=subprocess.PIPE, text=True,
                              check=True).stdout.strip()
    packages = {name: version(name) for name in names}
    return {"overtone": commit, "rustc": compiler, "python": platform.python_version(), **packages}


def circumstances(command: str, packages: list[str] = PACKAGES) -> dict:
    """Date, command, machine and versions of a section."""
    return {"date": datetime.date.today().isoformat(), "command": command,
            "machine": machine(), "versions": versions(packages)}


def measured(part: str, section: dict) -> str:
    """The circumstances as a line under a table."""
    at, of = section["machine"], section["versions"]
    return (f"*{section['date']}, `{section['command']}`: {at['processor']} (family/model "
            f"{at['family_model']}), {at['cores']} cores, {at['memory_gib']} GiB; Overtone "
            f"{of['overtone']}, PyTorch {of['torch']} ([numbers, versions](raw/{part}.json)).*\n")


def replaced(page: str, part: str, text: str, by: str = "just bench-peers") -> str:
    """The page with another table between the marks of this part, or at the end."""
    begin, end = f"<!-- {part}: written by {by} -->", f"<!-- end of {part} -->"
    before, found, rest = page.partition(begin)
    after = rest.partition(end)[2] if found else "\n"
    before = before if found else before.rstrip() + "\n\n"
    return f"{before}{begin}\n\n{text.strip()}\n\n{end}{after}"


def text_of(part: str, section: dict | list) -> str:
    """The table of a part, with its circumstances."""
    if part == "score":
        return score.markdown(section) + "\n" + "\n".join(measured(part, each) for each in section)
    renderers = {"training": training.markdown,
                 **{part: partial(rollouts.markdown, part) for part in rollouts.TASKS},
                 "python": from_python.markdown, "job": job.markdown,
                 "parity": parity.markdown, "earned": earned.markdown}
    return renderers[part](section) + "\n" + measured(part, section)


def write(out: Path, part: str, section: dict | list) -> None:
    """Writes the numbers of a part, and its table on the page."""
    raw, page = out / f"raw/{part}.json", out / ("d3rlpy.md" if part in AGENTS else "speed.md")
    raw.parent.mkdir(parents=True, exist_ok=True)
    raw.write_text(json.dumps(section, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
    if part == "score":
        raw.with_suffix(".csv").write_text(score.csv_of(section), encoding="utf-8")
    old = page.read_text(encoding="utf-8") if page.exists() else ""
    page.write_text(replaced(old, part, text_of(part, section)), encoding="utf-8")
    print(f"{text_of(part, section)}\nwritten: {raw} and {page}")


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("words", nargs="*", metavar="PART|KEY=VALUE",
                        help=f"{', '.join(PARTS)} (the default); {', '.join(AGENTS)}; "
                             f"{', '.join(f'{key}=' for key in OPTIONS)}")
    parser.add_argument("--programs", type=Path, default=ROOT / "target/release",
                        help="directory with the program overtone")
    parser.add_argument("--features", default="", help="cargo features of the bench")
    parser.add_argument("--out", type=Path, default=RESULTS, help="directory of the results")
    chosen = parser.parse_args()
    given = dict(word.split("=", 1) for word in chosen.words if "=" in word)
    parts = [word for word in chosen.words if "=" not in word] or list(PARTS)
    if unknown := [word for word in parts if word not in PARTS and word not in AGENTS]:
        parser.error(f"unknown part `{unknown[0]}`: expected {', '.join([*PARTS, *AGENTS])}")
    for key, value in given.items():
        if key not in OPTIONS:
            parser.error(f"unknown option `{key}`: expected {', '.join(OPTIONS)}")
        if not re.fullmatch(OPTIONS[key], value) or key == "minutes" and float(value) == 0:
            parser.error(f"`{key}={value}` is not a valid value")
    if "data" not in given and (needy := [part for part in parts if part in ("parity", "score")]):
        parser.error(f"{needy[0]} needs data=FOLDER with files like hopper_medium_replay-v2.hdf5")
    rounds_of = {part: int(given.get("rounds", PARTS.get(part, 1))) for part in parts}
    data = Path(given.get("data", ".")).resolve()
    runs = Path(given.get("runs", ROOT / "runs/earned")).resolve()
    programs, out = chosen.programs.resolve(), chosen.out.resolve()
    program = str(programs / "overtone")
    os.chdir(ROOT)
    if "python" in parts:
        install_wheel(programs.parent / "wheels")
    folders = {"data": "data=FOLDER", "runs": "runs=FOLDER"}
    command = " ".join(["just bench-peers", *(folders.get(word.partition("=")[0], word)
                                              for word in chosen.words)])
    python = sys.executable
    # PyTorch's compiled code stays with the packages, so that a second run starts sooner.
    environment = {"TORCHINDUCTOR_CACHE_DIR": str(Path(sys.prefix) / "inductor")}
    with tempfile.TemporaryDirectory() as folder, open(
            Path(sys.prefix) / "bench.log", "w", encoding="utf-8") as log:
        for part in parts:
            rounds = rounds_of[part]
            if part == "score":
                measured_files = score.measure(program, python, HERE, log, data,
                                               float(given.get("minutes", 20)),
                                               given.get("files", FILES).split(","),
                                               int(given.get("threads", 2)))
                path, about = out / "raw/score.json", circumstances(command)
                earlier = json.loads(path.read_text(encoding="utf-8")) if path.exists() else []
                # Each file takes minutes, so its numbers are written at once.
                for section in measured_files:
                    write(out, part, score.joined(earlier, section | about))
                continue
            if part == "training":
                section = training.measure(built_bench("training_cost", chosen.features), python,
                                           str(HERE / "trainer.py"), log, environment, rounds,
                                           os.cpu_count())
            elif part in rollouts.TASKS:
                section = rollouts.measure(part, program, python, HERE, log, environment, rounds,
                                           Path(folder))
            elif part == "python":
                section = from_python.measure(built_bench("acting", chosen.features), program,
                                              python, HERE, log, environment, rounds,
                                              Path(folder) / part)
            elif part == "job":
                section = job.measure(program, python, str(HERE / "job_pytorch.py"), ROOT, log,
                                      environment, rounds)
            elif part == "parity":
                section = parity.measure(program, python, HERE, ROOT, log, data)
            else:
                section = earned.measure(program, python, HERE, ROOT, log, runs,
                                         float(given.get("minutes", 3.5)),
                                         int(given.get("jobs", 1)))
            write(out, part, section | circumstances(command))


if __name__ == "__main__":
    main()
