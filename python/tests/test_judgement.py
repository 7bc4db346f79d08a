"""Estimates from a recording, and the actions of an agent on one."""

from __future__ import annotations

import unittest

import numpy as np

import overtone as ov

from .common import HOPPER, Desk

ACTIONS = 3


def shifts(n: int, length: int = 6) -> ov.Dataset:
    """Shifts of an operator who mostly waits; action 2 earns most."""
    random = np.random.default_rng(3)
    probs = np.array([0.5, 0.3, 0.2])
    actions = random.choice(ACTIONS, n * length, p=probs)
    observations = random.normal(size=(n * length, 2)).astype(np.float32)
    ends = np.arange(1, n * length + 1) % length == 0
    return ov.from_arrays(
        observations, actions, actions + random.normal(0, 0.1, n * length), ends,
        n_actions=ACTIONS, behavior_log_probs=np.log(probs[actions]), task="own/shifts",
    )


class Judging(Desk):
    def run_of(self, data: ov.Dataset, **settings: object) -> ov.Run:
        settings = {
            "train.updates": 200, "train.batch_size": 32, "model.d_model": 16, **settings,
        }
        return ov.train(data, algorithm="rvs", progress="none", **settings)

    def test_a_better_agent_is_found(self) -> None:
        data = shifts(400)
        run = self.run_of(data, **{"train.held_out": 0.5})
        judgement = ov.judge(run, progress="none", updates=100, critics=2)
        self.assertEqual(len(judgement.table), 12)
        # Cloning everything is as good as the operator; the best 10 % of shifts earn more.
        recorded = judgement.runs[0]["recording"]
        self.assertEqual((recorded["episodes"], recorded["trained"]), (200, "no"))
        row = next(row for row in judgement.table if row["top_percent"] == 10.0)
        self.assertGreater(row["estimate"], recorded["mean_return"])
        for row in judgement.table:
            # Where the weights refuse, no critics are fitted.
            refused = {"weights", "overlap"} & set(row["reasons"])
            self.assertEqual(row["method"], "wpdis" if refused else "wdr")
            self.assertGreaterEqual(row["level"], 0.95)
            self.assertEqual(row["answer"] == "cannot tell", bool(row["reasons"]))
        self.assertEqual(judgement.can_tell, not judgement.reasons)
        best = judgement.best
        assert best is not None
        self.assertEqual(best["answer"], "better than recorded")
        text = str(judgement).splitlines()
        self.assertEqual(len(text), len(judgement.table) + 2)
        self.assertRegex(text[0], "^run +mode +estimate +interval +answer$")
        self.assertLess(len(str(judgement)), 3000)
        both = ov.judge([run, run], data, progress="none", updates=0, modes="own")
        self.assertEqual([row["method"] for row in both.table], ["wpdis", "wpdis"])

    def test_a_policy_of_another_program_is_judged(self) -> None:
        data = shifts(1000, length=2)
        with np.load(data.path) as file:
            recorded, log_probs = file["actions"], file["behavior_log_probs"]
        # Action 2 more often than the operator: 2 steps of .3 · 1 + .5 · 2 on average.
        policy = np.tile([0.2, 0.3, 0.5], (len(recorded), 1))
        judgement = ov.judge(data, probs=policy, discount=1.0, progress="none", updates=50, steps=0)
        row, = judgement.table
        self.assertLess(row["low"], 2.6)
        self.assertGreater(row["high"], 2.6)
        self.assertEqual(row["answer"], "better than recorded")
        of_recorded = policy[np.arange(len(recorded)), recorded]
        other, = ov.judge(data, probs=of_recorded, discount=1.0, progress="none", steps=0).table
        self.assertEqual((row["method"], other["method"]), ("wdr", "wpdis"))
        same, = ov.judge(data, probs=np.exp(log_probs), progress="none", steps=0).table
        self.assertEqual(same["reasons"], ["difference"])
        for wrong, error, words in [
            (policy[:10], ov.OvertoneError, r"shape \[10, 3\], expected \[2000, 3\]"),
            (policy * 0.5, ov.OvertoneError, "the sum 0.5"),
            (log_probs, ov.OvertoneError, "not its logarithm"),
            (np.array(["a"]), TypeError, "an array of numbers"),
            (np.ma.masked_array(policy, policy > 0.4), ValueError, "a masked array"),
        ]:
            with self.assertRaisesRegex(error, words):
                ov.judge(data, probs=wrong, progress="none")
        with self.assertRaisesRegex(TypeError, "once"):
            ov.judge(data, data, probs=policy)

    def test_episodes_of_the_training_are_left_out(self) -> None:
        with np.load(shifts(100).path) as file:
            arrays = {
                "observations": file["observations"], "actions": file["actions"],
                "rewards": file["rewards"], "terminations": file["terminals"],
                "behavior_log_probs": file["behavior_log_probs"],
            }

        def log(episodes: range, path: str) -> ov.Dataset:
            rows = slice(6 * episodes.start, 6 * episodes.stop)
            kept = {name: array[rows] for name, array in arrays.items()}
            return ov.from_arrays(**kept, n_actions=ACTIONS, path=path, task="own/shifts")

        def recorded(**settings: object) -> tuple[int, str]:
            judgement = ov.judge(run, progress="none", updates=0, modes="own", **settings)
            found = judgement.runs[0]["recording"]
            return found["episodes"], found["trained"]

        data = log(range(60), "log.npz")
        run = self.run_of(data, **{"train.held_out": 0.5})
        # 30 of these episodes were held out.
        grown = log(range(100), "grown.npz")
        self.assertEqual(recorded(dataset=grown), (70, "no"))
        self.assertEqual(recorded(dataset=log(range(60, 100), "other.npz")), (40, "no"))
        # Other contents at the same place.
        log(range(40, 100), "log.npz")
        with self.assertRaisesRegex(ov.OvertoneError, "has changed since the run trained on it"):
            ov.judge(run, progress="none", updates=0)
        self.assertEqual(recorded(dataset="log.npz"), (60, "unknown"))

    def test_several_logs_define_their_actions_together(self) -> None:
        def log(largest: int, path: str) -> ov.Dataset:
            actions = np.arange(40) % (largest + 1)
            return ov.from_arrays(
                np.random.default_rng(largest).normal(size=(40, 2)), actions, np.ones(40),
                np.arange(40) % 10 == 9, path=path, task="own/mix",
            )

        several = [log(1, "few.npz"), log(3, "many.npz")]
        for order in (several, several[::-1]):
            self.assertEqual(self.run_of(ov.concat(order)).policy().n_actions, 4)

    def test_a_replay_is_what_the_agent_does_at_the_recorded_steps(self) -> None:
        data = shifts(5)
        policy = self.run_of(data).policy(n_agents=5)
        probs = policy.replay(data)
        self.assertEqual(probs.shape, (30, ACTIONS))
        np.testing.assert_allclose(probs.sum(1), 1.0, rtol=1e-5)
        # The first step of each shift, played.
        arrays = np.load(data.path)
        policy.act(arrays["observations"][::6], starts=np.ones(5, bool))
        np.testing.assert_allclose(probs[::6], policy.probabilities, atol=1e-6)

    def test_a_later_log_without_the_last_action(self) -> None:
        run = self.run_of(shifts(30))
        arrays = dict(np.load(shifts(40).path))
        arrays["actions"] = np.minimum(arrays["actions"], 1)
        for name in ("n_actions", "behavior_log_probs"):
            del arrays[name]
        np.savez("later.npz", **arrays)
        judgement = ov.judge(run, "later.npz", progress="none", updates=20, critics=2, strict=True)
        # The agent takes the last action, which the later log does not have, so nothing is estimated.
        for row in judgement.table:
            self.assertEqual((row["method"], row["reasons"]), (None, ["coverage"]))
        self.assertEqual(run.policy().replay("later.npz").shape, (240, ACTIONS))

    def test_recordings_that_cannot_be_judged(self) -> None:
        run = self.run_of(shifts(30))
        for words, data in [("19 finished episodes", shifts(19)), ("does not", "missing.npz")]:
            with self.assertRaisesRegex(ov.OvertoneError, words):
                ov.judge(run, data, progress="none")
        with self.assertRaisesRegex(ov.OvertoneError, "observations"):
            run.policy().replay(HOPPER)


if __name__ == "__main__":
    unittest.main()
