//! [`GymnasiumSimulation`]: settings of an environment apart from its keyword arguments.

use overtone_core::protocol::{Setting, other_length};
use overtone_core::{Simulation, SimulationError};

/// Settings of an environment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct GymnasiumSimulation {
    /// Number of actions after which an episode is truncated; 0: no limit.
    pub max_steps: u32,
}

/// Name of the setting.
const MAX_STEPS: &str = "max_episode_steps";

/// The settings, with the consequences of values that differ from the data.
pub const SETTINGS: &[Setting] = &[Setting::new(MAX_STEPS, other_length)];

impl GymnasiumSimulation {
    /// Reads the settings of a simulation.
    ///
    /// # Errors
    /// When a setting is missing, unknown or has another type.
    pub fn of(simulation: &Simulation) -> Result<Self, SimulationError> {
        let mut fields = simulation.fields();
        let read = Self { max_steps: fields.count(MAX_STEPS)? };
        fields.finish()?;
        Ok(read)
    }

    /// The settings as a simulation.
    pub fn to_simulation(self) -> Simulation {
        Simulation::new([(MAX_STEPS, self.max_steps.into())])
    }

    /// Maximum number of actions of an episode, if limited.
    pub fn horizon(self) -> Option<usize> {
        (self.max_steps > 0).then_some(self.max_steps as usize)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_setting_round_trips_and_is_described() {
        let limited = GymnasiumSimulation { max_steps: 500 };
        let simulation = limited.to_simulation();
        assert_eq!(GymnasiumSimulation::of(&simulation), Ok(limited));
        assert_eq!(simulation.iter().count(), SETTINGS.len());
        assert_eq!(limited.horizon(), Some(500));
        assert_eq!(GymnasiumSimulation { max_steps: 0 }.horizon(), None);
        let follows =
            |trained: u32, played: u32| (SETTINGS[0].consequence)(&trained.into(), &played.into());
        assert!(follows(500, 0).contains("may last longer"));
        assert!(follows(0, 500).contains("is cut sooner"));
        assert!(GymnasiumSimulation::of(&simulation.with("revision", "v4")).is_err());
    }
}
