//! Several recordings of one task as one.

use std::path::PathBuf;

use overtone_core::Episodes;
use overtone_core::picture::FRAME;

use crate::error::{DataError, Fault};
use crate::read::column::{ActionColumn, ObservationColumn};
use crate::read::columns::{Columns, Mixture};
use crate::read::stored::Stored;
use crate::sample::dataset::{Dataset, StoredObservations};
use crate::sample::from_columns::digest;

impl Columns {
    /// All `parts` as one recording, drawn in proportion to `shares`; without shares, in proportion
    /// to their windows. The order of the parts has no effect, because they are sorted by hash.
    ///
    /// # Errors
    /// `Fault::Inconsistent` if two parts differ in the form of observations or actions, or a part
    /// does not fit together.
    ///
    /// # Panics
    /// Without parts, or with another number of shares: a caller's bug.
    pub fn concat(parts: Vec<Self>, shares: &[f32]) -> Result<Self, DataError> {
        assert!(shares.is_empty() || shares.len() == parts.len(), "shares of {shares:?}");
        let names: Vec<String> = parts.iter().map(|part| part.path.display().to_string()).collect();
        let mut parts: Vec<_> = parts.into_iter().enumerate().collect();
        for (_, part) in &parts {
            part.check()?;
        }
        let hashes = parts.iter().map(|(_, part)| part.hash()).collect::<Result<Vec<_>, _>>()?;
        parts.sort_by(|(a, _), (b, _)| hashes[*a].cmp(&hashes[*b]));
        let mut odd = Vec::new();
        for (place, hash) in hashes.iter().enumerate() {
            if let Some(before) = hashes[..place].iter().position(|other| other == hash) {
                let [first, second] = [&names[before], &names[place]];
                odd.push(format!(
                    "{first} and {second} hold the same steps, which count twice: leave one out"
                ));
            }
        }
        let n_with_log_probs =
            parts.iter().filter(|(_, part)| part.behavior_log_probs.is_some()).count();
        if n_with_log_probs > 0 {
            let without = parts.iter().filter(|(_, part)| part.behavior_log_probs.is_none());
            odd.extend(without.map(|(place, _)| {
                format!(
                    "{} has no behavior_log_probs, so those of the other recordings are not used",
                    names[*place]
                )
            }));
        }
        let shares = parts.iter().filter_map(|(place, _)| shares.get(*place).copied()).collect();
        let paths = parts.iter().map(|(_, part)| part.path.clone()).collect();
        let mut parts = parts.into_iter().map(|(_, part)| part);
        let mut all = parts.next().expect("a recording");
        all.mixture = Mixture { sources: vec![0; all.episodes.len()], shares, paths };
        for (before, part) in parts.enumerate() {
            all.append(part, before + 1)?;
        }
        all.path = PathBuf::from(names.join(","));
        all.odd.extend(odd);
        all.stored = Stored::default();
        Ok(all)
    }

    fn append(&mut self, part: Self, source: usize) -> Result<(), DataError> {
        let Ok(source) = u16::try_from(source) else {
            return Err(DataError::Sampling(format!("{source} recordings are too many")));
        };
        let first = self.n_transitions();
        let fits = self.observations.extend(part.observations) && self.actions.extend(part.actions);
        if !fits {
            let reason = format!(
                "its observations or actions have another form than those of {}",
                self.path.display()
            );
            return Err(Fault::Inconsistent(reason).at(part.path));
        }
        self.optional.extend(first, part.optional, part.rewards.len());
        self.rewards.extend(part.rewards);
        self.behavior_log_probs =
            self.behavior_log_probs.take().zip(part.behavior_log_probs).map(|(mut all, more)| {
                all.extend(more);
                all
            });
        self.mixture.sources.extend(vec![source; part.episodes.len()]);
        self.episodes.extend(part.episodes.into_iter().map(|mut episode| {
            episode.start += first;
            episode
        }));
        self.finished.extend(part.finished);
        self.odd.extend(part.odd);
        Ok(())
    }

    fn hash(&self) -> Result<String, DataError> {
        let episodes = Episodes::new(self.episodes.clone())
            .map_err(|error| Fault::Inconsistent(error.to_string()).at(&self.path))?;
        // A task may know of more actions than were recorded.
        let actions = match &self.actions {
            ActionColumn::Discrete { values, .. } => {
                &ActionColumn::Discrete { n_actions: 0, values: values.clone() }
            }
            continuous => continuous,
        };
        let hash = digest(&self.observations, actions, &self.rewards, None, &episodes);
        Ok(self.optional.hashed(hash))
    }
}

impl Dataset {
    /// A converted log as columns, its frames in memory: `[rows, 84, 84]` bytes.
    ///
    /// # Errors
    /// When the frames cannot be read.
    pub fn into_columns(self) -> Result<Columns, DataError> {
        let observations = match self.observations {
            StoredObservations::Vectors { width, values, .. } => {
                ObservationColumn::Vectors { width, values }
            }
            StoredObservations::Frames(frames) => {
                let mut pixels = vec![0; frames.rows() * FRAME];
                frames.read(0, &mut pixels)?;
                ObservationColumn::Frames { pixels }
            }
        };
        let episodes = self.index.episodes().as_slice().to_vec();
        let columns = Columns::new(observations, self.actions, self.rewards, episodes);
        Ok(Columns { path: self.path, finished: self.finished, odd: self.odd, ..columns })
    }
}
