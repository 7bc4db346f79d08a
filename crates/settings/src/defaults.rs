//! [`defaults()`]: the default numbers of a run that are not defaults of a type, with reasons.

use overtone_agents::{
    AlgorithmConfig, AlgorithmKind, DiscreteCqlConfig, IqlConfig, IqlOptions, RebracConfig,
    Td3BcConfig,
};
use overtone_core::{ActionSpace, ObservationSpace, Targets, Task, protocol::ReturnUnits};
use overtone_data::{Fragment, TableColumns};
use overtone_model::{
    AttentionConfig,
    head::{BinnedConfig, BinsHeadConfig, Domain, HeadConfig, OrderConfig},
};
use overtone_train::{
    AdamWConfig, Decayed, TrainConfig,
    config::{Precision, Sampling, ScheduleKind},
};

use crate::{
    agent::AgentConfig,
    auto_or::AutoOr,
    chosen::Choosable,
    error::ConfigError,
    head::HeadKeys,
    positive::{Percents, Positive, Shares},
    run_config::{DataConfig, EvaluationConfig, Profile, Resume, RunConfig, SelectionKind},
    sequence::{
        ClonedModel, DecisionTransformerModel, PerceptronModel, ReturnHead, ReturnUnit, RvsModel,
        SequenceConfig, Time, TransformerModel,
    },
    suites,
};

/// The words that choose among variants. Other words are set on the variant's defaults.
#[derive(Clone, Copy, Debug)]
pub struct Choices<'a> {
    /// The algorithm.
    pub algorithm: AlgorithmKind,
    /// The length of the run; `Auto` stands for `Quick`.
    pub profile: Profile,
    /// The value of `model.kind=`.
    pub kind: Option<&'a str>,
    /// The value of `head=`.
    pub head: Option<&'a str>,
    /// The value of `head.bins=`.
    pub bins: usize,
    /// The value of `attention=`.
    pub attention: Option<&'a str>,
}

impl Choices<'_> {
    /// An algorithm in a profile, with its usual parts.
    pub fn usual(algorithm: AlgorithmKind, profile: Profile) -> Self {
        Self { algorithm, profile, kind: None, head: None, bins: 0, attention: None }
    }
}

/// The default configuration of a run on `task`.
///
/// # Errors
/// When a chosen word does not name a variant.
pub fn defaults(task: &Task, choices: &Choices<'_>) -> Result<RunConfig, ConfigError> {
    let is_paper = choices.profile == Profile::Paper;
    let agent = agent(task, choices)?;
    Ok(RunConfig {
        task: task.id(),
        // A starter set in which the target return has an effect; dataset=medium is D4RL's.
        dataset: match task.observations {
            ObservationSpace::Vectors { .. } if !has_own_returns(task) => "switching".into(),
            _ => String::new(),
        },
        train: train(task, &agent, is_paper),
        data: data(task, &agent, is_paper),
        evaluation: evaluation(task, is_paper),
        agent,
        profile: choices.profile,
        seed: 123,
        device: "auto".into(),
        runs: "runs".into(),
        init: String::new(),
        resume: Resume::Auto,
    })
}

fn is_pixels(task: &Task) -> bool {
    matches!(task.observations, ObservationSpace::Pixels { .. })
}

fn is_discrete(task: &Task) -> bool {
    matches!(task.actions, ActionSpace::Discrete { .. })
}

/// Whether no reference defines the scale of the task's returns.
fn has_own_returns(task: &Task) -> bool {
    task.return_units == ReturnUnits::Raw && task.targets == Targets::default()
}

fn data(task: &Task, agent: &AgentConfig, is_paper: bool) -> DataConfig {
    DataConfig {
        path: "".into(),
        run: "1".into(),
        selection: match is_pixels(task) && is_paper {
            true => SelectionKind::Released,
            false => SelectionKind::Uniform,
        },
        transitions: 500_000,
        cache: "".into(),
        layout: String::new(),
        columns: TableColumns::default(),
        fragment: Fragment::Drop,
        shares: Shares::default(),
        top_percent: 100.0,
        delayed_reward: false,
        return_scale: match task.observations {
            // The environment's rewards: the penalties are tuned for them.
            _ if agent.sequence().is_none() => 1.0,
            _ if has_own_returns(task) => 0.0,
            ObservationSpace::Vectors { .. } => 1000.0,
            ObservationSpace::Pixels { .. } => 1.0,
        },
    }
}

