//! The elements of an HDF5 array.

use hdf5_pure::{Datatype, DatatypeByteOrder, FloatingPointLayout};

use crate::read::source::Kind;

/// IEEE 754's half precision.
const HALF: FloatingPointLayout = FloatingPointLayout {
    bit_offset: 0,
    bit_precision: 16,
    exponent_location: 10,
    exponent_size: 5,
    mantissa_location: 0,
    mantissa_size: 10,
    exponent_bias: 15,
};

/// The elements of a type, if it is read, and the type's name as NumPy has it.
pub(super) fn described(datatype: &Datatype) -> (Option<Kind>, String) {
    let bits = u64::from(datatype.type_size()) * 8;
    match datatype {
        Datatype::FixedPoint { layout, .. } => match (layout.signed, bits) {
            (false, 8) => (Some(Kind::Byte), "uint8".into()),
            (false, _) => (Some(Kind::Whole), format!("uint{bits}")),
            (true, _) => (Some(Kind::Whole), format!("int{bits}")),
        },
        Datatype::FloatingPoint { byte_order, layout, .. } => {
            let standard = match bits {
                16 => HALF,
                32 => FloatingPointLayout::IEEE754_BINARY32,
                _ => FloatingPointLayout::IEEE754_BINARY64,
            };
            let is_known = *layout == standard
                && matches!(
                    byte_order,
                    DatatypeByteOrder::LittleEndian | DatatypeByteOrder::BigEndian
                );
            (is_known.then_some(Kind::Real), format!("float{bits}"))
        }
        Datatype::Enumeration { base_type, members, .. } => {
            let is_flag = |name: &str, value: u8| {
                members.iter().any(|member| member.name == name && member.value == [value])
            };
            if members.len() == 2 && is_flag("FALSE", 0) && is_flag("TRUE", 1) {
                return (Some(Kind::Flag), "bool".into());
            }
            (None, format!("enum ({})", described(base_type).1))
        }
        Datatype::String { size, .. } => (None, format!("string (len {size})")),
        Datatype::VariableLength { is_string: true, .. } => (None, "string (var len)".into()),
        Datatype::VariableLength { base_type, .. } => {
            (None, format!("[{}] (var len)", described(base_type).1))
        }
        Datatype::Compound { members, .. } => {
            (None, format!("compound ({} fields)", members.len()))
        }
        Datatype::Array { base_type, dimensions } => {
            (None, format!("[{}; {dimensions:?}]", described(base_type).1))
        }
        Datatype::Reference { .. } => (None, "reference".into()),
        _ => (None, format!("bytes ({} an element)", datatype.type_size())),
    }
}

/// Whether elements are streams of bytes.
pub(super) fn is_stream(datatype: &Datatype) -> bool {
    let Datatype::VariableLength { is_string: false, base_type, .. } = datatype else {
        return false;
    };
    described(base_type).0 == Some(Kind::Byte)
}
