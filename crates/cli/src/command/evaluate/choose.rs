//! The choice of an agent's acting mode, by `overtone evaluate choose` or after training, if
//! `evaluation.temperature`, `evaluation.return_quantile` or `evaluation.top_percent` is `chosen`.

use std::{
    path::PathBuf,
    sync::atomic::{AtomicBool, Ordering},
};

use anyhow::{Context, Result, anyhow, bail, ensure};
use overtone_agents::Agent;
use overtone_console::quoted;
use overtone_core::{ActingMode, ObservationSpace, Play};
use overtone_eval::{
    Choice, ChoicePoint, Summary,
    evaluation::n_episodes,
    selection::{Rule, Selection},
    table::Table,
};
use overtone_model::device;
use overtone_train::{Checkpoint, RunDir};

use super::{
    check_out, device_or,
    entry::Entry,
    modes::Modes,
    own_choice::OwnChoice,
    playing,
    request::{self, EvaluationRequest},
};
use crate::{
    interrupt, options,
    runs::{check_own, checkpoint_name, open_checkpoint, open_run},
    settings::{AutoOr, Choosable, EvaluationConfig, targets as parse_targets},
    suites,
};

overtone_model::options! {
    /// Options of `evaluate choose`.
    pub struct ChooseOptions {
        /// A run's directory or name; empty: the newest run.
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
        /// Episodes of all candidates together. 0: none; the lowest top percent is chosen, or the
        /// first candidate. auto: 20 for each candidate, or 5 on frames.
        pub budget: AutoOr = AutoOr::Auto,
        /// Which candidate plays the next episode of a numbered budget. process: the one that may be
        /// the best, by the returns so far. even: each in turn, as for auto. unifloral: the rule of
        /// that library, for comparisons.
        pub rule: Rule = Rule::Process,
        /// Target return, as a number or a percentile of the dataset's returns, weighted by episode
        /// length. Empty: p95; with model.top_percents, each top percentage is a candidate too.
        pub target: String = String::new(),
        /// Seed of the episodes. Use another seed than for evaluate rollouts (default 1), because
        /// scores on these episodes are biased.
        pub seed: u64 = SEED,
        /// Episodes in parallel; 0: all, at most 100 (robots: 200).
        pub parallel: usize = 0,
        /// Compute device: auto, cpu, cuda or cuda:N; empty: the device of the run's training.
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

/// The candidate modes for `checkpoint` of `run`, before its evaluation by `options`; `None` if
/// there is nothing to choose, or a choice was made.
///
/// # Errors
/// When its files cannot be read.
fn awaited(
    run: &RunDir,
    checkpoint: &Checkpoint,
    options: &EvaluationConfig,
) -> Result<Option<Modes>> {
    let candidates = |setting: Choosable, all: &'static [f32]| match setting {
        Choosable::Chosen => all,
        Choosable::Fixed(_) => &[],
    };
    let temperatures = candidates(options.temperature, &TEMPERATURES);
    let return_quantiles = candidates(options.return_quantile, &RETURN_QUANTILES);
    let agent = Agent::of(checkpoint)?;
    let own = OwnChoice::of(run, checkpoint)?;
    let usual = own.from_settings(&agent.matched());
    let modes = Modes::of(&agent, usual, temperatures, return_quantiles, options.top_percent());
    Ok(if own.choice.is_some() { None } else { modes })
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
    let Some(modes) = awaited(run, checkpoint, options)? else { return Ok(()) };
    let each = usual_episodes(&Agent::of(checkpoint)?).min(options.episodes);
    let (budget, rule) = placed(options.budget, Rule::Process, &modes, each);
    let settings = ChoiceSettings {
        modes,
        budget,
        rule,
        target: &options.target,
        seed: if options.seed == SEED { SEED + 1 } else { SEED },
        parallel: options.parallel,
        device,
        stop,
    };
    // The evaluation that follows prints the chosen mode.
    choose(run, checkpoint, &settings)?.write(&checkpoint.path.join(Choice::FILE))?;
    Ok(())
}

/// Settings of a choice.
struct ChoiceSettings<'a> {
    modes: Modes,
    /// Episodes of all candidates.
    budget: usize,
    rule: Rule,
    /// The target as the user wrote it; the first of several is used.
    target: &'a str,
    seed: u64,
    parallel: usize,
    device: &'a str,
    stop: &'a AtomicBool,
}

/// Every mode that [`run`] would play with its defaults; the agent's own mode if it has a single one.
pub fn candidate_modes(agent: &Agent, own: &OwnChoice, target: &str) -> Vec<ActingMode> {
    let top_percent = Choosable::Chosen.unless_target(target, Choosable::Chosen);
    let usual = own.from_settings(&agent.matched());
    let modes = Modes::of(agent, usual, &TEMPERATURES, &RETURN_QUANTILES, top_percent);
    modes.map_or_else(|| vec![own.own(&agent.matched()).acting], |modes| modes.all())
}

/// Number of episodes of all `modes` and the rule that places them; for `auto`, `each` episodes of
/// each in turn.
fn placed(budget: AutoOr, rule: Rule, modes: &Modes, each: usize) -> (usize, Rule) {
    match budget {
        AutoOr::Auto => (each * modes.all().len(), Rule::Even),
        AutoOr::Number(budget) => (budget as usize, rule),
    }
}

