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

use super::video::{self, Request, VideoOptions};
use crate::{interrupt, options};

overtone_model::options! {
    /// Options of `report`; `study report` does not have `video`.
    pub struct ReportOptions {
        /// Directory that contains the runs and the studies.
        pub runs: PathBuf = "runs".into(),
        /// Output directory; empty: the directory of the run or study, or runs/reports for several
        /// runs, where the next report of the same name replaces it.
        pub out: String = String::new(),
        /// Whether to film the median episode of each evaluated run without a current video, as
        /// video.gif in that run's own directory (a minute or less each). auto: if the report is
        /// about one run.
        pub video: String = "auto".into(),
        /// Name of the files, without their endings: letters, digits, -, _ and dots.
        pub name: String = "report".into(),
        /// Bootstrap replications of the intervals (Agarwal et al. 2021 use 50,000).
        pub replications: usize = 50000,
        /// Confidence of the intervals.
        pub level: f64 = 0.95,
        /// Seed of the bootstrap, for reproducible numbers.
        pub seed: u64 = 1,
    }
}

/// A run's files, with its algorithm's name in papers.
pub fn files_of(run: &Path) -> Result<RunFiles, PageError> {
    let mut files = RunFiles::read(run)?;
    let kind = files.algorithm.as_deref().and_then(AlgorithmKind::named);
    files.algorithm = kind.map(|kind| kind.title().to_owned()).or(files.algorithm);
    Ok(files)
}

impl ReportOptions {
    /// The bootstrap of the intervals.
    ///
    /// # Errors
    /// When a value is invalid, also the name of the files.
    pub fn bootstrap(&self) -> Result<Bootstrap> {
        let Self { name, replications, level, seed, .. } = self;
        let is_allowed = |c: char| c.is_alphanumeric() || matches!(c, '-' | '_' | '.');
        if name.is_empty() || name.starts_with('.') || !name.chars().all(is_allowed) {
            bail!(
                "name={name}: expected letters, digits, `-`, `_` and `.`, without a dot at the \
                 start"
            );
        }
        let bootstrap = Bootstrap { replications: *replications, level: *level, seed: *seed };
        if !(bootstrap.level > 0.0 && bootstrap.level < 1.0) {
            bail!("level={}: expected a number between 0 and 1", bootstrap.level);
        }
        if let Err(error) = bootstrap.check() {
            bail!("replications={}: {error}", bootstrap.replications);
        }
        Ok(bootstrap)
    }
}

/// `overtone report RUN… key=value…`: words that are not options are runs, by directory or name.
pub fn run(words: &[String]) -> Result<()> {
    let (words, names) = options::and_names::<ReportOptions>(words);
    let options: ReportOptions = options::read(&words)?;
    let bootstrap = options.bootstrap()?;
    let ReportOptions { runs: root, out, video, name, .. } = options;
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
    let request = Request::new(run.clone(), VideoOptions::default());
    let played = run.path().join(&request.options.evaluation).is_file();
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
