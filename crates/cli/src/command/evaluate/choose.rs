//! The mode in which an agent is played: `overtone evaluate choose` chooses it, as training does at
//! its end where `evaluation.temperature=chosen`, `evaluation.return_quantile=chosen` or
//! `evaluation.top_percent=chosen`.

use std::{
    path::PathBuf,
    sync::atomic::{AtomicBool, Ordering},
};

use anyhow::{Context, Result, anyhow, bail, ensure};
use overtone_agents::Agent;
use overtone_console::quoted;
use overtone_core::{ActingMode, ObservationSpace, Play};
use overtone_eval::{Choice, ChoicePoint, evaluation::n_episodes, table::Table};
use overtone_model::device;
use overtone_train::{Checkpoint, RunDir};

use super::{
    ask::{self, Ask},
    check_out, device_or,
    entry::Entry,
    modes::Modes,
    own_choice::OwnChoice,
    playing,
};
use crate::{
    interrupt, keys,
    runs::{check_own, checkpoint_name, open_checkpoint, open_run},
    settings::{self, Choosable, EvaluationConfig},
    suites,
};

/// Every option with its default and reason.
pub const OPTIONS: &str = r#"
# A run's folder or name; empty: the newest run.
run = ""
# Folder of the runs.
runs = "runs"
# last; best: the lowest loss on held-out episodes; the step of a checkpoint, or a checkpoint's folder.
checkpoint = "last"
# Agents that draw from a list of actions: the softmax temperatures, of which one is chosen: that of the highest mean return, of equal ones the first.
temperatures = "1,0.5,0.25"
# Agents with model.return_head: the quantiles of what was earned from states like the agent's own, of which one is chosen as the most that it asks for; 1: whatever is left of the target.
return_quantiles = "0.9,0.75,0.5,1"
# Episodes for each of them; where an agent has both, for each pair. Empty: as after training, 20, and 5 of an agent that sees frames.
episodes = ""
# The return to ask for, as a number or a percentile of the data's returns, by actions; empty: p95, or to act as the best episodes do, where the agent was told of them (model.top_percents), whichever earns more.
target = ""
# Seed of the episodes. Another than that of evaluate rollouts, 1 by default, which plays no score of the episodes that chose.
seed = 1001
# Episodes played at once; 0: all, but no more than 100 (robots: 200).
parallel = 0
# Where to compute: auto, cpu, cuda or cuda:N; empty: as the run was trained.
device = ""
"#;

/// Temperatures among which training chooses: few, as each is played.
const TEMPERATURES: [f32; 3] = [1.0, 0.5, 0.25];

/// Quantiles among which training chooses; the first is the one of an agent that was not tried.
const RETURN_QUANTILES: [f32; 4] = [0.9, 0.75, 0.5, 1.0];

/// Episodes of each of them, at most. On frames they cost minutes and are few: where a temperature
/// matters, means lie far apart (500 and 844 over seeds on BankHeist, 412 and 190 on Seaquest).
/// On vectors they cost seconds, and one agent's episodes deviate by 1000 and more.
fn usual_episodes(agent: &Agent) -> usize {
    match agent.task.observations {
        ObservationSpace::Pixels { .. } => 5,
        ObservationSpace::Vectors { .. } => 20,
    }
}

/// Seed of the episodes; that of scores is 1.
const SEED: u64 = 1001;

/// The modes among which is still to be chosen for `run`, whose checkpoint this is, before it is
/// played as `options` say; `None` where there is nothing to choose, or it was chosen.
///
/// # Errors
/// When its files cannot be read.
fn awaited(
    run: &RunDir,
    checkpoint: &Checkpoint,
    options: &EvaluationConfig,
) -> Result<Option<Modes>> {
    let among = |said: Choosable, all: &'static [f32]| match said {
        Choosable::Chosen => all,
        Choosable::Fixed(_) => &[],
    };
    let temperatures = among(options.temperature, &TEMPERATURES);
    let return_quantiles = among(options.return_quantile, &RETURN_QUANTILES);
    let agent = Agent::of(checkpoint)?;
    let own = OwnChoice::of(run, checkpoint)?;
    let said = own.said(&agent.matched());
    let modes = Modes::of(&agent, said, temperatures, return_quantiles, options.top_percent());
    Ok(if own.choice.is_some() { None } else { modes })
}

/// Whether [`choose_after_training`] has still something to do.
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

