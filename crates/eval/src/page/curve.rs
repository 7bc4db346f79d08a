//! Curves as SVG that takes its ink from what surrounds it, so that it reads on light and dark.

use std::fmt::Write;

use super::html::escape;

/// One line of a plot.
pub(super) struct Curve {
    /// Its entry in the legend.
    pub(super) name: String,
    /// `[x, y]` from left to right; points that are not finite are
    /// left out.
    pub(super) points: Vec<[f64; 2]>,
}

const WIDTH: f64 = 600.0;
const HEIGHT: f64 = 280.0;
/// Left, right, top, bottom.
const MARGINS: [f64; 4] = [66.0, 14.0, 30.0, 40.0];
/// Between the legend's rows.
const ROW: f64 = 16.0;
/// Told apart by the colour-blind too (Okabe and Ito 2008), on light and dark.
const COLOURS: [&str; 7] =
    ["#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9", "#999999"];
/// Points of a line; of more, neighbours are averaged.
const MOST_POINTS: usize = 400;
/// Points of a line that are marked.
const FEW_POINTS: usize = 20;
/// What is larger is left out: differences of two of them must be numbers.
const LARGEST: f64 = 1e100;

/// The plot; `None` if no line has a finite point.
pub(super) fn plot(title: &str, x_label: &str, curves: &[Curve]) -> Option<String> {
    let lines: Vec<Vec<[f64; 2]>> = curves.iter().map(|curve| thinned(&curve.points)).collect();
    let all = || lines.iter().flatten();
    all().next()?;
    let x = Axis::of(all().map(|point| point[0]));
    let y = Axis::of(all().map(|point| point[1]));
    let [left, right, top, bottom] = MARGINS;
    let place = |[px, py]: [f64; 2]| {
        let along = left + (WIDTH - left - right) * x.share(px);
        [along, HEIGHT - bottom - (HEIGHT - top - bottom) * y.share(py)]
    };
    let named = if curves.len() > 1 { curves.len() } else { 0 };
    let height = HEIGHT + ROW * named as f64;
    let mut svg = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {WIDTH} {height}\" role=\"img\" \
         aria-label=\"{}\" font-family=\"sans-serif\" font-size=\"11\" fill=\"currentColor\">\n",
        escape(title)
    );
    text(&mut svg, [WIDTH / 2.0, 16.0], "middle", title);
    text(&mut svg, [WIDTH / 2.0, HEIGHT - 6.0], "middle", x_label);
    for &tick in &x.ticks {
        let [along, _] = place([tick, 0.0]);
        text(&mut svg, [along, HEIGHT - bottom + 15.0], "middle", &x.label(tick));
    }
    for &tick in &y.ticks {
        let [_, up] = place([0.0, tick]);
        text(&mut svg, [left - 6.0, up + 4.0], "end", &y.label(tick));
        let ends = [[left, up], [WIDTH - right, up]];
        line(&mut svg, "stroke=\"currentColor\" stroke-opacity=\"0.18\"", &ends);
    }
    for (i, (curve, points)) in curves.iter().zip(&lines).enumerate() {
        let colour = COLOURS[i % COLOURS.len()];
        // Dashed where the colours begin anew.
        let dashes = ["", " stroke-dasharray=\"6 3\"", " stroke-dasharray=\"2 2\""];
        let dashes = dashes[i / COLOURS.len() % dashes.len()];
        let style = format!("stroke=\"{colour}\" stroke-width=\"1.5\"{dashes}");
        let places: Vec<[f64; 2]> = points.iter().map(|point| place(*point)).collect();
        line(&mut svg, &style, &places);
        if places.len() <= FEW_POINTS {
            for [cx, cy] in places {
                let _ = writeln!(
                    svg,
                    "<circle cx=\"{cx:.1}\" cy=\"{cy:.1}\" r=\"2.5\" fill=\"{colour}\"/>"
                );
            }
        }
        if named > 0 {
            let row = HEIGHT + ROW * i as f64 + 4.0;
            line(&mut svg, &style, &[[left, row], [left + 22.0, row]]);
            text(&mut svg, [left + 28.0, row + 4.0], "start", &curve.name);
        }
    }
    Some(svg + "</svg>\n")
}

fn text(svg: &mut String, [x, y]: [f64; 2], anchor: &str, words: &str) {
    let words = escape(words);
    let _ =
        writeln!(svg, "<text x=\"{x:.1}\" y=\"{y:.1}\" text-anchor=\"{anchor}\">{words}</text>");
}

fn line(svg: &mut String, style: &str, places: &[[f64; 2]]) {
    let points: Vec<String> = places.iter().map(|[x, y]| format!("{x:.1},{y:.1}")).collect();
    let _ = writeln!(svg, "<polyline fill=\"none\" {style} points=\"{}\"/>", points.join(" "));
}

/// The points that can be shown; if they are many, means of neighbours.
fn thinned(points: &[[f64; 2]]) -> Vec<[f64; 2]> {
    let finite: Vec<[f64; 2]> =
        points.iter().filter(|point| point.iter().all(|x| x.abs() < LARGEST)).copied().collect();
    let together = finite.len().div_ceil(MOST_POINTS).max(1);
    let mean = |points: &[[f64; 2]], axis: usize| {
        points.iter().map(|point| point[axis] / points.len() as f64).sum()
    };
    finite.chunks(together).map(|points| [mean(points, 0), mean(points, 1)]).collect()
}

