//! `overtone-lab`: the papers' experiments, each one command.

#[macro_use]
extern crate overtone_console;

mod command;

use std::process::ExitCode;

use clap::{Args, Parser, Subcommand};
use overtone_console::{errors, flags, progress};
use overtone_lab::memory::Counting;

/// Counted, because the memory of an update is part of what is found.
#[global_allocator]
static ALLOCATOR: Counting = Counting;

/// The papers' other experiments, each one seeded command
#[derive(Parser)]
#[command(version, about, max_term_width = 100)]
struct Cli {
    #[command(subcommand)]
    what: Lab,
}

#[derive(Args)]
struct Words {
    /// Options of the experiment
    #[arg(value_name = "KEY=VALUE")]
    words: Vec<String>,
}

#[derive(Subcommand)]
enum Lab {
    /// Linear, mixture and Fourier heads on known distributions
    #[command(after_help = command::density::OPTIONS.help())]
    Density(Words),
    /// Fourier densities and Gaussian mixtures trained by likelihood, without bins
    #[command(after_help = command::likelihood::OPTIONS.help())]
    Likelihood(Words),
    /// The smoothness metric on noise and square waves, or on the distributions in a file
    #[command(after_help = command::smoothness::OPTIONS.help())]
    Smoothness {
        /// A .safetensors or .csv file with one distribution a row; or options of the experiment
        #[arg(value_name = "FILE | KEY=VALUE")]
        words: Vec<String>,
    },
    /// Forecasts of time series with linear and Fourier heads, uniform and mixed-precision bins
    #[command(after_help = command::forecast::OPTIONS.help())]
    Forecast(Words),
    /// Time series in classes with softmax and Fourier attention
    #[command(after_help = command::series::OPTIONS.help())]
    Series(Words),
    /// Handwritten digits with softmax and Fourier attention
    #[command(after_help = command::images::OPTIONS.help())]
    Images(Words),
    /// A character model of Shakespeare with softmax and Fourier attention
    #[command(after_help = command::language::OPTIONS.help())]
    Language(Words),
    /// Numbers from German to English with softmax and Fourier attention
    #[command(after_help = command::translation::OPTIONS.help())]
    Translation(Words),
    /// The tempo of a metronome with linear and Fourier heads
    #[command(after_help = command::tempo::OPTIONS.help())]
    Tempo(Words),
    /// FourierFormer's estimators: its synthetic examples, and rates of the error
    #[command(after_help = command::fourier_integral::OPTIONS.help())]
    FourierIntegral(Words),
    /// The Fourier head's theorem: fit and smoothness against the number of frequencies
    #[command(after_help = command::scaling_law::OPTIONS.help())]
    ScalingLaw(Words),
}

fn main() -> ExitCode {
    let words: Vec<_> = std::env::args_os().collect();
    ExitCode::from(match flags::parse::<Cli>(&words, |words| words.len() > 1) {
        Ok(cli) => errors::exit_code(run(cli.what).map(|()| 0), 1),
        Err(code) => code,
    })
}

fn run(what: Lab) -> anyhow::Result<()> {
    match what {
        Lab::Density(Words { words }) => command::density::run(&words),
        Lab::Likelihood(Words { words }) => command::likelihood::run(&words),
        Lab::Smoothness { words } => command::smoothness::run(&words),
        Lab::Forecast(Words { words }) => command::forecast::run(&words),
        Lab::Series(Words { words }) => command::series::run(&words),
        Lab::Images(Words { words }) => command::images::run(&words),
        Lab::Language(Words { words }) => command::language::run(&words),
        Lab::Translation(Words { words }) => command::translation::run(&words),
        Lab::Tempo(Words { words }) => command::tempo::run(&words),
        Lab::FourierIntegral(Words { words }) => command::fourier_integral::run(&words),
        Lab::ScalingLaw(Words { words }) => command::scaling_law::run(&words),
    }
}
