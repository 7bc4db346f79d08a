//! Invariance of predictions: to padding, to the future, and to the assembly of a context.

#![allow(clippy::unwrap_used, reason = "a test's helpers may")]

use burn::tensor::{DType, Device, Int, Tensor, TensorData};
use overtone_core::{
    ActingMode, ActionSpace, Actions, BinOrder, Normalization, ObservationSpace, Observations,
    Play, Policy, Simulation, Turn,
    policy::EpisodeStart,
    protocol::{ActionChoice, GlobalTimestep},
    seed,
};
use overtone_model::{
    Acted, AttentionConfig, AverageReturn, ConditionerConfig, Contexts, DecisionTransformer,
    DecisionTransformerConfig, FourierKernel, HeadConfig, Init, Model, ModelPolicy, Observed,
    RShape,
    contexts::timesteps_from,
    head::{ActionOrder, FourierHeadConfig, GmmHeadConfig, LinearConfig, TanhConfig},
    positions::Positions,
};
use overtone_testkit::sentences;
use overtone_testkit::{assert_close, largest_difference};
use rand::RngExt;

const CONTEXT: usize = 5;
/// The emulator's names, in the order of its ids.
const ATARI: [&str; N_ACTIONS] = [
    "NOOP",
    "FIRE",
    "UP",
    "RIGHT",
    "LEFT",
    "DOWN",
    "UPRIGHT",
    "UPLEFT",
    "DOWNRIGHT",
    "DOWNLEFT",
    "UPFIRE",
    "RIGHTFIRE",
    "LEFTFIRE",
    "DOWNFIRE",
    "UPRIGHTFIRE",
    "UPLEFTFIRE",
    "DOWNRIGHTFIRE",
    "DOWNLEFTFIRE",
];
const N_ACTIONS: usize = 18;
/// Tolerance of probabilities. Largest seen: 4e-6.
const ROUNDING: f64 = 2e-5;
/// Tolerance of logits of up to 10 in size. Largest seen: 2.1e-5.
const LOGITS: f64 = 1e-4;

/// Every head, every attention, with and without returns.
fn models() -> Vec<DecisionTransformer> {
    let fourier = HeadConfig::Fourier(FourierHeadConfig {
        gamma: 1e-6,
        action_order: ActionOrder::atari().into(),
        ..FourierHeadConfig::new(6)
    });
    let gmm = HeadConfig::Gmm(GmmHeadConfig {
        action_order: ActionOrder::atari().into(),
        ..Default::default()
    });
    let mut models = Vec::new();
    let kernel = AttentionConfig::Fourier(FourierKernel {
        power: 4,
        r: RShape::PerHead,
        initial: 2.0,
        epsilon: 0.0,
    });
    for (head, attention) in [
        (HeadConfig::Linear(LinearConfig {}), AttentionConfig::SOFTMAX),
        (fourier, AttentionConfig::SOFTMAX),
        (gmm, AttentionConfig::SOFTMAX),
        (HeadConfig::Linear(LinearConfig {}), kernel),
    ] {
        for conditioning in [Some(ConditionerConfig::default()), None] {
            let config = DecisionTransformerConfig {
                n_layers: 2,
                n_heads: 4,
                d_model: 32,
                context_length: CONTEXT,
                conditioning,
                attention,
                head: head.clone(),
                ..DecisionTransformerConfig::atari(40)
            };
            let observations = ObservationSpace::Pixels { shape: vec![4, 84, 84] };
            let actions = ActionSpace::Discrete { names: ATARI.map(String::from).to_vec() };
            let mut generator = seed::generator(3, "init");
            let init = &mut Init::drawn(&Device::flex(), &mut generator);
            models.push(DecisionTransformer::init(&config, &observations, &actions, init).unwrap());
        }
    }
    models
}

/// Random timesteps of one episode.
#[derive(Clone)]
struct Episode {
    /// Each step's newest frame; stacks are black before the first.
    frames: Vec<Vec<u8>>,
    actions: Vec<i32>,
    returns_to_go: Vec<f32>,
}

