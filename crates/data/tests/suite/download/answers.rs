//! Servers that send other bytes, send on, refuse, are busy, slow or silent.

use std::fs;
use std::io::Write;
use std::net::TcpListener;
use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

use crc32c::crc32c;
use overtone_data::download::{DownloadError, DownloadPlan, Presence, Remote, RemoteFile};
use overtone_testkit::web_server::{WebServer, answer_empty, answer_head, answer_part};

use super::{
    ALL, TAG, check_error, check_whole, content, fetch, good, names, options, remote, remote_file,
    sha256,
};

#[test]
fn wrong_bytes_are_not_kept() {
    let server = WebServer::start(|request, stream| {
        let mut bytes = content();
        if request.before == 0 {
            bytes[12_345] ^= 1;
        }
        answer_part(request, stream, &bytes, TAG, ALL);
    });
    let file = RemoteFile { sha256: Some(sha256(&content())), ..remote_file(&server, "a.bin") };
    let dir = tempfile::tempdir().unwrap();
    let error = fetch(remote(&server, vec![file.clone()]), dir.path()).unwrap_err();
    assert!(matches!(error, DownloadError::Hash { .. }), "{error}");
    assert_eq!(names(&dir), [""; 0]);
    fetch(remote(&server, vec![file]), dir.path()).unwrap();
    assert_eq!(names(&dir), ["a.bin"]);
}

#[test]
fn a_checksum_of_the_server() {
    // Google's storage says the whole file's with each answer.
    let server = |sum: u32| {
        let digits = base64(sum);
        WebServer::start(move |request, stream| {
            let (bytes, from) = (content(), request.start.unwrap_or(0));
            if from == bytes.len() {
                // As Google's storage does, without a checksum.
                answer_part(request, stream, &bytes, TAG, ALL);
                return;
            }
            let range = format!("Content-Range: bytes {from}-299999/300000");
            let length = format!("Content-Length: {}", bytes.len() - from);
            let hash = format!("x-goog-hash: crc32c={digits},md5=Ojk9c3dhfxgoKVVHYwFbHQ==");
            let headers = [range, length, format!("ETag: {TAG}"), hash];
            answer_head(stream, "206 Partial Content", &headers);
            if request.method == "GET" {
                let at_most = if request.before == 0 { 100_000 } else { ALL };
                let _ = stream.write_all(&bytes[from..][..at_most.min(bytes.len() - from)]);
            }
        })
    };
    let sum = crc32c(&content());
    check_whole(&server(sum), &tempfile::tempdir().unwrap());
    let wrong = server(sum ^ 1);
    let expected =
        format!("a.bin: its CRC-32C is {sum:08x}, expected {:08x}; the fetched", sum ^ 1);
    check_error(&wrong, remote_file(&wrong, "a.bin"), &expected);
    // An earlier run that had fetched all may have been stopped before it was checked.
    let left = |bytes: &[u8]| {
        let dir = tempfile::tempdir().unwrap();
        fs::write(dir.path().join("a.bin.partial"), bytes).unwrap();
        fs::write(dir.path().join("a.bin.partial.tag"), TAG).unwrap();
        dir
    };
    check_whole(&server(sum), &left(&content()));
    for bytes in [None, Some(300_000)] {
        let (server, dir) = (server(sum), left(&[0; 300_000]));
        let file = RemoteFile { bytes, ..remote_file(&server, "a.bin") };
        let error = fetch(remote(&server, vec![file]), dir.path()).unwrap_err();
        assert!(matches!(error, DownloadError::Hash { hash: "CRC-32C", .. }), "{error}");
        assert_eq!(names(&dir), [""; 0]);
    }
    // The description's hash is the stronger one.
    let file = RemoteFile { sha256: Some(sha256(&content())), ..remote_file(&wrong, "a.bin") };
    fetch(remote(&wrong, vec![file]), tempfile::tempdir().unwrap().path()).unwrap();
}

/// Four bytes, the highest first, in base64.
fn base64(number: u32) -> String {
    let digits = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let bits = u64::from(number) << 4;
    let digit = |place: u64| char::from(digits[(bits >> (30 - 6 * place) & 63) as usize]);
    (0..6).map(digit).chain("==".chars()).collect()
}

#[test]
fn a_server_that_redirects() {
    let other = good();
    let to = format!("http://{}/a.bin", other.address);
    let server = WebServer::start(move |request, stream| {
        let to = match request.path.as_str() {
            "/a.bin" => "/b.bin",
            "/b.bin" => return answer_part(request, stream, &content(), TAG, ALL),
            "/round" => "/round",
            _ => to.as_str(),
        };
        answer_head(stream, "302 Found", &[format!("Location: {to}"), "Content-Length: 0".into()]);
    });
    check_whole(&server, &tempfile::tempdir().unwrap());
    check_error(&server, remote_file(&server, "round"), "redirects more than 5 times");
    let host = format!("leads to the host `{}`; allowed hosts: {}", other.address, server.address);
    check_error(&server, remote_file(&server, "elsewhere"), &host);
    assert_eq!(other.requests.lock().unwrap().len(), 0);
    // With both hosts allowed, it is fetched.
    let hosts = [server.address.to_string(), other.address.to_string()];
    let remote = Remote::new(vec![remote_file(&server, "elsewhere")], &hosts).unwrap();
    fetch(remote, tempfile::tempdir().unwrap().path()).unwrap();
    // An address that is not allowed to begin with is not asked.
    let remote =
        Remote::new(vec![remote_file(&server, "a.bin")], &["elsewhere.org".into()]).unwrap();
    let error = fetch(remote, tempfile::tempdir().unwrap().path()).unwrap_err();
    assert!(matches!(error, DownloadError::Host { .. }), "{error}");
}

