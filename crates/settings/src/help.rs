//! The part of `--help` about a run's keys: the docs of their fields, and the defaults.

use std::collections::BTreeSet;

use anyhow::Result;
use overtone_agents::AlgorithmKind;
use overtone_console::keys;
use overtone_core::{ActionSpace, ObservationSpace, Task};
use overtone_data::TableColumns;
use overtone_model::{AttentionConfig, head::HeadConfig};
use overtone_train::{AdamWConfig, TrainConfig};
use toml::Value;

use crate::{
    defaults::{Choices, defaults},
    docs::section,
    options,
    run_config::{DataConfig, EvaluationConfig, Profile, RunConfig},
    suites,
};

/// The keys that most runs set, in the order of the short help.
const USUAL: [&str; 18] = [
    "task",
    "dataset",
    "data.path",
    "algorithm",
    "head.kind",
    "attention.kind",
    "profile",
    "seed",
    "device",
    "init",
    "resume",
    "runs",
    "train.updates",
    "train.batch_size",
    "train.learning_rate",
    "train.held_out",
    "evaluation.episodes",
    "evaluation.target",
];

/// A key, its default and its documentation.
struct Line {
    key: String,
    value: String,
    doc: String,
}

/// The usual keys with the first sentence of their documentation, or `all` keys with all of it.
pub fn help(all: bool) -> String {
    // The types are the program's own, and a test reads the text.
    text(all).unwrap_or_else(|error| error.to_string())
}

fn text(all: bool) -> Result<String> {
    let lines = lines()?;
    if all {
        let text: String =
            lines.iter().map(|line| options::line(&line.key, &line.value, &line.doc)).collect();
        return Ok(text + &differing_defaults(suites::by_id(FIRST)?)?);
    }
    let usual = USUAL.iter().filter_map(|key| lines.iter().find(|line| line.key == *key));
    Ok(usual.map(|line| options::line(&line.key, &line.value, first_sentence(&line.doc))).collect())
}

/// `doc` up to its first full stop.
fn first_sentence(doc: &str) -> &str {
    doc.split_inclusive(". ").next().unwrap_or(doc).trim_end()
}

/// The help of `algorithm=best`, and of the choice.
const BEST: &str = "best: trains decision_transformer, rvs and rebrac (rewards that rarely change: \
                    iql instead of rvs; discrete actions: discrete_cql instead of rebrac), then keeps \
                    the run and the mode that selection episodes choose (vectors only). For seconds take rvs, for minutes decision_transformer, for \
                    more time best (docs/how-to/which-algorithm.md).";

/// The task whose defaults are listed first.
const FIRST: &str = "mujoco/hopper";

/// Every key once, in the order of the full help.
fn lines() -> Result<Vec<Line>> {
    let task = suites::by_id(FIRST)?;
    let mut lines = Lines::default();
    let kinds = AlgorithmKind::ALL;
    let of = |task, choices: &Choices<'_>| defaults(task, choices)?.keys();
    let first = of(task, &Choices::usual(kinds[0], Profile::Quick))?;
    let names: Vec<&str> = kinds.iter().map(|kind| kind.name()).collect();
    let abouts: Vec<String> =
        kinds.iter().map(|kind| format!("{}: {}", kind.name(), kind.about().trim())).collect();
    let algorithm = format!("Algorithm: {}, best. {} {BEST}", names.join(", "), abouts.join(" "));
    for (key, doc) in section::<RunConfig>("") {
        let Some(value) = first.get(&key) else { continue };
        let value = if key == "task" { String::new() } else { keys::plain(value) };
        lines.add(&key, value, doc);
        if key == "dataset" {
            lines.add("algorithm", kinds[0].name().to_owned(), &algorithm);
        }
    }
    let sections = [
        section::<DataConfig>("data"),
        section::<TableColumns>("data.columns"),
        section::<TrainConfig>("train"),
        section::<AdamWConfig>("train.optimizer"),
        section::<EvaluationConfig>("evaluation"),
    ];
    for (key, doc) in sections.concat() {
        if let Some(value) = first.get(&key) {
            lines.add(&key, keys::plain(value), doc);
        }
    }
    for kind in kinds {
        let config = defaults(task, &Choices::usual(*kind, Profile::Quick))?;
        let keys = config.keys()?;
        for (key, doc) in config.agent.docs() {
            if let Some(value) = keys.get(&key) {
                lines.add(&key, keys::plain(value), doc);
            }
        }
    }
    let attentions = AttentionConfig::choices();
    let names: Vec<&str> = attentions.iter().map(|choice| choice.word).collect();
    let attention = format!("Attention of a transformer: {}.", names.join(" or "));
    lines.add("attention.kind", "softmax".into(), &attention);
    let spaces = [ActionSpace::numbered(2), ActionSpace::unit(2)];
    let [discrete, continuous] = spaces.each_ref().map(|actions| {
        let choices = HeadConfig::choices(actions, 0);
        choices.iter().map(|choice| choice.word).collect::<Vec<_>>().join(", ")
    });
    let head =
        format!("Action head: {discrete} (discrete actions); {continuous} (continuous actions).");
    lines.add("head.kind", "tanh".into(), &head);
    lines.add(
        "head.bins",
        "0".into(),
        "Bins of each action dimension on [-1, 1], for a head on bins (continuous actions only); \
         0: a head on continuous values.",
    );
    for choice in attentions {
        let stored = toml::Table::try_from(choice.config)?;
        lines.variant("attention", choice.word, choice.about, choice.keys, &stored);
    }
    for actions in &spaces {
        for choice in HeadConfig::choices(actions, 0) {
            let stored = toml::Table::try_from(&choice.config)?;
            lines.variant("head", choice.word, choice.about, choice.keys, &stored);
        }
    }
    Ok(lines.all)
}

