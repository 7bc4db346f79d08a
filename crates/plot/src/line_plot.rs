//! Line plots: axes, ticks, a legend; as SVG, and as the PNG of that SVG.

mod axis;

use std::fmt::Write;

use axis::Axis;

use crate::svg::{self, text};

/// How values become places along an axis.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Scale {
    /// Evenly.
    #[default]
    Linear,
    /// By their logarithm; values that are not positive are left out.
    Log,
}

/// How a line's points are drawn.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Stroke {
    /// Joined.
    #[default]
    Solid,
    /// Joined by dashes: for what is predicted or published.
    Dashed,
    /// Each alone.
    Dots,
    /// Joined, and each with a dot: for few points.
    Marked,
}

/// One curve.
#[derive(Clone, Debug, Default)]
pub struct Line {
    /// Its entry in the legend; empty for none.
    pub name: String,
    /// `[x, y]`, from left to right; points that are not finite are left out.
    pub points: Vec<[f64; 2]>,
    /// From where to where each point's band reaches, such as an interval; as long as `points`,
    /// or empty for none.
    pub band: Vec<[f64; 2]>,
    /// How the points are drawn.
    pub stroke: Stroke,
    /// Which of the eight colours; `None`: by the line's place in the plot.
    pub colour: Option<usize>,
}

/// Curves over common axes.
#[derive(Clone, Debug, Default)]
pub struct LinePlot {
    /// Above the plot.
    pub title: String,
    /// Below it.
    pub x_label: String,
    /// To its left.
    pub y_label: String,
    /// Of the horizontal axis.
    pub x_scale: Scale,
    /// Of the vertical axis.
    pub y_scale: Scale,
    /// At most eight are told apart by colour.
    pub lines: Vec<Line>,
}

/// Width and height of the picture without a legend, and its margins: left, right, top, bottom.
const SIZE: [f64; 2] = [640.0, 400.0];
const MARGINS: [f64; 4] = [84.0, 16.0, 36.0, 52.0];
/// Of one character in the legend, on average.
const CHARACTER: f64 = 6.6;
/// Told apart by the colour-blind too (Okabe and Ito 2008).
const COLOURS: [&str; 8] =
    ["#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9", "#000000", "#f0e442"];

impl Line {
    /// Joined points without a band.
    pub fn new(name: impl Into<String>, points: Vec<[f64; 2]>) -> Self {
        Self { name: name.into(), points, ..Self::default() }
    }

    /// The line, drawn so.
    pub fn stroke(self, stroke: Stroke) -> Self {
        Self { stroke, ..self }
    }

    /// The line in this of the eight colours.
    pub fn colour(self, colour: usize) -> Self {
        Self { colour: Some(colour), ..self }
    }

    /// The line with a band that reaches so far up and down from each point.
    ///
    /// # Panics
    /// When there is not one number a point.
    pub fn spread(self, spread: Vec<f64>) -> Self {
        assert_eq!(spread.len(), self.points.len(), "one spread a point");
        let ends = self.points.iter().zip(spread);
        let band = ends.map(|([_, y], spread)| [y - spread, y + spread]).collect();
        Self { band, ..self }
    }

    /// The line with a band between these ends.
    ///
    /// # Panics
    /// When there is not one pair a point.
    pub fn band(self, band: Vec<[f64; 2]>) -> Self {
        assert_eq!(band.len(), self.points.len(), "one pair a point");
        Self { band, ..self }
    }

    /// The lower and the upper edge of the band.
    fn edges(&self) -> [Vec<[f64; 2]>; 2] {
        [0, 1].map(|end| {
            let ends = self.points.iter().zip(&self.band);
            ends.map(|([x, _], band)| [*x, band[end]]).collect()
        })
    }
}

impl LinePlot {
    /// The picture as SVG.
    pub fn to_svg(&self) -> String {
        let frame = Frame::new(self);
        let mut svg = svg::opening([frame.width, frame.height]);
        frame.grid(self, &mut svg);
        for (i, line) in self.lines.iter().enumerate() {
            frame.curve(line, colour(i, line), &mut svg);
        }
        frame.legend(self, &mut svg);
        svg + "</svg>\n"
    }

