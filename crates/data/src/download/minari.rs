//! Minari's hub: the files of a dataset, with the sizes and SHA-256 sums that are published there.
//!
//! The hub is `farama-minari` on the Hugging Face hub, where a dataset is a folder of a
//! repository: `hopper/medium-v0` of `farama-minari/mujoco`.

use std::path::Path;

use serde::Deserialize;

use crate::describe::minari_id::MinariId;
use crate::download::fetch::Patience;
use crate::download::http::{Answer, Client};
use crate::download::remote::host_of;
use crate::download::{DownloadError, DownloadOptions, Remote, RemoteFile};

/// Who publishes the datasets.
const PUBLISHER: &str = "datasets/farama-minari";

/// Hosts to which the Hugging Face hub redirects for files; a mirror redirects to them too.
const CONTENT_HOSTS: [&str; 2] = [".huggingface.co", ".hf.co"];

/// Maximum number of bytes of a list; three files have a thousand.
const MAX_LIST: u64 = 4 << 20;

/// The file that the reader needs. A dataset without it is in another format.
const RECORDING: &str = "data/main_data.hdf5";

/// A row of a folder's list.
#[derive(Deserialize)]
struct Entry {
    r#type: String,
    path: String,
    size: u64,
    lfs: Option<Lfs>,
}

/// The hub's facts about a large file.
#[derive(Deserialize)]
struct Lfs {
    /// Its SHA-256.
    oid: String,
    size: u64,
}

impl MinariId {
    /// The page about this dataset.
    pub fn page(&self, hub: &str) -> String {
        let (repository, folder) = self.repository();
        format!("{hub}/{PUBLISHER}/{repository}/tree/main/{folder}")
    }

    /// The files of this dataset on `hub`, `https://huggingface.co` or a mirror of it, below
    /// Minari's folder of datasets.
    ///
    /// # Errors
    /// When the hub does not answer, does not have the dataset, or has it in another format.
    pub fn remote(&self, hub: &str, options: &DownloadOptions) -> Result<Remote, DownloadError> {
        let list = self.list(hub);
        let hosts = hosts(hub)?;
        let text = list_text(&Client::new(&hosts, options)?, &list, options).map_err(|error| {
            match error {
                // A repository that is not there may not be seen either.
                DownloadError::Status { status: status @ (401 | 404), .. } => {
                    let hint = format!(
                        "{} does not have it ({status}); minari.farama.org lists what there is",
                        hosts[0]
                    );
                    DownloadError::NoAddress { dataset: format!("minari:{self}"), hint }
                }
                error => error,
            }
        })?;
        self.listed(hub, &text)
    }

    /// The address of the list of this dataset's files.
    fn list(&self, hub: &str) -> String {
        let ((repository, folder), hub) = (self.repository(), hub.trim_end_matches('/'));
        format!("{hub}/api/{PUBLISHER}/{repository}/tree/main/{folder}?recursive=true")
    }

    /// The files that `text` lists, which `hub` answered.
    ///
    /// # Errors
    /// If the answer is not a readable list of a dataset's files, or a name leads out of the
    /// folder.
    pub fn listed(&self, hub: &str, text: &str) -> Result<Remote, DownloadError> {
        let ((repository, folder), address) = (self.repository(), hub.trim_end_matches('/'));
        let odd = |reason: String| DownloadError::Address { url: self.list(hub), reason };
        let entries: Vec<Entry> = serde_json::from_str(text)
            .map_err(|why| odd(format!("its answer is not a list of files ({why})")))?;
        let data = format!("{folder}/data/");
        let of_data = |entry: &Entry| entry.r#type == "file" && entry.path.starts_with(&data);
        let mut files = Vec::new();
        for entry in entries.into_iter().filter(of_data) {
            let (bytes, sha256) = match entry.lfs {
                Some(lfs) => (lfs.size, Some(lfs.oid)),
                None => (entry.size, None),
            };
            let is_hash =
                |hash: &String| hash.len() == 64 && hash.bytes().all(|b| b.is_ascii_hexdigit());
            if !sha256.as_ref().is_none_or(is_hash) {
                return Err(odd(format!("the SHA-256 of {} is not valid", entry.path)));
            }
            let url = format!("{address}/{PUBLISHER}/{repository}/resolve/main/{}", entry.path);
            let path = Path::new(repository).join(&entry.path);
            files.push(RemoteFile { url, path, bytes: Some(bytes), sha256, optional: false });
        }
        let recording = Path::new(repository).join(folder).join(RECORDING);
        if !files.iter().any(|file| file.path == recording) {
            let hint = format!(
                "on the hub it has no {RECORDING}: it is Arrow or Parquet, which are not read"
            );
            return Err(DownloadError::NoAddress { dataset: format!("minari:{self}"), hint });
        }
        Remote::new(files, &hosts(hub)?)
    }
}

/// The hosts that serve the files of `hub`.
fn hosts(hub: &str) -> Result<Vec<String>, DownloadError> {
    let mut hosts = vec![host_of(hub)?];
    hosts.extend(CONTENT_HOSTS.map(str::to_owned));
    Ok(hosts)
}

/// The document at `url`.
fn list_text(
    client: &Client,
    url: &str,
    options: &DownloadOptions,
) -> Result<String, DownloadError> {
    let mut patience = Patience::for_plan(url, options);
    loop {
        let (reason, wait) = match client.document(url)? {
            Answer::Part(part) => {
                let mut body = part.body;
                match body.with_config().limit(MAX_LIST).read_to_string() {
                    Ok(text) => return Ok(text),
                    Err(why) => (why.to_string(), None),
                }
            }
            Answer::Later { reason, wait } => (reason, wait),
            Answer::BeyondEnd { .. } => ("the server answers 416".into(), None),
        };
        patience.wait(reason, wait, &|| true)?;
    }
}
