//! [`Curve`]: evaluations during training, for curves of returns.
//!
//! The trainer does not evaluate: its observer evaluates the checkpoint that was just written. With
//! `evaluation.every=auto` the observer measures the time of an evaluation, and spends a tenth of
//! the run's time at most.

use std::{
    cell::Cell,
    sync::atomic::{AtomicBool, Ordering},
    time::{Duration, Instant},
};

use anyhow::{Context, Result};
use overtone_core::{ActingMode, decimal};
use overtone_eval::{Evaluation, TargetResult};
use overtone_model::device::Chosen;
use overtone_settings::{AutoOr, EvaluationConfig, RunConfig, suites};
use overtone_train::{Checkpoint, RunDir};

use super::{plan, playing};
use crate::interrupt;

/// Seed of the episodes. Scores use another seed: otherwise a checkpoint that is selected by the
/// curve would be scored on the episodes that selected it.
const SEED: u64 = 2001;

/// Parts of a run in automatic mode: an evaluation after each of the first seven, and one after
/// training.
const PARTS: u64 = 8;

/// Minimum updates of a run for automatic evaluations during training.
const MIN_UPDATES: u64 = 100;

/// Minimum seconds of a run for automatic evaluations during training.
const MIN_SECONDS: f64 = 5.0;

/// Maximum fraction of a run's time for these evaluations.
const MAX_FRACTION: f64 = 0.1;

/// The evaluations of a run during training.
pub struct Curve<'a> {
    run: &'a RunDir,
    /// The settings of the evaluation after training, with fewer and other episodes.
    options: EvaluationConfig,
    due: Due,
    /// Whether the run is evaluated after training, whose returns end the curve.
    is_played_after: bool,
    device: &'a Chosen,
    stop: &'a AtomicBool,
    budget: Budget,
}

/// The updates after which a run is evaluated.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Due {
    every: AutoOr,
    /// Updates between two checkpoints.
    checkpoint_every: u64,
    /// Updates of the whole run.
    last: u64,
}

impl Due {
    /// The schedule of `settings` for a run of `n_updates`; `None` without evaluations during
    /// training.
    pub fn of(settings: &RunConfig, n_updates: u64) -> Option<Self> {
        let evaluation = &settings.evaluation;
        let is_due = match evaluation.every {
            AutoOr::Number(every) => every > 0,
            AutoOr::Auto => {
                let task = settings.task().and_then(suites::of);
                let is_playable = task.is_ok_and(|suite| suite.has_environments());
                evaluation.episodes > 0 && n_updates >= MIN_UPDATES && is_playable
            }
        };
        let checkpoint_every = settings.train.checkpoint_every;
        is_due.then_some(Self { every: evaluation.every, checkpoint_every, last: n_updates })
    }

    /// Whether a run may be evaluated after `step`; false for the last update.
    pub fn is_at(self, step: u64) -> bool {
        match self.every {
            _ if step == 0 || step >= self.last => false,
            AutoOr::Auto => self.part_of(step).is_some(),
            AutoOr::Number(every) => step.is_multiple_of(u64::from(every) * self.checkpoint_every),
        }
    }

    /// The number of the [`PARTS`] that ends at `step`, if any.
    fn part_of(self, step: u64) -> Option<u64> {
        (1..PARTS).find(|part| self.last * part / PARTS == step)
    }
}

/// Time of the evaluations so far, and of the rest.
struct Budget {
    started: Instant,
    /// Updates before `started`.
    from: u64,
    spent: Cell<Duration>,
    n_played: Cell<u64>,
    /// The next part of the run that is evaluated.
    next_part: Cell<u64>,
}

impl Budget {
    /// Remaining seconds for evaluations at `step` of a run of `last` updates; `None` if the run is
    /// too short, or no time remains.
    fn left(&self, step: u64, last: u64) -> Option<f64> {
        let trained = self.started.elapsed().saturating_sub(self.spent.get()).as_secs_f64();
        let done = step.saturating_sub(self.from).max(1) as f64;
        let whole = trained / done * last.saturating_sub(self.from) as f64;
        let left = MAX_FRACTION * whole - self.spent.get().as_secs_f64();
        (whole >= MIN_SECONDS && left > 0.0).then_some(left)
    }

    /// Counts an evaluation of `cost` after `part`, and spaces the next ones evenly within the
    /// `left` seconds.
    fn add(&self, part: u64, cost: Duration, left: f64) {
        self.spent.set(self.spent.get() + cost);
        self.n_played.set(self.n_played.get() + 1);
        self.next_part.set(next_part(part, cost.as_secs_f64(), left - cost.as_secs_f64()));
    }
}

