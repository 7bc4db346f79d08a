"""Selection of the best of several policies by few evaluation episodes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from overtone import _overtone
from overtone._arrays import array_of


@dataclass(frozen=True)
class BudgetPoint:
    """How good the kept policy is after a number of evaluation episodes."""

    #: Evaluation episodes of all policies together.
    episodes: int
    #: Mean over trials of the kept policy's mean return.
    mean: float
    #: Its 2.5th percentile over trials.
    low: float
    #: Its 97.5th percentile over trials.
    high: float
    #: Standard error of ``mean``.
    standard_error: float
    #: Mean over trials of the best candidate's mean return less the kept one's.
    regret: float


def budget_curve(
    returns: Sequence[ArrayLike] | ArrayLike,
    *,
    rule: str = "process",
    subsample: int | None = None,
    budgets: Sequence[int] | None = None,
    estimates: ArrayLike | None = None,
    batch: int = 1,
    trials: int = 1000,
    seed: int = 0,
) -> list[BudgetPoint]:
    """How good the kept policy is for each number of evaluation episodes.

    A score of the best of several policies depends on how many episodes chose it. Each trial draws
    candidates among the policies, places the episodes by ``rule``, and keeps one. The policies can
    be of any program; ``pandas.DataFrame(curve)`` makes a table.

    Args:
        returns: ``[policies, episodes]``, or a list of returns for each policy.
        rule: ``"process"``: the policy that may be the best, by the returns so far; ``"even"``:
            each in turn; ``"unifloral"``: the rule of that library (Jackson et al. 2025).
        subsample: Policies among which each trial selects; all by default.
        budgets: Numbers of episodes; by default 0, 1, 2, 5, 10, 20, 35, 50, 100, 140 and 200.
        estimates: ``[policies]``, an estimate of each policy's mean return, such as one by fitted
            Q-evaluation, in the units of the returns. The rule ``"process"`` starts from them.
        batch: Episodes that are played at once, before their returns are known.
        trials: Number of trials.
        seed: Seed of the trials. The result does not depend on the number of threads.

    Raises:
        ValueError: When a policy has no returns or one that is not finite, or an argument is 0.
        OverflowError: When a number of episodes, policies or trials is negative.
    """
    rows: list[list[float]] = []
    for number, row in enumerate(returns):
        array = array_of(f"returns: policy {number}", row)
        if array.ndim == 0:
            raise ValueError(
                "returns: expected the returns of each policy, got one number for each. Use "
                "[returns] for the episodes of one policy"
            )
        rows.append(array.astype(np.float64).ravel().tolist())
    own = None if estimates is None else array_of("estimates", estimates).ravel().tolist()
    points = _overtone.budget_curve(
        rows, own, rule, None if budgets is None else [int(n) for n in budgets], subsample,
        batch, trials, seed,
    )
    return [BudgetPoint(*point) for point in points]
