//! Ctrl-C.

use std::{
    error::Error,
    fmt,
    sync::{
        Arc, OnceLock,
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
    static FLAG: OnceLock<Arc<AtomicBool>> = OnceLock::new();
    if let Some(flag) = FLAG.get() {
        return Ok(flag.clone());
    }
    let flag = FLAG.get_or_init(Arc::default).clone();
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
    Ok(flag)
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
