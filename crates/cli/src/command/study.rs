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

/// The option of `run` alone.
const NAME: &str = r#"
# What the study is called, and its folder in runs/studies; empty: as its file, or made of its words.
name = ""
"#;

/// The option of `resume` alone; of `run` it is a setting of the study's runs.
const RUNS_FOLDER: &str = r#"
# Folder of the runs, in which the study has its own.
runs = "runs"
"#;

/// The options of both.
const SHARED: &str = r#"
# Who carries it out. local: processes on this machine. slurm: arrays of jobs on a cluster; the program returns at once.
engine = "local"
# Cells at once. 0: here one for each core, eight at most; on Slurm as many as it starts.
jobs = 0
# Slurm: the partition, --partition.
partition = ""
# Slurm: time of a job, --time; a run that is not at its end then goes on in a new job.
time = ""
# Slurm: cores of a cell, --cpus-per-task. Here: cores for all cells together. 0: the default, or all cores.
cpus = 0
# Slurm: GPUs of a cell, --gpus.
gpus = ""
# Slurm: the account, --account.
account = ""
# Start nothing: print the cells, which of them have run, and how many hours and GB the rest takes, by what runs like them took.
plan = false
# With plan=true: train some updates of each cell that no run is like, which takes a while.
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

/// What Slurm alone is told.
const OF_SLURM: [&str; 4] = ["partition", "time", "gpus", "account"];

/// Keys whose values have commas themselves.
const SEVERAL: [&str; 3] = ["evaluation.target", "evaluation.protocol", "model.top_percents"];

/// What a word begins with that says where the runs lie.
const RUNS: &str = "runs=";

/// The words of `study run` or `resume`, sorted.
struct Given {
    /// The words that name a study.
    names: Vec<String>,
    options: Keys,
    /// Options that were given, and not left to their defaults.
    said: Vec<String>,
    /// `key=value` about runs.
    settings: Vec<String>,
}

impl Given {
    /// A word with `=` is no option where `is_name` says so, and its key is none of `options`.
    fn new(options: &str, words: &[String], is_name: impl Fn(&str) -> bool) -> Result<Self> {
        let mut options = keys::given(options, &[])?;
        let (mut names, mut said, mut settings) = (Vec::new(), Vec::new(), Vec::new());
        for word in words {
            match word.split_once('=') {
                None => names.push(word.clone()),
                Some((key, _)) if options.contains_key(key) => {
                    said.push(key.to_owned());
                    keys::apply(&mut options, std::slice::from_ref(word))?;
                }
                Some(_) if is_name(word) => names.push(word.clone()),
                Some(_) => settings.push(word.clone()),
            }
        }
        if let [_, second, ..] = &names[..] {
            bail!("`{second}`: one study at a time");
        }
        let given = Self { names, options, said, settings };
        if given.is("measure") && !given.is("plan") {
            bail!("measure=true is for plan=true, which starts nothing: say both, or neither");
        }
        Ok(given)
    }

    fn text(&self, key: &str) -> String {
        keys::text(&self.options, key)
    }

    fn is(&self, key: &str) -> bool {
        self.options.get(key).and_then(Value::as_bool).unwrap_or(false)
    }

    /// `executor`, with the options that were given on top.
    fn executor(&self, executor: &Executor) -> Result<Executor> {
        let mut executor = executor.clone();
        let others = ["name", "runs", "plan", "measure"];
        for key in self.said.iter().filter(|key| !others.contains(&&***key)) {
            let mut table = Table::try_from(&executor)?;
            table.insert(key.clone(), self.options[key].clone());
            executor = table.try_into().map_err(|error: toml::de::Error| {
                anyhow::anyhow!("{key}={}: {}", self.text(key), one_line(error))
            })?;
        }
        let is_slurm_s = |key: &&String| OF_SLURM.contains(&&***key) && !self.text(key).is_empty();
        if let (Engine::Local, Some(key)) = (executor.engine, self.said.iter().find(is_slurm_s)) {
            bail!("{key}={}: is told to Slurm alone; say engine=slurm", self.text(key));
        }
        Ok(executor)
    }
}

/// Writes a study to begin with.
///
/// # Errors
/// When there is a file already, or it cannot be written.
pub fn init(file: &Path) -> Result<()> {
    if file.exists() {
        bail!("{} is there already: name another file", file.display());
    }
    overtone_files::replace(file, include_str!("../../presets/study.toml").as_bytes())
        .with_context(|| format!("{}", file.display()))?;
    say!("{}: edit it, then: overtone study run {} plan=true", file.display(), quoted(file));
    Ok(())
}

/// Says where the cells of a study stand.
///
/// # Errors
/// When there is no such study.
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

/// The study that `words` name: one that was started, the newest without a name. `runs=` says
/// where.
fn started(words: &[String]) -> Result<StudyFolder> {
    let mut name = String::new();
    for word in words.iter().filter(|word| !word.starts_with(RUNS)) {
        if !is_name(word, words) {
            bail!("there is no option `{word}`: name a study, and with runs= its folder");
        }
        if !name.is_empty() {
            bail!("`{word}`: one study at a time");
        }
        name.clone_from(word);
    }
    let mut runs = runs_of(words);
    // By its file, too, which may say where the runs lie.
    if Path::new(&name).extension().is_some_and(|ending| ending == "toml") {
        let study = Study::read(Path::new(&name))?;
        let told = study.settings.get("runs").and_then(Value::as_str);
        runs = runs.or_else(|| told.map(PathBuf::from));
        name = study.name;
    }
    Ok(StudyFolder::find(&runs.unwrap_or_else(|| "runs".into()), &name)?)
}

/// The folder that `runs=` says among `words`.
fn runs_of(words: &[String]) -> Option<PathBuf> {
    words.iter().rev().find_map(|word| word.strip_prefix(RUNS)).map(PathBuf::from)
}

/// Whether one of `words` names a study and is no option. With a `=` in it, it does where there is
/// such a study.
fn is_name(word: &str, words: &[String]) -> bool {
    let runs = runs_of(words).unwrap_or_else(|| "runs".into());
    !word.contains('=') || Path::new(word).is_file() || StudyFolder::find(&runs, word).is_ok()
}
