//! The task of an environment with known spaces.

use overtone_core::protocol::ReturnUnits;
use overtone_core::{ActionSpace, ObservationSpace, Simulation, Targets, Task};

use crate::scores::reference;
use crate::{GymnasiumSimulation, SUITE, TaskName};

/// The task `name`. Its episodes are truncated after `max_steps` actions, if set.
pub fn task_of(
    name: &TaskName,
    observations: ObservationSpace,
    actions: ActionSpace,
    max_steps: Option<u32>,
) -> Task {
    let simulation = GymnasiumSimulation { max_steps: max_steps.unwrap_or(0) };
    Task {
        suite: SUITE.into(),
        name: name.to_string(),
        title: name.to_string(),
        observations,
        actions,
        horizon: simulation.horizon(),
        return_units: ReturnUnits::Raw,
        reference: reference(name),
        targets: Targets::default(),
        simulation: Simulation::of(&simulation),
    }
}
