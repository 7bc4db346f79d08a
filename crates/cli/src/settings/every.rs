//! [`Every`]: the value of `evaluation.every`.

use serde::{Deserialize, Serialize};
use toml::Value;

use crate::keys;

/// Checkpoints that are evaluated during training.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "Value", into = "Value")]
pub enum Every {
    /// Evenly spaced checkpoints, within a tenth of the run's time.
    #[default]
    Auto,
    /// Every so many checkpoints, at any cost; 0: none.
    Checkpoints(u32),
}

/// Spelling of [`Every::Auto`].
const AUTO: &str = "auto";

impl TryFrom<Value> for Every {
    type Error = String;

    fn try_from(value: Value) -> Result<Self, String> {
        let number = match &value {
            Value::String(word) if word == AUTO => return Ok(Self::Auto),
            Value::String(word) => word.trim().parse().ok(),
            Value::Integer(number) => u32::try_from(*number).ok(),
            _ => None,
        };
        let wrong = || format!("`{}`: expected {AUTO} or a whole number", keys::plain(&value));
        number.map(Self::Checkpoints).ok_or_else(wrong)
    }
}

impl From<Every> for Value {
    fn from(setting: Every) -> Self {
        match setting {
            Every::Auto => Self::String(AUTO.into()),
            Every::Checkpoints(number) => Self::Integer(number.into()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_round_trips_through_toml() {
        for (value, setting) in [
            (Value::String("auto".into()), Every::Auto),
            (Value::String("2".into()), Every::Checkpoints(2)),
            (Value::Integer(0), Every::Checkpoints(0)),
        ] {
            assert_eq!(Every::try_from(value), Ok(setting));
            assert_eq!(Every::try_from(Value::from(setting)), Ok(setting));
        }
        for wrong in [Value::String("often".into()), Value::Integer(-1), Value::Float(0.5)] {
            let words = Every::try_from(wrong.clone()).unwrap_err();
            assert!(words.ends_with(": expected auto or a whole number"), "{wrong}: {words}");
        }
    }
}
