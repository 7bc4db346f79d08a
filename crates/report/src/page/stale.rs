//! Leftover files of an earlier page with the same name.

use std::fs;
use std::path::Path;

use super::run_files::PageError;

/// Plots that a page can have, apart from plots of a protocol or of an algorithm's figures.
const PLOTS: [&str; 13] = [
    "loss",
    "episodes",
    "returns",
    "cells",
    "learning-rate",
    "grad-norm",
    "return",
    "actions",
    "temperature",
    "return-quantile",
    "best-percent",
    "estimates",
    "estimates-returns",
];
/// Tables that some pages do not have.
const TABLES: [&str; 3] = ["cells", "agents", "improvement"];

/// Names of files in `folder` that an earlier page called `stem` can have written and that are not
/// in `files`. Files of other pages in the same directory are excluded.
pub(super) fn files(
    folder: &Path,
    stem: &str,
    files: &[(String, Vec<u8>)],
) -> Result<Vec<String>, PageError> {
    let mut names = Vec::new();
    for entry in fs::read_dir(folder).map_err(PageError::file(folder))? {
        let entry = entry.map_err(PageError::file(folder))?;
        if entry.file_type().is_ok_and(|kind| kind.is_file()) {
            names.extend(entry.file_name().into_string());
        }
    }
    let others: Vec<String> = names
        .iter()
        .filter_map(|name| name.strip_suffix(".md")?.strip_prefix(stem))
        .filter(|rest| rest.starts_with('-'))
        .map(|rest| format!("{stem}{rest}-"))
        .collect();
    names.retain(|name| {
        let rest = name.strip_prefix(stem).and_then(|rest| rest.strip_prefix('-'));
        rest.is_some_and(is_of_a_page)
            && !files.iter().any(|(own, _)| own == name)
            && !others.iter().any(|other| name.starts_with(other))
    });
    Ok(names)
}

/// Whether a page can have a file named `<stem>-<rest>`.
fn is_of_a_page(rest: &str) -> bool {
    // `loss-2`, `loss-part-2`.
    let is_number = |word: &str| !word.is_empty() && word.bytes().all(|b| b.is_ascii_digit());
    let numbers = |words: &str| words.split('-').all(|word| word == "part" || is_number(word));
    let is_plot = |name: &str, plot: &str| {
        let rest = name.strip_prefix(plot);
        rest.is_some_and(|rest| rest.is_empty() || rest.strip_prefix('-').is_some_and(numbers))
    };
    match rest.rsplit_once('.') {
        Some((name, "svg")) => {
            name.starts_with("profile-")
                || name.starts_with("figure-")
                || PLOTS.iter().any(|plot| is_plot(name, plot))
        }
        Some((name, "gif")) => name.strip_prefix("video-").is_some_and(is_number),
        Some((name, "csv")) => TABLES.contains(&name),
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::is_of_a_page;

    #[test]
    fn only_file_names_of_pages_are_recognized() {
        let own = [
            "loss.svg",
            "loss-2.svg",
            "loss-2-part-1.svg",
            "grad-norm.svg",
            "return-quantile.svg",
            "profile-matched.svg",
            "actions-12.svg",
            "figure-td-loss.svg",
            "episodes-2-part-1.svg",
            "video-3.gif",
            "estimates-returns-1.svg",
            "improvement.csv",
        ];
        assert_eq!(own.map(is_of_a_page), [true; 12]);
        let others = [
            "losses.svg",
            "loss-final.svg",
            "loss.png",
            "notes.svg",
            "video.gif",
            "video-best.gif",
            "scores.csv",
            "mine.csv",
            "loss",
        ];
        assert_eq!(others.map(is_of_a_page), [false; 9]);
    }
}
