//! The networks of value-based agents: 256 rows through a critic with two or three hidden layers of
//! 256, or RvS-R's two of 1024, forward and backward. They are compared with bare products of the
//! same number of multiplications on as many threads.
//!
//! The fused form is first compared with the reference.

use burn::tensor::{Device, Distribution, Tensor};
use divan::Bencher;
use gemm::Parallelism;
use overtone_kernels::{Form, ReluLayer, relu_layers};
use rayon::prelude::*;

const ROWS: usize = 256;
const INPUTS: usize = 23;
const FORMS: [Form; 2] = [Form::Auto, Form::Reference];

/// Width and number of hidden layers, and whether they have norms.
const NETWORKS: [(usize, usize, bool); 3] = [(256, 2, false), (256, 3, true), (1024, 2, false)];

fn main() {
    for (width, n_hidden, has_norms) in NETWORKS {
        let (x, layers) = critic(width, n_hidden, has_norms);
        let [fused, reference] = FORMS.map(|form| relu_layers(x.clone(), layers.clone(), form));
        let apart = (fused - reference).abs().max().into_scalar::<f32>();
        assert!(apart < 1e-4, "outputs {apart} apart");
    }
    divan::main();
}

/// A batch, and the layers of a critic with `n_hidden` hidden layers of this width.
fn critic(width: usize, n_hidden: usize, has_norms: bool) -> (Tensor<2>, Vec<ReluLayer>) {
    let device = Device::flex().autodiff();
    let layers = (0..=n_hidden).map(|i| {
        let shape = [if i == 0 { INPUTS } else { width }, if i == n_hidden { 1 } else { width }];
        let size = 1.0 / (shape[0] as f64).sqrt();
        let uniform = Distribution::Uniform(-size, size);
        let norm = (has_norms && i < n_hidden).then(|| {
            let ones = Tensor::ones([width], &device).require_grad();
            [ones, Tensor::zeros([width], &device).require_grad()]
        });
        ReluLayer {
            weight: Tensor::random(shape, uniform, &device).require_grad(),
            bias: Tensor::random([shape[1]], uniform, &device).require_grad(),
            norm,
        }
    });
    let x = Tensor::random([ROWS, INPUTS], Distribution::Normal(0.0, 1.0), &Device::flex());
    (x, layers.collect())
}

#[divan::bench(args = NETWORKS)]
fn fused(bencher: Bencher<'_, '_>, network: (usize, usize, bool)) {
    with_gradient(bencher, network, Form::Auto);
}

#[divan::bench(args = NETWORKS)]
fn reference(bencher: Bencher<'_, '_>, network: (usize, usize, bool)) {
    with_gradient(bencher, network, Form::Reference);
}

fn with_gradient(
    bencher: Bencher<'_, '_>,
    (width, n_hidden, has_norms): (usize, usize, bool),
    form: Form,
) {
    let (x, layers) = critic(width, n_hidden, has_norms);
    bencher.bench_local(|| relu_layers(x.clone(), layers.clone(), form).sum().backward());
}

/// As many products of 64 rows and a square weight as the layers need: three times all rows for
/// each hidden layer except the first, twice for the first with its 23 inputs.
#[divan::bench(args = NETWORKS)]
fn products_alone(bencher: Bencher<'_, '_>, (width, n_hidden, _): (usize, usize, bool)) {
    let (left, right) = (vec![0.5f32; 64 * width], vec![0.25f32; width * width]);
    let multiplications = ROWS * (3 * (n_hidden - 1) * width * width + 2 * INPUTS * width);
    let n_products = multiplications.div_ceil(64 * width * width);
    let mut out = vec![0.0f32; n_products * 64 * width];
    bencher.bench_local(|| {
        out.par_chunks_mut(64 * width).for_each(|out| multiply(out, &left, &right, width));
    });
}

fn multiply(out: &mut [f32], left: &[f32], right: &[f32], n: usize) {
    let m = 64;
    assert!(out.len() == m * n && left.len() == m * n && right.len() == n * n);
    // SAFETY: the three matrices have the sizes that were just asserted, in row-major order, and
    // `out` is borrowed mutably, so it does not overlap the operands.
    unsafe {
        gemm::gemm(
            m,
            n,
            n,
            out.as_mut_ptr(),
            1,
            n as isize,
            false,
            left.as_ptr(),
            1,
            n as isize,
            right.as_ptr(),
            1,
            n as isize,
            0.0,
            1.0,
            false,
            false,
            false,
            Parallelism::None,
        );
    }
}
