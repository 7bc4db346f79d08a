//! `overtone`: train offline, play, and report.

#[macro_use]
extern crate overtone_console;

mod command;
pub mod host;
mod interrupt;
mod processes;
mod runs;
mod settings;
pub mod suites;

use std::{
    ffi::OsString,
    sync::atomic::{AtomicBool, Ordering},
};

use clap::{Args, Parser, Subcommand};
use overtone_console::{errors, flags, keys, progress};

pub use command::{
    evaluate::{OwnChoice, play_of},
    prepare::Prepared,
};
pub use settings::{Profile, RunConfig};

/// Offline reinforcement learning: train an agent on recorded episodes, then play it
#[derive(Parser)]
#[command(version, about, max_term_width = 100)]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Train an agent on the dataset of a task, then play it
    #[command(after_help = train_help())]
    Train(OfTask),
    /// Continue an interrupted run
    #[command(after_help = keys::after_help(command::train::RESUME_OPTIONS, RESUME))]
    Resume(Options),
    /// Play a trained agent
    Evaluate {
        /// What to evaluate
        #[command(subcommand)]
        what: Evaluate,
    },
    /// Write one page about runs: scores with intervals, protocol, curves, actions, a video
    #[command(after_help = keys::after_help(&command::report::options(), REPORT))]
    Report {
        /// Runs, by folder or name (the newest by default), and options, `key=value`
        #[arg(value_name = "RUN | KEY=VALUE")]
        words: Vec<String>,
    },
    /// Record a video of one episode, next to the action probabilities
    #[command(after_help = keys::after_help(command::video::OPTIONS, VIDEO))]
    Video(Options),
    /// Record episodes of agents, or of random actions, as a dataset
    #[command(after_help = keys::after_help(command::record::OPTIONS, RECORD))]
    Record(Options),
    /// Train and play a grid of runs, here or on a Slurm cluster, and compare them
    Study {
        /// What to do
        #[command(subcommand)]
        what: Study,
    },
    /// Write an agent into a folder: as Hugging Face's transformers reads it, or every agent as
    /// safetensors
    #[command(after_help = keys::after_help(command::weights::EXPORT_OPTIONS, EXPORT))]
    Export {
        /// A run and the folder to write, or `run=RUN to=FOLDER`, and options, `key=value`
        #[arg(value_name = "RUN FOLDER | KEY=VALUE")]
        words: Vec<String>,
    },
    /// Make a run of an agent that was exported, here or by Hugging Face's transformers
    #[command(after_help = keys::after_help(command::weights::IMPORT_OPTIONS, IMPORT))]
    Import {
        /// The folder, or `from=FOLDER`, and options, `key=value`
        #[arg(value_name = "FOLDER | KEY=VALUE")]
        words: Vec<String>,
    },
    /// Fetch a published dataset into datasets/
    #[command(after_help = keys::after_help(command::download::OPTIONS, DOWNLOAD))]
    Download(OfTask),
    /// Inspect or check a dataset
    Data {
        /// What to do with it
        #[command(subcommand)]
        what: Data,
    },
}

#[derive(Args)]
struct Options {
    /// Options, `key=value`
    #[arg(value_name = "KEY=VALUE")]
    options: Vec<String>,
}

#[derive(Args)]
struct OfTask {
    /// Options, `key=value`; task=SUITE/NAME or its short form (game=…, env=…), or a dataset
    /// that says its task, must be given
    #[arg(value_name = "KEY=VALUE")]
    options: Vec<String>,
}

#[derive(Args)]
struct Started {
    /// A study, by name or folder (the newest by default), and options
    #[arg(value_name = "NAME | KEY=VALUE")]
    words: Vec<String>,
}

#[derive(Subcommand)]
enum Evaluate {
    /// Change one setting of the protocol at a time and play: the effect of each
    #[command(after_help = keys::after_help(command::evaluate::ABLATION_OPTIONS, ABLATION))]
    Ablation(Options),
    /// Play episodes in the real environment and report the scores
    #[command(after_help = keys::after_help(command::evaluate::OPTIONS, ROLLOUTS))]
    Rollouts(Options),
    /// Play in several acting modes (temperature, return quantile, top percent), and choose
    /// one in episodes that no score is made of
    #[command(after_help = keys::after_help(command::evaluate::CHOOSE_OPTIONS, CHOOSE))]
    Choose(Options),
}

#[derive(Subcommand)]
enum Study {
    /// Write a study to begin with, every key with its reason: FILE.toml
    Init {
        /// Where to write it
        file: std::path::PathBuf,
    },
    /// Start a study: what has run already is not run again
    #[command(after_help = keys::after_help(&command::study::run_options(), STUDY_RUN))]
    Run {
        /// A study (FILE.toml, or the name of one that was started), options and settings
        #[arg(value_name = "FILE.toml | NAME | KEY=VALUE")]
        words: Vec<String>,
    },
    /// Say where each cell stands
    Status {
        /// A study, by name or folder (the newest by default), and `runs=…`
        #[arg(value_name = "NAME | KEY=VALUE")]
        words: Vec<String>,
        /// Print JSON on standard output
        #[arg(long)]
        json: bool,
    },
    /// Do what is not finished of a study that was started
    #[command(after_help = keys::after_help(&command::study::resume_options(), STUDY_RESUME))]
    Resume(Started),
    /// Write the page that compares the cells
    #[command(after_help = keys::after_help(&command::study::report_options(), STUDY_REPORT))]
    Report(Started),
    /// Do one cell: what `run` starts
    #[command(hide = true)]
    Cell {
        /// The study's folder
        folder: std::path::PathBuf,
        /// The cell
        cell: String,
        /// End when standard input does
        #[arg(long)]
        until_input_ends: bool,
    },
}

