//! Fetching files from a server that behaves as servers do, and worse.

mod answers;
mod descriptions;
mod minari;
mod plan;
mod resuming;
mod sizes;

use std::fs;
use std::path::Path;
use std::time::Duration;

use overtone_data::download::{DownloadError, DownloadOptions, DownloadPlan, Remote, RemoteFile};
use overtone_testkit::web_server::{WebServer, answer_part};
use sha2::{Digest, Sha256};
use tempfile::TempDir;

/// A file of the server, of unknown size and hash.
fn remote_file(server: &WebServer, name: &str) -> RemoteFile {
    RemoteFile {
        url: format!("http://{}/{name}", server.address),
        path: name.into(),
        bytes: None,
        sha256: None,
        optional: false,
    }
}

fn remote(server: &WebServer, files: Vec<RemoteFile>) -> Remote {
    Remote::new(files, &[server.address.to_string()]).unwrap()
}

/// The content of the test files: 300,000 bytes, which differ from place to place.
fn content() -> Vec<u8> {
    (0..300_000u32).map(|i| (i.wrapping_mul(2_654_435_761) >> 24) as u8).collect()
}

fn sha256(bytes: &[u8]) -> String {
    Sha256::digest(bytes).iter().map(|byte| format!("{byte:02x}")).collect()
}

/// A server with nothing wrong.
fn good() -> WebServer {
    WebServer::start(|request, stream| answer_part(request, stream, &content(), TAG, ALL))
}

const TAG: &str = "\"one\"";
const ALL: usize = usize::MAX;

fn options() -> DownloadOptions {
    DownloadOptions {
        parallel: 2,
        attempts: 3,
        first_wait: Duration::from_millis(2),
        longest_wait: Duration::from_millis(10),
        silence: Duration::from_millis(700),
        proxy: false,
    }
}

fn fetch(remote: Remote, folder: &Path) -> Result<(), DownloadError> {
    DownloadPlan::new(remote, folder, options())?.fetch(&|_| {})
}

/// Fetches a file from a server, and checks that it is whole and alone.
#[track_caller]
fn check_whole(server: &WebServer, dir: &TempDir) {
    fetch(remote(server, vec![remote_file(server, "a.bin")]), dir.path()).unwrap();
    assert_eq!(names(dir), ["a.bin"]);
    assert!(fs::read(dir.path().join("a.bin")).unwrap() == content(), "other bytes");
}

fn names(dir: &TempDir) -> Vec<String> {
    let entries = fs::read_dir(dir.path()).unwrap().map(|entry| entry.unwrap().file_name());
    let mut names: Vec<_> = entries.map(|name| name.into_string().unwrap()).collect();
    names.sort();
    names
}

/// Checks the error of fetching a file, one sentence.
#[track_caller]
fn check_error(server: &WebServer, file: RemoteFile, expected: &str) {
    let dir = tempfile::tempdir().unwrap();
    let error = fetch(remote(server, vec![file]), dir.path()).unwrap_err().to_string();
    assert!(error.contains(expected), "{error}");
    assert!(!error.contains('\n'), "{error}");
    assert!(!dir.path().join("a.bin").exists());
}
