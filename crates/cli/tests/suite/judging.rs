//! `overtone judge`: estimates from recordings, and what it refuses.

use std::fs;

use overtone_core::imitation::Imitation;
use overtone_core::judgement::{Check, Judged, Judgement, Method, Trained, Verdict};
use overtone_data::{Recording, read};
use overtone_testkit::{dopamine::npy, sentences};

use crate::desk::{Desk, project};

const SMALL: &str = "train.updates=3 train.batch_size=8 model.d_model=16 model.n_layers=1";

/// A desk with a run `runs/…` of the clinic, with 20 % of its episodes held out.
fn clinic(desk: &Desk) -> String {
    let file = project().join("datasets/starter/own/clinic_doctor.npz");
    let line = format!(
        "train own=clinic dataset={} algorithm=rvs train.held_out=0.2 {SMALL}",
        file.display()
    );
    desk.succeeds(&line)
}

fn judgement(desk: &Desk) -> Judgement {
    let path = desk.only_run("runs").join(Judgement::FILE);
    serde_json::from_slice(&fs::read(path).unwrap()).unwrap()
}

#[test]
fn a_run_of_a_clinic_is_judged() {
    let desk = Desk::new();
    let text = clinic(&desk);
    // 500 patients; 100 of them are held out.
    let parts =
        ["RvS-R with top percents, 1 layers", "recorded: 100 episodes", "weighted doubly robust"];
    for part in parts {
        assert!(text.contains(part), "{part}: {text}");
    }
    let own = judgement(&desk);
    assert_eq!((own.policies.len(), own.recording.trained), (1, Trained::No));
    assert!(own.recording.has_log_probs);

    let text = desk.succeeds("judge updates=0 seed=3");
    assert!(!text.contains("known answer"), "{text}");
    let all = judgement(&desk);
    // Three temperatures, with three top percents and a target return each.
    assert_eq!((all.policies.len(), all.seed, all.clone), (12, 3, None));
    for judged in &all.policies {
        let methods: Vec<Method> = judged.estimates.iter().map(|of| of.method).collect();
        assert_eq!(methods, [Method::Pdis, Method::Wpdis]);
    }
    // The same file by name: still the held-out episodes only.
    let file = project().join("datasets/starter/own/clinic_doctor.npz");
    desk.succeeds(&format!("judge updates=0 modes=own dataset={}", file.display()));
    let named = judgement(&desk);
    assert_eq!((named.recording.episodes, named.recording.trained), (100, Trained::No));
    let few = desk.succeeds("judge updates=0 modes=own steps=300");
    assert!(few.contains("recorded: 3") && few.contains(" episodes of "), "{few}");

    let told = |judged: &Judged| !matches!(judged.verdict, Verdict::CannotTell { .. });
    let strict = desk.run("judge updates=0 seed=3 strict=true");
    let expected = i32::from(!all.policies.iter().all(told));
    assert_eq!((strict.code, expected), (Some(1), 1), "{}", strict.stderr);
}

/// A table becomes an agent, an answer, and a comparison with the recorded actions.
#[test]
fn a_table_of_sessions_is_judged() {
    let desk = Desk::new();
    let mut table = "session,hour,load,valve,profit,log_prob\n".to_owned();
    for row in 0..240 {
        let (session, hour) = (row / 4, row % 4);
        let valve = ["shut", "open"][(row * 7 % 5) % 2];
        let [load, profit] = [row % 3, usize::from(valve == "open") * (row % 3)];
        table += &format!("{session},{hour},{load},{valve},{profit},-0.693147\n");
    }
    fs::write(desk.path("log.csv"), table).unwrap();
    let columns = "data.columns.episode=session data.columns.observation=load,hour \
                   data.columns.action=valve data.columns.reward=profit \
                   data.columns.behavior_log_probs=log_prob";
    let text = desk.succeeds(&format!(
        "train own=valve dataset=log.csv algorithm=rvs train.held_out=0.5 {SMALL} {columns}"
    ));
    assert!(text.contains("imitation, not a score") && text.contains("share of equal"), "{text}");
    let run = desk.only_run("runs");
    let json = fs::read(run.join(Imitation::FILE)).unwrap();
    let imitation: Imitation = serde_json::from_slice(&json).unwrap();
    assert_eq!((imitation.steps, imitation.is_discrete), (4 * imitation.episodes, true));
    assert_eq!((imitation.trained, imitation.numbers.len()), (Trained::No, 1));
    // Rows and episodes are those of the file.
    for of in &imitation.largest {
        assert_eq!(of.episode, of.row / 4, "{of:?}");
    }
    assert!(judgement(&desk).recording.has_log_probs);
    let page = desk.succeeds("report");
    assert!(page.contains("report"), "{page}");
    let html = fs::read_to_string(run.join("report.html")).unwrap();
    assert!(html.contains("Next to the recorded actions") && html.contains("nearest observation"));
    // Another table has the same columns.
    fs::copy(desk.path("log.csv"), desk.path("later.csv")).unwrap();
    desk.succeeds("judge updates=0 dataset=later.csv");
    desk.refuses("train own=valve dataset=log.csv");
    desk.refuses("train own=valve dataset=log.csv data.columns.rewards=profit");
}

