use anyhow::Result;
use overtone_agents::{
    AlgorithmConfig, AlgorithmKind, BehaviorCloningConfig, DecisionTransformerOptions, RvsConfig,
};
use overtone_core::{ActionSpace, ObservationSpace, Task, seed};
use overtone_data::Sampling;
use overtone_hostile::mutate::mutate;
use overtone_model::{
    AttentionConfig, DecisionTransformerConfig, FourierKernel, ModelConfig, PerceptronConfig,
    RShape,
    head::{
        BinnedConfig, BinsHeadConfig, Domain, FourierHeadConfig, GmmHeadConfig, HeadConfig,
        InitialCoefficients, LinearConfig, MixtureStd, MixtureWeights, OrderConfig, Regularizer,
    },
};

use crate::*;
use overtone_console::keys;
use toml::Table;

fn resolve(line: &str) -> Result<RunConfig> {
    let words: Vec<String> = line.split_whitespace().map(str::to_owned).collect();
    RunConfig::resolve(&words, |_| Profile::Quick)
}

/// The algorithm for episodes of up to 1000 steps.
fn algorithm(line: &str) -> Result<AlgorithmConfig> {
    let config = resolve(line)?;
    config.algorithm_config(config.task()?, Recorded::ANY, None)
}

fn model(line: &str) -> ModelConfig {
    algorithm(line).unwrap().model().unwrap()
}

#[track_caller]
fn error(line: &str) -> ConfigError {
    let error = resolve(line).map(drop).unwrap_err();
    error.downcast().unwrap_or_else(|error| panic!("{line}: {error}"))
}

/// The default configuration of any task.
fn config_of(task: &Task, algorithm: AlgorithmKind, profile: Profile) -> RunConfig {
    defaults(task, &Choices::usual(algorithm, profile)).unwrap()
}

fn own(width: usize, actions: ActionSpace) -> Task {
    Task::own("own", ObservationSpace::Vectors { width }, actions)
}

#[test]
fn a_configuration_survives_the_run_directory() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("config.toml");
    for line in [
        "game=seaquest profile=quick",
        "game=seaquest profile=paper head=fourier head.initial={std=0.5}",
        "env=hopper head=fourier head.bins=9",
        "env=walker2d profile=paper head=gmm",
        "env=hopper algorithm=behavior_cloning",
        "env=hopper algorithm=behavior_cloning model.kind=perceptron",
        "env=hopper algorithm=rvs",
        "game=seaquest algorithm=discrete_cql",
        "env=hopper algorithm=td3_bc td3_bc.alpha=1",
        "env=hopper algorithm=iql profile=paper",
        "env=walker2d algorithm=rebrac rebrac.critic_penalty=0",
    ] {
        let config = resolve(line).unwrap();
        let stored = config.to_toml().unwrap();
        std::fs::write(&path, &stored).unwrap();
        assert_eq!(RunConfig::load(&path).unwrap(), config, "{line}");
        // Each key is required, and others are refused. Without `bins` a head is a density.
        let is_checked = |line: &&str| line.contains(" = ") && !line.starts_with("bins = ");
        for line in stored.lines().filter(is_checked) {
            for odd in [String::new(), format!("{line}\nodd_{line}")] {
                let whole = format!("\n{stored}").replacen(
                    &format!("\n{line}\n"),
                    &format!("\n{odd}\n"),
                    1,
                );
                std::fs::write(&path, whole).unwrap();
                let error = RunConfig::load(&path).unwrap_err();
                let is_format = matches!(
                    error.downcast_ref(),
                    Some(ConfigError::Format { .. }) if line.starts_with("format")
                );
                let is_damaged = matches!(error.downcast_ref(), Some(ConfigError::Damaged { .. }));
                assert!(is_format || is_damaged, "{line}: {error}");
            }
        }
    }
}

