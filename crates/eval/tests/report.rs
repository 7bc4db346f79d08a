//! The report: its numbers, its file, its text.

#![allow(clippy::unwrap_used)]

use std::ops::ControlFlow;

use overtone_core::protocol::{Emulation, Protocol, ReturnUnits};
use overtone_env::{Corridor, VectorEnv};
use overtone_eval::{
    CheckpointRef, Convention, Evaluation, Plan, RandomPolicy, ReportError, Setting, rollout,
};

fn evaluation() -> Evaluation {
    let plan = Plan {
        episodes: 6,
        targets: vec![1.0, 2.5],
        seed: u64::MAX - 1, // does not fit a 64-bit float: must survive the file
        return_units: ReturnUnits::Clipped,
    };
    let mut env = Corridor::new(4, 6, 12, 0.2);
    let mut policy = RandomPolicy::new(env.action_space().clone(), 4);
    let played = rollout(&mut env, &mut policy, &plan, &mut |_| ControlFlow::Continue(())).unwrap();
    let setting = Setting {
        task: "Seaquest".into(),
        rom_md5: Some("0123".into()),
        policy: "uniform random".into(),
        protocol: Protocol::matched(&Emulation::dqn_replay()),
        checkpoint: Some(CheckpointRef { path: "checkpoints/900".into(), step: 900 }),
        dataset_hash: None,
        command: "overtone evaluate seed=1".into(),
        reference: Convention::default_for("Seaquest"),
    };
    Evaluation::new(setting, &plan, played).unwrap()
}

#[test]
fn statistics_are_those_of_the_episodes_listed() {
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
        let spread = report.setting.reference.unwrap();
        let sd = spread.normalize_spread(target.raw_return.sd.unwrap());
        assert!((normalized.sd.unwrap() - sd).abs() < 1e-9);
    }
    let lengths: u64 = report.episodes.iter().map(|e| e.length).sum();
    assert_eq!(report.steps, lengths);
}

#[test]
fn a_report_reads_back_and_leaves_nothing_beside_it() {
    let folder = std::env::temp_dir().join(format!("overtone-report-{}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    let path = folder.join("evaluation.json");
    let report = evaluation();
    report.write(&path).unwrap();
    report.write(&path).unwrap(); // over an older one
    let read = Evaluation::read(&path).unwrap();
    assert_eq!(read, report);
    let names: Vec<_> =
        std::fs::read_dir(&folder).unwrap().map(|f| f.unwrap().file_name()).collect();
    assert_eq!(names, ["evaluation.json"]);

    let json = std::fs::read_to_string(&path).unwrap();
    std::fs::write(&path, &json[..json.len() / 2]).unwrap();
    assert!(matches!(Evaluation::read(&path), Err(ReportError::Format { .. })));
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
    assert_eq!(report.episode_table().lines().count(), 13);
}
