//! Agents over tasks, and against each other: the statistics of Agarwal et al. 2021.
//!
//! An agent is a configuration, whatever the task and the seed: what it learned by, the choice
//! of its data included. In a study it is what tells the cells of a task apart. Its score in a run
//! is the mean return of the run's last checkpoint for the first return that was asked for. Only
//! what was played by one protocol is put together, and only over tasks that all agents have.

use std::collections::{BTreeMap, BTreeSet};

use overtone_plot::{Line, LinePlot};

use super::document::Block;
use super::run_files::PageError;
use super::scores::{Configuration, Role, Row, ends, estimate};
use super::study::{self, StudyCell};
use super::{agent_names, pictures};
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

/// Which cell of a study a row is of; none where there is no study.
type CellOf<'f, 'a> = &'f dyn Fn(&Row<'_>) -> Option<&'a StudyCell>;

/// What there is to compare: the section, and its tables with all digits.
pub(super) struct Compared {
    /// Empty where there is nothing: by each protocol one agent on one task.
    pub(super) blocks: Vec<Block>,
    /// How its numbers are made.
    pub(super) notes: Option<String>,
    pub(super) agents: Table,
    pub(super) improvement: Table,
}

/// The section.
pub(super) fn section(
    rows: &[Row<'_>],
    cell_of: CellOf<'_, '_>,
    bootstrap: &Bootstrap,
) -> Result<Compared, PageError> {
    let mut protocols: Vec<&str> = Vec::new();
    for row in rows {
        if !protocols.contains(&row.protocol.as_str()) {
            protocols.push(&row.protocol);
        }
    }
    let mut compared = Compared {
        blocks: Vec::new(),
        notes: None,
        agents: Table::new(&[
            "protocol",
            "agent",
            "tasks",
            "runs_of_each",
            "mean",
            "mean_low",
            "mean_high",
            "median",
            "median_low",
            "median_high",
            "iqm",
            "iqm_low",
            "iqm_high",
            "optimality_gap",
            "optimality_gap_low",
            "optimality_gap_high",
        ]),
        improvement: Table::new(&["protocol", "x", "y", "tasks", "probability", "low", "high"]),
    };
    for protocol in protocols {
        compared.played_by(protocol, rows, cell_of, bootstrap)?;
    }
    let [over_tasks, in_pairs] =
        [&compared.agents, &compared.improvement].map(|table| !table.is_empty());
    let mut words = String::new();
    if over_tasks {
        words += &format!(
            "Over tasks: of normalized scores, a run's the mean of its episodes for the first return \
             asked for. IQM: interquartile mean over runs; optimality gap: how far runs fall short \
             of {EXPERT} on average. "
        );
    }
    if in_pairs {
        words += "P(X > Y), the probability of improvement: that a run of X scores higher than a \
                  run of Y on the same task, ties as half, averaged over the tasks that both have. \
                  An interval that holds 0.5 leaves open which is better; one of no width says only \
                  that all runs of one lie above all of the other. ";
    }
    if over_tasks || in_pairs {
        words += "Intervals are over runs, stratified by task; an agent with one run of each task \
                  has none. With few runs they are too narrow.";
        compared.notes = Some(words);
    }
    Ok(compared)
}

impl Compared {
    /// Adds what is said of a protocol.
    fn played_by(
        &mut self,
        protocol: &str,
        rows: &[Row<'_>],
        cell_of: CellOf<'_, '_>,
        bootstrap: &Bootstrap,
    ) -> Result<(), PageError> {
        let (found, mut notes) = found(protocol, rows, cell_of);
        let asked = asked_differently(&found);
        let trained_differently = trained_differently(&found);
        let agents = of_equal_runs(found, &mut notes);
        let mut blocks = Vec::new();
        if agents.len() > 1 || agents.iter().any(|agent| agent.scores.len() > 1) {
            let tasks = common_tasks(&agents, &mut notes);
            if tasks.len() > 1 || (agents.len() > 1 && !tasks.is_empty()) {
                blocks.push(self.aggregates(protocol, &agents, &tasks, bootstrap)?);
            }
            // One run each says nothing of the next: no probability, and no distribution.
            if agents.iter().any(|agent| agent.n_runs() > 1) {
                if tasks.len() > 1 || (agents.len() > 1 && !tasks.is_empty()) {
                    blocks.extend(profiles(protocol, &agents, &tasks, bootstrap)?);
                }
                blocks.extend(self.improvements(protocol, &agents, bootstrap)?);
            }
            notes.extend(asked);
            notes.extend(trained_differently);
        }
        let fewest = agents.iter().map(Found::n_runs).min().filter(|_| !blocks.is_empty());
        blocks.extend(notes.into_iter().map(Block::Text));
        if !blocks.is_empty() {
            let caveat = fewest.map_or_else(String::new, study::caveat);
            let words = format!("Played by the {protocol} protocol{caveat}");
            self.blocks.push(Block::Subheading(words));
            self.blocks.extend(blocks);
        }
        Ok(())
    }

    fn aggregates(
        &mut self,
        protocol: &str,
        agents: &[Found],
        tasks: &[&str],
        bootstrap: &Bootstrap,
    ) -> Result<Block, PageError> {
        let header = ["agent", "tasks", "runs of each", "mean", "median", "IQM", "optimality gap"];
        let mut table = Table::new(&header);
        for agent in agents {
            let found = Aggregates::of(&agent.normalized(tasks)?, EXPERT, bootstrap)?;
            let numbers = [found.mean, found.median, found.iqm, found.optimality_gap];
            let cells = [agent.name.clone(), tasks.join(", "), agent.n_runs().to_string()];
            let told = numbers.iter().map(|number| estimate(number, 2));
            table.row(cells.iter().cloned().chain(told).collect());
            let own = std::iter::once(protocol.to_owned()).chain(cells);
            self.agents.row(own.chain(numbers.into_iter().map(Some).flat_map(ends)).collect());
        }
        Ok(Block::Table(table))
    }

    /// Every pair of agents with tasks in common. Within a task returns need no reference scores.
    fn improvements(
        &mut self,
        protocol: &str,
        agents: &[Found],
        bootstrap: &Bootstrap,
    ) -> Result<Option<Block>, PageError> {
        let mut table = Table::new(&["X", "Y", "tasks in common", "P(X > Y)"]);
        for (i, x) in agents.iter().enumerate() {
            for y in &agents[i + 1..] {
                let tasks: Vec<&str> =
                    x.tasks().filter(|task| y.scores.contains_key(*task)).collect();
                if tasks.is_empty() {
                    continue;
                }
                let probability = improvement(&x.raw(&tasks)?, &y.raw(&tasks)?, bootstrap)?;
                let cells = [x.name.clone(), y.name.clone(), tasks.len().to_string()];
                let told = estimate(&probability, 2);
                table.row(cells.iter().cloned().chain([told]).collect());
                let own = std::iter::once(protocol.to_owned()).chain(cells);
                self.improvement.row(own.chain(ends(Some(probability))).collect());
            }
        }
        Ok((!table.is_empty()).then_some(Block::Table(table)))
    }
}

/// An agent as the rows tell of it.
struct Found {
    name: String,
    /// By task and seed.
    scores: BTreeMap<String, BTreeMap<String, Score>>,
}

impl Found {
    fn tasks(&self) -> impl Iterator<Item = &str> {
        self.scores.keys().map(String::as_str)
    }

    /// Runs of its first task: of each, where it has equally many.
    fn n_runs(&self) -> usize {
        self.scores.values().next().map_or(0, BTreeMap::len)
    }

    /// Its raw scores in `tasks`, which it has.
    fn raw(&self, tasks: &[&str]) -> Result<ScoreMatrix, PageError> {
        self.matrix(tasks, |score| score.raw)
    }

    /// Its normalized scores in `tasks`, which it has, and which have reference scores.
    fn normalized(&self, tasks: &[&str]) -> Result<ScoreMatrix, PageError> {
        self.matrix(tasks, |score| score.normalized.unwrap_or(f64::NAN))
    }

    fn matrix(&self, tasks: &[&str], of: fn(&Score) -> f64) -> Result<ScoreMatrix, PageError> {
        let runs = |task: &&str| self.scores[*task].values().map(of).collect();
        Ok(ScoreMatrix::new(tasks.iter().map(|task| (*task, runs(task))))?)
    }
}

/// What one run scored.
struct Score {
    run: String,
    /// Everything the run learned by.
    configuration: Configuration,
    /// What it was told first, where it heeds that.
    told: Option<String>,
    /// Updates of the weights that were played.
    step: Option<u64>,
    raw: f64,
    normalized: Option<f64>,
}

/// The agents with a score, and sentences about runs that are left out.
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
        if !std::ptr::eq(first, row.target) {
            continue;
        }
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
            told: row.told(),
            step: row.step(),
            raw: row.raw.mean,
            normalized: row.normalized.as_ref().map(|summary| summary.mean),
        };
        // The same seed trains the same agent: it counts once.
        let runs = agents[place].scores.entry(task).or_default();
        match runs.get(&row.seed()) {
            None => drop(runs.insert(row.seed(), score)),
            // Told with the training seeds, where nothing but the seed may differ.
            Some(before) if before.configuration == score.configuration => {}
            Some(before) => notes.push(format!(
                "{} of {} is left out of what is put together: seed {} of this agent and task is \
                 there already, from {}.",
                row.source.file,
                row.run.name,
                row.seed(),
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
        None | Some("") => task.clone(),
        Some(dataset) => format!("{task} {dataset}"),
    }
}

/// A sentence for each task of which runs were not all asked for the same return first.
fn asked_differently(agents: &[Found]) -> Vec<String> {
    let mut tasks: Vec<&String> = agents.iter().flat_map(|agent| agent.scores.keys()).collect();
    tasks.sort();
    tasks.dedup();
    fn asked<'a>(agent: &'a Found, task: &str) -> Option<Vec<&'a str>> {
        let mut targets: Vec<&str> =
            agent.scores.get(task)?.values().filter_map(|score| score.told.as_deref()).collect();
        targets.sort_unstable();
        targets.dedup();
        (!targets.is_empty()).then_some(targets)
    }
    let mut notes = Vec::new();
    for task in tasks {
        let found: Vec<(&str, Vec<&str>)> = agents
            .iter()
            .filter_map(|agent| Some((agent.name.as_str(), asked(agent, task)?)))
            .collect();
        let Some((_, first)) = found.first() else { continue };
        if first.len() == 1 && found.iter().all(|(_, targets)| targets == first) {
            continue;
        }
        let told: Vec<String> =
            found.iter().map(|(name, targets)| format!("{name}: {}", targets.join(", "))).collect();
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
fn of_equal_runs(mut agents: Vec<Found>, notes: &mut Vec<String>) -> Vec<Found> {
    agents.retain(|agent| {
        let is_equal = agent.scores.values().all(|runs| runs.len() == agent.n_runs());
        if !is_equal {
            let count =
                |(task, runs): (&String, &BTreeMap<_, _>)| format!("{task}: {}", runs.len());
            notes.push(format!(
                "{} has unequally many runs of its tasks ({}), so it is left out of what is put \
                 together over tasks: those with more would count more.",
                agent.name,
                agent.scores.iter().map(count).collect::<Vec<_>>().join(", ")
            ));
        }
        is_equal
    });
    agents
}

/// The tasks that all agents have, and that have reference scores; a note about the others.
fn common_tasks<'a>(agents: &'a [Found], notes: &mut Vec<String>) -> Vec<&'a str> {
    let (mut common, mut apart, mut raw) = (Vec::new(), Vec::new(), Vec::new());
    for task in agents.iter().flat_map(Found::tasks).collect::<BTreeSet<_>>() {
        let found: Vec<_> = agents.iter().filter_map(|agent| agent.scores.get(task)).collect();
        let mut scores = found.iter().flat_map(|runs| runs.values());
        if !scores.all(|score| score.normalized.is_some()) {
            raw.push(task);
        } else if found.len() < agents.len() {
            apart.push(task);
        } else {
            common.push(task);
        }
    }
    for (left_out, why) in
        [(apart, "because not all agents have them"), (raw, "for want of reference scores")]
    {
        if !left_out.is_empty() {
            notes.push(format!("Not put together over tasks, {why}: {}.", left_out.join(", ")));
        }
    }
    common
}

