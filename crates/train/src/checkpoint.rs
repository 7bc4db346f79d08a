//! Checkpoints: everything needed to resume training or to act, in one directory of plain files.
//!
//! A checkpoint is written under a temporary name, flushed, and renamed, so a directory named
//! `step-…` is complete. Disks and people can still change files. So reading compares them with
//! `SHA256SUMS`, and falls back to the previous checkpoint when they differ.

use std::{
    collections::{BTreeMap, BTreeSet},
    fs,
    path::{Path, PathBuf},
};

use overtone_core::FirstObservations;
use overtone_data::EpisodeReturns;
use overtone_model::weights::{self, NamedTensors};
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

use crate::{
    algorithm::{Export, Exported, Stored},
    error::TrainError,
    run_dir::write_synced,
};

/// Position of training in its run. Generators need no stored state: data order and dropout are
/// functions of the run's seed and these counters.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TrainState {
    /// Version of this layout.
    pub format: u32,
    /// Optimizer steps taken.
    pub step: u64,
    /// Contexts drawn by the sampler.
    pub n_drawn: u64,
    /// Action labels seen, the schedule's unit.
    pub tokens: u64,
    /// The run's seed.
    pub seed: u64,
    /// Description of the agent and its task, which only acting reads.
    pub agent: serde_json::Value,
    /// Content hash of the training data.
    pub dataset_hash: String,
    /// Source of the data: `starter`, `published` or the kind of a path.
    pub dataset_kind: String,
    /// Returns of the data's whole episodes, in its own units. They include held-out episodes, so
    /// that targets do not depend on the choice of held-out episodes.
    pub episode_returns: EpisodeReturns,
    /// The data's first observations, for a comparison with the resets of the task. `None` for
    /// frames, imported agents and older checkpoints.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub first_observations: Option<FirstObservations>,
    /// The fraction of episodes that the run holds out.
    pub held_out_share: f64,
    /// Mean loss on held-out episodes at this step ([`crate::held_out::loss`]). `None` if no
    /// episodes are held out, if it is not finite, or if the run was interrupted between two
    /// checkpoints: an uninterrupted run does not measure there.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub held_out: Option<f64>,
    /// Source of the initial weights; `None` if they were random.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub init_source: Option<InitSource>,
    /// The lowest of these losses so far; `None` for an algorithm that
    /// [learns values](crate::Algorithm::lookahead).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub best: Option<Best>,
    /// The steps since the last row of the metrics, if there are any.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub unreported: Option<Unreported>,
}

/// Source of a run's initial weights, as its checkpoints store it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct InitSource {
    /// The source run, as the user named it.
    pub run: String,
    /// Optimizer steps taken there.
    pub step: u64,
    /// SHA-256 of the file with the acting weights.
    pub sha256: String,
}

/// Sums over the steps since the last row of the metrics, so that the next row is the same after an
/// interruption.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Unreported {
    /// Number of steps.
    pub steps: u64,
    /// Sum of their losses.
    pub loss: f64,
    /// Sums of the figures in [`crate::Algorithm::figures`].
    pub figures: Vec<f64>,
    /// Number of steps that have each of them.
    pub figure_steps: Vec<u64>,
}

/// The checkpoint with the lowest loss on held-out episodes.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Best {
    /// Its optimizer steps; the first one of equal losses.
    pub step: u64,
    /// The loss.
    pub loss: f64,
}

impl TrainState {
    /// Stores the loss on held-out episodes at this step, if it is finite. If it `selects`, the
    /// lowest loss is the best.
    pub fn measured(&mut self, loss: f64, selects: bool) {
        self.held_out = Some(loss).filter(|loss| loss.is_finite());
        let lowest = self.best.map_or(f64::INFINITY, |best| best.loss);
        if let Some(loss) = self.held_out.filter(|&loss| selects && loss < lowest) {
            self.best = Some(Best { step: self.step, loss });
        }
    }

    /// The reason why a run configured as `fresh` cannot resume from this state.
    pub(crate) fn differs(&self, fresh: &Self) -> Option<String> {
        if self.dataset_hash != fresh.dataset_hash {
            return Some(
                "the dataset has changed since this checkpoint was written. Restore the old one, \
                 or start a new run (`train` … resume=never)"
                    .into(),
            );
        }
        if self.seed != fresh.seed {
            return Some("belongs to a run with another seed".into());
        }
        if self.held_out_share != fresh.held_out_share {
            return Some(format!(
                "was trained with train.held_out={}, but this run holds out {}. Restore the old \
                 value, or start a new run",
                self.held_out_share, fresh.held_out_share
            ));
        }
        if self.agent == fresh.agent {
            return None;
        }
        let parts = |state: &Self| state.agent.as_object().cloned().unwrap_or_default();
        let (old, new) = (parts(self), parts(fresh));
        let names: BTreeSet<&String> = old.keys().chain(new.keys()).collect();
        let different = names.into_iter().filter(|name| old.get(*name) != new.get(*name));
        let words = different.map(|name| match name.as_str() {
            "algorithm" => "model configuration",
            other => other,
        });
        Some(format!(
            "belongs to an agent with another {}. Restore the old config.toml, or start a new run",
            words.collect::<Vec<_>>().join(" and ")
        ))
    }
}

