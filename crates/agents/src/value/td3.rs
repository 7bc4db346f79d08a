//! [`Td3`]: the step of algorithms that train like TD3 (Fujimoto et al. 2018) and differ in their
//! losses.
//!
//! Critics take a step on every batch. At every [`actor_every`](Td3Keys::actor_every)-th batch, the
//! actor takes a step after them, and the targets move.

use burn::tensor::{Device, Tensor, TensorData};
use overtone_core::{ActionSpace, ObservationSpace, Task, seed::Generator};
use overtone_data::{Batch, Lookahead};
use overtone_model::{Inputs, ModelError, Sections, error::config_error, init::Init};
use overtone_train::{
    Algorithm, Job, LearningRate, Recorded, Shortened, StepAt, StepFigures, TrainConfig,
    TrainError, Trainer, Training, TrainingData,
};

use crate::{acting::ActingNetwork, options::AlgorithmOptions};

use super::{
    actor_critic::{ActorCritic, noise},
    keys::{check_fractions, check_n_steps, check_positive},
    network::{self, Hidden},
    steps::{Rescaling, Steps, nothing_learned, where_finite},
    twin::{concat, squared_errors},
};

/// Options of an algorithm that trains like TD3.
pub trait Td3Options: AlgorithmOptions + Clone {
    /// The name after `algorithm=`, and the name of the options' section.
    const NAME: &'static str;

    /// The options that these algorithms share.
    fn keys(&self) -> Td3Keys;

    /// The penalty on the next values for `next_actions`, `[rows, 1]`; `None` by default.
    fn penalty(&self, _next_actions: Tensor<2>, _steps: &Steps) -> Option<Tensor<2>> {
        None
    }

    /// The critics' loss `L_Q` with [noise](ActorCritic::next_actions) for every next action, and
    /// the mean of `Q_1(s, a)`; each `[1]`.
    fn critic_loss(&self, state: &ActorCritic, steps: &Steps, noise: Tensor<2>) -> [Tensor<1>; 2] {
        let Td3Keys { gamma, noise_clip, .. } = self.keys();
        let next = steps.next_observations.clone();
        let next_actions = state.next_actions(next.clone(), noise, noise_clip);
        let penalty = self.penalty(next_actions.clone(), steps);
        let mut next_values = state.target_critics.network.smaller(concat(next, next_actions));
        if let Some(penalty) = penalty {
            next_values = next_values - penalty;
        }
        let returns = steps.returns(next_values, gamma);
        let inputs = concat(steps.observations.clone(), steps.actions.clone());
        let values = state.critics.network.values(inputs);
        let loss = squared_errors(&values, returns, steps);
        let [first, _] = values;
        [loss, steps.mean(first)]
    }

    /// The actor's loss, `[1]`, in which the critics are constants.
    fn actor_loss(&self, state: &ActorCritic, steps: &Steps) -> Tensor<1>;
}

/// Options that these algorithms share.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Td3Keys {
    /// γ, the discount.
    pub gamma: f64,
    /// The most steps whose rewards a target has.
    pub n_steps: usize,
    /// τ: step size of the targets when they move.
    pub target_rate: f64,
    /// σ: standard deviation of the noise on the target actor's actions.
    pub target_noise: f64,
    /// c: the largest noise.
    pub noise_clip: f64,
    /// Steps of the critics per step of the actor and the targets.
    pub actor_every: u64,
    /// Hidden layers of the actor.
    pub actor: Hidden,
    /// Hidden layers of each critic.
    pub critic: Hidden,
    /// Whether the networks' observations are normalized.
    pub is_normalized: bool,
}

impl Td3Keys {
    /// # Errors
    /// Names the first key of `section` with an invalid value.
    pub fn check(&self, section: &str) -> Result<(), ModelError> {
        self.actor.check(section)?;
        self.critic.check(section)?;
        let positive = [("target_noise", self.target_noise), ("noise_clip", self.noise_clip)];
        check_positive(section, &positive)?;
        check_fractions(section, &[("gamma", self.gamma), ("target_rate", self.target_rate)])?;
        check_n_steps(section, self.n_steps)?;
        match self.actor_every {
            0 => Err(config_error(format!("{section}.actor_every"), 0, "must be at least 1")),
            _ => Ok(()),
        }
    }

