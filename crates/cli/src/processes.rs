//! The processes that `mpirun` starts for one command. Process 0 leads; the others follow silently
//! and end with its exit code.

#[cfg(feature = "mpi")]
mod mpi;

use anyhow::{Result, bail};
#[cfg(feature = "mpi")]
use overtone_model::device;
use overtone_model::device::Chosen;
#[cfg(not(feature = "mpi"))]
use overtone_train::{Processes, SingleProcess};

/// The number of processes that were started together, by the variables of their launcher: Open
/// MPI, MPICH and relatives, or `srun` with PMIx.
pub fn launched() -> usize {
    let number = |name: &str| std::env::var(name).ok()?.parse::<usize>().ok();
    let mpi = ["OMPI_COMM_WORLD_SIZE", "PMI_SIZE", "MV2_COMM_WORLD_SIZE"].into_iter();
    let slurm = || number("PMIX_RANK").and_then(|_| number("SLURM_STEP_NUM_TASKS"));
    mpi.filter_map(number).next().or_else(slurm).unwrap_or(1).max(1)
}

/// Checks that a command without support for several processes runs in one.
///
/// # Errors
/// When several were started.
pub fn refuse_copies() -> Result<()> {
    match launched() {
        1 => Ok(()),
        n => bail!(
            "{n} processes of this command were started together, but only `train` and `resume` \
             share their work. Start one"
        ),
    }
}

/// Checks that batches of this many parts can be divided among the processes.
///
/// # Errors
/// When they cannot.
pub fn check_parts(parts: usize) -> Result<()> {
    let n = launched();
    if !n.is_power_of_two() {
        bail!("{n} processes cannot share a batch. Start 2, 4, 8 or another power of two");
    }
    if !parts.is_multiple_of(n) {
        bail!(
            "train.micro_batches={parts}: {n} processes need a multiple of {n} parts. Set it for a \
             new run, or resume this run with fewer processes"
        );
    }
    Ok(())
}

/// Runs `work` with all processes that were started together; returns the exit code of process 0.
///
/// # Errors
/// The error of `work`, or when the processes cannot connect.
#[cfg(not(feature = "mpi"))]
pub fn joined(work: impl FnOnce(&dyn Processes) -> Result<u8>) -> Result<u8> {
    match launched() {
        1 => work(&SingleProcess),
        n => bail!(
            "{n} processes were started together, but this program was built without the feature \
             `mpi`, so each would repeat the work. Build it with `just features=overtone/mpi \
             build`, or start one"
        ),
    }
}

#[cfg(feature = "mpi")]
pub use mpi::joined;

/// The device of another process when process 0 has `name`. Each process of a machine uses another
/// GPU, if there are several.
pub fn own_device(name: String) -> String {
    #[cfg(feature = "mpi")]
    {
        let own = format!("cuda:{}", mpi::place_here());
        if matches!(&*name, "auto" | "cuda") && device::choose(&own).is_ok() {
            return own;
        }
    }
    name
}

/// A description of the devices of `n` processes.
pub fn describe(n: usize, first: &Chosen) -> String {
    let threads = rayon::current_num_threads();
    match first.is_gpu {
        true => format!("{n} processes, the first on {}", first.name),
        false => format!(
            "cpu, {n} processes; threads of the first: {threads} (RAYON_NUM_THREADS sets it for \
             each)"
        ),
    }
}
