//! Prefixes, patterns and values that are valid, and mean something else than they seem to.

use crate::finding::Finding;
use crate::foreign;
use crate::header_checks::levels;
use crate::model::Config;
use crate::settings::{Section, Settings};
use crate::site_settings::{Behaviour, SiteSettings};

/// Warns of escapes and queries where paths have none, and of stars that are no wildcards.
pub(crate) fn warnings(config: &Config, settings: &Settings) -> Vec<Finding> {
    let mut found = Vec::new();
    for (section, text) in config.sites.iter().flat_map(prefixes) {
        found.extend(prefix(settings, section, &text));
    }
    found.extend(config.sites.iter().flat_map(|site| values(settings, site)));
    for path in config.sites.iter().flat_map(|site| &site.paths) {
        let own = ("site.path", path.instance);
        found.extend(conditions(settings, own, &path.behaviour));
        for content in &path.contents {
            let own = ("site.path.content", content.instance);
            found.extend(conditions(settings, own, &content.behaviour));
        }
    }
    found
}

/// Every `prefix` of a site.
fn prefixes(site: &SiteSettings) -> impl Iterator<Item = (Section, String)> {
    let paths = site.paths.iter().map(|path| (("site.path", path.instance), path.prefix.clone()));
    let headers = levels(site).into_iter().flat_map(|(fields, _, _)| &fields.headers);
    let headers = headers.map(|header| {
        let prefix = String::from_utf8_lossy(&header.rule.prefix).into_owned();
        ((header.section, header.instance), prefix)
    });
    let filters = site.filters.iter();
    let filters = filters.map(|own| (("site.filter", own.instance), own.change.prefix.clone()));
    let hints = site.hints.iter();
    let hints = hints.map(|own| (("site.hint", own.instance), own.hint.prefix.clone()));
    paths.chain(headers).chain(filters).chain(hints)
}

fn prefix(settings: &Settings, (section, instance): Section, text: &str) -> Option<Finding> {
    let (cause, remedy) = in_path(text).or_else(|| wildcard(text))?;
    Some(Finding::warning(settings.location_in(section, instance, "prefix"), cause, remedy))
}

/// Variables of nginx and Caddy in fields, which would be sent as they stand.
fn values(settings: &Settings, site: &SiteSettings) -> Vec<Finding> {
    let headers = levels(site).into_iter().flat_map(|(fields, _, _)| &fields.headers);
    let changes = headers.flat_map(|header| {
        let (answer, request) = (&header.rule.answer, &header.rule.request);
        let own = (header.section, header.instance);
        [
            (own, "set", &answer.set),
            (own, "add", &answer.add),
            (own, "request_set", &request.set),
            (own, "request_add", &request.add),
        ]
    });
    let plain = [(("site", site.instance), "headers", &site.headers)];
    let found = plain.into_iter().chain(changes).filter_map(|((section, instance), key, pairs)| {
        let variable = pairs.iter().find_map(|(_, value)| foreign::variable(value))?;
        let cause = format!("`{key}` has {variable}, which is sent as it stands");
        let remedy = match key {
            "request_set" | "request_add" => {
                "fields have no variables: servers have X-Forwarded-For, X-Forwarded-Proto and X-Forwarded-Host, and the address \
                 of the client in the field that `client_address` under [server_group.request] names"
            }
            _ => "fields have no variables: write a text that is the same for each request",
        };
        Some(Finding::warning(settings.location_in(section, instance, key), cause, remedy))
    });
    found.collect()
}

/// `/api/*`, as Caddy has it: a prefix needs no star.
fn wildcard(prefix: &str) -> Option<(String, String)> {
    let (before, behind) = prefix.split_once('*')?;
    let cause = format!("a star within the prefix \"{prefix}\" stands for itself");
    let remedy = match behind.trim_end_matches('*') {
        "" => format!("write \"{before}\": a prefix has all paths that begin with it"),
        _ => format!("write \"{before}\", and the rest as a pattern of `if_path`"),
    };
    Some((cause, remedy))
}

fn conditions(
    settings: &Settings,
    (section, instance): Section,
    behaviour: &Behaviour,
) -> Vec<Finding> {
    let mut found = Vec::new();
    let mut tell = |key, told: Option<(String, String)>| {
        let location = settings.location_in(section, instance, key);
        found.extend(told.map(|(cause, remedy)| Finding::warning(location, cause, remedy)));
    };
    for text in behaviour.if_path.iter().filter(|text| !is_expression(text)) {
        tell("if_path", in_path(text).or_else(|| star(text)));
    }
    for (name, value) in &behaviour.if_query {
        let mut texts = vec![name.as_str()];
        texts.extend((!is_expression(value)).then_some(value.as_str()));
        let told = texts.into_iter().find_map(|text| escape(text, "parameters"));
        tell("if_query", told.or_else(|| star(value)));
    }
    for (key, pairs) in
        [("if_headers", &behaviour.if_headers), ("if_cookies", &behaviour.if_cookies)]
    {
        for (_, value) in pairs {
            tell(key, star(value));
        }
    }
    tell("if_client_subject", behaviour.if_client_subject.as_deref().and_then(star));
    found
}