impl Episode {
    fn random(length: usize) -> Self {
        let mut generator = seed::generator(11, "episode");
        Self {
            frames: (0..length)
                .map(|_| (0..84 * 84).map(|_| generator.random()).collect())
                .collect(),
            actions: (0..length).map(|_| generator.random_range(0..18)).collect(),
            returns_to_go: (0..length).map(|t| 20.0 - t as f32).collect(),
        }
    }

    /// Stack of step `t`, oldest frame first.
    fn stack(&self, t: usize) -> Vec<u8> {
        (0..4)
            .flat_map(|place| match (t + place).checked_sub(3) {
                Some(frame) => self.frames[frame].clone(),
                None => vec![0; 84 * 84],
            })
            .collect()
    }

    /// Steps `first .. first + n`, after `n_padding` padded places filled with `noise`.
    fn context(&self, first: usize, n: usize, n_padding: usize, noise: u8) -> Contexts {
        let device = Device::flex();
        let time = n_padding + n;
        let mut pixels = vec![noise; n_padding * 4 * 84 * 84];
        (first..first + n).for_each(|t| pixels.extend(self.stack(t)));
        let padded = |values: Vec<i32>| {
            let padding = vec![i32::from(noise) % 18; n_padding];
            TensorData::new([padding, values].concat(), [1, time])
        };
        let frames = Tensor::<4, Int>::from_data(
            TensorData::new(pixels, [time, 4, 84, 84]),
            (&device, DType::U8),
        );
        let returns =
            [vec![f32::from(noise); n_padding], self.returns_to_go[first..first + n].to_vec()];
        let actions = padded(self.actions[first..first + n].to_vec());
        Contexts {
            observations: Observed::Frames(frames),
            actions: Acted::Discrete(Tensor::from_data(actions, &device)),
            returns_to_go: Tensor::from_data(TensorData::new(returns.concat(), [1, time]), &device),
            timesteps: timesteps_from(&[first as i32], &[n_padding], time),
            n_padding: vec![n_padding],
            step_weights: Vec::new(),
            penalties: None,
            top_percent_idx: Vec::new(),
            stored: None,
        }
    }
}

/// Logits of the last `n` steps.
fn logits(model: &DecisionTransformer, contexts: Contexts, n: usize) -> Vec<f64> {
    let logits = model.logits(&contexts).unwrap();
    let logits: Vec<f64> = logits.into_data().iter::<f64>().collect();
    logits[logits.len() - n * N_ACTIONS..].to_vec()
}

#[test]
fn padding_changes_nothing() {
    let episode = Episode::random(3);
    for model in models() {
        for n in 1..=3 {
            let alone = logits(&model, episode.context(0, n, 0, 0), n);
            for (n_padding, noise) in [(CONTEXT - n, 0), (CONTEXT - n, 201), (1, 7)] {
                let padded = logits(&model, episode.context(0, n, n_padding, noise), n);
                assert_close("padded", &padded, &alone, 0.0, LOGITS);
            }
        }
    }
}

#[test]
fn the_future_changes_no_past_output() {
    let episode = Episode::random(CONTEXT);
    for model in models() {
        let before = logits(&model, episode.context(0, CONTEXT, 0, 0), CONTEXT);
        let mut changed = episode.clone();
        let last = CONTEXT - 1;
        changed.frames[last].iter_mut().for_each(|pixel| *pixel ^= 255);
        changed.returns_to_go[last] = -3.0;
        changed.actions[last - 1] = (changed.actions[last - 1] + 1) % 18;
        let after = logits(&model, changed.context(0, CONTEXT, 0, 0), CONTEXT);
        let past = last * N_ACTIONS;
        assert_eq!(after[..past], before[..past], "a past prediction moved");
        assert_ne!(after[past..], before[past..], "the present has no effect");
    }
}

