//! What an agent is asked for, and how it is played.

use anyhow::{Result, anyhow, bail};
use overtone_agents::Agent;
use overtone_core::{
    ActingMode, ActionSpace, Play, Task,
    protocol::{ActionChoice, Difference, Trained},
};
use overtone_data::EpisodeReturns;
use overtone_env::Suite;
use overtone_eval::{Choice, Heeds};

use super::own_choice::OwnChoice;
use crate::{
    keys,
    settings::{self, Choosable, EvaluationConfig, Every},
    suites::{self, SUITES},
};

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
    /// Whether the protocol is the agent's own: that of training, in every setting, and what
    /// was chosen for it.
    pub is_own: bool,
    /// What tells a report by this protocol from one by the agent's own, for its file's name:
    /// `-released`, `-t0.5`, `-v5-sample`; empty for the own.
    pub suffix: String,
    /// How some of the protocol was chosen, where it was.
    pub choice: Option<Choice>,
}

impl Ask {
    /// `protocol` and `targets` for an agent that was `trained` so, and whose own protocol is
    /// `own`.
    pub fn new(
        trained: &Trained,
        own: &Play,
        protocol: Play,
        asked: String,
        targets: Vec<f32>,
    ) -> Self {
        let differences = trained.differences(&protocol, &targets);
        let is_own = protocol == *own;
        let suffix = suffix(trained, own, &protocol);
        Self { protocol, asked, targets, differences, is_own, suffix, choice: None }
    }
}

fn suffix(trained: &Trained, own: &Play, played: &Play) -> String {
    let mut suffix = String::new();
    if played.name != own.name {
        suffix += &format!("-{}", played.name);
    }
    let [acting, own_mode] = [played.acting, own.acting];
    // Other protocols have that of training, whatever was chosen for this one.
    let usual = if played.name == own.name { own_mode } else { trained.play.acting };
    if acting.temperature != usual.temperature {
        suffix += &format!("-t{}", acting.temperature);
    }
    if played.action_choice != own.action_choice {
        suffix += &format!("-{}", action_choice_name(played.action_choice));
    }
    match acting.top_percent {
        0.0 if own_mode.top_percent == 0.0
            && acting.return_quantile == own_mode.return_quantile => {}
        0.0 => suffix += &format!("-q{}", acting.return_quantile),
        percent if percent == own_mode.top_percent => {}
        percent => suffix += &format!("-top{percent}"),
    }
    suffix
}

/// The protocols and the target returns of `options`, for `agent`, trained on data whose
/// ascending episode returns are `returns`, and of which this is `chosen`.
///
/// # Errors
/// When they cannot be asked for.
pub fn what_to_ask(
    options: &EvaluationConfig,
    agent: &Agent,
    returns: &EpisodeReturns,
    chosen: &OwnChoice,
) -> Result<Vec<Ask>> {
    let trained = trained(agent, returns)?;
    let own = chosen.own(&trained.play);
    let suite = suites::of(&trained.task)?;
    check_heeded(options, agent, suite)?;
    let names = &options.protocol;
    let mut asks: Vec<Ask> = Vec::new();
    for name in names.split(',').map(str::trim) {
        let protocol = protocol(options, name, suite, &trained, chosen)?;
        check_top_percent(protocol.acting.top_percent, &agent.top_percents())?;
        if asks.iter().any(|ask| ask.protocol == protocol) {
            bail!("protocol={names}: {name} is named twice");
        }
        let (key, asked) = targets_asked(options, &trained.task, suite, &protocol)?;
        let targets = settings::targets(key, &asked, returns)?;
        let mut ask = Ask::new(&trained, &own, protocol, asked, targets);
        // A choice in which nothing was left to choose is none.
        let top_percent = options.top_percent();
        let said = [options.temperature, options.return_quantile, top_percent];
        if said.contains(&Choosable::Chosen) {
            let choice = chosen.choice(top_percent.fixed()).filter(Choice::is_one);
            // Elsewhere the temperature is the reference's, whatever was chosen.
            let applies = |choice: &Choice| {
                let mut settings = choice.settings().into_iter();
                ask.protocol.name == MATCHED || settings.all(|(name, _)| name != "temperature")
            };
            let is_played = |choice: &Choice| choice.chosen == ask.protocol.acting;
            ask.choice = choice.filter(|choice| applies(choice) && is_played(choice));
        }
        asks.push(ask);
    }
    Ok(asks)
}

