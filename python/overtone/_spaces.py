"""Observations and actions of Gymnasium's spaces as Overtone's rows.

Spaces are recognised by the names of their types. Only :func:`environment_spaces` imports Gymnasium.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Mapping
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray

from overtone._arrays import array_of


def environment_spaces(task: str) -> tuple[Any, Any] | None:
    """The observation and the action space of ``gymnasium/module:Name-v0,key=value``; None if the
    task has another suite, or its environment cannot be created here."""
    suite, _, name = task.partition("/")
    if suite != "gymnasium":
        return None
    try:
        import gymnasium

        # A comma within a value is not followed by `key=`.
        environment, *settings = re.split(r",(?=\w+=)", name)
        options = {key: _value(text) for key, text in (each.split("=", 1) for each in settings)}
        made = gymnasium.make(environment, **options)
    except Exception:
        # A missing environment may raise any exception; callers do without its spaces.
        return None
    spaces = made.observation_space, made.action_space
    made.close()
    return spaces


def _value(text: str) -> Any:
    words = {"True": True, "False": False, "None": None}
    if text in words:
        return words[text]
    try:
        return json.loads(text)
    except ValueError:
        return text


def observation_rows(space: Any, values: Any, name: str = "observations") -> NDArray[Any]:
    """Observations ``[n, …]`` of a space as rows of numbers, or as images if the space is one
    image. Discrete parts become one-hot, and the parts of a Dict or Tuple are concatenated.

    Raises:
        ValueError: When they do not fit the space, or the space is not supported.
    """
    kind = _kind(space)
    if kind in ("Dict", "Tuple"):
        parts = [
            observation_rows(space.spaces[key], part, f"{name}[{key!r}]")
            for key, part in _parts(name, space, values)
        ]
        if len(parts) == 1:
            return parts[0]
        if any(part.ndim > 2 for part in parts):
            raise ValueError(f"{name}: an image next to other parts is not supported")
        return np.concatenate(parts, axis=1)
    array = array_of(name, values)
    if kind in ("Discrete", "MultiDiscrete"):
        sizes = _sizes(space)
        index = _index(name, space, array)
        ones = [np.eye(size, dtype=np.float32)[column] for size, column in zip(sizes, index.T)]
        return np.concatenate(ones, axis=1)
    if kind not in ("Box", "MultiBinary"):
        raise ValueError(f"{name}: a {kind} space is not supported")
    if array.ndim == 0 or array.size != len(array) * math.prod(space.shape):
        raise ValueError(
            f"{name}: shape {array.shape}, expected {('n', *space.shape)} as in its space"
        )
    is_picture = array.dtype == np.uint8 and len(space.shape) > 1 and kind == "Box"
    rows = array.reshape(len(array), *space.shape)
    return rows if is_picture else rows.reshape(len(array), -1)


def is_one(space: Any, value: Any) -> bool:
    """Whether this is one observation of a space, in place of a row for each agent."""
    if _kind(space) in ("Dict", "Tuple"):
        key, part = _parts("observation", space, value)[0]
        return is_one(space.spaces[key], part)
    return np.ndim(value) == len(space.shape)


def with_axis(space: Any, value: Any) -> Any:
    """One observation of a space as a batch of one."""
    if _kind(space) in ("Dict", "Tuple"):
        rows = {k: with_axis(space.spaces[k], v) for k, v in _parts("observation", space, value)}
        return rows if _kind(space) == "Dict" else tuple(rows.values())
    return array_of("observation", value)[None]


def action_rows(space: Any, values: Any, name: str = "actions") -> NDArray[Any]:
    """Actions of a space: the index of each among all, or its numbers.

    Raises:
        ValueError: When they do not fit the space, or the space is not supported.
    """
    array = array_of(name, values)
    kind = _kind(space)
    if kind in ("Discrete", "MultiDiscrete", "MultiBinary"):
        index = _index(name, space, array)
        return np.asarray(np.ravel_multi_index(tuple(index.T), tuple(_sizes(space))))
    if kind != "Box":
        raise ValueError(f"{name}: a {kind} space is not supported")
    return array.reshape(len(array), -1)


def action_arguments(space: Any) -> dict[str, Any]:
    """The arguments of ``from_arrays`` that describe a space beyond the recorded actions."""
    if _kind(space) == "Box":
        low, high = (np.asarray(bound, np.float32).reshape(-1) for bound in (space.low, space.high))
        return {"action_low": low, "action_high": high}
    if _kind(space) in ("Discrete", "MultiDiscrete", "MultiBinary"):
        return {"n_actions": int(np.prod(_sizes(space)))}
    return {}


def _kind(space: Any) -> str:
    return str(type(space).__name__)


def _parts(name: str, space: Any, values: Any) -> list[tuple[Any, Any]]:
    """The parts of a Dict, sorted by name, or of a Tuple."""
    keys: list[Any]
    if _kind(space) == "Dict":
        keys = sorted(space.spaces)
        fits = isinstance(values, Mapping) and set(keys) <= set(cast("Mapping[Any, Any]", values))
    else:
        keys = list(range(len(space.spaces)))
        fits = isinstance(values, (tuple, list)) and len(cast("list[Any]", values)) == len(keys)
    if not fits:
        kind = type(values).__name__
        raise ValueError(f"{name}: expected a {_kind(space)} of {keys}, got a {kind}")
    return [(key, values[key]) for key in keys]


def _sizes(space: Any) -> NDArray[np.int64]:
    """The number of values of each part of a space of whole numbers."""
    if _kind(space) == "MultiBinary":
        shape: tuple[int, ...] = space.shape
        return np.full(math.prod(shape), 2, np.int64)
    return np.asarray(space.n if _kind(space) == "Discrete" else space.nvec, np.int64).reshape(-1)


def _index(name: str, space: Any, array: NDArray[Any]) -> NDArray[np.int64]:
    """``[n, parts]``, whole numbers of a space, each counted from its start.

    Raises:
        ValueError: Names the first row with a number that the space does not contain.
    """
    sizes = _sizes(space)
    if array.ndim == 0 or array.size != len(array) * len(sizes):
        raise ValueError(f"{name}: shape {array.shape}, expected {len(sizes)} for each of n rows")
    start = np.zeros_like(sizes) + np.asarray(getattr(space, "start", 0)).reshape(-1)
    index = array.reshape(len(array), -1) - start
    wrong = ((index < 0) | (index >= sizes) | (index != np.trunc(index))).any(axis=1)
    if wrong.any():
        row = int(np.argmax(wrong))
        raise ValueError(f"{name}: row {row} is {array[row]}, which is not in {space}")
    return index.astype(np.int64)
