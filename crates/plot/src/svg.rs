//! The words of an SVG.

use std::fmt::Write;

/// Text for the inside of an element or of a quoted attribute, of SVG and of HTML. Control
/// characters, which both forbid, become the replacement character.
pub fn escape(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for character in text.chars() {
        match character {
            '&' => escaped += "&amp;",
            '<' => escaped += "&lt;",
            '>' => escaped += "&gt;",
            '"' => escaped += "&quot;",
            '\'' => escaped += "&#39;",
            '\n' | '\t' => escaped.push(character),
            // The last two are no characters to XML.
            _ if character.is_control() || matches!(character, '\u{fffe}' | '\u{ffff}') => {
                escaped.push('\u{fffd}');
            }
            _ => escaped.push(character),
        }
    }
    escaped
}

/// Words at a place, with `more` attributes.
pub(crate) fn text(svg: &mut String, [x, y]: [f64; 2], more: &str, words: &str) {
    let words = escape(words);
    let _ = writeln!(svg, "<text x=\"{x:.1}\" y=\"{y:.1}\" {more}>{words}</text>");
}

/// The opening tag of a picture of this size with a white ground.
pub(crate) fn opening([width, height]: [f64; 2]) -> String {
    format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {width} {height}\" \
         width=\"{width}\" height=\"{height}\" font-family=\"sans-serif\" font-size=\"12\">\n\
         <rect width=\"{width}\" height=\"{height}\" fill=\"white\"/>\n"
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_in_text_is_markup() {
        assert_eq!(
            escape("a<b> & \"c\" 'd'\0\u{ffff}"),
            "a&lt;b&gt; &amp; &quot;c&quot; &#39;d&#39;\u{fffd}\u{fffd}"
        );
    }
}
