//! What cells are called: by the settings that are not the same in all of them.

use overtone_console::keys;

/// A name's length; longer ones end with a number made of all of it.
const LONGEST: usize = 100;

/// What tells each variant from the others, as words; `all` for one that is alone.
pub(crate) fn labels(variants: &[Vec<(String, String)>]) -> Vec<String> {
    let value = |variant: &[(String, String)], key: &str| {
        variant.iter().find(|(known, _)| known == key).map(|(_, text)| text.clone())
    };
    let differs =
        |key: &str| variants.iter().any(|variant| value(variant, key) != value(&variants[0], key));
    variants
        .iter()
        .map(|variant| {
            let told = variant.iter().filter(|(key, _)| variants.len() > 1 && differs(key));
            let words: Vec<String> =
                told.map(|(key, text)| format!("{}={text}", keys::short(key))).collect();
            match (&words[..], variants.len()) {
                ([], 1) => "all".to_owned(),
                // What all the others change, this one leaves as it is; or it is there twice.
                ([], _) => variant
                    .iter()
                    .map(|(key, text)| format!("{}={text}", keys::short(key)))
                    .collect::<Vec<_>>()
                    .join(" "),
                (words, _) => words.join(" "),
            }
        })
        .collect()
}

/// What a study's name has.
pub(crate) const NAME: &str =
    "a name has letters, digits and `-_.=` alone, 100 at most, and begins with no `.`";

/// A name that any folder takes: letters, digits and `-_.=` alone.
pub(crate) fn file_name(name: &str) -> String {
    let plain = |c: char| if c.is_ascii_alphanumeric() || "-_.=".contains(c) { c } else { '_' };
    let short: String = name.chars().map(plain).collect();
    if short.len() <= LONGEST {
        return short;
    }
    format!("{}-{:08x}", &short[..LONGEST - 9], fingerprint(name))
}

/// FNV-1a, folded to 32 bits.
pub(crate) fn fingerprint(text: &str) -> u32 {
    let hash = text.bytes().fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3)
    });
    (hash >> 32) as u32 ^ hash as u32
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_files_names() {
        assert_eq!(file_name("task=ale/seaquest s1"), "task=ale_seaquest_s1");
        let (one, other) = (file_name(&"a".repeat(200)), file_name(&"a".repeat(201)));
        assert_eq!((one.len(), other.len()), (100, 100));
        assert_ne!(one, other);
    }

    #[test]
    fn a_variant_alone_and_one_without_words_have_names() {
        let word = |text: &str| ("a".to_owned(), text.to_owned());
        assert_eq!(labels(&[vec![word("1")]]), ["all"]);
        assert_eq!(labels(&[vec![word("1")], vec![]]), ["a=1", ""]);
    }
}
