//! The first screen of a page: the run, its mean return compared with the dataset, and plots of
//! the episodes and of the figures during training.

use overtone_core::counted;
use overtone_core::protocol::ReturnUnits;
use overtone_eval::statistics::{Bootstrap, Estimate, ScoreMatrix, mean};
use overtone_eval::summary::{digits, fixed};
use overtone_plot::{Line, LinePlot, Strip, Strips, Stroke};

use super::document::Block;
use super::run_files::{DataReturns, PageError, RunFiles};
use super::scores::{self, Role, Row, conditions, estimate, short};
use super::{pictures, unique};
use crate::estimates::answer;

/// Maximum number of rows in a plot of episodes.
const MOST_ROWS: usize = 24;

/// The title of a page about one run: `Hopper: Decision Transformer on medium`.
pub(super) fn title(run: &RunFiles) -> String {
    let Some(task) = task(run) else { return format!("Run {}", run.name) };
    let what = run.algorithm.as_ref().map_or_else(String::new, |name| format!(": {name}"));
    let on = run.dataset().map_or_else(String::new, |dataset| format!(" on {dataset}"));
    format!("{task}{what}{on}")
}

/// The title of a page about several runs: `3 runs on Hopper`.
pub(super) fn title_of(runs: &[RunFiles]) -> String {
    let tasks: Vec<Option<String>> = runs.iter().map(task).collect();
    match &tasks[0] {
        Some(first) if tasks.iter().all(|task| task.as_ref() == Some(first)) => {
            format!("{} runs on {first}", runs.len())
        }
        _ => format!("{} runs", runs.len()),
    }
}

/// The task's title from an evaluation, otherwise the task's id.
fn task(run: &RunFiles) -> Option<String> {
    let title = run.evaluations.first().map(|source| source.evaluation.setting.task.title.clone());
    let word = |key: &str| run.config.get(key).and_then(toml::Value::as_str).map(str::to_owned);
    title.or_else(|| ["task", "game", "env"].into_iter().find_map(word))
}

/// The row that represents a run: the last checkpoint if it was evaluated, with the first protocol
/// and the first target. Among several such evaluations, the one with the most episodes.
pub(super) fn headline<'r, 'a>(rows: &'r [Row<'a>], run: &RunFiles) -> Option<&'r Row<'a>> {
    let of_run = || rows.iter().filter(|row| std::ptr::eq(row.run, run));
    let first = of_run().find(|row| row.role == Role::Last).or_else(|| of_run().next())?;
    scores::largest(rows, first)
}

/// The returns of the run's dataset; `None` if their units differ from the units of the score.
fn data_of(row: &Row<'_>) -> Option<DataReturns> {
    let is_raw = row.setting().task.return_units == ReturnUnits::Raw;
    row.run.data.filter(|_| is_raw)
}

fn marks(data: Option<DataReturns>) -> Vec<(String, f64)> {
    let mean_and_best = |data: DataReturns| {
        [("data, mean".to_owned(), data.mean), ("data, best".to_owned(), data.best)]
    };
    data.map(mean_and_best).into_iter().flatten().collect()
}

