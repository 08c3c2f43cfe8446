//! Texts with variables: Locations of redirects, and targets that take the place of those of requests.
//!
//! A client writes most of the text that a variable stands for. Three things keep it in its place: no variable stands where
//! a scheme or host may be read ([`misuses`]); in a path it keeps the escapes that every reserved character has there, and
//! behind the path it is escaped as the value of a parameter ([`expand`]); and the callers look at slashes and dots.

use std::ops::Range;

use afpa_http::target;
use regex::bytes::Captures;

use crate::conditions::{Conditions, FieldCondition, FieldSource};
use crate::expression::Expression;
use crate::pattern::Pattern;
use crate::query;

/// A part of a text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Piece<'t> {
    Text(&'t str),
    Host,
    Path,
    Rest,
    Query,
    /// A group of the condition on the path, by its number.
    Group(usize),
    /// A group by its name.
    Named(&'t str),
    /// Anything else in braces.
    Unknown,
}

/// The variables that are no groups.
const OWN: [&str; 4] = ["host", "path", "rest", "query"];

/// Splits a text into its parts, each with its own text.
fn pieces(mut text: &str) -> impl Iterator<Item = (Piece<'_>, &str)> {
    std::iter::from_fn(move || {
        if text.is_empty() {
            return None;
        }
        let open = text.find('{').unwrap_or(text.len());
        if open > 0 {
            let (plain, rest) = text.split_at(open);
            text = rest;
            return Some((Piece::Text(plain), plain));
        }
        let end = text.find('}').map_or(text.len(), |close| close + 1);
        let (variable, rest) = text.split_at(end);
        text = rest;
        Some((Piece::of(variable), variable))
    })
}

impl<'t> Piece<'t> {
    fn of(variable: &'t str) -> Self {
        let name = variable.strip_prefix('{').and_then(|name| name.strip_suffix('}'));
        match name.unwrap_or_default() {
            "host" => Piece::Host,
            "path" => Piece::Path,
            "rest" => Piece::Rest,
            "query" => Piece::Query,
            name => match name.as_bytes() {
                [digit @ b'1'..=b'9'] => Piece::Group(usize::from(digit - b'0')),
                [b'a'..=b'z' | b'A'..=b'Z' | b'_', ..] => Piece::Named(name),
                _ => Piece::Unknown,
            },
        }
    }
}

/// The parts of a request that variables stand for.
pub(crate) struct Asked<'a> {
    pub(crate) host: &'a str,
    /// Normalised.
    pub(crate) path: &'a [u8],
    /// The same path as [`target::spell`] gives it.
    pub(crate) spelled: &'a [u8],
    pub(crate) query: Option<&'a [u8]>,
    /// Bytes of the prefix of the request set.
    pub(crate) prefix_len: usize,
    /// Its conditions, which hold.
    pub(crate) conditions: &'a Conditions,
}

/// The groups of an expression in a path.
struct Groups<'a> {
    expression: &'a Expression,
    found: Captures<'a>,
}

/// A text with the parts of a request in it.
pub(crate) fn expand(text: &str, asked: &Asked<'_>) -> Vec<u8> {
    let wants_groups = |piece| matches!(piece, Piece::Group(_) | Piece::Named(_));
    let groups = pieces(text).any(|(piece, _)| wants_groups(piece)).then(|| asked.groups());
    let groups = groups.flatten();
    let mut out = Vec::with_capacity(text.len() + asked.path.len() + 16);
    for (piece, own) in pieces(text) {
        match piece {
            Piece::Text(_) | Piece::Unknown => out.extend_from_slice(own.as_bytes()),
            Piece::Host => out.extend_from_slice(asked.host.as_bytes()),
            Piece::Path => asked.put_part(0..asked.path.len(), &mut out),
            Piece::Rest => asked.put_part(asked.prefix_len..asked.path.len(), &mut out),
            Piece::Query => put_query(asked.query, &mut out),
            Piece::Group(number) => {
                let found = groups.as_ref().and_then(|groups| groups.found.get(number));
                asked.put_part(found.map(|found| found.range()).unwrap_or_default(), &mut out);
            }
            Piece::Named(name) => match groups.as_ref().filter(|own| own.expression.names(name)) {
                Some(groups) => {
                    let range = groups.found.name(name).map(|found| found.range());
                    asked.put_part(range.unwrap_or_default(), &mut out);
                }
                None => asked.put_parameter(name, &mut out),
            },
        }
    }
    out
}

