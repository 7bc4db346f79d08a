//! `overtone report`: one report about one or several runs.

use std::{
    path::{Path, PathBuf},
    sync::atomic::AtomicBool,
};

use anyhow::{Result, bail};
use overtone_agents::AlgorithmKind;
use overtone_eval::statistics::Bootstrap;
use overtone_report::{Page, PageError, RunFiles};
use overtone_settings::{options, runs::open_runs};
use overtone_train::RunDir;

use super::video::{self, Request, VideoOptions};
use crate::interrupt;

overtone_model::options! {
    /// Options of `report`; `study report` does not have `run` and `video`.
    pub struct ReportOptions {
        /// A run's directory or name, or several (a,b), or the words without =; empty: the newest
        /// run.
        pub run: String = String::new(),
        /// Directory that contains the runs and the studies.
        pub runs: PathBuf = "runs".into(),
        /// Output directory; empty: the directory of the run or study, or runs/reports for several
        /// runs.
        pub out: String = String::new(),
        /// Whether to film the median episode of each evaluated run without a current video, as
        /// video.gif in that run's own directory (a minute or less each). auto: if the report is
        /// about one run.
        pub video: String = "auto".into(),
        /// Name of the files, without their endings: letters, digits, -, _ and dots. Empty: report,
        /// or for several runs a name of their own.
        pub name: String = String::new(),
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
        if name.starts_with('.') || !name.chars().all(is_allowed) {
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

    /// The name of the files of a page about one run or one study.
    pub fn name_of_one(&self) -> &str {
        if self.name.is_empty() { "report" } else { &self.name }
    }
}

/// Whether the names of a page's files can contain a character.
fn is_allowed(character: char) -> bool {
    character.is_alphanumeric() || matches!(character, '-' | '_' | '.')
}

/// Most characters of a run's name in the name of a file.
const MOST_CHARACTERS: usize = 80;

/// The name of the files of a page about several runs: the same for the same runs, and another one
/// for others.
fn name_of_several(runs: &[RunDir]) -> String {
    let mut paths: Vec<PathBuf> = runs.iter().map(|run| absolute(run.path())).collect();
    paths.sort();
    let fnv1a = |hash: u64, byte: u8| (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3);
    let bytes = paths.iter().flat_map(|path| [path.as_os_str().as_encoded_bytes(), b"\n"].concat());
    let hash = bytes.fold(0xcbf2_9ce4_8422_2325, fnv1a);
    let first = paths.first().and_then(|path| path.file_name()).unwrap_or_default();
    let first: String = first.to_string_lossy().chars().take(MOST_CHARACTERS).collect();
    let first = first.trim_start_matches('.').replace(|character| !is_allowed(character), "-");
    format!("{first}-and-{}-more-{:08x}", runs.len() - 1, hash >> 32)
}

/// The path of a directory without links.
fn absolute(folder: &Path) -> PathBuf {
    folder.canonicalize().unwrap_or_else(|_| folder.to_owned())
}

/// `overtone report RUN… key=value…`: words that are not options are runs, by directory or name.
pub fn run(words: &[String]) -> Result<()> {
    let (words, names) = options::and_names::<ReportOptions>(words);
    let options: ReportOptions = options::read(&words)?;
    let bootstrap = options.bootstrap()?;
    let ReportOptions { runs: root, out, video, .. } = &options;
    let runs = match &names[..] {
        [] => open_runs(root, &options.run)?,
        names => {
            names.iter().map(|name| RunDir::open(root, name)).collect::<Result<Vec<_>, _>>()?
        }
    };
    let out = match (out, &runs[..]) {
        (empty, [run]) if empty.is_empty() => run.path().to_owned(),
        (empty, _) if empty.is_empty() => root.join("reports"),
        (out, _) => PathBuf::from(out),
    };
    let name = match &runs[..] {
        several @ [_, _, ..] if options.name.is_empty() => name_of_several(several),
        _ => options.name_of_one().to_owned(),
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
