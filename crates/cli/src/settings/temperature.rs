//! [`Temperature`]: what `evaluation.temperature` says.

use serde::{Deserialize, Serialize};
use toml::Value;

use crate::keys;

/// At which softmax temperature actions are drawn.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(try_from = "Value", into = "Value")]
pub enum Temperature {
    /// At the one that was chosen for the run by episodes of another seed; at 1 where none was.
    Chosen,
    /// At this one.
    Fixed(f32),
}

/// How [`Temperature::Chosen`] is written.
pub const CHOSEN: &str = "chosen";

impl TryFrom<Value> for Temperature {
    type Error = String;

    fn try_from(value: Value) -> Result<Self, String> {
        let number = match &value {
            Value::String(word) if word == CHOSEN => return Ok(Self::Chosen),
            Value::String(word) => word.trim().parse().ok(),
            Value::Integer(number) => Some(*number as f32),
            Value::Float(number) => Some(*number as f32),
            _ => None,
        };
        let wrong =
            || format!("temperature={}: expected {CHOSEN} or a number", keys::plain(&value));
        number.map(Self::Fixed).ok_or_else(wrong)
    }
}

impl From<Temperature> for Value {
    fn from(temperature: Temperature) -> Self {
        match temperature {
            Temperature::Chosen => Self::String(CHOSEN.into()),
            // By way of text, in which 0.1 as `f32` is 0.1.
            Temperature::Fixed(number) => {
                Self::Float(number.to_string().parse().unwrap_or(f64::from(number)))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_is_written_as_it_is_read() {
        for (value, temperature) in [
            (Value::String("chosen".into()), Temperature::Chosen),
            (Value::String("0.5".into()), Temperature::Fixed(0.5)),
            (Value::Float(0.1), Temperature::Fixed(0.1)),
            (Value::Integer(1), Temperature::Fixed(1.0)),
        ] {
            assert_eq!(Temperature::try_from(value), Ok(temperature));
            let written = Value::from(temperature);
            assert_eq!(Temperature::try_from(written), Ok(temperature));
        }
        assert_eq!(Value::from(Temperature::Fixed(0.1)), Value::Float(0.1));
        let wrong = Temperature::try_from(Value::String("warm".into())).unwrap_err();
        assert_eq!(wrong, "temperature=warm: expected chosen or a number");
    }
}
