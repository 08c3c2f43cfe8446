//! What texts may be names, fields and types.

use std::net::SocketAddr;

use afpa_framework::Network;

use super::units::{Listen, Unfit};

/// A TCP address with its port.
pub(super) fn tcp(text: &str) -> Result<SocketAddr, Unfit> {
    match text.parse()? {
        Listen::Tcp(address) => Ok(address),
        Listen::Unix(_) => {
            Err(Unfit::new("this listens on TCP only", "write for example \"127.0.0.1:9090\""))
        }
    }
}

/// The name of a user or group, or its number.
pub(super) fn account(text: &str) -> Result<String, Unfit> {
    let fits = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-' | '.' | '$' | '@');
    if text.is_empty() || text.starts_with('-') || !text.chars().all(fits) {
        let cause = format!("\"{text}\" is not a user or group name");
        return Err(Unfit::new(cause, "write a name of /etc/passwd or /etc/group, or \"auto\""));
    }
    Ok(text.to_owned())
}

/// What a server group is called.
pub(super) fn group_name(text: &str) -> Result<String, Unfit> {
    let fits = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-' | '.');
    if text.is_empty() || text.len() > 64 || text == "none" || !text.chars().all(fits) {
        let cause = format!("\"{text}\" is not a name for a server group");
        return Err(Unfit::new(cause, "use letters, digits, hyphens and dots: \"app\""));
    }
    Ok(text.to_owned())
}

/// A server group, or the address of a server, or several with commas between them.
pub(super) fn destination(text: &str) -> Result<String, Unfit> {
    if text.contains([':', '/', ',']) {
        let places = super::groups::server_places(text)?;
        let names: Vec<String> = places.iter().map(ToString::to_string).collect();
        return Ok(names.join(","));
    }
    group_name(text)
}

/// A method, field name or cookie name.
pub(super) fn token(text: &str) -> Result<String, Unfit> {
    if !is_token(text) {
        let cause = format!("\"{text}\" is not a token");
        return Err(Unfit::new(cause, "use letters, digits, hyphens and underscores"));
    }
    Ok(text.to_owned())
}

/// A method; they are written in capitals.
pub(super) fn method(text: &str) -> Result<String, Unfit> {
    let method = token(text)?;
    if method.bytes().any(|byte| byte.is_ascii_lowercase()) {
        let cause = format!("\"{text}\": case matters in methods");
        return Err(Unfit::new(cause, format!("did you mean \"{}\"?", text.to_ascii_uppercase())));
    }
    Ok(method)
}

/// A text that nobody guesses.
pub(super) fn secret(text: &str) -> Result<String, Unfit> {
    if text.len() < 16 {
        let cause = "a secret of less than 16 bytes can be guessed";
        return Err(Unfit::new(
            cause,
            "write a longer one, for example from `openssl rand -hex 16`",
        ));
    }
    Ok(text.to_owned())
}

/// A path that is asked for as it stands.
pub(super) fn check_path(text: &str) -> Result<String, Unfit> {
    let plain = |byte: u8| (b'!'..=b'~').contains(&byte) && byte != b'#';
    if !text.starts_with('/') || text.len() > 1024 || !text.bytes().all(plain) {
        let cause = format!("\"{text}\" is not a URL path");
        return Err(Unfit::new(cause, "begin with a slash, and escape what needs it: \"/health\""));
    }
    Ok(text.to_owned())
}

/// The Host field that servers get.
pub(super) fn sent_host(text: &str) -> Result<String, Unfit> {
    if matches!(text, "keep" | "server") {
        return Ok(text.to_owned());
    }
    let (name, port) = match text.rsplit_once(':') {
        Some((name, port)) if !port.contains(']') => (name, Some(port)),
        _ => (text, None),
    };
    if port.is_some_and(|port| port.parse::<u16>().is_err()) {
        let cause = format!("\"{text}\" is not a host name with a port");
        return Err(Unfit::new(cause, "write for example \"app.example:8080\", or \"keep\""));
    }
    host(name).map(|_| text.to_ascii_lowercase())
}

/// A protocol that a connection may change to. What comes behind `h2c` nobody would look at.
pub(super) fn upgrade(text: &str) -> Result<String, Unfit> {
    let protocol = token(text)?.to_ascii_lowercase();
    if protocol == "h2c" {
        let cause = "a change to h2c would let requests pass that nobody looks at";
        return Err(Unfit::new(cause, "remove it"));
    }
    Ok(protocol)
}

/// A network, or one address.
pub(super) fn network(text: &str) -> Result<Network, Unfit> {
    text.parse().map_err(|_| {
        let cause = format!("\"{text}\" is not an address or network");
        Unfit::new(cause, "write for example \"10.0.0.0/8\" or \"::1\"")
    })
}

/// A URL path prefix, as normalised paths have it.
pub(super) fn prefix(text: &str) -> Result<String, Unfit> {
    if !text.starts_with('/') {
        let cause = format!("the prefix \"{text}\" does not begin with a slash");
        return Err(Unfit::new(cause, format!("write \"/{text}\"")));
    }
    let normal = normal_prefix(text);
    match normal.as_deref() {
        Some(normal) if normal == text => Ok(text.to_owned()),
        Some(normal) => {
            let cause = format!("no path begins with \"{text}\": paths are normalised first");
            Err(Unfit::new(cause, format!("write \"{normal}\"")))
        }
        None => {
            let cause = format!("no path begins with \"{text}\"");
            Err(Unfit::new(cause, "write it without `..` and control characters"))
        }
    }
}

