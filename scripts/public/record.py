"""Records or converts a public dataset, from packages alone:

    .venv-public/bin/python scripts/public/record.py SET [FOLDER]

A set has one seed, so its file is equal to the bit on every run with the packages of `requirements.txt`; the
program prints its SHA-256. Simulated sets also depend on how the processor rounds: NumPy and OpenBLAS are held
to instructions that every x86-64 processor with AVX2 has. `--list` prints the sets.
"""

from __future__ import annotations

import hashlib
import io
import os
import sys
import zipfile
from importlib import import_module
from pathlib import Path

os.environ["NPY_DISABLE_CPU_FEATURES"] = "X86_V4 AVX512_ICL AVX512_SPR"
os.environ["OPENBLAS_CORETYPE"] = "Haswell"

import numpy as np  # noqa: E402 (reads these settings)

Arrays = dict[str, np.ndarray]

#: The module, the function and the arguments that record each set.
SETS: dict[str, tuple[object, ...]] = {
    "cube-single-play": ("manipulation", "record", "cube-single", "play", 1000),
    "cube-single-play-small": ("manipulation", "record", "cube-single", "play", 100),
    "cube-single-noisy": ("manipulation", "record", "cube-single", "noisy", 300),
    "scene-play": ("manipulation", "record", "scene", "play", 300),
    "puzzle-3x3-play": ("manipulation", "record", "puzzle-3x3", "play", 300),
    "pointmaze-medium-navigate": ("maze", "record", "pointmaze-medium", 300),
    "icu-sepsis": ("patients", "record", 1500),
    "open-bandit-random-men": ("shop", "convert", "random", "men"),
    "open-bandit-bts-men": ("shop", "convert", "bts", "men"),
}


def write(path: Path, arrays: Arrays) -> None:
    """Writes an `.npz` whose bytes depend on the arrays alone: `numpy.savez` stores the time of day."""
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED, compresslevel=6) as file:
        for name, array in arrays.items():
            data = io.BytesIO()
            np.save(data, array, allow_pickle=False)
            file.writestr(zipfile.ZipInfo(f"{name}.npy"), data.getvalue(), zipfile.ZIP_DEFLATED)


def main(name: str, folder: str = "datasets/published/public") -> None:
    if name == "--list":
        print("\n".join(SETS))
        return
    if name not in SETS:
        sys.exit(f"unknown set `{name}`, expected one of {', '.join(SETS)}")
    path = Path(folder) / f"{name}.npz"
    path.parent.mkdir(parents=True, exist_ok=True)
    module, function, *arguments = SETS[name]
    arrays = getattr(import_module(str(module)), str(function))(*arguments)
    part = path.with_suffix(".part")
    write(part, arrays)
    part.replace(path)
    digest = hashlib.sha256(path.read_bytes()).hexdigest()
    print(f"{path}: {len(arrays['actions'])} rows, SHA-256 {digest}")


if __name__ == "__main__":
    main(*sys.argv[1:3] or ["--list"])
