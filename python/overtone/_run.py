"""Runs: training, its output, and evaluation."""

from __future__ import annotations

import csv
import json
import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from overtone import _program
from overtone._dataset import Dataset
from overtone._mixture import Mixture
from overtone._overtone import OvertoneError
from overtone._program import Callback, CommandOutput, Progress, check_task, path_of

if TYPE_CHECKING:
    from overtone._policy import Policy


class Run:
    """A training run: a directory with its settings, metrics, checkpoints and evaluations.

    Args:
        path: The directory, or its name in ``run_dir``.
        run_dir: The directory in which names are searched.
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
        # An absolute path is also valid in a process with another current directory.
        return {"path": self.path.absolute()}

    @property
    def settings(self) -> str:
        """The run's settings, as TOML."""
        return (self.path / "config.toml").read_text(encoding="utf-8")

    @property
    def checkpoints(self) -> list[int]:
        """The updates of the existing checkpoints, ascending."""
        folder = self.path / "checkpoints"
        names = [entry.name for entry in folder.iterdir()] if folder.is_dir() else []
        steps = [name.removeprefix("step-") for name in names if name.startswith("step-")]
        return sorted(int(step) for step in steps if step.isdigit())

    def metrics(self) -> dict[str, list[float]]:
        """The curves of training, a list for each column of ``metrics.csv``."""
        return _columns(self.path / "metrics.csv")

    def evaluations(self) -> dict[str, Any]:
        """Every evaluation in the run's directory, by its file's name."""
        paths = _reports([self.path])
        return {path.stem: json.loads(path.read_text(encoding="utf-8")) for path in paths}

    def resume(
        self, *, progress: Progress = "auto", callback: Callback | None = None
    ) -> Run:
        """Resumes training; the result is bit-identical to an uninterrupted run."""
        _program.call(["resume", f"run={self.path}"], CommandOutput(progress, callback))
        return self

    def choose(
        self, budget: int | str = "auto", *, progress: Progress = "lines", **options: object
    ) -> dict[str, Any]:
        """Chooses the acting mode again (``overtone evaluate choose``), and returns the choice.

        Args:
            budget: Episodes of all modes together; 0: none.
            options: Every option of ``overtone evaluate choose --help``.
        """
        folder = self.path / "checkpoints"
        before = {path: path.stat().st_mtime_ns for path in folder.glob("*/acting.json")}
        choose(self, budget, progress=progress, **options)
        written = [
            path for path in folder.glob("*/acting.json")
            if before.get(path) != path.stat().st_mtime_ns
        ]
        return json.loads(written[0].read_text(encoding="utf-8"))

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
    """The directory of a run, by its path or its name, as the program finds it.

    Raises:
        OvertoneError: When the run does not exist.
    """
    places = [Path(run), Path(run_dir) / run]
    for place in places:
        if (place / "config.toml").is_file():
            return place
    for place in places:
        if place.is_dir():
            raise OvertoneError(f"{place} is not a run: it does not have a config.toml")
    raise OvertoneError(
        f"run `{os.fspath(run)}` does not exist in this directory or in {os.fspath(run_dir)}"
    )


def _columns(path: Path) -> dict[str, list[float]]:
    with path.open(encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))
    names = rows[0].keys() if rows else ()
    return {name: [float(row[name] or "nan") for row in rows] for name in names}


#: Settings that name the task.
TASK_KEYS = frozenset({"task", "game", "env", "gymnasium", "own"})


def train(
    data: str | os.PathLike[str] | Mixture | Mapping[str, object] | None = None,
    task: str | None = None,
    *,
    run_dir: str | Path = "runs",
    progress: Progress = "auto",
    callback: Callback | None = None,
    **settings: object,
) -> Run:
    """Trains an agent, and evaluates it if its task has an environment.

    Args:
        data: A :class:`overtone.Dataset`, the path of a dataset, a name for
            :meth:`overtone.Dataset.open` (``"starter:…"``, ``"minari:…"``), or several datasets
            (:func:`overtone.concat`). By default, the dataset
            in ``settings`` (``game="seaquest"``; ``env="hopper", dataset="medium"``). A dictionary
            is the section ``data`` of the settings, such as ``data={"top_percent": 50}``. Then use
            ``dataset=`` for the dataset.
        task: The task, as ``suite/name``. It may be left out if the dataset names its task. Data
            without an environment is ``own/NAME``: its agents are trained and not evaluated.
        run_dir: The directory in which the run gets its own directory (the program's setting
            ``runs``). An unfinished run with exactly these settings is resumed.
        progress: ``"bar"``, ``"lines"``, ``"none"``, or ``"auto"``: a bar on a terminal or in a
            notebook, else lines.
        callback: Called with each row of progress, on this thread. If it raises an exception,
            training writes a checkpoint and stops, and the exception is raised again.
        settings: Every option of ``overtone train --help-all``: see :func:`overtone.words`.

    Raises:
        OvertoneError: When training fails; the message contains the reason and what to do.
        ValueError: When two datasets are set.
        KeyboardInterrupt: After Ctrl-C, once a checkpoint is written. The same call resumes from
            it.
    """
    if isinstance(data, Mapping):
        settings["data"] = data
        data = None
    if data is not None and "dataset" in settings:
        raise ValueError("data and dataset mean the same. Use one of them")
    settings.setdefault("runs", run_dir)
    return begin(data, task, settings, CommandOutput(progress, callback))


