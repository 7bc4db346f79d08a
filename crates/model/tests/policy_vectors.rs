//! Acting on vectors: a policy takes the model's actions for histories written by hand, and nothing
//! else changes them.

#![allow(clippy::unwrap_used, reason = "a test's helpers may")]

use burn::{
    module::Module,
    tensor::{DType, Device, TensorData},
};
use overtone_core::{
    ActingMode, ActionSpace, Actions, Normalization, ObservationSpace, Observations, Play, Policy,
    Simulation, Turn, policy::EpisodeStart, protocol::ActionChoice, seed,
};
use overtone_model::{
    ConditionerConfig, ContextShape, Contexts, DecisionTransformer, DecisionTransformerConfig,
    HeadConfig, History, Init, Model, ModelConfig, ModelError, ModelPolicy, PerceptronConfig,
    PreviousActions, ReturnModel, ReturnModelConfig,
    head::{
        BinnedConfig, BinsHeadConfig, Decisions, FourierHeadConfig, FourierLikelihoodConfig,
        GaussianConfig, GmmLikelihoodConfig, LinearConfig, TanhConfig,
    },
    weights,
};
use overtone_testkit::assert_close;
use overtone_testkit::sentences;
use rand::RngExt;

const CONTEXT: usize = 3;
const OBSERVATION_WIDTH: usize = 4;
const ACTION_WIDTH: usize = 2;
const SCALE: f32 = 50.0;
/// Tolerance between an agent alone and in a batch. No difference was seen, but another machine may
/// group the sums of a batch's matrix products differently.
const ROUNDING: f64 = 1e-5;

fn heads() -> [HeadConfig; 7] {
    let binned = BinsHeadConfig::Fourier(FourierHeadConfig::new(4));
    [
        HeadConfig::Tanh(TanhConfig {}),
        HeadConfig::Gaussian(GaussianConfig {}),
        HeadConfig::FourierLikelihood(FourierLikelihoodConfig::new(4)),
        HeadConfig::GmmLikelihood(GmmLikelihoodConfig { components: 2, ..Default::default() }),
        HeadConfig::Binned(BinnedConfig { bins: 12, head: binned }),
        HeadConfig::Linear(LinearConfig {}),
        HeadConfig::Fourier(FourierHeadConfig::new(3)),
    ]
}

/// The action space of a head.
fn actions(head: &HeadConfig) -> ActionSpace {
    [ActionSpace::unit(ACTION_WIDTH), ActionSpace::numbered(5)]
        .into_iter()
        .find(|actions| head.validate(actions).is_ok())
        .unwrap()
}

/// Every model with every head.
fn models() -> Vec<Model> {
    let gym = DecisionTransformerConfig::gym(6);
    let perceptron = PerceptronConfig::gym();
    let configs = heads().into_iter().flat_map(|head| {
        let transformer = DecisionTransformerConfig {
            d_model: 16,
            context_length: CONTEXT,
            head: head.clone(),
            ..gym.clone()
        };
        let perceptron =
            PerceptronConfig { width: 16, context_length: CONTEXT, head, ..perceptron.clone() };
        let conditioning = PerceptronConfig::rvs(9).conditioning;
        let rvs = PerceptronConfig { conditioning, ..perceptron.clone() };
        let perceptrons = [perceptron, rvs].map(ModelConfig::Perceptron);
        std::iter::once(ModelConfig::Transformer(transformer)).chain(perceptrons)
    });
    let mut generator = seed::generator(2, "init");
    let init = &mut Init::drawn(&Device::flex(), &mut generator);
    let observations = ObservationSpace::Vectors { width: OBSERVATION_WIDTH };
    let model = |config: ModelConfig| {
        let actions = actions(config.head());
        Model::init(&config, &observations, &actions, init).unwrap()
    };
    configs.map(model).collect()
}

fn normalization() -> Normalization {
    Normalization { mean: vec![1.0, -2.0, 0.0, 5.0], std: vec![2.0, 0.5, 1.0, 4.0] }
}