#[test]
fn files_that_are_not_there() {
    let server = WebServer::start(|request, stream| match request.path.as_str() {
        "/a.bin" => answer_part(request, stream, &content(), TAG, ALL),
        "/secret" => answer_empty(stream, "403 Forbidden"),
        _ => answer_empty(stream, "404 Not Found"),
    });
    check_error(&server, remote_file(&server, "b.bin"), "/b.bin: the server answers 404");
    check_error(&server, remote_file(&server, "secret"), "answers 403");
    assert_eq!(server.starts("HEAD").len(), 2); // Not asked again.
    let optional = RemoteFile { optional: true, ..remote_file(&server, "b.bin") };
    let files = vec![optional, remote_file(&server, "a.bin")];
    let dir = tempfile::tempdir().unwrap();
    let plan = DownloadPlan::new(remote(&server, files), dir.path(), options()).unwrap();
    assert_eq!(plan.files[0].presence, Presence::NotThere);
    plan.fetch(&|_| {}).unwrap();
    assert_eq!(names(&dir), ["a.bin"]);
}

#[test]
fn a_server_that_is_busy_for_a_while() {
    let server =
        WebServer::start(|request, stream| match (request.method.as_str(), request.before) {
            (_, 0) => answer_head(
                stream,
                "503 Service Unavailable",
                &["Retry-After: 100".into(), "Content-Length: 0".into()],
            ),
            (_, 1) => answer_empty(stream, "429 Too Many Requests"),
            _ => answer_part(request, stream, &content(), TAG, ALL),
        });
    // The server's hundred seconds are cut to the longest wait.
    check_whole(&server, &tempfile::tempdir().unwrap());
    assert_eq!((server.starts("HEAD").len(), server.starts("GET").len()), (3, 3));
    let server = WebServer::start(|_, stream| answer_empty(stream, "503 Service Unavailable"));
    check_error(
        &server,
        remote_file(&server, "a.bin"),
        "without new bytes (the server answers 503)",
    );
}

#[test]
fn slow_servers_and_silent_ones() {
    let drip = WebServer::start(|request, stream| {
        answer_part(request, stream, &content(), TAG, 0);
        for part in content().chunks(60_000).take_while(|_| request.method == "GET") {
            thread::sleep(Duration::from_millis(50));
            let _ = stream.write_all(part);
        }
    });
    check_whole(&drip, &tempfile::tempdir().unwrap());
    assert_eq!(drip.starts("GET"), [0]);
    // Stops in the middle of the first answer; the next request resumes there.
    let silent = WebServer::start(|request, stream| {
        answer_part(
            request,
            stream,
            &content(),
            TAG,
            if request.before == 0 { 50_000 } else { ALL },
        );
        if request.method == "GET" && request.before == 0 {
            thread::sleep(Duration::from_secs(5));
        }
    });
    let began = Instant::now();
    check_whole(&silent, &tempfile::tempdir().unwrap());
    assert!(began.elapsed() < Duration::from_secs(4));
    assert_eq!(silent.starts("GET"), [0, 50_000]);
    // No server listens.
    let address = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let gone = WebServer { address, requests: Arc::default() };
    check_error(&gone, remote_file(&gone, "a.bin"), "after 3 requests without new bytes");
}

#[test]
fn an_answer_that_is_not_the_file() {
    let hdf5 = b"\x89HDF\r\n\x1a\n0123";
    let with_block = [&[0; 512][..], hdf5].concat();
    let pointer = b"version https://git-lfs.github.com/spec/v1\noid sha256:aa\nsize 12\n";
    for (name, bytes, what) in [
        ("a.hdf5", &b"<!doctype html><html>Please sign in</html>"[..], "a web page"),
        ("a.bin", b"\n  <HTML><body>moved</body>", "a web page"),
        ("a.hdf5", pointer, "a Git LFS pointer"),
        ("a.hdf5", b"", "an empty file"),
        ("a.hdf5", b"{\"error\": \"not found\"}", "bytes that are not HDF5"),
        ("a.gz", b"not found", "bytes that are not gzip"),
        ("a.json", b"not found", "bytes that are not JSON"),
        ("a.hdf5", hdf5, ""),
        ("a.hdf5", &with_block, ""),
        ("a.gz", b"\x1f\x8b\x08", ""),
        ("a.json", b"\n{}", ""),
    ] {
        let answer = bytes.to_vec();
        let server = WebServer::start(move |request, stream| {
            answer_head(stream, "200 OK", &[format!("Content-Length: {}", answer.len())]);
            if request.method == "GET" {
                let _ = stream.write_all(&answer);
            }
        });
        let dir = tempfile::tempdir().unwrap();
        let fetched = fetch(remote(&server, vec![remote_file(&server, name)]), dir.path());
        if what.is_empty() {
            fetched.unwrap();
            assert_eq!(fs::read(dir.path().join(name)).unwrap(), bytes);
            continue;
        }
        let error = fetched.unwrap_err();
        assert!(matches!(error, DownloadError::StandIn { .. }), "{error}");
        assert!(error.to_string().contains(&format!("answers with {what} in place")), "{error}");
        assert_eq!(names(&dir), [""; 0], "{what}");
        // The description's hash decides, if there is one.
        let known = RemoteFile { sha256: Some(sha256(bytes)), ..remote_file(&server, name) };
        fetch(remote(&server, vec![known]), dir.path()).unwrap();
    }
}
