//! `overtone evaluate rollouts`: plays checkpoints and reports.
//!
//! All episodes of all targets of all checkpoints share the emulators.

mod ask;
pub mod playing;

use std::{
    path::{Path, PathBuf},
    sync::atomic::AtomicBool,
};

use anyhow::{Context, Result, bail};
use overtone_core::Play;
use overtone_eval::{Evaluation, Plan, report};
use overtone_model::{AttentionConfig, Conditioning, ContinuousAgentConfig, ModelConfig, device};
use overtone_train::{Agent, Checkpoint, RunDir, metrics, run_dir::CONFIG};

pub use ask::what_to_ask;

use crate::{
    interrupt, keys,
    settings::{self, EvaluationSettings},
};

/// What to do where an agent can be trained and not played.
pub const NOT_PLAYABLE: &str =
    "the agent could not be played after training (evaluation.episodes=0 trains alone)";

/// Every option with its default and reason.
pub const OPTIONS: &str = r#"
# A run's folder or name, or several (a,b), played together; empty: the newest run.
run = ""
# Folder of the runs.
runs = "runs"
# last; best: the lowest loss on held-out episodes, needs train.held_out above 0; the step of a checkpoint, or a checkpoint's folder; or several of them, as last,best,1000.
checkpoint = "last"
# Episodes for each target.
episodes = 100
# Returns to ask for (or targets=), in the protocol's units, as numbers or percentiles of the data's episode returns: 32 or p90,p99; empty: p90 of a game's data, the reference's for a robot (hopper 3600,1800; halfcheetah 12000,6000; walker2d 5000,2500).
target = ""
# Games: matched, as the data was recorded, or released, the reference's evaluation with its accidents.
protocol = "matched"
# Games: softmax temperature of the sampled actions.
temperature = 1.0
# Robots: of a head with a density, mode, its most probable action, or sample, a draw.
actions = "mode"
# Robots: revision of the environment: recorded (as the data was), v4 or v5.
revision = "recorded"
# Seed of the episodes; the same for every run, so that agents meet the same episodes.
seed = 1
# Episodes played at once, of all targets and checkpoints together; 0: all, but no more than 100 (robots: 200).
parallel = 0
# Where to compute: auto, cpu, cuda or cuda:N; empty: as the (first) run was trained.
device = ""
# Where to write the report; empty: evaluation.json in the run's folder, or evaluation-STEP.json for several checkpoints of a run.
out = ""
"#;

/// `overtone evaluate rollouts key=value…`.
pub fn rollouts(options: &[String]) -> Result<()> {
    let mut keys = keys::flatten(&OPTIONS.parse()?);
    keys::apply(&mut keys, options)?;
    let text = |key: &str| keys.get(key).map(keys::plain).unwrap_or_default();
    let root = PathBuf::from(text("runs"));
    let runs =
        text("run").split(',').map(|name| open_run(&root, name)).collect::<Result<Vec<_>>>()?;
    let names: Vec<String> = text("checkpoint").split(',').map(str::to_owned).collect();
    let table = keys::unflatten(&keys);
    let number = |key: &str| table.get(key).and_then(toml::Value::as_integer).unwrap_or(0);
    let whole = |key: &str| {
        let number = number(key);
        usize::try_from(number).ok().with_context(|| format!("{key}={number}: must be 0 or more"))
    };
    let evaluation = EvaluationSettings {
        episodes: whole("episodes")?,
        target: text("target"),
        protocol: Some(text("protocol")),
        temperature: table
            .get("temperature")
            .and_then(toml::Value::as_float)
            .map(|temperature| temperature as f32),
        actions: Some(ask::action_choice(&text("actions"))?),
        revision: Some(text("revision")),
        seed: whole("seed")? as u64,
        parallel: whole("parallel")?,
    };
    let device = match text("device").as_str() {
        "" => settings::device_of(&runs[0].path().join(CONFIG))?,
        name => name.to_owned(),
    };
    let mut entries: Vec<Entry> = Vec::new();
    for run in runs {
        for name in &names {
            let checkpoint = open_checkpoint(&run, name)?;
            let step = checkpoint.state.step;
            let report = match names.len() {
                1 => "evaluation.json".to_owned(),
                _ => format!("evaluation-{step}.json"),
            };
            let out = run.path().join(report);
            if entries.iter().any(|entry| entry.out == out) {
                // The best checkpoint may be the last one too; nobody can know before.
                if names.iter().any(|name| name == "best") && ["best", "last"].contains(&&**name) {
                    say!("the {name} checkpoint is of update {step}, which is played already");
                    continue;
                }
                let run = run.path().display();
                bail!("update {step} of {run} is named twice");
            }
            entries.push(Entry::new(run.clone(), checkpoint, &evaluation, out)?);
        }
    }
    match (text("out").as_str(), &mut entries[..]) {
        ("", _) => {}
        (path, [entry]) => entry.out = PathBuf::from(path),
        (path, entries) => {
            bail!("out={path}: names one report, and {} will be written", entries.len())
        }
    }
    // Found before playing, not after.
    for Entry { out, .. } in &entries {
        let found = out.parent().is_some_and(|folder| folder == Path::new("") || folder.is_dir());
        if out.is_dir() || !found {
            bail!("out={}: must be a file in a folder that is there", out.display());
        }
        Evaluation::check_writable(out).context("out= names another place for the report")?;
    }
    let stop = interrupt::listen()?;
    play_all(&entries, &evaluation, &device, &stop)
}

