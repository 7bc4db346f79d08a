//! Files of other programs: read if their names mean the same, else refused with advice; and advice
//! for arrays that are almost right.

use std::fs;
use std::path::{Path, PathBuf};

use overtone_core::{Episode, Outcome};
use overtone_data::error::Fault;
use overtone_data::read::columns;
use overtone_data::{ActionColumn, Columns, DataError, Expected, Severity};
use overtone_testkit::Hdf5File;
use overtone_testkit::dopamine::npy;

use crate::own_arrays::{f4, sound, zip};
use crate::robots::{d4rl, replace};

fn written(name: &str, bytes: &[u8]) -> (tempfile::TempDir, PathBuf) {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join(name);
    fs::write(&path, bytes).unwrap();
    (dir, path)
}

/// That the only error in the recording at `path` has this code, and that its advice holds `advice`;
/// reading it says the same in other words, `said` among them.
#[track_caller]
fn advises(path: &Path, code: &str, advice: &str, said: &str) {
    let report = overtone_data::check(path, &Expected::default()).unwrap().report;
    let errors = report.findings.iter().filter(|found| found.severity == Severity::Error);
    let errors: Vec<_> = errors.map(|found| (found.code, &*found.advice)).collect();
    let [(found, told)] = errors[..] else { panic!("{report}") };
    assert_eq!(found, code, "{report}");
    assert!(told.contains(advice) && told.ends_with('.'), "{told}");
    let error = columns(path).unwrap_err().to_string();
    assert!(error.contains(said) && !error.contains('\n'), "{error}");
}

#[test]
fn files_recognised_by_their_first_bytes() {
    let pointer = b"version https://git-lfs.github.com/spec/v1\noid sha256:4d7a\nsize 12345678\n";
    for (name, bytes, advice, said) in [
        ("a.hdf5", &pointer[..], "`git lfs pull`", "a Git LFS pointer"),
        ("a.npz", pointer, "`git lfs pull`", "a Git LFS pointer"),
        ("a.mat", b"MATLAB 5.0 MAT-file, Platform: GLNXA64", "`scipy.io.loadmat`", "a MATLAB file"),
        ("a.mat", b"MATLAB 7.3 MAT-file, Platform: GLNXA64", "transpose", "of version 7.3"),
        ("a.pkl", b"\x80\x04\x95abc", "`overtone.from_episodes`", "a pickle, which may run code"),
        ("hopper", b"\x80\x02]q\x00", "`pickle.load`", "a pickle, which may run code"),
        ("a", b"PAR1\x15\x04", "end in .parquet", "a Parquet file without its ending"),
        ("a.xls", b"\xd0\xcf\x11\xe0", "`pandas.read_excel`", "an Excel file"),
        ("a.npz", b"\x89HDF\r\n\x1a\n\0\0", "end in .hdf5", "an HDF5 file that is called .npz"),
        ("a.hdf5", b"<!DOCTYPE html><html>", "the file itself", "a web page"),
        ("a.csv.gz", b"\x1f\x8b\x08\0", "npack it", "an archive"),
        ("$store$_action_ckpt.0.gz", b"\x1f\x8b\x08\0", "the folder", "of a DQN-replay log"),
        ("a.tar.xz", b"\xfd7zXZ\0", "npack it", "an archive"),
        ("a.hdf5", b"", "etch or copy it again", "an empty file"),
    ] {
        let (_dir, path) = written(name, bytes);
        advises(&path, "unread-form", advice, said);
    }
    // The readers get files that begin differently.
    let (_dir, path) = written("a.hdf5", b"0123456789 0123456789");
    advises(&path, "broken-file", "docs/data.md", "not an HDF5 file");
}

/// Checks that the only advice for the file or folder is to open it in Python.
#[track_caller]
fn is_unknown(path: &Path) {
    advises(path, "unread-form", "its table to `from_pandas`", "not a format that Overtone reads");
    let error = columns(path).unwrap_err();
    assert!(matches!(error, DataError::At { fault: Fault::UnknownFormat, .. }), "{error}");
}

