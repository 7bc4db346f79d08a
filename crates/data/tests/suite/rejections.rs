//! Each way a file can be wrong, from a few bytes, and what is said about it.

use std::fs;
use std::path::Path;

use overtone_data::error::Fault;
use overtone_data::read::npy::{NpyStream, read_small};
use overtone_data::{DataError, Preparation, ReplayLog, Selection, locate};
use overtone_data::{Dataset, Origin};
use proptest::prelude::*;

use crate::starter::datasets;
use crate::tasks;
use overtone_testkit::dopamine::{FRAME, Recorder, npy, npy_with_dict, write_gz};

/// Checks the error of reading `bytes`, gzipped, as three `<i4`.
#[track_caller]
fn check(bytes: &[u8], expected: &str) {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("array.gz");
    write_gz(&path, bytes);
    let read = || -> Result<(), DataError> {
        let stream = NpyStream::open(&path)?;
        stream.expect::<i32>(&[Some(3)])?;
        stream.for_each::<i32>(|_, _| Ok(()))
    };
    match read() {
        Ok(()) => assert_eq!(expected, "", "was read"),
        Err(error) => {
            let text = error.to_string();
            assert!(!expected.is_empty() && text.contains(expected), "{text}");
            assert!(text.contains("array.gz"), "no file in: {text}");
            assert!(!text.contains('\n'), "more than a sentence: {text}");
        }
    }
}

#[test]
fn arrays() {
    let data = [0; 12];
    check(&npy("<i4", &[3], &data), "");
    check(&npy("<f4", &[3], &data), "has dtype <f4, expected <i4");
    check(&npy(">i4", &[3], &data), "has dtype >i4, expected <i4");
    check(&npy("<i4", &[4], &data), "has shape [4], expected [3]");
    check(&npy("<i4", &[3, 1], &data), "has shape [3, 1], expected [3]");
    check(&npy("|O", &[3], &data), "pickled Python objects");
    check(&npy("<i4", &[3], &data[..11]), "ends after 11 of 12 bytes");
    check(&npy("<i4", &[3], &[0; 13]), "bytes follow the end");
    check(b"", "ends inside its header");
    check(b"\x93NUMPY\x01\x00\x80\x00{'descr'", "ends inside its header");
    check(b"\x80\x04\x95 a pickle, not an array", "NumPy's magic bytes");
    check(b"\x93NUMPY\x09\x00\x00\x00", "version is 9.0");
    check(b"\x93NUMPY\x02\x00\xff\xff\xff\xff", "more than the 10000 allowed");
}

#[test]
fn headers() {
    let dict = |dict: &str| npy_with_dict(dict, &[0; 12]);
    let good = "{'descr': '<i4', 'fortran_order': False, 'shape': (3,)}";
    check(&dict(good), "");
    // One dimension has no order, and old NumPy wrote longs with an L.
    check(&dict(&good.replace("False", "True").replace("3,", "3L,")), "");
    check(&dict(&good.replace("False", "True").replace("(3,)", "(3, 1)")), "Fortran order");
    check(&dict(&good.replace("'<i4'", "[('a', '<i4')]")), "elements are records");
    check(&dict(&good.replace("3,", "99999999999999999999,")), "not a dictionary");
    check(&dict(&good.replace("3,", "9999999999999, 9999999999999")), "size overflows");
    check(&dict(&good.replace("3,", "1,1,1,1,1,1,1,1,3")), "more than 8 dimensions");
    check(&dict(&good.replace("3,", "-3,")), "not a dictionary");
    check(&dict(&good.replace("'shape'", "'form'")), "not a dictionary");
    check(&dict("{'descr': '<i4', 'shape': (3,)}"), "not a dictionary");
    check(&dict("os.system('…')"), "not a dictionary");
    let version_2 = {
        let one = npy("<i4", &[3], &[0; 12]);
        let length = u32::from(u16::from_le_bytes([one[8], one[9]]));
        let length = length.to_le_bytes();
        [&b"\x93NUMPY\x02\x00"[..], &length, &one[10..]].concat()
    };
    check(&version_2, "");
}

