//! Faults of the machine and of data: disks that are full or may only be read, data that
//! changes while it is in use, two processes in one place, numbers that are none.
//!
//! Some need mounts of their own, which a user namespace gives where the system allows it;
//! elsewhere these say that they were left out.

use std::{
    fs,
    io::{Read, Seek, SeekFrom, Write},
    path::{Path, PathBuf},
    process::{Command, Stdio},
    thread::sleep,
    time::Duration,
};

use overtone_testkit::dopamine::{Recorder, npy, write_gz};

use crate::desk::{
    Desk, Running, Said, checkpoint, copy, names, project, said, same_run, steps, wait_until,
};

/// A robot's run as small as it can be.
const ROBOT: &str = "train env=hopper evaluation.episodes=0 model.n_layers=1 model.d_model=16 \
                     model.context_length=5 train.batch_size=3 train.updates=4";

/// A shell script in the desk's folder, in which `$overtone` is the program.
fn script(desk: &Desk, wrapper: &[&str], script: &str) -> Command {
    let program = desk.command("");
    let mut command = Command::new(wrapper[0]);
    command.args(&wrapper[1..]).args(["bash", "-c", script]).current_dir(desk.path(""));
    for (name, value) in program.get_envs() {
        match value {
            Some(value) => command.env(name, value),
            None => command.env_remove(name),
        };
    }
    command
        .env("overtone", program.get_program())
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    command
}

/// Runs a script that may mount what it likes, which ends with it; `None`, and a word about it,
/// where this machine does not allow that.
fn mounting(desk: &Desk, lines: &str) -> Option<Said> {
    const WRAPPER: [&str; 4] = ["unshare", "--user", "--map-root-user", "--mount"];
    let allowed = script(desk, &WRAPPER, "mount -t tmpfs -o size=64k none /mnt").output();
    if !allowed.is_ok_and(|output| output.status.success()) {
        println!("left out: this machine allows no mounts in a user namespace");
        return None;
    }
    Some(said(script(desk, &WRAPPER, lines).output().unwrap()))
}

/// Runs the program with `line` where no file may grow beyond `kb` KB.
fn with_small_files(desk: &Desk, kb: u32, line: &str) -> Said {
    let lines = format!("trap '' XFSZ; ulimit -f {kb}; exec \"$overtone\" {line}");
    said(script(desk, &["env"], &lines).output().unwrap())
}

fn bytes_of(folder: &Path) -> u64 {
    let entries = fs::read_dir(folder).unwrap();
    entries.map(|entry| entry.unwrap().metadata().unwrap().len()).sum()
}

/// Everything in a folder that is not under its final name.
fn half_written(folder: &Path) -> Vec<String> {
    let mut names = names(folder);
    names.retain(|name| name.starts_with('.') && name != ".lock" || name.contains("partial"));
    names
}

// Full disks

#[test]
fn a_disk_that_fills_up_while_training() {
    let desk = Desk::new();
    let words = "train.checkpoint_every=1 train.log_every=1";
    desk.succeeds(&desk.tiny(&format!("{words} runs=whole")));
    let whole = desk.only_run("whole");
    // Room for two checkpoints and a half.
    let kb = bytes_of(&whole.join("checkpoints/step-00000004")) * 5 / 2 / 1024 + 200;
    let lines = format!(
        "mkdir runs && mount -t tmpfs -o size={kb}k none runs || exit 77
         \"$overtone\" {}; code=$?; cp -r runs kept; exit $code",
        desk.tiny(words)
    );
    let Some(said) = mounting(&desk, &lines) else { return };
    said.refused(&[
        "update 3 could not be saved; the checkpoint of update 2 is whole",
        "`just resume` goes on",
        "step-00000003",
        "No space left on device",
        "make room there",
    ]);
    let run = desk.only_run("kept");
    assert_eq!(steps(&run), [1, 2]);
    assert_eq!(half_written(&run.join("checkpoints")), [""; 0]);
    assert!(!run.join("finished").exists());
    // With room it goes on, to the same end.
    desk.succeeds(&format!("resume run={}", run.display()));
    same_run(&run, &whole, 4);
}

#[test]
fn a_checkpoint_that_cannot_be_written() {
    let desk = Desk::new();
    desk.succeeds(&desk.tiny("train.checkpoint_every=2 train.log_every=1"));
    let run = desk.only_run("runs");
    copy(&run, &desk.path("whole"));
    fs::remove_dir_all(run.join("checkpoints/step-00000004")).unwrap();
    fs::remove_file(run.join("finished")).unwrap();
    let before = checkpoint(&run, 2);
    with_small_files(&desk, 100, "resume").refused(&[
        "update 4 could not be saved; the checkpoint of update 2 is whole",
        "step-00000004",
        "File too large",
        "ulimit -f",
    ]);
    assert!(checkpoint(&run, 2) == before);
    assert_eq!((steps(&run), half_written(&run.join("checkpoints"))), (vec![2], vec![]));
    desk.succeeds("resume");
    same_run(&run, &desk.path("whole"), 4);
}

