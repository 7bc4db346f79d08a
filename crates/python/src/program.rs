//! The program inside of Python: its commands run on a thread of their own, while Python's
//! thread tells what they say, takes Ctrl-C and lets other Python threads work.

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

use overtone::host::{self, Event};
use overtone_console::errors;
use pyo3::{create_exception, exceptions::PyException, prelude::*, types::PyDict};

create_exception!(overtone, OvertoneError, PyException, "What could not be done, and why.");

/// Memory for a command's calls: as a process has.
const STACK: usize = 16 << 20;

/// How often Python is asked whether Ctrl-C was pressed.
const WAIT: Duration = Duration::from_millis(50);

/// The program as a shell runs it; gives the exit code. `words` begin with the program's name.
#[pyfunction]
pub fn main(py: Python<'_>, words: Vec<OsString>) -> u8 {
    py.detach(|| overtone::main(&words))
}

/// Does what `words` ask, those after the program's name; gives the exit code, which is 130
/// after Ctrl-C.
///
/// `told(kind, value)` is called for each line (`"said"`, text), for a run's folder (`"began"`,
/// path) and for progress of training (`"logged"`, a dict), on the calling thread. What it raises
/// ends the command as Ctrl-C does, and is raised again when it has ended. A second Ctrl-C is raised
/// at once, and the command goes on without anyone listening.
#[pyfunction]
pub fn run(py: Python<'_>, words: Vec<String>, told: Bound<'_, PyAny>) -> PyResult<u8> {
    let stop = Arc::new(AtomicBool::new(false));
    let (events, mut received) = mpsc::channel();
    let work = {
        let stop = stop.clone();
        let tell = move |event| {
            // Nobody listens any more when Python's side has failed.
            let _ = events.send(event);
        };
        move || host::run(&words, stop, tell)
    };
    let worker = thread::Builder::new().name("overtone".into()).stack_size(STACK).spawn(work)?;
    let mut raised: Option<PyErr> = None;
    loop {
        let event;
        (event, received) = py.detach(move || (received.recv_timeout(WAIT), received));
        let answer = match event {
            Ok(event) if raised.is_none() => tell(&told, event),
            Ok(_) | Err(RecvTimeoutError::Timeout) => Ok(()),
            Err(RecvTimeoutError::Disconnected) => break,
        };
        if let Err(error) = answer.and_then(|()| py.check_signals()) {
            // As in a shell, a second Ctrl-C waits for nothing: not every command looks at the flag.
            if raised.is_some() {
                return Err(error);
            }
            stop.store(true, Ordering::Relaxed);
            raised = Some(error);
        }
    }
    let ended = py.detach(|| worker.join());
    if let Some(error) = raised {
        return Err(error);
    }
    match ended {
        Ok(Ok(code)) => Ok(code),
        Ok(Err(error)) => Err(OvertoneError::new_err(errors::message(&error))),
        Err(_) => Err(OvertoneError::new_err("the command ended by a panic: a bug of Overtone")),
    }
}

/// Checks settings of `train`, each `key=value`, before there is data to train on.
#[pyfunction]
pub fn check_settings(words: Vec<String>) -> PyResult<()> {
    let checked = overtone::RunConfig::check_words(&words);
    checked.map_err(|error| OvertoneError::new_err(errors::message(&error)))
}

fn tell(told: &Bound<'_, PyAny>, event: Event) -> PyResult<()> {
    match event {
        Event::Said(line) => told.call1(("said", line)),
        Event::Began(run) => told.call1(("began", run)),
        Event::Logged(report) => {
            let row = PyDict::new(told.py());
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
            told.call1(("logged", row))
        }
    }
    .map(drop)
}
