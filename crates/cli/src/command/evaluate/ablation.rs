//! `overtone evaluate ablation`: evaluates one checkpoint by the protocol of training, and then
//! with one setting changed at a time.
//!
//! Games take their other settings from the released evaluation. Robots take the other revision and
//! sampled actions. Rows with the same simulation are evaluated together.

use std::{collections::BTreeMap, path::PathBuf, sync::atomic::Ordering};

use anyhow::{Context, Result, anyhow, bail};
use overtone_agents::Agent;
use overtone_console::quoted;
use overtone_core::{
    Play,
    protocol::{Deviation, Difference, TARGET, Trained},
};
use overtone_env::Suite;
use overtone_eval::{Ablation, AblationResult, AblationRow, Evaluation, statistics::Bootstrap};
use overtone_model::device;
use overtone_train::RunDir;

use super::{
    check_out, device_or,
    entry::Entry,
    playing,
    request::{self, EvaluationRequest},
};
use crate::{
    interrupt, options,
    runs::{check_own, checkpoint_name, open_checkpoint, open_run},
    settings, suites,
};

overtone_model::options! {
    /// Options of `evaluate ablation`.
    pub struct AblationOptions {
        /// A run's directory or name; empty: the newest run.
        pub run: String = String::new(),
        /// Directory that contains the runs.
        pub runs: PathBuf = "runs".into(),
        /// last; best, the lowest loss on held-out episodes (requires train.held_out above 0); the
        /// step of a checkpoint; or a checkpoint's directory.
        pub checkpoint: String = "last".into(),
        /// Episodes of each row.
        pub episodes: usize = 100,
        /// Target return, as a number or a percentile of the dataset's returns weighted by actions;
        /// empty: p95.
        pub target: String = String::new(),
        /// Target return of the rows target_return and released; empty: the reference's (Seaquest
        /// 1150, Breakout 90, Pong 20, Qbert 14000; hopper 3600, halfcheetah 12000, walker2d 5000).
        pub other_target: String = String::new(),
        /// Settings to change, by the last part of their names
        /// (sticky_probability,resize,released); empty: all.
        pub only: String = String::new(),
        /// Seed of the episodes, which are the same in every row.
        pub seed: u64 = 1,
        /// Episodes in parallel; 0: all of the rows that share an environment, at most 100 (robots:
        /// 200).
        pub parallel: usize = 0,
        /// Compute device: auto, cpu, cuda or cuda:N; empty: the device of the run's training.
        pub device: String = String::new(),
        /// Output page, with the same content as JSON next to it; empty: protocol-ablation.md in
        /// the run's directory. Required for a checkpoint that is not the run's.
        pub out: String = String::new(),
    }
}

/// Index of the row by the protocol of training.
const MATCHED: usize = 0;

/// A row before its evaluation.
struct PlannedRow {
    difference: Difference,
    /// The evaluation of the row, or its result without one.
    plan: Result<Entry, AblationResult>,
}

