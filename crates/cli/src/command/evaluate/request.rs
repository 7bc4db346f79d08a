//! Evaluation requests: protocol, acting mode and target returns.

use anyhow::{Result, bail, ensure};
use overtone_agents::Agent;
use overtone_console::keys;
use overtone_core::{
    ActingMode, ActionSpace, Play, Task,
    protocol::{ActionChoice, Deviation, Difference, Trained},
};
use overtone_data::EpisodeReturns;
use overtone_env::Suite;
use overtone_eval::{Choice, UsedSettings};
use overtone_settings::{Choosable, EvaluationConfig, suites};

use super::own_choice::OwnChoice;

/// The protocol and the target returns of an evaluation.
pub struct EvaluationRequest {
    /// The protocol.
    pub protocol: Play,
    /// The targets as the user wrote them.
    pub target_text: String,
    /// The target returns.
    pub targets: Vec<f32>,
    /// Settings in which the protocol differs from training.
    pub differences: Vec<Difference>,
    /// Whether the protocol is the agent's own: every setting of training, and the chosen acting
    /// mode.
    pub is_own: bool,
    /// Suffix of the report's file name: `-released`, `-t0.5`, `-v5-sample`; empty for the agent's
    /// own protocol.
    pub suffix: String,
    /// The choice of the acting mode, if the protocol uses one.
    pub choice: Option<Choice>,
}

impl EvaluationRequest {
    /// A request of `protocol` and `targets` for an agent with the training settings `trained` and
    /// its own protocol `own`.
    pub fn new(
        trained: &Trained,
        own: &Play,
        protocol: Play,
        target_text: String,
        targets: Vec<f32>,
    ) -> Self {
        let differences = trained.differences(&protocol, &targets);
        let is_own = protocol == *own;
        let suffix = suffix(trained, own, &protocol);
        Self { protocol, target_text, targets, differences, is_own, suffix, choice: None }
    }
}

