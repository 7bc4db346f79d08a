#!/usr/bin/env python3
"""Is Overtone faster than what a user would pick instead? Both sides by turns, on this machine.

    just bench-peers                      all parts (about half an hour)
    just bench-peers training job         some of them
    just bench-peers rollouts rounds=1    fewer rounds
    just bench-peers parity data=FOLDER   agents of d3rlpy and of Overtone (about an hour)
    just bench-peers score data=FOLDER minutes=5 files=hopper_medium    when they play well
    just bench-peers earned               what they earn after minutes of one core (four hours of one)

Parts: training (a training step), rollouts (playing a game), robots (moving one), python (acting
from Python; it needs `just wheel` first), job (from cold files to an agent that has played). Each
part's numbers replace what an earlier run left of it in docs/results/training.json, and docs/results/training.md is written from that file.

Three parts are done when they are asked for, each with a page and numbers of its own in
docs/results: parity (TD3+BC and IQL after the same updates), score (the Decision Transformer,
TD3+BC and IQL by the clock, and RvS, here alone; `minutes=20` for each, `threads=2`) and earned
(the first three, what they return after `minutes=3.5` of one core, `jobs=1` at once, kept in
`runs=runs/earned`). A run of parity or earned that ended is not done again. Parity and score need
data=FOLDER with D4RL's files, such as hopper_medium_replay-v2.hdf5; score takes files=NAME,NAME,
medium-replay of three robots by default; earned plays the robots' default recordings.
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
# Each with its rounds.
PARTS = {"training": 5, "rollouts": 2, "robots": 3, "python": 12, "job": 2}
# Those with a page of their own.
AGENTS = {"parity": parity, "score": score, "earned": earned}
OPTIONS = {"rounds": r"[1-9]\d*", "data": r".+", "minutes": r"\d+(\.\d+)?", "files": r".+",
           "threads": r"[1-9]\d*", "jobs": r"[1-9]\d*", "runs": r".+"}
FILES = "hopper_medium_replay,walker2d_medium_replay,halfcheetah_medium_replay"
TABLE = ("<!-- table: written by just bench-peers -->", "<!-- end of the table -->")
PACKAGES = ["torch", "numpy", "d3rlpy", "ale-py", "mujoco", "gymnasium"]
BENCH = ["bench", "--workspace", "--locked", "--no-run",
         "--message-format", "json-render-diagnostics", "--bench"]


def built_bench(name: str, features: str) -> str:
    """Path of a bench that speaks for Overtone, compiled if it must be."""
    command = ["cargo", *BENCH, name, "--features", features]
    reply = subprocess.run(command, cwd=ROOT, check=True, stdout=subprocess.PIPE, text=True).stdout
    for line in reply.splitlines():
        message = json.loads(line)
        if (message.get("reason") == "compiler-artifact" and message.get("executable")
                and message["target"]["name"] == name):
            return message["executable"]
    raise RuntimeError(f"cargo did not say where the bench {name} is")


def install_wheel(folder: Path) -> None:
    """Installs the wheel of `just wheel` beside the peers."""
    wheels = sorted(folder.glob("overtone_rl-*.whl"))
    if not wheels:
        sys.exit(f"no wheel in {folder}: run `just wheel` first")
    subprocess.run([sys.executable, "-m", "pip", "install", "--quiet", "--no-deps",
                    "--disable-pip-version-check", "--force-reinstall", str(wheels[-1])], check=True)


def machine() -> dict:
    """What the numbers were measured on."""
    info = Path("/proc/cpuinfo").read_text(encoding="utf-8")

    def said(key: str) -> str:
        # Another kind of processor says other things of itself.
        found = re.search(rf"^{key}[ \t]*:[ \t]*(.*)$", info, re.M)
        return found[1] if found else ""

    flags = set((said("flags") or said("Features")).split())
    sets = ["avx2", "fma", "avx512f", "avx512_bf16", "avx512_vnni", "amx_tile", "amx_bf16"]
    memory = re.search(r"MemTotal:\s*(\d+)", Path("/proc/meminfo").read_text(encoding="ascii"))
    return {"processor": said("model name") or platform.machine(),
            "family_model": "/".join(said(key) for key in ("cpu family", "model")),
            "cores": os.cpu_count(), "instruction_sets": [x for x in sets if x in flags],
            "memory_gib": round(int(memory[1]) / 2**20), "system": platform.release()}


def versions() -> dict:
    from importlib.metadata import version

    commit = subprocess.run(["git", "describe", "--always", "--dirty"], cwd=ROOT,
                            stdout=subprocess.PIPE, text=True, check=False).stdout.strip()
    compiler = subprocess.run(["rustc", "--version"], cwd=ROOT, stdout=subprocess.PIPE, text=True,
                              check=True).stdout.strip()
    packages = {name: version(name) for name in PACKAGES}
    return {"overtone": commit, "rustc": compiler, "python": platform.python_version(), **packages}


def circumstances(command: str) -> dict:
    """When, how and on what a section is measured."""
    return {"date": datetime.date.today().isoformat(), "command": command,
            "machine": machine(), "versions": versions()}


def measured_on(section: dict) -> str:
    """The same, as a line under a table."""
    at, of = section["machine"], section["versions"]
    return (f"*Measured on {section['date']} with `{section['command']}`: {at['processor']} "
            f"(family/model {at['family_model']}), {at['cores']} cores, "
            f"{', '.join(at['instruction_sets'])}, {at['memory_gib']} GiB; Overtone "
            f"{of['overtone']}, {of['rustc']}; Python {of['python']}, PyTorch {of['torch']}, "
            f"d3rlpy {of['d3rlpy']}, ale-py {of['ale-py']}, "
            f"MuJoCo {of.get('mujoco', '-')}.*\n\n")


def measured_briefly(section: dict) -> str:
    """When and with which commit a section of the page was measured."""
    of = section["versions"]
    mujoco = f", MuJoCo {of['mujoco']}" if of.get("mujoco", "-") != "-" else ""
    return f"*{section['date']}, `{section['command']}`, Overtone {of['overtone']}{mujoco}.*\n\n"


def equipment(section: dict) -> str:
    """The machine and the versions that sections of the page share."""
    at, of = section["machine"], section["versions"]
    return (f"{at['processor']} (family/model {at['family_model']}), {at['cores']} cores, "
            f"{', '.join(at['instruction_sets'])}, {at['memory_gib']} GiB; {of['rustc']}; "
            f"Python {of['python']}, PyTorch {of['torch']}, d3rlpy {of['d3rlpy']}, "
            f"ale-py {of['ale-py']}.")


def page(results: dict) -> str:
    """docs/results/training.md."""
    answer = (training.answer(results["training"]) if "training" in results else
              "The tables have the ratios.")
    text = ("# Speed compared with PyTorch and d3rlpy\n\n"
            "**Question.** How fast are a training step, evaluation and a whole job in Overtone, "
            "compared with PyTorch and d3rlpy on a CPU?\n"
            f"**Answer.** {answer}\n"
            "**Limits.** These are ratios of a few rounds on one machine; brackets hold the least "
            "and the largest, not a confidence interval, and another machine may differ.\n\n"
            "```text\njust bench-peers\n```\n\n"
            "The programs take turns in one run on one machine. [training.json](training.json) "
            "holds the numbers. Agents are untrained, so no episode chose an acting mode.\n\n")
    renderers = {"training": training.markdown,
                 **{part: partial(rollouts.markdown, part) for part in rollouts.TASKS},
                 "python": from_python.markdown, "job": job.markdown}
    for part, render in renderers.items():
        if part in results:
            text += render(results[part]) + measured_briefly(results[part])
    shared: dict[str, list[str]] = {}
    for part in renderers:
        if part in results:
            shared.setdefault(equipment(results[part]), []).append(part)
    text += "## Machine\n\n"
    for line, parts in shared.items():
        text += (f"{', '.join(parts)}: " if len(shared) > 1 else "") + line + "\n\n"
    return text.rstrip() + "\n"


def write_table(path: Path, text: str) -> None:
    """Puts a table between its marks on a page; what people wrote around it stays."""
    begin, end = TABLE
    old = path.read_text(encoding="utf-8") if path.exists() else f"# New\n\n{begin}\n{end}\n"
    before, _, rest = old.partition(begin)
    after = rest.partition(end)[2]
    path.write_text(f"{before}{begin}\n\n{text.strip()}\n\n{end}{after}", encoding="utf-8")


def write_agents(path: Path, results: dict | list, text: str) -> None:
    """Writes a table of agents, and its numbers."""
    path.write_text(json.dumps(results, indent=1) + "\n", encoding="utf-8")
    write_table(path.with_suffix(".md"), text)


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("words", nargs="*", metavar="PART|KEY=VALUE",
                        help=f"{', '.join(PARTS)}, all of them by default; {', '.join(AGENTS)}; "
                             f"{', '.join(f'{key}=' for key in OPTIONS)}")
    parser.add_argument("--programs", type=Path, default=ROOT / "target/release",
                        help="folder of overtone")
    parser.add_argument("--features", default="", help="of cargo, for the bench")
    parser.add_argument("--out", type=Path, default=RESULTS, help="folder of the results")
    chosen = parser.parse_args()
    given = dict(word.split("=", 1) for word in chosen.words if "=" in word)
    parts = [word for word in chosen.words if "=" not in word] or list(PARTS)
    if unknown := [word for word in parts if word not in PARTS and word not in AGENTS]:
        parser.error(f"unknown part `{unknown[0]}`: {', '.join([*PARTS, *AGENTS])}")
    for key, value in given.items():
        if key not in OPTIONS:
            parser.error(f"unknown option `{key}`: {', '.join(OPTIONS)}")
        if not re.fullmatch(OPTIONS[key], value) or key == "minutes" and float(value) == 0:
            parser.error(f"`{key}={value}` is no value of {key}")
    if "data" not in given and (needy := [part for part in parts if part in ("parity", "score")]):
        parser.error(f"{needy[0]} needs data=FOLDER, where hopper_medium_replay-v2.hdf5 is")
    rounds_of = {part: int(given.get("rounds", PARTS.get(part, 1))) for part in parts}
    data = Path(given.get("data", ".")).resolve()
    runs = Path(given.get("runs", ROOT / "runs/earned")).resolve()
    programs, out = chosen.programs.resolve(), chosen.out.resolve()
    program = str(programs / "overtone")
    out.mkdir(parents=True, exist_ok=True)
    os.chdir(ROOT)
    if "python" in parts:
        install_wheel(programs.parent / "wheels")
    folders = {"data": "data=FOLDER", "runs": "runs=FOLDER"}
    told = [folders.get(word.partition("=")[0], word) for word in chosen.words]
    command = " ".join(["just bench-peers", *told])

    python, path = sys.executable, out / "training.json"
    # Compiled code is kept beside the packages: a second run starts sooner.
    environment = {"TORCHINDUCTOR_CACHE_DIR": str(Path(sys.prefix) / "inductor")}
    results = json.loads(path.read_text(encoding="utf-8")) if path.exists() else {}
    with tempfile.TemporaryDirectory() as folder, open(
            Path(sys.prefix) / "bench.log", "w", encoding="utf-8") as log:
        for part in parts:
            rounds = rounds_of[part]
            if part == "score":
                measured = score.measure(program, python, HERE, log, data,
                                         float(given.get("minutes", 20)),
                                         given.get("files", FILES).split(","),
                                         int(given.get("threads", 2)))
                own, about = out / "score.json", circumstances(command)
                earlier = json.loads(own.read_text(encoding="utf-8")) if own.exists() else []
                # Each file takes minutes: what is measured is written at once.
                for section in measured:
                    sections = score.joined(earlier, section | about)
                    write_agents(own, sections, "\n".join(
                        [score.leads(sections),
                         *(score.markdown(each) + measured_on(each) for each in sections)]))
                print(f"{score.leads(sections)}\nwritten: {own} and {own.with_suffix('.md')}")
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
            section |= circumstances(command)
            if part in AGENTS:
                own, text = out / f"{part}.json", AGENTS[part].markdown(section)
                write_agents(own, section, text + "\n" + measured_on(section))
                print(f"{text}\nwritten: {own} and {own.with_suffix('.md')}")
                continue
            results[part] = section
            path.write_text(json.dumps(results, indent=1, ensure_ascii=False) + "\n",
                            encoding="utf-8")
            path.with_suffix(".md").write_text(page(results), encoding="utf-8")
            print(page({part: section}).split("\n\n", 4)[4])
            print(f"written: {path} and {path.with_suffix('.md')}")


if __name__ == "__main__":
    main()
