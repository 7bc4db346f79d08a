//! Command-line tools of the project's programs: options as `key=value`, progress bars, errors in
//! one sentence.

/// `println!` that ignores a closed output (`… | head`). A host may read the line instead
/// ([`host`]).
#[macro_export]
macro_rules! say {
    ($($words:tt)*) => { $crate::host::say(format_args!($($words)*)) };
}

/// `eprintln!` that ignores a closed output.
#[macro_export]
macro_rules! warn {
    ($($words:tt)*) => { $crate::host::warn(format_args!($($words)*)) };
}

pub mod errors;
pub mod flags;
pub mod host;
pub mod keys;
pub mod progress;
mod quoted;

pub use quoted::quoted;
