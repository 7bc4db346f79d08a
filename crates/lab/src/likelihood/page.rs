//! The findings as a page: tables with the paper's numbers beside ours, and plots.

use overtone_eval::table::Table;

use super::{Evaluation, Findings, GRID, Test, heads};
use crate::density::GAMMAS;
use crate::page::{Page, listed, titled};
use crate::toy::data::bin_centre;
use crate::toy::findings::{self, MeanSd, Metric as _};
use crate::toy::head::gamma_text;
use crate::toy::study::{Settings, Spread, sd_text};
use crate::toy::{Dataset, HeadKind};
use overtone_plot::{Line, LinePlot, Stroke};

/// N of the paper's table.
const HEADLINE: usize = 12;

/// A quantity of a run's last epoch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs, reason = "documented where they are: in `Evaluation`")]
pub enum Metric {
    Kl,
    Perplexity,
}

impl findings::Metric for Metric {
    type Evaluation = Evaluation;
    type TestSet = Test;
    const ALL: &'static [Self] = &[Self::Kl, Self::Perplexity];
    const KL: Self = Self::Kl;
    const DIGITS: usize = 3;
    const DEPENDENT: &'static str = "They share the rows, which decide most of the perplexity and \
         a part of KL, so both lie nearer.";

    fn heads(settings: &Settings, dataset: Dataset) -> Vec<HeadKind> {
        heads(settings, dataset)
    }

    fn name(self) -> &'static str {
        match self {
            Self::Kl => "KL",
            Self::Perplexity => "perplexity",
        }
    }

    fn of(self, evaluation: &Evaluation) -> f64 {
        match self {
            Self::Kl => evaluation.kl,
            Self::Perplexity => evaluation.perplexity,
        }
    }

    fn epoch(evaluation: &Evaluation) -> usize {
        evaluation.epoch
    }

    /// Table 7, which has the mixture and N = 12 with γ = 0.
    fn published(self, dataset: Dataset, kind: HeadKind) -> Option<MeanSd> {
        let table: [[MeanSd; 2]; 2] = match dataset {
            Dataset::Gaussian => {
                [[(0.012, 0.002), (0.034, 0.003)], [(0.410, 0.014), (0.422, 0.019)]]
            }
            Dataset::Gmm2 => [[(0.018, 0.001), (0.072, 0.005)], [(0.702, 0.015), (0.740, 0.014)]],
            Dataset::Beta => [[(0.257, 0.03), (0.130, 0.005)], [(0.623, 0.035), (0.542, 0.017)]],
        };
        let [mixture, fourier] = table[self as usize];
        match kind {
            HeadKind::GmmLikelihood { .. } => Some(mixture),
            HeadKind::FourierLikelihood { frequencies: HEADLINE, gamma: 0.0 } => Some(fourier),
            _ => None,
        }
    }
}

impl Findings {
    /// The heads of Table 7, our numbers and the paper's.
    pub fn headline_table(&self) -> Table {
        let in_table = |dataset| {
            let mut heads = self.heads(dataset);
            heads.retain(|&kind| Metric::Kl.published(dataset, kind).is_some());
            heads
        };
        self.headline(in_table, Metric::ALL)
    }

    fn sweep_table(&self) -> Table {
        let mut table = Table::new(&[
            "dataset",
            "head",
            "N",
            "γ",
            "KL",
            "KL between weights",
            "perplexity",
            "perplexity between weights",
            "KL at its best",
            "at epoch",
        ]);
        for &dataset in &self.settings.datasets {
            for kind in self.heads(dataset) {
                let (at_best, epoch) = self.best(dataset, kind);
                let mut row = vec![
                    dataset.to_string(),
                    kind.name().to_owned(),
                    kind.frequencies().map_or("–".into(), |n| n.to_string()),
                    kind.gamma().map_or("–".into(), gamma_text),
                ];
                for &metric in Metric::ALL {
                    let spread = self.spread(metric, dataset, kind);
                    row.extend([spread.text(), sd_text(spread.over_weights)]);
                }
                row.extend([at_best.text(), format!("{epoch:.0}")]);
                table.row(row);
            }
        }
        table
    }

