//! Agents on the page about runs: how they are distinguished and named, and which runs count.

#![allow(clippy::unwrap_used, reason = "the helpers of tests are tests too")]

use std::fs;
use std::ops::ControlFlow;
use std::path::PathBuf;

use overtone_ale::Game;
use overtone_core::Task;
use overtone_core::protocol::ReturnUnits;
use overtone_env::{Corridor, VectorEnv};
use overtone_eval::statistics::Bootstrap;
use overtone_eval::{
    CheckpointRef, Evaluation, FailedEpisode, Plan, RandomPolicy, Setting, UsedSettings, rollout,
};
use overtone_report::{Filmed, Page, PageError, RunFiles};
use overtone_testkit::sentences;
use tempfile::TempDir;

fn game(name: &str) -> Task {
    Game::named(name).unwrap().task.clone()
}

const QUICK: Bootstrap = Bootstrap { replications: 200, level: 0.95, seed: 1 };

/// An evaluation with four episodes for each target, each with return `score`.
fn evaluation(targets: &[f32], score: f64) -> Evaluation {
    let return_units = ReturnUnits::Clipped;
    let plan = Plan::new(4, targets.to_vec(), 5, return_units);
    let mut env = Corridor::new(4, 6, 12, 0.2);
    let mut policy = RandomPolicy::new(env.action_space().clone(), 4);
    let mut played =
        rollout(&mut env, &mut policy, &plan, &mut |_| ControlFlow::Continue(())).unwrap();
    played.episodes.iter_mut().for_each(|episode| episode.raw_return = score);
    let setting = Setting {
        task: game("seaquest"),
        simulator: "a corridor".into(),
        rom_md5: None,
        policy: "transformer".into(),
        protocol: game("seaquest").matched(None),
        differences: Vec::new(),
        used_settings: UsedSettings::ALL,
        choice: None,
        checkpoint: Some(CheckpointRef { path: "checkpoints/step-200".into(), step: 200 }),
        dataset_hash: None,
        command: "overtone evaluate rollouts".into(),
    };
    Evaluation::new(setting, &plan, played).unwrap()
}

/// The evaluation with all episodes for `target` marked as failed.
fn without(mut evaluation: Evaluation, target: f32) -> Evaluation {
    let (lost, kept) = evaluation.episodes.into_iter().partition(|e| e.target_return == target);
    evaluation.episodes = kept;
    evaluation.targets.retain(|result| result.target_return != target);
    let lost: Vec<overtone_eval::PlayedEpisode> = lost;
    let failed = lost.into_iter().map(|e| FailedEpisode {
        target_return: target,
        episode: e.episode,
        seed: e.seed,
        length: e.length,
        reason: "its emulator died".into(),
    });
    evaluation.failed = failed.collect();
    evaluation
}

/// A temporary directory and the run directories in it.
struct Runs(TempDir, Vec<PathBuf>);

impl Runs {
    fn new() -> Self {
        Self(TempDir::new().unwrap(), Vec::new())
    }

    /// A run of 200 updates with this configuration.
    fn add(&mut self, name: &str, config: &str, evaluation: &Evaluation) {
        let folder = self.0.path().join(name);
        fs::create_dir_all(folder.join("checkpoints/step-00000200")).unwrap();
        fs::write(folder.join("config.toml"), config).unwrap();
        evaluation.write(&folder.join("evaluation.json")).unwrap();
        self.1.push(folder);
    }

    fn markdown(&self) -> String {
        let runs: Vec<RunFiles> =
            self.1.iter().map(|folder| RunFiles::read(folder).unwrap()).collect();
        Page::new(&runs, &QUICK).unwrap().to_markdown("report")
    }
}

/// A configuration for Seaquest with this seed and these lines under `[data]`.
fn config(seed: u64, data: &str) -> String {
    format!("game = \"seaquest\"\nseed = {seed}\n\n[data]\n{data}\n")
}

