//! A program inside of which commands run, such as Python: it may stop them, and is told what
//! they say and how training goes.

use std::{
    cell::RefCell,
    path::{Path, PathBuf},
    rc::Rc,
    sync::{Arc, atomic::AtomicBool},
};

use anyhow::Context;
use clap::Parser;
use overtone_train::StepReport;

use crate::Cli;

/// What a host is told while a command runs.
#[derive(Clone, Debug, PartialEq)]
pub enum Event {
    /// A line that would be printed.
    Said(String),
    /// Training begins, or goes on, in this run's folder.
    Began(PathBuf),
    /// So many updates are done: after every `train.log_every` of them.
    Logged(StepReport),
}

/// What a host lends to a command.
struct Host {
    stop: Arc<AtomicBool>,
    told: Rc<RefCell<dyn FnMut(Event)>>,
}

thread_local! {
    static HOST: RefCell<Option<Host>> = const { RefCell::new(None) };
}

/// Does what `words` ask, those after the program's name, on this thread; gives the exit code.
/// When `stop` is set the command ends as after Ctrl-C; no handler of signals is installed.
///
/// # Errors
/// When the command fails, and when the words ask for nothing that there is.
pub fn run(
    words: &[String],
    stop: Arc<AtomicBool>,
    mut told: impl FnMut(Event) + 'static,
) -> anyhow::Result<u8> {
    let words = std::iter::once("overtone").chain(words.iter().map(String::as_str));
    let cli = match Cli::try_parse_from(words) {
        Ok(cli) => cli,
        // What was asked for, and no error: help, or the version.
        Err(asked) if asked.exit_code() == 0 => {
            told(Event::Said(asked.to_string().trim_end().to_owned()));
            return Ok(0);
        }
        Err(refused) => return Err(refused.into()),
    };
    let told = Rc::new(RefCell::new(told));
    HOST.replace(Some(Host { stop, told: told.clone() }));
    let said = move |line| (told.borrow_mut())(Event::Said(line));
    let ended = overtone_console::host::with_reader(said, || crate::run(cli.command));
    HOST.take();
    ended
}

/// The flag that stops this thread's command, where a host lends one.
pub(crate) fn stop() -> Option<Arc<AtomicBool>> {
    HOST.with_borrow(|host| host.as_ref().map(|host| host.stop.clone()))
}

/// Tells the host of training, where there is one.
pub(crate) fn began(run: &Path) {
    tell(|| Event::Began(run.to_owned()));
}

/// Tells the host of updates, where there is one.
pub(crate) fn logged(report: &StepReport) {
    tell(|| Event::Logged(report.clone()));
}

/// The program, to be started again with other words; a host names it in `OVERTONE_PROGRAM`.
///
/// # Errors
/// When the program cannot find itself.
pub(crate) fn program() -> anyhow::Result<PathBuf> {
    match std::env::var_os("OVERTONE_PROGRAM").filter(|program| !program.is_empty()) {
        Some(program) => Ok(PathBuf::from(program)),
        None => std::env::current_exe().context("the program cannot find itself"),
    }
}

fn tell(event: impl FnOnce() -> Event) {
    if let Some(told) = HOST.with_borrow(|host| host.as_ref().map(|host| host.told.clone())) {
        (told.borrow_mut())(event());
    }
}
