//! The page about runs: what is on it, what is kept apart, and that text from files stays text.

#![allow(clippy::unwrap_used, reason = "the helpers of tests are tests too")]

use std::fs;
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};

use overtone_core::Play;
use overtone_core::protocol::{Difference, Emulation, Protocol, ReturnUnits};
use overtone_env::{Corridor, VectorEnv};
use overtone_eval::page::{Page, PageError, RunFiles};
use overtone_eval::statistics::Bootstrap;
use overtone_eval::{
    ActionShare, CheckpointRef, Convention, Evaluation, FailedEpisode, Plan, RandomPolicy,
    ReportError, Setting, rollout,
};
use overtone_plot::{Animation, Image};
use tempfile::TempDir;

const QUICK: Bootstrap = Bootstrap { replications: 500, level: 0.95, seed: 1 };

/// Random play by the weights of `step` of a run.
fn evaluation(step: u64, seed: u64, protocol: Protocol) -> Evaluation {
    let return_units = ReturnUnits::Clipped;
    let plan = Plan { episodes: 8, targets: vec![16.0, 32.0], seed, return_units };
    let mut env = Corridor::new(4, 6, 12, 0.2);
    let mut policy = RandomPolicy::new(env.action_space().clone(), 4);
    let played = rollout(&mut env, &mut policy, &plan, &mut |_| ControlFlow::Continue(()));
    let setting = Setting {
        task: "Seaquest".into(),
        simulator: "a corridor".into(),
        rom_md5: Some("0123".into()),
        policy: "uniform random".into(),
        protocol: Play::Atari(protocol),
        differences: None,
        checkpoint: Some(CheckpointRef { path: format!("checkpoints/step-{step}").into(), step }),
        dataset_hash: Some("beef".into()),
        command: format!("just evaluate rollouts checkpoint={step} seed={seed}"),
        reference: Convention::default_for("Seaquest"),
    };
    Evaluation::new(setting, &plan, played.unwrap()).unwrap()
}

fn matched() -> Protocol {
    Protocol::matched(&Emulation::dqn_replay())
}

/// The folder of a run of 200 updates with two checkpoints, not played yet.
fn run(root: &TempDir, name: &str, seed: u64) -> PathBuf {
    let folder = root.path().join(name);
    for step in ["step-00000100", "step-00000200"] {
        fs::create_dir_all(folder.join("checkpoints").join(step)).unwrap();
    }
    let config = format!("game = \"seaquest\"\nseed = {seed}\n\n[train]\nupdates = 200\n");
    fs::write(folder.join("config.toml"), config).unwrap();
    let metrics = "step,loss,learning_rate,grad_norm\n100,2.5,1e-4,0.5\n200,1.5,2e-4,0.25\n";
    fs::write(folder.join("metrics.csv"), metrics).unwrap();
    folder
}

fn page(folders: &[&Path]) -> Page {
    let runs: Vec<RunFiles> =
        folders.iter().map(|folder| RunFiles::read(folder).unwrap()).collect();
    Page::new(&runs, &QUICK).unwrap()
}

fn file(page: &Page, name: &str) -> String {
    let files = page.files("report");
    let found = files.into_iter().find(|(file, _)| file == name);
    String::from_utf8(found.unwrap_or_else(|| panic!("no {name}")).1).unwrap()
}

/// The names of all tags. Panics where one is not closed, or closed by another.
#[track_caller]
fn tags(html: &str) -> Vec<String> {
    let (mut open, mut seen) = (Vec::new(), Vec::new());
    for part in html.split('<').skip(1) {
        let (tag, _) = part.split_once('>').unwrap();
        let name: String = tag.chars().take_while(|c| !c.is_whitespace() && *c != '/').collect();
        match tag.strip_prefix('/') {
            Some(name) => assert_eq!(open.pop().as_deref(), Some(name), "closed"),
            None => {
                seen.push(name.clone());
                if !tag.ends_with('/') && !["!DOCTYPE", "meta", "img"].contains(&name.as_str()) {
                    open.push(name);
                }
            }
        }
    }
    assert!(open.is_empty(), "not closed: {open:?}");
    seen
}

