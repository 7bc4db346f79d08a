"""Actions in the form that a Gymnasium environment expects."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray


class ActionConverter:
    """Converter of a task's actions, indices or rows of numbers, to the form that ``env.step``
    expects.

    ``space`` is the environment's, if it can be created here. Otherwise it follows from the agent's
    names of the actions: ``1``, or ``0|2`` for a MultiDiscrete. Without either, actions
    stay as they are.
    """

    def __init__(self, space: Any, names: list[str] | None) -> None:
        self._space = space
        self._list: NDArray[Any] | None = None
        try:
            numbers = [[int(part) for part in name.split("|")] for name in names or []]
        except ValueError:
            # Names of a game's actions are words, and its environment expects indices.
            return
        if not numbers:
            return
        self._list = np.array(numbers, np.int64)
        if self._space is None:
            if self._list.shape[1] == 1:
                self._list = self._list[:, 0]
            return
        self._list = self._list.reshape(len(numbers), *self._space.shape)
        self._list = self._list.astype(self._space.dtype)

    def __call__(self, actions: NDArray[Any]) -> NDArray[Any]:
        """``actions`` of :meth:`overtone.Policy.act`, a row for each agent."""
        if self._list is not None:
            return self._list[actions]
        if self._space is None:
            return actions
        space = self._space
        # A 64-bit bound may lie inside of its 32-bit rounding, and actions have 32 bits.
        clipped = np.clip(actions.reshape(len(actions), *space.shape), space.low, space.high)
        return clipped.astype(space.dtype)
