//! The elements of NumPy's arrays.

use crate::read::source::Kind;
use crate::read::wrapped::unsigned_max;

/// The type of an array's elements.
#[derive(Clone, Copy)]
pub(super) struct Element {
    /// `b`, `i`, `u` or `f`, as NumPy has it.
    letter: u8,
    pub size: usize,
    pub big_endian: bool,
}

impl Element {
    /// From NumPy's `<f4`.
    pub fn of(descr: &str) -> Option<Self> {
        let &[order, letter, size] = descr.as_bytes() else { return None };
        let size = usize::from(size.wrapping_sub(b'0'));
        let known = match letter {
            b'b' => size == 1,
            b'i' | b'u' => [1, 2, 4, 8].contains(&size),
            b'f' => [2, 4, 8].contains(&size),
            _ => false,
        };
        let big_endian = match order {
            b'<' | b'|' => false,
            b'>' => true,
            _ => return None,
        };
        known.then_some(Self { letter, size, big_endian })
    }

    /// The bytes of one element, the lowest first.
    pub fn low_first(self, bytes: &[u8]) -> [u8; 8] {
        let mut low_first = [0; 8];
        low_first[..self.size].copy_from_slice(bytes);
        if self.big_endian {
            low_first[..self.size].reverse();
        }
        low_first
    }

    pub fn kind(self) -> Kind {
        match (self.letter, self.size) {
            (b'b', _) => Kind::Flag,
            (b'u', 1) => Kind::Byte,
            (b'f', _) => Kind::Real,
            _ => Kind::Whole,
        }
    }

    /// The largest value of an unsigned type.
    pub fn unsigned_max(self) -> Option<f32> {
        (self.letter == b'u').then(|| unsigned_max(self.size))
    }

    /// Whether `f32` holds every such number.
    pub fn fits_single(self) -> bool {
        match self.letter {
            b'f' => self.size <= 4,
            _ => self.size <= 2,
        }
    }

    /// A number that [`Element::fits_single`].
    pub fn real(self, bytes: [u8; 8]) -> f32 {
        self.double(bytes) as f32
    }

    pub fn double(self, bytes: [u8; 8]) -> f64 {
        let [a, b, c, d, ..] = bytes;
        match (self.letter, self.size) {
            (b'f', 2) => half::f16::from_le_bytes([a, b]).to_f64(),
            (b'f', 4) => f32::from_le_bytes([a, b, c, d]).into(),
            (b'f', _) => f64::from_le_bytes(bytes),
            (b'u' | b'b', _) => u64::from_le_bytes(bytes) as f64,
            _ => self.whole(bytes) as f64,
        }
    }

    /// Whole numbers beyond 63 bits become negative, which the reader refuses.
    pub fn whole(self, bytes: [u8; 8]) -> i64 {
        let number = i64::from_le_bytes(bytes);
        let unused = 64 - 8 * self.size as u32;
        match self.letter {
            b'i' => number << unused >> unused,
            _ => number,
        }
    }
}
