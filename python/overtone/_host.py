"""Where the native program finds what Python knows."""

from __future__ import annotations

import importlib.util
import os
import sys
import sysconfig
from pathlib import Path


def announce() -> None:
    """Tells the native program where MuJoCo and the starter sets are, and how it is started again
    for many runs."""
    datasets = Path(__file__).parent / "datasets"
    if "OVERTONE_PACKAGED_DATASETS" not in os.environ and datasets.is_dir():
        os.environ["OVERTONE_PACKAGED_DATASETS"] = str(datasets)
    if "OVERTONE_SITE_PACKAGES" not in os.environ:
        found = importlib.util.find_spec("mujoco")
        origin = None if found is None else found.origin
        # Where it is not, this is where it is missed.
        folder = sysconfig.get_path("purelib") if origin is None else Path(origin).parent.parent
        os.environ["OVERTONE_SITE_PACKAGES"] = str(folder)
    if "OVERTONE_PROGRAM" not in os.environ:
        name = "overtone.exe" if sys.platform == "win32" else "overtone"
        for folder in (sysconfig.get_path("scripts"), str(Path(sys.executable).parent)):
            program = Path(folder) / name
            if program.is_file():
                os.environ["OVERTONE_PROGRAM"] = str(program)
                return
