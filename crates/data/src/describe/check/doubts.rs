//! Doubts: signs that the numbers of a recording mean something else than their type and shape say.

use overtone_core::{ActionSpace, Episode, Task};

use super::doubted_number::DoubtedNumber;
use super::ends::Ends;
use super::figures::Figures;
use super::outliers;
use super::steps::{Rows, Steps};
use crate::describe::expected::Expected;
use crate::describe::findings::{Finding, Findings, Tally};
use crate::read::column::{ActionColumn, ObservationColumn};
use crate::read::columns::Columns;
use crate::read::hdf5_arrays::place;
use crate::read::source::NAMES_SHOWN;
use crate::read::stored::Stored;
use crate::sample::combinations::{counted_from, other_start};

/// Minimum number of steps: a few values may all be whole, or all small.
const FEW: usize = 10;

/// The largest byte of pictures that is too small for them.
const DARKEST: u8 = 63;

/// Minimum side of a picture: smaller ones are rather memory, or codes.
const SHORTEST_SIDE: usize = 8;

/// Different whole numbers of a choice among continuous actions, at most.
const MOST_CHOICES: usize = 32;

/// Minimum bytes of an observation that may be a picture.
const FEWEST_PIXELS: usize = 400;

/// Minimum length of a long list, and the average number of occurrences that its actions need.
const LONG_LIST: (usize, usize) = (64, 10);

/// Statistics of a recording whose numbers may mean something else.
#[derive(Default)]
pub(super) struct Doubts {
    stored: Stored,
    rows: usize,
    /// Whether every action so far is zeros and a one.
    one_hot: bool,
    /// Occurrences of each discrete action.
    chosen: Vec<usize>,
    /// The task's starting number, if the actions may count from it.
    other_start: Option<i64>,
    /// Rows whose reward is not 0.
    paid: usize,
    /// Steps whose reward is above the previous step's, below it, and all.
    rewards: [usize; 3],
    flags: Flags,
    ends: Ends,
    /// Steps with the flags of both ends.
    doubled: Tally,
}

/// The episodes of a recording, as flags in rows cut it.
#[derive(Default)]
struct Flags {
    /// Episodes that a flag ends.
    ended: usize,
    longest: usize,
}

impl Doubts {
    /// Adds steps.
    pub fn part(
        &mut self,
        part: &Steps<'_>,
        episodes: &[Episode],
        finished: &[bool],
        task: Option<&Task>,
    ) {
        self.stored = std::mem::take(&mut self.stored).and(part.stored.clone());
        match part.actions {
            Some(ActionColumn::Continuous { width, values }) => {
                let is_one_hot = |row: &[f32]| {
                    row.iter().filter(|&&number| number == 1.0).count() == 1
                        && row.iter().filter(|&&number| number == 0.0).count() + 1 == row.len()
                };
                let all = values.chunks_exact((*width).max(1)).all(is_one_hot);
                self.one_hot = *width > 1 && all && (self.one_hot || self.rows == 0);
            }
            Some(actions @ ActionColumn::Discrete { n_actions, values }) => {
                self.chosen.resize((*n_actions).max(self.chosen.len()), 0);
                for &action in values {
                    if let Some(count) = self.chosen.get_mut(usize::from(action)) {
                        *count += 1;
                    }
                }
                let described = part.stored.actions_described;
                let start = task.and_then(|task| other_start(actions, described, task));
                self.other_start = start.filter(|_| self.rows == 0 || self.other_start == start);
            }
            None => {}
        }
        self.rows += part.n;
        let rewards = part.rewards.unwrap_or(&[1.0]);
        self.paid += rewards.iter().filter(|&&reward| reward != 0.0).count();
        for episode in episodes {
            for pair in rewards.get(episode.range()).unwrap_or_default().windows(2) {
                self.rewards[0] += usize::from(pair[1] > pair[0]);
                self.rewards[1] += usize::from(pair[1] < pair[0]);
                self.rewards[2] += 1;
            }
        }
        if part.stored.flagged {
            self.flags.look(episodes, finished);
        }
        self.ends.add(part, episodes, finished);
        for &row in &part.stored.doubled {
            self.doubled.add(|| place(part.prefix, row));
        }
    }

