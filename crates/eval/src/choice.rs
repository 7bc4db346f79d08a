//! [`Choice`]: the mode of playing that suits an agent, and how it was found.
//!
//! Two settings of play change what an agent earns as much as its head does, each agent's in its
//! own mode. Softmax temperature: one that learned from near-random policies gains when it is
//! sharpened, another then repeats one action for ever. The quantile of what may be earned that an
//! agent asks for at most: where learners were recorded it is failure, where good policies were it
//! keeps the agent to what it knows. So none is right for all, and a choice by the episodes that a
//! score is made of would flatter the score: it is made by episodes of another seed.

use std::{fs, io::ErrorKind, path::Path};

use overtone_core::ActingMode;
use serde::{Deserialize, Serialize};

use crate::{ReportError, Summary, evaluation::write_json};

/// What an agent earned in a mode.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ChoicePoint {
    /// The mode.
    pub mode: ActingMode,
    /// Scores.
    pub raw_return: Summary,
}

/// The mode in which a run's agent is played, and the episodes it was chosen by.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Choice {
    /// Updates of the weights that were played.
    pub step: u64,
    /// The return that was asked for.
    pub target: f32,
    /// Seed of the episodes.
    pub seed: u64,
    /// The rule in words.
    pub rule: String,
    /// The modes there were, in the order in which they were named.
    pub curve: Vec<ChoicePoint>,
    /// The one of the highest mean; the first of equal ones.
    pub chosen: ActingMode,
}

/// How a mode is chosen, as it is said.
const RULE: &str = "the highest mean raw return, in episodes that no score is made of";

