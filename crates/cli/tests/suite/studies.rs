//! Studies: a grid of tiny runs on this machine.

use std::{
    fs,
    io::{BufRead, BufReader},
    path::PathBuf,
    process::Stdio,
};

use serde_json::Value;

use crate::desk::{
    Desk, Running, checkpoint, interrupt, names, project, said, same_run, steps, wait_until,
};

/// A minimal agent and run of a robot.
const TINY: &str = "env=hopper model.n_layers=1 model.d_model=16 model.context_length=5 \
                    train.batch_size=3 train.updates=4 evaluation.target=1800";

/// Long enough to be disturbed.
const LONG: &str = "train.updates=400 train.log_every=1 train.checkpoint_every=5 \
                    evaluation.episodes=0";

fn status(desk: &Desk, words: &str) -> Value {
    serde_json::from_str(&desk.succeeds(&format!("study status --json {words}"))).unwrap()
}

fn runs(desk: &Desk) -> Vec<PathBuf> {
    let folder = desk.path("runs");
    let all = names(&folder).into_iter().map(|name| folder.join(name));
    all.filter(|run| run.join("config.toml").is_file()).collect()
}

/// The rows of the page's table of cells.
fn cells_of_page(desk: &Desk, study: &str) -> Vec<Vec<String>> {
    let csv = desk.path(&format!("runs/studies/{study}/report-cells.csv"));
    let text = fs::read_to_string(csv).unwrap();
    text.lines().skip(1).map(|line| line.split(',').map(str::to_owned).collect()).collect()
}

#[test]
fn a_study_is_carried_out_compared_and_grows() {
    let desk = Desk::new();
    // One of its runs exists before.
    desk.succeeds(&format!("train {TINY} evaluation.episodes=2 head=gaussian seed=2"));
    let words = format!("{TINY} evaluation.episodes=2 head=tanh,gaussian name=heads");
    let said = desk.succeeds(&format!("study run {words} seed=1..2 jobs=2"));
    assert!(said.contains("4 cells: 1 played, 3 waiting"), "{said}");
    assert!(said.contains("3 cells to run, 2 in parallel"), "{said}");
    assert!(said.contains("4 cells: 4 played"), "{said}");
    assert_eq!(runs(&desk).len(), 4);
    let current = status(&desk, "heads");
    assert_eq!(current["counts"], serde_json::json!({ "played": 4 }));
    assert_eq!(current["cells"][0]["cell"], "head=tanh_s1");
    assert_eq!(current["cells"][0]["label"], "head=tanh");
    let run = current["cells"][3]["run"].as_str().unwrap();
    assert!(run.ends_with("gaussian-s2-hopper-switching"), "{run}");
    let process = fs::read_to_string(desk.path(run).join("provenance.jsonl")).unwrap();
    let process: Value = serde_json::from_str(process.trim()).unwrap();
    assert_eq!((&process["step"], &process["updates"]), (&0.into(), &4.into()));
    assert_eq!(process["config"].as_str().map(str::len), Some(64), "{process}");
    assert!(process["node"].is_string() && process.get("slurm").is_none(), "{process}");

    let rows = cells_of_page(&desk, "heads");
    assert_eq!(rows.len(), 2, "{rows:?}");
    assert_eq!(rows[1][..7], ["head=gaussian", "Hopper", "matched", "last", "1800", "2", "1 2"]);
    let mean = |cells: &str| {
        let each: Vec<f64> = cells.split(' ').map(|cell| cell.parse().unwrap()).collect();
        each.iter().sum::<f64>() / each.len() as f64
    };
    for row in &rows {
        assert!((row[7].parse::<f64>().unwrap() - mean(&row[24])).abs() < 1e-9, "{row:?}");
    }
    let page = fs::read_to_string(desk.path("runs/studies/heads/report.md")).unwrap();
    assert!(page.starts_with("# Study heads: 2 seeds, no comparison\n"), "{page}");
    assert!(page.contains("### Last checkpoints: 2 seeds, no comparison"), "{page}");
    assert!(
        page.contains("### Evaluated with the matched protocol: 2 seeds, no comparison"),
        "{page}"
    );

    // Finished runs are not repeated, and more seeds are more runs.
    let again = desk.succeeds(&format!("study run {words} seed=1..2"));
    assert!(again.contains("all cells are finished"), "{again}");
    let more = desk.succeeds("study run heads seed=1..4");
    assert!(more.contains("8 cells: 4 played, 4 waiting"), "{more}");
    assert_eq!(runs(&desk).len(), 8);
    let page = fs::read_to_string(desk.path("runs/studies/heads/report.md")).unwrap();
    assert!(page.starts_with("# Study heads\n") && !page.contains("no comparison"), "{page}");
    let plan = desk.succeeds("study run heads seed=1..5 plan=true");
    assert!(plan.contains("2 cells to run; training 0.00 h, evaluation 0.00 h, "), "{plan}");
    assert!(!plan.contains("is unknown"), "{plan}");
    assert_eq!(runs(&desk).len(), 8, "a plan starts nothing");
}

