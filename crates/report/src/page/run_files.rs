//! What a run's folder holds, as far as a page tells of it.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use serde::Deserialize;

use overtone_eval::{Evaluation, PlayedEpisode, ReportError, Summary, TargetResult};

use crate::Filmed;

/// The files of one training run.
#[derive(Clone, Debug)]
pub struct RunFiles {
    /// The folder's name.
    pub name: String,
    /// What tells it from the other runs of a page, in words; its name where nothing does.
    pub label: String,
    /// `config.toml` as it stands.
    pub config_text: String,
    /// The same, parsed.
    pub config: toml::Table,
    /// The algorithm, by its name in `config.toml` until the program has said its name in papers.
    pub algorithm: Option<String>,
    /// `metrics.csv`; absent if there is none.
    pub metrics: Option<Metrics>,
    /// Mean returns of the evaluations during training, against updates.
    pub returns: Vec<[f64; 2]>,
    /// What the whole episodes of its data earned, as the newest checkpoint tells.
    pub data: Option<DataReturns>,
    /// The highest step of a checkpoint in the folder; without any, of the metrics.
    pub last_step: Option<u64>,
    /// The step of the lowest loss on held-out episodes, as the newest checkpoint tells; absent
    /// where none were held out.
    pub held_out_step: Option<u64>,
    /// Its evaluations: every `evaluation*.json`, in order of names.
    pub evaluations: Vec<EvaluationFile>,
    /// Its videos: every `video*.gif`, in order of names.
    pub videos: Vec<VideoFile>,
}

/// A video, and where it was read.
#[derive(Clone, Debug, PartialEq)]
pub struct VideoFile {
    /// The file's name.
    pub file: String,
    /// The episode it shows, where that is known.
    pub filmed: Option<Filmed>,
    /// What is in it; `None` of one that would make a page too large.
    pub gif: Option<Arc<[u8]>>,
}

/// An evaluation, and where it was read.
#[derive(Clone, Debug)]
pub struct EvaluationFile {
    /// The file's name.
    pub file: String,
    /// What is in it.
    pub evaluation: Evaluation,
}

/// What the episodes of a run's data earned, in the units of its rewards.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct DataReturns {
    /// How many there are.
    pub n: usize,
    /// Of each episode once.
    pub mean: f64,
    /// The highest.
    pub best: f64,
}

/// The rows of `metrics.csv`, by columns.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Metrics {
    /// Every column has as many rows; a loss may be no number.
    pub columns: BTreeMap<String, Vec<f64>>,
}

