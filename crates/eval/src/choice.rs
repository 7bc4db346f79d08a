//! [`Choice`]: the acting mode chosen for an agent, and the evaluations behind the choice.
//!
//! Two acting settings affect the return of an agent as much as its head does, and their best
//! values depend on the agent:
//! - Softmax temperature. A lower temperature helps an agent that was trained on near-random
//!   policies. Another agent then repeats one action forever.
//! - Return quantile: the upper bound of the target as a quantile of the predicted return. On data
//!   from agents that were still learning, a lower quantile corresponds to failures. On data from
//!   good policies it keeps the agent close to the data.
//!
//! No single value suits all agents, so the mode is chosen for each run, by a
//! [selection](crate::selection). A choice by the scored episodes would bias the score, so the choice
//! uses episodes with another seed.

use std::path::Path;

use overtone_core::{ActingMode, counted};
use serde::{Deserialize, Serialize};

use crate::{
    report_file::{ReportError, read_json_if_any, write_json},
    summary::Summary,
};

/// The contents of a choice's file in an error.
const WHAT: &str = "a chosen acting mode: delete it and choose again (`overtone evaluate choose`)";

/// The returns of one acting mode.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ChoicePoint {
    /// The acting mode.
    pub mode: ActingMode,
    /// Returns of the mode's episodes; absent without episodes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub raw_return: Option<Summary>,
}

/// Several runs from which the run of a choice was chosen, with its mode.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Portfolio {
    /// The directories of all runs.
    pub runs: Vec<String>,
    /// Episodes of all modes of all runs.
    pub episodes: usize,
}

impl Portfolio {
    /// The size of the comparison: `the best of 2 runs by 35 episodes`.
    pub fn describe(&self) -> String {
        match (self.runs.len(), self.episodes) {
            (n, 0) => format!("the first of {n} runs, without episodes"),
            (n, episodes) => format!("the best of {n} runs by {}", counted(episodes, "episode")),
        }
    }
}

/// The acting mode chosen for a run, and the evaluations behind the choice.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Choice {
    /// Updates of the evaluated weights.
    pub step: u64,
    /// The target return.
    pub target: f32,
    /// Seed of the episodes.
    pub seed: u64,
    /// Name of the [rule](crate::selection::Rule) that placed the episodes.
    pub rule: String,
    /// The run's candidate modes in their given order, with their returns.
    pub curve: Vec<ChoicePoint>,
    /// The mode with the highest expected return; the first one on ties and without episodes.
    pub chosen: ActingMode,
    /// The runs that were compared; absent if this run was the only one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub portfolio: Option<Portfolio>,
}