#[test]
fn every_other_format_gets_one_sentence() {
    let record = 17u64.to_le_bytes();
    let masked = crc32c::crc32c(&record).rotate_right(15).wrapping_add(0xa282_ead8);
    let tfrecord = [&record[..], &masked.to_le_bytes(), &[0; 21]].concat();
    // PyTorch's and Excel's files are zip archives.
    let torch =
        replaced(&zip(&[("archive/data", vec![1])]), b"archive/data.npy", b"archive/data.pkl");
    for (name, bytes) in [
        ("a.pt", &torch[..]),
        ("a.pt", b"\x80\x02\x8a\x0a\x6c\xfc\x9c\x46\xf9\x20\x6a\xa8\x50\x19."),
        ("a.tfrecord", &tfrecord),
        ("a.arrow", b"ARROW1\0\0"),
        ("a.npy", b"\x93NUMPY\x01\0v\0{"),
        ("a.safetensors", b"\x40\0\0\0\0\0\0\0{\"a\":"),
        ("run.mcap", b"\x89MCAP0\r\n"),
        ("data.rds", b"\x1f\x8b\x08\0"),
        ("log.txt", b"0.1 0.2 1 0.5 0\n0.1 0.2 1 0.5 0\n"),
        ("batches.jsonl", b"{\"type\": \"SampleBatch\"}\n"),
        ("recording", b"0123456789 0123456789"),
    ] {
        let (dir, path) = written(name, bytes);
        is_unknown(&path);
        // A folder of them, with a page that describes it.
        if !name.ends_with(".npy") {
            fs::write(dir.path().join("README.md"), "# Recordings").unwrap();
            is_unknown(dir.path());
        }
    }
    let (_dir, path) = written("log.xlsx", &torch);
    advises(&path, "unread-form", "`pandas.read_excel`", "an Excel file");
    let agent = replaced(&zip(&[("policy", vec![1])]), b"policy.npy", b"policy.pth");
    let (_dir, path) = written("ppo.zip", &agent);
    advises(&path, "unread-form", "`overtone.from_episodes`", "an agent of Stable-Baselines3");
}

fn replaced(bytes: &[u8], old: &[u8], new: &[u8]) -> Vec<u8> {
    assert_eq!(old.len(), new.len());
    let mut bytes = bytes.to_vec();
    while let Some(at) = bytes.windows(old.len()).position(|here| here == old) {
        bytes[at..at + new.len()].copy_from_slice(new);
    }
    bytes
}

#[test]
fn directories_recognised_by_their_contents() {
    for (files, advice, said) in [
        (
            &[("a.npz", zip(&sound())), ("b.npz", zip(&sound()))][..],
            "a.npz",
            "a folder of .npz files (2",
        ),
        (&[(".zgroup", b"{}".to_vec())], "`zarr.open`", "a Zarr folder"),
        (&[("zarr.json", b"{}".to_vec())], "`zarr.open`", "a Zarr folder"),
        (
            &[("_SUCCESS", vec![]), ("part-0.snappy.parquet", b"PAR1".to_vec())],
            "pandas.read_parquet",
            "a folder of tables (…/part-0.snappy.parquet)",
        ),
        (&[("part.pkl", b"\x80\x04.".to_vec())], "`pickle.load`", "a folder with a pickle"),
    ] {
        let dir = tempfile::tempdir().unwrap();
        for (name, bytes) in files {
            fs::write(dir.path().join(name), bytes).unwrap();
        }
        advises(dir.path(), "unread-form", advice, said);
    }
}

#[test]
fn archives_recognised_by_their_arrays() {
    for (names, said) in [
        (&["obs", "act", "rew", "done"][..], "a Tianshou replay buffer"),
        (&["image", "action", "reward", "is_first", "is_last", "is_terminal"], "of Dreamer"),
        (&["observation", "action", "reward", "discount", "physics"], "and DeepMind"),
    ] {
        let files: Vec<_> = names.iter().map(|name| (*name, f4(&[1], &[0.0]))).collect();
        let (_dir, path) = written("other.npz", &zip(&files));
        advises(&path, "unread-form", "In Python", said);
    }
}

#[test]
fn hdf5_files_recognised_by_their_arrays() {
    for (names, said) in [
        (
            &["obs", "act", "rew", "terminated", "truncated", "info/x"][..],
            "a Tianshou replay buffer",
        ),
        (&["observation", "action", "reward", "discount", "step_type"], "and DeepMind"),
    ] {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("other.hdf5");
        let file = Hdf5File::create(&path);
        for name in names {
            match name.rsplit_once('/') {
                Some((group, name)) => file.group(group).put(name, &[1.0f32], 0),
                None => file.put(name, &[1.0f32], 0),
            }
        }
        drop(file);
        advises(&path, "unread-form", "", said);
    }
}

fn episodes(log: &Columns) -> Vec<(usize, Outcome, bool)> {
    let one = |(episode, finished): (&Episode, &bool)| (episode.length, episode.outcome, *finished);
    log.episodes.iter().zip(&log.finished).map(one).collect()
}