#[test]
fn the_first_checkpoint_cannot_be_written() {
    let desk = Desk::new();
    let line = desk.tiny("train.checkpoint_every=2");
    let parts = ["update 2 could not be saved", "no checkpoint yet", "begins again"];
    with_small_files(&desk, 100, &line).refused(&parts);
    let run = desk.only_run("runs");
    assert_eq!(names(&run.join("checkpoints")), [""; 0]);
    desk.succeeds("resume");
    assert_eq!(steps(&run), [2, 4]);
}

#[test]
fn a_disk_too_small_for_converted_data() {
    let desk = Desk::new();
    let line = desk.tiny("data.cache=cache");
    let lines = format!(
        "mkdir cache && mount -t tmpfs -o size=30m none cache || exit 77
         \"$overtone\" {line}; code=$?; find cache -type f > left; exit $code"
    );
    if let Some(said) = mounting(&desk, &lines) {
        said.refused(&["data.cache=cache", "needs", "MB free", "free some space"]);
        assert_eq!(fs::read_to_string(desk.path("left")).unwrap(), "");
    }
    assert_eq!(names(&desk.path("runs")), [""; 0]);
    // Where the disk is large and writing fails all the same.
    with_small_files(&desk, 1000, &line).refused(&[
        "data.cache=cache",
        "cannot write it (File too large",
        "ulimit -f",
    ]);
    for folder in names(&desk.path("cache")) {
        assert_eq!(names(&desk.path("cache").join(folder)), [""; 0], "half a conversion");
    }
    desk.succeeds(&line);
}

#[test]
fn a_report_that_cannot_be_written() {
    let desk = Desk::new();
    desk.succeeds(ROBOT);
    let run = desk.only_run("runs");
    let line = "evaluate rollouts episodes=2 target=100";
    desk.succeeds(line);
    let before = fs::read(run.join("evaluation.json")).unwrap();
    let refused = |said: &Said, parts: &[&str]| {
        assert_eq!(said.code, Some(1), "{said:?}");
        let error = said.stderr.lines().find(|line| line.starts_with("error: ")).unwrap();
        assert_eq!(said.stderr.lines().count(), 1, "{said:?}");
        assert!(parts.iter().all(|part| error.contains(part)), "{error}");
        // What was played is not lost.
        assert!(said.stdout.contains("Hopper") && said.stdout.contains("raw"), "{said:?}");
    };
    let short = with_small_files(&desk, 1, &format!("{line} seed=7"));
    refused(&short, &["cannot write the report", "evaluation.json", "File too large"]);
    assert_eq!(fs::read(run.join("evaluation.json")).unwrap(), before, "the one before stays");
    assert_eq!(half_written(&run), [""; 0]);

    let lines = format!(
        "mkdir full && mount -t tmpfs -o size=64k none full || exit 77
         head -c 64k /dev/zero > full/fill
         \"$overtone\" {line} out=full/a.json; code=$?; ls -A full > left; exit $code"
    );
    let Some(said) = mounting(&desk, &lines) else { return };
    refused(&said, &["cannot write the report", "full/a.json", "No space left", "make room"]);
    assert_eq!(fs::read_to_string(desk.path("left")).unwrap(), "fill\n");
}

// Folders that may only be read

/// Lines that make `folder` one that may only be read.
fn read_only(folder: &str) -> String {
    format!("mount --bind {folder} {folder} && mount -o remount,bind,ro {folder} || exit 77\n")
}

#[test]
fn a_runs_folder_that_may_only_be_read() {
    let desk = Desk::new();
    desk.succeeds(ROBOT);
    let run = desk.only_run("runs");
    let before = names(&run);
    let run = format!("runs/{}", run.file_name().unwrap().to_string_lossy());
    let protected = |line: &str| mounting(&desk, &(read_only("runs") + "\"$overtone\" " + line));
    let Some(said) = protected(&format!("{ROBOT} resume=never")) else { return };
    let parts = ["cannot make a folder for the run in runs=runs", "Read-only", "name a folder"];
    said.refused(&parts);
    let resumed = protected(&format!("resume run={run}")).unwrap();
    resumed.refused(&[".lock", "Read-only", "name a folder"]);
    // Found before playing; and with another place for the report it is played.
    let line = format!("evaluate rollouts run={run} episodes=1 target=100");
    let played = protected(&line).unwrap();
    played.refused(&["out= names another place", "evaluation.json", "Read-only"]);
    assert!(!played.stdout.contains("playing"), "{played:?}");
    let played = protected(&format!("{line} out=report.json")).unwrap();
    assert_eq!(played.code, Some(0), "{played:?}");
    let warning = "warning: the scores are not among the run's curves: ";
    assert!(played.stderr.starts_with(warning), "{played:?}");
    assert!(desk.path("report.json").is_file());
    assert_eq!(names(&desk.path(&run)), before);
}

