//! The ablation of a protocol: pairs, what is the same, and the page.

#![allow(clippy::unwrap_used, reason = "the helpers of tests are tests too")]

use std::ops::ControlFlow;

use overtone_ale::Game;
use overtone_core::Task;
use overtone_core::protocol::{Difference, ReturnUnits};
use overtone_env::{Corridor, VectorEnv};
use overtone_eval::statistics::Bootstrap;
use overtone_eval::{
    Ablation, AblationResult, AblationRow, Evaluation, Heeds, Plan, RandomPolicy, Setting, rollout,
};
use overtone_testkit::sentences;

fn game(name: &str) -> Task {
    Game::named(name).unwrap().task.clone()
}

const QUICK: Bootstrap = Bootstrap { replications: 2000, level: 0.95, seed: 1 };

/// Random play in a corridor, with these returns in place of its own.
fn evaluation(returns: &[f64]) -> Evaluation {
    let plan = Plan::new(returns.len(), vec![32.0], 1, ReturnUnits::Clipped);
    let mut env = Corridor::new(4, 6, 12, 0.2);
    let mut policy = RandomPolicy::new(env.action_space().clone(), 4);
    let mut played =
        rollout(&mut env, &mut policy, &plan, &mut |_| ControlFlow::Continue(())).unwrap();
    for (episode, raw_return) in played.episodes.iter_mut().zip(returns) {
        episode.raw_return = *raw_return;
    }
    let setting = Setting {
        task: Task { reference: None, ..game("seaquest") },
        simulator: "a corridor".into(),
        rom_md5: None,
        policy: "uniform random".into(),
        protocol: game("seaquest").matched(None),
        differences: Vec::new(),
        heeds: Heeds::ALL,
        choice: None,
        checkpoint: None,
        dataset_hash: None,
        command: "overtone evaluate ablation".into(),
    };
    Evaluation::new(setting, &plan, played).unwrap()
}

fn compare(matched: &Evaluation, other: &Evaluation) -> AblationResult {
    AblationResult::compare(matched, other, &QUICK).unwrap()
}

#[test]
fn differences_are_of_the_same_episodes() {
    // Far apart from each other, and each 10 or 20 more: a small interval around 15.
    let matched = evaluation(&[0.0, 1000.0, 500.0, 9000.0]);
    let other = evaluation(&[10.0, 1020.0, 510.0, 9020.0]);
    let AblationResult::Played { raw_return, difference, pairs, identical, failed } =
        compare(&matched, &other)
    else {
        panic!("it was played")
    };
    assert_eq!((raw_return.mean, difference.value, pairs), (2640.0, 15.0, 4));
    let interval = difference.interval.unwrap();
    assert!(interval.low >= 10.0 && interval.high <= 20.0, "{interval:?}");
    assert!(interval.low < 15.0 && 15.0 < interval.high, "{interval:?}");
    assert_eq!((identical, failed), (false, 0));

    // An episode that ended under one of them alone is in no pair.
    let mut cut = other;
    cut.episodes.remove(3);
    let AblationResult::Played { difference, pairs, .. } = compare(&matched, &cut) else {
        panic!("it was played")
    };
    assert_eq!(pairs, 3);
    assert!((difference.value - 40.0 / 3.0).abs() < 1e-9, "{difference:?}");
    // None that ended under both: no number, and no error that takes the other rows along.
    cut.episodes.retain(|episode| episode.episode == 0);
    let mut rest = matched;
    rest.episodes.remove(0);
    let AblationResult::NotPlayed { reason } = compare(&rest, &cut) else {
        panic!("there is nothing to compare")
    };
    sentences::check(&reason);
}

#[test]
fn the_same_episodes_are_said_to_be_the_same() {
    let matched = evaluation(&[20.0, 40.0, 0.0]);
    let same = compare(&matched, &matched);
    assert!(matches!(same, AblationResult::Played { identical: true, .. }), "{same:?}");
    let mut longer = matched.clone();
    longer.episodes[1].length += 1;
    let result = compare(&matched, &longer);
    assert!(matches!(result, AblationResult::Played { identical: false, .. }), "{result:?}");
}

#[test]
fn the_page_tells_every_row() {
    let matched = evaluation(&[20.0, 40.0, 0.0]);
    let mut ablation = Ablation::new(&matched, QUICK).unwrap();
    let reason = |words: &str| words.to_owned();
    for (setting, result) in [
        ("sticky", compare(&matched, &evaluation(&[30.0, 50.0, 10.0]))),
        ("integer", compare(&matched, &matched)),
        ("fed_back", AblationResult::Same { reason: reason("the head has no order") }),
        ("reset", AblationResult::NotPlayed { reason: reason("the emulator cannot") }),
    ] {
        let difference = Difference {
            setting: setting.into(),
            trained: "a".into(),
            played: "b".into(),
            consequence: format!("{setting} matters"),
        };
        ablation.rows.push(AblationRow { difference, result });
    }
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("ablation.md");
    ablation.write(&path).unwrap();
    let page = std::fs::read_to_string(&path).unwrap();
    for part in [
        "# What the protocol is worth: Seaquest",
        "difference [95 % interval]",
        "| matched |  |  | 3 | 20.0 ± 20.0 |  |",
        "| sticky | a | b | 3 | 30.0 ± 20.0 | +10.0 [+10.0, +10.0] |",
        "| integer | a | b | 3 | 20.0 ± 20.0 | 0: the same episodes |",
        "| fed_back | a | b |  |  | same, not played |",
        "- fed_back: same, because the head has no order.",
        "- reset: not played, because the emulator cannot.",
        "- sticky: sticky matters.",
        "the same 3 episodes (seed 1) and asks for 32",
    ] {
        assert!(page.contains(part), "no {part:?} in\n{page}");
    }
    let json = std::fs::read_to_string(path.with_extension("json")).unwrap();
    assert_eq!(serde_json::from_str::<Ablation>(&json).unwrap(), ablation);
    let files = std::fs::read_dir(folder.path()).unwrap().count();
    assert_eq!(files, 2, "nothing is left beside them");
}
