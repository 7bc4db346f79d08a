//! Blocks as one self-contained HTML file without scripts.

use base64::prelude::{BASE64_STANDARD, Engine};
use overtone_plot::escape;

use super::document::Block;
use overtone_eval::table::Table;

/// Content security policy: the browser refuses to load or run anything, whatever the page
/// contains.
const POLICY: &str = "default-src 'none'; style-src 'unsafe-inline'; img-src data:";

/// Cells with more characters are shown as sentences.
const SENTENCE: usize = 48;

const STYLE: &str = "\
:root { color-scheme: light dark; --ink: #1b1b1b; --paper: #fff; --faint: #666; --line: #ddd; --code: #f4f4f4 }
@media (prefers-color-scheme: dark) {
  :root { --ink: #e4e4e4; --paper: #16181c; --faint: #9a9a9a; --line: #3a3d42; --code: #23262b }
  /* Black on white becomes the page's colours. The hues of curves stay the same. */
  figure svg { filter: invert(.91) hue-rotate(180deg) }
}
* { overflow-wrap: anywhere }
body { color: var(--ink); background: var(--paper); font: 15px/1.5 system-ui, sans-serif; max-width: 92rem; margin: 2rem auto; padding: 0 1rem }
h1 { font-size: 1.6rem } h2, details h3 { font-size: 1.25rem; margin-top: 2.2rem; border-bottom: 1px solid var(--line) } h3, h4 { font-size: 1.05rem }
p { max-width: 50rem }
p.lead { font-size: 1.15rem; font-weight: 600; max-width: 60rem }
/* A shadow at an edge shows that the table continues there. */
.wide { overflow-x: auto; max-width: 100%; background: linear-gradient(90deg, var(--paper) 30%, transparent) 0 0 / 3rem 100% local, linear-gradient(270deg, var(--paper) 30%, transparent) 100% 0 / 3rem 100% local, linear-gradient(90deg, var(--line), transparent) 0 0 / 1rem 100% scroll, linear-gradient(270deg, var(--line), transparent) 100% 0 / 1rem 100% scroll; background-repeat: no-repeat }
table { border-collapse: collapse; font-variant-numeric: tabular-nums; font-size: .82rem; margin: .5rem 0 }
th, td { padding: .2rem .3rem; text-align: right; border-bottom: 1px solid var(--line); white-space: nowrap }
th { color: var(--faint); font-weight: 600; white-space: normal; overflow-wrap: normal; vertical-align: bottom }
th[scope=row] { color: inherit; font-weight: inherit; vertical-align: inherit }
.left { text-align: left }
th:first-child, td:first-child { white-space: normal; min-width: 8rem; overflow-wrap: break-word }
th.group { color: var(--ink); text-align: left; padding-top: .7rem }
td.words, th.words { text-align: left; white-space: normal; min-width: min(18rem, 60vw) }
pre { background: var(--code); padding: .7rem; white-space: pre-wrap; overflow-wrap: anywhere; font-size: .85rem }
summary { cursor: pointer; color: var(--faint) }
svg, img { max-width: 100%; height: auto }
figure svg { overflow: visible }
figcaption { color: var(--faint); font-size: .9rem; margin-bottom: .2rem }
figure { min-width: 0; display: inline-block; vertical-align: top; margin: .5rem 1.5rem .8rem 0; max-width: 100% }
figure img { width: 30rem }
/* Pictures fill two columns if both are readable. */
.plots { columns: 2; column-gap: 1.2rem }
.plots.one { columns: 1; max-width: 50rem }
.plots figure { display: block; break-inside: avoid; width: 100%; margin: 0 0 .8rem }
figure.plot svg { width: 100% }
@media (max-width: 60rem) { .plots { columns: 1 } figure.plot svg { max-width: 40rem } }
/* A narrow screen shrinks plots with their text, so the text is larger there. */
@media (max-width: 30rem) { figure.plot svg text:not(.key) { font-size: 16px } }
";

/// The complete HTML file.
pub(super) fn render(title: &str, blocks: &[Block]) -> String {
    let title = escape(title);
    let mut page = format!(
        "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n\
         <meta http-equiv=\"Content-Security-Policy\" content=\"{POLICY}\">\n\
         <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n\
         <title>{title}</title>\n<style>\n{STYLE}</style>\n</head>\n<body>\n<h1>{title}</h1>\n"
    );
    push(&mut page, blocks, 2);
    page + "</body>\n</html>\n"
}

/// Appends blocks, adjacent pictures in columns. Section headings have level `level`; headings in a
/// folded section are one level deeper.
fn push(page: &mut String, blocks: &[Block], level: usize) {
    let is_picture = |block: &Block| matches!(block, Block::Plot { .. } | Block::Video { .. });
    // Small pictures alone follow each other in rows.
    let is_large = |block: &Block| matches!(block, Block::Plot { svg, .. } if !is_small(svg));
    for adjacent in blocks.chunk_by(|one, next| is_picture(one) && is_picture(next)) {
        if adjacent.iter().any(is_large) {
            let class = if adjacent.len() == 1 { "plots one" } else { "plots" };
            *page += &format!("<div class=\"{class}\">\n");
            push_each(page, adjacent, level);
            *page += "</div>\n";
        } else {
            push_each(page, adjacent, level);
        }
    }
}

/// Appends blocks one after another.
fn push_each(page: &mut String, blocks: &[Block], level: usize) {
    let heading = |level: usize, words: &str| format!("<h{level}>{}</h{level}>\n", escape(words));
    for block in blocks {
        match block {
            Block::Heading(words) => *page += &heading(level, words),
            Block::Subheading(words) => *page += &heading(level + 1, words),
            Block::Text(words) => *page += &format!("<p>{}</p>\n", escape(words)),
            Block::Lead(words) => *page += &format!("<p class=\"lead\">{}</p>\n", escape(words)),
            // HTML ignores a line break directly after `<pre>`.
            Block::Code(words) => *page += &format!("<pre>\n{}</pre>\n", escape(words)),
            Block::Table(table) => push_table(page, table, 0),
            Block::Groups(table, n) => push_table(page, table, *n),
            Block::Plot { title, svg, .. } => {
                let words = escape(title);
                let label = format!("<svg role=\"img\" aria-label=\"{words}\" ");
                let svg = svg.replacen("<svg ", &label, 1);
                // Small plots keep their size. The others fill a column.
                let class = if is_small(&svg) { "" } else { " class=\"plot\"" };
                *page +=
                    &format!("<figure{class}>\n<figcaption>{words}</figcaption>\n{svg}</figure>\n");
            }
            Block::Video { title, gif, .. } => {
                let words = escape(title);
                *page += &format!(
                    "<figure>\n<figcaption>{words}</figcaption>\n\
                     <img loading=\"lazy\" alt=\"{words}\" src=\"data:image/gif;base64,"
                );
                BASE64_STANDARD.encode_string(gif, page);
                *page += "\">\n</figure>\n";
            }
            Block::Fold(summary, blocks) => {
                *page += &format!("<details>\n<summary>{}</summary>\n", escape(summary));
                push(page, blocks, level + 1);
                *page += "</details>\n";
            }
        }
    }
}

/// Whether a picture is narrower than half of a page.
fn is_small(svg: &str) -> bool {
    let width = svg.split_once(" width=\"").and_then(|(_, rest)| rest.split_once('"'));
    width.and_then(|(width, _)| width.parse::<f64>().ok()).is_some_and(|width| width < 400.0)
}

/// Appends a table. The values of the first `grouped` columns become a heading above the rows that
/// share them.
fn push_table(page: &mut String, table: &Table, grouped: usize) {
    *page += "<div class=\"wide\"><table>\n<thead>\n";
    let rows = table.rows();
    let n_columns = rows.first().map_or(0, Vec::len);
    let is_of_numbers: Vec<bool> =
        (0..n_columns).map(|column| table.is_of_numbers(column)).collect();
    for (i, row) in rows.iter().enumerate() {
        if i == 1 {
            *page += "</thead>\n<tbody>\n";
        }
        if grouped > 0 && i > 0 && (i == 1 || row[..grouped] != rows[i - 1][..grouped]) {
            if i > 1 {
                *page += "</tbody>\n<tbody>\n";
            }
            let shared = rows[0].iter().zip(row).take(grouped).filter(|(_, cell)| !cell.is_empty());
            let words = shared.map(|(name, cell)| match name.as_str() {
                // A task's title does not need the column's name.
                "task" => cell.clone(),
                _ => format!("{name} {cell}"),
            });
            *page += &format!(
                "<tr><th class=\"group\" scope=\"rowgroup\" colspan=\"{}\">{}</th></tr>\n",
                row.len() - grouped,
                escape(&words.collect::<Vec<_>>().join(", "))
            );
        }
        let cells = row.iter().enumerate().skip(grouped).map(|(column, cell)| {
            let class = if cell.chars().count() > SENTENCE {
                " class=\"words\""
            } else if is_of_numbers[column] {
                ""
            } else {
                " class=\"left\""
            };
            let (tag, scope) = match (i, column == grouped) {
                (0, _) => ("th", " scope=\"col\""),
                (_, true) => ("th", " scope=\"row\""),
                (_, false) => ("td", ""),
            };
            format!("<{tag}{scope}{class}>{}</{tag}>", escape(cell))
        });
        *page += &format!("<tr>{}</tr>\n", cells.collect::<String>());
    }
    *page += if rows.len() > 1 { "</tbody>\n" } else { "</thead>\n" };
    *page += "</table></div>\n";
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_right_aligned_and_tables_scroll_in_their_boxes() {
        let mut table = Table::new(["task", "raw"]);
        table.row(vec!["Hopper".into(), "10.5 ± 0.1".into()]);
        let page = render("t", &[Block::Table(table)]);
        let expected = "<div class=\"wide\"><table>\n<thead>\n\
                        <tr><th scope=\"col\" class=\"left\">task</th><th scope=\"col\">raw</th></tr>\n\
                        </thead>\n<tbody>\n\
                        <tr><th scope=\"row\" class=\"left\">Hopper</th><td>10.5 ± 0.1</td></tr>\n\
                        </tbody>\n</table>";
        assert!(page.contains(expected), "{page}");
        assert!(STYLE.contains(".wide { overflow-x: auto"));
    }

    #[test]
    fn group_headings_name_their_values() {
        let mut table = Table::new(["target", "protocol", "cell", "raw"]);
        for (target, cell) in [("3543.9", "a"), ("3543.9", "b"), ("", "a")] {
            table.row([target, "matched", cell, "1"].map(str::to_owned).to_vec());
        }
        let page = render("t", &[Block::Groups(table, 2)]);
        let group = |words: &str| {
            format!("<th class=\"group\" scope=\"rowgroup\" colspan=\"2\">{words}</th>")
        };
        for words in ["target 3543.9, protocol matched", "protocol matched"] {
            assert_eq!(page.matches(&group(words)).count(), 1, "{page}");
        }
        assert_eq!(page.matches("<tbody>").count(), 2, "{page}");
    }

    #[test]
    fn folded_headings_are_one_level_deeper_and_pictures_have_labels() {
        let plot = Block::Plot { name: "a".into(), title: "a < b".into(), svg: "<svg />".into() };
        let inside = vec![Block::Heading("In".into()), Block::Subheading("Deep".into()), plot];
        let page = render("t", &[Block::Heading("Out".into()), Block::Fold("f".into(), inside)]);
        for part in ["<h2>Out</h2>", "<h3>In</h3>", "<h4>Deep</h4>", "aria-label=\"a &lt; b\""] {
            assert!(page.contains(part), "no {part} in {page}");
        }
    }

    #[test]
    fn text_is_escaped() {
        let mut table = Table::new(["<i>"]);
        table.row(vec!["</td><script>".into()]);
        let bad = || "</pre><script>x</script>".to_owned();
        let blocks = [
            Block::Heading(bad()),
            Block::Code(bad()),
            Block::Table(table),
            Block::Video { name: "video".into(), title: bad(), gif: [1, 2, 3].into() },
            Block::Fold(bad(), vec![Block::Text(bad())]),
        ];
        let page = render(&bad(), &blocks);
        assert!(!page.contains("<script") && !page.contains("<i>"), "{page}");
        assert_eq!(page.matches("&lt;script&gt;x&lt;/script&gt;").count(), 8, "{page}");
        assert_eq!(page.matches("</pre>").count(), 1);
        assert!(page.contains("src=\"data:image/gif;base64,AQID\""), "{page}");
    }
}
