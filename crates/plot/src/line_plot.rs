//! Line plots: axes, ticks, a legend; as SVG, and as the PNG of that SVG.

pub(crate) mod axis;

use std::fmt::Write;

use axis::Axis;

use crate::svg::{self, text};

/// Mapping of values to places on an axis.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Scale {
    /// Linear.
    #[default]
    Linear,
    /// Logarithmic; values that are not positive are left out.
    Log,
}

/// Style of a line's points.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Stroke {
    /// Joined.
    #[default]
    Solid,
    /// Joined by dashes: for predicted or published values.
    Dashed,
    /// Each alone.
    Dots,
    /// Joined, with a dot for each: for few points.
    Marked,
}

/// One curve.
#[derive(Clone, Debug, Default)]
pub struct Line {
    /// Its entry in the legend; empty for none.
    pub name: String,
    /// `[x, y]`, from left to right; points that are not finite are left out.
    pub points: Vec<[f64; 2]>,
    /// The lower and upper end of each point's band, such as an interval; as long as `points`, or
    /// empty for none.
    pub band: Vec<[f64; 2]>,
    /// How the points are drawn.
    pub stroke: Stroke,
    /// The index of one of the eight colours; `None`: colour and dashes by the line's index in the
    /// plot.
    pub colour: Option<usize>,
}

/// Curves over common axes.
#[derive(Clone, Debug, Default)]
pub struct LinePlot {
    /// Title above the plot.
    pub title: String,
    /// Label below the plot.
    pub x_label: String,
    /// Label to the left of the plot.
    pub y_label: String,
    /// Scale of the horizontal axis.
    pub x_scale: Scale,
    /// Scale of the vertical axis.
    pub y_scale: Scale,
    /// The curves; at most [`MOST_LINES`] are distinguishable.
    pub lines: Vec<Line>,
}

/// Maximum number of distinguishable lines: by colour, and from the ninth on also by dashes.
pub const MOST_LINES: usize = COLOURS.len() * (1 + DASHES.len());

/// Width and height of the picture without a legend, and its margins: left, right, top, bottom.
const SIZE: [f64; 2] = [640.0, 400.0];
const MARGINS: [f64; 4] = [84.0, 16.0, 36.0, 52.0];
/// Layout of the legend below the curves: its left edge, and the distances of its rows and columns.
const LEGEND: [f64; 3] = [16.0, 17.0, 20.0];
/// Distance from the left edge of a legend's entry to its name.
const SAMPLE: f64 = 32.0;
/// Distinguishable for colour-blind people too, with a contrast of at least 3 to a white ground.
/// Five are from Okabe and Ito 2008; their orange, sky blue and yellow are too pale for lines.
const COLOURS: [&str; 8] =
    ["#0072b2", "#d55e00", "#009e73", "#cc79a7", "#754a10", "#1c2a8c", "#000000", "#9048ff"];
/// Dashes of the lines from the ninth on, whose colours repeat; they differ from
/// [`Stroke::Dashed`].
const DASHES: [&str; 3] = ["2 3", "12 4", "12 4 2 4"];

impl Line {
    /// Joined points without a band.
    pub fn new(name: impl Into<String>, points: Vec<[f64; 2]>) -> Self {
        Self { name: name.into(), points, ..Self::default() }
    }

    /// The line with this style.
    pub fn stroke(self, stroke: Stroke) -> Self {
        Self { stroke, ..self }
    }

    /// The line with this one of the eight colours.
    pub fn colour(self, colour: usize) -> Self {
        Self { colour: Some(colour), ..self }
    }

    /// The line with a band of this size above and below each point.
    ///
    /// # Panics
    /// When the number of entries differs from the number of points.
    pub fn spread(self, spread: Vec<f64>) -> Self {
        assert_eq!(spread.len(), self.points.len(), "one spread per point");
        let ends = self.points.iter().zip(spread);
        let band = ends.map(|([_, y], spread)| [y - spread, y + spread]).collect();
        Self { band, ..self }
    }

    /// The line with a band between these ends.
    ///
    /// # Panics
    /// When the number of pairs differs from the number of points.
    pub fn band(self, band: Vec<[f64; 2]>) -> Self {
        assert_eq!(band.len(), self.points.len(), "one pair per point");
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
            frame.curve(line, look(i, line), &mut svg);
        }
        frame.legend(self, &mut svg);
        svg + "</svg>\n"
    }

    /// The picture as PNG, with two pixels for each unit of the SVG: sharp on dense screens.
    pub fn to_png(&self) -> Vec<u8> {
        crate::raster::png(&self.to_svg(), 2.0)
    }
}

