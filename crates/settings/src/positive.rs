//! [`Positive`]: a list of positive numbers, the value of one key.

use overtone_console::keys;
use serde::{Deserialize, Serialize};
use toml::Value;

/// Positive numbers, at most `MOST` (0: any), written as `10,50,100`; empty or `none`: none.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(try_from = "Value", into = "Value")]
pub struct Positive<const MOST: u16>(pub Vec<f32>);

/// The value of `model.top_percents`.
pub type Percents = Positive<100>;

/// The value of `data.shares`.
pub type Shares = Positive<0>;

impl<const MOST: u16> TryFrom<Value> for Positive<MOST> {
    type Error = String;

    fn try_from(value: Value) -> Result<Self, String> {
        let text = keys::plain(&value);
        let words = text.split(',').map(str::trim);
        let words = words.filter(|_| !text.is_empty() && text != "none");
        let most = if MOST == 0 { f32::MAX } else { f32::from(MOST) };
        let expected = match MOST {
            0 => "numbers above 0, such as 2,1".to_owned(),
            most => format!("numbers above 0 and at most {most}, such as 10,50,100"),
        };
        let number = |word: &str| {
            let number = word.parse().ok().filter(|number| *number > 0.0 && *number <= most);
            number.ok_or_else(|| format!("`{word}`: expected {expected}"))
        };
        words.map(number).collect::<Result<Vec<f32>, String>>().map(Self)
    }
}

impl<const MOST: u16> From<Positive<MOST>> for Value {
    fn from(Positive(numbers): Positive<MOST>) -> Self {
        let words: Vec<String> = numbers.iter().map(f32::to_string).collect();
        Self::String(words.join(","))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_round_trip_through_toml() {
        let percents = |text: &str| Percents::try_from(Value::String(text.into()));
        let shares = |text: &str| Shares::try_from(Value::String(text.into()));
        assert_eq!(percents("10, 2.5,100").unwrap(), Positive(vec![10.0, 2.5, 100.0]));
        assert_eq!(shares("200,0.5").unwrap(), Positive(vec![200.0, 0.5]));
        assert_eq!(Percents::try_from(Value::Integer(10)).unwrap(), Positive(vec![10.0]));
        for none in ["", "none"] {
            assert_eq!(percents(none).unwrap(), Percents::default());
        }
        let written = Value::from(percents("10,2.5").unwrap());
        assert_eq!(written, Value::String("10,2.5".into()));
        for wrong in ["10,", "0", "101", "ten"] {
            let error = percents(wrong).unwrap_err();
            assert!(error.contains("above 0 and at most 100"), "{wrong}: {error}");
        }
        for wrong in ["2,", "0,1", "-1,2", "inf,1"] {
            assert!(shares(wrong).unwrap_err().contains("above 0, such as 2,1"), "{wrong}");
        }
    }
}
