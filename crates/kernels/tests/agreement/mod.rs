//! Runs an operation in its forms and compares values and gradients.
#![allow(dead_code)] // each test binary uses its part

pub mod operands;

use burn::tensor::{DType, Device, Tensor, TensorData};
use overtone_kernels::Form;

/// Uniform numbers in `[-1, 1)`, a function of the seed.
pub fn noise(n: usize, seed: u64) -> Vec<f64> {
    let mut state = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) ^ 0x1234_5678_9abc_def1;
    (0..n)
        .map(|_| {
            state ^= state << 13;
            state ^= state >> 7;
            state ^= state << 17;
            (state >> 11) as f64 / (1u64 << 52) as f64 - 1.0
        })
        .collect()
}

/// A named input of an operation.
#[derive(Clone)]
pub struct Input {
    pub name: &'static str,
    pub shape: Vec<usize>,
    pub values: Vec<f64>,
}

impl Input {
    /// `centre` plus noise of this size, rounded to `f32` so that all precisions agree.
    pub fn new(name: &'static str, shape: &[usize], centre: f64, size: f64) -> Self {
        let seed = name.bytes().fold(7u64, |seed, byte| seed * 31 + u64::from(byte));
        let values = noise(shape.iter().product(), seed)
            .into_iter()
            .map(|x| f64::from((centre + size * x) as f32))
            .collect();
        Self { name, shape: shape.to_vec(), values }
    }
}

/// A tensor of any number of axes that tracks its gradient.
enum Leaf {
    One(Tensor<1>),
    Two(Tensor<2>),
    Three(Tensor<3>),
    Four(Tensor<4>),
}