fn evaluation(task: &Task, is_paper: bool) -> EvaluationConfig {
    let has_environments = suites::of(task).is_ok_and(|suite| suite.has_environments());
    EvaluationConfig {
        episodes: match is_pixels(task) {
            _ if !has_environments => 0,
            _ if is_paper => 100,
            true => 10,
            false => 20,
        },
        target: match is_pixels(task) {
            false if is_paper => "reference".into(),
            _ => String::new(),
        },
        // No temperature changes continuous actions.
        temperature: match is_paper || !is_discrete(task) {
            true => Choosable::Fixed(1.0),
            false => Choosable::Chosen,
        },
        every: AutoOr::Auto,
        every_episodes: 5,
        ..EvaluationConfig::one_episode()
    }
}

fn agent(task: &Task, choices: &Choices<'_>) -> Result<AgentConfig, ConfigError> {
    let is_paper = choices.profile == Profile::Paper;
    Ok(AgentConfig::Values(match choices.algorithm {
        AlgorithmKind::DecisionTransformer
        | AlgorithmKind::BehaviorCloning
        | AlgorithmKind::Rvs => {
            return sequence(task, choices).map(AgentConfig::Sequence);
        }
        AlgorithmKind::DiscreteCql => AlgorithmConfig::DiscreteCql(match is_pixels(task) {
            false => DiscreteCqlConfig::default(),
            // The paper sums the losses of 200 quantiles, next to which the conservative term
            // has little effect for many thousand updates. 130 steps make 20 copies into the
            // target in 2,600 updates.
            true if !is_paper => {
                DiscreteCqlConfig { target_every: 130, ..DiscreteCqlConfig::default() }
            }
            true => DiscreteCqlConfig {
                quantiles: 200,
                target_every: 2000,
                ..DiscreteCqlConfig::default()
            },
        }),
        AlgorithmKind::Td3Bc => AlgorithmConfig::Td3Bc(Td3BcConfig::default()),
        AlgorithmKind::Iql => AlgorithmConfig::Iql(IqlOptions {
            config: match is_paper {
                // Tuned for a million steps.
                true => IqlConfig { beta: 3.0, chunk_size: 1, ..IqlConfig::default() },
                false => IqlConfig::default(),
            },
            head: is_discrete(task).then(|| head(task, choices)).transpose()?.map(|head| head.0),
        }),
        AlgorithmKind::Rebrac => AlgorithmConfig::Rebrac(match is_paper {
            // The paper's settings, except its penalties, which differ from dataset to dataset.
            true => RebracConfig {
                actor_penalty: 0.01,
                n_steps: 1,
                target_rate: 0.005,
                normalize: false,
                ..RebracConfig::default()
            },
            false => RebracConfig::default(),
        }),
    }))
}

fn sequence(task: &Task, choices: &Choices<'_>) -> Result<SequenceConfig, ConfigError> {
    let is_paper = choices.profile == Profile::Paper;
    // These help a short run on vectors (docs/results/conditioning.md).
    let has_rates = !is_pixels(task) && !is_paper;
    let head = head(task, choices)?;
    Ok(match (choices.algorithm, choices.kind.unwrap_or("transformer")) {
        (AlgorithmKind::Rvs, _) => SequenceConfig::Rvs { model: rvs(is_paper), head },
        (AlgorithmKind::BehaviorCloning, "transformer") => SequenceConfig::BehaviorCloning {
            model: ClonedModel::Transformer(transformer(task, is_paper)),
            attention: Some(attention(choices)?),
            head,
        },
        (AlgorithmKind::BehaviorCloning, "perceptron") => SequenceConfig::BehaviorCloning {
            model: ClonedModel::Perceptron(cloning_perceptron(task, is_paper)),
            attention: None,
            head,
        },
        (AlgorithmKind::BehaviorCloning, other) => {
            let reason = "expected `transformer` or `perceptron`";
            return Err(ConfigError::value("model.kind", other, reason));
        }
        _ => SequenceConfig::DecisionTransformer {
            model: DecisionTransformerModel {
                transformer: transformer(task, is_paper),
                return_unit: if has_rates { ReturnUnit::Rate } else { ReturnUnit::Scale },
                return_head: if has_rates { ReturnHead::HlGauss } else { ReturnHead::None },
                top_percents: top_percents(has_rates),
            },
            attention: attention(choices)?,
            head,
        },
    })
}

