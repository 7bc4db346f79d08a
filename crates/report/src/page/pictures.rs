//! The pictures of a page: curves, action distributions and videos.

use overtone_plot::{Bars, Line, LinePlot, MOST_LINES};

use super::document::Block;
use super::run_files::{EvaluationFile, MOST_VIDEO, RunFiles};
use super::scores::{Role, Row, largest};

/// Maximum number of points of a line. In longer lines, neighbouring points are averaged.
const MOST_POINTS: usize = 400;
/// Larger values are not drawn, because the difference of two values must be finite.
const LARGEST: f64 = 1e100;
/// Maximum number of targets of an evaluation whose actions are shown.
const MOST_TARGETS: usize = 4;

/// Curves with `against` as the label of the x axis; empty if no line has a finite point.
pub(super) fn curves(name: &str, title: &str, against: &str, lines: Vec<Line>) -> Vec<Block> {
    let mut lines: Vec<Line> = lines.into_iter().map(thinned).collect();
    lines.retain(|line| !line.points.is_empty());
    plots(name, title, LinePlot { x_label: against.into(), lines, ..LinePlot::default() })
}

/// A plot as a block. More than [`MOST_LINES`] lines cannot be distinguished, so they are split
/// into several plots.
pub(super) fn plots(name: &str, title: &str, plot: LinePlot) -> Vec<Block> {
    let mut lines = plot.lines.clone();
    if let [line] = &mut lines[..] {
        // A single line does not need a name.
        line.name.clear();
    }
    let n_plots = lines.len().div_ceil(MOST_LINES);
    let block = |(i, lines): (usize, &[Line])| {
        let (name, title) = part(name, title, i, n_plots);
        let svg = LinePlot { lines: lines.to_vec(), ..plot.clone() }.to_svg();
        Block::Plot { name, title, svg }
    };
    lines.chunks(MOST_LINES).enumerate().map(block).collect()
}

/// Name and title of part `i` of a picture in `n` parts.
pub(super) fn part(name: &str, title: &str, i: usize, n: usize) -> (String, String) {
    match n {
        1 => (name.to_owned(), title.to_owned()),
        n => (format!("{name}-part-{}", i + 1), format!("{title}, {} of {n}", i + 1)),
    }
}

/// Whether a number can be a point of a curve.
pub(super) fn is_drawn(number: f64) -> bool {
    number.abs() < LARGEST
}

/// A sentence about each run with non-finite values in `column`, which no curve shows. `title`
/// describes the column.
pub(super) fn broken(runs: &[RunFiles], column: &str, title: &str) -> Vec<Block> {
    let sentence = |run: &RunFiles| {
        let points = run.metrics.as_ref()?.against_steps(column)?;
        let broken: Vec<&[f64; 2]> = points.iter().filter(|point| !is_drawn(point[1])).collect();
        let first = broken.first()?[0];
        let since = points.iter().filter(|point| point[0] >= first).count();
        let when = match broken.len() {
            n if n == since => format!("from update {first}"),
            n => format!("at {n} of {} updates, first at {first}", points.len()),
        };
        Some(Block::Text(format!("The {title} of {} is not a finite number {when}.", run.name)))
    };
    runs.iter().filter_map(sentence).collect()
}

/// The drawable points of a line. In long lines, neighbouring points are averaged.
fn thinned(line: Line) -> Line {
    let band = line.band.iter().copied().chain(std::iter::repeat([0.0; 2]));
    let finite: Vec<[f64; 4]> = line
        .points
        .iter()
        .zip(band)
        .map(|([x, y], [low, high])| [*x, *y, low, high])
        .filter(|point| point.iter().all(|x| is_drawn(*x)))
        .collect();
    let together = finite.len().div_ceil(MOST_POINTS).max(1);
    let mean = |points: &[[f64; 4]], axis: usize| {
        points.iter().map(|point| point[axis] / points.len() as f64).sum()
    };
    let points = finite.chunks(together).map(|points| [mean(points, 0), mean(points, 1)]).collect();
    let band = if line.band.is_empty() {
        Vec::new()
    } else {
        finite.chunks(together).map(|points| [mean(points, 2), mean(points, 3)]).collect()
    };
    Line { points, band, ..line }
}

