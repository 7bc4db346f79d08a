//! Recordings of metronomes that nobody recorded, and their spectrograms.
//!
//! A clip of 5.12 s at 4000 samples a second: clicks (a decaying sine between 500 and 1700 Hz, of
//! one pitch and length a clip) that follow each other at one tempo, the first within 0.02 s, each
//! a little too loud or too soft, in white noise. The spectrogram has a column every 40 ms: the
//! logarithm of the energy in 8 bands, by a Hann window of 80 ms. As in the Audio Spectrogram
//! Transformer (Gong et al. 2021) several columns are one token.

use std::f64::consts::TAU;

use overtone_core::seed::{self, Generator};
use overtone_model::init::standard_normal;
use rand::RngExt;

use crate::classifier::{Sequences, Split};

/// Beats a minute.
pub const TEMPI: std::ops::RangeInclusive<usize> = 50..=210;
/// Tempi of a bin.
pub const BIN: usize = 5;
/// Bins: the last one is [210, 214].
pub const BINS: usize = 33;

const SAMPLES_A_SECOND: f64 = 4000.0;
const HOP: usize = 160;
const COLUMNS: usize = 128;
const BANDS: usize = 8;
/// Columns of a token.
const PATCH: usize = 4;

/// The bin of a tempo.
pub fn bin(tempo: usize) -> usize {
    (tempo - TEMPI.start()) / BIN
}

/// The samples of a clip, and one window more.
fn clip(tempo: usize, generator: &mut Generator) -> Vec<f64> {
    let n = (COLUMNS + 1) * HOP;
    let noise = generator.random_range(0.02..0.1);
    let mut samples: Vec<f64> = (0..n).map(|_| noise * standard_normal(generator)).collect();
    let turns = generator.random_range(500.0..1700.0) / SAMPLES_A_SECOND;
    let decay = generator.random_range(0.005..0.03) * SAMPLES_A_SECOND;
    let period = 60.0 / tempo as f64 * SAMPLES_A_SECOND;
    let mut start = generator.random_range(0.0..0.02) * SAMPLES_A_SECOND;
    while start < n as f64 {
        let loudness = generator.random_range(0.6..1.0);
        for (i, sample) in samples.iter_mut().enumerate().skip(start.ceil() as usize) {
            let since = i as f64 - start;
            if since > 8.0 * decay {
                break;
            }
            *sample += loudness * (-since / decay).exp() * (TAU * turns * since).sin();
        }
        start += period;
    }
    samples
}

/// Waves of the bands' frequencies, two a band, under the window: `[frequency][cos, sin][sample]`.
fn waves() -> Vec<[Vec<f64>; 2]> {
    let length = 2 * HOP;
    let window = |i: usize| 0.5 - 0.5 * (TAU * i as f64 / length as f64).cos();
    let wave = |frequency: usize, shift: f64| -> Vec<f64> {
        // From 125 Hz to 2000 Hz in equal steps.
        let turns = (frequency + 1) as f64 / (2 * BANDS) as f64 / 2.0;
        (0..length).map(|i| window(i) * (TAU * (turns * i as f64 + shift)).cos()).collect()
    };
    (0..2 * BANDS).map(|frequency| [wave(frequency, 0.0), wave(frequency, 0.25)]).collect()
}

/// Log energies, column by column.
fn spectrogram(samples: &[f64], waves: &[[Vec<f64>; 2]]) -> Vec<f32> {
    let columns = samples.windows(2 * HOP).step_by(HOP).take(COLUMNS);
    let energy = |column: &[f64], both: &[Vec<f64>; 2]| -> f64 {
        let part = |wave: &Vec<f64>| column.iter().zip(wave).map(|(x, y)| x * y).sum::<f64>();
        both.iter().map(part).map(|part| part * part).sum()
    };
    columns
        .flat_map(|column| {
            let bands = waves.chunks(2).map(move |band| {
                let sum: f64 = band.iter().map(|both| energy(column, both)).sum();
                (sum + 1e-3).ln() as f32
            });
            bands.collect::<Vec<_>>()
        })
        .collect()
}

/// So many clips of every tempo, for training and for the test, standardized by the former.
pub fn draw(data_seed: u64, each: [usize; 2]) -> Split {
    let waves = waves();
    let draw = |role: &str, each: usize| {
        let generator = &mut seed::generator(data_seed, role);
        let mut all = Sequences {
            values: vec![],
            lengths: vec![],
            classes: vec![],
            time: COLUMNS / PATCH,
            width: PATCH * BANDS,
        };
        for tempo in TEMPI.flat_map(|tempo| std::iter::repeat_n(tempo, each)) {
            all.values.extend(spectrogram(&clip(tempo, generator), &waves));
            all.lengths.push(all.time);
            all.classes.push(bin(tempo));
        }
        all
    };
    let (mut train, mut test) = (draw("train", each[0]), draw("test", each[1]));
    let raw = train.clone();
    train.standardize(&raw);
    test.standardize(&raw);
    Split { train, test, n_classes: BINS }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bins_cover_the_tempi() {
        assert_eq!([50, 54, 55, 209, 210].map(bin), [0, 0, 1, 31, BINS - 1]);
        let split = draw(1, [2, 1]);
        assert_eq!((split.train.classes.len(), split.test.classes.len()), (322, 161));
        assert_eq!(split.train.values.len(), 322 * COLUMNS * BANDS);
        assert_eq!(split.test.classes.iter().filter(|bin| **bin == 32).count(), 1);
        assert_eq!(split, draw(1, [2, 1]));
        assert_ne!(split.test, draw(2, [2, 1]).test);
    }

    #[test]
    fn a_sine_is_loudest_in_its_band() {
        for (hertz, band) in [(250.0, 0), (875.0, 3), (1950.0, 7)] {
            let samples: Vec<f64> =
                (0..4 * HOP).map(|i| (TAU * hertz * i as f64 / SAMPLES_A_SECOND).sin()).collect();
            let columns = spectrogram(&samples, &waves());
            assert_eq!(columns.len(), 3 * BANDS);
            let loudest = (0..BANDS).max_by(|a, b| columns[*a].total_cmp(&columns[*b]));
            assert_eq!(loudest, Some(band), "{hertz}: {columns:?}");
        }
    }

    #[test]
    fn clicks_come_at_the_tempo() {
        // 120 beats a minute are a click every 12.5 columns; loud columns are that far apart.
        let columns = spectrogram(&clip(120, &mut seed::generator(1, "clip")), &waves());
        let energy: Vec<f32> = columns.chunks(BANDS).map(|column| column.iter().sum()).collect();
        let mean = energy.iter().sum::<f32>() / energy.len() as f32;
        let together = |lag: usize| -> f32 {
            let pairs = energy.iter().zip(&energy[lag..]);
            pairs.map(|(a, b)| (a - mean) * (b - mean)).sum::<f32>() / (COLUMNS - lag) as f32
        };
        let best = (8..20).max_by(|a, b| together(*a).total_cmp(&together(*b))).unwrap();
        assert!([12, 13].contains(&best), "{best}");
    }
}