/// Steps of one number that counts up; each step leads to the next.
fn counted(n: usize) -> Vec<f32> {
    (0..n).map(|step| step as f32).collect()
}

#[test]
fn names_that_mean_the_same() {
    let ours = {
        let (_dir, path) = written("own.npz", &zip(&sound()));
        columns(&path).unwrap()
    };
    for names in [
        ["obs", "acts", "rews", "terminated", "truncated"],
        ["obs", "act", "rew", "terminations", "truncations"],
        ["observations", "act", "rewards", "terminals", "truncated"],
    ] {
        let files: Vec<_> =
            sound().into_iter().zip(names).map(|((_, bytes), name)| (name, bytes)).collect();
        let (_dir, path) = written("own.npz", &zip(&files));
        let log = columns(&path).unwrap();
        assert_eq!(
            (&log.observations, &log.actions, &log.rewards),
            (&ours.observations, &ours.actions, &ours.rewards)
        );
        assert_eq!((episodes(&log), log.odd), (episodes(&ours), Vec::new()), "{names:?}");
    }
}

#[test]
fn imitation_s_transitions_are_read_and_the_doubt_is_said() {
    // Rows 0 to 6: row 2 is done, row 4 leads elsewhere than to row 5.
    let next = [1.0, 2.0, 9.0, 4.0, 9.0, 6.0, 7.0];
    let file = |next: &[f32]| {
        zip(&[
            ("obs", f4(&[7, 1], &counted(7))),
            ("acts", npy("<i8", &[7], &[0; 56])),
            ("rews", f4(&[7], &[1.0; 7])),
            ("dones", npy("|b1", &[7], &[0, 0, 1, 0, 0, 0, 0])),
            ("next_obs", f4(&[7, 1], next)),
            ("infos", npy("|O", &[7], b"\x80\x04")),
        ])
    };
    let (_dir, path) = written("imitation.npz", &file(&next));
    let log = columns(&path).unwrap();
    use Outcome::{Terminated, Truncated};
    assert_eq!(
        episodes(&log),
        [(3, Terminated, true), (2, Truncated, true), (2, Truncated, false)]
    );
    assert!(log.odd[0].contains("`dones` are taken as the task's ends"), "{:?}", log.odd);
    let report = overtone_data::check(&path, &Expected::default()).unwrap().report;
    let told = report.findings.iter().filter(|found| found.code == "as-read").count();
    assert_eq!((told, report.exit_code()), (1, 1), "{report}");
    // Rows that were shuffled.
    let (_dir, path) = written("imitation.npz", &file(&[9.0; 7]));
    advises(&path, "unread-form", "in the order", "is not the next row's");
}

#[test]
fn stable_baselines_2_s_recordings_are_read_and_the_doubt_is_said() {
    let file = |returns: usize| {
        zip(&[
            ("obs", f4(&[5, 1], &counted(5))),
            ("actions", npy("<i8", &[5, 1], &[0; 40])),
            ("rewards", f4(&[5], &[1.0; 5])),
            ("episode_starts", npy("|b1", &[5], &[1, 0, 0, 1, 0])),
            ("episode_returns", f4(&[returns], &vec![1.0; returns])),
        ])
    };
    use Outcome::{Terminated, Truncated};
    for (returns, last) in [(2, (2, Terminated, true)), (1, (2, Truncated, false))] {
        let (_dir, path) = written("expert.npz", &file(returns));
        let log = columns(&path).unwrap();
        assert_eq!(episodes(&log), [(3, Terminated, true), last]);
        assert_eq!(log.actions, ActionColumn::Discrete { n_actions: 1, values: vec![0; 5] });
        assert!(
            log.odd[0].contains("`episode_starts` is taken as the task's end"),
            "{:?}",
            log.odd
        );
    }
}

#[test]
fn d3rlpy_s_first_form_is_read() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("d3rlpy.h5");
    let flags = |set: &[usize]| {
        (0..6).map(|row| f32::from(u8::from(set.contains(&row)))).collect::<Vec<_>>()
    };
    let file = Hdf5File::create(&path);
    file.put("observations", &counted(6), 1);
    file.put("rewards", &[1.0; 6], 0);
    file.put("terminals", &flags(&[1]), 0);
    file.put("episode_terminals", &flags(&[1, 4]), 0);
    file.put("actions", &[0i32, 1, 0, 1, 0, 1], 0);
    file.put("discrete_action", &[true], 0);
    drop(file);
    let log = columns(&path).unwrap();
    use Outcome::{Terminated, Truncated};
    assert_eq!(
        episodes(&log),
        [(2, Terminated, true), (3, Truncated, true), (1, Truncated, false)]
    );
    assert_eq!(
        log.actions,
        ActionColumn::Discrete { n_actions: 2, values: vec![0, 1, 0, 1, 0, 1] }
    );
    assert_eq!((log.format, log.odd.len()), ("d3rlpy", 0));
    // Without the second flag it is a file of D4RL's first versions.
    Hdf5File::edit(&path).delete("episode_terminals");
    let error = columns(&path).unwrap_err().to_string();
    assert!(error.contains("has no `timeouts`") && error.contains("of your own"), "{error}");
}

