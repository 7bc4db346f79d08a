//! Findings for numbers that may mean something else than their type and shape say. Sound
//! recordings have none.

use std::fs;
use std::path::{Path, PathBuf};

use overtone_core::{ActionSpace, ObservationSpace, Task};
use overtone_data::read::columns;
use overtone_data::{
    ActionColumn, Expected, Finding, Form, Inspection, ObservationColumn, Recording, Severity,
    check, check_as, read,
};
use overtone_testkit::dopamine::npy;
use tempfile::TempDir;

use crate::own_arrays::{f4, zip};
use Severity::{Error, Note, Warning};

/// Steps of each log here: five episodes of twelve.
const STEPS: usize = 60;

/// Arrays of one log, by name.
struct Log(Vec<(&'static str, Vec<u8>)>);

impl Log {
    /// Sound: two real numbers are observed, one of three actions is chosen, rewards vary, and the
    /// task ends every episode.
    fn sound() -> Self {
        let seen: Vec<f32> = (0..2 * STEPS).map(|at| (at as f32 * 0.7).sin()).collect();
        let done: Vec<u8> = (0..STEPS).map(|row| (row * row % 7 % 3) as u8).collect();
        let paid: Vec<f32> = (0..STEPS).map(|row| (row % 5) as f32 / 4.0).collect();
        Self(vec![
            ("observations", f4(&[STEPS, 2], &seen)),
            ("actions", npy("|u1", &[STEPS], &done)),
            ("rewards", f4(&[STEPS], &paid)),
            ("terminals", flags(|row| row % 12 == 11)),
            ("timeouts", flags(|_| false)),
        ])
    }

    fn with(mut self, name: &'static str, array: Vec<u8>) -> Self {
        self.0.retain(|(other, _)| *other != name);
        self.0.push((name, array));
        self
    }

    /// As continuous actions of `width` numbers.
    fn acting(self, width: usize, number: impl Fn(usize, usize) -> f32) -> Self {
        let numbers = (0..STEPS * width).map(|at| number(at / width, at % width));
        self.with("actions", f4(&[STEPS, width], &numbers.collect::<Vec<_>>()))
    }

    /// With bytes of these axes in a row.
    fn showing(self, axes: &[usize], byte: impl Fn(usize, usize) -> u8) -> Self {
        let width: usize = axes.iter().product();
        let bytes: Vec<u8> = (0..STEPS * width).map(|at| byte(at / width, at % width)).collect();
        self.with("observations", npy("|u1", &[&[STEPS], axes].concat(), &bytes))
    }

    /// With numbers in rows.
    fn seeing(self, width: usize, number: impl Fn(usize, usize) -> f32) -> Self {
        let numbers = (0..STEPS * width).map(|at| number(at / width, at % width));
        self.with("observations", f4(&[STEPS, width], &numbers.collect::<Vec<_>>()))
    }

    fn save(&self) -> (TempDir, PathBuf) {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("own.npz");
        fs::write(&path, zip(&self.0)).unwrap();
        (dir, path)
    }
}

fn flags(is_set: impl Fn(usize) -> bool) -> Vec<u8> {
    npy("|b1", &[STEPS], &(0..STEPS).map(|row| u8::from(is_set(row))).collect::<Vec<_>>())
}

fn task(actions: ActionSpace) -> Task {
    Task::own("plant", ObservationSpace::Vectors { width: 2 }, actions)
}

fn list(names: &[&str]) -> Task {
    task(ActionSpace::Discrete { names: names.iter().map(|&name| name.to_owned()).collect() })
}

/// The doubts that a file gives, which are the same whichever way it is looked at.
#[track_caller]
fn doubts(path: &Path, task: Option<&Task>) -> Vec<Finding> {
    let expected = Expected { task, ..Expected::default() };
    let mut found = check(path, &expected).unwrap().report.findings;
    found.retain(|finding| finding.doubt);
    let mut listed = columns(path).unwrap().doubts(&expected);
    listed.sort_by_key(|finding| std::cmp::Reverse(finding.severity));
    let codes = |of: &[Finding]| of.iter().map(|f| (f.code, f.found.clone())).collect::<Vec<_>>();
    assert_eq!(codes(&found), codes(&listed));
    found
}

/// Checks all doubts of a log: severity, code, words of what was found and of what to do.
#[track_caller]
fn told_of(log: &Log, task: Option<&Task>, expected: &[(Severity, &str, &str, &str)]) {
    let (_dir, path) = log.save();
    let found = doubts(&path, task);
    let short: Vec<_> = found.iter().map(|finding| (finding.severity, finding.code)).collect();
    let codes: Vec<_> = expected.iter().map(|&(severity, code, ..)| (severity, code)).collect();
    assert_eq!(short, codes, "{found:#?}");
    for (finding, (_, _, words, advice)) in found.iter().zip(expected) {
        assert!(finding.found.contains(words), "{finding}");
        assert!(finding.advice.contains(advice), "{}", finding.advice);
    }
}

#[track_caller]
fn finds(log: &Log, expected: &[(Severity, &str, &str, &str)]) {
    told_of(log, None, expected);
}

#[test]
fn sound_recordings_raise_no_doubt() {
    finds(&Log::sound(), &[]);
    told_of(&Log::sound(), Some(&list(&["0", "1", "2"])), &[]);
    // Real actions; some whole, ends of their range; a bang-bang controller with its bounds' signs.
    finds(&Log::sound().acting(2, |row, at| ((row * 7 + at) as f32 * 0.3).cos()), &[]);
    // Pictures, whatever their size, however dark in places.
    finds(&Log::sound().showing(&[84, 84], |row, at| ((row * 31 + at) % 200) as u8), &[]);
    let colours = |row: usize, at: usize| ((row * 37 + at * 11) % 256) as u8;
    finds(&Log::sound().showing(&[20, 30, 3], colours), &[]);
    // Ones and zeros in place of a state's number.
    finds(&Log::sound().seeing(5, |row, at| f32::from(u8::from(row % 5 == at))), &[]);
    // Timeouts alone, and one short episode among others.
    let limits = Log::sound().with("terminals", flags(|_| false));
    finds(&limits.with("timeouts", flags(|row| row % 12 == 11)), &[]);
    let short = |row: usize| row % 4 == 3 || row == 20;
    finds(&Log::sound().with("terminals", flags(short)), &[]);
}

#[test]
fn whole_actions_may_be_discrete() {
    let chosen = |row: usize, _| (row % 2) as f32;
    let words = "whole numbers, 2 different ones from 0 to 1";
    let log = || Log::sound().acting(1, chosen);
    finds(&log(), &[(Warning, "whole-actions", words, "Save them as integers, one a row")]);
    // Bounds, or a task, declare that they are continuous.
    let bounded = log().with("action_low", f4(&[1], &[0.0])).with("action_high", f4(&[1], &[1.0]));
    finds(&bounded, &[(Note, "whole-actions", words, "You do not need to act")]);
    let numbers = task(ActionSpace::unit(1));
    told_of(&log(), Some(&numbers), &[(Note, "whole-actions", words, "You do not need to act")]);
    let signs = Log::sound().acting(1, |row, _| [-1.0, 1.0][row % 2]);
    finds(
        &signs,
        &[(Note, "whole-actions", "2 different ones from -1 to 1", "if they are discrete")],
    );
    // For a task with a list they are not what it takes.
    let game = list(&["0", "1"]);
    told_of(&log(), Some(&game), &[(Error, "whole-actions", words, "Save them as integers")]);
    let (_dir, path) = log().save();
    let refusal = columns(&path).unwrap().check_spaces(&game).unwrap_err().to_string();
    assert!(refusal.contains("save them as integers, one a row"), "{refusal}");
    assert!(!refusal.contains("another task's"), "{refusal}");
    // Real ones are another task's.
    let (_dir, path) = Log::sound().acting(1, |row, _| row as f32 / 7.0).save();
    let refusal = columns(&path).unwrap().check_spaces(&game).unwrap_err().to_string();
    assert!(refusal.contains("another task's"), "{refusal}");
    let one_hot = Log::sound().acting(3, |row, at| f32::from(u8::from(row % 3 == at)));
    finds(&one_hot, &[(Warning, "one-hot-actions", "3 numbers, exactly one of them 1", "argmax")]);
    // So many whole numbers are a quantity; 60 rows have at most 60.
    let few = Log::sound().acting(1, |row, _| row as f32);
    finds(&few, &[(Warning, "whole-actions", "60 different ones", "")]);
}

#[test]
fn a_list_of_another_length_says_why() {
    let chosen = |numbers: [u8; 2]| {
        let done: Vec<u8> = (0..STEPS).map(|row| numbers[row % 2]).collect();
        Log::sound().with("actions", npy("|u1", &[STEPS], &done))
    };
    let claimed = chosen([0, 1]).with("n_actions", npy("<i8", &[1], &5i64.to_le_bytes()));
    for (log, words) in [
        (chosen([1, 2]), "its actions count from 1: subtract 1"),
        (chosen([0, 7]), "number the actions from 0"),
        (claimed, "its n_actions is too large"),
    ] {
        let (_dir, path) = log.save();
        let task = list(&["left", "right"]);
        let refusal = columns(&path).unwrap().check_spaces(&task).unwrap_err().to_string();
        assert!(refusal.contains(words), "{refusal}");
    }
}

#[test]
fn integers_may_be_a_quantity() {
    let numbers = task(ActionSpace::unit(2));
    let expected = [(Error, "list-for-numbers", "one of 3 actions", "as real numbers")];
    told_of(&Log::sound(), Some(&numbers), &expected);
    let prices: Vec<u8> = (0..STEPS).flat_map(|row| (row as u16 * 3).to_le_bytes()).collect();
    let log = Log::sound().with("actions", npy("<u2", &[STEPS], &prices));
    let unused = (Note, "unused-actions", "118 that never occur: 1, 2, 4, 5, 7, …", "");
    finds(
        &log,
        &[unused, (Note, "long-list", "actions up to 177, and 60 steps", "as real numbers")],
    );
}

#[test]
fn several_whole_numbers_are_combinations() {
    let log = || {
        Log::sound().acting(2, |row, at| if at == 0 { (row % 2) as f32 } else { (row % 3) as f32 })
    };
    let words = "2 whole numbers from 0 to 2";
    finds(&log(), &[(Warning, "whole-actions", words, "numpy.ravel_multi_index")]);
    // 2 times 3 of them: the list that files with their space are read as.
    let pairs = list(&["0|0", "0|1", "0|2", "1|0", "1|1", "1|2"]);
    told_of(
        &Log::sound().acting(2, |row, at| ((row >> at) % 2) as f32 * 5.0),
        Some(&pairs),
        &[(Error, "whole-actions", "2 whole numbers from 0 to 5", "")],
    );
    let (_dir, path) = log().save();
    let mut read = columns(&path).unwrap();
    read.list_actions(&pairs).unwrap();
    let ActionColumn::Discrete { n_actions: 6, values } = &read.actions else { panic!("no list") };
    let places: Vec<u16> = (0..STEPS as u16).map(|row| row % 2 * 3 + row % 3).collect();
    assert_eq!(*values, places);
    assert!(read.check_spaces(&pairs).is_ok());
    let expected = Expected { task: Some(&pairs), ..Expected::default() };
    let report = check(&path, &expected).unwrap().report;
    assert!(report.findings.is_empty(), "{report}");
}

#[test]
fn discrete_actions_count_from_0() {
    let bytes = |of: &[u8]| -> Vec<u8> { (0..STEPS).map(|row| of[row % of.len()]).collect() };
    let log = |of: &[u8]| Log::sound().with("actions", npy("|u1", &[STEPS], &bytes(of)));
    let from_1 = list(&["1", "2", "3"]);
    let words = "none below 1";
    finds(&log(&[1, 2]), &[(Note, "first-action-unused", words, "Subtract the smallest")]);
    for of in [&[1, 2][..], &[1, 2, 3]] {
        let advice = "plant counts its actions from 1, and recordings count from 0: subtract 1";
        told_of(&log(of), Some(&from_1), &[(Error, "other-start", "from 1 on", advice)]);
        let (_dir, path) = log(of).save();
        let refusal = columns(&path).unwrap().list_actions(&from_1).unwrap_err().to_string();
        assert!(refusal.contains("subtract 1 from them"), "{refusal}");
    }
    // A 0 settles it, and so does the number of actions.
    told_of(&log(&[0, 1, 2]), Some(&from_1), &[]);
    let n_actions = npy("<i8", &[1], &3i64.to_le_bytes());
    told_of(&log(&[1, 2]).with("n_actions", n_actions), Some(&from_1), &[]);
    finds(&log(&[0, 2, 3]), &[(Note, "unused-actions", "no action 1", "You do not need to act")]);
}

#[test]
fn codes_may_be_stored_as_pictures() {
    // Kinds 4 and 5 of the first channel are the same grey.
    let code = |row: usize, at: usize| if at == 0 { 4 + (row % 2) as u8 } else { 1 };
    let log = Log::sound().showing(&[7, 7, 3], code);
    let lost = "2 different pictures that become 1 different frames";
    finds(
        &log,
        &[
            (Warning, "codes-as-pictures", "no byte above 5", "data.layout=numbers"),
            (Warning, "lost-differences", lost, "data.layout=numbers"),
        ],
    );
    let board = |row: usize, at: usize| u8::from((row + at).is_multiple_of(3));
    finds(
        &Log::sound().showing(&[8, 8], board),
        &[(Warning, "codes-as-pictures", "no byte above 1", "scale pictures to 0 to 255")],
    );
    // Read as numbers, they are these numbers.
    let (_dir, path) = log.save();
    let Recording::Columns(read) = read::open_as(&path, &Form::of("numbers")).unwrap() else {
        panic!()
    };
    let ObservationColumn::Vectors { width: 147, values } = &read.observations else {
        panic!("no numbers")
    };
    assert_eq!((values[0], values[147], values[148]), (4.0, 5.0, 1.0));
    let found = check_as(&path, &Form::of("Numbers"), &Expected::default()).unwrap();
    assert!(found.report.findings.iter().all(|finding| !finding.doubt), "{}", found.report);
    // A game's log has pictures alone.
    let game = overtone_data::datasets_folder().unwrap().join("starter/Seaquest");
    let error = read::open_as(&game, &Form::of("numbers")).unwrap_err().to_string();
    assert!(error.contains("pictures and not numbers"), "{error}");
}

#[test]
fn observations_may_be_names_angles_or_counters() {
    let state = |row: usize, _| (row * 7 % 16) as f32;
    let found = (Note, "whole-observations", "whole numbers up to 15", "numpy.eye(n)[state]");
    finds(&Log::sound().seeing(1, state), &[found]);
    let pixels: Vec<f32> = (0..STEPS * 64).map(|at| (at % 97) as f32 / 97.0).collect();
    let log = Log::sound().with("observations", f4(&[STEPS, 8, 8], &pixels));
    finds(&log, &[(Note, "pictures-as-numbers", "[rows, 8, 8]", "as bytes from 0 to 255")]);
    let row = |row: usize, at: usize| ((row * 31 + at * 7) % 251) as f32;
    let found = (Note, "pictures-as-numbers", "400 whole numbers up to 250 in a row", "with rows");
    finds(&Log::sound().seeing(400, row), &[found]);
    let degrees = |row: usize, at: usize| match at {
        0 => (row as f32 * 0.3).sin(),
        _ => (row * 9 % 360) as f32 - 179.5,
    };
    let one = Log::sound().seeing(2, degrees).with("terminals", flags(|row| row == STEPS - 1));
    let found = "number 1: 1 step from one end of [-179.5, 171.5] to the other";
    finds(&one, &[(Note, "wrapped-angle", found, "the sine and the cosine")]);
    let counter = |row: usize, at: usize| match at {
        0 => (row as f32 * 0.3).sin(),
        _ => (row % 12) as f32 / 12.0,
    };
    finds(&Log::sound().seeing(2, counter), &[]);
    let one = Log::sound().seeing(2, counter).with("terminals", flags(|row| row == STEPS - 1));
    let found = "number 1, which counts up, repeats from 0 to 0.9166667, 4 times";
    finds(&one, &[(Note, "repeating-number", found, "set timeouts")]);
    // Steps of episodes of other lengths.
    let other_lengths = |row: usize, at: usize| match (at, row) {
        (0, _) => (row as f32 * 0.3).sin(),
        (_, 0..20) => row as f32,
        _ => (row - 20) as f32,
    };
    let one =
        Log::sound().seeing(2, other_lengths).with("terminals", flags(|row| row == STEPS - 1));
    let found = "number 1, which counts up, restarts in 1 row, the first in row 20";
    finds(&one, &[(Note, "unflagged-restart", found, "Set timeouts")]);
}

#[test]
fn flags_may_mean_something_else() {
    let flagged = |is_set: fn(usize) -> bool| Log::sound().with("terminals", flags(is_set));
    let masks = flagged(|row| row % 12 != 11);
    finds(&masks, &[(Warning, "inverted-flags", "flags in 55 of 60 rows", "1 - mask")]);
    let all = flagged(|_| true);
    finds(&all, &[(Note, "flags-everywhere", "flags in 60 of 60 rows", "Invert the flags")]);
    let firsts = flagged(|row| row.is_multiple_of(12));
    let words = "a flag in row 0, none in the last 11 rows";
    finds(&firsts, &[(Warning, "ends-and-jumps", words, "one row up")]);
    // None at all leave nothing to train on.
    let (_dir, path) = flagged(|_| false).save();
    let report = check(&path, &Expected::default()).unwrap().report;
    let none = report.findings.iter().find(|finding| finding.code == "no-episode").unwrap();
    assert!(none.advice.contains("data.fragment=keep"), "{}", none.advice);
    let error = overtone_data::Dataset::open(&path, &Default::default()).unwrap_err().to_string();
    assert!(error.contains("data.fragment=keep"), "{error}");
}

#[test]
fn rewards_that_are_0_or_scores_are_reported() {
    let log = Log::sound().with("rewards", f4(&[STEPS], &[0.0; STEPS]));
    finds(&log, &[(Note, "zero-rewards", "0 in all 60 rows", "an agent can only imitate")]);
    let score = |row: usize| (row % 12 * 3 / 2) as f32;
    let scores: Vec<f32> = (0..STEPS).map(score).collect();
    let found = "55 of 55 steps that pay more than the step before, none less";
    let log = Log::sound().with("rewards", f4(&[STEPS], &scores));
    finds(&log, &[(Note, "growing-rewards", found, "numpy.diff")]);
    // Returns-to-go fall.
    let falling: Vec<f32> = (0..STEPS).map(|row| (12 - row % 12) as f32).collect();
    let found = "55 of 55 steps that pay less than the step before, none more";
    let log = Log::sound().with("rewards", f4(&[STEPS], &falling));
    finds(&log, &[(Note, "growing-rewards", found, "-numpy.diff")]);
    // One at the end of an episode is a reward.
    let ends: Vec<f32> = (0..STEPS).map(|row| f32::from(u8::from(row % 12 == 11))).collect();
    finds(&Log::sound().with("rewards", f4(&[STEPS], &ends)), &[]);
}

#[test]
fn numbers_below_zero_of_an_unsigned_type_are_reported() {
    let found = |values: [u8; 4]| {
        let paid: Vec<u8> = (0..STEPS).map(|row| values[row % 4]).collect();
        let (_dir, path) = Log::sound().with("rewards", npy("|u1", &[STEPS], &paid)).save();
        assert_eq!(columns(&path).unwrap().odd.len(), usize::from(values[3] < 255));
        check(&path, &Expected::default()).unwrap().report.findings
    };
    let wrapped = found([0, 1, 255, 250]);
    assert_eq!((wrapped[0].code, wrapped[0].severity), ("as-read", Warning));
    let words = "30 of 60 values are 250 to 255, and the others at most 1";
    assert!(wrapped[0].found.contains(words), "{wrapped:?}");
    assert_eq!(found([0, 10, 100, 255]), []);
}

#[test]
fn a_number_in_place_of_a_missing_one_is_reported() {
    let seen = |row: usize, at: usize| match (row % 10, at) {
        (3, 1) => -999.0,
        _ => ((2 * row + at) as f32 * 0.7).sin(),
    };
    let found = "at place 1 -999 in 10.0 % of the steps";
    let long = Log(Log::sound().seeing(2, seen).0);
    // Of 60 steps nothing is usual.
    finds(&long, &[]);
    let rows = 10 * STEPS;
    let numbers: Vec<f32> = (0..2 * rows).map(|at| seen(at / 2, at % 2)).collect();
    let repeated = |values: &[u8]| values.repeat(10);
    let done: Vec<u8> = (0..STEPS).map(|row| (row * row % 7 % 3) as u8).collect();
    let paid: Vec<f32> = (0..rows).map(|row| (row % 5) as f32 / 4.0).collect();
    let ends: Vec<u8> = (0..STEPS).map(|row| u8::from(row % 12 == 11)).collect();
    let log = Log(vec![
        ("observations", f4(&[rows, 2], &numbers)),
        ("actions", npy("|u1", &[rows], &repeated(&done))),
        ("rewards", f4(&[rows], &paid)),
        ("terminals", npy("|b1", &[rows], &repeated(&ends))),
        ("timeouts", npy("|b1", &[rows], &vec![0; rows])),
    ]);
    finds(&log, &[(Warning, "outlier", found, "a flag for it")]);
}

#[test]
fn a_choice_beside_a_quantity_is_reported() {
    let log = Log::sound().acting(2, |row, at| match at {
        0 => (row % 4) as f32,
        _ => (row as f32 * 0.3).cos(),
    });
    let found = "at place 0 4 different whole numbers from 0 to 3, beside real numbers";
    finds(&log, &[(Note, "hybrid-actions", found, "a discrete action for each combination")]);
}

#[test]
fn memory_stored_as_a_picture_is_reported() {
    let memory = Log::sound().showing(&[1, 128], |row, at| ((row * 31 + at * 7) % 251) as u8);
    let found = "pictures of 1 x 128";
    finds(&memory, &[(Warning, "codes-as-pictures", found, "data.layout=numbers")]);
}

/// A state that stays is no step that was stored twice.
#[test]
fn whole_observations_may_repeat() {
    let log = Log::sound().seeing(2, |row, at| ((row / 3 + at) % 2) as f32);
    finds(&log, &[]);
}

#[test]
fn more_actions_than_anything_can_hold_are_refused() {
    for n in [1i64 << 40, 65_536] {
        let log = Log::sound().with("n_actions", npy("<i8", &[1], &n.to_le_bytes()));
        let (_dir, path) = log.save();
        let report = check(&path, &Expected::default()).unwrap().report;
        assert_eq!(report.findings[0].code, "impossible-value", "{:?}", report.findings);
        let error = overtone_data::Dataset::open(&path, &Default::default()).unwrap_err();
        assert!(error.to_string().contains("expected at most 65535"), "{error}");
    }
}

/// Figures of one recording are of the same steps, and count as training does.
#[test]
fn figures_are_of_the_steps_that_are_trained_on() {
    let inspect = |log: &Log| {
        let (_dir, path) = log.save();
        match check(&path, &Expected::default()).unwrap().inspection.unwrap() {
            Inspection::Columns(inspection) => *inspection,
            Inspection::Log(_) => panic!("a log"),
        }
    };
    // The last 24 rows are of an unfinished episode, and all of them are 9.
    let seen = |row: usize, _| if row < 36 { (row % 2) as f32 + 0.5 } else { 9.0 };
    let ends = flags(|row| row < 36 && row % 12 == 11);
    let log = || Log::sound().seeing(1, seen).with("terminals", ends.clone());
    let found = inspect(&log());
    assert_eq!((found.observations[0].mean, found.observations[0].max), (1.0, 1.5));
    assert_eq!((found.transitions, found.fragment_transitions), (60, 24));
    assert!(found.to_string().contains("end; not in the figures below)"), "{found}");
    // Without a finished episode, the figures are of all rows.
    let found = inspect(&log().with("terminals", flags(|_| false)));
    assert_eq!(found.observations[0].max, 9.0);
    assert!(!found.to_string().contains("not in the figures"), "{found}");
    let n_actions = npy("<i8", &[1], &11i64.to_le_bytes());
    assert_eq!(inspect(&Log::sound()).action_width, 3);
    assert_eq!(inspect(&Log::sound().with("n_actions", n_actions)).action_width, 11);
}

/// A category that one step has, among others, and a lone number that is 1 in one step.
#[test]
fn a_rare_category_is_no_constant() {
    const ROWS: usize = 2000;
    let is_told = |width: usize, number: &dyn Fn(usize, usize) -> f32| {
        let seen: Vec<f32> = (0..ROWS * width).map(|at| number(at / width, at % width)).collect();
        let ends: Vec<u8> = (0..ROWS).map(|row| u8::from(row % 20 == 19)).collect();
        let actions: Vec<u8> = (0..ROWS).map(|row| (row * row % 7 % 3) as u8).collect();
        let log = Log(vec![
            ("observations", f4(&[ROWS, width], &seen)),
            ("actions", npy("|u1", &[ROWS], &actions)),
            ("rewards", f4(&[ROWS], &(0..ROWS).map(|row| (row % 5) as f32).collect::<Vec<_>>())),
            ("terminals", npy("|b1", &[ROWS], &ends)),
            ("timeouts", npy("|b1", &[ROWS], &vec![0; ROWS])),
        ]);
        let (_dir, path) = log.save();
        let report = check(&path, &Expected::default()).unwrap().report;
        report.findings.iter().any(|finding| finding.code == "nearly-constant")
    };
    let flag = |is_set: bool| f32::from(u8::from(is_set));
    let category = |row: usize| if row == 30 { 3 } else { row * row % 7 % 3 };
    assert!(!is_told(4, &|row, at| flag(at == category(row))));
    let wave = |row: usize| (row as f32 * 0.7).sin();
    assert!(is_told(2, &|row, at| if at == 0 { wave(row) } else { flag(row == 30) }));
}
