"""Start of the program for the runs of a study."""

from __future__ import annotations

import contextlib
import io
import os
import signal
import subprocess
import sys
import sysconfig
import unittest
from pathlib import Path
from unittest import mock

import overtone as ov
from overtone import __main__, _host

from .common import HOPPER, TINY, Desk, carts


class Host(Desk):
    def setUp(self) -> None:
        super().setUp()
        environment = mock.patch.dict(os.environ)
        environment.start()
        self.addCleanup(environment.stop)
        os.environ.pop("OVERTONE_PROGRAM", None)
        # The program handles Ctrl-C itself.
        self.addCleanup(signal.signal, signal.SIGINT, signal.getsignal(signal.SIGINT))

    def installed(self, packages: str, **schemes: str) -> Path:
        """This package as installed by pip: its path, and the directory of each scheme."""

        def paths(scheme: str) -> dict[str, str]:
            home = str(self.folder / schemes.get(scheme, f"no/{scheme}"))
            return {"purelib": f"{home}/lib", "platlib": f"{home}/lib64", "scripts": f"{home}/bin"}

        for where, name, value in [
            (_host, "__file__", str(self.folder / packages / "overtone/_host.py")),
            (sysconfig, "get_paths", paths),
            (sysconfig, "get_default_scheme", lambda: "usual"),
            (sysconfig, "get_preferred_scheme", lambda kind: kind),
        ]:
            patch = mock.patch.object(where, name, value)
            patch.start()
            self.addCleanup(patch.stop)
        return self.folder / packages

    def script(self, folder: str) -> Path:
        place = self.folder / folder
        place.mkdir(parents=True, exist_ok=True)
        (place / "overtone").write_text("")
        return place / "overtone"

    def check(self, expected: Path | None) -> None:
        os.environ.pop("OVERTONE_PROGRAM", None)
        _host.announce()
        self.assertEqual(os.environ.get("OVERTONE_PROGRAM"), expected and str(expected))

    @unittest.skipIf(sys.platform == "win32", "there it has another name")
    def test_the_script_of_this_installation_is_found(self) -> None:
        self.installed("a/lib64", usual="a", user="home")
        self.check(None)
        # A script of another installation is not used.
        self.script("home/bin")
        self.check(None)
        self.check_is(self.script("a/bin"))

    def check_is(self, program: Path) -> None:
        self.check(program)
        # An explicit program has priority.
        os.environ["OVERTONE_PROGRAM"] = "mine"
        _host.announce(["study", "run"])
        self.assertEqual(os.environ["OVERTONE_PROGRAM"], "mine")

    @unittest.skipIf(sys.platform == "win32", "there it has another name")
    def test_the_script_of_a_users_installation_is_found(self) -> None:
        self.installed("home/lib", usual="a", user="home")
        self.script("a/bin")
        self.check_is(self.script("home/bin"))

    @unittest.skipIf(sys.platform == "win32", "there it has another name")
    def test_the_script_in_a_target_directory_is_found(self) -> None:
        packages = self.installed("target")
        script = self.script("target/bin")
        # It finds the package through the environment.
        os.environ.pop("PYTHONPATH", None)
        self.check(None)
        os.environ["PYTHONPATH"] = os.pathsep.join(["elsewhere", str(packages)])
        self.check_is(script)

    @unittest.skipIf(sys.platform == "win32", "no program is written there")
    def test_without_a_script_studies_start_this_python(self) -> None:
        with mock.patch.object(_host, "_script", lambda: None):
            _host.announce(["study", "status"])
            self.assertNotIn("OVERTONE_PROGRAM", os.environ)
            said = ov.study(
                "run", dataset=HOPPER, env="hopper", seed=[1, 2], progress="none", **TINY
            )
        self.assertIn("2 cells", "".join(said))
        program = Path(os.environ["OVERTONE_PROGRAM"])
        self.assertEqual(program.parent, self.folder / "overtone/programs")
        runs = [path for path in Path("runs").iterdir() if path.name != "studies"]
        self.assertEqual([ov.load(run).checkpoints for run in runs], [[2, 4, 6]] * 2, said)
        # It does not need this process's paths of packages.
        os.environ.pop("PYTHONPATH", None)
        result = subprocess.run([program, "--version"], capture_output=True, text=True, check=True)
        self.assertEqual(result.stdout, f"overtone {ov.__version__}\n")

    def test_a_list_that_is_one_value_is_not_an_axis(self) -> None:
        os.environ["OVERTONE_PROGRAM"] = "none"

        def check(cells: str, **settings: object) -> None:
            said = ov.study(
                "run", dataset=HOPPER, env="hopper", plan=True, progress="none", **settings
            )
            self.assertTrue(any(f": {cells}" in line for line in said), said)

        check("3 cells", seed=[1, 2, 3])
        check("2 cells", head=["tanh", "gaussian"])
        check("1 cell:", evaluation={"target": ["p50", "p90"], "episodes": 3})
        check("1 cell:", model={"top_percents": [10, 50, 100]})
        # A dataset sets its task.
        said = ov.study(
            "run", dataset=ov.from_arrays(**carts()), seed=[1, 2], plan=True, progress="none"
        )
        self.assertTrue(any(": 2 cells" in line for line in said), said)
        Path("shares.toml").write_text('[grid]\n"model.top_percents" = ["10,50", "10,100"]\n')
        said = ov.study(
            "run", "shares.toml", dataset=HOPPER, env="hopper", plan=True, progress="none"
        )
        self.assertIn("shares: 2 cells: 2 waiting", "\n".join(said))

    def test_without_a_program_a_study_is_refused_in_a_sentence(self) -> None:
        def check(part: str) -> None:
            pattern = f"it is missing: .*nowhere.* cannot be used .*{part}.*OVERTONE_PROGRAM"
            with self.assertRaisesRegex(ov.OvertoneError, pattern) as refused:
                ov.study("run", env="hopper", seed=[1, 2], progress="none")
            self.assertNotIn("\n", str(refused.exception))

        self.installed("nowhere")
        is_windows = sys.platform == "win32"
        with mock.patch.object(sys, "executable", str(self.folder / "no-python")):
            check("on Windows" if is_windows else "no-python.*(not found|No such file)")
            # As from a shell.
            called = mock.patch.object(sys, "argv", ["overtone", "study", "resume"])
            errors = io.StringIO()
            with called, contextlib.redirect_stderr(errors):
                self.assertEqual(__main__.main(), 1)
            self.assertRegex(errors.getvalue(), "^error: a study starts .*\n$")
        (self.folder / "file").write_text("")
        os.environ["XDG_CACHE_HOME"] = str(self.folder / "file")
        check("on Windows" if is_windows else "file")
        # A command without runs does not need the program.
        ov.command(["--version"], progress="none")


if __name__ == "__main__":
    unittest.main()
