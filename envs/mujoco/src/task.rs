//! The three tasks: their sizes, and their names in options and in Gymnasium.

use std::fmt;
use std::str::FromStr;

use overtone_core::protocol::Revision;

use crate::MujocoError;

/// A robot that is to move forward.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Task {
    /// Two legs and a long back, in a plane (Wawrzyński 2007). It cannot fall.
    HalfCheetah,
    /// One leg, in a plane (Erez, Tassa and Todorov 2011).
    Hopper,
    /// Two legs, in a plane.
    Walker2d,
}

impl Task {
    /// All of them.
    pub const ALL: [Self; 3] = [Self::HalfCheetah, Self::Hopper, Self::Walker2d];

    /// Its name for people, and in Gymnasium: `HalfCheetah`.
    pub fn name(self) -> &'static str {
        match self {
            Self::HalfCheetah => "HalfCheetah",
            Self::Hopper => "Hopper",
            Self::Walker2d => "Walker2d",
        }
    }

    /// Its name in options and in D4RL: `halfcheetah`.
    pub fn id(self) -> &'static str {
        match self {
            Self::HalfCheetah => "halfcheetah",
            Self::Hopper => "hopper",
            Self::Walker2d => "walker2d",
        }
    }

    /// Gymnasium's name of the environment: `HalfCheetah-v4`.
    pub fn gymnasium_id(self, revision: Revision) -> String {
        format!("{}-{}", self.name(), revision.name())
    }

    /// Whether `-v4` and `-v5` differ in this task: in observations, rewards, ends of episodes
    /// or physics. HalfCheetah's model is the same, and it cannot fall.
    pub fn revisions_differ(self) -> bool {
        self != Self::HalfCheetah
    }

    /// Numbers in an observation: positions but the first, then velocities.
    pub fn observation_width(self) -> usize {
        self.n_positions() - 1 + self.n_velocities()
    }

    /// Numbers in an action, one for each motor; each is a torque as a share of the motor's
    /// largest.
    pub fn action_width(self) -> usize {
        match self {
            Self::Hopper => 3,
            Self::HalfCheetah | Self::Walker2d => 6,
        }
    }

    /// Positions in the state: metres for the first two, then radians.
    pub fn n_positions(self) -> usize {
        match self {
            Self::Hopper => 6,
            Self::HalfCheetah | Self::Walker2d => 9,
        }
    }

    /// Velocities in the state, one for each position.
    pub fn n_velocities(self) -> usize {
        self.n_positions()
    }

    /// Steps of the simulator for each action.
    pub(crate) fn frame_skip(self) -> usize {
        match self {
            Self::HalfCheetah => 5,
            Self::Hopper | Self::Walker2d => 4,
        }
    }

    /// Seconds in one step of the simulator, as the model file says.
    pub(crate) fn timestep(self) -> f64 {
        match self {
            Self::HalfCheetah => 0.01,
            Self::Hopper | Self::Walker2d => 0.002,
        }
    }

    /// Seconds that an action lasts.
    pub fn seconds_per_action(self) -> f64 {
        self.frame_skip() as f64 * self.timestep()
    }

    /// Gymnasium's model file. Of Walker2d, `-v4` has feet of unequal friction.
    pub(crate) fn model_file(self, revision: Revision) -> &'static str {
        match (self, revision) {
            (Self::HalfCheetah, _) => "half_cheetah.xml",
            (Self::Hopper, _) => "hopper.xml",
            (Self::Walker2d, Revision::V4) => "walker2d.xml",
            (Self::Walker2d, Revision::V5) => "walker2d_v5.xml",
        }
    }
}

impl fmt::Display for Task {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// A name without case, spaces, `_` and `-`.
fn plain(name: &str) -> String {
    name.chars().filter(char::is_ascii_alphanumeric).collect::<String>().to_ascii_lowercase()
}

impl FromStr for Task {
    type Err = MujocoError;

    /// Reads a name in any case, with or without `_` and `-`.
    fn from_str(name: &str) -> Result<Self, MujocoError> {
        let asked = plain(name);
        let distance = |task: &Self| strsim::damerau_levenshtein(&asked, task.id());
        let nearest = Self::ALL.into_iter().min_by_key(distance).unwrap_or(Self::HalfCheetah);
        if distance(&nearest) == 0 {
            return Ok(nearest);
        }
        let known = Self::ALL.map(Self::id).join(", ");
        Err(MujocoError::UnknownTask { name: name.into(), nearest: nearest.id(), known })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_read_in_any_spelling() {
        for name in ["halfcheetah", "HalfCheetah", "half_cheetah", "Half-Cheetah", "HALF CHEETAH"] {
            assert_eq!(name.parse::<Task>().unwrap(), Task::HalfCheetah);
        }
        for task in Task::ALL {
            assert_eq!(task.id().parse::<Task>().unwrap(), task);
            assert_eq!(task.name().parse::<Task>().unwrap(), task);
        }
        assert_eq!(Task::Walker2d.gymnasium_id(Revision::V5), "Walker2d-v5");
    }

    #[test]
    fn unknown_tasks_name_the_nearest() {
        let message = "walker".parse::<Task>().unwrap_err().to_string();
        assert!(message.contains("`walker`; the nearest is `walker2d`"), "{message}");
        let message = "cheetah".parse::<Task>().unwrap_err().to_string();
        assert!(message.contains("(known: halfcheetah, hopper, walker2d)"), "{message}");
    }
}
