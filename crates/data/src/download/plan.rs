//! The cost of a download, known before the first byte is fetched.

use std::fmt;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicI64, AtomicUsize, Ordering};

use rayon::prelude::*;
use rayon::{ThreadPool, ThreadPoolBuilder};

use crate::disk::{SPARE, free_near};
use crate::download::fetch::{Fetched, Patience, fetch};
use crate::download::http::{Answer, Client};
use crate::download::partial::{self, Partial};
use crate::download::{DownloadError, DownloadOptions, DownloadProgress, Remote, RemoteFile};

/// Bytes per second for the plan's time estimate: a line of 80 Mbit/s.
const RATE: u64 = 10_000_000;

/// The present part of a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Presence {
    /// All of it.
    Whole,
    /// The number of present bytes, after which it resumes.
    Partial(u64),
    /// Nothing.
    Absent,
    /// The server does not have it, and it is optional.
    NotThere,
}

/// A file of a plan.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PlannedFile {
    /// The file.
    pub remote: RemoteFile,
    /// Its size in the description, or else from the server.
    pub bytes: Option<u64>,
    /// The present part.
    pub presence: Presence,
}

impl PlannedFile {
    /// Number of present bytes.
    fn there(&self) -> u64 {
        match self.presence {
            Presence::Whole => self.bytes.unwrap_or(0),
            Presence::Partial(bytes) => bytes,
            Presence::Absent | Presence::NotThere => 0,
        }
    }

    fn missing(&self) -> bool {
        matches!(self.presence, Presence::Absent | Presence::Partial(_))
    }
}

/// Files to fetch, and the cost of fetching them.
#[derive(Clone, Debug)]
pub struct DownloadPlan {
    /// The destination.
    pub folder: PathBuf,
    /// The files.
    pub files: Vec<PlannedFile>,
    /// Bytes still to come, of the files whose size is known.
    pub bytes: u64,
    /// Files still to come whose size is not known.
    pub unknown: usize,
    /// Bytes free on the disk, if known.
    pub free: Option<u64>,
    hosts: Vec<String>,
    options: DownloadOptions,
}

impl DownloadPlan {
    /// Compares `remote` with the files in `folder`, and requests the sizes of missing files from
    /// the servers.
    ///
    /// # Errors
    /// If a server does not answer or does not have a file, or a present file differs in size from
    /// its description.
    pub fn new(
        remote: Remote,
        folder: &Path,
        options: DownloadOptions,
    ) -> Result<Self, DownloadError> {
        let client = Client::new(&remote.hosts, &options)?;
        let plan = |file: &RemoteFile| plan_file(&client, file, folder, &options);
        let plan_all = || remote.files.par_iter().map(plan).collect::<Result<Vec<_>, _>>();
        let files = threads(folder, remote.files.len(), &options)?.install(plan_all)?;
        let missing = || files.iter().filter(|file| file.missing());
        let to_come = |file: &PlannedFile| file.bytes.map(|all| all.saturating_sub(file.there()));
        Ok(Self {
            folder: folder.to_path_buf(),
            bytes: missing().filter_map(to_come).fold(0, u64::saturating_add),
            unknown: missing().filter(|file| file.bytes.is_none()).count(),
            free: free_near(&folder.join("file"))?.map(|(_, free)| free),
            files,
            hosts: remote.hosts,
            options,
        })
    }

    /// Number of bytes that are present.
    pub fn there(&self) -> u64 {
        self.files.iter().map(PlannedFile::there).fold(0, u64::saturating_add)
    }

    /// Whether nothing is missing.
    pub fn ready(&self) -> bool {
        !self.files.iter().any(PlannedFile::missing)
    }

    /// Refuses a download that the disk cannot hold, as far as sizes are known.
    ///
    /// # Errors
    /// [`DownloadError::DiskFull`].
    pub fn check_disk(&self) -> Result<(), DownloadError> {
        let needed = self.bytes.saturating_add(SPARE);
        match self.free {
            Some(free) if free < needed && !self.ready() => {
                Err(DownloadError::DiskFull { path: self.folder.clone(), needed, free })
            }
            _ => Ok(()),
        }
    }

    /// Fetches missing files, several at a time, after a check of the free disk space. `progress`
    /// is called from several threads.
    ///
    /// # Errors
    /// The first error of any file: then no other download is started, and the fetched bytes of the
    /// others stay for the next time.
    pub fn fetch(&self, progress: &(dyn Fn(DownloadProgress) + Sync)) -> Result<(), DownloadError> {
        self.check_disk()?;
        let client = Client::new(&self.hosts, &self.options)?;
        let bytes = AtomicI64::new(self.there() as i64);
        let whole = self.files.iter().filter(|file| file.presence == Presence::Whole).count();
        let whole = AtomicUsize::new(whole);
        let total = self.files.iter().filter_map(|file| file.bytes).fold(0, u64::saturating_add);
        let tell = |more: i64| {
            let bytes = bytes.fetch_add(more, Ordering::Relaxed) + more;
            let files = whole.load(Ordering::Relaxed);
            progress(DownloadProgress { bytes: bytes.max(0) as u64, total, files });
        };
        let missing: Vec<_> = self.files.iter().filter(|file| file.missing()).collect();
        // All partial files begin at once: while a file is missing, the set is visibly incomplete.
        for file in &missing {
            partial::begin(&self.folder.join(&file.remote.path))?;
        }
        let stop = AtomicBool::new(false);
        let fetch_one = |file: &&PlannedFile| -> Result<(), DownloadError> {
            let path = self.folder.join(&file.remote.path);
            let Some(partial) = Partial::open(&path)? else {
                whole.fetch_add(1, Ordering::Relaxed);
                return Ok(());
            };
            // Other processes may have fetched more of it since it was planned.
            tell(partial.bytes as i64 - file.there() as i64);
            let tell = |more: i64| {
                tell(more);
                !stop.load(Ordering::Relaxed)
            };
            if fetch(&client, &file.remote, partial, &self.options, &tell)? == Fetched::Whole {
                whole.fetch_add(1, Ordering::Relaxed);
                tell(0);
            }
            Ok(())
        };
        // In order: the small files of a log come first.
        let fetch_all = || {
            missing.iter().par_bridge().try_for_each(|file| {
                fetch_one(file).inspect_err(|_| stop.store(true, Ordering::Relaxed))
            })
        };
        threads(&self.folder, missing.len(), &self.options)?.install(fetch_all)
    }
}

