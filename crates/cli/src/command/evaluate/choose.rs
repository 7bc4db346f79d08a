//! The way in which an agent is played: `overtone evaluate choose` chooses it, as training does at
//! its end where `evaluation.temperature=chosen` or `evaluation.return_quantile=chosen`.

use std::{path::PathBuf, sync::atomic::AtomicBool};

use anyhow::{Context, Result, bail, ensure};
use overtone_agents::Agent;
use overtone_core::{ObservationSpace, Play};
use overtone_eval::{Choice, ChoicePoint, Way, evaluation::n_episodes, table::Table};
use overtone_model::device;
use overtone_train::{Checkpoint, RunDir, run_dir::CONFIG};

use super::{
    ask::{self, Ask},
    check_out,
    entry::Entry,
    open_checkpoint, open_run, playing,
};
use crate::{
    interrupt, keys,
    settings::{self, Choosable, EvaluationSettings},
    suites,
};

/// Every option with its default and reason.
pub const OPTIONS: &str = r#"
# A run's folder or name; empty: the newest run.
run = ""
# Folder of the runs.
runs = "runs"
# last; best: the lowest loss on held-out episodes; the step of a checkpoint.
checkpoint = "last"
# Agents that draw from a list of actions: the softmax temperatures, of which one is chosen: that of the highest mean return, of equal ones the first.
temperatures = "1,0.5,0.25"
# Agents with model.return_head: the quantiles of what was earned from states like the agent's own, of which one is chosen as the most that it asks for; 1: whatever is left of the target.
return_quantiles = "0.9,0.75,0.5,1"
# Episodes for each of them; where an agent has both, for each pair. Empty: as after training, 20, and 5 of an agent that sees frames.
episodes = ""
# The return to ask for, as a number or a percentile of the data's returns, by actions; empty: p95.
target = ""
# Seed of the episodes. It must be another than that of evaluate rollouts, 1 by default, whose scores are then no part of the choice.
seed = 1001
# Episodes played at once; 0: all, but no more than 100 (robots: 200).
parallel = 0
# Where to compute: auto, cpu, cuda or cuda:N; empty: as the run was trained.
device = ""
# Where to write the choice, as JSON; empty: choice.json in the run's folder, where evaluate rollouts and Python find it.
out = ""
"#;

/// What was chosen for a run, and what its settings say about that.
#[derive(Clone, Debug, Default)]
pub struct OwnChoice {
    /// The choice; `None` where none was made.
    pub choice: Option<Choice>,
    /// Whether the run is to be played at the temperature, and at the quantile, of the choice.
    is_own: [bool; 2],
}

impl OwnChoice {
    /// What the files of `run` say.
    ///
    /// # Errors
    /// When they cannot be read.
    pub fn of(run: &RunDir) -> Result<Self> {
        let choice = Choice::read(&run.path().join(Choice::FILE))?;
        let set = settings::chosen_of(&run.path().join(CONFIG))?;
        Ok(Self { choice, is_own: set.map(|set| set == Choosable::Chosen) })
    }

    /// What was chosen; the way of `matched`, by which the agent was trained, where nothing was.
    pub fn chosen(&self, matched: &Play) -> Way {
        self.choice.as_ref().map_or_else(|| Way::of(matched), |choice| choice.chosen)
    }

    /// How the run is played by its own settings.
    pub fn own(&self, matched: &Play) -> Play {
        let (chosen, usual) = (self.chosen(matched), Way::of(matched));
        let [temperature, return_quantile] = self.is_own;
        let way = Way {
            temperature: if temperature { chosen.temperature } else { usual.temperature },
            return_quantile: match return_quantile {
                true => chosen.return_quantile,
                false => usual.return_quantile,
            },
        };
        way.playing(matched)
    }
}

/// Temperatures and quantiles among which is chosen.
struct Ways {
    temperatures: Vec<f32>,
    return_quantiles: Vec<f32>,
}

impl Ways {
    /// Of these those that change what `agent` does; `None` where there are none. Nothing is as it
    /// was trained where nothing is asked for.
    fn of(agent: &Agent, temperatures: &[f32], return_quantiles: &[f32]) -> Option<Self> {
        let usual = Way::of(&agent.matched());
        let or_usual = |numbers: &[f32], has: bool, usual: f32| match numbers {
            numbers if has && !numbers.is_empty() => numbers.to_vec(),
            _ => vec![usual],
        };
        let has = [agent.has_temperature(), agent.has_return_model()];
        let ways = Self {
            temperatures: or_usual(temperatures, has[0], usual.temperature),
            return_quantiles: or_usual(return_quantiles, has[1], usual.return_quantile),
        };
        let said = [temperatures, return_quantiles].into_iter().zip(has);
        said.into_iter().any(|(numbers, has)| has && !numbers.is_empty()).then_some(ways)
    }

