"""Policies: trained agents that act, one call at a time."""

from __future__ import annotations

import os
import warnings
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from overtone import _host, _overtone
from overtone._taken import Taken


class Policy:
    """An agent that was trained, acting in ``n_agents`` episodes at once.

    Each agent has an episode of its own, with its history: the observations, actions and rewards
    that came before. The actions of an episode depend on nothing else. Any thread may call it, and
    waits its turn; others run on meanwhile.

    Args:
        path: A :class:`overtone.Run`, its folder or name, or a checkpoint's folder.
        target_return: The return to ask for: a number, or a percentile of the data's returns;
            ``None``: the agent is played as was chosen for the run, told a return (``"p95"``) or
            how the best episodes act.
        n_agents: Episodes at once.
        checkpoint: ``"last"``, ``"best"`` or the number of an update.
        deterministic: The most probable action, or a draw; ``None``: as the agent is evaluated,
            which is a draw from a list of actions and the mode of real-valued ones.
        temperature: Of actions that are drawn from a list; ``None``: the one that was chosen for
            the run, or 1.
        return_quantile: Of agents that learned what may be earned from a state: they are told no
            more than this quantile of it, 1: whatever is left of the target; ``None``: the one that
            was chosen for the run, or 0.9.
        top_percent: Of agents that were told of shares of the best episodes: to act as in the best
            10 % of the recording, say; 0: they are told a return; ``None``: what was chosen for
            the run, where neither ``target_return`` nor ``return_quantile`` is given.
        seed: Of everything that is drawn: from 0 to 2**64 - 1.
        device: ``"cpu"``, ``"cuda"`` or ``"auto"``.
    """

    def __init__(
        self,
        path: str | os.PathLike[str],
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
    ) -> None:
        if n_agents < 1:
            raise ValueError(f"n_agents={n_agents}: there must be one or more")
        if not 0 <= int(seed) < 1 << 64:
            raise ValueError(f"seed={seed}: must lie between 0 and 2**64 - 1")
        _host.announce()
        self.n_agents = n_agents
        self._agents = _overtone.Agents(
            os.fspath(path), str(checkpoint), "" if target_return is None else str(target_return),
            n_agents, deterministic,
            None if temperature is None else float(temperature),
            None if return_quantile is None else float(return_quantile),
            None if top_percent is None else float(top_percent), int(seed), device,
        )
        shape = tuple(self._agents.observation_shape)
        self._shape = shape
        self._dtype = np.float32 if len(shape) == 1 else np.uint8
        self._taken: Taken | None = None
        #: Agents that began an episode in :meth:`predict`.
        self._begun: set[int] = set()
        self._is_warned = False

    @property
    def task(self) -> str:
        """The task that was learned, as ``suite/name``."""
        return self._agents.task

    @property
    def target_return(self) -> float:
        """The return that is asked for."""
        return self._agents.target_return

    @property
    def n_actions(self) -> int | None:
        """How many actions there are; ``None`` for real-valued ones."""
        return self._agents.n_actions

    @property
    def action_names(self) -> list[str] | None:
        """The environment's name of each action, by index; ``None`` for real-valued ones.

        Of a ``Discrete(3, start=1)`` they are ``"1"``, ``"2"`` and ``"3"``; of a MultiDiscrete the
        combinations, as ``"0|2"``.
        """
        return self._agents.action_names

    @property
    def probabilities(self) -> NDArray[np.float64] | None:
        """``[n, n_actions]``: what the last actions were drawn from, where there was a list."""
        return self._agents.probabilities

    def reset(self) -> None:
        """Forgets every episode; the same seeds come again."""
        self._agents.reset()
        self._begun.clear()

    def act(
        self,
        observations: ArrayLike,
        rewards: ArrayLike | float | None = None,
        starts: ArrayLike | None = None,
        agents: Sequence[int] | None = None,
        *,
        target_returns: ArrayLike | None = None,
        deterministic: bool | None = None,
    ) -> NDArray[Any]:
        """One action for each agent.

        Args:
            observations: ``[n, …]``, in the environment's own units: vectors of any numbers, or
                pixels, whole numbers from 0 to 255.
            rewards: ``[n]``, for each agent's previous action, as the environment gives them (of
                games they are clipped to ±1 here, as what is asked for is); 0 where an episode
                begins.
            starts: ``[n]``, true where ``observations`` has an episode's first. An agent's first
                turn always begins one. A vector environment of Gymnasium shows it one call after
                the one that says done, or, with ``AutoresetMode.SAME_STEP``, in the same.
            agents: Which agents act, each at most once; all by default.
            target_returns: ``[n]``, what episodes that begin now are asked for, if not
                :attr:`target_return`.
            deterministic: The most probable actions, or draws; ``None``: as the policy was made.

        Returns:
            ``[n]`` indices of actions from 0, where a ``Discrete(start=k)`` counts from k and a
            MultiDiscrete has its combinations in order; or ``[n, width]`` numbers in the
            environment's units. :meth:`predict` gives what ``env.step`` takes.

        Raises:
            ValueError: Names the argument that does not fit.
            OvertoneError: When these agents cannot act, in a forked process for example.
        """
        _host.refuse_in_child()
        who = None if agents is None else _indices(agents)
        n = self.n_agents if who is None else len(who)
        shown = _flat(np.asarray(observations), (n, *self._shape))
        if shown.shape == self._shape:
            raise ValueError(
                "observations: rows are expected; one observation is observation[None]"
            )
        if shown.shape != (n, *self._shape):
            raise ValueError(
                f"observations: shape {shown.shape}, and {(n, *self._shape)} is expected: a row "
                f"for each of {n} agents"
            )
        if self._dtype is np.uint8:
            _check_pixels(shown)
        array = np.ascontiguousarray(shown, dtype=self._dtype)
        with _host.noticing_threads():
            return self._agents.act(
                array,
                who,
                _row("rewards", rewards, n, np.float32),
                _row("starts", starts, n, np.bool_),
                _row("target_returns", target_returns, n, np.float32),
                deterministic,
            )

    def predict(
        self,
        observation: ArrayLike,
        state: tuple[Any, ...] | None = None,
        episode_start: ArrayLike | None = None,
        deterministic: bool | None = None,
        *,
        reward: ArrayLike | float | None = None,
    ) -> tuple[Any, None]:
        """As Stable-Baselines3's ``predict``: ``(action, None)``, of one observation or a batch.

        The action is what ``env.step`` takes: counted from the start of a ``Discrete``, a vector of
        a MultiDiscrete, in the shape and type of a Box. The policy keeps the history itself: say
        with ``episode_start`` where an episode begins.

        Args:
            observation: One, or ``[n, …]``.
            state: Not used: the policy remembers.
            episode_start: ``[n]``, true where an episode begins.
            deterministic: The most probable action, or a draw; ``None``: as the policy was made.
            reward: ``[n]``, for each agent's previous action. A return-conditioned agent needs it.

        Warns:
            UserWarning: Once, at the second step of an episode, when a return-conditioned agent gets
                no ``reward``: its return-to-go then never falls.
        """
        del state
        array = np.asarray(observation)
        # A row for each agent is no observation with rows and columns.
        if array.shape[1:] != self._shape:
            array = _flat(array, self._shape)
        single = array.shape == self._shape
        batch = array[None] if single else array
        n = len(batch) if batch.ndim else 0
        starts = None if episode_start is None else np.atleast_1d(np.asarray(episode_start))
        rewards = None if reward is None else np.atleast_1d(np.asarray(reward))
        if reward is None:
            self._warn_of_rewards(n, starts)
        action = self.act(batch, rewards, starts, list(range(n)), deterministic=deterministic)
        self._begun.update(range(n))
        taken = self.as_taken(action)
        return (taken[0] if single else taken), None

    def _warn_of_rewards(self, n: int, starts: NDArray[Any] | None) -> None:
        """Warns where agents go on without being told what they earned."""
        if self._is_warned or not self._agents.reads_rewards:
            return
        begins = np.zeros(n, bool) if starts is None or len(starts) != n else starts
        if any(agent in self._begun and not begins[agent] for agent in range(n)):
            self._is_warned = True
            warnings.warn(
                "predict got no reward, so the return-to-go of this agent never falls: pass "
                "reward= with the reward of the previous action",
                stacklevel=3,
            )

    def as_taken(self, actions: NDArray[Any]) -> NDArray[Any]:
        """Actions of :meth:`act` as the environment takes them."""
        if self._taken is None:
            self._taken = Taken(self.task, self._agents.action_names)
        return self._taken(actions)

    def as_d3rlpy(self) -> D3rlpyActor:
        """The first agent as d3rlpy's stateful wrapper: ``predict(x, reward)`` and ``reset()``."""
        return D3rlpyActor(self)


