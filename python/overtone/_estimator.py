"""Algorithms in scikit-learn's form: settings, ``fit``, ``predict``.

>>> import overtone as ov
>>> agent = ov.DecisionTransformer(head="fourier", train__updates=500)
>>> agent.fit(dataset).predict(observations)                    # doctest: +SKIP
"""

from __future__ import annotations

import os
import re
import threading
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, cast

import numpy as np
from numpy.typing import ArrayLike, NDArray

from overtone import _host, _overtone
from overtone._overtone import OvertoneError
from overtone._policy import Policy
from overtone._program import Callback, Progress, Teller, words
from overtone._run import TASK_KEYS, Run, begin

if TYPE_CHECKING:
    from typing_extensions import Self

#: Observations that :meth:`Estimator.predict` passes through the model at once.
BATCH = 256

#: A policy's probabilities are those of its last call: held for both.
ACTING = threading.RLock()

#: What an estimator takes beside the program's settings, and names of the task.
OWN_KEYS = TASK_KEYS | {"target_return", "run_dir", "progress"}


def _check(settings: Mapping[str, object]) -> None:
    """Refuses settings that the program does not have, in the spelling of a keyword."""
    try:
        _overtone.check_settings(words(settings))
    except OvertoneError as error:
        dots = re.compile(r"(?<=[a-z0-9])\.(?=[a-z])")
        said = re.sub(r"^[\w.]+(?==)|`[\w.]+`|(?<=such as )[\w.]+",
                      lambda key: dots.sub("__", key[0]), str(error))
        said = said.replace("--help lists all", "`overtone train --help` lists all")
        raise ValueError(said) from None


