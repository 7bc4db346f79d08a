//! Studies on disks that fill up, and on file systems without locks.

use std::{fs, path::Path, process::Command};

use super::disks::mounting;
use crate::desk::{Desk, names, same_run, steps};

/// Three cells of tiny runs, one after the other.
const STUDY: &str = "study run env=hopper model.n_layers=1 model.d_model=16 model.context_length=5 \
                     train.batch_size=3 train.updates=4 train.checkpoint_every=1 \
                     evaluation.episodes=1 evaluation.target=1800 seed=1..3 jobs=1 name=three";

fn runs(folder: &Path) -> Vec<String> {
    let is_run = |name: &String| folder.join(name).join("config.toml").is_file();
    names(folder).into_iter().filter(is_run).collect()
}

#[test]
fn a_disk_that_fills_up_in_a_study() {
    let (desk, whole) = (Desk::new(), Desk::new());
    whole.succeeds(STUDY);
    let first = runs(&whole.path("runs")).remove(0);
    let used = Command::new("du").args(["-sk"]).arg(whole.path("runs").join(&first)).output();
    let used = String::from_utf8(used.unwrap().stdout).unwrap();
    let run_kb: u64 = used.split_whitespace().next().unwrap().parse().unwrap();
    // Room for a run and a half.
    let lines = format!(
        "mkdir runs && mount -t tmpfs -o size={}k none runs || exit 77
         \"$overtone\" {STUDY} && exit 78
         \"$overtone\" study status three > full.txt || exit 79
         mount -o remount,size=64m none runs
         \"$overtone\" study resume three > resumed.txt; code=$?; cp -r runs kept; exit $code",
        run_kb * 3 / 2 + 60
    );
    let Some(said) = mounting(&desk, &lines) else { return };
    assert_eq!(said.code, Some(0), "{said:?}");
    let full = said.stderr.lines().filter(|line| line.starts_with("failed: ")).collect::<Vec<_>>();
    assert!(!full.is_empty() && full.len() < 3, "{said:?}");
    assert!(full.iter().all(|line| line.contains("No space left on device")), "{said:?}");
    let status = fs::read_to_string(desk.path("full.txt")).unwrap();
    assert!(status.contains("all_s1  played"), "the first had room: {status}");
    let resumed = fs::read_to_string(desk.path("resumed.txt")).unwrap();
    assert!(resumed.contains("3 cells: 3 played"), "{resumed}");
    let (kept, undisturbed) = (runs(&desk.path("kept")), runs(&whole.path("runs")));
    assert_eq!(kept, undisturbed, "no run was begun again, and none left behind");
    for name in kept {
        let run = desk.path("kept").join(&name);
        assert_eq!(steps(&run).last(), Some(&4));
        same_run(&run, &whole.path("runs").join(&name), 4);
    }
    let page = |folder: &Path| fs::read(folder.join("studies/three/report-cells.csv")).unwrap();
    assert!(page(&desk.path("kept")) == page(&whole.path("runs")));
}

/// A library that fails to lock the files of runs and studies, like NFS without its lock service.
const SOURCE: &str = r#"
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>
int flock(int file, int what) {
    char link[64], path[4096];
    snprintf(link, sizeof link, "/proc/self/fd/%d", file);
    ssize_t n = readlink(link, path, sizeof path);
    if (n > 5 && !memcmp(path + n - 5, ".lock", 5)) { errno = ENOLCK; return -1; }
    return syscall(SYS_flock, file, what);
}
"#;

/// The compiled library.
fn without_locks(desk: &Desk) -> Option<std::path::PathBuf> {
    fs::write(desk.path("locks.c"), SOURCE).unwrap();
    let library = desk.path("locks.so");
    let mut compiler = Command::new("cc");
    compiler.args(["-shared", "-fPIC", "-o"]).arg(&library).arg(desk.path("locks.c"));
    if !cfg!(target_os = "linux") || !compiler.status().is_ok_and(|status| status.success()) {
        println!("left out: no library that takes locks away can be made here");
        return None;
    }
    Some(library)
}

#[test]
fn without_file_locks_nothing_starts() {
    let desk = Desk::new();
    let Some(library) = without_locks(&desk) else { return };
    let train = format!("{} runs=alone", super::ROBOT);
    for line in [STUDY, &train] {
        let mut command = desk.command(line);
        command.env("LD_PRELOAD", &library);
        let said = crate::desk::said(command.output().unwrap());
        said.refused();
    }
    assert_eq!(runs(&desk.path("runs")), [""; 0]);
    assert_eq!(names(&desk.path("alone")), [""; 0], "no half a run is left");
    // With locks, the study resumes.
    let said = desk.succeeds("study resume three");
    assert!(said.contains("3 cells: 3 played"), "{said}");
}
