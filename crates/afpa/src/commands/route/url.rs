//! The URL of the command line, the listener that it reaches, and the fields of its request.

use afpa_http::Host;
use afpa_router::ListenerId;
use anyhow::{Context as _, bail};

use afpa_config::{Listen, Routes};

/// A URL in its parts.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Url<'u> {
    pub(super) host: &'u str,
    /// `None`: any.
    pub(super) port: Option<u16>,
    pub(super) path: &'u str,
    pub(super) query: Option<&'u str>,
}

impl<'u> Url<'u> {
    pub(super) fn parse(text: &'u str) -> anyhow::Result<Self> {
        let text = text.split('#').next().unwrap_or(text);
        let (authority, default, rest) = match text.split_once("://") {
            // There may be a whole URL in its query.
            _ if text.starts_with('/') => ("", None, text),
            Some((scheme @ ("http" | "https"), rest)) => {
                let end = rest.find(['/', '?']).unwrap_or(rest.len());
                let (authority, rest) = rest.split_at(end);
                (authority, Some(if scheme == "http" { 80 } else { 443 }), rest)
            }
            _ => bail!("\"{text}\" is neither a URL nor a path: write http://example.org/ or /"),
        };
        let (path, query) = match rest.split_once('?') {
            Some((path, query)) => (path, Some(query)),
            None => (rest, None),
        };
        let path = if path.is_empty() { "/" } else { path };
        if authority.is_empty() {
            return Ok(Url { host: "", port: None, path, query });
        }
        let host = Host::parse(authority.as_bytes());
        let host = host.map_err(|_| anyhow::anyhow!("\"{authority}\" is not a host"))?;
        Ok(Url { host: host.name(), port: host.port().or(default), path, query })
    }
}

/// The listener of the request: the one of the option, else one at the URL's port, preferably with a site for the host.
pub(super) fn listener(
    routes: &Routes,
    url: &Url<'_>,
    told: Option<&str>,
) -> anyhow::Result<(ListenerId, &'static str)> {
    let all = || {
        routes.listeners.listeners().iter().zip(0..).map(|(listen, id)| (listen, ListenerId(id)))
    };
    if let Some(told) = told {
        let found = all().find(|(listen, _)| listen.to_string() == told);
        let names: Vec<String> = all().map(|(listen, _)| listen.to_string()).collect();
        let (_, id) = found
            .with_context(|| format!("no site listens on {told}: there is {}", names.join(", ")))?;
        return Ok((id, ""));
    }
    let has_port = |listen: &Listen| match (listen, url.port) {
        (_, None) => true,
        (Listen::Tcp(address), Some(port)) => address.port() == port,
        (Listen::Unix(_), Some(_)) => false,
    };
    let fitting: Vec<ListenerId> =
        all().filter(|(listen, _)| has_port(listen)).map(|(_, id)| id).collect();
    let knows = |id: &&ListenerId| routes.router.site(**id, url.host).is_some();
    if let Some(id) = fitting.iter().find(knows).or(fitting.first()) {
        return Ok((*id, ""));
    }
    let first = all().find(|(_, id)| routes.router.site(*id, url.host).is_some());
    let first = first.or_else(|| all().next()).context("no site listens anywhere")?;
    Ok((first.1, "  (nothing listens on the port of the URL)"))
}

pub(super) fn field(line: &str) -> anyhow::Result<(String, String)> {
    let (name, value) = line
        .split_once(':')
        .with_context(|| format!("\"{line}\" is not a field: write --header 'Cookie: beta=yes'"))?;
    Ok((name.trim().to_owned(), value.trim().to_owned()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn urls_have_parts() {
        let url = Url::parse("http://[::1]:8080/a?b#c").unwrap();
        assert_eq!(url, Url { host: "[::1]", port: Some(8080), path: "/a", query: Some("b") });
        let url = Url::parse("https://a.org?x").unwrap();
        assert_eq!(url, Url { host: "a.org", port: Some(443), path: "/", query: Some("x") });
        let url = Url::parse("/a").unwrap();
        assert_eq!(url, Url { host: "", port: None, path: "/a", query: None });
        let url = Url::parse("/a?to=https://b.org/?c").unwrap();
        assert_eq!((url.host, url.path, url.query), ("", "/a", Some("to=https://b.org/?c")));
        assert!(Url::parse("ftp://a/").is_err() && Url::parse("a").is_err());
        assert!(Url::parse("http://a b/").is_err());
    }
}
