//! The plots.

use overtone_eval::{Pooled, Smoothness};
use overtone_plot::{Line, LinePlot, Scale, Stroke};

use super::metrics::{MEDIAN, QUANTILES};
use super::tables::{MASE, Metric, SMOOTHNESS, WQL};
use super::{Forecast, Results, Run, Variant};
use crate::report::{LINEAR, Report, plot};

/// Values of the history that are drawn before a forecast.
const HISTORY: usize = 48;
/// Probability that may lie outside the drawn part of a distribution, on each side.
const TAIL: f64 = 2e-3;

/// Adds all plots.
pub(super) fn add(study: &Forecast, results: &Results, report: &mut Report) {
    for (label, name, metric, scale) in [
        ("MASE over the naive forecast's", "forecast-mase", MASE, Scale::Linear),
        ("WQL over the naive forecast's", "forecast-wql", WQL, Scale::Linear),
        ("smoothness", "forecast-smoothness", SMOOTHNESS, Scale::Log),
    ] {
        let curve = plot(
            format!("{label} and the number of frequencies"),
            ["frequencies N", label],
            [Scale::Log, scale],
            curves(study, results, metric),
        );
        report.plot(name, curve);
    }
    let linear = |mixed| Variant { fourier: None, mixed };
    // The Fourier head of most frequencies, regularised if any is.
    let most = study.frequencies.iter().copied().max().unwrap_or_default();
    let fourier = |mixed| Variant { fourier: Some((most, study.gamma)), mixed };
    for (name, variant) in [("linear", linear(true)), ("fourier", fourier(true))] {
        if let Some(run) = results.of(variant).next() {
            report.plot(format!("forecast-example-{name}"), example(results, run));
        }
    }
    for mixed in [true, false] {
        let runs = [linear(mixed), fourier(mixed)].map(|variant| results.of(variant).next());
        let runs: Vec<&Run> = runs.into_iter().flatten().collect();
        if let Some(run) = runs.first() {
            let name = run.variant.bins();
            report.plot(format!("forecast-pmf-{name}"), distributions(study, &runs, name));
        }
    }
}

/// A metric against the number of frequencies, linear heads as levels.
fn curves(study: &Forecast, results: &Results, metric: Metric) -> Vec<Line> {
    let mut gammas = vec![study.gamma, 0.0];
    gammas.dedup();
    let mut lines = Vec::new();
    for (colour, mixed) in [true, false].into_iter().enumerate() {
        for (i, &gamma) in gammas.iter().enumerate() {
            let variant = |n: usize| Variant { fourier: Some((n, gamma)), mixed };
            let pooled = study.frequencies.iter().map(|&n| (n, results.pooled(variant(n), metric)));
            let pooled: Vec<(usize, Pooled)> = pooled.collect();
            let name = format!("Fourier, {}, γ = {}", variant(0).bins(), variant(0).gamma());
            let points = pooled.iter().map(|(n, pooled)| [*n as f64, pooled.mean]).collect();
            let spread = pooled.iter().map(|(_, pooled)| pooled.sd().unwrap_or(0.0)).collect();
            let line = Line::new(name, points).spread(spread).stroke(Stroke::Marked);
            lines.push(line.colour(2 * i + colour));
        }
        let linear = Variant { fourier: None, mixed };
        let mean = results.pooled(linear, metric).mean;
        let points = study.frequencies.iter().map(|&n| [n as f64, mean]).collect();
        let line = Line::new(format!("linear, {}", linear.bins()), points);
        lines.push(line.stroke(Stroke::Dashed).colour(4 + colour));
    }
    lines
}

/// Figure 17: next-value distributions over the latent domain.
fn distributions(study: &Forecast, runs: &[&Run], bins: &str) -> LinePlot {
    let metric = Smoothness::new(study.bins);
    let line = |run: &&Run| {
        let next = &run.example.next;
        let name = format!("{}, smoothness {:.4}", run.variant.head(), metric.l2(next));
        Line::new(name, latent(next))
    };
    plot(
        format!("Next value's distribution, {bins} bins"),
        ["latent position of the bin", "probability"],
        LINEAR,
        runs.iter().map(line).collect(),
    )
}

/// A forecast against the true values.
fn example(results: &Results, run: &Run) -> LinePlot {
    let window = &results.shown;
    let drawn = window.history.len().min(HISTORY);
    let known = window.history[window.history.len() - drawn..].iter();
    let places = |first: usize, values: &[f64]| -> Vec<[f64; 2]> {
        values.iter().enumerate().map(|(i, &x)| [(first + i) as f64, x]).collect()
    };
    let truth: Vec<f64> = known.chain(&window.future).copied().collect();
    let quantile = |i: usize| places(drawn, &run.example.quantiles[i]);
    plot(
        format!("{}: forecast of el-nino", run.variant.head()),
        ["time", "degrees Celsius"],
        LINEAR,
        vec![
            Line::new("truth", places(0, &truth)).colour(6),
            Line::new("median", quantile(MEDIAN)).colour(0),
            Line::new("10 % and 90 %", quantile(0)).stroke(Stroke::Dashed).colour(0),
            Line::new("", quantile(QUANTILES.len() - 1)).stroke(Stroke::Dashed).colour(0),
        ],
    )
}

/// The part of a next-value distribution that matters, over latent positions.
fn latent(probs: &[f64]) -> Vec<[f64; 2]> {
    let m = probs.len() as f64;
    let mut before = 0.0;
    let mut points = Vec::new();
    for (bin, &p) in probs.iter().enumerate() {
        if before + p > TAIL && before < 1.0 - TAIL {
            points.push([-1.0 + (2 * bin + 1) as f64 / m, p]);
        }
        before += p;
    }
    points
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "tests")]
mod tests {
    use super::super::tests::{tiny, tiny_results};
    use super::*;

    #[test]
    fn a_distribution_is_drawn_without_its_tails() {
        let probs = [0.001, 0.0005, 0.4, 0.0, 0.598, 0.0004, 0.0001, 0.0];
        // Eight bins, the third to the fifth.
        assert_eq!(latent(&probs), [[-0.375, 0.4], [-0.125, 0.0], [0.125, 0.598]]);
    }

    #[test]
    fn curves_have_a_point_for_each_number_of_frequencies() {
        let (study, results) = (tiny(), tiny_results());
        let lines = curves(&study, &results, SMOOTHNESS);
        assert_eq!((lines.len(), lines[0].name.as_str()), (6, "Fourier, mixed, γ = 1e-6"));
        for line in lines {
            assert_eq!([line.points[0][0], line.points[1][0]], [3.0, 5.0]);
        }
        let plot = example(&results, &results.runs[0]);
        assert_eq!(plot.lines[0].points.len(), 17); // 14 known, 3 to come
        let median: Vec<f64> = plot.lines[1].points.iter().map(|point| point[0]).collect();
        assert_eq!(median, [14.0, 15.0, 16.0]);
    }
}
