//! Estimates from recordings, against hand-made numbers, other programs and known truths.

#![allow(clippy::unwrap_used, reason = "the helpers of tests are tests too")]

mod checks;
mod clinic;
mod clinic_file;
mod coverage;
mod golden_weights;
mod of_clinic;
mod table;
mod weights;
