//! The kernels of a step: gradients to one flat tensor, squares, and the step itself.

use cubecl::prelude::*;

/// Units of a cube.
pub(super) const UNITS: usize = 256;
/// The most cubes of one gradient.
pub(super) const CUBES: usize = 256;
/// Elements of a cube of the other kernels.
pub(super) const PART: usize = 4096;
/// Sums of squares that one unit adds at the end.
const ADDED: usize = 16;

/// Copies gradients into a flat tensor.
///
/// # Shapes
/// - cubes: `[any number, gradients]`; units: [`UNITS`]
#[cube(launch_unchecked, address_type = "dynamic")]
pub(super) fn gather_kernel(
    gradients: &Sequence<OwnedTensor<f32>>,
    starts: &Sequence<u32>,
    lengths: &Sequence<u32>,
    flat: &mut Tensor<f32>,
) {
    #[unroll]
    for i in 0..gradients.len() {
        if CUBE_POS_Y as usize == i {
            let gradient = &gradients[i];
            let (start, length) = (starts[i] as usize, lengths[i] as usize);
            let mut at = CUBE_POS_X as usize * UNITS + UNIT_POS as usize;
            while at < length {
                flat[start + at] = gradient[at];
                at += CUBE_COUNT_X as usize * UNITS;
            }
        }
    }
}

/// The sum of squares of each part of [`PART`] elements.
#[cube(launch_unchecked, address_type = "dynamic")]
pub(super) fn squares_kernel(gradient: &Tensor<f32>, squares: &mut Tensor<f32>, n: u32) {
    let first = CUBE_POS_X as usize * PART + UNIT_POS as usize;
    let mut sum = 0.0f32;
    #[unroll]
    for i in 0..comptime!(PART / UNITS) {
        let at = first + i * UNITS;
        if at < n as usize {
            sum = fma(gradient[at], gradient[at], sum);
        }
    }
    let total = over_cube(sum);
    if UNIT_POS == 0 {
        squares[CUBE_POS_X as usize] = total;
    }
}

/// One step; results go to the other tensors if they are given, else over the old ones.
///
/// # Shapes
/// - `gradient`, `decay`, `parameters`, `first`, `second`: `[n]`; `squares`: `[n_parts]`
/// - `factors`: `[3]`, see `AdamW::factors`; `norm`: `[1]`
#[cube(launch_unchecked, address_type = "dynamic")]
pub(super) fn step_kernel(
    gradient: &Tensor<f32>,
    squares: &Tensor<f32>,
    decay: &Tensor<f32>,
    factors: &Tensor<f32>,
    parameters: &mut Tensor<f32>,
    first: &mut Tensor<f32>,
    second: &mut Tensor<f32>,
    mut into_parameters: ComptimeOption<&mut Tensor<f32>>,
    mut into_first: ComptimeOption<&mut Tensor<f32>>,
    mut into_second: ComptimeOption<&mut Tensor<f32>>,
    norm: &mut Tensor<f32>,
    n: u32,
    n_parts: u32,
    beta_1: f32,
    beta_2: f32,
    rest_1: f32,
    rest_2: f32,
    epsilon: f32,
    clip_norm: f32,
    #[comptime] is_clipped: bool,
) {
    // Every cube adds the same numbers in the same order.
    let mut sum = 0.0f32;
    let mut part = UNIT_POS;
    while part < n_parts {
        sum += squares[part as usize];
        part += comptime!(UNITS as u32);
    }
    let length = over_cube(sum).sqrt();
    if CUBE_POS_X == 0 && UNIT_POS == 0 {
        norm[0] = length;
    }
    let mut clip = 1.0f32;
    if is_clipped {
        // A NaN stays NaN.
        let factor = clip_norm / (length + 1e-6f32);
        clip = select(factor > 1.0f32, 1.0f32, factor);
    }
    let (rate, corrected_rate, root) = (factors[0], factors[1], factors[2]);
    let start = CUBE_POS_X as usize * PART + UNIT_POS as usize;
    #[unroll]
    for i in 0..comptime!(PART / UNITS) {
        let at = start + i * UNITS;
        if at < n as usize {
            let g = gradient[at] * clip;
            let m = first[at] * beta_1 + g * rest_1;
            let v = second[at] * beta_2 + g * g * rest_2;
            let kept = parameters[at] * (1.0f32 - decay[at] * rate);
            let moved = kept - m / (v.sqrt() * root + epsilon) * corrected_rate;
            write(parameters, &mut into_parameters, at, moved);
            write(first, &mut into_first, at, m);
            write(second, &mut into_second, at, v);
        }
    }
}

#[cube]
fn write(old: &mut Tensor<f32>, new: &mut ComptimeOption<&mut Tensor<f32>>, at: usize, value: f32) {
    #[comptime]
    match new {
        ComptimeOption::Some(new) => new[at] = value,
        ComptimeOption::None => old[at] = value,
    }
}

/// The sum of `value` over the units of a cube.
#[cube]
fn over_cube(value: f32) -> f32 {
    let mut values = Shared::<[f32]>::new_slice(UNITS);
    let mut sums = Shared::<[f32]>::new_slice(comptime!(UNITS / ADDED));
    let unit = UNIT_POS as usize;
    values[unit] = value;
    sync_cube();
    if unit < comptime!(UNITS / ADDED) {
        let mut sum = 0.0f32;
        #[unroll]
        for i in 0..ADDED {
            sum += values[unit * ADDED + i];
        }
        sums[unit] = sum;
    }
    sync_cube();
    let mut total = 0.0f32;
    #[unroll]
    for i in 0..comptime!(UNITS / ADDED) {
        total += sums[i];
    }
    sync_cube();
    total
}
