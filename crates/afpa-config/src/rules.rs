//! Which texts are valid names, fields and types.

mod conditions;
mod fields;
mod routing;
mod servers;

use std::net::SocketAddr;

use afpa_http::syntax::is_token;
pub(crate) use conditions::{condition, method, parameter, path_pattern, pattern, site_host};
pub(crate) use fields::{
    Statuses, added_answer_field, address_field, error_statuses, id_field, origin, page_path,
    removed_field, removed_request_field, request_field, set_field, statuses,
};
pub(crate) use routing::{
    any, check_path, destination, directory, fallback, file_extension, group_name, host_pattern,
    listed_extension, location, media_type, network, param, php, prefix, rewrite, secret,
    sent_host, server_name, site_name, token, upgrade,
};
pub(crate) use servers::{server_address, server_addresses, source_address};

use crate::units::{Listen, Unfit};

/// A TCP address with its port.
pub(crate) fn tcp(text: &str) -> Result<SocketAddr, Unfit> {
    match text.parse()? {
        Listen::Tcp(address) => Ok(address),
        Listen::Unix(_) => {
            Err(Unfit::new("this listens on TCP only", "write for example \"127.0.0.1:9090\""))
        }
    }
}

/// The name of a user or group, or its number.
pub(crate) fn account(text: &str) -> Result<String, Unfit> {
    let fits = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-' | '.' | '$' | '@');
    if text.is_empty() || text.starts_with('-') || !text.chars().all(fits) {
        let cause = format!("\"{text}\" is not a user or group name");
        return Err(Unfit::new(cause, "write a name of /etc/passwd or /etc/group, or \"auto\""));
    }
    Ok(text.to_owned())
}

/// A host name or address as a Host field has it, without its port; in lower case.
pub(crate) fn host(text: &str) -> Result<String, Unfit> {
    let cause = || format!("\"{text}\" is not a host name");
    if text.contains('*') {
        return Err(Unfit::new(
            cause(),
            "a star stands alone before the first dot: \"*.example.org\"",
        ));
    }
    if text.contains("://") || text.contains('/') {
        return Err(Unfit::new(cause(), "write the name alone: \"www.example.org\""));
    }
    let literal = text.strip_prefix('[').and_then(|rest| rest.strip_suffix(']'));
    if literal.is_some_and(|address| address.parse::<std::net::Ipv6Addr>().is_ok()) {
        return Ok(text.to_ascii_lowercase());
    }
    if text.contains(':') {
        return Err(Unfit::new(cause(), "write it without its port"));
    }
    if text.is_empty() || text.len() > 253 || !text.split('.').all(is_label) {
        return Err(Unfit::new(cause(), "write a name such as \"www.example.org\""));
    }
    Ok(text.to_ascii_lowercase())
}

/// A label of a host name; underscores are not allowed by RFC 952 but are in use.
fn is_label(label: &str) -> bool {
    let fits = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_');
    (1..=63).contains(&label.len()) && label.bytes().all(fits)
}

/// One component of a path.
pub(crate) fn file_name(text: &str) -> Result<String, Unfit> {
    if matches!(text, "" | "." | "..") || text.contains(['/', '\0']) {
        let cause = format!("\"{text}\" is not the name of a file");
        return Err(Unfit::new(cause, "write a name without a slash"));
    }
    Ok(text.to_owned())
}

/// A media type without parameters, or `type/*`.
pub(crate) fn media_pattern(text: &str) -> Result<String, Unfit> {
    let fits = match text.split_once('/') {
        Some(("*", _)) => false,
        Some((kind, "*")) => is_token(kind.as_bytes()),
        Some((kind, subtype)) => is_token(kind.as_bytes()) && is_token(subtype.as_bytes()),
        None => false,
    };
    if !fits {
        let cause = format!("\"{text}\" is not a media type");
        return Err(Unfit::new(cause, "write for example \"text/html\", or \"text/*\" for all"));
    }
    Ok(text.to_ascii_lowercase())
}

