//! Reading D4RL and Minari files: each layout, and each way a file can be wrong.

use std::fs;
use std::path::{Path, PathBuf};

use overtone_core::{Episode, Outcome};
use overtone_data::error::Fault;
use overtone_data::read::{self, columns};
use overtone_data::{
    ActionColumn, Columns, DataError, Dataset, DatasetOptions, Expected, ObservationColumn, Origin,
    check_named, locate,
};
use overtone_testkit::hdf5_file::reals;
use overtone_testkit::{Hdf5File, check_error, sentences};

use crate::robots::{WIDTHS, action, d4rl, minari, observation, replace, reward, write_d4rl};
use crate::starter::datasets;
use crate::tasks::{inspect_columns, oddities, robot};

fn fixture(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures").join(name)
}

/// Checks a log of the steps of [`crate::robots`].
#[track_caller]
fn check_log(log: &Columns, episodes: &[(usize, Outcome, bool)]) {
    let n = episodes.iter().map(|episode| episode.0).sum();
    let values = (0..n).flat_map(observation).collect();
    assert_eq!(log.observations, ObservationColumn::Vectors { width: WIDTHS.0, values });
    let values = (0..n).flat_map(action).collect();
    assert_eq!(log.actions, ActionColumn::Continuous { width: WIDTHS.1, values });
    assert_eq!(log.rewards, (0..n).map(reward).collect::<Vec<_>>());
    let mut start = 0;
    for (at, &(length, outcome, finished)) in episodes.iter().enumerate() {
        assert_eq!(log.episodes[at], Episode { start, length, outcome });
        assert_eq!(log.finished[at], finished);
        start += length;
    }
    assert_eq!((log.episodes.len(), log.finished.len()), (episodes.len(), episodes.len()));
}

#[test]
fn files_of_h5py_read_alike() {
    use Outcome::{Terminated, Truncated};
    let episodes =
        [(4, Terminated, true), (2, Truncated, true), (2, Truncated, true), (1, Truncated, false)];
    // Compressed with gzip or LZF; doubles, big-endian actions and columns of one number.
    // Next observations are made up.
    for (name, format, odd) in [
        ("gzip.hdf5", "D4RL", 1),
        ("lzf.hdf5", "D4RL", 1),
        ("doubles.hdf5", "D4RL", 0),
        ("minari.hdf5", "Minari", 0),
    ] {
        let log = columns(&fixture(name)).unwrap();
        check_log(&log, &episodes);
        assert_eq!((log.format, log.odd.len()), (format, 0), "{name}");
        let n_broken = usize::from(log.stored.breaks.contains(&true));
        assert_eq!(n_broken, odd, "{name}");
        assert_eq!(log.finished_episodes().count(), 3);
    }
}

#[test]
fn episodes_of_a_file() {
    use Outcome::{Terminated, Truncated};
    let (_dir, path) = d4rl("..tlb.");
    let log = columns(&path).unwrap();
    let ends =
        [(3, Terminated, true), (1, Truncated, true), (1, Terminated, true), (1, Truncated, false)];
    check_log(&log, &ends);
    assert_eq!((log.odd.len(), &log.stored.doubled[..]), (0, &[4][..]));
    // An empty file is read, and is nothing to train on.
    let (_dir, path) = d4rl("");
    let log = columns(&path).unwrap();
    assert_eq!((log.n_transitions(), log.episodes.len()), (0, 0));
}

#[test]
fn episodes_of_minari_come_in_the_order_of_their_numbers() {
    use Outcome::{Terminated, Truncated};
    // Twelve, so that episode_10 sorts before episode_2.
    let steps = "..t .l .. t t t t t t t t .b";
    let (dir, path) = minari(steps);
    let log = columns(&path).unwrap();
    let mut ends = vec![(3, Terminated, true), (2, Truncated, true), (2, Truncated, false)];
    ends.extend([(1, Terminated, true); 8]);
    ends.push((2, Terminated, true));
    check_log(&log, &ends);
    assert_eq!((log.odd.len(), &log.stored.doubled[..]), (0, &[16][..]));
    // Found from its folder, and from the one above.
    assert_eq!(columns(dir.path()).unwrap(), log);
    let above = tempfile::tempdir().unwrap();
    fs::create_dir(above.path().join("data")).unwrap();
    fs::copy(&path, above.path().join("data/main_data.hdf5")).unwrap();
    assert_eq!(columns(above.path()).unwrap().rewards, log.rewards);

    let (_dir, path) = minari("t..t ..l");
    let log = columns(&path).unwrap();
    assert!(log.odd[0].ends_with("taken as whole: 1"), "{:?}", log.odd);
    check_log(&log, &[(4, Terminated, true), (3, Truncated, true)]);
}

