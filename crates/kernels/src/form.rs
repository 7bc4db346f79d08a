//! Which form of an operation runs.

/// The choice between the fastest and the reference form of an operation.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Form {
    /// The fused form (CPU, `f32`) or the kernels (GPU) where there are any, the reference
    /// elsewhere.
    #[default]
    Auto,
    /// The reference form, everywhere.
    Reference,
}
