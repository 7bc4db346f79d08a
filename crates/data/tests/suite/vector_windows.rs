//! Datasets of vectors, windows of them, batches and the loader.

use std::sync::Arc;

use overtone_core::{Episode, Episodes, Normalization, Outcome};
use overtone_data::error::Fault;
use overtone_data::{
    ActionColumn, Batch, BatchActions, BatchObservations, BatchOptions, DataError, Dataset,
    DatasetOptions, EpisodeIndex, Fragment, Loader, LoaderConfig, Sampling, Share,
    StoredObservations, WindowSampler,
};
use overtone_testkit::Hdf5File;
use overtone_testkit::hdf5_file::reals;
use proptest::prelude::*;

use crate::robots::{action, d4rl, minari, observation, reward};

fn dataset(steps: &str, options: &DatasetOptions) -> Arc<Dataset> {
    let (_dir, path) = d4rl(steps);
    Arc::new(Dataset::open(&path, options).unwrap())
}

fn observed(data: &Dataset) -> &[f32] {
    match data.observations() {
        StoredObservations::Vectors { values, .. } => values,
        other => panic!("{other:?}"),
    }
}

fn acted(data: &Dataset) -> &[f32] {
    match data.actions() {
        ActionColumn::Continuous { values, .. } => values,
        other => panic!("{other:?}"),
    }
}

/// Numbers of an observation and of an action.
fn widths(data: &Dataset) -> (usize, usize) {
    match data.observations() {
        StoredObservations::Vectors { width, .. } => (*width, data.actions().size()),
        other => panic!("{other:?}"),
    }
}

/// Batches with returns divided by `return_scale`.
fn by(return_scale: f32) -> BatchOptions {
    BatchOptions { return_scale, ..BatchOptions::default() }
}

fn scaled(config: LoaderConfig, return_scale: f32) -> LoaderConfig {
    LoaderConfig { contents: by(return_scale), ..config }
}

fn keeping() -> DatasetOptions {
    DatasetOptions { fragment: Fragment::Keep, ..Default::default() }
}

fn index(lengths: &[usize]) -> Arc<EpisodeIndex> {
    let mut start = 0;
    let episodes = lengths.iter().map(|&length| {
        start += length;
        Episode { start: start - length, length, outcome: Outcome::Terminated }
    });
    Arc::new(EpisodeIndex::new(Episodes::new(episodes.collect()).unwrap()).unwrap())
}

#[test]
fn a_dataset_holds_finished_episodes() {
    let data = dataset("..t.l..", &DatasetOptions::default());
    assert_eq!((data.n_transitions(), widths(&data)), (5, (3, 2)));
    assert_eq!(observed(&data), (0..5).flat_map(observation).collect::<Vec<_>>());
    assert_eq!(acted(&data), (0..5).flat_map(action).collect::<Vec<_>>());
    // Rewards are -1, -0.75, -0.5 | -0.25, 0.
    assert_eq!(data.rewards(), [-1.0, -0.75, -0.5, -0.25, 0.0]);
    assert_eq!(data.returns_to_go(), [-2.25, -1.25, -0.5, -0.25, 0.0]);
    assert_eq!(data.episode_returns().iter().collect::<Vec<_>>(), [-2.25, -0.25]);
    let counts = data.counts();
    assert_eq!((counts.rows, counts.episodes), (5, 2));
    assert_eq!((counts.fragment_rows, counts.filtered_rows), (2, 0));
    assert_eq!(data.normalization(), Some(&Normalization::of(observed(&data), 3)));

    let whole = dataset("..t.l..", &keeping());
    assert_eq!((whole.n_transitions(), whole.episodes().as_slice().len()), (7, 3));
    assert_eq!(whole.episode_returns().iter().collect::<Vec<_>>(), [-2.25, -0.25]);
    assert_eq!(whole.counts().fragment_rows, 0);
    assert_ne!(whole.normalization(), data.normalization());

    let (_dir, path) = d4rl("...");
    let refused = Dataset::open(&path, &DatasetOptions::default()).unwrap_err();
    assert!(
        matches!(refused, DataError::At { fault: Fault::NothingSelected { .. }, .. }),
        "{refused}"
    );
    assert!(Dataset::open(&path, &keeping()).is_ok());
    let (_dir, path) = d4rl("");
    let refused = Dataset::open(&path, &keeping()).unwrap_err().to_string();
    assert!(refused.contains("holds no step"), "{refused}");
}

