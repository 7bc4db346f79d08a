//! [`Simulation`]: a suite's settings of its simulator, which only the suite interprets.
//!
//! Datasets, checkpoints and reports store a simulation, and protocols carry it, but none of them
//! interprets it. Each suite reads it into its own struct with [`Simulation::fields`].

use std::collections::BTreeMap;
use std::fmt;

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
pub enum SimulationError {
    /// A missing setting.
    #[error("`simulation.{key}` is missing")]
    Missing {
        /// Its name.
        key: &'static str,
    },
    /// A setting that the suite does not have.
    #[error("unknown setting `simulation.{key}`; known are {known}")]
    Unknown {
        /// Its name.
        key: String,
        /// The suite's settings.
        known: String,
    },
    /// A value of another kind.
    #[error("simulation.{key}={got}: expected {expected}")]
    Kind {
        /// The setting.
        key: &'static str,
        /// Its value.
        got: String,
        /// The expected value, in words.
        expected: String,
    },
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

    /// A reader that reads every setting once, by its type.
    pub fn fields(&self) -> Fields<'_> {
        Fields { simulation: self, read: Vec::new() }
    }
}

/// Reader of a [`Simulation`], setting by setting. [`Fields::finish`] refuses unread settings.
#[derive(Debug)]
pub struct Fields<'a> {
    simulation: &'a Simulation,
    read: Vec<&'static str>,
}

impl<'a> Fields<'a> {
    /// A boolean setting.
    ///
    /// # Errors
    /// When it is missing or has another type.
    pub fn flag(&mut self, key: &'static str) -> Result<bool, SimulationError> {
        match self.take(key)? {
            Value::Bool(value) => Ok(*value),
            other => Err(kind(key, other, "true or false")),
        }
    }

    /// A number.
    ///
    /// # Errors
    /// When it is missing or has another type.
    pub fn number(&mut self, key: &'static str) -> Result<f32, SimulationError> {
        let value = self.take(key)?;
        value.number().map(|number| number as f32).ok_or_else(|| kind(key, value, "a number"))
    }

    /// A non-negative integer.
    ///
    /// # Errors
    /// When it is missing or has another type.
    pub fn count(&mut self, key: &'static str) -> Result<u32, SimulationError> {
        let value = self.take(key)?;
        let count = match value {
            Value::Integer(number) => u32::try_from(*number).ok(),
            _ => None,
        };
        count.ok_or_else(|| kind(key, value, "a whole number from 0"))
    }

    /// The meaning of one of these words.
    ///
    /// # Errors
    /// When it is missing or another value.
    pub fn word<T: Copy>(
        &mut self,
        key: &'static str,
        known: &[(&str, T)],
    ) -> Result<T, SimulationError> {
        let value = self.take(key)?;
        let found = match value {
            Value::Text(text) => known.iter().find(|(word, _)| word == text),
            _ => None,
        };
        let words: Vec<&str> = known.iter().map(|(word, _)| *word).collect();
        found.map(|(_, meant)| *meant).ok_or_else(|| kind(key, value, &words.join(" or ")))
    }

    /// Asserts that every setting was read.
    ///
    /// # Errors
    /// When a setting was not read: the suite does not have it.
    pub fn finish(self) -> Result<(), SimulationError> {
        match self.simulation.iter().find(|(key, _)| !self.read.contains(key)) {
            None => Ok(()),
            Some((key, _)) => {
                Err(SimulationError::Unknown { key: key.to_owned(), known: self.read.join(", ") })
            }
        }
    }

    fn take(&mut self, key: &'static str) -> Result<&'a Value, SimulationError> {
        self.read.push(key);
        self.simulation.get(key).ok_or(SimulationError::Missing { key })
    }
}

fn kind(key: &'static str, got: &Value, expected: &str) -> SimulationError {
    SimulationError::Kind { key, got: got.to_string(), expected: expected.to_owned() }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn simulation() -> Simulation {
        Simulation::new([
            ("sticky", 0.1f32.into()),
            ("skip", 4u32.into()),
            ("resize", "area".into()),
            ("double", false.into()),
        ])
    }

    #[test]
    fn settings_are_read_by_their_types() {
        let simulation = simulation();
        let mut fields = simulation.fields();
        assert_eq!(fields.number("sticky"), Ok(0.1));
        assert_eq!(fields.count("skip"), Ok(4));
        assert_eq!(fields.word("resize", &[("area", 1), ("bilinear", 2)]), Ok(1));
        assert_eq!(fields.flag("double"), Ok(false));
        assert_eq!(fields.finish(), Ok(()));
    }

    #[track_caller]
    fn refused<T: fmt::Debug>(answer: Result<T, SimulationError>, expected: &str) {
        assert_eq!(answer.unwrap_err().to_string(), expected);
    }

    #[test]
    fn errors_name_the_unsupported_setting() {
        let simulation = simulation().with("skip", -1.5f32).with("colour", "red");
        let mut fields = simulation.fields();
        refused(fields.number("noops"), "`simulation.noops` is missing");
        refused(fields.count("skip"), "simulation.skip=-1.5: expected a whole number from 0");
        refused(fields.flag("sticky"), "simulation.sticky=0.1: expected true or false");
        refused(fields.number("double"), "simulation.double=false: expected a number");
        let known = [("max", 1), ("min", 2)];
        refused(fields.word("resize", &known), "simulation.resize=area: expected max or min");
        let known = "noops, skip, sticky, double, resize";
        let expected = format!("unknown setting `simulation.colour`; known are {known}");
        refused(fields.finish(), &expected);
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
