#!/usr/bin/env python3
"""Runs the notebooks and stores their outputs: `just notebooks [NAME...]`.

They run in target/notebooks. Their data and runs stay there and are reused.
"""

from __future__ import annotations

import sys
import time
from pathlib import Path

import nbformat
from nbclient import NotebookClient

ROOT = Path(__file__).resolve().parents[2]
#: Maximum size of a committed notebook in bytes.
LARGEST = 400_000


def main(names: list[str]) -> int:
    folder = ROOT / "target/notebooks"
    folder.mkdir(parents=True, exist_ok=True)
    paths = sorted((ROOT / "docs/notebooks").glob("*.ipynb"))
    known = [path.stem for path in paths]
    if unknown := [name for name in names if name not in known]:
        print(f"unknown notebook `{unknown[0]}`: expected {', '.join(known)}", file=sys.stderr)
        return 2
    for path in paths:
        if names and path.stem not in names:
            continue
        notebook = nbformat.read(path, as_version=4)
        start = time.perf_counter()
        NotebookClient(notebook, timeout=1800, record_timing=False, coalesce_streams=True,
                       resources={"metadata": {"path": str(folder)}}).execute()
        # Remove metadata that depends on the machine.
        notebook.metadata = {"kernelspec": notebook.metadata.kernelspec,
                             "language_info": {"name": "python"}}
        for cell in notebook.cells:
            if cell.cell_type == "code":
                # Remove terminal output of libraries such as SDL.
                cell.outputs = [output for output in cell.outputs if output.get("name") != "stderr"]
        text = nbformat.writes(notebook) + "\n"
        if len(text) > LARGEST:
            print(f"{path.name}: {len(text)} bytes with outputs, expected at most {LARGEST}")
            return 1
        path.write_text(text, encoding="utf-8")
        print(f"{path.name}: {time.perf_counter() - start:.0f} s, {len(text) // 1000} kB")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
