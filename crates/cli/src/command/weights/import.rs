//! `overtone import`: runs from exported agents, from transformers' models, and from state dicts of
//! published programs.

use std::{
    fs,
    path::{Path, PathBuf},
};

use anyhow::{Context, Result, bail, ensure};
use overtone_agents::{
    Agent, AlgorithmConfig,
    exchange::{self, DESCRIPTION, Description, WEIGHTS},
    hugging_face,
    state_dict::{self, MissingSettings},
};
use overtone_console::quoted;
use overtone_core::{Normalization, ObservationSpace, Task};
use overtone_data::EpisodeReturns;
use overtone_eval::Choice;
use overtone_model::{device, weights::NamedTensors};
use overtone_settings::{RunConfig, options, suites};
use overtone_train::{
    Checkpoint, Exported, RunDir, TrainState, checkpoint::FORMAT, run_dir::CONFIG,
};
use toml::{Table, Value};

use super::{THEIRS, folder, parsed};
use crate::{
    command::{first_of, provenance, train},
    host,
};

overtone_model::options! {
    /// Options of `import`.
    pub struct ImportOptions {
        /// The source, or the first word without =: a directory of overtone export; a directory of
        /// transformers' save_pretrained, with config.json and model.safetensors or
        /// pytorch_model.bin; or a torch.save file of a published Decision Transformer's
        /// state_dict(). Required.
        pub from: PathBuf = PathBuf::new(),
        /// The agent's task; empty: the task in overtone.json of the directory.
        pub task: String = String::new(),
        /// A JSON file with the lists mean and std of the training observations; empty: those in
        /// overtone.json.
        pub statistics: String = String::new(),
        /// Divisor of returns in training; 0: the reference's, 1000 on vectors, 1 on frames.
        pub return_scale: f32 = 0.0,
        /// Context length in timesteps of an agent on vectors; the reference uses 20. A state dict
        /// on frames contains it.
        pub context_length: usize = 20,
        /// Attention heads, which a state dict does not contain; 0: the published number, 1 on
        /// vectors, 8 on frames.
        pub n_heads: usize = 0,
        /// Directory in which the agent gets a run's directory.
        pub runs: PathBuf = "runs".into(),
    }
}

/// The parts of an imported run.
struct ImportedRun {
    state: TrainState,
    tensors: NamedTensors,
    /// The run's `config.toml`.
    settings: String,
    /// The choice of the acting mode, if one was made.
    choice: Option<Choice>,
}

impl ImportedRun {
    /// # Errors
    /// When the weights do not fit the agent, because an agent that cannot act is not imported.
    fn checked(self, from: &Path) -> Result<Self> {
        let agent = Agent::from_value(&self.state.agent, from)?;
        let acts = agent.policy(&self.tensors, &agent.matched(), &device::choose("cpu")?.device);
        acts.with_context(|| format!("cannot import {}", from.display()))?;
        Ok(self)
    }
}

/// `overtone import OUT key=value…`.
pub fn import(words: &[String]) -> Result<()> {
    let words = options::placed::<ImportOptions>(words, &["from"])?;
    let options: ImportOptions = options::read(&words)?;
    let from = folder("from", &options.from, "read")?;
    ensure!(from.exists(), "from={}: does not exist", from.display());
    let found = match (from.is_file(), from.join(THEIRS).is_file()) {
        (true, _) => of_state_dict(from, &options, &words)?.checked(from)?,
        (_, true) => of_transformers(from, &options, &words)?.checked(from)?,
        // Checked when it is read.
        _ => own(from, &words, &options.runs)?,
    };
    let ImportedRun { state, tensors, settings, choice } = found;
    // `.` does not have a file name.
    let named = if from.file_name().is_some() { from.to_owned() } else { from.canonicalize()? };
    let name = if named.is_file() { named.file_stem() } else { named.file_name() };
    let name = name.map(|name| name.to_string_lossy()).unwrap_or_default();
    let run = RunDir::create(&options.runs, &format!("imported-{name}"))?;
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
    // An incomplete directory would look like a run to resume.
    written().inspect_err(|_| drop(fs::remove_dir_all(run.path())))?;
    host::run_is(run.path());
    say!("imported {} to {}", from.display(), run.path().display());
    say!("evaluate it: overtone evaluate rollouts run={}", quoted(run.path()));
    Ok(())
}

