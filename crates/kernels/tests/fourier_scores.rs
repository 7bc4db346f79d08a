//! The Fourier integral kernel's scores: the reference compared with the formula and with
//! differences, the fused form compared with the reference, and hard inputs for both.

mod agreement;

use std::f64::consts::PI;

use agreement::{
    Input, check_differences_of, check_empty, check_fused_by, check_repeats, distance, infer,
    noise,
    operands::{check_far_scores, check_hard_scores, check_nan_of_scores, score_inputs, scores},
    run,
};
use burn::tensor::DType;
use overtone_kernels::{
    Form,
    fourier_scores::{FLOOR, fourier_scores, probabilities},
};
use overtone_testkit::assert_gradient;

/// Tolerance of the fused form. Largest seen: 3e-7, and 2e-6 by a single `R`, whose gradient is a
/// sum of cancelling terms.
fn tolerance(input: &str) -> f64 {
    if input == "r" { 1e-5 } else { 2e-6 }
}

/// The formula, computed directly, and the maximum effect of the floor on it.
fn by_definition(q: &[f64], k: &[f64], r: &[f64], power: f64) -> [f64; 2] {
    let (mut score, mut moved) = (0.0, 1e-11);
    for ((q, k), r) in q.iter().zip(k).zip(r) {
        let x = r * (q - k);
        if x != 0.0 {
            score += power * (x.sin() / x).abs().ln();
        }
        if x.abs() >= 0.5 {
            moved += power * FLOOR * FLOOR / x.sin().powi(2);
        }
    }
    [score, moved]
}

#[test]
fn the_reference_is_the_formula() {
    for (d, size) in [(16, 0.2), (32, 2.0), (64, 12.5)] {
        let (heads, tokens) = (3, 5);
        let inputs = score_inputs([2, heads, tokens, d], [heads, d], size);
        for power in [2, 4, 6] {
            let got = infer(&inputs, DType::F64, Form::Reference, |leaves, form| {
                scores(leaves, power, form)
            });
            let [q, k, r] = [0, 1, 2].map(|i| &inputs[i].values);
            for (index, got) in got.iter().enumerate() {
                let (key, query) = (index % tokens, index / tokens);
                let key = query / tokens * tokens + key;
                let head = query / tokens % heads;
                let [q, k] = [&q[query * d..][..d], &k[key * d..][..d]];
                let [expected, moved] = by_definition(q, k, &r[head * d..][..d], f64::from(power));
                let apart = (got - expected).abs();
                assert!(apart < moved, "{d}, {power}, {index}: {got} against {expected}");
            }
        }
    }
}

#[test]
fn gradients_of_the_reference_are_differences() {
    // |R (q − k)| up to 1, 10 and 50. Steps are smaller if arguments come near zeros of the sine,
    // where the slope changes quickly.
    for (d, size, step, tolerance) in
        [(16, 0.2, 1e-5, 1e-8), (32, 2.0, 1e-8, 1e-6), (64, 10.0, 1e-9, 1e-5)]
    {
        for r in [[3, d], [1, 1], [3, 1], [1, d]] {
            let inputs = score_inputs([2, 3, 5, d], r, size);
            check_differences_of(step, &inputs, 40, tolerance, |leaves, form| {
                scores(leaves, 4, form)
            });
        }
    }
}

/// One query and one key with `R (q − k)` equal to `x`, and all other values random: the scores as
/// a function of queries, keys and `R`, flat.
fn check_points(what: &str, x: &[f64], step: f64, relative: f64) {
    let d = x.len();
    let mut at = noise(5 * d, 5); // two queries, two keys, R
    for (i, x) in x.iter().enumerate() {
        at[4 * d + i] = 2.0 + 0.25 * at[4 * d + i];
        at[2 * d + i] = at[i] - x / at[4 * d + i];
    }
    assert_gradient(what, &at, step, relative, |flat| {
        let part = |i: usize, n: usize| flat.clone().narrow(0, i * d, n * d);
        let q = part(0, 2).reshape([1, 1, 2, d]);
        let k = part(2, 2).reshape([1, 1, 2, d]);
        fourier_scores(q, k, part(4, 1).reshape([1, d]), 4, Form::Reference).sum()
    });
}

#[test]
fn gradients_at_hard_points_are_differences() {
    for d in [16, 32, 64] {
        check_points("coincident", &vec![0.0; d], 1e-6, 1e-7);
        let zeros: Vec<f64> = (0..d).map(|i| PI * (1 + i % 16) as f64).collect();
        // The slope at a zero is not steep: steps are small compared with the floor.
        check_points("at zeros of the sine", &zeros, 1e-9, 2e-3);
        let near_zeros: Vec<f64> = zeros.iter().map(|x| x + 0.3 * FLOOR).collect();
        check_points("within the floor", &near_zeros, 1e-9, 1e-3);
        let near: Vec<f64> = zeros.iter().map(|x| x + 1e-3).collect();
        check_points("near zeros of the sine", &near, 1e-7, 1e-4);
        let seam: Vec<f64> = (0..d).map(|i| 0.5 + 1e-4 * (i as f64 - 7.5)).collect();
        check_points("where the series ends", &seam, 1e-6, 1e-7);
    }
}

