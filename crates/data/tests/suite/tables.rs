//! Tables: columns by name, actions as words, and a sentence for everything that is not a table of steps.

use std::fs;
use std::path::PathBuf;

use overtone_core::{ActionSpace, Outcome, Task};
use overtone_data::read::{open_as, reader_as};
use overtone_data::{
    ActionColumn, Columns, DataError, Dataset, DatasetOptions, Expected, Form, ObservationColumn,
    RecordedSpaces, Recording, TableColumns, check_as,
};
use overtone_testkit::sentences;

/// Two sessions, of two steps and of one.
const TABLE: &str = "\
session,hour,temp,valve,profit,note
a,0,20.5,open,1.5,x
a,1,21,shut,-0.25,\"y, z\"
b,0,19,half,2,
";

pub fn columns() -> TableColumns {
    TableColumns {
        episode: "session".into(),
        observation: "temp, hour".into(),
        action: "valve".into(),
        reward: "profit".into(),
        ..TableColumns::default()
    }
}

/// A folder with the table as `log.csv`.
fn written(text: impl AsRef<[u8]>) -> (tempfile::TempDir, PathBuf) {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("log.csv");
    fs::write(&path, text).unwrap();
    (folder, path)
}

fn read(text: impl AsRef<[u8]>, columns: &TableColumns) -> Result<Columns, DataError> {
    let (_folder, path) = written(text);
    let form = Form { columns: columns.clone(), ..Form::default() };
    match open_as(&path, &form)? {
        Recording::Columns(columns) => Ok(columns),
        Recording::ReplayLog(_) => panic!("a log of frames"),
    }
}

#[test]
fn columns_are_read_by_name() {
    let table = read(TABLE, &columns()).unwrap();
    let seen = vec![20.5, 0.0, 21.0, 1.0, 19.0, 0.0];
    assert_eq!(table.observations, ObservationColumn::Vectors { width: 2, values: seen });
    // In the order of the alphabet: half, open, shut.
    assert_eq!(table.actions, ActionColumn::Discrete { n_actions: 3, values: vec![1, 2, 0] });
    assert_eq!(table.rewards, [1.5, -0.25, 2.0]);
    let episodes: Vec<_> =
        table.episodes.iter().map(|of| (of.start, of.length, of.outcome)).collect();
    assert_eq!(episodes, [(0, 2, Outcome::Truncated), (2, 1, Outcome::Truncated)]);
    assert_eq!(table.finished, [true, true]);
    let unread: Vec<&String> = table.stored.unread.iter().collect();
    assert_eq!(unread, ["note"]);

    // The mark of UTF-8, ends of lines of another system, tabs.
    let marked = format!("\u{feff}{}", TABLE.replace('\n', "\r\n"));
    let plain = |columns: Columns| (columns.observations, columns.actions, columns.rewards);
    assert_eq!(plain(read(marked, &columns()).unwrap()), plain(table.clone()));
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("log.tsv");
    fs::write(&path, TABLE.replace("\"y, z\"", "y").replace(',', "\t")).unwrap();
    let form = Form { columns: columns(), ..Form::default() };
    let Recording::Columns(tabs) = open_as(&path, &form).unwrap() else { panic!() };
    assert_eq!(plain(tabs), plain(table));
}

#[test]
fn actions_that_are_words_keep_their_names() {
    let (_folder, path) = written(TABLE);
    let form = Form { columns: columns(), ..Form::default() };
    let spaces = RecordedSpaces::of(&path, &form).unwrap();
    let names = ["half", "open", "shut"].map(String::from).to_vec();
    assert_eq!((spaces.actions, spaces.is_described), (ActionSpace::Discrete { names }, true));
    assert_eq!(reader_as(&path, &form).unwrap().name(), "table");

    let numbers =
        |action: &str| TABLE.replace("open", "2").replace("shut", "0").replace("half", action);
    let actions = |action: &str| read(numbers(action), &columns()).unwrap().actions;
    assert_eq!(actions("4"), ActionColumn::Discrete { n_actions: 5, values: vec![2, 0, 4] });
    let values = vec![2.0, 0.0, 0.5];
    assert_eq!(actions("0.5"), ActionColumn::Continuous { width: 1, values });
    let two =
        TableColumns { action: "hour,temp".into(), observation: "profit".into(), ..columns() };
    let values = vec![0.0, 20.5, 1.0, 21.0, 0.0, 19.0];
    assert_eq!(read(TABLE, &two).unwrap().actions, ActionColumn::Continuous { width: 2, values });
}

/// Another table may lack a word, or have one more: a word is the same action everywhere.
#[test]
fn words_of_several_tables_are_one_list_of_actions() {
    let form = Form { columns: columns(), ..Form::default() };
    let later = TABLE.replace("half", "wide").replace("shut", "open");
    let [(_one, first), (_other, second)] = [written(TABLE), written(&later)];
    let mut spaces = RecordedSpaces::of(&first, &form).unwrap();
    spaces.extend(&RecordedSpaces::of(&second, &form).unwrap()).unwrap();
    let names = ["half", "open", "shut", "wide"].map(String::from).to_vec();
    assert_eq!(spaces.actions, ActionSpace::Discrete { names });
    let task = Task::own("valve", spaces.observations, spaces.actions);
    let actions = read(&later, &columns()).unwrap().fitted_to(&task).unwrap().actions;
    assert_eq!(actions, ActionColumn::Discrete { n_actions: 4, values: vec![1, 1, 3] });
    // A task that is known before has no `wide`.
    let spaces = RecordedSpaces::of(&first, &form).unwrap();
    let task = Task::own("valve", spaces.observations, spaces.actions);
    let (_folder, path) = written(&later);
    let Recording::Columns(table) = open_as(&path, &form).unwrap() else { panic!() };
    sentences::check(&table.fitted_to(&task).unwrap_err().to_string());
}