fn protocol(action_choice: ActionChoice, delayed_reward: bool) -> Play {
    Play {
        action_choice,
        return_scale: SCALE,
        delayed_reward,
        ..Play::matched(Simulation::default())
    }
}

/// An episode from its environment, independent of the actions.
#[derive(Clone)]
struct Episode {
    start: EpisodeStart,
    observations: Vec<f32>,
    /// The reward that comes with each observation; the first has none.
    rewards: Vec<f32>,
}

impl Episode {
    fn random(seed: u64, length: usize) -> Self {
        let mut generator = seed::generator(seed, "episode");
        let mut random = |n: usize, size: f32| -> Vec<f32> {
            (0..n).map(|_| size * generator.random_range(-1.0..1.0)).collect()
        };
        Self {
            start: EpisodeStart { seed, target_return: 40.0 + 10.0 * seed as f32 },
            observations: random(length * OBSERVATION_WIDTH, 5.0),
            rewards: random(length, 20.0),
        }
    }

    fn length(&self) -> usize {
        self.rewards.len()
    }

    fn observation(&self, t: usize) -> &[f32] {
        &self.observations[t * OBSERVATION_WIDTH..(t + 1) * OBSERVATION_WIDTH]
    }

    fn turn(&self, agent: usize, t: usize) -> Turn {
        Turn { agent, reward: self.rewards[t], start: (t == 0).then_some(self.start) }
    }
}

/// Continuous actions, or ids as numbers.
fn act(policy: &mut ModelPolicy, turns: &[Turn], observations: &[f32]) -> Vec<f32> {
    match policy.act(turns, Observations::Vectors(observations)).unwrap() {
        Actions::Continuous { width: ACTION_WIDTH, values } => values,
        Actions::Discrete(ids) => ids.into_iter().map(|id| id as f32).collect(),
        other => panic!("{other:?}"),
    }
}

/// Number of values that [`act`] returns per action.
fn width(model: &Model) -> usize {
    match model.spaces().1 {
        ActionSpace::Discrete { .. } => 1,
        space @ ActionSpace::Continuous { .. } => space.size(),
    }
}

fn decide(model: &Model, history: History<'_>) -> Decisions {
    let (observations, actions) = model.spaces();
    let shape = ContextShape { context_length: CONTEXT, observations, actions };
    let place = (&Device::flex(), DType::F32);
    let contexts = Contexts::of_histories(&[history], shape, None, place);
    model.decide(&match model.config().conditioning() {
        Some(conditioning) => conditioning.condition(contexts),
        None => contexts,
    })
}

/// Acts in an episode as the only agent; `[length, width]`.
fn play_alone(policy: &mut ModelPolicy, episode: &Episode) -> Vec<f32> {
    (0..episode.length())
        .flat_map(|t| act(policy, &[episode.turn(0, t)], episode.observation(t)))
        .collect()
}

