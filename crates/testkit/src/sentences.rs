//! The sentences that a program refuses with, kept apart from the tests that provoke them: one file
//! for each module of tests, `tests/sentences/MODULE.txt`.
//!
//! A test checks that something is refused; the file says in which words. `UPDATE_SENTENCES=1
//! cargo test …` rewrites the files, so that a sentence changes in one place, and a diff shows
//! it. It changes the words of an error and never its cause: a sentence of another error fails also
//! then. Where an error has a type, [`check_error!`](crate::check_error) checks its kind first.

use std::{
    cell::Cell,
    collections::{BTreeMap, BTreeSet},
    env, fs,
    path::{Path, PathBuf},
    sync::{LazyLock, Mutex},
    thread,
};

use crate::project::project;

/// The sentences of a module's tests, by the name of the test.
type Module = BTreeMap<String, Vec<String>>;

/// A file.
#[derive(Clone)]
struct Sentences {
    /// Its contents before this run of the tests.
    recorded: Module,
    /// Its contents with the updates so far.
    current: Module,
}

/// The files, by module.
static MODULES: LazyLock<Mutex<BTreeMap<String, Sentences>>> = LazyLock::new(Mutex::default);

thread_local! {
    /// Sentences of this thread's test so far.
    static N_CHECKED: Cell<usize> = const { Cell::new(0) };
}

/// Compares a sentence with the one that the running test has in its module's file, or writes it
/// there in an update. The first sentence of a test is compared with its first line, and so on.
#[track_caller]
pub fn check(sentence: &str) {
    compare(sentence, has_same_cause);
}

/// As [`check`]; an update writes the sentence if it `may_replace` the recorded one.
#[track_caller]
fn compare(sentence: &str, may_replace: fn(&str, &str) -> bool) {
    let name = thread::current().name().unwrap_or("main").to_owned();
    let (module, test) = match name.rsplit_once("::") {
        Some((module, test)) => (module.replace("::", "-"), test),
        None => (binary(), &*name),
    };
    let n = N_CHECKED.replace(N_CHECKED.get() + 1);
    let sentence = anywhere(sentence.trim_end());
    let path = path_of(&module);
    let mut modules = MODULES.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
    let Sentences { recorded, current } = modules.entry(module).or_insert_with(|| {
        let recorded = read(&path);
        Sentences { current: recorded.clone(), recorded }
    });
    let expected = recorded.get(test).and_then(|lines| lines.get(n)).cloned();
    if env::var_os("UPDATE_SENTENCES").is_some() {
        if expected.as_deref().is_none_or(|expected| may_replace(expected, &sentence)) {
            let lines = current.entry(test.to_owned()).or_default();
            lines.truncate(n);
            lines.push(sentence);
            write(&path, current);
            return;
        }
        drop(modules);
        panic!(
            "sentence {} of {test} is of another error\nexpected: {}\n     got: {sentence}\n(if it is \
             right, remove the expected line from {} first)",
            n + 1,
            expected.unwrap_or_default(),
            path.display()
        );
    }
    drop(modules);
    assert!(
        expected.as_deref() == Some(&sentence),
        "sentence {} of {test}\nexpected: {}\n     got: {sentence}\n(UPDATE_SENTENCES=1 writes {})",
        n + 1,
        expected.as_deref().unwrap_or("none"),
        path.display()
    );
}

/// Checks the kind of an error, then its sentence as [`check`](crate::sentences::check) does:
/// `check_error!(error, TrainError::Locked { .. })`.
#[macro_export]
macro_rules! check_error {
    ($error:expr, $kind:pat $(if $condition:expr)? $(,)?) => {{
        let error = &$error;
        assert!(matches!(error, $kind $(if $condition)?), "an error of another kind: {error:?}");
        $crate::sentences::check(&error.to_string());
    }};
}

/// Whether a sentence in other words can be of the same error: it has half of the recorded names
/// (in backquotes, or with `_`, `.` or `=`; no paths), or without names a quarter of the words.
fn has_same_cause(recorded: &str, current: &str) -> bool {
    let words = |sentence: &str| -> BTreeSet<String> {
        let is_part = |c: char| c.is_alphanumeric() || matches!(c, '_' | '.' | '-' | '=');
        let is_path = |word: &&str| word.contains("DESK/") || word.contains("PROJECT/");
        let words = sentence.split_whitespace().filter(|word| !is_path(word));
        let words = words.flat_map(|word| word.split(|c| !is_part(c)));
        let words = words.map(|word| word.trim_matches(['.', '-']));
        words.filter(|word| word.chars().count() > 3).map(str::to_lowercase).collect()
    };
    let is_name = |word: &&String| word.contains(['_', '.', '=']);
    let quoted: Vec<&str> = recorded.split('`').skip(1).step_by(2).collect();
    let words_of_recorded = words(recorded);
    let mut names: BTreeSet<String> = words_of_recorded.iter().filter(is_name).cloned().collect();
    names.extend(quoted.iter().flat_map(|name| words(name)));
    let current = words(current);
    let n_shared = |expected: &BTreeSet<String>| expected.intersection(&current).count();
    if names.is_empty() {
        4 * n_shared(&words_of_recorded) >= words_of_recorded.len()
    } else {
        2 * n_shared(&names) >= names.len()
    }
}

