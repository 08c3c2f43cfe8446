//! `proxy_pass` and what goes with it.

use crate::facts::{Facts, Place, limits};
use crate::guards::{follows, gives};
use crate::model::Group;
use crate::redirects::{Matched, matched};
use crate::scope::Scope;
use crate::syntax::Directive;
use crate::upstream::{Context, Settings};
use crate::values::{duration, is_plain, milliseconds, quoted};
use crate::{cache, headers, names};

/// The parts of `http://host:port/path`.
struct Target<'t> {
    tls: bool,
    http2: bool,
    host: &'t str,
    path: Option<&'t str>,
}

fn target(url: &str) -> Result<Target<'_>, String> {
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
fn servers(
    context: &Context<'_>,
    scope: &Scope<'_>,
    pass: &Directive,
    target: &Target<'_>,
) -> Result<(String, Vec<String>), String> {
    let sent = headers::requests(context, scope);
    let to = reached(context, scope, pass, target, sent.host)?;
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
    let to = reached(context, scope, pass, &target, host.or(Some(String::new())))?;
    Ok((to, target.path.map(str::to_owned)))
}

/// The servers of a URL, with all settings that a scope has for them. `host`: that which they are asked for; empty: that
/// of the URL, where nothing depends on it.
fn reached(
    context: &Context<'_>,
    scope: &Scope<'_>,
    pass: &Directive,
    target: &Target<'_>,
    host: Option<String>,
) -> Result<String, String> {
    let mut settings = Settings::new();
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

/// Passes requests on.
pub(crate) fn group(
    context: &Context<'_>,
    facts: &Facts<'_>,
    place: &Place<'_>,
    pass: &Directive,
    strip: Option<&Directive>,
) -> Result<Group, String> {
    let target = target(pass.word(0))?;
    let rewrite = match (target.path, strip) {
        (Some(_), Some(_)) => return Err("its `rewrite` and its path contradict".to_owned()),
        (Some(path), None) => replaced(place, path)?,
        (None, Some(strip)) => stripped(place, strip),
        (None, None) => None,
    };
    let (to, section) = servers(context, &place.scope, pass, &target)?;
    let mut group = Group { action: vec![format!("to = {}", quoted(&to))], ..Group::default() };
    group.action.extend(rewrite.map(|new| format!("rewrite = {}", quoted(&new))));
    group.sent.extend((!section.is_empty()).then_some(section));
    group.rules.extend(limits(context, place, "proxy"));
    group.rules.extend(cache::line(context, facts, &place.scope));
    redirects(context, &place.scope);
    Ok(group)
}

fn redirects(context: &Context<'_>, scope: &Scope<'_>) {
    for directive in scope.all("proxy_redirect") {
        if !matches!(directive.word(0), "off" | "default") {
            context.ledger.left(directive, "AFPA does not change where servers redirect to");
        }
    }
}

/// The path in the place of the location's.
fn replaced(place: &Place<'_>, path: &str) -> Result<Option<String>, String> {
    if path == place.prefix && !place.is_regex {
        return Ok(None);
    }
    let same_end = path.ends_with('/') == place.prefix.ends_with('/');
    if place.is_regex || !same_end || path.contains(['?', '#', '%']) || path.contains("//") {
        return Err(
            "AFPA puts a path in the place of another that ends with a slash as it does".to_owned()
        );
    }
    Ok(Some(path.to_owned()))
}

/// Whether a `rewrite ^/api/(.*)$ /$1 break;` takes the location's path away.
pub(crate) fn strips(place: &Place<'_>, directive: &Directive) -> bool {
    let passes = place.scope.here().iter().any(|one| one.is("proxy_pass"));
    passes && stripped(place, directive).is_some()
}

fn stripped(place: &Place<'_>, directive: &Directive) -> Option<String> {
    let Some(Matched::Below(path)) = matched(directive.word(0)) else { return None };
    let new = directive.word(1).strip_suffix("$1")?;
    let fits = path == place.prefix && path.ends_with('/') && !place.is_regex;
    (fits && is_plain(new) && new.starts_with('/') && new.ends_with('/')).then(|| new.to_owned())
}

/// The servers of a named location, for `fallback`, and the fields of requests that go with them.
pub(crate) fn named(
    context: &Context<'_>,
    facts: &Facts<'_>,
    place: &Place<'_>,
    name: &str,
) -> Result<(String, Vec<String>), String> {
    let mut locations = facts.scope.here().iter();
    let location = locations.find(|one| one.is("location") && one.word(0) == name);
    let location = location.ok_or("there is no such location")?;
    let scope = facts.scope.within(location.children());
    if !follows(context, &scope, &place.scope) {
        return Err("others may use its location than may use this place".to_owned());
    }
    let mut handlers = location.children().iter();
    let Some(pass) = handlers.find(|one| one.is("proxy_pass")) else {
        let script = front_controller(facts, location)?;
        if !gives(context, facts, &script, &place.scope) {
            return Err("others may use its script than may use this place".to_owned());
        }
        return Ok((script, Vec::new()));
    };
    let odd = ["rewrite", "if", "return", "auth_basic", "allow", "deny", "limit_except", "satisfy"];
    let is_odd = |one: &&Directive| {
        odd.contains(&&*one.name) || names::guards(&one.name) || one.name.starts_with("limit_")
    };
    if let Some(odd) = location.children().iter().find(is_odd) {
        return Err(format!("its location has {}", odd.name));
    }
    for header in location.children().iter().filter(|one| one.is("add_header")) {
        context.ledger.left(header, "fields of a fallback are those of its location");
    }
    let target = target(pass.word(0))?;
    if target.path.is_some() {
        return Err("the path of its `proxy_pass` stands for nothing".to_owned());
    }
    servers(context, &scope, pass, &target)
}

/// The script of `rewrite ^ /index.php last;` in a named location.
fn front_controller(facts: &Facts<'_>, location: &Directive) -> Result<String, String> {
    let mut inner = location.children().iter();
    let rewrite = inner.next().filter(|one| one.is("rewrite") && inner.next().is_none());
    let all = ["^", "^(.*)$", "^/(.*)$", ".*", "^.*$", "^(.+)$"];
    let script = rewrite.filter(|one| all.contains(&one.word(0))).map(|one| one.word(1));
    let script = script.map(|script| script.split_once('?').map_or(script, |(path, _)| path));
    let fits = |script: &&str| script.ends_with(".php") && is_plain(script) && facts.php.is_some();
    script
        .filter(fits)
        .map(str::to_owned)
        .ok_or_else(|| format!("{} asks no server of HTTP", location.word(0)))
}

/// The servers of a `proxy_pass` without a path.
pub(crate) fn plain(
    context: &Context<'_>,
    scope: &Scope<'_>,
    here: &[Directive],
) -> Result<String, String> {
    let pass = here.iter().find(|one| one.is("proxy_pass")).ok_or("there is no server")?;
    let target = target(pass.word(0))?;
    servers(context, scope, pass, &target).map(|(to, _)| to)
}
