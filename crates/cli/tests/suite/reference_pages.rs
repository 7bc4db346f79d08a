//! `docs/commands.md` and `docs/settings.md`, which are generated from the program's help.
//!
//! `UPDATE_SENTENCES=1 cargo test … reference_pages` writes them again.

use overtone_testkit::sentences;

use crate::desk::{Desk, project};

/// The commands below `command`, by its help.
fn subcommands(help: &str) -> Vec<String> {
    let list = help.split_once("\nCommands:\n").map_or("", |(_, list)| list);
    let list = list.lines().take_while(|line| !line.is_empty());
    let names = list.filter(|line| line.starts_with("  ") && !line.starts_with("   "));
    let names = names.filter_map(|line| line.split_whitespace().next());
    names.filter(|name| *name != "help").map(str::to_owned).collect()
}

/// `command`, then the commands below it, each with its help.
fn describe(desk: &Desk, command: &str, page: &mut String) {
    let help = desk.succeeds(format!("{command} --help").trim_start());
    let lines = help.lines().map(str::trim_end).collect::<Vec<_>>().join("\n");
    let title = format!("overtone {command}");
    *page += &format!("\n## {}\n\n```text\n{}\n```\n", title.trim_end(), lines.trim_end());
    for name in subcommands(&help) {
        describe(desk, format!("{command} {name}").trim_start(), page);
    }
}

#[test]
fn the_page_of_commands_is_current() {
    let mut page = "# Commands\n\nEvery command of `overtone` with its options. \
                    This page is for looking up; the program prints the same with `--help`. \
                    In a clone, `just train …` compiles first and then runs `overtone train …`.\n\
                    The settings of `overtone train` are in [settings.md](settings.md).\n"
        .to_owned();
    describe(&Desk::new(), "", &mut page);
    sentences::check_file(&page, &project().join("docs/commands.md"));
}

#[test]
fn the_page_of_settings_is_current() {
    let help = Desk::new().succeeds("train --help-all");
    let (keys, rest) = help.split_once("\nDefaults that differ").unwrap();
    let (_, keys) = keys.split_once("used:\n").unwrap();
    let mut page = "# Settings\n\nEvery setting of `overtone train`, its default and what it does. \
                    This page is for looking up; `overtone train --help-all` prints the same.\n\n\
                    ```text\novertone train env=hopper train.updates=500 head=fourier head.bins=50\n\
                    ```\n"
        .to_owned();
    let mut section: Option<String> = None;
    for (key, doc) in entries(keys) {
        let (key, value) = key.split_once('=').unwrap();
        let own = match key.split_once('.') {
            Some((own, _)) => own,
            None if ["head", "attention"].contains(&key) => key,
            None => "",
        };
        if section.as_deref() != Some(own) {
            let title = if own.is_empty() { "Run" } else { own };
            page += &format!("\n## {title}\n\n| setting | default | |\n| --- | --- | --- |\n");
            section = Some(own.to_owned());
        }
        let escaped = |text: &str| text.trim().replace('|', "\\|").replace('<', "&lt;");
        page += &format!("| `{key}` | {} | {} |\n", code(value), escaped(&doc));
    }
    page += "\n## Defaults that depend on the task, the algorithm or the profile\n\n\
             The defaults above are those of `env=hopper`.\n\n| | |\n| --- | --- |\n";
    let (rest, _) = rest.split_once("\nExamples:").unwrap();
    for (choice, words) in entries(rest) {
        let words: Vec<String> = words.split(' ').map(|word| format!("`{word}`")).collect();
        page += &format!("| `{}` | {} |\n", choice.trim_end_matches(':'), words.join(" "));
    }
    sentences::check_file(&page, &project().join("docs/settings.md"));
}

/// The lines that begin with two spaces, each with the lines that are indented below it.
fn entries(help: &str) -> Vec<(String, String)> {
    let mut entries: Vec<(String, String)> = Vec::new();
    for line in help.lines() {
        match (line.starts_with("      "), entries.last_mut()) {
            (true, Some((_, text))) => {
                let space = if text.is_empty() { "" } else { " " };
                *text += &format!("{space}{}", line.trim());
            }
            _ if line.starts_with("  ") => entries.push((line.trim().into(), String::new())),
            _ => {}
        }
    }
    entries
}

/// A value as code, or an empty text.
fn code(value: &str) -> String {
    if value.is_empty() { String::new() } else { format!("`{value}`") }
}
