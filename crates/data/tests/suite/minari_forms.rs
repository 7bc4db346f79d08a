//! Minari files of other forms than vectors with continuous actions.

use std::fs;
use std::path::Path;

use hdf5_pure::AttrValue;
use overtone_data::error::Fault;
use overtone_data::read::columns;
use overtone_data::{ActionColumn, DataError, ObservationColumn, RecordedTask};
use overtone_testkit::{Hdf5File, check_error};

use crate::robots::{d4rl, minari};

/// A Minari file of one episode of two steps, with `spaces` in its description. `write` puts
/// observations and actions into the episode's group.
fn with(
    spaces: [&str; 2],
    write: impl FnOnce(&Hdf5File),
) -> (Result<overtone_data::Columns, DataError>, tempfile::TempDir) {
    let (dir, path) = minari(".t");
    let file = Hdf5File::edit(&path);
    let group = file.group("episode_0");
    group.delete("observations");
    group.delete("actions");
    write(&group);
    drop((group, file));
    describe(&path, spaces);
    (columns(&path), dir)
}

fn describe(path: &Path, [observations, actions]: [&str; 2]) {
    let metadata = serde_json::json!({
        "data_format": "hdf5", "observation_space": observations, "action_space": actions,
    });
    fs::write(path.with_file_name("metadata.json"), metadata.to_string()).unwrap();
}

const ONE: &str = r#"{"type": "Box", "dtype": "float32", "shape": [1], "low": [-Infinity]}"#;
const TWO: &str = r#"{"type": "Discrete", "n": 2, "start": 0}"#;

fn numbers(group: &Hdf5File) {
    group.put("observations", &[1.0f32, 2.0, 3.0], 1);
}

#[test]
fn discrete_actions() {
    let discrete = r#"{"type": "Discrete", "dtype": "int64", "start": 5, "n": 4}"#;
    let write = |group: &Hdf5File| {
        numbers(group);
        group.put("actions", &[7i64, 5], 0);
    };
    let (log, _dir) = with([ONE, discrete], write);
    // Four actions; the largest was never taken.
    assert_eq!(log.unwrap().actions, ActionColumn::Discrete { n_actions: 4, values: vec![2, 0] });
    let (log, _dir) = with([ONE, TWO], write);
    check_error!(log.unwrap_err(), DataError::At { fault: Fault::DatasetValue { .. }, .. });
    // All combinations, the last number changing fastest: 1 · 3 + 2 and 0 · 3 + 1.
    let several = r#"{"type": "MultiDiscrete", "nvec": [2, 3], "start": [0, 0]}"#;
    let (log, _dir) = with([ONE, several], |group| {
        numbers(group);
        group.put("actions", &[1i64, 2, 0, 1], 2);
    });
    assert_eq!(log.unwrap().actions, ActionColumn::Discrete { n_actions: 6, values: vec![5, 1] });
    let many = r#"{"type": "MultiDiscrete", "nvec": [100, 100], "start": [0, 0]}"#;
    let (log, _dir) = with([ONE, many], |group| {
        numbers(group);
        group.put("actions", &[1i64, 2, 0, 1], 2);
    });
    check_error!(log.unwrap_err(), DataError::At { fault: Fault::Unread { .. }, .. });
}

/// `Box(shape=())`: one number, without an axis.
#[test]
fn one_number_without_an_axis() {
    let one = r#"{"type": "Box", "dtype": "float32", "shape": [], "low": -2.0, "high": 2.0}"#;
    let write = |group: &Hdf5File| {
        group.put("observations", &[1.0f32, 2.0, 3.0], 0);
        group.put("actions", &[0.5f32, -0.5], 0);
    };
    let (log, dir) = with([one, one], write);
    let log = log.unwrap();
    assert_eq!(log.observations, ObservationColumn::Vectors { width: 1, values: vec![1.0, 2.0] });
    assert_eq!(log.actions, ActionColumn::Continuous { width: 1, values: vec![0.5, -0.5] });
    drop(dir);
    // A space of one number with an axis is another.
    let (log, _dir) = with([ONE, one], write);
    check_error!(log.unwrap_err(), DataError::At { fault: Fault::DatasetShape { .. }, .. });
}

/// Up to version 0.4 Minari describes its data in attributes of the file, each a text.
#[test]
fn attributes_describe_a_file_without_metadata_json() {
    let discrete = r#"{"type": "Discrete", "dtype": "int64", "start": 5, "n": 4}"#;
    let (log, dir) = with([ONE, discrete], |group| {
        numbers(group);
        group.put("actions", &[7i64, 5], 0);
    });
    let expected = log.unwrap();
    let path = expected.path.clone();
    fs::remove_file(path.with_file_name("metadata.json")).unwrap();
    let file = Hdf5File::edit(&path);
    let env = r#"{"id": "Own-v0", "max_episode_steps": 7}"#;
    for (name, text) in [("observation_space", ONE), ("action_space", discrete), ("env_spec", env)]
    {
        file.attribute(name, AttrValue::VarLenString(text.into()));
    }
    drop(file);
    let read = columns(&path).unwrap();
    assert_eq!((&read.actions, &read.observations), (&expected.actions, &expected.observations));
    let env = RecordedTask::of(&path).unwrap().env.unwrap();
    assert_eq!((env.id.as_str(), env.max_episode_steps), ("Own-v0", Some(7)));
    drop(dir);
}

