//! MPI: bytes between the processes that `mpirun` started.
//!
//! Three functions transfer all data, and none computes. The calls are non-blocking and this module
//! waits for them, because MPI's own waiting keeps a core busy and never ends when a process has
//! died.

use std::{
    cell::Cell,
    ffi::{c_int, c_void},
    fs, mem,
    sync::{
        Arc, OnceLock,
        atomic::{AtomicBool, Ordering},
    },
    thread,
    time::{Duration, Instant},
};

use anyhow::{Context, Result, bail};
use overtone_console::{errors, host::silence};
use overtone_train::{LostProcess, Processes, SingleProcess, TrainError};

use super::launched;
use crate::{command::provenance, interrupt};

// Of `mpi.c`, which says what they do. They return MPI's error code; 0 is success.
unsafe extern "C" {
    fn overtone_mpi_start(rank: *mut c_int, count: *mut c_int) -> c_int;
    fn overtone_mpi_all_gather(sent: *const c_void, received: *mut c_void, n: c_int) -> c_int;
    fn overtone_mpi_all_to_all(sent: *const c_void, received: *mut c_void, n: c_int) -> c_int;
    fn overtone_mpi_test(is_done: *mut c_int) -> c_int;
    fn overtone_mpi_end() -> c_int;
}

/// Time of a wait that only yields the core; a longer wait sleeps.
const AWAKE: Duration = Duration::from_millis(20);

/// Interval of checks whether the processes of this machine are alive.
const CHECK_INTERVAL: Duration = Duration::from_millis(100);

/// Time that an interrupted process waits for another machine's process, which may have ended.
const PATIENCE: Duration = Duration::from_secs(30);

/// Runs `work` with all processes that were started together; returns the exit code on process 0
/// for the launcher, and 0 on the others.
///
/// # Errors
/// The error of `work`, or when the processes cannot connect.
pub fn joined(work: impl FnOnce(&dyn Processes) -> Result<u8>) -> Result<u8> {
    if launched() == 1 {
        return work(&SingleProcess);
    }
    let mpi = Mpi::start()?;
    let ended = work(&mpi);
    let is_elsewhere = ended
        .as_ref()
        .is_err_and(|error| matches!(error.downcast_ref(), Some(TrainError::Elsewhere { .. })));
    let own = [*ended.as_ref().unwrap_or(&1), u8::from(is_elsewhere)];
    let all = match mpi.is_lost.get() {
        true => Err(None),
        false => mpi.all_gather(&own).map_err(Some),
    };
    let all = match all {
        Ok(all) => all,
        // MPI cannot finalize without the lost process.
        Err(lost) => {
            if mpi.speaks() {
                let error = ended.err().or(lost.map(|lost| TrainError::from(lost).into()));
                error.iter().for_each(|error| warn!("error: {}", errors::sentence(error)));
            }
            // The others must see which process ended first, and that one process reports it.
            thread::sleep(CHECK_INTERVAL * 6);
            std::process::exit(1);
        }
    };
    // SAFETY: the last call of MPI, on the thread that began it; nothing is under way.
    unsafe { overtone_mpi_end() };
    if mpi.rank == 0 {
        return ended;
    }
    if let (Err(error), [_, 1, ..], false) = (&ended, &all[..], is_elsewhere) {
        warn!("error: process {}: {}", mpi.rank, errors::sentence(error));
    }
    // Process 0 has the exit code. `mpirun` ends all processes as soon as one fails, before process
    // 0 could print its error.
    Ok(0)
}

/// The processes that `mpirun` started.
struct Mpi {
    rank: usize,
    n: usize,
    /// Rank and process id of the other processes of this machine, whose end is visible.
    watched: Vec<(usize, u32)>,
    machine: String,
    /// Set by Ctrl-C and SIGTERM.
    stop: Arc<AtomicBool>,
    is_lost: Cell<bool>,
}

