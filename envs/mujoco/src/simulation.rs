//! [`RobotSimulation`]: how a simulated robot is run.

use overtone_core::protocol::{Setting, other_length};
use overtone_core::{Simulation, SimulationError};

use crate::Robot;

/// Which revision of Gymnasium's locomotion environments.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Revision {
    /// `-v4`: the tasks as D4RL's `-v2` has them.
    V4,
    /// `-v5`: a fall is not rewarded for being upright, and Walker2d's feet are alike.
    V5,
}

impl Revision {
    /// Both with their names.
    const NAMES: [(&str, Self); 2] = [("v4", Self::V4), ("v5", Self::V5)];

    /// As it ends an environment's name: `v4`.
    pub fn name(self) -> &'static str {
        match self {
            Self::V4 => "v4",
            Self::V5 => "v5",
        }
    }

    /// The other one.
    pub fn other(self) -> Self {
        match self {
            Self::V4 => Self::V5,
            Self::V5 => Self::V4,
        }
    }
}

/// How a simulated robot is run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RobotSimulation {
    /// Which revision of the environment.
    pub revision: Revision,
    /// Steps after which an episode is truncated.
    pub max_steps: u32,
}

impl RobotSimulation {
    /// The nearest to how D4RL's locomotion data was recorded (Fu et al. 2020).
    pub fn d4rl() -> Self {
        Self { revision: Revision::V4, max_steps: 1000 }
    }

    /// Reads the settings of a simulation.
    ///
    /// # Errors
    /// When one is missing, unknown or of another type.
    pub fn of(simulation: &Simulation) -> Result<Self, SimulationError> {
        let mut fields = simulation.fields();
        let robots = Self {
            revision: fields.word("revision", &Revision::NAMES)?,
            max_steps: fields.count("max_steps")?,
        };
        fields.finish()?;
        Ok(robots)
    }

    /// The settings of a simulation.
    pub fn to_simulation(self) -> Simulation {
        Simulation::new([
            ("revision", self.revision.name().into()),
            ("max_steps", self.max_steps.into()),
        ])
    }
}

/// The settings, and what follows from playing with another value than that of the data.
pub const SETTINGS: &[Setting] = &[
    Setting {
        key: "revision",
        consequence: |_, _| {
            "the step of a fall earns no reward for being upright in v5, in v4 it does, and \
             Walker2d's feet have equal friction in v5 alone"
                .into()
        },
        idle: |task| {
            let differ = Robot::named(&task.name).is_ok_and(Robot::revisions_differ);
            (!differ).then_some("the revisions are the same in this task")
        },
    },
    Setting::new("max_steps", other_length),
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_setting_is_read_as_it_was_written_and_explained() {
        for revision in [Revision::V4, Revision::V5] {
            let robots = RobotSimulation { revision, max_steps: 10 };
            let simulation = robots.to_simulation();
            assert_eq!(RobotSimulation::of(&simulation), Ok(robots));
            assert_eq!(simulation.iter().count(), SETTINGS.len());
            assert!(SETTINGS.iter().all(|setting| simulation.get(setting.key).is_some()));
        }
        let odd = RobotSimulation::d4rl().to_simulation().with("revision", "v3");
        let error = RobotSimulation::of(&odd).unwrap_err();
        assert_eq!(error.to_string(), "simulation.revision=v3: expected v4 or v5");
    }
}
