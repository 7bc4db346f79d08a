//! Reference scores of environments.

use std::sync::LazyLock;

use overtone_core::Reference;
use overtone_env::{Scores, TaskTable};
use serde::Deserialize;

use crate::TaskName;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Row {
    /// The id without module, namespace and version.
    environment: String,
    reference: Scores,
}

/// The scores that become 0 and 100 in an environment. `None` if no convention includes it, or if
/// keyword arguments or another module change the environment.
pub fn reference(name: &TaskName) -> Option<Reference> {
    static TABLE: LazyLock<TaskTable<Row>> =
        LazyLock::new(|| TaskTable::of(include_str!("../scores.toml")));
    let module = name.id.rsplit_once(':').map_or("", |(module, _)| module);
    if !name.options.is_empty() || !["", "gymnasium_robotics"].contains(&module) {
        return None;
    }
    let row = TABLE.tasks.iter().find(|row| row.environment == name.environment())?;
    Some(TABLE.reference(&row.reference))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn scores_apply_to_every_version_of_an_environment() {
        let scores = |name| reference(&TaskName::parse(name).unwrap());
        let ant = scores("Ant-v5").unwrap();
        assert_eq!((ant.convention.as_str(), ant.low, ant.high), ("d4rl", -325.6, 3879.7));
        assert_eq!(ant.meaning, "random 0, expert 100, scores of D4RL");
        assert_eq!(ant.normalize(3879.7), 100.0);
        assert_eq!(scores("gymnasium_robotics:AdroitHandPen-v1").unwrap().low, 96.262799);
        assert_eq!(scores("Ant-v5,healthy_reward=0"), None);
        assert_eq!(scores("robots_of_mine:Ant-v5"), None);
        assert_eq!(scores("CartPole-v1"), None);
    }
}
