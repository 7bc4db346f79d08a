//! Horizontal bars: a number for each name.

use std::fmt::Write;

use crate::svg;

/// Bars below each other, from a common zero to the right, or to the left where negative.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Bars {
    /// Title above the bars; empty for none.
    pub title: String,
    /// Names and lengths; one that is not finite has no bar.
    pub bars: Vec<(String, f64)>,
    /// The bar with another colour.
    pub marked: Option<usize>,
    /// The length that reaches the edge; 0: the length of the longest bar.
    pub full: f64,
    /// Whether to reserve room to the left even if no bar needs it.
    pub signed: bool,
}

const WIDTH: f64 = 320.0;
const ROW: f64 = 17.0;
/// Average width of a character of a name.
const CHARACTER: f64 = 7.2;
/// Room for a number at the right.
const NUMBER: f64 = 44.0;

impl Bars {
    /// Width and height of the picture, in units of its SVG.
    pub(crate) fn size(&self) -> [f64; 2] {
        [WIDTH, self.top() + ROW * self.bars.len() as f64 + 6.0]
    }

    fn top(&self) -> f64 {
        if self.title.is_empty() { 4.0 } else { 28.0 }
    }

    /// The picture as SVG.
    pub fn to_svg(&self) -> String {
        let mut picture = svg::opening(self.size());
        if !self.title.is_empty() {
            svg::text(&mut picture, [8.0, 18.0], "font-size=\"13\"", &self.title);
        }
        let longest = self.bars.iter().map(|(name, _)| name.chars().count()).max().unwrap_or(0);
        let left = 16.0 + CHARACTER * longest as f64;
        let lengths = || self.bars.iter().map(|(_, length)| *length).filter(|x| x.is_finite());
        let full = match self.full {
            full if full > 0.0 => full,
            _ => lengths().fold(0.0, |longest: f64, length| longest.max(length.abs())),
        };
        let room = (WIDTH - left - NUMBER).max(1.0);
        // Bars to the left take half of the room.
        let both = self.signed || lengths().any(|length| length < 0.0);
        let (zero, reach) = if both { (left + room / 2.0, room / 2.0) } else { (left, room) };
        for (i, (name, length)) in self.bars.iter().enumerate() {
            let y = self.top() + ROW * i as f64;
            let words = "text-anchor=\"end\"";
            svg::text(&mut picture, [left - 6.0, y + 12.0], words, name);
            if !length.is_finite() {
                continue;
            }
            let colour = if self.marked == Some(i) { "#d55e00" } else { "#0072b2" };
            let wide = if full > 0.0 { reach * (length.abs() / full).min(1.0) } else { 0.0 };
            let x = if *length < 0.0 { zero - wide } else { zero };
            let _ = writeln!(
                picture,
                "<rect x=\"{x:.1}\" y=\"{:.1}\" width=\"{wide:.1}\" height=\"{:.1}\" \
                 fill=\"{colour}\"/>",
                y + 2.0,
                ROW - 4.0
            );
            svg::text(&mut picture, [WIDTH - 6.0, y + 12.0], words, &format!("{length:.2}"));
        }
        picture + "</svg>\n"
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bars(lengths: &[f64]) -> Bars {
        Bars { bars: lengths.iter().map(|x| (String::new(), *x)).collect(), ..Bars::default() }
    }

    #[test]
    fn the_longest_bar_fills_the_room() {
        let svg = Bars { marked: Some(1), ..bars(&[1.0, 4.0, f64::NAN]) }.to_svg();
        // 320 − 16 − 44 = 260.
        assert!(svg.contains("x=\"16.0\" y=\"6.0\" width=\"65.0\""), "{svg}");
        assert!(svg.contains("width=\"260.0\" height=\"13.0\" fill=\"#d55e00\""), "{svg}");
        assert_eq!(svg.matches("<rect").count(), 3, "the ground and two bars");
    }

    #[test]
    fn negative_bars_go_left() {
        let svg = Bars { signed: true, ..bars(&[4.0]) }.to_svg();
        assert!(svg.contains("x=\"146.0\" y=\"6.0\" width=\"130.0\""), "{svg}");
        let svg = Bars { full: 1.0, ..bars(&[-0.5, 9.0]) }.to_svg();
        // Zero at 16 + 130; half of 130, and no further than the edge.
        assert!(svg.contains("x=\"81.0\" y=\"6.0\" width=\"65.0\""), "{svg}");
        assert!(svg.contains("x=\"146.0\" y=\"23.0\" width=\"130.0\""), "{svg}");
    }

    #[test]
    fn no_bars_are_a_picture_too() {
        assert!(bars(&[]).to_svg().ends_with("</svg>\n"));
        assert!(bars(&[0.0, 0.0]).to_svg().contains("width=\"0.0\""));
    }
}
