//! Screens: sizes, and bilinear resizing that equals OpenCV's bit by bit.

/// Height and width of an observed frame.
pub const SIDE: usize = 84;
/// Frames in an observation.
pub const STACK: usize = 4;
/// Height and width of a raw screen.
pub const RAW: [usize; 2] = [210, 160];

/// The weight 1 as a fixed-point number with 11 fractional bits.
const ONE: f32 = 2048.0;

/// Bilinear resizing of grey pictures, equal to OpenCV's `resize` with `INTER_LINEAR` for bytes.
///
/// Pixel centres are aligned, borders are repeated, and weights are rounded to 1/2048. The vertical
/// pass drops the same bits as OpenCV's vector code, so results are equal bit by bit.
#[derive(Clone, Debug)]
pub struct Bilinear {
    width: usize,
    rows: Vec<Tap>,
    columns: Vec<Tap>,
    /// Two horizontally resized source rows, with their indices.
    lines: [(Option<usize>, Vec<i32>); 2],
}

/// Two source pixels of a target pixel, with their weights.
#[derive(Clone, Copy, Debug)]
struct Tap {
    at: [usize; 2],
    weight: [i32; 2],
}

fn taps(source: usize, target: usize) -> Vec<Tap> {
    let scale = source as f64 / target as f64;
    let tap = |i: usize| {
        let centre = ((i as f64 + 0.5) * scale - 0.5) as f32;
        let floor = centre.floor();
        let (mut low, mut fraction) = (floor as isize, centre - floor);
        if low < 0 {
            (low, fraction) = (0, 0.0);
        }
        let last = source as isize - 1;
        if low >= last {
            (low, fraction) = (last, 0.0);
        }
        let weight = |w: f32| (w * ONE).round_ties_even() as i32;
        Tap {
            at: [low as usize, (low + 1).min(last) as usize],
            weight: [weight(1.0 - fraction), weight(fraction)],
        }
    };
    (0..target).map(tap).collect()
}

impl Bilinear {
    /// Resizing from `source` to `target`, both `[height, width]` and not empty.
    pub fn new(source: [usize; 2], target: [usize; 2]) -> Self {
        Self {
            width: source[1],
            rows: taps(source[0], target[0]),
            columns: taps(source[1], target[1]),
            lines: [(None, vec![0; target[1]]), (None, vec![0; target[1]])],
        }
    }

    /// Resizes one picture.
    ///
    /// # Shapes
    /// - `picture`: `[source height, source width]`
    /// - `out`: `[target height, target width]`
    pub fn resize(&mut self, picture: &[u8], out: &mut [u8]) {
        let Self { width, rows, columns, lines } = self;
        lines[0].0 = None;
        lines[1].0 = None;
        for (tap, out) in rows.iter().zip(out.chunks_mut(columns.len())) {
            for (line, &row) in lines.iter_mut().zip(&tap.at) {
                if line.0 != Some(row) {
                    let pixels = &picture[row * *width..(row + 1) * *width];
                    for (value, column) in line.1.iter_mut().zip(columns.iter()) {
                        *value = i32::from(pixels[column.at[0]]) * column.weight[0]
                            + i32::from(pixels[column.at[1]]) * column.weight[1];
                    }
                    line.0 = Some(row);
                }
            }
            for ((out, &a), &b) in out.iter_mut().zip(&lines[0].1).zip(&lines[1].1) {
                let part = |value: i32, weight: i32| (weight * (value >> 4)) >> 16;
                let sum = part(a, tap.weight[0]) + part(b, tap.weight[1]);
                *out = ((sum + 2) >> 2).clamp(0, 255) as u8;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_flat_picture_stays_flat_and_a_ramp_stays_a_ramp() {
        let mut resize = Bilinear::new(RAW, [SIDE, SIDE]);
        let mut out = vec![0; SIDE * SIDE];
        resize.resize(&vec![255; RAW[0] * RAW[1]], &mut out);
        assert!(out.iter().all(|&pixel| pixel == 255));
        let ramp: Vec<u8> = (0..RAW[0] * RAW[1]).map(|i| (i / RAW[1]) as u8).collect();
        resize.resize(&ramp, &mut out);
        // Row i of the result is at 2.5 i + 0.75 of the source, rounded.
        for (i, row) in out.chunks(SIDE).enumerate() {
            let centre = 2.5 * i as f32 + 0.75;
            assert!(row.iter().all(|&pixel| (f32::from(pixel) - centre).abs() <= 0.5), "{i}");
        }
    }
}
