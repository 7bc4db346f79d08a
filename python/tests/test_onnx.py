"""Exported graphs in onnxruntime, compared with Overtone's policies."""

from __future__ import annotations

import importlib.util
import json
import re
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

import unittest

import numpy as np

import overtone as ov

from .common import ROOT, TINY, Desk, carts

HAS_ONNX = all(importlib.util.find_spec(name) for name in ("onnx", "onnxruntime"))
VALUES: dict[str, Any] = {"model": {}, "train": {**TINY["train"], "batch_size": 32}}

#: Settings of agents with continuous actions.
CONTINUOUS: dict[str, dict[str, Any]] = {
    "tanh": {},
    "pointwise": {"head": "pointwise"},
    "gaussian": {"head": "gaussian"},
    "fourier": {"head": "fourier"},
    "fourier, half range": {"head.kind": "fourier", "head.domain": "half_range"},
    "gmm": {"head": "gmm"},
    "gmm, every option": {"head.kind": "gmm", "head.components": 3, "head.std": "state",
                          "head.weights": "learned"},
    "gmm, equal Gaussians": {"head.kind": "gmm", "head.std": "fixed", "head.init_std": 0.2},
    "bins": {"head.kind": "linear", "head.bins": 11},
    "fourier on bins": {"head.kind": "fourier", "head.bins": 11},
    "gmm on bins": {"head.kind": "gmm", "head.bins": 11},
    "fourier attention": {"attention": "fourier"},
    "fourier attention, every option": {"attention.kind": "fourier", "attention.r": "per_dimension",
                                        "attention.epsilon": 1e-6, "attention.power": 2},
    "returns as in the reference": {"model.return_unit": "scale", "model.time": "episode"},
    "returns in a range": {"model.return_unit": "range"},
    "two heads of attention": {"model.n_heads": 2, "model.context_length": 3},
    "behaviour cloning": {"algorithm": "behavior_cloning"},
    "a perceptron": {"algorithm": "behavior_cloning", "model.kind": "perceptron",
                     "model.context_length": 3},
    "RvS": {"algorithm": "rvs"},
    "TD3+BC": {"algorithm": "td3_bc", **VALUES},
    "IQL": {"algorithm": "iql", **VALUES},
    "IQL in chunks": {"algorithm": "iql", "iql.chunk_size": 3, **VALUES},
    "ReBRAC": {"algorithm": "rebrac", **VALUES},
    "ReBRAC on raw observations": {"algorithm": "rebrac", "rebrac.normalize": False, **VALUES},
}
#: Settings of agents with discrete actions.
DISCRETE: dict[str, dict[str, Any]] = {
    "linear": {},
    "fourier": {"head": "fourier"},
    "gmm": {"head": "gmm"},
    "RvS": {"algorithm": "rvs"},
    "IQL": {"algorithm": "iql", **VALUES},
    "IQL, fourier": {"algorithm": "iql", "head": "fourier", **VALUES},
    "CQL": {"algorithm": "discrete_cql", **VALUES},
}


def hops(seed: int) -> np.ndarray:
    """Observations in the shape of Hopper's."""
    return np.random.default_rng(seed).normal(size=(25, 11)).astype(np.float32)


