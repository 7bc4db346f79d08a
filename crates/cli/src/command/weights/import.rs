//! `overtone import`: runs of agents that were exported, here or by transformers, and of the
//! published programs' state dicts.

use std::{fs, path::Path};

use anyhow::{Context, Result, bail, ensure};
use overtone_agents::{
    Agent, AlgorithmConfig,
    exchange::{self, DESCRIPTION, Description, WEIGHTS},
    hugging_face,
    state_dict::{self, Unsaid},
};
use overtone_console::quoted;
use overtone_core::{Normalization, ObservationSpace, Task};
use overtone_data::EpisodeReturns;
use overtone_eval::Choice;
use overtone_model::{device, weights::NamedTensors};
use overtone_train::{
    Checkpoint, Exported, RunDir, TrainState, checkpoint::FORMAT, run_dir::CONFIG,
};
use toml::{Table, Value};

use super::{THEIRS, folder, given, parsed};
use crate::{
    command::{provenance, said, train},
    keys::{self, Keys},
    settings::RunConfig,
    suites,
};

/// Every option of `import` with its default and reason.
pub const IMPORT_OPTIONS: &str = r#"
# A folder that overtone export wrote; one with config.json and model.safetensors or pytorch_model.bin, as transformers' save_pretrained writes them; or a file that torch.save wrote of a published Decision Transformer's state_dict(). Or the first word without =. Must be given.
from = ""
# The task that the agent plays; empty: what overtone.json in the folder says.
task = ""
# A JSON file with mean and std of the observations that the agent was trained on, as lists; empty: what overtone.json says.
statistics = ""
# What returns were divided by in its training; 0: the reference's, 1000 on vectors, 1 on frames.
return_scale = 0.0
# Timesteps that an agent of vectors sees; the reference's 20. A state dict on frames says it.
context_length = 20
# Attention heads, which a state dict does not say; 0: the published ones, 1 on vectors, 8 on frames.
n_heads = 0
# Folder in which the agent gets a run's folder.
runs = "runs"
"#;

/// What a run is made of.
struct Found {
    state: TrainState,
    tensors: NamedTensors,
    /// The run's `config.toml`.
    settings: String,
    /// How the agent is played, where that was chosen.
    choice: Option<Choice>,
}

impl Found {
    /// # Errors
    /// When the weights are none of the agent's: what cannot act is not imported.
    fn checked(self, from: &Path) -> Result<Self> {
        let agent = Agent::from_value(&self.state.agent, from)?;
        let acts = agent.policy(&self.tensors, &agent.matched(), &device::choose("cpu")?.device);
        acts.with_context(|| format!("{} cannot be imported", from.display()))?;
        Ok(self)
    }
}

/// `overtone import OUT key=value…`.
pub fn import(words: &[String]) -> Result<()> {
    let (keys, words) = given(IMPORT_OPTIONS, words, &["from"])?;
    let runs = keys::text(&keys, "runs");
    let from = folder(&keys, "from", "read")?;
    ensure!(from.exists(), "from={}: does not exist", from.display());
    let found = match (from.is_file(), from.join(THEIRS).is_file()) {
        (true, _) => of_state_dict(&from, &keys, &words)?.checked(&from)?,
        (_, true) => of_transformers(&from, &keys, &words)?.checked(&from)?,
        // Checked as it was read.
        _ => own(&from, &words, &runs)?,
    };
    let Found { state, tensors, settings, choice } = found;
    // `.` has none.
    let named = if from.file_name().is_some() { from.clone() } else { from.canonicalize()? };
    let name = if named.is_file() { named.file_stem() } else { named.file_name() };
    let name = name.map(|name| name.to_string_lossy()).unwrap_or_default();
    let run = RunDir::create(Path::new(&runs), &format!("imported-{name}"))?;
    let _lock = run.lock()?;
    let written = || -> Result<()> {
        run.write(CONFIG, settings.as_bytes())?;
        let learned = Exported { model: tensors, training: NamedTensors::new() };
        let checkpoint = Checkpoint::save(&run.checkpoints(), &state, &learned, 1, 1)?;
        if let Some(choice) = choice {
            choice.write(&checkpoint.path.join(Choice::FILE))?;
        }
        provenance::note(&run, state.step, state.step, 1)?;
        train::finish(&run)
    };
    // Half of it would be taken for a run to go on with.
    written().inspect_err(|_| drop(fs::remove_dir_all(run.path())))?;
    say!("imported {} to {}", from.display(), run.path().display());
    say!("play it: overtone evaluate rollouts run={}", quoted(run.path()));
    Ok(())
}

