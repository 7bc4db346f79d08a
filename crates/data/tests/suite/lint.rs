//! Findings about defective recordings.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use overtone_core::{ActionSpace, ObservationSpace, Task};
use overtone_data::card::CardCounts;
use overtone_data::{
    Dataset, DatasetCard, DatasetOptions, Expected, LintReport, ReadFrames, Severity,
    description_of,
};
use overtone_testkit::Hdf5File;
use overtone_testkit::dopamine::{Recorder, Slot};

use crate::robots::{d4rl, minari, observation, replace, write_d4rl};
use crate::starter::datasets;
use crate::tasks;

fn card(name: &str) -> DatasetCard {
    DatasetCard::load(&datasets().join(name)).unwrap()
}

fn game_card() -> DatasetCard {
    DatasetCard { counts: BTreeMap::new(), ..card("starter-seaquest.toml") }
}

/// The findings without a description or a task.
fn look(path: &Path, frames: ReadFrames) -> LintReport {
    overtone_data::check(path, &Expected { frames, ..Expected::default() }).unwrap().report
}

/// The findings for a recording that is compared with `card`.
fn compare(path: &Path, card: &DatasetCard) -> LintReport {
    overtone_data::check(path, &Expected { card: Some(card), ..Expected::default() })
        .unwrap()
        .report
}

/// Checks that all that is found is `expected`: severity, code, and what the finding's file,
/// array and words hold among them.
#[track_caller]
fn check(report: &LintReport, expected: &[(Severity, &str, &str)]) {
    let found: Vec<_> = report.findings.iter().map(|f| (f.severity, f.code)).collect();
    let codes: Vec<_> = expected.iter().map(|&(severity, code, _)| (severity, code)).collect();
    assert_eq!(found, codes, "{report}");
    for (finding, (_, code, words)) in report.findings.iter().zip(expected) {
        let dataset = finding.dataset.as_deref().unwrap_or_default();
        let told = format!("{}: {dataset}: {}", finding.file, finding.found);
        assert!(told.contains(words), "{code}: {told}");
        assert!(finding.advice.ends_with('.') && !finding.advice.contains('\n'), "{report}");
    }
}

use Severity::{Error, Note, Warning};

/// A run of one file and one episode, after `spoil`.
#[track_caller]
fn check_run(
    card: Option<DatasetCard>,
    spoil: impl FnOnce(&mut Recorder),
    expected: &[(Severity, &str, &str)],
) {
    let card = card.as_ref();
    check_run_of(&Expected { card, ..Expected::default() }, spoil, expected);
}

/// As [`check_run`], of what is known.
#[track_caller]
fn check_run_of(
    known: &Expected<'_>,
    spoil: impl FnOnce(&mut Recorder),
    expected: &[(Severity, &str, &str)],
) {
    let dir = tempfile::tempdir().unwrap();
    let mut recorder = Recorder::new(dir.path(), "Pong", 40);
    recorder.episode(36); // Three slots of padding, and the last one stale.
    recorder.files = 0;
    spoil(&mut recorder);
    recorder.save();
    check(&overtone_data::check(recorder.game(), known).unwrap().report, expected);
}