static PLACE_HERE: OnceLock<usize> = OnceLock::new();

/// The number of processes of lower rank on this machine.
pub fn place_here() -> usize {
    PLACE_HERE.get().copied().unwrap_or(0)
}

/// Bytes of a process's card: machine, process id, allowed cores.
const CARD: usize = 512;

impl Mpi {
    /// Connects the processes, and divides the cores of each machine among its processes.
    fn start() -> Result<Self> {
        let stop = interrupt::listen()?;
        let (mut rank, mut n) = (0, 0);
        // SAFETY: the first call of MPI in this process; the pointers are to the outputs.
        let code = unsafe { overtone_mpi_start(&raw mut rank, &raw mut n) };
        if code != 0 || n < 1 {
            bail!("MPI does not start. Use the MPI library that this program was built with");
        }
        let (rank, n) = (rank as usize, n as usize);
        if rank > 0 {
            silence();
        }
        if n != launched() {
            bail!(
                "{} processes were started, but MPI has {n}. Use the `mpirun` of the MPI library \
                 that this program was built with",
                launched()
            );
        }
        let (watched, is_lost) = (Vec::new(), Cell::new(false));
        let mut mpi = Self { rank, n, watched, machine: String::new(), stop, is_lost };
        mpi.introduce().context("connecting the processes that were started together")?;
        Ok(mpi)
    }

    fn introduce(&mut self) -> Result<()> {
        let machine = provenance::host().unwrap_or_default();
        let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
        let cores = status.lines().find(|line| line.starts_with("Cpus_allowed_list"));
        let words = [&*machine, &std::process::id().to_string(), cores.unwrap_or_default()];
        let mut own = words.join("\n").into_bytes();
        own.resize(CARD, 0);
        let cards = self.all_gather(&own).map_err(TrainError::from)?;
        let cards: Vec<Vec<&[u8]>> = cards
            .chunks_exact(CARD)
            .map(|card| card.splitn(3, |&b| b == b'\n').collect())
            .collect();
        let mine = &cards[self.rank];
        for (rank, card) in cards.iter().enumerate() {
            let pid = std::str::from_utf8(card[1]).ok().and_then(|pid| pid.parse().ok());
            if let (true, Some(pid)) = (rank != self.rank && card[0] == mine[0], pid)
                && lives(pid)
            {
                self.watched.push((rank, pid));
            }
        }
        self.machine = machine;
        let _ = PLACE_HERE.set(cards[..self.rank].iter().filter(|card| card[0] == mine[0]).count());
        // Processes that are bound to their own cores have them on their cards.
        let sharing = cards.iter().filter(|card| card[0] == mine[0] && card[2] == mine[2]).count();
        if std::env::var_os("RAYON_NUM_THREADS").is_none() {
            let cores = thread::available_parallelism().map_or(1, usize::from);
            let threads = (cores / sharing).max(1);
            rayon::ThreadPoolBuilder::new().num_threads(threads).build_global()?;
        }
        Ok(())
    }

    /// Whether this process reports a lost one: the living process of lowest rank does.
    fn speaks(&self) -> bool {
        let lives = |rank: usize| {
            self.watched.iter().find(|(other, _)| *other == rank).is_none_or(|&(_, pid)| lives(pid))
        };
        (0..self.rank).all(|rank| !lives(rank))
    }

    /// The processes of this machine that have ended, if any have.
    fn gone(&self) -> Option<LostProcess> {
        let gone = self.watched.iter().filter(|(_, pid)| !lives(*pid));
        let gone: Vec<String> = gone.map(|(rank, pid)| format!("{rank} (pid {pid})")).collect();
        let (n, machine) = (self.n, &self.machine);
        match &gone[..] {
            [] => None,
            [one] => Some(LostProcess(format!("process {one} of {n} on {machine} has ended"))),
            _ => Some(LostProcess(format!(
                "processes {} of {n} on {machine} have ended",
                gone.join(", ")
            ))),
        }
    }

