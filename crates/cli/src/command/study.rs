//! `overtone study`: a grid of runs and its report.

mod begin;
mod cells;
mod engines;
mod names;
mod page;
mod plan;
mod work;

use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};
use documented::DocumentedFields;
use overtone_console::{keys, quoted};
use overtone_settings::options;
use overtone_study::{Engine, Executor, Study, StudyFolder};
use toml::{Table, Value};

pub use begin::{resume, run};
pub use page::{report, report_help};
pub use work::cell;

overtone_model::options! {
    /// Options of `study run` and `study resume`, next to those of [`Executor`].
    pub struct StudyOptions {
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
        options::lines_without::<StudyOptions>(left_out) + &options::lines::<Executor>(executor);
    options::after_help(&lines, after)
}

/// Options of Slurm only.
const OF_SLURM: [&str; 4] = ["partition", "time", "gpus", "account"];

/// Keys whose values contain commas.
const SEVERAL: [&str; 4] =
    ["data.shares", "evaluation.target", "evaluation.protocol", "model.top_percents"];

/// Prefix of the word with the directory of the runs.
const RUNS: &str = "runs=";

/// The words of `study run` or `resume`, by kind.
struct StudyWords {
    /// The words that name a study.
    names: Vec<String>,
    options: StudyOptions,
    /// Keys and values of the executor.
    executor: Vec<(String, String)>,
    /// `key=value` about runs.
    settings: Vec<String>,
}

impl StudyWords {
    /// Sorts `words`, without the option `left_out`. A word with `=` is a name if it is not an
    /// option and `is_name` is true.
    fn new(left_out: &str, words: &[String], is_name: impl Fn(&str) -> bool) -> Result<Self> {
        let (mut names, mut options, mut settings) = (Vec::new(), Vec::new(), Vec::new());
        let mut executor = Vec::new();
        for word in words {
            match word.split_once('=') {
                None => names.push(word.clone()),
                Some((key, _)) if key != left_out && options::has::<StudyOptions>(key) => {
                    options.push(word.clone());
                }
                Some((key, text)) if Executor::FIELD_NAMES.contains(&key) => {
                    executor.push((key.to_owned(), text.to_owned()));
                }
                Some(_) if is_name(word) => names.push(word.clone()),
                Some(_) => settings.push(word.clone()),
            }
        }
        if let [_, second, ..] = &names[..] {
            bail!("`{second}`: expected one study. Name one at a time");
        }
        let options: StudyOptions = options::read(&options)?;
        if options.measure && !options.plan {
            bail!("measure=true needs plan=true, which starts nothing. Use both, or neither");
        }
        Ok(Self { names, options, executor, settings })
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
pub fn init(file: &Path) -> Result<()> {
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
pub fn status(words: &[String], json: bool) -> Result<()> {
    let folder = started(words)?;
    let study = folder.study()?;
    let status = cells::status(&study, &folder, &cells::resolve(&study)?)?;
    if json {
        say!("{}", status.to_json()?);
    } else {
        say!("{status}");
    }
    Ok(())
}

/// The started study that `words` name, or the newest without a name. `runs=` sets its directory.
fn started(words: &[String]) -> Result<StudyFolder> {
    let mut name = String::new();
    for word in words.iter().filter(|word| !word.starts_with(RUNS)) {
        if !is_name(word, words) {
            bail!("unknown option `{word}`. Use the name of a study, and runs= for its directory");
        }
        if !name.is_empty() {
            bail!("`{word}`: expected one study. Name one at a time");
        }
        name.clone_from(word);
    }
    let mut runs = runs_of(words);
    // A study's file is a name too, and may contain the directory of the runs.
    if Path::new(&name).extension().is_some_and(|ending| ending == "toml") {
        let study = Study::read(Path::new(&name))?;
        let stored = study.settings.get("runs").and_then(Value::as_str);
        runs = runs.or_else(|| stored.map(PathBuf::from));
        name = study.name;
    }
    Ok(StudyFolder::find(&runs.unwrap_or_else(|| "runs".into()), &name)?)
}

/// The directory in `runs=` among `words`.
fn runs_of(words: &[String]) -> Option<PathBuf> {
    words.iter().rev().find_map(|word| word.strip_prefix(RUNS)).map(PathBuf::from)
}

/// Whether `word` among `words` names a study. A word with `=` does if the study exists.
fn is_name(word: &str, words: &[String]) -> bool {
    let runs = runs_of(words).unwrap_or_else(|| "runs".into());
    !word.contains('=') || Path::new(word).is_file() || StudyFolder::find(&runs, word).is_ok()
}
