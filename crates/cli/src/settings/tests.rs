use overtone_agents::RebracConfig;
use overtone_core::{ActionSpace, ObservationSpace, seed};
use overtone_hostile::mutate::mutate;
use overtone_model::{
    AttentionConfig, DecisionTransformerConfig, FourierKernel, ModelConfig, PerceptronConfig,
    RShape,
    head::{
        BinnedConfig, BinsHeadConfig, Domain, FourierHeadConfig, GmmHeadConfig,
        GmmLikelihoodConfig, HeadConfig, InitialCoefficients, LinearConfig, MixtureStd,
        MixtureWeights, OrderConfig, Regularizer,
    },
};

use super::*;
use crate::keys;

fn resolve(line: &str) -> Result<Settings> {
    let words: Vec<String> = line.split_whitespace().map(str::to_owned).collect();
    Settings::resolve(&words, |_| Profile::Quick)
}

/// The algorithm for episodes of up to 1000 steps.
fn algorithm(line: &str) -> Result<AlgorithmConfig> {
    let settings = resolve(line)?;
    settings.algorithm_config(settings.task()?, Recorded::ANY, None)
}

fn transformer(model: DecisionTransformerConfig) -> AlgorithmConfig {
    AlgorithmConfig::DecisionTransformer(DecisionTransformerOptions(model))
}

#[track_caller]
fn refused(line: &str, expected: &str) {
    let error = algorithm(line).map(drop).unwrap_err().to_string();
    assert!(error.contains(expected), "{line}: {error}");
}

#[test]
fn presets_resolve_and_survive_the_run_folder() {
    let folder = tempfile::tempdir().unwrap();
    for line in [
        "game=seaquest profile=quick",
        "game=seaquest profile=paper",
        "env=hopper",
        "env=walker2d profile=paper",
        "game=seaquest algorithm=discrete_cql",
        "env=hopper algorithm=td3_bc td3_bc.alpha=1",
        "env=hopper algorithm=iql profile=paper",
        "env=walker2d algorithm=rebrac rebrac.critic_penalty=0",
    ] {
        let settings = resolve(line).unwrap();
        let path = folder.path().join("config.toml");
        std::fs::write(&path, settings.to_toml().unwrap()).unwrap();
        assert_eq!(Settings::load(&path).unwrap(), settings, "{line}");
    }
}

/// Whatever the quick profile has come to say.
#[test]
fn a_run_from_before_a_key_existed_is_what_it_was() {
    let settings = resolve("env=hopper").unwrap();
    assert_eq!(settings.model.time, Time::Context);
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("config.toml");
    let now = settings.to_toml().unwrap();
    let before: Vec<&str> = now.lines().filter(|line| !line.starts_with("time = ")).collect();
    std::fs::write(&path, before.join("\n")).unwrap();
    let loaded = Settings::load(&path).unwrap();
    assert_eq!(loaded.model.time, Time::Episode);
    let model = ModelSettings { time: Time::Context, ..loaded.model.clone() };
    assert_eq!(Settings { model, ..loaded }, settings);
}

#[test]
fn a_task_has_one_name_however_it_is_written() {
    for line in ["game=bank_heist", "game=BankHeist", "game=Bank-Heist", "task=ale/bankheist"] {
        assert_eq!(resolve(line).unwrap().task, "ale/bank_heist");
    }
    for line in ["env=HalfCheetah dataset=medium_replay", "env=halfcheetah dataset=Medium-Replay"] {
        let settings = resolve(line).unwrap();
        let expected = ("mujoco/halfcheetah", "medium-replay");
        assert_eq!((&*settings.task, &*settings.dataset), expected);
    }
    let file = resolve("env=hopper dataset=/A/hopper_medium.hdf5").unwrap();
    assert_eq!((&*file.dataset, &*file.task_name()), ("/A/hopper_medium.hdf5", "hopper-medium"));
    let words = ["env=hopper", "dataset=/A/My data.hdf5"].map(str::to_owned);
    let file = Settings::resolve(&words, |_| Profile::Quick).unwrap();
    assert_eq!(file.task_name(), "hopper-my-data");
    assert_eq!(resolve("env=hopper").unwrap().task_name(), "hopper-switching");
    assert_eq!(resolve("game=seaquest").unwrap().task_name(), "seaquest");
}

#[test]
fn overrides_win_over_the_profile() {
    let settings = resolve("game=gravitar profile=paper train.batch_size=64").unwrap();
    assert_eq!((settings.train.batch_size, settings.train.updates), (64, 0));
}

