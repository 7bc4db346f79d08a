//! [`Entry`]: one checkpoint with its evaluation request, for the announcement and the report.

use anyhow::Result;
use overtone_agents::Agent;
use overtone_console::quoted;
use overtone_core::{ActionSpace, ObservationSpace, Task, protocol::Difference};
use overtone_env::Simulator;
use overtone_eval::{Plan, UsedSettings, evaluation};
use overtone_settings::{
    runs::{checkpoint_name, own_path, real},
    suites,
};
use overtone_train::{Checkpoint, RunDir};

use super::request::{self, EvaluationRequest};

/// A checkpoint and its evaluation request.
pub struct Entry {
    pub run: RunDir,
    pub checkpoint: Checkpoint,
    pub agent: Agent,
    pub request: EvaluationRequest,
    pub plan: Plan,
}

impl Entry {
    /// An evaluation of `checkpoint` in `episodes` episodes for each target.
    pub fn new(
        run: &RunDir,
        checkpoint: &Checkpoint,
        agent: &Agent,
        request: EvaluationRequest,
        [episodes, seed]: [u64; 2],
    ) -> Self {
        let (targets, return_units) = (request.targets.clone(), request.protocol.return_units);
        let plan = Plan::new(episodes as usize, targets, seed, return_units);
        let (run, checkpoint, agent) = (run.clone(), checkpoint.clone(), agent.clone());
        Self { run, checkpoint, agent, request, plan }
    }

    /// The agent's task.
    pub fn task(&self) -> &Task {
        &self.agent.task
    }

    /// Announces the evaluation.
    pub fn announce(&self) {
        let state = &self.checkpoint.state;
        if let (None, Ok(suite)) = (&self.agent.recording, suites::of(self.task())) {
            let like = suite.published_data();
            say!("the data does not say how it was recorded; assuming the settings of {like}");
        }
        say!(
            "evaluating {} (update {}): protocol {}, {}{}",
            self.checkpoint.path.display(),
            state.step,
            self.request.protocol.name,
            match self.plan.episodes {
                1 => "1 episode".to_owned(),
                n => format!("{n} episodes"),
            },
            self.describe_condition()
        );
        if let Some(choice) = &self.request.choice {
            say!("Mode: {}", choice.describe());
        }
    }

    /// The return or top percent that the agent is conditioned on, after the number of episodes.
    fn describe_condition(&self) -> String {
        let EvaluationRequest { target_text, protocol, .. } = &self.request;
        if self.used_settings().target {
            let returns = &self.checkpoint.state.episode_returns;
            let targets = request::describe_targets(target_text, &self.plan.targets, returns);
            return format!(" for each target of {targets}");
        }
        match protocol.acting.top_percent {
            0.0 => ", not conditioned on a return".to_owned(),
            percent => format!(", conditioned on the top {percent} % of its dataset"),
        }
    }

    /// A step limit other than the one of the reference scores: returns of such episodes are not
    /// normalized. `None` for games, which end in other ways.
    fn step_limit(&self) -> Option<Difference> {
        let task = self.task();
        let suite = suites::of(task).ok()?;
        let limit = |simulation| suite.horizon(task, simulation);
        let [usual, played] = [&task.simulation, &self.request.protocol.simulation].map(limit);
        let is_other = matches!(task.observations, ObservationSpace::Vectors { .. })
            && task.reference.is_some()
            && usual != played;
        let words = |limit: Option<usize>| limit.map_or("none".into(), |steps| steps.to_string());
        let recorded = limit(self.agent.recording.as_ref().unwrap_or(&task.simulation));
        is_other.then(|| Difference {
            setting: "step_limit".into(),
            trained: words(recorded),
            played: words(played),
            consequence: format!(
                "the reference scores are of episodes of up to {} steps, so there is no normalized \
                 score",
                words(usual)
            ),
        })
    }

    /// The settings that differ from training, and from the reference scores.
    fn differences(&self) -> Vec<Difference> {
        self.request.differences.iter().cloned().chain(self.step_limit()).collect()
    }

    /// The settings of the protocol that the agent uses.
    fn used_settings(&self) -> UsedSettings {
        request::used_settings(&self.agent, self.request.protocol.acting.top_percent)
    }

    /// Whether the checkpoint belongs to the run.
    pub fn is_own(&self) -> bool {
        own_path(&self.run, &self.checkpoint.path).is_some()
    }

    /// The report's description of the evaluation, for `simulator`.
    ///
    /// # Errors
    /// When no suite has its task.
    pub fn setting(&self, simulator: Simulator) -> Result<evaluation::Setting> {
        let state = &self.checkpoint.state;
        let task = self.task();
        let targets: Vec<String> = self.plan.targets.iter().map(f32::to_string).collect();
        let protocol = &self.request.protocol;
        let actions = match task.actions {
            ActionSpace::Discrete { .. } => format!("temperature={}", protocol.acting.temperature),
            ActionSpace::Continuous { .. } => {
                format!("actions={}", request::action_choice_name(protocol.action_choice))
            }
        };
        let mut options = format!("protocol={} {actions}", protocol.name);
        // A top percent replaces the target return and its limit.
        if protocol.acting.top_percent > 0.0 {
            options += &format!(" top_percent={}", protocol.acting.top_percent);
        } else {
            options += &format!(" target={}", targets.join(","));
            if self.agent.has_return_model() {
                options += &format!(" return_quantile={}", protocol.acting.return_quantile);
            }
        }
        Ok(evaluation::Setting {
            task: Task {
                reference: task.reference.clone().filter(|_| self.step_limit().is_none()),
                ..task.clone()
            },
            simulator: simulator.name,
            rom_md5: simulator.rom_md5,
            policy: format!("{}, {} data", self.agent.algorithm.describe(), state.dataset_kind),
            protocol: self.request.protocol.clone(),
            differences: self.differences(),
            used_settings: self.used_settings(),
            choice: self.request.choice.clone(),
            checkpoint: Some(evaluation::CheckpointRef {
                path: own_path(&self.run, &self.checkpoint.path)
                    .unwrap_or_else(|| real(&self.checkpoint.path)),
                step: state.step,
            }),
            dataset_hash: Some(state.dataset_hash.clone()),
            command: format!(
                "overtone evaluate rollouts run={} checkpoint={} episodes={} {options} seed={}",
                quoted(self.run.path()),
                quoted(checkpoint_name(&self.run, &self.checkpoint)),
                self.plan.episodes,
                self.plan.seed
            ),
        })
    }
}
