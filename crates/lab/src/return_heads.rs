//! Which head tells best what may still be earned: `p(z | o)`, learned from recordings and asked
//! about held-out episodes, without playing.
//!
//! A perceptron reads one observation, as a [`ReturnModel`](overtone_model::conditioning::return_model) does;
//! heads differ, everything else is the same: the episodes, the first weights of the perceptron,
//! the batches and their number. A rule that was fixed before any figure was seen says whether
//! the Fourier head is good enough: [`Findings::rule`].

pub mod head;
pub mod learner;
mod page;
pub mod recording;
pub mod score;

use std::path::PathBuf;

use overtone_core::seed;
use overtone_data::{DataError, Split};
use overtone_model::ModelError;
use rand::seq::SliceRandom;
use rayon::iter::{IntoParallelRefIterator, ParallelIterator};

use self::{
    head::ReturnHead,
    learner::{Training, train},
    recording::Recorded,
    score::{LEVELS, Score},
};

/// The quantile that an agent asks for by default, by which heads are compared.
pub const DECIDING: f64 = 0.95;

/// How much worse than the best a head may be on a file to count as good there.
const TOLERANCE: f64 = 0.01;

/// What to measure.
#[derive(Clone, Debug, PartialEq)]
pub struct Settings {
    /// Recordings, or folders with recordings in HDF5.
    pub data: PathBuf,
    /// Steps an episode may last, of the returns' unit.
    pub horizon: usize,
    /// In the order of the tables.
    pub heads: Vec<ReturnHead>,
    /// Splits of the episodes of each file.
    pub splits: usize,
    /// Share of the episodes that are asked about.
    pub held_out: f64,
    /// Most held-out steps that are asked about.
    pub asked: usize,
    /// How long, and how wide.
    pub training: Training,
    /// Of everything random.
    pub seed: u64,
}

/// Why nothing was found.
#[derive(Debug, thiserror::Error)]
pub enum ReturnHeadsError {
    /// A recording cannot be read or split.
    #[error(transparent)]
    Data(#[from] DataError),
    /// A head cannot be made.
    #[error(transparent)]
    Model(#[from] ModelError),
    /// A folder cannot be listed.
    #[error("cannot read {}", path.display())]
    Folder {
        /// The folder.
        path: PathBuf,
        /// What the system said.
        source: std::io::Error,
    },
    /// There is nothing to learn from.
    #[error("{}: no recording in HDF5; data= names a folder with some, or one", path.display())]
    Empty {
        /// The folder.
        path: PathBuf,
    },
    /// Pixels, or a log of frames.
    #[error("{}: return heads read vectors, and this recording is of frames", path.display())]
    Frames {
        /// The recording.
        path: PathBuf,
    },
}

/// A head's figures on one split of one file.
#[derive(Clone, Debug, PartialEq)]
pub struct Run {
    /// The recording's name.
    pub file: String,
    /// Which split, from 0.
    pub split: usize,
    /// Which head.
    pub head: ReturnHead,
    /// On the held-out steps.
    pub score: Score,
}

/// What was found.
#[derive(Clone, Debug, PartialEq)]
pub struct Findings {
    /// What was measured.
    pub settings: Settings,
    /// The recordings' names, in order.
    pub files: Vec<String>,
    /// By file, split and head.
    pub runs: Vec<Run>,
}

/// Trains every head on every split of every file, several at a time; `progress` is called after
/// each.
///
/// # Errors
/// When a recording cannot be read, has too few episodes to hold some out, or is of frames.
pub fn run(
    settings: &Settings,
    progress: &(dyn Fn() + Sync),
) -> Result<Findings, ReturnHeadsError> {
    let paths = recording::paths(&settings.data)?;
    // Files are found unfit before the work on others, and not held at once.
    for path in paths.iter().skip(1) {
        held_out(&Recorded::read(path, settings.horizon)?, settings, settings.seed)?;
    }
    let mut files = Vec::new();
    let mut runs = Vec::new();
    for path in paths {
        let recorded = Recorded::read(&path, settings.horizon)?;
        runs.extend(measure(&recorded, settings, progress)?);
        files.push(recorded.name);
    }
    Ok(Findings { settings: settings.clone(), files, runs })
}

/// Which episodes are asked about.
fn held_out(
    recorded: &Recorded,
    settings: &Settings,
    split_seed: u64,
) -> Result<Split, ReturnHeadsError> {
    Ok(Split::draw(recorded.episodes.len(), settings.held_out, split_seed)?)
}

/// Every split and head of one recording.
fn measure(
    recorded: &Recorded,
    settings: &Settings,
    progress: &(dyn Fn() + Sync),
) -> Result<Vec<Run>, ReturnHeadsError> {
    let splits = 0..settings.splits;
    let jobs: Vec<(usize, ReturnHead)> =
        splits.flat_map(|split| settings.heads.iter().map(move |&head| (split, head))).collect();
    let one = |&(split, head): &(usize, ReturnHead)| {
        let split_seed = seed::derive_nth(settings.seed, split as u64);
        let drawn = held_out(recorded, settings, split_seed)?;
        let learner =
            train(head, recorded, &recorded.rows(&drawn.training), settings.training, split_seed)?;
        let mut asked = recorded.rows(&drawn.held_out);
        asked.shuffle(&mut seed::generator(split_seed, "asked"));
        asked.truncate(settings.asked);
        let score = Score::of(&learner.answers(recorded, &asked), &recorded.told(&asked));
        progress();
        Ok(Run { file: recorded.name.clone(), split, head, score })
    };
    jobs.par_iter().map(one).collect()
}

/// What the rule says: see [`Findings::rule`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Verdict {
    /// Files on which the head is within 1 % of the best.
    pub good: usize,
    /// As many are asked for.
    pub needed: usize,
}

impl Verdict {
    /// Whether the head stays.
    pub fn is_met(self) -> bool {
        self.good >= self.needed
    }
}

impl Findings {
    /// The mean over a head's splits of a file of one figure.
    pub fn mean(&self, file: &str, head: ReturnHead, of: impl Fn(&Score) -> f64) -> f64 {
        let own = self.runs.iter().filter(|run| run.file == file && run.head == head);
        let figures: Vec<f64> = own.map(|run| of(&run.score)).collect();
        figures.iter().sum::<f64>() / figures.len() as f64
    }

