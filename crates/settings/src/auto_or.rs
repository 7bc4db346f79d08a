//! [`AutoOr`]: the value of `evaluation.every` and of `evaluation.budget`.

use overtone_console::keys;
use serde::{Deserialize, Serialize};
use toml::Value;

/// A whole number, or `auto`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "Value", into = "Value")]
pub enum AutoOr {
    /// Depends on the run; the setting's documentation says how.
    #[default]
    Auto,
    /// This number.
    Number(u32),
}

/// Spelling of [`AutoOr::Auto`].
const AUTO: &str = "auto";

impl TryFrom<Value> for AutoOr {
    type Error = String;

    fn try_from(value: Value) -> Result<Self, String> {
        let number = match &value {
            Value::String(word) if word == AUTO => return Ok(Self::Auto),
            Value::String(word) => word.trim().parse().ok(),
            Value::Integer(number) => u32::try_from(*number).ok(),
            _ => None,
        };
        let wrong = || format!("`{}`: expected {AUTO} or a whole number", keys::plain(&value));
        number.map(Self::Number).ok_or_else(wrong)
    }
}

impl From<AutoOr> for Value {
    fn from(setting: AutoOr) -> Self {
        match setting {
            AutoOr::Auto => Self::String(AUTO.into()),
            AutoOr::Number(number) => Self::Integer(number.into()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_round_trips_through_toml() {
        for (value, setting) in [
            (Value::String("auto".into()), AutoOr::Auto),
            (Value::String("2".into()), AutoOr::Number(2)),
            (Value::Integer(0), AutoOr::Number(0)),
        ] {
            assert_eq!(AutoOr::try_from(value), Ok(setting));
            assert_eq!(AutoOr::try_from(Value::from(setting)), Ok(setting));
        }
        for wrong in [Value::String("often".into()), Value::Integer(-1), Value::Float(0.5)] {
            let words = AutoOr::try_from(wrong.clone()).unwrap_err();
            assert!(words.ends_with(": expected auto or a whole number"), "{wrong}: {words}");
        }
    }
}