/// The next part that is evaluated, when an evaluation after `part` took `cost` seconds and `left`
/// seconds remain.
fn next_part(part: u64, cost: f64, left: f64) -> u64 {
    let affordable = (left / cost.max(1e-9)).min(PARTS as f64) as u64;
    match affordable {
        0 => PARTS,
        n => part + (PARTS - part).div_ceil(n + 1).max(1),
    }
}

impl<'a> Curve<'a> {
    /// The evaluations of a run after `done` updates, at the updates in `due`.
    pub fn new(
        settings: &RunConfig,
        due: Due,
        done: u64,
        run: &'a RunDir,
        device: &'a Chosen,
        stop: &'a AtomicBool,
    ) -> Self {
        let evaluation = &settings.evaluation;
        Self {
            run,
            options: EvaluationConfig {
                episodes: evaluation.every_episodes,
                seed: if evaluation.seed == SEED { SEED + 1 } else { SEED },
                ..evaluation.clone()
            },
            due,
            is_played_after: evaluation.episodes > 0,
            device,
            stop,
            budget: Budget {
                started: Instant::now(),
                from: done,
                spent: Cell::default(),
                n_played: Cell::default(),
                next_part: Cell::new(0),
            },
        }
    }

    /// Whether the run may be evaluated after `step`.
    pub fn is_at(&self, step: u64) -> bool {
        self.due.is_at(step)
    }

    /// Evaluates a checkpoint if it is due: mean returns by the names of their curves, and a line
    /// to print. Both are empty if it is not due.
    ///
    /// # Errors
    /// When the evaluation fails or is stopped.
    pub fn play(&self, checkpoint: &Checkpoint) -> Result<(Vec<(String, f64)>, String)> {
        let (step, last) = (checkpoint.state.step, self.due.last);
        let nothing = || Ok((Vec::new(), String::new()));
        let is_auto = self.due.every == AutoOr::Auto;
        let is_last = step == last && !self.is_played_after;
        if !is_last && !self.is_at(step) {
            return nothing();
        }
        let part = self.due.part_of(step).unwrap_or(PARTS);
        let left = match is_auto {
            false => f64::INFINITY,
            true if part < self.budget.next_part.get() => return nothing(),
            true => match self.budget.left(step, last) {
                Some(left) => left,
                None => return nothing(),
            },
        };
        let started = Instant::now();
        let is_too_long = || started.elapsed().as_secs_f64() > left;
        let is_over = || self.stop.load(Ordering::Relaxed) || is_too_long();
        // Only the first protocol: returns of others do not belong on the same curve.
        let mut planned = plan(self.run, checkpoint, None, &self.options)?.into_iter();
        let entry = planned.next().context("the evaluation does not have a protocol")?.entry;
        let parallel = self.options.parallel;
        let played = playing::play(&[&entry], self.device, parallel, &is_over);
        let seconds = started.elapsed();
        self.budget.add(part, seconds, left);
        let played = match played {
            Err(error) if interrupt::is_stop(&error) && !self.stop.load(Ordering::Relaxed) => {
                let line = format!(
                    "update {step}: stopped an evaluation after {:.1} s, because it takes more \
                     than a tenth of the run's time (use evaluation.every=0 to evaluate only after \
                     training)",
                    seconds.as_secs_f64()
                );
                return Ok((Vec::new(), line));
            }
            played => played?,
        };
        let evaluation = played.into_iter().next().context("no episode was run")??;
        let returns = evaluation.targets.iter().map(|target| {
            let normalized = target.normalized.as_ref().map(|summary| summary.mean);
            let normalized = normalized.map(|n| format!(", normalized {n:.1}")).unwrap_or_default();
            let success = target.success.map(|rate| format!(", success {:.2}", rate.value));
            let success = success.unwrap_or_default();
            let condition = evaluation.setting.condition(target.target_return);
            let condition = condition.map(|c| format!(" (target {c})")).unwrap_or_default();
            format!("{}{normalized}{success}{condition}", decimal(target.raw_return.mean, 1))
        });
        let returns: Vec<String> = returns.collect();
        let line = format!(
            "update {step}: mean return {} in {} episodes; training waited {:.1} s",
            returns.join("; "),
            evaluation.episodes.len(),
            seconds.as_secs_f64()
        );
        Ok((scores(&evaluation), line))
    }

    /// A line about the time of the evaluations; `None` without evaluations.
    pub fn cost(&self) -> Option<String> {
        let spent = self.budget.spent.get().as_secs_f64();
        let all = self.budget.started.elapsed().as_secs_f64().max(1e-9);
        let n = self.budget.n_played.get();
        (n > 0).then(|| {
            format!(
                "{n} evaluation{} during training took {spent:.1} s, {:.1} % of its time",
                if n == 1 { "" } else { "s" },
                100.0 * spent / all
            )
        })
    }
}

