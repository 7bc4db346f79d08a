//! [`Shares`]: the value of `data.shares`.

use serde::{Deserialize, Serialize};
use toml::Value;

use crate::keys;

/// Proportions of several datasets, written as `2,1`; empty: none are set.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(try_from = "Value", into = "Value")]
pub struct Shares(pub Vec<f32>);

impl TryFrom<Value> for Shares {
    type Error = String;

    fn try_from(value: Value) -> Result<Self, String> {
        let text = keys::plain(&value);
        let words = text.split(',').map(str::trim).filter(|_| !text.is_empty());
        let share = |word: &str| {
            let share = word.parse().ok().filter(|share: &f32| *share > 0.0 && share.is_finite());
            share.ok_or_else(|| {
                format!("`{word}`: expected a number above 0 for each dataset, such as 2,1")
            })
        };
        words.map(share).collect::<Result<Vec<f32>, String>>().map(Self)
    }
}

impl From<Shares> for Value {
    fn from(Shares(shares): Shares) -> Self {
        let words: Vec<String> = shares.iter().map(f32::to_string).collect();
        Self::String(words.join(","))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shares_round_trip_through_toml() {
        let of = |text: &str| Shares::try_from(Value::String(text.into()));
        assert_eq!(of("2, 0.5").unwrap(), Shares(vec![2.0, 0.5]));
        assert_eq!(of("").unwrap(), Shares::default());
        assert_eq!(Value::from(of("2,0.5").unwrap()), Value::String("2,0.5".into()));
        for wrong in ["2,", "0,1", "-1,2", "inf,1", "half"] {
            assert!(of(wrong).unwrap_err().contains("a number above 0"), "{wrong}");
        }
    }
}