#[test]
fn slots_of_a_run() {
    check_run(None, |_| {}, &[]);
    check_run(Some(game_card()), |_| {}, &[]);
    let reward = |reward| move |run: &mut Recorder| run.ring[10].reward = reward;
    let words = "$store$_reward_ckpt.0.gz: : 1 reward outside, the first in slot 10: 2";
    check_run(None, reward(2.0), &[(Error, "unclipped-rewards", words)]);
    check_run(None, reward(0.5), &[(Warning, "fractional-rewards", "slot 10: 0.5")]);
    let task: &Task = &tasks::game("pong", "Pong", 6);
    let few = Expected { task: Some(task), ..Expected::default() };
    let words = "$store$_action_ckpt.0.gz: : 5 actions beyond it, the first in slot 6: 6";
    check_run_of(&few, |_| {}, &[(Error, "action-beyond-set", words)]);
    let words = "$store$_observation_ckpt.0.gz: : 1 padding slot with a picture";
    check_run(None, |run| run.ring[1].pixel = 9, &[(Error, "padding-not-black", words)]);
    let words = "begins with 2 padding slots, not 3";
    check_run(None, |run| run.ring[2].action = 3, &[(Warning, "missing-padding", words)]);
    let still = |run: &mut Recorder| run.ring[3..39].iter_mut().for_each(|slot| slot.pixel = 7);
    check_run(None, still, &[(Error, "equal-frames", "all 36 frames equal")]);
    // Padding without the terminal that comes before it; two slots of it, or four, are none.
    let black = |n: usize| move |run: &mut Recorder| run.ring[15..15 + n].fill(Slot::default());
    let words = "$store$_terminal_ckpt.0.gz: : 1 time padding inside an episode, the first in \
                 slot 15";
    check_run(None, black(3), &[(Warning, "missing-terminal", words)]);
    check_run(None, black(2), &[]);
    check_run(None, black(4), &[]);
    // Nothing was ever written to the last slot.
    let words = "$store$_observation_ckpt.0.gz";
    check_run(None, |run| run.ring[39].pixel = 5, &[(Warning, "written-stale-slots", words)]);
    let words = "$store$_action_ckpt.0.gz";
    check_run(None, |run| run.ring[39].action = 5, &[(Warning, "written-stale-slots", words)]);
}

#[test]
fn episodes_of_a_run() {
    check_run(None, |run| run.ring[38].terminal = 0, &[(Error, "no-episode", "none")]);
    let at_most = |steps| Expected { horizon: Some(steps), ..Expected::default() };
    check_run_of(&at_most(36), |_| {}, &[]);
    let words = "1 longer episode, the first in file 0, slot 3";
    check_run_of(&at_most(35), |_| {}, &[(Error, "episode-too-long", words)]);
    let more = |run: &mut Recorder| {
        run.files = 1;
        run.episode(5);
    };
    check_run(None, more, &[(Warning, "stale-slots", "cursor at slot 7, not 39")]);
    let counts = |files, transitions, episodes| {
        let counts = CardCounts {
            files: Some(files),
            slots_per_file: Some(40),
            transitions: Some(transitions),
            episodes: Some(episodes),
            bytes: None,
        };
        Some(DatasetCard { counts: [("each".to_owned(), counts)].into(), ..game_card() })
    };
    check_run(counts(1, 36, 1), |_| {}, &[]);
    let wrong = [(Error, "transition-count", "36"), (Error, "episode-count", "1")];
    check_run(counts(1, 37, 2), |_| {}, &wrong);
    // A part of the files: what is in them cannot be compared.
    check_run(counts(5, 180, 5), |_| {}, &[(Warning, "file-count", "1")]);
}

#[test]
fn broken_files_are_reported_and_the_others_inspected() {
    let dir = tempfile::tempdir().unwrap();
    let mut recorder = Recorder::new(dir.path(), "Pong", 40);
    recorder.episode(36);
    for _ in 0..3 {
        recorder.episode(37);
    }
    assert_eq!(recorder.saved.len(), 4);
    let look = |frames| look(recorder.game(), frames);
    check(&look(ReadFrames::IfSmall), &[]);
    assert_eq!(
        (look(ReadFrames::IfSmall).worst(), look(ReadFrames::IfSmall).exit_code()),
        (None, 0)
    );
    check(&look(ReadFrames::Never), &[(Note, "frames-not-read", "replay_logs")]);
    assert_eq!(look(ReadFrames::Never).exit_code(), 0);
    let file = |name: &str| recorder.folder.join(name);
    let cut = |name: &str| {
        let bytes = fs::read(file(name)).unwrap();
        fs::write(file(name), &bytes[..bytes.len() / 2]).unwrap();
    };
    // In the frames, which are read last: their file's columns are looked at all the same.
    cut("$store$_observation_ckpt.0.gz");
    let broken = look(ReadFrames::IfSmall);
    check(&broken, &[(Error, "cut-file", "$store$_observation_ckpt.0.gz")]);
    assert_eq!(broken.exit_code(), 2);
    // Two of file 1, one of file 3; the rest of file 2 is looked at.
    cut("$store$_action_ckpt.1.gz");
    fs::remove_file(file("$store$_terminal_ckpt.1.gz")).unwrap();
    fs::write(file("add_count_ckpt.3.gz"), b"no gzip").unwrap();
    let broken = look(ReadFrames::IfSmall);
    let found = [
        (Error, "broken-file", "$store$_action_ckpt.1.gz"),
        (Error, "missing-file", "$store$_terminal_ckpt.1.gz"),
        (Error, "broken-file", "add_count_ckpt.3.gz"),
        (Error, "cut-file", "$store$_observation_ckpt.0.gz"),
        (Warning, "missing-slots", "40 slots are missing before file 2"),
        (Note, "headless-steps", "replay_logs"),
    ];
    check(&broken, &found);
    let text = broken.to_string();
    assert!(text.starts_with("error    broken-file     $store$_action_ckpt.1.gz\n"), "{text}");
    assert!(text.contains("\n         expected        "), "{text}");
    assert!(text.ends_with("\n4 errors, 1 warning, 1 note"), "{text}");
    let json = serde_json::to_value(&broken).unwrap();
    assert_eq!(json["findings"][0]["code"], "broken-file");
    assert_eq!(
        (&json["format"], &json["findings"][0]["severity"]),
        (&"DQN replay".into(), &"error".into())
    );
    // Nothing left to read is a finding too; nothing there at all is not.
    for name in fs::read_dir(&recorder.folder).unwrap() {
        fs::write(name.unwrap().path(), b"").unwrap();
    }
    assert!(look(ReadFrames::IfSmall).findings.iter().any(|finding| finding.code == "no-episode"));
    assert!(overtone_data::check(&dir.path().join("none"), &Expected::default()).is_err());
}