#[test]
fn observations_of_several_parts_are_one_row() {
    let space = r#"{"type": "Dict", "subspaces": {
        "goal": {"type": "Discrete", "n": 3, "start": 1},
        "arm": {"type": "Tuple", "subspaces": [
            {"type": "Box", "dtype": "float64", "shape": [2]},
            {"type": "MultiBinary", "n": 2}]}}}"#;
    let write = |group: &Hdf5File| {
        group.put("actions", &[0i64, 1], 0);
        let parts = group.group("observations");
        parts.put("goal", &[1i64, 3, 2], 0);
        let arm = parts.group("arm");
        arm.put("_index_0", &[0.5f64, 1.5, 2.5, 3.5, 4.5, 5.5], 2);
        arm.put("_index_1", &[1u8, 0, 0, 1, 1, 1], 2);
    };
    let (log, _dir) = with([space, TWO], write);
    let values = vec![0.5, 1.5, 1.0, 0.0, 1.0, 0.0, 0.0, 2.5, 3.5, 0.0, 1.0, 0.0, 0.0, 1.0];
    assert_eq!(log.unwrap().observations, ObservationColumn::Vectors { width: 7, values });
    let text = r#"{"type": "Dict", "subspaces": {"word": {"type": "Text", "max_length": 3}}}"#;
    let (log, _dir) = with([text, TWO], write);
    check_error!(log.unwrap_err(), DataError::At { fault: Fault::Unread { .. }, .. });
    let far = r#"{"type": "Discrete", "n": 1000000000000, "start": 0}"#;
    let (log, _dir) = with([far, TWO], |group| {
        group.put("actions", &[0i64, 1], 0);
        group.put("observations", &[1i64, 3, 2], 0);
    });
    assert!(matches!(log.unwrap_err(), DataError::At { fault: Fault::DatasetClaim { .. }, .. }));
}

#[test]
fn pictures_are_bytes_or_jpeg() {
    let space = r#"{"type": "Box", "dtype": "uint8", "shape": [42, 168, 3]}"#;
    let (log, dir) = with([space, TWO], |group| {
        group.put("actions", &[0i64, 1], 0);
        let images: Vec<u8> = [10, 20, 30].iter().flat_map(|&b| vec![b; 42 * 168 * 3]).collect();
        group.put_shaped("observations", &images, &[3, 42, 168, 3]);
    });
    let ObservationColumn::Frames { pixels } = log.unwrap().observations else { panic!() };
    // The last of three observations is the one after the last action.
    assert_eq!((pixels.len(), pixels[5], pixels[84 * 84 + 5]), (2 * 84 * 84, 10, 20));
    drop(dir);
    let (log, _dir) = with([space, TWO], |group| {
        group.put("actions", &[0i64, 1], 0);
        group.put("observations", &[0xffu8; 3 * 900], 900);
    });
    check_error!(log.unwrap_err(), DataError::At { fault: Fault::DatasetValue { .. }, .. });
}

/// How far a pixel may lie from what Pillow makes of the same JPEG: their transforms round
/// otherwise. Seen: 2.
const ROUNDING: u8 = 3;

