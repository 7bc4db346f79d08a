//! The plots of the page.

use overtone_eval::Pooled;

use super::{Example, Findings, VariantFinding};
use crate::forecast::Variant;
use crate::forecast::metrics::{MEDIAN, QUANTILES};
use crate::page::Page;
use overtone_plot::{Line, LinePlot, Scale, Stroke};

/// A number of a variant over its seeds.
type Metric<'a> = &'a dyn Fn(&VariantFinding) -> Pooled;

/// Values of the history that are drawn before a forecast.
const HISTORY: usize = 48;
/// Probability that may lie outside the drawn part of a distribution, on each side.
const TAIL: f64 = 2e-3;

impl Findings {
    fn found(&self, variant: Variant) -> Option<&VariantFinding> {
        self.variants.iter().find(|found| found.variant == variant)
    }

    /// The Fourier head of most frequencies, regularised if any is.
    fn largest(&self, mixed: bool) -> Option<&VariantFinding> {
        let frequencies = self.settings.frequencies.iter().copied().max()?;
        self.found(Variant { fourier: Some((frequencies, self.settings.gamma)), mixed })
    }

    /// The three metrics against the number of frequencies.
    pub(super) fn add_curves(&self, page: &mut Page) {
        let plots: [(&str, &str, Metric<'_>); 3] = [
            ("MASE over the naive forecast's", "forecast-mase", &|found| found.mase(&self.naive)),
            ("WQL over the naive forecast's", "forecast-wql", &|found| found.wql(&self.naive)),
            ("smoothness", "forecast-smoothness", &VariantFinding::smoothness),
        ];
        page.text("Bands are one standard deviation over seeds.");
        for (label, name, metric) in plots {
            let smoothness = name.ends_with("smoothness");
            let plot = LinePlot {
                title: format!("{label} and the number of frequencies"),
                x_label: "frequencies N".into(),
                y_label: label.into(),
                x_scale: Scale::Log,
                y_scale: if smoothness { Scale::Log } else { Scale::Linear },
                lines: self.curves(metric),
            };
            page.plot(name, &plot);
        }
    }

    fn curves(&self, metric: Metric<'_>) -> Vec<Line> {
        let mut ordered = self.settings.frequencies.clone();
        ordered.sort_unstable();
        let mut gammas = vec![self.settings.gamma, 0.0];
        gammas.dedup();
        let mut lines = Vec::new();
        for (colour, mixed) in [true, false].into_iter().enumerate() {
            for (i, &gamma) in gammas.iter().enumerate() {
                let found: Vec<(f64, Pooled)> = ordered
                    .iter()
                    .filter_map(|&n| {
                        let found = self.found(Variant { fourier: Some((n, gamma)), mixed })?;
                        Some((n as f64, metric(found)))
                    })
                    .collect();
                if found.is_empty() {
                    continue;
                }
                let variant = Variant { fourier: Some((0, gamma)), mixed };
                let name = format!("Fourier, {}, γ = {}", variant.bins(), variant.gamma());
                let points = found.iter().map(|(n, pooled)| [*n, pooled.mean]).collect();
                let spread = found.iter().map(|(_, pooled)| pooled.sd().unwrap_or(0.0)).collect();
                lines.push(
                    Line::new(name, points)
                        .spread(spread)
                        .stroke(Stroke::Marked)
                        .colour(2 * i + colour),
                );
            }
            if let Some(linear) = self.found(Variant { fourier: None, mixed }) {
                let mean = metric(linear).mean;
                let points = ordered.iter().map(|&n| [n as f64, mean]).collect();
                let name = format!("linear, {}", linear.variant.bins());
                lines.push(Line::new(name, points).stroke(Stroke::Dashed).colour(4 + colour));
            }
        }
        lines
    }

    /// Training losses, a forecast, and next-value distributions.
    pub(super) fn add_examples(&self, page: &mut Page) {
        page.heading("Training");
        let mixed: Vec<&VariantFinding> =
            self.variants.iter().filter(|found| found.variant.mixed).collect();
        let per_stretch =
            |run: &super::Run| self.settings.training.steps as f64 / run.losses.len().max(1) as f64;
        let lines = mixed.iter().filter_map(|found| {
            let run = found.runs.first()?;
            let places = run.losses.iter().enumerate();
            let points = places.map(|(i, &loss)| [(i as f64 + 0.5) * per_stretch(run), loss]);
            let variant = &found.variant;
            let regularised = variant.fourier.is_some_and(|(_, gamma)| gamma > 0.0);
            let stroke = if regularised { Stroke::Dashed } else { Stroke::Solid };
            let name = match variant.fourier {
                None => variant.head(),
                Some(_) => format!("{}, γ = {}", variant.head(), variant.gamma()),
            };
            Some(Line::new(name, points.collect()).stroke(stroke))
        });
        page.plot(
            "forecast-training",
            &LinePlot {
                title: "Training loss with mixed-precision bins, first seed".into(),
                x_label: "step".into(),
                y_label: "cross-entropy, nats a bin".into(),
                lines: lines.collect(),
                ..LinePlot::default()
            },
        );

        page.heading("A forecast");
        page.text(&format!(
            "The last {} values of the real series, from the {} before them; first seed, \
             mixed-precision bins.",
            self.settings.horizon, self.settings.context
        ));
        let linear = self.found(Variant { fourier: None, mixed: true });
        for (name, found) in [("linear", linear), ("fourier", self.largest(true))] {
            if let Some(found) = found {
                page.plot(&format!("forecast-example-{name}"), &self.forecast(found));
            }
        }

        page.heading("Distributions of the next value (Figure 17)");
        page.text(
            "Of the first value of that forecast, first seed. The axis is the latent domain, on which \
             bins are equally far apart; so the same value lies elsewhere with mixed-precision \
             bins.",
        );
        for (name, mixed) in [("mixed", true), ("uniform", false)] {
            let linear = self.found(Variant { fourier: None, mixed });
            let found: Vec<&VariantFinding> =
                linear.into_iter().chain(self.largest(mixed)).collect();
            let lines = found.iter().map(|found| {
                let smoothness = overtone_eval::Smoothness::new(self.settings.bins);
                let smoothness = smoothness.l2(&found.example.forecast.next);
                let name = format!("{}, smoothness {smoothness:.4}", found.variant.head());
                Line::new(name, latent(&found.example))
            });
            page.plot(
                &format!("forecast-pmf-{name}"),
                &LinePlot {
                    title: format!("Next value's distribution, {name} bins"),
                    x_label: "latent position of the bin".into(),
                    y_label: "probability".into(),
                    lines: lines.collect(),
                    ..LinePlot::default()
                },
            );
        }
    }

    /// A forecast against what came.
    fn forecast(&self, found: &VariantFinding) -> LinePlot {
        let window = &self.shown;
        let drawn = window.history.len().min(HISTORY);
        let known = window.history[window.history.len() - drawn..].iter();
        let places = |first: usize, values: &[f64]| -> Vec<[f64; 2]> {
            values.iter().enumerate().map(|(i, &x)| [(first + i) as f64, x]).collect()
        };
        let truth: Vec<f64> = known.chain(&window.future).copied().collect();
        let quantiles = &found.example.forecast.quantiles;
        let quantile = |i: usize| places(drawn, &quantiles[i]);
        let last = QUANTILES.len() - 1;
        LinePlot {
            title: format!("{}: forecast of {}", found.variant.head(), self.card.name),
            x_label: "time".into(),
            y_label: self.card.unit.clone(),
            lines: vec![
                Line::new("truth", places(0, &truth)).colour(6),
                Line::new("median", quantile(MEDIAN)).colour(0),
                Line::new("10 % and 90 %", quantile(0)).stroke(Stroke::Dashed).colour(0),
                Line::new("", quantile(last)).stroke(Stroke::Dashed).colour(0),
            ],
            ..LinePlot::default()
        }
    }
}

/// The part of a next-value distribution that matters, over latent positions.
fn latent(example: &Example) -> Vec<[f64; 2]> {
    let probs = &example.forecast.next;
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
mod tests {
    use super::super::super::tests::tiny_findings;
    use super::*;

    #[test]
    fn a_distribution_is_drawn_without_its_tails() {
        let found = tiny_findings();
        let mut example = found.variants[0].example.clone();
        example.forecast.next = vec![0.001, 0.0005, 0.4, 0.0, 0.598, 0.0004, 0.0001, 0.0];
        // Eight bins, the third to the fifth.
        assert_eq!(latent(&example), [[-0.375, 0.4], [-0.125, 0.0], [0.125, 0.598]]);
    }

    #[test]
    fn curves_have_a_point_for_each_number_of_frequencies() {
        let found = tiny_findings();
        let lines = found.curves(&VariantFinding::smoothness);
        let names: Vec<&str> = lines.iter().map(|line| line.name.as_str()).collect();
        assert_eq!(
            names,
            [
                "Fourier, mixed, γ = 1e-6",
                "Fourier, mixed, γ = 0",
                "linear, mixed",
                "Fourier, uniform, γ = 1e-6",
                "Fourier, uniform, γ = 0",
                "linear, uniform",
            ]
        );
        for line in lines {
            assert_eq!([line.points[0][0], line.points[1][0]], [3.0, 5.0]);
        }
    }

    #[test]
    fn a_forecast_begins_where_the_history_ends() {
        let found = tiny_findings();
        let plot = found.forecast(found.largest(true).unwrap());
        assert_eq!(plot.lines[0].points.len(), 17); // 14 known, 3 to come
        let median: Vec<f64> = plot.lines[1].points.iter().map(|point| point[0]).collect();
        assert_eq!(median, [14.0, 15.0, 16.0]);
    }
}
