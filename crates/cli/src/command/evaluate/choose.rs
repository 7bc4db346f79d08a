//! The choice of an agent's acting mode, by `overtone evaluate choose` or after training, if
//! `evaluation.temperature`, `evaluation.return_quantile` or `evaluation.top_percent` is `chosen`.
//! Several runs are a portfolio: the modes of all runs are compared, and one run is kept with its
//! mode.

use std::{
    path::PathBuf,
    sync::atomic::{AtomicBool, Ordering},
};

use anyhow::{Context, Result, anyhow, bail, ensure};
use overtone_agents::Agent;
use overtone_console::quoted;
use overtone_core::{ActingMode, ObservationSpace, Play, counted};
use overtone_eval::{
    Choice, ChoicePoint, Portfolio, Summary,
    selection::{Rule, Selection},
    summary::{digits, fixed},
    table::Table,
};
use overtone_model::device;
use overtone_settings::{
    AutoOr, Choosable, EvaluationConfig, options,
    runs::{check_own, checkpoint_name, open_checkpoint, open_runs, real},
    suites, targets as parse_targets,
};
use overtone_train::{Checkpoint, RunDir};

use super::{
    check_out, check_same_simulation, device_or,
    entry::Entry,
    modes::candidates,
    own_choice::OwnChoice,
    playing,
    request::{self, EvaluationRequest},
};
use crate::{host, interrupt};

overtone_model::options! {
    /// Options of `evaluate choose`.
    pub struct ChooseOptions {
        /// A run's directory or name, or several (a,b) of one task, of which the best is kept with
        /// its mode; empty: the newest run.
        pub run: String = String::new(),
        /// Directory that contains the runs.
        pub runs: PathBuf = "runs".into(),
        /// last; best, the lowest loss on held-out episodes; the step of a checkpoint; or a
        /// checkpoint's directory.
        pub checkpoint: String = "last".into(),
        /// Candidate softmax temperatures (agents that sample discrete actions only).
        pub temperatures: String = "1,0.5,0.25".into(),
        /// Candidate quantiles for the limit on the conditioning return; 1: no limit. Requires
        /// model.return_head.
        pub return_quantiles: String = "0.9,0.75,0.5,1".into(),
        /// Episodes of all candidates of all runs together. 0: none; the first run's lowest top
        /// percent is chosen, or its first candidate. auto: 20 for each candidate, or 5 on frames.
        pub budget: AutoOr = AutoOr::Auto,
        /// Which candidate plays the next episode. process: each once, then the one that may be the
        /// best, by the returns so far. even: each in turn. unifloral: the rule of that library, for
        /// comparisons. Empty: process, or even for budget=auto.
        pub rule: String = String::new(),
        /// Target return, as a number or a percentile of each run's dataset, weighted by episode
        /// length. Empty: p95; with model.top_percents, each top percentage is a candidate too.
        pub target: String = String::new(),
        /// Seed of the episodes. Use another seed than for evaluate rollouts (default 1), because
        /// scores on these episodes are biased.
        pub seed: u64 = SEED,
        /// Episodes in parallel; 0: all, at most 100 (robots: 200).
        pub parallel: usize = 0,
        /// Compute device: auto, cpu, cuda or cuda:N; empty: the device of the (first) run's
        /// training.
        pub device: String = String::new(),
    }
}

/// Candidate temperatures after training: few, because each is evaluated.
const TEMPERATURES: [f32; 3] = [1.0, 0.5, 0.25];

/// Candidate quantiles after training; the first is the default without a choice.
const RETURN_QUANTILES: [f32; 4] = [0.9, 0.75, 0.5, 1.0];

/// Episodes for each candidate where the budget is `auto`. On frames they take minutes and are few:
/// where a temperature matters, means lie far apart (500 and 844 over seeds on BankHeist, 412 and
/// 190 on Seaquest). On vectors they take seconds, and one agent's episodes deviate by 1000 and more
/// (docs/results/budget.md).
fn usual_episodes(agent: &Agent) -> usize {
    match agent.task.observations {
        ObservationSpace::Pixels { .. } => 5,
        ObservationSpace::Vectors { .. } => 20,
    }
}

