//! Rollouts of hand-written policies in hand-written environments.

#![allow(clippy::unwrap_used)]

use std::ops::ControlFlow;
use std::sync::{Arc, Condvar, Mutex};
use std::time::Duration;

use overtone_core::protocol::ReturnUnits;
use overtone_core::{Actions, BinOrder, Observations, Outcome, Played, Policy, PolicyError, Turn};
use overtone_env::{ActionSpace, Cause, Corridor, EnvError, ObservationSpace, Step, VectorEnv};
use overtone_eval::rollout::role_seeds;
use overtone_eval::{
    Moment, Plan, PlayedEpisode, Player, Pooled, Progress, RandomPolicy, Rollout, RolloutError,
    Smoothness, replay, rollout, rollout_together,
};

fn plan(episodes: usize, targets: &[f32]) -> Plan {
    Plan { episodes, targets: targets.to_vec(), seed: 5, return_units: ReturnUnits::Clipped }
}

fn go(_: &Progress) -> ControlFlow<()> {
    ControlFlow::Continue(())
}

fn random_play(n_envs: usize, plan: &Plan) -> Rollout {
    let mut env = Corridor::new(n_envs, 6, 40, 0.2);
    let mut policy = RandomPolicy::new(env.action_space().clone(), n_envs);
    rollout(&mut env, &mut policy, plan, &mut go).unwrap()
}

/// Goes right, and writes down what it was told.
#[derive(Default)]
struct Recorder {
    batches: Vec<Vec<Turn>>,
    observations: Vec<Vec<f32>>,
}

impl Policy for Recorder {
    fn act(&mut self, turns: &[Turn], seen: Observations<'_>) -> Result<Actions, PolicyError> {
        let Observations::Vectors(rows) = seen else { return Err("vectors expected".into()) };
        assert_eq!(rows.len(), turns.len() * 2, "one row for each turn");
        self.batches.push(turns.to_vec());
        self.observations.push(rows.to_vec());
        Ok(Actions::Discrete(vec![1; turns.len()]))
    }
}

#[test]
fn an_episode_is_the_same_whatever_the_number_of_slots() {
    let plan = plan(11, &[1.0, 3.0]);
    let alone = random_play(1, &plan);
    for n_envs in [2, 5, 22, 40] {
        let together = random_play(n_envs, &plan);
        assert_eq!(together.episodes, alone.episodes, "{n_envs} environments");
        assert_eq!(together.slots, n_envs.min(22));
        assert_eq!(together.steps, alone.steps);
    }
    // The episodes differ from each other, so the comparison says something.
    let mut lengths: Vec<u64> = alone.episodes.iter().map(|episode| episode.length).collect();
    lengths.sort_unstable();
    lengths.dedup();
    assert!(lengths.len() > 4, "{lengths:?}");
    // And with another seed.
    let other = random_play(5, &Plan { seed: 6, ..plan });
    assert_ne!(other.episodes, alone.episodes);
}

#[test]
fn episodes_come_in_order_and_targets_share_seeds() {
    let played = random_play(3, &plan(4, &[2.0, 9.0]));
    let key = |episode: &PlayedEpisode| (episode.target_return, episode.episode);
    let expected = [2.0, 9.0].map(|target| [0, 1, 2, 3].map(|episode| (target, episode)));
    assert_eq!(played.episodes.iter().map(key).collect::<Vec<_>>(), expected.concat());
    let (first, second) = played.episodes.split_at(4);
    for (a, b) in first.iter().zip(second) {
        assert_eq!((a.seed, a.length), (b.seed, b.length), "random play ignores the target");
    }
    assert_ne!(first[0].seed, first[1].seed);
}

