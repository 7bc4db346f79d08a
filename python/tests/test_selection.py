"""Selection of policies by few episodes."""

from __future__ import annotations

import json
import unittest

import numpy as np

import overtone as ov

from .common import HOPPER, TINY, Desk


class BudgetCurve(unittest.TestCase):
    def test_more_episodes_keep_better_policies(self) -> None:
        random = np.random.default_rng(0)
        returns = [random.normal(center, 5.0, 40) for center in range(0, 60, 6)]
        curve = ov.budget_curve(returns, subsample=6, trials=200)
        self.assertEqual([point.episodes for point in curve][:3], [0, 1, 2])
        regret = {point.episodes: point.regret for point in curve}
        self.assertLess(regret[35], regret[5])
        self.assertLess(regret[5], regret[0])
        even = {at.episodes: at.regret for at in ov.budget_curve(returns, rule="even", trials=200)}
        self.assertLess(regret[20], even[20])
        again = ov.budget_curve(returns, subsample=6, trials=200)
        self.assertEqual(curve, again)

    def test_estimates_decide_without_episodes(self) -> None:
        returns = [[1.0, 1.0], [5.0, 5.0], [3.0, 3.0]]
        first = ov.budget_curve(returns, budgets=[0], trials=5)[0]
        best = ov.budget_curve(returns, budgets=[0], trials=5, estimates=[0.0, 9.0, 4.0])[0]
        self.assertEqual((first.mean, best.mean, best.regret), (1.0, 5.0, 0.0))

    def test_invalid_arguments_are_refused(self) -> None:
        for words, arguments in [
            ("rule=best: expected one of process, even, unifloral", {"rule": "best"}),
            ("policy 1 has no returns", {"returns": [[1.0], []]}),
            ("return 0 of policy 0 is NaN", {"returns": [[float("nan")]]}),
            ("1 estimates for 2 policies", {"estimates": [1.0]}),
            ("trials=0", {"trials": 0}),
        ]:
            with self.assertRaisesRegex(ValueError, words):
                ov.budget_curve(**{"returns": [[1.0], [2.0]], **arguments})


class Choices(Desk):
    def test_a_mode_is_chosen_by_a_budget(self) -> None:
        run = self.train()
        none = run.choose(0, progress="none")
        self.assertEqual(sum("raw_return" in point for point in none["curve"]), 0)
        two = run.choose(2, progress="none")
        self.assertEqual(sum(point.get("raw_return", {"n": 0})["n"] for point in two["curve"]), 2)

    def test_a_run_is_chosen_with_its_mode(self) -> None:
        runs = [self.train(seed=seed) for seed in (1, 2)]
        best = ov.choose(runs, budget=3, target="p50", progress="none")
        self.assertIn(best.path.absolute(), [run.path.absolute() for run in runs])
        [written] = self.folder.glob("runs/*/checkpoints/*/acting.json")
        self.assertEqual(written.parents[2].name, best.path.name)
        portfolio = json.loads(written.read_text())["portfolio"]
        self.assertEqual((len(portfolio["runs"]), portfolio["episodes"]), (2, 3))
        with self.assertRaisesRegex(ov.OvertoneError, "is repeated. Name each run once"):
            ov.choose([best, best], progress="none")
        with self.assertRaisesRegex(ValueError, "expected at least one run"):
            ov.choose([])

    def test_the_best_of_several_algorithms_is_a_run(self) -> None:
        train = {**TINY["train"], "batch_size": 8}
        settings = {"evaluation": {"episodes": 1, "budget": 12, "every": 0}}
        best = ov.train(HOPPER, "mujoco/hopper", algorithm="best", progress="none", train=train,
                        **settings)
        self.assertEqual(len(list(self.folder.glob("runs/*/config.toml"))), 3)
        self.assertTrue((best.path / "evaluation.json").exists())
        evaluation = json.loads((best.path / "evaluation.json").read_text())
        self.assertEqual(evaluation["choice"]["portfolio"]["episodes"], 12)


if __name__ == "__main__":
    unittest.main()
