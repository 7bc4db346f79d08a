//! One file per command.

pub mod best;
pub mod data;
pub mod download;
pub mod evaluate;
pub mod find;
pub mod judge;
pub mod prepare;
pub mod provenance;
pub mod record;
pub mod report;
pub mod study;
pub mod train;
pub mod video;
pub mod weights;

/// The first of `words` (each `key=value`) with one of `keys`.
fn first_of<'a>(words: &'a [String], keys: &[&str]) -> Option<&'a String> {
    let is_said = |word: &&String| {
        let (key, text) = overtone_console::keys::split(word).unwrap_or_default();
        !text.is_empty() && keys.contains(&&*key)
    };
    words.iter().find(is_said)
}
