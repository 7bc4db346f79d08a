//! Where the data of a game comes from.

use std::fmt;
use std::path::{Path, PathBuf};

use crate::card::{DATASETS_HINT, DatasetCard};
use crate::download::unfinished_in;
use crate::error::DataError;
use crate::origin::{Kind, Origin};

/// The games the project's experiments use, as DQN-replay names their folders.
pub const GAMES: [&str; 4] = ["BankHeist", "DoubleDunk", "Gravitar", "Seaquest"];

/// Data that was found.
#[derive(Clone, Debug, PartialEq)]
pub struct Located {
    /// Folder of the game or run, for [`crate::ReplayLog::open`].
    pub path: PathBuf,
    /// The game, as its folder is named.
    pub game: String,
    /// What is known of it.
    pub origin: Origin,
}

impl fmt::Display for Located {
    /// One sentence that says which data this is.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let path = self.path.display();
        match self.origin.kind {
            Kind::Published => write!(f, "data: the published DQN Replay Dataset in {path}"),
            Kind::Starter => write!(
                f,
                "data: the starter set in {path} (a small recording of RAM-reading policies that \
                 comes with the project, not the published DQN Replay Dataset)"
            ),
            Kind::Other => write!(f, "data: {path} (its recording protocol is not described)"),
        }
    }
}

/// Finds the data of `game`: in `path` where it is given, else the published set's run `run`
/// below the folder `datasets`, else the starter set there.
///
/// # Errors
/// When the game is unknown (the nearest known one is named), when there is no data, and when
/// its download is not finished.
pub fn locate(
    game: &str,
    run: &str,
    path: Option<&Path>,
    datasets: &Path,
) -> Result<Located, DataError> {
    if let Some(path) = path {
        return at(path, datasets);
    }
    let game = known_game(game)?;
    let cards: Vec<_> =
        DatasetCard::load_all(datasets)?.into_iter().filter_map(DatasetCard::atari).collect();
    for kind in [Kind::Published, Kind::Starter] {
        let matching = cards.iter().filter(|card| card.kind == kind);
        for card in matching.filter(|card| card.games.iter().any(|known| known == game)) {
            let folder = datasets.join(&card.folder).join(game).join(run);
            if let Some(path) = unfinished_in(&folder.join("replay_logs")).into_iter().next() {
                return Err(DataError::Unfinished { path });
            }
            if folder.join("replay_logs").is_dir() {
                return Ok(Located { path: folder, game: game.into(), origin: card.origin() });
            }
        }
    }
    let published = cards.iter().find(|card| card.kind == Kind::Published);
    let folder = published.map_or("starter", |card| &card.folder);
    Err(DataError::Missing {
        path: datasets.join(folder).join(game).join(run),
        hint: format!(
            "fetch run {run} of the published set (`just download`), or give the folder of other \
             data (data.path=…)"
        ),
    })
}

/// Data in a folder of the user's choice, which may be one of those in `datasets`.
fn at(path: &Path, datasets: &Path) -> Result<Located, DataError> {
    if !path.exists() {
        return Err(DataError::Missing {
            path: path.to_path_buf(),
            hint: "give the folder of a game (…/Seaquest) or of a run (…/Seaquest/1)".into(),
        });
    }
    let found = crate::RunFolder::find(path)?;
    let mut origin = Origin::other();
    // Without the project's folder there is no description, and that is no error here.
    let cards = DatasetCard::load_all(datasets).unwrap_or_default();
    for card in cards.into_iter().filter_map(DatasetCard::atari) {
        if card.describes(&found, datasets) {
            origin = card.origin();
        }
    }
    Ok(Located { path: path.to_path_buf(), game: found.game, origin })
}

/// The folder name of a game, from any spelling (`seaquest`, `bank_heist`, `Bank-Heist`).
///
/// # Errors
/// [`DataError::UnknownName`] with the nearest known name.
pub fn known_game(game: &str) -> Result<&'static str, DataError> {
    let known = GAMES.map(snake_case);
    let at = find_name("game", &known.each_ref().map(String::as_str), game)?;
    Ok(GAMES[at])
}

/// A game's name as it is written in options and folders of runs: `bank_heist` of `BankHeist`.
pub fn snake_case(name: &str) -> String {
    let mut text = String::new();
    for (i, letter) in name.chars().enumerate() {
        if i > 0 && letter.is_uppercase() {
            text.push('_');
        }
        text.extend(letter.to_lowercase());
    }
    text
}

/// A name in lower case, without what stands between its words.
pub(crate) fn plain(name: &str) -> String {
    name.chars().filter(|c| c.is_alphanumeric()).flat_map(char::to_lowercase).collect()
}

/// Names less alike than this are not taken for one another: `seqest` is 0.93 like `seaquest`,
/// `pong` 0.46 like `gravitar`.
const ALIKE: f64 = 0.8;

/// Position in `known` of `name` in any spelling.
///
/// # Errors
/// [`DataError::UnknownName`] when it is not there.
pub(crate) fn find_name(
    what: &'static str,
    known: &[&str],
    name: &str,
) -> Result<usize, DataError> {
    let wanted = plain(name);
    if let Some(at) = known.iter().position(|known| plain(known) == wanted) {
        return Ok(at);
    }
    let likeness = |known: &str| strsim::jaro_winkler(&plain(known), &wanted);
    let nearest = known.iter().max_by(|a, b| likeness(a).total_cmp(&likeness(b)));
    Err(DataError::UnknownName {
        what,
        name: name.into(),
        nearest: nearest.filter(|near| likeness(near) >= ALIKE).map(|near| (*near).to_owned()),
        known: known.join(", "),
    })
}

/// The folder of datasets: `OVERTONE_DATASETS` where it is set, else `datasets` here or in
/// the nearest folder above that has one.
///
/// # Errors
/// [`DataError::Missing`] when there is none.
pub fn datasets_folder() -> Result<PathBuf, DataError> {
    if let Some(folder) = std::env::var_os("OVERTONE_DATASETS") {
        return Ok(folder.into());
    }
    let here = std::env::current_dir().map_err(DataError::io(Path::new("."), "open"))?;
    here.ancestors()
        .map(|folder| folder.join("datasets"))
        .find(|folder| folder.is_dir())
        .ok_or_else(|| DataError::Missing { path: "datasets".into(), hint: DATASETS_HINT.into() })
}