/// The layout version that this program writes.
pub const FORMAT: u32 = 7;

/// The part of a state that every layout version has.
#[derive(Deserialize)]
struct Layout {
    format: u32,
}

const MODEL: &str = "model.safetensors";
const TRAINING: &str = "optimizer.safetensors";
const STATE: &str = "state.json";
/// Input of `sha256sum -c`. Without this file, nothing is checked.
const SUMS: &str = "SHA256SUMS";
/// Every file of a checkpoint.
pub(crate) const FILES: [&str; 4] = [MODEL, TRAINING, STATE, SUMS];

/// A checkpoint on disk.
#[derive(Clone, Debug)]
pub struct Checkpoint {
    /// Its directory.
    pub path: PathBuf,
    /// Position of training in its run.
    pub state: TrainState,
}

impl Checkpoint {
    /// Writes a checkpoint under `checkpoints/`, then deletes old ones.
    ///
    /// These checkpoints stay: the newest `keep` and the best. Checkpoints of later steps are
    /// deleted, because training has resumed from an earlier step. So are remains of killed
    /// writers. Planned checkpoints are at multiples of `planned_every`. Earlier ones between them
    /// come from interruptions: they are deleted first, and do not count towards `keep`. Anything
    /// that cannot be deleted stays until the next checkpoint is written. No other process may
    /// write there at the same time (see [`crate::RunLock`]).
    ///
    /// # Errors
    /// When it cannot be written. Then nothing of it is left, and nothing else is deleted.
    pub fn save(
        checkpoints: &Path,
        state: &TrainState,
        learned: &impl Export,
        keep: usize,
        planned_every: u64,
    ) -> Result<Self, TrainError> {
        let path = checkpoints.join(folder_name(state.step));
        let temporary = overtone_files::beside(&path);
        let _ = fs::remove_dir_all(&temporary);
        write(&temporary, state, learned)
            // An incomplete checkpoint is useless, and the disk may be full.
            .inspect_err(|_| drop(fs::remove_dir_all(&temporary)))?;
        overtone_files::put_folder(&temporary, &path).map_err(TrainError::io(&path))?;
        let has_a_place = |step: &u64| *step == state.step || step.is_multiple_of(planned_every);
        let (later, earlier): (Vec<_>, Vec<_>) =
            steps(checkpoints).into_iter().partition(|step| *step > state.step);
        let (placed, between): (Vec<_>, Vec<_>) = earlier.into_iter().partition(has_a_place);
        let best = state.best.map(|best| best.step);
        let old = placed.into_iter().skip(keep).chain(between).filter(|step| Some(*step) != best);
        let useless = old.chain(later).map(folder_name).chain(unfinished(checkpoints));
        useless.for_each(|name| drop(fs::remove_dir_all(checkpoints.join(name))));
        Ok(Self { path, state: state.clone() })
    }

    /// The checkpoint of `state` under `checkpoints/` that another process writes.
    pub(crate) fn named(checkpoints: &Path, state: &TrainState) -> Self {
        Self { path: checkpoints.join(folder_name(state.step)), state: state.clone() }
    }

    /// Reads the state of the checkpoint in `path`.
    ///
    /// # Errors
    /// When it is not a checkpoint.
    pub fn open(path: &Path) -> Result<Self, TrainError> {
        if !path.is_dir() {
            return Err(TrainError::Checkpoint {
                path: path.to_owned(),
                reason: "the checkpoint does not exist".into(),
            });
        }
        let file = path.join(STATE);
        let text = read(path, STATE)?;
        let layout: Layout = serde_json::from_slice(&text).map_err(|error| broken(&file, error))?;
        if layout.format != FORMAT {
            return Err(TrainError::Checkpoint {
                path: file,
                reason: format!(
                    "has layout {}, but this program reads {FORMAT}: another version wrote it. \
                     Train again, or use that version",
                    layout.format
                ),
            });
        }
        let state: TrainState =
            serde_json::from_slice(&text).map_err(|error| broken(&file, error))?;
        Ok(Self { path: path.to_owned(), state })
    }

