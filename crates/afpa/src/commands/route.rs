//! `afpa route URL`: the request set of a URL, and why.

use std::borrow::Cow;
use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Duration;

use afpa_fast_path::{MOST_WAYS, is_left_out};
use afpa_http::edits::{Change, FieldRule};
use afpa_http::{Host, Method, target};
use afpa_module_http::{readings, separated, shut};
use afpa_police::{Prefix, Quota};
use afpa_router::{
    Action, Explanation, Extension, Fallback, Fields, HostMatch, ListenerId, MOST_REWRITES,
    MatchResult, Question, RequestSet, Router, Scripts, SiteId, Unmet, Unrouted, Verdict,
};
use anyhow::{Context as _, bail};

use super::print;
use crate::cli::Route;
use afpa_config::{
    Access, BasicAuth, CacheMode, Choice as _, ErrorPage, ForwardAuth, Guarded, Guards, Listen,
    Loaded, Machine, Overrides, RateOrigin, Root, Routes, ServerLimits, SiteCache, error_pages,
    field_name, field_rules, human_size, load,
};

/// `afpa route URL`.
///
/// # Errors
/// When the configuration or the URL cannot be read.
pub fn route(options: &Route) -> anyhow::Result<ExitCode> {
    let file = file(options.config.as_deref())?;
    let loaded = load(Some(&file), &Overrides::default(), &Machine::probe())?;
    let (text, found) = explained(&loaded, options)?;
    print(&loaded.source.hide(text))?;
    Ok(if found { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

fn file(given: Option<&Path>) -> anyhow::Result<PathBuf> {
    const USUAL: [&str; 2] = ["afpa.toml", "/etc/afpa/afpa.toml"];
    let usual = || USUAL.iter().map(PathBuf::from).find(|path| path.exists());
    let found = given.map(PathBuf::from).or_else(usual);
    found.context("there is no afpa.toml here or in /etc/afpa: name one with --config")
}

/// A URL in its parts.
#[derive(Debug, PartialEq, Eq)]
struct Url<'u> {
    host: &'u str,
    /// `None`: any.
    port: Option<u16>,
    path: &'u str,
    query: Option<&'u str>,
}

impl<'u> Url<'u> {
    fn parse(text: &'u str) -> anyhow::Result<Self> {
        let text = text.split('#').next().unwrap_or(text);
        let (authority, default, rest) = match text.split_once("://") {
            // There may be a whole URL in its query.
            _ if text.starts_with('/') => ("", None, text),
            Some((scheme @ ("http" | "https"), rest)) => {
                let end = rest.find(['/', '?']).unwrap_or(rest.len());
                let (authority, rest) = rest.split_at(end);
                (authority, Some(if scheme == "http" { 80 } else { 443 }), rest)
            }
            _ => bail!("\"{text}\" is neither a URL nor a path: write http://example.org/ or /"),
        };
        let (path, query) = match rest.split_once('?') {
            Some((path, query)) => (path, Some(query)),
            None => (rest, None),
        };
        let path = if path.is_empty() { "/" } else { path };
        if authority.is_empty() {
            return Ok(Url { host: "", port: None, path, query });
        }
        let host = Host::parse(authority.as_bytes());
        let host = host.map_err(|_| anyhow::anyhow!("\"{authority}\" is not a host"))?;
        Ok(Url { host: host.name(), port: host.port().or(default), path, query })
    }
}

/// The explanation, and whether there is a request set.
fn explained(loaded: &Loaded, options: &Route) -> anyhow::Result<(String, bool)> {
    let url = Url::parse(&options.url)?;
    let fields =
        options.header.iter().map(|line| field(line)).collect::<anyhow::Result<Vec<_>>>()?;
    let routes = &loaded.routes;
    let (listener, note) = listener(routes, &url, options.listen.as_deref())?;
    let mut told = Told { loaded, routes, text: String::new() };
    let address = routes.listeners.listeners().get(listener.0 as usize);
    told.row("address", &format!("{}{note}", address.map(ToString::to_string).unwrap_or_default()));
    let mut again = told.round((&url, options, &fields), listener, true)?;
    for _ in 0..MOST_REWRITES {
        let Next::Again(target) = &again else { break };
        let url = Url { host: url.host, ..Url::parse(target)? };
        again = told.round((&url, options, &fields), listener, false)?;
    }
    if matches!(again, Next::Again(_)) {
        told.row("answer", "500: it is rewritten again and again");
    }
    Ok((told.text, matches!(again, Next::Found)))
}

/// The end of an explanation, or its next round.
enum Next {
    /// There is a request set.
    Found,
    /// There is none.
    Nowhere,
    /// This target is routed in its place.
    Again(String),
}

/// A request: its URL, the options, its fields.
type Request<'a> = (&'a Url<'a>, &'a Route, &'a [(String, String)]);

impl Told<'_> {
    /// Explains one look at the router.
    fn round(
        &mut self,
        (url, options, fields): Request<'_>,
        listener: ListenerId,
        is_first: bool,
    ) -> anyhow::Result<Next> {
        let (mut scratch, mut spelled) = (Vec::new(), Vec::new());
        let path = target::normalise(url.path.as_bytes(), &mut scratch)
            .with_context(|| format!("no request set has the path {}", url.path))?;
        let spelled = target::spell(url.path.as_bytes(), &mut spelled).unwrap_or_default();
        let (loaded, routes) = (self.loaded, self.routes);
        let told = self;
        let question = Question {
            listener,
            host: url.host,
            method: Method::new(&options.method),
            path,
            query: url.query.map(str::as_bytes),
            fields: (fields, options.client),
        };
        let explanation = routes.router.explain(&question);
        if is_first {
            told.site(&explanation);
        }
        told.path(url, path, &explanation);
        told.tried(&explanation);
        let apart = separated(path);
        let shut = shut(&routes.router, &question, &apart);
        let verdict = shut.map_or_else(|| routes.router.route(&question), Ok);
        let others = other_readings(routes, &verdict, path, &apart);
        let is_counted = told.rates(&question, &verdict, &apart);
        let guarded = told.access(&question, &verdict, &others);
        if is_counted && !guarded && is_first {
            told.row("kernel", "never answers: it counts no request by its place");
        }
        let guarded = guarded || is_counted;
        match verdict {
            Err(Unrouted::Misdirected) => {
                told.row("answer", "421: no site of this address has this host")
            }
            Err(Unrouted::NotFound(SiteId(index))) => {
                told.row("answer", "404: no request set of the site has it");
                if let Some(site) = loaded.config.sites.get(index as usize) {
                    told.errors(&error_pages(site, None, None));
                }
            }
            Ok(verdict) => {
                let guarded_by_somebody = guarded;
                let guarded = guarded || !verdict.certain || !is_first;
                if let Some(set) = routes.router.set(verdict.set) {
                    told.row("request set", &set.name);
                    told.row("behaviour", &loaded.shown(&routes.hierarchy, &set.behaviour));
                }
                let below = verdict.path.join(&mut Vec::new()).to_vec();
                let below = target::shown(&below);
                match verdict.action {
                    Action::Cached { root, fallback, scripts } => {
                        let root = routes.hierarchy.root(*root);
                        if let Some(root) = root {
                            let index = match below.ends_with('/') {
                                true => root.index.join(" or "),
                                false => String::new(),
                            };
                            told.row(
                                "file",
                                &format!("{}{below}{index}", root.directory.display()),
                            );
                        }
                        let script = root.filter(|root| root.scripts).and_then(|root| {
                            told.script(
                                root,
                                &below,
                                (scripts.as_deref(), fallback.as_ref()),
                                guarded,
                            )
                        });
                        if root.is_some_and(|root| is_directory(root, &below)) {
                            told.row("answer", "301: a directory, which has a slash at its end");
                        } else if let Some(fallback) =
                            fallback.as_ref().filter(|_| script.is_none())
                        {
                            let there = root.is_some_and(|root| is_file(root, &below));
                            told.fallback(&loaded.fallback(fallback), there, guarded);
                        }
                        let asks_servers = scripts.is_some()
                            || matches!(fallback, Some(Fallback::Distributed { .. }));
                        if asks_servers
                            && let Some(set) = routes.router.set(verdict.set)
                            && let Some(site) = loaded.config.sites.get(set.site.0 as usize)
                        {
                            told.limits(site.server_limits(set.path, set.content));
                            told.mirror(site.mirror_of(set.path, set.content));
                        }
                    }
                    Action::Distributed { group, .. } => {
                        let mut room = Vec::new();
                        let at_server = match verdict.content.target() {
                            None => verdict.path.spelled(spelled, path.len(), &mut room),
                            Some(_) => {
                                room = verdict.target(&question, spelled).unwrap_or_default();
                                &room
                            }
                        };
                        told.row("asks for", &String::from_utf8_lossy(at_server));
                        if let Some(set) = routes.router.set(verdict.set)
                            && let Some(site) = loaded.config.sites.get(set.site.0 as usize)
                        {
                            let mode = site.cache_mode(set.path, set.content);
                            let told_of = kept(&site.cache, mode, &options.method, fields);
                            told.row("cache", &told_of);
                            let group = loaded.config.groups.get(group.0 as usize);
                            let is_http = group.is_some_and(|group| !group.settings.fastcgi);
                            let is_same = verdict.content.target().is_none()
                                && !site.compresses(set.path, set.content);
                            if loaded.config.peers_listen().is_some()
                                && (is_http && is_same && mode != CacheMode::Off)
                                && asks_others(&options.method, fields)
                            {
                                told.row("fleet", "a miss asks the machine that keeps the answer, then the server");
                            }
                            told.limits(site.server_limits(set.path, set.content));
                            told.mirror(site.mirror_of(set.path, set.content));
                        }
                    }
                    Action::Redirect(_) => {
                        let location = verdict.location(&question, spelled).unwrap_or_default();
                        told.row("location", &String::from_utf8_lossy(&location));
                    }
                    Action::Again(_) => {
                        let Some(target) = verdict.target(&question, spelled) else {
                            told.row("answer", "400: the new path would have a segment of dots");
                            return Ok(Next::Found);
                        };
                        let target = String::from_utf8_lossy(&target).into_owned();
                        told.row("rewritten to", &target);
                        if is_first && !guarded_by_somebody {
                            told.row("kernel", "never answers: another target decides");
                        }
                        return Ok(Next::Again(target));
                    }
                    Action::Fixed(_) => {}
                }
                if let Some(set) = routes.router.set(verdict.set) {
                    let is_file = matches!(verdict.action, Action::Cached { .. });
                    told.fields(set, path, is_file);
                }
                if let Some(set) = routes.router.set(verdict.set) {
                    told.compression(set);
                }
                if let Some(set) = routes.router.set(verdict.set)
                    && let Some(site) = loaded.config.sites.get(set.site.0 as usize)
                {
                    let place = site.paths.get(set.path);
                    let content = place.and_then(|place| place.contents.get(set.content));
                    told.errors(&error_pages(site, place, content));
                }
                let is_kept = matches!(verdict.action, Action::Cached { .. })
                    || matches!(verdict.action, Action::Distributed { .. })
                        && question.method.is_get_or_head();
                if is_kept && !verdict.certain && is_first {
                    let more = conditions(&routes.router, &explanation);
                    told.row("kernel", &format!("never answers: {more} may decide"));
                }
                if let Some(set) = routes.router.set(verdict.set)
                    && is_left_out(&routes.router, set)
                {
                    told.row(
                    "note",
                    &format!(
                        "{MOST_WAYS} sites or prefixes before it lead to these files: never answered in the kernel"
                    ),
                );
                }
            }
        }
        Ok(if verdict.is_ok() { Next::Found } else { Next::Nowhere })
    }
}

/// The conditions that decide about a request, besides its host and the beginning and end of its path.
fn conditions(router: &Router, explanation: &Explanation<'_, '_>) -> String {
    let looked_at = explanation.considered.iter().filter(|considered| {
        matches!(considered.outcome, MatchResult::Taken | MatchResult::Unmet(_))
    });
    let sets = looked_at.filter_map(|considered| router.set(considered.set));
    let mut all: Vec<String> = Vec::new();
    for conditions in sets.map(|set| &set.behaviour.conditions) {
        let fields = conditions.fields.iter().map(field_name);
        let others = [
            ("the method", !conditions.methods.is_empty()),
            ("the client", !conditions.clients.is_empty()),
            ("the form of the path", !conditions.paths.is_empty()),
        ];
        let others = others.iter().filter(|(_, is)| *is).map(|(name, _)| (*name).to_owned());
        for name in others.chain(fields) {
            if !all.contains(&name) {
                all.push(name);
            }
        }
    }
    if all.is_empty() { "the method".to_owned() } else { all.join(", ") }
}

/// The fields that a rule changes.
fn changed(change: &Change) -> String {
    let verbs = [("set", &change.set), ("add", &change.add)];
    let pairs = verbs.into_iter().flat_map(|(verb, pairs)| {
        pairs.iter().map(move |(name, value)| format!("{verb} {name}: {value}"))
    });
    let removed = change.remove.iter().map(|name| format!("remove {name}"));
    removed.chain(pairs).collect::<Vec<_>>().join(", ")
}

/// The condition of a rule for answers, beside its path.
fn condition(rule: &FieldRule) -> String {
    let statuses = rule.statuses.iter().map(|(first, last)| match first == last {
        true => first.to_string(),
        false => format!("{}xx", first / 100),
    });
    let parts: Vec<String> = statuses.chain(rule.types.iter().cloned()).collect();
    if parts.is_empty() { String::new() } else { format!("  (if {})", parts.join(" ")) }
}

/// Whether a path leads to a file below a root now, as far as this user sees.
fn is_file(root: &Root, below: &str) -> bool {
    let path = root.directory.join(below.trim_start_matches('/'));
    match below.ends_with('/') {
        true => root.index.iter().any(|name| path.join(name).is_file()),
        false => path.is_file(),
    }
}

/// Whether a path without a slash at its end leads to a directory with a default file.
fn is_directory(root: &Root, below: &str) -> bool {
    !below.ends_with('/') && is_file(root, &format!("{below}/"))
}

/// How the shared cache treats such a request, and why.
fn kept(cache: &SiteCache, mode: CacheMode, method: &str, fields: &[(String, String)]) -> String {
    let has = |wanted: &str| fields.iter().any(|(name, _)| name.eq_ignore_ascii_case(wanted));
    if mode == CacheMode::Off {
        return "off: no answer is kept".to_owned();
    }
    match method {
        "GET" => {}
        "HEAD" => return "answered from what GET has kept, else passed on".to_owned(),
        "OPTIONS" | "TRACE" | "CONNECT" => return format!("not used for {method}"),
        "PURGE" if !cache.purge_from.is_empty() => {
            return "drops what is kept for the URL, for clients in `purge_from`".to_owned();
        }
        _ => return format!("{method} drops what is kept for the URL, if it succeeds"),
    }
    if let Some(name) = cache.bypass_headers.iter().find(|name| has(name)) {
        return format!("not used: the request has the field {name} (`bypass_headers`)");
    }
    let cookies = fields.iter().filter(|(name, _)| name.eq_ignore_ascii_case("cookie"));
    let cookies = cookies.flat_map(|(_, value)| value.split(';'));
    let named = |cookie: &str| cookie.trim().split('=').next().unwrap_or_default().to_owned();
    let lists = |name: &str| {
        cache.bypass_cookies.iter().any(|listed| match listed.strip_suffix('*') {
            Some(begin) => name.starts_with(begin),
            None => name == listed,
        })
    };
    if let Some(name) = cookies.map(named).find(|name| lists(name)) {
        return format!("not used: the request has the cookie {name} (`bypass_cookies`)");
    }
    if has("if-match") || has("if-unmodified-since") {
        return "not used: the server alone can tell whether the condition holds".to_owned();
    }
    let mut text = match mode {
        CacheMode::Heuristic => "heuristic: kept unless the answer forbids it".to_owned(),
        _ => "auto: kept if the answer says so".to_owned(),
    };
    if has("authorization") {
        text.push_str(", and says that it is for others (public, s-maxage, must-revalidate)");
    }
    text
}

/// Whether other machines are asked for the answer to such a request, as far as its fields say.
fn asks_others(method: &str, fields: &[(String, String)]) -> bool {
    const NOT_WITH: [&str; 5] =
        ["authorization", "range", "if-match", "if-unmodified-since", "upgrade"];
    let is_out =
        |(name, _): &(String, String)| NOT_WITH.iter().any(|out| name.eq_ignore_ascii_case(out));
    method == "GET" && !fields.iter().any(is_out)
}

fn field(line: &str) -> anyhow::Result<(String, String)> {
    let (name, value) = line
        .split_once(':')
        .with_context(|| format!("\"{line}\" is not a field: write --header 'Cookie: beta=yes'"))?;
    Ok((name.trim().to_owned(), value.trim().to_owned()))
}

/// The listener of the request: the one of the option, else one at the URL's port, preferably with a site for the host.
fn listener(
    routes: &Routes,
    url: &Url<'_>,
    told: Option<&str>,
) -> anyhow::Result<(ListenerId, &'static str)> {
    let all = || {
        routes.listeners.listeners().iter().zip(0..).map(|(listen, id)| (listen, ListenerId(id)))
    };
    if let Some(told) = told {
        let found = all().find(|(listen, _)| listen.to_string() == told);
        let names: Vec<String> = all().map(|(listen, _)| listen.to_string()).collect();
        let (_, id) = found
            .with_context(|| format!("no site listens on {told}: there is {}", names.join(", ")))?;
        return Ok((id, ""));
    }
    let has_port = |listen: &Listen| match (listen, url.port) {
        (_, None) => true,
        (Listen::Tcp(address), Some(port)) => address.port() == port,
        (Listen::Unix(_), Some(_)) => false,
    };
    let fitting: Vec<ListenerId> =
        all().filter(|(listen, _)| has_port(listen)).map(|(_, id)| id).collect();
    let knows = |id: &&ListenerId| routes.router.site(**id, url.host).is_some();
    if let Some(id) = fitting.iter().find(knows).or(fitting.first()) {
        return Ok((*id, ""));
    }
    let first = all().find(|(_, id)| routes.router.site(*id, url.host).is_some());
    let first = first.or_else(|| all().next()).context("no site listens anywhere")?;
    Ok((first.1, "  (nothing listens on the port of the URL)"))
}

/// The text of the explanation so far.
struct Told<'a> {
    loaded: &'a Loaded,
    routes: &'a Routes,
    text: String,
}

