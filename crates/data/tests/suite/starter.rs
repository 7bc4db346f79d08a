//! The starter sets: counts and episodes against those written when they were recorded.

use std::fs;
use std::path::{Path, PathBuf};

use overtone_core::Simulation;
use overtone_data::check::spread::Spread;
use overtone_data::read::replay_log::Ending;
use overtone_data::{DatasetCard, Kind, Origin, ReplayLog, locate};
use serde::Deserialize;
use sha2::{Digest, Sha256};

use crate::tasks::{self, inspect_log, oddities};

#[derive(Deserialize)]
struct Stats {
    capacity: u64,
    files: usize,
    transitions: u64,
    episodes: u64,
    actions: Vec<u8>,
    episode_log: Vec<EpisodeStats>,
}

#[derive(Deserialize)]
struct EpisodeStats {
    first_add: u64,
    length: u64,
    finished: bool,
    clipped_return: f64,
}

pub fn datasets() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../datasets")
}

#[track_caller]
fn check(game: &str, transitions: u64, episodes: u64) {
    let folder = datasets().join("starter").join(game);
    let stats = fs::read_to_string(folder.join("stats.json")).unwrap();
    let stats: Stats = serde_json::from_str(&stats).unwrap();
    let found = inspect_log(&folder).unwrap();
    assert_eq!((found.game.as_str(), found.run.as_str()), (game, "1"));
    assert_eq!((found.transitions, found.episodes), (transitions, episodes));
    assert_eq!((stats.transitions, stats.episodes), (transitions, episodes));
    assert_eq!((found.files, found.slots), (stats.files, stats.capacity * stats.files as u64));
    assert_eq!((found.cut_episodes, found.headless_episodes), (1, 0));
    assert_eq!((found.stale_slots, found.recovered_slots), (5, 4));
    // Every slot is a step, padding, or the one of file 0 that nothing was written to.
    assert_eq!(found.transitions + found.padding_slots + 1, found.slots);
    assert_eq!(found.action_histogram.iter().sum::<u64>(), transitions);
    assert_eq!(found.reward_histogram.values().sum::<u64>(), transitions);
    assert_eq!((oddities(&folder).len(), found.frames_read), (0, "all"));

    let json = serde_json::to_value(&found).unwrap();
    assert_eq!(json["transitions"], transitions);
    assert_eq!(json["episodes"], episodes);
    assert_eq!(json["returns"]["units"], "clipped");
    assert_eq!(json["returns"]["mean"], found.returns.spread.mean);
    assert!(found.to_string().contains(&format!("{episodes} finished")));

    let log = ReplayLog::open(&folder.join("1/replay_logs")).unwrap();
    assert_eq!(log.episodes.len(), stats.episode_log.len());
    for (found, said) in log.episodes.iter().zip(&stats.episode_log) {
        assert_eq!(found.first - found.padding, said.first_add);
        assert_eq!(found.ending == Ending::GameOver, said.finished);
        assert_eq!(found.padding, 3);
        // The cut one continued after the last file was written.
        if said.finished {
            assert_eq!((found.length, found.clipped_return), (said.length, said.clipped_return));
        }
    }

    let card = datasets().join(format!("starter-{}.toml", game.to_lowercase()));
    let card = DatasetCard::load(&card).unwrap();
    let counts = card.counts_of(None).unwrap();
    assert_eq!((counts.transitions, counts.episodes), (Some(transitions), Some(episodes)));
    assert_eq!(
        (counts.files, counts.slots_per_file),
        (Some(stats.files as u64), Some(stats.capacity))
    );
    assert_eq!(card.recording, dqn_replay());
    let bytes = fs::read_dir(folder.join("1/replay_logs")).unwrap();
    let bytes: u64 = bytes.map(|entry| entry.unwrap().metadata().unwrap().len()).sum();
    assert_eq!(counts.bytes, Some(bytes));

    let task = tasks::game(&game.to_uppercase(), game, stats.actions.len());
    let located = locate(&task, "1", None, &datasets()).unwrap();
    // The published set would be preferred on a machine that has it.
    if located.origin.kind != Kind::Published {
        let n_actions = Some(stats.actions.len());
        assert_eq!(located.origin, Origin { n_actions, ..card.origin() });
        assert!(located.to_string().starts_with("data: the starter set in "), "{located}");
        let by_path = locate(&task, "1", Some(&folder), &datasets()).unwrap();
        assert_eq!((by_path.task, by_path.origin), (located.task, located.origin));
    }
}

#[test]
fn spreads() {
    let spread = Spread::of(vec![4.0, 1.0, 3.0, 8.0]);
    assert_eq!((spread.min, spread.median, spread.max, spread.mean), (1.0, 3.5, 8.0, 4.0));
    // Squares of 0, 3, 1, 4 are 26 together; 26 / 3.
    assert!((spread.sd - (26.0f64 / 3.0).sqrt()).abs() < 1e-12);
    assert_eq!((Spread::of(vec![2.0]).sd, Spread::of(vec![2.0]).median), (0.0, 2.0));
    assert_eq!(Spread::of(vec![]), Spread::default());
}

#[test]
fn seaquest() {
    check("Seaquest", 39_879, 39);
}

#[test]
fn gravitar() {
    check("Gravitar", 39_840, 52);
}

#[test]
fn bank_heist() {
    check("BankHeist", 39_867, 43);
}

#[test]
fn double_dunk() {
    check("DoubleDunk", 39_945, 17);
}

#[test]
fn files_are_the_recorded_ones() {
    let starter = datasets().join("starter");
    let sums = fs::read_to_string(starter.join("SHA256SUMS")).unwrap();
    // Four games, six recordings of robots, one each of CartPole and of the clinic, and the licence of
    // the robots' policies.
    assert_eq!(sums.lines().count(), 4 * 31 + 6 + 2 + 1);
    for line in sums.lines() {
        let (sum, path) = line.split_once("  ").unwrap();
        let digest = Sha256::digest(fs::read(starter.join(path)).unwrap());
        let found: String = digest.iter().map(|byte| format!("{byte:02x}")).collect();
        assert_eq!(found, sum, "{path}");
    }
}

#[test]
fn every_description_can_be_read() {
    let cards = DatasetCard::load_all(&datasets()).unwrap();
    let names: Vec<_> = cards.iter().map(|card| card.name.as_str()).collect();
    for name in ["dqn-replay", "d4rl", "starter-seaquest", "starter-mujoco", "starter-gymnasium"] {
        assert!(names.contains(&name), "{names:?}");
    }
}

/// How the DQN Replay Dataset was recorded.
fn dqn_replay() -> Simulation {
    Simulation::new([
        ("sticky_probability", 0.25f32.into()),
        ("frame_skip", 4u32.into()),
        ("resize", "max_then_area".into()),
        ("max_noops", 0u32.into()),
        ("max_frames", 108_000u32.into()),
        ("terminal_on_life_loss", false.into()),
        ("double_reset", false.into()),
    ])
}
