//! The same rules, read from the table for each request without any preparation.

use std::net::IpAddr;

use afpa_http::Method;
use proptest::prelude::*;

use super::build::*;
use crate::*;

const NEAR: &str = "192.0.2.7";

/// A request: host, path, method, value of the cookie `c` and the parameter `q`, client.
type Asked = (String, String, bool, (String, String), bool);

fn naive(table: &Table, asked: &Asked) -> Option<(u32, bool)> {
    let (host, path, post, (cookie, parameter), near) = asked;
    let site = naive_site(table, host)?;
    let mut number = 0;
    let mut sets = Vec::new();
    for (index, other) in table.sites.iter().enumerate() {
        for entry in &other.paths {
            for content in &entry.contents {
                if index == site {
                    sets.push((number, entry, content));
                }
                number += 1;
            }
        }
    }
    let mut entries: Vec<&PathEntry> = table.sites[site]
        .paths
        .iter()
        .filter(|entry| {
            let rest = path.strip_prefix(std::str::from_utf8(&entry.prefix).unwrap());
            rest.is_some_and(|rest| match entry.reach {
                Reach::Recursion => true,
                Reach::NoRecursion => !rest.contains('/'),
                Reach::Exact => rest.is_empty(),
            })
        })
        .collect();
    let narrow = |reach| {
        [Reach::Exact, Reach::NoRecursion, Reach::Recursion].iter().position(|r| *r == reach)
    };
    entries.sort_by_key(|entry| (std::cmp::Reverse(entry.prefix.len()), narrow(entry.reach)));
    let mut certain = !post;
    for entry in entries {
        let own = || sets.iter().filter(|(_, e, _)| std::ptr::eq(*e, entry));
        let fitting = || own().filter(|(_, _, c)| fits(entry, &c.group, path));
        for (number, _, content) in fitting().filter(|(_, _, c)| !c.conditions.is_empty()) {
            let Conditions { methods, clients, paths, fields } = &content.conditions;
            let on_post = methods == &["POST"];
            let has = |source| fields.iter().any(|field| field.source == source);
            let (cookies, queries) = (has(FieldSource::Cookie), has(FieldSource::Query));
            let (from, part) = (!clients.is_empty(), !paths.is_empty());
            if !on_post && (cookies || queries || from || part) {
                certain = false;
            }
            if (!on_post || *post)
                && (!cookies || cookie == "yes")
                && (!queries || parameter == "yes")
                && (!from || *near)
                && (!part || path.ends_with("/a") || path.contains("b."))
            {
                return Some((*number, certain));
            }
        }
        let plain = fitting().filter(|(_, _, c)| c.conditions.is_empty());
        // A list goes before what takes the rest.
        if let Some((number, _, _)) = plain.min_by_key(|(_, _, c)| c.group == ContentGroup::All) {
            return Some((*number, certain));
        }
    }
    None
}

fn naive_site(table: &Table, host: &str) -> Option<usize> {
    let patterns = |index: usize| table.sites[index].hosts.iter();
    let all = || 0..table.sites.len();
    let exact = all().find(|index| {
        patterns(*index)
            .any(|p| matches!(p, HostPattern::Exact(name) if name.eq_ignore_ascii_case(host)))
    });
    let longest = || {
        all()
            .flat_map(|index| patterns(index).map(move |pattern| (index, pattern)))
            .filter_map(|(index, pattern)| match pattern {
                HostPattern::Below(name) => {
                    let end = format!(".{}", name.to_ascii_lowercase());
                    host.to_ascii_lowercase().ends_with(&end).then_some((name.len(), index))
                }
                HostPattern::Exact(_) | HostPattern::Matching(_) => None,
            })
            .max()
            .map(|(_, index)| index)
    };
    exact.or_else(longest).or_else(|| all().find(|index| table.sites[*index].hosts.is_empty()))
}

fn fits(entry: &PathEntry, group: &ContentGroup, path: &str) -> bool {
    let name = path.rsplit('/').next().unwrap();
    let extension = match name.rfind('.') {
        Some(dot) if dot > 0 && dot + 1 < name.len() => Some(name[dot + 1..].to_ascii_lowercase()),
        _ => None,
    };
    let lists = |group: &ContentGroup, extension: &String| matches!(group, ContentGroup::List { extensions, .. } if extensions.contains(extension));
    match (group, extension) {
        (ContentGroup::All, _) => true,
        (ContentGroup::List { none, .. }, None) => *none,
        (ContentGroup::List { others, .. }, Some(extension)) => {
            lists(group, &extension)
                || (*others
                    && !entry
                        .contents
                        .iter()
                        .any(|c| c.conditions.is_empty() && lists(&c.group, &extension)))
        }
    }
}

fn groups() -> impl Strategy<Value = ContentGroup> {
    let words = prop::sample::subsequence(vec!["a", "b", "c", "none", "others"], 0..=5);
    prop_oneof![
        1 => Just(ContentGroup::All),
        4 => words.prop_map(|words| listed(&words.join(" "))),
    ]
}

