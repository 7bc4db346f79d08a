//! Estimates from a recording on the page: apart from the scores, and compared with them.

use std::fs;
use std::path::Path;

use overtone_core::judgement::{
    Check, Judged, Judgement, Method, Overlap, Recording, ReturnEstimate, Trained, Verdict,
};
use overtone_core::{ActingMode, Interval};
use overtone_eval::{Choice, ChoicePoint, Summary};
use overtone_report::page::{Page, RunFiles, StudyCell};
use overtone_testkit::sentences;
use tempfile::TempDir;

use super::{QUICK, evaluation, file, matched, page, released, run, tags};

fn mode(return_quantile: f32) -> ActingMode {
    ActingMode { return_quantile, ..ActingMode::default() }
}

/// Estimates of update 200 and target 16 for these return quantiles.
fn judgement(values: &[(f32, f64)]) -> Judgement {
    let estimate = |value: f64| ReturnEstimate {
        method: Method::FittedQ,
        value,
        interval: Some(Interval { low: value - 0.5, high: value + 0.5 }),
        difference: Some(Interval { low: value - 2.25, high: value - 1.25 }),
    };
    let judged = |&(quantile, value): &(f32, f64)| Judged {
        mode: mode(quantile),
        estimates: vec![
            ReturnEstimate { method: Method::Pdis, ..estimate(100.0) },
            estimate(value),
        ],
        overlap: Some(Overlap { effective: vec![30.0, 12.5], horizon: None }),
        uncovered: Some(0.0125),
        level: if value > 2.25 { 0.975 } else { 0.95 },
        verdict: if value > 2.25 {
            Verdict::BetterThanRecorded
        } else {
            Verdict::CannotTell { reasons: vec![Check::LongEpisodes, Check::Difference] }
        },
    };
    Judgement {
        format: Judgement::FORMAT,
        run: "clinic".into(),
        step: 200,
        target_return: 16.0,
        is_conditioned: true,
        clone: Some(estimate(1.875)),
        recording: Recording {
            dataset: "clinic".into(),
            episodes: 30,
            mean_length: 8.5,
            longest: 12,
            mean_return: 1.75,
            interval: Some(Interval { low: 1.5, high: 2.0 }),
            has_log_probs: true,
            trained: Trained::Yes,
        },
        discount: 0.99,
        level: 0.95,
        seed: 1,
        policies: values.iter().map(judged).collect(),
    }
}

fn write(judgement: &Judgement, folder: &Path) {
    fs::write(folder.join(Judgement::FILE), serde_json::to_vec(judgement).unwrap()).unwrap();
}

/// A choice among these return quantiles, with four episodes of the same return for each.
fn choice(returns: &[(f32, f64)]) -> Choice {
    let point = |&(quantile, value): &(f32, f64)| ChoicePoint {
        mode: mode(quantile),
        raw_return: Summary::of(&[value; 4]),
    };
    Choice {
        step: 200,
        target: 16.0,
        seed: 9,
        rule: "even".into(),
        curve: returns.iter().map(point).collect(),
        chosen: mode(returns[0].0),
        portfolio: None,
    }
}

/// The open part of a section of a Markdown page.
fn section<'a>(markdown: &'a str, heading: &str) -> &'a str {
    let (_, after) = markdown
        .split_once(&format!("## {heading}\n"))
        .unwrap_or_else(|| panic!("no {heading} in\n{markdown}"));
    let after = after.split("\n<details>").next().unwrap();
    after.split("\n## ").next().unwrap()
}

