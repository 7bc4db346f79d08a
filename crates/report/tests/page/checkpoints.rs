//! Separate tables for the last, held-out-selected, chosen and best checkpoint of a run.

use std::fs;
use std::path::{Path, PathBuf};

use overtone_eval::{CheckpointRef, Evaluation};
use overtone_report::page::{PageError, RunFiles};
use tempfile::TempDir;

use super::{evaluation, file, matched, page, run};

#[test]
fn last_chosen_and_best_checkpoints_have_separate_tables() {
    let root = TempDir::new().unwrap();
    let folder = run(&root, "one", 1);
    let [first, last] = [(100, 5), (200, 6)].map(|(step, seed)| evaluation(step, seed, matched()));
    first.write(&folder.join("evaluation-100.json")).unwrap();
    last.write(&folder.join("evaluation-200.json")).unwrap();
    let page = page(&[&folder]);
    let markdown = page.to_markdown("report");
    let [last_at, chosen_at, best_at] = [
        "### Last checkpoint of each run",
        "### Chosen checkpoints",
        "## Last, held-out-selected and best checkpoint",
    ]
    .map(|heading| markdown.find(heading).unwrap_or_else(|| panic!("no {heading}")));
    assert!(markdown[last_at..chosen_at].contains("| matched | 200 | 16 |"), "{markdown}");
    assert!(!markdown[last_at..chosen_at].contains("| matched | 100 |"), "{markdown}");
    assert!(markdown[chosen_at..best_at].contains("| matched | 100 | 16 |"), "{markdown}");
    for (i, target) in ["16", "32"].iter().enumerate() {
        let mean = |report: &Evaluation| report.targets[i].raw_return.mean;
        let step = if mean(&first) > mean(&last) { 100 } else { 200 };
        let row =
            markdown[best_at..].lines().find(|row| row.contains(&format!("| {target} | 2 |")));
        let cells: Vec<&str> = row.unwrap().split(" | ").collect();
        assert!(cells[4].starts_with(&format!("{:.1} ±", mean(&last))), "{cells:?}");
        assert_eq!(cells[5], "none held out");
        assert!(cells[6].contains(&format!("({step})")), "{cells:?}");
    }
    assert!(markdown.contains("](report-return.svg)"));
    let scores = file(&page, "report-scores.csv");
    assert_eq!([",chosen,100,", ",last,200,"].map(|role| scores.matches(role).count()), [2, 2]);
}

/// Writes the state of a run with held-out episodes and the lowest loss after `best` updates.
pub fn hold_out(folder: &Path, best: u64) {
    let best = format!("{{\"step\": {best}, \"loss\": 1.5}}");
    let state = format!("{{\"step\": 200, \"best\": {best}, \"episode_returns\": []}}");
    fs::write(folder.join("checkpoints/step-00000200/state.json"), state).unwrap();
}

#[test]
fn last_held_out_selected_and_best_checkpoints_have_columns() {
    let root = TempDir::new().unwrap();
    let folder = run(&root, "one", 1);
    hold_out(&folder, 100);
    let reports = [(100, 5), (150, 7), (200, 6)].map(|(step, seed)| {
        let report = evaluation(step, seed, matched());
        report.write(&folder.join(format!("evaluation-{step}.json"))).unwrap();
        report
    });
    let page = page(&[&folder]);
    let markdown = page.to_markdown("report");
    let mean = |report: &Evaluation| report.targets[0].raw_return.mean;
    let best = reports.iter().max_by(|a, b| mean(a).total_cmp(&mean(b))).unwrap();
    let row = markdown.lines().find(|row| row.contains("| matched | 16 | 3 |")).unwrap();
    let cells: Vec<&str> = row.trim_end_matches(" |").split(" | ").collect();
    let cell = |report: &Evaluation, step: u64| {
        let summary = &report.targets[0].raw_return;
        format!("{:.1} ± {:.1} ({step})", summary.mean, summary.sd.unwrap())
    };
    let best_step = best.setting.checkpoint.as_ref().unwrap().step;
    let expected = [cell(&reports[2], 200), cell(&reports[0], 100), cell(best, best_step)];
    assert_eq!(cells[4..7], expected, "{row}");
    // Each checkpoint is only in its own table of scores.
    let at = |heading: &str| markdown.find(heading).unwrap_or_else(|| panic!("no {heading}"));
    let held_out = at("### Held-out-selected checkpoint of each run");
    let chosen = at("### Chosen checkpoints");
    assert!(markdown[held_out..chosen].contains("| matched | 100 | 16 |"), "{markdown}");
    for step in [150, 200] {
        assert!(!markdown[held_out..chosen].contains(&format!("| matched | {step} |")));
    }
    let scores = file(&page, "report-scores.csv");
    let roles = [",last,200,", ",held-out,100,", ",chosen,150,"];
    assert_eq!(roles.map(|role| scores.matches(role).count()), [2, 2, 2], "{scores}");
}

