//! [`Percents`]: the value of `model.top_percents`.

use serde::{Deserialize, Serialize};
use toml::Value;

use crate::keys;

/// Top percentages, written as `10,50,100`; empty or `none`: none.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(try_from = "Value", into = "Value")]
pub struct Percents(pub Vec<f32>);

impl TryFrom<Value> for Percents {
    type Error = String;

    fn try_from(value: Value) -> Result<Self, String> {
        let text = keys::plain(&value);
        let words = text.split(',').map(str::trim);
        let words = words.filter(|_| !text.is_empty() && text != "none");
        let percent = |word: &str| {
            let percent = word.parse().ok().filter(|percent| *percent > 0.0 && *percent <= 100.0);
            percent.ok_or_else(|| {
                format!("`{word}`: expected percentages above 0 and at most 100, such as 10,50,100")
            })
        };
        words.map(percent).collect::<Result<Vec<f32>, String>>().map(Self)
    }
}

impl From<Percents> for Value {
    fn from(Percents(percents): Percents) -> Self {
        let words: Vec<String> = percents.iter().map(f32::to_string).collect();
        Self::String(words.join(","))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn percentages_round_trip_through_toml() {
        let of = |text: &str| Percents::try_from(Value::String(text.into()));
        assert_eq!(of("10, 2.5,100").unwrap(), Percents(vec![10.0, 2.5, 100.0]));
        assert_eq!(Percents::try_from(Value::Integer(10)).unwrap(), Percents(vec![10.0]));
        for none in ["", "none"] {
            assert_eq!(of(none).unwrap(), Percents::default());
        }
        let written = Value::from(of("10,2.5").unwrap());
        assert_eq!(written, Value::String("10,2.5".into()));
        for wrong in ["10,", "0", "101", "ten"] {
            let error = of(wrong).unwrap_err();
            assert!(error.contains("above 0 and at most 100"), "{wrong}: {error}");
        }
    }
}
