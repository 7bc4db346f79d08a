"""``overtone track``: sends the curves of runs to Weights & Biases, MLflow or Trackio.

It reads a run's files and does not import Overtone, so it also runs as a file. The run's directory
records the sent rows: a second call sends only new ones.
"""

from __future__ import annotations

import csv
import hashlib
import importlib
import itertools
import json
import math
import os
import sys
import time
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any, Protocol, cast

USAGE = """\
overtone track wandb|mlflow|trackio RUN… [key=value…]

  project=overtone   project, or experiment, in which the runs appear
  runs=runs          directory that contains the runs, for a RUN that is not a path
  follow=false       true: send what the run writes until it is finished (one run only)
  every=10           seconds between two checks, with follow=true

Each tracker is its own Python package: pip install wandb, mlflow or trackio. Its variables set the
destination: WANDB_MODE=offline, MLFLOW_TRACKING_URI=sqlite:///mlflow.db, TRACKIO_DIR=…"""

#: A run's tables, and the prefixes of their columns at the tracker.
TABLES = {"metrics.csv": "train", "held_out.csv": "held_out", "checkpoints.csv": "played"}
#: The record of sent rows, in a run's directory.
SENT = ".tracked.json"


class TrackError(Exception):
    """A failure to send curves; the message is one sentence."""


class Tracker(Protocol):
    """The destination of one run's curves."""

    def log(self, step: int, values: dict[str, float]) -> None:
        """Sends the values of an update."""
        ...

    def finish(self) -> None:
        """Ends the run at the tracker, or leaves it open for more rows."""
        ...


class Wandb:
    """Weights & Biases. The update is a column of its own, so rows may arrive out of order."""

    def __init__(self, project: str, run: Path, identity: str) -> None:
        wandb = package("wandb")
        self._run = wandb.init(
            project=project, id=identity, name=run.name, config=settings(run), resume="allow",
            dir=str(run.parent),
        )
        self._run.define_metric("*", step_metric="update")

    def log(self, step: int, values: dict[str, float]) -> None:
        self._run.log({"update": step, **values})

    def finish(self) -> None:
        self._run.finish()


class Mlflow:
    """MLflow; a tag identifies the run."""

    def __init__(self, project: str, run: Path, identity: str) -> None:
        mlflow = package("mlflow")
        experiment = mlflow.set_experiment(project)
        self._client = mlflow.MlflowClient()
        tag = f"tags.`overtone.id` = '{identity}'"
        known = self._client.search_runs([experiment.experiment_id], tag)
        if known:
            self._id = known[0].info.run_id
            return
        tags = {"overtone.id": identity}
        made = self._client.create_run(experiment.experiment_id, tags=tags, run_name=run.name)
        self._id = made.info.run_id
        for key, value in flat(settings(run)).items():
            # The maximum length of MLflow.
            self._client.log_param(self._id, key, str(value)[:500])

    def log(self, step: int, values: dict[str, float]) -> None:
        for name, value in values.items():
            self._client.log_metric(self._id, name, value, step=step)

    def finish(self) -> None:
        self._client.set_terminated(self._id)


class Trackio:
    """Trackio; its name identifies the run."""

    def __init__(self, project: str, run: Path, identity: str) -> None:
        trackio = package("trackio")
        self._run = trackio.init(
            project=project, name=f"{run.name}-{identity[:6]}", config=settings(run),
            resume="allow",
        )
        self._finish = trackio.finish

    def log(self, step: int, values: dict[str, float]) -> None:
        self._run.log(values, step=step)

    def finish(self) -> None:
        self._finish()


TRACKERS = {"wandb": Wandb, "mlflow": Mlflow, "trackio": Trackio}


def package(name: str) -> Any:
    """A tracker's package."""
    try:
        return importlib.import_module(name)
    except ImportError as error:
        raise TrackError(f"{name} is not installed here ({error}): pip install {name}") from None


def settings(run: Path) -> dict[str, Any]:
    """A run's settings. Before Python 3.11, which cannot read TOML, they are one text."""
    text = (run / "config.toml").read_text(encoding="utf-8")
    try:
        toml = importlib.import_module("tomllib")
    except ImportError:
        return {"config": text}
    return toml.loads(text)


def flat(table: dict[str, Any], before: str = "") -> dict[str, Any]:
    """A table's values by dotted key."""
    values: dict[str, Any] = {}
    for key, value in table.items():
        name = f"{before}{key}"
        if isinstance(value, dict):
            values |= flat(cast("dict[str, Any]", value), f"{name}.")
        else:
            values[name] = value
    return values


def identity_of(run: Path) -> str:
    """A run's identity, which stays the same if the run is resumed elsewhere."""
    started = run / "provenance.jsonl"
    first = started.read_bytes().split(b"\n", 1)[0] if started.is_file() else b""
    return hashlib.sha256((run / "config.toml").read_bytes() + first).hexdigest()[:16]