/// The inputs as tensors of one type on one device.
pub struct Leaves(Vec<(&'static str, Leaf)>);

macro_rules! leaf {
    ($name:ident, $axes:literal, $variant:ident) => {
        pub fn $name(&self, name: &str) -> Tensor<$axes> {
            match self.0.iter().find(|(known, _)| *known == name) {
                Some((_, Leaf::$variant(tensor))) => tensor.clone(),
                _ => panic!("input {name} of {} axes does not exist", $axes),
            }
        }
    };
}

impl Leaves {
    leaf!(one, 1, One);
    leaf!(two, 2, Two);
    leaf!(three, 3, Three);
    leaf!(four, 4, Four);

    /// Tracked tensors on the CPU.
    pub fn of(inputs: &[Input], dtype: DType) -> Self {
        Self::new(inputs, &Device::flex().autodiff(), dtype)
    }

    fn new(inputs: &[Input], device: &Device, dtype: DType) -> Self {
        fn tensor<const D: usize>(input: &Input, device: &Device, dtype: DType) -> Tensor<D> {
            let data = TensorData::new(input.values.clone(), input.shape.clone());
            let tensor = Tensor::from_data(data, (device, dtype));
            if device.is_autodiff() { tensor.require_grad() } else { tensor }
        }
        let leaves = inputs.iter().map(|input| {
            let leaf = match input.shape.len() {
                1 => Leaf::One(tensor(input, device, dtype)),
                2 => Leaf::Two(tensor(input, device, dtype)),
                3 => Leaf::Three(tensor(input, device, dtype)),
                _ => Leaf::Four(tensor(input, device, dtype)),
            };
            (input.name, leaf)
        });
        Self(leaves.collect())
    }
}

fn numbers<const D: usize>(tensor: Tensor<D>) -> Vec<f64> {
    tensor.into_data().iter::<f64>().collect()
}

/// The output, and the gradient of `Σ output · direction` by each input.
#[derive(Clone, PartialEq, Debug)]
pub struct Outcome {
    pub output: Vec<f64>,
    pub gradients: Vec<(&'static str, Vec<f64>)>,
}

/// Runs forward and backward.
pub fn run<const D: usize>(
    inputs: &[Input],
    dtype: DType,
    form: Form,
    operation: impl Fn(&Leaves, Form) -> Tensor<D>,
) -> Outcome {
    run_on(&Device::flex().autodiff(), inputs, dtype, form, operation)
}

/// Runs forward and backward on an autodiff device.
pub fn run_on<const D: usize>(
    device: &Device,
    inputs: &[Input],
    dtype: DType,
    form: Form,
    operation: impl Fn(&Leaves, Form) -> Tensor<D>,
) -> Outcome {
    let leaves = Leaves::new(inputs, device, dtype);
    let output = operation(&leaves, form);
    let gradients = weighed(output.clone()).backward();
    let by = |name: &str, gradient: Option<Vec<f64>>| {
        gradient.unwrap_or_else(|| panic!("the gradient by {name} is missing"))
    };
    let gradients = leaves
        .0
        .iter()
        .map(|(name, leaf)| {
            let gradient = match leaf {
                Leaf::One(tensor) => tensor.grad(&gradients).map(numbers),
                Leaf::Two(tensor) => tensor.grad(&gradients).map(numbers),
                Leaf::Three(tensor) => tensor.grad(&gradients).map(numbers),
                Leaf::Four(tensor) => tensor.grad(&gradients).map(numbers),
            };
            (*name, by(name, gradient))
        })
        .collect();
    Outcome { output: numbers(output), gradients }
}

/// Only the output, on a device without autodiff.
pub fn infer<const D: usize>(
    inputs: &[Input],
    dtype: DType,
    form: Form,
    operation: impl Fn(&Leaves, Form) -> Tensor<D>,
) -> Vec<f64> {
    infer_on(&Device::flex(), inputs, dtype, form, operation)
}

/// Only the output, on a device.
pub fn infer_on<const D: usize>(
    device: &Device,
    inputs: &[Input],
    dtype: DType,
    form: Form,
    operation: impl Fn(&Leaves, Form) -> Tensor<D>,
) -> Vec<f64> {
    numbers(operation(&Leaves::new(inputs, device, dtype), form))
}

/// `Σ output · direction`.
pub fn weighed<const D: usize>(output: Tensor<D>) -> Tensor<1> {
    let direction = direction(&output);
    (output * direction).sum()
}

fn direction<const D: usize>(output: &Tensor<D>) -> Tensor<D> {
    let shape = output.dims();
    let values = noise(shape.iter().product(), 99);
    Tensor::from_data(TensorData::new(values, shape), (&output.device(), output.dtype()))
}

/// Largest difference relative to the largest exact value.
pub fn distance(got: &[f64], exact: &[f64]) -> f64 {
    assert_eq!(got.len(), exact.len());
    let size = exact.iter().fold(0.0f64, |size, x| size.max(x.abs()));
    let apart = got.iter().zip(exact).fold(0.0f64, |apart, (x, y)| {
        let difference = (x - y).abs();
        assert!(difference.is_finite(), "{x} against {y}");
        apart.max(difference)
    });
    apart / size
}

/// Checks the fused form in `f32` against the reference in `f64`, output and gradients, and the
/// output without autodiff against the output with autodiff.
#[track_caller]
pub fn check_fused<const D: usize>(
    inputs: &[Input],
    tolerance: f64,
    operation: impl Fn(&Leaves, Form) -> Tensor<D>,
) {
    check_fused_by(|_| tolerance, inputs, operation);
}

/// As [`check_fused`], with a tolerance for each input's gradient and for the `output`.
#[track_caller]
pub fn check_fused_by<const D: usize>(
    tolerance: impl Fn(&str) -> f64,
    inputs: &[Input],
    operation: impl Fn(&Leaves, Form) -> Tensor<D>,
) {
    let fused = check_single(tolerance, inputs, &operation);
    // If the fused form had not run, the results would equal the reference to the last bit.
    let reference = run(inputs, DType::F32, Form::Reference, &operation);
    assert!(reference.gradients != fused.gradients, "the fused form did not run");
}

/// As [`check_fused_by`], for cases in which the fused form may give the reference's bits.
#[track_caller]
pub fn check_single<const D: usize>(
    tolerance: impl Fn(&str) -> f64,
    inputs: &[Input],
    operation: impl Fn(&Leaves, Form) -> Tensor<D>,
) -> Outcome {
    let exact = run(inputs, DType::F64, Form::Auto, &operation);
    let fused = run(inputs, DType::F32, Form::Auto, &operation);
    let apart = distance(&fused.output, &exact.output);
    println!("output: {apart:.1e}");
    assert!(apart < tolerance("output"), "output: {apart:.1e}");
    for ((name, got), (_, exact)) in fused.gradients.iter().zip(&exact.gradients) {
        let apart = distance(got, exact);
        println!("{name}: {apart:.1e}");
        assert!(apart < tolerance(name), "{name}: {apart:.1e}");
    }
    assert!(infer(inputs, DType::F32, Form::Auto, &operation) == fused.output);
    fused
}

/// Checks that a result without elements has gradients of zero.
#[track_caller]
pub fn check_empty<const D: usize>(
    inputs: &[Input],
    operation: impl Fn(&Leaves, Form) -> Tensor<D>,
) {
    let outcome = run(inputs, DType::F32, Form::Auto, operation);
    assert!(outcome.output.is_empty());
    for ((name, gradient), input) in outcome.gradients.iter().zip(inputs) {
        assert_eq!(*gradient, vec![0.0; input.values.len()], "{name}");
    }
}

/// Checks the gradients of the reference in `f64` by central differences at `points`
/// elements of every input.
#[track_caller]
pub fn check_differences<const D: usize>(
    inputs: &[Input],
    points: usize,
    tolerance: f64,
    operation: impl Fn(&Leaves, Form) -> Tensor<D>,
) {
    check_differences_of(1e-5, inputs, points, tolerance, operation);
}

/// As [`check_differences`], with steps of this size.
#[track_caller]
pub fn check_differences_of<const D: usize>(
    step: f64,
    inputs: &[Input],
    points: usize,
    tolerance: f64,
    operation: impl Fn(&Leaves, Form) -> Tensor<D>,
) {
    let loss = |inputs: &[Input]| -> f64 {
        let output = infer(inputs, DType::F64, Form::Reference, &operation);
        output.iter().zip(noise(output.len(), 99)).map(|(x, w)| x * w).sum()
    };
    let exact = run(inputs, DType::F64, Form::Reference, &operation);
    for (i, (name, gradient)) in exact.gradients.iter().enumerate() {
        let size = gradient.iter().fold(0.0f64, |size, x| size.max(x.abs()));
        for point in 0..points {
            let at = (point * 7919 + 13) % gradient.len();
            let moved = |by: f64| {
                let mut inputs = inputs.to_vec();
                inputs[i].values[at] += by;
                loss(&inputs)
            };
            let difference = (moved(step) - moved(-step)) / (2.0 * step);
            let apart = (difference - gradient[at]).abs() / size;
            assert!(apart < tolerance, "{name}[{at}]: {difference} against {}", gradient[at]);
        }
    }
}

/// Checks that the fused form gives the same bits again, and on one thread.
#[track_caller]
pub fn check_repeats<const D: usize>(
    inputs: &[Input],
    operation: impl Fn(&Leaves, Form) -> Tensor<D> + Sync,
) {
    let once = run(inputs, DType::F32, Form::Auto, &operation);
    assert_eq!(once, run(inputs, DType::F32, Form::Auto, &operation));
    for threads in [1, 3] {
        let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().expect("a pool");
        let again = pool.install(|| run(inputs, DType::F32, Form::Auto, &operation));
        assert_eq!(once, again, "{threads} threads");
    }
}
