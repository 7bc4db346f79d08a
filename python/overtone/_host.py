"""Environment variables and thread checks for the native program."""

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
import warnings
from collections.abc import Generator, Sequence
from pathlib import Path

from overtone import _overtone

#: Commands that start the program again, for each run.
STARTING = {("study", "run"), ("study", "resume")}

#: A launcher of the program, if pip did not create a script. It puts this package first on Python's
#: path.
LAUNCHER = """\
#!/bin/sh
# Written by overtone/_host.py for studies, which start the program again for each run.
PYTHONPATH={packages}${{PYTHONPATH:+:$PYTHONPATH}}
export PYTHONPATH
exec {python} -m overtone "$@"
"""

#: Whether computing threads were started in this process, or in the process that it was forked
#: from.
_computed = False
#: Whether a fork lost those threads. Waiting for one of them would never end.
_forked = False


def _in_child() -> None:
    global _forked
    _forked = _computed


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_in_child)


def warn(text: str) -> None:
    """Warns at the line that called the package."""
    level, frame = 1, sys._getframe()
    while frame is not None and frame.f_globals.get("__package__") == __package__:
        level, frame = level + 1, frame.f_back
    warnings.warn(text, _overtone.OvertoneWarning, stacklevel=level)


def refuse_in_child() -> None:
    """Refuses to compute in a forked process without the computing threads.

    Raises:
        OvertoneError: In such a process, with what to do.
    """
    if _forked:
        raise _overtone.OvertoneError(
            "this process was forked after Overtone had computed, and lacks its threads. Start "
            "workers with multiprocessing.get_context('spawn')"
        )


@contextlib.contextmanager
def noticing_threads(surely: bool = False) -> Generator[None, None, None]:
    """Context that records whether computing threads were started; ``surely``: always."""
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
    """Whether there are lasting new threads."""
    # A thread that has ended is still counted for a moment.
    for _ in range(50):
        if _n_threads() <= before:
            return False
        time.sleep(0.001)
    return True


def _n_threads() -> int:
    """The number of this process's threads, including libraries' threads; 0 if unknown."""
    try:
        # A directory for each thread, and two links of its own.
        return os.stat("/proc/self/task").st_nlink - 2
    except OSError:
        return 0



def announce(words: Sequence[str] = ()) -> None:
    """Sets the native program's paths of MuJoCo, of the starter sets, and of the program for
    studies.

    Raises:
        OvertoneError: When ``words`` start a study, and no program can be started.
    """
    datasets = Path(__file__).parent / "datasets"
    if "OVERTONE_PACKAGED_DATASETS" not in os.environ and datasets.is_dir():
        os.environ["OVERTONE_PACKAGED_DATASETS"] = str(datasets)
    if "OVERTONE_SITE_PACKAGES" not in os.environ:
        found = importlib.util.find_spec("mujoco")
        origin = None if found is None else found.origin
        # Without MuJoCo, the error names this directory.
        folder = sysconfig.get_path("purelib") if origin is None else Path(origin).parent.parent
        os.environ["OVERTONE_SITE_PACKAGES"] = str(folder)
    if not os.environ.get("OVERTONE_PROGRAM"):
        program = _script()
        if program is None and tuple(words[:2]) in STARTING:
            program = _launcher()
        if program is not None:
            os.environ["OVERTONE_PROGRAM"] = str(program)


def cache() -> Path:
    """Overtone's part of the user's cache directory."""
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "overtone"


def _packages() -> Path:
    """The directory that contains this package."""
    return Path(__file__).absolute().parent.parent


def _script() -> Path | None:
    """The script ``overtone`` that pip created for this installation of the package.

    A script of another installation may have another version.
    """
    packages = _packages().resolve()
    places: list[Path] = []
    for scheme in (sysconfig.get_default_scheme(), sysconfig.get_preferred_scheme("user")):
        paths = sysconfig.get_paths(scheme)
        if packages in (Path(paths["purelib"]).resolve(), Path(paths["platlib"]).resolve()):
            places.append(Path(paths["scripts"]))
    # `pip install --target`: the script finds the package only through PYTHONPATH.
    searched = filter(None, os.environ.get("PYTHONPATH", "").split(os.pathsep))
    if packages in [Path(folder).resolve() for folder in searched]:
        places.append(packages / "bin")
    name = "overtone.exe" if sys.platform == "win32" else "overtone"
    return next((place / name for place in places if (place / name).is_file()), None)


def _launcher() -> Path:
    """A launcher of ``python -m overtone`` with this Python and this package, in the user's cache
    directory, after a test.

    Raises:
        OvertoneError: When it cannot be created or does not work.
    """
    python = sys.executable or "python"
    try:
        if sys.platform == "win32":
            raise OSError("launchers are not supported on Windows")
        text = LAUNCHER.format(packages=shlex.quote(str(_packages())), python=shlex.quote(python))
        digest = hashlib.sha256(text.encode()).hexdigest()[:16]
        program = cache() / "programs" / f"overtone-{digest}"
        if not program.is_file():
            _write(program, text)
        tested = subprocess.run(
            [program, "--version"], stdin=subprocess.DEVNULL, capture_output=True, text=True,
            timeout=60,
        )
        if tested.stdout.strip() != f"overtone {_overtone.__version__}":
            output = (tested.stderr or tested.stdout).strip().splitlines() or ["it printed nothing"]
            raise OSError(output[-1])
    except (OSError, RuntimeError, subprocess.SubprocessError) as error:
        raise _overtone.OvertoneError(
            "a study starts the program `overtone` for each run, but it is missing: pip did not "
            f"install a script for the package in {_packages()}, and `{python} -m overtone` cannot "
            f"be used ({error}). Set OVERTONE_PROGRAM to the program that starts Overtone"
        ) from None
    return program


def _write(program: Path, text: str) -> None:
    """Writes a program atomically."""
    program.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.NamedTemporaryFile("w", dir=program.parent, delete=False) as file:
        file.write(text)
    Path(file.name).chmod(0o755)
    Path(file.name).replace(program)
