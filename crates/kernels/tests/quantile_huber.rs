//! The quantile regression loss: the reference compared with the formula and with differences, the
//! fused form compared with the reference.

mod agreement;

use agreement::{Input, Leaves, check_differences_of, check_fused_by, check_repeats, infer};
use burn::tensor::{DType, Tensor};
use overtone_kernels::{Form, quantile_huber};

/// Errors on both sides of Huber's 1.
fn inputs(rows: usize, n: usize, m: usize) -> Vec<Input> {
    vec![
        Input::new("quantiles", &[rows, n], 0.1, 1.5),
        Input::new("targets", &[rows, m], -0.2, 1.5),
    ]
}

fn loss(leaves: &Leaves, form: Form) -> Tensor<1> {
    quantile_huber(leaves.two("quantiles"), leaves.two("targets"), form)
}

#[test]
fn the_reference_is_the_formula() {
    let (rows, n, m) = (3, 5, 4);
    let inputs = inputs(rows, n, m);
    let got = infer(&inputs, DType::F64, Form::Reference, loss);
    for (row, got) in got.iter().enumerate() {
        let mut expected = 0.0;
        for i in 0..n {
            let level = (i as f64 + 0.5) / n as f64;
            for j in 0..m {
                let u = inputs[1].values[row * m + j] - inputs[0].values[row * n + i];
                let huber = if u.abs() <= 1.0 { u * u / 2.0 } else { u.abs() - 0.5 };
                expected += (level - f64::from(u < 0.0)).abs() * huber / m as f64;
            }
        }
        assert!((got - expected).abs() < 1e-13, "{row}");
    }
}

#[test]
fn gradients_of_the_reference_are_differences() {
    check_differences_of(1e-6, &inputs(3, 7, 5), 40, 1e-6, loss);
}

/// Rows of one task and of several, and widths that are not multiples of a vector.
#[test]
fn the_fused_form_agrees_with_the_reference() {
    for (rows, n, m) in [(7, 3, 5), (40, 3, 1), (300, 25, 25), (9, 200, 200), (5, 32, 17)] {
        check_fused_by(|_| 2e-5, &inputs(rows, n, m), loss);
    }
}

#[test]
fn results_repeat_to_the_bit() {
    check_repeats(&inputs(64, 25, 25), loss);
    check_repeats(&inputs(8, 200, 200), loss);
}

/// Training stops at a loss that is NaN, so a NaN must not be lost.
#[test]
fn a_nan_stays_nan() {
    for name in ["quantiles", "targets"] {
        let mut inputs = inputs(2, 25, 25);
        let input = inputs.iter_mut().find(|input| input.name == name).unwrap();
        input.values[3] = f64::NAN;
        for form in [Form::Auto, Form::Reference] {
            let got = infer(&inputs, DType::F32, form, loss);
            assert!(got[0].is_nan() && got[1].is_finite(), "{name}, {form:?}");
        }
    }
}

#[test]
#[should_panic(expected = "the same number of rows")]
fn targets_need_the_same_number_of_rows() {
    let inputs =
        [Input::new("quantiles", &[2, 4], 0.0, 1.0), Input::new("targets", &[3, 4], 0.0, 1.0)];
    infer(&inputs, DType::F32, Form::Auto, loss);
}
