//! Ring logic: synthetic logs of any capacity against what was recorded.

use overtone_data::ReplayLog;
use overtone_data::read::replay_log::Ending;
use proptest::prelude::*;

use crate::tasks::{inspect_log, oddities};
use overtone_testkit::dopamine::Recorder;

#[test]
fn the_stale_slot_is_the_step_between_two_files() {
    let dir = tempfile::tempdir().unwrap();
    // Adds 0..3 padding, 3..15 steps: slots 0..9 of pass 0 are saved at add_count 9.
    let mut recorder = Recorder::new(dir.path(), "Pong", 10);
    recorder.episode(12);
    recorder.episode(5); // Adds 15..18 padding, 18..23 steps; saved at add_count 19.
    assert_eq!(recorder.saved, [(0, 9), (1, 19)]);
    let log = ReplayLog::open(recorder.game()).unwrap();
    assert_eq!(log.files[0].adds, 0..9);
    assert_eq!(log.files[1].adds, 9..19);
    assert_eq!(log.counts.stale, 2);
    assert_eq!(log.counts.recovered, 1);
    assert_eq!(log.counts.padding, 6);
    // Steps at adds 3..15 and 18.
    assert_eq!(log.counts.transitions, 13);
    let [whole, cut] = log.episodes[..] else { panic!("{:?}", log.episodes) };
    assert_eq!((whole.first, whole.length, whole.ending), (3, 12, Ending::GameOver));
    assert_eq!((cut.first, cut.length, cut.ending), (18, 1, Ending::Cut));
    // Steps 3..9 are slots 3..9 of file 0; step 9 is file 1's stale slot 9; 10..15 its 0..5.
    let slots: Vec<_> =
        log.locate(whole.adds()).iter().map(|r| (r.file, r.slot, r.length)).collect();
    assert_eq!(slots, [(0, 3, 6), (1, 9, 1), (1, 0, 5)]);
    assert!(log.odd.is_empty(), "{:?}", log.odd);
}

#[test]
fn a_save_skipped_inside_padding_is_a_gap() {
    let dir = tempfile::tempdir().unwrap();
    let mut recorder = Recorder::new(dir.path(), "Pong", 10);
    recorder.episode(4); // Adds 3..7.
    // Padding 7..10 passes the cursor 9 without a save; 10..16 and so on follow.
    recorder.episode(6);
    recorder.episode(12); // Padding 16..19: skipped again; steps 19..31, saved at 29.
    assert_eq!(recorder.saved, [(0, 29)]);
    let log = ReplayLog::open(recorder.game()).unwrap();
    // Only adds 19..29 are left: the third episode's head is known to be nowhere, since the
    // slots before it are gone.
    assert_eq!(log.files[0].adds, 19..29);
    assert!(log.episodes.is_empty());
    assert_eq!((log.counts.headless, log.counts.headless_transitions), (1, 10));
    let inspection = inspect_log(recorder.game()).unwrap();
    assert_eq!(inspection.transitions, 10);
    assert!(!oddities(recorder.game()).is_empty());
}

#[test]
fn a_missing_file_cuts_the_episode_before_it() {
    let dir = tempfile::tempdir().unwrap();
    let mut recorder = Recorder::new(dir.path(), "Pong", 10);
    recorder.episode(27); // Adds 3..30; files at 9, 19, 29.
    recorder.episode(15); // Padding 30..33, adds 33..48; file at 39.
    assert_eq!(recorder.saved.len(), 4);
    for column in ["$store$_observation", "$store$_action", "$store$_reward", "$store$_terminal"] {
        std::fs::remove_file(recorder.folder.join(format!("{column}_ckpt.1.gz"))).unwrap();
    }
    let log = ReplayLog::open(recorder.game()).unwrap();
    // File 0 has adds 0..9, file 2 19..29, file 3 29..39.
    assert_eq!(log.episodes.len(), 2);
    assert_eq!((log.episodes[0].length, log.episodes[0].ending), (6, Ending::Cut));
    assert_eq!((log.episodes[1].first, log.episodes[1].ending), (33, Ending::Cut));
    assert_eq!(log.counts.headless_transitions, 11); // Adds 19..30.
    assert_eq!(log.counts.transitions, 6 + 11 + 6);
}

#[test]
fn oddities_of_a_log() {
    let dir = tempfile::tempdir().unwrap();
    let mut recorder = Recorder::new(dir.path(), "Pong", 40);
    recorder.episode(10);
    // A slot of the padding before the second episode holds an action.
    recorder.episode(5);
    recorder.ring[14].action = 4;
    recorder.ring[15].reward = 7.0;
    recorder.save();
    let odd = oddities(recorder.game()).join("\n");
    assert!(odd.contains("begins with 1 padding slots"), "{odd}");
    assert!(odd.contains("clipped to [-1, 1]"), "{odd}");
    assert!(odd.contains("cursor at slot 21,"), "{odd}");
}

/// Episodes of the recording that a reader of the saved files can know to be whole.
fn known_whole(recorder: &Recorder) -> Vec<(u64, u64, f64)> {
    let capacity = recorder.ring.len() as u64;
    let held =
        |add: u64| recorder.saved.iter().any(|&(_, count)| add < count && add + capacity >= count);
    let recorded = recorder.episodes.iter();
    recorded
        .map(|e| (e.first, e.steps.len() as u64, e.steps.iter().map(|s| f64::from(s.reward)).sum()))
        // The slot before the padding is the terminal before the episode.
        .filter(|&(first, length, _)| (first.saturating_sub(4)..first + length).all(held))
        .collect()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]
    #[test]
    fn every_whole_episode_is_found_and_every_add_counted_once(
        capacity in 8usize..40,
        lengths in prop::collection::vec(1usize..50, 1..8),
    ) {
        let dir = tempfile::tempdir().unwrap();
        let mut recorder = Recorder::new(dir.path(), "Pong", capacity);
        for length in lengths {
            recorder.episode(length);
        }
        prop_assume!(recorder.files > 0);
        let log = ReplayLog::open(recorder.game()).unwrap();
        let found: Vec<_> =
            log.finished().map(|e| (e.first, e.length, e.clipped_return)).collect();
        prop_assert_eq!(found, known_whole(&recorder));
        let held = recorder.add_count.min(
            log.files.iter().map(|file| file.adds.end - file.adds.start).sum::<u64>());
        let counts = &log.counts;
        prop_assert!(counts.transitions + counts.padding <= held);
        let steps: u64 = log.episodes.iter().map(|e| e.length).sum();
        prop_assert_eq!(steps + counts.headless_transitions, counts.transitions);
        prop_assert_eq!(counts.actions.iter().sum::<u64>(), counts.transitions);
        prop_assert_eq!(counts.rewards.values().sum::<u64>(), counts.transitions);
    }
}
