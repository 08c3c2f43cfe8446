//! Redirects, rewrites and servers that lead a request back to where it was.
//!
//! A request of each place is followed through the router, as a client without cookies would follow it: redirects to addresses of
//! this configuration, rewrites, and servers that are such an address. Places that decide by fields or cookies are not judged,
//! because an answer may set what the next request has.

use std::collections::{HashMap, HashSet};
use std::net::{IpAddr, Ipv4Addr};

use afpa_http::{Method, target};
use afpa_proxy::request::HostPolicy;
use afpa_proxy::select::{Address, ServerAddress};
use afpa_router::{
    Action, Conditions, FieldSource, GroupId, HostMatch, HostPattern, ListenerId, MatchResult,
    Pattern, Question, Reach, RequestSet, RequestSetId, Router, Unmet, Verdict,
};

use crate::compiled::Routes;
use crate::finding::{Finding, Location};
use crate::model::Config;
use crate::units::Listen;

/// Warns of each place from which a request comes back to it.
pub(crate) fn warnings(config: &Config, routes: &Routes) -> Vec<Finding> {
    let rounds = Rounds::new(config, routes);
    let sets = (0..).map(RequestSetId).zip(routes.router.sets());
    let sets = sets.filter(|(_, set)| rounds.leads_on(set)).take(MOST_PLACES);
    let found = sets.filter_map(|(id, set)| {
        let location = routes.hierarchy.content_location(set.site, set.path, set.content)?;
        let trail = rounds.starts(id, set).into_iter().find_map(|start| rounds.walk(id, start))?;
        Some(finding(location.clone(), &set.behaviour.action, &trail))
    });
    found.collect()
}

fn finding(location: Location, action: &Action, trail: &[String]) -> Finding {
    let setting = match action {
        Action::Redirect(_) => "redirect",
        Action::Again(_) => "rewrite",
        _ => "to",
    };
    let mut shown: Vec<&str> = trail.iter().take(MOST_SHOWN).map(String::as_str).collect();
    if trail.len() > MOST_SHOWN {
        shown.push("...");
    }
    let cause = format!("`{setting}` leads back to itself: {}", shown.join(" -> "));
    let to_tls = trail.iter().any(|text| text.starts_with("https://"));
    let remedy = match (setting, to_tls) {
        ("redirect", true) => {
            "write `https_only = true` in the site to lead clients to HTTPS, or make another site of the hosts or addresses \
             that are led away"
        }
        ("redirect", false) => {
            "lead to a path that another section has, or add one for it: [[site.path]] with exact = true"
        }
        ("rewrite", _) => "lead to a path that another section has",
        _ => "name the server of the application: this is an address of this configuration",
    };
    Finding::warning(location, cause, remedy)
}

/// Requests that a client follows before it gives up. Browsers follow twenty.
const MOST_HOPS: usize = 20;

/// Bytes of a target that a client gets an answer for. Each hop may make it several times as long, so no longer one is followed.
const LONGEST: usize = 8192;

/// Targets that a message shows.
const MOST_SHOWN: usize = 4;

/// Hosts and addresses of a site from which a request is followed.
const MOST_DOORS: usize = 2;

/// Places that are looked at: a start need not wait for more.
const MOST_PLACES: usize = 2000;

/// A request on its way.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Asked {
    listener: ListenerId,
    host: String,
    /// Path and query, as a client writes them.
    target: Vec<u8>,
    client: Option<IpAddr>,
}

struct Rounds<'a> {
    routes: &'a Routes,
    config: &'a Config,
    /// The addresses, by their numbers, and whether they are for TLS.
    doors: Vec<(&'a Listen, bool)>,
    /// The numbers of those with a port.
    by_port: HashMap<u16, Vec<ListenerId>>,
    /// The server groups with a server that is one of these addresses.
    own: Vec<(GroupId, ListenerId)>,
}

