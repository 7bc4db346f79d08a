//! The files of a download: addresses, hosts and names.

use std::path::{Path, PathBuf};

use ureq::http::Uri;

use crate::describe::card::{DatasetCard, Download, Named};
use crate::download::DownloadError;
use crate::plain_path::is_plain;
use crate::read::run_folder::{Column, RunFolder};
use crate::store::selection::Selection;

/// A file to fetch.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RemoteFile {
    /// Its address.
    pub url: String,
    /// Its path below the destination folder.
    pub path: PathBuf,
    /// Its size, if public.
    pub bytes: Option<u64>,
    /// Its SHA-256 in hexadecimal, if public.
    pub sha256: Option<String>,
    /// Whether the file may be missing on the server.
    pub optional: bool,
}

/// Files to fetch, and their allowed hosts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Remote {
    /// The files.
    pub files: Vec<RemoteFile>,
    /// Hosts, `host` or `host:port`; `.host` for every host below it.
    pub hosts: Vec<String>,
}

impl DatasetCard {
    /// The same dataset from a mirror: `base` is the address of the mirror's folder. It replaces
    /// the public address up to its first name in braces.
    ///
    /// # Errors
    /// If the dataset has no address, or `base` is not a valid one.
    pub fn from_mirror(mut self, base: &str) -> Result<Self, DownloadError> {
        self.download = Some(mirrored(self.address()?, base)?);
        Ok(self)
    }

    /// The files of one recording, below `datasets/`: its one file, or, for a log, the files with
    /// the numbers `numbers`.
    ///
    /// # Errors
    /// If the dataset has no address, no such recording or no such file number.
    pub fn remote(
        &self,
        task: &str,
        dataset: &str,
        numbers: &[u32],
    ) -> Result<Remote, DownloadError> {
        let download = self.address()?;
        let any_task = self.tasks.is_empty() && task.bytes().all(|b| b.is_ascii_alphanumeric());
        if !any_task && !self.tasks.iter().any(|known| known == task) {
            let known = match self.tasks.as_slice() {
                [] => "names of letters and digits".into(),
                tasks => tasks.join(", "),
            };
            return Err(self.unlisted("task", task, known));
        }
        if !self.datasets.iter().any(|known| known == dataset) {
            return Err(self.unlisted("dataset", dataset, self.datasets.join(", ")));
        }
        let place = self.place(task, dataset);
        let names = [("{task}", task), ("{dataset}", dataset)];
        if !download.address.contains("{file}") {
            return Remote::new(vec![of(download, &names, place)], &download.hosts);
        }
        let counts = self.counts_of(Some(&Named { task: task.into(), dataset: dataset.into() }));
        let n_files = counts.and_then(|counts| counts.files).unwrap_or(u64::MAX);
        if let Some(number) = numbers.iter().find(|&&number| u64::from(number) >= n_files) {
            let known = match n_files.checked_sub(1) {
                Some(last) => format!("0 to {last}"),
                None => "no file".into(),
            };
            return Err(self.unlisted("file", &number.to_string(), known));
        }
        let folder = place.join("replay_logs");
        let named = RunFolder {
            folder: folder.clone(),
            game: task.into(),
            run: dataset.into(),
            numbers: numbers.to_vec(),
        };
        let mut files = Vec::new();
        for &number in numbers {
            // The reader needs all but the last, so the small ones come first.
            let mut paths = vec![(named.add_count(number), false)];
            let columns = [Column::Action, Column::Reward, Column::Terminal, Column::Observation];
            paths.extend(columns.map(|column| (named.column(column, number), false)));
            paths.push((named.invalid_range(number), true));
            for (path, optional) in paths {
                let file = path.strip_prefix(&folder).unwrap_or(&path).to_string_lossy();
                let names = [&names[..], &[("{file}", &*file)]].concat();
                files.push(RemoteFile { optional, ..of(download, &names, path.clone()) });
            }
        }
        Remote::new(files, &download.hosts)
    }

    fn address(&self) -> Result<&Download, DownloadError> {
        self.download.as_ref().ok_or_else(|| DownloadError::NoAddress {
            dataset: self.name.clone(),
            hint: self.source.clone(),
        })
    }

    fn unlisted(&self, what: &'static str, name: &str, known: String) -> DownloadError {
        DownloadError::Unlisted { dataset: self.name.clone(), what, name: name.into(), known }
    }
}

impl Remote {
    /// `files`, from `hosts` only.
    ///
    /// # Errors
    /// [`DownloadError::Name`] if a file would not lie below the destination folder.
    pub fn new(files: Vec<RemoteFile>, hosts: &[String]) -> Result<Self, DownloadError> {
        for file in &files {
            check_name(&file.path)?;
        }
        Ok(Self { files, hosts: hosts.to_vec() })
    }
}