    /// The mean over files of that.
    pub fn overall(&self, head: ReturnHead, of: impl Fn(&Score) -> f64) -> f64 {
        let means = self.files.iter().map(|file| self.mean(file, head, &of));
        means.sum::<f64>() / self.files.len() as f64
    }

    /// A head's pinball loss on a file at [`LEVELS`]`[level]`, as a multiple of the best head's.
    pub fn against_best(&self, file: &str, head: ReturnHead, level: usize) -> f64 {
        let loss = |head| self.mean(file, head, |score| score.pinball[level]);
        let best = self.settings.heads.iter().map(|&head| loss(head)).fold(f64::INFINITY, f64::min);
        if best > 0.0 { loss(head) / best } else { 1.0 }
    }

    /// On how many files a head's pinball loss at this level is within 1 % of the best.
    pub fn good(&self, head: ReturnHead, level: usize) -> usize {
        let is_good = |file: &&String| self.against_best(file, head, level) <= 1.0 + TOLERANCE;
        self.files.iter().filter(is_good).count()
    }

    /// The rule: a head stays if its pinball loss at .95 is within 1 % of the best head's on two
    /// thirds of the files.
    pub fn rule(&self, head: ReturnHead) -> Verdict {
        let needed = (2 * self.files.len()).div_ceil(3);
        Verdict { good: self.good(head, deciding()), needed }
    }
}

/// The place of [`DECIDING`] among [`LEVELS`].
fn deciding() -> usize {
    LEVELS.iter().position(|&level| level == DECIDING).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Three files; the losses of two heads on them at every level.
    pub(super) fn found(losses: [[f64; 2]; 3]) -> Findings {
        let heads = vec![ReturnHead::Fourier, ReturnHead::HlGauss];
        let settings = Settings {
            data: PathBuf::new(),
            horizon: 1000,
            heads: heads.clone(),
            splits: 1,
            held_out: 0.2,
            asked: 10,
            training: Training::default(),
            seed: 1,
        };
        let files = ["a", "b", "c"].map(str::to_owned);
        let runs = files.iter().zip(losses).flat_map(|(file, losses)| {
            heads.iter().zip(losses).map(|(&head, loss)| {
                let score = Score { nats: None, pinball: [loss; 4], below: [0.5; 4] };
                Run { file: file.clone(), split: 0, head, score }
            })
        });
        Findings { settings, files: files.to_vec(), runs: runs.collect() }
    }

    #[test]
    fn the_rule_counts_files_within_a_hundredth() {
        let found = found([[1.005, 1.0], [1.02, 1.0], [1.0, 1.3]]);
        let fourier = found.rule(ReturnHead::Fourier);
        assert_eq!(fourier, Verdict { good: 2, needed: 2 });
        assert!(fourier.is_met());
        let other = found.rule(ReturnHead::HlGauss);
        assert_eq!(other, Verdict { good: 2, needed: 2 });
        assert!((found.against_best("c", ReturnHead::HlGauss, 0) - 1.3).abs() < 1e-12);
        let worse = self::found([[1.02, 1.0], [1.02, 1.0], [1.0, 1.0]]);
        assert!(!worse.rule(ReturnHead::Fourier).is_met());
    }

    #[test]
    fn an_unfit_file_is_found_before_the_work() {
        let starter = std::path::Path::new(env!("CARGO_MANIFEST_DIR"))
            .join("../../datasets/starter/mujoco/hopper_medium.hdf5");
        let folder = tempfile::tempdir().unwrap();
        std::fs::copy(starter, folder.path().join("a.hdf5")).unwrap();
        std::fs::write(folder.path().join("b.hdf5"), "").unwrap();
        let settings = Settings {
            data: folder.path().to_owned(),
            training: Training { updates: 1, batch_size: 2, width: 4 },
            ..found([[1.0; 2]; 3]).settings
        };
        let done = std::sync::atomic::AtomicUsize::new(0);
        let count = || {
            done.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
        };
        assert!(run(&settings, &count).unwrap_err().to_string().contains("b.hdf5"));
        assert_eq!(done.into_inner(), 0);
    }

    /// A file of forty episodes, of which half earn 1 a step.
    #[test]
    fn runs_are_seeded_and_complete() {
        let recorded = Recorded::test();
        let settings = Settings {
            heads: vec![ReturnHead::Fourier, ReturnHead::Expectile],
            splits: 2,
            training: Training { updates: 20, batch_size: 16, width: 8 },
            ..found([[1.0; 2]; 3]).settings
        };
        let runs = measure(&recorded, &settings, &|| ()).unwrap();
        assert_eq!(runs.len(), 4);
        assert_eq!(measure(&recorded, &settings, &|| ()).unwrap(), runs);
        assert!(runs.iter().all(|run| run.score.nats.is_some() == run.head.has_density()));
        assert_ne!(runs[0].score, runs[2].score, "another split");
    }
}
