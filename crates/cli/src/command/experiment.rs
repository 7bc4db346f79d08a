//! [`Experiment`]: what `train` and `resume` ask of a kind of run.

mod atari;
mod continuous;

use anyhow::Result;
use overtone_core::Episodes;
use overtone_data::Split;
use overtone_train::Algorithm;

use crate::settings::Settings;

/// A kind of run: its settings, and what they lead to.
pub trait Experiment: Settings {
    /// How it learns.
    type Algorithm: Algorithm;

    /// The task as a part of a run's name: `seaquest`, `hopper-medium`.
    fn task(&self) -> String;

    /// The model as a part of a run's name.
    fn model_name(&self) -> String;

    /// The model in a few words, after its number of parameters.
    fn describe_model(&self) -> String;

    /// How long the run is, in a sentence.
    fn describe_profile(&self) -> String;

    /// Whether the published data is there.
    fn is_published(&self) -> bool;

    /// Finds out before training whether the agent can be played afterwards.
    ///
    /// # Errors
    /// When the task is unknown, or what plays it is missing, in one sentence.
    fn check_playable(&self) -> Result<()>;

    /// Finds the data, prepares it where that was not done yet, says so, and puts the model
    /// beside it.
    ///
    /// # Errors
    /// When the data is missing or broken, or the settings describe no model for it.
    fn algorithm(&self) -> Result<Self::Algorithm>;
}

/// Says how much of the data is held out, where any of it is.
fn say_held_out(split: &Split, episodes: &Episodes) {
    if split.held_out.is_empty() {
        return;
    }
    let steps: usize =
        split.held_out.iter().map(|&episode| episodes.as_slice()[episode].length).sum();
    say!(
        "held out: {} of the episodes, {steps} transitions; trained on are {} episodes",
        split.held_out.len(),
        split.training.len()
    );
}
