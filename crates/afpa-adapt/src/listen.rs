//! `listen` and `server_name`.

use std::collections::BTreeMap;

use crate::syntax::Directive;
use crate::upstream::{Context, texts};
use crate::values::{expression, is_plain};

/// The addresses of a server.
#[derive(Clone, Debug, Default)]
pub(crate) struct Listen {
    pub(crate) plain: Vec<String>,
    pub(crate) tls: Vec<String>,
    /// The addresses for which it says that it is the default server.
    defaults: Vec<String>,
}

impl Listen {
    /// The lines of those without, and with TLS.
    pub(crate) fn lines(&self, plain: bool, tls: bool) -> Vec<String> {
        let mut lines = Vec::new();
        if plain && !self.plain.is_empty() {
            lines.push(texts("listen", &self.plain));
        }
        if tls && !self.tls.is_empty() {
            lines.push(texts("tls", &self.tls));
        }
        lines
    }

    fn all(&self) -> impl Iterator<Item = &String> {
        self.plain.iter().chain(&self.tls)
    }

    /// The port of all addresses, if they agree: `Some(None)` is 80, and 443 with TLS. Routers in front of a socket have those.
    pub(crate) fn port(&self) -> Option<Option<u16>> {
        let port = |address: &String| address.rsplit_once(':')?.1.parse::<u16>().ok();
        let usual = |(address, own)| port(address).is_none_or(|port| port == own);
        let plain = self.plain.iter().map(|address| (address, 80));
        if plain.chain(self.tls.iter().map(|address| (address, 443))).all(usual) {
            return Some(None);
        }
        let mut ports = self.all().map(port);
        let first = ports.next()?;
        (first.is_some() && ports.all(|port| port == first)).then_some(first)
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.plain.is_empty() && self.tls.is_empty()
    }
}

/// The words that nginx takes behind an address, and beginnings of such words.
const FLAGS: [&str; 11] = [
    "default_server",
    "default",
    "ssl",
    "http2",
    "http3",
    "quic",
    "spdy",
    "proxy_protocol",
    "deferred",
    "bind",
    "reuseport",
];
const BEGINNINGS: [&str; 9] = [
    "setfib=",
    "fastopen=",
    "backlog=",
    "rcvbuf=",
    "sndbuf=",
    "accept_filter=",
    "ipv6only=",
    "so_keepalive=",
    "multipath",
];

/// A word behind an address that nginx takes for none of its flags.
fn stranger(line: &Directive) -> Option<&str> {
    let is_flag = |word: &str| {
        FLAGS.contains(&word) || BEGINNINGS.iter().any(|start| word.starts_with(start))
    };
    line.words.iter().skip(1).map(String::as_str).find(|word| !is_flag(word))
}

/// Reads the addresses of a server.
pub(crate) fn read(context: &Context<'_>, server: &Directive) -> Listen {
    let mut listen = Listen::default();
    let lines: Vec<&Directive> = server.children().iter().filter(|one| one.is("listen")).collect();
    let all_tls = server.children().iter().any(|one| one.is("ssl") && one.word(0) == "on");
    if lines.is_empty() {
        listen.plain.push("0.0.0.0:80".to_owned());
    }
    let proxied = server
        .children()
        .iter()
        .any(|one| one.is("real_ip_header") && one.word(0) == "proxy_protocol");
    for line in lines {
        let has = |flag: &str| line.words.iter().skip(1).any(|word| word == flag);
        if let Some(stranger) = stranger(line).filter(|word| *word != "udp") {
            let why =
                format!("nginx takes no `{stranger}` here: is a semicolon missing before it?");
            context.ledger.refused(line, why);
        }
        if has("quic") || has("udp") {
            context.ledger.left(line, "AFPA speaks HTTP/3 at each address with TLS");
            continue;
        }
        if has("proxy_protocol") && !proxied {
            context.ledger.refused(line, "AFPA takes the PROXY protocol from routers that it knows (set_real_ip_from): this address is left out");
            continue;
        }
        let tls = has("ssl") || all_tls;
        if has("http2") && !tls {
            context
                .ledger
                .left(line, "for HTTP/2 without TLS write `cleartext = true` under [http2]");
        }
        let Some(address) = address(line.word(0)) else {
            context
                .ledger
                .refused(line, "AFPA listens on addresses, not on names: this one is left out");
            continue;
        };
        let both = has("ipv6only=off") && address.starts_with("[::]:");
        let other = both.then(|| address.replace("[::]", "0.0.0.0"));
        for address in [Some(address), other].into_iter().flatten() {
            if has("default_server") || has("default") {
                listen.defaults.push(address.clone());
            }
            let list = if tls { &mut listen.tls } else { &mut listen.plain };
            if !list.contains(&address) {
                list.push(address);
            }
        }
    }
    listen
}

/// An address as AFPA writes it.
fn address(text: &str) -> Option<String> {
    if let Some(path) = text.strip_prefix("unix:") {
        return path.starts_with('/').then(|| text.to_owned());
    }
    if text.parse::<u16>().is_ok_and(|port| port > 0) {
        return Some(format!("0.0.0.0:{text}"));
    }
    let text = text.strip_prefix('*').map_or(text.to_owned(), |rest| format!("0.0.0.0{rest}"));
    let parsed = text.parse::<std::net::SocketAddr>();
    let with_port = || format!("{text}:80").parse::<std::net::SocketAddr>();
    parsed.or_else(|_| with_port()).ok().map(|address| address.to_string())
}