/// As Minari wrote them (`fixtures/write_jpeg.py`).
#[test]
fn pictures_of_minari_are_those_that_pillow_reads() {
    let fixtures = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/jpeg");
    for name in ["colour", "grey"] {
        let log = columns(&fixtures.join(name).join("main_data.hdf5")).unwrap();
        let plain = columns(&fixtures.join(name).join("pillow.npz")).unwrap();
        let [
            ObservationColumn::Frames { pixels, .. },
            ObservationColumn::Frames { pixels: expected, .. },
        ] = [&log.observations, &plain.observations]
        else {
            panic!("{name}: no frames")
        };
        assert_eq!(pixels.len(), 5 * 84 * 84);
        let furthest = pixels.iter().zip(expected).map(|(a, b)| a.abs_diff(*b)).max();
        println!("{name}: at most {furthest:?} of 255");
        assert!(furthest <= Some(ROUNDING), "{name}: {furthest:?}");
        assert_eq!((&log.episodes, &log.rewards), (&plain.episodes, &plain.rewards));
        assert_eq!(
            log.actions,
            ActionColumn::Discrete { n_actions: 4, values: vec![0, 1, 2, 0, 1] }
        );
    }
    // Pictures of another size than their space, and a damaged one.
    let (dir, path) = (tempfile::tempdir().unwrap(), fixtures.join("grey/main_data.hdf5"));
    let copy = dir.path().join("main_data.hdf5");
    let refused = |shape: &str| {
        let space = format!(r#"{{"type": "Box", "dtype": "uint8", "shape": {shape}}}"#);
        describe(&copy, [&space, r#"{"type": "Discrete", "n": 4, "start": 0}"#]);
        columns(&copy).unwrap_err()
    };
    fs::copy(&path, &copy).unwrap();
    for shape in ["[84, 83]", "[100, 84]"] {
        check_error!(refused(shape), DataError::At { fault: Fault::DatasetValue { .. }, .. });
    }
    check_error!(refused("[84, 84, 5]"), DataError::At { fault: Fault::DatasetShape { .. }, .. });
    let mut bytes = fs::read(&path).unwrap();
    let begins = bytes.windows(3).position(|three| three == b"\xff\xd8\xff").unwrap();
    bytes[begins + 1] = 0;
    fs::write(&copy, bytes).unwrap();
    check_error!(refused("[84, 84]"), DataError::At { fault: Fault::DatasetValue { .. }, .. });
}

/// A folder as Minari writes Arrow: one folder for each episode.
#[test]
fn arrow_is_refused_with_the_way_out() {
    let dir = tempfile::tempdir().unwrap();
    fs::create_dir_all(dir.path().join("data/0")).unwrap();
    fs::write(dir.path().join("data/0/part-0.arrow"), "ARROW1").unwrap();
    fs::write(dir.path().join("data/metadata.json"), r#"{"data_format": "arrow"}"#).unwrap();
    for folder in [dir.path().to_path_buf(), dir.path().join("data")] {
        let error = columns(&folder).unwrap_err();
        check_error!(error, DataError::At { fault: Fault::Unread { .. }, .. });
    }
}

/// A description does not apply to the file of another recording in the same directory.
#[test]
fn a_description_is_of_its_own_file() {
    let (dir, robot) = d4rl("..t");
    let says = |path: &Path| RecordedTask::of(path).unwrap().env.map(|env| env.id);
    let place = |name: &str| dir.path().join(name);
    let beside = |total: usize| {
        let other = r#"{"id": "Other-v0", "max_episode_steps": null}"#;
        let metadata = serde_json::json!({
            "data_format": "hdf5", "total_episodes": total, "env_spec": other,
            "observation_space": ONE, "action_space": TWO,
        });
        fs::write(place("metadata.json"), metadata.to_string()).unwrap();
    };
    beside(7);
    // D4RL's, NumPy's, and Minari's of another name and number of episodes.
    let npz = place("own.npz");
    let fixtures = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures");
    fs::copy(fixtures.join("list.npz"), &npz).unwrap();
    let (_minari, from) = minari("..t .l");
    let other = place("hopper.hdf5");
    fs::copy(&from, &other).unwrap();
    for path in [&robot, &npz, &other] {
        assert_eq!(says(path), None, "{}", path.display());
        columns(path).unwrap();
    }
    // With as many episodes, or Minari's file name, the description applies: its spaces are checked.
    let its = place("main_data.hdf5");
    fs::copy(&from, &its).unwrap();
    for (total, path) in [(2, &other), (7, &its)] {
        beside(total);
        assert_eq!(says(path).as_deref(), Some("Other-v0"), "{}", path.display());
        let error = columns(path).unwrap_err();
        check_error!(error, DataError::At { fault: Fault::DatasetShape { .. }, .. });
    }
    assert_eq!(says(dir.path()).as_deref(), Some("Other-v0"));
    // The description in the file has priority.
    let text = serde_json::json!({ "env_spec": r#"{"id": "Own-v1", "max_episode_steps": 9}"# });
    let text = text.to_string();
    let file = Hdf5File::edit(&its);
    file.attribute("metadata_json", AttrValue::U8Array(text.into_bytes()));
    drop(file);
    assert_eq!(says(&its).as_deref(), Some("Own-v1"));
    columns(&its).unwrap();
}

#[test]
fn descriptions_that_are_wrong() {
    let (dir, path) = minari(".t");
    let beside = dir.path().join("metadata.json");
    for (text, expected) in [
        (r#"{"data_format": "arrow"}"#, "data_format `arrow` is not read: only Minari's HDF5 is"),
        ("{", "its description is not Minari's: EOF"),
        (r#"{"action_space": "{}"}"#, "its `action_space` is not Minari's: missing field"),
    ] {
        fs::write(&beside, text).unwrap();
        let error = columns(&path).unwrap_err().to_string();
        assert!(error.contains(expected) && error.contains("metadata.json"), "{error}");
    }
}
