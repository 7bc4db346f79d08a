//! [`mutate`]: a sound file, damaged at random.

use overtone_core::seed::Generator;
use rand::RngExt;

/// The most bytes an input has.
pub const LARGEST: usize = 1 << 20;
/// Formats keep their claims in the first bytes: half of all changes are made there.
const HEAD: usize = 1024;
/// Bytes that mean something in one format or another.
const BYTES: [u8; 16] = *b"\x00\x01\x7f\x80\xff\"'{[}],:0-\n";
/// Numbers at the edges of what a reader computes with.
const NUMBERS: [&str; 20] = [
    "0",
    "-1",
    "1",
    "2",
    "255",
    "65536",
    "2147483647",
    "2147483648",
    "4294967295",
    "4294967296",
    "9223372036854775807",
    "-9223372036854775808",
    "18446744073709551615",
    "99999999999999999999",
    "0.5",
    "1e308",
    "1e-308",
    "-1e999",
    "NaN",
    "",
];

/// `seeds[base]` after one to eight random changes. `seeds` must not be empty.
///
/// # Panics
/// If seed `base` does not exist: a caller's bug.
pub fn mutate(seeds: &[&[u8]], base: usize, generator: &mut Generator) -> Vec<u8> {
    let mut bytes = seeds[base].to_vec();
    // Mostly one or two: many changes at once are refused by the first check they meet.
    let changes = [1, 1, 1, 2, 2, 3, 4, 8][generator.random_range(0..8)];
    for _ in 0..changes {
        change(&mut bytes, seeds, generator);
        bytes.truncate(LARGEST);
    }
    bytes
}

fn change(bytes: &mut Vec<u8>, seeds: &[&[u8]], generator: &mut Generator) {
    if bytes.is_empty() {
        bytes.extend(run(generator));
        return;
    }
    let at = place(bytes.len(), generator);
    match generator.random_range(0..15) {
        0 | 1 => bytes[at] ^= 1 << generator.random_range(0..8),
        2 => bytes[at] = BYTES[generator.random_range(0..BYTES.len())],
        3 | 4 => edge_integer(bytes, at, generator),
        5 => add_to_integer(bytes, at, generator),
        6 => bytes.truncate(at),
        7 => bytes.extend(run(generator)),
        8 => {
            bytes.splice(at..at, run(generator));
        }
        9 => {
            let block = block(bytes, generator);
            let end = (at + block.len()).min(bytes.len());
            let room = end - at;
            bytes[at..end].copy_from_slice(&block[..room]);
        }
        10 => {
            let block = block(bytes, generator);
            bytes.splice(at..at, block);
        }
        11 => {
            let end = (at + generator.random_range(1..=64)).min(bytes.len());
            bytes.drain(at..end);
        }
        12 => {
            let other = seeds[generator.random_range(0..seeds.len())];
            let from = if other.is_empty() { 0 } else { place(other.len(), generator) };
            bytes.truncate(at);
            bytes.extend_from_slice(&other[from..]);
        }
        // Twice as likely: only a few places of a binary file are numbers in text.
        _ => replace_number(bytes, at, generator),
    }
}

/// A position in `length` bytes.
fn place(length: usize, generator: &mut Generator) -> usize {
    let head = if generator.random() { HEAD.min(length) } else { length };
    generator.random_range(0..head)
}

/// Copies of one byte, usually few.
fn run(generator: &mut Generator) -> Vec<u8> {
    let most = [1, 4, 64, 4096][generator.random_range(0..4)];
    let byte = match generator.random_range(0..2) {
        0 => BYTES[generator.random_range(0..BYTES.len())],
        _ => generator.random(),
    };
    vec![byte; generator.random_range(1..=most)]
}

/// Up to 256 bytes from anywhere in `bytes`.
fn block(bytes: &[u8], generator: &mut Generator) -> Vec<u8> {
    let from = place(bytes.len(), generator);
    let end = (from + generator.random_range(1..=256)).min(bytes.len());
    bytes[from..end].to_vec()
}

/// The position of an integer of `width` bytes that holds or follows position `at`, aligned; `None`
/// without room for one.
fn integer(bytes: &mut [u8], at: usize, width: usize) -> Option<&mut [u8]> {
    let first = at - at % width;
    bytes.get_mut(first..first + width)
}

