//! How an agent's actions differ from recorded ones, as text: for the program and for report pages.

use overtone_core::decimal;
use overtone_core::imitation::{Agreement, Difference, Imitation};
use overtone_core::judgement::Trained;
use overtone_eval::table::Table;

/// Most numbers of an action that have a row.
const MOST_ROWS: usize = 12;

/// One sentence about the recording and the measure.
pub fn scope(of: &Imitation) -> String {
    let measure = match of.is_discrete {
        true => "share of equal actions",
        false => "R² of the recorded action; 1: equal, 0: as far as the mean action",
    };
    let trained = match of.trained {
        Trained::Yes => ", on which the agent trained",
        Trained::No => ", on which the agent did not train",
        Trained::Unknown => "",
    };
    format!(
        "imitation, not a score: {}, on {} steps of {} episodes{trained} ({measure})",
        of.label(),
        of.steps,
        of.episodes
    )
}

/// A row for each number of the action, and one for all: the agent beside three rules.
pub fn table(of: &Imitation) -> Table {
    let constant = if of.is_discrete { "most frequent action" } else { "mean action" };
    let heads = ["action", "agent", "previous action", "nearest observation", constant];
    let mut table = Table::new(heads);
    let mut row = |name: String, agreement: &Agreement| {
        let Agreement { agent, constant, previous, nearest } = *agreement;
        let numbers = [agent, previous, nearest, constant].map(|number| decimal(number, 3));
        table.row(std::iter::once(name).chain(numbers).collect());
    };
    if of.numbers.len() > 1 {
        for number in of.numbers.iter().take(MOST_ROWS) {
            row(number.number.to_string(), &number.agreement);
        }
    }
    row("all".into(), &of.all);
    table
}

/// What the agreements mean, a sentence each.
pub fn sentences(of: &Imitation) -> Vec<String> {
    let mut lines = Vec::new();
    if of.is_copycat() {
        lines.push(format!(
            "The agent mostly repeats the previous action: it agrees with that one at {}, with the \
             recorded one at {}, and repetition alone at {}. Use model.context_length=1 for a model \
             that sees no past actions",
            decimal(of.repeats, 3),
            decimal(of.all.agent, 3),
            decimal(of.all.previous, 3)
        ));
    }
    if !of.quarters.is_empty() {
        let quarters: Vec<String> = of.quarters.iter().map(|value| decimal(*value, 3)).collect();
        lines.push(format!("By quarter of the episodes: {}", quarters.join(", ")));
    }
    if let Some(groups) = of.top_and_rest {
        let [top, rest] = groups.map(|value| decimal(value, 3));
        lines.push(format!(
            "In the tenth of the episodes with the highest returns: {top}; in the others: {rest}"
        ));
    }
    if let Some([agent, frequencies]) = of.log_likelihood {
        let [agent, frequencies] = [agent, frequencies].map(|value| decimal(value, 3));
        lines.push(format!(
            "Log-likelihood of a recorded action: {agent}, by the actions' frequencies {frequencies}"
        ));
    }
    lines.push(match of.is_discrete {
        true => format!(
            "Actions that no similar recorded step has: {} % of the steps",
            decimal(100.0 * of.departure, 1)
        ),
        false => format!(
            "Distance from the actions recorded at similar observations: {} (1: as far as these are \
             from one another)",
            decimal(of.departure, 2)
        ),
    });
    if let Some(Difference { episode, row, .. }) = of.largest.first() {
        lines.push(format!(
            "Largest difference: episode {episode}, row {row} (the ten largest: {})",
            Imitation::FILE
        ));
    }
    lines
}

/// Agent and recording at the steps where they differ most.
pub fn largest(of: &Imitation) -> Table {
    let action = |numbers: &[f32]| {
        let all = numbers
            .iter()
            .map(|&number| decimal(number.into(), if of.is_discrete { 0 } else { 2 }));
        all.collect::<Vec<_>>().join(" ")
    };
    Table::of(
        &of.largest,
        &[
            ("episode", &|of| of.episode.to_string()),
            ("row", &|of| of.row.to_string()),
            ("agent", &|of| action(&of.agent)),
            ("recorded", &|of| action(&of.recorded)),
        ],
    )
}
