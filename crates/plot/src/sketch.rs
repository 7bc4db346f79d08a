//! A figure of thick rounded lines on the ground, seen from the side.

use std::fmt::Write;

use crate::svg;

/// One limb: a line between two points with a radius, in metres.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Limb {
    /// `[x, z]` of the ends; z is up, and the ground is at 0.
    pub ends: [[f64; 2]; 2],
    /// Half its thickness.
    pub radius: f64,
}

/// Limbs in a landscape with a mark at every metre.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Sketch {
    /// `[x, z]` of the centre of the picture, in metres.
    pub centre: [f64; 2],
    /// Height of the picture in metres.
    pub height: f64,
    /// From back to front.
    pub limbs: Vec<Limb>,
}

const WIDTH: f64 = 480.0;
const HEIGHT: f64 = 400.0;
/// Maximum number of marks on the ground.
const MOST_MARKS: i64 = 200;

impl Sketch {
    /// The picture as SVG; limbs that are not finite are left out.
    pub fn to_svg(&self) -> String {
        let scale = HEIGHT / self.height;
        let place = |[x, z]: [f64; 2]| {
            [
                WIDTH / 2.0 + (x - self.centre[0]) * scale,
                HEIGHT / 2.0 - (z - self.centre[1]) * scale,
            ]
        };
        let mut picture = svg::opening([WIDTH, HEIGHT]);
        let [_, ground] = place([0.0, 0.0]);
        if ground.is_finite() {
            let _ = writeln!(
                picture,
                "<rect y=\"{ground:.1}\" width=\"{WIDTH}\" height=\"{:.1}\" fill=\"#e8e4da\"/>",
                (HEIGHT - ground).max(0.0)
            );
            let half = WIDTH / 2.0 / scale;
            let first = (self.centre[0] - half).ceil();
            for mark in (0..MOST_MARKS).map(|i| first + i as f64) {
                if mark > self.centre[0] + half || !mark.is_finite() {
                    break;
                }
                let [x, _] = place([mark, 0.0]);
                let _ = writeln!(
                    picture,
                    "<rect x=\"{x:.1}\" y=\"{ground:.1}\" width=\"1.5\" height=\"8\" fill=\"#777\"/>"
                );
                let words = format!("{mark:.0} m");
                svg::text(&mut picture, [x, ground + 22.0], "text-anchor=\"middle\"", &words);
            }
        }
        for (i, limb) in self.limbs.iter().enumerate() {
            let [[x1, y1], [x2, y2]] = limb.ends.map(place);
            let width = 2.0 * limb.radius * scale;
            if ![x1, y1, x2, y2, width].iter().all(|number| number.is_finite()) {
                continue;
            }
            let colour = ["#d55e00", "#0072b2", "#009e73", "#cc79a7", "#e69f00", "#56b4e9"][i % 6];
            let _ = writeln!(
                picture,
                "<line x1=\"{x1:.1}\" y1=\"{y1:.1}\" x2=\"{x2:.1}\" y2=\"{y2:.1}\" \
                 stroke=\"{colour}\" stroke-width=\"{width:.1}\" stroke-linecap=\"round\"/>"
            );
        }
        picture + "</svg>\n"
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_limb_is_at_its_place() {
        let limb = |ends| Limb { ends, radius: 0.05 };
        let upright = limb([[10.0, 0.5], [10.0, 1.5]]);
        let broken = limb([[f64::NAN, 0.5], [10.0, 1.5]]);
        let sketch = Sketch { centre: [10.0, 0.5], height: 2.0, limbs: vec![upright, broken] };
        let svg = sketch.to_svg();
        // 200 pixels per metre; the centre at 240, 200.
        let line = "x1=\"240.0\" y1=\"200.0\" x2=\"240.0\" y2=\"0.0\" stroke=\"#d55e00\" \
                    stroke-width=\"20.0\"";
        assert!(svg.contains(line), "{svg}");
        assert_eq!(svg.matches("<line").count(), 1);
        // 1.2 metres to either side: marks at 9, 10 and 11.
        assert_eq!(svg.matches(" m</text>").count(), 3, "{svg}");
        let nowhere = Sketch { centre: [f64::NAN, f64::NAN], ..sketch };
        assert!(nowhere.to_svg().ends_with("</svg>\n"));
    }
}
