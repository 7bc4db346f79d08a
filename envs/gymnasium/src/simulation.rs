//! [`GymnasiumSimulation`]: settings of an environment apart from its keyword arguments.

use overtone_core::protocol::{Setting, other_length};
use serde::{Deserialize, Serialize};

/// Settings of an environment.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct GymnasiumSimulation {
    /// Number of actions after which an episode is truncated; 0: no limit.
    #[serde(rename = "max_episode_steps")]
    pub max_steps: u32,
}

/// The settings, with the consequences of values that differ from the data.
pub const SETTINGS: &[Setting] = &[Setting::new("max_episode_steps", other_length)];

impl GymnasiumSimulation {
    /// Maximum number of actions of an episode, if limited.
    pub fn horizon(self) -> Option<usize> {
        (self.max_steps > 0).then_some(self.max_steps as usize)
    }
}

#[cfg(test)]
mod tests {
    use overtone_core::Simulation;

    use super::*;

    #[test]
    fn every_setting_round_trips_and_is_described() {
        let limited = GymnasiumSimulation { max_steps: 500 };
        let simulation = Simulation::of(&limited);
        assert_eq!(simulation.read(), Ok(limited));
        assert_eq!(simulation.iter().count(), SETTINGS.len());
        assert_eq!(limited.horizon(), Some(500));
        assert_eq!(GymnasiumSimulation { max_steps: 0 }.horizon(), None);
        let follows =
            |trained: u32, played: u32| (SETTINGS[0].consequence)(&trained.into(), &played.into());
        assert!(follows(500, 0).contains("may last longer"));
        assert!(follows(0, 500).contains("is cut sooner"));
        assert!(simulation.with("revision", "v4").read::<GymnasiumSimulation>().is_err());
    }
}