/// The names of a server.
#[derive(Clone, Debug, Default)]
pub(crate) struct Names {
    hosts: Vec<String>,
    /// Whether it answers for names that no other has.
    is_default: bool,
    /// The first that is a name.
    pub(crate) first: Option<String>,
}

impl Names {
    /// The line of the names that are left.
    pub(crate) fn line(&self, without: &[String]) -> Option<String> {
        (!self.is_default).then(|| texts("hosts", &self.left(without)))
    }

    /// Whether no name is left.
    pub(crate) fn is_gone(&self, without: &[String]) -> bool {
        !self.is_default && self.left(without).is_empty()
    }

    fn left(&self, without: &[String]) -> Vec<String> {
        self.hosts.iter().filter(|host| !without.contains(host)).cloned().collect()
    }
}

/// Reads the names of all servers, which decide about one another.
pub(crate) fn names(context: &Context<'_>, servers: &[(&Directive, Listen)]) -> Vec<Names> {
    let mut defaults: BTreeMap<&String, usize> = BTreeMap::new();
    for (index, (_, listen)) in servers.iter().enumerate() {
        for address in listen.all() {
            defaults.entry(address).or_insert(index);
        }
    }
    for (index, (_, listen)) in servers.iter().enumerate() {
        for address in &listen.defaults {
            defaults.insert(address, index);
        }
    }
    let mut taken: Vec<(&String, String)> = Vec::new();
    let mut all = Vec::new();
    for (index, (server, listen)) in servers.iter().enumerate() {
        let mut names = read_names(context, server);
        names.hosts.retain(|host| {
            let twice = listen.all().any(|address| taken.contains(&(address, host.clone())));
            let name = server.children().iter().find(|one| one.is("server_name"));
            if let (true, Some(name)) = (twice, name) {
                context.ledger.left(name, format!("an earlier server has {host}"));
            }
            !twice
        });
        for host in &names.hosts {
            taken.extend(listen.all().map(|address| (address, host.clone())));
        }
        let of = listen.all().filter(|address| defaults.get(address) == Some(&index)).count();
        names.is_default = of > 0 && of == listen.all().count();
        if of > 0 && !names.is_default {
            let why = "on some of its addresses other names get 421";
            context.ledger.differs(server, why);
        }
        all.push(names);
    }
    conflicts(context, servers, &mut all);
    all
}

/// A default server keeps its names where patterns of others would take them.
fn conflicts(context: &Context<'_>, servers: &[(&Directive, Listen)], all: &mut [Names]) {
    let patterns: Vec<(usize, String)> = all
        .iter()
        .enumerate()
        .flat_map(|(index, names)| names.hosts.iter().map(move |host| (index, host.clone())))
        .filter(|(_, host)| host.starts_with(['*', '~']))
        .collect();
    for (index, names) in all.iter_mut().enumerate().filter(|(_, names)| names.is_default) {
        let taken = |host: &String| {
            patterns.iter().any(|(other, pattern)| *other != index && covers(pattern, host))
        };
        if names.hosts.iter().any(taken)
            && let Some((server, _)) = servers.get(index)
        {
            names.is_default = false;
            context.ledger.differs(server, "names that no server has get 421");
        }
    }
}

fn covers(pattern: &str, host: &str) -> bool {
    match pattern.strip_prefix('*') {
        Some(end) => host.ends_with(end),
        None => regex::Regex::new(pattern.trim_start_matches(['~', '*']))
            .map_or(true, |pattern| pattern.is_match(host)),
    }
}

fn read_names(context: &Context<'_>, server: &Directive) -> Names {
    let mut names = Names::default();
    for directive in server.children().iter().filter(|one| one.is("server_name")) {
        for word in &directive.words {
            match host(word) {
                Ok(hosts) => names.hosts.extend(hosts),
                Err(why) => context.ledger.left(directive, why),
            }
        }
    }
    names.hosts.dedup();
    let is_name = |host: &&String| !host.starts_with(['*', '~']) && *host != "_";
    names.first = names.hosts.iter().find(is_name).cloned();
    names
}

/// The hosts of a name.
fn host(word: &str) -> Result<Vec<String>, String> {
    if word.is_empty() {
        return Err("requests without a host belong to no site".to_owned());
    }
    if let Some(text) = word.strip_prefix('~') {
        return expression(text, true).map(|_| vec![format!("~{text}")]);
    }
    let word = word.to_ascii_lowercase();
    let label = |label: &str| {
        !label.is_empty()
            && label.chars().all(|c| c.is_ascii_alphanumeric() || c == '-' || c == '_')
    };
    let is_name = |name: &str| is_plain(name) && name.split('.').all(label);
    if let Some(name) = word.strip_prefix('.') {
        return match is_name(name) {
            true => Ok(vec![name.to_owned(), format!("*.{name}")]),
            false => Err(format!("{word} is no name")),
        };
    }
    if let Some(start) = word.strip_suffix(".*") {
        return match is_name(start) {
            true => Ok(vec![format!("~^{}\\..+$", start.replace('.', "\\."))]),
            false => Err(format!("{word} is no name")),
        };
    }
    match is_name(word.strip_prefix("*.").unwrap_or(&word)) {
        true => Ok(vec![word]),
        false => Err(format!("{word} is no name")),
    }
}