/// `sound`, with this array in the place of the one of its name.
fn with(name: &'static str, array: Vec<u8>) -> Vec<u8> {
    let mut files = sound();
    files.retain(|(other, _)| *other != name);
    files.push((name, array));
    zip(&files)
}

#[test]
fn advice_is_of_the_array_s_own_case() {
    for (name, array, code, advice) in [
        ("observations", f4(&[2], &[0.0; 2]), "wrong-shape", "`observations[:, None]`"),
        ("actions", f4(&[2], &[0.0; 2]), "wrong-shape", "`actions.astype(int)`"),
        ("rewards", f4(&[1, 2], &[0.0; 2]), "wrong-shape", "`rewards.ravel()`"),
        ("rewards", f4(&[2, 2], &[0.0; 4]), "wrong-shape", "`rewards.sum(axis=1)`"),
        ("terminals", f4(&[2, 3], &[0.0; 6]), "wrong-shape", "`terminals[:, 0]`"),
        (
            "observations",
            npy("|u1", &[2, 2, 5, 7], &[0; 140]),
            "wrong-shape",
            "moveaxis(observations, 1, -1)",
        ),
        (
            "observations",
            npy("|u1", &[2, 6, 8, 4], &[0; 384]),
            "wrong-shape",
            "`observations[..., :3]`",
        ),
        ("observations", f4(&[5, 2], &[0.0; 10]), "wrong-length", "`observations.T`"),
        ("observations", f4(&[3, 1], &[0.0; 3]), "wrong-length", "`observations[:-1]`"),
        (
            "observations",
            npy("<f16", &[2, 1], &[0; 32]),
            "wrong-type",
            "`observations.astype(\"float32\")`",
        ),
        ("actions", npy("<U5", &[2], &[0; 40]), "wrong-type", "numpy.unique(actions"),
        ("observations", npy("<c8", &[2, 1], &[0; 16]), "wrong-type", "observations.imag"),
        ("observations", npy("<M8[ns]", &[2, 1], &[0; 16]), "wrong-type", "numpy.timedelta64"),
        ("rewards", npy("|O", &[2], b"\x80\x04"), "wrong-type", "numpy.stack"),
        ("terminals", npy("|u1", &[2], &[0, 2]), "impossible-value", "0 elsewhere"),
        ("actions", npy("<i8", &[2], &[255; 16]), "impossible-value", "from 0 on"),
        ("rewards", f4(&[2], &[0.0, f32::NAN]), "non-finite", "take these steps out"),
        ("n_actions", npy("<i8", &[2], &[4; 16]), "wrong-shape", "one whole number"),
    ] {
        let (_dir, path) = written("own.npz", &with(name, array));
        let read = columns(&path).unwrap_err().to_string();
        // Neither error advises to fetch the user's own file.
        assert!(!read.contains("etch"), "{read}");
        advises(&path, code, advice, "");
    }
    for (ours, other, advice) in [
        ("observations", "states", "Save `states` under the name `observations`."),
        ("observations", "Observations", "Save `Observations` under the name `observations`."),
        ("rewards", "reward", "Save `reward` under the name `rewards`."),
        ("terminals", "done", "`done` does not say why an episode ended"),
        ("rewards", "something", "Save the array under the name `rewards`."),
    ] {
        let files: Vec<_> = sound()
            .into_iter()
            .map(|(name, bytes)| (if name == ours { other } else { name }, bytes))
            .collect();
        let (_dir, path) = written("own.npz", &zip(&files));
        advises(&path, "missing-array", advice, &format!("has no `{ours}`"));
    }
}

