//! Agents over tasks, and against each other: the statistics of Agarwal et al. 2021.
//!
//! An agent is a configuration, whatever the task and the seed: what it learned by, the choice
//! of its data included. In a study it is what tells the cells of a task apart. Its score in a run is the mean normalized return of the run's last
//! checkpoint for the first return that was asked for. Only what was played by one protocol is
//! put together.

use std::collections::BTreeMap;

use overtone_plot::{Line, LinePlot};

use super::agent_names;
use super::document::Block;
use super::run_files::PageError;
use super::scores::{Configuration, Role, Row, estimate};
use super::study::{self, StudyCell};
use overtone_eval::statistics::{
    Aggregates, Bootstrap, ScoreMatrix, improvement, performance_profile,
};
use overtone_eval::table::Table;

/// Keys of a configuration that say what an agent is trained for and where its data lie, and
/// not how it is trained.
const TASK: [&str; 8] =
    ["task", "game", "env", "dataset", "data.path", "data.run", "data.layout", "data.cache"];
/// The score of an expert or a human, which the optimality gap is measured to.
const EXPERT: f64 = 100.0;
/// Points of a performance profile.
const THRESHOLDS: usize = 101;

/// One agent and its runs.
struct AgentScores {
    name: String,
    matrix: ScoreMatrix,
}

/// Which cell of a study a row is of; none where there is no study.
type CellOf<'f, 'a> = &'f dyn Fn(&Row<'_>) -> Option<&'a StudyCell>;

