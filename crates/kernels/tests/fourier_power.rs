//! The squared amplitude of Fourier series: the reference compared with the formula and with
//! differences, the fused form compared with the reference.

mod agreement;

use agreement::{Input, Leaves, check_differences_of, check_fused_by, check_repeats, infer};
use burn::tensor::{DType, Tensor};
use overtone_kernels::{Form, fourier_power};

fn inputs(rows: usize, n: usize) -> Vec<Input> {
    vec![
        Input::new("coefficients", &[rows, 2 * (n + 1)], 0.1, 0.5),
        Input::new("z", &[rows], 0.0, 1.0),
    ]
}

fn power(leaves: &Leaves, stretch: f64, form: Form) -> Tensor<1> {
    fourier_power(leaves.two("coefficients"), leaves.one("z"), stretch, form)
}

#[test]
fn the_reference_is_the_formula() {
    let (n, rows) = (5, 4);
    let inputs = inputs(rows, n);
    let got = infer(&inputs, DType::F64, Form::Reference, |leaves, form| power(leaves, 0.5, form));
    for (i, got) in got.iter().enumerate() {
        let row = &inputs[0].values[i * 2 * (n + 1)..][..2 * (n + 1)];
        let angle = |l: usize| l as f64 * std::f64::consts::PI * 0.5 * inputs[1].values[i];
        let re: f64 =
            (0..=n).map(|l| row[l] * angle(l).cos() - row[n + 1 + l] * angle(l).sin()).sum();
        let im: f64 =
            (0..=n).map(|l| row[l] * angle(l).sin() + row[n + 1 + l] * angle(l).cos()).sum();
        assert!((got - (re * re + im * im)).abs() < 1e-13, "{i}");
    }
}

#[test]
fn gradients_of_the_reference_are_differences() {
    for stretch in [1.0, 0.5] {
        check_differences_of(1e-6, &inputs(3, 7), 40, 1e-7, |leaves, form| {
            power(leaves, stretch, form)
        });
    }
}

/// More rows than in one task.
#[test]
fn the_fused_form_agrees_with_the_reference() {
    for (rows, n) in [(7, 3), (300, 14), (40, 128)] {
        for stretch in [1.0, 0.5] {
            // Plain tensors round angles up to 400 in `f32`; the reference is in `f64`.
            check_fused_by(|_| 2e-5, &inputs(rows, n), |leaves, form| power(leaves, stretch, form));
        }
    }
}

#[test]
fn results_repeat_to_the_bit() {
    check_repeats(&inputs(600, 14), |leaves, form| power(leaves, 1.0, form));
}

#[test]
#[should_panic(expected = "one point per row")]
fn points_must_be_as_many_as_rows() {
    let inputs = [Input::new("coefficients", &[2, 4], 0.0, 1.0), Input::new("z", &[3], 0.0, 1.0)];
    infer(&inputs, DType::F32, Form::Auto, |leaves, form| power(leaves, 1.0, form));
}
