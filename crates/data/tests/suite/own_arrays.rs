//! Arrays of one's own in `.npz` files: those that NumPy wrote (`fixtures/own_arrays.py`), and each
//! way one can be wrong.

use std::fs;
use std::path::{Path, PathBuf};

use overtone_core::{ActionSpace, Episode, ObservationSpace, Outcome};
use overtone_data::error::Fault;
use overtone_data::read::{self, columns};
use overtone_data::{
    ActionColumn, Columns, DataError, Dataset, DatasetOptions, Expected, Form, ObservationColumn,
    RecordedSpaces, Recording,
};
use overtone_testkit::dopamine::npy;
pub use overtone_testkit::npz::{f4, zip};
use overtone_testkit::{Hdf5File, sentences};

use crate::robots::{WIDTHS, action, observation, reward};

fn fixture(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures").join(name)
}

#[track_caller]
fn check_episodes(log: &Columns, expected: &[(usize, Outcome, bool)]) {
    let mut start = 0;
    for (at, &(length, outcome, finished)) in expected.iter().enumerate() {
        assert_eq!(log.episodes[at], Episode { start, length, outcome });
        assert_eq!(log.finished[at], finished);
        start += length;
    }
    assert_eq!(log.episodes.len(), expected.len());
}

const EPISODES: [(usize, Outcome, bool); 4] = [
    (4, Outcome::Terminated, true),
    (2, Outcome::Truncated, true),
    (2, Outcome::Truncated, true),
    (1, Outcome::Truncated, false),
];

#[test]
fn files_of_numpy_read_alike() {
    for name in ["stored.npz", "deflated.npz", "wide.npz"] {
        let log = columns(&fixture(name)).unwrap();
        let values = (0..9).flat_map(observation).collect();
        assert_eq!(
            log.observations,
            ObservationColumn::Vectors { width: WIDTHS.0, values },
            "{name}"
        );
        let values = (0..9).flat_map(action).collect();
        assert_eq!(log.actions, ActionColumn::Continuous { width: WIDTHS.1, values }, "{name}");
        assert_eq!(log.rewards, (0..9).map(reward).collect::<Vec<_>>(), "{name}");
        check_episodes(&log, &EPISODES);
        assert_eq!((log.format, log.odd.len()), ("NumPy", 0), "{name}");
    }
}

#[test]
fn whole_numbers_are_discrete_actions() {
    let log = columns(&fixture("list.npz")).unwrap();
    let values = vec![0, 1, 2, 0, 1, 2, 0, 1, 2];
    assert_eq!(log.actions, ActionColumn::Discrete { n_actions: 3, values });
    let dataset = Dataset::of(log, &DatasetOptions::default()).unwrap();
    assert_eq!(dataset.n_transitions(), 8);
}

#[test]
fn pictures_are_shown_as_environments_show_them() {
    let log = columns(&fixture("pictures.npz")).unwrap();
    let ObservationColumn::Frames { pixels } = &log.observations else { panic!("no frames") };
    assert_eq!(pixels.len(), 9 * 84 * 84);
    let shades: Vec<u8> = pixels.chunks(84 * 84).map(|frame| frame[17]).collect();
    assert_eq!(shades, [0, 20, 40, 60, 80, 100, 120, 140, 160]);
    check_episodes(&log, &EPISODES);
    Dataset::of(log, &DatasetOptions::default()).unwrap();
}

