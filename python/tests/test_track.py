"""Sending curves to trackers, which a stand-in records."""

from __future__ import annotations

import contextlib
import io
import os
import shutil
import sys
import threading
import time
import types
import unittest
from pathlib import Path
from tempfile import TemporaryDirectory
from unittest import mock

from overtone import _track

HEADER = "step,tokens,loss,learning_rate\n"


class Tracking(unittest.TestCase):
    def setUp(self) -> None:
        folder = TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.run_folder = Path(folder.name) / "hopper"
        self.run_folder.mkdir()
        self.write("config.toml", 'task = "mujoco/hopper"\n')
        self.logged: list[tuple[int, dict[str, float]]] = []
        self.begun: list[dict[str, object]] = []
        trackio = types.ModuleType("trackio")

        def init(**how: object) -> object:
            self.begun.append(how)
            log = lambda values, step: self.logged.append((step, values))  # noqa: E731
            return types.SimpleNamespace(log=log)

        vars(trackio).update(init=init, finish=lambda: None)
        patch = mock.patch.dict(sys.modules, {"trackio": trackio})
        patch.start()
        self.addCleanup(patch.stop)

    def write(self, name: str, text: str) -> None:
        (self.run_folder / name).write_text(text, encoding="utf-8")

    def track(self, *words: str) -> tuple[int, str, str]:
        said, errors = io.StringIO(), io.StringIO()
        with contextlib.redirect_stdout(said), contextlib.redirect_stderr(errors):
            code = _track.main(words)
        return code, said.getvalue(), errors.getvalue()

    def test_every_row_is_sent_once_and_whole(self) -> None:
        # The last row is being written.
        self.write("metrics.csv", HEADER + "10,30,2.5,1e-4\n20,60,NaN,2e-4\n30,9")
        words = ("trackio", str(self.run_folder), "project=mine")
        self.assertEqual(self.track(*words)[0], 0)
        first = [
            (10, {"train/tokens": 30.0, "train/loss": 2.5, "train/learning_rate": 1e-4}),
            (20, {"train/tokens": 60.0, "train/learning_rate": 2e-4}),
        ]
        self.assertEqual(self.logged, first)
        self.write("metrics.csv", HEADER + "10,30,2.5,1e-4\n20,60,NaN,2e-4\n30,90,1.5,2e-4\n")
        self.write("held_out.csv", "step,loss\n20,1.25\n")
        self.assertIn("sent 2 rows", self.track(*words)[1])
        self.assertEqual([step for step, _ in self.logged], [10, 20, 30, 20])
        self.assertEqual(self.logged[-1], (20, {"held_out/loss": 1.25}))
        self.assertIn("sent 0 rows", self.track(*words)[1])
        # Evaluations have a row for each figure.
        self.write(
            "checkpoints.csv",
            "step,seconds,figure,value\n20,1.5,eval/return,1200.5\n"
            "20,1.5,eval/normalized_return,37.5\n30,2.5,eval/return,900\n",
        )
        self.assertIn("sent 2 rows", self.track(*words)[1])
        played = {"return": 1200.5, "normalized_return": 37.5}
        named = {f"played/eval/{name}": value for name, value in played.items()}
        self.assertEqual(self.logged[-2], (20, named))
        # Another project does not have its rows yet.
        self.assertIn("sent 6 rows", self.track("trackio", str(self.run_folder))[1])
        self.assertEqual(len({str(how["name"]) for how in self.begun}), 1)

    def test_an_interruption_sends_no_row_twice(self) -> None:
        self.write("metrics.csv", HEADER + "10,30,2.5,1e-4\n20,60,2.0,1e-4\n30,90,1.5,2e-4\n")
        words = ("trackio", str(self.run_folder))
        log = _track.Trackio.log

        def lose(tracker: _track.Trackio, step: int, values: dict[str, float]) -> None:
            if step == 30:
                raise KeyboardInterrupt
            log(tracker, step, values)

        with mock.patch.object(_track.Trackio, "log", lose):
            self.assertEqual(self.track(*words)[0], 130)
        self.assertIn("sent 1 rows", self.track(*words)[1])
        self.assertEqual([step for step, _ in self.logged], [10, 20, 30])

    def test_following_ends_with_the_run(self) -> None:
        self.write("metrics.csv", HEADER + "10,30,2.5,1e-4\n")

        def train() -> None:
            time.sleep(0.1)
            self.write("metrics.csv", HEADER + "10,30,2.5,1e-4\n20,60,2.0,1e-4\n")
            self.write("finished", "")

        thread = threading.Thread(target=train)
        thread.start()
        code, said, _ = self.track("trackio", str(self.run_folder), "follow=true", "every=0.02")
        thread.join()
        self.assertEqual((code, [step for step, _ in self.logged]), (0, [10, 20]))
        self.assertIn("sent 2 rows", said)

    def test_a_run_may_have_an_equals_sign_in_its_name(self) -> None:
        # Like runs of a study; one has the form of an option.
        runs = self.run_folder.parent
        self.write("metrics.csv", HEADER + "10,30,2.5,1e-4\n")
        for name in ("2026-evaluation.return_quantile=0.9_s1", "project=mine"):
            shutil.copytree(self.run_folder, runs / name)
        self.addCleanup(os.chdir, os.getcwd())
        os.chdir(runs)
        for words in [
            ("2026-evaluation.return_quantile=0.9_s1",),
            (str(runs / "2026-evaluation.return_quantile=0.9_s1"), "project=b"),
            ("project=mine",),
        ]:
            self.assertIn("sent 1 rows", self.track("trackio", *words)[1], words)
        # By its name, with a directory that follows later.
        os.chdir("/")
        words = ("2026-evaluation.return_quantile=0.9_s1", "project=c", f"runs={runs}")
        self.assertIn("sent 1 rows", self.track("trackio", *words)[1])
        self.assertEqual([how["project"] for how in self.begun], ["overtone", "b", "overtone", "c"])

    def test_errors_are_one_sentence(self) -> None:
        run = str(self.run_folder)
        for words, part in [
            (("comet", run), "expected one of wandb, mlflow, trackio"),
            (("trackio", "nobody"), "run `nobody` does not exist in this directory or in runs"),
            (("trackio", str(self.run_folder.parent)), "is not a run: config.toml is missing"),
            (("trackio", run, "follow=yes"), "true or false"),
            (("trackio", run, "projekt=a"), "`projekt` is not an option"),
            (("trackio", run, run, "follow=true"), "Name one run"),
            (("trackio",), "no run is named"),
        ]:
            code, _, errors = self.track(*words)
            self.assertEqual((code, errors.count("\n")), (1, 1), words)
            self.assertIn(part, errors)
        with mock.patch.dict(sys.modules, {"mlflow": None}):
            self.assertIn("pip install mlflow", self.track("mlflow", run)[2])


if __name__ == "__main__":
    unittest.main()
