//! `part=2/4`: several processes share the episodes of an evaluation. Each keeps its part in a
//! folder beside the report; whichever finds all parts there writes the report.

use std::{fs, io::ErrorKind, path::Path};

use anyhow::{Context, Result, anyhow};
use overtone_eval::{Evaluation, Part, PlayedPart, part};
use overtone_model::device::Chosen;

use super::{How, Planned, playing};

/// Plays this part of all that is in `batch` where it is not there yet. Gives the evaluations of
/// which it was the last part, in the places of the batch.
///
/// # Errors
/// When playing fails or a part cannot be written; of an evaluation, when every episode of it
/// failed.
pub(super) fn play(
    batch: &[Planned],
    part: Part,
    chosen: &Chosen,
    how: &How<'_>,
) -> Result<Vec<Option<Result<Evaluation>>>> {
    let simulator = playing::simulator(batch.iter().map(|planned| &planned.entry))?;
    let mut awaited = Vec::new();
    for planned in batch {
        let own = PlayedPart::read(&part.path(&planned.out))?;
        let setting = planned.entry.setting(simulator.clone())?;
        if own.is_none_or(|own| !own.is_of(&setting, &planned.entry.plan, part)) {
            awaited.push(planned);
        }
    }
    let entries: Vec<_> = awaited.iter().map(|planned| &planned.entry).collect();
    let plans = entries.iter().map(|entry| Ok(entry.plan.part(part)?));
    let plans = plans.collect::<Result<Vec<_>>>()?;
    let parallel = how.options.parallel;
    let rollouts = playing::rollouts(&entries, &plans, chosen, parallel, &|| how.is_stopped())?;
    for (planned, rollout) in awaited.into_iter().zip(rollouts) {
        let path = part.path(&planned.out);
        let folder = path.parent().unwrap_or(Path::new("."));
        fs::create_dir_all(folder).with_context(|| format!("{}", folder.display()))?;
        let n = rollout.episodes.len() + rollout.failed.len();
        let setting = planned.entry.setting(simulator.clone())?;
        let played = PlayedPart::new(setting, planned.entry.plan.clone(), part, rollout);
        played.write(&path).context("cannot write the part")?;
        say!("part {part}: {n} episodes, {}", path.display());
    }
    let all: Vec<_> = batch.iter().map(|planned| &planned.entry).collect();
    let slots = playing::slots(&all, all.iter().map(|entry| &entry.plan), parallel)?;
    let found = batch.iter().map(|planned| together(planned, part, slots));
    found.collect()
}

/// The evaluation, where all of its parts are there: they are removed then.
fn together(planned: &Planned, part: Part, slots: usize) -> Result<Option<Result<Evaluation>>> {
    let Planned { entry, out, .. } = planned;
    let folder = out.with_extension("parts");
    // One process at a time; where the file system has no locks, two may write the same report.
    let path = folder.join(".lock");
    let lock = match fs::File::create(&path) {
        Err(error) if error.kind() == ErrorKind::NotFound => None,
        lock => Some(lock.with_context(|| format!("{}", path.display()))?),
    };
    let _ = lock.as_ref().map(fs::File::lock);
    // Not, while there are parts of another number.
    let tidy = || {
        let _ = fs::remove_file(&path);
        let _ = fs::remove_dir(&folder);
    };
    let Some(own) = PlayedPart::read(&part.path(out))? else {
        say!("another process put the parts together: {}", out.display());
        tidy();
        return Ok(None);
    };
    let (mut found, mut missing) = (Vec::new(), 0);
    for other in part.all() {
        let path = other.path(out);
        match PlayedPart::read(&path)? {
            Some(other) if other.is_of(&own.setting, &own.plan, own.part) => found.push(other),
            Some(_) => {
                warn!(
                    "warning: {} is a part of another evaluation, or was played by another \
                     simulator: play part={other} again",
                    path.display()
                );
                missing += 1;
            }
            None => missing += 1,
        }
    }
    if missing > 0 {
        let n = found.len();
        say!("{n} of {} parts are there; the last to come writes {}", n + missing, out.display());
        return Ok(None);
    }
    let setting = own.setting;
    let rollout = part::joined(found, slots)?;
    let evaluation = Evaluation::new(setting, &entry.plan, rollout);
    if let Ok(evaluation) = &evaluation {
        evaluation.write(out).context("cannot write the report")?;
    }
    for other in part.all() {
        fs::remove_file(other.path(out)).with_context(|| format!("{}", folder.display()))?;
    }
    tidy();
    Ok(Some(evaluation.map_err(|error| anyhow!(error))))
}
