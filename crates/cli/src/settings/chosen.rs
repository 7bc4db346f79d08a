//! [`Choosable`]: what `evaluation.temperature`, `evaluation.return_quantile` and
//! `evaluation.top_percent` say.

use serde::{Deserialize, Serialize};
use toml::Value;

use crate::keys;

/// A setting of play that may be chosen for each run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(try_from = "Value", into = "Value")]
pub enum Choosable {
    /// As it was chosen for the run by episodes of another seed; the agent's own where nothing was.
    #[default]
    Chosen,
    /// So.
    Fixed(f32),
}

/// How [`Choosable::Chosen`] is written.
pub const CHOSEN: &str = "chosen";

impl Choosable {
    /// The number that is said, or else `other`.
    pub fn or(self, other: f32) -> f32 {
        match self {
            Self::Chosen => other,
            Self::Fixed(number) => number,
        }
    }

    /// The number that is said.
    pub fn fixed(self) -> Option<f32> {
        match self {
            Self::Chosen => None,
            Self::Fixed(number) => Some(number),
        }
    }

    /// This share of the best episodes, told beside `target` and `return_quantile`: none where they
    /// say which return to ask for, or how much of it.
    #[must_use]
    pub fn beside(self, target: &str, return_quantile: Self) -> Self {
        let is_asked = !target.is_empty() || return_quantile != Self::Chosen;
        if is_asked { Self::Fixed(self.or(0.0)) } else { self }
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
            // By way of text, in which 0.1 as `f32` is 0.1.
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
    fn it_is_written_as_it_is_read() {
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