/// Why there is no page about a run.
#[derive(Debug, thiserror::Error)]
pub enum PageError {
    /// A page about nothing.
    #[error("there is no run to report on")]
    NoRun,
    /// A file or folder could not be read or written.
    #[error("`{path}`")]
    File {
        /// Which.
        path: PathBuf,
        /// What the system said.
        source: std::io::Error,
    },
    /// A configuration that is no TOML.
    #[error("`{path}` is no configuration")]
    Config {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        source: Box<toml::de::Error>,
    },
    /// A checkpoint's state that is none.
    #[error("`{path}` is no state of a checkpoint")]
    State {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        source: serde_json::Error,
    },
    /// A file of metrics that is none.
    #[error("`{path}`, line {line}: {what}")]
    Metrics {
        /// The file.
        path: PathBuf,
        /// The line, from 1.
        line: usize,
        /// What is wrong with it.
        what: String,
    },
    /// A file named as a video that is none.
    #[error("`{path}` is no GIF: move it elsewhere")]
    NoVideo {
        /// The file.
        path: PathBuf,
    },
    /// What a video shows cannot be read.
    #[error("what is beside a video cannot be read (without it, nothing is said of the video)")]
    Filmed(#[source] ReportError),
    /// An evaluation that cannot be read.
    #[error("an evaluation cannot be read")]
    Evaluation(#[from] ReportError),
    /// An evaluation whose statistics and episodes do not belong together.
    #[error("`{path}`: {listed} episodes are listed for the target {target}, {told} are told of")]
    Contradiction {
        /// The file.
        path: PathBuf,
        /// The return asked for.
        target: f32,
        /// Episodes in the list.
        listed: usize,
        /// Episodes in the statistics.
        told: usize,
    },
    /// Scores without statistics.
    #[error(transparent)]
    Statistics(#[from] overtone_eval::statistics::StatisticsError),
}

impl PageError {
    pub(super) fn file(path: &Path) -> impl FnOnce(std::io::Error) -> Self {
        let path = path.to_path_buf();
        |source| Self::File { path, source }
    }
}

impl RunFiles {
    /// Reads `config.toml`, and `metrics.csv` and `evaluation*.json` where they are.
    ///
    /// # Errors
    /// When the folder has no configuration, or a file cannot be read or understood.
    pub fn read(folder: &Path) -> Result<Self, PageError> {
        let path = folder.join("config.toml");
        let config_text = fs::read_to_string(&path).map_err(PageError::file(&path))?;
        let config: toml::Table = config_text
            .parse()
            .map_err(|source| PageError::Config { path, source: Box::new(source) })?;
        let path = folder.join("metrics.csv");
        let metrics = match fs::read_to_string(&path) {
            Ok(text) => Some(Metrics::parse(&text, &path)?),
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => None,
            Err(error) => return Err(PageError::file(&path)(error)),
        };
        let (evaluations, videos) = (evaluations(folder)?, videos(folder)?);
        let newest = newest_checkpoint(folder)?;
        let (held_out_step, data) = match &newest {
            Some((_, checkpoint)) => told_by(&checkpoint.join("state.json"))?,
            None => (None, None),
        };
        let returns = returns(&folder.join("checkpoints.csv"))?;
        let last_step = newest.map(|(step, _)| step).or_else(|| metrics.as_ref()?.last_step());
        // Of `.`, too, the folder's own name.
        let real = fs::canonicalize(folder).map_err(PageError::file(folder))?;
        let name = real.file_name().unwrap_or(real.as_os_str()).to_string_lossy().into_owned();
        Ok(Self {
            label: name.clone(),
            name,
            algorithm: config.get("algorithm").and_then(toml::Value::as_str).map(str::to_owned),
            config_text,
            config,
            metrics,
            returns,
            data,
            last_step,
            held_out_step,
            evaluations,
            videos,
        })
    }
}

impl RunFiles {
    /// The recording it learned from, by the shortest name that its settings have.
    pub(super) fn dataset(&self) -> Option<String> {
        let word = |table: &toml::Table, key: &str| {
            let word = table.get(key).and_then(toml::Value::as_str).filter(|word| !word.is_empty());
            word.map(str::to_owned)
        };
        let data = self.config.get("data").and_then(toml::Value::as_table);
        let stem = |path: String| Path::new(&path).file_stem()?.to_str().map(str::to_owned);
        word(&self.config, "dataset").or_else(|| data.and_then(|data| stem(word(data, "path")?)))
    }

    /// Minutes of training.
    pub(super) fn minutes(&self) -> Option<f64> {
        let seconds = self.metrics.as_ref()?.columns.get("seconds")?.last()?;
        Some(seconds / 60.0).filter(|minutes| minutes.is_finite())
    }
}

impl EvaluationFile {
    fn read(path: &Path, file: String) -> Result<Self, PageError> {
        let found = Self { evaluation: Evaluation::read(path)?, file };
        for target in &found.evaluation.targets {
            let (listed, told) = (found.episodes(target).count(), target.raw_return.n);
            if listed != told {
                let (path, target) = (path.to_path_buf(), target.target_return);
                return Err(PageError::Contradiction { path, target, listed, told });
            }
        }
        Ok(found)
    }

    /// The episodes of a target.
    pub fn episodes(&self, target: &TargetResult) -> impl Iterator<Item = &PlayedEpisode> {
        let asked = target.target_return;
        self.evaluation.episodes.iter().filter(move |episode| episode.target_return == asked)
    }
}

impl Metrics {
    /// Rows with the right number of cells, all of them numbers. A last line without its end is
    /// a row that was being written, and left out.
    fn parse(text: &str, path: &Path) -> Result<Self, PageError> {
        let error = |line: usize, what: String| {
            let path = path.to_path_buf();
            PageError::Metrics { path, line, what }
        };
        let whole = text.rfind('\n').map_or("", |end| &text[..end]);
        let mut lines = whole.lines().enumerate();
        let header: Vec<&str> =
            lines.next().map_or(Vec::new(), |(_, line)| line.split(',').collect());
        let mut columns = vec![Vec::new(); header.len()];
        for (i, line) in lines {
            let cells: Vec<&str> = line.split(',').collect();
            if cells.len() != header.len() {
                let what = format!("{} cells, expected {}", cells.len(), header.len());
                return Err(error(i + 1, what));
            }
            for (column, cell) in columns.iter_mut().zip(cells) {
                let number: f64 =
                    cell.parse().map_err(|_| error(i + 1, format!("`{cell}` is no number")))?;
                column.push(number);
            }
        }
        Ok(Self { columns: header.iter().map(|name| name.to_string()).zip(columns).collect() })
    }

    fn last_step(&self) -> Option<u64> {
        self.columns.get("step")?.last().map(|step| *step as u64)
    }

    /// A column against the steps.
    pub fn against_steps(&self, column: &str) -> Option<Vec<[f64; 2]>> {
        let steps = self.columns.get("step")?;
        Some(steps.iter().zip(self.columns.get(column)?).map(|(x, y)| [*x, *y]).collect())
    }
}

/// Columns of every run's metrics.
const OF_ALL: [&str; 8] = [
    "step",
    "tokens",
    "loss",
    "learning_rate",
    "grad_norm",
    "timesteps_per_s",
    "waited_share",
    "seconds",
];

/// Figures that the algorithms of these runs measure beside their loss: a TD loss, a mean value.
pub(super) fn own_figures(runs: &[RunFiles]) -> Vec<String> {
    let mut found: Vec<String> = Vec::new();
    for column in
        runs.iter().filter_map(|run| run.metrics.as_ref()).flat_map(|all| all.columns.keys())
    {
        if !OF_ALL.contains(&column.as_str()) && !found.contains(column) {
            found.push(column.clone());
        }
    }
    found
}

fn evaluations(folder: &Path) -> Result<Vec<EvaluationFile>, PageError> {
    let read = |path: PathBuf| {
        let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        EvaluationFile::read(&path, name)
    };
    Evaluation::files(folder)?.into_iter().map(read).collect()
}

/// Bytes of the videos on a page, at most: it must open.
pub(super) const MOST_VIDEO: u64 = 64 << 20;

fn videos(folder: &Path) -> Result<Vec<VideoFile>, PageError> {
    let (mut videos, mut read) = (Vec::new(), 0);
    for file in names(folder)? {
        if !(file.starts_with("video") && file.ends_with(".gif")) {
            continue;
        }
        let path = folder.join(&file);
        let size = fs::metadata(&path).map_err(PageError::file(&path))?.len();
        let gif = match read + size <= MOST_VIDEO {
            true => Some(fs::read(&path).map_err(PageError::file(&path))?),
            false => None,
        };
        if gif.as_ref().is_some_and(|gif| !gif.starts_with(b"GIF8")) {
            return Err(PageError::NoVideo { path });
        }
        read += if gif.is_some() { size } else { 0 };
        let gif = gif.map(Arc::from);
        let filmed = Filmed::read(&path).map_err(PageError::Filmed)?;
        videos.push(VideoFile { file, filmed, gif });
    }
    Ok(videos)
}

/// The checkpoint of the highest step: that step, and its folder.
fn newest_checkpoint(folder: &Path) -> Result<Option<(u64, PathBuf)>, PageError> {
    let folder = folder.join("checkpoints");
    if !folder.is_dir() {
        return Ok(None);
    }
    let step = |name: &String| name.strip_prefix("step-")?.parse::<u64>().ok();
    let steps =
        names(&folder)?.into_iter().filter_map(|name| Some((step(&name)?, folder.join(name))));
    Ok(steps.max())
}

/// The curve of returns in `checkpoints.csv`; nothing without one.
fn returns(path: &Path) -> Result<Vec<[f64; 2]>, PageError> {
    let text = match fs::read_to_string(path) {
        Ok(text) => text,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(Vec::new()),
        Err(error) => return Err(PageError::file(path)(error)),
    };
    let whole = text.rfind('\n').map_or("", |end| &text[..end]);
    let point = |row: &str| {
        let mut cells = row.split(',');
        let step: f64 = cells.next()?.parse().ok()?;
        let (figure, value) = (cells.nth(1)?, cells.next()?.parse().ok()?);
        (figure == "eval/return").then_some([step, value])
    };
    Ok(whole.lines().skip(1).filter_map(point).collect())
}

/// What a checkpoint's state says of the lowest held-out loss and of the data; nothing without a
/// state.
fn told_by(path: &Path) -> Result<(Option<u64>, Option<DataReturns>), PageError> {
    #[derive(Deserialize)]
    struct State {
        best: Option<Best>,
        episode_returns: Vec<(f64, u64)>,
    }
    #[derive(Deserialize)]
    struct Best {
        step: u64,
    }
    let text = match fs::read(path) {
        Ok(text) => text,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok((None, None)),
        Err(error) => return Err(PageError::file(path)(error)),
    };
    let state: State = serde_json::from_slice(&text)
        .map_err(|source| PageError::State { path: path.to_path_buf(), source })?;
    let earned: Vec<f64> = state.episode_returns.iter().map(|(earned, _)| *earned).collect();
    let data = Summary::of(&earned);
    let data = data.map(|all| DataReturns { n: all.n, mean: all.mean, best: all.max });
    Ok((state.best.map(|best| best.step), data))
}

/// The names in a folder, sorted.
fn names(folder: &Path) -> Result<Vec<String>, PageError> {
    let mut names = Vec::new();
    for entry in fs::read_dir(folder).map_err(PageError::file(folder))? {
        let entry = entry.map_err(PageError::file(folder))?;
        names.push(entry.file_name().to_string_lossy().into_owned());
    }
    names.sort();
    Ok(names)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(text: &str) -> Result<Metrics, PageError> {
        Metrics::parse(text, Path::new("metrics.csv"))
    }

    #[test]
    fn metrics_are_columns_and_half_a_row_is_none() {
        let metrics = parse("step,loss\n10,0.5\n20,NaN\n30,0.2").unwrap();
        let points = metrics.against_steps("loss").unwrap();
        assert_eq!(points.len(), 2, "the row that was being written is left out");
        assert_eq!(points[0], [10.0, 0.5]);
        assert!(points[1][1].is_nan());
        assert_eq!((metrics.last_step(), metrics.against_steps("return")), (Some(20), None));
        assert_eq!(parse("").unwrap(), Metrics::default());
    }

    #[test]
    fn what_is_no_metric_is_refused() {
        for (text, expected) in [
            ("step,loss\n1,0.5\n2\n", "`metrics.csv`, line 3: 1 cells, expected 2"),
            ("step,loss\n1,<b>\n", "`metrics.csv`, line 2: `<b>` is no number"),
        ] {
            assert_eq!(parse(text).unwrap_err().to_string(), expected);
        }
    }
}
