//! CRC-32C: the checksum of TensorFlow's records and of Google's object storage.

/// For each byte, what it does to the checksum.
const TABLE: [u32; 256] = table();

/// Castagnoli's polynomial, reflected (RFC 3720, appendix B.4).
const POLYNOMIAL: u32 = 0x82f6_3b78;

/// The checksum of bytes that come in parts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Crc32c {
    /// Of the bytes so far.
    sum: u32,
}

impl Crc32c {
    /// Adds the next bytes.
    pub fn update(&mut self, bytes: &[u8]) {
        self.sum = !bytes
            .iter()
            .fold(!self.sum, |sum, &byte| sum >> 8 ^ TABLE[usize::from(sum as u8 ^ byte)]);
    }

    /// The checksum of all bytes so far.
    pub fn value(self) -> u32 {
        self.sum
    }
}

/// The checksum of `bytes`.
pub fn crc32c(bytes: &[u8]) -> u32 {
    let mut sum = Crc32c::default();
    sum.update(bytes);
    sum.value()
}

const fn table() -> [u32; 256] {
    let mut table = [0; 256];
    let mut byte = 0;
    while byte < 256 {
        let mut sum = byte as u32;
        let mut bit = 0;
        while bit < 8 {
            sum = if sum & 1 == 1 { sum >> 1 ^ POLYNOMIAL } else { sum >> 1 };
            bit += 1;
        }
        table[byte] = sum;
        byte += 1;
    }
    table
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn checksums_are_those_of_rfc_3720() {
        assert_eq!(crc32c(b""), 0);
        assert_eq!(crc32c(b"123456789"), 0xe306_9283);
        assert_eq!(crc32c(&[0; 32]), 0x8a91_36aa);
        assert_eq!(crc32c(&[0xff; 32]), 0x62a8_ab43);
    }

    #[test]
    fn parts_give_what_the_whole_gives() {
        let mut sum = Crc32c::default();
        for part in ["12", "", "3456", "789"] {
            sum.update(part.as_bytes());
        }
        assert_eq!(sum.value(), 0xe306_9283);
    }
}