fn is_expression(pattern: &str) -> bool {
    pattern.starts_with('~')
}

fn in_path(text: &str) -> Option<(String, String)> {
    let query = || {
        let cause = format!("\"{text}\" has a question mark, but the query is no part of the path");
        let remedy = "write what stands behind it as a condition: if_query = { page = \"2\" }";
        text.contains('?').then(|| (cause, remedy.to_owned()))
    };
    escape(text, "paths").or_else(query)
}

/// `%20` in a text that is compared with what has lost its escapes.
fn escape(text: &str, what: &str) -> Option<(String, String)> {
    let plain = unescaped(text)?;
    let cause = format!("{what} are compared without their escapes, and \"{text}\" has one");
    let is_shown = std::str::from_utf8(&plain).ok().filter(|plain| {
        !plain.contains(char::is_control) && plain.matches('/').count() == text.matches('/').count()
    });
    let remedy = match is_shown {
        Some(plain) => format!("write \"{plain}\""),
        None => "write an expression for the bytes, in which %2F is \\x00: '~^/a\\x00b'".to_owned(),
    };
    Some((cause, remedy))
}

/// Whether a text has an escape of URLs.
pub(crate) fn has_escape(text: &str) -> bool {
    unescaped(text).is_some()
}

/// The bytes of a text without escapes, if it has any.
fn unescaped(text: &str) -> Option<Vec<u8>> {
    let mut parts = text.split('%');
    let mut plain = parts.next()?.as_bytes().to_vec();
    let mut found = false;
    for part in parts {
        let digits = part.get(..2).filter(|two| two.bytes().all(|byte| byte.is_ascii_hexdigit()));
        match digits.and_then(|two| u8::from_str_radix(two, 16).ok()) {
            Some(byte) => {
                found = true;
                plain.push(byte);
                plain.extend_from_slice(part.get(2..).unwrap_or_default().as_bytes());
            }
            None => plain.extend_from_slice(format!("%{part}").as_bytes()),
        }
    }
    found.then_some(plain)
}

/// A star that stands for itself, because it is not at an end.
fn star(pattern: &str) -> Option<(String, String)> {
    if is_expression(pattern) {
        return None;
    }
    let begin = pattern.strip_prefix('*').unwrap_or(pattern);
    let inner = begin.strip_suffix('*').unwrap_or(begin);
    if !inner.contains('*') {
        return None;
    }
    let cause = format!("a star within \"{pattern}\" stands for itself");
    let mut expression = String::from("~");
    expression.push_str(if pattern.starts_with('*') { "" } else { "^" });
    for letter in inner.chars() {
        match letter {
            '*' => expression.push_str(".*"),
            _ if letter.is_alphanumeric() || "/-_=,;: ".contains(letter) => expression.push(letter),
            _ => expression.extend(['\\', letter]),
        }
    }
    expression.push_str(if pattern.ends_with('*') { "" } else { "$" });
    Some((cause, format!("write '{expression}'")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stars_within_a_pattern_are_told_with_the_expression_that_was_meant() {
        for (pattern, expression) in [
            ("/a*b", "~^/a.*b$"),
            ("*/a*b.c", "~/a.*b\\.c$"),
            ("/a*b*", "~^/a.*b"),
            ("***", "~.*"),
            ("A (*; x) b", "~^A \\(.*; x\\) b$"),
        ] {
            let told = star(pattern).map(|(_, remedy)| remedy);
            assert_eq!(told, Some(format!("write '{expression}'")), "{pattern}");
        }
        for pattern in ["*", "**", "", "/a*", "*a", "*a*", "~a*b"] {
            assert_eq!(star(pattern), None, "{pattern}");
        }
    }

    #[test]
    fn escapes_and_queries_in_paths_are_told() {
        let remedy = |text| in_path(text).map(|(_, remedy)| remedy);
        assert_eq!(remedy("/a%20b/").as_deref(), Some("write \"/a b/\""));
        assert_eq!(remedy("/%C3%BC%").as_deref(), Some("write \"/ü%\""));
        for text in ["/a%2Fb", "/a%00", "/%ff"] {
            assert!(remedy(text).is_some_and(|remedy| remedy.contains("\\x00")), "{text}");
        }
        assert!(remedy("/a?b=1").is_some_and(|remedy| remedy.contains("if_query")));
        for text in ["/a b/", "/100%", "/%zz", "/a%2", "/%ü0"] {
            assert_eq!(remedy(text), None, "{text}");
        }
        let remedy = |text| wildcard(text).map(|(_, remedy)| remedy);
        for text in ["/api/*", "/api/**"] {
            assert!(
                remedy(text).is_some_and(|remedy| remedy.contains("write \"/api/\": ")),
                "{text}"
            );
        }
        assert!(remedy("/u/*/x/").is_some_and(|remedy| remedy.contains("if_path")));
        assert_eq!(remedy("/api/"), None);
    }
}
