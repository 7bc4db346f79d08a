//! Bounds in files: numbers, and words for infinity, which JSON cannot write as a number.

use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// A bound in a file.
#[derive(Serialize, Deserialize)]
#[serde(untagged)]
enum Bound {
    Finite(f32),
    Word(Word),
}

#[derive(Serialize, Deserialize)]
enum Word {
    #[serde(rename = "-inf")]
    Lowest,
    #[serde(rename = "inf")]
    Highest,
}

/// Writes bounds.
///
/// # Errors
/// When the serializer fails.
pub fn serialize<S: Serializer>(bounds: &[f32], serializer: S) -> Result<S::Ok, S::Error> {
    serializer.collect_seq(bounds.iter().map(|&bound| match bound {
        f32::NEG_INFINITY => Bound::Word(Word::Lowest),
        f32::INFINITY => Bound::Word(Word::Highest),
        bound => Bound::Finite(bound),
    }))
}

/// Reads bounds.
///
/// # Errors
/// When a bound is not a number, `-inf` or `inf`.
pub fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Vec<f32>, D::Error> {
    let bounds = Vec::<Bound>::deserialize(deserializer)?;
    let number = |bound: Bound| match bound {
        Bound::Finite(bound) => bound,
        Bound::Word(Word::Lowest) => f32::NEG_INFINITY,
        Bound::Word(Word::Highest) => f32::INFINITY,
    };
    Ok(bounds.into_iter().map(number).collect())
}
