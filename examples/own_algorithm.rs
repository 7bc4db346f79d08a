//! Your own algorithm, twice: another loss for the actor of TD3, and a step that is written from nothing.
//! Both act with ReBRAC's actor, so `policy` plays their checkpoints.
//!
//! `line.rs` has the task and the recording.
//!
//! `cargo run --release -p overtone-examples --bin own_algorithm runs`

mod line;

use std::path::Path;

use overtone_agents::value::network::{constant, constant_like};
use overtone_agents::value::steps::nothing_learned;
use overtone_agents::value::td3::{Td3Keys, Td3Options};
use overtone_agents::value::{ActorCritic, Mlp, Rescaling, Steps, Td3, twin::concat};
use overtone_agents::{ActingNetwork, AlgorithmOptions, RebracConfig};
use overtone_core::{ActionSpace, ObservationSpace, Task, seed::Generator};
use overtone_data::{Batch, Lookahead};
use overtone_model::burn::module::Module;
use overtone_model::burn::tensor::{Device, Tensor};
use overtone_model::{ModelError, init::Init};
use overtone_train::{
    Algorithm, Job, Learner, StepAt, StepFigures, TrainConfig, TrainError, Trainer, Training,
    TrainingData,
};

/// TD3 whose actor clones recorded actions, the more the better they are than its own (as in CRR, Wang
/// et al. 2020): `L_π = mean w Σ (π(s) − a)²`, `w = exp(min((q(s, a) − q(s, π(s))) / 0.1, 3))`.
#[derive(Clone)]
struct BetterActions(RebracConfig);

impl AlgorithmOptions for BetterActions {
    fn validate(&self, seen: &ObservationSpace, done: &ActionSpace) -> Result<(), ModelError> {
        self.0.validate(seen, done)
    }

    fn describe(&self) -> String {
        "TD3 that clones better actions".into()
    }

    fn network(&self) -> ActingNetwork<'_> {
        self.0.network()
    }

    fn trainer(&self, task: &Task, job: Job) -> Result<Box<dyn Training>, TrainError> {
        Td3::trainer(self, task, job)
    }
}

impl Td3Options for BetterActions {
    const NAME: &'static str = "better_actions";

    fn keys(&self) -> Td3Keys {
        self.0.keys()
    }

    fn actor_loss(&self, state: &ActorCritic, steps: &Steps) -> Tensor<1> {
        let actions = state.actor.network.act(steps.observations.clone());
        // Without gradients: a weight is a constant.
        let critics = state.critics.network.valid();
        let value = |actions| critics.smaller(concat(steps.observations.clone(), actions));
        let gain = value(steps.actions.clone()) - value(actions.clone().inner());
        let weights = constant((gain / 0.1).clamp_max(3.0).exp());
        let away = (actions - constant(steps.actions.clone())).square().sum_dim(1);
        steps.mean(away * weights)
    }
}

/// Reward-weighted regression (Peters and Schaal 2007): `L = mean exp(r / 0.1) Σ (π(s) − a)²`.
struct RewardWeighted {
    actor: RebracConfig,
    widths: [usize; 2],
}

impl RewardWeighted {
    /// The loss on a batch; `None` if no step of it has a target.
    fn loss(actor: &Mlp, batch: &Batch, data: &TrainingData, on: &Device) -> Option<Tensor<1>> {
        let rescaling = Rescaling::new(data.dataset().normalization(), true);
        let steps = Steps::of(batch, &rescaling, on)?;
        let actions = actor.act(steps.observations.clone());
        let weights = constant_like((steps.rewards.clone() / 0.1).exp(), &actions);
        let recorded = constant_like(steps.actions.clone(), &actions);
        let away = (actions - recorded).square().sum_dim(1);
        Some(steps.mean(away * weights))
    }
}

impl Algorithm for RewardWeighted {
    /// A network with its optimizer. A struct of several of them implements `Export` and `Stored`.
    type State = Learner<Mlp>;

    fn figures(&self) -> &'static [&'static str] {
        &[]
    }

    /// A batch has rewards and next observations.
    fn lookahead(&self) -> Option<Lookahead> {
        Some(Lookahead::ONE)
    }

    fn init(
        &self,
        config: &TrainConfig,
        device: &Device,
        random: &mut Generator,
    ) -> Result<Self::State, TrainError> {
        let actor =
            Mlp::init(self.widths, self.actor.keys().actor, &mut Init::drawn(device, random));
        Ok(Learner::new(actor, config))
    }

    fn step(
        &self,
        state: &mut Self::State,
        batch: &mut Batch,
        data: &TrainingData,
        at: &StepAt<'_>,
    ) -> StepFigures {
        let device = at.device.clone().inner();
        let Some(loss) = Self::loss(&state.network, batch, data, &device) else {
            return nothing_learned(&device, 0);
        };
        let grad_norm = state.step(loss.backward(), at.learning_rate);
        StepFigures { loss: loss.inner(), grad_norm, others: Vec::new() }
    }

    fn held_out_loss(
        &self,
        state: &Self::State,
        batch: &mut Batch,
        data: &TrainingData,
        device: &Device,
    ) -> Option<Tensor<1>> {
        Self::loss(&state.network.valid(), batch, data, device)
    }
}

fn main() -> Result<(), line::Fault> {
    let runs = std::env::args().nth(1).ok_or("pass the directory of the runs")?;
    let actor = RebracConfig { hidden: 32, n_layers: 2, ..RebracConfig::default() };
    let runs = Path::new(&runs);
    let (task, job) = line::job(runs, "better_actions", &actor)?;
    line::play("better actions", BetterActions(actor.clone()).trainer(&task, job)?)?;
    let (_, job) = line::job(runs, "reward_weighted", &actor)?;
    let algorithm = RewardWeighted { actor, widths: [1, 1] };
    line::play("reward-weighted", Box::new(Trainer::new(algorithm, job)?))
}
