//! Several perceptrons 2 → 64 → 32 → head of one shape, trained as one network.
//!
//! A step of one such network takes longer in the tensor library than in arithmetic. So the runs
//! of a head are stacked: weights are `[runs, inputs, outputs]`, a product is one batched product,
//! and each run has its own data, random numbers and gradient norm.

use burn::{
    module::{Module, Param},
    tensor::{Device, Int, Tensor, TensorData, activation::relu},
};
use overtone_core::seed::Generator;
use overtone_model::init::fan_in_bound;
use overtone_train::{AdamW, AdamWConfig};
use rand::RngExt;

use super::head::{HeadKind, Targets};

/// Widths of the input and of the hidden layers.
const WIDTHS: [usize; 3] = [2, 64, 32];
/// Likelihood heads: the largest norm of a run's gradient over all parameters.
const MAX_NORM: f64 = 0.1;

/// See the [module's documentation](self).
#[derive(Module, Debug)]
pub struct Stack {
    /// Of each layer, `[runs, inputs, outputs]`.
    pub weights: Vec<Param<Tensor<3>>>,
    /// Of each layer, `[runs, 1, outputs]`.
    pub biases: Vec<Param<Tensor<3>>>,
    /// A mixture's standard deviations before the softplus, `[runs, 1, components]`.
    pub raw_stds: Option<Param<Tensor<3>>>,
}

impl Stack {
    /// Networks for a head, one from each generator: weights and biases U(±1/√inputs), PyTorch's
    /// default, those of the last layer divided as the head says.
    pub fn init(kind: HeadKind, generators: &mut [Generator], device: &Device) -> Self {
        let runs = generators.len();
        let outputs = [WIDTHS[1], WIDTHS[2], kind.outputs()];
        let load = |values: Vec<f32>, rows: usize, columns: usize| {
            Param::from_data(TensorData::new(values, [runs, rows, columns]), device)
        };
        let (mut weights, mut biases) = (Vec::new(), Vec::new());
        for (layer, (inputs, outputs)) in WIDTHS.into_iter().zip(outputs).enumerate() {
            let divisor = if layer == 2 { kind.divisor() } else { 1.0 };
            let bound = fan_in_bound(inputs);
            let mut drawn = |n: usize| -> Vec<f32> {
                let one = |generator: &mut Generator| -> Vec<f32> {
                    let number = |_| (generator.random_range(-bound..bound) / divisor) as f32;
                    (0..n).map(number).collect()
                };
                generators.iter_mut().flat_map(one).collect()
            };
            weights.push(load(drawn(inputs * outputs), inputs, outputs));
            biases.push(load(drawn(outputs), 1, outputs));
        }
        let raw = kind.raw_stds();
        let raw_stds = (!raw.is_empty()).then(|| load(raw.repeat(runs), 1, raw.len()));
        Self { weights, biases, raw_stds }
    }

    /// The head's outputs for each row of each run.
    ///
    /// # Shapes
    /// - `inputs`: `[runs, rows, 2]`
    /// - result: `[runs · rows, outputs]`, of a mixture `[runs · rows, 2 · components]`
    pub fn forward(&self, inputs: Tensor<3>) -> Tensor<2> {
        let mut x = inputs;
        for (layer, (weight, bias)) in self.weights.iter().zip(&self.biases).enumerate() {
            x = x.matmul(weight.val()) + bias.val();
            if layer + 1 < WIDTHS.len() {
                x = relu(x);
            }
        }
        let [runs, rows, width] = x.dims();
        if let Some(raw) = &self.raw_stds {
            x = Tensor::cat(vec![x, raw.val().expand([runs, rows, width])], 2);
        }
        let [.., width] = x.dims();
        x.reshape([runs * rows, width])
    }

    /// All parameters.
    fn parameters(&self) -> impl Iterator<Item = Tensor<3>> {
        let all = self.weights.iter().chain(&self.biases).chain(&self.raw_stds);
        all.map(Param::val)
    }
}

