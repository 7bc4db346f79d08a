"""Datasets: recordings that agents learn from, from files, arrays, episodes and other packages."""

from __future__ import annotations

import hashlib
import json
import math
import os
import secrets
import sys
import warnings
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, cast

import numpy as np
from numpy.typing import ArrayLike, NDArray

from overtone import _host, _overtone, _program
from overtone._program import Teller


#: What is learned from arrays where nobody says in which environment they were recorded.
OWN_TASK = "own/arrays"

#: The most bytes of a recording that is read to show it.
MOST_READ = 256 << 20

#: As many actions as a list can have: recordings number them with 16 bits.
MOST_ACTIONS = 65535


class Dataset:
    """A recording on the disk, in any format that Overtone reads.

    Arrays that come from Python are copied once, into a file that is found again by their
    contents: the same arrays are the same dataset, and a run on them is gone on with.
    """

    def __init__(self, path: str | Path, *, task: str | None = None) -> None:
        self.path = Path(path)
        if not self.path.exists():
            raise FileNotFoundError(f"there is no dataset at {self.path}")
        #: What is learned from it where nobody says it: its environment, or ``own/arrays`` where
        #: there is none; None where its files say it.
        self.task = task
        self._summary: dict[str, Any] | None = None

    def __repr__(self) -> str:
        said = f"Dataset({str(self.path)!r}"
        if self._summary is None and _bytes_of(self.path) > MOST_READ:
            return said + ")"
        try:
            told = self.summary()
        except _overtone.OvertoneError:
            # What cannot be read is said where it is used.
            return said + ")"
        return f"{said}: {_in_words(told)})"

    def __fspath__(self) -> str:
        return str(self.path.absolute())

    def __getstate__(self) -> dict[str, object]:
        # It is the same recording where another process works in another folder.
        return {**self.__dict__, "path": self.path.absolute()}

    def __len__(self) -> int:
        """Steps."""
        return int(self.summary()["transitions"])

    @staticmethod
    def open(path: str | Path) -> Dataset:
        """The recording at a path: HDF5 of D4RL, Minari or d3rlpy, ``.npz``, or a folder.

        Or by name: ``starter:seaquest``, ``starter:hopper/switching``, one of the small recordings
        that come with the package; ``minari:mujoco/hopper/medium-v0``, where Minari keeps it.
        """
        name = os.fspath(path)
        if not name.startswith(("starter:", "minari:")):
            return Dataset(path)
        _host.announce()
        found, task = _overtone.find(name)
        return Dataset(found, task=task)

    @staticmethod
    def from_arrays(
        observations: ArrayLike,
        actions: ArrayLike,
        rewards: ArrayLike,
        terminations: ArrayLike | None = None,
        truncations: ArrayLike | None = None,
        *,
        terminals: ArrayLike | None = None,
        timeouts: ArrayLike | None = None,
        n_actions: int | None = None,
        action_low: ArrayLike | None = None,
        action_high: ArrayLike | None = None,
        pictures: bool = True,
        path: str | Path | None = None,
        task: str = OWN_TASK,
    ) -> Dataset:
        """A dataset of arrays, a row for each step; they are copied.

        Args:
            observations: ``[steps, …]``: numbers, or ``uint8`` pictures.
            actions: ``[steps]`` whole numbers from 0, or ``[steps, width]`` real ones.
            rewards: ``[steps]``.
            terminations: ``[steps]``, true (or 1) where the task ended, else false (or 0);
                ``terminals`` is the same.
            truncations: ``[steps]``, true where a limit cut the episode (``timeouts`` is the same);
                without it, what comes after the last termination is one cut episode. It is needed
                where no step terminates.
            n_actions: How many actions there are to choose from; one more than the largest recorded
                by default.
            action_low: The least that each number of real-valued actions can be, ``[width]`` or one
                number for all; by default the task's bound, or without an environment the
                smallest that was recorded.
            action_high: The largest, likewise.
            pictures: Whether bytes with rows and columns, ``[steps, height, width]``, are pictures.
                False: they are codes or counts, and read as numbers; say ``layout="numbers"`` in
                ``data`` of :func:`overtone.train` where the task's environment shows such bytes.
            path: Where to write it, ``NAME.npz``; the user's folder of caches by default.
            task: What is learned from it where :func:`overtone.train` is not told: the task of an
                environment, as ``gymnasium/CartPole-v1``; or ``own/NAME``, for which no
                environment need be anywhere.

        Raises:
            ValueError: Names the array, and the row where there is one.

        Warns:
            UserWarning: Says where numbers may mean something else than their type and shape say, as
                :meth:`lint` does.
        """
        ends = _one_of("terminations", terminations, "terminals", terminals)
        if ends is None:
            raise ValueError("terminations: say where the task ended, a row for each step")
        limits = _one_of("truncations", truncations, "timeouts", timeouts)
        seen = np.asarray(observations)
        n = len(seen) if seen.ndim else 0
        if n == 0:
            raise ValueError("observations: there is no row")
        if seen.dtype == np.uint8 and seen.ndim > 2 and pictures:
            # Read in C order alone, whatever the order of the caller's array.
            seen = np.ascontiguousarray(seen)
        else:
            seen = _numbers("observations", seen)
        if seen.ndim == 1:
            seen = seen[:, None]
        if not pictures:
            seen = seen.reshape(n, -1)
        arrays: dict[str, NDArray[Any]] = {
            "observations": seen,
            "actions": _actions(actions),
            "rewards": _numbers("rewards", _column_of("rewards", np.asarray(rewards))),
            "terminals": _flags("terminations", ends),
            "timeouts": _flags("truncations", np.zeros(n, bool) if limits is None else limits),
        }
        for name, array in arrays.items():
            if len(array) != n:
                raise ValueError(f"{name}: {len(array)} rows, and observations has {n}")
        if limits is None and not arrays["terminals"].any():
            raise ValueError(
                "truncations: no step terminates, so say where a limit cut an episode (one flag at "
                "the last step, if all rows are one episode)"
            )
        if limits is not None and not (arrays["terminals"] | arrays["timeouts"]).any():
            warnings.warn(
                "truncations: no flag is set, so all rows are one unfinished episode, which "
                'training drops: set the flag of the last step, or train with data={"fragment": '
                '"keep"} (data__fragment="keep")',
                stacklevel=2,
            )
        if limits is None and not arrays["terminals"][-1]:
            arrays["timeouts"][-1] = True
        arrays |= _spaces(arrays["actions"], n_actions, action_low, action_high)
        data = Dataset(_written(arrays, path), task=task)
        data._warn()
        return data

    @staticmethod
    def from_episodes(
        episodes: Iterable[Mapping[str, ArrayLike]],
        *,
        n_actions: int | None = None,
        action_low: ArrayLike | None = None,
        action_high: ArrayLike | None = None,
        path: str | Path | None = None,
        task: str = OWN_TASK,
    ) -> Dataset:
        """A dataset of episodes: mappings (or objects) with ``observations``, ``actions``,
        ``rewards`` and ``terminations`` or ``terminated``; or, as the package imitation has them,
        ``obs``, ``acts``, ``rews`` and ``terminal``.

        An observation more than actions, where the last one led, is left out. What else can be
        given is as in :meth:`from_arrays`.

        Raises:
            ValueError: Names the array, with the episode or the row.
        """
        parts: dict[str, list[NDArray[Any]]] = {
            name: [] for name in ("observations", "actions", "rewards", "ends", "limits")
        }
        for number, episode in enumerate(episodes):
            earned = np.atleast_1d(np.asarray(_field(episode, number, "rewards", "rews")))
            rewards = _column_of(f"episode {number}: rewards", earned)
            n = len(rewards)
            if n == 0:
                continue
            observations = np.asarray(_field(episode, number, "observations", "obs"))
            if len(observations) not in (n, n + 1):
                raise ValueError(
                    f"episode {number}: {len(observations)} observations and {n} rewards"
                )
            actions = np.atleast_1d(np.asarray(_field(episode, number, "actions", "acts")))
            if len(actions) != n:
                raise ValueError(f"episode {number}: {len(actions)} actions and {n} rewards")
            said = np.asarray(
                _field(episode, number, "terminations", "terminated", "terminals", "terminal")
            )
            ended = _flags(f"episode {number}: terminations", said.reshape(-1))
            # One flag, or one for each step; and where the last observation led, with one more.
            if len(ended) not in (1, n, n + 1):
                raise ValueError(f"episode {number}: {len(ended)} terminations and {n} rewards")
            if len(ended) > 1 and ended[: n - 1].any():
                raise ValueError(
                    f"episode {number}: terminations: step {int(np.argmax(ended))} ends it, and "
                    f"it has {n}: cut it there"
                )
            flags = np.zeros(n, bool)
            flags[-1] = ended[-1]
            parts["observations"].append(observations[:n])
            parts["actions"].append(actions)
            parts["rewards"].append(rewards)
            parts["ends"].append(flags)
            limit = np.zeros(n, bool)
            limit[-1] = not flags[-1]
            parts["limits"].append(limit)
        if not parts["rewards"]:
            raise ValueError("episodes: there is none with a step")
        whole = {name: np.concatenate(part) for name, part in parts.items()}
        return Dataset.from_arrays(
            whole["observations"], whole["actions"], whole["rewards"],
            whole["ends"], whole["limits"], n_actions=n_actions, action_low=action_low,
            action_high=action_high, path=path, task=task,
        )

    def summary(self) -> dict[str, Any]:
        """What it holds: transitions, episodes, returns, actions, and anything unusual."""
        if self._summary is None:
            told: dict[str, Any] = json.loads(_said(["data", "inspect", str(self.path), "--json"]))
            self._summary = told
            return told
        return self._summary

    def lint(self) -> list[dict[str, Any]]:
        """What is wrong with it: what was expected, what was found, what to do."""
        return self._lint([])

    def _lint(self, words: list[str]) -> list[dict[str, Any]]:
        teller = Teller("none", None)
        words = ["data", "lint", str(self.path), "--json", *words]
        _program.call(words, teller, codes=(0, 1, 2))
        return list(json.loads("\n".join(teller.lines))["findings"])

    def _warn(self) -> None:
        """Warns, at the line that made this dataset, where its numbers may mean something else."""
        of_task = self.task is not None and not self.task.startswith("own/")
        try:
            findings = self._lint(["--task", str(self.task)] if of_task else [])
        except _overtone.OvertoneError:
            # Whoever trains is told that the task cannot be asked for its spaces.
            findings = self._lint([])
        level, frame = 1, sys._getframe()
        while frame is not None and frame.f_globals.get("__package__") == __package__:
            level, frame = level + 1, frame.f_back
        for found in findings:
            if found["doubt"] and found["severity"] != "note":
                said = f"{found['dataset'] or 'flags'}: expected {found['expected']}, found "
                warnings.warn(f"{said}{found['found']}. {found['advice']}", stacklevel=level)

    @property
    def hash(self) -> str:
        """SHA-256 of what it holds, whatever file it is in."""
        return _overtone.content_hash(str(self.path))

    def save(self, path: str | Path, *, task: str | None = None) -> Dataset:
        """Writes it as one file of Overtone's own, which Minari reads, and gives that."""
        words = ["data", "convert", str(self.path), str(path)]
        task = task or self.task
        _program.call(words + (["--task", task] if task else []), Teller("none", None))
        return Dataset.open(path)


