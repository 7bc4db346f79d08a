//! Several recordings as one.

use overtone_core::{Episode, Outcome};
use overtone_data::{
    ActionColumn, Columns, Dataset, DatasetOptions, ObservationColumn, Sampling,
    StoredObservations, Subset,
};

/// Episodes of these lengths; every number of row `r` is `first + r`, its reward as well.
fn recording(name: &str, lengths: &[usize], first: f32) -> Columns {
    let rows: usize = lengths.iter().sum();
    let numbers = || (0..rows).map(|row| first + row as f32).collect();
    let mut start = 0;
    let episodes = lengths.iter().map(|&length| {
        start += length;
        Episode { start: start - length, length, outcome: Outcome::Terminated }
    });
    let columns = Columns::new(
        ObservationColumn::Vectors { width: 1, values: numbers() },
        ActionColumn::Discrete { n_actions: 2, values: vec![1; rows] },
        numbers(),
        episodes.collect(),
    );
    Columns { path: name.into(), ..columns }
}

fn both() -> [Columns; 2] {
    [recording("low", &[3, 4], 0.0), recording("high", &[2, 2, 6], 100.0)]
}

fn values(data: &Dataset) -> &[f32] {
    let StoredObservations::Vectors { values, .. } = data.observations() else { panic!("vectors") };
    values
}

/// The first numbers of 20,000 windows of one timestep.
fn drawn(data: &Dataset) -> Vec<f32> {
    let mut sampler = data.sampler(Subset::Training, 0.0, Sampling::Uniform, 1, 7).unwrap();
    (0..20_000).map(|_| values(data)[sampler.draw().range().start]).collect()
}

fn mixed(parts: Vec<Columns>, shares: &[f32], options: &DatasetOptions) -> Dataset {
    Dataset::of(Columns::concat(parts, shares).unwrap(), options).unwrap()
}

#[test]
fn the_order_has_no_effect() {
    let [low, high] = both();
    let options = DatasetOptions::default();
    let one = mixed(vec![low.clone(), high.clone()], &[3.0, 1.0], &options);
    let other = mixed(vec![high, low], &[1.0, 3.0], &options);
    assert_eq!(one.content_hash(), other.content_hash());
    assert_eq!(drawn(&one), drawn(&other));
    let of_low = drawn(&one).iter().filter(|number| **number < 100.0).count();
    // 15,000 are expected, with a standard deviation of 61.
    assert!((14_750..15_250).contains(&of_low), "{of_low}");
}

#[test]
fn without_shares_every_window_is_drawn_once_an_epoch() {
    let [low, high] = both();
    let data = mixed(vec![low, high], &[], &DatasetOptions::default());
    let mut epoch = drawn(&data)[..17].to_vec();
    epoch.sort_by(f32::total_cmp);
    let mut all = values(&data).to_vec();
    all.sort_by(f32::total_cmp);
    assert_eq!(epoch, all);
}

/// Returns, top percents and statistics of all recordings together.
#[test]
fn a_mixture_is_one_dataset() {
    let [low, high] = both();
    let parts = || vec![low.clone(), high.clone()];
    let all = mixed(parts(), &[], &DatasetOptions::default());
    let returns: Vec<f32> = all.episode_returns().iter().collect();
    assert_eq!(returns, [3.0, 18.0, 201.0, 205.0, 639.0]);
    let mean = (0..7).chain(100..110).sum::<i32>() as f32 / 17.0;
    assert!((all.normalization().unwrap().mean[0] - mean).abs() < 1e-4);
    // The best episodes are all of one recording.
    let best = DatasetOptions { top_percent: 60.0, ..DatasetOptions::default() };
    let best = mixed(parts(), &[], &best);
    assert!(best.n_transitions() == 10 && values(&best).iter().all(|number| *number >= 100.0));
    // The same recording twice is like once.
    let twice = mixed(vec![low.clone(), low.clone()], &[], &DatasetOptions::default());
    let once = Dataset::of(low, &DatasetOptions::default()).unwrap();
    let mean = |data: &Dataset| data.normalization().unwrap().mean.clone();
    assert_eq!((mean(&twice), twice.n_transitions()), (mean(&once), 14));
}

#[test]
fn a_part_that_adds_nothing_or_removes_something_is_named() {
    let [low, high] = both();
    let odd = |parts: Vec<Columns>| mixed(parts, &[], &DatasetOptions::default()).odd().to_vec();
    assert_eq!(odd(vec![low.clone(), high.clone()]), [""; 0]);
    let copy = Columns { path: "copy".into(), ..low.clone() };
    assert_eq!(
        odd(vec![low.clone(), copy]),
        ["low and copy hold the same steps, which count twice: leave one out"]
    );
    let open = Columns { finished: vec![false; 3], ..high.clone() };
    assert_eq!(
        odd(vec![low.clone(), open]),
        ["high gives no step: none of its episodes is finished; leave it out, or use \
             data.fragment=keep"]
    );
    let known = Columns { behavior_log_probs: Some(vec![0.0; 7]), ..low };
    let expected = "high has no behavior_log_probs, so those of the other recordings are not used";
    assert_eq!(odd(vec![known, high]), [expected]);
}

#[test]
fn what_does_not_fit_is_refused_by_name() {
    let [low, high] = both();
    let wide = Columns {
        observations: ObservationColumn::Vectors { width: 2, values: vec![0.0; 20] },
        ..high.clone()
    };
    let continuous = Columns {
        actions: ActionColumn::Continuous { width: 1, values: vec![0.0; 10] },
        ..high.clone()
    };
    for other in [wide, continuous] {
        let error = Columns::concat(vec![low.clone(), other], &[]).unwrap_err().to_string();
        assert!(error.contains("low") && error.contains("high"), "{error}");
    }
    // A share of a recording of which nothing is left.
    let best = DatasetOptions { top_percent: 60.0, ..DatasetOptions::default() };
    let data = mixed(vec![low, high], &[1.0, 1.0], &best);
    let refused = data.sampler(Subset::Training, 0.0, Sampling::Uniform, 1, 7).unwrap_err();
    assert!(refused.to_string().contains("no context left"), "{refused}");
}
