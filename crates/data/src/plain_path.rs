//! [`is_plain`]: whether a path that a file names stays below the folder it is joined to.

use std::path::{Component, Path, PathBuf};

/// Whether `path` consists of plain names alone: relative, without `..`, `.` or `//`, and
/// without characters that stand for something else on some system.
pub(crate) fn is_plain(path: &Path) -> bool {
    let text = path.to_str().unwrap_or_default();
    let plain = |part: Component| matches!(part, Component::Normal(_));
    let odd = |c: char| c == '\\' || c == ':' || c.is_control();
    // `components` passes over `.` and `//`, which are not plain names either.
    let same = path.components().collect::<PathBuf>().as_os_str() == path.as_os_str();
    !text.is_empty() && !text.contains(odd) && same && path.components().all(plain)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn plain_paths_stay_below_their_folder() {
        let plain = |path: &str| is_plain(Path::new(path));
        for good in ["a", "a/b.hdf5", "published/Pong/1/$store$_action_ckpt.0.gz", "..a", "a..b"] {
            assert!(plain(good), "{good}");
        }
        for bad in [
            "",
            "/etc/passwd",
            "..",
            "../a",
            "a/../b",
            "a/..",
            "./a",
            "a//b",
            "a/",
            "a\\..\\b",
            "C:a",
            "a\0b",
            "a\nb",
        ] {
            assert!(!plain(bad), "{bad}");
        }
    }
}
