//! The page of a study: cells of one task beside each other, called by what differs.

use std::fs;

use overtone_core::Play;
use overtone_report::page::{Page, RunFiles, StudyCell};
use tempfile::TempDir;

use super::{QUICK, evaluation, file, game, matched, run, tags};

/// Two agents on two games with these seeds, at two temperatures; the second agent always scores
/// 100 points more.
fn cells(root: &TempDir, seeds: &[u64]) -> Vec<StudyCell> {
    let mut cells = Vec::new();
    for (agent, better) in [("head=linear", 0.0), ("head=fourier", 100.0)] {
        for name in ["seaquest", "bank_heist"] {
            let runs = seeds.iter().map(|&seed| {
                let folder = run(root, &format!("{agent}-{name}-{seed}"), seed);
                for (file, temperature) in [("evaluation.json", 1.0), ("evaluation-t0.5.json", 0.5)]
                {
                    let played = Play { temperature, ..matched() };
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
                missing: 0,
            });
        }
    }
    cells
}

/// The first cells of the rows of the first table under a heading.
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
fn cells_of_one_task_stand_beside_each_other() {
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
    assert!(markdown.contains("In every row: seeds 1 2 3 4."), "{markdown}");
    // A section for each temperature, with the agents by the study's words.
    for protocol in [warm, cold] {
        let agents = rows(&markdown, &format!("### Played by the {protocol} protocol\n"), 3);
        let tasks = "BankHeist, Seaquest";
        assert_eq!(agents[1..], [["head=linear", tasks, "4"], ["head=fourier", tasks, "4"]]);
    }
    assert!(markdown.contains("| head=linear | head=fourier | 2 | 0.00 \\[0.00, 0.00\\] |"));
    // Lines of one task in one plot.
    for (i, game) in ["Seaquest", "BankHeist"].iter().enumerate() {
        assert!(markdown.contains(&format!("{game}: training loss\n")), "{markdown}");
        let svg = file(&page, &format!("report-loss-{}.svg", i + 1));
        assert!(svg.contains(">head=linear</text>") && svg.contains(">head=fourier</text>"));
        assert_eq!(svg.matches("<polygon").count(), 2, "a band each: {svg}");
    }
    let html = page.to_html();
    tags(&html);
    let group = "<th class=\"group\" colspan=\"6\">BankHeist, protocol matched (temperature 0.5), \
                 target 32</th>";
    // What is read of single runs is there, and does not stand in the way.
    let (before, after) = html.split_once("<summary>Each of its 16 runs: ").unwrap();
    assert!(!before.contains("Last checkpoint of each run"), "{before}");
    assert!(before.contains(group), "{before}");
    assert!(!before.contains("<td class=\"left\">BankHeist</td>"), "{before}");
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
    assert!(markdown.contains("In every row: task Seaquest; seeds 1 2."), "{markdown}");
    assert!(markdown.contains("2 of the study's runs were not played yet"), "{markdown}");
    file(&page, "report-loss.svg");
    // A cell alone is called by its policy.
    cells.truncate(1);
    cells[0].agent.clear();
    fs::remove_dir_all(root.path()).unwrap();
    let alone = Page::of_study("heads", &cells, &QUICK).unwrap().to_markdown("report");
    assert_eq!(rows(&alone, "### Last checkpoints", 2)[0], ["protocol", "target"]);
    assert!(!alone.contains("Agents and tasks"), "{alone}");
}
