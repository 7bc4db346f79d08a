//! The Fourier head: a density on [-1, 1] with N frequencies, evaluated at the bin centres (Gillman
//! et al. 2025, Algorithm 1).
//!
//! One affine layer gives `a_l = u_l + i v_l`, `l = 0 ..= N`. With `A(z) = Σ_l a_l e^{ilπz}` the
//! density is `p(z) = |A(z)|² / (2 Σ_l |a_l|²)`: non-negative by construction. The paper's
//! Algorithm 1 computes the same density through the autocorrelation of `a`. This form needs two
//! small matrix products with constant cosine and sine tables, and no complex arithmetic. As in the
//! released code, `A(z)` is the complex conjugate's mirror image of Algorithm 1's.
//!
//! Differs from the released code:
//! - The regulariser is added to the loss (there it is computed but not used).
//! - All-zero coefficients give the uniform distribution (there: NaN).

use burn::{
    module::{Module, Param},
    tensor::{DType, Device, Tensor},
};
use overtone_kernels::{affine, stored::constant};

use super::{
    ActionOrder, BinsOptions, HeadOutput, OnBins, OrderConfig, bin_centres,
    fourier_options::{Domain, InitialCoefficients, Regularizer},
};
use crate::{
    error::{ModelError, check_counts, check_not_negative},
    parameters::init::Init,
};

/// Added to each probability before its logarithm is a logit (the reference's
/// `const_inverse_softmax`). After the softmax this mixes in the uniform distribution with
/// weight `m·κ/(1 + m·κ)`, 0.018 % for 18 actions.
pub const KAPPA: f64 = 1e-5;

/// Prevents 0/0 when every coefficient is zero. It is far below any squared amplitude that changes
/// a probability. It is far enough above the smallest `f32` that the gradient, which divides by its
/// square, is zero there and not NaN.
pub(super) const TINY: f64 = 1e-18;

options! {
    /// Options of the Fourier head.
    pub struct FourierHeadConfig {
        /// Highest frequency N; 14 is the paper's best on Seaquest. With the periodic domain, the
        /// probability of a bin of m cannot exceed (N + 1)/m.
        pub frequencies: usize = 14,
        /// Weight of the smoothness regulariser in the loss; the paper's 1e-6. 0 turns it off.
        pub gamma: f64 = 1e-6,
        /// Formula that gamma multiplies (heads on bins only). reference: the released code's
        /// regulariser. paper: the printed formula, 36 times smaller for 18 actions.
        pub regularizer: Regularizer = Regularizer::default(),
        /// Order of discrete actions along [-1, 1]. compass: Atari's actions around the compass, so
        /// that neighbours have similar meanings. environment: the simulator's order.
        pub action_order: OrderConfig = OrderConfig::default(),
        /// periodic: the first and last action (or -1 and 1) are neighbours, as in the reference.
        /// half_range: they are not, which suits continuous actions.
        pub domain: Domain = Domain::default(),
        /// Initial coefficients. normal: random with a standard deviation of 0.02, as in the
        /// reference; {std = 0.01}: with another one. {fan_in = {weight_divisor = 1000,
        /// bias_divisor = 10}}: PyTorch's default for a linear layer, divided. uniform: exactly the
        /// uniform distribution, which no scaling of random coefficients gives.
        pub initial: InitialCoefficients = InitialCoefficients::default(),
    }
}

impl FourierHeadConfig {
    /// N frequencies without a regulariser, and the other defaults.
    pub fn new(frequencies: usize) -> Self {
        Self { frequencies, gamma: 0.0, ..Self::default() }
    }
}

impl BinsOptions for FourierHeadConfig {
    type Head = FourierHead;

    fn size(&self) -> Option<usize> {
        Some(self.frequencies)
    }

    fn validate(&self, n: usize) -> Result<(), ModelError> {
        check_series(self.frequencies, self.gamma)?;
        self.initial.validate()?;
        self.action_order.check(n)
    }

