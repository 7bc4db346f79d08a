//! The most probable values of densities: the best of many points, refined between its neighbours.
//! All in double precision, as the agents search.

use std::f64::consts::{FRAC_PI_2, PI};

use overtone_model::head::Domain;

use crate::{
    graph::{Attribute, Graph, Name},
    proto::data_type,
};

/// Rounds of refinement; each divides the distance of the points by [`POINTS`].
const ROUNDS: usize = 7;
/// Points on each side of the best one.
const POINTS: usize = 16;
/// Relative difference of two densities that is rounding.
const TIE: f64 = 1e-9;
/// Steps to the top of a mixture, and jumps after them.
const CLIMBS: usize = 80;
const JUMPS: usize = 4;

/// Mixtures of Gaussians, each `[dimensions, 1, components]`.
pub struct Mixture {
    /// μ
    pub means: Name,
    /// σ; the deviations may have fewer axes.
    pub stds: Name,
    /// π; `None`: equal.
    pub weights: Option<Name>,
}

/// The maxima of `|A(z)|²` on [-1, 1], `[1, dimensions]`.
///
/// # Shapes
/// - `coefficients`: `[dimensions, 2n]`, real parts first
pub fn fourier(
    g: &mut Graph<'_>,
    coefficients: &str,
    dimensions: usize,
    n: usize,
    domain: Domain,
) -> Name {
    let part = |g: &mut Graph<'_>, at: usize| {
        let part = g.slice(coefficients, 1, at * n, (at + 1) * n);
        g.reshape(&part, &[dimensions, 1, n])
    };
    let (u, v) = (part(g, 0), part(g, 1));
    let frequencies: Vec<f64> = (0..n).map(|l| l as f64 * PI * domain.stretch()).collect();
    let frequencies = g.doubles(&frequencies, &[n]);
    let quarter = g.doubles(&[FRAC_PI_2], &[]);
    let power = |g: &mut Graph<'_>, points: &str| {
        let angles = g.op("Mul", &[points, &frequencies]);
        let sin = g.op("Sin", &[&angles]);
        let shifted = g.op("Add", &[&angles, &quarter]);
        let cos = g.op("Sin", &[&shifted]);
        let sum = |g: &mut Graph<'_>, kind: &str, [a, b]: [&str; 2], [c, d]: [&str; 2]| {
            let (first, second) = (g.op("Mul", &[a, b]), g.op("Mul", &[c, d]));
            let both = g.op(kind, &[&first, &second]);
            let sum = g.sum_last(&both);
            g.op("Mul", &[&sum, &sum])
        };
        let re = sum(g, "Sub", [&u, &cos], [&v, &sin]);
        let im = sum(g, "Add", [&u, &sin], [&v, &cos]);
        g.op("Add", &[&re, &im])
    };
    let cells = 16 * n;
    let step = 2.0 / cells as f64;
    let grid: Vec<f64> = (0..=cells).map(|i| -1.0 + i as f64 * step).collect();
    let zero = g.doubles(&vec![0.0; dimensions], &[dimensions, 1, 1]);
    let grid = g.doubles(&grid, &[1, cells + 1, 1]);
    let points = g.op("Add", &[&zero, &grid]);
    let best = best_of(g, &points, &power);
    let steps = g.doubles(&vec![step; dimensions], &[dimensions, 1, 1]);
    let z = refined(g, best, steps, domain, &power);
    let z = g.cast(&z, data_type::FLOAT);
    g.reshape(&z, &[1, dimensions])
}