def from_minari(dataset: Any, *, path: str | Path | None = None, task: str | None = None) -> Dataset:
    """A dataset of ``minari.load_dataset``, in any form that Minari reads (Arrow, Parquet, JPEG).

    Its spaces become Overtone's (docs/tasks.md): a Discrete observation is ones and zeros, the parts
    of a Dict stand one after the other, MultiDiscrete actions are the list of all combinations.

    Args:
        dataset: What ``minari.load_dataset`` gave, filtered or not.
        path: As in :meth:`Dataset.from_arrays`.
        task: What is learned from it; its own environment by default, and ``own/arrays`` where it
            names none.
    """
    spec = getattr(dataset, "env_spec", None)
    place = _place_of(dataset) if path is None else None
    if place is not None:
        # The program reads what lies there, with all that Minari's description says of it.
        return Dataset(place, task=OWN_TASK if task is None and spec is None else task)
    if task is None:
        task = _task_of(spec) if spec is not None else OWN_TASK
    spaces: dict[str, Any] = {}
    acted = getattr(dataset, "action_space", None)
    if acted is not None:
        spaces = _action_space(acted)
    seen = getattr(dataset, "observation_space", None)
    odd = {"early": 0, "open": 0}

    def episodes() -> Iterable[Mapping[str, ArrayLike]]:
        for number, episode in enumerate(dataset.iterate_episodes()):
            observations = _field(episode, number, "observations")
            actions = _field(episode, number, "actions")
            ends = np.asarray(_field(episode, number, "terminations")).reshape(-1)
            limits = _field(episode, number, "truncations")
            cuts = np.asarray(limits).reshape(-1)
            if len(ends):
                odd["early"] += bool(ends[:-1].any() or cuts[:-1].any())
                if not (ends[-1] or (len(cuts) and cuts[-1])):
                    # As the program: an episode that nothing ended is left out.
                    odd["open"] += 1
                    continue
            yield {
                "observations": observations if seen is None else _observed(seen, observations),
                "actions": actions if acted is None else _acted(acted, actions),
                "rewards": _field(episode, number, "rewards"),
                # As the program reads Minari's files: an episode is a whole.
                "terminations": ends[-1:],
            }

    data = Dataset.from_episodes(episodes(), path=path, task=task, **spaces)
    for name, what in (
        ("early", "episodes flagged as ended before their last step, taken as whole"),
        ("open", "episodes without a flag at their last step, left out"),
    ):
        if odd[name]:
            warnings.warn(f"{what}: {odd[name]}", stacklevel=2)
    return data