#[test]
fn the_next_episode_goes_to_the_first_free_slot() {
    let mut policy = Recorder::default();
    let mut env = Corridor::new(3, 9, 40, 0.3);
    let mut seen = Vec::new();
    let played = rollout(&mut env, &mut policy, &plan(7, &[1.0]), &mut |progress| {
        seen.push(*progress);
        ControlFlow::Continue(())
    })
    .unwrap();
    // An agent that begins an episode has the next number: no slot waits while one is left.
    let starts = policy.batches.iter().flatten().filter(|turn| turn.start.is_some());
    let seeds: Vec<u64> = starts.map(|turn| turn.start.unwrap().seed).collect();
    let expected = played.episodes.iter().map(|episode| role_seeds(episode.seed).1);
    assert_eq!(seeds, expected.collect::<Vec<_>>());

    // A slot misses one turn while its environment is reset; at the end the batch shrinks.
    let sizes: Vec<usize> = policy.batches.iter().map(Vec::len).collect();
    assert_eq!(sizes.iter().sum::<usize>() as u64, played.steps);
    assert!(seen.iter().all(|now| now.live == 3.min(7 - now.episodes_done)), "{seen:?}");
    let last = seen.last().unwrap();
    assert_eq!((last.episodes_done, last.episodes, last.live), (7, 7, 0));
    assert_eq!(last.steps, played.steps);
    let pace = played.pace;
    assert!(0.0 < pace.full && pace.full <= 1.0, "{pace:?}");
    assert!(pace.acting + pace.waiting <= 1.0, "one after the other in one thread: {pace:?}");
}

/// Plays these plans together by policies of their own, in groups of so many environments.
fn together(groups: &[usize], plans: &[Plan]) -> Vec<Rollout> {
    let mut envs: Vec<Corridor> = groups.iter().map(|&n| Corridor::new(n, 6, 40, 0.2)).collect();
    let space = envs[0].action_space().clone();
    let n_agents = groups.iter().sum();
    let mut policies: Vec<RandomPolicy> =
        plans.iter().map(|_| RandomPolicy::new(space.clone(), n_agents)).collect();
    let mut players: Vec<Player<'_>> = policies
        .iter_mut()
        .zip(plans)
        .map(|(policy, plan)| Player { policy: policy as &mut dyn Policy, plan })
        .collect();
    let mut groups: Vec<&mut dyn VectorEnv> =
        envs.iter_mut().map(|env| env as &mut dyn VectorEnv).collect();
    rollout_together(&mut groups, &mut players, &mut go).unwrap()
}

#[test]
fn players_in_any_groups_play_what_they_play_alone() {
    let plans = [plan(7, &[1.0, 3.0]), Plan { seed: 9, ..plan(5, &[2.0]) }, plan(3, &[1.0])];
    let alone: Vec<Rollout> = plans.iter().map(|plan| random_play(1, plan)).collect();
    for groups in [&[1][..], &[4], &[2, 2], &[1, 3], &[5, 4, 3], &[20, 20]] {
        let together = together(groups, &plans);
        assert_eq!(together.len(), 3);
        for (together, alone) in together.iter().zip(&alone) {
            assert_eq!(together.episodes, alone.episodes, "{groups:?}");
            assert_eq!(together.steps, alone.steps);
        }
    }
    assert_ne!(alone[0].episodes[..5], alone[1].episodes, "the players differ");
}

/// How often a policy has acted.
#[derive(Default)]
struct Acts {
    n: Mutex<usize>,
    changed: Condvar,
}

/// Steps only when the policy has acted once more, for another group, since the action came.
struct Waits {
    corridor: Corridor,
    acts: Arc<Acts>,
    /// Acts in the whole rollout.
    last: usize,
}

impl VectorEnv for Waits {
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
        self.corridor.reset(envs, seeds)
    }
    fn step(&mut self, envs: &[usize], actions: &Actions) -> Result<Vec<Step>, EnvError> {
        // The policy writes its number beside the action it gives.
        let Actions::Continuous { values, .. } = actions else { unreachable!() };
        let due = (values[0] as usize + 1).min(self.last);
        let acts = self.acts.n.lock().unwrap();
        let patience = Duration::from_secs(20);
        let waited = self.acts.changed.wait_timeout_while(acts, patience, |n| *n < due).unwrap();
        assert!(!waited.1.timed_out(), "no policy acts during this step");
        drop(waited);
        self.corridor.step(envs, &Actions::Discrete(vec![1; envs.len()]))
    }
    fn observations(&self) -> Observations<'_> {
        self.corridor.observations()
    }
}

