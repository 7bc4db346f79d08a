//! Rows on the wrong side of an episode's end: the doubt `ends-and-jumps`, and recordings that do
//! not raise it.

use std::fs;
use std::path::Path;

use overtone_data::error::Fault;
use overtone_data::read::columns;
use overtone_data::{DataError, Expected, Finding, Severity, check};
use overtone_testkit::Hdf5File;
use overtone_testkit::dopamine::npy;

use crate::own_arrays::{f4, zip};

/// One row of two observed numbers.
#[derive(Clone, Copy)]
struct Row {
    observation: [f32; 2],
    action: u8,
    reward: f32,
    /// The task's end and a step limit's.
    ends: [bool; 2],
}

/// Numbers from 0 to 1 that look random.
struct Noise(u64);

impl Noise {
    fn next(&mut self) -> f32 {
        self.0 =
            self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 40) as f32 / (1u64 << 24) as f32
    }
}

/// Twelve episodes of 9 to 14 steps that move a little from step to step, and jump between them.
/// A limit ends every third. Also the observation after each episode's last action.
fn episodes() -> Vec<(Vec<Row>, [f32; 2])> {
    let mut noise = Noise(3);
    let episode = |number: usize| {
        let mut observation = [0, 1].map(|_| 20.0 * noise.next() - 10.0);
        observation[0] += if number.is_multiple_of(2) { 30.0 } else { -30.0 };
        let step = |at: usize, noise: &mut Noise| {
            let last = at == 8 + number % 6;
            let is_limit = number % 3 == 2;
            let row = Row {
                observation,
                action: (noise.next() * 3.0) as u8,
                reward: 0.5 + noise.next(),
                ends: [last && !is_limit, last && is_limit],
            };
            observation = observation.map(|number| number + noise.next() - 0.5);
            row
        };
        let mut step = step;
        let rows = (0..9 + number % 6).map(|at| step(at, &mut noise)).collect();
        (rows, observation)
    };
    (0..12).map(episode).collect()
}

fn sound() -> Vec<Row> {
    episodes().into_iter().flat_map(|(rows, _)| rows).collect()
}

/// A recording with `change` made to each episode.
fn each(change: impl Fn(&mut Vec<Row>, [f32; 2])) -> Vec<Row> {
    let all = episodes().into_iter().map(|(mut rows, after)| {
        change(&mut rows, after);
        rows
    });
    all.flatten().collect()
}

/// The flags called `which` of each row in place of the row `by` before.
fn shifted(which: &[usize], by: isize) -> Vec<Row> {
    let (mut rows, before) = (sound(), sound());
    for (at, row) in rows.iter_mut().enumerate() {
        for &which in which {
            let from = at.checked_add_signed(-by).and_then(|from| before.get(from));
            row.ends[which] = from.is_some_and(|from| from.ends[which]);
        }
    }
    rows
}

fn numbers(rows: &[Row]) -> Vec<f32> {
    rows.iter().flat_map(|row| row.observation).collect()
}

