//! Line plots as SVG: axes, ticks, a legend.

use std::fmt::Write;

/// One curve.
#[derive(Clone, Debug)]
pub struct Line {
    /// Its entry in the legend; empty for none.
    pub name: String,
    /// `[x, y]`, from left to right; points that are not finite are left out.
    pub points: Vec<[f64; 2]>,
}

/// Curves over common axes.
#[derive(Clone, Debug)]
pub struct LinePlot {
    /// Above the plot.
    pub title: String,
    /// Below it.
    pub x_label: String,
    /// To its left.
    pub y_label: String,
    /// At most eight are told apart by colour.
    pub lines: Vec<Line>,
}

/// Width and height of the picture, and its margins: left, right, top, bottom.
const SIZE: [f64; 2] = [640.0, 400.0];
const MARGINS: [f64; 4] = [84.0, 16.0, 36.0, 52.0];
/// Told apart by the colour-blind too (Okabe and Ito 2008).
const COLOURS: [&str; 8] =
    ["#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9", "#000000", "#f0e442"];

impl LinePlot {
    /// The picture.
    pub fn to_svg(&self) -> String {
        let [width, height] = SIZE;
        let [left, right, top, bottom] = MARGINS;
        let finite = |point: &&[f64; 2]| point.iter().all(|x| x.is_finite());
        let points = || self.lines.iter().flat_map(|line| &line.points).filter(finite);
        let x_ticks = ticks(points().map(|point| point[0]));
        let y_ticks = ticks(points().map(|point| point[1]));
        let x_at = |x: f64| left + (width - left - right) * x_ticks.share(x);
        let y_at = |y: f64| height - bottom - (height - top - bottom) * y_ticks.share(y);

        let mut svg = format!(
            "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {width} {height}\" \
             font-family=\"sans-serif\" font-size=\"12\">\n\
             <rect width=\"{width}\" height=\"{height}\" fill=\"white\"/>\n"
        );
        let mut text = |x: f64, y: f64, more: &str, words: &str| {
            let words = words.replace('&', "&amp;").replace('<', "&lt;");
            let _ = writeln!(svg, "<text x=\"{x:.1}\" y=\"{y:.1}\" {more}>{words}</text>");
        };
        let centre = "text-anchor=\"middle\"";
        let middle = [(left + width - right) / 2.0, (top + height - bottom) / 2.0];
        text(middle[0], 22.0, &format!("{centre} font-size=\"14\""), &self.title);
        text(middle[0], height - 12.0, centre, &self.x_label);
        let turned = format!("{centre} transform=\"rotate(-90 16 {:.1})\"", middle[1]);
        text(16.0, middle[1], &turned, &self.y_label);
        for x in x_ticks.all() {
            text(x_at(x), height - bottom + 18.0, centre, &x_ticks.label(x));
        }
        for y in y_ticks.all() {
            text(left - 8.0, y_at(y) + 4.0, "text-anchor=\"end\"", &y_ticks.label(y));
        }
        for (i, line) in self.lines.iter().enumerate().filter(|(_, line)| !line.name.is_empty()) {
            let more = format!("fill=\"{}\"", COLOURS[i % COLOURS.len()]);
            text(left + 12.0, top + 18.0 + 16.0 * i as f64, &more, &line.name);
        }

        let mut path = |style: &str, points: &[[f64; 2]]| {
            let points: Vec<[String; 2]> = points
                .iter()
                .filter(finite)
                .map(|&[x, y]| [x_at(x), y_at(y)].map(|place| format!("{place:.1}")))
                .collect();
            let level = |i: usize| {
                let before = i.checked_sub(1).and_then(|i| points.get(i));
                let after = points.get(i + 1);
                [before, after].iter().all(|near| near.is_some_and(|near| near[1] == points[i][1]))
            };
            // Inside a level stretch, points draw nothing.
            let points = points.iter().enumerate().filter(|(i, _)| !level(*i));
            let points = points.map(|(_, point)| point.join(",")).collect::<Vec<_>>().join(" ");
            let _ = writeln!(svg, "<polyline fill=\"none\" {style} points=\"{points}\"/>");
        };
        let ([x0, x1], [y0, y1]) = (x_ticks.range, y_ticks.range);
        for y in y_ticks.all() {
            path("stroke=\"#ddd\"", &[[x0, y], [x1, y]]);
        }
        path("stroke=\"#333\"", &[[x0, y1], [x0, y0], [x1, y0]]);
        for (i, line) in self.lines.iter().enumerate() {
            let colour = COLOURS[i % COLOURS.len()];
            path(&format!("stroke=\"{colour}\" stroke-width=\"1.5\""), &line.points);
        }
        svg + "</svg>\n"
    }
}

