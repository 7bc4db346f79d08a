//! Recordings of our own: written, read back equal, and opened by Minari where that is there.

use std::fs;
use std::ops::ControlFlow::{Break, Continue};
use std::path::Path;
use std::process::Command;
use std::sync::atomic::Ordering;

use overtone_core::{ActionSpace, ObservationSpace, Outcome, Simulation, Task};
use overtone_data::read::{columns, open_with_last};
use overtone_data::write::{place_of, write_columns, write_frames};
use overtone_data::{
    About, ActionColumn, DataError, Dataset, DatasetOptions, Form, MinariWriter, ObservationColumn,
    Origin, Preparation, RecordedTask, Recording, ReplayLog, Selection, WrittenEpisode,
};
use overtone_testkit::dopamine::Recorder;

use crate::frame_of;
use crate::robots::observation;

fn task(observations: ObservationSpace, actions: ActionSpace) -> Task {
    Task::own("tiny", observations, actions)
}

pub fn about(task: &Task) -> About<'_> {
    About {
        task,
        simulation: None,
        env_spec: None,
        algorithm: "by hand".into(),
        description: "For tests.".into(),
    }
}

/// Episodes of 3, 1 and 2 steps, the last cut by the recording's end.
fn write(to: &Path, task: &Task, simulation: Option<&Simulation>) -> overtone_data::Written {
    let mut writer = MinariWriter::create(to, About { simulation, ..about(task) }).unwrap();
    let ends = [Some(Outcome::Terminated), Some(Outcome::Truncated), None];
    let mut row = 0;
    for (steps, outcome) in [3, 1, 2].into_iter().zip(ends) {
        let rows = row..row + steps;
        let shown = row..=row + steps;
        writer
            .episode(&WrittenEpisode {
                observations: match task.observations {
                    ObservationSpace::Vectors { width } => ObservationColumn::Vectors {
                        width,
                        values: shown.flat_map(|row| vec![row as f32 / 8.0; width]).collect(),
                    },
                    ObservationSpace::Pixels { .. } => ObservationColumn::Frames {
                        pixels: shown.flat_map(|row| vec![row as u8; 84 * 84]).collect(),
                    },
                },
                actions: match &task.actions {
                    ActionSpace::Discrete { names } => ActionColumn::Discrete {
                        n_actions: names.len(),
                        values: rows.clone().map(|row| row as u16 % 2).collect(),
                    },
                    ActionSpace::Continuous { low, .. } => ActionColumn::Continuous {
                        width: low.len(),
                        values: rows.clone().flat_map(|row| vec![row as f32; low.len()]).collect(),
                    },
                },
                rewards: rows.map(|row| row as f32 - 1.5).collect(),
                behavior_log_probs: None,
                optional: Default::default(),
                outcome,
                seed: Some(u64::MAX - row as u64),
            })
            .unwrap();
        row += steps;
    }
    writer.finish().unwrap()
}

fn vectors() -> Task {
    let (low, high) = (vec![-2.0, f32::NEG_INFINITY], vec![2.0, f32::INFINITY]);
    task(ObservationSpace::Vectors { width: 3 }, ActionSpace::Continuous { low, high })
}

fn pictures() -> Task {
    task(ObservationSpace::Pixels { shape: vec![4, 84, 84] }, ActionSpace::numbered(3))
}

