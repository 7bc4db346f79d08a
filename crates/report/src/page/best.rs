//! Several checkpoints of one run: the last, the held-out-selected and the best, side by side.

use overtone_plot::{Line, Stroke};

use super::scores::{Role, Row, spread, told};
use overtone_eval::summary::digits;
use overtone_eval::table::Table;

/// The rows of one run, protocol and target of which several of the run's checkpoints were played,
/// by their updates.
fn checkpoints<'r, 'a>(rows: &'r [Row<'a>]) -> Vec<Vec<&'r Row<'a>>> {
    let mut found: Vec<Vec<&Row<'_>>> = Vec::new();
    for row in rows.iter().filter(|row| row.is_own()) {
        let alike = |other: &Row<'_>| {
            std::ptr::eq(row.run, other.run)
                && row.protocol == other.protocol
                && row.target.target_return == other.target.target_return
        };
        let same = |other: &&Row<'_>| other.step() == row.step() && other.role == row.role;
        match found.iter_mut().find(|group| alike(group[0])) {
            // The same weights again: the first file of theirs stands for them.
            Some(group) if group.iter().any(same) => {}
            Some(group) => group.push(row),
            None => found.push(vec![row]),
        }
    }
    found.iter_mut().for_each(|group| group.sort_by_key(|row| row.step()));
    found.retain(|group| distinct(group).len() > 1);
    found
}

/// One row for each number of updates of a group, which is in their order.
fn distinct<'r, 'a>(group: &[&'r Row<'a>]) -> Vec<&'r Row<'a>> {
    let mut rows = group.to_vec();
    rows.dedup_by_key(|row| row.step());
    rows
}

/// A row for each run, protocol and target of which several checkpoints were played; `None`
/// if there is none.
pub(super) fn table(rows: &[Row<'_>]) -> Option<Table> {
    let groups = checkpoints(rows);
    let mut table = Table::new(&[
        "run",
        "protocol",
        "target",
        "checkpoints played",
        "last (updates)",
        "held-out-selected (updates)",
        "best of those played (updates)",
    ]);
    groups.first()?;
    let digits = digits(groups.iter().flatten().map(|row| &row.raw));
    for group in groups {
        let score = |row: &&Row<'_>| {
            format!("{} ({})", spread(&row.raw, digits), row.step().unwrap_or_default())
        };
        let of = |role: Role| group.iter().find(|row| row.role == role).map(score);
        let none = match group[0].run.held_out_step {
            Some(_) => "not played",
            None => "none held out",
        };
        let best = group.iter().max_by(|a, b| a.raw.mean.total_cmp(&b.raw.mean));
        table.row(vec![
            group[0].run.label.clone(),
            group[0].protocol.clone(),
            target(&group),
            distinct(&group).len().to_string(),
            of(Role::Last).unwrap_or_else(|| "not played".to_owned()),
            of(Role::HeldOut).unwrap_or_else(|| none.to_owned()),
            best.map(score).unwrap_or_default(),
        ]);
    }
    Some(table)
}

/// What the agents of a group were told; a dash where nothing.
fn target(group: &[&Row<'_>]) -> String {
    let told = told(group.iter().copied(), |target| target.to_string());
    if told.is_empty() { "-".to_owned() } else { told }
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
