//! [`Emulation`]: how the Arcade Learning Environment is run.

use overtone_core::protocol::{Setting, other_length};
use overtone_core::simulation::Value;
use overtone_core::{Simulation, SimulationError};

/// How two raw screens become one 84 × 84 observation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Resize {
    /// Pixel-wise maximum of the last two raw grey screens, then area interpolation
    /// (Dopamine; how the DQN Replay Dataset was recorded).
    MaxThenArea,
    /// Each of the two screens resized bilinearly, then their maximum (the Decision
    /// Transformer's evaluation).
    BilinearThenMax,
}

impl Resize {
    /// Both with their names in files.
    const NAMES: [(&str, Self); 2] =
        [("max_then_area", Self::MaxThenArea), ("bilinear_then_max", Self::BilinearThenMax)];

    /// Its name in files.
    pub fn name(self) -> &'static str {
        match self {
            Self::MaxThenArea => "max_then_area",
            Self::BilinearThenMax => "bilinear_then_max",
        }
    }
}

/// How the Arcade Learning Environment is run.
#[derive(Clone, Debug, PartialEq)]
pub struct Emulation {
    /// Probability that the emulator repeats the previous action on a raw frame.
    pub sticky_probability: f32,
    /// Raw frames per action.
    pub frame_skip: u32,
    /// How raw screens become an observation.
    pub resize: Resize,
    /// At most so many no-op raw frames at an episode's start, uniform from 0.
    pub max_noops: u32,
    /// Raw frames after which an episode is truncated.
    pub max_frames: u32,
    /// Whether losing a life ends the episode.
    pub terminal_on_life_loss: bool,
    /// Whether each episode is reset twice, with the first observation taken from the first
    /// reset (an accident of the Decision Transformer's evaluation).
    pub double_reset: bool,
}

impl Emulation {
    /// How the DQN Replay Dataset was recorded (Agarwal et al. 2020; Dopamine's defaults).
    pub fn dqn_replay() -> Self {
        Self {
            sticky_probability: 0.25,
            frame_skip: 4,
            resize: Resize::MaxThenArea,
            max_noops: 0,
            max_frames: 108_000,
            terminal_on_life_loss: false,
            double_reset: false,
        }
    }

    /// How the released Decision Transformer and Fourier-head evaluations ran it.
    pub fn released() -> Self {
        Self {
            sticky_probability: 0.0,
            frame_skip: 4,
            resize: Resize::BilinearThenMax,
            max_noops: 29,
            max_frames: 108_000,
            terminal_on_life_loss: false,
            double_reset: true,
        }
    }

    /// Reads the settings of a simulation.
    ///
    /// # Errors
    /// When one is missing, unknown or of another type.
    pub fn of(simulation: &Simulation) -> Result<Self, SimulationError> {
        let mut fields = simulation.fields();
        let emulation = Self {
            sticky_probability: fields.number("sticky_probability")?,
            frame_skip: fields.count("frame_skip")?,
            resize: fields.word("resize", &Resize::NAMES)?,
            max_noops: fields.count("max_noops")?,
            max_frames: fields.count("max_frames")?,
            terminal_on_life_loss: fields.flag("terminal_on_life_loss")?,
            double_reset: fields.flag("double_reset")?,
        };
        fields.finish()?;
        Ok(emulation)
    }

    /// # Errors
    /// Names the setting that no emulator takes.
    #[cfg(feature = "python")]
    pub(crate) fn check(&self) -> Result<(), crate::AleError> {
        let most = i32::MAX as u32;
        let what = match self {
            Self { frame_skip: n, .. } if !(1..=most).contains(n) => {
                format!("{n} raw frames per action")
            }
            // It would take 0 as no limit.
            Self { max_frames: n, .. } if !(1..=most).contains(n) => {
                format!("a limit of {n} raw frames")
            }
            Self { max_noops: n, .. } if *n >= most => format!("{n} no-ops"),
            Self { sticky_probability: p, .. } if !(0.0..=1.0).contains(p) => {
                format!("a sticky probability of {p}")
            }
            _ => return Ok(()),
        };
        Err(crate::AleError::Unsupported { what })
    }

    /// The settings of a simulation.
    pub fn to_simulation(&self) -> Simulation {
        Simulation::new([
            ("sticky_probability", self.sticky_probability.into()),
            ("frame_skip", self.frame_skip.into()),
            ("resize", self.resize.name().into()),
            ("max_noops", self.max_noops.into()),
            ("max_frames", self.max_frames.into()),
            ("terminal_on_life_loss", self.terminal_on_life_loss.into()),
            ("double_reset", self.double_reset.into()),
        ])
    }
}

/// The settings, and what follows from playing with another value than that of the data. Where
/// the values of the released evaluations are known from is in `docs/protocols.md`.
pub const SETTINGS: &[Setting] = &[
    Setting::new("sticky_probability", |before, now| {
        let delay = if now.number() < before.number() { "less" } else { "more" };
        format!(
            "the emulator repeats the action before {delay} often than in the data; scores with \
             other sticky actions are not comparable (Machado et al. 2018)"
        )
    }),
    Setting::new("frame_skip", |_, _| {
        "each action lasts another time than in the data: the model sees everything move at \
         another speed"
            .into()
    }),
    Setting::new("resize", |_, _| {
        "the encoder sees screens filtered otherwise than in training: bilinear resizing skips \
         pixels that area resizing averages"
            .into()
    }),
    Setting::new("max_noops", |before, now| {
        format!(
            "play begins up to {now} raw frames into the game, in the data up to {before}: other \
             first situations"
        )
    }),
    Setting::new("max_frames", other_length),
    Setting::new("terminal_on_life_loss", |_, now| {
        match now {
            Value::Bool(true) => {
                "a score is that of one life, and in the data that of a whole game"
            }
            _ => "a score is that of a whole game, and in the data that of one life",
        }
        .into()
    }),
    Setting::new("double_reset", |_, now| {
        match now {
            Value::Bool(true) => "the first observation is of a game that is then thrown away",
            _ => "the first observation is of the game that is played, unlike in the data",
        }
        .into()
    }),
];

#[cfg(test)]
mod tests {
    use super::*;
    use overtone_testkit::sentences;

    #[test]
    fn every_setting_is_read_as_it_was_written_and_explained() {
        for emulation in [Emulation::dqn_replay(), Emulation::released()] {
            let simulation = emulation.to_simulation();
            assert_eq!(Emulation::of(&simulation), Ok(emulation));
            assert_eq!(simulation.iter().count(), SETTINGS.len());
            assert!(SETTINGS.iter().all(|setting| simulation.get(setting.key).is_some()));
        }
    }

    #[test]
    fn settings_that_are_none_are_refused_in_a_sentence() {
        let simulation = || Emulation::dqn_replay().to_simulation();
        let error = Emulation::of(&simulation().with("resize", "nearest")).unwrap_err();
        let expected = "simulation.resize=nearest: expected max_then_area or bilinear_then_max";
        assert_eq!(error.to_string(), expected);
        let error = Emulation::of(&simulation().with("revision", "v4")).unwrap_err();
        sentences::check(&error.to_string());
    }
}