/// Numbers of the files that `selection` needs of a run of `n_files`. The released rule needs its
/// `num_buffers` last files. The uniform rule needs all, or with `at_most`, that many, spread
/// evenly from the first to the last (one: the last).
pub fn shards(selection: &Selection, n_files: u32, at_most: Option<u32>) -> Vec<u32> {
    match *selection {
        Selection::Released { num_buffers, .. } => {
            let n = u32::try_from(num_buffers).unwrap_or(u32::MAX);
            let n = n.min(at_most.unwrap_or(n));
            (n_files.saturating_sub(n)..n_files).collect()
        }
        Selection::Uniform { .. } => {
            let n = at_most.unwrap_or(n_files).min(n_files);
            let last = n_files.saturating_sub(1);
            match n {
                0 => Vec::new(),
                1 => vec![last],
                _ => {
                    let place = |i| u64::from(i) * u64::from(last) / u64::from(n - 1);
                    (0..n).filter_map(|i| u32::try_from(place(i)).ok()).collect()
                }
            }
        }
    }
}

/// `download` with `base` in place of everything before the first name in braces.
fn mirrored(download: &Download, base: &str) -> Result<Download, DownloadError> {
    let host = host_of(base)?;
    let files = download.address.find('{').map_or("", |at| &download.address[at..]);
    let address = format!("{}/{files}", base.trim_end_matches('/'));
    Ok(Download { address, hosts: vec![host], files: download.files.clone() })
}

/// The host of a folder's address, with its port, if any.
pub(super) fn host_of(base: &str) -> Result<String, DownloadError> {
    let refuse = |reason: &str| DownloadError::Address { url: base.into(), reason: reason.into() };
    let uri: Uri = base.parse().map_err(|_| refuse("it is malformed"))?;
    let host = match (uri.scheme_str(), uri.authority()) {
        (Some("http" | "https"), Some(authority)) => authority.as_str().to_lowercase(),
        _ => return Err(refuse("it does not begin with http:// or https:// and a host")),
    };
    if host.contains('@') || base.contains(['{', '}', '?', '#']) {
        return Err(refuse("a folder's address has no user, no braces, no `?` and no `#`"));
    }
    Ok(host)
}

/// The file at `path`, whose address has the values of `names` in place of the names.
fn of(download: &Download, names: &[(&str, &str)], path: PathBuf) -> RemoteFile {
    let mut url = download.address.clone();
    for (name, value) in names {
        url = url.replace(name, &escaped(value));
    }
    let published = download.files.get(&*path.to_string_lossy()).cloned().unwrap_or_default();
    RemoteFile { url, path, bytes: published.bytes, sha256: published.sha256, optional: false }
}

/// `name` with special characters of addresses escaped, `%24` and so on.
fn escaped(name: &str) -> String {
    let plain = |byte: &u8| byte.is_ascii_alphanumeric() || b"-._~".contains(byte);
    let escape = |byte: u8| {
        if plain(&byte) { char::from(byte).to_string() } else { format!("%{byte:02X}") }
    };
    name.bytes().map(escape).collect()
}

/// Refuses a path that is not one of plain names below a folder, or that a download itself uses.
fn check_name(path: &Path) -> Result<(), DownloadError> {
    let text = path.to_str().unwrap_or_default();
    let taken = text.ends_with(".partial") || text.ends_with(".tag");
    if taken || !is_plain(path) {
        return Err(DownloadError::Name(path.to_string_lossy().into_owned()));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_stay_below_the_folder() {
        let name = |path: &str| check_name(Path::new(path)).is_ok();
        assert!(name("published/Pong/1/$store$_action_ckpt.0.gz"));
        for bad in ["", "../a", "a.partial", "a.partial.tag"] {
            assert!(!name(bad), "{bad}");
        }
    }

    #[test]
    fn files_a_selection_needs() {
        let released = |num_buffers| Selection::Released {
            num_steps: 1000,
            num_buffers,
            trajectories_per_buffer: 10,
        };
        let uniform = Selection::uniform(1000);
        assert_eq!(shards(&released(3), 50, None), [47, 48, 49]);
        assert_eq!(shards(&released(3), 50, Some(2)), [48, 49]);
        assert_eq!(shards(&released(50), 50, None).len(), 50);
        assert_eq!(shards(&released(60), 5, None), [0, 1, 2, 3, 4]);
        assert_eq!(shards(&uniform, 4, None), [0, 1, 2, 3]);
        assert_eq!(shards(&uniform, 50, Some(3)), [0, 24, 49]);
        assert_eq!(shards(&uniform, 50, Some(1)), [49]);
        assert_eq!(shards(&uniform, 3, Some(9)), [0, 1, 2]);
        assert_eq!(shards(&uniform, 50, Some(0)), [0; 0]);
    }
}
