//! What is looked at in an HDF5 file before the C library sees it: three claims that it believes.
//!
//! **A driver information block.** Superblocks of versions 0 and 1 (HDF5 File Format
//! Specification, II.A) may say how the storage drivers `multi` and `family` spread one file over
//! several. The library takes as much memory as the block claims, up to 4 GiB, and writes to all
//! of it, even where the file is shorter. No recording is spread so.
//!
//! **A heap whose free space goes in a circle.** The names of a group lie in a local heap
//! (III.D), and the free pieces between them are a list, each with the offset of the next. The
//! library follows it and notes each piece, until the memory of the machine is used up.
//!
//! **An object that takes no room.** Arrays of streams, such as Minari's pictures, lie in global
//! heaps (III.E), one object after the other, each with its size. The library goes on by that
//! size, and where it comes to 0 it never ends.
//!
//! Bytes of an array may look like a heap. The library comes to a heap by its address alone, so
//! what no address in the file leads to is left alone. To a global heap only the layout of a
//! virtual array leads (IV.A.2.i), and streams do, whose addresses may be compressed: before an
//! array of streams is looked at, every place counts ([`stream_refusal`]).

use std::collections::BTreeSet;
use std::fs::{File, Metadata};
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::sync::{Mutex, PoisonError};
use std::time::{SystemTime, UNIX_EPOCH};

use memchr::memmem;
use memmap2::Mmap;

const SIGNATURE: [u8; 8] = *b"\x89HDF\r\n\x1a\n";
/// A local heap's signature and its version, the only one.
const HEAP: [u8; 5] = *b"HEAP\0";
/// A global heap's signature and its version, the only one.
const GLOBAL: [u8; 5] = *b"GCOL\x01";
/// The class of a virtual array's layout.
const VIRTUAL: u8 = 3;
/// Bytes of the smallest global heap: the library refuses a smaller one.
const SMALLEST: u64 = 4096;
/// Places without an address that look like endless heaps, of which more are a trap.
const MOST_DOUBTS: usize = 16;
/// Bytes of a global heap before its first object, and of an object before its data.
const HEADER: usize = 16;
/// Bytes of an offset and of a length.
const WIDTH: usize = 8;
/// What is said of an object that a walk cannot get past.
const NO_ROOM: &str = "an object in a heap takes no room";
/// Where a list of free pieces ends.
const END: u64 = 1;
/// Bytes of a free piece at least: the next one's offset, and its own length.
const PIECE: usize = 16;

/// Seconds after a change from which on a file's time of change tells it from a later one.
const SETTLED: i64 = 2;

/// A file as it was: device, number and size, and when it was changed, in seconds and nanoseconds.
type Known = ([u64; 3], [i64; 2]);

/// Files that nothing was against. To look at a large one takes as long as to read it.
static PASSED: Mutex<BTreeSet<Known>> = Mutex::new(BTreeSet::new());

/// As [`refusal`], of a file with this `metadata`; one that was looked at before, and not changed
/// since, is not looked at again.
///
/// # Errors
/// When the file cannot be mapped.
pub(super) fn refusal_of(file: &File, metadata: &Metadata) -> io::Result<Option<&'static str>> {
    let changed = [metadata.ctime(), metadata.ctime_nsec()];
    let key = ([metadata.dev(), metadata.ino(), metadata.len()], changed);
    let now = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |now| now.as_secs());
    let is_settled = i64::try_from(now).is_ok_and(|now| now - changed[0] > SETTLED);
    let passed = || PASSED.lock().unwrap_or_else(PoisonError::into_inner);
    if is_settled && passed().contains(&key) {
        return Ok(None);
    }
    // SAFETY: the map is only read, and gone before the library opens the file; a file that
    // another program cuts short meanwhile can fault, as for every memory map.
    let map = unsafe { Mmap::map(file) }?;
    let refusal = refusal(&map);
    if is_settled && refusal.is_none() {
        passed().insert(key);
    }
    Ok(refusal)
}

