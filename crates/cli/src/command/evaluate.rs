//! `overtone evaluate rollouts`: plays checkpoints and reports.
//!
//! All episodes of all targets of all checkpoints share the emulators.

use std::{
    path::{Path, PathBuf},
    sync::atomic::AtomicBool,
};

use anyhow::{Context, Result, bail};
use overtone_core::{Emulation, Protocol, protocol::ReturnUnits};
use overtone_eval::{Evaluation, Plan, report};
use overtone_model::{DecisionTransformer, device};
use overtone_train::{Checkpoint, RunDir, metrics, run_dir::CONFIG};

use crate::{
    interrupt, keys,
    settings::{self, EvaluationSettings, Settings},
};

/// Every option with its default and reason.
pub const OPTIONS: &str = r#"
# A run's folder or name, or several (a,b), played together; empty: the newest run.
run = ""
# Folder of the runs.
runs = "runs"
# last, the step of a checkpoint, or a checkpoint's folder; or several of them, as last,1000.
checkpoint = "last"
# Episodes for each target.
episodes = 100
# Returns to ask for, in the protocol's units, as numbers or percentiles of the data's episode returns: 32 or p90,p99.
target = "p90"
# matched: play as the data was recorded. released: the reference's evaluation, its accidents included.
protocol = "matched"
# Softmax temperature of the sampled actions.
temperature = 1.0
# Seed of the episodes; the same for every run, so that agents meet the same episodes.
seed = 1
# Episodes played at once, of all targets and checkpoints together; 0: all, but no more than 100.
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
        protocol: text("protocol"),
        temperature: table.get("temperature").and_then(toml::Value::as_float).unwrap_or(1.0) as f32,
        seed: whole("seed")? as u64,
        parallel: whole("parallel")?,
    };
    let device = match text("device").as_str() {
        "" => Settings::load(&runs[0].path().join(CONFIG))?.device,
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
    }
    let stop = interrupt::listen()?;
    play_all(&entries, &evaluation, &device, &stop)
}

/// The run of this name; the newest without a name.
fn open_run(root: &Path, name: &str) -> Result<RunDir> {
    Ok(if name.is_empty() { RunDir::newest(root)? } else { RunDir::open(root, name)? })
}

/// `last`, a step, or a folder.
fn open_checkpoint(run: &RunDir, name: &str) -> Result<Checkpoint> {
    if name == "last" {
        let (checkpoint, skipped) = Checkpoint::newest(&run.checkpoints())?;
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
    protocol: Protocol,
    plan: Plan,
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
        let (protocol, targets) =
            what_to_ask(options, state.recording.as_ref(), &state.episode_returns)?;
        let plan = Plan {
            episodes: options.episodes,
            targets,
            seed: options.seed,
            return_units: protocol.return_units,
        };
        Ok(Self { run, checkpoint, protocol, plan, out })
    }

    fn announce(&self, options: &EvaluationSettings) {
        let state = &self.checkpoint.state;
        if state.recording.is_none() {
            say!("how this data was recorded is not known; taken to be as DQN-replay was");
        }
        say!(
            "playing {} (update {}): protocol {}, {} episodes for each target of {}",
            self.checkpoint.path.display(),
            state.step,
            self.protocol.name,
            self.plan.episodes,
            describe_targets(&options.target, &self.plan.targets, &state.episode_returns)
        );
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
            entry.checkpoint.state.game == first.checkpoint.state.game
                && entry.protocol.emulation == first.protocol.emulation
        };
        if let Some(other) = others.iter().find(|entry| !alike(entry)) {
            bail!(
                "{} and {} were recorded from different games, or differently: evaluate them \
                 one after the other",
                first.run.path().display(),
                other.run.path().display()
            );
        }
    }
    entries.iter().for_each(|entry| entry.announce(options));
    let chosen = device::choose(device)?;
    let models = entries
        .iter()
        .map(|entry| Ok(entry.checkpoint.model(&chosen.device)?))
        .collect::<Result<Vec<_>>>()?;
    let played = play_models(entries, &models, chosen.is_gpu, options, stop)?;
    for (entry, evaluation) in entries.iter().zip(played) {
        evaluation.write(&entry.out).context("cannot write the report")?;
        say!("{}", evaluation.to_text());
        say!("report: {}", entry.out.display());
        let scores: Vec<(f32, f64, Option<f64>)> = evaluation
            .targets
            .iter()
            .map(|target| {
                let normalized = target.normalized.as_ref().map(|summary| summary.mean);
                (target.target_return, target.raw_return.mean, normalized)
            })
            .collect();
        metrics::write_scores(entry.run.path(), entry.checkpoint.state.step, &scores)?;
    }
    Ok(())
}