impl Told<'_> {
    fn row(&mut self, name: &str, fact: &str) {
        let _ = writeln!(self.text, "{name:<12} {fact}");
    }

    /// `there`: the file is there.
    fn fallback(&mut self, fallback: &str, there: bool, guarded: bool) {
        let (when, kernel) = match there {
            true => ("when the file is gone", "may answer with the file"),
            false => ("now: there is no such file", "never answers for a fallback"),
        };
        self.row("fallback", &format!("{fallback}  ({when})"));
        if !guarded {
            self.row("kernel", kernel);
        }
    }

    /// The limits of a request to servers that the place has.
    fn limits(&mut self, limits: ServerLimits) {
        let content = limits.largest_content.map(|most| format!("content {}", human_size(most)));
        let within = |what: &str, time: Option<Duration>| {
            time.map(|time| match time.is_zero() {
                true => format!("{what} without a limit"),
                false => format!("{what} within {time:?}"),
            })
        };
        let patience = [
            within("connection", limits.connect),
            within("first byte", limits.first_byte),
            within("next byte", limits.idle),
            within("whole answer", limits.total),
            within("next byte of a tunnel", limits.tunnel_idle),
        ];
        let all: Vec<String> = content.into_iter().chain(patience.into_iter().flatten()).collect();
        if !all.is_empty() {
            self.row("limits", &all.join(", "));
        }
    }

    /// How often clients may ask there, and where other readings of the path lead. Whether there is a rate.
    fn rates<F: Fields + Copy>(
        &mut self,
        question: &Question<'_, F>,
        verdict: &Result<Verdict<'_, '_>, Unrouted>,
        apart: &[Vec<u8>],
    ) -> bool {
        let mut all = self.rates_of(verdict);
        for path in &readings(question.path, apart, &[], false) {
            let read_as = self.routes.router.route(&Question { path, ..*question });
            for rate in self.rates_of(&read_as) {
                if !all.contains(&rate) {
                    all.push(rate);
                }
            }
        }
        if !all.is_empty() {
            self.row("rate", &all.join("; "));
        }
        !all.is_empty()
    }

    fn rates_of(&self, verdict: &Result<Verdict<'_, '_>, Unrouted>) -> Vec<String> {
        let (site, place) = match verdict {
            Ok(verdict) => match self.routes.router.set(verdict.set) {
                Some(set) => (set.site, Some((set.path, set.content))),
                None => return Vec::new(),
            },
            Err(Unrouted::NotFound(site)) => (*site, None),
            Err(Unrouted::Misdirected) => return Vec::new(),
        };
        let Some(site) = self.loaded.config.sites.get(site.0 as usize) else { return Vec::new() };
        let [client, all] = site.rates_of(place.map(|(path, _)| path), place.map(|(_, own)| own));
        let told = |found: Option<(RateOrigin, Quota)>, who: &str| {
            let (origin, quota) = found?;
            let origin = match origin {
                RateOrigin::Site => "the site",
                RateOrigin::Path(_) => "the path",
                RateOrigin::Content(..) => "the content group",
            };
            Some(format!("{quota} for {who}, by {origin}"))
        };
        told(client, "a client").into_iter().chain(told(all, "all clients")).collect()
    }

    /// The group that gets the request as well.
    fn mirror(&mut self, mirror: Option<(&str, u32)>) {
        match mirror {
            Some((to, 100)) => self.row("mirror", &format!("{to} gets what servers are asked")),
            Some((to, share)) => {
                self.row("mirror", &format!("{to} gets {share}% of what servers are asked"));
            }
            None => {}
        }
    }

    /// The clients that may use the path. Whether not everybody may.
    fn access<F: Fields + Copy>(
        &mut self,
        question: &Question<'_, F>,
        verdict: &Result<Verdict<'_, '_>, Unrouted>,
        others: &[Cow<'_, [u8]>],
    ) -> bool {
        let site = match verdict {
            Ok(verdict) => verdict.site,
            Err(Unrouted::NotFound(site)) => *site,
            Err(Unrouted::Misdirected) => return false,
        };
        let Guarded { addresses, passwords, consents } = &self.routes.guarded;
        // The rights of each reading of the path are needed; most of them are those of the path itself.
        let mut told: Vec<&RequestSet> = Vec::new();
        let is_new = |told: &[&RequestSet], set| !told.iter().any(|one| std::ptr::eq(*one, set));
        for path in std::iter::once(question.path).chain(others.iter().map(|other| &**other)) {
            let question = &Question { path, ..*question };
            if let Some((set, access)) = demand(addresses, site, question)
                && is_new(&told, set)
            {
                told.push(set);
                self.addresses(set, access);
            }
            if let Some((set, demand)) = demand(passwords, site, question)
                && is_new(&told, set)
            {
                told.push(set);
                self.users(set, demand);
            }
            if let Some((set, demand)) = demand(consents, site, question)
                && is_new(&told, set)
            {
                told.push(set);
                self.consents(set, demand);
            }
        }
        let guarded = !told.is_empty();
        if guarded {
            self.row("kernel", "never answers: not everybody may use it");
        }
        guarded
    }

    fn consents(&mut self, set: &RequestSet, demand: &ForwardAuth) {
        let who = match demand {
            ForwardAuth::Off => "no server is asked for its consent".to_owned(),
            ForwardAuth::Server { to, path, copy } => {
                let copied = match &copy[..] {
                    [] => String::new(),
                    names => format!(", which gives {}, so that nothing is kept", names.join(", ")),
                };
                format!("{to} is asked for {path}{copied}")
            }
        };
        self.row("consent", &format!("{who}  (by {})", place(set)));
    }

    fn users(&mut self, set: &RequestSet, demand: &BasicAuth) {
        let who = match demand {
            BasicAuth::Off => "nobody is asked for a password".to_owned(),
            BasicAuth::Users { file, realm } => {
                format!("those of {} with their passwords, realm {realm:?}", file.display())
            }
        };
        self.row("users", &format!("{who}  (by {})", place(set)));
    }

    fn addresses(&mut self, set: &RequestSet, access: &Access) {
        let list = |prefixes: &[Prefix]| {
            prefixes.iter().map(ToString::to_string).collect::<Vec<_>>().join(", ")
        };
        let others = if access.allow.is_empty() { "allowed" } else { "denied" };
        let lists = [("allow", &access.allow), ("deny", &access.deny)];
        let lists = lists.iter().filter(|(_, prefixes)| !prefixes.is_empty());
        let lists: Vec<_> = lists.map(|(name, all)| format!("{name} {}", list(all))).collect();
        let lists = lists.join(", ");
        self.row("access", &format!("{lists}, others {others}  (by {})", place(set)));
    }

    /// The changes of fields that a request for the path meets, a line each.
    fn fields(&mut self, set: &RequestSet, path: &[u8], is_file: bool) {
        let Some(site) = self.loaded.config.sites.get(set.site.0 as usize) else { return };
        let place = site.paths.get(set.path);
        let content = place.and_then(|place| place.contents.get(set.content));
        let rules = field_rules(site, place, content);
        let mut name = "fields";
        for rule in rules.rules.iter().filter(|rule| path.starts_with(&rule.prefix)) {
            for (what, change) in [("answer", &rule.answer), ("request", &rule.request)] {
                if change.is_empty() {
                    continue;
                }
                let condition = if what == "answer" { condition(rule) } else { String::new() };
                self.row(name, &format!("{what}: {}{condition}", changed(change)));
                name = "";
            }
        }
        for (field, value) in site.headers.iter().filter(|_| is_file) {
            self.row(name, &format!("file: set {field}: {value}"));
            name = "";
        }
        if let Some(value) = &site.hsts {
            self.row(name, &format!("answer: set Strict-Transport-Security: {value}  (over TLS)"));
        }
        if let Some(cors) = &rules.cors {
            self.row("cors", &format!("{}, and preflights are answered", cors.origins.join(", ")));
        }
        if let Some(id) = &rules.id {
            let client = if id.in_answers { " and the client" } else { "" };
            self.row("request id", &format!("{} to servers{client}", id.field));
        }
        if let Some(trace) = &rules.trace {
            let of = if trace.of_anybody { "any client" } else { "routers in forwarded_from" };
            self.row("trace", &format!("of {of}, or a new one, {}% recorded", trace.share));
        }
        let kernel = match (is_file, rules.depends_on_origin(), rules.changes_answers()) {
            _ if rules.marks_answers() => "never answers: each answer has an id of its own",
            (true, true, _) => "never answers: the answer depends on the origin of the request",
            (false, _, true) => "never answers: fields of servers' answers are changed",
            _ => return,
        };
        self.row("kernel", kernel);
    }

    /// Whether answers of servers are compressed.
    fn compression(&mut self, set: &RequestSet) {
        let config = &self.loaded.config;
        let site = config.sites.get(set.site.0 as usize);
        let compresses = site.is_some_and(|site| site.compresses(set.path, set.content));
        let is_file = match &set.behaviour.action {
            Action::Distributed { .. } => false,
            Action::Cached { fallback, scripts, .. } => {
                scripts.is_none() && !matches!(fallback, Some(Fallback::Distributed { .. }))
            }
            _ => true,
        };
        if !compresses || is_file {
            return;
        }
        let compression = &config.compression;
        let told = match compression.enabled && !compression.codings.is_empty() {
            false => "none: [compression] is off".to_owned(),
            true => {
                let words: Vec<_> = compression.codings.iter().map(|one| one.word()).collect();
                let (types, least) = (compression.types.join(", "), compression.min_size);
                format!("{} for servers' {types} of {least} bytes or more", words.join(", "))
            }
        };
        self.row("compression", &told);
    }

    /// The script that a path leads to now, if any.
    fn script(
        &mut self,
        root: &Root,
        below: &str,
        (scripts, fallback): (Option<&Scripts>, Option<&Fallback>),
        guarded: bool,
    ) -> Option<()> {
        let file = |path: &str| root.directory.join(path.trim_start_matches('/')).is_file();
        let is_script = |path: &str| path.to_ascii_lowercase().ends_with(".php");
        let ends = below.match_indices('/').skip(1).map(|(at, _)| at).chain([below.len()]);
        let mut parts = ends.map(|end| below.split_at(end));
        let found = parts.find(|(path, _)| is_script(path) && file(path));
        let found = found.map(|(path, info)| (path.to_owned(), info));
        let in_directory = || {
            let mut names = root.index.iter().map(|name| format!("{below}{name}"));
            let name = names.find(|name| below.ends_with('/') && file(name))?;
            is_script(&name).then_some((name, ""))
        };
        let instead = || match fallback {
            Some(Fallback::File(path)) if !is_file(root, below) => {
                let path = String::from_utf8_lossy(path).into_owned();
                is_script(&path).then_some((path, ""))
            }
            _ => None,
        };
        let (path, info) = found.or_else(in_directory).or_else(instead)?;
        let Some(scripts) = scripts else {
            self.row("answer", "403: a script, which nothing runs here, and which is never sent");
            return Some(());
        };
        let seen = String::from_utf8_lossy(&scripts.root);
        self.row("script", &format!("{seen}{path}"));
        if !info.is_empty() {
            self.row("path info", info);
        }
        if !guarded {
            self.row("kernel", "never answers for a script");
        }
        Some(())
    }

    /// The pages of errors, a line each. The first one that has a status is for it.
    fn errors(&mut self, pages: &[(&ErrorPage, (u16, u16))]) {
        let mut name = "errors";
        for (page, (first, last)) in pages {
            let statuses = match (first, last) {
                (400, 599) => "all".to_owned(),
                _ if first == last => first.to_string(),
                _ => format!("{}xx", first / 100),
            };
            let from = match (&page.file, &page.to) {
                (Some(file), _) => file.display().to_string(),
                (None, Some(to)) => format!("{to}, asked for {}", page.path),
                (None, None) => "the built-in page".to_owned(),
            };
            let answer = page.answer.map(|answer| format!(", as {answer}")).unwrap_or_default();
            let servers = if page.intercept { ", also for servers' own errors" } else { "" };
            self.row(name, &format!("{statuses}: {from}{answer}{servers}"));
            name = "";
        }
    }

    fn site(&mut self, explanation: &Explanation<'_, '_>) {
        let Some((site, by)) = explanation.site else { return self.row("site", "none") };
        let by = match by {
            HostMatch::Exact(name) => format!("by the host {}", String::from_utf8_lossy(name)),
            HostMatch::Below(name) => format!("by the host *.{}", String::from_utf8_lossy(name)),
            HostMatch::Matching(expression) => format!("by the host {expression}"),
            HostMatch::Any => "which answers to any other host".to_owned(),
        };
        let SiteId(index) = site;
        let location = self.loaded.config.sites.get(index as usize).map(|site| &site.location);
        let origin = self.loaded.location_name(location);
        let name = self.routes.hierarchy.site_name(site);
        self.row("site", format!("{name}, {by}{origin}").trim_end());
    }

    fn path(&mut self, url: &Url<'_>, path: &[u8], explanation: &Explanation<'_, '_>) {
        let shown = target::shown(path);
        if shown == url.path {
            self.row("path", &shown);
        } else {
            self.row("path", &format!("{shown}  (normalised from {})", url.path));
        }
        let extension = match explanation.extension {
            Extension::None => "none".to_owned(),
            Extension::Some(extension) => target::shown(extension),
        };
        self.row("extension", &extension);
    }

    fn tried(&mut self, explanation: &Explanation<'_, '_>) {
        let mut name = "tried";
        for considered in &explanation.considered {
            let Some(set) = self.routes.router.set(considered.set) else { continue };
            let why = match considered.outcome {
                MatchResult::Reach => "does not reach that far".to_owned(),
                MatchResult::Content => "does not have the extension".to_owned(),
                MatchResult::Unmet(Unmet::Method) => "wants another method".to_owned(),
                MatchResult::Unmet(Unmet::Client) => "wants another client".to_owned(),
                MatchResult::Unmet(Unmet::Path) => "wants another path".to_owned(),
                MatchResult::Unmet(Unmet::Field(field)) => {
                    format!("{} is not as it wants it", field_name(field))
                }
                MatchResult::Taken => "this one".to_owned(),
            };
            let prefix = String::from_utf8_lossy(&set.prefix).into_owned();
            let location = self.routes.hierarchy.content_location(set.site, set.path, set.content);
            let origin = self.loaded.location_name(location);
            self.row(name, &format!("{prefix}  {}: {why}{origin}", set.behaviour.group));
            name = "";
        }
    }
}