fn transformer(task: &Task, is_paper: bool) -> TransformerModel {
    let frames = TransformerModel {
        context_length: 30,
        n_layers: 6,
        n_heads: 8,
        d_model: 128,
        time: Time::Episode,
        timestep_std: 0.02,
        dropout: 0.1,
    };
    let gym = TransformerModel { context_length: 20, n_layers: 3, n_heads: 1, ..frames.clone() };
    match task.observations {
        ObservationSpace::Pixels { .. } => frames,
        // PyTorch's default for an embedding.
        ObservationSpace::Vectors { .. } if is_paper => {
            TransformerModel { timestep_std: 1.0, ..gym }
        }
        // Context, dropout and time help a short run (docs/results/short-runs.md).
        ObservationSpace::Vectors { .. } => TransformerModel {
            context_length: 5,
            d_model: 128,
            time: Time::Context,
            dropout: 0.0,
            ..gym
        },
    }
}

fn cloning_perceptron(task: &Task, is_paper: bool) -> PerceptronModel {
    let TransformerModel { context_length, n_layers, d_model, dropout, .. } =
        transformer(task, true);
    match is_paper {
        // The reference's.
        true => PerceptronModel { context_length, n_layers, d_model, dropout },
        // Half a minute on 2 cores.
        false => PerceptronModel { context_length: 1, n_layers, d_model: 256, dropout: 0.0 },
    }
}

fn rvs(is_paper: bool) -> RvsModel {
    // The quick profile has the size of the cloning perceptron, on the newest observation
    // (docs/results/d4rl-like.md). The paper's is larger.
    let (n_layers, d_model) = if is_paper { (2, 1024) } else { (3, 256) };
    RvsModel {
        perceptron: PerceptronModel { context_length: 1, n_layers, d_model, dropout: 0.0 },
        top_percents: top_percents(!is_paper),
    }
}

fn top_percents(has_some: bool) -> Percents {
    Positive(if has_some { vec![10.0, 50.0, 100.0] } else { Vec::new() })
}

fn attention(choices: &Choices<'_>) -> Result<AttentionConfig, ConfigError> {
    let word = choices.attention.unwrap_or("softmax");
    let known = AttentionConfig::choices();
    let words: Vec<&str> = known.iter().map(|choice| choice.word).collect();
    let reason = format!("expected one of `{}`", words.join("`, `"));
    let mut known = known.into_iter();
    let found = known.find(|choice| choice.word == word);
    found.map(|choice| choice.config).ok_or_else(|| ConfigError::value("attention", word, reason))
}

fn head(task: &Task, choices: &Choices<'_>) -> Result<HeadKeys, ConfigError> {
    let (is_discrete, bins) = (is_discrete(task), choices.bins);
    // The references'.
    let word = choices.head.unwrap_or(if is_discrete { "linear" } else { "tanh" });
    let known = HeadConfig::choices(&task.actions, if is_discrete { 0 } else { bins });
    let words: Vec<&str> = known.iter().map(|choice| choice.word).collect();
    let actions = match bins {
        _ if is_discrete => "for this task's discrete actions,",
        0 => "without bins (set head.bins=50 for some),",
        _ => "with bins (set head.bins=0 for none),",
    };
    let reason = format!("{actions} expected one of `{}`", words.join("`, `"));
    let Some(choice) = known.into_iter().find(|choice| choice.word == word) else {
        return Err(ConfigError::value("head", word, reason));
    };
    let mut head = choice.config;
    if is_pixels(task) {
        // Neighbours on the compass mean similar things, and Atari's actions have names.
        match &mut head {
            HeadConfig::Fourier(head)
            | HeadConfig::Binned(BinnedConfig { head: BinsHeadConfig::Fourier(head), .. }) => {
                head.action_order = OrderConfig::Compass;
            }
            HeadConfig::Gmm(head)
            | HeadConfig::Binned(BinnedConfig { head: BinsHeadConfig::Gmm(head), .. }) => {
                head.action_order = OrderConfig::Compass;
            }
            _ => {}
        }
    }
    if !is_discrete {
        // The largest and the smallest action are not neighbours.
        match &mut head {
            HeadConfig::Binned(BinnedConfig { head: BinsHeadConfig::Fourier(head), .. }) => {
                head.domain = Domain::HalfRange;
            }
            HeadConfig::FourierLikelihood(head) => head.domain = Domain::HalfRange,
            _ => {}
        }
    }
    Ok(HeadKeys(head))
}

