//! Which fields an operator may change, and to what: never those that frame a message.

use afpa_http::marks::LONGEST_FIELD;
use afpa_http::syntax::is_token;

use super::{host, is_field_value};
use crate::units::Unfit;

type Pair = (String, String);

/// Some statuses: one, or a class.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Statuses(pub(crate) u16, pub(crate) u16);

impl std::fmt::Display for Statuses {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        if self.0 == self.1 { write!(f, "{}", self.0) } else { write!(f, "{}xx", self.0 / 100) }
    }
}

/// Fields about one connection, or the bounds of a message (RFC 9110 sections 7.6.1 and 8.6).
const FRAMING: [&str; 12] = [
    "connection",
    "content-length",
    "http2-settings",
    "keep-alive",
    "proxy-authenticate",
    "proxy-authorization",
    "proxy-connection",
    "te",
    "trailer",
    "trailers",
    "transfer-encoding",
    "upgrade",
];

/// Fields of answers that describe their bytes or their age, with the remedy.
const DESCRIBING: [(&str, &str); 4] = [
    ("age", "it tells caches how old the answer is"),
    ("content-encoding", "it says how the content is to be decoded"),
    ("content-range", "it says which part of the content follows"),
    ("date", "every answer has it (RFC 9110 section 6.6.1)"),
];

/// Fields of answers that may be removed, but not written.
const VALIDATING: [&str; 3] = ["accept-ranges", "etag", "last-modified"];

/// Fields of requests that decide which answer comes back, so that it would not fit the client's request.
const DECIDING: [&str; 11] = [
    "content-encoding",
    "content-range",
    "date",
    "expect",
    "host",
    "if-match",
    "if-range",
    "max-forwards",
    "range",
    "via",
    "early-data",
];

fn name_of(name: &str) -> Result<String, Unfit> {
    if name.contains('*') {
        let cause = format!("\"{name}\" has a star, which stands for nothing here");
        return Err(Unfit::new(cause, "name each field"));
    }
    if !is_token(name.as_bytes()) {
        let cause = format!("\"{name}\" is not a field name");
        return Err(Unfit::new(cause, "use letters, digits and hyphens: X-Frame-Options"));
    }
    let lower = name.to_ascii_lowercase();
    if FRAMING.contains(&&*lower) {
        let cause = format!("{name} frames the message, or is about one connection");
        return Err(Unfit::new(cause, "remove it: AFPA writes it itself"));
    }
    Ok(lower)
}

fn valued(name: &str, value: &str) -> Result<Pair, Unfit> {
    if value.is_empty() {
        let remedy = format!("to remove the field: remove = [\"{name}\"]");
        return Err(Unfit::new(format!("the value of {name} is empty"), remedy));
    }
    if !is_field_value(value) {
        let cause = format!(
            "the value of {name} has a line break, control character, outer space, or a letter beyond ASCII"
        );
        return Err(Unfit::new(cause, "write one line of printable characters"));
    }
    Ok((name.to_owned(), value.to_owned()))
}

/// A field of answers whose lines are replaced.
pub(crate) fn set_field(name: &str, value: &str) -> Result<Pair, Unfit> {
    if name.eq_ignore_ascii_case("vary") {
        let cause = "caches need the Vary that AFPA and servers write";
        return Err(Unfit::new(cause, "write it under `add`: it then stands beside theirs"));
    }
    added_answer_field(name, value)
}

/// A field that is added to answers.
pub(crate) fn added_answer_field(name: &str, value: &str) -> Result<Pair, Unfit> {
    let lower = answer_name(name)?;
    if VALIDATING.contains(&&*lower) {
        let cause = format!("{name} has to be that of the content");
        return Err(Unfit::new(cause, format!("leave it, or remove it: remove = [\"{name}\"]")));
    }
    valued(name, value)
}

/// The name of a field that is removed from answers.
pub(crate) fn removed_field(name: &str) -> Result<String, Unfit> {
    match &*answer_name(name)? {
        "vary" => {
            let cause = "without Vary, caches would give one client's answer to others";
            Err(Unfit::new(cause, "leave it"))
        }
        "content-type" => {
            let cause = "without Content-Type, browsers guess what the content is";
            Err(Unfit::new(cause, "set another one, or leave it"))
        }
        _ => Ok(name.to_owned()),
    }
}

fn answer_name(name: &str) -> Result<String, Unfit> {
    let lower = name_of(name)?;
    match DESCRIBING.iter().find(|(known, _)| *known == lower) {
        Some((_, why)) => Err(Unfit::new(format!("{name} cannot be changed: {why}"), "remove it")),
        None => Ok(lower),
    }
}

