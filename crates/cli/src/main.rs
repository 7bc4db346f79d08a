//! `overtone`: train offline, play, and report.

/// `println!` that does not mind when nobody reads on (`… | head`): the work goes on.
macro_rules! say {
    ($($words:tt)*) => {{
        use std::io::Write as _;
        let _ = writeln!(std::io::stdout(), $($words)*);
    }};
}

mod command;
mod interrupt;
mod keys;
mod progress;
mod settings;

use std::{io, process::ExitCode};

use clap::{Parser, Subcommand};
use settings::{AtariSettings, ContinuousSettings, Settings};

/// Offline reinforcement learning: logged experience in, an agent that plays out.
#[derive(Parser)]
#[command(version, about, max_term_width = 100)]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Train an agent on a game's or a robot's log, then evaluate it
    #[command(after_help = train_help())]
    Train {
        /// Options, `key=value`; game=… or env=… must be given
        #[arg(value_name = "KEY=VALUE")]
        options: Vec<String>,
    },
    /// Go on with an interrupted run
    Resume {
        /// `run=…`: a run's folder or name; the newest one by default
        #[arg(value_name = "KEY=VALUE")]
        options: Vec<String>,
    },
    /// Play a trained agent
    Evaluate {
        /// What to evaluate
        #[command(subcommand)]
        what: Evaluate,
    },
    /// Write one page about runs: scores with intervals, protocol, curves, actions, a video
    #[command(after_help = report_help())]
    Report {
        /// Runs, by folder or name (the newest by default), and options, `key=value`
        #[arg(value_name = "RUN | KEY=VALUE")]
        words: Vec<String>,
    },
    /// Film one episode of an evaluation, with what the agent draws from beside it
    #[command(after_help = video_help())]
    Video {
        /// Options, `key=value`
        #[arg(value_name = "KEY=VALUE")]
        options: Vec<String>,
    },
    /// Check that a GPU computes what the CPU computes, and how fast
    #[command(after_help = gpu_check_help())]
    GpuCheck {
        /// Options, `key=value`
        #[arg(value_name = "KEY=VALUE")]
        options: Vec<String>,
    },
    /// Fetch a published dataset into datasets/
    #[command(after_help = download_help())]
    Download {
        /// Options, `key=value`; game=… or env=… must be given
        #[arg(value_name = "KEY=VALUE")]
        options: Vec<String>,
    },
    /// Look at recorded data
    Data {
        /// What to do with it
        #[command(subcommand)]
        what: Data,
    },
    /// Repeat the papers' synthetic experiments
    Lab {
        /// Which one
        #[command(subcommand)]
        what: Lab,
    },
}

#[derive(Subcommand)]
enum Evaluate {
    /// Play as trained and with one setting of the protocol changed at a time: what each is worth
    #[command(after_help = ablation_help())]
    Ablation {
        /// Options, `key=value`
        #[arg(value_name = "KEY=VALUE")]
        options: Vec<String>,
    },
    /// Play episodes in the real environment and report the scores
    #[command(after_help = evaluate_help())]
    Rollouts {
        /// Options, `key=value`
        #[arg(value_name = "KEY=VALUE")]
        options: Vec<String>,
    },
}

#[derive(Subcommand)]
enum Data {
    /// Print what a log holds: transitions, episodes, returns, actions, anything odd
    Inspect {
        /// A game's or a run's folder of DQN-replay files, or a D4RL or Minari file (HDF5)
        path: std::path::PathBuf,
        /// Print JSON on standard output
        #[arg(long)]
        json: bool,
    },
    /// Say what is wrong with a recording: what was expected, what was found, what to do
    #[command(after_help = LINT_HELP)]
    Lint {
        /// A game's or a run's folder of DQN-replay files, or a D4RL or Minari file (HDF5)
        path: std::path::PathBuf,
        /// Print JSON on standard output
        #[arg(long)]
        json: bool,
        /// The description to compare it with; by default the one in datasets/ that it is of
        #[arg(long, value_name = "FILE.toml")]
        card: Option<std::path::PathBuf>,
        /// Read the frames of large recordings too, which takes minutes
        #[arg(long)]
        all_frames: bool,
    },
}

const LINT_HELP: &str = "\
Exit code: 0 when nothing or only notes were found, 1 for warnings (it can be read, and is not \
as it should be), 2 for errors (it cannot be read, or training would learn something else than \
what was recorded), and when there is nothing to look at.
docs/data.md says what each code means.

Example: overtone data lint datasets/starter/Seaquest";

