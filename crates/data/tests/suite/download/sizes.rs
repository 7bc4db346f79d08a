//! Servers that announce no size, a wrong one, or another than they send.

use std::io::Write;
use std::net::TcpStream;

use overtone_data::download::{DownloadPlan, RemoteFile};
use overtone_testkit::web_server::{WebServer, answer_head, answer_part};

use super::{TAG, check_error, check_whole, content, fetch, options, remote, remote_file, sha256};

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
    // The first part cannot be resumed: it may be of another version.
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
    check_error(&server, remote_file(&server, "a.bin"), "after 3 requests without new bytes");
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
    check_error(&server, known, "is longer than the 299999 bytes that were announced");
    // A length next to chunks is ignored (RFC 9112, section 6.3).
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
    let expected = "is longer than the 150000 bytes that were announced";
    check_error(&server, remote_file(&server, "a.bin"), expected);
}

#[test]
fn answers_without_a_visible_end() {
    let server = WebServer::start(|request, stream| {
        answer_head(stream, "200 OK", &[]);
        if request.method == "GET" {
            let _ = stream.write_all(&content());
        }
    });
    check_error(&server, remote_file(&server, "a.bin"), "is sent without a size");
    // A size or a hash in the description detects it.
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
