//! [`Recorded`]: a recording's observations, and the returns still to come as a Decision
//! Transformer is told them with `model.return_unit=rate`.

use std::{
    fs,
    ops::Range,
    path::{Path, PathBuf},
};

use overtone_data::{Dataset, DatasetOptions, Recording, StoredObservations, read};
use overtone_model::AverageReturn;

use super::ReturnHeadsError;
use crate::forecast::binning::quantile;

/// The recordings that `data` names: itself, or the HDF5 files of a folder by name.
///
/// # Errors
/// When the folder cannot be listed, or there is none in it.
pub fn paths(data: &Path) -> Result<Vec<PathBuf>, ReturnHeadsError> {
    if data.is_file() {
        return Ok(vec![data.to_owned()]);
    }
    let failed = |source| ReturnHeadsError::Folder { path: data.to_owned(), source };
    let mut paths = Vec::new();
    for entry in fs::read_dir(data).map_err(failed)? {
        paths.push(entry.map_err(failed)?.path());
    }
    paths.retain(|path| path.extension().is_some_and(|end| end == "hdf5"));
    paths.sort();
    match paths.is_empty() {
        true => Err(ReturnHeadsError::Empty { path: data.to_owned() }),
        false => Ok(paths),
    }
}

/// A recording in memory.
#[derive(Clone, Debug, PartialEq)]
pub struct Recorded {
    /// The file's, without its end.
    pub name: String,
    /// Numbers of an observation.
    pub width: usize,
    /// `[rows, width]`, in units of their standard deviations over all rows, held-out ones too.
    observations: Vec<f32>,
    /// `[rows]`, in [-1, 1]: the place of the average return still to come between the 5th and
    /// the 95th percentile of all of them.
    told: Vec<f32>,
    /// The rows of each episode.
    pub episodes: Vec<Range<usize>>,
}

impl Recorded {
    /// Reads a recording whose episodes may last `horizon` steps.
    ///
    /// # Errors
    /// When it cannot be read, or is of frames.
    pub fn read(path: &Path, horizon: usize) -> Result<Self, ReturnHeadsError> {
        let frames = || ReturnHeadsError::Frames { path: path.to_owned() };
        let Recording::Columns(columns) = read::open(path)? else { return Err(frames()) };
        let dataset = Dataset::of(columns, &DatasetOptions::default())?;
        let name = path.file_stem().unwrap_or_default().to_string_lossy().into_owned();
        Self::of(&dataset, name, AverageReturn { horizon }).ok_or_else(frames)
    }

    /// A dataset's finished episodes; `None`: they are of frames.
    fn of(dataset: &Dataset, name: String, average: AverageReturn) -> Option<Self> {
        let StoredObservations::Vectors { width, values, normalization } = dataset.observations()
        else {
            return None;
        };
        let mut observations = values.clone();
        normalization.apply(&mut observations);
        let episodes: Vec<Range<usize>> =
            dataset.episodes().as_slice().iter().map(|episode| episode.range()).collect();
        let rates = episodes.iter().flat_map(|rows| {
            let to_go = &dataset.returns_to_go()[rows.clone()];
            to_go.iter().zip(0..).map(|(to_go, timestep)| to_go * average.factor(timestep))
        });
        Some(Self {
            name,
            width: *width,
            observations,
            told: places(&rates.collect::<Vec<f32>>()),
            episodes,
        })
    }

    /// The rows of these episodes.
    pub fn rows(&self, episodes: &[usize]) -> Vec<usize> {
        episodes.iter().flat_map(|&episode| self.episodes[episode].clone()).collect()
    }

    /// The returns of these rows.
    pub fn told(&self, rows: &[usize]) -> Vec<f32> {
        rows.iter().map(|&row| self.told[row]).collect()
    }

    /// The observations of these rows, `[rows, width]`.
    pub fn observations(&self, rows: &[usize]) -> Vec<f32> {
        let of = |&row: &usize| &self.observations[row * self.width..(row + 1) * self.width];
        rows.iter().flat_map(of).copied().collect()
    }