/// The paths whose rights a request needs beside its own.
fn other_readings<'p>(
    routes: &Routes,
    verdict: &Result<Verdict<'_, '_>, Unrouted>,
    path: &'p [u8],
    apart: &'p [Vec<u8>],
) -> Vec<Cow<'p, [u8]>> {
    let action = verdict.as_ref().ok().map(|verdict| verdict.action);
    let Some(Action::Cached { root, .. }) = action else {
        return readings(path, apart, &[], false);
    };
    let index = routes.hierarchy.root(*root).map_or(&[][..], |root| &root.index);
    readings(path, apart, index, true)
}

/// The demand of guarded parts that meets a question.
fn demand<'r, T, F: Fields>(
    guards: &'r Guards<T>,
    site: SiteId,
    question: &Question<'_, F>,
) -> Option<(&'r RequestSet, &'r T)> {
    let found = guards.router.route_in(site, question).ok()?;
    guards.router.set(found.set).zip(guards.demands.get(found.set.0 as usize))
}

/// A request set of guarded parts, by its prefix and group.
fn place(set: &RequestSet) -> String {
    format!("{} {}", String::from_utf8_lossy(&set.prefix), set.behaviour.group)
}

#[cfg(test)]
mod tests {
    use super::*;
    use afpa_config::{Source, parse_text};

