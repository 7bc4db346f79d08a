//! Downloads that were interrupted and resume if that is safe.

use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

use overtone_core::Task;
use overtone_data::download::{DownloadError, DownloadPlan, Presence, RemoteFile};
use overtone_data::error::Fault;
use overtone_data::{DataError, locate};
use overtone_testkit::web_server::{Request, WebServer, answer_head, answer_part};

use crate::robots::write_d4rl;
use crate::tasks;

use super::{
    ALL, TAG, check_error, check_whole, content, fetch, good, options, remote, remote_file, sha256,
};

#[test]
fn cut_connections_resume() {
    // Each answer breaks off after 100,000 bytes.
    let server =
        WebServer::start(|request, stream| answer_part(request, stream, &content(), TAG, 100_000));
    check_whole(&server, &tempfile::tempdir().unwrap());
    assert_eq!(server.starts("GET"), [0, 100_000, 200_000]);
    let requests = server.requests.lock().unwrap();
    assert_eq!(requests.last().unwrap().if_range.as_deref(), Some(TAG));
}

#[test]
fn a_server_that_ignores_ranges() {
    let server = WebServer::start(|request, stream| {
        let at_most = if request.before == 0 { 100_000 } else { ALL };
        let whole = Request { start: None, if_range: None, ..request.clone() };
        answer_part(&whole, stream, &content(), TAG, at_most);
    });
    check_whole(&server, &tempfile::tempdir().unwrap());
    assert_eq!(server.starts("GET"), [0, 100_000]);
    // One that never gets further than that is given up.
    let server = WebServer::start(|request, stream| {
        let whole = Request { start: None, if_range: None, ..request.clone() };
        answer_part(&whole, stream, &content(), TAG, 100_000);
    });
    check_error(&server, remote_file(&server, "a.bin"), "after 3 requests without new bytes");
}

#[test]
fn parts_smaller_than_requested() {
    let server = WebServer::start(|request, stream| {
        let (bytes, from) = (content(), request.start.unwrap_or(0));
        let end = (from + 120_000).min(bytes.len());
        let range = format!("Content-Range: bytes {from}-{}/{}", end - 1, bytes.len());
        let length = format!("Content-Length: {}", end - from);
        answer_head(stream, "206 Partial Content", &[range, length, format!("ETag: {TAG}")]);
        if request.method == "GET" {
            let _ = stream.write_all(&bytes[from..end]);
        }
    });
    check_whole(&server, &tempfile::tempdir().unwrap());
    assert_eq!(server.starts("GET"), [0, 120_000, 240_000]);
}

#[test]
fn a_changed_file_is_fetched_from_its_beginning() {
    let server = WebServer::start(|request, stream| {
        match request.before {
            0 => answer_part(request, stream, &[7; 300_000], "\"old\"", 100_000),
            _ => answer_part(request, stream, &content(), TAG, ALL),
        };
    });
    check_whole(&server, &tempfile::tempdir().unwrap());
    assert_eq!(server.starts("GET"), [0, 100_000]);
    // The same with a server that ignores the requested version.
    let server = WebServer::start(|request, stream| match request.before {
        0 => answer_part(request, stream, &[7; 300_000], "\"old\"", 100_000),
        _ => {
            let careless = Request { if_range: None, ..request.clone() };
            answer_part(&careless, stream, &content(), TAG, ALL);
        }
    });
    check_whole(&server, &tempfile::tempdir().unwrap());
    assert_eq!(server.starts("GET"), [0, 100_000, 0]);
    // And one of the same version and another size, or whose parts do not say their version.
    let part = |headers: [String; 2]| {
        WebServer::start(move |request, stream| match request.before {
            1 if request.method == "GET" => {
                answer_head(stream, "206 Partial Content", &headers);
                let _ = stream.write_all(&[7; 200_000]);
            }
            before => {
                let at_most = if before == 0 { 100_000 } else { ALL };
                answer_part(request, stream, &content(), TAG, at_most);
            }
        })
    };
    let tag = format!("ETag: {TAG}");
    let silent = "Content-Range: bytes 100000-299999/300000".to_owned();
    let other = "Content-Range: bytes 100000-299999/300001".to_owned();
    for headers in [[other, tag], [silent, "Content-Length: 200000".into()]] {
        let server = part(headers);
        check_whole(&server, &tempfile::tempdir().unwrap());
        assert_eq!(server.starts("GET"), [0, 100_000, 0]);
    }
    // A known hash verifies the file: no byte is fetched again.
    let server = WebServer::start(|request, stream| {
        let (bytes, from) = (content(), request.start.unwrap_or(0));
        let range = format!("Content-Range: bytes {from}-299999/300000");
        let length = format!("Content-Length: {}", bytes.len() - from);
        answer_head(stream, "206 Partial Content", &[range, length]);
        if request.method == "GET" {
            let at_most = if request.before == 0 { 100_000 } else { ALL };
            let _ = stream.write_all(&bytes[from..][..at_most.min(bytes.len() - from)]);
        }
    });
    let file = RemoteFile { sha256: Some(sha256(&content())), ..remote_file(&server, "a.bin") };
    fetch(remote(&server, vec![file]), tempfile::tempdir().unwrap().path()).unwrap();
    assert_eq!(server.starts("GET"), [0, 100_000]);
}