#[test]
fn the_length_of_a_run_is_told_in_what_it_is_made_of() {
    let told = |words: &str| resolve(&format!("env=hopper {words}")).unwrap().describe_profile();
    assert!(told("train.updates=7").starts_with("quick, 7 updates of 128 contexts, for a first"));
    let epochs = told("train.updates=0 train.epochs=1");
    assert!(epochs.starts_with("quick, 1 epoch of all transitions, batch 128, for a"), "{epochs}");
}

#[test]
fn every_key_has_a_reason() {
    let help = help();
    let (help, otherwise) = help.split_once("\nDefaults that are otherwise").unwrap();
    for line in [
        "  a task that shows vectors:\n      data.return_scale=1000.0 dataset=switching",
        "  a task whose returns no reference has scaled (gymnasium=…, own=…):\n      \
         data.return_scale=0.0 dataset=",
        "  a task without an environment (own=…):\n      evaluation.episodes=0",
        "  algorithm=iql:\n      data.return_scale=1.0 train.batch_size=256",
    ] {
        assert!(otherwise.contains(line), "{line}: {otherwise}");
    }
    assert!(!otherwise.contains("iql.expectile") && !otherwise.contains("paper."), "{otherwise}");
    let n_keys = keys::flatten(&DEFAULTS.parse().unwrap()).len();
    // 6 of discrete CQL, 9 of TD3+BC, 8 of IQL, 11 of ReBRAC, 8 of value guidance; 4 of Fourier
    // attention, 10 of heads;
    // 2 attentions, 3 heads on bins and 5 on real values themselves.
    assert_eq!(help.lines().count(), 2 * (n_keys + 42 + 4 + 10 + 2 + 3 + 5));
    for line in [
        "  head.frequencies=14\n      Highest frequency N; 14 is the paper's best",
        "  attention.power=4\n      2, 4 or 6; ",
        "  head=gaussian\n      Real values: a diagonal Gaussian.",
    ] {
        assert!(help.contains(line), "{line}: {help}");
    }
    let mut lines = help.lines();
    while let (Some(key), Some(reason)) = (lines.next(), lines.next()) {
        assert!(reason.trim().ends_with('.'), "{key}: {reason}");
    }
}

#[test]
fn the_paper_profile_is_the_reference_s() {
    let line = "env=hopper profile=paper";
    let expected = transformer(DecisionTransformerConfig::gym(1000));
    assert_eq!(algorithm(line).unwrap(), expected);
    let train = resolve(line).unwrap().train;
    assert_eq!((train.updates, train.warmup_updates, train.batch_size), (100_000, 10_000, 64));
    assert_eq!((train.learning_rate, train.optimizer.clip_norm), (1e-4, 0.25));

    for (algorithm, rate, batch) in
        [("td3_bc", 3e-4, 256), ("iql", 3e-4, 256), ("rebrac", 1e-3, 1024)]
    {
        let settings = resolve(&format!("env=hopper algorithm={algorithm} profile=paper")).unwrap();
        let train = &settings.train;
        assert_eq!((train.updates, train.warmup_updates, train.batch_size), (50_000, 0, batch));
        assert_eq!((train.learning_rate, settings.data.return_scale), (rate, 1.0));
        let quick = resolve(&format!("env=hopper algorithm={algorithm} profile=quick")).unwrap();
        assert!(quick.train.updates < train.updates);
    }

    let rebrac = |profile: &str| {
        algorithm(&format!("env=hopper algorithm=rebrac profile={profile}")).unwrap()
    };
    assert_eq!(rebrac("paper"), AlgorithmConfig::Rebrac(RebracConfig::default()));
    let quick = RebracConfig {
        actor_penalty: 0.1,
        target_rate: 0.02,
        normalize: true,
        ..RebracConfig::default()
    };
    assert_eq!(rebrac("quick"), AlgorithmConfig::Rebrac(quick));

    let rvs = |line: &str| match algorithm(line).unwrap() {
        AlgorithmConfig::Rvs(RvsConfig(model)) => (model, resolve(line).unwrap().train),
        other => panic!("{other:?}"),
    };
    let paper = PerceptronConfig::rvs(1000);
    let mut quick = PerceptronConfig { n_layers: 3, width: 256, ..paper.clone() };
    quick.conditioning.as_mut().unwrap().best_percents = vec![10.0, 50.0, 100.0];
    for (profile, config, batch) in [("quick", quick, 256), ("paper", paper, 16_384)] {
        let (model, train) = rvs(&format!("env=hopper algorithm=rvs profile={profile}"));
        assert_eq!((model, train.batch_size), (config, batch));
        assert_eq!((train.learning_rate, train.optimizer.weight_decay), (1e-3, 0.0));
    }

    // Behaviour cloning by a perceptron is the reference's too, and in the quick profile one that
    // learns in half a minute.
    let perceptron = |profile: &str| {
        let words = "env=hopper algorithm=behavior_cloning model.kind=perceptron";
        let line = format!("{words} profile={profile}");
        let ModelConfig::Perceptron(model) = algorithm(&line).unwrap().model().unwrap() else {
            panic!("a perceptron")
        };
        (model, resolve(&line).unwrap().train)
    };
    assert_eq!(perceptron("paper").0, PerceptronConfig::gym());
    let (model, train) = perceptron("quick");
    let gym = PerceptronConfig::gym();
    let quick = PerceptronConfig { width: 256, context_length: 1, dropout: 0.0, ..gym };
    assert_eq!(model, quick);
    assert!(train.warmup_tokens * 10.0 < (train.updates * train.batch_size as u64) as f64);

    let line = "game=seaquest profile=paper";
    let expected = transformer(DecisionTransformerConfig::atari(999));
    assert_eq!(algorithm(line).unwrap(), expected);
    let train = resolve(line).unwrap().train;
    assert_eq!((train.updates, train.epochs, train.batch_size), (0, 5, 128));
    assert_eq!((train.learning_rate, train.optimizer.clip_norm), (6e-4, 1.0));
}

