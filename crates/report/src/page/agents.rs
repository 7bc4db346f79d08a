//! Comparison of agents over tasks: the statistics of Agarwal et al. 2021.
//!
//! An agent is a training configuration without task and seed; the selection of its data is part
//! of it. In a study, an agent is the part of a cell that differs within a task. The score of a run
//! is the mean return of its last checkpoint for the first target. Aggregates include one protocol
//! only, and only the tasks that all agents have.

use std::collections::{BTreeMap, BTreeSet, btree_map::Entry};

use overtone_plot::{Line, LinePlot};

use super::document::Block;
use super::run_files::PageError;
use super::scores::{Configuration, Role, Row, ends, estimate};
use super::study_cell;
use super::{agent_names, choices, pictures, unique};
use overtone_eval::statistics::{
    Aggregates, Bootstrap, ScoreMatrix, improvement, performance_profile,
};
use overtone_eval::table::Table;

/// Configuration keys that name the task and the location of the data, not the training.
const TASK: [&str; 8] =
    ["task", "game", "env", "dataset", "data.path", "data.run", "data.layout", "data.cache"];
/// Normalized score of an expert or a human: the reference of the optimality gap.
const EXPERT: f64 = 100.0;
/// Number of points of a performance profile.
const THRESHOLDS: usize = 101;

/// The comparison: the section, and its tables with all digits.
pub(super) struct Compared {
    /// Empty if each protocol has only one agent on one task.
    pub(super) blocks: Vec<Block>,
    /// Explanation of the numbers.
    pub(super) notes: Option<String>,
    pub(super) agents: Table,
    pub(super) improvement: Table,
}

