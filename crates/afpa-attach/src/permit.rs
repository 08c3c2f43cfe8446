//! Whether a response may be given to other clients, and for how long (RFC 9111).
//!
//! The file behind the response is watched, so an answer may be pinned until its file changes. The response's caching
//! fields can only shorten that. A response that RFC 9111 forbids a shared cache to store is never pinned.

use std::time::Duration;

use afpa_http::{Host, date};

use crate::answer::Answer;

/// A response that may be pinned.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Permit {
    /// It depends on Accept-Encoding, and on nothing else.
    pub varies: bool,
    /// The server is asked again after this time; `None`: the answer stays until its file changes.
    pub lifetime: Option<Duration>,
}

/// Why a response may not be pinned.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, thiserror::Error)]
pub enum Refused {
    /// Only 200 is pinned.
    #[error("its status is {0}, not 200")]
    Status(u16),
    /// A redirect to another host.
    #[error("it redirects to another host (--host {0}, if that is this site's name)")]
    OtherHost(String),
    /// The server ends the connection with it, as with every other answer.
    #[error(
        "it ends its connection (let the server keep connections open: gunicorn does with -k gthread)"
    )]
    Closes,
    /// More than the time for which the server keeps the connection.
    #[error("its Keep-Alive has more than a timeout, such as requests that are left")]
    Counts,
    /// There must be exactly one Date, which the programs update.
    #[error("it has no Date")]
    Date,
    /// A field that belongs to one client, one request or one hop.
    #[error("its field {0} is not for all clients")]
    Field(&'static str),
    /// Vary names more than Accept-Encoding.
    #[error("its Vary names more than Accept-Encoding")]
    Vary,
    /// Cache-Control or Pragma.
    #[error("its {0} forbids it")]
    Forbidden(&'static str),
    /// max-age=0, as Express has it by default.
    #[error(
        "its Cache-Control says max-age=0 (let it say more: express.static(folder, {{ maxAge: \"1m\" }}))"
    )]
    Stale,
    /// Expires or max-age end too soon.
    #[error("it expires too soon")]
    Expires,
    /// It does not say that a shared cache may keep it, and no file stands behind it.
    #[error("it does not say how long it may be kept")]
    Lifetime,
}

/// Fields that make a response valid for one client only, or say that it came through a cache or proxy.
const PRIVATE: [&str; 14] = [
    "Set-Cookie",
    "Set-Cookie2",
    "WWW-Authenticate",
    "Proxy-Authenticate",
    "Authentication-Info",
    "Proxy-Authentication-Info",
    "Content-Range",
    "Location",
    "Refresh",
    "Warning",
    "Age",
    "Via",
    "Trailer",
    "Upgrade",
];

/// Expires is a point in time, and stays the same while the answer is pinned. An answer is pinned for a tenth of that
/// time, so that a client's Expires differs from the server's by at most a tenth of it.
const EXPIRES_SHARE: u32 = 10;
/// Asking the server more often than this would be no acceleration.
const LEAST: Duration = Duration::from_secs(1);

/// Whether `answer`, to a GET without credentials, may be pinned.
///
/// # Errors
/// With the first reason why not.
pub fn permit(answer: &Answer) -> Result<Permit, Refused> {
    let varies = is_for_everybody(answer)?;
    let now = answer.date().ok_or(Refused::Date)?;
    let lifetime = [max_age(answer)?, expires(answer, now)?].into_iter().flatten().min();
    if lifetime.is_some_and(|lifetime| lifetime < LEAST) {
        return Err(Refused::Expires);
    }
    Ok(Permit { varies, lifetime })
}

/// Checks every rule for keeping the answer but how long it is fresh. Returns whether it depends on Accept-Encoding.
pub(crate) fn is_for_everybody(answer: &Answer) -> Result<bool, Refused> {
    if answer.status() != 200 {
        return Err(other_host(answer).unwrap_or(Refused::Status(answer.status())));
    }
    answer.date().ok_or(Refused::Date)?;
    if let Some(name) = PRIVATE.iter().find(|name| answer.has(name)) {
        return Err(Refused::Field(name));
    }
    hop(answer)?;
    let varies = varies(answer)?;
    if answer.values("pragma").any(|value| !value.is_empty()) {
        return Err(Refused::Forbidden("Pragma"));
    }
    // In any form: field names as arguments are for caches that can leave fields out.
    let forbids = |name: &[u8]| matches!(name, b"no-store" | b"no-cache" | b"private");
    if directives(answer).any(|directive| forbids(parts(&directive).0)) {
        return Err(FORBIDDEN);
    }
    Ok(varies)
}

const FORBIDDEN: Refused = Refused::Forbidden("Cache-Control");

/// The directives of Cache-Control, in lower case. A comma within a quoted argument cuts it in two; both halves are then
/// looked at as directives, which can only forbid more.
fn directives(answer: &Answer) -> impl Iterator<Item = Vec<u8>> {
    let all = answer.values("cache-control").flat_map(|value| value.split(|b| *b == b','));
    all.map(|directive| directive.trim_ascii().to_ascii_lowercase())
}

