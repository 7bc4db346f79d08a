//! An HTTP server on this machine that a test controls: it answers as servers do, and worse.

#![allow(clippy::unwrap_used, reason = "the helpers of tests are tests too")]

use std::fs;
use std::io::{BufRead, BufReader, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::path::PathBuf;
use std::sync::{Arc, Mutex};
use std::thread;

/// A request as the server saw it.
#[derive(Clone, Debug)]
pub struct Request {
    /// `GET`, `HEAD`, …
    pub method: String,
    /// The requested path, as in the address.
    pub path: String,
    /// The first requested byte.
    pub start: Option<usize>,
    /// The version it is to be of.
    pub if_range: Option<String>,
    /// How many of this method came for this path before.
    pub before: usize,
}

/// A server, for as long as the tests run.
pub struct WebServer {
    /// Its address.
    pub address: SocketAddr,
    /// The requests, in order.
    pub requests: Arc<Mutex<Vec<Request>>>,
}

impl WebServer {
    /// Answers each request with `answer`, on a connection of its own.
    pub fn start(answer: impl Fn(&Request, &mut TcpStream) + Send + Sync + 'static) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let requests = Arc::new(Mutex::new(Vec::new()));
        let (seen, answer) = (requests.clone(), Arc::new(answer));
        thread::spawn(move || {
            for stream in listener.incoming() {
                let (mut stream, seen, answer) = (stream.unwrap(), seen.clone(), answer.clone());
                thread::spawn(move || {
                    if let Some(request) = read_request(&stream, &seen) {
                        answer(&request, &mut stream);
                    }
                });
            }
        });
        Self { address, requests }
    }

    /// Serves the files below `folder`; of each file the first answer breaks off after
    /// `first_at_most` bytes.
    pub fn of_folder(folder: PathBuf, first_at_most: usize) -> Self {
        Self::start(move |request, stream| {
            let path = request.path.trim_start_matches('/').replace("%24", "$");
            let at_most = if request.before == 0 { first_at_most } else { usize::MAX };
            match fs::read(folder.join(path)) {
                Ok(bytes) => answer_part(request, stream, &bytes, "\"a\"", at_most),
                Err(_) => answer_empty(stream, "404 Not Found"),
            }
        })
    }

    /// The first requested bytes of the requests with `method`.
    pub fn starts(&self, method: &str) -> Vec<usize> {
        let requests = self.requests.lock().unwrap();
        let of_method = requests.iter().filter(|request| request.method == method);
        of_method.map(|request| request.start.unwrap_or(0)).collect()
    }
}

fn read_request(stream: &TcpStream, seen: &Mutex<Vec<Request>>) -> Option<Request> {
    let mut lines = BufReader::new(stream).lines();
    let first = lines.next()?.ok()?;
    let mut words = first.split(' ');
    let (method, path) = (words.next()?.to_owned(), words.next()?.to_owned());
    let (mut start, mut if_range) = (None, None);
    for line in lines.map_while(Result::ok).take_while(|line| !line.is_empty()) {
        let (name, value) = line.split_once(": ")?;
        match name.to_lowercase().as_str() {
            "range" => start = value.strip_prefix("bytes=")?.strip_suffix('-')?.parse().ok(),
            "if-range" => if_range = Some(value.to_owned()),
            _ => {}
        }
    }
    let mut seen = seen.lock().unwrap();
    let before = seen.iter().filter(|r| r.method == method && r.path == path).count();
    let request = Request { method, path, start, if_range, before };
    seen.push(request.clone());
    Some(request)
}

/// Writes the head of an answer; a client that is gone does not matter.
pub fn answer_head(stream: &mut TcpStream, status: &str, headers: &[String]) {
    let mut text = format!("HTTP/1.1 {status}\r\nConnection: close\r\n");
    headers.iter().for_each(|header| text.push_str(&format!("{header}\r\n")));
    let _ = stream.write_all(format!("{text}\r\n").as_bytes());
}

/// Answers with `status` alone.
pub fn answer_empty(stream: &mut TcpStream, status: &str) {
    answer_head(stream, status, &["Content-Length: 0".into()]);
}

/// Answers as a good server with version `tag` of `bytes`, but after `at_most` bytes of its
/// body it is gone.
pub fn answer_part(
    request: &Request,
    stream: &mut TcpStream,
    bytes: &[u8],
    tag: &str,
    at_most: usize,
) {
    let mut start = request.start;
    if request.if_range.as_ref().is_some_and(|version| version != tag) {
        start = None;
    }
    let from = start.unwrap_or(0);
    if from > 0 && from >= bytes.len() {
        let range = format!("Content-Range: bytes */{}", bytes.len());
        answer_head(stream, "416 Range Not Satisfiable", &[range, "Content-Length: 0".into()]);
        return;
    }
    let body = &bytes[from..];
    let mut headers = vec![format!("Content-Length: {}", body.len()), format!("ETag: {tag}")];
    let mut status = "200 OK";
    if start.is_some() && !bytes.is_empty() {
        let last = bytes.len() - 1;
        headers.push(format!("Content-Range: bytes {from}-{last}/{}", bytes.len()));
        status = "206 Partial Content";
    }
    answer_head(stream, status, &headers);
    if request.method == "GET" {
        let _ = stream.write_all(&body[..at_most.min(body.len())]);
    }
}
