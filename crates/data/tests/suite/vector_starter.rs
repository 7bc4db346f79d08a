//! The starter sets of simulated robots, and where data is looked for.

use std::fs;
use std::path::Path;

use overtone_core::Simulation;
use overtone_data::error::Fault;
use overtone_data::{
    DataError, Dataset, DatasetCard, DatasetOptions, Kind, Located, check::ColumnsInspection,
    locate,
};

use crate::robots::d4rl;
use crate::starter::datasets;
use crate::tasks::{self, game, inspect_columns, oddities, robot};

/// Figures from when a set was recorded; ± is the deviation of the population (n).
struct Recorded {
    transitions: u64,
    terminated: u64,
    truncated: u64,
    mean: f64,
    std: f64,
    range: (f64, f64),
    length: f64,
    widths: (usize, usize),
}

#[track_caller]
fn check(env: &str, dataset: &str, recorded: &Recorded) {
    let file = datasets().join("starter/mujoco").join(format!("{env}_{dataset}.hdf5"));
    let found = inspect_columns(&file).unwrap();
    assert_eq!(found.transitions, recorded.transitions);
    assert_eq!((found.terminated, found.truncated), (recorded.terminated, recorded.truncated));
    let episodes = recorded.terminated + recorded.truncated;
    assert_eq!(found.episodes, episodes);
    assert_eq!((found.observation_width, found.action_width), recorded.widths);
    let returns = &found.returns.spread;
    let n = episodes as f64;
    let std = returns.sd * ((n - 1.0) / n).sqrt();
    for (got, said) in [
        (returns.mean, recorded.mean),
        (std, recorded.std),
        (returns.min, recorded.range.0),
        (returns.max, recorded.range.1),
        (found.lengths.mean, recorded.length),
    ] {
        assert!((got - said).abs() <= 0.0501, "{got}, written down as {said}");
    }
    assert_eq!(found.fragments, u64::from(found.fragment_transitions > 0));
    assert_eq!(found.fragment_transitions, recorded.transitions - total(&found));
    // The only thing that is odd, apart from the policy's number in mixed recordings.
    let odd = oddities(&file);
    let unread = u64::from(dataset == "switching");
    assert_eq!((found.actions_outside, odd.len() as u64), (0, found.fragments + unread), "{odd:?}");

    let card = DatasetCard::load(&datasets().join("starter-mujoco.toml")).unwrap();
    let counts = card.counts_of(card.named(&file).as_ref()).unwrap();
    assert_eq!((counts.transitions, counts.episodes), (Some(recorded.transitions), Some(episodes)));
    assert_eq!(counts.bytes, Some(fs::metadata(&file).unwrap().len()));
    assert_eq!(
        card.recording,
        Simulation::new([("revision", "v4".into()), ("max_steps", 1000u32.into())])
    );

    let task = robot(&env.to_uppercase(), recorded.widths);
    let located = locate(&task, &dataset.to_uppercase(), None, &datasets()).unwrap();
    assert_eq!((located.task.as_deref(), located.dataset.as_str()), (Some(env), dataset));
    // The published set would be preferred on a machine that has it.
    if located.origin.kind != Kind::Published {
        assert_eq!(located.origin, card.origin());
        assert!(located.to_string().contains("not D4RL"), "{located}");
        let by_path = locate(&task, "", Some(&file), &datasets()).unwrap();
        assert_eq!((by_path.dataset, by_path.origin), (located.dataset, located.origin));
        let folder = datasets().join("starter/mujoco");
        let by_folder = locate(&task, dataset, Some(&folder), &datasets()).unwrap();
        assert_eq!(by_folder.path, file);
    }

    let options = DatasetOptions { origin: card.origin(), ..Default::default() };
    let data = Dataset::open(&file, &options).unwrap();
    assert_eq!(data.origin().kind, Kind::Starter);
    assert_eq!(data.n_transitions() as u64, total(&found));
    assert_eq!(data.counts().fragment_rows as u64, found.fragment_transitions);
    assert_eq!(data.episode_returns().n_episodes() as u64, episodes);
    assert!(data.episodes().longest() <= 1000);
}

/// Steps of finished episodes.
fn total(found: &ColumnsInspection) -> u64 {
    (found.lengths.mean * found.episodes as f64).round() as u64
}

#[test]
fn hopper() {
    check(
        "hopper",
        "medium",
        &Recorded {
            transitions: 75_000,
            terminated: 176,
            truncated: 3,
            mean: 1453.9,
            std: 738.3,
            range: (87.2, 3570.2),
            length: 417.6,
            widths: (11, 3),
        },
    );
}

