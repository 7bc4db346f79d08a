//! Parameters of modules: how they begin, which are matrices, and how they are stored.

pub mod affine;
pub mod init;
pub mod matrices;
pub mod weights;
