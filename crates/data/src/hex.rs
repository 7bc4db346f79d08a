//! Bytes as text, and numbers as bytes that are hashed.

use sha2::{Digest, Sha256};

/// Lower-case hexadecimal.
pub(crate) fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// Numbers hashed at a time: quick to hash and small to hold.
const PIECE: usize = 1 << 14;

/// Adds numbers to a hash, each as its bytes, the lowest first.
pub(crate) fn hash_reals(hash: &mut Sha256, numbers: &[f32]) {
    for piece in numbers.chunks(PIECE) {
        hash.update(piece.iter().flat_map(|number| number.to_le_bytes()).collect::<Vec<_>>());
    }
}