    /// Whether rows of padding stand next to the ends of episodes.
    pub fn has_padding(&self) -> bool {
        self.ends.has_padding()
    }

    /// Adds the doubts; about `observed` numbers and the `acted` numbers of continuous actions, too.
    pub fn tell(
        &self,
        observed: &[&DoubtedNumber],
        acted: &[&DoubtedNumber],
        task: Option<&Task>,
        findings: &mut Findings<'_>,
    ) {
        if !self.flags.tell(self.rows, findings) {
            self.ends.tell(findings);
        }
        findings.tally("doubled-flag", "", &self.doubled, ["step", "with both"]);
        self.tell_unread(findings);
        self.tell_actions(acted, task, findings);
        if self.rows < FEW {
            return;
        }
        self.tell_observations(observed, findings);
        self.tell_rewards(findings);
    }

    fn tell_unread(&self, findings: &mut Findings<'_>) {
        let unread = &self.stored.unread;
        if unread.is_empty() {
            return;
        }
        let shown: Vec<String> =
            unread.iter().take(NAMES_SHOWN).map(|name| format!("`{name}`")).collect();
        let more = match unread.len().saturating_sub(NAMES_SHOWN) {
            0 => String::new(),
            more => format!(" and {more} more"),
        };
        findings.tell("not-read", "", format!("not read: {}{more}", shown.join(", ")));
    }

    fn tell_rewards(&self, findings: &mut Findings<'_>) {
        if self.paid == 0 && !self.stored.without_rewards {
            findings.tell("zero-rewards", "rewards", format!("0 in all {} rows", self.rows));
        }
        let [above, below, steps] = self.rewards;
        for (n, n_other, words) in
            [(above, below, ["more", "less"]), (below, above, ["less", "more"])]
        {
            if n_other == 0 && 2 * n > steps && steps >= FEW {
                let [pays, other] = words;
                let found = format!(
                    "{n} of {steps} steps that pay {pays} than the step before, none {other}"
                );
                findings.tell("growing-rewards", "rewards", found);
            }
        }
    }

    fn tell_actions(
        &self,
        acted: &[&DoubtedNumber],
        task: Option<&Task>,
        findings: &mut Findings<'_>,
    ) {
        let wanted = task.map(|task| (&*task.title, &task.actions));
        let is_list = !self.chosen.is_empty();
        let whole = self.whole_actions(acted);
        if self.rows == 0 || (!is_list && acted.is_empty()) {
            return;
        }
        match (wanted, &whole) {
            (Some((title, ActionSpace::Discrete { names })), Some(found)) if !is_list => {
                let expected = format!("one of {} actions, as {title} takes", names.len());
                findings.tell_of("whole-actions-for-list", "actions", expected, found.as_str());
            }
            (Some((title, ActionSpace::Discrete { names })), None) if acted.len() == 1 => {
                let expected = format!("one of {} actions, as {title}", names.len());
                let found = format!("{} real numbers", acted.len());
                findings.tell_of("wrong-width", "actions", expected, found);
            }
            (Some((title, ActionSpace::Continuous { low, .. })), _) if is_list => {
                let expected = format!("{} real numbers, as {title} takes", low.len());
                let found = format!("one of {} actions", self.chosen.len());
                findings.tell_of("list-for-numbers", "actions", expected, found);
            }
            (_, Some(found)) => {
                // A user who sets the bounds of numbers declares that they are numbers.
                let described = self.stored.actions_described || wanted.is_some();
                let is_index = acted.iter().all(|number| number.range()[0] >= 0.0);
                if self.rows < FEW {
                    return;
                }
                let rule = match (described, self.one_hot, is_index) {
                    (true, ..) => "whole-actions-described",
                    (false, true, _) => "one-hot-actions",
                    (false, false, true) => "whole-actions",
                    (false, false, false) => "whole-actions-described",
                };
                findings.tell(rule, "actions", found.as_str());
            }
            (_, None) => self.tell_choices(acted, findings),
        }
        if is_list {
            self.tell_list(task, findings);
        }
    }

