//! Leftover files of an earlier page with the same name.

use std::fs;
use std::path::Path;

/// Tables that some pages do not have.
const TABLES: [&str; 4] = ["cells", "seeds", "agents", "improvement"];

/// Names of the files of an earlier page called `stem` in `folder` that a new page may lack: the
/// pictures in its Markdown, and some tables.
pub(super) fn files(folder: &Path, stem: &str) -> Vec<String> {
    // Without a readable page, only the names of the tables are known.
    let markdown = fs::read(folder.join(format!("{stem}.md"))).unwrap_or_default();
    let mut files = pictures(&String::from_utf8_lossy(&markdown), stem);
    files.extend(TABLES.map(|table| format!("{stem}-{table}.csv")));
    files
}

/// The pictures in the Markdown of the page called `stem`.
fn pictures(markdown: &str, stem: &str) -> Vec<String> {
    let targets = markdown.split("](").skip(1).filter_map(|rest| rest.split(')').next());
    let is_picture = |name: &&str| {
        name.strip_prefix(stem).is_some_and(|rest| rest.starts_with('-'))
            && !name.contains('/')
            && (name.ends_with(".svg") || name.ends_with(".gif"))
    };
    targets.filter(is_picture).map(str::to_owned).collect()
}

#[cfg(test)]
mod tests {
    use super::pictures;

    #[test]
    fn only_pictures_of_the_page_are_recognized() {
        let markdown = "![loss](report-loss.svg)\n[a](report-x.md) ![b](../report-b.svg)\n\
                        ![c](report-/../c.svg)\n![video](report-video-1.gif)\n![d](reports-d.svg)\n\
                        ![e](report-e.png) ![f](other-f.svg)";
        assert_eq!(pictures(markdown, "report"), ["report-loss.svg", "report-video-1.gif"]);
        assert!(pictures("", "report").is_empty());
    }
}
