//! `overtone export format=onnx`: an agent as a graph, with a script that plays it.

use std::{fs, path::Path};

use anyhow::{Context, Result};
use overtone_agents::{Agent, acting::Draw};
use overtone_core::protocol::{ActionChoice, ReturnUnits};
use overtone_core::{ActionSpace, ObservationSpace, Play};
use overtone_eval::{Evaluation, PlayedEpisode};
use overtone_train::{Checkpoint, RunDir};
use serde::Serialize;

use super::{card, write_folder};
use crate::command::evaluate::{OwnChoice, play_of};

/// The graph.
const GRAPH: &str = "agent.onnx";
/// Everything else that acting needs.
const ABOUT: &str = "agent.json";
/// The script.
const SCRIPT: &str = "play.py";
/// A temperature at which all actions are equally likely.
const RANDOM: f32 = 1e30;

/// Everything besides the graph that acting needs.
#[derive(Serialize)]
struct About<'a> {
    /// Version of these keys.
    format: u32,
    task: String,
    algorithm: String,
    observations: &'a ObservationSpace,
    actions: &'a ActionSpace,
    /// Timesteps of each input.
    context_length: usize,
    /// `action`, or `logits` of discrete actions.
    outputs: [&'static str; 1],
    /// The number of actions that `action` has, one after the other, each played whatever is
    /// observed meanwhile.
    #[serde(skip_serializing_if = "is_one")]
    chunk_size: usize,
    /// The return-to-go of the first timestep.
    target_return: f32,
    /// Whether the return-to-go stays at the target.
    delayed_reward: bool,
    /// Whether rewards are clipped to [-1, 1] before they are subtracted from it.
    clip_rewards: bool,
    /// `mode`: the action with the largest logit. `sample`: with the probability `greedy` this
    /// action, else one drawn from the softmax of the logits divided by the temperature.
    choice: ActionChoice,
    greedy: f64,
    temperature: f32,
    /// Whether each choice needs a mask of actions: the scores of others were not trained.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    needs_action_mask: bool,
    /// Hash of the training data's content.
    data_sha256: &'a str,
    updates: u64,
    /// An episode that Overtone played with this agent, to repeat its draws: `overtone-serve` makes
    /// them with `begin(agent_seed)`. Absent without an evaluation in this acting mode.
    #[serde(skip_serializing_if = "Option::is_none")]
    episode: Option<PlayedEpisode>,
}

fn is_one(n: &usize) -> bool {
    *n == 1
}

/// The first episode with the target return in an evaluation of the checkpoint by this protocol.
fn evaluated(run: &RunDir, step: u64, play: &Play, target_return: f32) -> Option<PlayedEpisode> {
    let files = Evaluation::files(run.path()).unwrap_or_default();
    let evaluations = files.iter().filter_map(|path| Evaluation::read(path).ok());
    let mut evaluations = evaluations.filter(|evaluation| {
        let setting = &evaluation.setting;
        setting.protocol == *play && setting.checkpoint.as_ref().is_some_and(|of| of.step == step)
    });
    evaluations.find_map(|evaluation| {
        let mut episodes = evaluation.episodes.into_iter();
        episodes.find(|episode| episode.target_return == target_return)
    })
}

/// Writes the directory `to`, with the acting mode of `chosen` or this top percentage;
/// `deterministic`: with the most probable action.
///
/// # Errors
/// When the agent cannot be a graph, or a file cannot be written.
pub(super) fn write(
    run: &RunDir,
    checkpoint: &Checkpoint,
    agent: &Agent,
    (chosen, top_percent): (&OwnChoice, Option<f32>),
    deterministic: bool,
    to: &Path,
) -> Result<()> {
    let state = &checkpoint.state;
    let returns = &state.episode_returns;
    let (mut play, target_return) = play_of(agent, returns, chosen, "", [None, None, top_percent])?;
    if deterministic {
        play.action_choice = ActionChoice::Mode;
    }
    let weights = checkpoint.weights()?;
    let version = env!("CARGO_PKG_VERSION");
    let graph = overtone_onnx::export(agent, &weights, &play, version)
        .with_context(|| format!("cannot export {}", checkpoint.path.display()))?;
    let (greedy, temperature) = match agent.algorithm.network().draw(&play) {
        Some(Draw::Greedy { epsilon }) => (1.0 - epsilon, RANDOM),
        _ => (0.0, play.acting.temperature),
    };
    let about = About {
        format: 1,
        task: agent.task.id(),
        algorithm: agent.algorithm.describe(),
        observations: &agent.task.observations,
        actions: &agent.task.actions,
        context_length: agent.algorithm.model().map_or(1, |model| model.context_length()),
        outputs: match agent.task.actions {
            ActionSpace::Discrete { .. } => ["logits"],
            ActionSpace::Continuous { .. } => ["action"],
        },
        chunk_size: agent.algorithm.network().chunk_size(),
        target_return,
        delayed_reward: play.delayed_reward,
        clip_rewards: play.return_units == ReturnUnits::Clipped,
        choice: match agent.task.actions {
            ActionSpace::Discrete { .. } => play.action_choice,
            ActionSpace::Continuous { .. } => ActionChoice::Mode,
        },
        greedy,
        temperature,
        needs_action_mask: agent.needs_action_mask,
        data_sha256: &state.dataset_hash,
        updates: state.step,
        episode: evaluated(run, state.step, &play, target_return),
    };
    write_folder(to, |folder| {
        fs::write(folder.join(GRAPH), &graph)?;
        fs::write(folder.join(ABOUT), serde_json::to_vec_pretty(&about)?)?;
        fs::write(folder.join(SCRIPT), include_str!("play.py"))?;
        let card = card::onnx(agent, state, &card::returns(run, state));
        Ok(fs::write(folder.join("README.md"), card)?)
    })?;
    say!("exported {} to {}", checkpoint.path.display(), to.display());
    let (to, environment) = (to.join(SCRIPT), agent.task.id());
    say!("play it: python {} ENVIRONMENT (trained on {environment})", to.display());
    Ok(())
}
