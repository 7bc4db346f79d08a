//! The report of an evaluation: statistics, file and text.

#![allow(clippy::unwrap_used)]

use std::ops::ControlFlow;

use overtone_ale::Game;
use overtone_core::protocol::{Difference, ReturnUnits};
use overtone_core::{BinOrder, Outcome, Task};
use overtone_env::{Corridor, VectorEnv};
use overtone_eval::statistics::proportion;
use overtone_eval::{
    CheckpointRef, Evaluation, FailedEpisode, Plan, PlayedDistributions, PlayedEpisode, Pooled,
    RandomPolicy, ReportError, Rollout, Setting, SmoothnessResult, UsedSettings, rollout,
};

fn game(name: &str) -> Task {
    Game::named(name).unwrap().task.clone()
}

fn evaluation() -> Evaluation {
    with_distributions(None)
}

fn with_distributions(distributions: Option<PlayedDistributions>) -> Evaluation {
    let mut played = played();
    played.played = distributions;
    Evaluation::new(setting(), &plan(), played).unwrap()
}

fn plan() -> Plan {
    Plan {
        first: 0,
        episodes: 6,
        targets: vec![1.0, 2.5],
        seed: u64::MAX - 1, // a 64-bit float cannot represent it, but the file must preserve it
        return_units: ReturnUnits::Clipped,
    }
}

fn played() -> Rollout {
    let mut env = Corridor::new(4, 6, 12, 0.2);
    let mut policy = RandomPolicy::new(env.action_space().clone(), 4);
    rollout(&mut env, &mut policy, &plan(), &mut |_| ControlFlow::Continue(())).unwrap()
}

/// A report in which the episodes with these numbers in the plan have failed.
fn with_failed(numbers: &[usize]) -> Result<Evaluation, ReportError> {
    let mut played = played();
    for &number in numbers.iter().rev() {
        let PlayedEpisode { target_return, episode, seed, length, .. } =
            played.episodes.remove(number);
        let reason = "its emulator died".to_owned();
        played.failed.insert(0, FailedEpisode { target_return, episode, seed, length, reason });
        played.finished[number / 6] -= 1;
    }
    Evaluation::new(setting(), &plan(), played)
}

fn setting() -> Setting {
    Setting {
        task: game("seaquest"),
        simulator: "ALE".into(),
        rom_md5: Some("0123".into()),
        policy: "uniform random".into(),
        protocol: game("seaquest").matched(None),
        differences: Vec::new(),
        used_settings: UsedSettings::ALL,
        choice: None,
        checkpoint: Some(CheckpointRef { path: "checkpoints/900".into(), step: 900 }),
        dataset_hash: None,
        command: "overtone evaluate seed=1".into(),
    }
}

#[test]
fn statistics_match_the_listed_episodes() {
    let report = evaluation();
    assert_eq!(report.episodes.len(), 12);
    for (target, episodes) in report.targets.iter().zip(report.episodes.chunks(6)) {
        let mean = episodes.iter().map(|e| e.raw_return).sum::<f64>() / 6.0;
        assert!((target.raw_return.mean - mean).abs() < 1e-12);
        // Every arrival is worth 20 raw and 1 clipped.
        assert!((target.clipped_return.mean * 20.0 - mean).abs() < 1e-9);
        assert_eq!(target.truncated as f64, 6.0 - 6.0 * target.clipped_return.mean);
        let normalized = target.normalized.as_ref().unwrap();
        assert!((normalized.mean - 100.0 * (mean - 68.0) / (42055.0 - 68.0)).abs() < 1e-9);
        let sd = 100.0 * target.raw_return.sd.unwrap() / (42055.0 - 68.0);
        assert!((normalized.sd.unwrap() - sd).abs() < 1e-9);
    }
    let lengths: u64 = report.episodes.iter().map(|e| e.length).sum();
    assert_eq!(report.steps, lengths);
}