fn train(task: &Task, agent: &AgentConfig, is_paper: bool) -> TrainConfig {
    let sequence = sequence_training(task, is_paper);
    let adam = AdamWConfig {
        beta_1: 0.9,
        beta_2: 0.999,
        epsilon: 1e-8,
        weight_decay: 0.0,
        // No clipping in effect, as in the papers.
        clip_norm: 1e9,
        ..sequence.optimizer
    };
    // Actor and critics on continuous actions, as in the papers.
    let values = TrainConfig {
        batch_size: 256,
        learning_rate: 3e-4,
        schedule: ScheduleKind::Constant,
        warmup_updates: 0,
        sampling: Sampling::Uniform,
        log_every: 200,
        checkpoint_every: 2000,
        optimizer: adam,
        // Less than ten minutes on 2 cores, by processor time; about forty for ReBRAC. The papers
        // use a million updates.
        updates: 50_000,
        ..sequence.clone()
    };
    let is_perceptron = agent.sequence().is_some_and(|agent| agent.transformer().is_none());
    match agent.kind() {
        AlgorithmKind::BehaviorCloning if is_perceptron && !is_paper => {
            // A transformer's settings would train it for three seconds, all of them warm-up.
            TrainConfig { updates: 5000, batch_size: 256, warmup_tokens: 20_000.0, ..sequence }
        }
        AlgorithmKind::DecisionTransformer | AlgorithmKind::BehaviorCloning => sequence,
        AlgorithmKind::Rvs => {
            let quick = TrainConfig {
                updates: 5000,
                // The paper's 16,384 are too slow on a CPU.
                batch_size: 256,
                learning_rate: 1e-3,
                warmup_tokens: 20_000.0,
                optimizer: AdamWConfig { weight_decay: 0.0, ..sequence.optimizer },
                ..sequence
            };
            match is_paper {
                false => quick,
                true => TrainConfig {
                    updates: 0,
                    epochs: 2000,
                    batch_size: 16_384,
                    schedule: ScheduleKind::Constant,
                    warmup_updates: 0,
                    sampling: Sampling::Uniform,
                    ..quick
                },
            }
        }
        AlgorithmKind::DiscreteCql => discrete_training(task, sequence, is_paper),
        AlgorithmKind::Iql if agent.head().is_some() => {
            let own = discrete_training(task, sequence, is_paper);
            match is_pixels(task) && !is_paper {
                // As long as half of a quick transformer; 2,600 returned less
                // (docs/results/games.md).
                true => TrainConfig { updates: 8000, checkpoint_every: 1000, ..own },
                false => own,
            }
        }
        // Two minutes of one of two busy cores, at 6 to 7 ms each: as long as 2000 updates of a
        // Decision Transformer.
        AlgorithmKind::Td3Bc if !is_paper => TrainConfig { updates: 18_000, ..values },
        // The same time at 7 to 8 ms.
        AlgorithmKind::Iql if !is_paper => TrainConfig { updates: 16_000, ..values },
        AlgorithmKind::Td3Bc | AlgorithmKind::Iql => values,
        AlgorithmKind::Rebrac => {
            let paper = TrainConfig {
                batch_size: 1024,
                learning_rate: 1e-3,
                checkpoint_every: 5000,
                ..values
            };
            match is_paper {
                true => paper,
                // Three minutes of one core at 6.6 ms each. 10,000 returned less, 60,000 not more
                // (docs/how-to/which-algorithm.md).
                false => TrainConfig { updates: 30_000, batch_size: 256, ..paper },
            }
        }
    }
}