/// An agent in Overtone's format, from `export`.
fn own(from: &Path, words: &[String], runs: &Path) -> Result<ImportedRun> {
    if !from.join(DESCRIPTION).is_file() {
        bail!(
            "cannot import {}: expected a file of torch.save, or a directory with {DESCRIPTION} \
             (from overtone export) or {THEIRS} (from transformers)",
            from.display()
        );
    }
    let not_for_own = ["task", "statistics", "return_scale", "context_length", "n_heads"];
    if let Some(word) = first_of(words, &not_for_own) {
        bail!(
            "{word} applies only to files of transformers. Leave it out: {DESCRIPTION} describes \
             this agent"
        );
    }
    let (description, agent, tensors) = exchange::read(from)?;
    let settings = settings_of(&description, &agent, from, runs)?;
    let choice = choice_of(&description, from)?;
    Ok(ImportedRun { state: description.state, tensors, settings, choice })
}

/// The choice of the acting mode in a description, if any.
fn choice_of(description: &Description, from: &Path) -> Result<Option<Choice>> {
    let choice = description.choice.clone().map(serde_json::from_value).transpose();
    choice.with_context(|| {
        format!(
            "{} is damaged: invalid choice of the acting mode",
            from.join(DESCRIPTION).display()
        )
    })
}

/// The `config.toml` in a description, for a run in `runs` without `init`.
fn settings_of(
    description: &Description,
    agent: &Agent,
    from: &Path,
    runs: &Path,
) -> Result<String> {
    let path = from.join(DESCRIPTION);
    let damaged = || format!("{} is damaged: invalid settings", path.display());
    let mut table: Table = description.settings.parse().ok().with_context(damaged)?;
    let task = table.get("task").and_then(Value::as_str).with_context(damaged)?;
    ensure!(
        task == agent.task.id(),
        "{} is damaged: its settings are for {task}, and its agent is for {}",
        path.display(),
        agent.task.id()
    );
    table.insert("runs".into(), Value::try_from(runs)?);
    table.insert("init".into(), "".into());
    Ok(toml::to_string(&table)?)
}

/// An agent in transformers' format, from transformers or from `export`.
fn of_transformers(from: &Path, options: &ImportOptions, words: &[String]) -> Result<ImportedRun> {
    let known = match from.join(DESCRIPTION).is_file() {
        true => {
            let known = Description::read(from)?;
            let agent = known.agent(from)?;
            Some((known, agent))
        }
        false => None,
    };
    if let Some(word) = first_of(words, &["n_heads"]) {
        bail!("{word} applies only to a state dict. Leave it out: {THEIRS} contains it");
    }
    if let (Some(word), Some(_)) = (first_of(words, &["return_scale", "context_length"]), &known) {
        bail!(
            "{word} applies only to a directory without {DESCRIPTION}. Leave it out: that file \
             contains it"
        );
    }
    let known_agent = known.as_ref().map(|(_, agent)| agent);
    let task = task(&options.task, known_agent)?;
    let context_length = match known_agent.and_then(|agent| agent.algorithm.model()) {
        Some(model) => model.context_length(),
        None => options.context_length,
    };
    let normalization = normalization(&options.statistics, &task, known_agent)?;
    let config: hugging_face::Config = parsed(&from.join(THEIRS))?;
    let (newer, older) = (from.join(WEIGHTS), from.join("pytorch_model.bin"));
    let written = if newer.is_file() || !older.is_file() { newer } else { older };
    let tensors = state_dict::read(&written)?;
    let (algorithm, tensors) = hugging_face::import(&config, &tensors, &task, context_length)
        .with_context(|| format!("cannot import {}", from.display()))?;
    let agent = Agent {
        algorithm,
        normalization,
        return_scale: match known_agent {
            Some(agent) => agent.return_scale,
            None => return_scale(options.return_scale, &task),
        },
        dataset: known_agent.map(|agent| agent.dataset.clone()).unwrap_or_default(),
        delayed_reward: known_agent.is_some_and(|agent| agent.delayed_reward),
        recording: known_agent.and_then(|agent| agent.recording.clone()),
        needs_action_mask: known_agent.is_some_and(|agent| agent.needs_action_mask),
        task,
    };
    let Some((known, before)) = known else { return unknown(&agent, tensors, &options.runs) };
    let state = TrainState { agent: agent.to_value(), ..known.state.clone() };
    let (settings, choice) = match before.task == agent.task && before.top_percents().is_empty() {
        true => (settings_of(&known, &agent, from, &options.runs)?, choice_of(&known, from)?),
        false => (described(&agent, &state, &options.runs)?, None),
    };
    Ok(ImportedRun { state, tensors, settings, choice })
}

