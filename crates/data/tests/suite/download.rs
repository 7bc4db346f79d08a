//! Fetching files from a server that behaves as servers do, and worse.

use std::fs;
use std::io::Write;
use std::net::{TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::{Duration, Instant};

use overtone_core::crc32c::crc32c;
use overtone_data::download::{
    DownloadError, DownloadOptions, DownloadPlan, DownloadProgress, Presence, Remote, RemoteFile,
};
use overtone_data::{AtariCard, ContinuousCard, DataError, DatasetCard, locate, locate_continuous};
use overtone_testkit::web_server::{Request, WebServer, answer_empty, answer_head, answer_part};
use sha2::{Digest, Sha256};
use tempfile::TempDir;

use crate::starter::datasets;

/// A file of the server's, of which nothing is known.
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

/// What the files of the tests hold: 300,000 bytes, which differ from place to place.
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

/// What fetching a file says, in one sentence.
#[track_caller]
fn check_error(server: &WebServer, file: RemoteFile, expected: &str) {
    let dir = tempfile::tempdir().unwrap();
    let error = fetch(remote(server, vec![file]), dir.path()).unwrap_err().to_string();
    assert!(error.contains(expected), "{error}");
    assert!(!error.contains('\n'), "{error}");
    assert!(!dir.path().join("a.bin").exists());
}

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
    // Nothing is asked again.
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
fn cut_connections_are_gone_on_with() {
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
    check_error(&server, remote_file(&server, "a.bin"), "given up after 3 requests");
}

#[test]
fn a_server_without_sizes_and_versions() {
    let server = WebServer::start(|request, stream| {
        answer_head(stream, "200 OK", &["Transfer-Encoding: chunked".into()]);
        if request.method == "GET" {
            let bytes = content();
            let n = if request.before == 0 { 2 } else { 3 };
            for part in bytes.chunks(100_000).take(n) {
                let _ = stream.write_all(format!("{:x}\r\n", part.len()).as_bytes());
                let _ = stream.write_all(part);
                let _ = stream.write_all(b"\r\n");
            }
            if n == 3 {
                let _ = stream.write_all(b"0\r\n\r\n");
            }
        }
    });
    let plan = remote(&server, vec![remote_file(&server, "a.bin")]);
    let dir = tempfile::tempdir().unwrap();
    let plan = DownloadPlan::new(plan, dir.path(), options()).unwrap();
    assert_eq!((plan.bytes, plan.unknown), (0, 1));
    assert!(plan.to_string().contains("of unknown size"), "{plan}");
    check_whole(&server, &dir);
    // What came first cannot be gone on with: nothing says that it is of the same file.
    assert_eq!(server.starts("GET"), [0, 0]);
}

#[test]
fn a_server_that_lies_about_sizes() {
    let lie = |length: usize| {
        WebServer::start(move |request, stream| {
            answer_head(stream, "200 OK", &[format!("Content-Length: {length}")]);
            if request.method == "GET" {
                let _ = stream.write_all(&content());
            }
        })
    };
    let server = lie(400_000);
    check_error(&server, remote_file(&server, "a.bin"), "given up after 3 requests");
    assert_eq!(server.starts("GET"), [0; 3]); // What came cannot be gone on with.
    let server = lie(200_000);
    let known = RemoteFile { bytes: Some(300_000), ..remote_file(&server, "a.bin") };
    check_error(&server, known, "has 200000 bytes, expected 300000; the server has another");
}

/// Sends all bytes as one chunk.
fn send_chunk(stream: &mut TcpStream, bytes: &[u8]) {
    let _ = stream.write_all(format!("{:x}\r\n", bytes.len()).as_bytes());
    let _ = stream.write_all(bytes);
    let _ = stream.write_all(b"\r\n0\r\n\r\n");
}

#[test]
fn bytes_beyond_the_announced_size_are_refused() {
    // The description knows the size, the server says none.
    let chunked = |headers: &'static [&str]| {
        WebServer::start(move |request, stream| {
            let all = [&["Transfer-Encoding: chunked"], headers].concat();
            answer_head(stream, "200 OK", &all.iter().map(ToString::to_string).collect::<Vec<_>>());
            if request.method == "GET" {
                send_chunk(stream, &content());
            }
        })
    };
    let server = chunked(&[]);
    let known = RemoteFile { bytes: Some(299_999), ..remote_file(&server, "a.bin") };
    check_error(&server, known, "goes on after the 299999 bytes that were announced");
    // A length beside chunks is to be ignored (RFC 9112, section 6.3).
    check_whole(&chunked(&["Content-Length: 7"]), &tempfile::tempdir().unwrap());
    // A part that is longer than it says.
    let server = WebServer::start(|request, stream| match request.start {
        Some(100_000) => {
            let range = "Content-Range: bytes 100000-149999/300000".to_owned();
            let headers = ["Transfer-Encoding: chunked".into(), range, format!("ETag: {TAG}")];
            answer_head(stream, "206 Partial Content", &headers);
            send_chunk(stream, &content()[100_000..]);
        }
        _ => answer_part(request, stream, &content(), TAG, 100_000),
    });
    let expected = "goes on after the 150000 bytes that were announced";
    check_error(&server, remote_file(&server, "a.bin"), expected);
}

