//! Studies on a real Slurm of three nodes in its own directory. Without Slurm, these tests only
//! print that they are skipped.

use std::{fs, os::unix::fs::PermissionsExt, path::Path, process::Command, time::Duration};

use serde_json::Value;

use crate::desk::{Desk, project, same_run, steps};

/// Six cells: one that fails, and two that differ only in their evaluation, whose runs have the
/// same name.
const STUDY: &str = "\
seeds = [1]
[settings]
env = \"hopper\"
model.n_layers = 1
model.d_model = 16
model.context_length = 5
train.batch_size = 3
train.updates = 4000
train.checkpoint_every = 50
evaluation.episodes = 1
evaluation.every = 0
evaluation.target = \"1800\"
[[cells]]
head = \"tanh\"
[[cells]]
head = \"gaussian\"
[[cells]]
evaluation.target = \"p900\"
[[cells]]
head = \"tanh\"
evaluation.target = \"900\"
[[cells]]
head = \"tanh\"
train.updates = 300
[[cells]]
head = \"gaussian\"
train.updates = 300
";

/// A Slurm that ends when it is dropped.
struct Cluster {
    folder: tempfile::TempDir,
}

impl Cluster {
    /// Starts Slurm's daemons.
    fn start() -> Self {
        let installed = |program: &&str| {
            let places = ["/usr/bin", "/usr/sbin", "/usr/local/bin", "/usr/local/sbin"];
            places.iter().any(|place| Path::new(place).join(program).is_file())
        };
        let needed = ["sbatch", "slurmctld", "slurmd", "munged"];
        assert!(needed.iter().all(installed), "Slurm is not installed (Debian: slurm-wlm, munge)");
        let cluster = Self { folder: tempfile::tempdir().unwrap() };
        assert!(cluster.script("up", "3"), "Slurm does not start");
        cluster
    }

    fn script(&self, what: &str, word: &str) -> bool {
        let mut command = Command::new(project().join("scripts/slurm.sh"));
        command.arg(what).arg(self.folder.path()).arg(word);
        command.status().unwrap().success()
    }

    fn ask(&self, program: &str, words: &[&str]) -> String {
        let mut command = Command::new(program);
        command.args(words).env("SLURM_CONF", self.folder.path().join("slurm.conf"));
        String::from_utf8(command.output().unwrap().stdout).unwrap()
    }

    fn run(&self, desk: &Desk, line: &str) -> String {
        let mut command = desk.command(line);
        command.env("SLURM_CONF", self.folder.path().join("slurm.conf"));
        let said = crate::desk::said(command.output().unwrap());
        assert_eq!(said.code, Some(0), "{said:?}");
        said.stdout
    }

    /// Waits until `holds`, for five minutes at most.
    #[track_caller]
    fn wait(&self, what: &str, mut holds: impl FnMut() -> bool) {
        for _ in 0..3000 {
            if holds() {
                return;
            }
            std::thread::sleep(Duration::from_millis(100));
        }
        panic!("waited in vain for {what}:\n{}", self.ask("squeue", &[]));
    }
}

impl Drop for Cluster {
    fn drop(&mut self) {
        self.ask("scancel", &["--me"]);
        self.script("down", "");
    }
}

