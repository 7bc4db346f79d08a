"""Policies: trained agents that act, one call at a time."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from overtone import _host, _overtone
from overtone._taken import ActionConverter


class Policy:
    """A trained agent that acts in ``n_agents`` episodes in parallel.

    Each agent has its own episode with its history: earlier observations, actions and rewards. The
    actions of an episode depend only on these. Several threads may share a policy; its calls run
    one at a time.

    Args:
        path: A :class:`overtone.Run`, its directory or name, or a checkpoint's directory.
        target_return: The target return: a number, or a percentile of the dataset's returns.
            ``None``: the run's chosen mode, a target return (``"p95"``) or a top percent.
        n_agents: Number of parallel episodes.
        checkpoint: ``"last"``, ``"best"`` or the number of an update.
        deterministic: True: the most probable action; False: a random draw; ``None``: as in
            evaluations, a draw for discrete actions and the mode for continuous ones.
        temperature: Softmax temperature of sampled actions (discrete actions only); ``None``: the
            run's chosen one, or 1.
        return_quantile: Upper limit on the conditioning return, as a quantile of the predicted
            return distribution; 1: no limit; ``None``: the run's chosen one, or 0.9. Requires
            ``model.return_head``.
        top_percent: Imitate this top percentage of the dataset by return; 0: use a target return;
            ``None``: the run's chosen one, if neither ``target_return`` nor ``return_quantile`` is
            set. Requires ``model.top_percents``.
        seed: Seed of all draws: from 0 to 2**64 - 1.
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
            raise ValueError(f"n_agents={n_agents}: expected at least 1")
        if not 0 <= int(seed) < 1 << 64:
            raise ValueError(f"seed={seed}: expected 0 to 2**64 - 1")
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
        self._converter: ActionConverter | None = None
        #: Agents that have started an episode.
        self._begun: set[int] = set()
        self._is_warned = False

    @property
    def task(self) -> str:
        """The agent's task, as ``suite/name``."""
        return self._agents.task

    @property
    def target_return(self) -> float:
        """The target return."""
        return self._agents.target_return

    @property
    def n_actions(self) -> int | None:
        """Number of discrete actions; ``None`` for continuous actions."""
        return self._agents.n_actions

    @property
    def action_names(self) -> list[str] | None:
        """The environment's name of each action, by index; ``None`` for continuous actions.

        For a ``Discrete(3, start=1)`` they are ``"1"``, ``"2"`` and ``"3"``; for a MultiDiscrete
        the combinations, such as ``"0|2"``.
        """
        return self._agents.action_names

    @property
    def probabilities(self) -> NDArray[np.float64] | None:
        """``[n, n_actions]``: probabilities of the last actions (discrete actions only)."""
        return self._agents.probabilities

    def reset(self) -> None:
        """Forgets every episode, and restarts the sequence of seeds."""
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
            observations: ``[n, …]``, in the environment's own units: vectors, or pixels as integers
                from 0 to 255.
            rewards: ``[n]``, the environment's reward of each agent's previous action; 0 at the
                first step of an episode. For games, the policy clips rewards to ±1, because target
                returns are sums of clipped rewards.
            starts: ``[n]``, true at the first observation of an episode. An agent's first call
                always starts one. A vector environment of Gymnasium returns this observation one
                call after the end of an episode, or with ``AutoresetMode.SAME_STEP`` in the same
                call.
            agents: The acting agents, each at most once; all by default.
            target_returns: ``[n]``, target returns of episodes that start now, instead of
                :attr:`target_return`.
            deterministic: True: the most probable actions; False: random draws; ``None``: the
                policy's setting.

        Returns:
            ``[n]`` indices of actions from 0, or ``[n, width]`` numbers in the environment's units.
            An index also counts from 0 for ``Discrete(start=k)``, and names a combination for
            MultiDiscrete; :meth:`predict` returns actions for ``env.step``.

        Raises:
            ValueError: Names the invalid argument.
            OvertoneError: When the agents cannot act, for example in a forked process.

        Warns:
            UserWarning: Once, at the second step of an episode, when a return-conditioned agent
                does not get ``rewards``: its return-to-go then never falls.
        """
        _host.refuse_in_child()
        who = None if agents is None else _indices(agents)
        n = self.n_agents if who is None else len(who)
        shown = _flat(np.asarray(observations), (n, *self._shape))
        if shown.shape == self._shape:
            raise ValueError(
                "observations: expected rows. Pass one observation as observation[None]"
            )
        if shown.shape != (n, *self._shape):
            raise ValueError(
                f"observations: shape {shown.shape}, expected {(n, *self._shape)}: a row for each "
                f"of {n} agents"
            )
        if self._dtype is np.uint8:
            _check_pixels(shown)
        array = np.ascontiguousarray(shown, dtype=self._dtype)
        begins = _row("starts", starts, n, np.bool_)
        with _host.noticing_threads():
            actions = self._agents.act(
                array,
                who,
                _row("rewards", rewards, n, np.float32),
                begins,
                _row("target_returns", target_returns, n, np.float32),
                deterministic,
            )
        acting = range(n) if who is None else who.tolist()
        if rewards is None:
            self._warn_of_rewards(acting, begins)
        self._begun.update(acting)
        return actions

    def took(self, actions: ArrayLike, agents: Sequence[int] | None = None) -> None:
        """Says which actions were really taken, where they differ from the last :meth:`act`'s.

        A person, a limit of the plant or a recording may override the policy. The next action then
        depends on what was taken.

        Args:
            actions: ``[n]`` indices or ``[n, width]`` numbers, as :meth:`act` returns them.
            agents: The agents of the rows; all by default.

        Raises:
            ValueError: When the actions do not have the form of :meth:`act`.
            OvertoneError: When an agent with a history has not acted, or an action is not one of its
                task. An agent without a history ignores the actions.
        """
        _host.refuse_in_child()
        who = None if agents is None else _indices(agents)
        n = self.n_agents if who is None else len(who)
        taken = np.asarray(actions)
        expected = (n,) if self.n_actions is not None else (n, self._agents.action_width)
        if taken.shape != expected:
            raise ValueError(f"actions: shape {taken.shape}, expected {expected}, as act returns")
        if self.n_actions is None:
            self._agents.took_numbers(np.ascontiguousarray(taken, dtype=np.float32), who)
        elif taken.size and taken.dtype.kind not in "iu":
            raise ValueError("actions: whole numbers expected, as act returns")
        else:
            self._agents.took_indices(np.ascontiguousarray(taken, dtype=np.int64), who)

    def replay(self, dataset: str | os.PathLike[str]) -> NDArray[np.float32]:
        """The agent's actions at every step of a recording, in one call.

        The agent sees each recorded observation and proposes an action; its history then contains
        the recorded action and reward. The result shows what the agent would do where the recorded
        policy was, for example to compare both. The episodes of :meth:`act` are not changed.

        Args:
            dataset: A :class:`overtone.Dataset` or a path. Its observations are vectors.

        Returns:
            ``[steps, n_actions]`` probabilities of discrete actions (0 and 1 for a deterministic
            agent), or ``[steps, width]`` numbers, for the steps of the finished episodes.

        Raises:
            OvertoneError: When the dataset is of another task, or its observations are pixels.
        """
        _host.refuse_in_child()
        with _host.noticing_threads():
            return self._agents.replay(os.fspath(dataset))

    def predict(
        self,
        observation: ArrayLike,
        state: tuple[Any, ...] | None = None,
        episode_start: ArrayLike | None = None,
        deterministic: bool | None = None,
        *,
        reward: ArrayLike | float | None = None,
    ) -> tuple[Any, None]:
        """Stable-Baselines3's ``predict``: ``(action, None)`` for one observation or a batch.

        ``env.step`` accepts the action: a ``Discrete`` counts from its start, a MultiDiscrete is a
        vector, and a Box has its shape and type. The policy keeps the history itself: mark the
        first step of an episode with ``episode_start``.

        Args:
            observation: One observation, or ``[n, …]``.
            state: Not used, because the policy keeps the history.
            episode_start: ``[n]``, true at the first step of an episode.
            deterministic: True: the most probable action; False: a random draw; ``None``: the
                policy's setting.
            reward: ``[n]``, for each agent's previous action. A return-conditioned agent needs it.

        Warns:
            UserWarning: As :meth:`act`, without ``reward``.
        """
        del state
        array = np.asarray(observation)
        # A row for each agent is not a single observation with rows and columns.
        if array.shape[1:] != self._shape:
            array = _flat(array, self._shape)
        single = array.shape == self._shape
        batch = array[None] if single else array
        n = len(batch) if batch.ndim else 0
        starts = None if episode_start is None else np.atleast_1d(np.asarray(episode_start))
        rewards = None if reward is None else np.atleast_1d(np.asarray(reward))
        action = self.act(batch, rewards, starts, list(range(n)), deterministic=deterministic)
        taken = self.as_taken(action)
        return (taken[0] if single else taken), None

    def _warn_of_rewards(self, agents: Sequence[int], begins: NDArray[Any] | None) -> None:
        """Warns when return-conditioned agents continue an episode without rewards."""
        if self._is_warned or not self._agents.reads_rewards:
            return
        started = set() if begins is None else {a for a, start in zip(agents, begins) if start}
        if (self._begun & set(agents)) - started:
            self._is_warned = True
            _host.warn(
                "this agent got no reward, so its return-to-go never falls: pass the reward of "
                "the previous action, rewards= in act, reward= in predict"
            )

    def as_taken(self, actions: NDArray[Any]) -> NDArray[Any]:
        """Actions of :meth:`act` in the form for ``env.step``."""
        if self._converter is None:
            self._converter = ActionConverter(self.task, self._agents.action_names)
        return self._converter(actions)

    def as_d3rlpy(self) -> D3rlpyActor:
        """The first agent with the interface of d3rlpy's stateful wrapper: ``predict(x, reward)``
        and ``reset()``."""
        return D3rlpyActor(self)


class D3rlpyActor:
    """One agent with the interface of d3rlpy's ``StatefulTransformerWrapper``."""

    def __init__(self, policy: Policy) -> None:
        self._policy = policy
        self._starts = True

    def predict(self, x: ArrayLike, reward: float) -> Any:
        """The action for ``x``, for ``env.step``; ``reward`` is the reward of the previous action
        (0 in the first step)."""
        reward_before = 0.0 if self._starts else float(reward)
        action, _ = self._policy.predict(
            np.asarray(x)[None], episode_start=[self._starts], reward=[reward_before]
        )
        self._starts = False
        return int(action[0]) if np.ndim(action[0]) == 0 and action.dtype.kind in "iu" else action[0]

    def reset(self) -> None:
        """Starts an episode at the next call."""
        self._starts = True


