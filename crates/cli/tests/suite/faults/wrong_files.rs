//! Files with invalid contents: NaN, and files of other runs.

use std::{fs, path::Path};

use overtone_testkit::dopamine::{Recorder, npy, write_gz};
use overtone_testkit::{Hdf5File, hdf5_file};

use super::ROBOT;
use crate::desk::{Desk, checkpoint, copy, names, project, steps};

#[test]
fn a_dataset_with_nan() {
    let starter = project().join("datasets/starter/mujoco/hopper_medium.hdf5");
    for (array, at) in [("observations", 37), ("actions", 5), ("rewards", 4)] {
        let desk = Desk::new();
        let path = desk.path("hopper.hdf5");
        fs::copy(&starter, &path).unwrap();
        change(&path, array, |values| values[at] = f32::NAN);
        let line = format!("{ROBOT} dataset={}", path.display());
        desk.refuses(&line);
        assert_eq!(names(&desk.path("runs")), [""; 0]);
    }
}

#[test]
fn a_log_with_a_nan_reward() {
    let desk = Desk::new();
    let mut recorder = Recorder::new(&desk.path(""), "Seaquest", 10);
    recorder.episode(12);
    recorder.episode(8);
    let name = "$store$_reward_ckpt.1.gz";
    let mut rewards = [0.0f32; 10];
    rewards[3] = f32::NAN;
    let bytes: Vec<u8> = rewards.iter().flat_map(|reward| reward.to_le_bytes()).collect();
    write_gz(&recorder.folder.join(name), &npy("<f4", &[10], &bytes));
    let line = desk.tiny("data.path=Seaquest data.cache=cache");
    desk.refuses(&line);
    assert_eq!(names(&desk.path("runs")), [""; 0]);
}

#[test]
fn a_robots_loss_that_is_nan() {
    let desk = Desk::new();
    let words = "train.learning_rate=1e30 train.warmup_tokens=0 train.checkpoint_every=1";
    desk.refuses(&format!("{ROBOT} {words} head=gaussian"));
    let run = desk.only_run("runs");
    assert_eq!(steps(&run), [1]);
    let record = fs::read(run.join("not-finite-step-00000002.json")).unwrap();
    let record: serde_json::Value = serde_json::from_slice(&record).unwrap();
    assert_eq!(record["last_indices"].as_array().unwrap().len(), 3);
    // The earlier checkpoint is valid, and can be resumed from.
    desk.refuses("resume");
    assert_eq!(checkpoint(&run, 1).len(), 4);
    // With smaller batches the next one starts at the same position.
    change_text(&run.join("config.toml"), "batch_size = 3", "batch_size = 2");
    desk.refuses("resume");
    let smaller = fs::read(run.join("not-finite-step-00000002.json")).unwrap();
    let smaller: serde_json::Value = serde_json::from_slice(&smaller).unwrap();
    let indices =
        |record: &serde_json::Value| record["last_indices"].as_array().unwrap()[..2].to_vec();
    assert_eq!(indices(&smaller), indices(&record));
}

/// Replaces a text in a file once.
fn change_text(path: &Path, old: &str, new: &str) {
    let text = fs::read_to_string(path).unwrap();
    assert_eq!(text.matches(old).count(), 1, "{old} in {text}");
    fs::write(path, text.replace(old, new)).unwrap();
}

#[test]
fn another_recording_in_the_place_of_the_one_trained_on() {
    let desk = Desk::new();
    let file = |name: &str| project().join("datasets/starter/mujoco").join(name);
    fs::copy(file("hopper_medium.hdf5"), desk.path("hopper.hdf5")).unwrap();
    let line = format!("{ROBOT} dataset={}", desk.path("hopper.hdf5").display());
    desk.succeeds(&format!("{line} train.checkpoint_every=2"));
    let run = desk.only_run("runs");
    fs::remove_file(run.join("finished")).unwrap();
    fs::remove_dir_all(run.join("checkpoints/step-00000004")).unwrap();
    change(&desk.path("hopper.hdf5"), "rewards", |rewards| rewards[7] += 1.0);
    let before = checkpoint(&run, 2);
    desk.refuses("resume");
    assert!(checkpoint(&run, 2) == before && steps(&run) == [2]);
}

/// Changes array `name` of an HDF5 file.
fn change(path: &Path, name: &str, change: impl Fn(&mut [f32])) {
    // In a copy that is copied back: a file is locked while it is written, and child processes of
    // other tests inherit the lock.
    let edited = path.with_extension("edited");
    fs::copy(path, &edited).unwrap();
    let (shape, mut values) = hdf5_file::reals(&edited, name);
    change(&mut values);
    Hdf5File::edit(&edited).put_shaped(name, &values, &shape);
    fs::copy(&edited, path).unwrap();
}

#[test]
fn a_checkpoint_of_another_run() {
    let desk = Desk::new();
    let words = "train.checkpoint_every=2";
    desk.succeeds(&desk.tiny(words));
    let run = desk.only_run("runs");
    fs::remove_file(run.join("finished")).unwrap();
    for other in
        ["model.d_model=16", "head=fourier", "seed=7 data.transitions=3000", "train.held_out=0.5"]
    {
        let (name, place) = (other.replace(['=', '.', ' '], "-"), run.join("checkpoints"));
        desk.succeeds(&desk.tiny(&format!("{words} {other} runs={name}")));
        let foreign = desk.only_run(&name).join("checkpoints/step-00000004");
        fs::remove_dir_all(place.join("step-00000004")).unwrap();
        copy(&foreign, &place.join("step-00000004"));
        let before = checkpoint(&run, 4);
        desk.refuses("resume runs=runs");
        assert!(checkpoint(&run, 4) == before && steps(&run) == [2, 4], "{other}");
    }
    // Without it the run resumes from its own.
    fs::remove_dir_all(run.join("checkpoints/step-00000004")).unwrap();
    desk.succeeds("resume runs=runs");
    assert_eq!(steps(&run), [2, 4]);
}

#[test]
fn a_configuration_that_makes_another_agent_of_a_run() {
    let desk = Desk::new();
    desk.succeeds(&format!("{ROBOT} train.held_out=0.5"));
    let run = desk.only_run("runs");
    let (file, before) = (run.join("config.toml"), checkpoint(&run, 4));
    fs::remove_file(run.join("finished")).unwrap();
    for (old, new) in [
        ("held_out = 0.5", "held_out = 0.25"),
        ("held_out = 0.5", "held_out = 0.0"),
        ("d_model = 16", "d_model = 8"),
        ("return_scale = 1000.0", "return_scale = 10.0"),
    ] {
        change_text(&file, old, new);
        desk.refuses("resume");
        change_text(&file, new, old);
        assert!(checkpoint(&run, 4) == before, "{new}");
    }
    desk.succeeds("resume");
}

#[test]
fn a_checkpoint_of_another_seed() {
    let desk = Desk::new();
    desk.succeeds(&format!("{ROBOT} runs=one"));
    desk.succeeds(&format!("{ROBOT} runs=two seed=7"));
    let (one, two) = (desk.only_run("one"), desk.only_run("two"));
    let step = "checkpoints/step-00000004";
    fs::remove_dir_all(one.join(step)).unwrap();
    copy(&two.join(step), &one.join(step));
    let line = format!("resume run={}", one.display());
    desk.refuses(&line);
}
