//! Values of policies where they are known: a table, a chain, and recordings of one state.

#![allow(clippy::unwrap_used, reason = "the helpers of tests are tests too")]

#[path = "../../agents/tests/chain/mod.rs"]
mod chain;

use std::ops::ControlFlow;

use burn::tensor::{Device, Tensor, TensorData};
use chain::{GAMMA, RIGHT, STATES};
use overtone_agents::value::{Rescaling, Steps, network::Hidden};
use overtone_core::{Episode, Interval, Outcome, seed};
use overtone_data::{
    ActionColumn, ActionMasks, Batch, BatchOptions, Columns, Dataset, DatasetOptions, Fragment,
    Lookahead, ObservationColumn, Sampling, Stored, StoredObservations, WindowSampler,
};
use overtone_judge::{
    BehaviorClone, Fit, FitOptions, Fitted, FittedQ, Forced, ForcedActions, JudgeError, Recorded,
    RecordedSteps,
    fit::fit,
    fitted_q::{Critic, return_bounds},
};
use overtone_model::weights;
use overtone_testkit::{assert_close, check_error};
use rand::RngExt;

/// The same action of every row: the probability of each.
fn always(data: &Dataset, probabilities: &[f32]) -> Forced {
    let rows = data.n_transitions();
    let actions =
        ForcedActions::Probabilities { n: probabilities.len(), values: probabilities.repeat(rows) };
    Forced { actions, returns_to_go: vec![0.0; rows] }
}

/// The same number as action of every row.
fn vectors(data: &Dataset, action: f32) -> Forced {
    let rows = data.n_transitions();
    let actions = ForcedActions::Vectors { width: 1, values: vec![action; rows] };
    Forced { actions, returns_to_go: vec![0.0; rows] }
}

fn fit_all(data: &Dataset, policies: &[Forced], options: &FitOptions) -> Fitted {
    fit(&of(data, policies), options, &mut || ControlFlow::Continue(())).unwrap()
}

fn of<'a>(data: &'a Dataset, policies: &'a [Forced]) -> Fit<'a> {
    Fit { data, policies, conditioning: None, action_scale: None, episodes: None, limit: None }
}

/// Episodes of one state and two actions with these `(action, reward)`.
fn of_one_state(episodes: &[(&[(u16, f32)], Outcome)]) -> Dataset {
    let (mut actions, mut rewards, mut spans) = (Vec::new(), Vec::new(), Vec::new());
    for (steps, outcome) in episodes {
        spans.push(Episode { start: actions.len(), length: steps.len(), outcome: *outcome });
        for &(action, reward) in *steps {
            actions.push(action);
            rewards.push(reward);
        }
    }
    let columns = Columns {
        path: "one state".into(),
        format: "one state",
        observations: ObservationColumn::Vectors { width: 1, values: vec![1.0; actions.len()] },
        actions: ActionColumn::Discrete { n_actions: 2, values: actions },
        rewards,
        behavior_log_probs: None,
        optional: Default::default(),
        finished: vec![true; spans.len()],
        mixture: Default::default(),
        episodes: spans,
        odd: Vec::new(),
        stored: Stored::default(),
    };
    let options = DatasetOptions { fragment: Fragment::Keep, ..DatasetOptions::default() };
    Dataset::of(columns, &options).unwrap()
}

/// One critic with small layers.
fn small(updates: usize) -> FitOptions {
    FitOptions {
        gamma: GAMMA,
        critics: 1,
        return_updates: 300,
        updates,
        estimate_every: 500,
        batch_size: 64,
        learning_rate: 2e-3,
        hidden: Hidden { n_layers: 2, width: 32, has_norms: true },
        ..FitOptions::default()
    }
}

/// `x` with `A x = b`, by elimination.
fn solve(mut a: Vec<Vec<f64>>, mut b: Vec<f64>) -> Vec<f64> {
    let n = b.len();
    for column in 0..n {
        let size = |&row: &usize| a[row][column].abs();
        let pivot = (column..n).max_by(|x, y| size(x).total_cmp(&size(y))).unwrap();
        a.swap(column, pivot);
        b.swap(column, pivot);
        let (above, below) = a.split_at_mut(column + 1);
        let (top, of_top) = (&above[column], b[column]);
        for (row, of_row) in below.iter_mut().zip(&mut b[column + 1..]) {
            let factor = row[column] / top[column];
            row.iter_mut().zip(top).for_each(|(x, y)| *x -= factor * y);
            *of_row -= factor * of_top;
        }
    }
    for row in (0..n).rev() {
        let known: f64 = (row + 1..n).map(|column| a[row][column] * b[column]).sum();
        b[row] = (b[row] - known) / a[row][row];
    }
    b
}