#[test]
fn a_minari_episode_without_a_step_is_left_out() {
    let (_dir, path) = minari("..t .l");
    let file = Hdf5File::edit(&path);
    let group = file.group("episode_0");
    for name in ["observations", "actions", "rewards", "terminations", "truncations"] {
        group.delete(name);
    }
    group.put("observations", &observation(0), 3);
    group.put::<f32>("actions", &[], 2);
    group.put::<f32>("rewards", &[], 0);
    group.put::<bool>("terminations", &[], 0);
    group.put::<bool>("truncations", &[], 0);
    drop((group, file));
    let log = columns(&path).unwrap();
    assert_eq!((log.episodes.len(), log.rewards.len()), (1, 2));
    assert!(log.odd[0].contains("without a step, left out: 1"), "{:?}", log.odd);
}

/// Checks the error of a file that was sound before `spoil`.
#[track_caller]
fn check_spoiled(spoil: impl FnOnce(&Path)) {
    let (_dir, path) = d4rl("..t..l.");
    spoil(&path);
    check_error(&path);
}

#[track_caller]
fn check_error(path: &Path) {
    let error = columns(path).unwrap_err().to_string();
    sentences::check(&error);
    assert!(error.contains(path.file_name().unwrap().to_str().unwrap()), "no file in: {error}");
    assert!(!error.contains('\n'), "more than a sentence: {error}");
}

#[test]
fn arrays_that_are_missing() {
    let without = |name: &'static str| move |path: &Path| Hdf5File::edit(path).delete(name);
    for name in ["actions", "rewards", "terminals"] {
        check_spoiled(without(name));
    }
    check_spoiled(without("timeouts"));
    check_spoiled(without("observations"));
    let grouped = |path: &Path| {
        let file = Hdf5File::edit(path);
        file.delete("observations");
        file.group("observations").put("camera", &[0.0f32], 0);
    };
    check_spoiled(grouped);
}

#[test]
fn arrays_of_another_shape_or_length() {
    let with = |name: &'static str, n: usize, width: usize| {
        move |path: &Path| replace(path, name, &vec![0.5f32; n], width)
    };
    check_spoiled(with("observations", 7, 0));
    check_spoiled(with("actions", 0, 0));
    check_spoiled(with("rewards", 14, 2));
    check_spoiled(with("rewards", 6, 0));
    check_spoiled(with("actions", 16, 2));
    let flags = |path: &Path| replace(path, "timeouts", &[false; 8], 0);
    check_spoiled(flags);
    let flat = |path: &Path| {
        let file = Hdf5File::edit(path);
        file.delete("actions");
        file.put_shaped::<f32>("actions", &[], &[7, 0]);
    };
    check_spoiled(flat);
}

#[test]
fn arrays_of_another_type() {
    let words = |path: &Path| {
        Hdf5File::edit(path).build("rewards", |array| {
            array.with_ascii_strings(&["zero"; 7]).unwrap();
        });
    };
    check_spoiled(words);
    let words = |path: &Path| {
        Hdf5File::edit(path).build("terminals", |array| {
            array.with_vlen_strings(&["true"; 7]);
        });
    };
    check_spoiled(words);
    check_spoiled(|path| replace(path, "rewards", &[true; 7], 0));
    // Integers are numbers, and 0 and 1 are flags.
    let (_dir, path) = d4rl("..t..l.");
    replace(&path, "rewards", &[1i64, 2, 3, 4, 5, 6, 7], 0);
    replace(&path, "terminals", &[0i32, 0, 1, 0, 0, 0, 0], 1);
    let log = columns(&path).unwrap();
    assert_eq!(log.rewards, [1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0]);
    assert_eq!(log.finished, [true, true, false]);
}

#[test]
fn whole_numbers_in_a_column_are_discrete_actions() {
    let (_dir, path) = d4rl("..t");
    let listed = ActionColumn::Discrete { n_actions: 3, values: vec![0, 2, 1] };
    for width in [0, 1] {
        replace(&path, "actions", &[0i32, 2, 1], width);
        assert_eq!(columns(&path).unwrap().actions, listed, "{width}");
    }
    replace(&path, "actions", &[0.0f32, 2.0, 1.0], 1);
    let numbers = ActionColumn::Continuous { width: 1, values: vec![0.0, 2.0, 1.0] };
    assert_eq!(columns(&path).unwrap().actions, numbers);
}