#[test]
fn a_dataset_folder_that_may_only_be_read() {
    let desk = Desk::new();
    let datasets = project().join("datasets");
    let protected = |line: &str| {
        let lines = read_only(&datasets.display().to_string()) + "\"$overtone\" " + line;
        mounting(&desk, &lines)
    };
    let Some(said) = protected(ROBOT) else { return };
    assert_eq!(said.code, Some(0), "{said:?}");
    // A selection that nobody has converted yet.
    let line = desk.tiny("data.transitions=1501 data.cache=");
    let parts = ["datasets/cache", "data.cache=", "Read-only", "name a folder"];
    protected(&line).unwrap().refused(&parts);
    let elsewhere = protected(&desk.tiny("data.cache=cache runs=games")).unwrap();
    assert_eq!(elsewhere.code, Some(0), "{elsewhere:?}");
}

// Data that changes

/// A run on a converted dataset of its own, long enough to be disturbed.
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

/// Starts [`LONG`] with far more updates, disturbs its data after some checkpoints, and gives
/// what it said and the checkpoints it left.
fn disturbed(desk: &Desk, disturb: impl Fn(&Path)) -> (Said, PathBuf) {
    let line = desk.tiny(LONG).replace("train.updates=40", "train.updates=100000");
    let child = desk.command(&line).spawn().unwrap();
    wait_until("checkpoints", || {
        let runs = names(&desk.path("runs"));
        runs.first().is_some_and(|run| steps(&desk.path("runs").join(run)).last() >= Some(&8))
    });
    disturb(&store(desk));
    (said(child.wait_with_output().unwrap()), desk.only_run("runs"))
}

/// The data is made again, and the run goes on with it.
#[track_caller]
fn is_made_again(desk: &Desk, run: &Path) {
    // Its last whole checkpoint, in a run of a length that can be waited for.
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
    said.refused(&["frames.safetensors", "cut short while it was in use", "made again"]);
    assert_eq!(half_written(&run.join("checkpoints")), [""; 0]);
    is_made_again(&desk, &run);
}

#[test]
fn data_written_to_while_a_run_trains() {
    let desk = Desk::new();
    let (said, run) = disturbed(&desk, |store| scribble(store, 1_000_000));
    said.refused(&["frames.safetensors", "somebody changed it while it was in use", "made again"]);
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
    // As another conversion puts its own in place.
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
fn another_recording_in_the_place_of_the_one_trained_on() {
    let desk = Desk::new();
    let file = |name: &str| project().join("datasets/starter/mujoco").join(name);
    fs::copy(file("hopper_medium.hdf5"), desk.path("hopper.hdf5")).unwrap();
    let line = format!("{ROBOT} dataset={}", desk.path("hopper.hdf5").display());
    desk.succeeds(&format!("{line} train.checkpoint_every=2"));
    let run = desk.only_run("runs");
    fs::remove_file(run.join("finished")).unwrap();
    fs::remove_dir_all(run.join("checkpoints/step-00000004")).unwrap();
    change(&desk.path("hopper.hdf5"), "rewards", |rewards| rewards[7] += 1.0);
    let before = checkpoint(&run, 2);
    desk.refuses("resume", &["step-00000002", "was trained on other data than is there now"]);
    assert!(checkpoint(&run, 2) == before && steps(&run) == [2]);
}

/// Changes array `name` of an HDF5 file.
fn change(path: &Path, name: &str, change: impl Fn(&mut [f32])) {
    // In a copy that is copied back: the library locks what it writes, and processes that other
    // tests start meanwhile inherit the lock.
    let edited = path.with_extension("edited");
    fs::copy(path, &edited).unwrap();
    write_again(&edited, name, change);
    fs::copy(&edited, path).unwrap();
}

/// Writes array `name` of an HDF5 file again, changed; all of it is closed afterwards.
fn write_again(path: &Path, name: &str, change: impl Fn(&mut [f32])) {
    let file = hdf5::File::open_rw(path).unwrap();
    let array = file.dataset(name).unwrap();
    let (shape, mut values) = (array.shape(), array.read_raw::<f32>().unwrap());
    change(&mut values);
    file.unlink(name).unwrap();
    let array = file.new_dataset::<f32>().shape(shape).create(name).unwrap();
    array.write_raw(&values).unwrap();
}

// Two processes in one place

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
        let parts = ["another process is training in", &run, "wait for it, or stop it"];
        desk.refuses(&format!("resume run={run}"), &parts);
    }
    first.kill();
    second.kill();
    // Neither holds a lock any more; and one is gone on with, not a third begun.
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

