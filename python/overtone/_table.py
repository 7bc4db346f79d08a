"""Datasets from tables of pandas."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from overtone._arrays import RowName, array_of, flags_of, numbers_of
from overtone._dataset import OWN_TASK, Dataset


def from_pandas(
    frame: Any,
    *,
    episode: str,
    observation: str | Sequence[str],
    action: str | Sequence[str],
    reward: str,
    termination: str | None = None,
    behavior_log_probs: str | None = None,
    masks: str | None = None,
    weights: str | None = None,
    action_mask: str | Sequence[str] | None = None,
    n_actions: int | None = None,
    action_low: ArrayLike | None = None,
    action_high: ArrayLike | None = None,
    path: str | Path | None = None,
    task: str = OWN_TASK,
) -> Dataset:
    """A dataset from a table with one row per step. The rows of an episode must be adjacent and in
    order.

    Args:
        frame: A ``pandas.DataFrame``.
        episode: The column with the episode of each row.
        observation: The column or columns of observations.
        action: The column of integers (discrete), or the columns of floats (continuous).
        reward: The column of rewards.
        termination: The column that is true (or 1) where the task ended, else false (or 0); without
            it every episode counts as truncated.
        behavior_log_probs: The column of log-probabilities of the recorded actions.
        masks: The column that is 0 where the task is solved although the episode goes on, else 1.
        weights: The column of factors of the steps' losses.
        action_mask: A column of true or false (or 1 or 0) for each discrete action, in the order of
            the actions; or one column of lists of them.
        n_actions: See :meth:`Dataset.from_arrays`, as for all following arguments.

    Raises:
        ValueError: Names the missing column, or the array and the row.
    """
    columns = getattr(frame, "columns", None)
    if columns is None or not hasattr(frame, "iloc"):
        way_out = "frame.to_pandas()" if hasattr(frame, "to_pandas") else "pandas.DataFrame(frame)"
        kind = f"{type(frame).__module__.partition('.')[0]}.{type(frame).__name__}"
        raise ValueError(f"frame: expected a pandas.DataFrame, got a {kind}. Use {way_out}")
    observation = [observation] if isinstance(observation, str) else list(observation)
    acted = [action] if isinstance(action, str) else list(action)
    allowed = [action_mask] if isinstance(action_mask, str) else list(action_mask or [])
    names = [episode, *observation, reward, *acted, *allowed]
    optional = (termination, behavior_log_probs, masks, weights)
    names += [name for name in optional if name is not None]
    missing = [name for name in names if name not in columns]
    if missing:
        in_index = set(missing) & set(frame.index.names)
        others = f". It has {', '.join(map(repr, list(columns)[:10]))}"
        raise ValueError(
            f"frame: no column {', '.join(map(repr, missing))}"
            f"{'. Use frame.reset_index()' if in_index else others}"
        )
    for name in names:
        if list(columns).count(name) > 1:
            raise ValueError(f"frame: {list(columns).count(name)} columns are named {name!r}. Rename one")
    if len(frame) == 0:
        raise ValueError("frame: expected at least one row")
    ids = frame[episode].factorize()[0]
    _check_ids(episode, np.asarray(frame[episode]))
    if (ids < 0).any():
        raise ValueError(
            f"{episode}: row {int(np.argmax(ids < 0))} has no value. Name the episode of each row"
        )

    def row_name(row: int) -> str:
        return f"row {row} (episode {frame[episode].iloc[row]})"

    last = np.ones(len(ids), bool)
    last[:-1] = ids[1:] != ids[:-1]
    if int(last.sum()) != len(np.unique(ids)):
        raise ValueError(
            f"frame: the rows of an episode are not adjacent: sort by {episode!r} and time"
        )
    ended = np.zeros(len(ids), bool)
    if termination is not None:
        ended = flags_of(_column_name(termination), frame[termination], row_name)
        if (ended & ~last).any():
            raise ValueError(
                f"{_column_name(termination)}: {row_name(int(np.argmax(ended & ~last)))} ends its "
                "episode, but more of its rows follow. Cut it there"
            )
    # One column of whole numbers is discrete.
    actions = _columns(frame, acted, row_name)
    log_probs, stops, factors = (
        None if name is None else array_of(_column_name(name), frame[name], row_name=row_name)
        for name in (behavior_log_probs, masks, weights)
    )
    return Dataset.from_arrays(
        _columns(frame, observation, row_name),
        actions[:, 0] if len(acted) == 1 and actions.shape[1] == 1 else actions,
        _columns(frame, [reward], row_name), ended, last & ~ended, behavior_log_probs=log_probs,
        masks=stops, weights=factors,
        action_mask=_columns(frame, allowed, row_name) if allowed else None,
        n_actions=n_actions, action_low=action_low, action_high=action_high, path=path, task=task,
    )


def _check_ids(episode: str, ids: NDArray[Any]) -> None:
    """Refuses real numbers so large that neighbouring whole numbers are equal."""
    if ids.dtype.kind != "f":
        return
    coarse = np.isfinite(ids) & (np.spacing(np.abs(ids)) > 1)
    if coarse.any():
        row = int(np.argmax(coarse))
        raise ValueError(
            f"{episode}: row {row} has the number {ids[row]:.0f}, but {ids.dtype} does not hold each "
            "whole number of this size, so several episodes may have become one. Use int64 where the "
            "numbers are made"
        )


def _column_name(name: str) -> str:
    return f"frame[{name!r}]"


def _columns(frame: Any, names: Sequence[str], row_name: RowName) -> NDArray[Any]:
    """``[rows, width]``, columns of numbers or of equally long lists of numbers, side by side."""
    parts = [numbers_of(_column_name(name), frame[name], row_name) for name in names]
    return parts[0] if len(parts) == 1 and parts[0].ndim > 1 else np.column_stack(parts)
