//! One process per variant, and its line protocol. When it is ready, it prints a number. For each
//! line it receives, it runs a round and prints the seconds per step. When its input ends, it
//! prints its peak memory in kilobytes (1024 bytes). `scripts/peers` uses the same protocol.

use std::{
    env, fs,
    io::{self, BufRead, BufReader, Write},
    process::{Child, ChildStdin, ChildStdout, Command, Stdio},
    time::Instant,
};

use crate::work::{Variant, Work};

const WARM_UP_STEPS: usize = 2;

/// A process that trains one variant.
pub struct Trainer {
    process: Child,
    requests: ChildStdin,
    answers: BufReader<ChildStdout>,
}

impl Trainer {
    /// Starts this program again and waits until it is ready.
    pub fn start(work: Work, variant: Variant, n_steps: usize) -> Self {
        let mut process = Command::new(env::current_exe().expect("this program has a path"))
            .args(["train", work.preset.key()])
            .args([&work.batch.to_string(), variant.key(), &n_steps.to_string()])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .expect("this program starts again");
        let requests = process.stdin.take().expect("piped");
        let answers = BufReader::new(process.stdout.take().expect("piped"));
        let mut trainer = Self { process, requests, answers };
        read_number(&mut trainer.answers);
        trainer
    }

    /// Seconds per step, averaged over a round.
    pub fn round(&mut self) -> f64 {
        writeln!(self.requests, "round").expect("the trainer lives");
        read_number(&mut self.answers)
    }

    /// Ends the process; its peak resident memory in MB (10⁶ bytes).
    pub fn finish(self) -> f64 {
        let Self { mut process, requests, mut answers } = self;
        drop(requests);
        let kilobytes = read_number(&mut answers);
        process.wait().expect("the trainer ends");
        kilobytes * 1024.0 / 1e6
    }
}

fn read_number(answers: &mut impl BufRead) -> f64 {
    let mut line = String::new();
    answers.read_line(&mut line).expect("the trainer answers");
    line.trim().parse().expect("the trainer answers with a number")
}

/// Takes `n_steps` steps for each line of the input, until it ends.
pub fn serve(mut step: impl FnMut(), n_steps: usize) {
    (0..WARM_UP_STEPS).for_each(|_| step());
    println!("0");
    for line in io::stdin().lines() {
        line.expect("requests are lines");
        let start = Instant::now();
        (0..n_steps).for_each(|_| step());
        println!("{}", start.elapsed().as_secs_f64() / n_steps as f64);
    }
    let status = fs::read_to_string("/proc/self/status").expect("Linux");
    let peak = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
    let peak = peak.and_then(|rest| rest.trim().strip_suffix(" kB")).expect("a peak");
    println!("{peak}");
}