    /// The checkpoint of step `step` under `checkpoints/`.
    ///
    /// # Errors
    /// When it does not exist or is damaged.
    pub fn at_step(checkpoints: &Path, step: u64) -> Result<Self, TrainError> {
        let path = checkpoints.join(folder_name(step));
        let existing: Vec<String> = steps(checkpoints).iter().map(u64::to_string).collect();
        if !path.is_dir() && !existing.is_empty() {
            let reason = format!(
                "the checkpoint does not exist. Use one of update {} (train.keep_checkpoints sets \
                 how many are kept)",
                existing.join(", ")
            );
            return Err(TrainError::Checkpoint { path, reason });
        }
        Self::open(&path)
    }

    /// The checkpoint with the lowest held-out loss under `checkpoints/`, according to the newest
    /// intact one, and the errors of others. That checkpoint may have been deleted after a later
    /// one, damaged now, was better. Then the result is the best of the existing ones.
    ///
    /// # Errors
    /// As [`Checkpoint::newest`]; [`TrainError::NoBest`] when no loss selects a checkpoint.
    pub fn best(checkpoints: &Path) -> Result<(Self, Vec<TrainError>), TrainError> {
        let (newest, mut skipped) = Self::newest(checkpoints)?;
        let path = checkpoints.to_owned();
        let best = newest.state.best.ok_or(TrainError::NoBest { path })?;
        let error = match Self::at_step(checkpoints, best.step) {
            Ok(best) => return Ok((best, skipped)),
            Err(error) => error,
        };
        let whole = steps(checkpoints).into_iter().filter_map(|step| {
            let checkpoint = Self::at_step(checkpoints, step).ok()?;
            checkpoint.weights().ok()?;
            Some((checkpoint.state.held_out?, checkpoint))
        });
        match whole.min_by(|(one, _), (other, _)| one.total_cmp(other)) {
            None => Err(error),
            Some((_, best)) => {
                skipped.push(error);
                Ok((best, skipped))
            }
        }
    }

    /// The newest intact checkpoint under `checkpoints/`, and the errors of newer ones.
    ///
    /// # Errors
    /// [`TrainError::NoCheckpoint`] when none was written yet, [`TrainError::Checkpoint`] when all
    /// are damaged.
    pub fn newest(checkpoints: &Path) -> Result<(Self, Vec<TrainError>), TrainError> {
        let mut skipped = Vec::new();
        for step in steps(checkpoints) {
            match Self::at_step(checkpoints, step).and_then(|checkpoint| {
                checkpoint.exported()?;
                Ok(checkpoint)
            }) {
                Ok(checkpoint) => return Ok((checkpoint, skipped)),
                Err(error) => skipped.push(error),
            }
        }
        let path = checkpoints.to_owned();
        Err(match skipped.first() {
            Some(error) => TrainError::Checkpoint {
                path,
                reason: format!("all checkpoints here are damaged; error of the newest: {error}"),
            },
            None => TrainError::NoCheckpoint { path },
        })
    }

    /// The weights of the acting network.
    ///
    /// # Errors
    /// When the file is missing or damaged.
    pub fn weights(&self) -> Result<NamedTensors, TrainError> {
        self.tensors(MODEL)
    }

    /// SHA-256 of the file of these weights.
    ///
    /// # Errors
    /// When it cannot be read.
    pub fn weights_sha256(&self) -> Result<String, TrainError> {
        sha256(&self.path.join(MODEL))
    }

    /// Every stored tensor, with the acting weights as `f32`, the type of training.
    ///
    /// # Errors
    /// When a file is missing or damaged.
    pub fn exported(&self) -> Result<Exported, TrainError> {
        let model = self.weights()?.into_iter().map(|(name, data)| (name, data.convert::<f32>()));
        Ok(Exported { model: model.collect(), training: self.tensors(TRAINING)? })
    }

    fn tensors(&self, file: &str) -> Result<NamedTensors, TrainError> {
        Ok(weights::parse(&read(&self.path, file)?, &self.path.join(file))?)
    }

    /// `fresh` with the networks that are stored here; its optimizers do not change.
    ///
    /// # Errors
    /// When they do not fit, or were not stored.
    pub fn begin<S: Stored>(&self, fresh: S) -> Result<S, TrainError> {
        Ok(fresh.begin(&self.exported()?)?)
    }

    /// The stored state of an algorithm, in place of `state`.
    ///
    /// # Errors
    /// When it does not fit.
    pub fn restore<S: Stored>(&self, state: S) -> Result<S, TrainError> {
        Ok(state.import(&self.exported()?, self.state.step)?)
    }
}

