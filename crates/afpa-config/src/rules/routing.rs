//! Which texts are valid names, prefixes and conditions of sites and server groups.

use afpa_framework::Network;
use afpa_http::syntax::is_token;
use afpa_http::{Status, target};

use super::servers::server_addresses;
use super::{extension, host};
use crate::fallback::Fallback;
use crate::php::Php;
use crate::units::Unfit;

/// The name of a server group.
pub(crate) fn group_name(text: &str) -> Result<String, Unfit> {
    let fits = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-' | '.');
    if text.is_empty() || text.len() > 64 || text == "none" || !text.chars().all(fits) {
        let cause = format!("\"{text}\" is not a name for a server group");
        return Err(Unfit::new(cause, "use letters, digits, hyphens and dots: \"app\""));
    }
    Ok(text.to_owned())
}

/// A server group, or the address of a server, or several with commas between them.
pub(crate) fn destination(text: &str) -> Result<String, Unfit> {
    if text.contains([':', '/', ',']) {
        let addresses = server_addresses(text)?;
        let names: Vec<String> = addresses.iter().map(ToString::to_string).collect();
        return Ok(names.join(","));
    }
    group_name(text)
}

/// The answer to a request for a path that is no file.
pub(crate) fn fallback(text: &str) -> Result<Fallback, Unfit> {
    if !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit()) {
        let status = text.parse().ok().filter(|code| is_whole(*code));
        let status = status.and_then(Status::new).map(Fallback::Status);
        return status.ok_or_else(|| {
            let cause = format!("{text} is not the status of an answer without more");
            Unfit::new(cause, "write 200, 204, or 400 to 599 but 401 and 407: 404, for example")
        });
    }
    if !text.starts_with('/') {
        return destination(text).map(Fallback::To);
    }
    let mut room = Vec::new();
    let plain = |byte: u8| byte != b'%' && byte != b'?' && byte != b'#';
    let is_normal = target::normalise(text.as_bytes(), &mut room) == Ok(text.as_bytes());
    if !is_normal || text.ends_with('/') || !text.bytes().all(plain) {
        let cause = format!("\"{text}\" is not the path of a file below `root`");
        return Err(Unfit::new(cause, "write it from there: \"/index.html\""));
    }
    Ok(Fallback::File(text.to_owned()))
}

/// Whether an answer with this status is whole without another field: a location, a range, a challenge (RFC 9110
/// sections 15.3.7, 15.4, 15.5.2 and 15.5.8).
fn is_whole(code: u16) -> bool {
    matches!(code, 200 | 204 | 400..600) && code != 401 && code != 407
}

/// The servers that run scripts, or none.
pub(crate) fn php(text: &str) -> Result<Php, Unfit> {
    if text == "none" { Ok(Php::Off) } else { destination(text).map(Php::To) }
}

/// A directory of a server, which need not be one of this machine.
pub(crate) fn directory(text: &str) -> Result<String, Unfit> {
    if !text.starts_with('/') || text.contains('\0') {
        let cause = format!("\"{text}\" is not an absolute path");
        return Err(Unfit::new(cause, "write the directory as PHP sees it: \"/var/www/html\""));
    }
    Ok(text.to_owned())
}

/// A parameter of FastCGI.
pub(crate) fn param(name: &str, value: &str) -> Result<(String, String), Unfit> {
    let fits = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'_';
    if name.is_empty() || !name.bytes().all(fits) {
        let cause = format!("\"{name}\" is not the name of a variable");
        return Err(Unfit::new(cause, "use letters, digits and underscores: \"APP_ENV\""));
    }
    if matches!(name, "CONTENT_LENGTH" | "CONTENT_TYPE" | "REQUEST_METHOD") {
        let cause = format!("each request has a {name} of its own");
        return Err(Unfit::new(cause, "remove it"));
    }
    Ok((name.to_owned(), value.to_owned()))
}

/// A method, field name or cookie name.
pub(crate) fn token(text: &str) -> Result<String, Unfit> {
    if !is_token(text.as_bytes()) {
        let cause = format!("\"{text}\" is not a token");
        return Err(Unfit::new(cause, "use letters, digits, hyphens and underscores"));
    }
    Ok(text.to_owned())
}

