//! [`Conditioner`]: conversion of a raw return-to-go, its timestep and its observation to the
//! inputs that condition a model.
//!
//! The steps (each is optional):
//!
//! 1. [average](AverageReturn) return per remaining step, in place of the return-to-go;
//! 2. the place of this in a [range](ConditionerConfig::return_range), −1 to 1;
//! 3. while acting, no more than a quantile of the [predicted return](return_model);
//! 4. an indicator of the [top percent](top_percent) of episodes, in place of the return.
//!
//! Training applies steps 1, 2 and 4, acting all of them. The protocol of play sets the quantile and
//! the top percent of an acting agent.

pub mod average_return;
pub mod return_model;
pub mod top_percent;

use burn::{module::Module, tensor::Tensor};
use overtone_core::{ObservationSpace, Play};
use serde::{Deserialize, Serialize};

pub use self::{
    average_return::AverageReturn,
    return_model::{ReturnModel, ReturnModelConfig},
};
use crate::{
    contexts::{Contexts, Observed},
    error::{ModelError, check_size, config_error},
};

/// Options of a [`Conditioner`]. By default, models are conditioned on unchanged returns-to-go, as
/// in the references.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ConditionerConfig {
    /// Returns-to-go that become −1 and 1; other values are mapped linearly. `None`: unchanged.
    /// With a [`return_model`](Self::return_model), values beyond the range are clamped.
    ///
    /// A token is `R̂ W + b`, and a layer norm follows, which keeps only its direction. For `R̂` well
    /// above `|b|/|W|` that is the direction of `W`: at the references' initial weights 4000 and
    /// 5400, divided by 1000, are 4° apart.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub return_range: Option<[f32; 2]>,
    /// Conditions the model on the average return per remaining step, instead of the return-to-go.
    /// With a [`return_range`](Self::return_range), averages beyond it are clamped.
    ///
    /// An agent that falls behind its target would be conditioned on ever higher averages, which no
    /// recorded step had.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub average_return: Option<AverageReturn>,
    /// Learns the distribution of returns from each observation, so that an agent can
    /// [bound its target](return_model). Needs a [`return_range`](Self::return_range).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub return_model: Option<ReturnModelConfig>,
    /// Top percents of episodes, [indicators](top_percent) of which replace the return in half of
    /// the contexts; empty: there are only returns.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub top_percents: Vec<f32>,
}

impl ConditionerConfig {
    /// Number of inputs that condition the model at each step: the return and the indicators.
    pub fn width(&self) -> usize {
        1 + self.top_percents.len()
    }

    /// Checks the values that the types do not.
    ///
    /// # Errors
    /// Names the first key with a value that is not valid for such observations.
    pub fn validate(&self, observations: &ObservationSpace) -> Result<(), ModelError> {
        if let Some([low, high]) = self.return_range
            && !(low < high && (high - low).is_finite())
        {
            let got = format!("[{low}, {high}]");
            return Err(config_error(
                "return_range",
                got,
                "must be two numbers, the smaller first",
            ));
        }
        if let Some(AverageReturn { horizon }) = self.average_return {
            check_size("average_return.horizon", horizon)?;
        }
        if let Some(returns) = &self.return_model {
            if self.return_range.is_none() {
                let expected = "must be set: a return model predicts returns in [-1, 1]";
                return Err(config_error("return_range", "none", expected));
            }
            returns.validate(observations)?;
        }
        top_percent::validate(&self.top_percents)
    }

    /// Contexts with the inputs that condition the model in training.
    #[must_use]
    pub fn condition(&self, contexts: Contexts) -> Contexts {
        let returns_to_go = self.returns(&contexts);
        Contexts { returns_to_go, ..contexts }
    }

    /// Raw returns-to-go of contexts in the unit of the configuration.
    fn returns(&self, contexts: &Contexts) -> Tensor<2> {
        let returns_to_go = contexts.returns_to_go.clone();
        let factors = contexts.stored.as_ref().and_then(|stored| stored.return_factors.clone());
        let returns = match (self.average_return, factors) {
            (Some(_), Some(factors)) => returns_to_go * factors,
            (Some(average), None) => average.of(returns_to_go, &contexts.timesteps),
            (None, _) => returns_to_go,
        };
        let Some([low, high]) = self.return_range.map(|range| range.map(f64::from)) else {
            return returns;
        };
        let place = (returns - low) * (2.0 / (high - low)) - 1.0;
        // Predicted returns end at 1, so training does not condition on more either.
        let has_ends = self.average_return.is_some() || self.return_model.is_some();
        if has_ends { place.clamp(-1.0, 1.0) } else { place }
    }
}

