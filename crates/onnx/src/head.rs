//! Action heads.

use std::f64::consts::PI;

use overtone_core::ActionSpace;
use overtone_model::head::{BinsHeadConfig, HeadConfig, MixtureLayout, MixtureStd, MixtureWeights};

use crate::{
    density::{self, Mixture},
    error::ExportError,
    graph::{Attribute, Graph, Name},
    proto::data_type,
};

/// The floor of a bin's probability before its logarithm, as in the heads.
const KAPPA: f32 = 1e-5;
/// The floor of a squared amplitude, as in the Fourier head.
const TINY: f32 = 1e-18;

/// The result of a head.
pub enum Output {
    /// Scores of discrete actions, `[1, n]`.
    Logits(Name),
    /// The most probable action, or the prediction, `[1, width]`.
    Numbers(Name),
}

/// The head of `config` on the rows `hidden`, `[1, d_model]`, with weights below `prefix`.
///
/// # Errors
/// When a weight is missing, or the head's most probable action has no closed form.
pub fn head(
    g: &mut Graph<'_>,
    hidden: &str,
    config: &HeadConfig,
    actions: &ActionSpace,
    prefix: &str,
) -> Result<Output, ExportError> {
    let order = config.action_order(actions);
    let bin_of = order.as_ref().map(|order| order.bin_of().to_vec());
    let columns = bin_of.unwrap_or_else(|| (0..actions.size()).collect());
    let logits = |g: &mut Graph<'_>, head: BinsHeadConfig| {
        on_bins(g, hidden, &head, &columns, prefix).map(Output::Logits)
    };
    Ok(match config {
        HeadConfig::Linear(options) => logits(g, BinsHeadConfig::Linear(*options))?,
        HeadConfig::Fourier(options) => logits(g, BinsHeadConfig::Fourier(options.clone()))?,
        HeadConfig::Gmm(options) => logits(g, BinsHeadConfig::Gmm(options.clone()))?,
        HeadConfig::Tanh(_) => {
            let numbers = g.affine(hidden, prefix)?;
            Output::Numbers(g.op("Tanh", &[&numbers]))
        }
        HeadConfig::Pointwise(_) => Output::Numbers(g.affine(hidden, prefix)?),
        HeadConfig::Gaussian(_) => {
            let mean = g.affine(hidden, &format!("{prefix}.mean"))?;
            Output::Numbers(g.op("Tanh", &[&mean]))
        }
        HeadConfig::Binned(options) => {
            let columns: Vec<usize> = (0..options.bins).collect();
            let centres: Vec<f32> =
                columns.iter().map(|&bin| centre(bin, options.bins) as f32).collect();
            let centres = g.floats(&centres, &[options.bins]);
            let mut numbers = Vec::new();
            for dimension in 0..actions.size() {
                let prefix = format!("{prefix}.heads.{dimension}");
                let logits = on_bins(g, hidden, &options.head, &columns, &prefix)?;
                let best = g.arg_max(&logits);
                numbers.push(g.op("Gather", &[&centres, &best]));
            }
            Output::Numbers(g.concat(&numbers, 1))
        }
        HeadConfig::FourierLikelihood(options) => {
            let n = options.frequencies + 1;
            let coefficients = g.affine(hidden, prefix)?;
            let coefficients = g.cast(&coefficients, data_type::DOUBLE);
            let coefficients = g.reshape(&coefficients, &[actions.size(), 2 * n]);
            Output::Numbers(density::fourier(g, &coefficients, actions.size(), n, options.domain))
        }
        HeadConfig::GmmLikelihood(options) => {
            let mixture = mixture(g, hidden, options.layout(actions.size()), prefix)?;
            Output::Numbers(density::mixture(g, &mixture, actions.size()))
        }
    })
}

/// The centre of a bin, on [-1, 1].
fn centre(bin: usize, m: usize) -> f64 {
    -1.0 + (2 * bin + 1) as f64 / m as f64
}

