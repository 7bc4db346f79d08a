//! The kinds of attention, and the words that name them.

use std::{fmt, str::FromStr};

/// How queries are compared with keys.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Kind {
    /// burn's `MultiHeadAttention`.
    Softmax,
    /// `FourierAttention`.
    Fourier {
        /// Of each factor.
        power: u32,
        /// Every `R` at the start.
        initial: f64,
        /// One `R` for each dimension, which heads share, and not one for the layer.
        vector: bool,
    },
}

impl fmt::Display for Kind {
    /// `softmax`, `fourier4`, `fourier4/R2`, `fourier4/R2/vector`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self::Fourier { power, initial, vector } = self else { return f.write_str("softmax") };
        let vector = if *vector { "/vector" } else { "" };
        write!(f, "fourier{power}/R{initial}{vector}")
    }
}

impl FromStr for Kind {
    type Err = String;

    fn from_str(word: &str) -> Result<Self, String> {
        let no_kind = || "expected softmax, fourier4, fourier4/R2 or fourier4/R2/vector".to_owned();
        if word == "softmax" {
            return Ok(Self::Softmax);
        }
        let mut parts = word.split('/');
        let power = parts.next().and_then(|part| part.strip_prefix("fourier")?.parse().ok());
        let power = power.filter(|power: &u32| *power > 0 && power.is_multiple_of(2));
        let (mut initial, mut vector) = (1.0, false);
        for part in parts {
            match part.strip_prefix('R').map(str::parse) {
                Some(Ok(r)) if r > 0.0 && r < f64::INFINITY => initial = r,
                None if part == "vector" => vector = true,
                _ => return Err(no_kind()),
            }
        }
        power.map(|power| Self::Fourier { power, initial, vector }).ok_or_else(no_kind)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_and_kinds() {
        for word in ["softmax", "fourier4/R1", "fourier2/R0.5", "fourier6/R3/vector"] {
            assert_eq!(word.parse::<Kind>().unwrap().to_string(), word);
        }
        let plain = Kind::Fourier { power: 4, initial: 1.0, vector: false };
        assert_eq!("fourier4".parse(), Ok(plain));
        for word in ["", "fourier", "fourier3", "fourier0", "fourier4/r2", "fourier4/R-1", "soft"] {
            assert!(word.parse::<Kind>().is_err(), "{word}");
        }
    }
}
