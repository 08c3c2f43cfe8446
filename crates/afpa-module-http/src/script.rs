//! Scripts: files that a server of FastCGI runs, and that are never sent.

use std::borrow::Cow;
use std::io::Write;
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

/// The parameters of a request that its head does not tell: nginx's `fastcgi_params` has the same.
pub(crate) fn params(request: &Request<'_, '_>, run: Run<'_>, told: Told<'_>) -> Arc<[u8]> {
    let Run { scripts, script } = run;
    let mut out = Vec::with_capacity(1024);
    let mut put = |name: &str, value: &[&[u8]]| {
        if !scripts.params.iter().any(|(own, _)| own == name) {
            put_param(&mut out, name.as_bytes(), value);
        }
    };
    let sent = request.sent_target();
    let (mount, path) = (&scripts.mount[..], &script.path[..]);
    put("GATEWAY_INTERFACE", &[b"CGI/1.1"]);
    put("SERVER_SOFTWARE", &[b"afpa"]);
    put("SERVER_PROTOCOL", &[request.version.name().as_bytes()]);
    put("QUERY_STRING", &[request.target.query().unwrap_or_default()]);
    let uri = sent.path().unwrap_or_default();
    match sent.query() {
        Some(query) => put("REQUEST_URI", &[uri, b"?", query]),
        None => put("REQUEST_URI", &[uri]),
    }
    put("SCRIPT_NAME", &[mount, path]);
    put("SCRIPT_FILENAME", &[&scripts.root, path]);
    put("DOCUMENT_URI", &[mount, path, &script.info]);
    put("DOCUMENT_ROOT", &[&scripts.root]);
    if !script.info.is_empty() {
        put("PATH_INFO", &[&script.info]);
        put("PATH_TRANSLATED", &[&scripts.root, &script.info]);
    }
    let scheme = seen_scheme(request, told.origin);
    put("REQUEST_SCHEME", &[scheme]);
    if scheme == b"https" {
        put("HTTPS", &[b"on"]);
    }
    let client = told.client.map_or(Text::NONE, Text::of);
    put("REMOTE_ADDR", &[client.bytes()]);
    let mut digits = itoa::Buffer::new();
    if told.port != 0 {
        put("REMOTE_PORT", &[digits.format(told.port).as_bytes()]);
    }
    if let Some(user) = told.user {
        put("AUTH_TYPE", &[b"Basic"]);
        put("REMOTE_USER", &[user.as_bytes()]);
    }
    let address = told.listener.map_or(Text::NONE, |listener| Text::of(listener.ip()));
    let port = told.listener.map_or("", |listener| digits.format(listener.port()));
    put("SERVER_ADDR", &[address.bytes()]);
    put("SERVER_PORT", &[port.as_bytes()]);
    let host = match request.host.name() {
        "" => Cow::Borrowed(address.bytes()),
        name if name.bytes().any(|byte| byte.is_ascii_uppercase()) => {
            Cow::Owned(name.to_ascii_lowercase().into_bytes())
        }
        name => Cow::Borrowed(name.as_bytes()),
    };
    put("SERVER_NAME", &[&host]);
    // PHP that was built to be started by a web server alone wants it.
    put("REDIRECT_STATUS", &[b"200"]);
    for (name, value) in &scripts.params {
        put_param(&mut out, name.as_bytes(), &[value.as_bytes()]);
    }
    out.into()
}

/// An address as text, without memory of its own.
struct Text {
    text: [u8; LONGEST_ADDRESS],
    length: usize,
}

/// The bytes of the longest IPv6 address, one that ends as an IPv4 address.
const LONGEST_ADDRESS: usize = 45;

impl Text {
    const NONE: Self = Self { text: [0; LONGEST_ADDRESS], length: 0 };

    fn of(address: IpAddr) -> Self {
        let mut text = [0; LONGEST_ADDRESS];
        let mut rest = &mut text[..];
        // It is long enough for any.
        let _ = write!(rest, "{address}");
        let length = LONGEST_ADDRESS - rest.len();
        Self { text, length }
    }

    fn bytes(&self) -> &[u8] {
        self.text.get(..self.length).unwrap_or_default()
    }
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
