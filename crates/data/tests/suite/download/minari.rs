//! Datasets of Minari's hub, from a server on this machine that answers as the hub does.

use std::fs;
use std::path::Path;

use overtone_data::MinariId;
use overtone_data::download::{DownloadError, DownloadPlan};
use overtone_testkit::minari_hub::serve;
use overtone_testkit::web_server::WebServer;
use serde_json::{Value, json};
use tempfile::TempDir;

use super::{content, options, sha256};

const ID: &str = "minari:mujoco/hopper/tiny-v0";
const FILES: [&str; 2] = ["metadata.json", "main_data.hdf5"];

/// A hub that has one dataset, whose recording is [`content`].
fn hub(changed: impl Fn(&mut Value) + Send + Sync + 'static) -> (TempDir, WebServer) {
    let dir = tempfile::tempdir().unwrap();
    let data = dir.path().join("mujoco/hopper/tiny-v0/data");
    fs::create_dir_all(&data).unwrap();
    fs::write(data.join(FILES[0]), "{}").unwrap();
    fs::write(data.join(FILES[1]), content()).unwrap();
    let server = serve(dir.path().to_path_buf(), 1000, changed);
    (dir, server)
}

fn fetch(id: &str, server: &WebServer, folder: &Path) -> Result<(), DownloadError> {
    let id = MinariId::of(id).unwrap().unwrap();
    let remote = id.remote(&format!("http://{}/", server.address), &options())?;
    DownloadPlan::new(remote, folder, options())?.fetch(&|_| {})
}

#[track_caller]
fn refused(changed: impl Fn(&mut Value) + Send + Sync + 'static, expected: &str) {
    let (_hub, server) = hub(changed);
    let dir = tempfile::tempdir().unwrap();
    let error = fetch(ID, &server, dir.path()).unwrap_err().to_string();
    assert!(error.contains(expected) && !error.contains('\n'), "{error}");
    assert!(!dir.path().join("mujoco/hopper/tiny-v0/data").join(FILES[1]).exists());
}

#[test]
fn a_dataset_is_listed_fetched_and_checked() {
    let (_hub, server) = hub(|_| {});
    let dir = tempfile::tempdir().unwrap();
    let id = MinariId::of(ID).unwrap().unwrap();
    let address = format!("http://{}", server.address);
    let remote = id.remote(&address, &options()).unwrap();
    let file = remote.files.iter().find(|file| file.path.ends_with(FILES[1])).unwrap();
    assert_eq!(file.path, Path::new("mujoco/hopper/tiny-v0/data/main_data.hdf5"));
    assert_eq!(file.bytes, Some(300_000));
    assert_eq!(file.sha256.as_deref(), Some(&*sha256(&content())));
    let place = "datasets/farama-minari/mujoco/resolve/main/hopper/tiny-v0/data/main_data.hdf5";
    assert_eq!(file.url, format!("{address}/{place}"));
    assert_eq!(remote.hosts, [&*server.address.to_string(), ".huggingface.co", ".hf.co"]);
    fetch(ID, &server, dir.path()).unwrap();
    let data = dir.path().join("mujoco/hopper/tiny-v0/data");
    assert!(fs::read(data.join(FILES[1])).unwrap() == content());
    assert_eq!(fs::read(data.join(FILES[0])).unwrap(), b"{}");
    // The first answer broke off, and the rest was requested.
    let starts = server.starts("GET");
    assert_eq!(starts.iter().filter(|&&start| start == 1000).count(), 2, "{starts:?}");
    assert_eq!(fs::read_dir(data).unwrap().count(), 2);
}

#[test]
fn answers_of_a_hub_that_are_refused() {
    let other = |text: &'static str| move |list: &mut Value| list[1]["lfs"]["oid"] = json!(text);
    let hash = |list: &mut Value| list[1]["lfs"]["oid"] = json!("ab".repeat(32));
    refused(hash, "its SHA-256 is ");
    refused(other("1234"), "the SHA-256 of hopper/tiny-v0/data/main_data.hdf5 is not valid");
    refused(|list| list[1]["lfs"]["size"] = json!(9), "has 300000 bytes, expected 9");
    refused(|list| list[1]["size"] = json!(-9), "is not a list of files");
    refused(|list| *list = json!({"error": "no"}), "is not a list of files");
    refused(|list| *list = json!([]), "Arrow or Parquet");
    let above = |list: &mut Value| list[2]["path"] = json!("hopper/tiny-v0/data/../../x.json");
    refused(above, "a plain name inside the folder");
    let elsewhere =
        |list: &mut Value| list[1]["path"] = json!("hopper/medium-v0/data/main_data.hdf5");
    refused(elsewhere, "has no data/main_data.hdf5");
}

#[test]
fn a_dataset_that_is_not_there() {
    let (_hub, server) = hub(|_| {});
    let dir = tempfile::tempdir().unwrap();
    let error = fetch("minari:mujoco/hoper/tiny-v0", &server, dir.path()).unwrap_err().to_string();
    for part in ["`minari:mujoco/hoper/tiny-v0`", "does not have it (404)", "minari.farama.org"] {
        assert!(error.contains(part), "{error}");
    }
    let id = MinariId::of(ID).unwrap().unwrap();
    let error = id.remote("huggingface.co", &options()).unwrap_err().to_string();
    assert!(error.contains("http://"), "{error}");
    // A server of something else.
    let server = WebServer::start(|_, stream| {
        overtone_testkit::web_server::answer_empty(stream, "500 Internal Server Error");
    });
    let error = fetch(ID, &server, dir.path()).unwrap_err().to_string();
    assert!(error.contains("after 3 requests") && error.contains("500"), "{error}");
}
