//! Every pair of what is observed and what is done, from columns made by hand; and where each
//! step led.

use std::sync::Arc;

use overtone_core::picture::FRAME;
use overtone_core::{ActionSpace, Episode, ObservationSpace, Outcome, Task};
use overtone_data::{
    ActionColumn, Batch, BatchActions, BatchObservations, BatchOptions, Columns, Dataset,
    DatasetOptions, Loader, LoaderConfig, Lookahead, ObservationColumn, Sampling, Split, Stored,
    StoredObservations, Subset, Transitions,
};

/// Three episodes: of 3 steps to the task's end, of 2 to a step limit, of 2 to the end.
const STEPS: usize = 7;

fn columns(observations: ObservationColumn, actions: ActionColumn) -> Columns {
    let ends =
        [(0, 3, Outcome::Terminated), (3, 2, Outcome::Truncated), (5, 2, Outcome::Terminated)];
    Columns {
        path: "by hand".into(),
        format: "by hand",
        observations,
        actions,
        rewards: vec![1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0],
        behavior_log_probs: None,
        optional: Default::default(),
        episodes: ends.map(|(start, length, outcome)| Episode { start, length, outcome }).into(),
        finished: vec![true; 3],
        mixture: Default::default(),
        odd: Vec::new(),
        stored: Stored::default(),
    }
}

/// Row `r` shows `r` and `-r`.
fn vectors() -> ObservationColumn {
    ObservationColumn::Vectors {
        width: 2,
        values: (0..STEPS).flat_map(|r| [r as f32, -(r as f32)]).collect(),
    }
}

/// All pixels of row `r` are `r + 1`.
fn frames() -> ObservationColumn {
    ObservationColumn::Frames { pixels: (0..STEPS).flat_map(|r| [r as u8 + 1; FRAME]).collect() }
}

fn discrete() -> ActionColumn {
    ActionColumn::Discrete { n_actions: 300, values: vec![0, 1, 299, 0, 2, 1, 5] }
}

fn continuous() -> ActionColumn {
    ActionColumn::Continuous { width: 1, values: (0..STEPS).map(|r| r as f32 / 8.0).collect() }
}

/// The windows of two timesteps that end at each row, in the order of the rows.
fn batch(data: &Dataset, options: &BatchOptions) -> Batch {
    let mut sampler = data.sampler(Subset::Training, 0.0, Sampling::Uniform, 2, 1).unwrap();
    let mut batches = Vec::new();
    for _ in 0..STEPS {
        let mut batch = Batch::default();
        batch.fill(data, &mut sampler, 1, options).unwrap();
        batches.push(batch);
    }
    batches.sort_by_key(|batch| batch.last_indices[0]);
    batches.swap_remove(4)
}

#[test]
fn every_pair_makes_a_dataset_and_batches() {
    let options = DatasetOptions::default();
    let mut hashes = Vec::new();
    for observations in [vectors(), frames()] {
        for actions in [discrete(), continuous()] {
            let columns = columns(observations.clone(), actions.clone());
            let data = Dataset::of(columns, &options).unwrap();
            hashes.push(data.content_hash().to_owned());
            assert_eq!(data.actions(), &actions);
            assert_eq!(data.returns_to_go(), [6.0, 5.0, 3.0, 9.0, 5.0, 13.0, 7.0]);
            data.check_unchanged().unwrap();
            data.verify().unwrap();
            // The window of rows 3 and 4.
            let batch = batch(&data, &BatchOptions::default());
            assert_eq!((batch.n_real[0], &batch.timesteps[..]), (2, &[0, 1][..]));
            assert_eq!(batch.returns_to_go, [9.0, 5.0]);
            assert_eq!(batch.transitions, None);
            match (&actions, &batch.actions) {
                (ActionColumn::Discrete { .. }, BatchActions::Discrete(got)) => {
                    assert_eq!(got, &[0, 2])
                }
                (ActionColumn::Continuous { .. }, BatchActions::Continuous(got)) => {
                    assert_eq!(got, &[3.0 / 8.0, 4.0 / 8.0]);
                }
                (_, other) => panic!("{other:?}"),
            }
            match (data.observations(), &batch.observations) {
                (
                    StoredObservations::Vectors { normalization, .. },
                    BatchObservations::Vectors(got),
                ) => {
                    let mut expected = [3.0, -3.0, 4.0, -4.0];
                    normalization.apply(&mut expected);
                    assert_eq!(got, &expected);
                }
                (
                    StoredObservations::Frames(frames),
                    BatchObservations::Frames { pixels, rows },
                ) => {
                    assert_eq!(frames.rows(), STEPS);
                    // Black before the episode's start.
                    assert_eq!(rows, &[-1, -1, -1, 3, 4]);
                    let expected = [0, 0, 0, 4, 5].map(|pixel| [pixel; FRAME]).concat();
                    assert!(*pixels == expected);
                }
                (_, other) => panic!("{other:?}"),
            }
            let data = Arc::new(data);
            let sampler = data.sampler(Subset::Training, 0.0, Sampling::FromStart, 2, 1).unwrap();
            let mut direct = sampler.clone();
            let mut loader = Loader::new(data.clone(), sampler, LoaderConfig::new(3)).unwrap();
            let mut expected = Batch::default();
            expected.fill(&data, &mut direct, 3, &BatchOptions::default()).unwrap();
            assert_eq!(loader.next().unwrap(), expected);
        }
    }
    hashes.sort();
    hashes.dedup();
    assert_eq!(hashes.len(), 4, "a pair each");
}

