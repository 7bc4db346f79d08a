//! Text nested a hundred thousand deep: no reader may recurse as deep as its input says.

use std::{fs, path::Path};

use crate::inputs::Inputs;
use crate::targets::targets;

const DEEP: usize = 100_000;

/// Nested arrays and tables as JSON and TOML write them, closed and not.
fn nested(toml: bool) -> Vec<String> {
    let lists = "[".repeat(DEEP) + &"]".repeat(DEEP);
    if toml {
        let key = vec!["a"; DEEP].join(".");
        let tables = "{a=".repeat(DEEP) + "1" + &"}".repeat(DEEP);
        return vec![
            format!("a = {lists}"),
            format!("a = {}", "[".repeat(DEEP)),
            format!("a = {tables}"),
            format!("{key} = 1"),
            format!("[{key}]\n"),
        ];
    }
    let objects = "{\"a\":".repeat(DEEP) + "1" + &"}".repeat(DEEP);
    vec![
        lists,
        "[".repeat(DEEP),
        "{\"a\":".repeat(DEEP),
        format!("{{\"targets\":{objects}}}"),
        format!("{{\"env_spec\":{objects}}}"),
        format!("{{\"overtone\":{objects}}}"),
        objects,
    ]
}

/// Whether all deep values stand under keys of Minari's description that the reader does not use:
/// those are skipped without descending.
fn is_passed_over(target: &str, path: &Path, text: &str) -> bool {
    let is_whole = text.starts_with('{') && text.ends_with('}');
    let asked_for = match target {
        "spaces" => ["env_spec", "overtone"].as_slice(),
        _ => &["env_spec"],
    };
    let is_asked_for = asked_for.iter().any(|key| text.contains(key));
    path.ends_with("metadata.json") && is_whole && !is_asked_for
}

#[test]
fn depth_is_refused() {
    let _alone = crate::alone();
    let mut read = Vec::new();
    for target in targets() {
        let folder = tempfile::tempdir().unwrap();
        let mut inputs = Inputs::new(&target, 1, folder.path()).unwrap();
        for at in 0..inputs.sound().count() {
            let path = inputs.place_sound(at).unwrap();
            let ending = path.extension().unwrap_or_default().to_string_lossy().into_owned();
            if ending != "toml" && ending != "json" {
                continue;
            }
            for text in nested(ending == "toml") {
                fs::write(&path, &text).unwrap();
                let refused = (target.read)(&path);
                // A page does without the state of a damaged checkpoint.
                let may_do_without = target.name == "page" && path.ends_with("state.json");
                let holds =
                    refused.is_err() || may_do_without || is_passed_over(target.name, &path, &text);
                let begins = text.get(..40).unwrap_or(&text);
                assert!(holds, "{}: {}: {begins}", target.name, path.display());
            }
            read.push(format!("{} {}", target.name, path.file_name().unwrap().display()));
        }
    }
    read.dedup();
    for expected in ["card card.toml", "evaluation evaluation.json", "page config.toml"] {
        assert!(read.iter().any(|name| name == expected), "{read:?}");
    }
}
