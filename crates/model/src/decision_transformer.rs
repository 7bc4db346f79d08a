//! The Decision Transformer on Atari frames (Chen et al. 2021), to be read top to bottom.
//!
//! A timestep is three tokens: the return still to come, the observation, the action.
//! A causal transformer reads up to `context_length` timesteps, and the next action is
//! predicted from each *observation* token.
//!
//! Differs from the reference implementation:
//! - Contexts may be padded on the left. Padding is never attended to, and positions count
//!   from the first real token, so a padded context gives what the shorter one gives.
//! - Query, key and value are one matrix; the unused token embedding is left out.
//! - The Fourier head's regulariser is averaged over observation tokens and added to the
//!   loss (the reference averages over all tokens and never adds it).

use burn::{
    module::{Module, Param},
    tensor::{Device, Int, Tensor, TensorData, activation},
};
use overtone_core::seed::Generator;
pub use overtone_kernels::{Form, Half};
use overtone_kernels::{NatureWeights, nature_encoder, nature_encoder_windows};

pub use crate::transformer::DropoutSeed;
use crate::{
    config::{Conditioning, ModelConfig},
    error::ModelError,
    head::{self, Head},
    init::{self, GPT_STD},
    tokens::{self, Steps},
    transformer::Transformer,
    transformer_block::TransformerBlock,
};

/// Pixels of one frame, height and width.
pub const FRAME: usize = 84;
/// Frames in an observation.
pub const STACK: usize = 4;
/// Features after the three convolutions: 64 channels of 7 × 7.
const CONVOLVED: usize = 64 * 7 * 7;

/// Observations as they are stored: 8-bit grey frames.
#[derive(Clone, Debug)]
pub enum Frames {
    /// `[batch, time + 3, 84, 84]`: each frame once; the observation of step `t` is frames
    /// `t .. t + 4`.
    Windows(Tensor<4, Int>),
    /// `[n, 4, 84, 84]`: separate observations, oldest frame first.
    Stacks(Tensor<4, Int>),
}

/// A batch of contexts without their observations.
#[derive(Clone, Debug)]
pub struct Inputs {
    /// `[batch, time]`: the action taken at each step, by environment id. The last one is
    /// not read by any prediction.
    pub actions: Tensor<2, Int>,
    /// `[batch, time]`: the return from each step on, that step's reward included.
    pub returns_to_go: Tensor<2>,
    /// `[batch]`: which row of the global position table each context uses.
    pub global_timesteps: Tensor<1, Int>,
    /// Padded timesteps at the start of each context.
    pub n_padding: Vec<usize>,
}

/// See the [module's documentation](self).
#[derive(Module, Debug)]
pub struct DecisionTransformer {
    /// `[32, 4, 8, 8]`, stride 4.
    pub conv_1_weight: Param<Tensor<4>>,
    /// `[32]`
    pub conv_1_bias: Param<Tensor<1>>,
    /// `[64, 32, 4, 4]`, stride 2.
    pub conv_2_weight: Param<Tensor<4>>,
    /// `[64]`
    pub conv_2_bias: Param<Tensor<1>>,
    /// `[64, 64, 3, 3]`, stride 1.
    pub conv_3_weight: Param<Tensor<4>>,
    /// `[64]`
    pub conv_3_bias: Param<Tensor<1>>,
    /// `[3136, d_model]`
    pub observation_weight: Param<Tensor<2>>,
    /// `[d_model]`
    pub observation_bias: Param<Tensor<1>>,
    /// `[1, d_model]`; absent in behaviour cloning.
    pub return_weight: Option<Param<Tensor<2>>>,
    /// `[d_model]`
    pub return_bias: Option<Param<Tensor<1>>>,
    /// `[n_actions, d_model]`
    pub action_embedding: Param<Tensor<2>>,
    /// `[3·context_length + 1, d_model]`: position of a token in the context.
    pub position_embedding: Param<Tensor<2>>,
    /// `[max_timestep + 1, d_model]`: position of the context in its episode.
    pub global_position_embedding: Param<Tensor<2>>,
    /// The transformer.
    pub blocks: Vec<TransformerBlock>,
    /// `[d_model]`
    pub final_norm_weight: Param<Tensor<1>>,
    /// `[d_model]`
    pub final_norm_bias: Param<Tensor<1>>,
    /// From a token to actions.
    pub head: Head,
    /// What the model was built from.
    #[module(skip)]
    pub config: ModelConfig,
    /// Fused operations where there are any, or the plain ones.
    #[module(skip)]
    pub form: Form,
}