/// How `agent` plays as it was trained, with `target` as it is written (empty: by default), and
/// temperature, return quantile and top percent, each where it is given; and its target return.
///
/// # Errors
/// As [`what_to_ask`], and where `target` names several returns.
pub fn play_of(
    agent: &Agent,
    returns: &EpisodeReturns,
    chosen: &OwnChoice,
    target: &str,
    mode: [Option<f32>; 3],
) -> Result<(Play, f32)> {
    let [temperature, return_quantile, top_percent] =
        mode.map(|number| number.map_or(Choosable::Chosen, Choosable::Fixed));
    let options = EvaluationConfig {
        episodes: 1,
        target: target.to_owned(),
        released_target: None,
        protocol: MATCHED.to_owned(),
        temperature,
        actions: agent.matched().action_choice,
        return_quantile,
        top_percent,
        seed: 0,
        parallel: 0,
        every: Every::Checkpoints(0),
        every_episodes: 0,
    };
    let ask = what_to_ask(&options, agent, returns, chosen)?.swap_remove(0);
    match ask.targets[..] {
        [target] => Ok((ask.protocol, target)),
        _ => bail!("target_return={target}: one return is asked for"),
    }
}

/// Checks that `agent` heeds what `options` say of how it is played.
///
/// # Errors
/// When they ask for several returns and it reads none, for draws of a distribution that it does
/// not have, or for a return of a protocol that they do not name.
fn check_heeded(options: &EvaluationConfig, agent: &Agent, suite: &dyn Suite) -> Result<()> {
    let released = options.released_target.as_deref().unwrap_or_default();
    let is_released = |name: &str| suite.released() == Some(name.trim());
    if !released.is_empty() && !options.protocol.split(',').any(is_released) {
        bail!("released_target={released}: protocol={} does not ask for it", options.protocol);
    }
    let what = agent.algorithm.describe();
    let mut several = [("target", options.target.as_str()), ("released_target", released)]
        .into_iter()
        .filter(|(_, asked)| asked.contains(','));
    if let (Some((key, asked)), false) = (several.next(), agent.algorithm.reads_returns()) {
        bail!("{key}={asked}: {what} reads no return and plays the same for each; say one or none");
    }
    let drawn = match (options.actions, options.temperature) {
        _ if agent.algorithm.has_distribution() => return Ok(()),
        (ActionChoice::Sample, _) => "actions=sample".to_owned(),
        (_, Choosable::Fixed(other)) if other != 1.0 => format!("temperature={other}"),
        _ => return Ok(()),
    };
    bail!("{drawn}: {what} has no distribution that actions are drawn from")
}

/// Checks that each of `words` (`key=value`) says something of playing `task`, and that it is
/// played at all.
///
/// # Errors
/// When one does not, or it is not.
pub fn check_given(words: &[String], task: &Task) -> Result<()> {
    let suite = suites::of(task)?;
    suites::check_environment(task)?;
    let is_list = matches!(task.actions, ActionSpace::Discrete { .. });
    for word in words {
        let (key, text) = keys::split(word)?;
        let of = match &*key {
            "temperature" if !is_list => "tasks with a list of actions".to_owned(),
            "actions" if is_list => "tasks with real-valued actions".to_owned(),
            "released_target" if suite.released().is_none() => {
                let others = SUITES.into_iter().filter(|suite| suite.released().is_some());
                others.map(|suite| suite.nouns()[1]).collect::<Vec<_>>().join(" and ")
            }
            _ => continue,
        };
        bail!("{key}={text} is for {of} alone, and this agent plays {}", task.title);
    }
    Ok(())
}

