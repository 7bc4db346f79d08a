//! [`Setting`]: a setting of a run.

/// A setting of a run, for TensorBoard's tab HParams.
#[derive(Clone, Debug, PartialEq)]
pub enum Setting {
    /// A number.
    Number(f64),
    /// A word.
    Word(String),
    /// True or false.
    Flag(bool),
}
