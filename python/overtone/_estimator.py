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
from overtone._arrays import array_of, whole_number
from overtone._mixture import Mixture
from overtone._overtone import OvertoneError
from overtone._policy import Policy
from overtone._program import Callback, Progress, CommandOutput, words
from overtone._run import TASK_KEYS, Run, begin

if TYPE_CHECKING:
    from typing_extensions import Self

__all__ = [
    "BehaviorCloning",
    "DecisionTransformer",
    "DiscreteCQL",
    "Estimator",
    "IQL",
    "ReBRAC",
    "RvS",
    "TD3BC",
]

#: Batch size of :meth:`Estimator.predict`.
BATCH = 256

#: Lock for a call of a policy together with the probabilities of that call.
ACTING = threading.RLock()

#: An estimator's own parameters, and the keys that name a task.
OWN_KEYS = TASK_KEYS | {"target_return", "run_dir", "progress"}


def _check(settings: Mapping[str, object]) -> None:
    """Refuses unknown settings, with the keyword's spelling in the error."""
    try:
        _overtone.check_settings(words(settings))
    except OvertoneError as error:
        dots = re.compile(r"(?<=[a-z0-9])\.(?=[a-z])")
        message = re.sub(r"^[\w.]+(?==)|`[\w.]+`|(?<=such as )[\w.]+",
                      lambda key: dots.sub("__", key[0]), str(error))
        raise ValueError(message) from None