/// Why the library may not see the file that holds `bytes`; `None` where nothing is against it,
/// or where it is no HDF5 file, which the library says better.
fn refusal(bytes: &[u8]) -> Option<&'static str> {
    let start = superblock(bytes)?;
    let file = &bytes[start..];
    // Version, and where the widths and the addresses are, of which the fourth is the block's.
    // Version 1 has four bytes more before its addresses; later ones have no such block.
    let (widths, driver) = match file.get(8)? {
        0 => (13, Some(24 + 3 * WIDTH)),
        1 => (13, Some(28 + 3 * WIDTH)),
        _ => (9, None),
    };
    if file.get(widths..widths + 2)? != [WIDTH as u8; 2] {
        return Some("its offsets and lengths are not of 8 bytes");
    }
    // All ones mean that there is none.
    if driver.is_some_and(|at| number(file, at).is_some_and(|address| address != u64::MAX)) {
        return Some("it is a part of a file that lies in several");
    }
    if endless(file) {
        return Some("a list of free space in it goes in a circle");
    }
    stands_still(file, is_of_virtual_array).then_some(NO_ROOM)
}

/// Why the library may not read streams of the file at `path`.
///
/// # Errors
/// When the file cannot be opened or mapped.
pub(super) fn stream_refusal(path: &Path) -> io::Result<Option<&'static str>> {
    let file = File::open(path)?;
    // SAFETY: as in `refusal_of`.
    let map = unsafe { Mmap::map(&file) }?;
    let heaps = superblock(&map).map_or(&[][..], |start| &map[start..]);
    Ok(stands_still(heaps, |_, _| true).then_some(NO_ROOM))
}

/// Whether an address of a virtual array's heap leads to `at`: it follows the layout's class.
fn is_of_virtual_array(file: &[u8], at: usize) -> bool {
    let address = (at as u64).to_le_bytes();
    let mut named = memmem::find_iter(file, &address);
    named.any(|place| place > 0 && file[place - 1] == VIRTUAL)
}

/// Whether some address in the file leads to `at`.
fn is_named(file: &[u8], at: usize) -> bool {
    memmem::find(file, &(at as u64).to_le_bytes()).is_some()
}

/// Where the file begins: at 0, or after a block of the user's of 512 bytes or a power of two
/// times as many.
fn superblock(bytes: &[u8]) -> Option<usize> {
    let places = std::iter::once(0).chain((9..48).map(|power| 1usize << power));
    let mut places = places.take_while(|&place| place < bytes.len());
    places.find(|&place| bytes[place..].starts_with(&SIGNATURE))
}

/// Whether following the free pieces of all heaps takes more steps than there is room for
/// pieces. Heaps do not overlap, so sound ones take fewer together.
///
/// Every place that looks like a heap is walked. One that is not a heap, or was one, ends the walk
/// at the first offset that lies outside of it, and the library decides.
fn endless(file: &[u8]) -> bool {
    let mut steps = file.len() / PIECE + 1;
    let mut doubts = 0;
    memmem::find_iter(file, &HEAP).any(|at| {
        let before = steps;
        if !outlasts(file, at, &mut steps) {
            return false;
        }
        steps = before;
        doubts += 1;
        doubts > MOST_DOUBTS || is_named(file, at)
    })
}

/// Whether following the free pieces of the heap at `at` takes more than `steps`, which are taken
/// off.
fn outlasts(file: &[u8], at: usize, steps: &mut usize) -> bool {
    let field = |nth: usize| number(file, at + nth * WIDTH);
    // After the signature: the length of its data, the first free piece, the data's place.
    let (Some(length), Some(first), Some(place)) = (field(1), field(2), field(3)) else {
        return false;
    };
    let Some(data) = slice(file, place, length) else { return false };
    let mut next = first;
    while next != END {
        let after = usize::try_from(next).ok().and_then(|next| number(data, next));
        match after {
            // The library refuses an offset of 0.
            None | Some(0) => return false,
            Some(after) => next = after,
        }
        match steps.checked_sub(1) {
            Some(left) => *steps = left,
            None => return true,
        }
    }
    false
}

/// Whether going through the objects of any global heap comes to one that takes no room, or takes
/// more steps than there is room for objects in all of them.
///
/// Every place that looks like a heap is walked, and counts where it `is_one`. An object that leads
/// out of it ends the walk, and the library refuses it.
fn stands_still(file: &[u8], is_one: impl Fn(&[u8], usize) -> bool) -> bool {
    let mut steps = file.len() / HEADER + 1;
    let mut doubts = 0;
    memmem::find_iter(file, &GLOBAL).any(|at| {
        let before = steps;
        if !stays(file, at, &mut steps) {
            return false;
        }
        steps = before;
        doubts += 1;
        doubts > MOST_DOUBTS || is_one(file, at)
    })
}

