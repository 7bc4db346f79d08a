//! Overtone.