/// A setting in which modes differ: its name, and a function that returns its value.
pub type ModeSetting = (&'static str, fn(&ActingMode) -> f32);

/// All settings of an acting mode.
const SETTINGS: [ModeSetting; 3] = [
    ("temperature", |mode| mode.temperature),
    ("return quantile", |mode| mode.return_quantile),
    ("top percent", |mode| mode.top_percent),
];

impl Choice {
    /// File name in the directory of the evaluated checkpoint.
    pub const FILE: &str = "acting.json";

    /// Episodes that made the choice: of all modes, and of all runs of a portfolio.
    pub fn episodes(&self) -> usize {
        self.portfolio.as_ref().map_or_else(|| self.own_episodes(), |all| all.episodes)
    }

    /// Episodes of this run's modes.
    fn own_episodes(&self) -> usize {
        self.curve.iter().filter_map(|point| point.raw_return.as_ref()).map(|all| all.n).sum()
    }

    /// The choice from only the modes with this [`ActingMode::top_percent`]: the chosen mode if it
    /// is one of them, else the one with the highest mean, the first one on ties. `None` if there
    /// are none.
    pub fn among_top_percent(self, top_percent: f32) -> Option<Self> {
        let mut curve = self.curve;
        curve.retain(|point| point.mode.top_percent == top_percent);
        let mean = |point: &ChoicePoint| {
            point.raw_return.as_ref().map_or(f64::NEG_INFINITY, |summary| summary.mean)
        };
        let higher = |best, point| if mean(point) > mean(best) { point } else { best };
        let highest = curve.iter().reduce(higher)?.mode;
        let is_one_of_them = self.chosen.top_percent == top_percent;
        let chosen = if is_one_of_them { self.chosen } else { highest };
        Some(Self { curve, chosen, ..self })
    }

    /// Writes the choice atomically.
    ///
    /// # Errors
    /// When the file cannot be written.
    pub fn write(&self, path: &Path) -> Result<(), ReportError> {
        write_json(path, self, WHAT)
    }

    /// Reads a choice written by [`write`](Self::write); `None` if the file does not exist.
    ///
    /// # Errors
    /// When the file cannot be read or is not a choice.
    pub fn read(path: &Path) -> Result<Option<Self>, ReportError> {
        read_json_if_any(path, WHAT)
    }

    /// Whether there were several modes or runs to choose from.
    pub fn has_alternatives(&self) -> bool {
        self.curve.len() > 1 || self.portfolio.is_some()
    }

    /// The settings in which the modes differ. A single mode is compared with the default mode.
    pub fn settings(&self) -> Vec<ModeSetting> {
        let as_trained = ActingMode::default();
        let mut modes: Vec<&ActingMode> = self.curve.iter().map(|point| &point.mode).collect();
        if modes.len() == 1 {
            modes.push(&as_trained);
        }
        let differ =
            |(_, of): &ModeSetting| modes.windows(2).any(|pair| of(pair[0]) != of(pair[1]));
        SETTINGS.into_iter().filter(differ).collect()
    }

    /// The names of [`settings`](Self::settings), such as `temperature and return quantile`.
    pub fn setting_names(&self) -> String {
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

    /// The values of [`settings`](Self::settings) in `mode`, such as `0.5 and 0.9`. A mode with a
    /// top percent shows it instead of a quantile: `top 10 %`.
    pub fn label(&self, mode: &ActingMode) -> String {
        let value = |(name, of): ModeSetting| match name {
            "top percent" if of(mode) == 0.0 => "a return".into(),
            "top percent" => format!("top {} %", of(mode)),
            _ => of(mode).to_string(),
        };
        let settings = self.used_settings(mode).into_iter();
        settings.map(value).collect::<Vec<_>>().join(" and ")
    }

    /// The settings that `mode` uses: either the return quantile or the top percent.
    fn used_settings(&self, mode: &ActingMode) -> Vec<ModeSetting> {
        let unused = if mode.top_percent > 0.0 { "return quantile" } else { "top percent" };
        let mut settings = self.settings();
        let differs = |setting: &str| settings.iter().any(|(name, _)| *name == setting);
        if differs("return quantile") && differs("top percent") {
            settings.retain(|(name, _)| *name != unused);
        }
        settings
    }

    /// The chosen mode as text: `top 50 %` or `temperature 0.5, return quantile 0.9`.
    pub fn mode(&self) -> String {
        self.mode_text(&self.chosen)
    }

    /// A mode as text: `top 50 %` or `temperature 0.5, return quantile 0.9`.
    pub fn mode_text(&self, mode: &ActingMode) -> String {
        let value = |(name, of): ModeSetting| match (name, of(mode)) {
            ("top percent", 0.0) => "a target return".into(),
            ("top percent", percent) => format!("top {percent} %"),
            (name, value) => format!("{name} {value}"),
        };
        match self.used_settings(mode) {
            settings if settings.is_empty() => "as trained".into(),
            settings => settings.into_iter().map(value).collect::<Vec<_>>().join(", "),
        }
    }

    /// The chosen mode and the size of the comparison: `top 50 % (best of 7 by 140 episodes)`, and
    /// for a portfolio `top 50 % (best of 7 by 20 episodes; the best of 2 runs by 35
    /// episodes)`.
    pub fn describe(&self) -> String {
        let how = match (self.curve.len(), self.own_episodes()) {
            (1, _) => "the only mode".to_owned(),
            (n, 0) => format!("the first of {n}, without episodes"),
            (n, episodes) => {
                let episodes = counted(episodes, "episode");
                match self.curve.iter().filter(|p| p.raw_return.is_some()).count() {
                    played if played < n => {
                        format!("best of {n} by {episodes}, {played} of {n} modes played")
                    }
                    _ => format!("best of {n} by {episodes}"),
                }
            }
        };
        let portfolio = self.portfolio.as_ref().map(Portfolio::describe);
        let how = [Some(how), portfolio].into_iter().flatten().collect::<Vec<_>>().join("; ");
        format!("{} ({how})", self.mode())
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    fn curve(points: &[([f32; 2], &[f64])]) -> Vec<ChoicePoint> {
        let point = |&([temperature, return_quantile], returns): &([f32; 2], &[f64])| ChoicePoint {
            mode: ActingMode { temperature, return_quantile, top_percent: 0.0 },
            raw_return: Summary::of(returns),
        };
        points.iter().map(point).collect()
    }

    fn of(curve: Vec<ChoicePoint>) -> Option<Choice> {
        let chosen = ActingMode { top_percent: 10.0, ..ActingMode::default() };
        let rule = "even".into();
        let choice =
            Choice { step: 4, target: 5.0, seed: 1001, rule, curve, chosen, portfolio: None };
        choice.among_top_percent(0.0)
    }

    fn chosen(from: &[([f32; 2], &[f64])]) -> Option<Choice> {
        of(curve(from))
    }

    #[test]
    fn the_highest_mean_is_chosen_and_the_first_mode_on_ties() {
        let all: [([f32; 2], &[f64]); 4] = [
            ([1.0, 1.0], &[3.0, 1.0]),
            ([2.0, 1.0], &[]),
            ([0.5, 1.0], &[4.0, 2.0]),
            ([0.25, 1.0], &[3.0, 3.0]),
        ];
        let temperature = |from| chosen(from).map(|choice| choice.chosen.temperature);
        assert_eq!(temperature(&all), Some(0.5));
        assert_eq!(temperature(&all[3..]), Some(0.25));
        assert_eq!(temperature(&[]), None);
        assert_eq!(chosen(&all).unwrap().episodes(), 6);
        // A rule may keep another mode than the one with the highest mean.
        let choice = Choice { chosen: curve(&all)[3].mode, ..chosen(&all).unwrap() };
        assert_eq!(choice.clone().among_top_percent(0.0).unwrap().chosen, choice.chosen);
    }

    #[test]
    fn a_choice_round_trips_through_its_file() {
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
        let described = |modes: &[[f32; 3]]| {
            let point = |&[temperature, return_quantile, top_percent]: &[f32; 3]| ChoicePoint {
                mode: ActingMode { temperature, return_quantile, top_percent },
                raw_return: Summary::of(&[3.0]),
            };
            let (curve, chosen) = (modes.iter().map(point).collect(), ActingMode::default());
            let rule = "even".into();
            let choice =
                Choice { step: 4, target: 5.0, seed: 1001, rule, curve, chosen, portfolio: None };
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
        assert_eq!(described(&with_temperatures), expect(labels, modes));
        let percents = [[1.0, 0.9, 0.0], [1.0, 0.9, 10.0]];
        assert_eq!(described(&percents), expect("a return, top 10 %", "a target return; top 10 %"));
        let with_quantiles = [[1.0, 0.9, 0.0], [1.0, 0.5, 0.0], [1.0, 0.9, 10.0]];
        let modes = "return quantile 0.9; return quantile 0.5; top 10 %";
        assert_eq!(described(&with_quantiles), expect("0.9, 0.5, top 10 %", modes));
    }

    #[test]
    fn only_differing_settings_are_described() {
        let described = |from: &[([f32; 2], &[f64])]| chosen(from).unwrap().describe();
        let of_quantiles = described(&[([1.0, 0.9], &[3.0]), ([1.0, 0.5], &[4.0])]);
        assert_eq!(of_quantiles, "return quantile 0.5 (best of 2 by 2 episodes)");
        let of_both = described(&[([1.0, 0.9], &[3.0]), ([0.5, 0.5], &[2.0])]);
        assert_eq!(of_both, "temperature 1, return quantile 0.9 (best of 2 by 2 episodes)");
        let of_few = described(&[([1.0, 1.0], &[3.0]), ([0.5, 1.0], &[]), ([0.25, 1.0], &[])]);
        assert_eq!(of_few, "temperature 1 (best of 3 by 1 episode, 1 of 3 modes played)");
        let of_one = described(&[([0.25, 1.0], &[3.0])]);
        assert_eq!(of_one, "temperature 0.25 (the only mode)");
        assert_eq!(described(&[([1.0, 1.0], &[3.0])]), "as trained (the only mode)");
    }

    #[test]
    fn a_portfolio_counts_the_episodes_of_all_its_runs() {
        let mut choice = chosen(&[([1.0, 1.0], &[3.0]), ([0.1, 1.0], &[4.0, 2.0])]).unwrap();
        assert_eq!((choice.episodes(), choice.has_alternatives()), (3, true));
        choice.portfolio = Some(Portfolio { runs: vec!["a".into(), "b".into()], episodes: 35 });
        assert_eq!(choice.episodes(), 35);
        let words = "temperature 1 (best of 2 by 3 episodes; the best of 2 runs by 35 episodes)";
        assert_eq!(choice.describe(), words);
        choice.curve.pop();
        assert!(choice.has_alternatives(), "another run");
        let written = serde_json::to_string(&choice).unwrap();
        assert_eq!(serde_json::from_str::<Choice>(&written).unwrap(), choice);
        assert_eq!(choice.among_top_percent(0.0).unwrap().episodes(), 35);
    }
}
