//! Fetching files from a server that behaves as servers do, and worse.

use std::fs;
use std::io::{BufRead, BufReader, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::{Duration, Instant};

use overtone_data::download::{
    DownloadError, DownloadOptions, DownloadPlan, DownloadProgress, Presence, Remote, RemoteFile,
};
use overtone_data::{AtariCard, ContinuousCard, DatasetCard};
use sha2::{Digest, Sha256};
use tempfile::TempDir;

use crate::starter::datasets;

/// A request as the server saw it.
#[derive(Clone, Debug)]
struct Request {
    method: String,
    path: String,
    /// The first byte asked for.
    start: Option<usize>,
    if_range: Option<String>,
    /// How many of this method came for this path before.
    before: usize,
}

/// A server on this machine, for as long as the tests run.
struct Server {
    address: SocketAddr,
    requests: Arc<Mutex<Vec<Request>>>,
}

impl Server {
    /// Answers each request with `answer`, on a connection of its own.
    fn start(answer: impl Fn(&Request, &mut TcpStream) + Send + Sync + 'static) -> Self {
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

    fn file(&self, name: &str) -> RemoteFile {
        RemoteFile {
            url: format!("http://{}/{name}", self.address),
            path: name.into(),
            bytes: None,
            sha256: None,
            optional: false,
        }
    }

    fn remote(&self, files: Vec<RemoteFile>) -> Remote {
        Remote::new(files, &[self.address.to_string()]).unwrap()
    }

    /// The first bytes that the requests of `method` asked for.
    fn starts(&self, method: &str) -> Vec<usize> {
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

/// What the files of the tests hold: 300,000 bytes, which differ from place to place.
fn content() -> Vec<u8> {
    (0..300_000u32).map(|i| (i.wrapping_mul(2_654_435_761) >> 24) as u8).collect()
}

fn sha256(bytes: &[u8]) -> String {
    Sha256::digest(bytes).iter().map(|byte| format!("{byte:02x}")).collect()
}

/// Writes the head of an answer; a client that is gone is no matter.
fn head(stream: &mut TcpStream, status: &str, headers: &[String]) {
    let mut text = format!("HTTP/1.1 {status}\r\nConnection: close\r\n");
    headers.iter().for_each(|header| text.push_str(&format!("{header}\r\n")));
    let _ = stream.write_all(format!("{text}\r\n").as_bytes());
}

fn nothing(stream: &mut TcpStream, status: &str) {
    head(stream, status, &["Content-Length: 0".into()]);
}

/// Answers as a good server with version `tag` of `bytes`, but after `at_most` bytes of its
/// body it is gone.
fn good(request: &Request, stream: &mut TcpStream, bytes: &[u8], tag: &str, at_most: usize) {
    let mut start = request.start;
    if request.if_range.as_ref().is_some_and(|version| version != tag) {
        start = None;
    }
    let from = start.unwrap_or(0);
    if from > 0 && from >= bytes.len() {
        let range = format!("Content-Range: bytes */{}", bytes.len());
        head(stream, "416 Range Not Satisfiable", &[range, "Content-Length: 0".into()]);
        return;
    }
    let body = &bytes[from..];
    let mut headers = vec![format!("Content-Length: {}", body.len()), format!("ETag: {tag}")];
    let mut status = "200 OK";
    if start.is_some() {
        let last = bytes.len() - 1;
        headers.push(format!("Content-Range: bytes {from}-{last}/{}", bytes.len()));
        status = "206 Partial Content";
    }
    head(stream, status, &headers);
    if request.method == "GET" {
        let _ = stream.write_all(&body[..at_most.min(body.len())]);
    }
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
fn check_whole(server: &Server, dir: &TempDir) {
    fetch(server.remote(vec![server.file("a.bin")]), dir.path()).unwrap();
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
fn check_error(server: &Server, file: RemoteFile, expected: &str) {
    let dir = tempfile::tempdir().unwrap();
    let error = fetch(server.remote(vec![file]), dir.path()).unwrap_err().to_string();
    assert!(error.contains(expected), "{error}");
    assert!(!error.contains('\n'), "{error}");
    assert!(!dir.path().join("a.bin").exists());
}

#[test]
fn a_plan_and_its_files() {
    let server = Server::start(|request, stream| good(request, stream, &content(), TAG, ALL));
    let dir = tempfile::tempdir().unwrap();
    let files = || {
        let known = RemoteFile { bytes: Some(300_000), ..server.file("deep/down/b.bin") };
        let hash = Some(sha256(&content()).to_uppercase());
        vec![server.file("a.bin"), known, RemoteFile { sha256: hash, ..server.file("c.bin") }]
    };
    let plan = DownloadPlan::new(server.remote(files()), dir.path(), options()).unwrap();
    assert_eq!((plan.bytes, plan.unknown, plan.ready()), (900_000, 0, false));
    assert!(plan.to_string().starts_with("3 of 3 files to fetch, 1 MB, into "), "{plan}");
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
    let plan = DownloadPlan::new(server.remote(files()), dir.path(), options()).unwrap();
    assert!(plan.ready() && plan.to_string().starts_with("all 3 files are in "), "{plan}");
    plan.fetch(&|_| {}).unwrap();
    assert_eq!(server.requests.lock().unwrap().len(), before);
    // A file that is there and has another size is not this file.
    fs::write(dir.path().join("deep/down/b.bin"), b"short").unwrap();
    let error = DownloadPlan::new(server.remote(files()), dir.path(), options()).unwrap_err();
    assert!(error.to_string().contains("has 5 bytes, expected 300000; delete it"), "{error}");
}

#[test]
fn a_disk_that_is_too_small() {
    let server = Server::start(|request, stream| good(request, stream, &content(), TAG, ALL));
    let dir = tempfile::tempdir().unwrap();
    let remote = server.remote(vec![server.file("a.bin")]);
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
    let server = Server::start(|request, stream| good(request, stream, &content(), TAG, 100_000));
    check_whole(&server, &tempfile::tempdir().unwrap());
    assert_eq!(server.starts("GET"), [0, 100_000, 200_000]);
    let requests = server.requests.lock().unwrap();
    assert_eq!(requests.last().unwrap().if_range.as_deref(), Some(TAG));
}

#[test]
fn a_server_that_ignores_ranges() {
    let server = Server::start(|request, stream| {
        let at_most = if request.before == 0 { 100_000 } else { ALL };
        let whole = Request { start: None, if_range: None, ..request.clone() };
        good(&whole, stream, &content(), TAG, at_most);
    });
    check_whole(&server, &tempfile::tempdir().unwrap());
    assert_eq!(server.starts("GET"), [0, 100_000]);
    // One that never gets further than that is given up.
    let server = Server::start(|request, stream| {
        let whole = Request { start: None, if_range: None, ..request.clone() };
        good(&whole, stream, &content(), TAG, 100_000);
    });
    check_error(&server, server.file("a.bin"), "given up after 3 requests");
}

#[test]
fn a_server_without_sizes_and_versions() {
    let server = Server::start(|request, stream| {
        head(stream, "200 OK", &["Transfer-Encoding: chunked".into()]);
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
    let plan = server.remote(vec![server.file("a.bin")]);
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
        Server::start(move |request, stream| {
            head(stream, "200 OK", &[format!("Content-Length: {length}")]);
            if request.method == "GET" {
                let _ = stream.write_all(&content());
            }
        })
    };
    let server = lie(400_000);
    check_error(&server, server.file("a.bin"), "given up after 3 requests");
    assert_eq!(server.starts("GET"), [0; 3]); // What came cannot be gone on with.
    let server = lie(200_000);
    let known = RemoteFile { bytes: Some(300_000), ..server.file("a.bin") };
    check_error(&server, known, "has 200000 bytes, expected 300000; the server has another");
}

#[test]
fn wrong_bytes_are_not_kept() {
    let server = Server::start(|request, stream| {
        let mut bytes = content();
        if request.before == 0 {
            bytes[12_345] ^= 1;
        }
        good(request, stream, &bytes, TAG, ALL);
    });
    let file = RemoteFile { sha256: Some(sha256(&content())), ..server.file("a.bin") };
    let dir = tempfile::tempdir().unwrap();
    let error = fetch(server.remote(vec![file.clone()]), dir.path()).unwrap_err();
    assert!(matches!(error, DownloadError::Hash { .. }), "{error}");
    assert_eq!(names(&dir), [""; 0]);
    fetch(server.remote(vec![file]), dir.path()).unwrap();
    assert_eq!(names(&dir), ["a.bin"]);
}

#[test]
fn a_server_that_sends_on() {
    let other = Server::start(|request, stream| good(request, stream, &content(), TAG, ALL));
    let to = format!("http://{}/a.bin", other.address);
    let server = Server::start(move |request, stream| {
        let to = match request.path.as_str() {
            "/a.bin" => "/b.bin",
            "/b.bin" => return good(request, stream, &content(), TAG, ALL),
            "/round" => "/round",
            _ => to.as_str(),
        };
        head(stream, "302 Found", &[format!("Location: {to}"), "Content-Length: 0".into()]);
    });
    check_whole(&server, &tempfile::tempdir().unwrap());
    check_error(&server, server.file("round"), "is sent on more than 5 times");
    let host = format!("leads to the host `{}`, and only {}", other.address, server.address);
    check_error(&server, server.file("elsewhere"), &host);
    assert_eq!(other.requests.lock().unwrap().len(), 0);
    // Where both may be asked, it is.
    let hosts = [server.address.to_string(), other.address.to_string()];
    let remote = Remote::new(vec![server.file("elsewhere")], &hosts).unwrap();
    fetch(remote, tempfile::tempdir().unwrap().path()).unwrap();
    // An address that is not allowed to begin with is not asked.
    let remote = Remote::new(vec![server.file("a.bin")], &["elsewhere.org".into()]).unwrap();
    let error = fetch(remote, tempfile::tempdir().unwrap().path()).unwrap_err();
    assert!(matches!(error, DownloadError::Host { .. }), "{error}");
}

#[test]
fn files_that_are_not_there() {
    let server = Server::start(|request, stream| match request.path.as_str() {
        "/a.bin" => good(request, stream, &content(), TAG, ALL),
        "/secret" => nothing(stream, "403 Forbidden"),
        _ => nothing(stream, "404 Not Found"),
    });
    check_error(&server, server.file("b.bin"), "/b.bin cannot be had: the server answers 404");
    check_error(&server, server.file("secret"), "answers 403");
    assert_eq!(server.starts("HEAD").len(), 2); // Not asked again.
    let optional = RemoteFile { optional: true, ..server.file("b.bin") };
    let files = vec![optional, server.file("a.bin")];
    let dir = tempfile::tempdir().unwrap();
    let plan = DownloadPlan::new(server.remote(files), dir.path(), options()).unwrap();
    assert_eq!(plan.files[0].presence, Presence::NotThere);
    plan.fetch(&|_| {}).unwrap();
    assert_eq!(names(&dir), ["a.bin"]);
}

#[test]
fn a_server_that_is_busy_for_a_while() {
    let server = Server::start(|request, stream| match (request.method.as_str(), request.before) {
        (_, 0) => head(
            stream,
            "503 Service Unavailable",
            &["Retry-After: 100".into(), "Content-Length: 0".into()],
        ),
        (_, 1) => nothing(stream, "429 Too Many Requests"),
        _ => good(request, stream, &content(), TAG, ALL),
    });
    // The server's hundred seconds are cut to the longest wait.
    check_whole(&server, &tempfile::tempdir().unwrap());
    assert_eq!((server.starts("HEAD").len(), server.starts("GET").len()), (3, 3));
    let server = Server::start(|_, stream| nothing(stream, "503 Service Unavailable"));
    check_error(&server, server.file("a.bin"), "nothing new (the server answers 503)");
}

#[test]
fn slow_servers_and_silent_ones() {
    let drip = Server::start(|request, stream| {
        good(request, stream, &content(), TAG, 0);
        for part in content().chunks(60_000).take_while(|_| request.method == "GET") {
            thread::sleep(Duration::from_millis(50));
            let _ = stream.write_all(part);
        }
    });
    check_whole(&drip, &tempfile::tempdir().unwrap());
    assert_eq!(drip.starts("GET"), [0]);
    // Says nothing in the middle of the first answer; the next goes on there.
    let silent = Server::start(|request, stream| {
        good(request, stream, &content(), TAG, if request.before == 0 { 50_000 } else { ALL });
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
    let gone = Server { address, requests: Arc::default() };
    check_error(&gone, gone.file("a.bin"), "given up after 3 requests");
}

#[test]
fn a_file_that_changed_is_fetched_anew() {
    let server = Server::start(|request, stream| {
        match request.before {
            0 => good(request, stream, &[7; 300_000], "\"old\"", 100_000),
            _ => good(request, stream, &content(), TAG, ALL),
        };
    });
    check_whole(&server, &tempfile::tempdir().unwrap());
    assert_eq!(server.starts("GET"), [0, 100_000]);
    // So is one whose server does not mind which version was asked for.
    let server = Server::start(|request, stream| match request.before {
        0 => good(request, stream, &[7; 300_000], "\"old\"", 100_000),
        _ => {
            let careless = Request { if_range: None, ..request.clone() };
            good(&careless, stream, &content(), TAG, ALL);
        }
    });
    check_whole(&server, &tempfile::tempdir().unwrap());
    assert_eq!(server.starts("GET"), [0, 100_000, 0]);
}

#[test]
fn what_is_there_already_is_gone_on_with() {
    let server = Server::start(|request, stream| good(request, stream, &content(), TAG, ALL));
    let left = |bytes: &[u8], tag: &str| {
        let dir = tempfile::tempdir().unwrap();
        fs::write(dir.path().join("a.bin.partial"), bytes).unwrap();
        fs::write(dir.path().join("a.bin.partial.tag"), tag).unwrap();
        dir
    };
    let (whole, other) = (content(), vec![1; 300_001]);
    // A part; all but the name; more than there is; no word, or a strange one, of which version.
    let cases: [(&[u8], &str, &[usize]); 5] = [
        (&whole[..250_000], TAG, &[250_000]),
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
    let remote = server.remote(vec![server.file("a.bin")]);
    let plan = DownloadPlan::new(remote, dir.path(), options()).unwrap();
    assert_eq!((plan.bytes, plan.files[0].presence), (50_000, Presence::Partial(250_000)));
}

/// A server that sends a file in half a minute.
fn slow() -> Server {
    Server::start(|request, stream| {
        good(request, stream, &content(), TAG, 0);
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
    let server = Server { address: address.parse().unwrap(), requests: Arc::default() };
    fetch(server.remote(vec![server.file("a.bin")]), Path::new(folder)).unwrap();
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
    let second = fetch(server.remote(vec![server.file("a.bin")]), dir.path());
    assert!(matches!(second, Err(DownloadError::Busy { .. })), "{second:?}");
    child.kill().unwrap();
    child.wait().unwrap();
    assert!(!dir.path().join("a.bin").exists());
    let there = bytes(&partial);
    let server = Server::start(|request, stream| good(request, stream, &content(), TAG, ALL));
    check_whole(&server, &dir);
    assert_eq!(server.starts("GET"), [there as usize]);
}

#[test]
fn an_error_stops_the_other_files() {
    let server = Server::start(|request, stream| match request.path.as_str() {
        "/a.bin" => {
            let at_most = if request.method == "GET" { 1000 } else { ALL };
            good(request, stream, &content(), TAG, at_most);
            thread::sleep(Duration::from_millis(300));
        }
        _ if request.method == "HEAD" => good(request, stream, &content(), TAG, ALL),
        _ => nothing(stream, "410 Gone"),
    });
    let dir = tempfile::tempdir().unwrap();
    let files = vec![server.file("a.bin"), server.file("b.bin"), server.file("c.bin")];
    let error = fetch(server.remote(files), dir.path()).unwrap_err();
    assert!(matches!(error, DownloadError::Status { status: 410, .. }), "{error}");
    assert!(server.starts("GET").len() <= 3);
    assert!(dir.path().join("a.bin.partial").exists());
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