#[test]
fn a_task_has_one_name_however_it_is_written() {
    for line in ["game=bank_heist", "game=BankHeist", "game=Bank-Heist", "task=ale/bankheist"] {
        assert_eq!(resolve(line).unwrap().task, "ale/bank_heist");
    }
    for line in ["env=HalfCheetah dataset=medium_replay", "env=halfcheetah dataset=Medium-Replay"] {
        let config = resolve(line).unwrap();
        let expected = ("mujoco/halfcheetah", "medium-replay");
        assert_eq!((&*config.task, &*config.dataset), expected);
    }
    let file = resolve("env=hopper dataset=/A/hopper_medium.hdf5").unwrap();
    assert_eq!((&*file.dataset, &*file.task_name()), ("/A/hopper_medium.hdf5", "hopper-medium"));
    let words = ["env=hopper", "dataset=/A/My data.hdf5"].map(str::to_owned);
    let file = RunConfig::resolve(&words, |_| Profile::Quick).unwrap();
    assert_eq!(file.task_name(), "hopper-my-data");
    assert_eq!(resolve("env=hopper").unwrap().task_name(), "hopper-switching");
    assert_eq!(resolve("game=seaquest").unwrap().task_name(), "seaquest");
    assert!(resolve("").unwrap_err().to_string().contains("no task is set. Use game=seaquest"));
    assert!(resolve("game=seaquest env=hopper").unwrap_err().to_string().contains("two tasks"));
}

#[test]
fn words_win_over_the_profile() {
    let config = resolve("game=gravitar profile=paper train.batch_size=64").unwrap();
    assert_eq!((config.train.batch_size, config.train.updates), (64, 0));
    // The last value of a repeated key counts, even of a key that chooses a variant.
    let config = resolve("env=hopper head=tanh train.updates=x head=gmm train.updates=3").unwrap();
    assert_eq!((&*config.agent.head().unwrap().name(), config.train.updates), ("gmm2", 3));
    let config = resolve("game=gravitar profile=paper evaluation.temperature=chosen").unwrap();
    assert_eq!(config.evaluation.temperature, Choosable::Chosen);
    let length = |words: &str| resolve(&format!("env=hopper {words}")).unwrap().describe_profile();
    assert!(length("train.updates=7").starts_with("quick (7 updates of 128 contexts); use"));
    let epochs = length("train.updates=0 train.epochs=1");
    assert!(epochs.starts_with("quick (1 epoch of all transitions, batch 128); use"), "{epochs}");
}

#[test]
fn help_has_every_key_with_a_reason() {
    let help = help(true);
    let (help, differing) = help.split_once("\nDefaults that differ").unwrap();
    let lines: Vec<&str> = help.lines().collect();
    for key in known_keys().keys() {
        let word = format!("  {}=", keys::short(key));
        let place = lines.iter().position(|line| line.starts_with(&word));
        let place = place.unwrap_or_else(|| panic!("{key} has no help"));
        let doc = lines[place + 1];
        assert!(doc.starts_with("      ") && doc.ends_with('.'), "{key}: {doc}");
        assert!(!doc.contains("[`"), "{key}: {doc}");
    }
    for line in [
        "  head.frequencies=14\n      Highest frequency N; 14 is the paper's best",
        "  head=gaussian\n      Continuous actions: a diagonal Gaussian.",
        "  iql.beta=1.0\n      β: how much more weight better actions have",
    ] {
        assert!(help.contains(line), "{line}: {help}");
    }
    for kind in AlgorithmKind::ALL {
        assert!(help.contains(kind.about().trim().split('\n').next().unwrap()), "{}", kind.name());
    }
    for line in [
        "  game=seaquest:\n      data.return_scale=1.0 dataset= evaluation.episodes=10",
        "  algorithm=iql:\n      data.return_scale=1.0 train.batch_size=256",
    ] {
        assert!(differing.contains(line), "{line}: {differing}");
    }
}

/// A name is the same agent in the library and in the program.
#[test]
fn an_algorithm_s_defaults_are_the_library_s() {
    for task in [own(11, ActionSpace::unit(3)), own(4, ActionSpace::numbered(2))] {
        for kind in AlgorithmKind::ALL {
            let agent = config_of(&task, *kind, Profile::Quick).agent;
            if agent.sequence().is_some() {
                // The library has the references' models, without defaults.
                continue;
            }
            let mut without_options = Table::try_from(&agent).unwrap();
            without_options.insert(kind.name().into(), Table::new().into());
            assert_eq!(AgentConfig::try_from(without_options), Ok(agent), "{}", kind.name());
        }
    }
}

