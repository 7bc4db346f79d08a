//! D4RL and Minari files written for tests: observations of three numbers, actions of two.

use std::path::{Path, PathBuf};

use hdf5::{File, Group, H5Type};
use tempfile::TempDir;

/// Numbers of an observation and of an action.
pub const WIDTHS: (usize, usize) = (3, 2);

/// What row `row` of a written file holds.
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

/// Writes `values` as array `name`, of `width` numbers a row; 0 makes it one-dimensional.
pub fn put<T: H5Type>(group: &Group, name: &str, values: &[T], width: usize) {
    let rows = values.len() / width.max(1);
    let array = group.new_dataset::<T>();
    let array = if width == 0 { array.shape(rows) } else { array.shape((rows, width)) };
    array.create(name).unwrap().write_raw(values).unwrap();
}

/// Writes `values` in place of array `name`.
pub fn replace<T: H5Type>(path: &Path, name: &str, values: &[T], width: usize) {
    let file = File::open_rw(path).unwrap();
    file.unlink(name).unwrap();
    put(&file, name, values, width);
}

/// A D4RL file with a step for each letter: `t` a terminal, `l` a timeout, `b` both, `.` none.
pub fn write_d4rl(path: &Path, steps: &str) {
    let file = File::create(path).unwrap();
    let rows = 0..steps.len();
    let flags = |flag: char| steps.chars().map(|c| c == flag || c == 'b').collect::<Vec<bool>>();
    put(&file, "observations", &rows.clone().flat_map(observation).collect::<Vec<_>>(), 3);
    put(&file, "actions", &rows.clone().flat_map(action).collect::<Vec<_>>(), 2);
    put(&file, "rewards", &rows.map(reward).collect::<Vec<_>>(), 0);
    put(&file, "terminals", &flags('t'), 0);
    put(&file, "timeouts", &flags('l'), 0);
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
    let file = File::create(&path).unwrap();
    let mut start = 0;
    for (number, episode) in steps.split(' ').enumerate() {
        let group = file.create_group(&format!("episode_{number}")).unwrap();
        let rows = start..start + episode.len();
        start = rows.end;
        let flags = |flag: char| episode.chars().map(|c| c == flag || c == 'b').collect::<Vec<_>>();
        let observed: Vec<_> = rows.clone().chain([999]).flat_map(observation).collect();
        put(&group, "observations", &observed, 3);
        put(&group, "actions", &rows.clone().flat_map(action).collect::<Vec<_>>(), 2);
        put(&group, "rewards", &rows.map(reward).map(f64::from).collect::<Vec<_>>(), 0);
        put(&group, "terminations", &flags('t'), 0);
        put(&group, "truncations", &flags('l'), 0);
    }
    let total = steps.split(' ').count() as i64;
    file.new_attr::<i64>().create("total_episodes").unwrap().write_scalar(&total).unwrap();
    (dir, path)
}
