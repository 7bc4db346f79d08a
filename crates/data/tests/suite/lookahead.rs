//! Transitions that look several steps ahead.

use overtone_core::picture::FRAME;
use overtone_core::{Episode, Outcome};
use overtone_data::{
    ActionColumn, Batch, BatchActions, BatchObservations, BatchOptions, Columns, Dataset,
    DatasetOptions, Lookahead, ObservationColumn, OptionalArrays, Sampling, Stored, Subset,
    Transitions,
};

/// Rows of two episodes: the task ends the first one after row 3, a limit cuts the second one after
/// row 8.
const ROWS: usize = 9;

/// Row `r` shows `r` and has the action `r % 2`; its reward is `10^r`, so that digits tell the rows.
fn data(stops: Option<[usize; 1]>, is_frames: bool) -> Dataset {
    let values = (0..ROWS).map(|r| r as u16 % 2).collect();
    data_with(ActionColumn::Discrete { n_actions: 2, values }, stops, is_frames)
}

fn data_with(actions: ActionColumn, stops: Option<[usize; 1]>, is_frames: bool) -> Dataset {
    let observations = match is_frames {
        true => ObservationColumn::Frames {
            pixels: (0..ROWS).flat_map(|row| [row as u8 + 1; FRAME]).collect(),
        },
        false => {
            ObservationColumn::Vectors { width: 1, values: (0..ROWS).map(|r| r as f32).collect() }
        }
    };
    let columns = Columns {
        path: "by hand".into(),
        format: "by hand",
        observations,
        actions,
        rewards: (0..ROWS).map(|row| 10f32.powi(row as i32)).collect(),
        behavior_log_probs: None,
        optional: OptionalArrays {
            stops: stops.map(|rows| (0..ROWS).map(|row| rows.contains(&row)).collect()),
            ..OptionalArrays::default()
        },
        episodes: vec![
            Episode { start: 0, length: 4, outcome: Outcome::Terminated },
            Episode { start: 4, length: 5, outcome: Outcome::Truncated },
        ],
        finished: vec![true; 2],
        mixture: Default::default(),
        odd: Vec::new(),
        stored: Stored::default(),
    };
    Dataset::of(columns, &DatasetOptions::default()).unwrap()
}

/// The batch of every row, in order, with targets of `n_steps`.
fn batch(data: &Dataset, n_steps: usize, gamma: f64) -> Batch {
    let mut sampler = data.sampler(Subset::Training, 0.0, Sampling::Uniform, 1, 1).unwrap();
    let transitions = Some(Lookahead { n_steps, gamma, chunk_size: 1 });
    let options = BatchOptions { transitions, ..BatchOptions::default() };
    let mut batch = Batch::default();
    batch.fill(data, &mut sampler, ROWS, &options).unwrap();
    batch
}

/// Of each row of the data: rewards, continues, whether the next step is known, and the action there.
fn of_rows(batch: &Batch) -> Vec<(f32, f32, bool, i32)> {
    let transitions = batch.transitions.as_ref().unwrap();
    let Transitions { rewards, next_is_known, next_actions, .. } = transitions;
    let BatchActions::Discrete(actions) = next_actions else { panic!() };
    let continues = transitions.continues();
    let mut rows: Vec<_> = batch
        .last_indices
        .iter()
        .enumerate()
        .map(|(cell, &row)| {
            (row, (rewards[cell], continues[cell], next_is_known[cell], actions[cell]))
        })
        .collect();
    rows.sort_by_key(|(row, _)| *row);
    rows.into_iter().map(|(_, of_row)| of_row).collect()
}

#[test]
fn targets_stop_where_the_recording_does() {
    let data = data(None, false);
    let by_three = of_rows(&batch(&data, 3, 1.0));
    let expected = [
        (111.0, 1.0, true, 1),
        // The task ends within three steps.
        (1110.0, 0.0, false, 0),
        (1100.0, 0.0, false, 0),
        (1000.0, 0.0, false, 0),
        (1.11e6, 1.0, true, 1),
        (1.11e7, 1.0, true, 0),
        // The value of the last observation, row 8, continues what a limit cut.
        (1.1e7, 1.0, true, 0),
        (1e7, 1.0, true, 0),
        // No target.
        (1e8, 1.0, false, 0),
    ];
    assert_eq!(by_three, expected);
    let by_one = of_rows(&batch(&data, 1, 0.5));
    assert_eq!(
        by_one[1..4],
        [(10.0, 1.0, true, 0), (100.0, 1.0, true, 1), (1000.0, 0.0, false, 0)]
    );
}

