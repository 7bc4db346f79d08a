//! All sentences about differences from training for a game.

#![allow(clippy::unwrap_used)]

use std::path::Path;

use overtone_ale::{Ale, Emulation, Game, Resize, SETTINGS};
use overtone_core::protocol::{FedBackActions, GlobalTimestep, Play, ReturnUnits, Trained};
use overtone_core::{ActingMode, Task};
use overtone_env::Suite;

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
        simulation: emulation.to_simulation(),
        return_units: ReturnUnits::Raw,
        integer_returns: true,
        fed_back_actions: FedBackActions::HeadBins,
        global_timestep: GlobalTimestep::Current,
        acting: ActingMode { temperature: 0.5, ..matched.acting },
        ..matched.clone()
    };
    [matched, other]
}

/// The sentences for an agent that uses every setting (`all_matter`), or only the settings that all
/// agents use.
fn sentences(trained: &Play, played: &Play, all_matter: bool, targets: &[f32]) -> String {
    let agent = Trained {
        play: trained.clone(),
        task: seaquest(),
        settings: SETTINGS,
        returns: Some([0.0, 40.5]),
        reads_returns: all_matter,
        own_action_order: all_matter,
        has_density: all_matter,
        reads_global_timestep: all_matter,
    };
    let deviations = agent.deviations(played, targets).into_iter().map(|deviation| {
        let idle = deviation.idle.map(|idle| format!("  changes nothing: {idle}\n"));
        format!("{}\n{}", deviation.difference, idle.unwrap_or_default())
    });
    let targets = agent.differences(trained, targets).into_iter().map(|found| format!("{found}\n"));
    deviations.chain(targets).collect()
}

#[test]
fn all_sentences_match_the_file() {
    let [one, other] = protocols();
    let mut text = format!("{} to {}\n", one.name, other.name);
    text += &sentences(&one, &other, true, &[32.5, 41.0, -1.0]);
    text += &format!("\n{} to {}\n", other.name, one.name);
    text += &sentences(&other, &one, true, &[32.5]);
    text += "\nwhole numbers\n";
    text += &sentences(&one, &other, true, &[32.0]);
    text += "\nan agent that few settings matter to\n";
    text += &sentences(&one, &other, false, &[32.0, 41.0]);
    text += "\n";
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/differences.txt");
    overtone_testkit::sentences::check_file(&text, &path);
}

#[test]
fn the_released_protocol_has_the_documented_differences() {
    let play = seaquest().matched(None);
    let agent = Trained {
        play: play.clone(),
        task: seaquest(),
        settings: SETTINGS,
        returns: Some([0.0, 40.0]),
        reads_returns: true,
        own_action_order: true,
        has_density: true,
        reads_global_timestep: true,
    };
    let released = Ale.protocol("released", &play).unwrap();
    let found = agent.differences(&released, &[1150.0]);
    let names: Vec<&str> = found.iter().map(|difference| difference.setting.as_str()).collect();
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
    assert_eq!((found[0].trained.as_str(), found[0].played.as_str()), ("0.25", "0"));
    assert_eq!(agent.deviations(&released, &[32.0]).len(), 8);
    let fraction = agent.differences(&released, &[2.5]);
    assert!(fraction.iter().any(|difference| difference.setting == "integer_returns"));
    assert!(Ale.protocol("v5", &play).is_none(), "another suite's");
}