#[test]
fn numbers_beyond_float32_are_reported() {
    let bytes: Vec<u8> = [1.0f64, -1e39].iter().flat_map(|x| x.to_le_bytes()).collect();
    let said = "holds in row 1 -1e39 at place 0, beyond float32";
    for (name, shape) in [("rewards", &[2][..]), ("observations", &[2, 1]), ("actions", &[2, 1])] {
        let (_dir, path) = written("own.npz", &with(name, npy("<f8", shape, &bytes)));
        advises(
            &path,
            "impossible-value",
            &format!("Divide `{name}`"),
            &format!("`{name}` {said}"),
        );
        let (_dir, path) = d4rl("..t");
        replace(&path, name, &[1.0, -1e39, 0.0], shape.len() - 1);
        advises(
            &path,
            "impossible-value",
            &format!("Divide `{name}`"),
            &format!("`{name}` {said}"),
        );
    }
}

#[test]
fn half_precision_is_read_from_hdf5_as_from_numpy() {
    let (_dir, path) = d4rl("..t");
    replace(&path, "rewards", &[1.0f32, -2.5, 0.25].map(half::f16::from_f32), 0);
    assert_eq!(columns(&path).unwrap().rewards, [1.0, -2.5, 0.25]);
}

#[test]
fn a_filter_that_is_missing_is_named() {
    // Blosc and Zstandard, by h5py with hdf5plugin (`fixtures/write_filters.py`).
    for (name, filter) in [("blosc.hdf5", "32001 (Blosc)"), ("zstd.hdf5", "32015 (Zstandard)")] {
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures").join(name);
        advises(
            &path,
            "unread-form",
            "h5repack",
            &format!("`observations`, which HDF5's filter {filter}"),
        );
        let error = columns(&path).unwrap_err().to_string();
        assert!(error.contains("`compression=\"gzip\"`"), "{error}");
    }
}

/// A D4RL file of seven steps whose arrays have other rows and widths (0: no second axis).
fn of_lengths(lengths: &[(&str, usize, usize)]) -> (tempfile::TempDir, PathBuf) {
    let (dir, path) = d4rl("..t..l.");
    for (name, rows, width) in lengths {
        replace(&path, name, &vec![0.0f32; rows * width.max(&1)], *width);
    }
    (dir, path)
}

#[test]
fn the_array_whose_length_is_unlike_the_others_is_named() {
    for (lengths, named, advice) in [
        (&[("observations", 8, 2)][..], "observations", "`observations[:-1]`"),
        (&[("rewards", 6, 0)], "rewards", "one row a step"),
        (&[("observations", 3, 7), ("actions", 2, 7)], "observations", "`observations.T`"),
    ] {
        let (_dir, path) = of_lengths(lengths);
        let report = overtone_data::check(&path, &Expected::default()).unwrap().report;
        let wrong = report.findings.iter().filter(|found| found.code == "wrong-length");
        assert_eq!(wrong.count(), lengths.len(), "{report}");
        let error = columns(&path).unwrap_err();
        let DataError::At { fault: Fault::DatasetLength { dataset, way_out, .. }, .. } = &error
        else {
            panic!("{error}")
        };
        assert_eq!(dataset, named, "{error}");
        assert!(way_out.contains(advice), "{error}");
    }
    // In an .npz file it is the flags that one row is missing from.
    let one_flag = with("terminals", npy("|b1", &[1], &[1]));
    let (_dir, path) = written("own.npz", &one_flag);
    let error = columns(&path).unwrap_err();
    let is_flags = matches!(
        &error,
        DataError::At { fault: Fault::DatasetLength { dataset, .. }, .. } if dataset == "terminals"
    );
    assert!(is_flags, "{error}");
}

fn refused_fixture(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/refused").join(name)
}

#[test]
fn a_file_that_its_writer_has_not_closed() {
    // Of h5py with libver="latest", whose process ended before it closed the file.
    let path = refused_fixture("unclosed.hdf5");
    advises(&path, "locked-file", "`h5clear -s FILE`", "marked as open for writing");
    let error = columns(&path).unwrap_err();
    assert!(matches!(error, DataError::At { fault: Fault::LeftOpen, .. }), "{error}");
}

#[test]
fn lists_in_cells() {
    // Observations of h5py's `vlen_dtype`.
    let error = columns(&refused_fixture("lists.hdf5")).unwrap_err();
    assert!(matches!(error, DataError::At { fault: Fault::DatasetType { .. }, .. }), "{error}");
    assert!(error.to_string().contains("`numpy.concatenate(observations)`"), "{error}");
    // They cannot be rounded to float32.
    let check = overtone_data::check(&refused_fixture("lists.hdf5"), &Expected::default()).unwrap();
    let of_lists = |dataset: &Option<String>| dataset.as_deref() == Some("observations");
    let findings = check.report.findings.iter().filter(|found| of_lists(&found.dataset));
    let codes: Vec<_> = findings.map(|found| found.code).collect();
    assert_eq!(codes, ["wrong-type"]);
}
