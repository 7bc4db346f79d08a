//! The command line: one table of commands. Each takes options, `key=value`.

use std::{
    ffi::OsString,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
};

use anyhow::Result;
use clap::{Arg, ArgAction, ArgMatches, CommandFactory, FromArgMatches, Parser};
use overtone_console::{errors, flags};
use overtone_settings::options::help;

use crate::{
    command::{
        best, data, download, evaluate, judge, record, report, study, train, video, weights,
    },
    host::{self, Event},
    interrupt, processes, unix_path,
};

use self::Run::{Code, Done};

/// A command.
struct Entry {
    /// Its words after the program's name.
    name: &'static str,
    /// Its description; empty: not in the help.
    about: &'static str,
    /// The words that follow, in the usage and in the help.
    words: [&'static str; 2],
    /// The help after the arguments, before the text that follows.
    help: fn(&str) -> String,
    after: &'static str,
    /// Runs it with the words that follow.
    run: Run,
}

/// What a command returns.
enum Run {
    /// Its exit code.
    Code(fn(&[String]) -> Result<u8>),
    /// Nothing: the exit code is 0.
    Done(fn(&[String]) -> Result<()>),
}

/// The words of most commands.
const OPTIONS: [&str; 2] = ["KEY=VALUE", "Options, `key=value`"];

/// The words of commands that need a task.
const TASK_OPTIONS: [&str; 2] = [
    "KEY=VALUE",
    "Options, `key=value`. Set task=SUITE/NAME, its short form (game=…, env=…), or a dataset that \
     names its task",
];

/// The words of commands about a started study.
const STARTED_STUDY: [&str; 2] =
    ["NAME | KEY=VALUE", "A study, by name or directory (default: the newest), and options"];

/// The words of commands about a dataset.
const DATASET: [&str; 2] = [
    "PATH | KEY=VALUE",
    "A directory of DQN-replay files (of a game, or of one run), a D4RL or Minari file (HDF5), or \
     your own arrays (.npz); and options, `key=value`",
];

/// Commands with commands of their own.
const GROUPS: [[&str; 2]; 3] = [
    ["evaluate", "Evaluate a trained agent"],
    ["study", "Train, evaluate and compare a grid of runs, locally or on a Slurm cluster"],
    ["data", "Inspect, check or convert a dataset"],
];

/// All commands, in the order of the help.
const COMMANDS: [Entry; 20] = [
    Entry {
        name: "train",
        about: "Train an agent on the dataset of a task, then evaluate it",
        words: TASK_OPTIONS,
        help: train_help,
        after: "\
Examples: overtone train game=seaquest head=fourier head.frequencies=14 seed=231
          overtone train env=hopper dataset=medium attention=fourier seed=2",
        run: Code(|words| if best::is_best(words) { best::train(words) } else { train::train(words) }),
    },
    Entry {
        name: "resume",
        about: "Resume an interrupted run",
        words: OPTIONS,
        help: help::<train::ResumeOptions>,
        after: "Example: overtone resume run=RUN device=cuda",
        run: Code(train::resume),
    },
    Entry {
        name: "evaluate rollouts",
        about: "Run episodes in the real environment and report the scores",
        words: OPTIONS,
        help: help::<evaluate::RolloutsOptions>,
        after: "\
Examples: overtone evaluate rollouts episodes=100 target=p50,p90,p99
          overtone evaluate rollouts protocol=matched,sticky_probability,resize,released",
        run: Done(evaluate::rollouts),
    },
    Entry {
        name: "evaluate choose",
        about: "Choose an acting mode (temperature, return quantile, top percent), or the best of \
                several runs with its mode, on episodes that no score uses",
        words: OPTIONS,
        help: help::<evaluate::ChooseOptions>,
        after: "\
Examples: overtone evaluate choose temperatures=1,0.5 budget=50
          overtone evaluate choose run=runs/A,runs/B budget=35",
        run: Done(evaluate::choose),
    },
    Entry {
        name: "report",
        about: "Write a report about runs: scores with intervals, protocol, curves, actions, a video",
        words: [
            "RUN | KEY=VALUE",
            "Runs, by directory or name (default: the newest), and options, `key=value`",
        ],
        help: help::<report::ReportOptions>,
        after: "Example: overtone report RUN-s123 RUN-s231 RUN-s312 name=seaquest",
        run: Done(report::run),
    },
    Entry {
        name: "video",
        about: "Record a video of one episode with its action probabilities",
        words: OPTIONS,
        help: help::<video::VideoOptions>,
        after: "Example: overtone video episode=best every=1",
        run: Done(video::run),
    },
    Entry {
        name: JUDGE,
        about: "Estimate how good an agent is from a recording, where it cannot be played",
        words: OPTIONS,
        help: help::<judge::JudgeOptions>,
        after: "\
An estimate is not a score. Long episodes mostly get the answer `cannot tell`, and docs/results/judge.md \
shows why. Exit code: 0; 1 with strict=true if the recording cannot tell; 2 for errors.

Examples: overtone judge run=RUN
          overtone judge run=A,B dataset=later.npz strict=true",
        run: Code(judge::run),
    },
    Entry {
        name: "record",
        about: "Record episodes of agents or of random actions as a dataset",
        words: OPTIONS,
        help: help::<record::RecordOptions>,
        after: "\
Examples: overtone record task=gymnasium/CartPole-v1 to=records/cartpole
          overtone record policy=RUN,random share=3,1 switch=50..200 to=records/mixed",
        run: Done(record::run),
    },
    Entry {
        name: "study init",
        about: "Write an example study, FILE.toml, with a reason for every key",
        words: ["FILE | KEY=VALUE", "The file to write"],
        help: help::<study::InitOptions>,
        after: "Example: overtone study init frequencies.toml",
        run: Done(study::init),
    },
    Entry {
        name: "study run",
        about: "Start a study; finished runs are not repeated",
        words: [
            "FILE.toml | NAME | KEY=VALUE",
            "A study (FILE.toml, or the name of a started study), options and settings",
        ],
        help: study::run_help,
        after: "\
Every other key is a setting of all runs (overtone train --help-all). Several values, a,b or 1..5, \
are an axis of the grid. Write a comma inside a value as \\, (dataset='folder\\,1/own.npz').

Examples: overtone study run game=seaquest head=linear,fourier seed=1..5
          overtone study run studies/atari-heads.toml plan=true
          overtone study run studies/frequencies.toml engine=slurm partition=gpu time=04:00:00 gpus=1",
        run: Code(study::run),
    },
    Entry {
        name: "study status",
        about: "Show the status of each cell",
        words: STARTED_STUDY,
        help: help::<study::StatusOptions>,
        after: "Example: overtone study status atari-heads json=true",
        run: Done(study::status),
    },
    Entry {
        name: "study resume",
        about: "Resume an interrupted study",
        words: STARTED_STUDY,
        help: study::resume_help,
        after: "\
A study resumes with its settings. To change them, or to add seeds, start it again: overtone study \
run NAME seed=1..8

Example: overtone study resume atari-heads jobs=2",
        run: Code(study::resume),
    },
    Entry {
        name: "study report",
        about: "Write the report that compares the cells",
        words: STARTED_STUDY,
        help: study::report_help,
        after: "Example: overtone study report atari-heads out=pages level=0.9",
        run: Done(study::report),
    },
    // Runs one cell, as `run` starts it.
    Entry {
        name: "study cell",
        about: "",
        words: OPTIONS,
        help: help::<study::CellOptions>,
        after: "",
        run: Code(study::cell),
    },
    Entry {
        name: "export",
        about: "Export an agent to a directory: for onnxruntime, for Hugging Face's transformers, or \
                as safetensors",
        words: [
            "RUN DIRECTORY | KEY=VALUE",
            "A run and the directory to write, or `run=RUN to=DIRECTORY`, and options, `key=value`",
        ],
        help: help::<weights::ExportOptions>,
        after: "\
format=hf supports Decision Transformers on vectors with the tanh head and softmax attention. For \
other agents, use format=safetensors.

Examples: overtone export runs/RUN format=safetensors agents/seaquest
          overtone export run=runs/RUN to=hopper-medium",
        run: Done(weights::export),
    },
    Entry {
        name: "import",
        about: "Import an exported agent as a run, from Overtone or Hugging Face's transformers",
        words: [
            "DIRECTORY | KEY=VALUE",
            "The directory, or `from=DIRECTORY`, and options, `key=value`",
        ],
        help: help::<weights::ImportOptions>,
        after: "\
Examples: overtone import agents/seaquest
          overtone import from=hopper-medium task=mujoco/hopper statistics=hopper.json",
        run: Done(weights::import),
    },
    Entry {
        name: "download",
        about: "Download a published dataset into datasets/",
        words: TASK_OPTIONS,
        help: help::<download::DownloadWords>,
        after: "\
The program prints a plan first: files, size, time, free disk space. Run the same command again to \
resume an interrupted download. Training finds the files by itself.

Examples: overtone download game=seaquest files=10 plan=true
          overtone download env=hopper dataset=medium",
        run: Done(download::run),
    },
    Entry {
        name: "data inspect",
        about: "Summarize a dataset: transitions, episodes, returns, actions, anything unusual",
        words: DATASET,
        help: help::<data::InspectOptions>,
        after: "Example: overtone data inspect datasets/starter/mujoco/hopper_medium.hdf5",
        run: Done(data::inspect),
    },
    Entry {
        name: "data convert",
        about: "Convert a dataset to one training file, which Python's `minari` opens too",
        words: [
            "FROM TO | KEY=VALUE",
            "The dataset in any format, the output, and options, `key=value`",
        ],
        help: help::<record::ConvertOptions>,
        after: "\
Examples: overtone data convert own.npz records/own task=gymnasium/CartPole-v1
          overtone data convert hopper_medium-v2.hdf5 minari:mine/hopper-v0 task=mujoco/hopper",
        run: Done(record::convert),
    },
    Entry {
        name: LINT,
        about: "Check a dataset; print what was expected, what was found and what to do",
        words: DATASET,
        help: help::<data::LintOptions>,
        after: "\
Exit code: 0 without findings or with notes only; 1 for warnings (readable, but not as expected); \
2 for errors (not readable, or training would learn data that was not recorded), and when there is \
nothing to check.
docs/findings.md explains each code.

Example: overtone data lint datasets/starter/Seaquest",
        run: Code(data::lint),
    },
];

/// The commands whose exit code is an answer: the severity, or whether the recording can tell.
const LINT: &str = "data lint";
const JUDGE: &str = "judge";

/// Whether the help lists every key: `--help-all`.
static ALL_KEYS: AtomicBool = AtomicBool::new(false);

fn train_help(after: &str) -> String {
    let all = ALL_KEYS.load(Ordering::Relaxed);
    let before = if all {
        "Options and their defaults. The reference is the papers' published code. Defaults that \
         depend on the task or the algorithm are at the end; the config.toml of a run has the \
         values that it used:"
    } else {
        "The most used options and their defaults (--help-all lists every option). The reference \
         is the papers' published code:"
    };
    format!("{before}\n{}\n{after}", overtone_settings::help(all))
}

/// A parsed command line.
struct Program {
    command: &'static Entry,
    words: Vec<String>,
}

/// The name of the words in clap.
const WORDS: &str = "words";

impl CommandFactory for Program {
    fn command() -> clap::Command {
        let group = |[name, about]: [&'static str; 2]| {
            clap::Command::new(name)
                .about(about)
                .subcommand_required(true)
                .arg_required_else_help(true)
        };
        let mut program = group([
            "overtone",
            "Offline reinforcement learning: train an agent on recorded \
                                episodes, then evaluate it",
        ])
        .version(env!("CARGO_PKG_VERSION"))
        .max_term_width(100);
        for Entry { name, about, words: [words, meaning], help, after, .. } in &COMMANDS {
            let (of, name) = name.split_once(' ').unwrap_or(("", name));
            let words = Arg::new(WORDS)
                .value_name(words)
                .help(meaning)
                .num_args(1..)
                .value_parser(clap::value_parser!(OsString))
                .action(ArgAction::Append);
            let command = clap::Command::new(name)
                .about(*about)
                .hide(about.is_empty())
                .after_help(help(after))
                .arg(words);
            let Some(parent) = GROUPS.into_iter().find(|[name, _]| *name == of) else {
                program = program.subcommand(command);
                continue;
            };
            if program.find_subcommand(of).is_none() {
                program = program.subcommand(group(parent));
            }
            program = program.mut_subcommand(of, |group| group.subcommand(command));
        }
        program
    }

