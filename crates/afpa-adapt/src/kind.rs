//! The words of a location, and its regular expression as far as it can be understood.

use crate::scope::Scope;
use crate::syntax::Directive;

/// The requests that a location is for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Kind<'d> {
    Exact(&'d str),
    /// With `^~` no regular expression is tried.
    Prefix(&'d str, bool),
    /// With `~*` the case does not matter.
    Regex(&'d str, bool),
    Named,
}

/// Reads the words of a location.
pub(crate) fn kind(location: &Directive) -> Kind<'_> {
    let (first, second) = (location.word(0), location.word(1));
    match first {
        "=" => Kind::Exact(second),
        "^~" => Kind::Prefix(second, true),
        "~" => Kind::Regex(second, false),
        "~*" => Kind::Regex(second, true),
        glued => {
            if let Some(path) = glued.strip_prefix("^~") {
                Kind::Prefix(path, true)
            } else if let Some(path) = glued.strip_prefix("~*") {
                Kind::Regex(path, true)
            } else if let Some(path) = glued.strip_prefix('~') {
                Kind::Regex(path, false)
            } else if let Some(path) = glued.strip_prefix('=') {
                Kind::Exact(path)
            } else if glued.starts_with('@') {
                Kind::Named
            } else {
                Kind::Prefix(glued, false)
            }
        }
    }
}

/// The location that nginx finds for a path, with its scope.
pub(crate) fn located<'d>(server: &Scope<'d>, uri: &str) -> Option<(&'d Directive, Scope<'d>)> {
    find(server, uri).0
}

/// The same for a block, and whether no expression of a block around it is tried any more: the longest prefix is looked
/// into before the expressions beside it are tried.
fn find<'d>(scope: &Scope<'d>, uri: &str) -> (Option<(&'d Directive, Scope<'d>)>, bool) {
    let locations = || scope.here().iter().filter(|one| one.is("location"));
    let within = |one: &'d Directive| (one, scope.within(one.children()));
    if let Some(exact) = locations().find(|one| kind(one) == Kind::Exact(uri)) {
        return (Some(within(exact)), true);
    }
    let length = |one: &&Directive| match kind(one) {
        Kind::Prefix(path, _) if uri.starts_with(path) => Some(path.len()),
        _ => None,
    };
    let longest = locations().filter(|one| length(one).is_some()).max_by_key(length);
    let mut found = longest.map(within);
    if let Some((_, inner)) = &found {
        let (nested, is_last) = find(inner, uri);
        found = nested.or(found);
        if is_last {
            return (found, true);
        }
    }
    if longest.is_some_and(|one| matches!(kind(one), Kind::Prefix(_, true))) {
        return (found, false);
    }
    let fits = |one: &&Directive| match kind(one) {
        Kind::Regex(text, any_case) => matches(text, any_case, uri),
        _ => false,
    };
    match locations().find(fits).map(within) {
        Some((regex, inner)) => (find(&inner, uri).0.or(Some((regex, inner))), true),
        None => (found, false),
    }
}

/// Whether an expression that AFPA has, too, matches a path.
pub(crate) fn matches(text: &str, any_case: bool, path: &str) -> bool {
    // As AFPA builds them.
    let mut builder = regex::bytes::RegexBuilder::new(text);
    builder.unicode(false).case_insensitive(any_case).size_limit(200 << 10);
    builder.build().is_ok_and(|expression| expression.is_match(path.as_bytes()))
}

/// The extensions of `\.(css|js)$`.
pub(crate) fn extensions(text: &str) -> Option<Vec<String>> {
    let text = text.strip_prefix("^.+").or(text.strip_prefix(".*")).unwrap_or(text);
    let inner = text.strip_prefix("\\.")?.strip_suffix('$')?;
    let inner = match inner.strip_prefix("(?:").or(inner.strip_prefix('(')) {
        Some(list) => list.strip_suffix(')')?,
        None => inner,
    };
    let mut found = Vec::new();
    for one in inner.split('|') {
        // `jpe?g` stands for two.
        let both = match one.split_once('?') {
            Some((before, after)) if !before.is_empty() => {
                let mut short = before.to_owned();
                short.pop();
                vec![format!("{before}{after}"), short + after]
            }
            _ => vec![one.to_owned()],
        };
        found.extend(both);
    }
    let fits =
        |one: &String| !one.is_empty() && one.bytes().all(|byte| byte.is_ascii_alphanumeric());
    found.iter().all(fits).then(|| {
        let mut found: Vec<String> = found.iter().map(|one| one.to_ascii_lowercase()).collect();
        found.sort();
        found.dedup();
        found
    })
}

/// Whether an expression is about names that begin with a dot.
pub(crate) fn is_hidden(text: &str) -> bool {
    text.starts_with("/\\.") || text.starts_with("(^|/)\\.") || text.starts_with("^/\\.")
}

/// Without what looks ahead or behind, so that it is for more.
pub(crate) fn without_looks(text: &str) -> String {
    let mut text = text.to_owned();
    while let Some(begin) = ["(?!", "(?=", "(?<!", "(?<="].iter().find_map(|look| text.find(look)) {
        let (mut depth, mut end) = (0, text.len());
        for (at, c) in text.char_indices().skip_while(|(at, _)| *at < begin) {
            depth += i32::from(c == '(') - i32::from(c == ')');
            if depth == 0 {
                end = at + 1;
                break;
            }
        }
        text.replace_range(begin..end, "");
    }
    text
}

/// Whether an expression can match a path that begins so.
pub(crate) fn may_match(text: &str, prefix: &str) -> bool {
    let prefix = prefix.to_ascii_lowercase();
    let Some(beginnings) = beginnings(text) else { return true };
    beginnings.iter().any(|literal| literal.starts_with(&prefix) || prefix.starts_with(literal))
}

/// The texts with which all that an expression matches begins, in lower case; `None`: that is not known.
fn beginnings(text: &str) -> Option<Vec<String>> {
    let inner = text.strip_prefix('^')?;
    let mut depth = 0;
    for c in inner.chars() {
        depth += i32::from(c == '(') - i32::from(c == ')');
        if c == '|' && depth == 0 {
            return None;
        }
    }
    let fits = |c: char| c.is_ascii_alphanumeric() || "/_-".contains(c);
    let end = inner.find(|c: char| !fits(c)).unwrap_or(inner.len());
    let (literal, rest) = inner.split_at(end);
    // The letter before a quantifier may be missing.
    if rest.starts_with(['?', '*', '{']) {
        let shorter = literal.get(..literal.len().saturating_sub(1)).unwrap_or_default();
        return Some(vec![shorter.to_ascii_lowercase()]);
    }
    let list = rest.strip_prefix("(?:").or_else(|| rest.strip_prefix('('));
    let closed = list.and_then(|list| list.split_once(')'));
    if let Some((list, behind)) = closed
        && !behind.starts_with(['?', '*', '{'])
        && list.chars().all(|c| fits(c) || c == '|')
    {
        let each = list.split('|').map(|one| format!("{literal}{one}").to_ascii_lowercase());
        return Some(each.collect());
    }
    Some(vec![literal.to_ascii_lowercase()])
}
