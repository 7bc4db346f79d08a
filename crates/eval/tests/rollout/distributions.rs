//! Action distributions in rollouts.

use overtone_core::{Actions, BinOrder, Observations, Played, Policy, PolicyError, Turn};
use overtone_env::Corridor;
use overtone_eval::{Pooled, RolloutError, Smoothness, rollout};

use super::{Reporting, go, plan, random_play};

#[test]
fn distributions_are_accumulated_by_episode() {
    let plan = plan(5, &[1.0, 2.0]);
    let play = |n_envs| {
        let mut env = Corridor::new(n_envs, 6, 40, 0.3);
        let mut policy = Reporting { probs: Vec::new() };
        rollout(&mut env, &mut policy, &plan, &mut go).unwrap()
    };
    let (alone, together) = (play(1), play(3));
    assert_eq!(alone.played, together.played);
    let played = alone.played.unwrap();
    assert_eq!(played.actions, ["right", "left", "right", "left"]);
    assert_eq!(played.order, BinOrder::Head);
    let sharp = Smoothness::new(4).l2(&[0.75, 0.25, 0.0, 0.0]);
    assert_eq!((played.smoothness.len(), played.sums.len()), (10, 10));
    let each = played.smoothness.iter().zip(&played.sums);
    for (episode, (pooled, sums)) in alone.episodes.iter().zip(each) {
        assert!((sums.iter().sum::<f64>() - episode.length as f64).abs() < 1e-9);
        let pmfs = (0..episode.length as usize).map(|step| Reporting::pmf(4, step)[2]);
        assert!((sums[2] - pmfs.sum::<f64>()).abs() < 1e-9);
        assert!(episode.length > 2);
        // Two steps have smoothness 0. The others are equal, because rotation does not change it.
        let steps = (0..episode.length).map(|step| if step < 2 { 0.0 } else { sharp });
        let expected: Pooled = steps.collect();
        assert_eq!(pooled.n, episode.length);
        assert!((pooled.mean - expected.mean).abs() < 1e-12);
        assert!((pooled.sd().unwrap() - expected.sd().unwrap()).abs() < 1e-12);
    }
    let quiet = random_play(2, &plan);
    assert_eq!(quiet.played, None, "this policy does not report distributions");
}

#[test]
fn invalid_distributions_end_the_rollout() {
    /// A policy that reports the same row for every turn.
    struct Wrong<'a> {
        row: &'a [f64],
        actions: &'a [usize],
        probs: Vec<f64>,
    }
    impl Policy for Wrong<'_> {
        fn act(&mut self, turns: &[Turn], _: Observations<'_>) -> Result<Actions, PolicyError> {
            self.probs = self.row.repeat(turns.len());
            Ok(Actions::Discrete(vec![1; turns.len()]))
        }
        fn played(&self) -> Option<Played<'_>> {
            let order = BinOrder::Environment;
            Some(Played { probs: &self.probs, actions: self.actions, order })
        }
    }
    let play = |row: &[f64], actions: &[usize]| {
        let mut env = Corridor::new(2, 5, 40, 0.0);
        let mut policy = Wrong { row, actions, probs: Vec::new() };
        rollout(&mut env, &mut policy, &plan(2, &[1.0]), &mut go)
    };
    assert!(play(&[0.5; 2], &[1, 0]).is_ok());
    let rows = [(&[0.5; 2][..], &[0, 1, 0, 1][..]), (&[0.5; 3], &[0, 1]), (&[], &[])];
    // Action 2 does not exist in the environment.
    for (row, actions) in rows.into_iter().chain([(&[0.5; 2][..], &[0, 2][..])]) {
        let error = play(row, actions).unwrap_err();
        assert!(matches!(error, RolloutError::Played { turns: 2, .. }), "{error}");
    }
    let error = play(&[0.5, f64::NAN], &[0, 1]).unwrap_err();
    assert!(matches!(error, RolloutError::Probability), "{error}");
}
