//! Comparison of a study's cells: scores over training seeds for each task, and curves with bands.

use overtone_eval::Summary;
use overtone_plot::{Line, Strip, Stroke};

use super::document::Block;
use super::run_files::RunFiles;
use super::scores::{Role, Row, short};
use super::seeds::{Group, Groups};
use super::study_cell::{StudyCell, caveat, tasks};
use super::{first, pictures, unique};

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

/// Plots of the last checkpoints: a dot for each run, a row for each cell, and a plot for each task,
/// protocol and target.
pub(super) fn strips(groups: &[Group<'_>]) -> Vec<Block> {
    let last = groups.iter().filter(|group| group.first().role == Role::Last);
    // A target can be a different percentile value for each cell, so its index is compared.
    let place = |group: &Group<'_>| {
        let first = group.first();
        (first.task(), first.protocol.clone(), first.place())
    };
    let last: Vec<_> = last.map(|group| (place(group), group)).collect();
    let protocols = unique(last.iter().map(|((_, protocol, _), _)| protocol)).len() > 1;
    let targets = unique(last.iter().map(|((.., place), _)| place)).len() > 1;
    let mut blocks = Vec::new();
    for (i, rows) in last.chunk_by(|(a, _), (b, _)| a == b).enumerate() {
        let (task, protocol, place) = &rows[0].0;
        let mut title = task.clone();
        if protocols {
            title += &format!(", {protocol}");
        }
        if targets {
            title += &format!(", target {}", place + 1);
        }
        title += ": a dot for each run, with interquartile mean and interval";
        let strip = |(_, group): &(_, &Group<'_>)| Strip {
            name: match group.name() {
                name if name.is_empty() => group.target(short),
                name => name,
            },
            dots: group.rows.iter().map(|row| row.raw.mean).collect(),
            estimate: Some(group.iqm.value),
            interval: group.iqm.interval.map(|ends| [ends.low, ends.high]),
        };
        let (name, strips) = (format!("cells-{}", i + 1), rows.iter().map(strip).collect());
        blocks.extend(first::strips(&name, &title, "raw return", strips, Vec::new()));
    }
    blocks
}

/// The tables of the cells for people, and sentences about what is not in them.
pub(super) fn section(cells: &[StudyCell], scores: &Groups<'_>) -> Vec<Block> {
    let mut blocks = vec![Block::Heading("Cells".into())];
    blocks.extend(scores.tables());
    if scores.groups.is_empty() {
        blocks.push(Block::Text("No run of this study has been evaluated yet.".into()));
    }
    let failed = cells.iter().flat_map(|cell| &cell.failed);
    let failed: Vec<String> = failed.map(|run| format!("{} ({})", run.name, run.error)).collect();
    if !failed.is_empty() {
        blocks.push(Block::Text(format!(
            "Failed: {}. The comparison includes only what was evaluated, so an agent whose runs \
             fail looks better than it is.",
            failed.join("; ")
        )));
    }
    let missing: usize = cells.iter().map(|cell| cell.missing).sum();
    if missing > 0 {
        blocks.push(Block::Text(format!(
            "{missing} runs of this study have not been evaluated yet and are not included."
        )));
    }
    blocks.extend(scores.different_datasets());
    blocks
}

/// A figure during training and after it, by task. `runs` are the runs of `cells` in this order, and
/// `rows` are their scores.
pub(super) fn evaluated(
    figure: &first::Figure,
    cells: &[StudyCell],
    runs: &[RunFiles],
    rows: &[Row<'_>],
) -> Vec<Block> {
    let mut rest = runs;
    let lines = cells.iter().map(|cell| {
        let (of_cell, others) = rest.split_at(cell.runs.len());
        rest = others;
        let curve = |run: &RunFiles| figure.points(run, first::headline(rows, run));
        let curves: Vec<Vec<[f64; 2]>> =
            of_cell.iter().map(curve).filter(|curve| curve.len() > 1).collect();
        let line = mean_of(cell, &curves).filter(|line| line.points.len() > 1);
        line.map(|line| line.stroke(Stroke::Marked))
    });
    let lines: Vec<_> = lines.collect();
    by_task(cells, figure.name, &figure.caption(true), &lines, |_| Vec::new())
}

/// A curve: its file name, its column of the metrics, and its title.
pub(super) type Named = (&'static str, &'static str, &'static str);

/// The curve on the open part of the page.
pub(super) const LOSS: Named = ("loss", "loss", "training loss");

/// The curve for diagnosing problems, in a folded section.
pub(super) const GRAD_NORM: Named = ("grad-norm", "grad_norm", "gradient norm before clipping");

/// A curve against updates, by task, and sentences about runs with non-finite values.
pub(super) fn curves(cells: &[StudyCell], (name, column, title): Named) -> Vec<Block> {
    let lines: Vec<Option<Line>> = cells.iter().map(|cell| band(cell, column)).collect();
    by_task(cells, name, title, &lines, |cell| pictures::broken(&cell.runs, column, title))
}

/// A plot for each task with the line of each of its cells, and the blocks `below` it.
fn by_task(
    cells: &[StudyCell],
    name: &str,
    title: &str,
    lines: &[Option<Line>],
    below: impl Fn(&StudyCell) -> Vec<Block>,
) -> Vec<Block> {
    let tasks = tasks(cells);
    let mut blocks = Vec::new();
    for (i, task) in tasks.iter().enumerate() {
        let of_task = || cells.iter().zip(lines).filter(|(cell, _)| cell.task == *task);
        let (name, heading) = match tasks.len() {
            1 => (name.to_owned(), title.to_owned()),
            _ => (format!("{name}-{}", i + 1), format!("{task}: {title}")),
        };
        let lines = of_task().filter_map(|(_, line)| line.clone()).collect();
        blocks.extend(pictures::curves(&name, &heading, "updates", lines));
        blocks.extend(of_task().flat_map(|(cell, _)| below(cell)));
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
