//! Episodes of the suite equal Gymnasium bit by bit and depend only on their seeds. A hand-written
//! policy solves CartPole.

#![cfg(feature = "python")]
#![allow(clippy::unwrap_used)]

mod common;

use std::ops::ControlFlow;

use common::{discrete, open, own, own_module, shown};
use overtone_core::protocol::ReturnUnits;
use overtone_core::{
    ActionSpace, Actions, Observations, Outcome, Policy, PolicyError, Simulation, Task, Turn,
    policy::EpisodeStart,
};
use overtone_env::Suite;
use overtone_eval::{Plan, Player, RandomPolicy, rollout_together};
use overtone_gymnasium::{Gymnasium, GymnasiumSimulation};
use pyo3::prelude::*;

/// A sequence of random actions for one environment.
fn actions(task: &Task, n: usize) -> Vec<Actions> {
    let mut policy = RandomPolicy::new(task.actions.clone(), 1);
    let act = |time: usize| {
        let start = (time == 0).then_some(EpisodeStart { seed: 5, target_return: 0.0 });
        let turn = Turn { agent: 0, reward: 0.0, start };
        policy.act(&[turn], Observations::Vectors(&[])).unwrap()
    };
    (0..n).map(act).collect()
}

/// Observations, rewards and endings of an environment from `gymnasium.make`.
fn by_gymnasium(task: &Task, seed: u64, actions: &[Actions]) -> (Vec<Vec<f32>>, Vec<f64>, Vec<u8>) {
    Python::attach(|py| {
        let code = c"import gymnasium, numpy
def play(name, seed, actions):
    env = gymnasium.make(name)
    seen, _ = env.reset(seed=seed)
    flat = lambda seen: numpy.asarray(seen, numpy.float32).reshape(-1).tolist()
    shown, rewards, endings = [flat(seen)], [], []
    for action in actions:
        if isinstance(action, list):
            action = numpy.float32(action)
        seen, reward, terminated, truncated, _ = env.step(action)
        shown.append(flat(seen))
        rewards.append(float(reward))
        endings.append(1 if terminated else 2 if truncated else 0)
        if endings[-1]:
            break
    return shown, rewards, endings";
        let module = PyModule::from_code(py, code, c"play.py", c"play").unwrap();
        let listed = pyo3::types::PyList::empty(py);
        for action in actions {
            match action {
                Actions::Discrete(index) => listed.append(index[0]).unwrap(),
                Actions::Continuous { values, .. } => listed.append(values.clone()).unwrap(),
            }
        }
        module.call_method1("play", (&task.name, seed, listed)).unwrap().extract().unwrap()
    })
}

#[track_caller]
fn compare(name: &str, steps: usize) -> u8 {
    let task = Gymnasium.task(name).unwrap();
    let actions = actions(task, steps);
    // All 64 bits of a seed are used.
    let seed = 0xFEDC_BA98_7654_3210;
    let (expected, rewards, endings) = by_gymnasium(task, seed, &actions);
    let mut env = open(task, 3);
    env.reset(&[2, 0], &[seed, 1]).unwrap();
    assert_eq!(shown(&*env, 2), expected[0], "{name}: the first observation");
    for (time, (reward, ending)) in rewards.iter().zip(&endings).enumerate() {
        let step = env.step(&[2], &actions[time]).unwrap()[0];
        assert_eq!(shown(&*env, 2), expected[time + 1], "{name}: the observation at {time}");
        assert_eq!(step.reward, *reward as f32, "{name}: the reward at {time}");
        let outcome = [None, Some(Outcome::Terminated), Some(Outcome::Truncated)];
        assert_eq!(step.outcome, outcome[usize::from(*ending)], "{name}: at {time}");
    }
    *endings.last().unwrap()
}

#[test]
fn episodes_equal_gymnasium_bit_by_bit() {
    assert_eq!(compare("CartPole-v1", 500), 1, "a random episode terminates");
    assert_eq!(compare("Pendulum-v1", 300), 2, "an episode is only truncated");
    assert_eq!(compare("MountainCarContinuous-v0", 60), 0);
    compare("Ant-v5", 40);
    compare("Humanoid-v5", 20);
}

