"""Commands of the program, called from Python: settings as keywords, progress, Ctrl-C."""

from __future__ import annotations

import contextlib
import os
import signal
import sys
import threading
from collections.abc import Callable, Generator, Iterable, Mapping
from pathlib import Path
from typing import Any, Literal, cast

import numpy as np
from numpy.typing import NDArray

from overtone import _host, _overtone

#: A row of training progress: ``step``, ``updates``, ``loss``, the algorithm's own figures,
#: ``learning_rate``, ``grad_norm``, ``timesteps_per_s`` and ``seconds``.
Report = dict[str, Any]
Callback = Callable[[Report], object]
Progress = Literal["auto", "lines", "bar", "none"]

#: Exit code of a command after Ctrl-C.
STOPPED = 130

#: Commands that compute on threads, which remain for the next command.
COMPUTING = frozenset({"train", "resume", "evaluate", "judge", "video"})
#: Commands that compute with some of their settings.
AT_TIMES_COMPUTING = frozenset({"record", "report", "study", "data convert"})


def text(value: object) -> str:
    """A value as text for the program: ``True`` as ``true``, lists with commas."""
    if isinstance(value, (bool, np.bool_)):
        return "true" if value else "false"
    if isinstance(value, np.ndarray) and value.ndim == 0:
        return text(cast("NDArray[Any]", value)[()])
    if isinstance(value, (list, tuple, range, np.ndarray)):
        values = cast("Iterable[object]", value)
        return ",".join(text(each) for each in values)
    if isinstance(value, os.PathLike):
        return os.fspath(cast("os.PathLike[str]", value))
    return str(value)


def words(settings: Mapping[str, object]) -> list[str]:
    """Settings as the program's words, ``key=value``.

    As a keyword argument, write two underscores for the dot of a key (``train__updates=500``), or
    pass its section as a dictionary (``train={"updates": 500}``). ``**{"train.updates": 500}``
    works too.

    Raises:
        ValueError: For a list in a list, which is not a setting.
    """
    all_words: list[str] = []
    for key, value in settings.items():
        key = key.replace("__", ".")
        if isinstance(value, Mapping):
            section = cast("Mapping[str, object]", value)
            all_words += words({f"{key}.{name}": each for name, each in section.items()})
        elif _is_nested(value):
            value = value.tolist() if isinstance(value, np.ndarray) else value
            raise ValueError(
                f"{key}={value}: a list in a list is not a setting. To compare several lists, use "
                "an axis in the file of a study (overtone study init FILE.toml)"
            )
        else:
            all_words.append(f"{key}={text(value)}")
    return all_words


def path_of(name: str, data: object) -> str:
    """The path of a dataset.

    Raises:
        TypeError: For anything else than a dataset or a path.
    """
    try:
        return os.fspath(cast("str", data))
    except TypeError:
        raise TypeError(
            f"{name}: expected a Dataset or a path, got {type(data).__name__}. Use "
            "overtone.from_arrays to make a Dataset from arrays"
        ) from None


def check_task(task: object) -> None:
    """Refuses a task that is not text.

    Raises:
        TypeError: With an example.
    """
    if task is None or isinstance(task, str):
        return
    spec = getattr(task, "spec", None)
    example = f"gymnasium/{spec.id}" if hasattr(spec, "id") else "gymnasium/CartPole-v1"
    raise TypeError(
        f"task: expected text, suite/name, got a {type(task).__name__}. Use task={example!r}, or "
        "'own/NAME' without an environment"
    )


def _is_nested(value: object) -> bool:
    if isinstance(value, np.ndarray):
        return value.ndim > 1
    if not isinstance(value, (list, tuple)):
        return False
    each = cast("Iterable[object]", value)
    return any(isinstance(part, (list, tuple, range, np.ndarray)) for part in each)


class CommandOutput:
    """Prints and stores the output of a command."""

    def __init__(self, progress: Progress, callback: Callback | None) -> None:
        if progress not in ("auto", "lines", "bar", "none"):
            raise ValueError(f"progress={progress!r}: expected auto, lines, bar or none")
        if progress == "bar" and not _has_tqdm():
            raise ValueError("progress='bar': needs tqdm. Run pip install tqdm, or use 'lines'")
        if progress == "auto":
            progress = "bar" if _has_tqdm() and _is_watched() else "lines"
        self.progress = progress
        self.callback = callback
        self.run: Path | None = None
        self.lines: list[str] = []
        #: What a stopped command left.
        self.stopped = ""
        self._bar: Any = None

    def __call__(self, kind: str, value: Any) -> None:
        if kind == "line":
            self.lines.append(value)
            # The bar shows the same information.
            if self.progress == "lines" or (self.progress == "bar" and self._bar is None):
                print(value, flush=True)
        elif kind == "stopped":
            self.stopped = value
        elif kind == "run":
            self.run = Path(value)
        elif kind == "logged":
            if self.progress == "bar":
                self._advance(value)
            if self.callback is not None:
                self.callback(value)

    def _advance(self, report: Report) -> None:
        if self._bar is None:
            from tqdm.auto import tqdm  # pyright: ignore

            self._bar = tqdm(total=report["updates"], unit="update", desc="training")
        self._bar.set_postfix(loss=f"{report['loss']:.3f}", refresh=False)
        self._bar.update(report["step"] - self._bar.n)
        if report["step"] == report["updates"]:
            self.close()

    def close(self) -> None:
        """Closes the bar."""
        if self._bar is not None:
            self._bar.close()
            self._bar = None


def _has_tqdm() -> bool:
    import importlib.util

    return importlib.util.find_spec("tqdm") is not None


def _is_watched() -> bool:
    return sys.stderr.isatty() or "ipykernel" in sys.modules


def call(command_words: list[str], output: CommandOutput, codes: tuple[int, ...] = (0,)) -> None:
    """Runs the program with ``command_words``, and expects one of the exit codes ``codes``.

    Raises:
        OvertoneError: When the command fails; the message contains the reason.
        KeyboardInterrupt: After Ctrl-C, once the command can be resumed; after a second Ctrl-C at
            once.
        SystemExit: After SIGTERM, likewise, unless the caller handles this signal.
    """
    command = command_words[0] if command_words else ""
    named = {command, " ".join(command_words[:2])}
    if named & (COMPUTING | AT_TIMES_COMPUTING):
        _host.refuse_in_child()
    _host.announce(command_words)
    try:
        with _host.noticing_threads(command in COMPUTING), _terminable():
            code = _overtone.run(command_words, output)
    except KeyboardInterrupt:
        raise KeyboardInterrupt(output.stopped) from None
    except SystemExit:
        if output.stopped:
            print(output.stopped, file=sys.stderr, flush=True)
        raise
    finally:
        output.close()
    if code == STOPPED:
        raise KeyboardInterrupt
    if code not in codes:
        line = " ".join(command_words)
        raise _overtone.OvertoneError(f"`overtone {line}` ended with exit code {code}")


@contextlib.contextmanager
def _terminable() -> Generator[None, None, None]:
    """Context in which SIGTERM raises ``SystemExit``, so that a command ends as after Ctrl-C."""
    is_main = threading.current_thread() is threading.main_thread()
    if not is_main or signal.getsignal(signal.SIGTERM) is not signal.SIG_DFL:
        yield
        return

    def terminate(number: int, frame: object) -> None:
        del frame
        raise SystemExit(128 + number)

    signal.signal(signal.SIGTERM, terminate)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, signal.SIG_DFL)
