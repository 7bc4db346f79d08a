//! A plan of several files, its download, and a disk that is too small.

use std::fs;
use std::io::Write;
use std::sync::Mutex;
use std::thread;
use std::time::Duration;

use overtone_data::download::{
    DownloadError, DownloadOptions, DownloadPlan, DownloadProgress, RemoteFile,
};
use overtone_testkit::web_server::{WebServer, answer_empty, answer_head, answer_part};

use super::{ALL, TAG, content, fetch, good, names, options, remote, remote_file, sha256};

#[test]
fn a_plan_and_its_files() {
    let server = good();
    let dir = tempfile::tempdir().unwrap();
    let files = || {
        let known = RemoteFile { bytes: Some(300_000), ..remote_file(&server, "deep/down/b.bin") };
        let hash = Some(sha256(&content()).to_uppercase());
        vec![
            remote_file(&server, "a.bin"),
            known,
            RemoteFile { sha256: hash, ..remote_file(&server, "c.bin") },
        ]
    };
    let plan = DownloadPlan::new(remote(&server, files()), dir.path(), options()).unwrap();
    assert_eq!((plan.bytes, plan.unknown, plan.ready()), (900_000, 0, false));
    assert!(
        plan.to_string().starts_with("3 of 3 files to fetch, 900 kB (about 1 s at 10 MB/s), into "),
        "{plan}"
    );
    assert_eq!(server.starts("HEAD").len(), 2); // One size is known.
    let seen = Mutex::new(Vec::new());
    plan.fetch(&|progress| seen.lock().unwrap().push(progress)).unwrap();
    let seen = seen.into_inner().unwrap();
    let last = DownloadProgress { bytes: 900_000, total: 900_000, files: 3 };
    assert!(seen.contains(&last) && seen.iter().all(|p| p.bytes <= p.total), "{seen:?}");
    for name in ["a.bin", "deep/down/b.bin", "c.bin"] {
        assert!(fs::read(dir.path().join(name)).unwrap() == content(), "{name}");
    }
    // No request is repeated.
    let before = server.requests.lock().unwrap().len();
    let plan = DownloadPlan::new(remote(&server, files()), dir.path(), options()).unwrap();
    assert!(plan.ready() && plan.to_string().starts_with("all 3 files are in "), "{plan}");
    plan.fetch(&|_| {}).unwrap();
    assert_eq!(server.requests.lock().unwrap().len(), before);
    // A file that is there and has another size is not this file.
    fs::write(dir.path().join("deep/down/b.bin"), b"short").unwrap();
    let error = DownloadPlan::new(remote(&server, files()), dir.path(), options()).unwrap_err();
    assert!(error.to_string().contains("has 5 bytes, expected 300000; delete it"), "{error}");
}

#[test]
fn a_disk_that_is_too_small() {
    let server = good();
    let dir = tempfile::tempdir().unwrap();
    let remote = remote(&server, vec![remote_file(&server, "a.bin")]);
    let mut plan = DownloadPlan::new(remote, dir.path(), options()).unwrap();
    plan.check_disk().unwrap();
    plan.free = Some(1_000_000);
    let error = plan.fetch(&|_| {}).unwrap_err();
    assert!(matches!(error, DownloadError::DiskFull { free: 1_000_000, .. }), "{error}");
    assert_eq!(server.starts("GET").len(), 0);
}

#[test]
fn sizes_that_no_disk_holds() {
    let huge = |says_at_head: bool| {
        WebServer::start(move |request, stream| {
            if request.method == "HEAD" && !says_at_head {
                return answer_empty(stream, "405 Method Not Allowed");
            }
            answer_head(stream, "200 OK", &[format!("Content-Length: {}", u64::MAX)]);
            let _ = stream.write_all(&content());
        })
    };
    for (says_at_head, gets) in [(true, 0), (false, 1)] {
        let (server, dir) = (huge(says_at_head), tempfile::tempdir().unwrap());
        let files = vec![remote_file(&server, "a.bin"), remote_file(&server, "b.bin")];
        let plan = DownloadPlan::new(
            remote(&server, files),
            dir.path(),
            DownloadOptions { parallel: 1, ..options() },
        );
        let error = plan.unwrap().fetch(&|_| {}).unwrap_err();
        assert!(matches!(error, DownloadError::DiskFull { .. }), "{error}");
        assert_eq!(server.starts("GET").len(), gets);
        for name in names(&dir) {
            assert_eq!(fs::metadata(dir.path().join(&name)).unwrap().len(), 0, "{name}");
        }
    }
}

#[test]
fn an_error_stops_the_other_files() {
    let server = WebServer::start(|request, stream| match request.path.as_str() {
        "/a.bin" => {
            let at_most = if request.method == "GET" { 1000 } else { ALL };
            answer_part(request, stream, &content(), TAG, at_most);
            thread::sleep(Duration::from_millis(300));
        }
        _ if request.method == "HEAD" => answer_part(request, stream, &content(), TAG, ALL),
        _ => answer_empty(stream, "410 Gone"),
    });
    let dir = tempfile::tempdir().unwrap();
    let files = vec![
        remote_file(&server, "a.bin"),
        remote_file(&server, "b.bin"),
        remote_file(&server, "c.bin"),
    ];
    let error = fetch(remote(&server, files), dir.path()).unwrap_err();
    assert!(matches!(error, DownloadError::Status { status: 410, .. }), "{error}");
    assert!(server.starts("GET").len() <= 3);
    // As long as one of a set is not whole, it can be seen.
    assert_eq!(
        names(&dir).into_iter().filter(|name| name.ends_with(".partial")).collect::<Vec<_>>(),
        ["a.bin.partial", "b.bin.partial", "c.bin.partial"]
    );
}
