//! [`Split`]: which episodes are kept out of training, so that a model can be measured on them.

use std::collections::HashSet;

use overtone_core::seed;

use crate::error::DataError;
use crate::sampler::WindowSampler;
use crate::shuffle::permutation;

/// One of the two parts of a dataset.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Subset {
    /// The training data.
    Training,
    /// The validation data.
    HeldOut,
}

/// A dataset's episodes in two parts, as positions in their order, ascending.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Split {
    /// The training data; never empty.
    pub training: Vec<usize>,
    /// The validation data; empty if no episode is held out.
    pub held_out: Vec<usize>,
}

impl Split {
    /// Draws `share` of `n_episodes` whole episodes, rounded to the nearest number, to be held
    /// out in the run with seed `run_seed`. A share of 0 holds none out.
    ///
    /// # Errors
    /// [`DataError::Sampling`] when the share is not in [0, 1), or one above 0 leaves no
    /// episode on one side.
    pub fn draw(n_episodes: usize, share: f64, run_seed: u64) -> Result<Self, DataError> {
        let refuse = |what: String| {
            let reason = format!("train.held_out={share} {what}");
            Err(DataError::Sampling(reason))
        };
        if !(0.0..1.0).contains(&share) {
            return refuse("is not a fraction of the episodes: use a number in [0, 1)".into());
        }
        let n_held_out = (share * n_episodes as f64).round() as usize;
        if share > 0.0 && n_held_out == 0 {
            return refuse(format!(
                "holds out none of {n_episodes} episodes: use a larger share, or 0 to train on all"
            ));
        }
        if n_held_out == n_episodes {
            return refuse(format!(
                "leaves none of {n_episodes} episodes to train on: use a smaller share"
            ));
        }
        let mut order: Vec<usize> = permutation(n_episodes, seed::derive(run_seed, "held-out"))
            .into_iter()
            .map(|episode| episode as usize)
            .collect();
        let mut training = order.split_off(n_held_out);
        order.sort_unstable();
        training.sort_unstable();
        Ok(Self { training, held_out: order })
    }

    /// Holds out the copies of held-out episodes too. `firsts[i]` is the first episode that equals
    /// episode `i`.
    ///
    /// # Errors
    /// [`DataError::Sampling`] when no episode is left to train on.
    pub(crate) fn with_copies(mut self, firsts: &[usize]) -> Result<Self, DataError> {
        let seen: HashSet<usize> = self.held_out.iter().map(|&episode| firsts[episode]).collect();
        let (copies, training) =
            self.training.into_iter().partition::<Vec<_>, _>(|&i| seen.contains(&firsts[i]));
        if training.is_empty() {
            return Err(DataError::Sampling(
                "train.held_out leaves no episode to train on, because copies of an episode stay \
                 together: use a smaller share"
                    .into(),
            ));
        }
        self.held_out.extend(copies);
        self.held_out.sort_unstable();
        Ok(Self { training, ..self })
    }

    /// The episodes of a subset.
    pub fn episodes(&self, subset: Subset) -> &[usize] {
        match subset {
            Subset::Training => &self.training,
            Subset::HeldOut => &self.held_out,
        }
    }

    /// `sampler`, of the windows of a subset alone.
    ///
    /// # Errors
    /// As [`WindowSampler::among`].
    pub fn restrict(
        &self,
        sampler: WindowSampler,
        subset: Subset,
    ) -> Result<WindowSampler, DataError> {
        match (subset, self.held_out.is_empty()) {
            (Subset::Training, true) => Ok(sampler),
            _ => sampler.among(self.episodes(subset)),
        }
    }
}