#[test]
fn actions_are_the_model_s_for_histories_written_by_hand() {
    let episode = Episode::random(1, 8);
    // (o - mean) / (std + 1e-6), dimension by dimension.
    let [mean, std] = [[1.0f32, -2.0, 0.0, 5.0], [2.0, 0.5, 1.0, 4.0]];
    let observations: Vec<f32> = (0..)
        .zip(&episode.observations)
        .map(|(i, x)| (x - mean[i % OBSERVATION_WIDTH]) / (std[i % OBSERVATION_WIDTH] + 1e-6))
        .collect();
    for delayed in [false, true] {
        // A target of 50, in units of 50, minus the rewards so far.
        let mut returns_to_go = vec![1.0f32];
        for reward in &episode.rewards[1..] {
            let paid = if delayed { 0.0 } else { reward / 50.0 };
            returns_to_go.push(returns_to_go[returns_to_go.len() - 1] - paid);
        }
        for choice in [ActionChoice::Mode, ActionChoice::Sample] {
            for model in models() {
                let protocol = protocol(choice, delayed);
                let mut policy =
                    ModelPolicy::new(&model, None, Some(&normalization()), &protocol).unwrap();
                let width = width(&model);
                let played = play_alone(&mut policy, &episode);
                let mut generator = seed::generator(episode.start.seed, "policy");
                for t in 0..episode.length() {
                    let ids: Vec<i32> = played.iter().map(|&id| id as i32).collect();
                    let history = History {
                        observations: &observations[..(t + 1) * OBSERVATION_WIDTH],
                        actions: match model.spaces().1 {
                            ActionSpace::Discrete { .. } => PreviousActions::Discrete(&ids[..t]),
                            ActionSpace::Continuous { .. } => {
                                PreviousActions::Continuous(&played[..t * width])
                            }
                        },
                        returns_to_go: &returns_to_go[..=t],
                        timestep: t,
                    };
                    let expected = match (decide(&model, history), choice) {
                        (Decisions::Numbers(numbers), ActionChoice::Mode) => numbers.mode(0),
                        (Decisions::Numbers(numbers), ActionChoice::Sample) => {
                            numbers.draw(0, 1.0, &mut generator)
                        }
                        (Decisions::Actions(logits), ActionChoice::Mode) => {
                            vec![logits.mode(0) as f64]
                        }
                        (Decisions::Actions(logits), ActionChoice::Sample) => {
                            vec![logits.draw(0, 1.0, &mut generator) as f64]
                        }
                    };
                    let expected: Vec<f32> = expected.iter().map(|&x| x as f32).collect();
                    let at = t * width..(t + 1) * width;
                    assert_eq!(played[at], expected, "{choice:?}, step {t}: {model:?}");
                }
            }
        }
    }
}

/// An action that replaced the policy's own is in its history, as in a replayed recording. The
/// policy's own action in its place changes nothing.
#[test]
fn actions_that_were_taken_are_in_the_history() {
    let (episode, mode) = (Episode::random(1, 8), protocol(ActionChoice::Mode, true));
    for model in models() {
        let width = width(&model);
        let new = || ModelPolicy::new(&model, None, None, &mode).unwrap();
        let actions = |values: &[f32]| match model.spaces().1 {
            ActionSpace::Discrete { .. } => Actions::Discrete(vec![values[0] as usize]),
            ActionSpace::Continuous { .. } => {
                Actions::Continuous { width, values: values.to_vec() }
            }
        };
        let recorded: Vec<f32> = (0..episode.length() * width)
            .map(|i| if width == 1 { (i * 3 % 5) as f32 } else { (i as f32).sin() })
            .collect();
        let ids: Vec<i32> = recorded.iter().map(|&id| id as i32).collect();
        let [mut replaying, mut confirming, mut alone] = [new(), new(), new()];
        for t in 0..episode.length() {
            let (turns, observation) = ([episode.turn(0, t)], episode.observation(t));
            let action = act(&mut confirming, &turns, observation);
            assert_eq!(action, act(&mut alone, &turns, observation));
            confirming.took(&turns, &actions(&action)).unwrap();

            let proposed = act(&mut replaying, &turns, observation);
            replaying.took(&turns, &actions(&recorded[t * width..(t + 1) * width])).unwrap();
            let history = History {
                observations: &episode.observations[..(t + 1) * OBSERVATION_WIDTH],
                actions: match model.spaces().1 {
                    ActionSpace::Discrete { .. } => PreviousActions::Discrete(&ids[..t]),
                    ActionSpace::Continuous { .. } => {
                        PreviousActions::Continuous(&recorded[..t * width])
                    }
                },
                returns_to_go: &vec![episode.start.target_return / SCALE; t + 1],
                timestep: t,
            };
            let expected = match decide(&model, history) {
                Decisions::Numbers(numbers) => numbers.mode(0),
                Decisions::Actions(logits) => vec![logits.mode(0) as f64],
            };
            let expected: Vec<f32> = expected.iter().map(|&x| x as f32).collect();
            assert_eq!(proposed, expected, "step {t}: {model:?}");
        }
        let stranger = Turn { agent: 3, ..episode.turn(0, 1) };
        let error = new().took(&[stranger], &actions(&recorded[..width])).unwrap_err();
        assert!(error.to_string().contains("agent 3"), "{error}");
        let turns = [episode.turn(0, 0)];
        let wrong = [Actions::Discrete(vec![99]), Actions::Continuous { width: 3, values: vec![] }];
        for wrong in wrong {
            assert!(alone.took(&turns, &wrong).is_err(), "{model:?}");
        }
    }
}

