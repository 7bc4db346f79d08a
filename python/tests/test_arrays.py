"""Arguments that are not arrays of numbers."""

from __future__ import annotations

import datetime
import decimal
import importlib.util
import types
import unittest
import warnings
from typing import Any

import numpy as np
from gymnasium import spaces

import overtone as ov
from overtone import _program

from .common import Desk, carts

N = len(carts()["rewards"])


def episodes(**changed: Any) -> list[dict[str, Any]]:
    """Two episodes, the second one changed."""
    first = {
        "observations": np.arange(24.0).reshape(8, 3) % 7, "actions": np.arange(8) % 3,
        "rewards": np.ones(8), "terminations": np.zeros(8, bool),
    }
    return [first, {**first, **changed}]


class Arrays(Desk):
    def refused(self, words: str, call: Any) -> None:
        with self.assertRaisesRegex(ValueError, words):
            call()

    def test_arguments_that_are_not_arrays_are_refused(self) -> None:
        masked = np.ma.masked_array(np.zeros((N, 4)), mask=np.arange(4 * N).reshape(N, 4) == 9)
        tensor = types.SimpleNamespace(toarray=None)
        objects = np.array([1.0] * N, object)
        objects[5] = None
        for words, changed in [
            ("observations: row 2 is masked", {"observations": masked}),
            ("rewards: row 1 is masked", {"rewards": [1.0, np.ma.masked_array([2.0], [True])]}),
            ("observations: expected one array, got a dict of x", {"observations": {"x": [1.0]}}),
            ("observations: expected numbers, got text, 'seen.npy'", {"observations": "seen.npy"}),
            ("observations: expected numbers, got None", {"observations": None}),
            (r"observations: row 1 has shape \(1,\), and row 0 has \(2,\)",
             {"observations": [[1.0, 2.0], [1.0]]}),
            ("observations: row 0 is a dict", {"observations": [{"x": 1.0}] * N}),
            (r"observations: .*SimpleNamespace. Use its toarray\(\)", {"observations": tensor}),
            ("observations: expected numbers, got records of x, y",
             {"observations": np.zeros(N, [("x", "f4"), ("y", "f4")])}),
            ("rewards: expected an array, got a generator", {"rewards": (x for x in [1.0])}),
            ("rewards: row 5 has no value", {"rewards": objects}),
            ("rewards: expected numbers, got complex128", {"rewards": np.ones(N) + 0j}),
            ("rewards: row 0 is a datetime. Use seconds",
             {"rewards": [datetime.datetime(2026, 1, 1)] * N}),
            ("actions: expected numbers, got text.*numpy.unique", {"actions": ["left"] * N}),
            ("terminations: expected true or false.* got text", {"terminations": ["no"] * N}),
            ("observations: .* rows, expected .* as in actions. Leave out .*observations\\[:-1\\]",
             {"observations": np.zeros((N + 1, 4))}),
            ("n_actions=3.0: expected a whole number", {"n_actions": 3.0}),
            ("n_actions=True: expected a whole number", {"n_actions": True}),
            ("action_low: expected numbers, got text",
             {"actions": np.zeros((N, 2)), "action_low": "-1", "action_high": 1}),
            ("action_low: expected numbers, got NaN",
             {"actions": np.zeros((N, 2)), "action_low": np.nan, "action_high": 1}),
        ]:
            self.refused(words, lambda changed=changed: ov.from_arrays(**{**carts(), **changed}))

    def test_sound_forms_are_read(self) -> None:
        arrays = carts()
        expected = ov.from_arrays(**arrays).hash
        exact = [decimal.Decimal(1)] * N
        for changed in (
            {"observations": np.asfortranarray(arrays["observations"])},
            {"observations": np.ma.masked_array(arrays["observations"])},
            {"observations": list(arrays["observations"])},
            {"observations": np.array([*arrays["observations"], None], object)[:-1]},
            {"observations": arrays["observations"].astype(np.longdouble)},
            {"actions": np.array(list(arrays["actions"]), object)},
            {"rewards": exact},
        ):
            self.assertEqual(ov.from_arrays(**{**arrays, **changed}).hash, expected)

    def test_errors_name_the_episode(self) -> None:
        middle = np.arange(8) == 2
        nan = np.ones(8)
        nan[3] = np.nan
        for words, changed in [
            ("truncations: step 2 ends the episode.*Cut it there", {"truncations": middle}),
            ("truncations: step 2 ends the episode.*Cut it there", {"truncated": middle}),
            ("truncations: step 2 ends the episode.*Cut it there", {"timeouts": middle}),
            ("terminations: step 2 ends the episode.*Cut it there", {"terminations": middle}),
            ("observations: expected one array, got a dict", {"observations": {"x": nan}}),
            (r"observations: rows of shape \(4,\), expected \(3,\)",
             {"observations": np.zeros((8, 4))}),
            ("rewards: row 3 is not finite", {"rewards": nan}),
            ("actions: row 3 is not finite", {"actions": nan[:, None]}),
            ("actions: row 0 is masked", {"actions": np.ma.masked_array(nan, mask=True)}),
            ("actions: row 0 is a dict", {"actions": [{"a": 1}] * 8}),
        ]:
            self.refused(f"episode 1: {words}", lambda c=changed: ov.from_episodes(episodes(**c)))
        for wrong in (None, "a", [(np.ones(3), 1, 1.0, np.ones(3), False)]):
            self.refused("episode 0: expected a dict of arrays, got a ",
                         lambda w=wrong: ov.from_episodes([w]))
        longer = {"rewards": np.ones(9)}
        self.refused("episode 1: observations of length 8 and rewards of length 9. Use one for each",
                     lambda: ov.from_episodes(episodes(**longer)))
        self.refused("got one. Use \\[episode\\]", lambda: ov.from_episodes(episodes()[0]))
        dones = {**episodes()[0], "dones": middle}
        del dones["terminations"]
        self.refused("terminations or .* is missing, true where", lambda: ov.from_episodes([dones]))
        # The last step's limit is an end like any other.
        cut = ov.from_episodes(episodes(truncations=np.arange(8) == 7))
        self.assertEqual(cut.summary()["truncated"], 2)

    @unittest.skipUnless(importlib.util.find_spec("pandas"), "pandas is not installed")
    def test_tables_name_the_column_and_the_episode(self) -> None:
        import pandas as pd

        n = 40
        random = np.random.default_rng(7)
        frame = pd.DataFrame({
            "id": np.repeat(np.arange(4), 10), "x": random.normal(size=n),
            "y": random.normal(size=n), "a": random.integers(0, 3, n), "r": random.normal(size=n),
        })
        names = {"episode": "id", "observation": ["x", "y"], "action": "a", "reward": "r"}
        lacking = frame["a"].astype("Int64").mask(frame.index == 19)
        for words, changed in [
            (r"frame\['a'\]: row 19 \(episode 1\) has no value", frame.assign(a=lacking)),
            (r"frame\['r'\]: row 12 \(episode 1\) has no value",
             frame.assign(r=frame["r"].mask(frame.index == 12))),
            (r"frame\['x'\]: row 7 \(episode 0\) is not finite",
             frame.assign(x=frame["x"].mask(frame.index == 7, np.inf))),
            (r"frame\['a'\]: .* text, 'left'", frame.assign(a=pd.Categorical(["left"] * n))),
            (r"frame\['x'\]: .*Use seconds", frame.assign(x=pd.date_range("2024", periods=n))),
            (r"frame\['x'\]: .*Use seconds",
             frame.assign(x=pd.date_range("2024", periods=n, tz="Europe/Berlin"))),
            (r"frame\['x'\]: .*Use seconds", frame.assign(x=pd.to_timedelta(range(n), unit="s"))),
            (r"frame\['x'\]: row 1 \(episode 0\) has shape \(2,\)",
             frame.assign(x=[[1.0], *[[1.0, 2.0]] * (n - 1)])),
            (r"frame\['x'\]: row 0 \(episode 0\) is a dict", frame.assign(x=[{}] * n)),
            ("2 columns are named 'x'. Rename one", pd.concat([frame, frame["x"]], axis=1)),
            ("no column .id., .r.. Use frame.reset_index", frame.set_index(["id", "r"])),
            (r"id: row 0 has the number 67108864, but float32 does not hold each whole number",
             frame.assign(id=(frame["id"] + 2.0**26).astype("f4"))),
            (r"got a builtins.dict. Use pandas.DataFrame\(frame\)", dict(frame)),
        ]:
            self.refused(words, lambda changed=changed: ov.from_pandas(changed, **names))
        lists = frame.assign(x=list(frame[["x", "y"]].to_numpy()))
        self.assertEqual(
            ov.from_pandas(lists, **{**names, "observation": "x"}).hash,
            ov.from_pandas(frame, **names).hash,
        )

    def test_a_number_outside_its_space_is_refused(self) -> None:
        def minari(**changed: Any) -> Any:
            episode = {
                "observations": np.array([1, 2, 3, 1]), "actions": np.array([1, 2, 2]),
                "rewards": np.ones(3), "terminations": np.array([0, 0, 1]),
                "truncations": np.zeros(3), **changed,
            }
            return types.SimpleNamespace(
                observation_space=spaces.Discrete(3, start=1),
                action_space=spaces.Discrete(2, start=1), iterate_episodes=lambda: [episode],
            )

        ov.from_minari(minari())
        for words, changed in [
            (r"episode 0: observations: row 1 is 0, which is not in Discrete\(3, start=1\)",
             {"observations": np.array([1, 0, 2, 3])}),
            ("episode 0: observations: row 3 is 4", {"observations": np.array([1, 1, 2, 4])}),
            ("episode 0: actions: row 2 is 0", {"actions": np.array([1, 2, 0])}),
            ("episode 0: terminations: row 0 is masked",
             {"terminations": np.ma.masked_array([0, 0, 1], [True, False, False])}),
            ("episode 0: behavior_log_probs: row 1 is masked",
             {"infos": {"action_log_probs": np.ma.masked_array([0.0] * 3, [False, True, False])}}),
        ]:
            self.refused(words, lambda changed=changed: ov.from_minari(minari(**changed)))

    def test_a_call_warns_as_the_program_does_of_a_file(self) -> None:
        clock = 1.764e9 + np.arange(N)
        seen = np.column_stack([carts()["observations"], clock])
        paid = 1e7 + np.arange(N) / 100
        arrays = {**carts(), "observations": seen, "rewards": paid}
        last = np.flatnonzero(arrays["terminations"] | arrays["truncations"]) + 1
        cuts = [np.split(arrays[name], last[:-1]) for name in arrays]
        split = [dict(zip(arrays, parts)) for parts in zip(*cuts)]
        calls = [lambda: ov.from_arrays(**arrays), lambda: ov.from_episodes(split)]
        if importlib.util.find_spec("pandas"):
            import pandas as pd

            columns = [f"x{place}" for place in range(5)]
            frame = pd.DataFrame(seen, columns=columns)
            frame["a"], frame["r"], frame["id"] = arrays["actions"], paid, 0
            calls.append(lambda: ov.from_pandas(
                frame, episode="id", observation=columns, action="a", reward="r"
            ))
        for call in calls:
            with warnings.catch_warnings(record=True) as caught:
                warnings.simplefilter("always")
                data = call()
            self.assertEqual({each.category for each in caught}, {ov.OvertoneWarning})
            self.assertEqual({each.filename for each in caught}, {__file__})
            text = " ".join(str(each.message) for each in caught)
            self.assertRegex(text, f"observations, place 4: float32 leaves .* of {N} different")
            self.assertRegex(text, "rewards, place 0: float32 leaves")
            found = " ".join(each["found"] for each in data.lint())
            self.assertIn("rewards, place 0: float32 leaves", found)

    def test_other_arguments_are_refused(self) -> None:
        import gymnasium

        env = gymnasium.make("CartPole-v1")
        with self.assertRaisesRegex(TypeError, "task: .* Use task='gymnasium/CartPole-v1'"):
            ov.from_arrays(**carts(), task=env)  # type: ignore[arg-type]
        for settings in ({"task": env}, {"data": ov.from_arrays(**carts()), "task": env}):
            with self.assertRaisesRegex(TypeError, "got a TimeLimit"):
                ov.train(progress="none", **settings)  # type: ignore[arg-type]
        agent = ov.BehaviorCloning(progress="none")
        with self.assertRaisesRegex(TypeError, "dataset: expected a Dataset or a path, got ndarray"):
            _program.path_of("dataset", np.ones(3))
        self.refused("n_steps='5': expected a whole number",
                     lambda: agent.fit(ov.from_arrays(**carts()), n_steps="5"))
        self.refused("returns: expected the returns of each policy",
                     lambda: ov.budget_curve([1.0, 2.0, 3.0]))
        self.refused("returns: policy 1: row 0 is masked",
                     lambda: ov.budget_curve([[1.0], np.ma.masked_array([2.0], [True])]))


if __name__ == "__main__":
    unittest.main()