impl<'a> Asked<'a> {
    /// The groups of the first pattern that the path fits, if that is an expression.
    fn groups(&self) -> Option<Groups<'a>> {
        let first = self.conditions.paths.iter().find(|pattern| pattern.fits(self.path))?;
        let Pattern::Expression(expression) = first else { return None };
        Some(Groups { expression, found: expression.captures(self.path)? })
    }

    /// Appends a part of the path: in a path as it is spelled, behind it as a value.
    fn put_part(&self, part: Range<usize>, out: &mut Vec<u8>) {
        if is_behind_path(out) {
            let part = self.path.get(part).unwrap_or_default();
            for (at, text) in part.split(|byte| *byte == target::ESCAPED_SLASH).enumerate() {
                if at > 0 {
                    target::escape(b'/', out);
                }
                put_value(text, true, out);
            }
            return;
        }
        let from = target::behind(self.spelled, part.start);
        let length = from.len() - target::behind(from, part.len()).len();
        out.extend_from_slice(from.get(..length).unwrap_or_default());
    }

    /// Appends the text of a named group in a parameter. In a path it is a part of one segment.
    fn put_parameter(&self, name: &str, out: &mut Vec<u8>) {
        let Some((parameter, expression)) = with_group(self.conditions, name).next() else {
            return;
        };
        let is_value = is_behind_path(out);
        query::any(self.query.unwrap_or_default(), parameter.name.as_bytes(), |value| {
            let found = expression.captures(value);
            if let Some(part) = found.as_ref().and_then(|found| found.name(name)) {
                put_value(part.as_bytes(), is_value, out);
            }
            found.is_some()
        });
    }
}

/// The conditions on the query with a group of this name.
fn with_group<'c>(
    conditions: &'c Conditions,
    name: &str,
) -> impl Iterator<Item = (&'c FieldCondition, &'c Expression)> {
    conditions.fields.iter().filter_map(move |condition| match &condition.value {
        Pattern::Expression(expression)
            if condition.source == FieldSource::Query && expression.names(name) =>
        {
            Some((condition, expression))
        }
        _ => None,
    })
}

/// Whether the path of a URL has ended.
fn is_behind_path(url: &[u8]) -> bool {
    memchr::memchr2(b'?', b'#', url).is_some()
}

/// Appends a text so that it is the same text in a path, a query or a fragment, and ends none of them.
fn put_value(text: &[u8], keeps_slash: bool, out: &mut Vec<u8>) {
    for &byte in text {
        match byte {
            b'-' | b'.' | b'_' | b'~' => out.push(byte),
            b'/' if keeps_slash => out.push(byte),
            _ if byte.is_ascii_alphanumeric() => out.push(byte),
            _ => target::escape(byte, out),
        }
    }
}

/// Appends a query with its question mark, or behind another query with `&`. Bytes are escaped that the parser of requests
/// lets pass but a field value must not contain.
pub(crate) fn put_query(query: Option<&[u8]>, out: &mut Vec<u8>) {
    let Some(query) = query else { return };
    match out.contains(&b'?') {
        false => out.push(b'?'),
        true if query.is_empty() || matches!(out.last(), Some(b'?' | b'&')) => {}
        true => out.push(b'&'),
    }
    target::encode_query(query, out);
}

/// Why a variable cannot be used.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Misuse {
    /// It stands for nothing.
    Unknown,
    /// Not every pattern for the path has this group, and no condition on the query.
    NoGroup,
    /// A group has the name of another variable.
    TwoMeanings,
    /// It stands where it would continue the name of a host.
    Host,
}

