//! Full disks, and read-only directories.
//!
//! Some need their own mounts, in a user namespace. If the system does not allow it, these tests
//! print that they are skipped.

use std::{
    fs,
    path::Path,
    process::{Command, Stdio},
};

use overtone_testkit::left_out;

use super::{ROBOT, half_written};
use crate::desk::{Desk, ProgramOutput, checkpoint, copy, names, project, said, same_run, steps};

/// A shell script in the desk's directory, in which `$overtone` is the program.
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

/// Runs a script with its own mounts, which end with it. Prints a line and returns `None` if this
/// machine does not allow mounts.
pub fn mounting(desk: &Desk, lines: &str) -> Option<ProgramOutput> {
    const WRAPPER: [&str; 4] = ["unshare", "--user", "--map-root-user", "--mount"];
    let allowed = script(desk, &WRAPPER, "mount -t tmpfs -o size=64k none /mnt").output();
    if !allowed.is_ok_and(|output| output.status.success()) {
        left_out("this machine allows no mounts in a user namespace");
        return None;
    }
    Some(said(script(desk, &WRAPPER, lines).output().unwrap()))
}

/// Runs the program with `line` and a limit of `kb` KB on file sizes.
fn with_small_files(desk: &Desk, kb: u32, line: &str) -> ProgramOutput {
    let lines = format!("trap '' XFSZ; ulimit -f {kb}; exec \"$overtone\" {line}");
    said(script(desk, &["env"], &lines).output().unwrap())
}

fn bytes_of(folder: &Path) -> u64 {
    let entries = fs::read_dir(folder).unwrap();
    entries.map(|entry| entry.unwrap().metadata().unwrap().len()).sum()
}

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
    said.refused();
    let run = desk.only_run("kept");
    assert_eq!(steps(&run), [1, 2]);
    assert_eq!(half_written(&run.join("checkpoints")), [""; 0]);
    assert!(!run.join("finished").exists());
    // With free space it resumes, to the same end.
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
    with_small_files(&desk, 100, "resume").refused();
    assert!(checkpoint(&run, 2) == before);
    assert_eq!((steps(&run), half_written(&run.join("checkpoints"))), (vec![2], vec![]));
    desk.succeeds("resume");
    same_run(&run, &desk.path("whole"), 4);
}

#[test]
fn the_first_checkpoint_cannot_be_written() {
    let desk = Desk::new();
    let line = desk.tiny("train.checkpoint_every=2");
    with_small_files(&desk, 100, &line).refused();
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
        said.refused();
        assert_eq!(fs::read_to_string(desk.path("left")).unwrap(), "");
    }
    assert_eq!(names(&desk.path("runs")), [""; 0]);
    // A large disk on which writing fails.
    with_small_files(&desk, 1000, &line).refused();
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
    let refused = |said: &ProgramOutput| {
        assert_eq!(said.code, Some(1), "{said:?}");
        let error = said.stderr.lines().find(|line| line.starts_with("error: ")).unwrap();
        assert_eq!(said.stderr.lines().count(), 1, "{said:?}");
        overtone_testkit::sentences::check(error);
        // The result of the evaluation is not lost.
        assert!(said.stdout.contains("Hopper") && said.stdout.contains("raw"), "{said:?}");
    };
    let short = with_small_files(&desk, 1, &format!("{line} seed=7"));
    refused(&short);
    assert_eq!(fs::read(run.join("evaluation.json")).unwrap(), before, "the one before stays");
    assert_eq!(half_written(&run), [""; 0]);

    let lines = format!(
        "mkdir full && mount -t tmpfs -o size=64k none full || exit 77
         head -c 64k /dev/zero > full/fill
         \"$overtone\" {line} out=full/a.json; code=$?; ls -A full > left; exit $code"
    );
    let Some(said) = mounting(&desk, &lines) else { return };
    refused(&said);
    assert_eq!(fs::read_to_string(desk.path("left")).unwrap(), "fill\n");
}

/// Lines that make `folder` read-only.
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
    said.refused();
    let resumed = protected(&format!("resume run={run}")).unwrap();
    resumed.refused();
    // Reported before the evaluation, which runs with another output.
    let line = format!("evaluate rollouts run={run} episodes=1 target=100");
    let played = protected(&line).unwrap();
    played.refused();
    assert!(!played.stdout.contains("evaluating"), "{played:?}");
    let played = protected(&format!("{line} out=report.json")).unwrap();
    assert_eq!(played.code, Some(0), "{played:?}");
    let warning = "warning: cannot add the scores to the run's curves: ";
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
    // A selection without a converted copy.
    let line = desk.tiny("data.transitions=1501 data.cache=");
    protected(&line).unwrap().refused();
    let elsewhere = protected(&desk.tiny("data.cache=cache runs=games")).unwrap();
    assert_eq!(elsewhere.code, Some(0), "{elsewhere:?}");
}
