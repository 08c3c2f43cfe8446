//! `return` and `rewrite`: redirects and fixed answers.

use crate::facts::Facts;
use crate::model::Group;
use crate::rewrites;
use crate::scope::Scope;
use crate::syntax::Directive;
use crate::values::{is_plain, quoted};

/// The answer of a `return`; the error says why there is none. `pattern`: the expression of its location.
pub(crate) fn answer(
    facts: &Facts<'_>,
    scope: &Scope<'_>,
    path: &str,
    directive: &Directive,
    pattern: Option<(&str, bool)>,
) -> Result<Group, String> {
    let url = directive.words.last().map_or("", |url| url);
    if let Some((text, any_case)) = pattern.filter(|(text, _)| has_groups_of(url, text)) {
        let code = directive.word(0).parse().unwrap_or(302);
        if !matches!(code, 301 | 302 | 303 | 307 | 308) {
            return Err("fixed answers have no variables".to_owned());
        }
        return by_groups(facts, code, url, (text, any_case));
    }
    let (first, text) = (directive.word(0), directive.words.get(1));
    let Some(code) = first.parse::<u16>().ok().filter(|_| first.len() == 3) else {
        return redirect(facts, 302, first, None);
    };
    match (code, text) {
        (301 | 302 | 303 | 307 | 308, Some(url)) => redirect(facts, code, url, None),
        (444, _) => Ok(Group::status(403)),
        (200..=599, Some(text)) => fixed(scope, path, code, text),
        (200..=599, None) => Ok(Group::status(code)),
        _ => Err(format!("AFPA has no answer {code}")),
    }
}

fn fixed(scope: &Scope<'_>, path: &str, code: u16, text: &str) -> Result<Group, String> {
    if !is_plain(text) {
        return Err("fixed answers have no variables".to_owned());
    }
    let mut group = Group::status(code);
    if text.is_empty() || matches!(code, 204 | 205 | 304) {
        return Ok(group);
    }
    group.action.push(format!("body = {}", quoted(text)));
    group.action.push(format!("content_type = {}", quoted(&media_type(scope, path))));
    Ok(group)
}

/// The type of a fixed answer: by the extension of its path, else the default one.
fn media_type(scope: &Scope<'_>, path: &str) -> String {
    let extension = path.rsplit_once('.').map_or("", |(_, extension)| extension);
    let own = scope.all("add_header").into_iter().find(|header| {
        header.word(0).eq_ignore_ascii_case("content-type") && is_plain(header.word(1))
    });
    let default = match scope.value("default_type") {
        "" => "text/plain",
        default => default,
    };
    let known = match extension {
        "txt" => "text/plain",
        "html" | "htm" => "text/html",
        "json" => "application/json",
        "xml" => "text/xml",
        "css" => "text/css",
        "js" => "application/javascript",
        _ => default,
    };
    let media = own.map_or(known, |header| header.word(1));
    match scope.value("charset") {
        "" | "off" => media.to_owned(),
        charset if media.starts_with("text/") => format!("{media}; charset={charset}"),
        _ => media.to_owned(),
    }
}

/// Whether a URL has groups by their numbers.
fn has_groups(url: &str) -> bool {
    url.split('$')
        .skip(1)
        .any(|rest| rest.trim_start_matches('{').starts_with(|c: char| c.is_ascii_digit()))
}

/// Whether a URL has groups by their numbers, or by their names in an expression.
fn has_groups_of(url: &str, expression: &str) -> bool {
    let names = expression.split("(?<").chain(expression.split("(?P<")).skip(1);
    let mut names = names.filter_map(|rest| rest.split_once('>')).map(|(name, _)| name);
    has_groups(url)
        || names
            .any(|name| url.contains(&format!("${name}")) || url.contains(&format!("${{{name}}}")))
}

