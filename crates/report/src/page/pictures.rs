//! The pictures of a page: curves, how probable actions were, videos.

use overtone_plot::{Bars, Line, LinePlot};

use super::document::Block;
use super::run_files::RunFiles;
use super::scores::{Role, Row};

/// Points of a line; of more, neighbours are averaged.
const MOST_POINTS: usize = 400;
/// What is larger is left out: differences of two of them must be numbers.
const LARGEST: f64 = 1e100;
/// Targets of an evaluation whose actions are shown.
const MOST_TARGETS: usize = 4;

/// Curves against what `against` names; `None` if no line has a finite point.
pub(super) fn curves(name: &str, title: &str, against: &str, lines: Vec<Line>) -> Option<Block> {
    let mut lines: Vec<Line> = lines.into_iter().map(thinned).collect();
    lines.retain(|line| !line.points.is_empty());
    if let [line] = &mut lines[..] {
        // There is nothing to tell it from.
        line.name.clear();
    }
    lines.first()?;
    let plot = LinePlot { x_label: against.into(), lines, ..LinePlot::default() };
    Some(Block::Plot { name: name.to_owned(), title: title.to_owned(), svg: plot.to_svg() })
}

/// The points that can be shown; if they are many, means of neighbours.
fn thinned(line: Line) -> Line {
    let band = line.band.iter().copied().chain(std::iter::repeat([0.0; 2]));
    let finite: Vec<[f64; 4]> = line
        .points
        .iter()
        .zip(band)
        .map(|([x, y], [low, high])| [*x, *y, low, high])
        .filter(|point| point.iter().all(|x| x.abs() < LARGEST))
        .collect();
    let together = finite.len().div_ceil(MOST_POINTS).max(1);
    let mean = |points: &[[f64; 4]], axis: usize| {
        points.iter().map(|point| point[axis] / points.len() as f64).sum()
    };
    let points = finite.chunks(together).map(|points| [mean(points, 0), mean(points, 1)]).collect();
    let band = match line.band.is_empty() {
        true => Vec::new(),
        false => finite.chunks(together).map(|points| [mean(points, 2), mean(points, 3)]).collect(),
    };
    Line { points, band, ..line }
}

/// How probable each action was on average, for the first targets of each run's last
/// checkpoint (or whichever was played).
pub(super) fn actions(rows: &[Row<'_>]) -> Vec<Block> {
    let mut blocks: Vec<Block> = Vec::new();
    for (i, row) in rows.iter().enumerate() {
        let same_run = |other: &Row<'_>| std::ptr::eq(other.run, row.run);
        let has_last = rows.iter().any(|other| same_run(other) && other.role == Role::Last);
        let before = rows[..i].iter().filter(|other| {
            std::ptr::eq(other.source, row.source) && other.target.actions.is_some()
        });
        if (has_last && row.role != Role::Last) || before.count() >= MOST_TARGETS {
            continue;
        }
        let Some(shares) = &row.target.actions else { continue };
        let title =
            format!("{}, {}, target {}", row.run.name, row.protocol, row.target.target_return);
        let bars = shares.iter().map(|share| (share.action.clone(), share.share)).collect();
        let svg = Bars { bars, ..Bars::default() }.to_svg();
        blocks.push(Block::Plot { name: format!("actions-{}", blocks.len() + 1), title, svg });
    }
    blocks
}

/// The videos in the runs' folders.
pub(super) fn videos(runs: &[RunFiles]) -> Vec<Block> {
    let mut blocks: Vec<Block> = Vec::new();
    for run in runs {
        for video in &run.videos {
            let shown = match &video.filmed {
                Some(filmed) => format!(" ({})", filmed.describe()),
                None => String::new(),
            };
            blocks.push(Block::Video {
                name: format!("video-{}", blocks.len() + 1),
                title: format!("{}: {}{shown}", run.name, video.file),
                gif: video.gif.clone(),
            });
        }
    }
    blocks
}

#[cfg(test)]
mod tests {
    use super::*;

    fn line(points: &[[f64; 2]]) -> Line {
        Line::new("", points.to_vec())
    }

    #[test]
    fn many_points_are_averaged() {
        let points: Vec<[f64; 2]> = (0..1000).map(|i| [f64::from(i), f64::from(i % 2)]).collect();
        let thin = thinned(line(&points)).points;
        // Three together: 334, the last of 999 alone.
        assert_eq!((thin.len(), thin[0], thin[333]), (334, [1.0, 1.0 / 3.0], [999.0, 1.0]));
        assert_eq!(thinned(line(&points[..400])).points, points[..400]);
    }

    #[test]
    fn what_cannot_be_drawn_is_left_out() {
        let far = line(&[[0.0, f64::INFINITY], [1.0, 1e300], [f64::NAN, 0.0]]);
        assert!(curves("loss", "loss", "updates", vec![far, line(&[])]).is_none());
        let near = line(&[[0.0, 1.0], [1.0, f64::NAN], [2.0, 3.0]]);
        let Some(Block::Plot { svg, .. }) = curves("loss", "loss", "updates", vec![near]) else {
            panic!("two points can be drawn")
        };
        assert!(svg.contains("<polyline") && !svg.contains("NaN"), "{svg}");
    }

    #[test]
    fn lines_have_names_where_there_are_several() {
        let of = |names: &[&str]| {
            let lines = names.iter().map(|name| Line::new(*name, vec![[0.0, 1.0], [1.0, 2.0]]));
            match curves("loss", "loss", "updates", lines.collect()) {
                Some(Block::Plot { svg, .. }) => svg,
                _ => panic!("there are lines"),
            }
        };
        assert!(of(&["one", "</svg>"]).contains(">&lt;/svg&gt;</text>"));
        assert!(!of(&["one"]).contains(">one<"));
    }
}
