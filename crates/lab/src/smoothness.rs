//! The smoothness metric on noise and on square waves (Fourier head, appendix B: Table 4,
//! Figures 5 and 6).

use std::ops::RangeInclusive;

use overtone_eval::smoothness::spectral_entropy;
use overtone_eval::table::Table;
use overtone_eval::{FourierTransform, Pooled, Smoothness};
use overtone_plot::{Line, LinePlot};
use rayon::iter::{IntoParallelIterator, IntoParallelRefIterator, ParallelIterator};

use crate::noise::Colour;
use crate::report::{LINEAR, Report, plot, table};
use crate::square_wave::square_waves;
use crate::study::{Study, StudyError, whole};

/// Points of the square waves; the paper's "sample rate of 2048".
const SQUARE_WAVE_LENGTH: usize = 2048;
/// Numbers of sines in a square wave, as in the paper's Figure 6.
const SINES: RangeInclusive<usize> = 1..=200;
/// Numbers of sines whose waves are drawn.
const DRAWN: [usize; 4] = [1, 4, 20, 100];

/// The smoothness metric on noise and square waves (Fourier head: Table 4; Figures 5, 6)
#[derive(Clone, Copy, Debug, clap::Args)]
pub struct SmoothnessStudy {
    /// Seed of the noise.
    #[arg(long, default_value = "1")]
    pub seed: u64,
    /// Noises of each colour, as many as in the paper.
    #[arg(long, default_value = "1000", value_parser = whole(1..=1_000_000))]
    pub trials: usize,
    /// Bins of each noise. The paper does not say; this gives its numbers.
    #[arg(long, default_value = "4096", value_parser = whole(2..=65_536))]
    pub length: usize,
}

/// Noises of one colour.
#[derive(Clone, Debug, PartialEq)]
pub struct NoiseFinding {
    /// The colour.
    pub colour: Colour,
    /// Smoothness over all trials.
    pub smoothness: Pooled,
    /// Spectral entropy over all trials, in nats: the paper writes log₂, and its numbers are those
    /// of the natural logarithm.
    pub entropy: Pooled,
}

/// A square wave.
#[derive(Clone, Debug, PartialEq)]
pub struct SquareWaveFinding {
    /// Number of sines.
    pub sines: usize,
    /// Smoothness by the L² norm.
    pub l2: f64,
    /// Smoothness by the L¹ norm.
    pub l1: f64,
    /// The distribution.
    pub pmf: Vec<f64>,
}

/// Noise by colour from the smoothest, and square waves by number of sines.
#[derive(Clone, Debug, PartialEq)]
pub struct Results {
    /// By colour.
    pub noise: Vec<NoiseFinding>,
    /// By number of sines, from one.
    pub square_waves: Vec<SquareWaveFinding>,
}

/// Smoothness and spectral entropy of a colour, mean and deviation, in the paper's Table 4.
fn paper(colour: Colour) -> [[f64; 2]; 2] {
    match colour {
        Colour::Brown => [[0.0003, 0.0001], [0.4516, 0.0894]],
        Colour::Pink => [[0.0017, 0.0002], [0.3878, 0.0603]],
        Colour::White => [[0.0034, 0.0003], [0.4266, 0.0614]],
        Colour::Blue => [[0.0038, 0.0003], [0.4191, 0.0583]],
    }
}

/// Smoothness of square waves at `length` points, for every number of sines in `sines`.
///
/// # Panics
/// When `length` is less than 2.
pub fn squares(length: usize, sines: RangeInclusive<usize>) -> Vec<SquareWaveFinding> {
    let metric = Smoothness::new(length);
    let waves: Vec<(usize, Vec<f64>)> = (1..=*sines.end()).zip(square_waves(length)).collect();
    waves
        .par_iter()
        .filter(|(n, _)| sines.contains(n))
        .map(|(n, pmf)| SquareWaveFinding {
            sines: *n,
            l2: metric.l2(pmf),
            l1: metric.l1(pmf),
            pmf: pmf.clone(),
        })
        .collect()
}

