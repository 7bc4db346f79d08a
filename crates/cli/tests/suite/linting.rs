//! `data lint`: its output and exit code.

use std::{fs, path::Path};

use overtone_testkit::dopamine::Recorder;

use crate::desk::{Desk, copy, project};

#[test]
fn sound_recordings() {
    let desk = Desk::new();
    let starter = project().join("datasets/starter");
    for name in ["Seaquest", "mujoco/walker2d_medium.hdf5"] {
        let text = desk.succeeds(&format!("data lint {}", starter.join(name).display()));
        let first = text.lines().next().unwrap();
        assert!(first.contains("compared with starter-"), "{first}");
        // A dataset may end in the middle of an episode.
        assert!(text.contains("\n0 errors, 0 warnings, "), "{text}");
    }
}

#[test]
fn the_exit_code_is_the_severity() {
    let desk = Desk::new();
    let recorder = |name: &str, spoil: &dyn Fn(&mut Recorder)| {
        let mut recorder = Recorder::new(&desk.path(name), "Homebrew", 40);
        recorder.episode(36);
        recorder.files = 0;
        spoil(&mut recorder);
        recorder.save();
        desk.run(&format!("data lint --json {name}/Homebrew"))
    };
    let json = |text: &str| serde_json::from_str::<serde_json::Value>(text).unwrap();
    let said = recorder("sound", &|_| {});
    assert_eq!((said.code, said.stderr.as_str()), (Some(0), ""));
    let report = json(&said.stdout);
    assert_eq!(
        (&report["format"], &report["findings"]),
        (&"DQN replay".into(), &serde_json::json!([]))
    );
    let said = recorder("half", &|run| run.ring[10].reward = 0.5);
    assert_eq!((said.code, said.stderr.as_str()), (Some(1), ""));
    let finding = json(&said.stdout)["findings"][0].clone();
    assert_eq!(finding["severity"], "warning");
    assert_eq!(finding["code"], "fractional-rewards");
    assert_eq!(finding["file"], "$store$_reward_ckpt.0.gz");
    for key in ["expected", "found", "advice"] {
        assert!(finding[key].as_str().is_some_and(|text| text.len() > 5), "{finding}");
    }
    let said = recorder("wrong", &|run| run.ring[10].reward = 2.0);
    assert_eq!((said.code, said.stderr.as_str()), (Some(2), ""));
    // As text.
    let said = desk.run("data lint wrong/Homebrew");
    assert_eq!(said.code, Some(2));
    for part in [
        "wrong/Homebrew, without a dataset card",
        "error",
        "unclipped-rewards",
        "1 error, 0 warnings",
    ] {
        assert!(said.stdout.contains(part), "{part}: {}", said.stdout);
    }
}

/// Directories above a file may have a game's name; only the file's name counts for its task.
#[test]
fn folders_above_a_file_say_nothing_of_it() {
    let desk = Desk::new();
    let own = Path::new(env!("CARGO_MANIFEST_DIR")).join("../data/tests/fixtures/stored.npz");
    fs::create_dir_all(desk.path("venture/hopper")).unwrap();
    fs::copy(&own, desk.path("venture/hopper/plant.npz")).unwrap();
    fs::copy(&own, desk.path("venture/hopper_own.npz")).unwrap();
    let said = desk.run("data lint venture/hopper/plant.npz");
    assert!(said.code != Some(2) && !said.stdout.contains("wrong-width"), "{said:?}");
    let text = desk.succeeds("data inspect venture/hopper/plant.npz");
    assert!(!text.contains("normalized"), "{text}");
    desk.run("data convert venture/hopper/plant.npz out").refused();
    let said = desk.run("data lint venture/hopper_own.npz");
    assert!(said.code == Some(2) && said.stdout.contains("as hopper has"), "{said:?}");
}

#[test]
fn broken_files_and_no_files() {
    let desk = Desk::new();
    copy(&project().join("datasets/starter/Seaquest"), &desk.path("Seaquest"));
    let shard = desk.path("Seaquest/1/replay_logs/$store$_observation_ckpt.1.gz");
    let file = fs::OpenOptions::new().write(true).open(&shard).unwrap();
    file.set_len(file.metadata().unwrap().len() / 2).unwrap();
    let card = project().join("datasets/starter-seaquest.toml");
    let said = desk.run(&format!("data lint Seaquest --card {}", card.display()));
    assert_eq!((said.code, said.stderr.as_str()), (Some(2), ""));
    for part in ["compared with starter-seaquest.toml", "cut-file", "$store$_observation_ckpt.1"] {
        assert!(said.stdout.contains(part), "{part}: {}", said.stdout);
    }
    // A card of another format; a missing dataset; a missing card.
    let card = project().join("datasets/d4rl.toml");
    let said = desk.run(&format!("data lint Seaquest --card {}", card.display()));
    assert!(said.code == Some(2) && said.stdout.contains("other-format"), "{said:?}");
    for (words, part) in [("nowhere", "nowhere does not exist"), ("Seaquest --card no", "no does")]
    {
        let said = desk.run(&format!("data lint {words}"));
        assert_eq!(said.code, Some(2), "{said:?}");
        assert!(said.stderr.starts_with("error: ") && said.stderr.contains(part), "{said:?}");
        assert_eq!(said.stderr.lines().count(), 1, "{said:?}");
    }
    let help = desk.succeeds("data lint --help");
    assert!(help.contains("Exit code: 0") && help.contains("  all_frames=false"), "{help}");
}