/// The first screen of a page about one run. `play` are the pictures of its play, and the words
/// about them.
pub(super) fn of_run(
    run: &RunFiles,
    rows: &[Row<'_>],
    [played, words]: [Vec<Block>; 2],
    bootstrap: &Bootstrap,
) -> Result<Vec<Block>, PageError> {
    let mut blocks = vec![Block::Text(facts(run))];
    let Some(row) = headline(rows, run) else {
        let answer = match &run.estimates {
            Some(Ok(estimates)) => answer(&estimates.judgement),
            _ => None,
        };
        let lead = answer.unwrap_or_else(|| "This agent has not been evaluated.".into());
        blocks.push(Block::Lead(lead));
        blocks.extend(played);
        blocks.extend(curves(&[(run, None)]));
        blocks.extend(words);
        return Ok(blocks);
    };
    let returns: Vec<f64> = row.source.episodes(row.target).map(|one| one.raw_return).collect();
    let matrix = ScoreMatrix::one_task(&row.setting().task.title, &returns)?;
    let estimate = bootstrap.estimate(&matrix, mean)?;
    let data = data_of(row);
    blocks.push(Block::Lead(lead(row, &estimate, data)));
    if let Some(others) = other_sizes(rows, row) {
        blocks.push(Block::Text(others));
    }
    let strip = Strip {
        name: String::new(),
        dots: returns,
        estimate: Some(estimate.value),
        interval: estimate.interval.map(|interval| [interval.low, interval.high]),
    };
    let strips = Strips { x_label: "raw return".into(), rows: vec![strip], marks: marks(data) };
    blocks.push(Block::Plot {
        name: "episodes".into(),
        title: "Returns of the episodes, with their mean and its interval".into(),
        svg: strips.to_svg(),
    });
    blocks.extend(played);
    blocks.extend(curves(&[(run, Some(row))]));
    blocks.extend(words);
    Ok(blocks)
}

/// The mean return, what it was measured on, and how it compares with the recorded mean.
fn lead(row: &Row<'_>, mean: &Estimate, data: Option<DataReturns>) -> String {
    let places = digits([&row.raw]);
    let mut lead = format!("Mean return {} over {}", estimate(mean, places), episodes(row.raw.n));
    // The interval says nothing about other training seeds.
    if row.role != Role::NoWeights {
        lead += " of one training seed";
    }
    let target = conditions([row], short);
    if !target.is_empty() {
        let what = if target.starts_with("best") { "" } else { "target " };
        lead += &format!(" ({what}{target})");
    }
    if let Some(normalized) = &row.normalized {
        lead += &format!("; normalized {}", fixed(normalized.mean, 1));
    }
    if let Some(success) = &row.success {
        lead += &format!("; success {}", estimate(success, 2));
    }
    lead += ".";
    if let Some(data) = data {
        let compared = match mean.interval {
            Some(ends) if ends.low > data.mean => "Better than the recorded mean of",
            Some(ends) if ends.high < data.mean => "Worse than the recorded mean of",
            Some(_) => "No clear difference from the recorded mean of",
            None => "The recorded mean is",
        };
        lead += &format!(
            " {compared} {} ({}, best {}).",
            fixed(data.mean, places),
            episodes(data.n),
            fixed(data.best, places)
        );
    }
    lead
}

/// `1 episode`, `20 episodes`.
fn episodes(n: usize) -> String {
    format!("{n} episode{}", if n == 1 { "" } else { "s" })
}

/// A sentence about evaluations with other sizes or seeds than the one shown.
fn other_sizes(rows: &[Row<'_>], shown: &Row<'_>) -> Option<String> {
    let others = rows.iter().filter(|row| row.is_evaluated_as(shown) && !std::ptr::eq(*row, shown));
    let others: Vec<String> = others
        .map(|row| format!("{} ({})", row.source.file, counted(row.raw.n, "episode")))
        .collect();
    (!others.is_empty()).then(|| {
        format!(
            "This is the largest evaluation, {}. Others: {}.",
            shown.source.file,
            others.join(", ")
        )
    })
}

/// The first screen of a page about several runs.
pub(super) fn of_runs(runs: &[RunFiles], rows: &[Row<'_>]) -> Vec<Block> {
    let played: Vec<(&RunFiles, Option<&Row<'_>>)> =
        runs.iter().map(|run| (run, headline(rows, run))).collect();
    let evaluated = played.iter().filter_map(|(_, row)| Some(row.as_ref()?.evaluation()));
    let tasks = unique(evaluated.map(|evaluation| evaluation.setting.task.title.as_str()));
    let mut blocks = Vec::new();
    for (i, task) in tasks.iter().enumerate() {
        let is_of = |row: &&Row<'_>| row.setting().task.title == *task;
        let of_task: Vec<&Row<'_>> =
            played.iter().filter_map(|(_, row)| *row).filter(is_of).collect();
        let row = |row: &&Row<'_>| Strip {
            name: row.run.label.clone(),
            dots: row.source.episodes(row.target).map(|one| one.raw_return).collect(),
            estimate: Some(row.iqm.value),
            interval: row.iqm.interval.map(|interval| [interval.low, interval.high]),
        };
        let data: Vec<Option<DataReturns>> = of_task.iter().map(|row| data_of(row)).collect();
        let same = data.first().copied().flatten();
        let same = same.filter(|first| data.iter().all(|data| *data == Some(*first)));
        let prefix = if tasks.len() == 1 { String::new() } else { format!("{task}: ") };
        blocks.extend(strips(
            &format!("episodes-{}", i + 1),
            &format!("{prefix}returns of the episodes, with interquartile mean and interval"),
            "raw return",
            of_task.iter().map(row).collect(),
            marks(same),
        ));
    }
    blocks.extend(curves(&played));
    blocks
}

/// Rows of dots as plots; many rows are split into several plots.
pub(super) fn strips(
    name: &str,
    title: &str,
    x_label: &str,
    rows: Vec<Strip>,
    marks: Vec<(String, f64)>,
) -> Vec<Block> {
    let n_pictures = rows.len().div_ceil(MOST_ROWS);
    let picture = |(i, rows): (usize, &[Strip])| {
        let (name, title) = pictures::part(name, title, i, n_pictures);
        let (rows, marks) = (rows.to_vec(), marks.clone());
        let svg = Strips { x_label: x_label.into(), rows, marks }.to_svg();
        Block::Plot { name, title, svg }
    };
    rows.chunks(MOST_ROWS).enumerate().map(picture).collect()
}

/// A figure of the evaluations during training and after it.
pub(super) struct Figure {
    /// File name of its plot.
    pub(super) name: &'static str,
    title: &'static str,
    /// Its name in [`RunFiles::curves`].
    key: &'static str,
    /// Its value in the evaluation after training.
    last: fn(&Row<'_>) -> Option<f64>,
}

/// The figures with a plot.
pub(super) const FIGURES: [Figure; 2] = [
    Figure {
        name: "returns",
        title: "Mean return during training",
        key: "eval/return",
        last: |row| Some(row.raw.mean),
    },
    Figure {
        name: "success",
        title: "Success rate during training",
        key: "eval/success",
        last: |row| Some(row.success?.value),
    },
];

impl Figure {
    /// The caption of a plot, with or without evaluations after training.
    pub(super) fn caption(&self, is_evaluated: bool) -> String {
        let last =
            "; the last point is the evaluation after training, whose acting mode may differ";
        self.title.to_owned() + if is_evaluated { last } else { "" }
    }

    /// A run's values against updates. The last point is `row`, its [`headline`] evaluation.
    pub(super) fn points(&self, run: &RunFiles, row: Option<&Row<'_>>) -> Vec<[f64; 2]> {
        let mut points = run.curves.get(self.key).cloned().unwrap_or_default();
        if let Some((step, last)) = row.and_then(|row| Some((row.step()?, (self.last)(row)?))) {
            points.retain(|point| point[0] < step as f64);
            points.push([step as f64, last]);
        }
        points
    }
}

/// Plots of the figures of runs against updates.
fn curves(runs: &[(&RunFiles, Option<&Row<'_>>)]) -> Vec<Block> {
    FIGURES.iter().flat_map(|figure| curve(figure, runs)).collect()
}

fn curve(figure: &Figure, runs: &[(&RunFiles, Option<&Row<'_>>)]) -> Vec<Block> {
    let mut lines: Vec<Line> = Vec::new();
    for (run, row) in runs {
        let points = figure.points(run, *row);
        // A single point is not a curve.
        if points.len() > 1 {
            lines.push(Line::new(run.label.clone(), points).stroke(Stroke::Marked));
        }
    }
    let Some(last) =
        lines.iter().flat_map(|line| &line.points).map(|point| point[0]).reduce(f64::max)
    else {
        return Vec::new();
    };
    let is_one = lines.len() == 1;
    if let ("returns", [(_, Some(row))]) = (figure.name, runs) {
        for (i, (name, value)) in marks(data_of(row)).into_iter().enumerate() {
            let line = Line::new(name, vec![[0.0, value], [last, value]]);
            lines.push(line.stroke(Stroke::Dashed).colour(6 - 3 * i));
        }
        if is_one && lines.len() > 1 {
            lines[0].name = "agent".into();
        }
    }
    let plot = LinePlot { x_label: "updates".into(), lines, ..LinePlot::default() };
    let is_evaluated = runs.iter().any(|(_, row)| row.is_some());
    pictures::plots(figure.name, &figure.caption(is_evaluated), plot)
}

/// Task, algorithm, dataset, updates and minutes on one line.
fn facts(run: &RunFiles) -> String {
    let mut facts = Vec::new();
    facts.extend(task(run).map(|task| format!("Task {task}")));
    facts.extend(run.algorithm.iter().map(|name| format!("algorithm {name}")));
    facts.extend(run.dataset().map(|dataset| format!("dataset {dataset}")));
    facts.extend(run.last_step.map(|step| format!("{step} updates")));
    facts.extend(run.minutes().map(|minutes| match minutes {
        short if short < 1.0 => format!("{:.0} seconds of training", 60.0 * short),
        minutes => format!("{minutes:.1} minutes of training"),
    }));
    if facts.is_empty() { run.name.clone() } else { facts.join(" · ") }
}