/// Rows of every run, on the host: `[runs, rows]`, flat.
#[derive(Clone, Debug, Default)]
pub struct Batch {
    /// `[runs, rows, 2]`
    pub inputs: Vec<f32>,
    /// `[runs, rows]`: the bin of `z`.
    pub bins: Vec<i32>,
    /// `[runs, rows]`: `z` for likelihood heads, else the centre of its bin.
    pub values: Vec<f32>,
}

impl Batch {
    /// The inputs `[runs, rows, 2]` and the targets on a device.
    pub fn load(&self, runs: usize, device: &Device) -> (Tensor<3>, Targets) {
        let rows = self.bins.len() / runs;
        let inputs = TensorData::new(self.inputs.clone(), [runs, rows, WIDTHS[0]]);
        let bins = Tensor::<1, Int>::from_data(&self.bins[..], device);
        let values = Tensor::from_data(&self.values[..], device);
        (Tensor::from_data(inputs, device), Targets { bins, values })
    }
}

/// A stack and its optimizer: Adam with PyTorch's defaults.
pub struct Trainer {
    /// The networks.
    pub stack: Stack,
    kind: HeadKind,
    optimizer: AdamW,
    device: Device,
}

/// The losses and gradient norms of a step.
pub struct Step {
    /// Mean loss of each run before the step, regulariser included, `[runs]`.
    pub losses: Tensor<1>,
    /// Norm of each run's gradient before it is clipped, `[runs]`; `None` where nothing is
    /// clipped.
    pub norms: Option<Tensor<1>>,
}

impl Trainer {
    /// New networks, one from each generator.
    pub fn new(kind: HeadKind, generators: &mut [Generator]) -> Self {
        let device = Device::flex().autodiff();
        let stack = Stack::init(kind, generators, &device);
        let config = AdamWConfig { clip_norm: f64::MAX, ..AdamWConfig::default() };
        Self { stack, kind, optimizer: AdamW::new(config), device }
    }

    /// One step of each run on its rows.
    pub fn step(&mut self, batch: &Batch, learning_rate: f64) -> Step {
        let [runs, ..] = self.stack.weights[0].dims();
        let (inputs, targets) = batch.load(runs, &self.device);
        let (rows, regularizer) = self.kind.losses(self.stack.forward(inputs), &targets);
        let rows = match regularizer {
            Some(regularizer) => rows + regularizer,
            None => rows,
        };
        let n = batch.bins.len() / runs;
        let losses = rows.reshape([runs, n]).mean_dim(1).squeeze_dim::<1>(1);
        // A run's parameters move only its own loss, so the sum has every run's gradient.
        let mut gradients = losses.clone().sum().backward();
        let norms = self.kind.is_likelihood().then(|| {
            let parameters: Vec<Tensor<3>> = self.stack.parameters().collect();
            let by: Vec<Tensor<3>> = parameters
                .iter()
                .map(|of| of.grad(&gradients).unwrap_or_else(|| of.zeros_like().inner()))
                .collect();
            let squares = by.iter().map(|by| by.clone().square().sum_dim(2).sum_dim(1));
            let sum = squares.reduce(|sum, part| sum + part).expect("a stack has parameters");
            let norms = sum.sqrt();
            let factor = ((norms.clone() + 1e-6).recip() * MAX_NORM).clamp_max(1.0);
            for (parameter, by) in parameters.iter().zip(by) {
                parameter.grad_replace(&mut gradients, by * factor.clone());
            }
            norms.reshape([runs])
        });
        let stack = self.stack.clone();
        self.stack = self.optimizer.step(stack, gradients, learning_rate).0;
        Step { losses: losses.inner(), norms }
    }

    /// The networks without gradients.
    pub fn valid(&self) -> Stack {
        self.stack.valid()
    }
}