/// With one weight for each state and action, the values are the solution of least-squares
/// temporal differences: `Φᵀ W (Φ − γ Φ') q = Φᵀ W r`.
#[test]
fn a_table_has_the_least_squares_solution() {
    const N_STATES: usize = 3;
    const N_ACTIONS: usize = 2;
    const N_POLICIES: usize = 2;
    const ROWS: usize = 40;
    const GAMMA: f64 = 0.8;
    /// Largest difference seen: 3e-15.
    const TOLERANCE: f64 = 1e-9;
    let mut generator = seed::generator(5, "table");
    let policies: Vec<f64> = (0..N_POLICIES * N_STATES).map(|_| generator.random()).collect();
    let probability = |policy: usize, state: usize, action: usize| {
        let first = policies[policy * N_STATES + state];
        if action == 0 { first } else { 1.0 - first }
    };
    struct Row {
        state: usize,
        action: usize,
        reward: f64,
        next: usize,
        continues: f64,
        weight: f64,
    }
    let rows: Vec<Row> = (0..ROWS)
        .map(|_| Row {
            state: generator.random_range(0..N_STATES),
            action: generator.random_range(0..N_ACTIONS),
            reward: generator.random_range(-1.0..1.0),
            next: generator.random_range(0..N_STATES),
            continues: f64::from(u8::from(generator.random::<f64>() < 0.8)),
            weight: f64::from(generator.random_range(0u8..3)),
        })
        .collect();
    let matrix = |width: usize, of: &dyn Fn(&Row) -> Vec<f64>| {
        let values: Vec<f64> = rows.iter().flat_map(of).collect();
        let values = TensorData::new(values, [ROWS, width]);
        Tensor::<2>::from_data(values, (&Device::flex(), burn::tensor::DType::F64))
    };
    let one_hot = |state: usize| (0..N_STATES).map(|s| f64::from(u8::from(s == state))).collect();
    let steps = RecordedSteps {
        observations: matrix(N_STATES, &|row| one_hot(row.state)),
        actions: matrix(1, &|row| vec![row.action as f64]),
        rewards: matrix(1, &|row| vec![row.reward]),
        continues: matrix(1, &|row| vec![row.continues]),
        next_observations: matrix(N_STATES, &|row| one_hot(row.next)),
        next_policies: matrix(N_POLICIES * N_ACTIONS, &|row| {
            let probs = |policy| (0..N_ACTIONS).map(move |a| probability(policy, row.next, a));
            (0..N_POLICIES).flat_map(probs).collect()
        }),
        weights: matrix(1, &|row| vec![row.weight]),
    };
    let fitted_q = FittedQ {
        n_policies: N_POLICIES,
        width: N_ACTIONS,
        is_discrete: true,
        gamma: GAMMA,
        bounds: return_bounds([-1.0, 1.0], GAMMA, None),
    };
    let linear = Hidden { n_layers: 0, width: 0, has_norms: false };
    let network = fitted_q.network(N_STATES, linear, 0.0, &mut generator);
    let mut tensors = weights::export(&network);
    for data in tensors.values_mut() {
        *data = data.clone().convert::<f64>();
    }
    let mut critic = Critic::new(weights::import(network, &tensors).unwrap());
    for update in 0..12_000 {
        let rate = 0.02 * 0.1f64.powi(update / 2_000);
        fitted_q.learn(&mut critic, &steps, [rate, 0.05]);
    }
    // Every state and action, whether it has weight or not.
    let pair = |state: usize, action: usize| state * N_ACTIONS + action;
    let n = N_STATES * N_ACTIONS;
    let taken: Vec<bool> = (0..n)
        .map(|at| rows.iter().any(|row| pair(row.state, row.action) == at && row.weight > 0.0))
        .collect();
    assert!(taken.iter().all(|&taken| taken), "a pair without data has no value");
    let inputs: Vec<f64> = (0..N_STATES).flat_map(one_hot).collect::<Vec<f64>>();
    let inputs = TensorData::new(inputs, [N_STATES, N_STATES]);
    let inputs = Tensor::from_data(inputs, (&Device::flex(), burn::tensor::DType::F64));
    let values: Vec<f64> =
        critic.target.network.forward(inputs).into_data().iter::<f64>().collect();
    for policy in 0..N_POLICIES {
        let (mut a, mut b) = (vec![vec![0.0; n]; n], vec![0.0; n]);
        for row in &rows {
            let at = pair(row.state, row.action);
            a[at][at] += row.weight;
            b[at] += row.weight * row.reward;
            for action in 0..N_ACTIONS {
                let share = probability(policy, row.next, action);
                a[at][pair(row.next, action)] -= row.weight * GAMMA * row.continues * share;
            }
        }
        let expected = solve(a, b);
        let got = |at: usize| {
            let (state, action) = (at / N_ACTIONS, at % N_ACTIONS);
            values[state * N_POLICIES * N_ACTIONS + policy * N_ACTIONS + action]
        };
        let got: Vec<f64> = (0..n).map(got).collect();
        assert_close("values", &got, &expected, 0.0, TOLERANCE);
    }
}