/// Name and argument.
fn parts(directive: &[u8]) -> (&[u8], Option<&[u8]>) {
    let mut parts = directive.splitn(2, |byte| *byte == b'=');
    (parts.next().unwrap_or_default(), parts.next())
}

/// `keep-alive` is what every HTTP/1.1 connection does; any other option, and parameters that count
/// down, belong to one connection.
fn hop(answer: &Answer) -> Result<(), Refused> {
    for value in answer.values("connection") {
        match value {
            value if value.eq_ignore_ascii_case(b"close") => return Err(Refused::Closes),
            value if !value.eq_ignore_ascii_case(b"keep-alive") => {
                return Err(Refused::Field("Connection"));
            }
            _ => {}
        }
    }
    timeout(answer).map(|_| ())
}

/// The seconds for which the server keeps an idle connection, as its Keep-Alive says (RFC 9112, C.2.2). Rule A6.
///
/// # Errors
/// When the field says anything else, or more.
pub fn timeout(answer: &Answer) -> Result<Option<u32>, Refused> {
    if !answer.has("keep-alive") {
        return Ok(None);
    }
    let seconds = answer.field("keep-alive").and_then(|value| {
        let (name, seconds) = str::from_utf8(value).ok()?.split_once('=')?;
        let digits =
            (1..=5).contains(&seconds.len()) && seconds.bytes().all(|b| b.is_ascii_digit());
        let known = name.eq_ignore_ascii_case("timeout") && digits;
        seconds.parse().ok().filter(|seconds| known && *seconds > 0)
    });
    seconds.map(Some).ok_or(Refused::Counts)
}

/// The host that a redirect names, other than the one that was asked.
fn other_host(answer: &Answer) -> Option<Refused> {
    let location = str::from_utf8(answer.field("location")?).ok()?;
    let rest = location.split_once("://")?.1;
    let authority = rest.split(['/', '?', '#']).next().unwrap_or_default();
    let host = Host::parse(authority.as_bytes()).ok()?;
    Some(Refused::OtherHost(host.name().to_owned()))
}

fn varies(answer: &Answer) -> Result<bool, Refused> {
    let mut varies = false;
    for value in answer.values("vary") {
        if varies || !value.eq_ignore_ascii_case(b"accept-encoding") {
            return Err(Refused::Vary);
        }
        varies = true;
    }
    Ok(varies)
}

/// RFC 9111 section 5.2.2. Unknown directives are ignored (section 5.2.3).
fn max_age(answer: &Answer) -> Result<Option<Duration>, Refused> {
    let mut lifetime: Option<Duration> = None;
    for directive in directives(answer) {
        let (b"max-age" | b"s-maxage", argument) = parts(&directive) else { continue };
        let seconds = argument.and_then(seconds).ok_or(FORBIDDEN)?;
        if seconds == 0 {
            return Err(Refused::Stale);
        }
        let seconds = Duration::from_secs(seconds);
        lifetime = Some(lifetime.map_or(seconds, |lifetime| lifetime.min(seconds)));
    }
    Ok(lifetime)
}

/// delta-seconds: RFC 9111 section 1.2.2.
fn seconds(argument: &[u8]) -> Option<u64> {
    let digits = !argument.is_empty() && argument.iter().all(u8::is_ascii_digit);
    let text = str::from_utf8(argument).ok().filter(|_| digits)?;
    Some(text.parse().unwrap_or(1 << 31).min(1 << 31))
}