/// Maximum of even episodes that are planned at once.
const EVEN_ROUND: usize = 1000;

/// Seed of the episodes; scores use 1.
const SEED: u64 = 1001;

/// The seed of the episodes that choose before an evaluation by `options`.
pub fn choice_seed(options: &EvaluationConfig) -> u64 {
    if options.seed == SEED { SEED + 1 } else { SEED }
}

/// A run that may be chosen, and its modes.
struct Candidate {
    run: RunDir,
    checkpoint: Checkpoint,
    agent: Agent,
    modes: Vec<ActingMode>,
    /// Whether there is anything to choose.
    is_choice: bool,
}

impl Candidate {
    /// Its modes without episodes; each is conditioned on the first return of `target`.
    ///
    /// # Errors
    /// When `target` is neither a number nor a percentile.
    fn arms(&self, target: &str, seed: u64) -> Result<Vec<Entry>> {
        let Self { run, checkpoint, agent, modes, .. } = self;
        let returns = &checkpoint.state.episode_returns;
        let text = request::first_target(target, &agent.task);
        let target = *parse_targets(&text, returns)?
            .first()
            .with_context(|| format!("target={text}: expected a number or a percentile"))?;
        let trained = request::trained(agent, returns)?;
        let arm = |acting: ActingMode| {
            let play = Play { acting, ..trained.play.clone() };
            let targets = vec![target];
            let request =
                EvaluationRequest::new(&trained, &trained.play, play, target.to_string(), targets);
            Entry::new(run, checkpoint, agent, request, [0, seed])
        };
        Ok(modes.iter().copied().map(arm).collect())
    }
}

/// The candidate modes for `checkpoint` of `run`, before its evaluation by `options`; `None` if
/// there is nothing to choose, or a choice was made.
///
/// # Errors
/// When its files cannot be read.
fn awaited(
    run: &RunDir,
    checkpoint: &Checkpoint,
    options: &EvaluationConfig,
) -> Result<Option<Candidate>> {
    let if_chosen = |setting: Choosable, all: &'static [f32]| match setting {
        Choosable::Chosen => all,
        Choosable::Fixed(_) => &[],
    };
    let temperatures = if_chosen(options.temperature, &TEMPERATURES);
    let return_quantiles = if_chosen(options.return_quantile, &RETURN_QUANTILES);
    let agent = Agent::of(checkpoint)?;
    let own = OwnChoice::of(run, checkpoint)?;
    let (modes, is_choice) =
        candidates(&agent, &own, temperatures, return_quantiles, options.top_percent());
    let is_awaited = own.choice.is_none() && is_choice;
    let (run, checkpoint) = (run.clone(), checkpoint.clone());
    Ok(is_awaited.then_some(Candidate { run, checkpoint, agent, modes, is_choice }))
}

/// Whether [`choose_after_training`] still has to choose.
///
/// # Errors
/// When the run's files cannot be read.
pub fn is_awaited(
    run: &RunDir,
    checkpoint: &Checkpoint,
    options: &EvaluationConfig,
) -> Result<bool> {
    Ok(awaited(run, checkpoint, options)?.is_some())
}

/// Chooses the acting mode of a trained run, unless there is nothing to choose.
///
/// # Errors
/// When the evaluation fails or is stopped.
pub fn choose_after_training(
    run: &RunDir,
    checkpoint: &Checkpoint,
    options: &EvaluationConfig,
    device: &str,
    stop: &AtomicBool,
) -> Result<()> {
    let Some(candidate) = awaited(run, checkpoint, options)? else { return Ok(()) };
    let mut choice = ChooseOptions {
        budget: options.budget,
        target: options.target.clone(),
        seed: choice_seed(options),
        parallel: options.parallel,
        device: device.to_owned(),
        ..ChooseOptions::default()
    };
    if choice.budget == AutoOr::Auto {
        let each = usual_episodes(&candidate.agent).min(options.episodes);
        choice.budget = AutoOr::Number((each * candidate.modes.len()) as u32);
        choice.rule = Rule::Even.name().to_owned();
    }
    // The evaluation that follows prints the chosen mode.
    choose(&[candidate], &choice, stop)?.choices[0].write(&checkpoint.path.join(Choice::FILE))?;
    Ok(())
}

