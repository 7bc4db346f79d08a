//! The Fourier head: a density on [-1, 1] made of N frequencies, read at the bin centres
//! (Gillman et al. 2025, Algorithm 1).
//!
//! One affine layer gives `a_l = u_l + i v_l`, `l = 0 ..= N`. With
//! `A(z) = Σ_l a_l e^{ilπz}` the density is `p(z) = |A(z)|² / (2 Σ_l |a_l|²)`: non-negative
//! by construction. The paper's Algorithm 1 reaches the same density through the
//! autocorrelation of `a`; this form needs two small matrix products with constant
//! cosine and sine tables and no complex arithmetic.
//!
//! Differs from the released code:
//! - The regulariser is really added to the loss (there it is computed and never used).
//! - All-zero coefficients give the uniform distribution (there: NaN).
//! - `A(z)` is the complex conjugate's mirror image of Algorithm 1's, as in the released code.

use burn::{
    module::{Module, Param},
    tensor::{DType, Device, Tensor, TensorData},
};
use overtone_core::seed::Generator;
use serde::{Deserialize, Serialize};

use super::{ActionOrder, HeadOutput};
use crate::{config::config_error, error::ModelError, init};

/// Added to each probability before its logarithm is a logit (the reference's
/// `const_inverse_softmax`). After the softmax this mixes in the uniform distribution with
/// weight `m·κ/(1 + m·κ)`, 0.018 % for 18 actions.
pub const KAPPA: f64 = 1e-5;

/// Keeps 0/0 away when every coefficient is zero; far below any squared amplitude that
/// changes a probability.
const TINY: f64 = 1e-30;

/// Options of the Fourier head.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct FourierHeadConfig {
    /// N: the highest frequency. Below the number of actions the density's integral over a
    /// bin is represented without aliasing.
    pub frequencies: usize,
    /// γ of the smoothness regulariser; 0 turns it off.
    pub gamma: f64,
    /// The order of the actions along [-1, 1]; `None`: the environment's.
    pub action_order: Option<ActionOrder>,
}

impl FourierHeadConfig {
    /// # Errors
    /// When there is no frequency, γ is negative or the order has another length.
    pub fn validate(&self, n_actions: usize) -> Result<(), ModelError> {
        if self.frequencies == 0 {
            return Err(config_error("head.frequencies", 0, "must be at least 1"));
        }
        if !(self.gamma >= 0.0 && self.gamma.is_finite()) {
            return Err(config_error("head.gamma", self.gamma, "must be 0 or positive"));
        }
        match &self.action_order {
            Some(order) if order.bin_of().len() != n_actions => Err(config_error(
                "head.action_order",
                format!("{} actions", order.bin_of().len()),
                "must order exactly the environment's actions",
            )),
            _ => Ok(()),
        }
    }
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
    /// The order of the bins.
    #[module(skip)]
    pub action_order: Option<ActionOrder>,
}

impl FourierHead {
    /// Weights N(0, 0.02²), bias 0: the transformer's initialiser, which in the reference
    /// overwrites the head's own scaling.
    pub fn init(
        config: &FourierHeadConfig,
        d_model: usize,
        n_actions: usize,
        device: &Device,
        generator: &mut Generator,
    ) -> Self {
        let width = 2 * (config.frequencies + 1);
        Self {
            weight: init::normal([d_model, width], init::GPT_STD, device, generator),
            bias: init::constant([width], 0.0, device),
            frequencies: config.frequencies,
            n_actions,
            gamma: config.gamma,
            action_order: config.action_order.clone(),
        }
    }

    /// # Shapes
    /// - `hidden`: `[rows, d_model]`
    pub fn forward(&self, hidden: Tensor<2>) -> HeadOutput {
        let coefficients = hidden.matmul(self.weight.val()) + self.bias.val().unsqueeze();
        let order = self.action_order.as_ref().map(ActionOrder::bin_of);
        HeadOutput {
            logits: logits(coefficients.clone(), self.n_actions, order),
            regularization: (self.gamma > 0.0)
                .then(|| roughness(coefficients) * (self.gamma * REFERENCE_SCALE)),
        }
    }
}

/// The reference code's regulariser is `γ · 4π² · mean Σ_k k²|c_k|²`. The paper's formula
/// divides by twice the number of bins instead; the code is followed.
const REFERENCE_SCALE: f64 = 4.0 * std::f64::consts::PI * std::f64::consts::PI;

