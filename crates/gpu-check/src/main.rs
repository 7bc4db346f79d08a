//! `overtone-gpu-check`: compares the results of a GPU with the CPU, and measures its speed.
//!
//! The program runs without cargo. It needs the project's `scripts/` and `crates/testkit/golden/`;
//! some parts need the data and a Python. Parts whose requirements are missing are skipped with a
//! sentence.

#[macro_use]
extern crate overtone_console;

mod agreement;
mod bits;
mod golden;
#[cfg(feature = "cuda")]
mod launches;
mod paper;
mod peers;
mod playing;
mod random_run;
mod report;
mod speed;
mod synthetic;

use std::{path::PathBuf, process::ExitCode};

use anyhow::{Result, bail};
use clap::Parser;
use overtone_console::{errors, flags};
use overtone_model::device;
use overtone_settings::options;

use report::{Report, Row};

overtone_model::options! {
    /// Options of the program.
    pub struct CheckOptions {
        /// Device to check: auto (the first GPU, or a dry run on the CPU without a GPU), cuda,
        /// cuda:N or cpu.
        pub device: String = "auto".into(),
        /// full: the paper's model and batches. tiny: a small model for a functional test; ignore
        /// its times. auto: full on a GPU, tiny on the CPU.
        pub size: String = "auto".into(),
        /// Directory of the reference's recorded numbers.
        pub golden: PathBuf = "crates/testkit/golden".into(),
        /// Python with torch, for the same step in PyTorch; empty: .venv-peers/bin/python,
        /// otherwise python3.
        pub python: String = String::new(),
        /// Directory of the PyTorch programs.
        pub peers: PathBuf = "scripts/peers".into(),
        /// Number of training steps with dropout for comparing device and CPU; 0: depends on the
        /// size.
        pub steps: usize = 0,
        /// Comma-separated parts to run: golden, steps, bits, launches, time, pytorch, paper, playing;
        /// all: all parts.
        pub parts: String = "all".into(),
        /// Game whose data is used to time the paper's profile.
        pub game: String = "seaquest".into(),
        /// Timed updates of the paper's profile, at least 3: the first two readings are warm-up; 0:
        /// depends on the size.
        pub updates: u64 = 0,
        /// Seconds of timed rollouts; 0: none.
        pub playing: u64 = 20,
        /// Output file for the numbers, as JSON.
        pub out: PathBuf = "gpu-check.json".into(),
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
    /// Updates of the paper's profile, and contexts in each.
    paper: (u64, usize),
}

impl Scale {
    fn full() -> Self {
        Self {
            is_full: true,
            compared_steps: 100,
            batch: 128,
            layers: 6,
            rounds: 7,
            round_seconds: 0.5,
            paper: (300, 128),
        }
    }

    fn tiny() -> Self {
        Self {
            is_full: false,
            compared_steps: 12,
            batch: 1,
            layers: 1,
            rounds: 3,
            round_seconds: 0.0,
            paper: (6, 2),
        }
    }
}

/// Check that a GPU computes what the CPU computes, and how fast
#[derive(Parser)]
#[command(version, about, max_term_width = 100, after_help = options::help::<CheckOptions>(EXAMPLE))]
struct Cli {
    /// Options, `key=value`
    #[arg(value_name = "KEY=VALUE")]
    options: Vec<String>,
}

/// The words of `parts=`, in execution order.
const PARTS: [&str; 8] =
    ["golden", "steps", "bits", "launches", "time", "pytorch", "paper", "playing"];

/// The selected parts.
struct Parts(Vec<String>);

impl Parts {
    fn of(words: &str) -> Result<Self> {
        let words: Vec<String> = match words {
            "all" => PARTS.map(String::from).into(),
            words => words.split(',').map(|word| word.trim().to_owned()).collect(),
        };
        if let Some(other) = words.iter().find(|word| !PARTS.contains(&word.as_str())) {
            bail!("parts={other}: expected all, {}", PARTS.join(", "));
        }
        Ok(Self(words))
    }

    /// Runs a part if it is selected.
    fn run(
        &self,
        report: &mut Report,
        word: &str,
        name: &'static str,
        work: impl FnOnce() -> Result<Vec<Row>>,
    ) -> Result<()> {
        if self.0.iter().any(|part| part == word) { report.part(name, work) } else { Ok(()) }
    }
}

const EXAMPLE: &str = "Example: overtone-gpu-check device=cuda parts=golden,time";

fn main() -> ExitCode {
    let words: Vec<_> = std::env::args_os().collect();
    ExitCode::from(match flags::parse::<Cli>(&words, |_| true) {
        Ok(cli) => errors::exit_code(run(&cli.options).map(|()| 0), 1),
        Err(code) => code,
    })
}

/// Runs all selected parts and writes the report.
fn run(words: &[String]) -> Result<()> {
    let options: CheckOptions = options::read(words)?;
    let chosen = device::choose(&options.device)?;
    let mut scale = match (options.size.as_str(), chosen.is_gpu) {
        ("full", _) | ("auto", true) => Scale::full(),
        ("tiny", _) | ("auto", false) => Scale::tiny(),
        (other, _) => bail!("size={other}: expected auto, full or tiny"),
    };
    if let updates @ 1.. = options.updates {
        let warm_up = paper::WARM_UP as u64;
        if updates <= warm_up {
            let least = warm_up + 1;
            bail!(
                "updates={updates}: must be 0, or at least {least}: the first {warm_up} are warm-up"
            );
        }
        scale.paper.0 = updates;
    }
    if let steps @ 1.. = options.steps {
        scale.compared_steps = steps;
    }
    let parts = Parts::of(&options.parts)?;
    if !chosen.is_gpu {
        say!(
            "no GPU is used: this is a dry run on the CPU, which compares the fused operations with \
             the plain operations; its times are not representative of a GPU"
        );
    }
    let size = if scale.is_full { "full" } else { "tiny" };
    let mut report = Report::new(options.out, &chosen.name, size)?;
    let device = &chosen.device;
    parts.run(&mut report, "golden", "golden files", || golden::check(&options.golden, device))?;
    parts.run(&mut report, "steps", "training steps", || agreement::check(&scale, device))?;
    parts.run(&mut report, "bits", "repetition", || bits::check(&scale, device))?;
    parts.run(&mut report, "launches", "kernel launches", || launches(&scale, device))?;
    parts.run(&mut report, "time", "step time", || speed::measure(&scale, device))?;
    let peers = peers::Peers { python: options.python, folder: options.peers };
    parts.run(&mut report, "pytorch", "PyTorch", || peers.measure(&scale, chosen.is_gpu))?;
    let folder = std::env::temp_dir().join(format!("overtone-gpu-check-{}", std::process::id()));
    let mut trained = None;
    parts.run(&mut report, "paper", "paper profile", || {
        let (rows, run) = paper::train(&scale, &options.game, &chosen.name, &folder)?;
        trained = run;
        Ok(rows)
    })?;
    parts.run(&mut report, "playing", "playing", || {
        playing::measure(trained.as_ref(), device, options.playing)
    })?;
    // The directory does not exist if nothing was trained.
    let _ = std::fs::remove_dir_all(&folder);
    report.finish()
}

#[cfg(feature = "cuda")]
use launches::measure as launches;

#[cfg(not(feature = "cuda"))]
fn launches(_scale: &Scale, _device: &overtone_model::burn::tensor::Device) -> Result<Vec<Row>> {
    Ok(Row::skipped("this program was built without the feature `cuda`"))
}
