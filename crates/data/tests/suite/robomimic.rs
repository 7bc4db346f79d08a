//! robomimic's files.

use std::fs;
use std::path::{Path, PathBuf};

use overtone_core::Outcome;
use overtone_data::read::{open_as, open_with_last};
use overtone_data::{
    ActionColumn, Columns, DataError, Form, ObservationColumn, Recording, TableColumns,
};
use overtone_testkit::{Hdf5File, sentences};

fn fixture() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/robomimic.hdf5")
}

/// Observations are these parts of `obs`.
fn parts(names: &str) -> Form {
    let columns = TableColumns { observation: names.into(), ..TableColumns::default() };
    Form { columns, ..Form::default() }
}

fn read(path: &Path, form: &Form) -> Result<Columns, DataError> {
    match open_as(path, form)? {
        Recording::Columns(columns) => Ok(columns),
        Recording::ReplayLog(_) => panic!("a log of frames"),
    }
}

#[test]
fn demonstrations_are_episodes() {
    let (recording, last) = open_with_last(&fixture(), &Form::default()).unwrap();
    let Recording::Columns(demos) = recording else { panic!("a log of frames") };
    assert_eq!(demos.format, "robomimic");
    // eef_pos before object.
    let seen = (0..5).flat_map(|row| [-1.0, 1.0, 10.0].map(|times| times * row as f32)).collect();
    assert_eq!(demos.observations, ObservationColumn::Vectors { width: 3, values: seen });
    let values = (0..5).flat_map(|row| [row as f32 / 8.0, -row as f32 / 8.0]).collect();
    assert_eq!(demos.actions, ActionColumn::Continuous { width: 2, values });
    assert_eq!(demos.rewards, [0.0, 0.0, 1.0, 0.0, 1.0]);
    let ends: Vec<_> = demos.episodes.iter().map(|of| (of.start, of.length, of.outcome)).collect();
    assert_eq!(ends, [(0, 2, Outcome::Truncated), (2, 3, Outcome::Terminated)]);
    assert_eq!(demos.optional.stops, Some(vec![false, false, true, false, false]));
    let unread: Vec<&str> = demos.stored.unread.iter().map(String::as_str).collect();
    assert_eq!(unread, ["mask", "obs/agentview_image", "states"]);
    // Where the last actions led.
    let values = vec![-2.0, 2.0, 20.0, -5.0, 5.0, 50.0];
    assert_eq!(last, Some(ObservationColumn::Vectors { width: 3, values }));

    let object = read(&fixture(), &parts("object, eef_pos")).unwrap();
    let seen = (0..5).flat_map(|row| [1.0, 10.0, -1.0].map(|times| times * row as f32)).collect();
    assert_eq!(object.observations, ObservationColumn::Vectors { width: 3, values: seen });
}

#[test]
fn what_is_no_demonstration_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("demos.hdf5");
    fs::copy(fixture(), &path).unwrap();
    let refused = |form: &Form| {
        sentences::check(&read(&path, form).unwrap_err().to_string());
    };
    let reward = TableColumns { reward: "rewards".into(), ..TableColumns::default() };
    refused(&Form { columns: reward, ..Form::default() });
    refused(&parts("objects"));
    refused(&parts("agentview_image"));
    let written = |write: &dyn Fn(&Hdf5File)| {
        let file = Hdf5File::create(&path);
        write(&file);
        drop(file);
        refused(&Form::default());
    };
    // States alone, as they are collected.
    written(&|file| file.group("data/demo_1").put("actions", &[1.0f32, 2.0], 2));
    // A part of another length, no end, and rows of other widths.
    let demo = |file: &Hdf5File, name: &str, width: usize, rows: usize, has_dones: bool| {
        let demo = file.group(&format!("data/{name}"));
        demo.put("actions", &[0.5f32; 4], 2);
        demo.put("rewards", &[0.0f32, 1.0], 0);
        if has_dones {
            demo.put("dones", &[0.0f32, 1.0], 0);
        }
        file.group(&format!("data/{name}/obs")).put("object", &vec![1.0f32; rows * width], width);
    };
    written(&|file| demo(file, "demo_0", 3, 3, true));
    written(&|file| demo(file, "demo_0", 3, 2, false));
    written(&|file| {
        demo(file, "demo_0", 3, 2, true);
        demo(file, "demo_1", 2, 2, true);
    });
}
