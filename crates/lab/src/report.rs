//! The tables and plots of a study, and the page that shows them.
//!
//! A page is written by hand; a study fills in its tables. The place of a table is
//!
//! ```text
//! <!-- table NAME -->
//!
//! <!-- end -->
//! ```
//!
//! and what stands between the two lines is replaced. `<!-- command -->` is the place of the
//! command that made the page. Longer tables and plots are files, which the page names. Where there
//! is no page yet, one without prose is written.

use std::path::Path;
use std::{fs, io};

use overtone_eval::table::Table;
use overtone_plot::{Line, LinePlot, Scale};

/// The end of a place.
const END: &str = "<!-- end -->";

/// `0.1695 ± 0.0523`, or the mean alone.
pub fn plus_minus(mean: f64, sd: Option<f64>, digits: usize) -> String {
    match sd {
        Some(sd) => format!("{mean:.digits$} ± {sd:.digits$}"),
        None => format!("{mean:.digits$}"),
    }
}

/// Seeds or sizes separated by commas.
pub fn listed<T: ToString>(values: &[T]) -> String {
    values.iter().map(T::to_string).collect::<Vec<_>>().join(",")
}

/// An empty table with these columns, separated by ` | `.
pub fn table(columns: &str) -> Table {
    Table::new(columns.split(" | "))
}

/// A plot of lines between these axes.
pub fn plot(
    title: impl Into<String>,
    [x_label, y_label]: [&str; 2],
    [x_scale, y_scale]: [Scale; 2],
    lines: Vec<Line>,
) -> LinePlot {
    let (x_label, y_label) = (x_label.into(), y_label.into());
    LinePlot { title: title.into(), x_label, y_label, x_scale, y_scale, lines }
}

/// Both axes linear.
pub const LINEAR: [Scale; 2] = [Scale::Linear; 2];
/// Both axes logarithmic.
pub const LOG: [Scale; 2] = [Scale::Log; 2];

/// A part of a report.
#[derive(Clone, Debug)]
enum Part {
    /// On the page.
    Table(Table),
    /// As `NAME.csv`.
    Csv(Table),
    /// As `NAME.svg`, which the page shows, and `NAME.png`.
    Plot(LinePlot),
}

/// Tables and plots by name, in the order of the page.
#[derive(Clone, Debug, Default)]
pub struct Report {
    parts: Vec<(String, Part)>,
}

impl Report {
    /// Adds a table on the page.
    pub fn table(&mut self, name: impl Into<String>, table: Table) {
        self.parts.push((name.into(), Part::Table(table)));
    }

    /// Adds a table as `NAME.csv`, which the page names.
    pub fn csv(&mut self, name: impl Into<String>, table: Table) {
        self.parts.push((name.into(), Part::Csv(table)));
    }

    /// Adds a plot, `NAME.svg` and `NAME.png`.
    pub fn plot(&mut self, name: impl Into<String>, plot: LinePlot) {
        self.parts.push((name.into(), Part::Plot(plot)));
    }

    /// The tables of the page.
    pub fn tables(&self) -> impl Iterator<Item = (&str, &Table)> {
        self.parts.iter().filter_map(|(name, part)| match part {
            Part::Table(table) => Some((name.as_str(), table)),
            _ => None,
        })
    }

    /// The files beside the page, and their contents.
    fn files(&self) -> Vec<(String, Vec<u8>)> {
        let mut files = Vec::new();
        for (name, part) in &self.parts {
            match part {
                Part::Table(_) => {}
                Part::Csv(table) => {
                    files.push((format!("{name}.csv"), table.to_csv().into_bytes()));
                }
                Part::Plot(plot) => {
                    files.push((format!("{name}.svg"), plot.to_svg().into_bytes()));
                    files.push((format!("{name}.png"), plot.to_png()));
                }
            }
        }
        files
    }

    /// A page without prose: the places of all tables, and all files.
    fn blank(&self, title: &str) -> String {
        let mut page = format!("# {title}\n\n<!-- command -->\n\n{END}\n");
        for (name, part) in &self.parts {
            match part {
                Part::Table(_) => page += &format!("\n<!-- table {name} -->\n\n{END}\n"),
                Part::Csv(_) => page += &format!("\n[{name}.csv]({name}.csv)\n"),
                Part::Plot(plot) => {
                    let title = plot.title.replace(['[', ']'], "");
                    page += &format!("\n![{title}]({name}.svg)\n");
                }
            }
        }
        page
    }