/// The maxima of mixtures of Gaussians, `[1, dimensions]`: the highest of the tops that are above
/// the means, the first one of equals.
///
/// From `z`, the next place is the mean of the Gaussians' means, weighted by their densities at `z`
/// divided by their variances. Each of the last steps jumps to the limit of two such steps as if
/// they were a geometric series (Steffensen's method).
pub fn mixture(g: &mut Graph<'_>, mixture: &Mixture, dimensions: usize) -> Name {
    let means = g.cast(&mixture.means, data_type::DOUBLE);
    let stds = g.cast(&mixture.stds, data_type::DOUBLE);
    let weights = mixture.weights.as_ref().map(|weights| g.cast(weights, data_type::DOUBLE));
    let half = g.doubles(&[-0.5], &[]);
    let variances = g.op("Mul", &[&stds, &stds]);
    let tiny = g.doubles(&[f64::MIN_POSITIVE], &[]);
    let parts = |g: &mut Graph<'_>, points: &str| {
        let apart = g.op("Sub", &[points, &means]);
        let apart = g.op("Div", &[&apart, &stds]);
        let square = g.op("Mul", &[&apart, &apart]);
        let exponent = g.op("Mul", &[&square, &half]);
        let normal = g.op("Exp", &[&exponent]);
        let parts = g.op("Div", &[&normal, &stds]);
        match &weights {
            None => parts,
            Some(weights) => g.op("Mul", &[&parts, weights]),
        }
    };
    let next = |g: &mut Graph<'_>, points: &str| {
        let parts = parts(g, points);
        let pull = g.op("Div", &[&parts, &variances]);
        let pulled = g.op("Mul", &[&pull, &means]);
        let (above, below) = (g.sum_last(&pulled), g.sum_last(&pull));
        // A Gaussian without weight, far from the others, has no top.
        let below = g.op("Add", &[&below, &tiny]);
        g.op("Div", &[&above, &below])
    };
    // `[dimensions, components, 1]`
    let mut z = g.transpose(&means, &[0, 2, 1]);
    for _ in 0..CLIMBS {
        z = next(g, &z);
    }
    let least = g.doubles(&[1e-14], &[]);
    for _ in 0..JUMPS {
        let first = next(g, &z);
        let second = next(g, &first);
        let (before, after) = (g.op("Sub", &[&first, &z]), g.op("Sub", &[&second, &first]));
        let bend = g.op("Sub", &[&after, &before]);
        let (size, square) = (g.op("Abs", &[&bend]), g.op("Mul", &[&after, &after]));
        let is_over = g.op("Less", &[&size, &least]);
        let one = g.doubles(&[1.0], &[]);
        let divisor = g.op("Where", &[&is_over, &one, &bend]);
        let jump = g.op("Div", &[&square, &divisor]);
        let far = g.op("Sub", &[&second, &jump]);
        z = g.op("Where", &[&is_over, &second, &far]);
    }
    let heights = parts(g, &z);
    let heights = g.sum_last(&heights);
    let attributes = [("axes", Attribute::Ints(&[1])), ("keepdims", Attribute::Int(1))];
    let largest = g.with("ReduceMax", &[&heights], &attributes);
    // A factor of 1 - 1e-9 is 1 for onnxruntime's optimizer, which leaves it out.
    let tie = g.doubles(&[TIE], &[]);
    let tie = g.op("Mul", &[&largest, &tie]);
    let least = g.op("Sub", &[&largest, &tie]);
    let is_top = g.op("GreaterOrEqual", &[&heights, &least]);
    let is_top = g.cast(&is_top, data_type::FLOAT);
    let at = g.arg_max(&is_top);
    let best = g.element(&z, &at);
    let best = g.cast(&best, data_type::FLOAT);
    g.reshape(&best, &[1, dimensions])
}

/// The point of each dimension with the largest value, `[dimensions, 1, 1]`.
fn best_of(g: &mut Graph<'_>, points: &str, value: &dyn Fn(&mut Graph<'_>, &str) -> Name) -> Name {
    let values = value(g, points);
    let at = g.arg_max(&values);
    g.element(points, &at)
}

/// The maxima within `step` of `best`, `[dimensions, 1, 1]`. A periodic density goes on at the other
/// end.
fn refined(
    g: &mut Graph<'_>,
    mut best: Name,
    mut step: Name,
    domain: Domain,
    value: &dyn Fn(&mut Graph<'_>, &str) -> Name,
) -> Name {
    let n = POINTS as i64;
    let offsets: Vec<f64> = (-n..=n).map(|i| i as f64 / n as f64).collect();
    let offsets = g.doubles(&offsets, &[1, offsets.len(), 1]);
    let divisor = g.doubles(&[POINTS as f64], &[]);
    let (low, high) = (g.doubles(&[-1.0], &[]), g.doubles(&[1.0], &[]));
    for _ in 0..ROUNDS {
        let away = g.op("Mul", &[&step, &offsets]);
        let mut points = g.op("Add", &[&best, &away]);
        if domain == Domain::HalfRange {
            points = g.op("Max", &[&points, &low]);
            points = g.op("Min", &[&points, &high]);
        }
        best = best_of(g, &points, value);
        step = g.op("Div", &[&step, &divisor]);
    }
    if domain == Domain::HalfRange {
        return best;
    }
    let period = g.doubles(&[2.0], &[]);
    let (up, down) = (g.op("Add", &[&best, &period]), g.op("Sub", &[&best, &period]));
    let (is_below, is_above) = (g.op("Less", &[&best, &low]), g.op("Greater", &[&best, &high]));
    let best = g.op("Where", &[&is_below, &up, &best]);
    g.op("Where", &[&is_above, &down, &best])
}