#[test]
fn windows_and_stacks_of_the_same_frames_agree() {
    let episode = Episode::random(CONTEXT);
    let device = Device::flex();
    let mut pixels = vec![0u8; 3 * 84 * 84];
    episode.frames.iter().for_each(|frame| pixels.extend(frame));
    let shape = [1, CONTEXT + 3, 84, 84];
    let windows = Tensor::<4, Int>::from_data(TensorData::new(pixels, shape), (&device, DType::U8));
    for model in models() {
        let stacks = episode.context(0, CONTEXT, 0, 0);
        let observations = Observed::Frames(windows.clone());
        let of_windows = logits(&model, Contexts { observations, ..stacks.clone() }, CONTEXT);
        let of_stacks = logits(&model, stacks, CONTEXT);
        assert_close("windows", &of_windows, &of_stacks, 0.0, ROUNDING);
    }
}

fn policy_of(model: &DecisionTransformer, protocol: &Play) -> ModelPolicy {
    ModelPolicy::new(&Model::Transformer(model.clone()), None, None, protocol).unwrap()
}

/// Acting step by step with cached embeddings, among other agents, the policy takes the most
/// probable action of one pass over the whole context.
#[test]
fn playing_step_by_step_equals_one_pass() {
    let length = CONTEXT + 3;
    for model in models() {
        let mut episode = Episode::random(length);
        // Nearly greedy: the random draw only decides between equal logits.
        let protocol = Play {
            acting: ActingMode { temperature: 1e-6, ..ActingMode::default() },
            ..Play::matched(Simulation::default())
        };
        let mut policy = policy_of(&model, &protocol);
        let start = EpisodeStart { seed: 5, target_return: episode.returns_to_go[0] };
        for t in 0..length {
            // Agent 1 acts in the episode; agent 0 joins later and sees other frames.
            let mut turns = vec![Turn { agent: 1, reward: 1.0, start: (t == 0).then_some(start) }];
            let mut pixels = episode.stack(t);
            if t >= 2 {
                turns.insert(0, Turn { agent: 0, reward: 0.0, start: (t == 2).then_some(start) });
                pixels = [vec![t as u8 * 9; 4 * 84 * 84], pixels].concat();
            }
            let actions = policy.act(&turns, Observations::Pixels(&pixels)).unwrap();
            let Actions::Discrete(actions) = actions else { panic!("discrete") };
            let played = actions[turns.len() - 1];

            if t == 3 {
                // Agent 1 waits while agent 0 continues, and a mistake has no effect.
                let turn = |agent| [Turn { agent, reward: 0.0, start: None }];
                let pixels = vec![17u8; 4 * 84 * 84];
                policy.act(&turn(0), Observations::Pixels(&pixels)).unwrap();
                let error = policy.act(&turn(7), Observations::Pixels(&pixels)).unwrap_err();
                sentences::check(&error.to_string());
            }

            let n = (t + 1).min(CONTEXT);
            let logits = logits(&model, episode.context(t + 1 - n, n, 0, 0), 1);
            let best = (0..N_ACTIONS).max_by(|&a, &b| logits[a].total_cmp(&logits[b]));
            assert_eq!(Some(played), best, "step {t}: {logits:?}");
            episode.actions[t] = played as i32;
        }
    }
}