#[test]
fn estimates_have_their_own_section_after_the_scores() {
    let root = TempDir::new().unwrap();
    let folder = run(&root, "clinic", 1);
    evaluation(200, 5, matched()).write(&folder.join("evaluation.json")).unwrap();
    let without = page(&[&folder]);
    write(&judgement(&[(1.0, 2.5), (0.5, 2.0)]), &folder);
    let page = page(&[&folder]);
    let markdown = page.to_markdown("report");
    let (_, after) = markdown.split_once("## Scores\n").unwrap();
    let estimates = section(after, "Estimates from the recording");
    for part in [
        "An estimate is not a score: nothing was played.",
        "| mode | estimate | difference from recorded | episodes in effect | uncovered steps | \
         answer |",
        "| target return | 2.500 \\[2.000, 3.000\\] | \\[0.250, 1.250\\] | 12.50 | 1.2 % | better \
         than recorded |",
        "| quantile 0.5 | 2.000 \\[1.500, 2.500\\] | \\[-0.250, 0.750\\] | 12.50 | 1.2 % | cannot \
         tell: long episodes, difference |",
        "](report-estimates-1.svg)",
    ] {
        assert!(estimates.contains(part), "no {part:?} in\n{estimates}");
    }
    for part in ["Recording clinic", "Known answer", "Method: "] {
        sentences::check_prose(&markdown, part);
    }
    let svg = file(&page, "report-estimates-1.svg");
    assert_eq!(svg.matches("fill-opacity=\"0.25\"").count(), 2, "an interval each: {svg}");
    assert!(svg.contains(">quantile 0.5</text>") && svg.contains(">recorded</text>"), "{svg}");
    tags(&page.to_html());
    // Two modes are too few for a correlation.
    assert!(!estimates.contains("Spearman"), "{estimates}");
    // Scores are the same with and without estimates.
    let scores = |page: &Page| section(&page.to_markdown("report"), "Scores").to_owned();
    assert_eq!(scores(&page), scores(&without));
    assert_eq!(file(&page, "report-scores.csv"), file(&without, "report-scores.csv"));
    // Leftover plots are removed.
    page.write(&folder, "report").unwrap();
    fs::remove_file(folder.join(Judgement::FILE)).unwrap();
    super::page(&[&folder]).write(&folder, "report").unwrap();
    assert!(!folder.join("report-estimates-1.svg").exists());
}

#[test]
fn estimates_are_compared_with_achieved_returns() {
    let root = TempDir::new().unwrap();
    let folder = run(&root, "clinic", 1);
    write(&judgement(&[(1.0, 3.0), (0.75, 2.0), (0.5, 1.0), (0.25, 9.0)]), &folder);
    let path = folder.join("checkpoints/step-00000200").join(Choice::FILE);
    let caption = |folder: &Path| {
        let markdown = page(&[folder]).to_markdown("report");
        let line = markdown.lines().find(|line| line.contains("Spearman correlation"));
        line.map(|line| line.rsplit(' ').next().unwrap().to_owned())
    };
    assert_eq!(caption(&folder), None);
    // The order of 3, 2, 1 is 2, 3, 1.
    choice(&[(1.0, 20.0), (0.75, 30.0), (0.5, 10.0)]).write(&path).unwrap();
    assert_eq!(caption(&folder).as_deref(), Some("0.50"));
    let shown = page(&[&folder]);
    let svg = file(&shown, "report-estimates-returns-1.svg");
    // A dot for each mode, and another one in the legend.
    assert_eq!(svg.matches("<circle").count(), 6, "{svg}");
    sentences::check_prose(&shown.to_markdown("report"), "the return is not");
    // A choice for another target or other weights does not count.
    let chosen = || choice(&[(1.0, 20.0), (0.75, 30.0), (0.5, 10.0)]);
    Choice { target: 32.0, ..chosen() }.write(&path).unwrap();
    assert_eq!(caption(&folder), None);
    let earlier = folder.join("checkpoints/step-00000100").join(Choice::FILE);
    fs::rename(&path, earlier).unwrap();
    assert_eq!(caption(&folder), None);
    // An evaluation replaces fewer episodes, unless its protocol is not the recorded one.
    choice(&[(1.0, 20.0), (0.75, 30.0), (0.5, 10.0)]).write(&path).unwrap();
    for (protocol, expected) in [(released(), "0.50"), (matched(), "1.00")] {
        let mut report = evaluation(200, 5, protocol);
        report.targets[0].raw_return.mean = 50.0;
        report.write(&folder.join("evaluation.json")).unwrap();
        assert_eq!(caption(&folder).as_deref(), Some(expected));
    }
}

#[test]
fn a_judgement_that_cannot_be_read_is_a_warning() {
    let root = TempDir::new().unwrap();
    let folder = run(&root, "clinic", 1);
    evaluation(200, 5, matched()).write(&folder.join("evaluation.json")).unwrap();
    let whole = serde_json::to_string(&judgement(&[(1.0, 2.5)])).unwrap();
    let other = whole.replacen("\"format\":3", "\"format\":4", 1);
    for damaged in ["{\"format\":3", &other, "", "{}", "[1e999]"] {
        fs::write(folder.join(Judgement::FILE), damaged).unwrap();
        let html = page(&[&folder]).to_html();
        tags(&html);
        let (open, _) = html.split_once("<details>").unwrap();
        let line = open.lines().find(|line| line.contains("Warning: ")).unwrap();
        let place = root.path().display().to_string();
        sentences::check(&line.replace(&place, "runs"));
        assert!(html.contains("Scores") && !html.contains("Estimates from"), "{html}");
    }
    fs::write(folder.join(Judgement::FILE), [0xff, 0xfe]).unwrap();
    assert!(page(&[&folder]).to_html().contains("Warning: "));
}