#[test]
fn the_paper_profile_is_the_reference_s() {
    let paper = |words: &str| {
        let line = format!("{words} profile=paper");
        (algorithm(&line).unwrap(), resolve(&line).unwrap().train)
    };
    let transformer =
        |model| AlgorithmConfig::DecisionTransformer(DecisionTransformerOptions(model));
    let (agent, train) = paper("env=hopper");
    assert_eq!(agent, transformer(DecisionTransformerConfig::gym(1000)));
    assert_eq!((train.updates, train.warmup_updates, train.batch_size), (100_000, 10_000, 64));
    assert_eq!((train.learning_rate, train.optimizer.clip_norm), (1e-4, 0.25));
    let (agent, train) = paper("game=seaquest");
    assert_eq!(agent, transformer(DecisionTransformerConfig::atari(999)));
    assert_eq!((train.updates, train.epochs, train.batch_size), (0, 5, 128));
    assert_eq!((train.learning_rate, train.optimizer.clip_norm), (6e-4, 1.0));
    let (agent, train) = paper("env=hopper algorithm=rvs");
    assert_eq!(agent, AlgorithmConfig::Rvs(RvsConfig(PerceptronConfig::rvs(1000))));
    assert_eq!((train.learning_rate, train.optimizer.weight_decay), (1e-3, 0.0));
    let (agent, _) = paper("env=hopper algorithm=behavior_cloning model.kind=perceptron");
    let expected = ModelConfig::Perceptron(PerceptronConfig::gym());
    assert_eq!(agent, AlgorithmConfig::BehaviorCloning(BehaviorCloningConfig(expected)));
    for (algorithm, rate, batch) in
        [("td3_bc", 3e-4, 256), ("iql", 3e-4, 256), ("rebrac", 1e-3, 1024)]
    {
        let (_, train) = paper(&format!("env=hopper algorithm={algorithm}"));
        assert_eq!((train.updates, train.batch_size), (50_000, batch));
        assert_eq!((train.warmup_updates, train.learning_rate), (0, rate));
    }
}

/// A transformer's warm-up of 10,000 updates would end after the run.
#[test]
fn values_have_no_warmup() {
    let task = own(4, ActionSpace::numbered(2));
    for algorithm in [AlgorithmKind::DiscreteCql, AlgorithmKind::Iql] {
        for profile in [Profile::Quick, Profile::Paper] {
            let train = config_of(&task, algorithm, profile).train;
            assert_eq!((train.warmup_updates, train.sampling), (0, Sampling::Uniform));
        }
    }
}

/// A target network is copied at least ten times in a short run.
#[test]
fn target_networks_follow_in_a_short_run() {
    let discrete = || ActionSpace::numbered(2);
    let frames = ObservationSpace::Pixels { shape: vec![4, 84, 84] };
    let frames = Task::own("frames", frames, discrete());
    for task in [frames, own(4, discrete())] {
        let config = config_of(&task, AlgorithmKind::DiscreteCql, Profile::Quick);
        let AgentConfig::Values(AlgorithmConfig::DiscreteCql(discrete_cql)) = config.agent else {
            unreachable!()
        };
        assert!(config.train.updates / discrete_cql.target_every >= 10);
    }
}

#[test]
fn heads_and_attentions_are_chosen_by_their_keys() {
    let head = |line: &str| model(line).head().clone();
    assert_eq!(head("game=seaquest"), HeadConfig::Linear(LinearConfig {}));
    let fourier = FourierHeadConfig {
        gamma: 0.5,
        regularizer: Regularizer::Paper,
        domain: Domain::HalfRange,
        initial: InitialCoefficients::UniformDensity,
        ..FourierHeadConfig::new(8)
    };
    let line = "game=seaquest head=fourier head.frequencies=8 head.gamma=0.5 head.regularizer=paper \
                head.domain=half_range head.initial=uniform head.action_order=environment";
    assert_eq!(head(line), HeadConfig::Fourier(fourier));
    let gmm = GmmHeadConfig {
        components: 3,
        weights: MixtureWeights::Learned,
        std: MixtureStd::State,
        init_std: 0.5,
        action_order: OrderConfig::Compass,
    };
    let words = "head=gmm head.components=3 head.weights=learned head.std=state head.init_std=0.5";
    assert_eq!(head(&format!("game=seaquest {words}")), HeadConfig::Gmm(gmm.clone()));
    let gmm = GmmHeadConfig { action_order: OrderConfig::Environment, ..gmm };
    let bins = HeadConfig::Binned(BinnedConfig { bins: 9, head: BinsHeadConfig::Gmm(gmm) });
    assert_eq!(head(&format!("env=hopper {words} head.bins=9")), bins);
    let HeadConfig::FourierLikelihood(fourier) = head("env=hopper head=fourier") else {
        panic!("a density of continuous actions")
    };
    assert_eq!(fourier.domain, Domain::HalfRange);
    let line = "game=seaquest attention=fourier attention.power=6 attention.r=per_dimension";
    let ModelConfig::Transformer(model) = model(line) else { panic!("a transformer") };
    let expected = FourierKernel { power: 6, r: RShape::PerDimension, initial: 1.0, epsilon: 0.0 };
    assert_eq!(model.attention, AttentionConfig::Fourier(expected));
}

