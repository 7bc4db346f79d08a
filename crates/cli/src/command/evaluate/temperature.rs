//! The temperature that an agent is played at: `overtone evaluate temperature` chooses it, as
//! training does at its end where `evaluation.temperature=chosen`.

use std::{path::PathBuf, sync::atomic::AtomicBool};

use anyhow::{Context, Result, bail, ensure};
use overtone_agents::Agent;
use overtone_core::{ActionSpace, Play};
use overtone_eval::{TemperatureChoice, TemperaturePoint, evaluation::n_episodes, table::Table};
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
    settings::{self, EvaluationSettings, Temperature},
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
# The temperatures, of which one is chosen: that of the highest mean return, of equal ones the first.
temperatures = "1,0.7,0.5,0.35,0.25"
# Episodes for each of them.
episodes = 20
# The return to ask for, as a number or a percentile of the data's returns, by actions; empty: p95.
target = ""
# Seed of the episodes. It must be another than that of evaluate rollouts, 1 by default, whose scores are then no part of the choice.
seed = 1001
# Episodes played at once; 0: all, but no more than 100.
parallel = 0
# Where to compute: auto, cpu, cuda or cuda:N; empty: as the run was trained.
device = ""
# Where to write the choice, as JSON; empty: temperature.json in the run's folder, where evaluate rollouts and Python find it.
out = ""
"#;

/// What was chosen for a run, and what its settings say about that.
#[derive(Clone, Debug, Default)]
pub struct OwnTemperature {
    /// The choice; `None` where none was made.
    pub choice: Option<TemperatureChoice>,
    /// Whether the run is to be played at it.
    is_own: bool,
}

impl OwnTemperature {
    /// What the files of `run` say.
    ///
    /// # Errors
    /// When they cannot be read.
    pub fn of(run: &RunDir) -> Result<Self> {
        let choice = TemperatureChoice::read(&run.path().join(TemperatureChoice::FILE))?;
        let set = settings::temperature_of(&run.path().join(CONFIG))?;
        Ok(Self { choice, is_own: set == Temperature::Chosen })
    }

    /// What was chosen; 1 where nothing was.
    pub fn chosen(&self) -> f32 {
        self.choice.as_ref().map_or(1.0, |choice| choice.chosen)
    }

    /// The temperature at which the run is played by its own settings.
    pub fn own(&self) -> f32 {
        if self.is_own { self.chosen() } else { 1.0 }
    }
}

/// Whether a temperature changes what `agent` does.
fn has_temperature(agent: &Agent) -> bool {
    let is_list = matches!(agent.task.actions, ActionSpace::Discrete { .. });
    is_list && agent.algorithm.has_distribution()
}

/// Whether a temperature is still to be chosen for `run`, whose checkpoint this is, before it is
/// played as `options` say.
///
/// # Errors
/// When its files cannot be read.
pub fn is_awaited(
    run: &RunDir,
    checkpoint: &Checkpoint,
    options: &EvaluationSettings,
) -> Result<bool> {
    Ok(options.temperature == Temperature::Chosen
        && has_temperature(&Agent::of(checkpoint)?)
        && OwnTemperature::of(run)?.choice.is_none())
}

/// Temperatures among which training chooses: few, as each is played.
const AFTER_TRAINING: [f32; 3] = [1.0, 0.5, 0.25];

/// Episodes of each of them, at most. Where a temperature matters, means lie far apart: 400 and
/// 765 with deviations of 130 on BankHeist, 460 and 193 on Seaquest.
const EPISODES: usize = 5;

/// Seed of the episodes; that of scores is 1.
const SEED: u64 = 1001;

/// Chooses the temperature of a run that ended its training, where that is awaited.
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
    if !is_awaited(run, checkpoint, options)? {
        return Ok(());
    }
    let how = How {
        temperatures: &AFTER_TRAINING,
        episodes: EPISODES.min(options.episodes),
        target: &options.target,
        seed: if options.seed == SEED { SEED + 1 } else { SEED },
        parallel: options.parallel,
        device,
        stop,
    };
    let choice = choose(run, checkpoint, &how)?;
    choice.write(&run.path().join(TemperatureChoice::FILE))?;
    say!("chosen: {}", choice.describe());
    Ok(())
}

/// How a temperature is chosen.
struct How<'a> {
    temperatures: &'a [f32],
    /// For each of them.
    episodes: usize,
    /// As it is written; of several, the first.
    target: &'a str,
    seed: u64,
    parallel: usize,
    device: &'a str,
    stop: &'a AtomicBool,
}