/// An extension and its media type, which may have parameters.
pub(crate) fn extension(name: &str, media: &str) -> Result<(String, String), Unfit> {
    if name.is_empty() || name.contains(['/', '\0']) {
        let cause = format!("\"{name}\" is not an extension");
        return Err(Unfit::new(cause, "write the part after the last dot: md = \"text/plain\""));
    }
    if let Some(bare) = name.strip_prefix('.') {
        let cause = format!("the extension \"{name}\" begins with a dot");
        return Err(Unfit::new(cause, format!("write it without: {bare} = \"{media}\"")));
    }
    let essence = media.split(';').next().unwrap_or(media).trim();
    media_pattern(essence)?;
    if essence.ends_with("/*") || !is_field_value(media) {
        let cause = format!("\"{media}\" is not one media type");
        return Err(Unfit::new(cause, "write for example \"text/html; charset=utf-8\""));
    }
    Ok((name.to_ascii_lowercase(), media.to_owned()))
}

/// Fields that only the engine may write: they frame the message or describe its content.
const RESERVED_FIELDS: [&str; 18] = [
    "accept-ranges",
    "allow",
    "connection",
    "content-encoding",
    "content-length",
    "content-range",
    "content-type",
    "date",
    "etag",
    "keep-alive",
    "last-modified",
    "location",
    "server",
    "te",
    "trailer",
    "transfer-encoding",
    "upgrade",
    "vary",
];

/// A response field.
pub(crate) fn header(name: &str, value: &str) -> Result<(String, String), Unfit> {
    if !is_token(name.as_bytes()) {
        let cause = format!("\"{name}\" is not a field name");
        return Err(Unfit::new(cause, "use letters, digits and hyphens: X-Frame-Options"));
    }
    if RESERVED_FIELDS.contains(&name.to_ascii_lowercase().as_str()) {
        let cause = format!("AFPA writes the field {name} itself");
        let remedy = match name.to_ascii_lowercase().as_str() {
            "content-type" => "remove it; `types` sets media types by extension",
            _ => "remove it",
        };
        return Err(Unfit::new(cause, remedy));
    }
    if !is_field_value(value) {
        let cause = format!(
            "the value of {name} has a line break, control character, outer space, or a letter beyond ASCII"
        );
        return Err(Unfit::new(cause, "write one line of printable characters"));
    }
    Ok((name.to_owned(), value.to_owned()))
}

/// The name of a field that AFPA adds to requests; none that means something to HTTP.
pub(crate) fn added_field(name: &str) -> Result<String, Unfit> {
    let lower = name.to_ascii_lowercase();
    if lower.starts_with("x-") && !lower.starts_with("x-forwarded-") && is_token(name.as_bytes()) {
        return Ok(name.to_owned());
    }
    let cause = format!("\"{name}\" is not the name of a field of your own");
    Err(Unfit::new(cause, "begin it with X-, as in X-Client-Subject"))
}

/// The name of a field of requests for the access log, in lower case; those that have a word of their own there are not
/// among them.
pub(crate) fn logged_field(name: &str) -> Result<String, Unfit> {
    let lower = name.to_ascii_lowercase();
    if !is_token(name.as_bytes()) {
        let cause = format!("\"header:{name}\" does not name a field");
        return Err(Unfit::new(
            cause,
            "use letters, digits and hyphens: \"header:accept-language\"",
        ));
    }
    let word = match &*lower {
        "host" => "host",
        "referer" => "referer",
        "user-agent" => "user_agent",
        _ => return Ok(lower),
    };
    let cause = format!("\"header:{name}\" has a word of its own");
    Err(Unfit::new(cause, format!("write \"{word}\"")))
}

/// The URL of a collector: scheme, host, perhaps port and path.
pub(crate) fn collector(text: &str) -> Result<String, Unfit> {
    let unfit =
        |remedy: &str| Err(Unfit::new(format!("\"{text}\" is not the URL of a collector"), remedy));
    let example = "write scheme, host and port: \"http://127.0.0.1:4318\"";
    let rest = text.strip_prefix("http://").or_else(|| text.strip_prefix("https://"));
    let Some(rest) = rest else { return unfit(example) };
    let (place, path) = rest.split_once('/').unwrap_or((rest, ""));
    if place.contains('@') {
        return unfit("write credentials as a field: headers = { Authorization = \"...\" }");
    }
    let is_plain = |byte: u8| {
        byte.is_ascii_graphic() && !matches!(byte, b'"' | b'<' | b'>' | b'?' | b'#' | b'\\')
    };
    if !path.bytes().all(is_plain) {
        return unfit("write a path without query");
    }
    if format!("/{}", path.trim_end_matches('/')).ends_with("/v1/traces") {
        return unfit("leave /v1/traces out: it is added");
    }
    let (name, port) = match place.rsplit_once(':') {
        Some((name, port)) if !port.contains(']') => (name, port.parse::<u16>().is_ok()),
        _ => (place, true),
    };
    if !port {
        return unfit(example);
    }
    host(&name.to_ascii_lowercase())?;
    Ok(text.to_owned())
}

