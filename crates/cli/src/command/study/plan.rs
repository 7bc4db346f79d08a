//! `overtone study run … plan=true`: the estimated cost of a study.

use std::{collections::BTreeMap, fs, path::Path, process::Command};

use anyhow::{Context, Result, bail};
use overtone_eval::Evaluation;
use overtone_settings::{EvaluationConfig, Resume, RunConfig};
use overtone_study::{Engine, Study, StudyFolder, last_step};
use overtone_train::RunDir;

use super::cells::{self, KnownRuns, Resolved};
use crate::{
    command::{evaluate, provenance, train},
    host,
};

/// Updates to measure without a similar run.
const MEASURED: usize = 20;

/// The cost of a cell's run.
#[derive(Clone, Copy, Debug, Default)]
struct Cost {
    /// Seconds of the whole training.
    training_s: f64,
    /// Seconds of an evaluation episode, if known.
    episode_s: Option<f64>,
    bytes: u64,
}

/// Prints the cells of a study, and the cost of the unfinished ones.
///
/// # Errors
/// When a measurement fails.
pub fn plan(study: &Study, folder: &StudyFolder, cells: &[Resolved], measure: bool) -> Result<()> {
    let status = cells::status(study, folder, cells)?;
    say!("{status}");
    let Some(first) = cells.first() else { return Ok(()) };
    let runs: Vec<(RunDir, RunConfig)> = RunDir::all(&first.settings.runs)
        .into_iter()
        .filter_map(|run| {
            let settings = RunConfig::load(&run.path().join("config.toml")).ok()?;
            train::is_finished(&run).then_some((run, settings))
        })
        .collect();
    let own = KnownRuns::read(&first.settings.runs);
    let mut known: BTreeMap<String, Option<Cost>> = BTreeMap::new();
    let (mut total, mut playing_s) = (Cost::default(), 0.0);
    let (mut unknown, mut not_played) = (Vec::new(), 0);
    for (resolved, status_of_cell) in cells.iter().zip(&status.cells) {
        if status_of_cell.state.is_done() {
            continue;
        }
        let label = &resolved.cell.label;
        if !known.contains_key(label) {
            let like = runs.iter().find(|(_, settings)| is_like(settings, &resolved.settings));
            let cost = match like {
                Some((run, _)) => of_run(run),
                None if measure => Some(measured(resolved)?),
                None => None,
            };
            known.insert(label.clone(), cost);
        }
        match known[label] {
            None => unknown.push(resolved.cell.id.as_str()),
            Some(cost) => {
                let run = own.of(resolved);
                total.training_s += cost.training_s * left(run);
                total.bytes += cost.bytes;
                let n_episodes = match run.filter(|run| train::is_finished(run)) {
                    Some(run) => episodes(resolved.awaited(run)),
                    None => episodes(resolved.played()),
                };
                match cost.episode_s.map(|seconds| seconds * n_episodes) {
                    Some(seconds) => playing_s += seconds,
                    None => not_played += 1,
                }
            }
        }
    }
    let hours = |seconds: f64| format!("{:.2} h", seconds / 3600.0);
    let open = status.cells.iter().filter(|status_of_cell| !status_of_cell.state.is_done()).count();
    if unknown.len() < open {
        say!(
            "{open} cells to run; training {}, evaluation {}, {:.2} GB, one after the other on \
             this machine{}",
            hours(total.training_s),
            hours(playing_s),
            total.bytes as f64 / 1e9,
            match (study.executor.engine, study.executor.jobs) {
                (Engine::Slurm, 0) => "; Slurm runs as many in parallel as fit".to_owned(),
                (Engine::Slurm, n) => format!("; Slurm runs {n} in parallel"),
                (Engine::Local, _) => String::new(),
            }
        );
    }
    if not_played > 0 {
        say!("the evaluation time of {not_played} of them is unknown");
    }
    if let Some(first) = unknown.first() {
        say!(
            "the time of {} of {open} cells is unknown, because there is no similar run \
             ({first}{}). Use measure=true to train {MEASURED} updates of each",
            unknown.len(),
            if unknown.len() > 1 { ", …" } else { "" },
        );
    }
    Ok(())
}

/// Whether a run has the cost of one by `wanted`: only the seed may differ.
fn is_like(run: &RunConfig, wanted: &RunConfig) -> bool {
    let alike = |settings: &RunConfig| {
        let mut settings = settings.clone().with(Resume::Auto);
        settings.seed = 0;
        settings.runs.clone_from(&wanted.runs);
        settings.evaluation.clone_from(&wanted.evaluation);
        settings
    };
    alike(run) == alike(wanted)
}

/// The cost of a finished run; `None` if its metrics lack it.
fn of_run(run: &RunDir) -> Option<Cost> {
    let (steps, seconds) = trained(run.path())?;
    let updates = provenance::updates(run).unwrap_or(steps);
    Some(Cost {
        training_s: seconds / steps as f64 * updates as f64,
        episode_s: episode_s(run),
        bytes: size(run.path()),
    })
}

/// Steps of a run, and their seconds in all of its processes.
fn trained(run: &Path) -> Option<(u64, f64)> {
    trained_by(&fs::read_to_string(run.join("metrics.csv")).ok()?)
}

