//! `overtone evaluate ablation`: one checkpoint, played as it was trained and then with one
//! setting of the protocol changed at a time.
//!
//! A game's settings are taken from the released evaluation, a robot's are the other revision
//! and drawn actions. All rows that run the environment alike are played together.

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
    ask::{self, Ask},
    check_out, device_or,
    entry::Entry,
    playing,
};
use crate::{
    interrupt, keys,
    runs::{check_own, checkpoint_name, open_checkpoint, open_run},
    settings, suites,
};

/// Every option with its default and reason.
pub const OPTIONS: &str = r#"
# A run's folder or name; empty: the newest run.
run = ""
# Folder of the runs.
runs = "runs"
# last; best: the lowest loss on held-out episodes, needs train.held_out above 0; the step of a checkpoint, or a checkpoint's folder.
checkpoint = "last"
# Episodes of each row.
episodes = 100
# The return to ask for, as a number or a percentile of the data's returns, by actions; empty: p95.
target = ""
# The return of the row target_return, and of released; empty: the reference's (Seaquest 1150, Breakout 90, Pong 20, Qbert 14000; hopper 3600, halfcheetah 12000, walker2d 5000).
other_target = ""
# RunConfig to change, by the last part of their names (sticky_probability,resize,released); empty: all.
only = ""
# Seed of the episodes, which are the same in every row.
seed = 1
# Episodes played at once; 0: all of the rows that share an environment, but no more than 100 (robots: 200).
parallel = 0
# Where to compute: auto, cpu, cuda or cuda:N; empty: as the run was trained.
device = ""
# Where to write the page, and the same as JSON beside it; empty: protocol-ablation.md in the run's folder. Needed for a checkpoint that is not the run's.
out = ""
"#;

/// Place of the row that plays as trained.
const MATCHED: usize = 0;

/// A row before it is played.
struct PlannedRow {
    difference: Difference,
    /// How to play it, or why that is not done.
    plan: Result<Entry, AblationResult>,
}