#[test]
fn every_head_for_a_list_of_actions_can_be_asked_for() {
    let head = |words: &str| {
        let line = format!("game=seaquest {words}");
        let model = algorithm(&line).unwrap().model().unwrap();
        (resolve(&line).unwrap().head.name(), model.head().clone())
    };
    assert_eq!(head(""), ("linear".into(), HeadConfig::Linear(LinearConfig {})));
    let order = OrderConfig::Compass;
    let fourier = FourierHeadConfig {
        gamma: 1e-6,
        action_order: order.clone(),
        ..FourierHeadConfig::new(14)
    };
    assert_eq!(head("head=fourier"), ("fourier14".into(), HeadConfig::Fourier(fourier)));
    let fourier = FourierHeadConfig {
        gamma: 0.5,
        regularizer: Regularizer::Paper,
        domain: Domain::HalfRange,
        initial: InitialCoefficients::UniformDensity,
        ..FourierHeadConfig::new(8)
    };
    let words = "head=fourier head.frequencies=8 head.gamma=0.5 head.regularizer=paper \
                 head.domain=half_range head.initial=uniform head.action_order=environment";
    assert_eq!(head(words), ("fourier8".into(), HeadConfig::Fourier(fourier)));
    let gmm = GmmHeadConfig { components: 3, action_order: order, ..Default::default() };
    assert_eq!(head("head=gmm head.components=3"), ("gmm3".into(), HeadConfig::Gmm(gmm.clone())));
    let gmm = GmmHeadConfig {
        weights: MixtureWeights::Learned,
        std: MixtureStd::State,
        init_std: 0.5,
        ..gmm
    };
    let words = "head=gmm head.components=3 head.weights=learned head.std=state \
                 head.init_std=0.5";
    assert_eq!(head(words), ("gmm3".into(), HeadConfig::Gmm(gmm)));
}

/// The options of mixtures are the same on real values, cut into bins or not.
#[test]
fn both_mixture_heads_have_the_same_options() {
    let head = |words: &str| {
        let model = algorithm(&format!("env=hopper head=gmm {words}")).unwrap().model().unwrap();
        model.head().clone()
    };
    let (weights, std, init_std) = (MixtureWeights::Learned, MixtureStd::Fixed, 0.1);
    let options = "head.weights=learned head.std=fixed head.init_std=0.1";
    let likelihood = GmmLikelihoodConfig { weights, std, init_std, ..Default::default() };
    assert_eq!(head(options), HeadConfig::GmmLikelihood(likelihood));
    let gmm = GmmHeadConfig { weights, std, init_std, ..Default::default() };
    let bins = BinnedConfig { bins: 9, head: BinsHeadConfig::Gmm(gmm) };
    assert_eq!(head(&format!("head.bins=9 {options}")), HeadConfig::Binned(bins));
    assert_eq!(head(""), HeadConfig::GmmLikelihood(GmmLikelihoodConfig::default()));
}

