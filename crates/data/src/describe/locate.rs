//! The location of a task's data.

use std::cmp::Reverse;
use std::fmt;
use std::fs;
use std::path::{Path, PathBuf};

use etcetera::base_strategy::{BaseStrategy, choose_base_strategy};
use overtone_core::names::{self, plain};
use overtone_core::{ActionSpace, ObservationSpace, Task};

use crate::describe::card::{DATASETS_HINT, DatasetCard, Named, find_dataset};
use crate::describe::minari_id::MinariId;
use crate::describe::origin::{Kind, Origin};
use crate::describe::recorded_task::RecordedTask;
use crate::download::unfinished;
use crate::error::{DataError, Fault};
use crate::read::minari_spaces::MINARI_FILE;
use crate::read::reader_of;
use crate::read::run_folder::{FIRST_RUN, RunFolder, UNKNOWN};
use crate::read::source::NAMES_SHOWN;

/// The data of a task, with its location.
#[derive(Clone, Debug, PartialEq)]
pub struct Located {
    /// The file or folder, for [`crate::read::open`].
    pub path: PathBuf,
    /// The task, if a description or the folder identifies it.
    pub task: Option<String>,
    /// The recording of the task; for data without a description, the file's own name.
    pub dataset: String,
    /// The known facts about it.
    pub origin: Origin,
    /// A short text from the description.
    label: String,
}

impl fmt::Display for Located {
    /// One sentence that names the data.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (path, name) = (self.path.display(), &self.label);
        match self.origin.kind {
            Kind::Published => write!(f, "data: {name} in {path}"),
            Kind::Starter => write!(f, "data: the starter set in {path} ({name})"),
            Kind::Other if self.origin.recording.is_some() => {
                write!(f, "data: {path} (it says how it was recorded)")
            }
            Kind::Other => write!(f, "data: {path} (how it was recorded is not described)"),
        }
    }
}

/// Finds the recording `dataset` of `task`: in `path` if it is set, else at the place that a
/// description in the folder `datasets` names, published data before starter sets. `path` is a file
/// or a folder of any format, or a folder with a file named for the task and the dataset. A dataset
/// named `minari:…` is in Minari's own folder.
///
/// # Errors
/// If no description knows the dataset (the nearest name is given), the data is missing, the folder
/// holds another run of a game, a description cannot be read, or a download is not finished.
pub fn locate(
    task: &Task,
    dataset: &str,
    path: Option<&Path>,
    datasets: &Path,
) -> Result<Located, DataError> {
    match (path, MinariId::of(dataset)?) {
        (Some(path), _) => at(path, task, dataset, datasets),
        (None, Some(id)) => of_minari(&id, task),
        (None, None) => described(task, dataset, datasets),
    }
}

/// A dataset of Minari's hub.
fn of_minari(id: &MinariId, task: &Task) -> Result<Located, DataError> {
    let path = id.find()?;
    let env = RecordedTask::of(&path)?.env;
    Ok(Located {
        task: env.map(|env| env.name_and_version().0.to_owned()),
        path,
        dataset: id.to_string(),
        origin: of_task(
            Origin { kind: Kind::Published, dataset: Some(id.to_string()), ..Origin::other() },
            task,
        ),
        label: format!("Minari's {id}"),
    })
}

