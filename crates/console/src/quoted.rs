//! Paths as words of a shell.

use std::path::Path;

/// A path, or a word with one, as one word of a shell.
pub fn quoted(path: impl AsRef<Path>) -> String {
    let word = path.as_ref().display().to_string();
    let is_plain = |c: char| c.is_alphanumeric() || "_-+=.,:/@%".contains(c);
    match word.is_empty() || !word.chars().all(is_plain) {
        true => format!("'{}'", word.replace('\'', r"'\''")),
        false => word,
    }
}

#[cfg(test)]
mod tests {
    use super::quoted;

    #[test]
    fn a_word_with_a_blank_or_a_quote_is_quoted() {
        for (word, expected) in
            [("a/b.npz", "a/b.npz"), ("a b", "'a b'"), ("it's", r"'it'\''s'"), ("", "''")]
        {
            assert_eq!(quoted(word), expected);
        }
    }
}
