//! Comparison of a study's cells: scores over training seeds for each task, and curves with bands.

use overtone_eval::Summary;
use overtone_eval::statistics::Bootstrap;
use overtone_eval::summary::{digits, fixed};
use overtone_eval::table::{Table, or_dash};
use overtone_plot::{Line, Strip, Stroke};

use super::document::Block;
use super::over_seeds::{self, OverSeeds};
use super::run_files::{PageError, RunFiles};
use super::scores::{Role, Row, cell as all_digits, conditions, estimate, short, spread};
use super::seeds;
use super::{choices, first, pictures, unique};

/// Minimum number of training seeds for comparing agents.
pub(super) const ENOUGH: usize = 4;

/// Key of an evaluation: role of the checkpoint, protocol, file, index of the target, and number of
/// targets.
type EvaluationKey<'a> = (Role, &'a str, &'a str, usize, usize);

/// The evaluation key of a row. It identifies a target by its index, because a percentile of the
/// data can be a different return for each seed.
fn evaluation_key<'a>(row: &'a Row<'_>) -> EvaluationKey<'a> {
    let (evaluation, target) = (row.evaluation(), row.target.target_return);
    let targets = &evaluation.target_returns;
    let place = targets.iter().position(|other| *other == target).unwrap_or_default();
    // Percentiles with equal returns are evaluated once. The later targets of such a seed are
    // ambiguous, so their number is part of the key.
    let n_targets = if place == 0 { 0 } else { targets.len() };
    // Held-out-selected checkpoints have different updates, and these are part of the file name.
    let file = if row.role == Role::HeldOut { "" } else { &row.source.file };
    (row.role, &row.protocol, file, place, n_targets)
}

/// A cell of a study: runs that differ only in their seed.
#[derive(Clone, Debug)]
pub struct StudyCell {
    /// The settings that distinguish the cell from all others.
    pub label: String,
    /// The task and its data, such as `Hopper medium`. Cells of one task are compared.
    pub task: String,
    /// The settings that distinguish the cell within its task; empty if the task has one cell.
    pub agent: String,
    /// The evaluated and the judged runs.
    pub runs: Vec<RunFiles>,
    /// The runs that failed. One of them can have evaluations, from before it failed.
    pub failed: Vec<FailedRun>,
    /// Number of the other runs that have not been evaluated yet.
    pub missing: usize,
}

/// A run of a study that failed.
#[derive(Clone, Debug)]
pub struct FailedRun {
    /// The run's name in the study.
    pub name: String,
    /// The reason.
    pub error: String,
}

/// The note in a heading about too few seeds for a comparison of `agents`, which have these numbers
/// of seeds.
pub(super) fn caveat(agents: &str, seeds: &[usize]) -> Option<String> {
    let fewest = seeds.iter().min().filter(|fewest| **fewest < ENOUGH)?;
    let n_compared = seeds.iter().filter(|n| **n >= ENOUGH).count();
    Some(match (n_compared, fewest) {
        (2.., _) => format!("not all {agents} have {ENOUGH} seeds"),
        (_, 1) => "one seed, no comparison".into(),
        (_, n) => format!("{n} seeds, no comparison"),
    })
}

/// The notes in the title of a study: too few seeds, failed runs, and cells without an evaluation.
pub(super) fn caveats(cells: &[StudyCell]) -> String {
    let is_evaluated = |run: &&RunFiles| !run.evaluations.is_empty();
    let n_evaluated = |cell: &StudyCell| cell.runs.iter().filter(is_evaluated).count();
    let seeds: Vec<usize> = cells.iter().map(n_evaluated).filter(|n| *n > 0).collect();
    let mut notes: Vec<String> = caveat("cells", &seeds).into_iter().collect();
    match cells.iter().map(|cell| cell.failed.len()).sum() {
        0 => {}
        1 => notes.push("1 run failed".into()),
        n => notes.push(format!("{n} runs failed")),
    }
    if cells.iter().any(|cell| n_evaluated(cell) == 0 && cell.missing > 0) {
        notes.push("some cells not evaluated yet".into());
    }
    if notes.is_empty() { String::new() } else { format!(": {}", notes.join("; ")) }
}

/// The tasks of cells, each once.
fn tasks(cells: &[StudyCell]) -> Vec<&str> {
    unique(cells.iter().map(|cell| cell.task.as_str()))
}

