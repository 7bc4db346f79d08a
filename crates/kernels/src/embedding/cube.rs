//! The gradient of a lookup on a GPU. Each cube has one row of the table, compares all indices with
//! it, and adds the gradients of the equal ones. (burn's kernel has one unit for each column, which
//! adds all rows one after the other.)

use burn::backend::autodiff::checkpoint::strategy::CheckpointStrategy;
use burn::backend::fusion::custom::TensorSpec;
use burn::backend::ops::FloatTensorOps;
use burn::backend::tensor::{FloatTensor, IntTensor};
use burn::backend::{Autodiff, Backend, DType, Dispatch, Shape, TensorMetadata, backend_extension};
use burn::tensor::{Int, Tensor as BurnTensor};
use burn_cubecl::CubeBackend;
use burn_cubecl::kernel::into_contiguous;
use cubecl::prelude::*;

use crate::gpu::{address_type, empty_like, is_on_gpu, sums, tape};
use sums::{COLUMNS, ROWS, new_values, over_rows};

/// Indices that a cube compares together.
const CHUNK: usize = COLUMNS * ROWS;
/// Most cubes of an axis.
const MOST: usize = 65_535;

/// Whether the kernel can compute the gradient.
pub(super) fn is_possible(table: &BurnTensor<2>, rows: &BurnTensor<1, Int>) -> bool {
    let [n_rows, width] = table.dims();
    let are_few = n_rows <= MOST && width.div_ceil(COLUMNS) <= MOST;
    let has_types = table.dtype() == DType::F32 && rows.dtype() == DType::I32;
    is_on_gpu(table) && has_types && are_few && n_rows * width * rows.dims()[0] > 0
}

/// Lookup in a table for which [`is_possible`] holds.
pub(super) fn embedding(table: BurnTensor<2>, rows: BurnTensor<1, Int>) -> BurnTensor<2> {
    let (table, rows) = (table.into_dispatch(), rows.into_dispatch());
    BurnTensor::from_dispatch(Dispatch::cube_embedding(table, rows))
}

/// The extension of burn: lookup, with support for autodiff.
#[backend_extension(Cube, Autodiff, Fusion)]
trait CubeEmbedding: Backend {
    #[fusion(meta = |table, rows| {
        let [n, width] = [rows.shape[0], table.shape[1]];
        TensorSpec::new(Shape::new([n, width]), table.dtype)
    })]
    fn cube_embedding(table: FloatTensor<Self>, rows: IntTensor<Self>) -> FloatTensor<Self>;
}

/// Its backward pass.
#[backend_extension(Cube, Fusion)]
trait CubeEmbeddingPass: Backend {
    #[fusion(meta = |by_out, _rows, n_rows| {
        TensorSpec::new(Shape::new([*n_rows, by_out.shape[1]]), by_out.dtype)
    })]
    fn cube_embedding_backward(
        by_out: FloatTensor<Self>,
        rows: IntTensor<Self>,
        n_rows: usize,
    ) -> FloatTensor<Self>;
}

impl CubeEmbedding for CubeBackend {
    fn cube_embedding(table: FloatTensor<Self>, rows: IntTensor<Self>) -> FloatTensor<Self> {
        Self::float_select(table, 0, rows)
    }
}

impl CubeEmbeddingPass for CubeBackend {
    fn cube_embedding_backward(
        by_out: FloatTensor<Self>,
        rows: IntTensor<Self>,
        n_rows: usize,
    ) -> FloatTensor<Self> {
        let (by_out, rows) = (into_contiguous(by_out), into_contiguous(rows));
        let [n, width] = by_out.shape().dims();
        let by_table = empty_like(&by_out, Shape::new([n_rows, width]), by_out.dtype);
        // SAFETY: the kernel reads indices below `n` and their rows of `by_out`, and writes one row
        // of `n_rows` and columns below `width`.
        unsafe {
            backward_kernel::launch_unchecked(
                &by_table.client,
                CubeCount::Static(n_rows as u32, width.div_ceil(COLUMNS) as u32, 1),
                CubeDim::new_2d(COLUMNS as u32, ROWS as u32),
                address_type(&[&by_out, &by_table]),
                by_out.clone().into_tensor_arg(),
                rows.into_tensor_arg(),
                by_table.clone().into_tensor_arg(),
                n as u32,
                width as u32,
            );
        }
        by_table
    }
}

impl<B: CubeEmbedding + CubeEmbeddingPass, C: CheckpointStrategy> CubeEmbedding for Autodiff<B, C> {
    fn cube_embedding(table: FloatTensor<Self>, rows: IntTensor<Self>) -> FloatTensor<Self> {
        tape::apply::<B, C, _, 1>(
            [table],
            |[table]| {
                let n_rows = table.shape()[0];
                (B::cube_embedding(table, rows.clone()), (rows, n_rows))
            },
            |(rows, n_rows), by_out| [B::cube_embedding_backward(by_out, rows, n_rows)],
        )
    }
}

/// # Shapes
/// - `by_out`: `[n, width]`; `rows`: `[n]`; `by_table`: `[n_rows, width]`
/// - cubes: `[n_rows, groups of COLUMNS columns]`; units: `[COLUMNS, ROWS]`
#[cube(launch_unchecked, address_type = "dynamic")]
fn backward_kernel(
    by_out: &Tensor<f32>,
    rows: &Tensor<i32>,
    by_table: &mut Tensor<f32>,
    n: u32,
    width: u32,
) {
    let column = CUBE_POS_Y * comptime!(COLUMNS as u32) + UNIT_POS_X;
    let mut is_own = Shared::<[u32]>::new_slice(CHUNK);
    let mut sum = 0.0f32;
    let mut first = 0u32;
    while first < n {
        let at = first + UNIT_POS;
        let mut own = 0u32;
        if at < n {
            own = select(rows[at as usize] == CUBE_POS_X as i32, 1u32, 0u32);
        }
        sync_cube();
        is_own[UNIT_POS as usize] = own;
        sync_cube();
        // The units of a row add what these units compared.
        if column < width {
            let start = UNIT_POS_Y * comptime!(COLUMNS as u32);
            for i in 0..comptime!(COLUMNS as u32) {
                if is_own[(start + i) as usize] == 1u32 {
                    let at = (first + start + i) as usize;
                    sum += by_out[at * width as usize + column as usize];
                }
            }
        }
        first += comptime!(CHUNK as u32);
    }
    let mut values = new_values();
    let total = over_rows(sum, &mut values);
    if UNIT_POS_Y == 0 && column < width {
        by_table[CUBE_POS_X as usize * width as usize + column as usize] = total;
    }
}