#[test]
fn every_agent_has_a_name() {
    for (words, expected) in [
        ("", "tanh"),
        ("head=gaussian attention=fourier", "gaussian-attention-fourier4"),
        ("head=fourier algorithm=behavior_cloning", "bc-fourier14"),
        ("head=gmm data.top_percent=10", "top10-gmm2"),
        (
            "algorithm=behavior_cloning model.kind=perceptron head=linear head.bins=20",
            "bc-perceptron-linear-bins20",
        ),
        ("algorithm=rvs head=gaussian data.top_percent=50", "top50-rvs-gaussian"),
        ("head=fourier head.bins=50", "fourier14-bins50"),
        ("algorithm=td3_bc", "td3-bc"),
    ] {
        let line = format!("env=hopper {words}");
        assert_eq!(resolve(&line).unwrap().model_name(), expected);
    }
}

#[test]
fn an_unknown_key_is_refused_with_the_nearest() {
    let nearest = |line: &str| match error(line) {
        ConfigError::UnknownKey { nearest, .. } => nearest,
        other => panic!("{line}: {other}"),
    };
    let head = Some("head.components".to_owned());
    assert_eq!(nearest("env=hopper head=fourier head.componets=3"), head);
    assert_eq!(nearest("env=hopper train.updtes=3"), Some("train.updates".into()));
    assert_eq!(nearest("env=hopper frobnicate=3"), None);
}

#[test]
fn a_value_of_another_kind_is_refused_by_its_key() {
    for (line, expected) in [
        ("env=hopper algorithm=magic", "algorithm"),
        ("env=hopper algorithm=behavior_cloning model.kind=tree", "model.kind"),
        ("game=seaquest head=cubic", "head"),
        ("game=seaquest head=tanh", "head"),
        ("env=hopper head=linear", "head"),
        ("env=hopper head.bins=9", "head"),
        ("env=hopper head.bins=-9", "head.bins"),
        ("game=seaquest attention=cubic", "attention"),
        ("game=seaquest seed=-1", "seed"),
        ("game=seaquest seed=x", "seed"),
        ("game=seaquest profile=slow", "profile"),
        ("game=seaquest train.schedule=never", "train.schedule"),
        ("game=seaquest train.optimizer.beta_1=high", "train.optimizer.beta_1"),
        ("game=seaquest head=gmm head.std=wide", "head.std"),
        ("game=seaquest head=fourier head.initial={std=}", "head.initial"),
        ("env=hopper head=fourier head.frequencies=-1", "head.frequencies"),
        ("env=hopper head=fourier head.domain=flat", "head.domain"),
        ("env=hopper evaluation.every=often", "evaluation.every"),
        ("env=hopper algorithm=iql iql.hidden=x", "iql.hidden"),
        ("env=hopper model.top_percents=0", "model.top_percents"),
    ] {
        match error(line) {
            ConfigError::Value { key, .. } => assert_eq!(key, expected, "{line}"),
            other => panic!("{line}: {other}"),
        }
    }
}

#[test]
fn an_invalid_agent_is_refused() {
    for (line, expected) in [
        ("game=seaquest train.batch_size=0", "train.batch_size"),
        ("game=seaquest head=gmm head.components=0", "head.components"),
        ("env=hopper head=gmm head.components=1 head.weights=learned", "head.weights"),
        ("game=seaquest head=fourier head.initial={std=0}", "head.initial.std"),
        ("game=seaquest attention=fourier attention.power=3", "attention.power"),
        ("env=hopper data.return_scale=-1", "data.return_scale"),
        ("env=hopper model.n_heads=3", "n_heads"),
        ("env=hopper runs=", "runs"),
        ("game=seaquest algorithm=rvs", "a perceptron needs vectors"),
        ("env=hopper algorithm=discrete_cql", "algorithm"),
    ] {
        let error = algorithm(line).map(drop).unwrap_err().to_string();
        assert!(error.contains(expected), "{line}: {error}");
    }
}

