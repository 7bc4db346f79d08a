//! The findings' plots.

use super::page::HEADLINE;
use super::{Evaluation, Findings, GAMMAS, Metric};
use crate::toy::data::bin_centre;
use crate::toy::findings::Metric as _;
use crate::toy::head::gamma_text;
use crate::toy::study::{Run, Spread};
use crate::toy::{Dataset, HeadKind};
use overtone_plot::{Line, LinePlot, Stroke};

/// At the vertical axis.
const OF_A_BIN: &str = "probability of a bin";

impl Findings {
    /// Figure 8: a metric over N, with the baselines as levels.
    pub(super) fn against_frequencies(&self, metric: Metric, dataset: Dataset) -> LinePlot {
        let frequencies = &self.settings.frequencies;
        let mut lines = Vec::new();
        for (colour, gamma) in GAMMAS.into_iter().enumerate() {
            let kinds = frequencies.iter().map(|&n| HeadKind::Fourier { frequencies: n, gamma });
            let kinds: Vec<HeadKind> = kinds.collect();
            let place = |kind: &HeadKind| kind.frequencies().unwrap_or(0) as f64;
            let ours: Vec<Spread> =
                kinds.iter().map(|&kind| self.spread(metric, dataset, kind)).collect();
            let points =
                kinds.iter().zip(&ours).map(|(kind, ours)| [place(kind), ours.mean]).collect();
            let name = format!("Fourier, γ = {}", gamma_text(gamma));
            let spread = ours.iter().map(|ours| ours.over_data.unwrap_or(0.0)).collect();
            let line = Line::new(name.as_str(), points).stroke(Stroke::Marked).spread(spread);
            lines.push(line.colour(colour));
            let published = kinds
                .iter()
                .filter_map(|kind| Some([place(kind), metric.published(dataset, *kind)?.0]));
            let line = Line::new(format!("{name} (paper)"), published.collect());
            lines.push(line.stroke(Stroke::Dashed).colour(colour));
        }
        let ends = [frequencies.first(), frequencies.last()];
        let ends: Vec<f64> = ends.into_iter().flatten().map(|&n| n as f64).collect();
        let baselines = [
            ("linear", HeadKind::Linear),
            ("GMM", HeadKind::Gmm { components: dataset.components() }),
        ];
        for (i, (name, kind)) in baselines.into_iter().enumerate() {
            let spread = self.spread(metric, dataset, kind);
            let level = |mean: f64| ends.iter().map(|&n| [n, mean]).collect::<Vec<_>>();
            let deviations = vec![spread.over_data.unwrap_or(0.0); ends.len()];
            lines.push(Line::new(name, level(spread.mean)).spread(deviations).colour(i + 2));
            if let Some((mean, _)) = metric.published(dataset, kind) {
                let line = Line::new(format!("{name} (paper)"), level(mean));
                lines.push(line.stroke(Stroke::Dashed).colour(i + 2));
            }
        }
        LinePlot {
            title: format!("{dataset}: {} after {} epochs", metric.name(), self.settings.epochs),
            x_label: "N".into(),
            y_label: metric.name().into(),
            lines,
            ..LinePlot::default()
        }
    }

    /// KL on the test set over the epochs, mean over runs.
    pub(super) fn epochs_plot(&self, dataset: Dataset) -> LinePlot {
        let regularised = GAMMAS.map(|gamma| HeadKind::Fourier { frequencies: HEADLINE, gamma });
        let mut kinds = vec![HeadKind::Linear, HeadKind::Gmm { components: dataset.components() }];
        kinds.extend(regularised);
        kinds.retain(|&kind| self.of(dataset, kind).next().is_some());
        self.over_epochs(dataset, kinds)
    }

    /// Figure 2: the distributions of the example row.
    pub(super) fn learned(&self, dataset: Dataset) -> LinePlot {
        let kinds = [
            HeadKind::Linear,
            HeadKind::Gmm { components: dataset.components() },
            HeadKind::Fourier { frequencies: HEADLINE, gamma: 0.0 },
        ];
        self.learned_plot(dataset, ["learned distributions", OF_A_BIN], &kinds, over_bins)
    }

    /// Figure 10: where pointwise regression puts the example row.
    pub(super) fn pointwise(&self, dataset: Dataset) -> LinePlot {
        let mut lines = self.truth(dataset, over_bins);
        if let Some(example) = self.examples.get(&dataset) {
            let most = example.truth.iter().copied().fold(0.0, f64::max);
            let first = self.settings.data_seeds.first().copied();
            let here = |run: &&Run<Evaluation>| Some(run.job.data_seed) == first;
            for run in self.of(dataset, HeadKind::Pointwise).filter(here) {
                let name = if lines.len() == 1 { "predictions" } else { "" };
                let at = run.examples.iter().flatten();
                lines.extend(at.map(|&at| Line::new(name, vec![[at, 0.0], [at, most]]).colour(1)));
            }
        }
        self.example_plot(dataset, ["pointwise regression", OF_A_BIN], lines)
    }
}

fn over_bins(probs: &[f64]) -> Vec<[f64; 2]> {
    probs.iter().enumerate().map(|(bin, &p)| [bin_centre(bin, probs.len()), p]).collect()
}