#[test]
fn written_recordings_read_back_equal() {
    let dir = tempfile::tempdir().unwrap();
    for (name, task) in [("vectors", vectors()), ("pictures", pictures())] {
        let folder = dir.path().join(name);
        let simulation = Simulation::new([("max_steps", 7.into())]);
        let written = write(&folder, &task, Some(&simulation));
        assert_eq!((written.transitions, written.episodes), (6, 3));
        let log = columns(&folder).unwrap();
        match (&log.observations, &log.actions) {
            (
                ObservationColumn::Vectors { width: 3, values },
                ActionColumn::Continuous { width: 2, values: done },
            ) => {
                let rows = |n: usize| (0..6).flat_map(move |row| vec![row as f32; n]);
                assert_eq!(*values, rows(3).map(|row| row / 8.0).collect::<Vec<_>>());
                assert_eq!(*done, rows(2).collect::<Vec<_>>());
            }
            (
                ObservationColumn::Frames { pixels, .. },
                ActionColumn::Discrete { n_actions: 3, values },
            ) => {
                let shades: Vec<u8> = pixels.chunks(84 * 84).map(|frame| frame[9]).collect();
                assert_eq!(shades, [0, 1, 2, 3, 4, 5]);
                assert_eq!(*values, [0, 1, 0, 1, 0, 1]);
            }
            other => panic!("{name}: {other:?}"),
        }
        assert_eq!(log.rewards, [-1.5, -0.5, 0.5, 1.5, 2.5, 3.5]);
        assert_eq!(log.finished, [true, true, false]);
        // A file alone says the same; equal contents have one hash.
        let file = dir.path().join(format!("{name}.hdf5"));
        let alone = write(&file, &task, Some(&simulation));
        assert_eq!(alone.content_hash, written.content_hash);
        for path in [&folder, &file] {
            let recorded = RecordedTask::of(path).unwrap();
            assert_eq!(recorded.task.as_deref(), Some("own/tiny"));
            assert_eq!(recorded.simulation.as_ref(), Some(&simulation));
        }
        let again = columns(&file).unwrap();
        assert_eq!((again.observations, again.rewards), (log.observations, log.rewards));
        let refused = MinariWriter::create(&folder, about(&task)).map(drop).unwrap_err();
        assert!(refused.to_string().contains("something is there already"), "{refused}");
    }
    // Nothing half-written is left, and what is not finished is not there.
    let (names, task) = (fs::read_dir(dir.path()).unwrap().count(), vectors());
    drop(MinariWriter::create(&dir.path().join("third"), about(&task)).unwrap());
    drop(MinariWriter::create(&dir.path().join("third.h5"), about(&task)).unwrap());
    assert_eq!((names, fs::read_dir(dir.path()).unwrap().count()), (4, 4));
    assert!(place_of("minari:no-id").is_err());
}

#[test]
fn a_recording_is_converted() {
    let dir = tempfile::tempdir().unwrap();
    let own = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/list.npz");
    let log = columns(&own).unwrap();
    let task = task(ObservationSpace::Vectors { width: 3 }, ActionSpace::numbered(5));
    let to = dir.path().join("list");
    let written = write_columns(&log, None, &to, about(&task), &mut |_| Continue(())).unwrap();
    assert_eq!((written.transitions, written.episodes), (9, 4));
    let again = columns(&to).unwrap();
    assert_eq!(again.observations, log.observations);
    // Only three of five actions were taken.
    let ActionColumn::Discrete { n_actions: 5, values } = &again.actions else { panic!() };
    assert_eq!(*values, [0, 1, 2, 0, 1, 2, 0, 1, 2]);
    assert_eq!((again.rewards, again.episodes), (log.rewards, log.episodes));
    assert_eq!(again.finished, log.finished);
}

/// The observation after the last action of each episode is kept, but not trained on.
#[test]
fn the_observation_after_the_last_action_is_kept() {
    let dir = tempfile::tempdir().unwrap();
    let hash = |path: &Path| {
        let data = Dataset::open(path, &DatasetOptions::default()).unwrap();
        data.content_hash().to_owned()
    };
    for (name, task) in [("vectors", vectors()), ("pictures", pictures())] {
        let (from, to) = (dir.path().join(name), dir.path().join(format!("{name}.hdf5")));
        let written = write(&from, &task, None);
        let (Recording::Columns(log), last) = open_with_last(&from, &Form::of("")).unwrap() else {
            panic!()
        };
        // Episodes of 3, 1 and 2 steps, each shown a row more: rows 3, 4 and 6.
        match last.as_ref().unwrap() {
            ObservationColumn::Vectors { width: 3, values } => {
                let rows = [3.0, 4.0, 6.0].into_iter().flat_map(|row| [row / 8.0f32; 3]);
                assert_eq!(*values, rows.collect::<Vec<_>>());
            }
            ObservationColumn::Frames { pixels } => {
                assert_eq!(pixels.chunks(84 * 84).map(|row| row[7]).collect::<Vec<_>>(), [3, 4, 6]);
            }
            other => panic!("{other:?}"),
        }
        // The converted recording has the same contents, to the last row.
        let again =
            write_columns(&log, last.as_ref(), &to, about(&task), &mut |_| Continue(())).unwrap();
        assert_eq!(again.content_hash, written.content_hash, "{name}");
        assert_eq!(open_with_last(&to, &Form::of("")).unwrap().1, last);
        // If it is unknown, the last observation is repeated.
        let other = dir.path().join(format!("{name}-unknown.hdf5"));
        let unknown =
            write_columns(&log, None, &other, about(&task), &mut |_| Continue(())).unwrap();
        assert_ne!(unknown.content_hash, written.content_hash, "{name}");
        assert_eq!([hash(&to), hash(&other)], [hash(&from), hash(&from)], "{name}");
    }
}

