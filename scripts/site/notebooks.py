#!/usr/bin/env python3
"""Runs the notebooks and keeps what they give in them: `just notebooks [NAME...]`.

They run in target/notebooks, where their records and runs stay: what has run is not run again.
"""

from __future__ import annotations

import sys
import time
from pathlib import Path

import nbformat
from nbclient import NotebookClient

ROOT = Path(__file__).resolve().parents[2]
#: The most bytes of a notebook that is committed.
LARGEST = 400_000


def main(names: list[str]) -> int:
    folder = ROOT / "target/notebooks"
    folder.mkdir(parents=True, exist_ok=True)
    paths = sorted((ROOT / "docs/notebooks").glob("*.ipynb"))
    known = [path.stem for path in paths]
    if unknown := [name for name in names if name not in known]:
        print(f"no notebook `{unknown[0]}`: there are {', '.join(known)}", file=sys.stderr)
        return 2
    for path in paths:
        if names and path.stem not in names:
            continue
        notebook = nbformat.read(path, as_version=4)
        start = time.perf_counter()
        NotebookClient(notebook, timeout=1800, record_timing=False, coalesce_streams=True,
                       resources={"metadata": {"path": str(folder)}}).execute()
        # What changes from one machine to the next and says nothing.
        notebook.metadata = {"kernelspec": notebook.metadata.kernelspec,
                             "language_info": {"name": "python"}}
        for cell in notebook.cells:
            if cell.cell_type == "code":
                # What SDL and others say to the terminal.
                cell.outputs = [output for output in cell.outputs if output.get("name") != "stderr"]
        text = nbformat.writes(notebook) + "\n"
        if len(text) > LARGEST:
            print(f"{path.name}: {len(text)} bytes with what it gives, {LARGEST} at most")
            return 1
        path.write_text(text, encoding="utf-8")
        print(f"{path.name}: {time.perf_counter() - start:.0f} s, {len(text) // 1000} kB")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