#[test]
fn gzip() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("array.gz");
    write_gz(
        &path,
        &npy("<i8", &[2000], &(0..2000i64).flat_map(i64::to_le_bytes).collect::<Vec<_>>()),
    );
    let whole = fs::read(&path).unwrap();
    let read = |bytes: &[u8]| {
        fs::write(&path, bytes).unwrap();
        read_small::<i64>(&path, 2000).map(|values| values.len())
    };
    assert_eq!(read(&whole).unwrap(), 2000);
    assert!(matches!(
        read(&whole[..whole.len() / 2]),
        Err(DataError::At { fault: Fault::Truncated { .. }, .. })
    ));
    // The checksum at the end is missing, or does not fit.
    assert!(read(&whole[..whole.len() - 4]).is_err());
    let mut flipped = whole.clone();
    let crc = whole.len() - 8;
    flipped[crc] ^= 1;
    assert!(matches!(read(&flipped), Err(DataError::At { fault: Fault::Gzip { .. }, .. })));
    assert!(matches!(
        read(b"not gzip at all, just text"),
        Err(DataError::At { fault: Fault::Gzip { .. }, .. })
    ));
    assert!(read_small::<i64>(&dir.path().join("none.gz"), 1).is_err());
    fs::write(&path, &whole).unwrap();
    assert!(matches!(
        read_small::<i64>(&path, 1999),
        Err(DataError::At { fault: Fault::Shape { .. }, .. })
    ));
}

#[test]
fn a_huge_claim_costs_nothing() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("array.gz");
    write_gz(&path, &npy("<i8", &[1 << 55], &[0; 80]));
    // Sixteen times 2⁵⁵ elements do not overflow, and are not allocated either.
    let error = read_small::<i64>(&path, usize::MAX).unwrap_err();
    assert!(
        matches!(error, DataError::At { fault: Fault::Truncated { got: 0..=80, .. }, .. }),
        "{error}"
    );
}

/// A log of two files, whose file `name` is replaced by `bytes` (gzipped).
#[track_caller]
fn check_log(name: &str, bytes: &[u8], expected: &str) {
    let dir = tempfile::tempdir().unwrap();
    let mut recorder = Recorder::new(dir.path(), "Pong", 10);
    recorder.episode(25);
    write_gz(&recorder.folder.join(name), bytes);
    let error = tasks::inspect_log(recorder.game()).unwrap_err().to_string();
    assert!(error.contains(expected), "{error}");
    assert!(error.contains(name), "no file in: {error}");
}

#[test]
fn files_of_a_log() {
    let observation = "$store$_observation_ckpt.1.gz";
    check_log(observation, &npy("|u1", &[10, 84, 83], &[]), "has shape [10, 84, 83]");
    check_log(observation, &npy("|u1", &[11, 84, 84], &[]), "has shape [11, 84, 84]");
    check_log(observation, &npy("<f4", &[10, 84, 84], &[]), "has dtype <f4");
    check_log(observation, &npy("|O", &[10, 84, 84], &[]), "pickled");
    let short = npy("|u1", &[10, 84, 84], &vec![0; 9 * FRAME]);
    check_log(observation, &short, "cut short");
    let action = "$store$_action_ckpt.1.gz";
    let actions = |value: i32| value.to_le_bytes().repeat(10);
    check_log(action, &npy("<i4", &[10], &actions(18)), "action 18, expected 0 to 17");
    check_log(action, &npy("<i4", &[10], &actions(-1)), "action -1");
    check_log(action, &npy("<i4", &[1 << 40], &[]), "expected between 1 and");
    check_log(action, &npy("<i4", &[0], &[]), "expected between 1 and");
    let reward = "$store$_reward_ckpt.1.gz";
    let nan = f32::NAN.to_le_bytes().repeat(10);
    check_log(reward, &npy("<f4", &[10], &nan), "reward NaN");
    check_log("$store$_terminal_ckpt.1.gz", &npy("|u1", &[10], &[2; 10]), "terminal 2");
    check_log("add_count_ckpt.1.gz", &npy("<i8", &[], &(-3i64).to_le_bytes()), "[-3]");
    check_log("add_count_ckpt.1.gz", &npy("<i4", &[], &[0; 4]), "has dtype <i4");
    check_log("add_count_ckpt.1.gz", b"\x80\x03cnumpy", "magic bytes");
}

#[test]
fn files_that_do_not_belong_together() {
    let dir = tempfile::tempdir().unwrap();
    let mut recorder = Recorder::new(dir.path(), "Pong", 10);
    recorder.episode(25);
    let mut other = Recorder::new(dir.path(), "Other", 12);
    other.episode(25);
    for entry in fs::read_dir(&other.folder).unwrap() {
        let path = entry.unwrap().path();
        let name = path.file_name().unwrap().to_string_lossy().into_owned();
        if name.ends_with(".1.gz") {
            fs::copy(&path, recorder.folder.join(name)).unwrap();
        }
    }
    let error = ReplayLog::open(recorder.game()).unwrap_err();
    assert!(matches!(error, DataError::At { fault: Fault::Inconsistent { .. }, .. }), "{error}");
    fs::remove_file(recorder.folder.join("$store$_reward_ckpt.1.gz")).unwrap();
    let error = ReplayLog::open(recorder.game()).unwrap_err();
    assert!(matches!(error, DataError::Missing { .. }), "{error}");
}

