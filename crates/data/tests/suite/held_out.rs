//! Which episodes are held out.

use overtone_core::{Episode, Outcome};
use overtone_data::{
    ActionColumn, Columns, DataError, Dataset, DatasetOptions, ObservationColumn, Split,
};

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
        let drawn = Split::draw(8, 0.25, seed).unwrap();
        assert!(drawn.held_out.iter().all(|episode| split.held_out.contains(episode)));
        let n_copies = split.held_out.len() - 2;
        let told = format!("copies of held-out episodes, held out too: {n_copies}");
        assert_eq!(data.odd().contains(&told), n_copies > 0, "{:?}", data.odd());
    }
    let options = DatasetOptions { held_out: 0.5, ..DatasetOptions::default() };
    let refused = Dataset::of(recording(&[1.0, 1.0]), &options);
    assert!(matches!(refused, Err(DataError::Sampling(_))), "{refused:?}");
}