/// The run of this name; the newest without a name.
fn open_run(root: &Path, name: &str) -> Result<RunDir> {
    Ok(if name.is_empty() { RunDir::newest(root)? } else { RunDir::open(root, name)? })
}

/// `last`, `best`, a step, or a folder.
fn open_checkpoint(run: &RunDir, name: &str) -> Result<Checkpoint> {
    if name == "last" || name == "best" {
        let (checkpoint, skipped) = match name {
            "last" => Checkpoint::newest(&run.checkpoints())?,
            _ => Checkpoint::best(&run.checkpoints()).context("checkpoint=best")?,
        };
        for error in skipped {
            eprintln!("warning: skipped a checkpoint: {error}");
        }
        return Ok(checkpoint);
    }
    Ok(match name.parse::<u64>() {
        Ok(step) => Checkpoint::at_step(&run.checkpoints(), step)?,
        Err(_) => Checkpoint::open(Path::new(name))?,
    })
}

/// Plays `checkpoint` and writes `evaluation.json` into the run.
///
/// # Errors
/// When the environment or the device is not there, or playing fails.
pub fn play(
    run: &RunDir,
    checkpoint: &Checkpoint,
    options: &EvaluationSettings,
    device: &str,
    stop: &AtomicBool,
) -> Result<()> {
    let out = run.path().join("evaluation.json");
    let entry = Entry::new(run.clone(), checkpoint.clone(), options, out)?;
    play_all(&[entry], options, device, stop)
}

/// A checkpoint, what it is asked for, and where the report goes.
struct Entry {
    run: RunDir,
    checkpoint: Checkpoint,
    protocol: Play,
    plan: Plan,
    /// The targets as they were asked for.
    asked: String,
    out: PathBuf,
}

impl Entry {
    /// # Errors
    /// When there is nothing to play, or what `options` say cannot be asked for.
    fn new(
        run: RunDir,
        checkpoint: Checkpoint,
        options: &EvaluationSettings,
        out: PathBuf,
    ) -> Result<Self> {
        if options.episodes == 0 {
            bail!("episodes=0: there is nothing to play");
        }
        let state = &checkpoint.state;
        let (protocol, asked, targets) =
            what_to_ask(options, &state.agent, &state.episode_returns)?;
        let plan = Plan {
            episodes: options.episodes,
            targets,
            seed: options.seed,
            return_units: protocol.return_units(),
        };
        Ok(Self { run, checkpoint, protocol, plan, asked, out })
    }

    fn announce(&self) {
        let state = &self.checkpoint.state;
        let unknown = match &state.agent {
            Agent::Atari(agent) => agent.recording.is_none().then_some("DQN-replay"),
            Agent::Continuous(agent) => agent.recording.is_none().then_some("D4RL"),
        };
        if let Some(like) = unknown {
            say!("how this data was recorded is not known; taken to be as {like} was");
        }
        say!(
            "playing {} (update {}): protocol {}, {} episodes for each target of {}",
            self.checkpoint.path.display(),
            state.step,
            self.protocol.name(),
            self.plan.episodes,
            ask::describe_targets(&self.asked, &self.plan.targets, &state.episode_returns)
        );
    }

