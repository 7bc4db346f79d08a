//! `key=value` words: setting them on a configuration, and errors of invalid ones.

use std::path::Path;

use overtone_agents::AlgorithmKind;
use overtone_console::keys::{self, Keys};
use overtone_core::{
    ActionSpace, ObservationSpace, Task,
    names::{find, nearest, plain},
};
use overtone_data::read::takes_columns;
use overtone_model::{AttentionConfig, head::HeadConfig};
use overtone_train::ScheduleKind;
use toml::Value;

use crate::{
    agent::AgentConfig,
    auto_or::AutoOr,
    defaults::{Choices, defaults},
    error::ConfigError,
    options,
    positive::Percents,
    recording::datasets_of,
    run_config::{Profile, RunConfig},
    sequence::{ReturnHead, ReturnUnit, SequenceConfig, Time},
};

/// Abbreviations of algorithms in papers.
const SHORT: [(&str, &str); 4] = [
    ("dt", "decision_transformer"),
    ("bc", "behavior_cloning"),
    ("cql", "discrete_cql"),
    ("td3", "td3_bc"),
];

/// A number of bins of continuous actions, for listing keys of heads on bins.
const BINS: usize = 50;

/// A key with its value.
#[derive(Clone, Debug)]
pub(crate) struct Word {
    pub key: String,
    pub text: String,
    /// Whether the user set it; else it is inherited from another run and may lack an effect.
    pub is_explicit: bool,
}

impl Word {
    /// Whether `word`, `key=value`, is the same.
    pub fn is(&self, word: &str) -> bool {
        keys::split(word).is_ok_and(|(key, text)| key == self.key && text == self.text)
    }
}

/// Splits `words` into keys and values.
///
/// # Errors
/// For a word without `=`.
pub(crate) fn parse(words: &[String], is_explicit: bool) -> anyhow::Result<Vec<Word>> {
    let word = |word: &String| {
        let (key, text) = keys::split(word)?;
        Ok(Word { key, text: text.to_owned(), is_explicit })
    };
    words.iter().map(word).collect()
}

fn last<'a>(words: &'a [Word], key: &str) -> Option<&'a str> {
    words.iter().rev().find(|word| word.key == key).map(|word| &*word.text)
}

/// The variants that words choose.
pub(crate) fn choices(words: &[Word], profile: Profile) -> Result<Choices<'_>, ConfigError> {
    let algorithm = match last(words, "algorithm") {
        None => AlgorithmKind::DecisionTransformer,
        Some("best") => {
            let reason = "only `overtone train` trains several algorithms. Name one";
            return Err(ConfigError::value("algorithm", "best", reason));
        }
        Some(name) => AlgorithmKind::named(name).ok_or_else(|| {
            let known: Vec<&str> = AlgorithmKind::ALL.iter().map(|kind| kind.name()).collect();
            let meant = find(&known, name).or_else(|| {
                let short = SHORT.iter().find(|(short, _)| *short == plain(name));
                short.map(|(_, name)| *name).or_else(|| nearest(&known, name))
            });
            let hint =
                meant.map_or("expected".into(), |name| format!("did you mean {name}? Expected"));
            let reason = format!("{hint} one of {}, or in train best", known.join(", "));
            ConfigError::value("algorithm", name, reason)
        })?,
    };
    let bins = last(words, "head.bins").unwrap_or("0");
    let whole = |_| ConfigError::value("head.bins", bins, "expected a whole number, 0 or more");
    Ok(Choices {
        algorithm,
        profile,
        kind: last(words, "model.kind"),
        head: last(words, "head.kind"),
        bins: bins.replace('_', "").parse().map_err(whole)?,
        attention: last(words, "attention.kind"),
    })
}

/// The profile that words choose.
pub(crate) fn profile(words: &[Word]) -> Result<Profile, ConfigError> {
    let text = last(words, "profile").unwrap_or("auto");
    let profile = Value::String(text.into()).try_into();
    profile.map_err(|error: toml::de::Error| {
        ConfigError::value("profile", text, keys::one_line(error).to_string())
    })
}

