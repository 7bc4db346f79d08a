//! [`Shortened`]: a count of updates that is limited to a tenth of the run.

/// A count of updates in the settings that is longer than a tenth of the run.
#[derive(Clone, Debug, PartialEq)]
pub struct Shortened {
    /// The count's key, such as `discrete_cql.target_every`.
    pub key: String,
    /// The count of the settings.
    pub requested: f64,
    /// The count in this run.
    pub taken: f64,
}

impl Shortened {
    /// Limits `count` to a tenth of a run of `n_updates`, rounded up.
    pub fn limit(key: String, count: &mut u64, n_updates: u64) -> Option<Self> {
        let requested = *count;
        *count = requested.min(n_updates.div_ceil(10).max(1));
        let [requested, taken] = [requested, *count].map(|count| count as f64);
        (taken < requested).then_some(Self { key, requested, taken })
    }
}
