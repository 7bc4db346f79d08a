"""Estimates of how good agents are from a recording, where nothing can be played."""

from __future__ import annotations

import json
import os
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from overtone import _program
from overtone._program import CommandOutput, Progress
from overtone._run import run_folders

if TYPE_CHECKING:
    from numpy.typing import ArrayLike

    from overtone._dataset import Dataset

#: The file of a judgement in its run.
FILE = "judgement.json"
#: The file next to it.
IMITATION = "imitation.json"

#: Methods, the deciding one first.
METHODS = ("wdr", "wpdis", "fitted_q")


@dataclass(frozen=True, repr=False)
class Judgement:
    """Estimates for the acting modes of one or several runs. An estimate is not a score."""

    #: A row for each mode: ``run``, the settings of the mode, ``method``, ``estimate`` with ``low`` and ``high``,
    #: ``difference_low`` and ``difference_high`` (from the recorded policy), ``level`` of these intervals,
    #: ``uncovered``, ``effective_episodes``, ``answer``, ``reasons``. ``pandas.DataFrame(table)`` is a table.
    table: list[dict[str, Any]]
    #: The contents of each run's ``judgement.json``.
    runs: list[dict[str, Any]]
    #: The contents of each run's ``imitation.json``: how its actions differ from recorded ones.
    imitations: list[dict[str, Any]]

    def __str__(self) -> str:
        """The table of the answers, and a sentence."""
        head = ("run", "mode", "estimate", "interval", "answer")
        lines = [head, *(_line(row, self.table) for row in self.table)]
        widths = [max(map(len, column)) for column in zip(*lines)]
        text = "\n".join(
            "  ".join(cell.ljust(width) for cell, width in zip(line, widths)).rstrip()
            for line in lines
        )
        if not self.can_tell:
            sentence = "For some modes, the recording cannot tell how good they are."
        elif self.best is None:
            sentence = "No mode is better than the recorded policy."
        else:
            sentence = f"The best mode: {_mode(self.best, self.table)}. An estimate is not a score."
        return f"{text}\n{sentence}"

    __repr__ = __str__

    @property
    def best(self) -> dict[str, Any] | None:
        """The row with the highest estimate among those that are better than recorded."""
        better = [row for row in self.table if row["answer"] == "better than recorded"]
        return max(better, key=lambda row: row["estimate"], default=None)

    @property
    def can_tell(self) -> bool:
        """Whether every mode has an answer."""
        return not self.reasons

    @property
    def reasons(self) -> list[str]:
        """The checks that failed for some mode, each once."""
        return sorted({reason for row in self.table for reason in row["reasons"]})


def judge(
    runs: str | os.PathLike[str] | Sequence[str | os.PathLike[str]] | Dataset,
    dataset: str | os.PathLike[str] | None = None,
    *,
    probs: ArrayLike | None = None,
    discount: float = 0.99,
    run_dir: str | os.PathLike[str] = "runs",
    progress: Progress = "lines",
    **options: object,
) -> Judgement:
    """Judges agents by a recording, without playing (``overtone judge``).

    With ``probs``, a policy of another program is judged, such as a rule or a classifier:
    ``ov.judge(data, probs=model.predict_proba(observations))``.

    Args:
        runs: One or several runs: each a :class:`Run`, its directory, or its name in ``run_dir``. With ``probs``, the
            :class:`Dataset` or its path instead.
        dataset: A :class:`Dataset` or a path; by default the training data of each run, and only
            its held-out episodes if there are at least 20 (``train.held_out``).
        probs: ``[rows, actions]``, the policy's probability of each discrete action at each row of the dataset; or
            ``[rows]``, its probability (or density) of the recorded action, which needs ``behavior_log_probs``.
        discount: Discount of all returns.
        run_dir: The directory in which names are searched.
        progress: See :func:`train`.
        options: Every option of ``overtone judge --help``.

    Raises:
        OvertoneError: When the recording cannot be judged, for example because it has fewer than 20
            episodes or belongs to another task.
    """
    if probs is not None:
        return _judge_probs(runs, dataset, probs, discount, progress, options)
    paths = run_folders(runs, run_dir)
    words = [f"run={_program.text(paths)}"]
    if dataset is not None:
        words.append(f"dataset={_program.path_of('dataset', dataset)}")
    return _judged(words, [path / FILE for path in paths], discount, progress, options)