def _place_of(dataset: Any) -> Path | None:
    """The folder of a dataset of Minari's that is read as it lies there: HDF5, of which no episode
    was chosen or left out."""
    storage = getattr(dataset, "storage", None)
    place = getattr(storage, "data_path", None)
    indices = getattr(dataset, "episode_indices", None)
    if place is None or indices is None or getattr(storage, "FORMAT", "hdf5") != "hdf5":
        return None
    if not np.array_equal(indices, np.arange(int(getattr(storage, "total_episodes", -1)))):
        return None
    return Path(place)


def from_d3rlpy(buffer: Any, *, path: str | Path | None = None, task: str = OWN_TASK) -> Dataset:
    """A dataset of a d3rlpy ``ReplayBuffer`` (or of anything with such ``episodes``)."""
    info = getattr(buffer, "dataset_info", None)
    discrete = getattr(getattr(info, "action_space", None), "name", "") == "DISCRETE"
    if info is None or not discrete:
        return Dataset.from_episodes(buffer.episodes, path=path, task=task)
    # d3rlpy takes a list of actions in real numbers, too.
    episodes = [
        {
            "observations": _field(episode, number, "observations"),
            "actions": _whole(number, _field(episode, number, "actions")),
            "rewards": _field(episode, number, "rewards"),
            "terminated": _field(episode, number, "terminated", "terminations"),
        }
        for number, episode in enumerate(buffer.episodes)
    ]
    n_actions = int(info.action_size)
    return Dataset.from_episodes(episodes, n_actions=n_actions, path=path, task=task)


