//! Failures of single environments: exceptions, and invalid observations or rewards.

#![cfg(feature = "python")]
#![allow(clippy::unwrap_used)]

mod common;

use common::{discrete, open, own, shown};
use overtone_core::{Actions, Outcome};
use overtone_env::{EnvError, Suite};
use overtone_gymnasium::Gymnasium;

/// Steps three environments of a kind until one fails. Returns the step, the failed environments and
/// the first error.
fn failure(name: &str, actions: &[usize; 3]) -> (usize, Vec<usize>, String) {
    let mut env = open(own(name), 3);
    env.reset(&[0, 1, 2], &[1, 2, 3]).unwrap();
    for time in 0.. {
        match env.step(&[0, 1, 2], &discrete(actions)) {
            Ok(_) => {}
            Err(EnvError::Partly { failures, .. }) => {
                let envs = failures.iter().map(|failure| failure.env).collect();
                return (time, envs, failures[0].cause.to_string());
            }
            Err(error) => panic!("{name}: {error}"),
        }
    }
    unreachable!()
}

#[test]
fn an_exception_fails_one_environment_and_it_is_created_again() {
    let mut env = open(own("Raising"), 3);
    env.reset(&[0, 1, 2], &[1, 2, 3]).unwrap();
    let mut alone = open(own("Raising"), 1);
    alone.reset(&[0], &[3]).unwrap();
    for _ in 0..2 {
        env.step(&[0, 1, 2], &discrete(&[0, 2, 1])).unwrap();
        alone.step(&[0], &discrete(&[1])).unwrap();
    }
    let error = env.step(&[2, 1, 0], &discrete(&[1, 2, 0])).unwrap_err();
    let EnvError::Partly { failures, steps } = &error else { panic!("{error}") };
    assert_eq!((failures.len(), failures[0].env), (1, 1));
    let message = failures[0].cause.to_string();
    assert!(message.starts_with("RuntimeError: the motor broke at 2 ("), "{message}");
    assert!(message.contains("overtone_own.py:"), "the message has the position: {message}");
    // The other environments continued independently.
    assert_eq!(
        steps.iter().map(|(env, step)| (*env, step.reward)).collect::<Vec<_>>(),
        [(2, 3.0), (0, 3.0)]
    );
    alone.step(&[0], &discrete(&[1])).unwrap();
    assert_eq!(shown(&*env, 2), shown(&*alone, 0));
    // Its episode has ended, and a reset starts another.
    let none = env.step(&[1], &discrete(&[0]));
    assert!(matches!(none, Err(EnvError::NoEpisode { env: 1 })));
    env.reset(&[1], &[2]).unwrap();
    assert_eq!(env.step(&[1, 2], &discrete(&[0, 0])).unwrap()[0].reward, 1.0);
}

#[test]
fn non_finite_observations_and_rewards_are_failures() {
    let (time, envs, message) = failure("NotFinite", &[0, 1, 2]);
    assert_eq!((time, envs.as_slice()), (1, &[0, 1, 2][..]));
    assert_eq!(message, "observed NaN as number 1, from 0");
    assert_eq!(failure("BadReward", &[0; 3]).2, "returned a reward of inf");
}

#[test]
fn an_environment_with_an_invalid_reward_is_created_again() {
    let mut env = open(own("StickyNan"), 2);
    env.reset(&[0, 1], &[1, 2]).unwrap();
    let error = env.step(&[1, 0], &discrete(&[0, 2])).unwrap_err();
    let EnvError::Partly { failures, .. } = &error else { panic!("{error}") };
    assert_eq!((failures.len(), failures[0].env), (1, 0));
    env.reset(&[0], &[3]).unwrap();
    assert_eq!(env.step(&[0], &discrete(&[0])).unwrap()[0].reward, 0.0);
}

#[test]
fn an_environment_that_exits_does_not_end_the_program() {
    let (time, envs, message) = failure("Exiting", &[0; 3]);
    assert_eq!((time, envs.len()), (0, 3));
    assert!(message.starts_with("SystemExit: 3"), "{message}");
}

#[test]
fn observations_of_another_shape_fail_the_reset() {
    let fails = |name: &str, expected: &str| {
        let mut env = open(own(name), 2);
        let error = env.reset(&[0, 1], &[1, 2]).unwrap_err();
        let EnvError::Partly { failures, .. } = &error else { panic!("{name}: {error}") };
        assert_eq!(failures.len(), 2, "{name}");
        let message = failures[0].cause.to_string();
        assert!(message.contains(expected), "{name}: {message}");
    };
    fails("OneWide", "observed an array of shape (3,), its space has the shape (2,)");
    for kind in ["numbers", "part"] {
        let shapes = "observed an array of shape (1,), its space has the shape (2,)";
        fails(&format!("OneShort,kind={kind}"), shapes);
    }
    for (kind, shape) in [("square", "(2, 2)"), ("bits", "(2,)"), ("places", "(2,)")] {
        let shapes = format!("observed an array of shape (1,), its space has the shape {shape}");
        fails(&format!("OneShort,kind={kind}"), &shapes);
    }
    let old =
        "TypeError: reset returned 1 value, a ndarray: Gym's form before 0.26; expected a tuple of";
    fails("OldReset", old);
}

