//! The same step in PyTorch on the same device, where there is a Python with torch.

use std::{
    io::{BufRead, BufReader, Write},
    path::{Path, PathBuf},
    process::{Command, Stdio},
};

use anyhow::{Context, Result};
use overtone_console::errors;

use crate::{Scale, report::Row};

/// The program that takes the steps.
const PROGRAM: &str = "gpu_step.py";
/// The model that it needs beside itself.
const MODEL: &str = "atari_dt.py";

pub struct Peers {
    /// A Python; empty: one that is found.
    pub python: String,
    pub folder: PathBuf,
}

impl Peers {
    /// # Errors
    /// When a program fails that is there and has torch.
    pub fn measure(&self, scale: &Scale, on_gpu: bool) -> Result<Vec<Row>> {
        for file in [PROGRAM, MODEL] {
            if !self.folder.join(file).is_file() {
                let folder = self.folder.display();
                return Ok(Row::skipped(format!("there is no {file} in {folder}")));
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
            return Ok(Row::skipped(format!("{python} has no torch; python=… names another")));
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
                // Another program's trouble is no failure of this one.
                Err(error) => Row { what, note: errors::sentence(&error), ..Row::default() },
            });
        }
        Ok(rows)
    }

    /// Milliseconds a step, round by round.
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
            line.trim().parse().with_context(|| format!("it said {line:?}"))
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
