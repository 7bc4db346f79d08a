//! Drawing futures value by value, many trajectories in one batch.

use burn::tensor::{Device, Tensor, activation};
use overtone_core::seed::Generator;
use overtone_model::head::{BinsHead, fourier};
use rand::RngExt;

use super::forecaster::{Forecaster, Tokens};

/// Trajectories of a batch.
const AT_ONCE: usize = 320;

/// The distributions of a head's rows, on the host, row after row.
///
/// The Fourier head's logits are `ln(y + κ)`; κ keeps the training loss finite, and would mix
/// in the uniform distribution with weight `mκ`, 1 % at 1024 bins: a value from anywhere in
/// the range every hundredth step. Here it is taken off again and `y` remains.
///
/// # Shapes
/// - `hidden`: `[rows, d_model]`; result `rows · bins` numbers, each row's sum is 1
pub fn distributions(head: &BinsHead, hidden: Tensor<2>) -> Vec<f32> {
    let logits = head.forward(hidden).logits;
    let probs = match head {
        BinsHead::Fourier(_) => {
            let density = (logits.exp() - fourier::KAPPA).clamp_min(0.0);
            density.clone() / density.sum_dim(1)
        }
        BinsHead::Linear(_) | BinsHead::Gmm(_) => activation::softmax(logits, 1),
    };
    probs.into_data().iter::<f32>().collect()
}

/// A bin drawn from a distribution.
pub fn draw(probs: &[f32], generator: &mut Generator) -> usize {
    let total: f64 = probs.iter().map(|p| f64::from(*p)).sum();
    let mut left = generator.random::<f64>() * total;
    let mut last = 0;
    for (bin, p) in probs.iter().enumerate().filter(|(_, p)| **p > 0.0) {
        last = bin;
        left -= f64::from(*p);
        if left < 0.0 {
            break;
        }
    }
    last
}

/// `samples` futures of every context, as bins: trajectory after trajectory, all of the first
/// context before those of the second, each of `horizon` bins.
///
/// `contexts` are rows of `context` tokens, with the length of each one's cycle.
pub fn trajectories(
    model: &Forecaster,
    contexts: &[Vec<i32>],
    seasons: &[usize],
    samples: usize,
    generator: &mut Generator,
) -> Vec<Vec<usize>> {
    let (bins, context, horizon) = (model.config.bins, model.config.context, model.config.horizon);
    let place = |i: usize| i / samples;
    let n = contexts.len() * samples;
    let mut all = Vec::with_capacity(n);
    for first in (0..n).step_by(AT_ONCE) {
        let part = first..n.min(first + AT_ONCE);
        let mut rows: Vec<Vec<i32>> = part.clone().map(|i| contexts[place(i)].clone()).collect();
        let seasons: Vec<usize> = part.map(|i| seasons[place(i)]).collect();
        for time in context..context + horizon {
            let hidden = model.hidden(&Tokens::new(&rows, &seasons, &Device::flex()));
            let last = hidden.narrow(1, time - 1, 1).squeeze_dim::<2>(1);
            let probs = distributions(&model.head, last);
            for (row, probs) in rows.iter_mut().zip(probs.chunks(bins)) {
                row.push(draw(probs, generator) as i32);
            }
        }
        let drawn = |row: &Vec<i32>| row[context..].iter().map(|&bin| bin as usize).collect();
        all.extend(rows.iter().map(drawn));
    }
    all
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::forecast::forecaster::ForecasterConfig;
    use overtone_core::seed;
    use overtone_model::head::{BinsHeadConfig, FourierHeadConfig, LinearConfig};

    fn model(head: BinsHeadConfig) -> Forecaster {
        let config = ForecasterConfig {
            bins: 11,
            context: 5,
            horizon: 3,
            d_model: 8,
            n_layers: 2,
            n_heads: 2,
            head,
        };
        let mut generator = seed::generator(1, "init");
        Forecaster::init(&config, &Device::flex(), &mut generator)
    }

    /// With a cycle of two values.
    fn tokens(rows: &[&[i32]]) -> Tokens {
        let rows: Vec<Vec<i32>> = rows.iter().map(|row| row.to_vec()).collect();
        Tokens::new(&rows, &vec![2; rows.len()], &Device::flex())
    }

    fn values<const D: usize>(tensor: Tensor<D>) -> Vec<f64> {
        tensor.into_data().iter::<f64>().collect()
    }

    #[test]
    fn draws_follow_the_distribution() {
        let probs = [0.1f32, 0.0, 0.5, 0.15, 0.25];
        let mut generator = seed::generator(2, "sampling");
        let n = 20_000;
        let mut counts = [0.0; 5];
        (0..n).for_each(|_| counts[draw(&probs, &mut generator)] += 1.0 / n as f64);
        // Five standard errors: at most 5·√(¼/n).
        let close = counts.iter().zip(probs).all(|(got, p)| (got - f64::from(p)).abs() < 0.018);
        assert!(close, "{counts:?}");
    }

    #[test]
    fn a_fourier_heads_floor_is_taken_off() {
        let model = model(BinsHeadConfig::Fourier(FourierHeadConfig::new(3)));
        let hidden = model.hidden(&tokens(&[&[1, 2, 3]])).reshape([3, 8]);
        let probs = distributions(&model.head, hidden.clone());
        let logits = values(model.head.forward(hidden).logits);
        assert_eq!(probs.len(), 3 * 11);
        for (row, logits) in probs.chunks(11).zip(logits.chunks(11)) {
            assert!((row.iter().sum::<f32>() - 1.0).abs() < 1e-5);
            for (p, logit) in row.iter().zip(logits) {
                assert!((f64::from(*p) - (logit.exp() - fourier::KAPPA)).abs() < 1e-6);
            }
        }
    }

    #[test]
    fn trajectories_are_seeded_and_belong_to_their_contexts() {
        let model = model(BinsHeadConfig::Linear(LinearConfig {}));
        let contexts = [vec![1, 2, 3, 4, 5], vec![9, 9, 0, 0, 9]];
        let draw = |seed| {
            let mut generator = seed::generator(seed, "sampling");
            trajectories(&model, &contexts, &[2, 2], 300, &mut generator)
        };
        let some = draw(1);
        assert_eq!((some.len(), some[0].len()), (600, 3));
        assert_eq!(some, draw(1));
        assert_ne!(some, draw(2));
        // The first values follow the distribution after their own context.
        let hidden = model.hidden(&tokens(&[&contexts[0], &contexts[1]])).narrow(1, 4, 1);
        let probs = distributions(&model.head, hidden.reshape([2, 8]));
        for (probs, some) in probs.chunks(11).zip(some.chunks(300)) {
            for (bin, p) in probs.iter().enumerate() {
                let share = some.iter().filter(|row| row[0] == bin).count() as f64 / 300.0;
                assert!((share - f64::from(*p)).abs() < 5.0 * (0.25f64 / 300.0).sqrt());
            }
        }
    }
}