#[test]
fn a_run_is_played_again_as_the_study_says() {
    let desk = Desk::new();
    let file = "evaluations = [\"evaluation.actions=sample\"]\nseeds = [1]\n[settings]\n\
                head = \"gaussian\"\nevaluation.episodes = 2\n";
    // `head` is a key here, not a section.
    fs::write(desk.path("again.toml"), file).unwrap();
    desk.succeeds(&format!("study run again.toml {TINY}"));
    let found = runs(&desk);
    assert_eq!(found.len(), 1);
    for name in ["evaluation.json", "evaluation-sample.json"] {
        assert!(found[0].join(name).is_file(), "{name}: {:?}", names(&found[0]));
    }
    fs::remove_file(found[0].join("evaluation-sample.json")).unwrap();
    assert_eq!(status(&desk, "again")["cells"][0]["state"], "stopped");
    desk.succeeds("study resume again");
    assert!(found[0].join("evaluation-sample.json").is_file());
    // The study's evaluations may change later.
    let episodes = |name: &str| {
        let report = fs::read(found[0].join(name)).unwrap();
        let report: Value = serde_json::from_slice(&report).unwrap();
        (report["seed"].clone(), report["episodes"].as_array().unwrap().len())
    };
    for (line, name, asked) in [
        ("episodes=3", "evaluation-sample-n3.json", (1, 3)),
        ("seed=9", "evaluation-sample-seed9.json", (9, 2)),
    ] {
        let line = format!("\"evaluation.actions=sample evaluation.{line}\"");
        let other = file.replace("\"evaluation.actions=sample\"", &line);
        fs::write(desk.path("again.toml"), other).unwrap();
        desk.succeeds(&format!("study run again.toml {TINY}"));
        assert_eq!(episodes(name), (asked.0.into(), asked.1), "{line}");
        // The earlier report is kept.
        assert_eq!(episodes("evaluation-sample.json"), (1.into(), 2), "{line}");
    }
    let page = fs::read_to_string(desk.path("runs/studies/again/report.md")).unwrap();
    assert!(page.contains("matched (action choice mode)"), "{page}");
    assert!(page.contains("matched (action choice sample)"), "{page}");
}

