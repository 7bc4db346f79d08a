//! Acting modes that are chosen after training, and fixed ones.

use std::fs;

use serde_json::Value;

use crate::{
    desk::{Desk, acting_of, same_run},
    evaluating::{report, tiny},
};

/// An agent's acting mode is the choice for its own weights only.
#[test]
fn a_choice_is_of_the_weights_that_were_played() {
    let desk = Desk::new();
    desk.succeeds(&tiny("evaluation.episodes=1 train.checkpoint_every=2"));
    let run = desk.only_run("runs");
    let acting = |step: u64| report(&run.join(format!("checkpoints/step-{step:08}/acting.json")));
    let last = acting(4);
    desk.succeeds("evaluate choose checkpoint=2 budget=4");
    assert_eq!(acting(4), last, "it belongs to other weights");
    let before = acting(2);
    assert_eq!((&last["step"], &before["step"]), (&4.into(), &2.into()));
    for (checkpoint, choice) in [("2", &before), ("4", &last)] {
        desk.succeeds(&format!("evaluate rollouts checkpoint={checkpoint} episodes=1 out=p.json"));
        assert_eq!(report(&desk.path("p.json"))["choice"], *choice, "{checkpoint}");
    }
    // Weights of another run are refused.
    desk.succeeds(&tiny("runs=other"));
    let foreign = desk.only_run("other").join("checkpoints/step-00000004").canonicalize().unwrap();
    let line = format!("evaluate choose runs=runs budget=1 checkpoint={}", foreign.display());
    desk.refuses(&line);
    let words = format!("evaluate rollouts runs=runs episodes=1 checkpoint={}", foreign.display());
    desk.succeeds(&format!("{words} out=p.json"));
    assert!(
        report(&desk.path("p.json"))["choice"].is_null(),
        "equal updates are not equal weights"
    );
}

#[test]
fn the_whole_choice_is_printed() {
    let desk = Desk::new();
    desk.succeeds(&tiny(""));
    let said = desk.succeeds("evaluate choose return_quantiles=0.75 target=2000 budget=1");
    let one = "Mode: return quantile 0.75 (the only mode); ";
    assert!(said.contains(one), "{said}");
    let command = " checkpoint=4 return_quantile=0.75 top_percent=0 target=2000\n";
    assert!(said.ends_with(command), "{said}");
    desk.refuses("evaluate choose return_quantiles= target=p50");
}

