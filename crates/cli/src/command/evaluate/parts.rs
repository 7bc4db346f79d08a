//! `part=2/4`: several processes share the episodes of an evaluation. Each keeps its part in a
//! folder beside the report; whichever finds all parts there writes the report.

use std::{
    fs::{self, File},
    io::{self, ErrorKind},
    os::unix::fs::MetadataExt,
    path::Path,
};

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
    let path = folder.join(".lock");
    let _lock = locked(&path).with_context(|| format!("{}", path.display()))?;
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
    // The parts stay where nothing came of them.
    let evaluation = match evaluation {
        Ok(evaluation) => evaluation,
        Err(error) => return Ok(Some(Err(anyhow!(error)))),
    };
    evaluation.write(out).context("cannot write the report")?;
    for other in part.all() {
        fs::remove_file(other.path(out)).with_context(|| format!("{}", folder.display()))?;
    }
    tidy();
    Ok(Some(Ok(evaluation)))
}

/// Waits until no other process has the file at `path` locked; `None` where its folder is gone. Where
/// the file system has no locks, two processes may write the same report.
///
/// # Errors
/// When it cannot be made or locked.
fn locked(path: &Path) -> io::Result<Option<File>> {
    loop {
        let file = match File::create(path) {
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
            file => file?,
        };
        match file.lock() {
            Err(error) if error.kind() == ErrorKind::Interrupted => continue,
            Err(error) if error.kind() == ErrorKind::Unsupported => return Ok(Some(file)),
            locked => locked?,
        }
        // Whoever had it may have removed it meanwhile: then another may be there, and be locked.
        let own = file.metadata()?;
        if fs::metadata(path).is_ok_and(|now| [now.dev(), now.ino()] == [own.dev(), own.ino()]) {
            return Ok(Some(file));
        }
    }
}

#[cfg(test)]
mod tests {
    use std::{thread, time::Duration};

    use super::*;

    #[test]
    fn a_lock_whose_file_was_removed_keeps_nobody_out() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join(".lock");
        let first = locked(&path).unwrap().unwrap();
        let waiting = thread::spawn({
            let path = path.clone();
            move || locked(&path).unwrap().unwrap()
        });
        thread::sleep(Duration::from_millis(200));
        fs::remove_file(&path).unwrap();
        drop(first);
        // Has the file that is there now, so that a third waits for it.
        let second = waiting.join().unwrap();
        assert_eq!(second.metadata().unwrap().ino(), fs::metadata(&path).unwrap().ino());
        assert!(File::create(&path).unwrap().try_lock().is_err());
        assert!(locked(&folder.path().join("gone/.lock")).unwrap().is_none());
    }
}