#[test]
#[ignore = "needs Slurm (Debian: slurm-wlm, munge)"]
fn a_requeued_cell_and_a_lost_node_change_nothing_and_the_page_is_the_same() {
    let cluster = Cluster::start();
    let (desk, here) = (Desk::new(), Desk::new());
    for desk in [&desk, &here] {
        fs::write(desk.path("six.toml"), STUDY).unwrap();
    }
    let said = cluster.run(&desk, "study run six.toml engine=slurm");
    assert!(said.contains(": 6 cells to run"), "{said}");
    let status_of = |desk: &Desk| -> Value {
        serde_json::from_str(&cluster.run(desk, "study status --json six")).unwrap()
    };
    let run = |desk: &Desk, cell: usize| {
        status_of(desk)["cells"][cell]["run"].as_str().map(|run| desk.path(run))
    };
    let is_far = |cell: usize| {
        run(&desk, cell).is_some_and(|run| steps(&run).last().is_some_and(|step| *step >= 200))
    };
    cluster.wait("two checkpoints", || is_far(0) && is_far(1));
    let array = fs::read_to_string(desk.path("runs/studies/six/jobs")).unwrap();
    let array = array.split(' ').next().unwrap();
    cluster.ask("scontrol", &["requeue", &format!("{array}_0")]);
    let job = format!("--jobs={array}_1");
    let node = cluster.ask("squeue", &["--noheader", "--format=%N", &job]);
    assert!(cluster.script("kill", node.trim()), "node `{node}` was not ended");
    // Running cells are not started again.
    let again = cluster.run(&desk, "study resume six engine=slurm");
    assert!(!again.contains("cells to run"), "{again}");
    let page = desk.path("runs/studies/six/report.html");
    cluster
        .wait("the page", || page.is_file() && cluster.ask("squeue", &["--noheader"]).is_empty());
    let counts = &status_of(&desk)["counts"];
    assert_eq!(*counts, serde_json::json!({ "failed": 1, "played": 5 }));

    assert_eq!(here.run("study run six.toml jobs=2").code, Some(1));
    for cell in [0, 1] {
        let moved = run(&desk, cell).unwrap();
        same_run(&moved, &run(&here, cell).unwrap(), 4000);
        let processes = fs::read_to_string(moved.join("provenance.jsonl")).unwrap();
        let last: Value = serde_json::from_str(processes.lines().next_back().unwrap()).unwrap();
        assert_eq!(last["slurm"]["restarts"], 1, "{processes}");
        assert!(last["step"].as_u64().unwrap() >= 200, "{processes}");
        assert!(cell == 0 || last["slurm"]["node"] != node.trim(), "{processes}");
    }
    for file in ["report.html", "report.md", "report-cells.csv"] {
        // A job names the directory of its run by an absolute path.
        let of = |desk: &Desk| {
            let text = fs::read_to_string(desk.path("runs/studies/six").join(file)).unwrap();
            text.replace(&desk.path("runs").display().to_string(), "runs")
        };
        let (there, local) = (of(&desk), of(&here));
        let place = there.bytes().zip(local.bytes()).take_while(|(a, b)| a == b).count();
        let around = |text: &str| {
            let text = text.as_bytes();
            let (from, to) = (place.saturating_sub(300), (place + 300).min(text.len()));
            String::from_utf8_lossy(&text[from.min(to)..to]).into_owned()
        };
        assert!(
            there == local,
            "{file} differs from byte {place} on.\nSlurm:\n{}\nlocal:\n{}",
            around(&there),
            around(&local)
        );
    }
}

/// Jobs that are submitted to Slurm, by an `sbatch` that records and numbers them.
#[test]
fn more_tasks_than_an_array_has_are_several_arrays() {
    let words = "study run env=hopper seed=1..1002 name=many engine=slurm evaluation.episodes=0";
    for (jobs, after) in [("jobs=0", ""), ("jobs=7", "--dependency=afterany:1 ")] {
        let desk = Desk::new();
        let asked = desk.path("asked");
        let sbatch = desk.path("bin/sbatch");
        fs::create_dir(desk.path("bin")).unwrap();
        let asked_by = format!("#!/bin/sh\necho \"$*\" >> '{0}'\nwc -l < '{0}'\n", asked.display());
        fs::write(&sbatch, asked_by).unwrap();
        fs::set_permissions(&sbatch, fs::Permissions::from_mode(0o755)).unwrap();
        let path = std::env::var("PATH").unwrap_or_default();
        let mut command = desk.command(&format!("{words} {jobs}"));
        command.env("PATH", format!("{}:{path}", desk.path("bin").display()));
        let said = crate::desk::said(command.output().unwrap());
        assert_eq!((said.code, said.stderr.as_str()), (Some(0), ""), "{said:?}");
        let text = fs::read_to_string(&asked).unwrap();
        let has = |line: usize, parts: &[&str]| {
            let line = text.lines().nth(line).unwrap();
            assert!(parts.iter().all(|part| line.contains(part)), "{parts:?} in {line}");
        };
        assert_eq!(text.lines().count(), 3, "{text}");
        assert!(!text.lines().next().unwrap().contains("--dependency"), "{text}");
        has(0, &["--array=0-999", "job.sh cells-1.txt"]);
        has(1, &["--array=0-1", after, "job.sh cells-2.txt"]);
        has(2, &["--dependency=afterany:1:2 ", "report.sh"]);
        let list = fs::read_to_string(desk.path("runs/studies/many/cells-2.txt")).unwrap();
        assert_eq!(list, "all_s1001\nall_s1002\n");
    }
}
