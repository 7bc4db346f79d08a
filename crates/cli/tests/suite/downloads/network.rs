//! Downloads through networks of companies and universities, with their own authorities and
//! proxies.

use std::{fs, path::PathBuf};

use overtone_testkit::{
    desk::{ProgramOutput, said},
    tls::{ConnectProxy, TlsServer},
    web_server::WebServer,
};

use super::Mirror;

/// A robot's data behind TLS.
struct Secure {
    mirror: Mirror,
    plain: WebServer,
    server: TlsServer,
    /// The file of the server's authority.
    authority: PathBuf,
}

impl Secure {
    fn new() -> Self {
        let mirror = Mirror::new();
        let plain = WebServer::of_folder(mirror.robots.clone(), 1_000_000);
        let server = TlsServer::before(plain.address);
        let authority = mirror.desk.path("authority.pem");
        fs::write(&authority, &server.authority).unwrap();
        Self { mirror, plain, server, authority }
    }

    /// `download` with `words` from the server, with the environment variables `variables`.
    fn run(&self, words: &str, variables: &[(&str, &str)]) -> ProgramOutput {
        let from = format!("from=https://localhost:{}", self.server.port);
        let line = format!("download env=hopper dataset=medium {from} {words}");
        let mut command = self.mirror.command(&line);
        command.env("SSL_CERT_FILE", &self.authority);
        for (name, value) in variables {
            match *value {
                "" => command.env_remove(name),
                value => command.env(name, value),
            };
        }
        said(command.output().unwrap())
    }

    fn requests(&self) -> usize {
        self.plain.requests.lock().unwrap().len()
    }
}

fn succeeded(said: &ProgramOutput) {
    assert_eq!((said.code, said.stderr.as_str()), (Some(0), ""), "{}", said.stdout);
}

#[test]
fn an_authority_that_the_environment_names_is_trusted() {
    let secure = Secure::new();
    // Its first answer breaks off, as over an unreliable line.
    succeeded(&secure.run("", &[]));
    let file = secure.mirror.desk.path("datasets/published/d4rl/hopper_medium-v2.hdf5");
    let original = secure.mirror.robots.join("hopper_medium-v2.hdf5");
    assert!(fs::read(file).unwrap() == fs::read(original).unwrap());
    assert_eq!(secure.plain.starts("GET"), [0, 1_000_000]);
}

#[test]
fn an_unknown_authority_is_refused_at_once() {
    let secure = Secure::new();
    secure.run("plan=true", &[("SSL_CERT_FILE", "")]).refused();
    let other = TlsServer::before(secure.plain.address);
    let another = secure.mirror.desk.path("another.pem");
    fs::write(&another, &other.authority).unwrap();
    let another = another.to_str().unwrap();
    secure.run("plan=true", &[("SSL_CERT_FILE", another)]).refused();
    // An invalid file is an error; ignoring it would trust other authorities than it names.
    let none = secure.mirror.desk.path("none.pem");
    secure.run("plan=true", &[("SSL_CERT_FILE", none.to_str().unwrap())]).refused();
    fs::write(&none, "no certificate").unwrap();
    secure.run("plan=true", &[("SSL_CERT_FILE", none.to_str().unwrap())]).refused();
    assert_eq!(secure.requests(), 0);
}

#[test]
fn a_certificate_for_another_name_is_refused() {
    let secure = Secure::new();
    let from = format!("from=https://127.0.0.1:{}", secure.server.port);
    // The last word counts.
    let said = secure.run(&format!("plan=true {from}"), &[]);
    said.refused();
    assert_eq!(secure.requests(), 0);
}

#[test]
fn a_proxy_leads_to_the_server() {
    let secure = Secure::new();
    let proxy = ConnectProxy::start(None);
    let address = format!("http://127.0.0.1:{}", proxy.port);
    succeeded(&secure.run("", &[("HTTPS_PROXY", &address)]));
    let target = format!("localhost:{}", secure.server.port);
    let asked = proxy.requests.lock().unwrap().clone();
    assert!(asked.len() >= 2 && asked.iter().all(|asked| *asked == target), "{asked:?}");
}

#[test]
fn hosts_of_no_proxy_are_requested_directly() {
    let secure = Secure::new();
    let proxy = ConnectProxy::start(None);
    let address = format!("http://127.0.0.1:{}", proxy.port);
    for direct in ["localhost", "x.org,LOCALHOST", "*"] {
        let said = secure.run("plan=true", &[("https_proxy", &address), ("NO_PROXY", direct)]);
        succeeded(&said);
    }
    assert_eq!(*proxy.requests.lock().unwrap(), [""; 0]);
    assert_eq!(secure.requests(), 3);
    succeeded(&secure.run("plan=true", &[("ALL_PROXY", &address), ("NO_PROXY", "x.org")]));
    assert_eq!(proxy.requests.lock().unwrap().len(), 1);
}

#[test]
fn a_proxy_that_does_not_lead_there_is_named() {
    let secure = Secure::new();
    let at = |port: u16| format!("http://me:secret@127.0.0.1:{port}");
    let refused = |status| {
        let proxy = ConnectProxy::start(Some(status));
        let said = secure.run("plan=true", &[("HTTPS_PROXY", &at(proxy.port))]);
        said.refused();
        assert!(!said.stderr.contains("secret"), "{}", said.stderr);
        assert_eq!(proxy.requests.lock().unwrap().len(), 1);
    };
    refused("407 Proxy Authentication Required");
    refused("403 Forbidden");
    // Without an answer the request is repeated, because the proxy may be down for a moment.
    let said = secure.run("plan=true", &[("ALL_PROXY", "http://localhost:1")]);
    said.refused();
    assert_eq!(secure.requests(), 0);
}