    /// Starts an exchange that writes `n` bytes, and waits for it.
    fn exchange(
        &self,
        own: &[u8],
        n: usize,
        begin: impl FnOnce(*const c_void, *mut c_void) -> c_int,
    ) -> Result<Vec<u8>, LostProcess> {
        if n == 0 {
            // MPI rejects the address of an empty slice.
            return Ok(Vec::new());
        }
        // MPI uses both until the exchange has ended.
        let (own, mut received) = (own.to_vec(), vec![0; n]);
        let code = begin(own.as_ptr().cast(), received.as_mut_ptr().cast());
        let waited = if code == 0 { self.wait() } else { Err(failed(code)) };
        match waited {
            Ok(()) => Ok(received),
            Err(lost) => {
                self.is_lost.set(true);
                mem::forget((own, received));
                Err(lost)
            }
        }
    }

    fn wait(&self) -> Result<(), LostProcess> {
        let began = Instant::now();
        let (mut looked, mut interrupted_at) = (began, None);
        loop {
            let mut is_done = 0;
            // SAFETY: an exchange is under way, and its memory is kept.
            let code = unsafe { overtone_mpi_test(&raw mut is_done) };
            if code != 0 {
                return Err(failed(code));
            }
            if is_done != 0 {
                return Ok(());
            }
            let waited = began.elapsed();
            if waited < AWAKE {
                thread::yield_now();
                continue;
            }
            // A longer wait sleeps longer.
            thread::sleep(if waited < AWAKE * 50 { AWAKE / 200 } else { AWAKE / 4 });
            if looked.elapsed() < CHECK_INTERVAL {
                continue;
            }
            looked = Instant::now();
            if let Some(lost) = self.gone() {
                return Err(lost);
            }
            if self.watched.len() + 1 < self.n && self.stop.load(Ordering::Relaxed) {
                let since = *interrupted_at.get_or_insert(looked);
                if since.elapsed() > PATIENCE {
                    let seconds = PATIENCE.as_secs();
                    let what = format!(
                        "interrupted, but a process on another machine has not answered for \
                         {seconds} s"
                    );
                    return Err(LostProcess(what));
                }
            }
        }
    }
}

impl Processes for Mpi {
    fn rank(&self) -> usize {
        self.rank
    }

    fn count(&self) -> usize {
        self.n
    }

    fn all_gather(&self, own: &[u8]) -> Result<Vec<u8>, LostProcess> {
        let n = count(own.len())?;
        self.exchange(own, own.len() * self.n, |own, received| {
            // SAFETY: `own` has n bytes, `received` n for each process, and both are kept.
            unsafe { overtone_mpi_all_gather(own, received, n) }
        })
    }

    fn all_to_all(&self, parts: &[u8]) -> Result<Vec<u8>, LostProcess> {
        let n = count(parts.len() / self.n)?;
        self.exchange(parts, parts.len(), |parts, received| {
            // SAFETY: both have n bytes for each process, and both are kept.
            unsafe { overtone_mpi_all_to_all(parts, received, n) }
        })
    }
}

/// MPI counts in 32 bits.
fn count(bytes: usize) -> Result<c_int, LostProcess> {
    let count = c_int::try_from(bytes);
    count.map_err(|_| LostProcess(format!("MPI cannot transfer {bytes} bytes at once")))
}

fn failed(code: c_int) -> LostProcess {
    LostProcess(format!("MPI cannot reach the other processes (its error {code})"))
}

/// Whether a process of this machine is alive; a zombie is not.
fn lives(pid: u32) -> bool {
    let status = fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    // The name, in brackets, may contain anything.
    let state = status.rsplit_once(')').and_then(|(_, rest)| rest.trim_start().chars().next());
    state.is_some_and(|state| !matches!(state, 'Z' | 'X'))
}