/// Colour of the line with this index in a plot, and its dashes as an attribute.
fn look(i: usize, line: &Line) -> (&'static str, String) {
    let colour = COLOURS[line.colour.unwrap_or(i) % COLOURS.len()];
    let before = if line.colour.is_none() { i / COLOURS.len() } else { 0 };
    let dashes = match (line.stroke, before) {
        (Stroke::Dashed, _) => "6 4",
        (_, 0) => return (colour, String::new()),
        (_, before) => DASHES[(before - 1) % DASHES.len()],
    };
    (colour, format!(" stroke-dasharray=\"{dashes}\""))
}

/// The area of a plot for curves, between its axes.
struct Frame {
    x: Axis,
    y: Axis,
    /// Width of the whole picture; larger than the curves' if a name is longer.
    width: f64,
    height: f64,
    /// Number of columns of the legend, and the width of a column.
    columns: (usize, f64),
}

impl Frame {
    fn new(plot: &LinePlot) -> Self {
        let points = || plot.lines.iter().flat_map(|line| &line.points);
        let edges = plot.lines.iter().flat_map(|line| line.edges().into_iter().flatten());
        let finite = |point: &[f64; 2]| point.iter().all(|x| x.is_finite());
        let heights = points().copied().chain(edges).filter(finite).map(|point| point[1]);
        let y = Axis::enclosing(plot.y_scale, heights);
        let x = Axis::enclosing(plot.x_scale, points().filter(|p| finite(p)).map(|p| p[0]));
        let names = || plot.lines.iter().map(|line| &line.name).filter(|name| !name.is_empty());
        let longest = names().map(|name| svg::width(name)).fold(0.0, f64::max);
        let [left, row, gap] = LEGEND;
        let column = SAMPLE + longest + gap;
        let n_columns = ((SIZE[0] - left) / column).floor().max(1.0) as usize;
        let n_rows = names().count().div_ceil(n_columns);
        let width = if n_rows == 0 { SIZE[0] } else { SIZE[0].max((left + column).round()) };
        let height = SIZE[1] + if n_rows == 0 { 0.0 } else { row * n_rows as f64 + 5.0 };
        Self { x, y, width, height, columns: (n_columns, column) }
    }

    /// The place of a point in the picture; `None` if it cannot be shown.
    fn place(&self, [x, y]: [f64; 2]) -> Option<[f64; 2]> {
        let [left, right, top, bottom] = MARGINS;
        let place = [
            left + (SIZE[0] - left - right) * self.x.fraction(x),
            SIZE[1] - bottom - (SIZE[1] - top - bottom) * self.y.fraction(y),
        ];
        place.iter().all(|x| x.is_finite()).then_some(place)
    }