def _whole(number: int, actions: ArrayLike) -> NDArray[Any]:
    """Actions that d3rlpy calls discrete, as whole numbers."""
    array = np.asarray(actions)
    if array.dtype.kind != "f":
        return array
    wrong = ~(np.trunc(array) == array).reshape(len(array), -1).all(axis=1)
    if wrong.any():
        row = int(np.argmax(wrong))
        raise ValueError(
            f"episode {number}: actions: row {row} is {array[row]}, and d3rlpy calls these actions "
            "discrete: give whole numbers"
        )
    return array.astype(np.int64)


def from_pandas(
    frame: Any,
    *,
    episode: str,
    observation: Sequence[str],
    action: str | Sequence[str],
    reward: str,
    termination: str | None = None,
    path: str | Path | None = None,
    task: str = OWN_TASK,
) -> Dataset:
    """A dataset of a table with a row for each step: the rows of an episode stand together, in
    order.

    Args:
        frame: A ``pandas.DataFrame``.
        episode: The column that says to which episode a row belongs.
        observation: The columns of numbers that are observed.
        action: The column of whole numbers, or the columns of real ones.
        reward: The column of rewards.
        termination: The column that is true (or 1) where the task ended, else false (or 0);
            without it every episode was cut by a limit.
        path: As in :meth:`Dataset.from_arrays`.
        task: As in :meth:`Dataset.from_arrays`.

    Raises:
        ValueError: Names the column that is missing, or the array and the row.
    """
    names = [episode, *observation, reward, *([action] if isinstance(action, str) else action)]
    names += [] if termination is None else [termination]
    missing = [name for name in names if name not in frame.columns]
    if missing:
        raise ValueError(f"frame: no column {', '.join(map(repr, missing))}")
    if len(frame) == 0:
        raise ValueError("frame: there is no row")
    ids = frame[episode].factorize()[0]
    last = np.ones(len(ids), bool)
    last[:-1] = ids[1:] != ids[:-1]
    if int(last.sum()) != len(np.unique(ids)):
        raise ValueError(
            f"frame: rows of one episode do not stand together: sort by {episode!r} and time"
        )
    ended = np.zeros(len(ids), bool)
    if termination is not None:
        ended = _flags("termination", _column(frame[termination]))
        if (ended & ~last).any():
            row = int(np.argmax(ended & ~last))
            raise ValueError(
                f"termination: row {row} ends its episode, and more rows of {episode!r} "
                f"{frame[episode].iloc[row]!r} follow: cut it there"
            )
    seen = np.column_stack([_column(frame[name]) for name in observation])
    acted = (
        _column(frame[action]) if isinstance(action, str)
        else np.column_stack([_column(frame[name]) for name in action])
    )
    return Dataset.from_arrays(
        seen, acted, _column(frame[reward]), ended, last & ~ended, path=path, task=task
    )


