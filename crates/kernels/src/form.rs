//! Which form of an operation runs.

/// The choice between the fused and the reference form of an operation.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Form {
    /// The fused form where there is one (CPU, `f32`), the reference elsewhere.
    #[default]
    Auto,
    /// The reference form, everywhere.
    Reference,
}