/// The state of each row of a chain.
fn states(data: &Dataset) -> Vec<usize> {
    let StoredObservations::Vectors { values, .. } = data.observations() else { panic!("vectors") };
    values.chunks_exact(STATES).map(|row| row.iter().position(|&x| x == 1.0).unwrap()).collect()
}

/// The values of going right with probability `right` in all states of the chain.
fn chain_values(right: f64) -> Vec<f64> {
    let (mut a, mut b) = (vec![vec![0.0; STATES]; STATES], vec![0.0; STATES]);
    for state in 0..STATES {
        a[state][state] += 1.0;
        a[state][state.saturating_sub(1)] -= GAMMA * (1.0 - right);
        match a[state].get_mut(state + 1) {
            Some(up) => *up -= GAMMA * right,
            None => b[state] = right,
        }
    }
    solve(a, b)
}

#[test]
fn values_of_a_chain() {
    /// In values up to 1. Largest difference seen: 2e-5.
    const TOLERANCE: f64 = 1e-3;
    let data = chain::listed(0.5, 0.0);
    let rights = [0.1, 0.5, 0.9];
    let policies = rights.map(|right| always(&data, &[1.0 - right as f32, right as f32]));
    let fitted = fit_all(&data, &policies, &small(2500));
    let (states, starts) = (states(&data), data.episodes().as_slice());
    let ActionColumn::Discrete { values: actions, .. } = data.actions() else { panic!("listed") };
    let mut largest = 0.0f64;
    for (policy, right) in rights.into_iter().enumerate() {
        let known = chain_values(right);
        let at_start = starts.iter().map(|episode| known[states[episode.start]]);
        let expected = at_start.sum::<f64>() / starts.len() as f64;
        let estimate = fitted.estimate(policy);
        assert_eq!(estimate.interval(0.95), None, "one critic has no spread");
        let of_policy =
            |values: Vec<f64>| values.into_iter().skip(policy).step_by(3).collect::<Vec<f64>>();
        let rows: Vec<usize> = (0..states.len()).collect();
        let [taken, of_policies] = fitted.values(&rows).map(of_policy);
        let expected_of = |row: usize| match (states[row], actions[row]) {
            (state, RIGHT) => known.get(state + 1).map_or(1.0, |value| GAMMA * value),
            (state, _) => GAMMA * known[state.saturating_sub(1)],
        };
        largest = largest.max((estimate.value - expected).abs());
        for row in 0..states.len() {
            largest = largest.max((taken[row] - expected_of(row)).abs());
            largest = largest.max((of_policies[row] - known[states[row]]).abs());
        }
        let last = fitted.over_updates.last().unwrap();
        assert_eq!((last.updates, last.of(policy)), (2500, estimate.value));
    }
    assert!(largest < TOLERANCE, "{largest}");
    // Half of the recorded actions go right, so this policy recorded the chain. Episodes are cut
    // after 20 steps.
    let [known, error] = fitted.recorded_return;
    assert!((fitted.over_updates.last().unwrap().of(1) - known).abs() < 3.0 * error + TOLERANCE);
    let difference = fitted.difference(2, 0).value;
    let of_both = fitted.estimate(2).value - fitted.estimate(0).value;
    assert!((difference - of_both).abs() < 1e-9, "{difference}");
}