/// A published Decision Transformer, from a file of torch.
fn of_state_dict(from: &Path, options: &ImportOptions, words: &[String]) -> Result<ImportedRun> {
    let task = task(&options.task, None)?;
    let is_pixels = matches!(task.observations, ObservationSpace::Pixels { .. });
    if let (Some(word), true) = (first_of(words, &["context_length"]), is_pixels) {
        bail!(
            "{word} applies only to agents on vectors. Leave it out: a state dict on frames \
             contains it"
        );
    }
    let n_heads = Some(options.n_heads).filter(|n| *n > 0);
    let missing_settings = MissingSettings { n_heads, context_length: options.context_length };
    let tensors = state_dict::read(from)?;
    let (algorithm, tensors) = state_dict::import(&tensors, &task, missing_settings)
        .with_context(|| format!("cannot import {}", from.display()))?;
    let agent = Agent {
        algorithm,
        normalization: normalization(&options.statistics, &task, None)?,
        return_scale: return_scale(options.return_scale, &task),
        dataset: String::new(),
        delayed_reward: false,
        recording: None,
        needs_action_mask: false,
        task,
    };
    unknown(&agent, tensors, &options.runs)
}

/// The task `id`; without it, the task of the known agent.
fn task(id: &str, known: Option<&Agent>) -> Result<Task> {
    match (id, known) {
        ("", Some(agent)) => Ok(agent.task.clone()),
        ("", None) => {
            bail!("task=: the agent's task is unknown. Set it, such as task=mujoco/hopper")
        }
        _ => Ok(suites::by_id(id)?.clone()),
    }
}

/// The normalization in the file `path`; without it, the known agent's normalization. Pixels are not
/// normalized.
fn normalization(path: &str, task: &Task, known: Option<&Agent>) -> Result<Option<Normalization>> {
    let is_pixels = matches!(task.observations, ObservationSpace::Pixels { .. });
    let found = match (path, known) {
        ("", Some(agent)) => agent.normalization.clone(),
        ("", None) if is_pixels => None,
        ("", None) => bail!(
            "statistics=: the agent's files do not contain the normalization. Set a JSON file with \
             mean and std of the training observations"
        ),
        (_, _) if is_pixels => bail!(
            "statistics={path}: pixels, as in {}, are not normalized. Leave it out",
            task.title
        ),
        _ => Some(parsed::<Normalization>(Path::new(path))?),
    };
    if let Some(Normalization { mean, std }) = &found {
        let width = task.observations.size();
        if mean.len() != width || std.len() != width {
            let got = [mean.len(), std.len()];
            bail!(
                "statistics: {got:?} numbers in mean and std, expected {width} as in {}",
                task.title
            );
        }
        if let Some(odd) = std.iter().find(|std| **std < 0.0) {
            bail!("statistics: std contains {odd}, expected 0 or more");
        }
    }
    Ok(found)
}

/// The divisor `scale` of returns; if it is 0, the reference's.
fn return_scale(scale: f32, task: &Task) -> f32 {
    match task.observations {
        _ if scale != 0.0 => scale,
        ObservationSpace::Vectors { .. } => 1000.0,
        ObservationSpace::Pixels { .. } => 1.0,
    }
}

/// A run of an agent whose training is unknown.
fn unknown(agent: &Agent, tensors: NamedTensors, runs: &Path) -> Result<ImportedRun> {
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
        first_observations: None,
        held_out_share: 0.0,
        held_out: None,
        init_source: None,
        best: None,
        unreported: None,
    };
    let settings = described(agent, &state, runs)?;
    Ok(ImportedRun { state, tensors, settings, choice: None })
}

/// The `config.toml` of an agent whose settings are unknown.
fn described(agent: &Agent, state: &TrainState, runs: &Path) -> Result<String> {
    let mut words = vec![
        format!("runs={}", runs.display()),
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