    const FILE: &str = r#"
[[server_group]]
name = "app"
servers = ["127.0.0.1:3000"]

[[site]]
listen = ["127.0.0.1:80"]
hosts = ["www.acme.com"]
root = "/srv/acme"
to = "app"
cached = ["html"]

[[site.path]]
prefix = "/catalog/"
root = "/srv/dogalog"

[[site.path.content]]
extensions = ["gif"]

[[site.path.content]]
extensions = ["others"]
if_cookies = { beta = "yes" }
to = "app"
rewrite = "/shop/"

[[site.path]]
prefix = "/old/"
redirect = "https://{host}/new/{rest}{query}"

[site.cache]
bypass_cookies = ["wp_*"]
"#;

    fn asked(url: &str, header: &[&str]) -> (String, bool) {
        asked_of(FILE.trim_start(), url, header)
    }

    fn asked_of(file: &str, url: &str, header: &[&str]) -> (String, bool) {
        let options = Route {
            url: url.to_owned(),
            config: None,
            method: "GET".to_owned(),
            header: header.iter().map(|line| (*line).to_owned()).collect(),
            listen: None,
            client: None,
        };
        let source = Source::new("afpa.toml", file);
        let loaded = parse_text(source, &Overrides::default(), &Machine::probe()).unwrap();
        explained(&loaded, &options).unwrap()
    }

