//! Fourier and mixture heads that learn densities by their likelihood, without bins (Fourier
//! head, Appendix C.3: Table 7, Figures 9 and 11).
//!
//! As the released code does it: `x`, `y` and `z` themselves in single precision, Adam from
//! 1e-3 down a cosine to 1e-6, gradients cut to a norm of 0.1, 500 epochs of 125 steps.
//! The Fourier density is periodic: what few `z` lie beyond [-1, 1] it reads on the other side.

mod page;

pub use page::Metric;

use crate::density::GAMMAS;
use crate::toy::data::{Samples, Split};
use crate::toy::findings::{self, Example, TestSet, example_row};
use crate::toy::study::Settings;
use crate::toy::trainer::Rows;
use crate::toy::{Dataset, HeadKind, Trainer};

/// Points at which densities are compared, centres of as many bins; the reference's.
pub const GRID: usize = 1000;
/// The least probability of a bin of the grid, and the least density, that is counted.
const FLOOR: f64 = 1e-10;

/// The test set's verdict on a head.
#[derive(Clone, Debug, PartialEq)]
pub struct Evaluation {
    /// After this many epochs.
    pub epoch: usize,
    /// Mean KL(truth ‖ model) in nats, on the grid.
    pub kl: f64,
    /// `exp` of the mean of `-ln p(z)`: of a density, so it may be below 1.
    pub perplexity: f64,
}

/// What was found.
pub type Findings = findings::Findings<Metric>;

/// A test set and what its evaluations have in common.
#[derive(Debug)]
pub struct Test {
    train: Rows<f32>,
    inputs: Vec<f32>,
    /// In single precision, as the network saw its like.
    z: Vec<f64>,
    /// `[rows, GRID]`, in single precision: a thousand test rows are a million numbers.
    truth: Vec<f32>,
    /// Mean of `Σ_j t_j ln t_j`.
    certainty: f64,
    dataset: Dataset,
    example: usize,
    example_at: [f64; 2],
}

/// The heads on a dataset.
pub fn heads(settings: &Settings, dataset: Dataset) -> Vec<HeadKind> {
    let mut heads = vec![HeadKind::GmmLikelihood { components: dataset.components() }];
    for gamma in GAMMAS {
        let fourier = |&frequencies| HeadKind::FourierLikelihood { frequencies, gamma };
        heads.extend(settings.frequencies.iter().map(fourier));
    }
    heads
}

/// Trains and evaluates every head, on all cores; `progress` is called after each run.
pub fn run(settings: &Settings, progress: &(dyn Fn() + Sync)) -> Findings {
    findings::run(settings, progress)
}

impl TestSet<Evaluation> for Test {
    fn new(samples: &Samples, split: &Split) -> Self {
        let kind = HeadKind::GmmLikelihood { components: 1 };
        let Rows { inputs, values, .. } = Rows::new(samples, &split.test, kind);
        let at = |row: usize| [samples.rows[row][0], samples.rows[row][1]];
        let mut truth = Vec::with_capacity(split.test.len() * GRID);
        let mut certainty = 0.0;
        for &row in &split.test {
            let pmf = samples.dataset.truth(at(row), GRID).into_iter().map(|t| t.max(FLOOR));
            for t in pmf {
                certainty += t * t.ln();
                truth.push(t as f32);
            }
        }
        let example = example_row(samples, split);
        Self {
            train: Rows::new(samples, &split.train, kind),
            certainty: certainty / split.test.len() as f64,
            inputs,
            z: values.into_iter().map(|z: f32| z.into()).collect(),
            truth,
            dataset: samples.dataset,
            example,
            example_at: at(split.test[example]),
        }
    }

    fn training(&self) -> &Rows<f32> {
        &self.train
    }

    fn evaluate(&self, trainer: &mut Trainer<f32>, _: HeadKind, epoch: usize) -> Evaluation {
        let rows = self.z.len() as f64;
        let mut cross = 0.0;
        // A few rows at a time: of all, the grid would fill 8 MB.
        const ROWS: usize = 50;
        let grids = self.inputs.chunks(2 * ROWS).zip(self.truth.chunks(ROWS * GRID));
        for (inputs, truth) in grids {
            let probs = trainer.probs(inputs, GRID);
            let terms = probs.iter().zip(truth).map(|(p, t)| f64::from(*t) * p.max(FLOOR).ln());
            cross += terms.sum::<f64>();
        }
        let densities = trainer.densities(&self.inputs, &self.z).unwrap_or_default();
        let logs: f64 = densities.iter().map(|p| p.max(FLOOR).ln()).sum();
        Evaluation { epoch, kl: self.certainty - cross / rows, perplexity: (-logs / rows).exp() }
    }