    /// Title, labels, numbers, and the grid lines behind the curves.
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
            let x = left + (ends[1] - ends[0]) * self.x.fraction(tick);
            text(svg, [x, height - bottom + 18.0], centre, &self.x.label(tick));
        }
        for &tick in self.y.ticks() {
            let y = height - bottom - (height - top - bottom) * self.y.fraction(tick);
            text(svg, [left - 8.0, y + 4.0], "text-anchor=\"end\"", &self.y.label(tick));
            path(svg, "stroke=\"#ddd\"", &[[ends[0], y], [ends[1], y]]);
        }
        let floor = height - bottom;
        path(svg, "stroke=\"#333\"", &[[ends[0], top], [ends[0], floor], [ends[1], floor]]);
    }

    fn curve(&self, line: &Line, (colour, dashes): (&str, String), svg: &mut String) {
        let [low, high] = line.edges();
        let band: Vec<[f64; 2]> = low.iter().chain(high.iter().rev()).copied().collect();
        // If a logarithmic axis cannot show a lower edge, it ends at the floor.
        let floor = SIZE[1] - MARGINS[3];
        let band: Vec<[f64; 2]> = band
            .into_iter()
            .filter_map(|point| match (self.place(point), self.x.fraction(point[0])) {
                (Some(place), _) => Some(place),
                (None, fraction) if fraction.is_finite() && point[1].is_finite() => {
                    Some([MARGINS[0] + (SIZE[0] - MARGINS[0] - MARGINS[1]) * fraction, floor])
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
        if line.stroke != Stroke::Dots {
            let style = format!("stroke=\"{colour}\" stroke-width=\"1.5\"{dashes}");
            path(svg, &style, &places);
        }
        // A single point has nothing to join.
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

    /// The lines' names below the curves, row by row.
    fn legend(&self, plot: &LinePlot, svg: &mut String) {
        let named = plot.lines.iter().enumerate().filter(|(_, line)| !line.name.is_empty());
        let [left, row, _] = LEGEND;
        let (n_columns, column) = self.columns;
        for (place, (i, line)) in named.enumerate() {
            let x = left + column * (place % n_columns) as f64;
            let y = SIZE[1] + row * (place / n_columns) as f64 + 8.0;
            let (colour, dashes) = look(i, line);
            if line.stroke == Stroke::Dots {
                let _ = writeln!(
                    svg,
                    "<circle cx=\"{:.1}\" cy=\"{y:.1}\" r=\"2.8\" fill=\"{colour}\"/>",
                    x + 12.0
                );
            } else {
                let style = format!("stroke=\"{colour}\" stroke-width=\"2\"{dashes}");
                path(svg, &style, &[[x, y], [x + 24.0, y]]);
            }
            text(svg, [x + SAMPLE, y + 4.0], "class=\"key\"", &line.name);
        }
    }
}

/// Joins places in the picture. Points inside a level stretch add nothing and are left out.
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
    fn level_stretches_keep_only_their_ends() {
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
        let dashed = Line::new("published", vec![[0.0, 0.0], [1.0, 1.0]]).stroke(Stroke::Dashed);
        let svg = of(vec![dots, dashed]).to_svg();
        assert!(svg.contains(">seen</text>") && svg.contains(">published</text>"), "{svg}");
        assert_eq!(svg.matches("stroke-dasharray").count(), 2);
        // Two points and the legend's.
        assert_eq!(svg.matches(&format!("fill=\"{}\"/>", COLOURS[1])).count(), 3);
    }

    #[test]
    fn a_single_point_is_a_dot() {
        let svg = of(vec![Line::new("", vec![[1.0, 1.0]])]).to_svg();
        assert_eq!(svg.matches("<circle").count(), 1, "{svg}");
    }

    #[test]
    fn the_legend_is_below_in_as_many_columns_as_fit() {
        let size = |names: &[String]| {
            let line = |name: &String| Line::new(name.clone(), vec![[0.0, 0.0], [1.0, 1.0]]);
            let svg = of(names.iter().map(line).collect()).to_svg();
            let (_, view) = svg.split_once("viewBox=\"0 0 ").unwrap();
            let mut ends = view.split(['"', ' ']).map(str::to_owned);
            [ends.next().unwrap(), ends.next().unwrap()]
        };
        // A column takes 32 + 5 · 6.6 + 20 = 85 of 624: seven of them.
        let runs: Vec<String> = (10..25).map(|i| format!("at {i}")).collect();
        assert_eq!(size(&[String::new()]), ["640", "400"]);
        assert_eq!(size(&runs[..7]), ["640", "422"]);
        assert_eq!(size(&runs), ["640", "456"]);
        // 16 + 32 + 100 · 6.6 + 20: a name longer than the plot is not truncated.
        assert_eq!(size(&["x".repeat(100), "y".into()]), ["728", "439"]);
    }

    #[test]
    fn lines_past_the_eighth_have_dashes() {
        let line = |i: usize| Line::new(format!("run {i}"), vec![[0.0, 0.0], [1.0, i as f64]]);
        let looks: std::collections::BTreeSet<_> =
            (0..MOST_LINES).map(|i| look(i, &line(i))).collect();
        assert_eq!(looks.len(), 32);
        assert_eq!(look(8, &line(8).colour(1)), (COLOURS[1], String::new()));
        // The curve and its entry.
        let svg = of((0..9).map(line).collect()).to_svg();
        assert_eq!(svg.matches(" stroke-dasharray=\"2 3\"").count(), 2, "{svg}");
    }

    #[test]
    fn colours_stand_out_from_a_white_ground() {
        for colour in COLOURS {
            let part = |at: usize| {
                let value = f64::from(u8::from_str_radix(&colour[at..at + 2], 16).unwrap()) / 255.0;
                if value <= 0.04045 { value / 12.92 } else { ((value + 0.055) / 1.055).powf(2.4) }
            };
            // Relative luminance and contrast as WCAG 2.2 defines them.
            let luminance = 0.2126 * part(1) + 0.7152 * part(3) + 0.0722 * part(5);
            assert!(1.05 / (luminance + 0.05) >= 3.0, "{colour}");
        }
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
