//! Studies on a real Slurm of three nodes, started in a folder of its own. Where Slurm is not
//! installed, nothing is tested, and that is said.

use std::{fs, path::Path, process::Command, time::Duration};

use serde_json::Value;

use crate::desk::{Desk, names, project, same_run, steps};

/// Two cells that take a while, and one that fails.
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
[[cells]]
head = \"tanh\"
evaluation.target = \"1800\"
[[cells]]
head = \"gaussian\"
evaluation.target = \"1800\"
[[cells]]
evaluation.target = \"p900\"
";

/// A Slurm that ends when it is dropped.
struct Cluster {
    folder: tempfile::TempDir,
}

impl Cluster {
    /// None where Slurm is not installed.
    fn start() -> Option<Self> {
        let installed = |program: &&str| {
            let places = ["/usr/bin", "/usr/sbin", "/usr/local/bin", "/usr/local/sbin"];
            places.iter().any(|place| Path::new(place).join(program).is_file())
        };
        if !["sbatch", "slurmctld", "slurmd", "munged"].iter().all(installed) {
            eprintln!("skipped: Slurm is not installed (Debian: slurm-wlm, munge)");
            return None;
        }
        let cluster = Self { folder: tempfile::tempdir().unwrap() };
        assert!(cluster.script("up", "3"), "Slurm does not start");
        Some(cluster)
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
fn a_requeued_cell_ends_as_if_undisturbed_and_the_page_is_the_same() {
    let Some(cluster) = Cluster::start() else { return };
    let (desk, here) = (Desk::new(), Desk::new());
    for desk in [&desk, &here] {
        fs::write(desk.path("three.toml"), STUDY).unwrap();
    }
    let said = cluster.run(&desk, "study run three.toml engine=slurm");
    assert!(said.contains(": 3 cells to do"), "{said}");
    let run = |desk: &Desk, end: &str| {
        let name = names(&desk.path("runs")).into_iter().find(|name| name.ends_with(end));
        name.map(|name| desk.path("runs").join(name))
    };
    cluster.wait("a checkpoint", || {
        run(&desk, "tanh-s1").is_some_and(|run| steps(&run).last().is_some_and(|n| *n >= 200))
    });
    let array = fs::read_to_string(desk.path("runs/studies/three/jobs")).unwrap();
    let task = format!("{}_0", array.split(' ').next().unwrap());
    cluster.ask("scontrol", &["requeue", &task]);
    // What is under way is not begun a second time.
    let again = cluster.run(&desk, "study resume three engine=slurm");
    assert!(!again.contains("cells to do"), "{again}");
    let page = desk.path("runs/studies/three/report.html");
    cluster
        .wait("the page", || page.is_file() && cluster.ask("squeue", &["--noheader"]).is_empty());
    let told: Value =
        serde_json::from_str(&cluster.run(&desk, "study status --json three")).unwrap();
    assert_eq!(told["counts"], serde_json::json!({ "failed": 1, "played": 2 }), "{told}");

    assert_eq!(here.run("study run three.toml jobs=2").code, Some(1));
    let moved = run(&desk, "tanh-s1").unwrap();
    same_run(&moved, &run(&here, "tanh-s1").unwrap(), 4000);
    let processes = fs::read_to_string(moved.join("provenance.jsonl")).unwrap();
    let last: Value = serde_json::from_str(processes.lines().next_back().unwrap()).unwrap();
    assert_eq!(last["slurm"]["restarts"], 1, "{processes}");
    assert!(last["step"].as_u64().unwrap() >= 200, "{processes}");
    for file in ["report.html", "report.md", "report-cells.csv"] {
        let of = |desk: &Desk| fs::read(desk.path("runs/studies/three").join(file)).unwrap();
        assert!(of(&desk) == of(&here), "{file} differs");
    }
}
