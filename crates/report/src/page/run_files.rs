//! The files of a run directory that a page shows.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use serde::Deserialize;

use overtone_core::imitation::Imitation;
use overtone_core::judgement::Judgement;
use overtone_eval::{Choice, Evaluation, PlayedEpisode, ReportError, Summary, TargetResult};

use super::unique;
use crate::Filmed;

/// The files of one training run.
#[derive(Clone, Debug)]
pub struct RunFiles {
    /// Name of the run directory.
    pub name: String,
    /// The settings that distinguish the run from the other runs of a page, otherwise its name.
    pub label: String,
    /// Text of `config.toml`.
    pub config_text: String,
    /// Parsed `config.toml`.
    pub config: toml::Table,
    /// The algorithm. [`read`](Self::read) sets its name from `config.toml`; a caller can replace
    /// it by the name used in papers.
    pub algorithm: Option<String>,
    /// Contents of `metrics.csv`, if it exists.
    pub metrics: Option<Metrics>,
    /// Figures of the evaluations during training against updates, by name: `eval/return`.
    pub curves: BTreeMap<String, Vec<[f64; 2]>>,
    /// Returns of the complete episodes of the dataset, from the newest checkpoint.
    pub data: Option<DataReturns>,
    /// The highest checkpoint step. Without checkpoints, the last step of the metrics.
    pub last_step: Option<u64>,
    /// The step with the lowest loss on held-out episodes, from the newest checkpoint. Absent if no
    /// episodes were held out.
    pub held_out_step: Option<u64>,
    /// All evaluations (`evaluation*.json`), sorted by name.
    pub evaluations: Vec<EvaluationFile>,
    /// The estimates (`judgement.json`), if the file exists. The error says why it is not shown.
    pub estimates: Option<Result<Estimates, String>>,
    /// The comparison with recorded actions (`imitation.json`), if this version wrote one.
    pub imitation: Option<Imitation>,
    /// All videos (`video*.gif`), sorted by name.
    pub videos: Vec<VideoFile>,
}

/// A video and its file name.
#[derive(Clone, Debug, PartialEq)]
pub struct VideoFile {
    /// The file's name.
    pub file: String,
    /// The episode it shows, if known.
    pub filmed: Option<Filmed>,
    /// The file's contents; `None` if they would make a page too large.
    pub gif: Option<Arc<[u8]>>,
}

/// An evaluation and its file name.
#[derive(Clone, Debug)]
pub struct EvaluationFile {
    /// The file's name.
    pub file: String,
    /// The evaluation.
    pub evaluation: Evaluation,
}

/// Estimates of a run's returns, and the returns that were achieved with the same weights.
#[derive(Clone, Debug)]
pub struct Estimates {
    /// The estimates.
    pub judgement: Judgement,
    /// The choice of an acting mode for the judged checkpoint, if one was made.
    pub choice: Option<Choice>,
}

/// Returns of a dataset's episodes, in the units of its rewards.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct DataReturns {
    /// Number of episodes.
    pub n: usize,
    /// Mean over episodes, each counted once.
    pub mean: f64,
    /// The highest return.
    pub best: f64,
}

/// The rows of `metrics.csv`, by columns.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Metrics {
    /// Values by column name. All columns have the same length; values can be NaN.
    pub columns: BTreeMap<String, Vec<f64>>,
}

