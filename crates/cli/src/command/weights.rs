//! `overtone export` and `overtone import`: agents as other programs have them.

use std::{
    collections::BTreeMap,
    fs,
    path::{Path, PathBuf},
};

use anyhow::{Context, Result, bail, ensure};
use overtone_agents::{Agent, hugging_face};
use overtone_core::{Normalization, Task};
use overtone_data::EpisodeReturns;
use overtone_files as files;
use overtone_model::weights;
use overtone_train::{
    Checkpoint, Exported, RunDir, TrainState, checkpoint::FORMAT, run_dir::CONFIG,
};

use super::{provenance, train};
use crate::{
    keys::{self, Keys},
    settings::Settings,
    suites,
};

/// Every option of `export` with its default and reason.
pub const EXPORT_OPTIONS: &str = r#"
# A run's folder or name; empty: the newest run.
run = ""
# Folder of the runs.
runs = "runs"
# last; best: the lowest loss on held-out episodes; the number of an update, or a checkpoint's folder.
checkpoint = "last"
# The folder to write. Must be given.
to = ""
"#;

/// Every option of `import` with its default and reason.
pub const IMPORT_OPTIONS: &str = r#"
# A folder with config.json and model.safetensors, as transformers' save_pretrained writes them. Must be given.
from = ""
# The task that the agent plays; empty: what overtone.json in the folder says.
task = ""
# A JSON file with mean and std of the observations that the agent was trained on, as lists; empty: what overtone.json says.
statistics = ""
# What returns were divided by in its training; the reference's 1000.
return_scale = 1000.0
# Timesteps that it sees; the reference's 20.
context_length = 20
# Folder in which the agent gets a run's folder.
runs = "runs"
"#;

const MODEL: &str = "model.safetensors";
const THEIRS: &str = "config.json";
/// What transformers' files do not say.
const OURS: &str = "overtone.json";

/// `overtone export key=value…`.
pub fn export(options: &[String]) -> Result<()> {
    let keys = given(EXPORT_OPTIONS, options)?;
    let text = |key: &str| keys.get(key).map(keys::plain).unwrap_or_default();
    let to = folder(&keys, "to", "write")?;
    if to.exists() {
        bail!("to={}: is there already; give another folder, or move it away", to.display());
    }
    let root = PathBuf::from(text("runs"));
    let run = match text("run").as_str() {
        "" => RunDir::newest(&root)?,
        name => RunDir::open(&root, name)?,
    };
    let checkpoint = super::evaluate::open_checkpoint(&run, &text("checkpoint"))?;
    let agent = Agent::of(&checkpoint)?;
    let (config, tensors) = hugging_face::export(&agent, &checkpoint.weights()?)
        .with_context(|| format!("{} cannot be exported", checkpoint.path.display()))?;
    let beside = files::beside(&to);
    let written = || -> Result<()> {
        fs::create_dir_all(&beside)?;
        let metadata = BTreeMap::from([("format".to_owned(), "pt".to_owned())]);
        weights::save(&tensors, &metadata, &beside.join(MODEL))?;
        let json = |value: &serde_json::Value| serde_json::to_vec_pretty(value);
        fs::write(beside.join(THEIRS), json(&serde_json::to_value(&config)?)?)?;
        fs::write(beside.join(OURS), json(&serde_json::to_value(&checkpoint.state)?)?)?;
        fs::write(beside.join("README.md"), card(&agent, &checkpoint.state))?;
        Ok(files::put(&beside, &to)?)
    };
    written()
        .inspect_err(|_| drop(fs::remove_dir_all(&beside)))
        .with_context(|| format!("to={}", to.display()))?;
    say!("exported {} to {}", checkpoint.path.display(), to.display());
    say!(
        "transformers reads it: DecisionTransformerModel.from_pretrained({:?})",
        to.display().to_string()
    );
    Ok(())
}

/// The model card.
fn card(agent: &Agent, state: &TrainState) -> String {
    let returns = match state.episode_returns.ends() {
        Some([lowest, highest]) => format!("{lowest} to {highest}"),
        _ => "not known".into(),
    };
    format!(
        "---\nlibrary_name: transformers\npipeline_tag: reinforcement-learning\ntags:\n- \
         decision-transformer\n- offline-reinforcement-learning\n---\n\n# {task}\n\n{what}, trained \
         by Overtone for {steps} updates.\n\n\
         - Observations are normalized before the model sees them: `(observation - mean) / (std + 1e-6)`, \
         both in `overtone.json` under `agent.normalization`.\n\
         - Returns-to-go and rewards are divided by {scale}. Returns in its data: {returns}.\n\
         - Context: {context} timesteps. Actions are between -1 and 1.\n\
         - Data: content SHA-256 {hash}.\n\n\
         `overtone import from=THIS_FOLDER` makes a run of it again. A score is no part of these \
         files: play it.\n",
        task = agent.task.id(),
        what = agent.algorithm.describe(),
        steps = state.step,
        scale = agent.return_scale,
        context = agent.algorithm.model().map_or(0, |model| model.context_length()),
        hash = state.dataset_hash,
    )
}