#[test]
fn transitions_say_where_each_step_led() {
    let asked = BatchOptions {
        return_scale: 2.0,
        transitions: Some(Lookahead::ONE),
        ..BatchOptions::default()
    };
    let options = DatasetOptions::default();
    let data = Dataset::of(columns(vectors(), discrete()), &options).unwrap();
    let mut sampler = data.sampler(Subset::Training, 0.0, Sampling::Uniform, 3, 4).unwrap();
    let mut batch = Batch::default();
    batch.fill(&data, &mut sampler, STEPS, &asked).unwrap();
    let transitions = batch.transitions.as_ref().unwrap();
    let BatchObservations::Vectors(next) = &transitions.next_observations else { panic!() };
    let BatchActions::Discrete(next_actions) = &transitions.next_actions else { panic!() };
    let ActionColumn::Discrete { values: recorded, .. } = data.actions() else { panic!() };
    for (window, &last) in batch.last_indices.iter().enumerate() {
        for place in 0..3 {
            let cell = window * 3 + place;
            let Transitions { rewards, terminated, next_is_known, .. } = transitions;
            let got = (rewards[cell], terminated[cell], next_is_known[cell]);
            let n_padding = 3 - batch.n_real[window] as usize;
            let seen = &next[cell * 2..][..2];
            if place < n_padding {
                assert_eq!((got, seen), ((0.0, false, false), &[0.0; 2][..]));
                assert_eq!(next_actions[cell], 0);
                continue;
            }
            let row = last as usize + place - 2;
            let ends = [2, 4, 6].contains(&row);
            assert_eq!(got, (data.rewards()[row] / 2.0, [2, 6].contains(&row), !ends), "{row}");
            let mut expected = [row as f32 + 1.0, -(row as f32) - 1.0];
            data.normalization().unwrap().apply(&mut expected);
            assert_eq!(seen, if ends { &[0.0; 2] } else { &expected }, "{row}");
            let done = if ends { 0 } else { i32::from(recorded[row + 1]) };
            assert_eq!(next_actions[cell], done, "{row}");
        }
    }

    let data = Dataset::of(columns(frames(), continuous()), &options).unwrap();
    let mut batch = Batch::default();
    let mut sampler = data.sampler(Subset::Training, 0.0, Sampling::Uniform, 2, 4).unwrap();
    batch.fill(&data, &mut sampler, STEPS, &asked).unwrap();
    let BatchActions::Continuous(done) = &batch.transitions.as_ref().unwrap().next_actions else {
        panic!()
    };
    let ActionColumn::Continuous { width, values } = data.actions() else { panic!() };
    for (window, &last) in batch.last_indices.iter().enumerate() {
        let last = last as usize;
        let expected = match last {
            2 | 4 | 6 => vec![0.0; *width],
            row => values[(row + 1) * width..][..*width].to_vec(),
        };
        assert_eq!(done[(window * 2 + 1) * width..][..*width], expected, "{last}");
    }
    let next = &batch.transitions.as_ref().unwrap().next_observations;
    let BatchObservations::Frames { pixels, rows } = next else { panic!("{next:?}") };
    for (window, &last) in batch.last_indices.iter().enumerate() {
        let shown = &rows[window * 5..][..5];
        let expected = match last {
            0 => [-1, -1, -1, 0, 1],
            1 => [-1, -1, 0, 1, 2],
            // Nothing is known after an episode's last step.
            2 => [-1, 0, 1, 2, -1],
            3 => [-1, -1, -1, 3, 4],
            4 => [-1, -1, 3, 4, -1],
            5 => [-1, -1, -1, 5, 6],
            _ => [-1, -1, 5, 6, -1],
        };
        assert_eq!(shown, expected, "{last}");
        for (frame, &row) in shown.iter().enumerate() {
            let pixels = &pixels[(window * 5 + frame) * FRAME..][..FRAME];
            assert!(pixels.iter().all(|&pixel| i64::from(pixel) == row + 1), "{last} {frame}");
        }
    }
    // Without the request, nothing of it remains.
    batch.fill(&data, &mut sampler, 1, &BatchOptions::default()).unwrap();
    assert_eq!(batch.transitions, None);
}

