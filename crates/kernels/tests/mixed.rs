//! Mixed precision: products of rounded factors, everything else unchanged.

mod agreement;

use agreement::{
    Input, Leaves, distance,
    operands::{attend, attention_inputs, first_tokens, fourier_inputs, mlp, mlp_inputs},
    run,
};
use burn::tensor::{DType, Device, Tensor};
use overtone_kernels::{Activation, AttentionOptions, Dropout, Form, Half, Queries, Score};

/// Factors have 8 bits: 2⁻⁹ of each is lost. Largest seen: 1.2e-2 (by a bias), relative to the
/// largest entry.
const BF16: f64 = 3e-2;
/// 11 bits. Largest seen: 1.3e-3.
const F16: f64 = 4e-3;
fn some_dropout() -> Dropout {
    let step_seed = Tensor::from_data(Dropout::words(3), &Device::flex());
    Dropout { probability: 0.1, step_seed, nth: 1 }
}

#[track_caller]
fn check<const D: usize>(inputs: &[Input], operation: impl Fn(&Leaves, Form) -> Tensor<D>) {
    let exact = run(inputs, DType::F64, Form::Reference, &operation);
    for (half, tolerance) in [(Half::Bf16, BF16), (Half::F16, F16)] {
        let mixed = run(inputs, DType::F32, Form::Mixed(half), &operation);
        let outputs = ("output", &mixed.output, &exact.output);
        let gradients = mixed.gradients.iter().zip(&exact.gradients);
        let gradients = gradients.map(|((name, got), (_, exact))| (*name, got, exact));
        let mut furthest = 0.0f64;
        for (name, got, exact) in [outputs].into_iter().chain(gradients) {
            let apart = distance(got, exact);
            println!("{half:?}, {name}: {apart:.1e}");
            assert!(apart < tolerance, "{half:?}, {name}: {apart:.1e}");
            furthest = furthest.max(apart);
        }
        assert!(furthest > 1e-5, "{half:?}: nothing was rounded");
    }
}

#[test]
fn the_attention_block() {
    let (shape, n_heads) = ([2, 7, 32], 4);
    let dot = (Score::DotProduct, attention_inputs(shape));
    let fourier = Score::Fourier { power: 4, epsilon: 0.0 };
    for (score, inputs) in [dot, (fourier, fourier_inputs(shape, [n_heads, 1], 0.5))] {
        check(&inputs, |leaves, form| {
            let options = AttentionOptions {
                n_heads,
                score,
                queries: Queries::ALL,
                first_token: Some(first_tokens(leaves, &[0, 3])),
                dropout: Some(some_dropout()),
                form,
            };
            attend(leaves, options)
        });
    }
}

#[test]
fn the_perceptron_block() {
    check(&mlp_inputs([2, 7, 32], 128, [0.2, 0.1]), |leaves, form| {
        mlp(leaves, Activation::Gelu, Some(some_dropout()), form)
    });
}
