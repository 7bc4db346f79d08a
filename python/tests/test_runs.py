"""Runs are found by their directories and by their names."""

from __future__ import annotations

import json
import os
import unittest
from pathlib import Path
from unittest import mock

import numpy as np

import overtone as ov
from overtone import _program

from .common import Desk, ROOT


class Runs(Desk):
    def test_a_name_is_as_good_as_a_directory(self) -> None:
        run = self.train()
        name = run.path.name
        self.assertEqual(run.path, Path("runs") / name)
        self.assertEqual(ov.load(name).path, run.path)
        self.assertEqual(ov.load(run).path, run.path)
        for called in (name, run, run.path):
            self.assertEqual(ov.Policy(called).task, "mujoco/hopper")
        for called in (name, run, str(run.path), [Path(name)]):
            written = ov.evaluate(called, episodes=1, target=3000, progress="none")
            self.assertEqual(list(written), [str(run.path / "evaluation.json")], called)
        self.assertEqual(ov.report(name, video=False), run.path / "report.html")

    def test_a_recording_of_a_value_agent_has_log_probs(self) -> None:
        settings = {"train.updates": 5, "discrete_cql.epsilon": 0.1, "evaluation.episodes": 0}
        with mock.patch.dict(os.environ, {"OVERTONE_DATASETS": str(ROOT / "datasets")}):
            run = ov.train(
                task="gymnasium/CartPole-v1", algorithm="discrete_cql",
                progress="none", **settings,
            )
        ov.record(policy=run, to="own.hdf5", transitions=200, epsilon=0.2, progress="none")
        probs = np.exp(ov.Dataset.open("own.hdf5").behavior_log_probs)
        # 0.2 / 2 + 0.8 · 0.1 / 2, and the rest.
        wrong = np.minimum(np.abs(probs - 0.14), np.abs(probs - 0.86))
        self.assertLess(wrong.max(), 1e-5)
        ov.export(run, "graph", format="onnx", deterministic=True, progress="none")
        self.assertEqual(json.loads(Path("graph/agent.json").read_text())["choice"], "mode")
        with self.assertRaisesRegex(ov.OvertoneError, "deterministic=true applies only to format"):
            ov.export(run, "weights", deterministic=True, progress="none")

    def test_names_are_searched_in_run_dir(self) -> None:
        run = self.train(run_dir="others")
        name = run.path.name
        self.assertEqual(ov.load(name, "others").path, run.path)
        written = ov.evaluate(name, episodes=1, target=3000, run_dir="others", progress="none")
        self.assertEqual(list(written), [str(run.path / "evaluation.json")])
        ov.report(name, run_dir="others", video=False)
        ov.report(name, runs="others", video=False, name="again")
        ov.report(run_dir="others", video=False, name="newest")
        for page in ("report", "again", "newest"):
            self.assertTrue((run.path / f"{page}.html").is_file(), page)

    def test_an_unknown_run_is_refused_before_any_evaluation(self) -> None:
        (self.folder / "runs/empty").mkdir(parents=True)
        for call in (ov.load, ov.evaluate, ov.report, ov.Policy):
            with self.assertRaisesRegex(ov.OvertoneError, "run `nobody` does not exist in this directory or in runs"):
                call("nobody")
            with self.assertRaisesRegex(ov.OvertoneError, "runs/empty is not a run: it does not have a config"):
                call("empty")
        with self.assertRaisesRegex(ValueError, "runs: expected at least one run"):
            ov.evaluate([])

    def test_a_path_is_checked_before_the_task(self) -> None:
        with self.assertRaisesRegex(FileNotFoundError, "there is no dataset at records/none"):
            ov.train("records/none", progress="none")
        with self.assertRaisesRegex(FileNotFoundError, "there is no dataset at records/none"):
            ov.BehaviorCloning(progress="none").fit("records/none")

    def test_commands_are_functions(self) -> None:
        ov.record(env="hopper", to="own.hdf5", transitions=40, progress="none")
        self.assertGreaterEqual(len(ov.Dataset.open("own.hdf5")), 40)
        run = self.train()
        said = ov.export(run, "exported", format="safetensors", progress="none")
        self.assertTrue(said and (self.folder / "exported/model.safetensors").is_file())
        imported = ov.import_("exported", progress="none")
        self.assertEqual((imported.path.name, imported.checkpoints), ("imported-exported", [6]))
        with mock.patch.object(_program, "call") as call:
            ov.video(run, steps=20)
        self.assertEqual(call.call_args[0][0], ["video", f"run={run.path}", "steps=20"])

    def test_a_run_with_an_equals_sign_in_its_name_is_not_an_option(self) -> None:
        run = self.train()
        name = "2026-evaluation.return_quantile=0.9_s1"
        path = run.path.rename(run.path.with_name(name))
        written = lambda _words, output: output.lines.append("report: page.html (with Markdown)")  # noqa: E731
        for called in (name, path, ov.load(name)):
            with mock.patch.object(_program, "call", side_effect=written) as call:
                self.assertEqual(ov.report(called, video=False, level=0.9), Path("page.html"))
            (words, _), _ = call.call_args
            options = ["video=false", "level=0.9", "runs=runs"]
            self.assertEqual(words, ["report", str(path.absolute()), *options])
        evaluated = ov.evaluate(name, episodes=1, target=3000, progress="none")
        self.assertEqual(list(evaluated), [str(path / "evaluation.json")])
        self.assertEqual(ov.Policy(name).task, "mujoco/hopper")
        ov.report(name, video=False)
        self.assertTrue((path / "report.html").is_file())


if __name__ == "__main__":
    unittest.main()
