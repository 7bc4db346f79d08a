//! Overtone.
fn main() {}