/// Whether going through the objects of the global heap at `at` comes to one that takes no room, or
/// takes more than `steps`, which are taken off.
fn stays(file: &[u8], at: usize, steps: &mut usize) -> bool {
    let size = number(file, at + WIDTH).filter(|&size| size >= SMALLEST);
    let size = size.and_then(|size| usize::try_from(size).ok());
    // The library refuses one that is smaller, or does not lie in the file.
    let end = size.and_then(|size| at.checked_add(size)).filter(|&end| end <= file.len());
    let Some(end) = end else { return false };
    let mut object = at + HEADER;
    while object.checked_add(HEADER).is_some_and(|after| after <= end) {
        let (Some(index), Some(size)) = (file.get(object..object + 2), number(file, object + 8))
        else {
            return false;
        };
        // As the library computes it: free space, which has the index 0, includes its header.
        let room = match index {
            [0, 0] => size,
            _ => (size.wrapping_add(7) & !7).wrapping_add(HEADER as u64),
        };
        let next = usize::try_from(room).ok().and_then(|room| object.checked_add(room));
        match next {
            Some(next) if next == object => return true,
            Some(next) => object = next,
            None => return false,
        }
        match steps.checked_sub(1) {
            Some(left) => *steps = left,
            None => return true,
        }
    }
    false
}

fn slice(bytes: &[u8], place: u64, length: u64) -> Option<&[u8]> {
    let (place, length) = (usize::try_from(place).ok()?, usize::try_from(length).ok()?);
    bytes.get(place..place.checked_add(length)?)
}

/// The little-endian number at `at`.
fn number(bytes: &[u8], at: usize) -> Option<u64> {
    let (number, _) = bytes.get(at..)?.split_first_chunk()?;
    Some(u64::from_le_bytes(*number))
}

#[cfg(test)]
mod tests {
    use super::*;

    const SOUND: &[u8] = include_bytes!("../../../tests/fixtures/lzf.hdf5");

    fn changed(at: usize, to: &[u8]) -> Vec<u8> {
        let mut bytes = SOUND.to_vec();
        bytes[at..at + to.len()].copy_from_slice(to);
        bytes
    }

    #[track_caller]
    fn check(bytes: &[u8], expected: Option<&str>) {
        for user_block in [0, 512, 1024] {
            let found = refusal(&[&vec![0; user_block], bytes].concat());
            assert_eq!(found.is_some(), expected.is_some(), "{user_block}: {found:?}");
            assert!(found.unwrap_or("").contains(expected.unwrap_or("")), "{found:?}");
        }
    }

    #[test]
    fn sound_files_and_other_files_are_the_library_s() {
        check(SOUND, None);
        check(include_bytes!("../../../tests/fixtures/minari.hdf5"), None);
        for short in [&b""[..], &SIGNATURE, &SOUND[..9], &SOUND[..40], b"not HDF5"] {
            check(short, None);
        }
    }

    #[test]
    fn a_driver_is_refused() {
        assert_eq!(SOUND[8], 0, "version");
        check(&changed(49, &[0]), Some("lies in several"));
        check(&changed(13, &[4]), Some("not of 8 bytes"));
        check(&changed(14, &[2]), Some("not of 8 bytes"));
    }

    #[test]
    fn a_circle_of_free_space_is_refused() {
        let heap = memmem::find(SOUND, &HEAP).unwrap();
        let field = |nth: usize| number(SOUND, heap + nth * WIDTH).unwrap();
        let (length, first, place) = (field(1), field(2), field(3));
        assert!(first < length, "it has a free piece");
        let piece = (place + first) as usize;
        // To itself; outside of the heap, and to nowhere, which the library refuses.
        check(&changed(piece, &first.to_le_bytes()), Some("in a circle"));
        check(&changed(piece, &length.to_le_bytes()), None);
        check(&changed(piece, &[0; 8]), None);
    }

