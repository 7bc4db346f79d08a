//! Published datasets, fetched into `datasets/`.
//!
//! ```text
//! DatasetCard ─► Remote ─► DownloadPlan::new ─► check_disk ─► fetch ─► files, each whole
//! ```
//!
//! A file is written to `<name>.partial` and gets its name when it is complete, so an existing file
//! is always complete. After an interruption, by the network or by the end of the program, a
//! download resumes. Next to the partial file, `<name>.partial.tag` names its version of the remote
//! file; a version that has changed is fetched from its beginning.

mod error;
mod fetch;
mod http;
mod minari;
mod partial;
mod plan;
mod remote;
mod stand_in;
mod trust;

use std::time::Duration;

pub use error::DownloadError;
pub(crate) use partial::unfinished;
pub use plan::{DownloadPlan, PlannedFile, Presence, size};
pub use remote::{Remote, RemoteFile, shards};

/// How files are fetched.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DownloadOptions {
    /// Files at a time.
    pub parallel: usize,
    /// Requests for one file that bring nothing, one after the other, before it is given up.
    pub attempts: u32,
    /// How long it is waited after the first of them; twice as long after each other.
    pub first_wait: Duration,
    /// How long it is waited at most.
    pub longest_wait: Duration,
    /// How long a server may say nothing.
    pub silence: Duration,
    /// Whether the proxy that the environment names is used (the first of `ALL_PROXY`,
    /// `HTTPS_PROXY` and `HTTP_PROXY`; not for the hosts in `NO_PROXY`).
    pub proxy: bool,
}

impl Default for DownloadOptions {
    /// Four files at a time, which is kind to a public server; seven requests in about a
    /// minute; half a minute of silence.
    fn default() -> Self {
        Self {
            parallel: 4,
            attempts: 7,
            first_wait: Duration::from_secs(1),
            longest_wait: Duration::from_secs(60),
            silence: Duration::from_secs(30),
            proxy: true,
        }
    }
}

/// How far a download is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DownloadProgress {
    /// Bytes that are present, bytes of earlier calls included.
    pub bytes: u64,
    /// Bytes there will be, as far as they are known.
    pub total: u64,
    /// Files that are whole.
    pub files: usize,
}
