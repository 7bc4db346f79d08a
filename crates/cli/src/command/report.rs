//! `overtone report`: one page about one or several runs.

use std::{path::PathBuf, sync::atomic::AtomicBool};

use anyhow::{Context, Result, bail};
use overtone_eval::statistics::Bootstrap;
use overtone_report::{Page, RunFiles};
use overtone_train::RunDir;

use super::video::{self, Request};
use crate::{interrupt, keys};

/// Every option with its default and reason.
pub const OPTIONS: &str = r#"
# Folder of the runs.
runs = "runs"
# Where to write; empty: the run's own folder, or runs/reports for several.
out = ""
# Name of the files, without their endings.
name = "report"
# Whether to film the median episode of a run that was played and has no video of its evaluation yet (a minute or less each).
video = true
# Bootstrap replications of the intervals (Agarwal et al. 2021 take 50,000).
replications = 50000
# Confidence of the intervals.
level = 0.95
# Seed of the bootstrap: the same numbers each time.
seed = 1
"#;

/// What the options say.
pub struct Wanted {
    root: PathBuf,
    /// Where to write; empty: the default place.
    pub out: String,
    /// Name of the files.
    pub name: String,
    video: bool,
    /// How intervals are made.
    pub bootstrap: Bootstrap,
}

impl Wanted {
    /// Reads `key=value…`.
    ///
    /// # Errors
    /// When one is unknown or has no such value.
    pub fn new(options: &[String]) -> Result<Self> {
        let mut keys = keys::flatten(&OPTIONS.parse()?);
        keys::apply(&mut keys, options)?;
        let text = |key: &str| keys.get(key).map(keys::plain).unwrap_or_default();
        let whole = |key: &str| keys.get(key).and_then(toml::Value::as_integer).unwrap_or(0);
        let bootstrap = Bootstrap {
            replications: usize::try_from(whole("replications"))
                .ok()
                .filter(|n| *n > 0)
                .with_context(|| {
                    format!("replications={}: must be at least 1", text("replications"))
                })?,
            level: keys.get("level").and_then(toml::Value::as_float).unwrap_or(0.95),
            seed: u64::try_from(whole("seed")).ok().context("seed: must be 0 or more")?,
        };
        if !(bootstrap.level > 0.0 && bootstrap.level < 1.0) {
            bail!("level={}: must lie between 0 and 1", bootstrap.level);
        }
        Ok(Self {
            root: PathBuf::from(text("runs")),
            out: text("out"),
            name: text("name"),
            video: keys.get("video").and_then(toml::Value::as_bool).unwrap_or(true),
            bootstrap,
        })
    }
}

/// `overtone report RUN… key=value…`: words that are no option are runs, by folder or name.
pub fn run(words: &[String]) -> Result<()> {
    let (options, names): (Vec<String>, Vec<String>) = keys::sorted(OPTIONS, words)?;
    let Wanted { root, out, name, video, bootstrap } = Wanted::new(&options)?;
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
    let stop = interrupt::listen()?;
    if video {
        runs.iter().try_for_each(|run| film(run, &stop))?;
    }
    let files: Vec<RunFiles> =
        runs.iter().map(|run| RunFiles::read(run.path())).collect::<Result<_, _>>()?;
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
        eprintln!("warning: {} is reported on without a video: {error:#}", run.path().display());
    }
    Ok(())
}