/// A field of requests to servers.
pub(crate) fn request_field(name: &str, value: &str) -> Result<Pair, Unfit> {
    request_name(name)?;
    if value.contains('$') {
        let cause = format!("the value of {name} has a \"$\": there are no variables here");
        let remedy = "X-Forwarded-For, -Host and -Proto are sent already; for X-Real-IP write client_address = \"X-Real-IP\" under \
                      [server_group.request]";
        return Err(Unfit::new(cause, remedy));
    }
    valued(name, value)
}

/// The name of a field that is removed from requests to servers.
pub(crate) fn removed_request_field(name: &str) -> Result<String, Unfit> {
    request_name(name).map(|_| name.to_owned())
}

fn request_name(name: &str) -> Result<String, Unfit> {
    let lower = name_of(name)?;
    if !DECIDING.contains(&&*lower) && lower != "if-none-match" && lower != "if-modified-since" {
        return Ok(lower);
    }
    let remedy = match &*lower {
        "host" => "write `host` under [server_group.request]",
        "via" => "write `via` under [[server_group]]",
        _ => "remove it",
    };
    let cause = format!("{name} decides which answer the client gets, and is written by AFPA");
    Err(Unfit::new(cause, remedy))
}

/// The beginnings of names of fields with another meaning, none of which can carry an id.
const MEANT: [&str; 22] = [
    "accept",
    "access-control-",
    "allow",
    "authorization",
    "cache-",
    "content-",
    "cookie",
    "early-data",
    "forwarded",
    "if-",
    "location",
    "origin",
    "priority",
    "referer",
    "sec-",
    "set-cookie",
    "trace",
    "user-agent",
    "www-authenticate",
    "x-forwarded",
    "x-original-",
    "x-rewrite-",
];

/// The name of the field that carries the id of a request, at servers and in answers.
pub(crate) fn id_field(name: &str) -> Result<String, Unfit> {
    set_field(name, "-")?;
    request_field(name, "-")?;
    let lower = name.to_ascii_lowercase();
    if MEANT.iter().any(|begin| lower.starts_with(begin)) {
        let cause = format!("{name} has another meaning");
        return Err(Unfit::new(cause, "write for example \"X-Request-Id\""));
    }
    if name.len() > LONGEST_FIELD {
        let cause = format!("{name} has more than {LONGEST_FIELD} letters");
        return Err(Unfit::new(cause, "choose a shorter name, such as \"X-Request-Id\""));
    }
    Ok(name.to_owned())
}

/// The name of the field that tells servers the address of the client.
pub(crate) fn address_field(name: &str) -> Result<String, Unfit> {
    request_field(name, "-")?;
    let lower = name.to_ascii_lowercase();
    if MEANT.iter().any(|begin| lower.starts_with(begin)) {
        let cause = format!("{name} has another meaning");
        return Err(Unfit::new(cause, "write for example \"X-Real-IP\""));
    }
    Ok(name.to_owned())
}

/// A status of answers, or a class of them.
pub(crate) fn statuses(text: &str) -> Result<Statuses, Unfit> {
    let class = text.strip_suffix("xx").or_else(|| text.strip_suffix("XX"));
    let class =
        class.and_then(|digit| digit.parse::<u16>().ok()).filter(|class| (2..=5).contains(class));
    let one =
        || text.parse::<u16>().ok().filter(|code| (200..600).contains(code) && text.len() == 3);
    match class {
        Some(class) => Ok(Statuses(class * 100, class * 100 + 99)),
        None => one().map(|code| Statuses(code, code)).ok_or_else(|| {
            let cause = format!("\"{text}\" is neither a status of an answer nor a class");
            Unfit::new(cause, "write for example 404 or \"5xx\"")
        }),
    }
}

/// A status of errors, or one of their two classes.
pub(crate) fn error_statuses(text: &str) -> Result<Statuses, Unfit> {
    match statuses(text) {
        Ok(Statuses(first, last)) if first >= 400 => Ok(Statuses(first, last)),
        _ => {
            let cause =
                format!("\"{text}\" is neither the status of an error nor \"4xx\" or \"5xx\"");
            Err(Unfit::new(cause, "write for example 404 or \"5xx\""))
        }
    }
}

/// The path, and perhaps a query, that a server is asked for.
pub(crate) fn page_path(text: &str) -> Result<String, Unfit> {
    let is_plain = |byte: u8| (b'!'..=b'~').contains(&byte) && byte != b'#';
    if !text.starts_with('/') || text.starts_with("//") || !text.bytes().all(is_plain) {
        let cause = format!("\"{text}\" is not the path of a URL");
        return Err(Unfit::new(cause, "begin it with a slash: \"/errors/{status}.html\""));
    }
    Ok(text.to_owned())
}