#[test]
fn the_last_row_of_ogbench_has_no_action() {
    let path = fixture("ogbench.npz");
    let error = columns(&path).unwrap_err().to_string();
    for part in ["of a file of OGBench", "train data.layout=ogbench", "convert --layout ogbench"] {
        assert!(error.contains(part), "{error}");
    }
    let found = |layout: &str| {
        let check =
            overtone_data::check_as(&path, &Form::of(layout), &Expected::default()).unwrap();
        assert_eq!(check.inspection.is_ok(), read::open_as(&path, &Form::of(layout)).is_ok());
        check.report.findings.into_iter().map(|f| (f.code, f.advice)).collect::<Vec<_>>()
    };
    let [(code, advice)] = &found("")[..] else { panic!("{:?}", found("")) };
    assert_eq!(*code, "no-timeouts");
    assert!(
        advice.contains("zeros alone") && advice.contains("OGBench") && !advice.contains("v2.hdf5"),
        "{advice}"
    );
    assert!(!found("ogbench").iter().any(|(code, _)| *code == "no-timeouts"));
    let Recording::Columns(log) = read::open_as(&path, &Form::of("OGbench")).unwrap() else {
        panic!()
    };
    // Trajectories of 5, 3 and 1 rows are episodes of 4, 2 and none.
    check_episodes(&log, &[(4, Outcome::Truncated, true), (2, Outcome::Truncated, true)]);
    let rows = [0, 1, 2, 3, 5, 6];
    let values = rows.into_iter().flat_map(observation).collect();
    assert_eq!(log.observations, ObservationColumn::Vectors { width: 3, values });
    let values = rows.into_iter().flat_map(action).collect();
    assert_eq!(log.actions, ActionColumn::Continuous { width: 2, values });
    assert_eq!(log.rewards, [0.0; 6]);
    assert!(log.odd[0].starts_with("it has no rewards"), "{:?}", log.odd);
    let error = read::open_as(&path, &Form::of("ogbensch")).unwrap_err().to_string();
    assert!(error.contains("unknown layout `ogbensch`") && error.contains("OGBench"), "{error}");
}

