//! The Fourier head on top of any network: initialised from a seed, with a scalar loss.
//!
//! ```
//! use burn::tensor::{Device, Int, Tensor};
//! use overtone_model::head::{FourierHeadConfig, InitialCoefficients};
//!
//! // A density of 3 frequencies on [-1, 1], evaluated at 5 bins; uniform before training.
//! let config = FourierHeadConfig {
//!     initial: InitialCoefficients::UniformDensity,
//!     ..FourierHeadConfig::new(3)
//! };
//! let device = Device::flex();
//! let head = config.seeded(8, 5, &device, 7);
//!
//! let hidden = Tensor::<2>::ones([2, 8], &device); // the network's output for two inputs
//! assert_eq!(head.logits(hidden.clone()).dims(), [2, 5]);
//! let bins = Tensor::<1, Int>::from_data([0, 4], &device);
//! let loss = head.mean_loss(hidden.clone(), bins).into_scalar::<f32>();
//! assert!((loss - 5f32.ln()).abs() < 1e-6);
//! assert!((head.densities(hidden)[0].pdf(0.3) - 0.5).abs() < 1e-9);
//!
//! // With so few frequencies, the probability of a bin cannot exceed 4/5.
//! assert_eq!(config.largest_probability(5), 0.8);
//! ```

use burn::tensor::{Device, Int, Tensor};
use overtone_core::seed;
use overtone_kernels::affine;

use super::{BinsOptions, FourierDensity, FourierHead, FourierHeadConfig, OnBins, bins_loss};
use crate::parameters::init::Init;

impl FourierHeadConfig {
    /// A head on `n_bins` bins with weights drawn from `seed`.
    ///
    /// # Panics
    /// When the options are not valid (see [`validate`](BinsOptions::validate)).
    pub fn seeded(&self, d_model: usize, n_bins: usize, device: &Device, seed: u64) -> FourierHead {
        if let Err(error) = self.validate(n_bins) {
            panic!("{error}");
        }
        let generator = &mut seed::generator(seed, "init");
        self.init(d_model, n_bins, &mut Init::drawn(device, generator))
    }

    /// The maximum probability of one of `n_bins` bins before κ is added: `(N + 1) / n_bins`, or 1.
    ///
    /// With `N < n_bins` the N + 1 exponentials are orthogonal on the bin centres, so
    /// `Σ_j |A(b_j)|² = n_bins Σ_l |a_l|²`, while `|A(b_j)|² ≤ (N + 1) Σ_l |a_l|²` (Cauchy–Schwarz).
    /// From `N = n_bins − 1` on there is no limit. With [half of the
    /// period](super::Domain::HalfRange), the exponentials are not orthogonal, and the limit does
    /// not hold.
    pub fn largest_probability(&self, n_bins: usize) -> f64 {
        ((self.frequencies + 1) as f64 / n_bins as f64).min(1.0)
    }
}

impl FourierHead {
    /// Logits of the bins.
    ///
    /// # Shapes
    /// - `hidden`: `[rows, d_model]`; result: `[rows, n_bins]`
    pub fn logits(&self, hidden: Tensor<2>) -> Tensor<2> {
        self.forward(hidden).logits
    }

    /// Mean cross-entropy in nats, plus the mean regulariser if γ is not 0: the loss, `[1]`.
    ///
    /// # Shapes
    /// - `hidden`: `[rows, d_model]`
    /// - `bins`: `[rows]`, each row's true bin
    pub fn mean_loss(&self, hidden: Tensor<2>, bins: Tensor<1, Int>) -> Tensor<1> {
        let loss = bins_loss(self.forward(hidden), bins, None);
        match loss.regularization {
            Some(regularization) => loss.rows.mean() + regularization.mean(),
            None => loss.rows.mean(),
        }
    }

    /// The density of each row on [-1, 1]; the logits are its values at the bin centres.
    ///
    /// # Shapes
    /// - `hidden`: `[rows, d_model]`
    pub fn densities(&self, hidden: Tensor<2>) -> Vec<FourierDensity> {
        let coefficients = affine(hidden, self.weight.val(), self.bias.val());
        let values: Vec<f64> = coefficients.into_data().iter::<f64>().collect();
        let rows = values.chunks_exact(2 * (self.frequencies + 1));
        rows.map(|row| FourierDensity::new(row, self.domain)).collect()
    }
}