    #[test]
    fn a_cached_url_names_its_file_and_what_was_tried() {
        let (text, found) = asked("http://www.acme.com/catalog/anvils/../jumbo.gif", &[]);
        let expected = "\
address      127.0.0.1:80
site         www.acme.com, by the host www.acme.com (line 5)
path         /catalog/jumbo.gif  (normalised from /catalog/anvils/../jumbo.gif)
extension    gif
tried        /catalog/  others: does not have the extension (line 19)
             /catalog/  gif: this one (line 16)
request set  www.acme.com /catalog/ gif
behaviour    cached from /srv/dogalog
file         /srv/dogalog/jumbo.gif
";
        assert_eq!(text, expected);
        assert!(found);
    }

    #[test]
    fn conditions_rewrites_redirects_and_misses_are_told() {
        let (text, _) = asked("http://WWW.acme.com/catalog/buy.asp", &["Cookie: beta=yes"]);
        assert!(text.contains("asks for     /shop/buy.asp\n"), "{text}");
        let (text, _) = asked("http://www.acme.com/catalog/buy.asp", &[]);
        assert!(
            text.contains("/catalog/  others: cookie beta is not as it wants it (line 19)\n"),
            "{text}"
        );
        assert!(text.contains("behaviour    distributed to app\n"), "{text}");
        let (text, _) = asked("http://www.acme.com/old/a%20b?x=1", &[]);
        assert!(text.contains("location     https://www.acme.com/new/a%20b?x=1\n"), "{text}");
        let (text, found) = asked("http://other.org/", &[]);
        assert!(text.contains("answer       421") && !found, "{text}");
        let (text, _) = asked("http://www.acme.com:8080/", &[]);
        assert!(text.contains("nothing listens on the port of the URL"), "{text}");
    }