/// Three rows of a trajectory that the file ends, two of one before it; OGBench's layout.
#[test]
fn other_arrays_of_ogbench_say_whether_a_last_row_is_a_step() {
    let flags = |set: [u8; 5]| npy("|b1", &[5], &set);
    let lengths = |more: &[(&'static str, Vec<u8>)]| {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("maze.npz");
        let mut files = vec![
            ("observations", f4(&[5, 1], &[1.0, 2.0, 5.0, 6.0, 7.0])),
            ("actions", f4(&[5, 1], &[0.1, 0.2, 0.3, 0.4, 0.5])),
            ("rewards", f4(&[5], &[0.0, 1.0, 0.0, 0.0, 1.0])),
            ("terminals", flags([0, 1, 0, 0, 1])),
        ];
        files.extend_from_slice(more);
        fs::write(&path, zip(&files)).unwrap();
        let (recording, last) = read::open_with_last(&path, &Form::of("ogbench"))?;
        let Recording::Columns(log) = recording else { panic!() };
        let episodes = log.episodes.iter().map(|e| (e.length, e.outcome, log.episode_return(e)));
        Ok::<_, DataError>((episodes.collect::<Vec<_>>(), last))
    };
    use Outcome::{Terminated, Truncated};
    let rows =
        |values: &[f32]| Some(ObservationColumn::Vectors { width: 1, values: values.to_vec() });
    let next = || ("next_observations", f4(&[5, 1], &[2.0, 3.0, 6.0, 7.0, 8.0]));
    let without_last = [(1, Truncated, 0.0), (2, Truncated, 0.0)];
    let whole = [(2, Truncated, 1.0), (3, Truncated, 1.0)];
    assert_eq!(lengths(&[]).unwrap(), (without_last.to_vec(), rows(&[2.0, 7.0])));
    assert_eq!(lengths(&[next()]).unwrap(), (whole.to_vec(), rows(&[3.0, 8.0])));
    let valids = ("valids", f4(&[5], &[1.0, 0.0, 1.0, 1.0, 0.0]));
    assert_eq!(lengths(&[valids]).unwrap(), (without_last.to_vec(), rows(&[2.0, 7.0])));
    // `valids` decides for each trajectory, also next to `next_observations`.
    let valids = ("valids", flags([1, 1, 1, 1, 0]));
    let mixed = [(2, Truncated, 1.0), (2, Truncated, 0.0)];
    assert_eq!(lengths(&[valids, next()]).unwrap(), (mixed.to_vec(), rows(&[3.0, 7.0])));
    let limited = [(2, Terminated, 1.0), (1, Truncated, 0.0), (2, Terminated, 1.0)];
    let limits = ("timeouts", flags([0, 0, 1, 0, 0]));
    assert_eq!(lengths(&[limits]).unwrap(), (limited.to_vec(), None));
    let error = lengths(&[("valids", flags([1, 1, 0, 1, 0]))]).unwrap_err();
    assert!(
        matches!(&error, DataError::At { fault: Fault::DatasetValue { dataset, row: 2, .. }, .. } if dataset == "valids"),
        "{error}"
    );
    let error = lengths(&[("next_observations", f4(&[5, 2], &[0.0; 10]))]).unwrap_err();
    assert!(
        matches!(&error, DataError::At { fault: Fault::DatasetShape { dataset, .. }, .. } if dataset == "next_observations"),
        "{error}"
    );
}

#[test]
fn a_file_of_d3rlpy_reads_as_it_was_written() {
    // `fixtures/write_d3rlpy.py`, with d3rlpy's own `dump`.
    let path = fixture("d3rlpy.h5");
    let log = columns(&path).unwrap();
    let values = (0..5).flat_map(observation).collect();
    assert_eq!(log.observations, ObservationColumn::Vectors { width: 3, values });
    assert_eq!(log.actions, ActionColumn::Discrete { n_actions: 3, values: vec![0, 1, 2, 0, 1] });
    assert_eq!(log.rewards, (0..5).map(reward).collect::<Vec<_>>());
    check_episodes(&log, &[(3, Outcome::Terminated, true), (2, Outcome::Truncated, true)]);
    assert_eq!(log.format, "d3rlpy");
    let without = |name: &str| {
        let dir = tempfile::tempdir().unwrap();
        let copy = dir.path().join("d3rlpy.h5");
        fs::copy(&path, &copy).unwrap();
        Hdf5File::edit(&copy).delete(name);
        let check = overtone_data::check(&copy, &Expected::default()).unwrap();
        let log = columns(&copy);
        assert_eq!(check.inspection.is_ok(), log.is_ok());
        log
    };
    let error = without("observations_1").unwrap_err();
    assert!(
        matches!(
            error,
            DataError::At { fault: Fault::MissingEpisodes { total: 2, found: 1, .. }, .. }
        ),
        "{error}"
    );
    assert_eq!(without("num_episodes").unwrap().episodes.len(), 2);
    // One flag a step in the place of one flag an episode.
    let dir = tempfile::tempdir().unwrap();
    let copy = dir.path().join("flags.h5");
    fs::copy(&path, &copy).unwrap();
    Hdf5File::edit(&copy).delete("terminated_0");
    Hdf5File::edit(&copy).put("terminated_0", &[0i32, 0, 1], 0);
    let error = columns(&copy).unwrap_err();
    assert!(matches!(error, DataError::At { fault: Fault::DatasetShape { .. }, .. }), "{error}");
    assert!(error.to_string().contains("`terminated_0[-1]`"), "{error}");
    for name in ["rewards_1", "actions_0", "terminated_1"] {
        let error = without(name).unwrap_err().to_string();
        assert!(error.contains(&format!("has no `{name}`: it has ")), "{error}");
    }
}

/// Two steps of one finished episode.
pub(crate) fn sound() -> Vec<(&'static str, Vec<u8>)> {
    vec![
        ("observations", f4(&[2, 1], &[1.0, 2.0])),
        ("actions", npy("|u1", &[2], &[0, 3])),
        ("rewards", f4(&[2], &[0.5, 1.5])),
        ("terminals", npy("|b1", &[2], &[0, 1])),
        ("timeouts", npy("|b1", &[2], &[0, 0])),
    ]
}

fn read_bytes(bytes: &[u8]) -> Result<Columns, DataError> {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("own.npz");
    fs::write(&path, bytes).unwrap();
    // Both refuse the same files.
    let check = overtone_data::check(&path, &Expected::default()).unwrap();
    let log = columns(&path);
    assert_eq!(check.inspection.is_ok(), log.is_ok(), "{}", check.report);
    log
}

#[track_caller]
fn refused(bytes: &[u8]) {
    let error = read_bytes(bytes).unwrap_err().to_string();
    sentences::check(&error);
    assert!(error.contains("own.npz") && !error.contains('\n'), "{error}");
}

/// Checks the error with `array` in place of the one called `name`.
#[track_caller]
fn refused_with(name: &'static str, array: Vec<u8>) {
    let mut files = sound();
    files.retain(|(other, _)| *other != name);
    files.push((name, array));
    refused(&zip(&files));
}

#[test]
fn arrays_that_are_wrong() {
    let log = read_bytes(&zip(&sound())).unwrap();
    assert_eq!(log.actions, ActionColumn::Discrete { n_actions: 4, values: vec![0, 3] });
    for (name, _) in sound() {
        let mut files = sound();
        files.retain(|(other, _)| *other != name);
        refused(&zip(&files));
    }
    refused(&zip(&[]));
    // An array of no rows may claim any shape.
    let none: Vec<(&str, Vec<u8>)> = vec![
        ("observations", npy("|u1", &[0, 10_000_000_000_000, 84], &[])),
        ("actions", npy("|u1", &[0], &[])),
        ("rewards", f4(&[0], &[])),
        ("terminals", npy("|b1", &[0], &[])),
        ("timeouts", npy("|b1", &[0], &[])),
    ];
    refused(&zip(&none));
    refused_with("rewards", f4(&[3], &[0.0; 3]));
    refused_with("rewards", f4(&[2, 2], &[0.0; 4]));
    refused_with("rewards", npy("<U3", &[2], &[0; 24]));
    refused_with("rewards", f4(&[2], &[0.0, f32::NAN]));
    refused_with("rewards", npy("|O", &[2], b"\x80\x04"));
    refused_with("rewards", npy("<c8", &[2], &[0; 16]));
    refused_with("rewards", f4(&[2], &[0.0; 3]));
    refused_with("rewards", npy("<f8", &[1 << 50], &[0; 16]));
    refused_with("rewards", b"no array".to_vec());
    refused_with("terminals", npy("|u1", &[2], &[0, 2]));
    refused_with("terminals", f4(&[2], &[0.5, 1.0]));
    let mut twice = sound();
    twice.push(("terminations", npy("|b1", &[2], &[0, 1])));
    refused(&zip(&twice));
    refused_with("actions", npy("<i8", &[2], &[255; 16]));
    refused_with("actions", f4(&[2], &[0.0; 2]));
    refused_with("observations", f4(&[2], &[0.0; 2]));
    refused_with("observations", npy("|u1", &[2, 2, 5, 7], &[0; 140]));
    let error = columns(&fixture("pickled.npz")).unwrap_err();
    assert!(matches!(error, DataError::At { fault: Fault::Pickled { .. }, .. }), "{error}");
}

/// The spaces of a recording, by its additional arrays.
#[test]
fn additional_arrays_describe_actions() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("own.npz");
    let shown = |files: &[(&str, Vec<u8>)]| {
        fs::write(&path, zip(files)).unwrap();
        RecordedSpaces::of(&path, &Form::of("")).unwrap()
    };
    let names = |spaces: &RecordedSpaces| match &spaces.actions {
        ActionSpace::Discrete { names } => names.len(),
        ActionSpace::Continuous { .. } => panic!("numbers"),
    };
    let mut files = sound();
    let spaces = shown(&files);
    assert_eq!(spaces.observations, ObservationSpace::Vectors { width: 1 });
    assert_eq!((names(&spaces), spaces.ranges.len()), (4, 0));
    files.push(("n_actions", npy("<i8", &[1], &6i64.to_le_bytes())));
    assert_eq!(names(&shown(&files)), 6);
    files.retain(|(name, _)| !["actions", "n_actions"].contains(name));
    files.push(("actions", f4(&[2, 2], &[0.5, -3.0, 1.5, 4.0])));
    let bounded = |low: [f32; 2], high: [f32; 2]| ActionSpace::Continuous {
        low: low.to_vec(),
        high: high.to_vec(),
    };
    let odd = |path: &Path| {
        let check = overtone_data::check(path, &Expected::default()).unwrap();
        check.report.findings.iter().map(ToString::to_string).collect::<Vec<_>>()
    };
    assert_eq!(shown(&files).bounded_actions(), bounded([0.5, -3.0], [1.5, 4.0]));
    assert_eq!(odd(&path), [""; 0]);
    files.push(("action_low", f4(&[2], &[0.0, -5.0])));
    files.push(("action_high", f4(&[2], &[2.0, 5.0])));
    assert_eq!(shown(&files).actions, bounded([0.0, -5.0], [2.0, 5.0]));
    assert_eq!(odd(&path), [""; 0]);
    files.last_mut().unwrap().1 = f4(&[2], &[2.0, 3.5]);
    shown(&files);
    let told = "actions: expected actions within the bounds of each number, found 1 step \
                outside, the first in row 1: 4";
    assert_eq!(odd(&path), [told]);
    let read = columns(&path).unwrap();
    assert_eq!(read.outside_of(&bounded([0.0, -5.0], [2.0, 3.5])), 1);
    assert_eq!(read.outside_of(&bounded([0.0, -5.0], [2.0, f32::INFINITY])), 0);
    // One number is for all.
    files.last_mut().unwrap().1 = f4(&[], &[5.0]);
    assert_eq!(shown(&files).actions, bounded([0.0, -5.0], [5.0, 5.0]));
    // A log of frames has its game.
    let log = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../datasets/starter/Seaquest");
    let error = RecordedSpaces::of(&log, &Form::of("")).unwrap_err().to_string();
    assert!(error.contains("say which game it is"), "{error}");
}