#[test]
fn a_played_run_has_scores_protocol_curves_and_every_episode() {
    let root = TempDir::new().unwrap();
    let folder = run(&root, "one", 1);
    let report = evaluation(200, 5, matched());
    report.write(&folder.join("evaluation.json")).unwrap();
    let page = page(&[&folder]);
    let html = page.to_html();
    for part in [
        "<title>Run one</title>",
        "Last checkpoint of each run",
        "Normalized by wang2016: random 0, human 100, scores of Wang et al. 2016 (68 and 42055).",
        "95 % percentile intervals of 500 bootstrap replications, seed 1",
        "emulation.sticky_probability",
        "training loss",
        "<summary>All 16 episodes of evaluation.json</summary>",
        "just evaluate rollouts checkpoint=200 seed=5",
        "updates = 200",
    ] {
        assert!(html.contains(part), "no {part:?} in\n{html}");
    }
    for absent in ["Chosen", "Over training seeds", "Last, held-out", "differs"] {
        assert!(!html.contains(absent), "{absent}");
    }
    // Header, 16 episodes; all digits.
    let episodes = file(&page, "report-episodes.csv");
    assert_eq!(episodes.lines().count(), 17);
    let scores = file(&page, "report-scores.csv");
    let row: Vec<&str> = scores.lines().nth(2).unwrap().split(',').collect();
    let target = &report.targets[1];
    assert_eq!(row[5..9], ["last", "200", "32", "8"], "{scores}");
    assert_eq!(row[9].parse::<f64>().unwrap(), target.raw_return.mean);
    let [iqm, low, high] = [12, 13, 14].map(|column| row[column].parse::<f64>().unwrap());
    assert!(low <= iqm && iqm <= high && low < high, "{scores}");
    assert_eq!(iqm, target.raw_return.iqm, "one definition");
}

#[test]
fn the_page_needs_nothing_else_and_is_well_formed() {
    let root = TempDir::new().unwrap();
    let folder = run(&root, "one", 1);
    evaluation(200, 5, matched()).write(&folder.join("evaluation.json")).unwrap();
    let html = page(&[&folder]).to_html();
    tags(&html);
    for loads in ["<script", "<link", "<img", "src=", "href=", "url(", "@import"] {
        assert!(!html.contains(loads), "{loads}");
    }
    assert!(html.contains("default-src 'none'"));
    assert!(html.contains("prefers-color-scheme: dark"));
}

#[test]
fn markdown_and_csv_hold_the_same_tables() {
    let root = TempDir::new().unwrap();
    let folder = run(&root, "one", 1);
    evaluation(200, 5, matched()).write(&folder.join("evaluation.json")).unwrap();
    let page = page(&[&folder]);
    let written = page.write(&folder, "report").unwrap();
    assert_eq!(fs::read_to_string(written).unwrap(), page.to_html());
    let markdown = fs::read_to_string(folder.join("report.md")).unwrap();
    let rows = |page: &str, mark: &str| page.lines().filter(|line| line.contains(mark)).count();
    assert_eq!(rows(&markdown, "matched | 200 |"), 2, "{markdown}");
    for plot in ["loss", "learning-rate", "grad-norm"] {
        assert!(markdown.contains(&format!("](report-{plot}.svg)")), "{markdown}");
        let svg = fs::read_to_string(folder.join(format!("report-{plot}.svg"))).unwrap();
        tags(&svg);
    }
    let names = fs::read_dir(&folder).unwrap().map(|entry| entry.unwrap().file_name());
    assert!(names.into_iter().all(|name| !name.to_string_lossy().ends_with(".part")));
    // And the page is no evaluation: it can be made again.
    RunFiles::read(&folder).unwrap();
}