/// A cell's scores for one protocol and one target.
struct Scored<'a> {
    cell: &'a StudyCell,
    scores: OverSeeds<'a>,
    /// Summary of the runs' mean smoothness, if their policies report action distributions.
    smoothness: Option<Summary>,
}

/// The scores of all cells of a study.
pub(super) struct Cells<'a> {
    scored: Vec<Scored<'a>>,
    failed: Vec<&'a FailedRun>,
    missing: usize,
}

impl<'a> Cells<'a> {
    /// The scores of `cells`. `runs` are the runs of the cells in this order, and `rows` are their
    /// scores.
    pub(super) fn of(
        cells: &'a [StudyCell],
        runs: &'a [RunFiles],
        rows: &'a [Row<'a>],
        bootstrap: &Bootstrap,
    ) -> Result<Self, PageError> {
        // Compared cells have the same task, protocol and target, and are adjacent.
        let mut scored: Vec<((usize, usize, usize), Scored<'a>)> = Vec::new();
        let (tasks, mut protocols) = (tasks(cells), Vec::<&str>::new());
        for cell in cells {
            let is_own = |row: &&Row<'_>| {
                of_row(cells, runs, row).is_some_and(|other| std::ptr::eq(other, cell))
            };
            let mut groups: Vec<(EvaluationKey<'_>, Vec<&Row<'_>>)> = Vec::new();
            for row in rows.iter().filter(is_own) {
                let key = evaluation_key(row);
                let has_run =
                    |group: &[&Row<'_>]| group.iter().any(|other| std::ptr::eq(other.run, row.run));
                match groups.iter_mut().find(|(known, _)| *known == key) {
                    // For the same weights only the first file is used.
                    Some((_, group)) if has_run(group) => {}
                    Some((_, group)) => group.push(row),
                    None => groups.push((key, vec![row])),
                }
            }
            let task = tasks.iter().position(|task| *task == cell.task).unwrap_or_default();
            for ((_, protocol, _, target, _), rows) in groups {
                let known = protocols.iter().position(|known| *known == protocol);
                let protocol = known.unwrap_or_else(|| {
                    protocols.push(protocol);
                    protocols.len() - 1
                });
                scored.push(((task, protocol, target), Scored::new(cell, rows, bootstrap)?));
            }
        }
        scored.sort_by_key(|(place, _)| *place);
        let scored = scored.into_iter().map(|(_, scored)| scored).collect();
        let missing = cells.iter().map(|cell| cell.missing).sum();
        let failed = cells.iter().flat_map(|cell| &cell.failed).collect();
        Ok(Self { scored, failed, missing })
    }

    /// Plots of the last checkpoints: a dot for each run, a row for each cell, and a plot for each
    /// task, protocol and target.
    pub(super) fn strips(&self) -> Vec<Block> {
        let last = self.scored.iter().filter(|scored| scored.role() == Role::Last);
        let mut groups: Vec<([String; 3], Vec<Strip>)> = Vec::new();
        for scored in last {
            let target = conditions(scored.scores.rows.iter().copied(), short);
            // A target can be a different percentile value for each cell.
            let place = scored.scores.first().place().to_string();
            let key = [scored.cell.task.clone(), scored.scores.first().protocol.clone(), place];
            let name = match scored.cell.agent.as_str() {
                "" => target,
                agent => agent.to_owned(),
            };
            let strip = Strip {
                name,
                dots: scored.scores.rows.iter().map(|row| row.raw.mean).collect(),
                estimate: Some(scored.scores.iqm.value),
                interval: scored.scores.iqm.interval.map(|ends| [ends.low, ends.high]),
            };
            match groups.iter_mut().find(|(known, _)| *known == key) {
                Some((_, strips)) => strips.push(strip),
                None => groups.push((key, vec![strip])),
            }
        }
        let differ = |part: usize| groups.iter().any(|(key, _)| key[part] != groups[0].0[part]);
        let [protocols, targets] = [differ(1), differ(2)];
        let mut blocks = Vec::new();
        for (i, ([task, protocol, place], strips)) in groups.iter().enumerate() {
            let mut title = task.clone();
            if protocols {
                title += &format!(", {protocol}");
            }
            if targets {
                let place: usize = place.parse().unwrap_or_default();
                title += &format!(", target {}", place + 1);
            }
            title += ": a dot for each run, with interquartile mean and interval";
            let name = format!("cells-{}", i + 1);
            blocks.extend(first::strips(&name, &title, "raw return", strips.clone(), Vec::new()));
        }
        blocks
    }

    /// Tables for people, the last checkpoints first. Adds the explanation of the numbers to
    /// `notes`.
    pub(super) fn blocks(&self, bootstrap: &Bootstrap, notes: &mut Vec<Block>) -> Vec<Block> {
        let mut blocks = vec![Block::Heading("Cells".into())];
        for role in [Role::Last, Role::HeldOut] {
            let scored: Vec<&Scored<'_>> =
                self.scored.iter().filter(|scored| scored.role() == role).collect();
            if scored.is_empty() {
                continue;
            }
            let what = match role {
                Role::Last => "Last checkpoints",
                _ => "Held-out-selected checkpoints",
            };
            let seeds: Vec<usize> = scored.iter().map(|scored| scored.scores.rows.len()).collect();
            let caveat = caveat("cells", &seeds).map_or_else(String::new, |few| format!(": {few}"));
            blocks.push(Block::Subheading(format!("{what}{caveat}")));
            blocks.extend(readable(&scored));
        }
        if self.scored.is_empty() {
            blocks.push(Block::Text("No run of this study has been evaluated yet.".into()));
        }
        if !self.failed.is_empty() {
            let failed = self.failed.iter().map(|run| format!("{} ({})", run.name, run.error));
            let failed = failed.collect::<Vec<_>>().join("; ");
            blocks.push(Block::Text(format!(
                "Failed: {failed}. The comparison includes only what was evaluated, so an agent \
                 whose runs fail looks better than it is."
            )));
        }
        if self.missing > 0 {
            blocks.push(Block::Text(format!(
                "{} runs of this study have not been evaluated yet and are not included.",
                self.missing
            )));
        }
        blocks.extend(self.different_datasets().map(Block::Text));
        notes.push(Block::Text(format!(
            "A cell is named after the settings that differ between cells. The score of a run is \
             the mean of its episodes. ±: sample standard deviation (ddof 1) over runs. IQM: \
             interquartile mean over runs. Intervals are over training seeds: {}. With few runs \
             these intervals are too narrow (Agarwal et al. 2021). With fewer than {ENOUGH} runs, \
             the page does not show that one cell is better than another.",
            super::how_made(bootstrap)
        )));
        blocks
    }

    /// A sentence for each cell whose runs used different datasets.
    fn different_datasets(&self) -> impl Iterator<Item = String> {
        let differ = |scored: &&Scored<'_>| {
            let first = seeds::shared_dataset(scored.scores.first());
            scored.scores.rows.iter().any(|row| seeds::shared_dataset(row) != first)
        };
        let labels = self.scored.iter().filter(differ).map(|scored| &scored.cell.label);
        unique(labels).into_iter().map(|label| {
            format!(
                "Runs of {label} used different datasets although their settings are the same: \
                 the file changed between the runs. Do not treat them as seeds of one agent."
            )
        })
    }

    /// All cells with all digits.
    pub(super) fn csv(&self) -> Table {
        let mut table = Table::of(
            &self.scored,
            &[
                ("cell", &|scored| scored.cell.label.clone()),
                ("task", &|scored| scored.cell.task.clone()),
            ],
        );
        let scores = self.scored.iter().map(|scored| &scored.scores);
        over_seeds::add_columns(&mut table, scores, &["raw_median", "convention"]);
        let mut add = |name, cell: &dyn Fn(&Scored<'_>) -> String| {
            table.column(name, self.scored.iter().map(cell).collect());
        };
        add("each_raw_mean", &|scored| {
            let each = scored.scores.rows.iter().map(|row| row.raw.mean.to_string());
            each.collect::<Vec<_>>().join(" ")
        });
        add("smoothness_mean", &|scored| {
            all_digits(scored.smoothness.as_ref().map(|summary| summary.mean))
        });
        add("smoothness_sd", &|scored| {
            all_digits(scored.smoothness.as_ref().and_then(|summary| summary.sd))
        });
        table
    }
}

