//! `overtone study`: a grid of runs and its report.

mod begin;
mod cells;
mod engines;
mod names;
mod page;
mod plan;
mod work;

use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail, ensure};
use documented::DocumentedFields;
use overtone_console::{
    keys::{self, Keys},
    quoted,
};
use overtone_settings::{ConfigError, known_keys, options, suites};
use overtone_study::{Engine, Executor, Study, StudyFolder};
use toml::{Table, Value};

pub use begin::{resume, run};
pub use page::{report, report_help};
pub use work::{CellOptions, cell};

overtone_model::options! {
    /// Options of `study run` and `study resume`, next to those of [`Executor`].
    pub struct StudyOptions {
        /// The study, or the first word without =: a file (FILE.toml), or a started study, by name or
        /// directory. Empty: in run a new one, in resume the newest.
        pub study: String = String::new(),
        /// Name of the study, and of its directory in runs/studies; empty: the name of its file, or
        /// made of its words.
        pub name: String = String::new(),
        /// Directory that contains the runs and the study's directory.
        pub runs: String = "runs".into(),
        /// Start nothing: print the cells, which of them have run, and the hours and GB of the rest,
        /// estimated from similar runs.
        pub plan: bool = false,
        /// With plan=true: train some updates of each cell without a similar run, which takes a
        /// while.
        pub measure: bool = false,
    }
}

overtone_model::options! {
    /// Options of `study init`.
    pub struct InitOptions {
        /// The file to write, or the first word without =. Required.
        pub file: PathBuf = PathBuf::new(),
    }
}

overtone_model::options! {
    /// Options of `study status`.
    pub struct StatusOptions {
        /// A study, by name or directory, or the first word without =; empty: the newest.
        pub study: String = String::new(),
        /// Directory that contains the runs and the study's directory; empty: that of the study's
        /// file, else runs.
        pub runs: String = String::new(),
        /// Print JSON on standard output.
        pub json: bool = false,
    }
}

/// The option of `run` that `resume` does not have.
const NAME: &str = "name";

/// The option of `resume` that in `run` is a setting of the study's runs.
const RUNS_FOLDER: &str = "runs";

/// The options in the help of `study run`, and the text `after` them.
pub fn run_help(after: &str) -> String {
    help_without(RUNS_FOLDER, after)
}

/// The options in the help of `study resume`, and the text `after` them.
pub fn resume_help(after: &str) -> String {
    help_without(NAME, after)
}

fn help_without(left_out: &str, after: &str) -> String {
    let executor = Executor::FIELD_NAMES.iter().copied().zip(Executor::FIELD_DOCS.iter().copied());
    let lines =
        options::lines_without::<StudyOptions>(&[left_out]) + &options::lines::<Executor>(executor);
    options::after_help(&lines, after)
}

/// Checks that an unknown key is not a misspelt option of a study: others are settings of its runs.
fn check_near(word: &str) -> Result<()> {
    let (key, _) = &keys::split(word)?;
    let mut known = known_keys();
    if known.contains_key(key) || suites::by_key(key).is_some() {
        return Ok(());
    }
    let own = keys::flatten(&Table::try_from(StudyOptions::default())?);
    let own = own.into_iter().chain(keys::flatten(&Table::try_from(Executor::default())?));
    let own: Keys = own.collect();
    known.extend(own.clone());
    match keys::nearest(key, &known) {
        Some(near) if near != key && own.contains_key(near) => {
            Err(ConfigError::unknown(key, &own).into())
        }
        _ => Ok(()),
    }
}

/// Options of Slurm only.
const OF_SLURM: [&str; 4] = ["partition", "time", "gpus", "account"];

/// Keys whose values contain commas.
const SEVERAL: [&str; 4] =
    ["data.shares", "evaluation.target", "evaluation.protocol", "model.top_percents"];