impl SmoothnessStudy {
    /// Smoothness and spectral entropy of noise of a colour.
    pub fn noise(&self, colour: Colour) -> NoiseFinding {
        let transform = FourierTransform::new(self.length);
        let metric = Smoothness::new(self.length);
        let trials: Vec<(f64, f64)> = (0..self.trials)
            .into_par_iter()
            .map(|trial| {
                let pmf = colour.pmf(&transform, &mut colour.generator(self.seed, trial));
                (metric.l2(&pmf), spectral_entropy(&pmf) * std::f64::consts::LN_2)
            })
            .collect();
        NoiseFinding {
            colour,
            smoothness: trials.iter().map(|trial| trial.0).collect(),
            entropy: trials.iter().map(|trial| trial.1).collect(),
        }
    }
}

impl Study for SmoothnessStudy {
    const NAME: &'static str = "smoothness";
    type Results = Results;

    fn units(&self) -> usize {
        Colour::ALL.len() + 1
    }

    fn run(&self, tick: &(dyn Fn() + Sync)) -> Result<Results, StudyError> {
        let noise = Colour::ALL.map(|colour| {
            let finding = self.noise(colour);
            tick();
            finding
        });
        let square_waves = squares(SQUARE_WAVE_LENGTH, SINES);
        tick();
        Ok(Results { noise: noise.to_vec(), square_waves })
    }

    fn report(&self, results: &Results) -> Report {
        let mut report = Report::default();
        report.table("smoothness-noise", results.noise_table());
        let mut waves = table("sines | L² | L¹");
        for wave in &results.square_waves {
            let numbers = [wave.l2, wave.l1].map(|x| format!("{x:.6}"));
            waves.row([wave.sines.to_string()].into_iter().chain(numbers).collect());
        }
        report.csv("square-waves", waves);
        report.plot("square-waves", results.waves());
        for (norm, name, of) in [
            ("L²", "square-waves-l2", (|wave| wave.l2) as fn(&SquareWaveFinding) -> f64),
            ("L¹", "square-waves-l1", |wave| wave.l1),
        ] {
            let points = results.square_waves.iter().map(|wave| [wave.sines as f64, of(wave)]);
            let curve = plot(
                format!("Smoothness of square waves by {norm}"),
                ["sines", &format!("smoothness, {norm}")],
                LINEAR,
                vec![Line::new("", points.collect())],
            );
            report.plot(name, curve);
        }
        report
    }
}

impl Results {
    /// The noise, the paper's numbers next to ours.
    fn noise_table(&self) -> Table {
        let mut table = table(
            "noise | smoothness | sd | paper | paper's sd | entropy | entropy's sd | paper's \
         entropy | its sd",
        );
        for noise in &self.noise {
            let mut row = vec![noise.colour.name().to_owned()];
            for (pooled, paper) in [noise.smoothness, noise.entropy].iter().zip(paper(noise.colour))
            {
                row.push(format!("{:.5}", pooled.mean));
                row.push(pooled.sd().map_or("-".into(), |sd| format!("{sd:.5}")));
                row.extend(paper.map(|x| format!("{x:.4}")));
            }
            table.row(row);
        }
        table
    }

    fn waves(&self) -> LinePlot {
        let drawn = self.square_waves.iter().filter(|wave| DRAWN.contains(&wave.sines));
        let lines = drawn.map(|wave| {
            let points = wave.pmf.iter().enumerate().map(|(j, &p)| [j as f64, p]).collect();
            Line::new(format!("{} sines, smoothness {:.6}", wave.sines, wave.l2), points)
        });
        plot("Square waves as distributions", ["bin", "probability"], LINEAR, lines.collect())
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "tests")]
mod tests {
    use super::*;

    #[test]
    fn sharper_noise_and_more_sines_are_less_smooth() {
        let study = SmoothnessStudy { seed: 1, trials: 20, length: 512 };
        let results = |threads: usize| {
            let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
            pool.install(|| study.run(&|| ()).unwrap())
        };
        let first = results(1);
        assert_eq!(first, results(3));
        assert!(first.noise.is_sorted_by_key(|noise| noise.smoothness.mean));
        let [few, many] = [0, 199].map(|i| &first.square_waves[i]);
        assert!(few.l2 < many.l2 && few.l1 < many.l1);
        let names: Vec<String> =
            study.report(&first).tables().map(|(name, _)| name.to_owned()).collect();
        assert_eq!(names, ["smoothness-noise"]);
    }
}
