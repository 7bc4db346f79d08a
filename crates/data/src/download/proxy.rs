//! The proxies that the environment names for addresses.
//!
//! `ureq` reads the environment itself, but takes one proxy for every address, passes over
//! one that it cannot read, and knows fewer forms of `NO_PROXY`. Here it is as `curl` does it.

use std::fmt;

use ureq::Proxy;
use ureq::http::Uri;

use crate::download::DownloadError;

/// The proxies for encrypted and for plain addresses.
#[derive(Default)]
pub(super) struct Proxies {
    https: Option<Through>,
    http: Option<Through>,
    /// The value of `NO_PROXY`.
    direct: String,
}

/// A proxy.
pub(super) struct Through {
    /// The proxy itself.
    pub proxy: Proxy,
    /// The variable that names it.
    variable: &'static str,
}

impl fmt::Display for Through {
    /// Its host and port, without the user's name and password.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { proxy, variable } = self;
        write!(f, "the proxy {}:{} that {variable} names", proxy.host(), proxy.port())
    }
}

impl Proxies {
    /// The proxies in `HTTPS_PROXY` and `HTTP_PROXY`, or else in `ALL_PROXY`, with the exceptions
    /// in `NO_PROXY`; in small letters or capitals.
    ///
    /// # Errors
    /// If one of them is not a proxy's address.
    pub fn from_env() -> Result<Self, DownloadError> {
        Self::new(|name| std::env::var(name).ok())
    }

    fn new(variable: impl Fn(&str) -> Option<String>) -> Result<Self, DownloadError> {
        let set = |name: &str| variable(name).filter(|value| !value.trim().is_empty());
        let first_of = |names: [&'static str; 4]| {
            let found = names.into_iter().find_map(|name| Some((name, set(name)?)));
            found.map(|(variable, value)| Through::new(variable, value.trim())).transpose()
        };
        Ok(Self {
            https: first_of(["https_proxy", "HTTPS_PROXY", "all_proxy", "ALL_PROXY"])?,
            http: first_of(["http_proxy", "HTTP_PROXY", "all_proxy", "ALL_PROXY"])?,
            direct: set("no_proxy").or_else(|| set("NO_PROXY")).unwrap_or_default(),
        })
    }

    /// The proxy for `uri`; none if requests go to it directly.
    pub fn of(&self, uri: &Uri) -> Option<&Through> {
        let secure = uri.scheme_str() == Some("https");
        let proxy = if secure { &self.https } else { &self.http };
        let port = uri.port_u16().unwrap_or(if secure { 443 } else { 80 });
        proxy.as_ref().filter(|_| !is_listed(&self.direct, uri.host().unwrap_or_default(), port))
    }
}

impl Through {
    fn new(variable: &'static str, value: &str) -> Result<Self, DownloadError> {
        let proxy = Proxy::new(value).map_err(|_| DownloadError::Proxy { variable })?;
        Ok(Self { proxy, variable })
    }

    /// Advice for a proxy that refuses for the reason `why`.
    pub fn hint(&self, why: &str) -> String {
        let variable = self.variable;
        match why.contains("responded 407") {
            true => {
                format!("without a password (407): set {variable}=http://user:password@host:port")
            }
            false => format!("({why}): correct {variable}, or name the host in NO_PROXY"),
        }
    }
}

/// Whether `list` has the host: by its name or the name of a domain it is in, with or without a dot
/// before it, alone or with the port; `*` is every host.
fn is_listed(list: &str, host: &str, port: u16) -> bool {
    let host = host.trim_matches(['[', ']']).to_ascii_lowercase();
    let entries = list.split([',', ' ']).map(|entry| entry.trim().to_ascii_lowercase());
    entries.filter(|entry| !entry.is_empty()).any(|entry| {
        // An IPv6 address has colons of its own, so the port stands after `]`.
        let own_port = entry.rsplit_once(':').and_then(|(name, port)| {
            let whole = name.ends_with(']') || !name.contains(':');
            Some((name, port.parse::<u16>().ok()?)).filter(|_| whole)
        });
        let (name, only) = own_port.map_or((&*entry, None), |(name, port)| (name, Some(port)));
        let name = name.trim_start_matches('*').trim_start_matches('.').trim_matches(['[', ']']);
        let within = host.strip_suffix(name).is_some_and(|rest| {
            rest.is_empty() || rest.ends_with('.') || (name.is_empty() && entry.starts_with('*'))
        });
        within && only.is_none_or(|only| only == port)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The proxy for `url` with these environment variables.
    fn of(variables: &[(&str, &str)], url: &str) -> Option<String> {
        let set = |name: &str| {
            let mut all = variables.iter();
            all.find(|(known, _)| *known == name).map(|(_, value)| (*value).to_owned())
        };
        let proxies = Proxies::new(set).unwrap();
        proxies.of(&url.parse().unwrap()).map(ToString::to_string)
    }

    #[test]
    fn each_scheme_has_its_proxy() {
        let secure = [("HTTPS_PROXY", "http://u:secret@p.org:3128"), ("HTTP_PROXY", "q.org")];
        let named = "the proxy p.org:3128 that HTTPS_PROXY names";
        assert_eq!(of(&secure, "https://a.org/x").unwrap(), named);
        assert_eq!(
            of(&secure, "http://a.org/x").unwrap(),
            "the proxy q.org:80 that HTTP_PROXY names"
        );
        assert_eq!(of(&secure[..1], "http://a.org/x"), None);
        let all = [("ALL_PROXY", "socks5://p.org"), ("https_proxy", ""), ("no_proxy", " ")];
        let named = "the proxy p.org:1080 that ALL_PROXY names";
        assert_eq!(of(&all, "https://a.org/x").unwrap(), named);
        assert_eq!(of(&all, "http://a.org/x").unwrap(), named);
        let both = [("HTTPS_PROXY", "q.org"), ("https_proxy", "p.org")];
        assert_eq!(of(&both, "https://a/").unwrap(), "the proxy p.org:80 that https_proxy names");
        assert_eq!(of(&[], "https://a.org/x"), None);
    }

    #[test]
    fn what_is_no_proxy_is_refused_without_its_password() {
        for bad in ["ftp://u:secret@p.org", "http://", "http://p org", "http://u:%ff@p.org"] {
            let set = |name: &str| (name == "HTTPS_PROXY").then(|| bad.to_owned());
            let Err(error) = Proxies::new(set) else { panic!("{bad}") };
            let said = error.to_string();
            assert!(said.starts_with("HTTPS_PROXY is not the address of a proxy"), "{said}");
            assert!(!said.contains("secret"), "{said}");
        }
    }

    #[test]
    fn hosts_that_are_asked_directly() {
        let listed = |list: &str| is_listed(list, "data.A.org", 443);
        for list in [
            "*",
            "data.a.org",
            "a.org",
            ".a.org",
            "*.a.org",
            "x, A.org",
            "x a.org",
            "org",
            "a.org:443",
            "*:443",
        ] {
            assert!(listed(list), "{list}");
        }
        for list in
            ["", ",", "ta.a.org", "x.data.a.org", "a.org:80", "b.org", ".", "a.*", "*ta.a.org"]
        {
            assert!(!listed(list), "{list}");
        }
        assert!(is_listed("127.0.0.1", "127.0.0.1", 80));
        assert!(!is_listed("7.0.0.1", "127.0.0.1", 80));
        for list in ["::1", "[::1]", "[::1]:80"] {
            assert!(is_listed(list, "[::1]", 80), "{list}");
        }
        assert!(!is_listed("[::1]:80", "[::1]", 443));
    }
}