/// The words of `study run` or `resume`, by kind.
struct StudyWords {
    options: StudyOptions,
    /// Keys and values of the executor.
    executor: Vec<(String, String)>,
    /// `key=value` about runs.
    settings: Vec<String>,
}

impl StudyWords {
    /// Sorts `words`, without the option `left_out`. A word of an unknown key that names a study is
    /// one; others are settings.
    fn new(left_out: &str, words: &[String]) -> Result<Self> {
        let is_known = |key: &str| key != left_out && options::has::<StudyOptions>(key);
        let (mut own, mut executor, mut settings) = (Vec::new(), Vec::new(), Vec::new());
        for word in words {
            match word.split_once('=') {
                Some((key, text)) if Executor::FIELD_NAMES.contains(&key) => {
                    executor.push((key.to_owned(), text.to_owned()));
                }
                Some((key, _)) if !is_known(key) && !options::is_there(word, words) => {
                    check_near(word)?;
                    settings.push(word.clone());
                }
                _ => own.push(word.clone()),
            }
        }
        let options: StudyOptions = options::read_placed(&own, &["study"])?;
        if options.measure && !options.plan {
            bail!("measure=true needs plan=true, which starts nothing. Use both, or neither");
        }
        Ok(Self { options, executor, settings })
    }

    /// `executor` with the user's options.
    fn executor(&self, executor: &Executor) -> Result<Executor> {
        let mut executor = executor.clone();
        for (key, text) in &self.executor {
            let known = keys::flatten(&Table::try_from(&executor)?);
            executor = options::with(&executor, &known, key, text)?.unwrap_or(executor);
        }
        let is_slurm_s =
            |(key, text): &&(String, String)| OF_SLURM.contains(&&**key) && !text.is_empty();
        if let (Engine::Local, Some((key, text))) =
            (executor.engine, self.executor.iter().find(is_slurm_s))
        {
            bail!("{key}={text}: needs engine=slurm. Set both, or leave it out");
        }
        Ok(executor)
    }
}

/// Writes an example study.
///
/// # Errors
/// When the file exists, or cannot be written.
pub fn init(words: &[String]) -> Result<()> {
    let InitOptions { file } = &options::read_placed(words, &["file"])?;
    ensure!(!file.as_os_str().is_empty(), "file=: no file is set. Name the file to write");
    if file.exists() {
        bail!("{} exists already. Use another file", file.display());
    }
    overtone_files::replace(file, include_str!("../../presets/study.toml").as_bytes())
        .with_context(|| format!("{}", file.display()))?;
    say!(
        "wrote {}. Edit it, then run: overtone study run {} plan=true",
        file.display(),
        quoted(file)
    );
    Ok(())
}

/// Prints the status of a study's cells.
///
/// # Errors
/// When the study does not exist.
pub fn status(words: &[String]) -> Result<()> {
    let StatusOptions { study, runs, json } = options::read_placed(words, &["study"])?;
    let folder = started(&study, &runs)?;
    let study = folder.study()?;
    let status = cells::status(&study, &folder, &cells::resolve(&study)?)?;
    if json {
        say!("{}", status.to_json()?);
    } else {
        say!("{status}");
    }
    Ok(())
}

/// The started study called `name`, or the newest without a name, with its directory in `runs`.
fn started(name: &str, runs: &str) -> Result<StudyFolder> {
    let (mut name, mut runs) = (name.to_owned(), runs.to_owned());
    // A study's file is a name too, and may contain the directory of the runs.
    if Path::new(&name).extension().is_some_and(|ending| ending == "toml") {
        let study = Study::read(Path::new(&name))?;
        let stored = study.settings.get("runs").and_then(Value::as_str);
        if runs.is_empty() {
            runs = stored.unwrap_or_default().to_owned();
        }
        name = study.name;
    }
    let runs = if runs.is_empty() { "runs" } else { &*runs };
    Ok(StudyFolder::find(Path::new(runs), &name)?)
}