/// Errors of reading run directories and of making pages.
#[derive(Debug, thiserror::Error)]
pub enum PageError {
    /// No run was passed.
    #[error("expected at least one run to report on")]
    NoRun,
    /// A file or directory could not be read or written.
    #[error("`{path}`")]
    File {
        /// The file or directory.
        path: PathBuf,
        /// The operating system's error.
        source: std::io::Error,
    },
    /// The configuration is not valid TOML.
    #[error("`{path}` is not a valid configuration")]
    Config {
        /// The file.
        path: PathBuf,
        /// The parser's error.
        source: Box<toml::de::Error>,
    },
    /// The state of a checkpoint cannot be parsed.
    #[error("`{path}` is not a valid checkpoint state")]
    State {
        /// The file.
        path: PathBuf,
        /// The parser's error.
        source: serde_json::Error,
    },
    /// A file of metrics is invalid.
    #[error("`{path}`, line {line}: {what}")]
    Metrics {
        /// The file.
        path: PathBuf,
        /// The line, from 1.
        line: usize,
        /// The problem.
        what: String,
    },
    /// A file that is named like a video is not a GIF.
    #[error("`{path}` is not a GIF: move it to another directory")]
    NoVideo {
        /// The file.
        path: PathBuf,
    },
    /// The description of a video cannot be read.
    #[error("cannot read the description of a video: to show the video without it, delete it")]
    Filmed(#[source] ReportError),
    /// An evaluation cannot be read.
    #[error("cannot read an evaluation")]
    Evaluation(#[from] ReportError),
    /// The statistics of an evaluation do not match its episodes.
    #[error(
        "`{path}` lists {listed} episodes for target {target}, but its statistics count {counted}"
    )]
    Contradiction {
        /// The file.
        path: PathBuf,
        /// The target return.
        target: f32,
        /// Episodes in the list.
        listed: usize,
        /// Episodes in the statistics.
        counted: usize,
    },
    /// Statistics of the scores could not be computed.
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
    /// Reads a run directory: `config.toml` and, if they exist, `metrics.csv`, checkpoints,
    /// evaluations, estimates and videos. Unreadable estimates are not an error, because a page
    /// shows its scores without them.
    ///
    /// # Errors
    /// When the configuration is missing, or a file cannot be read or parsed.
    pub fn read(folder: &Path) -> Result<Self, PageError> {
        let path = folder.join("config.toml");
        let config_text = fs::read_to_string(&path).map_err(PageError::file(&path))?;
        let config: toml::Table = config_text
            .parse()
            .map_err(|source| PageError::Config { path, source: Box::new(source) })?;
        let path = folder.join("metrics.csv");
        let metrics = read_if_any(&path)?.map(|text| Metrics::parse(&text, &path)).transpose()?;
        let (evaluations, videos) = (evaluations(folder)?, videos(folder)?);
        let estimates = estimates(folder)?;
        let imitation = imitation(folder)?;
        let newest = checkpoints(folder)?.pop_last();
        let (held_out_step, data) = match &newest {
            Some((_, checkpoint)) => checkpoint_facts(&checkpoint.join("state.json"))?,
            None => (None, None),
        };
        let curves = curves(&folder.join("checkpoints.csv"))?;
        let last_step = newest.map(|(step, _)| step).or_else(|| metrics.as_ref()?.last_step());
        // The real name of the directory, even for `.`.
        let real = fs::canonicalize(folder).map_err(PageError::file(folder))?;
        let name = real.file_name().unwrap_or(real.as_os_str()).to_string_lossy().into_owned();
        Ok(Self {
            label: name.clone(),
            name,
            algorithm: config.get("algorithm").and_then(toml::Value::as_str).map(str::to_owned),
            config_text,
            config,
            metrics,
            curves,
            data,
            last_step,
            held_out_step,
            evaluations,
            estimates,
            imitation,
            videos,
        })
    }
}

impl RunFiles {
    /// The shortest name of its dataset in the settings.
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
        let evaluation_file = Self { evaluation: Evaluation::read(path)?, file };
        for target in &evaluation_file.evaluation.targets {
            let (listed, counted) = (evaluation_file.episodes(target).count(), target.raw_return.n);
            if listed != counted {
                let (path, target) = (path.to_path_buf(), target.target_return);
                return Err(PageError::Contradiction { path, target, listed, counted });
            }
        }
        Ok(evaluation_file)
    }

    /// The episodes of a target.
    pub fn episodes(&self, target: &TargetResult) -> impl Iterator<Item = &PlayedEpisode> {
        let target_return = target.target_return;
        let has_target = move |episode: &&PlayedEpisode| episode.target_return == target_return;
        self.evaluation.episodes.iter().filter(has_target)
    }
}

