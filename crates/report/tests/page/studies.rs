//! The page of a study: cells of one task are compared and named after their differing settings.

use std::fs;

use overtone_core::{ActingMode, Play};
use overtone_eval::{Evaluation, FailedEpisode};
use overtone_report::page::{FailedRun, Page, RunFiles, StudyCell};
use overtone_testkit::sentences;
use tempfile::TempDir;

use super::{QUICK, checkpoints::hold_out, evaluation, file, game, matched, run, tags};

/// Cells of two agents on two games with these seeds, evaluated at two temperatures. The second
/// agent always scores 100 points more.
fn cells(root: &TempDir, seeds: &[u64]) -> Vec<StudyCell> {
    let mut cells = Vec::new();
    for (agent, better) in [("head=linear", 0.0), ("head=fourier", 100.0)] {
        for name in ["seaquest", "bank_heist"] {
            let runs = seeds.iter().map(|&seed| {
                let folder = run(root, &format!("{agent}-{name}-{seed}"), seed);
                for (file, temperature) in [("evaluation.json", 1.0), ("evaluation-t0.5.json", 0.5)]
                {
                    let acting = ActingMode { temperature, ..ActingMode::default() };
                    let played = Play { acting, ..matched() };
                    let mut report = evaluation(200, 10 + seed, played);
                    report.setting.task = game(name);
                    report.episodes.iter_mut().for_each(|episode| episode.raw_return += better);
                    report.write(&folder.join(file)).unwrap();
                }
                RunFiles::read(&folder).unwrap()
            });
            cells.push(StudyCell {
                label: format!("game={name} {agent}"),
                task: game(name).title,
                agent: agent.into(),
                runs: runs.collect(),
                failed: Vec::new(),
                missing: 0,
            });
        }
    }
    cells
}

/// The first `n` columns of the first table under a heading.
fn rows(markdown: &str, heading: &str, n: usize) -> Vec<Vec<String>> {
    let (_, section) = markdown.split_once(heading).unwrap_or_else(|| panic!("no {heading}"));
    let rows = section.lines().skip_while(|line| !line.starts_with('|'));
    let rows = rows.take_while(|line| line.starts_with('|')).filter(|line| !line.contains("---"));
    let cells = |row: &str| {
        let cells = row.trim_matches(['|', ' ']).split(" | ");
        cells.take(n).map(str::to_owned).collect()
    };
    rows.map(cells).collect()
}

#[test]
fn cells_of_one_task_are_adjacent() {
    let root = TempDir::new().unwrap();
    let cells = cells(&root, &[1, 2, 3, 4]);
    let page = Page::of_study("heads", &cells, &QUICK).unwrap();
    let markdown = page.to_markdown("report");
    let table = rows(&markdown, "### Last checkpoints\n", 4);
    assert_eq!(table[0], ["task", "protocol", "target", "cell"]);
    let (warm, cold) = ("matched (temperature 1.0)", "matched (temperature 0.5)");
    let mut expected: Vec<[&str; 4]> = Vec::new();
    for game in ["Seaquest", "BankHeist"] {
        for protocol in [warm, cold] {
            for target in ["16", "32"] {
                for head in ["head=linear", "head=fourier"] {
                    expected.push([game, protocol, target, head]);
                }
            }
        }
    }
    assert_eq!(table[1..], expected);
    assert!(markdown.contains("In every row: seeds 1 2 3 4; choosing episodes 0."), "{markdown}");
    assert!(
        markdown.contains(" | success IQM \\[interval\\] | success mean ± sd | "),
        "{markdown}"
    );
    // Each temperature has a section, and agents have the names from the study.
    for protocol in [warm, cold] {
        let agents = rows(&markdown, &format!("### Evaluated with the {protocol} protocol\n"), 3);
        let tasks = "BankHeist, Seaquest";
        assert_eq!(agents[1..], [["head=linear", tasks, "4"], ["head=fourier", tasks, "4"]]);
    }
    assert!(markdown.contains("| head=linear | head=fourier | 2 | 0.00 \\[0.00, 0.00\\] |"));
    // All lines of a task are in one plot.
    for (i, game) in ["Seaquest", "BankHeist"].iter().enumerate() {
        assert!(markdown.contains(&format!("{game}: training loss\n")), "{markdown}");
        let svg = file(&page, &format!("report-loss-{}.svg", i + 1));
        assert!(svg.contains(">head=linear</text>") && svg.contains(">head=fourier</text>"));
        assert_eq!(svg.matches("<polygon").count(), 2, "a band each: {svg}");
    }
    let html = page.to_html();
    tags(&html);
    let group = "<th class=\"group\" scope=\"rowgroup\" colspan=\"8\">BankHeist, protocol matched \
                 (temperature 0.5), target 32</th>";
    // Details of single runs are in a folded section.
    let (before, after) = html.split_once("<summary>Each of its 16 runs: ").unwrap();
    assert!(!before.contains("Last checkpoint of each run"), "{before}");
    assert!(before.contains(group), "{before}");
    assert!(!before.contains(">BankHeist</t"), "{before}");
    assert!(after.contains("Last checkpoint of each run") && after.contains("config.toml"));
    let csv = file(&page, "report-cells.csv");
    let row: Vec<&str> = csv.lines().nth(1).unwrap().split(',').collect();
    assert_eq!(row[..6], ["game=seaquest head=linear", "Seaquest", warm, "last", "16", "4"]);
}