    /// `page` with its places filled.
    fn filled(&self, page: &str, command: &str) -> io::Result<String> {
        let mut page = fill(page, "<!-- command -->", &format!("```text\n{command}\n```\n"))?;
        for (name, table) in self.tables() {
            page = fill(&page, &format!("<!-- table {name} -->"), &table.to_markdown())?;
        }
        Ok(page)
    }

    /// Writes the tables and plots into `folder`, then fills the page `NAME.md` there.
    ///
    /// # Errors
    /// When a file cannot be written, or a place on the page has no end.
    pub fn write(&self, folder: &Path, name: &str, command: &str) -> io::Result<()> {
        fs::create_dir_all(folder)?;
        let path = folder.join(format!("{name}.md"));
        let page = match fs::read_to_string(&path) {
            Ok(page) => page,
            Err(error) if error.kind() == io::ErrorKind::NotFound => self.blank(name),
            Err(error) => return Err(named(&path, error)),
        };
        let page = self.filled(&page, command).map_err(|error| named(&path, error))?;
        let page = (format!("{name}.md"), page.into_bytes());
        for (file, bytes) in self.files().iter().chain([&page]) {
            let path = folder.join(file);
            overtone_files::replace(&path, bytes).map_err(|error| named(&path, error))?;
        }
        Ok(())
    }
}

/// Makes `folder` and checks that files can be written there, before the work that fills them.
///
/// # Errors
/// When they cannot.
pub fn check_writable(folder: &Path) -> io::Result<()> {
    fs::create_dir_all(folder)?;
    overtone_files::check_writable(&folder.join("page")).map_err(|error| named(folder, error))
}

fn named(path: &Path, error: io::Error) -> io::Error {
    io::Error::new(error.kind(), format!("{}: {error}", path.display()))
}

/// `page` with `body` in the place that `start` begins; unchanged where there is no such place.
fn fill(page: &str, start: &str, body: &str) -> io::Result<String> {
    let Some((before, rest)) = page.split_once(start) else { return Ok(page.to_owned()) };
    let Some((_, after)) = rest.split_once(END) else {
        let reason = format!("`{start}` has no `{END}` below it");
        return Err(io::Error::new(io::ErrorKind::InvalidData, reason));
    };
    Ok(format!("{before}{start}\n\n{body}\n{END}{after}"))
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "tests")]
mod tests {
    use super::*;

    fn report(cell: &str) -> Report {
        let mut table = Table::new(["head", "KL"]);
        table.row(vec!["linear".into(), cell.into()]);
        let mut report = Report::default();
        report.table("kl", table.clone());
        report.csv("kl-runs", table);
        let lines = vec![Line::new("a", vec![[0.0, 1.0], [1.0, 2.0]])];
        report.plot("curve", LinePlot { title: "A [curve]".into(), lines, ..Default::default() });
        report
    }

    #[test]
    fn a_page_without_prose_has_every_part() {
        let folder = tempfile::tempdir().unwrap();
        report("0.5").write(folder.path(), "kl", "just lab kl").unwrap();
        let page = fs::read_to_string(folder.path().join("kl.md")).unwrap();
        assert_eq!(
            page,
            "# kl\n\n<!-- command -->\n\n```text\njust lab kl\n```\n\n<!-- end -->\n\n\
             <!-- table kl -->\n\n| head | KL |\n| --- | ---: |\n| linear | 0.5 |\n\n\
             <!-- end -->\n\n[kl-runs.csv](kl-runs.csv)\n\n![A curve](curve.svg)\n"
        );
        for name in ["kl-runs.csv", "curve.svg", "curve.png"] {
            assert!(folder.path().join(name).is_file(), "{name}");
        }
        assert!(!folder.path().join("kl.csv").exists());
    }

    #[test]
    fn tables_are_replaced_and_prose_stays() {
        let page = "# By hand\n\n<!-- table kl -->\nold\n<!-- end -->\n\nIt falls.\n";
        let filled = report("0.25").filled(page, "just lab kl").unwrap();
        assert!(filled.starts_with("# By hand\n\n<!-- table kl -->\n\n| head"), "{filled}");
        assert!(filled.contains("0.25") && filled.ends_with("<!-- end -->\n\nIt falls.\n"));
        assert!(!filled.contains("old") && !filled.contains("just lab"), "{filled}");
        // Filling twice changes nothing.
        assert_eq!(report("0.25").filled(&filled, "").unwrap(), filled);
        let error = report("1").filled("<!-- table kl -->\n", "").unwrap_err().to_string();
        assert!(error.contains("table kl"), "{error}");
    }
}