/// Episodes of different lengths, started at different times, in changing order.
#[test]
fn an_agent_acts_the_same_in_any_batch() {
    let episodes = [(1, 9), (2, 4), (3, 6)].map(|(seed, length)| Episode::random(seed, length));
    let begins = [0, 2, 3];
    for choice in [ActionChoice::Mode, ActionChoice::Sample] {
        for model in models() {
            let new = || {
                ModelPolicy::new(&model, None, Some(&normalization()), &protocol(choice, false))
                    .unwrap()
            };
            let mut together = new();
            let mut played = vec![Vec::new(); episodes.len()];
            for now in 0..9 {
                let mut acting: Vec<usize> = (0..episodes.len())
                    .filter(|&agent| {
                        (begins[agent]..begins[agent] + episodes[agent].length()).contains(&now)
                    })
                    .collect();
                let n_acting = acting.len();
                acting.rotate_left(now % n_acting);
                let steps = acting.iter().map(|&agent| (agent, now - begins[agent]));
                let turns: Vec<Turn> =
                    steps.clone().map(|(agent, t)| episodes[agent].turn(agent, t)).collect();
                let observations: Vec<f32> =
                    steps.flat_map(|(agent, t)| episodes[agent].observation(t).to_vec()).collect();
                let actions = act(&mut together, &turns, &observations);
                for (agent, action) in acting.iter().zip(actions.chunks_exact(width(&model))) {
                    played[*agent].extend(action.iter().map(|&x| f64::from(x)));
                }
            }
            // One policy runs all episodes in turn: a new episode starts with an empty history.
            let mut alone = new();
            for (episode, played) in episodes.iter().zip(played) {
                let expected: Vec<f64> =
                    play_alone(&mut alone, episode).into_iter().map(f64::from).collect();
                assert_close("played together", &played, &expected, 0.0, ROUNDING);
            }
        }
    }
}

/// `model` with larger weights for observations: the largest overflow inside it.
fn sensitive(model: Model) -> Model {
    let mut tensors = weights::export(&model);
    let of_observations = |name: &str| name.contains("encoder.") || name.contains("layers.0.");
    let mut n_scaled = 0;
    for (_, data) in tensors.iter_mut().filter(|(name, _)| of_observations(name)) {
        let scaled: Vec<f32> = data.iter::<f32>().map(|weight| 50.0 * weight).collect();
        *data = TensorData::new(scaled, data.shape().to_vec());
        n_scaled += 1;
    }
    assert!(n_scaled > 0);
    weights::import(model, &tensors).unwrap()
}

/// The actions of two agents and, for discrete actions, their distributions. Before each step,
/// `interfere` may make calls that fail.
fn played_by_two(
    policy: &mut ModelPolicy,
    episodes: &[Episode; 2],
    mut interfere: impl FnMut(&mut ModelPolicy, [Turn; 2], &[f32]),
) -> Vec<f64> {
    let mut played = Vec::new();
    for t in 0..episodes[0].length() {
        let turns = [episodes[0].turn(0, t), episodes[1].turn(1, t)];
        let observations = [episodes[0].observation(t), episodes[1].observation(t)].concat();
        interfere(policy, turns, &observations);
        played.extend(act(policy, &turns, &observations).iter().map(|&x| f64::from(x)));
        played.extend(policy.played().iter().flat_map(|played| played.probs));
    }
    played
}

