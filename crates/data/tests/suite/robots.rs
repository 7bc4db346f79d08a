//! D4RL and Minari files written for tests: observations of three numbers, actions of two.

use std::path::{Path, PathBuf};

use hdf5_pure::AttrValue;
use overtone_testkit::Hdf5File;
use overtone_testkit::hdf5_file::Element;
use tempfile::TempDir;

/// Numbers of an observation and of an action.
pub const WIDTHS: (usize, usize) = (3, 2);

/// The observation in row `row` of a written file.
pub fn observation(row: usize) -> [f32; 3] {
    let row = row as f32;
    [row, row / 8.0, -row]
}

pub fn action(row: usize) -> [f32; 2] {
    let row = (row % 16) as f32;
    [row / 16.0, -row / 16.0]
}

pub fn reward(row: usize) -> f32 {
    row as f32 / 4.0 - 1.0
}

/// Writes `values` in place of array `name`.
pub fn replace<T: Element>(path: &Path, name: &str, values: &[T], width: usize) {
    Hdf5File::edit(path).put(name, values, width);
}

/// A D4RL file with a step for each letter: `t` a terminal, `l` a timeout, `b` both, `.` none.
pub fn write_d4rl(path: &Path, steps: &str) {
    let file = Hdf5File::create(path);
    let rows = 0..steps.len();
    let flags = |flag: char| steps.chars().map(|c| c == flag || c == 'b').collect::<Vec<bool>>();
    file.put("observations", &rows.clone().flat_map(observation).collect::<Vec<_>>(), 3);
    file.put("actions", &rows.clone().flat_map(action).collect::<Vec<_>>(), 2);
    file.put("rewards", &rows.map(reward).collect::<Vec<_>>(), 0);
    file.put("terminals", &flags('t'), 0);
    file.put("timeouts", &flags('l'), 0);
}

/// As [`write_d4rl`], in a folder of its own.
pub fn d4rl(steps: &str) -> (TempDir, PathBuf) {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("robot.hdf5");
    write_d4rl(&path, steps);
    (dir, path)
}

/// A Minari file with an episode for each word of `steps`, whose letters are as in
/// [`write_d4rl`].
pub fn minari(steps: &str) -> (TempDir, PathBuf) {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("main_data.hdf5");
    let file = Hdf5File::create(&path);
    let mut start = 0;
    for (number, episode) in steps.split(' ').enumerate() {
        let group = file.group(&format!("episode_{number}"));
        let rows = start..start + episode.len();
        start = rows.end;
        let flags = |flag: char| episode.chars().map(|c| c == flag || c == 'b').collect::<Vec<_>>();
        let observed: Vec<_> = rows.clone().chain([999]).flat_map(observation).collect();
        group.put("observations", &observed, 3);
        group.put("actions", &rows.clone().flat_map(action).collect::<Vec<_>>(), 2);
        group.put("rewards", &rows.map(reward).map(f64::from).collect::<Vec<_>>(), 0);
        group.put("terminations", &flags('t'), 0);
        group.put("truncations", &flags('l'), 0);
    }
    let total = steps.split(' ').count() as i64;
    file.attribute("total_episodes", AttrValue::I64(total));
    (dir, path)
}
