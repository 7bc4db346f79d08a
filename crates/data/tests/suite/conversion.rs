//! Conversions: the same bytes for the same seed, whatever happens on the way.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use overtone_core::{Outcome, Simulation};
use overtone_data::error::Fault;
use overtone_data::{
    ActionColumn, DataError, Dataset, Kind, Origin, Preparation, ReplayLog, Selection, locate,
};

use crate::frame_of;
use crate::starter::datasets;
use crate::tasks;
use overtone_testkit::dopamine::{FRAME, Recorder, pixel_of, write_gz};
use overtone_testkit::long_log::Recording;

fn plan(game: &Path, selection: Selection, seed: u64, cache: &Path) -> Preparation {
    let log = ReplayLog::open(game).unwrap();
    Preparation::new(log, Origin::other(), selection, seed, cache).unwrap()
}

/// A log of 9 files whose 12 episodes cross file ends.
fn recording(root: &Path) -> Recorder {
    let mut recorder = Recorder::new(root, "Pong", 16);
    for length in [9, 14, 3, 20, 7, 11, 5, 16, 8, 13, 6, 12] {
        recorder.episode(length);
    }
    recorder
}

fn actions_of(data: &Dataset) -> &[u16] {
    match data.actions() {
        ActionColumn::Discrete { values, .. } => values,
        other => panic!("{other:?}"),
    }
}

#[test]
fn rows_are_the_recorded_steps() {
    let dir = tempfile::tempdir().unwrap();
    let recorder = recording(dir.path());
    let log = ReplayLog::open(recorder.game()).unwrap();
    let finished: Vec<_> = log.finished().copied().collect();
    assert!(finished.len() >= 5, "{finished:?}");
    let dataset = plan(recorder.game(), Selection::uniform(1000), 1, dir.path())
        .ensure(&mut |_, _| {})
        .unwrap();
    dataset.verify().unwrap();
    assert_eq!(dataset.episodes().as_slice().len(), finished.len());
    for (episode, logged) in dataset.episodes().as_slice().iter().zip(&finished) {
        assert_eq!(episode.length as u64, logged.length);
        assert_eq!(episode.outcome, Outcome::Terminated);
        for (row, add) in episode.range().zip(logged.adds()) {
            assert!(frame_of(&dataset, row).iter().all(|&pixel| pixel == pixel_of(add)));
            assert_eq!(u64::from(actions_of(&dataset)[row]), add % 7);
            assert_eq!(dataset.rewards()[row], (add % 3) as f32 - 1.0);
        }
        assert_eq!(f64::from(dataset.returns_to_go()[episode.start]), logged.clipped_return);
    }
    let mut logged: Vec<_> = finished.iter().map(|episode| episode.clipped_return).collect();
    logged.sort_by(f64::total_cmp);
    assert!(dataset.episode_returns().iter().map(f64::from).eq(logged));
    assert_eq!(dataset.actions().size(), 7);
    let manifest = dataset.frames().unwrap().manifest().unwrap();
    let beside = fs::read_to_string(dataset.path().with_file_name("manifest.json")).unwrap();
    assert_eq!(*manifest, serde_json::from_str(&beside).unwrap());
}

#[test]
fn the_seed_decides_which_episodes() {
    let dir = tempfile::tempdir().unwrap();
    let recorder = recording(dir.path());
    let convert = |seed, steps, cache: &str| {
        let cache = dir.path().join(cache);
        let plan = plan(recorder.game(), Selection::uniform(steps), seed, &cache);
        plan.ensure(&mut |_, _| {}).unwrap()
    };
    let bytes = |dataset: &Dataset| fs::read(dataset.path()).unwrap();
    let (one, again) = (convert(1, 30, "a"), convert(1, 30, "b"));
    assert_eq!(bytes(&one), bytes(&again));
    assert_eq!(
        one.path().parent().unwrap().file_name(),
        again.path().parent().unwrap().file_name()
    );
    assert!((30..50).contains(&one.n_transitions()));
    let hashes: BTreeSet<_> =
        (1..9).map(|seed| convert(seed, 30, "a").content_hash().to_owned()).collect();
    assert!(hashes.len() > 3, "{hashes:?}");
    // All of it is the same rows whatever the seed.
    let [first, second] = [1, 2].map(|seed| convert(seed, 1000, "a"));
    assert_eq!((first.content_hash(), first.path()), (second.content_hash(), second.path()));
}