/// Up to rounding, an agent acts the same next to any number of others in any row of the batch. The
/// others started earlier or later, so contexts are padded by any amount.
#[test]
fn an_agent_acts_the_same_in_any_batch() {
    let length = CONTEXT + 2;
    let episode = Episode::random(length);
    let start = |agent: usize| EpisodeStart { seed: agent as u64, target_return: 20.0 };
    for model in models() {
        let protocol = Play::matched(Simulation::default());
        // The distributions of agent 3, which begins after `delay` steps of the others.
        let play = |others: &[usize], delay: usize| {
            let mut policy = policy_of(&model, &protocol);
            let mut agents = [others, &[3]].concat();
            agents.sort_unstable();
            let mut seen = Vec::new();
            for t in 0..delay + length {
                let acting: Vec<usize> =
                    agents.iter().copied().filter(|&agent| agent != 3 || t >= delay).collect();
                let begins = |agent: usize| t == if agent == 3 { delay } else { 0 };
                let turn = |&agent: &usize| Turn {
                    agent,
                    reward: 1.0,
                    start: begins(agent).then(|| start(agent)),
                };
                let turns: Vec<Turn> = acting.iter().map(turn).collect();
                let stack = |&agent: &usize| match agent {
                    3 => episode.stack(t - delay),
                    _ => vec![(agent * 7 + t) as u8; 4 * 84 * 84],
                };
                let pixels: Vec<u8> = acting.iter().flat_map(stack).collect();
                policy.act(&turns, Observations::Pixels(&pixels)).unwrap();
                if let Some(row) = acting.iter().position(|&agent| agent == 3) {
                    let probs = policy.played().unwrap().probs;
                    seen.extend_from_slice(&probs[row * N_ACTIONS..(row + 1) * N_ACTIONS]);
                }
            }
            seen
        };
        let alone = play(&[], 0);
        for n_others in [1, 2, 3, 6, 11, 16] {
            let others: Vec<usize> = (0..=n_others).filter(|&agent| agent != 3).collect();
            for delay in [0, 1, 4, 9] {
                let what = format!("{n_others} others, {delay} later");
                assert_close(&what, &play(&others, delay), &alone, 0.0, ROUNDING);
            }
        }
    }
}

/// The policy's reported distribution is the softmax of one pass over the context, in compass
/// order.
#[test]
fn played_distributions_equal_the_softmax_of_the_logits() {
    let (episode, temperature) = (Episode::random(2), 1.7);
    for model in models() {
        let acting = ActingMode { temperature, ..ActingMode::default() };
        let protocol = Play { acting, ..Play::matched(Simulation::default()) };
        let mut policy = policy_of(&model, &protocol);
        let target_return = episode.returns_to_go[0];
        let start = |seed| Some(EpisodeStart { seed, target_return });
        let turns = [0, 1].map(|agent| Turn { agent, reward: 0.0, start: start(agent as u64) });
        let pixels = [episode.stack(1), episode.stack(0)].concat();
        policy.act(&turns, Observations::Pixels(&pixels)).unwrap();

        let played = policy.played().unwrap();
        assert_eq!(played.actions, ActionOrder::atari().action_of());
        assert_eq!(played.order, BinOrder::Compass);
        assert_eq!(played.probs.len(), 2 * N_ACTIONS);
        let logits = logits(&model, episode.context(0, 1, 0, 0), 1);
        let total: f64 = logits.iter().map(|x| (x / f64::from(temperature)).exp()).sum();
        let expected: Vec<f64> = ActionOrder::atari()
            .action_of()
            .into_iter()
            .map(|action| (logits[action] / f64::from(temperature)).exp() / total)
            .collect();
        assert_close("probs", &played.probs[N_ACTIONS..], &expected, ROUNDING, 0.0);
        let first: f64 = played.probs[..N_ACTIONS].iter().sum();
        assert!((first - 1.0).abs() < 1e-12);
        assert_ne!(played.probs[..N_ACTIONS], played.probs[N_ACTIONS..]);
        policy.act(&[], Observations::Pixels(&[])).unwrap();
        assert!(policy.played().unwrap().probs.is_empty(), "of an earlier batch");
    }
}

