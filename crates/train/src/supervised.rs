//! [`Supervised`]: the state of an algorithm that descends one loss of one network.

use burn::{module::Module, tensor::Tensor};
use overtone_model::{
    Matrices, ModelError,
    weights::{self, NamedTensors},
};

use crate::{
    algorithm::{Export, Exported, PartFigures, StepFigures, Stored},
    gradient::Gradient,
    optimizer::AdamW,
};

/// One network and its optimizer.
#[derive(Clone, Debug)]
pub struct Supervised<M> {
    /// What is trained, and acts.
    pub model: M,
    /// Its moments.
    pub optimizer: AdamW,
}

/// What one batch gave; each tensor `[1]`.
pub struct BatchLoss {
    /// What is differentiated.
    pub total: Tensor<1>,
    /// What the algorithm's figures name, in that order; the first is the mean loss of actions
    /// without the head's regulariser.
    pub figures: Vec<Tensor<1>>,
}

impl<M: Module + Matrices> Supervised<M> {
    /// One step down the gradient of `loss`, which the model gave.
    pub fn descend(&mut self, loss: BatchLoss, learning_rate: f64) -> StepFigures {
        let gradients = loss.total.backward();
        let (model, grad_norm) = self.optimizer.step(self.model.clone(), gradients, learning_rate);
        self.model = model;
        StepFigures {
            loss: loss.total.inner(),
            grad_norm,
            others: loss.figures.into_iter().map(Tensor::inner).collect(),
        }
    }

    /// The gradient of `loss`, which the model gave for a part of a batch.
    pub fn part(&self, loss: BatchLoss) -> PartFigures {
        PartFigures {
            gradient: Gradient::of(&self.model, loss.total.backward()),
            loss: loss.total.inner(),
            others: loss.figures.into_iter().map(Tensor::inner).collect(),
        }
    }

    /// One step down `gradient`; gives its norm before clipping.
    pub fn descend_along(&mut self, gradient: Gradient, learning_rate: f64) -> Tensor<1> {
        let model = self.model.clone();
        let (model, grad_norm) = self.optimizer.step_along(model, gradient, learning_rate);
        self.model = model;
        grad_norm
    }
}

impl<M: Module> Export for Supervised<M> {
    fn export_model(&self) -> NamedTensors {
        weights::export(&self.model)
    }

    fn export_training(&self) -> NamedTensors {
        self.optimizer.export()
    }
}

impl<M: Module> Stored for Supervised<M> {
    fn begin(self, exported: &Exported) -> Result<Self, ModelError> {
        Ok(Self { model: weights::import(self.model, &exported.model)?, ..self })
    }

    fn import(self, exported: &Exported, n_steps: u64) -> Result<Self, ModelError> {
        let Self { model, optimizer } = self.begin(exported)?;
        let optimizer = optimizer.import(n_steps, &model, &exported.training)?;
        Ok(Self { model, optimizer })
    }

    fn n_parameters(&self) -> usize {
        self.model.num_params()
    }
}