/// The modes of several runs share a budget; the best run is kept with its mode.
#[test]
fn a_portfolio_keeps_one_run_and_its_mode() {
    let desk = Desk::new();
    fs::create_dir(desk.path("runs")).unwrap();
    let small = "evaluation.episodes=0 model.n_layers=1 model.d_model=16 train.batch_size=3 \
                 train.updates=4";
    for (name, words) in [
        ("a", "env=hopper seed=1"),
        ("b", "env=hopper seed=2"),
        ("cloned", "env=hopper algorithm=behavior_cloning"),
        ("walker", "env=walker2d"),
    ] {
        desk.succeeds(&format!("train {words} {small} runs=new"));
        fs::rename(desk.only_run("new"), desk.path("runs").join(name)).unwrap();
    }
    let acting = |name: &str| acting_of(&desk.path("runs").join(name));
    // Episodes, mean, minimum and maximum of each mode.
    let rows = |said: &str| -> Vec<Vec<String>> {
        let cells = |line: &str| line.split("  ").map(|cell| cell.trim().to_owned()).collect();
        let rows = said.lines().map(cells).map(|mut row: Vec<String>| {
            row.retain(|cell| !cell.is_empty());
            row
        });
        rows.filter(|row| row.len() == 6 && row[0] != "run").collect()
    };
    let choose = |budget: usize| {
        let words = "evaluate choose run=a,b return_quantiles=0.9,0.5 target=p50";
        desk.succeeds(&format!("{words} budget={budget}"))
    };
    let counts = |rows: &[Vec<String>]| -> Vec<usize> {
        rows.iter().map(|row| row[2].parse().unwrap()).collect()
    };

    // Fewer episodes are the beginning of more.
    let fewer = rows(&choose(6));
    assert_eq!((fewer.len(), counts(&fewer).iter().sum::<usize>()), (4, 6), "{fewer:?}");
    ["a", "b"].iter().for_each(|name| drop(fs::remove_file(acting(name))));
    let said = choose(11);
    let more = rows(&said);
    assert_eq!(counts(&more).iter().sum::<usize>(), 11, "{said}");
    let number = |row: &[String], at: usize| row[at].parse::<f64>().unwrap();
    for (fewer, more) in fewer.iter().zip(&more) {
        assert_eq!(fewer[..2], more[..2]);
        assert!(number(fewer, 2) <= number(more, 2), "{said}");
        assert!(number(fewer, 4) >= number(more, 4) && number(fewer, 5) <= number(more, 5));
    }

    let (best, other) = if said.contains("\nRun: runs/a\n") { ("a", "b") } else { ("b", "a") };
    let choice = report(&acting(best));
    let portfolio = serde_json::json!({ "runs": ["runs/a", "runs/b"], "episodes": 11 });
    assert_eq!(choice["portfolio"], portfolio);
    assert_eq!(choice["curve"].as_array().unwrap().len(), 2);
    assert!(!acting(other).exists(), "it was not chosen");
    assert!(said.contains("; the best of 2 runs by 11 episodes)"), "{said}");
    let command = format!("\nevaluate it with: overtone evaluate rollouts run=runs/{best} ");
    assert!(said.contains(&command), "{said}");
    assert_eq!(said, choose(11), "the same seed");
    assert_eq!(choice, report(&acting(best)));

    // The evaluation and its report say how many episodes chose the agent.
    let words = format!("evaluate rollouts run={best} episodes=2 target=p50");
    desk.succeeds(&words);
    desk.refuses(&format!("{words} seed=1001"));
    let run = desk.path("runs").join(best);
    assert_eq!(report(&run.join("evaluation.json"))["choice"], choice);
    desk.succeeds(&format!("report {best} video=false"));
    let page = fs::read_to_string(run.join("report.md")).unwrap();
    let sentence = " is the best of 2 runs by 11 episodes (runs/a, runs/b).";
    assert!(page.contains(sentence), "{page}");

    // An agent with one mode is an arm too; alone it has nothing to choose.
    let said = desk.succeeds("evaluate choose run=cloned,a budget=0");
    assert!(said.contains("\nRun: runs/cloned\n"), "{said}");
    assert!(said.contains("as trained (the only mode; the first of 2 runs, without"), "{said}");
    assert_eq!(report(&acting("cloned"))["portfolio"]["episodes"], 0, "{said}");
    for words in ["run=cloned", "run=a,walker", "run=a,b,a", "run=a rule=best"] {
        desk.refuses(&format!("evaluate choose {words}"));
    }

    // A rule places the usual number of episodes too.
    desk.succeeds("evaluate choose run=a return_quantiles=0.9,0.5 target=p50 rule=process");
    let choice = report(&acting("a"));
    assert_eq!((&choice["rule"], choice["portfolio"].is_null()), (&"process".into(), true));
    let n = |at: usize| choice["curve"][at]["raw_return"]["n"].as_u64().unwrap();
    assert_eq!(n(0) + n(1), 40);
}

