//! How a training run is configured.

use overtone_model::decision_transformer::{Form, Half};
use serde::{Deserialize, Serialize};

use crate::{error::TrainError, optimizer::AdamWConfig, schedule::Schedule};
pub use overtone_data::Sampling;

/// How long and how to train. Defaults and their reasons stand in the presets.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TrainConfig {
    /// Optimizer steps; 0: as many as `epochs` need.
    pub updates: u64,
    /// When `updates` is 0: as many contexts are drawn as that many passes over the data have.
    /// They are passes where each context is drawn once before any is drawn again
    /// ([`WindowSampler`](overtone_data::WindowSampler)).
    pub epochs: u64,
    /// Contexts per step.
    pub batch_size: usize,
    /// Parts that a batch is cut into, a power of two. Their gradients are computed one after the
    /// other, or shared among as many processes, and summed up in an order that does not depend
    /// on who computed them: the weights depend on the number of parts alone.
    pub micro_batches: usize,
    /// Peak learning rate.
    pub learning_rate: f64,
    /// What the learning rate does after its warm-up.
    pub schedule: ScheduleKind,
    /// Cosine schedule: action labels of linear warm-up, as many as full contexts have. The warm-up
    /// takes at most a tenth of the run.
    pub warmup_tokens: f64,
    /// Cosine schedule: where it would reach zero, as a multiple of the run.
    pub decay_horizon: f64,
    /// Constant schedule: optimizer steps of linear warm-up. It takes at most a tenth of the run.
    pub warmup_updates: u64,
    /// Whether learning rates are the reference's, to the digit. Cosine schedule: warm-up and decay
    /// count the labels seen, and the first step has the full rate. Both: the warm-up is as long as
    /// its key says, however short the run is.
    pub reference_schedule: bool,
    /// Constants of AdamW and of clipping.
    pub optimizer: AdamWConfig,
    /// Whether running averages of the weights are what plays, in the place of the last ones: after
    /// step t of what acts those of its last t^(2/3) steps or so ([`Learner`](crate::Learner)).
    pub average_weights: bool,
    /// Which contexts are drawn.
    pub sampling: Sampling,
    /// Steps between two rows of the metrics.
    pub log_every: u64,
    /// Steps between two checkpoints.
    pub checkpoint_every: u64,
    /// Checkpoints kept, newest first; the one of lowest held-out loss is kept beside them.
    pub keep_checkpoints: usize,
    /// Share of whole episodes kept out of training, drawn with the run's seed; the loss on
    /// them is measured with every checkpoint. 0: all data is trained on.
    pub held_out: f64,
    /// Precision of matrix products and convolutions.
    pub precision: Precision,
    /// Steps whose losses and norms are read from the device together; 0: every step on the
    /// CPU, `log_every` on a GPU, which waits for each reading.
    pub read_every: u64,
    /// On a GPU all frames are kept there if they take at most this many GB (10⁹ bytes).
    pub frames_on_gpu_gb: f64,
}

/// What the learning rate does after its warm-up.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ScheduleKind {
    /// Falls as a cosine, to a tenth.
    #[default]
    Cosine,
    /// Stays.
    Constant,
}

/// Precision of matrix products and convolutions; everything else is in `f32`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Precision {
    /// 24 bits.
    #[default]
    F32,
    /// Factors are rounded to 8 bits: mixed precision.
    Bf16,
}

impl Precision {
    /// The operations that compute so.
    pub fn form(self) -> Form {
        match self {
            Self::F32 => Form::Auto,
            Self::Bf16 => Form::Mixed(Half::Bf16),
        }
    }
}

impl Default for TrainConfig {
    /// For a small model on small data, on a CPU: 1000 steps at a constant learning rate. The
    /// papers' settings are the program's presets.
    fn default() -> Self {
        Self {
            updates: 1000,
            epochs: 0,
            batch_size: 64,
            micro_batches: 1,
            learning_rate: 1e-3,
            schedule: ScheduleKind::Constant,
            warmup_tokens: 0.0,
            decay_horizon: 1.0,
            warmup_updates: 0,
            reference_schedule: false,
            optimizer: AdamWConfig::default(),
            average_weights: false,
            sampling: Sampling::Uniform,
            log_every: 50,
            checkpoint_every: 1000,
            keep_checkpoints: 1,
            held_out: 0.0,
            precision: Precision::F32,
            read_every: 0,
            frames_on_gpu_gb: 0.0,
        }
    }
}

