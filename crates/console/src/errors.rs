//! How an error is told: as one sentence, with what to do about it.

use std::io;

/// The exit code of a program that ended so; its error is printed first.
pub fn exit_code(ended: anyhow::Result<u8>, of_errors: u8) -> u8 {
    ended.unwrap_or_else(|error| {
        warn!("error: {}", told(&error));
        of_errors
    })
}

/// An error in one sentence, with what to do about it where that is known.
pub fn told(error: &anyhow::Error) -> String {
    format!("{}{}", sentence(error), advice(error))
}

/// An error and its causes as one sentence; causes that it says already are left out, since
/// many libraries name the cause and say it as well.
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

/// What to do where a disk is full or may not be written to, whatever was written there.
fn advice(error: &anyhow::Error) -> &'static str {
    use io::ErrorKind::{FileTooLarge, QuotaExceeded, ReadOnlyFilesystem, StorageFull};
    let mut causes = error.chain().filter_map(|cause| cause.downcast_ref::<io::Error>());
    match causes.next().map(io::Error::kind) {
        Some(StorageFull | QuotaExceeded) => "; make room there, then give the command again",
        Some(FileTooLarge) => "; files of that size may not be written there (see `ulimit -f`)",
        Some(ReadOnlyFilesystem) => "; name a folder that may be written to",
        _ => "",
    }
}

#[cfg(test)]
mod tests {
    use super::{advice, sentence};

    #[test]
    fn errors_are_told_once() {
        let error = anyhow::anyhow!("not found").context("a/b: not found").context("reading it");
        assert_eq!(sentence(&error), "reading it: a/b: not found");
    }

    #[test]
    fn a_full_disk_is_told_from_others() {
        let full = std::io::Error::from(std::io::ErrorKind::StorageFull);
        assert!(advice(&anyhow::Error::new(full).context("a")).contains("make room"));
        assert_eq!(advice(&anyhow::anyhow!("b")), "");
    }
}