/// The first cells of the table of agents: name, tasks, runs of each.
fn agents(markdown: &str) -> Vec<[String; 3]> {
    let Some((_, section)) = markdown.split_once("| optimality gap |") else { return Vec::new() };
    let rows = section.lines().skip(2).take_while(|line| line.starts_with('|'));
    rows.map(|row| {
        let cells: Vec<&str> = row.trim_matches(['|', ' ']).split(" | ").collect();
        [cells[0], cells[1], cells[2]].map(|cell| cell.replace('\\', ""))
    })
    .collect()
}

#[test]
fn agents_with_different_data_are_different_agents() {
    let mut runs = Runs::new();
    for (name, percent, score) in [("all", "100.0", 500.0), ("best", "10.0", 900.0)] {
        let data = format!("path = \"/data/{name}\"\ntop_percent = {percent}");
        for seed in 1..=4 {
            let name = format!("{name}-{seed}");
            runs.add(&name, &config(seed, &data), &evaluation(&[16.0], score));
        }
    }
    let markdown = runs.markdown();
    let expected = ["transformer (data.top_percent 100.0)", "transformer (data.top_percent 10.0)"];
    assert_eq!(agents(&markdown), expected.map(|name| [name, "Seaquest", "4"].map(String::from)));
    // The second agent scores higher, so its score was not dropped.
    let compared = "(data.top\\_percent 10.0) | 1 | 0.00 \\[0.00, 0.00\\] |";
    assert!(markdown.contains(compared), "{markdown}");
}

#[test]
fn the_location_of_the_data_does_not_make_another_agent() {
    let mut runs = Runs::new();
    let folders = ["path = \"/a\"\nrun = \"1\"\ncache = \"/c\"", "path = \"/b\"\nrun = \"2\""];
    for (seed, folder) in [(1, folders[0]), (2, folders[1])] {
        runs.add(&format!("s{seed}"), &config(seed, folder), &evaluation(&[16.0], 500.0));
    }
    // A table needs a second agent.
    for seed in [1, 2] {
        let wide = config(seed, folders[0]) + "\n[model]\nd_model = 9\n";
        runs.add(&format!("w{seed}"), &wide, &evaluation(&[16.0], 500.0));
    }
    let expected = ["transformer (model.d_model -)", "transformer (model.d_model 9)"];
    let expected = expected.map(|name| [name, "Seaquest", "2"].map(String::from));
    assert_eq!(agents(&runs.markdown()), expected);
    // The same seed with data from another directory is not included, and the page has a note.
    runs.add("again", &config(1, folders[1]), &evaluation(&[16.0], 900.0));
    let markdown = runs.markdown();
    assert_eq!(agents(&markdown), expected);
    sentences::check_prose(&markdown, "evaluation.json of again");
}

#[test]
fn an_agent_is_the_same_for_every_task() {
    let mut runs = Runs::new();
    for (name, score) in [("seaquest", 500.0), ("gravitar", 900.0)] {
        let mut played = evaluation(&[16.0], score);
        played.setting.task = game(name);
        let config = format!("task = \"ale/{name}\"\nseed = 1\n\n[data]\nlayout = \"{name}\"\n");
        runs.add(name, &config, &played);
    }
    let expected = ["transformer", "Gravitar, Seaquest", "1"].map(String::from);
    assert_eq!(agents(&runs.markdown()), [expected]);
}

