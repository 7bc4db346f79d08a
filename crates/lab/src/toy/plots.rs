//! The plots.

use overtone_plot::{Line, LinePlot, Scale, Stroke};

use super::data::{Dataset, bin_centre};
use super::head::HeadKind;
use super::judge::fits;
use super::paper::published_mean;
use super::{GAMMAS, HEADLINE, Results, Toy};
use crate::report::{LINEAR, Report, plot};
use crate::study::Study;

impl<const LIKELIHOOD: bool> Toy<LIKELIHOOD> {
    pub(super) fn add_plots(&self, results: &Results, report: &mut Report) {
        let name = Self::NAME;
        for &dataset in &self.datasets {
            for (metric, of) in Self::METRICS.iter().enumerate() {
                if *of != "MSE (argmax)" {
                    let plot = self.against_frequencies(results, metric, dataset);
                    report.plot(format!("{name}-{dataset}-{}", of.to_lowercase()), plot);
                }
            }
            report.plot(format!("{name}-{dataset}-epochs"), self.over_epochs(results, dataset));
            report.plot(format!("{name}-{dataset}-example"), self.example(results, dataset, false));
            if !LIKELIHOOD {
                let plot = self.example(results, dataset, true);
                report.plot(format!("{name}-{dataset}-pointwise"), plot);
            }
        }
    }

    /// Figures 8 and 9: a metric against N, the other heads as levels.
    fn against_frequencies(&self, results: &Results, metric: usize, dataset: Dataset) -> LinePlot {
        let name = Self::METRICS[metric];
        let mut lines = Vec::new();
        let mut add = |label: String, heads: &[(f64, HeadKind)], stroke, colour: usize| {
            let ours = heads.iter().map(|&(n, head)| (n, results.spread(metric, dataset, head)));
            let ours: Vec<_> = ours.collect();
            let points = ours.iter().map(|(n, spread)| [*n, spread.mean]).collect();
            let spread = ours.iter().map(|(_, spread)| spread.over_data.unwrap_or(0.0)).collect();
            let line = Line::new(label.as_str(), points).spread(spread);
            lines.push(line.stroke(stroke).colour(colour));
            let paper =
                |&(n, head): &(f64, HeadKind)| Some([n, published_mean(dataset, head, name)?]);
            let points: Vec<[f64; 2]> = heads.iter().filter_map(paper).collect();
            if !points.is_empty() {
                let stroke = if points.len() == 1 { Stroke::Dots } else { Stroke::Dashed };
                let line = Line::new(format!("{label} (paper)"), points);
                lines.push(line.stroke(stroke).colour(colour));
            }
        };
        for (colour, gamma) in GAMMAS.into_iter().enumerate() {
            let at = |&n: &usize| (n as f64, Self::fourier(n, gamma));
            let heads: Vec<_> = self.frequencies.iter().map(at).collect();
            let label = if gamma == 0.0 { "0".into() } else { format!("{gamma:e}") };
            add(format!("Fourier, γ = {label}"), &heads, Stroke::Marked, colour);
        }
        let others = self.heads(dataset).into_iter();
        let others = others.filter(|head| head.series().is_none() && fits(0, *head));
        let ends = [self.frequencies.iter().min(), self.frequencies.iter().max()];
        for (colour, head) in others.enumerate() {
            let ends = ends.into_iter().flatten().map(|&n| (n as f64, head));
            let heads: Vec<_> = ends.collect();
            add(head.to_string(), &heads, Stroke::Solid, colour + GAMMAS.len());
        }
        plot(format!("{dataset}: {name} after {} epochs", self.epochs), ["N", name], LINEAR, lines)
    }

    /// Heads of the other plots: those without frequencies, and N of the paper's tables.
    fn drawn(&self, dataset: Dataset) -> Vec<HeadKind> {
        let mut heads = self.heads(dataset);
        heads.retain(|head| fits(0, *head) && head.series().is_none_or(|(n, _)| n == HEADLINE));
        heads
    }

    /// KL on the test set over the epochs, mean over runs.
    fn over_epochs(&self, results: &Results, dataset: Dataset) -> LinePlot {
        let line = |head: HeadKind| {
            let points = results.curve(dataset, head).into_iter();
            let points = points.map(|(epoch, kl)| [epoch as f64, kl.mean]);
            Line::new(head.to_string(), points.collect())
        };
        plot(
            format!("{dataset}: KL on the test set, mean of the runs"),
            ["epoch", "KL"],
            [Scale::Linear, Scale::Log],
            self.drawn(dataset).into_iter().map(line).collect(),
        )
    }

    /// Figures 2 and 11: what the first run of each head learned of the example. Figure 10: where
    /// the runs of pointwise regression on the first draw put it.
    fn example(&self, results: &Results, dataset: Dataset, pointwise: bool) -> LinePlot {
        let ([x, y], truth) = results.examples.get(&dataset).cloned().unwrap_or_default();
        // A density where there are no bins.
        let height = if LIKELIHOOD { truth.len() as f64 / 2.0 } else { 1.0 };
        let points = |probs: &[f64]| -> Vec<[f64; 2]> {
            let at = |(j, p): (usize, &f64)| [bin_centre(j, probs.len()), p * height];
            probs.iter().enumerate().map(at).collect()
        };
        let mut lines = vec![Line::new("truth", points(&truth)).colour(6).stroke(Stroke::Dashed)];
        if pointwise {
            let most = truth.iter().copied().fold(0.0, f64::max);
            let runs = results.of(dataset, HeadKind::Pointwise);
            let runs = runs.filter(|run| Some(&run.data_seed) == self.data_seeds.first());
            for (i, at) in runs.flat_map(|run| &run.example).enumerate() {
                let name = if i == 0 { "predictions" } else { "" };
                lines.push(Line::new(name, vec![[*at, 0.0], [*at, most]]).colour(1));
            }
        } else {
            for (colour, head) in self.drawn(dataset).into_iter().enumerate() {
                let probs = results.of(dataset, head).next().map_or(&[][..], |run| &run.example);
                lines.push(Line::new(head.to_string(), points(probs)).colour(colour));
            }
        }
        let what = if pointwise { "pointwise regression" } else { "what was learned" };
        plot(
            format!("{dataset}: {what} at x = {x:.2}, y = {y:.2}"),
            ["z", if LIKELIHOOD { "density" } else { "probability of a bin" }],
            LINEAR,
            lines,
        )
    }
}
