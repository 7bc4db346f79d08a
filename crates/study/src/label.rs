//! Labels and file names of cells, made from the settings that differ between cells.

use overtone_console::keys;

/// Maximum length of a file name. Longer names are cut and end with a hash of the whole name.
const LONGEST: usize = 100;

/// The differing settings of each variant as words; `all` for a single variant.
pub(crate) fn labels(variants: &[Vec<(String, String)>]) -> Vec<String> {
    let value = |variant: &[(String, String)], key: &str| {
        variant.iter().find(|(known, _)| known == key).map(|(_, text)| text.clone())
    };
    let differs =
        |key: &str| variants.iter().any(|variant| value(variant, key) != value(&variants[0], key));
    variants
        .iter()
        .map(|variant| {
            let differing = variant.iter().filter(|(key, _)| variants.len() > 1 && differs(key));
            let words: Vec<String> =
                differing.map(|(key, text)| format!("{}={text}", keys::short(key))).collect();
            match (&words[..], variants.len()) {
                ([], 1) => "all".to_owned(),
                // This variant does not set the keys that differ, or it is a duplicate.
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

/// The rule for names of studies.
pub(crate) const NAME: &str =
    "a name may contain only letters, digits and `-_.=`, at most 100, and must not start with `.`";

/// A valid file name for any file system: only letters, digits and `-_.=`.
pub(crate) fn file_name(name: &str) -> String {
    let plain = |c: char| if c.is_ascii_alphanumeric() || "-_.=".contains(c) { c } else { '_' };
    let short: String = name.chars().map(plain).collect();
    if short.len() <= LONGEST {
        return short;
    }
    format!("{}-{:08x}", &short[..LONGEST - 9], fingerprint(name))
}

/// FNV-1a hash, folded to 32 bits.
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
    fn names_become_file_names() {
        assert_eq!(file_name("task=ale/seaquest s1"), "task=ale_seaquest_s1");
        let (one, other) = (file_name(&"a".repeat(200)), file_name(&"a".repeat(201)));
        assert_eq!((one.len(), other.len()), (100, 100));
        assert_ne!(one, other);
    }

    #[test]
    fn a_single_variant_and_a_variant_without_words_have_labels() {
        let word = |text: &str| ("a".to_owned(), text.to_owned());
        assert_eq!(labels(&[vec![word("1")]]), ["all"]);
        assert_eq!(labels(&[vec![word("1")], vec![]]), ["a=1", ""]);
    }
}