impl Metrics {
    /// Parses rows with the expected number of cells, all of them numbers. A last line without a
    /// line break is incomplete and ignored.
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
                    cell.parse().map_err(|_| error(i + 1, format!("`{cell}` is not a number")))?;
                column.push(number);
            }
        }
        Ok(Self { columns: header.iter().map(|name| name.to_string()).zip(columns).collect() })
    }

    fn last_step(&self) -> Option<u64> {
        self.columns.get("step")?.last().map(|step| *step as u64)
    }

    /// Pairs of step and value of a column.
    pub fn against_steps(&self, column: &str) -> Option<Vec<[f64; 2]>> {
        let steps = self.columns.get("step")?;
        Some(steps.iter().zip(self.columns.get(column)?).map(|(x, y)| [*x, *y]).collect())
    }
}

/// Columns of the metrics of every algorithm.
const COMMON_COLUMNS: [&str; 8] = [
    "step",
    "tokens",
    "loss",
    "learning_rate",
    "grad_norm",
    "timesteps_per_s",
    "waited_share",
    "seconds",
];

/// Additional figures of the runs' algorithms, such as a TD loss or a mean value.
pub(super) fn algorithm_figures(runs: &[RunFiles]) -> Vec<String> {
    let columns =
        runs.iter().filter_map(|run| run.metrics.as_ref()).flat_map(|all| all.columns.keys());
    unique(columns.filter(|column| !COMMON_COLUMNS.contains(&column.as_str())).cloned())
}

fn evaluations(folder: &Path) -> Result<Vec<EvaluationFile>, PageError> {
    let read = |path: PathBuf| {
        let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        EvaluationFile::read(&path, name)
    };
    Evaluation::files(folder)?.into_iter().map(read).collect()
}

/// The estimates of a run, if it has any. The error of a damaged file is a sentence for the page.
fn estimates(folder: &Path) -> Result<Option<Result<Estimates, String>>, PageError> {
    let path = folder.join(Judgement::FILE);
    let json = match fs::read(&path) {
        Ok(json) => json,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(PageError::file(&path)(error)),
    };
    match parse_judgement(&json) {
        Ok(judgement) => {
            let checkpoint = checkpoints(folder)?.remove(&judgement.step);
            let choice =
                checkpoint.map(|path| Choice::read(&path.join(Choice::FILE))).transpose()?;
            Ok(Some(Ok(Estimates { judgement, choice: choice.flatten() })))
        }
        Err(reason) => Ok(Some(Err(format!(
            "`{}` {reason}. Write it again: `overtone judge run={}`",
            path.display(),
            folder.display()
        )))),
    }
}

/// The comparison of a run with recorded actions; `None` if there is none, or another version wrote it.
fn imitation(folder: &Path) -> Result<Option<Imitation>, PageError> {
    let path = folder.join(Imitation::FILE);
    let json = match fs::read(&path) {
        Ok(json) => json,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(PageError::file(&path)(error)),
    };
    let imitation: Option<Imitation> = serde_json::from_slice(&json).ok();
    Ok(imitation.filter(|imitation| imitation.format == Imitation::FORMAT))
}

/// The judgement in a file. The error continues a sentence that begins with the file's name.
fn parse_judgement(json: &[u8]) -> Result<Judgement, String> {
    #[derive(Deserialize)]
    struct Version {
        format: u32,
    }
    let damaged = |error| format!("cannot be read ({error})");
    let Version { format } = serde_json::from_slice(json).map_err(damaged)?;
    if format != Judgement::FORMAT {
        return Err(format!("has format {format}, expected format {}", Judgement::FORMAT));
    }
    serde_json::from_slice(json).map_err(damaged)
}

/// Maximum size of all videos on a page, in bytes, so that browsers can open it.
pub(super) const MOST_VIDEO: u64 = 64 << 20;

