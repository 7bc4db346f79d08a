//! Launch parameters of the kernels: shapes, types and numbers of cubes.

use burn::backend::cubecl::dtype_to_storage_type;
use burn::backend::{DType, Shape, TensorMetadata};
use burn_cubecl::tensor::CubeTensor;
use cubecl::prelude::*;

use crate::gpu::{address_type, empty_like};

use super::kernels::{
    ROWS, SUMMED, TILE, UNITS, gradient_kernel, radius_kernel, rows, scores_kernel,
};

/// Axes of scores.
const QUERIES: usize = 2;
const KEYS: usize = 3;

/// See [`scores_kernel`].
pub(super) fn scores(q: CubeTensor, k: CubeTensor, r: CubeTensor, power: u32) -> CubeTensor {
    let [batch, heads, tokens, d_head] = q.shape().dims();
    let scores = empty_like(&q, Shape::new([batch, heads, tokens, tokens]), q.dtype);
    let tiles = tokens.div_ceil(TILE) as u32;
    // SAFETY: the kernel checks that its reads and writes are inside of its tensors, and
    // `fourier_scores` has checked their shapes.
    unsafe {
        scores_kernel::launch_unchecked(
            &scores.client,
            CubeCount::Static((batch * heads) as u32, tiles, tiles),
            CubeDim::new_2d(TILE as u32, ROWS as u32),
            address_type(&[&q, &k, &r, &scores]),
            q.into_tensor_arg(),
            k.into_tensor_arg(),
            r.into_tensor_arg(),
            scores.clone().into_tensor_arg(),
            power as f32,
            d_head,
            dtype_to_storage_type(scores.dtype),
        );
    }
    scores
}

/// Gradients of queries, keys and `R`; see [`gradient_kernel`] and [`radius_kernel`].
pub(super) fn gradients(
    q: CubeTensor,
    k: CubeTensor,
    r: CubeTensor,
    by_scores: CubeTensor,
    power: u32,
) -> [CubeTensor; 3] {
    let [batch, heads, tokens, d_head] = q.shape().dims();
    let groups = tokens.div_ceil(rows(d_head));
    let parts = empty_like(&q, Shape::new([batch, groups, heads, d_head]), DType::F32);
    let side = |own: &CubeTensor, other: &CubeTensor, axis: usize, parts: Option<&CubeTensor>| {
        let by_own = empty_like(own, Shape::new([batch, heads, tokens, d_head]), own.dtype);
        // SAFETY: as in `scores`.
        unsafe {
            gradient_kernel::launch_unchecked(
                &own.client,
                CubeCount::Static((batch * heads) as u32, groups as u32, 1),
                CubeDim::new_1d(UNITS as u32),
                address_type(&[own, other, &r, &by_scores, &by_own]),
                own.clone().into_tensor_arg(),
                other.clone().into_tensor_arg(),
                r.clone().into_tensor_arg(),
                by_scores.clone().into_tensor_arg(),
                by_own.clone().into_tensor_arg(),
                parts.map(|parts| parts.clone().into_tensor_arg()).into(),
                power as f32,
                axis,
                d_head,
                dtype_to_storage_type(own.dtype),
            );
        }
        by_own
    };
    let by_q = side(&q, &k, QUERIES, Some(&parts));
    let by_k = side(&k, &q, KEYS, None);
    let by_r = empty_like(&r, Shape::new([heads, d_head]), r.dtype);
    // SAFETY: as in `scores`.
    unsafe {
        radius_kernel::launch_unchecked(
            &r.client,
            CubeCount::Static(heads as u32, d_head.div_ceil(SUMMED) as u32, 1),
            CubeDim::new_1d(UNITS as u32),
            address_type(&[&parts, &by_r]),
            parts.into_tensor_arg(),
            by_r.clone().into_tensor_arg(),
            d_head,
            dtype_to_storage_type(r.dtype),
        );
    }
    [by_q, by_k, by_r]
}
