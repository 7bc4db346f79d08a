//! The ablation of a protocol: paired differences, identical episodes, and the page.

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

/// An evaluation of random actions in a corridor, with its returns replaced by `returns`.
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
fn differences_are_paired_by_episode() {
    // The returns vary widely, but each is higher by 10 or 20: a small interval around 15.
    let matched = evaluation(&[0.0, 1000.0, 500.0, 9000.0]);
    let other = evaluation(&[10.0, 1020.0, 510.0, 9020.0]);
    let AblationResult::Played { raw_return, difference, pairs, identical, failed } =
        compare(&matched, &other)
    else {
        panic!("expected a result with scores")
    };
    assert_eq!((raw_return.mean, difference.value, pairs), (2640.0, 15.0, 4));
    let interval = difference.interval.unwrap();
    assert!(interval.low >= 10.0 && interval.high <= 20.0, "{interval:?}");
    assert!(interval.low < 15.0 && 15.0 < interval.high, "{interval:?}");
    assert_eq!((identical, failed), (false, 0));

    // An episode that finished under only one protocol is not in a pair.
    let mut cut = other;
    cut.episodes.remove(3);
    let AblationResult::Played { difference, pairs, .. } = compare(&matched, &cut) else {
        panic!("expected a result with scores")
    };
    assert_eq!(pairs, 3);
    assert!((difference.value - 40.0 / 3.0).abs() < 1e-9, "{difference:?}");
    // If no episode finished under both protocols, there is a reason instead of an error.
    cut.episodes.retain(|episode| episode.episode == 0);
    let mut rest = matched;
    rest.episodes.remove(0);
    let AblationResult::NotPlayed { reason } = compare(&rest, &cut) else {
        panic!("expected no comparison")
    };
    sentences::check(&reason);
}

#[test]
fn identical_episodes_are_recognized() {
    let matched = evaluation(&[20.0, 40.0, 0.0]);
    let same = compare(&matched, &matched);
    assert!(matches!(same, AblationResult::Played { identical: true, .. }), "{same:?}");
    let mut longer = matched.clone();
    longer.episodes[1].length += 1;
    let result = compare(&matched, &longer);
    assert!(matches!(result, AblationResult::Played { identical: false, .. }), "{result:?}");
}

#[test]
fn the_page_has_every_row() {
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
        "# Effect of the protocol's settings: Seaquest",
        "difference [95 % interval]",
        "| matched |  |  | 3 | 20.0 ± 20.0 |  |",
        "| sticky | a | b | 3 | 30.0 ± 20.0 | +10.0 [+10.0, +10.0] |",
        "| integer | a | b | 3 | 20.0 ± 20.0 | 0: the same episodes |",
        "| fed_back | a | b |  |  | same, not evaluated |",
        "- fed_back: same, because the head has no order.",
        "- reset: not evaluated, because the emulator cannot.",
        "- sticky: sticky matters.",
        "the same 3 episodes (seed 1) and target 32",
    ] {
        assert!(page.contains(part), "no {part:?} in\n{page}");
    }
    let json = std::fs::read_to_string(path.with_extension("json")).unwrap();
    assert_eq!(serde_json::from_str::<Ablation>(&json).unwrap(), ablation);
    let files = std::fs::read_dir(folder.path()).unwrap().count();
    assert_eq!(files, 2, "there are no other files");
}
