//! `overtone video`: one episode of an evaluation, repeated and drawn.

mod camera;

use std::{
    fs::File,
    io::BufWriter,
    ops::ControlFlow,
    path::{Path, PathBuf},
    sync::atomic::{AtomicBool, Ordering},
};

use anyhow::{Context, Result, bail};
use overtone_console::{progress, quoted};
use overtone_core::{ActionScale, Play, Task, decimal};
use overtone_env::ActionSpace;
use overtone_eval::{Evaluation, PlayedEpisode, TargetResult, replay};
use overtone_model::device;
use overtone_report::{Filmed, Reel};
use overtone_settings::{options, runs::open_run, suites};
use overtone_train::{Checkpoint, RunDir};

use self::camera::Camera;
use super::evaluate::{self, playing};
use crate::interrupt;

overtone_model::options! {
    /// Options of `video`.
    pub struct VideoOptions {
        /// A run's directory or name; empty: the newest run.
        pub run: String = String::new(),
        /// Directory that contains the runs.
        pub runs: PathBuf = "runs".into(),
        /// The evaluation in the run's directory whose episode is shown; empty: evaluation.json,
        /// else the first.
        pub evaluation: String = String::new(),
        /// Target return, if the evaluation has several; empty: the first.
        pub target: String = String::new(),
        /// The episode: median, best or worst by the raw return, or a number from 0. The best of
        /// many is not typical.
        pub episode: String = "median".into(),
        /// Maximum number of steps in the video.
        pub steps: u64 = 1500,
        /// Steps for each frame of the video: 2 halves the file. The video has the speed of the
        /// game (1/15 s for a step) or the simulation.
        pub every: u64 = 2,
        /// Compute device: auto, cpu, cuda or cuda:N. On another device than the evaluation's,
        /// rounding may lead to another episode.
        pub device: String = "auto".into(),
        /// Output file; empty: video.gif in the run's directory.
        pub out: PathBuf = PathBuf::new(),
    }
}

/// The episode to film, and the output.
pub struct Request {
    /// The evaluated run.
    pub run: RunDir,
    /// The options, in which `evaluation` and `out` are set.
    pub options: VideoOptions,
}

impl Request {
    /// A request of `options` for `run`.
    pub fn new(run: RunDir, mut options: VideoOptions) -> Self {
        if options.out.as_os_str().is_empty() {
            options.out = run.path().join("video.gif");
        }
        if options.evaluation.is_empty() {
            options.evaluation = evaluate::first_report(&run);
        }
        Self { run, options }
    }
}

/// `overtone video key=value…`.
pub fn run(words: &[String]) -> Result<()> {
    let options: VideoOptions = options::read(words)?;
    options::at_least_1([("steps", options.steps), ("every", options.every)])?;
    let run = open_run(&options.runs, &options.run)?;
    let stop = interrupt::listen()?;
    film(&Request::new(run, options), &stop)
}