#[test]
fn values_that_cannot_be() {
    let nan = |path: &Path| {
        let mut values: Vec<f32> = (0..7).flat_map(observation).collect();
        values[3 * 4 + 2] = f32::NAN;
        replace(path, "observations", &values, 3);
    };
    check_spoiled(nan);
    let infinite =
        |path: &Path| replace(path, "rewards", &[0.0, 0.0, f64::INFINITY, 0.0, 0.0, 0.0, 0.0], 0);
    check_spoiled(infinite);
    // More than a single-precision number can hold.
    let large = |path: &Path| replace(path, "rewards", &[0.0, 1e300, 0.0, 0.0, 0.0, 0.0, 0.0], 0);
    check_spoiled(large);
    let flag = |path: &Path| replace(path, "terminals", &[0u8, 0, 0, 0, 2, 0, 0], 0);
    check_spoiled(flag);
    let half = |path: &Path| replace(path, "timeouts", &[0.0f32, 0.5, 0.0, 0.0, 0.0, 0.0, 0.0], 0);
    check_spoiled(half);
}

/// `fixtures/write_refused.py`.
#[track_caller]
fn check_refused(name: &str) {
    let path = fixture("refused").join(format!("{name}.hdf5"));
    check_error(&path);
    // A check reports the same, and continues with the sound arrays.
    let report = overtone_data::check(&path, &Expected::default()).unwrap().report;
    assert_eq!(report.worst(), Some(overtone_data::Severity::Error), "{report}");
}

#[test]
fn claims_are_compared_with_what_is_stored() {
    check_refused("rows");
    check_refused("tall");
    check_refused("wide");
    check_refused("column");
    check_refused("piece");
    // Many names of one array are counted as many.
    check_refused("same");
    // Zeros that were never written are read where the file is larger than they are.
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("zeros.hdf5");
    let mut bytes = fs::read(fixture("zeros.hdf5")).unwrap();
    fs::write(&path, &bytes).unwrap();
    check_error(&path);
    bytes.resize(1_100_000, 0);
    fs::write(&path, &bytes).unwrap();
    assert_eq!(columns(&path).unwrap().finished, [true]);
}

#[test]
fn arrays_from_elsewhere_are_refused() {
    // Elsewhere is a sound file of the same form: only where it lies is wrong.
    columns(&fixture("refused").join("sound.hdf5")).unwrap();
    check_refused("external");
    check_refused("soft");
    check_refused("outside");
    check_refused("virtual");
    // One of three episodes is a link, and the file does not say how many it has.
    check_refused("elsewhere");
    check_refused("circle");
    check_refused("newest");
}

#[test]
fn a_file_that_another_program_writes_is_refused() {
    let (_dir, path) = d4rl("..t");
    let held = fs::File::open(&path).unwrap();
    held.lock().unwrap();
    let error = columns(&path).unwrap_err();
    assert!(matches!(error, DataError::At { fault: Fault::Locked, .. }), "{error}");
    held.unlock().unwrap();
    columns(&path).unwrap();
}

#[test]
fn files_that_are_cut_short_or_damaged() {
    let whole = fs::read(fixture("gzip.hdf5")).unwrap();
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("cut.hdf5");
    for length in [7, 8, 100, 600, whole.len() / 2, whole.len() - 1] {
        fs::write(&path, &whole[..length]).unwrap();
        let error = columns(&path).unwrap_err();
        let expected = if length < 8 { "not an HDF5 file" } else { "cut.hdf5: " };
        assert!(error.to_string().contains(expected), "{length}: {error}");
        assert!(
            matches!(
                error,
                DataError::At { fault: Fault::NotHdf5, .. }
                    | DataError::At { fault: Fault::Hdf5 { .. }, .. }
            ),
            "{length}: {error}"
        );
    }
    fs::write(&path, "observations,actions\n1,2\n".repeat(100)).unwrap();
    check_error(&path);
    // A damaged piece of a compressed array.
    let starter = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../../datasets/starter/mujoco/hopper_medium.hdf5");
    let mut bytes = fs::read(starter).unwrap();
    let middle = bytes.len() / 2;
    bytes[middle..middle + 64].fill(0xa5);
    fs::write(&path, &bytes).unwrap();
    let error = columns(&path).unwrap_err();
    assert!(matches!(error, DataError::At { fault: Fault::Hdf5 { .. }, .. }), "{error}");
    let error = columns(&dir.path().join("none.hdf5")).unwrap_err();
    assert!(matches!(error, DataError::Missing { .. }), "{error}");
}

