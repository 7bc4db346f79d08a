//! [`Curve`]: checkpoints played while training waits, for curves of returns.
//!
//! Training knows nothing of it: its observer is asked for figures of a checkpoint, and plays the
//! files that were just written.

use std::{sync::atomic::AtomicBool, time::Instant};

use anyhow::{Context, Result};
use overtone_agents::Agent;
use overtone_eval::Evaluation;
use overtone_model::device::Chosen;
use overtone_train::{Checkpoint, RunDir};

use super::{plan, playing};
use crate::settings::{Choosable, EvaluationSettings, Settings};

/// Seed of the episodes, which no score is made of: one that picks a checkpoint by the curve would
/// else score it by the episodes that picked it.
const SEED: u64 = 2001;

/// Which checkpoints of a run are played, and how.
pub struct Curve<'a> {
    run: &'a RunDir,
    /// As after training, with fewer and other episodes.
    options: EvaluationSettings,
    /// Updates between two that are played.
    every: u64,
    /// The run's last update.
    last: u64,
    /// Whether that is played after training anyway, and its returns end the curve.
    is_played_after: bool,
    device: &'a Chosen,
    stop: &'a AtomicBool,
}

impl<'a> Curve<'a> {
    /// What `settings` say of a run of `n_updates`; `None` where no checkpoint is to be played.
    pub fn of(
        settings: &Settings,
        n_updates: u64,
        run: &'a RunDir,
        device: &'a Chosen,
        stop: &'a AtomicBool,
    ) -> Option<Self> {
        let evaluation = &settings.evaluation;
        let every = evaluation.every as u64 * settings.train.checkpoint_every;
        (every > 0).then(|| Self {
            run,
            options: EvaluationSettings {
                episodes: evaluation.every_episodes,
                seed: if evaluation.seed == SEED { SEED + 1 } else { SEED },
                ..evaluation.clone()
            },
            every,
            last: n_updates,
            is_played_after: evaluation.episodes > 0,
            device,
            stop,
        })
    }

    /// Whether the agent may be told something else after training than here, a share of the best
    /// episodes in place of a return, whose returns are another curve.
    fn is_told_otherwise_after(&self, checkpoint: &Checkpoint) -> Result<bool> {
        let may_choose = self.options.best_percent() == Choosable::Chosen;
        Ok(may_choose && !Agent::of(checkpoint)?.best_percents().is_empty())
    }

    /// Mean returns of a checkpoint whose turn it is, by the names of their curves; none of
    /// another. A sentence about them is for people.
    ///
    /// # Errors
    /// When it cannot be played, or playing is stopped.
    pub fn play(&self, checkpoint: &Checkpoint) -> Result<(Vec<(String, f64)>, String)> {
        let step = checkpoint.state.step;
        let is_due = match step == self.last {
            true => !self.is_played_after || self.is_told_otherwise_after(checkpoint)?,
            false => step.is_multiple_of(self.every),
        };
        if !is_due {
            return Ok((Vec::new(), String::new()));
        }
        let started = Instant::now();
        // The first protocol's: the others' returns are no curve of the same thing.
        let mut planned = plan(self.run, checkpoint, None, &self.options)?.into_iter();
        let entry = planned.next().context("there is no protocol to play by")?.entry;
        let parallel = self.options.parallel;
        let played = playing::play(&[&entry], self.device, parallel, self.stop)?;
        let evaluation = played.into_iter().next().context("nothing was played")??;
        let told = evaluation.targets.iter().map(|target| {
            let normalized = target.normalized.as_ref().map(|summary| summary.mean);
            let normalized = normalized.map(|n| format!(", normalized {n:.1}")).unwrap_or_default();
            let told = evaluation.setting.told(target.target_return);
            let told = told.map(|told| format!(" (told {told})")).unwrap_or_default();
            format!("{:.1}{normalized}{told}", target.raw_return.mean)
        });
        let told: Vec<String> = told.collect();
        let told = format!(
            "update {step}: mean return {} in {} episodes; training waited {:.1} s",
            told.join("; "),
            evaluation.episodes.len(),
            started.elapsed().as_secs_f64()
        );
        Ok((scores(&evaluation), told))
    }
}

/// Mean returns of an evaluation by the names of their curves, raw and normalized ones; each curve
/// is of what the agent was told.
pub fn scores(evaluation: &Evaluation) -> Vec<(String, f64)> {
    let Evaluation { setting, targets, .. } = evaluation;
    let curves = targets.iter().flat_map(|target| {
        let told = match setting.protocol.best_percent {
            _ if setting.heeded().target => format!("target_{}", target.target_return),
            0.0 => "no_target".to_owned(),
            percent => format!("best_{percent}"),
        };
        let raw = (format!("eval/raw_return/{told}"), target.raw_return.mean);
        let normalized = target.normalized.as_ref();
        let normalized =
            normalized.map(|summary| (format!("eval/normalized_return/{told}"), summary.mean));
        std::iter::once(raw).chain(normalized)
    });
    curves.collect()
}