    /// The picture as PNG, with two pixels for each unit of the SVG: sharp on dense screens.
    pub fn to_png(&self) -> Vec<u8> {
        crate::raster::png(&self.to_svg(), 2.0)
    }
}

fn colour(i: usize, line: &Line) -> &'static str {
    COLOURS[line.colour.unwrap_or(i) % COLOURS.len()]
}

/// A plot's place for curves, between its axes.
struct Frame {
    x: Axis,
    y: Axis,
    /// Of the whole picture.
    width: f64,
    /// The same; more than the curves have where the legend is longer.
    height: f64,
}

impl Frame {
    fn new(plot: &LinePlot) -> Self {
        let points = || plot.lines.iter().flat_map(|line| &line.points);
        let edges = plot.lines.iter().flat_map(|line| line.edges().into_iter().flatten());
        let finite = |point: &[f64; 2]| point.iter().all(|x| x.is_finite());
        let heights = points().copied().chain(edges).filter(finite).map(|point| point[1]);
        let y = Axis::enclosing(plot.y_scale, heights);
        let x = Axis::enclosing(plot.x_scale, points().filter(|p| finite(p)).map(|p| p[0]));
        let names = plot.lines.iter().map(|line| line.name.chars().count());
        let legend = match names.max().unwrap_or(0) {
            0 => 0.0,
            longest => 44.0 + CHARACTER * longest as f64,
        };
        let n_named = plot.lines.iter().filter(|line| !line.name.is_empty()).count();
        let height = SIZE[1].max(row_of_legend(n_named));
        Self { x, y, width: SIZE[0] + legend.round(), height }
    }

    /// Where a point is drawn, `None` if it cannot be shown.
    fn place(&self, [x, y]: [f64; 2]) -> Option<[f64; 2]> {
        let [left, right, top, bottom] = MARGINS;
        let place = [
            left + (SIZE[0] - left - right) * self.x.share(x),
            SIZE[1] - bottom - (SIZE[1] - top - bottom) * self.y.share(y),
        ];
        place.iter().all(|x| x.is_finite()).then_some(place)
    }

    /// Title, labels, numbers, and the lines behind the curves.
    fn grid(&self, plot: &LinePlot, svg: &mut String) {
        let [left, right, top, bottom] = MARGINS;
        let [width, height] = SIZE;
        let middle = [(left + width - right) / 2.0, (top + height - bottom) / 2.0];
        let centre = "text-anchor=\"middle\"";
        text(svg, [middle[0], 22.0], &format!("{centre} font-size=\"14\""), &plot.title);
        text(svg, [middle[0], height - 12.0], centre, &plot.x_label);
        let turned = format!("{centre} transform=\"rotate(-90 16 {:.1})\"", middle[1]);
        text(svg, [16.0, middle[1]], &turned, &plot.y_label);
        let ends = [left, width - right];
        for &tick in self.x.ticks() {
            let x = left + (ends[1] - ends[0]) * self.x.share(tick);
            text(svg, [x, height - bottom + 18.0], centre, &self.x.label(tick));
        }
        for &tick in self.y.ticks() {
            let y = height - bottom - (height - top - bottom) * self.y.share(tick);
            text(svg, [left - 8.0, y + 4.0], "text-anchor=\"end\"", &self.y.label(tick));
            path(svg, "stroke=\"#ddd\"", &[[ends[0], y], [ends[1], y]]);
        }
        let floor = height - bottom;
        path(svg, "stroke=\"#333\"", &[[ends[0], top], [ends[0], floor], [ends[1], floor]]);
    }