impl DecisionTransformer {
    /// A new model with the reference's initial distribution of weights.
    ///
    /// # Errors
    /// When `config` describes no model.
    pub fn init(
        config: &ModelConfig,
        device: &Device,
        generator: &mut Generator,
    ) -> Result<Self, ModelError> {
        config.validate()?;
        let d = config.d_model;
        let blocks = (0..config.n_layers)
            .map(|_| TransformerBlock::init(&config.transformer(), device, generator))
            .collect();
        // The convolutions and the layer after them keep PyTorch's default.
        let [conv_1, conv_2, conv_3, observation] =
            [4 * 8 * 8, 32 * 4 * 4, 64 * 3 * 3, CONVOLVED].map(init::fan_in_bound);
        let with_returns = config.conditioning == Conditioning::Return;
        Ok(Self {
            conv_1_weight: init::uniform([32, 4, 8, 8], conv_1, device, generator),
            conv_1_bias: init::uniform([32], conv_1, device, generator),
            conv_2_weight: init::uniform([64, 32, 4, 4], conv_2, device, generator),
            conv_2_bias: init::uniform([64], conv_2, device, generator),
            conv_3_weight: init::uniform([64, 64, 3, 3], conv_3, device, generator),
            conv_3_bias: init::uniform([64], conv_3, device, generator),
            observation_weight: init::uniform([CONVOLVED, d], observation, device, generator),
            observation_bias: init::uniform([d], observation, device, generator),
            return_weight: with_returns.then(|| init::uniform([1, d], 1.0, device, generator)),
            return_bias: with_returns.then(|| init::uniform([d], 1.0, device, generator)),
            action_embedding: init::normal([config.n_actions, d], GPT_STD, device, generator),
            position_embedding: init::constant([3 * config.context_length + 1, d], 0.0, device),
            global_position_embedding: init::constant([config.max_timestep + 1, d], 0.0, device),
            blocks,
            final_norm_weight: init::constant([d], 1.0, device),
            final_norm_bias: init::constant([d], 0.0, device),
            head: config.head.init(d, config.n_actions, device, generator),
            config: config.clone(),
            form: Form::Auto,
        })
    }

    /// Embeds observations: the Nature CNN (Mnih et al. 2015), one linear layer, tanh.
    ///
    /// # Shapes
    /// - result: `[n, d_model]`, with `n = batch · time` for windows
    pub fn embed_observations(&self, frames: Frames) -> Tensor<2> {
        let weights = NatureWeights {
            conv1_weight: self.conv_1_weight.val(),
            conv1_bias: self.conv_1_bias.val(),
            conv2_weight: self.conv_2_weight.val(),
            conv2_bias: self.conv_2_bias.val(),
            conv3_weight: self.conv_3_weight.val(),
            conv3_bias: self.conv_3_bias.val(),
            linear_weight: self.observation_weight.val(),
            linear_bias: self.observation_bias.val(),
        };
        match frames {
            Frames::Windows(frames) => nature_encoder_windows(frames, weights, self.form),
            Frames::Stacks(frames) => nature_encoder(frames, weights, self.form),
        }
    }

    /// The transformer's output at the observation tokens of some steps.
    ///
    /// # Shapes
    /// - `observations`: `[batch, time, d_model]`, embedded
    /// - result: `[batch, steps, d_model]`; rows of padded steps are finite and mean nothing
    pub fn hidden(
        &self,
        observations: Tensor<3>,
        inputs: &Inputs,
        steps: Steps,
        dropout: Option<DropoutSeed>,
    ) -> Tensor<3> {
        let [batch, time, d_model] = observations.dims();
        let actions = self
            .action_embedding
            .val()
            .select(0, inputs.actions.clone().reshape([batch * time]))
            .tanh()
            .reshape([batch, time, d_model]);
        let returns_to_go = self.return_weight.as_ref().zip(self.return_bias.as_ref());
        let returns_to_go = returns_to_go.map(|(weight, bias)| {
            let returns = inputs.returns_to_go.clone().reshape([batch * time, 1]);
            let embedded = (returns.matmul(weight.val()) + bias.val().unsqueeze()).tanh();
            embedded.reshape([batch, time, d_model])
        });
        let tokens = tokens::interleave(returns_to_go, observations, actions);

        // One global position for the whole context, one local position per token.
        let global = self
            .global_position_embedding
            .val()
            .select(0, inputs.global_timesteps.clone())
            .unsqueeze_dim::<3>(1);
        let tokens = tokens + self.local_positions(&inputs.n_padding, time) + global;

        let transformer = Transformer {
            config: self.config.transformer(),
            blocks: &self.blocks,
            final_norm_weight: self.final_norm_weight.val(),
            final_norm_bias: self.final_norm_bias.val(),
            form: self.form,
        };
        transformer.at_observations(tokens, steps, &inputs.n_padding, dropout)
    }