/// Repeats the episode and writes its video, with a description of the episode next to it.
///
/// # Errors
/// When the evaluation, the episode or the evaluated checkpoint does not exist, or the file cannot
/// be written.
pub fn film(request: &Request, stop: &AtomicBool) -> Result<()> {
    let Request { run, options } = request;
    let path = run.path().join(&options.evaluation);
    if !path.is_file() {
        bail!(
            "{} does not exist. Evaluate the agent first: overtone evaluate rollouts run={}",
            path.display(),
            quoted(run.path())
        );
    }
    check_out(&options.out)?;
    let evaluation = Evaluation::read(&path)?;
    let (target, episode) = choose(&evaluation, &options.target, &options.episode)?;
    let setting = &evaluation.setting;
    let Some(played) = &setting.checkpoint else {
        bail!("{}: the evaluation does not have a checkpoint", path.display())
    };
    let checkpoint = Checkpoint::open(&run.path().join(&played.path)).context(
        "the evaluated checkpoint does not exist any more. Evaluate again, then film it",
    )?;
    let chosen = device::choose(&options.device)?;
    let mut policy = overtone_agents::policy(&checkpoint, &setting.protocol, &chosen.device)?;
    let mut env = playing::open(&setting.task, &setting.protocol, 1)?;
    let mut camera = Camera::open(&setting.task, &setting.protocol)?;
    camera.reset(episode.environment_seed)?;
    say!(
        "filming episode {} of {} (raw return {}, {} steps{}) under the {} protocol",
        episode.episode,
        target.raw_return.n,
        decimal(episode.raw_return, 1),
        episode.length,
        setting
            .condition(episode.target_return)
            .map_or(String::new(), |target| format!("; target {target}")),
        setting.protocol.name
    );
    let bar = progress::parts("filming", episode.length.min(options.steps) as usize);
    let unfinished = overtone_files::beside(&options.out);
    let file = File::create(&unfinished)
        .with_context(|| format!("cannot write {}", options.out.display()))?;
    let names = match env.action_space() {
        ActionSpace::Discrete { names } => names.clone(),
        ActionSpace::Continuous { .. } => camera.action_names().to_vec(),
    };
    let hundredths = hundredths(&setting.task, &setting.protocol, options.every)?;
    let mut reel = Reel::new(BufWriter::new(file), setting.task.title.clone(), names, hundredths);
    reel.is_conditioned = setting.used_settings.target;
    reel.scale = ActionScale::of(env.action_space());
    let mut failed = None;
    let play = &setting.protocol;
    let again = replay(env.as_mut(), policy.as_mut(), episode, play, &mut |moment| {
        bar.set_position(moment.step);
        if moment.step >= options.steps || stop.load(Ordering::Relaxed) {
            return ControlFlow::Break(());
        }
        let shown = match moment.step % options.every {
            0 => camera.shot(moment).and_then(|screen| Ok(reel.show(&screen, moment)?)),
            _ => Ok(()),
        };
        match shown.and_then(|()| camera.step(moment.actions)) {
            Ok(()) => ControlFlow::Continue(()),
            Err(error) => {
                failed = Some(error);
                ControlFlow::Break(())
            }
        }
    });
    bar.finish_and_clear();
    let finished = again.map_err(anyhow::Error::from).and_then(|again| match failed {
        Some(error) => Err(error),
        None if stop.load(Ordering::Relaxed) => {
            Err(interrupt::Stopped("no video was written").into())
        }
        None => finish(reel).map(|()| again),
    });
    let again = match finished {
        Ok(again) => again,
        Err(error) => {
            let _ = std::fs::remove_file(&unfinished);
            return Err(error);
        }
    };
    let filmed = Filmed::new(&evaluation, &options.evaluation, &options.episode, episode);
    // A video never stands next to the description of another.
    put(&unfinished, &options.out)
        .with_context(|| format!("cannot write {}", options.out.display()))?;
    filmed.write(&options.out).context("cannot write the description of the video")?;
    let is_same = (again.length, again.raw_return) == (episode.length, episode.raw_return);
    if again.length < options.steps && !is_same {
        say!(
            "note: this time the episode returned {} in {} steps. Rounding and draws may differ \
             on another device or machine, and on a GPU also in another batch",
            decimal(again.raw_return, 1),
            again.length
        );
    }
    say!("video: {}", options.out.display());
    Ok(())
}

/// Whether the video of `request` exists and still shows an episode of the run's evaluations.
pub fn is_filmed(request: &Request) -> bool {
    let Ok(Some(filmed)) = Filmed::read(&request.options.out) else { return false };
    let path = request.run.path().join(&filmed.evaluation);
    let Ok(evaluation) = Evaluation::read(&path) else { return false };
    let target = filmed.episode.target_return.to_string();
    let episode = choose(&evaluation, &target, &filmed.chosen);
    request.options.out.is_file()
        && episode.is_ok_and(|(_, episode)| {
            Filmed::new(&evaluation, &filmed.evaluation, &filmed.chosen, episode) == filmed
        })
}

