//! Several networks and optimizers among one checkpoint's tensors, each under a name of its own.

use burn::{module::Module, tensor::TensorData};
use overtone_model::{
    ModelError,
    weights::{self, NamedTensors},
};
use overtone_train::AdamW;

/// Tensors whose names begin with those of parts.
#[derive(Clone, Debug, Default)]
pub struct Parts(NamedTensors);

/// Optimizer steps, which are fewer than a run's where a network is not trained at every step.
const N_STEPS: &str = "n_steps";

impl Parts {
    /// With the parameters of a module.
    #[must_use]
    pub fn with<M: Module>(self, part: &str, module: &M) -> Self {
        self.with_tensors(part, weights::export(module))
    }

    /// With the moments and the step count of an optimizer.
    #[must_use]
    pub fn with_optimizer(self, part: &str, optimizer: &AdamW) -> Self {
        let mut tensors = optimizer.export();
        tensors.insert(N_STEPS.into(), TensorData::from([optimizer.n_steps() as f64]));
        self.with_tensors(part, tensors)
    }

    fn with_tensors(mut self, part: &str, tensors: NamedTensors) -> Self {
        self.0.extend(weights::as_part(part, tensors));
        self
    }

    /// All of them.
    pub fn into_tensors(self) -> NamedTensors {
        self.0
    }
}

/// `module` with the parameters that were stored as `part`.
///
/// # Errors
/// When one is missing or has another shape.
pub fn module<M: Module>(module: M, part: &str, tensors: &NamedTensors) -> Result<M, ModelError> {
    weights::import(module, &weights::of_part(part, tensors))
}

/// The optimizer of `module` that was stored as `part`.
///
/// # Errors
/// When a moment is missing or has another length.
pub fn optimizer<M: Module>(
    optimizer: AdamW,
    part: &str,
    module: &M,
    tensors: &NamedTensors,
) -> Result<AdamW, ModelError> {
    let own = weights::of_part(part, tensors);
    let missing = || ModelError::MissingTensor { name: format!("{part}.{N_STEPS}") };
    let n_steps = own.get(N_STEPS).and_then(|data| data.iter::<f64>().next());
    optimizer.import(n_steps.ok_or_else(missing)? as u64, module, &own)
}
