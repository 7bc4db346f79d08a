//! Configuration of a training run.

use documented::DocumentedFields;
use overtone_model::decision_transformer::{Form, Half};
use serde::{Deserialize, Serialize};

use crate::{error::TrainError, optimizer::AdamWConfig, schedule::Schedule, shortened::Shortened};
pub use overtone_data::Sampling;

/// Length and settings of training. The docs of the fields are the program's help.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, DocumentedFields)]
#[serde(deny_unknown_fields)]
pub struct TrainConfig {
    /// Optimizer steps; 0: as many as epochs need. On 2 cores about five per second on frames,
    /// twenty on vectors.
    pub updates: u64,
    /// Passes over the data, used when updates is 0; the reference uses 5 on games.
    pub epochs: u64,
    /// Contexts per step. The reference uses 128 on frames, which is too slow on a CPU, and 64 on
    /// vectors.
    pub batch_size: usize,
    /// Number of parts of a batch, a power of two. One process computes the parts one after the
    /// other, which saves memory; several processes of mpirun share them (docs/scaling.md). The
    /// weights do not depend on the number of processes.
    pub micro_batches: usize,
    /// Peak learning rate. The reference uses 6e-4 on frames and 1e-4 on vectors, with 50 times as
    /// many updates.
    pub learning_rate: f64,
    /// cosine: falls to a tenth at the end of the run, which helps short runs. constant: stays the
    /// same, as in the reference on vectors.
    pub schedule: ScheduleKind,
    /// Timesteps of linear warm-up, at most a tenth of the run (cosine only).
    pub warmup_tokens: f64,
    /// Updates after which the cosine would reach zero, as a multiple of the run's (cosine only).
    /// The reference uses 1.2 on frames. The rate never falls below a tenth.
    pub decay_horizon: f64,
    /// Updates of linear warm-up, at most a tenth of the run; the reference uses 10,000 (constant
    /// only).
    pub warmup_updates: u64,
    /// Learning rates exactly as in the reference's code. Cosine: the first update has the full
    /// rate, and warm-up and decay count the timesteps seen. Cosine and constant: the warm-up has
    /// its full length, however long the run is.
    pub reference_schedule: bool,
    /// Constants of AdamW and of clipping.
    pub optimizer: AdamWConfig,
    /// Act with running averages of the weights instead of the last weights. The averages cover
    /// about the last n^(2/3) of the actor's n updates, e.g. 160 of 2000. The reference has none.
    pub average_weights: bool,
    /// uniform: each timestep is the last of its context once per epoch. released: the reference's
    /// full windows on frames. from_start: the reference's contexts on vectors, which start at a
    /// random timestep.
    pub sampling: Sampling,
    /// Steps between rows of metrics.csv and points in TensorBoard.
    pub log_every: u64,
    /// Checkpoint interval in steps; a crash loses at most this many.
    pub checkpoint_every: u64,
    /// Number of newest checkpoints to keep. With held-out episodes, the best one is kept as well.
    pub keep_checkpoints: usize,
    /// Fraction of episodes to hold out from training, chosen with the seed. Every checkpoint
    /// measures the loss on them. The checkpoint with the lowest loss is kept, and `evaluate
    /// rollouts checkpoint=best` uses it. For td3_bc, iql, rebrac and discrete_cql, this loss does
    /// not select a best checkpoint. 0: train on all data, as in the reference.
    pub held_out: f64,
    /// Precision of matrix products and convolutions: f32, or bf16. With bf16, factors are rounded
    /// to 8 bits; weights and everything else stay in f32. It is slower on the CPU. On an H200, a
    /// step of the paper's Atari model takes a seventh of the time (docs/gpu.md).
    pub precision: Precision,
    /// Number of steps whose losses are read from the device together. 0: 1 on the CPU, and
    /// log_every on a GPU, because each read stalls it.
    pub read_every: u64,
    /// On a GPU, keep all frames in its memory if they take at most this many GB; the paper's
    /// 500,000 take 3.5 (pixels only).
    pub frames_on_gpu_gb: f64,
}

/// The learning rate after its warm-up.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ScheduleKind {
    /// Falls as a cosine, to a tenth.
    #[default]
    Cosine,
    /// Stays the same.
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
    /// The operations with this precision.
    pub fn form(self) -> Form {
        match self {
            Self::F32 => Form::Auto,
            Self::Bf16 => Form::Mixed(Half::Bf16),
        }
    }
}