/// Writes 0, all ones, or a power of two less one, as it is or more by one.
fn edge_integer(bytes: &mut [u8], at: usize, generator: &mut Generator) {
    let width = [1, 2, 4, 8][generator.random_range(0..4)];
    let power = 1u64 << generator.random_range(0..8 * width as u32);
    let value = match generator.random_range(0..5) {
        0 => 0,
        1 => u64::MAX,
        2 => power,
        3 => power - 1,
        _ => power.wrapping_neg(),
    };
    let little = value.to_le_bytes();
    let reversed: bool = generator.random();
    if let Some(into) = integer(bytes, at, width) {
        into.copy_from_slice(&little[..width]);
        if reversed {
            into.reverse();
        }
    }
}

/// Adds -16 to 16 to a little-endian integer.
fn add_to_integer(bytes: &mut [u8], at: usize, generator: &mut Generator) {
    let width = [1, 2, 4, 8][generator.random_range(0..4)];
    let difference = generator.random_range(-16i64..=16);
    if let Some(into) = integer(bytes, at, width) {
        let mut value = [0; 8];
        value[..width].copy_from_slice(into);
        let value = u64::from_le_bytes(value).wrapping_add_signed(difference);
        into.copy_from_slice(&value.to_le_bytes()[..width]);
    }
}

/// Replaces the first number in text from `at` on, if there is one within [`HEAD`] bytes.
fn replace_number(bytes: &mut Vec<u8>, at: usize, generator: &mut Generator) {
    let number = |byte: &u8| byte.is_ascii_digit() || matches!(byte, b'.' | b'-');
    let within = &bytes[at..(at + HEAD).min(bytes.len())];
    let Some(first) = within.iter().position(u8::is_ascii_digit) else { return };
    let length = within[first..].iter().take_while(|byte| number(byte)).count();
    let new = match generator.random_range(0..4) {
        0 => generator.random_range(0u64..300).to_string(),
        _ => NUMBERS[generator.random_range(0..NUMBERS.len())].to_owned(),
    };
    bytes.splice(at + first..at + first + length, new.into_bytes());
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use overtone_core::seed;

    use super::*;

    const TEXT: &[u8] = b"{'shape': (10, 84, 84)} and some bytes after it";

    fn mutated(number: u64) -> Vec<u8> {
        let mut generator = seed::generator(number, "mutate");
        mutate(&[TEXT, b"", b"another"], 0, &mut generator)
    }

    #[test]
    fn inputs_follow_from_the_seed_and_differ() {
        assert!((0..500).all(|number| mutated(number) == mutated(number)));
        let all: BTreeSet<_> = (0..500).map(mutated).collect();
        assert!(all.len() > 400, "{} different ones", all.len());
        assert!(all.iter().all(|bytes| bytes.len() <= LARGEST));
    }

    #[test]
    fn every_kind_of_damage_happens() {
        let all: Vec<_> = (0..5000).map(mutated).collect();
        let some = |what: &str, is: &dyn Fn(&[u8]) -> bool| {
            assert!(all.iter().any(|bytes| is(bytes)), "no input is {what}");
        };
        some("one bit away", &|bytes| {
            bytes.len() == TEXT.len()
                && bytes.iter().zip(TEXT).map(|(a, b)| (a ^ b).count_ones()).sum::<u32>() == 1
        });
        some("cut short", &|bytes| bytes.len() < TEXT.len() && TEXT.starts_with(bytes));
        some("longer by a run", &|bytes| bytes.len() > TEXT.len() + 1000);
        some("spliced", &|bytes| bytes.ends_with(b"another"));
        some("another number", &|bytes| {
            bytes.windows(20).any(|part| part == b"18446744073709551615")
        });
        some("all ones", &|bytes| bytes.windows(8).any(|part| part == [0xff; 8]));
        some("with a byte of 0", &|bytes| bytes.contains(&0));
    }

    #[test]
    fn nothing_is_too_short_to_be_damaged() {
        for number in 0..200 {
            let mut generator = seed::generator(number, "mutate");
            let bytes = mutate(&[b"", b"a"], (number % 2) as usize, &mut generator);
            assert!(bytes.len() <= LARGEST);
        }
    }
}
