//! What an agent is asked for, and how it is played.

use anyhow::{Result, bail};
use overtone_core::{
    ContinuousProtocol, Emulation, Play, Protocol, Simulation,
    protocol::{ActionChoice, Difference, ReturnUnits, Revision, Trained},
};
use overtone_model::{
    Conditioning, ContinuousAgentConfig,
    head::{ContinuousHeadConfig, HeadConfig},
};
use overtone_mujoco::Task;
use overtone_train::{Agent, AtariAgent, ContinuousTaskAgent};

use crate::settings::{self, EvaluationSettings};

/// How an agent is played, and what it is asked for.
pub struct Ask {
    /// The protocol.
    pub protocol: Play,
    /// The targets as they were asked for.
    pub asked: String,
    /// The targets.
    pub targets: Vec<f32>,
    /// What of it is otherwise than the agent was trained.
    pub differences: Vec<Difference>,
    /// Whether the protocol is that of training, in every setting.
    pub as_trained: bool,
}

impl Ask {
    /// `protocol` and `targets` for an agent that was `trained` so.
    pub fn new(trained: &Trained, protocol: Play, asked: String, targets: Vec<f32>) -> Self {
        let differences = trained.differences(&protocol, &targets);
        let as_trained = protocol == trained.play;
        Self { protocol, asked, targets, differences, as_trained }
    }

    /// What tells a report by this protocol from one of playing as trained, for its file's name:
    /// `-released`, `-t0.5`, `-v5-sample`; empty for playing as trained.
    pub fn suffix(&self) -> String {
        if self.as_trained {
            return String::new();
        }
        let mut suffix = match self.protocol.name() {
            "matched" => String::new(),
            name => format!("-{name}"),
        };
        match &self.protocol {
            Play::Atari(protocol) if protocol.temperature != 1.0 => {
                suffix += &format!("-t{}", protocol.temperature);
            }
            Play::Continuous(protocol) if protocol.action_choice != ActionChoice::Mode => {
                suffix += &format!("-{}", action_choice_name(protocol.action_choice));
            }
            Play::Atari(_) | Play::Continuous(_) => {}
        }
        suffix
    }
}

/// The protocols and the target returns of `options`, for `agent`, trained on data whose
/// ascending episode returns are `returns`.
///
/// # Errors
/// When they cannot be asked for.
pub fn what_to_ask(
    options: &EvaluationSettings,
    agent: &Agent,
    returns: &[f32],
) -> Result<Vec<Ask>> {
    let trained = trained(agent, returns);
    let names = options.protocol.as_deref().unwrap_or("matched");
    let mut asks: Vec<Ask> = Vec::new();
    for name in names.split(',').map(str::trim) {
        let protocol = match agent {
            Agent::Atari(agent) => Play::Atari(atari(options, name, agent)?),
            Agent::Continuous(agent) => Play::Continuous(continuous(options, name, agent)?),
        };
        if asks.iter().any(|ask| ask.protocol == protocol) {
            bail!("protocol={names}: {name} is named twice");
        }
        let asked = targets_asked(options, agent, &protocol)?;
        let targets = settings::targets(&asked, returns)?;
        asks.push(Ask::new(&trained, protocol, asked, targets));
    }
    Ok(asks)
}

/// How `agent` was trained, on data whose ascending episode returns are `returns`.
pub fn trained(agent: &Agent, returns: &[f32]) -> Trained {
    let returns = returns.first().zip(returns.last()).map(|(lowest, highest)| [*lowest, *highest]);
    let reads = |conditioning| matches!(conditioning, Conditioning::Return);
    match agent {
        Agent::Atari(agent) => {
            let order = match &agent.model.head {
                HeadConfig::Linear => None,
                HeadConfig::Fourier(head) => head.action_order.as_ref(),
                HeadConfig::Gmm(head) => head.action_order.as_ref(),
            };
            Trained {
                play: Play::Atari(Protocol::matched(&recording(agent))),
                returns,
                reads_returns: reads(agent.model.conditioning),
                own_action_order: order.is_some_and(|order| !order.bin_of().is_sorted()),
                has_density: true,
                revisions_differ: false,
            }
        }
        Agent::Continuous(agent) => {
            let (reads_returns, head) = match &agent.model {
                ContinuousAgentConfig::Transformer(model) => {
                    (reads(model.conditioning), &model.head)
                }
                ContinuousAgentConfig::Mlp(model) => (false, &model.head),
            };
            let one = matches!(head, ContinuousHeadConfig::Tanh | ContinuousHeadConfig::Pointwise);
            Trained {
                play: Play::Continuous(matched(agent)),
                returns,
                reads_returns,
                own_action_order: false,
                has_density: !one,
                revisions_differ: agent.env.parse().is_ok_and(Task::revisions_differ),
            }
        }
    }
}

