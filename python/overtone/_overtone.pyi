"""The native module. Private: its interface is the package's."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

__version__: str

class OvertoneError(Exception): ...
class OvertoneWarning(UserWarning): ...

def main(words: list[str]) -> int: ...
def run(words: list[str], on_event: Callable[[str, Any], None]) -> int: ...
def check_settings(words: list[str]) -> None: ...

def content_hash(path: str) -> str: ...
def warnings(path: str, task: str | None) -> list[str]: ...
def behavior_log_probs(path: str) -> NDArray[np.float32] | None: ...
def find(name: str) -> tuple[Path, str | None]: ...

def frames(
    pictures: NDArray[np.uint8], stacks: NDArray[np.uint8], begins: NDArray[np.bool_]
) -> NDArray[np.uint8]: ...

def budget_curve(
    returns: list[list[float]],
    estimates: list[float] | None,
    rule: str,
    budgets: list[int] | None,
    candidates: int | None,
    batch: int,
    trials: int,
    seed: int,
) -> list[tuple[int, float, float, float, float, float]]: ...

class Agents:
    def __init__(
        self,
        run: str,
        checkpoint: str,
        target_return: str,
        n_agents: int,
        deterministic: bool | None,
        temperature: float | None,
        return_quantile: float | None,
        top_percent: float | None,
        seed: int,
        device: str,
    ) -> None: ...
    @property
    def task(self) -> str: ...
    @property
    def target_return(self) -> float: ...
    @property
    def observation_shape(self) -> list[int]: ...
    @property
    def n_actions(self) -> int | None: ...
    @property
    def action_width(self) -> int: ...
    @property
    def action_names(self) -> list[str] | None: ...
    @property
    def reads_rewards(self) -> bool: ...
    @property
    def probabilities(self) -> NDArray[np.float64] | None: ...
    def reset(self) -> None: ...
    def replay(self, path: str) -> NDArray[np.float32]: ...
    def took_indices(
        self, actions: NDArray[np.int64], agents: NDArray[np.int64] | None
    ) -> None: ...
    def took_numbers(
        self, actions: NDArray[np.float32], agents: NDArray[np.int64] | None
    ) -> None: ...
    def act(
        self,
        observations: NDArray[Any],
        agents: NDArray[np.int64] | None,
        rewards: NDArray[np.float32] | None,
        starts: NDArray[np.bool_] | None,
        targets: NDArray[np.float32] | None,
        deterministic: bool | None,
        allowed: NDArray[np.bool_] | None,
    ) -> NDArray[Any]: ...
