//! The findings as a page and tables.

use overtone_eval::table::Table;
use overtone_plot::{Line, LinePlot};

use super::{
    DECIDING, Findings, Verdict, deciding,
    head::ReturnHead,
    score::{LEVELS, Score},
};
use crate::page::{Page, titled};

impl Findings {
    /// A row a head: means over files of the means over splits.
    pub fn headline_table(&self) -> Table {
        let mut table = Table::new(&[
            "head",
            "files within 1 % of the best at 0.95",
            "pinball at 0.95, of the best",
            "at 0.9",
            "at 0.99",
            "nats",
            "share below 0.5",
            "0.9",
            "0.95",
            "0.99",
            "miscalibration",
        ]);
        for &head in &self.settings.heads {
            let Verdict { good, .. } = self.rule(head);
            let mut row = vec![head.to_string(), format!("{good} of {}", self.files.len())];
            row.extend([0.95, 0.9, 0.99].map(|level| format!("{:.3}", self.ratio(head, level))));
            row.push(self.nats(head, |of| self.overall(head, of)));
            let below = |level: usize| self.overall(head, |score| score.below[level]);
            row.extend((0..LEVELS.len()).map(|level| format!("{:.3}", below(level))));
            row.push(format!("{:.3}", self.overall(head, Score::miscalibration)));
            table.row(row);
        }
        table
    }

    /// A row a file: its pinball losses at .95, each head's as a multiple of the best one's.
    fn file_table(&self) -> Table {
        let words = self.settings.heads.iter().map(|head| head.word());
        let header: Vec<&str> = ["file", "best"].into_iter().chain(words).collect();
        let mut table = Table::new(&header);
        for file in &self.files {
            let ratios = self.settings.heads.iter().map(|&head| {
                let ratio = self.against_best(file, head, deciding());
                (head, ratio)
            });
            let ratios: Vec<(ReturnHead, f64)> = ratios.collect();
            let best = ratios.iter().min_by(|a, b| a.1.total_cmp(&b.1)).map(|&(head, _)| head);
            let loss = best.map(|head| self.mean(file, head, |score| score.pinball[deciding()]));
            let mut row = vec![file.clone(), loss.map_or_else(String::new, |x| format!("{x:.4}"))];
            row.extend(ratios.iter().map(|(_, ratio)| format!("{ratio:.3}")));
            table.row(row);
        }
        table
    }

    /// A row a file: each head's log-likelihood of the held-out returns.
    fn likelihood_table(&self) -> Table {
        let heads = || self.settings.heads.iter().filter(|head| head.has_density());
        let header: Vec<&str> =
            ["file"].into_iter().chain(heads().map(|head| head.word())).collect();
        let mut table = Table::new(&header);
        for file in &self.files {
            let mut row = vec![file.clone()];
            row.extend(heads().map(|&head| self.nats(head, |of| self.mean(file, head, of))));
            table.row(row);
        }
        table
    }

    /// A row a run.
    fn all_table(&self) -> Table {
        let mut table = Table::new(&[
            "file",
            "split",
            "head",
            "nats",
            "pinball 0.5",
            "pinball 0.9",
            "pinball 0.95",
            "pinball 0.99",
            "below 0.5",
            "below 0.9",
            "below 0.95",
            "below 0.99",
        ]);
        for run in &self.runs {
            let nats = run.score.nats.map_or_else(String::new, |nats| format!("{nats:.4}"));
            let mut row =
                vec![run.file.clone(), (run.split + 1).to_string(), run.head.to_string(), nats];
            row.extend(run.score.pinball.map(|loss| format!("{loss:.5}")));
            row.extend(run.score.below.map(|share| format!("{share:.4}")));
            table.row(row);
        }
        table
    }

    /// How far each head's shares are from what they should be.
    fn calibration(&self) -> LinePlot {
        let lines = self.settings.heads.iter().map(|&head| {
            let share = |level: usize| self.overall(head, |score| score.below[level]);
            let points =
                (0..LEVELS.len()).map(|level| [LEVELS[level], share(level) - LEVELS[level]]);
            Line::new(head.word(), points.collect())
        });
        LinePlot {
            title: "Held-out returns below a predicted quantile".into(),
            x_label: "quantile".into(),
            y_label: "share below, less the quantile".into(),
            lines: lines.collect(),
            ..LinePlot::default()
        }
    }

    /// Pinball at a level as a multiple of the best head's, the mean over files.
    fn ratio(&self, head: ReturnHead, level: f64) -> f64 {
        let place = LEVELS.iter().position(|&known| known == level).unwrap_or(0);
        let ratios = self.files.iter().map(|file| self.against_best(file, head, place));
        ratios.sum::<f64>() / self.files.len() as f64
    }

    /// A mean of log-likelihoods; nothing for a head without a distribution.
    fn nats(&self, head: ReturnHead, mean: impl Fn(&dyn Fn(&Score) -> f64) -> f64) -> String {
        match head.has_density() {
            true => format!("{:.3}", mean(&|score| score.nats.unwrap_or(f64::NAN))),
            false => "-".into(),
        }
    }

