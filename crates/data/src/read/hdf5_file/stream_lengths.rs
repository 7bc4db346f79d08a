//! How long streams say they are, before the C library believes it.
//!
//! A row of an array of streams is a length of four bytes and the place of its bytes, 16 bytes in
//! all (HDF5 File Format Specification, IV.B). The library takes as much memory as the length
//! says, up to 4 GiB, before it looks whether the file holds as much.

use std::fs;
use std::io::{self, Read, Seek, SeekFrom};
use std::path::Path;

use hdf5::Dataset;

/// Bytes of a row.
const ROW: usize = 16;
/// Bytes that are looked at together: whole rows.
const AT_ONCE: usize = 4096 * ROW;

/// The longest stream of `dataset`, by what its rows say; 0 where they are compressed, which says
/// nothing without the library.
///
/// # Errors
/// When the file cannot be read.
pub(super) fn longest(path: &Path, dataset: &Dataset) -> io::Result<u64> {
    let mut file = fs::File::open(path)?;
    let mut longest = 0;
    for (place, bytes) in pieces(dataset) {
        file.seek(SeekFrom::Start(place))?;
        let mut rows = (&mut file).take(bytes);
        let mut read = Vec::with_capacity(AT_ONCE);
        loop {
            read.clear();
            (&mut rows).take(AT_ONCE as u64).read_to_end(&mut read)?;
            if read.is_empty() {
                break;
            }
            for row in read.chunks_exact(ROW) {
                let length = row.first_chunk().map_or(0, |length| u32::from_le_bytes(*length));
                longest = longest.max(u64::from(length));
            }
        }
    }
    Ok(longest)
}

/// Where the rows lie, and how many bytes of them.
fn pieces(dataset: &Dataset) -> Vec<(u64, u64)> {
    if let Some(place) = dataset.offset() {
        return vec![(place, dataset.storage_size())];
    }
    if !dataset.is_chunked() || !dataset.filters().is_empty() {
        return Vec::new();
    }
    let chunks = 0..dataset.num_chunks().unwrap_or(0);
    let place = |index| dataset.chunk_info(index).map(|chunk| (chunk.addr, chunk.size));
    chunks.filter_map(place).collect()
}

#[cfg(test)]
mod tests {
    use hdf5::types::VarLenArray;

    use super::*;
    use crate::error::DataError;
    use crate::read::hdf5_file::Hdf5File;
    use crate::read::source::Source;

    /// In one piece and in several, where one row claims more than the file.
    #[test]
    fn a_row_that_claims_more_than_the_file_is_refused_before_it_is_read() {
        let folder = tempfile::tempdir().unwrap();
        for chunk in [None, Some(2)] {
            let path = folder.path().join(format!("{chunk:?}.hdf5"));
            let rows: Vec<VarLenArray<u8>> =
                (1..=5).map(|n| VarLenArray::from_slice(&vec![7; n])).collect();
            let file = hdf5::File::create(&path).unwrap();
            let builder = file.new_dataset_builder();
            let builder = match chunk {
                None => builder,
                Some(rows) => builder.chunk(rows),
            };
            builder.with_data(&rows).create("pictures").unwrap();
            drop(file);
            let place = {
                let file = hdf5::File::open(&path).unwrap();
                let dataset = file.dataset("pictures").unwrap();
                assert_eq!(longest(&path, &dataset).unwrap(), 5);
                pieces(&dataset).last().unwrap().0
            };
            let streams = || {
                let mut seen = Vec::new();
                let file = Hdf5File::open(&path).unwrap();
                let read = file.streams("pictures", &mut |_, bytes| {
                    seen.push(bytes.len());
                    Ok(())
                });
                read.map(|()| seen)
            };
            assert_eq!(streams().unwrap(), [1, 2, 3, 4, 5]);
            let mut bytes = fs::read(&path).unwrap();
            let place = usize::try_from(place).unwrap();
            bytes[place..place + 4].copy_from_slice(&0xE000_0000u32.to_le_bytes());
            fs::write(&path, bytes).unwrap();
            let refused = streams();
            assert!(matches!(refused, Err(DataError::DatasetClaim { .. })), "{refused:?}");
        }
    }
}
