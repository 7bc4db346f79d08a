//! Affine layers with ReLU between them: the fused form compared with the reference, and the
//! reference compared with differences.

mod agreement;

use agreement::{
    Input, Leaves, Outcome, check_differences, check_fused, check_single, distance, run, weighed,
};
use burn::tensor::{DType, Gradients, Tensor};
use overtone_kernels::{Form, ReluLayer, relu_layers};

/// Largest relative error of the fused form seen: 1e-6.
const TOLERANCE: f64 = 5e-6;

const LAYERS: [[&str; 4]; 5] = [
    ["first_weight", "first_bias", "first_norm_weight", "first_norm_bias"],
    ["second_weight", "second_bias", "second_norm_weight", "second_norm_bias"],
    ["third_weight", "third_bias", "third_norm_weight", "third_norm_bias"],
    ["fourth_weight", "fourth_bias", "fourth_norm_weight", "fourth_norm_bias"],
    ["fifth_weight", "fifth_bias", "", ""],
];

/// Layers of these widths, with norms after all but the last, or without norms.
#[derive(Clone, Copy)]
struct Network {
    widths: &'static [usize],
    has_norms: bool,
}

impl Network {
    fn n_layers(self) -> usize {
        self.widths.len() - 1
    }

    fn has_norm(self, layer_idx: usize) -> bool {
        self.has_norms && layer_idx + 1 < self.n_layers()
    }

    fn inputs(self, rows: usize) -> Vec<Input> {
        let mut inputs = vec![Input::new("x", &[rows, self.widths[0]], 0.1, 1.5)];
        let layers = LAYERS.into_iter().enumerate().take(self.n_layers());
        for (i, [weight, bias, norm_weight, norm_bias]) in layers {
            let [n_inputs, n_outputs] = [self.widths[i], self.widths[i + 1]];
            let size = 2.0 / (n_inputs as f64).sqrt();
            inputs.push(Input::new(weight, &[n_inputs, n_outputs], 0.0, size));
            inputs.push(Input::new(bias, &[n_outputs], 0.0, 0.3));
            if self.has_norm(i) {
                inputs.push(Input::new(norm_weight, &[n_outputs], 1.0, 0.3));
                inputs.push(Input::new(norm_bias, &[n_outputs], 0.0, 0.3));
            }
        }
        inputs
    }

    fn layers(self, leaves: &Leaves) -> Vec<ReluLayer> {
        let layer = |(i, [weight, bias, norm_weight, norm_bias]): (usize, [&str; 4])| {
            let norm = self.has_norm(i).then(|| [leaves.one(norm_weight), leaves.one(norm_bias)]);
            ReluLayer { weight: leaves.two(weight), bias: leaves.one(bias), norm }
        };
        LAYERS.into_iter().enumerate().take(self.n_layers()).map(layer).collect()
    }

    fn run(self, leaves: &Leaves, form: Form) -> Tensor<2> {
        relu_layers(leaves.two("x"), self.layers(leaves), form)
    }
}

/// More rows than in a task, a part of a task, one row and one result; the longest network with
/// norms that is fused, and a longer one.
const SHAPES: [(usize, &[usize]); 6] = [
    (150, &[23, 256, 256, 1]),
    (64, &[11, 32, 40, 3]),
    (7, &[3, 17, 5, 2]),
    (1, &[2, 14, 13, 1]),
    (7, &[3, 17, 16, 15, 2]),
    (7, &[3, 17, 16, 15, 14, 2]),
];

#[test]
fn relu_layers_agree_with_the_reference() {
    for (rows, widths) in SHAPES {
        for has_norms in [false, true] {
            let network = Network { widths, has_norms };
            // Without norms, the reference has the same products, to the bit.
            check_single(
                |_| TOLERANCE,
                &network.inputs(rows),
                |leaves, form| network.run(leaves, form),
            );
        }
    }
    for (rows, widths) in [SHAPES[0], SHAPES[4]] {
        let network = Network { widths, has_norms: true };
        check_fused(&network.inputs(rows), TOLERANCE, |leaves, form| network.run(leaves, form));
    }
}

#[test]
fn gradients_of_the_reference_are_differences() {
    for has_norms in [false, true] {
        let network = Network { widths: &[5, 7, 9, 3], has_norms };
        check_differences(&network.inputs(6), 12, 1e-7, |leaves, form| network.run(leaves, form));
    }
}

/// The gradient of an input that needs one.
fn of<'a>(outcome: &'a Outcome, name: &str) -> &'a [f64] {
    &outcome.gradients.iter().find(|(of, _)| *of == name).expect(name).1
}

#[test]
fn relu_layers_compute_only_the_needed_gradients() {
    let network = Network { widths: &[5, 33, 20, 2], has_norms: true };
    let inputs = network.inputs(70);
    for form in [Form::Auto, Form::Reference] {
        let all = run(&inputs, DType::F32, form, |leaves, form| network.run(leaves, form));
        let leaves = Leaves::of(&inputs, DType::F32);
        let (x, layers) = (leaves.two("x"), network.layers(&leaves));
        let constant = |layer: ReluLayer| ReluLayer {
            weight: layer.weight.inner(),
            bias: layer.bias.inner(),
            norm: layer.norm.map(|norm| norm.map(Tensor::inner)),
        };
        let gradients = |x: Tensor<2>, layers| weighed(relu_layers(x, layers, form)).backward();
        let check = |gradients: &Gradients, wanted: &[&str]| {
            for input in &inputs {
                let got = match input.shape.len() {
                    1 => leaves.one(input.name).grad(gradients).map(Tensor::into_data),
                    _ => leaves.two(input.name).grad(gradients).map(Tensor::into_data),
                };
                let got = got.map(|data| data.iter::<f64>().collect::<Vec<_>>());
                let wanted = wanted.contains(&input.name);
                assert_eq!(got.as_deref(), wanted.then(|| of(&all, input.name)), "{}", input.name);
            }
        };
        // Only by `x`, through parameters that are constants.
        let constants: Vec<ReluLayer> = layers.iter().cloned().map(constant).collect();
        check(&gradients(x.clone(), constants.clone()), &["x"]);
        // Only by the parameters.
        let parameters: Vec<&str> = inputs[1..].iter().map(|input| input.name).collect();
        let x = x.inner();
        check(&gradients(x.clone(), layers.clone()), &parameters);
        // By all parameters except the weights.
        let vectors = layers.iter().cloned();
        let vectors = vectors.map(|layer| ReluLayer { weight: layer.weight.inner(), ..layer });
        let weights = LAYERS.map(|[weight, ..]| weight);
        let names: Vec<&str> =
            parameters.iter().copied().filter(|name| !weights.contains(name)).collect();
        check(&gradients(x.clone(), vectors.collect()), &names);
        // Only by the last layer.
        let last = [&constants[..2], &layers[2..]].concat();
        check(&gradients(x, last), &["third_weight", "third_bias"]);
    }
}

/// As in burn, so that training detects it.
#[test]
fn a_nan_lets_the_gradient_through() {
    let network = Network { widths: &[2, 14, 13, 1], has_norms: false };
    let mut inputs = network.inputs(3);
    inputs[0].values.fill(f64::NAN);
    let [fused, plain] = [Form::Auto, Form::Reference]
        .map(|form| run(&inputs, DType::F32, form, |leaves, form| network.run(leaves, form)));
    for name in ["first_bias", "second_bias"] {
        assert!(distance(of(&fused, name), of(&plain, name)) < TOLERANCE, "{name}");
    }
}