#[test]
fn statistics_belong_to_a_split() {
    let options = DatasetOptions { held_out: 0.34, seed: 3, ..DatasetOptions::default() };
    let data = Dataset::of(columns(vectors(), discrete()), &options).unwrap();
    assert_eq!(data.split_for(0.34, 3).unwrap(), *data.split());
    let other = (4..).find(|&seed| Split::draw(3, 0.34, seed).unwrap() != *data.split()).unwrap();
    for (share, seed) in [(0.34, other), (0.0, 3)] {
        let refused = data.split_for(share, seed).unwrap_err().to_string();
        assert!(refused.contains("another train.held_out or seed"), "{refused}");
    }
    // Frames have none.
    let data = Dataset::of(columns(frames(), discrete()), &options).unwrap();
    assert_eq!(data.split_for(0.34, other).unwrap(), Split::draw(3, 0.34, other).unwrap());
}

#[test]
fn a_dataset_fits_its_tasks_spaces() {
    let pixels = |shape: &[usize]| ObservationSpace::Pixels { shape: shape.into() };
    let numbers = |width| ObservationSpace::Vectors { width };
    let listed = |n| ActionSpace::Discrete { names: vec!["a".into(); n] };
    let fits = |seen, done, observations: &ObservationSpace, actions: &ActionSpace| {
        let data = Dataset::of(columns(seen, done), &DatasetOptions::default()).unwrap();
        let task = Task::own("this", observations.clone(), actions.clone());
        data.check_spaces(&task).map_err(|error| error.to_string())
    };
    fits(vectors(), discrete(), &numbers(2), &listed(300)).unwrap();
    // The recording may lack some actions.
    fits(vectors(), discrete(), &numbers(2), &listed(301)).unwrap();
    fits(frames(), continuous(), &pixels(&[4, 84, 84]), &ActionSpace::unit(1)).unwrap();
    let error = fits(vectors(), discrete(), &numbers(2), &listed(299)).unwrap_err();
    let said = "have 2 numbers and its actions are one of 300, but in this they have 2 numbers and \
                are one of 299";
    assert!(error.contains(said), "{error}");
    let error = fits(frames(), discrete(), &pixels(&[4, 96, 96]), &listed(300)).unwrap_err();
    assert!(error.contains("are frames of [4, 84, 84] and its actions are one of 300"), "{error}");
    for (observations, actions) in
        [(pixels(&[4, 84, 84]), listed(300)), (numbers(2), ActionSpace::unit(1))]
    {
        fits(vectors(), discrete(), &observations, &actions).unwrap_err();
    }
}

#[test]
fn columns_that_do_not_belong_together_are_refused() {
    let refused = |change: &dyn Fn(&mut Columns), said: &str| {
        let mut columns = columns(vectors(), discrete());
        change(&mut columns);
        let error = Dataset::of(columns, &DatasetOptions::default()).unwrap_err();
        assert!(error.to_string().contains(said), "{error}");
    };
    refused(&|columns| columns.rewards.push(0.0), "expected 8 rows of 2");
    refused(&|columns| columns.rewards[3] = f32::NAN, "`rewards` holds in row 3 NaN");
    refused(&|columns| columns.episodes[1].length = 1, "do not cover its steps");
    refused(&|columns| columns.episodes[1].start = 0, "episode 1 has 2, from step 0 on");
    // Beyond the columns; and an empty episode, with another one that is longer by as much.
    refused(&|columns| columns.episodes[2].start = 900, "where the one before ends at 5");
    refused(
        &|columns| {
            columns.episodes[1].length = 0;
            columns.episodes[2].start = 3;
            columns.episodes[2].length = 4;
        },
        "episode 1 has 0",
    );
    refused(
        &|columns| {
            columns.observations = ObservationColumn::Vectors { width: 0, values: Vec::new() }
        },
        "its observations have no numbers",
    );
    refused(
        &|columns| columns.actions = ActionColumn::Continuous { width: 0, values: Vec::new() },
        "its actions have no numbers",
    );
    refused(&|columns| columns.finished.truncate(2), "of 2 of its 3 episodes");
    refused(
        &|columns| {
            columns.actions = ActionColumn::Discrete { n_actions: 299, values: vec![299; 7] }
        },
        "action 299 of 299",
    );
    refused(
        &|columns| columns.actions = ActionColumn::Continuous { width: 2, values: vec![0.0; 7] },
        "its actions hold 7 numbers, expected 7 rows of 2",
    );
    refused(
        &|columns| {
            columns.observations = ObservationColumn::Frames { pixels: vec![0; 7 * FRAME - 1] };
        },
        "expected 7 rows of 7056",
    );
}
