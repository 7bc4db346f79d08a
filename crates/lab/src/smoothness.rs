//! What the smoothness metric says of noise and of square waves (Fourier head, appendix B:
//! Table 4, Figures 5 and 6).

use std::ops::RangeInclusive;

use overtone_eval::smoothness::spectral_entropy;
use overtone_eval::table::Table;
use overtone_eval::{FourierTransform, Pooled, Smoothness};
use rayon::iter::{IntoParallelIterator, IntoParallelRefIterator, ParallelIterator};

use crate::noise::Colour;
use crate::page::Page;
use crate::square_wave::square_waves;
use overtone_plot::{Line, LinePlot};

/// Points of the square waves; the paper's "sample rate of 2048".
pub const SQUARE_WAVE_LENGTH: usize = 2048;
/// Numbers of sines in a square wave, as in the paper's Figure 6.
pub const SINES: RangeInclusive<usize> = 1..=200;
/// Numbers of sines whose waves are drawn.
const DRAWN: [usize; 4] = [1, 4, 20, 100];

/// What to measure.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Settings {
    /// Seed of the noise.
    pub seed: u64,
    /// Noises of each colour; the paper has 1,000.
    pub trials: usize,
    /// Bins of each noise. The paper does not say; 4096 gives its numbers.
    pub length: usize,
}

/// A mean and a sample standard deviation.
pub type Spread = (f64, f64);

/// Smoothness and spectral entropy of a colour as the paper's Table 4 has them.
pub fn paper(colour: Colour) -> (Spread, Spread) {
    match colour {
        Colour::Brown => ((0.0003, 0.0001), (0.4516, 0.0894)),
        Colour::Pink => ((0.0017, 0.0002), (0.3878, 0.0603)),
        Colour::White => ((0.0034, 0.0003), (0.4266, 0.0614)),
        Colour::Blue => ((0.0038, 0.0003), (0.4191, 0.0583)),
    }
}