impl Default for TrainConfig {
    /// Values for a small model on small data, on a CPU: 1000 steps at a constant learning rate.
    /// The program's defaults depend on the task and the algorithm.
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
    /// Checks the values that the types do not.
    ///
    /// # Errors
    /// Names the first key with an invalid value.
    pub fn validate(&self) -> Result<(), TrainError> {
        let wrong = |key, got: String, expected| Err(TrainError::Config { key, got, expected });
        if self.updates == 0 && self.epochs == 0 {
            return wrong("updates", "0".into(), "must be positive if epochs is 0");
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
        // Days on any machine: probably a typing mistake, and a product that overflows.
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
            return wrong(
                "micro_batches",
                got,
                "must be a power of two that divides train.batch_size",
            );
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
            // Steps compute in `f32`.
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

    /// Steps of warm-up: at most a tenth of the run, except in the reference's schedule.
    fn warmup(&self, n_updates: u64, labels: usize) -> f64 {
        let configured = self.configured_warmup(labels);
        if self.reference_schedule { configured } else { configured.min(n_updates as f64 / 10.0) }
    }

    /// Steps of warm-up according to the keys.
    fn configured_warmup(&self, labels: usize) -> f64 {
        match self.schedule {
            ScheduleKind::Cosine => self.warmup_tokens / labels.max(1) as f64,
            ScheduleKind::Constant => self.warmup_updates as f64,
        }
    }

    /// The warm-up, if a tenth of the run limits it.
    pub(crate) fn shortened_warmup(&self, n_updates: u64, labels: usize) -> Option<Shortened> {
        let [requested, taken] = [self.configured_warmup(labels), self.warmup(n_updates, labels)];
        let key = match self.schedule {
            ScheduleKind::Cosine => "train.warmup_tokens",
            ScheduleKind::Constant => "train.warmup_updates",
        };
        (taken < requested).then(|| Shortened { key: key.into(), requested, taken })
    }

    /// Optimizer steps over `n_positions` drawable contexts.
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
    fn excessive_values_are_refused_and_no_product_overflows() {
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

    /// Learning rates of a run of `n` updates on batches of 640 labels, as fractions of the peak.
    fn rates(config: &TrainConfig, n: u64) -> Vec<f64> {
        let schedule = config.schedule(n, 640);
        (0..n).map(|step| schedule.at(step, 640 * step) / config.learning_rate).collect()
    }

    #[test]
    fn a_warm_up_takes_at_most_a_tenth_of_the_run() {
        // 50,000 labels are 78 updates: 50 updates have a warm-up of 5, 2000 of all 78.
        let config = cosine(50_000.0);
        let short = rates(&config, 50);
        assert!((short[0] - 0.2).abs() < 1e-12 && (short[4] - 1.0).abs() < 1e-12, "{short:?}");
        assert!((short[49] - 0.1).abs() < 1e-12, "{short:?}");
        let key = "train.warmup_tokens".into();
        let shortened = Shortened { key, requested: 78.125, taken: 5.0 };
        assert_eq!(config.shortened_warmup(50, 640), Some(shortened));
        assert_eq!(config.shortened_warmup(2000, 640), None);
        // One update, as in fine-tuning, has the rate at the end of a run.
        assert!((rates(&config, 1)[0] - 0.1).abs() < 1e-12);
        let constant =
            TrainConfig { warmup_updates: 10_000, schedule: ScheduleKind::Constant, ..config };
        assert_eq!(rates(&constant, 20)[..3], [0.5, 1.0, 1.0]);
    }

    #[test]
    fn reference_schedule_has_the_references_rates() {
        let reference = TrainConfig { reference_schedule: true, ..cosine(64_000.0) };
        // The first update at the full rate, then 640 of 64,000 labels.
        assert_eq!(rates(&reference, 50)[..3], [1.0, 0.01, 0.02]);
        assert_eq!(reference.shortened_warmup(50, 640), None);
        let constant =
            TrainConfig { warmup_updates: 100, schedule: ScheduleKind::Constant, ..reference };
        assert!((rates(&constant, 50)[49] - 0.5).abs() < 1e-12);
    }

    #[test]
    fn values_that_are_0_in_float32_are_refused() {
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
