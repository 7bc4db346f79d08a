//! [`Misplaced`]: a sign that rows are on the wrong side of an end, and what to do.

/// A sign that rows are on the wrong side of an end.
pub(super) struct Misplaced {
    pub found: String,
    pub advice: String,
}

impl Misplaced {
    pub fn new(found: String, advice: impl Into<String>) -> Self {
        Self { found, advice: advice.into() }
    }
}