#[derive(Subcommand)]
enum Data {
    /// Print what a dataset holds: transitions, episodes, returns, actions, anything unusual
    #[command(after_help = keys::after_help(command::data::OPTIONS, INSPECT))]
    Inspect {
        /// A folder of DQN-replay files (of a game, or of one run), a D4RL or Minari file (HDF5), or
        /// arrays of your own (.npz)
        path: std::path::PathBuf,
        /// Print JSON on standard output
        #[arg(long)]
        json: bool,
        /// Options, `key=value`
        #[arg(value_name = "KEY=VALUE")]
        options: Vec<String>,
    },
    /// Write a dataset as one file that trains, and that Python's `minari` opens
    #[command(after_help = CONVERT_HELP)]
    Convert {
        /// The dataset, in any format
        from: std::path::PathBuf,
        /// Where to write: a folder, a file (NAME.hdf5), or minari:NAME/DATASET-v0
        to: String,
        /// The format, where its files do not say it: ogbench; numbers for bytes that are no pictures
        #[arg(long, value_name = "NAME", default_value = "")]
        layout: String,
        /// The task, where the dataset does not say it: mujoco/hopper
        #[arg(long, value_name = "SUITE/NAME")]
        task: Option<String>,
    },
    /// Print what is wrong with a dataset: expected, found, what to do
    #[command(after_help = LINT_HELP)]
    Lint {
        /// A folder of DQN-replay files (of a game, or of one run), a D4RL or Minari file (HDF5), or
        /// arrays of your own (.npz)
        path: std::path::PathBuf,
        /// Print JSON on standard output
        #[arg(long)]
        json: bool,
        /// The description to compare it with; by default its own in datasets/
        #[arg(long, value_name = "FILE.toml")]
        card: Option<std::path::PathBuf>,
        /// The task, where the dataset does not say it: its spaces and bounds are compared
        #[arg(long, value_name = "SUITE/NAME")]
        task: Option<String>,
        /// The format, where its files do not say it: ogbench; numbers for bytes that are no pictures
        #[arg(long, value_name = "NAME", default_value = "")]
        layout: String,
        /// Read the frames of large recordings too, which takes minutes
        #[arg(long)]
        all_frames: bool,
    },
}

const LINT_HELP: &str = "\
Exit code: 0 without findings or with notes only; 1 for warnings (readable, but not as it should \
be); 2 for errors (not readable, or training would learn something that was not recorded), and \
when there is nothing to look at.
docs/data.md explains each code.

Example: overtone data lint datasets/starter/Seaquest";

const INSPECT: &str = "\
Example: overtone data inspect datasets/starter/mujoco/hopper_medium.hdf5";

const CONVERT_HELP: &str = "\
Examples: overtone data convert own.npz records/own --task gymnasium/CartPole-v1
          overtone data convert hopper_medium-v2.hdf5 minari:mine/hopper-v0 --task mujoco/hopper";

const RECORD: &str = "\
Examples: overtone record task=gymnasium/CartPole-v1 to=records/cartpole
          overtone record policy=RUN,random share=3,1 switch=50..200 to=records/mixed";

/// Whether the help lists every key: `--help-all`.
static ALL_KEYS: AtomicBool = AtomicBool::new(false);

fn train_help() -> String {
    let all = ALL_KEYS.load(Ordering::Relaxed);
    let before = match all {
        true => {
            "Options and their defaults. Defaults that depend on the task or the algorithm are at \
                 the end; the config.toml of a run has the values that it used:"
        }
        false => "The most used options and their defaults (--help-all lists every option):",
    };
    format!(
        "{before}\n{}\n\
         Examples: overtone train game=seaquest head=fourier head.frequencies=14 seed=231\n          \
         overtone train env=hopper dataset=medium attention=fourier seed=2",
        settings::help(all)
    )
}

const ROLLOUTS: &str = "Example: overtone evaluate rollouts episodes=100 target=p50,p90,p99";

const REPORT: &str = "Example: overtone report RUN-s123 RUN-s231 RUN-s312 name=seaquest";

const STUDY_REPORT: &str = "Example: overtone study report atari-heads out=pages level=0.9";

const STUDY_RUN: &str = "\
Every other key is a setting of all runs (overtone train --help), or several, a,b or 1..5, an \
axis of the grid. A comma inside a value is written as \\, (dataset='folder\\,1/own.npz').

