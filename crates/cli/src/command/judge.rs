//! `overtone judge`: estimates of returns from a recording, for runs that cannot be played.

mod outside;
mod recording;

use std::{
    ops::ControlFlow,
    path::{Path, PathBuf},
    sync::atomic::Ordering,
};

use anyhow::{Context, Result, ensure};
use overtone_agents::{Agent, policy};
use overtone_console::progress;
use overtone_core::{
    ActionScale, Play,
    imitation::Imitation,
    judgement::{Judged, Judgement, Method, Trained, Verdict},
};
use overtone_data::Dataset;
use overtone_judge::{
    Candidate, Forced, JudgeError, LEAST_EPISODES, Progress, Request, imitation::imitation,
};
use overtone_model::device;
use overtone_report::estimates::{self, RECORDED_STEPS, scope, with_interval};
use overtone_report::imitation as texts;
use overtone_settings::{
    RunConfig, options,
    runs::{check_own, open_checkpoint, open_runs},
};
use overtone_train::{Checkpoint, RunDir, run_dir::CONFIG};
use serde::{Deserialize, Serialize};

use self::outside::outside;
use self::recording::{JudgingRecording, RecordingPart, recording_of};
use super::evaluate::{ChooseOptions, OwnChoice, candidate_modes, play_of};
use crate::interrupt;

overtone_model::options! {
    /// Options of `judge`.
    pub struct JudgeOptions {
        /// A run's directory or name, or several (a,b); empty: the newest run.
        pub run: String = String::new(),
        /// Directory that contains the runs.
        pub runs: PathBuf = "runs".into(),
        /// last; best, the lowest loss on held-out episodes; the step of a checkpoint; or a
        /// checkpoint's directory.
        pub checkpoint: String = "last".into(),
        /// The recording: a file, or a dataset of the run's task. Empty: the run's training data.
        pub dataset: String = String::new(),
        /// A policy of another program, in place of a run: a .npy file with its probabilities at every
        /// row of dataset, `[rows, actions]`, or with its probability (density) of each recorded
        /// action, `[rows]`.
        pub probs: PathBuf = PathBuf::new(),
        /// all: every acting mode that evaluate choose would play. own: the run's own mode.
        pub modes: Modes = Modes::All,
        /// Target return, as a number or a percentile of the dataset's returns, weighted by episode
        /// length. Empty: p95.
        pub target: String = String::new(),
        /// Discount of all returns, above 0. 1 needs episodes of at most 100 steps.
        pub discount: f64 = 0.99,
        /// Updates of each critic of fitted Q-evaluation, with at most 20 passes over the recorded
        /// steps. 0: importance weights only (discrete actions with log-probabilities).
        pub updates: usize = 2000,
        /// Critics, each of another bootstrap sample of the episodes; at least 2.
        pub critics: usize = 5,
        /// Maximum number of recorded steps: whole episodes, drawn by the seed, at least 20. 0: all.
        pub steps: usize = 50_000,
        /// Seed of all random numbers.
        pub seed: u64 = 1,
        /// Exit with 1 if the recording cannot tell for one of the modes.
        pub strict: bool = false,
    }
}

/// Acting modes to judge.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Modes {
    /// Every mode that `evaluate choose` would play.
    #[default]
    All,
    /// The run's own mode.
    Own,
}

/// `overtone judge key=value…`; returns the exit code.
pub fn run(words: &[String]) -> Result<u8> {
    let options: JudgeOptions = options::read(words)?;
    options.check()?;
    let mut can_tell = true;
    let mut tell = |judgement: &Judgement, path: &Path| {
        say!("{}", describe(judgement));
        say!("estimates, not scores: docs/how-to/no-simulator.md; {}", path.display());
        let cannot = |of: &Judged| matches!(of.verdict, Verdict::CannotTell { .. });
        can_tell &= !judgement.policies.iter().any(cannot);
    };
    if !options.probs.as_os_str().is_empty() {
        let path = options.probs.with_extension(Judgement::FILE);
        tell(&judge_outside(&options, &path)?, &path);
        return Ok(u8::from(options.strict && !can_tell));
    }
    for run in open_runs(&options.runs, &options.run)? {
        let checkpoint = open_checkpoint(&run, &options.checkpoint)?;
        check_own(&run, &checkpoint)?;
        tell(&judge(&run, &checkpoint, &options)?, &run.path().join(Judgement::FILE));
    }
    Ok(u8::from(options.strict && !can_tell))
}