    /// Which head is nearer to the truth, in a sentence for each dataset.
    pub fn order_text(&self) -> String {
        let sentence = |&dataset: &Dataset| {
            let mixture = HeadKind::GmmLikelihood { components: dataset.components() };
            let mixture = self.spread(Metric::Kl, dataset, mixture).mean;
            let (kl, best) = self.best_fourier(dataset)?;
            let order = if kl < mixture { "below" } else { "above" };
            Some(format!("{best}, {order} the mixture's {mixture:.4}."))
        };
        self.settings.datasets.iter().filter_map(sentence).collect::<Vec<_>>().join("\n")
    }

    /// A page about all of it; `command` is what was run.
    pub fn page(&self, command: &str) -> Page {
        let settings = &self.settings;
        let title = titled("Densities learned by their likelihood", settings.runs_each(), "run");
        let mut page = Page::new("likelihood", &title, command);
        page.text(&format!(
            "The toy example of the Fourier head's paper without bins (Appendix C.3): the same \
             perceptron and data, a Fourier density or a mixture of Gaussians trained by \
             -ln p(z).\n\
             Measured on 1,000 other rows: KL(truth ‖ model) in nats on {GRID} points, the model \
             not divided by its sum; and perplexity, of a density, so it may be below 1.\n\
             {} epochs (the paper: 500); all numbers are after the last epoch unless the column says otherwise.\n\n\
             Data seeds {}, {} weight seed{} each.\n\
             ± is the sample standard deviation over data seeds, one run each, as in the paper; \
             with several weight seeds, the root mean square of one such number for each. \
             *Between weights* is the same with the roles exchanged.",
            settings.epochs,
            listed(&settings.data_seeds),
            settings.weight_seeds.len(),
            if settings.weight_seeds.len() == 1 { "" } else { "s" },
        ));
        page.heading("Table 7");
        page.table("likelihood-headline", &self.headline_table());
        page.text(&format!("{}\n{}", self.far_text(), self.chance_text()));
        page.text(&self.order_text());
        page.heading("All heads");
        page.text(&format!(
            "The best epoch, of those after every {}, is chosen on the test set itself, so its \
             column flatters.",
            settings.evaluate_every
        ));
        page.table("likelihood-all", &self.sweep_table());
        page.heading("Against the number of frequencies (Figure 9)");
        for &dataset in &settings.datasets {
            for &metric in Metric::ALL {
                let name = format!("likelihood-{dataset}-{}", metric.name().to_lowercase());
                page.plot(&name, &self.against_frequencies(metric, dataset));
            }
        }
        page.heading("Over the epochs");
        for &dataset in &settings.datasets {
            page.plot(
                &format!("likelihood-{dataset}-epochs"),
                &self.over_epochs(dataset, self.drawn(dataset)),
            );
        }
        page.csv("likelihood-runs", &self.runs_table());
        page.heading("What was learned (Figure 11)");
        for &dataset in &settings.datasets {
            page.plot(&format!("likelihood-{dataset}-example"), &self.learned(dataset));
        }
        page
    }

