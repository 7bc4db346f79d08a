//! The loss in burn tensors.

use burn::tensor::Tensor;

use super::fused::levels;
use crate::stored::constant;

pub(super) fn quantile_huber(quantiles: Tensor<2>, targets: Tensor<2>) -> Tensor<1> {
    let [rows, n] = quantiles.dims();
    let levels = levels(n).collect();
    let levels = constant::<3>(levels, [1, n, 1], &quantiles.device(), quantiles.dtype());
    // [rows, i, j]
    let errors = targets.unsqueeze_dim::<3>(1) - quantiles.unsqueeze_dim::<3>(2);
    let small = errors.clone().abs().clamp_max(1.0);
    // H(u) = |u|_c (|u| − |u|_c / 2) with |u|_c the smaller of |u| and 1.
    let huber = small.clone() * (errors.clone().abs() - small / 2.0);
    let below = errors.detach().lower_elem(0.0).float().cast(huber.dtype());
    let slopes = (levels - below).abs();
    (slopes * huber).mean_dim(2).sum_dim(1).reshape([rows])
}
