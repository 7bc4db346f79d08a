//! `overtone export` and `overtone import`: agents as files for other programs.

mod card;
mod import;

use std::{
    fs,
    path::{Path, PathBuf},
};

use anyhow::{Context, Result, bail, ensure};
use overtone_agents::{
    Agent,
    exchange::{DESCRIPTION, Description, LAYOUT, WEIGHTS},
    hugging_face,
};
use overtone_console::quoted;
use overtone_files as files;
use overtone_model::{ModelConfig, weights};
use overtone_train::run_dir::CONFIG;

pub use self::import::{IMPORT_OPTIONS, import};
use super::evaluate::{OwnChoice, check_top_percent};
use crate::{
    keys::{self, Keys},
    runs::{open_checkpoint, open_run},
};

/// Every option of `export` with its default and reason.
pub const EXPORT_OPTIONS: &str = r#"
# A run's directory or name, or the first word without =; empty: the newest run.
run = ""
# Directory that contains the runs.
runs = "runs"
# last; best, the lowest loss on held-out episodes; the number of an update; or a checkpoint's directory.
checkpoint = "last"
# hf: for Hugging Face's transformers, which supports few agents. safetensors: every agent, with Overtone's own names.
format = "hf"
# Fix the condition of the exported agent to this top percentage (format=hf with model.top_percents only); it then ignores returns. 0: it is conditioned on returns. Empty: the run's chosen mode.
top_percent = ""
# The directory to write, or the second word without =. Required.
to = ""
"#;

/// The description of a model in transformers.
const THEIRS: &str = "config.json";

/// `overtone export RUN key=value… OUT`.
pub fn export(words: &[String]) -> Result<()> {
    let (keys, _) = given(EXPORT_OPTIONS, words, &["run", "to"])?;
    let text = |key: &str| keys::text(&keys, key);
    let to = folder(&keys, "to", "write")?;
    if to.exists() {
        bail!("to={}: exists already. Use another directory, or move it away", to.display());
    }
    let root = PathBuf::from(text("runs"));
    let run = open_run(&root, &text("run"))?;
    let checkpoint = open_checkpoint(&run, &text("checkpoint"))?;
    let agent = Agent::of(&checkpoint)?;
    let own = checkpoint.weights()?;
    let chosen = OwnChoice::of(&run, &checkpoint)?;
    let top_percent = match text("top_percent").as_str() {
        "" => chosen.own(&agent.matched()).acting.top_percent,
        word => {
            word.parse().ok().with_context(|| format!("top_percent={word}: expected a number"))?
        }
    };
    let theirs = match text("format").as_str() {
        "safetensors" => {
            let percent = text("top_percent");
            ensure!(
                percent.is_empty(),
                "top_percent={percent} applies only to format=hf. Leave it out: other formats \
                 contain all percentages"
            );
            None
        }
        "hf" => {
            check_top_percent(top_percent, &agent.top_percents())?;
            let theirs = hugging_face::export(&agent, &own, top_percent).with_context(|| {
                let path = checkpoint.path.display();
                let others = match (agent.algorithm.model(), &agent.top_percents()[..]) {
                    (Some(ModelConfig::Transformer(_)), [first, ..]) => {
                        format!(", or top_percent={first}")
                    }
                    _ => String::new(),
                };
                format!("cannot export {path} for transformers (use format=safetensors{others})")
            })?;
            Some(theirs)
        }
        other => bail!("format={other}: expected hf or safetensors"),
    };
    let config = run.path().join(CONFIG);
    let description = Description {
        layout: LAYOUT,
        overtone: env!("CARGO_PKG_VERSION").into(),
        sha256: checkpoint.weights_sha256()?,
        state: checkpoint.state.clone(),
        settings: fs::read_to_string(&config).with_context(|| config.display().to_string())?,
        choice: chosen.choice.map(serde_json::to_value).transpose()?,
    };
    let card = match theirs {
        Some(_) => card::for_transformers(&agent, &checkpoint.state, top_percent),
        None => card::own(&agent, &checkpoint.state, &card::returns(&run, &checkpoint.state)),
    };
    let unfinished = files::beside(&to);
    let written = || -> Result<()> {
        fs::create_dir_all(&unfinished)?;
        match &theirs {
            Some((config, tensors)) => {
                let metadata = [("format".to_owned(), "pt".to_owned())].into();
                weights::save(tensors, &metadata, &unfinished.join(WEIGHTS))?;
                fs::write(unfinished.join(THEIRS), serde_json::to_vec_pretty(config)?)?;
            }
            None => drop(fs::copy(checkpoint.path.join(WEIGHTS), unfinished.join(WEIGHTS))?),
        }
        fs::write(unfinished.join(DESCRIPTION), serde_json::to_vec_pretty(&description)?)?;
        fs::write(unfinished.join("README.md"), &card)?;
        Ok(files::put(&unfinished, &to)?)
    };
    written()
        .inspect_err(|_| drop(fs::remove_dir_all(&unfinished)))
        .with_context(|| format!("to={}", to.display()))?;
    say!("exported {} to {}", checkpoint.path.display(), to.display());
    if theirs.is_some() && top_percent > 0.0 {
        say!(
            "it is conditioned on the top {top_percent} % of its data and ignores returns (use \
             top_percent=0 for returns)"
        );
    }
    match theirs {
        Some(_) => say!(
            "load it in transformers: DecisionTransformerModel.from_pretrained({:?})",
            to.display().to_string()
        ),
        None => say!("import it as a run: overtone import {}", quoted(&to)),
    }
    Ok(())
}

/// The directory in `key`, to `verb`.
fn folder(keys: &Keys, key: &str, verb: &str) -> Result<PathBuf> {
    let given = keys::text(keys, key);
    ensure!(!given.is_empty(), "{key}=: no directory to {verb} is set. Set one");
    Ok(PathBuf::from(given))
}

/// All options by key, and the options in `words`. Words without `=` are values of `places`, in
/// that order.
fn given(defaults: &str, words: &[String], places: &[&str]) -> Result<(Keys, Vec<String>)> {
    let (mut options, names) = keys::sorted(defaults, words)?;
    if let Some(word) = names.get(places.len()) {
        bail!("`{word}`: unexpected word. Leave it out");
    }
    options.extend(places.iter().zip(names).map(|(key, name)| format!("{key}={name}")));
    Ok((keys::given(defaults, &options)?, options))
}

fn parsed<T: serde::de::DeserializeOwned>(path: &Path) -> Result<T> {
    let text = fs::read(path).with_context(|| format!("{}", path.display()))?;
    serde_json::from_slice(&text).with_context(|| format!("{} is damaged", path.display()))
}