#[test]
fn the_last_row_of_an_ogbench_trajectory_is_kept() {
    let dir = tempfile::tempdir().unwrap();
    let own = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/ogbench.npz");
    let (Recording::Columns(log), last) = open_with_last(&own, &Form::of("ogbench")).unwrap()
    else {
        panic!()
    };
    // Trajectories of 5, 3 and 1 rows: the last of the first two are rows 4 and 7.
    let values = [4, 7].into_iter().flat_map(observation).collect();
    assert_eq!(last, Some(ObservationColumn::Vectors { width: 3, values }));
    let task = task(ObservationSpace::Vectors { width: 3 }, ActionSpace::unit(2));
    let to = dir.path().join("maze.hdf5");
    write_columns(&log, last.as_ref(), &to, about(&task), &mut |_| Continue(())).unwrap();
    let (Recording::Columns(again), led) = open_with_last(&to, &Form::of("")).unwrap() else {
        panic!()
    };
    assert_eq!((led, &again.observations), (last, &log.observations));
    // Rows that are not one for each episode, of its form, or no numbers.
    for values in [vec![0.0; 3], vec![0.0; 9], vec![f32::NAN; 6]] {
        let wrong = ObservationColumn::Vectors { width: 3, values };
        let to = dir.path().join("wrong.hdf5");
        let refused = write_columns(&log, Some(&wrong), &to, about(&task), &mut |_| Continue(()));
        let refused = refused.unwrap_err().to_string();
        assert!(refused.contains("last observation"), "{refused}");
        assert!(!to.exists());
    }
}

/// Two recordings are given one name at once: neither is lost.
#[test]
fn a_file_that_appeared_meanwhile_stays() {
    let dir = tempfile::tempdir().unwrap();
    let task = vectors();
    for name in ["file.hdf5", "folder"] {
        let to = dir.path().join(name);
        let written = |reward: f32| {
            let mut writer = MinariWriter::create(&to, about(&task)).unwrap();
            let episode = WrittenEpisode {
                observations: ObservationColumn::Vectors { width: 3, values: vec![0.5; 6] },
                actions: ActionColumn::Continuous { width: 2, values: vec![0.0; 2] },
                rewards: vec![reward],
                behavior_log_probs: None,
                optional: Default::default(),
                outcome: Some(Outcome::Terminated),
                seed: None,
            };
            writer.episode(&episode).unwrap();
            writer
        };
        let writer = written(7.0);
        match name {
            "folder" => fs::create_dir(&to).unwrap(),
            _ => fs::write(&to, "another's").unwrap(),
        }
        let error = writer.finish().unwrap_err();
        let DataError::Unnamed { path, kept, .. } = &error else { panic!("{error}") };
        assert_eq!(path, &to);
        let said = error.to_string();
        assert!(said.contains(&kept.display().to_string()) && !said.contains('\n'), "{said}");
        match name {
            "folder" => assert_eq!(fs::read_dir(&to).unwrap().count(), 0),
            _ => assert_eq!(fs::read_to_string(&to).unwrap(), "another's"),
        }
        // The next recording of this name does not take the place of the one that was kept.
        match name {
            "folder" => fs::remove_dir(&to).unwrap(),
            _ => fs::remove_file(&to).unwrap(),
        }
        written(8.0).finish().unwrap();
        assert_eq!(columns(kept).unwrap().rewards, [7.0]);
        assert_eq!(columns(&to).unwrap().rewards, [8.0]);
    }
}

