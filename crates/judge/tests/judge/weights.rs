//! Importance-weighted estimates of small recordings.

use overtone_core::Interval;
use overtone_core::judgement::Method;
use overtone_core::seed::{Generator, generator};
use overtone_judge::weights::{Logged, Settings, Values, Weighted, estimate};
use rand::RngExt;

/// Largest difference seen: 1.8e-14.
const ROUNDING: f64 = 1e-12;

const QUICK: Settings = Settings { discount: 0.5, replications: 200, level: 0.95, seed: 3 };

pub fn value(weighted: &Weighted, method: Method) -> f64 {
    weighted.estimates.iter().find(|estimate| estimate.method == method).unwrap().value
}

#[track_caller]
fn close(got: f64, expected: f64) {
    assert!((got - expected).abs() < ROUNDING, "{got}, expected {expected}");
}

/// `β` takes each of two actions with probability ½, `π` takes action 0 with ¾. Action 0 gives 1 at
/// the first step and 2 at the second, action 1 nothing.
fn two_steps(actions: [usize; 2]) -> Logged {
    Logged {
        rewards: vec![[1.0, 0.0][actions[0]], [2.0, 0.0][actions[1]]],
        log_ratios: actions.map(|action| [1.5f64, 0.5][action].ln()).to_vec(),
        values: Some(Values {
            of_actions: vec![[1.0, 0.5][actions[0]], 1.0],
            of_histories: vec![0.875, 1.0],
        }),
    }
}

#[test]
fn every_episode_of_two_steps() {
    // Each history is equally likely under β, so the four together have π's value exactly:
    // ¾ · 1 + ½ · ¾ · 2 = 1.5.
    let all = [[0, 0], [0, 1], [1, 0], [1, 1]].map(two_steps);
    let weighted = estimate(&all, &QUICK).unwrap();
    close(value(&weighted, Method::Pdis), 1.5);
    close(value(&weighted, Method::Wpdis), 1.5);
    // β itself: ½ · 1 + ½ · ½ · 2. Returns 2, 1, 1, 0: the deviations are 1, 0, 0, −1.
    close(weighted.recorded.mean, 1.0);
}

#[test]
fn three_episodes_of_two_steps() {
    // Weights 1.5, 1.5, 0.5 with sum 3.5, then 2.25, 0.75, 0.75 with sum 3.75.
    let three = [[0, 0], [0, 1], [1, 0]].map(two_steps);
    let weighted = estimate(&three, &QUICK).unwrap();
    close(value(&weighted, Method::Pdis), 3.0 / 3.0 + 0.5 * 6.0 / 3.0);
    close(value(&weighted, Method::Wpdis), 3.0 / 3.5 + 0.5 * 6.0 / 3.75);
    // r − Q: 0, 0, −0.5, then 1, −1, 1.
    let first = -0.5 * 0.5 / 3.5 + 0.875;
    let second = (2.25 - 0.75 + 0.75) / 3.75 + 1.0;
    close(value(&weighted, Method::Wdr), first + 0.5 * second);
    let [first, second] = weighted.overlap.effective[..] else { panic!("two steps") };
    close(first, 3.5 * 3.5 / (1.5 * 1.5 + 1.5 * 1.5 + 0.5 * 0.5));
    close(second, 3.75 * 3.75 / (2.25 * 2.25 + 0.75 * 0.75 + 0.75 * 0.75));
    assert_eq!(weighted.overlap.horizon, None);
}

/// Episodes of 1 to 7 steps with random numbers.
fn random(n: usize, with_values: bool, seed: u64) -> Vec<Logged> {
    let mut draw = generator(seed, "episodes");
    let numbers = |length: usize, draw: &mut Generator| -> Vec<f64> {
        (0..length).map(|_| draw.random_range(-1.0..1.0)).collect()
    };
    let episode = |_| {
        let length = draw.random_range(1..=7);
        Logged {
            rewards: numbers(length, &mut draw),
            log_ratios: numbers(length, &mut draw),
            values: with_values.then(|| Values {
                of_actions: numbers(length, &mut draw),
                of_histories: numbers(length, &mut draw),
            }),
        }
    };
    (0..n).map(episode).collect()
}

