"""Policies act as the program's agents do."""

from __future__ import annotations

import functools
import itertools
import sys
import threading
import unittest
import warnings
from concurrent.futures import ThreadPoolExecutor
from unittest import mock

import gymnasium
import numpy as np
from gymnasium import spaces

import overtone as ov
from overtone import _overtone

from .common import HOPPER, ROOT, TINY, Desk, carts


#: Few updates of an agent that reads single observations.
VALUES: dict[str, object] = {
    "train.updates": 3, "train.batch_size": 4, "evaluation.episodes": 0,
}


class Shown(gymnasium.Env[np.ndarray, object]):
    """Actions of any space, and three numbers or observations of another space."""

    observation_space = spaces.Box(-9, 9, (3,), np.float64)

    def __init__(
        self, actions: spaces.Space[object], observations: spaces.Space[object] | None = None,
        render_mode: str | None = None,
    ) -> None:
        self.action_space = actions
        self.observation_space = observations or self.observation_space


class Policies(Desk):
    def test_an_episode_played_in_python_is_the_programs(self) -> None:
        # Gymnasium's simulation here, ours there: the return must be the same.
        run = self.train(**{"evaluation.episodes": 2, "evaluation.target": 2000, "evaluation.protocol": "v5"})
        (evaluation,) = run.evaluations().values()
        policy = run.policy(2000)
        environment = gymnasium.make("Hopper-v5")
        for episode in evaluation["episodes"]:
            observation, _ = environment.reset(seed=episode["environment_seed"])
            reward, total, over, start = 0.0, 0.0, False, True
            while not over:
                action = policy.act(observation[None], [reward], [start])[0]
                observation, reward, ended, cut, _ = environment.step(action)
                total, over, start = total + float(reward), ended or cut, False
            self.assertAlmostEqual(total, episode["raw_return"], delta=1e-4 * abs(total))

    def test_a_games_rewards_are_clipped_as_its_returns_are(self) -> None:
        model = {"d_model": 16, "n_layers": 1, "n_heads": 1}
        words = {**TINY, "model": model, "data.transitions": 2000}
        run = ov.train(ROOT / "datasets/starter/Seaquest", game="seaquest", progress="none", **words)
        policy = run.policy(30)
        frames = np.random.default_rng(3).integers(0, 256, (2, 1, 4, 84, 84)).astype(np.uint8)

        def second(reward: float) -> np.ndarray:
            policy.reset()
            policy.act(frames[0])
            policy.act(frames[1], [reward])
            assert policy.probabilities is not None
            return policy.probabilities

        np.testing.assert_array_equal(second(20.0), second(1.0))
        self.assertTrue((second(20.0) != second(0.0)).any())

    def test_damaged_weights_are_skipped_with_a_warning(self) -> None:
        run = self.train(**{"train.checkpoint_every": 1})
        newest = sorted(run.path.glob("checkpoints/step-*"))[-1]
        (newest / "model.safetensors").write_bytes(b"")
        with self.assertWarnsRegex(UserWarning, "skipped a checkpoint: .*model.safetensors"):
            run.policy("p50")

    def test_agents_are_independent(self) -> None:
        policy = self.train().policy("p50", n_agents=5)
        random = np.random.default_rng(1)
        seen = random.normal(size=(4, 5, 11)).astype(np.float32)
        together = np.stack([policy.act(step) for step in seen])
        policy.reset()
        for agent in (3, 0):
            alone = [policy.act(step[[agent]], agents=[agent])[0] for step in seen]
            np.testing.assert_allclose(alone, together[:, agent], atol=1e-6)

    def test_only_allowed_actions_are_taken(self) -> None:
        arrays = carts()
        mask = np.ones((len(arrays["actions"]), 3), bool)
        mask[:, 2] = False
        data = ov.from_arrays(**arrays, action_mask=mask, task="own/carts")
        run = ov.train(data, algorithm="discrete_cql", progress="none", **VALUES)
        policy = run.policy(n_agents=2, seed=1)
        seen = np.zeros((2, 4), np.float32)
        with self.assertRaisesRegex(ov.OvertoneError, "trained with masks of actions.*action_mask="):
            policy.act(seen)
        for allowed in (0, 1, 2):
            one = np.eye(3, dtype=int)[[allowed, (allowed + 1) % 3]]
            np.testing.assert_array_equal(policy.act(seen, action_mask=one), one.argmax(1))
            np.testing.assert_allclose(policy.probabilities, one)
            self.assertEqual(policy.predict(seen[0], action_mask=one[0])[0], allowed)
        for words, wrong in [
            (r"expected 0 or 1 in shape \(2, 3\), got shape \(3,\)", [1, 1, 1]),
            (r"expected 0 or 1 in shape \(2, 3\)", np.full((2, 3), 2)),
        ]:
            with self.assertRaisesRegex(ValueError, words):
                policy.act(seen, action_mask=wrong)
        with self.assertRaisesRegex(ov.OvertoneError, "no allowed action in row 1"):
            policy.act(seen, action_mask=[[1, 0, 0], [0, 0, 0]])
        # The recording's own masks.
        self.assertTrue((policy.replay(data)[:, 2] == 0).all())
        with self.assertRaisesRegex(ValueError, "these are continuous"):
            self.train().policy("p50").act(np.zeros((1, 11)), action_mask=[[1]])

    def test_an_action_that_was_taken_enters_the_history(self) -> None:
        policy = self.train().policy("p50", n_agents=2)
        seen = np.random.default_rng(1).normal(size=(3, 2, 11)).astype(np.float32)

        def after(replaced: bool) -> np.ndarray:
            policy.reset()
            own = policy.act(seen[0])
            policy.took(own)
            if replaced:
                policy.took(-own[[1]], agents=[1])
            return policy.act(seen[1])

        own, other = after(False), after(True)
        policy.reset()
        policy.act(seen[0])
        np.testing.assert_array_equal(policy.act(seen[1]), own)
        np.testing.assert_array_equal(other[0], own[0])
        self.assertGreater(abs(other[1] - own[1]).max(), 0)
        for words, call in [
            ("actions: shape", lambda: policy.took(own[0])),
            ("agents: 2 is not one of 2", lambda: policy.took(own, agents=[0, 2])),
        ]:
            with self.assertRaisesRegex(ValueError, words):
                call()
        with self.assertRaisesRegex(ov.OvertoneError, "has not acted"):
            self.train().policy("p50").took(own[:1])

    def test_a_failed_call_changes_nothing(self) -> None:
        run = ov.train(ov.from_arrays(**carts()), "own/cart", progress="none", **TINY)
        plain, disturbed = (run.policy(n_agents=2, seed=1) for _ in range(2))
        seen = np.random.default_rng(0).normal(size=(12, 2, 4)).astype(np.float32)
        huge = np.array([[0, 0, 0, 0], [np.inf] * 4], np.float32)
        for step, rows in enumerate(seen):
            for starts in (None, [True, True]):
                with self.assertRaises(ov.OvertoneError):
                    disturbed.act(huge, rewards=[1, 1], starts=starts)
            if step > 0:
                with self.assertRaises(ov.OvertoneError):
                    disturbed.act(rows, rewards=[1, np.nan])
            with self.assertRaises(ov.OvertoneError):
                disturbed.took([0, 7])
            ours, theirs = (policy.act(rows, rewards=[1, 1]) for policy in (plain, disturbed))
            np.testing.assert_array_equal(ours, theirs)
            np.testing.assert_array_equal(plain.probabilities, disturbed.probabilities)

    def test_discrete_actions_are_drawn_with_a_seed(self) -> None:
        data = ov.Dataset.from_arrays(**carts())
        run = ov.train(data, "gymnasium/CartPole-v1", progress="none", **TINY)
        seen = np.random.default_rng(2).normal(size=(1, 4))
        draws = []
        for seed in (5, 5, 6):
            policy = run.policy(20, seed=seed)
            draws.append([int(policy.act(seen, starts=[True])[0]) for _ in range(60)])
        self.assertEqual(draws[0], draws[1])
        self.assertNotEqual(draws[0], draws[2])
        probabilities = policy.probabilities
        assert probabilities is not None
        np.testing.assert_allclose(probabilities.sum(axis=1), 1)
        likely = run.policy(20, deterministic=True)
        action = likely.act(seen)[0]
        self.assertEqual(action, np.argmax(probabilities[0]))

    def test_other_packages_interfaces_agree(self) -> None:
        run = self.train()
        seen = np.random.default_rng(3).normal(size=(3, 11)).astype(np.float32)
        policy = run.policy(1500)
        mine = [policy.act(row[None], [1.0])[0] for row in seen]
        actor = run.policy(1500).as_d3rlpy()
        np.testing.assert_array_equal([actor.predict(row, 1.0) for row in seen], mine)
        other = run.policy(1500)
        theirs = [other.predict(row, episode_start=[i == 0], reward=1.0)[0] for i, row in enumerate(seen)]
        np.testing.assert_array_equal(theirs, mine)

    def test_predict_draws_or_takes_the_most_probable(self) -> None:
        """Independent of the policy's setting, which `act` uses."""
        arrays = carts()
        rows = arrays["observations"][:80]
        start = np.ones(80, bool)
        data = ov.from_arrays(**arrays)
        runs = {
            "cloned": ov.train(data, algorithm="behavior_cloning", progress="none", **TINY),
            "valued": ov.train(
                data, algorithm="discrete_cql", progress="none", train=TINY["train"],
                **{"discrete_cql.epsilon": 0.9, "evaluation.episodes": 0},
            ),
        }
        for (name, run), made in itertools.product(runs.items(), (None, True, False)):
            with self.subTest(name, made=made):
                policy = run.policy(n_agents=80, deterministic=made)

                def acted(deterministic: bool | None) -> np.ndarray:
                    action, _ = policy.predict(
                        rows, episode_start=start, deterministic=deterministic
                    )
                    return np.asarray(action)

                likely = acted(True)
                if policy.probabilities is not None:
                    np.testing.assert_array_equal(likely, policy.probabilities.argmax(-1))
                np.testing.assert_array_equal(acted(True), likely)
                self.assertTrue((acted(False) != likely).any())
                self.assertEqual(bool((acted(None) != likely).any()), made is not True)
                chosen = policy.act(rows, starts=start)
                self.assertEqual(bool((chosen != likely).any()), made is not True)

    def test_an_agent_without_a_distribution_refuses_draws(self) -> None:
        run = ov.train(
            HOPPER, "mujoco/hopper", algorithm="td3_bc", progress="none", train=TINY["train"],
            **{"evaluation.episodes": 0},
        )
        seen = np.zeros((1, 11))
        for call in (
            lambda: run.policy(deterministic=False),
            lambda: run.policy().predict(seen, deterministic=False),
        ):
            with self.assertRaisesRegex(ValueError, "deterministic=False: .* does not have a distribution"):
                call()
        np.testing.assert_array_equal(
            run.policy().predict(seen, deterministic=True)[0], run.policy().act(seen)
        )

    def test_predict_gives_what_the_environment_takes(self) -> None:
        """For each kind of space, as in the program."""
        seen = np.random.default_rng(0).normal(size=(40, 3))
        ends = np.arange(40) % 10 == 9
        for name, space, actions in [
            ("from_1", spaces.Discrete(3, start=1), np.arange(40) % 3),
            ("several", spaces.MultiDiscrete([[2, 3], [2, 1]], start=[[0, 5], [0, 0]]), np.arange(40) % 12),
            ("bits", spaces.MultiBinary(3), np.arange(40) % 8),
            ("shaped", spaces.Box(-2, 2, (2, 1), np.float64), np.zeros((40, 2))),
        ]:
            with self.subTest(name):
                gymnasium.register(f"taken_{name}-v0", functools.partial(Shown, space))
                data = ov.from_arrays(seen, actions, np.ones(40), ends, task=f"gymnasium/taken_{name}-v0")
                run = ov.train(data, algorithm="behavior_cloning", progress="none", **TINY)
                policy = run.policy(n_agents=40)
                start = np.ones(40, bool)
                positions = policy.act(seen, starts=start, deterministic=True)
                taken, _ = policy.predict(seen, episode_start=start, deterministic=True)
                estimator = ov.BehaviorCloning(progress="none", **TINY)
                estimator.run_ = run
                for each in (*taken, *estimator.predict(seen)):
                    self.assertTrue(space.contains(each), repr(each))
                one, _ = run.policy().predict(seen[0])
                self.assertTrue(space.contains(one), repr(one))
                self.assertTrue(space.contains(run.policy().as_d3rlpy().predict(seen[0], 0.0)))
                if isinstance(space, spaces.Discrete):
                    np.testing.assert_array_equal(taken, positions + 1)
                elif isinstance(space, spaces.MultiDiscrete):
                    flat = np.stack(np.unravel_index(positions, (2, 3, 2, 1)), axis=1)
                    np.testing.assert_array_equal(taken, flat.reshape(-1, 2, 2) + space.start)

    def test_observations_are_taken_as_the_environment_gives_them(self) -> None:
        """For each kind of space, as in training and evaluation."""
        box = spaces.Box(-1, 1, (2,), np.float32)
        n = 24
        for name, space in [
            ("dict", spaces.Dict({"z": box, "a": spaces.Discrete(3), "m": spaces.MultiBinary(2)})),
            ("tuple", spaces.Tuple((box, spaces.Discrete(4, start=2)))),
            ("pair", spaces.Tuple((box, box))),
            ("state", spaces.Discrete(7)),
            ("stack", spaces.Box(-1, 1, (4, 3), np.float32)),
        ]:
            with self.subTest(name):
                space.seed(1)
                seen = [space.sample() for _ in range(n)]
                batch = gymnasium.vector.utils.concatenate(
                    space, seen, gymnasium.vector.utils.create_empty_array(space, n)
                )
                rows = np.array([gymnasium.spaces.flatten(space, each) for each in seen])
                gymnasium.register(
                    f"seen_{name}-v0", functools.partial(Shown, spaces.Discrete(3), space)
                )
                data = ov.from_arrays(
                    rows.astype(np.float32), np.arange(n) % 3, np.ones(n), np.arange(n) % 6 == 5,
                    task=f"gymnasium/seen_{name}-v0",
                )
                run = ov.train(data, algorithm="discrete_cql", progress="none", **VALUES)
                expected = run.policy(n_agents=n).act(rows, deterministic=True)
                policy = run.policy(n_agents=n, deterministic=True)
                np.testing.assert_array_equal(policy.act(batch), expected)
                start = np.ones(n, bool)
                np.testing.assert_array_equal(
                    policy.predict(batch, episode_start=start)[0], expected
                )
                estimator = ov.DiscreteCQL(progress="none", **VALUES)
                estimator.run_ = run
                np.testing.assert_array_equal(estimator.predict(batch), expected)
                one = run.policy(deterministic=True)
                self.assertEqual([one.predict(each)[0] for each in seen], expected.tolist())
                if isinstance(space, spaces.Discrete):
                    with self.assertRaisesRegex(ValueError, "observations: row 1 is 7, which is not"):
                        run.policy(n_agents=2).act([0, 7])

    def test_pictures_of_the_environment_become_frames(self) -> None:
        random = np.random.default_rng(2)
        n = 12
        pictures = random.integers(0, 255, (n, 32, 30, 3), dtype=np.uint8)
        data = ov.from_arrays(
            pictures, np.arange(n) % 2, np.ones(n), np.arange(n) % 6 == 5, task="own/pictures"
        )
        run = ov.train(data, algorithm="discrete_cql", progress="none", **VALUES)
        policy, frames = run.policy(), run.policy()
        stack = np.zeros((1, 4, 84, 84), np.uint8)
        for step, picture in enumerate(pictures):
            begins = np.array([step % 6 == 0])
            stack = _overtone.frames(picture[None], stack, begins)
            acted = policy.act(picture[None], starts=begins)
            np.testing.assert_array_equal(acted, frames.act(stack, starts=begins))
            np.testing.assert_array_equal(policy.probabilities, frames.probabilities)
        # Black before an episode's first frame.
        self.assertTrue((_overtone.frames(pictures[:1], stack, np.ones(1, bool))[0, :3] == 0).all())
        self.assertEqual(np.ndim(run.policy().predict(pictures[0])[0]), 0)
        self.assertEqual(run.policy(n_agents=2).predict(pictures[:2])[0].shape, (2,))
        with self.assertRaisesRegex(ValueError, "pictures of shape .*expected"):
            run.policy().act(np.zeros((1, 9, 9, 7), np.uint8))

    def test_masked_numbers_are_not_acted_on(self) -> None:
        policy = self.train().policy()
        masked = np.ma.masked_array(np.zeros((1, 11)), mask=np.arange(11) == 3)
        seen = np.zeros((1, 11))
        for words, call in [
            ("observations: row 0 is masked", lambda: policy.act(masked)),
            ("observations: row 3 is masked", lambda: policy.predict(masked[0])),
            ("rewards: row 0 is masked", lambda: policy.act(seen, np.ma.masked_array([1.0], [True]))),
            ("actions: row 0 is masked", lambda: policy.took(masked[:, 2:5])),
            ("starts: row 0 is 0.5", lambda: policy.act(seen, starts=[0.5])),
            ("n_agents='2': expected a whole number", lambda: ov.Policy("runs", n_agents="2")),
        ]:
            with self.assertRaisesRegex(ValueError, words):
                call()
        self.assertEqual(policy.act(np.ma.masked_array(seen)).shape, (1, 3))

    def test_missing_rewards_are_warned_of_once(self) -> None:
        run = self.train()
        seen = np.zeros((1, 11))
        policy = run.policy(1500)
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            policy.predict(seen, episode_start=[True])
            policy.predict(seen, episode_start=[True])
            policy.predict(seen, episode_start=[False], reward=[1.0])
        for forgetful in (
            lambda: policy.predict(seen, episode_start=[False]),
            # The second agent starts an episode, so only the first lacks a reward.
            lambda: several.act(np.stack([seen, seen]), starts=[False, True]),
        ):
            several = run.policy("p50", n_agents=2)
            several.act(np.stack([seen, seen]))
            with self.assertWarnsRegex(UserWarning, "return-to-go never falls: pass the reward") as said:
                forgetful()
                forgetful()
            self.assertEqual((len(said.warnings), said.filename), (1, __file__))
        cloned = self.train(algorithm="behavior_cloning")
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            # Neither uses a reward.
            for other in (cloned.policy(), run.policy(top_percent=100)):
                for _ in range(3):
                    other.predict(seen)
            starting = run.policy("p50", n_agents=1)
            for _ in range(3):
                starting.act(seen[None], starts=[True])

    def test_the_return_quantile_can_be_set(self) -> None:
        run = self.train()
        seen = np.random.default_rng(4).normal(size=(1, 11)).astype(np.float32)
        acted = [
            run.policy(1e6, return_quantile=q).act(seen) for q in (None, 0.9, 0.1, 1)
        ]
        np.testing.assert_array_equal(acted[0], acted[1])
        self.assertFalse(np.array_equal(acted[1], acted[2]))
        self.assertFalse(np.array_equal(acted[1], acted[3]))
        with self.assertRaisesRegex(ValueError, "return_quantile=1.5"):
            run.policy(return_quantile=1.5)
        model = {**TINY["model"], "return_head": "none"}
        with self.assertRaisesRegex(ValueError, "model.return_head=hl_gauss"):
            self.train(model=model).policy(return_quantile=0.5)

    def test_a_top_percent_can_be_set(self) -> None:
        run = self.train(model={**TINY["model"], "top_percents": "10,100"})
        seen = np.random.default_rng(4).normal(size=(1, 11)).astype(np.float32)
        tenth, all_, asked = (
            run.policy(target, top_percent=best).act(seen)
            for target, best in [(None, 10), (None, 100), (1500, None)]
        )
        with self.assertRaisesRegex(ValueError, "target=1500 and top_percent=10"):
            run.policy(1500, top_percent=10)
        self.assertFalse(np.array_equal(tenth, all_))
        np.testing.assert_array_equal(asked, run.policy(1500, top_percent=0).act(seen))
        with self.assertRaisesRegex(ValueError, "top_percent=20: expected one of 10, 100"):
            run.policy(top_percent=20)
        with self.assertRaisesRegex(ValueError, "conditioned on the top 10 % of its dataset"):
            run.policy(top_percent=10).act(seen, target_returns=[3.0])

    def test_a_refused_call_does_not_start_an_episode(self) -> None:
        run = self.train()
        seen = np.random.default_rng(5).normal(size=(2, 11)).astype(np.float32)
        expected = run.policy(n_agents=2).act(seen)
        policy = run.policy(n_agents=2)
        for kind, words, rows, agents in [
            (ValueError, "agents: row 1 is 5", seen, [0, 5]),
            (ov.OvertoneError, "2 turns of 1 agents", seen, [0, 0]),
            (ov.OvertoneError, "finite numbers", np.full_like(seen, np.nan), [0, 1]),
        ]:
            with self.assertRaisesRegex(kind, words):
                policy.act(rows, agents=agents)
        alone = [policy.act(seen[[agent]], agents=[agent])[0] for agent in (0, 1)]
        np.testing.assert_allclose(alone, expected, atol=1e-6)

    def test_a_policy_acts_and_ends_on_any_thread(self) -> None:
        policy = self.train().policy()
        seen = np.random.default_rng(6).normal(size=(1, 11)).astype(np.float32)
        expected = policy.act(seen)
        policy.reset()
        acted: list[np.ndarray] = []
        policies = [policy]
        del policy

        def work() -> None:
            acted.append(policies[0].act(seen))
            self.assertEqual(policies[0].task, "mujoco/hopper")
            # The last reference: it ends here.
            policies.clear()

        with mock.patch.object(sys, "unraisablehook") as lost:
            thread = threading.Thread(target=work)
            thread.start()
            thread.join()
        np.testing.assert_array_equal(acted, [expected])
        self.assertEqual((policies, lost.call_args_list), ([], []))

    def test_threads_take_turns(self) -> None:
        policy = self.train().policy(1800, n_agents=4)
        seen = np.random.default_rng(8).normal(size=(4, 40, 11)).astype(np.float32)

        def episode(agent: int) -> np.ndarray:
            return np.stack([policy.act(row[None], agents=[agent])[0] for row in seen[agent]])

        alone = [episode(agent) for agent in range(4)]
        policy.reset()
        with ThreadPoolExecutor(4) as pool:
            together = list(pool.map(episode, range(4)))
        np.testing.assert_array_equal(together, alone)

    def test_pixels_are_whole_numbers_from_0_to_255(self) -> None:
        frames = np.random.default_rng(7).integers(0, 256, (40, 4, 84, 84)).astype(np.uint8)
        data = ov.from_arrays(
            frames, np.arange(40) % 2, np.ones(40), np.arange(40) % 10 == 9, task="own/screens"
        )
        model = {"d_model": 16, "n_layers": 1, "n_heads": 1}
        run = ov.train(data, progress="none", **{**TINY, "model": model})
        # The array may have any memory order.
        fortran = ov.from_arrays(
            np.asfortranarray(frames), np.arange(40) % 2, np.ones(40), np.arange(40) % 10 == 9,
            path="fortran.npz",
        )
        self.assertEqual(fortran.hash, data.hash)
        policy = run.policy()

        def likely(shown: np.ndarray) -> np.ndarray:
            policy.act(shown, starts=[True])
            assert policy.probabilities is not None
            return policy.probabilities

        expected = likely(frames[:1])
        for kind in (np.int64, np.float32):
            np.testing.assert_array_equal(likely(frames[:1].astype(kind)), expected)
        for wrong in (frames[:1] / 255, frames[:1] + np.int64(256), frames[:1] - np.int64(300)):
            with self.assertRaisesRegex(ValueError, "whole numbers from 0 to 255 expected"):
                policy.act(wrong)

    def test_invalid_arguments_are_refused_by_name(self) -> None:
        policy = self.train().policy(n_agents=2)
        for words, call in [
            ("observations: shape", lambda: policy.act(np.zeros((2, 10)))),
            ("rewards: shape", lambda: policy.act(np.zeros((2, 11)), [1.0])),
            ("agents: row 1 is 7", lambda: policy.act(np.zeros((2, 11)), agents=[0, 7])),
            ("agents: whole numbers", lambda: policy.act(np.zeros((2, 11)), agents=[True, False])),
            ("agents: whole numbers", lambda: policy.act(np.zeros((2, 11)), agents=[0.2, 1.7])),
            (r"observation\[None\]", lambda: policy.act(np.zeros(11))),
            ("seed=-1: expected 0 to", lambda: self.train().policy(seed=-1)),
        ]:
            with self.assertRaisesRegex(ValueError, words):
                call()
        self.assertEqual(policy.act(np.zeros((0, 11)), agents=[]).shape, (0, 3))
        with self.assertRaisesRegex(ov.OvertoneError, "run `nobody` does not exist") as refused:
            ov.Policy("nobody")
        with self.assertRaises(ov.OvertoneError) as program:
            ov.command(["resume", "run=nobody"], progress="none")
        self.assertEqual(str(refused.exception), str(program.exception))
        with self.assertRaisesRegex(ValueError, "p101"):
            self.train().policy("p101")


if __name__ == "__main__":
    unittest.main()
