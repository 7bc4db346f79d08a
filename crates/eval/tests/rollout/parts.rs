//! Parts of an evaluation, each played apart, through their files.

use std::fs;
use std::path::Path;

use overtone_ale::Game;
use overtone_env::Corridor;
use overtone_eval::{
    Evaluation, Part, PartError, Plan, PlayedPart, Rollout, Setting, part, rollout,
};
use tempfile::TempDir;

use super::{Sayer, go, plan, random_play};

fn setting() -> Setting {
    let task = Game::named("seaquest").unwrap().task.clone();
    Setting {
        protocol: task.matched(None),
        task,
        simulator: "a corridor".into(),
        rom_md5: None,
        policy: "goes right".into(),
        differences: None,
        heeds: None,
        choice: None,
        checkpoint: None,
        dataset_hash: None,
        command: "overtone evaluate".into(),
    }
}

/// Goes right, and says what it draws from.
fn saying(n_envs: usize, plan: &Plan) -> Rollout {
    let mut env = Corridor::new(n_envs, 6, 40, 0.3);
    rollout(&mut env, &mut Sayer { probs: Vec::new() }, plan, &mut go).unwrap()
}

/// Plays `n` parts, each with another number of environments, and reads them back.
fn parts(
    folder: &Path,
    n: usize,
    whole: &Plan,
    play: fn(usize, &Plan) -> Rollout,
) -> Vec<PlayedPart> {
    let report = folder.join("evaluation.json");
    let each = Part::of(n).enumerate().map(|(i, part)| {
        let rollout = play(i + 1, &whole.part(part).unwrap());
        let path = part.path(&report);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        PlayedPart::new(setting(), whole.clone(), part, rollout).write(&path).unwrap();
        PlayedPart::read(&path).unwrap().unwrap()
    });
    each.collect()
}

/// An evaluation as its file has it, but for the time it took.
fn bytes(whole: &Plan, rollout: Rollout) -> String {
    let mut evaluation = Evaluation::new(setting(), whole, rollout).unwrap();
    (evaluation.wall_seconds, evaluation.steps_per_second, evaluation.pace) = (0.0, 0.0, None);
    serde_json::to_string_pretty(&evaluation).unwrap()
}

#[test]
fn parts_put_together_are_the_bytes_that_one_process_gives() {
    let folder = TempDir::new().unwrap();
    let whole = plan(10, &[1.0, 2.5, 0.1]);
    for (play, says) in [(random_play as fn(usize, &Plan) -> Rollout, false), (saying, true)] {
        let expected = play(4, &whole);
        assert_eq!(expected.played.is_some(), says);
        for n in [1, 3, 4, 10] {
            let mut parts = parts(folder.path(), n, &whole, play);
            let episodes: Vec<usize> =
                parts.iter().flat_map(|part| &part.rollout.episodes).map(|e| e.episode).collect();
            assert_eq!(episodes.len(), 30);
            parts.reverse();
            let joined = part::joined(parts, 4).unwrap();
            assert_eq!(joined.episodes, expected.episodes, "{n}");
            assert_eq!(joined.played, expected.played, "{n}");
            assert!(bytes(&whole, joined) == bytes(&whole, expected.clone()), "{n}");
        }
    }
}

#[test]
fn failed_episodes_keep_their_places() {
    let folder = TempDir::new().unwrap();
    let whole = plan(4, &[1.0, 2.0]);
    let mut parts = parts(folder.path(), 2, &whole, saying);
    let expected = part::joined(parts.clone(), 8).unwrap();
    // All of the first part's, and of the second one of the first target.
    let lost = [(0, 0), (0, 0), (0, 0), (0, 0), (1, 0)];
    for (i, place) in lost {
        let rollout = &mut parts[i].rollout;
        let episode = rollout.episodes.remove(place);
        let target = usize::from(episode.target_return == 2.0);
        rollout.finished[target] -= 1;
        let played = rollout.played.as_mut().unwrap();
        drop((played.smoothness.remove(place), played.sums.remove(place)));
        rollout.failed.push(overtone_eval::FailedEpisode {
            target_return: episode.target_return,
            episode: episode.episode,
            seed: episode.seed,
            length: 1,
            reason: "its emulator died".into(),
        });
    }
    // Its environments died before anything was drawn.
    parts[0].rollout.played = None;
    let joined = part::joined(parts, 8).unwrap();
    assert_eq!(joined.finished, [1, 2]);
    let failed: Vec<(f32, usize)> =
        joined.failed.iter().map(|failed| (failed.target_return, failed.episode)).collect();
    assert_eq!(failed, [(1.0, 0), (1.0, 1), (1.0, 2), (2.0, 0), (2.0, 1)]);
    let kept = [3, 6, 7].map(|place| expected.episodes[place].clone());
    assert_eq!(joined.episodes, kept);
    let smoothness = &expected.played.unwrap().smoothness;
    assert_eq!(joined.played.unwrap().smoothness, [3, 6, 7].map(|place| smoothness[place]));
    assert_eq!(joined.slots, 8);
}

#[test]
fn what_does_not_belong_together_is_refused() {
    let folder = TempDir::new().unwrap();
    let whole = plan(4, &[1.0]);
    let good = parts(folder.path(), 2, &whole, saying);
    let other_seed = parts(folder.path(), 2, &Plan { seed: 6, ..whole.clone() }, saying);
    let silent = parts(folder.path(), 2, &whole, random_play);
    let mut elsewhere = good.clone();
    elsewhere[1].setting.simulator = "another corridor".into();
    for wrong in [
        vec![],
        vec![good[0].clone()],
        vec![good[0].clone(), good[0].clone()],
        vec![good[0].clone(), other_seed[1].clone()],
        vec![good[0].clone(), silent[1].clone()],
        elsewhere,
    ] {
        let n = wrong.len();
        let error = part::joined(wrong, 4).unwrap_err();
        assert!(matches!(error, PartError::Apart(found) if found == n), "{error}");
    }
    let part: Part = "3/5".parse().unwrap();
    let error = whole.part(part).unwrap_err().to_string();
    assert_eq!(error, "part=3/5: there are fewer episodes than parts; say episodes=5 or more");
    let path = part.path(&folder.path().join("evaluation.json"));
    assert!(PlayedPart::read(&path).unwrap().is_none(), "there is none");
    let text =
        fs::read_to_string(good[0].part.path(&folder.path().join("evaluation.json"))).unwrap();
    for (from, to) in [
        ("\"format\":1", "\"format\":2"),
        ("\"number\":1", "\"number\":0"),
        ("\"of\":2", "\"of\":0"),
        ("\"finished\":[2]", "\"finished\":[3]"),
        ("\"finished\":[2]", "\"finished\":[]"),
        ("{", "["),
    ] {
        assert!(text.contains(from), "no {from} in {text}");
        fs::write(&path, text.replacen(from, to, 1)).unwrap();
        let error = PlayedPart::read(&path).unwrap_err().to_string();
        assert!(error.contains("3-of-5.json` is no part"), "{to}: {error}");
    }
}