    fn curve(&self, line: &Line, colour: &str, svg: &mut String) {
        let [low, high] = line.edges();
        let band: Vec<[f64; 2]> = low.iter().chain(high.iter().rev()).copied().collect();
        // A lower edge that a logarithmic axis cannot show ends at the floor.
        let floor = SIZE[1] - MARGINS[3];
        let band: Vec<[f64; 2]> = band
            .into_iter()
            .filter_map(|point| match (self.place(point), self.x.share(point[0])) {
                (Some(place), _) => Some(place),
                (None, share) if share.is_finite() && point[1].is_finite() => {
                    Some([MARGINS[0] + (SIZE[0] - MARGINS[0] - MARGINS[1]) * share, floor])
                }
                _ => None,
            })
            .collect();
        if !band.is_empty() {
            let points = joined(&band);
            let _ = writeln!(
                svg,
                "<polygon fill=\"{colour}\" fill-opacity=\"0.15\" points=\"{points}\"/>"
            );
        }
        let places: Vec<[f64; 2]> = line.points.iter().filter_map(|p| self.place(*p)).collect();
        let dashes = match line.stroke {
            Stroke::Dashed => " stroke-dasharray=\"6 4\"",
            _ => "",
        };
        if line.stroke != Stroke::Dots {
            let style = format!("stroke=\"{colour}\" stroke-width=\"1.5\"{dashes}");
            path(svg, &style, &places);
        }
        // One point joins nothing.
        if matches!(line.stroke, Stroke::Dots | Stroke::Marked) || places.len() == 1 {
            let radius = if places.len() > 100 { 1.2 } else { 2.8 };
            for [x, y] in places {
                let _ = writeln!(
                    svg,
                    "<circle cx=\"{x:.1}\" cy=\"{y:.1}\" r=\"{radius}\" fill=\"{colour}\"/>"
                );
            }
        }
    }

    /// The lines' names, to the right of the curves.
    fn legend(&self, plot: &LinePlot, svg: &mut String) {
        let named = plot.lines.iter().enumerate().filter(|(_, line)| !line.name.is_empty());
        for (row, (i, line)) in named.enumerate() {
            let y = row_of_legend(row);
            let x = SIZE[0];
            let colour = colour(i, line);
            match line.stroke {
                Stroke::Dots => {
                    let _ = writeln!(
                        svg,
                        "<circle cx=\"{:.1}\" cy=\"{y:.1}\" r=\"2.8\" fill=\"{colour}\"/>",
                        x + 12.0
                    );
                }
                stroke => {
                    let dashes = match stroke {
                        Stroke::Dashed => " stroke-dasharray=\"6 4\"",
                        _ => "",
                    };
                    let style = format!("stroke=\"{colour}\" stroke-width=\"2\"{dashes}");
                    path(svg, &style, &[[x, y], [x + 24.0, y]]);
                }
            }
            text(svg, [x + 32.0, y + 4.0], "", &line.name);
        }
    }
}

/// How far from the top the legend's row of this number is, from 0.
fn row_of_legend(row: usize) -> f64 {
    MARGINS[2] + 10.0 + 17.0 * row as f64
}

/// Joins places on the picture. Inside a level stretch, points draw nothing and are left out.
fn path(svg: &mut String, style: &str, places: &[[f64; 2]]) {
    let tenths: Vec<[i64; 2]> =
        places.iter().map(|place| place.map(|x| (x * 10.0).round() as i64)).collect();
    let level = |i: usize| {
        let before = i.checked_sub(1).and_then(|i| tenths.get(i));
        let after = tenths.get(i + 1);
        [before, after].iter().all(|near| near.is_some_and(|near| near[1] == tenths[i][1]))
    };
    let kept: Vec<[f64; 2]> =
        places.iter().enumerate().filter(|(i, _)| !level(*i)).map(|(_, place)| *place).collect();
    let _ = writeln!(svg, "<polyline fill=\"none\" {style} points=\"{}\"/>", joined(&kept));
}

