//! Ctrl-C: the stop flag, and the error of interrupted work.

use std::{
    error::Error,
    fmt,
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicBool, Ordering},
    },
};

use anyhow::{Context, Result};
use overtone_eval::RolloutError;

use crate::host;

/// Exit code of interrupted work, as shells have it for Ctrl-C.
pub const EXIT_CODE: u8 = 130;

/// A flag that the first Ctrl-C (or SIGTERM) sets, so that the work can end cleanly. The second one
/// ends the program. If a host runs the command, the flag is the host's.
pub fn listen() -> Result<Arc<AtomicBool>> {
    if let Some(stop) = host::stop() {
        return Ok(stop);
    }
    static FLAG: Mutex<Option<Arc<AtomicBool>>> = Mutex::new(None);
    let mut known = FLAG.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(flag) = &*known {
        return Ok(flag.clone());
    }
    let flag = Arc::<AtomicBool>::default();
    let set = flag.clone();
    ctrlc::set_handler(move || {
        if set.swap(true, Ordering::Relaxed) {
            std::process::exit(EXIT_CODE.into());
        }
        if !overtone_console::host::is_quiet() {
            warn!("\nfinishing the current step (press again to quit at once)");
        }
    })
    .context("cannot listen for Ctrl-C")?;
    // Kept only after the handler that sets it is installed.
    Ok(known.insert(flag).clone())
}

/// An error if `stop` is set; `left` describes the remains of the work.
///
/// # Errors
/// [`Stopped`].
pub fn check(stop: &AtomicBool, left: &'static str) -> Result<(), Stopped> {
    match stop.load(Ordering::Relaxed) {
        true => Err(Stopped(left)),
        false => Ok(()),
    }
}

/// Interrupted work other than rollouts, with the remains of it.
#[derive(Debug)]
pub struct Stopped(pub &'static str);

impl fmt::Display for Stopped {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "stopped; {}", self.0)
    }
}

impl Error for Stopped {}

/// Whether this is the error of interrupted work.
pub fn is_stop(error: &anyhow::Error) -> bool {
    error.chain().any(|cause| {
        cause.is::<Stopped>() || matches!(cause.downcast_ref(), Some(RolloutError::Stopped { .. }))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_cannot_listen_is_told_each_time() {
        // The process's own handler, as in a host.
        ctrlc::set_handler(|| {}).unwrap();
        for _ in 0..2 {
            let error = listen().unwrap_err().to_string();
            assert_eq!(error, "cannot listen for Ctrl-C");
        }
    }
}