Examples: overtone study run game=seaquest head=linear,fourier seed=1..5
          overtone study run studies/atari-heads.toml plan=true
          overtone study run studies/frequencies.toml engine=slurm partition=gpu time=04:00:00 gpus=1";

const STUDY_RESUME: &str = "\
A study goes on as it was started. For other settings or more seeds start it again: overtone study \
run NAME seed=1..8

Example: overtone study resume atari-heads jobs=2";

const RESUME: &str = "Example: overtone resume run=RUN device=cuda";

const VIDEO: &str = "Example: overtone video episode=best every=1";

const EXPORT: &str = "\
format=hf writes a Decision Transformer of vectors with the tanh head and softmax attention; \
others are refused with the reason.

Examples: overtone export runs/RUN format=safetensors agents/seaquest
          overtone export run=runs/RUN to=hopper-medium";

const IMPORT: &str = "\
Examples: overtone import agents/seaquest
          overtone import from=hopper-medium task=mujoco/hopper statistics=hopper.json";

const ABLATION: &str = "\
Example: overtone evaluate ablation episodes=100 only=sticky_probability,target_return";

const CHOOSE: &str = "Example: overtone evaluate choose temperatures=1,0.5 episodes=50";

const DOWNLOAD: &str = "\
The program prints a plan first: files, size, time, room on the disk. Run the same command again \
to continue an interrupted download. Training finds the files by itself.

Examples: overtone download game=seaquest files=10 plan=true
          overtone download env=hopper dataset=medium";

/// The program: reads `words`, its own name first, and does what they ask; gives the exit code.
pub fn main(words: &[OsString]) -> u8 {
    let words: Vec<OsString> = words.iter().map(help_all).collect();
    // Of the commands about data, only `inspect` has keys.
    let takes_keys = |words: &[String]| {
        words.len() > 1 && (words[1] != "data" || words.get(2).is_some_and(|w| w == "inspect"))
    };
    let command = match flags::parse::<Cli>(&words, takes_keys) {
        Ok(cli) => cli.command,
        Err(code) => return code,
    };
    // A closed standard output is no reason to stop either.
    let _ = overtone_console::host::own_stdout();
    // Where the exit code says how bad the data is, nothing to look at is the worst.
    let is_lint = matches!(command, Command::Data { what: Data::Lint { .. } });
    let ended = run(command);
    let failed = match &ended {
        Err(error) if interrupt::is_stop(error) => interrupt::EXIT_CODE,
        _ if is_lint => 2,
        _ => 1,
    };
    errors::exit_code(ended, failed)
}

/// `--help` in place of `--help-all`, which it notes.
fn help_all(word: &OsString) -> OsString {
    if word == "--help-all" {
        ALL_KEYS.store(true, Ordering::Relaxed);
        return "--help".into();
    }
    word.clone()
}

/// Does what was asked; gives the exit code.
fn run(command: Command) -> anyhow::Result<u8> {
    if !matches!(command, Command::Train(_) | Command::Resume(_)) {
        processes::refuse_copies()?;
    }
    match command {
        Command::Train(OfTask { options }) => return command::train::train(&options),
        Command::Resume(Options { options }) => return command::train::resume(&options),
        Command::Evaluate { what: Evaluate::Rollouts(Options { options }) } => {
            command::evaluate::rollouts(&options)
        }
        Command::Report { words } => command::report::run(&words),
        Command::Study { what } => return study(what),
        Command::Video(Options { options }) => command::video::run(&options),
        Command::Evaluate { what: Evaluate::Ablation(Options { options }) } => {
            command::evaluate::ablation(&options)
        }
        Command::Evaluate { what: Evaluate::Choose(Options { options }) } => {
            command::evaluate::choose(&options)
        }
        Command::Record(Options { options }) => command::record::run(&options),
        Command::Data { what: Data::Convert { from, to, layout, task } } => {
            command::record::convert(&from, &to, &layout, task.as_deref())
        }
        Command::Export { words } => command::weights::export(&words),
        Command::Import { words } => command::weights::import(&words),
        Command::Download(OfTask { options }) => command::download::run(&options),
        Command::Data { what: Data::Inspect { path, json, options } } => {
            command::data::inspect(&path, json, &options)
        }
        Command::Data { what: Data::Lint { path, json, card, task, layout, all_frames } } => {
            let (card, task) = (card.as_deref(), task.as_deref());
            return command::data::lint(&path, &layout, json, card, task, all_frames);
        }
    }?;
    Ok(0)
}

/// Does what was asked of a study; gives the exit code.
fn study(what: Study) -> anyhow::Result<u8> {
    use command::study;
    match what {
        Study::Init { file } => study::init(&file).map(|()| 0),
        Study::Run { words } => study::run(&words),
        Study::Resume(Started { words }) => study::resume(&words),
        Study::Status { words, json } => study::status(&words, json).map(|()| 0),
        Study::Report(Started { words }) => study::report(&words).map(|()| 0),
        Study::Cell { folder, cell, until_input_ends } => {
            study::cell(&folder, &cell, until_input_ends)
        }
    }
}
