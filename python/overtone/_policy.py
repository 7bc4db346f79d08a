"""Policies: trained agents that act, one call at a time."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from overtone import _host, _overtone
from overtone._arrays import array_of, flags_of, whole_number
from overtone._program import path_of
from overtone._spaces import environment_spaces, is_one, observation_rows, with_axis
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
        n_agents, seed = whole_number("n_agents", n_agents), whole_number("seed", seed)
        if n_agents < 1:
            raise ValueError(f"n_agents={n_agents}: expected at least 1")
        if not 0 <= seed < 1 << 64:
            raise ValueError(f"seed={seed}: expected 0 to 2**64 - 1")
        _host.announce()
        self.n_agents = n_agents
        self._agents = _overtone.Agents(
            os.fspath(path), str(checkpoint), "" if target_return is None else str(target_return),
            n_agents, deterministic,
            None if temperature is None else float(temperature),
            None if return_quantile is None else float(return_quantile),
            None if top_percent is None else float(top_percent), seed, device,
        )
        shape = tuple(self._agents.observation_shape)
        self._shape = shape
        self._dtype = np.float32 if len(shape) == 1 else np.uint8
        self._converter: ActionConverter | None = None
        self._spaces: tuple[Any, Any] | None = None
        self._is_environment_made = False
        #: The frames that each agent saw last, if it was shown pictures of its environment.
        self._frames: dict[int, NDArray[np.uint8]] = {}
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
        self._frames.clear()

    def act(
        self,
        observations: ArrayLike,
        rewards: ArrayLike | float | None = None,
        starts: ArrayLike | None = None,
        agents: Sequence[int] | None = None,
        *,
        target_returns: ArrayLike | None = None,
        deterministic: bool | None = None,
        action_mask: ArrayLike | None = None,
    ) -> NDArray[Any]:
        """One action for each agent.

        Args:
            observations: ``[n, …]``, in the environment's own units: vectors, or pixels as integers
                from 0 to 255. A Gymnasium environment's pictures, Dict, Tuple and Discrete
                observations are converted as in training.
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
            action_mask: ``[n, n_actions]``, true for the allowed actions (discrete actions only); an
                agent that was trained with masks needs it.

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
        begins = None if starts is None else _one_each("starts", flags_of("starts", starts), n)
        allowed = None if action_mask is None else self._allowed(action_mask, n)
        shown = _flat(self.rows_of(observations), (n, *self._shape))
        acting = range(n) if who is None else who.tolist()
        is_picture = self._is_picture(shown)
        if is_picture and len(shown) == n:
            shown = self._seen(shown, acting, begins)
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
        with _host.noticing_threads():
            actions = self._agents.act(
                array,
                who,
                _reals("rewards", rewards, n),
                begins,
                _reals("target_returns", target_returns, n),
                deterministic,
                allowed,
            )
        if is_picture:
            self._frames.update(zip(acting, array))
        if rewards is None:
            self._warn_of_rewards(acting, begins)
        self._begun.update(acting)
        return actions

    def _allowed(self, action_mask: ArrayLike, n: int) -> NDArray[np.bool_]:
        """A mask with a row for each of ``n`` agents, flat."""
        mask, n_actions = np.asarray(action_mask), self.n_actions
        if n_actions is None:
            raise ValueError("action_mask: applies only to discrete actions, and these are continuous")
        if mask.shape != (n, n_actions) or not np.isin(mask, (0, 1)).all():
            raise ValueError(
                f"action_mask: expected 0 or 1 in shape {(n, n_actions)}, got shape {mask.shape}"
            )
        return np.ascontiguousarray(mask, dtype=bool).reshape(-1)

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
        taken = array_of("actions", actions)
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
            return self._agents.replay(path_of("dataset", dataset))

    def predict(
        self,
        observation: ArrayLike,
        state: tuple[Any, ...] | None = None,
        episode_start: ArrayLike | None = None,
        deterministic: bool | None = None,
        *,
        reward: ArrayLike | float | None = None,
        action_mask: ArrayLike | None = None,
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
            action_mask: ``[n, n_actions]``, or ``[n_actions]`` for one observation: as in :meth:`act`.

        Warns:
            UserWarning: As :meth:`act`, without ``reward``.
        """
        del state
        single = self._is_single(observation)
        batch = self.rows_of(self._as_batch(observation) if single else observation)
        n = len(batch) if batch.ndim else 0
        starts = None if episode_start is None else np.atleast_1d(episode_start)
        rewards = None if reward is None else np.atleast_1d(array_of("reward", reward))
        convert = self._for_step()
        taken = convert(self.act(
            batch, rewards, starts, list(range(n)), deterministic=deterministic,
            action_mask=None if action_mask is None else np.atleast_2d(action_mask),
        ))
        return (taken[0] if single else taken), None

    def rows_of(self, observations: Any) -> NDArray[Any]:
        """Observations as rows for :meth:`act`: those of the environment's space are converted, and
        other arrays stay as they are."""
        space = None
        is_plain = not isinstance(observations, (Mapping, tuple))
        array = array_of("observations", observations) if is_plain else None
        if array is None or not self._has_rows(array):
            space = self._observation_space()
        if array is None and type(space).__name__ not in ("Dict", "Tuple"):
            array = array_of("observations", observations)
        is_other = array is not None and (self._is_picture(array) or array.shape == self._shape)
        if space is None or is_other:
            assert array is not None
            return array
        rows = observation_rows(space, observations)
        return rows.reshape(len(rows), -1) if len(self._shape) == 1 else rows

    def _has_rows(self, array: NDArray[Any]) -> bool:
        return array.shape[1:] == self._shape

    def _is_single(self, observation: Any) -> bool:
        """Whether this is one observation, and not a row for each agent."""
        if not isinstance(observation, (Mapping, tuple)):
            array = array_of("observations", observation)
            if self._has_rows(array):
                return False
            # One observation with rows and columns.
            if _flat(array, self._shape).shape == self._shape:
                return True
        space = self._observation_space()
        if space is not None:
            return is_one(space, observation)
        # Pictures have two axes, or three with colours.
        return self._dtype is np.uint8 and np.ndim(observation) < 4

    def _as_batch(self, observation: Any) -> Any:
        if isinstance(observation, (Mapping, tuple)):
            space = self._observation_space()
            if type(space).__name__ in ("Dict", "Tuple"):
                return with_axis(space, observation)
        array = array_of("observations", observation)
        return _flat(array, self._shape)[None]

    def _observation_space(self) -> Any:
        spaces = self._environment()
        return None if spaces is None else spaces[0]

    def _environment(self) -> tuple[Any, Any] | None:
        """The spaces of the task's environment, which is made once."""
        if not self._is_environment_made:
            self._spaces, self._is_environment_made = environment_spaces(self.task), True
        return self._spaces

    def _is_picture(self, array: NDArray[Any]) -> bool:
        """Whether these are pictures of an environment, and not yet the agent's frames. Pictures of
        Atari need its own preprocessing."""
        is_frames = self._dtype is np.float32 or self._has_rows(array) or array.ndim < 3
        return not is_frames and array.dtype == np.uint8 and not self.task.startswith("ale/")

    def _seen(
        self, pictures: NDArray[Any], acting: Sequence[int], begins: NDArray[Any] | None
    ) -> NDArray[np.uint8]:
        """The agents' frames after these pictures of their environments."""
        first = np.array([agent not in self._frames for agent in acting], bool)
        first |= np.array([agent not in self._begun for agent in acting], bool)
        if begins is not None:
            first |= begins
        black = np.zeros(self._shape, np.uint8)
        stacks = np.stack([self._frames.get(agent, black) for agent in acting])
        return _overtone.frames(np.ascontiguousarray(pictures), stacks, first)

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
        return self._for_step()(actions)

    def _for_step(self) -> ActionConverter:
        """The conversion of actions for ``env.step``. It may fail, so it is made before a step."""
        if self._converter is None:
            spaces = self._environment()
            space = None if spaces is None else spaces[1]
            self._converter = ActionConverter(space, self._agents.action_names)
        return self._converter

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
            x, episode_start=[self._starts], reward=[reward_before]
        )
        self._starts = False
        return int(action) if np.ndim(action) == 0 and action.dtype.kind in "iu" else action

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


def _reals(name: str, values: ArrayLike | float | None, n: int) -> NDArray[np.float32] | None:
    if values is None:
        return None
    return _one_each(name, array_of(name, values).astype(np.float32), n)


def _one_each(name: str, array: NDArray[Any], n: int) -> NDArray[Any]:
    """A contiguous array with a value for each of ``n`` agents."""
    row = np.ascontiguousarray(array)
    if row.shape != (n,):
        raise ValueError(
            f"{name}: shape {np.shape(array)}, expected one number for each of {n} agents"
        )
    return row
