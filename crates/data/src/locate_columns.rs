//! Where the data of a simulated robot comes from.

use std::fmt;
use std::path::{Path, PathBuf};

use crate::card::{ContinuousCard, DatasetCard};
use crate::download::is_unfinished;
use crate::error::DataError;
use crate::locate::find_name;
use crate::origin::{Kind, Origin};
use crate::read::hdf5_paths::{find_file, hdf5_files};

/// A robot of the project's experiments, as D4RL has it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Environment {
    /// As its files are named.
    pub name: &'static str,
    /// Numbers of an observation.
    pub observation_width: usize,
    /// Numbers of an action.
    pub action_width: usize,
}

/// The known robots.
pub const ENVIRONMENTS: [Environment; 3] = [
    Environment { name: "halfcheetah", observation_width: 17, action_width: 6 },
    Environment { name: "hopper", observation_width: 11, action_width: 3 },
    Environment { name: "walker2d", observation_width: 17, action_width: 6 },
];

/// D4RL's datasets of each, as its files are named.
pub const DATASETS: [&str; 6] =
    ["random", "medium", "expert", "medium_replay", "full_replay", "medium_expert"];

/// Data that was found.
#[derive(Clone, Debug, PartialEq)]
pub struct LocatedContinuous {
    /// The file, for [`crate::read::open`].
    pub path: PathBuf,
    /// The robot, a name of [`ENVIRONMENTS`].
    pub env: &'static str,
    /// The dataset: a name of [`DATASETS`], or for a file that no description knows, the
    /// file's own.
    pub dataset: String,
    /// What is known of it.
    pub origin: Origin,
}

impl fmt::Display for LocatedContinuous {
    /// One sentence that says which data this is.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let path = self.path.display();
        match self.origin.kind {
            Kind::Published => write!(
                f,
                "data: D4RL's {}-{} as published, in {path}",
                self.env,
                self.dataset.replace('_', "-")
            ),
            Kind::Starter => write!(
                f,
                "data: the starter set in {path} (a small recording of public trained policies \
                 that comes with the project, not D4RL)"
            ),
            Kind::Other => write!(f, "data: {path} (how it was recorded is not described)"),
        }
    }
}

/// Finds the data of a robot: in `path` where it is given, else D4RL's published file below the
/// folder `datasets`, else the starter set there. `path` is a file, or a folder with a file
/// named for the robot and the dataset or with one file alone.
///
/// # Errors
/// When the environment or the dataset is unknown (the nearest known one is named), when there
/// is no data or its download is not finished, and when what there is has observations or actions of another robot.
pub fn locate_continuous(
    environment: &str,
    dataset: &str,
    path: Option<&Path>,
    datasets: &Path,
) -> Result<LocatedContinuous, DataError> {
    let environment = known_environment(environment)?;
    match path {
        Some(path) => at(path, environment, dataset, datasets),
        None => described(environment, known_dataset(dataset)?, datasets),
    }
}

/// The robot of any spelling of its name (`hopper`, `HalfCheetah`, `walker-2d`).
///
/// # Errors
/// [`DataError::UnknownName`] with the nearest known name.
pub fn known_environment(name: &str) -> Result<&'static Environment, DataError> {
    let known = ENVIRONMENTS.map(|environment| environment.name);
    Ok(&ENVIRONMENTS[find_name("environment", &known, name)?])
}

/// The robot that a path names: D4RL's files begin with it, Minari's lie in folders that do.
pub fn environment_of(path: &Path) -> Option<&'static Environment> {
    let names = path.iter().rev().map(|part| part.to_string_lossy().to_lowercase());
    let robot = |name: String| ENVIRONMENTS.iter().find(|robot| name.starts_with(robot.name));
    names.filter_map(robot).next()
}

/// D4RL's name of a dataset, from any spelling (`medium`, `medium-replay`).
///
/// # Errors
/// [`DataError::UnknownName`] with the nearest known name.
pub fn known_dataset(name: &str) -> Result<&'static str, DataError> {
    Ok(DATASETS[find_name("dataset", &DATASETS, name)?])
}