fn joined(places: &[[f64; 2]]) -> String {
    places.iter().map(|[x, y]| format!("{x:.1},{y:.1}")).collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(lines: Vec<Line>) -> LinePlot {
        LinePlot { title: "a < b & c".into(), x_label: "x".into(), lines, ..LinePlot::default() }
    }

    #[test]
    fn points_lie_where_the_axes_say() {
        let points = vec![[0.0, 0.0], [5.0, f64::NAN], [5.0, 5.0], [10.0, 10.0]];
        let svg = of(vec![Line::new("line", points)]).to_svg();
        assert!(svg.contains("a &lt; b &amp; c"), "{svg}");
        // Left bottom, middle, right top of 640 × 400 within the margins.
        assert!(svg.contains("points=\"84.0,348.0 354.0,192.0 624.0,36.0\""), "{svg}");
        assert!(!svg.contains("NaN"));
    }

    #[test]
    fn a_logarithmic_axis_spaces_by_powers() {
        let line = Line::new("", vec![[0.0, 1.0], [5.0, 0.0], [5.0, 10.0], [10.0, 100.0]]);
        let svg = LinePlot { y_scale: Scale::Log, ..of(vec![line]) }.to_svg();
        assert!(svg.contains("points=\"84.0,348.0 354.0,192.0 624.0,36.0\""), "{svg}");
    }

    #[test]
    fn level_stretches_keep_their_ends_alone() {
        let heights = [0.0, 0.0, 0.0, 0.0, 1.0, 1.0];
        let points = heights.iter().enumerate().map(|(x, &y)| [x as f64, y]).collect();
        let svg = of(vec![Line::new("", points)]).to_svg();
        // 108 apart: of the first four points, the first and the last.
        assert!(svg.contains("points=\"84.0,348.0 408.0,348.0 516.0,36.0 624.0,36.0\""), "{svg}");
    }

    #[test]
    fn bands_widen_the_axis_and_surround_the_line() {
        let line = Line::new("", vec![[0.0, 2.0], [10.0, 2.0]]).spread(vec![2.0, 2.0]);
        let svg = of(vec![line.stroke(Stroke::Marked)]).to_svg();
        let polygon = "points=\"84.0,348.0 624.0,348.0 624.0,36.0 84.0,36.0\"";
        assert!(svg.contains(polygon) && svg.matches("<circle").count() == 2, "{svg}");
    }

    #[test]
    fn a_named_line_has_a_row_in_the_legend() {
        let dots = Line::new("seen", vec![[0.0, 0.0], [1.0, 1.0]]).stroke(Stroke::Dots).colour(1);
        let dashed = Line::new("told", vec![[0.0, 0.0], [1.0, 1.0]]).stroke(Stroke::Dashed);
        let svg = of(vec![dots, dashed]).to_svg();
        assert!(svg.contains(">seen</text>") && svg.contains(">told</text>"), "{svg}");
        assert_eq!(svg.matches("stroke-dasharray").count(), 2);
        // Two points and the legend's.
        assert_eq!(svg.matches(&format!("fill=\"{}\"/>", COLOURS[1])).count(), 3);
    }

    #[test]
    fn a_point_alone_is_a_dot() {
        let svg = of(vec![Line::new("", vec![[1.0, 1.0]])]).to_svg();
        assert_eq!(svg.matches("<circle").count(), 1, "{svg}");
    }

    #[test]
    fn a_long_legend_makes_the_picture_higher() {
        let line = |i: usize| Line::new(format!("run {i}"), vec![[0.0, 0.0], [1.0, i as f64]]);
        let height = |n: usize| {
            let svg = of((0..n).map(line).collect()).to_svg();
            let (_, view) = svg.split_once("viewBox=\"0 0 ").unwrap();
            view.split(['"', ' ']).nth(1).unwrap().parse::<f64>().unwrap()
        };
        assert_eq!([height(2), height(20)], [400.0; 2]);
        // The last of 26 is written at 475.
        assert!(height(26) > 480.0);
    }

    #[test]
    fn a_png_shows_curve_and_text() {
        let lines = |name: &str| vec![Line::new(name, vec![[0.0, 0.0], [1.0, 1.0]])];
        let blank = LinePlot { title: String::new(), ..of(lines("")) }.to_png();
        let titled = of(lines("")).to_png();
        assert_eq!(&blank[..8], b"\x89PNG\r\n\x1a\n");
        // Width and height of the header chunk: 640 × 400, doubled.
        assert_eq!(blank[16..24], [0, 0, 5, 0, 0, 0, 3, 32]);
        assert_ne!(blank, titled, "the title is drawn");
        assert_eq!(titled, of(lines("")).to_png(), "the same bytes each time");
    }
}
