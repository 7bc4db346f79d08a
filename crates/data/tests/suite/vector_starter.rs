//! The starter sets of simulated robots, and where data is looked for.

use std::fs;
use std::path::Path;

use overtone_core::{ActionSpace, ObservationSpace, Simulation};
use overtone_data::locate_columns::{DATASETS, known_dataset, known_environment};
use overtone_data::{
    ContinuousCard, DataError, Dataset, DatasetCard, DatasetOptions, Kind, inspect_continuous,
    locate_continuous,
};

use crate::robots::d4rl;
use crate::starter::datasets;

/// What was written down when a set was recorded; ± was the population's (n).
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
fn check(env: &str, recorded: &Recorded) {
    let file = datasets().join("starter/mujoco").join(format!("{env}_medium.hdf5"));
    let found = inspect_continuous(&file).unwrap();
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
    assert_eq!((found.actions_outside, found.odd.len()), (0, 0), "{:?}", found.odd);

    let card = DatasetCard::load(&datasets().join("starter-mujoco.toml")).unwrap();
    let card = card.continuous().unwrap();
    let counts = card.counts[&ContinuousCard::counted(env, "medium")];
    assert_eq!((counts.transitions, counts.episodes), (recorded.transitions, episodes));
    assert_eq!(counts.bytes, fs::metadata(&file).unwrap().len());
    assert_eq!(
        card.recording,
        Simulation::new([("revision", "v4".into()), ("max_steps", 1000u32.into())])
    );

    let located = locate_continuous(&env.to_uppercase(), "Medium", None, &datasets()).unwrap();
    assert_eq!((located.env, located.dataset.as_str()), (env, "medium"));
    // The published set would be preferred on a machine that has it.
    if located.origin.kind != Kind::Published {
        assert_eq!(located.origin, card.origin());
        assert!(located.to_string().contains("not D4RL"), "{located}");
        let by_path = locate_continuous(env, "", Some(&file), &datasets()).unwrap();
        assert_eq!((by_path.dataset, by_path.origin), (located.dataset, located.origin));
        let folder = datasets().join("starter/mujoco");
        let by_folder = locate_continuous(env, "medium", Some(&folder), &datasets()).unwrap();
        assert_eq!(by_folder.path, file);
    }

    let options = DatasetOptions { origin: card.origin(), ..Default::default() };
    let data = Dataset::open(&file, &options).unwrap();
    assert_eq!(data.origin().kind, Kind::Starter);
    assert_eq!(data.n_transitions() as u64, total(&found));
    assert_eq!(data.counts().fragment_rows as u64, found.fragment_transitions);
    assert_eq!(data.episode_returns().len() as u64, episodes);
    assert!(data.episodes().longest() <= 1000);
}

/// Steps of finished episodes.
fn total(found: &overtone_data::ContinuousInspection) -> u64 {
    (found.lengths.mean * found.episodes as f64).round() as u64
}

#[test]
fn hopper() {
    check(
        "hopper",
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
fn statistics_are_numpys() {
    let file = datasets().join("starter/mujoco/hopper_medium.hdf5");
    let found = inspect_continuous(&file).unwrap();
    // numpy 2.4, `mean(0)` and `std(0)` in float64 over all 75,000 rows.
    let numpy = [(1.31869147, 0.17697749), (0.09056524, 0.04910917), (-0.31199395, 0.19654894)];
    for (range, (mean, std)) in found.observations.iter().zip(numpy) {
        assert!((range.mean - mean).abs() < 1e-8 && (range.std - std).abs() < 1e-8, "{range}");
    }
    assert_eq!((found.rewards.min, found.rewards.max), (0.935_471, 6.396_187_3));
}

/// Whether the file at `path` is of a robot with these numbers of observations and actions.
fn fits(path: &Path, name: &str, (wide, narrow): (usize, usize)) -> Result<(), DataError> {
    let data = Dataset::open(path, &DatasetOptions::default())?;
    data.check_spaces(name, &ObservationSpace::Vectors { width: wide }, &ActionSpace::unit(narrow))
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
    let locate = |env: &str, dataset: &str, path: Option<&Path>| {
        locate_continuous(env, dataset, path, folder.path())
    };
    let missing = locate("hopper", "medium", None).unwrap_err();
    assert!(matches!(missing, DataError::Missing { .. }));
    let missing = missing.to_string();
    assert!(missing.contains("published/d4rl/hopper_medium-v2.hdf5"), "{missing}");

    place("starter/mujoco/hopper_medium.hdf5", "hopper_medium.hdf5");
    assert_eq!(locate("hopper", "medium", None).unwrap().origin.kind, Kind::Starter);
    let missing = locate("hopper", "medium-expert", None).unwrap_err().to_string();
    assert!(missing.contains("hopper_medium_expert-v2.hdf5"), "{missing}");
    assert!(missing.contains("the starter sets of hopper are: medium"), "{missing}");

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
        assert!(error.contains("have 11 numbers and its actions 3"), "{error}");
        assert!(error.contains("those of walker2d have 17 and 6") && !error.contains('\n'));
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
    assert!(matches!(error, DataError::Inconsistent { .. }), "{error}");
}

#[test]
fn descriptions_are_read_strictly() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("card.toml");
    for name in ["d4rl.toml", "dqn-replay.toml"] {
        let good = fs::read_to_string(datasets().join(name)).unwrap();
        for (spoiled, expected) in [
            (good.replacen("licence", "license", 1), "license"),
            (good.replacen("continuous", "board", 1).replacen("atari", "board", 1), "board"),
            (good.replacen("family", "group", 1), "family"),
        ] {
            fs::write(&path, spoiled).unwrap();
            let error = DatasetCard::load(&path).unwrap_err();
            assert!(matches!(error, DataError::Card { .. }), "{error}");
            assert!(error.to_string().contains(expected), "{error}");
        }
    }
}

#[test]
fn names() {
    for (name, known) in
        [("Half-Cheetah", "halfcheetah"), ("HOPPER", "hopper"), ("walker_2d", "walker2d")]
    {
        assert_eq!(known_environment(name).unwrap().name, known);
    }
    for known in DATASETS {
        assert_eq!(known_dataset(&known.replace('_', "-")).unwrap(), known);
    }
    let error = locate_continuous("hoper", "medium", None, &datasets()).unwrap_err().to_string();
    assert!(error.contains("unknown environment `hoper`: did you mean `hopper`?"), "{error}");
    let error = locate_continuous("hopper", "mediun", None, &datasets()).unwrap_err().to_string();
    assert!(error.contains("unknown dataset `mediun`: did you mean `medium`?"), "{error}");
}
