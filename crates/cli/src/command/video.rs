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
use overtone_console::quoted;
use overtone_core::{ActionScale, Play, Task};
use overtone_env::ActionSpace;
use overtone_eval::{Evaluation, PlayedEpisode, TargetResult, replay, rollout::role_seeds};
use overtone_model::device;
use overtone_report::{Filmed, Reel};
use overtone_train::{Checkpoint, RunDir};

use self::camera::Camera;
use super::evaluate::{self, playing};
use crate::{interrupt, keys, progress, runs::open_run, suites};

/// Every option with its default and reason.
pub const OPTIONS: &str = r#"
# A run's directory or name; empty: the newest run.
run = ""
# Directory that contains the runs.
runs = "runs"
# The evaluation in the run's directory whose episode is shown; empty: evaluation.json, else the first.
evaluation = ""
# Target return, if the evaluation has several; empty: the first.
target = ""
# The episode: median, best or worst by the raw return, or a number from 0. The best of many is not typical.
episode = "median"
# Maximum number of steps in the video.
steps = 1500
# Steps for each frame of the video: 2 halves the file. The video has the speed of the game (1/15 s for a step) or the simulation.
every = 2
# Compute device: auto, cpu, cuda or cuda:N. On another device than the evaluation's, rounding may lead to another episode.
device = "auto"
# Output file; empty: video.gif in the run's directory.
out = ""
"#;

/// The episode to film, and the output.
pub struct Request {
    /// The evaluated run.
    pub run: RunDir,
    /// The evaluation's file name in the run's directory.
    pub evaluation: String,
    /// The target return; empty: the first.
    pub target: String,
    /// `median`, `best`, `worst` or a number.
    pub episode: String,
    /// Maximum number of steps.
    pub steps: u64,
    /// Steps for each frame of the video.
    pub every: u64,
    /// Compute device.
    pub device: String,
    /// Output file.
    pub out: PathBuf,
}

impl Request {
    /// The defaults for a run.
    pub fn of(run: RunDir) -> Result<Self> {
        Self::parse(run, &keys::given(OPTIONS, &[])?)
    }

    fn parse(run: RunDir, keys: &keys::Keys) -> Result<Self> {
        let text = |key: &str| keys::text(keys, key);
        let count = |key: &str| keys::whole(keys, key, 1).map(|n| n as u64);
        let out = match text("out") {
            empty if empty.is_empty() => run.path().join("video.gif"),
            path => PathBuf::from(path),
        };
        let evaluation = match text("evaluation") {
            empty if empty.is_empty() => evaluate::first_report(&run),
            name => name,
        };
        Ok(Self {
            evaluation,
            target: text("target"),
            episode: text("episode"),
            steps: count("steps")?,
            every: count("every")?,
            device: text("device"),
            out,
            run,
        })
    }
}

/// `overtone video key=value…`.
pub fn run(options: &[String]) -> Result<()> {
    let keys = keys::given(OPTIONS, options)?;
    let root = PathBuf::from(keys::text(&keys, "runs"));
    let run = open_run(&root, &keys::text(&keys, "run"))?;
    let stop = interrupt::listen()?;
    film(&Request::parse(run, &keys)?, &stop)
}

/// Repeats the episode and writes its video, with a description of the episode next to it.
///
/// # Errors
/// When the evaluation, the episode or the evaluated checkpoint does not exist, or the file cannot
/// be written.
pub fn film(request: &Request, stop: &AtomicBool) -> Result<()> {
    let path = request.run.path().join(&request.evaluation);
    if !path.is_file() {
        bail!(
            "{} does not exist. Evaluate the agent first: overtone evaluate rollouts run={}",
            path.display(),
            quoted(request.run.path())
        );
    }
    check_out(&request.out)?;
    let evaluation = Evaluation::read(&path)?;
    let (target, episode) = choose(&evaluation, &request.target, &request.episode)?;
    let setting = &evaluation.setting;
    let Some(played) = &setting.checkpoint else {
        bail!("{}: the evaluation does not have a checkpoint", path.display())
    };
    let checkpoint = Checkpoint::open(&request.run.path().join(&played.path)).context(
        "the evaluated checkpoint does not exist any more. Evaluate again, then film it",
    )?;
    let chosen = device::choose(&request.device)?;
    let mut policy = overtone_agents::policy(&checkpoint, &setting.protocol, &chosen.device)?;
    let mut env = playing::open(&setting.task, &setting.protocol, 1)?;
    let mut camera = Camera::open(&setting.task, &setting.protocol)?;
    camera.reset(role_seeds(episode.seed).0)?;
    say!(
        "filming episode {} of {} (raw return {:.1}, {} steps{}) under the {} protocol",
        episode.episode,
        target.raw_return.n,
        episode.raw_return,
        episode.length,
        setting
            .told(episode.target_return)
            .map_or(String::new(), |target| format!("; target {target}")),
        setting.protocol.name
    );
    let bar = progress::parts("filming", episode.length.min(request.steps) as usize);
    let unfinished = overtone_files::beside(&request.out);
    let file = File::create(&unfinished)
        .with_context(|| format!("cannot write {}", request.out.display()))?;
    let names = match env.action_space() {
        ActionSpace::Discrete { names } => names.clone(),
        ActionSpace::Continuous { .. } => camera.action_names().to_vec(),
    };
    let hundredths = hundredths(&setting.task, &setting.protocol, request.every)?;
    let mut reel = Reel::new(BufWriter::new(file), setting.task.title.clone(), names, hundredths);
    reel.is_asked = setting.heeds.target;
    reel.scale = ActionScale::of(env.action_space());
    let mut failed = None;
    let play = &setting.protocol;
    let again = replay(env.as_mut(), policy.as_mut(), episode, play, &mut |moment| {
        bar.set_position(moment.step);
        if moment.step >= request.steps || stop.load(Ordering::Relaxed) {
            return ControlFlow::Break(());
        }
        let shown = match moment.step % request.every {
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
    let filmed = Filmed::new(&evaluation, &request.evaluation, &request.episode, episode);
    // A video never stands next to the description of another.
    put(&unfinished, &request.out)
        .with_context(|| format!("cannot write {}", request.out.display()))?;
    filmed.write(&request.out).context("cannot write the description of the video")?;
    if again.length < request.steps && again != *episode {
        say!(
            "note: this time the episode returned {:.1} in {} steps. Rounding and draws may differ \
             on another device or machine, and on a GPU also in another batch",
            again.raw_return,
            again.length
        );
    }
    say!("video: {}", request.out.display());
    Ok(())
}

/// Whether the video of `request` exists and still shows an episode of the run's evaluations.
pub fn is_filmed(request: &Request) -> bool {
    let Ok(Some(filmed)) = Filmed::read(&request.out) else { return false };
    let path = request.run.path().join(&filmed.evaluation);
    let Ok(evaluation) = Evaluation::read(&path) else { return false };
    let target = filmed.episode.target_return.to_string();
    let episode = choose(&evaluation, &target, &filmed.chosen);
    request.out.is_file()
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
