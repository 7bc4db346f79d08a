//! The findings as a page: tables with the paper's numbers beside ours, and plots.

use overtone_eval::table::Table;

use super::{Findings, Metric, true_smoothness};
use crate::page::{Page, listed, plus_minus, titled};
use crate::toy::data::BINS;
use crate::toy::findings::Metric as _;
use crate::toy::head::gamma_text;
use crate::toy::study::names;
use crate::toy::{Dataset, HeadKind};

/// N of the paper's tables.
pub(super) const HEADLINE: usize = 12;

/// Epochs of the paper's runs.
const PAPER_EPOCHS: usize = 500;

impl Findings {
    /// Heads of the paper's Tables 1, 5 and 6.
    fn headline_heads(&self, dataset: Dataset) -> Vec<HeadKind> {
        let wanted = |kind: &HeadKind| match kind {
            HeadKind::Fourier { frequencies, gamma } => *frequencies == HEADLINE && *gamma == 0.0,
            _ => true,
        };
        self.heads(dataset).into_iter().filter(wanted).collect()
    }

    /// Every head on every dataset: our numbers, the spread between data seeds and between
    /// weight seeds, and the paper's.
    pub fn headline_table(&self) -> Table {
        let metrics = [Metric::Kl, Metric::Smoothness, Metric::Mse];
        self.headline(|dataset| self.headline_heads(dataset), &metrics)
    }

    /// Every head on one dataset, every metric.
    fn sweep_table(&self, dataset: Dataset) -> Table {
        let columns = Metric::ALL.iter().flat_map(|metric| [metric.name(), "paper"]);
        let header: Vec<&str> = ["head", "γ", "N"].into_iter().chain(columns).collect();
        let mut table = Table::new(&header);
        for kind in self.heads(dataset) {
            let mut row = vec![kind.name().to_owned()];
            row.push(kind.gamma().map_or("–".into(), gamma_text));
            row.push(kind.frequencies().map_or("–".into(), |n| n.to_string()));
            for &metric in Metric::ALL {
                let (mean, sd) = metric.ours(self, dataset, kind);
                let ours = if metric.fits(kind) { plus_minus(mean, sd, 4) } else { "–".into() };
                row.extend([ours, Self::published_text(metric.published(dataset, kind))]);
            }
            table.row(row);
        }
        table
    }

    /// The best evaluation of each run beside its last.
    fn best_table(&self) -> Table {
        let mut table = Table::new(&[
            "dataset",
            "head",
            "KL at its best",
            "at epoch",
            "KL at the end",
            "of it overfitted",
        ]);
        for &dataset in &self.settings.datasets {
            for kind in self.heads(dataset) {
                if kind == HeadKind::Pointwise {
                    continue;
                }
                let (at_best, epoch) = self.best(dataset, kind);
                let end = self.spread(Metric::Kl, dataset, kind);
                table.row(vec![
                    dataset.to_string(),
                    kind.to_string(),
                    at_best.text(),
                    format!("{epoch:.0}"),
                    end.text(),
                    format!("{:.0} %", 100.0 * (1.0 - at_best.mean / end.mean)),
                ]);
            }
        }
        table
    }

