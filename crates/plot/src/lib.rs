//! Pictures: line plots, bars and strips of dots as SVG and PNG, and animations as GIF.
//!
//! Every picture is first an SVG. Pixels are rendered from it with a bundled font, so they are the
//! same on every machine.

pub mod animation;
pub mod bars;
pub mod caption;
pub mod line_plot;
pub mod raster;
pub mod sketch;
pub mod strips;
mod svg;

pub use animation::{Animation, AnimationError};
pub use bars::Bars;
pub use caption::Caption;
pub use line_plot::{Line, LinePlot, MOST_LINES, Scale, Stroke};
pub use raster::Image;
pub use sketch::{Limb, Sketch};
pub use strips::{Strip, Strips};
pub use svg::escape;
