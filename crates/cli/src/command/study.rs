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
use overtone_console::quoted;
use overtone_study::{Engine, Executor, Study, StudyFolder};
use toml::{Table, Value};

pub use begin::{resume, run};
pub use page::{report, report_options};
pub use work::cell;

use crate::keys::{self, Keys, one_line};

/// The option of `run` only.
const NAME: &str = r#"
# Name of the study, and of its directory in runs/studies; empty: the name of its file, or made of its words.
name = ""
"#;

/// The option of `resume` only; in `run` it is a setting of the study's runs.
const RUNS_FOLDER: &str = r#"
# Directory that contains the runs and the study's directory.
runs = "runs"
"#;

/// The options of both.
const SHARED: &str = r#"
# Engine that runs the cells. local: processes on this machine. slurm: arrays of jobs on a cluster; the program returns at once.
engine = "local"
# Cells in parallel. 0: locally one for each core, at most eight; on Slurm as many as it starts.
jobs = 0
# Slurm: the partition, --partition.
partition = ""
# Slurm: time of a job, --time; an unfinished run resumes in a new job.
time = ""
# Slurm: cores of a cell, --cpus-per-task. Locally: cores for all cells together. 0: the default, or all cores.
cpus = 0
# Slurm: GPUs of a cell, --gpus.
gpus = ""
# Slurm: the account, --account.
account = ""
# Start nothing: print the cells, which of them have run, and the hours and GB of the rest, estimated from similar runs.
plan = false
# With plan=true: train some updates of each cell without a similar run, which takes a while.
measure = false
"#;

/// Every option of `study run` with its default and reason.
pub fn run_options() -> String {
    [NAME, SHARED].concat()
}

/// Every option of `study resume` with its default and reason.
pub fn resume_options() -> String {
    [RUNS_FOLDER, SHARED].concat()
}

/// Options of Slurm only.
const OF_SLURM: [&str; 4] = ["partition", "time", "gpus", "account"];

/// Keys whose values contain commas.
const SEVERAL: [&str; 3] = ["evaluation.target", "evaluation.protocol", "model.top_percents"];

/// Prefix of the word with the directory of the runs.
const RUNS: &str = "runs=";

/// The words of `study run` or `resume`, by kind.
struct StudyWords {
    /// The words that name a study.
    names: Vec<String>,
    options: Keys,
    /// Options that the user set.
    set: Vec<String>,
    /// `key=value` about runs.
    settings: Vec<String>,
}

impl StudyWords {
    /// Sorts `words`. A word with `=` is a name if its key is not in `options` and `is_name` is
    /// true.
    fn new(options: &str, words: &[String], is_name: impl Fn(&str) -> bool) -> Result<Self> {
        let mut options = keys::given(options, &[])?;
        let (mut names, mut set, mut settings) = (Vec::new(), Vec::new(), Vec::new());
        for word in words {
            match word.split_once('=') {
                None => names.push(word.clone()),
                Some((key, _)) if options.contains_key(key) => {
                    set.push(key.to_owned());
                    keys::apply(&mut options, std::slice::from_ref(word))?;
                }
                Some(_) if is_name(word) => names.push(word.clone()),
                Some(_) => settings.push(word.clone()),
            }
        }
        if let [_, second, ..] = &names[..] {
            bail!("`{second}`: expected one study. Name one at a time");
        }
        let given = Self { names, options, set, settings };
        if given.is("measure") && !given.is("plan") {
            bail!("measure=true needs plan=true, which starts nothing. Use both, or neither");
        }
        Ok(given)
    }

    fn text(&self, key: &str) -> String {
        keys::text(&self.options, key)
    }

    fn is(&self, key: &str) -> bool {
        self.options.get(key).and_then(Value::as_bool).unwrap_or(false)
    }

    /// `executor` with the user's options.
    fn executor(&self, executor: &Executor) -> Result<Executor> {
        let mut executor = executor.clone();
        let others = ["name", "runs", "plan", "measure"];
        for key in self.set.iter().filter(|key| !others.contains(&&***key)) {
            let mut table = Table::try_from(&executor)?;
            table.insert(key.clone(), self.options[key].clone());
            executor = table.try_into().map_err(|error: toml::de::Error| {
                anyhow::anyhow!("{key}={}: {}", self.text(key), one_line(error))
            })?;
        }
        let is_slurm_s = |key: &&String| OF_SLURM.contains(&&***key) && !self.text(key).is_empty();
        if let (Engine::Local, Some(key)) = (executor.engine, self.set.iter().find(is_slurm_s)) {
            bail!("{key}={}: needs engine=slurm. Set both, or leave it out", self.text(key));
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
