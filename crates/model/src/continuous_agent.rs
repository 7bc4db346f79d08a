//! A model of vectors and real-valued actions, whichever: what training and playing ask of one.

use burn::{
    module::Module,
    tensor::{Device, Tensor},
};
use overtone_core::seed::Generator;
use overtone_kernels::Form;
use serde::{Deserialize, Serialize};

use crate::{
    continuous_config::ContinuousModelConfig,
    continuous_decision_transformer::{
        ContinuousDecisionTransformer, ContinuousInputs, ContinuousLoss,
    },
    continuous_history::{ContextShape, ContinuousHistory},
    error::ModelError,
    head::ContinuousHead,
    mlp_bc::{MlpBc, MlpConfig},
    transformer::DropoutSeed,
};

/// Which model, with its own options.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case", deny_unknown_fields)]
pub enum ContinuousAgentConfig {
    /// See [`ContinuousDecisionTransformer`].
    Transformer(ContinuousModelConfig),
    /// See [`MlpBc`].
    Mlp(MlpConfig),
}

impl ContinuousAgentConfig {
    /// Checks what the types cannot.
    ///
    /// # Errors
    /// Names the first key whose value describes no model.
    pub fn validate(&self) -> Result<(), ModelError> {
        match self {
            Self::Transformer(config) => config.validate(),
            Self::Mlp(config) => config.validate(),
        }
    }

    /// What the model's contexts are like.
    pub fn context_shape(&self) -> ContextShape {
        match self {
            Self::Transformer(config) => config.context_shape(),
            Self::Mlp(config) => config.context_shape(),
        }
    }
}

/// A model of vectors and real-valued actions. Its [weights](crate::weights) have the names
/// that they have in the model itself.
#[derive(Module, Debug)]
#[allow(clippy::large_enum_variant)] // one model per run
pub enum ContinuousAgent {
    /// See [`ContinuousDecisionTransformer`].
    Transformer(ContinuousDecisionTransformer),
    /// See [`MlpBc`].
    Mlp(MlpBc),
}

impl ContinuousAgent {
    /// A new model, its weights drawn from `generator`.
    ///
    /// # Errors
    /// When `config` describes no model.
    pub fn init(
        config: &ContinuousAgentConfig,
        device: &Device,
        generator: &mut Generator,
    ) -> Result<Self, ModelError> {
        Ok(match config {
            ContinuousAgentConfig::Transformer(config) => {
                Self::Transformer(ContinuousDecisionTransformer::init(config, device, generator)?)
            }
            ContinuousAgentConfig::Mlp(config) => {
                Self::Mlp(MlpBc::init(config, device, generator)?)
            }
        })
    }

    /// Mean loss of logged actions, plus the head's regulariser: the transformer's at every
    /// real timestep, the perceptron's at the newest of each context.
    pub fn loss(&self, inputs: &ContinuousInputs, dropout: Option<DropoutSeed>) -> ContinuousLoss {
        match self {
            Self::Transformer(model) => model.loss(inputs, dropout),
            Self::Mlp(model) => model.loss(inputs, dropout),
        }
    }

