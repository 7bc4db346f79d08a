//! Square waves of few and many sines, framed as distributions (Fourier head, appendix B,
//! Figures 5 and 6).

use std::f64::consts::PI;

/// Distributions over `length` bins made of 1, 2, 3, … sines:
/// `(4/π) Σ_{n = 1, 3, 5, …} sin(nπx/4)/n` at `length` points from x = 21 to 31, negative
/// values set to 0, divided by the sum.
pub fn square_waves(length: usize) -> impl Iterator<Item = Vec<f64>> {
    let points: Vec<f64> =
        (0..length).map(|j| 21.0 + j as f64 * 10.0 / (length - 1) as f64).collect();
    (1..).step_by(2).scan(vec![0.0; length], move |wave, n| {
        let n = f64::from(n);
        for (height, x) in wave.iter_mut().zip(&points) {
            *height += 4.0 / PI * (n * PI * x / 4.0).sin() / n;
        }
        let above: Vec<f64> = wave.iter().map(|height| height.max(0.0)).collect();
        let sum: f64 = above.iter().sum();
        Some(above.iter().map(|height| height / sum).collect())
    })
}

#[cfg(test)]
mod tests {
    use super::square_waves;

    #[test]
    fn many_sines_make_a_square() {
        let length = 2048;
        let wave = square_waves(length).nth(199).unwrap();
        assert!((wave.iter().sum::<f64>() - 1.0).abs() < 1e-12);
        // From 21 to 31 the sign is −, + from x = 24, − from 28: four tenths are above.
        let height = 1.0 / (0.4 * length as f64);
        let at = |x: f64| wave[((x - 21.0) / 10.0 * (length - 1) as f64).round() as usize];
        for x in [24.5, 26.0, 27.5] {
            assert!((at(x) / height - 1.0).abs() < 0.02, "x={x}: {}", at(x));
        }
        for x in [21.5, 23.5, 28.5, 30.5] {
            assert!(at(x) < 0.02 * height, "x={x}: {}", at(x));
        }
    }
}