#[test]
fn actions_and_videos_are_pictures_inside_the_page() {
    let root = TempDir::new().unwrap();
    let folder = run(&root, "one", 1);
    let mut report = evaluation(200, 5, matched());
    let share = |action: &str, share| ActionShare { action: action.into(), share };
    report.targets[1].actions = Some(vec![share("LEFT", 0.25), share("RIGHT", 0.75)]);
    report.write(&folder.join("evaluation.json")).unwrap();
    let mut animation = Animation::new(Vec::new(), [2, 1]).unwrap();
    animation.push(&Image::filled(2, 1, [255, 0, 0]), 10).unwrap();
    let gif = animation.finish().unwrap();
    fs::write(folder.join("video.gif"), &gif).unwrap();
    let page = page(&[&folder]);
    let html = page.to_html();
    tags(&html);
    assert_eq!(html.matches("src=\"data:image/gif;base64,R0lGOD").count(), 1, "{html}");
    assert!(html.contains(">LEFT</text>") && html.contains("one, matched, target 32"));
    let files = page.files("report");
    assert!(files.contains(&("report-video-1.gif".into(), gif)));
    let markdown = page.to_markdown("report");
    for picture in ["video-1.gif", "actions-1.svg"] {
        assert!(markdown.contains(&format!("](report-{picture})")), "{markdown}");
    }
    // What makes no picture is refused, not shown broken.
    fs::write(folder.join("video.gif"), "<html>").unwrap();
    let error = RunFiles::read(&folder).unwrap_err();
    assert!(matches!(error, PageError::NoVideo { .. }), "{error}");
}

#[test]
fn text_from_files_stays_text() {
    let bad =
        "</pre></td></title></style><script>alert(1)</script>\"'><img src=x onerror=alert(1)>";
    let root = TempDir::new().unwrap();
    // A slash cannot be in a folder's name.
    let folder = run(&root, "<script>alert(1)<img onerror='x' src=\"", 1);
    let config = format!("seed = 1\nname = '''{bad}'''\n");
    fs::write(folder.join("config.toml"), config).unwrap();
    let mut report = evaluation(200, 5, Protocol { name: bad.into(), ..matched() });
    let setting = &mut report.setting;
    for text in
        [&mut setting.task, &mut setting.simulator, &mut setting.policy, &mut setting.command]
    {
        *text = bad.into();
    }
    setting.rom_md5 = Some(bad.into());
    setting.dataset_hash = Some(bad.into());
    setting.checkpoint = Some(CheckpointRef { path: bad.into(), step: 200 });
    report.write(&folder.join(format!("evaluation{}.json", "<script>"))).unwrap();
    report.setting.protocol = Play::Atari(matched());
    report.write(&folder.join("evaluation.json")).unwrap();

    let page = page(&[&folder, &folder]);
    let html = page.to_html();
    let ours = [
        "!DOCTYPE",
        "html",
        "head",
        "meta",
        "title",
        "style",
        "body",
        "h1",
        "h2",
        "h3",
        "p",
        "pre",
        "div",
        "table",
        "tr",
        "th",
        "td",
        "details",
        "summary",
        "figure",
        "svg",
        "text",
        "polyline",
        "circle",
        "rect",
        "figcaption",
    ];
    let foreign: Vec<String> =
        tags(&html).into_iter().filter(|tag| !ours.contains(&tag.as_str())).collect();
    assert!(foreign.is_empty(), "{foreign:?}");
    for name in ["report-loss.svg", "report.md"] {
        let text = file(&page, name);
        // In Markdown, only what stands between fences may look like markup.
        let outside = text.split("\n```").step_by(2).collect::<String>();
        assert!(!outside.contains("<script") && !outside.contains("<img"), "{outside}");
    }
    assert!(!file(&page, "report-scores.csv").contains("\n</pre>"), "one row is one row");
}

