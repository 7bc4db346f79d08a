//! The plots.

use overtone_plot::{Line, LinePlot, Stroke};

use super::kernel::{Kernel, POWERS};
use super::mise::{Mise, Smoother, Target};
use super::rates::{DIMENSIONS, Rate, geometric, silvermans_error};
use super::synthetic::Finding;
use super::tables::phi;
use super::{Found, FourierIntegral};
use crate::report::{LOG, Report, plot};

/// Numbers of points of the plotted errors, in one dimension and in two.
const POINTS: [f64; 2] = [1e5, 1e4];

/// Adds all plots.
pub(super) fn add(study: &FourierIntegral, found: &Found, report: &mut Report) {
    for (name, index) in
        [("density-1d", 0), ("density-2d", 1), ("regression-drawn", 2), ("regression-uniform", 4)]
    {
        report.plot(name, example(study, &found.examples[index]));
    }
    for d in DIMENSIONS {
        report.plot(format!("mise-{d}d"), mise(d));
    }
    report.plot("bias-variance", bias_and_variance());
    report.plot("best-mise", best(&found.rates, true));
    report.plot("best-radius", best(&found.rates, false));
}

fn example(study: &FourierIntegral, finding: &Finding) -> LinePlot {
    let radii = study.radii();
    let mut lines: Vec<Line> = POWERS
        .iter()
        .enumerate()
        .map(|(p, &power)| {
            let errors = || finding.errors.iter().map(|errors| &errors[p]);
            let points = radii.iter().zip(errors()).map(|(&r, e)| [r, e.mean]).collect();
            Line::new(phi(power), points)
                .spread(errors().map(|e| e.sd().unwrap_or(0.0)).collect())
                .stroke(Stroke::Marked)
        })
        .collect();
    // Each at the R at which φ = z⁴ is as wide.
    let gaussian = radii.iter().zip(&finding.gaussian).map(|(&r, e)| [r, e.mean]).collect();
    lines.push(Line::new("Gaussian kernel", gaussian).stroke(Stroke::Marked).colour(4));
    let level = |y: f64| [1.0, 32.0].map(|x| [x, y]).to_vec();
    let paper = Line::new("paper", level(finding.paper));
    lines.push(paper.stroke(Stroke::Dashed).colour(6));
    let title = format!("Mean squared error: {}", finding.name);
    plot(title, ["R", "MSE over the test points"], LOG, lines)
}

/// The exact error of a normal density at each radius.
fn exact(dimensions: usize, power: u32) -> impl Iterator<Item = (f64, Mise)> {
    geometric(1.0, 12.0, 60).into_iter().map(move |r| {
        let smoother = Smoother::Fourier(Kernel::new(power), r);
        (r, Mise::new(Target::Gaussian, dimensions, smoother))
    })
}

fn mise(d: usize) -> LinePlot {
    let n = POINTS[d - 1];
    let line = |power: &u32| {
        let points = exact(d, *power).map(|(r, mise)| [r, mise.total(n)]);
        Line::new(phi(*power), points.collect())
    };
    let mut lines: Vec<Line> = POWERS.iter().map(line).collect();
    let level = [1.0, 12.0].map(|x| [x, silvermans_error(d, n)]).to_vec();
    let gaussian = Line::new("Gaussian kernel, Silverman", level);
    lines.push(gaussian.stroke(Stroke::Dashed).colour(6));
    plot(format!("MISE of a {d}-D normal density, N = {n}, exact"), ["R", "MISE"], LOG, lines)
}

fn bias_and_variance() -> LinePlot {
    let n = POINTS[0];
    let mut lines = Vec::new();
    for (p, &power) in POWERS.iter().enumerate() {
        let (mut bias, mut variance) = (Vec::new(), Vec::new());
        for (r, mise) in exact(1, power).filter(|(_, mise)| mise.bias > 1e-9) {
            bias.push([r, mise.bias]);
            variance.push([r, mise.variance_times_n / n]);
        }
        lines.push(Line::new(format!("{}: bias²", phi(power)), bias).colour(p));
        let line = Line::new(format!("{}: variance", phi(power)), variance);
        lines.push(line.stroke(Stroke::Dashed).colour(p));
    }
    let title = format!("Bias² and variance, 1-D normal, N = {n}, exact");
    plot(title, ["R", "integrated over the line"], LOG, lines)
}

/// The least error, or the best radius, over `N` for the Gaussian in 1-D.
fn best(rates: &[Rate], error: bool) -> LinePlot {
    let pick = |best: &[f64; 3]| [best[0], if error { best[2] } else { best[1] }];
    let ours = |rate: &&Rate| rate.target == Target::Gaussian && rate.dimensions == 1;
    let mut lines = Vec::new();
    for (p, rate) in rates.iter().filter(ours).enumerate() {
        let points: Vec<[f64; 2]> = rate.best.iter().map(pick).collect();
        let first = points[0];
        let paper = match error {
            true => rate.paper().error(),
            false => rate.paper().radius(),
        };
        lines.push(Line::new(phi(rate.power), points).stroke(Stroke::Marked).colour(p));
        if rate.power > 1 {
            let bound =
                rate.best.iter().map(|best| [best[0], first[1] * (best[0] / first[0]).powf(paper)]);
            let name = if rate.power == 6 { "paper's slope" } else { "" };
            lines.push(Line::new(name, bound.collect()).stroke(Stroke::Dashed).colour(p));
        }
    }
    if error {
        let at = rates[0].best.iter().map(|best| best[0]);
        let points = at.map(|n| [n, silvermans_error(1, n)]).collect();
        lines.push(Line::new("Gaussian kernel, Silverman", points).colour(6));
    }
    match error {
        true => plot("Least MISE, 1-D normal, exact", ["N", "MISE"], LOG, lines),
        false => plot("Best R, 1-D normal, exact", ["N", "R"], LOG, lines),
    }
}