#[test]
fn released_reads_files_as_the_reference_does() {
    let dir = tempfile::tempdir().unwrap();
    // Episode of adds 3..11, saved at 29 with another of 14..22 and the beginning of a third.
    let mut recorder = Recorder::new(dir.path(), "Pong", 30);
    recorder.episode(8);
    recorder.episode(8);
    recorder.episode(20); // Padding 22..25, adds 25..45.
    recorder.episode(30); // Padding 45..48, adds 48..78; the second file is saved at 59.
    assert_eq!(recorder.saved, [(0, 29), (1, 59)]);
    let convert = |num_buffers, trajectories_per_buffer| {
        let selection =
            Selection::Released { num_steps: 1000, num_buffers, trajectories_per_buffer };
        plan(recorder.game(), selection, 4, dir.path()).ensure(&mut |_, _| {}).unwrap()
    };
    // One more episode a visit than said. The first file gives two, the second only the end of
    // the third (slots 0..15, adds 30..45), which is not a visit of two.
    let two = convert(50, 1);
    let lengths =
        |data: &Dataset| data.episodes().as_slice().iter().map(|e| e.length).collect::<Vec<_>>();
    assert_eq!(lengths(&two), [11, 11]);
    assert_eq!(two.counts().padding_rows, 6);
    let pixels: Vec<_> = (0..5).map(|row| frame_of(&two, row)[0]).collect();
    assert_eq!(pixels, [0, 0, 0, pixel_of(3), pixel_of(4)]);
    // Only the last file: its first slots continue an episode, and have no padding.
    let last = convert(1, 0);
    assert_eq!(lengths(&last), [15]);
    assert_eq!(last.counts().padding_rows, 0);
    assert_eq!(frame_of(&last, 0)[0], pixel_of(30));
    // Both, one episode a visit.
    let mut all = lengths(&convert(50, 0));
    all.sort_unstable();
    assert_eq!(all, [11, 11, 15]);
}

#[test]
fn a_picture_in_padding_is_refused() {
    let dir = tempfile::tempdir().unwrap();
    let mut recorder = Recorder::new(dir.path(), "Pong", 600);
    recorder.episode(5);
    recorder.episode(6);
    recorder.episode(500); // More than is inflated ahead of the check that fails.
    recorder.ring[9].pixel = 77; // Padding of the second episode.
    recorder.save();
    let odd = tasks::oddities(recorder.game());
    assert!(odd.iter().any(|odd| odd.contains("1 padding slot with a picture")));
    let plan = plan(recorder.game(), Selection::uniform(1000), 1, &dir.path().join("cache"));
    let error = plan.ensure(&mut |_, _| {}).unwrap_err();
    assert!(matches!(error, DataError::At { fault: Fault::Value { slot: 9, .. }, .. }), "{error}");
    // Nothing stays behind.
    let left = fs::read_dir(plan.store.parent().unwrap()).unwrap().count();
    assert_eq!(left, 0);
}

#[test]
fn a_shard_cut_short_is_refused() {
    let dir = tempfile::tempdir().unwrap();
    let recorder = recording(dir.path());
    let plan = plan(recorder.game(), Selection::uniform(1000), 1, &dir.path().join("cache"));
    let shard = recorder.folder.join("$store$_observation_ckpt.1.gz");
    let bytes = fs::read(&shard).unwrap();
    fs::write(&shard, &bytes[..bytes.len() / 2]).unwrap();
    let error = plan.ensure(&mut |_, _| {}).unwrap_err();
    assert!(matches!(error, DataError::At { fault: Fault::Truncated { .. }, .. }), "{error}");
    // Nothing stays behind.
    assert_eq!(fs::read_dir(plan.store.parent().unwrap()).unwrap().count(), 0);
}