/// One command trains three algorithms, and keeps and evaluates one run. Repeated, it resumes.
#[test]
fn the_best_of_several_algorithms_is_kept() {
    let desk = Desk::new();
    let words = "train env=hopper train.batch_size=3 train.updates=4 train.checkpoint_every=2";
    let all = format!("{words} algorithm=best evaluation.episodes=2 evaluation.budget=13");
    let said = desk.succeeds(&all);
    let runs = fs::read_dir(desk.path("runs")).unwrap().map(|entry| entry.unwrap().path());
    let runs: Vec<_> = runs.collect();
    assert_eq!(runs.len(), 3, "{said}");
    let kept: Vec<_> = runs.iter().filter(|run| run.join("evaluation.json").exists()).collect();
    assert_eq!(kept.len(), 1, "only one run is evaluated");
    let choice = &report(&kept[0].join("evaluation.json"))["choice"];
    assert_eq!(*choice, report(&acting_of(kept[0])));
    assert_eq!(choice["portfolio"]["episodes"], 13);
    assert_eq!(choice["portfolio"]["runs"].as_array().unwrap().len(), 3);

    // Finished runs are found; without one of them, the repeated command has the same bits.
    let chosen = |said: &str| said.split_once("choosing the best").unwrap().1.to_owned();
    let again = desk.succeeds(&all);
    desk.succeeds(&format!("{words} algorithm=best evaluation.episodes=1 evaluation.budget=12"));
    assert_eq!(fs::read_dir(desk.path("runs")).unwrap().count(), 3, "nothing is trained again");
    assert_eq!(again.matches("found a finished run of these settings").count(), 3, "{again}");
    // A busy machine prints its progress.
    let table = |said: &str| {
        let chosen = chosen(said);
        let lines = chosen.split_once("Mode: ").unwrap().0.lines();
        lines.filter(|line| !line.starts_with("evaluating:")).collect::<Vec<_>>().join("\n")
    };
    assert_eq!(table(&again), table(&said));
    let other = Desk::new();
    let alone = "algorithm=rvs evaluation.episodes=0 evaluation.every=0";
    other.succeeds(&format!("{words} {alone}"));
    let began = other.only_run("runs");
    fs::remove_dir_all(began.join("checkpoints/step-00000004")).unwrap();
    fs::remove_file(began.join("finished")).unwrap();
    let resumed = other.succeeds(&all);
    assert!(resumed.contains("resuming after update 2"), "{resumed}");
    assert_eq!(table(&resumed), table(&said));
    for run in &runs {
        let name = run.file_name().unwrap();
        same_run(run, &other.path("runs").join(name), 4);
    }

    for words in [
        "env=hopper evaluation.episodes=0",
        "env=hopper evaluation.every=1",
        "env=hopper evaluation.target=1,2",
        "env=hopper evaluation.target=much",
        "env=hopper evaluation.budget=11",
        "env=hopper evaluation.top_percent=10",
        "task=gymnasium/CartPole-v1 evaluation.temperature=0.5",
        // A fixed temperature is one candidate.
        "task=gymnasium/CartPole-v1 evaluation.temperature=1 evaluation.budget=1",
        "game=seaquest",
        "task=own/any",
    ] {
        desk.refuses(&format!("train {words} algorithm=best"));
    }
}

