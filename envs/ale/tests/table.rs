//! Comparison of the table of games with ale-py, and short rollouts of twenty games.

#![allow(clippy::unwrap_used)]

use std::collections::BTreeMap;

use overtone_ale::{ACTIONS, AleVectorEnv, Emulation, Game, UNPLAYABLE, check};
use overtone_core::{ActionSpace, Actions, Observations};
use overtone_env::VectorEnv;
use pyo3::prelude::*;

/// The hashes of all ROMs in ale-py, by the game's name.
fn shipped() -> BTreeMap<String, String> {
    check(Game::named("seaquest").unwrap()).unwrap(); // makes ale-py importable
    Python::attach(|py| {
        let code = c"import json, pathlib, ale_py
text = pathlib.Path(ale_py.__file__).with_name('roms').joinpath('md5.json').read_text()
hashes = {name.removesuffix('.bin'): md5 for name, md5 in json.loads(text).items()}";
        let module = PyModule::from_code(py, code, c"shipped.py", c"shipped").unwrap();
        module.getattr("hashes").unwrap().extract().unwrap()
    })
}

#[test]
fn the_table_has_all_playable_games_of_ale_py() {
    let mut shipped = shipped();
    assert_eq!(shipped.len(), 108);
    for game in Game::all() {
        assert_eq!(shipped.remove(&game.task.name).as_ref(), Some(&game.rom_md5), "{game}");
    }
    assert_eq!(shipped.into_keys().collect::<Vec<_>>(), UNPLAYABLE);
}

#[test]
fn titles_equal_ale_py() {
    check(Game::named("seaquest").unwrap()).unwrap();
    let registered: Vec<String> = Python::attach(|py| {
        let code = c"import ale_py, gymnasium
gymnasium.register_envs(ale_py)
ids = [spec.id for spec in gymnasium.registry.values() if spec.id.startswith('ALE/')]";
        let module = PyModule::from_code(py, code, c"registered.py", c"registered").unwrap();
        module.getattr("ids").unwrap().extract().unwrap()
    });
    let mut titles: Vec<String> =
        Game::all().iter().map(|game| format!("ALE/{}-v5", game.title())).collect();
    titles.sort();
    let mut expected = registered;
    expected.sort();
    assert_eq!(titles, expected);
}

/// Starting an emulator compares its minimal action set with the table's.
#[track_caller]
fn check_action_sets(games: impl Iterator<Item = &'static Game>) {
    for game in games {
        let started = AleVectorEnv::new(game, &Emulation::dqn_replay(), 1);
        assert!(started.is_ok(), "{game}: {}", started.err().unwrap());
    }
}

#[test]
fn action_sets_of_the_first_half() {
    check_action_sets(Game::all().iter().take(52));
}

#[test]
fn action_sets_of_the_second_half() {
    check_action_sets(Game::all().iter().skip(52));
}

#[test]
fn action_names_map_to_the_emulators_ids() {
    let ids = |name| Game::named(name).unwrap().action_ids.clone();
    assert_eq!(ids("pong"), [0, 1, 3, 4, 11, 12]);
    assert_eq!(ids("freeway"), [0, 2, 5]);
    assert_eq!(ids("skiing"), [0, 3, 4]);
    assert_eq!(ids("backgammon"), [1, 3, 4], "a game without a no-op");
    for game in Game::all() {
        let ActionSpace::Discrete { names } = &game.task.actions else { unreachable!() };
        let of_ids: Vec<&str> = game.action_ids.iter().map(|&id| ACTIONS[id]).collect();
        assert_eq!(names, &of_ids, "{game}");
        assert!(game.action_ids.is_sorted() && (3..=18).contains(&names.len()), "{game}");
    }
}

/// Twenty games with different action sets, with two environments each. Fifty steps with the same
/// seed give the same screens and rewards, and the screen changes.
#[test]
fn twenty_games_run() {
    let games = Game::all().iter().step_by(5).take(20);
    let mut sizes = Vec::new();
    for game in games {
        sizes.push(game.action_ids.len());
        let mut env = AleVectorEnv::new(game, &Emulation::dqn_replay(), 2).unwrap();
        env.reset(&[0, 1], &[7, 7]).unwrap();
        let mut moved = false;
        for step in 0..50 {
            let action = step * 5 % game.action_ids.len();
            let steps = env.step(&[0, 1], &Actions::Discrete(vec![action; 2])).unwrap();
            assert_eq!(steps[0], steps[1], "{game}: step {step}");
            let Observations::Pixels(pixels) = env.observations() else { unreachable!() };
            let (one, other) = pixels.split_at(pixels.len() / 2);
            assert!(one == other, "{game}: the screens at step {step}");
            let (before, now) = one[2 * 84 * 84..].split_at(84 * 84);
            moved |= before != now;
            if steps[0].outcome.is_some() {
                break;
            }
        }
        assert!(moved, "{game}: nothing moved");
    }
    sizes.sort_unstable();
    sizes.dedup();
    assert!(sizes.len() > 4, "the games have {sizes:?} actions");
}