#[test]
fn another_formats_description() {
    let (_dir, path) = d4rl("..t");
    let found = [(Error, "other-format", "robot.hdf5: : a recording in the format D4RL")];
    check(&compare(&path, &game_card()), &found);
}

/// Checks the findings for a D4RL file that was sound before `spoil`.
#[track_caller]
fn check_file(steps: &str, spoil: impl FnOnce(&Path), expected: &[(Severity, &str, &str)]) {
    let (_dir, path) = d4rl(steps);
    spoil(&path);
    check(&look(&path, ReadFrames::IfSmall), expected);
}

fn remove(name: &str) -> impl FnOnce(&Path) {
    move |path| Hdf5File::edit(path).delete(name)
}

#[test]
fn flags_of_a_file() {
    check_file("..t..l", |_| {}, &[]);
    check_file(
        "..t..b",
        |_| {},
        &[(Warning, "doubled-flag", "1 step with both, the first in row 5")],
    );
    check_file(
        "..t..l..",
        |_| {},
        &[(Note, "trailing-fragment", "1 without an end, 2 steps, from row 6")],
    );
    let no_end = [(Error, "no-episode", "none"), (Note, "trailing-fragment", "from row 0")];
    check_file("....", |_| {}, &no_end);
    check_file("..t..t", remove("timeouts"), &[(Error, "no-timeouts", "robot.hdf5: timeouts")]);
    let both = [(Error, "missing-array", "robot.hdf5: terminals")];
    check_file("..t..t", remove("terminals"), &both);
}

#[test]
fn next_observations_that_differ_from_the_next_row() {
    // Row 2 ends an episode by its flag, row 4 does without one.
    let next = |ends: &'static [usize]| {
        move |path: &Path| {
            let led = |row: usize| if ends.contains(&row) { 900 } else { row + 1 };
            let next: Vec<f32> = (0..8).flat_map(|row| observation(led(row))).collect();
            Hdf5File::edit(path).put("next_observations", &next, 3);
        }
    };
    check_file("..t....l", next(&[2, 7]), &[]);
    check_file("..t....l", next(&[]), &[]);
    let words = "1 row without a flag whose next_observations are not the next row's \
                 observations, the first in row 4";
    check_file("..t....l", next(&[2, 4, 7]), &[(Warning, "ends-and-jumps", words)]);
    // A missing flag is found in a file without timeouts as well.
    let spoil = |path: &Path| {
        next(&[2, 4, 7])(path);
        remove("timeouts")(path);
    };
    let found = [
        (Error, "no-timeouts", "timeouts"),
        (Warning, "ends-and-jumps", "first in row 4"),
        (Note, "trailing-fragment", "1 without an end, 5 steps"),
    ];
    check_file("..t....l", spoil, &found);
}