#[test]
fn halfcheetah() {
    check(
        "halfcheetah",
        "medium",
        &Recorded {
            transitions: 50_000,
            terminated: 0,
            truncated: 50,
            mean: 3497.7,
            std: 1521.9,
            range: (688.1, 5380.0),
            length: 1000.0,
            widths: (17, 6),
        },
    );
}

#[test]
fn walker2d() {
    check(
        "walker2d",
        "medium",
        &Recorded {
            transitions: 50_000,
            terminated: 54,
            truncated: 19,
            mean: 2684.6,
            std: 1188.6,
            range: (130.6, 4030.8),
            length: 684.4,
            widths: (17, 6),
        },
    );
}

#[test]
fn hopper_switching() {
    check(
        "hopper",
        "switching",
        &Recorded {
            transitions: 50_000,
            terminated: 122,
            truncated: 6,
            mean: 1320.7,
            std: 790.0,
            range: (96.5, 3676.8),
            length: 388.2,
            widths: (11, 3),
        },
    );
}

#[test]
fn halfcheetah_switching() {
    check(
        "halfcheetah",
        "switching",
        &Recorded {
            transitions: 50_000,
            terminated: 0,
            truncated: 50,
            mean: 2706.1,
            std: 2972.8,
            range: (-94.0, 10458.5),
            length: 1000.0,
            widths: (17, 6),
        },
    );
}

#[test]
fn walker2d_switching() {
    check(
        "walker2d",
        "switching",
        &Recorded {
            transitions: 50_000,
            terminated: 144,
            truncated: 5,
            mean: 1209.1,
            std: 1047.1,
            range: (-15.6, 5361.4),
            length: 331.7,
            widths: (17, 6),
        },
    );
}

#[test]
fn statistics_are_numpys() {
    let file = datasets().join("starter/mujoco/hopper_medium.hdf5");
    let found = inspect_columns(&file).unwrap();
    // numpy 2.4, `mean(0)` and `std(0)` in float64 over the 74,752 rows of finished
    // episodes.
    let numpy = [(1.31880049, 0.17709240), (0.09048392, 0.04911521), (-0.31212064, 0.19661402)];
    for (range, (mean, std)) in found.observations.iter().zip(numpy) {
        assert!((range.mean - mean).abs() < 1e-8 && (range.std - std).abs() < 1e-8, "{range}");
    }
    assert_eq!((found.rewards.min, found.rewards.max), (0.935_471, 6.396_187_3));
}

/// Whether the file at `path` is of a robot with these numbers of observations and actions.
fn fits(path: &Path, name: &str, (wide, narrow): (usize, usize)) -> Result<(), DataError> {
    let data = Dataset::open(path, &DatasetOptions::default())?;
    let task = robot(name, (wide, narrow));
    data.check_spaces(&task)
}

#[test]
fn published_files_come_first_and_other_robots_are_refused() {
    let folder = tempfile::tempdir().unwrap();
    for card in ["d4rl.toml", "starter-mujoco.toml"] {
        fs::copy(datasets().join(card), folder.path().join(card)).unwrap();
    }
    let place = |name: &str, from: &str| {
        let to = folder.path().join(name);
        fs::create_dir_all(to.parent().unwrap()).unwrap();
        fs::copy(datasets().join("starter/mujoco").join(from), &to).unwrap();
        to
    };
    let locate = |env: &str, dataset: &str, path: Option<&Path>| -> Result<Located, DataError> {
        locate(&robot(env, (11, 3)), dataset, path, folder.path())
    };
    let missing = locate("hopper", "medium", None).unwrap_err();
    assert!(matches!(missing, DataError::Missing { .. }));
    let missing = missing.to_string();
    assert!(missing.contains("published/d4rl/hopper_medium-v2.hdf5"), "{missing}");

    place("starter/mujoco/hopper_medium.hdf5", "hopper_medium.hdf5");
    assert_eq!(locate("hopper", "medium", None).unwrap().origin.kind, Kind::Starter);
    let missing = locate("hopper", "medium-expert", None).unwrap_err().to_string();
    assert!(missing.contains("hopper_medium_expert-v2.hdf5"), "{missing}");
    assert!(missing.contains("the starter sets of hopper are: medium, switching"), "{missing}");

    let published = place("published/d4rl/hopper_medium-v2.hdf5", "hopper_medium.hdf5");
    let found = locate("hopper", "medium", None).unwrap();
    assert_eq!((found.origin.kind, &found.path), (Kind::Published, &published));
    assert!(found.to_string().contains("D4RL's hopper-medium as published"), "{found}");
    let by_path = locate("hopper", "medium", Some(&published)).unwrap();
    assert_eq!((by_path.origin, by_path.dataset), (found.origin, found.dataset));
    let by_folder = locate("hopper", "medium", Some(published.parent().unwrap())).unwrap();
    assert_eq!(by_folder.path, published);

    // Another robot's file under this one's name, and given by its path.
    place("published/d4rl/walker2d_medium-v2.hdf5", "hopper_medium.hdf5");
    for path in [None, Some(published.as_path())] {
        let found = locate("walker2d", "medium", path).unwrap();
        let error = fits(&found.path, "walker2d", (17, 6)).unwrap_err().to_string();
        assert!(error.contains("have 11 numbers and its actions have 3"), "{error}");
        assert!(
            error.contains("in walker2d they have 17 numbers and have 6") && !error.contains('\n')
        );
        fits(&found.path, "hopper", (11, 3)).unwrap();
    }
    // A file that no description knows keeps its own name.
    let other = place("mine.hdf5", "walker2d_medium.hdf5");
    let found = locate("walker2d", "medium", Some(&other)).unwrap();
    assert_eq!((found.origin.kind, found.dataset.as_str()), (Kind::Other, "mine"));
    assert!(found.to_string().contains("not described"), "{found}");
    let nowhere = locate("hopper", "medium", Some(Path::new("/nowhere/at/all")));
    assert!(matches!(nowhere, Err(DataError::Missing { .. })));
    let (_dir, narrow) = d4rl("..t");
    let found = locate("hopper", "medium", Some(&narrow)).unwrap();
    let error = fits(&found.path, "hopper", (11, 3)).unwrap_err();
    assert!(matches!(error, DataError::At { fault: Fault::Inconsistent { .. }, .. }), "{error}");
}