impl<'a> Rounds<'a> {
    fn new(config: &'a Config, routes: &'a Routes) -> Self {
        let tls: HashSet<&Listen> = config.sites.iter().flat_map(|site| &site.tls).collect();
        let listeners = routes.listeners.listeners().iter();
        let doors = listeners.map(|listen| (listen, tls.contains(listen))).collect();
        let by_port = HashMap::new();
        let mut rounds = Self { routes, config, doors, by_port, own: Vec::new() };
        for (id, (listen, _)) in (0..).map(ListenerId).zip(&rounds.doors) {
            if let Listen::Tcp(address) = listen {
                rounds.by_port.entry(address.port()).or_default().push(id);
            }
        }
        for (group, id) in config.groups.iter().zip((0..).map(GroupId)) {
            let is_tls = group.tls.is_some();
            let mut servers = group.settings.servers.iter();
            let own = servers.find_map(|server| rounds.reached(&server.to, is_tls));
            rounds.own.extend(own.map(|listener| (id, listener)));
        }
        rounds
    }

    /// The address of this configuration that a server is.
    fn reached(&self, server: &ServerAddress, is_tls: bool) -> Option<ListenerId> {
        let port = match server {
            ServerAddress::Fixed(Address::Tcp(address)) => address.port(),
            ServerAddress::Name { port, .. } => *port,
            ServerAddress::Fixed(Address::Unix(_)) => {
                let mut doors = (0..).map(ListenerId).zip(&self.doors);
                let found = doors.find(|(_, (listen, _))| is_reached(server, listen));
                return found.map(|(id, _)| id);
            }
        };
        let mut ids = self.by_port.get(&port)?.iter().copied();
        ids.find(|id| {
            let door = self.door(*id);
            door.is_some_and(|(listen, tls)| *tls == is_tls && is_reached(server, listen))
        })
    }

    /// Whether requests of a place may come back.
    fn leads_on(&self, set: &RequestSet) -> bool {
        match &set.behaviour.action {
            Action::Redirect(_) | Action::Again(_) => true,
            Action::Distributed { group, .. } => self.own(*group).is_some(),
            Action::Cached { .. } | Action::Fixed(_) => false,
        }
    }

