//! Which episodes are held out.

use overtone_core::seed::generator;
use overtone_core::{Episode, Outcome};
use overtone_data::{
    ActionColumn, Columns, DataError, Dataset, DatasetOptions, ObservationColumn, Split, read,
};
use rand::RngExt;

#[test]
fn every_episode_is_on_one_side_and_the_seed_says_on_which() {
    for (n, share, expected) in [(10, 0.2, 2), (7, 0.5, 4), (3, 0.2, 1), (179, 0.05, 9)] {
        let split = Split::draw(n, share, 5).unwrap();
        assert_eq!(split.held_out.len(), expected, "{share} of {n}");
        assert!(split.held_out.is_sorted() && split.training.is_sorted());
        let mut all = [&split.training[..], &split.held_out].concat();
        all.sort_unstable();
        assert!(all.into_iter().eq(0..n), "{split:?}");
        assert_eq!(split, Split::draw(n, share, 5).unwrap());
    }
    assert_ne!(Split::draw(50, 0.2, 5).unwrap(), Split::draw(50, 0.2, 6).unwrap());
    // Pinned: a run that is resumed must hold out the same episodes.
    assert_eq!(Split::draw(10, 0.3, 123).unwrap().held_out, [1, 2, 9]);
    assert_eq!(Split::draw(4, 0.0, 5).unwrap().training, [0, 1, 2, 3]);
}

#[test]
fn a_side_without_an_episode_is_refused() {
    for (n, share, said) in [
        (4, 0.1, "holds out none of 4"),
        (1, 0.5, "leaves none of 1"),
        (4, 0.9, "leaves none of 4"),
        (4, 1.0, "a number in [0, 1)"),
        (4, -0.1, "a number in [0, 1)"),
        (4, f64::NAN, "a number in [0, 1)"),
    ] {
        let error = Split::draw(n, share, 5).unwrap_err().to_string();
        assert!(error.contains(said) && error.contains("train.held_out"), "{error}");
    }
}

/// A recording with an episode of two steps for each of these numbers.
fn recording(numbers: &[f32]) -> Columns {
    let values: Vec<f32> = numbers.iter().flat_map(|&number| [number, -number]).collect();
    let episode = |at: usize| Episode { start: 2 * at, length: 2, outcome: Outcome::Terminated };
    Columns::new(
        ObservationColumn::Vectors { width: 1, values: values.clone() },
        ActionColumn::Discrete { n_actions: 2, values: vec![1; values.len()] },
        values,
        (0..numbers.len()).map(episode).collect(),
    )
}

#[test]
fn copies_are_on_one_side() {
    let numbers = [1.0, 2.0, 3.0, 1.0, 4.0, 2.0, 3.0, 4.0];
    for seed in 0..20 {
        let options = DatasetOptions { held_out: 0.25, seed, ..DatasetOptions::default() };
        let data = Dataset::of(recording(&numbers), &options).unwrap();
        let split = data.split();
        let of = |side: &[usize]| side.iter().map(|&at| numbers[at]).collect::<Vec<_>>();
        let (held_out, training) = (of(&split.held_out), of(&split.training));
        assert_eq!(held_out.len() + training.len(), 8);
        assert!(held_out.iter().all(|number| !training.contains(number)), "{split:?}");
        assert_eq!(data.split_for(0.25, seed).unwrap(), *split);
        assert_eq!(held_out.len(), 2, "the share that was asked for");
        let told = "copies of held-out episodes, held out too: 1".to_owned();
        assert!(data.odd().contains(&told), "{:?}", data.odd());
    }
    let options = DatasetOptions { held_out: 0.5, ..DatasetOptions::default() };
    let refused = Dataset::of(recording(&[1.0, 1.0]), &options);
    assert!(matches!(refused, Err(DataError::Sampling(_))), "{refused:?}");
}

/// Splits `data` with a share of 0.3 by 40 seeds. Each split has this share, within `off` episodes; the
/// mean reward of the held-out part is the log's, within its standard error.
#[track_caller]
fn check_unbiased(data: &Columns, off: usize) {
    const SEEDS: u64 = 40;
    let n = data.episodes.len();
    let expected = (0.3 * n as f64).round() as usize;
    let mean = |rewards: &[f64]| rewards.iter().sum::<f64>() / rewards.len() as f64;
    let all: Vec<f64> = data.rewards.iter().map(|&reward| reward.into()).collect();
    let of_log = mean(&all);
    let mut differences = Vec::new();
    for seed in 0..SEEDS {
        let options = DatasetOptions { held_out: 0.3, seed, ..DatasetOptions::default() };
        let data = Dataset::of(data.clone(), &options).unwrap();
        let held_out = &data.split().held_out;
        assert!(held_out.len().abs_diff(expected) <= off, "{} of {n}", held_out.len());
        let starts = held_out.iter().map(|&at| data.episodes().as_slice()[at].start);
        let rewards: Vec<f64> = starts.map(|row| data.rewards()[row].into()).collect();
        differences.push(mean(&rewards) - of_log);
    }
    let squares: f64 = differences.iter().map(|x| x * x).sum();
    let standard_error = (squares / SEEDS as f64 / SEEDS as f64).sqrt();
    let off = mean(&differences).abs() / standard_error;
    assert!(off < 2.6, "{off} standard errors of {standard_error}");
}

/// One-step rounds: a real context, an action that it determines, and a rare reward.
fn rounds(n: usize, n_contexts: usize) -> Columns {
    let mut draw = generator(3, "rounds");
    let contexts: Vec<[f32; 2]> = (0..n_contexts).map(|_| [draw.random(), draw.random()]).collect();
    let (mut seen, mut actions, mut rewards) = (Vec::new(), Vec::new(), Vec::new());
    for _ in 0..n {
        let context = draw.random_range(0..n_contexts);
        seen.extend(contexts[context]);
        actions.push((context % 5) as u16);
        rewards.push(f32::from(u8::from(draw.random::<f64>() < 0.02)));
    }
    let episode = |start| Episode { start, length: 1, outcome: Outcome::Terminated };
    Columns::new(
        ObservationColumn::Vectors { width: 2, values: seen },
        ActionColumn::Discrete { n_actions: 5, values: actions },
        rewards,
        (0..n).map(episode).collect(),
    )
}

#[test]
fn outcomes_do_not_choose_the_held_out_rounds() {
    check_unbiased(&rounds(10_000, 500), 0);
    check_unbiased(&rounds(10_000, 3), 0);
    // Nearly all rounds of a context are equal here, so they form groups: by contexts alone.
    check_unbiased(&rounds(3_000, 2_000), 9);
}

/// Real rounds of a shop; see `fixtures/open_bandit.md`.
#[test]
fn outcomes_do_not_choose_rounds_of_a_real_shop() {
    for policy in ["random", "bts"] {
        let path = format!("tests/fixtures/open_bandit_{policy}_men.npz");
        let data = read::columns(path.as_ref()).unwrap();
        assert_eq!(data.episodes.len(), 2_000);
        check_unbiased(&data, 0);
    }
}

#[test]
fn a_recording_that_stands_twice_is_split_as_once() {
    let once = rounds(400, 1_000_000);
    let twice = Columns::concat(vec![once.clone(), once], &[]).unwrap();
    for seed in 0..5 {
        let options = DatasetOptions { held_out: 0.3, seed, ..DatasetOptions::default() };
        let data = Dataset::of(twice.clone(), &options).unwrap();
        let held_out = &data.split().held_out;
        assert_eq!(held_out.len(), 240);
        assert!(held_out.iter().all(|at| held_out.contains(&((at + 400) % 800))));
    }
}