#[test]
fn a_minari_dataset_leaves_out_unfinished_episodes_in_the_middle() {
    let (_dir, path) = minari(".t .. .l");
    let data = Dataset::open(&path, &DatasetOptions::default()).unwrap();
    assert_eq!((data.n_transitions(), data.counts().fragment_rows), (4, 2));
    let rows = [0, 1, 4, 5];
    assert_eq!(observed(&data), rows.into_iter().flat_map(observation).collect::<Vec<_>>());
    assert_eq!(acted(&data), rows.into_iter().flat_map(action).collect::<Vec<_>>());
    assert_eq!(data.rewards(), rows.map(reward));
    let starts: Vec<_> = data.episodes().as_slice().iter().map(|episode| episode.start).collect();
    assert_eq!(starts, [0, 2]);
}

#[test]
fn the_best_episodes_alone() {
    // Returns: rows 0 to 2: -2.25, 3 and 4: -0.25, 5 to 8: 0.25 + 0.5 + 0.75 + 1 = 2.5.
    let best =
        |top_percent| dataset("..t.l...t.", &DatasetOptions { top_percent, ..Default::default() });
    let all = best(100.0);
    assert_eq!((all.n_transitions(), all.counts().filtered_rows), (9, 0));
    // 45 % of 9 steps are 4, and the best episode has 4.
    let one = best(45.0);
    assert_eq!((one.n_transitions(), one.counts().filtered_rows), (4, 5));
    assert_eq!(one.counts().fragment_rows, 1);
    assert_eq!(one.episode_returns().iter().collect::<Vec<_>>(), [2.5]);
    assert_eq!(observed(&one), (5..9).flat_map(observation).collect::<Vec<_>>());
    // Statistics are over all finished episodes.
    assert_eq!(one.normalization(), all.normalization());
    assert_eq!(best(10.0).n_transitions(), 4);
    assert_eq!(best(67.0).episode_returns().iter().collect::<Vec<_>>(), [-0.25, 2.5]);
    for wrong in [0.0, -1.0, 100.1, f64::NAN] {
        let options = DatasetOptions { top_percent: wrong, ..Default::default() };
        let (_dir, path) = d4rl("..t");
        let refused = Dataset::open(&path, &options);
        assert!(matches!(refused, Err(DataError::Sampling { .. })), "{wrong}");
    }
}

#[test]
fn statistics_are_of_the_training_data() {
    let options = |held_out, seed| DatasetOptions { held_out, seed, ..DatasetOptions::default() };
    let steps = "..t.l...t.....t.t";
    let (all, held) = (dataset(steps, &options(0.0, 5)), dataset(steps, &options(0.4, 5)));
    assert_eq!(all.split().training, [0, 1, 2, 3, 4]);
    assert_eq!((held.split().training.len(), held.split().held_out.len()), (3, 2));
    let trained: Vec<f32> = held
        .split()
        .training
        .iter()
        .flat_map(|&episode| held.episodes().as_slice()[episode].range())
        .flat_map(observation)
        .collect();
    assert_eq!(held.normalization(), Some(&Normalization::of(&trained, 3)));
    assert_ne!(held.normalization(), all.normalization());
    // All the data is there, and it is the same data.
    assert_eq!(observed(&held), observed(&all));
    assert_eq!(held.content_hash(), all.content_hash());
    // Only some of the best episodes are held out. The rest of the file is in the statistics.
    let best = DatasetOptions { top_percent: 70.0, ..options(0.34, 5) };
    let best = dataset(steps, &best);
    let kept = best.episodes().as_slice().len();
    assert_eq!(best.split().training.len() + best.split().held_out.len(), kept);
    assert!(kept < 5 && !best.split().held_out.is_empty(), "{:?}", best.split());
    let (_dir, path) = d4rl(steps);
    for share in [0.05, 0.95] {
        let refused = Dataset::open(&path, &options(share, 5));
        assert!(matches!(refused, Err(DataError::Sampling { .. })), "{share}");
    }
}

#[test]
fn delayed_rewards_come_last() {
    let options = DatasetOptions { delayed_reward: true, ..Default::default() };
    let data = dataset("..t.l..", &options);
    assert_eq!(data.rewards(), [0.0, 0.0, -2.25, 0.0, -0.25]);
    assert_eq!(data.returns_to_go(), [-2.25, -2.25, -2.25, -0.25, -0.25]);
    assert_eq!(data.episode_returns().iter().collect::<Vec<_>>(), [-2.25, -0.25]);
    // Nothing comes after the only reward, so its step is not left out.
    let ends = data.episodes().as_slice().iter().map(|episode| episode.outcome);
    assert!(ends.eq([Outcome::Terminated; 2]));
}

