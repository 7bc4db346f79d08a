//! [`Picture`]: conversion of an environment's images to grey frames of 84 × 84 pixels.
//!
//! Environments and datasets share it, so an agent sees the same pictures in training and while it
//! acts. The conversion is Atari's: grey by the luma of ITU-R BT.601, resized by area, four frames
//! with the oldest first, zeros before an episode's first frame. If an environment stacks four
//! frames itself, only the newest is used, and stacked like any other. The accepted stacks are
//! `[4, 84, 84]`, and `[84, 84, 4]` (Dopamine and Stable-Baselines3's `VecFrameStack`), with the
//! newest frame last.

/// Frames per observation.
pub const STACK: usize = 4;

/// Rows and columns per frame.
pub const SIDE: usize = 84;

/// Bytes per frame.
pub const FRAME: usize = SIDE * SIDE;

/// The accepted shapes.
const UNDERSTOOD: &str = "[height, width] of up to 4096 pixels each, with 1 or 3 colours last or \
                          before, or four of those; or [84, 84, 4], four frames with the newest last";

/// Maximum number of rows or columns of an image. Shapes come from files, which can claim any size.
const MOST: usize = 4096;

/// The error for `[height, width, 4]` of another size.
const FOUR_LAST: &str = "[height, width, 3], or four frames as [4, height, width] or [84, 84, 4]: 4 \
                         as the last axis may be four frames or colours with opacity, and shapes \
                         do not distinguish them";

/// Conversion of an environment's images to frames.
#[derive(Clone, Debug, PartialEq)]
pub struct Picture {
    /// Images per observation: 1, or 4 with the newest last.
    images: usize,
    size: [usize; 2],
    channels: usize,
    /// Whether the colours are the first axis, `[channels, rows, columns]`, not the last.
    planar: bool,
    /// Whether the images of an observation are the last axis, not the first.
    images_last: bool,
    /// For each row and column of a frame, the first image pixel and the weight of each pixel.
    rows: Vec<(usize, Vec<f32>)>,
    columns: Vec<(usize, Vec<f32>)>,
}