/// The defaults of `task` with `words` on top.
pub(crate) fn of_words(
    task: &Task,
    words: &[Word],
    profile: Profile,
) -> Result<RunConfig, ConfigError> {
    let choices = choices(words, profile)?;
    let mut config = defaults(task, &choices)?;
    for (place, Word { key, text, is_explicit }) in words.iter().enumerate() {
        // The last value of a repeated key counts.
        if words[place + 1..].iter().any(|later| later.key == *key) {
            continue;
        }
        let known =
            config.keys().map_err(|error| ConfigError::value(key, text, error.to_string()))?;
        match options::with(&config, &known, key, text)? {
            Some(changed) => config = changed,
            // `none` is valid for every variant.
            None if !is_explicit || (text == "none" && is_known(key)) => {}
            None => return Err(refusal(task, &choices, key, text)),
        }
    }
    config.profile = profile;
    Ok(config)
}

/// Checks that every word that the user set has an effect.
pub(crate) fn check_effects(
    config: &RunConfig,
    task: &Task,
    words: &[Word],
    is_log: bool,
) -> Result<(), ConfigError> {
    for Word { key, text, .. } in words.iter().filter(|word| word.is_explicit) {
        if text == "none" {
            continue;
        }
        if let Some((facet, of, chosen)) = of_task(key, task) {
            let of = format!("a task with {of} {facet}");
            let chosen = format!("{} has {chosen} {facet}", task.id());
            return Err(ConfigError::other(key, text, of, chosen));
        }
        if key.starts_with("data.columns.") && !takes_columns_of(config) {
            let of = "a table (dataset=FILE.csv, FILE.parquet), LeRobot's or robomimic's data";
            let chosen = "this dataset is none of them".into();
            return Err(ConfigError::other(key, text, of.into(), chosen));
        }
        let of_log = ["data.run", "data.selection", "data.transitions", "data.cache"];
        let of_arrays = ["data.fragment", "data.shares", "data.top_percent", "data.delayed_reward"];
        let [log, arrays] = ["a log of frames", "a file of arrays"];
        // Several datasets may be of both kinds.
        let is_one = datasets_of(&config.dataset).len() == 1;
        let (of, chosen) = if is_one && of_log.contains(&&**key) && !is_log {
            (log.to_owned(), format!("this dataset is {arrays}"))
        } else if of_arrays.contains(&&**key) && is_log {
            (arrays.to_owned(), format!("this dataset is {log}"))
        } else {
            match needs(config, task, key, text) {
                Some((of, chosen)) => (of, format!("this run has {chosen}")),
                None => continue,
            }
        };
        return Err(ConfigError::other(key, text, of, chosen));
    }
    Ok(())
}

/// Whether the user names the columns of one of the datasets.
fn takes_columns_of(config: &RunConfig) -> bool {
    let takes = |name: &&str| takes_columns(Path::new(name));
    takes_columns(&config.data.path) || datasets_of(&config.dataset).iter().any(takes)
}

