//! Several networks and learners in one checkpoint, each under its own name prefix.

use burn::{module::Module, tensor::TensorData};
use overtone_model::{
    ModelError,
    weights::{self, NamedTensors},
};
use overtone_train::{Export, Exported, Learner, Stored, Target};

/// Tensors with the name of their part as prefix.
#[derive(Clone, Debug, Default)]
pub struct Parts(NamedTensors);

/// Optimizer steps. They are fewer than the run's if a network is not trained at every step.
const N_STEPS: &str = "n_steps";

impl Parts {
    /// Adds the parameters of a module.
    #[must_use]
    pub fn with<M: Module>(self, part: &str, module: &M) -> Self {
        self.with_tensors(part, weights::export(module))
    }

    /// Adds the tensors of a learner that only training needs, and its step count.
    #[must_use]
    pub fn with_training<M: Module>(self, part: &str, learner: &Learner<M>) -> Self {
        let mut tensors = learner.export_training();
        tensors.insert(N_STEPS.into(), TensorData::from([learner.optimizer.n_steps() as f64]));
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

/// `target` with the parameters that were stored as `part`.
///
/// # Errors
/// When one is missing or has another shape.
pub fn target<M: Module>(
    target: Target<M>,
    part: &str,
    tensors: &NamedTensors,
) -> Result<Target<M>, ModelError> {
    weights::import(target.network, &weights::of_part(part, tensors)).map(Target::with)
}

/// `learner` with the weights `model`, and a step count of zero.
///
/// # Errors
/// When a weight is missing or has another shape.
pub fn begin<M: Module>(
    learner: Learner<M>,
    model: NamedTensors,
) -> Result<Learner<M>, ModelError> {
    learner.begin(&Exported { model, training: NamedTensors::new() })
}

/// `learner` with the weights `model`, and the rest as stored in `part`.
///
/// # Errors
/// When a weight or a moment is missing or has another shape.
pub fn learner<M: Module>(
    learner: Learner<M>,
    model: NamedTensors,
    part: &str,
    tensors: &NamedTensors,
) -> Result<Learner<M>, ModelError> {
    let training = weights::of_part(part, tensors);
    let missing = || ModelError::MissingTensor { name: format!("{part}.{N_STEPS}") };
    let n_steps = training.get(N_STEPS).and_then(|data| data.iter::<f64>().next());
    let n_steps = n_steps.ok_or_else(missing)? as u64;
    learner.import(&Exported { model, training }, n_steps)
}
