//! A line from -1 to 1, for `own_algorithm`: an action moves by up to 0.2, and the reward is minus the
//! distance from 0. The recorded actions are random, so a clone stays where it is.

use std::{error::Error, path::Path, sync::Arc, sync::atomic::AtomicBool};

use overtone_agents::{Agent, AlgorithmConfig, RebracConfig, policy};
use overtone_core::{
    ActionSpace, Actions, Episode, ObservationSpace, Observations, Outcome, Task, Turn,
    policy::EpisodeStart,
};
use overtone_data::{ActionColumn, Columns, Dataset, DatasetOptions, ObservationColumn};
use overtone_model::burn::tensor::Device;
use overtone_train::{Job, RunDir, StepReport, TrainConfig, Training, TrainingData};

/// Any error of these libraries.
pub type Fault = Box<dyn Error + Send + Sync>;

/// 200 episodes of 20 random steps.
fn recording() -> Columns {
    let (mut seen, mut done, mut rewards, mut coin) = (vec![], vec![], vec![], 1u32);
    let mut random = || {
        coin = coin.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        (coin >> 8) as f32 / (1 << 23) as f32 - 1.0
    };
    for _ in 0..200 {
        let mut place = random();
        for _ in 0..20 {
            let action = random();
            seen.push(place);
            done.push(action);
            place = (place + 0.2 * action).clamp(-1.0, 1.0);
            rewards.push(-place.abs());
        }
    }
    let outcome = Outcome::Truncated;
    let episodes = (0..200).map(|i| Episode { start: 20 * i, length: 20, outcome }).collect();
    let seen = ObservationColumn::Vectors { width: 1, values: seen };
    Columns::new(seen, ActionColumn::Continuous { width: 1, values: done }, rewards, episodes)
}

/// The task, and the job of an agent that acts with ReBRAC's actor.
pub fn job(runs: &Path, name: &str, actor: &RebracConfig) -> Result<(Task, Job), Fault> {
    let dataset = Dataset::of(recording(), &DatasetOptions::default())?;
    let data = TrainingData::new(Arc::new(dataset), 1.0);
    let task = Task::own("line", ObservationSpace::Vectors { width: 1 }, ActionSpace::unit(1));
    let acting = AlgorithmConfig::Rebrac(actor.clone());
    let config = TrainConfig { updates: 500, batch_size: 256, ..TrainConfig::default() };
    let agent = Agent::new(task.clone(), acting, &data, config.updates).to_value();
    let (run, device) = (RunDir::create(runs, name)?, Device::flex());
    Ok((task, Job { run, config, data, agent, seed: 1, device, init: None, resume: None }))
}

/// Trains, and prints the agent's actions left and right of 0.
pub fn play(name: &str, trainer: Box<dyn Training>) -> Result<(), Fault> {
    let stop = AtomicBool::new(false);
    let checkpoint = trainer.train(&stop, &mut |_: &StepReport| {})?.checkpoint;
    let mut agent = policy(&checkpoint, &Agent::of(&checkpoint)?.matched(), &Device::flex())?;
    for place in [-0.5, 0.5] {
        let start = Some(EpisodeStart { seed: 1, target_return: 0.0 });
        let turn = Turn { agent: 0, reward: 0.0, start };
        let acted = agent.act(&[turn], Observations::Vectors(&[place]))?;
        let Actions::Continuous { values, .. } = acted else { return Err("discrete".into()) };
        println!("{name} at {place}: action {:.3}", values[0]);
    }
    Ok(())
}