/// Judges a trained run whose task has no environment, with the target of its settings, and prints
/// the result, or why the recording cannot be judged.
///
/// # Errors
/// When it is stopped.
pub fn after_training(run: &RunDir, checkpoint: &Checkpoint, target: &str) -> Result<()> {
    let target = target.split(',').next().unwrap_or_default().to_owned();
    let options = JudgeOptions { modes: Modes::Own, target, ..JudgeOptions::default() };
    match judge(run, checkpoint, &options) {
        Ok(judgement) => say!("{}", describe(&judgement)),
        Err(error) if interrupt::is_stop(&error) => return Err(error),
        Err(error) => say!("not judged: {error:#}"),
    }
    Ok(())
}

impl JudgeOptions {
    fn check(&self) -> Result<()> {
        ensure!(
            self.discount > 0.0 && self.discount <= 1.0,
            "discount={}: expected a number above 0 and at most 1, such as 0.99",
            self.discount
        );
        ensure!(
            self.critics >= 2,
            "critics={}: expected at least 2, because their differences make the interval",
            self.critics
        );
        ensure!(!self.target.contains(','), "target={}: expected one return", self.target);
        if self.probs.as_os_str().is_empty() {
            return Ok(());
        }
        ensure!(
            !self.dataset.is_empty(),
            "probs={}: also name the recording whose rows these are, dataset=/path/to/it",
            self.probs.display()
        );
        let of_runs = Self {
            probs: self.probs.clone(),
            dataset: self.dataset.clone(),
            discount: self.discount,
            updates: self.updates,
            critics: self.critics,
            steps: self.steps,
            seed: self.seed,
            strict: self.strict,
            ..Self::default()
        };
        ensure!(
            *self == of_runs,
            "probs={} is judged in place of a run. Leave out run, runs, checkpoint, modes and target",
            self.probs.display()
        );
        Ok(())
    }

    fn of_judge(&self) -> overtone_judge::JudgeOptions {
        overtone_judge::JudgeOptions {
            discount: self.discount,
            updates: self.updates,
            critics: self.critics,
            seed: self.seed,
        }
    }
}

/// Judges a policy of another program and writes the judgement to `path`.
fn judge_outside(options: &JudgeOptions, path: &Path) -> Result<Judgement> {
    let (data, policy) = outside(options)?;
    let name = options.probs.file_name().unwrap_or_default().to_string_lossy();
    let dataset = data.path().display().to_string();
    let request = Request {
        run: &name,
        step: 0,
        target_return: 0.0,
        is_conditioned: false,
        data: &data,
        dataset: &dataset,
        trained: Trained::Unknown,
        action_scale: None,
    };
    let n_episodes = data.episodes().as_slice().len();
    say!("judging {name} by {n_episodes} episodes of {dataset}");
    let judgement = with_progress(&data, |progress| {
        overtone_judge::judge_known(&request, policy, &options.of_judge(), progress)
    })?;
    let json = serde_json::to_vec_pretty(&judgement)?;
    overtone_files::replace(path, &json).with_context(|| path.display().to_string())?;
    Ok(judgement)
}

/// The judgement of `judge`, which reports its progress.
fn with_progress(
    data: &Dataset,
    judge: impl FnOnce(&mut Progress<'_>) -> Result<Judgement, JudgeError>,
) -> Result<Judgement> {
    let stop = interrupt::listen()?;
    let mut bar = None;
    let mut progress = |what: &'static str, done: usize, all: usize| {
        let is_new = !matches!(&bar, Some((of, _)) if *of == what);
        if is_new {
            bar = Some((what, progress::parts(what, all)));
        }
        if let Some((_, bar)) = &bar {
            bar.set_position(done as u64);
            if done == all {
                bar.finish_and_clear();
            }
        }
        if stop.load(Ordering::Relaxed) {
            ControlFlow::Break(())
        } else {
            ControlFlow::Continue(())
        }
    };
    match judge(&mut progress) {
        Err(JudgeError::Stopped) => Err(interrupt::Stopped("nothing was judged").into()),
        judged => judged.with_context(|| data.path().display().to_string()),
    }
}