#[test]
fn every_agent_has_a_name() {
    let name = |words: &str| {
        let line = format!("env=hopper {words}");
        resolve(&line).unwrap().model_name(&algorithm(&line).unwrap())
    };
    assert_eq!(name(""), "tanh");
    assert_eq!(name("head=gaussian attention=fourier"), "gaussian-attention-fourier4");
    assert_eq!(name("head=fourier algorithm=behavior_cloning"), "bc-fourier14");
    assert_eq!(name("head=gmm data.best_percent=10"), "best10-gmm2");
    let perceptron = "algorithm=behavior_cloning model.kind=perceptron";
    let words = format!("{perceptron} head=linear head.bins=20");
    assert_eq!(name(&words), "bc-perceptron-linear-bins20");
    assert_eq!(name("algorithm=rvs head=gaussian data.best_percent=50"), "best50-rvs-gaussian");
    assert_eq!(name("head=fourier head.bins=50"), "fourier14-bins50");
    assert_eq!(name("head=gmm head.bins=50"), "gmm2-bins50");
    let line = "game=seaquest algorithm=discrete_cql discrete_cql.alpha=0.5";
    assert_eq!(resolve(line).unwrap().model_name(&algorithm(line).unwrap()), "cql0.5");
}

/// What `--help` shows as defaults is what the library has.
#[test]
fn an_algorithm_s_defaults_are_the_library_s() {
    let expected = AlgorithmConfig::DiscreteCql(Default::default());
    let line = "game=seaquest algorithm=discrete_cql profile=paper";
    assert_eq!(algorithm(line).unwrap(), expected);
}

/// Settings of a task in no suite's table, in a profile.
fn settings_of(task: &Task, line: &str, profile: Profile) -> Settings {
    let words: Vec<String> = line.split_whitespace().map(str::to_owned).collect();
    let first = layers::layers(task, &words, &[], profile).unwrap();
    let mut first = resolve::from_keys(&first, Default::default(), task).unwrap();
    first.profile = profile;
    let keys = layers::layers(task, &words, &first.overlays(task), profile).unwrap();
    resolve::from_keys(&keys, Default::default(), task).unwrap()
}

fn own(width: usize, actions: ActionSpace) -> Task {
    Task::own("pole", ObservationSpace::Vectors { width }, actions)
}

/// However short a run, the target follows at least ten times. The paper's 2000 is for the length
/// of the paper's runs.
#[test]
fn a_quick_run_s_target_moves_many_times() {
    let frames = ObservationSpace::Pixels { shape: vec![4, 84, 84] };
    let frames = Task::own("frames", frames, ActionSpace::numbered(6));
    let vectors = own(4, ActionSpace::numbered(2));
    let check = |task: &Task, profile, expected: (u64, usize, f64, f64, bool)| {
        let settings = settings_of(task, "algorithm=discrete_cql", profile);
        let AlgorithmConfig::DiscreteCql(options) =
            settings.algorithm_config(task, Recorded::ANY, None).unwrap()
        else {
            panic!("conservative Q-learning")
        };
        let train = settings.train;
        let rates = (train.learning_rate, train.optimizer.epsilon, train.average_weights);
        let got = (options.target_every, options.quantiles, rates.0, rates.1, rates.2);
        assert_eq!(got, expected, "{profile:?}");
        if profile == Profile::Quick {
            assert!(train.updates / options.target_every >= 10, "{}", train.updates);
        }
    };
    check(&frames, Profile::Quick, (130, 25, 6e-4, 1e-8, true));
    check(&frames, Profile::Paper, (2000, 200, 5e-5, 3.125e-4, false));
    check(&vectors, Profile::Quick, (500, 25, 3e-4, 3.125e-4, true));
    check(&vectors, Profile::Paper, (500, 25, 3e-4, 3.125e-4, false));
}

/// Sizes follow the task: few numbers and a list of actions need few weights.
#[test]
fn small_vectors_have_a_small_model() {
    let width = |width, actions, line, profile| {
        settings_of(&own(width, actions), line, profile).model.d_model
    };
    let list = || ActionSpace::numbered(2);
    for (line, expected) in [
        ("", 64),
        ("algorithm=behavior_cloning", 64),
        ("model.d_model=32", 32),
        // What has a width of its own keeps it.
        ("algorithm=behavior_cloning model.kind=perceptron", 256),
        ("algorithm=rvs", 256),
    ] {
        assert_eq!(width(4, list(), line, Profile::Quick), expected, "{line}");
    }
    assert_eq!(width(8, list(), "", Profile::Quick), 64);
    assert_eq!(width(4, list(), "", Profile::Paper), 128);
    // More numbers, and real-valued actions.
    assert_eq!(width(9, list(), "", Profile::Quick), 128);
    assert_eq!(width(3, ActionSpace::unit(1), "head=tanh", Profile::Quick), 128);
    assert_eq!(resolve("env=hopper").unwrap().model.d_model, 128);
}