/// The choice is the run's own mode, and reports of other modes have other names.
#[test]
fn a_temperature_is_chosen_after_training() {
    let desk = Desk::new();
    let words = "evaluation.episodes=1 evaluation.temperature=chosen evaluation.target=5";
    let said = desk.succeeds(&desk.tiny(words));
    let run = desk.only_run("runs");
    let choice = report(&acting_of(&run));
    let chosen = choice["chosen"]["temperature"].as_f64().unwrap();
    let mode = format!("Mode: temperature {chosen} (best of 3 by 3 episodes)\n");
    assert_eq!((said.matches(&mode).count(), said.matches("Mode: ").count()), (1, 1), "{said}");
    assert_eq!(choice["seed"], 1001);
    let played = || report(&run.join("evaluation.json"));
    assert_eq!(played()["choice"], choice);
    assert_eq!(played()["protocol"]["acting"]["temperature"].as_f64(), Some(chosen));
    let differs = |report: &Value| {
        let all = report["differences"].as_array().unwrap().clone();
        all.iter().any(|written| written["setting"] == "temperature")
    };
    assert_eq!(differs(&played()), chosen != 1.0);

    // Two other temperatures; one was not a candidate.
    desk.succeeds("evaluate rollouts episodes=1 target=5 temperature=2");
    let other = report(&run.join("evaluation-t2.json"));
    assert!(differs(&other) && other["choice"].is_null(), "{other}");
    desk.succeeds("evaluate rollouts episodes=1 target=5 protocol=released");
    let released = report(&run.join("evaluation-released.json"));
    assert_eq!(released["protocol"]["acting"]["temperature"].as_f64(), Some(1.0));
    assert!(released["choice"].is_null(), "the reference's, not the chosen one");

    // Killed while choosing, the run resumes the choice with the same result.
    let before = played()["episodes"].clone();
    fs::remove_file(acting_of(&run)).unwrap();
    fs::remove_file(run.join("evaluation.json")).unwrap();
    desk.succeeds("resume");
    assert_eq!(report(&acting_of(&run)), choice);
    assert_eq!(played()["episodes"], before);
    assert!(desk.succeeds("resume").contains("is finished and evaluated"));

    desk.succeeds("report video=false");
    let page = fs::read_to_string(run.join("report.md")).unwrap();
    let headings =
        ["## Chosen acting modes", "matched (temperature chosen)", "matched (temperature 2.0)"];
    headings.iter().for_each(|part| assert!(page.contains(part), "no {part} in {page}"));

    fs::write(acting_of(&run), "{}").unwrap();
    desk.refuses("evaluate rollouts");
}

/// The choice uses other episodes than scores; its mode can be set by hand.
#[test]
fn a_temperature_is_chosen_by_other_episodes() {
    let desk = Desk::new();
    desk.refuses("evaluate choose");
    desk.succeeds(&desk.tiny(""));
    let run = desk.only_run("runs");
    desk.refuses("evaluate choose temperatures=1,0");
    desk.refuses("evaluate choose target=1,2");
    desk.refuses("evaluate choose budget=-1");
    let words = "temperatures=1,0.05 rule=even budget=4 target=5";
    let said = desk.succeeds(&format!("evaluate choose {words}"));
    let found = report(&acting_of(&run));
    let curve = found["curve"].as_array().unwrap();
    let mean = |point: &Value| point["raw_return"]["mean"].as_f64().unwrap();
    let best = if mean(&curve[1]) > mean(&curve[0]) { 0.05 } else { 1.0 };
    assert!((found["chosen"]["temperature"].as_f64().unwrap() - best).abs() < 1e-6, "{found}");
    assert!(said.contains(&format!("temperature={best}")) && said.contains("seed 1001"), "{said}");
    // The same episodes as in an evaluation of that seed, at another temperature.
    let (other, at) = if best < 1.0 { (1.0, 0) } else { (0.05, 1) };
    desk.succeeds(&format!(
        "evaluate rollouts seed=1001 episodes=2 target=5 temperature={other} out=again.json"
    ));
    let again = report(&desk.path("again.json"));
    assert_eq!(again["targets"][0]["raw_return"]["mean"], curve[at]["raw_return"]["mean"]);

    let words = "train env=hopper train.updates=1 train.batch_size=2 evaluation.episodes=0";
    desk.succeeds(&format!("{words} runs=real model.return_head=none model.top_percents=none"));
    desk.refuses("evaluate choose runs=real");
}

