//! One checkpoint and how it is played: what is said of it before and in the report.

use std::path::{Path, PathBuf};

use anyhow::Result;
use overtone_core::{ActionSpace, Task};
use overtone_env::Simulator;
use overtone_eval::{Plan, evaluation};
use overtone_model::{AttentionConfig, Conditioning, ModelConfig};
use overtone_train::{Agent, Checkpoint, RunDir};

use super::ask::{self, Ask};
use crate::suites;

/// A checkpoint, and how it is played.
pub struct Entry {
    pub run: RunDir,
    pub checkpoint: Checkpoint,
    pub ask: Ask,
    pub plan: Plan,
}

impl Entry {
    /// `checkpoint` of `run`, played in `episodes` episodes for each target.
    pub fn new(
        run: &RunDir,
        checkpoint: &Checkpoint,
        ask: Ask,
        episodes: usize,
        seed: u64,
    ) -> Self {
        let (targets, return_units) = (ask.targets.clone(), ask.protocol.return_units);
        let plan = Plan { episodes, targets, seed, return_units };
        Self { run: run.clone(), checkpoint: checkpoint.clone(), ask, plan }
    }

    /// What is played.
    ///
    /// # Errors
    /// When no suite has it.
    pub fn task(&self) -> Result<&'static Task> {
        suites::titled(self.checkpoint.state.agent.task())
    }

    /// Says what will be played, and what of it is otherwise than trained.
    pub fn announce(&self) {
        let state = &self.checkpoint.state;
        let recording = match &state.agent {
            Agent::Atari(agent) => &agent.recording,
            Agent::Continuous(agent) => &agent.recording,
        };
        if let (None, Ok(suite)) = (recording, self.task().and_then(suites::of)) {
            let like = suite.published_data();
            say!("how this data was recorded is not known; taken to be as {like} was");
        }
        say!(
            "playing {} (update {}): protocol {}, {} for each target of {}",
            self.checkpoint.path.display(),
            state.step,
            self.ask.protocol.name,
            match self.plan.episodes {
                1 => "1 episode".to_owned(),
                n => format!("{n} episodes"),
            },
            ask::describe_targets(&self.ask.asked, &self.plan.targets, &state.episode_returns)
        );
        let differences = evaluation::describe_differences(Some(&self.ask.differences));
        say!("{}", differences.trim_end());
    }

    /// Whether the checkpoint is one of the run's own.
    pub fn is_own(&self) -> bool {
        own_path(&self.run, &self.checkpoint.path).is_some()
    }

    /// What `checkpoint=` must say to play it again: a step of the run, or a folder elsewhere.
    pub fn checkpoint_name(&self) -> String {
        match own_path(&self.run, &self.checkpoint.path) {
            Some(_) => self.checkpoint.state.step.to_string(),
            None => real(&self.checkpoint.path).display().to_string(),
        }
    }

    /// What the report says of it before it is played by `simulator`.
    ///
    /// # Errors
    /// When no suite has its task.
    pub fn setting(&self, simulator: Simulator) -> Result<evaluation::Setting> {
        let state = &self.checkpoint.state;
        let task = self.task()?;
        let targets: Vec<String> = self.plan.targets.iter().map(f32::to_string).collect();
        let protocol = &self.ask.protocol;
        let actions = match task.actions {
            ActionSpace::Discrete { .. } => format!("temperature={}", protocol.temperature),
            ActionSpace::Continuous { .. } => {
                format!("actions={}", ask::action_choice_name(protocol.action_choice))
            }
        };
        let how = format!("protocol={} {actions}", protocol.name);
        Ok(evaluation::Setting {
            task: task.clone(),
            simulator: simulator.name,
            rom_md5: simulator.rom_md5,
            policy: format!("{}, {} data", describe_model(&state.agent), state.dataset_kind),
            protocol: self.ask.protocol.clone(),
            differences: Some(self.ask.differences.clone()),
            checkpoint: Some(evaluation::CheckpointRef {
                path: own_path(&self.run, &self.checkpoint.path)
                    .unwrap_or_else(|| real(&self.checkpoint.path)),
                step: state.step,
            }),
            dataset_hash: Some(state.dataset_hash.clone()),
            command: format!(
                "just evaluate rollouts run={} checkpoint={} episodes={} target={} {how} seed={}",
                self.run.path().display(),
                self.checkpoint_name(),
                self.plan.episodes,
                targets.join(","),
                self.plan.seed
            ),
        })
    }
}

/// Where a checkpoint lies in the run's folder; `None` if it is not one of the run's.
fn own_path(run: &RunDir, checkpoint: &Path) -> Option<PathBuf> {
    let checkpoint = real(checkpoint);
    let inside = checkpoint.strip_prefix(real(&run.checkpoints())).ok()?;
    Some(Path::new("checkpoints").join(inside))
}

/// The path from the root, without links; the path itself where there is nothing.
fn real(path: &Path) -> PathBuf {
    path.canonicalize().unwrap_or_else(|_| path.to_owned())
}

/// `Decision Transformer, linear head, softmax attention`.
fn describe_model(agent: &Agent) -> String {
    let (model, _, _) = agent.model();
    let head = model.head().describe();
    let model = match model {
        ModelConfig::Transformer(model) => model,
        ModelConfig::Perceptron(_) => return format!("perceptron cloning behaviour, {head}"),
    };
    let kind = match model.conditioning {
        Conditioning::Return => "Decision Transformer",
        Conditioning::None => "transformer cloning behaviour",
    };
    let attention = match model.attention {
        AttentionConfig::Softmax => "softmax attention".to_owned(),
        AttentionConfig::Fourier(fourier) => {
            format!("Fourier attention of power {}", fourier.power)
        }
    };
    format!("{kind}, {head}, {attention}")
}
