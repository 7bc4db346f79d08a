//! The program inside of Python. Commands run on their own thread, while Python's thread passes on
//! their output, handles Ctrl-C and lets other Python threads run.

use std::{
    ffi::OsString,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
        mpsc::{self, RecvTimeoutError},
    },
    thread,
    time::Duration,
};

use overtone::Event;
use overtone_console::errors;
use pyo3::{
    create_exception,
    exceptions::{PyException, PyUserWarning},
    prelude::*,
    types::PyDict,
};

create_exception!(
    overtone,
    OvertoneError,
    PyException,
    "An error of Overtone, with its reason and what to do."
);

create_exception!(
    overtone,
    OvertoneWarning,
    PyUserWarning,
    "A warning of Overtone, about data that may mean something else than it says, or about a call."
);

/// Stack size of a command's thread, as in a process.
const STACK: usize = 16 << 20;

/// Interval of checks for Ctrl-C in Python.
const WAIT: Duration = Duration::from_millis(50);

/// Runs the program as a shell does; returns the exit code. `words` start with the program's name.
#[pyfunction]
pub fn main(py: Python<'_>, words: Vec<OsString>) -> u8 {
    py.detach(|| overtone::main(&words))
}

/// Runs a command; returns the exit code, which is 130 after Ctrl-C. `words` do not contain the
/// program's name.
///
/// `on_event(kind, value)` is called on the calling thread for each line (`"line"`, text), for a
/// run's directory (`"run"`, path) and for training progress (`"logged"`, a dict). An exception
/// of `on_event` ends the command as Ctrl-C does, and is raised again afterwards; before that,
/// `"stopped"` says what the command left. A second Ctrl-C is raised at once, and the command
/// continues unobserved.
#[pyfunction]
pub fn run(py: Python<'_>, words: Vec<String>, on_event: Bound<'_, PyAny>) -> PyResult<u8> {
    let stop = Arc::new(AtomicBool::new(false));
    let (events, mut received) = mpsc::channel();
    let work = {
        let stop = stop.clone();
        let send = move |event| {
            // The receiver is gone after an error in Python.
            let _ = events.send(event);
        };
        move || overtone::run(&words, stop, send)
    };
    let worker = thread::Builder::new().name("overtone".into()).stack_size(STACK).spawn(work)?;
    let mut raised: Option<PyErr> = None;
    let mut last_line = String::new();
    loop {
        let event;
        (event, received) = py.detach(move || (received.recv_timeout(WAIT), received));
        let answer = match event {
            Ok(event) if raised.is_none() => pass_on(&on_event, event),
            Ok(Event::Line(line)) => {
                last_line = line;
                Ok(())
            }
            Ok(_) | Err(RecvTimeoutError::Timeout) => Ok(()),
            Err(RecvTimeoutError::Disconnected) => break,
        };
        if let Err(error) = answer.and_then(|()| py.check_signals()) {
            // As in a shell, a second Ctrl-C does not wait, because not every command checks the
            // flag.
            if raised.is_some() {
                return Err(error);
            }
            stop.store(true, Ordering::Relaxed);
            raised = Some(error);
        }
    }
    let ended = py.detach(|| worker.join());
    if let Some(error) = raised {
        let left = match ended {
            Ok(Ok(_)) => last_line,
            Ok(Err(stopped)) => errors::message(&stopped),
            Err(_) => String::new(),
        };
        // Its exception must not replace the first one.
        let _ = on_event.call1(("stopped", left));
        return Err(error);
    }
    match ended {
        Ok(Ok(code)) => Ok(code),
        Ok(Err(error)) => Err(OvertoneError::new_err(errors::message(&error))),
        Err(_) => Err(OvertoneError::new_err(
            "the command panicked, which is a bug of Overtone. Please report it",
        )),
    }
}

/// Checks settings of `train`, each `key=value`, without data.
#[pyfunction]
pub fn check_settings(words: Vec<String>) -> PyResult<()> {
    let checked = overtone_settings::RunConfig::check_words(&words);
    checked.map_err(|error| OvertoneError::new_err(errors::message(&error)))
}

fn pass_on(on_event: &Bound<'_, PyAny>, event: Event) -> PyResult<()> {
    match event {
        Event::Line(line) => on_event.call1(("line", line)),
        Event::Run(run) => on_event.call1(("run", run)),
        Event::Logged(report) => {
            let row = PyDict::new(on_event.py());
            row.set_item("step", report.step)?;
            row.set_item("updates", report.n_updates)?;
            row.set_item("loss", report.loss)?;
            for (name, figure) in report.figures {
                row.set_item(name, figure)?;
            }
            row.set_item("learning_rate", report.learning_rate)?;
            row.set_item("grad_norm", report.grad_norm)?;
            row.set_item("timesteps_per_s", report.timesteps_per_s)?;
            row.set_item("seconds", report.seconds)?;
            on_event.call1(("logged", row))
        }
    }
    .map(drop)
}