/// Writes everything into the new directory `folder`, and waits until it is on disk.
fn write(folder: &Path, state: &TrainState, learned: &impl Export) -> Result<(), TrainError> {
    fs::create_dir_all(folder).map_err(TrainError::io(folder))?;
    let metadata = BTreeMap::from([("step".to_owned(), state.step.to_string())]);
    weights::save(&learned.export_model(), &metadata, &folder.join(MODEL))?;
    weights::save(&learned.export_training(), &metadata, &folder.join(TRAINING))?;
    let json =
        serde_json::to_vec_pretty(state).map_err(|error| broken(&folder.join(STATE), error))?;
    write_synced(&folder.join(STATE), &json)?;
    let mut sums = String::new();
    for file in [MODEL, TRAINING, STATE] {
        sums += &format!("{}  {file}\n", sha256(&folder.join(file))?);
    }
    write_synced(&folder.join(SUMS), sums.as_bytes())?;
    sync_dir(folder)
}

fn folder_name(step: u64) -> String {
    format!("step-{step:08}")
}

/// The step in the name of a checkpoint.
fn step_of(name: &str) -> Option<u64> {
    let step = name.strip_prefix("step-")?.parse().ok()?;
    (folder_name(step) == name).then_some(step)
}

/// Steps of the checkpoints, the last first. Other directories are ignored.
fn steps(checkpoints: &Path) -> Vec<u64> {
    let mut steps: Vec<u64> = folders(checkpoints).filter_map(|name| step_of(&name)).collect();
    steps.sort_unstable_by(|one, other| other.cmp(one));
    steps
}

/// Remains of killed writers ([`overtone_files::beside`]).
fn unfinished(checkpoints: &Path) -> impl Iterator<Item = String> {
    folders(checkpoints).filter(|name| {
        let parts = name.strip_prefix('.').and_then(|name| name.rsplit_once('.'));
        parts.is_some_and(|(name, process)| {
            step_of(name).is_some() && process.parse::<u32>().is_ok()
        })
    })
}

/// Names of the directories in `checkpoints`.
fn folders(checkpoints: &Path) -> impl Iterator<Item = String> {
    let entries = fs::read_dir(checkpoints).into_iter().flatten().flatten();
    let folders = entries.filter(|entry| entry.path().is_dir());
    folders.filter_map(|entry| entry.file_name().into_string().ok())
}

/// SHA-256 of a file, in hexadecimal digits.
///
/// # Errors
/// When it cannot be read.
pub fn sha256(path: &Path) -> Result<String, TrainError> {
    Ok(hexadecimal_sum(&fs::read(path).map_err(TrainError::io(path))?))
}

fn hexadecimal_sum(bytes: &[u8]) -> String {
    Sha256::digest(bytes).iter().map(|byte| format!("{byte:02x}")).collect()
}

/// The contents of `file` in the checkpoint `folder`, checked against its sum.
fn read(folder: &Path, file: &str) -> Result<Vec<u8>, TrainError> {
    let path = folder.join(file);
    let bytes = fs::read(&path).map_err(TrainError::io(&path))?;
    let Ok(sums) = fs::read_to_string(folder.join(SUMS)) else { return Ok(bytes) };
    let got = format!("{}  {file}", hexadecimal_sum(&bytes));
    if sums.lines().any(|line| line == got) {
        return Ok(bytes);
    }
    let reason = format!("changed since it was written (its SHA-256 is not the one in {SUMS})");
    Err(TrainError::Checkpoint { path, reason })
}

fn broken(path: &Path, error: serde_json::Error) -> TrainError {
    TrainError::Checkpoint { path: path.to_owned(), reason: error.to_string() }
}

fn sync_dir(path: &Path) -> Result<(), TrainError> {
    overtone_files::sync(path).map_err(TrainError::io(path))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_loss_that_is_not_finite_is_not_the_best() {
        let mut state = TrainState {
            format: FORMAT,
            step: 1,
            n_drawn: 0,
            tokens: 0,
            seed: 1,
            agent: serde_json::Value::Null,
            dataset_hash: String::new(),
            dataset_kind: String::new(),
            episode_returns: EpisodeReturns::default(),
            first_observations: None,
            held_out_share: 0.0,
            held_out: None,
            init_source: None,
            best: None,
            unreported: None,
        };
        let mut after = |step, loss| {
            state.step = step;
            state.measured(loss, true);
            (state.held_out, state.best.map(|best| best.step))
        };
        assert_eq!(after(1, f64::NAN), (None, None));
        assert_eq!(after(2, 0.5), (Some(0.5), Some(2)));
        assert_eq!(after(3, f64::NEG_INFINITY), (None, Some(2)));
        assert_eq!(after(4, 0.75), (Some(0.75), Some(2)));
        assert_eq!(after(5, 0.25), (Some(0.25), Some(5)));
        state.step = 6;
        state.measured(0.125, false);
        assert_eq!((state.held_out, state.best.map(|best| best.step)), (Some(0.125), Some(5)));
    }
}