#[test]
fn a_study_shows_the_estimates_of_runs_without_a_score() {
    let root = TempDir::new().unwrap();
    let cell = |folder: &Path| StudyCell {
        label: "all".into(),
        task: "clinic".into(),
        agent: String::new(),
        runs: vec![RunFiles::read(folder).unwrap()],
        failed: Vec::new(),
        missing: 1,
    };
    let folder = run(&root, "clinic", 1);
    write(&judgement(&[(1.0, 2.5)]), &folder);
    let page = Page::of_study("q", &[cell(&folder)], &QUICK).unwrap();
    assert!(page.to_markdown("report").starts_with("# Study q: some cells not evaluated yet\n"));
    let html = page.to_html();
    tags(&html);
    let (open, _) = html.split_once("<summary>Its one run").unwrap();
    assert!(open.contains("Estimates from the recording"), "{open}");
}

#[test]
fn every_table_of_agents_counts_the_episodes_that_chose_them() {
    let root = TempDir::new().unwrap();
    let folders = [1, 2].map(|seed| run(&root, &format!("s{seed}"), seed));
    let write_all = |is_chosen: [bool; 2]| {
        for (folder, is_chosen) in folders.iter().zip(is_chosen) {
            let mut report = evaluation(200, 5, matched());
            report.setting.choice = is_chosen.then(|| choice(&[(1.0, 20.0), (0.5, 10.0)]));
            report.write(&folder.join("evaluation.json")).unwrap();
        }
        page(&[&folders[0], &folders[1]])
    };
    let markdown = write_all([false, false]).to_markdown("report");
    for (table, words) in [
        ("Scores", "Episodes that chose the acting mode: N = 0 (all rows)."),
        ("Over training seeds", "; seeds 1 2; choosing episodes 0."),
    ] {
        assert!(section(&markdown, table).contains(words), "{markdown}");
    }
    let page = write_all([true, false]);
    let scores = page.to_markdown("report");
    let scores = section(&scores, "Scores");
    let last_cells = |row: &str| row.trim_end_matches(" |").rsplit(' ').next().unwrap().to_owned();
    let rows: Vec<&str> = scores.lines().filter(|line| line.starts_with('|')).collect();
    assert!(rows[0].ends_with(" | choosing episodes |"), "{scores}");
    let choosing_episodes: Vec<String> = rows[2..].iter().map(|row| last_cells(row)).collect();
    assert_eq!(choosing_episodes, ["8", "8", "0", "0"]);
    let csv = file(&page, "report-scores.csv");
    assert!(csv.lines().next().unwrap().ends_with(",choosing_episodes"), "{csv}");
}

/// The page of a run that was judged and not played begins with the judgement.
#[test]
fn the_answer_is_the_headline_of_a_run_without_a_score() {
    let root = TempDir::new().unwrap();
    let folder = run(&root, "clinic", 1);
    let unclear = Verdict::CannotTell { reasons: vec![Check::LongEpisodes, Check::Difference] };
    let verdicts = |values: &[(f32, f64)], others: Verdict| {
        let mut judgement = judgement(values);
        let other = |judged: &&mut Judged| judged.verdict != Verdict::BetterThanRecorded;
        judgement
            .policies
            .iter_mut()
            .filter(other)
            .for_each(|judged| judged.verdict = others.clone());
        write(&judgement, &folder);
        page(&[&folder]).to_markdown("report")
    };
    for markdown in [
        // The best of two modes that are better than the recording.
        verdicts(&[(1.0, 2.0), (0.75, 2.5), (0.5, 3.0)], unclear.clone()),
        verdicts(&[(1.0, 1.0), (0.5, 2.0)], Verdict::WorseThanRecorded),
        verdicts(&[(1.0, 1.0), (0.5, 2.0)], unclear),
    ] {
        let (first, rest) = markdown.split_once("\n## ").unwrap();
        sentences::check(first.lines().find(|line| line.starts_with("**")).unwrap());
        assert!(rest.starts_with("Estimates from the recording\n"), "{rest}");
        assert!(!markdown.contains("not been evaluated") && !markdown.contains("## Scores"));
    }
    // A score is the headline, and its estimate is not.
    evaluation(200, 5, matched()).write(&folder.join("evaluation.json")).unwrap();
    let markdown = page(&[&folder]).to_markdown("report");
    assert!(markdown.contains("\n**Mean return ") && !markdown.contains("**Cannot tell"));
}