#[test]
fn an_agent_that_is_not_included_still_has_a_unique_name() {
    let mut runs = Runs::new();
    let played = evaluation(&[16.0], 500.0);
    let mut other_game = played.clone();
    other_game.setting.task = game("gravitar");
    // Two seeds of one game and one of another are not included.
    runs.add("a1", &config(1, "top_percent = 10.0"), &played);
    runs.add("a2", &config(2, "top_percent = 10.0"), &played);
    runs.add("a3", &config(1, "top_percent = 10.0"), &other_game);
    runs.add("b1", &config(1, "top_percent = 50.0"), &played);
    runs.add("b3", &config(1, "top_percent = 50.0"), &other_game);
    let markdown = runs.markdown();
    let shown = agents(&markdown);
    assert_eq!(shown.len(), 1, "{markdown}");
    assert_eq!(shown[0][0], "transformer (data.top_percent 50.0)");
    sentences::check_prose(&markdown, "transformer (data.top\\_percent 10.0)");
}

#[test]
fn a_run_is_scored_by_its_first_target_only() {
    let mut runs = Runs::new();
    let sound = evaluation(&[16.0, 32.0], 500.0);
    runs.add("a", &config(1, "top_percent = 10.0"), &sound);
    runs.add("b", &config(1, "top_percent = 50.0"), &sound);
    // All episodes for the second target failed. The first target still counts.
    runs.add("c", &config(1, "top_percent = 60.0"), &without(sound.clone(), 32.0));
    assert_eq!(agents(&runs.markdown()).len(), 3);
    assert!(!runs.markdown().contains("not included in the aggregates"));
    runs.add("d", &config(1, "top_percent = 70.0"), &without(sound.clone(), 16.0));
    let markdown = runs.markdown();
    assert_eq!(agents(&markdown).len(), 3, "{markdown}");
    let note = "evaluation.json of d is not included in the aggregates: no episode for its first \
                target return finished.";
    assert_eq!(markdown.matches(note).count(), 1, "{markdown}");
}

#[test]
fn agents_with_different_targets_are_noted() {
    let mut runs = Runs::new();
    runs.add("a", &config(1, "top_percent = 10.0"), &evaluation(&[16.0, 32.0], 500.0));
    runs.add("b", &config(1, "top_percent = 50.0"), &evaluation(&[16.0], 500.0));
    assert!(!runs.markdown().contains("different first target returns"));
    runs.add("c", &config(1, "top_percent = 60.0"), &evaluation(&[32.0, 16.0], 500.0));
    let markdown = runs.markdown().replace('\\', "");
    sentences::check_prose(&markdown, "transformer (data.top_percent 60.0): 32");
}

#[test]
fn unused_settings_do_not_separate_agents() {
    let mut runs = Runs::new();
    // One agent has another target and temperature, but uses neither.
    let mut cloning = evaluation(&[8.0], 500.0);
    cloning.setting.policy = "perceptron".into();
    cloning.setting.protocol.acting.temperature = 0.5;
    cloning.setting.protocol.acting.top_percent = 10.0;
    cloning.setting.protocol.return_scale = 1000.0;
    let conditioned = evaluation(&[16.0], 900.0);
    runs.add("conditioned", &config(1, ""), &conditioned);
    runs.add("cloning", &(config(1, "") + "\n[model]\nd_model = 9\n"), &cloning);
    let markdown = runs.markdown();
    assert!(agents(&markdown).is_empty(), "the protocols differ if all settings count: {markdown}");

    cloning.setting.used_settings = UsedSettings {
        target: false,
        temperature: false,
        return_quantile: false,
        top_percent: false,
    };
    cloning.write(&runs.1[1].join("evaluation.json")).unwrap();
    let markdown = runs.markdown();
    assert_eq!(agents(&markdown).len(), 2, "{markdown}");
    assert!(!markdown.contains("different first target returns"), "{markdown}");
    let row = markdown.lines().find(|line| line.contains("| model.d\\_model=9 |")).unwrap();
    assert!(row.starts_with("| model.d\\_model=9 | Seaquest | matched | 200 | - | 4 |"), "{row}");
}