#[test]
fn tasks_have_gymnasiums_properties() {
    let pendulum = Gymnasium.task("Pendulum-v1").unwrap();
    let bounds = ActionSpace::Continuous { low: vec![-2.0], high: vec![2.0] };
    assert_eq!((pendulum.horizon, &pendulum.actions), (Some(200), &bounds));
    assert_eq!((pendulum.id().as_str(), &pendulum.reference), ("gymnasium/Pendulum-v1", &None));
    let ant = Gymnasium.task("ant-v5").unwrap();
    assert_eq!(ant.name, "Ant-v5", "names are found in any spelling");
    assert_eq!((ant.observations.size(), ant.actions.size()), (105, 8));
    assert_eq!(ant.reference.as_ref().unwrap().low, -325.6);
    assert_eq!(Gymnasium.task("Cart_Pole").unwrap().name, "CartPole-v1", "the newest version");
    let smaller =
        Gymnasium.task("Ant-v5,exclude_current_positions_from_observation=false").unwrap();
    assert_eq!((smaller.observations.size(), &smaller.reference), (107, &None));
    let simulator = Gymnasium.simulator(ant, &ant.simulation).unwrap();
    assert_eq!(simulator.name, "Gymnasium 1.4.0, Ant-v5");
}

#[test]
fn unknown_names_are_errors_with_a_suggestion() {
    let error = |name: &str| {
        own_module();
        let error = Gymnasium.task(name).unwrap_err();
        let cause = std::error::Error::source(&error).map(ToString::to_string);
        cause.unwrap_or_else(|| error.to_string())
    };
    assert_eq!(
        error("CartPoole-v1"),
        "unknown environment `CartPoole-v1`: did you mean `CartPole-v1`?"
    );
    let known = error("zzz");
    assert!(known.starts_with("unknown environment `zzz`; known are CartPole-v0, "), "{known}");
    let module = error("no_such_module:Mine-v0");
    assert!(module.contains("No module named 'no_such_module'"), "{module}");
    let function = error("overtone_own:mak");
    assert!(function.starts_with("unknown environment `overtone_own:mak`"), "{function}");
    assert!(!function.contains("CartPole"), "only names of its module: {function}");
    let number = error("overtone_own:number");
    assert!(number.ends_with("returns a int, which has no reset"), "{number}");
    let option = error("CartPole-v1,gravitation=3");
    assert!(option.contains("cannot create") && option.contains("gravitation"), "{option}");
    let lander = error("LunarLander-v3");
    assert!(lander.contains("needs a package") && lander.contains("gymnasium[box2d]"), "{lander}");
}

#[test]
fn keyword_arguments_and_limits_reach_the_environment() {
    // Without gravity the pendulum does not move, so its cost depends only on the angle.
    let reward = |name| {
        let mut env = open(Gymnasium.task(name).unwrap(), 1);
        env.reset(&[0], &[9]).unwrap();
        let still = Actions::Continuous { width: 1, values: vec![0.0] };
        env.step(&[0], &still).unwrap();
        env.step(&[0], &still).unwrap()[0].reward
    };
    assert_ne!(reward("Pendulum-v1"), reward("Pendulum-v1,g=0.0"));
    let steps = |task: &Task, simulation: &Simulation| {
        let mut env = Gymnasium.open(task, simulation, 1).unwrap();
        env.reset(&[0], &[1]).unwrap();
        let mut n = 0;
        loop {
            n += 1;
            if let Some(outcome) = env.step(&[0], &discrete(&[1])).unwrap()[0].outcome {
                return (n, outcome);
            }
        }
    };
    let task = own("Own");
    assert_eq!(task.horizon, Some(4));
    assert_eq!(steps(task, &task.simulation), (4, Outcome::Truncated));
    let unlimited = Simulation::of(&GymnasiumSimulation { max_steps: 0 });
    assert_eq!(steps(task, &unlimited), (5, Outcome::Terminated));
    let shorter = Simulation::of(&GymnasiumSimulation { max_steps: 2 });
    assert_eq!(steps(task, &shorter), (2, Outcome::Truncated));
    assert_eq!(Gymnasium.horizon(task, &shorter), Some(2));
    // A function that returns an environment does not need to be registered.
    own_module();
    let made = Gymnasium.task("overtone_own:endless,length=7").unwrap();
    assert_eq!((made.horizon, made.name.as_str()), (None, "overtone_own:endless,length=7"));
    assert_eq!(steps(made, &made.simulation), (7, Outcome::Terminated));
    assert_eq!(steps(made, &shorter), (2, Outcome::Truncated));
    let limited = Gymnasium.task("overtone_own:limited").unwrap();
    assert_eq!(limited.horizon, Some(7));
    assert_eq!(steps(limited, &limited.simulation), (7, Outcome::Truncated));
    assert_eq!(steps(limited, &shorter), (2, Outcome::Truncated));
    for (name, env_limit, max_steps) in [("limited", 7, 0), ("limited", 7, 20), ("capped", 3, 20)] {
        let made = Gymnasium.task(&format!("overtone_own:{name}")).unwrap();
        let longer = Simulation::of(&GymnasiumSimulation { max_steps });
        let error = Gymnasium.open(made, &longer, 1).err().unwrap().to_string();
        let expected = format!("after {env_limit} actions, but max_episode_steps is {max_steps}");
        assert!(error.contains(&expected), "{error}");
    }
}

