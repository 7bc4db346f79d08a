//! [`BestShares`]: told in place of returns that a context is from the best episodes.
//!
//! A return asks "earn this much from here on", a share "act as the best 10 % of episodes did".
//! Where a recorded return-to-go tells how an episode failed more than how it was played, a clone
//! of the best episodes (`%BC`, Chen et al. 2021) earns more than an agent that is told returns,
//! and elsewhere less. A model that is told either, each in half of its contexts, can do both: its
//! return tokens hold `R̂ W + b` in one half and a learned vector for each share in the other. A
//! [perceptron](crate::perceptron) has an input for each share instead.

use burn::{
    module::{Module, Param},
    tensor::{Tensor, TensorData},
};

use crate::{
    error::{ModelError, config_error},
    init::Init,
};

/// See the [module's documentation](self).
#[derive(Module, Debug)]
pub struct BestShares {
    /// `[shares, d_model]`
    pub weight: Param<Tensor<2>>,
}

impl BestShares {
    /// U(-1, 1), as the embedding of returns has it.
    pub fn init(percents: &[f32], d_model: usize, init: &mut Init<'_>) -> Self {
        Self { weight: init.uniform([percents.len(), d_model], 1.0) }
    }

    /// `returns`, and in their place the vector of the share in contexts that are told one.
    ///
    /// # Shapes
    /// - `returns`: `[batch · time, d_model]`
    /// - `told`: `[batch]`
    /// - result: as `returns`
    pub fn forward(&self, returns: Tensor<2>, told: &[Option<u8>]) -> Tensor<2> {
        let [rows, _] = returns.dims();
        let [n, _] = self.weight.dims();
        let time = rows / told.len().max(1);
        let told: Vec<_> = told.iter().flat_map(|&told| std::iter::repeat_n(told, time)).collect();
        let (shares, is_return) = indicators(&told, n, &returns);
        returns * is_return + shares.matmul(self.weight.val())
    }
}

/// Row by row 1 for the share that it is told, of `n`, and 1 where it is told a return: `[told, n]`
/// and `[told, 1]`, with the float type of `like`, on its device.
pub fn indicators(told: &[Option<u8>], n: usize, like: &Tensor<2>) -> (Tensor<2>, Tensor<2>) {
    let mut which = vec![0.0f32; told.len() * (n + 1)];
    for (row, told) in which.chunks_exact_mut(n + 1).zip(told) {
        row[told.map_or(n, usize::from)] = 1.0;
    }
    let which = TensorData::new(which, [told.len(), n + 1]);
    let which = Tensor::<2>::from_data(which, (&like.device(), like.dtype()));
    (which.clone().narrow(1, 0, n), which.narrow(1, n, 1))
}

/// Checks shares in percent.
///
/// # Errors
/// Names the first that is none, or stands there twice.
pub fn validate(percents: &[f32]) -> Result<(), ModelError> {
    if percents.len() > usize::from(u8::MAX) {
        return Err(config_error("model.best_percents", percents.len(), "at most 255 shares"));
    }
    for (place, &percent) in percents.iter().enumerate() {
        if !(percent > 0.0 && percent <= 100.0) || percents[..place].contains(&percent) {
            let expected = "different shares in percent, above 0 and at most 100";
            return Err(config_error("model.best_percents", percent, expected));
        }
    }
    Ok(())
}
