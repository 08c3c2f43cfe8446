//! A `server`: its addresses, its names, and what its places share.

use std::cell::RefCell;

use crate::facts::Facts;
use crate::hoist::Hoisted;
use crate::kind::{Kind, kind};
use crate::listen::{Listen, Names};
use crate::locations;
use crate::model::{Group, Output, Path, Site};
use crate::scope::Scope;
use crate::syntax::Directive;
use crate::upstream::{Context, texts};
use crate::values::is_network;
use crate::{files, php, rules, tls};

/// Adds the sites of a server.
pub(crate) fn sites(
    context: &Context<'_>,
    scope: &Scope<'_>,
    server: &Directive,
    (listen, names): (&Listen, &Names),
    output: &mut Output,
) {
    let inner = scope.within(server.children());
    let facts = facts(context, &inner, listen, names);
    let rules = rules::of(context, &facts);
    let mut shared =
        Site { comment: format!("{}:{}", server.file, server.line), ..Site::default() };
    tls::site(context, &inner, listen, &mut shared, output);
    client(context, &inner, &mut shared);
    let limits = limits(context, &facts);
    for (host, group) in &rules.hosts {
        let mut site = shared.clone();
        site.lines.splice(0..0, listen.lines(true, true));
        site.lines.push(texts("hosts", std::slice::from_ref(host)));
        site.paths = vec![whole(group)];
        output.sites.push(site);
    }
    let plain_only = rules.plain.is_some() && !listen.tls.is_empty();
    if let (Some(group), false) = (&rules.plain, listen.plain.is_empty()) {
        let mut site = Site { comment: shared.comment.clone(), ..Site::default() };
        site.lines = listen.lines(true, false);
        site.lines.extend(names.line(&[]));
        site.paths = vec![whole(group)];
        output.sites.push(site);
        if !plain_only {
            return;
        }
    }
    let split: Vec<String> = rules.hosts.iter().map(|(host, _)| host.clone()).collect();
    if names.is_gone(&split) {
        return;
    }
    let mut site = shared;
    site.lines.splice(0..0, listen.lines(!plain_only, true));
    site.lines.extend(names.line(&split));
    let paths = match &rules.whole {
        Some(group) => vec![whole(group)],
        None => locations::paths(context, &facts),
    };
    let paths = rules.before(paths);
    Hoisted { context, facts: &facts, limits }.finish(&mut site, paths);
    output.sites.push(site);
}

/// The path `/` with one answer.
fn whole(group: &Group) -> Path {
    Path { prefix: "/".to_owned(), exact: false, groups: vec![group.clone()] }
}

fn facts<'d>(
    context: &Context<'_>,
    scope: &Scope<'d>,
    listen: &Listen,
    names: &Names,
) -> Facts<'d> {
    let mut facts = Facts {
        scope: scope.clone(),
        root: root(scope),
        php: None,
        fallback: None,
        scheme: match (listen.plain.is_empty(), listen.tls.is_empty()) {
            (false, true) => Some("http"),
            (true, false) => Some("https"),
            _ => None,
        },
        port: listen.port(),
        name: names.first.clone(),
        limited: is_limited(context, scope),
        unknown_client: unknown_client(scope),
        bypass: RefCell::default(),
        listings: RefCell::default(),
    };
    facts.php = scripts(context, scope, scope.here());
    facts.fallback = files::fallback_of_server(context, &facts);
    facts
}

/// The directory of the server, or of its location for `/`.
fn root(scope: &Scope<'_>) -> Option<String> {
    let own = files::root(scope);
    own.or_else(|| {
        let mut locations = scope.here().iter().filter(|one| one.is("location"));
        let whole = locations.find(|one| matches!(kind(one), Kind::Prefix("/", _)))?;
        files::root(&scope.within(whole.children()))
    })
}