/// A log becomes one file that is read as the log was, also where episodes cross its files.
#[test]
fn a_log_of_frames_is_converted() {
    let dir = tempfile::tempdir().unwrap();
    let mut recorder = Recorder::new(dir.path(), "Pong", 16);
    for length in [9, 14, 3, 20, 7, 11, 5, 16, 8, 13, 6, 12] {
        recorder.episode(length);
    }
    let log = ReplayLog::open(recorder.game()).unwrap();
    let lengths: Vec<u64> = log.finished().map(|episode| episode.length).collect();
    assert!(lengths.len() >= 4, "{lengths:?}");
    let all = Selection::uniform(usize::MAX);
    let plan = Preparation::new(log, Origin::other(), all, 0, &dir.path().join("cache")).unwrap();
    plan.stop.store(true, Ordering::Relaxed);
    assert!(matches!(plan.ensure(&mut |_, _| {}), Err(DataError::Stopped)));
    assert_eq!(fs::read_dir(plan.store.parent().unwrap()).unwrap().count(), 0);
    plan.stop.store(false, Ordering::Relaxed);
    let dataset = plan.ensure(&mut |_, _| {}).unwrap();
    let observations = ObservationSpace::Pixels { shape: vec![4, 84, 84] };
    let task = task(observations, ActionSpace::numbered(dataset.actions().size()));
    let to = dir.path().join("written/log.hdf5");
    let stopped = write_frames(&dataset, &to, about(&task), &mut |_| Break(()));
    assert!(matches!(stopped, Err(DataError::Stopped)));
    assert_eq!(fs::read_dir(to.parent().unwrap()).unwrap().count(), 0, "half a recording is left");
    let written = write_frames(&dataset, &to, about(&task), &mut |_| Continue(())).unwrap();
    let all = (lengths.len() as u64, lengths.iter().sum());
    assert_eq!((written.episodes, written.transitions), all);
    let again = columns(&to).unwrap();
    assert_eq!((&again.rewards[..], &again.actions), (dataset.rewards(), dataset.actions()));
    assert_eq!(again.episodes, dataset.episodes().as_slice());
    assert!(again.finished.iter().all(|finished| *finished));
    let ObservationColumn::Frames { pixels, .. } = &again.observations else { panic!("no frames") };
    for (row, frame) in pixels.chunks(84 * 84).enumerate() {
        assert!(frame == frame_of(&dataset, row), "row {row}");
    }
}

const OPENS: &str = "
import sys, numpy, minari
for name in ('vectors', 'pictures'):
    data = minari.load_dataset(f'own/{name}-v0')
    episodes = list(data.iterate_episodes())
    assert [len(e) for e in episodes] == [3, 1, 2], episodes
    assert [e.rewards.tolist() for e in episodes] == [[-1.5, -0.5, 0.5], [1.5], [2.5, 3.5]]
    assert [bool(e.terminations[-1]) for e in episodes] == [True, False, False]
    assert [bool(e.truncations[-1]) for e in episodes] == [False, True, False]
    for episode in episodes:
        for observation in episode.observations:
            assert observation in data.observation_space, observation
    assert data.total_steps == 6 and data.total_episodes == 3
    if name == 'vectors':
        assert data.action_space.low.tolist() == [-2.0, -numpy.inf], data.action_space
        assert episodes[0].observations.tolist() == [[r / 8] * 3 for r in range(4)]
    else:
        assert data.action_space.n == 3
        assert episodes[2].observations[:, 5, 7].tolist() == [4, 5, 6]
print('opened by minari', minari.__version__)
";

#[test]
#[ignore = "needs OVERTONE_MINARI_PYTHON, a Python with minari[hdf5]==0.5.4 and pillow"]
fn minari_opens_written_recordings() {
    let python = std::env::var_os("OVERTONE_MINARI_PYTHON").unwrap();
    let dir = tempfile::tempdir().unwrap();
    write(&dir.path().join("own/vectors-v0"), &vectors(), None);
    write(&dir.path().join("own/pictures-v0"), &pictures(), None);
    let mut opens = Command::new(&python);
    let said = opens.args(["-c", OPENS]).env("MINARI_DATASETS_PATH", dir.path()).output().unwrap();
    let stderr = String::from_utf8_lossy(&said.stderr);
    assert!(said.status.success(), "{stderr}");
    println!("{}", String::from_utf8_lossy(&said.stdout));
}