    /// Every pair.
    fn all(&self) -> Vec<Way> {
        let of_one = |&temperature: &f32| {
            let way = move |&return_quantile: &f32| Way { temperature, return_quantile };
            self.return_quantiles.iter().map(way)
        };
        self.temperatures.iter().flat_map(of_one).collect()
    }
}

/// Temperatures among which training chooses: few, as each is played.
const TEMPERATURES: [f32; 3] = [1.0, 0.5, 0.25];

/// Quantiles among which training chooses; the first is the one of an agent that was not tried.
const RETURN_QUANTILES: [f32; 4] = [0.9, 0.75, 0.5, 1.0];

/// Episodes of each of them, at most. On frames they cost minutes and are few: where a temperature
/// matters, means lie far apart (400 and 765 with deviations of 130 on BankHeist, 460 and 193 on
/// Seaquest). On vectors they cost seconds, and one agent's episodes deviate by 1000 and more.
fn usual_episodes(agent: &Agent) -> usize {
    match agent.task.observations {
        ObservationSpace::Pixels { .. } => 5,
        ObservationSpace::Vectors { .. } => 20,
    }
}

/// Seed of the episodes; that of scores is 1.
const SEED: u64 = 1001;

/// The ways among which is still to be chosen for `run`, whose checkpoint this is, before it is
/// played as `options` say; `None` where there is nothing to choose, or it was chosen.
///
/// # Errors
/// When its files cannot be read.
fn awaited(
    run: &RunDir,
    checkpoint: &Checkpoint,
    options: &EvaluationSettings,
) -> Result<Option<Ways>> {
    let among = |said: Choosable, all: &'static [f32]| match said {
        Choosable::Chosen => all,
        Choosable::Fixed(_) => &[],
    };
    let temperatures = among(options.temperature, &TEMPERATURES);
    let return_quantiles = among(options.return_quantile, &RETURN_QUANTILES);
    let ways = Ways::of(&Agent::of(checkpoint)?, temperatures, return_quantiles);
    Ok(if OwnChoice::of(run)?.choice.is_some() { None } else { ways })
}

/// Whether [`choose_after_training`] has still something to do.
///
/// # Errors
/// When the run's files cannot be read.
pub fn is_awaited(
    run: &RunDir,
    checkpoint: &Checkpoint,
    options: &EvaluationSettings,
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
    options: &EvaluationSettings,
    device: &str,
    stop: &AtomicBool,
) -> Result<()> {
    let Some(ways) = awaited(run, checkpoint, options)? else { return Ok(()) };
    let how = How {
        ways,
        episodes: usual_episodes(&Agent::of(checkpoint)?).min(options.episodes),
        target: &options.target,
        seed: if options.seed == SEED { SEED + 1 } else { SEED },
        parallel: options.parallel,
        device,
        stop,
    };
    let choice = choose(run, checkpoint, &how)?;
    choice.write(&run.path().join(Choice::FILE))?;
    say!("chosen: {}", choice.describe());
    Ok(())
}

/// How a way is chosen.
struct How<'a> {
    ways: Ways,
    /// For each of them.
    episodes: usize,
    /// As it is written; of several, the first.
    target: &'a str,
    seed: u64,
    parallel: usize,
    device: &'a str,
    stop: &'a AtomicBool,
}

