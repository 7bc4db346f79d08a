//! How many steps of playing there are in a second, emulator included.

use anyhow::Result;
use overtone_agents::Agent;
use overtone_model::burn::tensor::Device;
use overtone_train::Checkpoint;

use crate::report::Row;

/// Episodes played at once, as many as the reference's evaluation has in all.
const EPISODES: usize = 100;

/// Plays the agent of `trained` for about so many seconds.
///
/// # Errors
/// When playing fails.
pub fn measure(trained: Option<&Checkpoint>, device: &Device, seconds: u64) -> Result<Vec<Row>> {
    use std::{
        ops::ControlFlow,
        time::{Duration, Instant},
    };

    use overtone::suites;
    use overtone_console::errors;
    use overtone_eval::{Plan, rollout};
    use overtone_model::device::is_cpu;

    if seconds == 0 {
        return Ok(Row::skipped("playing=0"));
    }
    let Some(trained) = trained else {
        return Ok(Row::skipped("no agent was trained; parts=paper,playing trains one"));
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
    // Being stopped is an error of a rollout, and here the plan.
    if let (Err(error), false) = (played, is_over) {
        return Err(error.into());
    }
    // The first fifth is warming up.
    let rate = marks.get(marks.len() / 5).zip(marks.last()).map(|(first, last)| {
        (last.1 - first.1) as f64 / (last.0 - first.0).as_secs_f64().max(1e-9)
    });
    let what = format!("{episodes} episodes at once");
    Ok(vec![Row { what, value: rate, unit: "steps/s", ..Row::default() }])
}