/// Chooses how a run that ended its training is played, where that is awaited.
///
/// # Errors
/// When it cannot be played, or playing is stopped.
pub fn choose_after_training(
    run: &RunDir,
    checkpoint: &Checkpoint,
    options: &EvaluationConfig,
    device: &str,
    stop: &AtomicBool,
) -> Result<()> {
    let Some(modes) = awaited(run, checkpoint, options)? else { return Ok(()) };
    let how = How {
        modes,
        episodes: usual_episodes(&Agent::of(checkpoint)?).min(options.episodes),
        target: &options.target,
        seed: if options.seed == SEED { SEED + 1 } else { SEED },
        parallel: options.parallel,
        device,
        stop,
    };
    // The evaluation that follows says what was chosen.
    choose(run, checkpoint, &how)?.write(&checkpoint.path.join(Choice::FILE))?;
    Ok(())
}

/// How a mode is chosen.
struct How<'a> {
    modes: Modes,
    /// For each of them.
    episodes: usize,
    /// As it is written; of several, the first.
    target: &'a str,
    seed: u64,
    parallel: usize,
    device: &'a str,
    stop: &'a AtomicBool,
}

/// Plays `checkpoint` in each mode and says what it earned.
fn choose(run: &RunDir, checkpoint: &Checkpoint, how: &How<'_>) -> Result<Choice> {
    let state = &checkpoint.state;
    let agent = Agent::of(checkpoint)?;
    let asked = ask::first_target(how.target, &agent.task);
    let target = settings::targets("target", &asked, &state.episode_returns)?;
    let target =
        *target.first().with_context(|| format!("target={asked}: nothing is asked for"))?;
    let trained = ask::trained(&agent, &state.episode_returns)?;
    let entry = |&acting: &ActingMode| {
        let play = Play { acting, ..trained.play.clone() };
        let ask = Ask::new(&trained, &trained.play, play, target.to_string(), vec![target]);
        Entry::new(run, checkpoint, &agent, ask, [how.episodes as u64, how.seed])
    };
    let modes = how.modes.all();
    let entries: Vec<Entry> = modes.iter().map(entry).collect();
    say!(
        "choosing a mode for {} (update {}): {} modes, {} of seed {} each, target {target}",
        checkpoint.path.display(),
        state.step,
        entries.len(),
        n_episodes(how.episodes),
        how.seed
    );
    let all: Vec<&Entry> = entries.iter().collect();
    let device = device::choose(how.device)?;
    let is_over = || how.stop.load(Ordering::Relaxed);
    let played = playing::play(&all, &device, how.parallel, &is_over)?;
    let mut curve = Vec::with_capacity(played.len());
    for (&mode, evaluation) in modes.iter().zip(played) {
        let evaluation =
            evaluation.with_context(|| format!("playing by{}", ask::words(&agent, &mode)))?;
        curve.push(ChoicePoint { mode, raw_return: evaluation.targets[0].raw_return.clone() });
    }
    Choice::of(state.step, target, how.seed, curve).context("nothing was played")
}

/// What each mode earned.
fn table(choice: &Choice) -> Table {
    let what = choice.what();
    let mut table = Table::new(&[&what, "episodes", "raw mean ± sd", "min", "max"]);
    for ChoicePoint { mode, raw_return } in &choice.curve {
        table.row(vec![
            choice.label(mode),
            raw_return.n.to_string(),
            raw_return.with_spread(),
            format!("{:.1}", raw_return.min),
            format!("{:.1}", raw_return.max),
        ]);
    }
    table
}