/// PDIS, WPDIS, WDR and the effective sizes, as the formulas stand: plain products, padded episodes.
fn plainly(episodes: &[Logged], discount: f64) -> ([f64; 3], Vec<f64>) {
    let n = episodes.len() as f64;
    let longest = episodes.iter().map(|episode| episode.rewards.len()).max().unwrap();
    let padded = |numbers: &[f64], t: usize| numbers.get(t).copied().unwrap_or(0.0);
    let mut weights = vec![1.0; episodes.len()];
    let mut shares = vec![1.0 / n; episodes.len()];
    let (mut estimates, mut sizes) = ([0.0; 3], Vec::new());
    for t in 0..longest {
        let factor = discount.powi(t as i32);
        for (episode, share) in episodes.iter().zip(&shares) {
            let values = episode.values.as_ref().unwrap();
            estimates[2] += factor * share * padded(&values.of_histories, t);
        }
        for (weight, episode) in weights.iter_mut().zip(episodes) {
            *weight *= padded(&episode.log_ratios, t).exp();
        }
        let sum: f64 = weights.iter().sum();
        shares = weights.iter().map(|weight| weight / sum).collect();
        for (i, episode) in episodes.iter().enumerate() {
            let values = episode.values.as_ref().unwrap();
            let reward = padded(&episode.rewards, t);
            estimates[0] += factor * weights[i] * reward / n;
            estimates[1] += factor * shares[i] * reward;
            estimates[2] += factor * shares[i] * (reward - padded(&values.of_actions, t));
        }
        sizes.push(sum * sum / weights.iter().map(|weight| weight * weight).sum::<f64>());
    }
    (estimates, sizes)
}

#[test]
fn episodes_of_unequal_length_as_the_formulas_stand() {
    for (n, discount, seed) in [(1, 0.9, 1), (2, 1.0, 2), (23, 0.7, 3), (40, 1.0, 4)] {
        let episodes = random(n, true, seed);
        let weighted = estimate(&episodes, &Settings { discount, ..QUICK }).unwrap();
        let (expected, sizes) = plainly(&episodes, discount);
        for (method, expected) in
            [Method::Pdis, Method::Wpdis, Method::Wdr].into_iter().zip(expected)
        {
            close(value(&weighted, method), expected);
        }
        for (got, expected) in weighted.overlap.effective.iter().zip(&sizes) {
            close(*got, *expected);
        }
        assert_eq!(weighted.overlap.effective.len(), sizes.len());
    }
}

#[test]
fn the_recorded_policy_has_the_recorded_return() {
    let mut episodes = random(23, false, 5);
    episodes.iter_mut().for_each(|episode| episode.log_ratios.fill(0.0));
    let weighted = estimate(&episodes, &QUICK).unwrap();
    assert_eq!(weighted.estimates.len(), 2, "no WDR without values");
    for estimate in &weighted.estimates {
        close(estimate.value, weighted.recorded.mean);
        let Interval { low, high } = estimate.difference.unwrap();
        assert!(low.abs() < ROUNDING && high.abs() < ROUNDING, "{low} {high}");
        let (interval, recorded) =
            (estimate.interval.unwrap(), weighted.recorded.interval.unwrap());
        assert!(interval.low < estimate.value && estimate.value < interval.high);
        close(interval.low, recorded.low);
        close(interval.high, recorded.high);
    }
    assert!(weighted.overlap.effective.iter().all(|&size| (size - 23.0).abs() < ROUNDING));
}

#[test]
fn values_of_0_make_wdr_wpdis_to_the_bit() {
    let mut episodes = random(23, true, 6);
    for episode in &mut episodes {
        let zeros = vec![0.0; episode.rewards.len()];
        episode.values = Some(Values { of_actions: zeros.clone(), of_histories: zeros });
    }
    let estimates = estimate(&episodes, &QUICK).unwrap().estimates;
    let [_, wpdis, wdr] = estimates[..] else { panic!("three estimates") };
    assert_eq!((wdr.value, wdr.interval), (wpdis.value, wpdis.interval));
    assert_eq!(wdr.difference, wpdis.difference);
}

#[test]
fn exact_values_leave_nothing_to_the_weights() {
    // Q(h_t, a_t) = r_t + γ V(h_{t+1}) and one start: the sum telescopes to V(h_0) in any sample.
    let mut episodes = random(23, true, 7);
    for episode in &mut episodes {
        let values = episode.values.as_mut().unwrap();
        values.of_histories[0] = 0.625;
        for (t, reward) in episode.rewards.iter().enumerate() {
            let next = values.of_histories.get(t + 1).copied().unwrap_or(0.0);
            values.of_actions[t] = reward + 0.5 * next;
        }
    }
    let estimates = estimate(&episodes, &QUICK).unwrap().estimates;
    let Interval { low, high } = estimates[2].interval.unwrap();
    close(estimates[2].value, 0.625);
    close(low, 0.625);
    close(high, 0.625);
}