    #[test]
    fn objects_without_room_are_refused() {
        let sound = include_bytes!("../../../tests/fixtures/jpeg/alone.hdf5");
        assert!(!stands_still(sound, |_, _| true));
        let heap = memmem::find(sound, &GLOBAL).unwrap();
        // Its streams lead to it, and no virtual array does, until one says so.
        assert!(is_named(sound, heap) && !is_of_virtual_array(sound, heap));
        let layout = [&[4, VIRTUAL][..], &(heap as u64).to_le_bytes()].concat();
        assert!(is_of_virtual_array(&[&sound[..], &layout].concat(), heap));
        let with = |index: u16, size: u64| {
            let mut bytes = sound.to_vec();
            bytes[heap + HEADER..heap + HEADER + 2].copy_from_slice(&index.to_le_bytes());
            bytes[heap + HEADER + 8..heap + HEADER + 16].copy_from_slice(&size.to_le_bytes());
            stands_still(&bytes, |_, _| true).then_some(NO_ROOM)
        };
        assert_eq!(with(0, 0), Some("an object in a heap takes no room"));
        // 2^64 - 16, and what is rounded up to it: with a header they come to 0.
        for size in [u64::MAX - 15, u64::MAX - 20] {
            assert_eq!(with(1, size), Some("an object in a heap takes no room"));
        }
        // Out of the heap, which the library refuses; another size, after which are other bytes.
        assert_eq!(with(1, 1 << 40), None);
        assert_eq!(with(0, 1 << 40), None);
    }

    /// Sound files whose arrays hold what looks like a heap without an end.
    #[test]
    fn bytes_of_an_array_are_not_a_heap() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("bytes.hdf5");
        let written = |bytes: &[u8]| {
            let file = hdf5::File::create(&path).unwrap();
            file.new_dataset_builder().with_data(bytes).create("bytes").unwrap();
            drop(file);
            std::fs::read(&path).unwrap()
        };
        // A global heap of 4096 bytes whose first object takes no room; one that is too small.
        let global = |size: u64| {
            let mut heap = [&GLOBAL[..], &[0; 3], &size.to_le_bytes()].concat();
            heap.resize(4096, 0);
            heap
        };
        for heap in [global(4096), global(0)] {
            let file = written(&heap);
            assert_eq!(refusal(&file), None);
            let at = memmem::find(&file, &GLOBAL).unwrap();
            let is_still = stays(&file, at, &mut 1000);
            assert_eq!(is_still, heap[8..16] == 4096u64.to_le_bytes());
            // Streams may have compressed addresses.
            assert_eq!(stream_refusal(&path).unwrap().is_some(), is_still);
        }
        // A local heap after other bytes, whose only free piece leads to itself: its fields are the
        // length of its data, the first piece and the data's place.
        let local = |place: u64| {
            let fields = [64, 16, place].map(u64::to_le_bytes).concat();
            let piece = [&[0; 16][..], &16u64.to_le_bytes(), &[0; 40]].concat();
            [&[7; 24][..], b"HEAP\0\0\0\0", &fields, &piece].concat()
        };
        let place = |file: &[u8]| memmem::find(file, &[&[7; 24][..], &HEAP].concat()).unwrap() + 24;
        let at = place(&written(&local(0)));
        let file = written(&local((at + 32) as u64));
        assert_eq!(place(&file), at);
        assert!(outlasts(&file, at, &mut 1000));
        assert_eq!(refusal(&file), None);
        // With its address anywhere it may be one.
        let named = [&file[..], &(at as u64).to_le_bytes()].concat();
        check(&named, Some("in a circle"));
    }

    #[test]
    fn many_heaps_in_one_place_take_no_longer() {
        // A thousand heaps whose data is the same long list: each walk alone would be short
        // enough.
        let pieces = 2000usize;
        let mut data = Vec::new();
        for nth in 1..=pieces {
            let next = if nth == pieces { END } else { (nth * PIECE) as u64 };
            data.extend(next.to_le_bytes());
            data.extend((PIECE as u64).to_le_bytes());
        }
        let mut bytes = SOUND.to_vec();
        let place = bytes.len() as u64;
        bytes.extend(&data);
        assert!(!endless(&bytes));
        for _ in 0..1000 {
            bytes.extend(b"HEAP\0\0\0\0");
            for field in [data.len() as u64, 0, place] {
                bytes.extend(field.to_le_bytes());
            }
        }
        check(&bytes, Some("in a circle"));
    }
}
