//! [`Space`]: what is observed or done, as Minari's descriptions say it.

use std::collections::BTreeMap;

use serde::Deserialize;
use serde_json::Number;

/// A space of Gymnasium's.
#[derive(Clone, Debug, PartialEq)]
pub enum Space {
    /// Numbers of one type, of this shape.
    Box {
        /// NumPy's name of the type, such as `float32`.
        dtype: String,
        /// Shape of one observation or action.
        shape: Vec<usize>,
        /// The smallest value of each number; empty if not set.
        low: Vec<f32>,
        /// The largest value of each number; empty if not set.
        high: Vec<f32>,
    },
    /// A whole number from `start` on.
    Discrete {
        /// How many there are.
        n: usize,
        /// The first.
        start: i64,
    },
    /// One of these words, in this order.
    Names(Vec<String>),
    /// Several whole numbers, each from its own start on.
    MultiDiscrete {
        /// How many there are of each.
        sizes: Vec<usize>,
        /// The first of each.
        starts: Vec<i64>,
    },
    /// So many bits.
    MultiBinary {
        /// How many.
        n: usize,
    },
    /// Named parts, sorted by name.
    Dict(BTreeMap<String, Space>),
    /// Parts in order.
    Tuple(Vec<Space>),
    /// A space that is not read, by its name: `Text`.
    Other(String),
}

impl Space {
    /// The number of discrete actions in this space; `None` if it is not discrete, or infinite.
    pub fn n_actions(&self) -> Option<usize> {
        if let Self::Names(names) = self {
            return Some(names.len());
        }
        self.wholes()?.0.iter().try_fold(1usize, |all, &size| all.checked_mul(size))
    }

    /// How many values each of this space's whole numbers has, and the first of each; `None` if it
    /// is not discrete.
    pub(crate) fn wholes(&self) -> Option<(Vec<usize>, Vec<i64>)> {
        match self {
            Self::Discrete { n, start } => Some((vec![*n], vec![*start])),
            Self::MultiDiscrete { sizes, starts } => Some((sizes.clone(), starts.clone())),
            Self::MultiBinary { n } => Some((vec![2; *n], vec![0; *n])),
            Self::Box { .. } | Self::Names(_) | Self::Dict(_) | Self::Tuple(_) | Self::Other(_) => {
                None
            }
        }
    }

    /// Reads a description, which may hold `Infinity` and `NaN`.
    ///
    /// # Errors
    /// The defect.
    pub fn parse(text: &str) -> Result<Self, String> {
        let raw: Raw =
            serde_json::from_str(&plain_json(text)).map_err(|error| error.to_string())?;
        raw.space()
    }
}

/// JSON without the words for numbers that JSON does not have; `null` stands for them.
pub(crate) fn plain_json(text: &str) -> String {
    const WORDS: [&str; 3] = ["-Infinity", "Infinity", "NaN"];
    let mut plain = String::with_capacity(text.len());
    let (mut quoted, mut escaped) = (false, false);
    let mut rest = text;
    while let Some(c) = rest.chars().next() {
        if !quoted && let Some(word) = WORDS.iter().find(|word| rest.starts_with(**word)) {
            plain.push_str("null");
            rest = &rest[word.len()..];
            continue;
        }
        match c {
            '"' if !escaped => quoted = !quoted,
            _ => {}
        }
        escaped = quoted && c == '\\' && !escaped;
        plain.push(c);
        rest = &rest[c.len_utf8()..];
    }
    plain
}

/// A description as it is written; keys that are not named here are passed over.
#[derive(Deserialize)]
struct Raw {
    r#type: String,
    dtype: Option<String>,
    shape: Option<Vec<usize>>,
    low: Option<Nested>,
    high: Option<Nested>,
    n: Option<Nested>,
    start: Option<Nested>,
    nvec: Option<Nested>,
    subspaces: Option<Parts>,
}

