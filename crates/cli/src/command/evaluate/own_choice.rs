//! [`OwnChoice`]: what was chosen for a run, and what its settings leave of that.

use anyhow::Result;
use overtone_core::Play;
use overtone_eval::{Choice, Way};
use overtone_train::{Checkpoint, RunDir, run_dir::CONFIG};

use crate::settings::{self, Choosable};

/// What was chosen for a run, and what its settings say about that.
#[derive(Clone, Debug, Default)]
pub struct OwnChoice {
    /// The choice; `None` where none was made.
    pub choice: Option<Choice>,
    /// What the run's settings say of temperature, return quantile and best percent.
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

    /// The choice, or that among the ways of this best percent alone.
    pub fn choice(&self, best_percent: Option<f32>) -> Option<Choice> {
        let choice = self.choice.clone()?;
        match best_percent {
            None => Some(choice),
            Some(percent) => choice.among_best(percent),
        }
    }

    /// What the run's settings say, and what they leave open as in `matched`, by which the agent
    /// was trained.
    pub fn said(&self, matched: &Play) -> Way {
        let ([temperature, return_quantile, best_percent], usual) = (self.said, Way::of(matched));
        Way {
            temperature: temperature.or(usual.temperature),
            return_quantile: return_quantile.or(usual.return_quantile),
            best_percent: best_percent.or(usual.best_percent),
        }
    }

    /// What was chosen so; what the settings [say](Self::said) where nothing was.
    pub fn chosen(&self, matched: &Play, best_percent: Option<f32>) -> Way {
        let chosen = self.choice(best_percent).map(|choice| choice.chosen);
        let chosen = chosen.unwrap_or_else(|| self.said(matched));
        Way { best_percent: best_percent.unwrap_or(chosen.best_percent), ..chosen }
    }

    /// How the run is played by its own settings.
    pub fn own(&self, matched: &Play) -> Play {
        let [temperature, return_quantile, best_percent] = self.said;
        let chosen = self.chosen(matched, best_percent.fixed());
        let way = Way {
            temperature: temperature.or(chosen.temperature),
            return_quantile: return_quantile.or(chosen.return_quantile),
            best_percent: chosen.best_percent,
        };
        way.playing(matched)
    }
}
