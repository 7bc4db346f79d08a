"""Where the native program finds what Python knows."""

from __future__ import annotations

import contextlib
import hashlib
import importlib.util
import os
import shlex
import subprocess
import sys
import sysconfig
import tempfile
import time
from collections.abc import Generator, Sequence
from pathlib import Path

from overtone import _overtone

#: Commands that start the program again, for each run.
STARTING = {("study", "run"), ("study", "resume")}

#: Starts the program where pip has made no script that can. Python looks for the package first
#: where it is now.
LAUNCHER = """\
#!/bin/sh
# Written by overtone/_host.py for studies, which start the program again for each run.
PYTHONPATH={packages}${{PYTHONPATH:+:$PYTHONPATH}}
export PYTHONPATH
exec {python} -m overtone "$@"
"""

#: Whether threads that compute were started here, or in what this process was forked from.
_computed = False
#: Whether a fork has left those threads behind: what waits for one waits for ever.
_forked = False


def _in_child() -> None:
    global _forked
    _forked = _computed


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_in_child)


def refuse_in_child() -> None:
    """Refuses to compute where a fork has left the threads for it behind.

    Raises:
        OvertoneError: There, and says what to do.
    """
    if _forked:
        raise _overtone.OvertoneError(
            "this process was forked from one in which Overtone had computed, and has none of its "
            "threads: start workers with multiprocessing.get_context('spawn')"
        )


@contextlib.contextmanager
def noticing_threads(surely: bool = False) -> Generator[None, None, None]:
    """Around what may start threads that compute, and stay; ``surely``: around what does."""
    global _computed
    if _computed:
        yield
        return
    before = _n_threads()
    try:
        yield
    finally:
        if surely or _are_more(before):
            _computed = True


def _are_more(before: int) -> bool:
    """Whether there are more threads than before, and stay."""
    # One that has ended is counted for a moment more.
    for _ in range(50):
        if _n_threads() <= before:
            return False
        time.sleep(0.001)
    return True


def _n_threads() -> int:
    """This process's threads, those of its libraries too; 0 where the system does not tell."""
    try:
        # A folder for each, and two links of its own.
        return os.stat("/proc/self/task").st_nlink - 2
    except OSError:
        return 0



def announce(words: Sequence[str] = ()) -> None:
    """Tells the native program where MuJoCo and the starter sets are, and how it is started again
    for many runs.

    Raises:
        OvertoneError: When these ``words`` start it again, and it cannot be.
    """
    datasets = Path(__file__).parent / "datasets"
    if "OVERTONE_PACKAGED_DATASETS" not in os.environ and datasets.is_dir():
        os.environ["OVERTONE_PACKAGED_DATASETS"] = str(datasets)
    if "OVERTONE_SITE_PACKAGES" not in os.environ:
        found = importlib.util.find_spec("mujoco")
        origin = None if found is None else found.origin
        # Where it is not, this is where it is missed.
        folder = sysconfig.get_path("purelib") if origin is None else Path(origin).parent.parent
        os.environ["OVERTONE_SITE_PACKAGES"] = str(folder)
    if not os.environ.get("OVERTONE_PROGRAM"):
        program = _script()
        if program is None and tuple(words[:2]) in STARTING:
            program = _launcher()
        if program is not None:
            os.environ["OVERTONE_PROGRAM"] = str(program)


def cache() -> Path:
    """The user's folder of caches, Overtone's part of it."""
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "overtone"


def _packages() -> Path:
    """The folder in which this package is."""
    return Path(__file__).absolute().parent.parent


def _script() -> Path | None:
    """The script ``overtone`` that pip made when it put this package where it is.

    One of another installation may be another version.
    """
    packages = _packages().resolve()
    places: list[Path] = []
    for scheme in (sysconfig.get_default_scheme(), sysconfig.get_preferred_scheme("user")):
        paths = sysconfig.get_paths(scheme)
        if packages in (Path(paths["purelib"]).resolve(), Path(paths["platlib"]).resolve()):
            places.append(Path(paths["scripts"]))
    # `pip install --target`: the script finds the package where the environment says so alone.
    searched = filter(None, os.environ.get("PYTHONPATH", "").split(os.pathsep))
    if packages in [Path(folder).resolve() for folder in searched]:
        places.append(packages / "bin")
    name = "overtone.exe" if sys.platform == "win32" else "overtone"
    return next((place / name for place in places if (place / name).is_file()), None)


def _launcher() -> Path:
    """A program that is ``python -m overtone`` with this Python and this package, in the user's
    folder of caches; it was tried.

    Raises:
        OvertoneError: When there can be none.
    """
    python = sys.executable or "python"
    try:
        if sys.platform == "win32":
            raise OSError("on Windows no such program is written")
        text = LAUNCHER.format(packages=shlex.quote(str(_packages())), python=shlex.quote(python))
        digest = hashlib.sha256(text.encode()).hexdigest()[:16]
        program = cache() / "programs" / f"overtone-{digest}"
        if not program.is_file():
            _write(program, text)
        told = subprocess.run(
            [program, "--version"], stdin=subprocess.DEVNULL, capture_output=True, text=True,
            timeout=60,
        )
        if told.stdout.strip() != f"overtone {_overtone.__version__}":
            said = (told.stderr or told.stdout).strip().splitlines() or ["it says nothing"]
            raise OSError(said[-1])
    except (OSError, RuntimeError, subprocess.SubprocessError) as error:
        raise _overtone.OvertoneError(
            "a study starts the program `overtone` for each run, and there is none: pip left no "
            f"script of the package in {_packages()}, and `{python} -m overtone` cannot be used "
            f"({error}); say in OVERTONE_PROGRAM which program starts Overtone"
        ) from None
    return program


def _write(program: Path, text: str) -> None:
    """Writes a program, which is there as a whole or not at all."""
    program.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.NamedTemporaryFile("w", dir=program.parent, delete=False) as file:
        file.write(text)
    Path(file.name).chmod(0o755)
    Path(file.name).replace(program)