#[test]
fn a_reward_can_have_any_numeric_type() {
    for kind in ["array", "scalar"] {
        let mut env = open(own(&format!("Pays,kind={kind}")), 1);
        env.reset(&[0], &[1]).unwrap();
        assert_eq!(env.step(&[0], &discrete(&[0])).unwrap()[0].reward, 1.5, "{kind}");
    }
    let says = |kind: &str, expected: &str| {
        let message = failure(&format!("Pays,kind={kind}"), &[0; 3]).2;
        assert!(message.starts_with(expected), "{kind}: {message}");
    };
    says("several", "TypeError: the reward is an array of shape (2,); expected one number");
    says("none", "TypeError: the reward is None; expected one number");
    says("text", "TypeError: the reward is a str; expected one number");
    says("list", "TypeError: the reward is a list; expected one number");
    says("nan", "returned a reward of NaN");
}

#[test]
fn errors_about_the_result_of_step_name_its_form() {
    let mut env = open(own("Answers,kind=arrays"), 1);
    env.reset(&[0], &[1]).unwrap();
    // The limit of four steps truncates the episode one step before its end.
    for _ in 0..4 {
        let step = env.step(&[0], &discrete(&[0])).unwrap()[0];
        assert_ne!(step.outcome, Some(Outcome::Terminated));
    }
    assert!(env.step(&[0], &discrete(&[0])).is_err(), "the episode has ended");
    let says = |kind: &str, expected: &str| {
        let (time, _, message) = failure(&format!("Answers,kind={kind}"), &[0; 3]);
        assert_eq!(time, 0, "{kind}");
        assert!(message.starts_with(&format!("TypeError: {expected}")), "{kind}: {message}");
    };
    says("four", "step returned 4 values: Gym's form before 0.26; expected observation, reward,");
    // Gymnasium's wrappers unpack the result first and do not report its length.
    says("six", "step returned more than 5 values; expected observation, reward, terminated,");
    // An observation of two numbers is unpacked as two values.
    says("one", "step returned 2 values; expected observation, reward,");
    says("none", "step returned a NoneType; expected observation, reward,");
    says("two_flags", "terminated is an array of shape (2,); expected True or False");
    says("info_first", "truncated is a dict");
    says("text", "observed values of <U4, expected numbers");
    says("no_array", "observed None, expected numbers");
}

#[test]
fn environments_are_closed_if_another_cannot_be_created() {
    let task = own("Licensed");
    let error = Gymnasium.open(task, &task.simulation, 3).err().unwrap().to_string();
    assert!(error.contains("no licence is left"), "{error}");
    drop(Gymnasium.camera(task, &task.simulation).unwrap().unwrap());
    open(task, 2);
}

#[test]
fn invalid_calls_are_errors_without_a_call_of_python() {
    let mut env = open(own("Own"), 2);
    assert!(matches!(env.step(&[0], &discrete(&[0])), Err(EnvError::NoEpisode { env: 0 })));
    env.reset(&[0], &[1]).unwrap();
    let result = env.step(&[0], &discrete(&[3]));
    assert!(matches!(result, Err(EnvError::ActionOutOfRange { n_actions: 3, .. })));
    let numbers = Actions::Continuous { width: 1, values: vec![0.0] };
    assert!(matches!(env.step(&[0], &numbers), Err(EnvError::ActionKind { .. })));
    assert!(matches!(env.reset(&[2], &[1]), Err(EnvError::NoSuchEnv { env: 2, .. })));
}

#[test]
fn an_environment_is_rendered() {
    let task = own("Own");
    let mut camera = Gymnasium.camera(task, &task.simulation).unwrap().unwrap();
    camera.reset(1).unwrap();
    camera.step(&discrete(&[1])).unwrap();
    let overtone_env::Picture::Screen { size, rgb } = camera.picture() else { panic!("limbs") };
    assert_eq!((size, &rgb[..3], rgb.len()), ([8, 6], &[10, 0, 255][..], 8 * 6 * 3));
    assert_eq!(Gymnasium.seconds_per_action(task, &task.simulation).unwrap(), 0.05);
    let unlit = own("Unlit");
    let mut camera = Gymnasium.camera(unlit, &unlit.simulation).unwrap().unwrap();
    camera.reset(1).unwrap();
    let message = camera.step(&discrete(&[1])).unwrap_err().to_string();
    let expected = "cannot be rendered: RuntimeError: the window is gone";
    assert_eq!(message, format!("overtone_own:OvertoneUnlit-v0 {expected}"));
}

#[test]
fn threads_can_query_environments_in_parallel() {
    // The environments are in different modules of Gymnasium that import each other.
    let names = ["CartPole-v1", "Pendulum-v1", "Acrobot-v1", "MountainCar-v0", "Hopper-v5"];
    std::thread::scope(|scope| {
        let threads = names.map(|name| scope.spawn(move || Gymnasium.task(name)));
        for (name, thread) in names.iter().zip(threads) {
            let task = thread.join().unwrap();
            assert_eq!(
                task.map(|task| task.name.as_str()).map_err(|e| format!("{e:?}")),
                Ok(*name)
            );
        }
    });
}
