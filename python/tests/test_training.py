"""Training from Python is the program's training."""

from __future__ import annotations

import multiprocessing
import os
import pickle
import signal
import socket
import subprocess
import sys
import threading
import time
import unittest
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any
from unittest import mock

import numpy as np

import overtone as ov
from overtone import _host

from .common import HOPPER, ROOT, TINY, Desk, carts

#: A cell of kind 4 or 5, which have the same grey; the action of its kind has the reward.
CODES = '''
import gymnasium, numpy
from gymnasium import spaces

class Codes(gymnasium.Env):
    observation_space = spaces.Box(0, 255, (7, 7, 3), numpy.uint8)
    action_space = spaces.Discrete(2)

    def see(self):
        self.kind = int(self.np_random.integers(2))
        seen = numpy.ones((7, 7, 3), numpy.uint8)
        seen[3, 3, 0] = 4 + self.kind
        return seen

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.time = 0
        return self.see(), {}

    def step(self, action):
        paid, self.time = float(action == self.kind), self.time + 1
        return self.see(), paid, self.time == 10, False, {}

gymnasium.register("Codes-v0", Codes)
'''

#: Actions without bounds, and with one bound; the reward is 0 for an action 20 times the observation.
#: A seed is stored in 32 bits.
FREE = '''
import struct

import gymnasium, numpy
from gymnasium import spaces

class Free(gymnasium.Env):
    observation_space = spaces.Box(-1, 1, (2,), numpy.float32)
    action_space = spaces.Box(-numpy.inf, numpy.inf, (1,), numpy.float32)

    def see(self):
        self.seen = self.np_random.uniform(-1, 1, 2).astype(numpy.float32)
        return self.seen

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        struct.pack("i", seed)
        self.time = 0
        return self.see(), {}

    def step(self, action):
        assert self.action_space.contains(action), action
        paid, self.time = -abs(float(action[0] - 20 * self.seen[0])), self.time + 1
        return self.see(), paid, self.time == 10, False, {}

class Above(Free):
    action_space = spaces.Box(3, numpy.inf, (1,), numpy.float32)

gymnasium.register("Free-v0", Free)
gymnasium.register("Above-v0", Above)
'''