/// `ln(y_j + κ)` with `y_j = |A(b_j)|² / Σ_i |A(b_i)|²` at the bin centres
/// `b_j = -1 + (2j + 1)/m`.
///
/// # Shapes
/// - `coefficients`: `[rows, 2(N+1)]`, real parts first
/// - `bin_of`: for each column of the result its bin; `None`: columns are bins
/// - result: `[rows, m]`
pub fn logits(coefficients: Tensor<2>, m: usize, bin_of: Option<&[usize]>) -> Tensor<2> {
    let centres: Vec<f64> = (0..m)
        .map(|column| bin_of.map_or(column, |bins| bins[column]))
        .map(|bin| -1.0 + (2 * bin + 1) as f64 / m as f64)
        .collect();
    let n = coefficients.dims()[1] / 2 - 1;
    let (re_table, im_table) = tables(n, &centres, |_| 1.0);
    let (re, im) = evaluate(&coefficients, &re_table, &im_table);
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
    let (re_table, im_table) = tables(n, &grid, |_| 1.0);
    // A'(z) = Σ a_l · ilπ e^{ilπz}: the same tables, row l times lπ; the factor i swaps parts.
    let (re_slope, im_slope) = tables(n, &grid, |l| l as f64 * std::f64::consts::PI);
    let (re, im) = evaluate(&coefficients, &re_table, &im_table);
    let (re_of_slope, im_of_slope) = evaluate(&coefficients, &re_slope, &im_slope);
    // d|A|²/dz = 2 Re(conj(A) A') with A' = i·(re_of_slope + i·im_of_slope).
    let derivative = (im * re_of_slope - re * im_of_slope) * 2.0;
    let mean = derivative.square().mean_dim(1).squeeze_dim::<1>(1);
    // Times the reciprocal: burn 0.22 rounds the divisor to f32 in `div_scalar`'s backward.
    mean * (2.0 * std::f64::consts::PI * std::f64::consts::PI).recip()
}

/// A table of `f(l)·e^{ilπz}` in the two blocks a row of coefficients multiplies.
struct Table(Vec<f64>, [usize; 2]);

/// Tables `[2(N+1), points]` such that `[u | v] · re = Re Σ f(l) a_l e^{ilπz}` and
/// `[u | v] · im` its imaginary part.
fn tables(n: usize, points: &[f64], f: impl Fn(usize) -> f64) -> (Table, Table) {
    let angle = |l: usize, z: f64| l as f64 * std::f64::consts::PI * z;
    let block = |of: &dyn Fn(f64) -> f64| -> Vec<f64> {
        (0..=n)
            .flat_map(|l| points.iter().map(move |&z| (l, z)))
            .map(|(l, z)| f(l) * of(angle(l, z)))
            .collect()
    };
    let cos = block(&f64::cos);
    let sin = block(&f64::sin);
    let minus_sin: Vec<f64> = sin.iter().map(|s| -s).collect();
    let shape = [2 * (n + 1), points.len()];
    (Table([cos.clone(), minus_sin].concat(), shape), Table([sin, cos].concat(), shape))
}

fn evaluate(coefficients: &Tensor<2>, re: &Table, im: &Table) -> (Tensor<2>, Tensor<2>) {
    let (device, dtype) = (coefficients.device(), coefficients.dtype());
    let load = |table: &Table| constant_table(table, &device, dtype);
    (coefficients.clone().matmul(load(re)), coefficients.clone().matmul(load(im)))
}

fn constant_table(table: &Table, device: &Device, dtype: DType) -> Tensor<2> {
    Tensor::from_data(TensorData::new(table.0.clone(), table.1), (device, dtype))
}

#[cfg(test)]
mod tests {
    use super::*;

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
        let out = logits(Tensor::zeros([2, 8], &Device::flex()), 5, None);
        for logit in out.into_data().iter::<f32>() {
            assert!((logit - (0.2f32 + 1e-5).ln()).abs() < 1e-6, "{logit}");
        }
    }

    #[test]
    fn one_coefficient_is_uniform_whatever_its_value() {
        // Only a_0: |A| is constant.
        let out = logits(f64_tensor(vec![0.7, 0.0, -0.2, 0.0], [1, 4]), 3, None);
        for logit in out.into_data().iter::<f64>() {
            assert!((logit - (1.0f64 / 3.0 + 1e-5).ln()).abs() < 1e-12);
        }
    }

    #[test]
    fn columns_follow_the_action_order() {
        let row = || f64_tensor(vec![0.5, -0.3, 0.8, 0.2, 0.9, -0.4], [1, 6]);
        let bins: Vec<f64> = logits(row(), 4, None).into_data().iter::<f64>().collect();
        let order = [2, 0, 3, 1];
        let actions: Vec<f64> = logits(row(), 4, Some(&order)).into_data().iter::<f64>().collect();
        for (action, bin) in order.into_iter().enumerate() {
            assert!((actions[action] - bins[bin]).abs() < 1e-14);
        }
    }
}
