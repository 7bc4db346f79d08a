//! `overtone report`: one page about one or several runs.

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

/// Options of a page about runs alone.
const OF_RUNS: &str = r#"
# Folder of the runs.
runs = "runs"
# Where to write; empty: the run's own folder, or runs/reports for several, where the next page of several takes its place unless it has another name.
out = ""
# Whether to film the median episode of each run that was played and has no video of its evaluation yet, as video.gif in that run's own folder (a minute or less each). auto: if the page is about one run.
video = "auto"
"#;

/// Options of every page.
const OF_PAGES: &str = r#"
# Name of the files, without their endings: letters, digits, -, _ and dots.
name = "report"
# Bootstrap replications of the intervals (Agarwal et al. 2021 take 50,000).
replications = 50000
# Confidence of the intervals.
level = 0.95
# Seed of the bootstrap: the same numbers each time.
seed = 1
"#;

/// A run's files, with its algorithm as papers call it.
pub fn files_of(run: &Path) -> Result<RunFiles, PageError> {
    let mut files = RunFiles::read(run)?;
    let kind = files.algorithm.as_deref().and_then(AlgorithmKind::named);
    files.algorithm = kind.map(|kind| kind.title().to_owned()).or(files.algorithm);
    Ok(files)
}

/// Every option with its default and reason.
pub fn options() -> String {
    with_those_of_pages(OF_RUNS)
}

/// Options of a kind of page, with those of every page.
pub fn with_those_of_pages(own: &str) -> String {
    format!("{own}{OF_PAGES}")
}

/// What the options of every page say.
pub struct Wanted {
    /// Where to write; empty: the default place.
    pub out: String,
    /// Name of the files.
    pub name: String,
    /// How intervals are made.
    pub bootstrap: Bootstrap,
}

impl Wanted {
    /// What options say.
    ///
    /// # Errors
    /// When one has no such value.
    pub fn new(keys: &keys::Keys) -> Result<Self> {
        let (out, name) = (keys::text(keys, "out"), keys::text(keys, "name"));
        let is_allowed = |c: char| c.is_alphanumeric() || matches!(c, '-' | '_' | '.');
        if name.is_empty() || name.starts_with('.') || !name.chars().all(is_allowed) {
            bail!(
                "name={name}: must be of letters, digits, `-`, `_` and `.`, and not begin with a dot"
            );
        }
        let bootstrap = Bootstrap {
            replications: keys::whole(keys, "replications", 1)?,
            level: keys.get("level").and_then(toml::Value::as_float).unwrap_or(0.95),
            seed: keys::whole(keys, "seed", 0)? as u64,
        };
        if !(bootstrap.level > 0.0 && bootstrap.level < 1.0) {
            bail!("level={}: must lie between 0 and 1", bootstrap.level);
        }
        if let Err(error) = bootstrap.check() {
            bail!("replications={}: {error}", bootstrap.replications);
        }
        Ok(Self { out, name, bootstrap })
    }
}

/// `overtone report RUN… key=value…`: words that are no option are runs, by folder or name.
pub fn run(words: &[String]) -> Result<()> {
    let (said, names) = keys::sorted(&options(), words)?;
    let keys = keys::given(&options(), &said)?;
    let (root, video) = (PathBuf::from(keys::text(&keys, "runs")), keys::text(&keys, "video"));
    let Wanted { out, name, bootstrap } = Wanted::new(&keys)?;
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
        _ => bail!("video={video}: must be true, false or auto"),
    };
    let stop = interrupt::listen()?;
    if is_filmed {
        runs.iter().try_for_each(|run| film(run, &stop))?;
    }
    let files: Vec<RunFiles> =
        runs.iter().map(|run| files_of(run.path())).collect::<Result<_, _>>()?;
    let page = Page::new(&files, &bootstrap)?.write(&out, &name)?;
    say!("report: {} (and beside it the same as Markdown and CSV)", page.display());
    Ok(())
}

/// Films a run that was played and has no video of what its evaluation says now. A report
/// without one is a report all the same: what hinders is said, and no more.
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
        warn!("warning: {} is reported on without a video: {error:#}", run.path().display());
    }
    Ok(())
}