class Training(Desk):
    def test_a_run_equals_the_programs_byte_for_byte(self) -> None:
        program = os.environ.get("OVERTONE_TEST_PROGRAM", ROOT / "target/release/overtone")
        if not Path(program).is_file():
            self.skipTest(f"{program} is not there")
        run = self.train(seed=3)
        words = ["train", "env=hopper", f"dataset={HOPPER}", *ov.words(TINY), "seed=3", "runs=cli"]
        subprocess.run([program, *words], check=True, capture_output=True)
        (other,) = Path("cli").iterdir()
        steps = [2, 4, 6]
        self.assertEqual(run.checkpoints, steps)
        for step in steps:
            for name in ("model.safetensors", "optimizer.safetensors", "state.json"):
                place = f"checkpoints/step-{step:08}/{name}"
                mine, its = (folder / place for folder in (run.path, other))
                self.assertEqual(mine.read_bytes(), its.read_bytes(), place)

    def test_returns_at_another_step_limit_are_not_normalized(self) -> None:
        ov.record(task="mujoco/hopper", to="short", transitions=200, episode_steps=7, progress="none")
        run = ov.train("short", progress="none", **{**TINY, "evaluation.episodes": 1})
        report = run.evaluations()["evaluation"]
        self.assertIsNone(report["targets"][0].get("normalized"))
        (line,) = [each for each in report["differences"] if each["setting"] == "step_limit"]
        self.assertEqual((line["trained"], line["played"]), ("7", "7"))

    def test_actions_without_bounds_are_scaled_by_the_recorded_range(self) -> None:
        Path("free.py").write_text(FREE)
        sys.path.insert(0, os.getcwd())
        self.addCleanup(sys.path.remove, os.getcwd())
        random = np.random.default_rng(0)
        seen = random.uniform(-1, 1, (1000, 2)).astype(np.float32)
        ends = np.arange(1000) % 10 == 9
        words: dict[str, Any] = {"algorithm": "behavior_cloning", "model__kind": "perceptron",
                                 "train__updates": 200, "progress": "none"}

        def recorded(task: str, actions: np.ndarray) -> ov.Dataset:
            rewards, ongoing = np.zeros(1000, np.float32), np.zeros(1000, bool)
            return ov.from_arrays(seen, actions, rewards, ends, ongoing, task=task)

        def played(run: ov.Run) -> np.ndarray:
            shown = np.array([[0.5, 0], [-0.9, 0], [0.02, 0]], np.float32)
            return run.policy(n_agents=3).act(shown).ravel()

        task = "gymnasium/free:Free-v0"
        run = ov.train(recorded(task, 20 * seen[:, :1]), evaluation__episodes=2, **words)
        np.testing.assert_allclose(played(run), [10, -18, 0.4], atol=2)
        half = recorded(task, 10 * seen[:, :1])
        tuned = ov.train(half, init=run.path, evaluation__episodes=2, train__updates=1,
                         progress="none")
        np.testing.assert_allclose(played(tuned), [10, -18, 0.4], atol=3)
        runs = f"{run.path},{ov.train(half, evaluation__episodes=0, **words).path}"
        ov.command(["evaluate", "rollouts", f"run={runs}", "episodes=2"], progress="none")

        ov.record(task=task, to="recorded", transitions=50, progress="none")

        above = "gymnasium/free:Above-v0"
        run = ov.train(recorded(above, 13 + 10 * seen[:, :1]), evaluation__episodes=2, **words)
        np.testing.assert_allclose(played(run), [18, 4, 13.2], atol=2)
        with self.assertRaisesRegex(ov.OvertoneError, "beyond the task's bound of 3"):
            ov.train(recorded(above, seen[:, :1]), evaluation__episodes=0, **words)

    def test_help_is_returned_and_unknown_words_are_errors(self) -> None:
        (output,) = ov.command(["data", "convert", "--help"], progress="none")
        self.assertIn("Usage: overtone data convert", output)
        with self.assertRaisesRegex(ov.OvertoneError, "unrecognized subcommand"):
            ov.command(["trian"], progress="none")

    def test_a_run_is_initialised_from_another(self) -> None:
        first = self.train(seed=4, run_dir="first")
        # It learns almost nothing, so the weights are the initial ones.
        rate = {"learning_rate": 1e-30, "average_weights": False}
        run = self.train(init=first, seed=5, train={**TINY["train"], **rate})
        self.assertIn(f'init = "{first.path}:6"', run.settings)
        last = "checkpoints/step-00000006/model.safetensors"
        self.assertEqual((run.path / last).read_bytes(), (first.path / last).read_bytes())

    def test_progress_is_reported_and_stored(self) -> None:
        rows: list[ov.Report] = []
        run = self.train(callback=rows.append)
        self.assertEqual([row["step"] for row in rows], [2, 4, 6])
        metrics = run.metrics()
        self.assertEqual(metrics["step"], [2, 4, 6])
        for row, loss in zip(rows, metrics["loss"]):
            self.assertAlmostEqual(row["loss"], loss, places=5)
            self.assertIn("action_loss", row)

    def test_an_exception_of_a_callback_stops_training_after_a_checkpoint(self) -> None:
        whole = self.train(seed=4, run_dir="whole")

        def stop(row: ov.Report) -> None:
            if row["step"] >= 2:
                raise LookupError("seen enough")

        updates = {**TINY, "train": {**TINY["train"], "log_every": 1}}
        with self.assertRaisesRegex(LookupError, "seen enough"):
            self.train(seed=4, callback=stop, **updates)
        (folder,) = Path("runs").iterdir()
        run = ov.load(folder)
        self.assertLess(run.checkpoints[-1], 6)
        run.resume(progress="none")
        last = "checkpoints/step-00000006/model.safetensors"
        self.assertEqual((folder / last).read_bytes(), (whole.path / last).read_bytes())

    def test_ctrl_c_leaves_a_checkpoint_and_the_same_call_resumes(self) -> None:
        long = {**TINY, "train": {**TINY["train"], "updates": 100_000, "checkpoint_every": 50_000}}
        # A shell starts background processes that ignore Ctrl-C.
        before = signal.signal(signal.SIGINT, signal.default_int_handler)
        self.addCleanup(signal.signal, signal.SIGINT, before)
        steps = [0]
        for _ in range(2):
            timer = threading.Timer(1.0, signal.raise_signal, [signal.SIGINT])
            timer.start()
            with self.assertRaisesRegex(KeyboardInterrupt, "has a checkpoint, and the same call"):
                self.train(**long)
            timer.cancel()
            (folder,) = Path("runs").iterdir()
            steps.append(ov.load(folder).checkpoints[-1])
        self.assertEqual(steps, sorted(set(steps)))

    def test_sigterm_leaves_a_checkpoint(self) -> None:
        long = {**TINY, "train": {**TINY["train"], "updates": 100_000, "checkpoint_every": 50_000}}
        timer = threading.Timer(1.0, signal.raise_signal, [signal.SIGTERM])
        timer.start()
        with self.assertRaises(SystemExit) as stopped:
            self.train(**long)
        self.assertEqual(stopped.exception.code, 143)
        (folder,) = Path("runs").iterdir()
        self.assertGreater(ov.load(folder).checkpoints[-1], 0)
        self.assertIs(signal.getsignal(signal.SIGTERM), signal.SIG_DFL)

    def test_a_second_ctrl_c_is_raised_at_once(self) -> None:
        pressed: list[float] = []
        ended = threading.Event()

        def press(*_: object) -> None:
            pressed.append(time.monotonic())
            raise KeyboardInterrupt

        def press_twice() -> None:
            # The download has started, and waits for an answer.
            with server.accept()[0]:
                for n in (1, 2):
                    signal.raise_signal(signal.SIGINT)
                    while len(pressed) < n and not ended.wait(0.01):
                        pass
                # Otherwise it ends when the connection is lost.
                ended.wait(10)
            server.close()

        before = signal.signal(signal.SIGINT, press)
        self.addCleanup(signal.signal, signal.SIGINT, before)
        os.environ["MINARI_DATASETS_PATH"] = str(self.folder)
        self.addCleanup(os.environ.pop, "MINARI_DATASETS_PATH")
        with socket.create_server(("127.0.0.1", 0)) as server:
            server.settimeout(30)
            address = f"http://127.0.0.1:{server.getsockname()[1]}"
            thread = threading.Thread(target=press_twice)
            thread.start()
            words = ["download", "dataset=minari:mujoco/hopper/medium-v0", f"from={address}"]
            try:
                with self.assertRaises(KeyboardInterrupt):
                    ov.command(words, progress="none")
            finally:
                ended.set()
                thread.join()
        self.assertEqual(len(pressed), 2)
        self.assertLess(time.monotonic() - pressed[1], 5)

    @unittest.skipUnless(sys.platform == "linux", "elsewhere, processes are forked by none")
    def test_a_forked_process_refuses_to_compute(self) -> None:
        run = self.train()
        policy, seen = run.policy(), np.zeros((1, 11))
        calls: list[Callable[[], object]] = [
            lambda: self.train(seed=9), run.resume, lambda: policy.act(seen),
            lambda: run.policy().act(seen), lambda: ov.Dataset.open(HOPPER).summary(),
        ]
        # By fork, the default of multiprocessing before Python 3.14.
        context = multiprocessing.get_context("fork")
        ours, theirs = context.Pipe()

        def work() -> None:
            for call in calls:
                try:
                    call()
                    theirs.send("")
                except ov.OvertoneError as error:
                    theirs.send(str(error))

        process = context.Process(target=work, daemon=True)
        process.start()
        self.addCleanup(process.join)
        self.addCleanup(process.kill)
        output = [ours.recv() if ours.poll(60) else "nothing" for _ in calls]
        for each in output[:-1]:
            self.assertRegex(each, r"^this process was forked .*get_context\('spawn'\)$")
        self.assertEqual(output[-1], "")
        policy.act(seen)

    def test_reading_data_allows_a_fork(self) -> None:
        with mock.patch.object(_host, "_computed", False):
            data = ov.Dataset.open(HOPPER)
            self.assertGreater(len(data.hash) + len(data), 0)
            self.assertFalse(_host._computed)
            self.train()
            self.assertTrue(_host._computed)

    @unittest.skipUnless(sys.platform == "linux", "elsewhere, processes are forked by none")
    def test_a_forked_process_reads_a_log_of_frames(self) -> None:
        self.train()
        log = ov.Dataset.open(ROOT / "datasets/starter/Seaquest")
        child = multiprocessing.get_context("fork").Process(target=log.lint)
        child.start()
        child.join(60)
        is_stuck = child.is_alive()
        child.kill()
        child.join()
        self.assertFalse(is_stuck)
        self.assertEqual(child.exitcode, 0)

    def test_errors_cross_processes(self) -> None:
        again = pickle.loads(pickle.dumps(ov.OvertoneError("why")))
        self.assertEqual((type(again), str(again)), (ov.OvertoneError, "why"))

    def test_other_threads_work_meanwhile(self) -> None:
        seen, done = [], threading.Event()

        def count() -> None:
            while not done.wait(0.001):
                seen.append(time.perf_counter())

        thread = threading.Thread(target=count)
        thread.start()
        start = time.perf_counter()
        self.train(
            train={"updates": 300, "batch_size": 4, "log_every": 300, "checkpoint_every": 300}
        )
        end = time.perf_counter()
        done.set()
        thread.join()
        # In the middle half, in which the program does not call Python.
        tenths = {int(20 * (at - start) / (end - start)) for at in seen} & set(range(5, 15))
        self.assertGreaterEqual(len(tenths), 5, tenths)

    def test_arrays_without_an_environment_train_and_act(self) -> None:
        settings = {key: value for key, value in TINY.items() if key != "evaluation.episodes"}
        arrays = carts()
        run = ov.train(dataset=ov.from_arrays(**arrays), progress="none", **settings)
        self.assertIn('task = "own/arrays"', run.settings)
        self.assertEqual(run.evaluations(), {})
        action = run.policy("p50").act(arrays["observations"][:1])
        self.assertIn(int(action[0]), (0, 1))
        with self.assertRaisesRegex(ov.OvertoneError, "own/arrays is data without an environment"):
            ov.evaluate(run, episodes=1, progress="none")
        # Continuous with bounds: an agent stays within them.
        pushed = np.random.default_rng(0).uniform(-2, 5, (len(arrays["actions"]), 2))
        data = ov.from_arrays(
            **{**arrays, "actions": pushed}, action_low=-3, action_high=[6, 7], task="own/valves"
        )
        run = ov.train(data, progress="none", run_dir="valves", **settings)
        self.assertIn('task = "own/valves"', run.settings)
        acted = run.policy(0.0, n_agents=20).act(100 * arrays["observations"][:20])
        self.assertTrue(((acted >= -3) & (acted <= [6, 7])).all(), acted)

    def test_codes_in_bytes_are_numbers_in_training_and_evaluation(self) -> None:
        # A name that is not a Python module.
        Path("overtone_codes.py").write_text(CODES)
        patch = mock.patch.object(sys, "path", [str(Path.cwd()), *sys.path])
        patch.start()
        self.addCleanup(patch.stop)
        random = np.random.default_rng(0)
        kinds = random.integers(0, 2, 600)
        seen = np.ones((600, 7, 7, 3), np.uint8)
        seen[:, 3, 3, 0] = 4 + kinds
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            data = ov.from_arrays(
                seen, kinds, np.ones(600), np.arange(600) % 10 == 9,
                task="gymnasium/overtone_codes:Codes-v0",
            )
        run = ov.train(
            data, data__layout="numbers", algorithm="behavior_cloning", progress="none",
            model={"kind": "perceptron"}, train={"updates": 200, "batch_size": 64},
            evaluation={"episodes": 3},
        )
        played = run.evaluations()["evaluation"]["episodes"]
        # Chance is 5 of 10, the most that two kinds of the same grey allow.
        self.assertGreaterEqual(min(each["raw_return"] for each in played), 9)
        policy = run.policy(deterministic=True, n_agents=2)
        for shown in (seen[:2], seen[:2].reshape(2, -1)):
            np.testing.assert_array_equal(policy.act(shown, starts=[True, True]), kinds[:2])
        self.assertEqual(policy.predict(seen[0], episode_start=[True])[0], kinds[0])

    def test_data_is_a_dataset_or_a_section_of_settings(self) -> None:
        settings: dict[str, Any] = {"env": "hopper", "progress": "none", **TINY}
        run = ov.train(data={"top_percent": 50}, dataset=HOPPER, **settings)
        self.assertIn("top_percent = 50.0", run.settings)
        same = ov.train(HOPPER, data__top_percent=50, run_dir="other", **settings)
        last = "checkpoints/step-00000006/model.safetensors"
        self.assertEqual((run.path / last).read_bytes(), (same.path / last).read_bytes())
        # The name of a dataset and its own task still count.
        made = ov.from_arrays(**carts())
        run = ov.train(dataset=made, data={"delayed_reward": True}, progress="none", **TINY)
        self.assertIn('task = "own/arrays"', run.settings)
        self.assertIn("delayed_reward = true", run.settings)
        with self.assertRaisesRegex(ValueError, "data and dataset mean the same"):
            ov.train(HOPPER, dataset="medium", **settings)
        with self.assertRaisesRegex(TypeError, "expected a Dataset or a path, got ndarray"):
            ov.train(np.zeros(3), **settings)  # type: ignore[arg-type]
        with self.assertRaisesRegex(ov.OvertoneError, "unknown option `data.observations`"):
            ov.train({"observations": [1.0]}, **settings)

    def test_where_runs_go_is_run_dir_or_runs(self) -> None:
        self.assertEqual(self.train(run_dir="a").path.parent, Path("a"))
        self.assertEqual(self.train(runs="b").path.parent, Path("b"))

    def test_errors_are_exceptions_in_one_sentence(self) -> None:
        with self.assertRaisesRegex(ov.OvertoneError, "head=tanhh.*tanh"):
            self.train(head="tanhh")
        with self.assertRaisesRegex(ov.OvertoneError, "train.learning_rate"):
            self.train(train__learning_rat=1)
        with self.assertRaisesRegex(ov.OvertoneError, "is not a run"):
            ov.load(self.folder)
        with self.assertRaisesRegex(ValueError, "progress"):
            ov.train(env="hopper", progress="loud")  # type: ignore[arg-type]
        no_tqdm = mock.patch.dict(sys.modules, {"tqdm": None})
        with no_tqdm, self.assertRaisesRegex(ValueError, "progress='bar': needs tqdm"):
            ov.train(env="hopper", progress="bar")

    def test_settings_are_the_programs_words(self) -> None:
        words = ov.words({"train": {"updates": 5}, "head__frequencies": 14, "a.b": [1, 2], "c": True})
        self.assertEqual(words, ["train.updates=5", "head.frequencies=14", "a.b=1,2", "c=true"])
        words = ov.words({
            "a": np.bool_(True), "b": np.arange(1, 3), "c": np.float32(0.1), "d": np.array(2),
            "e": [np.bool_(False), np.int64(7)],
        })
        self.assertEqual(words, ["a=true", "b=1,2", "c=0.1", "d=2", "e=false,7"])

    def test_a_list_in_a_list_is_refused(self) -> None:
        # For a key whose value is a list itself.
        key = "model.top_percents"
        self.assertEqual(ov.words({key: [10, 50]}), ov.words({"model": {"top_percents": (10, 50)}}))
        for values in ([[10, 50], [10, 100]], ((10, 50), (10,)), [range(3)], np.eye(2)):
            with self.assertRaisesRegex(ValueError, "model.top_percents=.*a list in a list"):
                ov.words({key: values})
        with self.assertRaisesRegex(ValueError, "an axis in the file of a study"):
            ov.study("run", env="hopper", model={"top_percents": [[10, 50], [10, 100]]})


if __name__ == "__main__":
    unittest.main()