/// The setting that `key` needs to have an effect, and this run's setting; `None` if it has
/// one.
fn needs(config: &RunConfig, task: &Task, key: &str, text: &str) -> Option<(String, String)> {
    let train = &config.train;
    let algorithm = || format!("algorithm={}", config.agent.kind().name());
    let among = |has: fn(&AgentConfig) -> bool| {
        (!has(&config.agent)).then(|| {
            let others = AlgorithmKind::ALL.iter().copied().filter(|kind| {
                let usual = defaults(task, &Choices::usual(*kind, Profile::Quick));
                usual.is_ok_and(|usual| has(&usual.agent))
            });
            (one_of("algorithm", others.map(AlgorithmKind::name)), algorithm())
        })
    };
    let unless =
        |is_met: bool, of: &str, chosen: String| (!is_met).then(|| (of.to_owned(), chosen));
    let schedule = |kind: ScheduleKind, of: &str, chosen: &str| {
        unless(train.schedule == kind, of, chosen.to_owned())
    };
    let returns = match &config.agent {
        AgentConfig::Sequence(SequenceConfig::DecisionTransformer { model, .. }) => Some(model),
        _ => None,
    };
    let (cosine, constant) = ("train.schedule=cosine", "train.schedule=constant");
    match key {
        "train.micro_batches" => among(AgentConfig::steps_in_parts),
        "train.warmup_updates" => schedule(ScheduleKind::Constant, constant, cosine),
        "train.warmup_tokens" | "train.decay_horizon" => {
            schedule(ScheduleKind::Cosine, cosine, constant)
        }
        "train.epochs" => {
            let chosen = format!("train.updates={}", train.updates);
            unless(train.updates == 0, "train.updates=0", chosen)
        }
        "model.timestep_std" => {
            let transformer = config.agent.sequence().and_then(SequenceConfig::transformer);
            let is_met = transformer.is_none_or(|model| model.time == Time::Episode);
            unless(is_met, "model.time=episode", "model.time=context".into())
        }
        "model.return_head" => {
            let is_met = returns?.return_unit != ReturnUnit::Scale;
            let of = "model.return_unit=range or rate";
            unless(is_met, of, "model.return_unit=scale".into())
        }
        "evaluation.return_quantile" => match returns {
            Some(model) => {
                let is_met = model.return_head != ReturnHead::None;
                unless(is_met, "model.return_head=hl_gauss", "model.return_head=none".into())
            }
            None => among(|agent| agent.kind() == AlgorithmKind::DecisionTransformer),
        },
        "evaluation.top_percent" => match top_percents(&config.agent) {
            Some(percents) => {
                let is_met = text == "0" || !percents.0.is_empty();
                unless(is_met, "model.top_percents=10,50,100", "model.top_percents=none".into())
            }
            None => among(|agent| top_percents(agent).is_some()),
        },
        "evaluation.every_episodes" => {
            let is_met = config.evaluation.every != AutoOr::Number(0);
            unless(is_met, "evaluation.every=auto or at least 1", "evaluation.every=0".into())
        }
        _ => None,
    }
}

fn top_percents(agent: &AgentConfig) -> Option<&Percents> {
    agent.sequence()?.top_percents()
}

/// The kind of task that `key` needs, and the kind of `task`: `("actions", "discrete", …)`. `None`
/// if they agree.
fn of_task(key: &str, task: &Task) -> Option<(&'static str, &'static str, &'static str)> {
    let (pixels, vectors) = ("pixel", "vector");
    let (discrete, continuous) = ("discrete", "continuous");
    let is_pixels = matches!(task.observations, ObservationSpace::Pixels { .. });
    let is_discrete = matches!(task.actions, ActionSpace::Discrete { .. });
    match key {
        "data.run"
        | "data.selection"
        | "data.transitions"
        | "data.cache"
        | "train.frames_on_gpu_gb"
            if !is_pixels =>
        {
            Some(("observations", pixels, vectors))
        }
        "model.timestep_std" | "model.return_head" | "iql.n_layers" if is_pixels => {
            Some(("observations", vectors, pixels))
        }
        "head.action_order" | "evaluation.temperature" if !is_discrete => {
            Some(("actions", discrete, continuous))
        }
        "head.bins" | "evaluation.actions" if is_discrete => {
            Some(("actions", continuous, discrete))
        }
        _ => None,
    }
}

/// `head=fourier or gmm`.
fn one_of<'a>(key: &str, words: impl Iterator<Item = &'a str>) -> String {
    let mut distinct: Vec<&str> = Vec::new();
    for word in words {
        if !distinct.contains(&word) {
            distinct.push(word);
        }
    }
    format!("{key}={}", distinct.join(" or "))
}

fn has_key(task: &Task, choices: &Choices<'_>, key: &str) -> bool {
    let keys = defaults(task, choices).ok().and_then(|config| config.keys().ok());
    keys.is_some_and(|keys| keys.contains_key(key))
}

