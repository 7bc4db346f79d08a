//! Scores of the acting modes from which each agent's mode was chosen.

use overtone_eval::{Choice, Summary, choice::ModeSetting, summary::digits, table::Table};
use overtone_plot::{Line, Stroke};

use super::{
    document::Block,
    heading, pictures,
    run_files::RunFiles,
    scores::{Row, spread},
    text, unique,
};

/// Maximum number of runs in a plot. With more runs the bands overlap too much.
const MOST_LINES: usize = 8;

/// A section about the chosen acting modes of `runs`, with one table for each set of compared
/// settings; empty if no mode was chosen.
pub(super) fn section(runs: &[RunFiles]) -> Vec<Block> {
    let choices: Vec<(&str, &Choice)> = unique(runs.iter().flat_map(|run| {
        let settings = run.evaluations.iter().map(|source| &source.evaluation.setting);
        settings.filter_map(|setting| Some((run.label.as_str(), setting.choice.as_ref()?)))
    }));
    let Some((_, first)) = choices.first() else { return Vec::new() };
    let mut blocks = vec![heading("Chosen acting modes")];
    let mut all: Vec<String> = choices.iter().map(|(_, choice)| choice.setting_names()).collect();
    all.sort();
    all.dedup();
    for what in &all {
        let of_these: Vec<(&str, &Choice)> =
            choices.iter().filter(|(_, choice)| choice.setting_names() == *what).copied().collect();
        blocks.push(Block::Table(table(what, &of_these)));
        let settings = of_these.first().map(|(_, choice)| choice.settings()).unwrap_or_default();
        if let ([(name, of)], true) = (&settings[..], of_these.len() <= MOST_LINES) {
            blocks.extend(curves((*name, *of), &of_these));
        }
    }
    for (name, choice) in &choices {
        if let Some(portfolio) = &choice.portfolio {
            let (words, runs) = (portfolio.describe(), portfolio.runs.join(", "));
            blocks.push(text(format!("{name} is {words} ({runs}).")));
        }
    }
    blocks.push(text(format!(
        "raw mean ± sd and number of the episodes that chose the mode, placed by the rule {}. The \
         scores above use other episodes.",
        first.rule
    )));
    blocks
}

/// A table of agents with the number of episodes that chose the acting modes of each row. If it is
/// the same in all rows, a line below the table replaces the column.
pub(super) fn counted(mut table: Table, episodes: Vec<String>) -> Vec<Block> {
    let same = match &unique(&episodes)[..] {
        [same] => {
            Some(text(format!("Episodes that chose the acting mode: N = {same} (all rows).")))
        }
        _ => None,
    };
    if same.is_none() {
        table.column(CHOOSING, episodes);
    }
    std::iter::once(Block::Table(table)).chain(same).collect()
}

/// The column of the number of episodes that chose the acting modes of a row.
pub(super) const CHOOSING: &str = "choosing episodes";

/// Episodes that chose the acting modes of several evaluations: `140`, or `0 to 140`.
pub(super) fn episodes(rows: &[&Row<'_>]) -> String {
    range(rows.iter().map(|row| row.choosing_episodes()).collect())
}

/// A number, or the smallest and the largest of several.
pub(super) fn range(mut numbers: Vec<usize>) -> String {
    numbers.sort_unstable();
    match (numbers.first(), numbers.last()) {
        (Some(low), Some(high)) if low != high => format!("{low} to {high}"),
        (low, _) => low.copied().unwrap_or_default().to_string(),
    }
}

/// A row for each run and a column for each acting mode.
fn table(what: &str, choices: &[(&str, &Choice)]) -> Table {
    let labels = unique(
        choices
            .iter()
            .flat_map(|(_, choice)| choice.curve.iter().map(|point| choice.label(&point.mode))),
    );
    let mut header = vec!["run".to_owned(), "target".into()];
    let setting = what.trim_end_matches(" or top percent");
    let named = |label: &str| {
        if label.contains("top ") { label.to_owned() } else { format!("{setting} {label}") }
    };
    header.extend(labels.iter().map(|label| named(label)));
    header.push("chosen".into());
    let mut table = Table::new(header);
    let points = choices.iter().flat_map(|(_, choice)| &choice.curve);
    let digits = digits(points.filter_map(|point| point.raw_return.as_ref()));
    for (name, choice) in choices {
        let mut row = vec![(*name).to_owned(), choice.target.to_string()];
        row.extend(labels.iter().map(|label| {
            let point = choice.curve.iter().find(|point| choice.label(&point.mode) == *label);
            let returns = point.and_then(|point| point.raw_return.as_ref());
            let score = |all: &Summary| format!("{} ({})", spread(all, digits), all.n);
            returns.map_or_else(|| "-".into(), score)
        }));
        row.push(named(&choice.label(&choice.chosen)));
        table.row(row);
    }
    table
}

/// Returns against the one setting in which the acting modes differ.
fn curves((name, of): ModeSetting, choices: &[(&str, &Choice)]) -> Vec<Block> {
    let line = |(run, choice): &(&str, &Choice)| {
        let points = choice.curve.iter();
        let mut curve: Vec<(f32, &Summary)> = points
            .filter_map(|point| Some((of(&point.mode), point.raw_return.as_ref()?)))
            .collect();
        curve.sort_by(|a, b| a.0.total_cmp(&b.0));
        let points = curve.iter().map(|(value, all)| [f64::from(*value), all.mean]);
        let spread = curve.iter().map(|(_, all)| all.sd.unwrap_or(0.0)).collect();
        Line::new(*run, points.collect()).spread(spread).stroke(Stroke::Marked)
    };
    let title = format!("raw return against {name}, mean ± sd");
    let lines = choices.iter().map(line).collect();
    pictures::curves(&name.replace(' ', "-"), &title, name, lines)
}
