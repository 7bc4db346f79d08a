//! A TLS server with an authority of its own, and a proxy, on this machine.

#![allow(
    clippy::unwrap_used,
    clippy::missing_panics_doc,
    reason = "the helpers of tests are tests too"
)]

use std::{
    io::{self, BufRead, BufReader, Read, Write},
    net::{Shutdown, SocketAddr, TcpListener, TcpStream},
    sync::{Arc, Mutex},
    thread,
};

use rcgen::{BasicConstraints, CertificateParams, DnType, IsCa, Issuer, KeyPair};
use rustls::{
    ServerConfig, ServerConnection, StreamOwned,
    pki_types::{PrivateKeyDer, PrivatePkcs8KeyDer},
};

/// A server that answers in TLS what a server without it answers.
pub struct TlsServer {
    /// Its address; its certificate is for `localhost`.
    pub port: u16,
    /// The certificate of the authority that signed its own, as a PEM file has it.
    pub authority: String,
}

impl TlsServer {
    /// In front of the server at `plain`, which closes each connection after its answer.
    pub fn before(plain: SocketAddr) -> Self {
        let mut params = CertificateParams::new([]).unwrap();
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        let key = KeyPair::generate().unwrap();
        // Two authorities of one name would be taken for one with a broken signature.
        let name = format!("tests {:02x?}", &key.public_key_raw()[1..9]);
        params.distinguished_name.push(DnType::CommonName, name);
        let authority = params.self_signed(&key).unwrap().pem();
        let issuer = Issuer::new(params, key);
        let key = KeyPair::generate().unwrap();
        let params = CertificateParams::new(["localhost".to_owned()]).unwrap();
        let certificate = params.signed_by(&key, &issuer).unwrap();
        let key = PrivateKeyDer::Pkcs8(PrivatePkcs8KeyDer::from(key.serialize_der()));
        let config =
            ServerConfig::builder_with_provider(rustls::crypto::ring::default_provider().into())
                .with_safe_default_protocol_versions()
                .unwrap()
                .with_no_client_auth()
                .with_single_cert(vec![certificate.der().clone()], key)
                .unwrap();
        let config = Arc::new(config);
        let port = listen(move |stream| {
            let connection = ServerConnection::new(config.clone()).unwrap();
            let _ = relay(StreamOwned::new(connection, stream), plain);
        });
        Self { port, authority }
    }
}

/// Hands one request on to `plain`, and its answer back.
fn relay(
    mut client: StreamOwned<ServerConnection, TcpStream>,
    plain: SocketAddr,
) -> io::Result<()> {
    let mut request = Vec::new();
    while !request.ends_with(b"\r\n\r\n") {
        let mut byte = [0];
        client.read_exact(&mut byte)?;
        request.push(byte[0]);
    }
    let mut server = TcpStream::connect(plain)?;
    server.write_all(&request)?;
    io::copy(&mut server, &mut client)?;
    client.conn.send_close_notify();
    client.flush()
}

/// A proxy that connects to every requested host, or refuses.
pub struct ConnectProxy {
    /// Its address.
    pub port: u16,
    /// The requested hosts, `host:port`.
    pub requests: Arc<Mutex<Vec<String>>>,
}

impl ConnectProxy {
    /// Refuses with the status `refusal` where there is one.
    pub fn start(refusal: Option<&'static str>) -> Self {
        let requests = Arc::new(Mutex::new(Vec::new()));
        let seen = requests.clone();
        let port = listen(move |stream| {
            let _ = lead(stream, &seen, refusal);
        });
        Self { port, requests }
    }
}

fn lead(client: TcpStream, seen: &Mutex<Vec<String>>, refusal: Option<&str>) -> io::Result<()> {
    let mut lines = BufReader::new(&client).lines();
    let first = lines.next().unwrap_or_else(|| Ok(String::new()))?;
    let target = first.split(' ').nth(1).unwrap_or_default().to_owned();
    assert!(first.starts_with("CONNECT "), "{first}");
    while !lines.next().unwrap_or_else(|| Ok(String::new()))?.is_empty() {}
    seen.lock().unwrap().push(target.clone());
    if let Some(status) = refusal {
        return write!(&client, "HTTP/1.1 {status}\r\nContent-Length: 0\r\n\r\n");
    }
    let server = TcpStream::connect(target)?;
    write!(&client, "HTTP/1.1 200 OK\r\n\r\n")?;
    let (mut from, mut to) = (client.try_clone()?, server.try_clone()?);
    thread::spawn(move || {
        let _ = io::copy(&mut from, &mut to);
        let _ = to.shutdown(Shutdown::Write);
    });
    io::copy(&mut &server, &mut &client)?;
    client.shutdown(Shutdown::Both)
}

/// Serves each connection in a thread of its own; gives the port.
fn listen(serve: impl Fn(TcpStream) + Send + Sync + 'static) -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    let serve = Arc::new(serve);
    thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            let serve = serve.clone();
            thread::spawn(move || serve(stream));
        }
    });
    port
}
