//! The report as text for the terminal.

use overtone_core::protocol::Difference;
use overtone_core::protocol::ReturnUnits;
use overtone_core::{Outcome, counted};

use super::{Evaluation, TargetResult};
use crate::summary::Summary;
use crate::summary::{digits, estimate, fixed, spread};
use crate::table::{Column, Table, or_dash};

impl Evaluation {
    /// The report as text: a headline, a row for each target, and an explanation of the columns.
    pub fn to_text(&self) -> String {
        let setting = &self.setting;
        let mut text = format!(
            "{} · {} · {} protocol\n",
            setting.task.title, setting.policy, setting.protocol.name
        );
        if let Some(checkpoint) = &setting.checkpoint {
            text += &format!(
                "checkpoint {} ({} updates)\n",
                checkpoint.path.display(),
                checkpoint.step
            );
        }
        text += &describe_differences(&setting.differences);
        text += "\n";
        text += &self.target_table().to_string();
        if let Some(warning) = self.warning() {
            text += &format!("\nWARNING: {warning}\n");
        }
        text += if self.clips() {
            "\nraw: the game's score; clipped: rewards clipped to [-1, 1], as stored in the data; "
        } else {
            "\nraw: the sum of rewards; "
        };
        text += "± is the sample standard deviation (ddof 1)\n";
        if let Some(reference) = &setting.task.reference {
            text += &format!(
                "normalized: {} ({} and {})\n",
                reference.meaning, reference.low, reference.high
            );
        }
        if self.targets.iter().any(|target| target.success.is_some()) {
            text += "success: fraction of episodes that the environment called a success at their \
                     last step, with Wilson's 95 % interval\n";
        }
        let smoothness = self.targets.iter().find_map(|target| target.smoothness);
        if let (true, Some(smoothness)) = (setting.has_fourier_head(), smoothness) {
            text += &format!(
                "smoothness: the L² metric of the Fourier head paper (σ = 1 to 100) for {} bins in \
                 {} on a ring, pooled over all steps of a target; lower is smoother\n",
                smoothness.n_bins,
                smoothness.order.describe()
            );
        }
        text += &format!(
            "{} steps, up to {} in parallel, in {:.1} s: {:.0} steps/s; seed {}\n",
            self.steps,
            counted(self.parallel_episodes, "episode"),
            self.wall_seconds,
            self.steps_per_second,
            self.seed
        );
        text + &format!(
            "time: {:.0} % policy, {:.0} % waiting for environments; average batch occupancy \
             {:.0} %\n",
            100.0 * self.timing.acting,
            100.0 * self.timing.waiting,
            100.0 * self.timing.full
        )
    }

    /// Whether the task uses clipped rewards.
    fn clips(&self) -> bool {
        self.setting.task.return_units == ReturnUnits::Clipped
    }

    fn target_table(&self) -> Table {
        let digits =
            |summary: fn(&TargetResult) -> &Summary| digits(self.targets.iter().map(summary));
        let raw = digits(|target| &target.raw_return);
        let clipped = digits(|target| &target.clipped_return);
        // The ends of large returns are easier to read without decimals.
        let ends = if raw == 1 { 0 } else { raw };
        let columns: [Column<'_, &TargetResult>; 12] = [
            ("target", &|target| or_dash(self.setting.condition(target.target_return))),
            ("episodes", &|target| target.raw_return.n.to_string()),
            ("raw", &|target| with_spread(&target.raw_return, raw)),
            ("median", &|target| fixed(target.raw_return.median, raw)),
            ("IQM", &|target| fixed(target.raw_return.iqm, raw)),
            ("min", &|target| fixed(target.raw_return.min, ends)),
            ("max", &|target| fixed(target.raw_return.max, ends)),
            ("clipped", &|target| with_spread(&target.clipped_return, clipped)),
            ("length", &|target| with_spread(&target.length, 0)),
            ("normalized", &|target| {
                or_dash(target.normalized.as_ref().map(|summary| with_spread(summary, 2)))
            }),
            ("success [interval]", &|target| {
                or_dash(target.success.map(|rate| estimate(&rate, 2)))
            }),
            ("smoothness", &|target| {
                let smoothness = target.smoothness.filter(|_| self.setting.has_fourier_head());
                or_dash(smoothness.map(|smoothness| spread(smoothness.mean, smoothness.sd, 4)))
            }),
        ];
        let is_shown = |name: &str| name != "clipped" || self.clips();
        let shown: Vec<_> = columns.into_iter().filter(|(name, _)| is_shown(name)).collect();
        Table::of(&self.targets, &shown).without_dashes()
    }
}

/// A line for each setting that differs from training, with its consequence.
fn describe_differences(differences: &[Difference]) -> String {
    match differences {
        [] => "no setting differs from the recorded data and training\n".into(),
        differences => {
            let lines = differences.iter().map(|difference| format!("  {difference}\n"));
            format!(
                "differences from the recorded data and training:\n{}",
                lines.collect::<String>()
            )
        }
    }
}

/// The outcome of an episode as a word.
pub fn outcome_name(outcome: Outcome) -> &'static str {
    match outcome {
        Outcome::Terminated => "terminated",
        Outcome::Truncated => "truncated",
    }
}

fn with_spread(summary: &Summary, digits: usize) -> String {
    spread(summary.mean, summary.sd, digits)
}