def _judge_probs(
    runs: object,
    dataset: object,
    probs: ArrayLike,
    discount: float,
    progress: Progress,
    options: dict[str, object],
) -> Judgement:
    """The judgement of a policy of another program."""
    if dataset is not None:
        raise TypeError("judge: give the dataset once: ov.judge(dataset, probs=...)")
    path = _program.path_of("dataset", runs)
    if np.ma.isMaskedArray(probs):
        raise ValueError("probs: a masked array. Fill its missing values, or leave these rows out of the dataset")
    array = np.asarray(probs)
    if array.dtype.kind not in "fiub":
        raise TypeError(f"probs: expected an array of numbers, got elements of type {array.dtype}")
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "probs.npy"
        np.save(file, np.ascontiguousarray(array, np.float64))
        words = [f"dataset={path}", f"probs={file}"]
        return _judged(words, [file.with_suffix(f".{FILE}")], discount, progress, options)


def _judged(
    words: list[str],
    files: list[Path],
    discount: float,
    progress: Progress,
    options: dict[str, object],
) -> Judgement:
    """What the program writes to these files."""
    words = ["judge", *words, f"discount={discount}", *_program.words(options)]
    # With strict=True, 1 says that the recording cannot tell: `can_tell` says it too.
    _program.call(words, CommandOutput(progress, None), codes=(0, 1))
    judgements = [json.loads(file.read_text(encoding="utf-8")) for file in files]
    seen = [file.with_name(IMITATION) for file in files if file.name == FILE]
    imitations = [json.loads(file.read_text(encoding="utf-8")) for file in seen if file.exists()]
    table = [row for judgement in judgements for row in _rows(judgement)]
    return Judgement(table, judgements, imitations)


def _rows(judgement: dict[str, Any]) -> list[dict[str, Any]]:
    """The table of one run."""
    rows: list[dict[str, Any]] = []
    for policy in judgement["policies"]:
        estimates = {estimate["method"]: estimate for estimate in policy["estimates"]}
        method = next((method for method in METHODS if method in estimates), None)
        estimate = estimates[method] if method else {}
        interval, difference = estimate.get("interval") or {}, estimate.get("difference") or {}
        verdict = policy["verdict"]
        reasons = verdict["cannot_tell"]["reasons"] if isinstance(verdict, dict) else []
        effective = (policy["overlap"] or {}).get("effective") or [None]
        rows.append({
            "run": judgement["run"],
            **policy["mode"],
            "method": method,
            "estimate": estimate.get("value"),
            "low": interval.get("low"),
            "high": interval.get("high"),
            "difference_low": difference.get("low"),
            "difference_high": difference.get("high"),
            "level": policy["level"],
            "uncovered": policy["uncovered"],
            "effective_episodes": effective[-1],
            "answer": "cannot tell" if reasons else verdict.replace("_", " "),
            "reasons": [reason.replace("_", " ") for reason in reasons],
        })
    return rows


def _line(row: dict[str, Any], rows: list[dict[str, Any]]) -> tuple[str, ...]:
    """A row as text: run, mode, estimate with its interval, answer."""
    numbers = (row["estimate"], row["low"], row["high"])
    estimate, low, high = ("" if number is None else f"{number:.4g}" for number in numbers)
    interval = f"[{low}, {high}]" if low or high else ""
    reasons = f": {', '.join(row['reasons'])}" if row["reasons"] else ""
    return str(row["run"]), _mode(row, rows), estimate, interval, row["answer"] + reasons


def _mode(row: dict[str, Any], rows: list[dict[str, Any]]) -> str:
    """The settings of a mode in which modes differ."""
    names = ("temperature", "return_quantile", "top_percent")
    differing = [name for name in names if len({each.get(name) for each in rows}) > 1]
    parts = [f"{name.replace('_', ' ')} {row[name]:g}" for name in differing if row.get(name)]
    return ", ".join(parts) or "the only mode"
