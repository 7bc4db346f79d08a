//! [`Split`]: which episodes are kept out of training, so that a model can be measured on them.

use overtone_core::seed;

use crate::error::DataError;
use crate::sample::sampler::WindowSampler;
use crate::sample::shuffle::permutation;

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
        Self::draw_groups(&(0..n_episodes).collect::<Vec<_>>(), share, run_seed)
    }

    /// As [`draw`](Self::draw), with copies on one side. `firsts[i]` is the first episode of which
    /// episode `i` is a copy.
    ///
    /// Groups are drawn, not episodes that pull their copies in: otherwise an episode with copies
    /// would be held out more often than another one.
    pub(crate) fn draw_groups(
        firsts: &[usize],
        share: f64,
        run_seed: u64,
    ) -> Result<Self, DataError> {
        let n_episodes = firsts.len();
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
        let mut sizes = vec![0; n_episodes];
        firsts.iter().for_each(|&first| sizes[first] += 1);
        let mut is_held_out = vec![false; n_episodes];
        let mut n_drawn = 0;
        for first in permutation(n_episodes, seed::derive(run_seed, "held-out")) {
            if n_drawn >= n_held_out {
                break;
            }
            is_held_out[first as usize] = true;
            n_drawn += sizes[first as usize];
        }
        let (held_out, training): (Vec<usize>, Vec<usize>) =
            (0..n_episodes).partition(|&episode| is_held_out[firsts[episode]]);
        if training.is_empty() {
            return Err(DataError::Sampling(
                "train.held_out leaves no episode to train on, because copies of an episode stay \
                 together: use a smaller share"
                    .into(),
            ));
        }
        Ok(Self { training, held_out })
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