/// Always right from state `s` has the value γ^(4 − s), and always left 0.
#[test]
fn values_of_continuous_actions() {
    /// In values up to 1. Largest difference seen: 0.005.
    const TOLERANCE: f64 = 0.02;
    let data = chain::real_valued(0.0);
    let policies = [0.5, -0.5].map(|action| vectors(&data, action));
    let fitted = fit_all(&data, &policies, &small(2500));
    let (states, starts) = (states(&data), data.episodes().as_slice());
    let of_start = |start: usize| GAMMA.powi((STATES - 1 - states[start]) as i32);
    let expected = starts.iter().map(|episode| of_start(episode.start)).sum::<f64>();
    let expected = [expected / starts.len() as f64, 0.0];
    let got = [0, 1].map(|policy| fitted.estimate(policy).value);
    assert_close("values", &got, &expected, 0.0, TOLERANCE);
}

/// The value of the same steps depends on the reason for which the episode ended.
#[test]
fn a_cut_is_no_end() {
    let steps: &[(u16, f32)] = &[(0, 1.0), (0, 1.0), (0, 1.0)];
    for (outcome, expected) in [
        // Two steps of three have a next step: Q = 1 + 0.9 · 2/3 · Q.
        (Outcome::Terminated, 2.5),
        // The last step has no target: Q = 1 + 0.9 Q.
        (Outcome::Truncated, 10.0),
    ] {
        let data = of_one_state(&[(steps, outcome)]);
        let fitted = fit_all(&data, &[always(&data, &[1.0, 0.0])], &small(1500));
        let got = fitted.estimate(0).value;
        assert!((got - expected).abs() < 0.1 * expected, "{outcome:?}: {got}");
    }
}

/// Action 1 falls, with a reward of 1, and action 0 does not. Bounds of `r / (1 − γ)` alone give a
/// fall the value of never falling.
#[test]
fn a_fall_is_not_raised_to_the_bound() {
    let steps: &[(u16, f32)] = &[(0, 1.0), (0, 1.0), (1, 1.0)];
    let data = of_one_state(&[(steps, Outcome::Terminated), (steps, Outcome::Terminated)]);
    let falls = always(&data, &[0.0, 1.0]);
    let recorded =
        Recorded::of(&data, std::slice::from_ref(&falls), None, None, None, None).unwrap();
    let batch = recorded.batch(&[2, 5], 1.0, &[1.0; 2]);
    let targets = |bounds: [f64; 2]| {
        let fitted_q = FittedQ { n_policies: 1, width: 2, is_discrete: true, gamma: GAMMA, bounds };
        let hidden = Hidden { n_layers: 1, width: 8, has_norms: true };
        let network = fitted_q.network(1, hidden, 3.0, &mut seed::generator(1, "init"));
        let targets = fitted_q.targets(&Critic::new(network).target.network, &batch);
        targets.into_data().iter::<f64>().collect::<Vec<_>>()
    };
    assert_eq!(targets(return_bounds([1.0; 2], GAMMA, None)), [1.0; 2]);
    let naive = 1.0 / (1.0 - GAMMA);
    let raised = targets([naive; 2]);
    assert!(raised.iter().all(|&target| target > 9.9), "{raised:?}");

    let fitted = fit_all(&data, &[falls, always(&data, &[1.0, 0.0])], &small(1500));
    // 1, and for ever 1 + 0.9 Q.
    let got = [0, 1].map(|policy| fitted.estimate(policy).value);
    assert!((got[0] - 1.0).abs() < 0.1 && (got[1] - 10.0).abs() < 0.5, "{got:?}");
}

/// d3rlpy took the action at the *current* observation until its pull request 93.
#[test]
fn the_next_action_stands_in_the_next_row() {
    let data = chain::listed(0.5, 0.0);
    let rows = data.n_transitions();
    let changed = 7;
    assert_eq!(data.index().timestep(changed + 1), data.index().timestep(changed) + 1);
    assert!(data.index().timestep(changed) > 0);
    let values = |is_changed: bool| {
        let mut policy = always(&data, &[0.25, 0.75]);
        let ForcedActions::Probabilities { values, .. } = &mut policy.actions else {
            panic!("listed")
        };
        if is_changed {
            values[2 * changed..][..2].copy_from_slice(&[1.0, 0.0]);
        }
        let recorded = Recorded::of(&data, &[policy], None, None, None, None).unwrap();
        let all: Vec<usize> = (0..recorded.steps().len()).collect();
        let batch = recorded.batch(&all, 1.0, &vec![1.0; rows]);
        let bounds = [f64::NEG_INFINITY, f64::INFINITY];
        let fitted_q = FittedQ { n_policies: 1, width: 2, is_discrete: true, gamma: GAMMA, bounds };
        let hidden = Hidden { n_layers: 1, width: 8, has_norms: true };
        let network = fitted_q.network(STATES, hidden, 0.0, &mut seed::generator(1, "init"));
        let targets = fitted_q.targets(&Critic::new(network).target.network, &batch);
        let targets: Vec<f64> = targets.into_data().iter::<f64>().collect();
        (recorded.steps().to_vec(), targets)
    };
    let ((steps, before), (_, after)) = (values(false), values(true));
    let different = steps.iter().zip(before.iter().zip(&after)).filter(|(_, (a, b))| a != b);
    let different: Vec<usize> = different.map(|(step, _)| step.row).collect();
    assert_eq!(different, [changed - 1]);
}