/// What `export` wrote in our own form.
fn own(from: &Path, words: &[String], runs: &str) -> Result<Found> {
    if !from.join(DESCRIPTION).is_file() {
        bail!(
            "{} is no file of torch.save, and has neither {DESCRIPTION}, as overtone export writes \
             it, nor {THEIRS}, as transformers does",
            from.display()
        );
    }
    let unsaid = ["task", "statistics", "return_scale", "context_length", "n_heads"];
    if let Some(word) = said(words, &unsaid) {
        bail!("{word} is for what transformers wrote; {DESCRIPTION} says all of this agent");
    }
    let (description, agent, tensors) = exchange::read(from)?;
    let settings = settings_of(&description, &agent, from, runs)?;
    let choice = choice_of(&description, from)?;
    Ok(Found { state: description.state, tensors, settings, choice })
}

/// How the agent is played, as far as a description tells that it was chosen.
fn choice_of(description: &Description, from: &Path) -> Result<Option<Choice>> {
    let choice = description.choice.clone().map(serde_json::from_value).transpose();
    choice.with_context(|| {
        format!("{} is damaged: its choice is no choice", from.join(DESCRIPTION).display())
    })
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
fn of_transformers(from: &Path, keys: &Keys, words: &[String]) -> Result<Found> {
    let text = |key: &str| keys::text(keys, key);
    let known = match from.join(DESCRIPTION).is_file() {
        true => {
            let known = Description::read(from)?;
            let agent = known.agent(from)?;
            Some((known, agent))
        }
        false => None,
    };
    if let Some(word) = said(words, &["n_heads"]) {
        bail!("{word} is for a state dict; {THEIRS} says it of this agent");
    }
    if let (Some(word), Some(_)) = (said(words, &["return_scale", "context_length"]), &known) {
        bail!("{word} is for a folder without {DESCRIPTION}, which says it of this agent");
    }
    let told = known.as_ref().map(|(_, agent)| agent);
    let task = task(keys, told)?;
    let context_length = match told.and_then(|agent| agent.algorithm.model()) {
        Some(model) => model.context_length(),
        None => keys::whole(keys, "context_length", 0)?,
    };
    let normalization = normalization(keys, &task, told)?;
    let config: hugging_face::Config = parsed(&from.join(THEIRS))?;
    let (newer, older) = (from.join(WEIGHTS), from.join("pytorch_model.bin"));
    let written = if newer.is_file() || !older.is_file() { newer } else { older };
    let tensors = state_dict::read(&written)?;
    let (algorithm, tensors) = hugging_face::import(&config, &tensors, &task, context_length)
        .with_context(|| format!("{} cannot be imported", from.display()))?;
    let agent = Agent {
        algorithm,
        normalization,
        return_scale: match told {
            Some(agent) => agent.return_scale,
            None => return_scale(keys, &task),
        },
        dataset: told.map(|agent| agent.dataset.clone()).unwrap_or_default(),
        delayed_reward: told.is_some_and(|agent| agent.delayed_reward),
        recording: told.and_then(|agent| agent.recording.clone()),
        task,
    };
    let Some((known, before)) = known else { return unknown(&agent, tensors, &text("runs")) };
    let state = TrainState { agent: agent.to_value(), ..known.state.clone() };
    let (settings, choice) = match before.task == agent.task && before.top_percents().is_empty() {
        true => (settings_of(&known, &agent, from, &text("runs"))?, choice_of(&known, from)?),
        false => (described(&agent, &state, &text("runs"))?, None),
    };
    Ok(Found { state, tensors, settings, choice })
}

/// A published Decision Transformer, of a file that torch wrote.
fn of_state_dict(from: &Path, keys: &Keys, words: &[String]) -> Result<Found> {
    let task = task(keys, None)?;
    let is_pixels = matches!(task.observations, ObservationSpace::Pixels { .. });
    if let (Some(word), true) = (said(words, &["context_length"]), is_pixels) {
        bail!("{word} is for agents of vectors; a state dict on frames says it");
    }
    let n_heads = Some(keys::whole(keys, "n_heads", 0)?).filter(|n| *n > 0);
    let unsaid = Unsaid { n_heads, context_length: keys::whole(keys, "context_length", 0)? };
    let tensors = state_dict::read(from)?;
    let (algorithm, tensors) = state_dict::import(&tensors, &task, unsaid)
        .with_context(|| format!("{} cannot be imported", from.display()))?;
    let agent = Agent {
        algorithm,
        normalization: normalization(keys, &task, None)?,
        return_scale: return_scale(keys, &task),
        dataset: String::new(),
        delayed_reward: false,
        recording: None,
        task,
    };
    unknown(&agent, tensors, &keys::text(keys, "runs"))
}

/// What `task=` names; without it what is known of the agent.
fn task(keys: &Keys, told: Option<&Agent>) -> Result<Task> {
    match (keys::text(keys, "task").as_str(), told) {
        ("", Some(agent)) => Ok(agent.task.clone()),
        ("", None) => bail!("task=: say what the agent plays, such as mujoco/hopper"),
        (id, _) => Ok(suites::by_id(id)?.clone()),
    }
}

/// What `statistics=` names; without it what is known of the agent. Pixels are not normalized.
fn normalization(keys: &Keys, task: &Task, told: Option<&Agent>) -> Result<Option<Normalization>> {
    let path = keys::text(keys, "statistics");
    let is_pixels = matches!(task.observations, ObservationSpace::Pixels { .. });
    let found = match (path.as_str(), told) {
        ("", Some(agent)) => agent.normalization.clone(),
        ("", None) if is_pixels => None,
        ("", None) => bail!(
            "statistics=: name a JSON file with mean and std of the observations that the agent \
             was trained on; its own files do not hold them"
        ),
        (_, _) if is_pixels => bail!("statistics={path}: {} shows pixels, as they are", task.title),
        (path, _) => Some(parsed::<Normalization>(Path::new(path))?),
    };
    if let Some(Normalization { mean, std }) = &found {
        let width = task.observations.size();
        if mean.len() != width || std.len() != width {
            let got = [mean.len(), std.len()];
            bail!("statistics: {got:?} numbers, and {} shows {width}", task.title);
        }
        if let Some(odd) = std.iter().find(|std| **std < 0.0) {
            bail!("statistics: std has {odd}, and a standard deviation is 0 or more");
        }
    }
    Ok(found)
}

fn return_scale(keys: &Keys, task: &Task) -> f32 {
    let given = keys.get("return_scale").and_then(Value::as_float).unwrap_or_default();
    match task.observations {
        _ if given != 0.0 => given as f32,
        ObservationSpace::Vectors { .. } => 1000.0,
        ObservationSpace::Pixels { .. } => 1.0,
    }
}

/// A run of an agent of whose training nothing is known.
fn unknown(agent: &Agent, tensors: NamedTensors, runs: &str) -> Result<Found> {
    let state = TrainState {
        format: FORMAT,
        step: 0,
        n_drawn: 0,
        tokens: 0,
        seed: 0,
        agent: agent.to_value(),
        dataset_hash: String::new(),
        dataset_kind: "imported".into(),
        episode_returns: EpisodeReturns::default(),
        held_out_share: 0.0,
        held_out: None,
        began: None,
        best: None,
        unreported: None,
    };
    let settings = described(agent, &state, runs)?;
    Ok(Found { state, tensors, settings, choice: None })
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
    if matches!(agent.task.observations, ObservationSpace::Vectors { .. }) {
        let as_others =
            ["model.return_unit=scale", "model.return_head=none", "model.top_percents=none"];
        words.extend(as_others.map(String::from));
    }
    RunConfig::resolve(&words, train::auto_profile)?.to_toml()
}
