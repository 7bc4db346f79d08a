//! Text elements of an SVG.

use std::fmt::Write;

/// Escaped text for an element or a quoted attribute of SVG and HTML. Both forbid control
/// characters, so these become the replacement character.
pub fn escape(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    let mut characters = text.chars().peekable();
    while let Some(character) = characters.next() {
        match character {
            '&' => escaped += "&amp;",
            '<' => escaped += "&lt;",
            '>' => escaped += "&gt;",
            '"' => escaped += "&quot;",
            '\'' => escaped += "&#39;",
            '\n' | '\t' => escaped.push(character),
            // A line end of Windows.
            '\r' if characters.peek() == Some(&'\n') => escaped.push(character),
            // XML does not allow the last two characters.
            _ if character.is_control() || matches!(character, '\u{fffe}' | '\u{ffff}') => {
                escaped.push('\u{fffd}');
            }
            _ => escaped.push(character),
        }
    }
    escaped
}

/// Text at a place, with `more` attributes; nothing for empty text.
pub(crate) fn text(svg: &mut String, [x, y]: [f64; 2], more: &str, words: &str) {
    if words.is_empty() {
        return;
    }
    let words = escape(words);
    let _ = writeln!(svg, "<text x=\"{x:.1}\" y=\"{y:.1}\" {more}>{words}</text>");
}

/// Width of text in letters of the usual size. A Chinese, Japanese or Korean character is as wide
/// as it is high; other characters are 6.6 on average.
pub(crate) fn width(words: &str) -> f64 {
    let is_wide = |c: char| {
        matches!(c,
            '\u{1100}'..='\u{115f}'
            | '\u{2e80}'..='\u{a4cf}'
            | '\u{ac00}'..='\u{d7a3}'
            | '\u{f900}'..='\u{faff}'
            | '\u{fe30}'..='\u{fe6f}'
            | '\u{ff00}'..='\u{ff60}'
            | '\u{ffe0}'..='\u{ffe6}'
            | '\u{1f300}'..='\u{1faff}'
            | '\u{20000}'..='\u{3fffd}')
    };
    words.chars().map(|c| if is_wide(c) { 12.0 } else { 6.6 }).sum()
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
        assert_eq!(escape("a\r\nb\rc"), "a\r\nb\u{fffd}c");
    }

    #[test]
    fn chinese_characters_are_wide() {
        assert_eq!([width("ab"), width("日本")], [13.2, 24.0]);
    }
}