/// The protocol and the target returns of `options`, for data that was `recording` so and
/// whose ascending episode returns are `returns`.
///
/// # Errors
/// When they cannot be asked for.
pub fn what_to_ask(
    options: &EvaluationSettings,
    recording: Option<&Emulation>,
    returns: &[f32],
) -> Result<(Protocol, Vec<f32>)> {
    let recording = recording.cloned().unwrap_or_else(Emulation::dqn_replay);
    let protocol = settings::protocol(&options.protocol, &recording, options.temperature)?;
    if protocol.return_units == ReturnUnits::Raw && options.target.contains('p') {
        bail!(
            "target={}: percentiles are of the data's clipped returns, and the protocol {} counts \
             raw points; say a number (the reference asked for 1150 in Seaquest)",
            options.target,
            protocol.name
        );
    }
    let targets = settings::targets(&options.target, returns)?;
    Ok((protocol, targets))
}

/// `36 (p90 of the data's episode returns …)`.
fn describe_targets(text: &str, targets: &[f32], returns: &[f32]) -> String {
    let list = |items: &[String]| items.join(", ");
    let numbers: Vec<String> = targets.iter().map(f32::to_string).collect();
    match (text.contains('p'), returns.first(), returns.last()) {
        (true, Some(lowest), Some(highest)) => format!(
            "{} ({text} of the data's {} episode returns, which lie between {lowest} and {highest})",
            list(&numbers),
            returns.len()
        ),
        _ => list(&numbers),
    }
}

/// Episodes played at once unless options say otherwise: more make a step no cheaper, and
/// each emulator takes a tenth of a second to start.
#[cfg(feature = "python")]
const AT_ONCE: usize = 100;

/// Plays all entries together; `models[i]` is that of `entries[i]`, on a GPU or not.
#[cfg(feature = "python")]
fn play_models(
    entries: &[Entry],
    models: &[DecisionTransformer],
    is_gpu: bool,
    options: &EvaluationSettings,
    stop: &AtomicBool,
) -> Result<Vec<Evaluation>> {
    use std::{ops::ControlFlow, sync::atomic::Ordering};

    use overtone_eval::{Player, rollout_together};
    use overtone_model::TransformerPolicy;

    use crate::progress;

    let Some(first) = entries.first() else { return Ok(Vec::new()) };
    let game: overtone_ale::Game = first.checkpoint.state.game.parse()?;
    let n_episodes: usize = entries.iter().map(|entry| entry.plan.n_episodes()).sum();
    let slots = match options.parallel {
        0 => n_episodes.min(AT_ONCE),
        parallel => parallel.min(n_episodes),
    };
    if slots >= 20 {
        // About a tenth of a second each, one after the other.
        say!("starting {slots} emulators");
    }
    // Two halves where a GPU acts: the emulators of one step meanwhile. On a CPU both want the
    // same cores, and one whole batch is quicker (docs/results/speed.md).
    let sizes = if is_gpu { [slots.div_ceil(2), slots / 2] } else { [slots, 0] };
    let mut envs = sizes
        .into_iter()
        .filter(|&size| size > 0)
        .map(|size| Ok(overtone_ale::open(game, &first.protocol.emulation, size)?))
        .collect::<Result<Vec<_>>>()?;
    let mut groups: Vec<_> = envs.iter_mut().map(|env| &mut **env).collect();
    let mut policies: Vec<TransformerPolicy> = entries
        .iter()
        .zip(models)
        .map(|(entry, model)| TransformerPolicy::new(model, &entry.protocol))
        .collect();
    let mut players: Vec<Player<'_>> = policies
        .iter_mut()
        .zip(entries)
        .map(|(policy, entry)| Player { policy, plan: &entry.plan })
        .collect();
    let bar = progress::episodes(n_episodes);
    let started = std::time::Instant::now();
    let played = rollout_together(&mut groups, &mut players, &mut |progress| {
        bar.set_position(progress.episodes_done as u64);
        let rate = progress.steps as f64 / started.elapsed().as_secs_f64().max(1e-9);
        bar.set_message(format!("{} live, {rate:.0} steps/s", progress.live));
        match stop.load(Ordering::Relaxed) {
            true => ControlFlow::Break(()),
            false => ControlFlow::Continue(()),
        }
    })?;
    bar.finish_and_clear();
    entries
        .iter()
        .zip(played)
        .map(|(entry, played)| {
            let setting = entry.setting(game.name(), Some(game.rom_md5()));
            Ok(Evaluation::new(setting, &entry.plan, played)?)
        })
        .collect()
}