/// Steps and seconds from the text of a run's metrics.
fn trained_by(text: &str) -> Option<(u64, f64)> {
    let mut lines = text.lines();
    let column = lines.next()?.split(',').position(|name| name == "seconds")?;
    let last: Vec<&str> = lines.next_back()?.split(',').collect();
    let (steps, seconds) = (last.first()?.parse().ok()?, last.get(column)?.parse().ok()?);
    Some((steps, seconds)).filter(|_| steps > 0)
}

/// Seconds of an evaluation episode, from an evaluation of a run.
fn episode_s(run: &RunDir) -> Option<f64> {
    let played = Evaluation::read(evaluate::reports(run).first()?).ok()?;
    let seconds = played.steps as f64 / played.steps_per_second;
    Some(seconds / played.episodes.len().max(1) as f64)
}

/// Number of evaluation episodes of these settings, for each target and each protocol, without the
/// episodes that choose an acting mode.
fn episodes<'a>(evaluations: impl Iterator<Item = &'a EvaluationConfig>) -> f64 {
    let listed = |text: &str| text.split(',').count();
    let each = evaluations
        .map(|played| played.episodes * listed(&played.target) * listed(&played.protocol));
    each.sum::<usize>() as f64
}

/// The remaining fraction of a cell's training.
fn left(run: Option<&RunDir>) -> f64 {
    match run {
        Some(run) if train::is_finished(run) => 0.0,
        Some(run) => {
            let of = provenance::updates(run).unwrap_or(0).max(1);
            1.0 - (last_step(run.path()) as f64 / of as f64).min(1.0)
        }
        None => 1.0,
    }
}

/// Trains some updates of a cell in a temporary directory.
fn measured(resolved: &Resolved) -> Result<Cost> {
    let folder = resolved.settings.runs.join(format!(".measured-{}", std::process::id()));
    let result = measured_in(&folder, resolved);
    let _ = fs::remove_dir_all(&folder);
    result
}

fn measured_in(folder: &Path, resolved: &Resolved) -> Result<Cost> {
    let updates = match resolved.settings.train.updates {
        0 => bail!(
            "cell {}: train.updates=0: the number of updates of its epochs is unknown before it \
             runs. Set train.updates",
            resolved.cell.id
        ),
        n => n as f64,
    };
    say!("measuring {}", resolved.cell.id);
    let program = host::program()?;
    // `init=` by the run's path: its name would be searched in runs=, which differs here.
    let init = Some(&resolved.settings.init).filter(|init| !init.is_empty());
    let is_kept =
        |word: &&String| !["train.epochs=", "init="].iter().any(|key| word.starts_with(key));
    let output = Command::new(program)
        .arg("train")
        .args(resolved.cell.words.iter().filter(is_kept))
        .args(init.map(|init| format!("init={init}")))
        .args([
            format!("train.updates={MEASURED}"),
            "train.log_every=1".into(),
            "evaluation.episodes=0".into(),
            format!("runs={}", folder.display()),
        ])
        .output()?;
    if !output.status.success() {
        let output_text = String::from_utf8_lossy(&output.stderr);
        let error = output_text.trim().lines().next_back().unwrap_or_default();
        bail!("cell {}: {}", resolved.cell.id, error.trim_start_matches("error: "));
    }
    let runs = RunDir::all(folder);
    let run = runs.first().context("cannot find the measured run")?;
    let (steps, seconds) = trained(run.path()).context("the measured run lacks metrics")?;
    let keep = resolved.settings.train.keep_checkpoints.max(1) as u64;
    Ok(Cost {
        training_s: seconds / steps as f64 * updates,
        episode_s: None,
        bytes: size(run.path()) * keep,
    })
}

/// Bytes of a directory's files.
fn size(folder: &Path) -> u64 {
    let entries = fs::read_dir(folder).map(|entries| entries.flatten().collect::<Vec<_>>());
    entries
        .unwrap_or_default()
        .iter()
        .map(|entry| match entry.metadata() {
            Ok(found) if found.is_dir() => size(&entry.path()),
            Ok(found) => found.len(),
            Err(_) => 0,
        })
        .sum()
}

#[cfg(test)]
mod tests {
    use overtone_train::RunDir;

    use super::{left, trained_by};
    use crate::command::train::finish;

    #[test]
    fn what_a_run_has_done_is_not_to_do() {
        let folder = tempfile::tempdir().unwrap();
        let run = RunDir::create(folder.path(), "run").unwrap();
        let write = |name: &str, text: &str| std::fs::write(run.path().join(name), text).unwrap();
        assert_eq!(left(None), 1.0);
        assert_eq!(left(Some(&run)), 1.0);
        write("metrics.csv", "step,loss\n10,1\n30,1\n");
        write("provenance.jsonl", "{\"updates\":40}\n");
        assert_eq!(left(Some(&run)), 0.25);
        finish(&run).unwrap();
        assert_eq!(left(Some(&run)), 0.0);
    }

    #[test]
    fn the_last_row_has_steps_and_seconds() {
        let rows = |rows: &str| trained_by(&format!("step,seconds,loss\n{rows}"));
        assert_eq!(rows("10,3,1\n20,7,1\n"), Some((20, 7.0)));
        assert_eq!(rows(""), None);
        assert_eq!(rows("10,x,1\n"), None);
        assert_eq!(trained_by("step,loss\n10,1\n"), None);
    }
}
