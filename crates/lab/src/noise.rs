//! Noise of four colours, framed as distributions (Fourier head, appendix B, Table 4).

use overtone_core::seed::{Generator, derive, derive_nth};
use overtone_eval::FourierTransform;
use overtone_model::init::standard_normal;
use rand::SeedableRng;

/// How the power of a noise depends on its frequency; from the smoothest to the sharpest.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Colour {
    /// Power ∝ 1/F².
    Brown,
    /// Power ∝ 1/F.
    Pink,
    /// The same power everywhere.
    White,
    /// Power ∝ F.
    Blue,
}

impl Colour {
    /// All of them, from the smoothest to the sharpest.
    pub const ALL: [Self; 4] = [Self::Brown, Self::Pink, Self::White, Self::Blue];

    /// Its name.
    pub fn name(self) -> &'static str {
        match self {
            Self::Brown => "brown",
            Self::Pink => "pink",
            Self::White => "white",
            Self::Blue => "blue",
        }
    }

    /// `e` in *amplitude* ∝ F^e: half the power's exponent. (The paper's text can be read as
    /// multiplying amplitudes by the power's factor; its numbers say otherwise.)
    pub fn exponent(self) -> f64 {
        match self {
            Self::Brown => -1.0,
            Self::Pink => -0.5,
            Self::White => 0.0,
            Self::Blue => 0.5,
        }
    }

    /// The generator of trial number `trial` under `seed`; every colour has its own.
    pub fn generator(self, seed: u64, trial: usize) -> Generator {
        Generator::seed_from_u64(derive_nth(derive(seed, self.name()), trial as u64))
    }

    /// A distribution over as many bins as `transform` is long.
    ///
    /// White Gaussian noise, its spectrum multiplied by `F^e` (frequency 0 by 1), shifted and
    /// scaled to [0, 1], divided by its sum.
    ///
    /// # Panics
    /// For fewer than two bins.
    pub fn pmf(self, transform: &FourierTransform, generator: &mut Generator) -> Vec<f64> {
        let n = transform.n();
        assert!(n > 1, "noise over {n} bins has no shape");
        let white: Vec<f64> = (0..n).map(|_| standard_normal(generator)).collect();
        let mut spectrum = transform.real(&white);
        for (k, value) in spectrum.iter_mut().enumerate().skip(1) {
            let factor = (k.min(n - k) as f64).powf(self.exponent());
            *value = value.map(|part| part * factor);
        }
        let mut wave = transform.inverse_real(&spectrum);
        let low = wave.iter().copied().fold(f64::INFINITY, f64::min);
        wave.iter_mut().for_each(|x| *x -= low);
        let sum: f64 = wave.iter().sum();
        wave.iter_mut().for_each(|x| *x /= sum);
        wave
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_is_a_distribution_and_its_seed_decides_it() {
        let transform = FourierTransform::new(96);
        for colour in Colour::ALL {
            let draw = |seed, trial| colour.pmf(&transform, &mut colour.generator(seed, trial));
            let pmf = draw(3, 0);
            assert!((pmf.iter().sum::<f64>() - 1.0).abs() < 1e-12);
            assert!(pmf.iter().all(|&p| p >= 0.0) && pmf.contains(&0.0));
            assert_eq!(pmf, draw(3, 0));
            assert_ne!(pmf, draw(3, 1));
            assert_ne!(pmf, draw(4, 0));
        }
    }

    #[test]
    fn power_falls_as_the_colour_says() {
        // The power of each octave over that of the one below it, averaged over trials: an
        // octave has twice the frequencies of the one below, at twice the F.
        let transform = FourierTransform::new(1024);
        for colour in Colour::ALL {
            let mut power = [0.0; 512];
            for trial in 0..200 {
                let pmf = colour.pmf(&transform, &mut colour.generator(1, trial));
                let spectrum = transform.real(&pmf);
                for (power, [re, im]) in power.iter_mut().zip(spectrum) {
                    *power += re * re + im * im;
                }
            }
            let octave = |from: usize| power[from..2 * from].iter().sum::<f64>();
            let expected = 2.0 * 2f64.powf(2.0 * colour.exponent());
            for from in [32, 64, 128] {
                let ratio = octave(2 * from) / octave(from);
                assert!((ratio / expected - 1.0).abs() < 0.1, "{colour:?} {from}: {ratio}");
            }
        }
    }
}