#[cfg(not(feature = "python"))]
fn play_models(
    _: &[Entry],
    _: &[DecisionTransformer],
    _: bool,
    _: &EvaluationSettings,
    _: &AtomicBool,
) -> Result<Vec<Evaluation>> {
    let _ = Entry::setting;
    bail!("this program was built without the feature `python`, so it can train but not play")
}

impl Entry {
    fn setting(&self, game: &str, rom_md5: Option<&str>) -> report::Setting {
        let state = &self.checkpoint.state;
        let inside = self.checkpoint.path.strip_prefix(self.run.path());
        let targets: Vec<String> = self.plan.targets.iter().map(f32::to_string).collect();
        let head = match &state.model.head {
            overtone_model::HeadConfig::Linear => "linear head".to_owned(),
            overtone_model::HeadConfig::Fourier(fourier) => {
                format!("Fourier head of {} frequencies", fourier.frequencies)
            }
            overtone_model::HeadConfig::Gmm(gmm) => {
                format!("Gaussian-mixture head of {} components", gmm.components)
            }
        };
        let attention = match &state.model.attention {
            overtone_model::AttentionConfig::Softmax => "softmax attention".to_owned(),
            overtone_model::AttentionConfig::Fourier(fourier) => {
                format!("Fourier attention of power {}", fourier.power)
            }
        };
        report::Setting {
            task: game.to_owned(),
            rom_md5: rom_md5.map(str::to_owned),
            policy: format!(
                "Decision Transformer, {head}, {attention}, {} data",
                state.dataset_kind
            ),
            protocol: self.protocol.clone(),
            checkpoint: Some(report::CheckpointRef {
                path: inside.unwrap_or(&self.checkpoint.path).to_owned(),
                step: state.step,
            }),
            dataset_hash: Some(state.dataset_hash.clone()),
            command: format!(
                "just evaluate rollouts run={} checkpoint={} episodes={} target={} protocol={} \
                 temperature={} seed={}",
                self.run.path().display(),
                state.step,
                self.plan.episodes,
                targets.join(","),
                self.protocol.name,
                self.protocol.temperature,
                self.plan.seed
            ),
            reference: overtone_eval::Convention::default_for(game),
        }
    }
}

/// Finds out before training whether the game can be played afterwards.
///
/// # Errors
/// When Python, a package or the ROM is missing, in one sentence.
pub fn check_playable(game: &str) -> Result<()> {
    #[cfg(feature = "python")]
    {
        let game: overtone_ale::Game = game.parse()?;
        overtone_ale::check(game).context(
            "the agent could not be played after training (evaluation.episodes=0 trains alone)",
        )?;
        Ok(())
    }
    #[cfg(not(feature = "python"))]
    {
        let _ = game;
        bail!("built without the feature `python`: say evaluation.episodes=0 to train alone")
    }
}
