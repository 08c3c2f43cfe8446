//! The servers that `proxy_pass` names, and their settings.

use crate::headers;
use crate::scope::Scope;
use crate::syntax::Directive;
use crate::upstream::{Context, Settings};
use crate::values::{duration, is_plain, milliseconds, quoted};

/// The parts of `http://host:port/path`.
pub(crate) struct Target<'t> {
    tls: bool,
    http2: bool,
    host: &'t str,
    pub(crate) path: Option<&'t str>,
}

/// Takes a URL apart.
pub(crate) fn target(url: &str) -> Result<Target<'_>, String> {
    let (scheme, rest) = url.split_once("://").ok_or("it is no URL")?;
    let (tls, http2) = match scheme {
        "http" => (false, false),
        "https" => (true, false),
        "grpc" => (false, true),
        "grpcs" => (true, true),
        _ => return Err("AFPA takes http:// and https://".to_owned()),
    };
    if !is_plain(url) {
        return Err("its URL has variables".to_owned());
    }
    // The path of a socket ends with a colon.
    let end = match rest.strip_prefix("unix:") {
        Some(socket) => socket.find(':').map_or(rest.len(), |end| end + 6),
        None => rest.find('/').unwrap_or(rest.len()),
    };
    let (host, path) = rest.split_at(end);
    Ok(Target {
        tls,
        http2,
        host,
        path: Some(path.trim_start_matches(':')).filter(|path| !path.is_empty()),
    })
}

/// The servers of a URL, with all settings that a scope has for them, and the fields of requests.
pub(crate) fn servers(
    context: &Context<'_>,
    scope: &Scope<'_>,
    pass: &Directive,
    target: &Target<'_>,
) -> Result<(String, Vec<String>), String> {
    let sent = headers::requests(context, scope);
    let to = reached(context, scope, pass, target, (sent.host, sent.address))?;
    Ok((to, sent.section))
}

/// The servers of a question, with a Host of their own or that of the client (`keep`), and its path.
pub(crate) fn asked(
    context: &Context<'_>,
    scope: &Scope<'_>,
    pass: &Directive,
    host: Option<String>,
) -> Result<(String, Option<String>), String> {
    let target = target(pass.word(0))?;
    let own = |path: &&str| !path.contains(['{', '}', '#']);
    if target.path.is_some_and(|path| !own(&path)) {
        return Err("AFPA's question has no such path".to_owned());
    }
    let to = reached(context, scope, pass, &target, (host.or(Some(String::new())), None))?;
    Ok((to, target.path.map(str::to_owned)))
}

/// The servers of a mirror.
pub(crate) fn mirrored(
    context: &Context<'_>,
    scope: &Scope<'_>,
    pass: &Directive,
    target: &Target<'_>,
    host: Option<String>,
) -> Result<String, String> {
    reached(context, scope, pass, target, (host.or(Some(String::new())), None))
}

/// The servers of a URL, with all settings that a scope has for them. `host`: that which they are asked for; empty: that
/// of the URL, where nothing depends on it. `address`: the field that has the address of the client.
fn reached(
    context: &Context<'_>,
    scope: &Scope<'_>,
    pass: &Directive,
    target: &Target<'_>,
    (host, address): (Option<String>, Option<String>),
) -> Result<String, String> {
    let mut settings = Settings::new();
    if let Some(name) = address {
        let line = format!("client_address = {}", quoted(&name));
        settings.entry("request").or_default().push(line);
    }
    let is_upstream = context.upstreams.contains_key(target.host);
    let is_said = host.is_some();
    let host = match host.as_deref().filter(|host| !host.is_empty()) {
        Some("keep") => None,
        Some(host) => Some(host),
        None if target.host.starts_with("unix:") => Some("localhost"),
        None if is_upstream => Some(target.host),
        None => Some("server"),
    };
    if let Some(host) = host {
        let line = format!("host = {}", quoted(host));
        settings.entry("request").or_default().push(line);
        let follows = scope.last("proxy_redirect").is_none();
        if follows && !is_said {
            let why = "servers that redirect to the host that they are asked for are not corrected";
            context.ledger.differs(pass, why);
        }
    }
    if target.tls {
        settings.entry("").or_default().push("tls = true".to_owned());
        verify(context, scope, pass, target, &mut settings);
    }
    if target.http2 {
        settings.entry("").or_default().push("http2 = true".to_owned());
    }
    timeouts(context, scope, &mut settings);
    let port = if target.tls { 443 } else { 80 };
    context.destination(target.host, port, settings)
}

fn verify(
    context: &Context<'_>,
    scope: &Scope<'_>,
    pass: &Directive,
    target: &Target<'_>,
    settings: &mut Settings,
) {
    let mut lines = Vec::new();
    let name = match scope.value("proxy_ssl_name") {
        "" if context.upstreams.contains_key(target.host) => target.host,
        name => name,
    };
    if !name.is_empty() && is_plain(name) {
        lines.push(format!("name = {}", quoted(name)));
    }
    let files = [
        ("proxy_ssl_trusted_certificate", "authorities"),
        ("proxy_ssl_certificate", "chain"),
        ("proxy_ssl_certificate_key", "key"),
    ];
    for (directive, key) in files {
        let file = scope.value(directive);
        if !file.is_empty() && is_plain(file) {
            lines.push(format!("{key} = {}", quoted(&context.file(file))));
        }
    }
    if !scope.is_on("proxy_ssl_verify") {
        let off = scope.last("proxy_ssl_verify").unwrap_or(pass);
        context.ledger.differs(off, "AFPA always checks the server's certificate");
    }
    if !lines.is_empty() {
        settings.insert("verify", lines);
    }
}

fn timeouts(context: &Context<'_>, scope: &Scope<'_>, settings: &mut Settings) {
    let mut lines = Vec::new();
    if let Some(connect) = scope.last("proxy_connect_timeout") {
        match duration(connect.word(0), 10, 600_000) {
            Some(time) => lines.push(format!("connect = {}", quoted(&time))),
            None => context.ledger.left(connect, "AFPA takes 10ms to 10m"),
        }
    }
    let times = ["proxy_read_timeout", "proxy_send_timeout"].map(|name| scope.last(name));
    let longest = times.into_iter().flatten().max_by_key(|one| milliseconds(one.word(0)));
    if let Some(longest) = longest {
        match duration(longest.word(0), 10, 86_400_000) {
            Some(time) if time == "1m" => {}
            Some(time) => {
                lines.push(format!("idle = {}", quoted(&time)));
                lines.push(format!("tunnel_idle = {}", quoted(&time)));
            }
            None => context.ledger.left(longest, "AFPA takes 10ms to 24h"),
        }
    }
    if !lines.is_empty() {
        settings.insert("timeouts", lines);
    }
}