/// The servers of the first location that runs scripts.
fn scripts(
    context: &Context<'_>,
    scope: &Scope<'_>,
    block: &[Directive],
) -> Option<(String, Option<String>)> {
    block.iter().filter(|one| one.is("location")).find_map(|location| {
        let inner = scope.within(location.children());
        let is_script = match kind(location) {
            Kind::Regex(text, _) => php::is_for_scripts(text),
            Kind::Exact(path) | Kind::Prefix(path, _) => path.contains(".php"),
            Kind::Named => false,
        };
        let pass = location.children().iter().find(|one| one.is("fastcgi_pass") && is_script);
        let own = pass.and_then(|pass| php::servers(context, &inner, pass).ok());
        let keeps = pass.is_none() || php::parameters(context, &inner).is_ok();
        own.filter(|_| keeps).or_else(|| scripts(context, &inner, location.children()))
    })
}

/// A field that names clients and that AFPA does not read.
fn unknown_client<'d>(scope: &Scope<'d>) -> Option<&'d Directive> {
    let header = scope.last("real_ip_header")?;
    let known = ["x-forwarded-for", "proxy_protocol"];
    let is_known = known.contains(&&*header.word(0).to_ascii_lowercase());
    (!is_known && scope.last("set_real_ip_from").is_some()).then_some(header)
}

/// The routers in front.
fn client(context: &Context<'_>, scope: &Scope<'_>, site: &mut Site) {
    let routers = scope.all("set_real_ip_from");
    if routers.is_empty() {
        return;
    }
    let header = scope.last("real_ip_header");
    let key = match header.map_or("x-real-ip".to_owned(), |one| one.word(0).to_ascii_lowercase()) {
        name if name == "x-forwarded-for" => "forwarded_from",
        name if name == "proxy_protocol" => "proxy_from",
        _ => {
            let directive = header.unwrap_or(routers[0]);
            context.ledger.left(directive, "AFPA reads X-Forwarded-For and the PROXY protocol");
            return;
        }
    };
    let mut networks = Vec::new();
    for router in routers {
        match is_network(router.word(0)) {
            true => networks.push(router.word(0).to_owned()),
            false => context.ledger.left(router, "AFPA takes networks"),
        }
    }
    if !networks.is_empty() {
        site.lines.push(texts(key, &networks));
    }
}

/// Whether all limits of requests are those of the whole server, in a form that AFPA has.
fn is_limited(context: &Context<'_>, scope: &Scope<'_>) -> bool {
    let locations = scope.here().iter().filter(|one| one.is("location"));
    let inner = locations.flat_map(|one| one.children());
    let own = inner.filter(|one| matches!(&*one.name, "limit_req" | "limit_conn")).count();
    own == 0 && limit_lines(context, scope).is_some()
}

/// The lines of `[site.limits]`.
fn limits(context: &Context<'_>, facts: &Facts<'_>) -> Vec<String> {
    if !facts.limited {
        return Vec::new();
    }
    for directive in facts.scope.any(&["limit_req", "limit_conn"]) {
        context
            .ledger
            .differs(directive, "requests for files are not counted, and the answer is 429");
    }
    limit_lines(context, &facts.scope).unwrap_or_default()
}

fn limit_lines(context: &Context<'_>, scope: &Scope<'_>) -> Option<Vec<String>> {
    let (requests, connections) = (scope.all("limit_req"), scope.all("limit_conn"));
    let mut lines = Vec::new();
    match &requests[..] {
        [] => {}
        [one] => {
            let zone = one.words.iter().find_map(|word| word.strip_prefix("zone="))?;
            let rate = context.zones.get(zone)?.strip_suffix("r/s")?.parse::<u32>().ok()?;
            let burst = one.words.iter().find_map(|word| word.strip_prefix("burst="));
            let burst = burst.map_or(Some(0), |burst| burst.parse::<u32>().ok())?;
            lines.push(format!("client_requests_per_second = {rate}"));
            lines.push(format!("client_burst = {}", burst.checked_add(1)?));
        }
        _ => return None,
    }
    match &connections[..] {
        [] => {}
        [one] if context.zones.contains_key(one.word(0)) => {
            lines.push(format!("client_connections = {}", one.word(1).parse::<u32>().ok()?));
        }
        _ => return None,
    }
    (!lines.is_empty()).then_some(lines)
}