#[derive(Subcommand)]
enum Lab {
    /// Linear, mixture and Fourier heads on distributions that are known
    #[command(after_help = command::lab::density::OPTIONS.help())]
    Density {
        /// Options of the experiment
        #[arg(value_name = "KEY=VALUE")]
        words: Vec<String>,
    },
    /// Fourier densities and mixtures learned by their likelihood, without bins
    #[command(after_help = command::lab::likelihood::OPTIONS.help())]
    Likelihood {
        /// Options of the experiment
        #[arg(value_name = "KEY=VALUE")]
        words: Vec<String>,
    },
    /// The smoothness metric: of noise and square waves, or of the distributions in a file
    #[command(after_help = command::lab::smoothness::OPTIONS.help())]
    Smoothness {
        /// A .safetensors or .csv file of distributions (a row each), to measure those; or
        /// options of the experiment
        #[arg(value_name = "FILE | KEY=VALUE")]
        words: Vec<String>,
    },
    /// Forecasts of time series with linear and Fourier heads, uniform and mixed-precision bins
    #[command(after_help = command::lab::forecast::OPTIONS.help())]
    Forecast {
        /// Options, `key=value`
        #[arg(value_name = "KEY=VALUE")]
        options: Vec<String>,
    },
    /// FourierFormer's estimators: its synthetic examples, and rates of the error
    #[command(after_help = command::lab::fourier_integral::OPTIONS.help())]
    FourierIntegral {
        /// Options of the experiment
        #[arg(value_name = "KEY=VALUE")]
        words: Vec<String>,
    },
    /// The Fourier head's theorem: fit and smoothness against the number of frequencies
    #[command(after_help = command::lab::scaling_law::OPTIONS.help())]
    ScalingLaw {
        /// Options of the experiment
        #[arg(value_name = "KEY=VALUE")]
        words: Vec<String>,
    },
}

fn train_help() -> String {
    format!(
        "Games (game=…): options, their defaults (quick profile) and why:\n{}\n\
         Example: overtone train game=seaquest head=fourier head.frequencies=14 seed=231\n\n\
         Robots (env=…): options, their defaults (quick profile) and why:\n{}\n\
         Example: overtone train env=hopper dataset=medium attention=fourier seed=2",
        keys::help(AtariSettings::KEYS),
        keys::help(ContinuousSettings::KEYS)
    )
}

fn evaluate_help() -> String {
    format!(
        "Options, their defaults and why:\n{}\n\
         Example: overtone evaluate rollouts episodes=100 target=p50,p90,p99",
        keys::help(command::evaluate::OPTIONS)
    )
}

fn report_help() -> String {
    format!(
        "Options, their defaults and why:\n{}\n\
         Example: overtone report RUN-s123 RUN-s231 RUN-s312 out=runs/reports",
        keys::help(command::report::OPTIONS)
    )
}

fn video_help() -> String {
    format!(
        "Options, their defaults and why:\n{}\n\
         Example: overtone video episode=best every=1",
        keys::help(command::video::OPTIONS)
    )
}

fn ablation_help() -> String {
    format!(
        "Options, their defaults and why:\n{}\n\
         Example: overtone evaluate ablation episodes=100 only=sticky_probability,target_return",
        keys::help(command::evaluate::ABLATION_OPTIONS)
    )
}

fn gpu_check_help() -> String {
    format!(
        "Options, their defaults and why:\n{}\n\
         Example: overtone gpu-check device=cuda",
        keys::help(command::gpu_check::OPTIONS)
    )
}

fn download_help() -> String {
    format!(
        "Options, their defaults and why:\n{}\n\
         The plan is printed first: files, size, time, room on the disk. What was interrupted \
         goes on where it stopped when the same command is given again. Training finds the files \
         by itself.\n\n\
         Examples: overtone download game=seaquest files=10 plan=true\n          \
         overtone download env=hopper dataset=medium",
        keys::help(command::download::OPTIONS)
    )
}

/// `seed=3` for `--seed 3`, where that is what the words were refused for. (What looks at data
/// has flags and no keys.)
fn as_key(error: &clap::Error, words: &[String]) -> Option<String> {
    use clap::error::{ContextKind, ContextValue, ErrorKind};
    let Some(ContextValue::String(flag)) = error.get(ContextKind::InvalidArg) else { return None };
    let key = flag.strip_prefix("--").filter(|_| error.kind() == ErrorKind::UnknownArgument)?;
    let place = words.iter().position(|word| word.split('=').next() == Some(flag))?;
    if place < 2 || words[1] == "data" {
        return None;
    }
    let value = match words[place].split_once('=') {
        Some((_, value)) => value,
        None => words.get(place + 1).map_or("…", String::as_str),
    };
    Some(format!("{}={value}", key.replace('-', "_")))
}

