//! [`Shares`]: windows that are drawn from several recordings in given proportions.

use std::sync::Arc;

use overtone_core::seed;

use crate::error::DataError;
use crate::read::columns::Mixture;
use crate::sample::shuffle::scale;

/// The proportion of each recording among the drawn windows. Draws are independent of each other.
#[derive(Clone, Debug)]
pub(crate) struct Shares {
    /// Positions, those of the first recording first.
    positions: Arc<[u32]>,
    /// One past the last place of each recording's positions.
    ends: Vec<usize>,
    /// Sums of the first proportions; the last is 1.
    sums: Vec<f64>,
    seed: u64,
}

impl Shares {
    /// The shares of a mixture. `sources` is the recording of each position.
    ///
    /// # Errors
    /// [`DataError::Sampling`] if a recording has no position.
    pub fn new(sources: &[u16], mixture: &Mixture, run_seed: u64) -> Result<Self, DataError> {
        let shares = &mixture.shares;
        let mut positions: Vec<u32> = (0..sources.len() as u32).collect();
        positions.sort_by_key(|&position| sources[position as usize]);
        let end = |source: usize| {
            positions.partition_point(|&position| usize::from(sources[position as usize]) <= source)
        };
        let ends: Vec<usize> = (0..shares.len()).map(end).collect();
        for (source, &end) in ends.iter().enumerate() {
            if end == source.checked_sub(1).map_or(0, |before| ends[before]) {
                return Err(DataError::Sampling(format!(
                    "{} has no context left to draw its share of data.shares from",
                    mixture.paths[source].display()
                )));
            }
        }
        let total: f64 = shares.iter().map(|&share| f64::from(share)).sum();
        let mut sum = 0.0;
        let sums = shares.iter().map(|&share| {
            sum += f64::from(share) / total;
            sum
        });
        let (sums, seed) = (sums.collect(), seed::derive(run_seed, "shares"));
        Ok(Self { positions: positions.into(), ends, sums, seed })
    }

    /// The position of a draw, by its number.
    pub fn draw(&self, drawn: u64) -> usize {
        // 53 bits, which a double holds exactly.
        let part = (seed::derive_nth(self.seed, 2 * drawn) >> 11) as f64 / (1u64 << 53) as f64;
        let last = self.ends.len() - 1;
        let source = self.sums.iter().position(|&sum| part < sum).unwrap_or(last);
        let start = source.checked_sub(1).map_or(0, |before| self.ends[before]);
        let place = scale(seed::derive_nth(self.seed, 2 * drawn + 1), self.ends[source] - start);
        self.positions[start + place] as usize
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn mixture(shares: &[f32]) -> Mixture {
        let paths = ["a", "b", "c"].map(Into::into).into();
        Mixture { shares: shares.into(), paths, ..Mixture::default() }
    }

    #[test]
    fn recordings_have_their_shares_and_every_window_is_equally_likely() {
        let sources = [0, 1, 1, 0, 1, 1, 1, 1];
        let shares = Shares::new(&sources, &mixture(&[3.0, 1.0]), 7).unwrap();
        let mut counts = [0; 8];
        (0..80_000).for_each(|drawn| counts[shares.draw(drawn)] += 1);
        // Standard deviations of 137 and 57.
        for (n, source) in counts.into_iter().zip(sources) {
            let expected = [29_400..30_600, 3100..3570][usize::from(source)].clone();
            assert!(expected.contains(&n), "{counts:?}");
        }
    }

    #[test]
    fn a_recording_without_windows_is_refused() {
        let error = Shares::new(&[0, 0, 2], &mixture(&[1.0; 3]), 7).unwrap_err().to_string();
        assert!(error.contains("b has no context left"), "{error}");
    }
}
