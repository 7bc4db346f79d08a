//! Comparison of protocols, and aggregates over seeds and tasks.

use std::fs;
use std::path::{Path, PathBuf};

use overtone_core::{ActingMode, ObservationSpace, protocol::Difference};
use overtone_eval::{Choice, ChoicePoint, Evaluation, FailedEpisode, Summary, UsedSettings};
use overtone_testkit::sentences;
use tempfile::TempDir;

use super::{evaluation, file, game, matched, page, released, run};

#[test]
fn protocols_are_columns_of_one_table() {
    let root = TempDir::new().unwrap();
    let folder = run(&root, "one", 1);
    evaluation(200, 5, matched()).write(&folder.join("evaluation.json")).unwrap();
    let released = evaluation(200, 5, released());
    released.write(&folder.join("evaluation-released.json")).unwrap();
    let markdown = page(&[&folder]).to_markdown("report");
    assert!(markdown.contains("| setting | matched | released |  |"), "{markdown}");
    assert!(markdown.contains("| simulation.max\\_noops | 0 | 29 | differs |"), "{markdown}");
    assert!(markdown.contains("Scores with different protocols cannot be compared."));
}

#[test]
fn runs_that_differ_only_in_their_seed_are_aggregated() {
    let root = TempDir::new().unwrap();
    let mut folders = Vec::new();
    let mut means = Vec::new();
    for seed in 1..=3 {
        let folder = run(&root, &format!("s{seed}"), seed);
        let mut report = evaluation(200, 10 + seed, matched());
        if seed == 2 {
            report.setting.dataset_hash = Some("f00d".into());
        }
        means.push(report.targets[0].raw_return.mean);
        report.write(&folder.join("evaluation.json")).unwrap();
        folders.push(folder);
    }
    // The same seed trains the same agent. Another number of updates makes another agent.
    let again = run(&root, "again", 3);
    let other = run(&root, "other", 4);
    fs::write(other.join("config.toml"), "seed = 4\n[train]\nupdates = 900\n").unwrap();
    for folder in [again, other] {
        evaluation(200, 9, matched()).write(&folder.join("evaluation.json")).unwrap();
        folders.push(folder);
    }
    let page = page(&folders.iter().map(PathBuf::as_path).collect::<Vec<_>>());
    let seeds = file(&page, "report-seeds.csv");
    assert_eq!(seeds.lines().count(), 3, "one group, two targets: {seeds}");
    let row: Vec<&str> = seeds.lines().nth(1).unwrap().split(',').collect();
    assert_eq!(row[3..7], ["last", "16", "3", "1 2 3"], "{seeds}");
    let mean = means.iter().sum::<f64>() / 3.0;
    assert!((row[7].parse::<f64>().unwrap() - mean).abs() < 1e-9, "{seeds}");
    let squares: f64 = means.iter().map(|x| (x - mean).powi(2)).sum();
    assert!((row[8].parse::<f64>().unwrap() - (squares / 2.0).sqrt()).abs() < 1e-9, "{seeds}");
    let markdown = page.to_markdown("report");
    let same = "In every row: task Seaquest; protocol matched; first run s1; seeds 1 2 3; choosing \
                episodes 0.";
    assert!(markdown.contains(same), "{markdown}");
    sentences::check_prose(&markdown, "again (target 16)");
    sentences::check_prose(&markdown, "group of s1");
}

/// Such seeds are aggregated, with a note on the page.
#[test]
fn seeds_with_other_episodes_are_noted() {
    let root = TempDir::new().unwrap();
    let has_note = |other: u64| {
        let folders = [1, 2].map(|seed| {
            let folder = run(&root, &format!("s{seed}"), seed);
            let report = evaluation(200, if seed == 1 { 5 } else { other }, matched());
            report.write(&folder.join("evaluation.json")).unwrap();
            folder
        });
        let page = page(&[&folders[0], &folders[1]]);
        assert_eq!(file(&page, "report-seeds.csv").lines().count(), 3);
        page.to_markdown("report").contains("other episodes than s1")
    };
    assert!(has_note(6));
    assert!(!has_note(5));
}