fn videos(folder: &Path) -> Result<Vec<VideoFile>, PageError> {
    let (mut videos, mut read) = (Vec::new(), 0);
    for file in names(folder)? {
        if !(file.starts_with("video") && file.ends_with(".gif")) {
            continue;
        }
        let path = folder.join(&file);
        let size = fs::metadata(&path).map_err(PageError::file(&path))?.len();
        let gif = if read + size <= MOST_VIDEO {
            Some(fs::read(&path).map_err(PageError::file(&path))?)
        } else {
            None
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

/// The directories of all checkpoints, by step.
fn checkpoints(folder: &Path) -> Result<BTreeMap<u64, PathBuf>, PageError> {
    let folder = folder.join("checkpoints");
    if !folder.is_dir() {
        return Ok(BTreeMap::new());
    }
    let step = |name: &String| name.strip_prefix("step-")?.parse::<u64>().ok();
    let steps =
        names(&folder)?.into_iter().filter_map(|name| Some((step(&name)?, folder.join(name))));
    Ok(steps.collect())
}

/// The curves in `checkpoints.csv` by figure; empty if the file does not exist.
fn curves(path: &Path) -> Result<BTreeMap<String, Vec<[f64; 2]>>, PageError> {
    let text = read_if_any(path)?.unwrap_or_default();
    let whole = text.rfind('\n').map_or("", |end| &text[..end]);
    let point = |row: &str| -> Option<(String, [f64; 2])> {
        let mut cells = row.split(',');
        let step = cells.next()?.parse().ok()?;
        Some((cells.nth(1)?.to_owned(), [step, cells.next()?.parse().ok()?]))
    };
    let mut curves: BTreeMap<String, Vec<[f64; 2]>> = BTreeMap::new();
    for (figure, point) in whole.lines().skip(1).filter_map(point) {
        curves.entry(figure).or_default().push(point);
    }
    Ok(curves)
}

/// The step of the lowest held-out loss and the dataset's returns, from a checkpoint's state; `None`
/// if the file does not exist.
fn checkpoint_facts(path: &Path) -> Result<(Option<u64>, Option<DataReturns>), PageError> {
    #[derive(Deserialize)]
    struct State {
        best: Option<Best>,
        episode_returns: Vec<(f64, u64)>,
    }
    #[derive(Deserialize)]
    struct Best {
        step: u64,
    }
    let Some(text) = read_if_any(path)? else { return Ok((None, None)) };
    let state: State = serde_json::from_str(&text)
        .map_err(|source| PageError::State { path: path.to_path_buf(), source })?;
    let returns: Vec<f64> = state.episode_returns.iter().map(|(of_one, _)| *of_one).collect();
    let data = Summary::of(&returns);
    let data = data.map(|all| DataReturns { n: all.n, mean: all.mean, best: all.max });
    Ok((state.best.map(|best| best.step), data))
}

/// The text of a file; `None` if it does not exist.
fn read_if_any(path: &Path) -> Result<Option<String>, PageError> {
    match fs::read_to_string(path) {
        Ok(text) => Ok(Some(text)),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(PageError::file(path)(error)),
    }
}

/// The file names in a directory, sorted.
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
    fn metrics_are_columns_and_an_incomplete_row_is_ignored() {
        let metrics = parse("step,loss\n10,0.5\n20,NaN\n30,0.2").unwrap();
        let points = metrics.against_steps("loss").unwrap();
        assert_eq!(points.len(), 2, "the incomplete row is ignored");
        assert_eq!(points[0], [10.0, 0.5]);
        assert!(points[1][1].is_nan());
        assert_eq!((metrics.last_step(), metrics.against_steps("return")), (Some(20), None));
        assert_eq!(parse("").unwrap(), Metrics::default());
    }

    #[test]
    fn invalid_metrics_are_rejected() {
        for (text, expected) in [
            ("step,loss\n1,0.5\n2\n", "`metrics.csv`, line 3: 1 cells, expected 2"),
            ("step,loss\n1,<b>\n", "`metrics.csv`, line 2: `<b>` is not a number"),
        ] {
            assert_eq!(parse(text).unwrap_err().to_string(), expected);
        }
    }
}
