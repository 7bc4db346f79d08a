//! All sentences about differences from training for a game.

#![allow(clippy::unwrap_used)]

use std::path::Path;

use overtone_ale::{Ale, Emulation, Game, Resize, SETTINGS};
use overtone_core::protocol::{FedBackActions, GlobalTimestep, Play, ReturnUnits};
use overtone_core::{ActingMode, Simulation, Task};
use overtone_env::Suite;
use overtone_testkit::{differences, sentences};

fn seaquest() -> Task {
    Game::named("seaquest").unwrap().task.clone()
}

/// Two protocols that differ in every setting.
fn protocols() -> [Play; 2] {
    let emulation = Emulation {
        sticky_probability: 0.1,
        frame_skip: 3,
        resize: Resize::BilinearThenMax,
        max_noops: 7,
        max_frames: 1000,
        terminal_on_life_loss: true,
        double_reset: true,
    };
    let matched = seaquest().matched(None);
    let other = Play {
        name: "other".into(),
        simulation: Simulation::of(&emulation),
        return_units: ReturnUnits::Raw,
        integer_returns: true,
        fed_back_actions: FedBackActions::HeadBins,
        global_timestep: GlobalTimestep::Current,
        acting: ActingMode { temperature: 0.5, ..matched.acting },
        ..matched.clone()
    };
    [matched, other]
}

#[test]
fn all_sentences_match_the_file() {
    let text = differences::text(&protocols(), |_| seaquest(), SETTINGS);
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/differences.txt");
    sentences::check_file(&text, &path);
}

#[test]
fn the_released_protocol_has_the_documented_differences() {
    let play = seaquest().matched(None);
    let agent = differences::trained(&play, seaquest(), SETTINGS, true);
    let released = Ale.protocol("released", &play).unwrap();
    let differences = agent.differences(&released, &[1150.0]);
    let names: Vec<&str> =
        differences.iter().map(|difference| difference.setting.as_str()).collect();
    let expected = [
        "simulation.sticky_probability",
        "simulation.resize",
        "simulation.max_noops",
        "simulation.double_reset",
        "return_units",
        "fed_back_actions",
        "global_timestep",
        "target_return",
    ];
    assert_eq!(names, expected);
    assert_eq!((differences[0].trained.as_str(), differences[0].played.as_str()), ("0.25", "0"));
    assert_eq!(agent.deviations(&released, &[32.0]).len(), 8);
    let fraction = agent.differences(&released, &[2.5]);
    assert!(fraction.iter().any(|difference| difference.setting == "integer_returns"));
    assert!(Ale.protocol("v5", &play).is_none(), "another suite's");
}
