//! Failing environments lose only their own episodes.

use std::ops::ControlFlow;

use overtone_core::{Actions, Observations};
use overtone_env::{ActionSpace, Cause, Corridor, EnvError, ObservationSpace, Step, VectorEnv};
use overtone_eval::rollout::role_seeds;
use overtone_eval::{
    Plan, PlayedEpisode, Player, Progress, RandomPolicy, Rollout, rollout, rollout_together,
};

use super::{Reporting, go, plan, random_play};

/// A corridor whose environments fail in chosen episodes, identified by seed.
struct Dying {
    corridor: Corridor,
    /// Environment seed of each failing episode, and the step of the failure; 0: it fails at its
    /// reset.
    deaths: Vec<(u64, u64)>,
    /// Current seed and number of steps of each environment.
    under_way: Vec<(u64, u64)>,
}

impl Dying {
    fn new(n_envs: usize, deaths: &[(u64, u64)]) -> Self {
        let corridor = Corridor::new(n_envs, 6, 40, 0.2);
        Self { corridor, deaths: deaths.to_vec(), under_way: vec![(0, 0); n_envs] }
    }

    fn dies(&self, env: usize) -> Result<(), Cause> {
        if self.deaths.contains(&self.under_way[env]) {
            Err(format!("the walker of environment {env} broke a leg").into())
        } else {
            Ok(())
        }
    }
}

impl VectorEnv for Dying {
    fn n_envs(&self) -> usize {
        self.corridor.n_envs()
    }
    fn observation_space(&self) -> &ObservationSpace {
        self.corridor.observation_space()
    }
    fn action_space(&self) -> &ActionSpace {
        self.corridor.action_space()
    }
    fn reset(&mut self, envs: &[usize], seeds: &[u64]) -> Result<(), EnvError> {
        self.corridor.reset(envs, seeds)?;
        envs.iter().zip(seeds).for_each(|(&env, &seed)| self.under_way[env] = (seed, 0));
        EnvError::of_resets(envs, envs.iter().map(|&env| self.dies(env)))
    }
    fn step(&mut self, envs: &[usize], actions: &Actions) -> Result<Vec<Step>, EnvError> {
        let steps = self.corridor.step(envs, actions)?;
        envs.iter().for_each(|&env| self.under_way[env].1 += 1);
        let of_env = |(&env, step)| self.dies(env).map(|()| step);
        EnvError::of_steps(envs, envs.iter().zip(steps).map(of_env))
    }
    fn observations(&self) -> Observations<'_> {
        self.corridor.observations()
    }
}

/// Random play of `plan` in groups of these sizes. `deaths` lists the failing episodes by number,
/// with the step of the failure.
fn dying_play(groups: &[usize], plan: &Plan, deaths: &[(usize, u64)]) -> Rollout {
    let of_seed = |&(episode, steps)| (role_seeds(plan.episode_seed(episode)).0, steps);
    let deaths: Vec<(u64, u64)> = deaths.iter().map(of_seed).collect();
    let mut envs: Vec<Dying> = groups.iter().map(|&n| Dying::new(n, &deaths)).collect();
    let mut policy = RandomPolicy::new(envs[0].action_space().clone(), groups.iter().sum());
    let mut groups: Vec<&mut dyn VectorEnv> =
        envs.iter_mut().map(|env| env as &mut dyn VectorEnv).collect();
    let mut players = [Player { policy: &mut policy, plan }];
    let mut last = None;
    let rollouts = rollout_together(&mut groups, &mut players, &mut |progress| {
        last = Some(*progress);
        ControlFlow::Continue(())
    });
    let rollout = rollouts.unwrap().swap_remove(0);
    assert_eq!(last.map(|last: Progress| last.live), Some(0));
    assert_eq!(rollout.episodes.len() + rollout.failed.len(), plan.n_episodes());
    rollout
}

#[test]
fn an_episode_with_a_failing_environment_fails_and_the_others_are_played() {
    let plan = plan(9, &[1.0, 3.0]);
    let sound = random_play(1, &plan);
    let lasts = |episode: usize| sound.episodes[episode].length;
    // Episodes 2, 4 and 7 of both targets fail at the first, at a middle and at the last step.
    let deaths = [(2, 1), (4, lasts(4) / 2), (7, lasts(7))];
    assert!(lasts(4) > 3, "{}", lasts(4));
    let fails = |episode: &PlayedEpisode| [2, 4, 7].contains(&episode.episode);
    let kept: Vec<PlayedEpisode> =
        sound.episodes.iter().filter(|episode| !fails(episode)).cloned().collect();
    for groups in [&[1][..], &[2], &[5], &[30], &[2, 1], &[4, 9]] {
        let played = dying_play(groups, &plan, &deaths);
        assert_eq!(played.episodes, kept, "{groups:?}");
        assert_eq!(played.finished, [6, 6]);
        assert_eq!(played.steps, kept.iter().map(|episode| episode.length).sum::<u64>());
        let failed: Vec<_> =
            played.failed.iter().map(|f| (f.target_return, f.episode, f.length)).collect();
        // A failing step does not count, because its result is unknown.
        let of_target = |target| deaths.map(|(episode, steps)| (target, episode, steps - 1));
        assert_eq!(failed, [1.0, 3.0].map(of_target).concat(), "{groups:?}");
        for episode in &played.failed {
            assert_eq!(episode.seed, plan.episode_seed(episode.episode));
            assert!(episode.reason.contains("broke a leg"), "{}", episode.reason);
        }
    }
}

#[test]
fn only_the_episode_that_cannot_start_is_lost() {
    let plan = plan(9, &[1.0]);
    let mut expected = random_play(1, &plan).episodes;
    expected.retain(|episode| ![1, 4, 8].contains(&episode.episode));
    for groups in [&[1][..], &[3], &[30], &[2, 1]] {
        let played = dying_play(groups, &plan, &[(1, 0), (4, 0), (8, 0)]);
        assert_eq!(played.episodes, expected, "{groups:?}");
        let failed: Vec<_> = played.failed.iter().map(|f| (f.episode, f.length)).collect();
        assert_eq!(failed, [(1, 0), (4, 0), (8, 0)]);
    }
    // If no episode can start, each is reported as failed.
    let all: Vec<_> = (0..9).map(|episode| (episode, 0)).collect();
    let played = dying_play(&[2], &plan, &all);
    assert_eq!(played.failed.len(), 9);
    assert!(played.failed.iter().all(|failed| failed.reason.contains("broke a leg")));
}

#[test]
fn distributions_of_failed_episodes_are_not_included() {
    let plan = plan(4, &[1.0]);
    let seed = role_seeds(plan.episode_seed(2)).0;
    let play = |deaths: &[(u64, u64)]| {
        let mut env = Dying::new(2, deaths);
        let mut policy = Reporting { probs: Vec::new() };
        rollout(&mut env, &mut policy, &plan, &mut go).unwrap()
    };
    let (sound, failing) = (play(&[]), play(&[(seed, 1)]));
    let mut expected = sound.played.unwrap();
    expected.smoothness.remove(2);
    expected.sums.remove(2);
    assert_eq!(failing.played.unwrap(), expected);
    assert_eq!((failing.finished, failing.failed.len()), (vec![3], 1));
}
