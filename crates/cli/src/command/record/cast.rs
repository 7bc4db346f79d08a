//! [`Cast`]: the policies of a recording.

use anyhow::{Context, Result, bail};
use overtone_agents::{Agent, policy};
use overtone_core::protocol::ActionChoice;
use overtone_core::{ActionSpace, Play, Policy, Task};
use overtone_model::device;
use overtone_settings::{EvaluationConfig, runs::open_checkpoint};
use overtone_train::RunDir;

use super::RecordOptions;
use crate::{
    command::evaluate::{OwnChoice, request, requests},
    command::first_of,
};

/// The policies of a recording, with its task.
pub struct Cast {
    /// The task.
    pub task: &'static Task,
    /// The protocol, with the simulation.
    pub protocol: Play,
    /// The policies.
    pub members: Vec<Member>,
    /// Range of steps that each acts in turn; `None`: one policy for each episode.
    pub switch: Option<[u64; 2]>,
    /// A short description of the policies.
    pub description: String,
}

/// One policy.
pub struct Member {
    /// `None`: random actions.
    pub policy: Option<Box<dyn Policy>>,
    /// Its target return.
    pub target: f32,
    /// Whether it draws its actions, and does not take the most probable ones.
    pub draws: bool,
    /// How often it is drawn, relative to the others.
    pub share: f64,
}

impl Cast {
    /// The policies that the options name.
    ///
    /// # Errors
    /// When one is missing, their tasks differ, or an option in `words` does not apply to one.
    pub fn of(
        options: &RecordOptions,
        words: &[String],
        task: Option<&'static Task>,
    ) -> Result<Self> {
        let names: Vec<String> =
            options.policy.split(',').map(|name| name.trim().to_owned()).collect();
        let shares = shares(&options.share, names.len())?;
        let switch = switch(&options.switch)?;
        if let (Some(_), [only]) = (switch, &names[..]) {
            bail!(
                "switch={}: policy={only} is a single policy. Name several to switch between, such \
                 as policy=random,RUN",
                options.switch
            );
        }
        let device = device::choose(&options.device)?;
        let evaluation = EvaluationConfig {
            target: options.target.clone(),
            temperature: options.temperature,
            actions: options.actions,
            ..EvaluationConfig::one_episode()
        };
        let of_runs = first_of(words, &["target", "temperature", "actions"]);
        if let (Some(word), true) = (of_runs, names.iter().all(|name| name == "random")) {
            bail!(
                "{word} applies only to runs, and policy={} is only random. Leave it out",
                options.policy
            );
        }
        let (mut task, mut protocol): (_, Option<Play>) = (task, None);
        let mut members = Vec::with_capacity(names.len());
        for (name, share) in names.iter().zip(shares) {
            if name == "random" {
                members.push(Member { policy: None, target: 0.0, draws: true, share });
                continue;
            }
            let run = RunDir::open(&options.runs, name)
                .with_context(|| format!("policy={name}: expected random or a run"))?;
            let checkpoint = open_checkpoint(&run, "last")?;
            let agent = Agent::of(&checkpoint)?;
            request::check_applicable(words, &agent.task)?;
            let own = overtone_settings::suites::as_trained(&agent.task)?;
            if let Some(other) = task.filter(|task| *task != own) {
                bail!(
                    "policy={name} is an agent for {}, and the recording is of {}. Use runs of the \
                     same task",
                    own.id(),
                    other.id()
                );
            }
            // Otherwise the recording would have actions in the units of another environment.
            overtone_settings::suites::of(own)?.check(&agent.task)?;
            task = Some(own);
            let chosen = OwnChoice::of(&run, &checkpoint)?;
            let requests =
                requests(&evaluation, &agent, &checkpoint.state.episode_returns, &chosen)?;
            let request = requests.first().context("the policy does not have a target")?;
            let [target] = request.targets[..] else {
                bail!("target={}: expected one return", options.target)
            };
            let policy = policy(&checkpoint, &request.protocol, &device.device)?;
            let draws = request.protocol.action_choice == ActionChoice::Sample;
            members.push(Member { policy: Some(policy), target, draws, share });
            let simulation = &protocol.get_or_insert_with(|| request.protocol.clone()).simulation;
            if *simulation != request.protocol.simulation {
                bail!(
                    "policy={name}: its simulation differs from the other policies'. Use runs of \
                     the same simulation"
                );
            }
        }
        let task =
            task.context("task=: no task is set. Set one, such as task=gymnasium/CartPole-v1")?;
        Ok(Self {
            task,
            protocol: protocol.unwrap_or_else(|| task.matched(None)),
            members,
            switch,
            description: format!("policy {}", names.join(", ")),
        })
    }

    /// Whether the probability of every recorded action is known: actions are discrete, and each
    /// policy is random or draws from distributions that it stores.
    pub fn has_log_probs(&self) -> bool {
        let is_known = |member: &Member| match &member.policy {
            None => true,
            Some(policy) => member.draws && policy.played().is_some(),
        };
        matches!(self.task.actions, ActionSpace::Discrete { .. })
            && self.members.iter().all(is_known)
    }

    /// The policy for the random number `draw` in [0, 1).
    pub fn drawn(&self, draw: f64) -> usize {
        let all: f64 = self.members.iter().map(|member| member.share).sum();
        let mut left = draw * all;
        for (at, member) in self.members.iter().enumerate() {
            left -= member.share;
            if left < 0.0 {
                return at;
            }
        }
        self.members.len() - 1
    }
}

fn shares(text: &str, n: usize) -> Result<Vec<f64>> {
    if text.is_empty() {
        return Ok(vec![1.0; n]);
    }
    let share = |part: &str| {
        let share = part.trim().parse().ok();
        share.filter(|share: &f64| share.is_finite() && *share > 0.0)
    };
    let shares: Option<Vec<f64>> = text.split(',').map(share).collect();
    shares.filter(|shares| shares.len() == n).with_context(|| {
        format!("share={text}: expected {n} numbers above 0, one for each policy, such as 1,2")
    })
}

/// `50..200`, or `50` for always 50.
fn switch(text: &str) -> Result<Option<[u64; 2]>> {
    if text.is_empty() {
        return Ok(None);
    }
    let (low, high) = text.split_once("..").unwrap_or((text, text));
    let bounds = low.trim().parse().ok().zip(high.trim().parse().ok());
    let bounds = bounds.filter(|&(low, high): &(u64, u64)| 0 < low && low <= high);
    let (low, high) =
        bounds.with_context(|| format!("switch={text}: expected steps, such as 50..200"))?;
    Ok(Some([low, high]))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shares_and_turns_are_read_or_refused() {
        assert_eq!(shares("", 2).unwrap(), [1.0, 1.0]);
        assert_eq!(shares("1, 0.5", 2).unwrap(), [1.0, 0.5]);
        for text in ["1", "1,0", "1,x", "1,2,3", "1,inf"] {
            assert!(shares(text, 2).is_err(), "{text}");
        }
        assert_eq!(switch("").unwrap(), None);
        assert_eq!(switch("50..200").unwrap(), Some([50, 200]));
        assert_eq!(switch("7").unwrap(), Some([7, 7]));
        for text in ["0..3", "5..3", "x", "3..", "-1..3"] {
            assert!(switch(text).is_err(), "{text}");
        }
    }
}