    fn against_frequencies(&self, metric: Metric, dataset: Dataset) -> LinePlot {
        let frequencies = &self.settings.frequencies;
        let mut lines = Vec::new();
        let mut published = Vec::new();
        for gamma in GAMMAS {
            let kind = |&n: &usize| HeadKind::FourierLikelihood { frequencies: n, gamma };
            let ours: Vec<Spread> =
                frequencies.iter().map(|n| self.spread(metric, dataset, kind(n))).collect();
            let points = frequencies.iter().zip(&ours).map(|(&n, ours)| [n as f64, ours.mean]);
            let line = Line::new(format!("Fourier, γ = {}", gamma_text(gamma)), points.collect());
            let spread = ours.iter().map(|ours| ours.over_data.unwrap_or(0.0)).collect();
            lines.push(line.stroke(Stroke::Marked).spread(spread));
            published.extend(
                frequencies
                    .iter()
                    .filter_map(|n| Some([*n as f64, metric.published(dataset, kind(n))?.0])),
            );
        }
        let ends = [frequencies.first(), frequencies.last()];
        let ends: Vec<f64> = ends.into_iter().flatten().map(|&n| n as f64).collect();
        let level = |mean: f64| ends.iter().map(|&n| [n, mean]).collect::<Vec<_>>();
        let mixture = HeadKind::GmmLikelihood { components: dataset.components() };
        let ours = self.spread(metric, dataset, mixture);
        let deviations = vec![ours.over_data.unwrap_or(0.0); ends.len()];
        lines.push(Line::new("GMM", level(ours.mean)).spread(deviations));
        if !published.is_empty() {
            let line = Line::new("Fourier, γ = 0 (paper)", published);
            lines.push(line.stroke(Stroke::Dots).colour(6));
        }
        if let Some((mean, _)) = metric.published(dataset, mixture) {
            let line = Line::new("GMM (paper)", level(mean));
            lines.push(line.stroke(Stroke::Dashed).colour(2));
        }
        LinePlot {
            title: format!("{dataset}: {} after {} epochs", metric.name(), self.settings.epochs),
            x_label: "N".into(),
            y_label: metric.name().into(),
            lines,
            ..LinePlot::default()
        }
    }

    fn drawn(&self, dataset: Dataset) -> Vec<HeadKind> {
        let wanted = |kind: &HeadKind| kind.frequencies().is_none_or(|n| n == HEADLINE);
        self.heads(dataset).into_iter().filter(wanted).collect()
    }

    fn learned(&self, dataset: Dataset) -> LinePlot {
        let density = |probs: &[f64]| -> Vec<[f64; 2]> {
            let height = |p: f64| p * GRID as f64 / 2.0;
            probs.iter().enumerate().map(|(i, &p)| [bin_centre(i, GRID), height(p)]).collect()
        };
        let kinds = self.drawn(dataset);
        self.learned_plot(dataset, ["learned densities", "density"], &kinds, density)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::likelihood::run;

    #[test]
    fn the_papers_table_is_found_by_head() {
        let fourier = HeadKind::FourierLikelihood { frequencies: 12, gamma: 0.0 };
        assert_eq!(Metric::Kl.published(Dataset::Beta, fourier), Some((0.130, 0.005)));
        let mixture = HeadKind::GmmLikelihood { components: 2 };
        assert_eq!(Metric::Perplexity.published(Dataset::Gmm2, mixture), Some((0.702, 0.015)));
        let other = HeadKind::FourierLikelihood { frequencies: 10, gamma: 0.0 };
        assert_eq!(Metric::Kl.published(Dataset::Beta, other), None);
    }

    #[test]
    fn a_page_has_our_numbers_beside_the_papers() {
        let settings = Settings {
            datasets: vec![Dataset::Gmm2],
            data_seeds: vec![1, 2],
            weight_seeds: vec![1],
            frequencies: vec![2, 12],
            epochs: 2,
            evaluate_every: 1,
        };
        let mut found = run(&settings, &|| ());
        let page = found.page("just lab likelihood");
        let text = page.markdown();
        for part in ["0.072 ± 0.005", "2 epochs", "On gmm2 the lowest mean KL", "-epochs.svg"] {
            assert!(text.contains(part), "no {part:?} in {text}");
        }
        assert_eq!(found.runs_table().to_csv().lines().count(), 1 + 2 * 5);
        for run in &mut found.runs {
            let (dataset, kind) = (run.job.dataset, run.job.kind);
            let of = |metric: Metric| metric.published(dataset, kind).map_or(0.0, |(mean, _)| mean);
            let last = run.evaluations.last_mut().unwrap();
            (last.kl, last.perplexity) = (of(Metric::Kl), of(Metric::Perplexity));
        }
        assert_eq!(
            found.far_text(),
            "All 4 means lie within one of the paper's standard deviations."
        );
        // Both data seeds of the mixture, the first head.
        found.runs[..2].iter_mut().for_each(|run| run.evaluations[1].kl += 0.0015);
        assert_eq!(found.far_from_paper(), ["gmm2, gmm-mle: KL 0.0195, not 0.018 ± 0.001"]);
    }
}
