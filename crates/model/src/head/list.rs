//! Code generated from the [list of heads](super): the enums that store, validate and run a head.

use burn::tensor::Tensor;
use overtone_core::ActionSpace;

use super::{
    ActedRows, ActionOrder, BinnedConfig, BinsHead, BinsHeadConfig, Decisions, Domain, Head,
    HeadConfig, HeadLoss, HeadOutput, LogitsDecisions, NumbersDecisions, OnBins, OnNumbers,
    bins_loss,
};
use crate::error::{ModelError, check_counts, config_error};

/// Generates the enums that store, validate and run a head from the two lists.
macro_rules! heads {
    (
        bins { $($(#[doc = $bins_doc:literal])*
            $bins_word:literal $bins_file:ident: $bins:ident($bins_config:ident => $bins_head:ident),)* }
        numbers { $($(#[doc = $doc:literal])*
            $($word:literal)? $file:ident: $numbers:ident($config:ident => $head:ident),)* }
    ) => {
        /// A head on bins, with its own options.
        #[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
        #[serde(tag = "kind", rename_all = "snake_case", deny_unknown_fields)]
        pub enum BinsHeadConfig { $($(#[doc = $bins_doc])* $bins($bins_file::$bins_config),)* }

        impl BinsHeadConfig {
            /// # Errors
            /// When an option is not valid for `n` bins.
            pub fn validate(&self, n: usize) -> Result<(), ModelError> {
                match self { $(Self::$bins(options) => options.validate(n),)* }
            }

            /// The option that orders discrete actions, if the head has one.
            pub fn order(&mut self) -> Option<&mut OrderConfig> {
                match self { $(Self::$bins(options) => options.order(),)* }
            }

            /// A single word: `fourier14`.
            pub fn name(&self) -> String {
                match self {
                    $(Self::$bins(config) => options::name($bins_word, config.size()),)*
                }
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
        pub enum BinsHead { $($(#[doc = $bins_doc])* $bins($bins_file::$bins_head),)* }

        impl BinsHead {
            fn inner(&self) -> &dyn OnBins {
                match self { $(Self::$bins(head) => head,)* }
            }
        }

        /// A head, with its own options.
        #[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
        #[serde(tag = "kind", rename_all = "snake_case", deny_unknown_fields)]
        pub enum HeadConfig {
            $($(#[doc = $bins_doc])* $bins($bins_file::$bins_config),)*
            $($(#[doc = $doc])* $numbers($file::$config),)*
        }

        impl HeadConfig {
            fn is_for_numbers(&self) -> bool {
                !matches!(self, $(Self::$bins(_))|*)
            }

            fn validate_options(&self, size: usize) -> Result<(), ModelError> {
                match self {
                    $(Self::$bins(options) => options.validate(size),)*
                    $(Self::$numbers(options) => options.validate(),)*
                }
            }

            fn order(&mut self) -> Option<&mut OrderConfig> {
                match self {
                    $(Self::$bins(options) => options.order(),)*
                    $(Self::$numbers(_) => None,)*
                }
            }

            /// A single word: `linear`, `fourier14`, `gmm2-bins50`.
            pub fn name(&self) -> String {
                match self {
                    Self::Binned(BinnedConfig { bins, head }) => {
                        format!("{}-bins{bins}", head.name())
                    }
                    $(Self::$bins(config) => options::name($bins_word, config.size()),)*
                    $($(Self::$numbers(config) => options::name($word, config.size()),)?)*
                }
            }

            /// All heads for such actions, with their defaults. Continuous actions can be cut into
            /// `bins` for a head on bins; 0: they are not.
            pub fn choices(actions: &ActionSpace, bins: usize) -> Vec<Choice<Self>> {
                let mut choices = Vec::new();
                if bins == 0 && matches!(actions, ActionSpace::Continuous { .. }) {
                    $(
                        let about = concat!($($doc),*);
                        $(choices.push(Choice::new($word, about, Self::$numbers));)?
                        let _ = about;
                    )*
                    return choices;
                }
                $(choices.push(Choice::new($bins_word, concat!($($bins_doc),*), |head| match bins {
                    0 => Self::$bins(head),
                    bins => Self::Binned(BinnedConfig { bins, head: BinsHeadConfig::$bins(head) }),
                }));)*
                choices
            }

            /// A head for these actions.
            ///
            /// # Panics
            /// When the actions do not [fit](Self::validate) the head: a caller's bug.
            pub fn init(
                &self,
                d_model: usize,
                actions: &ActionSpace,
                init: &mut Init<'_>,
            ) -> Head {
                let size = actions.size();
                match &self.ordered(actions).unwrap_or_else(|error| panic!("{error}")) {
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
            $($(#[doc = $bins_doc])* $bins($bins_file::$bins_head),)*
            $($(#[doc = $doc])* $numbers($file::$head),)*
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

/// A head by its kind.
pub(super) enum Inner<'a> {
    Bins(&'a dyn OnBins),
    Numbers(&'a dyn OnNumbers),
}

impl HeadConfig {
    /// The same, with its rule for the order of discrete actions replaced by the order of these
    /// actions.
    pub(super) fn ordered(&self, actions: &ActionSpace) -> Result<Self, ModelError> {
        let mut config = self.clone();
        if let (ActionSpace::Discrete { names }, Some(order)) = (actions, config.order()) {
            order.write_out(names)?;
        }
        Ok(config)
    }

    /// A short description: `fourier14 head`.
    pub fn describe(&self) -> String {
        format!("{} head", self.name())
    }

    /// The configured order of these actions; `None` for the environment's order, and for
    /// continuous actions.
    pub fn action_order(&self, actions: &ActionSpace) -> Option<ActionOrder> {
        match actions {
            ActionSpace::Discrete { .. } => self.ordered(actions).ok()?.order()?.bins(),
            ActionSpace::Continuous { .. } => None,
        }
    }

    /// The limit on the head's certainty about these actions, in a sentence: the [largest
    /// probability](super::FourierHeadConfig::largest_probability) of a periodic Fourier series.
    pub fn limit(&self, actions: &ActionSpace) -> Option<String> {
        let (m, what, head) = match self {
            Self::Fourier(head) => (actions.size(), "action", head),
            Self::Binned(BinnedConfig { bins, head: BinsHeadConfig::Fourier(head) }) => {
                (*bins, "bin", head)
            }
            _ => return None,
        };
        let (n, most) = (head.frequencies, head.largest_probability(m));
        (head.domain == Domain::Periodic && most < 1.0).then(|| {
            format!(
                "the probability of a single {what} cannot exceed {most:.2} ((N + 1)/m, N = {n} \
                 frequencies, m = {m} {what}s); head.frequencies={} lifts this limit",
                m - 1
            )
        })
    }

    /// # Errors
    /// When the head does not fit such actions, or one of its options is not valid.
    pub fn validate(&self, actions: &ActionSpace) -> Result<(), ModelError> {
        let size = actions.size();
        check_counts(&[("actions", size)])?;
        let has_numbers = matches!(actions, ActionSpace::Continuous { .. });
        if self.is_for_numbers() == has_numbers {
            return self.ordered(actions)?.validate_options(size);
        }
        let words: Vec<&str> = Self::choices(actions, 0).iter().map(|choice| choice.word).collect();
        let instead = if has_numbers {
            format!("discrete actions, but the task has continuous actions of {size} dimensions")
        } else {
            format!("continuous actions, but the task has {size} discrete actions")
        };
        let expected = format!("needs {instead}; use one of {}", words.join(", "));
        Err(config_error("head", self.name(), expected))
    }
}

impl Head {
    /// The loss of each row of recorded actions, among the allowed ones of discrete actions.
    ///
    /// # Shapes
    /// - `hidden`: `[rows, d_model]`
    /// - `penalties`: `[rows, n_actions]`: 0 for an allowed action, else
    ///   [`NOT_ALLOWED`](super::NOT_ALLOWED); `None`: all are allowed
    ///
    /// # Panics
    /// When the targets have another kind than the head's actions: a caller's bug.
    pub fn loss(
        &self,
        hidden: Tensor<2>,
        targets: ActedRows,
        penalties: Option<Tensor<2>>,
    ) -> HeadLoss {
        match (self.inner(), targets) {
            (Inner::Bins(head), ActedRows::Discrete(ids)) => {
                bins_loss(head.forward(hidden), ids, penalties)
            }
            (Inner::Numbers(head), ActedRows::Continuous(numbers)) => head.loss(hidden, numbers),
            (Inner::Bins(_), ActedRows::Continuous(_)) => {
                panic!("continuous targets for discrete actions")
            }
            (Inner::Numbers(_), ActedRows::Discrete(_)) => {
                panic!("discrete targets for continuous actions")
            }
        }
    }

    /// The head's output for each row's action, on the host.
    ///
    /// # Shapes
    /// - `hidden`: `[rows, d_model]`
    pub fn decide(&self, hidden: Tensor<2>) -> Decisions {
        match self.inner() {
            Inner::Bins(head) => {
                Decisions::Actions(LogitsDecisions::of(head.forward(hidden).logits))
            }
            Inner::Numbers(head) => {
                let shape = [hidden.dims()[0], head.width()];
                Decisions::Numbers(NumbersDecisions::new(shape, head.marginals(hidden)))
            }
        }
    }

    /// Logits of discrete actions, `[rows, n_actions]`, by environment id; `None` for continuous
    /// actions.
    ///
    /// # Shapes
    /// - `hidden`: `[rows, d_model]`
    pub fn logits(&self, hidden: Tensor<2>) -> Option<Tensor<2>> {
        match self.inner() {
            Inner::Bins(head) => Some(head.forward(hidden).logits),
            Inner::Numbers(_) => None,
        }
    }

    /// The head's own order of discrete actions; `None` if it is the environment's.
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

    /// The head's own order of the bins; `None` if it is the environment's.
    pub fn action_order(&self) -> Option<&ActionOrder> {
        self.inner().action_order()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::head::{
        FourierHeadConfig, FourierLikelihoodConfig, LinearConfig, OrderConfig, TanhConfig,
    };
    use overtone_testkit::sentences;

    #[track_caller]
    fn check_refused(head: HeadConfig, actions: &ActionSpace, expected: &str) {
        assert_eq!(head.validate(actions).unwrap_err().to_string(), expected);
    }

    #[test]
    fn a_head_that_does_not_fit_the_actions_is_refused_with_those_that_do() {
        check_refused(
            HeadConfig::FourierLikelihood(FourierLikelihoodConfig::new(4)),
            &ActionSpace::numbered(6),
            "head = fourier4: needs continuous actions, but the task has 6 discrete actions; use \
             one of linear, fourier, gmm",
        );
        check_refused(
            HeadConfig::Linear(LinearConfig {}),
            &ActionSpace::unit(3),
            "head = linear: needs discrete actions, but the task has continuous actions of 3 \
             dimensions; use one of tanh, pointwise, gaussian, fourier, gmm",
        );
    }

    /// Also if a checkpoint's state has one.
    #[test]
    fn continuous_actions_have_no_order() {
        let action_order = OrderConfig::Compass;
        let config = FourierHeadConfig { action_order, ..FourierHeadConfig::new(3) };
        assert_eq!(HeadConfig::Fourier(config).action_order(&ActionSpace::unit(2)), None);
    }

    #[test]
    fn too_few_frequencies_limit_what_is_most_probable() {
        let fourier = FourierHeadConfig::new;
        let limit = |head| HeadConfig::Fourier(head).limit(&ActionSpace::numbered(18));
        assert_eq!(
            limit(fourier(3)).unwrap(),
            "the probability of a single action cannot exceed 0.22 ((N + 1)/m, N = 3 frequencies, \
             m = 18 actions); head.frequencies=17 lifts this limit"
        );
        assert_eq!(limit(fourier(17)), None);
        assert_eq!(limit(FourierHeadConfig { domain: Domain::HalfRange, ..fourier(3) }), None);
        let head = BinsHeadConfig::Fourier(fourier(6));
        let limit = HeadConfig::Binned(BinnedConfig { bins: 50, head });
        let limit = limit.limit(&ActionSpace::unit(2)).unwrap();
        sentences::check(&limit);
    }

    #[test]
    fn every_choice_fits_its_actions_and_its_keys_are_its_fields() {
        let (list, numbers) = (ActionSpace::numbered(5), ActionSpace::unit(2));
        for (actions, bins) in [(&list, 0), (&numbers, 0), (&numbers, 9)] {
            for choice in HeadConfig::choices(actions, bins) {
                choice.config.validate(actions).unwrap();
                assert!(choice.config.name().starts_with(choice.word), "{}", choice.word);
                let stored = serde_json::to_value(&choice.config).unwrap();
                let stored = if bins > 0 { &stored["head"] } else { &stored };
                assert_eq!(stored.as_object().unwrap().len(), choice.keys.len() + 1);
                for (key, reason) in choice.keys {
                    assert!(stored.get(*key).is_some(), "{key}");
                    assert!(reason.ends_with('.'), "{key}: {reason}");
                }
            }
        }
        let words = |actions, bins| -> Vec<&str> {
            HeadConfig::choices(actions, bins).iter().map(|choice| choice.word).collect()
        };
        assert_eq!(words(&list, 0), ["linear", "fourier", "gmm"]);
        assert_eq!(words(&numbers, 9), words(&list, 0));
        assert_eq!(words(&numbers, 0), ["tanh", "pointwise", "gaussian", "fourier", "gmm"]);
    }

    #[test]
    fn names_are_those_of_configurations() {
        let stored = serde_json::to_string(&HeadConfig::Tanh(TanhConfig {})).unwrap();
        assert_eq!(stored, r#"{"kind":"tanh"}"#);
        for (actions, bins) in [(ActionSpace::numbered(5), 0), (ActionSpace::unit(2), 0)] {
            for choice in HeadConfig::choices(&actions, bins) {
                let mut stored = serde_json::to_value(&choice.config).unwrap();
                assert_eq!(
                    serde_json::from_value::<HeadConfig>(stored.clone()).unwrap(),
                    choice.config
                );
                stored["no_such_key"] = 1.into();
                let error = serde_json::from_value::<HeadConfig>(stored).unwrap_err().to_string();
                assert!(error.contains("no_such_key"), "{}: {error}", choice.word);
            }
        }
        let unknown = r#"{"kind":"tanh","frequencies":3}"#;
        let error = serde_json::from_str::<HeadConfig>(unknown).unwrap_err().to_string();
        assert!(error.contains("frequencies"), "{error}");
    }
}