def _indices(agents: Sequence[int]) -> NDArray[np.int64]:
    """The acting agents, ``[n]``; masks and fractions are refused."""
    who = np.asarray(agents)
    # NumPy reads an empty list as real numbers.
    if who.ndim != 1 or (who.size and who.dtype.kind not in "iu"):
        raise ValueError("agents: whole numbers expected, one for each row of observations")
    return np.ascontiguousarray(who, dtype=np.int64)


def _flat(shown: NDArray[Any], shape: tuple[int, ...]) -> NDArray[Any]:
    """Observations with rows and columns, flattened to vectors of this shape if they match."""
    axes = len(shape) - 1
    is_flat = shown.ndim <= len(shape) or shown.shape[:axes] != shape[:axes]
    return shown if is_flat or shown.size != np.prod(shape) else shown.reshape(shape)


def _check_pixels(shown: NDArray[Any]) -> None:
    """Refuses pixels other than 0, 1, … 255 in any type, for example scaled ones."""
    if shown.dtype == np.uint8:
        return
    is_number = shown.dtype.kind in "iuf"
    if not is_number or not ((shown >= 0) & (shown <= 255) & (shown == np.trunc(shown))).all():
        raise ValueError(
            "observations: whole numbers from 0 to 255 expected, as from the environment"
        )


def _row(
    name: str, values: ArrayLike | float | None, n: int, kind: type[np.generic]
) -> NDArray[Any] | None:
    """A contiguous array of one type, with a number for each of ``n`` agents."""
    if values is None:
        return None
    row = np.ascontiguousarray(values, dtype=kind)
    if row.shape != (n,):
        raise ValueError(
            f"{name}: shape {np.shape(values)}, expected one number for each of {n} agents"
        )
    return row