class D3rlpyActor:
    """One agent as d3rlpy's ``StatefulTransformerWrapper`` is called."""

    def __init__(self, policy: Policy) -> None:
        self._policy = policy
        self._starts = True

    def predict(self, x: ArrayLike, reward: float) -> Any:
        """The action for ``x``, as ``env.step`` takes it; ``reward`` is that of the action before (0
        in the first step)."""
        earned = 0.0 if self._starts else float(reward)
        action, _ = self._policy.predict(
            np.asarray(x)[None], episode_start=[self._starts], reward=[earned]
        )
        self._starts = False
        return int(action[0]) if np.ndim(action[0]) == 0 and action.dtype.kind in "iu" else action[0]

    def reset(self) -> None:
        """The next call begins an episode."""
        self._starts = True


def _indices(agents: Sequence[int]) -> NDArray[np.int64]:
    """Which agents act, ``[n]``; a mask or fractions are none."""
    who = np.asarray(agents)
    # An empty list is one of real numbers to NumPy.
    if who.ndim != 1 or (who.size and who.dtype.kind not in "iu"):
        raise ValueError("agents: whole numbers are expected, one for each row of observations")
    return np.ascontiguousarray(who, dtype=np.int64)


def _flat(shown: NDArray[Any], shape: tuple[int, ...]) -> NDArray[Any]:
    """Observations with rows and columns, whose numbers are those of vectors of this shape."""
    axes = len(shape) - 1
    is_flat = shown.ndim <= len(shape) or shown.shape[:axes] != shape[:axes]
    return shown if is_flat or shown.size != np.prod(shape) else shown.reshape(shape)


def _check_pixels(shown: NDArray[Any]) -> None:
    """Refuses what is not 0, 1, … 255, whatever its type; scaled pixels for example."""
    if shown.dtype == np.uint8:
        return
    is_number = shown.dtype.kind in "iuf"
    if not is_number or not ((shown >= 0) & (shown <= 255) & (shown == np.trunc(shown))).all():
        raise ValueError(
            "observations: whole numbers from 0 to 255 are expected, as the environment shows them"
        )


def _row(
    name: str, values: ArrayLike | float | None, n: int, kind: type[np.generic]
) -> NDArray[Any] | None:
    """Numbers of one kind, side by side in memory, one for each of ``n`` agents."""
    if values is None:
        return None
    row = np.ascontiguousarray(values, dtype=kind)
    if row.shape != (n,):
        raise ValueError(
            f"{name}: shape {np.shape(values)}, and one for each of {n} agents is expected"
        )
    return row