/// The section about agents and tasks.
pub(super) fn section(rows: &[Row<'_>], bootstrap: &Bootstrap) -> Result<Compared, PageError> {
    let mut compared = Compared {
        blocks: Vec::new(),
        notes: None,
        agents: Table::new([
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
        improvement: Table::new(["protocol", "x", "y", "tasks", "probability", "low", "high"]),
    };
    for protocol in unique(rows.iter().map(|row| row.protocol.as_str())) {
        compared.add_protocol(protocol, rows, bootstrap)?;
    }
    let [over_tasks, in_pairs] =
        [&compared.agents, &compared.improvement].map(|table| !table.is_empty());
    let mut words = String::new();
    if over_tasks {
        words += &format!(
            "Over tasks: statistics of normalized scores. The score of a run is the mean of its \
             episodes for the first target return. IQM: interquartile mean over runs. Optimality \
             gap: average distance of runs below {EXPERT}. "
        );
    }
    if in_pairs {
        words += "P(X > Y) is the probability of improvement: the probability that a run of X \
                  scores higher than a run of Y on the same task. Ties count as half, and the \
                  average is over the tasks that both agents have. If an interval contains 0.5, \
                  either agent may be better. An interval of zero width means only that all runs \
                  of one agent score higher than all runs of the other. ";
    }
    if over_tasks || in_pairs {
        words += "Intervals are over runs, stratified by task. An agent with one run of each task \
                  has no interval. With few runs the intervals are too narrow.";
        compared.notes = Some(words);
    }
    Ok(compared)
}

impl Compared {
    /// Adds the comparison under one protocol.
    fn add_protocol(
        &mut self,
        protocol: &str,
        rows: &[Row<'_>],
        bootstrap: &Bootstrap,
    ) -> Result<(), PageError> {
        let (all_agents, mut notes) = agents_in(protocol, rows);
        let different_targets = different_targets(&all_agents);
        let different_lengths = different_lengths(&all_agents);
        let agents = with_equal_runs(all_agents, &mut notes);
        let mut blocks = Vec::new();
        if agents.len() > 1 || agents.iter().any(|agent| agent.scores.len() > 1) {
            let tasks = common_tasks(&agents, &mut notes);
            let are_aggregated =
                |agents: usize| tasks.len() > 1 || (agents > 1 && !tasks.is_empty());
            if are_aggregated(agents.len()) {
                blocks.push(self.aggregates(protocol, &agents, &tasks, bootstrap)?);
            }
            // Fewer seeds show neither a distribution nor which agent is better.
            let (enough, few): (Vec<&Agent<'_>>, Vec<&Agent<'_>>) =
                agents.iter().partition(|agent| agent.n_runs() >= study_cell::ENOUGH);
            if !enough.is_empty() && are_aggregated(enough.len()) {
                blocks.extend(profiles(protocol, &enough, &tasks, bootstrap)?);
            }
            blocks.extend(self.improvements(protocol, &enough, bootstrap)?);
            if !enough.is_empty() && !few.is_empty() {
                let few = few.iter().map(|agent| format!("{} ({})", agent.name, agent.n_runs()));
                notes.push(format!(
                    "Not compared, because of fewer than {} seeds: {}.",
                    study_cell::ENOUGH,
                    few.collect::<Vec<_>>().join(", ")
                ));
            }
            if !blocks.is_empty() {
                blocks.push(Block::Text(choosing_episodes(&agents)));
            }
            notes.extend(different_targets);
            notes.extend(different_lengths);
        }
        blocks.extend(notes.into_iter().map(Block::Text));
        if !blocks.is_empty() {
            let seeds: Vec<usize> = agents.iter().map(Agent::n_runs).collect();
            let caveat = study_cell::caveat("agents", &seeds);
            let caveat = caveat.map_or_else(String::new, |few| format!(": {few}"));
            let words = format!("Evaluated with the {protocol} protocol{caveat}");
            self.blocks.push(Block::Subheading(words));
            self.blocks.extend(blocks);
        }
        Ok(())
    }

    fn aggregates(
        &mut self,
        protocol: &str,
        agents: &[Agent<'_>],
        tasks: &[&str],
        bootstrap: &Bootstrap,
    ) -> Result<Block, PageError> {
        let header = ["agent", "tasks", "runs of each", "mean", "median", "IQM", "optimality gap"];
        let mut table = Table::new(header);
        for agent in agents {
            let aggregates = Aggregates::of(&agent.normalized(tasks)?, EXPERT, bootstrap)?;
            let numbers =
                [aggregates.mean, aggregates.median, aggregates.iqm, aggregates.optimality_gap];
            let cells = [agent.name.clone(), tasks.join(", "), agent.n_runs().to_string()];
            let rounded = numbers.iter().map(|number| estimate(number, 2));
            table.row(cells.iter().cloned().chain(rounded).collect());
            let row = std::iter::once(protocol.to_owned()).chain(cells);
            self.agents.row(row.chain(numbers.into_iter().map(Some).flat_map(ends)).collect());
        }
        Ok(Block::Table(table))
    }

    /// The probability of improvement of every pair of agents with common tasks. It compares raw
    /// returns within a task, so reference scores are not needed.
    fn improvements(
        &mut self,
        protocol: &str,
        agents: &[&Agent<'_>],
        bootstrap: &Bootstrap,
    ) -> Result<Option<Block>, PageError> {
        let mut table = Table::new(["X", "Y", "tasks in common", "P(X > Y)"]);
        for (i, x) in agents.iter().enumerate() {
            for y in &agents[i + 1..] {
                let tasks: Vec<&str> =
                    x.tasks().filter(|task| y.scores.contains_key(*task)).collect();
                if tasks.is_empty() {
                    continue;
                }
                let probability = improvement(&x.raw(&tasks)?, &y.raw(&tasks)?, bootstrap)?;
                let cells = [x.name.clone(), y.name.clone(), tasks.len().to_string()];
                let rounded = estimate(&probability, 2);
                table.row(cells.iter().cloned().chain([rounded]).collect());
                let row = std::iter::once(protocol.to_owned()).chain(cells);
                self.improvement.row(row.chain(ends(Some(probability))).collect());
            }
        }
        Ok((!table.is_empty()).then_some(Block::Table(table)))
    }
}

/// An agent and its scores.
struct Agent<'a> {
    name: String,
    /// The row of each run, by task and seed.
    scores: BTreeMap<String, BTreeMap<String, &'a Row<'a>>>,
}

impl Agent<'_> {
    fn tasks(&self) -> impl Iterator<Item = &str> {
        self.scores.keys().map(String::as_str)
    }

    /// Number of runs of its first task. After [`with_equal_runs`] all tasks have this number.
    fn n_runs(&self) -> usize {
        self.scores.values().next().map_or(0, BTreeMap::len)
    }

    /// Raw scores in `tasks`; the agent must have all of them.
    fn raw(&self, tasks: &[&str]) -> Result<ScoreMatrix, PageError> {
        self.matrix(tasks, |row| row.raw.mean)
    }

    /// Normalized scores in `tasks`; the agent must have all of them, with reference scores.
    fn normalized(&self, tasks: &[&str]) -> Result<ScoreMatrix, PageError> {
        self.matrix(tasks, |row| row.normalized.as_ref().map_or(f64::NAN, |all| all.mean))
    }

    fn matrix(&self, tasks: &[&str], of: fn(&Row<'_>) -> f64) -> Result<ScoreMatrix, PageError> {
        let runs = |task: &&str| self.scores[*task].values().map(|row| of(row)).collect();
        Ok(ScoreMatrix::new(tasks.iter().map(|task| (*task, runs(task))))?)
    }
}

/// The agents with a score under `protocol`, and sentences about the runs that are not included.
fn agents_in<'a>(protocol: &str, rows: &'a [Row<'a>]) -> (Vec<Agent<'a>>, Vec<String>) {
    let mut configurations: Vec<Configuration> = Vec::new();
    let (mut agents, mut notes): (Vec<Agent<'_>>, Vec<String>) = (Vec::new(), Vec::new());
    let several = rows.iter().any(|row| !std::ptr::eq(row.run, rows[0].run));
    let last = rows.iter().filter(|row| row.role == Role::Last && row.protocol == protocol);
    for row in last {
        let Some(first) = row.evaluation().first_target() else {
            let note = format!(
                "{} of {} is not included in the aggregates: no episode for its first target \
                 return finished.",
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
        let (mut name, settings) = match row.cell {
            Some(cell) => {
                (cell.agent.clone(), Configuration::from([("cell".to_owned(), cell.agent.clone())]))
            }
            None => (String::new(), row.configuration(&TASK)),
        };
        if name.is_empty() {
            name.clone_from(&row.setting().policy);
        }
        let known = configurations.iter().position(|other| *other == settings);
        let place = known.unwrap_or_else(|| {
            configurations.push(settings);
            agents.push(Agent { name, scores: BTreeMap::new() });
            agents.len() - 1
        });
        // The same seed trains the same agent, so it counts once.
        match agents[place].scores.entry(row.task()).or_default().entry(row.seed()) {
            Entry::Vacant(score) => {
                score.insert(row);
            }
            // The section about training seeds reports this case.
            Entry::Occupied(first) if first.get().configuration(&[]) == row.configuration(&[]) => {}
            Entry::Occupied(first) => notes.push(format!(
                "{} of {} is not included in the aggregates: seed {} of this agent and task is \
                 already included, from {}.",
                row.source.file,
                row.run.name,
                row.seed(),
                first.get().run.name
            )),
        }
    }
    let names: Vec<String> = agents.iter().map(|agent| agent.name.clone()).collect();
    for (agent, name) in agents.iter_mut().zip(agent_names::distinct(&names, &configurations)) {
        agent.name = name;
    }
    (agents, notes)
}

/// A sentence about the episodes that chose the acting modes of each agent's runs.
fn choosing_episodes(agents: &[Agent<'_>]) -> String {
    let of_agent = |agent: &Agent<'_>| {
        let runs = agent.scores.values().flat_map(BTreeMap::values);
        choices::range(runs.map(|row| row.choosing_episodes()).collect())
    };
    let numbers = match &unique(agents.iter().map(of_agent))[..] {
        [same] => format!("N = {same} (all agents)"),
        _ => {
            let named = |agent: &Agent<'_>| format!("{}: N = {}", agent.name, of_agent(agent));
            agents.iter().map(named).collect::<Vec<_>>().join("; ")
        }
    };
    format!("Episodes that chose the acting mode of each run: {numbers}.")
}

/// A sentence for each task whose runs have different first targets.
fn different_targets(agents: &[Agent<'_>]) -> Vec<String> {
    let tasks: BTreeSet<&str> = agents.iter().flat_map(Agent::tasks).collect();
    let first_targets = |agent: &Agent<'_>, task: &str| {
        let targets = agent.scores.get(task)?.values().filter_map(|row| row.condition());
        let targets: BTreeSet<String> = targets.collect();
        (!targets.is_empty()).then(|| Vec::from_iter(targets))
    };
    let mut notes = Vec::new();
    for task in tasks {
        let with_targets: Vec<(&str, Vec<String>)> = agents
            .iter()
            .filter_map(|agent| Some((agent.name.as_str(), first_targets(agent, task)?)))
            .collect();
        let Some((_, first)) = with_targets.first() else { continue };
        if first.len() == 1 && with_targets.iter().all(|(_, targets)| targets == first) {
            continue;
        }
        let by_agent: Vec<String> = with_targets
            .iter()
            .map(|(name, targets)| format!("{name}: {}", targets.join(", ")))
            .collect();
        notes.push(format!(
            "In {task}, the runs have different first target returns, which may explain part of a \
             difference ({}).",
            by_agent.join("; ")
        ));
    }
    notes
}

/// A sentence for each agent and task whose runs have different numbers of updates.
fn different_lengths(agents: &[Agent<'_>]) -> Vec<String> {
    let sentence = |(agent, (task, scores)): (&Agent<'_>, (&String, &BTreeMap<_, &Row<'_>>))| {
        let steps: BTreeSet<u64> = scores.values().filter_map(|row| row.step()).collect();
        let steps: Vec<String> = steps.iter().map(u64::to_string).collect();
        (steps.len() > 1).then(|| {
            format!(
                "{} in {task}: the aggregates include runs of different lengths (updates: {}).",
                agent.name,
                steps.join(", ")
            )
        })
    };
    let all = agents.iter().flat_map(|agent| std::iter::repeat(agent).zip(&agent.scores));
    all.filter_map(sentence).collect()
}

/// The agents with the same number of runs for each of their tasks. Adds a note about each other
/// agent.
fn with_equal_runs<'a>(mut agents: Vec<Agent<'a>>, notes: &mut Vec<String>) -> Vec<Agent<'a>> {
    agents.retain(|agent| {
        let is_equal = agent.scores.values().all(|runs| runs.len() == agent.n_runs());
        if !is_equal {
            let count =
                |(task, runs): (&String, &BTreeMap<_, _>)| format!("{task}: {}", runs.len());
            notes.push(format!(
                "{} has different numbers of runs for its tasks ({}). It is not included in the \
                 aggregates over tasks, because tasks with more runs would count more.",
                agent.name,
                agent.scores.iter().map(count).collect::<Vec<_>>().join(", ")
            ));
        }
        is_equal
    });
    agents
}

/// The tasks that all agents have and that have reference scores. Adds a note about the others.
fn common_tasks<'a>(agents: &'a [Agent], notes: &mut Vec<String>) -> Vec<&'a str> {
    let (mut common, mut incomplete, mut unnormalized) = (Vec::new(), Vec::new(), Vec::new());
    for task in agents.iter().flat_map(Agent::tasks).collect::<BTreeSet<_>>() {
        let scored: Vec<_> = agents.iter().filter_map(|agent| agent.scores.get(task)).collect();
        let mut scores = scored.iter().flat_map(|runs| runs.values());
        if !scores.all(|row| row.normalized.is_some()) {
            unnormalized.push(task);
        } else if scored.len() < agents.len() {
            incomplete.push(task);
        } else {
            common.push(task);
        }
    }
    for (tasks, reason) in [
        (incomplete, "because not all agents have them"),
        (unnormalized, "because they have no reference scores"),
    ] {
        if !tasks.is_empty() {
            let tasks = tasks.join(", ");
            notes.push(format!("Tasks not included in the aggregates, {reason}: {tasks}."));
        }
    }
    common
}

/// Performance profiles: the fraction of runs above each score.
fn profiles(
    protocol: &str,
    agents: &[&Agent<'_>],
    tasks: &[&str],
    bootstrap: &Bootstrap,
) -> Result<Vec<Block>, PageError> {
    let matrices =
        agents.iter().map(|agent| agent.normalized(tasks)).collect::<Result<Vec<_>, _>>()?;
    let all = || matrices.iter().flat_map(ScoreMatrix::pooled).copied();
    // Above the highest score the fraction is 0.
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

/// The protocol's name with only lower-case letters, digits and `-`.
fn file_name(protocol: &str) -> String {
    let letter = |c: char| if c.is_ascii_alphanumeric() { c.to_ascii_lowercase() } else { '-' };
    protocol.chars().map(letter).collect()
}
