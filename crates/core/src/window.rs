//! Context windows: the only code that cuts, pads and masks a stretch of an episode.
//!
//! Training batches and the acting policy both use [`Window`], so the model sees the same layout in
//! training and while it acts.

/// The timesteps of one context, right-aligned.
///
/// A window has `context_length` places; the last `n_real` hold timesteps
/// `first .. first + n_real` of a log, the `n_padding` places before them hold padding.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Window {
    /// Number of timesteps the model sees (a timestep is three tokens).
    pub context_length: usize,
    /// Index in the log of the first real timestep.
    pub first: usize,
    /// Number of real timesteps, `1 ..= context_length`.
    pub n_real: usize,
}

impl Window {
    /// The context of an action at timestep `last`: this timestep and the earlier ones of its
    /// episode, at most `context_length` in total.
    ///
    /// # Panics
    /// When `last < episode_start` or `context_length` is 0: a caller's bug.
    pub fn ending_at(episode_start: usize, last: usize, context_length: usize) -> Self {
        assert!(last >= episode_start, "timestep {last} lies before its episode {episode_start}");
        assert!(context_length > 0, "a context needs at least one timestep");
        let n_real = (last - episode_start + 1).min(context_length);
        Self { context_length, first: last + 1 - n_real, n_real }
    }

    /// Number of padded places before the first real timestep.
    pub fn n_padding(&self) -> usize {
        self.context_length - self.n_real
    }

    /// The real timesteps as an index range into the log.
    pub fn range(&self) -> std::ops::Range<usize> {
        self.first..self.first + self.n_real
    }

    /// Writes the window's part of `column` into `out`, `width` values a timestep, with
    /// `padding` in the padded places.
    ///
    /// # Shapes
    /// - `column`: `[log length, width]`
    /// - `out`: `[context_length, width]`
    ///
    /// # Panics
    /// When `out` has another length or `column` is too short: a caller's bug.
    pub fn lay<T: Copy>(&self, column: &[T], width: usize, padding: T, out: &mut [T]) {
        assert_eq!(out.len(), self.context_length * width, "`out` is [context_length, width]");
        let (pad, real) = out.split_at_mut(self.n_padding() * width);
        pad.fill(padding);
        real.copy_from_slice(&column[self.first * width..(self.first + self.n_real) * width]);
    }
}

#[cfg(test)]
mod tests {
    use super::Window;

    #[track_caller]
    fn check(episode_start: usize, last: usize, context: usize, expected: [Option<usize>; 4]) {
        let window = Window::ending_at(episode_start, last, context);
        let column: Vec<Option<usize>> = (0..=last).map(Some).collect();
        let mut out = vec![Some(999); context];
        window.lay(&column, 1, None, &mut out);
        assert_eq!(out, expected);
        assert_eq!(window.n_padding(), expected.iter().filter(|place| place.is_none()).count());
        assert_eq!(window.range().last(), Some(last));
    }

    #[test]
    fn windows_are_right_aligned_and_stay_inside_their_episode() {
        check(5, 5, 4, [None, None, None, Some(5)]); // one step
        check(5, 7, 4, [None, Some(5), Some(6), Some(7)]); // one short of full
        check(5, 8, 4, [Some(5), Some(6), Some(7), Some(8)]); // exactly the context
        check(5, 9, 4, [Some(6), Some(7), Some(8), Some(9)]); // one more
    }

    #[test]
    fn lays_rows_of_any_width() {
        let window = Window::ending_at(1, 2, 3);
        let column = [0, 0, 10, 11, 20, 21];
        let mut out = [7; 6];
        window.lay(&column, 2, -1, &mut out);
        assert_eq!(out, [-1, -1, 10, 11, 20, 21]);
    }
}