def _column(values: Any) -> NDArray[Any]:
    """A column of a table; one of pandas' own kinds of numbers as NumPy's, NaN where there is
    none."""
    # Kinds that may lack a value say which of NumPy's they are; they would become objects.
    kind = getattr(values.dtype, "numpy_dtype", None)
    if kind is None or kind.kind not in "biuf":
        return np.asarray(values.to_numpy())
    if values.isna().any():
        return np.asarray(values.to_numpy(np.float64, na_value=np.nan))
    return np.asarray(values.to_numpy(kind))


def _bytes_of(path: Path) -> int:
    files = path.rglob("*") if path.is_dir() else [path]
    return sum(file.stat().st_size for file in files if file.is_file())


def _in_words(told: Mapping[str, Any]) -> str:
    """A summary in a line: rows, episodes, spaces and returns."""
    said = [f"{told['transitions']} steps in {told['episodes']} episodes"]
    width, listed = told.get("observation_width"), told.get("action_histogram")
    said.append(f"observations {f'of {width} numbers' if width else 'pictures'}")
    if listed or not told.get("actions"):
        said.append(f"{len(listed) if listed else told.get('action_width')} discrete actions")
    else:
        said.append(f"actions of {told['action_width']} numbers")
    returns = told["returns"]
    numbers = [f"{returns[name]:g}" for name in ("min", "mean", "max") if name in returns]
    if len(numbers) == 3:
        said.append(f"returns {numbers[0]} to {numbers[2]}, mean {numbers[1]}")
    return ", ".join(said)


def _said(words: list[str]) -> str:
    teller = Teller("none", None)
    _program.call(words, teller)
    return "\n".join(teller.lines)


def _one_of(name: str, value: Any, other: str, same: Any) -> Any:
    if value is not None and same is not None:
        raise ValueError(f"{name} and {other} mean the same: give one of them")
    return same if value is None else value


def _column_of(name: str, array: NDArray[Any]) -> NDArray[Any]:
    """One value for each step, ``[steps]`` or ``[steps, 1]``."""
    if array.ndim == 2 and array.shape[1] == 1:
        return array[:, 0]
    if array.ndim != 1:
        raise ValueError(f"{name}: one for each step is expected, not shape {array.shape}")
    return array


def _numbers(name: str, values: ArrayLike) -> NDArray[np.float32]:
    array = np.asarray(values)
    if array.dtype.kind not in "biuf":
        raise ValueError(f"{name}: numbers are expected, not {array.dtype}")
    if array.ndim == 0 or 0 in array.shape[1:]:
        raise ValueError(f"{name}: a number or more for each step is expected, not {array.shape}")
    with np.errstate(over="ignore"):
        rounded = np.ascontiguousarray(array, dtype=np.float32)
    wrong = ~np.isfinite(rounded.reshape(len(rounded), -1)).all(axis=1)
    if wrong.any():
        row = int(np.argmax(wrong))
        if np.isfinite(array[row]).all():
            raise ValueError(f"{name}: row {row} is beyond float32 ({np.abs(array[row]).max():g})")
        raise ValueError(f"{name}: row {row} is not finite")
    return rounded