/// Counts its acts, and gives the count as the action.
struct Counts(Arc<Acts>);

impl Policy for Counts {
    fn act(&mut self, turns: &[Turn], _: Observations<'_>) -> Result<Actions, PolicyError> {
        let mut n = self.0.n.lock().unwrap();
        *n += 1;
        self.0.changed.notify_all();
        Ok(Actions::Continuous { width: 1, values: vec![*n as f32; turns.len()] })
    }
}

#[test]
fn one_group_steps_while_the_policy_acts_for_another() {
    // Three steps in each of two groups: six acts.
    let acts = Arc::new(Acts::default());
    let mut envs: Vec<Waits> = (0..2)
        .map(|_| Waits { corridor: Corridor::new(1, 40, 3, 0.0), acts: acts.clone(), last: 6 })
        .collect();
    let mut groups: Vec<&mut dyn VectorEnv> =
        envs.iter_mut().map(|env| env as &mut dyn VectorEnv).collect();
    let (mut policy, plan) = (Counts(acts), plan(2, &[1.0]));
    let mut players = [Player { policy: &mut policy, plan: &plan }];
    let played = rollout_together(&mut groups, &mut players, &mut go).unwrap();
    assert_eq!(played[0].episodes.iter().map(|e| e.length).collect::<Vec<_>>(), [3, 3]);
}

#[test]
fn a_failing_group_ends_the_rollout() {
    struct Broken(Corridor);
    impl VectorEnv for Broken {
        fn n_envs(&self) -> usize {
            1
        }
        fn observation_space(&self) -> &ObservationSpace {
            self.0.observation_space()
        }
        fn action_space(&self) -> &ActionSpace {
            self.0.action_space()
        }
        fn reset(&mut self, envs: &[usize], seeds: &[u64]) -> Result<(), EnvError> {
            self.0.reset(envs, seeds)
        }
        fn step(&mut self, _: &[usize], _: &Actions) -> Result<Vec<Step>, EnvError> {
            Err(EnvError::NoEpisode { env: 0 })
        }
        fn observations(&self) -> Observations<'_> {
            self.0.observations()
        }
    }
    let (mut broken, mut sound) =
        (Broken(Corridor::new(1, 5, 40, 0.0)), Corridor::new(2, 5, 40, 0.0));
    let mut policy = Recorder::default();
    let plan = plan(9, &[1.0]);
    let mut players = [Player { policy: &mut policy, plan: &plan }];
    let error = rollout_together(&mut [&mut sound, &mut broken], &mut players, &mut go);
    assert!(matches!(error, Err(RolloutError::Env(EnvError::NoEpisode { env: 0 }))));
    let none = rollout_together(&mut [], &mut players, &mut go);
    assert!(matches!(none, Err(RolloutError::NoEnvironment)));
}

#[test]
fn an_agent_sees_its_own_environment_after_others_dropped_out() {
    let mut policy = Recorder::default();
    let mut env = Corridor::new(4, 9, 40, 0.3);
    rollout(&mut env, &mut policy, &plan(4, &[1.0]), &mut go).unwrap();
    // The second number of an observation counts the steps of that agent's episode.
    let mut taken = [0.0; 4];
    for (turns, rows) in policy.batches.iter().zip(&policy.observations) {
        for (turn, row) in turns.iter().zip(rows.chunks(2)) {
            assert_eq!(row[1], taken[turn.agent]);
            taken[turn.agent] += 1.0;
        }
    }
    assert!(policy.batches.last().unwrap().len() < 4, "some slot must have dropped out");
}

