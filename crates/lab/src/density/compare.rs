//! The findings' numbers, and how they compare with the paper's.

use overtone_eval::Pooled;

use super::saved::{self, MeanSd};
use super::{Evaluation, Findings, heads};
use crate::toy::study::{Run, Spread};
use crate::toy::{Dataset, HeadKind};

/// A quantity of a run's last epoch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Metric {
    Kl,
    Mse,
    MseArgmax,
    Smoothness,
}

impl Metric {
    pub(super) const ALL: [Self; 4] = [Self::Kl, Self::Mse, Self::MseArgmax, Self::Smoothness];

    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Kl => "KL",
            Self::Mse => "MSE",
            Self::MseArgmax => "MSE (argmax)",
            Self::Smoothness => "smoothness",
        }
    }

    pub(super) fn of(self, evaluation: &Evaluation) -> f64 {
        match self {
            Self::Kl => evaluation.kl,
            Self::Mse => evaluation.mse,
            Self::MseArgmax => evaluation.mse_argmax,
            Self::Smoothness => evaluation.smoothness.mean,
        }
    }

    pub(super) fn published(self, dataset: Dataset, kind: HeadKind) -> Option<MeanSd> {
        if kind == HeadKind::Pointwise {
            return (self == Self::Mse).then(|| saved::pointwise_mse(dataset));
        }
        let saved = saved::saved(dataset, kind)?;
        Some(match self {
            Self::Kl => saved.kl,
            Self::Mse => saved.mse,
            Self::MseArgmax => saved.mse_argmax,
            Self::Smoothness => saved.smoothness,
        })
    }

    /// Whether it says something about a head.
    pub(super) fn fits(self, kind: HeadKind) -> bool {
        kind != HeadKind::Pointwise || matches!(self, Self::Mse | Self::MseArgmax)
    }
}

impl Findings {
    pub(super) fn of(
        &self,
        dataset: Dataset,
        kind: HeadKind,
    ) -> impl Iterator<Item = &Run<Evaluation>> {
        self.runs.iter().filter(move |run| run.job.dataset == dataset && run.job.kind == kind)
    }

    /// Our mean and its spread after the last epoch.
    pub(super) fn spread(&self, metric: Metric, dataset: Dataset, kind: HeadKind) -> Spread {
        Spread::of(self.of(dataset, kind), |run| metric.of(run.last()))
    }

    /// Our mean and the deviation that the paper states: of smoothness the one over all test
    /// rows of all runs, else the one between data seeds.
    pub(super) fn ours(
        &self,
        metric: Metric,
        dataset: Dataset,
        kind: HeadKind,
    ) -> (f64, Option<f64>) {
        if metric == Metric::Smoothness {
            let mut pooled = Pooled::default();
            self.of(dataset, kind).for_each(|run| pooled.join(&run.last().smoothness));
            return (pooled.mean, pooled.sd());
        }
        let spread = self.spread(metric, dataset, kind);
        (spread.mean, spread.over_data)
    }

    /// Our means that lie further from the paper's than its deviation, in words.
    pub fn far_from_paper(&self) -> Vec<String> {
        let mut far = Vec::new();
        for &dataset in &self.settings.datasets {
            for kind in heads(&self.settings, dataset) {
                for metric in Metric::ALL {
                    let Some((mean, sd)) = metric.published(dataset, kind) else { continue };
                    let ours = self.ours(metric, dataset, kind).0;
                    if (ours - mean).abs() > sd {
                        let name = metric.name();
                        far.push(format!(
                            "{dataset}, {kind}: {name} {ours:.4}, not {mean:.4} ± {sd:.4}"
                        ));
                    }
                }
            }
        }
        far
    }

    /// How many of our means can be compared with the paper's.
    fn compared(&self) -> usize {
        let count = |dataset: Dataset, kind: HeadKind| {
            let published = |metric: &&Metric| metric.published(dataset, kind).is_some();
            Metric::ALL.iter().filter(published).count()
        };
        let all = self.settings.datasets.iter().map(|&dataset| {
            heads(&self.settings, dataset)
                .into_iter()
                .map(|kind| count(dataset, kind))
                .sum::<usize>()
        });
        all.sum()
    }

    /// How the comparison with the paper ends, in a sentence.
    pub fn far_text(&self) -> String {
        let (far, compared) = (self.far_from_paper(), self.compared());
        match far.len() {
            0 => format!("All {compared} means lie within one of the paper's standard deviations."),
            n => format!(
                "{n} of {compared} means lie further than one of the paper's standard deviations \
                 from the paper's: {}.",
                far.join("; ")
            ),
        }
    }

    /// KL of the Fourier head against that of the linear head, in a sentence for each dataset.
    pub fn linear_text(&self) -> String {
        let sentence = |&dataset: &Dataset| {
            let kl = |kind| self.spread(Metric::Kl, dataset, kind).mean;
            let linear = kl(HeadKind::Linear);
            let fourier = heads(&self.settings, dataset).into_iter();
            let fourier = fourier.filter(|kind| kind.frequencies().is_some());
            let best = fourier.min_by(|&a, &b| kl(a).total_cmp(&kl(b)))?;
            let by = 100.0 * (1.0 - kl(best) / linear);
            Some(format!(
                "On {dataset} the lowest mean KL of a Fourier head is {:.4} ({best}), {:.0} % {} \
                 the linear head's {linear:.4}.",
                kl(best),
                by.abs(),
                if by >= 0.0 { "below" } else { "above" },
            ))
        };
        self.settings.datasets.iter().filter_map(sentence).collect::<Vec<_>>().join("\n")
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::density::small;

    #[test]
    fn what_is_far_from_the_paper_is_said() {
        let mut found = small();
        let count = |found: &Findings| found.far_from_paper().len();
        for run in &mut found.runs {
            let (dataset, kind) = (run.job.dataset, run.job.kind);
            let of = |metric: Metric| metric.published(dataset, kind).map_or(0.0, |(mean, _)| mean);
            let numbers = Metric::ALL.map(of);
            let Some(last) = run.evaluations.last_mut() else { continue };
            [last.kl, last.mse, last.mse_argmax, last.smoothness.mean] = numbers;
        }
        assert_eq!(count(&found), 0, "{:?}", found.far_from_paper());
        assert!(found.far_text().starts_with("All 50 means lie within"));
        // Both data seeds of the linear head, the first head: 0.053 is more than 0.0523.
        for run in &mut found.runs[..2] {
            run.evaluations.last_mut().unwrap().kl += 0.053;
        }
        let far = found.far_from_paper();
        assert_eq!(far, ["gaussian, linear: KL 0.2225, not 0.1695 ± 0.0523"]);
        let linear = "On gaussian the lowest mean KL of a Fourier head is 0.1163 (fourier-12 γ=0), \
                      48 % below the linear head's 0.2225.";
        assert!(found.linear_text().contains(linear), "{}", found.linear_text());
    }
}
