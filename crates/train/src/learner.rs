//! [`Learner`]: a network that learns.

use burn::{
    module::Module,
    tensor::{Gradients, Tensor},
};
use overtone_model::{
    Matrices, ModelError,
    error::config_error,
    weights::{self, NamedTensors},
};

use crate::{
    TrainConfig,
    algorithm::{Export, Exported, PartFigures, StepFigures, Stored},
    averages::Averages,
    gradient::Gradient,
    optimizer::{AdamW, AdamWConfig},
};

/// The weights in a checkpoint's training state, where their averages are what acts.
const STEPPED: &str = "weights";

/// One network and its optimizer. An algorithm with one loss has one, an algorithm with critics one
/// for its actor and one for its critics.
#[derive(Clone, Debug)]
pub struct Learner<M> {
    /// What is trained.
    pub network: M,
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

impl<M: Module> Learner<M> {
    /// Before the first step; `config` says how it is taken, and whether the averages of the
    /// weights act in their place.
    pub fn new(network: M, config: &TrainConfig) -> Self {
        let averages = config.average_weights.then(|| Averages::of(&network));
        Self { averages, ..Self::without_averages(network, config.optimizer) }
    }

    /// Before the first step of a network that does not act.
    pub fn without_averages(network: M, optimizer: AdamWConfig) -> Self {
        Self { network, optimizer: AdamW::new(optimizer), averages: None }
    }

    /// What acts, without gradients.
    pub fn acting(&self) -> M {
        match &self.averages {
            Some(averages) => averages.network.clone(),
            None => self.network.valid(),
        }
    }

    /// Goes on as a step left the network; gives the step's gradient norm.
    fn moved(&mut self, (network, grad_norm): (M, Tensor<1>)) -> Tensor<1> {
        self.network = network;
        if let Some(averages) = &mut self.averages {
            averages.follow(&self.network, self.optimizer.n_steps());
        }
        grad_norm
    }
}

impl<M: Module + Matrices> Learner<M> {
    /// One step down `gradients`; gives their norm before clipping, `[1]`.
    pub fn step(&mut self, gradients: Gradients, learning_rate: f64) -> Tensor<1> {
        let stepped = self.optimizer.step(self.network.clone(), gradients, learning_rate);
        self.moved(stepped)
    }

    /// One step down the gradient of `loss`, which the network gave.
    pub fn descend(&mut self, loss: BatchLoss, learning_rate: f64) -> StepFigures {
        let grad_norm = self.step(loss.total.backward(), learning_rate);
        StepFigures {
            loss: loss.total.inner(),
            grad_norm,
            others: loss.figures.into_iter().map(Tensor::inner).collect(),
        }
    }

    /// The gradient of `loss`, which the network gave for a part of a batch.
    pub fn part(&self, loss: BatchLoss) -> PartFigures {
        PartFigures {
            gradient: Gradient::of(&self.network, loss.total.backward()),
            loss: loss.total.inner(),
            others: loss.figures.into_iter().map(Tensor::inner).collect(),
        }
    }

    /// One step down `gradient`; gives its norm before clipping, `[1]`.
    pub fn descend_along(&mut self, gradient: Gradient, learning_rate: f64) -> Tensor<1> {
        let stepped = self.optimizer.step_along(self.network.clone(), gradient, learning_rate);
        self.moved(stepped)
    }
}

impl<M: Module> Export for Learner<M> {
    fn export_model(&self) -> NamedTensors {
        weights::export(&self.acting())
    }

    fn export_training(&self) -> NamedTensors {
        let mut tensors = self.optimizer.export();
        if self.averages.is_some() {
            tensors.extend(weights::as_part(STEPPED, weights::export(&self.network)));
        }
        tensors
    }
}

impl<M: Module> Stored for Learner<M> {
    /// The averages begin with what acted.
    fn begin(self, exported: &Exported) -> Result<Self, ModelError> {
        let network = weights::import(self.network, &exported.model)?;
        let averages = self.averages.map(|_| Averages::of(&network));
        Ok(Self { network, averages, ..self })
    }

    fn import(self, exported: &Exported, n_steps: u64) -> Result<Self, ModelError> {
        let Self { mut network, optimizer, averages } = self.begin(exported)?;
        let stepped = weights::of_part(STEPPED, &exported.training);
        let key = "train.average_weights";
        match (&averages, stepped.is_empty()) {
            (Some(_), true) => {
                let expected = "false: what acts in this checkpoint are the last weights";
                return Err(config_error(key, true, expected));
            }
            (None, false) => {
                let expected = "true: what acts in this checkpoint are averages of the weights";
                return Err(config_error(key, false, expected));
            }
            (Some(_), false) => network = weights::import(network, &stepped)?,
            (None, true) => {}
        }
        let optimizer = optimizer.import(n_steps, &network, &exported.training)?;
        Ok(Self { network, optimizer, averages })
    }

    fn n_parameters(&self) -> usize {
        self.network.num_params()
    }
}