/// An origin (RFC 6454 section 6.2), `*`, or one with `*.` before its host; in lower case.
pub(crate) fn origin(text: &str) -> Result<String, Unfit> {
    let cause = || format!("\"{text}\" is not an origin");
    let lower = text.to_ascii_lowercase();
    if lower == "*" {
        return Ok(lower);
    }
    if lower == "null" {
        let remedy = "remove it: every page can make itself the origin \"null\"";
        return Err(Unfit::new(cause(), remedy));
    }
    let example = "write scheme and host as browsers do: \"https://app.example.org\"";
    let Some((scheme, rest)) = lower.split_once("://") else {
        return Err(Unfit::new(cause(), example));
    };
    if !is_token(scheme.as_bytes()) || rest.contains(['/', '?', '#', '@']) {
        return Err(Unfit::new(cause(), format!("{example}, without a slash at the end")));
    }
    let (name, port) = match rest.rsplit_once(':') {
        Some((name, port)) if !port.contains(']') => (name, Some(port)),
        _ => (rest, None),
    };
    match (scheme, port.map(str::parse::<u16>)) {
        (_, Some(Err(_))) => return Err(Unfit::new(cause(), "write its port as a number")),
        ("https", Some(Ok(443))) | ("http", Some(Ok(80))) => {
            let remedy = format!("browsers leave that port out: \"{scheme}://{name}\"");
            return Err(Unfit::new(cause(), remedy));
        }
        _ => {}
    }
    host(name.strip_prefix("*.").unwrap_or(name))?;
    Ok(lower)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_that_frame_or_describe_a_message_are_refused() {
        for name in [
            "Content-Length",
            "TRANSFER-ENCODING",
            "Connection",
            "Keep-Alive",
            "TE",
            "Trailer",
            "Upgrade",
            "Date",
            "Age",
            "Content-Encoding",
            "Content-Range",
        ] {
            assert!(
                set_field(name, "1").is_err() && added_answer_field(name, "1").is_err(),
                "{name}"
            );
            assert!(removed_field(name).is_err(), "{name}");
        }
        for name in ["Vary", "ETag", "Last-Modified"] {
            assert!(set_field(name, "1").is_err(), "{name}");
        }
        for name in ["", "a b", "a:", ":status", "a\r\nb", "ä"] {
            assert!(
                set_field(name, "1").is_err() && removed_request_field(name).is_err(),
                "{name:?}"
            );
        }
        for value in ["", " a", "a\r\nB: c", "a\nb", "a\0", "é"] {
            assert!(
                set_field("X", value).is_err() && request_field("X", value).is_err(),
                "{value:?}"
            );
        }
        for name in
            ["Host", "Content-Length", "Expect", "Range", "If-None-Match", "Via", "Connection"]
        {
            assert!(
                request_field(name, "1").is_err() && removed_request_field(name).is_err(),
                "{name}"
            );
        }
        assert!(set_field("Server", "x").is_ok() && removed_field("ETag").is_ok());
        assert!(added_answer_field("Vary", "Cookie").is_ok());
        assert!(removed_request_field("Accept-Encoding").is_ok());
        assert!(request_field("X-Real-IP", "$remote_addr").is_err());
    }

    #[test]
    fn ids_have_a_field_of_their_own() {
        for name in ["X-Request-Id", "X-Correlation-ID", "CF-Ray", "Request-Id"] {
            assert_eq!(id_field(name).as_deref(), Ok(name));
        }
        let long = "a".repeat(LONGEST_FIELD + 1);
        for name in [
            "",
            "a b",
            "a:",
            "Host",
            "Date",
            "ETag",
            "Vary",
            "Set-Cookie",
            "X-Forwarded-For",
            "traceparent",
            &long,
        ] {
            assert!(id_field(name).is_err(), "{name}");
        }
    }

    #[test]
    fn statuses_are_codes_and_classes() {
        assert_eq!(statuses("404"), Ok(Statuses(404, 404)));
        assert_eq!(statuses("5xx"), Ok(Statuses(500, 599)));
        for text in ["", "1xx", "6xx", "0404", "99", "600", "xx", "-1", "4x"] {
            assert!(statuses(text).is_err(), "{text}");
        }
    }

    #[test]
    fn origins_have_a_scheme_and_a_host() {
        assert_eq!(origin("https://App.Example").as_deref(), Ok("https://app.example"));
        for text in [
            "*",
            "http://localhost:3000",
            "https://*.a.org",
            "http://[::1]:8080",
            "https://1.2.3.4",
        ] {
            assert!(origin(text).is_ok(), "{text}");
        }
        for text in [
            "",
            "a.org",
            "https://a.org/",
            "https://a.org:443",
            "http://a:80",
            "null",
            "https://",
            "https://a.*.org",
            "https://*",
            "https://a b",
            "https://u@a",
            "https://a:x",
        ] {
            assert!(origin(text).is_err(), "{text}");
        }
    }
}