    /// Adds a note about each number of continuous actions that looks like a choice.
    fn tell_choices(&self, acted: &[&DoubtedNumber], findings: &mut Findings<'_>) {
        if self.rows < FEW {
            return;
        }
        for (place, number) in acted.iter().enumerate() {
            let few = number.n_values().filter(|n| (2..=MOST_CHOICES).contains(n));
            if let Some(n) = few.filter(|_| number.is_whole()) {
                let [low, high] = number.range();
                let found = format!(
                    "at place {place} {n} different whole numbers from {low} to {high}, beside \
                     real numbers"
                );
                findings.tell("hybrid-actions", "actions", found);
            }
        }
    }

    /// The whole numbers in actions, in words; `None` if they are not whole.
    fn whole_actions(&self, acted: &[&DoubtedNumber]) -> Option<String> {
        if !acted.iter().all(|number| number.is_whole()) {
            return None;
        }
        let lows = acted.iter().map(|number| number.range()[0]);
        let highs = acted.iter().map(|number| number.range()[1]);
        let (low, high) = (lows.reduce(f32::min)?, highs.reduce(f32::max)?);
        Some(match acted {
            [number] => match number.n_values() {
                Some(n) => format!("whole numbers, {n} different ones from {low} to {high}"),
                // So many are a quantity.
                None => return None,
            },
            _ if self.one_hot => format!("{} numbers, exactly one of them 1", acted.len()),
            several => format!("{} whole numbers from {low} to {high}", several.len()),
        })
    }

    fn tell_list(&self, task: Option<&Task>, findings: &mut Findings<'_>) {
        if let (Some(start), Some(task)) = (self.other_start, task) {
            let n = task.actions.size();
            let advice = counted_from(&task.title, start, n);
            findings.tell_of("other-start", "actions", advice, format!("from {start} on"));
            return;
        }
        if self.rows < FEW {
            return;
        }
        let Some(first) = self.chosen.iter().position(|&count| count > 0) else { return };
        let last = self.chosen.iter().rposition(|&count| count > 0).unwrap_or(first);
        if first > 0 && !self.stored.actions_described {
            findings.tell("first-action-unused", "actions", format!("none below {first}"));
        }
        let unused: Vec<String> =
            (first..=last).filter(|&at| self.chosen[at] == 0).map(|at| at.to_string()).collect();
        if let [one] = unused.as_slice() {
            findings.tell("unused-actions", "actions", format!("no action {one}"));
        } else if !unused.is_empty() {
            let shown = unused[..unused.len().min(5)].join(", ");
            let more = if unused.len() > 5 { ", …" } else { "" };
            let found = format!("{} that never occur: {shown}{more}", unused.len());
            findings.tell("unused-actions", "actions", found);
        }
        let (n, (long, often)) = (self.chosen.len(), LONG_LIST);
        if n >= long && self.rows < often * n {
            let found = format!("actions up to {last}, and {} steps", self.rows);
            findings.tell("long-list", "actions", found);
        }
    }

