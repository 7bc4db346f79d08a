//! Fourier attention for any burn network: self-attention or cross-attention with weights from the
//! Fourier integral kernel (Nguyen et al. 2022, "FourierFormer", equations 15 and 16) instead of
//! the softmax of dot products.
//!
//! Query `i` gives key `j` the weight `w_ij = Π_d sinc(R_d (q_id − k_jd))^power`,
//! `sinc x = sin x / x`, and a head returns `Σ_j w_ij v_j / (Σ_j w_ij + ε)`. `R` is learned. Small
//! `R` make all weights similar, large ones restrict the attention to the nearest keys.
//!
//! The module has the interface of burn's `MultiHeadAttention`: four linear layers, dropout on the
//! weights, no norm and no residual. The scores are this workspace's: fused on the CPU in `f32`,
//! plain tensors elsewhere. Gradients are exact in both.
//!
//! ```
//! use burn::tensor::{Device, Distribution, Tensor};
//! use overtone_model::FourierAttentionConfig;
//!
//! let device = Device::flex();
//! let attention = FourierAttentionConfig::new(32, 4).with_causal(true).init(&device);
//! let x = Tensor::<3>::random([2, 7, 32], Distribution::Normal(0.0, 1.0), &device);
//! assert_eq!(attention.forward(x.clone()).dims(), [2, 7, 32]);
//!
//! // The first token sees only itself, the second itself and the first; weights add up to 1.
//! let weights = attention.weights(x.clone().narrow(0, 0, 1), None); // [batch, heads, queries, keys]
//! let first: Vec<f32> = weights.narrow(1, 0, 1).into_data().iter().collect();
//! assert_eq!(first[..3], [1.0, 0.0, 0.0]);
//! assert!((first[7] + first[8] - 1.0).abs() < 1e-6 && first[9] == 0.0);
//!
//! // Cross-attention: seven tokens attend to eleven of another sequence.
//! let cross = FourierAttentionConfig::new(32, 4).init(&device);
//! let memory = Tensor::<3>::random([2, 11, 32], Distribution::Normal(0.0, 1.0), &device);
//! assert_eq!(cross.forward_cross(x, memory, None).dims(), [2, 7, 32]);
//! ```

use burn::{
    config::Config,
    module::{Module, Param},
    nn::{Dropout, DropoutConfig, Linear, LinearConfig},
    tensor::{Bool, Device, Int, Tensor},
};
use overtone_kernels::{
    Form,
    fourier_scores::{fourier_scores, probabilities},
};

use crate::attention::RShape;

/// Options of [`FourierAttention`].
#[derive(Config, Debug)]
pub struct FourierAttentionConfig {
    /// Width of a token.
    pub d_model: usize,
    /// Number of heads; divides `d_model`.
    pub n_heads: usize,
    /// Whether a token sees only itself and earlier tokens.
    #[config(default = false)]
    pub causal: bool,
    /// Probability of dropping a weight during training; burn's default.
    #[config(default = 0.1)]
    pub dropout: f64,
    /// Power of each factor of a weight: even, because a negative factor would give a negative
    /// weight. The paper's main experiments use 4.
    #[config(default = 4)]
    pub power: u32,
    /// Number of learned `R`.
    #[config(default = "RShape::PerHead")]
    pub r: RShape,
    /// Initial value of every `R`.
    #[config(default = 1.0)]
    pub initial_r: f64,
    /// ε, added to the sum of weights. 0 is the paper's formula; its code uses 1e-6, so that a
    /// query far from all keys sees nothing.
    #[config(default = 0.0)]
    pub epsilon: f64,
}

/// See the module's documentation.
#[derive(Module, Debug)]
pub struct FourierAttention {
    /// `d_model` → `d_model`; heads are contiguous.
    pub query: Linear,
    /// The same, for keys.
    pub key: Linear,
    /// The same, for values.
    pub value: Linear,
    /// `d_model` → `d_model`, over all heads.
    pub output: Linear,
    /// `R`: `[n_heads or 1, d_head or 1]`.
    pub r: Param<Tensor<2>>,
    /// Dropout of the weights, during burn's training.
    pub dropout: Dropout,
    /// Number of heads.
    pub n_heads: usize,
    /// Power of each factor of a weight.
    pub power: u32,
    /// Added to the sum of weights.
    pub epsilon: f64,
    /// Whether a token sees only itself and earlier tokens.
    pub causal: bool,
}

impl FourierAttentionConfig {
    /// A module with burn's initialization of linear layers.
    ///
    /// # Panics
    /// When `n_heads` does not divide `d_model`, `power` is odd or zero, `initial_r` is not
    /// positive or `epsilon` is negative.
    pub fn init(&self, device: &Device) -> FourierAttention {
        let Self { d_model, n_heads, power, .. } = *self;
        assert!(
            n_heads > 0 && d_model.is_multiple_of(n_heads),
            "{n_heads} heads do not divide a width of {d_model}"
        );
        assert!(power > 0 && power.is_multiple_of(2), "power {power} must be even and positive");
        assert!(self.initial_r > 0.0, "initial R {} must be positive", self.initial_r);
        assert!(self.epsilon >= 0.0, "epsilon {} must not be negative", self.epsilon);
        let linear = || LinearConfig::new(d_model, d_model).init(device);
        let shape = self.r.dims(n_heads, d_model / n_heads);
        FourierAttention {
            query: linear(),
            key: linear(),
            value: linear(),
            output: linear(),
            r: Param::from_tensor(Tensor::full(shape, self.initial_r, device)),
            dropout: DropoutConfig::new(self.dropout).init(),
            n_heads,
            power,
            epsilon: self.epsilon,
            causal: self.causal,
        }
    }
}

