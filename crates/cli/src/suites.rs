//! The suites there are: the one list of them. Whoever needs to know something of a task asks
//! its suite.

use anyhow::{Context, Result};
use overtone_core::Task;
use overtone_env::{Suite, find_task};

/// All suites.
pub const SUITES: [&dyn Suite; 2] = [&overtone_ale::Ale, &overtone_mujoco::Mujoco];

/// The suite that `task` is of.
///
/// # Errors
/// When this program has no such suite.
pub fn of(task: &Task) -> Result<&'static dyn Suite> {
    let found = SUITES.into_iter().find(|suite| suite.name() == task.suite);
    found.with_context(|| format!("{}: this program has no suite `{}`", task.id(), task.suite))
}

/// The task with this title, such as `Seaquest`.
///
/// # Errors
/// When no suite has it.
pub fn titled(title: &str) -> Result<&'static Task> {
    let mut tasks = SUITES.into_iter().flat_map(|suite| suite.tasks());
    tasks.find(|task| task.title == title).with_context(|| format!("no suite has a task `{title}`"))
}

/// The task with this name in its suite, such as `seaquest`, in any spelling.
///
/// # Errors
/// When no suite has it.
pub fn named(name: &str) -> Result<&'static Task> {
    let mut found = SUITES.into_iter().filter_map(|suite| find_task(suite, name).ok());
    found.next().with_context(|| format!("no suite has a task `{name}`"))
}

/// What the tasks are called for which a condition holds: `games`, or `games and robots`.
pub fn nouns(holds: impl Fn(&dyn Suite, &Task) -> bool) -> String {
    let of_suite = |suite: &&dyn Suite| suite.tasks().iter().any(|task| holds(*suite, task));
    let nouns: Vec<&str> =
        SUITES.into_iter().filter(of_suite).map(|suite| suite.nouns()[1]).collect();
    nouns.join(" and ")
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn every_task_is_found_and_no_name_is_two_tasks() {
        let mut ids = BTreeSet::new();
        for suite in SUITES {
            for task in suite.tasks() {
                assert_eq!(of(task).unwrap().name(), suite.name());
                assert_eq!(titled(&task.title).unwrap(), task);
                assert!(ids.insert(task.id()));
                let settings = suite.settings().iter().map(|setting| setting.key);
                let known = |key: &str| task.simulation.get(key).is_some();
                assert!(
                    settings.clone().all(known)
                        && task.simulation.iter().count() == settings.count()
                );
                assert!(suite.simulator(task, &task.simulation).is_ok());
            }
        }
    }
}
