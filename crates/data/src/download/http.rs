//! HTTP requests for a part of a file, to allowed hosts only.

use std::time::Duration;

use base64::prelude::{BASE64_STANDARD as STANDARD, Engine};
use ureq::http::header::{
    CONTENT_ENCODING, CONTENT_LENGTH, CONTENT_RANGE, ETAG, HeaderName, IF_RANGE, LAST_MODIFIED,
    LOCATION, RANGE, RETRY_AFTER, TRANSFER_ENCODING,
};
use ureq::http::{Response, Uri};
use ureq::tls::TlsConfig;
use ureq::{Agent, Body, Error, Proxy};

use crate::download::{DownloadError, DownloadOptions, trust};

/// The header with hashes of the whole file in Google's object storage: `crc32c=…`, `md5=…`.
const GOOGLE_HASH: &str = "x-goog-hash";

/// Maximum number of redirects of a request.
const MAX_REDIRECTS: usize = 5;

/// The HTTP client of the allowed hosts.
pub(super) struct Client {
    agent: Agent,
    hosts: Vec<String>,
}

/// A server's answer.
pub(super) enum Answer {
    /// The file, or a part of it.
    Part(Part),
    /// The requested part begins at or after the file's end.
    BeyondEnd {
        /// Size of the whole file, if the server sends it.
        total: Option<u64>,
    },
    /// A temporary failure.
    Later {
        /// The failure.
        reason: String,
        /// The wait that the server requires.
        wait: Option<Duration>,
    },
}

/// The file, or its part from byte `start` on.
pub(super) struct Part {
    /// The index of the first byte.
    pub start: u64,
    /// The byte after the last, if the server sends it.
    pub end: Option<u64>,
    /// Size of the whole file, if the server sends it.
    pub total: Option<u64>,
    /// Whether a broken connection can be distinguished from the end of the answer.
    pub ends_visibly: bool,
    /// The identifier of this version of the file, if the server sends one.
    pub tag: Option<String>,
    /// CRC-32C of the whole file, if the server sends it.
    pub crc32c: Option<u32>,
    /// The bytes; none if only the size was requested.
    pub body: Box<Body>,
}

impl Client {
    /// # Errors
    /// If the environment names a file of trusted authorities without a certificate.
    pub fn new(hosts: &[String], options: &DownloadOptions) -> Result<Self, DownloadError> {
        let trusted = TlsConfig::builder().root_certs(trust::authorities()?).build();
        let agent = Agent::config_builder()
            .http_status_as_error(false)
            // Redirects are followed here, where the host can be checked.
            .max_redirects(0)
            .timeout_connect(Some(options.silence))
            .timeout_recv_response(Some(options.silence))
            .timeout_per_read(Some(options.silence))
            .tls_config(trusted)
            .user_agent(concat!("overtone/", env!("CARGO_PKG_VERSION")))
            // The stored bytes of the file, without an encoding.
            .accept_encoding("identity")
            .proxy(if options.proxy { Proxy::try_from_env() } else { None });
        Ok(Self { agent: agent.build().into(), hosts: hosts.to_vec() })
    }

    /// Requests the size of a file.
    ///
    /// # Errors
    /// As [`Client::get`].
    pub fn head(&self, url: &str) -> Result<Answer, DownloadError> {
        self.ask(url, None, true)
    }

    /// Requests a whole document.
    ///
    /// # Errors
    /// As [`Client::get`].
    pub fn document(&self, url: &str) -> Result<Answer, DownloadError> {
        self.ask(url, None, false)
    }

    /// Requests a file from byte `start` if its version is `version`, else the whole file.
    ///
    /// # Errors
    /// If the server does not have the file, or redirects to a host that is not allowed.
    pub fn get(
        &self,
        url: &str,
        start: u64,
        version: Option<&str>,
    ) -> Result<Answer, DownloadError> {
        self.ask(url, Some((start, version)), false)
    }

    fn ask(
        &self,
        first: &str,
        part: Option<(u64, Option<&str>)>,
        head: bool,
    ) -> Result<Answer, DownloadError> {
        let mut url = self.allowed(first, first)?;
        for _ in 0..=MAX_REDIRECTS {
            let text = url.to_string();
            let mut request = if head { self.agent.head(&text) } else { self.agent.get(&text) };
            if let Some((start, version)) = part {
                request = request.header(RANGE, format!("bytes={start}-"));
                if let Some(version) = version.filter(|_| start > 0) {
                    request = request.header(IF_RANGE, version);
                }
            }
            let response = match request.call() {
                Ok(response) => response,
                Err(error) => return self.failed(&url, &error),
            };
            if let 301 | 302 | 303 | 307 | 308 = response.status().as_u16() {
                let to = header(&response, LOCATION).unwrap_or_default();
                url = self.sent_on(first, &url, &to)?;
                continue;
            }
            return answer(first, response, head);
        }
        Err(DownloadError::Redirects { url: first.into(), limit: MAX_REDIRECTS })
    }