#[test]
fn descriptions_of_actions_must_fit_them() {
    let refused_beside = |actions: Vec<u8>, beside: &[(&'static str, Vec<u8>)]| {
        let mut files = sound();
        files.retain(|(name, _)| *name != "actions");
        files.push(("actions", actions));
        files.extend_from_slice(beside);
        refused(&zip(&files));
    };
    let listed = || npy("|u1", &[2], &[0, 3]);
    let real = || f4(&[2, 2], &[0.5, -3.0, 1.5, 4.0]);
    let n = |numbers: &[i64]| {
        let bytes: Vec<u8> = numbers.iter().flat_map(|n| n.to_le_bytes()).collect();
        ("n_actions", npy("<i8", &[numbers.len()], &bytes))
    };
    refused_beside(listed(), &[n(&[3])]);
    refused_beside(listed(), &[n(&[-1])]);
    refused_beside(listed(), &[n(&[4, 4])]);
    refused_beside(real(), &[n(&[4])]);
    let low = |shape: &[usize], values: &[f32]| ("action_low", f4(shape, values));
    let high = |shape: &[usize], values: &[f32]| ("action_high", f4(shape, values));
    refused_beside(listed(), &[low(&[1], &[0.0]), high(&[1], &[3.0])]);
    refused_beside(real(), &[low(&[1], &[-5.0])]);
    refused_beside(real(), &[high(&[1], &[5.0])]);
    refused_beside(real(), &[low(&[3], &[0.0; 3]), high(&[2], &[5.0; 2])]);
    refused_beside(real(), &[low(&[2], &[0.0, 6.0]), high(&[1], &[5.0])]);
    let nan = [low(&[1], &[f32::NAN]), high(&[1], &[5.0])];
    refused_beside(real(), &nan);
}

/// `[84, 84, 4]` is four frames; the newest is the recorded one, as in play.
#[test]
fn four_frames_may_be_the_last_axis() {
    let with = |shape: &[usize], pixels: &[u8]| {
        let mut files = sound();
        files[0].1 = npy("|u1", shape, pixels);
        zip(&files)
    };
    let stacks: Vec<u8> =
        [[1, 2, 3, 4], [2, 3, 4, 5]].iter().flat_map(|s| s.repeat(84 * 84)).collect();
    let log = read_bytes(&with(&[2, 84, 84, 4], &stacks)).unwrap();
    let ObservationColumn::Frames { pixels } = &log.observations else { panic!() };
    assert!(*pixels == [vec![4; 84 * 84], vec![5; 84 * 84]].concat());
    refused(&with(&[2, 6, 8, 4], &[0; 2 * 6 * 8 * 4]));
    refused(&with(&[2, 6, 8, 4], &[0; 2 * 6 * 8 * 4]));
}

/// Rows are read one by one: each is shown as its own frame.
#[test]
fn pictures_of_any_size_keep_their_order() {
    let mut files = sound();
    files[0].1 = npy("|u1", &[2, 6, 8, 3], &[[7; 144], [200; 144]].concat());
    let log = read_bytes(&zip(&files)).unwrap();
    let ObservationColumn::Frames { pixels, .. } = &log.observations else { panic!("no frames") };
    assert!(*pixels == [vec![7; 84 * 84], vec![200; 84 * 84]].concat());
}

/// `lint` reports what training reports about a recording.
#[test]
fn oddities_are_findings() {
    let told = |path: &Path, layout: &str| {
        let check = overtone_data::check_as(path, &Form::of(layout), &Expected::default()).unwrap();
        let findings = check.report.findings.into_iter();
        let odd: Vec<_> = findings.filter(|finding| finding.code == "as-read").collect();
        odd.into_iter().map(|finding| finding.found).collect::<Vec<_>>()
    };
    assert!(told(&fixture("ogbench.npz"), "ogbench")[0].starts_with("it has no rewards"));
}

#[test]
fn numbers_of_16_bits_are_read() {
    // 1, -2 and 0.5 and 65504.
    let halves: Vec<u8> =
        [0x3c00u16, 0xc000, 0x3800, 0x7bff].iter().flat_map(|x| x.to_le_bytes()).collect();
    let mut files = sound();
    files[0].1 = npy("<f2", &[2, 2], &halves);
    files[2].1 = npy("<f2", &[2], &halves[..4]);
    let log = read_bytes(&zip(&files)).unwrap();
    let values = vec![1.0, -2.0, 0.5, 65504.0];
    assert_eq!(log.observations, ObservationColumn::Vectors { width: 2, values });
    assert_eq!(log.rewards, [1.0, -2.0]);
}

#[test]
fn archives_that_are_wrong() {
    let whole = zip(&sound());
    refused(b"");
    refused(&whole[..whole.len() - 1]);
    let changed = |at: usize, byte: u8| {
        let mut bytes = whole.clone();
        bytes[at] = byte;
        bytes
    };
    let directory = whole.windows(4).position(|bytes| bytes == b"PK\x01\x02").unwrap();
    refused(&changed(directory + 8, 1));
    refused(&changed(directory + 10, 12));
    refused(&changed(directory + 27, 1));
    refused(&changed(directory + 45, 1));
    refused(&changed(directory, 0));
    refused(&changed(whole.len() - 3, 1));
    // A byte of an array.
    let at = whole.windows(4).position(|bytes| bytes == 2.0f32.to_le_bytes()).unwrap();
    refused(&changed(at, 7));
    // A changed byte of a deflated file may be any error, but it never changes numbers.
    let deflated = fs::read(fixture("deflated.npz")).unwrap();
    let sound = read_bytes(&deflated).unwrap();
    let begins = |mark: &[u8]| -> Vec<usize> {
        deflated.windows(4).enumerate().filter(|(_, at)| *at == mark).map(|(at, _)| at).collect()
    };
    let entries = begins(b"PK\x03\x04");
    let ends = entries.iter().skip(1).copied().chain(begins(b"PK\x01\x02").into_iter().take(1));
    let arrays: Vec<_> = entries
        .iter()
        .zip(ends)
        .map(|(&at, end)| {
            let length =
                |from: usize| usize::from(deflated[from]) + 256 * usize::from(deflated[from + 1]);
            at + 30 + length(at + 26) + length(at + 28)..end
        })
        .collect();
    let mut n_refused = 0;
    for at in 0..deflated.len() {
        let is_in_array = arrays.iter().any(|array| array.contains(&at));
        if !is_in_array && at % 7 > 0 {
            continue;
        }
        let mut bytes = deflated.clone();
        bytes[at] ^= 0x55;
        match read_bytes(&bytes) {
            Err(_) => n_refused += 1,
            Ok(log) if is_in_array => {
                let told = |log: &Columns| {
                    (log.observations.clone(), log.actions.clone(), log.rewards.clone())
                };
                assert_eq!(told(&log), told(&sound), "byte {at}");
                assert_eq!(log.episodes, sound.episodes, "byte {at}");
            }
            Ok(_) => {}
        }
    }
    let of_arrays: usize = arrays.iter().map(ExactSizeIterator::len).sum();
    assert!(of_arrays > 0 && n_refused >= of_arrays / 2, "{n_refused} of {of_arrays}");
}