#[test]
fn large_and_small_weights_stay_exact() {
    let episodes = random(23, true, 8);
    let before = estimate(&episodes, &QUICK).unwrap();
    for factor in [2000.0, -2000.0] {
        let mut scaled = episodes.clone();
        scaled.iter_mut().for_each(|episode| episode.log_ratios[0] += factor);
        let after = estimate(&scaled, &QUICK).unwrap();
        for method in [Method::Wpdis, Method::Wdr] {
            // `ln w` near 2000 has steps of 2e-13.
            assert!((value(&after, method) - value(&before, method)).abs() < 1e-11);
        }
        let pdis = after.estimates.iter().find(|estimate| estimate.method == Method::Pdis);
        assert_eq!(pdis.map(|estimate| estimate.value), (factor < 0.0).then_some(0.0));
    }
}

fn logged(rewards: &[f64], log_ratios: &[f64]) -> Logged {
    Logged { rewards: rewards.to_vec(), log_ratios: log_ratios.to_vec(), values: None }
}

#[test]
fn an_ended_episode_keeps_its_weight() {
    // At step 1 the ended episode has all of the weight, however small, and its reward is 0.
    let never = f64::NEG_INFINITY;
    let episodes = [logged(&[1.0], &[-800.0]), logged(&[2.0, 50.0], &[0.0, never])];
    let weighted = estimate(&episodes, &QUICK).unwrap();
    assert_eq!(value(&weighted, Method::Wpdis), 2.0);
    assert_eq!(weighted.overlap.effective, [1.0, 1.0]);
    // With equal weights it takes half: (1 + 2)/2 + ½ · 50/2.
    let equal = [logged(&[1.0], &[0.0]), logged(&[2.0, 50.0], &[0.0, 0.0])];
    close(value(&estimate(&equal, &QUICK).unwrap(), Method::Wpdis), 14.0);
}

#[test]
fn the_horizon_is_where_a_tenth_of_the_episodes_is_left() {
    // 30 episodes of 3 steps; from step 1 on, the policy follows two of them, from step 2 on, one.
    let never = f64::NEG_INFINITY;
    let ratios = |i: usize| match i {
        0 => [0.0, 0.0, 0.0],
        1 => [0.0, 0.0, never],
        _ => [0.0, never, 0.0],
    };
    let episodes: Vec<Logged> = (0..30).map(|i| logged(&[1.0; 3], &ratios(i))).collect();
    let weighted = estimate(&episodes, &QUICK).unwrap();
    assert_eq!(weighted.overlap.effective, [30.0, 2.0, 1.0]);
    assert_eq!(weighted.overlap.horizon, Some(1));
    // 1 + ½ + ¼: all rewards are equal. So it is in every sample with the first episode.
    let wpdis = weighted.estimates[1];
    assert_eq!((wpdis.value, wpdis.interval), (1.75, Some(Interval { low: 1.75, high: 1.75 })));
    // 20 episodes: two are a tenth.
    let twenty = estimate(&episodes[..20], &QUICK).unwrap();
    assert_eq!(twenty.overlap.horizon, Some(2));
}

#[test]
fn intervals_depend_on_the_seed_alone() {
    let episodes = random(23, true, 9);
    let pool = rayon::ThreadPoolBuilder::new().num_threads(1).build().unwrap();
    let alone = pool.install(|| estimate(&episodes, &QUICK).unwrap());
    assert_eq!(estimate(&episodes, &QUICK).unwrap(), alone, "on any number of threads");
    let other = estimate(&episodes, &Settings { seed: 4, ..QUICK }).unwrap();
    assert_ne!(other.estimates[1].interval, alone.estimates[1].interval);
    assert_eq!(other.estimates[1].value, alone.estimates[1].value);
    let one = estimate(&episodes[..1], &QUICK).unwrap();
    assert!(one.estimates.iter().all(|e| e.interval.is_none() && e.difference.is_none()));
    assert_eq!(one.recorded.interval, None);
}

#[test]
fn recordings_without_estimates_are_named() {
    let good = || logged(&[1.0, 2.0], &[0.0, 0.1]);
    let sentence = |episodes: &[Logged]| estimate(episodes, &QUICK).unwrap_err().to_string();
    assert_eq!(
        sentence(&[logged(&[1.0, f64::NAN], &[0.0, 0.0])]),
        "episode 0, step 1: `rewards` is NaN, not a finite number"
    );
    assert_eq!(
        sentence(&[good(), logged(&[1.0, 1.0], &[0.0, f64::INFINITY])]),
        "episode 1, step 1: `log_ratios` is inf, not a finite number"
    );
    let never = [0.0, f64::NEG_INFINITY];
    assert_eq!(
        sentence(&[logged(&[1.0, 1.0], &never), logged(&[1.0, 1.0], &never)]),
        "all weights are 0 from step 1 on: in every episode, the policy would not have taken one of \
         the recorded actions up to this step"
    );
}