/// Threads for `files` files, as many as `options` allow.
fn threads(
    folder: &Path,
    files: usize,
    options: &DownloadOptions,
) -> Result<ThreadPool, DownloadError> {
    let threads = ThreadPoolBuilder::new().num_threads(options.parallel.clamp(1, files.max(1)));
    threads.build().map_err(io::Error::other).map_err(DownloadError::io(folder, "fetch into"))
}

fn plan_file(
    client: &Client,
    remote: &RemoteFile,
    folder: &Path,
    options: &DownloadOptions,
) -> Result<PlannedFile, DownloadError> {
    let path = folder.join(&remote.path);
    let size = |path: &Path| fs::metadata(path).ok().map(|data| data.len());
    let planned = |bytes, presence| Ok(PlannedFile { remote: remote.clone(), bytes, presence });
    if let Some(got) = size(&path) {
        return match remote.bytes {
            Some(expected) if expected != got => Err(DownloadError::Size {
                path,
                got,
                expected,
                hint: "delete it, and it is fetched again",
            }),
            _ => planned(Some(got), Presence::Whole),
        };
    }
    let presence = match size(&partial::path_of(&path)) {
        Some(0) | None => Presence::Absent,
        Some(bytes) => Presence::Partial(bytes),
    };
    if remote.bytes.is_some() {
        return planned(remote.bytes, presence);
    }
    let mut patience = Patience::for_plan(&remote.url, options);
    loop {
        match client.head(&remote.url) {
            Ok(Answer::Part(part)) => return planned(part.total, presence),
            Ok(Answer::Later { reason, wait }) => patience.wait(reason, wait, &|| true)?,
            Ok(Answer::BeyondEnd { .. }) => return planned(None, presence),
            Err(DownloadError::Status { status: 404, .. }) if remote.optional => {
                return planned(None, Presence::NotThere);
            }
            // A server that does not answer HEAD requests may still send files.
            Err(DownloadError::Status { status: 405 | 501, .. }) => return planned(None, presence),
            Err(error) => return Err(error),
        }
    }
}

impl fmt::Display for DownloadPlan {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let missing = self.files.iter().filter(|file| file.missing()).count();
        if missing == 0 {
            return write!(f, "all {} files are in {}", self.files.len(), self.folder.display());
        }
        write!(f, "{missing} of {} files to fetch, ", self.files.len())?;
        if self.unknown < missing {
            let seconds = self.bytes.div_ceil(RATE);
            write!(f, "{} (about {} at {}/s)", size(self.bytes), duration(seconds), size(RATE))?;
        }
        match self.unknown {
            0 => {}
            all if all == missing => write!(f, "of unknown size")?,
            some => write!(f, " and {some} of unknown size")?,
        }
        write!(f, ", into {}", self.folder.display())?;
        match self.free {
            Some(free) => write!(f, " ({} free)", size(free)),
            None => Ok(()),
        }
    }
}

/// A number of bytes in readable form: `3 MB`, `12.4 GB`.
pub fn size(bytes: u64) -> String {
    match bytes {
        ..1_000 => format!("{bytes} bytes"),
        1_000..1_000_000 => format!("{} kB", bytes.div_ceil(1_000)),
        1_000_000..1_000_000_000 => format!("{} MB", bytes.div_ceil(1_000_000)),
        _ => format!("{:.1} GB", bytes as f64 / 1e9),
    }
}

/// A number of seconds in readable form: `40 s`, `21 min`, `3.5 h`.
fn duration(seconds: u64) -> String {
    match seconds {
        ..100 => format!("{seconds} s"),
        100..7200 => format!("{} min", seconds.div_ceil(60)),
        _ => format!("{:.1} h", seconds as f64 / 3600.0),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_as_people_say_them() {
        let sizes = [0, 999, 1_001, 1_000_000, 2_000_001, 999_000_001, 12_440_000_000];
        let said = ["0 bytes", "999 bytes", "2 kB", "1 MB", "3 MB", "1000 MB", "12.4 GB"];
        assert_eq!(sizes.map(size), said);
        assert_eq!(
            [0, 99, 100, 7199, 12_600].map(duration),
            ["0 s", "99 s", "2 min", "120 min", "3.5 h"]
        );
    }
}
