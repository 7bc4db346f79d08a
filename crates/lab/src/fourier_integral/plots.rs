//! The plots.

use overtone_plot::{Line, LinePlot, Stroke};

use super::kernel::{Kernel, POWERS};
use super::mise::{Mise, Smoother, Target};
use super::rates::{DIMENSIONS, geometric, silvermans_error};
use super::synthetic::Finding;
use super::tables::phi;
use super::{FourierIntegral, Results};
use crate::report::{LOG, Report, plot};

/// Numbers of points of the plotted errors, in one dimension and in two.
const POINTS: [f64; 2] = [1e5, 1e4];

/// Adds all plots.
pub(super) fn add(study: &FourierIntegral, results: &Results, report: &mut Report) {
    for (name, index) in
        [("density-1d", 0), ("density-2d", 1), ("regression-drawn", 2), ("regression-uniform", 4)]
    {
        report.plot(name, example(study, &results.examples[index]));
    }
    for d in DIMENSIONS {
        report.plot(format!("mise-{d}d"), mise(d));
    }
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

fn mise(d: usize) -> LinePlot {
    let n = POINTS[d - 1];
    let line = |power: &u32| {
        let total = |r: f64| {
            let smoother = Smoother::Fourier(Kernel::new(*power), r);
            [r, Mise::new(Target::Gaussian, d, smoother).total(n)]
        };
        Line::new(phi(*power), geometric(1.0, 12.0, 60).into_iter().map(total).collect())
    };
    let mut lines: Vec<Line> = POWERS.iter().map(line).collect();
    let level = [1.0, 12.0].map(|x| [x, silvermans_error(d, n)]).to_vec();
    let gaussian = Line::new("Gaussian kernel, Silverman", level);
    lines.push(gaussian.stroke(Stroke::Dashed).colour(6));
    plot(format!("MISE of a {d}-D normal density, N = {n}, exact"), ["R", "MISE"], LOG, lines)
}