/// The actor-critic algorithms have the same steps. A conditioning number is added.
#[test]
fn steps_are_those_of_the_agents() {
    let data = chain::real_valued(0.0);
    let rows = data.n_transitions();
    let values: Vec<f32> = (0..rows).map(|row| row as f32 / rows as f32).collect();
    let actions = ForcedActions::Vectors { width: 1, values: values.clone() };
    let policy = Forced { actions, returns_to_go: vec![0.0; rows] };
    let recorded = Recorded::of(&data, &[policy], Some(&values), None, None, None).unwrap();
    assert_eq!(recorded.widths(), [STATES + 1, 1, 1]);

    let mut sampler = WindowSampler::new(data.index().clone(), Sampling::Uniform, 1, 1).unwrap();
    let options = BatchOptions { transitions: Some(Lookahead::ONE), ..BatchOptions::default() };
    let mut batch = Batch::default();
    batch.fill(&data, &mut sampler, rows, &options).unwrap();
    let rescaling = Rescaling::new(data.normalization(), true);
    let expected = Steps::of(&batch, &rescaling, &Device::flex()).unwrap();
    let transitions = batch.transitions.unwrap();
    let kept = (0..rows).filter(|&at| transitions.terminated[at] || transitions.next_is_known[at]);
    let kept: Vec<usize> = kept.map(|at| batch.last_indices[at] as usize).collect();
    assert_eq!(kept.len(), recorded.steps().len());
    assert!(kept.len() < rows, "some episodes are cut");
    let position = |row: &usize| recorded.steps().iter().position(|step| step.row == *row);
    let drawn: Vec<usize> = kept.iter().map(|row| position(row).unwrap()).collect();
    let got = recorded.batch(&drawn, 1.0, &vec![1.0; rows]);

    let numbers = |tensor: Tensor<2>| tensor.into_data().iter::<f32>().collect::<Vec<_>>();
    let states = |tensor: &Tensor<2>| numbers(tensor.clone().narrow(1, 0, STATES));
    assert_eq!(states(&got.observations), numbers(expected.observations));
    assert_eq!(numbers(got.actions), numbers(expected.actions));
    assert_eq!(numbers(got.rewards), numbers(expected.rewards));
    let continues = numbers(expected.continues);
    assert_eq!(numbers(got.continues), continues);
    let (next, known) = (states(&got.next_observations), numbers(expected.next_observations));
    let condition = numbers(got.next_observations.narrow(1, STATES, 1));
    let policies = numbers(got.next_policies);
    for (at, row) in kept.into_iter().enumerate() {
        // After the end both are undefined.
        if continues[at] == 1.0 {
            assert_eq!(next[at * STATES..][..STATES], known[at * STATES..][..STATES]);
            assert_eq!([condition[at], policies[at]], [values[row + 1]; 2]);
        }
    }
}

/// Two values of a critic on a recording, to the bit.
fn bits(data: &Dataset, threads: usize) -> Vec<u64> {
    let options = FitOptions {
        gamma: GAMMA,
        critics: 2,
        return_updates: 5,
        updates: 10,
        estimate_every: 5,
        ..FitOptions::default()
    };
    let policies = [-0.5, 0.5].map(|action| vectors(data, action));
    let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
    let fitted = pool.install(|| fit_all(data, &policies, &options));
    let mut numbers: Vec<f64> =
        fitted.over_updates.iter().flat_map(|estimates| estimates.values.concat()).collect();
    for policy in 0..policies.len() {
        let estimate = fitted.estimate(policy);
        let Interval { low, high } = estimate.interval(0.95).unwrap();
        assert!(low < estimate.value && estimate.value < high);
        assert_ne!(estimate.per_critic[0], estimate.per_critic[1]);
        numbers.extend([low, high]);
    }
    let rows: Vec<usize> = (0..data.n_transitions()).collect();
    numbers.extend(fitted.values(&rows).concat());
    numbers.into_iter().map(f64::to_bits).collect()
}