/// The table for people, and a sentence about the columns that are equal in all rows.
fn readable(scored: &[&Scored<'_>]) -> Vec<Block> {
    type Column<'a> = (&'static str, Box<dyn Fn(&Scored<'_>) -> String + 'a>);
    // If such a column is equal in all rows, the sentence below the table replaces it.
    let names: [Column<'_>; 6] = [
        ("task", Box::new(|scored| scored.cell.task.clone())),
        ("protocol", Box::new(|scored| scored.scores.first().protocol.clone())),
        ("target", Box::new(|scored| conditions(scored.scores.rows.iter().copied(), short))),
        ("cell", Box::new(|scored| scored.cell.agent.clone())),
        ("seeds", Box::new(|scored| scored.scores.seeds())),
        (choices::CHOOSING, Box::new(|scored| choices::episodes(&scored.scores.rows))),
    ];
    let (same, mut columns): (Vec<Column<'_>>, Vec<Column<'_>>) =
        names.into_iter().partition(|(_, of)| scored.iter().all(|row| of(row) == of(scored[0])));
    // A group contains the compared cells: same task, protocol and target.
    let place = columns.iter().position(|(name, _)| *name == "cell").unwrap_or_default();
    let digits = digits(scored.iter().map(|scored| &scored.scores.raw));
    let each = move |scored: &Scored<'_>| {
        let means = scored.scores.rows.iter().map(|row| fixed(row.raw.mean, digits));
        means.collect::<Vec<_>>().join(" ")
    };
    let numbers: [Column<'_>; 6] = [
        ("IQM [interval]", Box::new(move |scored| estimate(&scored.scores.iqm, digits))),
        (
            "normalized IQM [interval]",
            Box::new(|scored| or_dash(scored.scores.normalized_iqm.map(|iqm| estimate(&iqm, 2)))),
        ),
        ("raw mean ± sd", Box::new(move |scored| spread(&scored.scores.raw, digits))),
        (
            "normalized mean ± sd",
            Box::new(|scored| or_dash(scored.scores.normalized.as_ref().map(|all| spread(all, 2)))),
        ),
        (
            "smoothness ± sd",
            Box::new(|scored| or_dash(scored.smoothness.as_ref().map(|all| spread(all, 4)))),
        ),
        ("each run", Box::new(each)),
    ];
    let has_values = |(_, of): &Column<'_>| scored.iter().any(|row| of(row) != "-");
    columns.extend(numbers.into_iter().filter(has_values));
    let mut table = Table::new(columns.iter().map(|(name, _)| *name));
    for row in scored {
        table.row(columns.iter().map(|(_, of)| of(row)).collect());
    }
    let n_groups = {
        let mut groups: Vec<&[String]> =
            table.rows().iter().skip(1).map(|row| &row[..place]).collect();
        groups.dedup();
        groups.len()
    };
    let grouped = if n_groups < scored.len() { place } else { 0 };
    let same: Vec<String> = same
        .iter()
        .map(|(name, of)| (name, of(scored[0])))
        .filter(|(_, value)| !value.is_empty())
        .map(|(name, value)| format!("{name} {value}"))
        .collect();
    let sentence =
        (!same.is_empty()).then(|| Block::Text(format!("In every row: {}.", same.join("; "))));
    std::iter::once(Block::Groups(table, grouped)).chain(sentence).collect()
}

