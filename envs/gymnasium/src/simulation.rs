//! [`GymnasiumSimulation`]: how an environment is run beyond its keyword arguments.

use overtone_core::protocol::{Setting, other_length};
use overtone_core::{Simulation, SimulationError};

/// How an environment is run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct GymnasiumSimulation {
    /// Actions after which an episode is truncated; 0 for no limit.
    pub max_steps: u32,
}

/// Its name among the settings.
const MAX_STEPS: &str = "max_episode_steps";

/// The settings, and what follows from playing with another value than that of the data.
pub const SETTINGS: &[Setting] = &[Setting::new(MAX_STEPS, other_length)];

impl GymnasiumSimulation {
    /// Reads the settings of a simulation.
    ///
    /// # Errors
    /// When one is missing, unknown or of another type.
    pub fn of(simulation: &Simulation) -> Result<Self, SimulationError> {
        let mut fields = simulation.fields();
        let read = Self { max_steps: fields.count(MAX_STEPS)? };
        fields.finish()?;
        Ok(read)
    }

    /// The settings of a simulation.
    pub fn to_simulation(self) -> Simulation {
        Simulation::new([(MAX_STEPS, self.max_steps.into())])
    }

    /// Most actions of an episode, where there is a limit.
    pub fn horizon(self) -> Option<usize> {
        (self.max_steps > 0).then_some(self.max_steps as usize)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_setting_is_read_as_it_was_written_and_explained() {
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