/// The fraction of runs above each score.
fn profiles(
    protocol: &str,
    agents: &[Found],
    tasks: &[&str],
    bootstrap: &Bootstrap,
) -> Result<Vec<Block>, PageError> {
    let matrices =
        agents.iter().map(|agent| agent.normalized(tasks)).collect::<Result<Vec<_>, _>>()?;
    let all = || matrices.iter().flat_map(ScoreMatrix::pooled).copied();
    // As far as there is something to see: past the highest score no run is left.
    let low = all().fold(0.0, f64::min);
    let high = 1.05 * all().fold(1.0, f64::max);
    let steps = (THRESHOLDS - 1) as f64;
    let thresholds: Vec<f64> =
        (0..THRESHOLDS).map(|i| low + (high - low) * i as f64 / steps).collect();
    let mut lines = Vec::new();
    for (agent, matrix) in agents.iter().zip(&matrices) {
        let points = performance_profile(matrix, &thresholds, bootstrap)?;
        let line = points.iter().map(|point| [point.tau, point.fraction.value]).collect();
        let line = Line::new(agent.name.clone(), line);
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
    let title = "performance profile, all tasks together, with intervals";
    Ok(pictures::plots(&format!("profile-{}", file_name(protocol)), title, plot))
}

/// Letters and `-` alone.
fn file_name(protocol: &str) -> String {
    let letter = |c: char| if c.is_ascii_alphanumeric() { c.to_ascii_lowercase() } else { '-' };
    protocol.chars().map(letter).collect()
}