    #[test]
    fn ways_that_the_kernel_has_no_room_for_are_told() {
        let site = |number| {
            format!(
                "[[site]]\nlisten = [\"127.0.0.1:80\"]\nhosts = [\"h{number}\"]\nroot = \"/srv\"\n"
            )
        };
        let text: String = (0..=MOST_WAYS).map(site).collect();
        let note = |number| {
            let (text, _) = asked_of(&text, &format!("http://h{number}/a"), &[]);
            text.contains("note         8 sites or prefixes before it lead to these files")
        };
        assert!(!note(0) && !note(MOST_WAYS - 1));
        assert!(note(MOST_WAYS));
    }

    #[test]
    fn ids_are_told_and_what_they_mean_for_the_kernel() {
        let told = |site: &str, own: &str| {
            let file = format!(
                "[[site]]\nroot = \"/srv\"\n{site}\n[[site.path]]\nprefix = \"/a/\"\n{own}\n"
            );
            asked_of(&file, "/a/b", &[]).0
        };
        let never = "kernel       never answers: each answer has an id of its own\n";
        let text = told("request_id = \"on\"", "");
        assert!(text.contains("request id   X-Request-Id to servers and the client\n"), "{text}");
        assert!(text.contains(never), "{text}");
        let text =
            told("request_id = \"on\"\nrequest_id_field = \"X-Id\"", "request_id = \"servers\"");
        assert!(text.contains("request id   X-Id to servers\n") && !text.contains(never), "{text}");
        let text = told("traceparent = \"trusted\"\ntrace_share = 5", "");
        let of = "trace        of routers in forwarded_from, or a new one, 5% recorded\n";
        assert!(text.contains(of) && !text.contains(never), "{text}");
        let text = told("request_id = \"on\"", "request_id = \"off\"");
        assert!(!text.contains("request id ") && !text.contains(never), "{text}");
    }

