//! [`Score`]: how well predicted quantiles and densities fit returns that were not learned.

use super::head::BINS;

/// The quantiles that heads are asked for.
pub const LEVELS: [f64; 4] = [0.5, 0.9, 0.95, 0.99];

/// From here on, a quantile says that the return is at its upper end: a bin's width below 1.
/// Returns beyond 1 are told as 1, which a quantile of a density on [-1, 1] never reaches.
const END: f64 = 1.0 - 2.0 / BINS as f64;

/// What a head says about some steps.
#[derive(Clone, Debug, PartialEq)]
pub struct Answers {
    /// Of each step its return's log density, in nats; of a head with a distribution.
    pub log_density: Option<Vec<f64>>,
    /// Of each step the quantiles at [`LEVELS`].
    pub quantiles: Vec<Vec<f64>>,
}

/// A head's figures on some steps.
#[derive(Clone, Debug, PartialEq)]
pub struct Score {
    /// Mean log density of the returns, in nats for a unit of `z`.
    pub nats: Option<f64>,
    /// Mean pinball loss at each of [`LEVELS`].
    pub pinball: [f64; LEVELS.len()],
    /// Share of the returns that do not exceed the quantile, at each of [`LEVELS`]; of those at the
    /// upper end, that the quantile is there too.
    pub below: [f64; LEVELS.len()],
}

impl Score {
    /// Of answers to steps with these returns.
    pub fn of(answers: &Answers, told: &[f32]) -> Self {
        let n = told.len().max(1) as f64;
        let mean = |of: &dyn Fn(f64, f64) -> f64, level: usize| {
            let pairs = told.iter().zip(&answers.quantiles);
            pairs.map(|(&z, quantiles)| of(f64::from(z), quantiles[level])).sum::<f64>() / n
        };
        let places: [usize; LEVELS.len()] = std::array::from_fn(|level| level);
        Self {
            nats: answers.log_density.as_ref().map(|nats| nats.iter().sum::<f64>() / n),
            pinball: places.map(|level| mean(&|z, at| pinball(LEVELS[level], z, at), level)),
            below: places.map(|level| mean(&|z, at| f64::from(u8::from(is_below(z, at))), level)),
        }
    }

    /// The mean distance of the shares from what they should be.
    pub fn miscalibration(&self) -> f64 {
        let off = self.below.iter().zip(LEVELS).map(|(share, level)| (share - level).abs());
        off.sum::<f64>() / LEVELS.len() as f64
    }
}

/// Whether a return does not exceed a quantile; at the upper end, whether the quantile is there too.
fn is_below(z: f64, at: f64) -> bool {
    z <= at || (z >= 1.0 && at >= END)
}

/// What a `q`-quantile `at` costs where the return is `z`: least, on average, at the true one.
fn pinball(q: f64, z: f64, at: f64) -> f64 {
    let error = z - at;
    f64::max(q * error, (q - 1.0) * error)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn figures_by_hand() {
        let quantiles = vec![vec![0.0, 0.5, 0.75, 1.0]; 2];
        let answers = Answers { log_density: Some(vec![-1.0, 0.5]), quantiles };
        let score = Score::of(&answers, &[0.75, -0.5]);
        assert_eq!(score.nats, Some(-0.25));
        // Errors .75 and −.5 at the median, .25 and −1 at .9, 0 and −1.25, −.25 and −1.5.
        let expected = [0.3125, (0.225 + 0.1) / 2.0, 0.0625 / 2.0, 0.0175 / 2.0];
        for (got, expected) in score.pinball.iter().zip(expected) {
            assert!((got - expected).abs() < 1e-12, "{score:?}");
        }
        assert_eq!(score.below, [0.5, 0.5, 1.0, 1.0]);
        assert!((score.miscalibration() - (0.4 + 0.05 + 0.01) / 4.0).abs() < 1e-12);
    }

    #[test]
    fn a_return_at_the_end_does_not_exceed_a_quantile_there() {
        let score = |at: f64| {
            let answers = Answers { log_density: None, quantiles: vec![vec![at; 4]; 2] };
            Score::of(&answers, &[1.0, 0.0])
        };
        assert_eq!(score(0.999).below, [1.0; 4]);
        assert_eq!(score(0.98).below, [0.5; 4]);
        assert_eq!(score(-0.5).below, [0.0; 4]);
    }

    #[test]
    fn the_true_quantile_costs_least() {
        let cost = |at: f64| (0..1000).map(|i| pinball(0.95, f64::from(i), at)).sum::<f64>();
        assert!(cost(949.5) < cost(940.0) && cost(949.5) < cost(960.0));
    }
}
