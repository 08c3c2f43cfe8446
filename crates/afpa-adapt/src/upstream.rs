//! Servers behind: `upstream`, and what `proxy_pass` names.

use std::cell::RefCell;
use std::collections::BTreeMap;

use crate::model::ServerGroup;
use crate::notes::Ledger;
use crate::syntax::Directive;
use crate::values::{duration, list, quoted};

/// Knowledge that all servers and locations share.
pub(crate) struct Context<'d> {
    pub(crate) ledger: Ledger,
    /// By name.
    pub(crate) upstreams: BTreeMap<&'d str, &'d Directive>,
    /// Variables that a `map` makes of `$http_upgrade`.
    pub(crate) upgrades: Vec<&'d str>,
    /// Zones of `limit_req_zone` and `limit_conn_zone` by client, with their rates.
    pub(crate) zones: BTreeMap<&'d str, &'d str>,
    pub(crate) groups: RefCell<Vec<ServerGroup>>,
    /// That of the first file: relative names begin there.
    pub(crate) folder: String,
}

/// Settings of a server group beside its servers: for each section its lines.
pub(crate) type Settings = BTreeMap<&'static str, Vec<String>>;

impl Context<'_> {
    /// A path of a file of the configuration, absolute.
    pub(crate) fn file(&self, path: &str) -> String {
        match path.starts_with('/') || self.folder.is_empty() {
            true => path.to_owned(),
            false => format!("{}/{path}", self.folder),
        }
    }

    /// The value of `to` for an address, or the name of an upstream; with a group for it where it needs one.
    pub(crate) fn destination(
        &self,
        address: &str,
        port: u16,
        mut settings: Settings,
    ) -> Result<String, String> {
        let name = address.trim_start_matches("unix:").trim_matches(['/', '[', ']', ':']);
        let mut name: String = name.chars().map(|c| if fits_name(c) { c } else { '-' }).collect();
        let servers = match self.upstreams.get(address) {
            Some(upstream) => {
                name = address.chars().map(|c| if fits_name(c) { c } else { '-' }).collect();
                self.servers(upstream, port, &mut settings)?
            }
            None => vec![quoted(&server(address, port)?)],
        };
        if let ([one], true) = (&servers[..], settings.is_empty())
            && one.starts_with('"')
        {
            return Ok(one.trim_matches('"').to_owned());
        }
        let mut body = format!("servers = [{}]\n", servers.join(", "));
        for (section, lines) in settings {
            if !section.is_empty() {
                body.push_str(&format!("\n[server_group.{section}]\n"));
            }
            body.push_str(&(lines.join("\n") + "\n"));
        }
        Ok(self.group(name, body))
    }

    /// The name of the group with this body, which is perhaps a new one.
    fn group(&self, name: String, body: String) -> String {
        let mut groups = self.groups.borrow_mut();
        if let Some(known) = groups.iter().find(|group| group.body == body) {
            return known.name.clone();
        }
        let name: String = name.chars().take(56).collect();
        let taken = |name: &str| name == "none" || groups.iter().any(|group| group.name == name);
        let numbered = (2..).map(|number| format!("{name}-{number}"));
        let free = std::iter::once(name.clone()).chain(numbered).find(|name| !taken(name));
        let name = free.unwrap_or(name);
        groups.push(ServerGroup { name: name.clone(), body });
        name
    }

    /// The servers of an upstream as the list has them, and the settings that it makes.
    fn servers(
        &self,
        upstream: &Directive,
        port: u16,
        settings: &mut Settings,
    ) -> Result<Vec<String>, String> {
        let mut servers = Vec::new();
        for directive in upstream.children() {
            if directive.is("server") {
                servers.extend(self.upstream_server(directive, port)?);
            } else {
                self.upstream_setting(directive, settings);
            }
        }
        if servers.is_empty() {
            return Err("its upstream has no server that AFPA can use".to_owned());
        }
        Ok(servers)
    }

    fn upstream_server(&self, directive: &Directive, port: u16) -> Result<Option<String>, String> {
        let to = quoted(&server(directive.word(0), port)?);
        let mut fields = String::new();
        for word in directive.words.iter().skip(1) {
            match word.split_once('=').unwrap_or((word, "")) {
                ("weight", value) if value.parse::<u16>().is_ok() => {
                    fields.push_str(&format!(", weight = {value}"));
                }
                ("max_conns", value) if value.parse::<u16>().is_ok_and(|most| most > 0) => {
                    fields.push_str(&format!(", max_connections = {value}"));
                }
                ("down", _) => fields.push_str(", weight = 0"),
                ("backup", _) => {
                    let why = "AFPA has no servers in reserve: this one gets no requests";
                    self.ledger.left(directive, why);
                    return Ok(None);
                }
                ("max_fails" | "fail_timeout", _) => {
                    self.ledger.differs(directive, "AFPA has its own rules for servers that fail");
                }
                ("resolve", _) => {}
                (other, _) => self.ledger.left(directive, format!("AFPA has nothing like {other}")),
            }
        }
        Ok(Some(match fields.is_empty() {
            true => to,
            false => format!("{{ to = {to}{fields} }}"),
        }))
    }

    fn upstream_setting(&self, directive: &Directive, settings: &mut Settings) {
        let select = match (&*directive.name, directive.word(0)) {
            ("least_conn" | "random", _) => "least-connections",
            ("ip_hash", _) | ("hash", "$remote_addr" | "$binary_remote_addr") => "client-hash",
            ("hash", "$request_uri" | "$uri" | "$scheme$proxy_host$request_uri") => "url-hash",
            ("hash", _) => {
                self.ledger.left(directive, "AFPA selects by the URL or the client's address");
                return;
            }
            ("keepalive", count) if count.parse::<u32>().is_ok_and(|count| count <= 100_000) => {
                settings.entry("connections").or_default().push(format!("idle = {count}"));
                return;
            }
            ("keepalive_timeout", time) => {
                match duration(time, 10, 3_600_000) {
                    Some(time) => {
                        let line = format!("idle_timeout = {}", quoted(&time));
                        settings.entry("connections").or_default().push(line);
                    }
                    None => self.ledger.left(directive, "AFPA takes 10ms to 1h"),
                }
                return;
            }
            _ => return,
        };
        settings.entry("").or_default().push(format!("select = {}", quoted(select)));
    }
}