/// Plays `checkpoint` in its modes and returns the choice.
fn choose(run: &RunDir, checkpoint: &Checkpoint, settings: &ChoiceSettings<'_>) -> Result<Choice> {
    let state = &checkpoint.state;
    let agent = Agent::of(checkpoint)?;
    let text = request::first_target(settings.target, &agent.task);
    let target = parse_targets("target", &text, &state.episode_returns)?;
    let target = *target
        .first()
        .with_context(|| format!("target={text}: expected a number or a percentile"))?;
    let trained = request::trained(&agent, &state.episode_returns)?;
    let entry = |&acting: &ActingMode| {
        let play = Play { acting, ..trained.play.clone() };
        let request =
            EvaluationRequest::new(&trained, &trained.play, play, target.to_string(), vec![target]);
        Entry::new(run, checkpoint, &agent, request, [0, settings.seed])
    };
    let modes = settings.modes.all();
    let mut entries: Vec<Entry> = modes.iter().map(entry).collect();
    let budget = settings.budget;
    say!(
        "choosing an acting mode for {} (update {}): {} modes, {} of seed {}, target {target}",
        checkpoint.path.display(),
        state.step,
        entries.len(),
        n_episodes(budget),
        settings.seed
    );
    let device = device::choose(settings.device)?;
    let is_over = || settings.stop.load(Ordering::Relaxed);
    // Even turns do not depend on returns. The process learns from each round of as many episodes
    // as there are modes; rounds must not depend on the budget, so that fewer episodes are the
    // beginning of more.
    let round = if settings.rule == Rule::Even { budget.min(EVEN_ROUND) } else { entries.len() };
    let mut selection = Selection::new(settings.rule, entries.len(), settings.seed);
    let mut returns = vec![Vec::new(); entries.len()];
    let mut n_played = 0;
    while n_played < budget {
        let next = selection.next(round.min(budget - n_played));
        n_played += next.len();
        for (arm, entry) in entries.iter_mut().enumerate() {
            entry.plan.first += entry.plan.episodes;
            entry.plan.episodes = next.iter().filter(|other| **other == arm).count();
        }
        let (arms, playing): (Vec<usize>, Vec<&Entry>) =
            entries.iter().enumerate().filter(|(_, entry)| entry.plan.episodes > 0).unzip();
        let played = playing::play(&playing, &device, settings.parallel, &is_over)?;
        for (arm, evaluation) in arms.into_iter().zip(played) {
            let words = || format!("evaluating with{}", request::mode_words(&agent, &modes[arm]));
            for episode in evaluation.with_context(words)?.episodes {
                selection.record(arm, episode.raw_return);
                returns[arm].push(episode.raw_return);
            }
        }
    }
    let point = |(&mode, returns): (&ActingMode, &Vec<f64>)| ChoicePoint {
        mode,
        raw_return: Summary::of(returns),
    };
    Ok(Choice {
        step: state.step,
        target,
        seed: settings.seed,
        rule: settings.rule.name().into(),
        curve: modes.iter().zip(&returns).map(point).collect(),
        chosen: modes[selection.best()],
    })
}

/// The returns of each mode.
fn table(choice: &Choice) -> Table {
    let what = choice.setting_names();
    let mut table = Table::new(&[&what, "episodes", "raw mean ± sd", "min", "max"]);
    for ChoicePoint { mode, raw_return } in &choice.curve {
        let cells =
            raw_return.as_ref().map_or(["0".into(), "".into(), "".into(), "".into()], |all| {
                let [min, max] = [all.min, all.max].map(|number| format!("{number:.1}"));
                [all.n.to_string(), all.with_spread(), min, max]
            });
        table.row([choice.label(mode)].into_iter().chain(cells).collect());
    }
    table
}

/// `overtone evaluate choose key=value…`.
pub fn run(words: &[String]) -> Result<()> {
    let options: ChooseOptions = options::read(words)?;
    let run = open_run(&options.runs, &options.run)?;
    let checkpoint = open_checkpoint(&run, &options.checkpoint)?;
    let agent = Agent::of(&checkpoint)?;
    suites::check_environment(&agent.task)?;
    let temperatures = numbers("temperatures", &options.temperatures, f32::INFINITY)?;
    let return_quantiles = numbers("return_quantiles", &options.return_quantiles, 1.0)?;
    let target = options.target;
    let top_percent = Choosable::Chosen.unless_target(&target, Choosable::Chosen);
    let usual = OwnChoice::of(&run, &checkpoint)?.from_settings(&agent.matched());
    let modes = Modes::of(&agent, usual, &temperatures, &return_quantiles, top_percent);
    let Some(modes) = modes else {
        return Err(nothing_to_choose(&agent, &target));
    };
    ensure!(!target.contains(','), "target={target}: expected one return");
    check_own(&run, &checkpoint)?;
    let out = checkpoint.path.join(Choice::FILE);
    check_out(&out)?;
    let device = device_or(options.device, &run)?;
    let stop = interrupt::listen()?;
    let (budget, rule) = placed(options.budget, options.rule, &modes, usual_episodes(&agent));
    let settings = ChoiceSettings {
        modes,
        budget,
        rule,
        target: &target,
        seed: options.seed,
        parallel: options.parallel,
        device: &device,
        stop: &stop,
    };
    let choice = choose(&run, &checkpoint, &settings)?;
    choice.write(&out)?;
    say!("{}", table(&choice));
    say!("Mode: {}; {}", choice.describe(), out.display());
    let target_word = if target.is_empty() { String::new() } else { format!(" target={target}") };
    say!(
        "evaluate it with: overtone evaluate rollouts run={} checkpoint={}{}{target_word}",
        quoted(run.path()),
        quoted(checkpoint_name(&run, &checkpoint)),
        request::mode_words(&agent, &choice.chosen)
    );
    Ok(())
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
