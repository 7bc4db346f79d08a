//! The perceptron 2 → 64 → 32 → head with ReLU, its parameters in one slice, forward and
//! backward.

use multiversion::multiversion;
use overtone_core::seed::Generator;
use overtone_model::init::fan_in_bound;
use rand::RngExt;

use super::number::Number;
use super::product::{LANES, Left, padded, product, transpose};

/// Numbers that the network sees.
pub const INPUTS: usize = 2;
/// Widths of the hidden layers.
pub const HIDDEN: [usize; 2] = [64, 32];

/// An affine layer `y = x W + b` in the slice of parameters: `W` as `[inputs, columns]`, then
/// `b` as `[columns]`. Columns past `outputs` are zero and stay so.
#[derive(Clone, Copy, Debug)]
struct Layer {
    inputs: usize,
    outputs: usize,
    columns: usize,
    at: usize,
}

impl Layer {
    fn end(self) -> usize {
        self.at + (self.inputs + 1) * self.columns
    }

    /// The part of a slice of parameters that is this layer's: weights and biases.
    fn of<T>(self, parameters: &[T]) -> (&[T], &[T]) {
        parameters[self.at..self.end()].split_at(self.inputs * self.columns)
    }

    fn of_mut<T>(self, parameters: &mut [T]) -> (&mut [T], &mut [T]) {
        parameters[self.at..self.end()].split_at_mut(self.inputs * self.columns)
    }
}

/// The network and what it has computed last.
#[derive(Clone, Debug)]
pub struct Network<T> {
    layers: [Layer; 3],
    /// The layers' parameters, then the head's free ones.
    pub parameters: Vec<T>,
    /// As [`Self::parameters`]; of the last backward pass.
    pub gradients: Vec<T>,
    /// Results of the hidden layers, `[rows, width]`.
    hidden: [Vec<T>; 2],
    /// Results of the last layer, `[rows, columns]`.
    outputs: Vec<T>,
    /// The loss's gradient by [`Self::outputs`].
    by_outputs: Vec<T>,
    by_hidden: [Vec<T>; 2],
    turned: Vec<T>,
}

impl<T: Number> Network<T> {
    /// A network with `outputs` results and the head's `free` parameters, weights and biases
    /// U(±1/√inputs), PyTorch's default; those of the last layer divided by `divisor`.
    pub fn init(outputs: usize, free: &[f64], divisor: f64, generator: &mut Generator) -> Self {
        let mut network = Self::zeros(outputs, free);
        for index in 0..network.layers.len() {
            let layer = network.layers[index];
            let bound = fan_in_bound(layer.inputs);
            let divisor = if index == 2 { divisor } else { 1.0 };
            let mut draw = || generator.random_range(-bound..bound) / divisor;
            let weight: Vec<f64> = (0..layer.outputs * layer.inputs).map(|_| draw()).collect();
            let bias: Vec<f64> = (0..layer.outputs).map(|_| draw()).collect();
            network.load(index, &weight, &bias);
        }
        network
    }

    fn zeros(outputs: usize, free: &[f64]) -> Self {
        let mut at = 0;
        let mut layer = |inputs, outputs| {
            let layer = Layer { inputs, outputs, columns: padded(outputs), at };
            at = layer.end();
            layer
        };
        let layers =
            [layer(INPUTS, HIDDEN[0]), layer(HIDDEN[0], HIDDEN[1]), layer(HIDDEN[1], outputs)];
        let mut parameters = vec![T::ZERO; at];
        parameters.extend(free.iter().map(|&value| T::of(value)));
        Self {
            layers,
            gradients: vec![T::ZERO; parameters.len()],
            parameters,
            hidden: [Vec::new(), Vec::new()],
            outputs: Vec::new(),
            by_outputs: Vec::new(),
            by_hidden: [Vec::new(), Vec::new()],
            turned: Vec::new(),
        }
    }

    /// Sets layer `index` of three; `weight` is `[outputs, inputs]` as PyTorch has it.
    ///
    /// # Panics
    /// When a slice has another length.
    pub fn load(&mut self, index: usize, weight: &[f64], bias: &[f64]) {
        let layer = self.layers[index];
        assert_eq!((weight.len(), bias.len()), (layer.inputs * layer.outputs, layer.outputs));
        let (weights, biases) = layer.of_mut(&mut self.parameters);
        for (output, weight) in weight.chunks_exact(layer.inputs).enumerate() {
            for (input, value) in weight.iter().enumerate() {
                weights[input * layer.columns + output] = T::of(*value);
            }
        }
        for (into, value) in biases.iter_mut().zip(bias) {
            *into = T::of(*value);
        }
    }

    /// Weights `[outputs, inputs]` and biases of layer `index` of three.
    pub fn layer(&self, index: usize) -> (Vec<f64>, Vec<f64>) {
        let layer = self.layers[index];
        let (weights, biases) = layer.of(&self.parameters);
        let places = (0..layer.outputs)
            .flat_map(|output| (0..layer.inputs).map(move |input| (input, output)));
        let weight = places.map(|(input, output)| weights[input * layer.columns + output].wide());
        (weight.collect(), biases[..layer.outputs].iter().map(|bias| bias.wide()).collect())
    }

