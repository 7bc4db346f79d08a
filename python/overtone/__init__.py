"""Overtone: offline reinforcement learning, from a dataset to an evaluated policy.

>>> import overtone as ov
>>> run = ov.train(env="hopper", dataset="medium")            # what `overtone train` does
>>> policy = run.policy("p95")
>>> action = policy.act(observation[None])                      # doctest: +SKIP

Settings are the program's (``overtone train --help-all``): ``ov.train(env="hopper",
**{"train.updates": 500})``, or with two underscores for the dot, ``train__updates=500``.
"""

from typing import TYPE_CHECKING

from overtone import _estimator
from overtone._dataset import Dataset, from_d3rlpy, from_minari
from overtone._estimator import *
from overtone._judgement import Judgement, judge
from overtone._mixture import Mixture, concat
from overtone._overtone import OvertoneError, OvertoneWarning, __version__
from overtone._policy import D3rlpyActor, Policy
from overtone._program import Report, words
from overtone._run import (
    Run,
    choose,
    command,
    evaluate,
    export,
    import_,
    load,
    record,
    report,
    study,
    train,
    video,
)
from overtone._selection import BudgetPoint, budget_curve
from overtone._table import from_pandas

from_arrays = Dataset.from_arrays
from_episodes = Dataset.from_episodes

__all__ = [
    "BudgetPoint",
    "D3rlpyActor",
    "Dataset",
    "Judgement",
    "Mixture",
    "OvertoneError",
    "OvertoneWarning",
    "Policy",
    "Report",
    "Run",
    "__version__",
    "budget_curve",
    "choose",
    "command",
    "concat",
    "evaluate",
    "export",
    "from_arrays",
    "from_d3rlpy",
    "from_episodes",
    "from_minari",
    "from_pandas",
    "import_",
    "judge",
    "load",
    "record",
    "report",
    "study",
    "train",
    "video",
    "words",
]
__all__ += _estimator.__all__

if not TYPE_CHECKING:

    def __getattr__(name: str) -> object:
        """Names the class that was meant by an abbreviation."""
        alike = [known for known in __all__ if name.isupper() and name.lower() in known.lower()]
        hint = f". Did you mean {', '.join(alike)}?" if alike else ""
        raise AttributeError(f"module 'overtone' has no attribute {name!r}{hint}")
