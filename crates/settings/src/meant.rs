//! Keys that other programs call otherwise, and the nearest keys of misspelled ones.

use overtone_console::keys::{self, Keys};

use crate::words::known_keys;

/// Names of other programs, and our keys.
const MEANT: [(&str, &str); 11] = [
    ("lr", "train.learning_rate"),
    ("steps", "train.updates"),
    ("iterations", "train.updates"),
    ("batch", "train.batch_size"),
    ("context", "model.context_length"),
    ("window", "model.context_length"),
    ("layers", "model.n_layers"),
    ("heads", "model.n_heads"),
    ("hidden_size", "model.d_model"),
    ("output", "runs"),
    ("gpu", "device"),
];

/// The key that was most likely meant by `key`, if any.
pub fn nearest_key(key: &str) -> Option<String> {
    nearest_of(key, &known_keys())
}

/// The key among `known` that was most likely meant by `key`, if any.
pub(crate) fn nearest_of(key: &str, known: &Keys) -> Option<String> {
    let meant = MEANT.iter().find(|(other, own)| *other == key && known.contains_key(*own));
    let nearest = || keys::nearest(key, known);
    meant.map(|(_, own)| *own).or_else(nearest).map(|key| keys::short(key).to_owned())
}