#[test]
fn other_sources_have_another_place() {
    let dir = tempfile::tempdir().unwrap();
    let recorder = recording(dir.path());
    let place = || plan(recorder.game(), Selection::uniform(1000), 1, dir.path()).store;
    let before = place();
    let shard = recorder.folder.join("$store$_observation_ckpt.1.gz");
    let mut frames = Vec::new();
    std::io::Read::read_to_end(
        &mut flate2::read::GzDecoder::new(fs::File::open(&shard).unwrap()),
        &mut frames,
    )
    .unwrap();
    *frames.last_mut().unwrap() ^= 1;
    write_gz(&shard, &frames);
    assert_ne!(place(), before);
}

/// Set for a child process: where it converts the Seaquest starter set to.
const CHILD: &str = "OVERTONE_TEST_CONVERT_TO";

fn starter_plan(cache: &Path) -> Preparation {
    let located =
        locate(&tasks::seaquest(), "1", Some(&datasets().join("starter/Seaquest")), &datasets());
    let located = located.unwrap();
    assert_eq!(located.origin.kind, Kind::Starter);
    let log = ReplayLog::open(&located.path).unwrap();
    Preparation::new(log, located.origin, Selection::uniform(20_000), 7, cache).unwrap()
}

/// The child process: it converts, and prints its peak memory.
#[test]
#[ignore = "the other process of a test; alone it does nothing"]
fn child() {
    let Some(cache) = std::env::var_os(CHILD) else { return };
    let plan = starter_plan(Path::new(&cache));
    let before = peak_memory_kb();
    plan.ensure(&mut |_, _| {}).unwrap();
    println!("peak memory: {before} to {} kB", peak_memory_kb());
}

/// Peak resident memory of this process, mapped pages of files included.
fn peak_memory_kb() -> u64 {
    let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
    line.and_then(|line| line.trim().trim_end_matches(" kB").parse().ok()).unwrap_or(0)
}

fn spawn(cache: &Path) -> Child {
    spawn_with(cache, None)
}

fn spawn_with(cache: &Path, threads: Option<&str>) -> Child {
    Command::new(std::env::current_exe().unwrap())
        .envs(threads.map(|threads| ("RAYON_NUM_THREADS", threads)))
        .args(["conversion::child", "--exact", "--nocapture", "--ignored"])
        .env(CHILD, cache)
        .stdout(Stdio::piped())
        .spawn()
        .unwrap()
}

fn partials(store: &Path) -> Vec<PathBuf> {
    let Ok(entries) = fs::read_dir(store.parent().unwrap()) else { return Vec::new() };
    let paths = entries.map(|entry| entry.unwrap().path());
    paths.filter(|path| path.extension().is_some_and(|e| e == "partial")).collect()
}

#[test]
fn killed_in_the_middle_it_is_redone_and_two_at_once_agree() {
    let dir = tempfile::tempdir().unwrap();
    let (killed, undisturbed) = (dir.path().join("killed"), dir.path().join("undisturbed"));
    let plan = starter_plan(&killed);

    let mut child = spawn(&killed);
    let start = Instant::now();
    while partials(&plan.store).is_empty() {
        assert!(start.elapsed() < Duration::from_secs(30), "the child never began");
        std::thread::sleep(Duration::from_millis(1));
    }
    std::thread::sleep(Duration::from_millis(30));
    child.kill().unwrap(); // SIGKILL.
    child.wait().unwrap();
    assert!(!plan.store.exists(), "it was killed too late to test anything");
    assert_eq!(partials(&plan.store).len(), 1);

    let mut reports = Vec::new();
    let dataset = plan.ensure(&mut |done, total| reports.push((done, total))).unwrap();
    assert!(partials(&plan.store).is_empty(), "the leftover stays");
    assert!(reports.is_sorted());
    assert_eq!(reports.last().unwrap().0, plan.inflate_bytes);
    dataset.verify().unwrap();
    assert!((20_000..22_500).contains(&dataset.n_transitions()));
    assert_eq!(dataset.origin().recording, Some(dqn_replay()));

    // Two processes do not disturb each other.
    let children = [spawn(&undisturbed), spawn(&undisturbed)];
    for child in children {
        let output = child.wait_with_output().unwrap();
        assert!(output.status.success());
        let text = String::from_utf8(output.stdout).unwrap();
        let (_, peak) = text.split_once("peak memory: ").unwrap();
        let peak: u64 = peak.split_whitespace().nth(2).unwrap().parse().unwrap();
        // 142 MB are written. 7,300 kB were seen on 2 threads; a thread takes about 1,000.
        assert!(peak < 40_000, "{peak} kB resident");
    }
    let other = starter_plan(&undisturbed).store;
    assert_eq!(fs::read(&plan.store).unwrap(), fs::read(&other).unwrap());
    assert!(partials(&other).is_empty());
}

