//! [`Emulation`]: settings of the Arcade Learning Environment.

use overtone_core::protocol::{Setting, other_length};
use overtone_core::simulation::Value;
use serde::{Deserialize, Serialize};

/// Conversion of two raw screens to one 84 × 84 observation.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Resize {
    /// Pixel-wise maximum of the last two raw grey screens, then area interpolation (Dopamine and
    /// the DQN Replay Dataset).
    MaxThenArea,
    /// Bilinear resizing of each of the two screens, then their maximum (the Decision
    /// Transformer's evaluation).
    BilinearThenMax,
}

/// Settings of the Arcade Learning Environment.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Emulation {
    /// Probability that the emulator repeats the previous action on a raw frame.
    pub sticky_probability: f32,
    /// Raw frames per action.
    pub frame_skip: u32,
    /// Conversion of raw screens to an observation.
    pub resize: Resize,
    /// Maximum number of no-op raw frames at the start of an episode. The number is uniform from 0.
    pub max_noops: u32,
    /// Number of raw frames after which an episode is truncated.
    pub max_frames: u32,
    /// Whether losing a life ends the episode.
    pub terminal_on_life_loss: bool,
    /// Whether each episode is reset twice and its first observation comes from the first reset (an
    /// accident of the Decision Transformer's evaluation).
    pub double_reset: bool,
}

impl Emulation {
    /// Settings of the DQN Replay Dataset (Agarwal et al. 2020; Dopamine's defaults).
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

    /// Settings of the released Decision Transformer and Fourier-head evaluations.
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

    /// Checks the ranges of the settings.
    ///
    /// # Errors
    /// When a setting is out of range.
    #[cfg(feature = "python")]
    pub(crate) fn check(&self) -> Result<(), crate::AleError> {
        let most = i32::MAX as u32;
        let what = match self {
            Self { frame_skip: n, .. } if !(1..=most).contains(n) => {
                format!("{n} raw frames per action")
            }
            // The emulator would interpret 0 as no limit.
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
}

/// The settings, with the consequences of values that differ from the data. `docs/protocols.md` has
/// the sources of the released evaluations' values.
pub const SETTINGS: &[Setting] = &[
    Setting::new("sticky_probability", |before, now| {
        let delay = if now.number() < before.number() { "less" } else { "more" };
        format!(
            "the emulator repeats the previous action {delay} often than in the data; scores with \
             different sticky actions are not comparable (Machado et al. 2018)"
        )
    }),
    Setting::new("frame_skip", |_, _| {
        "each action has another duration than in the data, so all objects move at another speed"
            .into()
    }),
    Setting::new("resize", |_, _| {
        "screens are filtered differently than in training: bilinear resizing skips pixels that \
         area resizing averages"
            .into()
    }),
    Setting::new("max_noops", |before, now| {
        format!(
            "episodes start up to {now} raw frames into the game, in the data up to {before}: the \
             initial states differ"
        )
    }),
    Setting::new("max_frames", other_length),
    Setting::new("terminal_on_life_loss", |_, now| {
        match now {
            Value::Bool(true) => "a score covers one life, but in the data a whole game",
            _ => "a score covers a whole game, but in the data one life",
        }
        .into()
    }),
    Setting::new("double_reset", |_, now| {
        match now {
            Value::Bool(true) => "the first observation comes from a game that is then discarded",
            _ => "the first observation comes from the played game, unlike in the data",
        }
        .into()
    }),
];

#[cfg(test)]
mod tests {
    use super::*;
    use overtone_core::Simulation;
    use overtone_testkit::sentences;

    #[test]
    fn every_setting_round_trips_and_is_described() {
        for emulation in [Emulation::dqn_replay(), Emulation::released()] {
            let simulation = Simulation::of(&emulation);
            assert_eq!(simulation.read(), Ok(emulation));
            assert_eq!(simulation.iter().count(), SETTINGS.len());
            assert!(SETTINGS.iter().all(|setting| simulation.get(setting.key).is_some()));
        }
    }

    #[test]
    fn invalid_settings_are_rejected_with_a_sentence() {
        let wrong = |key, value: &str| Simulation::of(&Emulation::dqn_replay()).with(key, value);
        let error = wrong("resize", "nearest").read::<Emulation>().unwrap_err();
        let expected = "simulation.resize: unknown variant `nearest`, expected `max_then_area` or \
                        `bilinear_then_max`";
        assert_eq!(error.to_string(), expected);
        let error = wrong("revision", "v4").read::<Emulation>().unwrap_err();
        sentences::check(&error.to_string());
    }
}