/// The choice for a robot's agent is between return quantiles and top percentages. An explicit
/// target overrides the choice.
#[test]
fn a_top_percent_is_an_acting_mode() {
    let desk = Desk::new();
    let words = "model.n_layers=1 model.d_model=16 train.updates=2 train.batch_size=4 \
                 evaluation.episodes=2";
    let said = desk.succeeds(&format!("train env=hopper {words}"));
    assert!(said.contains(" (best of 7 by 14 episodes)\n"), "{said}");
    assert_eq!(said.matches("Mode: ").count(), 1, "{said}");
    let run = desk.only_run("runs");
    let choice = report(&acting_of(&run));
    let ways = choice["curve"].as_array().unwrap().iter();
    let mean = |point: &Value| point["raw_return"]["mean"].as_f64().unwrap();
    let best = ways.clone().map(mean).fold(f64::MIN, f64::max);
    let at = |value: &Value| value.as_f64().unwrap_or(0.0);
    let chosen = ways.clone().find(|point| mean(point) == best).unwrap();
    assert_eq!(choice["chosen"], chosen["mode"]);
    let played = report(&run.join("evaluation.json"));
    assert_eq!(
        at(&played["protocol"]["acting"]["top_percent"]),
        at(&chosen["mode"]["top_percent"])
    );

    // With a top percent, the target has no effect.
    let returns = |words: &str| -> Value {
        desk.succeeds(&format!("evaluate rollouts episodes=2 {words} out=one.json"));
        report(&desk.path("one.json"))
    };
    let tenth = returns("top_percent=10");
    assert_eq!(tenth["protocol"]["acting"]["top_percent"], 10.0);
    assert_eq!(tenth["used_settings"]["target"], false);
    assert!(tenth["command"].as_str().unwrap().contains("top_percent=10"), "{tenth}");
    assert!(!tenth["command"].as_str().unwrap().contains("target="), "{tenth}");
    let said = desk.succeeds("evaluate rollouts episodes=2 top_percent=10 out=one.json");
    assert!(!said.contains("Mode: ") && said.contains("top 10 %"), "{said}");
    for other in ["target=p5", "return_quantile=0.5"] {
        desk.refuses(&format!("evaluate rollouts top_percent=10 {other}"));
    }
    let other = returns("top_percent=100");
    assert_ne!(tenth["targets"][0]["raw_return"], other["targets"][0]["raw_return"]);

    // With a target it uses the best of the modes with a target.
    let asked = returns("target=p50");
    assert_eq!(asked["protocol"]["acting"]["top_percent"], 0.0, "{}", asked["protocol"]);
    assert_eq!(asked["used_settings"]["target"], true);
    let asking = ways.clone().filter(|point| at(&point["mode"]["top_percent"]) == 0.0);
    let best = asking.clone().map(mean).fold(f64::MIN, f64::max);
    let way = asking.clone().find(|point| mean(point) == best).unwrap();
    assert_eq!(asked["choice"]["curve"].as_array().unwrap().len(), 4);
    assert_eq!(asked["choice"]["chosen"], way["mode"]);

    // The episodes of the choice are refused for a score.
    desk.refuses("evaluate rollouts seed=1001");
    // Also by another name of the same protocol; and another protocol has its choice too.
    desk.refuses("evaluate rollouts seed=1001 protocol=v4");
    assert_eq!(returns("protocol=v5")["choice"], choice);
    // Also if the user names the mode.
    let of_a_share = |wanted: bool| {
        let is_chosen = |point: &&Value| (point["mode"] == choice["chosen"]) == wanted;
        let mut share =
            ways.clone().filter(is_chosen).map(|point| at(&point["mode"]["top_percent"]));
        share.rfind(|share| *share > 0.0)
    };
    if let Some(share) = of_a_share(true) {
        desk.refuses(&format!("evaluate rollouts seed=1001 top_percent={share}"));
    }
    let share = of_a_share(false).unwrap();
    desk.succeeds(&format!(
        "evaluate rollouts seed=1001 episodes=1 top_percent={share} out=one.json"
    ));
    desk.refuses("evaluate rollouts top_percent=20");
    desk.succeeds("evaluate choose target=2000 budget=4");
    assert_eq!(report(&acting_of(&run))["curve"].as_array().unwrap().len(), 4);
    desk.succeeds("report video=false");

    let desk = Desk::new();
    let of = |more: &str| format!("train env=hopper {words} {more}");
    for more in [
        "model.top_percents=0",
        "model.top_percents=10,10",
        "model.top_percents=10 algorithm=behavior_cloning",
        "algorithm=rvs model.top_percents=none evaluation.top_percent=10",
    ] {
        desk.refuses(&of(more));
    }
    desk.succeeds(&of("model.top_percents=none"));
    desk.refuses("evaluate rollouts top_percent=10");
}