/// Conversion of an agent's history to the inputs that condition its model.
#[derive(Clone, Debug)]
pub struct Conditioner {
    config: ConditionerConfig,
    /// The quantile of predicted returns that bounds the target, and their model.
    bound: Option<(f64, ReturnModel)>,
    /// The index of a top percent in the configuration; it replaces the target.
    top_percent: Option<u8>,
}

impl Conditioner {
    /// A conditioner for acting as in `play`; `None` if the model, with this configuration, is not
    /// conditioned on returns.
    ///
    /// # Errors
    /// When the model was not trained with that top percent, or there is no return model for a
    /// quantile below 1.
    pub fn new(
        config: Option<&ConditionerConfig>,
        return_model: Option<&ReturnModel>,
        play: &Play,
    ) -> Result<Option<Self>, ModelError> {
        let mut bound = None;
        if play.acting.return_quantile != 1.0 {
            let quantile = f64::from(play.acting.return_quantile);
            let wrong = |expected| Err(config_error("return_quantile", quantile, expected));
            if !(quantile > 0.0 && quantile < 1.0) {
                return wrong("must be above 0 and below 1");
            }
            if config.is_none_or(|config| config.return_model.is_none()) {
                return wrong("must be none: the agent has no return model (model.return_head)");
            }
            let Some(returns) = return_model else {
                return wrong("must be none: the weights of the return model are missing");
            };
            bound = Some((quantile, returns.valid()));
        }
        let mut top_percent = None;
        if play.acting.top_percent != 0.0 {
            let known = config.map_or(&[][..], |config| &config.top_percents[..]);
            top_percent = Some(top_percent::index(play.acting.top_percent, known)?);
        }
        Ok(config.map(|config| Self { config: config.clone(), bound, top_percent }))
    }

    /// Contexts with the inputs that condition the model during acting.
    #[must_use]
    pub fn condition(&self, contexts: Contexts) -> Contexts {
        let [batch, _] = contexts.dims();
        let mut contexts = self.config.condition(contexts);
        if let Some((q, returns)) = &self.bound
            && let Observed::Vectors(observations) = &contexts.observations
        {
            // In this order, NaN quantiles (of broken weights) remain NaN.
            let quantiles = returns.quantiles(observations.clone(), *q);
            contexts.returns_to_go = quantiles.min_pair(contexts.returns_to_go);
        }
        if let Some(place) = self.top_percent {
            contexts.top_percent_idx = vec![Some(place); batch];
        }
        contexts
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::contexts::Acted;
    use burn::tensor::Device;

    /// In an episode of 10 steps, a target of 3 at step 0 is an average of 3 per episode, and a
    /// rest of 3 at step 5 is an average of 6. 9 and -1 are beyond the range.
    #[test]
    fn averages_and_returns_with_a_return_model_stay_in_the_range() {
        let device = Device::flex();
        let conditioned = |average_return, return_model| -> Vec<f32> {
            let return_range = Some([0.0, 8.0]);
            let config = ConditionerConfig {
                return_range,
                average_return,
                return_model,
                ..ConditionerConfig::default()
            };
            let contexts = Contexts {
                observations: Observed::Vectors(Tensor::zeros([2, 2, 17], &device)),
                returns_to_go: Tensor::from_data([[3.0f32, 3.0], [9.0, -1.0]], &device),
                actions: Acted::Continuous(Tensor::zeros([2, 2, 6], &device)),
                timesteps: vec![0, 5, 9, 5],
                n_padding: vec![0, 0],
                step_weights: Vec::new(),
                penalties: None,
                top_percent_idx: Vec::new(),
                stored: None,
            };
            config.condition(contexts).returns_to_go.into_data().iter().collect()
        };
        assert_eq!(conditioned(None, None), [-0.25, -0.25, 1.25, -1.25]);
        let average = Some(AverageReturn { horizon: 10 });
        assert_eq!(conditioned(average, None), [-0.25, 0.5, 1.0, -1.0]);
        // A return model does not predict returns beyond the range.
        let returns = Some(ReturnModelConfig::hl_gauss());
        assert_eq!(conditioned(None, returns), [-0.25, -0.25, 1.0, -1.0]);
    }
}
