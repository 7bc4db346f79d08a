//! The learning rate over a run.

use std::f64::consts::PI;

use serde::{Deserialize, Serialize};

/// Fraction of the peak below which a cosine does not fall.
const FLOOR: f64 = 0.1;

/// Learning rate by update.
///
/// An update has the rate at its end. The first of `W` updates of warm-up has `1/W` of the peak,
/// and the last update of a run has the final rate of the run.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case", deny_unknown_fields)]
pub enum Schedule {
    /// Linear warm-up, then cosine decay to a tenth.
    Cosine {
        /// Peak learning rate.
        learning_rate: f64,
        /// Updates of linear warm-up; less than 1: none.
        warmup_updates: f64,
        /// Updates after which the cosine would reach zero.
        final_updates: f64,
    },
    /// Linear warm-up, then constant, as in the reference on Gym.
    Constant {
        /// Learning rate after the warm-up.
        learning_rate: f64,
        /// Updates of linear warm-up; less than 1: none.
        warmup_updates: f64,
    },
    /// The cosine of the Atari reference, in units of tokens.
    ///
    /// A token here is one action label (one real timestep), as in the reference. The rate is
    /// changed *after* each step, so the very first step uses the full rate.
    ReferenceCosine {
        /// Peak learning rate.
        learning_rate: f64,
        /// Labels of linear warm-up from zero.
        warmup_tokens: f64,
        /// Labels at which the cosine would reach zero; the rate never falls below a tenth of its
        /// peak.
        final_tokens: f64,
    },
}

impl Schedule {
    /// The learning rate of the next step after `steps` optimizer steps and `tokens` action labels.
    ///
    /// ```
    /// use overtone_train::Schedule;
    /// let cosine =
    ///     Schedule::Cosine { learning_rate: 1.0, warmup_updates: 2.0, final_updates: 10.0 };
    /// assert_eq!([0, 1].map(|steps| cosine.at(steps, 0)), [0.5, 1.0]);
    /// assert_eq!(cosine.at(5, 0), 0.5); // its end is half way from 2 to 10
    /// assert_eq!([9, 700].map(|steps| cosine.at(steps, 0)), [0.1, 0.1]);
    ///
    /// let constant = Schedule::Constant { learning_rate: 1.0, warmup_updates: 4.0 };
    /// assert_eq!([0, 1, 2, 3, 4].map(|steps| constant.at(steps, 0)), [0.25, 0.5, 0.75, 1.0, 1.0]);
    ///
    /// let reference = Schedule::ReferenceCosine {
    ///     learning_rate: 1.0,
    ///     warmup_tokens: 60.0,
    ///     final_tokens: 250.0,
    /// };
    /// assert_eq!(reference.at(0, 0), 1.0); // the first step, before any change
    /// assert_eq!(reference.at(1, 15), 0.25);
    /// assert_eq!(reference.at(9, 155), 0.5); // half way through the cosine
    /// ```
    pub fn at(&self, steps: u64, tokens: u64) -> f64 {
        let end = (steps + 1) as f64;
        match *self {
            Self::Cosine { learning_rate, warmup_updates, final_updates } => {
                let factor = if end < warmup_updates {
                    end / warmup_updates
                } else {
                    cosine(end, warmup_updates, final_updates)
                };
                learning_rate * factor
            }
            Self::Constant { learning_rate, warmup_updates } => {
                learning_rate * (end / warmup_updates.max(1.0)).min(1.0)
            }
            Self::ReferenceCosine { learning_rate, warmup_tokens, final_tokens } => {
                let tokens = tokens as f64;
                let factor = if tokens == 0.0 {
                    1.0
                } else if tokens < warmup_tokens {
                    tokens / warmup_tokens.max(1.0)
                } else {
                    cosine(tokens, warmup_tokens, final_tokens)
                };
                learning_rate * factor
            }
        }
    }
}

/// Half a cosine from `first` to `last`, at least [`FLOOR`]. Beyond its end, the reference's cosine
/// would rise again; this one stays.
fn cosine(at: f64, first: f64, last: f64) -> f64 {
    let span = last - first;
    let progress = if span > 0.0 { ((at - first) / span).min(1.0) } else { 1.0 };
    (0.5 * (1.0 + (PI * progress).cos())).max(FLOOR)
}

#[cfg(test)]
mod tests {
    use super::Schedule;

    #[test]
    fn the_atari_recipe() {
        // 6e-4, batch 128 of 30 labels: 3,840 a step; warm-up 10,240.
        let schedule = Schedule::ReferenceCosine {
            learning_rate: 6e-4,
            warmup_tokens: 10_240.0,
            final_tokens: 9e7,
        };
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
        let schedule = Schedule::Constant { learning_rate: 1.0, warmup_updates: 10_000.0 };
        let at = |steps| schedule.at(steps, 1_280 * steps);
        assert_eq!([0, 4_999, 9_999, 10_000, 99_999].map(at), [1e-4, 0.5, 1.0, 1.0, 1.0]);
        let constant = Schedule::Constant { learning_rate: 1e-4, warmup_updates: 0.0 };
        assert_eq!([0, 7].map(|steps| constant.at(steps, 0)), [1e-4, 1e-4]);
    }

    /// Properties for any length: no update of the run is above the peak, the first update is below
    /// it if there is a warm-up, and the last one is at a tenth.
    #[test]
    fn a_cosine_of_any_length_ends_at_a_tenth() {
        for n in [1u64, 2, 9, 10, 11, 50, 2_000] {
            let warmup_updates = n as f64 / 10.0;
            let schedule =
                Schedule::Cosine { learning_rate: 1.0, warmup_updates, final_updates: n as f64 };
            let rates: Vec<f64> = (0..n).map(|step| schedule.at(step, 0)).collect();
            assert!((rates[rates.len() - 1] - 0.1).abs() < 1e-12, "{n}: {rates:?}");
            assert!(rates.iter().all(|rate| (0.0..=1.0).contains(rate)), "{n}: {rates:?}");
            assert_eq!(rates[0] < 1.0, n != 10, "{n}: {}", rates[0]);
        }
    }
}