#[test]
fn a_disk_too_small_is_refused_before_anything_is_written() {
    let dir = tempfile::tempdir().unwrap();
    let recorder = recording(dir.path());
    let mut plan = plan(recorder.game(), Selection::uniform(1000), 1, &dir.path().join("cache"));
    plan.check_disk().unwrap();
    plan.disk_bytes = 1 << 60;
    let error = plan.ensure(&mut |_, _| {}).unwrap_err();
    assert!(matches!(error, DataError::At { fault: Fault::DiskFull { .. }, .. }), "{error}");
    assert!(!plan.store.parent().unwrap().exists());
}

#[test]
fn the_number_of_threads_changes_nothing() {
    let dir = tempfile::tempdir().unwrap();
    let children = ["1", "5"].map(|threads| {
        let cache = dir.path().join(threads);
        (spawn_with(&cache, Some(threads)), cache)
    });
    let stores = children.map(|(child, cache)| {
        assert!(child.wait_with_output().unwrap().status.success());
        fs::read(starter_plan(&cache).store).unwrap()
    });
    assert!(stores[0] == stores[1], "other bytes with other threads");
}

#[test]
fn a_long_log_repeats_its_recording() {
    let dir = tempfile::tempdir().unwrap();
    let mut recording = Recording::default();
    // 3 + 7 and 3 + 12 slots: 25 that come again and again in 3 files of 40 slots.
    let (mut pixels, mut actions) = (Vec::new(), Vec::new());
    for (episode, length) in [7u8, 12].into_iter().enumerate() {
        let episode: Vec<u8> = (0..length).map(|step| 100 * episode as u8 + step + 1).collect();
        let frames: Vec<u8> = episode.iter().flat_map(|&pixel| [pixel; FRAME]).collect();
        let chosen: Vec<u8> = episode.iter().map(|pixel| pixel % 6).collect();
        recording.push(&frames, &chosen, &vec![0.5; episode.len()]);
        pixels.extend(episode);
        actions.extend(chosen);
    }
    let game = recording.write(dir.path(), "Pong", 40, 3);
    let found = tasks::inspect_log(&game).unwrap();
    // Its rewards are halves, and nothing else is odd.
    let halves = |odd: &String| odd.starts_with("expected rewards -1, 0 and 1");
    let odd = tasks::oddities(&game);
    assert!(odd.iter().all(halves), "{odd:?}");
    // 119 adds, the last stale slots' included: 4 times both episodes, then 3 + 7 + 3 + 6.
    assert_eq!((found.episodes, found.cut_episodes, found.transitions), (9, 1, 4 * 19 + 13));
    let dataset = plan(&game, Selection::uniform(1000), 1, &dir.path().join("cache"))
        .ensure(&mut |_, _| {})
        .unwrap();
    assert_eq!(dataset.n_transitions(), 4 * 19 + 7);
    for row in 0..dataset.n_transitions() {
        assert_eq!(frame_of(&dataset, row), [pixels[row % 19]; FRAME], "row {row}");
        assert_eq!(actions_of(&dataset)[row], u16::from(actions[row % 19]));
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