#[test]
fn what_describes_no_agent_is_refused() {
    refused("", "which task? Say game=seaquest");
    refused("game=seaquest env=hopper", "are two tasks: give one of them");
    refused("game=seaquest head=cubic", "head=cubic");
    refused("game=seaquest train.batch_size=0", "train.batch_size");
    refused("game=seaquest seed=-1", "seed=-1");
    refused("game=seaquest head=gmm head.components=0", "head.components = 0");
    refused("game=seaquest head=gmm head.std=wide", "head.std=wide: unknown variant");
    refused(
        "env=hopper head=gmm head.components=1 head.weights=learned",
        "head.weights = learned: one Gaussian has nothing to weigh",
    );
    refused("env=hopper head.std=state", "head.std=state is for head=gmm; this run has head=tanh");
    refused("game=seaquest head=fourier head.initial={std=0}", "head.initial.std = 0");
    refused("game=seaquest head=tanh", "this task's actions are a list");
    refused("game=seaquest attention=fourier attention.power=3", "attention.power");
    refused("game=seaquest attention.r=vector", "attention.r=vector");
    refused("env=hopper head=linear", "head.bins=50");
    refused(
        "env=hopper head.bins=9",
        "head=tanh: with bins, which head.bins=0 leaves out, there are `linear`, `fourier`, `gmm`",
    );
    refused("env=hopper head=fourier head.frequencies=-1", "head.frequencies=-1: invalid value");
    refused("env=hopper head=fourier head.domain=flat", "head.domain=flat: unknown variant");
    refused("env=hopper head=fourier head.componets=3", "the nearest is `head.components`");
    refused("env=hopper data.return_scale=-1", "return_scale=-1");
    refused("env=hopper model.n_heads=3", "n_heads");
    refused("env=hopper model.kind=perceptron", "say algorithm=behavior_cloning");
    refused("env=hopper algorithm=rvs model.kind=transformer", "RvS is a perceptron");
    refused("game=seaquest algorithm=rvs", "a perceptron sees vectors");
    refused("env=hopper algorithm=discrete_cql", "real-valued");
    refused("env=hopper algorithm=magic", "algorithm=magic: there are decision_transformer");
    refused("game=seaquest model.kind=perceptron algorithm=behavior_cloning", "vectors");
}

#[test]
fn attention_is_chosen_by_its_keys() {
    let attention = |words: &str| match algorithm(&format!("game=seaquest {words}"))
        .unwrap()
        .model()
        .unwrap()
    {
        ModelConfig::Transformer(model) => model.attention,
        ModelConfig::Perceptron(_) => panic!("a perceptron"),
    };
    assert_eq!(attention(""), AttentionConfig::SOFTMAX);
    let expected = FourierKernel { power: 6, r: RShape::PerDimension, initial: 1.0, epsilon: 0.0 };
    let words = "attention=fourier attention.power=6 attention.r=per_dimension";
    assert_eq!(attention(words), AttentionConfig::Fourier(expected));
}