#[test]
fn descriptions_are_read_strictly() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("card.toml");
    for name in ["d4rl.toml", "dqn-replay.toml"] {
        let good = fs::read_to_string(datasets().join(name)).unwrap();
        for (spoiled, expected) in [
            (good.replacen("licence", "license", 1), "license"),
            (good.replacen("kind = \"published\"", "kind = \"mislaid\"", 1), "mislaid"),
            (good.replacen("suite", "family", 1), "family"),
        ] {
            fs::write(&path, spoiled).unwrap();
            let error = DatasetCard::load(&path).unwrap_err();
            assert!(matches!(error, DataError::At { fault: Fault::Card { .. }, .. }), "{error}");
            assert!(error.to_string().contains(expected), "{error}");
        }
    }
}

#[test]
fn names_of_datasets() {
    let card = DatasetCard::load(&datasets().join("d4rl.toml")).unwrap();
    for known in &card.datasets {
        assert_eq!(card.dataset(&known.replace('_', "-").to_uppercase()).unwrap(), known);
    }
    let error = locate(&tasks::hopper(), "mediun", None, &datasets()).unwrap_err().to_string();
    assert!(error.contains("unknown dataset `mediun`: did you mean `medium`?"), "{error}");
    assert!(!error.contains('\n'), "{error}");
    let error = locate(&tasks::hopper(), "board", None, &datasets()).unwrap_err().to_string();
    assert!(error.starts_with("unknown dataset `board`; known are random, "), "{error}");
    let none = robot("ant", (1, 1));
    let error = locate(&none, "medium", None, &datasets()).unwrap_err();
    assert!(matches!(error, DataError::Missing { .. }), "{error}");
    assert!(error.to_string().contains(" has ant; name its data"), "{error}");
}

#[test]
fn a_description_of_any_task_names_each_by_its_title() {
    let card = DatasetCard::load(&datasets().join("dqn-replay.toml")).unwrap();
    assert_eq!(card.name_of(&game("bank_heist", "BankHeist", 18)), Some("BankHeist"));
    assert_eq!(card.name_of(&game("pong", "Pong", 6)), Some("Pong"));
    assert_eq!(card.name_of(&tasks::hopper()), None);
    let named = card.named(Path::new("/elsewhere/Pong/3/replay_logs")).unwrap();
    assert_eq!((named.task.as_str(), named.dataset.as_str()), ("Pong", "3"));
    assert_eq!(card.named(Path::new("/elsewhere/Pong/6/replay_logs")), None);
    let d4rl = DatasetCard::load(&datasets().join("d4rl.toml")).unwrap();
    let named = d4rl.named(Path::new("/elsewhere/hopper_full_replay-v2.hdf5")).unwrap();
    assert_eq!((named.task.as_str(), named.dataset.as_str()), ("hopper", "full_replay"));
    assert_eq!(d4rl.named(Path::new("/elsewhere/hopper_full-v2.hdf5")), None);
    assert_eq!(d4rl.name_of(&robot("Half-Cheetah", (17, 6))), Some("halfcheetah"));
}