/// Its report then has another name, and still counts.
#[test]
fn runs_with_evaluation_settings_are_on_the_page() {
    let desk = Desk::new();
    let words = format!("{TINY} evaluation.episodes=1 name=q seed=1..2");
    let quantiles = "evaluation.return_quantile=0.5,0.9";
    let said = desk.succeeds(&format!("study run {words} {quantiles}"));
    assert!(said.contains("4 cells: 4 played"), "{said}");
    let rows = cells_of_page(&desk, "q");
    assert_eq!(rows.len(), 2, "{rows:?}");
    assert!(rows.iter().all(|row| row[5] == "2"), "{rows:?}");
    desk.succeeds(&format!("study run {words} evaluation.protocol=v5"));
    // A run's name contains `=`.
    let current = status(&desk, "q");
    assert_eq!(current["counts"], serde_json::json!({ "played": 2 }));
    let all = runs(&desk);
    let name = |run: &PathBuf| run.file_name().unwrap().to_string_lossy().into_owned();
    let run = all.iter().find(|run| name(run).contains("return_quantile=0.5")).unwrap();
    let name = name(run);
    desk.succeeds(&format!("report {name} video=false"));
    assert!(run.join("report.md").is_file());
    desk.succeeds(&format!("export runs/{name} out format=safetensors"));
}

#[test]
fn evaluations_that_the_report_cannot_tell_apart_are_refused() {
    let desk = Desk::new();
    for line in ["evaluation.target=p50", "evaluation.seed=7", "evaluation.episodes=3"] {
        let file = format!("evaluations = [\"{line}\"]\nseeds = [1]\n");
        fs::write(desk.path("again.toml"), file).unwrap();
        let study = format!("study run again.toml {TINY} evaluation.episodes=1");
        desk.refuses(&study);
    }
    // For any settings.
    let free = TINY.replace("evaluation.target=1800", "");
    for (settings, line) in [
        ("", "evaluation.target=p50"),
        ("evaluation.protocol=matched,v5", "evaluation.protocol=v5 evaluation.seed=2"),
        ("evaluation.return_quantile=0.5", "evaluation.return_quantile=chosen"),
    ] {
        fs::write(desk.path("again.toml"), format!("evaluations = [\"{line}\"]\n")).unwrap();
        let study = format!("study run again.toml {free} {settings} evaluation.episodes=1");
        desk.refuses(&study);
    }
    // The chosen mode may equal the line's.
    let chosen = "evaluation.return_quantile=chosen";
    let line = "evaluation.return_quantile=0.9 evaluation.seed=7";
    fs::write(desk.path("again.toml"), format!("evaluations = [\"{line}\"]\n")).unwrap();
    let study = format!("study run again.toml {free} {chosen} evaluation.episodes=1 plan=true");
    desk.refuses(&study);
    let same = "evaluation.return_quantile=0.9";
    fs::write(desk.path("again.toml"), format!("evaluations = [\"{same}\"]\n")).unwrap();
    desk.succeeds(&study);
    // The same episodes are played once.
    let again = "evaluation.protocol=matched";
    fs::write(desk.path("again.toml"), format!("evaluations = [\"{again}\"]\n")).unwrap();
    desk.succeeds(&study);
    // An acting mode is chosen for the evaluation in the settings.
    let line = "evaluation.protocol=v5 evaluation.episodes=2";
    fs::write(desk.path("again.toml"), format!("evaluations = [\"{line}\"]\n")).unwrap();
    let study = format!("study run again.toml {TINY} evaluation.episodes=0");
    desk.refuses(&study);
}

/// Its run exists, with another evaluation.
#[test]
fn an_evaluation_that_fails_is_no_played_one() {
    let desk = Desk::new();
    let file = "evaluations = [\"evaluation.protocol=relased\"]\nseeds = [1]\n";
    fs::write(desk.path("again.toml"), file).unwrap();
    let study = format!("study run again.toml {TINY} evaluation.episodes=1");
    for line in [study.as_str(), "study resume again"] {
        let said = desk.run(line);
        assert_eq!(said.code, Some(1), "{said:?}");
        assert!(said.stderr.contains("relased"), "{said:?}");
        assert!(said.stdout.contains("1 cell: 1 failed"), "{said:?}");
    }
    desk.succeeds("study report again");
    let page = fs::read_to_string(desk.path("runs/studies/again/report.md")).unwrap();
    assert!(page.contains("\nFailed: ") && page.contains("relased"), "{page}");
}