impl TrainConfig {
    /// Checks what the types cannot.
    ///
    /// # Errors
    /// Names the first key whose value describes no training.
    pub fn validate(&self) -> Result<(), TrainError> {
        let wrong = |key, got: String, expected| Err(TrainError::Config { key, got, expected });
        if self.updates == 0 && self.epochs == 0 {
            return wrong("updates", "0".into(), "give updates or epochs");
        }
        for (key, value) in [
            ("batch_size", self.batch_size as u64),
            ("log_every", self.log_every),
            ("checkpoint_every", self.checkpoint_every),
            ("keep_checkpoints", self.keep_checkpoints as u64),
        ] {
            if value == 0 {
                return wrong(key, "0".into(), "must be at least 1");
            }
        }
        // Days on any machine: a slip of a digit, and a product that wraps.
        for (key, value, most, expected) in [
            ("updates", self.updates, 1_000_000_000, "must be at most 1000000000"),
            ("epochs", self.epochs, 1_000_000, "must be at most 1000000"),
        ] {
            if value > most {
                return wrong(key, value.to_string(), expected);
            }
        }
        // A batch is allocated as a whole.
        if self.batch_size > 65_536 {
            return wrong("batch_size", self.batch_size.to_string(), "must lie in 1 to 65536");
        }
        let parts = self.micro_batches;
        if !parts.is_power_of_two() || !self.batch_size.is_multiple_of(parts) {
            let got = format!("{parts} with train.batch_size={}", self.batch_size);
            return wrong("micro_batches", got, "must be a power of two that divides it");
        }
        let optimizer = &self.optimizer;
        for (key, value) in [
            ("learning_rate", self.learning_rate),
            ("decay_horizon", self.decay_horizon),
            ("optimizer.clip_norm", optimizer.clip_norm),
            ("optimizer.epsilon", optimizer.epsilon),
        ] {
            if !(value.is_finite() && value > 0.0) {
                return wrong(key, value.to_string(), "must be positive");
            }
            // What a step computes with.
            if !(value as f32 > 0.0 && (value as f32).is_finite()) {
                let got = format!("{value:e}");
                return wrong(key, got, "must be a positive number in float32, 1e-45 to 3e38");
            }
        }
        for (key, value) in [
            ("warmup_tokens", self.warmup_tokens),
            ("optimizer.weight_decay", optimizer.weight_decay),
            ("frames_on_gpu_gb", self.frames_on_gpu_gb),
        ] {
            if !(value.is_finite() && value >= 0.0) {
                return wrong(key, value.to_string(), "must be 0 or positive");
            }
        }
        for (key, value) in [
            ("held_out", self.held_out),
            ("optimizer.beta_1", optimizer.beta_1),
            ("optimizer.beta_2", optimizer.beta_2),
        ] {
            if !(0.0..1.0).contains(&value) {
                return wrong(key, value.to_string(), "must lie in [0, 1)");
            }
            if value as f32 == 1.0 {
                return wrong(key, value.to_string(), "must lie in [0, 1): in float32 it is 1");
            }
        }
        Ok(())
    }

    /// The learning rate over a run of `n_updates` steps on batches of up to `labels` action labels.
    pub(crate) fn schedule(&self, n_updates: u64, labels: usize) -> Schedule {
        let (learning_rate, n) = (self.learning_rate, n_updates as f64);
        let warmup_updates = self.warmup(n_updates, labels);
        match self.schedule {
            ScheduleKind::Cosine if self.reference_schedule => Schedule::ReferenceCosine {
                learning_rate,
                warmup_tokens: self.warmup_tokens,
                final_tokens: self.decay_horizon * n * labels as f64,
            },
            ScheduleKind::Cosine => Schedule::Cosine {
                learning_rate,
                warmup_updates,
                final_updates: self.decay_horizon * n,
            },
            ScheduleKind::Constant => Schedule::Constant { learning_rate, warmup_updates },
        }
    }

    /// Steps of warm-up: at most a tenth of the run, but for the reference's schedule.
    fn warmup(&self, n_updates: u64, labels: usize) -> f64 {
        let asked = self.asked_warmup(labels);
        if self.reference_schedule { asked } else { asked.min(n_updates as f64 / 10.0) }
    }

    /// Steps of warm-up that the keys ask for.
    fn asked_warmup(&self, labels: usize) -> f64 {
        match self.schedule {
            ScheduleKind::Cosine => self.warmup_tokens / labels.max(1) as f64,
            ScheduleKind::Constant => self.warmup_updates as f64,
        }
    }