/// The targets that an agent is asked for by `protocol`, as they are written.
fn targets_asked(options: &EvaluationSettings, agent: &Agent, protocol: &Play) -> Result<String> {
    let raw = matches!(agent, Agent::Atari(_)) && protocol.return_units() == ReturnUnits::Raw;
    let own = options.released_target.as_deref().filter(|own| raw && !own.is_empty());
    let asked = match (own.unwrap_or(&options.target), agent) {
        ("", Agent::Continuous(agent)) => settings::default_targets(&agent.env).unwrap_or("p90"),
        ("", Agent::Atari(agent)) if raw => match released_target(&agent.game) {
            Some(target) => target,
            None => bail!(
                "target=: no target of the reference is known for {}: say what to ask for, in raw \
                 points (in Seaquest it asked for 1150)",
                agent.game
            ),
        },
        ("", Agent::Atari(_)) => "p90",
        (asked, _) => asked,
    };
    if raw && asked.contains('p') {
        bail!(
            "target={asked}: percentiles are of the data's clipped returns, and the protocol {} \
             counts raw points; say a number (the reference asked for 1150 in Seaquest)",
            protocol.name()
        );
    }
    Ok(asked.to_owned())
}

/// What the released evaluation asks for, in raw points, where that is known.
pub fn released_target(game: &str) -> Option<&'static str> {
    (game == "Seaquest").then_some("1150")
}

fn recording(agent: &AtariAgent) -> Emulation {
    agent.recording.clone().unwrap_or_else(Emulation::dqn_replay)
}

fn atari(options: &EvaluationSettings, name: &str, agent: &AtariAgent) -> Result<Protocol> {
    let temperature = options.temperature.unwrap_or(1.0);
    if !(temperature.is_finite() && temperature > 0.0) {
        bail!("temperature={temperature}: must be positive");
    }
    let preset = match name {
        "matched" => Protocol::matched(&recording(agent)),
        "released" => Protocol::released(),
        other => bail!("protocol={other}: there are matched and released"),
    };
    Ok(Protocol { temperature, ..preset })
}

/// As the data was recorded, with the most probable actions.
fn matched(agent: &ContinuousTaskAgent) -> ContinuousProtocol {
    ContinuousProtocol {
        name: "matched".into(),
        simulation: agent.recording.clone().unwrap_or_else(Simulation::d4rl),
        action_choice: ActionChoice::Mode,
        return_scale: agent.return_scale,
        delayed_reward: agent.delayed_reward,
    }
}

fn continuous(
    options: &EvaluationSettings,
    name: &str,
    agent: &ContinuousTaskAgent,
) -> Result<ContinuousProtocol> {
    if name != "matched" {
        bail!("protocol={name}: a robot is played as its data was recorded; say revision=v4 or v5");
    }
    let mut protocol = matched(agent);
    let recorded = protocol.simulation.revision;
    let revision = match options.revision.as_deref().unwrap_or("recorded") {
        "recorded" => recorded,
        "v4" => Revision::V4,
        "v5" => Revision::V5,
        other => bail!("revision={other}: there are recorded, v4 and v5"),
    };
    if revision != recorded {
        protocol.name = revision.name().into();
        protocol.simulation.revision = revision;
    }
    protocol.action_choice = options.actions.unwrap_or(ActionChoice::Mode);
    Ok(protocol)
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
    let numbers: Vec<String> = targets.iter().copied().map(rounded).collect();
    let numbers = numbers.join(", ");
    let ends = returns.first().zip(returns.last());
    match ends.map(|(lowest, highest)| (rounded(*lowest), rounded(*highest))) {
        Some((lowest, highest)) if text.contains('p') => format!(
            "{numbers} ({text} of the data's {} episode returns, which lie between {lowest} and \
             {highest})",
            returns.len()
        ),
        Some((lowest, highest)) => {
            format!("{numbers} (the data's episode returns lie between {lowest} and {highest})")
        }
        None => numbers,
    }
}

/// A return to be read: whole ones as they are, others with one digit after the point.
fn rounded(value: f32) -> String {
    let digits = if value.fract() == 0.0 { 0 } else { 1 };
    format!("{value:.digits$}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(trained: &Play, played: Play, suffix: &str) {
        let trained = Trained {
            play: trained.clone(),
            returns: None,
            reads_returns: true,
            own_action_order: false,
            has_density: true,
            revisions_differ: true,
        };
        let ask = Ask::new(&trained, played, "1".into(), vec![1.0]);
        assert_eq!((ask.suffix().as_str(), ask.as_trained), (suffix, suffix.is_empty()));
    }

    #[test]
    fn what_is_not_as_trained_has_a_name_of_its_own() {
        let matched = Protocol::matched(&Emulation::dqn_replay());
        let trained = Play::Atari(matched.clone());
        let played =
            |preset: Protocol, temperature| Play::Atari(Protocol { temperature, ..preset });
        check(&trained, trained.clone(), "");
        check(&trained, played(matched, 0.1), "-t0.1");
        check(&trained, played(Protocol::released(), 1.0), "-released");
        check(&trained, played(Protocol::released(), 2.0), "-released-t2");

        let matched = ContinuousProtocol {
            name: "matched".into(),
            simulation: Simulation::d4rl(),
            action_choice: ActionChoice::Mode,
            return_scale: 1000.0,
            delayed_reward: false,
        };
        let trained = Play::Continuous(matched.clone());
        let mut v5 = matched.clone();
        (v5.name, v5.simulation.revision) = ("v5".into(), Revision::V5);
        check(&trained, trained.clone(), "");
        check(&trained, Play::Continuous(v5.clone()), "-v5");
        let drawn = |protocol: ContinuousProtocol| {
            Play::Continuous(ContinuousProtocol { action_choice: ActionChoice::Sample, ..protocol })
        };
        check(&trained, drawn(matched), "-sample");
        check(&trained, drawn(v5), "-v5-sample");
    }
}