/// Logits of bins, `[1, m]`; `columns` has the bin of each of them.
///
/// # Errors
/// When a weight is missing.
pub fn on_bins(
    g: &mut Graph<'_>,
    hidden: &str,
    head: &BinsHeadConfig,
    columns: &[usize],
    prefix: &str,
) -> Result<Name, ExportError> {
    let m = columns.len();
    match head {
        BinsHeadConfig::Linear(_) => g.affine(hidden, prefix),
        BinsHeadConfig::Fourier(options) => {
            let n = options.frequencies + 1;
            let coefficients = g.affine(hidden, prefix)?;
            let (u, v) = (g.slice(&coefficients, 1, 0, n), g.slice(&coefficients, 1, n, 2 * n));
            let table = |of: fn(f64) -> f64| -> Vec<f32> {
                let angle = |l: usize, bin: usize| {
                    l as f64 * PI * options.domain.stretch() * centre(bin, m)
                };
                let rows = (0..n).flat_map(|l| columns.iter().map(move |&bin| (l, bin)));
                rows.map(|(l, bin)| of(angle(l, bin)) as f32).collect()
            };
            let (cos, sin) =
                (g.floats(&table(f64::cos), &[n, m]), g.floats(&table(f64::sin), &[n, m]));
            let product = |g: &mut Graph<'_>, a: &str, b: &str| g.op("MatMul", &[a, b]);
            let (uc, vs) = (product(g, &u, &cos), product(g, &v, &sin));
            let (us, vc) = (product(g, &u, &sin), product(g, &v, &cos));
            let (re, im) = (g.op("Sub", &[&uc, &vs]), g.op("Add", &[&us, &vc]));
            let (re, im) = (g.op("Mul", &[&re, &re]), g.op("Mul", &[&im, &im]));
            let (power, tiny) = (g.op("Add", &[&re, &im]), g.float(TINY));
            let power = g.op("Add", &[&power, &tiny]);
            let total = g.sum_last(&power);
            let probs = g.op("Div", &[&power, &total]);
            Ok(floored_log(g, &probs))
        }
        BinsHeadConfig::Gmm(options) => {
            let Mixture { means, stds, weights } = mixture(g, hidden, options.layout(m), prefix)?;
            let centres: Vec<f32> = columns.iter().map(|&bin| centre(bin, m) as f32).collect();
            let centres = g.floats(&centres, &[1, m, 1]);
            let apart = g.op("Sub", &[&centres, &means]);
            let apart = g.op("Div", &[&apart, &stds]);
            let (square, half) = (g.op("Mul", &[&apart, &apart]), g.float(-0.5));
            let exponent = g.op("Mul", &[&square, &half]);
            let normal = g.op("Exp", &[&exponent]);
            let normal = g.op("Div", &[&normal, &stds]);
            let root = (2.0 * PI).sqrt();
            let (parts, factor) = match weights {
                None => (normal, 1.0 / (options.components as f64 * root)),
                Some(weights) => (g.op("Mul", &[&normal, &weights]), 1.0 / root),
            };
            let (sum, factor) = (g.sum_last(&parts), g.float(factor as f32));
            let density = g.op("Mul", &[&sum, &factor]);
            let density = g.reshape(&density, &[1, m]);
            Ok(floored_log(g, &density))
        }
    }
}

/// The mixtures of a head's affine layer: groups of means, deviations and weights.
fn mixture(
    g: &mut Graph<'_>,
    hidden: &str,
    layout: MixtureLayout,
    prefix: &str,
) -> Result<Mixture, ExportError> {
    let MixtureLayout { dimensions, components, .. } = layout;
    let gaussians = dimensions * components;
    let shape = [dimensions, 1, components];
    let outputs = g.affine(hidden, prefix)?;
    let group = |g: &mut Graph<'_>, at: usize| {
        let columns = g.slice(&outputs, 1, at * gaussians, (at + 1) * gaussians);
        g.reshape(&columns, &shape)
    };
    let means = group(g, 0);
    let means = g.op("Tanh", &[&means]);
    let mut next = 1;
    let stds = match layout.std {
        MixtureStd::Shared => {
            let raw = g.weight(&format!("{prefix}.raw_std"))?;
            let raw = g.reshape(&raw, &shape);
            deviations(g, &raw, 1e-6)
        }
        MixtureStd::State => {
            let raw = group(g, next);
            next += 1;
            deviations(g, &raw, 1e-3)
        }
        MixtureStd::Fixed => g.floats(&vec![layout.fixed_std as f32; gaussians], &shape),
    };
    let weights = (layout.weights == MixtureWeights::Learned).then(|| {
        let raw = group(g, next);
        g.with("Softmax", &[&raw], &[("axis", Attribute::Int(2))])
    });
    Ok(Mixture { means, stds, weights })
}

/// `ln(p + κ)`
fn floored_log(g: &mut Graph<'_>, probs: &str) -> Name {
    let kappa = g.float(KAPPA);
    let floored = g.op("Add", &[probs, &kappa]);
    g.op("Log", &[&floored])
}

/// `softplus`, at least `least`.
fn deviations(g: &mut Graph<'_>, raw: &str, least: f32) -> Name {
    let (soft, least) = (g.op("Softplus", &[raw]), g.float(least));
    g.op("Max", &[&soft, &least])
}

/// The `q`-quantile of distributions over bins, `[rows, 1]`, from logits `[rows, m]`: values within
/// a bin are assumed to be equally likely.
pub fn bins_quantile(g: &mut Graph<'_>, logits: &str, m: usize, q: f64) -> Name {
    // In double precision, as the agent computes it.
    let logits = g.cast(logits, data_type::DOUBLE);
    let probs = g.with("Softmax", &[&logits], &[("axis", Attribute::Int(1))]);
    let axis = g.ints(&[1]);
    let axis = g.reshape(&axis, &[]);
    let below = g.with("CumSum", &[&probs, &axis], &[("exclusive", Attribute::Int(1))]);
    let up_to = g.op("CumSum", &[&probs, &axis]);
    // The first bin whose cumulative probability exceeds q.
    let q = g.doubles(&[q], &[1, 1]);
    let beyond = g.op("Greater", &[&up_to, &q]);
    let beyond = g.cast(&beyond, data_type::FLOAT);
    let at = g.arg_max(&beyond);
    let (p, below) = (g.element(&probs, &at), g.element(&below, &at));
    let left = g.op("Sub", &[&q, &below]);
    let place = g.op("Div", &[&left, &p]);
    let bin = g.cast(&at, data_type::DOUBLE);
    let z = g.op("Add", &[&bin, &place]);
    let (width, one) = (g.doubles(&[2.0 / m as f64], &[1, 1]), g.doubles(&[1.0], &[1, 1]));
    let z = g.op("Mul", &[&z, &width]);
    let z = g.op("Sub", &[&z, &one]);
    g.cast(&z, data_type::FLOAT)
}