impl Picture {
    /// The conversion of images of this shape.
    ///
    /// # Errors
    /// The accepted shapes, in words, when the meaning of the axes is ambiguous or unknown.
    pub fn of(shape: &[usize]) -> Result<Self, &'static str> {
        let images_last = *shape == [SIDE, SIDE, STACK];
        let (images, size, channels, planar) = match *shape {
            [height, width] => (1, [height, width], 1, false),
            [height, width, STACK] if images_last => (STACK, [height, width], 1, false),
            [_, _, 4] => return Err(FOUR_LAST),
            [height, width, channels @ (1 | 3)] => (1, [height, width], channels, false),
            [channels @ (1 | 3), height, width] => (1, [height, width], channels, true),
            [STACK, height, width] => (STACK, [height, width], 1, false),
            [STACK, height, width, channels @ (1 | 3 | 4)] => {
                (STACK, [height, width], channels, false)
            }
            [STACK, channels @ (1 | 3), height, width] => (STACK, [height, width], channels, true),
            _ => return Err(UNDERSTOOD),
        };
        let [height, width] = size;
        if !(1..=MOST).contains(&height) || !(1..=MOST).contains(&width) {
            return Err(UNDERSTOOD);
        }
        let (rows, columns) = (overlaps(height), overlaps(width));
        Ok(Self { images, size, channels, planar, images_last, rows, columns })
    }

    /// Bytes per observation of the environment.
    pub fn size(&self) -> usize {
        self.images * self.image()
    }

    fn image(&self) -> usize {
        self.size[0] * self.size[1] * self.channels
    }

    /// Appends an observation of the environment to the stack `frames`, `[4, 84, 84]`. `first`:
    /// whether an episode starts with it, so the older frames are cleared.
    ///
    /// Only the newest image of an environment's own stack is used. Datasets store only that image,
    /// and frames before an episode are black in every batch, whatever the environment shows there.
    pub fn show(&self, observation: &[u8], first: bool, frames: &mut [u8]) {
        if first {
            frames.fill(0);
        } else {
            frames.copy_within(FRAME.., 0);
        }
        let newest = &mut frames[(STACK - 1) * FRAME..];
        if self.images_last {
            let shades = observation.iter().skip(STACK - 1).step_by(STACK);
            newest.iter_mut().zip(shades).for_each(|(pixel, &shade)| *pixel = shade);
        } else {
            self.resize(&observation[(self.images - 1) * self.image()..], newest);
        }
    }

    /// The image of an observation that becomes a frame; `None` if the pixels of the images are
    /// interleaved.
    pub fn newest<'a>(&self, observation: &'a [u8]) -> Option<&'a [u8]> {
        (!self.images_last).then(|| &observation[(self.images - 1) * self.image()..])
    }

    fn resize(&self, image: &[u8], frame: &mut [u8]) {
        let grey = self.grey(image);
        if self.size == [SIDE, SIDE] {
            frame.copy_from_slice(&grey);
            return;
        }
        let width = self.size[1];
        // Columns first: `[height, 84]`.
        let mut narrow = Vec::with_capacity(self.size[0] * SIDE);
        for row in grey.chunks(width) {
            narrow.extend(self.columns.iter().map(|(first, weights)| {
                let pixels = row[*first..].iter().zip(weights);
                pixels.map(|(&pixel, weight)| f32::from(pixel) * weight).sum::<f32>()
            }));
        }
        for ((first, weights), out) in self.rows.iter().zip(frame.chunks_mut(SIDE)) {
            for (column, pixel) in out.iter_mut().enumerate() {
                let above = weights.iter().enumerate();
                let sum: f32 =
                    above.map(|(row, weight)| narrow[(first + row) * SIDE + column] * weight).sum();
                *pixel = sum.round_ties_even().clamp(0.0, 255.0) as u8;
            }
        }
    }

    /// `[rows, columns]`
    fn grey(&self, image: &[u8]) -> Vec<u8> {
        let n = self.size[0] * self.size[1];
        let channel = |pixel: usize, channel: usize| {
            if self.planar {
                u32::from(image[channel * n + pixel])
            } else {
                u32::from(image[pixel * self.channels + channel])
            }
        };
        if self.channels == 1 {
            return image.to_vec();
        }
        // 0.299, 0.587 and 0.114, in parts of 2¹⁴.
        let luma = |pixel| {
            let [red, green, blue] = [0, 1, 2].map(|colour| channel(pixel, colour));
            ((red * 4899 + green * 9617 + blue * 1868 + 8192) >> 14) as u8
        };
        (0..n).map(luma).collect()
    }
}