    /// What the rule says of the Fourier likelihoods and which head is good on most files, in
    /// sentences.
    pub fn verdict_text(&self) -> String {
        let count = |head: ReturnHead| {
            let Verdict { good, needed } = self.rule(head);
            let met = if self.rule(head).is_met() { "meets" } else { "does not meet" };
            format!("{head} is within 1 % of the best on {good} and {met} it ({needed} needed)")
        };
        let fourier = [ReturnHead::Fourier, ReturnHead::FourierMargin, ReturnHead::FourierHalf];
        let asked = self.settings.heads.iter().filter(|head| fourier.contains(head));
        let verdicts: Vec<String> = asked.map(|&head| count(head)).collect();
        let ratio = |head: ReturnHead| self.ratio(head, DECIDING);
        let order = |a: &&ReturnHead, b: &&ReturnHead| {
            let files = self.rule(**a).good.cmp(&self.rule(**b).good);
            files.then(ratio(**b).total_cmp(&ratio(**a)))
        };
        let first = self.settings.heads.iter().max_by(order).map_or_else(String::new, |&head| {
            let good = self.rule(head).good;
            format!("On most files, {good} of {}, {head} is.", self.files.len())
        });
        match verdicts.is_empty() {
            true => first,
            false => format!("The rule: {}. {first}", verdicts.join("; ")),
        }
    }

    /// The whole page; `command` is what made it.
    pub fn page(&self, command: &str) -> Page {
        let settings = &self.settings;
        let title = "Which head tells best what may still be earned";
        let title = titled(title, settings.splits, "split");
        let mut page = Page::new("return-heads", &title, command);
        page.text(&format!(
            "A perceptron with two hidden layers of {width} reads one observation and says how \
             probable each return is, `p(z | o)`: the average return still to come, by its place \
             between the 5th and the 95th percentile of the file's, from −1 to 1, beyond as the \
             nearer end (`model.return_unit=rate`). Percentiles, and the mean and deviation by which \
             observations are standardized, are of all episodes of a file, held-out ones with them. \
             Heads differ, all else is the same: {splits} split{s} of the episodes of each of \
             {files} files with {held_out} % held out, {updates} updates of {batch} steps (AdamW, learning rate 0.001 falling to 0 as a cosine), a \
             number fixed before. The figures are of up to {asked} held-out steps of each split, \
             the same for every head; nothing was stopped early or chosen by them. Nobody played.",
            width = settings.training.width,
            splits = settings.splits,
            s = if settings.splits == 1 { "" } else { "s" },
            files = self.files.len(),
            held_out = (100.0 * settings.held_out).round(),
            updates = settings.training.updates,
            batch = settings.training.batch_size,
            asked = settings.asked,
        ));
        page.text(
            "The rule, fixed before: if the Fourier likelihood's pinball loss at the 0.95-quantile \
             is not within 1 % of the best head's on two thirds of the files, HL-Gauss or the \
             expectile takes its place.",
        );
        page.text(&self.verdict_text());
        page.heading("Heads");
        page.text(
            "Means over files, each a mean over splits. *Of the best*: as a multiple of the lowest \
             loss of any head on that file, at that level. *Nats*: log density of the held-out \
             returns for a unit of `z`, bins taken as piecewise constant; higher is better. *Share \
             below*: of held-out returns, those that do not exceed the predicted quantile; it \
             should be the number at the top, and *miscalibration* is the mean distance from it. A \
             return told as 1 was at least that, and no quantile of a density on [−1, 1] reaches 1: \
             it counts as below one within a bin's width (1/60) of 1. One in ten returns lies exactly \
             at an end, where they are clamped. Bins and narrow peaks can put mass there, smooth densities cannot, so log densities of the kinds are \
             to be compared with care; pinball losses are not touched by that.",
        );
        page.table("heads", &self.headline_table());
        page.text(
            "`fourier12` has [−1, 1] as its period, so the best and the worst return are \
             neighbours; `fourier12-margin` has the returns on [−0.8, 0.8] of the period; \
             `fourier12-half` has [−1, 1] as half of it. The Gaussians are as wide at every \
             observation. `expectile99` is one number, whatever the level.",
        );
        page.plot("calibration", &self.calibration());
        page.heading("Pinball loss at 0.95 by file");
        page.text("The best head's loss, and each head's as a multiple of it.");
        page.table("files", &self.file_table());
        page.heading("Log-likelihood by file");
        page.table("likelihood", &self.likelihood_table());
        page.csv("runs", &self.all_table());
        page.text("Every run is in [runs.csv](runs.csv).");
        page
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::found;

    #[test]
    fn the_page_says_what_the_rule_says() {
        let met = found([[1.005, 1.0], [1.02, 1.0], [1.0, 1.3]]);
        let text = met.verdict_text();
        assert!(text.contains("fourier12 is within 1 % of the best on 2 and meets it"), "{text}");
        let unmet = found([[1.02, 1.0], [1.02, 1.0], [1.0, 1.0]]);
        let text = unmet.verdict_text();
        assert!(text.contains("on 1 and does not meet it (2 needed)"), "{text}");
        assert!(text.contains("On most files, 3 of 3, hl-gauss120 is."), "{text}");
        let page = unmet.page("just lab return-heads");
        assert!(page.markdown().contains(&text));
        assert!(page.markdown().contains("| a | 1.0000 | 1.020 | 1.000 |"), "{}", page.markdown());
        assert!(page.markdown().contains("| fourier12 | 1 of 3 | 1.013 |"), "{}", page.markdown());
    }
}