impl<'a> Scored<'a> {
    fn new(
        cell: &'a StudyCell,
        rows: Vec<&'a Row<'a>>,
        bootstrap: &Bootstrap,
    ) -> Result<Self, PageError> {
        let smoothness: Option<Vec<f64>> = rows
            .iter()
            .map(|row| row.target.smoothness.map(|smoothness| smoothness.mean))
            .collect();
        let smoothness = smoothness.and_then(|means| Summary::of(&means));
        Ok(Self { cell, scores: OverSeeds::of(rows, bootstrap)?, smoothness })
    }

    fn role(&self) -> Role {
        self.scores.first().role
    }
}

/// The cell of a row's run. `runs` are the runs of `cells` in this order.
pub(super) fn of_row<'a>(
    cells: &'a [StudyCell],
    runs: &[RunFiles],
    row: &Row<'_>,
) -> Option<&'a StudyCell> {
    let place = runs.iter().position(|run| std::ptr::eq(run, row.run))?;
    let mut end = 0;
    cells.iter().find(|cell| {
        end += cell.runs.len();
        place < end
    })
}

/// Mean returns during training and after it: a plot for each task with a line for each cell.
/// `runs` are the runs of `cells` in this order, and `rows` are their scores.
pub(super) fn returns(cells: &[StudyCell], runs: &[RunFiles], rows: &[Row<'_>]) -> Vec<Block> {
    let tasks = tasks(cells);
    let mut blocks = Vec::new();
    for (i, task) in tasks.iter().enumerate() {
        let mut lines = Vec::new();
        let mut rest = runs;
        for cell in cells {
            let (of_cell, others) = rest.split_at(cell.runs.len());
            rest = others;
            if cell.task != *task {
                continue;
            }
            let curve = |run: &RunFiles| first::returns(run, first::headline(rows, run));
            let curves: Vec<Vec<[f64; 2]>> =
                of_cell.iter().map(curve).filter(|curve| curve.len() > 1).collect();
            let line = mean_of(cell, &curves).filter(|line| line.points.len() > 1);
            lines.extend(line.map(|line| line.stroke(Stroke::Marked)));
        }
        let (name, heading) = match tasks.len() {
            1 => ("returns".to_owned(), first::RETURNS.to_owned()),
            _ => (format!("returns-{}", i + 1), format!("{task}: {}", first::RETURNS)),
        };
        blocks.extend(pictures::curves(&name, &heading, "updates", lines));
    }
    blocks
}

/// A curve: its file name, its column of the metrics, and its title.
pub(super) type Named = (&'static str, &'static str, &'static str);

/// Curves on the open part of the page.
pub(super) const OWN: [Named; 1] = [("loss", "loss", "training loss")];

/// Curves for diagnosing problems, in a folded section.
pub(super) const SLOW: [Named; 1] = [("grad-norm", "grad_norm", "gradient norm before clipping")];

/// Curves against updates: a plot for each task with a line for each cell, and sentences about runs
/// with non-finite values.
pub(super) fn curves(cells: &[StudyCell], named: &[Named]) -> Vec<Block> {
    let tasks = tasks(cells);
    let mut blocks = Vec::new();
    for &(name, column, title) in named {
        for (i, task) in tasks.iter().enumerate() {
            let of_task = || cells.iter().filter(|cell| cell.task == *task);
            let lines = of_task().filter_map(|cell| band(cell, column)).collect();
            let (name, heading) = match tasks.len() {
                1 => (name.to_owned(), title.to_owned()),
                _ => (format!("{name}-{}", i + 1), format!("{task}: {title}")),
            };
            blocks.extend(pictures::curves(&name, &heading, "updates", lines));
            blocks.extend(of_task().flat_map(|cell| pictures::broken(&cell.runs, column, title)));
        }
    }
    blocks
}

/// The mean of a metrics column over the runs of a cell, with the standard deviation as its band.
/// It has a point for each step that all runs logged. Non-finite values are ignored.
fn band(cell: &StudyCell, column: &str) -> Option<Line> {
    let curves: Vec<Vec<[f64; 2]>> =
        cell.runs.iter().filter_map(|run| run.metrics.as_ref()?.against_steps(column)).collect();
    mean_of(cell, &curves)
}

/// The mean of several curves at their common steps.
fn mean_of(cell: &StudyCell, curves: &[Vec<[f64; 2]>]) -> Option<Line> {
    let [first, others @ ..] = curves else { return None };
    let (mut points, mut spread) = (Vec::new(), Vec::new());
    for [step, value] in first {
        let same = |curve: &Vec<[f64; 2]>| {
            let place = curve.binary_search_by(|point| point[0].total_cmp(step)).ok()?;
            Some(curve[place][1])
        };
        let Some(mut values) = others.iter().map(same).collect::<Option<Vec<f64>>>() else {
            continue;
        };
        values.insert(0, *value);
        values.retain(|value| pictures::is_drawn(*value));
        let Some(summary) = Summary::of(&values) else { continue };
        points.push([*step, summary.mean]);
        spread.push(summary.sd.unwrap_or(0.0));
    }
    let line = Line::new(cell.agent.clone(), points);
    Some(if others.is_empty() { line } else { line.spread(spread) })
}
