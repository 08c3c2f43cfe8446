//! Tables in few words.

use afpa_http::Method;

use crate::*;

pub(crate) fn listed(extensions: &str) -> ContentGroup {
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

pub(crate) fn cached(root: u32) -> Action {
    Action::Cached { root: RootId(root), fallback: None, scripts: None }
}

pub(crate) fn distributed(group: u32) -> Action {
    Action::Distributed { group: GroupId(group), affinity: Affinity::None }
}

pub(crate) fn content(group: ContentGroup, action: Action) -> Content {
    Content { group, conditions: Conditions::default(), action, rewrite: None }
}

pub(crate) fn path(prefix: &str, reach: Reach, contents: Vec<Content>) -> PathEntry {
    PathEntry { prefix: prefix.as_bytes().to_vec(), reach, contents }
}

pub(crate) fn site(name: &str, hosts: &[&str], paths: Vec<PathEntry>) -> SiteEntry {
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

pub(crate) fn ask<'q>(host: &'q str, path: &'q str) -> Question<'q, ()> {
    Question {
        listener: ListenerId(0),
        host,
        method: Method::Get,
        path: path.as_bytes(),
        query: None,
        fields: (),
    }
}

pub(crate) fn field(source: FieldSource, name: &str, value: &str) -> FieldCondition {
    FieldCondition { source, name: name.to_owned(), value: Pattern::new(value) }
}