    /// What the [head](Self::head) reads to choose each agent's next action, without dropout.
    ///
    /// # Shapes
    /// - result: `[agents, width]`
    ///
    /// # Errors
    /// When a history does not fit the model.
    pub fn current(&self, histories: &[ContinuousHistory<'_>]) -> Result<Tensor<2>, ModelError> {
        match self {
            Self::Transformer(model) => model.current(histories),
            Self::Mlp(model) => model.current(histories),
        }
    }

    /// What makes actions of it.
    pub fn head(&self) -> &ContinuousHead {
        match self {
            Self::Transformer(model) => &model.head,
            Self::Mlp(model) => &model.head,
        }
    }

    /// What the model was built from.
    pub fn config(&self) -> ContinuousAgentConfig {
        match self {
            Self::Transformer(model) => ContinuousAgentConfig::Transformer(model.config.clone()),
            Self::Mlp(model) => ContinuousAgentConfig::Mlp(model.config.clone()),
        }
    }

    /// What its contexts are like.
    pub fn context_shape(&self) -> ContextShape {
        match self {
            Self::Transformer(model) => model.config.context_shape(),
            Self::Mlp(model) => model.config.context_shape(),
        }
    }

    /// Timesteps the model sees.
    pub fn context_length(&self) -> usize {
        self.context_shape().context_length
    }

    /// The same with its operations in this form.
    pub fn with_form(self, form: Form) -> Self {
        match self {
            Self::Transformer(model) => {
                Self::Transformer(ContinuousDecisionTransformer { form, ..model })
            }
            Self::Mlp(model) => Self::Mlp(MlpBc { form, ..model }),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{tokens::Steps, weights};
    use burn::tensor::TensorData;
    use overtone_core::seed;

    fn configs() -> [ContinuousAgentConfig; 2] {
        let transformer =
            ContinuousModelConfig { d_model: 8, ..ContinuousModelConfig::gym(3, 2, 9) };
        let mlp = MlpConfig { width: 8, ..MlpConfig::gym(3, 2) };
        [ContinuousAgentConfig::Transformer(transformer), ContinuousAgentConfig::Mlp(mlp)]
    }

    fn model(config: &ContinuousAgentConfig, seed: u64) -> ContinuousAgent {
        let mut generator = seed::generator(seed, "init");
        ContinuousAgent::init(config, &Device::flex(), &mut generator).unwrap()
    }

    #[test]
    fn configurations_survive_being_stored() {
        for (config, kind) in configs().into_iter().zip(["transformer", "mlp"]) {
            assert!(config.validate().is_ok());
            let stored = serde_json::to_string(&config).unwrap();
            assert!(stored.starts_with(&format!(r#"{{"kind":"{kind}","#)), "{stored}");
            assert_eq!(serde_json::from_str::<ContinuousAgentConfig>(&stored).unwrap(), config);
            let unknown = stored.replace("dropout", "drop_out");
            let error = serde_json::from_str::<ContinuousAgentConfig>(&unknown).unwrap_err();
            assert!(error.to_string().contains("drop_out"), "{error}");
            assert_eq!(model(&config, 1).config(), config);
            assert_eq!(model(&config, 1).context_length(), 20);
        }
    }

    #[test]
    fn weights_have_the_model_s_own_names_and_come_back() {
        for (config, name) in configs().iter().zip(["blocks.2.qkv_weight", "layers.2.weight"]) {
            let tensors = weights::export(&model(config, 1));
            assert!(tensors.contains_key(name), "{:?}", tensors.keys());
            assert!(tensors.contains_key("head.bias"), "{:?}", tensors.keys());
            let n: usize = tensors.values().map(TensorData::num_elements).sum();
            assert_eq!(weights::n_parameters(&model(config, 1)), n);
            let other = model(config, 2);
            assert_ne!(weights::export(&other), tensors);
            assert_eq!(weights::export(&weights::import(other, &tensors).unwrap()), tensors);
        }
    }

    /// Through the enum a model says what it says itself, in each form.
    #[test]
    fn either_model_answers_as_itself() {
        let history = ContinuousHistory {
            observations: &[0.3, -1.0, 0.5, 0.8, 0.1, -0.2],
            actions: &[0.4, -0.4],
            returns_to_go: &[2.0, 1.5],
            timestep: 1,
        };
        let inputs = |config: &ContinuousAgentConfig| {
            let options = (&Device::flex(), burn::tensor::DType::F32);
            ContinuousInputs::of_histories(&[history], config.context_shape(), options).unwrap()
        };
        let seed = Some(DropoutSeed(3));
        for config in configs() {
            let agent = model(&config, 1);
            let inputs = inputs(&config);
            let (hidden, loss) = match &agent {
                ContinuousAgent::Transformer(model) => {
                    let hidden = model.hidden(&inputs, Steps::Newest, None);
                    (hidden.reshape([1, 8]), model.loss(&inputs, seed))
                }
                ContinuousAgent::Mlp(model) => {
                    (model.hidden(&inputs, None), model.loss(&inputs, seed))
                }
            };
            assert_eq!(agent.current(&[history]).unwrap().into_data(), hidden.into_data());
            let got: f64 = agent.loss(&inputs, seed).total.into_scalar();
            assert_eq!(got, loss.total.into_scalar::<f64>());
            let plain = agent.with_form(Form::Reference).loss(&inputs, seed).total;
            assert!((got - plain.into_scalar::<f64>()).abs() < 1e-6);
        }
    }
}