/// Noises of one colour.
#[derive(Clone, Debug, PartialEq)]
pub struct NoiseFinding {
    /// The colour.
    pub colour: Colour,
    /// Smoothness over all trials.
    pub smoothness: Pooled,
    /// Spectral entropy over all trials, in nats.
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

/// What was found.
#[derive(Clone, Debug, PartialEq)]
pub struct Findings {
    /// What was measured.
    pub settings: Settings,
    /// By colour, from the smoothest.
    pub noise: Vec<NoiseFinding>,
    /// By number of sines, from one.
    pub square_waves: Vec<SquareWaveFinding>,
}

/// Measures noise and square waves, on all cores.
///
/// # Panics
/// When `length` is less than 2.
pub fn run(settings: Settings) -> Findings {
    Findings { settings, noise: noise(settings), square_waves: squares(SQUARE_WAVE_LENGTH, SINES) }
}

/// Smoothness and spectral entropy of noise of every colour.
///
/// # Panics
/// When `length` is less than 2.
pub fn noise(settings: Settings) -> Vec<NoiseFinding> {
    let transform = FourierTransform::new(settings.length);
    let metric = Smoothness::new(settings.length);
    let finding = |colour: Colour| {
        let trials: Vec<(f64, f64)> = (0..settings.trials)
            .into_par_iter()
            .map(|trial| {
                let pmf = colour.pmf(&transform, &mut colour.generator(settings.seed, trial));
                (metric.l2(&pmf), spectral_entropy(&pmf) * std::f64::consts::LN_2)
            })
            .collect();
        NoiseFinding {
            colour,
            smoothness: trials.iter().map(|trial| trial.0).collect(),
            entropy: trials.iter().map(|trial| trial.1).collect(),
        }
    };
    Colour::ALL.map(finding).to_vec()
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

impl Findings {
    /// The noise table, the paper's numbers beside ours; with all digits for a file.
    pub fn noise_table(&self, all_digits: bool) -> Table {
        let mut table = Table::new(&[
            "noise",
            "smoothness",
            "sd",
            "paper",
            "paper's sd",
            "entropy",
            "entropy's sd",
            "paper's entropy",
            "its sd",
        ]);
        let number = |x: f64| if all_digits { x.to_string() } else { format!("{x:.5}") };
        for noise in &self.noise {
            let (smoothness, entropy) = paper(noise.colour);
            let mut row = vec![noise.colour.name().to_owned()];
            for (pooled, paper) in [(&noise.smoothness, smoothness), (&noise.entropy, entropy)] {
                row.push(number(pooled.mean));
                row.push(pooled.sd().map_or("-".into(), number));
                row.extend([paper.0, paper.1].map(|x| format!("{x:.4}")));
            }
            table.row(row);
        }
        table
    }

    /// Smoothness of every square wave, with all digits.
    pub fn square_wave_table(&self) -> Table {
        let mut table = Table::new(&["sines", "L2", "L1"]);
        for wave in &self.square_waves {
            table.row(vec![wave.sines.to_string(), wave.l2.to_string(), wave.l1.to_string()]);
        }
        table
    }

    /// What the square waves show, in two sentences.
    pub fn square_wave_text(&self) -> String {
        let falls = |of: fn(&SquareWaveFinding) -> f64| -> Vec<[usize; 2]> {
            let pairs = self.square_waves.windows(2).filter(|pair| of(&pair[1]) < of(&pair[0]));
            pairs.map(|pair| [pair[0].sines, pair[1].sines]).collect()
        };
        let say = |norm: &str, falls: &[[usize; 2]]| match falls {
            [] => format!("By {norm}, the metric rises with each added sine."),
            [[before, after], ..] => format!(
                "By {norm}, it falls at {} of {} steps, the first from {before} to {after} sines.",
                falls.len(),
                self.square_waves.len() - 1
            ),
        };
        say("L²", &falls(|wave| wave.l2)) + " " + &say("L¹", &falls(|wave| wave.l1))
    }

    /// The noises whose mean is more than one of the paper's standard deviations from the
    /// paper's mean, in words; empty when there is none.
    pub fn far_from_paper(&self) -> Vec<String> {
        let mut far = Vec::new();
        for noise in &self.noise {
            let (smoothness, entropy) = paper(noise.colour);
            let pairs = [
                ("smoothness", &noise.smoothness, smoothness),
                ("spectral entropy", &noise.entropy, entropy),
            ];
            for (what, pooled, (mean, sd)) in pairs {
                let off = (pooled.mean - mean).abs() / sd;
                let is_near = off <= 1.0;
                if !is_near {
                    far.push(format!("{} {what}: {off:.1} sd", noise.colour.name()));
                }
            }
        }
        far
    }

    /// A page about all of it; `command` is what was run.
    pub fn page(&self, command: &str) -> Page {
        let title = "Smoothness of noise and of square waves";
        let mut page = Page::new("smoothness", title, command);
        page.text(
            "The metric of the Fourier head's paper (eq. 3.1, 3.2; `crates/eval/src/smoothness.rs`) \
             on the signals of its appendix B.\n\
             Lower is smoother.",
        );
        self.noise_section(&mut page);
        self.square_wave_section(&mut page);
        page
    }

    fn noise_section(&self, page: &mut Page) {
        let Settings { seed, trials, length } = self.settings;
        page.heading("Noise (Table 4)");
        page.text(&format!(
            "{trials} noises of each colour over {length} bins, seed {seed}; ± is the sample \
             standard deviation over them.\n\
             The paper has 1,000 trials and does not state the number of bins; 4096 gives its \
             numbers.\n\
             Entropies are in nats, over the frequencies 0 to m/2: the paper writes log₂, and its \
             numbers are those of the natural logarithm."
        ));
        page.text(&self.noise_table(false).to_markdown());
        page.csv("smoothness-noise", &self.noise_table(true));
        let far = match self.far_from_paper() {
            far if far.is_empty() => {
                "Every mean lies within one of the paper's standard deviations of the paper's."
                    .to_owned()
            }
            far => format!("Outside one of the paper's standard deviations: {}.", far.join("; ")),
        };
        let rise = |of: fn(&NoiseFinding) -> f64| match self.noise.is_sorted_by_key(of) {
            true => "rises from brown to blue, as the noise gets sharper",
            false => "does not rise at each step from brown to blue",
        };
        page.text(&format!(
            "{far}\nThe metric {}; spectral entropy {}.",
            rise(|noise| noise.smoothness.mean),
            rise(|noise| noise.entropy.mean)
        ));
    }

    fn square_wave_section(&self, page: &mut Page) {
        page.heading("Square waves (Figures 5 and 6)");
        page.text(&format!(
            "{SQUARE_WAVE_LENGTH} points, 1 to {} sines.\n{}",
            SINES.end(),
            self.square_wave_text()
        ));
        let pick = [1, 2, 3, 4, 10, 20, 60, 80, 100, 150, 200];
        let mut picked = Table::new(&["sines", "L²", "L¹"]);
        for wave in self.square_waves.iter().filter(|wave| pick.contains(&wave.sines)) {
            let number = |x: f64| format!("{x:.6}");
            picked.row(vec![wave.sines.to_string(), number(wave.l2), number(wave.l1)]);
        }
        page.text(&picked.to_markdown());
        page.csv("square-waves", &self.square_wave_table());
        let drawn = self.square_waves.iter().filter(|wave| DRAWN.contains(&wave.sines));
        let waves = drawn.map(|wave| {
            let points = wave.pmf.iter().enumerate().map(|(j, &p)| [j as f64, p]).collect();
            Line::new(format!("{} sines, smoothness {:.6}", wave.sines, wave.l2), points)
        });
        page.plot(
            "square-waves",
            &LinePlot {
                title: "Square waves as distributions".into(),
                x_label: "bin".into(),
                y_label: "probability".into(),
                lines: waves.collect(),
                ..LinePlot::default()
            },
        );
        let curve = |of: fn(&SquareWaveFinding) -> f64| -> Vec<[f64; 2]> {
            self.square_waves.iter().map(|wave| [wave.sines as f64, of(wave)]).collect()
        };
        for (norm, name, points) in [
            ("L²", "square-waves-l2", curve(|wave| wave.l2)),
            ("L¹", "square-waves-l1", curve(|wave| wave.l1)),
        ] {
            page.plot(
                name,
                &LinePlot {
                    title: format!("Smoothness of square waves by {norm}"),
                    x_label: "sines".into(),
                    y_label: format!("smoothness, {norm}"),
                    lines: vec![Line::new("", points)],
                    ..LinePlot::default()
                },
            );
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn small() -> Findings {
        let settings = Settings { seed: 5, trials: 12, length: 256 };
        Findings { settings, noise: noise(settings), square_waves: squares(128, 1..=6) }
    }

    #[test]
    fn sharper_noise_and_more_sines_are_less_smooth() {
        let found = small();
        let noise: Vec<f64> = found.noise.iter().map(|noise| noise.smoothness.mean).collect();
        assert!(noise.is_sorted() && noise[0] > 0.0, "{noise:?}");
        let waves: Vec<f64> = found.square_waves.iter().map(|wave| wave.l2).collect();
        assert!(waves.is_sorted() && waves.len() == 6, "{waves:?}");
        assert!(found.square_wave_text().starts_with("By L², the metric rises with each"));
        let mut falling = found;
        falling.square_waves.swap(2, 3);
        let text = falling.square_wave_text();
        let expected = "By L², it falls at 1 of 5 steps, the first from 4 to 3 sines.";
        assert!(text.starts_with(expected), "{text}");
    }

    #[test]
    fn the_number_of_threads_changes_nothing() {
        let alone = rayon::ThreadPoolBuilder::new().num_threads(1).build().unwrap();
        let many = rayon::ThreadPoolBuilder::new().num_threads(3).build().unwrap();
        assert_eq!(alone.install(small), many.install(small));
    }

    #[test]
    fn what_is_far_from_the_paper_is_said() {
        let mut found = small();
        for noise in &mut found.noise {
            let (smoothness, entropy) = paper(noise.colour);
            noise.smoothness = Pooled { n: 2, mean: smoothness.0, squares: 0.0 };
            noise.entropy = Pooled { n: 2, mean: entropy.0 + 0.9 * entropy.1, squares: 0.0 };
        }
        assert_eq!(found.far_from_paper(), [""; 0]);
        found.noise[1].smoothness.mean += 0.0005;
        assert_eq!(found.far_from_paper(), ["pink smoothness: 2.5 sd"]);
        let mut broken = found.clone();
        broken.noise[0].entropy.mean = f64::NAN;
        assert_eq!(broken.far_from_paper().len(), 2, "what is no number is not near");
        assert!(found.page("x").markdown().contains("deviations: pink smoothness: 2.5 sd."));
    }

    #[test]
    fn every_file_is_written() {
        let folder = tempfile::tempdir().unwrap();
        let found = small();
        found.page("just lab smoothness seed=5").write(folder.path()).unwrap();
        let read = |name: &str| std::fs::read_to_string(folder.path().join(name)).unwrap();
        let page = read("smoothness.md");
        for part in ["just lab smoothness seed=5", "12 noises", "256 bins", "| brown |", "0.0034"] {
            assert!(page.contains(part), "no {part:?} in {page}");
        }
        assert_eq!(read("smoothness-noise.csv").lines().count(), 5);
        assert_eq!(read("square-waves.csv").lines().count(), 7);
        for name in ["square-waves.svg", "square-waves-l2.svg", "square-waves-l1.svg"] {
            assert!(page.contains(name) && read(name).ends_with("</svg>\n"));
        }
        assert!(read("square-waves.svg").contains("4 sines, smoothness"));
    }
}