/// One axis, from its first tick to its last.
struct Axis {
    ticks: Vec<f64>,
    step: f64,
}

impl Axis {
    /// Ticks 1, 2 or 5 times a power of ten apart, at most seven, that enclose finite values.
    fn of(values: impl Iterator<Item = f64>) -> Self {
        let ends = [f64::INFINITY, f64::NEG_INFINITY];
        let [low, high] = values.fold(ends, |[low, high], x| [low.min(x), high.max(x)]);
        // Equal ends, or so near that no ticks fit between them, are moved apart.
        let least = low.abs().max(high.abs()).max(1e-300) * 1e-9;
        let (low, high) = match high - low > least {
            true => (low, high),
            false => (low - 0.5_f64.max(least), high + 0.5_f64.max(least)),
        };
        let rough = (high - low) / 5.0;
        let power = 10f64.powf(rough.log10().floor());
        let step = [1.0, 2.0, 5.0]
            .into_iter()
            .map(|factor| factor * power)
            .find(|step| *step >= rough * (1.0 - 1e-9))
            .unwrap_or(10.0 * power);
        let [first, last] = [(low / step + 1e-9).floor(), (high / step - 1e-9).ceil()];
        let n = (last - first).round() as usize;
        Self { ticks: (0..=n).map(|i| (first + i as f64) * step).collect(), step }
    }

    /// How far along the axis, from 0 to 1.
    fn share(&self, x: f64) -> f64 {
        let [first, last] = [self.ticks[0], self.ticks[self.ticks.len() - 1]];
        (x - first) / (last - first)
    }

    fn label(&self, tick: f64) -> String {
        let largest = self.ticks.iter().fold(0.0_f64, |largest, tick| largest.max(tick.abs()));
        match largest {
            _ if tick == 0.0 => "0".into(),
            1e-2..1e7 => {
                let digits = (-self.step.log10().floor()).clamp(0.0, 9.0) as usize;
                format!("{tick:.digits$}")
            }
            _ => {
                let digits = (largest.log10().floor() - self.step.log10().floor()).clamp(0.0, 9.0);
                format!("{tick:.0$e}", digits as usize)
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn curve(name: &str, points: &[[f64; 2]]) -> Curve {
        Curve { name: name.into(), points: points.to_vec() }
    }

    #[test]
    fn points_lie_between_the_axes() {
        let points = [[0.0, 0.0], [5.0, f64::NAN], [5.0, 5.0], [10.0, 10.0]];
        let svg = plot("a < b", "step", &[curve("", &points)]).unwrap();
        // Left bottom, middle, right top of 600 × 280 within the margins.
        assert!(svg.contains("points=\"66.0,240.0 326.0,135.0 586.0,30.0\""), "{svg}");
        assert!(svg.contains(">a &lt; b</text>") && !svg.contains("NaN"), "{svg}");
    }

    #[test]
    fn lines_have_names_where_there_are_several() {
        let line = |name| curve(name, &[[0.0, 1.0], [1.0, 2.0]]);
        let svg = plot("t", "x", &[line("one"), line("</svg>")]).unwrap();
        assert!(svg.contains(">one</text>") && svg.contains(">&lt;/svg&gt;</text>"), "{svg}");
        assert!(!plot("t", "x", &[line("one")]).unwrap().contains(">one<"));
        assert_eq!(plot("t", "x", &[curve("a", &[[0.0, f64::INFINITY]])]), None);
        assert_eq!(plot("t", "x", &[]), None);
    }

    #[test]
    fn many_points_are_averaged() {
        let points: Vec<[f64; 2]> = (0..1000).map(|i| [f64::from(i), f64::from(i % 2)]).collect();
        let thin = thinned(&points);
        // Three together: 334, the last of 999 alone.
        assert_eq!((thin.len(), thin[0], thin[333]), (334, [1.0, 1.0 / 3.0], [999.0, 1.0]));
        assert_eq!(thinned(&points[..400]), points[..400]);
    }

    #[track_caller]
    fn ticks(values: &[f64], expected: &[&str]) {
        let axis = Axis::of(values.iter().copied());
        assert_eq!(axis.ticks.iter().map(|tick| axis.label(*tick)).collect::<Vec<_>>(), expected);
        assert!(values.iter().all(|x| (-1e-9..=1.0 + 1e-9).contains(&axis.share(*x))));
    }

    #[test]
    fn ticks_are_round_and_enclose() {
        ticks(&[3.0, 200.0], &["0", "50", "100", "150", "200"]);
        ticks(&[-1.0, 1.0], &["-1.0", "-0.5", "0", "0.5", "1.0"]);
        ticks(&[0.0, 6e-4], &["0", "2e-4", "4e-4", "6e-4"]);
        ticks(&[2.0, 2.0], &["1.4", "1.6", "1.8", "2.0", "2.2", "2.4", "2.6"]);
        for values in [[-1e99, 1e99], [1e99, 1e99], [0.0, 5e-324], [1.0, 1.0 + 1e-15]] {
            let axis = Axis::of(values.into_iter());
            assert!((2..=20).contains(&axis.ticks.len()), "{values:?}: {:?}", axis.ticks);
            assert!(axis.ticks.iter().all(|tick| tick.is_finite()), "{:?}", axis.ticks);
        }
    }
}