/// Data that a description in `datasets` knows.
fn described(task: &Task, dataset: &str, datasets: &Path) -> Result<Located, DataError> {
    let mut cards = DatasetCard::load_all(datasets)?;
    cards.retain(|card| card.name_of(task).is_some());
    cards.retain(|card| card.kind != Kind::Other);
    cards.sort_by_key(|card| card.kind != Kind::Published);
    let mut known: Vec<&str> = Vec::new();
    for name in cards.iter().flat_map(|card| &card.datasets) {
        if !known.contains(&name.as_str()) {
            known.push(name);
        }
    }
    if known.is_empty() {
        return Err(DataError::missing(
            datasets.join(&task.name),
            format!(
                "no description in {} has {}; name its data (dataset=PATH), or record some (`overtone \
                 record task={} to=records/first`)",
                datasets.display(),
                task.name,
                task.id()
            ),
        ));
    }
    let dataset = match dataset {
        "" => known[0],
        dataset => find_dataset(&known, dataset)?,
    };
    let mut first = None;
    let mut starters = Vec::new();
    for card in &cards {
        let Some(name) = card.name_of(task) else { continue };
        if card.kind == Kind::Starter {
            starters.extend(card.datasets.iter().map(String::as_str));
        }
        if !card.datasets.iter().any(|known| known == dataset) {
            continue;
        }
        let path = folder_of(card.kind, datasets)?.join(card.place(name, dataset));
        if let Some(path) = unfinished(&path) {
            return Err(Fault::Unfinished.at(path));
        }
        if is_there(&path) {
            return Ok(Located {
                path,
                task: Some(name.to_owned()),
                dataset: dataset.to_owned(),
                origin: of_task(card.origin(), task),
                label: card.label(name, dataset),
            });
        }
        first.get_or_insert(path);
    }
    Err(DataError::missing(
        first.unwrap_or_else(|| datasets.to_path_buf()),
        match &starters[..] {
            [] => format!(
                "fetch it (`overtone download`), or name other data (data.path=…); {} has no starter \
                 set",
                task.name
            ),
            _ => format!(
                "fetch it (`overtone download`), or name other data (data.path=…); the starter sets \
                 of {} are: {}",
                task.name,
                starters.join(", ")
            ),
        },
    ))
}

/// The starter set `name` in any spelling, `seaquest` or `hopper/switching`, from a description in
/// the folder `datasets`; and its task as `suite/name`.
///
/// # Errors
/// [`DataError::UnknownName`] if it does not exist.
pub fn starter(name: &str, datasets: &Path) -> Result<(PathBuf, String), DataError> {
    let mut cards = DatasetCard::load_all(datasets)?;
    cards.retain(|card| card.kind == Kind::Starter);
    let mut all = Vec::new();
    for card in &cards {
        for (task, dataset) in card
            .tasks
            .iter()
            .flat_map(|task| card.datasets.iter().map(move |dataset| (task, dataset)))
        {
            let name =
                if card.datasets.len() == 1 { task.clone() } else { format!("{task}/{dataset}") };
            all.push((
                name,
                datasets.join(card.place(task, dataset)),
                format!("{}/{task}", card.suite),
            ));
        }
    }
    let known: Vec<&str> = all.iter().map(|(name, ..)| name.as_str()).collect();
    let found = names::find(&known, name).map(str::to_owned);
    let found = all.iter().find(|(name, ..)| Some(name) == found.as_ref());
    found
        .map(|(_, path, task)| (path.clone(), task.clone()))
        .ok_or_else(|| DataError::unknown("starter set", name, &known))
}

/// The description in the folder `datasets` of the recording at `path`, if any.
///
/// # Errors
/// If the descriptions cannot be read, or `path` is not a recording.
pub fn description_of(path: &Path, datasets: &Path) -> Result<Option<DatasetCard>, DataError> {
    let cards = DatasetCard::load_all(datasets)?;
    let place = reader_of(path)?.place(path)?;
    Ok(cards.into_iter().find(|card| named(card, &place, datasets).is_some()))
}

/// The name in `card` for the recording at `place`, if it is one of the card's own.
fn named(card: &DatasetCard, place: &Path, datasets: &Path) -> Option<Named> {
    card.describes(place, &folder_of(card.kind, datasets).ok()?)
}

/// `origin` of data of `task`.
fn of_task(origin: Origin, task: &Task) -> Origin {
    let n_actions = match &task.actions {
        ActionSpace::Discrete { names } => Some(names.len()),
        ActionSpace::Continuous { .. } => None,
    };
    Origin { n_actions, ..origin }
}

/// Whether the path is a file, or a folder that is not empty.
fn is_there(path: &Path) -> bool {
    path.is_file() || fs::read_dir(path).is_ok_and(|mut entries| entries.next().is_some())
}

