//! One checkpoint and how it is played: what is said of it before and in the report.

use anyhow::Result;
use overtone_agents::Agent;
use overtone_console::quoted;
use overtone_core::{ActionSpace, Task};
use overtone_env::Simulator;
use overtone_eval::{Heeds, Plan, evaluation};
use overtone_train::{Checkpoint, RunDir};

use super::ask::{self, Ask};
use crate::{
    runs::{checkpoint_name, own_path, real},
    suites,
};

/// A checkpoint, and how it is played.
pub struct Entry {
    pub run: RunDir,
    pub checkpoint: Checkpoint,
    pub agent: Agent,
    pub ask: Ask,
    pub plan: Plan,
}

impl Entry {
    /// `checkpoint` of `run`, played in `episodes` episodes for each target.
    pub fn new(
        run: &RunDir,
        checkpoint: &Checkpoint,
        agent: &Agent,
        ask: Ask,
        [episodes, seed]: [u64; 2],
    ) -> Self {
        let (targets, return_units) = (ask.targets.clone(), ask.protocol.return_units);
        let plan = Plan::new(episodes as usize, targets, seed, return_units);
        let (run, checkpoint, agent) = (run.clone(), checkpoint.clone(), agent.clone());
        Self { run, checkpoint, agent, ask, plan }
    }

    /// What is played.
    pub fn task(&self) -> &Task {
        &self.agent.task
    }

    /// Says what will be played, and what of it is otherwise than trained.
    pub fn announce(&self) {
        let state = &self.checkpoint.state;
        if let (None, Ok(suite)) = (&self.agent.recording, suites::of(self.task())) {
            let like = suite.published_data();
            say!("how this data was recorded is not known; taken to be as {like} was");
        }
        say!(
            "playing {} (update {}): protocol {}, {}{}",
            self.checkpoint.path.display(),
            state.step,
            self.ask.protocol.name,
            match self.plan.episodes {
                1 => "1 episode".to_owned(),
                n => format!("{n} episodes"),
            },
            self.describe_told()
        );
        if let Some(choice) = &self.ask.choice {
            say!("Mode: {}", choice.describe());
        }
        let differences = evaluation::describe_differences(&self.ask.differences);
        say!("{}", differences.trim_end());
    }

    /// What the agent is told of what to earn, after the number of episodes.
    fn describe_told(&self) -> String {
        let Ask { asked, protocol, .. } = &self.ask;
        if self.heeds().target {
            let returns = &self.checkpoint.state.episode_returns;
            let targets = ask::describe_targets(asked, &self.plan.targets, returns);
            return format!(" for each target of {targets}");
        }
        match protocol.acting.top_percent {
            0.0 => ", told no return".to_owned(),
            percent => format!(", told to act as in the best {percent} % of its recording"),
        }
    }

    /// Which settings of the protocol the agent heeds.
    fn heeds(&self) -> Heeds {
        ask::heeds(&self.agent, self.ask.protocol.acting.top_percent)
    }

    /// Whether the checkpoint is one of the run's own.
    pub fn is_own(&self) -> bool {
        own_path(&self.run, &self.checkpoint.path).is_some()
    }

    /// What the report says of it before it is played by `simulator`.
    ///
    /// # Errors
    /// When no suite has its task.
    pub fn setting(&self, simulator: Simulator) -> Result<evaluation::Setting> {
        let state = &self.checkpoint.state;
        let task = self.task();
        let targets: Vec<String> = self.plan.targets.iter().map(f32::to_string).collect();
        let protocol = &self.ask.protocol;
        let actions = match task.actions {
            ActionSpace::Discrete { .. } => format!("temperature={}", protocol.acting.temperature),
            ActionSpace::Continuous { .. } => {
                format!("actions={}", ask::action_choice_name(protocol.action_choice))
            }
        };
        let mut how = format!("protocol={} {actions}", protocol.name);
        // What is told in place of a return hides it, and what bounds it.
        if protocol.acting.top_percent > 0.0 {
            how += &format!(" top_percent={}", protocol.acting.top_percent);
        } else {
            how += &format!(" target={}", targets.join(","));
            if self.agent.has_return_model() {
                how += &format!(" return_quantile={}", protocol.acting.return_quantile);
            }
        }
        Ok(evaluation::Setting {
            task: task.clone(),
            simulator: simulator.name,
            rom_md5: simulator.rom_md5,
            policy: format!("{}, {} data", self.agent.algorithm.describe(), state.dataset_kind),
            protocol: self.ask.protocol.clone(),
            differences: self.ask.differences.clone(),
            heeds: self.heeds(),
            choice: self.ask.choice.clone(),
            checkpoint: Some(evaluation::CheckpointRef {
                path: own_path(&self.run, &self.checkpoint.path)
                    .unwrap_or_else(|| real(&self.checkpoint.path)),
                step: state.step,
            }),
            dataset_hash: Some(state.dataset_hash.clone()),
            command: format!(
                "overtone evaluate rollouts run={} checkpoint={} episodes={} {how} seed={}",
                quoted(self.run.path()),
                quoted(checkpoint_name(&self.run, &self.checkpoint)),
                self.plan.episodes,
                self.plan.seed
            ),
        })
    }
}
