//! Scores of the Fourier integral kernel, which replace dot products in attention (Nguyen et al.
//! 2022, "FourierFormer", equations 15 and 16).
//!
//! The paper weights key `j` for query `i` by `w_ij = Π_d sinc(R_d (q_id − k_jd))^power`,
//! `sinc x = sin x / x`, and mixes values by `w_ij / Σ_j w_ij`. The score is the logarithm of the
//! weight, so the softmax of scores is the paper's formula. The score does not underflow,
//! while a weight with 64 factors is easily below the smallest `f32`.
//!
//! Differs from the paper and its code:
//! - At zeros of a sine, the formula's score is `−∞` and its slope has no bound. Here `ln |sin x|`
//!   is `½ ln(sin² x + FLOOR²)`: the relative error of a weight is `power · FLOOR² / (2 sin² x)`,
//!   and score and gradients stay finite.
//! - `R` may be one number, or one for each head, each dimension or both. (The published kernel
//!   reads one for each dimension, the published layers have one number.)

mod fused;
mod reference;
pub(crate) mod sinc;

use burn::tensor::Tensor;
use burn::tensor::activation::softmax;

use crate::Form;
use crate::buffer::Buffer;
use crate::flex::{self, Fused, is_flex_f32};

pub(crate) use fused::{Destination, ScoredHead, Visible};

/// Floor of sines, added in squares before their logarithm is computed.
pub const FLOOR: f64 = 1e-6;

/// `power · Σ_d ln |sinc(R_d (q_id − k_jd))|` of every query `i` and key `j`; see the
/// [module's documentation](self).
///
/// # Shapes
/// - `q`: `[batch, heads, queries, d_head]`
/// - `k`: `[batch, heads, keys, d_head]`
/// - `r`: `[heads or 1, d_head or 1]`
/// - result: `[batch, heads, queries, keys]`
///
/// # Panics
/// When shapes do not fit together, or `power` is odd or zero.
pub fn fourier_scores(
    q: Tensor<4>,
    k: Tensor<4>,
    r: Tensor<2>,
    power: u32,
    form: Form,
) -> Tensor<4> {
    let [batch, heads, queries, d_head] = q.dims();
    let [.., keys, _] = k.dims();
    assert_eq!(
        k.dims(),
        [batch, heads, keys, d_head],
        "keys and queries may differ only in their number"
    );
    let r = each_dimension(r, heads, d_head);
    check_power(power);
    if form == Form::Auto && is_flex_f32(&q) && is_flex_f32(&k) && is_flex_f32(&r) {
        let plan = fused::ScoresPlan { heads, queries, keys, power };
        let inputs = [q.into_dispatch(), k.into_dispatch(), r.into_dispatch()];
        return flex::apply(plan, inputs, [batch, heads, queries, keys]);
    }
    reference::scores(q, k, r, power)
}

/// `w / (Σ w + epsilon)` over the last axis, with `w = exp(score)`; a score of `−∞` hides its
/// key. Weights themselves are never computed.
///
/// An `epsilon` of 0 is the softmax, the paper's formula. The paper's code adds 1e-6: a query with
/// only small weights then sees nothing.
pub fn probabilities(scores: Tensor<4>, epsilon: f64) -> Tensor<4> {
    if epsilon == 0.0 {
        return softmax(scores, 3);
    }
    // One more key with the weight epsilon and no value.
    let [batch, heads, queries, keys] = scores.dims();
    let options = (&scores.device(), scores.dtype());
    let other = Tensor::full([batch, heads, queries, 1], epsilon.ln(), options);
    softmax(Tensor::cat(vec![scores, other], 3), 3).narrow(3, 0, keys)
}

/// `R` of every head and dimension: `[heads, d_head]`.
pub(crate) fn each_dimension(r: Tensor<2>, heads: usize, d_head: usize) -> Tensor<2> {
    let [of_heads, of_dimensions] = r.dims();
    assert!(
        [1, heads].contains(&of_heads) && [1, d_head].contains(&of_dimensions),
        "R of {of_heads} × {of_dimensions} for {heads} heads of {d_head} dimensions"
    );
    r.expand([heads, d_head])
}

/// An odd power of a negative factor would give a negative weight.
pub(crate) fn check_power(power: u32) {
    assert!(power > 0 && power.is_multiple_of(2), "power {power} must be even and positive");
}

/// The float inputs are queries, keys and `R`.
impl Fused<3> for fused::ScoresPlan {
    type Saved = ();

    fn forward(&self, [q, k, r]: [&[f32]; 3], keep: bool) -> (Buffer, Option<()>) {
        (self.scores(q, k, r), keep.then_some(()))
    }

    fn backward(
        &self,
        [q, k, r]: [&[f32]; 3],
        _output: &[f32],
        (): &(),
        gradient: &[f32],
    ) -> [Buffer; 3] {
        self.gradients(q, k, r, gradient)
    }
}
