//! Twenty games of the Arcade Learning Environment: recording, training with the Fourier head in
//! compass order, and evaluation, each for a moment.

use std::{ops::ControlFlow, path::Path, sync::Arc, sync::atomic::AtomicBool};

use overtone_agents::{Agent, AlgorithmConfig, DecisionTransformerOptions, policy};
use overtone_ale::{Emulation, Game, open};
use overtone_core::{Actions, Episode, Observations, Outcome, seed::derive_nth};
use overtone_data::{ActionColumn, Columns, Dataset, DatasetOptions, ObservationColumn};
use overtone_eval::{Plan, rollout};
use overtone_model::{
    DecisionTransformerConfig, HeadConfig,
    burn::tensor::Device,
    head::{FourierHeadConfig, InitialCoefficients, OrderConfig},
};
use overtone_train::{Job, RunDir, StepReport, TrainConfig, TrainingData};

/// Actions of an episode.
const STEPS: u32 = 50;

fn emulation() -> Emulation {
    Emulation { max_frames: STEPS * 4, ..Emulation::dqn_replay() }
}

/// Two random episodes of a game.
fn record(game: &'static Game) -> Columns {
    let mut env = open(game, &emulation(), 1).unwrap();
    let (mut pixels, mut ids, mut rewards, mut episodes) = (vec![], vec![], vec![], vec![]);
    for seed in 0..2 {
        let start = ids.len();
        env.reset(&[0], &[seed]).unwrap();
        let outcome = loop {
            let Observations::Pixels(shown) = env.observations() else { panic!("numbers") };
            pixels.extend_from_slice(&shown[3 * 84 * 84..]);
            let draw = derive_nth(seed, ids.len() as u64) as usize;
            let action = draw % game.action_ids.len();
            let step = env.step(&[0], &Actions::Discrete(vec![action])).unwrap()[0];
            ids.push(action as u16);
            rewards.push(step.reward.clamp(-1.0, 1.0));
            if let Some(outcome) = step.outcome {
                break outcome;
            }
        };
        episodes.push(Episode { start, length: ids.len() - start, outcome });
    }
    let seen = ObservationColumn::Frames { pixels };
    let acted = ActionColumn::Discrete { n_actions: game.action_ids.len(), values: ids };
    Columns::new(seen, acted, rewards, episodes)
}

/// Two updates on `columns`, then one evaluation episode: its length.
fn learn_and_play(game: &'static Game, columns: Columns, folder: &Path) -> (u64, Outcome) {
    let data = Dataset::of(columns, &DatasetOptions::default()).unwrap();
    let longest = data.episodes().longest();
    let data = TrainingData::new(Arc::new(data), 1.0);
    let head = HeadConfig::Fourier(FourierHeadConfig {
        frequencies: 2,
        action_order: OrderConfig::Compass,
        initial: InitialCoefficients::UniformDensity,
        ..Default::default()
    });
    let model = DecisionTransformerConfig {
        n_layers: 1,
        n_heads: 2,
        d_model: 16,
        context_length: 4,
        head,
        ..DecisionTransformerConfig::atari(longest)
    };
    let algorithm = AlgorithmConfig::DecisionTransformer(DecisionTransformerOptions(model));
    let agent = Agent::new(game.task.clone(), algorithm.clone(), &data, 2);
    let run = RunDir::create(folder, &game.task.name).unwrap();
    let config = TrainConfig { updates: 2, batch_size: 2, ..TrainConfig::default() };
    let play = agent.matched();
    let device = Device::flex();
    let job = Job {
        run,
        config,
        data,
        agent: agent.to_value(),
        seed: 1,
        device: device.clone(),
        init: None,
        resume: None,
    };
    let trainer = algorithm.trainer(&game.task, job).unwrap();
    let mut losses = Vec::new();
    let mut note = |report: &StepReport| losses.push(report.loss);
    let finished = trainer.train(&AtomicBool::new(false), &mut note).unwrap();
    assert!(losses.iter().all(|loss| loss.is_finite()) && !losses.is_empty(), "{game}");
    let mut agents = policy(&finished.checkpoint, &play, &device).unwrap();
    let mut env = open(game, &emulation(), 1).unwrap();
    let return_units = game.task.return_units;
    let plan = Plan::new(1, vec![1.0], 1, return_units);
    let played = rollout(&mut *env, &mut *agents, &plan, &mut |_| ControlFlow::Continue(()));
    let episode = played.unwrap().episodes.remove(0);
    (episode.length, episode.outcome)
}

#[test]
fn twenty_games_are_recorded_learned_and_played() {
    let folder = tempfile::tempdir().unwrap();
    // Other games than the starter sets', by their place in the table.
    let games: Vec<&Game> = Game::all().iter().skip(4).step_by(5).collect();
    assert_eq!(games.len(), 20);
    for game in games {
        let (length, outcome) = learn_and_play(game, record(game), folder.path());
        assert!(length <= u64::from(STEPS), "{game}: {length} steps");
        assert!(length == u64::from(STEPS) || outcome == Outcome::Terminated, "{game}");
    }
}