    #[test]
    fn limits_and_mirrors_are_told_wherever_servers_are_asked() {
        let told = |way: &str| {
            let more = "largest_content = \"1KiB\"\nmirror = \"127.0.0.1:3001\"\n";
            asked_of(&format!("[[site]]\n{way}\n{more}"), "/none/x", &[]).0
        };
        let rows = "limits       content 1.0 KiB\nmirror       127.0.0.1:3001 gets what servers are asked\n";
        for way in [
            "to = \"127.0.0.1:3000\"",
            "root = \"/srv\"\nfallback = \"127.0.0.1:3000\"",
            "root = \"/srv\"\nphp = \"unix:/run/php.sock\"",
        ] {
            let text = told(way);
            assert!(text.contains(rows), "{way}: {text}");
        }
        let text = told("root = \"/srv\"");
        assert!(!text.contains("limits ") && !text.contains("mirror "), "{text}");
    }

    #[test]
    fn fields_that_the_site_writes_itself_are_told() {
        let file = "[[certificate]]\nchain = \"/c\"\nkey = \"/k\"\n[[site]]\ntls = [\"127.0.0.1:443\"]\nroot = \"/srv\"\n\
                    hsts = \"max-age=60\"\nheaders = { X-Own = \"a\" }\n\
                    [[site.path]]\nprefix = \"/api/\"\nto = \"127.0.0.1:3000\"\n";
        let own = "file: set X-Own: a\n";
        let strict = "answer: set Strict-Transport-Security: max-age=60  (over TLS)\n";
        let (text, _) = asked_of(file, "/a.css", &[]);
        assert!(text.contains(own) && text.contains(strict), "{text}");
        let (text, _) = asked_of(file, "/api/a", &[]);
        assert!(!text.contains(own) && text.contains(strict), "{text}");
    }

