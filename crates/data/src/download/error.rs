//! [`DownloadError`]: all errors of a download.

use std::io;
use std::path::{Path, PathBuf};

use crate::error::DataError;

/// An error in a download; each message is one sentence.
#[derive(Debug, thiserror::Error)]
pub enum DownloadError {
    /// A dataset that cannot be downloaded.
    #[error("cannot download the dataset `{dataset}`: {hint}")]
    NoAddress {
        /// Its name.
        dataset: String,
        /// A hint: how to get it.
        hint: String,
    },
    /// An item that the dataset does not have.
    #[error("the dataset `{dataset}` has no {what} `{name}`; it has {known}")]
    Unlisted {
        /// The dataset's name.
        dataset: String,
        /// The kind of thing requested: `game`, `run`, …
        what: &'static str,
        /// The requested name.
        name: String,
        /// The available names.
        known: String,
    },
    /// A name that leads out of the destination folder.
    #[error("refused the file name `{0}`: expected a plain name inside the folder")]
    Name(String),
    /// An address that cannot be used for a request.
    #[error("cannot send a request to {url}: {reason}")]
    Address {
        /// The address.
        url: String,
        /// Why not.
        reason: String,
    },
    /// A host that is not in the dataset's description.
    #[error("{url} leads to the host `{host}`; allowed hosts: {allowed}")]
    Host {
        /// The address, or the one that redirected to it.
        url: String,
        /// The host it leads to.
        host: String,
        /// The allowed hosts.
        allowed: String,
    },
    /// A file of trusted authorities that does not hold a certificate.
    #[error(
        "{variable} names {value}, which does not hold a certificate{reason}; correct it, or \
         unset it"
    )]
    Authorities {
        /// The environment's variable.
        variable: &'static str,
        /// The variable's value.
        value: String,
        /// The defect in parentheses, if known.
        reason: String,
    },
    /// A server whose certificate is not trusted.
    #[error("{url}: the server's certificate is not trusted ({why}){hint}")]
    Certificate {
        /// The address.
        url: String,
        /// The defect of the certificate.
        why: String,
        /// Advice to the user.
        hint: String,
    },
    /// A proxy that does not let us through.
    #[error(
        "cannot fetch {url}: {proxy} refuses to connect ({why}); correct its address, \
         http://user:password@host:port, or name the host in NO_PROXY"
    )]
    ProxyRefuses {
        /// The address.
        url: String,
        /// Host and port of the proxy.
        proxy: String,
        /// The proxy's answer.
        why: String,
    },
    /// A server that redirects too often.
    #[error("{url} redirects more than {limit} times; fetch it by other means")]
    Redirects {
        /// The first address.
        url: String,
        /// Maximum number of redirects.
        limit: usize,
    },
    /// A server that has no such file, or does not give it.
    #[error("cannot fetch {url}: the server answers {status}")]
    Status {
        /// The address.
        url: String,
        /// The HTTP status.
        status: u16,
    },
    /// An answer that is not the file's own bytes.
    #[error("{url} is sent in the encoding `{encoding}`, which was not requested")]
    Encoded {
        /// The address.
        url: String,
        /// Its name.
        encoding: String,
    },
    /// An answer that is not the file.
    #[error(
        "{url} answers with {what} in place of the file; nothing is kept: correct the address, or \
         fetch the file by other means"
    )]
    StandIn {
        /// The address.
        url: String,
        /// The content of the answer.
        what: String,
    },
    /// An answer whose end cannot be detected.
    #[error(
        "{0} is sent without a size, so a cut connection looks like the file's end; \
         fetch it by other means, or add its size to the dataset's description"
    )]
    NoSize(String),
    /// More bytes than the server or the description announced.
    #[error("{url} is refused: it is longer than the {announced} bytes that were announced")]
    TooLong {
        /// The address.
        url: String,
        /// How many.
        announced: u64,
    },
    /// Too many requests without new bytes.
    #[error(
        "gave up on {url} after {attempts} requests without new bytes ({reason}); run the command \
         again to resume"
    )]
    GivenUp {
        /// The address.
        url: String,
        /// How many.
        attempts: u32,
        /// The failure of the last request.
        reason: String,
    },
    /// A file of another size than it should have.
    #[error("{}: has {got} bytes, expected {expected}; {hint}", path.display())]
    Size {
        /// The file.
        path: PathBuf,
        /// Its size.
        got: u64,
        /// The size in the description or from the server.
        expected: u64,
        /// Advice to the user.
        hint: &'static str,
    },
    /// A file of another content than it should have.
    #[error(
        "{}: its {hash} is {got}, expected {expected}; the fetched bytes are deleted, so run the \
         command again",
        path.display()
    )]
    Hash {
        /// The intended path.
        path: PathBuf,
        /// `SHA-256`, of the description, or `CRC-32C`, of the server.
        hash: &'static str,
        /// Its hash.
        got: String,
        /// As it should be.
        expected: String,
    },
    /// Another process fetches the same file.
    #[error("{}: another process is fetching it; wait for it, or end it", .0.display())]
    Busy(PathBuf),
    /// The disk cannot hold it.
    #[error(
        "{}: the download needs {} MB more and the disk has {} MB free; free some space or take \
         fewer files",
        path.display(), needed.div_ceil(1_000_000), free / 1_000_000
    )]
    DiskFull {
        /// The destination.
        path: PathBuf,
        /// Bytes needed.
        needed: u64,
        /// Bytes free.
        free: u64,
    },
    /// The operating system refused, or the free disk space could not be read.
    #[error(transparent)]
    Data(#[from] DataError),
}

impl DownloadError {
    /// Wraps an I/O error with the path and the verb of what was attempted.
    pub(super) fn io(path: &Path, doing: &'static str) -> impl FnOnce(io::Error) -> Self {
        let refused = DataError::io(path, doing);
        move |source| Self::Data(refused(source))
    }
}