#[test]
fn parts_of_less_than_what_was_asked_for() {
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
fn answers_whose_end_cannot_be_told() {
    let server = WebServer::start(|request, stream| {
        answer_head(stream, "200 OK", &[]);
        if request.method == "GET" {
            let _ = stream.write_all(&content());
        }
    });
    check_error(&server, remote_file(&server, "a.bin"), "is sent without a size");
    // A size or a hash in the description tells it.
    let known = RemoteFile { bytes: Some(300_000), ..remote_file(&server, "a.bin") };
    let hashed = RemoteFile { sha256: Some(sha256(&content())), ..remote_file(&server, "a.bin") };
    for file in [known, hashed] {
        fetch(remote(&server, vec![file]), tempfile::tempdir().unwrap().path()).unwrap();
    }
    let server = WebServer::start(|_, stream| {
        let headers = ["Content-Encoding: gzip".into(), "Content-Length: 9".into()];
        answer_head(stream, "200 OK", &headers);
        let _ = stream.write_all(b"123456789");
    });
    check_error(&server, remote_file(&server, "a.bin"), "is sent in the encoding `gzip`");
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
    let expected = format!("a.bin: its CRC-32C is {sum:08x}, expected {:08x}; what was", sum ^ 1);
    check_error(&wrong, remote_file(&wrong, "a.bin"), &expected);
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
fn a_server_that_sends_on() {
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
    check_error(&server, remote_file(&server, "round"), "is sent on more than 5 times");
    let host = format!("leads to the host `{}`, and only {}", other.address, server.address);
    check_error(&server, remote_file(&server, "elsewhere"), &host);
    assert_eq!(other.requests.lock().unwrap().len(), 0);
    // Where both may be asked, it is.
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
    check_error(
        &server,
        remote_file(&server, "b.bin"),
        "/b.bin cannot be had: the server answers 404",
    );
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
    check_error(&server, remote_file(&server, "a.bin"), "nothing new (the server answers 503)");
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
    // Says nothing in the middle of the first answer; the next goes on there.
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
    // Nobody listens.
    let address = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let gone = WebServer { address, requests: Arc::default() };
    check_error(&gone, remote_file(&gone, "a.bin"), "given up after 3 requests");
}

#[test]
fn a_file_that_changed_is_fetched_anew() {
    let server = WebServer::start(|request, stream| {
        match request.before {
            0 => answer_part(request, stream, &[7; 300_000], "\"old\"", 100_000),
            _ => answer_part(request, stream, &content(), TAG, ALL),
        };
    });
    check_whole(&server, &tempfile::tempdir().unwrap());
    assert_eq!(server.starts("GET"), [0, 100_000]);
    // So is one whose server does not mind which version was asked for.
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
    // Where the hash is known it tells, and nothing need be fetched again.
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
fn what_is_there_already_is_gone_on_with() {
    let server = good();
    let left = |bytes: &[u8], tag: &str| {
        let dir = tempfile::tempdir().unwrap();
        fs::write(dir.path().join("a.bin.partial"), bytes).unwrap();
        fs::write(dir.path().join("a.bin.partial.tag"), tag).unwrap();
        dir
    };
    let (whole, other) = (content(), vec![1; 300_001]);
    // A part, also of known size; all but the name; more than there is; of another size; no
    // word, or a strange one, of which version.
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

/// Where the process that is to be killed writes to and reads from.
const CHILD: &str = "OVERTONE_TEST_DOWNLOAD";

/// Does nothing unless it is the process that is to be killed.
#[test]
fn child() {
    let Some(task) = std::env::var_os(CHILD) else { return };
    let task = task.into_string().unwrap();
    let (address, folder) = task.split_once(' ').unwrap();
    let server = WebServer { address: address.parse().unwrap(), requests: Arc::default() };
    fetch(remote(&server, vec![remote_file(&server, "a.bin")]), Path::new(folder)).unwrap();
}

#[test]
fn a_killed_download_is_gone_on_with_and_two_at_once_are_refused() {
    let (server, dir) = (slow(), tempfile::tempdir().unwrap());
    let partial = dir.path().join("a.bin.partial");
    let bytes = |path: &PathBuf| fs::metadata(path).map_or(0, |data| data.len());
    let mut child = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "download::child", "--nocapture"])
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

#[test]
fn a_mirror_has_the_same_files() {
    let games: AtariCard =
        DatasetCard::load(&datasets().join("dqn-replay.toml")).unwrap().atari().unwrap();
    let at = |base: &str| games.clone().from_mirror(base);
    let remote = at("http://127.0.0.1:8000/dqn/").unwrap().remote("Seaquest", "1", &[0]).unwrap();
    assert_eq!(remote.hosts, ["127.0.0.1:8000"]);
    let first = "http://127.0.0.1:8000/dqn/Seaquest/1/replay_logs/add_count_ckpt.0.gz";
    assert_eq!(remote.files[0].url, first);
    let robots: ContinuousCard =
        DatasetCard::load(&datasets().join("d4rl.toml")).unwrap().continuous().unwrap();
    let remote = robots.from_mirror("https://Mirror.org").unwrap().remote("hopper", "medium");
    assert_eq!(remote.unwrap().files[0].url, "https://Mirror.org/hopper_medium-v2.hdf5");
    for bad in ["", "mirror.org", "ftp://mirror.org", "http://user@mirror.org", "http://", "/x"] {
        assert!(matches!(at(bad), Err(DownloadError::Address { .. })), "{bad}");
    }
}

#[test]
fn a_set_that_is_not_whole_is_not_used() {
    let dir = tempfile::tempdir().unwrap();
    for card in ["dqn-replay.toml", "d4rl.toml"] {
        fs::copy(datasets().join(card), dir.path().join(card)).unwrap();
    }
    let refused = |located: Result<(), DataError>, name: &str| {
        let error = located.unwrap_err();
        assert!(matches!(error, DataError::Unfinished { .. }), "{error}");
        assert!(error.to_string().contains(name), "{error}");
    };
    let logs = dir.path().join("published/dqn-replay/Seaquest/1/replay_logs");
    fs::create_dir_all(&logs).unwrap();
    let game = || locate("seaquest", "1", None, dir.path()).map(drop);
    game().unwrap();
    fs::write(logs.join("$store$_action_ckpt.3.gz.partial"), "").unwrap();
    refused(game(), "$store$_action_ckpt.3.gz: its download is not finished");
    // One that another process made whole meanwhile.
    fs::write(logs.join("$store$_action_ckpt.3.gz"), "").unwrap();
    game().unwrap();
    let file = dir.path().join("published/d4rl/hopper_medium-v2.hdf5.partial");
    fs::create_dir_all(file.parent().unwrap()).unwrap();
    fs::write(file, "").unwrap();
    let robot = locate_continuous("hopper", "medium", None, dir.path()).map(drop);
    refused(robot, "hopper_medium-v2.hdf5: its download is not finished");
}

#[test]
fn what_the_descriptions_say() {
    let card = |name: &str| DatasetCard::load(&datasets().join(name)).unwrap();
    let games: AtariCard = card("dqn-replay.toml").atari().unwrap();
    let remote = games.remote("Seaquest", "1", &[48, 49]).unwrap();
    assert_eq!(
        (remote.files.len(), remote.hosts.as_slice()),
        (12, &["storage.googleapis.com".to_owned()][..])
    );
    let reward = remote.files.iter().find(|file| file.url.contains("reward_ckpt.49")).unwrap();
    assert_eq!(
        reward.url,
        "https://storage.googleapis.com/atari-replay-datasets/dqn/Seaquest/1/replay_logs/\
         %24store%24_reward_ckpt.49.gz"
    );
    let path = "published/dqn-replay/Seaquest/1/replay_logs/$store$_reward_ckpt.49.gz";
    assert_eq!((reward.path.as_path(), reward.optional), (Path::new(path), false));
    assert_eq!(remote.files.iter().filter(|file| file.optional).count(), 2);
    for (game, run, number) in [("Pong", "1", 0), ("Seaquest", "../2", 0), ("Seaquest", "1", 50)] {
        let error = games.remote(game, run, &[number]).unwrap_err();
        assert!(matches!(error, DownloadError::Unlisted { .. }), "{error}");
    }
    let mut none = games.clone();
    none.counts.as_mut().unwrap().files = 0;
    let error = none.remote("Seaquest", "1", &[0]).unwrap_err().to_string();
    assert!(error.contains("no file"), "{error}");
    let robots: ContinuousCard = card("d4rl.toml").continuous().unwrap();
    let remote = robots.remote("hopper", "medium_replay").unwrap();
    let file = "hopper_medium_replay-v2.hdf5";
    assert_eq!(
        remote.files[0].url,
        format!("http://rail.eecs.berkeley.edu/datasets/offline_rl/gym_mujoco_v2/{file}")
    );
    assert_eq!(remote.files[0].path, Path::new("published/d4rl").join(file));
    assert!(matches!(robots.remote("ant", "medium"), Err(DownloadError::Unlisted { .. })));
    let starter: ContinuousCard = card("starter-mujoco.toml").continuous().unwrap();
    let error = starter.remote("hopper", "medium").unwrap_err();
    assert!(matches!(error, DownloadError::NoAddress { .. }), "{error}");
}

#[test]
fn sizes_and_hashes_of_a_description() {
    let text = fs::read_to_string(datasets().join("d4rl.toml")).unwrap();
    let known =
        "\n[download.files.\"published/d4rl/hopper_medium-v2.hdf5\"]\nbytes = 7\nsha256 = \"ab\"\n";
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("d4rl.toml");
    fs::write(&path, text + known).unwrap();
    let card = DatasetCard::load(&path).unwrap().continuous().unwrap();
    let remote = card.remote("hopper", "medium").unwrap();
    assert_eq!((remote.files[0].bytes, remote.files[0].sha256.as_deref()), (Some(7), Some("ab")));
    assert_eq!(card.remote("hopper", "expert").unwrap().files[0].bytes, None);
}
