//! Which authorities may sign a server's certificate: those that the system trusts.

use std::env;
use std::ffi::OsString;

use rustls_native_certs::load_native_certs;
use ureq::tls::{Certificate, RootCerts};

use crate::download::DownloadError;

/// The variable that names other authorities than the system's, for OpenSSL and so for most
/// programs.
const VARIABLES: [&str; 2] = ["SSL_CERT_FILE", "SSL_CERT_DIR"];

/// The authorities of the file and the folder that the environment names, else the system's;
/// Mozilla's, which are compiled in, on a system that has none.
///
/// # Errors
/// When the environment names a file or folder without a certificate.
pub(super) fn authorities() -> Result<RootCerts, DownloadError> {
    let found = load_native_certs();
    if !found.certs.is_empty() {
        let certificates = found.certs.iter().map(|der| Certificate::from_der(der).to_owned());
        return Ok(certificates.into());
    }
    match named() {
        None => Ok(RootCerts::WebPki),
        Some((variable, value)) => {
            let value = value.to_string_lossy().into_owned();
            let reason = found.errors.first().map_or(String::new(), |why| format!(" ({why})"));
            Err(DownloadError::Authorities { variable, value, reason })
        }
    }
}

/// Advice for a certificate that is not trusted.
pub(super) fn hint(why: &str) -> String {
    if why != "UnknownIssuer" {
        return String::new();
    }
    let trusted = named().map_or("this system's certificates".into(), |(variable, value)| {
        format!("{variable}={}", value.to_string_lossy())
    });
    format!(
        ". Its authority is not in {trusted}. If a proxy of your network signs certificates, set \
         SSL_CERT_FILE to the PEM file of the proxy's authority"
    )
}

/// The variable that is set, and its value.
fn named() -> Option<(&'static str, OsString)> {
    VARIABLES.into_iter().find_map(|name| Some((name, env::var_os(name)?)))
}