    /// The actor.
    pub fn network(&self) -> ActingNetwork<'static> {
        let Self { actor: hidden, is_normalized, .. } = *self;
        ActingNetwork::Tanh { prefix: "", hidden, is_normalized, chunk_size: 1 }
    }
}

/// Learning of an actor and critics from recorded steps.
#[derive(Clone, Debug)]
pub struct Td3<O> {
    /// Its options.
    pub config: O,
    /// The form of the observations.
    pub observations: ObservationSpace,
    /// The form of the actions.
    pub actions: ActionSpace,
    /// [`Td3Keys::actor_every`], at most a tenth of the run.
    actor_every: u64,
}

impl<O: Td3Options> Td3<O> {
    /// The algorithm for tasks with these spaces.
    pub fn new(config: O, observations: &ObservationSpace, actions: &ActionSpace) -> Self {
        let (observations, actions) = (observations.clone(), actions.clone());
        let actor_every = config.keys().actor_every;
        Self { config, observations, actions, actor_every }
    }

    /// Training step number `step`, counted from 0.
    pub fn learn(
        &self,
        state: &mut ActorCritic,
        steps: &Steps,
        noise: Tensor<2>,
        (step, learning_rate): (u64, f64),
    ) -> StepFigures {
        let actor_rate = self.trains_actor(step).then_some(learning_rate);
        self.descend(state, steps, noise, (learning_rate, actor_rate))
    }

    /// A step with these learning rates of the critics and of the actor; `None`: only critics learn.
    fn descend(
        &self,
        state: &mut ActorCritic,
        steps: &Steps,
        noise: Tensor<2>,
        (rate, actor_rate): (impl Into<LearningRate>, Option<impl Into<LearningRate>>),
    ) -> StepFigures {
        let [critic_loss, value] = self.config.critic_loss(state, steps, noise);
        let mut grad_norm = state.critics.step(critic_loss.backward(), rate);
        let critic_loss = critic_loss.inner();
        let actor_loss = match actor_rate {
            Some(rate) => {
                let loss = self.config.actor_loss(state, steps);
                let norm = state.actor.step(loss.backward(), rate);
                state.follow(self.config.keys().target_rate);
                let loss = loss.inner();
                grad_norm = where_finite(grad_norm, [loss.clone(), norm]);
                loss
            }
            None => critic_loss.full_like(f32::NAN),
        };
        StepFigures { loss: critic_loss, grad_norm, others: vec![actor_loss, value.inner()] }
    }

    /// Whether the actor and the targets move at this step, counted from 0.
    fn trains_actor(&self, step: u64) -> bool {
        (step + 1).is_multiple_of(self.actor_every)
    }

    /// Training of `config` on `task`.
    ///
    /// # Errors
    /// When the options are not valid for the task, or the checkpoint belongs to another run.
    pub fn trainer(config: &O, task: &Task, job: Job) -> Result<Box<dyn Training>, TrainError>
    where
        O: 'static,
    {
        let algorithm = Self::new(config.clone(), &task.observations, &task.actions);
        Ok(Box::new(Trainer::new(algorithm, job)?))
    }

    fn rescaling(&self, data: &TrainingData) -> Rescaling {
        Rescaling::new(data.dataset().normalization(), self.config.keys().is_normalized)
    }
}

impl<O: Td3Options> Algorithm for Td3<O> {
    type State = ActorCritic;