/// The modes of an agent that [`choose_among`] plays by `options`, and whether these differ.
///
/// # Errors
/// When `options` are invalid.
pub fn candidate_modes(
    agent: &Agent,
    own: &OwnChoice,
    options: &ChooseOptions,
) -> Result<(Vec<ActingMode>, bool)> {
    let temperatures = numbers("temperatures", &options.temperatures, f32::INFINITY)?;
    let return_quantiles = numbers("return_quantiles", &options.return_quantiles, 1.0)?;
    let top_percent = Choosable::Chosen.unless_target(&options.target, Choosable::Chosen);
    Ok(candidates(agent, own, &temperatures, &return_quantiles, top_percent))
}

/// The best candidate, and a choice for each of them. Only the choice of the best one is a result;
/// the others have their first mode.
struct Chosen {
    best: usize,
    choices: Vec<Choice>,
}

/// Plays all modes of `candidates` by `options`, and chooses one of them.
///
/// # Errors
/// When the candidates have different tasks or simulations, or the evaluation fails or is stopped.
fn choose(candidates: &[Candidate], options: &ChooseOptions, stop: &AtomicBool) -> Result<Chosen> {
    let mut arms: Vec<Entry> = Vec::new();
    for candidate in candidates {
        arms.extend(candidate.arms(&options.target, options.seed)?);
    }
    check_same_simulation(arms.iter())?;
    let (budget, usual_rule) = match options.budget {
        AutoOr::Auto => (usual_episodes(&candidates[0].agent) * arms.len(), Rule::Even),
        AutoOr::Number(budget) => (budget as usize, Rule::Process),
    };
    let rule = match options.rule.as_str() {
        "" => usual_rule,
        rule => rule.parse().map_err(|reason| anyhow!("rule={rule}: {reason}"))?,
    };
    let is_same_run = |one: &Entry, other: &Entry| one.run.path() == other.run.path();
    for own in arms.chunk_by(is_same_run) {
        let Entry { checkpoint, plan, .. } = &own[0];
        let modes = if own.len() == 1 { "1 mode".into() } else { format!("{} modes", own.len()) };
        say!(
            "choosing an acting mode for {} (update {}): {modes}, target {}",
            checkpoint.path.display(),
            checkpoint.state.step,
            plan.targets[0]
        );
    }
    say!("playing {} of seed {}", counted(budget, "episode"), options.seed);
    let (best, returns) = place(&mut arms, budget, rule, options, stop)?;
    let portfolio = (candidates.len() > 1).then(|| Portfolio {
        runs: candidates.iter().map(|one| one.run.path().display().to_string()).collect(),
        episodes: returns.iter().map(Vec::len).sum(),
    });
    let mode = |arm: &Entry| arm.request.protocol.acting;
    let mut returns = returns.iter();
    let choice = |own: &[Entry]| {
        let point = |(arm, returns): (&Entry, &Vec<f64>)| ChoicePoint {
            mode: mode(arm),
            raw_return: Summary::of(returns),
        };
        let is_best = is_same_run(&own[0], &arms[best]);
        Choice {
            step: own[0].checkpoint.state.step,
            target: own[0].plan.targets[0],
            seed: options.seed,
            rule: rule.name().into(),
            curve: own.iter().zip(&mut returns).map(point).collect(),
            chosen: mode(if is_best { &arms[best] } else { &own[0] }),
            portfolio: portfolio.clone(),
        }
    };
    let choices = arms.chunk_by(is_same_run).map(choice).collect();
    Ok(Chosen { best: arms[..=best].chunk_by(is_same_run).count() - 1, choices })
}