/// `overtone import key=value…`.
pub fn import(options: &[String]) -> Result<()> {
    let keys = given(IMPORT_OPTIONS, options)?;
    let text = |key: &str| keys.get(key).map(keys::plain).unwrap_or_default();
    let from = folder(&keys, "from", "read")?;
    let ours = from.join(OURS);
    let known: Option<TrainState> = match ours.is_file() {
        true => Some(parsed(&ours)?),
        false => None,
    };
    let told = known.as_ref().map(|state| serde_json::from_value::<Agent>(state.agent.clone()));
    let told = told.transpose().with_context(|| format!("{} tells no agent", ours.display()))?;
    let task: Task = match (text("task").as_str(), &told) {
        ("", Some(agent)) => agent.task.clone(),
        ("", None) => bail!("task=: say what the agent plays, such as mujoco/hopper"),
        (id, _) => suites::by_id(id)?.clone(),
    };
    let number = |key: &str| keys.get(key).and_then(toml::Value::as_float);
    let context_length = match told.as_ref().and_then(|agent| agent.algorithm.model()) {
        Some(model) => model.context_length(),
        None => text("context_length").parse().context("context_length=")?,
    };
    let normalization = match (text("statistics").as_str(), &told) {
        ("", Some(agent)) => agent.normalization.clone(),
        ("", None) => bail!(
            "statistics=: name a JSON file with mean and std of the observations that the agent \
             was trained on; transformers' files do not hold them"
        ),
        (path, _) => Some(parsed::<Normalization>(Path::new(path))?),
    };
    if let Some(Normalization { mean, std }) = &normalization {
        let width = task.observations.size();
        if mean.len() != width || std.len() != width {
            let got = [mean.len(), std.len()];
            bail!("statistics: {got:?} numbers, and {} shows {width}", task.title);
        }
    }
    let config: hugging_face::Config = parsed(&from.join(THEIRS))?;
    let tensors = weights::load(&from.join(MODEL))?;
    let (algorithm, tensors) = hugging_face::import(&config, &tensors, &task, context_length)
        .with_context(|| format!("{} cannot be imported", from.display()))?;
    let agent = Agent {
        task: task.clone(),
        algorithm,
        normalization,
        return_scale: match &told {
            Some(agent) => agent.return_scale,
            None => number("return_scale").unwrap_or(1000.0) as f32,
        },
        dataset: told.as_ref().map(|agent| agent.dataset.clone()).unwrap_or_default(),
        delayed_reward: told.as_ref().is_some_and(|agent| agent.delayed_reward),
        recording: told.and_then(|agent| agent.recording),
    };
    let unknown = TrainState {
        format: FORMAT,
        step: 0,
        n_drawn: 0,
        tokens: 0,
        seed: 0,
        agent: agent.to_value(),
        dataset_hash: String::new(),
        dataset_kind: "imported".into(),
        episode_returns: EpisodeReturns::default(),
        held_out: None,
        began: None,
        best: None,
        unreported: None,
    };
    let state = TrainState { agent: agent.to_value(), ..known.unwrap_or(unknown) };
    let words = [
        format!("task={}", task.id()),
        format!("seed={}", state.seed),
        format!("data.return_scale={}", agent.return_scale),
        format!("model.context_length={context_length}"),
        format!("train.updates={}", state.step.max(1)),
        format!("runs={}", text("runs")),
    ];
    let settings = Settings::resolve(&words, train::auto_profile)?;
    let name = from.file_name().map(|name| name.to_string_lossy()).unwrap_or_default();
    let run = RunDir::create(&settings.runs, &format!("imported-{name}"))?;
    let _lock = run.lock()?;
    run.write(CONFIG, settings.to_toml()?.as_bytes())?;
    let learned = Exported { model: tensors, training: weights::NamedTensors::new() };
    Checkpoint::save(&run.checkpoints(), &state, &learned, 1)?;
    provenance::note(&run, state.step, state.step, 1)?;
    train::finish(&run)?;
    say!("imported {} to {}", from.display(), run.path().display());
    say!("play it: just evaluate rollouts run={}", run.path().display());
    Ok(())
}

/// The folder of `key`, which has to be there to do what `verb` says.
fn folder(keys: &Keys, key: &str, verb: &str) -> Result<PathBuf> {
    let given = keys.get(key).map(keys::plain).unwrap_or_default();
    ensure!(!given.is_empty(), "{key}=: say which folder to {verb}");
    Ok(PathBuf::from(given))
}

fn given(defaults: &str, options: &[String]) -> Result<Keys> {
    let mut keys = keys::flatten(&defaults.parse()?);
    keys::apply(&mut keys, options)?;
    Ok(keys)
}

fn parsed<T: serde::de::DeserializeOwned>(path: &Path) -> Result<T> {
    let text = fs::read(path).with_context(|| format!("{}", path.display()))?;
    serde_json::from_slice(&text)
        .with_context(|| format!("{} is not as it should be", path.display()))
}