    /// Local positions count from each context's first real token: `[batch or 1, tokens, d]`.
    fn local_positions(&self, n_padding: &[usize], time: usize) -> Tensor<3> {
        let table = self.position_embedding.val();
        let per_step = self.config.conditioning.tokens_per_timestep();
        let n_tokens = per_step * time;
        if n_padding.iter().all(|&pad| pad == 0) {
            return table.narrow(0, 0, n_tokens).unsqueeze_dim::<3>(0);
        }
        let positions: Vec<i32> = n_padding
            .iter()
            .map(|pad| per_step * pad)
            .flat_map(|first| (0..n_tokens).map(move |token| token.saturating_sub(first) as i32))
            .collect();
        let [_, d_model] = table.dims();
        let positions =
            Tensor::<1, Int>::from_data(TensorData::from(&positions[..]), &table.device());
        table.select(0, positions).reshape([n_padding.len(), n_tokens, d_model])
    }

    /// Logits at every observation token, by environment action id.
    ///
    /// # Shapes
    /// - result: `[batch, time, n_actions]`
    pub fn logits(&self, frames: Frames, inputs: &Inputs) -> Tensor<3> {
        let [batch, time] = inputs.actions.dims();
        let observations =
            self.embed_observations(frames).reshape([batch, time, self.config.d_model]);
        let hidden = self.hidden(observations, inputs, Steps::All, None);
        let rows = hidden.reshape([batch * time, self.config.d_model]);
        self.head.forward(rows).logits.reshape([batch, time, self.config.n_actions])
    }

    /// Mean cross-entropy over real timesteps, plus the head's regulariser.
    pub fn loss(&self, frames: Frames, inputs: &Inputs, dropout: Option<DropoutSeed>) -> Loss {
        let [batch, time] = inputs.actions.dims();
        let d_model = self.config.d_model;
        let observations = self.embed_observations(frames).reshape([batch, time, d_model]);
        let hidden = self.hidden(observations, inputs, Steps::All, dropout);
        let output = self.head.forward(hidden.reshape([batch * time, d_model]));

        let (device, dtype) = (output.logits.device(), output.logits.dtype());
        let weights = tokens::shares(&inputs.n_padding, time, &device, dtype);

        let targets = inputs.actions.clone().reshape([batch * time]);
        let hits = output.logits.clone().argmax(1).squeeze_dim::<1>(1).equal(targets.clone());
        let accuracy = (hits.float().cast(dtype) * weights.clone()).sum().detach();
        let cross_entropy = (head::cross_entropy(output.logits, targets) * weights.clone()).sum();
        let total = match output.regularization {
            Some(rows) => cross_entropy.clone() + (rows * weights).sum(),
            None => cross_entropy.clone(),
        };
        Loss { total, cross_entropy: cross_entropy.detach(), accuracy }
    }
}

/// One batch's loss; each `[1]`.
pub struct Loss {
    /// What is differentiated: cross-entropy plus regulariser.
    pub total: Tensor<1>,
    /// Mean negative log-likelihood of the logged actions, in nats.
    pub cross_entropy: Tensor<1>,
    /// Share of real timesteps whose logged action is the most probable one.
    pub accuracy: Tensor<1>,
}

/// Probabilities of the actions at a temperature.
///
/// # Shapes
/// - `logits` and result: `[rows, n_actions]`
pub fn probabilities(logits: Tensor<2>, temperature: f32) -> Tensor<2> {
    activation::softmax(logits / temperature, 1)
}