    /// The head's free parameters.
    pub fn free(&self) -> &[T] {
        &self.parameters[self.layers[2].end()..]
    }

    /// Sets the head's free parameters.
    ///
    /// # Panics
    /// When there are not as many.
    pub fn set_free(&mut self, values: &[f64]) {
        let free = self.layers[2].end();
        let free = &mut self.parameters[free..];
        assert_eq!(free.len(), values.len(), "free parameters");
        free.iter_mut().zip(values).for_each(|(free, value)| *free = T::of(*value));
    }

    /// What [`Self::forward`] gave last.
    pub fn outputs(&self) -> &[T] {
        &self.outputs
    }

    /// Rows of the results begin this far apart.
    pub fn columns(&self) -> usize {
        self.layers[2].columns
    }

    /// The results of the last layer, `[rows, columns]`.
    ///
    /// # Shapes
    /// - `inputs`: `[rows, 2]`
    pub fn forward(&mut self, inputs: &[T]) -> &[T] {
        let rows = inputs.len() / INPUTS;
        let [first, second] = &mut self.hidden;
        let results = [first, second, &mut self.outputs];
        let mut before = inputs;
        for (index, (layer, into)) in self.layers.iter().zip(results).enumerate() {
            let (weight, bias) = layer.of(&self.parameters);
            into.resize(rows * layer.columns, T::ZERO);
            let left = Left::rows(before, rows, layer.inputs, layer.inputs);
            product(left, weight, layer.columns, into);
            if index < HIDDEN.len() {
                add_bias_relu(into, bias);
            } else {
                add_bias(into, bias);
            }
            before = into;
        }
        &self.outputs
    }

    /// What a loss needs after [`Self::forward`]: the results, the head's free parameters, and
    /// where it leaves its gradients by either.
    pub fn for_loss(&mut self) -> ForLoss<'_, T> {
        self.by_outputs.clear();
        self.by_outputs.resize(self.outputs.len(), T::ZERO);
        let free = self.layers[2].end();
        let by_free = &mut self.gradients[free..];
        by_free.fill(T::ZERO);
        ForLoss {
            outputs: &self.outputs,
            columns: self.layers[2].columns,
            free: &self.parameters[free..],
            by_outputs: &mut self.by_outputs,
            by_free,
        }
    }

    /// Fills [`Self::gradients`] of the layers, after [`Self::forward`] on the same inputs and
    /// a loss on [`Self::for_loss`].
    pub fn backward(&mut self, inputs: &[T]) {
        let rows = inputs.len() / INPUTS;
        let [first, second] = &mut self.by_hidden;
        for index in (0..self.layers.len()).rev() {
            let layer = self.layers[index];
            let (before, from, into): (&[T], &mut Vec<T>, Option<&mut Vec<T>>) = match index {
                0 => (inputs, first, None),
                1 => (&self.hidden[0], second, Some(&mut *first)),
                _ => (&self.hidden[1], &mut self.by_outputs, Some(&mut *second)),
            };
            let (by_weight, by_bias) = layer.of_mut(&mut self.gradients);
            let left = Left::transposed(before, layer.inputs, rows, layer.inputs);
            product(left, from, layer.columns, by_weight);
            sum_rows(from, by_bias);
            if let Some(into) = into {
                let (weight, _) = layer.of(&self.parameters);
                self.turned.resize(layer.outputs * layer.inputs, T::ZERO);
                transpose(weight, layer.outputs, layer.columns, &mut self.turned, layer.inputs);
                into.resize(rows * layer.inputs, T::ZERO);
                let left = Left::rows(from, rows, layer.outputs, layer.columns);
                product(left, &self.turned, layer.inputs, into);
                mask(into, before);
            }
        }
    }
}

/// What a loss reads and writes.
pub struct ForLoss<'a, T> {
    /// `[rows, columns]`
    pub outputs: &'a [T],
    /// Rows begin this far apart.
    pub columns: usize,
    /// The head's free parameters.
    pub free: &'a [T],
    /// The gradient by `outputs`, zero so far.
    pub by_outputs: &'a mut [T],
    /// The gradient by `free`, zero so far.
    pub by_free: &'a mut [T],
}

#[multiversion(targets = "simd")]
fn add_bias<T: Number>(values: &mut [T], bias: &[T]) {
    for row in values.chunks_exact_mut(bias.len()) {
        for (value, bias) in row.iter_mut().zip(bias) {
            *value += *bias;
        }
    }
}

#[multiversion(targets = "simd")]
fn add_bias_relu<T: Number>(values: &mut [T], bias: &[T]) {
    for row in values.chunks_exact_mut(bias.len()) {
        for (value, bias) in row.iter_mut().zip(bias) {
            *value = (*value + *bias).or_more(T::ZERO);
        }
    }
}