#[test]
fn a_report_round_trips_without_leftover_files() {
    let folder = std::env::temp_dir().join(format!("overtone-report-{}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    let path = folder.join("evaluation.json");
    let report = evaluation();
    report.write(&path).unwrap();
    report.write(&path).unwrap(); // replaces the older file
    let read = Evaluation::read(&path).unwrap();
    assert_eq!(read, report);
    let names: Vec<_> =
        std::fs::read_dir(&folder).unwrap().map(|f| f.unwrap().file_name()).collect();
    assert_eq!(names, ["evaluation.json"]);

    let json = std::fs::read_to_string(&path).unwrap();
    // Reports of robots had another key.
    let earlier = json.replacen("\"truncated\":", "\"action_histograms\": [], \"truncated\":", 1);
    assert_ne!(earlier, json);
    std::fs::write(&path, earlier).unwrap();
    assert_eq!(Evaluation::read(&path).unwrap(), report);
    std::fs::write(&path, &json[..json.len() / 2]).unwrap();
    assert!(matches!(Evaluation::read(&path), Err(ReportError::Json { .. })));
    std::fs::remove_dir_all(&folder).unwrap();
    assert!(matches!(Evaluation::read(&path), Err(ReportError::File { .. })));
    assert!(matches!(report.write(&path), Err(ReportError::File { .. })));
}

#[test]
fn the_text_names_the_convention_and_every_target() {
    let report = evaluation();
    let text = report.to_text();
    for part in ["Seaquest", "matched", "Wang et al. 2016", "ddof 1", "checkpoints/900"] {
        assert!(text.contains(part), "`{part}` is missing in\n{text}");
    }
    let rows: Vec<&str> = text.lines().filter(|line| line.contains(" ± ")).collect();
    assert!(rows[0].trim_start().starts_with("1 ") && rows[1].trim_start().starts_with("2.5 "));
}

/// Returns of a trading task, such as 0.00002.
#[test]
fn small_returns_keep_their_digits() {
    let mut played = played();
    for (episode, number) in played.episodes.iter_mut().zip(0..) {
        episode.raw_return = 1e-5 * f64::from(1 + number % 6);
    }
    let text = Evaluation::new(setting(), &plan(), played).unwrap().to_text();
    for number in ["0.0000350 ± 0.0000187", " 0.0000100 ", " 0.0000600 "] {
        assert!(text.contains(number), "`{number}` is missing in\n{text}");
    }
}

#[test]
fn smoothness_and_actions_are_pooled_over_all_steps_of_a_target() {
    let sums = |first: f64, last: f64| {
        let mut sums = vec![0.0; 18];
        (sums[0], sums[17]) = (first, last);
        sums
    };
    // Six episodes for each target. The steps of the first target are 1, 2 and 6, in two episodes:
    // mean 3, squared deviations 4 + 1 + 9. The second target has one step: 5.
    let episodes = [&[1.0, 2.0][..], &[], &[6.0], &[], &[], &[], &[5.0], &[], &[], &[], &[], &[]];
    let report = with_distributions(Some(PlayedDistributions {
        actions: (0..18).map(|action| format!("action {action}")).collect(),
        order: BinOrder::Compass,
        smoothness: episodes.map(|steps| steps.iter().copied().collect::<Pooled>()).to_vec(),
        // First target: one step of action 0 and two of action 17. Second: both with probability ½.
        sums: (0..12)
            .map(|episode| match episode {
                0 => sums(1.0, 1.0),
                2 => sums(0.0, 1.0),
                6 => sums(0.5, 0.5),
                _ => sums(0.0, 0.0),
            })
            .collect(),
    }));
    let shares = |target: usize| {
        let shares = report.targets[target].actions.as_ref().unwrap();
        assert_eq!((shares.len(), shares[17].action.as_str()), (18, "action 17"));
        [shares[0].probability, shares[1].probability, shares[17].probability]
    };
    assert_eq!((shares(0), shares(1)), ([1.0 / 3.0, 0.0, 2.0 / 3.0], [0.5, 0.0, 0.5]));
    let [first, second] = [0, 1].map(|target| report.targets[target].smoothness.unwrap());
    assert_eq!((first.n_bins, first.order, first.n), (18, BinOrder::Compass, 3));
    assert!((first.mean - 3.0).abs() < 1e-12 && (first.sd.unwrap() - 7f64.sqrt()).abs() < 1e-12);
    let alone =
        SmoothnessResult { n_bins: 18, order: BinOrder::Compass, n: 1, mean: 5.0, sd: None };
    assert_eq!(second, alone);
    // It says something about Fourier heads alone.
    assert!(!report.to_text().contains("smoothness"), "the policy has no Fourier head");
    let mut of_fourier = report.clone();
    of_fourier.setting.policy = "Decision Transformer, fourier14 head, softmax attention".into();
    let text = of_fourier.to_text();
    for part in ["smoothness", "3.0000 ± 2.6458", "18 bins in compass order", "lower is smoother"]
    {
        assert!(text.contains(part), "no {part:?} in\n{text}");
    }
    assert!(!evaluation().to_text().contains("smoothness"), "the report has no distributions");

    // The file preserves both. A report without these keys is read as one without distributions.
    let json = serde_json::to_value(&report).unwrap();
    assert_eq!(serde_json::from_value::<Evaluation>(json.clone()).unwrap(), report);
    let mut before = json;
    for target in before["targets"].as_array_mut().unwrap() {
        for key in ["smoothness", "actions"] {
            assert!(target.as_object_mut().unwrap().remove(key).is_some());
        }
    }
    let read: Evaluation = serde_json::from_value(before).unwrap();
    assert!(read.targets.iter().all(|target| target.smoothness.is_none()));
    assert_eq!(read.episodes, report.episodes);
}

/// A corridor says that an episode succeeded if it arrived.
#[test]
fn the_success_rate_is_known_if_every_episode_says_so() {
    let report = evaluation();
    for (target, episodes) in report.targets.iter().zip(report.episodes.chunks(6)) {
        let n = episodes.iter().filter(|episode| episode.outcome == Outcome::Terminated).count();
        let rate = target.success.unwrap();
        assert_eq!(rate, proportion(n, 6, 0.95));
        assert_eq!(rate.value, target.clipped_return.mean, "each arrival is worth 1 clipped");
        assert!((1..6).contains(&n), "{n} of 6");
    }
    let text = report.to_text();
    for part in ["success [interval]", "Wilson's 95 % interval"] {
        assert!(text.contains(part), "no {part:?} in\n{text}");
    }

    // The file preserves it. A report of an earlier version does not have it.
    let json = serde_json::to_value(&report).unwrap();
    assert_eq!(serde_json::from_value::<Evaluation>(json.clone()).unwrap(), report);
    let mut before = json;
    for list in ["targets", "episodes"] {
        for item in before[list].as_array_mut().unwrap() {
            assert!(item.as_object_mut().unwrap().remove("success").is_some());
        }
    }
    let read: Evaluation = serde_json::from_value(before).unwrap();
    assert!(read.targets.iter().all(|target| target.success.is_none()));
    assert!(!read.to_text().contains("success"), "{}", read.to_text());

    // One episode without it: a rate of the others would be a guess.
    let mut partly = played();
    partly.episodes[7].success = None;
    let partly = Evaluation::new(setting(), &plan(), partly).unwrap();
    assert_eq!(partly.targets[0].success, report.targets[0].success);
    assert_eq!(partly.targets[1].success, None);
}

#[test]
fn failed_episodes_are_reported_but_not_in_the_statistics() {
    let (sound, report) = (evaluation(), with_failed(&[1, 4, 7]).unwrap());
    assert_eq!((report.targets[0].raw_return.n, report.targets[1].raw_return.n), (4, 5));
    let kept = [0, 2, 3, 5].map(|number| sound.episodes[number].raw_return);
    assert!((report.targets[0].raw_return.mean - kept.iter().sum::<f64>() / 4.0).abs() < 1e-12);
    assert_eq!(report.episodes.len(), 9);
    let warning = report.warning().unwrap();
    assert!(warning.starts_with("3 of 12 episodes failed"), "{warning}");
    assert!(warning.contains("episode 1 of target 1 after"), "{warning}");
    assert!(warning.ends_with("its emulator died"), "{warning}");
    assert!(report.to_text().contains(&format!("WARNING: {warning}")));
    assert!(sound.warning().is_none() && !sound.to_text().contains("WARNING"));

    // The file preserves them, and omits the key if no episode failed.
    let json = serde_json::to_string(&report).unwrap();
    assert_eq!(serde_json::from_str::<Evaluation>(&json).unwrap(), report);
    assert!(!serde_json::to_string(&sound).unwrap().contains("failed"));

    // A target without a finished episode is omitted. A report without any is an error.
    let half = with_failed(&[6, 7, 8, 9, 10, 11]).unwrap();
    assert_eq!((half.targets.len(), half.targets[0].target_return), (1, 1.0));
    // The first target is known even if its episodes or other episodes failed.
    let first = |report: &Evaluation| report.first_target().map(|result| result.target_return);
    let other = with_failed(&[0, 1, 2, 3, 4, 5]).unwrap();
    assert_eq!([first(&sound), first(&half), first(&other)], [Some(1.0), Some(1.0), None]);
    assert_eq!(other.targets[0].target_return, 2.5);
    let all: Vec<usize> = (0..12).collect();
    let error = with_failed(&all).unwrap_err();
    assert_eq!(error.to_string(), "all 12 episodes failed; the first: its emulator died");
}

#[test]
fn differences_are_listed_with_their_consequences() {
    let difference = Difference {
        setting: "simulation.sticky_probability".into(),
        trained: "0.25".into(),
        played: "0".into(),
        consequence: "scores are not comparable".into(),
    };
    let line = "  simulation.sticky_probability 0, trained with 0.25: scores are not comparable\n";
    let text_of = |differences: Vec<Difference>| {
        let mut report = evaluation();
        report.setting.differences = differences;
        let json = serde_json::to_string(&report).unwrap();
        assert_eq!(serde_json::from_str::<Evaluation>(&json).unwrap(), report);
        report.to_text()
    };
    let text = text_of(vec![difference]);
    assert!(text.contains("differences from the recorded data") && text.contains(line), "{text}");
    let text = text_of(Vec::new());
    assert!(text.contains("no setting differs"), "{text}");
}