/// Continuous actions from frames, with either kind of positions. The policy's cached embeddings
/// give the same as one pass over the whole context, with each action fed back.
#[test]
fn continuous_actions_are_taken_from_frames() {
    let (episode, length) = (Episode::random(CONTEXT + 2), CONTEXT + 2);
    let (observations, actions) =
        (ObservationSpace::Pixels { shape: vec![4, 84, 84] }, ActionSpace::unit(2));
    for reference in [DecisionTransformerConfig::atari(40), DecisionTransformerConfig::gym(40)] {
        let config = DecisionTransformerConfig {
            n_layers: 2,
            n_heads: 2,
            d_model: 16,
            context_length: CONTEXT,
            head: HeadConfig::Tanh(TanhConfig {}),
            ..reference
        };
        let mut generator = seed::generator(3, "init");
        let init = &mut Init::drawn(&Device::flex(), &mut generator);
        let model = DecisionTransformer::init(&config, &observations, &actions, init).unwrap();
        let model = Model::Transformer(model);
        let play =
            Play { action_choice: ActionChoice::Mode, ..Play::matched(Simulation::default()) };
        let mut policy = ModelPolicy::new(&model, None, None, &play).unwrap();
        let start = EpisodeStart { seed: 5, target_return: episode.returns_to_go[0] };
        let mut played: Vec<f32> = Vec::new();
        for t in 0..length {
            let turn = Turn { agent: 0, reward: 1.0, start: (t == 0).then_some(start) };
            let acted = policy.act(&[turn], Observations::Pixels(&episode.stack(t))).unwrap();
            let Actions::Continuous { width: 2, values } = acted else { panic!("{acted:?}") };
            let n = (t + 1).min(CONTEXT);
            let first = t + 1 - n;
            let mut known = played[2 * first..].to_vec();
            known.extend([0.0, 0.0]);
            let known = TensorData::new(known, [1, n, 2]);
            let contexts = Contexts {
                actions: Acted::Continuous(Tensor::from_data(known, &Device::flex())),
                ..episode.context(first, n, 0, 0)
            };
            let expected = model.decide(&contexts).numbers().unwrap().mode(0);
            let got: Vec<f64> = values.iter().map(|&x| f64::from(x)).collect();
            assert_close(&format!("step {t}"), &got, &expected, 0.0, ROUNDING);
            played.extend(values);
        }
        assert!(policy.played().is_none());
    }
}

#[test]
fn what_cannot_be_played_is_named() {
    let model = &models()[0];
    let protocol = Play::matched(Simulation::default());
    let normalization = Normalization::identity(4 * 84 * 84);
    let agent = Model::Transformer(model.clone());
    let error = ModelPolicy::new(&agent, None, Some(&normalization), &protocol).err().unwrap();
    sentences::check(&error.to_string());
    let start = EpisodeStart { seed: 5, target_return: 3.0 };
    let turn = Turn { agent: 0, reward: 0.0, start: Some(start) };
    let stack = vec![9u8; 4 * 84 * 84];
    let refused = |turns: &[Turn], observations: Observations<'_>| {
        let mut policy = policy_of(model, &protocol);
        let error = policy.act(turns, observations).unwrap_err().to_string();
        // The failed call did not change the agent: it still needs an episode start.
        let later = Turn { start: None, ..turn };
        assert!(policy.act(&[later], Observations::Pixels(&stack)).is_err());
        error
    };
    let error = refused(&[turn], Observations::Vectors(&[0.0; 4]));
    let expected = "expected 1 stacks of 4 frames of 84 × 84 pixels";
    assert_eq!(error, format!("observations: got vectors, {expected}"));
    let error = refused(&[turn], Observations::Pixels(&stack[1..]));
    assert_eq!(error, format!("observations: got 28223 pixels, {expected}"));
    let error = refused(&[turn, turn], Observations::Pixels(&[&stack[..], &stack[..]].concat()));
    sentences::check(&error);
    for number in [f32::NAN, f32::INFINITY] {
        let start = Some(EpisodeStart { target_return: number, ..start });
        let error = refused(&[Turn { start, ..turn }], Observations::Pixels(&stack));
        assert!(error.contains(&format!("got {number} for agent 0")), "{error}");
    }
    let mut policy = policy_of(model, &protocol);
    policy.act(&[turn], Observations::Pixels(&stack)).unwrap();
    let unpaid = Turn { reward: f32::NAN, start: None, ..turn };
    let error = policy.act(&[unpaid], Observations::Pixels(&stack)).unwrap_err().to_string();
    sentences::check(&error);
}