/// Judges a checkpoint and writes the judgement into its run.
fn judge(run: &RunDir, checkpoint: &Checkpoint, options: &JudgeOptions) -> Result<Judgement> {
    let agent = Agent::of(checkpoint)?;
    let config = RunConfig::load(&run.path().join(CONFIG))?;
    let part = RecordingPart {
        dataset: &options.dataset,
        trained_hash: &checkpoint.state.dataset_hash,
        steps: options.steps,
        least: LEAST_EPISODES,
        seed: options.seed,
    };
    let recording = recording_of(&config, &agent.task, &part)?;
    let JudgingRecording { data, trained, .. } = &recording;
    let own = OwnChoice::of(run, checkpoint)?;
    let returns = &checkpoint.state.episode_returns;
    let (play, target) = play_of(&agent, returns, &own, &options.target, [None; 3])?;
    let modes = match options.modes {
        Modes::All => {
            let target = options.target.clone();
            candidate_modes(&agent, &own, &ChooseOptions { target, ..Default::default() })?.0
        }
        Modes::Own => vec![play.acting],
    };
    let device = device::choose("cpu")?.device;
    let mut candidates = Vec::with_capacity(modes.len());
    for mode in modes {
        let play = Play { acting: mode, ..play.clone() };
        candidates.push(Candidate { mode, policy: policy(checkpoint, &play, &device)?, play });
    }
    let scale = ActionScale::of(&agent.task.actions);
    let name = run.path().file_name().unwrap_or_default().to_string_lossy();
    let request = Request {
        run: &name,
        step: checkpoint.state.step,
        target_return: target,
        is_conditioned: agent.algorithm.reads_returns(),
        data,
        dataset: &data.path().display().to_string(),
        trained: *trained,
        action_scale: scale.as_ref(),
    };
    let mut own =
        Candidate { mode: play.acting, policy: policy(checkpoint, &play, &device)?, play };
    compare(run, &request, &recording, &mut own, options.seed)?;
    say!(
        "judging {} ({}) by {} episodes of {}",
        checkpoint.path.display(),
        agent.algorithm.describe(),
        data.episodes().as_slice().len(),
        data.path().display()
    );
    let judgement = with_progress(data, |progress| {
        overtone_judge::judge(&request, &mut candidates, &options.of_judge(), progress)
    })?;
    let json = serde_json::to_vec_pretty(&judgement)?;
    run.write(Judgement::FILE, &json)?;
    Ok(judgement)
}

/// Compares an agent's actions with recorded ones, prints the result and writes it into the run.
fn compare(
    run: &RunDir,
    of: &Request<'_>,
    recording: &JudgingRecording,
    candidate: &mut Candidate,
    seed: u64,
) -> Result<()> {
    let JudgingRecording { compared, places, .. } = recording;
    let Candidate { mode, policy, play } = candidate;
    let target = of.target_return;
    let forced = Forced::replay(&mut **policy, play, target, compared, of.action_scale, seed)?;
    let of = Request { data: compared, ..*of };
    let imitation = imitation(&of, *mode, &forced.actions, places, seed);
    let Some(imitation) = imitation else { return Ok(()) };
    say!("{}\n{}", texts::scope(&imitation), texts::table(&imitation));
    texts::sentences(&imitation).iter().for_each(|line| say!("{line}"));
    run.write(Imitation::FILE, &serde_json::to_vec_pretty(&imitation)?)?;
    Ok(())
}

/// The judgement as text: the recording, a table of the modes, and a note.
fn describe(judgement: &Judgement) -> String {
    let Judgement { recording, clone, .. } = judgement;
    let mut lines = vec![format!(
        "recorded: {} episodes of {:.1} steps on average, mean return {} (discounted by {}, \
         {RECORDED_STEPS})",
        recording.episodes,
        recording.mean_length,
        with_interval(recording.mean_return, recording.interval),
        judgement.discount
    )];
    if let Some(clone) = clone {
        lines.push(format!(
            "known answer: fitted Q-evaluation estimates {} for a clone of the recorded policy ({})",
            with_interval(clone.value, clone.interval),
            scope(clone.method)
        ));
    }
    match recording.trained {
        Trained::Yes => lines.push(
            "note: the agent trained on these episodes, so estimates may be too high. Hold out at \
             least 20 episodes with train.held_out (not with data.top_percent), or judge by another \
             dataset="
                .into(),
        ),
        Trained::Unknown => lines.push(
            "note: it is unknown whether the agent trained on these episodes (its training data is \
             missing or not known, has changed, or has equal episodes). If it did, estimates may be \
             too high"
                .into(),
        ),
        Trained::No => {}
    }
    let (table, methods) = (estimates::table(judgement), estimates::methods(judgement));
    let level = estimates::level(judgement);
    lines.push(if judgement.policies.iter().all(|of| of.estimates.is_empty()) {
        format!("{table}\nnothing was estimated: every mode failed a check that comes first")
    } else {
        format!(
            "{table}\nmethod: {methods}; every return is a mean over episodes, discounted by {}; \
             intervals at {level}",
            judgement.discount
        )
    });
    let is_fitted =
        |of: &Judged| of.deciding().is_some_and(|estimate| estimate.method == Method::FittedQ);
    if judgement.policies.iter().any(is_fitted) {
        let equal_lengths = recording.mean_length == recording.longest as f64;
        lines.push(format!(
            "note: intervals of fitted Q-evaluation do not contain its bias, so they are too narrow{}",
            if equal_lengths {
                ". All episodes have one length: put the time step among the observations, if it is \
                 not there"
            } else {
                ""
            }
        ));
    }
    lines.join("\n")
}