#[test]
fn a_study_is_found_where_its_file_says() {
    let desk = Desk::new();
    desk.refuses("study status");
    fs::write(desk.path("s.toml"), "seeds = [1]\n[settings]\nruns = \"elsewhere\"\n").unwrap();
    desk.succeeds(&format!("study run s.toml {TINY} evaluation.episodes=0"));
    assert!(desk.succeeds("study status s.toml").contains("1 cell: 1 trained"));
    // After the move, its runs are next to it.
    fs::rename(desk.path("elsewhere"), desk.path("moved")).unwrap();
    for line in ["study status s runs=moved", "study status moved/studies/s"] {
        assert!(desk.succeeds(line).contains("1 cell: 1 trained"), "{line}");
    }
    // By any path, from any directory.
    for (folder, line) in [
        ("moved/studies", "study status s"),
        ("moved/studies", "study status ./s"),
        ("moved/studies/s", "study status ."),
        ("moved/studies/s/cells", "study status .."),
        ("moved", "study status studies/s"),
    ] {
        let mut status = desk.command(line);
        let said = said(status.current_dir(desk.path(folder)).output().unwrap());
        assert!(said.stdout.contains("1 cell: 1 trained"), "{folder}: {line}: {said:?}");
    }
    let said = desk.succeeds("study resume s runs=moved");
    assert!(said.contains("all cells are finished"), "{said}");
    assert!(!desk.path("elsewhere").exists());
}

#[test]
fn a_failing_cell_does_not_stop_the_others() {
    let desk = Desk::new();
    let file = format!(
        "seeds = [1]\n[settings]\n{}\n[[cells]]\nevaluation.target = \"p900\"\n[[cells]]\n\
         evaluation.target = \"1800\"\n",
        TINY.replace("env=hopper", "env=\"hopper\"")
            .replace("evaluation.target=1800", "evaluation.episodes=1")
            .split_whitespace()
            .collect::<Vec<_>>()
            .join("\n")
    );
    fs::write(desk.path("two.toml"), file).unwrap();
    for line in ["study run two.toml jobs=1", "study resume two jobs=2"] {
        let said = desk.run(line);
        assert_eq!(said.code, Some(1), "{said:?}");
        let failed = "failed: evaluation.target=p900_s1: ";
        assert!(said.stderr.contains(failed) && said.stderr.contains("p900"), "{said:?}");
        assert!(said.stderr.contains("error: 1 of "), "{said:?}");
        assert!(said.stdout.contains("2 cells: 1 failed, 1 played"), "{said:?}");
    }
    // A closed output does not matter either.
    let unread = desk.command("study resume two").stdout(Stdio::null()).spawn();
    let mut unread = unread.unwrap();
    drop(unread.stderr.take());
    assert_eq!(unread.wait().unwrap().code(), Some(1));
    let current = status(&desk, "two");
    let states: Vec<&Value> = current["cells"].as_array().unwrap().iter().collect();
    assert_eq!((&states[0]["state"], &states[1]["state"]), (&"failed".into(), &"played".into()));
    assert!(states[0]["error"].as_str().unwrap().contains("p900"), "{current}");
    let page = fs::read_to_string(desk.path("runs/studies/two/report.md")).unwrap();
    assert!(page.starts_with("# Study two: one seed, no comparison; 1 run failed\n"), "{page}");
    assert!(page.contains("Failed: evaluation.target=p900\\_s1 ("), "{page}");
    assert!(!page.contains("not been evaluated yet"), "{page}");
}

