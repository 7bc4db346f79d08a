//! Strips: a row of dots for each name, an interval over them, and lines across all rows.

use std::fmt::Write;

use crate::line_plot::{Scale, axis::Axis};
use crate::svg;

/// One row.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Strip {
    /// Name at its left; empty for none.
    pub name: String,
    /// One dot for each value; values that are not finite are left out.
    pub dots: Vec<f64>,
    /// The estimate from the dots, drawn as a line across the row.
    pub estimate: Option<f64>,
    /// The ends of the estimate's interval, drawn as a bar.
    pub interval: Option<[f64; 2]>,
}

/// Rows of dots over one axis.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Strips {
    /// Label below the rows.
    pub x_label: String,
    /// From top to bottom.
    pub rows: Vec<Strip>,
    /// Names and places of dashed lines across all rows.
    pub marks: Vec<(String, f64)>,
}

const WIDTH: f64 = 640.0;
/// Height of a row, and the maximum fraction of the width for names.
const ROW: f64 = 30.0;
const MOST_NAME: f64 = 260.0;
const RIGHT: f64 = 24.0;
/// Height below the rows: numbers and the axis's label.
const BOTTOM: f64 = 44.0;
/// Height of a mark's name above the rows.
const MARK: f64 = 16.0;
/// Alternating vertical offsets of a row's dots, so that equal ones are visible.
const TURNS: [f64; 5] = [0.0, -5.0, 5.0, -2.5, 2.5];
const DOT: &str = "#0072b2";
const ESTIMATE: &str = "#d55e00";

impl Strips {
    /// The picture as SVG.
    pub fn to_svg(&self) -> String {
        let names = || self.rows.iter().map(|row| &row.name).filter(|name| !name.is_empty());
        let longest = names().map(|name| svg::width(name)).fold(0.0, f64::max);
        // Longer names are above their dots.
        let is_above = longest > MOST_NAME;
        let left = if is_above || longest == 0.0 { 24.0 } else { longest + 18.0 };
        let row_height = if is_above { ROW + 16.0 } else { ROW };
        let top = 10.0 + MARK * self.marks.len() as f64;
        let floor = top + row_height * self.rows.len().max(1) as f64;
        let mut picture = svg::opening([WIDTH, floor + BOTTOM]);
        let ends = self.rows.iter().flat_map(|row| {
            let estimate = row.estimate.into_iter().chain(row.interval.into_iter().flatten());
            row.dots.iter().copied().chain(estimate)
        });
        let shown = ends.chain(self.marks.iter().map(|(_, place)| *place));
        let axis = Axis::enclosing(Scale::Linear, shown.filter(|x| x.is_finite()));
        // A value that is too large for an axis has no place.
        let place = |x: f64| {
            let place = left + (WIDTH - left - RIGHT) * axis.fraction(x);
            place.is_finite().then_some(place)
        };
        for (tick, x) in axis.ticks().iter().filter_map(|tick| Some((*tick, place(*tick)?))) {
            vertical(&mut picture, x, [top, floor], "stroke=\"#ddd\"");
            let centre = "text-anchor=\"middle\"";
            svg::text(&mut picture, [x, floor + 16.0], centre, &axis.label(tick));
        }
        let middle = [(left + WIDTH - RIGHT) / 2.0, floor + 36.0];
        svg::text(&mut picture, middle, "text-anchor=\"middle\"", &self.x_label);
        for (i, (name, mark)) in self.marks.iter().enumerate() {
            let Some(x) = place(*mark) else { continue };
            let y = 12.0 + MARK * i as f64;
            vertical(&mut picture, x, [y + 3.0, floor], "stroke=\"#555\" stroke-dasharray=\"5 4\"");
            // On the side with more room.
            let (anchor, offset) = if x > WIDTH / 2.0 { ("end", -5.0) } else { ("start", 5.0) };
            let words = format!("text-anchor=\"{anchor}\" fill=\"#555\"");
            svg::text(&mut picture, [x + offset, y + 2.0], &words, name);
        }
        for (i, row) in self.rows.iter().enumerate() {
            let y = top + row_height * (i + 1) as f64 - ROW / 2.0;
            if is_above {
                svg::text(&mut picture, [8.0, y - ROW / 2.0], "", &row.name);
            } else {
                // The margin is as wide as the name, and a page must not enlarge it.
                let end = "text-anchor=\"end\" class=\"key\"";
                svg::text(&mut picture, [left - 10.0, y + 4.0], end, &row.name);
            }
            let ends = row.interval.and_then(|[low, high]| Some([place(low)?, place(high)?]));
            if let Some([low, high]) = ends {
                let _ = writeln!(
                    picture,
                    "<rect x=\"{low:.1}\" y=\"{:.1}\" width=\"{:.1}\" height=\"12\" \
                     fill=\"{ESTIMATE}\" fill-opacity=\"0.25\"/>",
                    y - 6.0,
                    (high - low).max(1.0)
                );
            }
            for (turn, x) in row.dots.iter().filter_map(|dot| place(*dot)).enumerate() {
                let _ = writeln!(
                    picture,
                    "<circle cx=\"{x:.1}\" cy=\"{:.1}\" r=\"3\" fill=\"{DOT}\" \
                     fill-opacity=\"0.6\"/>",
                    y + TURNS[turn % TURNS.len()]
                );
            }
            if let Some(x) = row.estimate.and_then(place) {
                let style = format!("stroke=\"{ESTIMATE}\" stroke-width=\"2.5\"");
                vertical(&mut picture, x, [y - 9.0, y + 9.0], &style);
            }
        }
        picture + "</svg>\n"
    }
}

