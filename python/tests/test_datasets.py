"""Datasets of arrays, episodes and other packages."""

from __future__ import annotations

import importlib.util
import itertools
import json
import os
import stat
import sys
import types
import unittest
import warnings
from pathlib import Path
from typing import Any
from unittest import mock

import numpy as np
from gymnasium import spaces

import overtone as ov

from .common import HOPPER, ROOT, TINY, Desk, carts


PAIRS = '''
import gymnasium, numpy
from gymnasium import spaces

class Pairs(gymnasium.Env):
    observation_space = spaces.Box(-1, 1, (4,), numpy.float32)
    action_space = spaces.MultiDiscrete([2, 3])

gymnasium.register("Pairs-v0", Pairs)
'''


def episodes_of(arrays: dict[str, np.ndarray]) -> list[dict[str, np.ndarray]]:
    last = np.flatnonzero(arrays["terminations"] | arrays["truncations"])
    first = np.concatenate([[0], last[:-1] + 1])
    return [{name: array[a : b + 1] for name, array in arrays.items()} for a, b in zip(first, last)]


class Datasets(Desk):
    def test_all_sources_have_one_hash(self) -> None:
        arrays = carts()
        data = ov.Dataset.from_arrays(**arrays)
        self.assertEqual(len(data), len(arrays["rewards"]))
        hashes = {data.hash}
        episodes = episodes_of(arrays)
        hashes.add(ov.Dataset.from_episodes(episodes).hash)
        # Minari's form: one more observation.
        more = [
            {**each, "observations": np.vstack([each["observations"], np.zeros((1, 4))])}
            for each in episodes
        ]
        minari = types.SimpleNamespace(iterate_episodes=lambda: iter(more))
        hashes.add(ov.from_minari(minari).hash)
        objects = [
            types.SimpleNamespace(**{
                "observations": each["observations"], "actions": each["actions"][:, None],
                "rewards": each["rewards"][:, None], "terminated": bool(each["terminations"][-1]),
            })
            for each in episodes
        ]
        hashes.add(ov.from_d3rlpy(types.SimpleNamespace(episodes=objects)).hash)
        hashes.add(data.save("own.hdf5", task="gymnasium/CartPole-v1").hash)
        self.assertEqual(len(hashes), 1, hashes)
        self.assertNotEqual(ov.Dataset.from_arrays(**carts(seed=1)).hash, data.hash)

    def test_minaris_spaces_become_the_programs(self) -> None:
        random = np.random.default_rng(0)
        parts = spaces.Dict({
            "b": spaces.Box(-1, 1, (2,), np.float64), "a": spaces.Discrete(3, start=1),
        })
        several = spaces.MultiDiscrete([2, 3], start=[1, 0])
        bounds = spaces.Box(np.float32([-2, 0]), np.float32([2, 10]))
        episodes = []
        for number in range(2):
            n = 5 + number
            episodes.append({
                "observations": {
                    "a": random.integers(1, 4, n + 1), "b": random.uniform(-1, 1, (n + 1, 2)),
                },
                "listed": random.integers([1, 0], [3, 3], (n, 2)),
                "real": random.uniform(bounds.low, bounds.high, (n, 2)).astype(np.float32),
                "rewards": random.normal(size=n), "terminations": np.arange(n) == n - 1,
                "truncations": np.zeros(n, bool),
            })

        def taken(acted: spaces.Space[Any], which: str) -> dict[str, np.ndarray]:
            copies = [types.SimpleNamespace(**each, actions=each[which]) for each in episodes]
            spec = types.SimpleNamespace(id="Own-v0", kwargs={"render_mode": "human", "size": 3})
            minari = types.SimpleNamespace(
                env_spec=spec, action_space=acted, observation_space=parts,
                iterate_episodes=lambda: iter(copies),
            )
            data = ov.from_minari(minari)
            self.assertEqual(data.task, "gymnasium/Own-v0,size=3")
            with np.load(data.path) as file:
                return dict(file)

        listed, real = taken(several, "listed"), taken(bounds, "real")
        a, b = (np.concatenate([e["observations"][key][:-1] for e in episodes]) for key in "ab")
        seen = np.concatenate([np.eye(3)[a - 1], b], axis=1)
        np.testing.assert_array_equal(listed["observations"], seen)
        pairs = np.concatenate([each["listed"] for each in episodes]) - [1, 0]
        np.testing.assert_array_equal(listed["actions"], pairs[:, 0] * 3 + pairs[:, 1])
        self.assertEqual(int(listed["n_actions"][0]), 6)
        np.testing.assert_array_equal(real["actions"], np.concatenate([e["real"] for e in episodes]))
        for name, bound in (("action_low", bounds.low), ("action_high", bounds.high)):
            np.testing.assert_array_equal(real[name], bound)

    @unittest.skipUnless(importlib.util.find_spec("pandas"), "pandas is not installed")
    def test_a_table_is_a_dataset(self) -> None:
        import pandas as pd

        arrays = carts()
        last = arrays["terminations"] | arrays["truncations"]
        columns = {f"x{i}": arrays["observations"][:, i] for i in range(4)}
        frame = pd.DataFrame({
            **columns, "a": arrays["actions"], "r": arrays["rewards"],
            "end": arrays["terminations"], "id": np.concatenate([[0], np.cumsum(last)[:-1]]),
        })
        names = {"episode": "id", "observation": list(columns), "action": "a", "reward": "r"}
        data = ov.from_pandas(frame, **names, termination="end")
        self.assertEqual(data.hash, ov.Dataset.from_arrays(**arrays).hash)
        with self.assertRaisesRegex(ValueError, "no column 'q'"):
            ov.from_pandas(frame, **{**names, "reward": "q"})
        self.assertNotEqual(ov.from_pandas(frame, **names, termination="end", n_actions=5).hash, data.hash)
        frame["log"] = np.log(0.5)
        logged = ov.from_pandas(frame, **{**names, "observation": "x0"}, behavior_log_probs="log")
        np.testing.assert_allclose(logged.behavior_log_probs, np.log(0.5), rtol=1e-6)
        frame["w"] = np.where(frame.index == 2, 0.0, 1.5)
        weighted = ov.from_pandas(frame, **names, termination="end", weights="w")
        self.assertEqual(weighted.hash, ov.from_arrays(**arrays, weights=frame["w"]).hash)
        frame["m"] = (frame.index != 3).astype(int)
        allowed = np.stack([np.ones(len(frame), bool), frame["a"] == 1, frame.index % 2 == 0], axis=1)
        masked = ov.from_arrays(**arrays, masks=frame["m"], action_mask=allowed)
        frame = frame.assign(can0=allowed[:, 0], can1=allowed[:, 1], can2=allowed[:, 2])
        frame["can"] = [list(row) for row in allowed]
        for action_mask in (["can0", "can1", "can2"], "can"):
            again = ov.from_pandas(frame, **names, termination="end", masks="m", action_mask=action_mask)
            self.assertEqual(again.hash, masked.hash)
        # pandas' nullable number types.
        nullable = frame.drop(columns="can").convert_dtypes()
        self.assertEqual(ov.from_pandas(nullable, **names, termination="end").hash, data.hash)
        frame["step"] = frame.groupby("id").cumcount()
        lacking = frame["end"].astype(float)
        lacking[3] = np.nan
        for words, changed in [
            ("no column 'end'", frame.drop(columns="end")),
            (r"frame\['end'\]: row 3 \(episode 0\) has no value", frame.assign(end=lacking)),
            (
                rf"frame\['end'\]: row {np.argmax(~frame['end'])} \(episode 0\) ends its episode",
                frame.assign(end=True),
            ),
            ("is text, 'False'. Use true or false, 1 or 0", frame.assign(end=frame["end"].astype(str))),
            ("id: row 2 has no value", frame.assign(id=frame["id"].where(frame.index != 2))),
            ("sort by 'id' and time", frame.sort_values(["step", "id"])),
            ("frame: expected at least one row", frame[:0]),
        ]:
            with self.assertRaisesRegex(ValueError, words):
                ov.from_pandas(changed, **names, termination="end")

    def test_starter_sets_and_minaris_are_found_by_name(self) -> None:
        folders = {"OVERTONE_DATASETS": str(ROOT / "datasets"), "MINARI_DATASETS_PATH": str(self.folder)}
        with mock.patch.dict(os.environ, folders):
            data = ov.Dataset.open("starter:hopper/switching")
            self.assertEqual((data.path.name, data.task), ("hopper_switching.hdf5", "mujoco/hopper"))
            run = ov.train(data, progress="none", **TINY)
            self.assertIn("mujoco/hopper", run.settings)
            for named in ("data", "dataset"):
                again = {named: "starter:hopper/switching", "run_dir": named}
                same = ov.train(progress="none", **TINY, **again)
                expected = run.settings.replace('runs = "runs"', f'runs = "{named}"')
                self.assertEqual(same.settings, expected)
            self.assertEqual(ov.Dataset.open("starter:CartPole-v1").task, "gymnasium/CartPole-v1")
            self.assertTrue(ov.Dataset.open("starter:bank_heist").path.is_dir())
            with self.assertRaisesRegex(ov.OvertoneError, "starter set `hopper/midium`.*hopper/medium"):
                ov.Dataset.open("starter:hopper/midium")
            with self.assertRaisesRegex(ov.OvertoneError, "overtone download dataset=minari:"):
                ov.Dataset.open("minari:mujoco/hopper/medium-v0")
            with self.assertRaisesRegex(ov.OvertoneError, "overtone download dataset=minari:"):
                ov.train("minari:mujoco/hopper/medium-v0", progress="none")

    def test_numbers_that_may_mean_something_else_warn(self) -> None:
        def warned_of(**changed: object) -> list[str]:
            with warnings.catch_warnings(record=True) as said:
                warnings.simplefilter("always")
                ov.from_arrays(**{**carts(), **changed})  # type: ignore[arg-type]
            # At the caller's line.
            self.assertTrue(all(each.filename == __file__ for each in said), said)
            return [str(each.message) for each in said]

        self.assertEqual(warned_of(), [])
        actions = carts()["actions"]
        [words] = warned_of(actions=actions[:, None].astype(float))
        self.assertIn("actions: expected real numbers, found whole numbers, 2 different", words)
        self.assertIn("Save them as integers, one a row, if they are discrete", words)
        pairs = np.column_stack([actions, np.arange(len(actions)) % 3])
        [words] = warned_of(actions=pairs)
        self.assertIn("2 whole numbers from 0 to 2", words)
        self.assertIn("numpy.ravel_multi_index", words)
        # Bounds, or a task with such pairs, remove the doubt.
        self.assertEqual(warned_of(actions=pairs, action_low=0, action_high=2), [])
        Path("overtone_pairs.py").write_text(PAIRS)
        with mock.patch.object(sys, "path", [str(Path.cwd()), *sys.path]):
            self.assertEqual(warned_of(actions=pairs, task="gymnasium/overtone_pairs:Pairs-v0"), [])
        codes = np.ones((len(actions), 7, 7, 3), np.uint8)
        codes[:, 0, 0, 0] = 4 + actions
        self.assertIn("data.layout=numbers", " ".join(warned_of(observations=codes)))
        self.assertEqual(warned_of(observations=codes, pictures=False), [])
        stays = carts()["terminations"]
        stays[:-1] |= stays[1:]
        # Observations change a little, and jump where an episode begins.
        last = carts()["terminations"] | carts()["truncations"]
        episode = np.concatenate([[0], np.cumsum(last)[:-1]])
        walk = carts()["observations"] * 0.01 + np.sin(37.0 * episode)[:, None]
        self.assertEqual(warned_of(observations=walk), [])
        [words] = warned_of(observations=walk, terminations=stays)
        self.assertIn("expected flags where episodes end", words)
        with warnings.catch_warnings(record=True) as said:
            warnings.simplefilter("always")
            ov.from_episodes(
                [{**each, "actions": each["actions"][:, None].astype(float)}
                 for each in episodes_of(carts())]
            )
        self.assertEqual([each.filename for each in said], [__file__])

    def test_log_probs_of_recorded_actions(self) -> None:
        arrays = carts()
        n = len(arrays["rewards"])
        log_probs = -np.linspace(0.25, 4, n, dtype=np.float32)
        plain = ov.from_arrays(**arrays)
        self.assertIsNone(plain.behavior_log_probs)
        data = ov.from_arrays(**arrays, behavior_log_probs=log_probs.astype(float)[:, None])
        np.testing.assert_array_equal(data.behavior_log_probs, log_probs)
        with self.assertRaisesRegex(ValueError, r"shape \(\d+, 2\). Use those of the recorded"):
            ov.from_arrays(**arrays, behavior_log_probs=np.zeros((n, 2)))
        self.assertEqual(data.hash, plain.hash)
        # A written dataset keeps them.
        saved = data.save("saved.hdf5")
        np.testing.assert_array_equal(saved.behavior_log_probs, log_probs)
        # So do joined episodes, if all have them.
        episodes = episodes_of({**arrays, "behavior_log_probs": log_probs})
        joined = ov.from_episodes(episodes)
        np.testing.assert_array_equal(joined.behavior_log_probs, log_probs)
        infos = [{**each, "infos": {"action_log_probs": each.pop("behavior_log_probs")}}
                 for each in map(dict, episodes)]
        minari = types.SimpleNamespace(iterate_episodes=lambda: iter(infos))
        np.testing.assert_array_equal(ov.from_minari(minari).behavior_log_probs, log_probs)
        del episodes[3]["behavior_log_probs"]
        self.assertIsNone(ov.from_episodes(episodes).behavior_log_probs)
        short = [{**each, "behavior_log_probs": [-1.0] * 3} for each in episodes]
        with self.assertRaisesRegex(ValueError, "episode 0: behavior_log_probs of length 3 and"):
            ov.from_episodes(short)
        for words, changed in [
            ("behavior_log_probs: 3 rows, expected", log_probs[:3]),
            ("`behavior_log_probs` holds in row 0 0.7.*numpy.log", np.exp(log_probs)),
            ("`behavior_log_probs` holds in row 5 -inf", np.where(np.arange(n) == 5, -np.inf, -1)),
            ("`behavior_log_probs` holds in row 0 NaN", np.full(n, np.nan)),
            ("behavior_log_probs: expected numbers", ["?"] * n),
        ]:
            with self.assertRaisesRegex(ValueError, words):
                ov.from_arrays(**arrays, behavior_log_probs=changed)

    def test_masks_and_weights_are_read(self) -> None:
        arrays = carts()
        n, plain = len(arrays["rewards"]), ov.from_arrays(**arrays)
        numbers = np.where(np.arange(n) == 2, 0.0, 1.0)
        for name in ("masks", "weights"):
            self.assertEqual(ov.from_arrays(**arrays, **{name: np.ones(n)}).hash, plain.hash)
            data = ov.from_arrays(**arrays, **{name: numbers[:, None]})
            self.assertNotEqual(data.hash, plain.hash)
            self.assertEqual(data.save(f"{name}.hdf5").hash, data.hash)
            # In episodes without them, they are 1.
            first, *others = episodes_of({**arrays, name: numbers})
            others = [{key: value for key, value in each.items() if key != name} for each in others]
            self.assertEqual(ov.from_episodes([first, *others]).hash, data.hash)
            infos = [{**each, "infos": {name: each.pop(name)}} for each in [dict(first)]] + others
            minari = types.SimpleNamespace(iterate_episodes=lambda: iter(infos))
            self.assertEqual(ov.from_minari(minari).hash, data.hash)
            with self.assertRaisesRegex(ValueError, f"episode 0: {name} of length 3 and"):
                ov.from_episodes([{**first, name: numbers[:3]}])
            with self.assertRaisesRegex(ValueError, f"`{name}` holds in row 0 -1, expected"):
                ov.from_arrays(**arrays, **{name: numbers - 2})

    def test_masks_of_actions_are_read(self) -> None:
        arrays = carts()
        n, plain = len(arrays["actions"]), ov.from_arrays(**arrays, n_actions=3)
        mask = np.ones((n, 3), bool)
        mask[2] = [True, True, False]
        data = ov.from_arrays(**arrays, action_mask=mask)
        self.assertNotEqual(data.hash, plain.hash)
        self.assertEqual(data.save("masked.hdf5", task="own/masked").hash, data.hash)
        first, *others = episodes_of({**arrays, "action_mask": mask})
        others = [{key: value for key, value in each.items() if key != "action_mask"} for each in others]
        self.assertEqual(ov.from_episodes([first, *others]).hash, data.hash)
        # Minari's own infos have one row more.
        info = np.concatenate([first["action_mask"], np.zeros((1, 3), bool)])
        infos = [{**first, "action_mask": None, "infos": {"action_mask": info}}, *others]
        minari = types.SimpleNamespace(iterate_episodes=lambda: iter(infos))
        self.assertEqual(ov.from_minari(minari).hash, data.hash)
        mask[5, arrays["actions"][5]] = False
        with self.assertRaisesRegex(ValueError, "`action_mask` holds in row 5 0 for the recorded action"):
            ov.from_arrays(**arrays, action_mask=mask)
        with self.assertRaisesRegex(ValueError, r"action_mask: shape \(2, 3\), expected"):
            ov.from_episodes([{**first, "action_mask": mask[:2]}])

    def test_ends_of_episodes_are_not_guessed(self) -> None:
        arrays = {**carts(), "truncations": None}
        arrays["terminations"] = np.zeros_like(arrays["terminations"])
        with self.assertRaisesRegex(ValueError, "truncations: no step terminates"):
            ov.from_arrays(**arrays)
        arrays["truncations"] = np.arange(len(arrays["terminations"])) == len(arrays["rewards"]) - 1
        self.assertEqual(ov.from_arrays(**arrays).summary()["episodes"], 1)

    def test_arrays_are_copied_and_found_again(self) -> None:
        arrays = carts()
        first = ov.Dataset.from_arrays(**arrays)
        self.assertEqual(ov.Dataset.from_arrays(**arrays).path, first.path)
        before = first.hash
        arrays["observations"][:] = 0
        self.assertEqual(ov.Dataset.open(first.path).hash, before)
        self.assertNotEqual(ov.Dataset.from_arrays(**arrays).path, first.path)

    @unittest.skipIf(sys.platform == "win32", "files have other rights there")
    def test_a_file_has_the_permissions_of_the_umask(self) -> None:
        self.addCleanup(os.umask, os.umask(0o027))
        for path in (None, "own.npz"):
            data = ov.from_arrays(**carts(), path=path)
            self.assertEqual(stat.S_IMODE(data.path.stat().st_mode), 0o640)
            self.assertEqual([each.suffix for each in data.path.parent.glob("*.npz")], [".npz"])

    def test_errors_name_array_and_row(self) -> None:
        def refused(words: str, **changed: object) -> None:
            with self.assertRaisesRegex(ValueError, words):
                ov.Dataset.from_arrays(**{**carts(), **changed})  # type: ignore[arg-type]

        nan = carts()["observations"]
        nan[7, 2] = np.nan
        refused("observations: row 7 is not finite", observations=nan)
        refused("rewards: 3 rows", rewards=np.ones(3))
        refused("actions: row 0 is -1", actions=np.full(len(nan), -1))
        refused("terminations and terminals", terminals=carts()["terminations"])
        refused("observations: expected numbers", observations=np.full((len(nan), 2), "a"))
        refused("n_actions=1: row [0-9]+ exceeds it", n_actions=1)
        refused(r"action_low: applies only to .*Use actions.astype\(float\)", action_low=0, action_high=1)
        real = {"actions": np.zeros((len(nan), 2))}
        refused("n_actions: applies only to discrete actions", n_actions=2, **real)
        refused("set both", action_low=0, **real)
        refused("above action_high", action_low=[0, 1], action_high=[1, 0], **real)
        refused("action_low: 3 numbers", action_low=[0, 1, 2], action_high=9, **real)
        refused("one whole number for each step.*numpy.eye", observations=np.arange(len(nan)))
        ends = carts()["terminations"]
        refused("terminations: expected true or false, .* got text", terminations=ends.astype(str))
        refused("truncations: row 2 is 0.5, not 0 or 1", truncations=[0, 1, 0.5, *ends[3:]])
        with self.assertRaisesRegex(ValueError, "episode 0: actions or acts is missing"):
            ov.Dataset.from_episodes([{"observations": np.zeros((2, 1)), "rewards": [1, 1], "terminations": [0, 1]}])
        episode = {
            "observations": np.zeros((2, 1)), "actions": [0, 1], "rewards": [1, 1],
            "terminations": [0, 1],
        }
        # The last action's own flag, the final observation's, or both end the episode.
        for flags in ([0, 1], [0, 1, 0], [0, 0, 1], [0, 1, 1], [1]):
            given = {**episode, "observations": np.zeros((3, 1)), "terminations": flags}
            with np.load(ov.Dataset.from_episodes([given]).path) as file:
                self.assertEqual(file["terminals"].tolist(), [False, True], flags)
        for words, changed in [
            ("episode 1: actions of length 1 and rewards of length 2", {"actions": [0]}),
            ("episode 1: actions of length 3 and rewards of length 2", {"actions": [0, 1, 0]}),
            ("episode 1: terminations of length 0 and rewards of length 2", {"terminations": []}),
            ("episode 1: terminations: row 1 is nan", {"terminations": [0, np.nan]}),
            ("episode 1: terminations: step 0 ends the episode, which has 2 steps", {"terminations": [1, 0]}),
        ]:
            with self.assertRaisesRegex(ValueError, words):
                ov.Dataset.from_episodes([episode, {**episode, **changed}])
        with self.assertRaises(FileNotFoundError):
            ov.Dataset.open("lost.npz")

    def test_every_form_of_an_array_is_one_dataset(self) -> None:
        """Each form that the program's reader accepts is the same dataset."""
        arrays = carts()
        n = len(arrays["rewards"])
        listed = arrays["actions"]
        expected = ov.from_arrays(**arrays).hash
        for name, forms in {
            "actions": [
                listed.astype(kind).reshape(shape)
                for kind in (bool, np.uint8, np.int16, np.uint64) for shape in ((n,), (n, 1))
            ],
            "rewards": [
                arrays["rewards"].astype(kind).reshape(shape)
                for kind in (np.float16, np.float64, np.int32, bool) for shape in ((n,), (n, 1))
            ],
            "terminations": [
                arrays["terminations"].astype(kind).reshape(shape)
                for kind in (bool, np.uint8, np.int64, np.float32) for shape in ((n,), (n, 1))
            ],
            "truncations": [arrays["truncations"].astype(int)[:, None]],
            "observations": [
                arrays["observations"].astype(np.float64), arrays["observations"].reshape(n, 2, 2),
                np.asfortranarray(arrays["observations"]),
            ],
        }.items():
            for form in forms:
                with self.subTest(name, dtype=form.dtype, shape=form.shape):
                    given: dict[str, Any] = {**arrays, name: form}
                    self.assertEqual(ov.from_arrays(**given).hash, expected)
        real = np.random.default_rng(1).normal(size=(n, 4)).astype(np.float32)
        flat = ov.from_arrays(**{**arrays, "actions": real}).hash
        self.assertEqual(ov.from_arrays(**{**arrays, "actions": real.reshape(n, 2, 2)}).hash, flat)

    def test_invalid_arrays_are_refused_at_once(self) -> None:
        arrays = carts()
        n = len(arrays["rewards"])
        for words, changed in {
            r"rewards: expected one for each step, got shape \(\d+, 5\)\. Use array\[mask\]":
                {"rewards": np.ones((n, 5))},
            r"terminations: expected one for each step, .* \(\d+, 2\)": {"terminations": np.zeros((n, 2))},
            "actions: row 3 is 70000, but at most 65535":
                {"actions": np.where(np.arange(n) == 3, 70000, 0)},
            "n_actions=70000: at most": {"n_actions": 70000},
            "n_actions=-1: expected at least 1": {"n_actions": -1},
            "actions: expected at least one number for each step": {"actions": np.zeros((n, 0))},
            "observations: expected at least one number for each step": {"observations": np.zeros((n, 0))},
            r"rewards: row 0 exceeds float32 \(1e\+39\)": {"rewards": np.full(n, 1e39)},
            # The program's reader raises it.
            "`observations`": {"observations": np.zeros((n, 2, 3, 5, 7), np.uint8)},
        }.items():
            with self.subTest(words), self.assertRaisesRegex(ValueError, words):
                ov.from_arrays(**{**arrays, **changed})  # type: ignore[arg-type]
        self.assertEqual(list((self.folder / "overtone/arrays").glob("*")), [])

    def test_rows_without_an_end_are_warned_of_with_the_key(self) -> None:
        arrays = carts()
        none = np.zeros(len(arrays["rewards"]), bool)
        with self.assertWarnsRegex(UserWarning, 'data__fragment="keep"') as warned:
            ov.from_arrays(**{**arrays, "terminations": none, "truncations": none})
        self.assertEqual(warned.filename, __file__)

    def test_imitations_trajectories_are_read(self) -> None:
        arrays = carts()
        walks = [
            types.SimpleNamespace(
                obs=np.vstack([each["observations"], np.zeros((1, 4))]), acts=each["actions"],
                rews=each["rewards"], terminal=bool(each["terminations"][-1]),
            )
            for each in episodes_of(arrays)
        ]
        self.assertEqual(ov.from_episodes(walks).hash, ov.from_arrays(**arrays).hash)

    def test_d3rlpys_list_may_be_real_numbers(self) -> None:
        arrays = carts()

        def buffer(add: float) -> Any:
            space = types.SimpleNamespace(name="DISCRETE")
            episodes = [
                types.SimpleNamespace(
                    observations=each["observations"], rewards=each["rewards"][:, None],
                    actions=each["actions"][:, None] + add, terminated=each["terminations"][-1],
                )
                for each in episodes_of(arrays)
            ]
            info = types.SimpleNamespace(action_space=space, action_size=2)
            return types.SimpleNamespace(episodes=episodes, dataset_info=info)

        expected = ov.from_arrays(**arrays, n_actions=2).hash
        self.assertEqual(ov.from_d3rlpy(buffer(0.0)).hash, expected)
        with self.assertRaisesRegex(ValueError, "episode 0: actions: row 0 .* d3rlpy calls"):
            ov.from_d3rlpy(buffer(0.5))

    def test_minaris_copy_is_read_as_its_file(self) -> None:
        """Early and missing flags count as in a file."""
        arrays = carts(episodes=3)
        early = episodes_of(arrays)
        early[0]["truncations"] = np.arange(len(early[0]["rewards"])) == 1
        early[0]["terminations"] = ~early[0]["truncations"] & False
        minari = types.SimpleNamespace(iterate_episodes=lambda: iter(early))
        with self.assertWarns(UserWarning) as warned:
            data = ov.from_minari(minari)
        said = [str(each.message) for each in warned.warnings]
        self.assertIn("ended before their last step, used as a whole: 1", said[0])
        self.assertIn("without a flag at their last step, left out: 1", said[1])
        self.assertEqual(data.summary()["episodes"], 2)
        del early[1]["truncations"]
        with self.assertRaisesRegex(ValueError, "episode 1: truncations is missing"):
            ov.from_minari(minari)

    def test_minaris_own_file_is_read_in_place(self) -> None:
        folder = ROOT / "crates/cli/tests/fixtures/minari/mujoco/hopper/tiny-v0"
        storage = types.SimpleNamespace(data_path=folder / "data", total_episodes=4, FORMAT="hdf5")
        spec = types.SimpleNamespace(id="Hopper-v5", kwargs={})
        minari = types.SimpleNamespace(
            storage=storage, episode_indices=np.arange(4), env_spec=spec,
            iterate_episodes=lambda: iter(()),
        )
        data = ov.from_minari(minari)
        self.assertEqual((data.path, data.task), (folder / "data", None))
        self.assertEqual(data.hash, ov.Dataset.open(folder).hash)
        # A part of it is copied.
        minari.episode_indices = np.arange(3)
        with self.assertRaisesRegex(ValueError, "episodes: expected at least one episode"):
            ov.from_minari(minari)

    @unittest.skipUnless(importlib.util.find_spec("h5py"), "h5py is not installed")
    def test_minaris_files_and_episodes_are_the_same_dataset(self) -> None:
        """Spaces, flags and versions of the description: equal hashes by file and by episodes."""
        import h5py

        random = np.random.default_rng(0)
        box = spaces.Box(-1, 1, (3,), np.float64)
        observed = {
            "box": box,
            "discrete": spaces.Discrete(4, start=2),
            "dict": spaces.Dict({"b": box, "a": spaces.Discrete(3, start=1)}),
        }
        acted = {
            "discrete": spaces.Discrete(3, start=1),
            "several": spaces.MultiDiscrete([2, 3]),
            "box": spaces.Box(np.float32([-2, 0]), np.float32([2, 10])),
        }
        lengths = [4, 1, 6]
        # Flags of the second episode, of one step, and of the third.
        flags: dict[str, dict[str, list[int]]] = {
            "ends": {"terminations": [-1]},
            "limits": {"truncations": [-1]},
            "both": {"terminations": [-1], "truncations": [-1]},
            "early": {"terminations": [0, -1]},
            "none": {},
        }

        def rows(space: Any, n: int) -> Any:
            space.seed(int(random.integers(1 << 30)))
            if isinstance(space, spaces.Dict):
                return {key: rows(part, n) for key, part in space.items()}
            return np.array([space.sample() for _ in range(n)])

        def stored(group: Any, name: str, values: Any) -> None:
            if isinstance(values, dict):
                part = group.create_group(name)
                for key, value in values.items():
                    part.create_dataset(key, data=value)
            else:
                group.create_dataset(name, data=values)

        cases = 0
        for (seen_name, seen), (acted_name, takes), (flag_name, flag), old in itertools.product(
            observed.items(), acted.items(), flags.items(), (False, True)
        ):
            case = f"{seen_name}-{acted_name}-{flag_name}-{'attributes' if old else 'json'}"
            episodes = []
            for number, n in enumerate(lengths):
                ends = {"terminations": np.zeros(n, bool), "truncations": np.zeros(n, bool)}
                ends["terminations"][-1] = number == 0
                for name, steps in flag.items() if number else ():
                    ends[name][steps] = True
                episodes.append({
                    "observations": rows(seen, n + 1), "actions": rows(takes, n),
                    "rewards": random.normal(size=n), **ends,
                })
            described = {
                "observation_space": _space_text(seen), "action_space": _space_text(takes),
                "total_episodes": len(lengths), "total_steps": sum(lengths),
            }
            folder = Path(case)
            folder.mkdir()
            with h5py.File(folder / "main_data.hdf5", "w") as file:
                for number, episode in enumerate(episodes):
                    group = file.create_group(f"episode_{number}")
                    group.attrs["id"] = number
                    for name, values in episode.items():
                        stored(group, name, values)
                if old:
                    file.attrs.update(described)
            if not old:
                (folder / "metadata.json").write_text(
                    json.dumps({**described, "data_format": "hdf5", "dataset_id": "own/matrix-v0"})
                )
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                copied = ov.from_minari(types.SimpleNamespace(
                    observation_space=seen, action_space=takes,
                    iterate_episodes=lambda episodes=episodes: iter(episodes),
                ))
                read = ov.Dataset(folder, task="own/arrays")
                with self.subTest(case):
                    # An episode without an end is left out, here and in training on the file.
                    whole = 1 if flag_name == "none" else len(lengths)
                    counts = [data.summary()["episodes"] for data in (copied, read)]
                    self.assertEqual(counts, [whole, whole])
                    if flag_name != "none":
                        self.assertEqual(copied.hash, read.hash)
            cases += 1
        self.assertEqual(cases, 90)

    def test_a_repr_has_a_summary(self) -> None:
        arrays = carts()
        said = repr(ov.from_arrays(**arrays))
        n = len(arrays["rewards"])
        self.assertIn(f"{n} steps in 20 episodes, observations of 4 numbers, 2 discrete", said)
        self.assertRegex(said, r"returns \d+ to \d+, mean [\d.]+\)$")

    def test_files_are_summarized_and_checked(self) -> None:
        data = ov.Dataset.open(HOPPER)
        self.assertGreater(data.summary()["episodes"], 10)
        self.assertIsInstance(data.lint(), list)

    def test_several_datasets_are_trained_on_as_one(self) -> None:
        switching = HOPPER.with_name("hopper_switching.hdf5")
        mixed = ov.concat([HOPPER, ov.Dataset.open(switching)], shares=[2, 1])
        run = ov.train(mixed, env="hopper", progress="none", **TINY)
        named = ov.train(
            dataset=f"{switching},{HOPPER}", data={"shares": "1,2"}, env="hopper",
            run_dir="named", progress="none", **TINY,
        )
        models = [r.path / "checkpoints/step-00000006/model.safetensors" for r in (run, named)]
        self.assertEqual(*(model.read_bytes() for model in models))
        fitted = ov.RvS(env="hopper", progress="none").fit(ov.concat([HOPPER, switching]), n_steps=2)
        self.assertIn("hopper_medium.hdf5,", fitted.run_.settings)
        with self.assertRaisesRegex(ValueError, "several datasets as one value"):
            ov.study("run", dataset=mixed, env="hopper")
        with self.assertRaisesRegex(ValueError, "at least two datasets, got 1"):
            ov.concat([HOPPER])
        with self.assertRaisesRegex(ValueError, "expected 2 numbers, got 1"):
            ov.concat([HOPPER, switching], shares=[1])


def _space_text(space: Any) -> str:
    """A space in the form of Minari's description."""

    def _described(space: Any) -> dict[str, Any]:
        if isinstance(space, spaces.Dict):
            return {"type": "Dict", "subspaces": {key: _described(part) for key, part in space.items()}}
        if isinstance(space, spaces.Discrete):
            dtype = str(space.dtype)
            return {"type": "Discrete", "dtype": dtype, "n": int(space.n), "start": int(space.start)}
        shape = {"dtype": str(space.dtype), "shape": list(space.shape)}
        if isinstance(space, spaces.MultiDiscrete):
            return {"type": "MultiDiscrete", **shape, "nvec": space.nvec.tolist(), "start": space.start.tolist()}
        return {"type": "Box", **shape, "low": space.low.tolist(), "high": space.high.tolist()}

    return json.dumps(_described(space))


if __name__ == "__main__":
    unittest.main()