/// A setting that modes differ in: its name, and its value in a mode.
pub type Differing = (&'static str, fn(&ActingMode) -> f32);

/// All settings of a mode.
const SETTINGS: [Differing; 3] = [
    ("temperature", |mode| mode.temperature),
    ("return quantile", |mode| mode.return_quantile),
    ("top percent", |mode| mode.top_percent),
];

impl Choice {
    /// File in the folder of the checkpoint that was played.
    pub const FILE: &str = "acting.json";

    /// The choice among `curve`; `None` where it is empty.
    pub fn of(step: u64, target: f32, seed: u64, curve: Vec<ChoicePoint>) -> Option<Self> {
        let mut points = curve.iter();
        let first = points.next()?;
        let better =
            |best: &ChoicePoint, point: &ChoicePoint| point.raw_return.mean > best.raw_return.mean;
        let best = points.fold(first, |best, point| if better(best, point) { point } else { best });
        let chosen = best.mode;
        Some(Self { step, target, seed, rule: RULE.into(), curve, chosen })
    }

    /// The same choice among the modes of this [`ActingMode::top_percent`] alone; `None` where there were
    /// none.
    pub fn among_best(self, top_percent: f32) -> Option<Self> {
        let Self { step, target, seed, mut curve, .. } = self;
        curve.retain(|point| point.mode.top_percent == top_percent);
        Self::of(step, target, seed, curve)
    }

    /// Writes it, as a whole or not at all.
    ///
    /// # Errors
    /// When the file cannot be written.
    pub fn write(&self, path: &Path) -> Result<(), ReportError> {
        write_json(path, self, |source| ReportError::Choice { path: path.to_path_buf(), source })
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
        let wrong = |source| ReportError::Choice { path: path.to_path_buf(), source };
        serde_json::from_slice(&json).map(Some).map_err(wrong)
    }

    /// Whether there was more than one mode to choose from.
    pub fn is_one(&self) -> bool {
        self.curve.len() > 1
    }

    /// The settings in which its modes differ; of one mode those that change what an agent does.
    pub fn settings(&self) -> Vec<Differing> {
        let as_trained = ActingMode::default();
        let mut modes: Vec<&ActingMode> = self.curve.iter().map(|point| &point.mode).collect();
        if !self.is_one() {
            modes.push(&as_trained);
        }
        let differ = |(_, of): &Differing| modes.windows(2).any(|pair| of(pair[0]) != of(pair[1]));
        SETTINGS.into_iter().filter(differ).collect()
    }

    /// The names of those settings: `temperature and return quantile`.
    pub fn what(&self) -> String {
        let names: Vec<&str> = self.settings().iter().map(|(name, _)| *name).collect();
        match &names[..] {
            [] => "one mode".into(),
            [.., "return quantile", "top percent"] => {
                let others = names[..names.len() - 2].iter().map(|name| format!("{name} and "));
                others.collect::<String>() + "return quantile or top percent"
            }
            _ => names.join(" and "),
        }
    }

    /// A mode by those settings: `0.5`, or `0.5 and 0.9`; one that is told a share of the best
    /// episodes by that in place of a quantile, `top 10 %`.
    pub fn label(&self, mode: &ActingMode) -> String {
        let value = |(name, of): Differing| match name {
            "top percent" if of(mode) == 0.0 => "a return".into(),
            "top percent" => format!("top {} %", of(mode)),
            _ => of(mode).to_string(),
        };
        let heeded = self.heeded(mode).into_iter();
        heeded.map(value).collect::<Vec<_>>().join(" and ")
    }

    /// Those settings, without the one that a mode is not told.
    fn heeded(&self, mode: &ActingMode) -> Vec<Differing> {
        let other = if mode.top_percent > 0.0 { "return quantile" } else { "top percent" };
        let mut settings = self.settings();
        let differs = |of: &str| settings.iter().any(|(name, _)| *name == of);
        if differs("return quantile") && differs("top percent") {
            settings.retain(|(name, _)| *name != other);
        }
        settings
    }

    /// The chosen mode in words: `top 50 %`, `temperature 0.5, return quantile 0.9`.
    pub fn mode(&self) -> String {
        let value = |(name, of): Differing| match (name, of(&self.chosen)) {
            ("top percent", 0.0) => "a target return".into(),
            ("top percent", percent) => format!("top {percent} %"),
            (name, value) => format!("{name} {value}"),
        };
        match self.heeded(&self.chosen) {
            settings if settings.is_empty() => "as trained".into(),
            settings => settings.into_iter().map(value).collect::<Vec<_>>().join(", "),
        }
    }

    /// The mode and how it was found: `top 50 % (best of 7 by 140 episodes)`.
    pub fn describe(&self) -> String {
        let n_episodes: usize = self.curve.iter().map(|point| point.raw_return.n).sum();
        let how = match self.curve.len() {
            1 => "the only mode".to_owned(),
            n => format!("best of {n} by {n_episodes} episodes"),
        };
        format!("{} ({how})", self.mode())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn curve(of: &[([f32; 2], &[f64])]) -> Vec<ChoicePoint> {
        let point = |&([temperature, return_quantile], returns): &([f32; 2], &[f64])| ChoicePoint {
            mode: ActingMode { temperature, return_quantile, top_percent: 0.0 },
            raw_return: Summary::of(returns).unwrap(),
        };
        of.iter().map(point).collect()
    }

    fn chosen(from: &[([f32; 2], &[f64])]) -> Option<Choice> {
        Choice::of(4, 5.0, 1001, curve(from))
    }

    #[test]
    fn the_highest_mean_is_chosen_and_of_equal_ones_the_first() {
        let all: [([f32; 2], &[f64]); 3] =
            [([1.0, 1.0], &[3.0, 1.0]), ([0.5, 1.0], &[4.0, 2.0]), ([0.25, 1.0], &[3.0, 3.0])];
        let temperature = |from| chosen(from).map(|choice| choice.chosen.temperature);
        assert_eq!(temperature(&all), Some(0.5));
        assert_eq!(temperature(&all[2..]), Some(0.25));
        assert_eq!(temperature(&[]), None);
    }

    #[test]
    fn a_choice_is_read_as_it_was_written_and_told() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join(Choice::FILE);
        assert_eq!(Choice::read(&path).unwrap(), None);
        let choice = chosen(&[([1.0, 1.0], &[3.0, 1.0]), ([0.1, 1.0], &[4.0, 2.0])]).unwrap();
        choice.write(&path).unwrap();
        assert_eq!(Choice::read(&path).unwrap(), Some(choice.clone()));
        assert_eq!(choice.describe(), "temperature 0.1 (best of 2 by 4 episodes)");
        fs::write(&path, "{}").unwrap();
        assert!(Choice::read(&path).is_err());
    }

    #[test]
    fn a_mode_names_a_top_percent_or_a_return_and_its_quantile() {
        let told = |modes: &[[f32; 3]]| {
            let point = |&[temperature, return_quantile, top_percent]: &[f32; 3]| ChoicePoint {
                mode: ActingMode { temperature, return_quantile, top_percent },
                raw_return: Summary::of(&[3.0]).unwrap(),
            };
            let choice = Choice::of(4, 5.0, 1001, modes.iter().map(point).collect()).unwrap();
            let modes = choice.curve.iter().map(|point| point.mode);
            let labels: Vec<String> = modes.clone().map(|mode| choice.label(&mode)).collect();
            let chosen = |chosen| Choice { chosen, ..choice.clone() }.mode();
            (labels.join(", "), modes.map(chosen).collect::<Vec<_>>().join("; "))
        };
        let expect = |labels: &str, modes: &str| (labels.to_owned(), modes.to_owned());
        let with_temperatures = [[1.0, 1.0, 0.0], [1.0, 1.0, 10.0], [0.5, 1.0, 0.0]];
        let modes = "temperature 1, a target return; temperature 1, top 10 %; temperature 0.5, a \
                     target return";
        let labels = "1 and a return, 1 and top 10 %, 0.5 and a return";
        assert_eq!(told(&with_temperatures), expect(labels, modes));
        let shares = [[1.0, 0.9, 0.0], [1.0, 0.9, 10.0]];
        assert_eq!(told(&shares), expect("a return, top 10 %", "a target return; top 10 %"));
        let with_quantiles = [[1.0, 0.9, 0.0], [1.0, 0.5, 0.0], [1.0, 0.9, 10.0]];
        let modes = "return quantile 0.9; return quantile 0.5; top 10 %";
        assert_eq!(told(&with_quantiles), expect("0.9, 0.5, top 10 %", modes));
    }

    #[test]
    fn only_what_differs_is_told() {
        let told = |from: &[([f32; 2], &[f64])]| chosen(from).unwrap().describe();
        let of_quantiles = told(&[([1.0, 0.9], &[3.0]), ([1.0, 0.5], &[4.0])]);
        assert_eq!(of_quantiles, "return quantile 0.5 (best of 2 by 2 episodes)");
        let of_both = told(&[([1.0, 0.9], &[3.0]), ([0.5, 0.5], &[2.0])]);
        assert_eq!(of_both, "temperature 1, return quantile 0.9 (best of 2 by 2 episodes)");
        let of_one = told(&[([0.25, 1.0], &[3.0])]);
        assert_eq!(of_one, "temperature 0.25 (the only mode)");
        assert_eq!(told(&[([1.0, 1.0], &[3.0])]), "as trained (the only mode)");
    }
}
