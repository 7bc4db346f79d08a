//! Data that changes during or between runs, and processes in the same directory.

use std::{
    fs,
    io::{Read, Seek, SeekFrom, Write},
    path::{Path, PathBuf},
    thread::sleep,
    time::Duration,
};

use super::half_written;
use crate::desk::{Desk, ProgramOutput, Running, names, said, same_run, steps, wait_until};

/// A run on its own converted dataset, long enough to be disturbed.
const LONG: &str = "data.cache=cache train.updates=40 train.checkpoint_every=4";

/// The converted data in `cache`.
fn store(desk: &Desk) -> PathBuf {
    let folders = names(&desk.path("cache"));
    assert_eq!(folders.len(), 1, "{folders:?}");
    desk.path("cache").join(&folders[0]).join("frames.safetensors")
}

/// Inverts `n` bytes in the middle of a file.
fn scribble(path: &Path, n: usize) {
    let mut file = fs::OpenOptions::new().read(true).write(true).open(path).unwrap();
    let middle = SeekFrom::Start(file.metadata().unwrap().len() / 2);
    let mut bytes = vec![0; n];
    file.seek(middle).unwrap();
    file.read_exact(&mut bytes).unwrap();
    bytes.iter_mut().for_each(|byte| *byte = !*byte);
    file.seek(middle).unwrap();
    file.write_all(&bytes).unwrap();
}

/// Starts [`LONG`] with far more updates, and disturbs its data after some checkpoints; returns its
/// output and the checkpoints.
fn disturbed(desk: &Desk, disturb: impl Fn(&Path)) -> (ProgramOutput, PathBuf) {
    let line = desk.tiny(LONG).replace("train.updates=40", "train.updates=100000");
    let child = desk.command(&line).spawn().unwrap();
    wait_until("checkpoints", || {
        let runs = names(&desk.path("runs"));
        runs.first().is_some_and(|run| steps(&desk.path("runs").join(run)).last() >= Some(&8))
    });
    disturb(&store(desk));
    (said(child.wait_with_output().unwrap()), desk.only_run("runs"))
}

/// The data is converted again, and the run resumes with it.
#[track_caller]
fn is_made_again(desk: &Desk, run: &Path) {
    // Its last complete checkpoint, in a shorter run.
    let last = *steps(run).last().unwrap();
    let config = fs::read_to_string(run.join("config.toml")).unwrap();
    let updates = last + 4;
    let shorter = config.replace("updates = 100000", &format!("updates = {updates}"));
    fs::write(run.join("config.toml"), &shorter).unwrap();
    let stdout = desk.succeeds(&format!("resume run={}", run.display()));
    assert!(stdout.contains(&format!("resuming after update {last} ")), "{stdout}");
    desk.succeeds(&desk.tiny("data.cache=clean runs=other"));
    let store = |cache: &str| {
        let folder = desk.path(cache).join(&names(&desk.path(cache))[0]);
        fs::read(folder.join("frames.safetensors")).unwrap()
    };
    assert!(store("cache") == store("clean"), "other data was made");
    assert_eq!(*steps(run).last().unwrap(), updates);
}

#[test]
fn data_cut_short_while_a_run_trains() {
    let desk = Desk::new();
    let (said, run) = disturbed(&desk, |store| {
        fs::OpenOptions::new().write(true).open(store).unwrap().set_len(200_000).unwrap();
    });
    said.refused();
    assert_eq!(half_written(&run.join("checkpoints")), [""; 0]);
    is_made_again(&desk, &run);
}

#[test]
fn data_written_to_while_a_run_trains() {
    let desk = Desk::new();
    let (said, run) = disturbed(&desk, |store| scribble(store, 1_000_000));
    said.refused();
    is_made_again(&desk, &run);
}

#[test]
fn data_replaced_while_a_run_trains() {
    let desk = Desk::new();
    let words = "data.cache=cache train.updates=400 train.checkpoint_every=50";
    desk.succeeds(&desk.tiny(&format!("{words} runs=whole")));
    let child = desk.command(&desk.tiny(words)).spawn().unwrap();
    wait_until("a checkpoint", || {
        let runs = names(&desk.path("runs"));
        runs.first().is_some_and(|run| !steps(&desk.path("runs").join(run)).is_empty())
    });
    // As if another conversion had replaced it.
    fs::write(desk.path("other"), "another file").unwrap();
    fs::rename(desk.path("other"), store(&desk)).unwrap();
    let said = said(child.wait_with_output().unwrap());
    assert_eq!((said.code, said.stderr.as_str()), (Some(0), ""));
    same_run(&desk.only_run("runs"), &desk.only_run("whole"), 400);
}

#[test]
fn data_that_changed_between_runs() {
    let desk = Desk::new();
    let line = desk.tiny("data.cache=cache runs=one");
    desk.succeeds(&line);
    let whole = fs::read(store(&desk)).unwrap();
    let damages: [&dyn Fn(&Path); 3] = [
        &|store| scribble(store, 1),
        &|store| fs::OpenOptions::new().write(true).open(store).unwrap().set_len(100).unwrap(),
        &|store| fs::write(store, "no data").unwrap(),
    ];
    for (i, damage) in damages.iter().enumerate() {
        // Times have steps of some milliseconds.
        sleep(Duration::from_millis(20));
        damage(&store(&desk));
        desk.succeeds(&line.replace("runs=one", &format!("runs=again{i}")));
        assert!(fs::read(store(&desk)).unwrap() == whole, "damage {i} stayed");
        same_run(&desk.only_run(&format!("again{i}")), &desk.only_run("one"), 4);
    }
}

#[test]
fn two_runs_of_the_same_words_are_two_runs() {
    let desk = Desk::new();
    let line = desk.tiny("train.updates=100000 train.checkpoint_every=2");
    let trains = |n: usize| {
        let runs = names(&desk.path("runs"));
        runs.len() == n && runs.iter().all(|run| !steps(&desk.path("runs").join(run)).is_empty())
    };
    let first = Running::start(desk.command(&line));
    wait_until("a run", || trains(1));
    let second = Running::start(desk.command(&line));
    wait_until("a run of its own", || trains(2));
    for run in names(&desk.path("runs")) {
        desk.refuses(&format!("resume run={run}"));
    }
    first.kill();
    second.kill();
    // Neither has a lock any more; one is resumed instead of starting a third.
    let third = Running::start(desk.command(&line));
    sleep(Duration::from_millis(500));
    assert_eq!(names(&desk.path("runs")).len(), 2);
    third.kill();
}

#[test]
fn two_conversions_into_one_place() {
    let desk = Desk::new();
    let line = desk.tiny("data.transitions=20000 data.cache=cache");
    let children: Vec<_> = ["one", "two", "three"]
        .map(|runs| desk.command(&format!("{line} runs={runs}")).spawn().unwrap())
        .into_iter()
        .collect();
    for child in children {
        let said = said(child.wait_with_output().unwrap());
        assert_eq!((said.code, said.stderr.as_str()), (Some(0), ""));
    }
    let folder = store(&desk).parent().unwrap().to_owned();
    assert_eq!(names(&folder), ["frames.safetensors", "manifest.json"]);
    same_run(&desk.only_run("one"), &desk.only_run("two"), 4);
    same_run(&desk.only_run("one"), &desk.only_run("three"), 4);
}