/// Zero where the unit was: ReLU's gradient, 0 at 0.
#[multiversion(targets = "simd")]
fn mask<T: Number>(gradient: &mut [T], unit: &[T]) {
    for (gradient, unit) in gradient.iter_mut().zip(unit) {
        *gradient = if *unit > T::ZERO { *gradient } else { T::ZERO };
    }
}

/// The sum of the rows of `values`; eight columns at a time, in registers.
#[multiversion(targets = "simd")]
fn sum_rows<T: Number>(values: &[T], into: &mut [T]) {
    let columns = into.len();
    for (column, into) in into.chunks_exact_mut(LANES).enumerate() {
        let mut sums = [T::ZERO; LANES];
        for row in values.chunks_exact(columns) {
            for (sum, value) in sums.iter_mut().zip(&row[column * LANES..][..LANES]) {
                *sum += *value;
            }
        }
        into.copy_from_slice(&sums);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use overtone_core::seed;

    fn network(outputs: usize) -> Network<f64> {
        Network::init(outputs, &[0.5], 1.0, &mut seed::generator(1, "init"))
    }

    /// `y = W relu(W relu(W x + b) + b) + b`, term by term.
    fn by_definition(network: &Network<f64>, input: &[f64]) -> Vec<f64> {
        (0..3).fold(input.to_vec(), |before, index| {
            let (weight, bias) = network.layer(index);
            let dot = |row: &[f64]| -> f64 { row.iter().zip(&before).map(|(w, x)| w * x).sum() };
            let affine = weight.chunks_exact(before.len()).zip(&bias).map(|(w, b)| dot(w) + b);
            affine.map(|x| if index < 2 { x.max(0.0) } else { x }).collect()
        })
    }

    const ROWS: [f64; 6] = [3.0, 41.0, -2.0, 17.0, 0.5, 0.25];

    #[test]
    fn forward_is_the_definition() {
        let mut network = network(5);
        let outputs = network.forward(&ROWS).to_vec();
        assert_eq!(outputs.len(), 3 * 8);
        for (row, input) in outputs.chunks_exact(8).zip(ROWS.chunks_exact(2)) {
            for (got, expected) in row.iter().zip(by_definition(&network, input)) {
                assert!((got - expected).abs() < 1e-12, "{got} against {expected}");
            }
            assert_eq!(row[5..], [0.0; 3]);
        }
    }

    /// Of `Σ c_i y_i` with all c different, by every parameter.
    #[test]
    fn backward_is_the_gradient() {
        let mut network = network(5);
        let factor = |i: usize| ((i * i) as f64).cos();
        let loss = |network: &mut Network<f64>| -> f64 {
            let outputs = network.forward(&ROWS);
            outputs.iter().enumerate().filter(|(i, _)| i % 8 < 5).map(|(i, y)| factor(i) * y).sum()
        };
        network.forward(&ROWS);
        let parts = network.for_loss();
        for (i, by) in parts.by_outputs.iter_mut().enumerate().filter(|(i, _)| i % 8 < 5) {
            *by = factor(i);
        }
        network.backward(&ROWS);
        let gradients = network.gradients.clone();
        let mut n_moving = 0;
        for (index, gradient) in gradients.into_iter().enumerate() {
            let (at, step) = (network.parameters[index], 1e-6);
            network.parameters[index] = at + step;
            let above = loss(&mut network);
            network.parameters[index] = at - step;
            let difference = (above - loss(&mut network)) / (2.0 * step);
            network.parameters[index] = at;
            // Padding is pushed by nothing here: its results are not in the loss.
            let off = (gradient - difference).abs();
            assert!(off < 1e-6, "{index}: {gradient} against {difference}");
            n_moving += usize::from(difference.abs() > 1e-3);
        }
        assert!(n_moving > 1000, "{n_moving}");
    }

    #[test]
    fn layers_are_read_back_as_loaded() {
        let mut network = network(5);
        let weight: Vec<f64> = (0..5 * 32).map(f64::from).collect();
        let bias = [1.0, 2.0, 3.0, 4.0, 5.0];
        network.load(2, &weight, &bias);
        assert_eq!(network.layer(2), (weight, bias.to_vec()));
        assert_eq!(network.free(), [0.5]);
    }

    #[test]
    fn initial_weights_fill_their_bounds() {
        let network: Network<f32> = Network::init(50, &[], 100.0, &mut seed::generator(4, "init"));
        for (index, bound) in [(0, 0.5f64.sqrt()), (1, 1.0 / 8.0), (2, 0.01 / 32f64.sqrt())] {
            let (weight, bias) = network.layer(index);
            for values in [weight, bias] {
                let largest = values.iter().fold(0.0f64, |most, x| most.max(x.abs()));
                assert!(largest <= bound && largest > 0.9 * bound, "{index}: {largest}");
            }
        }
    }
}
