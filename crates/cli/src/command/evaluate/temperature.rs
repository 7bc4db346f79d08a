//! `overtone evaluate temperature`: the same weights at several softmax temperatures, and the one
//! that the agent is to be played at.
//!
//! Temperature changes what an agent earns as much as its head does, each agent's in its own way:
//! one that learned from near-random policies gains when it is sharpened, another then repeats one
//! action for ever. So none is right for all, and a choice by the episodes that a score is made of
//! would flatter the score. Here it is made by episodes of another seed.

use std::path::PathBuf;

use anyhow::{Context, Result, bail, ensure};
use overtone_agents::Agent;
use overtone_core::{ActionSpace, Play};
use overtone_eval::{Summary, table::Table};
use overtone_files as files;
use overtone_model::device;
use overtone_train::run_dir::CONFIG;
use serde::Serialize;

use super::{
    ask::{self, Ask},
    check_out,
    entry::Entry,
    open_checkpoint, open_run, playing,
};
use crate::{interrupt, keys, settings, suites};

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
# Where to write what was found, as JSON; empty: temperature.json in the run's folder.
out = ""
"#;

/// What an agent earned at a temperature.
#[derive(Serialize)]
struct Point {
    temperature: f32,
    raw_return: Summary,
}

/// What was found, as JSON.
#[derive(Serialize)]
struct Found<'a> {
    checkpoint: String,
    step: u64,
    target: f32,
    episodes: usize,
    seed: u64,
    rule: &'a str,
    curve: &'a [Point],
    chosen: f32,
}

/// How a temperature is chosen, as it is said.
const RULE: &str = "the highest mean raw return, in episodes that no score is made of";

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
    let state = &checkpoint.state;
    let agent = Agent::of(&checkpoint)?;
    suites::check_environment(&agent.task)?;
    if let ActionSpace::Continuous { .. } = agent.task.actions {
        bail!(
            "{} takes real-valued actions, which no temperature changes; `evaluate rollouts \
             actions=sample` draws them from a head with a density",
            agent.task.title
        );
    }
    let (episodes, seed) = (whole("episodes")?, whole("seed")? as u64);
    ensure!(episodes > 0, "episodes=0: there is nothing to play");
    let asked = Some(text("target")).filter(|asked| !asked.is_empty());
    let asked = asked.unwrap_or_else(|| ask::DEFAULT_TARGET.to_owned());
    let &[target] = &settings::targets(&asked, &state.episode_returns)?[..] else {
        bail!("target={asked}: one return is asked for");
    };
    let temperatures = temperatures(&text("temperatures"))?;
    let out = match text("out").as_str() {
        "" => run.path().join("temperature.json"),
        path => PathBuf::from(path),
    };
    check_out(&out)?;

    let trained = ask::trained(&agent, &state.episode_returns)?;
    let entry = |temperature: &f32| {
        let play = Play { temperature: *temperature, ..trained.play.clone() };
        let ask = Ask::new(&trained, play, target.to_string(), vec![target]);
        Entry::new(&run, &checkpoint, &agent, ask, [episodes as u64, seed])
    };
    let entries: Vec<Entry> = temperatures.iter().map(entry).collect();
    say!(
        "playing {} (update {}) at {} temperatures, {episodes} episodes of seed {seed} each, asked \
         for {target}",
        checkpoint.path.display(),
        state.step,
        entries.len()
    );
    let chosen_device = match text("device").as_str() {
        "" => settings::device_of(&run.path().join(CONFIG))?,
        name => name.to_owned(),
    };
    let stop = interrupt::listen()?;
    let all: Vec<&Entry> = entries.iter().collect();
    let played = playing::play(&all, &device::choose(&chosen_device)?, whole("parallel")?, &stop)?;
    let mut curve = Vec::with_capacity(played.len());
    let mut table = Table::new(&["temperature", "episodes", "raw mean ± sd", "min", "max"]);
    for (&temperature, evaluation) in temperatures.iter().zip(played) {
        let evaluation = evaluation.with_context(|| format!("temperature {temperature}"))?;
        let raw_return = evaluation.targets[0].raw_return.clone();
        table.row(vec![
            temperature.to_string(),
            raw_return.n.to_string(),
            raw_return.with_spread(),
            raw_return.min.to_string(),
            raw_return.max.to_string(),
        ]);
        curve.push(Point { temperature, raw_return });
    }
    say!("{table}");
    let Some(best) = best(&curve) else { bail!("nothing was played") };
    let (path, step) = (run.path().display().to_string(), state.step);
    let checkpoint = entries[0].checkpoint_name();
    let found =
        Found { checkpoint, step, target, episodes, seed, rule: RULE, curve: &curve, chosen: best };
    files::replace(&out, &serde_json::to_vec_pretty(&found)?)
        .with_context(|| out.display().to_string())?;
    say!("chosen: {best}, {RULE} (seed {seed}); {}", out.display());
    say!("play at it: just evaluate rollouts run={path} checkpoint={step} temperature={best}");
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

/// The temperature of the highest mean; the first of equal ones.
fn best(curve: &[Point]) -> Option<f32> {
    let mut points = curve.iter();
    let first = points.next()?;
    let better = |best: &'_ Point, point: &'_ Point| point.raw_return.mean > best.raw_return.mean;
    let chosen = points.fold(first, |best, point| if better(best, point) { point } else { best });
    Some(chosen.temperature)
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

    #[test]
    fn the_highest_mean_is_chosen_and_of_equal_ones_the_first() {
        let point = |(temperature, returns): (f32, &[f64])| Point {
            temperature,
            raw_return: Summary::of(returns).unwrap(),
        };
        let curve = [(1.0, &[3.0, 1.0][..]), (0.5, &[4.0, 2.0]), (0.25, &[3.0, 3.0])].map(point);
        assert_eq!(best(&curve), Some(0.5));
        assert_eq!(best(&curve[2..]), Some(0.25));
        assert_eq!(best(&[]), None);
    }
}