    /// The affine layer is [initialised by the options](InitialCoefficients).
    fn init(&self, d_model: usize, n: usize, init: &mut Init<'_>) -> FourierHead {
        let (weight, bias) = self.initial.draw(d_model, 1, self.frequencies, init);
        FourierHead {
            weight,
            bias,
            frequencies: self.frequencies,
            n_actions: n,
            gamma: self.gamma,
            regularizer: self.regularizer,
            action_order: self.action_order.bins(),
            domain: self.domain,
        }
    }

    fn order(&mut self) -> Option<&mut OrderConfig> {
        Some(&mut self.action_order)
    }
}

/// # Errors
/// When there are 0 or too many frequencies, or γ is negative or infinite.
pub(super) fn check_series(frequencies: usize, gamma: f64) -> Result<(), ModelError> {
    check_counts(&[("head.frequencies", frequencies)])?;
    check_not_negative("head.gamma", gamma)
}

/// See the [module's documentation](self).
#[derive(Module, Debug)]
pub struct FourierHead {
    /// `[d_model, 2(N+1)]`: the N+1 real parts, then the N+1 imaginary parts.
    pub weight: Param<Tensor<2>>,
    /// `[2(N+1)]`
    pub bias: Param<Tensor<1>>,
    /// N.
    pub frequencies: usize,
    /// Number of bins.
    pub n_actions: usize,
    /// γ.
    pub gamma: f64,
    /// The formula that γ multiplies.
    #[module(skip)]
    pub regularizer: Regularizer,
    /// The order of the bins.
    #[module(skip)]
    pub action_order: Option<ActionOrder>,
    /// Mapping of [-1, 1] to the period.
    #[module(skip)]
    pub domain: Domain,
}

impl OnBins for FourierHead {
    fn forward(&self, hidden: Tensor<2>) -> HeadOutput {
        let coefficients = affine(hidden, self.weight.val(), self.bias.val());
        let order = self.action_order.as_ref().map(ActionOrder::bin_of);
        HeadOutput {
            logits: logits(coefficients.clone(), self.n_actions, order, self.domain),
            regularization: (self.gamma > 0.0).then(|| {
                roughness(coefficients) * (self.gamma * self.regularizer.scale(self.n_actions))
            }),
        }
    }

    fn action_order(&self) -> Option<&ActionOrder> {
        self.action_order.as_ref()
    }
}

/// `ln(y_j + κ)` with `y_j = |A(b_j)|² / Σ_i |A(b_i)|²` at the bin centres `b_j = -1 + (2j + 1)/m`,
/// or at `b_j/2` with half of the period.
///
/// # Shapes
/// - `coefficients`: `[rows, 2(N+1)]`, real parts first
/// - `bin_of`: the bin of each column of the result; `None`: columns are bins
/// - result: `[rows, m]`
pub fn logits(
    coefficients: Tensor<2>,
    m: usize,
    bin_of: Option<&[usize]>,
    domain: Domain,
) -> Tensor<2> {
    let centres: Vec<f64> =
        bin_centres(m, bin_of).into_iter().map(|b| b * domain.stretch()).collect();
    let (re, im) = amplitudes(&coefficients, &centres);
    let power = re.square() + im.square() + TINY;
    let total = power.clone().sum_dim(1);
    (power / total + KAPPA).log()
}