/// `overtone evaluate ablation key=value…`.
pub fn ablation(options: &[String]) -> Result<()> {
    let keys = keys::given(OPTIONS, options)?;
    let text = |key: &str| keys::text(&keys, key);
    let whole = |key: &str| keys::whole(&keys, key, 0);
    let run = open_run(&PathBuf::from(text("runs")), &text("run"))?;
    let checkpoint = open_checkpoint(&run, &text("checkpoint"))?;
    let device = device_or(text("device"), &run)?;
    let (episodes, seed) = (whole("episodes")?, whole("seed")? as u64);
    if episodes == 0 {
        bail!("episodes=0: there is nothing to play");
    }
    let state = &checkpoint.state;
    let agent = Agent::of(&checkpoint)?;
    let trained = ask::trained(&agent, &state.episode_returns)?;
    suites::check_environment(&trained.task)?;
    let suite = suites::of(&trained.task)?;
    let known = &trained.task.targets;
    let other = known.released.or(known.usual.first().copied()).map(|target| target.to_string());
    let one = |key: &str, default: Option<String>| -> Result<Option<f32>> {
        let asked = Some(text(key)).filter(|asked| !asked.is_empty()).or(default);
        let Some(asked) = asked else { return Ok(None) };
        match settings::targets(key, &asked, &state.episode_returns)?[..] {
            [target] => Ok(Some(target)),
            _ => bail!("{key}={asked}: a row asks for one return"),
        }
    };
    let target = one("target", Some(ask::DEFAULT_TARGET.to_owned()))?
        .context("target=: say which return to ask for")?;
    let other_target = one("other_target", other)?;
    let out = match text("out").as_str() {
        "" => run.path().join("protocol-ablation.md"),
        path => PathBuf::from(path),
    };
    if out.extension().is_none_or(|ending| ending == "json") {
        bail!("out={}: must be the name of a page, such as ablation.md", out.display());
    }
    // Found before playing, not after.
    [&out, &out.with_extension("json")].into_iter().try_for_each(|out| check_out(out))?;

    let entry = |play: Play, target: f32| {
        let own = &trained.play;
        let ask = Ask::new(&trained, own, play, target.to_string(), vec![target]);
        Entry::new(&run, &checkpoint, &agent, ask, [episodes as u64, seed])
    };
    let mut rows = rows(suite, &trained, target, other_target, &entry);
    keep_only(&mut rows, &text("only"))?;
    let matched = entry(trained.play.clone(), target);
    if text("out").is_empty() {
        check_own(&run, &checkpoint)?;
    }
    matched.announce();
    let n_played = rows.iter().filter(|row| row.plan.is_ok()).count();
    say!("then {n_played} times with another setting, in the same episodes");

    let stop = interrupt::listen()?;
    let chosen = device::choose(&device)?;
    let parallel = whole("parallel")?;
    // By row; the first is `matched`.
    let mut played: BTreeMap<usize, Result<Evaluation>> = BTreeMap::new();
    for group in groups(&matched, &rows) {
        let (places, entries): (Vec<usize>, Vec<&Entry>) = group.into_iter().unzip();
        match playing::play(&entries, &chosen, parallel, &|| stop.load(Ordering::Relaxed)) {
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
    let base = played.remove(&MATCHED).context("nothing was played")??;

    let bootstrap = Bootstrap::default();
    let mut ablation = Ablation::new(&base, bootstrap)?;
    ablation.setting.command =
        command(&run, &checkpoint_name(&run, &checkpoint), episodes, target, other_target, seed)
            + &only(&text("only"));
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
    // Told before anything is written, which may fail.
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
        reason: "no other target is known for this task (other_target= says one)".into(),
    };
    let asked = other_target.map_or_else(|| "-".into(), |target| target.to_string());
    let same = |reason: &str| Err(AblationResult::Same { reason: reason.into() });
    rows.push(PlannedRow {
        difference: Difference {
            setting: TARGET.into(),
            trained: target.to_string(),
            played: asked.clone(),
            consequence: "another return is asked for".into(),
        },
        plan: match other_target {
            _ if !trained.reads_returns => same("the agent reads no return-to-go"),
            Some(other) if other == target => same("it is the same number"),
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
                consequence: format!("all of these at once, asked for {asked}"),
            },
            plan: other_target.map(|target| entry(other, target)).ok_or_else(unknown),
        });
    }
    rows
}

/// Drops the rows whose names do not end as one of `only` says.
///
/// # Errors
/// When one of them is no row.
fn keep_only(rows: &mut Vec<PlannedRow>, only: &str) -> Result<()> {
    let asked: Vec<&str> = only.split(',').map(str::trim).filter(|end| !end.is_empty()).collect();
    let named =
        |row: &PlannedRow, end: &str| row.difference.setting.split('.').next_back() == Some(end);
    if let Some(end) = asked.iter().find(|end| !rows.iter().any(|row| named(row, end))) {
        let known: Vec<&str> =
            rows.iter().filter_map(|row| row.difference.setting.split('.').next_back()).collect();
        bail!("only={end}: there are {}", known.join(", "));
    }
    if !asked.is_empty() {
        rows.retain(|row| asked.iter().any(|end| named(row, end)));
    }
    Ok(())
}

/// What is played, with the places of the rows: those that run the environment alike together.
fn groups<'a>(matched: &'a Entry, rows: &'a [PlannedRow]) -> Vec<Vec<(usize, &'a Entry)>> {
    let mut groups: Vec<Vec<(usize, &Entry)>> = vec![vec![(MATCHED, matched)]];
    for (place, row) in rows.iter().enumerate() {
        let Ok(entry) = &row.plan else { continue };
        let alike = |group: &&mut Vec<(usize, &Entry)>| {
            group
                .iter()
                .all(|(_, other)| other.ask.protocol.simulation == entry.ask.protocol.simulation)
        };
        match groups.iter_mut().find(alike) {
            Some(group) => group.push((place + 1, entry)),
            None => groups.push(vec![(place + 1, entry)]),
        }
    }
    groups
}

/// What the command says of the rows that are played.
fn only(asked: &str) -> String {
    if asked.is_empty() {
        String::new()
    } else {
        format!(" only={}", quoted(std::path::Path::new(asked)))
    }
}

/// The command that does it again.
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