/// Without empty and `.` segments; the last segment may be the beginning of any name.
fn normal_prefix(text: &str) -> Option<String> {
    let (folders, last) = text.rsplit_once('/')?;
    let kept = folders.split('/').filter(|segment| !matches!(*segment, "" | "."));
    let kept: Vec<&str> = kept.collect();
    if kept.contains(&"..") || text.chars().any(char::is_control) {
        return None;
    }
    let folders: String = kept.iter().map(|segment| format!("/{segment}")).collect();
    Some(format!("{folders}/{last}"))
}

/// An extension, `none` or `others`.
pub(super) fn listed_extension(text: &str) -> Result<String, Unfit> {
    if let Some(bare) = text.strip_prefix('.') {
        let cause = format!("the extension \"{text}\" begins with a dot");
        return Err(Unfit::new(cause, format!("write it without: \"{bare}\"")));
    }
    if text.is_empty()
        || text.len() > 64
        || text.contains(['.', '/'])
        || text.contains(char::is_control)
    {
        let cause = format!("\"{text}\" is not an extension");
        return Err(Unfit::new(
            cause,
            "write what stands after the last dot, \"none\" or \"others\"",
        ));
    }
    Ok(text.to_ascii_lowercase())
}

/// The Location of a redirect, with its variables.
pub(super) fn location(text: &str) -> Result<String, Unfit> {
    let plain = |byte: u8| (b'!'..=b'~').contains(&byte);
    if text.is_empty() || !text.bytes().all(plain) {
        let cause = format!("\"{text}\" is not a URL");
        return Err(Unfit::new(cause, "escape spaces and other characters: %20"));
    }
    let start = ["http://", "https://", "/", "{path}"].iter().any(|start| text.starts_with(start));
    if !start {
        let cause = format!("\"{text}\" leads nowhere in particular");
        return Err(Unfit::new(cause, "begin with https://, http:// or a slash"));
    }
    Ok(text.to_owned())
}

/// A field or cookie and what its value must be.
pub(super) fn condition(name: &str, value: &str) -> Result<(String, String), Unfit> {
    Ok((token(name)?, value.to_owned()))
}

/// The media type of a fixed response.
pub(super) fn media_type(text: &str) -> Result<String, Unfit> {
    extension("fixed", text).map(|(_, media)| media)
}

/// Any text.
pub(super) fn any(text: &str) -> Result<String, Unfit> {
    Ok(text.to_owned())
}

/// What a site is called in logs and metrics.
pub(super) fn site_name(text: &str) -> Result<String, Unfit> {
    if text.is_empty() || text.len() > 128 || text.chars().any(|c| c.is_control() || c == '"') {
        return Err(Unfit::new(format!("\"{text}\" is not a name"), "write a short word"));
    }
    Ok(text.to_owned())
}

/// A host name as a site answers to it: [`host`], or `*.` before one.
pub(super) fn host_pattern(text: &str) -> Result<String, Unfit> {
    match text.strip_prefix("*.") {
        Some(name) => host(name).map(|name| format!("*.{name}")),
        None => host(text),
    }
}

/// A host name or address as a Host field has it, without its port; in lower case.
pub(super) fn host(text: &str) -> Result<String, Unfit> {
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
pub(super) fn file_name(text: &str) -> Result<String, Unfit> {
    if matches!(text, "" | "." | "..") || text.contains(['/', '\0']) {
        let cause = format!("\"{text}\" is not the name of a file");
        return Err(Unfit::new(cause, "write a name without a slash"));
    }
    Ok(text.to_owned())
}

/// A media type without parameters, or `type/*`.
pub(super) fn media_pattern(text: &str) -> Result<String, Unfit> {
    let fits = match text.split_once('/') {
        Some((kind, "*")) => is_token(kind),
        Some((kind, subtype)) => is_token(kind) && is_token(subtype),
        None => false,
    };
    if !fits {
        let cause = format!("\"{text}\" is not a media type");
        return Err(Unfit::new(cause, "write for example \"text/html\", or \"text/*\" for all"));
    }
    Ok(text.to_ascii_lowercase())
}

/// An extension and its media type, which may have parameters.
pub(super) fn extension(name: &str, media: &str) -> Result<(String, String), Unfit> {
    if name.is_empty() || name.contains(['/', '\0']) {
        let cause = format!("\"{name}\" is not an extension");
        return Err(Unfit::new(cause, "write what stands after the last dot: md = \"text/plain\""));
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
pub(super) fn header(name: &str, value: &str) -> Result<(String, String), Unfit> {
    if !is_token(name) {
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
        let cause =
            format!("the value of {name} has a line break, control character or outer space");
        return Err(Unfit::new(cause, "write one line of printable characters"));
    }
    Ok((name.to_owned(), value.to_owned()))
}

/// RFC 9110 section 5.6.2.
fn is_token(text: &str) -> bool {
    let special = b"!#$%&'*+-.^_`|~";
    !text.is_empty() && text.bytes().all(|b| b.is_ascii_alphanumeric() || special.contains(&b))
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