/// `overtone evaluate ablation key=value…`.
pub fn ablation(words: &[String]) -> Result<()> {
    let options: AblationOptions = options::read(words)?;
    let run = open_run(&options.runs, &options.run)?;
    let checkpoint = open_checkpoint(&run, &options.checkpoint)?;
    let device = device_or(options.device, &run)?;
    let AblationOptions { episodes, seed, .. } = options;
    options::at_least_1([("episodes", episodes as u64)])?;
    let state = &checkpoint.state;
    let agent = Agent::of(&checkpoint)?;
    let trained = request::trained(&agent, &state.episode_returns)?;
    suites::check_environment(&trained.task)?;
    let suite = suites::of(&trained.task)?;
    let known = &trained.task.targets;
    let other = known.released.or(known.usual.first().copied()).map(|target| target.to_string());
    let one = |key: &str, text: String, default: Option<String>| -> Result<Option<f32>> {
        let word = Some(text).filter(|word| !word.is_empty()).or(default);
        let Some(word) = word else { return Ok(None) };
        match settings::targets(key, &word, &state.episode_returns)?[..] {
            [target] => Ok(Some(target)),
            _ => bail!("{key}={word}: expected one return"),
        }
    };
    let target = one("target", options.target, Some(request::DEFAULT_TARGET.to_owned()))?
        .context("target=: expected a number or a percentile")?;
    let other_target = one("other_target", options.other_target, other)?;
    let out = match options.out.as_str() {
        "" => run.path().join("protocol-ablation.md"),
        path => PathBuf::from(path),
    };
    if out.extension().is_none_or(|ending| ending == "json") {
        bail!("out={}: expected the name of a page, such as ablation.md", out.display());
    }
    // Errors of the output are reported before the evaluation.
    [&out, &out.with_extension("json")].into_iter().try_for_each(|out| check_out(out))?;

    let entry = |play: Play, target: f32| {
        let own = &trained.play;
        let request = EvaluationRequest::new(&trained, own, play, target.to_string(), vec![target]);
        Entry::new(&run, &checkpoint, &agent, request, [episodes as u64, seed])
    };
    let mut rows = rows(suite, &trained, target, other_target, &entry);
    keep_only(&mut rows, &options.only)?;
    let matched = entry(trained.play.clone(), target);
    if options.out.is_empty() {
        check_own(&run, &checkpoint)?;
    }
    matched.announce();
    let n_played = rows.iter().filter(|row| row.plan.is_ok()).count();
    say!("then {n_played} times with another setting, on the same episodes");

    let stop = interrupt::listen()?;
    let chosen = device::choose(&device)?;
    // Evaluations by row; the first is `matched`.
    let mut played: BTreeMap<usize, Result<Evaluation>> = BTreeMap::new();
    for group in groups(&matched, &rows) {
        let (places, entries): (Vec<usize>, Vec<&Entry>) = group.into_iter().unzip();
        match playing::play(&entries, &chosen, options.parallel, &|| stop.load(Ordering::Relaxed)) {
            Ok(evaluations) => played.extend(places.into_iter().zip(evaluations)),
            Err(error) if places.contains(&MATCHED) || stop.load(Ordering::Relaxed) => {
                return Err(error);
            }
            // Some settings exist only together.
            Err(error) => {
                let failed = |place| (place, Err(anyhow!("{error:#}")));
                played.extend(places.into_iter().map(failed));
            }
        }
    }
    let base = played.remove(&MATCHED).context("no episode was run")??;

    let bootstrap = Bootstrap::default();
    let mut ablation = Ablation::new(&base, bootstrap)?;
    ablation.setting.command =
        command(&run, &checkpoint_name(&run, &checkpoint), episodes, target, other_target, seed)
            + &only(&options.only);
    for (place, PlannedRow { difference, plan }) in rows.into_iter().enumerate() {
        let result = match (plan, played.remove(&(place + 1))) {
            (Err(result), _) => result,
            (Ok(_), Some(Ok(evaluation))) => {
                AblationResult::compare(&base, &evaluation, &bootstrap)?
            }
            (Ok(_), Some(Err(error))) => AblationResult::NotPlayed { reason: format!("{error:#}") },
            (Ok(_), None) => continue,
        };
        ablation.rows.push(AblationRow { difference, result });
    }
    // Printed before writing, which may fail.
    say!("{}", ablation.table());
    ablation.notes().iter().for_each(|note| say!("{note}"));
    ablation.write(&out).context("cannot write the page")?;
    say!("page: {}", out.display());
    Ok(())
}

