//! Estimates of an agent's return from a recording, where nothing may be played.