def script(folder: Path) -> ModuleType:
    """The exported ``play.py`` as a module."""
    spec = importlib.util.spec_from_file_location("play", folder / "play.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@unittest.skipUnless(HAS_ONNX, "onnx and onnxruntime are not installed")
class Graphs(Desk):
    def exported(self, run: ov.Run, name: str, **settings: Any) -> Any:
        """The agent of a run in onnxruntime; its file is valid."""
        import onnx

        folder = self.folder / name
        ov.export(run, folder, format="onnx", progress="none", **settings)
        onnx.checker.check_model(str(folder / "agent.onnx"), full_check=True)
        return script(folder).Agent(folder)

    def check(self, run: ov.Run, agent: Any, observations: np.ndarray, **mode: Any) -> None:
        """Both take the same actions at every step, whatever was taken before."""
        policy = ov.Policy(run, deterministic=True, **mode)
        agent.about["choice"] = "mode"
        random = np.random.default_rng(3)
        for episode in range(2):
            agent.begin(seed=episode)
            reward = 0.0
            for step, observation in enumerate(observations):
                ours = policy.act(observation[None], rewards=[reward], starts=[step == 0])[0]
                theirs = agent.act(observation, reward)
                np.testing.assert_allclose(theirs, ours, rtol=0, atol=1e-5, err_msg=str(step))
                taken = ours if np.ndim(ours) == 0 else ours + random.normal(0, 0.1, ours.shape)
                taken = np.asarray(taken, np.result_type(ours))
                policy.took(taken[None])
                agent.took(taken)
                reward = float(random.normal())

    def test_continuous_actions_are_the_same(self) -> None:
        observations = hops(0)
        for name, settings in CONTINUOUS.items():
            with self.subTest(name):
                run = self.train(**settings)
                self.check(run, self.exported(run, name), observations)

    def test_every_acting_mode_is_the_same(self) -> None:
        observations = hops(1)
        run = self.train()
        for percent in (0, 10, 100):
            agent = self.exported(run, f"top {percent}", top_percent=percent)
            mode = {"top_percent": float(percent)}
            self.check(run, agent, observations, **mode)
            self.assertEqual("returns_to_go" in agent.inputs, percent == 0)

    def test_discrete_actions_are_the_same(self) -> None:
        data = ov.from_arrays(**carts())
        observations = np.random.default_rng(1).normal(size=(25, 4)).astype(np.float32)
        for name, settings in DISCRETE.items():
            with self.subTest(name):
                settings = {**TINY, **settings}
                if settings.get("algorithm") == "rvs":
                    settings["model"] = {}
                run = ov.train(data, "own/cart", progress="none", **settings)
                self.check(run, self.exported(run, name), observations)

    def test_masked_actions_are_the_same(self) -> None:
        arrays, random = carts(), np.random.default_rng(1)
        n = len(arrays["actions"])
        mask = np.eye(3, dtype=bool)[arrays["actions"]] | (random.random((n, 3)) < 0.4)
        data = ov.from_arrays(**arrays, action_mask=mask)
        run = ov.train(data, "own/cart", progress="none", algorithm="discrete_cql", **VALUES)
        policy, agent = ov.Policy(run, deterministic=True), self.exported(run, "masked")
        agent.about["choice"] = "mode"
        agent.begin()
        seen = random.normal(size=(25, 4)).astype(np.float32)
        with self.assertRaisesRegex(ValueError, "action_mask: None"):
            agent.act(seen[0])
        for wrong in ([0, 0, 0], [1, 1]):
            with self.assertRaisesRegex(ValueError, "action_mask: "):
                agent.act(seen[0], action_mask=wrong)
        robot = self.exported(self.train(), "robot")
        robot.begin()
        with self.assertRaisesRegex(ValueError, "action_mask: "):
            robot.act(hops(0)[0], action_mask=[1, 1, 1])
        for step, (observation, allowed) in enumerate(zip(seen, mask)):
            start = [step == 0]
            ours = policy.act(observation[None], action_mask=allowed[None], rewards=[0.0], starts=start)
            theirs = agent.act(observation, 0.0, allowed)
            self.assertEqual(theirs, ours[0])
            self.assertTrue(allowed[theirs])
        agent.about.update(choice="sample", greedy=0.0, temperature=1e30)
        drawn = {agent.act(seen[0], 0.0, [1, 0, 1]) for _ in range(50)}
        self.assertEqual(drawn, {0, 2})

    def test_actions_are_in_the_environments_units(self) -> None:
        random = np.random.default_rng(0)
        ends = np.arange(200) % 20 == 19
        data = ov.from_arrays(
            observations=random.normal(size=(200, 3)).astype(np.float32),
            actions=random.uniform([-2, 0], [2, 10], (200, 2)).astype(np.float32),
            rewards=np.ones(200, np.float32), terminations=ends, truncations=np.zeros(200, bool),
        )
        run = ov.train(data, "own/wide", progress="none", **TINY)
        observations = random.normal(size=(10, 3)).astype(np.float32)
        self.check(run, self.exported(run, "wide"), observations)

    def test_frames_are_the_same(self) -> None:
        frames = np.random.default_rng(0).integers(0, 255, (4, 4, 84, 84), np.uint8)
        for algorithm in ("decision_transformer", "iql", "discrete_cql"):
            with self.subTest(algorithm):
                settings = {"train": {"updates": 1, "batch_size": 2}, "evaluation.episodes": 0}
                model = {"model.n_layers": 1} if algorithm == "decision_transformer" else {}
                log = ROOT / "datasets/starter/Seaquest"
                run = ov.train(log, "ale/seaquest", algorithm=algorithm, progress="none",
                               **settings, **model)
                agent = self.exported(run, algorithm)
                self.check(run, agent, frames)

    def test_the_seeds_of_an_evaluated_episode_are_exported(self) -> None:
        run = self.train(**{"evaluation.episodes": 2})
        (first, _) = run.evaluations()["evaluation"]["episodes"]
        self.assertEqual(self.exported(run, "hopper").about["episode"], first)
        self.assertIsInstance(first["agent_seed"], int)

    def test_a_failed_call_changes_nothing(self) -> None:
        carts_run = ov.train(ov.from_arrays(**carts()), "own/cart", progress="none", **TINY)
        cases = [(self.train(), hops(2), 11), (carts_run, hops(3)[:, :4], 4)]
        for number, (run, observations, width) in enumerate(cases):
            plain, disturbed = self.exported(run, f"{number}"), self.exported(run, f"{number} again")
            plain.begin(1)
            disturbed.begin(1)
            wrong = [
                lambda: disturbed.begin(2, target=np.nan),
                lambda: disturbed.act(np.zeros(width), np.nan),
                lambda: disturbed.act(np.full(width, np.nan)),
                lambda: disturbed.act(np.full(width, 1e300)),
                lambda: disturbed.act(np.full(width, 3.4e38, np.float32)),
                lambda: disturbed.took(np.nan),
                lambda: disturbed.took(np.full(3, np.nan)),
                lambda: disturbed.took(np.full(3, 3e38, np.float32)),
                lambda: disturbed.took(99),
            ]
            for step, observation in enumerate(observations):
                for call in wrong:
                    with self.assertRaises(ValueError):
                        call()
                ours, theirs = (agent.act(observation, 1.0) for agent in (plain, disturbed))
                np.testing.assert_array_equal(ours, theirs, err_msg=str(step))

    def test_calls_out_of_order_are_refused(self) -> None:
        agent = self.exported(self.train(), "hopper")
        before_begin = r"begin\(\) starts an episode; call it before act\(\)"
        before_act = r"act\(\) chooses an action; call it before took\(\)"
        with self.assertRaisesRegex(ValueError, before_begin):
            agent.act(hops(0)[0])
        for begin in (lambda: None, agent.begin):
            begin()
            with self.assertRaisesRegex(ValueError, before_act):
                agent.took(np.zeros(3))
        agent.act(hops(0)[0])
        agent.took(np.full(3, 2.0))  # outside the bounds, as recorded actions may be

    def test_a_sampled_action_has_its_probability(self) -> None:
        run = ov.train(ov.from_arrays(**carts()), "own/cart", progress="none", **TINY)
        agent = self.exported(run, "cart")
        self.assertEqual(agent.about["choice"], "sample")
        agent.begin(seed=1)
        draws = [agent.choose(np.log([0.2, 0.8]).astype(np.float32)) for _ in range(2000)]
        self.assertAlmostEqual(float(np.mean(draws)), 0.8, delta=0.05)

    def test_the_script_is_short_and_needs_only_numpy_and_onnxruntime(self) -> None:
        run = self.train()
        agent = self.exported(run, "hopper")
        text = (self.folder / "hopper/play.py").read_text()
        self.assertLessEqual(len(text.splitlines()), 90)
        names = set(re.findall(r"^(?:import|from) (.+)$", text, re.MULTILINE))
        names = {word for line in names for word in re.findall(r"\w+", line.split(" import ")[0])}
        others = names - set(sys.stdlib_module_names) - {"as", "np"}
        self.assertEqual(others, {"numpy", "onnxruntime"})
        about = json.loads((self.folder / "hopper/agent.json").read_text())
        self.assertEqual((about["task"], about["context_length"]), ("mujoco/hopper", 5))
        self.assertEqual(agent.about, about)


if __name__ == "__main__":
    unittest.main()
