//! Blocks as Markdown, with pictures in separate files.

use super::document::Block;
use overtone_eval::table::Table;

/// Text with all markup escaped, on one line. The table escapes `|`.
fn escape(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for character in text.chars() {
        match character {
            '<' => escaped += "&lt;",
            '>' => escaped += "&gt;",
            '&' => escaped += "&amp;",
            '\\' | '`' | '*' | '_' | '[' | ']' | '#' | '~' => escaped.extend(['\\', character]),
            _ if character.is_control() => escaped.push(' '),
            _ => escaped.push(character),
        }
    }
    escaped
}

/// The complete page. Its pictures are the files `<stem>-<name>.svg` and `.gif`.
pub(super) fn render(title: &str, blocks: &[Block], stem: &str) -> String {
    let mut page = format!("# {}\n", escape(title));
    push(&mut page, blocks, stem, 2);
    page
}

/// Appends blocks. Section headings have level `level`; headings in a folded section are one level
/// deeper.
fn push(page: &mut String, blocks: &[Block], stem: &str, level: usize) {
    let heading = |level: usize, words: &str| format!("{} {}\n", "#".repeat(level), escape(words));
    for block in blocks {
        *page += "\n";
        match block {
            Block::Heading(words) => *page += &heading(level, words),
            Block::Subheading(words) => *page += &heading(level + 1, words),
            Block::Text(words) => *page += &format!("{}\n", escape(words)),
            Block::Lead(words) => *page += &format!("**{}**\n", escape(words)),
            Block::Code(words) => *page += &code(words),
            Block::Table(table) | Block::Groups(table, _) => *page += &escaped(table).to_markdown(),
            Block::Plot { title, .. } | Block::Video { title, .. } => {
                let file = block.picture(stem).map(|(file, _)| file).unwrap_or_default();
                *page += &format!("{0}\n\n![{0}]({file})\n", escape(title));
            }
            // GitHub's Markdown renders this element. Other renderers show its contents.
            Block::Fold(summary, blocks) => {
                // Text inside an HTML element is not parsed as Markdown.
                let summary = overtone_plot::escape(summary);
                *page += &format!("<details>\n<summary>{summary}</summary>\n");
                push(page, blocks, stem, level + 1);
                *page += "\n</details>\n";
            }
        }
    }
}

/// A code block whose fences are longer than any row of backticks inside.
fn code(words: &str) -> String {
    let runs = words.split(|character| character != '`').map(str::len);
    let fence = "`".repeat(runs.max().unwrap_or(0).max(2) + 1);
    format!("{fence}text\n{}\n{fence}\n", words.trim_end())
}

fn escaped(table: &Table) -> Table {
    let mut rows = table.rows().iter().map(|row| row.iter().map(|cell| escape(cell)));
    let mut escaped = Table::new(rows.next().into_iter().flatten());
    rows.for_each(|row| escaped.row(row.collect()));
    escaped
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_is_escaped() {
        let mut table = Table::new(["a"]);
        table.row(vec!["x|y\n[z](w) \\".into()]);
        let blocks = [
            Block::Text("<script> *b* `c`".into()),
            Block::Code("```\n<script>\n````".into()),
            Block::Table(table),
        ];
        let expected = "# t\\_t\n\n&lt;script&gt; \\*b\\* \\`c\\`\n\n\
                        `````text\n```\n<script>\n````\n`````\n\n\
                        | a |\n| --- |\n| x\\|y \\[z\\](w) \\\\ |\n";
        assert_eq!(render("t_t", &blocks, "report"), expected);
    }
}
