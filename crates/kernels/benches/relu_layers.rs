//! The networks of value-based agents: 256 rows through a critic of two or three hidden layers of
//! 256, forward and backward, against the same number of multiplications in bare products on as
//! many threads.
//!
//! The fused form is first compared with the reference.

use burn::tensor::{Device, Distribution, Tensor};
use divan::Bencher;
use gemm::Parallelism;
use overtone_kernels::{Form, ReluLayer, relu_layers};
use rayon::prelude::*;

const ROWS: usize = 256;
const WIDTH: usize = 256;
const INPUTS: usize = 23;
const FORMS: [Form; 2] = [Form::Auto, Form::Reference];

fn main() {
    for has_norms in [false, true] {
        let (x, layers) = critic(3, has_norms);
        let [fused, reference] = FORMS.map(|form| relu_layers(x.clone(), layers.clone(), form));
        let apart = (fused - reference).abs().max().into_scalar::<f32>();
        assert!(apart < 1e-4, "outputs {apart} apart");
    }
    divan::main();
}

/// A batch, and the layers of a critic with so many hidden ones.
fn critic(n_hidden: usize, has_norms: bool) -> (Tensor<2>, Vec<ReluLayer>) {
    let device = Device::flex().autodiff();
    let layers = (0..=n_hidden).map(|i| {
        let shape = [if i == 0 { INPUTS } else { WIDTH }, if i == n_hidden { 1 } else { WIDTH }];
        let size = 1.0 / (shape[0] as f64).sqrt();
        let uniform = Distribution::Uniform(-size, size);
        let norm = (has_norms && i < n_hidden).then(|| {
            let ones = Tensor::ones([WIDTH], &device).require_grad();
            [ones, Tensor::zeros([WIDTH], &device).require_grad()]
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

#[divan::bench(args = [("fused", 2, false), ("reference", 2, false), ("fused", 3, true), ("reference", 3, true)])]
fn critic_and_gradient(bencher: Bencher<'_, '_>, (form, n_hidden, has_norms): (&str, usize, bool)) {
    let form = if form == "fused" { Form::Auto } else { Form::Reference };
    let (x, layers) = critic(n_hidden, has_norms);
    bencher.bench_local(|| relu_layers(x.clone(), layers.clone(), form).sum().backward());
}

/// As many products of 64 rows and a weight of 256 × 256 as the layers need: for each of the
/// hidden layers but the first three times all rows, for the first of 23 inputs twice.
#[divan::bench(args = [2, 3])]
fn products_alone(bencher: Bencher<'_, '_>, n_hidden: usize) {
    let (left, right) = (vec![0.5f32; 64 * WIDTH], vec![0.25f32; WIDTH * WIDTH]);
    let multiplications = ROWS * (3 * (n_hidden - 1) * WIDTH * WIDTH + 2 * INPUTS * WIDTH);
    let n_products = multiplications.div_ceil(64 * WIDTH * WIDTH);
    let mut out = vec![0.0f32; n_products * 64 * WIDTH];
    bencher.bench_local(|| {
        out.par_chunks_mut(64 * WIDTH).for_each(|out| multiply(out, &left, &right));
    });
}

fn multiply(out: &mut [f32], left: &[f32], right: &[f32]) {
    let (m, n) = (64, WIDTH);
    assert!(out.len() == m * n && left.len() == m * n && right.len() == n * n);
    // SAFETY: the three matrices have the sizes that were just asserted, row after row, and `out`
    // is borrowed mutably, so it overlaps neither operand.
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
