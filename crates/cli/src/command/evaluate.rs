//! `overtone evaluate rollouts`: plays a checkpoint and reports.

use std::{
    path::{Path, PathBuf},
    sync::atomic::{AtomicBool, Ordering},
};

use anyhow::{Context, Result, bail};
use overtone_core::{Emulation, Protocol, protocol::ReturnUnits};
use overtone_eval::{Evaluation, report};
use overtone_model::device;
use overtone_train::{Checkpoint, RunDir, metrics, run_dir::CONFIG};

use crate::{
    interrupt, keys,
    settings::{self, EvaluationSettings, Settings},
};

/// Every option with its default and reason.
pub const OPTIONS: &str = r#"
# A run's folder or name; empty: the newest run.
run = ""
# Folder of the runs.
runs = "runs"
# last, the step of a checkpoint, or a checkpoint's folder.
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
# Episodes played at once; 0: all of them.
parallel = 0
# Where to compute: auto, cpu, cuda or cuda:N; empty: as the run was trained.
device = ""
# Where to write the report; empty: evaluation.json in the run's folder.
out = ""
"#;

/// `overtone evaluate rollouts key=value…`.
pub fn rollouts(options: &[String]) -> Result<()> {
    let mut keys = keys::flatten(&OPTIONS.parse()?);
    keys::apply(&mut keys, options)?;
    let text = |key: &str| keys.get(key).map(keys::plain).unwrap_or_default();
    let root = PathBuf::from(text("runs"));
    let run = match text("run").as_str() {
        "" => RunDir::newest(&root)?,
        name => RunDir::open(&root, name)?,
    };
    let trained = Settings::load(&run.path().join(CONFIG))?;
    let checkpoint = match text("checkpoint").as_str() {
        "last" => {
            let (checkpoint, skipped) = Checkpoint::newest(&run.checkpoints())?;
            for error in skipped {
                eprintln!("warning: skipped a checkpoint: {error}");
            }
            checkpoint
        }
        name => match name.parse::<u64>() {
            Ok(step) => Checkpoint::at_step(&run.checkpoints(), step)?,
            Err(_) => Checkpoint::open(Path::new(name))?,
        },
    };
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
        "" => trained.device.clone(),
        name => name.to_owned(),
    };
    let out = match text("out").as_str() {
        "" => run.path().join("evaluation.json"),
        path => PathBuf::from(path),
    };
    // Found before playing, not after.
    if out.is_dir()
        || !out.parent().is_some_and(|folder| folder == Path::new("") || folder.is_dir())
    {
        bail!("out={}: must be a file in a folder that is there", out.display());
    }
    let stop = interrupt::listen()?;
    play_to(&run, &checkpoint, &evaluation, &device, &out, &stop)
}

/// Plays `checkpoint` and writes `evaluation.json` into the run.
///
/// # Errors
/// When the environment or the device is not there, or playing fails.
pub fn play(
    run: &RunDir,
    checkpoint: &Checkpoint,
    evaluation: &EvaluationSettings,
    device: &str,
    stop: &AtomicBool,
) -> Result<()> {
    play_to(run, checkpoint, evaluation, device, &run.path().join("evaluation.json"), stop)
}

fn play_to(
    run: &RunDir,
    checkpoint: &Checkpoint,
    options: &EvaluationSettings,
    device: &str,
    out: &Path,
    stop: &AtomicBool,
) -> Result<()> {
    if options.episodes == 0 {
        bail!("episodes=0: there is nothing to play");
    }
    let state = &checkpoint.state;
    if state.recording.is_none() {
        say!("how this data was recorded is not known; taken to be as DQN-replay was");
    }
    let recording = state.recording.as_ref();
    let (protocol, targets) = what_to_ask(options, recording, &state.episode_returns)?;
    say!(
        "playing {} (update {}): protocol {}, {} episodes for each target of {}",
        checkpoint.path.display(),
        state.step,
        protocol.name,
        options.episodes,
        describe_targets(&options.target, &targets, &state.episode_returns)
    );
    let chosen = device::choose(device)?;
    let model = checkpoint.model(&chosen.device)?;
    let job = Job { run, checkpoint, options, protocol, targets, stop };
    let evaluation = job.play(&model)?;
    evaluation.write(out).context("cannot write the report")?;
    say!("{}", evaluation.to_text());
    say!("report: {}", out.display());
    let scores: Vec<(f32, f64, Option<f64>)> = evaluation
        .targets
        .iter()
        .map(|target| {
            let normalized = target.normalized.as_ref().map(|summary| summary.mean);
            (target.target_return, target.raw_return.mean, normalized)
        })
        .collect();
    Ok(metrics::write_scores(run.path(), state.step, &scores)?)
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

/// One evaluation.
struct Job<'a> {
    run: &'a RunDir,
    checkpoint: &'a Checkpoint,
    options: &'a EvaluationSettings,
    protocol: Protocol,
    targets: Vec<f32>,
    /// Set to end early.
    stop: &'a AtomicBool,
}

impl Job<'_> {
    #[cfg(feature = "python")]
    fn play(&self, model: &overtone_model::DecisionTransformer) -> Result<Evaluation> {
        use std::ops::ControlFlow;

        use overtone_eval::{Plan, rollout};
        use overtone_model::TransformerPolicy;

        use crate::progress;

        let game: overtone_ale::Game = self.checkpoint.state.game.parse()?;
        let plan = Plan {
            episodes: self.options.episodes,
            targets: self.targets.clone(),
            seed: self.options.seed,
            return_units: self.protocol.return_units,
        };
        let slots = match self.options.parallel {
            0 => plan.n_episodes(),
            parallel => parallel.min(plan.n_episodes()),
        };
        if slots >= 20 {
            // About a tenth of a second each, one after the other.
            say!("starting {slots} emulators");
        }
        let mut env = overtone_ale::open(game, &self.protocol.emulation, slots)?;
        let mut policy = TransformerPolicy::new(model, &self.protocol);
        let bar = progress::episodes(plan.n_episodes());
        let started = std::time::Instant::now();
        let played = rollout(env.as_mut(), &mut policy, &plan, &mut |progress| {
            bar.set_position(progress.episodes_done as u64);
            let rate = progress.steps as f64 / started.elapsed().as_secs_f64().max(1e-9);
            bar.set_message(format!("{} live, {rate:.0} steps/s", progress.live));
            match self.stop.load(Ordering::Relaxed) {
                true => ControlFlow::Break(()),
                false => ControlFlow::Continue(()),
            }
        })?;
        bar.finish_and_clear();
        Ok(Evaluation::new(self.setting(game.name(), Some(game.rom_md5())), &plan, played)?)
    }

    #[cfg(not(feature = "python"))]
    fn play(&self, _model: &overtone_model::DecisionTransformer) -> Result<Evaluation> {
        let _ = Self::setting;
        let _ = (
            self.run,
            self.options,
            &self.protocol,
            &self.targets,
            self.stop.load(Ordering::Relaxed),
        );
        bail!("this program was built without the feature `python`, so it can train but not play")
    }

    fn setting(&self, game: &str, rom_md5: Option<&str>) -> report::Setting {
        let state = &self.checkpoint.state;
        let inside = self.checkpoint.path.strip_prefix(self.run.path());
        let targets: Vec<String> = self.targets.iter().map(f32::to_string).collect();
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
                self.options.episodes,
                targets.join(","),
                self.protocol.name,
                self.protocol.temperature,
                self.options.seed
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
