//! `.npz` files of NumPy that tests write.

use crate::dopamine::npy;

/// A zip archive of stored arrays, as small as can be.
pub fn zip(files: &[(&str, Vec<u8>)]) -> Vec<u8> {
    let (mut bytes, mut directory) = (Vec::new(), Vec::new());
    for (name, contents) in files {
        let name = format!("{name}.npy");
        let mut crc = flate2::Crc::new();
        crc.update(contents);
        let size = (contents.len() as u32).to_le_bytes();
        let sizes = [crc.sum().to_le_bytes(), size, size].concat();
        let length = (name.len() as u16).to_le_bytes();
        let offset = (bytes.len() as u32).to_le_bytes();
        bytes.extend(b"PK\x03\x04\x14\0\0\0\0\0\0\0\0\0");
        bytes.extend([&sizes[..], &length, &[0, 0], name.as_bytes(), contents].concat());
        directory.extend(b"PK\x01\x02\x14\0\x14\0\0\0\0\0\0\0\0\0");
        directory.extend([&sizes[..], &length, &[0; 12], &offset, name.as_bytes()].concat());
    }
    let at = (bytes.len() as u32).to_le_bytes();
    let length = (directory.len() as u32).to_le_bytes();
    bytes.extend(directory);
    let count = (files.len() as u16).to_le_bytes();
    bytes.extend([b"PK\x05\x06\0\0\0\0", &count[..], &count, &length, &at, &[0, 0]].concat());
    bytes
}

/// A `.npy` array of `float32`.
pub fn f4(shape: &[usize], values: &[f32]) -> Vec<u8> {
    npy("<f4", shape, &values.iter().flat_map(|x| x.to_le_bytes()).collect::<Vec<_>>())
}