/// For each of 84 parts of a row of `n` pixels: the first pixel in the part, and the fraction of
/// the part that each pixel covers.
fn overlaps(n: usize) -> Vec<(usize, Vec<f32>)> {
    let scale = n as f64 / SIDE as f64;
    let part = |index: usize| {
        let (from, to) = (index as f64 * scale, (index + 1) as f64 * scale);
        let (first, last) = (from.floor() as usize, (to.ceil() as usize).min(n));
        let fraction = |pixel: usize| {
            let overlap = to.min((pixel + 1) as f64) - from.max(pixel as f64);
            (overlap.max(0.0) / scale) as f32
        };
        (first, (first..last).map(fraction).collect())
    };
    (0..SIDE).map(part).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shapes_are_understood_or_refused() {
        let understood: [&[usize]; 7] = [
            &[5, 7],
            &[96, 96, 3],
            &[84, 84, 4],
            &[3, 64, 48],
            &[4, 84, 84],
            &[4, 96, 96, 3],
            &[4, 1, 84, 84],
        ];
        for shape in understood {
            let picture = Picture::of(shape).unwrap_or_else(|why| panic!("{shape:?}: {why}"));
            assert_eq!(picture.size(), shape.iter().product::<usize>(), "{shape:?}");
        }
        let huge = 10_000_000_000_000;
        for shape in [&[2, 84, 84][..], &[0, 84, 3], &[3, 96, 96, 3], &[huge, 84], &[84, 4097, 3]] {
            assert_eq!(Picture::of(shape), Err(UNDERSTOOD), "{shape:?}");
        }
        for shape in [[210, 160, 4], [96, 96, 4], [84, 83, 4]] {
            let why = Picture::of(&shape).unwrap_err();
            assert!(why.contains("four frames or colours with opacity"), "{shape:?}: {why}");
        }
    }

    /// Also when an environment's stack repeats its first image, as Gymnasium's does.
    #[test]
    fn only_the_newest_of_four_frames_is_stacked() {
        let (last, first) =
            (Picture::of(&[84, 84, 4]).unwrap(), Picture::of(&[4, 84, 84]).unwrap());
        for (picture, at) in [(last, 4 * 85 + 3), (first, 3 * FRAME + 85)] {
            let stack = |shades: [u8; STACK]| {
                if picture.images_last {
                    shades.repeat(FRAME)
                } else {
                    shades.iter().flat_map(|&shade| [shade; FRAME]).collect()
                }
            };
            let mut frames = vec![7; STACK * FRAME];
            picture.show(&stack([10; STACK]), true, &mut frames);
            let mut next = stack([10, 10, 10, 20]);
            // One pixel differs.
            next[at] = 99;
            picture.show(&next, false, &mut frames);
            let mut expected: Vec<u8> = [0, 0, 10, 20].iter().flat_map(|&s| [s; FRAME]).collect();
            expected[3 * FRAME + 85] = 99;
            assert!(frames == expected);
        }
    }

    #[test]
    fn frames_follow_one_another_after_zeros() {
        let picture = Picture::of(&[42, 168, 3]).unwrap();
        let image = |grey: u8| vec![grey; picture.size()];
        let mut frames = vec![9; STACK * FRAME];
        let shown = |frames: &[u8]| [0, 1, 2, 3].map(|frame| frames[frame * FRAME + 100]);
        picture.show(&image(10), true, &mut frames);
        assert_eq!(shown(&frames), [0, 0, 0, 10]);
        picture.show(&image(20), false, &mut frames);
        picture.show(&image(30), false, &mut frames);
        assert_eq!(shown(&frames), [0, 10, 20, 30]);
        picture.show(&image(40), true, &mut frames);
        assert_eq!(shown(&frames), [0, 0, 0, 40]);
    }

    #[test]
    fn a_pixel_is_the_mean_of_what_it_covers() {
        // Twice as high and as wide: each pixel covers two by two, here 0, 4, 8 and 8.
        let picture = Picture::of(&[168, 168]).unwrap();
        let image: Vec<u8> = (0..168 * 168).map(|i| [[0, 4], [8, 8]][i / 168 % 2][i % 2]).collect();
        let mut frames = vec![0; STACK * FRAME];
        picture.show(&image, true, &mut frames);
        assert!(frames[3 * FRAME..].iter().all(|&pixel| pixel == 5));
        // Colours are weighted, green most. The planar layout has the same result.
        let (last, planes) = (Picture::of(&[84, 84, 3]), Picture::of(&[3, 84, 84]));
        let colours = [200u8, 100, 50];
        let image: Vec<u8> = (0..FRAME * 3).map(|i| colours[i % 3]).collect();
        last.unwrap().show(&image, true, &mut frames);
        // 59.8 + 58.7 + 5.7
        assert!(frames[3 * FRAME..].iter().all(|&pixel| pixel == 124));
        let image: Vec<u8> = (0..FRAME * 3).map(|i| colours[i / FRAME]).collect();
        planes.unwrap().show(&image, true, &mut frames);
        assert!(frames[3 * FRAME..].iter().all(|&pixel| pixel == 124));
    }

    #[test]
    fn small_images_grow() {
        let picture = Picture::of(&[2, 3]).unwrap();
        let mut frames = vec![0; STACK * FRAME];
        picture.show(&[0, 90, 180, 30, 60, 90], true, &mut frames);
        let at = |row: usize, column: usize| frames[3 * FRAME + row * SIDE + column];
        assert_eq!([at(0, 0), at(0, 83), at(83, 0), at(83, 83)], [0, 180, 30, 90]);
    }
}