/// `Σ_{k=1}^{N} k²|c_k|²` for each row, with `c` the autocorrelation of the coefficients
/// (not divided by `c_0`).
///
/// By Parseval this is `1/(2π²)` times the mean over a period of `(d|A|²/dz)²`, and that mean
/// is exact on a grid of `2N + 1` points.
///
/// # Shapes
/// - `coefficients`: `[rows, 2(N+1)]`, real parts first; result `[rows]`
pub fn roughness(coefficients: Tensor<2>) -> Tensor<1> {
    let n = coefficients.dims()[1] / 2 - 1;
    let points = 2 * n + 1;
    let grid: Vec<f64> = (0..points).map(|j| -1.0 + 2.0 * j as f64 / points as f64).collect();
    // A'(z) = Σ a_l · ilπ e^{ilπz}: the same tables, row l times lπ; the factor i swaps parts.
    let (re_slope, im_slope) = tables(n, &grid, |l| l as f64 * std::f64::consts::PI);
    let (re, im) = amplitudes(&coefficients, &grid);
    let (re_of_slope, im_of_slope) = evaluate(&coefficients, &re_slope, &im_slope);
    // d|A|²/dz = 2 Re(conj(A) A') with A' = i·(re_of_slope + i·im_of_slope).
    let derivative = (im * re_of_slope - re * im_of_slope) * 2.0;
    let mean = derivative.square().mean_dim(1).squeeze_dim::<1>(1);
    // Multiplied by the reciprocal, because burn 0.22 rounds the divisor to f32 in `div_scalar`'s
    // backward.
    mean * (2.0 * std::f64::consts::PI * std::f64::consts::PI).recip()
}

/// A table of `f(l)·e^{ilπz}`, in two blocks that multiply a row of coefficients.
struct Table(Vec<f64>, [usize; 2]);

/// Tables `[2(N+1), points]` with `[u | v] · re = Re Σ f(l) a_l e^{ilπz}` and `[u | v] · im` its
/// imaginary part.
fn tables(n: usize, points: &[f64], f: impl Fn(usize) -> f64) -> (Table, Table) {
    let angle = |l: usize, z: f64| l as f64 * std::f64::consts::PI * z;
    let block = |wave: &dyn Fn(f64) -> f64| -> Vec<f64> {
        (0..=n)
            .flat_map(|l| points.iter().map(move |&z| (l, z)))
            .map(|(l, z)| f(l) * wave(angle(l, z)))
            .collect()
    };
    let cos = block(&f64::cos);
    let sin = block(&f64::sin);
    let minus_sin: Vec<f64> = sin.iter().map(|s| -s).collect();
    let shape = [2 * (n + 1), points.len()];
    (Table([cos.clone(), minus_sin].concat(), shape), Table([sin, cos].concat(), shape))
}

/// Real and imaginary part of `A` at each of `points`, `[rows, points]`.
pub(super) fn amplitudes(coefficients: &Tensor<2>, points: &[f64]) -> (Tensor<2>, Tensor<2>) {
    let (re, im) = tables(coefficients.dims()[1] / 2 - 1, points, |_| 1.0);
    evaluate(coefficients, &re, &im)
}

fn evaluate(coefficients: &Tensor<2>, re: &Table, im: &Table) -> (Tensor<2>, Tensor<2>) {
    let (device, dtype) = (coefficients.device(), coefficients.dtype());
    let load = |table: &Table| constant_table(table, &device, dtype);
    (coefficients.clone().matmul(load(re)), coefficients.clone().matmul(load(im)))
}