/// After calls that fail, two agents act to the bit as agents without these calls: while the window
/// fills, when it is full, at a start, and if one of two rows fails.
#[test]
fn a_failed_call_changes_nothing() {
    let episodes = [1, 2].map(|seed| Episode::random(seed, 8));
    for choice in [ActionChoice::Mode, ActionChoice::Sample] {
        for model in models().into_iter().map(sensitive) {
            let protocol = protocol(choice, false);
            let new = || ModelPolicy::new(&model, None, Some(&normalization()), &protocol).unwrap();
            let expected = played_by_two(&mut new(), &episodes, |_, _, _| {});
            let width = width(&model);
            let played = played_by_two(&mut new(), &episodes, |policy, turns, observations| {
                // The second row overflows inside the model.
                let mut huge = observations.to_vec();
                huge[OBSERVATION_WIDTH..].copy_from_slice(&[3e38, -1e38, -3e38, 2e38]);
                let restart = EpisodeStart { seed: 9, target_return: 1.0 };
                let restarted = turns.map(|turn| Turn { start: Some(restart), ..turn });
                for turns in [turns, restarted] {
                    let error = policy.act(&turns, Observations::Vectors(&huge)).unwrap_err();
                    assert!(matches!(error.downcast_ref(), Some(ModelError::Input { .. })));
                }
                for wrong in [f32::NAN, 3e38] {
                    let actions = match model.spaces().1 {
                        ActionSpace::Discrete { .. } => Actions::Discrete(vec![1, 99]),
                        ActionSpace::Continuous { .. } => {
                            Actions::Continuous { width, values: vec![wrong; 2 * width] }
                        }
                    };
                    let error = policy.took(&turns, &actions).unwrap_err();
                    assert!(matches!(error.downcast_ref(), Some(ModelError::Input { .. })));
                }
            });
            assert_eq!(played, expected, "{choice:?}: {model:?}");
        }
    }
}

#[test]
fn a_return_to_go_that_overflows_is_refused() {
    let model = &models()[0];
    let play = Play { return_scale: 0.1, ..protocol(ActionChoice::Mode, false) };
    let mut policy = ModelPolicy::new(model, None, None, &play).unwrap();
    let episode = Episode::random(1, 2);
    act(&mut policy, &[episode.turn(0, 0)], episode.observation(0));
    let paid = Turn { reward: 3e38, ..episode.turn(0, 1) };
    let error = policy.act(&[paid], Observations::Vectors(episode.observation(1))).unwrap_err();
    let Some(ModelError::Input { what, .. }) = error.downcast_ref() else { panic!("{error}") };
    assert_eq!(*what, "return-to-go");
    act(&mut policy, &[episode.turn(0, 1)], episode.observation(1));
}

#[test]
fn the_future_changes_no_past_action() {
    let episode = Episode::random(4, 7);
    let mut other = episode.clone();
    let changed = 4;
    for x in &mut other.observations[changed * OBSERVATION_WIDTH..] {
        *x += 3.0;
    }
    other.rewards[changed..].fill(7.0);
    for model in models() {
        let protocol = protocol(ActionChoice::Mode, false);
        let [one, other] = [&episode, &other].map(|episode| {
            let mut policy =
                ModelPolicy::new(&model, None, Some(&normalization()), &protocol).unwrap();
            play_alone(&mut policy, episode)
        });
        let past = changed * width(&model);
        assert_eq!(one[..past], other[..past], "{model:?}");
        // With discrete actions, the same one may be the most probable.
        if width(&model) > 1 {
            assert_ne!(one[past..], other[past..], "the present has no effect: {model:?}");
        }
    }
}