/// A stopped run also has a last checkpoint.
#[test]
fn runs_with_other_updates_or_datasets_are_not_aggregated() {
    let root = TempDir::new().unwrap();
    let reported = |evaluations: [Evaluation; 3]| {
        let folders: Vec<PathBuf> =
            (1..=3).map(|seed| run(&root, &format!("s{seed}"), seed)).collect();
        for (folder, evaluation) in folders.iter().zip(evaluations) {
            evaluation.write(&folder.join("evaluation.json")).unwrap();
            // The evaluated checkpoint is the last one.
            let last = folder.join("checkpoints/step-00000200");
            if evaluation.setting.checkpoint.as_ref().unwrap().step == 100 {
                fs::remove_dir(last).unwrap();
            }
        }
        let page = page(&folders.iter().map(PathBuf::as_path).collect::<Vec<_>>());
        let rows = file(&page, "report-seeds.csv");
        (rows.lines().nth(1).unwrap_or_default().to_owned(), page.to_markdown("report"))
    };
    let at_step = |step| evaluation(step, 5, matched());
    let (row, page) = reported([at_step(200), at_step(200), at_step(100)]);
    assert!(row.contains(",last,16,2,1 2,"), "{row}");
    sentences::check_prose(&page, "s3 (update 100");
    let (row, page) = reported([at_step(200), at_step(100), {
        let mut other = at_step(200);
        other.targets.iter_mut().for_each(|target| target.target_return += 1.0);
        other.episodes.iter_mut().for_each(|episode| episode.target_return += 1.0);
        other
    }]);
    assert_eq!(row, "", "{row}");
    sentences::check_prose(&page, "s1 (update 200");

    let of_vectors = |hash: &str| {
        let mut evaluation = at_step(200);
        evaluation.setting.task.observations = ObservationSpace::Vectors { width: 11 };
        evaluation.setting.dataset_hash = Some(hash.into());
        evaluation
    };
    let (row, page) = reported([of_vectors("beef"), of_vectors("f00d"), of_vectors("cafe")]);
    assert_eq!(row, "", "{row}");
    sentences::check_prose(&page, "s1 (update 200");
}

#[test]
fn a_top_percent_replaces_the_target_of_agents_that_use_it() {
    let root = TempDir::new().unwrap();
    let mode = |top_percent| ActingMode { top_percent, ..ActingMode::default() };
    let raw_return = Summary::of(&[1.0]);
    let point = |percent| ChoicePoint { mode: mode(percent), raw_return: raw_return.clone() };
    let percents = [0.0, 10.0, 50.0];
    let folders: Vec<PathBuf> = (1..=3).map(|seed| run(&root, &format!("s{seed}"), seed)).collect();
    for (folder, percent) in folders.iter().zip(percents) {
        let mut report = evaluation(200, 5, matched());
        let target = percent == 0.0;
        report.setting.protocol.acting.top_percent = percent;
        report.setting.choice = Some(Choice {
            step: 200,
            target: 16.0,
            seed: 9,
            rule: "even".into(),
            curve: percents.map(point).to_vec(),
            chosen: mode(0.0),
            portfolio: None,
        });
        report.setting.used_settings =
            UsedSettings { target, return_quantile: target, ..UsedSettings::ALL };
        report.write(&folder.join("evaluation.json")).unwrap();
    }
    let page = page(&folders.iter().map(PathBuf::as_path).collect::<Vec<_>>());
    let markdown = page.to_markdown("report");
    for row in [
        "| seed=1 | Seaquest | matched | 200 | 16 | 8 |",
        "| seed=2 | Seaquest | matched | 200 | top 10 % | 8 |",
        "| 16; top 10 %; top 50 % |",
    ] {
        assert!(markdown.contains(row), "no {row} in {markdown}");
    }
    // A later page without the choice removes its plot.
    let plot = root.path().join("report-top-percent.svg");
    page.write(root.path(), "report").unwrap();
    assert!(plot.is_file());
    evaluation(200, 5, matched()).write(&folders[0].join("evaluation.json")).unwrap();
    super::page(&[&folders[0]]).write(root.path(), "report").unwrap();
    assert!(!plot.exists());
}

/// A percentile of each seed's sampled transitions is a different return. It does not matter for
/// agents that do not use a target.
#[test]
fn seeds_of_agents_without_a_target_are_aggregated() {
    let root = TempDir::new().unwrap();
    let folders: Vec<PathBuf> = (1..=3).map(|seed| run(&root, &format!("s{seed}"), seed)).collect();
    let groups = |target: bool| {
        for (seed, folder) in (1_u8..).zip(&folders) {
            let mut report = evaluation(200, 5, matched());
            report.target_returns.iter_mut().for_each(|target| *target += f32::from(seed));
            report.targets.iter_mut().for_each(|result| result.target_return += f32::from(seed));
            report.episodes.iter_mut().for_each(|played| played.target_return += f32::from(seed));
            report.setting.used_settings =
                UsedSettings { target, top_percent: false, ..UsedSettings::ALL };
            report.write(&folder.join("evaluation.json")).unwrap();
        }
        let page = page(&folders.iter().map(PathBuf::as_path).collect::<Vec<_>>());
        file(&page, "report-seeds.csv").lines().skip(1).map(str::to_owned).collect::<Vec<_>>()
    };
    let rows = groups(false);
    assert_eq!(rows.len(), 2, "{rows:?}");
    assert!(rows.iter().all(|row| row.contains(",3,1 2 3,")), "{rows:?}");
    assert_eq!(groups(true), Vec::<String>::new());
}