#[test]
fn weights_of_another_run_are_not_the_last_checkpoint() {
    let mut played = evaluation(&[16.0], 500.0);
    for elsewhere in ["other/checkpoints/step-00000200", "/other/checkpoints/step-00000200"] {
        let mut runs = Runs::new();
        played.setting.checkpoint = Some(CheckpointRef { path: elsewhere.into(), step: 200 });
        runs.add("a", &config(1, ""), &played);
        let markdown = runs.markdown();
        assert!(markdown.contains("### Chosen checkpoints"), "{elsewhere}: {markdown}");
        assert!(!markdown.contains("### Last checkpoint of each run"), "{elsewhere}: {markdown}");
    }
}

#[test]
fn a_video_caption_names_the_episode() {
    let mut runs = Runs::new();
    let played = evaluation(&[16.0], 500.0);
    runs.add("a", &config(1, ""), &played);
    let video = runs.1[0].join("video.gif");
    fs::write(&video, "GIF89a").unwrap();
    let caption = |markdown: &str| {
        let line = markdown.lines().find(|line| line.contains("](report-video-1.gif)")).unwrap();
        line.to_owned()
    };
    assert!(!caption(&runs.markdown()).contains("update"), "the video has no description yet");
    let filmed = Filmed::new(&played, "evaluation.json", "median", &played.episodes[2]);
    filmed.write(&video).unwrap();
    assert_eq!(Filmed::read(&video).unwrap(), Some(filmed));
    let words = "a: video.gif (update 200, matched protocol, target 16, episode 2 (median), raw \
                 return 500.0)";
    let caption = caption(&runs.markdown());
    assert!(caption.contains(words), "{caption}");
    // A description is not read as an evaluation, whatever the name of the video.
    fs::copy(Filmed::path(&video), runs.1[0].join("evaluation.gif.json")).unwrap();
    RunFiles::read(&runs.1[0]).unwrap();
    fs::write(Filmed::path(&video), "{}").unwrap();
    let error = RunFiles::read(&runs.1[0]).unwrap_err();
    assert!(matches!(error, PageError::Filmed(_)), "{error}");
}

/// Runs with the same options are the same agent for every seed. Other options make another agent.
#[test]
fn options_of_the_algorithm_identify_the_agent() {
    let mut runs = Runs::new();
    let iql = |seed: u64, others: &str| {
        config(seed, "top_percent = 10.0").replace("game", "algorithm = \"iql\"\ngame") + others
    };
    let played = evaluation(&[16.0], 500.0);
    runs.add("a", &iql(1, "\n[iql]\nbeta = 3.0\n"), &played);
    runs.add("b", &iql(2, "\n[iql]\nbeta = 3.0\n"), &played);
    let markdown = runs.markdown();
    assert!(markdown.contains("Over training seeds"), "{markdown}");
    runs.add("c", &iql(3, "\n[iql]\nbeta = 9.0\n"), &played);
    assert_eq!(agents(&runs.markdown()).len(), 2, "{}", runs.markdown());
}

/// Adds four seeds of this game, with return `score` in each episode and the top `percent` % of the
/// data.
fn add(runs: &mut Runs, percent: u64, name: &str, score: f64) {
    let mut played = evaluation(&[16.0], score);
    played.setting.task = game(name);
    for seed in 1..=4 {
        let config = config(seed, &format!("top_percent = {percent}"));
        let config = config.replace("\"seaquest\"", &format!("\"{name}\""));
        runs.add(&format!("{percent}-{name}-{seed}"), &config, &played);
    }
}

#[test]
fn aggregates_include_the_tasks_that_all_agents_have() {
    let mut runs = Runs::new();
    for (percent, name) in
        [(10, "seaquest"), (10, "gravitar"), (50, "seaquest"), (50, "bank_heist")]
    {
        add(&mut runs, percent, name, 500.0);
    }
    let markdown = runs.markdown();
    let names = [10, 50].map(|percent| format!("transformer (data.top_percent {percent})"));
    let expected = names.map(|name| [name, "Seaquest".into(), "4".into()]);
    assert_eq!(agents(&markdown), expected);
    sentences::check_prose(&markdown, "BankHeist, Gravitar");
    // The third agent does not share a task with one of the others.
    add(&mut runs, 60, "gravitar", 500.0);
    let markdown = runs.markdown();
    assert!(!markdown.contains("optimality gap"), "{markdown}");
    let pairs = markdown.lines().filter(|line| line.ends_with(" | 1 | 0.50 \\[0.50, 0.50\\] |"));
    assert_eq!(pairs.count(), 2, "{markdown}");
}

