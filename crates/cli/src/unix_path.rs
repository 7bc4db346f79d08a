//! Paths of any bytes among words of text: a byte that is not UTF-8 stands for a private character.

use std::{
    ffi::{OsStr, OsString},
    os::unix::ffi::{OsStrExt, OsStringExt},
    path::{Path, PathBuf},
};

/// The character of byte 0, in Unicode's private area.
const FIRST: u32 = 0xF700;

/// The word as text.
pub fn to_text(word: &OsStr) -> String {
    let mut text = String::new();
    for chunk in word.as_bytes().utf8_chunks() {
        text += chunk.valid();
        let bytes = chunk.invalid().iter();
        text.extend(bytes.filter_map(|byte| char::from_u32(FIRST + u32::from(*byte))));
    }
    text
}

/// The path whose text [`to_text`] made.
pub fn of_text(path: &Path) -> PathBuf {
    let mut bytes = Vec::new();
    for character in path.to_string_lossy().chars() {
        match u32::from(character).checked_sub(FIRST).map(u8::try_from) {
            Some(Ok(byte)) if byte >= 0x80 => bytes.push(byte),
            _ => bytes.extend(character.encode_utf8(&mut [0; 4]).bytes()),
        }
    }
    OsString::from_vec(bytes).into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn any_bytes_come_back() {
        for bytes in [&b"a/\xff\xfe.hdf5"[..], b"\xc3", "höpper €".as_bytes(), b""] {
            let text = to_text(OsStr::from_bytes(bytes));
            assert_eq!(of_text(Path::new(&text)).as_os_str().as_bytes(), bytes);
        }
    }
}