/// Data at a path of the user's choice, which may be one that a description knows.
fn at(path: &Path, task: &Task, dataset: &str, datasets: &Path) -> Result<Located, DataError> {
    let by_name = named_file(path, task, dataset)?;
    let path = by_name.or_else(|| run_in(path, dataset)).unwrap_or_else(|| path.to_path_buf());
    let found = reader_of(&path).and_then(|reader| Ok((reader, reader.place(&path)?)));
    check_finished(&path, dataset, found.as_ref().ok().map(|(_, place)| place.as_path()))?;
    let (reader, place) = found?;
    check_run(&path, task, dataset)?;
    let cards = match DatasetCard::load_all(datasets) {
        // Outside the project's folder no description exists, which is not an error here.
        Err(DataError::Missing { path, .. }) if path == datasets => Vec::new(),
        read => read?,
    };
    for card in cards {
        if card.suite == task.suite
            && let Some(named) = named(&card, &place, datasets)
        {
            return Ok(Located {
                path,
                origin: of_task(card.origin(), task),
                label: card.label(&named.task, &named.dataset),
                task: Some(named.task),
                dataset: named.dataset,
            });
        }
    }
    let absolute = place.canonicalize().map_err(DataError::io(&place, "open"))?;
    let name = absolute.file_stem().unwrap_or_default().to_string_lossy().into_owned();
    Ok(Located {
        task: reader.task(&path),
        path,
        dataset: name,
        origin: of_task(Origin::other(), task),
        label: String::new(),
    })
}

/// The folder of `run` in a game's folder, if the default is another run.
fn run_in(path: &Path, run: &str) -> Option<PathBuf> {
    let folder = path.join(run);
    let is_there = !run.is_empty() && folder.join("replay_logs").is_dir();
    let is_taken = || RunFolder::find(path).is_ok_and(|found| found.run == run);
    (is_there && !is_taken()).then_some(folder)
}

/// Refuses a log of another run than `run`. The first run is the default: for it any log is
/// accepted.
fn check_run(path: &Path, task: &Task, run: &str) -> Result<(), DataError> {
    let (ObservationSpace::Pixels { .. }, Ok(found)) = (&task.observations, RunFolder::find(path))
    else {
        return Ok(());
    };
    if ["", FIRST_RUN, &found.run].contains(&run) || found.run == UNKNOWN {
        return Ok(());
    }
    Err(Fault::NoLog(format!("run {run} is not here (data.run={run}); run {} is", found.run))
        .at(path))
}

/// Refuses data with an unfinished download: in `place`, if its files are there; else in `path`.
fn check_finished(path: &Path, dataset: &str, place: Option<&Path>) -> Result<(), DataError> {
    let folders = match place {
        Some(log) if log.is_dir() => vec![log.to_path_buf()],
        // With its description; other files may have unrelated recordings next to them.
        Some(file) if file.ends_with(MINARI_FILE) => {
            file.parent().map(Into::into).into_iter().collect()
        }
        Some(_) => Vec::new(),
        None => vec![path.to_path_buf(), path.join(dataset)],
    };
    match folders.iter().find_map(|folder| unfinished(folder)) {
        Some(path) => Err(Fault::Unfinished.at(path)),
        None => Ok(()),
    }
}

/// Endings of recordings' files, by which they are found in a folder, and known from a name.
const ENDINGS: [&str; 3] = ["hdf5", "h5", "npz"];

/// The files of recordings in a folder, each with its name without a version such as `-v2`; later
/// versions first.
fn files_in(folder: &Path) -> Result<Vec<(PathBuf, String)>, DataError> {
    let mut files = Vec::new();
    for entry in fs::read_dir(folder).map_err(DataError::io(folder, "list"))? {
        let file = entry.map_err(DataError::io(folder, "list"))?.path();
        let ending = file.extension().unwrap_or_default();
        if !ENDINGS.iter().any(|known| ending == *known) || !file.is_file() {
            continue;
        }
        let stem = file.file_stem().unwrap_or_default().to_string_lossy().into_owned();
        let (name, version) = match stem.rsplit_once("-v") {
            Some((name, version)) if version.parse::<u32>().is_ok() => (name, version.parse().ok()),
            _ => (&*stem, None::<u32>),
        };
        files.push((Reverse(version), file, name.to_owned()));
    }
    files.sort();
    Ok(files.into_iter().map(|(_, file, name)| (file, name)).collect())
}

