//! A recording in memory, of a format that has no look of its own.

use std::ops::Range;

use super::arrays::Arrays;
use super::seen::Seen;
use crate::columns::Columns;
use crate::expected::Expected;
use crate::findings::Findings;
use crate::read::hdf5_layout::Layout;

/// Finds what is wrong with `columns`.
pub(crate) fn look(columns: &Columns, expected: &Expected<'_>, findings: &mut Findings) {
    findings.of(&columns.path);
    if let Err(error) = columns.check() {
        findings.refused(&error);
        return;
    }
    let arrays = Arrays::of_columns(columns);
    let spans: Vec<(Range<usize>, bool)> =
        columns.episodes.iter().map(|e| e.range()).zip(columns.finished.iter().copied()).collect();
    let mut seen = Seen::new(expected.horizon, expected.task);
    seen.look(&arrays, &spans, findings);
    seen.tell(Layout::D4rl, findings);
}