#[test]
fn a_study_of_one_task_does_not_repeat_it() {
    let root = TempDir::new().unwrap();
    let mut cells = cells(&root, &[1, 2]);
    cells.retain(|cell| cell.task == "Seaquest");
    cells[1].missing = 2;
    let page = Page::of_study("heads", &cells, &QUICK).unwrap();
    let markdown = page.to_markdown("report");
    assert!(markdown.starts_with("# Study heads: 2 seeds, no comparison\n"), "{markdown}");
    let table = rows(&markdown, "### Last checkpoints: 2 seeds, no comparison\n", 3);
    assert_eq!(table[0], ["protocol", "target", "cell"]);
    assert!(
        markdown.contains("In every row: task Seaquest; seeds 1 2; choosing episodes 0."),
        "{markdown}"
    );
    sentences::check_prose(&markdown, "2 runs");
    file(&page, "report-loss.svg");
    // A single cell is named after its policy.
    cells.truncate(1);
    cells[0].agent.clear();
    fs::remove_dir_all(root.path()).unwrap();
    let alone = Page::of_study("heads", &cells, &QUICK).unwrap().to_markdown("report");
    assert_eq!(rows(&alone, "### Last checkpoints", 2)[0], ["protocol", "target"]);
    assert!(!alone.contains("Agents and tasks"), "{alone}");
}

/// The reports of a run by file name, and its best checkpoint.
type Played<'a> = (Vec<(&'a str, Evaluation)>, Option<u64>);