    #[test]
    fn the_compression_of_servers_answers_is_told() {
        let told = |site: &str, own: &str, compression: &str| {
            let file = format!(
                "[compression]\ntypes = [\"text/*\"]\ncodings = [\"br\", \"gzip\"]\n{compression}
                [[site]]\nto = \"127.0.0.1:3000\"\n{site}
                [[site.path]]\nprefix = \"/a/\"\n[[site.path.content]]\nextensions = [\"x\"]\n{own}
                to = \"127.0.0.1:3000\"\n"
            );
            let (text, _) = asked_of(&file, "/a/b.x", &[]);
            let line = text.lines().find_map(|line| line.strip_prefix("compression  "));
            line.map(str::to_owned)
        };
        let all = Some("br, gzip for servers' text/* of 512 bytes or more".to_owned());
        assert_eq!(told("", "", ""), None);
        assert_eq!(told("compress = true", "", ""), all);
        assert_eq!(told("compress = true", "compress = false", ""), None);
        assert_eq!(told("", "compress = true", ""), all);
        let off = told("compress = true", "", "enabled = false");
        assert_eq!(off.as_deref(), Some("none: [compression] is off"));
    }

    #[test]
    fn what_is_kept_is_told() {
        let told = |header: &[&str]| {
            let (text, _) = asked("http://www.acme.com/catalog/buy.asp", header);
            let line = text.lines().find_map(|line| line.strip_prefix("cache        "));
            line.unwrap_or_default().to_owned()
        };
        assert_eq!(told(&[]), "auto: kept if the answer says so");
        assert!(told(&["Authorization: x"]).contains("for others"));
        let bypassed = told(&["Cookie: a=b; wp_1=2"]);
        assert_eq!(bypassed, "not used: the request has the cookie wp_1 (`bypass_cookies`)");
        assert!(told(&["If-Match: x"]).starts_with("not used: the server alone"));
    }

    #[test]
    fn other_machines_are_asked_for_what_they_may_keep() {
        let field = |name: &str| vec![(name.to_owned(), "x".to_owned())];
        assert!(asks_others("GET", &[]) && asks_others("GET", &field("Cookie")));
        assert!(!asks_others("HEAD", &[]) && !asks_others("GET", &field("Authorization")));
        assert!(!asks_others("GET", &field("Range")));
    }

    #[test]
    fn urls_have_parts() {
        let url = Url::parse("http://[::1]:8080/a?b#c").unwrap();
        assert_eq!(url, Url { host: "[::1]", port: Some(8080), path: "/a", query: Some("b") });
        let url = Url::parse("https://a.org?x").unwrap();
        assert_eq!(url, Url { host: "a.org", port: Some(443), path: "/", query: Some("x") });
        let url = Url::parse("/a").unwrap();
        assert_eq!(url, Url { host: "", port: None, path: "/a", query: None });
        let url = Url::parse("/a?to=https://b.org/?c").unwrap();
        assert_eq!((url.host, url.path, url.query), ("", "/a", Some("to=https://b.org/?c")));
        assert!(Url::parse("ftp://a/").is_err() && Url::parse("a").is_err());
        assert!(Url::parse("http://a b/").is_err());
    }
}