def begin(
    data: str | os.PathLike[str] | Mixture | None,
    task: str | None,
    settings: Mapping[str, object],
    output: CommandOutput,
) -> Run:
    """Trains as :func:`train` does, with settings as a mapping."""
    check_task(task)
    settings = dict(settings)
    check_task(settings.get("task"))
    named = settings.get("dataset")
    # The program finds other names.
    is_found_here = isinstance(named, (os.PathLike, Mixture)) or str(named).startswith("starter:")
    if data is None and is_found_here:
        data = cast("str | os.PathLike[str] | Mixture", settings.pop("dataset"))
    if isinstance(data, str) and data.startswith(("starter:", "minari:")):
        data = Dataset.open(data)
    if isinstance(data, (str, os.PathLike)) and not Path(data).exists():
        raise FileNotFoundError(f"there is no dataset at {os.fspath(data)}")
    if task is None and not TASK_KEYS & settings.keys():
        task = getattr(data, "task", None)
    command_words = ["train"]
    if task is not None:
        command_words.append(f"task={task}")
    if isinstance(data, Mixture):
        command_words += data.words()
    elif data is not None:
        command_words.append(f"dataset={Path(path_of('data', data)).absolute()}")
    command_words += _program.words(settings)
    _program.call(command_words, output)
    if output.run is None:
        # The run was finished and evaluated before: the last line names it.
        last = " ".join(output.lines[-1:])
        raise OvertoneError(f"training did not report a run's directory: {last}")
    return Run(output.run)


def load(path: str | os.PathLike[str], run_dir: str | os.PathLike[str] = "runs") -> Run:
    """The run in a directory, or with a name in ``run_dir``."""
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
    """Evaluates trained agents in the environment of their task.

    Args:
        runs: One run, or several that face the same episodes: a :class:`Run`, its directory, or its
            name in ``run_dir``.
        episodes: Number of episodes for each target.
        target: Target returns, as numbers or percentiles of the dataset's returns (``"p95"``).
        run_dir: The directory in which names are searched.
        options: Every option of ``overtone evaluate rollouts --help``.

    Returns:
        The written evaluations, by the paths of their files.

    Raises:
        OvertoneError: When the run does not exist, or cannot be evaluated.
    """
    folders = run_folders(runs, run_dir)
    before = {path: path.stat().st_mtime_ns for path in _reports(folders)}
    command_words = ["evaluate", "rollouts", f"run={_program.text(folders)}"]
    command_words.append(f"episodes={episodes}")
    command_words += [f"target={_program.text(target)}", *_program.words(options)]
    _program.call(command_words, CommandOutput(progress, None))
    out = options.get("out")
    written = [Path(str(out))] if out else [
        path for path in _reports(folders) if before.get(path) != path.stat().st_mtime_ns
    ]
    return {str(path): json.loads(path.read_text(encoding="utf-8")) for path in written}


def choose(
    runs: str | os.PathLike[str] | Sequence[str | os.PathLike[str]],
    budget: int | str = "auto",
    *,
    run_dir: str | os.PathLike[str] = "runs",
    progress: Progress = "lines",
    **options: object,
) -> Run:
    """Chooses the best of several runs and its acting mode (``overtone evaluate choose``).

    ``choose([a, b], budget=35)`` places 35 episodes among all modes of both runs.

    Args:
        runs: Runs of one task: each a :class:`Run`, its directory, or its name in ``run_dir``.
        budget: Episodes of all modes of all runs together; 0: none.
        run_dir: The directory in which names are searched.
        options: Every option of ``overtone evaluate choose --help``.

    Returns:
        The chosen run. Evaluations and policies of this run use its chosen mode.

    Raises:
        OvertoneError: When a run does not exist, or the runs have different tasks.
    """
    output = CommandOutput(progress, None)
    command_words = ["evaluate", "choose", f"run={_program.text(run_folders(runs, run_dir))}"]
    command_words += [f"budget={budget}", *_program.words(options)]
    _program.call(command_words, output)
    return Run(cast("Path", output.run))


def run_folders(
    runs: str | os.PathLike[str] | Sequence[str | os.PathLike[str]],
    run_dir: str | os.PathLike[str],
) -> list[Path]:
    """The directories of one or several runs."""
    several = [runs] if isinstance(runs, (str, os.PathLike)) else list(runs)
    if not several:
        raise ValueError("runs: expected at least one run")
    folders = [_found(run, run_dir) for run in several]
    if len(folders) > 1 and any("," in str(folder) for folder in folders):
        raise ValueError("runs: a path contains a comma. Rename that run, or use it alone")
    return folders


