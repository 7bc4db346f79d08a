//! Errors as one sentence, with advice.

use std::io;

/// The exit code of a program; prints its error, if any.
pub fn exit_code(ended: anyhow::Result<u8>, of_errors: u8) -> u8 {
    ended.unwrap_or_else(|error| {
        warn!("error: {}", message(&error));
        of_errors
    })
}

/// An error in one sentence, with advice if there is some.
pub fn message(error: &anyhow::Error) -> String {
    format!("{}{}", sentence(error), advice(error))
}

/// An error and its causes as one sentence. Repeated causes are left out, since many libraries
/// include the cause in their own text.
pub fn sentence(error: &anyhow::Error) -> String {
    error.chain().map(ToString::to_string).fold(String::new(), |text, cause| {
        if text.is_empty() {
            cause
        } else if text.contains(&cause) {
            text
        } else {
            format!("{text}: {cause}")
        }
    })
}

/// Advice for a full or read-only disk.
fn advice(error: &anyhow::Error) -> &'static str {
    use io::ErrorKind::{FileTooLarge, QuotaExceeded, ReadOnlyFilesystem, StorageFull};
    let mut causes = error.chain().filter_map(|cause| cause.downcast_ref::<io::Error>());
    match causes.next().map(io::Error::kind) {
        Some(StorageFull | QuotaExceeded) => ". Free disk space there, then run the command again",
        Some(FileTooLarge) => ". Raise the limit on file sizes there (see `ulimit -f`)",
        Some(ReadOnlyFilesystem) => ". Use a writable directory",
        _ => "",
    }
}

#[cfg(test)]
mod tests {
    use super::{advice, sentence};

    #[test]
    fn repeated_causes_are_left_out() {
        let error = anyhow::anyhow!("not found").context("a/b: not found").context("reading it");
        assert_eq!(sentence(&error), "reading it: a/b: not found");
    }

    #[test]
    fn only_a_full_disk_has_its_advice() {
        let full = std::io::Error::from(std::io::ErrorKind::StorageFull);
        assert!(advice(&anyhow::Error::new(full).context("a")).contains("Free disk space"));
        assert_eq!(advice(&anyhow::anyhow!("b")), "");
    }
}