    fn tell_observations(&self, observed: &[&DoubtedNumber], findings: &mut Findings<'_>) {
        const OBSERVED: &str = "observations";
        let Stored { axes, pictures, observations_described: described, .. } = &self.stored;
        if observed.is_empty() {
            if pictures.rows > 0 && (1..=DARKEST).contains(&pictures.largest) {
                let found = format!("no byte above {}", pictures.largest);
                findings.tell("codes-as-pictures", OBSERVED, found);
            } else if pictures.rows > 0 && shortest_side(axes) < SHORTEST_SIDE {
                let sides: Vec<String> = axes.iter().map(usize::to_string).collect();
                let found = format!("pictures of {}", sides.join(" x "));
                findings.tell("codes-as-pictures", OBSERVED, found);
            }
            // A pixel or two may be lost in any picture.
            let lost = pictures.distinct - pictures.distinct_frames.min(pictures.distinct);
            if lost * 20 > pictures.distinct {
                let (n, frames) = (pictures.distinct, pictures.distinct_frames);
                let found = format!("{n} different pictures that become {frames} different frames");
                findings.tell("lost-differences", OBSERVED, found);
            }
            return;
        }
        let whole = observed.iter().all(|number| number.is_whole());
        let is_bits = observed.iter().all(|number| number.is_within(0.0, 1.0));
        let is_index = observed.iter().all(|number| number.range()[0] >= 0.0);
        if axes.len() > 1 && !described {
            let axes: Vec<String> = axes.iter().map(usize::to_string).collect();
            let found = format!("[rows, {}], no bytes", axes.join(", "));
            findings.tell("pictures-as-numbers", OBSERVED, found);
        } else if whole && is_index && !is_bits && !described {
            let high = observed.iter().map(|number| number.range()[1]).fold(0.0, f32::max);
            let n = observed.len();
            let is_bytes = (f32::from(DARKEST) + 1.0..=255.0).contains(&high);
            match n >= FEWEST_PIXELS && is_bytes {
                true => {
                    let found = format!("{n} whole numbers up to {high} in a row");
                    findings.tell("pictures-as-numbers", OBSERVED, found);
                }
                false => {
                    let found = format!("whole numbers up to {high}");
                    findings.tell("whole-observations", OBSERVED, found);
                }
            }
        }
        for (place, number) in observed.iter().enumerate() {
            if let Some(found) = number.wrapped() {
                findings.tell("wrapped-angle", OBSERVED, format!("number {place}: {found}"));
            } else if let Some(found) = number.repeats() {
                let found = format!("number {place}, which counts up, {found}");
                findings.tell("repeating-number", OBSERVED, found);
            } else if let Some(found) = number.restarted() {
                let found = format!("number {place}, which counts up, restarts in {found}");
                findings.tell("unflagged-restart", OBSERVED, found);
            }
        }
    }
}

impl Flags {
    fn look(&mut self, episodes: &[Episode], finished: &[bool]) {
        self.ended += finished.iter().filter(|&&finished| finished).count();
        let longest = episodes.iter().map(|episode| episode.length).max();
        self.longest = self.longest.max(longest.unwrap_or(0));
    }

    /// Adds the doubt about flags in most rows; whether there is one.
    fn tell(&self, rows: usize, findings: &mut Findings<'_>) -> bool {
        let flagged = format!("flags in {} of {rows} rows", self.ended);
        if self.ended == rows {
            if rows >= FEW {
                findings.tell("flags-everywhere", "", flagged);
            }
            true
        } else if self.longest <= 2 && 2 * self.ended > rows {
            findings.tell("inverted-flags", "", flagged);
            true
        } else {
            false
        }
    }
}

/// The shortest side of a picture with these axes; the axis of colours or frames is the shortest
/// of three.
fn shortest_side(axes: &[usize]) -> usize {
    let mut sides = axes.to_vec();
    sides.sort_unstable();
    let n_other = sides.len().saturating_sub(2);
    sides.get(n_other).copied().unwrap_or(SHORTEST_SIDE)
}

impl Columns {
    /// Doubts whether this recording means something else than its types and shapes say: a part of
    /// the findings of [`check`](crate::check()).
    pub fn doubts(&self, expected: &Expected<'_>) -> Vec<Finding> {
        let mut findings = Findings::default();
        findings.expected = *expected;
        findings.of(&self.path);
        let figures = |values: &[f32], width| Figures::of(Rows { values, width }, &self.episodes);
        let mut doubts = Doubts::default();
        doubts.part(&self.steps(), &self.episodes, &self.finished, expected.task);
        let observed = match &self.observations {
            ObservationColumn::Vectors { width, values } => figures(values, *width),
            ObservationColumn::Frames { .. } => Figures::default(),
        };
        let acted = match &self.actions {
            ActionColumn::Continuous { width, values } => figures(values, *width),
            ActionColumn::Discrete { .. } => Figures::default(),
        };
        doubts.tell(&observed.doubted(), &acted.doubted(), expected.task, &mut findings);
        let rewards = figures(&self.rewards, 1);
        outliers::tell([observed.sums(), acted.sums(), rewards.sums()], &mut findings);
        findings.list
    }
}
