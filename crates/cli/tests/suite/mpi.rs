//! Several processes of one run: refused if they would be copies, and started by a real `mpirun` if
//! the program has the feature `mpi`.

use crate::desk::{Desk, names, said};

/// Variables of Open MPI and MPICH with the number of processes.
const SIZES: [&str; 2] = ["OMPI_COMM_WORLD_SIZE", "PMI_SIZE"];

#[test]
fn copies_are_refused() {
    let desk = Desk::new();
    let refuses = |size: &str, line: &str, n: &str| {
        said(desk.command(line).env(size, n).output().unwrap()).refused();
    };
    for size in SIZES {
        refuses(size, "evaluate rollouts", "4");
        // One process under `mpirun` is an ordinary run.
        refuses(size, "resume", "1");
    }
    if cfg!(not(feature = "mpi")) {
        for size in SIZES {
            refuses(size, &desk.tiny(""), "4");
            refuses(size, "resume", "4");
        }
    }
    assert!(names(&desk.path("runs")).is_empty());
}

#[test]
fn a_batch_in_parts_is_a_setting_of_the_run() {
    let desk = Desk::new();
    desk.refuses(&desk.tiny("train.micro_batches=3"));
    desk.refuses("train env=hopper algorithm=iql train.micro_batches=2");
    desk.succeeds(&desk.tiny("train.micro_batches=2"));
    let config = std::fs::read_to_string(desk.only_run("runs").join("config.toml")).unwrap();
    assert!(config.contains("micro_batches = 2"), "{config}");
}

#[cfg(feature = "mpi")]
mod started_together {
    use std::{
        fs,
        path::Path,
        process::{Command, Stdio},
    };

    use crate::desk::{Desk, ProgramOutput, names, said, steps, wait_until};

    const LONG: &str = "train.batch_size=8 train.micro_batches=4 train.updates=120 \
                        train.checkpoint_every=10";

    /// `n` processes of the program.
    fn mpirun(desk: &Desk, n: usize, line: &str) -> Command {
        let program = desk.command(line);
        let mut command = Command::new("mpirun");
        command.args(["--oversubscribe", "--allow-run-as-root", "-n"]).arg(n.to_string());
        command.arg(program.get_program()).args(program.get_args()).current_dir(desk.path("."));
        for (name, value) in program.get_envs() {
            match value {
                Some(value) => command.env(name, value),
                None => command.env_remove(name),
            };
        }
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        command
    }

    #[track_caller]
    fn run(desk: &Desk, n: usize, line: &str) -> ProgramOutput {
        let said = said(mpirun(desk, n, line).output().unwrap());
        assert_eq!(said.code, Some(0), "{said:?}");
        said
    }

    /// The process of this rank.
    fn process_of(mpirun: u32, rank: usize) -> String {
        let is_it = |entry: &Path| {
            let read = |name: &str| fs::read(entry.join(name)).unwrap_or_default();
            let status = String::from_utf8_lossy(&read("status")).into_owned();
            let word = format!("OMPI_COMM_WORLD_RANK={rank}");
            status.lines().any(|line| line == format!("PPid:\t{mpirun}"))
                && read("environ").split(|&byte| byte == 0).any(|var| var == word.as_bytes())
        };
        let mut all = fs::read_dir("/proc").unwrap().flatten().map(|entry| entry.path());
        let found = all.find(|entry| is_it(entry)).unwrap();
        found.file_name().unwrap().to_string_lossy().into_owned()
    }

    fn weights(run: &Path) -> Vec<u8> {
        fs::read(run.join("checkpoints/step-00000120/model.safetensors")).unwrap()
    }

    /// One of four processes is killed; the others end, and two resume to the same bits as one.
    #[test]
    #[ignore = "needs mpirun (Debian: openmpi-bin, libopenmpi-dev)"]
    fn a_run_that_lost_a_process_resumes_with_fewer() {
        let desk = Desk::new();
        let mut command = mpirun(&desk, 4, &desk.tiny(LONG));
        let errors = desk.path("errors");
        command.stderr(fs::File::create(&errors).unwrap());
        let mut mpirun = command.spawn().unwrap();
        let newest = || {
            let run = names(&desk.path("runs")).first().map(|run| desk.path("runs").join(run));
            run.and_then(|run| steps(&run).last().copied()).unwrap_or(0)
        };
        wait_until("checkpoints", || newest() > 10);
        let kill = format!("kill -KILL {}", process_of(mpirun.id(), 2));
        assert!(Command::new("sh").args(["-c", &kill]).status().unwrap().success());
        assert!(!mpirun.wait().unwrap().success());
        assert!(newest() < 120, "it was done before it was killed");
        let errors = fs::read_to_string(errors).unwrap();
        assert_eq!(errors.matches("error: process").count(), 1, "{errors}");
        for part in ["ended; the checkpoint of update", "intact. Resume with: overtone resume run="]
        {
            assert!(errors.contains(part), "{errors}");
        }

        let resumed = run(&desk, 2, "resume").stdout;
        assert!(resumed.contains("resuming after update"), "{resumed}");
        assert_eq!(resumed.matches("2 processes").count(), 1, "one speaks: {resumed}");
        desk.succeeds(&desk.tiny(&format!("{LONG} runs=alone")));
        let shared = desk.only_run("runs");
        let same = weights(&desk.only_run("alone")) == weights(&shared);
        assert!(same, "the weights depend on the processes");
        let notes = fs::read_to_string(shared.join("provenance.jsonl")).unwrap();
        let count = |line: &str| {
            let note: serde_json::Value = serde_json::from_str(line).unwrap();
            note["processes"].as_u64().unwrap()
        };
        assert_eq!(notes.lines().map(count).collect::<Vec<_>>(), [4, 2]);
    }

    /// An error of process 0 ends all processes, and is printed once.
    #[test]
    #[ignore = "needs mpirun (Debian: openmpi-bin, libopenmpi-dev)"]
    fn an_error_is_printed_once() {
        let desk = Desk::new();
        for (line, part) in [
            (&*desk.tiny(""), "train.micro_batches=1: 4 processes need a multiple of 4 parts"),
            (
                &*desk.tiny("train.micro_batches=2"),
                "train.micro_batches=2: 4 processes need a multiple of 4 parts",
            ),
            ("resume", "runs does not contain a run"),
            ("train env=hoper", "hoper"),
        ] {
            let mut command = mpirun(&desk, 4, line);
            let said = said(command.output().unwrap());
            assert_eq!(said.code, Some(1), "{said:?}");
            assert_eq!(said.stderr.matches("error: ").count(), 1, "{said:?}");
            assert!(said.stderr.contains(part), "{said:?}");
        }
        assert!(names(&desk.path("runs")).is_empty());
    }
}