#[test]
fn episodes_of_minari_that_do_not_fit() {
    let spoiled = |spoil: &dyn Fn(&Hdf5File)| {
        let (_dir, path) = minari("..t .l");
        spoil(&Hdf5File::edit(&path));
        check_error(&path);
    };
    spoiled(&|file| file.delete("episode_1"));
    // Minari 0.5 says it only in the description next to the file.
    let (dir, path) = minari("..t .l");
    Hdf5File::edit(&path).delete_attribute("total_episodes");
    columns(&path).unwrap();
    fs::write(dir.path().join("metadata.json"), r#"{"total_episodes": 10}"#).unwrap();
    check_error(&path);
    let check = overtone_data::check(&path, &Expected::default()).unwrap();
    assert!(check.report.findings.iter().any(|found| found.code == "missing-episodes"));
    spoiled(&|file| file.delete("episode_1/truncations"));
    let wider = |file: &Hdf5File| {
        file.delete("episode_1/observations");
        file.group("episode_1").put("observations", &[0.0f32; 12], 4);
    };
    spoiled(&wider);
    let short = |file: &Hdf5File| {
        file.delete("episode_0/observations");
        file.group("episode_0").put("observations", &[0.0f32; 9], 3);
    };
    spoiled(&short);
    let grouped = |file: &Hdf5File| {
        file.delete("episode_0/observations");
        file.group("episode_0/observations");
    };
    spoiled(&grouped);
}

#[test]
fn episodes_of_minari_numbered_from_1() {
    let (_dir, path) = minari("..t .l ..t");
    let file = Hdf5File::edit(&path);
    file.delete("episode_0");
    file.delete_attribute("total_episodes");
    drop(file);
    check_error!(
        columns(&path).unwrap_err(),
        DataError::At { fault: Fault::MissingEpisodes { total: 3, found: 2, .. }, .. }
    );
}

#[test]
fn episodes_of_minari_without_their_last_observation() {
    let (_dir, path) = minari("..t .l");
    for (episode, n) in [(0, 3), (1, 2)] {
        let rows = (0..n).flat_map(observation).collect::<Vec<_>>();
        replace(&path, &format!("episode_{episode}/observations"), &rows, 3);
    }
    check_error!(
        columns(&path).unwrap_err(),
        DataError::At { fault: Fault::DatasetLength { .. }, .. }
    );
}

#[test]
fn inspections_count() {
    let (_dir, path) = d4rl("..t.l...");
    replace(
        &path,
        "actions",
        &[0.5f32, 1.5, -1.0, 1.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, -2.0],
        2,
    );
    let found = inspect_columns(&path).unwrap();
    assert_eq!((found.transitions, found.episodes), (8, 2));
    assert_eq!((found.terminated, found.truncated), (1, 1));
    assert_eq!((found.fragments, found.fragment_transitions), (1, 3));
    assert_eq!((found.observation_width, found.action_width), WIDTHS);
    // Their bounds are not known.
    assert_eq!(found.actions_outside, 0);
    // In the five steps of finished episodes; the last row's -2 does not count.
    assert_eq!((found.actions[1].min, found.actions[1].max), (0.0, 1.5));
    // Rewards are -1, -0.75, -0.5 | -0.25, 0: returns -2.25 and -0.25.
    assert_eq!((found.returns.units, found.returns.spread.mean), ("raw", -1.25));
    assert_eq!((found.lengths.min, found.lengths.max), (2.0, 3.0));
    // Rows 0 to 4: mean 2, variance (25 - 1) / 12.
    assert_eq!(found.observations[0].mean, 2.0);
    assert!((found.observations[0].std - 2.0f64.sqrt()).abs() < 1e-12);
    assert_eq!((found.observations[2].min, found.observations[2].max), (-4.0, 0.0));
    assert_eq!((found.rewards.min, found.rewards.max), (-1.0, 0.0));
    let told = ["expected finished episodes alone, found 1 without an end, 3 steps, from row 5"];
    assert_eq!(oddities(&path), told);
    let text = found.to_string();
    assert!(text.contains("2 finished: 1 by the task's end, 1 by a step limit"), "{text}");
    let json = serde_json::to_value(&found).unwrap();
    assert_eq!(
        (json["format"].as_str(), json["returns"]["mean"].as_f64()),
        (Some("d4rl"), Some(-1.25))
    );

    replace(&path, "observations", &[7.0f32; 24], 3);
    let odd = oddities(&path);
    let told =
        "observations: expected numbers that change, found the same in every step at place 0, 1, 2";
    assert!(odd.contains(&told.into()), "{odd:?}");
    let (_dir, path) = d4rl("...");
    assert_eq!(oddities(&path)[0], "expected at least one finished episode, found none");
}

/// A value method would learn from pairs of unrelated observations.
#[test]
fn rows_in_another_order_are_told() {
    let (_dir, path) = d4rl("..t.l");
    let (_, observations) = reals(&path, "observations");
    let mut next = observations.clone();
    next.rotate_left(3);
    replace(&path, "next_observations", &next, 3);
    let told = |path: &Path| {
        let doubts = columns(path).unwrap().doubts(&Expected::default()).into_iter();
        let found = doubts.filter(|finding| finding.code == "ends-and-jumps");
        found.map(|finding| finding.found + &finding.advice).collect::<String>()
    };
    assert_eq!(told(&path), "");
    replace(&path, "next_observations", &observations, 3);
    let found = told(&path);
    assert!(found.starts_with("3 rows without a flag whose next_observations"), "{found}");
    assert!(found.contains("in the order in which they happened"), "{found}");
    // Training does not need the array.
    replace(&path, "next_observations", &[0.0f32; 2], 1);
    assert_eq!(told(&path), "");
}

#[test]
fn discrete_actions_are_whole_numbers() {
    let (_dir, path) = d4rl("..t.l");
    replace(&path, "actions", &[3i64, 0, 1, 2, 0], 0);
    let read = columns(&path).unwrap();
    assert_eq!(read.actions, ActionColumn::Discrete { n_actions: 4, values: vec![3, 0, 1, 2, 0] });
    let report = overtone_data::check(&path, &Expected::default()).unwrap().report;
    assert_eq!(report.worst(), None, "{report}");
    assert_eq!(inspect_columns(&path).unwrap().actions_outside, 0);
    // The task may have more than were recorded.
    let origin = Origin { n_actions: Some(6), ..Origin::other() };
    let options = DatasetOptions { origin, ..DatasetOptions::default() };
    assert_eq!(Dataset::open(&path, &options).unwrap().actions().size(), 6);
    for (bad, said) in [(-1i64, "holds in row 4 -1"), (65_535, "65535, expected one of 65535")] {
        replace(&path, "actions", &[3i64, 0, 1, 2, bad], 0);
        let error = columns(&path).unwrap_err().to_string();
        assert!(error.contains(said), "{error}");
    }
    // Real numbers in one dimension are not vectors.
    replace(&path, "actions", &[0.5f32; 5], 0);
    assert!(matches!(columns(&path), Err(DataError::At { fault: Fault::DatasetShape { .. }, .. })));

    let (_dir, path) = minari("..t .l");
    replace(&path, "episode_0/actions", &[1u8, 0, 1], 0);
    assert!(matches!(columns(&path), Err(DataError::At { fault: Fault::DatasetShape { .. }, .. })));
    replace(&path, "episode_1/actions", &[5u8, 0], 0);
    let read = columns(&path).unwrap();
    assert_eq!(read.actions, ActionColumn::Discrete { n_actions: 6, values: vec![1, 0, 1, 5, 0] });
}

#[test]
fn folders_and_formats() {
    let format = |path: &Path| read::reader_of(path).unwrap().name();
    let (dir, path) = d4rl("..t");
    assert_eq!(format(&path), "D4RL");
    assert_eq!(format(dir.path()), "D4RL");
    assert_eq!(columns(dir.path()).unwrap().n_transitions(), 3);
    write_d4rl(&dir.path().join("other.h5"), "t");
    let error = columns(dir.path()).unwrap_err().to_string();
    assert!(error.contains("2 HDF5 files here; name one"), "{error}");
    // In a directory: the latest version, and never a partial file or a copy.
    let task = robot("hopper", WIDTHS);
    for name in ["medium-v1.hdf5", "medium-v10.hdf5", "medium-v2.hdf5", "medium-v11.hdf5.bak"] {
        write_d4rl(&dir.path().join(format!("hopper_{name}")), "t");
    }
    let found = locate(&task, "medium", Some(dir.path()), &datasets()).unwrap();
    assert!(found.path.ends_with("hopper_medium-v10.hdf5"), "{}", found.path.display());
    check_named(dir.path(), &task, "medium").unwrap();
    check_named(dir.path(), &robot("walker2d", WIDTHS), "medium").unwrap();
    let error = check_named(dir.path(), &task, "medium-replay").unwrap_err().to_string();
    assert!(error.contains("has no hopper_medium_replay; it has hopper_medium-v10"), "{error}");
    let empty = tempfile::tempdir().unwrap();
    assert_eq!(format(empty.path()), "DQN replay");
    assert!(matches!(columns(empty.path()), Err(DataError::At { fault: Fault::NoLog { .. }, .. })));
    assert!(matches!(read::reader_of(&empty.path().join("none")), Err(DataError::Missing { .. })));
}
