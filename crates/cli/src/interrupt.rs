//! Ctrl-C.

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

/// Exit code of work that was stopped before its end: what shells give for Ctrl-C.
pub const EXIT_CODE: u8 = 130;

/// A flag that the first Ctrl-C (or SIGTERM) sets, for work that can end well; the second
/// one ends the program. Where a host runs the command, the flag is the host's.
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
            warn!("\nending what is under way (again to quit at once)");
        }
    })
    .context("cannot listen for Ctrl-C")?;
    // Only now is there somebody who sets it.
    Ok(known.insert(flag).clone())
}

/// An error where `stop` is set; `left` says what is left of the work.
///
/// # Errors
/// [`Stopped`].
pub fn check(stop: &AtomicBool, left: &'static str) -> Result<(), Stopped> {
    match stop.load(Ordering::Relaxed) {
        true => Err(Stopped(left)),
        false => Ok(()),
    }
}

/// Work other than playing that was asked to end, and what is left of it.
#[derive(Debug)]
pub struct Stopped(pub &'static str);

impl fmt::Display for Stopped {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "stopped; {}", self.0)
    }
}

impl Error for Stopped {}

/// Whether this is what work says that was asked to end.
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
        // A handler of the process's own, as a host has one.
        ctrlc::set_handler(|| {}).unwrap();
        for _ in 0..2 {
            let error = listen().unwrap_err().to_string();
            assert_eq!(error, "cannot listen for Ctrl-C");
        }
    }
}
