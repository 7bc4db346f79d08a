//! How the program is called where it runs: `just train` in the project's folder and below,
//! `overtone train` where it was installed.
//!
//! Messages are written as the project's commands, whatever crate they come from. What prints
//! them lets them go through [`spoken`].

use std::{borrow::Cow, env, fs, path::Path, sync::OnceLock};

/// Set by a program that holds this one as a part, such as the Python package: to how it is
/// started again.
const INSTALLED: &str = "OVERTONE_PROGRAM";

/// The project's commands that the program itself has, by another name or the same.
const COMMANDS: [(&str, &str); 13] = [
    ("just tensorboard", "tensorboard"),
    ("just protocol-ablation", "overtone evaluate ablation"),
    ("just data", "overtone data"),
    ("just download", "overtone download"),
    ("just evaluate", "overtone evaluate"),
    ("just export", "overtone export"),
    ("just import", "overtone import"),
    ("just record", "overtone record"),
    ("just report", "overtone report"),
    ("just resume", "overtone resume"),
    ("just study", "overtone study"),
    ("just train", "overtone train"),
    ("just video", "overtone video"),
];

/// `text` with its commands as they are given here.
pub fn spoken(text: &str) -> Cow<'_, str> {
    match text.contains("just ") && !in_project() {
        true => Cow::Owned(installed(text)),
        false => Cow::Borrowed(text),
    }
}

/// A path, or a word with one, as one word of a shell.
pub fn quoted(path: impl AsRef<Path>) -> String {
    let word = path.as_ref().display().to_string();
    let is_plain = |c: char| c.is_alphanumeric() || "_-+=.,:/@%".contains(c);
    match word.is_empty() || !word.chars().all(is_plain) {
        true => format!("'{}'", word.replace('\'', r"'\''")),
        false => word,
    }
}

/// Whether the project's recipes can be called.
fn in_project() -> bool {
    static FOUND: OnceLock<bool> = OnceLock::new();
    *FOUND.get_or_init(|| {
        let here = env::current_dir().unwrap_or_default();
        env::var_os(INSTALLED).is_none() && is_project(&here)
    })
}

/// Whether `just` in this folder reads the project's recipes: it takes the nearest `justfile`. A
/// project that only uses Overtone has one that names it as well, and no such program of its own.
fn is_project(here: &Path) -> bool {
    let project = here.ancestors().find(|folder| folder.join("justfile").is_file());
    let manifest = project.map(|folder| folder.join("crates/cli/Cargo.toml"));
    let manifest = manifest.and_then(|file| fs::read_to_string(file).ok());
    manifest.is_some_and(|text| text.lines().any(|line| line.trim() == "name = \"overtone\""))
}

/// `text` for a program without its project.
fn installed(text: &str) -> String {
    let text = packaged(text);
    COMMANDS.iter().fold(text, |text, (ours, theirs)| replaced(&text, ours, theirs))
}

/// `text` with pip in place of the project's set-up. What is missing is named before, and
/// `` for `mujoco` `` after it names the extra of the Python package that brings it.
fn packaged(text: &str) -> String {
    const SETUP: &str = "run `just setup`";
    let Some((before, after)) = text.split_once(SETUP) else { return text.to_owned() };
    let extra = after.strip_prefix(" for `").and_then(|rest| rest.split_once('`'));
    let (how, rest) = match extra {
        Some((extra, rest)) => {
            (format!("install it with pip (pip install 'overtone-rl[{extra}]')"), rest)
        }
        None => ("install it with pip".to_owned(), after),
    };
    format!("{before}{how}{}", packaged(rest))
}

/// `text` with the command `theirs` in place of `ours`, where it is one: its words end there, and
/// no other word, path or quotation mark of a path stands before it.
fn replaced(text: &str, ours: &str, theirs: &str) -> String {
    let (mut out, mut rest) = (String::new(), text);
    while let Some(at) = rest.find(ours) {
        let (before, after) = (&rest[..at], &rest[at + ours.len()..]);
        let said = out.chars().chain(before.chars()).collect::<String>();
        let begins = match said.trim_end_matches(' ').chars().next_back() {
            Some(last) if said.ends_with(' ') => ":;,.\n".contains(last),
            Some(last) => "`(\n".contains(last),
            None => true,
        };
        let ends = after.chars().next().is_none_or(|next| " `);,\n".contains(next));
        out += before;
        out += if begins && ends { theirs } else { ours };
        rest = after;
    }
    out + rest
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::{installed, is_project, quoted};

    #[test]
    fn a_path_is_one_word() {
        assert_eq!(quoted("runs/a_1-s2.5"), "runs/a_1-s2.5");
        for (path, word) in [("", "''"), ("my data", "'my data'"), ("it's", r"'it'\''s'")] {
            assert_eq!(quoted(path), word);
        }
    }

    #[test]
    fn commands_are_those_of_an_installed_program() {
        let check = |ours: &str, theirs: &str| assert_eq!(installed(ours), theirs);
        check("go on with: just resume run=a", "go on with: overtone resume run=a");
        check("(`just data lint x`)", "(`overtone data lint x`)");
        check(
            "a library is missing: run `just setup` for `robots`, or name it",
            "a library is missing: install it with pip (pip install 'overtone-rl[robots]'), or name it",
        );
        check("it is missing: run `just setup`", "it is missing: install it with pip");
        check("just protocol-ablation run=a", "overtone evaluate ablation run=a");
        check("just tensorboard --logdir runs", "tensorboard --logdir runs");
        check("just as before", "just as before");
        check(
            "`runs` is there; `just study run x` adds",
            "`runs` is there; `overtone study run x` adds",
        );
        for path in ["/home/just data/x.npz is damaged", "'just data/x.npz'", "it is just data"] {
            check(path, path);
        }
    }

    #[test]
    fn a_project_that_uses_overtone_is_not_overtones() {
        let folder = std::env::temp_dir().join(format!("overtone-caller-{}", std::process::id()));
        let (theirs, ours) = (folder.join("theirs/deep"), folder.join("ours"));
        fs::create_dir_all(&theirs).unwrap();
        fs::create_dir_all(ours.join("crates/cli")).unwrap();
        fs::write(folder.join("theirs/justfile"), "train:\n  overtone train\n").unwrap();
        fs::write(ours.join("justfile"), "train:\n  overtone train\n").unwrap();
        fs::write(ours.join("crates/cli/Cargo.toml"), "[package]\nname = \"overtone\"\n").unwrap();
        let found = [is_project(&theirs), is_project(&ours), is_project(&ours.join("crates"))];
        fs::remove_dir_all(&folder).unwrap();
        assert_eq!(found, [false, true, true]);
    }
}
