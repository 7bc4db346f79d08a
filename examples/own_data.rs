//! Your own data: arrays become a dataset, and a Decision Transformer learns from it. The data are
//! random walks in a corridor of seven cells; the right end has a reward of 20.
//!
//! `cargo run --release -p overtone-examples --bin own_data runs`

use std::{error::Error, path::Path, sync::Arc, sync::atomic::AtomicBool};

use overtone_agents::{Agent, AlgorithmConfig, DecisionTransformerOptions};
use overtone_core::{ActionSpace, Episode, ObservationSpace, Outcome, Task};
use overtone_data::{ActionColumn, Columns, Dataset, DatasetOptions, ObservationColumn};
use overtone_model::{
    DecisionTransformerConfig, HeadConfig, burn::tensor::Device, head::LinearConfig,
};
use overtone_train::{Job, RunDir, StepReport, TrainConfig, TrainingData};

/// All steps of all episodes, one after the other.
fn arrays() -> Columns {
    let (mut seen, mut done, mut rewards, mut episodes) = (vec![], vec![], vec![], vec![]);
    let mut coin = 1u32;
    for episode in 0..300 {
        let (start, mut cell) = (done.len(), episode / 2 % 6);
        while cell < 6 && done.len() < start + 30 {
            coin = coin.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            // In every other episode, three of four steps go right, else left.
            let goes_right = (coin >> 30 == 0) != (episode % 2 == 0);
            seen.extend([cell as f32, (done.len() - start) as f32]);
            done.push(u16::from(goes_right));
            cell = if goes_right { cell + 1 } else { cell.max(1) - 1 };
            rewards.push(if cell == 6 { 20.0 } else { 0.0 });
        }
        let outcome = if cell == 6 { Outcome::Terminated } else { Outcome::Truncated };
        episodes.push(Episode { start, length: done.len() - start, outcome });
    }
    let actions = ActionColumn::Discrete { n_actions: 2, values: done };
    Columns::new(ObservationColumn::Vectors { width: 2, values: seen }, actions, rewards, episodes)
}

fn main() -> Result<(), Box<dyn Error>> {
    let runs = std::env::args().nth(1).ok_or("pass the directory of the runs")?;
    let dataset = Arc::new(Dataset::of(arrays(), &DatasetOptions::default())?);
    let data = TrainingData::new(dataset, 20.0);
    let actions = ActionSpace::Discrete { names: vec!["left".into(), "right".into()] };
    let task = Task::own("corridor", ObservationSpace::Vectors { width: 2 }, actions);
    let head = HeadConfig::Linear(LinearConfig {});
    let gym = DecisionTransformerConfig::gym(30);
    let model = DecisionTransformerConfig { n_layers: 1, d_model: 32, head, ..gym };
    let algorithm = AlgorithmConfig::DecisionTransformer(DecisionTransformerOptions(model));
    let config = TrainConfig { updates: 300, ..TrainConfig::default() };
    let agent = Agent::new(task.clone(), algorithm.clone(), &data, config.updates).to_value();
    let run = RunDir::create(Path::new(&runs), "corridor")?;
    let device = Device::flex();
    let job = Job { run, config, data, agent, seed: 1, device, init: None, resume: None };
    let mut print = |report: &StepReport| println!("step {}: loss {:.3}", report.step, report.loss);
    let trainer = algorithm.trainer(&task, job)?;
    let finished = trainer.train(&AtomicBool::new(false), &mut print)?;
    println!("checkpoint {}", finished.checkpoint.path.display());
    Ok(())
}
