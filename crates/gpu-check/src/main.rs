//! `overtone-gpu-check`: compares the results of a GPU with the CPU, and measures its speed.
//!
//! The program needs no data and runs without cargo.

#[macro_use]
extern crate overtone_console;

mod agreement;
mod bits;
#[cfg(feature = "cuda")]
mod launches;
mod random_run;
mod row;
mod speed;
mod synthetic;

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::process::ExitCode;

use anyhow::{Result, anyhow, bail};
use clap::Parser;
use overtone_console::{errors, flags};
use overtone_model::{burn::tensor::Device, device};
use overtone_settings::options;

use row::Row;

overtone_model::options! {
    /// Options of the program.
    pub struct CheckOptions {
        /// Device to check: auto (the first GPU, or a dry run on the CPU without a GPU), cuda,
        /// cuda:N or cpu.
        pub device: String = "auto".into(),
        /// full: the paper's model and batches. tiny: a small model for a functional test; ignore
        /// its times. auto: full on a GPU, tiny on the CPU.
        pub size: String = "auto".into(),
        /// Number of training steps with dropout for comparing device and CPU; 0: depends on the
        /// size.
        pub steps: usize = 0,
        /// Comma-separated parts to run: steps, bits, launches, time; all: all parts.
        pub parts: String = "all".into(),
    }
}

/// Size of the checks.
struct Scale {
    is_full: bool,
    /// Training steps for comparing device and CPU.
    compared_steps: usize,
    /// Contexts in a timed step.
    batch: usize,
    layers: usize,
    rounds: usize,
    /// Approximate seconds of a round.
    round_seconds: f64,
}

const FULL: Scale = Scale {
    is_full: true,
    compared_steps: 100,
    batch: 128,
    layers: 6,
    rounds: 7,
    round_seconds: 0.5,
};
const TINY: Scale = Scale {
    is_full: false,
    compared_steps: 12,
    batch: 1,
    layers: 1,
    rounds: 3,
    round_seconds: 0.0,
};

/// Check that a GPU computes what the CPU computes, and how fast
#[derive(Parser)]
#[command(version, about, max_term_width = 100, after_help = options::help::<CheckOptions>(EXAMPLE))]
struct Cli {
    /// Options, `key=value`
    #[arg(value_name = "KEY=VALUE")]
    options: Vec<String>,
}

const EXAMPLE: &str = "Example: overtone-gpu-check device=cuda parts=steps,time";

/// A part: its word in `parts=`, and its check.
type Part = (&'static str, fn(&Scale, &Device) -> Result<Vec<Row>>);

/// In the order of execution.
const PARTS: [Part; 4] = [
    ("steps", agreement::check),
    ("bits", bits::check),
    ("launches", launches),
    ("time", speed::measure),
];

fn main() -> ExitCode {
    let words: Vec<_> = std::env::args_os().collect();
    ExitCode::from(match flags::parse::<Cli>(&words, |_, key| Some(key.to_owned())) {
        Ok(cli) => errors::exit_code(run(&cli.options).map(|()| 0), 1),
        Err(code) => code,
    })
}

/// Runs all selected parts and prints the rows of the table as they are known.
fn run(words: &[String]) -> Result<()> {
    let options: CheckOptions = options::read(words)?;
    let chosen = device::choose(&options.device)?;
    let (size, mut scale) = match (options.size.as_str(), chosen.is_gpu) {
        ("full", _) | ("auto", true) => ("full", FULL),
        ("tiny", _) | ("auto", false) => ("tiny", TINY),
        (other, _) => bail!("size={other}: expected auto, full or tiny"),
    };
    if options.steps > 0 {
        scale.compared_steps = options.steps;
    }
    let known = PARTS.map(|(word, _)| word);
    let selected: Vec<&str> = match options.parts.as_str() {
        "all" => known.into(),
        words => words.split(',').map(str::trim).collect(),
    };
    if let Some(other) = selected.iter().find(|word| !known.contains(word)) {
        bail!("parts={other}: expected all, {}", known.join(", "));
    }
    if !chosen.is_gpu {
        say!(
            "no GPU is used: this is a dry run on the CPU, which compares the fused operations with \
             the plain operations; its times are not representative of a GPU"
        );
    }
    say!("\n{}, size {size}\n", chosen.name);
    say!("| part | | | | |\n| --- | --- | ---: | --- | --- |");
    let (mut n_checks, mut n_failed) = (0, 0);
    for (word, part) in PARTS.iter().filter(|(word, _)| selected.contains(word)) {
        // GPU libraries panic if a compiler is missing or a kernel cannot run.
        let rows = catch_unwind(AssertUnwindSafe(|| part(&scale, &chosen.device)))
            .unwrap_or_else(|panic| Err(anyhow!("panic: {}", words_of(&*panic))))
            .unwrap_or_else(|error| {
                let note = errors::sentence(&error);
                vec![Row { what: "error".into(), passed: Some(false), note, ..Row::default() }]
            });
        for row in rows {
            say!("| {word} | {row}");
            n_checks += usize::from(row.passed.is_some());
            n_failed += usize::from(row.passed == Some(false));
        }
    }
    match n_checks {
        n if n_failed > 0 => {
            bail!("{n_failed} of {n} checks on {} failed; see the table", chosen.name)
        }
        0 => say!("\nno checks were run: each part was skipped or only measured"),
        n => say!("\nall {n} checks passed"),
    }
    Ok(())
}

fn words_of(panic: &(dyn std::any::Any + Send)) -> String {
    let words = panic.downcast_ref::<String>().cloned();
    words.or_else(|| panic.downcast_ref::<&str>().map(|s| (*s).into())).unwrap_or_default()
}

#[cfg(feature = "cuda")]
use launches::measure as launches;

#[cfg(not(feature = "cuda"))]
fn launches(_scale: &Scale, _device: &Device) -> Result<Vec<Row>> {
    Ok(Row::skipped("this program was built without the feature `cuda`"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_difference_beyond_its_tolerance_fails() {
        let passed = |difference| Row::compared("logits".into(), difference, 1.0).passed;
        assert_eq!([0.5, 1.0, 2.0, f64::NAN].map(passed), [true, true, false, false].map(Some));
        let row = Row::compared("logits".into(), 2.0, 1.0).to_string();
        assert_eq!(row, "logits | 2.00  | FAILED | at most 1e0 |");
        let row = Row::measured("step".into(), "ms", &[3.0, 1.0, 2.0], "batch 1".into());
        assert_eq!(row.to_string(), "step | 2.00 (1.00–3.00) ms |  | batch 1 |");
    }
}