/// Renames a finished video to its place, after removing the description of the earlier one.
fn put(finished: &Path, out: &Path) -> std::io::Result<()> {
    match std::fs::remove_file(Filmed::path(out)) {
        Err(error) if error.kind() != std::io::ErrorKind::NotFound => Err(error),
        _ => overtone_files::put(finished, out),
    }
}

/// Creates the directory of a video, and checks before the rollout whether the video can be
/// written.
///
/// # Errors
/// When it cannot.
fn check_out(out: &Path) -> Result<()> {
    if out.is_dir() {
        bail!("out={}: is a directory. Use a file, such as out=video.gif", out.display());
    }
    if out.extension().is_some_and(|ending| !ending.eq_ignore_ascii_case("gif")) {
        bail!("out={}: expected a name that ends in .gif, the format of videos", out.display());
    }
    let folder = out.parent().filter(|folder| !folder.as_os_str().is_empty());
    folder
        .map_or(Ok(()), std::fs::create_dir_all)
        .and_then(|()| overtone_files::check_writable(out))
        .with_context(|| format!("cannot write {} (out= sets another file)", out.display()))
}

/// The requested target and episode.
fn choose<'a>(
    evaluation: &'a Evaluation,
    target: &str,
    which: &str,
) -> Result<(&'a TargetResult, &'a PlayedEpisode)> {
    let targets = &evaluation.targets;
    let found = match target {
        "" => targets.first(),
        text => {
            let number: f32 =
                text.parse().ok().with_context(|| format!("target={text}: expected a number"))?;
            targets.iter().find(|target| target.target_return == number)
        }
    };
    let Some(target) = found else {
        let known: Vec<String> = targets.iter().map(|t| t.target_return.to_string()).collect();
        bail!("target={target}: the evaluation has the targets {}", known.join(", "))
    };
    let mut episodes: Vec<&PlayedEpisode> = evaluation
        .episodes
        .iter()
        .filter(|episode| episode.target_return == target.target_return)
        .collect();
    let n = episodes.len();
    let place = match which {
        "worst" => 0,
        "median" => n.saturating_sub(1) / 2,
        "best" => n.saturating_sub(1),
        number => {
            let number: usize = number.parse().ok().with_context(|| {
                format!("episode={which}: expected median, best, worst or a number from 0")
            })?;
            let found = episodes.iter().find(|episode| episode.episode == number);
            return match found {
                Some(episode) => Ok((target, episode)),
                None => bail!("episode={number}: the evaluation has {n} episodes, counted from 0"),
            };
        }
    };
    episodes.sort_by(|a, b| a.raw_return.total_cmp(&b.raw_return));
    let episode = episodes.get(place).context("the evaluation does not have an episode")?;
    Ok((target, episode))
}

/// The duration of a frame of the video, in hundredths of a second.
fn hundredths(task: &Task, protocol: &Play, every: u64) -> Result<u16> {
    let seconds = suites::of(task)?.seconds_per_action(task, &protocol.simulation)?;
    // Viewers show at most 50 frames per second.
    Ok((100.0 * seconds * every as f64).round().clamp(2.0, 1000.0) as u16)
}

/// Finishes the file and syncs it to the disk.
fn finish(reel: Reel<BufWriter<File>>) -> Result<()> {
    let file = reel.finish()?.context("the episode does not have a step to show")?;
    let file = file.into_inner().map_err(|error| error.into_error())?;
    Ok(file.sync_all()?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pictures_are_seen_as_long_as_they_took() {
        let task = suites::named("seaquest").unwrap();
        let play = task.matched(None);
        // 4 of 60 frames a second, twice.
        assert_eq!(hundredths(task, &play, 2).unwrap(), 13);
        assert_eq!(hundredths(task, &play, 1_000_000).unwrap(), 1000);
    }
}