/// The variables of a text that cannot be used. `is_location`: it is the Location of a redirect, else a target.
pub(crate) fn misuses(
    text: &str,
    is_location: bool,
    conditions: &Conditions,
) -> Vec<(String, Misuse)> {
    let (mut before, mut found) = (String::new(), Vec::new());
    for (piece, own) in pieces(text) {
        let why = match piece {
            Piece::Text(_) => None,
            Piece::Host if is_location => None,
            Piece::Host | Piece::Unknown => Some(Misuse::Unknown),
            Piece::Group(_) | Piece::Named(_) if is_location && before.is_empty() => {
                Some(Misuse::Host)
            }
            Piece::Path if is_location && authority(&before) == Some("") => Some(Misuse::Host),
            Piece::Path | Piece::Query => None,
            Piece::Rest | Piece::Group(_) | Piece::Named(_)
                if is_location && authority(&before).is_some() =>
            {
                Some(Misuse::Host)
            }
            Piece::Rest => None,
            Piece::Group(number) => lacks_group(conditions, number),
            Piece::Named(name) => lacks_name(conditions, name),
        };
        let name = own.trim_matches(['{', '}']);
        let two = OWN.contains(&name) && has_name(conditions, name);
        let why = why.or(two.then_some(Misuse::TwoMeanings));
        found.extend(why.map(|why| (own.to_owned(), why)));
        before.push_str(match piece {
            Piece::Path => "/",
            // A request without a query ends no host by it.
            Piece::Query => "",
            _ => own,
        });
    }
    found
}

/// The authority at the end of a URL that has not come to its path: browsers take a backslash for a slash, and more than two
/// slashes for two.
fn authority(url: &str) -> Option<&str> {
    let is_slash = |letter| matches!(letter, '/' | '\\');
    let begin = url.find(is_slash)?;
    let (scheme, behind) = url.split_at(begin);
    let rest = behind.trim_start_matches(is_slash);
    let least = if scheme.ends_with(':') { 1 } else { 2 };
    let is_host = behind.len() - rest.len() >= least && !scheme.contains(['?', '#']);
    (is_host && !rest.contains(['/', '\\', '?', '#'])).then_some(rest)
}

fn lacks_group(conditions: &Conditions, number: usize) -> Option<Misuse> {
    let has = |pattern: &Pattern| match pattern {
        Pattern::Expression(expression) => expression.groups() >= number,
        _ => false,
    };
    let paths = &conditions.paths;
    (paths.is_empty() || !paths.iter().all(has)).then_some(Misuse::NoGroup)
}

fn lacks_name(conditions: &Conditions, name: &str) -> Option<Misuse> {
    let paths = &conditions.paths;
    let in_all = !paths.is_empty() && paths.iter().all(|pattern| names(pattern, name));
    match in_all || with_group(conditions, name).next().is_some() {
        true => None,
        false if has_name(conditions, name) => Some(Misuse::NoGroup),
        false => Some(Misuse::Unknown),
    }
}

fn has_name(conditions: &Conditions, name: &str) -> bool {
    conditions.paths.iter().any(|pattern| names(pattern, name))
        || with_group(conditions, name).next().is_some()
}

fn names(pattern: &Pattern, name: &str) -> bool {
    matches!(pattern, Pattern::Expression(expression) if expression.names(name))
}

/// Whether a text gives targets: a path that can be normalised and has no segments of dots, and perhaps a query.
pub(crate) fn is_target(text: &str) -> bool {
    let mut sample = String::new();
    for (piece, own) in pieces(text) {
        sample.push_str(match piece {
            Piece::Text(_) => own,
            Piece::Path => "/x",
            Piece::Query => "",
            _ => "x",
        });
    }
    let path = sample.split('?').next().unwrap_or_default();
    let dots = |segment: &str| matches!(segment, "." | "..");
    let fits = |byte: u8| byte.is_ascii_graphic() && !b"\"#<>".contains(&byte);
    sample.bytes().all(fits)
        && target::normalise(path.as_bytes(), &mut Vec::new()).is_ok()
        && !path.split('/').any(dots)
        && !path.to_ascii_lowercase().contains("%2e")
}

#[cfg(test)]
mod tests;