fn suffix(trained: &Trained, own: &Play, played: &Play) -> String {
    let mut suffix = String::new();
    if played.name != own.name {
        suffix += &format!("-{}", played.name);
    }
    let [acting, own_mode] = [played.acting, own.acting];
    // Other protocols use the acting mode of training, not the chosen one.
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

/// Maximum number of episodes for each target.
const MOST_EPISODES: usize = 10_000_000;

/// The requests of `options`, one for each protocol. `returns` are the episode returns of the
/// agent's data, `chosen` the choice of its acting mode.
///
/// # Errors
/// When `options` are invalid for the agent.
pub fn requests(
    options: &EvaluationConfig,
    agent: &Agent,
    returns: &EpisodeReturns,
    chosen: &OwnChoice,
) -> Result<Vec<EvaluationRequest>> {
    for episodes in [options.episodes, options.every_episodes] {
        ensure!(episodes <= MOST_EPISODES, "episodes={episodes}: expected at most {MOST_EPISODES}");
    }
    let trained = trained(agent, returns)?;
    let own = chosen.own(&trained.play);
    let suite = suites::of(&trained.task)?;
    check_used(options, agent)?;
    let names = &options.protocol;
    let mut requests: Vec<EvaluationRequest> = Vec::new();
    for name in names.split(',').map(str::trim) {
        let protocol = protocol(options, name, suite, &trained, chosen)?;
        check_top_percent(protocol.acting.top_percent, &agent.top_percents())?;
        if requests.iter().any(|request| request.protocol == protocol) {
            bail!("protocol={names}: {name} is repeated. Use each protocol once");
        }
        let text = protocol_targets(&options.target, &trained.task, suite, &protocol)?;
        let mut targets = overtone_settings::targets(&text, returns)?;
        if !agent.algorithm.reads_returns() {
            // The agent acts the same for each of the reference's targets.
            targets.truncate(1);
        }
        let mut request = EvaluationRequest::new(&trained, &own, protocol, text, targets);
        // A choice from a single mode does not count as one.
        let top_percent = options.top_percent();
        let mode = [options.temperature, options.return_quantile, top_percent];
        if mode.contains(&Choosable::Chosen) {
            let choice = chosen.choice(top_percent.fixed()).filter(Choice::has_alternatives);
            // The protocol `released` keeps the reference's temperature.
            let applies = |choice: &Choice| {
                let mut settings = choice.settings().into_iter();
                suite.released() != Some(name) || settings.all(|(name, _)| name != "temperature")
            };
            let is_played = |choice: &Choice| choice.chosen == request.protocol.acting;
            request.choice = choice.filter(|choice| applies(choice) && is_played(choice));
        }
        requests.push(request);
    }
    Ok(requests)
}

/// The agent's own protocol and its target return. `target` is a number or a percentile (empty: the
/// default); `mode` sets temperature, return quantile and top percent, if they are `Some`.
///
/// # Errors
/// As `requests`, and when `target` names several returns.
pub fn play_of(
    agent: &Agent,
    returns: &EpisodeReturns,
    chosen: &OwnChoice,
    target: &str,
    mode: [Option<f32>; 3],
) -> Result<(Play, f32)> {
    let [temperature, return_quantile, top_percent] =
        mode.map(|number| number.map_or(Choosable::Chosen, Choosable::Fixed));
    if target.contains(',') {
        bail!("target_return={target}: expected one return");
    }
    // A policy and a judgement get a target for any agent.
    let read = if agent.algorithm.reads_returns() { target } else { "" };
    let options = EvaluationConfig {
        target: read.to_owned(),
        temperature,
        return_quantile,
        top_percent,
        ..EvaluationConfig::one_episode()
    };
    let request = requests(&options, agent, returns, chosen)?.swap_remove(0);
    match request.targets[..] {
        [target] => Ok((request.protocol, target)),
        _ => bail!("target_return={target}: expected one return"),
    }
}

/// Checks that `agent` uses the settings in `options`.
///
/// # Errors
/// When they set a return for an agent that is not conditioned on returns, or sampling for
/// an agent without a distribution.
fn check_used(options: &EvaluationConfig, agent: &Agent) -> Result<()> {
    let (what, target) = (agent.algorithm.describe(), &options.target);
    if !["", "reference"].contains(&&**target) && !agent.algorithm.reads_returns() {
        bail!("target={target}: {what} is not conditioned on a return. Leave it out");
    }
    let drawn = match (options.actions, options.temperature) {
        _ if agent.algorithm.has_distribution() => return Ok(()),
        (ActionChoice::Sample, _) => "actions=sample".to_owned(),
        (_, Choosable::Fixed(other)) if other != 1.0 => format!("temperature={other}"),
        _ => return Ok(()),
    };
    bail!("{drawn}: {what} does not have a distribution to sample actions from. Leave it out")
}

/// Checks that each of `words` (`key=value`) applies to `task`, and that `task` has an environment.
///
/// # Errors
/// When a word does not apply, or the environment is missing.
pub fn check_applicable(words: &[String], task: &Task) -> Result<()> {
    suites::check_environment(task)?;
    let is_discrete = matches!(task.actions, ActionSpace::Discrete { .. });
    for word in words {
        let (key, text) = keys::split(word)?;
        let of = match &*key {
            "temperature" if !is_discrete => "discrete",
            "actions" if is_discrete => "continuous",
            _ => continue,
        };
        bail!(
            "{key}={text} applies only to tasks with {of} actions, and this agent's task is {}. \
             Leave it out",
            task.title
        );
    }
    Ok(())
}

/// The settings that `agent` uses when it is conditioned on `top_percent`, or with 0 on a return.
pub fn used_settings(agent: &Agent, top_percent: f32) -> UsedSettings {
    let has_target = top_percent == 0.0;
    UsedSettings {
        target: agent.algorithm.reads_returns() && has_target,
        temperature: agent.has_temperature(),
        return_quantile: agent.has_return_model() && has_target,
        top_percent: !agent.top_percents().is_empty(),
    }
}

/// The settings of `mode` that `agent` uses, as options of a command: ` temperature=0.5
/// top_percent=0`.
pub fn mode_words(agent: &Agent, mode: &ActingMode) -> String {
    let used = used_settings(agent, mode.top_percent);
    let settings = [
        ("temperature", used.temperature, mode.temperature),
        ("return_quantile", used.return_quantile, mode.return_quantile),
        ("top_percent", used.top_percent, mode.top_percent),
    ];
    let used = settings.into_iter().filter(|(_, is_used, _)| *is_used);
    used.map(|(key, _, value)| format!(" {key}={value}")).collect()
}

/// Checks that an evaluation does not use the episodes that chose its acting mode, even if the user
/// names the mode.
///
/// # Errors
/// When `seed` is the seed of the choice.
pub fn check_seed(seed: u64, request: &EvaluationRequest, chosen: &OwnChoice) -> Result<()> {
    let is_played = |choice: &&Choice| choice.chosen == request.protocol.acting;
    let own = chosen.choice.as_ref().filter(|choice| choice.has_alternatives()).filter(is_played);
    if request.choice.as_ref().or(own).is_some_and(|choice| choice.seed == seed) {
        bail!(
            "seed={seed}: these episodes chose this agent's acting mode, so its score would be \
             biased. Use another seed"
        );
    }
    Ok(())
}

/// The training settings of `agent`, with the episode returns of its data.
///
/// # Errors
/// When no suite has the task.
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

/// The protocol called `name` with the acting mode of `options`.
fn protocol(
    options: &EvaluationConfig,
    name: &str,
    suite: &dyn Suite,
    trained: &Trained,
    chosen: &OwnChoice,
) -> Result<Play> {
    let matched = &trained.play;
    let mut play = match suite.protocol(name, matched) {
        _ if name == MATCHED => matched.clone(),
        Some(play) => play,
        None => with_setting(name, suite, trained)?,
    };
    check_one_condition(options)?;
    let mode = chosen.chosen(matched, options.top_percent().fixed());
    match trained.task.actions {
        ActionSpace::Discrete { .. } => match options.temperature {
            Choosable::Fixed(temperature) => play.acting.temperature = temperature,
            // The protocol `released` keeps the reference's temperature.
            Choosable::Chosen if suite.released() == Some(name) => {}
            Choosable::Chosen => play.acting.temperature = mode.temperature,
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
            "return_quantile={quantile}: this agent does not have a model of the return \
             distribution. Train it with model.return_head=hl_gauss"
        );
    }
    if !(quantile > 0.0 && quantile <= 1.0) {
        bail!("return_quantile={quantile}: expected a number in (0, 1]");
    }
    let temperature = play.acting.temperature;
    if !(temperature.is_finite() && temperature > 0.0) {
        bail!("temperature={temperature}: expected a positive number");
    }
    Ok(play)
}

/// The protocol of training with the other value of the setting `name`, as [`Suite::contrast`] has
/// it. Settings with a key of their own are not among them.
///
/// # Errors
/// When `name` does not name such a setting, or the setting has no effect on this agent.
fn with_setting(name: &str, suite: &dyn Suite, trained: &Trained) -> Result<Play> {
    let matched = &trained.play;
    let mut settings = trained.deviations(&suite.contrast(matched), &[0.5]);
    settings.retain(|Deviation { play, .. }| {
        (play.acting, play.action_choice) == (matched.acting, matched.action_choice)
    });
    let last = |setting: &Deviation| {
        setting.difference.setting.rsplit('.').next().unwrap_or_default().to_owned()
    };
    match settings.iter().find(|setting| last(setting) == name) {
        Some(Deviation { idle: None, play, .. }) => Ok(Play { name: name.into(), ..play.clone() }),
        Some(Deviation { idle: Some(reason), .. }) => {
            bail!("protocol={name}: no effect on this agent, because {reason}. Leave it out")
        }
        None => {
            let settings: Vec<String> = settings.iter().map(last).collect();
            let settings: Vec<&str> = settings.iter().map(String::as_str).collect();
            let known = [&[MATCHED], suite.protocols(), &settings].concat();
            bail!("protocol={name}: expected one of {}", listed(&known))
        }
    }
}

/// # Errors
/// When `options` set both a top percent and a return.
fn check_one_condition(options: &EvaluationConfig) -> Result<()> {
    let Some(percent) = options.top_percent.fixed().filter(|percent| *percent > 0.0) else {
        return Ok(());
    };
    let returns = match options.return_quantile {
        _ if !options.target.is_empty() => format!("target={}", options.target),
        Choosable::Fixed(quantile) => format!("return_quantile={quantile}"),
        Choosable::Chosen => return Ok(()),
    };
    bail!(
        "{returns} and top_percent={percent}: an agent that is conditioned on a top percent does \
         not use a return. Use one of the two"
    )
}

/// Checks that an agent with the top percentages `known` can be conditioned on `top_percent`.
///
/// # Errors
/// When it is neither 0 nor one of them.
pub fn check_top_percent(top_percent: f32, known: &[f32]) -> Result<()> {
    if top_percent == 0.0 || known.contains(&top_percent) {
        return Ok(());
    }
    let known: Vec<String> = known.iter().map(f32::to_string).collect();
    match &known[..] {
        [] => bail!(
            "top_percent={top_percent}: this agent was not trained on top percentages. Train it \
             with model.top_percents"
        ),
        _ => bail!(
            "top_percent={top_percent}: expected one of {}, or 0 for a target return",
            known.join(", ")
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

/// The targets of `protocol` as the user wrote them in `target`, or its default.
fn protocol_targets(
    target: &str,
    task: &Task,
    suite: &dyn Suite,
    protocol: &Play,
) -> Result<String> {
    let other_units = protocol.return_units != task.return_units;
    let text = match target {
        "" | REFERENCE if other_units => match task.targets.released {
            Some(target) => target.to_string(),
            None => bail!(
                "target=: the reference does not have a target for {}. Set one in raw points{}",
                task.title,
                example(suite)
            ),
        },
        text => named_targets(text, task),
    };
    if other_units && text.contains('p') {
        bail!(
            "target={text}: percentiles are of the data's clipped returns, and the protocol {} \
             counts raw points. Use a number{}",
            protocol.name,
            example(suite)
        );
    }
    Ok(text)
}

/// The reference's target in one of the suite's tasks: ` (the reference uses 1150 in Seaquest)`.
fn example(suite: &dyn Suite) -> String {
    let known = suite.tasks().iter().find_map(|task| Some((&task.title, task.targets.released?)));
    known.map_or_else(String::new, |(task, target)| {
        format!("  (the reference uses {target} in {task})")
    })
}

/// Name of the protocol by which the data was recorded.
const MATCHED: &str = "matched";

/// The default target: a return of the best recorded episodes. The reference's numbers suit its
/// data, and exceed the returns of other data.
const DEFAULT_TARGET: &str = "p95";

/// The word for the reference's targets.
const REFERENCE: &str = "reference";

/// The first of the targets in `target`, a number or a percentile; the default if it is empty.
pub fn first_target(target: &str, task: &Task) -> String {
    named_targets(target, task).split(',').next().unwrap_or_default().to_owned()
}

/// The targets in `target`, as numbers or percentiles: the default if it is empty, or if the
/// reference does not have targets for `task`.
fn named_targets(target: &str, task: &Task) -> String {
    match (target, &task.targets.usual[..]) {
        ("", _) | (REFERENCE, []) => DEFAULT_TARGET.to_owned(),
        (REFERENCE, usual) => usual.iter().map(f32::to_string).collect::<Vec<_>>().join(","),
        (text, _) => text.to_owned(),
    }
}

/// The value of `actions=`.
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

/// A return as text, with one digit after the point if it is not whole.
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
        let request = EvaluationRequest::new(trained, own, played, "1".into(), vec![1.0]);
        assert_eq!((request.suffix.as_str(), request.is_own), (suffix, suffix.is_empty()));
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
    fn a_protocol_that_differs_from_training_has_a_suffix() {
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
        // The chosen temperature differs from training and has the plain name.
        let own = at(0.5, game.play.clone());
        check_own(&game, &own, own.clone(), "");
        check_own(&game, &own, game.play.clone(), "-t1");
        check_own(&game, &own, suite.protocol("released", &game.play).unwrap(), "-released");
        let request = EvaluationRequest::new(&game, &own, own.clone(), "1".into(), vec![1.0]);
        assert!(request.differences.iter().any(|difference| difference.setting == "temperature"));

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
