//! Faults of the machine and of data.

mod disks;
mod shared_files;
mod studies;
mod wrong_files;

use std::path::Path;

use crate::desk::names;

/// A minimal run of a robot.
const ROBOT: &str = "train env=hopper evaluation.episodes=0 model.n_layers=1 model.d_model=16 \
                     model.context_length=5 train.batch_size=3 train.updates=4";

/// All files in a directory without their final names.
fn half_written(folder: &Path) -> Vec<String> {
    let mut names = names(folder);
    names.retain(|name| name.starts_with('.') && name != ".lock" || name.contains("partial"));
    names
}