    fn command_for_update() -> clap::Command {
        Self::command()
    }
}

impl FromArgMatches for Program {
    fn from_arg_matches(matches: &ArgMatches) -> Result<Self, clap::Error> {
        let (mut path, mut last) = (Vec::new(), matches);
        while let Some((name, inner)) = last.subcommand() {
            path.push(name);
            last = inner;
        }
        let path = path.join(" ");
        let known = COMMANDS.iter().find(|command| command.name == path);
        let command =
            known.ok_or_else(|| clap::Error::new(clap::error::ErrorKind::InvalidSubcommand))?;
        let words = last.get_many::<OsString>(WORDS).unwrap_or_default();
        let words = words.map(|word| unix_path::to_text(word)).collect();
        Ok(Self { command, words })
    }

    fn update_from_arg_matches(&mut self, matches: &ArgMatches) -> Result<(), clap::Error> {
        *self = Self::from_arg_matches(matches)?;
        Ok(())
    }
}

impl Parser for Program {}

/// Flags that are spellings of keys, and whether a value follows.
const FLAGS: [(&str, bool); 5] = [
    ("--json", false),
    ("--all-frames", false),
    ("--layout", true),
    ("--task", true),
    ("--card", true),
];

/// `words`, the program's name first, with the flags of `data` and `study` as keys: `--layout
/// ogbench` is `layout=ogbench`. `--help-all` is `--help`, and is remembered. `evaluate run=RUN` is
/// `evaluate rollouts run=RUN`.
fn with_keys(words: impl IntoIterator<Item = OsString>) -> Vec<OsString> {
    let mut all: Vec<OsString> = Vec::new();
    let mut words = words.into_iter();
    while let Some(word) = words.next() {
        let text = word.to_str().unwrap_or_default();
        if text == "--help-all" {
            ALL_KEYS.store(true, Ordering::Relaxed);
            all.push("--help".into());
            continue;
        }
        let is_evaluate = all.len() == 2 && all[1] == "evaluate";
        if is_evaluate && text.contains('=') && !text.starts_with('-') {
            all.push("rollouts".into());
        }
        let (flag, value) =
            text.split_once('=').map_or((text, None), |(flag, value)| (flag, Some(value)));
        let known = FLAGS.iter().find(|(name, _)| *name == flag);
        let has_flags = all.get(1).is_some_and(|command| command == "data" || command == "study");
        let Some((_, takes_value)) = known.filter(|_| has_flags) else {
            all.push(word);
            continue;
        };
        let mut key = OsString::from(flag.trim_start_matches('-').replace('-', "_") + "=");
        match value {
            Some(value) => key.push(value),
            None if *takes_value => key.push(words.next().unwrap_or_default()),
            None => key.push("true"),
        }
        all.push(key);
    }
    all
}

/// The key for the name of a flag after the words `before`: a setting's, if a command takes settings.
fn key_of(before: &[String], name: &str) -> Option<String> {
    let takes_settings = match before.get(1)?.as_str() {
        "train" => true,
        "study" => before.get(2).is_some_and(|command| command == "run"),
        _ => false,
    };
    let setting = takes_settings.then(|| overtone_settings::nearest_key(name)).flatten();
    Some(setting.unwrap_or_else(|| name.to_owned()))
}

/// Runs the command line `words`, whose first word is the program's name; returns the exit code.
pub fn main(words: &[OsString]) -> u8 {
    let words = with_keys(words.iter().cloned());
    let program = match flags::parse::<Program>(&words, key_of) {
        Ok(program) => program,
        Err(code) => return code,
    };
    // A closed standard output does not stop the command either.
    let _ = overtone_console::host::own_stdout();
    let ended = program.run();
    let failed = match &ended {
        Err(error) if interrupt::is_stop(error) => interrupt::EXIT_CODE,
        _ if [LINT, JUDGE].contains(&program.command.name) => 2,
        _ => 1,
    };
    errors::exit_code(ended, failed)
}

/// Runs the command line `words`, without the program's name, on this thread for a host; returns the
/// exit code. When `stop` is set, the command ends as after Ctrl-C. No signal handler is installed.
///
/// # Errors
/// When the command fails, or the words are invalid.
pub fn run(
    words: &[String],
    stop: Arc<AtomicBool>,
    mut on_event: impl FnMut(Event) + 'static,
) -> Result<u8> {
    let words = std::iter::once("overtone").chain(words.iter().map(String::as_str));
    match Program::try_parse_from(with_keys(words.map(OsString::from))) {
        Ok(program) => host::with(stop, on_event, || program.run()),
        // The output of --help or --version.
        Err(output) if output.exit_code() == 0 => {
            on_event(Event::Line(output.to_string().trim_end().to_owned()));
            Ok(0)
        }
        Err(refused) => Err(refused.into()),
    }
}

impl Program {
    /// Runs the command; returns the exit code.
    fn run(&self) -> Result<u8> {
        if !["train", "resume"].contains(&self.command.name) {
            processes::refuse_copies()?;
        }
        match self.command.run {
            Code(run) => run(&self.words),
            Done(run) => run(&self.words).map(|()| 0),
        }
    }
}