/// Plays `budget` episodes of `arms`, placed by `rule`; returns the best arm and all returns.
///
/// # Errors
/// When the evaluation fails or is stopped.
fn place(
    arms: &mut [Entry],
    budget: usize,
    rule: Rule,
    options: &ChooseOptions,
    stop: &AtomicBool,
) -> Result<(usize, Vec<Vec<f64>>)> {
    let device = device::choose(&device_or(options.device.clone(), &arms[0].run)?)?;
    let is_over = || stop.load(Ordering::Relaxed);
    // Even turns do not depend on returns. The process learns from each round of as many episodes
    // as there are modes; rounds must not depend on the budget, so that fewer episodes are the
    // beginning of more.
    let round = if rule == Rule::Even { budget.min(EVEN_ROUND) } else { arms.len() };
    let mut selection = Selection::new(rule, arms.len(), options.seed);
    let mut returns = vec![Vec::new(); arms.len()];
    let mut n_played = 0;
    while n_played < budget {
        let next = selection.next(round.min(budget - n_played));
        n_played += next.len();
        for (at, arm) in arms.iter_mut().enumerate() {
            arm.plan.first += arm.plan.episodes;
            arm.plan.episodes = next.iter().filter(|other| **other == at).count();
        }
        let (places, playing): (Vec<usize>, Vec<&Entry>) =
            arms.iter().enumerate().filter(|(_, arm)| arm.plan.episodes > 0).unzip();
        let played = playing::play(&playing, &device, options.parallel, &is_over)?;
        for (at, evaluation) in places.into_iter().zip(played) {
            let arm = &arms[at];
            let words = || {
                let mode = request::mode_words(&arm.agent, &arm.request.protocol.acting);
                format!("evaluating {}{mode}", arm.checkpoint.path.display())
            };
            for episode in evaluation.with_context(words)?.episodes {
                selection.record(at, episode.raw_return);
                returns[at].push(episode.raw_return);
            }
        }
    }
    Ok((selection.best(), returns))
}

/// The returns of each mode; with a column of runs if there are several.
fn table(candidates: &[Candidate], choices: &[Choice]) -> Table {
    let columns = ["run", "mode", "episodes", "raw mean ± sd", "min", "max"];
    let first = usize::from(candidates.len() == 1);
    let mut table = Table::new(columns[first..].iter().copied());
    for (candidate, choice) in candidates.iter().zip(choices) {
        for ChoicePoint { mode, raw_return } in &choice.curve {
            let run = candidate.run.path().display().to_string();
            let mut row = vec![run, choice.mode_text(mode)];
            match raw_return {
                None => row.push("0".into()),
                Some(all) => {
                    let [min, max] = [all.min, all.max].map(|number| fixed(number, digits([all])));
                    row.extend([all.n.to_string(), all.with_spread(), min, max]);
                }
            }
            table.row(row.split_off(first));
        }
    }
    table
}

/// `overtone evaluate choose key=value…`.
pub fn run(words: &[String]) -> Result<()> {
    let options: ChooseOptions = options::read(words)?;
    choose_among(open_runs(&options.runs, &options.run)?, &options).map(drop)
}

/// Chooses one of `runs` with its mode; returns it.
///
/// # Errors
/// When `options` are invalid for the runs, or the evaluation fails or is stopped.
pub fn choose_among(runs: Vec<RunDir>, options: &ChooseOptions) -> Result<RunDir> {
    let (names, target) = (&options.run, &options.target);
    let mut compared: Vec<Candidate> = Vec::new();
    for run in runs {
        let is_it = |other: &Candidate| real(other.run.path()) == real(run.path());
        ensure!(
            !compared.iter().any(is_it),
            "run={names}: {} is repeated. Name each run once",
            run.path().display()
        );
        let checkpoint = open_checkpoint(&run, &options.checkpoint)?;
        let agent = Agent::of(&checkpoint)?;
        suites::check_environment(&agent.task)?;
        let own = OwnChoice::of(&run, &checkpoint)?;
        let (modes, is_choice) = candidate_modes(&agent, &own, options)?;
        compared.push(Candidate { run, checkpoint, agent, modes, is_choice });
    }
    if let [only] = &compared[..]
        && !only.is_choice
    {
        return Err(nothing_to_choose(&only.agent, target));
    }
    ensure!(!target.contains(','), "target={target}: expected one return");
    for Candidate { run, checkpoint, .. } in &compared {
        check_own(run, checkpoint)?;
        check_out(&checkpoint.path.join(Choice::FILE))?;
    }
    let stop = interrupt::listen()?;
    let Chosen { best, choices } = choose(&compared, options, &stop)?;
    let (Candidate { run, checkpoint, agent, .. }, choice) = (&compared[best], &choices[best]);
    let out = checkpoint.path.join(Choice::FILE);
    choice.write(&out)?;
    say!("{}", table(&compared, &choices));
    if compared.len() > 1 {
        say!("Run: {}", run.path().display());
    }
    say!("Mode: {}; {}", choice.describe(), out.display());
    host::run_is(run.path());
    let target_word = if target.is_empty() { String::new() } else { format!(" target={target}") };
    say!(
        "evaluate it with: overtone evaluate rollouts run={} checkpoint={}{}{target_word}",
        quoted(run.path()),
        quoted(checkpoint_name(run, checkpoint)),
        request::mode_words(agent, &choice.chosen)
    );
    Ok(run.clone())
}