#[derive(Deserialize)]
#[serde(untagged, expecting = "expected spaces, named or in a list")]
enum Parts {
    Named(BTreeMap<String, Raw>),
    Listed(Vec<Raw>),
}

/// A number, `null` for one without an end, or lists of them however deep.
#[derive(Deserialize)]
#[serde(untagged, expecting = "expected numbers")]
enum Nested {
    Number(Option<Number>),
    List(Vec<Nested>),
}

impl Nested {
    /// All numbers, one after the other.
    fn flat<T>(&self, one: &impl Fn(Option<&Number>) -> Option<T>) -> Option<Vec<T>> {
        match self {
            Self::Number(number) => Some(vec![one(number.as_ref())?]),
            Self::List(parts) => {
                let mut all = Vec::new();
                for part in parts {
                    all.extend(part.flat(one)?);
                }
                Some(all)
            }
        }
    }

    /// Whole numbers; `None` if one is not.
    fn wholes(&self) -> Option<Vec<i64>> {
        self.flat(&|number| number?.as_i64())
    }
}

/// The numbers of a bound, `endless` where there is none.
fn bounds(raw: Option<Nested>, endless: f32) -> Vec<f32> {
    let number = |number: Option<&Number>| {
        Some(number.and_then(Number::as_f64).map_or(endless, |number| number as f32))
    };
    raw.and_then(|raw| raw.flat(&number)).unwrap_or_default()
}

