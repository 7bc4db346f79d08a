//! The download of one file, from the first request to its final name.

use std::io::Read;
use std::thread;
use std::time::Duration;

use ureq::Body;

use crate::disk::SPARE;
use crate::download::http::{Answer, Client};
use crate::download::partial::{Partial, Version};
use crate::download::stand_in::stand_in;
use crate::download::{DownloadError, DownloadOptions, RemoteFile};
use crate::read::foreign::HEAD;

/// Number of bytes per read.
const CHUNK: usize = 128 * 1024;

/// Interval of sleep between two checks whether to continue.
const NAP: Duration = Duration::from_millis(100);

/// Maximum number of requests for a file's size.
const PLAN_ATTEMPTS: u32 = 3;

/// Waits between requests: longer from time to time, with a limit on attempts.
pub(super) struct Patience<'a> {
    options: &'a DownloadOptions,
    url: &'a str,
    attempts: u32,
    failed: u32,
}

impl<'a> Patience<'a> {
    pub fn new(url: &'a str, options: &'a DownloadOptions) -> Self {
        Self { options, url, attempts: options.attempts, failed: 0 }
    }

    /// The same with few attempts, because the user is waiting for the plan.
    pub fn for_plan(url: &'a str, options: &'a DownloadOptions) -> Self {
        Self { attempts: options.attempts.min(PLAN_ATTEMPTS), ..Self::new(url, options) }
    }

    /// Resets the waits after bytes were received.
    fn rewarded(&mut self) {
        self.failed = 0;
    }

    /// Waits before the next request: at least as long as the server requires, up to the longest
    /// wait, and while `go_on` allows it.
    ///
    /// # Errors
    /// [`DownloadError::GivenUp`] if it was the last attempt.
    pub fn wait(
        &mut self,
        reason: String,
        asked: Option<Duration>,
        go_on: &dyn Fn() -> bool,
    ) -> Result<(), DownloadError> {
        self.failed += 1;
        if self.failed >= self.attempts {
            let (url, attempts) = (self.url.to_owned(), self.failed);
            return Err(DownloadError::GivenUp { url, attempts, reason });
        }
        let doubled = self.options.first_wait * 2u32.saturating_pow(self.failed - 1);
        let wait = doubled.max(asked.unwrap_or_default());
        let mut left = wait.min(self.options.longest_wait);
        while !left.is_zero() && go_on() {
            let nap = left.min(NAP);
            thread::sleep(nap);
            left -= nap;
        }
        Ok(())
    }
}

/// The outcome of one file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Fetched {
    /// It is complete.
    Whole,
    /// The server does not have it, and it is optional.
    NotThere,
    /// Another file's error ended the work.
    Stopped,
}

/// Reports the number of new bytes (below 0: dropped bytes) and returns whether to continue.
pub(super) type Tell<'a> = &'a dyn Fn(i64) -> bool;

/// Fetches `file` into `partial` and gives it its name when it is complete.
///
/// # Errors
/// If it is not available, or differs from its description. The fetched bytes stay for the next
/// time, unless there are too many or their hash is wrong.
pub(super) fn fetch(
    client: &Client,
    file: &RemoteFile,
    mut partial: Partial,
    options: &DownloadOptions,
    tell: Tell,
) -> Result<Fetched, DownloadError> {
    let mut patience = Patience::new(&file.url, options);
    let go_on = || tell(0);
    let mut size = file.bytes;
    // The CRC-32C of the file, once a part has arrived.
    let mut crc32c = None;
    // The largest size so far: only more bytes than that are progress.
    let mut furthest = partial.bytes;
    while size != Some(partial.bytes) {
        if !go_on() {
            return Ok(Fetched::Stopped);
        }
        // Without a version, only a hash can verify that the next part comes from the same file.
        // Bytes beyond the file's length do not belong to it.
        let version = partial.version();
        let unsure = version.is_none() && file.sha256.is_none();
        if unsure || size.is_some_and(|size| partial.bytes > size) {
            clear(&mut partial, tell)?;
        }
        let tag = version.as_ref().map(|version| version.tag.as_str());
        let answer = match client.get(&file.url, partial.bytes, tag) {
            Err(DownloadError::Status { status: 404, .. }) if file.optional => {
                partial.delete()?;
                return Ok(Fetched::NotThere);
            }
            answer => answer?,
        };
        let part = match answer {
            Answer::Part(part) => part,
            Answer::BeyondEnd { total } if total == Some(partial.bytes) && file.bytes.is_none() => {
                size = total;
                continue;
            }
            Answer::BeyondEnd { .. } => {
                clear(&mut partial, tell)?;
                let reason = "the server has fewer bytes than were fetched".into();
                patience.wait(reason, None, &go_on)?;
                continue;
            }
            Answer::Later { reason, wait } => {
                patience.wait(reason, wait, &go_on)?;
                continue;
            }
        };
        if let (Some(expected), Some(got)) = (file.bytes, part.total)
            && expected != got
        {
            let path = file.path.clone();
            let hint = "the server has another version, so correct the dataset's description";
            return Err(DownloadError::Size { path, got, expected, hint });
        }
        let answered = part.tag.clone().map(|tag| Version { tag, total: part.total });
        // A part without a version is accepted only if a hash will verify it.
        let same = match (&version, &answered) {
            (Some(version), Some(answered)) => version.agrees(answered),
            _ => file.sha256.is_some(),
        };
        if part.start != 0 && (part.start != partial.bytes || !same) {
            clear(&mut partial, tell)?;
            let reason =
                format!("a part from byte {} on, which does not fit the one before", part.start);
            patience.wait(reason, None, &go_on)?;
            continue;
        }
        if part.start == 0 {
            // The whole file: the server ignores ranges, or the file has changed.
            clear(&mut partial, tell)?;
            partial.set_version(answered.as_ref())?;
        }
        size = file.bytes.or(part.total);
        crc32c = Some(part.crc32c);
        if size.is_none() && !part.ends_visibly && file.sha256.is_none() {
            return Err(DownloadError::NoSize(file.url.clone()));
        }
        let announced = [size, part.end].into_iter().flatten().min();
        let limit = check_disk(&partial, size)?.min(announced.unwrap_or(u64::MAX));
        let end = receive(*part.body, &mut partial, limit, tell)?;
        if partial.bytes > furthest {
            furthest = partial.bytes;
            patience.rewarded();
        }
        let reason = match (end, announced) {
            (End::Stopped, _) => return Ok(Fetched::Stopped),
            (End::TooLong, Some(announced)) => {
                tell(-(partial.bytes as i64));
                partial.delete()?;
                return Err(DownloadError::TooLong { url: file.url.clone(), announced });
            }
            (End::TooLong, None) => return Err(disk_full(&partial, SPARE, partial.free()?)),
            // Without a size, the end of the answer is the end of the file.
            (End::Whole, _) if size.is_none_or(|size| size == partial.bytes) => break,
            (End::Whole, _) => "the answer ends before the file does".into(),
            (End::Broken(reason), _) => reason,
        };
        patience.wait(reason, None, &go_on)?;
    }
    let crc32c = match crc32c {
        Some(told) => told,
        None if file.sha256.is_some() => None,
        // An earlier run has fetched all of it, and may have been stopped before this.
        None => match checksum(client, file, &mut patience, &go_on)? {
            Some(told) => told,
            None => return Ok(Fetched::Stopped),
        },
    };
    finish(file, partial, crc32c, tell)
}

