//! Which episodes are held out.

use overtone_data::Split;

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
