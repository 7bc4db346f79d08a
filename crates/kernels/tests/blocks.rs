//! The fused attention and perceptron blocks against the reference, and the reference
//! against differences.

mod agreement;

use agreement::{
    Input, Leaves, check_differences, check_fused, check_repeats, distance, infer, run,
};
use burn::tensor::{DType, Device, Tensor};
use overtone_kernels::{
    Activation, AttentionOptions, AttentionWeights, Dropout, Form, MlpWeights, Score,
    attention_block, mlp_block,
};

/// Largest relative error of the fused forms seen: 1e-6.
const TOLERANCE: f64 = 5e-6;
const DROPOUT: Dropout = Dropout { probability: 0.1, seed: 20 };

fn attention_inputs(shape: [usize; 3]) -> Vec<Input> {
    let d = shape[2];
    let size = 1.5 / (d as f64).sqrt();
    vec![
        Input::new("x", &shape, 0.1, 1.5),
        Input::new("norm_weight", &[d], 1.0, 0.3),
        Input::new("norm_bias", &[d], 0.0, 0.3),
        Input::new("qkv_weight", &[d, 3 * d], 0.0, size),
        Input::new("qkv_bias", &[3 * d], 0.0, 0.3),
        Input::new("projection_weight", &[d, d], 0.0, size),
        Input::new("projection_bias", &[d], 0.0, 0.3),
    ]
}

fn attend(leaves: &Leaves, options: AttentionOptions<'_>) -> Tensor<3> {
    let weights = AttentionWeights {
        norm_weight: leaves.one("norm_weight"),
        norm_bias: leaves.one("norm_bias"),
        qkv_weight: leaves.two("qkv_weight"),
        qkv_bias: leaves.one("qkv_bias"),
        projection_weight: leaves.two("projection_weight"),
        projection_bias: leaves.one("projection_bias"),
    };
    attention_block(leaves.three("x"), weights, options)
}

fn options(n_heads: usize, form: Form) -> AttentionOptions<'static> {
    AttentionOptions { n_heads, score: Score::DotProduct, first_token: None, dropout: None, form }
}

fn mlp_inputs(shape: [usize; 3], h: usize) -> Vec<Input> {
    let d = shape[2];
    vec![
        Input::new("x", &shape, 0.1, 1.5),
        Input::new("norm_weight", &[d], 1.0, 0.3),
        Input::new("norm_bias", &[d], 0.0, 0.3),
        Input::new("up_weight", &[d, h], 0.0, 1.5 / (d as f64).sqrt()),
        Input::new("up_bias", &[h], 0.0, 0.3),
        Input::new("down_weight", &[h, d], 0.0, 1.5 / (h as f64).sqrt()),
        Input::new("down_bias", &[d], 0.0, 0.3),
    ]
}

fn mlp(leaves: &Leaves, activation: Activation, dropout: Option<Dropout>, form: Form) -> Tensor<3> {
    let weights = MlpWeights {
        norm_weight: leaves.one("norm_weight"),
        norm_bias: leaves.one("norm_bias"),
        up_weight: leaves.two("up_weight"),
        up_bias: leaves.one("up_bias"),
        down_weight: leaves.two("down_weight"),
        down_bias: leaves.one("down_bias"),
    };
    mlp_block(leaves.three("x"), weights, activation, dropout, form)
}

#[test]
fn attention_agrees_with_the_reference() {
    // Shapes with partial vectors, more sequences than are held at a time, one head.
    for (shape, n_heads) in
        [([3, 7, 20], 4), ([2, 90, 128], 8), ([2, 17, 32], 1), ([19, 100, 16], 4), ([1, 1, 8], 2)]
    {
        for dropout in [None, Some(DROPOUT)] {
            check_fused(&attention_inputs(shape), TOLERANCE, |leaves, form| {
                attend(leaves, AttentionOptions { dropout, ..options(n_heads, form) })
            });
        }
    }
}

#[test]
fn padded_attention_agrees_with_the_reference() {
    for (shape, first) in [([3, 7, 16], [0, 3, 6]), ([3, 40, 24], [17, 40, 1])] {
        for n_heads in [4, 8] {
            check_fused(&attention_inputs(shape), TOLERANCE, |leaves, form| {
                let first_token = Some(&first[..]);
                let dropout = Some(DROPOUT);
                attend(leaves, AttentionOptions { first_token, dropout, ..options(n_heads, form) })
            });
        }
    }
}

#[test]
fn mlp_agrees_with_the_reference() {
    for (shape, h) in [([3, 7, 20], 33), ([2, 90, 128], 512), ([17, 99, 16], 24), ([1, 1, 8], 16)] {
        for dropout in [None, Some(DROPOUT)] {
            check_fused(&mlp_inputs(shape, h), TOLERANCE, |leaves, form| {
                mlp(leaves, Activation::Gelu, dropout, form)
            });
        }
    }
    for dropout in [None, Some(DROPOUT)] {
        check_fused(&mlp_inputs([3, 7, 20], 33), TOLERANCE, |leaves, form| {
            mlp(leaves, Activation::Relu, dropout, form)
        });
    }
}

#[test]
fn gradients_of_the_reference_are_differences() {
    let first = [0, 2];
    check_differences(&attention_inputs([2, 5, 8]), 12, 1e-8, |leaves, form| {
        let first_token = Some(&first[..]);
        let dropout = Some(DROPOUT);
        attend(leaves, AttentionOptions { first_token, dropout, ..options(4, form) })
    });
    for activation in [Activation::Gelu, Activation::Relu] {
        check_differences(&mlp_inputs([2, 5, 8], 11), 12, 1e-8, |leaves, form| {
            mlp(leaves, activation, Some(DROPOUT), form)
        });
    }
}