#[test]
fn what_cannot_be_played_is_named() {
    let model = &models()[0];
    let mode = protocol(ActionChoice::Mode, false);
    let refused = |normalization: &Normalization, protocol: &Play| {
        let error = ModelPolicy::new(model, None, Some(normalization), protocol).err().unwrap();
        error.to_string()
    };
    let narrow = Normalization::identity(3);
    sentences::check(&refused(&narrow, &mode));
    let uneven = Normalization { std: vec![1.0; 5], ..normalization() };
    sentences::check(&refused(&uneven, &mode));
    for return_scale in [0.0, -1.0, f32::NAN] {
        let protocol = Play { return_scale, ..mode.clone() };
        sentences::check(&refused(&normalization(), &protocol));
        let acting = ActingMode { temperature: return_scale, ..mode.acting };
        let play = Play { acting, ..mode.clone() };
        let error = ModelPolicy::new(model, None, None, &play).err().unwrap().to_string();
        assert!(error.contains("temperature"), "{error}");
    }

    let episode = Episode::random(1, 2);
    let (first, second) = (episode.turn(0, 0), episode.turn(0, 1));
    let fresh = || ModelPolicy::new(model, None, Some(&normalization()), &mode).unwrap();
    let fails = |turns: &[Turn], observations: Observations<'_>| {
        let mut policy = fresh();
        let error = policy.act(turns, observations).unwrap_err().to_string();
        // The failed call did not change the agent: it still needs an episode start.
        assert!(policy.act(&[second], Observations::Vectors(&[0.0; 4])).is_err());
        error
    };
    let error = fails(&[first], Observations::Pixels(&[0; 4]));
    assert_eq!(error, "observations: got pixels, expected 1 vectors of 4 numbers");
    let error = fails(&[first], Observations::Vectors(&[0.0; 5]));
    assert_eq!(error, "observations: got 5 numbers, expected 1 vectors of 4 numbers");
    let error = fails(&[second], Observations::Vectors(&[0.0; 4]));
    sentences::check(&error);
    let error = fails(&[first, first], Observations::Vectors(&[0.0; 8]));
    sentences::check(&error);
    for number in [f32::NAN, f32::INFINITY] {
        let observation = [0.0, 0.0, number, 0.0];
        let error = fails(&[first], Observations::Vectors(&observation));
        assert!(error.contains(&format!("got {number} for agent 0")), "{error}");
    }
    let endless = EpisodeStart { target_return: f32::INFINITY, ..episode.start };
    let error = fails(&[Turn { start: Some(endless), ..first }], Observations::Vectors(&[0.0; 4]));
    sentences::check(&error);

    let none = fresh().act(&[], Observations::Vectors(&[])).unwrap();
    assert_eq!(none, Actions::Continuous { width: ACTION_WIDTH, values: Vec::new() });
}

/// A module with one parameter set to NaN.
fn broken<M: Module>(module: M, name: &str) -> M {
    let mut tensors = weights::export(&module);
    let data = tensors.get_mut(name).unwrap();
    let shape = data.shape().to_vec();
    *data = TensorData::new(vec![f32::NAN; shape.iter().product()], shape);
    weights::import(module, &tensors).unwrap()
}

#[track_caller]
fn check_reported(
    model: DecisionTransformer,
    returns: Option<&ReturnModel>,
    play: &Play,
    what: &str,
) {
    let model = Model::Transformer(model);
    for action_choice in [ActionChoice::Mode, ActionChoice::Sample] {
        let play = Play { action_choice, ..play.clone() };
        let normalization = normalization();
        let mut policy = ModelPolicy::new(&model, returns, Some(&normalization), &play).unwrap();
        let turn = Episode::random(1, 1).turn(0, 0);
        let acted = policy.act(&[turn], Observations::Vectors(&[0.0; OBSERVATION_WIDTH]));
        let error = acted.err().map(|error| error.to_string()).unwrap_or_default();
        let is_reported = error.contains(
            "got NaN, expected finite numbers. Check the observations, and the model's weights",
        );
        assert!(is_reported, "{what}, {action_choice:?}: {error:?}");
    }
}

fn transformer(
    config: DecisionTransformerConfig,
    actions: &ActionSpace,
) -> (DecisionTransformerConfig, DecisionTransformer) {
    let config =
        DecisionTransformerConfig { d_model: 16, context_length: CONTEXT, n_layers: 1, ..config };
    let observations = ObservationSpace::Vectors { width: OBSERVATION_WIDTH };
    let mut generator = seed::generator(2, "init");
    let init = &mut Init::drawn(&Device::flex(), &mut generator);
    let model = DecisionTransformer::init(&config, &observations, actions, init).unwrap();
    (config, model)
}

