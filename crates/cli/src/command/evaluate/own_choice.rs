//! [`OwnChoice`]: a run's chosen acting mode, and the settings that override it.

use anyhow::Result;
use overtone_core::{ActingMode, Play};
use overtone_eval::Choice;
use overtone_settings::Choosable;
use overtone_train::{Checkpoint, RunDir, run_dir::CONFIG};

/// A run's chosen acting mode, and the settings that override it.
#[derive(Clone, Debug, Default)]
pub struct OwnChoice {
    /// The choice, if one was made.
    pub choice: Option<Choice>,
    /// The run's settings of temperature, return quantile and top percent.
    settings: [Choosable; 3],
}

impl OwnChoice {
    /// The choice in `checkpoint`, with the settings of `run`.
    ///
    /// # Errors
    /// When they cannot be read.
    pub fn of(run: &RunDir, checkpoint: &Checkpoint) -> Result<Self> {
        let settings = overtone_settings::chosen_of(&run.path().join(CONFIG))?;
        Ok(Self { choice: Choice::read(&checkpoint.path.join(Choice::FILE))?, settings })
    }

    /// The choice, or with `top_percent` the choice among its modes only.
    pub fn choice(&self, top_percent: Option<f32>) -> Option<Choice> {
        let choice = self.choice.clone()?;
        match top_percent {
            None => Some(choice),
            Some(percent) => choice.among_top_percent(percent),
        }
    }

    /// The acting mode of the run's settings; those that are `chosen` are as in `matched`, the
    /// protocol of training.
    pub fn from_settings(&self, matched: &Play) -> ActingMode {
        let ([temperature, return_quantile, top_percent], usual) = (self.settings, matched.acting);
        ActingMode {
            temperature: temperature.or(usual.temperature),
            return_quantile: return_quantile.or(usual.return_quantile),
            top_percent: top_percent.or(usual.top_percent),
        }
    }

    /// The chosen acting mode, or without a choice the mode of the [settings](Self::from_settings).
    pub fn chosen(&self, matched: &Play, top_percent: Option<f32>) -> ActingMode {
        let chosen = self.choice(top_percent).map(|choice| choice.chosen);
        let chosen = chosen.unwrap_or_else(|| self.from_settings(matched));
        ActingMode { top_percent: top_percent.unwrap_or(chosen.top_percent), ..chosen }
    }

    /// The run's own protocol: its settings, and the choice for those that are `chosen`.
    pub fn own(&self, matched: &Play) -> Play {
        let [temperature, return_quantile, top_percent] = self.settings;
        let chosen = self.chosen(matched, top_percent.fixed());
        let acting = ActingMode {
            temperature: temperature.or(chosen.temperature),
            return_quantile: return_quantile.or(chosen.return_quantile),
            top_percent: chosen.top_percent,
        };
        Play { acting, ..matched.clone() }
    }
}
