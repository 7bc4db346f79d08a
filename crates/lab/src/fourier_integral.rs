//! x
pub mod estimator;
pub mod kernel;
pub mod mise;