/// What `agent` heeds of how it is played where it is told to act as in the best `top_percent` %
/// of its recording, or by 0 a return.
pub fn heeds(agent: &Agent, top_percent: f32) -> Heeds {
    let is_told_return = top_percent == 0.0;
    Heeds {
        target: agent.algorithm.reads_returns() && is_told_return,
        temperature: agent.has_temperature(),
        return_quantile: agent.has_return_model() && is_told_return,
        top_percent: !agent.top_percents().is_empty(),
    }
}

/// `mode` as options of a command, as far as `agent` heeds it: ` temperature=0.5 top_percent=0`.
pub fn words(agent: &Agent, mode: &ActingMode) -> String {
    let heeds = heeds(agent, mode.top_percent);
    let heeded = [
        ("temperature", heeds.temperature, mode.temperature),
        ("return_quantile", heeds.return_quantile, mode.return_quantile),
        ("top_percent", heeds.top_percent, mode.top_percent),
    ];
    let heeded = heeded.into_iter().filter(|(_, heeds, _)| *heeds);
    heeded.map(|(key, _, value)| format!(" {key}={value}")).collect()
}

/// Checks that a score is of other episodes than the mode to play was chosen by, whoever names the
/// mode.
///
/// # Errors
/// When a score would be of the episodes that chose how the agent is played.
pub fn check_seed(seed: u64, ask: &Ask, chosen: &OwnChoice) -> Result<()> {
    let is_played = |choice: &&Choice| choice.chosen == ask.protocol.acting;
    let own = chosen.choice.as_ref().filter(|choice| choice.is_one()).filter(is_played);
    if ask.choice.as_ref().or(own).is_some_and(|choice| choice.seed == seed) {
        bail!(
            "seed={seed}: its episodes chose how this agent is played, so a score of them flatters \
             it; say another seed"
        );
    }
    Ok(())
}

/// How `agent` was trained, on data whose episodes earned `returns`.
///
/// # Errors
/// When no suite has its task.
pub fn trained(agent: &Agent, returns: &EpisodeReturns) -> Result<Trained> {
    Ok(Trained {
        play: agent.matched(),
        task: agent.task.clone(),
        settings: suites::of(&agent.task)?.settings(),
        returns: returns.ends(),
        reads_returns: agent.algorithm.reads_returns(),
        own_action_order: agent.has_own_action_order(),
        has_density: agent.algorithm.has_distribution(),
        reads_global_timestep: agent.reads_global_timestep(),
    })
}

/// The protocol of this name, with what `options` say about choosing actions.
fn protocol(
    options: &EvaluationConfig,
    name: &str,
    suite: &dyn Suite,
    trained: &Trained,
    chosen: &OwnChoice,
) -> Result<Play> {
    let matched = &trained.play;
    let preset = (name == MATCHED).then(|| matched.clone());
    let Some(mut play) = preset.or_else(|| suite.protocol(name, matched)) else {
        bail!("protocol={name}: there are {}", listed(&[&[MATCHED], suite.protocols()].concat()))
    };
    check_one_is_told(options)?;
    let mode = chosen.chosen(matched, options.top_percent().fixed());
    match trained.task.actions {
        ActionSpace::Discrete { .. } => match options.temperature {
            Choosable::Fixed(temperature) => play.acting.temperature = temperature,
            // What the reference does it does at its own.
            Choosable::Chosen if play.name == MATCHED => play.acting.temperature = mode.temperature,
            Choosable::Chosen => {}
        },
        ActionSpace::Continuous { .. } => {
            play.action_choice = options.actions;
        }
    }
    play.acting.top_percent = mode.top_percent;
    play.acting.return_quantile = options.return_quantile.or(mode.return_quantile);
    let quantile = play.acting.return_quantile;
    if matched.acting.return_quantile == 1.0 && quantile != 1.0 {
        bail!(
            "return_quantile={quantile}: this agent did not learn what may be earned from a state; \
             train it with model.return_head=hl_gauss"
        );
    }
    if !(quantile > 0.0 && quantile <= 1.0) {
        bail!("return_quantile={quantile}: must lie above 0, and at most at 1");
    }
    let temperature = play.acting.temperature;
    if !(temperature.is_finite() && temperature > 0.0) {
        bail!("temperature={temperature}: must be positive");
    }
    Ok(play)
}

