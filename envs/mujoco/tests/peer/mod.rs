//! Gymnasium in its own process, controlled by one command per line.

use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};

use overtone_mujoco::{Revision, Robot, packages};

/// A running `gymnasium.py`.
pub struct Gymnasium {
    process: Child,
    orders: Option<ChildStdin>,
    answers: BufReader<ChildStdout>,
}

impl Gymnasium {
    pub fn start(robot: &'static Robot, revision: Revision, n_envs: usize) -> Self {
        let packages = packages().expect("`just setup` was run");
        // VENV/lib/pythonX.Y/site-packages
        let venv = packages.ancestors().nth(3).expect("packages lie in a virtual environment");
        let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/peer/gymnasium.py");
        let mut process = Command::new(venv.join("bin/python"))
            .arg(script)
            .args([robot.gymnasium_id(revision), n_envs.to_string()])
            .current_dir(std::env::temp_dir())
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .expect("Python starts");
        let orders = process.stdin.take();
        let answers = BufReader::new(process.stdout.take().expect("piped"));
        Self { process, orders, answers }
    }

    /// Sends a command and returns the numbers of its answer.
    pub fn ask(&mut self, line: &str) -> Vec<f64> {
        let orders = self.orders.as_mut().expect("open until the end");
        writeln!(orders, "{line}").expect("Gymnasium listens");
        let mut answer = String::new();
        let read = self.answers.read_line(&mut answer).expect("Gymnasium answers");
        assert!(read > 0, "Gymnasium stopped at: {line}");
        answer.split_whitespace().map(|number| number.parse().expect("a number")).collect()
    }
}

impl Drop for Gymnasium {
    /// Closing its standard input ends the process.
    fn drop(&mut self) {
        self.orders = None;
        let _ = self.process.wait();
    }
}
