//! [`Simulation`]: a suite's settings of its simulator, which only the suite interprets.
//!
//! Datasets, checkpoints and reports store a simulation, and protocols carry it, but none of them
//! interprets it. Each suite reads it into its own struct with [`Simulation::read`].

use std::collections::BTreeMap;
use std::fmt;

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

/// One value of a [`Simulation`].
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(untagged)]
pub enum Value {
    /// `true` or `false`.
    Bool(bool),
    /// A whole number.
    Integer(i64),
    /// Any number.
    Number(f64),
    /// A word.
    Text(String),
}

/// Numbers are equal by value, not by spelling: `1` equals `1.0`.
impl PartialEq for Value {
    fn eq(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Bool(one), Self::Bool(other)) => one == other,
            (Self::Integer(one), Self::Integer(other)) => one == other,
            (Self::Text(one), Self::Text(other)) => one == other,
            _ => match (self.number(), other.number()) {
                (Some(one), Some(other)) => one == other,
                _ => false,
            },
        }
    }
}

impl Value {
    /// The value as a number; `None` for other kinds.
    pub fn number(&self) -> Option<f64> {
        match self {
            Self::Integer(number) => Some(*number as f64),
            Self::Number(number) => Some(*number),
            Self::Bool(_) | Self::Text(_) => None,
        }
    }
}

impl fmt::Display for Value {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Bool(value) => value.fmt(f),
            Self::Integer(value) => value.fmt(f),
            Self::Number(value) => value.fmt(f),
            Self::Text(value) => value.fmt(f),
        }
    }
}

impl From<bool> for Value {
    fn from(value: bool) -> Self {
        Self::Bool(value)
    }
}

impl From<u32> for Value {
    fn from(value: u32) -> Self {
        Self::Integer(value.into())
    }
}

impl From<f32> for Value {
    /// The shortest decimal number that reads back as `value`: 0.1 and not 0.10000000149.
    fn from(value: f32) -> Self {
        Self::Number(value.to_string().parse().unwrap_or(value.into()))
    }
}

impl From<&str> for Value {
    fn from(value: &str) -> Self {
        Self::Text(value.to_owned())
    }
}

/// Settings of a suite's simulator: a value for each.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Simulation(BTreeMap<String, Value>);

/// A [`Simulation`] that its suite does not support.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[error("{place}: {reason}")]
pub struct SimulationError {
    /// The setting, such as `simulation.max_steps`, or `simulation` for a missing or unknown one.
    place: String,
    /// The reason, in words.
    reason: String,
}

impl Simulation {
    /// With these settings.
    pub fn new<const N: usize>(settings: [(&str, Value); N]) -> Self {
        Self(settings.into_iter().map(|(key, value)| (key.to_owned(), value)).collect())
    }

    /// The value of a setting.
    pub fn get(&self, key: &str) -> Option<&Value> {
        self.0.get(key)
    }

    /// A copy with another value of one setting.
    #[must_use]
    pub fn with(&self, key: &str, value: impl Into<Value>) -> Self {
        let mut settings = self.0.clone();
        settings.insert(key.to_owned(), value.into());
        Self(settings)
    }

    /// Names and values, sorted by name.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &Value)> {
        self.0.iter().map(|(key, value)| (key.as_str(), value))
    }

    /// The settings that a suite's struct holds.
    ///
    /// # Panics
    /// When a field of the struct is not a [`Value`]: a suite's bug.
    pub fn of<T: Serialize>(settings: &T) -> Self {
        // As text, where 0.1 in 32 bits is 0.1 and not 0.10000000149.
        let text = serde_json::to_string(settings).expect("settings are plain values");
        serde_json::from_str(&text).expect("settings are plain values")
    }

    /// The settings as a suite's struct.
    ///
    /// # Errors
    /// When a setting is missing, unknown or has another type.
    pub fn read<T: DeserializeOwned>(&self) -> Result<T, SimulationError> {
        let text = serde_json::to_string(self).expect("settings are plain values");
        serde_path_to_error::deserialize(&mut serde_json::Deserializer::from_str(&text)).map_err(
            |error| {
                let place = match error.path().to_string().as_str() {
                    "." => "simulation".to_owned(),
                    key => format!("simulation.{key}"),
                };
                let reason = error.into_inner().to_string();
                // A place in the text says nothing to the user.
                let reason =
                    reason.rsplit_once(" at line ").map_or(&*reason, |(message, _)| message);
                let reason = reason.replace("expected u32", "expected a whole number, 0 or more");
                SimulationError { place, reason }
            },
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Debug, PartialEq, Serialize, Deserialize)]
    #[serde(deny_unknown_fields)]
    struct Settings {
        sticky: f32,
        skip: u32,
        resize: Resize,
        double: bool,
    }

    #[derive(Debug, PartialEq, Serialize, Deserialize)]
    #[serde(rename_all = "snake_case")]
    enum Resize {
        Area,
        MaxThenArea,
    }

    const SETTINGS: Settings =
        Settings { sticky: 0.1, skip: 4, resize: Resize::MaxThenArea, double: false };

    #[test]
    fn settings_are_a_struct_of_their_types() {
        let simulation = Simulation::new([
            ("sticky", 0.1f32.into()),
            ("skip", 4u32.into()),
            ("resize", "max_then_area".into()),
            ("double", false.into()),
        ]);
        assert_eq!(Simulation::of(&SETTINGS), simulation);
        assert_eq!(simulation.read(), Ok(SETTINGS));
        assert_eq!(simulation.get("sticky").unwrap().to_string(), "0.1");
        // Files may have a whole number for any number.
        let read: Settings = simulation.with("sticky", 1u32).read().unwrap();
        assert_eq!(read.sticky, 1.0);
    }

    #[track_caller]
    fn refused(simulation: &Simulation, expected: &str) {
        assert_eq!(simulation.read::<Settings>().unwrap_err().to_string(), expected);
    }

    #[test]
    fn errors_name_the_unsupported_setting() {
        let simulation = Simulation::of(&SETTINGS);
        let missing = Simulation::new([("sticky", 0.1f32.into())]);
        refused(&missing, "simulation: missing field `skip`");
        let skip = "simulation.skip: invalid type: floating point `-1.5`, expected a whole number, \
                    0 or more";
        refused(&simulation.with("skip", -1.5f32), skip);
        let double = "simulation.double: invalid type: string \"no\", expected a boolean";
        refused(&simulation.with("double", "no"), double);
        let resize = "simulation.resize: unknown variant `min`, expected `area` or `max_then_area`";
        refused(&simulation.with("resize", "min"), resize);
        let known = "expected one of `sticky`, `skip`, `resize`, `double`";
        let colour = format!("simulation.colour: unknown field `colour`, {known}");
        refused(&simulation.with("colour", "red"), &colour);
    }

    #[test]
    fn a_number_is_the_same_however_it_is_written() {
        assert_eq!(Value::Integer(1), Value::Number(1.0));
        assert_ne!(Value::Integer(1), Value::Text("1".into()));
        assert_ne!(Value::Bool(true), Value::Integer(1));
        assert_eq!(Value::from(0.1f32).to_string(), "0.1");
        assert_eq!(Value::from(0.0f32).to_string(), "0");
    }
}
