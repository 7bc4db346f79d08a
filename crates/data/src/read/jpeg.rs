//! Pictures that Minari stored as JPEG, one stream of bytes for each.

use zune_jpeg::JpegDecoder;
use zune_jpeg::zune_core::bytestream::ZCursor;
use zune_jpeg::zune_core::colorspace::ColorSpace;
use zune_jpeg::zune_core::options::DecoderOptions;

/// The picture in `bytes`, which must be of `shape`: `[rows, columns]` in grey, or
/// `[rows, columns, 3]`.
///
/// # Errors
/// The defect. Memory is allocated only for a picture of that size.
pub fn decoded(bytes: &[u8], shape: &[usize]) -> Result<Vec<u8>, String> {
    let (height, width, colours) = match *shape {
        [height, width] => (height, width, ColorSpace::Luma),
        [height, width, 3] => (height, width, ColorSpace::RGB),
        _ => return Err(format!("a picture of shape {shape:?} is not a JPEG")),
    };
    let options = DecoderOptions::default()
        .set_max_height(height)
        .set_max_width(width)
        .jpeg_set_out_colorspace(colours);
    let wrong = |error| format!("no sound JPEG ({error})");
    let mut decoder = JpegDecoder::new_with_options(ZCursor::new(bytes), options);
    decoder.decode_headers().map_err(|error| wrong(error.to_string()))?;
    let size = decoder.info().map(|info| [usize::from(info.height), usize::from(info.width)]);
    if size != Some([height, width]) {
        return Err(format!("a JPEG of another size than {height} by {width}"));
    }
    let pixels = decoder.decode().map_err(|error| wrong(error.to_string()))?;
    let expected = shape.iter().product::<usize>();
    match pixels.len() == expected {
        true => Ok(pixels),
        false => Err(format!("a JPEG of {} bytes, expected {expected}", pixels.len())),
    }
}

#[cfg(test)]
mod tests {
    use super::decoded;

    #[test]
    fn what_is_no_picture() {
        assert!(decoded(b"", &[4, 4]).unwrap_err().contains("no sound JPEG"));
        assert!(decoded(b"\xff\xd8\xff\xe0\0\x10JFIF", &[4, 4, 3]).unwrap_err().contains("JPEG"));
        assert!(decoded(b"", &[4, 4, 4]).unwrap_err().contains("[4, 4, 4] is not a JPEG"));
    }
}
