//! Top percents: an indicator of the best episodes that replaces the return.
//!
//! A return means "achieve this much from here on", a top percent "act as the top 10 % of episodes
//! did". Where a recorded return-to-go shows how an episode failed more than how it was played, a
//! clone of the best episodes (`%BC`, Chen et al. 2021) achieves more than a model conditioned on
//! returns, and elsewhere less. A model can do both if it is conditioned on either, each in half of
//! its contexts.
//!
//! A step's input is `[R̂, 0, …, 0]` with a return, and `[0, …, 1, …]` with a top percent: a
//! Decision Transformer's token is then `R̂ W₀ + b` or `W_k`.

use burn::tensor::{Tensor, TensorData};

use crate::{
    contexts::Contexts,
    error::{ModelError, config_error},
};

impl Contexts {
    /// The numbers that a model with `n` top percents is conditioned on at each step.
    ///
    /// # Shapes
    /// - result: `[batch, time, 1 + n]`
    pub fn condition(&self, n: usize) -> Tensor<3> {
        let [batch, time] = self.dims();
        let returns = self.returns_to_go.clone().reshape([batch, time, 1]);
        if n == 0 {
            return returns;
        }
        let mut which = vec![0.0f32; batch * (n + 1)];
        for (row, numbers) in which.chunks_exact_mut(n + 1).enumerate() {
            let place = self.best.get(row).copied().flatten();
            numbers[place.map_or(0, |place| 1 + usize::from(place))] = 1.0;
        }
        let which = TensorData::new(which, [batch, 1, n + 1]);
        let which = Tensor::<3>::from_data(which, (&returns.device(), returns.dtype()));
        let indicators = which.clone().narrow(2, 1, n).expand([batch, time, n]);
        Tensor::cat(vec![returns * which.narrow(2, 0, 1), indicators], 2)
    }
}

/// The place of `percent` among those that a model `knows`.
///
/// # Errors
/// When it is not among them.
pub fn place(percent: f32, known: &[f32]) -> Result<u8, ModelError> {
    let place = known.iter().position(|known| *known == percent);
    match place.and_then(|place| u8::try_from(place).ok()) {
        Some(place) => Ok(place),
        None if known.is_empty() => {
            let expected = "0: the agent was trained without top percents (model.top_percents)";
            Err(config_error("top_percent", percent, expected))
        }
        None => {
            let expected = format!("0, or one that the agent was trained with: {known:?}");
            Err(config_error("top_percent", percent, expected))
        }
    }
}

/// Checks top percents.
///
/// # Errors
/// Names the first that is not one, or that is repeated.
pub fn validate(percents: &[f32]) -> Result<(), ModelError> {
    if percents.len() > usize::from(u8::MAX) {
        return Err(config_error("model.top_percents", percents.len(), "at most 255 shares"));
    }
    for (place, &percent) in percents.iter().enumerate() {
        if !(percent > 0.0 && percent <= 100.0) || percents[..place].contains(&percent) {
            let expected = "different shares in percent, above 0 and at most 100";
            return Err(config_error("model.top_percents", percent, expected));
        }
    }
    Ok(())
}
