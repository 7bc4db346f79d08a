//! Options of `evaluate rollouts` that some tasks alone have.

use anyhow::{Result, bail};
use overtone_core::{ActionSpace, Task};
use overtone_env::Suite;

use crate::{keys, suites};

/// Whether a key has a meaning for a task.
fn is_heeded(key: &str, suite: &dyn Suite, task: &Task) -> bool {
    let discrete = matches!(task.actions, ActionSpace::Discrete { .. });
    match key {
        "temperature" => discrete,
        "actions" => !discrete,
        "released_target" => suite.released().is_some(),
        _ => true,
    }
}

/// Whether `words` (each `key=value`) set anything that playing `task` would not heed, and whether
/// it is played at all.
///
/// # Errors
/// When one does, or it is not.
pub fn check(words: &[String], task: &Task) -> Result<()> {
    let suite = suites::of(task)?;
    suites::check_environment(task)?;
    for word in words {
        let (key, text) = keys::split(word)?;
        if !is_heeded(&key, suite, task) {
            let of = match &*key {
                "temperature" => "tasks with a list of actions".to_owned(),
                "actions" => "tasks with real-valued actions".to_owned(),
                key => suites::nouns(|suite, task| is_heeded(key, suite, task)),
            };
            bail!("{key}={text} is for {of} alone, and this agent plays {}", task.title);
        }
    }
    Ok(())
}
