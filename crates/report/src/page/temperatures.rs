//! What agents earned at the temperatures among which theirs was chosen.

use overtone_eval::{TemperatureChoice, table::Table};
use overtone_plot::{Line, Stroke};

use super::{document::Block, heading, pictures, run_files::RunFiles, text};

/// More lines than these nobody can tell apart.
const MOST_LINES: usize = 8;

/// A section about all choices that evaluations of `runs` tell of; empty where there is none.
pub(super) fn section(runs: &[RunFiles]) -> Vec<Block> {
    let mut choices: Vec<(&str, &TemperatureChoice)> = Vec::new();
    for run in runs {
        let settings = run.evaluations.iter().map(|source| &source.evaluation.setting);
        for choice in settings.filter_map(|setting| setting.temperature.as_ref()) {
            if !choices.contains(&(run.name.as_str(), choice)) {
                choices.push((&run.name, choice));
            }
        }
    }
    let Some((_, first)) = choices.first() else { return Vec::new() };
    let mut temperatures: Vec<f32> = Vec::new();
    for point in choices.iter().flat_map(|(_, choice)| &choice.curve) {
        if !temperatures.contains(&point.temperature) {
            temperatures.push(point.temperature);
        }
    }
    temperatures.sort_by(|a, b| b.total_cmp(a));
    let mut header = vec!["run".to_owned(), "asked".into()];
    header.extend(temperatures.iter().map(|temperature| format!("at {temperature}")));
    header.push("chosen".into());
    let header: Vec<&str> = header.iter().map(String::as_str).collect();
    let mut table = Table::new(&header);
    for (name, choice) in &choices {
        let mut row = vec![(*name).to_owned(), choice.target.to_string()];
        row.extend(temperatures.iter().map(|temperature| {
            let found = choice.curve.iter().find(|point| point.temperature == *temperature);
            found.map_or_else(|| "-".into(), |point| point.raw_return.with_spread())
        }));
        row.push(choice.chosen.to_string());
        table.row(row);
    }
    let mut blocks = vec![heading("Temperature"), Block::Table(table)];
    if choices.len() <= MOST_LINES {
        let line = |(name, choice): &(&str, &TemperatureChoice)| {
            let mut curve: Vec<_> = choice.curve.iter().collect();
            curve.sort_by(|a, b| a.temperature.total_cmp(&b.temperature));
            let points = curve.iter().map(|at| [f64::from(at.temperature), at.raw_return.mean]);
            let spread = curve.iter().map(|at| at.raw_return.sd.unwrap_or(0.0)).collect();
            Line::new(*name, points.collect()).spread(spread).stroke(Stroke::Marked)
        };
        let lines = choices.iter().map(line).collect();
        let title = "raw return against softmax temperature, mean ± sd";
        blocks.extend(pictures::curves("temperature", title, "temperature", lines));
    }
    blocks.push(text(format!(
        "raw mean ± sd of the episodes that chose. The rule: {}. The scores above are of other \
         episodes.",
        first.rule
    )));
    blocks
}
