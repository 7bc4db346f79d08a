//! Parameters of modules: initialization, the names of matrices, and storage.

pub mod affine;
pub mod init;
pub mod matrices;
pub mod weights;
