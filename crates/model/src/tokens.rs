//! Timesteps as tokens: how a context becomes the sequence that the transformer reads, and
//! where in it actions are predicted.

use burn::tensor::{DType, Device, Tensor, TensorData};
use overtone_kernels::Queries;
use serde::{Deserialize, Serialize};

/// What the model is told before each observation.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Conditioning {
    /// The return still to come: tokens `R̂, s, a` (Chen et al. 2021).
    Return,
    /// Nothing: tokens `s, a`. This is behaviour cloning with the same transformer.
    None,
}

impl Conditioning {
    /// Tokens per timestep.
    pub fn tokens_per_timestep(self) -> usize {
        match self {
            Self::Return => 3,
            Self::None => 2,
        }
    }
}

/// The action is read from the *observation* token: it has seen the return-to-go and the
/// observation at `t`, and not yet the action it must predict. With return tokens it is the
/// second of three, without them the first of two.
pub fn predict_from(conditioning: Conditioning) -> usize {
    conditioning.tokens_per_timestep() - 2
}

/// Tokens `R̂, s, a` of each timestep side by side; `s, a` where there are no returns.
///
/// # Shapes
/// - `returns_to_go`, `observations`, `actions`: `[batch, time, d_model]`
/// - result: `[batch, 3·time, d_model]`, or `2·time`
pub fn interleave(
    returns_to_go: Option<Tensor<3>>,
    observations: Tensor<3>,
    actions: Tensor<3>,
) -> Tensor<3> {
    let [batch, time, d_model] = observations.dims();
    let of_a_step: Vec<Tensor<4>> = returns_to_go
        .into_iter()
        .chain([observations, actions])
        .map(|tokens| tokens.reshape([batch, time, 1, d_model]))
        .collect();
    let per_step = of_a_step.len();
    Tensor::cat(of_a_step, 2).reshape([batch, per_step * time, d_model])
}

/// At which steps of a context actions are predicted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Steps {
    /// At all, to learn.
    All,
    /// At the newest, to act.
    Newest,
}

/// The observation tokens of these steps among `n_tokens` [interleaved](interleave) ones.
pub fn observations(steps: Steps, conditioning: Conditioning, n_tokens: usize) -> Queries {
    let (step, first) = (conditioning.tokens_per_timestep(), predict_from(conditioning));
    match steps {
        Steps::All => Queries { first, step },
        Steps::Newest => Queries::one(n_tokens - step + first, n_tokens),
    }
}

/// For each timestep of each context, `[batch · time]`: 1 if it is real, 0 if it is padding.
///
/// `n_padding` counts the padded timesteps at the start of each context.
pub fn real_mask(n_padding: &[usize], time: usize) -> Vec<f32> {
    n_padding.iter().flat_map(|&pad| (0..time).map(move |place| f32::from(place >= pad))).collect()
}

/// The share of each timestep in a mean over real timesteps, `[batch · time]`: zero for
/// padding, the others add up to one.
///
/// `n_padding` counts the padded timesteps at the start of each context.
pub fn shares(n_padding: &[usize], time: usize, device: &Device, dtype: DType) -> Tensor<1> {
    let real = real_mask(n_padding, time);
    let n_real: f32 = real.iter().sum();
    Tensor::from_data(TensorData::from(&real[..]), (device, dtype)) / f64::from(n_real.max(1.0))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn numbers<const D: usize>(tensor: Tensor<D>) -> Vec<f32> {
        tensor.into_data().iter().collect()
    }

    /// Tokens of two contexts of three steps, width one: `kind · 100 + context · 10 + step`.
    fn tokens(kind: u16) -> Tensor<3> {
        let number = |i: u16| f32::from(100 * kind + 10 * (i / 3) + i % 3);
        let values: Vec<f32> = (0..6).map(number).collect();
        Tensor::from_data(TensorData::new(values, [2, 3, 1]), &Device::flex())
    }

    #[test]
    fn a_timestep_s_tokens_stand_side_by_side() {
        let sequence = interleave(Some(tokens(1)), tokens(2), tokens(3));
        let expected = [100, 200, 300, 101, 201, 301, 102, 202, 302].map(|x| x as f32);
        let second = expected.map(|x| x + 10.0);
        assert_eq!(numbers(sequence.clone()), [expected, second].concat());
        let all = observations(Steps::All, Conditioning::Return, 9);
        assert_eq!(numbers(all.of(sequence.clone())), numbers(tokens(2)));
        let newest = observations(Steps::Newest, Conditioning::Return, 9);
        assert_eq!(numbers(newest.of(sequence)), [202.0, 212.0]);
    }

    #[test]
    fn behaviour_cloning_has_two_tokens_a_step() {
        let sequence = interleave(None, tokens(2), tokens(3));
        let expected = [200, 300, 201, 301, 202, 302].map(|x| x as f32);
        assert_eq!(numbers(sequence.clone())[..6], expected);
        let all = observations(Steps::All, Conditioning::None, 6);
        assert_eq!(numbers(all.of(sequence.clone())), numbers(tokens(2)));
        let newest = observations(Steps::Newest, Conditioning::None, 6);
        assert_eq!(numbers(newest.of(sequence)), [202.0, 212.0]);
    }

    #[test]
    fn real_timesteps_share_equally() {
        let device = Device::flex();
        let got = numbers(shares(&[0, 2, 1], 3, &device, DType::F64));
        let sixth = (1.0f64 / 6.0) as f32;
        assert_eq!(got, [1.0, 1.0, 1.0, 0.0, 0.0, 1.0, 0.0, 1.0, 1.0].map(|x| x * sixth));
        assert_eq!(numbers(shares(&[2], 2, &device, DType::F32)), [0.0, 0.0], "nothing is real");
    }
}