#[test]
fn keys_of_a_variant_that_was_not_chosen_are_refused() {
    for (line, expected) in [
        (
            "game=seaquest head.frequencies=28",
            "head.frequencies=28 is for head=fourier; this run has head=linear",
        ),
        (
            "env=hopper head.frequencies=28",
            "head.frequencies=28 is for head=fourier; this run has head=tanh",
        ),
        (
            "env=hopper head=fourier head.regularizer=paper",
            "head.regularizer=paper is for head=fourier on bins: say how many, such as \
             head.bins=50",
        ),
        (
            "env=hopper head=fourier head.bins=9 head.action_order=compass",
            "head.action_order=compass is for tasks whose actions are a list; those of \
             mujoco/hopper are real-valued",
        ),
        (
            "game=seaquest attention.power=6",
            "attention.power=6 is for attention=fourier; this run has attention=softmax",
        ),
        // A value that is the default does no more.
        (
            "game=seaquest head.action_order=compass",
            "head.action_order=compass is for head=fourier or gmm; this run has head=linear",
        ),
        (
            "game=seaquest train.epochs=3",
            "train.epochs=3 is for train.updates=0; this run has train.updates=2600",
        ),
        (
            "game=seaquest head.bins=50",
            "head.bins=50 is for tasks whose actions are real-valued; those of ale/seaquest are a \
             list",
        ),
        (
            "env=hopper data.run=2",
            "data.run=2 is for tasks whose observations are pixels; those of mujoco/hopper are \
             vectors",
        ),
        (
            "game=seaquest discrete_cql.alpha=1",
            "discrete_cql.alpha=1 is for algorithm=discrete_cql; this run has \
             algorithm=decision_transformer",
        ),
        (
            "game=seaquest train.warmup_updates=500",
            "train.warmup_updates=500 is for train.schedule=constant; this run has \
             train.schedule=cosine",
        ),
        (
            "env=hopper train.schedule=constant train.warmup_tokens=9",
            "train.warmup_tokens=9 is for train.schedule=cosine; this run has \
             train.schedule=constant",
        ),
        (
            "env=hopper profile=paper train.decay_horizon=2",
            "train.decay_horizon=2 is for train.schedule=cosine; this run has \
             train.schedule=constant",
        ),
        (
            "env=hopper algorithm=td3_bc evaluation.return_quantile=0.5",
            "evaluation.return_quantile=0.5 is for algorithm=decision_transformer; \
             this run has algorithm=td3_bc",
        ),
        (
            "env=hopper evaluation.every=0 evaluation.every_episodes=3",
            "evaluation.every_episodes=3 is for evaluation.every=auto, or 1 and more; this run has \
             evaluation.every=0",
        ),
        (
            "game=seaquest algorithm=discrete_cql head=fourier",
            "head=fourier is for algorithm=decision_transformer or behavior_cloning or rvs; \
             this run has algorithm=discrete_cql",
        ),
    ] {
        let error = resolve(line).map(drop).unwrap_err().to_string();
        assert_eq!(error, expected);
    }
    for word in ["attention=fourier", "model.n_heads=3"] {
        let line = format!("env=hopper algorithm=behavior_cloning model.kind=perceptron {word}");
        let expected =
            format!("{word} is for model.kind=transformer; this run has model.kind=perceptron");
        assert_eq!(resolve(&line).map(drop).unwrap_err().to_string(), expected);
    }
}

#[test]
fn what_presets_say_of_other_variants_is_no_mistake() {
    resolve("game=seaquest profile=paper train.epochs=3").unwrap();
    resolve("game=seaquest head=gmm head.components=3").unwrap();
}

/// Damaged configurations of runs are read or refused, and what is read can be written.
#[test]
fn damaged_configurations_are_refused() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("config.toml");
    for line in ["game=seaquest", "env=hopper"] {
        let sound = resolve(line).unwrap().to_toml().unwrap();
        let mut generator = seed::generator(1, "config");
        let (mut accepted, mut refused) = (0, 0);
        for _ in 0..1000 {
            let bytes = mutate(&[sound.as_bytes(), DEFAULTS.as_bytes()], 0, &mut generator);
            std::fs::write(&path, bytes).unwrap();
            let _ = device_of(&path);
            match Settings::load(&path) {
                Ok(settings) => {
                    accepted += 1;
                    settings.to_toml().unwrap();
                }
                Err(error) => {
                    refused += 1;
                    assert!(!error.to_string().is_empty());
                }
            }
        }
        assert!(accepted > 20 && refused > 20, "{accepted} accepted, {refused} refused");
    }
}

#[test]
fn configurations_of_other_versions_or_without_end_are_refused() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("config.toml");
    for text in
        [format!("a = {}", "[".repeat(100_000)), format!("{} = 1", vec!["a"; 100_000].join("."))]
    {
        std::fs::write(&path, text).unwrap();
        assert!(Settings::load(&path).is_err());
    }
    std::fs::write(&path, "game = \"seaquest\"\nseed = 1\n").unwrap();
    let error = Settings::load(&path).unwrap_err().to_string();
    assert!(error.contains("names no task") && error.contains("train it anew"), "{error}");
    let earlier = "task = \"ale/seaquest\"\n[head]\nkind = \"linear\"\ninitial_std = 0.02\n";
    std::fs::write(&path, earlier).unwrap();
    let error = Settings::load(&path).unwrap_err().to_string();
    assert!(error.contains("earlier version") && error.contains("train it anew"), "{error}");
}