#[test]
fn what_cannot_be_judged_exits_with_2() {
    let desk = Desk::new();
    clinic(&desk);
    let hopper = project().join("datasets/starter/mujoco/hopper_medium.hdf5");
    for words in [
        format!("dataset={}", hopper.display()),
        "discount=1.5".into(),
        "critics=1".into(),
        "target=p50,p90".into(),
        "dataset=missing.npz".into(),
        "modes=every".into(),
        "checkpoint=runs".into(),
    ] {
        let ended = desk.run(&format!("judge {words}"));
        assert_eq!(ended.code, Some(2), "{words}: {}", ended.stdout);
        sentences::check(&ended.stderr);
    }
}

#[test]
fn frames_are_not_judged() {
    let desk = Desk::new();
    desk.succeeds(&desk.tiny("train.updates=2"));
    let ended = desk.run("judge");
    assert_eq!(ended.code, Some(2), "{}", ended.stdout);
    assert!(ended.stderr.contains("pixel observations"), "{}", ended.stderr);
}

/// A run that is initialised from another one has seen that one's data, too.
#[test]
fn a_run_has_seen_the_data_of_the_run_that_initialised_it() {
    let desk = Desk::new();
    clinic(&desk);
    let file = project().join("datasets/starter/own/clinic_doctor.npz");
    let first = desk.only_run("runs");
    let line =
        format!("train init={} train.held_out=0.2 {SMALL} runs=second seed=2", first.display());
    desk.succeeds(&line);
    desk.succeeds("judge runs=second updates=0 modes=own");
    let path = desk.only_run("second").join(Judgement::FILE);
    let seen = || serde_json::from_slice::<Judgement>(&fs::read(&path).unwrap()).unwrap().recording;
    // Of its 100 held-out patients, some 20 were held out of both runs.
    assert!(seen().episodes < 100 || seen().trained == Trained::Yes, "{:?}", seen());
    // Without the first run, the answer is not known.
    fs::remove_dir_all(&first).unwrap();
    let named = format!("judge runs=second updates=0 modes=own dataset={}", file.display());
    let said = desk.succeeds(&named);
    assert!(said.contains("it is unknown whether the agent trained"), "{said}");
    assert_eq!((seen().episodes, seen().trained), (100, Trained::Unknown));
}

/// A policy of another program, by its probabilities at the recorded rows.
#[test]
fn a_policy_of_another_program_is_judged() {
    let desk = Desk::new();
    let file = project().join("datasets/starter/own/clinic_doctor.npz");
    let Recording::Columns(columns) = read::open(&file).unwrap() else { panic!("columns") };
    let recorded = columns.behavior_log_probs.unwrap();
    let rows = recorded.len();
    let save = |shape: &[usize], numbers: &[f64]| {
        let bytes: Vec<u8> = numbers.iter().flat_map(|number| number.to_le_bytes()).collect();
        fs::write(desk.path("doctor.npy"), npy("<f8", shape, &bytes)).unwrap();
    };
    let judged = |words: &str| -> Judgement {
        desk.succeeds(&format!("judge dataset={} probs=doctor.npy {words}", file.display()));
        let path = desk.path("doctor.judgement.json");
        serde_json::from_slice(&fs::read(path).unwrap()).unwrap()
    };
    // The recorded policy itself has the recorded return, and no difference from it.
    let own: Vec<f64> = recorded.iter().map(|&log| f64::from(log).exp()).collect();
    save(&[rows], &own);
    let same = judged("steps=0");
    let estimate = same.policies[0].deciding().unwrap();
    assert!((estimate.value - same.recording.mean_return).abs() < 1e-9, "{same:?}");
    assert_eq!(same.recording.trained, Trained::Unknown);
    let reasons = vec![Check::Difference];
    assert_eq!(same.policies[0].verdict, Verdict::CannotTell { reasons });
    // Whatever the draw of episodes, rows stay with their probabilities.
    let drawn = judged("steps=1000");
    let estimate = drawn.policies[0].deciding().unwrap();
    assert!(drawn.recording.episodes < 200, "{drawn:?}");
    assert!((estimate.value - drawn.recording.mean_return).abs() < 1e-9, "{drawn:?}");
    // Each treatment with the same probability, known at every row, so critics can be fitted.
    save(&[rows, 4], &vec![0.25; 4 * rows]);
    let random = judged("updates=20 steps=0");
    assert_eq!(random.policies[0].estimates.last().unwrap().method, Method::Wdr);

    let refused = |words: &str| {
        let ended = desk.run(&format!("judge {words}"));
        assert_eq!(ended.code, Some(2), "{words}: {}", ended.stdout);
        sentences::check(&ended.stderr);
    };
    let clinic = format!("dataset={} probs=doctor.npy", file.display());
    refused("probs=doctor.npy");
    refused(&format!("{clinic} modes=own"));
    refused(&format!("{clinic}.npy"));
    for (shape, numbers) in [
        (vec![3], vec![0.5; 3]),
        (vec![rows, 4], vec![0.5; 4 * rows]),
        (vec![rows], recorded.iter().map(|&log| log.into()).collect()),
    ] {
        save(&shape, &numbers);
        refused(&clinic);
    }
}
