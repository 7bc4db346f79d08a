//! [`Supervised`]: the state of an algorithm that descends one loss of one network.

use burn::{module::Module, tensor::Tensor};
use overtone_model::{
    Matrices, ModelError,
    weights::{self, NamedTensors},
};

use crate::{
    TrainConfig,
    algorithm::{Export, Exported, PartFigures, StepFigures, Stored},
    averages::Averages,
    gradient::Gradient,
    optimizer::AdamW,
};

/// The weights in a checkpoint's training state, where their averages are what plays.
const STEPPED: &str = "weights";

/// One network and its optimizer.
#[derive(Clone, Debug)]
pub struct Supervised<M> {
    /// What is trained.
    pub model: M,
    /// Its moments.
    pub optimizer: AdamW,
    /// What acts in its place, if anything does.
    averages: Option<Averages<M>>,
}

/// What one batch gave; each tensor `[1]`.
pub struct BatchLoss {
    /// What is differentiated.
    pub total: Tensor<1>,
    /// What the algorithm's figures name, in that order; the first is the mean loss of actions
    /// without the head's regulariser.
    pub figures: Vec<Tensor<1>>,
}

impl<M: Module> Supervised<M> {
    /// Before the first step; `config` says how it is taken, and whether the averages of the
    /// weights act in their place.
    pub fn new(model: M, config: &TrainConfig) -> Self {
        let averages = config.average_weights.then(|| Averages::of(&model));
        Self { model, optimizer: AdamW::new(config.optimizer), averages }
    }

    /// What acts, without gradients.
    pub fn acting(&self) -> M {
        match &self.averages {
            Some(averages) => averages.network.clone(),
            None => self.model.valid(),
        }
    }

    /// After a step.
    fn follow(&mut self) {
        if let Some(averages) = &mut self.averages {
            averages.follow(&self.model, self.optimizer.n_steps());
        }
    }
}

impl<M: Module + Matrices> Supervised<M> {
    /// One step down the gradient of `loss`, which the model gave.
    pub fn descend(&mut self, loss: BatchLoss, learning_rate: f64) -> StepFigures {
        let gradients = loss.total.backward();
        let (model, grad_norm) = self.optimizer.step(self.model.clone(), gradients, learning_rate);
        self.model = model;
        self.follow();
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
        self.follow();
        grad_norm
    }
}

impl<M: Module> Export for Supervised<M> {
    fn export_model(&self) -> NamedTensors {
        weights::export(&self.acting())
    }

    fn export_training(&self) -> NamedTensors {
        let mut tensors = self.optimizer.export();
        if self.averages.is_some() {
            tensors.extend(weights::as_part(STEPPED, weights::export(&self.model)));
        }
        tensors
    }
}

impl<M: Module> Stored for Supervised<M> {
    /// The averages begin with what acted.
    fn begin(self, exported: &Exported) -> Result<Self, ModelError> {
        let model = weights::import(self.model, &exported.model)?;
        let averages = self.averages.map(|_| Averages::of(&model));
        Ok(Self { model, averages, ..self })
    }

    fn import(self, exported: &Exported, n_steps: u64) -> Result<Self, ModelError> {
        let Self { mut model, optimizer, averages } = self.begin(exported)?;
        if averages.is_some() {
            model = weights::import(model, &weights::of_part(STEPPED, &exported.training))?;
        }
        let optimizer = optimizer.import(n_steps, &model, &exported.training)?;
        Ok(Self { model, optimizer, averages })
    }

    fn n_parameters(&self) -> usize {
        self.model.num_params()
    }
}
