"""Datasets from files, arrays, episodes and other packages."""

from __future__ import annotations

import hashlib
import json
import os
import secrets
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, cast

import numpy as np
from numpy.typing import ArrayLike, NDArray

from overtone import _host, _overtone, _program
from overtone._arrays import array_of, column_of, flags_of, numbers_of, whole_number
from overtone._program import CommandOutput, check_task
from overtone._spaces import action_arguments, action_rows, observation_rows


#: The task of arrays without a known environment.
OWN_TASK = "own/arrays"

#: Maximum size in bytes of a dataset that ``repr`` reads.
MAX_READ = 256 << 20

#: Maximum number of discrete actions: datasets number them with 16 bits.
MAX_ACTIONS = 65535


class Dataset:
    """A dataset on the disk, in any format that Overtone reads.

    Arrays from Python are copied once, into a file that is named by their contents. So equal arrays
    are the same dataset, and a run on them is resumed.
    """

    def __init__(self, path: str | Path, *, task: str | None = None) -> None:
        self.path = Path(path)
        if not self.path.exists():
            raise FileNotFoundError(f"there is no dataset at {self.path}")
        #: The default task: its environment, or ``own/arrays`` without one; None if its files name
        #: it.
        self.task = task
        self._summary: dict[str, Any] | None = None

    def __repr__(self) -> str:
        text = f"Dataset({str(self.path)!r}"
        if self._summary is None and _bytes_of(self.path) > MAX_READ:
            return text + ")"
        try:
            summary = self.summary()
        except _overtone.OvertoneError:
            # An unreadable dataset raises its error where it is used.
            return text + ")"
        return f"{text}: {_in_words(summary)})"

    def __fspath__(self) -> str:
        return str(self.path.absolute())

    def __getstate__(self) -> dict[str, object]:
        # An absolute path is also valid in a process with another current directory.
        return {**self.__dict__, "path": self.path.absolute()}

    def __len__(self) -> int:
        """Number of steps."""
        return int(self.summary()["transitions"])

    @staticmethod
    def open(path: str | Path) -> Dataset:
        """The dataset at a path: HDF5 of D4RL, Minari or d3rlpy, ``.npz``, or a directory.

        Or by name: ``starter:seaquest`` and ``starter:hopper/switching`` are bundled starter sets;
        ``minari:mujoco/hopper/medium-v0`` is a dataset in Minari's directory.
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
        behavior_log_probs: ArrayLike | None = None,
        masks: ArrayLike | None = None,
        weights: ArrayLike | None = None,
        action_mask: ArrayLike | None = None,
        n_actions: int | None = None,
        action_low: ArrayLike | None = None,
        action_high: ArrayLike | None = None,
        pictures: bool = True,
        path: str | Path | None = None,
        task: str = OWN_TASK,
    ) -> Dataset:
        """A dataset from arrays with one row per step. The arrays are copied.

        Args:
            observations: ``[steps, …]``: numbers, or ``uint8`` images.
            actions: ``[steps]`` integers from 0 (discrete), or ``[steps, width]`` floats
                (continuous).
            rewards: ``[steps]``.
            terminations: ``[steps]``, true (or 1) where the task ended, else false (or 0);
                ``terminals`` is another name.
            truncations: ``[steps]``, true where a limit cut the episode; ``timeouts`` is another
                name. Without it, the steps after the last termination are one truncated episode.
                Required if no step terminates.
            behavior_log_probs: ``[steps]``, the log-probability of each action under the policy
                that recorded it: of a discrete action's probability, or of a continuous action's
                density. Estimates from the dataset alone use it; training does not.
            masks: ``[steps]``, 0 where the task is solved although the trajectory goes on, else 1
                (OGBench's single tasks): value methods do not look behind such a step.
            weights: ``[steps]``, the factor of each step's loss, at least 0: 0 leaves the step out
                of the loss.
            action_mask: ``[steps, n_actions]``, true for the allowed discrete actions, which must
                include the recorded one.
            n_actions: Number of discrete actions; by default one more than the largest recorded
                action.
            action_low: Lower bounds of continuous actions, ``[width]`` or one number for all; by
                default the task's bounds, or without an environment the smallest recorded numbers.
            action_high: Upper bounds of continuous actions, with corresponding defaults.
            pictures: Whether bytes with rows and columns, ``[steps, height, width]``, are images.
                False: they are codes or counts, and read as numbers. If the task's environment
                returns such bytes, also set ``layout="numbers"`` in ``data`` of
                :func:`overtone.train`.
            path: Output file, ``NAME.npz``; in the user's cache directory by default.
            task: The default task for :func:`overtone.train`: the task of an environment, such as
                ``gymnasium/CartPole-v1``; or ``own/NAME``, which does not need an environment.

        Raises:
            ValueError: Names the array, and the row if there is one.

        Warns:
            OvertoneWarning: What the program says of a file with these arrays before training: when
                numbers may mean something else than their type and shape say (see :meth:`lint`).
        """
        check_task(task)
        ends = _one_of("terminations", terminations, "terminals", terminals)
        if ends is None:
            raise ValueError(
                "terminations: expected a flag for each step that is true where the task ended"
            )
        limits = _one_of("truncations", truncations, "timeouts", timeouts)
        seen = array_of("observations", observations)
        n = len(seen) if seen.ndim else 0
        if n == 0:
            raise ValueError("observations: expected at least one row")
        if seen.ndim == 1:
            if seen.dtype.kind in "biu":
                raise ValueError(
                    "observations: one whole number for each step. If it names a state, pass "
                    "numpy.eye(n_states)[observations]; if it is a quantity, observations[:, None]"
                )
            seen = seen[:, None]
        _check_flat({"rewards": rewards, "terminations": ends, "truncations": limits})
        seen = numbers_of("observations", seen)
        if not pictures:
            seen = seen.reshape(n, -1)
        arrays: dict[str, NDArray[Any]] = {
            "observations": seen,
            "actions": _actions(actions),
            "rewards": numbers_of("rewards", column_of("rewards", array_of("rewards", rewards))),
            "terminals": flags_of("terminations", ends),
            "timeouts": flags_of("truncations", np.zeros(n, bool) if limits is None else limits),
        }
        if behavior_log_probs is not None:
            # The program refuses impossible ones.
            log_probs = array_of("behavior_log_probs", behavior_log_probs)
            if log_probs.ndim == 2 and log_probs.shape[1] > 1:
                raise ValueError(
                    f"behavior_log_probs: expected one for each step, got shape {log_probs.shape}. "
                    "Use those of the recorded actions, log_probs[numpy.arange(len(actions)), actions]"
                )
            arrays["behavior_log_probs"] = column_of("behavior_log_probs", log_probs)
        for name, values in (("masks", masks), ("weights", weights)):
            if values is not None:
                arrays[name] = column_of(name, array_of(name, values))
        if action_mask is not None:
            arrays["action_mask"] = array_of("action_mask", action_mask)
        _check_lengths(arrays)
        if limits is None and not arrays["terminals"].any():
            raise ValueError(
                "truncations: no step terminates. Set a flag where a limit cut an episode (one "
                "flag at the last step, if all rows are one episode)"
            )
        if limits is not None and not (arrays["terminals"] | arrays["timeouts"]).any():
            _host.warn(
                "truncations: no flag is set, so all rows are one unfinished episode, which "
                'training drops: set the flag of the last step, or train with data={"fragment": '
                '"keep"} (data__fragment="keep")'
            )
        if limits is None and not arrays["terminals"][-1]:
            arrays["timeouts"][-1] = True
        arrays |= _spaces(arrays["actions"], n_actions, action_low, action_high)
        place, warnings = _written(arrays, path, task)
        for warning in warnings:
            _host.warn(warning)
        return Dataset(place, task=task)

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
        """A dataset from episodes: mappings (or objects) with ``observations``, ``actions``,
        ``rewards`` and ``terminations`` or ``terminated``; or with imitation's names ``obs``,
        ``acts``, ``rews`` and ``terminal``.

        ``truncations`` or ``truncated`` are optional: an episode that does not terminate counts as
        cut. A final observation after the last action is left out. ``behavior_log_probs`` is
        optional; if an episode lacks it, the dataset does not have it. ``masks``, ``weights`` and
        ``action_mask`` are optional, and 1 in episodes without them. Other arguments are those of :meth:`from_arrays`.

        Raises:
            ValueError: Names the array, with the episode or the row.
        """
        parts: dict[str, list[NDArray[Any]]] = {
            name: [] for name in ("observations", "actions", "rewards", "ends", "limits")
        }
        log_probs: list[NDArray[Any] | None] = []
        optional: dict[str, list[NDArray[Any]]] = {"masks": [], "weights": []}
        allowed: list[NDArray[Any] | int] = []
        if isinstance(episodes, Mapping):
            raise ValueError("episodes: expected a list of episodes, got one. Use [episode]")
        for number, episode in enumerate(episodes):
            if episode is None or isinstance(episode, (str, bytes, list, tuple, np.ndarray)):
                kind = type(cast("object", episode)).__name__
                raise ValueError(
                    f"episode {number}: expected a dict of arrays, got a {kind}. Use "
                    '{"observations": ..., "actions": ..., "rewards": ..., "terminated": ...}'
                )
            rewards = _of_steps(episode, number, "rewards", "rews")
            rewards = numbers_of(f"episode {number}: rewards", rewards)
            n = len(rewards)
            if n == 0:
                continue
            name = f"episode {number}: observations"
            observations = array_of(name, _field(episode, number, "observations", "obs"))
            rows = len(observations) if observations.ndim else 1
            if observations.ndim == 0 or rows not in (n, n + 1):
                raise _uneven(number, "observations", rows, n, "and at most one observation more")
            actions = _episode_actions(episode, number)
            if len(actions) != n:
                raise _uneven(number, "actions", len(actions), n)
            ended = _episode_flags(episode, number, n, ENDS)
            cut = _episode_flags(episode, number, n, LIMITS)
            if ended is None:
                raise _missing(number, ENDS)
            flags, limit = np.zeros(n, bool), np.zeros(n, bool)
            flags[-1] = ended
            limit[-1] = not ended or bool(cut)
            part = {"observations": observations[:n], "actions": actions, "rewards": rewards,
                    "ends": flags, "limits": limit}
            for name, array in part.items():
                if name in ("observations", "actions"):
                    numbers_of(f"episode {number}: {name}", array)
                    _check_same_rows(f"episode {number}: {name}", array, parts[name])
                parts[name].append(array)
            log_probs.append(_episode_column(episode, number, n, "behavior_log_probs"))
            for name, columns in optional.items():
                column = _episode_column(episode, number, n, name)
                columns.append(np.ones(n, np.float32) if column is None else column)
            allowed.append(_episode_mask(episode, number, n))
        if not parts["rewards"]:
            raise ValueError("episodes: expected at least one episode with a step")
        whole = {name: np.concatenate(part) for name, part in parts.items()}
        return Dataset.from_arrays(
            whole["observations"], whole["actions"], whole["rewards"],
            whole["ends"], whole["limits"], behavior_log_probs=_joined(log_probs),
            n_actions=n_actions, action_low=action_low, action_high=action_high, path=path,
            task=task,
            **{name: np.concatenate(columns) for name, columns in optional.items()
               if any((column != 1).any() for column in columns)},
            action_mask=_joined_masks(allowed),
        )

    def summary(self) -> dict[str, Any]:
        """Number of transitions and episodes, returns, actions, and anything unusual."""
        if self._summary is None:
            text = _lines(["data", "inspect", str(self.path), "json=true"])
            summary: dict[str, Any] = json.loads(text)
            self._summary = summary
            return summary
        return self._summary

    def lint(self) -> list[dict[str, Any]]:
        """Findings of a check: what was expected and found, and what to do."""
        output = CommandOutput("none", None)
        words = ["data", "lint", str(self.path), "json=true"]
        _program.call(words, output, codes=(0, 1, 2))
        return list(json.loads("\n".join(output.lines))["findings"])

    @property
    def hash(self) -> str:
        """SHA-256 of the contents, independent of the file format."""
        return _overtone.content_hash(str(self.path))

    @property
    def behavior_log_probs(self) -> NDArray[np.float32] | None:
        """``[steps]``, the log-probability of each recorded action under the policy that recorded
        it, in the order of the file; None if the dataset does not have it for every step."""
        return _overtone.behavior_log_probs(str(self.path))

    def save(self, path: str | Path, *, task: str | None = None) -> Dataset:
        """Writes the dataset as HDF5, which Minari also reads, and returns the new dataset."""
        words = ["data", "convert", str(self.path), str(path)]
        task = task or self.task
        _program.call(words + ([f"task={task}"] if task else []), CommandOutput("none", None))
        return Dataset.open(path)


def from_minari(dataset: Any, *, path: str | Path | None = None, task: str | None = None) -> Dataset:
    """A dataset from ``minari.load_dataset``, in any format that Minari reads (Arrow, Parquet,
    JPEG).

    Its spaces become Overtone's (docs/tasks.md): Discrete observations are one-hot, the parts of a
    Dict are concatenated, and MultiDiscrete actions become all combinations.

    Args:
        dataset: The result of ``minari.load_dataset``, filtered or not.
        path: See :meth:`Dataset.from_arrays`.
        task: The default task; by default its environment, or ``own/arrays`` without one.
    """
    spec = getattr(dataset, "env_spec", None)
    place = _place_of(dataset) if path is None else None
    if place is not None:
        # The program reads the files there, with Minari's whole description.
        return Dataset(place, task=OWN_TASK if task is None and spec is None else task)
    if task is None:
        task = _task_of(spec) if spec is not None else OWN_TASK
    spaces: dict[str, Any] = {}
    acted = getattr(dataset, "action_space", None)
    if acted is not None:
        spaces = action_arguments(acted)
    seen = getattr(dataset, "observation_space", None)
    odd = {"early": 0, "open": 0}

    def episodes() -> Iterable[Mapping[str, ArrayLike]]:
        for number, episode in enumerate(dataset.iterate_episodes()):
            observations = _field(episode, number, "observations")
            actions = _field(episode, number, "actions")
            ends, cuts = (
                flags_of(f"episode {number}: {name}", _field(episode, number, name))
                for name in ("terminations", "truncations")
            )
            if len(ends):
                odd["early"] += bool(ends[:-1].any() or cuts[:-1].any())
                if not (ends[-1] or (len(cuts) and cuts[-1])):
                    # Like the program: an episode without an end is left out.
                    odd["open"] += 1
                    continue
            yield {
                "observations": (
                    observations if seen is None
                    else observation_rows(seen, observations, f"episode {number}: observations")
                ),
                "actions": (
                    actions if acted is None
                    else action_rows(acted, actions, f"episode {number}: actions")
                ),
                "rewards": _field(episode, number, "rewards"),
                "behavior_log_probs": _minari_info(
                    episode, len(ends), "f", "action_log_probs", "behavior_log_probs"
                ),
                "masks": _minari_info(episode, len(ends), "fiub", "masks"),
                "weights": _minari_info(episode, len(ends), "fiub", "weights"),
                "action_mask": _minari_mask(episode, len(ends)),
                # Like the program's reader of Minari's files: an episode has one end.
                "terminations": ends[-1:],
            }

    data = Dataset.from_episodes(episodes(), path=path, task=task, **spaces)
    for name, what in (
        ("early", "episodes flagged as ended before their last step, used as a whole"),
        ("open", "episodes without a flag at their last step, left out"),
    ):
        if odd[name]:
            _host.warn(f"{what}: {odd[name]}")
    return data


def _minari_mask(episode: Any, steps: int) -> Any:
    """The allowed actions of an episode's steps, if its ``infos`` have them. Minari's own infos have
    one row more."""
    infos = episode.get("infos") if isinstance(episode, Mapping) else getattr(episode, "infos", None)
    if not isinstance(infos, Mapping):
        return None
    names = [name for name in ("action_mask", "admissible_actions") if name in infos]
    mask = np.asarray(infos[names[0]]) if names else np.zeros(0)
    return mask[:steps] if mask.ndim == 2 and len(mask) in (steps, steps + 1) else None


def _minari_info(episode: Any, steps: int, kinds: str, *names: str) -> Any:
    """The first of these ``infos`` of an episode, if it has one number of these kinds for each step, as
    the program's reader of Minari's files takes it. Minari's own infos have one row more."""
    infos = episode.get("infos") if isinstance(episode, Mapping) else getattr(episode, "infos", None)
    if not isinstance(infos, Mapping):
        return None
    values = next((infos[name] for name in names if name in infos), None)
    if np.ma.is_masked(values):
        return values  # Refused like any other masked array.
    values = np.asarray(values)
    is_read = values.dtype.kind in kinds and values.shape in ((steps,), (steps, 1))
    return values if is_read else None


def _place_of(dataset: Any) -> Path | None:
    """The directory of a Minari dataset that the program can read directly: HDF5 with all
    episodes."""
    storage = getattr(dataset, "storage", None)
    place = getattr(storage, "data_path", None)
    indices = getattr(dataset, "episode_indices", None)
    if place is None or indices is None or getattr(storage, "FORMAT", "hdf5") != "hdf5":
        return None
    if not np.array_equal(indices, np.arange(int(getattr(storage, "total_episodes", -1)))):
        return None
    return Path(place)


def from_d3rlpy(buffer: Any, *, path: str | Path | None = None, task: str = OWN_TASK) -> Dataset:
    """A dataset from a d3rlpy ``ReplayBuffer`` (or any object with such ``episodes``)."""
    info = getattr(buffer, "dataset_info", None)
    discrete = getattr(getattr(info, "action_space", None), "name", "") == "DISCRETE"
    if info is None or not discrete:
        return Dataset.from_episodes(buffer.episodes, path=path, task=task)
    # d3rlpy also allows discrete actions as real numbers.
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
    """d3rlpy's discrete actions, as whole numbers."""
    array = array_of(f"episode {number}: actions", actions)
    if array.dtype.kind != "f":
        return array
    wrong = ~(np.trunc(array) == array).reshape(len(array), -1).all(axis=1)
    if wrong.any():
        row = int(np.argmax(wrong))
        raise ValueError(
            f"episode {number}: actions: row {row} is {array[row]}, but d3rlpy calls these actions "
            "discrete. Use whole numbers"
        )
    return array.astype(np.int64)


def _bytes_of(path: Path) -> int:
    files = path.rglob("*") if path.is_dir() else [path]
    return sum(file.stat().st_size for file in files if file.is_file())


def _in_words(summary: Mapping[str, Any]) -> str:
    """A summary in one line: rows, episodes, spaces and returns."""
    parts = [f"{summary['transitions']} steps in {summary['episodes']} episodes"]
    width, listed = summary.get("observation_width"), summary.get("action_histogram")
    parts.append(f"observations {f'of {width} numbers' if width else 'images'}")
    if listed or not summary.get("actions"):
        parts.append(f"{len(listed) if listed else summary.get('action_width')} discrete actions")
    else:
        parts.append(f"actions of {summary['action_width']} numbers")
    returns = summary["returns"]
    numbers = [f"{returns[name]:g}" for name in ("min", "mean", "max") if name in returns]
    if len(numbers) == 3:
        parts.append(f"returns {numbers[0]} to {numbers[2]}, mean {numbers[1]}")
    return ", ".join(parts)


def _lines(words: list[str]) -> str:
    output = CommandOutput("none", None)
    _program.call(words, output)
    return "\n".join(output.lines)


def _check_flat(arrays: Mapping[str, ArrayLike | None]) -> None:
    """Refuses arrays with an axis for episodes or environments."""
    for name, values in arrays.items():
        shape = getattr(values, "shape", ())
        if len(shape) == 2 and 1 not in shape:
            raise ValueError(
                f"{name}: expected one for each step, got shape {tuple(shape)}. Use array[mask], the "
                "real steps of each episode, if rows are padded episodes; if the axes are [time, "
                "environment], first array.swapaxes(0, 1)"
            )


def _check_lengths(arrays: Mapping[str, NDArray[Any]]) -> None:
    """Refuses the array whose number of rows most others do not have."""
    lengths = [len(array) for array in arrays.values()]
    expected = max(lengths, key=lambda length: (lengths.count(length), length == lengths[0]))
    other = list(arrays)[lengths.index(expected)]
    for name, array in arrays.items():
        if len(array) != expected:
            way_out = ""
            if len(array) == expected + 1 and name == "observations":
                way_out = ". Leave out the row that the last action led to, observations[:-1]"
            raise ValueError(
                f"{name}: {len(array)} rows, expected {expected} as in {other}{way_out}"
            )


def _one_of(name: str, value: Any, other: str, same: Any) -> Any:
    if value is not None and same is not None:
        raise ValueError(f"{name} and {other} mean the same. Use one of them")
    return same if value is None else value


#: Names of an episode's flags that mean the same.
ENDS = ("terminations", "terminated", "terminals", "terminal")
LIMITS = ("truncations", "truncated", "timeouts")


def _of_steps(episode: Any, number: int, *names: str) -> NDArray[Any]:
    """An episode's array with one value for each step; one value is an episode of one step."""
    name = f"episode {number}: {names[0]}"
    array = array_of(name, _field(episode, number, *names))
    return column_of(name, np.atleast_1d(array))


def _episode_actions(episode: Any, number: int) -> NDArray[Any]:
    name = f"episode {number}: actions"
    actions = np.atleast_1d(array_of(name, _field(episode, number, "actions", "acts")))
    return actions[:, 0] if _is_column_of_wholes(actions) else actions


def _is_column_of_wholes(actions: NDArray[Any]) -> bool:
    return actions.ndim == 2 and actions.shape[1] == 1 and actions.dtype.kind in "iub"


def _episode_flags(episode: Any, number: int, n: int, names: tuple[str, ...]) -> bool | None:
    """Whether the last step of an episode of ``n`` has the flag with one of these names; None
    without it.

    Raises:
        ValueError: When an earlier step has it.
    """
    values = _optional_field(episode, *names)
    if values is None:
        return None
    flags = flags_of(f"episode {number}: {names[0]}", values)
    # One flag, or one for each step, or one more with a final observation.
    if len(flags) not in (1, n, n + 1):
        raise _uneven(number, names[0], len(flags), n)
    if len(flags) > 1 and flags[: n - 1].any():
        raise ValueError(
            f"episode {number}: {names[0]}: step {int(np.argmax(flags))} ends the episode, which "
            f"has {n} steps. Cut it there"
        )
    # The action ends the episode, whether its own flag or the final observation's says so.
    return bool(flags[-2:].any() if len(flags) == n + 1 else flags[-1])


def _check_same_rows(name: str, array: NDArray[Any], before: Sequence[NDArray[Any]]) -> None:
    """Refuses rows of another form than in the first episode."""
    first = before[0] if before else array
    if array.shape[1:] != first.shape[1:]:
        raise ValueError(
            f"{name}: rows of shape {array.shape[1:]}, expected {first.shape[1:]} as before"
        )
    if array.ndim > 2 and (array.dtype == np.uint8) != (first.dtype == np.uint8):
        raise ValueError(f"{name}: {array.dtype}, expected {first.dtype} as before")


def _episode_column(episode: Any, number: int, steps: int, name: str) -> NDArray[Any] | None:
    """The optional array ``name`` of an episode, one number for each step."""
    if _optional_field(episode, name) is None:
        return None
    array = _of_steps(episode, number, name)
    if len(array) != steps:
        raise _uneven(number, name, len(array), steps)
    return array


def _episode_mask(episode: Any, number: int, steps: int) -> NDArray[Any] | int:
    """The allowed actions of an episode, ``[steps, n_actions]``; without them the number of steps."""
    values = _optional_field(episode, "action_mask", "admissible_actions")
    if values is None:
        return steps
    mask = array_of(f"episode {number}: action_mask", values)
    if mask.ndim != 2 or len(mask) != steps:
        raise ValueError(
            f"episode {number}: action_mask: shape {mask.shape}, expected {(steps, 'n_actions')}"
        )
    return mask


def _joined_masks(parts: Sequence[NDArray[Any] | int]) -> NDArray[Any] | None:
    """The allowed actions of all episodes; all actions in an episode without masks."""
    width = next((part.shape[1] for part in parts if not isinstance(part, int)), None)
    if width is None:
        return None
    return np.concatenate([
        np.ones((part, width), bool) if isinstance(part, int) else part for part in parts
    ])


def _joined(parts: Sequence[NDArray[Any] | None]) -> NDArray[Any] | None:
    """All parts in one array; None if one is missing."""
    there = [part for part in parts if part is not None]
    return np.concatenate(there) if len(there) == len(parts) else None


def _actions(values: ArrayLike) -> NDArray[Any]:
    array = array_of("actions", values)
    if _is_column_of_wholes(array):
        array = array[:, 0]
    if array.ndim == 1 and array.dtype.kind in "iub":
        if array.size and int(array.min()) < 0:
            raise ValueError(f"actions: row {int(np.argmin(array))} is {array.min()}, below 0")
        if array.size and int(array.max()) >= MAX_ACTIONS:
            raise ValueError(
                f"actions: row {int(np.argmax(array))} is {array.max()}, but at most {MAX_ACTIONS} "
                "discrete actions are supported"
            )
        return np.ascontiguousarray(array, dtype=np.int64)
    if array.ndim == 1:
        array = array[:, None]
    array = numbers_of("actions", array)
    return array.reshape(len(array), -1)


def _spaces(
    actions: NDArray[Any],
    n_actions: int | None,
    low: ArrayLike | None,
    high: ArrayLike | None,
) -> dict[str, NDArray[Any]]:
    """The action space beyond the recorded actions, as arrays of the file."""
    if (low is None) != (high is None):
        raise ValueError("action_low and action_high: set both")
    if actions.ndim == 1:
        if low is not None:
            raise ValueError(
                "action_low: applies only to continuous actions, and these are discrete. Use "
                "actions.astype(float), or leave the bounds out"
            )
        if n_actions is None:
            return {}
        n_actions = whole_number("n_actions", n_actions)
        if n_actions < 1:
            raise ValueError(f"n_actions={n_actions}: expected at least 1")
        if n_actions > MAX_ACTIONS:
            raise ValueError(
                f"n_actions={n_actions}: at most {MAX_ACTIONS} discrete actions are supported"
            )
        if n_actions <= int(actions.max()):
            raise ValueError(f"n_actions={n_actions}: row {int(actions.argmax())} exceeds it")
        return {"n_actions": np.array([n_actions], np.int64)}
    if n_actions is not None:
        raise ValueError(
            "n_actions: applies only to discrete actions, and these are continuous. For discrete "
            "actions, use one whole number for each step (actions.astype(int))"
        )
    if low is None or high is None:
        return {}
    width = actions.shape[1]
    bounds: dict[str, NDArray[Any]] = {}
    for name, bound in (("action_low", low), ("action_high", high)):
        values = array_of(name, bound).astype(np.float32).reshape(-1)
        if len(values) not in (1, width):
            raise ValueError(f"{name}: {len(values)} numbers, expected {width} as in actions")
        bounds[name] = np.broadcast_to(values, (width,)).copy()
        if np.isnan(bounds[name]).any():
            raise ValueError(f"{name}: expected numbers, got NaN. Use -inf or inf without a bound")
    if not (bounds["action_low"] <= bounds["action_high"]).all():
        raise ValueError("action_low: one of them is above action_high")
    return bounds


def _task_of(spec: Any) -> str:
    """The task of a Gymnasium environment."""
    kwargs = cast("Mapping[str, object]", getattr(spec, "kwargs", None) or {})
    # `render_mode` does not change the task.
    given = [f",{k}={json.dumps(v)}" for k, v in sorted(kwargs.items()) if k != "render_mode"]
    return f"gymnasium/{spec.id}{''.join(given)}"


def _field(episode: Any, number: int, *names: str) -> Any:
    value = _optional_field(episode, *names)
    if value is None:
        raise _missing(number, names)
    return value


def _missing(number: int, names: Sequence[str]) -> ValueError:
    way_out = ", true where the task ended (set truncations where a limit cut the episode)"
    return ValueError(
        f"episode {number}: {' or '.join(names)} is missing{way_out if names is ENDS else ''}"
    )


def _uneven(number: int, name: str, got: int, n: int, more: str = "") -> ValueError:
    rule = f"Use one for each step{f', {more}' if more else ''}"
    return ValueError(f"episode {number}: {name} of length {got} and rewards of length {n}. {rule}")


def _optional_field(episode: Any, *names: str) -> Any:
    """The episode's value with the first of these names that it has."""
    for name in names:
        if isinstance(episode, Mapping):
            value = cast("Mapping[str, Any]", episode).get(name)
        else:
            value = getattr(episode, name, None)
        if value is not None:
            return value
    return None


def _written(
    arrays: Mapping[str, NDArray[Any]], path: str | Path | None, task: str
) -> tuple[Path, list[str]]:
    """The file of these arrays, which is written unless it exists, and the program's warnings.

    Raises:
        ValueError: When the program cannot read the arrays.
    """
    arrays = {name: np.ascontiguousarray(array) for name, array in arrays.items()}
    if path is not None:
        place = Path(path)
        if place.suffix != ".npz":
            raise ValueError(f"path={place}: expected a name that ends in .npz")
    else:
        digest = hashlib.sha256()
        for name, array in arrays.items():
            digest.update(f"{name} {array.dtype.str} {array.shape}\n".encode())
            digest.update(array.tobytes())
        place = _host.cache() / "arrays" / f"{digest.hexdigest()[:32]}.npz"
        if place.is_file():
            return place, _warnings(place, task)
    place.parent.mkdir(parents=True, exist_ok=True)
    # Written atomically, with the permissions of the umask: `tempfile` creates files for their
    # owner only.
    begun = place.with_name(f"{secrets.token_hex(8)}.npz")
    try:
        with begun.open("xb") as file:
            np.savez(file, **cast("dict[str, Any]", arrays))
        warnings = _warnings(begun, task)
        begun.replace(place)
    except BaseException:
        begun.unlink(missing_ok=True)
        raise
    return place, warnings


def _warnings(path: Path, task: str) -> list[str]:
    """The program's warnings about the file.

    Raises:
        ValueError: When the program refuses it.
    """
    try:
        return _overtone.warnings(str(path), None if task.startswith("own/") else task)
    except _overtone.OvertoneError as error:
        raise ValueError(str(error).replace(f"{path}: ", "").replace(str(path), "data")) from None
