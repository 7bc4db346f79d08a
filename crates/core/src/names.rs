//! Lookup of names in any spelling, and a suggestion for a misspelled name.

/// Names with a lower similarity are different names: `seqest` has 0.93 with `seaquest`, `pong` has
/// 0.46 with `gravitar`.
const ALIKE: f64 = 0.8;

/// A name in lower case, without separators: `bankheist` for `Bank-Heist`.
pub fn plain(name: &str) -> String {
    name.chars().filter(|c| c.is_alphanumeric()).flat_map(char::to_lowercase).collect()
}

/// The name in `known` that equals `name` in any spelling.
pub fn find<'a>(known: &[&'a str], name: &str) -> Option<&'a str> {
    let wanted = plain(name);
    known.iter().find(|known| plain(known) == wanted).copied()
}

/// The name in `known` that is most similar to `name`, if any is similar enough.
pub fn nearest<'a>(known: &[&'a str], name: &str) -> Option<&'a str> {
    let wanted = plain(name);
    let likeness = |known: &str| strsim::jaro_winkler(&plain(known), &wanted);
    let best = known.iter().max_by(|a, b| likeness(a).total_cmp(&likeness(b)))?;
    (likeness(best) >= ALIKE).then_some(best)
}

/// The end of an error about an unknown name.
pub fn suggestion(nearest: Option<&str>, known: &str) -> String {
    match nearest {
        Some(nearest) => format!(": did you mean `{nearest}`? Known are {known}"),
        None => format!("; known are {known}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_found_in_any_spelling_and_guessed_when_they_are_close() {
        let known = ["bank_heist", "double_dunk", "gravitar", "seaquest"];
        for name in ["BankHeist", "bank-heist", "BANK HEIST", "bank_heist"] {
            assert_eq!(find(&known, name), Some("bank_heist"));
        }
        assert_eq!(find(&known, "bank"), None);
        assert_eq!(nearest(&known, "seqest"), Some("seaquest"));
        assert_eq!(nearest(&known, "pong"), None);
        assert_eq!(nearest(&[], "pong"), None);
    }
}