/// A text that nobody guesses.
pub(crate) fn secret(text: &str) -> Result<String, Unfit> {
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
pub(crate) fn check_path(text: &str) -> Result<String, Unfit> {
    let plain = |byte: u8| (b'!'..=b'~').contains(&byte) && byte != b'#';
    if !text.starts_with('/') || text.len() > 1024 || !text.bytes().all(plain) {
        let cause = format!("\"{text}\" is not a URL path");
        return Err(Unfit::new(cause, "begin with a slash, and escape what needs it: \"/health\""));
    }
    Ok(text.to_owned())
}

/// The Host field that servers get.
pub(crate) fn sent_host(text: &str) -> Result<String, Unfit> {
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

/// A protocol that a connection may change to. `h2c` is refused: nothing would check the requests behind it.
pub(crate) fn upgrade(text: &str) -> Result<String, Unfit> {
    let protocol = token(text)?.to_ascii_lowercase();
    if protocol == "h2c" {
        let cause = "a change to h2c would let requests pass that nobody looks at";
        return Err(Unfit::new(cause, "remove it"));
    }
    Ok(protocol)
}

/// A network, or one address.
pub(crate) fn network(text: &str) -> Result<Network, Unfit> {
    text.parse().map_err(|_| {
        let cause = format!("\"{text}\" is not an address or network");
        Unfit::new(cause, "write for example \"10.0.0.0/8\" or \"::1\"")
    })
}

/// A URL path prefix, as normalised paths have it.
pub(crate) fn prefix(text: &str) -> Result<String, Unfit> {
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

/// The path that takes the place of another, or of its prefix.
pub(crate) fn rewrite(text: &str) -> Result<String, Unfit> {
    no_variable_of_others(text)?;
    if text.starts_with("http://") || text.starts_with("https://") {
        let cause = format!("\"{text}\" is no path");
        return Err(Unfit::new(
            cause,
            "write `redirect` to send clients there, or `to` for its server",
        ));
    }
    if !text.contains(['{', '?']) {
        return prefix(text);
    }
    if !text.starts_with('/') && !text.starts_with("{path}") {
        let cause = format!("\"{text}\" does not begin with a slash");
        return Err(Unfit::new(cause, format!("write \"/{text}\"")));
    }
    if !text.bytes().all(|byte| (b'!'..=b'~').contains(&byte)) {
        let cause = format!("\"{text}\" is not a URL path");
        return Err(Unfit::new(cause, "escape spaces and other characters: %20"));
    }
    Ok(text.to_owned())
}

/// Variables as nginx and Apache write them, which would be sent to clients and servers as they stand.
fn no_variable_of_others(text: &str) -> Result<(), Unfit> {
    const NAMES: [(&str, &str); 8] = [
        ("request_uri", "{path}{query}"),
        ("document_uri", "{path}"),
        ("uri", "{path}"),
        ("is_args", "{query}"),
        ("args", "{query}"),
        ("query_string", "{query}"),
        ("http_host", "{host}"),
        ("host", "{host}"),
    ];
    for (at, _) in text.match_indices('$') {
        let rest = text.get(at + 1..).unwrap_or_default();
        let group = rest.chars().next().filter(char::is_ascii_digit);
        let group = group.map(|digit| (digit.to_string(), format!("{{{digit}}}")));
        let name = NAMES.iter().find(|(name, _)| rest.starts_with(name));
        let found = group.or(name.map(|(name, own)| ((*name).to_owned(), (*own).to_owned())));
        if let Some((name, own)) = found {
            let cause = format!("\"{text}\" has ${name}, which stands for nothing");
            return Err(Unfit::new(cause, format!("write {own}; for a dollar sign, %24")));
        }
    }
    Ok(())
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
pub(crate) fn listed_extension(text: &str) -> Result<String, Unfit> {
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
        return Err(Unfit::new(cause, "write the part after the last dot, \"none\" or \"others\""));
    }
    Ok(text.to_ascii_lowercase())
}

/// An extension, or `none`.
pub(crate) fn file_extension(text: &str) -> Result<String, Unfit> {
    match listed_extension(text)? {
        others if others == "others" => {
            let cause = "\"others\" is a content group of the router".to_owned();
            Err(Unfit::new(cause, "leave the list empty: it then means all that are not listed"))
        }
        extension => Ok(extension),
    }
}

/// The Location of a redirect, with its variables.
pub(crate) fn location(text: &str) -> Result<String, Unfit> {
    no_variable_of_others(text)?;
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

/// The media type of a fixed response.
pub(crate) fn media_type(text: &str) -> Result<String, Unfit> {
    extension("fixed", text).map(|(_, media)| media)
}

/// Any text.
pub(crate) fn any(text: &str) -> Result<String, Unfit> {
    Ok(text.to_owned())
}

/// A name that a certificate can be for: a host name or an address.
pub(crate) fn server_name(text: &str) -> Result<String, Unfit> {
    match afpa_tls::machine::ServerName::try_from(text) {
        Ok(_) => Ok(text.to_owned()),
        Err(_) => Err(Unfit::new(
            format!("\"{text}\" is neither a host name nor an address"),
            "write it as the servers' certificates have it",
        )),
    }
}

/// The name of a site in logs and metrics.
pub(crate) fn site_name(text: &str) -> Result<String, Unfit> {
    if text.is_empty() || text.len() > 128 || text.chars().any(|c| c.is_control() || c == '"') {
        return Err(Unfit::new(format!("\"{text}\" is not a name"), "write a short word"));
    }
    Ok(text.to_owned())
}

/// A host name as a site answers to it: [`host`], or `*.` before one.
pub(crate) fn host_pattern(text: &str) -> Result<String, Unfit> {
    match text.strip_prefix("*.") {
        Some(name) => host(name).map(|name| format!("*.{name}")),
        None => host(text),
    }
}
