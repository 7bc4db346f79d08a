//! Finding the datasets that a configuration names.

use std::path::Path;

use anyhow::{Result, anyhow, bail, ensure};
use overtone_agents::AlgorithmKind;
use overtone_console::keys::plain;
use overtone_core::{ObservationSpace, Task};
use overtone_data::{
    DataError, Kind, Located, MinariId, Origin, RecordedTask, check_named, datasets_folder, locate,
};
use overtone_env::find_in_table;
use overtone_settings::{Choices, Profile, RunConfig, datasets_of, defaults, is_path, suites};

use super::data::known_task;

/// Whether the published data exists.
pub fn is_published(settings: &RunConfig) -> bool {
    let are_published = |located: Vec<Located>| {
        located.iter().all(|located| located.origin.kind == Kind::Published)
    };
    find(settings).is_ok_and(are_published)
}

/// The location of each of the datasets.
pub fn find(settings: &RunConfig) -> Result<Vec<Located>> {
    let names = datasets_of(&settings.dataset);
    let (n, shares) = (names.len(), &settings.data.shares.0);
    ensure!(
        shares.is_empty() || shares.len() == n && n > 1,
        "data.shares={}: expected a number for each of several datasets, but dataset={} names \
         {n}",
        plain(&settings.data.shares.clone().into()),
        settings.dataset
    );
    ensure!(
        n == 1 || !names.contains(&""),
        "dataset={}: a name between the commas is missing",
        settings.dataset
    );
    let is_folder_of_names = || settings.data.path.is_dir() && !names.iter().any(|n| is_path(n));
    ensure!(
        n == 1 || settings.data.path.as_os_str().is_empty() || is_folder_of_names(),
        "data.path={}: with several datasets, expected a directory in which each of them has a \
         file. Or name the files, dataset=/path/to/one.hdf5,/path/to/other.hdf5, without \
         data.path",
        settings.data.path.display()
    );
    let task = settings.task()?;
    names.into_iter().map(|name| find_one(settings, task, name)).collect()
}

/// The location of the dataset `name` of `task`.
pub fn find_one(settings: &RunConfig, task: &Task, name: &str) -> Result<Located> {
    let minari = MinariId::of(name)?;
    let path = match (settings.data.path.as_os_str().is_empty(), name) {
        (true, name) if minari.is_none() && is_path(name) => Some(Path::new(name)),
        (true, _) => None,
        (false, _) => Some(&*settings.data.path),
    };
    let (key, dataset) = match task.observations {
        // Each run of a log is a dataset.
        ObservationSpace::Pixels { .. } if minari.is_none() => {
            ensure!(
                path.is_some() || name.is_empty(),
                "dataset={}: not a dataset of {}. Use a file, a dataset of Minari's \
                 (minari:atari/…), or a run of the published log with data.run=",
                name,
                task.id()
            );
            ("data.run", &*settings.data.run)
        }
        _ => ("dataset", name),
    };
    if names_dataset(settings, task, name)? {
        check_named(&settings.data.path, task, name)?;
    }
    // The user's own data does not need a datasets directory. If another needs it, its error
    // names it.
    let datasets = datasets_folder().unwrap_or_else(|_| "datasets".into());
    let mut located = locate(task, dataset, path, &datasets).map_err(|error| match error {
        DataError::UnknownName { .. } => anyhow!("{key}={dataset}: {error}"),
        error => error.into(),
    })?;
    if (path.is_some() || minari.is_some()) && located.origin.recording.is_none() {
        let recorded = RecordedTask::of(&located.path)?;
        located.origin.recording = suites::recorded_simulation(task, &recorded);
    }
    // The user's own directory may have any name, except another task's.
    let named = match &located.task {
        Some(name) => find_in_table(suites::of(task)?, name).ok(),
        None => known_task(&located.path).filter(|other| other.suite == task.suite),
    };
    if let Some(other) = named.filter(|other| *other != task) {
        bail!(
            "{} contains {}, but the settings have {}={}. Change one of them",
            located.path.display(),
            located.task.as_ref().unwrap_or(&other.name),
            suites::of(task)?.key(),
            task.name
        );
    }
    Ok(located)
}

/// What is known of all datasets alike.
pub fn common_origin(several: &[Located]) -> Origin {
    let mut origins = several.iter().map(|located| &located.origin);
    let first = origins.next().cloned().unwrap_or_else(Origin::other);
    origins.fold(first, |common, origin| Origin {
        kind: if common.kind == origin.kind { common.kind } else { Kind::Other },
        dataset: common.dataset.filter(|name| Some(name) == origin.dataset.as_ref()),
        recording: common.recording.filter(|own| Some(own) == origin.recording.as_ref()),
        n_actions: common.n_actions.max(origin.n_actions),
    })
}

/// Whether `data.path` is a directory of datasets of `task`, and `name` is another dataset than
/// the default.
///
/// # Errors
/// When the defaults cannot be read.
fn names_dataset(settings: &RunConfig, task: &Task, name: &str) -> Result<bool> {
    let is_name = matches!(task.observations, ObservationSpace::Vectors { .. })
        && !settings.data.path.as_os_str().is_empty()
        && matches!(MinariId::of(name), Ok(None))
        && !is_path(name);
    let usual = Choices::usual(AlgorithmKind::DecisionTransformer, Profile::Quick);
    Ok(is_name && name != defaults(task, &usual)?.dataset)
}
