//! Reference scores of environments.

use std::collections::BTreeMap;
use std::sync::LazyLock;

use overtone_core::Reference;
use serde::Deserialize;

use crate::TaskName;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Table {
    /// Description of 0 and 100 for each convention.
    conventions: BTreeMap<String, String>,
    scores: Vec<Row>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Row {
    /// The id without module, namespace and version.
    environment: String,
    reference: Scores,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Scores {
    convention: String,
    low: f64,
    high: f64,
}

/// The scores that become 0 and 100 in an environment. `None` if no convention includes it, or if
/// keyword arguments or another module change the environment.
pub fn reference(name: &TaskName) -> Option<Reference> {
    static TABLE: LazyLock<Table> = LazyLock::new(|| {
        let table = include_str!("../scores.toml");
        toml::from_str(table).unwrap_or_else(|error| panic!("the table of scores: {error}"))
    });
    let module = name.id.rsplit_once(':').map_or("", |(module, _)| module);
    if !name.options.is_empty() || !["", "gymnasium_robotics"].contains(&module) {
        return None;
    }
    let row = TABLE.scores.iter().find(|row| row.environment == name.environment())?;
    let Scores { convention, low, high } = &row.reference;
    let meaning = TABLE.conventions.get(convention).cloned().unwrap_or_default();
    Some(Reference { convention: convention.clone(), meaning, low: *low, high: *high })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn scores_apply_to_every_version_of_an_environment() {
        let of = |name| reference(&TaskName::parse(name).unwrap());
        let ant = of("Ant-v5").unwrap();
        assert_eq!((ant.convention.as_str(), ant.low, ant.high), ("d4rl", -325.6, 3879.7));
        assert_eq!(ant.meaning, "random 0, expert 100, scores of D4RL");
        assert_eq!(ant.normalize(3879.7), 100.0);
        assert_eq!(of("gymnasium_robotics:AdroitHandPen-v1").unwrap().low, 96.262799);
        assert_eq!(of("Ant-v5,healthy_reward=0"), None);
        assert_eq!(of("robots_of_mine:Ant-v5"), None);
        assert_eq!(of("CartPole-v1"), None);
    }
}
