//! Comparison of a run's checkpoints: the last, the held-out-selected and the best.

use overtone_plot::{Line, Stroke};

use super::choices;
use super::document::Block;
use super::scores::{Role, Row, conditions, spread};
use overtone_eval::summary::digits;
use overtone_eval::table::Table;

/// Rows grouped by run, protocol and target, sorted by updates. Only groups with several evaluated
/// checkpoints are included.
fn checkpoints<'r, 'a>(rows: &'r [Row<'a>]) -> Vec<Vec<&'r Row<'a>>> {
    let mut groups: Vec<Vec<&Row<'_>>> = Vec::new();
    for row in rows.iter().filter(|row| row.is_own()) {
        let in_group = |other: &Row<'_>| {
            std::ptr::eq(row.run, other.run)
                && row.protocol == other.protocol
                && row.target.target_return == other.target.target_return
        };
        let same_weights = |other: &&Row<'_>| other.step() == row.step() && other.role == row.role;
        match groups.iter_mut().find(|group| in_group(group[0])) {
            // For the same weights only the first file is used.
            Some(group) if group.iter().any(same_weights) => {}
            Some(group) => group.push(row),
            None => groups.push(vec![row]),
        }
    }
    groups.iter_mut().for_each(|group| group.sort_by_key(|row| row.step()));
    groups.retain(|group| distinct(group).len() > 1);
    groups
}

/// One row for each number of updates of a group that is sorted by updates.
fn distinct<'r, 'a>(group: &[&'r Row<'a>]) -> Vec<&'r Row<'a>> {
    let mut rows = group.to_vec();
    rows.dedup_by_key(|row| row.step());
    rows
}

/// A row for each run, protocol and target with several evaluated checkpoints; `None` if there
/// are none.
pub(super) fn table(rows: &[Row<'_>]) -> Option<Vec<Block>> {
    let groups = checkpoints(rows);
    groups.first()?;
    let digits = digits(groups.iter().flatten().map(|row| &row.raw));
    let score = |row: &&Row<'_>| {
        format!("{} ({})", spread(&row.raw, digits), row.step().unwrap_or_default())
    };
    let with_role =
        |group: &[&Row<'_>], role: Role| group.iter().find(|row| row.role == role).map(score);
    let table = Table::of(
        &groups,
        &[
            ("run", &|group| group[0].run.label.clone()),
            ("protocol", &|group| group[0].protocol.clone()),
            ("target", &|group| target(group)),
            ("checkpoints evaluated", &|group| distinct(group).len().to_string()),
            ("last (updates)", &|group| {
                with_role(group, Role::Last).unwrap_or_else(|| "not evaluated".to_owned())
            }),
            ("held-out-selected (updates)", &|group| {
                let none = match group[0].run.held_out_step {
                    Some(_) => "not evaluated",
                    None => "none held out",
                };
                with_role(group, Role::HeldOut).unwrap_or_else(|| none.to_owned())
            }),
            ("best evaluated (updates)", &|group| {
                let best = group.iter().max_by(|a, b| a.raw.mean.total_cmp(&b.raw.mean));
                best.map(score).unwrap_or_default()
            }),
        ],
    );
    let episodes = groups.iter().map(|group| choices::episodes(group)).collect();
    Some(choices::counted(table, episodes))
}

/// The targets of a group; a dash if its agents do not use any.
fn target(group: &[&Row<'_>]) -> String {
    let targets = conditions(group.iter().copied(), |target| target.to_string());
    if targets.is_empty() { "-".to_owned() } else { targets }
}

/// The mean raw return against updates, for the same groups.
pub(super) fn curves(rows: &[Row<'_>]) -> Vec<Line> {
    let curve = |group: Vec<&Row<'_>>| {
        let point = |row: &&Row<'_>| Some([row.step()? as f64, row.raw.mean]);
        let target = target(&group);
        let name = format!("{}, {}, target {target}", group[0].run.label, group[0].protocol);
        Line::new(name, distinct(&group).iter().filter_map(point).collect()).stroke(Stroke::Marked)
    };
    checkpoints(rows).into_iter().map(curve).collect()
}