/// Round numbers along an axis.
struct Ticks {
    /// Of the axis; both ends are ticks.
    range: [f64; 2],
    step: f64,
}

/// Ticks that enclose `values`: 1, 2 or 5 times a power of ten apart, at most six steps.
fn ticks(values: impl Iterator<Item = f64>) -> Ticks {
    let ends = [f64::INFINITY, f64::NEG_INFINITY];
    let [mut low, mut high] = values.fold(ends, |[low, high], x| [low.min(x), high.max(x)]);
    if low > high {
        [low, high] = [0.0, 1.0];
    }
    if low == high {
        [low, high] = [low - 0.5, high + 0.5];
    }
    let rough = (high - low) / 5.0;
    let power = 10f64.powf(rough.log10().floor());
    // Dividing by 5 leaves room: a rounded-up step needs at most 6 steps.
    let step = [1.0, 2.0, 5.0, 10.0]
        .into_iter()
        .map(|factor| factor * power)
        .find(|step| *step >= rough)
        .unwrap_or(10.0 * power);
    // An end that is a tick but for rounding needs no other beyond it.
    let [first, last] = [(low / step + 1e-9).floor(), (high / step - 1e-9).ceil()];
    Ticks { range: [first * step, last * step], step }
}

impl Ticks {
    fn share(&self, x: f64) -> f64 {
        (x - self.range[0]) / (self.range[1] - self.range[0])
    }

    fn all(&self) -> impl Iterator<Item = f64> {
        let n = ((self.range[1] - self.range[0]) / self.step).round() as usize;
        (0..=n).map(|i| self.range[0] + i as f64 * self.step)
    }

    fn label(&self, x: f64) -> String {
        let digits = (-self.step.log10().floor()).max(0.0) as usize;
        // Not "-0".
        format!("{:.digits$}", x + 0.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check_ticks(values: &[f64], labels: &[&str]) {
        let ticks = ticks(values.iter().copied());
        assert_eq!(ticks.all().map(|x| ticks.label(x)).collect::<Vec<_>>(), labels);
    }

    #[test]
    fn ticks_are_round_and_enclose() {
        check_ticks(&[3.0, 200.0], &["0", "50", "100", "150", "200"]);
        check_ticks(&[0.0004, 0.0011], &["0.0004", "0.0006", "0.0008", "0.0010", "0.0012"]);
        check_ticks(&[-1.0, 1.0], &["-1.0", "-0.5", "0.0", "0.5", "1.0"]);
        check_ticks(&[2.0], &["1.4", "1.6", "1.8", "2.0", "2.2", "2.4", "2.6"]);
        check_ticks(&[], &["0.0", "0.2", "0.4", "0.6", "0.8", "1.0"]);
    }

    #[test]
    fn points_lie_where_the_axes_say() {
        let plot = LinePlot {
            title: "a < b & c".into(),
            x_label: "x".into(),
            y_label: "y".into(),
            lines: vec![Line {
                name: "line".into(),
                points: vec![[0.0, 0.0], [5.0, f64::NAN], [5.0, 5.0], [10.0, 10.0]],
            }],
        };
        let svg = plot.to_svg();
        assert!(svg.contains("a &lt; b &amp; c"), "{svg}");
        // Left bottom, middle, right top of 640 × 400 within the margins.
        assert!(svg.contains("points=\"84.0,348.0 354.0,192.0 624.0,36.0\""), "{svg}");
        assert!(!svg.contains("NaN"));
    }

    #[test]
    fn level_stretches_keep_their_ends_alone() {
        let heights = [0.0, 0.0, 0.0, 0.0, 1.0, 1.0];
        let points = heights.iter().enumerate().map(|(x, &y)| [x as f64, y]).collect();
        let [title, x_label, y_label] = ["", "", ""].map(String::from);
        let lines = vec![Line { name: String::new(), points }];
        let svg = LinePlot { title, x_label, y_label, lines }.to_svg();
        // 108 apart: of the first four points, the first and the last.
        assert!(svg.contains("points=\"84.0,348.0 408.0,348.0 516.0,36.0 624.0,36.0\""), "{svg}");
    }
}
