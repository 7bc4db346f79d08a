//! For tests only: damage to files.
//!
//! The project's readers meet damaged and hostile files in this crate's tests (`tests/hostile`).

pub mod mutate;
