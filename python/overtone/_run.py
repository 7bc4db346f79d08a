"""Runs: training, what it wrote, and playing what was trained."""

from __future__ import annotations

import csv
import json
import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from overtone import _program
from overtone._dataset import Dataset
from overtone._overtone import OvertoneError
from overtone._program import Callback, Progress, Teller

if TYPE_CHECKING:
    from overtone._policy import Policy


class Run:
    """A training run: a folder with its settings, metrics, checkpoints and evaluations.

    Args:
        path: The folder, or the name that it has in ``run_dir``.
        run_dir: Where a name is looked for.
    """

    def __init__(
        self, path: str | os.PathLike[str], run_dir: str | os.PathLike[str] = "runs"
    ) -> None:
        self.path = _found(path, run_dir)

    def __fspath__(self) -> str:
        return str(self.path)

    def __repr__(self) -> str:
        return f"Run({str(self.path)!r})"

    def __getstate__(self) -> dict[str, Path]:
        # It is the same run where another process works in another folder.
        return {"path": self.path.absolute()}

    @property
    def settings(self) -> str:
        """The run's settings, as TOML."""
        return (self.path / "config.toml").read_text(encoding="utf-8")

    @property
    def checkpoints(self) -> list[int]:
        """The updates after which the checkpoints were written that are there, ascending."""
        folder = self.path / "checkpoints"
        names = [entry.name for entry in folder.iterdir()] if folder.is_dir() else []
        steps = [name.removeprefix("step-") for name in names if name.startswith("step-")]
        return sorted(int(step) for step in steps if step.isdigit())

    def metrics(self) -> dict[str, list[float]]:
        """The curves of training, a list for each column of ``metrics.csv``."""
        return _columns(self.path / "metrics.csv")

    def evaluations(self) -> dict[str, Any]:
        """Every evaluation that was written into the run, by its file's name."""
        paths = _reports([self.path])
        return {path.stem: json.loads(path.read_text(encoding="utf-8")) for path in paths}

    def resume(
        self, *, progress: Progress = "auto", callback: Callback | None = None
    ) -> Run:
        """Goes on where training stopped, to the same bits as if it had not."""
        _program.call(["resume", f"run={self.path}"], Teller(progress, callback))
        return self

    def policy(
        self,
        target_return: float | str | None = None,
        *,
        n_agents: int = 1,
        checkpoint: str | int = "last",
        deterministic: bool | None = None,
        temperature: float | None = None,
        return_quantile: float | None = None,
        top_percent: float | None = None,
        seed: int = 0,
        device: str = "cpu",
    ) -> Policy:
        """The run's agent, ready to act: see :class:`overtone.Policy`."""
        from overtone._policy import Policy

        return Policy(
            self.path,
            target_return,
            n_agents=n_agents,
            checkpoint=checkpoint,
            deterministic=deterministic,
            temperature=temperature,
            return_quantile=return_quantile,
            top_percent=top_percent,
            seed=seed,
            device=device,
        )


def _found(run: str | os.PathLike[str], run_dir: str | os.PathLike[str]) -> Path:
    """The folder of a run, by its path or its name, as the program finds it.

    Raises:
        OvertoneError: When there is no such run.
    """
    places = [Path(run), Path(run_dir) / run]
    for place in places:
        if (place / "config.toml").is_file():
            return place
    for place in places:
        if place.is_dir():
            raise OvertoneError(f"{place} is no run: it has no config.toml")
    raise OvertoneError(f"there is no run `{os.fspath(run)}`, here or in {os.fspath(run_dir)}")


def _columns(path: Path) -> dict[str, list[float]]:
    with path.open(encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))
    names = rows[0].keys() if rows else ()
    return {name: [float(row[name] or "nan") for row in rows] for name in names}


#: Settings that name the task.
TASK_KEYS = frozenset({"task", "game", "env", "gymnasium", "own"})


