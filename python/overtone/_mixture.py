"""Several datasets of one task that are trained on as one."""

from __future__ import annotations

import os
from collections.abc import Sequence

from overtone._dataset import Dataset


class Mixture:
    """Several datasets of one task, made by :func:`overtone.concat`.

    Pass it to :func:`overtone.train` or to ``fit``. Returns, top percents and the normalization of
    observations are those of all datasets together.
    """

    def __init__(self, datasets: Sequence[Dataset], shares: Sequence[float] | None) -> None:
        if len(datasets) < 2:
            raise ValueError(f"concat: expected at least two datasets, got {len(datasets)}")
        if shares is not None and len(shares) != len(datasets):
            raise ValueError(f"shares: expected {len(datasets)} numbers, got {len(shares)}")
        self.datasets = list(datasets)
        self.shares = None if shares is None else [float(share) for share in shares]

    def __repr__(self) -> str:
        return f"Mixture({self.datasets}, shares={self.shares})"

    @property
    def task(self) -> str | None:
        """The task that the datasets name; ``own/NAME`` only if none names an environment."""
        named = {data.task for data in self.datasets if data.task is not None}
        played = {task for task in named if not task.startswith("own/")}
        if len(played) > 1:
            raise ValueError(f"concat: datasets of different tasks, {', '.join(sorted(played))}")
        return min(played or named, default=None)

    def words(self) -> list[str]:
        """The program's words."""
        paths = [os.fspath(data) for data in self.datasets]
        for path in paths:
            if "," in path:
                raise ValueError(f"{path}: a path of a mixture must not contain a comma")
        words = [f"dataset={','.join(paths)}"]
        if self.shares is not None:
            words.append(f"data.shares={','.join(map(str, self.shares))}")
        return words


def concat(
    datasets: Sequence[Dataset | str | os.PathLike[str]], shares: Sequence[float] | None = None
) -> Mixture:
    """Several datasets of one task, in any formats, to be trained on as one.

    Args:
        datasets: Datasets, or what :meth:`overtone.Dataset.open` takes. Their order has no effect,
            and together they define the spaces of a task ``own/NAME``.
        shares: The proportion of each dataset among the contexts; by default in proportion to
            their steps.

    Raises:
        ValueError: With fewer than two datasets, or another number of shares.
    """
    return Mixture([
        data if isinstance(data, Dataset) else Dataset.open(os.fspath(data)) for data in datasets
    ], shares)