#[track_caller]
fn check_units(units: ReturnUnits, last_reward: f32) {
    // Two episodes in a row on one slot, without slipping: a reward of 20 ends the first.
    let mut policy = Recorder::default();
    let mut env = Corridor::new(1, 5, 40, 0.0);
    let plan = Plan { return_units: units, ..plan(2, &[7.0]) };
    let played = rollout(&mut env, &mut policy, &plan, &mut go).unwrap();
    for episode in &played.episodes {
        assert_eq!(episode.raw_return, 20.0);
        assert_eq!(episode.clipped_return, 1.0);
        assert_eq!(episode.outcome, Outcome::Terminated);
    }
    let turns: Vec<Turn> = policy.batches.concat();
    let start = turns[0].start.unwrap();
    assert_eq!((start.target_return, turns[0].reward), (7.0, 0.0));
    assert!(turns.iter().all(|turn| turn.reward == 0.0), "the last reward ends an episode");

    // A reward inside an episode reaches the policy in the plan's units.
    let mut told = Told(Vec::new());
    rollout(&mut Payday(0), &mut told, &plan, &mut go).unwrap();
    assert_eq!(told.0, [0.0, last_reward, 0.0, last_reward]);
}

struct Told(Vec<f32>);

impl Policy for Told {
    fn act(&mut self, turns: &[Turn], _: Observations<'_>) -> Result<Actions, PolicyError> {
        self.0.extend(turns.iter().map(|turn| turn.reward));
        Ok(Actions::Discrete(vec![0; turns.len()]))
    }
}

/// Two steps: -20 for the first, then it is cut.
struct Payday(u32);

impl VectorEnv for Payday {
    fn n_envs(&self) -> usize {
        1
    }
    fn observation_space(&self) -> &ObservationSpace {
        &ObservationSpace::Vectors { width: 1 }
    }
    fn action_space(&self) -> &ActionSpace {
        &ActionSpace::Continuous { width: 0, bound: 0.0 }
    }
    fn reset(&mut self, _: &[usize], _: &[u64]) -> Result<(), EnvError> {
        self.0 = 0;
        Ok(())
    }
    fn step(&mut self, _: &[usize], _: &Actions) -> Result<Vec<Step>, EnvError> {
        self.0 += 1;
        let outcome = (self.0 == 2).then_some(Outcome::Truncated);
        Ok(vec![Step { reward: -20.0, outcome }])
    }
    fn observations(&self) -> Observations<'_> {
        Observations::Vectors(&[0.0])
    }
}

#[test]
fn rewards_reach_the_policy_in_the_protocols_units() {
    check_units(ReturnUnits::Clipped, -1.0);
    check_units(ReturnUnits::Raw, -20.0);
}

#[test]
fn nothing_to_play_bad_targets_and_a_stop_are_errors() {
    let mut env = Corridor::new(2, 5, 40, 0.0);
    let mut policy = Recorder::default();
    let mut play = |plan: Plan, flow: ControlFlow<()>| {
        rollout(&mut env, &mut policy, &plan, &mut |_| flow).unwrap_err()
    };
    let go_on = ControlFlow::Continue(());
    assert!(matches!(play(plan(0, &[1.0]), go_on), RolloutError::Empty { .. }));
    assert!(matches!(play(plan(3, &[]), go_on), RolloutError::Empty { .. }));
    assert!(matches!(play(plan(3, &[f32::NAN]), go_on), RolloutError::Target(_)));
    let stopped = play(plan(30, &[1.0]), ControlFlow::Break(()));
    assert!(matches!(stopped, RolloutError::Stopped { episodes: 30, .. }));
    let mut failing = Failing;
    let error = rollout(&mut env, &mut failing, &plan(1, &[1.0]), &mut go).unwrap_err();
    assert!(matches!(error, RolloutError::Policy(_)));
    assert_eq!(std::error::Error::source(&error).unwrap().to_string(), "out of ideas");
}

struct Failing;

impl Policy for Failing {
    fn act(&mut self, _: &[Turn], _: Observations<'_>) -> Result<Actions, PolicyError> {
        Err("out of ideas".into())
    }
}

/// Goes right; the distribution it says it drew from depends on the step of the episode.
struct Sayer {
    probs: Vec<f64>,
}