/// The section; empty where there is nothing to compare: by each protocol one agent on one
/// task.
pub(super) fn section(
    rows: &[Row<'_>],
    cell_of: CellOf<'_, '_>,
    bootstrap: &Bootstrap,
) -> Result<Vec<Block>, PageError> {
    let mut protocols: Vec<&str> = Vec::new();
    for row in rows {
        if !protocols.contains(&row.protocol.as_str()) {
            protocols.push(&row.protocol);
        }
    }
    let (mut blocks, mut compared) = (Vec::new(), false);
    for protocol in protocols {
        let (found, fewest) = played_by(protocol, rows, cell_of, bootstrap)?;
        if !found.is_empty() {
            let caveat = fewest.map_or_else(String::new, study::caveat);
            blocks.push(Block::Subheading(format!("Played by the {protocol} protocol{caveat}")));
            blocks.extend(found);
            compared |= fewest.is_some();
        }
    }
    if compared {
        blocks.push(Block::Text(format!(
            "Of normalized scores, a run's the mean of its episodes for the first return asked \
             for, over all tasks of an agent. IQM: interquartile mean over runs; optimality gap: \
             how far runs fall short of {EXPERT} on average. Intervals are over runs, stratified \
             by task; an agent with one run of each task has none. P(X > Y), the probability of \
             improvement: that a run of X scores higher than a run of Y on the same task, ties as \
             half, averaged over tasks. An interval that holds 0.5 leaves open which is better. With \
             few runs intervals are too narrow: one of no width says only that all runs of one lie \
             above all of the other."
        )));
    }
    Ok(blocks)
}

/// What is said of a protocol, and of the agents that are put together the fewest runs of a task.
fn played_by(
    protocol: &str,
    rows: &[Row<'_>],
    cell_of: CellOf<'_, '_>,
    bootstrap: &Bootstrap,
) -> Result<(Vec<Block>, Option<usize>), PageError> {
    let (found, mut notes) = found(protocol, rows, cell_of);
    let asked = asked_differently(&found);
    let trained_differently = trained_differently(&found);
    let agents = agents(found, &mut notes)?;
    let several_tasks = agents.iter().any(|agent| agent.matrix.tasks().len() > 1);
    let mut blocks = Vec::new();
    let mut fewest = None;
    if agents.len() > 1 || several_tasks {
        fewest = agents.iter().map(|agent| agent.matrix.n_runs()).min();
        blocks.push(Block::Table(aggregates(&agents, bootstrap)?));
        blocks.push(profiles(protocol, &agents, bootstrap)?);
        blocks.extend(improvements(&agents, bootstrap)?);
        notes.extend(asked);
        notes.extend(trained_differently);
    }
    blocks.extend(notes.into_iter().map(Block::Text));
    Ok((blocks, fewest))
}

/// An agent as the rows tell of it.
struct Found {
    name: String,
    /// By task and seed.
    scores: BTreeMap<String, BTreeMap<String, Score>>,
}

/// What one run scored.
struct Score {
    run: String,
    /// Everything the run learned by.
    configuration: Configuration,
    /// The return asked for first, where it heeds one.
    target: Option<f32>,
    /// Updates of the weights that were played.
    step: Option<u64>,
    normalized: f64,
}

/// The agents with a normalized score, and sentences about runs that are left out.
fn found(protocol: &str, rows: &[Row<'_>], cell_of: CellOf<'_, '_>) -> (Vec<Found>, Vec<String>) {
    let mut configurations: Vec<Configuration> = Vec::new();
    let (mut agents, mut notes): (Vec<Found>, Vec<String>) = (Vec::new(), Vec::new());
    let several = rows.iter().any(|row| !std::ptr::eq(row.run, rows[0].run));
    let last = rows.iter().filter(|row| row.role == Role::Last && row.protocol == protocol);
    for row in last {
        let Some(first) = row.evaluation().first_target() else {
            let note = format!(
                "{} of {} is left out of what is put together: no episode for the first return \
                 asked for came to its end.",
                row.source.file, row.run.name
            );
            if several && !notes.contains(&note) {
                notes.push(note);
            }
            continue;
        };
        let asked_first = std::ptr::eq(first, row.target);
        let Some(normalized) = row.normalized.as_ref().filter(|_| asked_first) else { continue };
        let policy = || row.evaluation().setting.policy.clone();
        let (name, task, settings) = match cell_of(row) {
            Some(cell) => {
                let name = if cell.agent.is_empty() { policy() } else { cell.agent.clone() };
                let settings = Configuration::from([("cell".to_owned(), cell.agent.clone())]);
                (name, cell.task.clone(), settings)
            }
            None => (policy(), task(row), row.configuration(&TASK)),
        };
        let known = configurations.iter().position(|other| *other == settings);
        let place = known.unwrap_or_else(|| {
            configurations.push(settings);
            agents.push(Found { name, scores: BTreeMap::new() });
            agents.len() - 1
        });
        let score = Score {
            run: row.run.name.clone(),
            configuration: row.configuration(&[]),
            target: row.asked(),
            step: row.step(),
            normalized: normalized.mean,
        };
        // The same seed trains the same agent: it counts once.
        let runs = agents[place].scores.entry(task).or_default();
        match runs.get(&seed(row)) {
            None => drop(runs.insert(seed(row), score)),
            // Told with the training seeds, where nothing but the seed may differ.
            Some(before) if before.configuration == score.configuration => {}
            Some(before) => notes.push(format!(
                "{} of {} is left out of what is put together: seed {} of this agent and task is \
                 there already, from {}.",
                row.source.file,
                row.run.name,
                seed(row),
                before.run
            )),
        }
    }
    let names: Vec<String> = agents.iter().map(|agent| agent.name.clone()).collect();
    for (agent, name) in agents.iter_mut().zip(agent_names::distinct(&names, &configurations)) {
        agent.name = name;
    }
    (agents, notes)
}

/// The task and, where there are several, the recording of it.
fn task(row: &Row<'_>) -> String {
    let task = &row.evaluation().setting.task.title;
    match row.run.config.get("dataset").and_then(toml::Value::as_str) {
        Some(dataset) => format!("{task} {dataset}"),
        None => task.clone(),
    }
}

fn seed(row: &Row<'_>) -> String {
    row.run.config.get("seed").map_or(String::new(), ToString::to_string)
}

/// A sentence for each task of which runs were not all asked for the same return first.
fn asked_differently(agents: &[Found]) -> Vec<String> {
    let mut tasks: Vec<&String> = agents.iter().flat_map(|agent| agent.scores.keys()).collect();
    tasks.sort();
    tasks.dedup();
    let asked = |agent: &Found, task: &String| {
        let mut targets: Vec<f32> =
            agent.scores.get(task)?.values().filter_map(|score| score.target).collect();
        targets.sort_by(f32::total_cmp);
        targets.dedup();
        (!targets.is_empty()).then_some(targets)
    };
    let mut notes = Vec::new();
    for task in tasks {
        let found: Vec<(&str, Vec<f32>)> = agents
            .iter()
            .filter_map(|agent| Some((agent.name.as_str(), asked(agent, task)?)))
            .collect();
        let Some((_, first)) = found.first() else { continue };
        if first.len() == 1 && found.iter().all(|(_, targets)| targets == first) {
            continue;
        }
        let told: Vec<String> = found
            .iter()
            .map(|(name, targets)| {
                let targets: Vec<String> = targets.iter().map(f32::to_string).collect();
                format!("{name}: {}", targets.join(", "))
            })
            .collect();
        notes.push(format!(
            "In {task}, not all runs were asked for the same return first, so part of a \
             difference may come from that ({}).",
            told.join("; ")
        ));
    }
    notes
}

/// A sentence for each agent and task of which runs were played after different numbers of updates.
fn trained_differently(agents: &[Found]) -> Vec<String> {
    let told = |(agent, (task, scores)): (&Found, (&String, &BTreeMap<String, Score>))| {
        let mut steps: Vec<u64> = scores.values().filter_map(|score| score.step).collect();
        steps.sort_unstable();
        steps.dedup();
        let steps: Vec<String> = steps.iter().map(u64::to_string).collect();
        (steps.len() > 1).then(|| {
            format!(
                "{} in {task}: runs of different lengths are put together (updates: {}).",
                agent.name,
                steps.join(", ")
            )
        })
    };
    let all = agents.iter().flat_map(|agent| std::iter::repeat(agent).zip(&agent.scores));
    all.filter_map(told).collect()
}

/// The agents with equally many runs of each of their tasks; a note about each other one.
fn agents(found: Vec<Found>, notes: &mut Vec<String>) -> Result<Vec<AgentScores>, PageError> {
    let mut agents = Vec::new();
    for Found { name, scores } in found {
        let counts: Vec<usize> = scores.values().map(BTreeMap::len).collect();
        if counts.iter().any(|count| *count != counts[0]) {
            notes.push(format!(
                "{name} has unequally many runs of its tasks ({}), so it is left out of what is \
                 put together over tasks: those with more would count more.",
                counts.iter().map(usize::to_string).collect::<Vec<_>>().join(", ")
            ));
            continue;
        }
        let rows = scores.into_iter().map(|(task, runs)| {
            (task, runs.into_values().map(|score| score.normalized).collect::<Vec<_>>())
        });
        agents.push(AgentScores { name, matrix: ScoreMatrix::new(rows)? });
    }
    Ok(agents)
}

fn aggregates(agents: &[AgentScores], bootstrap: &Bootstrap) -> Result<Table, PageError> {
    let mut table =
        Table::new(&["agent", "tasks", "runs of each", "mean", "median", "IQM", "optimality gap"]);
    for AgentScores { name, matrix } in agents {
        let found = Aggregates::of(matrix, EXPERT, bootstrap)?;
        let numbers = [found.mean, found.median, found.iqm, found.optimality_gap];
        let mut cells = vec![name.clone(), matrix.tasks().join(", "), matrix.n_runs().to_string()];
        cells.extend(numbers.iter().map(|number| estimate(number, 2)));
        table.row(cells);
    }
    Ok(table)
}

/// The fraction of runs above each score.
fn profiles(
    protocol: &str,
    agents: &[AgentScores],
    bootstrap: &Bootstrap,
) -> Result<Block, PageError> {
    let all = || agents.iter().flat_map(|agent| agent.matrix.pooled()).copied();
    // As far as there is something to see: past the highest score no run is left.
    let low = all().fold(0.0, f64::min);
    let high = 1.05 * all().fold(1.0, f64::max);
    let steps = (THRESHOLDS - 1) as f64;
    let thresholds: Vec<f64> =
        (0..THRESHOLDS).map(|i| low + (high - low) * i as f64 / steps).collect();
    let mut lines = Vec::new();
    for AgentScores { name, matrix } in agents {
        let points = performance_profile(matrix, &thresholds, bootstrap)?;
        let line = points.iter().map(|point| [point.tau, point.fraction.value]).collect();
        let line = Line::new(if agents.len() > 1 { name } else { "" }, line);
        let band: Option<Vec<[f64; 2]>> = points
            .iter()
            .map(|point| point.fraction.interval.map(|interval| [interval.low, interval.high]))
            .collect();
        lines.push(match band {
            Some(band) => line.band(band),
            None => line,
        });
    }
    let plot = LinePlot {
        x_label: "normalized score τ".into(),
        y_label: "fraction of runs above τ".into(),
        lines,
        ..LinePlot::default()
    };
    Ok(Block::Plot {
        name: format!("profile-{}", file_name(protocol)),
        title: "performance profile, all tasks together, with intervals".into(),
        svg: plot.to_svg(),
    })
}

/// Letters and `-` alone.
fn file_name(protocol: &str) -> String {
    let letter = |c: char| if c.is_ascii_alphanumeric() { c.to_ascii_lowercase() } else { '-' };
    protocol.chars().map(letter).collect()
}

/// Every pair of agents with tasks in common.
fn improvements(agents: &[AgentScores], bootstrap: &Bootstrap) -> Result<Option<Block>, PageError> {
    let mut table = Table::new(&["X", "Y", "tasks in common", "P(X > Y)"]);
    let mut compared = false;
    for (i, x) in agents.iter().enumerate() {
        for y in &agents[i + 1..] {
            let tasks: Vec<&String> =
                x.matrix.tasks().iter().filter(|task| y.matrix.tasks().contains(task)).collect();
            if tasks.is_empty() {
                continue;
            }
            let common = |agent: &AgentScores| {
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
    Ok(compared.then_some(Block::Table(table)))
}
