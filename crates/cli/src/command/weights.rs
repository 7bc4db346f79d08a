//! `overtone export` and `overtone import`: agents as files that others read.

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
# A run's folder or name, or the first word without =; empty: the newest run.
run = ""
# Folder of the runs.
runs = "runs"
# last; best: the lowest loss on held-out episodes; the number of an update, or a checkpoint's folder.
checkpoint = "last"
# hf: what Hugging Face's transformers reads, which has a place for few agents. safetensors: every agent, with Overtone's own names.
format = "hf"
# hf: an agent that was told of shares of the best episodes (model.top_percents) acts as in the top 10 %, say, whatever return it is told; 0: it is told returns. Empty: as was chosen for the run.
top_percent = ""
# The folder to write, or the second word without =. Must be given.
to = ""
"#;

/// Transformers' own description.
const THEIRS: &str = "config.json";

/// `overtone export RUN key=value… OUT`.
pub fn export(words: &[String]) -> Result<()> {
    let (keys, _) = given(EXPORT_OPTIONS, words, &["run", "to"])?;
    let text = |key: &str| keys::text(&keys, key);
    let to = folder(&keys, "to", "write")?;
    if to.exists() {
        bail!("to={}: is there already; give another folder, or move it away", to.display());
    }
    let root = PathBuf::from(text("runs"));
    let run = open_run(&root, &text("run"))?;
    let checkpoint = open_checkpoint(&run, &text("checkpoint"))?;
    let agent = Agent::of(&checkpoint)?;
    let own = checkpoint.weights()?;
    let chosen = OwnChoice::of(&run, &checkpoint)?;
    let top_percent = match text("top_percent").as_str() {
        "" => chosen.own(&agent.matched()).acting.top_percent,
        word => word.parse().ok().with_context(|| format!("top_percent={word}: no number"))?,
    };
    let theirs = match text("format").as_str() {
        "safetensors" => {
            let given = text("top_percent");
            ensure!(given.is_empty(), "top_percent={given} is for format=hf: other files hold all");
            None
        }
        "hf" => {
            check_top_percent(top_percent, &agent.top_percents())?;
            let theirs = hugging_face::export(&agent, &own, top_percent).with_context(|| {
                let path = checkpoint.path.display();
                let others = match (agent.algorithm.model(), &agent.top_percents()[..]) {
                    (Some(ModelConfig::Transformer(_)), [first, ..]) => {
                        format!(", and so can top_percent={first}")
                    }
                    _ => String::new(),
                };
                format!(
                    "{path} cannot be exported for transformers (format=safetensors can{others})"
                )
            })?;
            Some(theirs)
        }
        other => bail!("format={other}: there are hf and safetensors"),
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
    let beside = files::beside(&to);
    let written = || -> Result<()> {
        fs::create_dir_all(&beside)?;
        match &theirs {
            Some((config, tensors)) => {
                let metadata = [("format".to_owned(), "pt".to_owned())].into();
                weights::save(tensors, &metadata, &beside.join(WEIGHTS))?;
                fs::write(beside.join(THEIRS), serde_json::to_vec_pretty(config)?)?;
            }
            None => drop(fs::copy(checkpoint.path.join(WEIGHTS), beside.join(WEIGHTS))?),
        }
        fs::write(beside.join(DESCRIPTION), serde_json::to_vec_pretty(&description)?)?;
        fs::write(beside.join("README.md"), &card)?;
        Ok(files::put(&beside, &to)?)
    };
    written()
        .inspect_err(|_| drop(fs::remove_dir_all(&beside)))
        .with_context(|| format!("to={}", to.display()))?;
    say!("exported {} to {}", checkpoint.path.display(), to.display());
    if theirs.is_some() && top_percent > 0.0 {
        say!(
            "it acts as in the best {top_percent} % of its data, whatever return it is told \
             (top_percent=0: it is told returns)"
        );
    }
    match theirs {
        Some(_) => say!(
            "transformers reads it: DecisionTransformerModel.from_pretrained({:?})",
            to.display().to_string()
        ),
        None => say!("overtone import {} makes a run of it", quoted(&to)),
    }
    Ok(())
}

/// The folder of `key`, which has to be there to do what `verb` says.
fn folder(keys: &Keys, key: &str, verb: &str) -> Result<PathBuf> {
    let given = keys::text(keys, key);
    ensure!(!given.is_empty(), "{key}=: say which folder to {verb}");
    Ok(PathBuf::from(given))
}

/// All options by key, and as words those that `words` give, of which those that are none are
/// values of `places`, in that order.
fn given(defaults: &str, words: &[String], places: &[&str]) -> Result<(Keys, Vec<String>)> {
    let (mut options, names) = keys::sorted(defaults, words)?;
    if let Some(word) = names.get(places.len()) {
        bail!("`{word}` is one folder too many");
    }
    options.extend(places.iter().zip(names).map(|(key, name)| format!("{key}={name}")));
    Ok((keys::given(defaults, &options)?, options))
}

fn parsed<T: serde::de::DeserializeOwned>(path: &Path) -> Result<T> {
    let text = fs::read(path).with_context(|| format!("{}", path.display()))?;
    serde_json::from_slice(&text)
        .with_context(|| format!("{} is not as it should be", path.display()))
}