impl Sayer {
    /// The action of each bin: twice right, and left in between.
    const ACTIONS: [usize; 4] = [1, 0, 1, 0];

    /// `[0.75, 0.25, 0, …]`, turned by one bin a step from the third on: the first two steps
    /// are uniform.
    fn pmf(n_bins: usize, step: usize) -> Vec<f64> {
        let mut pmf = vec![1.0 / n_bins as f64; n_bins];
        if step >= 2 {
            pmf.fill(0.0);
            (pmf[0], pmf[1]) = (0.75, 0.25);
            pmf.rotate_right(step % n_bins);
        }
        pmf
    }
}

impl Policy for Sayer {
    fn act(&mut self, turns: &[Turn], seen: Observations<'_>) -> Result<Actions, PolicyError> {
        let Observations::Vectors(rows) = seen else { return Err("vectors expected".into()) };
        // The second number of an observation counts the steps of that agent's episode.
        let pmfs = rows.chunks(2).map(|row| Self::pmf(4, row[1] as usize));
        self.probs = pmfs.flatten().collect();
        Ok(Actions::Discrete(vec![1; turns.len()]))
    }

    fn played(&self) -> Option<Played<'_>> {
        Some(Played { probs: &self.probs, actions: &Self::ACTIONS, order: BinOrder::Head })
    }
}

#[test]
fn what_was_played_from_is_counted_by_episode() {
    let plan = plan(5, &[1.0, 2.0]);
    let play = |n_envs| {
        let mut env = Corridor::new(n_envs, 6, 40, 0.3);
        let mut policy = Sayer { probs: Vec::new() };
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
        let pmfs = (0..episode.length as usize).map(|step| Sayer::pmf(4, step)[2]);
        assert!((sums[2] - pmfs.sum::<f64>()).abs() < 1e-9);
        assert!(episode.length > 2);
        // Two steps of 0, the others alike: a turned ring is as smooth.
        let steps = (0..episode.length).map(|step| if step < 2 { 0.0 } else { sharp });
        let expected: Pooled = steps.collect();
        assert_eq!(pooled.n, episode.length);
        assert!((pooled.mean - expected.mean).abs() < 1e-12);
        assert!((pooled.sd().unwrap() - expected.sd().unwrap()).abs() < 1e-12);
    }
    let quiet = random_play(2, &plan);
    assert_eq!(quiet.played, None, "this policy does not say");
}

#[test]
fn what_is_no_distribution_ends_the_rollout() {
    /// Says the same row for every turn.
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
    // The environment has no action 2.
    for (row, actions) in rows.into_iter().chain([(&[0.5; 2][..], &[0, 2][..])]) {
        let error = play(row, actions).unwrap_err();
        assert!(matches!(error, RolloutError::Played { turns: 2, .. }), "{error}");
    }
    let error = play(&[0.5, f64::NAN], &[0, 1]).unwrap_err();
    assert!(matches!(error, RolloutError::Probability), "{error}");
}

#[test]
fn an_episode_played_again_is_the_same() {
    let plan = plan(4, &[1.0, 3.0]);
    let played = random_play(3, &plan);
    for episode in &played.episodes {
        let mut env = Corridor::new(2, 6, 40, 0.2);
        let mut policy = RandomPolicy::new(env.action_space().clone(), 1);
        let mut steps = Vec::new();
        let mut to_go = Vec::new();
        let mut look = |moment: &Moment<'_>| {
            steps.push(moment.step);
            to_go.push(moment.return_to_go);
            assert!(matches!(moment.observation, Observations::Vectors([_, _])));
            ControlFlow::Continue(())
        };
        let again = replay(&mut env, &mut policy, episode, plan.return_units, &mut look).unwrap();
        assert_eq!(again, *episode);
        assert_eq!(steps, (0..episode.length).collect::<Vec<_>>());
        assert_eq!(to_go[0], episode.target_return);
    }
    // It ends where the one who looks has seen enough.
    let mut env = Corridor::new(1, 6, 40, 0.2);
    let mut policy = RandomPolicy::new(env.action_space().clone(), 1);
    let mut look = |moment: &Moment<'_>| match moment.step {
        2 => ControlFlow::Break(()),
        _ => ControlFlow::Continue(()),
    };
    let episode = &played.episodes[0];
    let again = replay(&mut env, &mut policy, episode, plan.return_units, &mut look).unwrap();
    assert_eq!((again.length, again.seed), (2, episode.seed));
}

