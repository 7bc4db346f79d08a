//! The kernel that copies.

use cubecl::prelude::*;

/// # Shapes
/// - `values`, `memory`: `n` elements, contiguous
/// - cubes: any number, along one axis
#[cube(launch_unchecked, address_type = "dynamic")]
pub(super) fn copy_kernel<F: Numeric>(
    values: &Tensor<F>,
    memory: &mut Tensor<F>,
    n: usize,
    #[define(F)] _dtype: ElemType,
) {
    let mut at = ABSOLUTE_POS;
    while at < n {
        memory[at] = values[at];
        at += CUBE_COUNT * CUBE_DIM as usize;
    }
}
