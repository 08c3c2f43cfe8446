//! The parameters of a query that belong to the key.
//!
//! The operator names parameters, but the server decides what a parameter is. All servers undo escapes; some split at
//! `;`, too, some do not tell case or `.` from `_`, or read `a[b]` as a part of `a`. So a parameter is left out, or
//! changes its place, only if every server reads it as the operator does.

use crate::policy::{CachePolicy, QueryRule, lists};

/// Appends those parameters of the query that belong to the key, behind a question mark.
pub(crate) fn put_query(policy: &CachePolicy, query: Option<&[u8]>, out: &mut Vec<u8>) {
    let Some(query) = query else { return };
    if policy.query == QueryRule::None {
        return;
    }
    if policy.query == QueryRule::All && !policy.sort_query {
        out.push(b'?');
        out.extend_from_slice(query);
        return;
    }
    let parameters = query.split(|&byte| byte == b'&');
    let mut kept: Vec<&[u8]> =
        parameters.filter(|parameter| counts(&policy.query, parameter)).collect();
    if policy.sort_query
        && kept.iter().all(|parameter| is_one(parameter) && is_plain(name(parameter)))
    {
        // The order of parameters with one name means something to most servers, so it stays.
        kept.sort_by(|a, b| folded(name(a)).cmp(folded(name(b))));
    }
    for (number, parameter) in kept.into_iter().enumerate() {
        out.push(if number == 0 { b'?' } else { b'&' });
        out.extend_from_slice(parameter);
    }
}

/// The parameters of a query that belong to the key.
pub(crate) fn kept_query(policy: &CachePolicy, query: Option<&[u8]>) -> Option<Vec<u8>> {
    let mut kept = Vec::new();
    put_query(policy, query, &mut kept);
    kept.strip_prefix(b"?").map(<[u8]>::to_vec)
}

/// Whether a parameter belongs to the key.
fn counts(rule: &QueryRule, parameter: &[u8]) -> bool {
    let name = name(parameter);
    match rule {
        QueryRule::All => true,
        QueryRule::None => false,
        QueryRule::Only(names) => {
            !is_one(parameter) || !is_plain(name) || lists(names, name, is_same_folded)
        }
        QueryRule::Without(names) => !is_one(parameter) || !lists(names, name, <[u8]>::eq),
    }
}

fn name(parameter: &[u8]) -> &[u8] {
    parameter.split(|&byte| byte == b'=').next().unwrap_or_default()
}

/// Whether there is no other parameter in it for servers that split at `;`.
fn is_one(parameter: &[u8]) -> bool {
    !parameter.contains(&b';')
}

/// Whether all servers read a name as it stands, but for its case and the signs in it.
fn is_plain(name: &[u8]) -> bool {
    name.iter().all(|byte| byte.is_ascii_alphanumeric() || b"-._~".contains(byte))
}

/// A name as the least exact server compares it.
fn folded(name: &[u8]) -> impl Iterator<Item = u8> {
    let fold = |byte: &u8| if *byte == b'.' { b'_' } else { byte.to_ascii_lowercase() };
    name.iter().map(fold)
}

fn is_same_folded(one: &[u8], other: &[u8]) -> bool {
    folded(one).eq(folded(other))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn compare(policy: &CachePolicy, one: &str, other: &str, same: bool) {
        let kept = |query: &str| kept_query(policy, query.strip_prefix('?').map(str::as_bytes));
        assert_eq!(kept(one) == kept(other), same, "{one:?} {other:?}");
    }

    /// Two queries each, and whether they have one key.
    #[track_caller]
    fn compare_all(policy: &CachePolicy, pairs: &[(&str, &str, bool)]) {
        pairs.iter().for_each(|(one, other, same)| compare(policy, one, other, *same));
    }

    fn names(names: &[&str]) -> Vec<String> {
        names.iter().map(|name| (*name).to_owned()).collect()
    }

    #[test]
    fn what_is_left_out_hides_nothing() {
        let without = QueryRule::Without(names(&["utm_*", "ref"]));
        let without = CachePolicy { query: without, ..CachePolicy::default() };
        let pairs = [
            ("?lang=de&ref=1", "?lang=de", true),
            ("?utm_x=1&utm_y=2", "", true),
            ("?ref=1;lang=de", "?ref=1", false),
            ("?ref=1;lang=de", "?ref=1;lang=en", false),
            ("?utm_x;lang=de", "", false),
            ("?r%65f=1", "", false),
            ("?", "", false),
        ];
        compare_all(&without, &pairs);
    }

    #[test]
    fn what_a_server_may_read_as_a_listed_name_counts() {
        let only = QueryRule::Only(names(&["lang", "p_*"]));
        let only = CachePolicy { query: only, ..CachePolicy::default() };
        for (other, same) in [
            ("?x=1", true),
            ("?x", true),
            ("?lang=en", false),
            ("?l%61ng=en", false),
            ("?LANG=en", false),
            ("?lang[]=en", false),
            ("?lang%5B%5D=en", false),
            ("?+lang=en", false),
            ("?x=1;lang=en", false),
            ("?p.a=1", false),
            ("?language=1", true),
        ] {
            compare(&only, other, "", same);
            compare(&only, &format!("{other}&lang=de"), "?lang=de", same);
        }
    }

    #[test]
    fn only_what_no_server_takes_for_another_changes_its_place() {
        let sorted = CachePolicy { sort_query: true, ..CachePolicy::default() };
        let pairs = [
            ("?b=1&a=2", "?a=2&b=1", true),
            ("?a=1&a=2", "?a=2&a=1", false),
            ("?%61=1&a=2", "?a=2&%61=1", false),
            ("?b=1;a=2&a=3", "?a=3&b=1;a=2", false),
            ("?A=1&a=2", "?a=2&A=1", false),
            ("?a.b=1&a_b=2", "?a_b=2&a.b=1", false),
            ("?a[]=1&a=2", "?a=2&a[]=1", false),
        ];
        compare_all(&sorted, &pairs);
    }
}