#[test]
fn a_key_without_effect_is_refused_with_its_owner() {
    for (line, expected, of) in [
        ("game=seaquest head.frequencies=28", "head.frequencies", "head=fourier"),
        ("env=hopper head.std=state", "head.std", "head=gmm"),
        (
            "env=hopper head=fourier head.regularizer=paper",
            "head.regularizer",
            "head=fourier on bins",
        ),
        ("game=seaquest head.action_order=compass", "head.action_order", "head=fourier or gmm"),
        ("game=seaquest attention.power=6", "attention.power", "attention=fourier"),
        (
            "env=hopper head=fourier head.bins=9 head.action_order=compass",
            "head.action_order",
            "a task with discrete actions",
        ),
        ("game=seaquest head.bins=50", "head.bins", "a task with continuous actions"),
        ("env=hopper data.run=2", "data.run", "a task with pixel observations"),
        ("game=seaquest data.fragment=keep", "data.fragment", "a file of arrays"),
        ("game=seaquest discrete_cql.alpha=1", "discrete_cql.alpha", "algorithm=discrete_cql"),
        ("game=seaquest train.epochs=3", "train.epochs", "train.updates=0"),
        ("game=seaquest train.warmup_updates=5", "train.warmup_updates", "train.schedule=constant"),
        (
            "env=hopper profile=paper train.decay_horizon=2",
            "train.decay_horizon",
            "train.schedule=cosine",
        ),
        (
            "env=hopper algorithm=td3_bc evaluation.return_quantile=0.5",
            "evaluation.return_quantile",
            "algorithm=decision_transformer",
        ),
        (
            "env=hopper algorithm=td3_bc evaluation.top_percent=10",
            "evaluation.top_percent",
            "algorithm=decision_transformer or rvs",
        ),
        (
            "env=hopper evaluation.every=0 evaluation.every_episodes=3",
            "evaluation.every_episodes",
            "evaluation.every=auto or at least 1",
        ),
        (
            "game=seaquest algorithm=discrete_cql head=fourier",
            "head",
            "algorithm=decision_transformer or behavior_cloning or rvs or iql",
        ),
        (
            "env=hopper algorithm=iql train.micro_batches=2",
            "train.micro_batches",
            "algorithm=decision_transformer or behavior_cloning or rvs",
        ),
        (
            "env=hopper algorithm=rvs attention.power=6",
            "attention.power",
            "algorithm=decision_transformer or behavior_cloning",
        ),
        (
            "env=hopper algorithm=behavior_cloning model.kind=perceptron attention=fourier",
            "attention",
            "model.kind=transformer",
        ),
        ("env=hopper model.kind=perceptron", "model.kind", "algorithm=behavior_cloning"),
    ] {
        match error(line) {
            ConfigError::OtherVariant { key, of: got, .. } => {
                assert_eq!((&*key, &*got), (expected, of), "{line}");
            }
            other => panic!("{line}: {other}"),
        }
    }
    // Defaults of other variants are not errors, and `none` is valid for all of them.
    for line in [
        "game=seaquest profile=paper train.epochs=3",
        "env=hopper algorithm=behavior_cloning model.return_head=none model.top_percents=none",
    ] {
        resolve(line).unwrap();
    }
}

/// Damaged configurations of runs are refused, or read and written again.
#[test]
fn damaged_configurations_are_refused() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("config.toml");
    for line in ["game=seaquest", "env=hopper"] {
        let sound = resolve(line).unwrap().to_toml().unwrap();
        let mut generator = seed::generator(1, "config");
        let (mut accepted, mut refused) = (0, 0);
        for _ in 0..1000 {
            let bytes = mutate(&[sound.as_bytes()], 0, &mut generator);
            std::fs::write(&path, bytes).unwrap();
            let _ = device_of(&path);
            match RunConfig::load(&path) {
                Ok(config) => {
                    accepted += 1;
                    config.to_toml().unwrap();
                }
                Err(error) => {
                    refused += 1;
                    assert!(!error.to_string().is_empty());
                }
            }
        }
        assert!(accepted > 20 && refused > 20, "{accepted} accepted, {refused} refused");
    }
    for text in
        [format!("a = {}", "[".repeat(100_000)), format!("{} = 1", vec!["a"; 100_000].join("."))]
    {
        std::fs::write(&path, text).unwrap();
        assert!(RunConfig::load(&path).is_err());
    }
    std::fs::write(&path, "task = \"ale/seaquest\"\nseed = 1\n").unwrap();
    let error = RunConfig::load(&path).unwrap_err();
    assert!(matches!(error.downcast_ref(), Some(ConfigError::Format { .. })), "{error}");
}
