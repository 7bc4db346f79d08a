//! The settings of a suite's simulator: [`Setting`], and their comparison.

use std::fmt;

use super::{Comparison, Trained};
use crate::Task;
use crate::simulation::Value;

/// A setting of a suite's simulator, and what its suite knows about other values of it.
#[derive(Clone, Copy)]
pub struct Setting {
    /// Its name in a [`Simulation`](crate::Simulation), such as `frame_skip`.
    pub key: &'static str,
    /// What follows from training with the first value and playing with the second, in a
    /// clause.
    pub consequence: fn(&Value, &Value) -> String,
    /// Why no episode of this task can change by it; `None` where one can.
    pub idle: fn(&Task) -> Option<&'static str>,
}

impl fmt::Debug for Setting {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Setting").field("key", &self.key).finish_non_exhaustive()
    }
}

impl Setting {
    /// A setting that matters in every task.
    pub const fn new(key: &'static str, consequence: fn(&Value, &Value) -> String) -> Self {
        Self { key, consequence, idle: |_| None }
    }
}

/// What follows from another length at which episodes are cut; 0 is none.
pub fn other_length(trained: &Value, played: &Value) -> String {
    let length = |value: &Value| value.number().map(|n| if n == 0.0 { f64::INFINITY } else { n });
    let longer = length(played) > length(trained);
    let follows = match longer {
        true => "an episode may last longer than any of the data, and collect more",
        false => "an episode is cut sooner than in the data, and collects less",
    };
    follows.to_owned()
}

/// Compares every setting that both simulations have: those that the suite explains first.
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
            None => "the simulator is run otherwise than when the data was recorded".to_owned(),
        };
        let idle = explained(key).and_then(|setting| (setting.idle)(&agent.task));
        let mut play = comparison.trained.clone();
        play.simulation = play.simulation.with(key, now.clone());
        let values = [before.to_string(), now.to_string()];
        comparison.differs(idle, &format!("simulation.{key}"), values, consequence, play);
    }
}
