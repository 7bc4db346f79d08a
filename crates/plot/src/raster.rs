//! SVG to pixels, with our own font: the same picture on every machine.

use std::sync::{Arc, OnceLock};

use resvg::tiny_skia::{Pixmap, Transform};
use resvg::usvg::{Options, Tree, fontdb::Database};

/// Pixels, row by row, red, green and blue.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Image {
    width: usize,
    height: usize,
    rgb: Vec<u8>,
}

impl Image {
    /// An image of one colour.
    pub fn filled(width: usize, height: usize, colour: [u8; 3]) -> Self {
        Self { width, height, rgb: colour.repeat(width * height) }
    }

    /// An image of these bytes, `[height, width, 3]`.
    ///
    /// # Panics
    /// When the number of bytes differs.
    pub fn new(width: usize, height: usize, rgb: Vec<u8>) -> Self {
        assert_eq!(rgb.len(), width * height * 3, "bytes of an image of {width} × {height}");
        Self { width, height, rgb }
    }

    /// The picture of `svg`, which must be an SVG of this crate, with `zoom` pixels for each of its
    /// units, on a white ground.
    ///
    /// # Panics
    /// When `svg` is not a valid SVG.
    pub fn of_svg(svg: &str, zoom: f32) -> Self {
        let pixels = render(svg, zoom);
        let premultiplied = pixels.data().chunks_exact(4);
        let rgb = premultiplied.flat_map(|pixel| {
            let white = 255 - pixel[3];
            [pixel[0] + white, pixel[1] + white, pixel[2] + white]
        });
        let (width, height) = (pixels.width() as usize, pixels.height() as usize);
        Self { width, height, rgb: rgb.collect() }
    }

    /// Pixels in a row.
    pub fn width(&self) -> usize {
        self.width
    }

    /// Rows.
    pub fn height(&self) -> usize {
        self.height
    }

    /// `[height, width, 3]`.
    pub fn rgb(&self) -> &[u8] {
        &self.rgb
    }

    /// Every pixel as a block of `by[0] × by[1]`, width and height.
    pub fn enlarged(&self, [across, down]: [usize; 2]) -> Self {
        let mut rgb = Vec::with_capacity(self.rgb.len() * across * down);
        for row in self.rgb.chunks_exact((self.width * 3).max(1)) {
            let wide: Vec<u8> =
                row.chunks_exact(3).flat_map(|pixel| pixel.repeat(across)).collect();
            (0..down).for_each(|_| rgb.extend_from_slice(&wide));
        }
        Self { width: self.width * across, height: self.height * down, rgb }
    }

    /// Draws `image` with its upper left corner at `left`, `top`; parts outside are cut off.
    pub fn draw(&mut self, image: &Self, left: usize, top: usize) {
        let width = image.width.min(self.width.saturating_sub(left)) * 3;
        if width == 0 {
            return;
        }
        let rows = image.rgb.chunks_exact((image.width * 3).max(1));
        for (row, pixels) in rows.enumerate().take(self.height.saturating_sub(top)) {
            let start = ((top + row) * self.width + left) * 3;
            self.rgb[start..start + width].copy_from_slice(&pixels[..width]);
        }
    }
}

/// The PNG of `svg`, which must be an SVG of this crate, with `zoom` pixels for each of its units.
///
/// # Panics
/// When `svg` is not a valid SVG.
pub(crate) fn png(svg: &str, zoom: f32) -> Vec<u8> {
    render(svg, zoom).encode_png().expect("encoding into memory")
}

fn render(svg: &str, zoom: f32) -> Pixmap {
    let options = Options { fontdb: fonts(), ..Options::default() };
    let tree = Tree::from_str(svg, &options).expect("a picture of ours is well-formed SVG");
    let size = tree.size().to_int_size().scale_by(zoom).expect("a picture has a size");
    let mut pixels = Pixmap::new(size.width(), size.height()).expect("a picture has a size");
    resvg::render(&tree, Transform::from_scale(zoom, zoom), &mut pixels.as_mut());
    pixels
}

fn fonts() -> Arc<Database> {
    static FONTS: OnceLock<Arc<Database>> = OnceLock::new();
    let made = FONTS.get_or_init(|| {
        let mut fonts = Database::new();
        fonts.load_font_data(epaint_default_fonts::UBUNTU_LIGHT.to_vec());
        fonts.set_sans_serif_family("Ubuntu");
        Arc::new(fonts)
    });
    made.clone()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_svg_becomes_pixels() {
        let svg = "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 3 2\">\
                   <rect width=\"1\" height=\"2\" fill=\"#0a141e\"/></svg>";
        let image = Image::of_svg(svg, 1.0);
        let white = [255; 6];
        let row = [&[10, 20, 30][..], &white].concat();
        assert_eq!((image.width(), image.height()), (3, 2));
        assert_eq!(image.rgb(), [row.clone(), row].concat());
    }

    #[test]
    fn pixels_become_blocks() {
        let image = Image::new(2, 1, vec![1, 2, 3, 4, 5, 6]);
        let row = [1, 2, 3, 1, 2, 3, 4, 5, 6, 4, 5, 6];
        let large = Image::new(4, 3, row.repeat(3));
        assert_eq!(image.enlarged([2, 3]), large);
    }

    #[test]
    fn a_drawn_image_is_cut_at_the_edges() {
        let mut ground = Image::filled(3, 2, [0; 3]);
        ground.draw(&Image::filled(2, 5, [7; 3]), 2, 1);
        assert_eq!(ground.rgb(), [vec![0; 15], vec![7; 3]].concat());
        ground.draw(&Image::filled(1, 1, [9; 3]), 3, 2);
        ground.draw(&Image::filled(1, 1, [9; 3]), 5, 1);
        assert_eq!(ground.rgb()[15..], [7; 3]);
    }
}