/// Data that a description in `datasets` knows: published before starter.
fn described(
    environment: &Environment,
    dataset: &str,
    datasets: &Path,
) -> Result<LocatedContinuous, DataError> {
    let cards = cards(DatasetCard::load_all(datasets)?);
    let of_kind = |kind: Kind| cards.iter().filter(move |card| card.kind == kind);
    for card in of_kind(Kind::Published).chain(of_kind(Kind::Starter)) {
        let path = datasets.join(card.file(environment.name, dataset));
        if is_unfinished(&path) {
            return Err(DataError::Unfinished { path });
        }
        if has(&card.environments, environment.name)
            && has(&card.qualities, dataset)
            && path.is_file()
        {
            return Ok(LocatedContinuous {
                path,
                env: environment.name,
                dataset: dataset.into(),
                origin: card.origin(),
            });
        }
    }
    let published = of_kind(Kind::Published).next();
    let file = published.map_or_else(
        || format!("{}_{dataset}.hdf5", environment.name).into(),
        |card| card.file(environment.name, dataset),
    );
    let starter = of_kind(Kind::Starter).filter(|card| has(&card.environments, environment.name));
    let starter: Vec<_> = starter.flat_map(|card| card.qualities.iter().cloned()).collect();
    Err(DataError::Missing {
        path: datasets.join(file),
        hint: format!(
            "fetch D4RL's file (`just download`), or name other data (data.path=…); the starter \
             sets of {} are: {}",
            environment.name,
            starter.join(", ")
        ),
    })
}

/// Data at a path of the user's choice, which may be one that a description knows.
fn at(
    path: &Path,
    environment: &'static Environment,
    dataset: &str,
    datasets: &Path,
) -> Result<LocatedContinuous, DataError> {
    if !path.exists() {
        return Err(DataError::Missing {
            path: path.to_path_buf(),
            hint: "give an HDF5 file of D4RL or Minari, or the folder of one".into(),
        });
    }
    let file = named_file(path, environment, dataset)?;
    let absolute = file.canonicalize().map_err(DataError::io(&file, "open"))?;
    // Without the project's folder there is no description, and that is no error here.
    for card in cards(DatasetCard::load_all(datasets).unwrap_or_default()) {
        let described = card.describes(&file, datasets);
        if let Some((_, dataset)) = described.filter(|(robot, _)| *robot == environment.name) {
            return Ok(LocatedContinuous {
                path: file,
                env: environment.name,
                dataset: dataset.into(),
                origin: card.origin(),
            });
        }
    }
    let name = absolute.file_stem().unwrap_or_default().to_string_lossy().into_owned();
    Ok(LocatedContinuous {
        path: file,
        env: environment.name,
        dataset: name,
        origin: Origin::other(),
    })
}

/// The file at `path`; of a folder with several, the one named for the robot and the dataset.
fn named_file(path: &Path, environment: &Environment, dataset: &str) -> Result<PathBuf, DataError> {
    if path.is_dir()
        && let Ok(dataset) = known_dataset(dataset)
    {
        // `hopper_medium-v2.hdf5` as published, or `hopper_medium.hdf5`.
        let name = format!("{}_{dataset}", environment.name);
        let stem = |file: &PathBuf| file.file_stem().unwrap_or_default().to_string_lossy() == name;
        let version = path.join(format!("{name}-v2.hdf5"));
        if version.is_file() {
            return Ok(version);
        }
        if let Some(file) = hdf5_files(path)?.into_iter().find(stem) {
            return Ok(file);
        }
    }
    find_file(path)
}

fn cards(all: Vec<DatasetCard>) -> Vec<ContinuousCard> {
    all.into_iter().filter_map(DatasetCard::continuous).collect()
}

fn has(names: &[String], name: &str) -> bool {
    names.iter().any(|known| known == name)
}
