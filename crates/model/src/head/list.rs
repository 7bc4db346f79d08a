//! What follows from the [list of heads](super): the enums that store, validate and run whichever
//! head was chosen.

use burn::tensor::Tensor;
use overtone_core::ActionSpace;

use super::{
    ActedRows, ActionOrder, BinsHead, Decisions, Head, HeadConfig, HeadLoss, HeadOutput,
    LogitsDecisions, NAMES, NumbersDecisions, OnBins, OnNumbers, bins_loss,
};
use crate::error::{ModelError, check_counts, config_error};

/// Makes of the two lists the enums that store, validate and run whichever head was chosen.
macro_rules! heads {
    (
        bins { $($(#[$bins_doc:meta])*
            $bins_file:ident: $bins:ident($bins_config:ident => $bins_head:ident),)* }
        numbers { $($(#[$doc:meta])*
            $file:ident: $numbers:ident($config:ident => $head:ident),)* }
    ) => {
        /// Which head on bins, with its own options.
        #[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
        #[serde(tag = "kind", rename_all = "snake_case", deny_unknown_fields)]
        pub enum BinsHeadConfig { $($(#[$bins_doc])* $bins($bins_file::$bins_config),)* }

        impl BinsHeadConfig {
            /// # Errors
            /// When an option does not fit `n` bins.
            pub fn validate(&self, n: usize) -> Result<(), ModelError> {
                match self { $(Self::$bins(options) => options.validate(n),)* }
            }

            /// In a few words: `Fourier head of 14 frequencies`.
            pub fn describe(&self) -> String {
                match self { $(Self::$bins(options) => options.describe(),)* }
            }

            /// The order of the bins that was asked for.
            pub fn action_order(&self) -> Option<&ActionOrder> {
                match self { $(Self::$bins(options) => options.action_order(),)* }
            }

            /// A head on `n` bins.
            pub fn init(&self, d_model: usize, n: usize, init: &mut Init<'_>) -> BinsHead {
                match self {
                    $(Self::$bins(options) => BinsHead::$bins(options.init(d_model, n, init)),)*
                }
            }
        }

        /// A head on bins.
        #[derive(Module, Debug)]
        #[allow(clippy::large_enum_variant)] // one head per model
        pub enum BinsHead { $($(#[$bins_doc])* $bins($bins_file::$bins_head),)* }

        impl Matrices for BinsHead {
            fn matrices(&self) -> Vec<ParamId> {
                match self { $(Self::$bins(head) => head.matrices(),)* }
            }
        }

        impl BinsHead {
            fn inner(&self) -> &dyn OnBins {
                match self { $(Self::$bins(head) => head,)* }
            }
        }

        /// Which head, with its own options.
        #[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
        #[serde(tag = "kind", rename_all = "snake_case", deny_unknown_fields)]
        pub enum HeadConfig {
            $($(#[$bins_doc])* $bins($bins_file::$bins_config),)*
            $($(#[$doc])* $numbers($file::$config),)*
        }

        /// Heads for a list of actions, and heads for real-valued ones.
        const NAMES: [&[&str]; 2] = [&[$(stringify!($bins)),*], &[$(stringify!($numbers)),*]];

        impl HeadConfig {
            /// The variant's name, and whether it is for real-valued actions.
            fn name(&self) -> (&'static str, bool) {
                match self {
                    $(Self::$bins(_) => (stringify!($bins), false),)*
                    $(Self::$numbers(_) => (stringify!($numbers), true),)*
                }
            }

            fn validate_options(&self, size: usize) -> Result<(), ModelError> {
                match self {
                    $(Self::$bins(options) => options.validate(size),)*
                    $(Self::$numbers(options) => options.validate(),)*
                }
            }

            /// In a few words: `Fourier head of 14 frequencies`.
            pub fn describe(&self) -> String {
                match self {
                    $(Self::$bins(options) => options.describe(),)*
                    $(Self::$numbers(options) => options.describe(),)*
                }
            }

            /// The order of a list of actions that was asked for.
            pub fn action_order(&self) -> Option<&ActionOrder> {
                match self {
                    $(Self::$bins(options) => options.action_order(),)*
                    $(Self::$numbers(_) => None,)*
                }
            }

            /// A head for these actions, which [fit](Self::validate) it.
            pub fn init(
                &self,
                d_model: usize,
                actions: &ActionSpace,
                init: &mut Init<'_>,
            ) -> Head {
                let size = actions.size();
                match self {
                    $(Self::$bins(options) => Head::$bins(options.init(d_model, size, init)),)*
                    $(Self::$numbers(options) => {
                        Head::$numbers(options.init(d_model, size, init))
                    })*
                }
            }
        }

        /// An action head.
        #[derive(Module, Debug)]
        #[allow(clippy::large_enum_variant)] // one head per model
        pub enum Head {
            $($(#[$bins_doc])* $bins($bins_file::$bins_head),)*
            $($(#[$doc])* $numbers($file::$head),)*
        }

        impl Matrices for Head {
            fn matrices(&self) -> Vec<ParamId> {
                match self {
                    $(Self::$bins(head) => head.matrices(),)*
                    $(Self::$numbers(head) => head.matrices(),)*
                }
            }
        }

        impl Head {
            fn inner(&self) -> list::Inner<'_> {
                match self {
                    $(Self::$bins(head) => list::Inner::Bins(head),)*
                    $(Self::$numbers(head) => list::Inner::Numbers(head),)*
                }
            }
        }
    };
}

/// A head by what it is for.
pub(super) enum Inner<'a> {
    Bins(&'a dyn OnBins),
    Numbers(&'a dyn OnNumbers),
}

impl HeadConfig {
    /// # Errors
    /// When the head is not for such actions, or one of its options describes none.
    pub fn validate(&self, actions: &ActionSpace) -> Result<(), ModelError> {
        let size = actions.size();
        check_counts(&[("actions", size)])?;
        let (name, for_numbers) = self.name();
        let has_numbers = matches!(actions, ActionSpace::Continuous { .. });
        if for_numbers == has_numbers {
            return self.validate_options(size);
        }
        let names: Vec<String> =
            NAMES[usize::from(has_numbers)].iter().map(|name| snake_case(name)).collect();
        let names = names.join(", ");
        let expected = match has_numbers {
            true => format!(
                "is for a list of actions, and an action here is {size} numbers; choose one of \
                 {names}"
            ),
            false => format!(
                "is for real-valued actions, and here there are {size} actions to choose from; \
                 choose one of {names}"
            ),
        };
        Err(config_error("head", snake_case(name), expected))
    }
}

impl Head {
    /// What each row of logged actions costs.
    ///
    /// # Shapes
    /// - `hidden`: `[rows, d_model]`
    ///
    /// # Panics
    /// When the targets are of another kind than the head's actions: a caller's bug.
    pub fn loss(&self, hidden: Tensor<2>, targets: ActedRows) -> HeadLoss {
        match (self.inner(), targets) {
            (Inner::Bins(head), ActedRows::Discrete(ids)) => bins_loss(head.forward(hidden), ids),
            (Inner::Numbers(head), ActedRows::Continuous(numbers)) => head.loss(hidden, numbers),
            (Inner::Bins(_), ActedRows::Continuous(_)) => panic!("numbers for a list of actions"),
            (Inner::Numbers(_), ActedRows::Discrete(_)) => panic!("ids for real-valued actions"),
        }
    }

    /// What the head says about each row's action, on the host.
    ///
    /// # Shapes
    /// - `hidden`: `[rows, d_model]`
    pub fn decide(&self, hidden: Tensor<2>) -> Decisions {
        match self.inner() {
            Inner::Bins(head) => Decisions::Actions(LogitsDecisions::new(head.forward(hidden))),
            Inner::Numbers(head) => {
                let shape = [hidden.dims()[0], head.width()];
                Decisions::Numbers(NumbersDecisions::new(shape, head.marginals(hidden)))
            }
        }
    }

    /// Logits of a list of actions, `[rows, n_actions]`, by environment id; `None` for
    /// real-valued ones.
    ///
    /// # Shapes
    /// - `hidden`: `[rows, d_model]`
    pub fn logits(&self, hidden: Tensor<2>) -> Option<Tensor<2>> {
        match self.inner() {
            Inner::Bins(head) => Some(head.forward(hidden).logits),
            Inner::Numbers(_) => None,
        }
    }

    /// The head's own order of a list of actions, `None` when it is the environment's.
    pub fn action_order(&self) -> Option<&ActionOrder> {
        match self.inner() {
            Inner::Bins(head) => head.action_order(),
            Inner::Numbers(_) => None,
        }
    }
}

impl BinsHead {
    /// # Shapes
    /// - `hidden`: `[rows, d_model]`
    pub fn forward(&self, hidden: Tensor<2>) -> HeadOutput {
        self.inner().forward(hidden)
    }

    /// The head's own order of the bins, `None` when it is the environment's.
    pub fn action_order(&self) -> Option<&ActionOrder> {
        self.inner().action_order()
    }
}

/// `FourierLikelihood` as configurations have it: `fourier_likelihood`.
fn snake_case(name: &str) -> String {
    let mut snake = String::new();
    for (place, letter) in name.char_indices() {
        if letter.is_uppercase() && place > 0 {
            snake.push('_');
        }
        snake.extend(letter.to_lowercase());
    }
    snake
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::head::{FourierLikelihoodConfig, LinearConfig, TanhConfig};

    #[track_caller]
    fn check_refused(head: HeadConfig, actions: &ActionSpace, expected: &str) {
        assert_eq!(head.validate(actions).unwrap_err().to_string(), expected);
    }

    #[test]
    fn a_head_that_does_not_fit_the_actions_is_refused_with_those_that_do() {
        check_refused(
            HeadConfig::FourierLikelihood(FourierLikelihoodConfig::new(4)),
            &ActionSpace::numbered(6),
            "model.head = fourier_likelihood: is for real-valued actions, and here there are 6 \
             actions to choose from; choose one of linear, fourier, gmm",
        );
        check_refused(
            HeadConfig::Linear(LinearConfig {}),
            &ActionSpace::unit(3),
            "model.head = linear: is for a list of actions, and an action here is 3 numbers; \
             choose one of tanh, pointwise, gaussian, fourier_likelihood, gmm_likelihood, binned",
        );
    }

    #[test]
    fn names_are_those_of_configurations() {
        let stored = serde_json::to_string(&HeadConfig::Tanh(TanhConfig {})).unwrap();
        assert_eq!(stored, r#"{"kind":"tanh"}"#);
        for names in NAMES {
            for name in names {
                let stored = format!(r#"{{"kind":"{}","no_such_key":1}}"#, snake_case(name));
                let error = serde_json::from_str::<HeadConfig>(&stored).unwrap_err().to_string();
                assert!(!error.contains("unknown variant"), "{name}: {error}");
            }
        }
        let unknown = r#"{"kind":"tanh","frequencies":3}"#;
        let error = serde_json::from_str::<HeadConfig>(unknown).unwrap_err().to_string();
        assert!(error.contains("frequencies"), "{error}");
    }
}
