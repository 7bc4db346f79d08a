//! The plots of the page.

use super::phi;
use crate::fourier_integral::Findings;
use crate::fourier_integral::kernel::{Kernel, POWERS};
use crate::fourier_integral::mise::{Mise, Smoother, Target};
use crate::fourier_integral::rates::{Drawn, Rate, geometric, silvermans_error};
use crate::fourier_integral::synthetic::Finding;
use overtone_plot::{Line, LinePlot, Scale, Stroke};

impl Findings {
    pub(super) fn example_plot(&self, finding: &Finding) -> LinePlot {
        let radii = self.settings.radii();
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
        let paper = Line::new("paper", level(finding.example.paper()));
        lines.push(paper.stroke(Stroke::Dashed).colour(6));
        LinePlot {
            title: format!("Mean squared error: {}", finding.example.name()),
            x_label: "R".into(),
            y_label: "MSE over the test points".into(),
            x_scale: Scale::Log,
            y_scale: Scale::Log,
            lines,
        }
    }

    /// The drawn errors with the most points in `d` dimensions.
    fn most(&self, d: usize) -> impl Iterator<Item = &Drawn> {
        let n = self.settings.rate_points[d - 1].iter().copied().max();
        self.rates.drawn.iter().filter(move |drawn| drawn.dimensions == d && Some(drawn.n) == n)
    }

    pub(super) fn drawn_plot(&self, d: usize) -> LinePlot {
        let n = self.settings.rate_points[d - 1].iter().copied().max().unwrap_or(0);
        let mut lines = Vec::new();
        for (p, &power) in POWERS.iter().enumerate() {
            let exact = geometric(1.0, 12.0, 60).into_iter().map(|r| {
                let smoother = Smoother::Fourier(Kernel::new(power), r);
                [r, Mise::new(Target::Gaussian, d, smoother).total(n as f64)]
            });
            lines.push(Line::new(phi(power), exact.collect()).colour(p));
            let drawn = || self.most(d).filter(|drawn| drawn.power == power);
            let points = drawn().map(|drawn| [drawn.radius, drawn.error.mean]).collect();
            lines.push(Line::new("", points).stroke(Stroke::Dots).colour(p));
        }
        let level = [1.0, 12.0].map(|x| [x, silvermans_error(d, n as f64)]).to_vec();
        let gaussian = Line::new("Gaussian kernel, Silverman", level);
        lines.push(gaussian.stroke(Stroke::Dashed).colour(6));
        LinePlot {
            title: format!("MISE of a {d}-D normal density, N = {n}: exact, and drawn (dots)"),
            x_label: "R".into(),
            y_label: "MISE".into(),
            x_scale: Scale::Log,
            y_scale: Scale::Log,
            lines,
        }
    }

    pub(super) fn parts_plot(&self) -> LinePlot {
        let n = self.settings.rate_points[0].iter().copied().max().unwrap_or(0);
        let mut lines = Vec::new();
        for (p, &power) in POWERS.iter().enumerate() {
            let exact: Vec<(f64, Mise)> = geometric(1.0, 12.0, 60)
                .into_iter()
                .map(|r| {
                    let smoother = Smoother::Fourier(Kernel::new(power), r);
                    (r, Mise::new(Target::Gaussian, 1, smoother))
                })
                .filter(|(_, mise)| mise.bias > 1e-9)
                .collect();
            let curve = |part: &dyn Fn(&Mise) -> f64| -> Vec<[f64; 2]> {
                exact.iter().map(|(r, mise)| [*r, part(mise)]).collect()
            };
            let bias = Line::new(format!("{}: bias²", phi(power)), curve(&|mise| mise.bias));
            lines.push(bias.colour(p));
            let variance = curve(&|mise| mise.variance_times_n / n as f64);
            let variance = Line::new(format!("{}: variance", phi(power)), variance);
            lines.push(variance.stroke(Stroke::Dashed).colour(p));
            let drawn = || self.most(1).filter(|drawn| drawn.power == power);
            let dots = drawn()
                .filter(|drawn| drawn.bias > drawn.variance / self.settings.rate_draws as f64)
                .map(|drawn| [drawn.radius, drawn.bias])
                .chain(drawn().map(|drawn| [drawn.radius, drawn.variance]));
            lines.push(Line::new("", dots.collect()).stroke(Stroke::Dots).colour(p));
        }
        LinePlot {
            title: format!("Bias² and variance, 1-D normal, N = {n}: exact, and drawn (dots)"),
            x_label: "R".into(),
            y_label: "integrated over the line".into(),
            x_scale: Scale::Log,
            y_scale: Scale::Log,
            lines,
        }
    }

    /// The least error, or the best radius, over `N` for the Gaussian in 1-D.
    pub(super) fn best_plot(&self, error: bool) -> LinePlot {
        let pick = |best: &[f64; 3]| [best[0], if error { best[2] } else { best[1] }];
        let ours = |rate: &&Rate| rate.target == Target::Gaussian && rate.dimensions == 1;
        let mut lines = Vec::new();
        for (p, rate) in self.rates.rates.iter().filter(ours).enumerate() {
            let points: Vec<[f64; 2]> = rate.best.iter().map(pick).collect();
            let first = points[0];
            let paper = match error {
                true => rate.paper().error(),
                false => rate.paper().radius(),
            };
            lines.push(Line::new(phi(rate.power), points).stroke(Stroke::Marked).colour(p));
            if rate.power > 1 {
                let bound = rate
                    .best
                    .iter()
                    .map(|best| [best[0], first[1] * (best[0] / first[0]).powf(paper)]);
                let name = if rate.power == 6 { "paper's slope" } else { "" };
                lines.push(Line::new(name, bound.collect()).stroke(Stroke::Dashed).colour(p));
            }
        }
        if error {
            let at = self.rates.rates[0].best.iter().map(|best| best[0]);
            let points = at.map(|n| [n, silvermans_error(1, n)]).collect();
            lines.push(Line::new("Gaussian kernel, Silverman", points).colour(6));
        }
        LinePlot {
            title: match error {
                true => "Least MISE, 1-D normal, exact".into(),
                false => "Best R, 1-D normal, exact".into(),
            },
            x_label: "N".into(),
            y_label: if error { "MISE" } else { "R" }.into(),
            x_scale: Scale::Log,
            y_scale: Scale::Log,
            lines,
        }
    }
}