class Estimator:
    """An algorithm with its settings, and after :meth:`fit` the trained agent.

    ``clone``, ``get_params`` and ``set_params`` are scikit-learn's. An estimator can be pickled:
    the pickle contains the path of its run, not the weights.

    Args:
        target_return: Target return of :meth:`predict`: a number, or a percentile of the dataset's
            returns.
        run_dir: The directory in which each :meth:`fit` writes its run.
        progress: See :func:`overtone.train`.
        settings: Every option of ``overtone train --help-all``: see :func:`overtone.words`.
            :meth:`fit` checks what depends on the dataset.

    Raises:
        ValueError: Names a setting that is unknown, or has a value of another type.
    """

    algorithm: ClassVar[str] = ""
    """The value of the program's setting ``algorithm``."""

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
            raise TypeError(
                "Estimator is the algorithms' base class. Use an algorithm, such as "
                "DecisionTransformer"
            )
        self._params: dict[str, object] = {}
        self._policy: Policy | None = None
        self.set_params(target_return=target_return, run_dir=run_dir, progress=progress, **settings)

    def __repr__(self) -> str:
        defaults = {"target_return": "p95", "run_dir": "runs", "progress": "auto"}
        shown = [f"{k}={v!r}" for k, v in self._params.items() if (k, v) not in defaults.items()]
        return f"{type(self).__name__}({', '.join(shown)})"

    def __getstate__(self) -> dict[str, object]:
        # A policy is created again on demand. A copy has its own settings.
        return {**self.__dict__, "_params": dict(self._params), "_policy": None}

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """The parameters as they were set; ``deep`` has no effect."""
        del deep
        return dict(self._params)

    def set_params(self, **params: object) -> Self:
        """Changes parameters. Of several spellings of a setting, the last one counts. A fitted
        agent stays until the next :meth:`fit`."""
        if "algorithm" in params:
            raise ValueError(
                f"algorithm: {type(self).__name__} is {self.algorithm}. Use another class"
            )
        _check({key: value for key, value in params.items() if key not in OWN_KEYS})
        for key, value in params.items():
            # It goes to the end: `train.updates` has several spellings.
            self._params.pop(key, None)
            self._params[key] = value
        self._policy = None
        return self

    def fit(
        self,
        data: str | os.PathLike[str] | Mixture | None = None,
        y: None = None,
        *,
        task: str | None = None,
        n_steps: int | None = None,
        callback: Callback | None = None,
    ) -> Self:
        """Trains on ``data``, as :func:`overtone.train` does with these settings; returns itself.

        The agent is not evaluated by default (set ``evaluation__episodes=10``): call
        :func:`overtone.evaluate` with the run, :attr:`run_`. The same settings and data again
        resume an interrupted run.

        Args:
            data: A :class:`overtone.Dataset`, the path of a dataset, or several datasets
                (:func:`overtone.concat`), instead of the one in the
                settings.
            y: Not used, because the data contains the actions.
            task: The task, as ``suite/name``, instead of the one in the settings. It may be left
                out if the dataset names its task.
            n_steps: Number of updates, instead of ``train__updates``.
            callback: See :func:`overtone.train`.

        Raises:
            OvertoneError: When training fails; the message contains the reason and what to do.
        """
        del y
        settings: dict[str, Any] = {**self._params, "algorithm": self.algorithm}
        settings.pop("target_return")
        output = CommandOutput(settings.pop("progress"), callback)
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
            settings["train.updates"] = whole_number("n_steps", n_steps)
        self.run_ = begin(data, task, settings, output)
        self._policy = None
        return self

    def predict(
        self, observations: ArrayLike, target_returns: ArrayLike | None = None
    ) -> NDArray[Any]:
        """The most probable action for each of several independent observations.

        **Each observation counts as the first of an episode**, so a row's action depends only on
        that row. Agents with a history (a Decision Transformer, behaviour cloning with a
        transformer) and return-conditioned agents act differently later in an episode: for these
        use :meth:`policy`, which keeps the history. TD3+BC, IQL, ReBRAC and conservative Q-learning
        act the same in both.

        Args:
            observations: ``[n, …]``, in the environment's own units.
            target_returns: ``[n]``, or one for all: target returns, instead of ``target_return``.

        Returns:
            ``[n]`` discrete actions for ``env.step``, or indices from 0 if the task's environment
            is not known; or ``[n, width]`` continuous actions in the environment's units.

        Raises:
            ValueError: Names the invalid argument.
        """
        rows = [acted for acted, _ in self._acted(observations, target_returns)]
        assert self._policy is not None
        return self._policy.as_taken(np.concatenate(rows))

    def predict_proba(
        self, observations: ArrayLike, target_returns: ArrayLike | None = None
    ) -> NDArray[np.float64]:
        """``[n, n_actions]``: the probability of each action; :meth:`predict` returns the most
        probable one.

        Raises:
            OvertoneError: For an agent with continuous actions, or without probabilities.
        """
        rows = [likely for _, likely in self._acted(observations, target_returns)]
        if any(row is None for row in rows):
            raise OvertoneError(f"{type(self).__name__} does not have probabilities for this data")
        return np.concatenate(cast("list[NDArray[np.float64]]", rows))

    def policy(self, target_return: float | str | None = None, **options: Any) -> Policy:
        """The trained agent with a history, for episodes: :meth:`overtone.Run.policy`."""
        target = self._params["target_return"] if target_return is None else target_return
        return self._fitted().policy(cast("float | str", target), **options)

    def _fitted(self) -> Run:
        if "run_" not in self.__dict__:
            raise OvertoneError(f"this {type(self).__name__} is not trained yet. Call fit first")
        return self.run_

    def _acted(
        self, observations: ArrayLike, target_returns: ArrayLike | None
    ) -> list[tuple[NDArray[Any], NDArray[np.float64] | None]]:
        """Actions and their probabilities, a batch at a time."""
        _host.refuse_in_child()
        if self._policy is None:
            self._policy = self.policy(n_agents=BATCH, deterministic=True)
        policy = self._policy
        rows = policy.rows_of(observations)
        n = len(rows) if rows.ndim else 0
        if n == 0:
            raise ValueError("observations: expected at least one row")
        targets = None
        if target_returns is not None:
            targets = array_of("target_returns", target_returns).astype(np.float32)
            if targets.shape not in ((), (1,), (n,)):
                raise ValueError(
                    f"target_returns: shape {targets.shape}, expected one for each of {n} rows, or "
                    "one for all"
                )
            targets = np.broadcast_to(targets, (n,))
        acted: list[tuple[NDArray[Any], NDArray[np.float64] | None]] = []
        for first in range(0, n, BATCH):
            part = slice(first, min(first + BATCH, n))
            m = part.stop - first
            part_targets = None if targets is None else targets[part]
            with ACTING:
                action = policy.act(
                    rows[part], None, [True] * m, range(m), target_returns=part_targets
                )
                acted.append((action, policy.probabilities))
        return acted


class DecisionTransformer(Estimator):
    """Decision Transformer: actions from a target return, earlier observations and actions (Chen et
    al. 2021)."""

    algorithm = "decision_transformer"


class BehaviorCloning(Estimator):
    """Behaviour cloning: the recorded actions, from earlier observations and actions."""

    algorithm = "behavior_cloning"


class RvS(Estimator):
    """RvS: actions from an observation and the average return-to-go or a top percent, by a
    perceptron (Emmons et al. 2022)."""

    algorithm = "rvs"


class DiscreteCQL(Estimator):
    """Conservative Q-learning for discrete actions (Kumar et al. 2020)."""

    algorithm = "discrete_cql"


class TD3BC(Estimator):
    """TD3+BC, for continuous actions (Fujimoto and Gu 2021)."""

    algorithm = "td3_bc"


class IQL(Estimator):
    """Implicit Q-learning, for continuous and discrete actions (Kostrikov et al. 2022)."""

    algorithm = "iql"


class ReBRAC(Estimator):
    """ReBRAC, for continuous actions (Tarasov et al. 2023)."""

    algorithm = "rebrac"
