//! [`Recent`]: the last rows of a table that grows at its end.

/// The last rows of a table, oldest first.
#[derive(Clone)]
pub(crate) struct Recent<T> {
    width: usize,
    kept: usize,
    values: Vec<T>,
}

impl<T: Copy> Recent<T> {
    /// Keeps the last `kept` rows of `width` values.
    pub fn new(width: usize, kept: usize) -> Self {
        Self { width, kept, values: Vec::new() }
    }

    /// Adds a row.
    pub fn push(&mut self, row: &[T]) {
        debug_assert_eq!(row.len(), self.width, "numbers of a row");
        self.values.extend_from_slice(row);
        let surplus = self.values.len().saturating_sub(self.kept * self.width);
        self.values.drain(..surplus);
    }

    /// Replaces the newest row, if rows are kept.
    pub fn replace_newest(&mut self, row: &[T]) {
        debug_assert_eq!(row.len(), self.width, "numbers of a row");
        if let Some(start) = self.values.len().checked_sub(self.width) {
            self.values[start..].copy_from_slice(row);
        }
    }

    /// The kept rows, oldest first; fewer at the start.
    pub fn rows(&self) -> &[T] {
        &self.values
    }
}

#[cfg(test)]
mod tests {
    use super::Recent;

    #[test]
    fn the_last_rows_are_kept_in_order() {
        for kept in 0..4 {
            let mut recent = Recent::new(2, kept);
            let mut all = Vec::new();
            for row in 0..20u8 {
                let row = [f32::from(row), f32::from(row) + 0.5];
                recent.push(&row);
                all.extend(row);
                assert_eq!(recent.rows(), &all[all.len().saturating_sub(2 * kept)..]);
            }
            if let [.., a, b] = all.as_mut_slice() {
                [*a, *b] = [-1.0, -2.0];
            }
            recent.replace_newest(&[-1.0, -2.0]);
            assert_eq!(recent.rows(), &all[all.len().saturating_sub(2 * kept)..]);
        }
    }
}