#[test]
fn partial_files_resume() {
    let server = good();
    let left = |bytes: &[u8], tag: &str| {
        let dir = tempfile::tempdir().unwrap();
        fs::write(dir.path().join("a.bin.partial"), bytes).unwrap();
        fs::write(dir.path().join("a.bin.partial.tag"), tag).unwrap();
        dir
    };
    let (whole, other) = (content(), vec![1; 300_001]);
    // A part, also of known size; all but the name; more than the file has; another size; a
    // missing or malformed version.
    let (of_size, of_other) = (format!("{TAG}\n300000"), format!("{TAG}\n300001"));
    let cases: [(&[u8], &str, &[usize]); 7] = [
        (&whole[..250_000], TAG, &[250_000]),
        (&whole[..250_000], &of_size, &[250_000]),
        (&other[..250_000], &of_other, &[250_000, 0]),
        (&whole, TAG, &[300_000]),
        (&other, TAG, &[300_001, 0]),
        (&other[..100_000], "", &[0]),
        (&other[..100_000], "one\ntwo", &[0]),
    ];
    for (bytes, tag, starts) in cases {
        server.requests.lock().unwrap().clear();
        check_whole(&server, &left(bytes, tag));
        assert_eq!(server.starts("GET"), starts);
    }
    let dir = left(&whole[..250_000], TAG);
    let remote = remote(&server, vec![remote_file(&server, "a.bin")]);
    let plan = DownloadPlan::new(remote, dir.path(), options()).unwrap();
    assert_eq!((plan.bytes, plan.files[0].presence), (50_000, Presence::Partial(250_000)));
}

/// Also if the user names the place.
#[test]
fn unfinished_downloads_are_refused_by_their_path() {
    let dir = tempfile::tempdir().unwrap();
    let refused = |task: &Task, name: &str, path: &Path| {
        let error = locate(task, name, Some(path), &dir.path().join("none")).unwrap_err();
        assert!(matches!(error, DataError::At { fault: Fault::Unfinished, .. }), "{error}");
    };
    let (game, robot) = (tasks::seaquest(), tasks::hopper());
    let path = dir.path().join("Seaquest");
    let logs = path.join("1/replay_logs");
    fs::create_dir_all(&logs).unwrap();
    fs::write(logs.join("$store$_action_ckpt.3.gz.partial"), "").unwrap();
    refused(&game, "1", &path);
    fs::write(logs.join("$store$_action_ckpt.2.gz"), "").unwrap();
    for path in [&path, &path.join("1"), &logs] {
        refused(&game, "1", path);
    }
    let (own, file) = (dir.path().join("own"), "hopper_medium-v2.hdf5");
    fs::create_dir(&own).unwrap();
    fs::write(own.join(format!("{file}.partial")), "").unwrap();
    refused(&robot, "medium", &own);
    refused(&robot, "medium", &own.join(file));
    // Next to a complete file, another download may be unfinished.
    write_d4rl(&own.join("hopper_expert-v2.hdf5"), "..t");
    locate(&robot, "expert", Some(&own), &dir.path().join("none")).unwrap();
}

/// A server that sends a file in half a minute.
fn slow() -> WebServer {
    WebServer::start(|request, stream| {
        answer_part(request, stream, &content(), TAG, 0);
        let from = request.start.unwrap_or(0);
        for part in content()[from..].chunks(1000).take_while(|_| request.method == "GET") {
            if stream.write_all(part).is_err() {
                return;
            }
            thread::sleep(Duration::from_millis(100));
        }
    })
}

fn wait_for(done: impl Fn() -> bool) {
    let began = Instant::now();
    while !done() {
        assert!(began.elapsed() < Duration::from_secs(20), "it takes too long");
        thread::sleep(Duration::from_millis(10));
    }
}

/// The address and the directory of the child process, which is killed.
const CHILD: &str = "OVERTONE_TEST_DOWNLOAD";

/// Does nothing unless it is the process that is to be killed.
#[test]
#[ignore = "the other process of a test; alone it does nothing"]
fn child() {
    let Some(task) = std::env::var_os(CHILD) else { return };
    let task = task.into_string().unwrap();
    let (address, folder) = task.split_once(' ').unwrap();
    let server = WebServer { address: address.parse().unwrap(), requests: Arc::default() };
    fetch(remote(&server, vec![remote_file(&server, "a.bin")]), Path::new(folder)).unwrap();
}

#[test]
fn a_killed_download_resumes_and_two_at_once_are_refused() {
    let (server, dir) = (slow(), tempfile::tempdir().unwrap());
    let partial = dir.path().join("a.bin.partial");
    let bytes = |path: &PathBuf| fs::metadata(path).map_or(0, |data| data.len());
    let mut child = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "download::resuming::child", "--nocapture", "--ignored"])
        .env(CHILD, format!("{} {}", server.address, dir.path().display()))
        .stdout(Stdio::null())
        .spawn()
        .unwrap();
    wait_for(|| bytes(&partial) >= 2000);
    // Another process has it.
    let second = fetch(remote(&server, vec![remote_file(&server, "a.bin")]), dir.path());
    assert!(matches!(second, Err(DownloadError::Busy { .. })), "{second:?}");
    child.kill().unwrap();
    child.wait().unwrap();
    assert!(!dir.path().join("a.bin").exists());
    let there = bytes(&partial);
    let server = good();
    check_whole(&server, &dir);
    assert_eq!(server.starts("GET"), [there as usize]);
}