/// The error when `agent` has a single mode for `target`, because every list of candidates that it
/// uses is empty.
fn nothing_to_choose(agent: &Agent, target: &str) -> anyhow::Error {
    let lists = [
        ("temperatures=", agent.has_temperature()),
        ("return_quantiles=", agent.has_return_model()),
    ];
    let empty: Vec<&str> = lists.into_iter().filter(|(_, has)| *has).map(|(key, _)| key).collect();
    if !empty.is_empty() {
        return anyhow!(
            "{}: the list of candidates is empty. Set one, such as the default",
            empty.join(" ")
        );
    }
    let what = agent.algorithm.describe();
    if !agent.top_percents().is_empty() {
        return anyhow!(
            "target={target}: {what} is conditioned on a return or on a top percent. Leave the \
             target out to choose between them"
        );
    }
    anyhow!(
        "nothing to choose: {what} does not have a temperature, a return model (model.return_head) \
         or top percentages (model.top_percents)"
    )
}

/// The numbers of a list, above 0 and at most `most`; an empty list has none.
///
/// # Errors
/// Names the first word that is not such a number, or is repeated.
fn numbers(key: &str, text: &str, most: f32) -> Result<Vec<f32>> {
    let mut all: Vec<f32> = Vec::new();
    for word in text.split(',').map(str::trim).filter(|_| !text.is_empty()) {
        let number: Option<f32> = word.parse().ok();
        let Some(number) = number.filter(|x| x.is_finite() && *x > 0.0 && *x <= most) else {
            let range = if most.is_finite() { "above 0 and at most 1" } else { "above 0" };
            bail!("{key}={text}: `{word}` is not a number {range}");
        };
        ensure!(!all.contains(&number), "{key}={text}: {number} is repeated. Use each number once");
        all.push(number);
    }
    Ok(all)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_lie_in_their_range_and_are_different() {
        let of = |text, most| numbers("t", text, most);
        assert_eq!(of("1, 0.5,0.25", f32::INFINITY).unwrap(), [1.0, 0.5, 0.25]);
        assert_eq!(of("", 1.0).unwrap(), [0.0; 0]);
        for (text, expected) in
            [(",1", "``"), ("1,x", "`x`"), ("1,0", "`0`"), ("inf", "`inf`"), ("1,1.0", "repeated")]
        {
            let error = of(text, f32::INFINITY).unwrap_err().to_string();
            assert!(error.contains(expected), "{text}: {error}");
        }
        let error = of("0.9,1.5", 1.0).unwrap_err().to_string();
        assert_eq!(error, "t=0.9,1.5: `1.5` is not a number above 0 and at most 1");
    }

    #[test]
    fn the_command_plays_what_training_plays() {
        let options = ChooseOptions::default();
        let of = |text| numbers("t", text, f32::INFINITY).unwrap();
        assert_eq!(of(&options.temperatures), TEMPERATURES);
        assert_eq!(of(&options.return_quantiles), RETURN_QUANTILES);
    }
}
