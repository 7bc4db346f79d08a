//! Runs on a game: the log is found, planned, converted.

use std::sync::Arc;

use anyhow::{Context, Result, bail};
use overtone_data::{Dataset, Kind, Located, Plan, ReplayLog, datasets_folder, known_game, locate};

use overtone_train::AtariLearner;

use super::Experiment;
use crate::{
    progress,
    settings::{AtariSettings, Profile},
    suites,
};

impl Experiment for AtariSettings {
    type Algorithm = AtariLearner;

    fn task(&self) -> String {
        self.game.to_lowercase()
    }

    fn model_name(&self) -> String {
        self.model_name()
    }

    fn describe_model(&self) -> String {
        format!(
            "{} head, {} attention, context {}",
            self.head_name(),
            self.attention.name(),
            self.model.context_length
        )
    }

    fn describe_profile(&self) -> String {
        match self.profile {
            Profile::Paper => format!(
                "paper ({} epochs of {} transitions, batch {})",
                self.train.epochs, self.data.transitions, self.train.batch_size
            ),
            _ => format!(
                "quick, {} updates of {} contexts, for a first look. The paper's profile is 5 \
                 epochs of 500,000 transitions in batches of 128: profile=paper",
                self.train.updates, self.train.batch_size
            ),
        }
    }

    fn is_published(&self) -> bool {
        self.find().is_ok_and(|located| located.origin.kind == Kind::Published)
    }

    fn check_playable(&self) -> Result<()> {
        known_game(&self.game)?;
        if self.evaluation.episodes == 0 {
            return Ok(());
        }
        let task = suites::titled(known_game(&self.game)?)?;
        suites::of(task)?.check(task).context(crate::command::evaluate::NOT_PLAYABLE)
    }

    fn algorithm(&self) -> Result<AtariLearner> {
        let data = open(self)?;
        let model = self.model_config(data.actions().size(), data.episodes().longest())?;
        Ok(AtariLearner::new(model, data, known_game(&self.game)?))
    }
}

/// Opens the dataset of `settings`, converting it first where that was not done yet, and
/// says so.
///
/// # Errors
/// When the data is missing or broken, or the disk is too small.
fn open(settings: &AtariSettings) -> Result<Arc<Dataset>> {
    let located = settings.find()?;
    say!("{located}");
    let log = ReplayLog::open(&located.path)?;
    let cache = match settings.data.cache.as_os_str().is_empty() {
        true => datasets_folder()?.join("cache"),
        false => settings.data.cache.clone(),
    };
    let plan = Plan::new(log, located.origin.clone(), settings.selection(), settings.seed, &cache)?;
    say!("plan: {plan}");
    let bar = progress::bytes("converting", plan.ready);
    let dataset = plan
        .ensure(&mut |done, total| {
            bar.set_length(total);
            bar.set_position(done);
        })
        .with_context(|| {
            let cache = cache.display();
            format!("preparing the data of {}, which goes to data.cache={cache}", located.game)
        })?;
    bar.finish_and_clear();
    say!(
        "dataset: {} transitions in {} episodes, {} of them padding rows; content {}",
        dataset.n_transitions(),
        dataset.episodes().as_slice().len(),
        dataset.counts().padding_rows,
        &dataset.content_hash()[..16]
    );
    let split = dataset.split_for(settings.train.held_out, settings.seed)?;
    super::say_held_out(&split, dataset.episodes());
    Ok(Arc::new(dataset))
}

impl AtariSettings {
    /// Where the data is.
    ///
    /// # Errors
    /// When there is none, or the game is unknown.
    pub fn find(&self) -> Result<Located> {
        let game = known_game(&self.game)?;
        let path = (!self.data.path.as_os_str().is_empty()).then_some(&*self.data.path);
        let located = locate(game, &self.data.run, path, &datasets_folder()?)?;
        // A folder of the user's own may have any name, but not another game's.
        if known_game(&located.game).is_ok_and(|other| other != game) {
            bail!(
                "{} holds {}, and game={} was asked for; change one of them",
                located.path.display(),
                located.game,
                self.game
            );
        }
        Ok(located)
    }
}
