//! [`Learner`]: a network in training.

use burn::{
    module::Module,
    tensor::{Gradients, Tensor},
};
use overtone_model::{
    ModelError, Sections,
    error::config_error,
    weights::{self, NamedTensors},
};

use crate::{
    algorithm::{Export, Exported, PartFigures, StepFigures, Stored},
    averages::Averages,
    config::TrainConfig,
    follow::Target,
    gradient::Gradient,
    optimizer::{AdamW, AdamWConfig, LearningRate},
};

/// Prefix of the last weights in a checkpoint's training state, if their averages act.
const STEPPED: &str = "weights";

/// One network and its optimizer. An algorithm with one loss has one learner. An algorithm with
/// critics has one for its actor and one for its critics.
#[derive(Clone, Debug)]
pub struct Learner<M> {
    /// The trained network.
    pub network: M,
    /// Its optimizer.
    pub optimizer: AdamW,
    /// The averages that act instead, if enabled.
    averages: Option<Averages<M>>,
    /// Whether the last step had a rate that was sent.
    is_sent: bool,
}

/// Result of one batch; each tensor is `[1]`.
pub struct BatchLoss {
    /// The loss to differentiate.
    pub total: Tensor<1>,
    /// The algorithm's figures, in the order of their names. The first is the mean loss of actions
    /// without the head's regulariser.
    pub figures: Vec<Tensor<1>>,
}

impl<M: Module> Learner<M> {
    /// A learner before its first step. `config` sets the optimizer, and whether the averages of
    /// the weights act.
    pub fn new(network: M, config: &TrainConfig) -> Self {
        let averages = config.average_weights.then(|| Averages::of(&network));
        Self { averages, ..Self::without_averages(network, config.optimizer) }
    }

    /// A learner for a network that does not act, before its first step.
    pub fn without_averages(network: M, optimizer: AdamWConfig) -> Self {
        Self { network, optimizer: AdamW::new(optimizer), averages: None, is_sent: false }
    }

    /// The acting network, without gradients.
    pub fn acting(&self) -> M {
        match &self.averages {
            Some(averages) => averages.network.clone(),
            None => self.network.valid(),
        }
    }

    /// Stores the result of a step; returns the step's gradient norm.
    fn moved(&mut self, (network, grad_norm): (M, Tensor<1>)) -> Tensor<1> {
        (self.network, self.is_sent) = (network, false);
        if let Some(averages) = &mut self.averages {
            averages.follow(&self.network, self.optimizer.n_steps());
        }
        grad_norm
    }
}

impl<M: Module> Learner<M> {
    /// One step down `gradients`; returns their norm before clipping, `[1]`. A step with a rate that was
    /// [sent](LearningRate::Sent) is not [counted](Self::counted) yet.
    pub fn step(
        &mut self,
        gradients: Gradients,
        learning_rate: impl Into<LearningRate>,
    ) -> Tensor<1> {
        let learning_rate = learning_rate.into();
        let is_sent = matches!(learning_rate, LearningRate::Sent(_));
        let stepped = self.optimizer.step(self.network.clone(), gradients, learning_rate);
        if !is_sent {
            return self.moved(stepped);
        }
        let (network, grad_norm) = stepped;
        (self.network, self.is_sent) = (network, true);
        grad_norm
    }

    /// One step down the gradient of `loss`, which the network computed.
    pub fn descend(
        &mut self,
        loss: BatchLoss,
        learning_rate: impl Into<LearningRate>,
    ) -> StepFigures {
        let grad_norm = self.step(loss.total.backward(), learning_rate);
        StepFigures {
            loss: loss.total.inner(),
            grad_norm,
            others: loss.figures.into_iter().map(Tensor::inner).collect(),
        }
    }

    /// After a step, moves `target` by the fraction `rate` of the distance to the `part` of the network
    /// that it follows: the whole network, or its first parameters.
    pub fn lead<P: Module>(&self, target: &mut Target<P>, rate: f64, part: impl Fn(&M) -> &P) {
        match self.sent_parameters() {
            Some(joined) => target.follow_joined(joined, rate),
            None => target.follow(part(&self.network), rate),
        }
    }

    /// The parameters in one tensor, if the last step had a rate that was [sent](LearningRate::Sent).
    pub fn sent_parameters(&self) -> Option<&Tensor<1>> {
        self.optimizer.joined_parameters().filter(|_| self.is_sent)
    }

    /// Sends the factors of the next step under this name.
    pub fn send_rate(&self, name: &'static str, learning_rate: f64, to: &mut Sections) {
        let factors = self.optimizer.factors(learning_rate);
        to.floats(name, &[3], factors.map(|factor| factor as f32));
    }

    /// Counts a step with a rate that was sent, and moves the averages after it.
    pub fn counted(&mut self) {
        self.optimizer.counted();
        if let Some(averages) = &mut self.averages {
            averages.follow_copied(&self.network, self.optimizer.n_steps());
        }
    }

    /// The gradient of `loss`, which the network computed for a part of a batch.
    pub fn part(&self, loss: BatchLoss) -> PartFigures {
        PartFigures {
            gradient: Gradient::of(&self.network, loss.total.backward()),
            loss: loss.total.inner(),
            others: loss.figures.into_iter().map(Tensor::inner).collect(),
        }
    }

    /// One step down `gradient`; returns its norm before clipping, `[1]`.
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
    /// The averages are initialised from the acting weights.
    fn begin(self, exported: &Exported) -> Result<Self, ModelError> {
        let network = weights::import(self.network, &exported.model)?;
        let averages = self.averages.map(|_| Averages::of(&network));
        Ok(Self { network, averages, ..self })
    }

    fn import(self, exported: &Exported, n_steps: u64) -> Result<Self, ModelError> {
        let Self { mut network, optimizer, averages, is_sent } = self.begin(exported)?;
        let stepped = weights::of_part(STEPPED, &exported.training);
        let key = "train.average_weights";
        match (&averages, stepped.is_empty()) {
            (Some(_), true) => {
                let expected = "false, because the last weights act in this checkpoint";
                return Err(config_error(key, true, expected));
            }
            (None, false) => {
                let expected = "true, because averages of the weights act in this checkpoint";
                return Err(config_error(key, false, expected));
            }
            (Some(_), false) => network = weights::import(network, &stepped)?,
            (None, true) => {}
        }
        let optimizer = optimizer.import(n_steps, &network, &exported.training)?;
        Ok(Self { network, optimizer, averages, is_sent })
    }

    fn n_parameters(&self) -> usize {
        self.network.num_params()
    }
}