def _actions(values: ArrayLike) -> NDArray[Any]:
    array = np.asarray(values)
    if array.ndim == 2 and array.shape[1] == 1 and array.dtype.kind in "iub":
        array = array[:, 0]
    if array.ndim == 1 and array.dtype.kind in "iub":
        if array.size and int(array.min()) < 0:
            raise ValueError(f"actions: row {int(np.argmin(array))} is {array.min()}, below 0")
        if array.size and int(array.max()) >= MOST_ACTIONS:
            raise ValueError(
                f"actions: row {int(np.argmax(array))} is {array.max()}, and a list has at most "
                f"{MOST_ACTIONS} actions"
            )
        return np.ascontiguousarray(array, dtype=np.int64)
    if array.ndim == 1:
        array = array[:, None]
    array = _numbers("actions", array)
    return array.reshape(len(array), -1)


def _spaces(
    actions: NDArray[Any],
    n_actions: int | None,
    low: ArrayLike | None,
    high: ArrayLike | None,
) -> dict[str, NDArray[Any]]:
    """What is known of the actions beyond those that were recorded, as arrays of the file."""
    if (low is None) != (high is None):
        raise ValueError("action_low and action_high: give both")
    if actions.ndim == 1:
        if low is not None:
            raise ValueError("action_low: for real-valued actions, and these are of a list")
        if n_actions is None:
            return {}
        if n_actions > MOST_ACTIONS:
            raise ValueError(f"n_actions={n_actions}: a list has at most {MOST_ACTIONS} actions")
        if n_actions <= int(actions.max()):
            raise ValueError(f"n_actions={n_actions}: row {int(actions.argmax())} is beyond it")
        return {"n_actions": np.array([n_actions], np.int64)}
    if n_actions is not None:
        raise ValueError(
            "n_actions: for actions of a list, and these are real-valued: give whole numbers, one "
            "for each step (actions.astype(int))"
        )
    if low is None or high is None:
        return {}
    width = actions.shape[1]
    bounds: dict[str, NDArray[Any]] = {}
    for name, bound in (("action_low", low), ("action_high", high)):
        given = np.asarray(bound, np.float32).reshape(-1)
        if len(given) not in (1, width):
            raise ValueError(f"{name}: {len(given)} numbers, and actions have {width}")
        bounds[name] = np.broadcast_to(given, (width,)).copy()
    if not (bounds["action_low"] <= bounds["action_high"]).all():
        raise ValueError("action_low: one of them is above action_high")
    return bounds


def _task_of(spec: Any) -> str:
    """The task of an environment of Gymnasium's."""
    kwargs = cast("Mapping[str, object]", getattr(spec, "kwargs", None) or {})
    # `render_mode` says how it was looked at.
    given = [f",{k}={json.dumps(v)}" for k, v in sorted(kwargs.items()) if k != "render_mode"]
    return f"gymnasium/{spec.id}{''.join(given)}"


def _kind(space: Any) -> str:
    """The name of a space of Gymnasium's: asked so that Gymnasium itself is not needed."""
    return str(type(space).__name__)


def _starts(space: Any) -> NDArray[np.int64]:
    sizes = _sizes(space)
    return np.zeros_like(sizes) + np.asarray(getattr(space, "start", 0)).reshape(-1)


def _sizes(space: Any) -> NDArray[np.int64]:
    """How many values each part of a space of whole numbers has."""
    if _kind(space) == "MultiBinary":
        shape: tuple[int, ...] = space.shape
        return np.full(math.prod(shape), 2, np.int64)
    return np.asarray(space.n if _kind(space) == "Discrete" else space.nvec, np.int64).reshape(-1)