class Estimator:
    """An algorithm with its settings, and after :meth:`fit` the agent that it learned.

    ``clone``, ``get_params`` and ``set_params`` are scikit-learn's, and an estimator can be pickled:
    it takes along where its run is, and not the weights.

    Args:
        target_return: What :meth:`predict` asks for: a number, or a percentile of the data's
            returns.
        run_dir: The folder in which each :meth:`fit` writes its run.
        progress: As of :func:`overtone.train`.
        settings: Every option of ``overtone train --help``: see :func:`overtone.words`. What a
            dataset alone decides is checked by :meth:`fit`.

    Raises:
        ValueError: Names a setting that there is not, or whose value is of another type.
    """

    algorithm: ClassVar[str] = ""
    """What the program calls it: ``algorithm=…``."""

    run_: Run
    """The run of the last :meth:`fit`."""

    def __init__(
        self,
        *,
        target_return: float | str = "p95",
        run_dir: str | Path = "runs",
        progress: Progress = "auto",
        **settings: object,
    ) -> None:
        if not self.algorithm:
            raise TypeError("Estimator is what the algorithms share: DecisionTransformer, …")
        self._params: dict[str, object] = {}
        self._policy: Policy | None = None
        self.set_params(target_return=target_return, run_dir=run_dir, progress=progress, **settings)

    def __repr__(self) -> str:
        defaults = {"target_return": "p95", "run_dir": "runs", "progress": "auto"}
        said = [f"{k}={v!r}" for k, v in self._params.items() if (k, v) not in defaults.items()]
        return f"{type(self).__name__}({', '.join(said)})"

    def __getstate__(self) -> dict[str, object]:
        # A policy is made again when it is needed. A copy has settings of its own.
        return {**self.__dict__, "_params": dict(self._params), "_policy": None}

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """What it was made with, as it was given; ``deep`` changes nothing."""
        del deep
        return dict(self._params)

    def set_params(self, **params: object) -> Self:
        """Changes settings, the last word counts; what was fitted stays until the next
        :meth:`fit`."""
        if "algorithm" in params:
            raise ValueError(f"algorithm: {type(self).__name__} is {self.algorithm}")
        _check({key: value for key, value in params.items() if key not in OWN_KEYS})
        for key, value in params.items():
            # It goes to the end: `train.updates` may be said in several ways.
            self._params.pop(key, None)
            self._params[key] = value
        self._policy = None
        return self

    def fit(
        self,
        data: str | os.PathLike[str] | None = None,
        y: None = None,
        *,
        task: str | None = None,
        n_steps: int | None = None,
        callback: Callback | None = None,
    ) -> Self:
        """Trains on ``data``, as :func:`overtone.train` does with these settings; gives itself.

        The task is not played unless the settings ask for it (``evaluation__episodes=10``):
        :func:`overtone.evaluate` plays the run, :attr:`run_`. The same settings and data again
        go on with a run that was interrupted.

        Args:
            data: A :class:`overtone.Dataset`, or the path of a recording, in place of the one that
                the settings name.
            y: Not used: actions are in the data.
            task: What is learned, as ``suite/name``, in place of what the settings name; a dataset
                that says so needs none.
            n_steps: Updates, in place of ``train__updates``.
            callback: As of :func:`overtone.train`.

        Raises:
            OvertoneError: In one sentence, what is wrong and what to do.
        """
        del y
        settings: dict[str, Any] = {**self._params, "algorithm": self.algorithm}
        settings.pop("target_return")
        teller = Teller(settings.pop("progress"), callback)
        settings.setdefault("runs", settings.pop("run_dir"))
        if data is not None:
            settings.pop("dataset", None)
        if task is not None:
            settings = {key: value for key, value in settings.items() if key not in TASK_KEYS}
        evaluation = settings.get("evaluation")
        if not isinstance(evaluation, dict) or "episodes" not in evaluation:
            if not {"evaluation.episodes", "evaluation__episodes"} & settings.keys():
                settings["evaluation.episodes"] = 0
        if n_steps is not None:
            settings.pop("train.updates", None)
            settings["train.updates"] = n_steps
        self.run_ = begin(data, task, settings, teller)
        self._policy = None
        return self

    def predict(
        self, observations: ArrayLike, target_returns: ArrayLike | None = None
    ) -> NDArray[Any]:
        """The most probable action for each of many observations that have nothing to do with
        one another.

        **Each observation is taken as the first of an episode.** An agent that reads the steps
        before (a Decision Transformer, behaviour cloning with a transformer) is shown none, and
        one that is told a return is asked for all of it. So a row's action depends on that row
        alone, and a call changes nothing for the next. For such an agent that is not what it does
        later in an episode: play with :meth:`policy`, which remembers. Agents without a history
        (TD3+BC, IQL, ReBRAC, conservative Q-learning) act here as anywhere.

        Args:
            observations: ``[n, …]``, in the environment's own units.
            target_returns: ``[n]``, or one for all: what to ask for, if not ``target_return``.

        Returns:
            ``[n]`` actions as ``env.step`` takes them, where the task's environment is known, else
            indices from 0; or ``[n, width]`` numbers, in the environment's units.

        Raises:
            ValueError: Names the argument that does not fit.
        """
        rows = [acted for acted, _ in self._acted(observations, target_returns)]
        assert self._policy is not None
        return self._policy.as_taken(np.concatenate(rows))

    def predict_proba(
        self, observations: ArrayLike, target_returns: ArrayLike | None = None
    ) -> NDArray[np.float64]:
        """``[n, n_actions]``: how probable each action is, where :meth:`predict` takes the most
        probable one.

        Raises:
            OvertoneError: For an agent whose actions are real-valued, or that has no
                probabilities.
        """
        rows = [likely for _, likely in self._acted(observations, target_returns)]
        if any(row is None for row in rows):
            raise OvertoneError(f"{type(self).__name__} has no probabilities for this data")
        return np.concatenate(cast("list[NDArray[np.float64]]", rows))

    def policy(self, target_return: float | str | None = None, **options: Any) -> Policy:
        """What was learned, with a history, to play episodes: :meth:`overtone.Run.policy`."""
        asked = self._params["target_return"] if target_return is None else target_return
        return self._fitted().policy(cast("float | str", asked), **options)

    def _fitted(self) -> Run:
        if "run_" not in self.__dict__:
            raise OvertoneError(f"this {type(self).__name__} has learned nothing yet: call fit")
        return self.run_

    def _acted(
        self, observations: ArrayLike, target_returns: ArrayLike | None
    ) -> list[tuple[NDArray[Any], NDArray[np.float64] | None]]:
        """Actions and their probabilities, a batch at a time."""
        _host.refuse_in_child()
        if self._policy is None:
            self._policy = self.policy(n_agents=BATCH, deterministic=True)
        policy, rows = self._policy, np.asarray(observations)
        n = len(rows) if rows.ndim else 0
        if n == 0:
            raise ValueError("observations: there is no row")
        asked = None
        if target_returns is not None:
            asked = np.asarray(target_returns, np.float32)
            if asked.shape not in ((), (1,), (n,)):
                raise ValueError(
                    f"target_returns: shape {asked.shape}, and one for each of {n} rows, or one "
                    "for all, is expected"
                )
            asked = np.broadcast_to(asked, (n,))
        acted: list[tuple[NDArray[Any], NDArray[np.float64] | None]] = []
        for first in range(0, n, BATCH):
            part = slice(first, min(first + BATCH, n))
            m = part.stop - first
            targets = None if asked is None else asked[part]
            with ACTING:
                action = policy.act(rows[part], None, [True] * m, range(m), target_returns=targets)
                acted.append((action, policy.probabilities))
        return acted


class DecisionTransformer(Estimator):
    """Actions from the return that is asked for, observations and actions before (Chen et al.
    2021)."""

    algorithm = "decision_transformer"


class BehaviorCloning(Estimator):
    """Actions as they were logged, from observations and actions before."""

    algorithm = "behavior_cloning"


class RvS(Estimator):
    """RvS: actions from an observation and the average return to go (Emmons et al. 2022), or as the
    best episodes had them; by a perceptron."""

    algorithm = "rvs"


class DiscreteCQL(Estimator):
    """Conservative Q-learning for a list of actions (Kumar et al. 2020)."""

    algorithm = "discrete_cql"


class TD3BC(Estimator):
    """TD3+BC, for real-valued actions (Fujimoto and Gu 2021)."""

    algorithm = "td3_bc"


class IQL(Estimator):
    """Implicit Q-learning, for real-valued actions (Kostrikov et al. 2022)."""

    algorithm = "iql"


class ReBRAC(Estimator):
    """ReBRAC, for real-valued actions (Tarasov et al. 2023)."""

    algorithm = "rebrac"
