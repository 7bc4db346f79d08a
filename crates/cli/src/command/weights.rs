//! `overtone export` and `overtone import`: agents as files for other programs.

mod card;
mod import;
mod onnx;

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
use overtone_settings::{
    options,
    runs::{open_checkpoint, open_run},
};
use overtone_train::run_dir::CONFIG;
use serde::{Deserialize, Serialize, de::DeserializeOwned};

use super::evaluate::{OwnChoice, check_top_percent};

pub use self::import::{ImportOptions, import};

overtone_model::options! {
    /// Options of `export`.
    pub struct ExportOptions {
        /// A run's directory or name, or the first word without =; empty: the newest run.
        pub run: String = String::new(),
        /// Directory that contains the runs.
        pub runs: PathBuf = "runs".into(),
        /// last; best, the lowest loss on held-out episodes; the number of an update; or a
        /// checkpoint's directory.
        pub checkpoint: String = "last".into(),
        /// hf: for Hugging Face's transformers, which supports few agents. safetensors: every
        /// agent, with Overtone's own names. onnx: a graph with the acting mode, and a script that
        /// plays it without Overtone.
        pub format: Format = Format::Hf,
        /// Fix the condition of the exported agent to this top percentage (hf and onnx, with
        /// model.top_percents only); it then ignores returns. 0: it is conditioned on returns.
        /// Empty: the run's chosen mode.
        pub top_percent: String = String::new(),
        /// Take the most probable action, in place of a draw (format=onnx with discrete actions
        /// only).
        pub deterministic: bool = false,
        /// The directory to write, or the second word without =. Required.
        pub to: PathBuf = PathBuf::new(),
    }
}

/// The form of an exported agent.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Format {
    /// For transformers.
    Hf,
    /// Overtone's own names.
    Safetensors,
    /// A graph.
    Onnx,
}

/// The description of a model in transformers.
const THEIRS: &str = "config.json";

/// `overtone export RUN key=value… OUT`.
pub fn export(words: &[String]) -> Result<()> {
    let options: ExportOptions = options::read_placed(words, &["run", "to"])?;
    let to = folder("to", &options.to, "write")?;
    if to.exists() {
        bail!("to={}: exists already. Use another directory, or move it away", to.display());
    }
    let run = open_run(&options.runs, &options.run)?;
    let checkpoint = open_checkpoint(&run, &options.checkpoint)?;
    let agent = Agent::of(&checkpoint)?;
    let own = checkpoint.weights()?;
    let chosen = OwnChoice::of(&run, &checkpoint)?;
    let top_percent = match options.top_percent.as_str() {
        "" => chosen.own(&agent.matched()).acting.top_percent,
        word => {
            word.parse().ok().with_context(|| format!("top_percent={word}: expected a number"))?
        }
    };
    ensure!(
        !options.deterministic || options.format == Format::Onnx,
        "deterministic=true applies only to format=onnx. Leave it out: the other formats hold \
         weights, and their user chooses the action"
    );
    let state = &checkpoint.state;
    let (theirs, card) = match options.format {
        Format::Onnx => {
            check_top_percent(top_percent, &agent.top_percents())?;
            let fixed = (!options.top_percent.is_empty()).then_some(top_percent);
            let mode = (&chosen, fixed);
            return onnx::write(&run, &checkpoint, &agent, mode, options.deterministic, to);
        }
        Format::Safetensors => {
            let percent = &options.top_percent;
            ensure!(
                percent.is_empty(),
                "top_percent={percent} applies only to format=hf and format=onnx. Leave it out: \
                 format=safetensors keeps all percentages"
            );
            (None, card::own(&agent, state, &card::returns(&run, state)))
        }
        Format::Hf => {
            check_top_percent(top_percent, &agent.top_percents())?;
            let theirs = hugging_face::export(&agent, &own, top_percent).with_context(|| {
                let path = checkpoint.path.display();
                let others = match (agent.algorithm.model(), &agent.top_percents()[..]) {
                    (Some(ModelConfig::Transformer(_)), [first, ..]) => {
                        format!(", or top_percent={first}")
                    }
                    _ => String::new(),
                };
                format!("cannot export {path} for transformers (use format=onnx or format=safetensors{others})")
            })?;
            (Some(theirs), card::for_transformers(&agent, state, top_percent))
        }
    };
    let config = run.path().join(CONFIG);
    let description = Description {
        layout: LAYOUT,
        overtone: env!("CARGO_PKG_VERSION").into(),
        sha256: checkpoint.weights_sha256()?,
        state: state.clone(),
        settings: fs::read_to_string(&config).with_context(|| config.display().to_string())?,
        choice: chosen.choice.map(serde_json::to_value).transpose()?,
    };
    write_folder(to, |folder| {
        match &theirs {
            Some((config, tensors)) => {
                let metadata = [("format".to_owned(), "pt".to_owned())].into();
                weights::save(tensors, &metadata, &folder.join(WEIGHTS))?;
                fs::write(folder.join(THEIRS), serde_json::to_vec_pretty(config)?)?;
            }
            None => drop(fs::copy(checkpoint.path.join(WEIGHTS), folder.join(WEIGHTS))?),
        }
        fs::write(folder.join(DESCRIPTION), serde_json::to_vec_pretty(&description)?)?;
        Ok(fs::write(folder.join("README.md"), &card)?)
    })?;
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
        None => say!("import it as a run: overtone import {}", quoted(to)),
    }
    Ok(())
}

/// Makes the directory `to`, whose files `write` writes into another one; nothing is left of a
/// failure.
fn write_folder(to: &Path, write: impl FnOnce(&Path) -> Result<()>) -> Result<()> {
    let unfinished = files::beside(to);
    fs::create_dir_all(&unfinished)
        .map_err(Into::into)
        .and_then(|()| write(&unfinished))
        .and_then(|()| Ok(files::put(&unfinished, to)?))
        .inspect_err(|_| drop(fs::remove_dir_all(&unfinished)))
        .with_context(|| format!("to={}", to.display()))
}

/// The directory `given` in `key`, to `verb`.
fn folder<'a>(key: &str, given: &'a Path, verb: &str) -> Result<&'a Path> {
    ensure!(!given.as_os_str().is_empty(), "{key}=: no directory to {verb} is set. Set one");
    Ok(given)
}

fn parsed<T: DeserializeOwned>(path: &Path) -> Result<T> {
    let text = fs::read(path).with_context(|| format!("{}", path.display()))?;
    serde_json::from_slice(&text).with_context(|| format!("{} is damaged", path.display()))
}