#[test]
fn numbers_of_a_file() {
    let rewards = |path: &Path| {
        replace(path, "rewards", &[0.0, 1.0, f32::NAN, 0.0, f32::INFINITY, 0.0], 0);
    };
    let words = "rewards: 2 values not finite, the first in row 2: NaN";
    check_file("..t..l", rewards, &[(Error, "non-finite", words)]);
    // All arrays are looked at, those too that are not read.
    let all = |path: &Path| {
        let mut broken = vec![0.5f32; 12];
        broken[7] = f32::NEG_INFINITY;
        replace(path, "actions", &broken, 2);
        let file = Hdf5File::edit(path);
        let infos = file.group("infos");
        infos.put("qpos", &[1.0, f32::NAN, 1.0], 1);
        infos.put("name", &[b'x'; 8], 0);
    };
    let found = [
        (Error, "non-finite", "actions: 1 value not finite, the first in row 3: -inf"),
        (Warning, "non-finite", "infos/qpos: 1 value not finite, the first in row 1: NaN"),
        (Warning, "constant-dimension", "actions: the same in every step at place 0"),
        (Note, "not-read", "not read: `infos/name`, `infos/qpos`"),
    ];
    check_file("..t..l", all, &found);
    let outside = |path: &Path| replace(path, "actions", &[0.0f32, 0.0, 0.5, 1.5, -2.0, 0.0], 2);
    // Without a task the bounds are not known.
    check_file("..t", outside, &[]);
    let (_dir, path) = d4rl("..t");
    outside(&path);
    let task = Task::own("robot", ObservationSpace::Vectors { width: 3 }, ActionSpace::unit(2));
    let known = Expected { task: Some(&task), ..Expected::default() };
    let report = overtone_data::check(&path, &known).unwrap().report;
    let found = [(Warning, "actions-outside", "2 steps outside, the first in row 1: 1.5")];
    check(&report, &found);
    let listed = |path: &Path| replace(path, "actions", &[1i64, 2, 2], 0);
    listed(&path);
    let actions = ActionSpace::numbered(2);
    let task = Task::own("list", ObservationSpace::Vectors { width: 3 }, actions);
    let known = Expected { task: Some(&task), ..Expected::default() };
    let report = overtone_data::check(&path, &known).unwrap().report;
    check(&report, &[(Error, "action-beyond-set", "actions: actions 0 to 2")]);
    let constant = |path: &Path| {
        let fixed: Vec<f32> = (0..3).flat_map(|row| [row as f32, 7.0, -1.0]).collect();
        replace(path, "observations", &fixed, 3);
    };
    let found =
        [(Warning, "constant-dimension", "observations: the same in every step at place 1, 2")];
    check_file("..t", constant, &found);
}

#[test]
fn repetitions_of_a_file() {
    // Row 4 repeats row 3. Row 3 equals row 2, but another episode begins there.
    let rows = |path: &Path| {
        let rows: Vec<f32> = [0, 1, 2, 2, 2, 3].into_iter().flat_map(observation).collect();
        replace(path, "observations", &rows, 3);
    };
    let words = "1 row equal to the row before, the first in row 4";
    check_file("..t..l", rows, &[(Warning, "repeated-observations", words)]);
    // The second episode is the first again, in observations, actions and rewards.
    let twice = |path: &Path| {
        let rows: Vec<f32> = [0, 1, 2, 0, 1, 2].into_iter().flat_map(observation).collect();
        replace(path, "observations", &rows, 3);
        replace(path, "rewards", &[1.0f32, 2.0, 3.0, 1.0, 2.0, 3.0], 0);
        let actions: Vec<f32> = [0.1, 0.2, 0.3, 0.4, 0.5, 0.6].repeat(2);
        replace(path, "actions", &actions, 2);
    };
    let words = "1 episode there already, the first in row 3, as the one in row 0";
    check_file("..t..t", twice, &[(Warning, "repeated-episodes", words)]);
    let but_a_reward = |path: &Path| {
        twice(path);
        replace(path, "rewards", &[1.0f32, 2.0, 3.0, 1.0, 2.0, 4.0], 0);
    };
    check_file("..t..t", but_a_reward, &[]);
}