def rows_of(run: Path, table: str, after: int) -> Iterable[tuple[int, dict[str, float]]]:
    """The complete rows of a table after a step."""
    path = run / table
    if not path.is_file():
        return
    whole = path.read_text(encoding="utf-8").rpartition("\n")[0]
    rows = csv.DictReader(whole.splitlines())
    # In tables of evaluations, each figure has a row.
    for step, of_step in itertools.groupby(rows, lambda row: int(row.pop("step"))):
        if step <= after:
            continue
        values: dict[str, float] = {}
        for row in of_step:
            figure = row.pop("figure", None)
            named = row.items() if figure is None else [(figure, row["value"])]
            values |= {f"{TABLES[table]}/{name}": number(text) for name, text in named if name}
        yield step, {name: value for name, value in values.items() if math.isfinite(value)}


def number(text: str | None) -> float:
    """A number of a table; NaN for other text."""
    try:
        return float(text or "nan")
    except ValueError:
        return math.nan


class Sending:
    """The transfer of one run to one tracker."""

    def __init__(self, kind: str, project: str, run: Path) -> None:
        self.run = run
        identity = identity_of(run)
        place = os.environ.get("MLFLOW_TRACKING_URI", "") if kind == "mlflow" else ""
        self._place = " ".join([kind, project, identity, place]).strip()
        self._tracker: Tracker = TRACKERS[kind](project, run, identity)
        self.was_finished = False

    def send(self) -> int:
        """Sends new rows; returns their number."""
        # Checked before reading: rows that are written later are sent next time.
        self.was_finished = (self.run / "finished").exists()
        recorded = self._recorded()
        sent: dict[str, int] = recorded.setdefault(self._place, {})
        n_rows = 0
        try:
            for table in TABLES:
                for step, values in rows_of(self.run, table, sent.get(table, -1)):
                    self._tracker.log(step, values)
                    sent[table] = step
                    n_rows += 1
        finally:
            # Rows that were sent before an interruption are not sent again.
            if n_rows:
                temporary = self.run / f"{SENT}.new"
                temporary.write_text(json.dumps(recorded, indent=1), encoding="utf-8")
                temporary.replace(self.run / SENT)
        return n_rows

    def _recorded(self) -> dict[str, dict[str, int]]:
        path = self.run / SENT
        try:
            return json.loads(path.read_text(encoding="utf-8")) if path.is_file() else {}
        except ValueError:
            raise TrackError(f"{path} is damaged. Delete it to send everything again") from None

    def finish(self) -> None:
        """Ends the run at the tracker."""
        self._tracker.finish()


def track(
    kind: str, runs: Sequence[Path], project: str = "overtone", follow: bool = False,
    every: float = 10.0,
) -> None:
    """Sends the curves of ``runs`` one after the other. With ``follow``, sends those of one run
    until it ends."""
    if kind not in TRACKERS:
        raise TrackError(f"`{kind}` is not a tracker: expected one of {', '.join(TRACKERS)}")
    for run in runs:
        if not (run / "config.toml").is_file():
            raise TrackError(f"{run} is not a run: config.toml is missing")
    if follow and len(runs) > 1:
        raise TrackError("follow=true: a tracker supports one run per process. Name one run")
    for run in runs:
        sending = Sending(kind, project, run)
        try:
            n_rows = sending.send()
            while follow and not sending.was_finished:
                time.sleep(every)
                n_rows += sending.send()
        finally:
            sending.finish()
        print(f"sent {n_rows} rows of {run} to {kind}, project {project}", flush=True)


def run_of(name: str, root: Path, options: Iterable[str]) -> Path:
    """The run at a path, or with a name in ``root``."""
    places = [Path(name), root / name]
    for place in places:
        if (place / "config.toml").is_file():
            return place
    for place in places:
        if place.is_dir():
            raise TrackError(f"{place} is not a run: config.toml is missing")
    nothing = f"run `{name}` does not exist in this directory or in {root}"
    key, sign, _ = name.partition("=")
    if sign:
        nothing += f", and `{key}` is not an option: expected one of {', '.join(options)}"
    raise TrackError(nothing)


def main(words: Sequence[str]) -> int:
    """``overtone track``; returns the exit code."""
    options = {"project": "overtone", "runs": "runs", "follow": "false", "every": "10"}
    named: list[str] = []
    try:
        if not words or words[0] in ("-h", "--help"):
            print(USAGE)
            return 0 if words else 2
        for word in words[1:]:
            key, _, value = word.partition("=")
            # A run's name may contain `=`, as in studies.
            if "=" not in word or key not in options or Path(word).exists():
                named.append(word)
            else:
                options[key] = value
        if options["follow"] not in ("true", "false"):
            raise TrackError(f"follow={options['follow']}: expected true or false")
        every = number(options["every"])
        if not every > 0:
            raise TrackError(f"every={options['every']}: expected a positive number of seconds")
        if not named:
            raise TrackError("no run is named. Use overtone track mlflow RUN")
        root = Path(options["runs"])
        found = [run_of(name, root, options) for name in named]
        track(words[0], found, options["project"], options["follow"] == "true", every)
    except TrackError as error:
        print(f"error: {error}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        return 130
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