/// Mean returns of an evaluation by the names of their curves, raw and normalized, and the success
/// rate if it is known. The first target has the same names for every algorithm; other targets are
/// in the names of their curves.
pub fn scores(evaluation: &Evaluation) -> Vec<(String, f64)> {
    let first = evaluation.first_target();
    let curves = evaluation.targets.iter().flat_map(|target| {
        let is_first = first.is_some_and(|first| std::ptr::eq(first, target));
        let of = if is_first { String::new() } else { format!("/target_{}", target.target_return) };
        let raw = (format!("eval/return{of}"), target.raw_return.mean);
        let normalized = target.normalized.as_ref();
        let normalized =
            normalized.map(|summary| (format!("eval/normalized_return{of}"), summary.mean));
        let success = target.success.map(|rate| (format!("eval/success{of}"), rate.value));
        std::iter::once(raw).chain(normalized).chain(success)
    });
    curves.collect()
}

/// The scores of an evaluation after training, each with a description. The curve of returns has one
/// acting mode, `mode`. If another one was chosen, its scores have names of their own, and the curve
/// ends with the episodes in `mode` that chose it.
pub fn last_scores(evaluation: &Evaluation, mode: ActingMode) -> Vec<(String, f64, String)> {
    let described = |(name, score)| (name, score, words(evaluation));
    let mut all: Vec<_> = scores(evaluation).into_iter().map(described).collect();
    let setting = &evaluation.setting;
    let Some(choice) = setting.choice.as_ref().filter(|choice| choice.chosen != mode) else {
        return all;
    };
    all.iter_mut().for_each(|(name, ..)| *name += "/chosen_mode");
    let mut points = choice.curve.iter().filter(|point| point.mode == mode);
    if let Some(returns) = points.next().and_then(|point| point.raw_return.as_ref()) {
        let words = format!(
            "{} protocol, target {}, {}; the episodes that chose the acting mode",
            setting.protocol.name,
            choice.target,
            choice.mode_text(&mode)
        );
        let normalized = setting.task.reference.as_ref();
        let normalized = normalized.map(|reference| reference.normalize(returns.mean));
        let raw = ("eval/return", Some(returns.mean));
        for (name, score) in [raw, ("eval/normalized_return", normalized)] {
            all.extend(score.map(|score| (name.to_owned(), score, words.clone())));
        }
    }
    all
}

/// The protocol, target and acting mode of an evaluation, for its curves.
fn words(evaluation: &Evaluation) -> String {
    let setting = &evaluation.setting;
    let condition = |target: &TargetResult| setting.condition(target.target_return);
    let condition = evaluation.first_target().and_then(condition);
    let target = condition.map(|c| format!(", target {c}")).unwrap_or_default();
    let mode = setting.choice.as_ref().map(|choice| format!(", {}", choice.mode()));
    format!("{} protocol{target}{}", setting.protocol.name, mode.unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_run_may_be_evaluated_after_each_eighth() {
        let due = Due { every: AutoOr::Auto, checkpoint_every: 500, last: 1000 };
        let steps: Vec<u64> = (0..=1000).filter(|step| due.is_at(*step)).collect();
        assert_eq!(steps, [125, 250, 375, 500, 625, 750, 875]);
        let due = Due { every: AutoOr::Number(2), checkpoint_every: 150, last: 1000 };
        let steps: Vec<u64> = (0..=1000).filter(|step| due.is_at(*step)).collect();
        assert_eq!(steps, [300, 600, 900]);
    }

    #[test]
    fn expensive_evaluations_are_few_and_evenly_spaced() {
        // Time for seven or more: after each part. Time for two more: after each third of the rest.
        assert_eq!(
            [next_part(1, 1.0, 9.0), next_part(1, 1.0, 2.5), next_part(1, 1.0, 1.2)],
            [2, 4, 5]
        );
        assert_eq!(next_part(1, 1.0, 0.9), PARTS);
        assert_eq!(next_part(7, 1.0, 9.0), PARTS);
        assert_eq!(next_part(1, 0.0, f64::INFINITY), 2);
    }

    #[test]
    fn evaluations_take_a_tenth_of_the_run() {
        let budget = Budget {
            started: Instant::now() - Duration::from_secs(12),
            from: 0,
            spent: Cell::new(Duration::from_secs(2)),
            n_played: Cell::default(),
            next_part: Cell::new(0),
        };
        // 10 s of training for a quarter: 4 s of 40 s, minus 2 s that are spent.
        assert!((budget.left(25, 100).unwrap() - 2.0).abs() < 0.1);
        // More than a tenth of 18 s is spent, or the run takes 2 s.
        assert_eq!(budget.left(55, 100), None);
        budget.spent.set(Duration::from_millis(11_500));
        assert_eq!(budget.left(25, 100), None);
    }
}
