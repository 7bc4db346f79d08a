//! The comparison of an agent with recorded actions: by hand, and of agents that are known.

#![allow(clippy::unwrap_used, reason = "the helpers of tests are tests too")]

use overtone_core::{
    ActingMode, Episode, Outcome,
    imitation::{Agreement, Difference, Imitation},
    judgement::Trained,
};
use overtone_data::{ActionColumn, Columns, Dataset, DatasetOptions, ObservationColumn};
use overtone_judge::imitation::{Place, imitation};
use overtone_judge::{ForcedActions, Request};

/// Episodes of `length` steps with these actions, and one number as observation.
fn recording(length: usize, observations: Vec<f32>, actions: ActionColumn) -> Dataset {
    let rows = observations.len();
    let outcome = Outcome::Terminated;
    let episodes = (0..rows / length).map(|i| Episode { start: i * length, length, outcome });
    let seen = ObservationColumn::Vectors { width: 1, values: observations };
    let rewards = (0..rows).map(|row| row as f32).collect();
    let columns = Columns::new(seen, actions, rewards, episodes.collect());
    Dataset::of(columns, &DatasetOptions::default()).unwrap()
}

fn request(data: &Dataset) -> Request<'_> {
    Request {
        run: "run",
        step: 5,
        target_return: 0.0,
        is_conditioned: false,
        data,
        dataset: "recording",
        trained: Trained::No,
        action_scale: None,
    }
}

fn compared(data: &Dataset, acted: &ForcedActions) -> Imitation {
    let place = |(at, of): (usize, &Episode)| Place { episode: at + 3, row: of.start + 100 };
    let places: Vec<Place> = data.episodes().as_slice().iter().enumerate().map(place).collect();
    imitation(&request(data), ActingMode::default(), acted, &places, 1).unwrap()
}

fn vectors(values: &[f32]) -> ForcedActions {
    ForcedActions::Vectors { width: 1, values: values.to_vec() }
}

/// Two episodes of two steps. The recorded actions have the mean 0.5 and the variance 0.25.
#[test]
fn agreements_by_hand() {
    let column = ActionColumn::Continuous { width: 1, values: vec![0.0, 1.0, 1.0, 0.0] };
    let data = recording(2, vec![0.0, 10.0, 1.0, 11.0], column);
    let of = compared(&data, &vectors(&[0.0, 1.0, 1.0, 0.5]));
    // Squared errors: agent 0.25 / 4; the action before 1; the similar step's action 1.
    let expected = Agreement { agent: 0.75, constant: 0.0, previous: -3.0, nearest: -3.0 };
    assert_eq!((of.all, of.numbers.len(), of.quarters.len()), (expected, 1, 0));
    // The agent's second actions, 1 and 0.5, next to 0 and 1: 1 - (1 + 0.25) / 2 / 0.25.
    assert_eq!(of.repeats, -1.5);
    let largest = Difference { episode: 4, row: 103, agent: vec![0.5], recorded: vec![0.0] };
    assert_eq!((of.largest, of.top_and_rest, of.log_likelihood), (vec![largest], None, None));

    let column = ActionColumn::Discrete { n_actions: 2, values: vec![0, 1, 1, 1] };
    let data = recording(2, vec![0.0, 10.0, 1.0, 11.0], column);
    let values = vec![0.75, 0.25, 0.25, 0.75, 0.75, 0.25, 0.25, 0.75];
    let of = compared(&data, &ForcedActions::Probabilities { n: 2, values });
    // The agent errs in row 2, and so does the row before in row 1.
    let expected = Agreement { agent: 0.75, constant: 0.75, previous: 0.5, nearest: 0.5 };
    assert_eq!(of.all, expected);
    let [agent, frequencies] = of.log_likelihood.unwrap();
    let by_hand = (3.0 * 0.75_f64.ln() + 0.25_f64.ln()) / 4.0;
    assert!((agent - by_hand).abs() < 1e-12, "{agent}");
    let by_hand = 0.75 * 0.75_f64.ln() + 0.25 * 0.25_f64.ln();
    assert!((frequencies - by_hand).abs() < 1e-12, "{frequencies}");
}

/// Actions that change slowly, with observations that say nothing of them.
#[test]
fn a_copycat_is_found_and_an_equal_agent_is_not_one() {
    let (length, episodes) = (40, 12);
    let mut actions = Vec::new();
    for row in 0..length * episodes {
        let noise = ((row * 7919) % 101) as f32 / 50.0 - 1.0;
        let before = if row % length == 0 { 0.0 } else { actions[row - 1] };
        actions.push(0.9 * before + 0.3 * noise);
    }
    let seen = (0..actions.len()).map(|row| ((row * 31) % 17) as f32).collect();
    let column = ActionColumn::Continuous { width: 1, values: actions.clone() };
    let data = recording(length, seen, column);
    let repeated: Vec<f32> = (0..actions.len())
        .map(|row| if row % length == 0 { 0.0 } else { actions[row - 1] })
        .collect();
    let copycat = compared(&data, &vectors(&repeated));
    assert!(copycat.is_copycat() && copycat.repeats > 0.999, "{copycat:?}");
    assert_eq!((copycat.largest.len(), copycat.largest[0].row >= 100), (10, true));

    let equal = compared(&data, &vectors(&actions));
    assert!(!equal.is_copycat());
    assert_eq!((equal.all.agent, equal.departure, equal.largest.len()), (1.0, 0.0, 0));
    assert_eq!((equal.quarters, equal.top_and_rest), (vec![1.0; 4], Some([1.0; 2])));

    // It agrees with the recording where the returns are high, in the last two episodes.
    let half: Vec<f32> = (0..actions.len())
        .map(|row| if row >= 10 * length { actions[row] } else { -actions[row] })
        .collect();
    let [top, rest] = compared(&data, &vectors(&half)).top_and_rest.unwrap();
    assert!(top == 1.0 && rest < 0.0, "{top} {rest}");
    assert!(compared(&data, &vectors(&vec![5.0; actions.len()])).departure > 3.0);
}

#[test]
fn nothing_is_compared_where_actions_never_change() {
    let column = ActionColumn::Continuous { width: 1, values: vec![0.5; 4] };
    let data = recording(2, vec![0.0, 1.0, 2.0, 3.0], column);
    let places = [Place { episode: 0, row: 0 }; 2];
    let acted = vectors(&[0.0; 4]);
    assert_eq!(imitation(&request(&data), ActingMode::default(), &acted, &places, 1), None);
}