/// An invalid date, "0" above all, means that it has expired: RFC 9111 section 5.3.
fn expires(answer: &Answer, now: u64) -> Result<Option<Duration>, Refused> {
    if !answer.has("expires") {
        return Ok(None);
    }
    let expires = answer.field("expires").and_then(date::parse).ok_or(Refused::Expires)?;
    let left = expires.checked_sub(now).filter(|left| *left > 0).ok_or(Refused::Expires)?;
    Ok(Some(Duration::from_secs(left) / EXPIRES_SHARE))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::answer::Asked;

    fn verdict(status: &str, fields: &str) -> Result<Permit, Refused> {
        let text = format!(
            "HTTP/1.1 {status}\r\nDate: Sun, 06 Nov 1994 08:49:37 GMT\r\nContent-Length: 0\r\n{fields}\r\n"
        );
        permit(&Answer::read(text.as_bytes(), Asked::Get).unwrap().unwrap())
    }

    #[test]
    fn what_may_be_kept_and_how_long() {
        let table: [(&str, bool, Option<u64>); 13] = [
            ("", false, None),
            ("Connection: keep-alive\r\n", false, None),
            ("Connection: keep-alive\r\nKeep-Alive: timeout=5\r\n", false, None),
            ("Vary: accept-encoding\r\n", true, None),
            ("Cache-Control: public, immutable\r\n", false, None),
            ("Cache-Control: max-age=60\r\n", false, Some(60)),
            ("Cache-Control: max-age=60, s-maxage=5\r\n", false, Some(5)),
            ("Cache-Control: max-age=60\r\nCache-Control: MAX-AGE=7\r\n", false, Some(7)),
            ("Cache-Control: stale-if-error=0, must-revalidate\r\n", false, None),
            ("Cache-Control: max-age=99999999999999999999999\r\n", false, Some(1 << 31)),
            ("Expires: Sun, 06 Nov 1994 09:49:37 GMT\r\n", false, Some(360)),
            (
                "Expires: Sun, 06 Nov 1994 09:49:37 GMT\r\nCache-Control: max-age=3600\r\n",
                false,
                Some(360),
            ),
            ("X-Powered-By: coffee\r\nLink: </a>; rel=preload\r\n", false, None),
        ];
        for (fields, varies, lifetime) in table {
            let lifetime = lifetime.map(Duration::from_secs);
            assert_eq!(verdict("200 OK", fields), Ok(Permit { varies, lifetime }), "{fields:?}");
        }
    }

    #[test]
    fn what_may_not_be_kept() {
        const CONTROL: Refused = Refused::Forbidden("Cache-Control");
        let table = [
            ("Set-Cookie: a=b\r\n", Refused::Field("Set-Cookie")),
            ("set-cookie: a=b\r\n", Refused::Field("Set-Cookie")),
            ("WWW-Authenticate: Basic\r\n", Refused::Field("WWW-Authenticate")),
            ("Content-Range: bytes 0-1/2\r\n", Refused::Field("Content-Range")),
            ("Location: /\r\n", Refused::Field("Location")),
            ("Warning: 110 - x\r\n", Refused::Field("Warning")),
            ("Age: 3\r\n", Refused::Field("Age")),
            ("Connection: close\r\n", Refused::Closes),
            ("Connection: keep-alive, x\r\n", Refused::Field("Connection")),
            ("Keep-Alive: timeout=5, max=99\r\n", Refused::Counts),
            ("Keep-Alive: timeout=0\r\n", Refused::Counts),
            ("Keep-Alive: timeout=+5\r\n", Refused::Counts),
            ("Keep-Alive: timeout=\r\n", Refused::Counts),
            ("Keep-Alive: timeout=5\r\nKeep-Alive: timeout=5\r\n", Refused::Counts),
            ("Keep-Alive: max=5\r\n", Refused::Counts),
            ("Keep-Alive:\r\n", Refused::Counts),
            ("Vary: *\r\n", Refused::Vary),
            ("Vary: Cookie\r\n", Refused::Vary),
            ("Vary: Accept-Encoding, Cookie\r\n", Refused::Vary),
            ("Vary: Accept-Encoding\r\nVary: Cookie\r\n", Refused::Vary),
            ("Cache-Control: no-store\r\n", CONTROL),
            ("Cache-Control: public,No-Cache\r\n", CONTROL),
            ("Cache-Control: no-cache=\"set-cookie\"\r\n", CONTROL),
            ("Cache-Control: private\r\n", CONTROL),
            ("Cache-Control: private=\"a,b\"\r\n", CONTROL),
            ("Cache-Control: public, max-age=0\r\n", Refused::Stale),
            ("Cache-Control: max-age=60, s-maxage=0\r\n", Refused::Stale),
            ("Cache-Control: max-age=soon\r\n", CONTROL),
            ("Cache-Control: max-age\r\n", CONTROL),
            ("Pragma: no-cache\r\n", Refused::Forbidden("Pragma")),
            ("Expires: 0\r\n", Refused::Expires),
            ("Expires: -1\r\n", Refused::Expires),
            ("Expires: Sun, 06 Nov 1994 08:49:37 GMT\r\n", Refused::Expires),
            ("Expires: Sun, 06 Nov 1994 08:49:40 GMT\r\n", Refused::Expires),
        ];
        for (fields, reason) in table {
            assert_eq!(verdict("200 OK", fields), Err(reason), "{fields:?}");
        }
        for status in [203, 206, 301, 401, 404, 500] {
            let found = verdict(&format!("{status} X"), "");
            assert_eq!(found, Err(Refused::Status(status)));
        }
        let redirect = |to: &str| verdict("301 X", &format!("Location: {to}\r\n"));
        for to in
            ["https://www.example.org/", "http://www.example.org:8080/a?b", "x://www.example.org"]
        {
            assert_eq!(redirect(to), Err(Refused::OtherHost("www.example.org".into())), "{to}");
        }
        assert_eq!(redirect("/deep/"), Err(Refused::Status(301)));
        let undated = "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n";
        let undated = Answer::read(undated.as_bytes(), Asked::Get).unwrap().unwrap();
        assert_eq!(permit(&undated), Err(Refused::Date));
    }
}