fn constant_table(table: &Table, device: &Device, dtype: DType) -> Tensor<2> {
    constant(table.0.clone(), table.1, device, dtype)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::head::BinsHeadConfig;
    use burn::tensor::TensorData;

    fn f64_tensor(values: Vec<f64>, shape: [usize; 2]) -> Tensor<2> {
        Tensor::from_data(TensorData::new(values, shape), (&Device::flex(), DType::F64))
    }

    /// `Σ_k k²|c_k|²` from the definition of the autocorrelation.
    fn roughness_by_definition(u: &[f64], v: &[f64]) -> f64 {
        (1..u.len())
            .map(|k| {
                let (mut re, mut im) = (0.0, 0.0);
                for l in 0..u.len() - k {
                    // a_{l+k} · conj(a_l)
                    re += u[l + k] * u[l] + v[l + k] * v[l];
                    im += v[l + k] * u[l] - u[l + k] * v[l];
                }
                (k * k) as f64 * (re * re + im * im)
            })
            .sum()
    }

    #[test]
    fn roughness_is_the_double_sum() {
        let u = [0.3, -1.2, 0.7, 2.0];
        let v = [0.1, 0.4, -0.9, 0.6];
        let row = f64_tensor([u, v].concat(), [1, 8]);
        let got: f64 = roughness(row).into_scalar();
        let expected = roughness_by_definition(&u, &v);
        assert!((got - expected).abs() < 1e-12 * expected, "{got} against {expected}");
    }

    #[test]
    fn zero_coefficients_are_uniform_and_finite() {
        let out = logits(Tensor::zeros([2, 8], &Device::flex()), 5, None, Domain::Periodic);
        for logit in out.into_data().iter::<f32>() {
            assert!((logit - (0.2f32 + 1e-5).ln()).abs() < 1e-6, "{logit}");
        }
    }

    #[test]
    fn the_gradient_at_zero_coefficients_is_zero() {
        let zeros = Tensor::<2>::zeros([1, 8], &Device::flex().autodiff()).require_grad();
        let gradients =
            logits(zeros.clone(), 5, None, Domain::Periodic).slice([0..1, 0..1]).sum().backward();
        let gradient = zeros.grad(&gradients).map(Tensor::into_data);
        let gradient: Vec<f32> = gradient.iter().flat_map(|g| g.iter::<f32>()).collect();
        assert_eq!(gradient, [0.0; 8]);
    }

    #[test]
    fn a_single_coefficient_is_uniform() {
        // Only a_0: |A| is constant.
        let out = logits(f64_tensor(vec![0.7, 0.0, -0.2, 0.0], [1, 4]), 3, None, Domain::HalfRange);
        for logit in out.into_data().iter::<f64>() {
            assert!((logit - (1.0f64 / 3.0 + 1e-5).ln()).abs() < 1e-12);
        }
    }

    /// With half of the period, m bins are the middle ones of 2m on the whole period.
    #[test]
    fn half_the_range_is_the_middle_of_twice_the_bins() {
        let row = || f64_tensor(vec![0.5, -0.3, 0.8, 0.2, 0.9, -0.4], [1, 6]);
        let probabilities = |m, domain| -> Vec<f64> {
            let logits = logits(row(), m, None, domain).into_data();
            logits.iter::<f64>().map(|logit| logit.exp() - KAPPA).collect()
        };
        let half = probabilities(4, Domain::HalfRange);
        let whole = probabilities(8, Domain::Periodic);
        let inside: f64 = whole[2..6].iter().sum();
        for (got, expected) in half.iter().zip(&whole[2..6]) {
            assert!((got - expected / inside).abs() < 1e-12, "{half:?} {whole:?}");
        }
    }

    #[test]
    fn missing_options_have_their_defaults() {
        let text = r#"{"kind":"fourier","frequencies":14,"gamma":1e-5}"#;
        let read: BinsHeadConfig = serde_json::from_str(text).unwrap();
        let expected = FourierHeadConfig { gamma: 1e-5, ..FourierHeadConfig::new(14) };
        assert_eq!(read, BinsHeadConfig::Fourier(expected));
    }

    #[test]
    fn columns_follow_the_action_order() {
        let row = || f64_tensor(vec![0.5, -0.3, 0.8, 0.2, 0.9, -0.4], [1, 6]);
        let bins: Vec<f64> =
            logits(row(), 4, None, Domain::Periodic).into_data().iter::<f64>().collect();
        let order = [2, 0, 3, 1];
        let actions: Vec<f64> =
            logits(row(), 4, Some(&order), Domain::Periodic).into_data().iter::<f64>().collect();
        for (action, bin) in order.into_iter().enumerate() {
            assert!((actions[action] - bins[bin]).abs() < 1e-14);
        }
    }
}