#[test]
fn values_need_a_step_with_a_target() {
    let check = |steps| dataset(steps, &DatasetOptions::default()).check_targets();
    for steps in ["t", "l.l", "lt", ".l"] {
        check(steps).unwrap();
    }
    assert!(check("lll").is_err());
}

#[test]
fn the_content_hash_is_of_all_that_training_sees() {
    let plain = DatasetOptions::default();
    let hash =
        |steps: &str, options: &DatasetOptions| dataset(steps, options).content_hash().to_owned();
    let one = hash("..t.l", &plain);
    assert_eq!(one, hash("..t.l", &plain));
    // Data outside the training set makes no difference.
    assert_eq!(one, hash("..t.l..", &plain));
    let others = [
        hash("..t.l..", &keeping()),
        hash("..t.t", &plain),
        hash(".t..l", &plain),
        hash("..t.l", &DatasetOptions { delayed_reward: true, ..plain.clone() }),
        hash("..t.l", &DatasetOptions { top_percent: 50.0, ..plain.clone() }),
    ];
    assert!(others.iter().all(|other| *other != one), "{others:?}");
    for name in ["observations", "actions", "rewards"] {
        let (_dir, path) = d4rl("..t.l");
        let (shape, mut values) = reals(&path, name);
        *values.last_mut().unwrap() += 0.25;
        Hdf5File::edit(&path).put_shaped(name, &values, &shape);
        let other = Dataset::open(&path, &plain).unwrap();
        assert_ne!(other.content_hash(), one, "{name}");
    }
    // A Minari file of the same steps is the same training data.
    let (_dir, path) = minari("..t .l");
    assert_eq!(Dataset::open(&path, &plain).unwrap().content_hash(), one);
}

/// Compares every number of a batch with the dataset's, one at a time.
fn check_batch(data: &Dataset, batch: &Batch, return_scale: f32) {
    let (context, (wide, acts)) = (batch.context_length, widths(data));
    let normalization = data.normalization().unwrap();
    let (BatchObservations::Vectors(observations), BatchActions::Continuous(actions)) =
        (&batch.observations, &batch.actions)
    else {
        panic!("{batch:?}");
    };
    assert_eq!(observations.len(), batch.batch * context * wide);
    assert_eq!(actions.len(), batch.batch * context * acts);
    for row in 0..batch.batch {
        let n_real = batch.n_real[row] as usize;
        assert!((1..=context).contains(&n_real));
        for place in 0..context {
            let cell = row * context + place;
            let seen = &observations[cell * wide..][..wide];
            let done = &actions[cell * acts..][..acts];
            if place < context - n_real {
                assert!(seen.iter().chain(done).all(|&x| x == 0.0));
                assert_eq!((batch.returns_to_go[cell], batch.timesteps[cell]), (0.0, 0));
                continue;
            }
            let step = batch.last_indices[row] as usize + 1 + place - context;
            for (i, &got) in seen.iter().enumerate() {
                let raw = observed(data)[step * wide + i];
                assert_eq!(got, (raw - normalization.mean[i]) / (normalization.std[i] + 1e-6));
            }
            assert_eq!(done, &acted(data)[step * acts..][..acts]);
            assert_eq!(batch.returns_to_go[cell], data.returns_to_go()[step] / return_scale);
            let episode = data.episodes().containing(step).unwrap();
            assert_eq!(batch.timesteps[cell] as usize, step - episode.start);
        }
    }
}

#[test]
fn batches_show_the_steps_of_their_windows() {
    let data = dataset("...t......l.t", &DatasetOptions::default());
    for (sampling, context) in
        [(Sampling::Uniform, 5), (Sampling::FromStart, 5), (Sampling::FromStart, 1)]
    {
        let mut sampler = WindowSampler::new(data.index().clone(), sampling, context, 3).unwrap();
        let mut batch = Batch::default();
        batch.fill(&data, &mut sampler, 26, &by(4.0)).unwrap();
        assert_eq!((batch.batch, batch.context_length, batch.drawn), (26, context, 26));
        check_batch(&data, &batch, 4.0);
        // The memory of another batch leaves no trace.
        let mut fresh = Batch::default();
        batch.fill(&data, &mut sampler, 7, &by(0.5)).unwrap();
        sampler.seek(26);
        fresh.fill(&data, &mut sampler, 7, &by(0.5)).unwrap();
        assert_eq!(batch, fresh);
        check_batch(&data, &batch, 0.5);
    }
    let mut sampler = WindowSampler::new(data.index().clone(), Sampling::Uniform, 2, 3).unwrap();
    for scale in [0.0, -1.0, f32::NAN, f32::INFINITY] {
        let refused = Batch::default().fill(&data, &mut sampler, 2, &by(scale));
        assert!(matches!(refused, Err(DataError::Sampling { .. })), "{scale}");
    }
    assert_eq!(sampler.drawn(), 0);
}