    fn router(&self) -> &'a Router {
        &self.routes.router
    }

    /// Requests for a place that may come back to it.
    fn starts(&self, id: RequestSetId, set: &RequestSet) -> Vec<Asked> {
        let names_host = match &set.behaviour.action {
            Action::Redirect(redirect) => redirect.location.contains("//"),
            _ => false,
        };
        let Some(entry) = self.routes.hierarchy.table.sites.get(set.site.0 as usize) else {
            return Vec::new();
        };
        let most = if names_host { MOST_DOORS } else { 1 };
        let hosts: Vec<String> = match &entry.hosts[..] {
            [] => vec!["name.invalid".to_owned()],
            hosts => hosts.iter().filter_map(name).take(most).collect(),
        };
        let clients = &set.behaviour.conditions.clients;
        let client = clients.first().map(|network| network.address);
        let targets = targets(set);
        let mut starts = Vec::new();
        for listener in entry.listeners.iter().take(most) {
            for host in &hosts {
                starts.extend(targets.iter().map(|target| {
                    let (host, target) = (host.clone(), target.clone());
                    Asked { listener: *listener, host, target, client }
                }));
            }
        }
        starts.retain(|start| self.decide(start).is_some_and(|(found, _, _)| found == id));
        starts
    }

    /// Where a request leads again and again, if it comes back to this place.
    fn walk(&self, id: RequestSetId, start: Asked) -> Option<Vec<String>> {
        let (mut seen, mut sets) = (vec![start.clone()], Vec::new());
        let mut trail = vec![String::from_utf8_lossy(&start.target).into_owned()];
        let mut asked = start;
        while sets.len() <= MOST_HOPS {
            let (set, next, shown) = self.decide(&asked)?;
            sets.push(set);
            if next.target.len() > LONGEST {
                trail.push("...".to_owned());
                break;
            }
            trail.push(shown);
            if let Some(at) = seen.iter().position(|before| *before == next) {
                return sets.get(at..).is_some_and(|round| round.contains(&id)).then_some(trail);
            }
            seen.push(next.clone());
            asked = next;
        }
        // It never comes to the same target, as where each hop makes the path longer.
        sets.get(sets.len() / 2..).is_some_and(|round| round.contains(&id)).then_some(trail)
    }

    /// The place of a request, the request that follows, and how a person writes where that leads. `None`: nothing follows, or
    /// that cannot be known.
    fn decide(&self, asked: &Asked) -> Option<(RequestSetId, Asked, String)> {
        let mut parts = asked.target.splitn(2, |byte| *byte == b'?');
        let (mut normal, mut spelled) = (Vec::new(), Vec::new());
        let raw = parts.next()?;
        let path = target::normalise(raw, &mut normal).ok()?;
        let spelled = target::spell(raw, &mut spelled).ok()?;
        let (listener, host, method) = (asked.listener, &*asked.host, Method::Get);
        let fields = ((), asked.client);
        let question = Question { listener, host, method, path, query: parts.next(), fields };
        let explanation = self.router().explain(&question);
        let is_plain = explanation.considered.iter().all(|considered| {
            let set = self.router().set(considered.set);
            set.is_some_and(|set| is_plain(considered.outcome, &set.behaviour.conditions))
        });
        let (site, _) = explanation.site.filter(|_| is_plain)?;
        let verdict = self.router().route_in(site, &question).ok()?;
        let (next, shown) = match verdict.action {
            Action::Redirect(_) => {
                let location = verdict.location(&question, spelled)?;
                let shown = String::from_utf8_lossy(&location).into_owned();
                (self.follow(asked, &shown)?, shown)
            }
            Action::Again(_) => {
                let target = verdict.target(&question, spelled)?;
                let shown = String::from_utf8_lossy(&target).into_owned();
                (Asked { target, ..asked.clone() }, shown)
            }
            Action::Distributed { group, .. } => {
                self.ask_self(asked, *group, &verdict, (&question, spelled))?
            }
            Action::Cached { .. } | Action::Fixed(_) => return None,
        };
        Some((verdict.set, next, shown))
    }

    /// The request that a client sends for a Location, if it leads here.
    fn follow(&self, from: &Asked, location: &str) -> Option<Asked> {
        let location = location.split('#').next()?;
        let (_, is_tls) = *self.door(from.listener)?;
        let (is_tls, rest) = match location.split_once("//") {
            Some(("", rest)) => (is_tls, rest),
            Some((scheme, rest)) if scheme.eq_ignore_ascii_case("https:") => (true, rest),
            Some((scheme, rest)) if scheme.eq_ignore_ascii_case("http:") => (false, rest),
            _ => return stay(from, location),
        };
        let end = rest.find(['/', '?']).unwrap_or(rest.len());
        let (authority, target) = rest.split_at_checked(end)?;
        let (host, port) = match authority.rsplit_once(':') {
            Some((host, port)) if !port.ends_with(']') => (host, port.parse().ok()?),
            _ => (authority, if is_tls { 443 } else { 80 }),
        };
        let with_port = self.by_port.get(&port)?;
        let fits = |id: &&ListenerId| self.door(**id).is_some_and(|(_, tls)| *tls == is_tls);
        let same = with_port.iter().find(|id| **id == from.listener).filter(fits);
        let listener = *same.or_else(|| with_port.iter().find(fits))?;
        let slash = if target.starts_with('/') { "" } else { "/" };
        let target = format!("{slash}{target}").into_bytes();
        let next = Asked { listener, host: host.to_ascii_lowercase(), target, client: from.client };
        // A site for any name says nothing of where another name leads.
        (next.host == from.host || self.names(&next)).then_some(next)
    }

    /// Whether a site has the host by its name.
    fn names(&self, asked: &Asked) -> bool {
        let (listener, host, method) = (asked.listener, &*asked.host, Method::Get);
        let question = Question { listener, host, method, path: b"/", query: None, fields: () };
        let site = self.router().explain(&question).site;
        site.is_some_and(|(_, found)| found != HostMatch::Any)
    }

    /// The request that a server gets which is an address of this configuration.
    fn ask_self(
        &self,
        asked: &Asked,
        group: GroupId,
        verdict: &Verdict<'_, '_>,
        (question, spelled): (&Question<'_, ((), Option<IpAddr>)>, &[u8]),
    ) -> Option<(Asked, String)> {
        let listener = self.own(group)?;
        let settings = self.config.groups.get(group.0 as usize)?;
        let host = match &settings.exchange.request.host {
            HostPolicy::Keep => asked.host.clone(),
            HostPolicy::Name(name) => {
                name.rsplit_once(':').map_or(&**name, |(name, _)| name).to_owned()
            }
            HostPolicy::Server => return None,
        };
        let target = match verdict.content.target() {
            Some(_) => verdict.target(question, spelled)?,
            None => {
                let mut room = Vec::new();
                let path = verdict.path.spelled(spelled, question.path.len(), &mut room);
                let query = question.query.map(|query| [b"?", query].concat());
                [path, &query.unwrap_or_default()].concat()
            }
        };
        let shown = format!("{} at {}", String::from_utf8_lossy(&target), settings.settings.name);
        // The client of the next request is this process.
        let client = Some(IpAddr::from(Ipv4Addr::LOCALHOST));
        Some((Asked { listener, host, target, client }, shown))
    }

    fn own(&self, group: GroupId) -> Option<ListenerId> {
        self.own.iter().find(|(own, _)| *own == group).map(|(_, listener)| *listener)
    }

    fn door(&self, listener: ListenerId) -> Option<&(&'a Listen, bool)> {
        self.doors.get(listener.0 as usize)
    }
}