#[test]
fn places_and_games() {
    let error = locate(&tasks::seaquest(), "1", Some(Path::new("/nowhere/at/all")), &datasets());
    assert!(matches!(error, Err(DataError::Missing { .. })));
    let empty = tempfile::tempdir().unwrap();
    let error = locate(&tasks::gravitar(), "1", None, empty.path()).unwrap_err();
    assert!(matches!(error, DataError::Missing { .. }), "{error}");
    let error = locate(&tasks::gravitar(), "1", None, &empty.path().join("none")).unwrap_err();
    assert!(matches!(error, DataError::Missing { .. }), "{error}");
    // A description may not name files outside of its folder.
    let card = fs::read_to_string(datasets().join("d4rl.toml")).unwrap();
    for odd in ["../{task}_{dataset}", "/etc/{task}", "a/../{dataset}"] {
        let odd = card.replace("published/d4rl/{task}_{dataset}-v2.hdf5", odd);
        assert_ne!(odd, card);
        fs::write(empty.path().join("bad.toml"), odd).unwrap();
        let error = locate(&tasks::gravitar(), "1", None, empty.path()).unwrap_err();
        assert!(error.to_string().contains("expected a path of plain names"), "{error}");
    }
    fs::write(empty.path().join("bad.toml"), "name = 3").unwrap();
    let error = locate(&tasks::gravitar(), "1", None, empty.path()).unwrap_err();
    assert!(matches!(error, DataError::At { fault: Fault::Card { .. }, .. }), "{error}");
}

/// A broken description is an error also for data at a path, because it might describe them.
#[test]
fn a_broken_description_is_an_error_for_data_at_a_path() {
    let folder = tempfile::tempdir().unwrap();
    let recorder = Recorder::new(folder.path(), "Seaquest", 10);
    write_gz(&recorder.folder.join("$store$_action_ckpt.0.gz"), b"");
    let at = || locate(&tasks::seaquest(), "1", Some(recorder.game()), folder.path());
    at().unwrap();
    fs::write(folder.path().join("bad.toml"), "name = 3").unwrap();
    let error = at().unwrap_err();
    assert!(matches!(error, DataError::At { fault: Fault::Card { .. }, .. }), "{error}");
}

#[test]
fn the_requested_run_is_read() {
    let folder = tempfile::tempdir().unwrap();
    let recorder = Recorder::new(folder.path(), "Seaquest", 10);
    for run in ["1", "2"] {
        let logs = recorder.game().join(run).join("replay_logs");
        fs::create_dir_all(&logs).unwrap();
        write_gz(&logs.join("$store$_action_ckpt.0.gz"), b"");
    }
    let at = |run: &str, path: &Path| {
        locate(&tasks::seaquest(), run, Some(path), &folder.path().join("none"))
    };
    assert_eq!(at("1", recorder.game()).unwrap().path, recorder.game());
    assert!(at("2", recorder.game()).unwrap().path.ends_with("Seaquest/2"));
    // Run 1 is the default, and a run's directory is that run.
    at("1", &recorder.game().join("2")).unwrap();
    for path in [recorder.game().to_path_buf(), recorder.game().join("1")] {
        let error = at("3", &path).unwrap_err().to_string();
        assert!(error.contains("run 3 is not here (data.run=3); run 1 is"), "{error}");
    }
}

#[test]
fn selections_that_leave_nothing() {
    let dir = tempfile::tempdir().unwrap();
    let mut recorder = Recorder::new(dir.path(), "Pong", 10);
    recorder.episode(8); // Cut at add 9 of 11.
    let plan = |selection| {
        let log = ReplayLog::open(recorder.game()).unwrap();
        Preparation::new(log, Origin::other(), selection, 1, dir.path()).unwrap_err()
    };
    for selection in [Selection::uniform(100), Selection::RELEASED, Selection::uniform(0)] {
        let error = plan(selection);
        assert!(
            matches!(error, DataError::At { fault: Fault::NothingSelected { .. }, .. }),
            "{error}"
        );
    }
}

#[test]
fn rewards_that_are_not_clipped() {
    let dir = tempfile::tempdir().unwrap();
    let mut recorder = Recorder::new(dir.path(), "Pong", 30);
    recorder.episode(20);
    recorder.save();
    let plan = || {
        let log = ReplayLog::open(recorder.game()).unwrap();
        Preparation::new(log, Origin::other(), Selection::uniform(10), 1, dir.path())
    };
    plan().unwrap();
    let mut rewards = vec![0.0f32; 30];
    rewards[5..8].copy_from_slice(&[20.0, -1.5, 1.0]);
    let rewards: Vec<u8> = rewards.into_iter().flat_map(f32::to_le_bytes).collect();
    write_gz(&recorder.folder.join("$store$_reward_ckpt.0.gz"), &npy("<f4", &[30], &rewards));
    let error = plan().unwrap_err().to_string();
    assert!(error.contains("2 of its rewards lie outside [-1, 1]"), "{error}");
    assert!(error.contains("Pong") && error.contains("data lint"), "{error}");
}