#[test]
fn a_killed_study_resumes_to_the_same_end() {
    let desk = Desk::new();
    desk.succeeds(&format!("train {TINY} {LONG} seed=1 runs=whole"));
    let whole = desk.only_run("whole");
    let line = format!("study run {TINY} {LONG} seed=1,2 jobs=2 name=long");
    let at_work = |at_least: u64| {
        runs(&desk).iter().filter(|run| steps(run).last().is_some_and(|n| *n >= at_least)).count()
    };
    let child = Running::start(desk.command(&line));
    wait_until("checkpoints of both", || at_work(10) == 2);
    assert_eq!(status(&desk, "long")["cells"][0]["state"], "running");
    child.kill();
    // Its cells notice, save and end.
    wait_until("the cells' end", || status(&desk, "long")["counts"].get("running").is_none());
    let current = status(&desk, "long");
    assert_eq!(current["counts"]["stopped"], 2, "{current}");
    for cell in current["cells"].as_array().unwrap() {
        let at = cell["step"].as_u64().unwrap();
        assert!((10..400).contains(&at) && cell["of"] == 400, "{current}");
    }

    let mut child = desk.command("study resume long").spawn().unwrap();
    let before: Vec<u64> =
        runs(&desk).iter().filter_map(|run| steps(run).last().copied()).collect();
    wait_until("more checkpoints", || {
        let now = runs(&desk).iter().filter_map(|run| steps(run).last().copied()).max();
        now > before.iter().max().copied()
    });
    interrupt(child.id());
    let ended = child.wait_with_output_of();
    assert_eq!(ended.code, Some(130), "{ended:?}");
    assert!(ended.stdout.contains("Resume with: overtone study resume long"), "{ended:?}");

    let said = desk.succeeds("study resume long");
    assert!(said.contains("2 cells: 2 trained"), "{said}");
    let found = runs(&desk);
    assert_eq!(found.len(), 2, "no run was begun again");
    same_run(&found[0], &whole, 400);
    let weights = |run: &PathBuf| checkpoint(run, 400).remove("model.safetensors");
    assert!(weights(&found[0]) != weights(&found[1]), "two seeds, one model");
    let processes = fs::read_to_string(found[0].join("provenance.jsonl")).unwrap();
    assert_eq!(processes.lines().count(), 3, "{processes}");
}

#[test]
fn a_study_under_way_grows_and_is_not_replaced() {
    let desk = Desk::new();
    let line = format!("study run {TINY} {LONG} name=long jobs=1");
    let has_begun = || runs(&desk).iter().any(|run| !steps(run).is_empty());
    let child = Running::start(desk.command(&format!("{line} seed=1")));
    wait_until("a checkpoint", has_begun);
    desk.refuses(&format!("{line} seed=1 train.updates=7"));
    desk.refuses(&format!("{line} seed=3,9"));
    desk.succeeds("study run long seed=1,2");
    child.finish();
    assert_eq!(status(&desk, "long")["counts"], serde_json::json!({ "trained": 2 }));
}

#[test]
fn a_cell_with_other_settings_is_reported() {
    let desk = Desk::new();
    let line = format!("study run {TINY} {LONG} name=long jobs=1 seed=1,2");
    let mut child = desk.command(&line).spawn().unwrap();
    let document = desk.path("runs/studies/long/study.toml");
    wait_until("a checkpoint", || runs(&desk).iter().any(|run| !steps(run).is_empty()));
    let text = fs::read_to_string(&document).unwrap();
    assert!(text.contains("\"400\""), "{text}");
    fs::write(&document, text.replace("\"400\"", "\"7\"")).unwrap();
    let ended = child.wait_with_output_of();
    assert_eq!(ended.code, Some(1), "{ended:?}");
    assert!(ended.stdout.contains("2 cells: 1 trained, 1 waiting"), "{ended:?}");
    assert!(ended.stderr.contains("error: the cell `all_s2` is unfinished"), "{ended:?}");
}

