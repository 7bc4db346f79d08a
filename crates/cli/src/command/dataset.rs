//! From settings to an opened dataset: found, planned, converted.

use std::sync::Arc;

use anyhow::{Context, Result, bail};
use overtone_data::{
    AtariDataset, Kind, Located, Plan, ReplayLog, datasets_folder, known_game, locate,
};

use crate::{progress, settings::Settings};

/// Where the data of `settings` is.
///
/// # Errors
/// When there is none, or the game is unknown.
pub fn find(settings: &Settings) -> Result<Located> {
    let game = known_game(&settings.game)?;
    let path = (!settings.data.path.as_os_str().is_empty()).then_some(&*settings.data.path);
    let located = locate(game, &settings.data.run, path, &datasets_folder()?)?;
    // A folder of the user's own may have any name, but not another game's.
    if known_game(&located.game).is_ok_and(|other| other != game) {
        bail!(
            "{} holds {}, and game={} was asked for; change one of them",
            located.path.display(),
            located.game,
            settings.game
        );
    }
    Ok(located)
}

/// Whether the published data of the game is there.
pub fn is_published(settings: &Settings) -> bool {
    find(settings).is_ok_and(|located| located.origin.kind == Kind::Published)
}

/// Opens the dataset of `settings`, converting it first where that was not done yet, and
/// says so.
///
/// # Errors
/// When the data is missing or broken, or the disk is too small.
pub fn open(settings: &Settings) -> Result<Arc<AtariDataset>> {
    let located = find(settings)?;
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
        .with_context(|| format!("preparing the data of {}", located.game))?;
    bar.finish_and_clear();
    say!(
        "dataset: {} transitions in {} episodes, {} of them padding rows; content {}",
        dataset.n_transitions(),
        dataset.episodes().as_slice().len(),
        dataset.manifest().counts.padding_rows,
        &dataset.manifest().content_hash[..16]
    );
    Ok(Arc::new(dataset))
}
