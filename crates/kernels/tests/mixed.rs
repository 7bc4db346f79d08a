//! Mixed precision: products of rounded factors, everything else as it was.

mod agreement;

use agreement::{Input, Leaves, distance, run};
use burn::tensor::{DType, Tensor};
use overtone_kernels::{
    Activation, AttentionOptions, AttentionWeights, Dropout, Form, Half, MlpWeights, Queries,
    Score, attention_block, mlp_block,
};

/// Factors have 8 bits: 2⁻⁹ of each is lost. Largest seen: 1.2e-2 (by a bias), of the largest.
const BF16: f64 = 3e-2;
/// 11 bits. Largest seen: 1.3e-3.
const F16: f64 = 4e-3;

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
    let (d, n_heads) = (32, 4);
    let size = 1.5 / (d as f64).sqrt();
    for score in [Score::DotProduct, Score::Fourier { power: 4, epsilon: 0.0 }] {
        let mut inputs = vec![
            Input::new("x", &[2, 7, d], 0.1, 1.5),
            Input::new("norm_weight", &[d], 1.0, 0.3),
            Input::new("norm_bias", &[d], 0.0, 0.3),
            Input::new("qkv_weight", &[d, 3 * d], 0.0, size),
            Input::new("qkv_bias", &[3 * d], 0.0, 0.3),
            Input::new("projection_weight", &[d, d], 0.0, size),
            Input::new("projection_bias", &[d], 0.0, 0.3),
        ];
        let fourier = matches!(score, Score::Fourier { .. });
        if fourier {
            inputs.push(Input::new("fourier_r", &[n_heads, 1], 0.5, 0.15));
        }
        check(&inputs, |leaves, form| {
            let weights = AttentionWeights {
                norm_weight: leaves.one("norm_weight"),
                norm_bias: leaves.one("norm_bias"),
                qkv_weight: leaves.two("qkv_weight"),
                qkv_bias: leaves.one("qkv_bias"),
                projection_weight: leaves.two("projection_weight"),
                projection_bias: leaves.one("projection_bias"),
                score_parameter: fourier.then(|| leaves.two("fourier_r")),
            };
            let options = AttentionOptions {
                n_heads,
                score,
                queries: Queries::ALL,
                first_token: Some(&[0, 3]),
                dropout: Some(Dropout { probability: 0.1, seed: 3 }),
                form,
            };
            attention_block(leaves.three("x"), weights, options)
        });
    }
}

#[test]
fn the_perceptron_block() {
    let (d, h) = (32, 128);
    let inputs = [
        Input::new("x", &[2, 7, d], 0.1, 1.5),
        Input::new("norm_weight", &[d], 1.0, 0.3),
        Input::new("norm_bias", &[d], 0.0, 0.3),
        Input::new("up_weight", &[d, h], 0.0, 0.2),
        Input::new("up_bias", &[h], 0.0, 0.3),
        Input::new("down_weight", &[h, d], 0.0, 0.1),
        Input::new("down_bias", &[d], 0.0, 0.3),
    ];
    check(&inputs, |leaves, form| {
        let weights = MlpWeights {
            norm_weight: leaves.one("norm_weight"),
            norm_bias: leaves.one("norm_bias"),
            up_weight: leaves.two("up_weight"),
            up_bias: leaves.one("up_bias"),
            down_weight: leaves.two("down_weight"),
            down_bias: leaves.one("down_bias"),
        };
        let dropout = Some(Dropout { probability: 0.1, seed: 3 });
        mlp_block(leaves.three("x"), weights, Activation::Gelu, dropout, form)
    });
}
