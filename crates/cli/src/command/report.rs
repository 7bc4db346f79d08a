//! `overtone report`: one report about one or several runs.

use std::{
    path::{Path, PathBuf},
    sync::atomic::AtomicBool,
};

use anyhow::{Result, bail};
use overtone_agents::AlgorithmKind;
use overtone_eval::statistics::Bootstrap;
use overtone_report::{Page, PageError, RunFiles};
use overtone_train::RunDir;

use super::video::{self, Request};
use crate::{interrupt, keys};

/// Options of a report about runs only.
const OF_RUNS: &str = r#"
# Directory that contains the runs.
runs = "runs"
# Output directory; empty: the run's own directory, or runs/reports for several runs, where the next report of the same name replaces it.
out = ""
# Whether to film the median episode of each evaluated run without a current video, as video.gif in that run's own directory (a minute or less each). auto: if the report is about one run.
video = "auto"
"#;

/// Options of every report.
const OF_PAGES: &str = r#"
# Name of the files, without their endings: letters, digits, -, _ and dots.
name = "report"
# Bootstrap replications of the intervals (Agarwal et al. 2021 use 50,000).
replications = 50000
# Confidence of the intervals.
level = 0.95
# Seed of the bootstrap, for reproducible numbers.
seed = 1
"#;

/// A run's files, with its algorithm's name in papers.
pub fn files_of(run: &Path) -> Result<RunFiles, PageError> {
    let mut files = RunFiles::read(run)?;
    let kind = files.algorithm.as_deref().and_then(AlgorithmKind::named);
    files.algorithm = kind.map(|kind| kind.title().to_owned()).or(files.algorithm);
    Ok(files)
}

/// Every option with its default and reason.
pub fn options() -> String {
    with_page_options(OF_RUNS)
}

/// Options of a kind of report, followed by the options of every report.
pub fn with_page_options(own: &str) -> String {
    format!("{own}{OF_PAGES}")
}

/// Values of the options of every report.
pub struct PageOptions {
    /// Output directory; empty: the default.
    pub out: String,
    /// Name of the files.
    pub name: String,
    /// Bootstrap of the intervals.
    pub bootstrap: Bootstrap,
}

impl PageOptions {
    /// Reads the options.
    ///
    /// # Errors
    /// When a value is invalid.
    pub fn new(keys: &keys::Keys) -> Result<Self> {
        let (out, name) = (keys::text(keys, "out"), keys::text(keys, "name"));
        let is_allowed = |c: char| c.is_alphanumeric() || matches!(c, '-' | '_' | '.');
        if name.is_empty() || name.starts_with('.') || !name.chars().all(is_allowed) {
            bail!(
                "name={name}: expected letters, digits, `-`, `_` and `.`, without a dot at the \
                 start"
            );
        }
        let bootstrap = Bootstrap {
            replications: keys::whole(keys, "replications", 1)?,
            level: keys.get("level").and_then(toml::Value::as_float).unwrap_or(0.95),
            seed: keys::whole(keys, "seed", 0)? as u64,
        };
        if !(bootstrap.level > 0.0 && bootstrap.level < 1.0) {
            bail!("level={}: expected a number between 0 and 1", bootstrap.level);
        }
        if let Err(error) = bootstrap.check() {
            bail!("replications={}: {error}", bootstrap.replications);
        }
        Ok(Self { out, name, bootstrap })
    }
}

/// `overtone report RUN… key=value…`: words that are not options are runs, by directory or name.
pub fn run(words: &[String]) -> Result<()> {
    let (words, names) = keys::sorted(&options(), words)?;
    let keys = keys::given(&options(), &words)?;
    let (root, video) = (PathBuf::from(keys::text(&keys, "runs")), keys::text(&keys, "video"));
    let PageOptions { out, name, bootstrap } = PageOptions::new(&keys)?;
    let runs = match &names[..] {
        [] => vec![RunDir::newest(&root)?],
        names => {
            names.iter().map(|name| RunDir::open(&root, name)).collect::<Result<Vec<_>, _>>()?
        }
    };
    let out = match (out, &runs[..]) {
        (empty, [run]) if empty.is_empty() => run.path().to_owned(),
        (empty, _) if empty.is_empty() => root.join("reports"),
        (out, _) => PathBuf::from(out),
    };
    let is_filmed = match video.as_str() {
        "auto" => runs.len() == 1,
        "true" => true,
        "false" => false,
        _ => bail!("video={video}: expected true, false or auto"),
    };
    let stop = interrupt::listen()?;
    if is_filmed {
        runs.iter().try_for_each(|run| film(run, &stop))?;
    }
    let files: Vec<RunFiles> =
        runs.iter().map(|run| files_of(run.path())).collect::<Result<_, _>>()?;
    let page = Page::new(&files, &bootstrap)?.write(&out, &name)?;
    say!("report: {} (with Markdown and CSV next to it)", page.display());
    Ok(())
}

/// Films an evaluated run without a current video. A failure is only a warning, because a report
/// does not need a video.
fn film(run: &RunDir, stop: &AtomicBool) -> Result<()> {
    let request = Request::of(run.clone())?;
    let played = run.path().join(&request.evaluation).is_file();
    if !played || video::is_filmed(&request) {
        return Ok(());
    }
    if let Err(error) = video::film(&request, stop) {
        if stop.load(std::sync::atomic::Ordering::Relaxed) {
            return Err(error);
        }
        warn!("warning: the report on {} lacks a video: {error:#}", run.path().display());
    }
    Ok(())
}