/// As Slurm stops and restarts it.
#[test]
fn playing_that_no_job_has_time_for_fails() {
    let desk = Desk::new();
    let words = format!("{TINY} evaluation.episodes=20000 seed=1 name=p");
    let child = desk.command(&format!("study run {words}")).spawn().unwrap();
    wait_until("a finished run", || runs(&desk).iter().any(|run| run.join("finished").exists()));
    interrupt(child.id());
    let stopped = said(child.wait_with_output().unwrap());
    assert_eq!(stopped.code, Some(130), "{stopped:?}");
    for (restarts, code) in [("0", 130), ("1", 1)] {
        let mut command = desk.command("study cell runs/studies/p all_s1");
        let mut child = command.env("SLURM_RESTART_COUNT", restarts).spawn().unwrap();
        // The finished run is evaluated at once, after its acting mode is chosen.
        let mut lines = BufReader::new(child.stdout.take().unwrap()).lines().map(Result::unwrap);
        assert!(lines.any(|line| line.starts_with("evaluating ")), "no evaluation began");
        assert_eq!(status(&desk, "p")["cells"][0]["state"], "running");
        interrupt(child.id());
        let rest: Vec<String> = lines.collect();
        assert_eq!(child.wait().unwrap().code(), Some(code), "{rest:?}");
    }
    let current = status(&desk, "p");
    assert_eq!(current["counts"], serde_json::json!({ "failed": 1 }));
    let error = current["cells"][0]["error"].as_str().unwrap();
    assert!(
        error.contains("the evaluation was stopped") && error.contains("longer time="),
        "{error}"
    );
}

#[test]
fn cells_of_the_same_settings_are_refused() {
    let desk = Desk::new();
    let rates = format!("study run {TINY} seed=1,2 train.learning_rate=0.001,1e-3");
    desk.refuses(&rates);
    // The default is 14 frequencies.
    let file = "seeds = [1]\n[settings]\ngame = \"seaquest\"\nhead.kind = \"fourier\"\n\
                [[cells]]\nhead.frequencies = 14\n[[cells]]\nhead.gamma = 1e-6\n";
    fs::write(desk.path("same.toml"), file).unwrap();
    desk.refuses("study run same.toml plan=true");
    assert!(!desk.path("runs").exists());
}

#[test]
fn names_and_folders_may_have_the_sign_of_an_option() {
    let desk = Desk::new();
    let tiny = format!("{TINY} evaluation.episodes=0");
    desk.succeeds(&format!("study run {tiny} seed=1 name=q runs=k=v"));
    for line in ["study status k=v/studies/q", "study status q runs=k=v"] {
        assert!(desk.succeeds(line).contains("1 cell: 1 trained"), "{line}");
    }
    // As the Slurm job that writes the page names it.
    let folder = desk.path("k=v/studies/q");
    let report = format!("study report {}", folder.display());
    desk.refuses(&report);
    desk.refuses(&format!("{report} video=true"));
    fs::write(desk.path("rate=3.toml"), "seeds = [1]\n").unwrap();
    desk.succeeds(&format!("study run rate=3.toml {tiny}"));
    for line in ["study status rate=3", "study status rate=3.toml", "study resume rate=3"] {
        desk.succeeds(line);
    }
    desk.refuses("study status rate=4");
}

#[test]
fn a_cell_that_begins_with_a_run_is_measured() {
    let desk = Desk::new();
    desk.succeeds(&format!("train {TINY} evaluation.episodes=0"));
    let run = desk.only_run("runs");
    let name = run.file_name().unwrap().to_string_lossy();
    let study = format!("study run init={name} train.batch_size=3 evaluation.episodes=0 seed=2");
    let said = desk.succeeds(&format!("{study} train.updates=40 plan=true measure=true"));
    assert!(said.contains("measuring all_s2") && said.contains("1 cells to run"), "{said}");
    assert_eq!(runs(&desk).len(), 1);
    // Found again by any path of the study: its runs contain the whole path of the initial run.
    desk.succeeds(&format!("{study} train.updates=2 name=begun"));
    let folder = desk.path("runs/studies/begun");
    for name in ["begun", &folder.display().to_string()] {
        let current = desk.succeeds(&format!("study status {name}"));
        assert!(current.contains("1 cell: 1 trained"), "{name}: {current}");
    }
    desk.succeeds(&format!("study run {} seed=3", folder.display()));
    assert_eq!(status(&desk, "begun")["counts"], serde_json::json!({ "trained": 1 }));
    assert_eq!(runs(&desk).len(), 3);
    let open = format!("{study} train.updates=0 train.epochs=1 plan=true measure=true");
    let ended = desk.run(&open);
    ended.refused();
    assert!(!ended.stdout.contains("measuring"), "{ended:?}");
}