    /// The actor's loss, at the steps in which it learns, and the mean value of the recorded
    /// actions. The critics' loss is the main loss.
    fn figures(&self) -> &'static [&'static str] {
        &["actor_loss", "value"]
    }

    fn lookahead(&self) -> Option<Lookahead> {
        let Td3Keys { n_steps, gamma, .. } = self.config.keys();
        Some(Lookahead { n_steps, gamma, chunk_size: 1 })
    }

    fn shorten(&mut self, n_updates: u64) -> Vec<Shortened> {
        let key = format!("{}.actor_every", O::NAME);
        Shortened::limit(key, &mut self.actor_every, n_updates).into_iter().collect()
    }

    fn init(
        &self,
        config: &TrainConfig,
        device: &Device,
        generator: &mut Generator,
    ) -> Result<ActorCritic, TrainError> {
        self.config.validate(&self.observations, &self.actions)?;
        let widths = network::widths(O::NAME, &self.observations, &self.actions)?;
        let Td3Keys { actor, critic, .. } = self.config.keys();
        let mut init = Init::drawn(device, generator);
        Ok(ActorCritic::init(widths, [actor, critic], config, &mut init))
    }

    fn step(
        &self,
        state: &mut ActorCritic,
        batch: &mut Batch,
        data: &TrainingData,
        at: &StepAt<'_>,
    ) -> StepFigures {
        let device = at.device.clone().inner();
        let Some(steps) = Steps::of(batch, &self.rescaling(data), &device) else {
            return nothing_learned(&device, self.figures().len());
        };
        let noise = noise(steps.actions.dims(), self.config.keys().target_noise, at.seed);
        let noise = TensorData::new(noise, steps.actions.dims());
        let noise = Tensor::from_data(noise, (&device, steps.actions.dtype()));
        self.learn(state, &steps, noise, (at.step, at.learning_rate))
    }

    fn recorded(&self) -> Option<&dyn Recorded<ActorCritic>> {
        Some(self)
    }

    /// The critics' loss, without noise.
    fn held_out_loss(
        &self,
        state: &ActorCritic,
        batch: &mut Batch,
        data: &TrainingData,
        device: &Device,
    ) -> Option<Tensor<1>> {
        let steps = Steps::of(batch, &self.rescaling(data), device)?;
        let noise = steps.actions.zeros_like();
        let [loss, _] = self.config.critic_loss(state, &steps, noise);
        Some(loss.inner())
    }
}

impl<O: Td3Options> Recorded<ActorCritic> for Td3<O> {
    /// Steps with the actor have a layout of their own.
    fn send(
        &self,
        state: &ActorCritic,
        batch: &Batch,
        data: &TrainingData,
        at: &StepAt<'_>,
        to: &mut Sections,
    ) -> bool {
        let counting = Steps::send(batch, &self.rescaling(data), to);
        let (n, width) = (batch.batch * batch.context_length, self.actions.size());
        let drawn = noise([counting.len(), width], self.config.keys().target_noise, at.seed);
        let mut sent = vec![0.0; n * width];
        for (row, drawn) in counting.iter().zip(drawn.chunks_exact(width)) {
            sent[row * width..][..width].copy_from_slice(drawn);
        }
        to.floats("noise", &[n, width], sent);
        state.critics.send_rate("critic_rate", at.learning_rate, to);
        if self.trains_actor(at.step) {
            state.actor.send_rate("actor_rate", at.learning_rate, to);
        }
        !counting.is_empty()
    }

    fn compute(
        &self,
        state: &mut ActorCritic,
        inputs: &Inputs,
        _data: &TrainingData,
    ) -> StepFigures {
        let (Some(noise), Some(rate)) =
            (inputs.plain_floats("noise"), LearningRate::received(inputs, "critic_rate"))
        else {
            panic!("the noise and the rate of a step were sent")
        };
        let actor_rate = LearningRate::received(inputs, "actor_rate");
        self.descend(state, &Steps::received(inputs), noise, (rate, actor_rate))
    }

    fn counted(&self, state: &mut ActorCritic, at: &StepAt<'_>) {
        state.critics.counted();
        if self.trains_actor(at.step) {
            state.actor.counted();
        }
    }

    fn memory<'s>(&self, state: &'s mut ActorCritic) -> Vec<&'s mut Tensor<1>> {
        state.memory()
    }
}