fn vertical(picture: &mut String, x: f64, [from, to]: [f64; 2], style: &str) {
    let _ = writeln!(
        picture,
        "<polyline fill=\"none\" {style} points=\"{x:.1},{from:.1} {x:.1},{to:.1}\"/>"
    );
}

#[cfg(test)]
mod tests {
    use super::*;

    fn strip(name: &str, dots: &[f64]) -> Strip {
        Strip { name: name.into(), dots: dots.to_vec(), ..Strip::default() }
    }

    #[test]
    fn dots_lie_where_the_axis_says() {
        let mut row = strip("", &[0.0, 10.0, f64::NAN, 1e200]);
        row.estimate = Some(5.0);
        row.interval = Some([2.5, 7.5]);
        let marks = vec![("data, best".to_owned(), 10.0)];
        let svg = Strips { x_label: "return".into(), rows: vec![row], marks }.to_svg();
        // From 24 to 640 − 24; the row of 30 begins below one mark, at 26.
        assert!(
            svg.contains("cx=\"24.0\" cy=\"41.0\"") && svg.contains("cx=\"616.0\" cy=\"36.0\"")
        );
        assert_eq!(svg.matches("<circle").count(), 2, "{svg}");
        assert!(svg.contains("points=\"320.0,32.0 320.0,50.0\""), "{svg}");
        assert!(svg.contains("x=\"172.0\" y=\"35.0\" width=\"296.0\""), "{svg}");
        assert!(svg.contains("text-anchor=\"end\" fill=\"#555\">data, best</text>"), "{svg}");
    }

    #[test]
    fn long_names_are_above_their_dots() {
        let of =
            |name: &str| Strips { rows: vec![strip(name, &[1.0])], ..Strips::default() }.to_svg();
        assert!(of("ten words").contains("viewBox=\"0 0 640 84\""), "{}", of("ten words"));
        let long = of(&"word ".repeat(20));
        assert!(
            long.contains("viewBox=\"0 0 640 100\"") && long.contains("<text x=\"8.0\""),
            "{long}"
        );
    }

    #[test]
    fn no_rows_are_a_picture_too() {
        assert!(Strips::default().to_svg().ends_with("</svg>\n"));
    }
}
