//! Top percents: an indicator of the top episodes (by return) that replaces the return.
//!
//! A return conditions a model on "achieve this much from here on", a top percent on "act as in the
//! top 10 % of episodes". If a recorded return-to-go reflects the failure of an episode more than
//! its actions, a clone of the top episodes (`%BC`, Chen et al. 2021) achieves more than a model
//! conditioned on returns; elsewhere it achieves less. A model can do both if half of its contexts
//! are conditioned on returns, and half on top percents.
//!
//! A step's input is `[R̂, 0, …, 0]` with a return, and `[0, …, 1, …]` with a top percent: a
//! Decision Transformer's token is then `R̂ W₀ + b` or `W_k`.

use burn::tensor::{Tensor, TensorData};
use overtone_kernels::stored::constant;

use crate::{
    contexts::{Contexts, Stored},
    error::{ModelError, config_error},
};

impl Contexts {
    /// The inputs of the conditioning at each step, for a model with `n` top percents.
    ///
    /// # Shapes
    /// - result: `[batch, time, 1 + n]`
    pub fn condition(&self, n: usize) -> Tensor<3> {
        let [batch, time] = self.dims();
        let returns = self.returns_to_go.clone().reshape([batch, time, 1]);
        if n == 0 {
            return returns;
        }
        let stored = self.stored.as_ref().and_then(|stored| stored.conditions.clone());
        let which = stored.unwrap_or_else(|| {
            let which = conditions(&self.top_percent_idx, batch, n);
            let which = TensorData::new(which, [batch, 1, n + 1]);
            Tensor::<3>::from_data(which, (&returns.device(), returns.dtype()))
        });
        // `which ⊙ [R̂, 1, …, 1]`
        let numbers = |first: f64, others: f64| {
            let numbers = (0..=n).map(|i| if i == 0 { first } else { others }).collect();
            constant(numbers, [1, 1, n + 1], &returns.device(), returns.dtype())
        };
        let inputs = returns.clone() * numbers(1.0, 0.0) + numbers(0.0, 1.0);
        inputs * which
    }

    /// 1 at the timesteps of contexts that are conditioned on a return, else 0, `[batch · time, 1]`;
    /// for a model with `n` top percents, from its [inputs](Self::condition).
    pub(crate) fn has_return(&self, condition: Tensor<2>, n: usize) -> Tensor<2> {
        match &self.stored {
            Some(Stored { has_return: Some(has_return), .. }) => has_return.clone(),
            _ => 1.0 - condition.narrow(1, 1, n).sum_dim(1),
        }
    }
}

/// What conditions each of `batch` contexts, `[batch, 1 + n]`: 1 at the return or at one of `n` top
/// percents, else 0.
pub(crate) fn conditions(top_percent_idx: &[Option<u8>], batch: usize, n: usize) -> Vec<f32> {
    let mut which = vec![0.0f32; batch * (n + 1)];
    for (row, numbers) in which.chunks_exact_mut(n + 1).enumerate() {
        let place = top_percent_idx.get(row).copied().flatten();
        numbers[place.map_or(0, |place| 1 + usize::from(place))] = 1.0;
    }
    which
}

/// The index of `percent` in the model's top percents, `known`.
///
/// # Errors
/// When it is not among them.
pub fn index(percent: f32, known: &[f32]) -> Result<u8, ModelError> {
    let place = known.iter().position(|known| *known == percent);
    match place.and_then(|place| u8::try_from(place).ok()) {
        Some(place) => Ok(place),
        None if known.is_empty() => {
            let expected =
                "must be 0: the agent was trained without top percents (model.top_percents)";
            Err(config_error("top_percent", percent, expected))
        }
        None => {
            let expected = format!("must be 0 or a top percent of the agent's training: {known:?}");
            Err(config_error("top_percent", percent, expected))
        }
    }
}

/// Checks top percents.
///
/// # Errors
/// Names the first invalid or repeated one.
pub fn validate(percents: &[f32]) -> Result<(), ModelError> {
    if percents.len() > usize::from(u8::MAX) {
        return Err(config_error("model.top_percents", percents.len(), "must be at most 255"));
    }
    for (place, &percent) in percents.iter().enumerate() {
        if !(percent > 0.0 && percent <= 100.0) || percents[..place].contains(&percent) {
            let expected = "must be distinct, above 0 and at most 100";
            return Err(config_error("model.top_percents", percent, expected));
        }
    }
    Ok(())
}