/// In a folder, the file named for the task and the dataset: `hopper_medium-v2.hdf5` as
/// published, or `hopper_medium.hdf5`; of several versions the latest.
fn named_file(path: &Path, task: &Task, dataset: &str) -> Result<Option<PathBuf>, DataError> {
    if !path.is_dir() || dataset.is_empty() {
        return Ok(None);
    }
    let wanted = plain(&format!("{}{dataset}", task.name));
    let mut files = files_in(path)?.into_iter();
    Ok(files.find(|(_, name)| plain(name) == wanted).map(|(file, _)| file))
}

/// Refuses a folder with files named for `task` but none for this dataset.
///
/// # Errors
/// `Fault::NoLog`, which names some of them; or if the folder cannot be listed.
pub fn check_named(folder: &Path, task: &Task, dataset: &str) -> Result<(), DataError> {
    if !folder.is_dir() || named_file(folder, task, dataset)?.is_some() {
        return Ok(());
    }
    let mut others = files_in(folder)?;
    others.retain(|(_, name)| plain(name).starts_with(&plain(&task.name)));
    let names = others.iter().take(NAMES_SHOWN).filter_map(|(file, _)| file.file_name()?.to_str());
    let names: Vec<&str> = names.collect();
    if names.is_empty() {
        return Ok(());
    }
    Err(Fault::NoLog(format!(
        "it has no {}_{}; it has {}: say which (dataset=…)",
        task.name,
        dataset.replace('-', "_"),
        names.join(", ")
    ))
    .at(folder))
}

/// The folder of datasets: `OVERTONE_DATASETS` if it is set, else `datasets` here or in the nearest
/// folder above that has one with a description in it; else the folder of an installed package,
/// which sets `OVERTONE_PACKAGED_DATASETS`.
///
/// # Errors
/// [`DataError::Missing`] if it does not exist.
pub fn datasets_folder() -> Result<PathBuf, DataError> {
    let found = own_folder()?.or_else(packaged_folder);
    found.ok_or_else(|| DataError::missing("datasets", DATASETS_HINT))
}

fn own_folder() -> Result<Option<PathBuf>, DataError> {
    if let Some(folder) = std::env::var_os("OVERTONE_DATASETS") {
        return Ok(Some(folder.into()));
    }
    let here = std::env::current_dir().map_err(DataError::io(Path::new("."), "open"))?;
    let mut all = here.ancestors().map(|folder| folder.join("datasets"));
    Ok(all.find(|folder| has_descriptions(folder)))
}

fn packaged_folder() -> Option<PathBuf> {
    let folder = std::env::var_os("OVERTONE_PACKAGED_DATASETS").map(PathBuf::from);
    folder.filter(|folder| has_descriptions(folder))
}

/// The base folder of recordings of this kind that descriptions in `datasets` name: that folder;
/// or, for downloaded data, if an installed package brought `datasets`, the user's cache folder.
///
/// # Errors
/// If the user has no cache folder.
pub fn folder_of(kind: Kind, datasets: &Path) -> Result<PathBuf, DataError> {
    let is_packaged = packaged_folder().is_some_and(|folder| folder == datasets);
    if is_packaged && kind == Kind::Published { user_folder() } else { Ok(datasets.into()) }
}

/// Other programs have folders of this name too, with settings of their own.
fn has_descriptions(folder: &Path) -> bool {
    let mut files = fs::read_dir(folder).into_iter().flatten().flatten().map(|entry| entry.path());
    files.any(|file| {
        file.extension().is_some_and(|extension| extension == "toml")
            && DatasetCard::load(&file).is_ok()
    })
}

/// The folder of converted data: `cache` in the folder of datasets; without one, `overtone` in the
/// user's cache folder (`XDG_CACHE_HOME`, else `~/.cache`).
///
/// # Errors
/// If neither exists.
pub fn cache_folder() -> Result<PathBuf, DataError> {
    match own_folder() {
        Ok(Some(datasets)) => Ok(datasets.join("cache")),
        _ => user_folder(),
    }
}

fn user_folder() -> Result<PathBuf, DataError> {
    let user = choose_base_strategy().map(|user| user.cache_dir().join("overtone"));
    user.map_err(|_| DataError::missing("~/.cache", "say where converted data goes (data.cache=…)"))
}
