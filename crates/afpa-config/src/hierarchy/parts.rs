//! The parts of a path's entry: its reach, its content groups, their conditions, and the path for a server.

use afpa_police::Prefix;
use afpa_router::{
    ClientNetwork, Conditions, FieldCondition, FieldSource, Pattern, Reach, Rewrite,
};

use crate::site_settings::{Behaviour, UrlPath};
use crate::traps::has_escape;

impl UrlPath {
    /// Whether every path of the site begins with it.
    pub(crate) fn is_whole_site(&self) -> bool {
        self.prefix == "/" && self.recursion && !self.exact
    }

    /// Whether a directory of its own is cached somewhere below it.
    pub(crate) fn has_root(&self) -> bool {
        let contents = self.contents.iter().map(|content| &content.behaviour);
        contents.chain([&self.behaviour]).any(|behaviour| behaviour.root.is_some())
    }
}

impl Behaviour {
    /// Whether it says what happens with a request. A `root` that content groups inherit does not count.
    pub(crate) fn acts(&self) -> bool {
        let Behaviour { to, redirect, status, rewrite, .. } = self;
        to.is_some() || redirect.is_some() || status.is_some() || rewrite.is_some()
    }

    /// Whether it depends on more than the path.
    pub(crate) fn has_conditions(&self) -> bool {
        !conditions(self).is_empty()
    }
}

/// How far a path reaches.
pub(crate) fn reach(path: &UrlPath) -> Reach {
    match (path.exact, path.recursion) {
        (true, _) => Reach::Exact,
        (false, true) => Reach::Recursion,
        (false, false) => Reach::NoRecursion,
    }
}

pub(crate) fn content_group(extensions: &[String]) -> afpa_router::ContentGroup {
    if extensions.is_empty() {
        return afpa_router::ContentGroup::All;
    }
    let special = |word: &str| extensions.iter().any(|extension| extension == word);
    let plain = extensions.iter().filter(|e| !matches!(e.as_str(), "none" | "others"));
    afpa_router::ContentGroup::List {
        extensions: plain.cloned().collect(),
        none: special("none"),
        others: special("others"),
    }
}

/// The name of a condition on the client's certificate; other conditions have the name of a field here.
const SUBJECT: &str = "subject of the client";

pub(crate) fn conditions(behaviour: &Behaviour) -> Conditions {
    let condition = |source| {
        move |(name, value): &(String, String)| FieldCondition {
            source,
            name: name.clone(),
            value: Pattern::new(value),
        }
    };
    let headers = behaviour.if_headers.iter().map(condition(FieldSource::Field));
    let cookies = behaviour.if_cookies.iter().map(condition(FieldSource::Cookie));
    let subject =
        behaviour.if_client_subject.as_ref().map(|value| (SUBJECT.to_owned(), value.clone()));
    let subject = subject.as_ref().map(condition(FieldSource::Subject));
    let parameters = behaviour.if_query.iter().map(condition(FieldSource::Query));
    let network =
        |prefix: &Prefix| ClientNetwork { address: prefix.address(), bits: prefix.bits() };
    Conditions {
        methods: behaviour.if_methods.clone(),
        clients: behaviour.if_clients.iter().map(network).collect(),
        paths: behaviour.if_path.iter().map(|text| Pattern::new(text)).collect(),
        fields: parameters.chain(headers).chain(cookies).chain(subject).collect(),
    }
}

/// `new` in the place of `prefix`, or of all. When both end with a slash, the path keeps its own.
pub(super) fn replacement(prefix: &str, new: &str) -> Rewrite {
    if is_target(new) {
        return Rewrite::Target(new.into());
    }
    if has_escape(new) {
        // Escapes are for the target of the request, and not for the path, in which they would be escaped once more.
        return Rewrite::Target(format!("{new}{{rest}}").into());
    }
    let (strip, head) = match (prefix.strip_suffix('/'), new.strip_suffix('/')) {
        (Some(prefix), Some(new)) => (prefix.len(), new),
        _ => (prefix.len(), new),
    };
    Rewrite::Prefix { strip, head: head.as_bytes().to_vec() }
}

/// Whether a `rewrite` beside `to` is a whole target, and not the text that replaces the prefix.
pub(crate) fn is_target(rewrite: &str) -> bool {
    rewrite.contains(['{', '?'])
}
