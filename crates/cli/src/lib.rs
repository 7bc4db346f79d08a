//! `overtone`: train offline, evaluate, and report.

#[macro_use]
extern crate overtone_console;

mod command;
pub mod host;
mod interrupt;
mod processes;

use std::{
    ffi::OsString,
    sync::atomic::{AtomicBool, Ordering},
};

use clap::{Args, Parser, Subcommand};
use overtone_console::{errors, flags};
use overtone_settings::options;

pub use command::{
    data::warnings,
    evaluate::{OwnChoice, play_of},
    find::find,
    prepare::{Prepared, prepare},
};

/// Offline reinforcement learning: train an agent on recorded episodes, then evaluate it
#[derive(Parser)]
#[command(version, about, max_term_width = 100)]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Train an agent on the dataset of a task, then evaluate it
    #[command(after_help = train_help())]
    Train(TaskOptions),
    /// Resume an interrupted run
    #[command(after_help = options::help::<command::train::ResumeOptions>(RESUME))]
    Resume(Options),
    /// Evaluate a trained agent
    Evaluate {
        /// The evaluation
        #[command(subcommand)]
        what: Evaluate,
    },
    /// Write a report about runs: scores with intervals, protocol, curves, actions, a video
    #[command(after_help = options::help::<command::report::ReportOptions>(REPORT))]
    Report {
        /// Runs, by directory or name (default: the newest), and options, `key=value`
        #[arg(value_name = "RUN | KEY=VALUE")]
        words: Vec<String>,
    },
    /// Record a video of one episode with its action probabilities
    #[command(after_help = options::help::<command::video::VideoOptions>(VIDEO))]
    Video(Options),
    /// Estimate how good an agent is from a recording, where it cannot be played
    #[command(after_help = options::help::<command::judge::JudgeOptions>(JUDGE))]
    Judge(Options),
    /// Record episodes of agents or of random actions as a dataset
    #[command(after_help = options::help::<command::record::RecordOptions>(RECORD))]
    Record(Options),
    /// Train, evaluate and compare a grid of runs, locally or on a Slurm cluster
    Study {
        /// The subcommand
        #[command(subcommand)]
        what: Study,
    },
    /// Export an agent to a directory: for onnxruntime, for Hugging Face's transformers, or as safetensors
    #[command(after_help = options::help::<command::weights::ExportOptions>(EXPORT))]
    Export {
        /// A run and the directory to write, or `run=RUN to=DIRECTORY`, and options, `key=value`
        #[arg(value_name = "RUN DIRECTORY | KEY=VALUE")]
        words: Vec<String>,
    },
    /// Import an exported agent as a run, from Overtone or Hugging Face's transformers
    #[command(after_help = options::help::<command::weights::ImportOptions>(IMPORT))]
    Import {
        /// The directory, or `from=DIRECTORY`, and options, `key=value`
        #[arg(value_name = "DIRECTORY | KEY=VALUE")]
        words: Vec<String>,
    },
    /// Download a published dataset into datasets/
    #[command(after_help = options::help::<command::download::DownloadWords>(DOWNLOAD))]
    Download(TaskOptions),
    /// Inspect, check or convert a dataset
    Data {
        /// The subcommand
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
struct TaskOptions {
    /// Options, `key=value`. Set task=SUITE/NAME, its short form (game=…, env=…), or a dataset
    /// that names its task
    #[arg(value_name = "KEY=VALUE")]
    options: Vec<String>,
}

#[derive(Args)]
struct StartedStudy {
    /// A study, by name or directory (default: the newest), and options
    #[arg(value_name = "NAME | KEY=VALUE")]
    words: Vec<String>,
}

#[derive(Subcommand)]
enum Evaluate {
    /// Run episodes in the real environment and report the scores
    #[command(after_help = options::help::<command::evaluate::RolloutsOptions>(ROLLOUTS))]
    Rollouts(Options),
    /// Choose an acting mode (temperature, return quantile, top percent), or the best of several
    /// runs with its mode, on episodes that no score uses
    #[command(after_help = options::help::<command::evaluate::ChooseOptions>(CHOOSE))]
    Choose(Options),
}

#[derive(Subcommand)]
enum Study {
    /// Write an example study, FILE.toml, with a reason for every key
    Init {
        /// The file to write
        file: std::path::PathBuf,
    },
    /// Start a study; finished runs are not repeated
    #[command(after_help = command::study::run_help(STUDY_RUN))]
    Run {
        /// A study (FILE.toml, or the name of a started study), options and settings
        #[arg(value_name = "FILE.toml | NAME | KEY=VALUE")]
        words: Vec<String>,
    },
    /// Show the status of each cell
    Status {
        /// A study, by name or directory (default: the newest), and `runs=…`
        #[arg(value_name = "NAME | KEY=VALUE")]
        words: Vec<String>,
        /// Print JSON on standard output
        #[arg(long)]
        json: bool,
    },
    /// Resume an interrupted study
    #[command(after_help = command::study::resume_help(STUDY_RESUME))]
    Resume(StartedStudy),
    /// Write the report that compares the cells
    #[command(after_help = command::study::report_help(STUDY_REPORT))]
    Report(StartedStudy),
    /// Run one cell, as `run` starts it
    #[command(hide = true)]
    Cell {
        /// The study's directory
        folder: std::path::PathBuf,
        /// The cell
        cell: String,
        /// Stop when standard input closes
        #[arg(long)]
        until_input_ends: bool,
    },
}

#[derive(Subcommand)]
enum Data {
    /// Summarize a dataset: transitions, episodes, returns, actions, anything unusual
    #[command(after_help = options::help::<command::data::InspectOptions>(INSPECT))]
    Inspect {
        /// A directory of DQN-replay files (of a game, or of one run), a D4RL or Minari file
        /// (HDF5), or your own arrays (.npz)
        path: std::path::PathBuf,
        /// Print JSON on standard output
        #[arg(long)]
        json: bool,
        /// Options, `key=value`
        #[arg(value_name = "KEY=VALUE")]
        options: Vec<String>,
    },
    /// Convert a dataset to one training file, which Python's `minari` opens too
    #[command(after_help = CONVERT_HELP)]
    Convert {
        /// The dataset, in any format
        from: std::path::PathBuf,
        /// The output: a directory, a file (NAME.hdf5), or minari:NAME/DATASET-v0
        to: String,
        /// The format, if the files do not contain it: ogbench; or numbers, for bytes that are not
        /// images
        #[arg(long, value_name = "NAME", default_value = "")]
        layout: String,
        /// The task, if the dataset does not name it, such as mujoco/hopper
        #[arg(long, value_name = "SUITE/NAME")]
        task: Option<String>,
    },
    /// Check a dataset; print what was expected, what was found and what to do
    #[command(after_help = LINT_HELP)]
    Lint {
        /// A directory of DQN-replay files (of a game, or of one run), a D4RL or Minari file
        /// (HDF5), or your own arrays (.npz)
        path: std::path::PathBuf,
        /// Print JSON on standard output
        #[arg(long)]
        json: bool,
        /// The dataset card to compare with (default: its card in datasets/)
        #[arg(long, value_name = "FILE.toml")]
        card: Option<std::path::PathBuf>,
        /// The task, if the dataset does not name it; its spaces and bounds are compared
        #[arg(long, value_name = "SUITE/NAME")]
        task: Option<String>,
        /// The format, if the files do not contain it: ogbench; or numbers, for bytes that are not
        /// images
        #[arg(long, value_name = "NAME", default_value = "")]
        layout: String,
        /// Read the frames of large datasets too, which takes minutes
        #[arg(long)]
        all_frames: bool,
    },
}

const LINT_HELP: &str = "\
Exit code: 0 without findings or with notes only; 1 for warnings (readable, but not as expected); \
2 for errors (not readable, or training would learn data that was not recorded), and when there is \
nothing to check.
docs/findings.md explains each code.

Example: overtone data lint datasets/starter/Seaquest";

const INSPECT: &str = "Example: overtone data inspect datasets/starter/mujoco/hopper_medium.hdf5";

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
            "Options and their defaults. The reference is the papers' published code. Defaults \
             that depend on the task or the algorithm are at the end; the config.toml of a run has \
             the values that it used:"
        }
        false => {
            "The most used options and their defaults (--help-all lists every option). The \
             reference is the papers' published code:"
        }
    };
    format!(
        "{before}\n{}\n\
         Examples: overtone train game=seaquest head=fourier head.frequencies=14 seed=231\n          \
         overtone train env=hopper dataset=medium attention=fourier seed=2",
        overtone_settings::help(all)
    )
}

