//! Minari's hub on this machine: the part of the Hugging Face hub's interface that a download of
//! a dataset uses. Its own is at `huggingface.co/api/datasets/…/tree/…`.

#![allow(
    clippy::unwrap_used,
    clippy::missing_panics_doc,
    reason = "the helpers of tests are tests too"
)]

use std::{fs, path::PathBuf};

use serde_json::{Value, json};
use sha2::{Digest, Sha256};

use crate::web_server::{WebServer, answer_empty, answer_head, answer_part};

/// Serves the datasets below `folder`, which lie there as Minari keeps them. The address of a
/// file sends on to another; there, of each file the first answer breaks off after
/// `first_at_most` bytes. HDF5 files have a SHA-256, as files in large-file storage have.
/// `changed` may change the list of a folder before it is sent.
pub fn serve(
    folder: PathBuf,
    first_at_most: usize,
    changed: impl Fn(&mut Value) + Send + Sync + 'static,
) -> WebServer {
    WebServer::start(move |request, stream| {
        let path = request.path.split('?').next().unwrap_or_default();
        let list = path.strip_prefix("/api/datasets/farama-minari/");
        let list = list.and_then(|path| path.split_once("/tree/main/"));
        let file = path.strip_prefix("/datasets/farama-minari/");
        let file = file.and_then(|path| path.split_once("/resolve/main/"));
        if let Some((repository, dataset)) = list {
            let Some(mut entries) = entries(&folder.join(repository), dataset) else {
                return answer_empty(stream, "404 Not Found");
            };
            changed(&mut entries);
            let text = entries.to_string();
            answer_head(stream, "200 OK", &[format!("Content-Length: {}", text.len())]);
            let _ = std::io::Write::write_all(stream, text.as_bytes());
        } else if let Some((repository, file)) = file {
            let to = format!("Location: /content/{repository}/{file}");
            answer_head(stream, "302 Found", &[to, "Content-Length: 0".into()]);
        } else {
            let at_most = if request.before == 0 { first_at_most } else { usize::MAX };
            let file = path.strip_prefix("/content/").map(|file| fs::read(folder.join(file)));
            match file {
                Some(Ok(bytes)) => answer_part(request, stream, &bytes, "\"a\"", at_most),
                _ => answer_empty(stream, "404 Not Found"),
            }
        }
    })
}

/// The list of `dataset` in the repository whose files lie in `folder`.
fn entries(folder: &std::path::Path, dataset: &str) -> Option<Value> {
    let data = format!("{dataset}/data");
    let mut list = vec![json!({"type": "directory", "oid": "0", "size": 0, "path": data})];
    for name in crate::desk::names(&folder.join(&data)) {
        let path = format!("{data}/{name}");
        let bytes = fs::read(folder.join(&path)).ok()?;
        let mut entry = json!({"type": "file", "oid": "1", "size": bytes.len(), "path": path});
        if name.ends_with(".hdf5") {
            let hash: String = Sha256::digest(&bytes).iter().map(|b| format!("{b:02x}")).collect();
            entry["lfs"] = json!({"oid": hash, "size": bytes.len(), "pointerSize": 134});
        }
        list.push(entry);
    }
    (list.len() > 1).then_some(Value::Array(list))
}
