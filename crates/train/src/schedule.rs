//! The learning rate over a run.

use serde::{Deserialize, Serialize};

/// How the learning rate changes.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case", deny_unknown_fields)]
pub enum Schedule {
    /// Linear warm-up, then cosine decay to a tenth, in units of tokens: the Atari reference's.
    ///
    /// A token here is one action label (one real timestep), as in the reference. The rate is
    /// changed *after* each step, so the very first step uses the full rate.
    Cosine {
        /// Peak learning rate.
        learning_rate: f64,
        /// Labels during which the rate rises from zero.
        warmup_tokens: f64,
        /// Labels at which the cosine would reach zero; the rate never falls below a tenth of
        /// its peak.
        final_tokens: f64,
    },
    /// Linear warm-up, then constant, in units of optimizer steps: the reference's on Gym.
    Constant {
        /// Learning rate after the warm-up.
        learning_rate: f64,
        /// The first step at full rate, counted from 1: step `s` of these has `s/warmup_steps`
        /// of it. 0: no warm-up.
        warmup_steps: u64,
    },
}

impl Schedule {
    /// The learning rate of the step before which `steps` optimizer steps have been taken and
    /// `tokens` action labels seen.
    ///
    /// ```
    /// use overtone_train::Schedule;
    /// let cosine =
    ///     Schedule::Cosine { learning_rate: 1.0, warmup_tokens: 60.0, final_tokens: 250.0 };
    /// assert_eq!(cosine.at(0, 0), 1.0); // the first step, before any change
    /// assert_eq!(cosine.at(1, 15), 0.25);
    /// assert_eq!(cosine.at(9, 155), 0.5); // half way through the cosine
    /// assert_eq!(cosine.at(700, 10_000), 0.1);
    ///
    /// let constant = Schedule::Constant { learning_rate: 1.0, warmup_steps: 4 };
    /// assert_eq!([0, 1, 2, 3, 4].map(|steps| constant.at(steps, 0)), [0.25, 0.5, 0.75, 1.0, 1.0]);
    /// ```
    pub fn at(&self, steps: u64, tokens: u64) -> f64 {
        match *self {
            Self::Cosine { learning_rate, warmup_tokens, final_tokens } => {
                learning_rate * cosine(tokens, warmup_tokens, final_tokens)
            }
            Self::Constant { learning_rate, warmup_steps } => {
                learning_rate * ((steps + 1) as f64 / warmup_steps.max(1) as f64).min(1.0)
            }
        }
    }
}

fn cosine(tokens: u64, warmup_tokens: f64, final_tokens: f64) -> f64 {
    if tokens == 0 {
        return 1.0;
    }
    let tokens = tokens as f64;
    if tokens < warmup_tokens {
        return tokens / warmup_tokens.max(1.0);
    }
    let span = (final_tokens - warmup_tokens).max(1.0);
    // Past the horizon the reference's cosine would rise again; it is held instead.
    let progress = ((tokens - warmup_tokens) / span).min(1.0);
    (0.5 * (1.0 + (std::f64::consts::PI * progress).cos())).max(0.1)
}

#[cfg(test)]
mod tests {
    use super::Schedule;

    #[test]
    fn the_atari_recipe() {
        // 6e-4, batch 128 of 30 labels: 3,840 a step; warm-up 10,240.
        let schedule =
            Schedule::Cosine { learning_rate: 6e-4, warmup_tokens: 10_240.0, final_tokens: 9e7 };
        let at = |steps| schedule.at(steps, 3_840 * steps) / 6e-4;
        assert_eq!([0, 1, 2].map(at), [1.0, 0.375, 0.75]);
        // End of epoch e of 500,000 labels × 30: p ≈ e/6.
        for (epoch, expected) in [(1, 0.933), (2, 0.75), (3, 0.5), (4, 0.25), (5, 0.1)] {
            let factor = schedule.at(3_907 * epoch, epoch * 15_000_000) / 6e-4;
            assert!((factor - expected).abs() < 1e-3, "epoch {epoch}: {factor}");
        }
    }

    #[test]
    fn the_gym_recipe() {
        let schedule = Schedule::Constant { learning_rate: 1.0, warmup_steps: 10_000 };
        let at = |steps| schedule.at(steps, 1_280 * steps);
        assert_eq!([0, 4_999, 9_999, 10_000, 99_999].map(at), [1e-4, 0.5, 1.0, 1.0, 1.0]);
        let constant = Schedule::Constant { learning_rate: 1e-4, warmup_steps: 0 };
        assert_eq!([0, 7].map(|steps| constant.at(steps, 0)), [1e-4, 1e-4]);
    }
}
