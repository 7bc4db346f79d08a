//! Estimates of returns from a recording. They are apart from the scores, because nothing was
//! played.

use overtone_core::ActingMode;
use overtone_core::judgement::{Judged, Judgement, Trained};
use overtone_eval::statistics::spearman;
use overtone_eval::summary::fixed;
use overtone_eval::{Setting, Summary, UsedSettings};
use overtone_plot::{Line, LinePlot, Strip, Stroke};

use super::document::Block;
use super::run_files::{Estimates, RunFiles};
use super::{first, heading, scores, subheading, text};
use crate::estimates::{RECORDED_STEPS, level, methods, scope, table, with_interval};

/// Minimum number of acting modes for comparing estimates with returns.
const ENOUGH: usize = 3;

/// The section about the estimates of `runs`; empty if there are none.
pub(super) fn section(runs: &[RunFiles]) -> Vec<Block> {
    let mut blocks = Vec::new();
    for (i, run) in runs.iter().enumerate() {
        let Some(Ok(estimates)) = &run.estimates else { continue };
        if blocks.is_empty() {
            blocks.push(heading("Estimates from the recording"));
            blocks.push(text("An estimate is not a score: nothing was played."));
        }
        if runs.len() > 1 {
            blocks.push(subheading(&run.label));
        }
        let judgement = &estimates.judgement;
        blocks.extend(recording(judgement));
        blocks.push(Block::Table(table(judgement)));
        blocks.push(text(format!(
            "Method: {}. Intervals at {}. Checkpoint of update {}, target return {}. All \
             estimates: {}.",
            methods(judgement),
            level(judgement),
            judgement.step,
            judgement.target_return,
            Judgement::FILE
        )));
        blocks.extend(intervals(judgement, i + 1));
        blocks.extend(against_returns(run, estimates, i + 1));
    }
    blocks
}

/// A sentence for each run whose estimates cannot be shown.
pub(super) fn warnings(runs: &[RunFiles]) -> impl Iterator<Item = Block> {
    let sentence = |run: &RunFiles| match &run.estimates {
        Some(Err(reason)) => Some(text(format!("Warning: {reason}."))),
        _ => None,
    };
    runs.iter().filter_map(sentence)
}

/// Sentences about the recording, and about the known return of its policy.
fn recording(judgement: &Judgement) -> Vec<Block> {
    let Judgement { recording, clone, discount, .. } = judgement;
    let mean = with_interval(recording.mean_return, recording.interval);
    let mut blocks = vec![text(format!(
        "Recording {}: {} episodes of {:.1} steps on average; mean return {mean}, discounted by \
         {discount}, {RECORDED_STEPS}. {}",
        recording.dataset,
        recording.episodes,
        recording.mean_length,
        match recording.trained {
            Trained::Yes => "The agent trained on these episodes.",
            Trained::No => "The agent did not train on these episodes.",
            Trained::Unknown => "It is unknown whether the agent trained on these episodes.",
        }
    ))];
    blocks.extend(clone.map(|clone| {
        text(format!(
            "Known answer: {} estimates {} for a clone of the recorded policy ({}). Its recorded \
             return is {mean}.",
            clone.method.name(),
            with_interval(clone.value, clone.interval),
            scope(clone.method)
        ))
    }));
    blocks
}

/// A bar for the interval of each mode, and a line at the recorded return.
fn intervals(judgement: &Judgement, number: usize) -> Vec<Block> {
    let strips = judgement.policies.iter().filter_map(|judged| {
        let deciding = judged.deciding()?;
        Some(Strip {
            name: judgement.label(&judged.mode),
            dots: Vec::new(),
            estimate: Some(deciding.value),
            interval: deciding.interval.map(|ends| [ends.low, ends.high]),
        })
    });
    first::strips(
        &format!("estimates-{number}"),
        "Estimates of the acting modes, with intervals",
        "discounted return",
        strips.collect(),
        vec![("recorded".to_owned(), judgement.recording.mean_return)],
    )
}

/// A plot of estimates against achieved mean returns, a dot for each mode; empty if fewer than
/// [`ENOUGH`] modes were played.
fn against_returns(run: &RunFiles, estimates: &Estimates, number: usize) -> Vec<Block> {
    let judgement = &estimates.judgement;
    let dot = |judged: &Judged| {
        let returns = achieved(run, estimates, &judged.mode)?;
        Some((judgement.label(&judged.mode), [judged.deciding()?.value, returns.mean]))
    };
    let dots: Vec<(String, [f64; 2])> = judgement.policies.iter().filter_map(dot).collect();
    if dots.len() < ENOUGH {
        return Vec::new();
    }
    let pairs: Vec<[f64; 2]> = dots.iter().map(|(_, dot)| *dot).collect();
    let correlation = spearman(&pairs).map_or_else(|| "none".to_owned(), |value| fixed(value, 2));
    let lines = dots.into_iter().map(|(mode, dot)| Line::new(mode, vec![dot]).stroke(Stroke::Dots));
    let plot = LinePlot {
        x_label: "estimate (discounted)".into(),
        y_label: "achieved mean return (not discounted)".into(),
        lines: lines.collect(),
        ..LinePlot::default()
    };
    let title = format!(
        "Estimates against achieved mean returns, a dot for each acting mode; Spearman correlation \
         {correlation}"
    );
    let note = format!("The estimate is discounted by {}, the return is not.", judgement.discount);
    let name = format!("estimates-returns-{number}");
    vec![Block::Plot { name, title, svg: plot.to_svg() }, text(note)]
}

/// The returns of the judged weights in this mode, with the judged target. Among several sources,
/// the one with the most episodes: an evaluation, or the episodes that chose a mode.
fn achieved<'a>(
    run: &'a RunFiles,
    Estimates { judgement, choice }: &'a Estimates,
    mode: &ActingMode,
) -> Option<&'a Summary> {
    let target = judgement.target_return;
    let is_judged = |setting: &Setting| {
        let weights = setting.checkpoint.as_ref().filter(|weights| scores::is_own(weights));
        // Other protocols differ from the recording.
        setting.protocol.name == "matched"
            && setting.protocol.acting == *mode
            && weights.is_some_and(|weights| weights.step == judgement.step)
    };
    let mut summaries: Vec<&Summary> = Vec::new();
    for source in run.evaluations.iter().filter(|source| is_judged(&source.evaluation.setting)) {
        let UsedSettings { target: is_used, .. } = source.evaluation.setting.used_settings;
        let targets = &source.evaluation.targets;
        let played = targets.iter().find(|result| !is_used || result.target_return == target);
        summaries.extend(played.map(|result| &result.raw_return));
    }
    if let Some(choice) = choice {
        let is_same = choice.target == target || mode.top_percent > 0.0;
        let point = choice.curve.iter().find(|point| is_same && point.mode == *mode);
        summaries.extend(point.and_then(|point| point.raw_return.as_ref()));
    }
    summaries.into_iter().max_by_key(|returns| returns.n)
}