/// The request for a Location within the same host.
fn stay(from: &Asked, location: &str) -> Option<Asked> {
    let target = location.as_bytes().to_vec();
    location.starts_with('/').then(|| Asked { target, ..from.clone() })
}

/// Whether a server is what listens here.
fn is_reached(server: &ServerAddress, listen: &Listen) -> bool {
    match (server, listen) {
        (ServerAddress::Fixed(Address::Tcp(server)), Listen::Tcp(listen)) => {
            let any = listen.ip().is_unspecified() && server.ip().is_loopback();
            server.port() == listen.port() && (server.ip() == listen.ip() || any)
        }
        (ServerAddress::Fixed(Address::Unix(server)), Listen::Unix(listen)) => server == listen,
        (ServerAddress::Name { host, port }, Listen::Tcp(listen)) => {
            let here = listen.ip().is_unspecified() || listen.ip().is_loopback();
            host == "localhost" && *port == listen.port() && here
        }
        _ => false,
    }
}

/// Whether a place that was tried would have the same result for another client that asks for the same.
fn is_plain(outcome: MatchResult<'_>, conditions: &Conditions) -> bool {
    let of_query = |source| source == FieldSource::Query;
    match outcome {
        MatchResult::Reach | MatchResult::Content => true,
        MatchResult::Unmet(Unmet::Method | Unmet::Path) => true,
        // Networks that hold every client leave nobody outside.
        MatchResult::Unmet(Unmet::Client) => conditions.clients.iter().all(|one| one.bits > 0),
        MatchResult::Unmet(Unmet::Field(field)) => of_query(field.source),
        MatchResult::Taken => conditions.fields.iter().all(|field| of_query(field.source)),
    }
}

/// A name that a pattern of hosts has.
fn name(pattern: &HostPattern) -> Option<String> {
    match pattern {
        HostPattern::Exact(name) => Some(name.to_ascii_lowercase()),
        HostPattern::Below(name) => Some(format!("x.{}", name.to_ascii_lowercase())),
        HostPattern::Matching(expression) => String::from_utf8(expression.example()?).ok(),
    }
}

/// Targets of requests for a place, some of which it may not have.
fn targets(set: &RequestSet) -> Vec<Vec<u8>> {
    let Conditions { paths, fields, .. } = &set.behaviour.conditions;
    let below = |end: &[u8]| [&set.prefix, end].concat();
    let mut found: Vec<Vec<u8>> = match set.reach {
        Reach::Exact => vec![below(b"")],
        _ => vec![below(b"x"), below(b""), below(b"x/y.html")],
    };
    if let afpa_router::ContentGroup::List { extensions, .. } = &set.behaviour.group {
        found
            .extend(extensions.first().map(|extension| below(format!("x.{extension}").as_bytes())));
    }
    // A redirect is shown from the path that somebody wrote.
    for example in paths.iter().filter_map(Pattern::example) {
        found.extend([example.clone(), below(&example)]);
    }
    let query: Vec<String> = fields
        .iter()
        .filter(|field| field.source == FieldSource::Query)
        .filter_map(|field| {
            let value = String::from_utf8(field.value.example()?).ok()?;
            Some(format!("{}={value}", field.name))
        })
        .collect();
    let query = if query.is_empty() { String::new() } else { format!("?{}", query.join("&")) };
    let written = |path: &Vec<u8>| {
        let mut target = Vec::new();
        target::encode(path, &mut target);
        target.extend_from_slice(query.as_bytes());
        target
    };
    found.iter().map(written).collect()
}