impl Raw {
    fn space(self) -> Result<Space, String> {
        let Self { r#type: name, dtype, shape, low, high, n, start, nvec, subspaces } = self;
        let lacks = |key: &str| format!("a {name} space without `{key}`");
        let wholes = |key: &str, numbers: Option<Nested>| {
            let numbers = numbers.ok_or_else(|| lacks(key))?;
            numbers.wholes().ok_or_else(|| {
                format!("a {name} space whose `{key}` is not a whole number of 64 bits")
            })
        };
        let sizes = |key: &str, numbers: Option<Nested>| {
            let size = |n: i64| usize::try_from(n).ok().filter(|&n| n > 0);
            let sizes: Option<Vec<usize>> = wholes(key, numbers)?.into_iter().map(size).collect();
            sizes.filter(|sizes| !sizes.is_empty()).ok_or_else(|| format!("a {name} space of none"))
        };
        let start = start.map(|start| wholes("start", Some(start))).transpose()?;
        Ok(match name.as_str() {
            "Box" => Space::Box {
                dtype: dtype.ok_or_else(|| lacks("dtype"))?,
                shape: shape.ok_or_else(|| lacks("shape"))?,
                low: bounds(low, f32::NEG_INFINITY),
                high: bounds(high, f32::INFINITY),
            },
            "Discrete" => {
                let n = sizes("n", n)?;
                let start = start.and_then(|start| start.first().copied()).unwrap_or(0);
                Space::Discrete { n: n[0], start }
            }
            "MultiDiscrete" => {
                let sizes = sizes("nvec", nvec)?;
                let starts = start.unwrap_or_else(|| vec![0; sizes.len()]);
                if starts.len() != sizes.len() {
                    return Err(lacks("start of each number"));
                }
                Space::MultiDiscrete { sizes, starts }
            }
            "MultiBinary" => {
                let axes = sizes("n", n)?;
                let n = axes.iter().try_fold(1usize, |n, &axis| n.checked_mul(axis));
                let n = n.filter(|&n| n <= MOST_BITS).ok_or("a MultiBinary space beyond reason")?;
                Space::MultiBinary { n }
            }
            "Dict" | "Tuple" => match subspaces.ok_or_else(|| lacks("subspaces"))? {
                Parts::Named(parts) => {
                    let part = |(name, raw): (String, Raw)| Ok((name, raw.space()?));
                    Space::Dict(parts.into_iter().map(part).collect::<Result<_, String>>()?)
                }
                Parts::Listed(parts) => {
                    Space::Tuple(parts.into_iter().map(Raw::space).collect::<Result<_, _>>()?)
                }
            },
            _ => Space::Other(name),
        })
    }
}

/// The most bits of an observation that are taken.
const MOST_BITS: usize = 1 << 16;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn spaces_of_minari() {
        let reads = |text: &str| Space::parse(text).unwrap();
        // As `minari` 0.5.4 writes them.
        let text = r#"{"type": "Box", "dtype": "float64", "shape": [2],
            "low": [-Infinity, -1.0], "high": [Infinity, NaN]}"#;
        let reals = |low, high| Space::Box { dtype: "float64".into(), shape: vec![2], low, high };
        let low = vec![f32::NEG_INFINITY, -1.0];
        assert_eq!(reads(text), reals(low, vec![f32::INFINITY; 2]));
        let text = r#"{"type": "Box", "dtype": "float64", "shape": [2]}"#;
        assert_eq!(reads(text), reals(vec![], vec![]));
        let text = r#"{"type": "Discrete", "dtype": "int64", "start": -1, "n": 3}"#;
        assert_eq!(reads(text), Space::Discrete { n: 3, start: -1 });
        let text = r#"{"type": "MultiDiscrete", "dtype": "int64", "nvec": [[3, 2], [4, 5]],
            "start": [[0, 1], [0, 0]]}"#;
        let expected = Space::MultiDiscrete { sizes: vec![3, 2, 4, 5], starts: vec![0, 1, 0, 0] };
        assert_eq!(reads(text), expected);
        let bits = Space::MultiBinary { n: 6 };
        assert_eq!(reads(r#"{"type": "MultiBinary", "n": [2, 3]}"#), bits);
        assert_eq!(reads(r#"{"type": "MultiBinary", "n": 6}"#), bits);
        let text = r#"{"type": "Dict", "subspaces": {"b": {"type": "Text", "max_length": 3},
            "a": {"type": "Tuple", "subspaces": [{"type": "Discrete", "n": 2}]}}}"#;
        let tuple = Space::Tuple(vec![Space::Discrete { n: 2, start: 0 }]);
        let parts = [("a".to_owned(), tuple), ("b".to_owned(), Space::Other("Text".into()))];
        assert_eq!(reads(text), Space::Dict(parts.into()));
    }

    #[test]
    fn what_is_no_space() {
        for (text, expected) in [
            ("", "EOF"),
            ("[]", "invalid length"),
            (r#"{"type": "Box", "dtype": "float32"}"#, "without `shape`"),
            (r#"{"type": "Box", "dtype": "f", "shape": [1], "low": ["a"]}"#, "expected numbers"),
            (r#"{"type": "Discrete"}"#, "without `n`"),
            (r#"{"type": "Discrete", "n": 0}"#, "of none"),
            (r#"{"type": "Discrete", "n": 18446744073709551615}"#, "`n` is not a whole number"),
            (r#"{"type": "MultiDiscrete", "nvec": [2, 2], "start": [0]}"#, "start of each"),
            (r#"{"type": "MultiBinary", "n": [4294967296, 4294967296]}"#, "beyond reason"),
            (r#"{"type": "Dict"}"#, "without `subspaces`"),
        ] {
            let error = Space::parse(text).unwrap_err();
            assert!(error.contains(expected), "{text}: {error}");
        }
        let deep = format!("{}{}", r#"{"type":"Tuple","subspaces":["#.repeat(5000), "");
        assert!(Space::parse(&deep).unwrap_err().contains("recursion"));
    }

    #[test]
    fn words_in_texts_stay() {
        let text = r#"{"a": "Infinity \" NaN", "b": [-Infinity, 1e5, NaN], "c": "\\"}"#;
        let plain = r#"{"a": "Infinity \" NaN", "b": [null, 1e5, null], "c": "\\"}"#;
        assert_eq!(plain_json(text), plain);
    }
}
