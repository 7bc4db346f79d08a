//! Windows, batches and the loader on small synthetic datasets, whose every pixel says which
//! step it belongs to.

use std::{sync::Arc, time::Instant};

use overtone_core::picture::STACK;
use overtone_data::error::Fault;
use overtone_data::{
    ActionColumn, Batch, BatchActions, BatchObservations, BatchOptions, DataError, Dataset, Loader,
    LoaderConfig, Origin, Preparation, ReplayLog, Sampling, Selection, WindowSampler,
};
use proptest::prelude::*;
use tempfile::TempDir;

use crate::frame_of;
use overtone_testkit::dopamine::{FRAME, Recorder};

/// A dataset of episodes of `lengths` steps.
fn dataset(lengths: &[usize], selection: Selection) -> (TempDir, Arc<Dataset>) {
    let dir = tempfile::tempdir().unwrap();
    let capacity: usize = lengths.iter().map(|length| length + 3).sum();
    let mut recorder = Recorder::new(dir.path(), "Pong", capacity + 5);
    for &length in lengths {
        recorder.episode(length);
    }
    recorder.save();
    let log = ReplayLog::open(recorder.game()).unwrap();
    let plan = Preparation::new(log, Origin::other(), selection, 1, dir.path()).unwrap();
    let dataset = plan.ensure(&mut |_, _| {}).unwrap();
    (dir, Arc::new(dataset))
}

fn fill(data: &Dataset, sampler: &mut WindowSampler, n: usize) -> Batch {
    let mut batch = Batch::default();
    batch.fill(data, sampler, n, &BatchOptions::default()).unwrap();
    batch
}

/// The pixels of a batch, and the rows they are of.
fn frames(batch: &Batch) -> (&[u8], &[i64]) {
    match &batch.observations {
        BatchObservations::Frames { pixels, rows } => (pixels, rows),
        other => panic!("{other:?}"),
    }
}

fn actions(batch: &Batch) -> &[i32] {
    match &batch.actions {
        BatchActions::Discrete(actions) => actions,
        other => panic!("{other:?}"),
    }
}

