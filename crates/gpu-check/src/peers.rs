//! Time of the same step in PyTorch on the same device, if a Python with torch is installed.

use std::{
    io::{BufRead, BufReader, Write},
    path::{Path, PathBuf},
    process::{Command, Stdio},
};

use anyhow::{Context, Result};
use overtone_console::errors;

use crate::{Scale, report::Row};

/// The PyTorch program.
const PROGRAM: &str = "gpu_step.py";
/// The model, which must be in the same directory.
const MODEL: &str = "atari_dt.py";

pub struct Peers {
    /// Path of a Python; empty: search for one.
    pub python: String,
    pub folder: PathBuf,
}

impl Peers {
    /// Measures the step time of several PyTorch variants.
    ///
    /// # Errors
    /// When the program and torch are installed but the program fails.
    pub fn measure(&self, scale: &Scale, on_gpu: bool) -> Result<Vec<Row>> {
        for file in [PROGRAM, MODEL] {
            if !self.folder.join(file).is_file() {
                let folder = self.folder.display();
                return Ok(Row::skipped(format!("{file} is missing in {folder}")));
            }
        }
        let venv = Path::new(".venv-peers/bin/python");
        let python = match self.python.as_str() {
            "" if venv.is_file() => venv.to_path_buf(),
            "" => "python3".into(),
            python => python.into(),
        };
        let has_torch = Command::new(&python)
            .args(["-c", "import torch"])
            .stderr(Stdio::null())
            .status()
            .is_ok_and(|status| status.success());
        if !has_torch {
            let python = python.display();
            return Ok(Row::skipped(format!(
                "{python} has no torch: set python= to another Python"
            )));
        }
        let fastest = "bf16+channels_last+sdpa+fused+compile";
        let variants: &[&str] = match scale.is_full {
            true => &["eager", "eager+bf16", "bf16+channels_last+sdpa+fused", fastest],
            false => &["eager"],
        };
        let mut rows = Vec::new();
        for variant in variants {
            let what = format!("{variant}, batch {}", scale.batch);
            rows.push(match self.time(&python, variant, scale, on_gpu) {
                Ok(times) => Row::measured(what, "ms", &times, String::new()),
                // A failure of the other program does not fail this check.
                Err(error) => Row { what, note: errors::sentence(&error), ..Row::default() },
            });
        }
        Ok(rows)
    }

    /// Milliseconds per step of each round.
    fn time(&self, python: &Path, variant: &str, scale: &Scale, on_gpu: bool) -> Result<Vec<f64>> {
        let steps = if scale.is_full { "10" } else { "1" };
        let mut process = Command::new(python)
            .arg(self.folder.join(PROGRAM))
            .args([&scale.batch.to_string(), variant, steps])
            .arg(if on_gpu { "cuda" } else { "cpu" })
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()?;
        let mut requests = process.stdin.take().context("no pipe")?;
        let mut answers = BufReader::new(process.stdout.take().context("no pipe")?).lines();
        let mut answer = || -> Result<f64> {
            let line = answers.next().context("it ended early")??;
            line.trim().parse().with_context(|| format!("expected a number, got {line:?}"))
        };
        let mut times = Vec::new();
        let ready = answer();
        if ready.is_ok() {
            for _ in 0..scale.rounds {
                writeln!(requests, "round")?;
                times.push(1e3 * answer()?);
            }
        }
        drop(requests);
        process.wait()?;
        ready.map(|_| times)
    }
}