#[test]
fn last_chosen_and_best_are_kept_apart() {
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

/// What a run that held episodes out writes of itself, the lowest loss after `best` updates.
fn hold_out(folder: &Path, best: u64) {
    let state = format!("{{\"step\": 200, \"best\": {{\"step\": {best}, \"loss\": 1.5}}}}");
    fs::write(folder.join("checkpoints/step-00000200/state.json"), state).unwrap();
}

#[test]
fn three_ways_to_pick_a_checkpoint_are_three_columns() {
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
    let told = |report: &Evaluation, step: u64| {
        let summary = &report.targets[0].raw_return;
        format!("{:.1} ± {:.1} ({step})", summary.mean, summary.sd.unwrap())
    };
    let best_step = best.setting.checkpoint.as_ref().unwrap().step;
    let expected = [told(&reports[2], 200), told(&reports[0], 100), told(best, best_step)];
    assert_eq!(cells[4..7], expected, "{row}");
    // Each has its own table of scores, and none stands in another's.
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
        let told = seeds.lines().filter(|row| row.contains(&format!(",{role},")));
        assert_eq!(told.filter(|row| row.contains(",2,1 2,")).count(), 2, "{role}: {seeds}");
    }
    // The episodes of each evaluation are told once: 2 runs of 2 with 2 targets of 8.
    assert_eq!(file(&page, "report-episodes.csv").lines().count(), 1 + 64);
    let markdown = page.to_markdown("report");
    assert_eq!(markdown.matches("| s2 | matched | 16 | 2 |").count(), 1, "{markdown}");
    // A state that cannot be read is told, not passed over.
    fs::write(folders[0].join("checkpoints/step-00000200/state.json"), "{").unwrap();
    assert!(matches!(RunFiles::read(&folders[0]), Err(PageError::State { .. })));
}

#[test]
fn protocols_stand_side_by_side() {
    let root = TempDir::new().unwrap();
    let folder = run(&root, "one", 1);
    evaluation(200, 5, matched()).write(&folder.join("evaluation.json")).unwrap();
    let released = evaluation(200, 5, Protocol::released());
    released.write(&folder.join("evaluation-released.json")).unwrap();
    let markdown = page(&[&folder]).to_markdown("report");
    assert!(markdown.contains("| setting | matched | released |  |"), "{markdown}");
    assert!(markdown.contains("| emulation.max\\_noops | 0 | 29 | differs |"), "{markdown}");
    assert!(markdown.contains("Scores by different protocols may not be compared."));
}

#[test]
fn runs_that_differ_in_their_seed_are_put_together() {
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
    // Seed 3 again: the same agent. Another number of updates: another agent.
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
    let row = page.to_markdown("report");
    let row = row.lines().find(|row| row.contains("| s1 |") && row.contains("| 1 2 3 |"));
    assert!(row.unwrap().starts_with("| s1 | Seaquest | matched | 16 | 3 | 1 2 3 |"), "{row:?}");
    let left_out = "evaluation.json of again (target 16) is left out: seed 3 is there already, \
                    from evaluation.json of s3.";
    assert!(page.to_html().contains(left_out));
    assert!(page.to_html().contains("like s1 was trained on transitions of its own"));
}

#[test]
fn a_run_that_was_not_played_still_has_a_page() {
    let root = TempDir::new().unwrap();
    let folder = run(&root, "one", 1);
    let html = page(&[&folder]).to_html();
    assert!(html.contains("No evaluation was found") && html.contains("training loss"), "{html}");
    fs::remove_file(folder.join("metrics.csv")).unwrap();
    tags(&page(&[&folder]).to_html());
}

#[test]
fn what_cannot_be_told_is_refused() {
    assert!(matches!(Page::new(&[], &QUICK), Err(PageError::NoRun)));
    let root = TempDir::new().unwrap();
    assert!(matches!(RunFiles::read(root.path()), Err(PageError::File { .. })));

    let folder = run(&root, "one", 1);
    let path = folder.join("evaluation.json");
    let read = || RunFiles::read(&folder).map(drop);
    let mut report = evaluation(200, 5, matched());
    report.episodes.pop();
    report.write(&path).unwrap();
    let error = read().unwrap_err();
    assert!(matches!(error, PageError::Contradiction { listed: 7, told: 8, .. }), "{error}");

    fs::write(&path, "{}").unwrap();
    let format = |error| matches!(error, PageError::Evaluation(ReportError::Format { .. }));
    assert!(format(read().unwrap_err()));
    fs::remove_file(&path).unwrap();

    fs::write(folder.join("metrics.csv"), "step,loss\n1,2,3\n").unwrap();
    assert!(matches!(read(), Err(PageError::Metrics { line: 2, .. })));
    fs::write(folder.join("metrics.csv"), "").unwrap();
    fs::write(folder.join("config.toml"), "seed = ").unwrap();
    assert!(matches!(read(), Err(PageError::Config { .. })));
}

