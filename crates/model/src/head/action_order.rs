//! Order of Atari's 18 actions along a line, so that neighbouring bins have similar meanings.

use serde::{Deserialize, Serialize};

use crate::error::{ModelError, config_error};

/// A bijection between environment action ids and a head's bins.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "Vec<usize>", into = "Vec<usize>")]
pub struct ActionOrder {
    /// `bin_of[action]`
    bin_of: Vec<usize>,
}

impl TryFrom<Vec<usize>> for ActionOrder {
    type Error = &'static str;

    fn try_from(bin_of: Vec<usize>) -> Result<Self, Self::Error> {
        Self::new(bin_of).ok_or("`bin_of` must name every bin once")
    }
}

impl From<ActionOrder> for Vec<usize> {
    fn from(order: ActionOrder) -> Self {
        order.bin_of
    }
}

/// Order of discrete actions along a head's bins.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum OrderConfig {
    /// The environment's order.
    #[default]
    Environment,
    /// The [compass](ActionOrder::compass) order, by the actions' names.
    Compass,
    /// An explicit order.
    BinOf(ActionOrder),
}

impl From<ActionOrder> for OrderConfig {
    fn from(order: ActionOrder) -> Self {
        Self::BinOf(order)
    }
}

impl OrderConfig {
    /// Replaces a rule by its order of the actions with these names.
    ///
    /// # Errors
    /// When the names have no directions.
    pub(super) fn write_out(&mut self, names: &[String]) -> Result<(), ModelError> {
        if *self == Self::Compass {
            let expected = "must be environment: these actions have no directions";
            let order = ActionOrder::compass(names)
                .ok_or_else(|| config_error("head.action_order", "compass", expected))?;
            *self = Self::BinOf(order);
        }
        Ok(())
    }

    /// # Errors
    /// When the order does not have `n` actions.
    pub(super) fn check(&self, n: usize) -> Result<(), ModelError> {
        match self {
            Self::BinOf(order) if order.bin_of().len() != n => Err(config_error(
                "head.action_order",
                format!("{} actions", order.bin_of().len()),
                "must order exactly the environment's actions",
            )),
            _ => Ok(()),
        }
    }

    /// The order, `None` for the environment's.
    ///
    /// # Panics
    /// For a rule that was not replaced by its order: a caller's bug.
    pub(super) fn bins(&self) -> Option<ActionOrder> {
        match self {
            Self::Environment => None,
            Self::Compass => panic!("the compass orders named actions"),
            Self::BinOf(order) => Some(order.clone()),
        }
    }
}

/// Atari's actions in the order of the bins, as in the Fourier head's released experiments: no-op
/// first, then left, up-left, up, … around the compass, the same directions with fire, and plain
/// fire last. The first and the last are neighbours on the ring.
const COMPASS: [&str; 18] = [
    "NOOP",
    "LEFT",
    "UPLEFT",
    "UP",
    "UPRIGHT",
    "RIGHT",
    "DOWNRIGHT",
    "DOWN",
    "DOWNLEFT",
    "LEFTFIRE",
    "UPLEFTFIRE",
    "UPFIRE",
    "UPRIGHTFIRE",
    "RIGHTFIRE",
    "DOWNRIGHTFIRE",
    "DOWNFIRE",
    "DOWNLEFTFIRE",
    "FIRE",
];

/// `bin_of` for Atari's full set, in the order of the emulator's ids.
const ATARI_BIN_OF: [usize; 18] = [0, 17, 3, 5, 1, 7, 4, 2, 6, 8, 11, 13, 9, 15, 12, 10, 14, 16];

impl ActionOrder {
    /// The order for Atari's full set of 18 actions.
    pub fn atari() -> Self {
        Self { bin_of: ATARI_BIN_OF.to_vec() }
    }

    /// The same order restricted to the existing actions: Breakout's no-op, fire, right and left
    /// are ordered as no-op, left, right, fire. `None` if a name is not an Atari action, or is
    /// repeated.
    pub fn compass(names: &[String]) -> Option<Self> {
        let place = |name: &String| COMPASS.iter().position(|action| action == name);
        let places: Vec<usize> = names.iter().map(place).collect::<Option<_>>()?;
        let before = |place: &usize| places.iter().filter(|other| *other < place).count();
        Self::new(places.iter().map(before).collect())
    }

    /// `None` when `bin_of` is not a permutation of `0 .. n`.
    pub fn new(bin_of: Vec<usize>) -> Option<Self> {
        let mut seen = vec![false; bin_of.len()];
        for &bin in &bin_of {
            if std::mem::replace(seen.get_mut(bin)?, true) {
                return None;
            }
        }
        Some(Self { bin_of })
    }

    /// The bin of each environment action.
    pub fn bin_of(&self) -> &[usize] {
        &self.bin_of
    }

    /// The environment action of each bin.
    pub fn action_of(&self) -> Vec<usize> {
        let mut action_of = vec![0; self.bin_of.len()];
        for (action, &bin) in self.bin_of.iter().enumerate() {
            action_of[bin] = action;
        }
        action_of
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn atari_walks_around_the_compass() {
        // Ids: 0 noop, 4 left, 7 up-left, 2 up, 6 up-right, 3 right, 8 down-right, 5 down,
        // 9 down-left, then the same with fire (12 …), 1 fire.
        let expected = [0, 4, 7, 2, 6, 3, 8, 5, 9, 12, 15, 10, 14, 11, 16, 13, 17, 1];
        assert_eq!(ActionOrder::atari().action_of(), expected);
    }

    #[test]
    fn the_compass_restricts_to_existing_actions() {
        let names = |names: &[&str]| names.iter().map(|name| name.to_string()).collect::<Vec<_>>();
        let all = ATARI_BIN_OF.map(|bin| COMPASS[bin]);
        assert_eq!(ActionOrder::compass(&names(&all)), Some(ActionOrder::atari()));
        let breakout = ActionOrder::compass(&names(&["NOOP", "FIRE", "RIGHT", "LEFT"])).unwrap();
        assert_eq!(breakout.bin_of(), [0, 3, 2, 1]);
        assert_eq!(ActionOrder::compass(&names(&["NOOP", "JUMP"])), None);
        assert_eq!(ActionOrder::compass(&names(&["NOOP", "NOOP"])), None);
    }

    #[test]
    fn only_permutations_are_orders() {
        assert!(ActionOrder::new(vec![1, 0, 2]).is_some());
        assert!(ActionOrder::new(vec![1, 1, 2]).is_none());
        assert!(ActionOrder::new(vec![1, 0, 3]).is_none());
        let stored = |text| serde_json::from_str::<ActionOrder>(text);
        assert_eq!(stored("[1,0]").unwrap().action_of(), [1, 0]);
        assert!(stored("[0,9]").is_err(), "an invalid order in a file");
        let order = |text| serde_json::from_str::<OrderConfig>(text).unwrap();
        assert_eq!(order(r#"{"bin_of":[1,0]}"#).bins(), ActionOrder::new(vec![1, 0]));
        assert_eq!(order(r#""compass""#), OrderConfig::Compass);
    }
}