/// A redirect with groups of an expression, for the paths that it fits.
fn by_groups(
    facts: &Facts<'_>,
    code: u16,
    url: &str,
    (text, any_case): (&str, bool),
) -> Result<Group, String> {
    let known = "$is_args$args";
    let (start, query) = match url.strip_suffix(known) {
        Some(start) => (start, "{query}"),
        None => (url, ""),
    };
    let (origin, start) = origin(facts, start)?;
    let start = rewrites::with_groups(start, text)
        .ok_or("its URL has variables that AFPA has not (docs/rewrites.md)")?;
    // The braces are those of groups, and the origin is known to be one.
    let bare = start.replace(['{', '}'], "");
    let bare = if origin.is_empty() { bare } else { format!("http://host{bare}") };
    redirect(facts, code, &bare, None)?;
    let mut group = Group {
        conditions: vec![rewrites::condition(text, any_case)?],
        pattern: Some((text.to_owned(), any_case)),
        ..Group::default()
    };
    group.action.push(format!("redirect = {}", quoted(&format!("{origin}{start}{query}"))));
    if code != 308 {
        group.action.push(format!("redirect_status = \"{code}\""));
    }
    Ok(group)
}

/// Scheme and host of a URL with AFPA's variables, and the rest of the URL as it is.
fn origin<'u>(facts: &Facts<'_>, url: &'u str) -> Result<(String, &'u str), String> {
    let split = url.split_once("://").filter(|(scheme, _)| !scheme.contains('/'));
    let Some((scheme, behind)) = split else { return Ok((String::new(), url)) };
    let end = behind.find(['/', '?']).unwrap_or(behind.len());
    let (host, rest) = behind.split_at(end);
    if has_groups(host) {
        return Err("AFPA lets no client choose a host".to_owned());
    }
    target(facts, &format!("{scheme}://{host}"), None).map(|origin| (origin, rest))
}

/// A redirect; `rest` is what `$1` stands for.
pub(crate) fn redirect(
    facts: &Facts<'_>,
    code: u16,
    url: &str,
    rest: Option<&str>,
) -> Result<Group, String> {
    let target = target(facts, url, rest)?;
    let mut group = Group::default();
    group.action.push(format!("redirect = {}", quoted(&target)));
    if code != 308 {
        group.action.push(format!("redirect_status = \"{code}\""));
    }
    Ok(group)
}

/// A URL with AFPA's variables.
fn target(facts: &Facts<'_>, url: &str, rest: Option<&str>) -> Result<String, String> {
    if url.contains(['{', '}']) && !url.contains("${") {
        return Err("its URL has braces".to_owned());
    }
    let mut text = url.replace("${", "$").replace('}', "");
    let name = facts.name.as_deref().unwrap_or("{host}");
    let port = facts.port.map(|port| port.map(|port| format!(":{port}")).unwrap_or_default());
    if port.is_none() && ["$http_host", "$server_port"].iter().any(|one| text.contains(one)) {
        return Err("AFPA's {host} has no port, and this server has several".to_owned());
    }
    // The Host of a request has the port of its URL, unless it is that of the scheme.
    let authority = format!("{{host}}{}", port.as_deref().unwrap_or_default());
    if let Some(number) = port.as_deref().and_then(|port| port.strip_prefix(':')) {
        text = text.replace("$server_port", number);
    }
    let known = [
        ("$is_args$args", "{query}"),
        ("$is_args$query_string", "{query}"),
        ("?$args", "{query}"),
        ("?$query_string", "{query}"),
        ("$request_uri", "{path}{query}"),
        ("$uri", "{path}"),
        ("$document_uri", "{path}"),
        ("$http_host", &authority),
        ("$host", "{host}"),
        ("$server_name", name),
    ];
    for (variable, ours) in known {
        text = text.replace(variable, ours);
    }
    if let Some(scheme) = facts.scheme {
        text = text.replace("$scheme", scheme);
    }
    if let Some(rest) = rest {
        // `{path}` begins with the slash.
        let text_rest = if rest == "{path}" { text.replace("/$1", "$1") } else { text.clone() };
        text = text_rest.replace("$1", rest);
        if rest == "{rest}" && text.contains("{rest}") && !text.contains("/{rest}") {
            return Err("AFPA puts the rest of a path behind a slash only".to_owned());
        }
    }
    if text.contains('$') {
        return Err(
            "its URL has variables that AFPA has not, or groups (docs/rewrites.md)".to_owned()
        );
    }
    let starts = ["http://", "https://", "/", "{path}"];
    let printable = |byte: u8| (b'!'..=b'~').contains(&byte);
    if !starts.iter().any(|start| text.starts_with(start)) || !text.bytes().all(printable) {
        return Err("AFPA redirects to a URL, or to a path".to_owned());
    }
    Ok(text)
}

