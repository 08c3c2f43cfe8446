//! Fields: `add_header`, `expires`, and those of requests to servers.

use crate::learnt;
use crate::scope::Scope;
use crate::upstream::{Context, texts};
use crate::values::{is_plain, milliseconds, table};

/// The statuses of answers to which nginx adds fields without `always`.
const USUAL: &str = "status = [200, 201, 204, 206, 301, 302, 303, 304, 307, 308]";

/// Fields that nobody but AFPA writes.
const OWN: &[&str] = &[
    "connection",
    "content-length",
    "keep-alive",
    "transfer-encoding",
    "upgrade",
    "trailer",
    "te",
    "age",
    "content-encoding",
    "content-range",
    "date",
    "accept-ranges",
    "etag",
    "last-modified",
    "http2-settings",
    "proxy-authenticate",
    "proxy-connection",
    "content-type",
    "host",
];

type Pair = (String, String);

/// The sections for the answers of a place.
pub(crate) fn answers(context: &Context<'_>, scope: &Scope<'_>) -> Vec<Vec<String>> {
    let mut sections = Vec::new();
    let expires = expires(context, scope);
    let (mut usual, mut always): (Vec<Vec<Pair>>, Vec<Vec<Pair>>) = (Vec::new(), Vec::new());
    for directive in scope.all("add_header") {
        let (name, value) = (directive.word(0), directive.word(1));
        let lower = name.to_ascii_lowercase();
        if value.is_empty() {
            continue; // nginx adds no such field
        }
        if lower == "set-cookie" && learnt::is_learnt(scope, value) == Some("set_cookie") {
            continue; // as AFPA does by itself
        }
        if let Some(why) = unfit(&lower, value) {
            context.ledger.left(directive, why);
            continue;
        }
        let lists = if directive.word(2) == "always" { &mut always } else { &mut usual };
        place(lists, (name.to_owned(), value.to_owned()));
    }
    if !usual.is_empty() || expires.is_some() {
        let mut lists = usual.into_iter();
        let mut lines = vec![USUAL.to_owned()];
        lines.extend(expires);
        lines.extend(lists.next().map(|pairs| format!("add = {}", table(&pairs))));
        sections.push(lines);
        let more = lists.map(|pairs| vec![USUAL.to_owned(), format!("add = {}", table(&pairs))]);
        sections.extend(more);
    }
    sections.extend(always.iter().map(|pairs| vec![format!("add = {}", table(pairs))]));
    for name in ["proxy_hide_header", "fastcgi_hide_header"] {
        sections.extend(hidden(context, scope, name));
    }
    sections
}

/// Puts a field into the first table that does not have its name.
fn place(lists: &mut Vec<Vec<Pair>>, pair: Pair) {
    let has = |list: &Vec<Pair>| list.iter().any(|(name, _)| name.eq_ignore_ascii_case(&pair.0));
    match lists.iter_mut().find(|list| !has(list)) {
        Some(list) => list.push(pair),
        None => lists.push(vec![pair]),
    }
}

/// Why AFPA does not write such a field.
fn unfit(name: &str, value: &str) -> Option<&'static str> {
    let is_token = |c: char| c.is_ascii_alphanumeric() || "!#$%&'*+-.^_`|~".contains(c);
    if !is_plain(value) || !is_plain(name) {
        return Some("fields have no variables");
    }
    if name == "alt-svc" {
        return Some("AFPA offers HTTP/3 itself");
    }
    if OWN.contains(&name) {
        return Some("AFPA writes this field itself");
    }
    let printable = |byte: u8| (b' '..=b'~').contains(&byte);
    let fits = name.chars().all(is_token) && !name.is_empty() && value.trim() == value;
    (!fits || !value.bytes().all(printable)).then_some("this is no field of HTTP")
}

/// The line for `expires`.
fn expires(context: &Context<'_>, scope: &Scope<'_>) -> Option<String> {
    let directive = scope.last("expires")?;
    let value = directive.word(0);
    let age = match value {
        "off" => return None,
        "epoch" => "no-cache".to_owned(),
        "max" => "max-age=315360000".to_owned(),
        past if past.starts_with('-') && milliseconds(&past[1..]).is_some() => {
            "no-cache".to_owned()
        }
        _ => match milliseconds(value).filter(|_| directive.words.len() == 1) {
            Some(time) => format!("max-age={}", time / 1000),
            None => {
                context.ledger.left(directive, "AFPA's Cache-Control is the same at all times");
                return None;
            }
        },
    };
    Some(format!("set = {}", table(&[("Cache-Control".to_owned(), age)])))
}