/// # Errors
/// When `options` name both a share of the best episodes and a return.
fn check_one_is_told(options: &EvaluationConfig) -> Result<()> {
    let Some(percent) = options.top_percent.fixed().filter(|percent| *percent > 0.0) else {
        return Ok(());
    };
    let returns = match options.return_quantile {
        _ if !options.target.is_empty() => format!("target={}", options.target),
        Choosable::Fixed(quantile) => format!("return_quantile={quantile}"),
        Choosable::Chosen => return Ok(()),
    };
    bail!(
        "{returns} and top_percent={percent}: an agent that acts as in a share of the best \
         episodes is told no return; say one of the two"
    )
}

/// Checks that an agent that was told of the shares `known` can be told `top_percent`.
///
/// # Errors
/// When it cannot.
pub fn check_top_percent(top_percent: f32, known: &[f32]) -> Result<()> {
    if top_percent == 0.0 || known.contains(&top_percent) {
        return Ok(());
    }
    let told: Vec<String> = known.iter().map(f32::to_string).collect();
    match &told[..] {
        [] => bail!(
            "top_percent={top_percent}: this agent was not told how the best act; train it with \
             model.top_percents"
        ),
        _ => bail!(
            "top_percent={top_percent}: this agent was told of {} %, and of a return by 0",
            told.join(", ")
        ),
    }
}

/// `matched, v4 and v5`.
fn listed(names: &[&str]) -> String {
    match names {
        [] => String::new(),
        [only] => (*only).to_owned(),
        [first @ .., last] => format!("{} and {last}", first.join(", ")),
    }
}

/// The targets that an agent is asked for by `protocol`, as they are written, and the key that says
/// them.
fn targets_asked(
    options: &EvaluationConfig,
    task: &Task,
    suite: &dyn Suite,
    protocol: &Play,
) -> Result<(&'static str, String)> {
    let other_units = protocol.return_units != task.return_units;
    let released = suite.released() == Some(&protocol.name);
    let own = options.released_target.as_deref().filter(|own| released && !own.is_empty());
    let key = match (own, &options.released_target) {
        (Some(_), _) => "released_target",
        (None, Some(_)) => "target",
        // Of training, where there is no other.
        (None, None) => "evaluation.target",
    };
    let asked = match own.unwrap_or(&options.target) {
        "" | REFERENCE if other_units => match task.targets.released {
            Some(target) => target.to_string(),
            None => bail!(
                "{key}=: no target of the reference is known for {}: say what to ask for, in raw \
                 points{}",
                task.title,
                example(suite)
            ),
        },
        asked => named_targets(asked, task),
    };
    if other_units && asked.contains('p') {
        bail!(
            "{key}={asked}: percentiles are of the data's clipped returns, and the protocol {} \
             counts raw points; say a number{}",
            protocol.name,
            example(suite)
        );
    }
    Ok((key, asked))
}

/// What the reference asks for in one of the suite's tasks: ` (in Seaquest it asked for 1150)`.
fn example(suite: &dyn Suite) -> String {
    let known = suite.tasks().iter().find_map(|task| Some((&task.title, task.targets.released?)));
    known.map_or_else(String::new, |(task, target)| {
        format!(" (in {task} the reference asked for {target})")
    })
}

/// What a protocol is called by which the data was recorded, whatever the user calls it.
const MATCHED: &str = "matched";

/// What an agent is asked for where nobody says: what the best of the recorded episodes earned.
/// Numbers of the reference suit its data, and ask for what other data never holds.
pub const DEFAULT_TARGET: &str = "p95";

/// How the reference's targets are asked for.
const REFERENCE: &str = "reference";

/// `target`, of several the first, as a number or a percentile; the default where it says nothing.
pub fn first_target(target: &str, task: &Task) -> String {
    named_targets(target, task).split(',').next().unwrap_or_default().to_owned()
}