/// The pictures of how the agents play, their actions and their videos, and the words about them.
pub(super) fn of_play(runs: &[RunFiles], rows: &[Row<'_>]) -> [Vec<Block>; 2] {
    let (mut pictures, videos) = (actions(rows), videos(runs));
    let mut words = Vec::new();
    if !pictures.is_empty() {
        words.push(
            "Actions: the mean probability of each action, over all steps of all episodes of a \
             target, in the order of the bins.",
        );
    }
    if !videos.is_empty() {
        let is_filmed = |row: &&Row<'_>| !row.run.videos.is_empty();
        let [distributions, plain] = [true, false].map(|has_distribution| {
            let is_of = |row: &Row<'_>| row.target.actions.is_some() == has_distribution;
            rows.iter().filter(is_filmed).any(is_of)
        });
        words.push(match (distributions, plain) {
            (true, false) => {
                "Video: one episode, and next to the screen the probability of each action. The \
                 sampled action is orange."
            }
            _ => "Video: one episode, and next to the screen the action.",
        });
    }
    pictures.extend(videos);
    [pictures, words.into_iter().map(|words| Block::Text(words.into())).collect()]
}

/// The mean probability of each discrete action of each run, for its first targets. The last
/// checkpoint is used if it was evaluated.
fn actions(rows: &[Row<'_>]) -> Vec<Block> {
    let mut blocks: Vec<Block> = Vec::new();
    let mut n_left_out = 0;
    for (i, row) in rows.iter().enumerate() {
        let same_run = |other: &Row<'_>| std::ptr::eq(other.run, row.run);
        let has_last = rows.iter().any(|other| same_run(other) && other.role == Role::Last);
        let before = rows[..i].iter().filter(|other| {
            std::ptr::eq(other.source, row.source) && other.target.actions.is_some()
        });
        let Some(shares) = &row.target.actions else { continue };
        let is_largest = largest(rows, row).is_some_and(|other| std::ptr::eq(other, row));
        if (has_last && row.role != Role::Last) || !is_largest {
            continue;
        }
        if before.count() >= MOST_TARGETS {
            n_left_out += 1;
            continue;
        }
        let target =
            row.condition().map_or_else(String::new, |target| format!(", target {target}"));
        let title = format!("Actions of {}, {}{target}", row.run.label, row.protocol);
        let name = format!("actions-{}", blocks.len() + 1);
        let bars = shares.iter().map(|share| (share.action.clone(), share.probability)).collect();
        let svg = Bars { bars, ..Bars::default() }.to_svg();
        blocks.push(Block::Plot { name, title, svg });
    }
    if n_left_out > 0 {
        blocks.push(Block::Text(format!(
            "The first {MOST_TARGETS} targets of an evaluation are shown. {n_left_out} targets are omitted."
        )));
    }
    blocks
}

/// The videos in the run directories. Videos that would make the page too large are only listed.
fn videos(runs: &[RunFiles]) -> Vec<Block> {
    let (mut blocks, mut left_out): (Vec<Block>, Vec<String>) = (Vec::new(), Vec::new());
    let mut size = 0;
    for run in runs {
        for video in &run.videos {
            let shown = match &video.filmed {
                Some(filmed) => {
                    let is_source = |source: &&EvaluationFile| source.file == filmed.evaluation;
                    let source = run.evaluations.iter().find(is_source);
                    let setting = source.map(|source| &source.evaluation.setting);
                    format!(" ({})", filmed.describe(setting))
                }
                None => String::new(),
            };
            let title = format!("{}: {}{shown}", run.name, video.file);
            match video.gif.clone().filter(|gif| size + gif.len() as u64 <= MOST_VIDEO) {
                Some(gif) => {
                    size += gif.len() as u64;
                    let name = format!("video-{}", blocks.len() + 1);
                    blocks.push(Block::Video { name, title, gif });
                }
                None => left_out.push(title),
            }
        }
    }
    if !left_out.is_empty() {
        blocks.push(Block::Text(format!(
            "Too large for this page, but available in the run directories: {}.",
            left_out.join("; ")
        )));
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
    fn neighbouring_points_of_long_lines_are_averaged() {
        let points: Vec<[f64; 2]> = (0..1000).map(|i| [f64::from(i), f64::from(i % 2)]).collect();
        let thin = thinned(line(&points)).points;
        // Three together: 334, the last of 999 alone.
        assert_eq!((thin.len(), thin[0], thin[333]), (334, [1.0, 1.0 / 3.0], [999.0, 1.0]));
        assert_eq!(thinned(line(&points[..400])).points, points[..400]);
    }

    #[test]
    fn non_finite_and_huge_points_are_not_drawn() {
        let far = line(&[[0.0, f64::INFINITY], [1.0, 1e300], [f64::NAN, 0.0]]);
        assert!(curves("loss", "loss", "updates", vec![far, line(&[])]).is_empty());
        let near = line(&[[0.0, 1.0], [1.0, f64::NAN], [2.0, 3.0]]);
        let svg = &drawn(vec![near])[0].1;
        assert!(svg.contains("<polyline") && !svg.contains("NaN"), "{svg}");
    }

    /// Names and contents of the plots.
    fn drawn(lines: Vec<Line>) -> Vec<(String, String)> {
        let blocks = curves("loss", "loss", "updates", lines).into_iter();
        let plot = |block| match block {
            Block::Plot { name, svg, .. } => (name, svg),
            _ => panic!("a curve is a plot"),
        };
        blocks.map(plot).collect()
    }

    #[test]
    fn too_many_lines_are_split_into_several_plots() {
        let lines = |n: usize| {
            let line = |i| Line::new(format!("run {i};"), vec![[0.0, 1.0], [1.0, 2.0]]);
            drawn((0..n).map(line).collect())
        };
        assert_eq!(lines(MOST_LINES).len(), 1);
        let plots = lines(MOST_LINES + 1);
        assert_eq!([&plots[0].0, &plots[1].0], ["loss-part-1", "loss-part-2"]);
        assert!(plots[0].1.contains(">run 31;<") && !plots[0].1.contains(">run 32;<"));
        assert!(plots[1].1.contains(">run 32;<") && !plots[1].1.contains(">run 31;<"));
    }

    #[test]
    fn only_several_lines_have_names() {
        let svg = |names: &[&str]| {
            let lines = names.iter().map(|name| Line::new(*name, vec![[0.0, 1.0], [1.0, 2.0]]));
            drawn(lines.collect()).remove(0).1
        };
        assert!(svg(&["one", "</svg>"]).contains(">&lt;/svg&gt;</text>"));
        assert!(!svg(&["one"]).contains(">one<"));
    }
}