impl FourierAttention {
    /// # Shapes
    /// - `x` and result: `[batch, time, d_model]`
    pub fn forward(&self, x: Tensor<3>) -> Tensor<3> {
        self.forward_masked(x, None)
    }

    /// The same for sequences with padding.
    ///
    /// # Shapes
    /// - `x` and result: `[batch, time, d_model]`
    /// - `valid_mask`: `[batch, time]`, `true` for real tokens. Only a padded token sees itself, so
    ///   that its own row is finite; other tokens do not see it
    pub fn forward_masked(&self, x: Tensor<3>, valid_mask: Option<Tensor<2, Bool>>) -> Tensor<3> {
        let weights = self.weights(x.clone(), valid_mask);
        self.mix(weights, x)
    }

    /// Cross-attention: the tokens of `x` attend to the tokens of `memory`, whose number may
    /// differ.
    ///
    /// # Shapes
    /// - `x` and result: `[batch, time, d_model]`
    /// - `memory`: `[batch, keys, d_model]`
    /// - `valid_mask`: `[batch, keys]`, `true` for real tokens of `memory`: at least one in each
    ///   sequence, or its results are NaN. Padded tokens are not seen
    ///
    /// # Panics
    /// When the module is causal: tokens of another sequence are neither earlier nor later.
    pub fn forward_cross(
        &self,
        x: Tensor<3>,
        memory: Tensor<3>,
        valid_mask: Option<Tensor<2, Bool>>,
    ) -> Tensor<3> {
        let weights = self.cross_weights(x, memory.clone(), valid_mask);
        self.mix(weights, memory)
    }

    /// The weights of each head, before dropout.
    ///
    /// # Shapes
    /// - `x`: `[batch, time, d_model]`, `valid_mask`: `[batch, time]`
    /// - result: `[batch, n_heads, queries, keys]`
    pub fn weights(&self, x: Tensor<3>, valid_mask: Option<Tensor<2, Bool>>) -> Tensor<4> {
        let hidden = self.hidden(x.dims()[1], valid_mask, &x.device());
        self.visible_weights(x.clone(), x, hidden)
    }

    /// The same for [cross-attention](Self::forward_cross).
    ///
    /// # Shapes
    /// - `x`: `[batch, time, d_model]`, `memory`: `[batch, keys, d_model]`, `valid_mask`:
    ///   `[batch, keys]`
    /// - result: `[batch, n_heads, time, keys]`
    ///
    /// # Panics
    /// When the module is causal.
    pub fn cross_weights(
        &self,
        x: Tensor<3>,
        memory: Tensor<3>,
        valid_mask: Option<Tensor<2, Bool>>,
    ) -> Tensor<4> {
        assert!(!self.causal, "causal attention is within one sequence");
        let [batch, keys, _] = memory.dims();
        let hidden = valid_mask.map(|mask| mask.bool_not().reshape([batch, 1, 1, keys]));
        self.visible_weights(x, memory, hidden)
    }

    /// Sets weights to 0 where `hidden` is `true`: the query must not see the key. `hidden` expands
    /// to the weights' shape.
    fn visible_weights(
        &self,
        x: Tensor<3>,
        memory: Tensor<3>,
        hidden: Option<Tensor<4, Bool>>,
    ) -> Tensor<4> {
        let q = self.heads(self.query.forward(x));
        let k = self.heads(self.key.forward(memory));
        let mut scores = fourier_scores(q, k, self.r.val(), self.power, Form::Auto);
        if let Some(hidden) = hidden {
            let shape = scores.dims();
            scores = scores.mask_fill(hidden.expand(shape), f32::NEG_INFINITY);
        }
        probabilities(scores, self.epsilon)
    }

    /// The values of `memory` mixed by these weights, through dropout and the last layer.
    fn mix(&self, weights: Tensor<4>, memory: Tensor<3>) -> Tensor<3> {
        let values = self.heads(self.value.forward(memory));
        let mixed = self.dropout.forward(weights).matmul(values);
        let [batch, n_heads, time, d_head] = mixed.dims();
        self.output.forward(mixed.swap_dims(1, 2).reshape([batch, time, n_heads * d_head]))
    }

    /// `[batch, time, n_heads · d_head]` → `[batch, n_heads, time, d_head]`.
    fn heads(&self, x: Tensor<3>) -> Tensor<4> {
        let [batch, time, width] = x.dims();
        x.reshape([batch, time, self.n_heads, width / self.n_heads]).swap_dims(1, 2)
    }

    /// `[batch or 1, 1, queries, keys]`, `true` if a query must not see the key; `None` if all see
    /// all.
    fn hidden(
        &self,
        time: usize,
        valid_mask: Option<Tensor<2, Bool>>,
        device: &Device,
    ) -> Option<Tensor<4, Bool>> {
        let place = Tensor::<1, Int>::arange(0..time as i64, device);
        let query = place.clone().reshape([1, 1, time, 1]).expand([1, 1, time, time]);
        let key = place.reshape([1, 1, 1, time]).expand([1, 1, time, time]);
        let later = self.causal.then(|| key.clone().greater(query.clone()));
        let padded = valid_mask.map(|valid_mask| {
            let [batch, _] = valid_mask.dims();
            let all = [batch, 1, time, time];
            let padded = valid_mask.bool_not().reshape([batch, 1, 1, time]).expand(all);
            padded.bool_and(key.not_equal(query).expand(all))
        });
        match (later, padded) {
            (Some(later), Some(padded)) => {
                let all = padded.dims();
                Some(padded.bool_or(later.expand(all)))
            }
            (later, padded) => later.or(padded),
        }
    }
}
