//! Help, inspection, and output without a terminal.

use std::{collections::BTreeSet, fs, io::Read, process::Stdio};

use overtone_settings::{Profile, RunConfig};

use crate::desk::{Desk, project, said};

#[track_caller]
fn lists(help: &str, key: &str) {
    let line = help.lines().position(|line| line.trim_start().starts_with(&format!("{key}=")));
    let reason = line.and_then(|at| help.lines().nth(at + 1)).map(str::trim);
    assert!(reason.is_some_and(|reason| reason.len() > 10), "{key}: {reason:?}");
}

#[test]
fn help_lists_every_key_with_a_reason() {
    let desk = Desk::new();
    let short = desk.succeeds("train --help");
    assert!(short.lines().count() < 60 && short.contains("--help-all"), "{short}");
    let help = desk.succeeds("train --help-all");
    let mut keys = BTreeSet::new();
    for line in ["env=hopper", "game=seaquest algorithm=discrete_cql"] {
        let words: Vec<String> = line.split(' ').map(str::to_owned).collect();
        let config = RunConfig::resolve(&words, |_| Profile::Quick).unwrap();
        keys.extend(config.keys().unwrap().into_keys());
    }
    assert!(keys.len() > 40, "{keys:?}");
    let keys = keys.iter().map(|key| key.strip_suffix(".kind").unwrap_or(key).to_owned());
    for key in keys {
        lists(&help, &key);
    }
    let help = desk.succeeds("evaluate rollouts --help");
    for key in "run runs checkpoint episodes target protocol temperature seed parallel device out"
        .split(' ')
    {
        lists(&help, key);
    }
    let help = desk.succeeds("resume --help");
    for key in ["run", "runs", "device"] {
        lists(&help, key);
    }
    let help = desk.succeeds("study resume --help");
    lists(&help, "runs");
    assert!(!help.contains("  name=") && !help.contains("Every other key"), "{help}");
    let help = desk.succeeds("--help");
    for command in ["train", "resume", "evaluate", "download", "data"] {
        assert!(help.contains(command), "{help}");
    }
}

#[test]
fn inspection_is_one_json_document() {
    let desk = Desk::new();
    for game in ["BankHeist", "DoubleDunk", "Gravitar", "Seaquest"] {
        let folder = project().join("datasets/starter").join(game);
        let text = desk.succeeds(&format!("data inspect --json {}", folder.display()));
        let json: serde_json::Value = serde_json::from_str(&text).unwrap();
        let card = project().join(format!("datasets/starter-{}.toml", game.to_lowercase()));
        let card: toml::Table = fs::read_to_string(card).unwrap().parse().unwrap();
        let count = |key: &str| card["counts"]["each"][key].as_integer().unwrap();
        assert_eq!((json["game"].as_str(), json["run"].as_str()), (Some(game), Some("1")));
        assert_eq!(json["files"], count("files"));
        assert_eq!(json["slots"], count("files") * count("slots_per_file"));
        assert_eq!(json["transitions"], count("transitions"));
        assert_eq!(json["episodes"], count("episodes"));
        assert_eq!(json["returns"]["units"], "clipped");
        let actions = json["action_histogram"].as_array().unwrap();
        assert_eq!(actions.iter().map(|n| n.as_i64().unwrap()).sum::<i64>(), count("transitions"));
        // The same as text.
        let text = desk.succeeds(&format!("data inspect {}", folder.display()));
        assert!(text.contains(&count("transitions").to_string()), "{text}");
    }
}

/// `overtone … | head`: a closed output neither ends a run nor panics.
#[test]
fn a_reader_that_goes_away() {
    let desk = Desk::new();
    let seaquest = project().join("datasets/starter/Seaquest");
    for line in [format!("data inspect --json {}", seaquest.display()), desk.tiny("")] {
        let mut child = desk.command(&line).stdout(Stdio::piped()).spawn().unwrap();
        drop(child.stdout.take());
        let mut stderr = String::new();
        child.stderr.take().unwrap().read_to_string(&mut stderr).unwrap();
        assert_eq!((child.wait().unwrap().code(), stderr.as_str()), (Some(0), ""), "{line}");
    }
    assert!(desk.only_run("runs").join("finished").is_file());
}

#[test]
fn training_prints_its_steps() {
    let desk = Desk::new();
    let text = said(desk.command(&desk.tiny("")).arg("runs=my runs").output().unwrap()).stdout;
    let begin = |start: &str| text.lines().filter(|line| line.starts_with(start)).count();
    for start in ["data: the starter set", "plan: ", "dataset: ", "profile: ", "device: cpu"] {
        assert_eq!(begin(start), 1, "{start}\n{text}");
    }
    for start in ["model: ", "run: my runs/", "update 4/4: loss ", "trained for "] {
        assert_eq!(begin(start), 1, "{start}\n{text}");
    }
    assert!(text.contains(" (curves: tensorboard --logdir 'my runs')\n"), "{text}");
}
