//! A reader of protocol buffers: the fields of ONNX's messages.

use crate::error::{Error, damaged};

/// The value of a field.
#[derive(Clone, Copy, Debug)]
pub enum Field<'a> {
    /// A whole number.
    Number(u64),
    /// Four bytes.
    Float(f32),
    /// A word, a message or packed numbers.
    Bytes(&'a [u8]),
}

impl<'a> Field<'a> {
    /// The number; 0 for another kind.
    pub fn number(self) -> i64 {
        if let Self::Number(number) = self { number as i64 } else { 0 }
    }

    /// The bytes; none for another kind.
    pub fn bytes(self) -> &'a [u8] {
        if let Self::Bytes(bytes) = self { bytes } else { &[] }
    }

    /// The word.
    ///
    /// # Errors
    /// When it is not UTF-8.
    pub fn text(self) -> Result<&'a str, Error> {
        std::str::from_utf8(self.bytes()).map_err(|_| damaged("agent.onnx: a name is not UTF-8"))
    }

    /// Adds the number, or the packed numbers, to `list`.
    ///
    /// # Errors
    /// When the packed numbers do not end.
    pub fn numbers(self, list: &mut Vec<i64>) -> Result<(), Error> {
        match self {
            Self::Number(number) => list.push(number as i64),
            Self::Float(_) => {}
            Self::Bytes(mut bytes) => {
                while !bytes.is_empty() {
                    list.push(varint(&mut bytes)? as i64);
                }
            }
        }
        Ok(())
    }
}

fn cut() -> Error {
    damaged("agent.onnx is damaged: a field does not end")
}

fn varint(bytes: &mut &[u8]) -> Result<u64, Error> {
    let mut value = 0u64;
    for shift in (0..64).step_by(7) {
        let (&byte, rest) = bytes.split_first().ok_or_else(cut)?;
        *bytes = rest;
        value |= u64::from(byte & 0x7f) << shift;
        if byte & 0x80 == 0 {
            return Ok(value);
        }
    }
    Err(cut())
}

/// The number and value of every field of a message, in order.
///
/// # Errors
/// When a field does not end, or has an unknown kind.
pub fn fields(mut bytes: &[u8]) -> Result<Vec<(u64, Field<'_>)>, Error> {
    let mut all = Vec::new();
    while !bytes.is_empty() {
        let tag = varint(&mut bytes)?;
        let field = match tag & 7 {
            0 => Field::Number(varint(&mut bytes)?),
            1 => {
                let (eight, rest) = bytes.split_first_chunk::<8>().ok_or_else(cut)?;
                bytes = rest;
                Field::Number(u64::from_le_bytes(*eight))
            }
            2 => {
                let n = usize::try_from(varint(&mut bytes)?).map_err(|_| cut())?;
                let (value, rest) = bytes.split_at_checked(n).ok_or_else(cut)?;
                bytes = rest;
                Field::Bytes(value)
            }
            5 => {
                let (four, rest) = bytes.split_first_chunk::<4>().ok_or_else(cut)?;
                bytes = rest;
                Field::Float(f32::from_le_bytes(*four))
            }
            _ => return Err(damaged("agent.onnx is damaged: a field of an unknown kind")),
        };
        all.push((tag >> 3, field));
    }
    Ok(all)
}