const ROLLOUTS: &str = "\
Examples: overtone evaluate rollouts episodes=100 target=p50,p90,p99
          overtone evaluate rollouts protocol=matched,sticky_probability,resize,released";

const REPORT: &str = "Example: overtone report RUN-s123 RUN-s231 RUN-s312 name=seaquest";

const STUDY_REPORT: &str = "Example: overtone study report atari-heads out=pages level=0.9";

const STUDY_RUN: &str = "\
Every other key is a setting of all runs (overtone train --help-all). Several values, a,b or 1..5, \
are an axis of the grid. Write a comma inside a value as \\, (dataset='folder\\,1/own.npz').

Examples: overtone study run game=seaquest head=linear,fourier seed=1..5
          overtone study run studies/atari-heads.toml plan=true
          overtone study run studies/frequencies.toml engine=slurm partition=gpu time=04:00:00 gpus=1";

const STUDY_RESUME: &str = "\
A study resumes with its settings. To change them, or to add seeds, start it again: overtone study \
run NAME seed=1..8

Example: overtone study resume atari-heads jobs=2";

const RESUME: &str = "Example: overtone resume run=RUN device=cuda";

const VIDEO: &str = "Example: overtone video episode=best every=1";

const EXPORT: &str = "\
format=hf supports Decision Transformers on vectors with the tanh head and softmax attention. For \
other agents, use format=safetensors.