/// A run's evaluation settings hold for every command that evaluates it.
#[test]
fn a_mode_in_the_settings_is_the_runs_own() {
    for (words, key, value, other, file) in [
        ("top_percent=10", "top_percent", 10.0, "top_percent=100", "evaluation-top100.json"),
        ("return_quantile=0.5", "return_quantile", 0.5, "return_quantile=1", "evaluation-q1.json"),
    ] {
        let desk = Desk::new();
        desk.succeeds(&format!(
            "train env=hopper model.n_layers=1 model.d_model=16 train.updates=2 \
             train.batch_size=4 evaluation.episodes=2 evaluation.{words}"
        ));
        let run = desk.only_run("runs");
        assert!(!acting_of(&run).exists(), "{words}: nothing to choose");
        let trained = report(&run.join("evaluation.json"));
        assert_eq!(trained["protocol"]["acting"][key], value, "{words}");
        desk.succeeds("evaluate rollouts episodes=2");
        let played = report(&run.join("evaluation.json"));
        assert_eq!(played["protocol"], trained["protocol"], "{words}");
        assert_eq!(played["episodes"], trained["episodes"], "{words}");
        desk.succeeds(&format!("evaluate rollouts episodes=1 {other}"));
        assert!(run.join(file).exists(), "{words}");
        // The earlier report is kept.
        desk.succeeds("evaluate rollouts episodes=1");
        assert!(run.join("evaluation-n1.json").exists(), "{words}");
        assert_eq!(report(&run.join("evaluation.json"))["episodes"], trained["episodes"]);
    }
}

/// A fixed setting holds in every candidate mode.
#[test]
fn a_fixed_setting_holds_in_every_mode() {
    let desk = Desk::new();
    desk.succeeds(
        "train task=gymnasium/CartPole-v1 model.n_layers=1 model.d_model=16 train.updates=2 \
         train.batch_size=4 evaluation.episodes=1 evaluation.return_quantile=0.25",
    );
    let run = desk.only_run("runs");
    let choice = report(&acting_of(&run));
    let ways = choice["curve"].as_array().unwrap();
    assert_eq!(ways.len(), 3);
    assert!(ways.iter().all(|point| point["mode"]["return_quantile"] == 0.25), "{choice}");
    let protocol = || report(&run.join("evaluation.json"))["protocol"].clone();
    let trained = protocol();
    assert_eq!(trained["acting"]["return_quantile"], 0.25);
    desk.succeeds("evaluate rollouts episodes=1");
    assert_eq!(protocol(), trained);
}

/// A return-conditioned perceptron may be conditioned on a top percent, like a transformer.
#[test]
fn a_perceptron_may_have_top_percents_too() {
    let desk = Desk::new();
    let said = desk.succeeds(
        "train env=hopper algorithm=rvs model.top_percents=10,100 model.d_model=16 \
         train.updates=2 train.batch_size=4 evaluation.episodes=2",
    );
    assert!(said.contains(" (best of 3 by 6 episodes)\n"), "{said}");
    let run = desk.only_run("runs");
    assert_eq!(report(&acting_of(&run))["curve"].as_array().unwrap().len(), 3);
    let played = |percent: u8| {
        let words = format!("evaluate rollouts episodes=2 top_percent={percent} out=one.json");
        desk.succeeds(&words);
        report(&desk.path("one.json"))
    };
    let [tenth, all] = [10, 100].map(played);
    assert_eq!(tenth["protocol"]["acting"]["top_percent"], 10.0);
    assert_ne!(tenth["targets"][0]["raw_return"], all["targets"][0]["raw_return"]);
    assert_eq!(played(0)["used_settings"]["target"], true);
    let said = desk.run(&format!("export {} out", run.display()));
    said.refused();
    assert!(!said.stderr.contains("or top_percent="), "{said:?}");
}