/// What `target` names, as numbers or percentiles: the default where it says nothing, and where
/// the reference has no targets for `task`.
fn named_targets(target: &str, task: &Task) -> String {
    match (target, &task.targets.usual[..]) {
        ("", _) | (REFERENCE, []) => DEFAULT_TARGET.to_owned(),
        (REFERENCE, usual) => usual.iter().map(f32::to_string).collect::<Vec<_>>().join(","),
        (asked, _) => asked.to_owned(),
    }
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

/// `chosen`, or a number.
///
/// # Errors
/// When it is neither.
pub fn choosable(key: &str, value: toml::Value) -> Result<Choosable> {
    let said = Choosable::try_from(value);
    said.map_err(|error| anyhow!("{key}={error}"))
}

/// The name that [`action_choice`] reads.
pub fn action_choice_name(choice: ActionChoice) -> &'static str {
    match choice {
        ActionChoice::Mode => "mode",
        ActionChoice::Sample => "sample",
    }
}

/// `36 (p90 of the data's episode returns …)`.
pub fn describe_targets(text: &str, targets: &[f32], returns: &EpisodeReturns) -> String {
    let numbers: Vec<String> = targets.iter().copied().map(rounded).collect();
    let numbers = numbers.join(", ");
    match returns.ends().map(|ends| ends.map(rounded)) {
        Some([lowest, highest]) if text.contains('p') => format!(
            "{numbers} ({text} of the data's {} episode returns by actions, which lie between \
             {lowest} and {highest})",
            returns.n_episodes()
        ),
        Some([lowest, highest]) => {
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
    fn check(trained: &Trained, played: Play, suffix: &str) {
        check_own(trained, &trained.play, played, suffix);
    }

    #[track_caller]
    fn check_own(trained: &Trained, own: &Play, played: Play, suffix: &str) {
        let ask = Ask::new(trained, own, played, "1".into(), vec![1.0]);
        assert_eq!((ask.suffix.as_str(), ask.is_own), (suffix, suffix.is_empty()));
    }

    fn trained(name: &str) -> (Trained, &'static dyn Suite) {
        let task = suites::named(name).unwrap();
        let suite = suites::of(task).unwrap();
        let trained = Trained {
            play: task.matched(None),
            task: task.clone(),
            settings: suite.settings(),
            returns: None,
            reads_returns: true,
            own_action_order: false,
            has_density: true,
            reads_global_timestep: true,
        };
        (trained, suite)
    }

    #[test]
    fn what_is_not_as_trained_has_a_name_of_its_own() {
        let (game, suite) = trained("Seaquest");
        let matched = game.play.clone();
        let released = suite.protocol("released", &matched).unwrap();
        check(&game, matched.clone(), "");
        let at = |temperature, play: Play| {
            let acting = ActingMode { temperature, ..play.acting };
            Play { acting, ..play }
        };
        check(&game, at(0.1, matched), "-t0.1");
        check(&game, released.clone(), "-released");
        check(&game, at(2.0, released), "-released-t2");
        // At the temperature that was chosen, it differs from training and has the plain name.
        let own = at(0.5, game.play.clone());
        check_own(&game, &own, own.clone(), "");
        check_own(&game, &own, game.play.clone(), "-t1");
        check_own(&game, &own, suite.protocol("released", &game.play).unwrap(), "-released");
        let ask = Ask::new(&game, &own, own.clone(), "1".into(), vec![1.0]);
        assert!(ask.differences.iter().any(|told| told.setting == "temperature"));

        let (robot, suite) = trained("Hopper");
        let matched = robot.play.clone();
        let v5 = suite.protocol("v5", &matched).unwrap();
        check(&robot, suite.protocol("v4", &matched).unwrap(), "");
        check(&robot, v5.clone(), "-v5");
        let drawn = |play: Play| Play { action_choice: ActionChoice::Sample, ..play };
        check(&robot, drawn(matched), "-sample");
        check(&robot, drawn(v5), "-v5-sample");
    }
}
