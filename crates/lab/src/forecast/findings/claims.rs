//! What the paper says of its Table 8, held against pairs of our rows.

use overtone_eval::{Pooled, table::Table};

use super::{Findings, VariantFinding};
use crate::forecast::Variant;

/// What a variant is compared with, if it is.
type Before<'a> = &'a dyn Fn(&Variant) -> Option<Variant>;
/// A metric of a variant over its seeds; lower is better.
type Metric = fn(&Findings, &VariantFinding) -> Pooled;

const MASE: Metric = |all, found| found.mase(&all.naive);
const WQL: Metric = |all, found| found.wql(&all.naive);
const SMOOTHNESS: Metric = |_, found| found.smoothness();

/// How many pairs go which way.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Tally {
    pairs: usize,
    lower: usize,
    clearly_lower: usize,
    clearly_higher: usize,
}

impl Tally {
    /// Counts a pair: `after` against `before`.
    fn add(&mut self, before: &Pooled, after: &Pooled) {
        let change = after.mean - before.mean;
        let variance = |pooled: &Pooled| pooled.sd().map_or(f64::INFINITY, |sd| sd * sd);
        let sd = (variance(before) + variance(after)).sqrt();
        self.pairs += 1;
        self.lower += usize::from(change < 0.0);
        self.clearly_lower += usize::from(change < -sd);
        self.clearly_higher += usize::from(change > sd);
    }
}

impl Findings {
    /// The paper's statements and how many pairs bear them out.
    pub fn claims_table(&self) -> Table {
        let fourier =
            |after: &Variant| after.fourier.map(|_| Variant { fourier: None, mixed: after.mixed });
        let frequencies = &self.settings.frequencies;
        let fewer = |after: &Variant| {
            let (n, gamma) = after.fourier?;
            let at = frequencies.iter().position(|&other| other == n)?;
            let before = *frequencies.get(at.checked_sub(1)?)?;
            Some(Variant { fourier: Some((before, gamma)), mixed: after.mixed })
        };
        let uniform = |after: &Variant| {
            (after.mixed && after.fourier.is_some()).then_some(Variant { mixed: false, ..*after })
        };
        let uniform_linear = |after: &Variant| {
            (after.mixed && after.fourier.is_none()).then_some(Variant { mixed: false, ..*after })
        };
        let plain = |after: &Variant| {
            let (n, gamma) = after.fourier?;
            (gamma > 0.0).then_some(Variant { fourier: Some((n, 0.0)), mixed: after.mixed })
        };
        let claims: [(&str, Before<'_>, Metric, &str); 12] = [
            ("Fourier is smoother than linear", &fourier, SMOOTHNESS, "yes"),
            ("Fourier has lower MASE than linear", &fourier, MASE, "yes"),
            ("Fourier has lower WQL than linear", &fourier, WQL, "for the largest N alone"),
            ("more frequencies lower MASE", &fewer, MASE, "yes"),
            ("more frequencies lower WQL", &fewer, WQL, "yes"),
            ("more frequencies are smoother", &fewer, SMOOTHNESS, "no, rougher"),
            ("mixed bins lower a Fourier head's MASE", &uniform, MASE, "yes"),
            ("mixed bins lower a Fourier head's WQL", &uniform, WQL, "hardly an effect"),
            ("mixed bins make a Fourier head smoother", &uniform, SMOOTHNESS, "yes"),
            ("mixed bins lower the linear head's MASE", &uniform_linear, MASE, "no effect"),
            ("regularisation lowers MASE", &plain, MASE, "yes"),
            ("regularisation makes smoother", &plain, SMOOTHNESS, "yes"),
        ];
        let mut table = Table::new(&[
            "statement",
            "in the paper",
            "pairs here",
            "so",
            "clearly so",
            "clearly not so",
        ]);
        for (statement, before, metric, paper) in claims {
            let tally = self.tally(before, metric);
            let counts = [tally.pairs, tally.lower, tally.clearly_lower, tally.clearly_higher];
            let mut row = vec![statement.to_owned(), paper.to_owned()];
            row.extend(counts.map(|count| count.to_string()));
            table.row(row);
        }
        table
    }

    /// Compares every variant with the one `before` names for it.
    fn tally(&self, before: Before<'_>, metric: Metric) -> Tally {
        let mut tally = Tally::default();
        for after in &self.variants {
            let Some(wanted) = before(&after.variant) else { continue };
            let found = self.variants.iter().find(|found| found.variant == wanted);
            if let Some(found) = found {
                tally.add(&metric(self, found), &metric(self, after));
            }
        }
        tally
    }
}

#[cfg(test)]
mod tests {
    use super::super::super::tests::tiny_findings;
    use super::*;

    #[test]
    fn pairs_are_counted_by_hand() {
        let pooled = |mean: f64, sd: f64| Pooled::from_iter([mean - sd, mean, mean + sd]);
        let mut tally = Tally::default();
        tally.add(&pooled(5.0, 3.0), &pooled(0.5, 4.0)); // √(9 + 16) = 5
        assert_eq!(tally, Tally { pairs: 1, lower: 1, ..Tally::default() });
        tally.add(&pooled(5.0, 3.0), &pooled(-0.5, 4.0));
        tally.add(&pooled(5.0, 3.0), &pooled(10.5, 4.0));
        // One seed alone is never clear.
        tally.add(&pooled(5.0, 3.0), &Pooled::from_iter([-99.0]));
        let expected = Tally { pairs: 4, lower: 3, clearly_lower: 1, clearly_higher: 1 };
        assert_eq!(tally, expected);
    }

    #[test]
    fn every_statement_has_its_pairs() {
        let table = tiny_findings().claims_table().to_csv();
        let pairs: Vec<usize> = table
            .lines()
            .skip(1)
            .map(|line| line.rsplit(',').nth(3).unwrap().parse().unwrap())
            .collect();
        // Two numbers of frequencies, two γ, two kinds of bins: 8 heads; 4 with more
        // frequencies, 4 with mixed bins, 4 with regularisation.
        assert_eq!(pairs, [8, 8, 8, 4, 4, 4, 4, 4, 4, 1, 4, 4]);
    }
}