/// Every parameter of every head, and of the model of returns.
#[test]
fn broken_weights_are_reported() {
    let play = protocol(ActionChoice::Mode, false);
    let (list, numbers) = (ActionSpace::numbered(5), ActionSpace::unit(ACTION_WIDTH));
    let mut n_heads = 0;
    for (actions, bins) in [(&list, 0), (&numbers, 0), (&numbers, 12)] {
        for head in HeadConfig::choices(actions, bins).into_iter().map(|choice| choice.config) {
            let gym = DecisionTransformerConfig { head, ..DecisionTransformerConfig::gym(6) };
            let (config, model) = transformer(gym, actions);
            for name in weights::export(&model.head).keys() {
                let head = broken(model.head.clone(), name);
                let what = format!("{name} of {}", config.head.name());
                check_reported(DecisionTransformer { head, ..model.clone() }, None, &play, &what);
            }
            n_heads += 1;
        }
    }
    assert_eq!(n_heads, 3 + 5 + 3);

    let asking = Play { acting: ActingMode { return_quantile: 0.9, ..play.acting }, ..play };
    let returns = ReturnModelConfig { width: 8, ..ReturnModelConfig::hl_gauss() };
    let conditioning = ConditionerConfig {
        return_range: Some([0.0, 2.0]),
        return_model: Some(returns.clone()),
        ..ConditionerConfig::default()
    };
    let gym = DecisionTransformerConfig {
        conditioning: Some(conditioning),
        ..DecisionTransformerConfig::gym(6)
    };
    let (_, model) = transformer(gym, &numbers);
    let mut generator = seed::generator(2, "init");
    let init = &mut Init::drawn(&Device::flex(), &mut generator);
    let observations = ObservationSpace::Vectors { width: OBSERVATION_WIDTH };
    let return_model = ReturnModel::init(&returns, &observations, init).unwrap();
    for name in weights::export(&return_model).keys() {
        let broken = broken(return_model.clone(), name);
        let what = format!("{name} of returns");
        check_reported(model.clone(), Some(&broken), &asking, &what);
    }
}

/// With a target of 50 and rewards 0.75, 2 and 0.5: 49.25 is truncated to 49, 47 stays, and 46.5 is
/// truncated to 46.
#[test]
fn returns_are_cut_to_integers_before_they_are_scaled() {
    let rewards = vec![0.0, 0.75, 2.0, 0.5];
    let episode = Episode { rewards, ..Episode::random(1, 4) };
    assert_eq!(episode.start.target_return, 50.0);
    for return_scale in [1.0, 50.0, 1000.0] {
        let returns_to_go = [50.0f32, 49.0, 47.0, 46.0].map(|left| left / return_scale);
        let mode = protocol(ActionChoice::Mode, false);
        let play = Play { return_scale, integer_returns: true, ..mode };
        for model in models() {
            let mut policy = ModelPolicy::new(&model, None, None, &play).unwrap();
            let (played, width) = (play_alone(&mut policy, &episode), width(&model));
            let ids: Vec<i32> = played.iter().map(|&id| id as i32).collect();
            for t in 0..episode.length() {
                let history = History {
                    observations: &episode.observations[..(t + 1) * OBSERVATION_WIDTH],
                    actions: match model.spaces().1 {
                        ActionSpace::Discrete { .. } => PreviousActions::Discrete(&ids[..t]),
                        ActionSpace::Continuous { .. } => {
                            PreviousActions::Continuous(&played[..t * width])
                        }
                    },
                    returns_to_go: &returns_to_go[..=t],
                    timestep: t,
                };
                let expected = match decide(&model, history) {
                    Decisions::Numbers(numbers) => numbers.mode(0),
                    Decisions::Actions(logits) => vec![logits.mode(0) as f64],
                };
                let expected: Vec<f32> = expected.iter().map(|&x| x as f32).collect();
                let at = t * width..(t + 1) * width;
                assert_eq!(played[at], expected, "scale {return_scale}, step {t}: {model:?}");
            }
        }
    }
}
