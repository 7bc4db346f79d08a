//! Animations as GIF.

use std::collections::HashMap;
use std::io::Write;

use gif::{DisposalMethod, Encoder, EncodingError, Frame, Repeat};

use crate::raster::Image;

/// The reason why an animation could not be written.
#[derive(Debug, thiserror::Error)]
pub enum AnimationError {
    /// An image of another size than the first.
    #[error("an image of {got:?} pixels in an animation of {expected:?}")]
    Size {
        /// Width and height of the first.
        expected: [usize; 2],
        /// Width and height of this image.
        got: [usize; 2],
    },
    /// A size that exceeds the limits of a GIF.
    #[error("an animation of {0:?} pixels: a GIF has at most 65535 in each direction")]
    TooLarge([usize; 2]),
    /// The GIF could not be written.
    #[error("cannot write the animation")]
    Gif(#[from] EncodingError),
}

/// A GIF that is written frame by frame, and repeats forever.
///
/// Colours are exact in an image with at most 255 colours, else the nearest ones of a palette that
/// is computed for the image. Only the pixels that changed in an image are stored.
pub struct Animation<W: Write> {
    encoder: Encoder<W>,
    size: [usize; 2],
    /// The image so far.
    shown: Option<Image>,
}

impl<W: Write> Animation<W> {
    /// An animation of this width and height, without a frame.
    ///
    /// # Errors
    /// When it is too large, or cannot be written.
    pub fn new(to: W, size: [usize; 2]) -> Result<Self, AnimationError> {
        let short =
            |length: usize| u16::try_from(length).map_err(|_| AnimationError::TooLarge(size));
        let mut encoder = Encoder::new(to, short(size[0])?, short(size[1])?, &[])?;
        encoder.set_repeat(Repeat::Infinite)?;
        Ok(Self { encoder, size, shown: None })
    }

    /// Adds an image that is shown for `hundredths` hundredths of a second.
    ///
    /// # Errors
    /// When it has another size, or cannot be written.
    pub fn push(&mut self, image: &Image, hundredths: u16) -> Result<(), AnimationError> {
        let got = [image.width(), image.height()];
        if got != self.size {
            return Err(AnimationError::Size { expected: self.size, got });
        }
        let [width, height] = got.map(|length| length as u16);
        let mut frame = match self.indexed(image) {
            Some(frame) => frame,
            // 10 is the crate's own compromise between fast (30) and good (1).
            None => Frame::from_rgb_speed(width, height, image.rgb(), 10),
        };
        frame.delay = hundredths;
        frame.dispose = DisposalMethod::Keep;
        self.encoder.write_frame(&frame)?;
        self.shown = Some(image.clone());
        Ok(())
    }

    /// The frame with exact colours, and transparent pixels where nothing changes; `None` when
    /// there are too many colours.
    fn indexed(&self, image: &Image) -> Option<Frame<'static>> {
        const CLEAR: u8 = 0;
        let mut palette = vec![0, 0, 0];
        let mut places: HashMap<[u8; 3], u8> = HashMap::new();
        let mut indices = Vec::with_capacity(image.rgb().len() / 3);
        let mut before = self.shown.as_ref().map(|shown| shown.rgb().chunks_exact(3));
        for pixel in image.rgb().chunks_exact(3) {
            let same = before.as_mut().and_then(Iterator::next) == Some(pixel);
            if same {
                indices.push(CLEAR);
                continue;
            }
            let colour = [pixel[0], pixel[1], pixel[2]];
            let index = match places.get(&colour) {
                Some(&index) => index,
                None => {
                    let index = u8::try_from(places.len() + 1).ok()?;
                    places.insert(colour, index);
                    palette.extend(colour);
                    index
                }
            };
            indices.push(index);
        }
        let [width, height] = self.size.map(|length| length as u16);
        Some(Frame::from_palette_pixels(width, height, indices, palette, Some(CLEAR)))
    }

    /// Completes the file.
    ///
    /// # Errors
    /// When it cannot be written.
    pub fn finish(self) -> Result<W, AnimationError> {
        self.encoder.into_inner().map_err(AnimationError::Gif)
    }
}

#[cfg(test)]
mod tests {
    use gif::{ColorOutput, DecodeOptions};

    use super::*;

    /// Every frame of the GIF as a viewer composes it, with its duration.
    fn seen(gif: &[u8]) -> Vec<(Vec<u8>, u16)> {
        let mut options = DecodeOptions::new();
        options.set_color_output(ColorOutput::RGBA);
        let mut decoder = options.read_info(gif).unwrap();
        let mut canvas = vec![0; decoder.width() as usize * decoder.height() as usize * 3];
        let mut frames = Vec::new();
        while let Some(frame) = decoder.read_next_frame().unwrap() {
            for (shown, pixel) in canvas.chunks_exact_mut(3).zip(frame.buffer.chunks_exact(4)) {
                if pixel[3] > 0 {
                    shown.copy_from_slice(&pixel[..3]);
                }
            }
            frames.push((canvas.clone(), frame.delay));
        }
        frames
    }

    #[test]
    fn few_colours_are_kept_exactly() {
        let first = Image::new(2, 2, vec![1, 2, 3, 4, 5, 6, 7, 8, 9, 1, 2, 3]);
        let second = Image::new(2, 2, vec![1, 2, 3, 4, 5, 6, 250, 0, 9, 1, 2, 3]);
        let mut animation = Animation::new(Vec::new(), [2, 2]).unwrap();
        for (image, delay) in [(&first, 7), (&second, 6), (&second, 5)] {
            animation.push(image, delay).unwrap();
        }
        let gif = animation.finish().unwrap();
        let pixels = |image: &Image| image.rgb().to_vec();
        let expected = vec![(pixels(&first), 7), (pixels(&second), 6), (pixels(&second), 5)];
        assert_eq!(seen(&gif), expected);
    }

    #[test]
    fn many_colours_are_approximated() {
        let rgb = (0..32 * 32).flat_map(|i: u32| [(i / 32 * 8) as u8, (i % 32 * 8) as u8, 90]);
        let image = Image::new(32, 32, rgb.collect());
        let mut animation = Animation::new(Vec::new(), [32, 32]).unwrap();
        animation.push(&image, 2).unwrap();
        let gif = animation.finish().unwrap();
        let frames = seen(&gif);
        let far = frames[0].0.iter().zip(image.rgb()).map(|(a, b)| f64::from(a.abs_diff(*b)));
        let mean = far.sum::<f64>() / image.rgb().len() as f64;
        assert!(mean < 10.0, "{mean}");
    }

    #[test]
    fn sizes_must_agree() {
        let mut animation = Animation::new(Vec::new(), [2, 1]).unwrap();
        let error = animation.push(&Image::filled(1, 2, [0; 3]), 1).unwrap_err();
        let words = "an image of [1, 2] pixels in an animation of [2, 1]";
        assert_eq!(error.to_string(), words);
        assert!(matches!(
            Animation::new(Vec::new(), [70_000, 1]),
            Err(AnimationError::TooLarge(_))
        ));
    }
}