#[test]
fn forms_of_a_file() {
    let form = |path: &Path| replace(path, "rewards", &[1.0f64, 2.0, 0.5], 1);
    let found = [
        (Note, "not-float32", "rewards: float64"),
        (Note, "column-shape", "rewards: shape [3, 1]"),
    ];
    check_file("..t", form, &found);
    let length = |path: &Path| replace(path, "rewards", &[1.0f32, 2.0], 0);
    check_file("..t", length, &[(Error, "wrong-length", "rewards: 2 rows")]);
    let shape = |path: &Path| replace(path, "observations", &[0.0f32; 3], 0);
    check_file("..t", shape, &[(Error, "wrong-shape", "observations: [3]")]);
    let flag = |path: &Path| replace(path, "terminals", &[0u8, 1, 4], 0);
    check_file("..t", flag, &[(Error, "impossible-value", "terminals: in row 2: 4")]);
    // Files that cannot be opened, or are cut short, are findings too.
    let other = |path: &Path| fs::write(path, b"text").unwrap();
    check_file("..t", other, &[(Error, "broken-file", "robot.hdf5")]);
    let cut = |path: &Path| {
        let bytes = fs::read(path).unwrap();
        fs::write(path, &bytes[..bytes.len() / 2]).unwrap();
    };
    check_file("..t", cut, &[(Error, "broken-file", "robot.hdf5")]);
}

#[test]
fn a_file_against_its_robot_and_description() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("hopper_medium.hdf5");
    write_d4rl(&path, "..t..l");
    let widths = [
        (Error, "wrong-width", "hopper_medium.hdf5: observations: 3"),
        (Error, "wrong-width", "hopper_medium.hdf5: actions: 2"),
    ];
    let task = tasks::hopper();
    let known = Expected { task: Some(&task), ..Expected::default() };
    check(&overtone_data::check(&path, &known).unwrap().report, &widths);
    let mut card = card("starter-mujoco.toml");
    let bytes = fs::metadata(&path).unwrap().len();
    let counts = |transitions, episodes, bytes| CardCounts {
        transitions: Some(transitions),
        episodes: Some(episodes),
        bytes: Some(bytes),
        ..CardCounts::default()
    };
    let mut look = |counts, horizon| {
        card.counts.insert("hopper_medium".into(), counts);
        let known = Expected { card: Some(&card), horizon: Some(horizon), ..Expected::default() };
        overtone_data::check(&path, &known).unwrap().report
    };
    check(&look(counts(6, 2, bytes), 3), &[]);
    let wrong = [
        (Error, "transition-count", "6"),
        (Error, "episode-count", "2"),
        (Error, "byte-count", ""),
    ];
    check(&look(counts(7, 3, bytes + 1), 3), &wrong);
    let long = [(Error, "episode-too-long", "2 longer episodes, the first in row 0, 3 steps long")];
    check(&look(counts(6, 2, bytes), 2), &long);
}

#[test]
fn episodes_of_minari() {
    let look = |path: &Path| look(path, ReadFrames::IfSmall);
    let (_dir, path) = minari("..t ..l");
    check(&look(&path), &[]);
    let (_dir, path) = minari("t..t .b ..");
    let found = [
        (Warning, "early-flag", "episode_0, row 0"),
        (Warning, "trailing-fragment", "1 without an end, 2 steps, from episode_2, row 0"),
        (Warning, "doubled-flag", "episode_1, row 1"),
    ];
    check(&look(&path), &found);
    // One episode's array is broken, another is not there: the others are looked at.
    let (_dir, path) = minari("..t ..l .t .b");
    replace(&path, "episode_0/rewards", &[0.0f64, f64::NAN, 1.0], 0);
    replace(&path, "episode_1/actions", &[0.0f32; 6], 3);
    Hdf5File::edit(&path).delete("episode_2");
    let found = [
        (Error, "missing-episodes", "3"),
        (Error, "wrong-length", "episode_1/actions: 2 rows"),
        (Error, "non-finite", "rewards: 1 value not finite, the first in episode_0, row 1: NaN"),
        (Warning, "doubled-flag", "episode_3, row 1"),
    ];
    check(&look(&path), &found);
}