#[test]
fn agents_are_compared_over_tasks() {
    let root = TempDir::new().unwrap();
    let mut folders = Vec::new();
    // Two heads on two games, with four seeds each. The second head always scores 100 points more.
    let mut scores = [0.0; 2];
    for (head, better) in [("linear", 0.0), ("fourier", 100.0)] {
        for name in ["seaquest", "bank_heist"] {
            for seed in 1..=4 {
                let folder = run(&root, &format!("{head}-{name}-{seed}"), seed);
                let config =
                    format!("game = \"{name}\"\nseed = {seed}\n[head]\nkind = \"{head}\"\n");
                fs::write(folder.join("config.toml"), config).unwrap();
                let mut report = evaluation(200, 10 + seed, matched());
                report.setting.task = game(name);
                report.setting.policy = head.into();
                report.episodes.iter_mut().for_each(|episode| episode.raw_return += better);
                let pair = report.setting.task.reference.clone().unwrap();
                let first = &report.episodes[..8];
                let mean = first.iter().map(|e| pair.normalize(e.raw_return)).sum::<f64>() / 8.0;
                scores[usize::from(better > 0.0)] += mean / 8.0;
                report.write(&folder.join("evaluation.json")).unwrap();
                folders.push(folder);
            }
        }
    }
    let folders: Vec<&Path> = folders.iter().map(PathBuf::as_path).collect();
    let whole = page(&folders);
    let csv = file(&whole, "report-agents.csv");
    let (_, numbers) = csv.split_once("matched,linear,\"BankHeist, Seaquest\",4,").unwrap();
    let mean: f64 = numbers.split(',').next().unwrap().parse().unwrap();
    assert!((mean - scores[0]).abs() < 1e-9, "{csv}");
    let csv = file(&whole, "report-improvement.csv");
    assert_eq!(csv.lines().nth(1), Some("matched,linear,fourier,2,0,0,0"));
    let markdown = whole.to_markdown("report");
    let row = |start: &str| {
        let row = markdown.lines().find(|line| line.starts_with(start));
        row.unwrap_or_else(|| panic!("no {start} in\n{markdown}")).to_owned()
    };
    for (head, mean) in [("linear", scores[0]), ("fourier", scores[1])] {
        let row = row(&format!("| {head} | BankHeist, Seaquest | 4 |"));
        assert!(row.contains(&format!("| {mean:.2} \\[")), "{mean} in {row}");
    }
    assert!(row("| linear | fourier | 2 |").contains("| 0.00 \\[0.00, 0.00\\] |"));
    assert!(markdown.contains("](report-profile-matched.svg)"));

    assert!(markdown.contains("### Evaluated with the matched protocol"));
    // Scores with another protocol are not included in the aggregates.
    let released = evaluation(200, 11, released());
    released.write(&folders[0].join("evaluation-released.json")).unwrap();
    let both = page(&folders).to_markdown("report");
    assert!(!both.contains("Evaluated with the released protocol"), "{both}");
    fs::remove_file(folders[0].join("evaluation-released.json")).unwrap();

    // An agent with more runs of one game is not included, and the page has a note.
    let markdown = page(&folders[1..]).to_markdown("report");
    sentences::check_prose(&markdown, "(BankHeist: 4, Seaquest: 3)");
    // One agent on one task has nothing to aggregate.
    let alone = page(&folders[..4]).to_markdown("report");
    assert!(!alone.contains("Agents and tasks"), "{alone}");
}

#[test]
fn differences_and_failed_episodes_are_listed() {
    let root = TempDir::new().unwrap();
    let folder = run(&root, "one", 1);
    let report = evaluation(200, 5, matched());
    let write = |report: &Evaluation, name: &str| report.write(&folder.join(name)).unwrap();
    write(&report, "evaluation.json");
    let plain = page(&[&folder]).to_html();
    let words = "All evaluations use the settings of the recorded data and of training.";
    assert!(plain.contains(words) && !plain.contains("failed"), "{plain}");

    let mut other = evaluation(200, 5, released());
    other.setting.differences = vec![Difference {
        setting: "return_units".into(),
        trained: "clipped".into(),
        played: "raw".into(),
        consequence: "a target means <something> else".into(),
    }];
    other.failed = vec![FailedEpisode {
        target_return: 16.0,
        episode: 8,
        seed: 3,
        length: 7,
        reason: "its emulator died".into(),
    }];
    write(&other, "evaluation-released.json");
    let page = page(&[&folder]);
    let markdown = page.to_markdown("report");
    let row =
        "| released | return\\_units | clipped | raw | a target means &lt;something&gt; else |";
    assert!(markdown.contains(row), "{markdown}");
    assert!(!page.to_html().contains("<something>"));
    assert!(markdown.contains("1 of 17 episodes failed"), "{markdown}");
}