fn save_npz(path: &Path, rows: &[Row], more: &[(&'static str, Vec<u8>)]) {
    let n = rows.len();
    let flags = |which: usize| {
        npy("|b1", &[n], &rows.iter().map(|row| u8::from(row.ends[which])).collect::<Vec<_>>())
    };
    let mut files = vec![
        ("observations", f4(&[n, 2], &numbers(rows))),
        ("actions", npy("|u1", &[n], &rows.iter().map(|row| row.action).collect::<Vec<_>>())),
        ("rewards", f4(&[n], &rows.iter().map(|row| row.reward).collect::<Vec<_>>())),
        ("terminals", flags(0)),
        ("timeouts", flags(1)),
    ];
    files.extend_from_slice(more);
    fs::write(path, zip(&files)).unwrap();
}

fn save_d4rl(path: &Path, rows: &[Row]) -> Hdf5File {
    let file = Hdf5File::create(path);
    file.put("observations", &numbers(rows), 2);
    file.put("actions", &rows.iter().map(|row| i64::from(row.action)).collect::<Vec<_>>(), 0);
    file.put("rewards", &rows.iter().map(|row| row.reward).collect::<Vec<_>>(), 0);
    for (which, name) in ["terminals", "timeouts"].into_iter().enumerate() {
        file.put(name, &rows.iter().map(|row| row.ends[which]).collect::<Vec<_>>(), 0);
    }
    file
}

/// Groups of the rows up to each flag, with the observation after them where `after` has one.
fn save_minari(path: &Path, rows: &[Row], after: impl Fn(usize) -> [f32; 2]) {
    let file = Hdf5File::create(path);
    let parts = rows.split_inclusive(|row| row.ends != [false, false]);
    for (number, rows) in parts.enumerate() {
        let group = file.group(&format!("episode_{number}"));
        let observations = [numbers(rows), after(number).to_vec()].concat();
        group.put("observations", &observations, 2);
        group.put("actions", &rows.iter().map(|row| i64::from(row.action)).collect::<Vec<_>>(), 0);
        group.put("rewards", &rows.iter().map(|row| f64::from(row.reward)).collect::<Vec<_>>(), 0);
        for (which, name) in ["terminations", "truncations"].into_iter().enumerate() {
            group.put(name, &rows.iter().map(|row| row.ends[which]).collect::<Vec<_>>(), 0);
        }
        group.group("infos").put("success", &vec![0i64; rows.len() + 1], 0);
    }
}

/// The findings of the code `ends-and-jumps`; an inspection and a training have the same.
fn told_of(path: &Path) -> Vec<Finding> {
    let is_it = |finding: &Finding| finding.code == "ends-and-jumps";
    let mut found = check(path, &Expected::default()).unwrap().report.findings;
    found.retain(is_it);
    let mut trained = columns(path).unwrap().doubts(&Expected::default());
    trained.retain(is_it);
    let words = |of: &[Finding]| of.iter().map(|f| f.advice.clone()).collect::<Vec<_>>();
    assert_eq!(words(&found), words(&trained));
    found
}

#[track_caller]
fn finds(found: &[Finding], words: &str, advice: &str) {
    let [finding] = found else { panic!("{found:#?}") };
    assert_eq!((finding.severity, finding.doubt), (Severity::Warning, true));
    assert!(finding.found.contains(words), "{}", finding.found);
    assert!(finding.advice.contains(advice), "{}", finding.advice);
}

/// Checks the finding about rows in each format; Minari's cuts them where their flags are.
#[track_caller]
fn raises(rows: &[Row], words: &str, advice: &str) {
    let dir = tempfile::tempdir().unwrap();
    let (npz, d4rl) = (dir.path().join("own.npz"), dir.path().join("robot.hdf5"));
    save_npz(&npz, rows, &[]);
    finds(&told_of(&npz), words, advice);
    drop(save_d4rl(&d4rl, rows));
    finds(&told_of(&d4rl), words, advice);
}

#[track_caller]
fn is_sound(rows: &[Row]) {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("own.npz");
    save_npz(&path, rows, &[]);
    let found = told_of(&path);
    assert!(found.is_empty(), "{found:#?}");
}

#[test]
fn flags_one_row_off() {
    is_sound(&sound());
    let words = "jump before the flagged row, and not after it: 8 flags of the task's end and 3";
    raises(&shifted(&[0, 1], 1), words, "one row up");
    let words =
        "jump one row after the flagged row, and not at it: 8 flags of the task's end and 3";
    raises(&shifted(&[0, 1], -1), words, "one row down");
    raises(
        &shifted(&[1], 1),
        "not after it: 3 flags of a step limit, the first in row 30",
        "one row up",
    );
}

#[test]
fn rows_that_hold_a_reset() {
    let reset = each(|rows, after| {
        rows.push(Row { observation: after, action: 1, reward: 0.0, ends: [false; 2] });
    });
    raises(&reset, "with a reward of 0 there: 8 flags", "Leave the row after each flag out");
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("main_data.hdf5");
    // Without its last row, which no flag ends.
    let after: Vec<[f32; 2]> = episodes().into_iter().map(|(_, after)| after).collect();
    save_minari(&path, &reset[..reset.len() - 1], |number| after[number]);
    let advice = "Leave the first row of each episode out";
    finds(&told_of(&path), "after an episode's first row", advice);
    save_minari(&path, &sound(), |number| after[number]);
    assert!(told_of(&path).is_empty());
}

#[test]
fn padding_next_to_ends() {
    let empty = Row { observation: [0.0; 2], action: 0, reward: 0.0, ends: [false; 2] };
    let after = each(|rows, _| rows.resize(14, empty));
    raises(&after, "30 rows of padding", "`observations[mask]`");
    let before = each(|rows, _| {
        let padding = vec![empty; 14 - rows.len()];
        rows.splice(0..0, padding);
    });
    raises(&before, "30 rows of padding", "`observations[mask]`");
    // The last observation again, each row flagged.
    let stays = each(|rows, _| {
        let last = *rows.last().unwrap();
        rows.resize(14, Row { action: 0, reward: 0.0, ..last });
    });
    raises(&stays, "30 rows of padding", "`observations[mask]`");
    // Repetition is reported once.
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("own.npz");
    save_npz(&path, &stays, &[]);
    let report = check(&path, &Expected::default()).unwrap().report;
    assert!(report.findings.iter().all(|f| f.code != "repeated-observations"), "{report}");
}

#[test]
fn flags_that_stay_set() {
    let at_goal = each(|rows, _| {
        let n = rows.len();
        rows[n - 3..].iter_mut().for_each(|row| row.ends = [true, false]);
    });
    raises(
        &at_goal,
        "23 flagged rows right after a flagged row",
        "Keep the first flag of each run",
    );
}

#[test]
fn dummy_rows() {
    let dummy = |observation| Row { observation, action: 0, reward: 0.0, ends: [false; 2] };
    let first = each(|rows, after| {
        // Each action moves to the row that it led to.
        let observations: Vec<_> = rows.iter().map(|row| row.observation).chain([after]).collect();
        rows.insert(0, dummy(after));
        rows.iter_mut().zip(observations).for_each(|(row, seen)| row.observation = seen);
    });
    raises(&first, "in the first rows of all 12 episodes", "one row up in each episode");
    let last = each(|rows, after| {
        let ends = std::mem::take(&mut rows.last_mut().unwrap().ends);
        rows.push(Row { ends, ..dummy(after) });
    });
    raises(&last, "in the last rows of all 12 episodes", "set the flags in the rows before them");
}

#[test]
fn environments_in_turn() {
    // Four environments with three episodes each.
    let cut = |rows: &mut Vec<Row>, _| {
        rows.truncate(9);
        rows[8].ends = [true, false];
    };
    let rows = each(cut);
    let in_turn: Vec<Row> = (0..27)
        .flat_map(|time| (0..4).map(move |env| env * 27 + time))
        .map(|at| rows[at])
        .collect();
    is_sound(&rows);
    raises(
        &in_turn,
        "rows of 4 environments in turn",
        "x.reshape(-1, 4, *x.shape[1:]).swapaxes(0, 1)",
    );
}

#[test]
fn episodes_without_a_flag_between_them() {
    let mut merged = sound();
    let limits = merged.iter_mut().filter(|row| row.ends[1]);
    limits.for_each(|row| row.ends[1] = false);
    raises(&merged, "3 rows without a flag after which observations jump", "Set a timeout");
    // With the next observations it is known exactly, in each format alike.
    let next: Vec<f32> =
        episodes().iter().flat_map(|(rows, after)| [&numbers(rows)[2..], after].concat()).collect();
    let dir = tempfile::tempdir().unwrap();
    let (npz, d4rl) = (dir.path().join("own.npz"), dir.path().join("robot.hdf5"));
    save_npz(&npz, &merged, &[("next_observations", f4(&[merged.len(), 2], &next))]);
    save_d4rl(&d4rl, &merged).put("next_observations", &next, 2);
    let words = "3 rows without a flag whose next_observations are not the next row's";
    finds(&told_of(&npz), words, "Set a timeout");
    finds(&told_of(&d4rl), words, "Set a timeout");
    save_npz(&npz, &sound(), &[("next_observations", f4(&[merged.len(), 2], &next))]);
    assert!(told_of(&npz).is_empty());
}

/// Rows of few contexts: equal ones follow each other by chance.
#[test]
fn one_step_episodes_of_few_contexts_are_sound() {
    let mut noise = Noise(7);
    let mut rows: Vec<Row> = (0..600)
        .map(|_| Row {
            observation: [(noise.next() * 3.0).floor(), 0.25],
            action: (noise.next() * 2.0) as u8,
            reward: f32::from(u8::from(noise.next() < 0.05)),
            ends: [true, false],
        })
        .collect();
    let codes = |rows: &[Row]| {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("own.npz");
        save_npz(&path, rows, &[]);
        let findings = check(&path, &Expected::default()).unwrap().report.findings;
        let doubted = ["ends-and-jumps", "repeated-episodes"];
        findings.into_iter().filter(|f| doubted.contains(&f.code)).collect::<Vec<_>>()
    };
    assert_eq!(codes(&rows), []);
    // Some stays of two steps among them.
    rows.iter_mut().step_by(5).for_each(|row| row.ends = [false; 2]);
    assert_eq!(codes(&rows), []);
}

#[test]
fn flags_of_two_axes_say_which_axes() {
    let refusal = |rows: usize, columns: usize, is_set: fn(usize, usize) -> bool| {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("own.npz");
        let bytes = (0..rows * columns).map(|at| u8::from(is_set(at / columns, at % columns)));
        let flags = npy("|b1", &[rows, columns], &bytes.collect::<Vec<_>>());
        let none = npy("|b1", &[rows, columns], &vec![0; rows * columns]);
        fs::write(&path, zip(&[("terminals", flags), ("timeouts", none)])).unwrap();
        let DataError::At { fault, .. } = columns_of(&path) else { panic!() };
        fault
    };
    fn columns_of(path: &Path) -> DataError {
        let archive = fs::read(path).unwrap();
        assert!(!archive.is_empty());
        columns(path).unwrap_err()
    }
    // Steps of four environments, whose episodes have ten steps.
    let fault = refusal(30, 4, |time, _| time % 10 == 9);
    assert!(
        matches!(&fault, Fault::Unread { way_out, .. } if way_out.contains("observations.swapaxes(0, 1)")),
        "{fault}"
    );
    // Five episodes of different lengths.
    let fault = refusal(5, 8, |episode, step| step == 3 + episode);
    assert!(
        matches!(&fault, Fault::Unread { way_out, .. } if way_out.contains("observations[mask]")),
        "{fault}"
    );
    // Episodes of one length only lack an axis.
    let fault = refusal(5, 8, |_, step| step == 7);
    assert!(
        matches!(&fault, Fault::DatasetShape { dataset, .. } if dataset == "terminals"),
        "{fault}"
    );
}

#[test]
fn arrays_that_are_not_read_are_named_once() {
    let named = |path: &Path| {
        let found = columns(path).unwrap().doubts(&Expected::default());
        let listed = check(path, &Expected::default()).unwrap().report.findings;
        let is_it = |finding: &Finding| finding.code == "not-read";
        let of = |list: Vec<Finding>| {
            list.into_iter().filter(is_it).map(|f| f.found).collect::<Vec<_>>()
        };
        let (found, listed) = (of(found), of(listed));
        assert_eq!(found, listed);
        found
    };
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("own.npz");
    save_npz(&path, &sound(), &[]);
    assert_eq!(named(&path), [""; 0]);
    let costs = f4(&[sound().len()], &vec![0.0; sound().len()]);
    save_npz(&path, &sound(), &[("valids", costs.clone()), ("costs", costs)]);
    assert_eq!(named(&path), ["not read: `costs`, `valids`"]);
    let path = dir.path().join("robot.hdf5");
    let file = save_d4rl(&path, &sound());
    file.put("costs", &vec![0.0f32; sound().len()], 0);
    file.group("infos").put("qpos", &vec![0.0f32; sound().len()], 1);
    drop(file);
    assert_eq!(named(&path), ["not read: `costs`, `infos/qpos`"]);
    let path = dir.path().join("main_data.hdf5");
    save_minari(&path, &sound(), |_| [0.0; 2]);
    assert_eq!(named(&path), ["not read: `infos/success`"]);
}