/// A cell of Seaquest runs with seeds from 1. Each run has its evaluations by file and the update
/// of its lowest held-out loss.
fn cell(root: &TempDir, runs: &[Played<'_>]) -> StudyCell {
    let read = |(seed, (evaluations, best)): (u64, &Played<'_>)| {
        let folder = run(root, &format!("s{seed}"), seed);
        if let Some(best) = best {
            hold_out(&folder, *best);
        }
        for (file, evaluation) in evaluations {
            evaluation.write(&folder.join(file)).unwrap();
        }
        RunFiles::read(&folder).unwrap()
    };
    StudyCell {
        label: "all".into(),
        task: "Seaquest".into(),
        agent: String::new(),
        runs: (1..).zip(runs).map(read).collect(),
        failed: Vec::new(),
        missing: 0,
    }
}

/// Checkpoint, target and seeds of each row of the cells table.
fn scored(page: &Page) -> Vec<[String; 3]> {
    let csv = file(page, "report-cells.csv");
    let rows = csv.lines().skip(1).map(|line| line.split(',').collect::<Vec<_>>());
    rows.map(|row| [row[3], row[4], row[6]].map(str::to_owned)).collect()
}

#[test]
fn a_target_whose_episodes_all_failed_keeps_its_index() {
    let root = TempDir::new().unwrap();
    let whole = || evaluation(200, 5, matched());
    let mut failed = whole();
    failed.episodes.retain(|episode| episode.target_return == 32.0);
    failed.targets.remove(0);
    failed.failed = vec![FailedEpisode {
        target_return: 16.0,
        episode: 0,
        seed: 3,
        length: 7,
        reason: "its emulator died".into(),
    }];
    // Three percentiles; for the other runs two of them are the same return.
    let mut three = whole();
    three.target_returns = vec![16.0, 32.0, 48.0];
    let all = [whole(), failed, three].map(|report| (vec![("evaluation.json", report)], None));
    let page = Page::of_study("one", &[cell(&root, &all)], &QUICK).unwrap();
    let expected = [["last", "16", "1 3"], ["last", "32", "1 2"], ["last", "32", "3"]];
    assert_eq!(scored(&page), expected);
    // The warning is on the open part of the page.
    let html = page.to_html();
    let (before, _) = html.split_once("<details>").unwrap();
    assert!(before.contains("Warning: evaluation.json of s2: 1 of 9 episodes failed"), "{before}");
}

#[test]
fn held_out_selected_checkpoints_with_different_updates_share_a_row() {
    let root = TempDir::new().unwrap();
    let at_step = |step| (format!("evaluation-{step}.json"), evaluation(step, 5, matched()));
    let files = [100, 200].map(at_step);
    let files: Vec<(&str, Evaluation)> =
        files.iter().map(|(file, report)| (file.as_str(), report.clone())).collect();
    let runs = [100, 200].map(|best| (files.clone(), Some(best)));
    let page = Page::of_study("one", &[cell(&root, &runs)], &QUICK).unwrap();
    for target in ["16", "32"] {
        let row = ["held-out", target, "1 2"].map(str::to_owned);
        assert!(scored(&page).contains(&row), "{:?}", scored(&page));
    }
}

#[test]
fn a_study_aggregates_stopped_runs_without_a_note() {
    let root = TempDir::new().unwrap();
    let at_step = |step| vec![("evaluation.json", evaluation(step, 5, matched()))];
    let mut all = cell(&root, &[(at_step(200), None), (at_step(100), None)]);
    all.runs[1].last_step = Some(100);
    let page = Page::of_study("one", &[all], &QUICK).unwrap();
    assert_eq!(scored(&page)[0], ["last", "16", "1 2"]);
    assert!(!page.to_markdown("report").contains("not aggregated over seeds"));
}

#[test]
fn cells_without_a_run_do_not_affect_other_cells() {
    let root = TempDir::new().unwrap();
    let mut cells = cells(&root, &[1, 2]);
    cells[1].runs.clear();
    cells[1].missing = 2;
    let markdown = Page::of_study("heads", &cells, &QUICK).unwrap().to_markdown("report");
    let title = "# Study heads: 2 seeds, no comparison; some cells not evaluated yet\n";
    assert!(markdown.starts_with(title), "{markdown}");
    assert!(markdown.contains("### Last checkpoints: 2 seeds, no comparison\n"), "{markdown}");
}

#[test]
fn a_run_with_non_finite_loss_does_not_affect_the_curve_of_other_runs() {
    let root = TempDir::new().unwrap();
    let evaluations = || vec![("evaluation.json", evaluation(200, 5, matched()))];
    let mut all = cell(&root, &[(evaluations(), None), (evaluations(), None)]);
    let broken = all.runs[1].metrics.as_mut().unwrap();
    broken.columns.get_mut("loss").unwrap()[1] = f64::NAN;
    let page = Page::of_study("one", &[all], &QUICK).unwrap();
    let svg = file(&page, "report-loss.svg");
    // A single point would be a dot.
    assert!(!svg.contains("<circle"), "{svg}");
    sentences::check_prose(&page.to_markdown("report"), "loss of s2");
}

#[test]
fn failed_runs_are_named() {
    let root = TempDir::new().unwrap();
    let mut cells = cells(&root, &[1, 2, 3, 4]);
    let error = "the loss is not finite".to_owned();
    cells[0].failed.push(FailedRun { name: "linear_s5".into(), error });
    cells[1].runs.clear();
    cells[1].missing = 4;
    let markdown = Page::of_study("heads", &cells, &QUICK).unwrap().to_markdown("report");
    let title = "# Study heads: 1 run failed; some cells not evaluated yet\n";
    assert!(markdown.starts_with(title), "{markdown}");
    sentences::check_prose(&markdown, "linear\\_s5");
    sentences::check_prose(&markdown, "not been evaluated yet");
}

/// The last point is the evaluation after training. One point is not a curve.
#[test]
fn curves_of_returns_end_with_the_evaluation_after_training() {
    let root = TempDir::new().unwrap();
    let evaluations = || vec![("evaluation.json", evaluation(200, 5, matched()))];
    let mut all = cell(&root, &[(evaluations(), None), (evaluations(), None)]);
    let n_points = |all: &StudyCell| {
        let page = Page::of_study("one", std::slice::from_ref(all), &QUICK).unwrap();
        let files = page.files("report");
        let plot = files.into_iter().find(|(name, _)| name == "report-returns.svg")?;
        Some(String::from_utf8(plot.1).unwrap().matches("<circle").count())
    };
    assert_eq!(n_points(&all), None);
    for run in &mut all.runs {
        run.curves.insert("eval/return".into(), vec![[100.0, 3.0]]);
    }
    assert_eq!(n_points(&all), Some(2));
}

/// A plot of all runs comes before any table. With few seeds it is the only comparison.
#[test]
fn the_plot_of_all_runs_comes_first() {
    let root = TempDir::new().unwrap();
    let page = Page::of_study("heads", &cells(&root, &[1, 2, 3, 4]), &QUICK).unwrap();
    let markdown = page.to_markdown("report");
    let (before, _) = markdown.split_once("\n| ").unwrap();
    assert!(before.contains("](report-cells-1.svg)"), "{before}");
    let svg = file(&page, "report-cells-1.svg");
    assert_eq!(svg.matches("<circle").count(), 8, "two cells of four runs: {svg}");
    assert!(markdown.contains("P(X &gt; Y)") && markdown.contains("performance profile"));
    assert_eq!(svg.matches("fill-opacity=\"0.25\"").count(), 2, "an interval each: {svg}");
    assert!(svg.contains(">head=linear</text>") && svg.contains(">head=fourier</text>"), "{svg}");
    let root = TempDir::new().unwrap();
    let few = Page::of_study("heads", &cells(&root, &[1, 2, 3]), &QUICK).unwrap();
    let markdown = few.to_markdown("report");
    assert!(!markdown.contains("P(X &gt; Y)") && !markdown.contains("performance profile"));
    assert_eq!(markdown.matches(": 3 seeds, no comparison\n").count(), 4, "{markdown}");
    assert_eq!(file(&few, "report-cells-1.svg").matches("<circle").count(), 6);
}