/// Episodes of 3, 7 and 2 steps; the last one is unfinished. A return is at least the number of
/// steps.
#[test]
fn half_of_the_windows_are_of_the_best_episodes_on_request() {
    let options = DatasetOptions { fragment: Fragment::Keep, ..DatasetOptions::default() };
    let data = dataset("..t......t..", &options);
    let earned = data.episodes().as_slice().iter().map(|e| data.returns_to_go()[e.start]);
    let earned: Vec<f32> = earned.collect();
    let better = usize::from(earned[1] > earned[0]);
    let plain = || WindowSampler::new(data.index().clone(), Sampling::Uniform, 3, 5).unwrap();
    let episode = |last: u64| {
        data.episodes()
            .as_slice()
            .iter()
            .position(|e| e.range().contains(&(last as usize)))
            .unwrap()
    };

    let mut sampler = data.with_top_percents(plain(), &[1.0, 100.0], 5);
    let mut batch = Batch::default();
    batch.fill(&data, &mut sampler, 600, &by(1.0)).unwrap();
    check_batch(&data, &batch, 1.0);
    let drawn = |share: Option<u8>| -> Vec<usize> {
        let told = batch.top_percent_idx.iter().zip(&batch.last_indices);
        told.filter(|(best, _)| **best == share).map(|(_, &last)| episode(last)).collect()
    };
    assert!((240..360).contains(&drawn(None).len()), "half of 600, ± 12");
    assert!((100..200).contains(&drawn(Some(0)).len()), "a quarter, ± 11");
    assert!(drawn(Some(0)).iter().all(|&episode| episode == better), "the best episode alone");
    for of_all in [drawn(None), drawn(Some(1))] {
        assert!((0..3).all(|episode| of_all.contains(&episode)), "all episodes");
    }
    // A cursor says what comes next, and other batches leave no trace.
    let mut again = Batch::default();
    sampler.seek(300);
    again.fill(&data, &mut sampler, 300, &by(1.0)).unwrap();
    assert_eq!(
        (&again.top_percent_idx[..], &again.last_indices[..]),
        (&batch.top_percent_idx[300..], &batch.last_indices[300..])
    );

    // An unfinished episode is the worst at any return. Without the option nothing is reported.
    let mut sampler = data.with_top_percents(plain(), &[90.0], 5);
    batch.fill(&data, &mut sampler, 300, &by(1.0)).unwrap();
    let best: Vec<usize> = batch
        .top_percent_idx
        .iter()
        .zip(&batch.last_indices)
        .filter(|(best, _)| best.is_some())
        .map(|(_, &last)| episode(last))
        .collect();
    assert!(best.contains(&0) && best.contains(&1) && !best.contains(&2), "{best:?}");
    batch.fill(&data, &mut data.with_top_percents(plain(), &[], 5), 60, &by(1.0)).unwrap();
    let mut all = Batch::default();
    all.fill(&data, &mut plain(), 60, &by(1.0)).unwrap();
    assert_eq!(batch, all);
    assert!(all.top_percent_idx.iter().all(Option::is_none));
}

#[test]
fn windows_from_their_start_by_hand() {
    let index = index(&[3, 1, 5]);
    let sampler = WindowSampler::new(index, Sampling::FromStart, 3, 1).unwrap();
    assert_eq!(sampler.epoch_len(), 9);
    let ranges: Vec<_> = (0..9).map(|at| sampler.window_at(at).range()).collect();
    // To the episode's end at 3, at 4 or at 9, or three steps on.
    assert_eq!(ranges, [0..3, 1..3, 2..3, 3..4, 4..7, 5..8, 6..9, 7..9, 8..9]);
    assert_eq!(sampler.window_at(1).n_padding(), 1);
}