#[test]
fn later_rewards_are_discounted() {
    let data = data(None, false);
    let halves = of_rows(&batch(&data, 3, 0.5));
    assert_eq!(halves[0], (1.0 + 5.0 + 25.0, 0.25, true, 1));
    // Two steps remain before the limit.
    assert_eq!(halves[6], (1e6 + 0.5 * 1e7, 0.5, true, 0));
    let batch = batch(&data, 3, 0.5);
    let BatchObservations::Vectors(next) = &batch.transitions.as_ref().unwrap().next_observations
    else {
        panic!()
    };
    let normalization = data.normalization().unwrap();
    for (&row, &next) in batch.last_indices.iter().zip(next) {
        let mut expected = [[3.0, 0.0, 0.0, 0.0, 7.0, 8.0, 8.0, 8.0, 0.0][row as usize]];
        if ![1, 2, 3, 8].contains(&row) {
            normalization.apply(&mut expected);
        }
        assert_eq!(next, expected[0], "{row}");
    }
}

#[test]
fn a_mask_stops_a_target_in_the_middle_of_an_episode() {
    let stopped = of_rows(&batch(&data(Some([5]), false), 3, 1.0));
    // Row 5 is the last one of its target; rows after it have theirs.
    assert_eq!(stopped[4], (1.1e5, 0.0, true, 0));
    assert_eq!(stopped[5], (1e5, 0.0, true, 0));
    assert_eq!(stopped[6], (1.1e7, 1.0, true, 0));
}

#[test]
fn a_chunk_has_the_actions_of_all_its_steps() {
    // The last action is repeated; rows 6 and 7 have no target, because a limit cuts their chunks.
    check_chunks([
        ([0, 1, 2], Some([3, 3, 3])),
        ([1, 2, 3], None),
        ([2, 3, 3], None),
        ([3, 3, 3], None),
        ([4, 5, 6], Some([7, 8, 8])),
        ([5, 6, 7], Some([8, 8, 8])),
        ([6, 7, 8], None),
        ([7, 8, 8], None),
        ([8, 8, 8], None),
    ]);
}

/// Targets of three steps: that of row 6 has only the chunk's own.
#[test]
fn a_target_has_more_steps_than_its_chunk() {
    check_chunks([
        ([0, 1], Some([3, 3])),
        ([1, 2], None),
        ([2, 3], None),
        ([3, 3], None),
        ([4, 5], Some([7, 8])),
        ([5, 6], Some([8, 8])),
        ([6, 7], Some([8, 8])),
        ([7, 8], None),
        ([8, 8], None),
    ]);
}

/// Compares the actions of each row, and those after a target of three steps if the recording goes on. Row `r`
/// has the action `(r, r + 0.5)`.
fn check_chunks<const N: usize>(expected: [([u8; N], Option<[u8; N]>); ROWS]) {
    let values = (0..ROWS).flat_map(|r| [r as f32, r as f32 + 0.5]).collect();
    let data = data_with(ActionColumn::Continuous { width: 2, values }, None, false);
    let mut sampler = data.sampler(Subset::Training, 0.0, Sampling::Uniform, 1, 1).unwrap();
    let transitions = Some(Lookahead { n_steps: 3, gamma: 1.0, chunk_size: N });
    let options = BatchOptions { transitions, ..BatchOptions::default() };
    let mut batch = Batch::default();
    batch.fill(&data, &mut sampler, ROWS, &options).unwrap();
    let BatchActions::Continuous(actions) = &batch.actions else { panic!() };
    let transitions = batch.transitions.as_ref().unwrap();
    let BatchActions::Continuous(next) = &transitions.next_actions else { panic!() };
    let chunk = |rows: [u8; N]| rows.map(|row| [f32::from(row), f32::from(row) + 0.5]).concat();
    for (cell, &row) in batch.last_indices.iter().enumerate() {
        let (rows, later) = expected[row as usize];
        assert_eq!(actions[cell * 2 * N..][..2 * N], chunk(rows), "{row}");
        assert_eq!(transitions.next_is_known[cell], later.is_some(), "{row}");
        if let Some(later) = later {
            assert_eq!(next[cell * 2 * N..][..2 * N], chunk(later), "{row}");
        }
        assert_eq!(transitions.terminated[cell], (1..4).contains(&row), "{row}");
    }
}

#[test]
fn frames_look_ahead_one_context_of_one_step_at_a_time() {
    let data = data(None, true);
    let batch = batch(&data, 3, 1.0);
    let BatchObservations::Frames { rows, .. } =
        &batch.transitions.as_ref().unwrap().next_observations
    else {
        panic!()
    };
    for (cell, &row) in batch.last_indices.iter().enumerate() {
        let next = match row {
            0 => [0, 1, 2, 3],
            4 => [4, 5, 6, 7],
            7 => [5, 6, 7, 8],
            _ => continue,
        };
        assert_eq!(rows[cell * 4..][..4], next, "{row}");
    }
    let mut sampler = data.sampler(Subset::Training, 0.0, Sampling::Uniform, 2, 1).unwrap();
    let transitions = Some(Lookahead { n_steps: 3, gamma: 1.0, chunk_size: 1 });
    let options = BatchOptions { transitions, ..BatchOptions::default() };
    let refused = Batch::default().fill(&data, &mut sampler, 2, &options).unwrap_err();
    assert!(refused.to_string().contains("contexts of one step, got contexts of 2"), "{refused}");
}