    /// What the report says of it before it is played by `simulator`.
    fn setting(&self, simulator: String, rom_md5: Option<&str>) -> report::Setting {
        let state = &self.checkpoint.state;
        let inside = self.checkpoint.path.strip_prefix(self.run.path());
        let targets: Vec<String> = self.plan.targets.iter().map(f32::to_string).collect();
        let how = match &self.protocol {
            Play::Atari(protocol) => {
                format!("protocol={} temperature={}", protocol.name, protocol.temperature)
            }
            Play::Continuous(protocol) => format!(
                "actions={} revision={}",
                ask::action_choice_name(protocol.action_choice),
                protocol.simulation.revision.name()
            ),
        };
        report::Setting {
            task: state.agent.task().to_owned(),
            simulator,
            rom_md5: rom_md5.map(str::to_owned),
            policy: format!("{}, {} data", describe_model(&state.agent), state.dataset_kind),
            protocol: self.protocol.clone(),
            checkpoint: Some(report::CheckpointRef {
                path: inside.unwrap_or(&self.checkpoint.path).to_owned(),
                step: state.step,
            }),
            dataset_hash: Some(state.dataset_hash.clone()),
            command: format!(
                "just evaluate rollouts run={} checkpoint={} episodes={} target={} {how} seed={}",
                self.run.path().display(),
                state.step,
                self.plan.episodes,
                targets.join(","),
                self.plan.seed
            ),
            reference: overtone_eval::Convention::default_for(state.agent.task()),
        }
    }
}

/// `Decision Transformer, linear head, softmax attention`.
fn describe_model(agent: &Agent) -> String {
    let transformer = |conditioning, head: String, attention: &AttentionConfig| {
        let kind = match conditioning {
            Conditioning::Return => "Decision Transformer",
            Conditioning::None => "transformer cloning behaviour",
        };
        let attention = match attention {
            AttentionConfig::Softmax => "softmax attention".to_owned(),
            AttentionConfig::Fourier(fourier) => {
                format!("Fourier attention of power {}", fourier.power)
            }
        };
        format!("{kind}, {head}, {attention}")
    };
    match agent {
        Agent::Atari(agent) => {
            let ModelConfig { conditioning, attention, head, .. } = &agent.model;
            transformer(*conditioning, head.describe(), attention)
        }
        Agent::Continuous(agent) => match &agent.model {
            ContinuousAgentConfig::Transformer(model) => {
                transformer(model.conditioning, model.head.describe(), &model.attention)
            }
            ContinuousAgentConfig::Mlp(model) => {
                format!("perceptron cloning behaviour, {}", model.head.describe())
            }
        },
    }
}

/// Plays all entries together, and writes their reports.
fn play_all(
    entries: &[Entry],
    options: &EvaluationSettings,
    device: &str,
    stop: &AtomicBool,
) -> Result<()> {
    if let [first, others @ ..] = entries {
        let alike = |entry: &&Entry| {
            entry.checkpoint.state.agent.task() == first.checkpoint.state.agent.task()
                && entry.protocol.runs_as(&first.protocol)
        };
        if let Some(other) = others.iter().find(|entry| !alike(entry)) {
            bail!(
                "{} and {} were recorded from different tasks, or differently: evaluate them \
                 one after the other",
                first.run.path().display(),
                other.run.path().display()
            );
        }
    }
    entries.iter().for_each(Entry::announce);
    let chosen = device::choose(device)?;
    let played = playing::play(entries, &chosen.device, chosen.is_gpu, options.parallel, stop)?;
    // Told before anything is written, which may fail.
    played.iter().for_each(|evaluation| say!("{}", evaluation.to_text()));
    for (entry, evaluation) in entries.iter().zip(played) {
        evaluation.write(&entry.out).context("cannot write the report")?;
        say!("report: {}", entry.out.display());
        let scores: Vec<(f32, f64, Option<f64>)> = evaluation
            .targets
            .iter()
            .map(|target| {
                let normalized = target.normalized.as_ref().map(|summary| summary.mean);
                (target.target_return, target.raw_return.mean, normalized)
            })
            .collect();
        let written = metrics::write_scores(entry.run.path(), entry.checkpoint.state.step, &scores);
        if let Err(error) = written {
            eprintln!("warning: the scores are not among the run's curves: {error}");
        }
    }
    Ok(())
}