    /// `url`, if its host is allowed; `first` is the address that it comes from.
    fn allowed(&self, first: &str, url: &str) -> Result<Uri, DownloadError> {
        let refuse =
            |reason: &str| DownloadError::Address { url: url.into(), reason: reason.into() };
        let uri: Uri = url.parse().map_err(|_| refuse("it is malformed"))?;
        let (Some(scheme), Some(authority)) = (uri.scheme_str(), uri.authority()) else {
            return Err(refuse("it has no scheme or no host"));
        };
        if !["http", "https"].contains(&scheme) {
            return Err(refuse("its scheme is neither http nor https"));
        }
        // The whole authority is compared: neither a user's name nor another port is accepted.
        let host = authority.as_str().to_lowercase();
        let is = |known: &String| {
            host == *known || known.starts_with('.') && host.ends_with(known) && !host.contains('@')
        };
        if !self.hosts.iter().any(is) {
            let allowed = self.hosts.join(", ");
            return Err(DownloadError::Host { url: first.into(), host, allowed });
        }
        Ok(uri)
    }

    /// The address to which `from` redirects with `to`, an address or a path.
    fn sent_on(&self, first: &str, from: &Uri, to: &str) -> Result<Uri, DownloadError> {
        let scheme = from.scheme_str().unwrap_or("https");
        let to = match to {
            to if to.starts_with("//") => format!("{scheme}:{to}"),
            to if to.starts_with('/') => {
                format!("{scheme}://{}{to}", from.authority().map_or("", |host| host.as_str()))
            }
            to => to.to_owned(),
        };
        let uri = self.allowed(first, &to)?;
        if scheme == "https" && uri.scheme_str() != Some("https") {
            let reason = "an encrypted address redirects to it, and it is not encrypted".into();
            return Err(DownloadError::Address { url: to, reason });
        }
        Ok(uri)
    }

    /// The meaning of `error`: some errors are permanent.
    fn failed(&self, uri: &Uri, error: &Error) -> Result<Answer, DownloadError> {
        let (url, mut reason) = (uri.to_string(), error.to_string());
        if let Some((_, why)) = reason.split_once("invalid peer certificate: ") {
            return Err(DownloadError::Certificate {
                url,
                hint: trust::hint(why),
                why: why.into(),
            });
        }
        if let Some(proxy) = self.agent.config().proxy().filter(|proxy| !proxy.is_no_proxy(uri)) {
            let proxy = format!("the proxy {}:{}", proxy.host(), proxy.port());
            if let Error::ConnectProxyFailed(why) = error
                && why.contains("responded 4")
            {
                return Err(DownloadError::ProxyRefuses { url, proxy, why: why.clone() });
            }
            reason = format!("{reason}, through {proxy}");
        }
        Ok(Answer::Later { reason, wait: None })
    }
}

fn answer(url: &str, response: Response<Body>, head: bool) -> Result<Answer, DownloadError> {
    let status = response.status().as_u16();
    let chunked = header(&response, TRANSFER_ENCODING).is_some();
    // If an answer is chunked, a length next to the chunks means nothing.
    let length = header(&response, CONTENT_LENGTH).filter(|_| !chunked);
    let length = length.and_then(|length| length.parse().ok());
    // Weak tags mark equivalent versions, whose bytes may differ.
    let strong = |etag: &String| !etag.starts_with("W/");
    let tag = header(&response, ETAG).filter(strong);
    let tag = tag.or_else(|| header(&response, LAST_MODIFIED));
    let (start, end, total) = match status {
        200 => (0, length, length),
        206 => match header(&response, CONTENT_RANGE).as_deref().and_then(range) {
            Some((start, end, total)) => (start, Some(end), total),
            None => {
                let reason = "a part without a usable Content-Range".into();
                return Ok(Answer::Later { reason, wait: None });
            }
        },
        416 => {
            let range = header(&response, CONTENT_RANGE);
            let total = range.as_deref().and_then(|range| range.strip_prefix("bytes */"));
            return Ok(Answer::BeyondEnd { total: total.and_then(|total| total.parse().ok()) });
        }
        408 | 425 | 429 | 500..=599 => {
            let seconds = header(&response, RETRY_AFTER).and_then(|wait| wait.parse().ok());
            let reason = format!("the server answers {status}");
            return Ok(Answer::Later { reason, wait: seconds.map(Duration::from_secs) });
        }
        _ => return Err(DownloadError::Status { url: url.into(), status }),
    };
    if let Some(encoding) = header(&response, CONTENT_ENCODING).filter(|name| name != "identity") {
        return Err(DownloadError::Encoded { url: url.into(), encoding });
    }
    let hashes =
        response.headers().get_all(GOOGLE_HASH).iter().filter_map(|hash| hash.to_str().ok());
    let crc32c = hashes.flat_map(|hashes| hashes.split(',')).find_map(|hash| crc32c(hash.trim()));
    let ends_visibly = head || chunked || length.is_some();
    let body = Box::new(response.into_body());
    Ok(Answer::Part(Part { start, end, total, ends_visibly, tag, crc32c, body }))
}