/// The return quantile of a robot's agent is chosen like a temperature.
#[test]
fn a_quantile_is_chosen_after_training() {
    let desk = Desk::new();
    let words = "model.n_layers=1 model.d_model=16 train.updates=2 train.batch_size=4 \
                 model.top_percents=none evaluation.episodes=1";
    let said = desk.succeeds(&format!("train env=hopper {words}"));
    let run = desk.only_run("runs");
    let choice = report(&acting_of(&run));
    let chosen = choice["chosen"]["return_quantile"].as_f64().unwrap();
    let short = (chosen * 100.0).round() / 100.0;
    let expected = format!("Mode: return quantile {short} (best of 4 by 4 episodes)\n");
    assert!(said.contains(&expected), "{said}");
    let played = report(&run.join("evaluation.json"));
    assert_eq!(played["choice"], choice);
    assert_eq!(played["protocol"]["acting"]["return_quantile"].as_f64(), Some(chosen));
    let command = played["command"].as_str().unwrap();
    assert!(command.contains(&format!("return_quantile={short}")), "{command}");
    // A choice of two named quantiles, with a named budget; and a fixed one.
    desk.refuses("evaluate choose return_quantiles=0.5,1.5");
    desk.succeeds("evaluate choose return_quantiles=0.3,0.6 rule=even budget=4");
    let choice = report(&acting_of(&run));
    assert_eq!(choice["curve"].as_array().unwrap().len(), 2);
    assert_eq!(choice["curve"][0]["raw_return"]["n"], 2);
    desk.succeeds("evaluate rollouts episodes=1 return_quantile=0.8");
    assert!(report(&run.join("evaluation-q0.8.json"))["choice"].is_null());
    desk.refuses("evaluate rollouts return_quantile=0");
    desk.refuses("evaluate rollouts return_quantile=high");
    desk.succeeds("report video=false");
    let page = fs::read_to_string(run.join("report.md")).unwrap();
    let headings = ["## Chosen acting modes", "return quantile 0.9", "return quantile 0.5"];
    headings.iter().for_each(|part| assert!(page.contains(part), "no {part} in {page}"));
    // The last column names the chosen mode as the header does.
    assert!(page.contains(&format!("| return quantile {short} |\n")), "{page}");
}

#[test]
fn an_agent_with_a_fixed_top_percent_tries_no_other() {
    let tiny = "model.n_layers=1 model.d_model=16 model.context_length=4 train.batch_size=4 \
                train.updates=3 evaluation.episodes=2 evaluation.top_percent=10";
    let desk = Desk::new();
    desk.succeeds(&format!("train env=hopper {tiny} runs=robot"));
    let run = desk.only_run("robot");
    assert!(!acting_of(&run).exists());
    let played = report(&run.join("evaluation.json"));
    assert_eq!(played["protocol"]["acting"]["top_percent"], 10.0);
    // An agent with discrete actions still has candidate temperatures.
    desk.succeeds(&format!("train task=gymnasium/CartPole-v1 {tiny} runs=pole"));
    let run = desk.only_run("pole");
    let choice = report(&acting_of(&run));
    let ways: Vec<&Value> =
        choice["curve"].as_array().unwrap().iter().map(|p| &p["mode"]).collect();
    assert_eq!(ways.len(), 3);
    assert!(ways.iter().all(|way| way["top_percent"] == 10.0), "{choice}");
    let played = report(&run.join("evaluation.json"));
    assert_eq!(played["protocol"]["acting"]["temperature"], choice["chosen"]["temperature"]);
}
