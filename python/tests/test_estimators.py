"""Algorithms in scikit-learn's form."""

from __future__ import annotations

import copy
import importlib.util
import os
import pickle
import re
import unittest
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any
from unittest import mock

import numpy as np

import overtone as ov

from .common import HOPPER, ROOT, TINY, Desk, carts

ALGORITHMS = ov.Estimator.__subclasses__()
#: Minimal agents with an actor and critics.
TINY_VALUES: dict[str, Any] = {"train": TINY["train"]}


def settings_of(kind: type[ov.Estimator]) -> dict[str, Any]:
    with_a_model = (ov.DecisionTransformer, ov.BehaviorCloning)
    return TINY if kind in with_a_model else TINY_VALUES


class Estimators(Desk):
    def fitted(self, kind: type[ov.Estimator], **settings: Any) -> ov.Estimator:
        """A tiny fitted agent: on Hopper, or on CartPole's shape for discrete actions."""
        agent = kind(progress="none", **{**settings_of(kind), **settings})
        data = ov.from_arrays(**carts()) if kind is ov.DiscreteCQL else HOPPER
        task = None if kind is ov.DiscreteCQL else "mujoco/hopper"
        self.assertIs(agent.fit(data, task=task), agent)
        return agent

    def test_there_is_one_for_each_algorithm_of_the_program(self) -> None:
        with self.assertRaisesRegex(ov.OvertoneError, "algorithm=none: expected one of ") as refused:
            ov.train(env="hopper", algorithm="none", progress="none")
        listed = str(refused.exception).partition("expected one of ")[2]
        named = re.findall(r"\w+", listed.partition(", or in train best")[0])
        self.assertEqual([kind.algorithm for kind in ALGORITHMS], named)
        self.assertTrue(all(kind.__name__ in ov.__all__ for kind in ALGORITHMS))

    def test_every_algorithm_fits_and_predicts(self) -> None:
        random = np.random.default_rng(0)
        for kind in ALGORITHMS:
            with self.subTest(kind.__name__):
                agent = self.fitted(kind)
                self.assertIn(f'algorithm = "{kind.algorithm}"', agent.run_.settings)
                from_a_list = kind is ov.DiscreteCQL
                acted = agent.predict(random.normal(size=(7, 4 if from_a_list else 11)))
                self.assertEqual(acted.shape, (7,) if from_a_list else (7, 3))

    def test_fit_is_train(self) -> None:
        agent = self.fitted(ov.DecisionTransformer, seed=5)
        run = self.train(seed=5, run_dir="other")
        last = "checkpoints/step-00000006/model.safetensors"
        self.assertEqual((agent.run_.path / last).read_bytes(), (run.path / last).read_bytes())

    def test_settings_may_name_task_and_data(self) -> None:
        starters = mock.patch.dict(os.environ, OVERTONE_DATASETS=str(ROOT / "datasets"))
        starters.start()
        self.addCleanup(starters.stop)
        last = "checkpoints/step-00000006/model.safetensors"
        expected = (self.train(seed=5).path / last).read_bytes()
        for settings in (
            {"task": "mujoco/hopper", "dataset": "medium"},
            {"env": "hopper", "dataset": HOPPER, "data": {"top_percent": 100}},
            {"env": "hopper", "dataset": "medium", "runs": "beside"},
        ):
            agent = ov.DecisionTransformer(progress="none", seed=5, **TINY, **settings).fit()
            self.assertEqual((agent.run_.path / last).read_bytes(), expected, settings)
            self.assertEqual(agent.run_.path.parent.name, settings.get("runs", "runs"))
        # Arguments of `fit` come first.
        named = {"task": "mujoco/walker2d", "dataset": "medium"}
        agent = ov.DecisionTransformer(progress="none", **named, **TINY)
        agent.fit(ov.from_arrays(**carts()), task="own/carts")
        self.assertIn('task = "own/carts"', agent.run_.settings)
        agent.fit(HOPPER, task="mujoco/hopper")
        self.assertIn(f'dataset = "{HOPPER}"', agent.run_.settings)
        for word in ("callback", "data"):
            with self.assertRaisesRegex(ValueError, f"unknown option `{word}`"):
                ov.DecisionTransformer(env="hopper", progress="none", **{word: "x"})

    def test_a_row_is_the_first_step_of_an_episode(self) -> None:
        agent = self.fitted(ov.DecisionTransformer, target_return=1200)
        # More than one batch, so that the boundary is tested.
        seen = np.random.default_rng(1).normal(size=(300, 11)).astype(np.float32)
        acted = agent.predict(seen)
        policy = agent.policy()
        for row in (0, 1, 255, 256, 299):
            first = policy.act(seen[row][None], starts=[True])[0]
            np.testing.assert_allclose(acted[row], first, atol=1e-6)
        # The order of rows and earlier calls have no effect.
        np.testing.assert_allclose(agent.predict(seen[::-1])[::-1], acted, atol=1e-6)
        # A history has an effect: use `policy` for it.
        policy.act(seen[:1], starts=[True])
        second = policy.act(seen[1:2], rewards=[1.0])[0]
        self.assertGreater(np.abs(second - acted[1]).max(), 1e-4)

    def test_target_returns_differ_by_row(self) -> None:
        agent = self.fitted(ov.DecisionTransformer, target_return=1200)
        seen = np.random.default_rng(2).normal(size=(3, 11))
        other = agent.predict(seen, 3000)
        mixed = agent.predict(seen, [1200, 3000, 1200])
        np.testing.assert_allclose(mixed[[0, 2]], agent.predict(seen)[[0, 2]], atol=1e-6)
        np.testing.assert_allclose(mixed[1], other[1], atol=1e-6)
        self.assertGreater(np.abs(other - agent.predict(seen)).max(), 1e-5)
        # Changed without training again.
        agent.set_params(target_return=3000)
        np.testing.assert_allclose(agent.predict(seen), other, atol=1e-6)

    def test_agents_without_a_history_act_as_anywhere(self) -> None:
        agent = self.fitted(ov.TD3BC)
        seen = np.random.default_rng(3).normal(size=(5, 11)).astype(np.float32)
        policy = agent.policy()
        played = np.concatenate([policy.act(row[None], rewards=[1.0]) for row in seen])
        np.testing.assert_allclose(agent.predict(seen), played, atol=1e-6)

    def test_the_best_action_is_not_drawn(self) -> None:
        # Random actions as long as it samples.
        agent = self.fitted(ov.DiscreteCQL, discrete_cql__epsilon=1)
        seen = np.zeros((300, 4))
        self.assertEqual(len(set(agent.predict(seen))), 1)
        self.assertEqual(len(set(agent.policy(n_agents=300).act(seen))), 2)

    def test_discrete_actions_have_probabilities(self) -> None:
        arrays = carts()
        agent = ov.BehaviorCloning(progress="none", **TINY).fit(ov.from_arrays(**arrays))
        seen = arrays["observations"][:9]
        likely = agent.predict_proba(seen)
        np.testing.assert_allclose(likely.sum(axis=1), 1)
        np.testing.assert_array_equal(likely.argmax(axis=1), agent.predict(seen))
        with self.assertRaisesRegex(ov.OvertoneError, "TD3BC does not have probabilities"):
            self.fitted(ov.TD3BC).predict_proba(np.zeros((1, 11)))

    def test_parameters_are_kept_as_given(self) -> None:
        train = {"updates": 4}
        agent = ov.IQL(train=train, seed=3)
        params = agent.get_params()
        self.assertIs(params["train"], train)
        self.assertEqual(type(agent)(**params).get_params(), params)
        self.assertEqual(repr(agent), "IQL(train={'updates': 4}, seed=3)")
        self.assertIs(agent.set_params(seed=4), agent)
        self.assertEqual(agent.get_params()["seed"], 4)
        self.assertEqual(params["seed"], 3)
        with self.assertRaisesRegex(ValueError, "IQL is iql"):
            ov.IQL(algorithm="rvs")
        other = copy.copy(agent).set_params(seed=5)
        self.assertEqual([each.get_params()["seed"] for each in (agent, other)], [4, 5])

    def test_the_last_word_of_a_setting_counts(self) -> None:
        def check(updates: int, agent: ov.Estimator, **fit: Any) -> None:
            agent.fit(HOPPER, task="mujoco/hopper", **fit)
            self.assertEqual(agent.run_.checkpoints[-1], updates, agent)

        agent = ov.DecisionTransformer(progress="none", **TINY)
        agent.set_params(train__updates=4)
        check(2, agent.set_params(train={**TINY["train"], "updates": 2}))
        settings = {"train.updates": 4, **TINY}
        check(2, ov.DecisionTransformer(progress="none", **settings), n_steps=2)

    def test_it_is_pickled_with_the_path_of_its_run(self) -> None:
        agent = self.fitted(ov.DecisionTransformer)
        seen = np.zeros((2, 11))
        acted = agent.predict(seen)
        pickled = pickle.dumps(agent)
        # In another directory it is the same run.
        Path("elsewhere").mkdir()
        os.chdir("elsewhere")
        again = pickle.loads(pickled)
        np.testing.assert_array_equal(again.predict(seen), acted)

    def test_threads_share_it(self) -> None:
        arrays = carts()
        agent = ov.BehaviorCloning(progress="none", **TINY).fit(ov.from_arrays(**arrays))
        rows = np.array_split(arrays["observations"], 8)
        alone = [agent.predict_proba(each) for each in rows]
        with ThreadPoolExecutor(4) as pool:
            together = list(pool.map(agent.predict_proba, rows))
        for mine, its in zip(together, alone):
            np.testing.assert_array_equal(mine, its)

    @unittest.skipUnless(importlib.util.find_spec("sklearn"), "scikit-learn is not installed")
    def test_scikit_learn_clones_it(self) -> None:
        from sklearn.base import clone

        agent = ov.DecisionTransformer(train={"updates": 4}, target_return=3)
        self.assertEqual(clone(agent).get_params(), agent.get_params())

    def test_errors_name_the_setting(self) -> None:
        with self.assertRaisesRegex(ov.OvertoneError, "DecisionTransformer is not trained"):
            ov.DecisionTransformer().predict(np.zeros((1, 11)))
        for settings, words in [
            ({"train__learning_rat": 1}, "`train__learning_rat`; .* `train__learning_rate`"),
            ({"train": {"learning_rat": 1}}, "`train__learning_rate`"),
            ({"train__updates": "many"}, "^train__updates=many: expected .* train__updates="),
            ({"atention": 1}, "unknown option `atention`"),
        ]:
            with self.subTest(settings), self.assertRaisesRegex(ValueError, words):
                ov.DecisionTransformer(**settings)
            with self.assertRaisesRegex(ValueError, words):
                ov.DecisionTransformer().set_params(**settings)
        agent = self.fitted(ov.DecisionTransformer)
        with self.assertRaisesRegex(ValueError, "observations: shape"):
            agent.predict(np.zeros((2, 10)))
        with self.assertRaisesRegex(ValueError, "expected at least one row"):
            agent.predict(np.zeros((0, 11)))
        with self.assertRaisesRegex(ValueError, r"observation\[None\]"):
            agent.predict(np.zeros(11))
        with self.assertRaisesRegex(ValueError, r"target_returns: shape \(2,\), .* 5 rows"):
            agent.predict(np.zeros((5, 11)), [1, 2])
        with self.assertRaises(TypeError):
            ov.Estimator()


if __name__ == "__main__":
    unittest.main()
