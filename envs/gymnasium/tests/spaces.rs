//! Conversion of Gymnasium's spaces, and errors for unsupported spaces.

#![cfg(feature = "python")]
#![allow(clippy::unwrap_used)]

mod common;

use std::error::Error;

use common::{discrete, open, own, own_module, shown};
use overtone_core::{ActionSpace, Actions, ObservationSpace, Observations};
use overtone_env::Suite;
use overtone_gymnasium::Gymnasium;
use pyo3::prelude::*;

#[test]
fn a_dict_is_concatenated_and_combinations_are_discrete_actions() {
    let task = own("AllSpaces");
    assert_eq!(task.observations, ObservationSpace::Vectors { width: 14 });
    let ActionSpace::Discrete { names } = &task.actions else { panic!("{:?}", task.actions) };
    assert_eq!(names, &["0|10", "0|11", "0|12", "1|10", "1|11", "1|12"]);
    let mut env = open(task, 2);
    env.reset(&[1], &[3]).unwrap();
    // a: four numbers; m: two bits, one-hot of 2 and one-hot of 3; z: one-hot of 5, 6 and 7.
    let expected = [0.25, 0.5, 0.75, 1.0, 1.0, 0.0, 0.0, 1.0, 0.0, 0.0, 1.0, 0.0, 1.0, 0.0];
    assert_eq!(shown(&*env, 1), expected);
    assert_eq!(shown(&*env, 0), [0.0; 14], "no episode has started there");
    assert_eq!(env.step(&[1], &discrete(&[2])).unwrap()[0].reward, 12.0);
    assert_eq!(env.step(&[1], &discrete(&[3])).unwrap()[0].reward, 110.0);
}

#[test]
fn an_action_stays_the_same_if_an_environment_changes_it_in_place() {
    let mut env = open(own("Greedy"), 1);
    env.reset(&[0], &[1]).unwrap();
    // The third of 2 times 3 combinations is (0, 2).
    let rewards = [(); 2].map(|()| env.step(&[0], &discrete(&[2])).unwrap()[0].reward);
    assert_eq!(rewards, [2.0, 2.0]);
}

#[test]
fn discrete_actions_can_start_at_any_number() {
    let task = own("Started");
    let ActionSpace::Discrete { names } = &task.actions else { panic!("{:?}", task.actions) };
    assert_eq!(names, &["-1", "0", "1"]);
    let mut env = open(task, 1);
    env.reset(&[0], &[1]).unwrap();
    let rewards = [0, 1, 2].map(|action| env.step(&[0], &discrete(&[action])).unwrap()[0].reward);
    assert_eq!(rewards, [-1.0, 0.0, 1.0]);
}

#[test]
fn each_number_of_an_action_has_its_own_bounds() {
    let task = own("Bounded");
    let (low, high) =
        (vec![-2.0, 0.0, -1.0, f32::NEG_INFINITY], vec![2.0, 4.0, 1.0, f32::INFINITY]);
    assert_eq!(task.actions, ActionSpace::Continuous { low, high });
    let mut env = open(task, 1);
    env.reset(&[0], &[1]).unwrap();
    let actions = Actions::Continuous { width: 4, values: vec![-2.0, 4.0, 0.5, 100.0] };
    assert_eq!(env.step(&[0], &actions).unwrap()[0].reward, 102.5);
}

#[test]
fn actions_are_clipped_to_64_bit_bounds() {
    let mut env = open(own("Tight"), 1);
    env.reset(&[0], &[1]).unwrap();
    let actions = Actions::Continuous { width: 2, values: vec![-0.1, 0.1] };
    assert_eq!(env.step(&[0], &actions).unwrap()[0].reward, 1.0);
}

#[test]
fn one_number_can_be_observed_without_an_axis() {
    let mut env = open(own("Bare"), 1);
    env.reset(&[0], &[1]).unwrap();
    env.step(&[0], &discrete(&[0])).unwrap();
    assert_eq!(shown(&*env, 0), [1.0]);
}

#[test]
fn discrete_observations_are_one_hot() {
    let task = Gymnasium.task("Taxi-v4").or_else(|_| Gymnasium.task("Taxi")).unwrap();
    assert_eq!(task.observations, ObservationSpace::Vectors { width: 500 });
    let mut env = open(task, 1);
    env.reset(&[0], &[4]).unwrap();
    let first = shown(&*env, 0);
    assert_eq!(first.iter().sum::<f32>(), 1.0);
    assert!(first.iter().all(|&number| number == 0.0 || number == 1.0));
}

/// OpenCV's conversion of an image: grey, then resized by area.
fn by_opencv(time: u8) -> Vec<u8> {
    own_module();
    Python::attach(|py| {
        let code = c"import cv2, numpy, overtone_own
def frame(time):
    env = overtone_own.Painted()
    env.time = time
    grey = cv2.cvtColor(env.see(), cv2.COLOR_RGB2GRAY)
    return cv2.resize(grey, (84, 84), interpolation=cv2.INTER_AREA).reshape(-1).tolist()";
        let module = PyModule::from_code(py, code, c"frame.py", c"frame").unwrap();
        module.call_method1("frame", (time,)).unwrap().extract().unwrap()
    })
}

#[test]
fn images_are_four_grey_frames() {
    let task = own("Painted");
    assert_eq!(task.observations, ObservationSpace::Pixels { shape: vec![4, 84, 84] });
    let mut env = open(task, 2);
    env.reset(&[1], &[3]).unwrap();
    env.step(&[1], &discrete(&[0])).unwrap();
    env.step(&[1], &discrete(&[0])).unwrap();
    let Observations::Pixels(pixels) = env.observations() else { panic!("numbers") };
    let frames: Vec<&[u8]> = pixels[pixels.len() / 2..].chunks(84 * 84).collect();
    assert!(frames[0].iter().all(|&pixel| pixel == 0));
    for time in [0, 1, 2] {
        let expected = by_opencv(time);
        // If a pixel covers parts of several pixels, rounding can differ by at most one.
        let apart = frames[usize::from(time) + 1].iter().zip(&expected);
        let far = apart.filter(|(one, other)| one.abs_diff(**other) > 1).count();
        assert_eq!(far, 0, "the frame at {time}");
    }
    assert_ne!(frames[1], frames[3]);
}

#[track_caller]
fn rejected(name: &str, expected: &str) {
    own_module();
    let error = Gymnasium.task(&format!("overtone_own:Overtone{name}-v0")).unwrap_err();
    let message = error.source().map(ToString::to_string).unwrap_or_default();
    assert!(message.contains(expected), "{name}: {message}");
}

#[test]
fn unsupported_spaces_are_errors() {
    rejected("Worded", "its observation is a Text space");
    rejected("Mixed", "its observation.image is an image among other parts");
    rejected("Ordered", "its actions are a Dict space");
    rejected("Whole", "its actions are a Box of int64");
    rejected("Listed", "it has 65536 discrete actions, but at most 65535 are supported");
}