Examples: overtone export runs/RUN format=safetensors agents/seaquest
          overtone export run=runs/RUN to=hopper-medium";

const IMPORT: &str = "\
Examples: overtone import agents/seaquest
          overtone import from=hopper-medium task=mujoco/hopper statistics=hopper.json";

const CHOOSE: &str = "\
Examples: overtone evaluate choose temperatures=1,0.5 budget=50
          overtone evaluate choose run=runs/A,runs/B budget=35";

const JUDGE: &str = "\
An estimate is not a score. Long episodes mostly get the answer `cannot tell`, and docs/results/judge.md \
shows why. Exit code: 0; 1 with strict=true if the recording cannot tell; 2 for errors.

Examples: overtone judge run=RUN
          overtone judge run=A,B dataset=later.npz strict=true";

const DOWNLOAD: &str = "\
The program prints a plan first: files, size, time, free disk space. Run the same command again to \
resume an interrupted download. Training finds the files by itself.

Examples: overtone download game=seaquest files=10 plan=true
          overtone download env=hopper dataset=medium";

/// Runs the command line `words`, whose first word is the program's name; returns the exit code.
pub fn main(words: &[OsString]) -> u8 {
    let words: Vec<OsString> = words.iter().map(help_all).collect();
    // Among the commands about data, only `inspect` has keys.
    let takes_keys = |words: &[String]| {
        words.len() > 1 && (words[1] != "data" || words.get(2).is_some_and(|w| w == "inspect"))
    };
    let command = match flags::parse::<Cli>(&words, takes_keys) {
        Ok(cli) => cli.command,
        Err(code) => return code,
    };
    // A closed standard output does not stop the command either.
    let _ = overtone_console::host::own_stdout();
    // `lint` reports the severity as its exit code, `judge` an answer; anything else is an error.
    let is_lint = matches!(command, Command::Data { what: Data::Lint { .. } });
    let is_judge = matches!(command, Command::Judge(_));
    let ended = run(command);
    let failed = match &ended {
        Err(error) if interrupt::is_stop(error) => interrupt::EXIT_CODE,
        _ if is_lint || is_judge => 2,
        _ => 1,
    };
    errors::exit_code(ended, failed)
}

/// Replaces `--help-all` by `--help` and remembers it.
fn help_all(word: &OsString) -> OsString {
    if word == "--help-all" {
        ALL_KEYS.store(true, Ordering::Relaxed);
        return "--help".into();
    }
    word.clone()
}

/// Runs a command; returns the exit code.
fn run(command: Command) -> anyhow::Result<u8> {
    if !matches!(command, Command::Train(_) | Command::Resume(_)) {
        processes::refuse_copies()?;
    }
    match command {
        Command::Train(TaskOptions { options }) if command::best::is_best(&options) => {
            return command::best::train(&options);
        }
        Command::Train(TaskOptions { options }) => return command::train::train(&options),
        Command::Resume(Options { options }) => return command::train::resume(&options),
        Command::Evaluate { what: Evaluate::Rollouts(Options { options }) } => {
            command::evaluate::rollouts(&options)
        }
        Command::Report { words } => command::report::run(&words),
        Command::Study { what } => return study(what),
        Command::Video(Options { options }) => command::video::run(&options),
        Command::Evaluate { what: Evaluate::Choose(Options { options }) } => {
            command::evaluate::choose(&options)
        }
        Command::Judge(Options { options }) => return command::judge::run(&options),
        Command::Record(Options { options }) => command::record::run(&options),
        Command::Data { what: Data::Convert { from, to, layout, task } } => {
            command::record::convert(&from, &to, &layout, task.as_deref())
        }
        Command::Export { words } => command::weights::export(&words),
        Command::Import { words } => command::weights::import(&words),
        Command::Download(TaskOptions { options }) => command::download::run(&options),
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

/// Runs a command of `study`; returns the exit code.
fn study(what: Study) -> anyhow::Result<u8> {
    use command::study;
    match what {
        Study::Init { file } => study::init(&file).map(|()| 0),
        Study::Run { words } => study::run(&words),
        Study::Resume(StartedStudy { words }) => study::resume(&words),
        Study::Status { words, json } => study::status(&words, json).map(|()| 0),
        Study::Report(StartedStudy { words }) => study::report(&words).map(|()| 0),
        Study::Cell { folder, cell, until_input_ends } => {
            study::cell(&folder, &cell, until_input_ends)
        }
    }
}