/// Every row but `matched`.
fn rows(
    suite: &dyn Suite,
    trained: &Trained,
    target: f32,
    other_target: Option<f32>,
    entry: &dyn Fn(Play, f32) -> Entry,
) -> Vec<PlannedRow> {
    let other = suite.contrast(&trained.play);
    let row = |deviation: Deviation| {
        let plan = match deviation.idle {
            Some(reason) => Err(AblationResult::Same { reason }),
            None => Ok(entry(deviation.play, target)),
        };
        PlannedRow { difference: deviation.difference, plan }
    };
    let mut rows: Vec<PlannedRow> =
        trained.deviations(&other, &[target]).into_iter().map(row).collect();
    let unknown = || AblationResult::NotPlayed {
        reason: "the reference does not have a target for this task (set other_target=)".into(),
    };
    let other_text = other_target.map_or_else(|| "-".into(), |target| target.to_string());
    let same = |reason: &str| Err(AblationResult::Same { reason: reason.into() });
    rows.push(PlannedRow {
        difference: Difference {
            setting: TARGET.into(),
            trained: target.to_string(),
            played: other_text.clone(),
            consequence: "the agent is conditioned on another return".into(),
        },
        plan: match other_target {
            _ if !trained.reads_returns => same("the agent is not conditioned on returns"),
            Some(other) if other == target => same("the targets are equal"),
            Some(other) => Ok(entry(trained.play.clone(), other)),
            None => Err(unknown()),
        },
    });
    if let Some(released) = suite.released() {
        rows.push(PlannedRow {
            difference: Difference {
                setting: released.into(),
                trained: trained.play.name.clone(),
                played: released.into(),
                consequence: format!("all of these at once, target {other_text}"),
            },
            plan: other_target.map(|target| entry(other, target)).ok_or_else(unknown),
        });
    }
    rows
}

/// Keeps the rows whose names end with one of the words in `only`.
///
/// # Errors
/// When a word does not match a row.
fn keep_only(rows: &mut Vec<PlannedRow>, only: &str) -> Result<()> {
    let names: Vec<&str> = only.split(',').map(str::trim).filter(|end| !end.is_empty()).collect();
    let named =
        |row: &PlannedRow, end: &str| row.difference.setting.split('.').next_back() == Some(end);
    if let Some(end) = names.iter().find(|end| !rows.iter().any(|row| named(row, end))) {
        let known: Vec<&str> =
            rows.iter().filter_map(|row| row.difference.setting.split('.').next_back()).collect();
        bail!("only={end}: expected some of {}", known.join(", "));
    }
    if !names.is_empty() {
        rows.retain(|row| names.iter().any(|end| named(row, end)));
    }
    Ok(())
}

/// The entries with the indices of their rows, in groups of the same simulation.
fn groups<'a>(matched: &'a Entry, rows: &'a [PlannedRow]) -> Vec<Vec<(usize, &'a Entry)>> {
    let mut groups: Vec<Vec<(usize, &Entry)>> = vec![vec![(MATCHED, matched)]];
    for (place, row) in rows.iter().enumerate() {
        let Ok(entry) = &row.plan else { continue };
        let same_simulation = |group: &&mut Vec<(usize, &Entry)>| {
            group.iter().all(|(_, other)| {
                other.request.protocol.simulation == entry.request.protocol.simulation
            })
        };
        match groups.iter_mut().find(same_simulation) {
            Some(group) => group.push((place + 1, entry)),
            None => groups.push(vec![(place + 1, entry)]),
        }
    }
    groups
}

/// The command's word for the selected rows.
fn only(names: &str) -> String {
    if names.is_empty() {
        String::new()
    } else {
        format!(" only={}", quoted(std::path::Path::new(names)))
    }
}

/// The command that repeats the ablation.
fn command(
    run: &RunDir,
    checkpoint: &str,
    episodes: usize,
    target: f32,
    other_target: Option<f32>,
    seed: u64,
) -> String {
    let other = other_target.map(|target| format!(" other_target={target}")).unwrap_or_default();
    format!(
        "overtone evaluate ablation run={} checkpoint={} episodes={episodes} target={target}{other} \
         seed={seed}",
        quoted(run.path()),
        quoted(checkpoint)
    )
}