/// The `info` of the last step counts. A termination alone, as in CartPole, says nothing.
#[test]
fn success_is_what_the_last_info_says() {
    let success = |task: &Task| {
        let mut env = open(task, 2);
        env.reset(&[0, 1], &[1, 2]).unwrap();
        loop {
            // The environments are stepped in another order than they are numbered.
            let steps = env.step(&[1, 0], &discrete(&[1, 1])).unwrap();
            assert_eq!(steps[0].success, steps[1].success);
            if steps[0].outcome.is_some() && steps[1].outcome.is_some() {
                return steps[0].success;
            }
            assert_eq!(steps[0].success, None, "an episode that has not ended");
        }
    };
    let (yes, no) = (Some(true), Some(false));
    for (kind, expected) in [
        ("always", yes),
        ("at_end", yes),
        ("number", yes),
        ("array", yes),
        ("both", yes),
        ("second", yes),
        ("lost", no),
        ("never", None),
        ("parts", None),
        ("fraction", None),
        ("no_dict", None),
    ] {
        assert_eq!(success(own(&format!("Solving,kind={kind}"))), expected, "{kind}");
    }
    assert_eq!(success(own("Own")), None, "truncated after 4 steps");
}

#[test]
fn changes_since_training_are_errors() {
    let task = Gymnasium.task("CartPole-v1").unwrap();
    let other = Task { actions: ActionSpace::numbered(3), ..task.clone() };
    let error = Gymnasium.check(&other).unwrap_err().to_string();
    assert!(error.starts_with("the actions of CartPole-v1 differ"), "{error}");
    Gymnasium.check(task).unwrap();
    // Our recordings number the actions `0|10` to `1|12` from 0.
    let numbered = |n| Task { actions: ActionSpace::numbered(n), ..own("AllSpaces").clone() };
    Gymnasium.check(&numbered(6)).unwrap();
    assert!(Gymnasium.check(&numbered(5)).is_err());
}

/// A policy that pushes the cart in the direction of the falling pole.
struct Balance;

impl Policy for Balance {
    fn act(&mut self, _: &[Turn], seen: Observations<'_>) -> Result<Actions, PolicyError> {
        let Observations::Vectors(rows) = seen else { return Err("expected vectors".into()) };
        // Position, velocity, angle, angular velocity.
        let push = |row: &[f32]| usize::from(row[2] + 0.3 * row[3] + 0.02 * row[1] > 0.0);
        Ok(Actions::Discrete(rows.chunks(4).map(push).collect()))
    }
}

#[test]
fn a_hand_written_policy_balances_the_pole() {
    let task = Gymnasium.task("CartPole-v1").unwrap();
    let plan = Plan::new(20, vec![500.0], 1, ReturnUnits::Raw);
    let mut go = |_: &overtone_eval::Progress| ControlFlow::Continue(());
    let mut means = Vec::new();
    for n_envs in [1, 7] {
        let mut random = RandomPolicy::new(task.actions.clone(), 20);
        for policy in [&mut random as &mut dyn Policy, &mut Balance] {
            let mut env = open(task, n_envs);
            let mut players = [Player { policy, plan: &plan }];
            let played = rollout_together(&mut [env.as_mut()], &mut players, &mut go).unwrap();
            let sum: f64 = played[0].episodes.iter().map(|episode| episode.raw_return).sum();
            means.push(sum / 20.0);
        }
    }
    assert!(means[0] < 40.0 && means[1] > 400.0, "{means:?}");
    assert_eq!(means[..2], means[2..], "episodes do not depend on the number of environments");
}