def _reports(folders: Sequence[Path]) -> list[Path]:
    # The description next to a video is not an evaluation.
    return [
        path for folder in folders for path in sorted(folder.glob("evaluation*.json"))
        if not path.name.endswith(".gif.json")
    ]


def report(
    *runs: str | os.PathLike[str],
    run_dir: str | os.PathLike[str] = "runs",
    progress: Progress = "none",
    **options: object,
) -> Path:
    """Writes a report about runs, one HTML page: scores with intervals, curves, a video.

    Args:
        runs: Each a :class:`Run`, its directory, or its name in ``run_dir``; without any, the
            newest run.
        run_dir: The directory that contains the runs (the program's setting ``runs``).
        progress: See :func:`train`.
        options: Every option of ``overtone report --help``.

    Returns:
        The page. Markdown and CSV lie next to it.
    """
    options.setdefault("runs", run_dir)
    output = CommandOutput(progress, None)
    folders = [_found(run, str(options["runs"])) for run in runs]
    # A name such as `level=0.9_s1` would be read as an option.
    command_words = [str(folder.absolute() if "=" in str(folder) else folder) for folder in folders]
    _program.call(["report", *command_words, *_program.words(options)], output)
    [told] = [line for line in output.lines if line.startswith("report: ")]
    return Path(told.removeprefix("report: ").rsplit(" (", 1)[0])


def study(
    what: str = "run", *args: str, progress: Progress = "lines", **settings: object
) -> list[str]:
    """``overtone study``: a grid of runs and its report.

    ``study("run", head=["linear", "fourier"], seed=range(1, 6), game="seaquest")`` starts a study;
    ``study("status")``, ``study("resume", name)`` and ``study("report", name)`` follow.

    A list is an axis of the grid. Four keys are lists themselves (``data.shares``,
    ``model.top_percents``, ``evaluation.target``, ``evaluation.protocol``): every run uses their
    whole list. To compare several such lists, write them into a study's file
    (``"model.top_percents" = ["10,50", "10,100"]`` below ``[grid]``); here they raise a
    ``ValueError``.

    A :class:`overtone.Dataset` sets its task, as in :func:`overtone.train`, unless you name a
    study's file.
    """
    if isinstance(settings.get("dataset"), Mixture):
        raise ValueError(
            "a study does not take several datasets as one value. Write dataset = [\"A,B\"] below "
            "[grid] in a study's file"
        )
    task = getattr(settings.get("dataset"), "task", None)
    if task is not None and not args and not TASK_KEYS & settings.keys():
        settings["task"] = task
    output = CommandOutput(progress, None)
    _program.call(["study", what, *args, *_program.words(settings)], output)
    return output.lines


def command(
    words: Sequence[str], settings: Mapping[str, object] | None = None, progress: Progress = "lines"
) -> list[str]:
    """Runs any command of the program; returns its output lines."""
    output = CommandOutput(progress, None)
    _program.call([*words, *_program.words(settings or {})], output)
    return output.lines


def record(*, progress: Progress = "lines", **settings: object) -> list[str]:
    """``overtone record``: records episodes of a task; returns its output lines.

    ``record(env="hopper", to="own.hdf5", transitions=1000)``.

    Args:
        progress: See :func:`train`.
        settings: Every option of ``overtone record --help``.
    """
    return command(["record"], settings, progress)


def video(
    run: str | os.PathLike[str], *, progress: Progress = "lines", **settings: object
) -> list[str]:
    """``overtone video``: films a run's agent; returns its output lines.

    Args:
        run: A :class:`Run`, its directory, or its name.
        progress: See :func:`train`.
        settings: Every option of ``overtone video --help``.
    """
    return command(["video"], {"run": run, **settings}, progress)


def export(
    run: str | os.PathLike[str], to: str | os.PathLike[str], *, progress: Progress = "lines",
    **settings: object,
) -> list[str]:
    """``overtone export``: writes a run's agent into the directory ``to``; returns its output
    lines.

    Args:
        run: A :class:`Run`, its directory, or its name.
        to: The directory to write.
        progress: See :func:`train`.
        settings: Every option of ``overtone export --help``.
    """
    return command(["export"], {"run": run, "to": to, **settings}, progress)


def import_(
    folder: str | os.PathLike[str], *, progress: Progress = "lines", **settings: object
) -> Run:
    """``overtone import``: imports an exported agent as a run.

    Args:
        folder: A directory of :func:`export`, or of Hugging Face's ``save_pretrained``.
        progress: See :func:`train`.
        settings: Every option of ``overtone import --help``.
    """
    output = CommandOutput(progress, None)
    _program.call(["import", *_program.words({"from": folder, **settings})], output)
    return Run(cast("Path", output.run))