def _observed(space: Any, values: Any) -> NDArray[Any]:
    """Observations of a space as rows of numbers, or as pictures where they are all of it."""
    kind = _kind(space)
    if kind in ("Dict", "Tuple"):
        named = kind == "Dict"
        keys = sorted(space.spaces) if named else range(len(space.spaces))
        parts = [_observed(space.spaces[key], values[key]) for key in keys]
        if len(parts) == 1:
            return parts[0]
        if any(part.ndim > 2 for part in parts):
            raise ValueError("observations: a picture beside other parts is not read")
        return np.concatenate(parts, axis=1)
    array = np.asarray(values)
    if kind in ("Discrete", "MultiDiscrete"):
        sizes = _sizes(space)
        index = array.reshape(len(array), -1) - _starts(space)
        ones = [np.eye(size, dtype=np.float32)[column] for size, column in zip(sizes, index.T)]
        return np.concatenate(ones, axis=1)
    if kind not in ("Box", "MultiBinary"):
        raise ValueError(f"observations: a {kind} space is not read")
    is_picture = array.dtype == np.uint8 and array.ndim > 2 and kind == "Box"
    return array if is_picture else array.reshape(len(array), -1).astype(np.float32)


def _acted(space: Any, values: Any) -> NDArray[Any]:
    """Actions of a space: the place of each in the list of all, or its numbers."""
    array = np.asarray(values)
    kind = _kind(space)
    if kind in ("Discrete", "MultiDiscrete", "MultiBinary"):
        index = array.reshape(len(array), -1) - _starts(space)
        return np.asarray(np.ravel_multi_index(tuple(index.astype(np.int64).T), tuple(_sizes(space))))
    if kind != "Box":
        raise ValueError(f"actions: a {kind} space is not read")
    return array.reshape(len(array), -1).astype(np.float32)


def _action_space(space: Any) -> dict[str, Any]:
    """What a space says of its actions beyond those that were recorded."""
    if _kind(space) == "Box":
        low, high = (np.asarray(bound, np.float32).reshape(-1) for bound in (space.low, space.high))
        return {"action_low": low, "action_high": high}
    if _kind(space) in ("Discrete", "MultiDiscrete", "MultiBinary"):
        return {"n_actions": int(np.prod(_sizes(space)))}
    return {}


def _flags(name: str, values: ArrayLike) -> NDArray[np.bool_]:
    array = _column_of(name, np.asarray(values))
    if array.dtype.kind not in "biuf":
        raise ValueError(f"{name}: true or false, 1 or 0 is expected, not {array.dtype}")
    # NaN is neither.
    wrong = (array != 0) & (array != 1)
    if wrong.any():
        row = int(np.argmax(wrong))
        raise ValueError(f"{name}: row {row} is {array[row]}, not 0 or 1")
    return array.astype(bool)


def _field(episode: Any, number: int, *names: str) -> Any:
    for name in names:
        if isinstance(episode, Mapping):
            fields = cast("Mapping[str, Any]", episode)
            if name in fields:
                return fields[name]
        elif hasattr(episode, name):
            return getattr(episode, name)
    raise ValueError(f"episode {number}: there is no {' nor '.join(names)}")


def _written(arrays: Mapping[str, NDArray[Any]], path: str | Path | None) -> Path:
    """The file of these arrays, which is written where it is not there yet."""
    if path is not None:
        place = Path(path)
        if place.suffix != ".npz":
            raise ValueError(f"path={place}: a name that ends in .npz is expected")
    else:
        digest = hashlib.sha256()
        for name, array in arrays.items():
            digest.update(f"{name} {array.dtype.str} {array.shape}\n".encode())
            digest.update(array.tobytes())
        place = _host.cache() / "arrays" / f"{digest.hexdigest()[:32]}.npz"
        if place.is_file():
            return place
    place.parent.mkdir(parents=True, exist_ok=True)
    # There as a whole or not at all, and for whom the umask lets read it: `tempfile` makes files
    # for their owner alone.
    begun = place.with_name(f"{secrets.token_hex(8)}.npz")
    try:
        with begun.open("xb") as file:
            np.savez(file, **cast("dict[str, Any]", arrays))
        _check_written(begun)
        begun.replace(place)
    except BaseException:
        begun.unlink(missing_ok=True)
        raise
    return place


def _check_written(path: Path) -> None:
    """Asks the program's reader, which decides what a recording may be.

    Raises:
        ValueError: As the reader refuses it.
    """
    try:
        _overtone.content_hash(str(path))
    except _overtone.OvertoneError as error:
        raise ValueError(str(error).replace(f"{path}: ", "").replace(str(path), "data")) from None