#[test]
fn the_last_checkpoint_may_be_the_held_out_selected_one() {
    let root = TempDir::new().unwrap();
    let mut folders = Vec::new();
    for (seed, best) in [(1, 100), (2, 200)] {
        let folder = run(&root, &format!("s{seed}"), seed);
        hold_out(&folder, best);
        for step in [100, 200] {
            let report = evaluation(step, 10 + seed, matched());
            report.write(&folder.join(format!("evaluation-{step}.json"))).unwrap();
        }
        folders.push(folder);
    }
    let page = page(&folders.iter().map(PathBuf::as_path).collect::<Vec<_>>());
    // Both seeds are in both groups, whichever update was selected.
    let seeds = file(&page, "report-seeds.csv");
    for role in ["last", "held-out"] {
        let rows = seeds.lines().filter(|row| row.contains(&format!(",{role},")));
        assert_eq!(rows.filter(|row| row.contains(",2,1 2,")).count(), 2, "{role}: {seeds}");
    }
    // Each evaluation's episodes are listed once: 2 runs with 2 evaluations of 2 targets with 8
    // episodes.
    assert_eq!(file(&page, "report-episodes.csv").lines().count(), 1 + 64);
    let markdown = page.to_markdown("report");
    assert_eq!(markdown.matches("| seed=2 | matched | 16 | 2 |").count(), 1, "{markdown}");
    // An unreadable state is an error.
    fs::write(folders[0].join("checkpoints/step-00000200/state.json"), "{").unwrap();
    assert!(matches!(RunFiles::read(&folders[0]), Err(PageError::State { .. })));
}

#[test]
fn weights_of_another_run_are_not_among_the_checkpoints() {
    let root = TempDir::new().unwrap();
    let folder = run(&root, "one", 1);
    evaluation(200, 5, matched()).write(&folder.join("evaluation.json")).unwrap();
    let mut other = evaluation(100, 6, matched());
    let path = "/other/checkpoints/step-00000100".into();
    other.setting.checkpoint = Some(CheckpointRef { path, step: 100 });
    other.write(&folder.join("evaluation-other.json")).unwrap();
    let markdown = page(&[&folder]).to_markdown("report");
    assert!(!markdown.contains("best checkpoint"), "{markdown}");
    assert!(!markdown.contains("](report-return.svg)"), "{markdown}");
}

#[test]
fn checkpoints_are_sorted_by_updates() {
    let root = TempDir::new().unwrap();
    let folder = run(&root, "one", 1);
    for step in [1000, 1500, 500] {
        let report = evaluation(step, 5, matched());
        report.write(&folder.join(format!("evaluation-{step}.json"))).unwrap();
    }
    let markdown = page(&[&folder]).to_markdown("report");
    let at = |step: u64| markdown.find(&format!("| matched | {step} | 16 |")).unwrap();
    assert!(at(500) < at(1000) && at(1000) < at(1500), "{markdown}");
}
