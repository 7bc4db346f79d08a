//! Tasks as suites have them, as far as data has to do with them; and recordings inspected.

use std::path::Path;

use overtone_core::protocol::ReturnUnits;
use overtone_core::{ActionSpace, ObservationSpace, Simulation, Targets, Task};
use overtone_data::check::{ColumnsInspection, LogInspection};
use overtone_data::{DataError, Expected, Inspection, check};

/// A game with `n_actions` actions.
pub fn game(name: &str, title: &str, n_actions: usize) -> Task {
    Task {
        suite: "ale".into(),
        name: name.into(),
        title: title.into(),
        observations: ObservationSpace::Pixels { shape: vec![4, 84, 84] },
        actions: ActionSpace::Discrete { names: vec!["an action".into(); n_actions] },
        horizon: Some(27_000),
        return_units: ReturnUnits::Clipped,
        reference: None,
        targets: Targets::default(),
        simulation: Simulation::default(),
    }
}

pub fn seaquest() -> Task {
    game("seaquest", "Seaquest", 18)
}

pub fn gravitar() -> Task {
    game("gravitar", "Gravitar", 18)
}

/// A robot of these numbers of observations and actions.
pub fn robot(name: &str, (wide, narrow): (usize, usize)) -> Task {
    Task {
        suite: "mujoco".into(),
        observations: ObservationSpace::Vectors { width: wide },
        actions: ActionSpace::unit(narrow),
        horizon: Some(1000),
        return_units: ReturnUnits::Raw,
        ..game(name, name, 0)
    }
}

pub fn hopper() -> Task {
    robot("hopper", (11, 3))
}

/// The contents of a log.
pub fn inspect_log(path: &Path) -> Result<LogInspection, DataError> {
    match check(path, &Expected::default())?.inspection? {
        Inspection::Log(inspection) => Ok(*inspection),
        other => panic!("{other:?}"),
    }
}

/// The sentences of the findings about a recording.
pub fn oddities(path: &Path) -> Vec<String> {
    let report = check(path, &Expected::default()).unwrap().report;
    report.findings.iter().map(ToString::to_string).collect()
}

/// The contents of a recording in memory.
pub fn inspect_columns(path: &Path) -> Result<ColumnsInspection, DataError> {
    match check(path, &Expected::default())?.inspection? {
        Inspection::Columns(inspection) => Ok(*inspection),
        other => panic!("{other:?}"),
    }
}