/// Lines, each key once.
#[derive(Default)]
struct Lines {
    all: Vec<Line>,
    seen: BTreeSet<String>,
}

impl Lines {
    fn add(&mut self, key: &str, value: String, doc: &str) {
        if self.seen.insert(key.to_owned()) {
            let doc = doc.split_whitespace().collect::<Vec<_>>().join(" ");
            self.all.push(Line { key: key.into(), value, doc });
        }
    }

    /// A head or an attention, with its word and its keys.
    fn variant(
        &mut self,
        section: &str,
        word: &str,
        about: &str,
        own: &[(&str, &str)],
        stored: &toml::Table,
    ) {
        let doc = about.trim().to_owned();
        self.all.push(Line { key: format!("{section}.kind"), value: word.into(), doc });
        for (name, doc) in own {
            let value = stored.get(*name).map(keys::plain).unwrap_or_default();
            self.add(&format!("{section}.{name}"), value, doc);
        }
    }
}

/// Defaults that differ by task, algorithm and profile.
fn differing_defaults(first: &Task) -> Result<String> {
    let pixels = ObservationSpace::Pixels { shape: vec![4, 84, 84] };
    let own = |observations, actions| Task::own("own", observations, actions);
    let frames = suites::by_id("ale/seaquest")?;
    let small = own(ObservationSpace::Vectors { width: 4 }, ActionSpace::numbered(2));
    let large = own(ObservationSpace::Vectors { width: 9 }, ActionSpace::unit(2));
    let images = own(pixels, ActionSpace::numbered(2));
    let [decision_transformer, ..] = *AlgorithmKind::ALL else { return Ok(String::new()) };
    let usual = Choices::usual(decision_transformer, Profile::Quick);
    let paper = Choices { profile: Profile::Paper, ..usual };
    let perceptron =
        Choices { algorithm: AlgorithmKind::BehaviorCloning, kind: Some("perceptron"), ..usual };
    let mut all = vec![
        ("env=hopper profile=paper".to_owned(), first, paper),
        ("game=seaquest".into(), frames, usual),
        ("game=seaquest profile=paper".into(), frames, paper),
        ("own=… with continuous actions".into(), &large, usual),
        ("own=… with at most 8 numbers and discrete actions".into(), &small, usual),
        ("own=… with images".into(), &images, usual),
        ("algorithm=behavior_cloning model.kind=perceptron".into(), first, perceptron),
    ];
    for algorithm in AlgorithmKind::ALL.iter().skip(1).copied() {
        let name = algorithm.name();
        all.push((format!("algorithm={name}"), first, Choices { algorithm, ..usual }));
        let choices = Choices { algorithm, ..paper };
        all.push((format!("algorithm={name} profile=paper"), first, choices));
    }
    let base = defaults(first, &usual)?.keys()?;
    let mut lines = "\nDefaults that differ; the values above are for env=hopper:\n".to_owned();
    for (of, task, choices) in all {
        let own = defaults(first, &Choices { profile: Profile::Quick, ..choices })?.keys()?;
        let is_other = |(key, value): &(String, Value)| {
            let is_choice = ["task", "algorithm", "profile"].contains(&&**key);
            let before = base.get(key).or_else(|| own.get(key));
            !is_choice && before.is_some_and(|before| before != value)
        };
        let keys = defaults(task, &choices)?.keys()?.into_iter().filter(is_other);
        let words =
            keys.map(|(key, value)| format!("{}={}", keys::short(&key), keys::plain(&value)));
        let words: Vec<String> = words.collect();
        if !words.is_empty() {
            lines += &format!("  {of}:\n      {}\n", words.join(" "));
        }
    }
    Ok(lines)
}