def train(
    data: str | os.PathLike[str] | Mapping[str, object] | None = None,
    task: str | None = None,
    *,
    run_dir: str | Path = "runs",
    progress: Progress = "auto",
    callback: Callback | None = None,
    **settings: object,
) -> Run:
    """Trains an agent, and plays it where its task can be played.

    Args:
        data: A :class:`overtone.Dataset`, the path of a recording, or a name that
            :meth:`overtone.Dataset.open` takes (``"starter:…"``, ``"minari:…"``); ``dataset=`` is
            the same. Without it, what ``settings`` name (``game="seaquest"``; ``env="hopper",
            dataset="medium"``). A dictionary is no recording: it is the section of settings
            ``data``, as ``data={"top_percent": 50}``; the recording is then ``dataset=``.
        task: What is learned, as ``suite/name``; a dataset that says so needs none. Data without
            an environment is ``own/NAME``: it is trained on and not played.
        run_dir: The folder in which the run gets its own. A run of exactly these settings that
            was not finished is gone on with. The program calls it ``runs``, which is the same.
        progress: ``"bar"``, ``"lines"``, ``"none"``, or ``"auto"``: a bar where someone looks.
        callback: Called with each row of progress, on this thread; what it raises stops training
            after a checkpoint, and is raised again.
        settings: Every option of ``overtone train --help``: see :func:`overtone.words`.

    Raises:
        OvertoneError: In one sentence, what is wrong and what to do.
        ValueError: When two recordings are given.
        KeyboardInterrupt: After Ctrl-C. A checkpoint was written; the same call goes on from it.
    """
    if isinstance(data, Mapping):
        settings["data"] = data
        data = None
    if data is not None and "dataset" in settings:
        raise ValueError("data and dataset mean the same: give one of them")
    settings.setdefault("runs", run_dir)
    return begin(data, task, settings, Teller(progress, callback))


def begin(
    data: str | os.PathLike[str] | None,
    task: str | None,
    settings: Mapping[str, object],
    teller: Teller,
) -> Run:
    """Trains as :func:`train` does, whatever its settings are called."""
    settings = dict(settings)
    named = settings.get("dataset")
    # Other names are the program's, which finds them.
    if data is None and (isinstance(named, os.PathLike) or str(named).startswith("starter:")):
        data = cast("str | os.PathLike[str]", settings.pop("dataset"))
    if isinstance(data, str) and data.startswith(("starter:", "minari:")):
        data = Dataset.open(data)
    if isinstance(data, (str, os.PathLike)) and not Path(data).exists():
        raise FileNotFoundError(f"there is no dataset at {os.fspath(data)}")
    if task is None and not TASK_KEYS & settings.keys():
        task = getattr(data, "task", None)
    said = ["train"]
    if task is not None:
        said.append(f"task={task}")
    if data is not None:
        try:
            said.append(f"dataset={Path(data).absolute()}")
        except TypeError:
            raise TypeError(
                f"data: a Dataset or a path is expected, not {type(data).__name__}; "
                "overtone.from_arrays makes a Dataset of arrays"
            ) from None
    said += _program.words(settings)
    _program.call(said, teller)
    if teller.run is None:
        # Finished and played before: the newest run of these settings is told in its last line.
        raise OvertoneError("training told no folder of a run: " + " ".join(teller.lines[-1:]))
    return Run(teller.run)


def load(path: str | os.PathLike[str], run_dir: str | os.PathLike[str] = "runs") -> Run:
    """The run in a folder, or of a name in ``run_dir``."""
    return Run(path, run_dir)


def evaluate(
    runs: str | os.PathLike[str] | Sequence[str | os.PathLike[str]],
    *,
    episodes: int = 100,
    target: float | str | Sequence[float | str] = "",
    run_dir: str | os.PathLike[str] = "runs",
    progress: Progress = "auto",
    **options: object,
) -> dict[str, Any]:
    """Plays trained agents in the environment of their task.

    Args:
        runs: One run, or several that meet the same episodes: a :class:`Run`, its folder, or its
            name in ``run_dir``.
        episodes: For each target.
        target: Returns to ask for, as numbers or percentiles of the data (``"p95"``).
        run_dir: Where names are looked for.
        options: Every option of ``overtone evaluate rollouts --help``.

    Returns:
        The evaluations that were written, by the path of their files.

    Raises:
        OvertoneError: When there is no such run, or it cannot be played.
    """
    several = [runs] if isinstance(runs, (str, os.PathLike)) else list(runs)
    if not several:
        raise ValueError("runs: there is none")
    folders = [_found(run, run_dir) for run in several]
    if len(folders) > 1 and any("," in str(folder) for folder in folders):
        raise ValueError("runs: a run with a comma in its path is evaluated alone")
    before = {path: path.stat().st_mtime_ns for path in _reports(folders)}
    said = ["evaluate", "rollouts", f"run={_program.text(folders)}", f"episodes={episodes}"]
    said += [f"target={_program.text(target)}", *_program.words(options)]
    _program.call(said, Teller(progress, None))
    out = options.get("out")
    written = [Path(str(out))] if out else [
        path for path in _reports(folders) if before.get(path) != path.stat().st_mtime_ns
    ]
    return {str(path): json.loads(path.read_text(encoding="utf-8")) for path in written}


