//! Contents of a run's page in each format, and runs without a page.

use std::fs;

use overtone_core::{Play, protocol::ReturnUnits};
use overtone_eval::{ActionProbability, CheckpointRef, PlayedEpisode, ReportError, TargetResult};
use overtone_plot::{Animation, Image};
use overtone_report::page::{Page, PageError, RunFiles};
use tempfile::TempDir;

use super::{QUICK, evaluation, file, matched, page, run, tags};

#[test]
fn the_page_of_an_evaluated_run_has_scores_protocol_curves_and_all_episodes() {
    let root = TempDir::new().unwrap();
    let folder = run(&root, "one", 1);
    let report = evaluation(200, 5, matched());
    report.write(&folder.join("evaluation.json")).unwrap();
    let page = page(&[&folder]);
    let html = page.to_html();
    for part in [
        "<title>Seaquest</title>",
        "Last checkpoint of each run",
        "Seaquest normalized by wang2016: random 0, human 100, scores of Wang et al. 2016 (68 and 42055).",
        "95 % percentile intervals of 500 bootstrap replications, seed 1",
        "simulation.sticky_probability",
        "training loss",
        "<summary>All 16 episodes of evaluation.json</summary>",
        "overtone evaluate rollouts checkpoint=200 seed=5",
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

/// A corridor's episodes succeed if they arrive.
#[test]
fn success_rates_are_next_to_returns_if_they_are_known() {
    let root = TempDir::new().unwrap();
    let folders = [1, 2, 3].map(|seed| run(&root, &format!("s{seed}"), seed));
    let mut rates = Vec::new();
    for (folder, seed) in folders.iter().zip(5..) {
        let report = evaluation(200, seed, matched());
        rates.push(report.targets[0].success.unwrap().value);
        report.write(&folder.join("evaluation.json")).unwrap();
        let curve = "step,seconds,figure,value\n50,1,eval/return,3\n50,1,eval/success,0.25\n";
        fs::write(folder.join("checkpoints.csv"), curve).unwrap();
    }
    let one = page(&[&folders[0]]);
    let cell = |name: &str, row: usize, column: &str| {
        let csv = file(&one, name);
        let line = |i: usize| csv.lines().nth(i).unwrap().split(',').collect::<Vec<_>>();
        let place = line(0).iter().position(|name| *name == column).unwrap();
        line(row)[place].to_owned()
    };
    assert_eq!(cell("report-scores.csv", 1, "success"), rates[0].to_string());
    let [low, high] = ["success_low", "success_high"]
        .map(|column| cell("report-scores.csv", 1, column).parse::<f64>().unwrap());
    assert!(low < rates[0] && rates[0] < high, "{low} {high}");
    let n = (1..=8).filter(|row| cell("report-episodes.csv", *row, "success") == "true").count();
    assert_eq!(n as f64 / 8.0, rates[0]);
    let markdown = one.to_markdown("report");
    let rate = format!("success {:.2} \\[{low:.2}, {high:.2}\\]", rates[0]);
    assert!(markdown.contains(&rate), "{rate}: {markdown}");
    assert!(markdown.contains("Success rate during training; "), "{markdown}");
    assert_eq!(file(&one, "report-success.svg").matches("<circle").count(), 2);
    // Over seeds: the mean of the runs' rates.
    let seeds = file(&page(&folders.each_ref().map(|folder| folder.as_path())), "report-seeds.csv");
    let columns: Vec<&str> = seeds.lines().next().unwrap().split(',').collect();
    let row: Vec<&str> = seeds.lines().nth(1).unwrap().split(',').collect();
    let number = |name: &str| -> f64 {
        row[columns.iter().position(|column| *column == name).unwrap()].parse().unwrap()
    };
    assert!((number("success_mean") - rates.iter().sum::<f64>() / 3.0).abs() < 1e-12, "{seeds}");
    assert!(number("success_iqm_low") <= number("success_iqm"), "{seeds}");

    let mut unknown = evaluation(200, 5, matched());
    unknown.episodes.iter_mut().for_each(|episode| episode.success = None);
    unknown.targets.iter_mut().for_each(|target| target.success = None);
    unknown.write(&folders[0].join("evaluation.json")).unwrap();
    fs::remove_file(folders[0].join("checkpoints.csv")).unwrap();
    let page = page(&[&folders[0]]);
    let markdown = page.to_markdown("report").to_lowercase();
    assert!(!markdown.contains("success"), "{markdown}");
}

#[test]
fn the_page_is_self_contained_and_well_formed() {
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
    let csv = fs::read_to_string(folder.join("report-scores.csv")).unwrap();
    let mut lines = csv.lines();
    let columns: Vec<&str> = lines.next().unwrap().split(',').collect();
    for (line, target) in lines.by_ref().zip(["16", "32"]) {
        let cells: Vec<&str> = line.split(',').collect();
        let cell = |name: &str| cells[columns.iter().position(|column| *column == name).unwrap()];
        assert_eq!((cell("protocol"), cell("updates"), cell("target")), ("matched", "200", target));
        let mean = format!("{:.1} ", cell("raw_mean").parse::<f64>().unwrap());
        let row = format!("matched | 200 | {target} |");
        let row = markdown.lines().find(|line| line.contains(&row)).unwrap();
        assert!(row.contains(&mean), "{mean}: {row}");
    }
    assert_eq!((lines.next(), csv.lines().count()), (None, 3), "{csv}");
    for plot in ["loss", "learning-rate", "grad-norm"] {
        assert!(markdown.contains(&format!("](report-{plot}.svg)")), "{markdown}");
        let svg = fs::read_to_string(folder.join(format!("report-{plot}.svg"))).unwrap();
        tags(&svg);
    }
    let names = fs::read_dir(&folder).unwrap().map(|entry| entry.unwrap().file_name());
    assert!(names.into_iter().all(|name| !name.to_string_lossy().starts_with('.')));
    // The page is not read as an evaluation, so it can be made again.
    RunFiles::read(&folder).unwrap();
}

#[test]
fn actions_and_videos_are_pictures_inside_the_page() {
    let root = TempDir::new().unwrap();
    let folder = run(&root, "one", 1);
    let mut report = evaluation(200, 5, matched());
    let share =
        |action: &str, share| ActionProbability { action: action.into(), probability: share };
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
    // A page with fewer pictures removes the leftover ones. Other files stay.
    page.write(&folder, "report").unwrap();
    let others = ["report-notes.svg", "report-loss.md", "report-loss-2.svg"];
    others.iter().for_each(|name| fs::write(folder.join(name), "mine").unwrap());
    fs::remove_file(folder.join("video.gif")).unwrap();
    evaluation(200, 5, matched()).write(&folder.join("evaluation.json")).unwrap();
    super::page(&[&folder]).write(&folder, "report").unwrap();
    for name in ["report-video-1.gif", "report-actions-1.svg"] {
        assert!(!folder.join(name).exists(), "{name}");
    }
    for name in others.into_iter().chain(["report-loss.svg"]) {
        assert!(folder.join(name).exists(), "{name}");
    }
    // An invalid picture is an error.
    fs::write(folder.join("video.gif"), "<html>").unwrap();
    let error = RunFiles::read(&folder).unwrap_err();
    assert!(matches!(error, PageError::NoVideo { .. }), "{error}");
}

#[test]
fn omitted_action_plots_are_counted() {
    let root = TempDir::new().unwrap();
    let folder = run(&root, "one", 1);
    let mut report = evaluation(200, 5, matched());
    report.targets[0].actions =
        Some(vec![ActionProbability { action: "LEFT".into(), probability: 1.0 }]);
    let (first, episodes) = (report.targets[0].clone(), report.episodes[..8].to_vec());
    for target_return in [40.0, 41.0, 42.0, 43.0, 44.0] {
        report.targets.push(TargetResult { target_return, ..first.clone() });
        let again = |episode: &PlayedEpisode| PlayedEpisode { target_return, ..episode.clone() };
        report.episodes.extend(episodes.iter().map(again));
    }
    report.write(&folder.join("evaluation.json")).unwrap();
    let html = page(&[&folder]).to_html();
    assert_eq!(html.matches(">LEFT</text>").count(), 4, "{html}");
    let words = "The first 4 targets of an evaluation are shown. 2 targets are omitted.";
    assert!(html.contains(words), "{html}");
}

#[test]
fn too_large_videos_are_listed() {
    let root = TempDir::new().unwrap();
    let folder = run(&root, "one", 1);
    fs::write(folder.join("video.gif"), "GIF89a").unwrap();
    let large = fs::File::create(folder.join("video-large.gif")).unwrap();
    large.set_len((64 << 20) + 1).unwrap();
    let html = page(&[&folder]).to_html();
    assert_eq!(html.matches("<img ").count(), 1, "{html}");
    let words =
        "Too large for this page, but available in the run directories: one: video-large.gif.";
    assert!(html.contains(words), "{html}");
}

#[test]
fn small_returns_have_more_decimals() {
    let root = TempDir::new().unwrap();
    let folder = run(&root, "one", 1);
    let mut report = evaluation(200, 5, matched());
    // The returns were 20 and 0.
    report.episodes.iter_mut().for_each(|episode| episode.raw_return *= -6e-4);
    report.write(&folder.join("evaluation.json")).unwrap();
    let markdown = page(&[&folder]).to_markdown("report");
    assert!(markdown.contains("| -0.0120 to 0.0000 |"), "{markdown}");
    assert!(!markdown.contains("-0.0000"), "{markdown}");
}

#[test]
fn non_finite_values_of_curves_are_noted() {
    let root = TempDir::new().unwrap();
    let folder = run(&root, "one", 1);
    let metrics = "step,loss,grad_norm\n100,2.5,inf\n200,NaN,0.5\n300,NaN,0.5\n";
    fs::write(folder.join("metrics.csv"), metrics).unwrap();
    let html = page(&[&folder]).to_html();
    for words in [
        "The training loss of one is not a finite number from update 200.",
        "The gradient norm before clipping of one is not a finite number at 1 of 3 updates, first \
         at 100.",
    ] {
        assert!(html.contains(words), "{html}");
    }
}

#[test]
fn text_from_files_is_escaped() {
    let bad =
        "</pre></td></title></style><script>alert(1)</script>\"'><img src=x onerror=alert(1)>";
    let root = TempDir::new().unwrap();
    // The name of a directory cannot contain a slash.
    let folder = run(&root, "<script>alert(1)<img onerror='x' src=\"", 1);
    let config = format!("seed = 1\nname = '''{bad}'''\n");
    fs::write(folder.join("config.toml"), config).unwrap();
    let mut report = evaluation(200, 5, Play { name: bad.into(), ..matched() });
    let setting = &mut report.setting;
    for text in
        [&mut setting.task.title, &mut setting.simulator, &mut setting.policy, &mut setting.command]
    {
        *text = bad.into();
    }
    setting.rom_md5 = Some(bad.into());
    setting.dataset_hash = Some(bad.into());
    setting.checkpoint = Some(CheckpointRef { path: bad.into(), step: 200 });
    report.write(&folder.join(format!("evaluation{}.json", "<script>"))).unwrap();
    report.setting.protocol = matched();
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
        "h4",
        "p",
        "pre",
        "div",
        "table",
        "thead",
        "tbody",
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
        // In Markdown, only fenced code may look like markup.
        let outside = text.split("\n```").step_by(2).collect::<String>();
        assert!(!outside.contains("<script") && !outside.contains("<img"), "{outside}");
    }
}

#[test]
fn a_run_without_an_evaluation_has_a_page() {
    let root = TempDir::new().unwrap();
    let folder = run(&root, "one", 1);
    let html = page(&[&folder]).to_html();
    assert!(html.contains("No evaluation found") && html.contains("training loss"), "{html}");
    let played = run(&root, "two", 2);
    evaluation(200, 5, matched()).write(&played.join("evaluation.json")).unwrap();
    let both = page(&[&folder, &played]).to_html();
    assert!(both.contains("Not evaluated, and therefore not in the tables: one."), "{both}");
    fs::remove_file(folder.join("metrics.csv")).unwrap();
    tags(&page(&[&folder]).to_html());
}

#[test]
fn invalid_runs_are_rejected() {
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
    assert!(matches!(error, PageError::Contradiction { listed: 7, counted: 8, .. }), "{error}");

    fs::write(&path, "{}").unwrap();
    let format = |error| matches!(error, PageError::Evaluation(ReportError::Json { .. }));
    assert!(format(read().unwrap_err()));
    fs::remove_file(&path).unwrap();

    fs::write(folder.join("metrics.csv"), "step,loss\n1,2,3\n").unwrap();
    assert!(matches!(read(), Err(PageError::Metrics { line: 2, .. })));
    fs::write(folder.join("metrics.csv"), "").unwrap();
    fs::write(folder.join("config.toml"), "seed = ").unwrap();
    assert!(matches!(read(), Err(PageError::Config { .. })));
}

/// The mean return is compared with the dataset before anything else.
#[test]
fn the_first_screen_compares_the_return_with_the_dataset() {
    let root = TempDir::new().unwrap();
    let folder = run(&root, "one", 1);
    let config = "task = \"mujoco/Hopper\"\nalgorithm = \"iql\"\ndataset = \"medium\"\nseed = 1\n";
    fs::write(folder.join("config.toml"), config).unwrap();
    let metrics = "step,loss,td_loss,seconds\n100,2.5,1.0,30\n200,1.5,0.5,90\n";
    fs::write(folder.join("metrics.csv"), metrics).unwrap();
    let state =
        "{\"step\": 200, \"best\": null, \"episode_returns\": [[10.0, 5], [30.0, 7], [20.0, 6]]}";
    fs::write(folder.join("checkpoints/step-00000200/state.json"), state).unwrap();
    let curve = "step,seconds,figure,value\n50,1,eval/return,3\n50,1,eval/normalized_return,1\n\
                 100,2,eval/return,7\n";
    fs::write(folder.join("checkpoints.csv"), curve).unwrap();
    let mut report = evaluation(200, 5, matched());
    report.setting.task.title = "Hopper".into();
    report.setting.task.return_units = ReturnUnits::Raw;
    report.write(&folder.join("evaluation.json")).unwrap();
    let mut large = evaluation(200, 6, matched());
    large.setting.task = report.setting.task.clone();
    let again = |mut episode: PlayedEpisode| {
        episode.episode += 8;
        episode
    };
    let more: Vec<PlayedEpisode> = large.episodes.iter().cloned().map(again).collect();
    large.episodes.extend(more);
    large.targets.iter_mut().for_each(|target| target.raw_return.n = 16);
    large.write(&folder.join("evaluation-n16.json")).unwrap();

    let page = page(&[&folder]);
    let markdown = page.to_markdown("report");
    let (first, _) = markdown.split_once("## ").unwrap();
    for part in [
        "# Hopper: iql on medium\n",
        "Task Hopper · algorithm iql · dataset medium · 200 updates · 1.5 minutes",
        " over 16 episodes of one training seed (target 16); normalized ",
        " Worse than the recorded mean of 20.0 (3 episodes, best 30.0).",
        "the largest evaluation, evaluation-n16.json. Others: evaluation.json (8 episodes).",
        "](report-episodes.svg)",
        "](report-returns.svg)",
    ] {
        assert!(first.contains(part), "no {part:?} in\n{first}");
    }
    let episodes = file(&page, "report-episodes.svg");
    assert_eq!(episodes.matches("<circle").count(), 16, "{episodes}");
    assert!(episodes.contains(">data, mean</text>") && episodes.contains(">data, best</text>"));
    // Two points from training and the evaluation after it. Dashed lines mark the dataset.
    let returns = file(&page, "report-returns.svg");
    assert_eq!(returns.matches("<circle").count(), 3, "{returns}");
    assert_eq!(returns.matches("stroke-dasharray").count(), 4, "two lines and their names");
    // Figures of the algorithm are shown. Rarely needed sections are folded.
    assert!(markdown.contains("](report-figure-td-loss.svg)"), "{markdown}");
    let html = page.to_html();
    let (open, folded) = html.split_once("<summary>Protocol and modes</summary>").unwrap();
    assert!(!open.contains("<details>") || open.ends_with("<details>\n"), "{open}");
    for part in ["bootstrap replications", "simulation.sticky_probability"] {
        assert!(!open.contains(part) && folded.contains(part), "{part}");
    }
    // Game datasets store clipped rewards, which cannot be compared with scores.
    report.setting.task.return_units = ReturnUnits::Clipped;
    report.write(&folder.join("evaluation.json")).unwrap();
    fs::remove_file(folder.join("evaluation-n16.json")).unwrap();
    assert!(!super::page(&[&folder]).to_markdown("report").contains("recorded mean"));
}

#[test]
fn two_plots_share_a_row_and_fit_a_narrow_screen() {
    let root = TempDir::new().unwrap();
    let folder = run(&root, "one", 1);
    let mut report = evaluation(200, 5, matched());
    report.targets[0].actions =
        Some(vec![ActionProbability { action: "LEFT".into(), probability: 1.0 }]);
    report.write(&folder.join("evaluation.json")).unwrap();
    let html = page(&[&folder]).to_html();
    assert!(html.contains(".plots { columns: 2") && !html.contains("min-width: 40rem"));
    // The bars follow the plot of episodes in the first column.
    let (_, first) = html.split_once("<div class=\"plots\">").unwrap();
    let (first, _) = first.split_once("</div>").unwrap();
    assert_eq!(first.matches("<figure").count(), 2, "{first}");
    let (before, _) = html.split_once(">LEFT</text>").unwrap();
    assert!(before.rsplit_once("<figure").unwrap().1.starts_with('>'), "bars keep their size");
    let (before, _) = html.split_once("<figcaption>training loss").unwrap();
    assert!(before.ends_with("<div class=\"plots one\">\n<figure class=\"plot\">\n"), "{before}");
}

/// A second evaluation with more episodes replaces the bars of the first, and a figure that is the
/// loss itself is not drawn again.
#[test]
fn nothing_is_drawn_twice() {
    let root = TempDir::new().unwrap();
    let folder = run(&root, "one", 1);
    let metrics = "step,loss,action_loss,td_loss\n100,2.5,2.5,1\n200,1.5,1.5,NaN\n";
    fs::write(folder.join("metrics.csv"), metrics).unwrap();
    let mut report = evaluation(200, 5, matched());
    let actions =
        |probability| Some(vec![ActionProbability { action: "LEFT".into(), probability }]);
    report.targets[0].actions = actions(0.37);
    report.write(&folder.join("evaluation.json")).unwrap();
    report.targets[0].actions = actions(0.63);
    for i in 8..16 {
        let episode = PlayedEpisode { episode: i, ..report.episodes[i - 8].clone() };
        report.episodes.push(episode);
    }
    report.targets[0].raw_return.n = 16;
    report.write(&folder.join("evaluation-n16.json")).unwrap();
    let html = page(&[&folder]).to_html();
    assert_eq!(html.matches(">LEFT</text>").count(), 1, "{html}");
    assert!(html.contains(">0.63<") && !html.contains(">0.37<"), "{html}");
    for (title, n) in [("training loss", 1), ("td loss", 1), ("action loss", 0)] {
        assert_eq!(html.matches(&format!("<figcaption>{title}<")).count(), n, "{title}");
    }
}