/// `overtone evaluate choose key=value…`.
pub fn run(options: &[String]) -> Result<()> {
    let keys = keys::given(OPTIONS, options)?;
    let text = |key: &str| keys::text(&keys, key);
    let whole = |key: &str| keys::whole(&keys, key, 0);
    let run = open_run(&PathBuf::from(text("runs")), &text("run"))?;
    let checkpoint = open_checkpoint(&run, &text("checkpoint"))?;
    let agent = Agent::of(&checkpoint)?;
    suites::check_environment(&agent.task)?;
    let temperatures = numbers("temperatures", &text("temperatures"), f32::INFINITY)?;
    let return_quantiles = numbers("return_quantiles", &text("return_quantiles"), 1.0)?;
    let target = text("target");
    let top_percent = Choosable::Chosen.beside(&target, Choosable::Chosen);
    let said = OwnChoice::of(&run, &checkpoint)?.said(&agent.matched());
    let modes = Modes::of(&agent, said, &temperatures, &return_quantiles, top_percent);
    let Some(modes) = modes else {
        return Err(nothing_to_choose(&agent, &target));
    };
    let episodes = match text("episodes").as_str() {
        "" => usual_episodes(&agent),
        _ => whole("episodes")?,
    };
    ensure!(episodes > 0, "episodes=0: there is nothing to play");
    ensure!(!target.contains(','), "target={target}: one return is asked for");
    check_own(&run, &checkpoint)?;
    let out = checkpoint.path.join(Choice::FILE);
    check_out(&out)?;
    let device = device_or(text("device"), &run)?;
    let stop = interrupt::listen()?;
    let how = How {
        modes,
        episodes,
        target: &target,
        seed: whole("seed")? as u64,
        parallel: whole("parallel")?,
        device: &device,
        stop: &stop,
    };
    let choice = choose(&run, &checkpoint, &how)?;
    choice.write(&out)?;
    say!("{}", table(&choice));
    say!("Mode: {}; {}", choice.describe(), out.display());
    let asked = if target.is_empty() { String::new() } else { format!(" target={target}") };
    say!(
        "play so: overtone evaluate rollouts run={} checkpoint={}{}{asked}",
        quoted(run.path()),
        quoted(checkpoint_name(&run, &checkpoint)),
        ask::words(&agent, &choice.chosen)
    );
    Ok(())
}

/// Why there is one mode alone to play `agent`, asked for `target`, where no list of what it heeds
/// has any numbers.
fn nothing_to_choose(agent: &Agent, target: &str) -> anyhow::Error {
    let lists = [
        ("temperatures=", agent.has_temperature()),
        ("return_quantiles=", agent.has_return_model()),
    ];
    let empty: Vec<&str> = lists.into_iter().filter(|(_, has)| *has).map(|(key, _)| key).collect();
    if !empty.is_empty() {
        return anyhow!("{}: say among which numbers is chosen", empty.join(" "));
    }
    let what = agent.algorithm.describe();
    if !agent.top_percents().is_empty() {
        return anyhow!(
            "target={target}: {what} can be told a return or a share of the best episodes; leave \
             the target out to choose"
        );
    }
    anyhow!(
        "{what} always takes one action, and was taught neither what may be earned from a state \
         (model.return_head) nor how the best act (model.top_percents): there is nothing to choose"
    )
}

/// The numbers of a list, above 0 and at most `most`; empty: none.
///
/// # Errors
/// Names the first word that is no such number, or is there twice.
fn numbers(key: &str, asked: &str, most: f32) -> Result<Vec<f32>> {
    let mut all: Vec<f32> = Vec::new();
    for word in asked.split(',').map(str::trim).filter(|_| !asked.is_empty()) {
        let number: Option<f32> = word.parse().ok();
        let Some(number) = number.filter(|x| x.is_finite() && *x > 0.0 && *x <= most) else {
            let range = if most.is_finite() { "above 0 and at most 1" } else { "above 0" };
            bail!("{key}={asked}: `{word}` is no number {range}");
        };
        ensure!(!all.contains(&number), "{key}={asked}: {number} is there twice");
        all.push(number);
    }
    Ok(all)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_lie_in_their_range_and_are_different() {
        let of = |asked, most| numbers("t", asked, most);
        assert_eq!(of("1, 0.5,0.25", f32::INFINITY).unwrap(), [1.0, 0.5, 0.25]);
        assert_eq!(of("", 1.0).unwrap(), [0.0; 0]);
        for (asked, expected) in
            [(",1", "``"), ("1,x", "`x`"), ("1,0", "`0`"), ("inf", "`inf`"), ("1,1.0", "twice")]
        {
            let error = of(asked, f32::INFINITY).unwrap_err().to_string();
            assert!(error.contains(expected), "{asked}: {error}");
        }
        let error = of("0.9,1.5", 1.0).unwrap_err().to_string();
        assert_eq!(error, "t=0.9,1.5: `1.5` is no number above 0 and at most 1");
    }

    #[test]
    fn the_command_plays_what_training_plays() {
        let keys = keys::flatten(&OPTIONS.parse().unwrap());
        let of = |key: &str| numbers(key, &keys::plain(&keys[key]), f32::INFINITY).unwrap();
        assert_eq!(of("temperatures"), TEMPERATURES);
        assert_eq!(of("return_quantiles"), RETURN_QUANTILES);
    }
}
