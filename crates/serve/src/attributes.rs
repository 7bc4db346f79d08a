//! [`Attributes`]: the attributes of an operation.

/// Attributes of an operation by name.
#[derive(Clone, Debug, Default)]
pub struct Attributes {
    pub(crate) floats: Vec<(String, f32)>,
    pub(crate) ints: Vec<(String, Vec<i64>)>,
}

impl Attributes {
    /// A number, or this default.
    pub fn float(&self, name: &str, default: f32) -> f32 {
        self.floats.iter().find(|(key, _)| key == name).map_or(default, |(_, value)| *value)
    }

    /// A whole number, or this default.
    pub fn int(&self, name: &str, default: i64) -> i64 {
        self.list(name).first().copied().unwrap_or(default)
    }

    /// Whole numbers; none if they are missing.
    pub fn list(&self, name: &str) -> &[i64] {
        self.ints.iter().find(|(key, _)| key == name).map_or(&[], |(_, value)| value)
    }
}