/// The paths that a `rewrite` is for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Matched {
    /// Every path; `$1` stands for all of it.
    All,
    /// Paths that begin so; `$1` stands for the rest.
    Below(String),
    /// This one.
    Exactly(String),
    /// Requests that a condition of the group chooses.
    Some,
}

/// The paths for a regular expression of the usual forms.
pub(crate) fn matched(expression: &str) -> Option<Matched> {
    let all = [
        "^", ".*", ".", "^.*$", "^(.*)$", "(.*)", "^(.*)", "^/(.*)$", "^/(.*)", "^.+$", "^(.+)$",
        "^",
    ];
    if all.contains(&expression) {
        return Some(Matched::All);
    }
    let inner = expression.strip_prefix('^')?;
    let ends = ["(.*)$", "(.*)", "(.+)$", ".*$", ".*"];
    if let Some(literal) = ends.iter().find_map(|end| inner.strip_suffix(end)) {
        return literal_path(literal).map(Matched::Below);
    }
    literal_path(inner.strip_suffix('$')?).map(Matched::Exactly)
}

/// The path that an expression without any choice stands for.
fn literal_path(text: &str) -> Option<String> {
    let (mut path, mut rest) = (String::new(), text.chars());
    while let Some(c) = rest.next() {
        match c {
            '\\' => path.push(rest.next().filter(char::is_ascii_punctuation)?),
            c if ".*+?()[]{}|^$%".contains(c) => return None,
            c => path.push(c),
        }
    }
    (path.starts_with('/') && !path.contains("//")).then_some(path)
}

/// The answer of a `rewrite` that redirects, and the paths that it is for.
pub(crate) fn rewrite(
    facts: &Facts<'_>,
    directive: &Directive,
) -> Result<(Matched, Group), String> {
    let (expression, new) = (directive.word(0), directive.word(1));
    let absolute = ["http://", "https://", "$scheme"].iter().any(|start| new.starts_with(start));
    let code = match directive.word(2) {
        "permanent" => 301,
        "redirect" => 302,
        _ if absolute => 302,
        _ => return Err("it stays inside".to_owned()),
    };
    let usual = matched(expression).filter(|matched| {
        !matches!(matched, Matched::Below(start) if !start.ends_with('/') && new.contains("$1"))
    });
    let Some(matched) = usual else {
        let url = match new.strip_suffix('?') {
            Some(bare) => bare.to_owned(),
            None if new.contains('?') => format!("{new}{{query}}"),
            None => format!("{new}$is_args$args"),
        };
        let query = if url.ends_with("{query}") { "{query}" } else { "" };
        let url = url.trim_end_matches("{query}");
        let mut group = by_groups(facts, code, url, (expression, false))?;
        for line in group.action.iter_mut().filter(|line| line.starts_with("redirect =")) {
            *line = format!("{}{query}\"", line.trim_end_matches('"'));
        }
        return Ok((Matched::Some, group));
    };
    // The arguments follow, unless the new URL ends with a question mark.
    let url = match new.strip_suffix('?') {
        Some(bare) => bare.to_owned(),
        None if new.contains('?') || new.contains("$request_uri") => {
            return Err("AFPA cannot put two queries together".to_owned());
        }
        None => format!("{new}$is_args$args"),
    };
    let rest = match &matched {
        Matched::All => "{path}",
        Matched::Below(_) => "{rest}",
        Matched::Exactly(_) | Matched::Some => "$1",
    };
    Ok((matched, redirect(facts, code, &url, Some(rest))?))
}
