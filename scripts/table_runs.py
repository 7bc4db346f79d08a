"""Runs behind a table: those that are there, and those that must be trained.

A run counts as there if its config.toml says what the command would resolve to: the presets,
with the command's words on top. Where it was computed and kept does not matter.
"""

import math
import os
import subprocess
import sys
import tomllib
from pathlib import Path

from words import options, stop

ROOT = Path(__file__).resolve().parent.parent
PRESETS = ROOT / "crates/cli/presets"
# Keys that do not change what is trained and played. `profile=auto` is resolved by the machine.
ELSEWHERE = {"runs", "device", "resume", "profile"}
# Keys whose values have several spellings, such as bank_heist and BankHeist.
NAMES = {"task", "dataset"}
# Keys that are short for a task of a suite.
SUITES = {"game": "ale", "env": "mujoco"}
# What a kind of run has beside the defaults, and beside those in the paper profile.
OVERLAYS = {"pixels": ["pixels"], "vectors": ["vectors", "continuous"]}
# What words may say for a longer key.
SHORT = {"head": "head.kind", "attention": "attention.kind"}


def flat(table: dict, prefix: str = "") -> dict:
    """Values by dotted key."""
    values = {}
    for name, value in table.items():
        if isinstance(value, dict):
            values |= flat(value, f"{prefix}{name}.")
        else:
            values[prefix + name] = value
    return values


def read(path: Path) -> dict:
    return flat(tomllib.loads(path.read_text(encoding="utf-8")))


def plain(text: str) -> str:
    """A name in lower case, without what stands between its words."""
    return "".join(letter for letter in text.lower() if letter.isalnum())


def alike(key: str, value, text: str) -> bool:
    """Whether a key's value in a configuration is what a word says."""
    try:
        if isinstance(value, bool):
            return text == str(value).lower()
        if isinstance(value, (int, float)):
            return math.isclose(float(text.replace("_", "")), value, rel_tol=1e-6)
    except ValueError:
        return False
    return text == value or (key in NAMES and not text.startswith("/") and plain(text) == plain(value))


def known_keys(kind: str) -> dict:
    """Every key of a `kind` of run, on `pixels` or on `vectors`, with its default."""
    keys = read(PRESETS / "defaults.toml")
    for overlay in OVERLAYS[kind]:
        keys |= read(PRESETS / f"{overlay}.toml")
    return keys


def given_by(words: list[str]) -> dict:
    """Texts by full key: `game=seaquest` is `task=ale/seaquest`."""
    given = {}
    for key, text in options(words).items():
        if key in SUITES:
            key, text = "task", f"{SUITES[key]}/{text}"
        given[SHORT.get(key, key)] = text
    return given


def wanted(kind: str, words: list[str], config: dict) -> dict:
    """What a run by these words is resolved to, as texts, by a machine that chose the profile of
    `config`."""
    given = given_by(words)
    values = known_keys(kind)
    if given.get("profile", "auto") not in ("auto", config["profile"]):
        values |= {"profile": given["profile"]}
    elif config["profile"] == "paper":
        values |= read(PRESETS / f"{kind}-paper.toml")
    if given.get("preset") == "fourierformer":
        values |= read(PRESETS / "fourierformer.toml")
    texts = {key: str(value).lower() if isinstance(value, bool) else str(value) for key, value in values.items()}
    return texts | given


def differing(kind: str, words: list[str], config: dict) -> list[str]:
    """Keys in which a run is not what the words ask for. A key that the run does not have came
    later, and the run behaves as its default."""
    texts = wanted(kind, words, config)
    profile = options(words).get("profile", "auto")
    keys = set(texts) - ELSEWHERE
    different = [key for key in sorted(keys) if key in config and not alike(key, config[key], texts[key])]
    return different + (["profile"] if profile not in ("auto", config["profile"]) else [])


def check_words(kind: str, words: list[str]) -> None:
    """Ends the program where a word is about no key."""
    keys = known_keys(kind)
    for key in options(words):
        if key not in SUITES and SHORT.get(key, key) not in keys:
            stop(f"there is no option `{key}` (just train --help lists all)")


def played(runs: Path) -> list[tuple[Path, dict]]:
    """Runs in a folder that were trained and played, with their configurations."""
    folders = sorted(folder.parent for folder in runs.glob("*/config.toml"))
    return [(folder, read(folder / "config.toml")) for folder in folders if (folder / "evaluation.json").is_file()]


def find(runs: Path, kind: str, words: list[str], about: list[str]) -> Path | None:
    """The played run of these words. Ends the program where there are only runs of the same keys
    `about` and otherwise unlike."""
    given = given_by(words)
    others = []
    for folder, config in played(runs):
        if not all(key in config and alike(key, config[key], given[key]) for key in about):
            continue
        different = differing(kind, words, config)
        if not different:
            return folder
        others.append((folder, different))
    if others:
        folder, different = others[0]
        stop(f"runs in {runs} have other settings ({', '.join(different)} in {folder.name}); say runs=FOLDER")
    return None


def find_or_train(runs: Path, kind: str, words: list[str], about: list[str]) -> tuple[Path, bool]:
    """The played run of these words, trained first where it is not there; and whether it was."""
    run = find(runs, kind, words, about)
    if run is not None:
        return run, False
    program = Path(os.environ.get("CARGO_TARGET_DIR", ROOT / "target")) / "release/overtone"
    command = [program, "train", *words, f"runs={runs}"]
    code = subprocess.run(command, cwd=ROOT, check=False, stdout=sys.stderr).returncode
    if code != 0:
        # It said why.
        sys.exit(code if code > 0 else 1)
    run = find(runs, kind, words, about)
    if run is None:
        stop(f"the run that was trained in {runs} cannot be found there")
    return run, True
