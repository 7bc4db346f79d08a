//! What the project's programs share on the command line: options as `key=value`, progress bars,
//! errors in one sentence.

/// `println!` that does not mind when nobody reads on (`… | head`): the work goes on.
#[macro_export]
macro_rules! say {
    ($($words:tt)*) => {{
        use std::io::Write as _;
        let _ = writeln!(std::io::stdout(), $($words)*);
    }};
}

pub mod errors;
pub mod flags;
pub mod keys;
pub mod progress;