/// Training of a transformer.
fn sequence_training(task: &Task, is_paper: bool) -> TrainConfig {
    // Batch size, cosine schedule and averaging help a short run (docs/results/short-runs.md).
    // About twenty updates a second on 2 cores.
    let vectors = TrainConfig {
        updates: 2000,
        epochs: 0,
        batch_size: 128,
        micro_batches: 1,
        learning_rate: 1e-3,
        schedule: ScheduleKind::Cosine,
        warmup_tokens: 50_000.0,
        decay_horizon: 1.0,
        warmup_updates: 0,
        reference_schedule: false,
        optimizer: AdamWConfig {
            beta_1: 0.9,
            beta_2: 0.999,
            epsilon: 1e-8,
            weight_decay: 1e-4,
            decayed: Decayed::Everything,
            clip_norm: 0.25,
        },
        average_weights: true,
        sampling: Sampling::Uniform,
        log_every: 20,
        checkpoint_every: 500,
        keep_checkpoints: 3,
        held_out: 0.0,
        precision: Precision::F32,
        read_every: 0,
        frames_on_gpu_gb: 8.0,
    };
    // The reference's rate, warm-up, decay and optimizer. Batches of 128 are too slow on a CPU,
    // which computes about five updates of 16 a second.
    let frames = TrainConfig {
        updates: 2600,
        epochs: 5,
        batch_size: 16,
        learning_rate: 6e-4,
        warmup_tokens: 10_240.0,
        decay_horizon: 1.2,
        optimizer: AdamWConfig {
            beta_2: 0.95,
            weight_decay: 0.1,
            decayed: Decayed::Matrices,
            clip_norm: 1.0,
            ..vectors.optimizer
        },
        average_weights: false,
        log_every: 10,
        checkpoint_every: 100,
        ..vectors.clone()
    };
    // The references' length, rate and contexts.
    match (is_pixels(task), is_paper) {
        (false, false) => vectors,
        (false, true) => TrainConfig {
            reference_schedule: true,
            updates: 100_000,
            batch_size: 64,
            learning_rate: 1e-4,
            schedule: ScheduleKind::Constant,
            warmup_updates: 10_000,
            average_weights: false,
            sampling: Sampling::FromStart,
            log_every: 100,
            checkpoint_every: 2000,
            ..vectors
        },
        (true, false) => frames,
        (true, true) => TrainConfig {
            reference_schedule: true,
            updates: 0,
            batch_size: 128,
            sampling: Sampling::Released,
            log_every: 50,
            checkpoint_every: 1000,
            ..frames
        },
    }
}

fn discrete_training(task: &Task, sequence: TrainConfig, is_paper: bool) -> TrainConfig {
    let optimizer =
        AdamWConfig { epsilon: 3.125e-4, weight_decay: 0.0, clip_norm: 10.0, ..sequence.optimizer };
    let paper = TrainConfig {
        batch_size: 32,
        learning_rate: 5e-5,
        schedule: ScheduleKind::Constant,
        optimizer,
        ..sequence
    };
    match is_pixels(task) {
        true if is_paper => paper,
        // The paper's rate and epsilon, tuned for millions of updates, hardly move a network in
        // minutes: the agent always takes the same action (docs/results/games.md).
        true => TrainConfig {
            learning_rate: 6e-4,
            average_weights: true,
            optimizer: AdamWConfig { epsilon: 1e-8, ..optimizer },
            ..paper
        },
        // Seconds on 2 cores. RL Baselines3 Zoo tuned QR-DQN for CartPole with batches of 64. Without
        // the transformer's warm-up, which is longer than this run.
        false => TrainConfig {
            updates: 5000,
            warmup_updates: 0,
            sampling: Sampling::Uniform,
            batch_size: 64,
            // The rate of the critics of d3rlpy's CQL.
            learning_rate: 3e-4,
            checkpoint_every: 2500,
            // Without decay, three seeds of eight failed early on CartPole. If a number hardly
            // varies in the dataset, such as the cart's position, its weights keep their random
            // initial values (docs/tasks.md).
            optimizer: AdamWConfig { weight_decay: 1.0, decayed: Decayed::Matrices, ..optimizer },
            ..paper
        },
    }
}