// Numbers that are none

#[test]
fn a_recording_with_a_number_that_is_none() {
    let starter = project().join("datasets/starter/mujoco/hopper_medium.hdf5");
    for (array, at, row) in [("observations", 37, 3), ("actions", 5, 1), ("rewards", 4, 4)] {
        let desk = Desk::new();
        let path = desk.path("hopper.hdf5");
        fs::copy(&starter, &path).unwrap();
        change(&path, array, |values| values[at] = f32::NAN);
        let line = format!("{ROBOT} dataset={}", path.display());
        let (array, row) = (format!("`{array}`"), format!("row {row} "));
        desk.refuses(&line, &["hopper.hdf5", &array, &row, "NaN"]);
        assert_eq!(names(&desk.path("runs")), [""; 0]);
    }
}

#[test]
fn a_log_with_a_reward_that_is_none() {
    let desk = Desk::new();
    let mut recorder = Recorder::new(&desk.path(""), "Seaquest", 10);
    recorder.episode(12);
    recorder.episode(8);
    let name = "$store$_reward_ckpt.1.gz";
    let mut rewards = [0.0f32; 10];
    rewards[3] = f32::NAN;
    let bytes: Vec<u8> = rewards.iter().flat_map(|reward| reward.to_le_bytes()).collect();
    write_gz(&recorder.folder.join(name), &npy("<f4", &[10], &bytes));
    let line = desk.tiny("data.path=Seaquest data.cache=cache");
    desk.refuses(&line, &[name, "slot 3", "NaN", "finite"]);
    assert_eq!(names(&desk.path("runs")), [""; 0]);
}

#[test]
fn a_robots_loss_that_is_no_number() {
    let desk = Desk::new();
    let words = "train.learning_rate=1e30 train.warmup_tokens=0 train.checkpoint_every=1";
    desk.refuses(
        &format!("{ROBOT} {words} head=gaussian"),
        &["step 2: the loss is", "not-finite-step-00000002.json", "train.learning_rate"],
    );
    let run = desk.only_run("runs");
    assert_eq!(steps(&run), [1]);
    let record = fs::read(run.join("not-finite-step-00000002.json")).unwrap();
    let record: serde_json::Value = serde_json::from_slice(&record).unwrap();
    assert_eq!(record["last_indices"].as_array().unwrap().len(), 3);
    // The checkpoint before opens, and can be gone on with.
    desk.refuses("resume", &["step 2: the loss is"]);
    assert_eq!(checkpoint(&run, 1).len(), 4);
}

// Checkpoints of others

#[test]
fn a_checkpoint_of_another_run() {
    let desk = Desk::new();
    let words = "train.checkpoint_every=2";
    desk.succeeds(&desk.tiny(words));
    let run = desk.only_run("runs");
    fs::remove_file(run.join("finished")).unwrap();
    for (other, said) in [
        ("model.d_model=16", "belongs to another model configuration"),
        ("head=fourier", "belongs to another model configuration"),
        ("seed=7 data.transitions=3000", "was trained on other data"),
        ("train.held_out=0.5", "was trained with episodes held out"),
    ] {
        let (name, place) = (other.replace(['=', '.', ' '], "-"), run.join("checkpoints"));
        desk.succeeds(&desk.tiny(&format!("{words} {other} runs={name}")));
        let foreign = desk.only_run(&name).join("checkpoints/step-00000004");
        fs::remove_dir_all(place.join("step-00000004")).unwrap();
        copy(&foreign, &place.join("step-00000004"));
        let before = checkpoint(&run, 4);
        desk.refuses("resume runs=runs", &["step-00000004", said]);
        assert!(checkpoint(&run, 4) == before && steps(&run) == [2, 4], "{other}");
    }
    // Without it the run goes on from its own.
    fs::remove_dir_all(run.join("checkpoints/step-00000004")).unwrap();
    desk.succeeds("resume runs=runs");
    assert_eq!(steps(&run), [2, 4]);
}

#[test]
fn a_checkpoint_of_another_seed() {
    let desk = Desk::new();
    desk.succeeds(&format!("{ROBOT} runs=one"));
    desk.succeeds(&format!("{ROBOT} runs=two seed=7"));
    let (one, two) = (desk.only_run("one"), desk.only_run("two"));
    let step = "checkpoints/step-00000004";
    fs::remove_dir_all(one.join(step)).unwrap();
    copy(&two.join(step), &one.join(step));
    let line = format!("resume run={}", one.display());
    desk.refuses(&line, &["step-00000004", "belongs to a run of another seed"]);
}