/// The released evaluation uses the current timestep, training the context's first.
#[test]
fn the_global_timestep_is_the_configured_one() {
    let episode = Episode::random(3);
    for model in models().into_iter().map(with_global_table) {
        for (global_timestep, timestep) in
            [(GlobalTimestep::WindowFirst, 0), (GlobalTimestep::Current, 2)]
        {
            let (got, actions) = third_step(&model, &episode, global_timestep);
            let known = Episode { actions, ..episode.clone() };
            let contexts = Contexts { timesteps: vec![timestep; 3], ..known.context(0, 3, 0, 0) };
            assert_close("probs", &got, &probs(&model, &contexts), 0.0, ROUNDING);
        }
    }
}

/// An average return depends on each step's own timestep, with any table of positions.
///
/// In an episode of 10 steps, 20 at step 0, a rest of 19 at step 1 and of 18 at step 2 are averages
/// of 20, 21.1 and 22.5 per episode.
#[test]
fn the_global_timestep_does_not_change_average_returns() {
    let episode = Episode::random(3);
    let plain = with_global_table(models().swap_remove(0));
    let mut model = plain.clone();
    model.config.conditioning = Some(ConditionerConfig {
        return_range: Some([0.0, 30.0]),
        average_return: Some(AverageReturn { horizon: 10 }),
        ..ConditionerConfig::default()
    });
    let (got, actions) = third_step(&model, &episode, GlobalTimestep::Current);
    let probs_of = |averages: [f32; 3]| {
        let returns_to_go = averages.map(|average| average / 15.0 - 1.0).to_vec();
        let known = Episode { actions: actions.clone(), returns_to_go, ..episode.clone() };
        probs(&plain, &Contexts { timesteps: vec![2; 3], ..known.context(0, 3, 0, 0) })
    };
    let expected = probs_of([20.0, 190.0 / 9.0, 180.0 / 8.0]);
    assert_close("probs", &got, &expected, 0.0, ROUNDING);
    // As if all three were at step 2.
    let others = probs_of([200.0 / 8.0, 190.0 / 8.0, 180.0 / 8.0]);
    let (largest, _) = largest_difference(&expected, &others).unwrap();
    assert!(largest > 10.0 * ROUNDING, "{largest}: averages have no effect");
}

/// The global position table starts at zero, which would hide its effect.
fn with_global_table(mut model: DecisionTransformer) -> DecisionTransformer {
    let Positions::LocalAndGlobal(positions) = &mut model.positions else { panic!() };
    let table = positions.global.take().unwrap().map(|table| {
        let rows = Tensor::arange(0..table.dims()[0] as i64, &Device::flex()).float();
        table + rows.unsqueeze_dim::<2>(1).sin()
    });
    positions.global = Some(table);
    model
}

/// The distribution of the third action of `episode` with a reward of 1 per step, and all three
/// actions.
fn third_step(
    model: &DecisionTransformer,
    episode: &Episode,
    global_timestep: GlobalTimestep,
) -> (Vec<f64>, Vec<i32>) {
    let protocol = Play { global_timestep, ..Play::matched(Simulation::default()) };
    let mut policy = policy_of(model, &protocol);
    let start = EpisodeStart { seed: 5, target_return: episode.returns_to_go[0] };
    let mut actions = Vec::new();
    for t in 0..3 {
        let turn = Turn { agent: 0, reward: 1.0, start: (t == 0).then_some(start) };
        let acted = policy.act(&[turn], Observations::Pixels(&episode.stack(t))).unwrap();
        let Actions::Discrete(ids) = acted else { panic!("{acted:?}") };
        actions.extend(ids.into_iter().map(|id| id as i32));
    }
    (policy.played().unwrap().probs.to_vec(), actions)
}

/// The distribution of the newest action of a context, in compass order.
fn probs(model: &DecisionTransformer, contexts: &Contexts) -> Vec<f64> {
    let logits = Model::Transformer(model.clone()).decide(contexts).actions().unwrap();
    let probs = logits.probs(0, 1.0);
    ActionOrder::atari().action_of().into_iter().map(|action| probs[action]).collect()
}
