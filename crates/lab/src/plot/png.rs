//! SVG to PNG, with a font of our own: the same picture on every machine.

use std::sync::{Arc, OnceLock};

use resvg::tiny_skia::{Pixmap, Transform};
use resvg::usvg::{Options, Tree, fontdb::Database};

/// Pixels for each unit of the SVG: sharp on dense screens.
const ZOOM: f32 = 2.0;

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

/// The picture that `svg` describes.
///
/// # Panics
/// When `svg` is no SVG: we have written it.
pub(super) fn render(svg: &str) -> Vec<u8> {
    let options = Options { fontdb: fonts(), ..Options::default() };
    let tree = Tree::from_str(svg, &options).expect("a plot is well-formed SVG");
    let size = tree.size().to_int_size().scale_by(ZOOM).expect("a plot has a size");
    let mut pixels = Pixmap::new(size.width(), size.height()).expect("a plot has a size");
    resvg::render(&tree, Transform::from_scale(ZOOM, ZOOM), &mut pixels.as_mut());
    pixels.encode_png().expect("encoding into memory")
}