#[test]
fn results_repeat_to_the_bit() {
    check_repeats(&attention_inputs([19, 30, 32]), |leaves, form| {
        attend(leaves, AttentionOptions { dropout: Some(DROPOUT), ..options(4, form) })
    });
    check_repeats(&mlp_inputs([19, 30, 32], 48), |leaves, form| {
        mlp(leaves, Activation::Gelu, Some(DROPOUT), form)
    });
}

/// Output, and gradient by `x`, of two sequences of 20 tokens that begin with 6 and 0
/// tokens of padding, after `change` of one token of the first sequence.
fn changed(token: usize, form: Form) -> [Vec<f64>; 2] {
    let mut inputs = attention_inputs([2, 20, 16]);
    let seventh = 16 * token;
    inputs[0].values[seventh..seventh + 16].iter_mut().for_each(|x| *x = 3.0 - *x);
    let first = [6, 0];
    let outcome = run(&inputs, DType::F32, form, |leaves, form| {
        attend(
            leaves,
            AttentionOptions {
                first_token: Some(&first),
                dropout: Some(DROPOUT),
                ..options(4, form)
            },
        )
    });
    [outcome.output, outcome.gradients[0].1.clone()]
}

#[test]
fn padding_changes_nothing_real() {
    for form in [Form::Auto, Form::Reference] {
        let [output, by_x] = changed(0, form);
        let [output_of_other, by_x_of_other] = changed(5, form);
        let real = 16 * 6..;
        assert_eq!(output[real.clone()], output_of_other[real.clone()], "{form:?}");
        assert_eq!(by_x[real.clone()], by_x_of_other[real], "{form:?}");
        assert!(output.iter().chain(&by_x).all(|x| x.is_finite()));
    }
}

#[test]
fn the_future_changes_nothing_past() {
    for form in [Form::Auto, Form::Reference] {
        let [early, _] = changed(12, form);
        let [late, _] = changed(19, form);
        assert_eq!(early[..16 * 12], late[..16 * 12], "{form:?}");
        assert_ne!(early[16 * 13..16 * 19], late[16 * 13..16 * 19], "{form:?}");
        assert_eq!(early[16 * 20..], late[16 * 20..], "the other sequence, {form:?}");
    }
}

#[test]
fn a_row_does_not_depend_on_its_neighbours() {
    let attention = attention_inputs([5, 30, 32]);
    let mlp_inputs = mlp_inputs([5, 30, 32], 48);
    let first = |inputs: &[Input]| {
        let mut inputs = inputs.to_vec();
        inputs[0].shape[0] = 2;
        inputs[0].values.truncate(2 * 30 * 32);
        inputs
    };
    let attend = |inputs: &[Input]| {
        infer(inputs, DType::F32, Form::Auto, |leaves, form| {
            attend(leaves, AttentionOptions { dropout: Some(DROPOUT), ..options(4, form) })
        })
    };
    assert_eq!(attend(&first(&attention)), attend(&attention)[..2 * 30 * 32]);
    let mlp = |inputs: &[Input]| {
        infer(inputs, DType::F32, Form::Auto, |leaves, form| {
            mlp(leaves, Activation::Gelu, Some(DROPOUT), form)
        })
    };
    let apart = distance(&mlp(&first(&mlp_inputs)), &mlp(&mlp_inputs)[..2 * 30 * 32]);
    assert!(apart < 1e-6, "{apart}");
}

#[test]
fn constants_mix_with_tracked_parameters() {
    let inputs = mlp_inputs([2, 7, 16], 24);
    let tracked = run(&inputs, DType::F32, Form::Auto, |leaves, form| {
        mlp(leaves, Activation::Gelu, None, form)
    });
    // `x` on a device without autodiff: the same, but no gradient by it.
    let values = |name| inputs.iter().find(|input| input.name == name).expect(name).values.clone();
    let x = burn::tensor::TensorData::new(values("x"), [2, 7, 16]);
    let partly = run(&inputs[1..], DType::F32, Form::Auto, |leaves, form| {
        let x = Tensor::from_data(x.clone(), (&Device::flex(), DType::F32));
        let weights = MlpWeights {
            norm_weight: leaves.one("norm_weight"),
            norm_bias: leaves.one("norm_bias"),
            up_weight: leaves.two("up_weight"),
            up_bias: leaves.one("up_bias"),
            down_weight: leaves.two("down_weight"),
            down_bias: leaves.one("down_bias"),
        };
        mlp_block(x, weights, Activation::Gelu, None, form)
    });
    assert_eq!(partly.output, tracked.output);
    assert_eq!(partly.gradients, tracked.gradients[1..]);
}

#[test]
fn blocks_follow_each_other_under_gradient_checkpointing() {
    let inputs = mlp_inputs([2, 7, 16], 24);
    let twice = |leaves: &Leaves, form: Form| {
        let once = mlp(leaves, Activation::Gelu, None, form);
        once * leaves.three("x")
    };
    let plain =
        agreement::run_on(&Device::flex().autodiff(), &inputs, DType::F32, Form::Auto, twice);
    let device = Device::flex().autodiff().gradient_checkpointing();
    let balanced = agreement::run_on(&device, &inputs, DType::F32, Form::Auto, twice);
    assert_eq!(plain, balanced);
}
