//! How agents differ from recorded actions. It is apart from the scores, because nothing was played.

use overtone_core::imitation::Imitation;
use overtone_plot::Bars;

use super::document::Block;
use super::run_files::RunFiles;
use super::{heading, subheading, text};
use crate::imitation::{largest, scope, sentences, table};

/// The section about the imitation of `runs`; empty if none has a report of it.
pub(super) fn section(runs: &[RunFiles]) -> Vec<Block> {
    let mut blocks = Vec::new();
    for (i, run) in runs.iter().enumerate() {
        let Some(imitation) = &run.imitation else { continue };
        if blocks.is_empty() {
            blocks.push(heading("Next to the recorded actions"));
        }
        if runs.len() > 1 {
            blocks.push(subheading(&run.label));
        }
        blocks.push(text(format!("Recording {}: {}.", imitation.dataset, scope(imitation))));
        blocks.push(bars(imitation, i + 1));
        blocks.push(Block::Table(table(imitation)));
        blocks.extend(sentences(imitation).into_iter().map(|line| text(line + ".")));
        let steps = largest(imitation);
        let title = "Steps at which agent and recording differ most, one for each episode";
        blocks.push(Block::Fold(title.into(), vec![Block::Table(steps)]));
    }
    blocks
}

/// The agreement of the agent and of the rules, over all numbers of an action.
fn bars(imitation: &Imitation, number: usize) -> Block {
    let all = &imitation.all;
    let bars = [
        ("agent", all.agent),
        ("previous action", all.previous),
        ("nearest observation", all.nearest),
    ];
    let bars = bars.map(|(name, length)| (name.to_owned(), length)).to_vec();
    let svg = Bars { bars, marked: Some(0), full: 1.0, ..Bars::default() }.to_svg();
    let measure = if imitation.is_discrete { "share of equal actions" } else { "R²" };
    let title = format!("Agreement with the recorded actions ({measure}), next to simple rules");
    Block::Plot { name: format!("imitation-{number}"), title, svg }
}
