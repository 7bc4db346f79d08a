//! Agents over tasks, and against each other: the statistics of Agarwal et al. 2021.
//!
//! An agent is a configuration, whatever the task and the seed. Its score in a run is the mean
//! normalized return of the run's last checkpoint for the first return that was asked for.
//! Only what was played by one protocol is put together.

use std::collections::BTreeMap;

use overtone_plot::{Line, LinePlot};

use super::document::Block;
use super::run_files::PageError;
use super::scores::{Role, Row, estimate};
use crate::statistics::{Aggregates, Bootstrap, ScoreMatrix, improvement, performance_profile};
use crate::table::Table;

/// Keys of a configuration that say what an agent is trained for, and not how.
const TASK: [&str; 4] = ["game", "env", "dataset", "data"];
/// The score of an expert or a human, which the optimality gap is measured to.
const EXPERT: f64 = 100.0;
/// Points of a performance profile.
const THRESHOLDS: usize = 101;

/// One agent and its runs.
struct Agent {
    name: String,
    matrix: ScoreMatrix,
}

/// The section; empty where there is nothing to compare: by each protocol one agent on one
/// task.
pub(super) fn section(rows: &[Row<'_>], bootstrap: &Bootstrap) -> Result<Vec<Block>, PageError> {
    let mut protocols: Vec<&str> = Vec::new();
    for row in rows {
        if !protocols.contains(&row.protocol.as_str()) {
            protocols.push(&row.protocol);
        }
    }
    let mut blocks = Vec::new();
    for protocol in protocols {
        let found = played_by(protocol, rows, bootstrap)?;
        if !found.is_empty() {
            blocks.push(Block::Subheading(format!("Played by the {protocol} protocol")));
            blocks.extend(found);
        }
    }
    Ok(blocks)
}

fn played_by(
    protocol: &str,
    rows: &[Row<'_>],
    bootstrap: &Bootstrap,
) -> Result<Vec<Block>, PageError> {
    let (agents, notes) = agents(protocol, rows)?;
    let several_tasks = agents.iter().any(|agent| agent.matrix.tasks().len() > 1);
    let mut blocks = Vec::new();
    if agents.len() > 1 || several_tasks {
        blocks.push(Block::Table(aggregates(&agents, bootstrap)?));
        blocks.push(Block::Text(format!(
            "Of normalized scores, a run's the mean of its episodes for the first return asked \
             for, over all tasks of an agent. IQM: interquartile mean over runs; optimality gap: \
             how far runs fall short of {EXPERT} on average. Intervals are over runs, stratified \
             by task; an agent with one run of each task has none."
        )));
        blocks.push(profiles(protocol, &agents, bootstrap)?);
        blocks.extend(improvements(&agents, bootstrap)?);
    }
    blocks.extend(notes.into_iter().map(Block::Text));
    Ok(blocks)
}

/// The agents with a normalized score, and sentences about those that are left out.
fn agents(protocol: &str, rows: &[Row<'_>]) -> Result<(Vec<Agent>, Vec<String>), PageError> {
    // By configuration: a name, and by task each seed's score.
    type Found = (String, BTreeMap<String, BTreeMap<String, f64>>);
    let mut order: Vec<String> = Vec::new();
    let mut found: BTreeMap<String, Found> = BTreeMap::new();
    let last = rows.iter().filter(|row| row.role == Role::Last && row.protocol == protocol);
    for row in last {
        let first = row.evaluation().targets.first();
        let asked_first = first.is_some_and(|first| std::ptr::eq(first, row.target));
        let Some(normalized) = row.normalized.as_ref().filter(|_| asked_first) else { continue };
        let config =
            |key: &str| row.run.config.get(key).map_or(String::new(), |value| value.to_string());
        let key = row.configuration(&TASK);
        if !found.contains_key(&key) {
            order.push(key.clone());
        }
        let name = || row.evaluation().setting.policy.clone();
        let (_, tasks) = found.entry(key).or_insert_with(|| (name(), BTreeMap::new()));
        let task = match config("dataset") {
            dataset if dataset.is_empty() => row.evaluation().setting.task.clone(),
            dataset => format!("{} {}", row.evaluation().setting.task, dataset.trim_matches('"')),
        };
        // The same seed trains the same agent: it counts once.
        tasks.entry(task).or_default().entry(config("seed")).or_insert(normalized.mean);
    }
    let (mut agents, mut notes): (Vec<Agent>, Vec<String>) = (Vec::new(), Vec::new());
    for key in order {
        let Some((name, tasks)) = found.remove(&key) else { continue };
        let alike = agents.iter().filter(|agent: &&Agent| agent.name.starts_with(&name)).count();
        let name = if alike == 0 { name } else { format!("{name} ({})", alike + 1) };
        let counts: Vec<usize> = tasks.values().map(BTreeMap::len).collect();
        if counts.iter().any(|count| *count != counts[0]) {
            notes.push(format!(
                "{name} has unequally many runs of its tasks ({}), so it is left out of what is \
                 put together over tasks: those with more would count more.",
                counts.iter().map(usize::to_string).collect::<Vec<_>>().join(", ")
            ));
            continue;
        }
        let scores = |runs: BTreeMap<String, f64>| runs.into_values().collect::<Vec<_>>();
        let rows = tasks.into_iter().map(|(task, runs)| (task, scores(runs)));
        agents.push(Agent { name, matrix: ScoreMatrix::new(rows)? });
    }
    Ok((agents, notes))
}

fn aggregates(agents: &[Agent], bootstrap: &Bootstrap) -> Result<Table, PageError> {
    let mut table =
        Table::new(&["agent", "tasks", "runs of each", "mean", "median", "IQM", "optimality gap"]);
    for Agent { name, matrix } in agents {
        let found = Aggregates::of(matrix, EXPERT, bootstrap)?;
        let numbers = [found.mean, found.median, found.iqm, found.optimality_gap];
        let mut cells = vec![name.clone(), matrix.tasks().join(", "), matrix.n_runs().to_string()];
        cells.extend(numbers.iter().map(|number| estimate(number, 2)));
        table.row(cells);
    }
    Ok(table)
}

/// The fraction of runs above each score.
fn profiles(protocol: &str, agents: &[Agent], bootstrap: &Bootstrap) -> Result<Block, PageError> {
    let all = || agents.iter().flat_map(|agent| agent.matrix.pooled()).copied();
    let low = all().fold(0.0, f64::min);
    let high = all().fold(EXPERT, f64::max);
    let steps = (THRESHOLDS - 1) as f64;
    let thresholds: Vec<f64> =
        (0..THRESHOLDS).map(|i| low + (high - low) * i as f64 / steps).collect();
    let mut lines = Vec::new();
    for Agent { name, matrix } in agents {
        let points = performance_profile(matrix, &thresholds, bootstrap)?;
        let line = points.iter().map(|point| [point.tau, point.fraction.value]).collect();
        lines.push(Line::new(if agents.len() > 1 { name } else { "" }, line));
    }
    let plot = LinePlot {
        x_label: "normalized score τ".into(),
        y_label: "fraction of runs above τ".into(),
        lines,
        ..LinePlot::default()
    };
    Ok(Block::Plot {
        name: format!("profile-{}", file_name(protocol)),
        title: "performance profile, all tasks together".into(),
        svg: plot.to_svg(),
    })
}

/// Letters and `-` alone.
fn file_name(protocol: &str) -> String {
    let letter = |c: char| if c.is_ascii_alphanumeric() { c.to_ascii_lowercase() } else { '-' };
    protocol.chars().map(letter).collect()
}

/// Every pair of agents with tasks in common.
fn improvements(agents: &[Agent], bootstrap: &Bootstrap) -> Result<Vec<Block>, PageError> {
    let mut table = Table::new(&["X", "Y", "tasks in common", "P(X > Y)"]);
    let mut compared = false;
    for (i, x) in agents.iter().enumerate() {
        for y in &agents[i + 1..] {
            let tasks: Vec<&String> =
                x.matrix.tasks().iter().filter(|task| y.matrix.tasks().contains(task)).collect();
            if tasks.is_empty() {
                continue;
            }
            let common = |agent: &Agent| {
                let runs = agent.matrix.tasks().iter().zip(agent.matrix.rows());
                let runs = runs.filter(|(task, _)| tasks.contains(task));
                ScoreMatrix::new(runs.map(|(task, runs)| (task.clone(), runs.to_vec())))
            };
            let probability = improvement(&common(x)?, &common(y)?, bootstrap)?;
            let n = tasks.len().to_string();
            table.row(vec![x.name.clone(), y.name.clone(), n, estimate(&probability, 2)]);
            compared = true;
        }
    }
    if !compared {
        return Ok(Vec::new());
    }
    let words = "Probability of improvement: that a run of X scores higher than a run of Y on \
                 the same task, ties as half, averaged over tasks. An interval that holds 0.5 \
                 leaves open which is better.";
    Ok(vec![Block::Table(table), Block::Text(words.into())])
}
