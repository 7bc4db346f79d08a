//! What an experiment leaves behind: one page in Markdown, its tables as CSV, its plots as
//! SVG and PNG.

use std::path::Path;
use std::{fs, io};

use overtone_eval::table::Table;

use overtone_plot::LinePlot;

/// Seeds that a comparison takes.
const ENOUGH: usize = 4;

/// A title that says so where `n` repetitions, each a `what` such as a seed, are too few for a
/// comparison.
pub fn titled(title: &str, n: usize, what: &str) -> String {
    match n {
        ENOUGH.. => title.to_owned(),
        1 => format!("{title} (1 {what}, no comparison)"),
        _ => format!("{title} ({n} {what}s, no comparison)"),
    }
}

/// Seeds for a sentence.
pub fn listed(seeds: &[u64]) -> String {
    seeds.iter().map(u64::to_string).collect::<Vec<_>>().join(", ")
}

/// `0.1695 ± 0.0523`, or the mean alone.
pub fn plus_minus(mean: f64, sd: Option<f64>, digits: usize) -> String {
    match sd {
        Some(sd) => format!("{mean:.digits$} ± {sd:.digits$}"),
        None => format!("{mean:.digits$}"),
    }
}

/// A page and the files it names, in memory until [`Page::write`].
#[derive(Clone, Debug)]
pub struct Page {
    name: String,
    text: String,
    files: Vec<(String, Vec<u8>)>,
}

impl Page {
    /// A page to be written as `name.md`, that begins with its title and the command that
    /// makes it.
    pub fn new(name: &str, title: &str, command: &str) -> Self {
        let text = format!("# {title}\n\n```text\n{command}\n```\n");
        Self { name: name.to_owned(), text, files: Vec::new() }
    }

    /// A paragraph, in Markdown.
    pub fn text(&mut self, markdown: &str) {
        self.text += &format!("\n{}\n", markdown.trim_end());
    }

    /// A section's heading.
    pub fn heading(&mut self, words: &str) {
        self.text += &format!("\n## {words}\n");
    }

    /// A table on the page, and as `name.csv`.
    pub fn table(&mut self, name: &str, table: &Table) {
        self.text += &format!("\n{}", table.to_markdown());
        self.csv(name, table);
    }

    /// A table as `name.csv` alone: one too long to read.
    pub fn csv(&mut self, name: &str, table: &Table) {
        self.files.push((format!("{name}.csv"), table.to_csv().into_bytes()));
    }

    /// A plot as `name.svg` and `name.png`, the former shown on the page.
    pub fn plot(&mut self, name: &str, plot: &LinePlot) {
        let title = plot.title.replace(['[', ']'], "");
        self.text += &format!("\n![{title}]({name}.svg)\n");
        self.files.push((format!("{name}.svg"), plot.to_svg().into_bytes()));
        self.files.push((format!("{name}.png"), plot.to_png()));
    }

    /// The page itself.
    pub fn markdown(&self) -> &str {
        &self.text
    }

    /// Makes a folder for pages and finds out whether files can be written there, before the
    /// work that fills them.
    ///
    /// # Errors
    /// When they cannot, or a folder in it has a name as a page's files have.
    pub fn check_writable(folder: &Path) -> io::Result<()> {
        fs::create_dir_all(folder)?;
        for entry in fs::read_dir(folder)? {
            let path = entry?.path();
            let is_named_as_a_file = path.extension().is_some_and(|end| {
                ["md", "csv", "svg", "png"].iter().any(|written| end == *written)
            });
            if is_named_as_a_file && path.is_dir() {
                let reason = format!("{} is a folder", path.display());
                return Err(io::Error::new(io::ErrorKind::IsADirectory, reason));
            }
        }
        overtone_files::check_writable(&folder.join("page"))
            .map_err(|error| io::Error::new(error.kind(), format!("{}: {error}", folder.display())))
    }

    /// Writes page, tables and plots into `folder`, which is made if it is not there. The page
    /// comes last: where it stands, everything it names does.
    ///
    /// # Errors
    /// When a file cannot be written.
    pub fn write(&self, folder: &Path) -> io::Result<()> {
        fs::create_dir_all(folder)?;
        let page = (format!("{}.md", self.name), self.text.clone().into_bytes());
        for (name, bytes) in self.files.iter().chain([&page]) {
            let path = folder.join(name);
            overtone_files::replace(&path, bytes).map_err(|error| {
                io::Error::new(error.kind(), format!("{}: {error}", path.display()))
            })?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use overtone_plot::Line;

    #[test]
    fn a_page_and_everything_it_names_is_written() {
        let folder = tempfile::tempdir().unwrap();
        let inside = folder.path().join("a/b");
        let mut table = Table::new(&["x"]);
        table.row(vec!["1".into()]);
        let mut page = Page::new("found", "What was found", "just look");
        page.heading("Numbers");
        page.text("Two sentences.\n");
        page.table("numbers", &table);
        page.csv("all", &table);
        let lines = vec![Line::new("", vec![[0.0, 0.0], [1.0, 1.0]])];
        page.plot("curve", &LinePlot { title: "A [curve]".into(), lines, ..Default::default() });
        page.write(&inside).unwrap();
        let read = |name: &str| fs::read(inside.join(name)).unwrap();
        let expected = "# What was found\n\n```text\njust look\n```\n\n## Numbers\n\nTwo sentences.\n\n\
                        | x |\n| ---: |\n| 1 |\n\n![A curve](curve.svg)\n";
        assert_eq!(String::from_utf8(read("found.md")).unwrap(), expected);
        assert_eq!(read("numbers.csv"), b"x\n1\n");
        assert_eq!(read("all.csv"), read("numbers.csv"));
        assert!(
            read("curve.svg").starts_with(b"<svg") && read("curve.png").starts_with(b"\x89PNG")
        );
        assert_eq!(fs::read_dir(&inside).unwrap().count(), 5, "and nothing else");
    }

    #[test]
    fn a_folder_in_the_place_of_a_file_is_found_before_the_work() {
        let folder = tempfile::tempdir().unwrap();
        fs::create_dir(folder.path().join("other")).unwrap();
        Page::check_writable(folder.path()).unwrap();
        fs::create_dir(folder.path().join("images.csv")).unwrap();
        let refused = Page::check_writable(folder.path()).unwrap_err().to_string();
        assert!(refused.contains("images.csv is a folder"), "{refused}");
    }

    #[test]
    fn few_seeds_are_no_comparison() {
        assert_eq!(titled("Heads", 4, "seed"), "Heads");
        assert_eq!(titled("Heads", 3, "seed"), "Heads (3 seeds, no comparison)");
        assert_eq!(titled("Heads", 1, "split"), "Heads (1 split, no comparison)");
    }

    #[test]
    fn a_folder_that_cannot_be_made_is_an_error() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("file");
        fs::write(&file, "").unwrap();
        assert!(Page::new("a", "b", "c").write(&file.join("in")).is_err());
    }
}