#[test]
fn threads_change_no_bit() {
    let data = chain::real_valued(0.0);
    assert_eq!(bits(&data, 1), bits(&data, 2));
}

/// Steps of other episodes are neither learned nor starts.
#[test]
fn only_the_named_episodes_are_used() {
    let steps: &[(u16, f32)] = &[(0, 1.0), (0, 1.0)];
    let cut = Outcome::Truncated;
    let with = |other: f32| {
        let others: &[(u16, f32)] = &[(0, other), (1, other)];
        let data = of_one_state(&[(others, Outcome::Terminated), (steps, cut), (steps, cut)]);
        let policy = [always(&data, &[1.0, 0.0])];
        let named = Fit { episodes: Some(&[1, 2]), ..of(&data, &policy) };
        fit(&named, &small(10), &mut || ControlFlow::Continue(())).unwrap().estimate(0)
    };
    assert_eq!(with(5.0), with(-3.0));
}

#[test]
fn steps_without_any_target_are_refused() {
    let data = of_one_state(&[(&[(0, 1.0)], Outcome::Truncated)]);
    let policies = [always(&data, &[0.5, 0.5])];
    let error =
        fit(&of(&data, &policies), &small(1), &mut || ControlFlow::Continue(())).unwrap_err();
    check_error!(error, JudgeError::NoStep);
}

#[test]
fn values_that_are_not_finite_are_refused() {
    let data = of_one_state(&[(&[(0, 1.0), (0, 2.0)], Outcome::Terminated)]);
    let policies = [always(&data, &[f32::NAN, 0.5])];
    let error =
        fit(&of(&data, &policies), &small(1), &mut || ControlFlow::Continue(())).unwrap_err();
    check_error!(error, JudgeError::Diverged { .. });
}

#[test]
fn a_clone_whose_loss_is_not_finite_is_refused() {
    let (n_episodes, length) = (20, 2);
    let rows = n_episodes * length;
    // Their squares are beyond f32.
    let columns = Columns::new(
        ObservationColumn::Vectors { width: 1, values: (0..rows).map(|row| row as f32).collect() },
        ActionColumn::Continuous { width: 1, values: vec![1e30; rows] },
        vec![1.0; rows],
        (0..n_episodes)
            .map(|i| Episode { start: i * length, length, outcome: Outcome::Terminated })
            .collect(),
    );
    let data = Dataset::of(columns, &DatasetOptions::default()).unwrap();
    let recorded = Recorded::of(&data, &[vectors(&data, 0.5)], None, None, None, None).unwrap();
    let error = BehaviorClone::fit(&recorded, 1, &mut || {}).unwrap_err();
    check_error!(error, JudgeError::CloneDiverged { .. });
}

/// Action 2 is allowed in every other row, and then recorded in a third of the cases.
#[test]
fn the_clone_of_a_masked_recording_takes_allowed_actions_only() {
    let (n_episodes, length) = (30, 6);
    let rows = n_episodes * length;
    let has_two = |row: usize| row.is_multiple_of(2);
    let mut columns = Columns::new(
        ObservationColumn::Vectors { width: 1, values: vec![0.5; rows] },
        ActionColumn::Discrete {
            n_actions: 3,
            values: (0..rows)
                .map(|row| if row % 6 == 0 { 2 } else { u16::from(row % 3 == 0) })
                .collect(),
        },
        vec![1.0; rows],
        (0..n_episodes)
            .map(|i| Episode { start: i * length, length, outcome: Outcome::Terminated })
            .collect(),
    );
    let allowed = (0..rows).flat_map(|row| [true, true, has_two(row)]).collect();
    columns.optional.action_masks = Some(ActionMasks { n_actions: 3, allowed });
    let data = Dataset::of(columns, &DatasetOptions::default()).unwrap();
    let recorded = Recorded::of(&data, &[], None, None, None, None).unwrap();
    let clone = BehaviorClone::fit(&recorded, 1, &mut || {}).unwrap();
    let ForcedActions::Probabilities { values, .. } = clone.policy(1).actions else {
        panic!("probabilities")
    };
    for (row, probs) in values.chunks_exact(3).enumerate() {
        assert!((probs.iter().sum::<f32>() - 1.0).abs() < 1e-5, "{probs:?}");
        if has_two(row) {
            // Not a sixth, as the observation alone would say.
            assert!((probs[2] - 1.0 / 3.0).abs() < 0.08, "{probs:?}");
        } else {
            assert_eq!(probs[2], 0.0, "row {row}");
        }
    }
}