/// Renames a complete file to its final name, if it matches its description, or else the server's
/// checksum, and does not begin as another kind of file.
///
/// # Errors
/// If it does not match; then it is deleted.
fn finish(
    file: &RemoteFile,
    mut partial: Partial,
    crc32c: Option<u32>,
    tell: Tell,
) -> Result<Fetched, DownloadError> {
    let (hash, got, expected) = match (file.sha256.as_deref(), crc32c) {
        (Some(expected), _) => ("SHA-256", partial.sha256()?, expected.to_lowercase()),
        (None, Some(expected)) => {
            ("CRC-32C", format!("{:08x}", partial.crc32c()?), format!("{expected:08x}"))
        }
        (None, None) => ("", String::new(), String::new()),
    };
    if got != expected {
        tell(-(partial.bytes as i64));
        partial.delete()?;
        return Err(DownloadError::Hash { path: file.path.clone(), hash, got, expected });
    }
    // The server's checksum is the checksum of whatever the server sends.
    if file.sha256.is_none()
        && let Some(what) = stand_in(&file.path, &partial.head(HEAD)?)
    {
        tell(-(partial.bytes as i64));
        partial.delete()?;
        return Err(DownloadError::StandIn { url: file.url.clone(), what });
    }
    partial.finish()?;
    Ok(Fetched::Whole)
}

/// The checksum that the server sends without the file: empty if it sends none; `None` when the
/// download is to be stopped.
fn checksum(
    client: &Client,
    file: &RemoteFile,
    patience: &mut Patience,
    go_on: &dyn Fn() -> bool,
) -> Result<Option<Option<u32>>, DownloadError> {
    while go_on() {
        match client.head(&file.url) {
            Ok(Answer::Part(part)) => return Ok(Some(part.crc32c)),
            Ok(Answer::Later { reason, wait }) => patience.wait(reason, wait, go_on)?,
            // A server that sends the file but rejects HEAD requests.
            Ok(Answer::BeyondEnd { .. }) | Err(DownloadError::Status { .. }) => {
                return Ok(Some(None));
            }
            Err(error) => return Err(error),
        }
    }
    Ok(None)
}

fn clear(partial: &mut Partial, tell: Tell) -> Result<(), DownloadError> {
    tell(-(partial.bytes as i64));
    partial.clear()
}

/// Maximum number of bytes of the file that the disk can hold; the file must have `size` bytes, if
/// known.
fn check_disk(partial: &Partial, size: Option<u64>) -> Result<u64, DownloadError> {
    let free = partial.free()?;
    let most = partial.bytes.saturating_add(free.saturating_sub(SPARE));
    if let Some(size) = size
        && size > most
    {
        return Err(disk_full(partial, (size - partial.bytes).saturating_add(SPARE), free));
    }
    Ok(most)
}

fn disk_full(partial: &Partial, needed: u64, free: u64) -> DownloadError {
    DownloadError::DiskFull { path: partial.whole().to_path_buf(), needed, free }
}

/// The end of an answer's bytes.
enum End {
    Whole,
    /// There were more bytes than allowed.
    TooLong,
    Broken(String),
    Stopped,
}

/// Appends received bytes to `partial`, which may have `limit` bytes in all.
fn receive(
    body: Body,
    partial: &mut Partial,
    limit: u64,
    tell: Tell,
) -> Result<End, DownloadError> {
    let mut reader = body.into_reader();
    let mut chunk = vec![0; CHUNK];
    loop {
        match reader.read(&mut chunk) {
            Ok(0) => return Ok(End::Whole),
            Ok(n) if n as u64 > limit.saturating_sub(partial.bytes) => return Ok(End::TooLong),
            Ok(n) => {
                partial.push(&chunk[..n])?;
                if !tell(n as i64) {
                    return Ok(End::Stopped);
                }
            }
            Err(error) => return Ok(End::Broken(error.to_string())),
        }
    }
}