    fn example(&self) -> Example {
        Example { at: self.example_at, truth: self.dataset.truth(self.example_at, GRID) }
    }

    fn learned(&self, trainer: &mut Trainer<f32>, _: HeadKind) -> Vec<f64> {
        trainer.probs(&self.inputs[2 * self.example..][..2], GRID)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::toy::findings::train;
    use crate::toy::study::Job;
    use overtone_core::seed;

    fn small() -> Settings {
        Settings {
            datasets: vec![Dataset::Gaussian],
            data_seeds: vec![2],
            weight_seeds: vec![7, 8],
            frequencies: vec![3],
            epochs: 2,
            evaluate_every: 1,
        }
    }

    #[test]
    fn a_mixture_with_the_true_numbers_is_nearly_perfect() {
        let test = Test::new(&Dataset::Gaussian.draw(1), &Split::default());
        let kind = HeadKind::GmmLikelihood { components: 1 };
        let mut trainer = Trainer::<f32>::new(kind, &mut seed::generator(1, "init"));
        // One hidden unit each for y and -y, through both layers: the mean is tanh(y), which is
        // y where y is small.
        let mut weights = [vec![0.0; 64 * 2], vec![0.0; 32 * 64], vec![0.0; 32]];
        (weights[0][1], weights[0][3]) = (1.0, -1.0);
        (weights[1][0], weights[1][64 + 1]) = (1.0, 1.0);
        (weights[2][0], weights[2][1]) = (1.0, -1.0);
        for (index, (weight, width)) in weights.iter().zip([64, 32, 1]).enumerate() {
            trainer.network.load(index, weight, &vec![0.0; width]);
        }
        trainer.network.set_free(&[0.1f64.exp_m1().ln()]);
        let near: Vec<usize> =
            (0..1000).filter(|&row| test.inputs[2 * row + 1].abs() < 0.1).collect();
        let part = Test {
            inputs: near.iter().flat_map(|&row| test.inputs[2 * row..][..2].to_vec()).collect(),
            z: near.iter().map(|&row| test.z[row]).collect(),
            truth: near.iter().flat_map(|&row| test.truth[row * GRID..][..GRID].to_vec()).collect(),
            certainty: near
                .iter()
                .flat_map(|&row| &test.truth[row * GRID..][..GRID])
                .map(|&t| f64::from(t) * f64::from(t).ln())
                .sum::<f64>()
                / near.len() as f64,
            ..test
        };
        let found = part.evaluate(&mut trainer, kind, 1);
        assert!(near.len() > 80 && found.kl.abs() < 1e-4, "{found:?}");
        // The entropy of N(·, 0.1²) is ln(0.1 √(2πe)): its exp is 0.4133.
        assert!((found.perplexity - 0.4133).abs() < 0.06, "{found:?}");
    }

    #[test]
    fn the_number_of_threads_changes_nothing() {
        let found = |threads: usize| {
            let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
            pool.install(|| run(&small(), &|| ()))
        };
        let first = found(1);
        assert_eq!(first, found(3));
        assert_eq!(first.runs.len(), findings::jobs::<Metric>(&small()).len());
        let kls: Vec<f64> = first.runs.iter().map(|run| run.last().kl).collect();
        assert!(kls.iter().all(|kl| kl.is_finite()) && kls[0] != kls[1], "{kls:?}");
    }

    #[test]
    fn heads_learn() {
        let settings = Settings { epochs: 30, evaluate_every: 10, ..small() };
        let test = Test::new(&Dataset::Gaussian.draw(2), &Split::default());
        for kind in heads(&settings, Dataset::Gaussian) {
            let job = Job { dataset: Dataset::Gaussian, kind, data_seed: 2, weight_seed: 1 };
            let run = train(job, &settings, &test);
            let (first, last) = (&run.evaluations[0], run.last());
            assert!(last.kl < first.kl && last.kl > 0.0, "{kind}: {run:?}");
            assert!(last.perplexity < first.perplexity, "{kind}");
        }
    }
}
