//! The parameters with weight decay.

use std::collections::HashSet;

use burn::module::ParamId;
use overtone_model::Matrices;
use serde::{Deserialize, Serialize};

/// The parameters with weight decay.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Decayed {
    /// The module's [matrices](Matrices): weights of linear layers and convolutions, as in the
    /// Atari reference.
    #[default]
    Matrices,
    /// Every parameter, as in the reference on Gym.
    Everything,
}

impl Decayed {
    /// The selected parameters of a module.
    pub fn of(self, module: &impl Matrices) -> DecayedIds {
        match self {
            Self::Matrices => DecayedIds(Some(module.matrices().into_iter().collect())),
            Self::Everything => DecayedIds(None),
        }
    }
}

/// The parameters of one module with weight decay.
#[derive(Clone, Debug)]
pub struct DecayedIds(Option<HashSet<ParamId>>);

impl DecayedIds {
    /// Whether this parameter decays.
    pub fn includes(&self, id: ParamId) -> bool {
        self.0.as_ref().is_none_or(|ids| ids.contains(&id))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A module with three parameters, two of them matrices.
    struct Three([ParamId; 3]);

    impl Matrices for Three {
        fn matrices(&self) -> Vec<ParamId> {
            self.0[..2].to_vec()
        }
    }

    #[test]
    fn the_module_selects_the_matrices() {
        let three = Three([0, 1, 2].map(|_| ParamId::new()));
        let decays = |decayed: Decayed| three.0.map(|id| decayed.of(&three).includes(id));
        assert_eq!(decays(Decayed::Matrices), [true, true, false]);
        assert_eq!(decays(Decayed::Everything), [true; 3]);
    }

    #[test]
    fn names_in_configurations() {
        for (decayed, stored) in
            [(Decayed::Matrices, r#""matrices""#), (Decayed::Everything, r#""everything""#)]
        {
            assert_eq!(serde_json::to_string(&decayed).unwrap(), stored);
        }
    }
}