    /// Steps of warm-up asked for and taken, where a tenth of the run is less than what the keys
    /// ask for.
    pub(crate) fn shortened_warmup(&self, n_updates: u64, labels: usize) -> Option<[f64; 2]> {
        let [asked, taken] = [self.asked_warmup(labels), self.warmup(n_updates, labels)];
        (taken < asked).then_some([asked, taken])
    }

    /// Optimizer steps on `n_positions` drawable contexts.
    pub fn n_updates(&self, n_positions: usize) -> u64 {
        match self.updates {
            0 => self.epochs.saturating_mul((n_positions as u64).div_ceil(self.batch_size as u64)),
            updates => updates,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_slip_of_a_digit_is_refused_and_no_product_wraps() {
        let config = TrainConfig { updates: 0, epochs: 3, batch_size: 4, ..TrainConfig::default() };
        // Nine contexts are three batches of four.
        assert_eq!(config.n_updates(9), 9);
        let long = TrainConfig { epochs: 1 << 62, ..config.clone() };
        assert_eq!(long.n_updates(16), u64::MAX, "four batches");
        let refused = |config: &TrainConfig| match config.validate() {
            Err(TrainError::Config { key, .. }) => key,
            other => panic!("{other:?}"),
        };
        assert_eq!(refused(&long), "epochs");
        let most = TrainConfig { updates: 1_000_000_000, ..config };
        most.validate().unwrap();
        assert_eq!(refused(&TrainConfig { updates: 1_000_000_001, ..most }), "updates");
    }

    fn cosine(warmup_tokens: f64) -> TrainConfig {
        TrainConfig { schedule: ScheduleKind::Cosine, warmup_tokens, ..TrainConfig::default() }
    }

    /// Rates of a run of so many updates on batches of 640 labels, as shares of the peak.
    fn rates(config: &TrainConfig, n: u64) -> Vec<f64> {
        let schedule = config.schedule(n, 640);
        (0..n).map(|step| schedule.at(step, 640 * step) / config.learning_rate).collect()
    }

    #[test]
    fn a_warm_up_takes_at_most_a_tenth_of_the_run() {
        // 50,000 labels are 78 updates: of 50 updates 5 are taken, of 2000 all 78.
        let config = cosine(50_000.0);
        let short = rates(&config, 50);
        assert!((short[0] - 0.2).abs() < 1e-12 && (short[4] - 1.0).abs() < 1e-12, "{short:?}");
        assert!((short[49] - 0.1).abs() < 1e-12, "{short:?}");
        assert_eq!(config.shortened_warmup(50, 640), Some([78.125, 5.0]));
        assert_eq!(config.shortened_warmup(2000, 640), None);
        // One update, as of fine-tuning, has the rate that a run ends at.
        assert!((rates(&config, 1)[0] - 0.1).abs() < 1e-12);
        let constant =
            TrainConfig { warmup_updates: 10_000, schedule: ScheduleKind::Constant, ..config };
        assert_eq!(rates(&constant, 20)[..3], [0.5, 1.0, 1.0]);
    }

    #[test]
    fn the_references_rates_are_kept_where_they_are_asked_for() {
        let reference = TrainConfig { reference_schedule: true, ..cosine(64_000.0) };
        // The first update at the full rate, then 640 of 64,000 labels.
        assert_eq!(rates(&reference, 50)[..3], [1.0, 0.01, 0.02]);
        assert_eq!(reference.shortened_warmup(50, 640), None);
        let constant =
            TrainConfig { warmup_updates: 100, schedule: ScheduleKind::Constant, ..reference };
        assert!((rates(&constant, 50)[49] - 0.5).abs() < 1e-12);
    }

    #[test]
    fn what_is_nothing_in_float32_is_refused() {
        let refused = |change: fn(&mut TrainConfig)| {
            let mut config = TrainConfig::default();
            change(&mut config);
            match config.validate() {
                Err(TrainError::Config { key, .. }) => key,
                other => panic!("{other:?}"),
            }
        };
        assert_eq!(refused(|config| config.optimizer.epsilon = 1e-46), "optimizer.epsilon");
        assert_eq!(refused(|config| config.learning_rate = 1e-50), "learning_rate");
        assert_eq!(refused(|config| config.optimizer.clip_norm = 1e39), "optimizer.clip_norm");
        assert_eq!(refused(|config| config.optimizer.beta_2 = 1.0 - 1e-12), "optimizer.beta_2");
    }
}
