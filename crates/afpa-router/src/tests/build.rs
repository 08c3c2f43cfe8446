//! Tables in few words.

use afpa_http::Method;

use crate::*;

pub(super) fn listed(extensions: &str) -> ContentGroup {
    let words: Vec<&str> = extensions.split_whitespace().collect();
    ContentGroup::List {
        extensions: words
            .iter()
            .filter(|word| !matches!(**word, "none" | "others"))
            .map(|word| (*word).to_owned())
            .collect(),
        none: words.contains(&"none"),
        others: words.contains(&"others"),
    }
}

pub(super) fn cached(root: u32) -> Action {
    Action::Cached { root: RootId(root), fallback: None, scripts: None }
}

pub(super) fn distributed(group: u32) -> Action {
    Action::Distributed { group: GroupId(group), affinity: Affinity::None }
}

pub(super) fn content(group: ContentGroup, action: Action) -> Content {
    Content { group, conditions: Conditions::default(), action, rewrite: None }
}

pub(super) fn path(prefix: &str, reach: Reach, contents: Vec<Content>) -> PathEntry {
    PathEntry { prefix: prefix.as_bytes().to_vec(), reach, contents }
}

pub(super) fn site(name: &str, hosts: &[&str], paths: Vec<PathEntry>) -> SiteEntry {
    let pattern = |host: &&str| match host.strip_prefix("*.") {
        Some(name) => HostPattern::Below(name.to_owned()),
        None => HostPattern::Exact((*host).to_owned()),
    };
    SiteEntry {
        name: name.to_owned(),
        listeners: vec![ListenerId(0)],
        hosts: hosts.iter().map(pattern).collect(),
        paths,
    }
}

pub(super) fn ask<'q>(host: &'q str, path: &'q str) -> Question<'q, ()> {
    Question {
        listener: ListenerId(0),
        host,
        method: Method::Get,
        path: path.as_bytes(),
        query: None,
        fields: (),
    }
}

pub(super) fn field(source: FieldSource, name: &str, value: &str) -> FieldCondition {
    FieldCondition { source, name: name.to_owned(), value: Pattern::new(value) }
}