/// A cluster's node may lack another cell's data.
#[test]
fn a_cell_needs_only_its_own_data() {
    let desk = Desk::new();
    for name in ["a.npz", "b.npz"] {
        fs::copy(project().join("crates/data/tests/fixtures/stored.npz"), desk.path(name)).unwrap();
    }
    let model = TINY.replace("env=hopper ", "").replace("evaluation.target=1800", "");
    let line = format!("study run own=plant dataset=a.npz,b.npz {model} name=two seed=1");
    assert!(desk.succeeds(&line).contains("2 cells: 2 trained"));
    fs::remove_file(desk.path("b.npz")).unwrap();
    for run in runs(&desk) {
        fs::remove_dir_all(run).unwrap();
    }
    desk.succeeds("study cell runs/studies/two dataset=a.npz_s1");
    desk.refuses("study cell runs/studies/two dataset=b.npz_s1");
    let noted = desk.path("runs/studies/two/cells/dataset=b.npz_s1.failed");
    assert!(fs::read_to_string(noted).unwrap().contains("b.npz"));
    assert_eq!(runs(&desk).len(), 1);
}

/// Output of a child that was spawned with its streams piped.
trait Output {
    fn wait_with_output_of(&mut self) -> crate::desk::ProgramOutput;
}

impl Output for std::process::Child {
    fn wait_with_output_of(&mut self) -> crate::desk::ProgramOutput {
        use std::io::Read;
        let (mut stdout, mut stderr) = (Vec::new(), Vec::new());
        self.stdout.take().unwrap().read_to_end(&mut stdout).unwrap();
        self.stderr.take().unwrap().read_to_end(&mut stderr).unwrap();
        said(std::process::Output { status: self.wait().unwrap(), stdout, stderr })
    }
}

#[test]
fn every_cell_is_checked_before_anything_starts() {
    let desk = Desk::new();
    for words in [
        "",
        "env=hopper head=tanh,linear",
        "env=hopper head=tanh,gaussian seed=a",
        "env=hopper learning_rte=1,2",
        "env=hopper seed=5..1",
        "env=hopper seed=1 engine=pbs",
        "env=hopper seed=1 gpus=1",
        "env=hopper seed=1 measure=true",
        "env=hopper dataset=medium,lost",
        "nothing seed=1",
        "env=hopper seed=1 runs=a,b",
        "env=hopper seed=1 jobs=-1 plan=true",
        "env=hopper seed=1 name=a/b",
    ] {
        desk.refuses(&format!("study run {words}"));
    }
    let long = "x".repeat(120);
    desk.refuses(&format!("study run env=hopper seed=1 name={long}"));
    desk.refuses("study status");
    for word in ["head=tanh", "name=b"] {
        desk.refuses(&format!("study resume a {word}"));
    }
    assert!(names(&desk.path("runs")).is_empty());
}

#[test]
fn init_writes_a_valid_study_like_the_projects() {
    let desk = Desk::new();
    desk.succeeds("study init first.toml");
    desk.refuses("study init first.toml");
    let said = desk.succeeds("study run first.toml plan=true");
    assert!(said.contains("8 cells: 8 waiting"), "{said}");
    let mut seen = 0;
    for name in names(&project().join("studies")) {
        let path = project().join("studies").join(&name);
        for profile in ["profile=quick", "profile=paper"] {
            let said = desk.succeeds(&format!("study run {} plan=true {profile}", path.display()));
            assert!(said.contains(" waiting"), "{name}: {said}");
            seen += 1;
        }
    }
    assert!(seen >= 20, "{seen}");
    assert!(!desk.path("runs").exists(), "a plan writes nothing");
}