#[test]
fn draws_with_replacement_are_uniform_and_pinned() {
    let index = index(&[1, 4, 5]);
    let mut sampler = WindowSampler::new(index.clone(), Sampling::FromStart, 2, 7).unwrap();
    let mut counts = [0u32; 10];
    for _ in 0..20_000 {
        counts[sampler.draw().first] += 1;
    }
    // 2000 expected; the standard deviation is about 42. Episodes are so drawn in proportion
    // to their lengths.
    assert!(counts.iter().all(|count| (1800..2200).contains(count)), "{counts:?}");
    // Drawn with replacement: the first epoch does not hold each row once.
    sampler.seek(0);
    let firsts: Vec<_> = (0..10).map(|_| sampler.draw().first).collect();
    let mut distinct = firsts.clone();
    distinct.sort_unstable();
    distinct.dedup();
    assert!(distinct.len() < 10, "{firsts:?}");
    // Pinned: a stored cursor means these draws.
    assert_eq!(firsts, [5, 3, 4, 7, 0, 5, 2, 5, 6, 0]);
    assert_eq!(serde_json::to_value(Sampling::FromStart).unwrap(), "from_start");
    let mut other = WindowSampler::new(index, Sampling::FromStart, 2, 8).unwrap();
    assert!((0..10).map(|_| other.draw().first).ne(firsts));
}

#[test]
fn the_loader_gives_the_samplers_batches() {
    let data = dataset("...t......l.t", &DatasetOptions::default());
    let sampler = WindowSampler::new(data.index().clone(), Sampling::FromStart, 4, 5).unwrap();
    let mut direct = sampler.clone();
    let config = LoaderConfig::new(3);
    let mut loader =
        Loader::new(data.clone(), sampler.clone(), scaled(config.clone(), 10.0)).unwrap();
    for n in 1..20 {
        let batch = loader.next().unwrap();
        let mut expected = Batch::default();
        expected.fill(&data, &mut direct, 3, &by(10.0)).unwrap();
        assert_eq!(batch, expected);
        assert_eq!(batch.drawn, 3 * n);
        loader.recycle(batch);
    }
    assert!(Loader::new(data.clone(), sampler.clone(), LoaderConfig::new(0)).is_err());
    let mut loader = Loader::new(data, sampler, scaled(config, 0.0)).unwrap();
    assert!(matches!(loader.next(), Err(DataError::Sampling { .. })));
    assert!(matches!(loader.next(), Err(DataError::Loader { .. })));
}

#[test]
fn loaders_share_the_samplers_batches() {
    let data = dataset("...t......l.t", &DatasetOptions::default());
    let sampler = WindowSampler::new(data.index().clone(), Sampling::Uniform, 4, 5).unwrap();
    let load = |share: Share| {
        let config = LoaderConfig { share, ..LoaderConfig::new(3) };
        Loader::new(data.clone(), sampler.clone(), config)
    };
    let mut whole = load(Share::default()).unwrap();
    let shares = [0..1, 1..3, 3..4].map(|own| Share { own, of: 4 });
    let mut shared = shares.clone().map(|share| load(share).unwrap());
    for _ in 0..5 {
        for (loader, share) in shared.iter_mut().zip(&shares) {
            for _ in share.own.clone() {
                assert_eq!(loader.next().unwrap(), whole.next().unwrap());
            }
        }
    }
    for none in [Share { own: 2..2, of: 4 }, Share { own: 3..5, of: 4 }] {
        assert!(matches!(load(none), Err(DataError::Sampling { .. })));
    }
}

#[test]
fn a_loader_says_why_its_thread_ended() {
    let data = dataset("..t", &DatasetOptions::default());
    let sampler = WindowSampler::new(index(&[3]), Sampling::Uniform, 2, 1).unwrap();
    let mut loader = Loader::new(data, sampler, LoaderConfig::new(1)).unwrap();
    let error = loader.next().unwrap_err().to_string();
    assert!(error.contains("a sampler of another dataset"), "{error}");
}

#[test]
#[should_panic(expected = "a sampler of another dataset")]
fn a_sampler_of_another_dataset_is_a_bug() {
    let data = dataset("..t", &DatasetOptions::default());
    let mut sampler = WindowSampler::new(index(&[3]), Sampling::Uniform, 2, 1).unwrap();
    let _ = Batch::default().fill(&data, &mut sampler, 1, &by(1.0));
}

proptest! {
    #[test]
    fn windows_from_their_start_stay_in_their_episode(
        lengths in prop::collection::vec(1usize..12, 1..6),
        context in 1usize..9, seed in any::<u64>(), skip in 0u64..1000,
    ) {
        let index = index(&lengths);
        let mut sampler = WindowSampler::new(index.clone(), Sampling::FromStart, context, seed).unwrap();
        prop_assert_eq!(sampler.epoch_len(), index.n_transitions());
        sampler.seek(skip);
        let window = sampler.draw();
        let end = index.episode_end(window.first);
        prop_assert_eq!(window.range().end, end.min(window.first + context));
        prop_assert_eq!((window.context_length, sampler.drawn()), (context, skip + 1));
        sampler.seek(skip);
        prop_assert_eq!(sampler.draw(), window);
    }
}