/// Ends, log-probabilities, masks and weights stand in columns of their own.
#[test]
fn optional_columns() {
    let text = "\
id,x,a,r,end,p,m,w,can0,can1
1,0,0,1,0,-0.5,1,1,1,0
1,1,1,0,TRUE,-0.25,0,2.5,true,true
2,0,1,1,false,-1,1,0,0,1
";
    let names = TableColumns {
        episode: "id".into(),
        observation: "x".into(),
        action: "a".into(),
        reward: "r".into(),
        termination: "end".into(),
        behavior_log_probs: "p".into(),
        masks: "m".into(),
        weights: "w".into(),
        action_mask: "can0,can1".into(),
    };
    let table = read(text, &names).unwrap();
    let outcomes: Vec<Outcome> = table.episodes.iter().map(|episode| episode.outcome).collect();
    assert_eq!(outcomes, [Outcome::Terminated, Outcome::Truncated]);
    assert_eq!(table.behavior_log_probs, Some(vec![-0.5, -0.25, -1.0]));
    assert_eq!(table.optional.stops, Some(vec![false, true, false]));
    assert_eq!(table.optional.weights, Some(vec![1.0, 2.5, 0.0]));
    let allowed = table.optional.action_masks.unwrap().allowed;
    assert_eq!(allowed, [true, false, true, true, false, true]);
    // A recorded action that is not allowed.
    let error = read(text.replace("false,-1,1,0,0,1", "false,-1,1,0,1,0"), &names).unwrap_err();
    sentences::check(&error.to_string());
}

#[test]
fn what_is_no_table_of_steps_is_refused_with_its_line() {
    let refused = |text: &str, columns: &TableColumns| {
        let error = read(text, columns).unwrap_err().to_string();
        sentences::check(&error);
        error
    };
    assert!(refused(TABLE, &TableColumns::default()).contains("session, hour, temp"));
    for (from, to) in [
        ("a,1,21,", "a,1,,"),
        ("a,1,21,", "a,1,warm,"),
        ("a,1,21,", "a,1,\"21,5\","),
        ("a,1,21,", "a,1,12:30,"),
        ("a,1,21,", "a,1,2026-11-28,"),
        ("a,1,21,", "a,1,inf,"),
        ("a,1,21,", "a,1,1e39,"),
        ("a,1,21,shut", "a,1,21,3"),
        ("a,1,21,shut", "a,1,21,"),
        ("a,1,21,shut", "a,1,21,shut,shut"),
        ("a,1,", ",1,"),
        ("session,", "1,"),
        ("hour", "temp"),
        ("profit", "profits"),
        (TABLE, "session;temp;valve;profit\na;20,5;open;1,5\n"),
        (TABLE, "1,2,3\n4,5,6\n"),
        (TABLE, "session,hour,temp,valve,profit,note\n"),
        (TABLE, ""),
    ] {
        refused(&TABLE.replace(from, to), &columns());
    }
    // A third episode with the name of the first.
    refused(&(TABLE.to_owned() + "a,2,20,open,1,\n"), &columns());
    refused(&TABLE.replace("open", "-1").replace("shut", "0").replace("half", "1"), &columns());
    refused(&TABLE.replace("open", "70000").replace("shut", "0").replace("half", "1"), &columns());
    let ends = TableColumns { termination: "hour".into(), observation: "temp".into(), ..columns() };
    refused(&TABLE.replace("a,0,", "a,1,"), &ends);
    refused(&TABLE.replace("a,0,", "a,2,"), &ends);
    let masked =
        TableColumns { action_mask: "hour".into(), observation: "temp".into(), ..columns() };
    refused(TABLE, &masked);
    let latin = [TABLE.as_bytes(), b"c,0,1,\xe9,1,\n"].concat();
    sentences::check(&read(latin, &columns()).unwrap_err().to_string());
}

#[test]
fn a_table_is_inspected_and_hashed_like_arrays() {
    let (_folder, path) = written(TABLE);
    let form = Form { columns: columns(), ..Form::default() };
    let found = check_as(&path, &form, &Expected::default()).unwrap();
    let text = found.inspection.unwrap().to_string();
    assert!(text.contains("log.csv (table layout)") && text.contains("actions one of 3"), "{text}");
    let table = read(TABLE, &columns()).unwrap();
    let arrays = Columns::new(
        table.observations.clone(),
        table.actions.clone(),
        table.rewards.clone(),
        table.episodes.clone(),
    );
    let hash = |columns| {
        Dataset::of(columns, &DatasetOptions::default()).unwrap().content_hash().to_owned()
    };
    assert_eq!(hash(table), hash(arrays));
    // Without the names of its columns, it is a finding like any other.
    let unnamed = check_as(&path, &Form::default(), &Expected::default()).unwrap();
    assert!(unnamed.inspection.is_err());
}
