//! What an agent is asked for, and how it is played.

use anyhow::{Result, bail};
use overtone_core::{
    ContinuousProtocol, Emulation, Play, Protocol, Simulation,
    protocol::{ActionChoice, ReturnUnits, Revision},
};
use overtone_train::{Agent, AtariAgent, ContinuousTaskAgent};

use crate::settings::{self, EvaluationSettings};

/// The protocol and the target returns of `options`, for `agent`, trained on data whose
/// ascending episode returns are `returns`; between them the targets as they were asked for.
///
/// # Errors
/// When they cannot be asked for.
pub fn what_to_ask(
    options: &EvaluationSettings,
    agent: &Agent,
    returns: &[f32],
) -> Result<(Play, String, Vec<f32>)> {
    let (play, usual) = match agent {
        Agent::Atari(agent) => (Play::Atari(atari(options, agent)?), "p90"),
        Agent::Continuous(agent) => {
            let usual = settings::default_targets(&agent.env).unwrap_or("p90");
            (Play::Continuous(continuous(options, agent)?), usual)
        }
    };
    let asked = if options.target.is_empty() { usual } else { &options.target };
    if matches!(agent, Agent::Atari(_))
        && play.return_units() == ReturnUnits::Raw
        && asked.contains('p')
    {
        bail!(
            "target={asked}: percentiles are of the data's clipped returns, and the protocol {} \
             counts raw points; say a number (the reference asked for 1150 in Seaquest)",
            play.name()
        );
    }
    let targets = settings::targets(asked, returns)?;
    Ok((play, asked.to_owned(), targets))
}

fn atari(options: &EvaluationSettings, agent: &AtariAgent) -> Result<Protocol> {
    let temperature = options.temperature.unwrap_or(1.0);
    if !(temperature.is_finite() && temperature > 0.0) {
        bail!("temperature={temperature}: must be positive");
    }
    let recording = agent.recording.clone().unwrap_or_else(Emulation::dqn_replay);
    let preset = match options.protocol.as_deref().unwrap_or("matched") {
        "matched" => Protocol::matched(&recording),
        "released" => Protocol::released(),
        other => bail!("protocol={other}: there are matched and released"),
    };
    Ok(Protocol { temperature, ..preset })
}

fn continuous(
    options: &EvaluationSettings,
    agent: &ContinuousTaskAgent,
) -> Result<ContinuousProtocol> {
    let recorded = agent.recording.clone().unwrap_or_else(Simulation::d4rl);
    let revision = match options.revision.as_deref().unwrap_or("recorded") {
        "recorded" => recorded.revision,
        "v4" => Revision::V4,
        "v5" => Revision::V5,
        other => bail!("revision={other}: there are recorded, v4 and v5"),
    };
    let name = if revision == recorded.revision { "matched" } else { revision.name() };
    Ok(ContinuousProtocol {
        name: name.into(),
        simulation: Simulation { revision, ..recorded },
        action_choice: options.actions.unwrap_or(ActionChoice::Mode),
        return_scale: agent.return_scale,
        delayed_reward: agent.delayed_reward,
    })
}

/// `mode` or `sample`.
///
/// # Errors
/// When it is neither.
pub fn action_choice(name: &str) -> Result<ActionChoice> {
    Ok(match name {
        "mode" => ActionChoice::Mode,
        "sample" => ActionChoice::Sample,
        other => bail!("actions={other}: there are mode and sample"),
    })
}

/// The name that [`action_choice`] reads.
pub fn action_choice_name(choice: ActionChoice) -> &'static str {
    match choice {
        ActionChoice::Mode => "mode",
        ActionChoice::Sample => "sample",
    }
}

/// `36 (p90 of the data's episode returns …)`.
pub fn describe_targets(text: &str, targets: &[f32], returns: &[f32]) -> String {
    let numbers: Vec<String> = targets.iter().map(f32::to_string).collect();
    let numbers = numbers.join(", ");
    match (returns.first(), returns.last()) {
        (Some(lowest), Some(highest)) if text.contains('p') => format!(
            "{numbers} ({text} of the data's {} episode returns, which lie between {lowest} and \
             {highest})",
            returns.len()
        ),
        (Some(lowest), Some(highest)) => {
            format!("{numbers} (the data's episode returns lie between {lowest} and {highest})")
        }
        _ => numbers,
    }
}