fn header(response: &Response<Body>, name: HeaderName) -> Option<String> {
    response.headers().get(name)?.to_str().ok().map(ToOwned::to_owned)
}

/// The checksum in `crc32c=n03x6A==`: base64 of its four bytes, the highest first.
fn crc32c(text: &str) -> Option<u32> {
    let bytes = STANDARD.decode(text.strip_prefix("crc32c=")?).ok()?;
    Some(u32::from_be_bytes(bytes.try_into().ok()?))
}

/// The first byte, the one after the last, and the total of `bytes 5-9/10`; the total may be
/// `*`, unknown.
fn range(text: &str) -> Option<(u64, u64, Option<u64>)> {
    let (part, total) = text.strip_prefix("bytes ")?.split_once('/')?;
    let (start, last) = part.split_once('-')?;
    let total: Option<u64> = if total == "*" { None } else { Some(total.parse().ok()?) };
    let (start, last): (u64, u64) = (start.parse().ok()?, last.parse().ok()?);
    let fits = start <= last && total.is_none_or(|total| last < total);
    Some((start, last.checked_add(1)?, total)).filter(|_| fits)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn client() -> Client {
        Client::new(
            &["a.org".into(), "b.org:8080".into(), ".c.org".into()],
            &DownloadOptions::default(),
        )
        .unwrap()
    }

    #[test]
    fn hosts() {
        let client = client();
        let allowed = |url: &str| client.allowed(url, url).is_ok();
        for good in
            ["https://a.org/x", "http://A.org/x?y", "http://b.org:8080/", "https://x.y.c.org/"]
        {
            assert!(allowed(good), "{good}");
        }
        for bad in [
            "https://b.org/x",
            "https://a.org:8080/x",
            "https://a.org.evil.com/x",
            "https://a.org@evil.com/x",
            "https://user@a.org/x",
            "ftp://a.org/x",
            "file:///etc/passwd",
            "/x",
            "a.org/x",
            "",
            "https://sub.a.org/x",
            "https://c.org/x",
            "https://xc.org/x",
            "https://x.c.org:8080/x",
            "https://a.org@x.c.org/x",
        ] {
            assert!(!allowed(bad), "{bad}");
        }
    }

    #[test]
    fn where_a_server_sends_on_to() {
        let client = client();
        let from = |url: &str, to: &str| {
            let from = url.parse().unwrap();
            client.sent_on("first", &from, to).map(|to| to.to_string()).ok()
        };
        let secure = "https://a.org/x";
        assert_eq!(from(secure, "/y").unwrap(), "https://a.org/y");
        assert_eq!(from(secure, "//a.org/y").unwrap(), "https://a.org/y");
        assert_eq!(from("http://b.org:8080/x", "https://a.org/z").unwrap(), "https://a.org/z");
        assert_eq!(from(secure, "http://a.org/y"), None);
        assert_eq!(from(secure, "//evil.com/y"), None);
        assert_eq!(from(secure, "https://evil.com/y"), None);
        assert_eq!(from(secure, "y"), None);
        assert_eq!(from(secure, ""), None);
    }

    #[test]
    fn checksums() {
        // 9f 4d f1 e8, as coreutils' `base64` writes it.
        assert_eq!(crc32c("crc32c=n03x6A=="), Some(0x9f4d_f1e8));
        assert_eq!(crc32c("crc32c=AAAAAA=="), Some(0));
        assert_eq!(crc32c("crc32c=/////w=="), Some(u32::MAX));
        for bad in ["", "crc32c=", "n03x6A==", "md5=n03x6A==", "crc32c=n03x6A", "crc32c=n03x6-=="] {
            assert_eq!(crc32c(bad), None, "{bad}");
        }
    }

    #[test]
    fn ranges() {
        assert_eq!(range("bytes 5-9/10"), Some((5, 10, Some(10))));
        assert_eq!(range("bytes 0-9/*"), Some((0, 10, None)));
        for bad in [
            "",
            "bytes",
            "bytes */10",
            "bytes 5-9",
            "bytes a-9/10",
            "5-9/10",
            "bytes 5-9/x",
            "bytes 5-4/10",
            "bytes 5-10/10",
            "bytes 0-18446744073709551615/*",
        ] {
            assert_eq!(range(bad), None, "{bad}");
        }
    }
}
