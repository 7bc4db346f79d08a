//! `overtone import`: runs of agents that were exported, here or by transformers.

use std::path::Path;

use anyhow::{Context, Result, bail, ensure};
use overtone_agents::{
    Agent, AlgorithmConfig,
    exchange::{self, DESCRIPTION, Description, WEIGHTS},
    hugging_face,
};
use overtone_core::{Normalization, Task};
use overtone_data::EpisodeReturns;
use overtone_model::weights::{self, NamedTensors};
use overtone_train::{
    Checkpoint, Exported, RunDir, TrainState, checkpoint::FORMAT, run_dir::CONFIG,
};
use toml::{Table, Value};

use super::{THEIRS, folder, given, parsed};
use crate::{
    command::{provenance, train},
    keys::{self, Keys},
    settings::Settings,
    suites,
};

/// Every option of `import` with its default and reason.
pub const IMPORT_OPTIONS: &str = r#"
# A folder that overtone export wrote, or one with config.json and model.safetensors, as transformers' save_pretrained writes them; or the first word without =. Must be given.
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

/// What a run is made of.
struct Found {
    state: TrainState,
    tensors: NamedTensors,
    /// The run's `config.toml`.
    settings: String,
}

/// `overtone import OUT key=value…`.
pub fn import(words: &[String]) -> Result<()> {
    let keys = given(IMPORT_OPTIONS, words, &["from"])?;
    let runs = keys.get("runs").map(keys::plain).unwrap_or_default();
    let from = folder(&keys, "from", "read")?;
    let found = match from.join(THEIRS).is_file() {
        true => of_transformers(&from, &keys)?,
        false => own(&from, words, &runs)?,
    };
    let Found { state, tensors, settings } = found;
    let name = from.file_name().map(|name| name.to_string_lossy()).unwrap_or_default();
    let run = RunDir::create(Path::new(&runs), &format!("imported-{name}"))?;
    let _lock = run.lock()?;
    run.write(CONFIG, settings.as_bytes())?;
    let learned = Exported { model: tensors, training: NamedTensors::new() };
    Checkpoint::save(&run.checkpoints(), &state, &learned, 1)?;
    provenance::note(&run, state.step, state.step, 1)?;
    train::finish(&run)?;
    say!("imported {} to {}", from.display(), run.path().display());
    say!("play it: just evaluate rollouts run={}", run.path().display());
    Ok(())
}

/// What `export` wrote in our own form.
fn own(from: &Path, words: &[String], runs: &str) -> Result<Found> {
    if !from.join(DESCRIPTION).is_file() {
        bail!(
            "{} has neither {DESCRIPTION}, as overtone export writes it, nor {THEIRS}, as \
             transformers does",
            from.display()
        );
    }
    let only = ["from=", "runs="];
    if let Some(word) =
        words.iter().find(|w| w.contains('=') && !only.iter().any(|key| w.starts_with(key)))
    {
        bail!("{word} is for what transformers wrote; {DESCRIPTION} says all of this agent");
    }
    let (description, agent, tensors) = exchange::read(from)?;
    let settings = settings_of(&description, &agent, from, runs)?;
    Ok(Found { state: description.state, tensors, settings })
}

/// The `config.toml` that a description tells, of a run in `runs` that has no other beside it.
fn settings_of(
    description: &Description,
    agent: &Agent,
    from: &Path,
    runs: &str,
) -> Result<String> {
    let path = from.join(DESCRIPTION);
    let damaged = || format!("{} is damaged: its settings are no settings", path.display());
    let mut table: Table = description.settings.parse().ok().with_context(damaged)?;
    let task = table.get("task").and_then(Value::as_str).with_context(damaged)?;
    ensure!(
        task == agent.task.id(),
        "{}: its settings are of {task}, and its agent plays {}",
        path.display(),
        agent.task.id()
    );
    for (key, value) in [("runs", runs), ("init", "")] {
        table.insert(key.into(), Value::String(value.into()));
    }
    Ok(toml::to_string(&table)?)
}

/// What transformers wrote, or `export` for it.
fn of_transformers(from: &Path, keys: &Keys) -> Result<Found> {
    let text = |key: &str| keys.get(key).map(keys::plain).unwrap_or_default();
    let known = match from.join(DESCRIPTION).is_file() {
        true => {
            let known = Description::read(from)?;
            let agent = known.agent(from)?;
            Some((known, agent))
        }
        false => None,
    };
    let told = known.as_ref().map(|(_, agent)| agent);
    let task: Task = match (text("task").as_str(), told) {
        ("", Some(agent)) => agent.task.clone(),
        ("", None) => bail!("task=: say what the agent plays, such as mujoco/hopper"),
        (id, _) => suites::by_id(id)?.clone(),
    };
    let context_length = match told.and_then(|agent| agent.algorithm.model()) {
        Some(model) => model.context_length(),
        None => text("context_length").parse().context("context_length=")?,
    };
    let normalization = match (text("statistics").as_str(), told) {
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
    let tensors = weights::load(&from.join(WEIGHTS))?;
    let (algorithm, tensors) = hugging_face::import(&config, &tensors, &task, context_length)
        .with_context(|| format!("{} cannot be imported", from.display()))?;
    let scale = keys.get("return_scale").and_then(Value::as_float).unwrap_or(1000.0) as f32;
    let agent = Agent {
        task,
        algorithm,
        normalization,
        return_scale: told.map_or(scale, |agent| agent.return_scale),
        dataset: told.map(|agent| agent.dataset.clone()).unwrap_or_default(),
        delayed_reward: told.is_some_and(|agent| agent.delayed_reward),
        recording: told.and_then(|agent| agent.recording.clone()),
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
    let state = known.as_ref().map_or(unknown, |(known, _)| known.state.clone());
    let state = TrainState { agent: agent.to_value(), ..state };
    let settings = match &known {
        Some((known, before)) if before.task == agent.task => {
            settings_of(known, &agent, from, &text("runs"))?
        }
        Some(_) | None => described(&agent, &state, &text("runs"))?,
    };
    Ok(Found { state, tensors, settings })
}

/// The `config.toml` of an agent of which no settings are known.
fn described(agent: &Agent, state: &TrainState, runs: &str) -> Result<String> {
    let mut words = vec![
        format!("runs={runs}"),
        format!("task={}", agent.task.id()),
        format!("seed={}", state.seed),
        format!("data.return_scale={}", agent.return_scale),
        format!("train.updates={}", state.step.max(1)),
    ];
    if let AlgorithmConfig::DecisionTransformer(model) = &agent.algorithm {
        let model = &model.0;
        words.extend([
            format!("model.n_layers={}", model.n_layers),
            format!("model.n_heads={}", model.n_heads),
            format!("model.d_model={}", model.d_model),
            format!("model.context_length={}", model.context_length),
            format!("model.dropout={}", model.dropout),
        ]);
    }
    Settings::resolve(&words, train::auto_profile)?.to_toml()
}
