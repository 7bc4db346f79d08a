//! [`OwnChoice`]: what was chosen for a run, and what its settings leave of that.

use anyhow::Result;
use overtone_core::{ActingMode, Play};
use overtone_eval::Choice;
use overtone_train::{Checkpoint, RunDir, run_dir::CONFIG};

use crate::settings::{self, Choosable};

/// What was chosen for a run, and what its settings say about that.
#[derive(Clone, Debug, Default)]
pub struct OwnChoice {
    /// The choice; `None` where none was made.
    pub choice: Option<Choice>,
    /// What the run's settings say of temperature, return quantile and top percent.
    said: [Choosable; 3],
}

impl OwnChoice {
    /// The acting mode in `checkpoint`, and what the settings of `run` say about it.
    ///
    /// # Errors
    /// When they cannot be read.
    pub fn of(run: &RunDir, checkpoint: &Checkpoint) -> Result<Self> {
        let said = settings::chosen_of(&run.path().join(CONFIG))?;
        Ok(Self { choice: Choice::read(&checkpoint.path.join(Choice::FILE))?, said })
    }

    /// The choice, or that among the modes of this top percent alone.
    pub fn choice(&self, top_percent: Option<f32>) -> Option<Choice> {
        let choice = self.choice.clone()?;
        match top_percent {
            None => Some(choice),
            Some(percent) => choice.among_best(percent),
        }
    }

    /// What the run's settings say, and what they leave open as in `matched`, by which the agent
    /// was trained.
    pub fn said(&self, matched: &Play) -> ActingMode {
        let ([temperature, return_quantile, top_percent], usual) = (self.said, matched.acting);
        ActingMode {
            temperature: temperature.or(usual.temperature),
            return_quantile: return_quantile.or(usual.return_quantile),
            top_percent: top_percent.or(usual.top_percent),
        }
    }

    /// What was chosen so; what the settings [say](Self::said) where nothing was.
    pub fn chosen(&self, matched: &Play, top_percent: Option<f32>) -> ActingMode {
        let chosen = self.choice(top_percent).map(|choice| choice.chosen);
        let chosen = chosen.unwrap_or_else(|| self.said(matched));
        ActingMode { top_percent: top_percent.unwrap_or(chosen.top_percent), ..chosen }
    }

    /// How the run is played by its own settings.
    pub fn own(&self, matched: &Play) -> Play {
        let [temperature, return_quantile, top_percent] = self.said;
        let chosen = self.chosen(matched, top_percent.fixed());
        let acting = ActingMode {
            temperature: temperature.or(chosen.temperature),
            return_quantile: return_quantile.or(chosen.return_quantile),
            top_percent: chosen.top_percent,
        };
        Play { acting, ..matched.clone() }
    }
}
