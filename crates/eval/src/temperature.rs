//! [`TemperatureChoice`]: the softmax temperature that suits an agent, and how it was found.
//!
//! Temperature changes what an agent earns as much as its head does, each agent's in its own way:
//! one that learned from near-random policies gains when it is sharpened, another then repeats one
//! action for ever. So none is right for all, and a choice by the episodes that a score is made of
//! would flatter the score: it is made by episodes of another seed.

use std::{fs, io::ErrorKind, path::Path};

use serde::{Deserialize, Serialize};

use crate::{ReportError, Summary, evaluation::replace};

/// What an agent earned at a temperature.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TemperaturePoint {
    /// The temperature.
    pub temperature: f32,
    /// Scores.
    pub raw_return: Summary,
}

/// The temperature at which a run's agent is played, and the episodes it was chosen by.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TemperatureChoice {
    /// Updates of the weights that were played.
    pub step: u64,
    /// The return that was asked for.
    pub target: f32,
    /// Seed of the episodes.
    pub seed: u64,
    /// The rule in words.
    pub rule: String,
    /// The temperatures there were, in the order they were named.
    pub curve: Vec<TemperaturePoint>,
    /// The one of the highest mean; the first of equal ones.
    pub chosen: f32,
}

/// How a temperature is chosen, as it is said.
const RULE: &str = "the highest mean raw return, in episodes that no score is made of";

impl TemperatureChoice {
    /// File in a run's folder.
    pub const FILE: &str = "temperature.json";

    /// The choice among `curve`; `None` where it is empty.
    pub fn of(step: u64, target: f32, seed: u64, curve: Vec<TemperaturePoint>) -> Option<Self> {
        let mut points = curve.iter();
        let first = points.next()?;
        let better = |best: &TemperaturePoint, point: &TemperaturePoint| {
            point.raw_return.mean > best.raw_return.mean
        };
        let best = points.fold(first, |best, point| if better(best, point) { point } else { best });
        let chosen = best.temperature;
        Some(Self { step, target, seed, rule: RULE.into(), curve, chosen })
    }

    /// Writes it, as a whole or not at all.
    ///
    /// # Errors
    /// When the file cannot be written.
    pub fn write(&self, path: &Path) -> Result<(), ReportError> {
        let wrong = |source| ReportError::Temperature { path: path.to_path_buf(), source };
        let mut json = serde_json::to_vec_pretty(self).map_err(wrong)?;
        json.push(b'\n');
        replace(path, &json)
    }

    /// Reads what [`write`](Self::write) wrote; `None` where there is no file.
    ///
    /// # Errors
    /// When it cannot be read, or is no such choice.
    pub fn read(path: &Path) -> Result<Option<Self>, ReportError> {
        let json = match fs::read(path) {
            Ok(json) => json,
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
            Err(source) => return Err(ReportError::File { path: path.to_path_buf(), source }),
        };
        let wrong = |source| ReportError::Temperature { path: path.to_path_buf(), source };
        serde_json::from_slice(&json).map(Some).map_err(wrong)
    }

    /// `temperature 0.5 of 1, 0.5, 0.25: the highest mean … (5 of seed 1001 each, asked for 32)`.
    pub fn describe(&self) -> String {
        let all: Vec<String> = self.curve.iter().map(|at| at.temperature.to_string()).collect();
        let n = self.curve.first().map_or(0, |at| at.raw_return.n);
        format!(
            "temperature {} of {}: {} ({n} of seed {} each, asked for {})",
            self.chosen,
            all.join(", "),
            self.rule,
            self.seed,
            self.target
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn curve(of: &[(f32, &[f64])]) -> Vec<TemperaturePoint> {
        let point = |&(temperature, returns): &(f32, &[f64])| TemperaturePoint {
            temperature,
            raw_return: Summary::of(returns).unwrap(),
        };
        of.iter().map(point).collect()
    }

    #[test]
    fn the_highest_mean_is_chosen_and_of_equal_ones_the_first() {
        let all: [(f32, &[f64]); 3] = [(1.0, &[3.0, 1.0]), (0.5, &[4.0, 2.0]), (0.25, &[3.0, 3.0])];
        let chosen = |from: &[(f32, &[f64])]| {
            TemperatureChoice::of(4, 5.0, 1001, curve(from)).map(|choice| choice.chosen)
        };
        assert_eq!(chosen(&all), Some(0.5));
        assert_eq!(chosen(&all[2..]), Some(0.25));
        assert_eq!(chosen(&[]), None);
    }

    #[test]
    fn a_choice_is_read_as_it_was_written_and_told() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join(TemperatureChoice::FILE);
        assert_eq!(TemperatureChoice::read(&path).unwrap(), None);
        let all: [(f32, &[f64]); 2] = [(1.0, &[3.0, 1.0]), (0.1, &[4.0, 2.0])];
        let choice = TemperatureChoice::of(4, 5.0, 1001, curve(&all)).unwrap();
        choice.write(&path).unwrap();
        assert_eq!(TemperatureChoice::read(&path).unwrap(), Some(choice.clone()));
        let told = choice.describe();
        assert!(told.starts_with("temperature 0.1 of 1, 0.1: the highest"), "{told}");
        assert!(told.ends_with("(2 of seed 1001 each, asked for 5)"), "{told}");
        fs::write(&path, "{}").unwrap();
        assert!(TemperatureChoice::read(&path).is_err());
    }
}