/// The name of a service in spans.
pub(crate) fn service(text: &str) -> Result<String, Unfit> {
    if text.is_empty() || text.len() > 255 || text.contains(char::is_control) {
        let cause = format!("\"{text}\" is not the name of a service");
        return Err(Unfit::new(cause, "write 1 to 255 letters: \"shop\""));
    }
    Ok(text.to_owned())
}

/// RFC 9110 section 5.5, without obs-text.
fn is_field_value(text: &str) -> bool {
    text.trim() == text && text.bytes().all(|b| b == b'\t' || (b' '..=b'~').contains(&b))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hosts_are_names_or_literals_in_lower_case() {
        assert_eq!(host("WWW.Example.org").as_deref(), Ok("www.example.org"));
        assert_eq!(host("[::1]").as_deref(), Ok("[::1]"));
        assert_eq!(host("127.0.0.1").as_deref(), Ok("127.0.0.1"));
        assert_eq!(host("a:80").unwrap_err().remedy, "write it without its port");
        for text in ["", "a..b", "*.a", "http://a", "a b", "[zz]", &"a".repeat(64)] {
            assert!(host(text).is_err(), "{text}");
        }
    }

    #[test]
    fn fields_of_the_engine_cannot_be_set() {
        assert!(header("X-Frame-Options", "DENY").is_ok());
        let refused = header("Content-Length", "3").unwrap_err();
        assert_eq!(refused.cause, "AFPA writes the field Content-Length itself");
        for (name, value) in [("", "a"), ("a b", "c"), ("a", "b\r\nc: d"), ("a", " b"), ("a", "é")]
        {
            assert!(header(name, value).is_err(), "{name}: {value}");
        }
    }

    #[test]
    fn collectors_have_a_scheme_and_a_host_and_no_path_of_spans() {
        for good in [
            "http://127.0.0.1:4318",
            "https://otel.example.org",
            "http://[::1]:4318/",
            "http://a/b/c",
        ] {
            assert_eq!(collector(good).unwrap(), good);
        }
        for (bad, remedy) in [
            ("127.0.0.1:4318", "scheme"),
            ("grpc://a:4317", "scheme"),
            ("http://a:b", "scheme"),
            ("http://a:70000", "scheme"),
            ("http://u:p@a", "Authorization"),
            ("http://a/x?y", "query"),
            ("http://a:4318/v1/traces", "is added"),
            ("https://a/otlp/v1/traces/", "is added"),
            ("http://", ""),
            ("http://a b", ""),
        ] {
            let unfit = format!("{:?}", collector(bad).unwrap_err());
            assert!(unfit.contains(remedy), "{bad}: {unfit}");
        }
        assert!(service("").is_err() && service("a\nb").is_err() && service("shop").is_ok());
    }

    #[test]
    fn logged_fields_have_no_other_word() {
        assert_eq!(logged_field("X-Tenant").unwrap(), "x-tenant");
        assert_eq!(logged_field("Cookie").unwrap(), "cookie");
        for bad in ["", "a b", "a:b", "User-Agent", "HOST", "referer"] {
            assert!(logged_field(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn types_have_both_halves() {
        assert!(media_pattern("text/*").is_ok());
        assert!(extension("md", "text/markdown; charset=utf-8").is_ok());
        for (name, media) in [("md", "text"), ("md", "text/*"), (".md", "text/plain"), ("", "a/b")]
        {
            assert!(extension(name, media).is_err(), "{name} = {media}");
        }
        for text in ["", "/", "text/", "*/*x y"] {
            assert!(media_pattern(text).is_err(), "{text}");
        }
    }

    #[test]
    fn file_names_stay_in_their_directory() {
        assert!(file_name("index.html").is_ok());
        for text in ["", ".", "..", "a/b", "a\0b"] {
            assert!(file_name(text).is_err(), "{text:?}");
        }
    }
}
