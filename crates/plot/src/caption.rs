//! Lines of text.

use crate::svg;

/// Lines below each other.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Caption {
    /// Width in units of the SVG.
    pub width: u32,
    /// The first line is in larger letters.
    pub lines: Vec<String>,
}

const ROW: f64 = 17.0;

impl Caption {
    /// Height of a picture with `lines` lines, in units of its SVG.
    pub(crate) fn height(lines: usize) -> f64 {
        10.0 + ROW * lines as f64
    }

    /// The picture as SVG.
    pub fn to_svg(&self) -> String {
        let mut picture = svg::opening([f64::from(self.width), Self::height(self.lines.len())]);
        for (i, line) in self.lines.iter().enumerate() {
            let size = if i == 0 { "font-size=\"14\"" } else { "" };
            svg::text(&mut picture, [8.0, 18.0 + ROW * i as f64], size, line);
        }
        picture + "</svg>\n"
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_line_is_on_the_picture() {
        let lines = vec!["Seaquest".into(), "a < b".into()];
        let svg = Caption { width: 300, lines }.to_svg();
        assert!(svg.contains("viewBox=\"0 0 300 44\""), "{svg}");
        assert!(svg.contains(">Seaquest</text>") && svg.contains("y=\"35.0\" >a &lt; b</text>"));
    }
}
