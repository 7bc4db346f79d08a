//! Training on vectors and real-valued actions: [`ContinuousLearner`].

use std::sync::Arc;

use burn::{
    module::Module,
    tensor::{Device, Tensor, TensorData},
};
use overtone_core::{ActionSpace, Normalization, ObservationSpace, Simulation, seed::Generator};
use overtone_data::{
    Acted, Batch, BatchActions, BatchObservations, BatchOptions, DataError, Dataset, Loader,
    LoaderConfig, Observed, Part, WindowSampler,
};
use overtone_model::{Contexts, Init, Model, ModelConfig};

use crate::{
    agent::{Agent, ContinuousTaskAgent},
    algorithm::{Algorithm, BatchFacts, DataFacts, StepAt, StepFigures},
    config::TrainConfig,
    error::TrainError,
    optimizer::AdamW,
    supervised::{BatchLoss, Supervised},
};

/// A model of vectors that learns a task.
#[derive(Clone, Debug)]
pub struct ContinuousLearner {
    /// The model.
    pub model: ModelConfig,
    /// The data.
    pub dataset: Arc<Dataset>,
    /// The environment, such as `Hopper`.
    pub env: String,
    /// Which of its datasets, such as `medium`.
    pub dataset_name: String,
    /// What returns-to-go are divided by.
    pub return_scale: f32,
    /// Whether all reward comes with an episode's last step.
    pub delayed_reward: bool,
    /// How the data was recorded, where it is known.
    pub recording: Option<Simulation>,
}

impl ContinuousLearner {
    fn normalization(&self) -> Normalization {
        let known = self.dataset.normalization().cloned();
        known.unwrap_or_else(|| Normalization::identity(0))
    }

    fn spaces(&self) -> (ObservationSpace, ActionSpace) {
        let width = match self.dataset.observations() {
            Observed::Vectors { width, .. } => *width,
            Observed::Frames(_) => 0,
        };
        let actions = ActionSpace::unit(self.dataset.actions().size());
        (ObservationSpace::Vectors { width }, actions)
    }
}

impl Algorithm for ContinuousLearner {
    type State = Supervised<Model>;
    type Batch = Batch;

    /// In the head's own unit: squared error, averaged over an action's numbers, or nats,
    /// added up over them.
    const FIGURES: &'static [&'static str] = &["action_loss"];

    fn agent(&self) -> Agent {
        let (observations, actions) = self.spaces();
        Agent::Continuous(ContinuousTaskAgent {
            env: self.env.clone(),
            dataset: self.dataset_name.clone(),
            observations,
            actions,
            model: self.model.clone(),
            normalization: self.normalization(),
            return_scale: self.return_scale,
            delayed_reward: self.delayed_reward,
            recording: self.recording.clone(),
        })
    }

    fn context_length(&self) -> usize {
        self.model.context_length()
    }

    fn data(&self) -> DataFacts {
        let mut episode_returns = self.dataset.episode_returns();
        episode_returns.sort_by(f32::total_cmp);
        DataFacts {
            hash: self.dataset.content_hash().to_owned(),
            kind: self.dataset.origin().kind.to_string(),
            episode_returns,
        }
    }

    fn init(
        &self,
        config: &TrainConfig,
        device: &Device,
        generator: &mut Generator,
    ) -> Result<Self::State, TrainError> {
        let (observations, actions) = self.spaces();
        let init = &mut Init::drawn(device, generator);
        let model = Model::init(&self.model, &observations, &actions, init)?;
        let model = model.with_form(config.precision.form());
        Ok(Supervised { model, optimizer: AdamW::new(config.optimizer) })
    }

    fn prepare(&mut self, _config: &TrainConfig, _device: &Device) -> Result<(), TrainError> {
        Ok(())
    }

    /// The perceptron learns the newest action alone.
    fn labels_per_context(&self) -> usize {
        self.model.labels_per_context()
    }

    fn sampler(
        &self,
        part: Part,
        config: &TrainConfig,
        run_seed: u64,
    ) -> Result<WindowSampler, DataError> {
        let context_length = self.context_length();
        self.dataset.sampler(part, config.held_out, config.sampling, context_length, run_seed)
    }

    fn load(&self, sampler: WindowSampler, batch_size: usize) -> Result<Loader<Batch>, DataError> {
        let contents = BatchOptions { return_scale: self.return_scale, ..Default::default() };
        let config = LoaderConfig { contents, ..LoaderConfig::new(batch_size) };
        Loader::new(self.dataset.clone(), sampler, config)
    }

    fn facts(&self, batch: &Batch) -> BatchFacts {
        let labels = |n_real: i32| (n_real as u64).min(self.labels_per_context() as u64);
        BatchFacts {
            n_labels: batch.n_real.iter().map(|&n_real| labels(n_real)).sum(),
            n_drawn: batch.drawn,
            indices: batch.last_indices.clone(),
        }
    }

    /// It is in memory, where nobody else changes it.
    fn check_data(&self) -> Result<(), DataError> {
        Ok(())
    }

    fn step(&self, state: &mut Self::State, batch: &mut Batch, at: &StepAt<'_>) -> StepFigures {
        let loss = state.model.loss(&contexts(batch, at.device), Some(at.seed));
        let loss = BatchLoss { total: loss.total, figures: vec![loss.action] };
        state.descend(loss, at.learning_rate)
    }

    fn held_out_loss(&self, state: &Self::State, batch: &mut Batch, device: &Device) -> Tensor<1> {
        state.model.valid().loss(&contexts(batch, device), None).action
    }

    fn memory(&self, _device: &Device) -> String {
        let observed = match self.dataset.observations() {
            Observed::Vectors { width, .. } => *width,
            Observed::Frames(_) => 0,
        };
        let acted = match self.dataset.actions() {
            Acted::Continuous { width, .. } => *width,
            Acted::Discrete { .. } => 1,
        };
        let numbers = observed + acted + 2;
        let mb = (self.dataset.n_transitions() * numbers * 4) as f64 / 1e6;
        format!("data: {mb:.1} MB, in memory")
    }
}

/// A batch on the device.
fn contexts(batch: &Batch, device: &Device) -> Contexts {
    let (rows, time) = (batch.batch, batch.context_length);
    let (BatchObservations::Vectors(observations), BatchActions::Continuous(actions)) =
        (&batch.observations, &batch.actions)
    else {
        panic!("a robot's batch is of vectors");
    };
    let [wide, narrow] = [observations, actions].map(|column| column.len() / (rows * time).max(1));
    let observations = TensorData::new(observations.clone(), [rows, time, wide]);
    let actions = TensorData::new(actions.clone(), [rows, time, narrow]);
    Contexts {
        observations: overtone_model::Observed::Vectors(Tensor::from_data(observations, device)),
        actions: overtone_model::Acted::Continuous(Tensor::from_data(actions, device)),
        returns_to_go: Tensor::from_data(
            TensorData::new(batch.returns_to_go.clone(), [rows, time]),
            device,
        ),
        timesteps: batch.timesteps.clone(),
        n_padding: batch.n_real.iter().map(|&n| time - n as usize).collect(),
    }
}