fn contents() -> impl Strategy<Value = Content> {
    let rare = || prop::bool::weighted(0.2);
    (groups(), any::<bool>(), rare(), rare(), rare(), rare(), rare()).prop_map(
        |(group, kept, post, cookie, query, from, part)| {
            let of = |source, name: &str| field(source, name, "~^yes$");
            let cookie = cookie.then(|| of(FieldSource::Cookie, "c"));
            let fields = cookie.into_iter().chain(query.then(|| of(FieldSource::Query, "q")));
            let near = ClientNetwork { address: NEAR.parse().unwrap(), bits: 24 };
            let conditions = Conditions {
                methods: post.then(|| "POST".to_owned()).into_iter().collect(),
                clients: from.then_some(near).into_iter().collect(),
                paths: match part {
                    true => vec![Pattern::new("*/a"), Pattern::new("~b[.]")],
                    false => Vec::new(),
                },
                fields: fields.collect(),
            };
            let action = if kept { cached(1) } else { distributed(1) };
            Content { conditions, ..content(group, action) }
        },
    )
}

fn paths() -> impl Strategy<Value = PathEntry> {
    let reach = prop::sample::select(vec![Reach::Recursion, Reach::NoRecursion, Reach::Exact]);
    ("/([a-b.]{1,2}/){0,2}[a-b.]{0,2}", reach, prop::collection::vec(contents(), 1..5))
        .prop_map(|(prefix, reach, contents)| path(&prefix, reach, contents))
}

fn hosts() -> impl Strategy<Value = String> {
    "([*][.])?[a-b][.][a-b]([.][a-b])?"
}

prop_compose! {
    /// A table without conflicts: sites that conflict are left out.
    fn tables()(sites in prop::collection::vec(
        (prop::collection::vec(hosts(), 0..3), prop::collection::vec(paths(), 1..8)), 1..4,
    )) -> Table {
        let mut table = Table::default();
        for (hosts, paths) in sites {
            let hosts: Vec<&str> = hosts.iter().map(String::as_str).collect();
            table.sites.push(site("s", &hosts, Vec::new()));
            if Router::compile(&table).is_err() {
                table.sites.pop();
                continue;
            }
            let last = table.sites.len() - 1;
            for mut entry in paths {
                let contents = std::mem::take(&mut entry.contents);
                table.sites[last].paths.push(entry);
                if Router::compile(&table).is_err() {
                    table.sites[last].paths.pop();
                    continue;
                }
                for content in contents {
                    let entry = table.sites[last].paths.len() - 1;
                    table.sites[last].paths[entry].contents.push(content);
                    if Router::compile(&table).is_err() {
                        table.sites[last].paths[entry].contents.pop();
                    }
                }
            }
        }
        table
    }
}

fn asked() -> impl Strategy<Value = Asked> {
    let path = "/([a-b.]{1,2}/){0,3}([a-b]{0,2}([.][a-dA-B]?)?)";
    let host = "[a-b]([.][a-bA-B]){0,3}";
    let word = || prop::sample::select(vec!["yes".to_owned(), "no".into()]);
    (host, path, prop::bool::weighted(0.2), (word(), word()), any::<bool>())
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 64, ..ProptestConfig::default() })]
    #[test]
    fn the_compiled_table_means_what_the_table_says(
        table in tables(),
        requests in prop::collection::vec(asked(), 1..30),
    ) {
        let router = Router::compile(&table).unwrap();
        for request in &requests {
            let (host, path, post, (cookie, parameter), near) = request;
            let fields = [("Cookie".to_owned(), format!("x=1; c={cookie}"))];
            let query = format!("q=%6eo&%71={parameter}");
            let client: Option<IpAddr> = if *near { NEAR } else { "192.0.3.7" }.parse().ok();
            let question = Question {
                listener: ListenerId(0),
                host,
                method: if *post { Method::Post } else { Method::Get },
                path: path.as_bytes(),
                query: Some(query.as_bytes()),
                fields: (&fields[..], client),
            };
            let verdict = router.route(&question);
            let found = verdict.ok().map(|verdict| (verdict.set.0, verdict.certain));
            prop_assert_eq!(found, naive(&table, request), "{:?}\n{:#?}", request, table);
            let reached = verdict.ok().map(|verdict| verdict.set);
            prop_assert!(reached.is_none_or(|set| !router.unreachable().contains(&set)), "{:#?}", table);
            let explained = router.explain(&question);
            prop_assert_eq!(explained.outcome, verdict.map(|verdict| verdict.set));
            if verdict.is_ok_and(|verdict| verdict.certain) {
                // Certain means that query, client and fields do not matter, nor does HEAD.
                let bare = Question { method: Method::Head, query: None, ..question.with(()) };
                prop_assert_eq!(router.route(&bare), verdict);
            }
        }
    }
}
