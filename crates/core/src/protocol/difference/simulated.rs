//! [`Setting`]: a setting of a suite's simulator, and the comparison of two simulations.

use std::fmt;

use super::{Comparison, Trained};
use crate::simulation::Value;
use crate::task::Task;

/// A setting of a suite's simulator, with the effect of changing it.
#[derive(Clone, Copy)]
pub struct Setting {
    /// Its name in a [`Simulation`](crate::Simulation), such as `frame_skip`.
    pub key: &'static str,
    /// The effect of training with the first value and acting with the second, in a clause.
    pub consequence: fn(&Value, &Value) -> String,
    /// The reason why the setting has no effect in this task; `None` if it has.
    pub idle: fn(&Task) -> Option<&'static str>,
}

impl fmt::Debug for Setting {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Setting").field("key", &self.key).finish_non_exhaustive()
    }
}

impl Setting {
    /// A setting that has an effect in every task.
    pub const fn new(key: &'static str, consequence: fn(&Value, &Value) -> String) -> Self {
        Self { key, consequence, idle: |_| None }
    }
}

/// The effect of another step limit of an episode; 0 means no limit.
pub fn other_length(trained: &Value, played: &Value) -> String {
    let length = |value: &Value| value.number().map(|n| if n == 0.0 { f64::INFINITY } else { n });
    let longer = length(played) > length(trained);
    let follows = if longer {
        "an episode may last longer than any of the data, and collect more"
    } else {
        "an episode is cut sooner than in the data, and collects less"
    };
    follows.to_owned()
}

/// Compares every setting that both simulations have, the explained ones first.
pub(super) fn compare(comparison: &mut Comparison<'_>, agent: &Trained) {
    let explained = |key: &str| agent.settings.iter().find(|setting| setting.key == key);
    let mut keys: Vec<&str> = agent.settings.iter().map(|setting| setting.key).collect();
    let (trained, played) = (&comparison.trained.simulation, &comparison.played.simulation);
    keys.extend(trained.iter().map(|(key, _)| key).filter(|key| explained(key).is_none()));
    for key in keys {
        let (Some(before), Some(now)) = (trained.get(key), played.get(key)) else { continue };
        if before == now {
            continue;
        }
        let consequence = match explained(key) {
            Some(setting) => (setting.consequence)(before, now),
            None => {
                "the simulator runs with other settings than when the data was recorded".to_owned()
            }
        };
        let idle = explained(key).and_then(|setting| (setting.idle)(&agent.task));
        let mut play = comparison.trained.clone();
        play.simulation = play.simulation.with(key, now.clone());
        let values = [before.to_string(), now.to_string()];
        comparison.differs(idle, &format!("simulation.{key}"), values, consequence, play);
    }
}
