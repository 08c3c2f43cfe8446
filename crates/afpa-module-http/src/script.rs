//! Scripts: files that a server of FastCGI runs, and that are never sent.

use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;

use afpa_fastcgi::put_param;
use afpa_http::target::ESCAPED_SLASH;
use afpa_http::{Coding, Request};
use afpa_proxy::request::{Origin, scheme};
use afpa_router::Scripts;

const EXTENSION: &[u8] = b".php";

/// A script that a path leads to.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Script {
    /// Its path below the root.
    pub(crate) path: Vec<u8>,
    /// The rest of the path that was asked for, without escapes: it begins with a slash, or is empty (PATH_INFO).
    pub(crate) info: Vec<u8>,
}

impl Script {
    /// The script whose name ends at `end` of a path.
    pub(crate) fn at(path: &[u8], end: usize) -> Self {
        let (path, info) = path.split_at_checked(end).unwrap_or((path, b""));
        let slash = |byte: &u8| if *byte == ESCAPED_SLASH { b'/' } else { *byte };
        Self { path: path.to_vec(), info: info.iter().map(slash).collect() }
    }
}

/// A script, and how it is run.
#[derive(Clone, Copy)]
pub(crate) struct Run<'a> {
    pub(crate) scripts: &'a Scripts,
    pub(crate) script: &'a Script,
}

/// Whether a path ends with the name of a script. The case of letters does not matter: on some file systems it does not
/// matter for the name.
pub(crate) fn is_script(path: &[u8]) -> bool {
    let begin = path.len().saturating_sub(EXTENSION.len());
    path.get(begin..).is_some_and(|end| end.eq_ignore_ascii_case(EXTENSION))
}

/// Whether a path ends with the name of a script, or of a stored coding of one.
pub(crate) fn is_source(path: &[u8]) -> bool {
    let codings = Coding::ALL.iter().map(|coding| coding.file_suffix().as_bytes());
    codings.filter_map(|suffix| path.strip_suffix(suffix)).any(is_script)
}

/// The ends of all parts of a path that could be scripts.
pub(crate) fn ends(path: &[u8]) -> impl Iterator<Item = usize> {
    let slashes = memchr::memchr_iter(b'/', path).skip(1);
    slashes.chain([path.len()]).filter(|end| path.get(..*end).is_some_and(is_script))
}

/// The facts of a request beside its head.
#[derive(Clone, Copy)]
pub(crate) struct Told<'a> {
    /// The client, as a trusted router in front names it.
    pub(crate) client: Option<IpAddr>,
    pub(crate) origin: Origin<'a>,
    /// Its port; 0: unknown.
    pub(crate) port: u16,
    /// The user whose password was checked.
    pub(crate) user: Option<&'a str>,
    /// The address at which the request came in.
    pub(crate) listener: Option<SocketAddr>,
}

/// The parameters of a request beside those that its head tells: those of nginx's `fastcgi_params`.
pub(crate) fn params(request: &Request<'_, '_>, run: Run<'_>, told: Told<'_>) -> Arc<[u8]> {
    let Run { scripts, script } = run;
    let mut out = Vec::with_capacity(1024);
    let mut put = |name: &str, value: &[u8]| {
        if !scripts.params.iter().any(|(own, _)| own == name) {
            put_param(&mut out, name.as_bytes(), value);
        }
    };
    let sent = request.sent_target();
    let name = [&scripts.mount, &script.path[..]].concat();
    put("GATEWAY_INTERFACE", b"CGI/1.1");
    put("SERVER_SOFTWARE", b"afpa");
    put("SERVER_PROTOCOL", request.version.name().as_bytes());
    put("QUERY_STRING", request.target.query().unwrap_or_default());
    let path = sent.path().unwrap_or_default();
    let uri = match sent.query() {
        Some(query) => &[path, b"?", query].concat()[..],
        None => path,
    };
    put("REQUEST_URI", uri);
    put("SCRIPT_NAME", &name);
    put("SCRIPT_FILENAME", &[&scripts.root, &script.path[..]].concat());
    put("DOCUMENT_URI", &[&name[..], &script.info].concat());
    put("DOCUMENT_ROOT", &scripts.root);
    if !script.info.is_empty() {
        put("PATH_INFO", &script.info);
        put("PATH_TRANSLATED", &[&scripts.root, &script.info[..]].concat());
    }
    let scheme = seen_scheme(request, told.origin);
    put("REQUEST_SCHEME", scheme);
    if scheme == b"https" {
        put("HTTPS", b"on");
    }
    let client = told.client.map(|client| client.to_string()).unwrap_or_default();
    put("REMOTE_ADDR", client.as_bytes());
    if told.port != 0 {
        put("REMOTE_PORT", told.port.to_string().as_bytes());
    }
    if let Some(user) = told.user {
        put("AUTH_TYPE", b"Basic");
        put("REMOTE_USER", user.as_bytes());
    }
    let address = told.listener.map(|listener| listener.ip().to_string());
    let port = told.listener.map(|listener| listener.port().to_string());
    let host = request.host.name().to_ascii_lowercase();
    let address = address.unwrap_or_default();
    put("SERVER_ADDR", address.as_bytes());
    put("SERVER_PORT", port.unwrap_or_default().as_bytes());
    put("SERVER_NAME", if host.is_empty() { address.as_bytes() } else { host.as_bytes() });
    // PHP that was built to be started by a web server alone wants it.
    put("REDIRECT_STATUS", b"200");
    for (name, value) in &scripts.params {
        put_param(&mut out, name.as_bytes(), value.as_bytes());
    }
    out.into()
}

/// The scheme by which the client asks, as a trusted router in front has it.
pub(crate) fn seen_scheme(request: &Request<'_, '_>, origin: Origin<'_>) -> &'static [u8] {
    let said = || {
        let mut lines = request.fields();
        lines.find(|(name, _)| name.eq_ignore_ascii_case("x-forwarded-proto"))
    };
    match said() {
        Some((_, value)) if origin.trusted && value.eq_ignore_ascii_case(b"https") => b"https",
        _ => scheme(request, origin),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn scripts_are_found_by_their_names_wherever_they_stand() {
        fn found(path: &str) -> Vec<&str> {
            ends(path.as_bytes()).map(|end| &path[..end]).collect()
        }
        assert_eq!(found("/x.php"), ["/x.php"]);
        assert_eq!(found("/a/x.PHP/b/y.php/"), ["/a/x.PHP", "/a/x.PHP/b/y.php"]);
        for none in ["/", "/x.php5", "/php", "/x.ph", "/.ph/p", "/a.php.txt"] {
            assert_eq!(found(none), [""; 0], "{none}");
        }
        for source in ["/x.php", "/x.Php", "/x.php.gz", "/x.php.br", "/x.php.zst"] {
            assert!(is_source(source.as_bytes()), "{source}");
        }
        assert!(!is_source(b"/x.html") && !is_source(b"/x.html.gz"));
    }
}
