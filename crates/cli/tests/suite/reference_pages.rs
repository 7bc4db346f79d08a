//! `docs/commands.md` and `docs/settings.md`, which are generated from the program's help.
//!
//! `UPDATE_SENTENCES=1 cargo test … reference_pages` writes them again.

use std::fs;

use overtone_testkit::sentences;
use serde_json::Value;

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

/// Each command that has options, with its help.
fn commands(desk: &Desk, command: &str, all: &mut Vec<(String, String)>) {
    let help = desk.succeeds(format!("{command} --help").trim_start());
    let below = subcommands(&help);
    for name in &below {
        commands(desk, format!("{command} {name}").trim_start(), all);
    }
    if below.is_empty() {
        all.push((command.to_owned(), help));
    }
}

/// Every key in a command's help is accepted with its default, and a misspelt one is refused with
/// the right one.
#[test]
fn every_command_takes_keys_and_refuses_others() {
    let desk = Desk::new();
    let mut all = Vec::new();
    commands(&desk, "", &mut all);
    assert!(all.len() > 15, "{all:?}");
    for (command, help) in all {
        let line = |line: &'_ str| {
            let word = line.strip_prefix("  ").filter(|word| !word.starts_with(' '))?;
            word.split_once('=').map(|(key, value)| (key.to_owned(), value.to_owned()))
        };
        let (_, options) = help.split_once("their defaults").expect(&command);
        let keys: Vec<(String, String)> = options.lines().filter_map(line).collect();
        let (longest, _) = keys.iter().max_by_key(|(key, _)| key.len()).expect(&command);
        // Commands of a task need one.
        let task = if ["train", "study run"].contains(&&*command) { " env=hopper" } else { "" };
        let words: Vec<String> = keys
            .iter()
            .filter(|(key, _)| task.is_empty() || key != "task")
            .map(|(key, value)| format!("{key}={value}"))
            .collect();
        let line = format!("{command}{task} {} {longest}x=1", words.join(" "));
        let refused = desk.run(&line);
        let expected = format!("unknown option `{longest}x`; did you mean `{longest}`?");
        assert!(
            refused.code != Some(0) && refused.stderr.contains(&expected),
            "{line}: {refused:?}"
        );
    }
}

/// Flags that became keys stay spellings of them.
#[test]
fn a_flag_of_data_is_a_spelling_of_its_key() {
    let desk = Desk::new();
    let file = project().join("datasets/starter/mujoco/hopper_medium.hdf5");
    let file = file.display();
    for [flags, keys] in [
        [format!("inspect {file} --json"), format!("inspect path={file} json=true")],
        [
            format!("lint --json --task mujoco/hopper {file}"),
            format!("lint {file} task=mujoco/hopper json=true"),
        ],
        [
            format!("lint {file} --layout=odd --all-frames"),
            format!("lint {file} layout=odd all_frames=true"),
        ],
    ] {
        let [flags, keys] = [flags, keys].map(|line| desk.run(&format!("data {line}")));
        assert_eq!((flags.code, flags.stdout), (keys.code, keys.stdout));
        assert_eq!(flags.stderr, keys.stderr);
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

/// README's results are rows of their page, which are made of its raw file.
#[test]
fn the_results_in_readme_are_on_their_page() {
    let read = |path: &str| fs::read_to_string(project().join(path)).unwrap();
    let [readme, page, raw] =
        ["README.md", "docs/results/d3rlpy.md", "docs/results/raw/earned.json"].map(read);
    let raw: Value = serde_json::from_str(&raw).unwrap();
    let rows = raw["rows"].as_array().unwrap();
    let robots = ["hopper", "walker2d", "halfcheetah"];
    // The returns of all seeds of a robot.
    let means = |robot: &str, algorithm: &str, side: &str, mode: &str| -> Vec<f64> {
        let is_of = |row: &&Value| row["robot"] == robot && row["algorithm"] == algorithm;
        rows.iter().filter(is_of).map(|row| row[side][mode].as_f64().unwrap()).collect()
    };
    let cells = |of: &dyn Fn(&str) -> Vec<f64>| {
        robots.map(|robot| {
            let all = of(robot);
            assert_eq!(all.len(), 4, "four seeds");
            let mean = all.iter().sum::<f64>() / 4.0;
            let [low, high] =
                [f64::min, f64::max].map(|end| all.iter().copied().reduce(end).unwrap());
            format!("{mean:.0} [{low:.0}, {high:.0}]")
        })
    };
    let agents = [
        ("Overtone, Decision Transformer (default)", "decision_transformer", "overtone", "mean"),
        ("the same, top 10 %", "decision_transformer", "overtone", "top_10"),
        ("Overtone, IQL", "iql", "overtone", "mean"),
        ("d3rlpy, IQL", "iql", "d3rlpy", "mean"),
        ("Overtone, TD3+BC", "td3_bc", "overtone", "mean"),
        ("d3rlpy, TD3+BC", "td3_bc", "d3rlpy", "mean"),
        ("d3rlpy, Decision Transformer", "decision_transformer", "d3rlpy", "mean"),
    ];
    let mut expected = vec![(
        "dataset, mean / best",
        robots.map(|robot| {
            let ends = &raw["recorded"][robot];
            format!("{:.0} / {:.0}", ends[0].as_f64().unwrap(), ends[1].as_f64().unwrap())
        }),
    )];
    for (name, algorithm, side, mode) in agents {
        expected.push((name, cells(&|robot| means(robot, algorithm, side, mode))));
    }
    let best = |robot: &str| {
        let all = ["decision_transformer", "td3_bc", "iql"]
            .map(|algorithm| means(robot, algorithm, "d3rlpy", "mean"));
        (0..4).map(|seed| all.iter().map(|means| means[seed]).fold(0.0, f64::max)).collect()
    };
    expected.push(("d3rlpy, best of the three for each seed", cells(&best)));
    let (_, results) = readme.split_once("\n## Results\n").unwrap();
    let table = results.lines().skip_while(|line| !line.starts_with('|'));
    let table: Vec<&str> = table.take_while(|line| line.starts_with('|')).skip(2).collect();
    assert_eq!(table.len(), expected.len(), "{table:?}");
    for (row, (name, cells)) in table.iter().zip(&expected) {
        let cells = format!("| {} |", cells.join(" | "));
        assert!(row.starts_with(&format!("| {name} |")) && row.ends_with(&cells), "{row}: {cells}");
        assert!(page.contains(&cells), "{name}: {cells}");
    }
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
