//! Speed of rollouts in steps per second, including the emulator.

use anyhow::Result;
use overtone_agents::Agent;
use overtone_model::burn::tensor::Device;
use overtone_train::Checkpoint;

use crate::report::Row;

/// Number of parallel episodes: all episodes of the reference's evaluation.
const EPISODES: usize = 100;

/// Runs the agent of `trained` for about `seconds` seconds.
///
/// # Errors
/// When the rollout fails.
pub fn measure(trained: Option<&Checkpoint>, device: &Device, seconds: u64) -> Result<Vec<Row>> {
    use std::{
        ops::ControlFlow,
        time::{Duration, Instant},
    };

    use overtone_console::errors;
    use overtone_eval::{Plan, rollout};
    use overtone_model::device::is_cpu;
    use overtone_settings::suites;

    if seconds == 0 {
        return Ok(Row::skipped("playing=0"));
    }
    let Some(trained) = trained else {
        return Ok(Row::skipped("no agent was trained: use parts=paper,playing"));
    };
    let agent = Agent::of(trained)?;
    let task = &agent.task;
    let suite = suites::of(task)?;
    if let Err(error) = suite.check(task) {
        return Ok(Row::skipped(errors::sentence(&error.into())));
    }
    let episodes = if is_cpu(device) { 4 } else { EPISODES };
    let protocol = agent.matched();
    let plan = Plan::new(
        episodes,
        vec![trained.state.episode_returns.ends().map_or(1.0, |[_, highest]| highest)],
        1,
        protocol.return_units,
    );
    let mut policy = overtone_agents::policy(trained, &protocol, device)?;
    let mut env = suite.open(task, &protocol.simulation, episodes)?;
    let mut marks: Vec<(Instant, u64)> = Vec::new();
    let limit = Duration::from_secs(seconds);
    let started = Instant::now();
    let mut is_over = false;
    let played = rollout(env.as_mut(), policy.as_mut(), &plan, &mut |progress| {
        marks.push((Instant::now(), progress.steps));
        is_over = started.elapsed() > limit;
        match is_over {
            true => ControlFlow::Break(()),
            false => ControlFlow::Continue(()),
        }
    });
    // A stopped rollout is an error, but here the stop is intended.
    if let (Err(error), false) = (played, is_over) {
        return Err(error.into());
    }
    // The first fifth is warm-up.
    let rate = marks.get(marks.len() / 5).zip(marks.last()).map(|(first, last)| {
        (last.1 - first.1) as f64 / (last.0 - first.0).as_secs_f64().max(1e-9)
    });
    let what = format!("{episodes} parallel episodes");
    Ok(vec![Row { what, value: rate, unit: "steps/s", ..Row::default() }])
}
