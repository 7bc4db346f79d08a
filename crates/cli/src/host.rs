//! A host: a program that runs commands inside of itself, such as Python. It may stop them, and
//! receives their output and training progress.

use std::{
    cell::RefCell,
    path::{Path, PathBuf},
    rc::Rc,
    sync::{Arc, atomic::AtomicBool},
};

use anyhow::Context;
use overtone_train::StepReport;

/// An event of a running command, for the host.
#[derive(Clone, Debug, PartialEq)]
pub enum Event {
    /// A line of output.
    Line(String),
    /// The directory of the run that is trained, or that `evaluate choose` keeps.
    Run(PathBuf),
    /// A report every `train.log_every` updates.
    Logged(StepReport),
}

/// A host's flag and callback for a command.
struct Host {
    stop: Arc<AtomicBool>,
    on_event: Rc<RefCell<dyn FnMut(Event)>>,
}

thread_local! {
    static HOST: RefCell<Option<Host>> = const { RefCell::new(None) };
}

/// Runs `work` on this thread for a host, which gets its events and may `stop` it.
pub(crate) fn with<T>(
    stop: Arc<AtomicBool>,
    on_event: impl FnMut(Event) + 'static,
    work: impl FnOnce() -> T,
) -> T {
    let on_event = Rc::new(RefCell::new(on_event));
    HOST.replace(Some(Host { stop, on_event: on_event.clone() }));
    let on_line = move |line| (on_event.borrow_mut())(Event::Line(line));
    let ended = overtone_console::host::with_reader(on_line, work);
    HOST.take();
    ended
}

/// The host's flag that stops this thread's command, if there is a host.
pub(crate) fn stop() -> Option<Arc<AtomicBool>> {
    HOST.with_borrow(|host| host.as_ref().map(|host| host.stop.clone()))
}

/// Sends the directory of the trained or chosen run to the host, if there is one.
pub(crate) fn run_is(run: &Path) {
    send(|| Event::Run(run.to_owned()));
}

/// Sends a report of updates to the host, if there is one.
pub(crate) fn logged(report: &StepReport) {
    send(|| Event::Logged(report.clone()));
}

/// The path of the program, for starting it with other words; a host sets it in `OVERTONE_PROGRAM`.
///
/// # Errors
/// When the path is unknown.
pub(crate) fn program() -> anyhow::Result<PathBuf> {
    match std::env::var_os("OVERTONE_PROGRAM").filter(|program| !program.is_empty()) {
        Some(program) => Ok(PathBuf::from(program)),
        None => std::env::current_exe()
            .context("cannot find the program's own path. Set it in OVERTONE_PROGRAM"),
    }
}

fn send(event: impl FnOnce() -> Event) {
    if let Some(on_event) = HOST.with_borrow(|host| host.as_ref().map(|host| host.on_event.clone()))
    {
        (on_event.borrow_mut())(event());
    }
}
