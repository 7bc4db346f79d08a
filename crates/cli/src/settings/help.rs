//! What `--help` shows of a run's keys: the docs of their fields, and the defaults.

use std::collections::BTreeSet;

use anyhow::Result;
use overtone_agents::AlgorithmKind;
use overtone_core::{ActionSpace, ObservationSpace, Task};
use overtone_model::{AttentionConfig, head::HeadConfig};
use overtone_train::{AdamWConfig, TrainConfig};
use toml::Value;

use super::{
    Choices, DataConfig, EvaluationConfig, Profile, RunConfig,
    agent::{Docs, section},
    defaults,
};
use crate::{keys, suites};

/// What `--help` shows: every key with its default and the reason for it.
pub fn help() -> String {
    // The types are the program's own, and a test reads what is made of them.
    lines().unwrap_or_else(|error| error.to_string())
}

/// The task whose defaults come first.
const FIRST: &str = "mujoco/hopper";

fn lines() -> Result<String> {
    let task = suites::by_id(FIRST)?;
    let mut text = String::new();
    let mut seen = BTreeSet::new();
    let mut line = |key: &str, value: String, doc: &str, text: &mut String| {
        if seen.insert(key.to_owned()) {
            let doc = doc.split_whitespace().collect::<Vec<_>>().join(" ");
            *text += &format!("  {}={value}\n      {doc}\n", keys::short(key));
        }
    };
    let kinds = AlgorithmKind::ALL;
    let of = |task, choices: &Choices<'_>| defaults(task, choices)?.keys();
    let first = of(task, &Choices::usual(kinds[0], Profile::Quick))?;
    let abouts: Vec<String> =
        kinds.iter().map(|kind| format!("{}: {}", kind.name(), kind.about().trim())).collect();
    let own: Vec<(AlgorithmKind, Docs)> = kinds
        .iter()
        .map(|kind| {
            Ok((*kind, defaults(task, &Choices::usual(*kind, Profile::Quick))?.agent.docs()))
        })
        .collect::<Result<_>>()?;
    let of_run = section::<RunConfig>("").into_iter();
    let of_run = of_run.filter(|(key, _)| first.contains_key(key));
    let sections = [
        section::<DataConfig>("data"),
        section::<TrainConfig>("train"),
        section::<AdamWConfig>("train.optimizer"),
        section::<EvaluationConfig>("evaluation"),
    ];
    for (key, doc) in of_run {
        let value = if key == "task" { String::new() } else { keys::text(&first, &key) };
        line(&key, value, doc, &mut text);
        if key == "dataset" {
            line("algorithm", keys::text(&first, "algorithm"), &abouts.join(" "), &mut text);
        }
    }
    for (key, doc) in sections.concat() {
        if let Some(value) = first.get(&key) {
            line(&key, keys::plain(value), doc, &mut text);
        }
    }
    for (kind, docs) in own {
        let keys = of(task, &Choices::usual(kind, Profile::Quick))?;
        for (key, doc) in docs {
            if let Some(value) = keys.get(&key) {
                line(&key, keys::plain(value), doc, &mut text);
            }
        }
    }
    text += "  attention=softmax\n      How queries are compared with keys; all attentions and \
             their keys are below.\n";
    text +=
        "  head=tanh\n      How a token becomes an action; all heads and their keys are below.\n";
    text += "  head.bins=0\n      Continuous actions: bins of each number on [-1, 1], for a head on \
             bins; 0: a head on continuous values.\n";
    for choice in AttentionConfig::choices() {
        let stored = toml::Table::try_from(choice.config)?;
        variant("attention", choice.word, choice.about, choice.keys, &stored, &mut text, &mut line);
    }
    for actions in [ActionSpace::numbered(2), ActionSpace::unit(2)] {
        for choice in HeadConfig::choices(&actions, 0) {
            let stored = toml::Table::try_from(&choice.config)?;
            variant("head", choice.word, choice.about, choice.keys, &stored, &mut text, &mut line);
        }
    }
    text += &others(task)?;
    Ok(text)
}

type Line<'a> = dyn FnMut(&str, String, &str, &mut String) + 'a;

/// The lines of a head or an attention: its word, and its keys.
fn variant(
    section: &str,
    word: &str,
    about: &str,
    own: &[(&str, &str)],
    stored: &toml::Table,
    text: &mut String,
    line: &mut Line<'_>,
) {
    *text += &format!("  {section}={word}\n      {}\n", about.trim());
    for (name, doc) in own {
        let value = stored.get(*name).map(keys::plain).unwrap_or_default();
        line(&format!("{section}.{name}"), value, doc, text);
    }
}

/// Where defaults are otherwise: by task, algorithm and profile.
fn others(first: &Task) -> Result<String> {
    let pixels = ObservationSpace::Pixels { shape: vec![4, 84, 84] };
    let own = |observations, actions| Task::own("own", observations, actions);
    let frames = suites::by_id("ale/seaquest")?;
    let small = own(ObservationSpace::Vectors { width: 4 }, ActionSpace::numbered(2));
    let large = own(ObservationSpace::Vectors { width: 9 }, ActionSpace::unit(2));
    let pictures = own(pixels, ActionSpace::numbered(2));
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
        ("own=… with pictures".into(), &pictures, usual),
        ("algorithm=behavior_cloning model.kind=perceptron".into(), first, perceptron),
    ];
    for algorithm in AlgorithmKind::ALL.iter().skip(1).copied() {
        let name = algorithm.name();
        all.push((format!("algorithm={name}"), first, Choices { algorithm, ..usual }));
        let choices = Choices { algorithm, ..paper };
        all.push((format!("algorithm={name} profile=paper"), first, choices));
    }
    let base = defaults(first, &usual)?.keys()?;
    let mut lines = "\nDefaults that are otherwise; those above are of env=hopper:\n".to_owned();
    for (of, task, choices) in all {
        let own = defaults(first, &Choices { profile: Profile::Quick, ..choices })?.keys()?;
        let is_other = |(key, value): &(String, Value)| {
            let is_said = ["task", "algorithm", "profile"].contains(&&**key);
            let before = base.get(key).or_else(|| own.get(key));
            !is_said && before.is_some_and(|before| before != value)
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
