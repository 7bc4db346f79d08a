//! The learning rate as a function of the action labels seen so far.

use serde::{Deserialize, Serialize};

/// Linear warm-up, then cosine decay to a tenth, in units of tokens.
///
/// A token here is one action label (one real timestep), as in the reference. The rate is
/// changed *after* each step, so the very first step uses the full rate.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Schedule {
    /// Peak learning rate.
    pub learning_rate: f64,
    /// Labels during which the rate rises from zero.
    pub warmup_tokens: f64,
    /// Labels at which the cosine would reach zero; the rate never falls below a tenth of
    /// its peak.
    pub final_tokens: f64,
}

impl Schedule {
    /// The learning rate of the step before which `tokens` labels have been seen.
    ///
    /// ```
    /// use overtone_train::Schedule;
    /// let s = Schedule { learning_rate: 1.0, warmup_tokens: 60.0, final_tokens: 250.0 };
    /// assert_eq!(s.at(0), 1.0); // the first step, before any change
    /// assert_eq!(s.at(15), 0.25);
    /// assert_eq!(s.at(155), 0.5); // half way through the cosine
    /// assert_eq!(s.at(10_000), 0.1);
    /// ```
    pub fn at(&self, tokens: u64) -> f64 {
        if tokens == 0 {
            return self.learning_rate;
        }
        let tokens = tokens as f64;
        let factor = if tokens < self.warmup_tokens {
            tokens / self.warmup_tokens.max(1.0)
        } else {
            let span = (self.final_tokens - self.warmup_tokens).max(1.0);
            // Past the horizon the reference's cosine would rise again; it is held instead.
            let progress = ((tokens - self.warmup_tokens) / span).min(1.0);
            (0.5 * (1.0 + (std::f64::consts::PI * progress).cos())).max(0.1)
        };
        self.learning_rate * factor
    }
}

#[cfg(test)]
mod tests {
    use super::Schedule;

    #[test]
    fn the_reference_recipe() {
        // 6e-4, batch 128 of 30 labels: 3,840 a step; warm-up 10,240.
        let schedule = Schedule { learning_rate: 6e-4, warmup_tokens: 10_240.0, final_tokens: 9e7 };
        let rates: Vec<f64> = (0..3).map(|step| schedule.at(3_840 * step) / 6e-4).collect();
        assert_eq!(rates, [1.0, 0.375, 0.75]);
        // End of epoch e of 500,000 labels × 30: p ≈ e/6.
        for (epoch, expected) in [(1, 0.933), (2, 0.75), (3, 0.5), (4, 0.25), (5, 0.1)] {
            let factor = schedule.at(epoch * 15_000_000) / 6e-4;
            assert!((factor - expected).abs() < 1e-3, "epoch {epoch}: {factor}");
        }
    }
}