#[test]
fn a_task_without_reference_scores_is_compared_by_raw_scores() {
    let mut runs = Runs::new();
    for (percent, score) in [(10, 500.0), (50, 900.0)] {
        let mut played = evaluation(&[16.0], score);
        played.setting.task.reference = None;
        for seed in 1..=4 {
            let config = config(seed, &format!("top_percent = {percent}"));
            runs.add(&format!("{percent}-{seed}"), &config, &played);
        }
    }
    let markdown = runs.markdown();
    assert!(
        markdown.contains("(data.top\\_percent 50) | 1 | 0.00 \\[0.00, 0.00\\] |"),
        "{markdown}"
    );
    sentences::check_prose(&markdown, ": Seaquest.");
    assert!(!markdown.contains("optimality gap"), "{markdown}");
}

#[test]
fn a_task_without_a_dataset_is_named_by_its_title() {
    let mut runs = Runs::new();
    let played = evaluation(&[16.0], 500.0);
    for percent in [10, 50] {
        let with_seed = |seed| config(seed, &format!("top_percent = {percent}"));
        runs.add(&format!("{percent}-old"), &with_seed(1), &played);
        runs.add(&format!("{percent}-new"), &format!("dataset = \"\"\n{}", with_seed(2)), &played);
    }
    let shown = agents(&runs.markdown());
    assert!(shown.len() == 2 && shown.iter().all(|agent| agent[1..] == ["Seaquest", "2"]));
}

/// An agent with fewer seeds is named, and the others are compared.
#[test]
fn only_agents_with_four_seeds_are_compared() {
    let mut runs = Runs::new();
    let add = |runs: &mut Runs, percent: u64, seeds: std::ops::RangeInclusive<u64>| {
        for seed in seeds {
            let config = config(seed, &format!("top_percent = {percent}"));
            runs.add(&format!("{percent}-{seed}"), &config, &evaluation(&[16.0], 500.0));
        }
    };
    let heading = |markdown: &str| {
        let line = markdown.lines().find(|line| line.starts_with("### Evaluated with"));
        line.unwrap_or_default().to_owned()
    };
    let is_compared =
        |markdown: &str| ["P(X &gt; Y)", "performance profile"].map(|part| markdown.contains(part));
    add(&mut runs, 10, 1..=4);
    add(&mut runs, 50, 1..=3);
    let markdown = runs.markdown();
    assert_eq!(
        heading(&markdown),
        "### Evaluated with the matched protocol: 3 seeds, no comparison"
    );
    assert_eq!(is_compared(&markdown), [false, false], "{markdown}");
    add(&mut runs, 60, 1..=4);
    let markdown = runs.markdown();
    assert_eq!(
        heading(&markdown),
        "### Evaluated with the matched protocol: not all agents have 4 seeds"
    );
    let names = markdown.replace('\\', "");
    assert_eq!(names.matches("60) | 1 | 0.50 [0.50, 0.50] |").count(), 1, "{markdown}");
    assert!(names.contains("performance profile"), "{markdown}");
    sentences::check_prose(&names, "Not compared");
    add(&mut runs, 50, 4..=4);
    let markdown = runs.markdown();
    assert_eq!(heading(&markdown), "### Evaluated with the matched protocol");
    assert_eq!(markdown.replace('\\', "").matches(" | 1 | 0.50 [0.50, 0.50] |").count(), 3);
}
