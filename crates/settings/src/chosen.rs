//! [`Choosable`]: the value of `evaluation.temperature`, `evaluation.return_quantile` and
//! `evaluation.top_percent`.

use overtone_console::keys;
use serde::{Deserialize, Serialize};
use toml::Value;

/// A setting of the acting mode: a number, or chosen for each run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(try_from = "Value", into = "Value")]
pub enum Choosable {
    /// The number that episodes of another seed chose for the run; without a choice, the agent's
    /// default.
    #[default]
    Chosen,
    /// This number.
    Fixed(f32),
}

/// Spelling of [`Choosable::Chosen`].
pub const CHOSEN: &str = "chosen";

impl Choosable {
    /// The fixed number, or else `other`.
    pub fn or(self, other: f32) -> f32 {
        match self {
            Self::Chosen => other,
            Self::Fixed(number) => number,
        }
    }

    /// The fixed number, if set.
    pub fn fixed(self) -> Option<f32> {
        match self {
            Self::Chosen => None,
            Self::Fixed(number) => Some(number),
        }
    }

    /// This top percent, next to `target` and `return_quantile`: 0 by default if either of them is
    /// set, since both apply to a target return.
    #[must_use]
    pub fn unless_target(self, target: &str, return_quantile: Self) -> Self {
        let has_target = !target.is_empty() || return_quantile != Self::Chosen;
        if has_target { Self::Fixed(self.or(0.0)) } else { self }
    }
}

impl TryFrom<Value> for Choosable {
    type Error = String;

    fn try_from(value: Value) -> Result<Self, String> {
        let number = match &value {
            Value::String(word) if word == CHOSEN => return Ok(Self::Chosen),
            Value::String(word) => word.trim().parse().ok(),
            Value::Integer(number) => Some(*number as f32),
            Value::Float(number) => Some(*number as f32),
            _ => None,
        };
        let wrong = || format!("`{}`: expected {CHOSEN} or a number", keys::plain(&value));
        number.map(Self::Fixed).ok_or_else(wrong)
    }
}

impl From<Choosable> for Value {
    fn from(setting: Choosable) -> Self {
        match setting {
            Choosable::Chosen => Self::String(CHOSEN.into()),
            // Through text, in which 0.1 as `f32` is 0.1.
            Choosable::Fixed(number) => {
                Self::Float(number.to_string().parse().unwrap_or(f64::from(number)))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_round_trips_through_toml() {
        for (value, setting) in [
            (Value::String("chosen".into()), Choosable::Chosen),
            (Value::String("0.5".into()), Choosable::Fixed(0.5)),
            (Value::Float(0.1), Choosable::Fixed(0.1)),
            (Value::Integer(1), Choosable::Fixed(1.0)),
        ] {
            assert_eq!(Choosable::try_from(value), Ok(setting));
            let written = Value::from(setting);
            assert_eq!(Choosable::try_from(written), Ok(setting));
        }
        assert_eq!(Value::from(Choosable::Fixed(0.1)), Value::Float(0.1));
        let wrong = Choosable::try_from(Value::String("warm".into())).unwrap_err();
        assert_eq!(wrong, "`warm`: expected chosen or a number");
    }
}