#[test]
fn agents_are_compared_over_tasks() {
    let root = TempDir::new().unwrap();
    let mut folders = Vec::new();
    // Two heads on two games, two seeds each; the second always scores 100 points more.
    let mut scores = [0.0; 2];
    for (head, better) in [("linear", 0.0), ("fourier", 100.0)] {
        for game in ["Seaquest", "BankHeist"] {
            for seed in [1, 2] {
                let folder = run(&root, &format!("{head}-{game}-{seed}"), seed);
                let config =
                    format!("game = \"{game}\"\nseed = {seed}\n[head]\nkind = \"{head}\"\n");
                fs::write(folder.join("config.toml"), config).unwrap();
                let mut report = evaluation(200, 10 + seed, matched());
                report.setting.task = game.into();
                report.setting.policy = head.into();
                report.setting.reference = Convention::default_for(game);
                report.episodes.iter_mut().for_each(|episode| episode.raw_return += better);
                let pair = report.setting.reference.unwrap();
                let first = &report.episodes[..8];
                let mean = first.iter().map(|e| pair.normalize(e.raw_return)).sum::<f64>() / 8.0;
                scores[usize::from(better > 0.0)] += mean / 4.0;
                report.write(&folder.join("evaluation.json")).unwrap();
                folders.push(folder);
            }
        }
    }
    let folders: Vec<&Path> = folders.iter().map(PathBuf::as_path).collect();
    let markdown = page(&folders).to_markdown("report");
    let row = |start: &str| {
        let row = markdown.lines().find(|line| line.starts_with(start));
        row.unwrap_or_else(|| panic!("no {start} in\n{markdown}")).to_owned()
    };
    for (head, mean) in [("linear", scores[0]), ("fourier", scores[1])] {
        let row = row(&format!("| {head} | BankHeist, Seaquest | 2 |"));
        assert!(row.contains(&format!("| {mean:.2} \\[")), "{mean} in {row}");
    }
    assert!(row("| linear | fourier | 2 |").contains("| 0.00 \\[0.00, 0.00\\] |"));
    assert!(markdown.contains("](report-profile-matched.svg)"));

    assert!(markdown.contains("### Played by the matched protocol"));
    // Played by another protocol too: nothing that may not be compared is put together.
    let released = evaluation(200, 11, Protocol::released());
    released.write(&folders[0].join("evaluation-released.json")).unwrap();
    let both = page(&folders).to_markdown("report");
    assert!(!both.contains("Played by the released protocol"), "{both}");
    fs::remove_file(folders[0].join("evaluation-released.json")).unwrap();

    // A run more of one game: the agent is left out, and it is said.
    let markdown = page(&folders[1..]).to_markdown("report");
    assert!(markdown.contains("linear has unequally many runs of its tasks (2, 1)"));
    // One agent, one task: nothing to put together.
    let alone = page(&folders[..2]).to_markdown("report");
    assert!(!alone.contains("Agents and tasks"), "{alone}");
}

#[test]
fn differences_stand_under_the_protocols_and_failed_episodes_beside_the_others() {
    let root = TempDir::new().unwrap();
    let folder = run(&root, "one", 1);
    let mut report = evaluation(200, 5, matched());
    let write = |report: &Evaluation, name: &str| report.write(&folder.join(name)).unwrap();
    write(&report, "evaluation.json");
    let plain = page(&[&folder]).to_html();
    assert!(!plain.contains("recorded and trained") && !plain.contains("failed"), "not known");

    report.setting.differences = Some(Vec::new());
    write(&report, "evaluation.json");
    let words = "Everything was played as the data was recorded and the agents trained.";
    assert!(page(&[&folder]).to_html().contains(words));

    let mut other = evaluation(200, 5, Protocol::released());
    other.setting.differences = Some(vec![Difference {
        setting: "return_units".into(),
        trained: "clipped".into(),
        played: "raw".into(),
        consequence: "a target means <something> else".into(),
    }]);
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
