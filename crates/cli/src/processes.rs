//! The processes that `mpirun` starts of one command: process 0 leads, the others follow it
//! silently and end with its exit code.

#[cfg(feature = "mpi")]
mod mpi;

use anyhow::{Result, bail};
#[cfg(feature = "mpi")]
use overtone_model::device;
use overtone_model::device::Chosen;
#[cfg(not(feature = "mpi"))]
use overtone_train::{Alone, Processes};

/// How many processes were started together, as who started them says: Open MPI, MPICH and
/// relatives, or `srun` with PMIx.
pub fn launched() -> usize {
    let number = |name: &str| std::env::var(name).ok()?.parse::<usize>().ok();
    let mpi = ["OMPI_COMM_WORLD_SIZE", "PMI_SIZE", "MV2_COMM_WORLD_SIZE"].into_iter();
    let slurm = || number("PMIX_RANK").and_then(|_| number("SLURM_STEP_NUM_TASKS"));
    mpi.filter_map(number).next().or_else(slurm).unwrap_or(1).max(1)
}

/// For commands that several processes would only do several times.
///
/// # Errors
/// When several were started.
pub fn refuse_copies() -> Result<()> {
    match launched() {
        1 => Ok(()),
        n => bail!(
            "{n} processes of this command were started together, and only `train` and `resume` \
             share their work; start one"
        ),
    }
}

/// Whether batches of this many parts can be shared among the processes there are.
///
/// # Errors
/// When they cannot.
pub fn check_parts(parts: usize) -> Result<()> {
    let n = launched();
    if !n.is_power_of_two() {
        bail!("{n} processes cannot share a batch; start 2, 4, 8 or another power of two");
    }
    if !parts.is_multiple_of(n) {
        bail!(
            "train.micro_batches={parts}: {n} processes share a batch in a multiple of {n} parts; \
             it is a part of a run's settings, so a run begun otherwise goes on with fewer processes"
        );
    }
    Ok(())
}

/// Does `work` with all processes that were started together; gives process 0's exit code.
///
/// # Errors
/// That of `work`, and when processes cannot be joined.
#[cfg(not(feature = "mpi"))]
pub fn joined(work: impl FnOnce(&dyn Processes) -> Result<u8>) -> Result<u8> {
    match launched() {
        1 => work(&Alone),
        n => bail!(
            "{n} processes were started together, and this program was built without the feature \
             `mpi`, so each would do the same; build it with `just features=overtone/mpi build`, \
             or start one"
        ),
    }
}

#[cfg(feature = "mpi")]
pub use mpi::joined;

/// The device that a process which follows takes where process 0 has `name`: of several GPUs of
/// a machine each process takes another.
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

/// Where `n` processes compute, for people.
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