def _reports(folders: Sequence[Path]) -> list[Path]:
    # What lies beside a video is none.
    return [
        path for folder in folders for path in sorted(folder.glob("evaluation*.json"))
        if not path.name.endswith(".gif.json")
    ]


def report(
    *runs: str | os.PathLike[str],
    run_dir: str | os.PathLike[str] = "runs",
    progress: Progress = "none",
    **options: object,
) -> list[str]:
    """Writes one page about runs: scores with intervals, curves, a video. Gives what it says.

    Args:
        runs: Each a :class:`Run`, its folder, or its name in ``run_dir``; none: the newest there.
        run_dir: The folder of the runs. The program calls it ``runs``, which is the same.
        progress: As of :func:`train`.
        options: Every option of ``overtone report --help``.
    """
    options.setdefault("runs", run_dir)
    teller = Teller(progress, None)
    folders = [_found(run, str(options["runs"])) for run in runs]
    # A name such as `level=0.9_s1` alone would be an option.
    said = [str(folder.absolute() if "=" in str(folder) else folder) for folder in folders]
    _program.call(["report", *said, *_program.words(options)], teller)
    return teller.lines


def study(
    what: str = "run", *args: str, progress: Progress = "lines", **settings: object
) -> list[str]:
    """``overtone study``: a grid of runs and its report.

    ``study("run", head=["linear", "fourier"], seed=range(1, 6), game="seaquest")`` begins one;
    ``study("status")``, ``study("resume", name)`` and ``study("report", name)`` follow.

    A list is an axis of the grid. A key whose value is a list itself (``model.top_percents``,
    ``evaluation.target``, ``evaluation.protocol``) has all of it in every run:
    ``**{"model.top_percents": [10, 50, 100]}`` makes one run, told of three shares. Several such
    lists are an axis in a study's file alone (``"model.top_percents" = ["10,50", "10,100"]``
    below ``[grid]``), and here a ``ValueError``. A :class:`overtone.Dataset` that knows its task
    brings it along, as in :func:`overtone.train`; not where a file is named, which may say another.
    """
    task = getattr(settings.get("dataset"), "task", None)
    if task is not None and not args and not TASK_KEYS & settings.keys():
        settings["task"] = task
    teller = Teller(progress, None)
    _program.call(["study", what, *args, *_program.words(settings)], teller)
    return teller.lines


def command(
    words: Sequence[str], settings: Mapping[str, object] | None = None, progress: Progress = "lines"
) -> list[str]:
    """Any command of the program, in its own words; gives the lines that it said."""
    teller = Teller(progress, None)
    _program.call([*words, *_program.words(settings or {})], teller)
    return teller.lines


def record(*, progress: Progress = "lines", **settings: object) -> list[str]:
    """``overtone record``: plays a task and writes what happened; gives the lines that it said.

    ``record(env="hopper", to="own.hdf5", transitions=1000)``.

    Args:
        progress: As of :func:`train`.
        settings: Every option of ``overtone record --help``.
    """
    return command(["record"], settings, progress)


def video(
    run: str | os.PathLike[str], *, progress: Progress = "lines", **settings: object
) -> list[str]:
    """``overtone video``: films a run's agent; gives the lines that it said.

    Args:
        run: A :class:`Run`, its folder, or its name.
        progress: As of :func:`train`.
        settings: Every option of ``overtone video --help``.
    """
    return command(["video"], {"run": run, **settings}, progress)


def export(
    run: str | os.PathLike[str], to: str | os.PathLike[str], *, progress: Progress = "lines",
    **settings: object,
) -> list[str]:
    """``overtone export``: writes a run's agent into the folder ``to``; gives the lines that it said.

    Args:
        run: A :class:`Run`, its folder, or its name.
        to: The folder to write.
        progress: As of :func:`train`.
        settings: Every option of ``overtone export --help``.
    """
    return command(["export"], {"run": run, "to": to, **settings}, progress)


def import_(
    folder: str | os.PathLike[str], *, progress: Progress = "lines", **settings: object
) -> list[str]:
    """``overtone import``: makes a run of an agent that was exported; gives the lines that it said.

    Args:
        folder: What :func:`export` wrote, or Hugging Face's ``save_pretrained``.
        progress: As of :func:`train`.
        settings: Every option of ``overtone import --help``.
    """
    return command(["import"], {"from": folder, **settings}, progress)
