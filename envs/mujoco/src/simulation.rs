//! [`RobotSimulation`]: settings of a simulated robot.

use overtone_core::protocol::{Setting, other_length};
use serde::{Deserialize, Serialize};

use crate::Robot;

/// Revision of Gymnasium's locomotion environments.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Revision {
    /// `-v4`, which equals the tasks of D4RL's `-v2`.
    V4,
    /// `-v5`: the step of a fall has no reward for health, and Walker2d's feet have equal friction.
    V5,
}

impl Revision {
    /// Suffix of an environment's id, such as `v4`.
    pub fn name(self) -> &'static str {
        match self {
            Self::V4 => "v4",
            Self::V5 => "v5",
        }
    }

    /// The other revision.
    pub fn other(self) -> Self {
        match self {
            Self::V4 => Self::V5,
            Self::V5 => Self::V4,
        }
    }
}

/// Settings of a simulated robot.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RobotSimulation {
    /// The revision of the environment.
    pub revision: Revision,
    /// Number of steps after which an episode is truncated.
    pub max_steps: u32,
}

impl RobotSimulation {
    /// The settings closest to D4RL's locomotion data (Fu et al. 2020).
    pub fn d4rl() -> Self {
        Self { revision: Revision::V4, max_steps: 1000 }
    }
}

/// The settings, with the consequences of values that differ from the data.
pub const SETTINGS: &[Setting] = &[
    Setting {
        key: "revision",
        consequence: |_, _| {
            "the step of a fall includes the reward for health only in v4, and Walker2d's feet \
             have equal friction only in v5"
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
    use overtone_core::Simulation;

    use super::*;

    #[test]
    fn every_setting_round_trips_and_is_described() {
        for revision in [Revision::V4, Revision::V5] {
            let robots = RobotSimulation { revision, max_steps: 10 };
            let simulation = Simulation::of(&robots);
            assert_eq!(simulation.read(), Ok(robots));
            assert_eq!(simulation.iter().count(), SETTINGS.len());
            assert!(SETTINGS.iter().all(|setting| simulation.get(setting.key).is_some()));
        }
        let odd = Simulation::of(&RobotSimulation::d4rl()).with("revision", "v3");
        let error = odd.read::<RobotSimulation>().unwrap_err();
        let expected = "simulation.revision: unknown variant `v3`, expected `v4` or `v5`";
        assert_eq!(error.to_string(), expected);
    }
}
