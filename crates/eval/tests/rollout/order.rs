//! Order, slots and seeds of episodes, and replay of an episode.

use std::ops::ControlFlow;

use overtone_core::protocol::ReturnUnits;
use overtone_core::{Observations, Play, Simulation};
use overtone_env::{Corridor, VectorEnv};
use overtone_eval::rollout::role_seeds;
use overtone_eval::{Moment, Plan, PlayedEpisode, RandomPolicy, replay, rollout};

use super::{Recorder, plan, random_play};

#[test]
fn an_episode_is_the_same_for_any_number_of_slots() {
    let plan = plan(11, &[1.0, 3.0]);
    let alone = random_play(1, &plan);
    for n_envs in [2, 5, 22, 40] {
        let together = random_play(n_envs, &plan);
        assert_eq!(together.episodes, alone.episodes, "{n_envs} environments");
        assert_eq!(together.slots, n_envs.min(22));
        assert_eq!(together.steps, alone.steps);
    }
    // The episodes differ from each other, so the comparison is meaningful.
    let mut lengths: Vec<u64> = alone.episodes.iter().map(|episode| episode.length).collect();
    lengths.sort_unstable();
    lengths.dedup();
    assert!(lengths.len() > 4, "{lengths:?}");
    // Another seed gives other episodes.
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
    // Episodes start in the order of their numbers: a free slot does not wait while one is left.
    let starts = policy.batches.iter().flatten().filter(|turn| turn.start.is_some());
    let seeds: Vec<u64> = starts.map(|turn| turn.start.unwrap().seed).collect();
    let expected = played.episodes.iter().map(|episode| role_seeds(episode.seed).1);
    assert_eq!(seeds, expected.collect::<Vec<_>>());

    // A slot misses one turn while its environment is reset. The batch shrinks at the end.
    let sizes: Vec<usize> = policy.batches.iter().map(Vec::len).collect();
    assert_eq!(sizes.iter().sum::<usize>() as u64, played.steps);
    assert!(seen.iter().all(|now| now.live == 3.min(7 - now.episodes_done)), "{seen:?}");
    let last = seen.last().unwrap();
    assert_eq!((last.episodes_done, last.episodes, last.live), (7, 7, 0));
    assert_eq!(last.steps, played.steps);
    let timing = played.timing;
    assert!(0.0 < timing.full && timing.full <= 1.0, "{timing:?}");
    assert!(timing.acting + timing.waiting <= 1.0, "one thread does both in turn: {timing:?}");
}

#[test]
fn an_episode_played_again_is_the_same() {
    let plan = plan(4, &[1.0, 3.0]);
    let played = random_play(3, &plan);
    let matched = Play::matched(Simulation::default());
    let play = Play { return_units: ReturnUnits::Clipped, ..matched };
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
        let again = replay(&mut env, &mut policy, episode, &play, &mut look).unwrap();
        assert_eq!(again, *episode);
        assert_eq!(steps, (0..episode.length).collect::<Vec<_>>());
        assert_eq!(to_go[0], episode.target_return);
        let mut returns_to_go = |play: &Play| {
            let mut to_go = Vec::new();
            let look = &mut |moment: &Moment<'_>| {
                to_go.push(moment.return_to_go);
                ControlFlow::Continue(())
            };
            replay(&mut env, &mut policy, episode, play, look).unwrap();
            to_go
        };
        // With delayed rewards the return-to-go stays at the target.
        let to_go = returns_to_go(&Play { delayed_reward: true, ..play.clone() });
        assert!(to_go.iter().all(|&left| left == episode.target_return));
    }
    // A break of the callback ends the replay.
    let mut env = Corridor::new(1, 6, 40, 0.2);
    let mut policy = RandomPolicy::new(env.action_space().clone(), 1);
    let mut look = |moment: &Moment<'_>| match moment.step {
        2 => ControlFlow::Break(()),
        _ => ControlFlow::Continue(()),
    };
    let episode = &played.episodes[0];
    let again = replay(&mut env, &mut policy, episode, &play, &mut look).unwrap();
    assert_eq!((again.length, again.seed), (2, episode.seed));
}