fn fits_name(c: char) -> bool {
    c.is_ascii_alphanumeric() || matches!(c, '_' | '-' | '.')
}

/// The address of a server as AFPA writes it, with its port.
pub(crate) fn server(text: &str, port: u16) -> Result<String, String> {
    let refuse = |why: &str| Err(format!("\"{text}\" {why}"));
    if text.contains('$') {
        return refuse("depends on a variable");
    }
    if let Some(path) = text.strip_prefix("unix:") {
        return match path.starts_with('/') && path.len() <= 107 {
            true => Ok(text.trim_end_matches(':').to_owned()),
            false => refuse("is not the whole path of a socket"),
        };
    }
    let (name, given) = match text.rsplit_once(':') {
        Some((name, port)) if !port.contains(']') => (name, Some(port)),
        _ => (text, None),
    };
    let port = match given.map(str::parse::<u16>) {
        None => port,
        Some(Ok(port)) if port > 0 => port,
        Some(_) => return refuse("has no port that exists"),
    };
    let fits = |c: char| fits_name(c) || matches!(c, '[' | ']' | ':');
    if name.is_empty() || !name.chars().all(fits) {
        return refuse("is not the address of a server");
    }
    Ok(format!("{name}:{port}"))
}

/// The line of a list of texts under a key.
pub(crate) fn texts(key: &str, values: &[String]) -> String {
    format!("{key} = {}", list(values))
}
