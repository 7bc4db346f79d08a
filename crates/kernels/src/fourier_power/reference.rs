//! The squared amplitude in burn tensors.

use std::f64::consts::PI;

use burn::tensor::Tensor;

use crate::stored::constant;

pub(super) fn power(coefficients: Tensor<2>, z: Tensor<1>, stretch: f64) -> Tensor<1> {
    let n = coefficients.dims()[1] / 2;
    let frequencies = (0..n).map(|l| l as f64 * PI * stretch).collect();
    let frequencies = constant(frequencies, [1, n], &coefficients.device(), coefficients.dtype());
    let angles = z.unsqueeze_dim::<2>(1) * frequencies;
    let (cos, sin) = (angles.clone().cos(), angles.sin());
    let u = coefficients.clone().narrow(1, 0, n);
    let v = coefficients.narrow(1, n, n);
    let re = (u.clone() * cos.clone() - v.clone() * sin.clone()).sum_dim(1);
    let im = (u * sin + v * cos).sum_dim(1);
    (re.square() + im.square()).squeeze_dim(1)
}