/// A random policy that records its actions by episode.
struct Recording {
    random: RandomPolicy,
    actions: Vec<Vec<Actions>>,
}

impl Policy for Recording {
    fn act(&mut self, turns: &[Turn], seen: Observations<'_>) -> Result<Actions, PolicyError> {
        if turns[0].start.is_some() {
            self.actions.push(Vec::new());
        }
        let acted = self.random.act(turns, seen)?;
        self.actions.last_mut().unwrap().push(acted.clone());
        Ok(acted)
    }
}

/// `gymnasium.make` repeats an evaluated episode with its `environment_seed` from `evaluation.json`
/// and its actions.
#[test]
fn python_repeats_an_evaluated_episode_from_its_seed_and_actions() {
    for name in ["CartPole-v1", "Pendulum-v1"] {
        let task = Gymnasium.task(name).unwrap();
        let plan = Plan::new(3, vec![1.0], 7, ReturnUnits::Raw);
        let random = RandomPolicy::new(task.actions.clone(), 3);
        let mut policy = Recording { random, actions: Vec::new() };
        // One environment, so that actions are recorded in the order of the episodes.
        let mut env = open(task, 1);
        let mut go = |_: &overtone_eval::Progress| ControlFlow::Continue(());
        let mut players = [Player { policy: &mut policy, plan: &plan }];
        let played = rollout_together(&mut [env.as_mut()], &mut players, &mut go).unwrap();
        assert_eq!(played[0].episodes.len(), 3);
        for (episode, actions) in played[0].episodes.iter().zip(&policy.actions) {
            let seed = episode.environment_seed;
            assert!(seed < 1 << 31, "many environments take no larger seed: {seed}");
            let (_, rewards, endings) = by_gymnasium(task, seed, actions);
            assert_eq!(rewards.len() as u64, episode.length, "{name}");
            let sum: f64 = rewards.iter().map(|&reward| f64::from(reward as f32)).sum();
            assert_eq!(sum, episode.raw_return, "{name}");
            let ending = 1 + u8::from(episode.outcome == Outcome::Truncated);
            assert_eq!(endings.last(), Some(&ending), "{name}");
        }
    }
}

/// The environment raises if an action is not allowed.
#[test]
fn actions_are_those_that_the_info_allows() {
    for form in ["action_mask", "admissible_actions", "flags"] {
        let task = own(&format!("Masked,form={form}"));
        let plan = Plan::new(6, vec![1.0], 7, ReturnUnits::Raw);
        let mut random = RandomPolicy::new(task.actions.clone(), 2);
        let mut env = open(task, 2);
        assert_eq!(env.allowed_actions(), None);
        let mut go = |_: &overtone_eval::Progress| ControlFlow::Continue(());
        let mut players = [Player { policy: &mut random, plan: &plan }];
        let played = rollout_together(&mut [env.as_mut()], &mut players, &mut go).unwrap();
        assert_eq!((played[0].episodes.len(), played[0].failed.len()), (6, 0), "{form}");
    }
    // A policy that does not know masks is refused, and so is a mask of another size.
    let mut env = open(own("Masked"), 1);
    let plan = Plan::new(1, vec![1.0], 7, ReturnUnits::Raw);
    let mut go = |_: &overtone_eval::Progress| ControlFlow::Continue(());
    let mut players = [Player { policy: &mut Balance, plan: &plan }];
    let error = rollout_together(&mut [env.as_mut()], &mut players, &mut go).unwrap_err();
    assert!(matches!(error, overtone_eval::RolloutError::Policy(_)), "{error}");
    let error = open(own("Masked,form=wrong"), 1).reset(&[0], &[1]).unwrap_err().to_string();
    assert!(error.contains("expected 0 or 1 for each of 3 actions"), "{error}");
}