/// Plays `checkpoint` at each temperature and says what it earned.
fn choose(run: &RunDir, checkpoint: &Checkpoint, how: &How<'_>) -> Result<TemperatureChoice> {
    let state = &checkpoint.state;
    let agent = Agent::of(checkpoint)?;
    let first = how.target.split(',').next().filter(|asked| !asked.is_empty());
    let asked = first.unwrap_or(ask::DEFAULT_TARGET);
    let target = settings::targets(asked, &state.episode_returns)?;
    let target =
        *target.first().with_context(|| format!("target={asked}: nothing is asked for"))?;
    let trained = ask::trained(&agent, &state.episode_returns)?;
    let entry = |temperature: &f32| {
        let play = Play { temperature: *temperature, ..trained.play.clone() };
        let ask = Ask::new(&trained, &trained.play, play, target.to_string(), vec![target]);
        Entry::new(run, checkpoint, &agent, ask, [how.episodes as u64, how.seed])
    };
    let entries: Vec<Entry> = how.temperatures.iter().map(entry).collect();
    say!(
        "playing {} (update {}) at {} temperatures, {} of seed {} each, asked for {target}",
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
    let mut table = Table::new(&["temperature", "episodes", "raw mean ± sd", "min", "max"]);
    for (&temperature, evaluation) in how.temperatures.iter().zip(played) {
        let evaluation = evaluation.with_context(|| format!("temperature {temperature}"))?;
        let raw_return = evaluation.targets[0].raw_return.clone();
        table.row(vec![
            temperature.to_string(),
            raw_return.n.to_string(),
            raw_return.with_spread(),
            raw_return.min.to_string(),
            raw_return.max.to_string(),
        ]);
        curve.push(TemperaturePoint { temperature, raw_return });
    }
    say!("{table}");
    TemperatureChoice::of(state.step, target, how.seed, curve).context("nothing was played")
}

/// `overtone evaluate temperature key=value…`.
pub fn temperature(options: &[String]) -> Result<()> {
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
    if let ActionSpace::Continuous { .. } = agent.task.actions {
        bail!(
            "{} takes real-valued actions, which no temperature changes; `evaluate rollouts \
             actions=sample` draws them from a head with a density",
            agent.task.title
        );
    }
    ensure!(
        has_temperature(&agent),
        "{} always takes the action of the highest value, which no temperature changes",
        agent.algorithm.describe()
    );
    let episodes = whole("episodes")?;
    ensure!(episodes > 0, "episodes=0: there is nothing to play");
    let target = text("target");
    ensure!(!target.contains(','), "target={target}: one return is asked for");
    let temperatures = temperatures(&text("temperatures"))?;
    let out = match text("out").as_str() {
        "" => run.path().join(TemperatureChoice::FILE),
        path => PathBuf::from(path),
    };
    check_out(&out)?;
    let device = match text("device").as_str() {
        "" => settings::device_of(&run.path().join(CONFIG))?,
        name => name.to_owned(),
    };
    let stop = interrupt::listen()?;
    let how = How {
        temperatures: &temperatures,
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
    let (path, step) = (run.path().display(), choice.step);
    let chosen = choice.chosen;
    say!("play at it: just evaluate rollouts run={path} checkpoint={step} temperature={chosen}");
    Ok(())
}

/// # Errors
/// Names the first word that is no temperature, or is there twice.
fn temperatures(asked: &str) -> Result<Vec<f32>> {
    let mut all: Vec<f32> = Vec::new();
    for word in asked.split(',').map(str::trim) {
        let number: Option<f32> = word.parse().ok().filter(|t: &f32| t.is_finite() && *t > 0.0);
        let Some(temperature) = number else {
            bail!("temperatures={asked}: `{word}` is no positive number");
        };
        ensure!(!all.contains(&temperature), "temperatures={asked}: {temperature} is there twice");
        all.push(temperature);
    }
    Ok(all)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn temperatures_are_positive_and_different() {
        assert_eq!(temperatures("1, 0.5,0.25").unwrap(), [1.0, 0.5, 0.25]);
        for (asked, expected) in
            [("", "``"), ("1,x", "`x`"), ("1,0", "`0`"), ("inf", "`inf`"), ("1,1.0", "twice")]
        {
            let error = temperatures(asked).unwrap_err().to_string();
            assert!(error.contains(expected), "{asked}: {error}");
        }
    }
}