/// The section for fields of servers that clients do not get.
fn hidden(context: &Context<'_>, scope: &Scope<'_>, name: &str) -> Option<Vec<String>> {
    let mut removed = Vec::new();
    for directive in scope.all(name) {
        let field = directive.word(0).to_ascii_lowercase();
        if matches!(&*field, "vary" | "content-type") || OWN.contains(&&*field) {
            context.ledger.left(directive, "answers need this field");
        } else {
            removed.push(directive.word(0).to_owned());
        }
    }
    (!removed.is_empty()).then(|| vec![texts("remove", &removed)])
}

/// The Host that servers get, by its value in nginx: `keep` is that of the client; `None`: that of the servers.
pub(crate) fn host(value: &str) -> Option<String> {
    match value {
        "$proxy_host" => None,
        value if is_plain(value) && !value.is_empty() => Some(value.to_owned()),
        _ => Some("keep".to_owned()),
    }
}

/// Fields that servers get: the lines of a section, and the value of `host`.
pub(crate) struct Sent {
    pub(crate) section: Vec<String>,
    /// `None`: nothing is said about it.
    pub(crate) host: Option<String>,
    /// The name of the field that has the address of the client.
    pub(crate) address: Option<String>,
}

/// Whether AFPA takes a field for the address of the client, which none of its own is then.
fn may_name_client(name: &str) -> bool {
    let others = ["x-forwarded", "x-original-", "x-rewrite-"];
    let own = name.starts_with("x-") && !others.iter().any(|begin| name.starts_with(begin));
    own || matches!(name, "remote-addr" | "client-ip" | "true-client-ip" | "cf-connecting-ip")
}

/// The fields of requests to servers.
pub(crate) fn requests(context: &Context<'_>, scope: &Scope<'_>) -> Sent {
    let (mut set, mut remove, mut host) = (Vec::new(), Vec::new(), None);
    let mut address = None;
    for directive in scope.all("proxy_set_header") {
        let (name, value) = (directive.word(0), directive.word(1));
        let lower = name.to_ascii_lowercase();
        let forwarded = ["x-forwarded-for", "x-forwarded-proto", "x-forwarded-host"];
        let usual =
            ["$scheme", "$host", "$http_host", "$remote_addr", "$proxy_add_x_forwarded_for"];
        match (&*lower, value) {
            ("host", value) => {
                let is_known =
                    is_plain(value) || ["$host", "$http_host", "$proxy_host"].contains(&value);
                if !is_known && value != "$host:$server_port" || value.is_empty() {
                    context.ledger.left(directive, "servers get the client's Host");
                }
                host = self::host(value).or(host);
            }
            ("upgrade", "$http_upgrade")
            | ("connection", "" | "upgrade" | "Upgrade" | "keep-alive" | "$http_connection") => {}
            ("connection", map) if context.upgrades.contains(&map) => {}
            (field, value) if forwarded.contains(&field) && usual.contains(&value) => {}
            (field, value)
                if OWN.contains(&field)
                    || matches!(
                        field,
                        "expect"
                            | "via"
                            | "range"
                            | "if-range"
                            | "if-match"
                            | "if-none-match"
                            | "if-modified-since"
                            | "max-forwards"
                            | "early-data"
                    ) =>
            {
                let _ = value;
                context.ledger.left(directive, "AFPA writes this field itself");
            }
            (field, "$remote_addr") if address.is_none() && may_name_client(field) => {
                address = Some(name.to_owned());
            }
            (_, "") => remove.push(name.to_owned()),
            (_, value) if unfit(&lower, value).is_none() => {
                set.push((name.to_owned(), value.to_owned()));
            }
            (_, value) if learnt::is_copied(scope, name, value) => {
                // Where nobody is asked, nginx sends none, and the client's own must not pass.
                if learnt::asked(scope).is_none() {
                    remove.push(name.to_owned());
                }
            }
            (field, value) if value == format!("$http_{}", field.replace('-', "_")) => {}
            _ => {
                // The client's own field must not stand in for nginx's.
                if lower != "x-real-ip" && !lower.starts_with("x-forwarded-") {
                    remove.push(name.to_owned());
                }
                let why = match &*lower {
                    "x-real-ip" => "servers find the client at the end of X-Forwarded-For",
                    _ => "fields have no variables: servers get no such field",
                };
                context.ledger.left(directive, why);
            }
        }
    }
    let mut section = Vec::new();
    if !set.is_empty() {
        section.push(format!("request_set = {}", table(&set)));
    }
    if !remove.is_empty() {
        section.push(texts("request_remove", &remove));
    }
    Sent { section, host, address }
}