/// Plays `checkpoint` in each way and says what it earned.
fn choose(run: &RunDir, checkpoint: &Checkpoint, how: &How<'_>) -> Result<Choice> {
    let state = &checkpoint.state;
    let agent = Agent::of(checkpoint)?;
    let asked = ask::first_target(how.target, &agent.task);
    let target = settings::targets(&asked, &state.episode_returns)?;
    let target =
        *target.first().with_context(|| format!("target={asked}: nothing is asked for"))?;
    let trained = ask::trained(&agent, &state.episode_returns)?;
    let entry = |way: &Way| {
        let play = way.playing(&trained.play);
        let ask = Ask::new(&trained, &trained.play, play, target.to_string(), vec![target]);
        Entry::new(run, checkpoint, &agent, ask, [how.episodes as u64, how.seed])
    };
    let ways = how.ways.all();
    let entries: Vec<Entry> = ways.iter().map(entry).collect();
    say!(
        "playing {} (update {}) in {} ways, {} of seed {} each, asked for {target}",
        checkpoint.path.display(),
        state.step,
        entries.len(),
        n_episodes(how.episodes),
        how.seed
    );
    let all: Vec<&Entry> = entries.iter().collect();
    let device = device::choose(how.device)?;
    let played = playing::play(&all, &device, how.parallel, how.stop)?;
    let mut curve = Vec::with_capacity(played.len());
    for (&way, evaluation) in ways.iter().zip(played) {
        let evaluation = evaluation.with_context(|| format!("{way:?}"))?;
        curve.push(ChoicePoint { way, raw_return: evaluation.targets[0].raw_return.clone() });
    }
    let choice = Choice::of(state.step, target, how.seed, curve).context("nothing was played")?;
    let what = choice.what();
    let mut table = Table::new(&[&what, "episodes", "raw mean ± sd", "min", "max"]);
    for ChoicePoint { way, raw_return } in &choice.curve {
        table.row(vec![
            choice.label(way),
            raw_return.n.to_string(),
            raw_return.with_spread(),
            raw_return.min.to_string(),
            raw_return.max.to_string(),
        ]);
    }
    say!("{table}");
    Ok(choice)
}

/// `overtone evaluate choose key=value…`.
pub fn run(options: &[String]) -> Result<()> {
    let mut keys = keys::flatten(&OPTIONS.parse()?);
    keys::apply(&mut keys, options)?;
    let text = |key: &str| keys.get(key).map(keys::plain).unwrap_or_default();
    let whole = |key: &str| -> Result<usize> {
        let words = text(key);
        words.parse().ok().with_context(|| format!("{key}={words}: must be 0 or more"))
    };
    let run = open_run(&PathBuf::from(text("runs")), &text("run"))?;
    let checkpoint = open_checkpoint(&run, &text("checkpoint"))?;
    let agent = Agent::of(&checkpoint)?;
    suites::check_environment(&agent.task)?;
    let temperatures = numbers("temperatures", &text("temperatures"), f32::INFINITY)?;
    let return_quantiles = numbers("return_quantiles", &text("return_quantiles"), 1.0)?;
    let Some(ways) = Ways::of(&agent, &temperatures, &return_quantiles) else {
        bail!(
            "{} always takes one action, and was not taught what may be earned from a state \
             (model.return_head): there is nothing to choose",
            agent.algorithm.describe()
        )
    };
    let episodes = match text("episodes").as_str() {
        "" => usual_episodes(&agent),
        _ => whole("episodes")?,
    };
    ensure!(episodes > 0, "episodes=0: there is nothing to play");
    let target = text("target");
    ensure!(!target.contains(','), "target={target}: one return is asked for");
    let out = match text("out").as_str() {
        "" => run.path().join(Choice::FILE),
        path => PathBuf::from(path),
    };
    check_out(&out)?;
    let device = match text("device").as_str() {
        "" => settings::device_of(&run.path().join(CONFIG))?,
        name => name.to_owned(),
    };
    let stop = interrupt::listen()?;
    let how = How {
        ways,
        episodes,
        target: &target,
        seed: whole("seed")? as u64,
        parallel: whole("parallel")?,
        device: &device,
        stop: &stop,
    };
    let choice = choose(&run, &checkpoint, &how)?;
    choice.write(&out)?;
    say!("chosen: {}; {}", choice.describe(), out.display());
    let said = choice
        .settings()
        .into_iter()
        .map(|(name, of)| format!(" {}={}", name.replace(' ', "_"), of(&choice.chosen)));
    let (path, step, said) = (run.path().display(), choice.step, said.collect::<String>());
    say!("play so: just evaluate rollouts run={path} checkpoint={step}{said}");
    Ok(())
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

    #[test]
    fn ways_are_all_pairs() {
        let ways = Ways { temperatures: vec![1.0, 0.5], return_quantiles: vec![0.9, 1.0] };
        let pairs = ways.all().into_iter().map(|way| [way.temperature, way.return_quantile]);
        assert_eq!(pairs.collect::<Vec<_>>(), [[1.0, 0.9], [1.0, 1.0], [0.5, 0.9], [0.5, 1.0]]);
    }
}