#[test]
fn damaged_stores() {
    let dir = tempfile::tempdir().unwrap();
    let mut recorder = Recorder::new(dir.path(), "Pong", 30);
    recorder.episode(15);
    recorder.episode(5);
    recorder.save();
    let log = ReplayLog::open(recorder.game()).unwrap();
    let cache = dir.path().join("cache");
    let plan = Preparation::new(log, Origin::other(), Selection::uniform(100), 1, &cache).unwrap();
    let store = plan.store.clone();
    plan.ensure(&mut |_, _| {}).unwrap().verify().unwrap();
    let whole = fs::read(&store).unwrap();
    let damaged = dir.path().join("damaged.safetensors");
    let open = |bytes: &[u8]| {
        fs::write(&damaged, bytes).unwrap();
        Dataset::open_store(&damaged)
    };
    for cut in [0, 7, 8, 100, whole.len() / 2, whole.len() - 1] {
        assert!(
            matches!(open(&whole[..cut]), Err(DataError::At { fault: Fault::Store { .. }, .. })),
            "{cut}"
        );
    }
    // A manifest that counts more rows than there are bytes, so many that sizes overflow.
    let rows = format!("\\\"rows\\\":{}", plan.rows);
    let at = whole.windows(rows.len()).position(|part| part == rows.as_bytes()).unwrap();
    let claim = format!("\\\"rows\\\":{}", 1u64 << 60);
    let mut claimed = [&whole[..at], claim.as_bytes(), &whole[at + rows.len()..]].concat();
    let header = u64::from_le_bytes(whole[..8].try_into().unwrap());
    claimed[..8].copy_from_slice(&(header + (claim.len() - rows.len()) as u64).to_le_bytes());
    let error = open(&claimed).unwrap_err().to_string();
    assert!(error.contains("counts more than the file can hold"), "{error}");
    let longer = [&whole[..], &[0]].concat();
    assert!(matches!(open(&longer), Err(DataError::At { fault: Fault::Store { .. }, .. })));
    let mut huge = whole.clone();
    huge[..8].copy_from_slice(&u64::MAX.to_le_bytes());
    assert!(matches!(open(&huge), Err(DataError::At { fault: Fault::Store { .. }, .. })));
    // A flipped pixel is not seen by opening, and is by verifying.
    let mut flipped = whole.clone();
    *flipped.last_mut().unwrap() ^= 1;
    let dataset = open(&flipped).unwrap();
    assert!(matches!(dataset.verify(), Err(DataError::At { fault: Fault::Store { .. }, .. })));
    drop(dataset);

    // No damage to the header or the small columns brings the reader down.
    let small = whole.len() - plan.rows * FRAME;
    let mut runner = proptest::test_runner::TestRunner::new(ProptestConfig::with_cases(300));
    runner
        .run(&(0..small, any::<u8>()), |(at, byte)| {
            let mut changed = whole.clone();
            changed[at] = byte;
            let opened = open(&changed);
            let sound = opened.is_err() || opened.is_ok_and(|d| d.n_transitions() == plan.rows);
            prop_assert!(sound);
            Ok(())
        })
        .unwrap();

    // A damaged store under its own name is made again.
    fs::write(&store, &whole[..100]).unwrap();
    plan.ensure(&mut |_, _| {}).unwrap();
    assert_eq!(fs::read(&store).unwrap(), whole);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]
    #[test]
    fn arrays_survive_writing_and_reading(
        floats in prop::collection::vec(any::<f32>(), 0..300),
        cut in 0usize..400, flip in any::<u8>(),
    ) {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("array.gz");
        let data: Vec<u8> = floats.iter().flat_map(|float| float.to_le_bytes()).collect();
        let array = npy("<f4", &[floats.len()], &data);
        write_gz(&path, &array);
        let read = read_small::<f32>(&path, 300).unwrap();
        prop_assert!(read.iter().map(|f| f.to_bits()).eq(floats.iter().map(|f| f.to_bits())));
        // Any change of the file gives an error or an array, never a panic.
        let mut gz = fs::read(&path).unwrap();
        let at = cut % gz.len();
        gz[at] ^= flip;
        fs::write(&path, &gz).unwrap();
        let _ = read_small::<f32>(&path, 300);
        gz.truncate(at);
        fs::write(&path, &gz).unwrap();
        prop_assert!(read_small::<f32>(&path, 300).is_err());
    }
}
