//! Encoders and perceptrons.

use overtone_core::{Normalization, ObservationSpace};

use crate::{
    error::ExportError,
    graph::{Attribute, Graph, Name},
    proto::data_type,
};

/// Added to standard deviations, for an agent that normalizes by itself.
const VALUE_EPSILON: f32 = 1e-3;

/// The observations of `rows` timesteps as the network reads them; vectors are `[rows, width]`.
pub fn observations(
    g: &mut Graph<'_>,
    space: &ObservationSpace,
    normalization: Option<&Normalization>,
    rows: usize,
) -> Name {
    match space {
        ObservationSpace::Pixels { shape } => {
            let dims: Vec<usize> = [rows].iter().chain(shape).copied().collect();
            let bytes = g.input("observations", data_type::UINT8, &dims);
            let (numbers, largest) = (g.cast(&bytes, data_type::FLOAT), g.float(255.0));
            g.op("Div", &[&numbers, &largest])
        }
        ObservationSpace::Vectors { width } => {
            let raw = g.input("observations", data_type::FLOAT, &[rows, *width]);
            let Some(Normalization { mean, std }) = normalization else { return raw };
            // A dimension without spread is hidden: its result is 0.
            let scale: Vec<f32> =
                std.iter().map(|&std| if std == 0.0 { 0.0 } else { 1.0 / (std + 1e-6) }).collect();
            let (mean, scale) = (g.floats(mean, &[*width]), g.floats(&scale, &[*width]));
            let centred = g.op("Sub", &[&raw, &mean]);
            g.op("Mul", &[&centred, &scale])
        }
    }
}

/// Normalized observations as value-based algorithms read them: divided by `std + 1e-3`, or in the
/// environment's units.
pub fn rescaled(
    g: &mut Graph<'_>,
    normalized: &str,
    normalization: Option<&Normalization>,
    is_normalized: bool,
) -> Name {
    let Some(Normalization { mean, std }) = normalization else { return normalized.into() };
    let n = std.len();
    if is_normalized {
        let factors: Vec<f32> =
            std.iter().map(|std| (std + 1e-6) / (std + VALUE_EPSILON)).collect();
        let factors = g.floats(&factors, &[n]);
        return g.op("Mul", &[normalized, &factors]);
    }
    let factors: Vec<f32> = std.iter().map(|std| std + 1e-6).collect();
    let (factors, mean) = (g.floats(&factors, &[n]), g.floats(mean, &[n]));
    let scaled = g.op("Mul", &[normalized, &factors]);
    g.op("Add", &[&scaled, &mean])
}

/// Affine layers `prefix.0`, `prefix.1` … with ReLU after each but, if `is_open`, the last.
///
/// # Errors
/// When a weight is missing.
pub fn layers(
    g: &mut Graph<'_>,
    x: &str,
    prefix: &str,
    n: usize,
    is_open: bool,
) -> Result<Name, ExportError> {
    let mut x = x.to_owned();
    for layer in 0..n {
        x = g.affine(&x, &format!("{prefix}.{layer}"))?;
        if !(is_open && layer + 1 == n) {
            x = g.op("Relu", &[&x]);
        }
    }
    Ok(x)
}

/// The Nature encoder of `rows` stacks of frames: `[rows, d_model]`.
///
/// # Errors
/// When a weight is missing.
pub fn nature(
    g: &mut Graph<'_>,
    frames: &str,
    prefix: &str,
    rows: usize,
) -> Result<Name, ExportError> {
    let mut x = frames.to_owned();
    for (layer, (kernel, stride)) in (1..).zip([(8, 4), (4, 2), (3, 1)]) {
        let weight = g.weight(&format!("{prefix}.conv_{layer}_weight"))?;
        let bias = g.weight(&format!("{prefix}.conv_{layer}_bias"))?;
        let attributes = [
            ("kernel_shape", Attribute::Ints(&[kernel, kernel])),
            ("strides", Attribute::Ints(&[stride, stride])),
        ];
        x = g.with("Conv", &[&x, &weight, &bias], &attributes);
        x = g.op("Relu", &[&x]);
    }
    let weight = g.weight(&format!("{prefix}.linear_weight"))?;
    let bias = g.weight(&format!("{prefix}.linear_bias"))?;
    let inputs = g.shape(&weight)[0];
    let flat = g.reshape(&x, &[rows, inputs]);
    let product = g.op("MatMul", &[&flat, &weight]);
    let sum = g.op("Add", &[&product, &bias]);
    Ok(g.op("Tanh", &[&sum]))
}

/// The features of one observation by a body of convolutions or of `n_layers` affine layers.
///
/// # Errors
/// When a weight is missing.
pub fn body(
    g: &mut Graph<'_>,
    observation: &str,
    space: &ObservationSpace,
    n_layers: usize,
) -> Result<Name, ExportError> {
    match space {
        ObservationSpace::Pixels { .. } => nature(g, observation, "body", 1),
        ObservationSpace::Vectors { .. } => layers(g, observation, "body", n_layers, false),
    }
}