    /// Two arms whose returns `at` gives by their quantile: observations −1 and 1 by turns, each
    /// step an episode, the quantiles spread evenly.
    #[cfg(test)]
    pub fn arms(n: usize, at: impl Fn(f64, usize) -> f64) -> Self {
        let of = |row: usize| at(((row / 2) as f64 + 0.5) / n as f64, row % 2) as f32;
        Self {
            name: "arms".into(),
            width: 1,
            observations: (0..2 * n).map(|row| if row % 2 == 0 { -1.0 } else { 1.0 }).collect(),
            told: (0..2 * n).map(of).collect(),
            episodes: (0..2 * n).map(|row| row..row + 1).collect(),
        }
    }

    /// Two arms with uniform returns, one of them above 0.
    #[cfg(test)]
    pub fn test() -> Self {
        Self::arms(100, |q, arm| if arm == 0 { 2.0 * q - 1.0 } else { q })
    }
}

/// The place of each between the 5th and the 95th percentile, from −1 to 1; beyond as the ends.
fn places(rates: &[f32]) -> Vec<f32> {
    let mut sorted: Vec<f64> = rates.iter().map(|&rate| f64::from(rate)).collect();
    sorted.sort_unstable_by(f64::total_cmp);
    if sorted.is_empty() {
        return Vec::new();
    }
    let [low, high] = [0.05, 0.95].map(|q| quantile(&sorted, q));
    let [low, high] = if low < high { [low, high] } else { [low - 1.0, low + 1.0] };
    let place = |&rate: &f32| 2.0 * (f64::from(rate) - low) / (high - low) - 1.0;
    rates.iter().map(|rate| place(rate).clamp(-1.0, 1.0) as f32).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use overtone_core::{Episode, Outcome};
    use overtone_data::{ActionColumn, Columns, ObservationColumn};

    #[test]
    fn places_lie_between_percentiles() {
        let rates: Vec<f32> = (0..=100).map(|n| n as f32).collect();
        let told = places(&rates);
        assert_eq!([told[0], told[5], told[50], told[95], told[100]], [-1.0, -1.0, 0.0, 1.0, 1.0]);
        assert!((told[14] + 0.8).abs() < 1e-6);
        assert_eq!(places(&[3.0, 3.0]), [0.0, 0.0]);
        assert!(places(&[]).is_empty());
    }

    /// One reward a step until the horizon of four: the same rate everywhere. The other episode
    /// earns in its first step alone.
    #[test]
    fn what_is_told_is_a_rate() {
        let observations =
            ObservationColumn::Vectors { width: 2, values: (0..16).map(|n| n as f32).collect() };
        let actions = ActionColumn::Continuous { width: 1, values: vec![0.0; 8] };
        let rewards = vec![1.0, 1.0, 1.0, 1.0, 4.0, 0.0, 0.0, 0.0];
        let episode = |start| Episode { start, length: 4, outcome: Outcome::Truncated };
        let columns = Columns::new(observations, actions, rewards, vec![episode(0), episode(4)]);
        let dataset = Dataset::of(columns, &DatasetOptions::default()).unwrap();
        let average = AverageReturn { horizon: 4 };
        let recorded = Recorded::of(&dataset, "two".into(), average).unwrap();
        assert_eq!(recorded.rows(&[1]), [4, 5, 6, 7]);
        assert_eq!(recorded.told(&[0, 1, 2, 3, 4]), [1.0; 5]);
        assert_eq!(recorded.told(&[5, 6, 7]), [-1.0; 3]);
        let seen = recorded.observations(&[0, 7]);
        assert!((seen[0] + seen[2]).abs() < 1e-5 && seen[0] < -1.0, "{seen:?}");
    }

    #[test]
    fn folders_without_recordings_are_refused() {
        let folder = tempfile::tempdir().unwrap();
        assert!(matches!(paths(folder.path()), Err(ReturnHeadsError::Empty { .. })));
        fs::write(folder.path().join("b.hdf5"), "").unwrap();
        fs::write(folder.path().join("a.hdf5"), "").unwrap();
        fs::write(folder.path().join("c.json"), "").unwrap();
        let found = paths(folder.path()).unwrap();
        assert_eq!(found, [folder.path().join("a.hdf5"), folder.path().join("b.hdf5")]);
        assert_eq!(paths(&found[0]).unwrap(), found[..1]);
        let absent = paths(&folder.path().join("absent")).unwrap_err();
        assert!(absent.to_string().contains("absent"));
        assert!(Recorded::read(&found[0], 10).is_err());
    }
}