fn logged(data: &Dataset) -> &[u16] {
    match data.actions() {
        ActionColumn::Discrete { values, .. } => values,
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_batch_shows_the_steps_of_its_windows() {
    let (lengths, context, n) = ([4, 7, 2], 5, 13);
    let (_dir, data) = dataset(&lengths, Selection::uniform(1000));
    assert_eq!(data.n_transitions(), 13);
    let mut sampler =
        WindowSampler::new(data.index().clone(), Sampling::Uniform, context, 3).unwrap();
    let batch = fill(&data, &mut sampler, n);
    assert_eq!((batch.batch, batch.context_length, batch.drawn), (n, context, 13));
    let (batch_pixels, frame_rows) = frames(&batch);
    assert_eq!(batch_pixels.len(), n * (context + 3) * FRAME);
    let mut lasts = batch.last_indices.clone();
    lasts.sort_unstable();
    assert!(lasts.into_iter().eq(0..13), "each timestep is last once");
    for row in 0..n {
        let last = batch.last_indices[row] as usize;
        let start = data.index().episode_start(last);
        let n_real = (last - start + 1).min(context);
        assert_eq!(batch.n_real[row] as usize, n_real);
        for place in 0..context {
            let cell = row * context + place;
            // The step at this place, where there is one.
            let step = (last + 1 + place).checked_sub(context).filter(|&step| step >= start);
            let Some(step) = step else {
                assert_eq!((actions(&batch)[cell], batch.timesteps[cell]), (0, 0));
                assert_eq!(batch.returns_to_go[cell], 0.0);
                continue;
            };
            assert_eq!(actions(&batch)[cell], i32::from(logged(&data)[step]));
            assert_eq!(batch.timesteps[cell] as usize, step - start);
            let end = data.index().episode_end(step);
            assert_eq!(batch.returns_to_go[cell], data.rewards()[step..end].iter().sum::<f32>());
            for back in 0..STACK {
                let frame = row * (context + 3) + place + 3 - back;
                let pixels = &batch_pixels[frame * FRAME..][..FRAME];
                // Black before the episode's start.
                let from = step.checked_sub(back).filter(|&from| from >= start);
                let expected = from.map_or(0, |from| frame_of(&data, from)[0]);
                assert!(pixels.iter().all(|&pixel| pixel == expected), "{row} {place} {back}");
                assert_eq!(frame_rows[frame], from.map_or(-1, |from| from as i64));
            }
        }
    }
}

#[test]
fn memory_of_another_batch_leaves_no_trace() {
    let (_dir, data) = dataset(&[6, 9], Selection::uniform(1000));
    let sampler =
        |seed| WindowSampler::new(data.index().clone(), Sampling::Uniform, 4, seed).unwrap();
    let mut used = fill(&data, &mut sampler(1), 11);
    if let BatchObservations::Frames { pixels, .. } = &mut used.observations {
        pixels.fill(99);
    }
    used.fill(&data, &mut sampler(2), 7, &BatchOptions::default()).unwrap();
    assert_eq!(used, fill(&data, &mut sampler(2), 7));
    let without = BatchOptions { frames: false, ..BatchOptions::default() };
    used.fill(&data, &mut sampler(2), 7, &without).unwrap();
    assert!(frames(&used).0.is_empty());
    assert_eq!(frames(&used).1, frames(&fill(&data, &mut sampler(2), 7)).1);
}

#[test]
fn released_windows_end_where_the_reference_ends_them() {
    // Rows with padding: episodes of 13, 5 and 15 rows; three of them padding each.
    let released =
        Selection::Released { num_steps: 30, num_buffers: 1, trajectories_per_buffer: 2 };
    let (_dir, data) = dataset(&[10, 2, 12], released);
    assert_eq!(data.n_transitions(), 33);
    assert_eq!(data.counts().padding_rows, 9);
    let context = 6;
    let sampler = WindowSampler::new(data.index().clone(), Sampling::Released, context, 1).unwrap();
    assert_eq!(sampler.epoch_len(), 33 - 18);
    let ends = [13, 18, 33];
    for idx in 0..sampler.epoch_len() {
        let first_end = *ends.iter().find(|&&end| end > idx).unwrap();
        let end = first_end.min(idx + context);
        assert_eq!(sampler.window_at(idx).range(), end - context..end, "{idx}");
    }
    // Position 13 lies in the second episode, shorter than the context: its window begins in
    // the first, and shows its last row.
    let mut sampler = sampler;
    let batch = fill(&data, &mut sampler, 15);
    let row = batch.last_indices.iter().position(|&last| last == 17).unwrap();
    let rows: Vec<i64> = (9..18).collect();
    assert_eq!(frames(&batch).1[row * 9..(row + 1) * 9], rows);
    assert_eq!(batch.timesteps[row * 6..(row + 1) * 6], [12, 0, 1, 2, 3, 4]);
    assert!(batch.n_real.iter().all(|&n_real| n_real == 6));
}

#[test]
fn impossible_samplers_are_refused() {
    let (_dir, data) = dataset(&[3, 9], Selection::uniform(1000));
    let refused = |sampling, context| {
        let sampler = WindowSampler::new(data.index().clone(), sampling, context, 1);
        matches!(sampler, Err(DataError::Sampling { .. }))
    };
    assert!(refused(Sampling::Uniform, 0));
    assert!(refused(Sampling::Released, 4)); // 12 rows - 3·4.
    assert!(!refused(Sampling::Released, 3));
    let sampler = WindowSampler::new(data.index().clone(), Sampling::Uniform, 2, 1).unwrap();
    assert!(Loader::new(data, sampler, LoaderConfig::new(0)).is_err());
}

#[test]
fn the_loader_gives_the_samplers_batches_and_ends_when_dropped() {
    let (_dir, data) = dataset(&[6, 9, 4], Selection::uniform(1000));
    let sampler = WindowSampler::new(data.index().clone(), Sampling::Uniform, 4, 5).unwrap();
    let mut direct = sampler.clone();
    let config = LoaderConfig { ahead: 2, threads: 2, ..LoaderConfig::new(3) };
    let started = Instant::now();
    let mut loader = Loader::new(data.clone(), sampler.clone(), config.clone()).unwrap();
    for n in 1..40 {
        let batch = loader.next().unwrap();
        assert_eq!(batch, fill(&data, &mut direct, 3));
        assert_eq!(batch.drawn, 3 * n);
        if n % 2 == 0 {
            loader.recycle(batch);
        }
    }
    let waited = loader.waited();
    assert!(waited > 0.0 && waited <= started.elapsed().as_secs_f64(), "{waited}");
    drop(loader); // Joins the thread, which is waiting for room.
    // Resumed from a cursor, it gives the same batches.
    let mut resumed = sampler;
    resumed.seek(3 * 39);
    let mut loader = Loader::new(data.clone(), resumed, config).unwrap();
    assert_eq!(loader.next().unwrap(), fill(&data, &mut direct, 3));
}

#[test]
fn a_store_that_shrinks_is_an_error() {
    let (_dir, data) = dataset(&[6, 9], Selection::uniform(1000));
    let sampler = WindowSampler::new(data.index().clone(), Sampling::Uniform, 4, 5).unwrap();
    let file = std::fs::OpenOptions::new().write(true).open(data.path()).unwrap();
    file.set_len(2000).unwrap();
    let mut loader = Loader::new(data, sampler, LoaderConfig::new(3)).unwrap();
    let error = loader.next().unwrap_err();
    assert!(matches!(error, DataError::At { fault: Fault::Store { .. }, .. }), "{error}");
    assert!(error.to_string().contains("cut short while it was in use"), "{error}");
    assert!(matches!(loader.next(), Err(DataError::Loader { .. })));
}

/// Bytes written into an open store, and a file that replaces it.
#[test]
fn a_store_that_changes_is_found() {
    let (_dir, data) = dataset(&[6, 9], Selection::uniform(1000));
    let whole = std::fs::read(data.path()).unwrap();
    let write = |bytes: &[u8]| {
        // Times have steps of some milliseconds.
        std::thread::sleep(std::time::Duration::from_millis(20));
        std::fs::write(data.path(), bytes).unwrap();
    };
    data.check_unchanged().unwrap();
    data.check_untouched().unwrap();
    write(&whole);
    data.check_unchanged().unwrap(); // Written, and the same.
    let mut flipped = whole.clone();
    *flipped.last_mut().unwrap() ^= 1;
    write(&flipped);
    let error = data.check_unchanged().unwrap_err().to_string();
    assert!(
        error.contains("frames.safetensors") && error.contains("another program changed"),
        "{error}"
    );
    let reopened = Dataset::open_store(data.path()).unwrap();
    reopened.check_unchanged().unwrap(); // Since it was opened, that is.
    let error = reopened.check_untouched().unwrap_err().to_string();
    assert!(error.contains("its rows are not those"), "{error}");
    write(&whole);
    Dataset::open_store(data.path()).unwrap().check_untouched().unwrap();
    // A file put in its place is another: this one is still open as it was.
    let beside = data.path().with_file_name("other");
    std::fs::write(&beside, b"another").unwrap();
    std::fs::rename(&beside, data.path()).unwrap();
    data.check_unchanged().unwrap();
    assert_eq!(frame_of(&data, 14), whole[whole.len() - FRAME..]);
}

#[test]
fn windows_of_some_episodes_show_no_other() {
    let released =
        Selection::Released { num_steps: 40, num_buffers: 1, trajectories_per_buffer: 2 };
    let lengths = [10, 4, 12, 3, 9];
    for (sampling, selection) in [
        (Sampling::Uniform, Selection::uniform(1000)),
        (Sampling::FromStart, Selection::uniform(1000)),
        (Sampling::Released, released),
    ] {
        let (_dir, data) = dataset(&lengths, selection);
        let all = WindowSampler::new(data.index().clone(), sampling, 4, 7).unwrap();
        let episodes = data.episodes().as_slice();
        let every: Vec<usize> = (0..episodes.len()).collect();
        let halves: [Vec<usize>; 2] =
            [0, 1].map(|odd| every.iter().copied().filter(|episode| episode % 2 == odd).collect());
        let mut drawn = [Vec::new(), Vec::new()];
        for (chosen, drawn) in halves.iter().zip(&mut drawn) {
            let mut some = all.clone().among(chosen).unwrap();
            for _ in 0..some.epoch_len() * 2 {
                let window = some.draw();
                let shown = |row: usize| {
                    chosen.iter().any(|&episode| episodes[episode].range().contains(&row))
                };
                let before = if sampling == Sampling::Released { 3 } else { 0 };
                let mut rows = window.first.saturating_sub(before)..window.range().end;
                assert!(rows.all(shown), "{sampling:?} {window:?}");
                drawn.push(window.range().end - 1);
            }
            // The state is the number of draws, as ever.
            let mut other = all.clone().among(chosen).unwrap();
            other.seek(3);
            assert_eq!(other.draw().range().end - 1, drawn[3]);
        }
        let [one, other] = drawn;
        assert!(!one.iter().any(|row| other.contains(row)), "{sampling:?}");
        if sampling == Sampling::Uniform {
            let n: usize = lengths.iter().sum();
            assert_eq!(one.len() + other.len(), 2 * n);
        }
        // All of them are the sampler there was.
        let mut whole = all.clone().among(&every).unwrap();
        let mut all = all.clone();
        assert!((0..40).all(|_| whole.draw() == all.draw()), "{sampling:?}");
        assert!(matches!(all.among(&[]), Err(DataError::Sampling { .. })));
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(12))]
    #[test]
    fn an_epoch_covers_every_timestep_once_and_any_cursor_can_be_sought(
        lengths in prop::collection::vec(1usize..12, 1..5),
        context in 1usize..9, seed in any::<u64>(), skip in 0u64..60,
    ) {
        let (_dir, data) = dataset(&lengths, Selection::uniform(1000));
        let n = data.n_transitions();
        prop_assert_eq!(n, lengths.iter().sum::<usize>());
        let mut sampler = WindowSampler::new(data.index().clone(), Sampling::Uniform, context, seed).unwrap();
        let windows: Vec<_> = (0..3 * n).map(|_| sampler.draw()).collect();
        for epoch in windows.chunks(n) {
            let mut lasts: Vec<_> = epoch.iter().map(|window| window.range().end - 1).collect();
            lasts.sort_unstable();
            prop_assert!(lasts.into_iter().eq(0..n));
        }
        for window in &windows {
            let episode = data.episodes().containing(window.first).unwrap();
            prop_assert!(window.range().end <= episode.end());
            prop_assert!(window.n_real == context || window.first == episode.start);
        }
        let skip = skip % (3 * n as u64);
        sampler.seek(skip);
        prop_assert_eq!(sampler.draw(), windows[skip as usize]);
        prop_assert_eq!(sampler.drawn(), skip + 1);
    }
}
