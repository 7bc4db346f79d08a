//! [`Game`]: a row of `tasks.toml`.

use std::fmt;
use std::sync::LazyLock;

use overtone_core::protocol::ReturnUnits;
use overtone_core::{ActionSpace, ObservationSpace, Simulation, Targets, Task};
use overtone_env::{Scores, TaskTable};
use serde::Deserialize;

use crate::screen::{SIDE, STACK};
use crate::{AleError, Emulation};

/// The emulator's actions in the order of their ids.
pub const ACTIONS: [&str; 18] = [
    "NOOP",
    "FIRE",
    "UP",
    "RIGHT",
    "LEFT",
    "DOWN",
    "UPRIGHT",
    "UPLEFT",
    "DOWNRIGHT",
    "DOWNLEFT",
    "UPFIRE",
    "RIGHTFIRE",
    "LEFTFIRE",
    "DOWNFIRE",
    "UPRIGHTFIRE",
    "UPLEFTFIRE",
    "DOWNRIGHTFIRE",
    "DOWNLEFTFIRE",
];

/// Games that ale-py cannot play. Its wheel contains their ROMs but no rules for them, and loading
/// one ends the process.
pub const UNPLAYABLE: [&str; 4] = ["combat", "joust", "maze_craze", "warlords"];

/// An Atari 2600 game.
#[derive(Debug)]
pub struct Game {
    /// The task.
    pub task: Task,
    /// MD5 of the ROM in ale-py.
    pub rom_md5: String,
    /// The emulator's id of each of the task's actions, such as 0, 1, 3 and 4 for Breakout.
    pub action_ids: Vec<usize>,
}

/// A game's row of the table.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Row {
    name: String,
    title: String,
    rom_md5: String,
    actions: Option<Vec<String>>,
    reference: Option<Scores>,
    released_target: Option<f32>,
}

impl Game {
    /// All games, in the table's order.
    pub fn all() -> &'static [Self] {
        static GAMES: LazyLock<Vec<Game>> = LazyLock::new(|| {
            let table = TaskTable::<Row>::of(include_str!("../tasks.toml"));
            table.tasks.iter().map(|row| game(&table, row)).collect()
        });
        &GAMES
    }

    /// The game with this emulator name.
    ///
    /// # Errors
    /// When the game is not in the table.
    pub fn named(name: &str) -> Result<&'static Self, AleError> {
        let game = Self::all().iter().find(|game| game.task.name == name);
        game.ok_or_else(|| AleError::NoGame { name: name.to_owned() })
    }

    /// Display name, which is also the directory name of its data: `BankHeist`.
    pub fn title(&self) -> &str {
        &self.task.title
    }
}

impl fmt::Display for Game {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.title())
    }
}

fn game(table: &TaskTable<Row>, row: &Row) -> Game {
    let all = || ACTIONS.map(String::from).to_vec();
    let names = row.actions.clone().unwrap_or_else(all);
    let id = |name: &String| {
        let id = ACTIONS.iter().position(|action| action == name);
        id.unwrap_or_else(|| panic!("{}: `{name}` is not an action of the emulator", row.name))
    };
    Game {
        rom_md5: row.rom_md5.clone(),
        action_ids: names.iter().map(id).collect(),
        task: Task {
            suite: crate::SUITE.into(),
            name: row.name.clone(),
            title: row.title.clone(),
            observations: ObservationSpace::Pixels { shape: vec![STACK, SIDE, SIDE] },
            actions: ActionSpace::Discrete { names },
            horizon: None,
            return_units: ReturnUnits::Clipped,
            reference: row.reference.as_ref().map(|scores| table.reference(scores)),
            targets: Targets { usual: Vec::new(), released: row.released_target },
            simulation: Simulation::of(&Emulation::dqn_replay()),
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(name: &str, score: f64, printed: f64) {
        let reference = Game::named(name).unwrap().task.reference.as_ref().unwrap();
        let got = reference.normalize(score);
        assert!((got - printed).abs() < 0.05, "{name}: {got}, the paper prints {printed}");
    }

    #[test]
    fn the_papers_table_is_reproduced() {
        // Raw scores and printed normalized scores of the Fourier-head paper's table 2.
        check("bank_heist", 21.0, 0.92);
        check("double_dunk", -20.2, -72.72);
        check("double_dunk", -17.6, 45.45);
        check("gravitar", 331.3, 4.98);
        check("seaquest", 1622.0, 3.70);
    }

    #[test]
    fn the_table_has_all_playable_games_and_57_have_scores() {
        let games = Game::all();
        let scored = games.iter().filter(|game| game.task.reference.is_some()).count();
        assert_eq!((games.len(), scored), (104, 57));
        assert!(UNPLAYABLE.iter().all(|name| Game::named(name).is_err()));
        let low = |name: &str| Game::named(name).unwrap().task.reference.as_ref().unwrap().low;
        assert_eq!([low("pong"), low("skiing"), low("solaris")], [-20.7, -17098.1, 1236.3]);
        for game in games {
            let Some(scores) = &game.task.reference else { continue };
            assert_ne!(scores.low, scores.high, "{game}");
        }
    }

    #[test]
    fn games_are_rows_of_the_table() {
        let names: Vec<&str> = Game::all().iter().map(|game| game.task.name.as_str()).collect();
        assert_eq!(names[..4], ["seaquest", "gravitar", "bank_heist", "double_dunk"]);
        let seaquest = Game::named("seaquest").unwrap();
        assert_eq!(seaquest.task.id(), "ale/seaquest");
        assert_eq!(seaquest.action_ids, (0..18).collect::<Vec<_>>());
        assert_eq!(seaquest.task.targets.released, Some(1150.0));
        assert!(Game::named("Seaquest").is_err(), "names are the emulator's");
    }
}