/// Compares the sentences of a Markdown page that contain `part`, at least one, as [`check`] does.
#[track_caller]
pub fn check_prose(page: &str, part: &str) {
    let is_prose = |line: &&str| !line.starts_with(['|', '!', '#', '`']) && line.contains(part);
    let mut lines = page.lines().filter(is_prose).peekable();
    assert!(lines.peek().is_some(), "no sentence with {part:?} in\n{page}");
    lines.for_each(|line| compare(line, |_, _| true));
}

/// Compares a text with the file that holds it, or writes the file in an update.
#[track_caller]
pub fn check_file(text: &str, path: &Path) {
    if env::var_os("UPDATE_SENTENCES").is_some() {
        let _ = fs::write(path, text);
    }
    let expected = fs::read_to_string(path).unwrap_or_default();
    assert!(
        expected == text,
        "{} is not current (UPDATE_SENTENCES=1 writes it):\n{text}",
        path.display()
    );
}

/// The name of the test program, without the hash that cargo appends.
fn binary() -> String {
    let path = env::current_exe().unwrap_or_default();
    let name = path.file_stem().unwrap_or_default().to_string_lossy().into_owned();
    name.rsplit_once('-').map_or(name.clone(), |(name, _)| name.to_owned())
}

fn path_of(module: &str) -> PathBuf {
    let manifest = env::var_os("CARGO_MANIFEST_DIR").unwrap_or_default();
    PathBuf::from(manifest).join("tests/sentences").join(format!("{module}.txt"))
}

/// `[test]`, and a line for each of its sentences.
fn read(path: &PathBuf) -> Module {
    let (mut tests, mut test) = (Module::new(), String::new());
    for line in fs::read_to_string(path).unwrap_or_default().lines() {
        match line.strip_prefix('[').and_then(|line| line.strip_suffix(']')) {
            Some(name) => test = name.to_owned(),
            None if line.is_empty() => {}
            None => tests.entry(test.clone()).or_default().push(line.to_owned()),
        }
    }
    tests
}

fn write(path: &PathBuf, tests: &Module) {
    let texts = tests.iter().map(|(test, lines)| format!("[{test}]\n{}\n", lines.join("\n")));
    let _ = fs::create_dir_all(path.with_file_name(""));
    let _ = fs::write(path, texts.collect::<Vec<_>>().join("\n"));
}

/// `sentence` as on any machine: folders of tests are `DESK`, the project's is `PROJECT`, a port of
/// this machine `PORT`, the number of a process in the name of a hidden file `PID`.
fn anywhere(sentence: &str) -> String {
    let project = project().display().to_string();
    let sentence = sentence.replace(&project, "PROJECT");
    let desks = env::temp_dir().join(".tmp").display().to_string();
    let mut parts = sentence.split(&desks);
    let mut told = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        told += "DESK";
        told += part.trim_start_matches(|c: char| c.is_ascii_alphanumeric());
    }
    for host in ["127.0.0.1:", "localhost:"] {
        let mut parts = told.split(host);
        let first = parts.next().unwrap_or_default().to_owned();
        let without_port = |part: &str| {
            format!("{host}PORT{}", part.trim_start_matches(|c: char| c.is_ascii_digit()))
        };
        told = first + &parts.map(without_port).collect::<String>();
    }
    told.split('/').map(without_process).collect::<Vec<_>>().join("/")
}

/// A part of a path; in a hidden file's name three to seven digits in a row are a process.
fn without_process(part: &str) -> String {
    if !part.starts_with('.') {
        return part.to_owned();
    }
    let (mut told, mut rest) = (String::new(), part);
    while let Some(c) = rest.chars().next() {
        let digits = rest.bytes().take_while(u8::is_ascii_digit).count();
        let n = digits.max(c.len_utf8());
        told += if (3..8).contains(&digits) { "PID" } else { &rest[..n] };
        rest = &rest[n..];
    }
    told
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn other_words_are_of_the_same_error_and_other_names_are_not() {
        let recorded = "DESK/a.npz: `rewards` has 3 rows, expected 2 because of `terminals`";
        assert!(has_same_cause(recorded, "a.npz: `rewards`: 3 rows for the 2 of `terminals`"));
        assert!(!has_same_cause(recorded, "DESK/a.npz: has no `actions`: it has observations"));
        let recorded = "the action of agent 0 is not finite. Check the weights";
        assert!(has_same_cause(recorded, "an action is not finite; use other weights"));
        assert!(!has_same_cause(recorded, "no space left on the device"));
        let recorded = "train.held_out=0.01: holds out none of 4 episodes";
        assert!(has_same_cause(recorded, "train.held_out=0.01 is too small for 4 episodes"));
        assert!(!has_same_cause(recorded, "unknown option `held`"));
    }

    #[test]
    fn folders_and_ports_are_the_same_everywhere() {
        let desk = env::temp_dir().join(".tmpAb12Cd/runs/hopper");
        let sentence =
            format!("`{}` is not in {} at 127.0.0.1:8080", desk.display(), project().display());
        let expected = "`DESK/runs/hopper` is not in PROJECT at 127.0.0.1:PORT";
        assert_eq!(anywhere(&sentence), expected);
        let hidden = "r/.step-00000004.27786/a: no room; r/.frames-27888-0.partial";
        let expected = "r/.step-00000004.PID/a: no room; r/.frames-PID-0.partial";
        assert_eq!(anywhere(hidden), expected);
    }
}