/// A corridor whose environments die when the corridor's own seed says so.
struct Dying {
    corridor: Corridor,
    /// The environment's seed of each episode that dies, and after how many steps; 0: it does
    /// not begin.
    deaths: Vec<(u64, u64)>,
    /// Of each environment: its seed, and the steps it took.
    under_way: Vec<(u64, u64)>,
}

impl Dying {
    fn new(n_envs: usize, deaths: &[(u64, u64)]) -> Self {
        let corridor = Corridor::new(n_envs, 6, 40, 0.2);
        Self { corridor, deaths: deaths.to_vec(), under_way: vec![(0, 0); n_envs] }
    }

    fn dies(&self, env: usize) -> Result<(), Cause> {
        match self.deaths.contains(&self.under_way[env]) {
            true => Err(format!("the walker of environment {env} broke a leg").into()),
            false => Ok(()),
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

/// Random play of `plan` in groups of so many environments that die in these episodes, by
/// number, after so many steps.
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
fn an_episode_whose_environment_dies_fails_and_the_rest_is_played() {
    let plan = plan(9, &[1.0, 3.0]);
    let sound = random_play(1, &plan);
    let lasts = |episode: usize| sound.episodes[episode].length;
    // Episodes 2, 4 and 7 of both targets: at the first step, in the middle, at the last step.
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
        // The step that fails is none: what it led to is not known.
        let of_target = |target| deaths.map(|(episode, steps)| (target, episode, steps - 1));
        assert_eq!(failed, [1.0, 3.0].map(of_target).concat(), "{groups:?}");
        for episode in &played.failed {
            assert_eq!(episode.seed, plan.episode_seed(episode.episode));
            assert!(episode.reason.contains("broke a leg"), "{}", episode.reason);
        }
    }
}

#[test]
fn an_environment_that_cannot_begin_is_given_up() {
    let plan = plan(9, &[1.0]);
    let sound = random_play(1, &plan);
    // One of three environments goes, and the others play the rest.
    let played = dying_play(&[3], &plan, &[(1, 0)]);
    assert_eq!((played.failed.len(), played.failed[0].episode), (1, 1));
    let expected: Vec<_> = sound.episodes.iter().filter(|e| e.episode != 1).cloned().collect();
    assert_eq!(played.episodes, expected);
    // Where the last one goes, what is left has failed, and what was played is kept.
    let played = dying_play(&[1], &plan, &[(4, 0)]);
    assert_eq!(played.episodes, sound.episodes[..4]);
    let reasons: Vec<&str> = played.failed.iter().map(|f| f.reason.as_str()).collect();
    assert_eq!(reasons[0], "the walker of environment 0 broke a leg");
    assert_eq!(reasons[1..], ["no environment was left to play it in"; 4]);
}

#[test]
fn distributions_of_failed_episodes_are_in_no_number() {
    let plan = plan(4, &[1.0]);
    let seed = role_seeds(plan.episode_seed(2)).0;
    let play = |deaths: &[(u64, u64)]| {
        let mut env = Dying::new(2, deaths);
        let mut policy = Sayer { probs: Vec::new() };
        rollout(&mut env, &mut policy, &plan, &mut go).unwrap()
    };
    let (sound, failing) = (play(&[]), play(&[(seed, 1)]));
    let mut expected = sound.played.unwrap();
    expected.smoothness.remove(2);
    expected.sums.remove(2);
    assert_eq!(failing.played.unwrap(), expected);
    assert_eq!((failing.finished, failing.failed.len()), (vec![3], 1));
}