/// The error of a key that a run of these choices does not have.
fn refusal(task: &Task, choices: &Choices<'_>, key: &str, text: &str) -> ConfigError {
    if let Some((facet, of, chosen)) = of_task(key, task) {
        let of = format!("a task with {of} {facet}");
        let chosen = format!("{} has {chosen} {facet}", task.id());
        return ConfigError::other(key, text, of, chosen);
    }
    let other = |of: String, chosen: String| {
        ConfigError::other(key, text, of, format!("this run has {chosen}"))
    };
    let has = |choices: &Choices<'_>| has_key(task, choices, key);
    let owners = AlgorithmKind::ALL.iter().copied();
    let owners: Vec<AlgorithmKind> =
        owners.filter(|kind| all_choices(task, *kind).iter().any(has)).collect();
    if owners.is_empty() {
        // `gamma` of an algorithm with a discount.
        let own = format!("{}.{key}", choices.algorithm.name());
        return match has_key(task, choices, &own) {
            true => ConfigError::UnknownKey { key: key.into(), nearest: Some(own) },
            false => unknown(key),
        };
    }
    if !owners.contains(&choices.algorithm) {
        let of = one_of("algorithm", owners.into_iter().map(AlgorithmKind::name));
        return other(of, format!("algorithm={}", choices.algorithm.name()));
    }
    let among = |name: &'static str,
                 words: Vec<&'static str>,
                 with: fn(&mut Choices<'_>, &'static str),
                 chosen: &str| {
        let is_of = |word: &&'static str| {
            let mut choices = *choices;
            with(&mut choices, word);
            has(&choices)
        };
        let words: Vec<&str> = words.into_iter().filter(is_of).collect();
        let of = one_of(name, words.iter().copied());
        (!words.is_empty()).then(|| other(of, format!("{name}={chosen}")))
    };
    let kinds = vec!["transformer", "perceptron"];
    let kind = choices.kind.unwrap_or("transformer");
    let usual = defaults(task, choices).map(|config| config.keys().unwrap_or_default());
    let usual = usual.unwrap_or_default();
    let [head, attention] = ["head.kind", "attention.kind"]
        .map(|key| usual.get(key).map(keys::plain).unwrap_or_default());
    let heads = head_words(task, choices.bins);
    let attentions = AttentionConfig::choices().iter().map(|choice| choice.word).collect();
    among("model.kind", kinds, |choices, word| choices.kind = Some(word), kind)
        .or_else(|| among("head", heads, |choices, word| choices.head = Some(word), &head))
        .or_else(|| {
            among(
                "attention",
                attentions,
                |choices, word| choices.attention = Some(word),
                &attention,
            )
        })
        .unwrap_or_else(|| {
            let of = format!("head={head} on bins");
            let chosen = "set the number of bins, such as head.bins=50";
            match all_choices(task, choices.algorithm).iter().filter(|all| all.bins > 0).any(has) {
                true => ConfigError::other(key, text, of, chosen.into()),
                false => unknown(key),
            }
        })
}

fn head_words(task: &Task, bins: usize) -> Vec<&'static str> {
    HeadConfig::choices(&task.actions, bins).iter().map(|choice| choice.word).collect()
}

/// Every variant of an algorithm for `task`.
pub(crate) fn all_choices(task: &Task, algorithm: AlgorithmKind) -> Vec<Choices<'static>> {
    let usual = Choices::usual(algorithm, Profile::Quick);
    let mut all = vec![usual, Choices { kind: Some("perceptron"), ..usual }];
    for attention in AttentionConfig::choices() {
        all.push(Choices { attention: Some(attention.word), ..usual });
    }
    let is_discrete = matches!(task.actions, ActionSpace::Discrete { .. });
    for bins in if is_discrete { vec![0] } else { vec![0, BINS] } {
        for head in head_words(task, bins) {
            all.push(Choices { head: Some(head), bins, ..usual });
        }
    }
    all
}

/// Every key of every variant with a value of its type.
pub fn known_keys() -> Keys {
    let pixels = ObservationSpace::Pixels { shape: vec![4, 84, 84] };
    let vectors = ObservationSpace::Vectors { width: 11 };
    let discrete = Task::own("any", pixels, ActionSpace::numbered(2));
    let continuous = Task::own("any", vectors, ActionSpace::unit(2));
    let mut known = Keys::new();
    for task in [&discrete, &continuous] {
        for choices in AlgorithmKind::ALL.iter().flat_map(|kind| all_choices(task, *kind)) {
            let config = defaults(task, &choices).ok().and_then(|config| config.keys().ok());
            for (key, value) in config.unwrap_or_default() {
                known.entry(key).or_insert(value);
            }
        }
    }
    known
}

fn is_known(key: &str) -> bool {
    known_keys().contains_key(key)
}

/// The error of a key that no variant has.
pub(crate) fn unknown(key: &str) -> ConfigError {
    ConfigError::unknown(key, &known_keys())
}