fn main() -> ExitCode {
    let command = match Cli::try_parse() {
        Ok(cli) => cli.command,
        Err(error) => {
            let words: Vec<String> =
                std::env::args_os().map(|word| word.to_string_lossy().into_owned()).collect();
            let Some(said) = as_key(&error, &words) else { error.exit() };
            eprintln!("error: options are written key=value: say {said} (--help lists all)");
            return ExitCode::from(2);
        }
    };
    // Where the exit code says how bad the data is, nothing to look at is the worst.
    let is_lint = matches!(command, Command::Data { what: Data::Lint { .. } });
    match run(command) {
        Ok(code) => ExitCode::from(code),
        Err(error) => {
            eprintln!("error: {}{}", sentence(&error), advice(&error));
            ExitCode::from(if is_lint { 2 } else { 1 })
        }
    }
}

/// Does what was asked; gives the exit code.
fn run(command: Command) -> anyhow::Result<u8> {
    match command {
        Command::Train { options } => return command::train::train(&options),
        Command::Resume { options } => return command::train::resume(&options),
        Command::Evaluate { what: Evaluate::Rollouts { options } } => {
            command::evaluate::rollouts(&options)
        }
        Command::Report { words } => command::report::run(&words),
        Command::Video { options } => command::video::run(&options),
        Command::Evaluate { what: Evaluate::Ablation { options } } => {
            command::evaluate::ablation(&options)
        }
        Command::GpuCheck { options } => command::gpu_check::run(&options),
        Command::Download { options } => command::download::run(&options),
        Command::Data { what: Data::Inspect { path, json } } => command::data::inspect(&path, json),
        Command::Data { what: Data::Lint { path, json, card, all_frames } } => {
            return command::data::lint(&path, json, card.as_deref(), all_frames);
        }
        Command::Lab { what: Lab::Forecast { options } } => command::lab::forecast::run(&options),
        Command::Lab { what: Lab::Density { words } } => command::lab::density::run(&words),
        Command::Lab { what: Lab::Likelihood { words } } => command::lab::likelihood::run(&words),
        Command::Lab { what: Lab::Smoothness { words } } => command::lab::smoothness::run(&words),
        Command::Lab { what: Lab::FourierIntegral { words } } => {
            command::lab::fourier_integral::run(&words)
        }
        Command::Lab { what: Lab::ScalingLaw { words } } => command::lab::scaling_law::run(&words),
    }?;
    Ok(0)
}

/// An error and its causes as one sentence; causes that it says already are left out, since
/// many libraries name the cause and say it as well.
fn sentence(error: &anyhow::Error) -> String {
    error.chain().map(ToString::to_string).fold(String::new(), |text, cause| {
        if text.is_empty() {
            cause
        } else if text.contains(&cause) {
            text
        } else {
            format!("{text}: {cause}")
        }
    })
}

/// What to do where a disk is full or may not be written to, whatever was written there.
fn advice(error: &anyhow::Error) -> &'static str {
    use io::ErrorKind::{FileTooLarge, QuotaExceeded, ReadOnlyFilesystem, StorageFull};
    let mut causes = error.chain().filter_map(|cause| cause.downcast_ref::<io::Error>());
    match causes.next().map(io::Error::kind) {
        Some(StorageFull | QuotaExceeded) => "; make room there, then give the command again",
        Some(FileTooLarge) => "; files of that size may not be written there (see `ulimit -f`)",
        Some(ReadOnlyFilesystem) => "; name a folder that may be written to",
        _ => "",
    }
}

#[cfg(test)]
mod tests {
    use clap::Parser as _;

    use super::{Cli, advice, as_key, sentence};

    #[test]
    fn flags_are_told_as_keys() {
        let told = |line: &str| {
            let words: Vec<String> = line.split_whitespace().map(str::to_owned).collect();
            Cli::try_parse_from(&words).err().and_then(|error| as_key(&error, &words))
        };
        assert_eq!(told("overtone train game=seaquest --seed 3").as_deref(), Some("seed=3"));
        assert_eq!(told("overtone resume --run=a").as_deref(), Some("run=a"));
        assert_eq!(told("overtone train --seed").as_deref(), Some("seed=…"));
        assert_eq!(told("overtone data lint --seed 3"), None);
        assert_eq!(told("overtone --seed 3"), None);
        assert_eq!(told("overtone frain"), None);
        assert_eq!(told("overtone train game=seaquest"), None);
    }

    #[test]
    fn errors_are_told_once() {
        let error = anyhow::anyhow!("not found").context("a/b: not found").context("reading it");
        assert_eq!(sentence(&error), "reading it: a/b: not found");
    }

    #[test]
    fn a_full_disk_is_told_from_others() {
        let full = std::io::Error::from(std::io::ErrorKind::StorageFull);
        assert!(advice(&anyhow::Error::new(full).context("a")).contains("make room"));
        assert_eq!(advice(&anyhow::anyhow!("b")), "");
    }
}