#[test]
fn the_fused_form_agrees_with_the_reference() {
    // Arguments on both sides of 2, the end of the polynomial for small ones, and none near a zero
    // of the sine.
    for (shape, size) in [([2, 3, 7, 16], 0.4), ([2, 3, 33, 32], 0.55), ([1, 2, 20, 64], 0.5)] {
        for r in [[shape[1], shape[3]], [1, 1]] {
            for power in [2, 4, 6] {
                check_fused_by(tolerance, &score_inputs(shape, r, size), |leaves, form| {
                    scores(leaves, power, form)
                });
            }
        }
    }
}

/// In cross-attention, keys come from another sequence.
#[test]
fn keys_may_be_fewer_or_more_than_queries() {
    for (queries, keys) in [(3, 20), (20, 3), (1, 33)] {
        let inputs = |size| {
            vec![
                Input::new("q", &[2, 3, queries, 16], 0.0, size),
                Input::new("k", &[2, 3, keys, 16], 0.0, size),
                Input::new("r", &[3, 16], 2.0, 0.4),
            ]
        };
        check_fused_by(tolerance, &inputs(0.4), |leaves, form| scores(leaves, 4, form));
        check_differences_of(1e-5, &inputs(0.2), 40, 1e-8, |leaves, form| scores(leaves, 4, form));
        // Each score depends only on its query and its key.
        let got =
            infer(&inputs(0.4), DType::F32, Form::Auto, |leaves, form| scores(leaves, 4, form));
        let first = infer(&inputs(0.4), DType::F32, Form::Auto, |leaves, form| {
            let [q, k] = ["q", "k"].map(|name| leaves.four(name).narrow(2, 0, 1));
            fourier_scores(q, k, leaves.two("r"), 4, form)
        });
        let expected: Vec<f64> = got.iter().step_by(queries * keys).copied().collect();
        assert!(distance(&first, &expected) < 1e-6, "{queries} queries, {keys} keys");
    }
}

#[test]
fn far_arguments_are_as_accurate_as_in_plain_tensors() {
    check_far_scores(|inputs| {
        run(inputs, DType::F32, Form::Auto, |leaves, form| scores(leaves, 4, form))
    });
}

#[test]
fn hard_points_are_finite() {
    for (dtype, form) in
        [(DType::F64, Form::Reference), (DType::F32, Form::Reference), (DType::F32, Form::Auto)]
    {
        check_hard_scores(|inputs| {
            run(inputs, dtype, form, |leaves, form| scores(leaves, 6, form))
        });
    }
}

/// Every weight of every row underflows `f32`.
#[test]
fn rows_of_tiny_weights_are_normalised() {
    let inputs = score_inputs([1, 2, 12, 64], [1, 1], 8.0);
    let inferred =
        |dtype, form| infer(&inputs, dtype, form, |leaves, form| scores(leaves, 4, form));
    let exact = inferred(DType::F64, Form::Reference);
    assert!(exact.iter().all(|score| (*score as f32).exp() == 0.0), "weights do not underflow");
    let normal = |dtype, form| {
        infer(&inputs, dtype, form, |leaves, form| probabilities(scores(leaves, 4, form), 0.0))
    };
    let exact = normal(DType::F64, Form::Reference);
    for form in [Form::Auto, Form::Reference] {
        let got = normal(DType::F32, form);
        let apart = distance(&got, &exact);
        println!("{form:?}: {apart:.1e}");
        assert!(apart < 1e-3, "{form:?}: {apart:.1e}");
        for row in got.chunks(12) {
            assert!((row.iter().sum::<f64>() - 1.0).abs() < 1e-6);
        }
    }
}

#[test]
fn a_nan_is_in_every_score_that_depends_on_it() {
    for form in [Form::Auto, Form::Reference] {
        check_nan_of_scores(|inputs| {
            run(inputs, DType::F32, form, |leaves, form| scores(leaves, 4, form))
        });
    }
}

#[test]
fn no_scores_have_gradients_of_zero() {
    for [queries, keys] in [[0, 3], [3, 0]] {
        let inputs = [
            Input::new("q", &[2, 3, queries, 16], 0.0, 0.4),
            Input::new("k", &[2, 3, keys, 16], 0.0, 0.4),
            Input::new("r", &[3, 16], 2.0, 0.4),
        ];
        check_empty(&inputs, |leaves, form| scores(leaves, 4, form));
    }
}

#[test]
fn results_repeat_to_the_bit() {
    check_repeats(&score_inputs([3, 4, 21, 16], [4, 16], 1.0), |leaves, form| {
        scores(leaves, 4, form)
    });
}

#[test]
#[should_panic(expected = "power 3 must be even")]
fn odd_powers_are_refused() {
    let inputs = score_inputs([1, 1, 2, 4], [1, 1], 1.0);
    infer(&inputs, DType::F32, Form::Auto, |leaves, form| scores(leaves, 3, form));
}

#[test]
#[should_panic(expected = "R of 2 × 4 for 3 heads of 4 dimensions")]
fn radii_of_other_shapes_are_refused() {
    let inputs = score_inputs([1, 3, 2, 4], [2, 4], 1.0);
    infer(&inputs, DType::F32, Form::Auto, |leaves, form| scores(leaves, 4, form));
}