/// A Minari file of pictures with an episode for each word of `steps`, as in [`minari`]; all
/// pixels of a row are its number.
fn pictures(steps: &str) -> (tempfile::TempDir, std::path::PathBuf) {
    let (dir, path) = minari(steps);
    let file = Hdf5File::edit(&path);
    for (number, episode) in steps.split(' ').enumerate() {
        let (group, rows) = (file.group(&format!("episode_{number}")), episode.len() + 1);
        group.delete("observations");
        let pixels: Vec<u8> = (0..rows).flat_map(|row| vec![row as u8; 84 * 84]).collect();
        group.put_shaped("observations", &pixels, &[rows, 84, 84]);
        group.delete("actions");
        group.put("actions", &vec![1i64; episode.len()], 0);
    }
    (dir, path)
}

#[test]
fn recordings_of_pictures() {
    let constant = (Warning, "constant-dimension", "actions");
    let look = |path: &Path| look(path, ReadFrames::IfSmall);
    let (_dir, path) = pictures("..t .l");
    check(&look(&path), &[constant]);
    let inspection = tasks::inspect_columns(&path).unwrap();
    assert_eq!((inspection.observation_width, inspection.episodes), (84 * 84, 2));
    // Nothing that can be trained on.
    let (_dir, path) = pictures(".. ...");
    let unfinished = (Warning, "trailing-fragment", "2 without an end");
    check(&look(&path), &[(Error, "no-episode", "none"), constant, unfinished]);
    assert!(Dataset::open(&path, &DatasetOptions::default()).is_err());
    // The same episode twice; rewards are the row's in `minari`.
    let (_dir, path) = pictures("..t ..t");
    for episode in [0, 1] {
        replace(&path, &format!("episode_{episode}/rewards"), &[1.0f64, 2.0, 3.0], 0);
    }
    let twice = (Warning, "repeated-episodes", "episode_1, row 0, as the one in episode_0, row 0");
    check(&look(&path), &[constant, twice]);
    // Counts are compared with the description's.
    let counts = CardCounts { transitions: Some(6), episodes: Some(3), ..CardCounts::default() };
    let mut card = DatasetCard { format: "Minari".into(), ..card("starter-mujoco.toml") };
    card.counts = [("each".to_owned(), counts)].into();
    let report = compare(&path, &card);
    assert!(report.findings.iter().any(|finding| finding.code == "episode-count"), "{report}");
}

#[test]
fn many_findings_of_a_kind_are_counted() {
    let episodes = vec!["..t"; 30].join(" ");
    let (_dir, path) = minari(&episodes);
    for episode in 0..30 {
        replace(&path, &format!("episode_{episode}/rewards"), &[0.0f64; 2], 0);
    }
    let report = look(&path, ReadFrames::IfSmall);
    assert_eq!((report.findings.len(), report.left_out["wrong-length"]), (20, 10));
    assert!(report.to_string().contains("10 more of wrong-length"), "{report}");
}

#[test]
fn the_starter_sets_are_as_described() {
    let starter = datasets().join("starter");
    for game in ["BankHeist", "DoubleDunk", "Gravitar", "Seaquest"] {
        let card = description_of(&starter.join(game), &datasets()).unwrap().unwrap();
        let task = tasks::game(game, game, 18);
        let known = Expected {
            card: Some(&card),
            task: Some(&task),
            horizon: Some(27_000),
            frames: ReadFrames::Always,
        };
        let report = overtone_data::check(&starter.join(game), &known).unwrap().report;
        check(&report, &[]);
        assert_eq!(report.expected.unwrap(), format!("starter-{}", game.to_lowercase()));
    }
    let fragment: &[_] = &[(Note, "trailing-fragment", "1 without an end")];
    for (robot, expected) in
        [("halfcheetah", &[][..]), ("hopper", fragment), ("walker2d", fragment)]
    {
        let path = starter.join(format!("mujoco/{robot}_medium.hdf5"));
        let card = description_of(&path, &datasets()).unwrap().unwrap();
        assert_eq!(card.name, "starter-mujoco");
        check(&compare(&path, &card), expected);
    }
    // A copy elsewhere is compared only on request.
    let dir = tempfile::tempdir().unwrap();
    let copy = dir.path().join("hopper_medium.hdf5");
    fs::copy(starter.join("mujoco/hopper_medium.hdf5"), &copy).unwrap();
    assert_eq!(description_of(&copy, &datasets()).unwrap(), None);
}