    /// A page about all of it; `command` is what was run.
    pub fn page(&self, command: &str) -> Page {
        let settings = &self.settings;
        let title = titled("Heads on distributions that are known", settings.runs_each(), "run");
        let mut page = Page::new("density", &title, command);
        page.text(&format!(
            "The toy example of the Fourier head's paper (Section 4.1, Appendix C.2): a perceptron \
             2 → 64 → 32 with different heads learns the distribution of `z` given `x` and `y` \
             over {BINS} bins, from 4,000 rows.\n\
             Everything is measured on 1,000 other rows: KL(truth ‖ model) in nats, the squared \
             error of the expected and of the likeliest bin, and smoothness (lower is smoother).\n\
             {} epochs (the paper: {PAPER_EPOCHS}); all numbers are after the last epoch unless the \
             table says otherwise.\n\n\
             Data seeds {} (the rows are those that the released code draws), {} weight seed{} \
             each.\n\
             ± is what the paper has: the sample standard deviation over data seeds, one run \
             each; with several weight seeds, the root mean square of one such number for each. \
             Runs of different data seeds share no weights, so it holds both kinds of chance.\n\
             *Between weights* is the same with the roles exchanged: the spread that other weights \
             and another order of the rows make on the same data.\n\
             Of smoothness, ± is over all test rows of all runs, again as in the paper.\n\n\
             *Paper*: the numbers saved with its released code, of which its Tables 1, 5 and 6 \
             print N = {HEADLINE}, γ = 0 to three digits; for pointwise regression, Table 6. One of \
             them belongs to an older file: the smoothness of the GMM head on gmm2, for which the \
             saved distributions give 0.0464 ± 0.0068. And the MSE that Table 6 prints of the \
             linear head on gaussian, 0.013 ± 0.001, is the saved MSE (argmax).",
            settings.epochs,
            listed(&settings.data_seeds),
            settings.weight_seeds.len(),
            if settings.weight_seeds.len() == 1 { "" } else { "s" },
        ));
        page.heading("Tables 1, 5 and 6");
        page.table("density-headline", &self.headline_table());
        page.text(&self.linear_text());
        page.text(&self.true_text());
        for &dataset in &settings.datasets {
            page.heading(&format!("All heads on {dataset}"));
            page.table(&format!("density-{dataset}"), &self.sweep_table(dataset));
        }
        page.text(&format!("{}\n{}", self.far_text(), self.chance_text()));
        page.heading("Against the number of frequencies (Figure 8)");
        for &dataset in &settings.datasets {
            for metric in [Metric::Kl, Metric::Mse, Metric::Smoothness] {
                let name = format!("density-{dataset}-{}", metric.name().to_lowercase());
                page.plot(&name, &self.against_frequencies(metric, dataset));
            }
        }
        page.heading("Over the epochs");
        let linear = settings
            .datasets
            .iter()
            .map(|&dataset| format!("{:.0} on {dataset}", self.best(dataset, HeadKind::Linear).1));
        page.text(&format!(
            "The test set's KL of one run jumps between epochs. Of {} epochs, looked at after \
             every {}, the linear head's best one is on average {}. The best epoch is chosen on the test set itself, so the \
             first column flatters; it shows how much of the number at the end is overfitting.",
            settings.epochs,
            settings.evaluate_every,
            linear.collect::<Vec<_>>().join(", ")
        ));
        page.table("density-best", &self.best_table());
        for &dataset in &settings.datasets {
            page.plot(&format!("density-{dataset}-epochs"), &self.epochs_plot(dataset));
        }
        page.csv("density-epochs", &self.epochs_table());
        page.csv("density-runs", &self.runs_table());
        page.heading("What was learned (Figure 2)");
        for &dataset in &settings.datasets {
            page.plot(&format!("density-{dataset}-example"), &self.learned(dataset));
        }
        page.heading("Pointwise regression (Figure 10)");
        page.text("It predicts the mean, wherever the probability is.");
        for &dataset in &settings.datasets {
            page.plot(&format!("density-{dataset}-pointwise"), &self.pointwise(dataset));
        }
        page
    }

    fn true_text(&self) -> String {
        let smoothness = true_smoothness(&self.settings);
        let parts = smoothness.iter().map(|(dataset, pooled)| {
            format!("{} on {dataset}", plus_minus(pooled.mean, pooled.sd(), 4))
        });
        let parts: Vec<String> = parts.collect();
        format!(
            "Smoother is not closer: the true distributions' own smoothness is {}.",
            parts.join(", ")
        )
    }

    fn epochs_table(&self) -> Table {
        let mut table = Table::new(&["dataset", "head", "N", "gamma", "epoch", "KL", "sd"]);
        for &dataset in &self.settings.datasets {
            for kind in self.heads(dataset) {
                if kind == HeadKind::Pointwise {
                    continue;
                }
                for (epoch, mean, sd) in self.curve(dataset, kind) {
                    let numbers = [epoch.to_string(), mean.to_string(), sd.to_string()];
                    table.row(names(dataset, kind).into_iter().chain(numbers).collect());
                }
            }
        }
        table
    }
}

#[cfg(test)]
mod tests {
    use crate::density::small;

    #[test]
    fn a_page_has_every_number_beside_the_papers() {
        let found = small();
        let page = found.page("just lab density");
        let text = page.markdown();
        for part in [
            "2 epochs (the paper: 500)",
            "Data seeds 1, 2 (",
            "0.1695 ± 0.0523",
            "| fourier | 1e-6 | 12 |",
            "density-beta-smoothness.svg",
            "of 50 means lie further",
            "Of 2 epochs, looked at after every 1, the linear head's best one is on average 2 on",
            "chance alone would put 33 % of its means",
        ] {
            assert!(text.contains(part), "no {part:?} in {text}");
        }
        // 2 datasets, 2 data seeds, linear, GMM, four Fourier heads and pointwise regression.
        assert_eq!(found.runs_table().to_csv().lines().count(), 1 + 2 * 2 * 7);
        assert_eq!(found.epochs_table().to_csv().lines().count(), 1 + 2 * 6 * 2);
        assert!(found.headline_table().to_csv().contains("–"), "one weight seed has no spread");
    }
}
