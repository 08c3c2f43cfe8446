//! `if`: conditions that AFPA has as well.

use crate::facts::Facts;
use crate::model::Group;
use crate::scope::Scope;
use crate::syntax::Directive;
use crate::upstream::Context;
use crate::values::{expression, is_network, is_plain, quoted, table};
use crate::{names, redirects};

/// The subject of an `if`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Subject {
    /// Requests that meet these conditions.
    Lines(Vec<String>),
    /// Requests for this host.
    Host(String),
    /// Requests that came without TLS.
    Plain,
}

/// Takes the condition of an `if` apart.
pub(crate) fn subject(directive: &Directive) -> Result<Subject, String> {
    let text = directive.words.join(" ");
    let inner = text.trim().strip_prefix('(').and_then(|text| text.strip_suffix(')'));
    let inner = inner.map_or("", str::trim);
    let (variable, rest) = inner.split_once(' ').unwrap_or((inner, ""));
    let (operator, value) = rest.split_once(' ').unwrap_or((rest, ""));
    let value = value.trim();
    match (variable, operator, value) {
        ("$host" | "$http_host", "=", name) if is_plain(name) && !name.contains(':') => {
            Ok(Subject::Host(name.to_ascii_lowercase()))
        }
        ("$scheme", "=", "http")
        | ("$scheme", "!=", "https")
        | ("$https", "=", "" | "off")
        | ("$https", "!=", "on")
        | ("$server_port", "=", "80") => Ok(Subject::Plain),
        ("$request_method", "=", method) if method.chars().all(|c| c.is_ascii_uppercase()) => {
            // GET includes HEAD here.
            match method {
                "GET" => Err("AFPA's GET includes HEAD".to_owned()),
                method => Ok(Subject::Lines(vec![format!("if_methods = [{}]", quoted(method))])),
            }
        }
        ("$remote_addr", "=", client) if is_network(client) => {
            Ok(Subject::Lines(vec![format!("if_clients = [{}]", quoted(client))]))
        }
        ("$uri" | "$document_uri", "~" | "~*", value) => {
            let pattern = expression(value, operator == "~*")?;
            Ok(Subject::Lines(vec![format!("if_path = [{}]", quoted(&pattern))]))
        }
        (variable, operator, value) => valued(variable, operator, value).map(Subject::Lines),
    }
}

/// Conditions on a field, a parameter, or a cookie.
fn valued(variable: &str, operator: &str, value: &str) -> Result<Vec<String>, String> {
    let unknown = || "AFPA has no such condition".to_owned();
    let kinds = [("$http_", "if_headers"), ("$arg_", "if_query"), ("$cookie_", "if_cookies")];
    let found = kinds.iter().find_map(|(start, key)| Some((variable.strip_prefix(start)?, *key)));
    let (name, key) = found.filter(|(name, _)| !name.is_empty()).ok_or_else(unknown)?;
    let pattern = match operator {
        // Empty, and "0", are false.
        "" => "~^(?:[^0]|0.)".to_owned(),
        "~" => expression(value, false)?,
        "~*" => expression(value, true)?,
        "=" if is_plain(value)
            && !value.is_empty()
            && !value.contains('*')
            && !value.starts_with('~') =>
        {
            value.to_owned()
        }
        _ => return Err(unknown()),
    };
    let name = if key == "if_headers" { name.replace('_', "-") } else { name.to_owned() };
    Ok(vec![format!("{key} = {}", table(&[(name, pattern)]))])
}

/// The answer of the block of an `if`, if it gives one.
pub(crate) fn answer(
    facts: &Facts<'_>,
    scope: &Scope<'_>,
    path: &str,
    directive: &Directive,
) -> Result<Group, String> {
    let [only] = directive.children() else {
        return Err("AFPA keeps an `if` with one `return` or `rewrite`".to_owned());
    };
    match &*only.name {
        "return" => redirects::answer(facts, scope, path, only),
        "rewrite" => match redirects::rewrite(facts, only)? {
            (redirects::Matched::All, group) => Ok(group),
            _ => Err("AFPA keeps an `if` with a `rewrite` of all paths".to_owned()),
        },
        _ => Err("AFPA keeps an `if` with one `return` or `rewrite`".to_owned()),
    }
}

/// Notes that an `if` is not kept; whether somebody is refused by it, so that the place must refuse everybody.
pub(crate) fn give_up(context: &Context<'_>, directive: &Directive, why: &str) -> bool {
    let refuses = |inner: &Directive| match &*inner.name {
        "return" => inner.word(0).parse::<u16>().is_ok_and(|code| code >= 400),
        "deny" => true,
        name => names::guards(name),
    };
    let is_guard = directive.children().iter().any(refuses);
    match is_guard {
        true => context.ledger.refused(
            directive,
            format!("{why}; it keeps somebody out, so that this place refuses everybody"),
        ),
        false => context.ledger.left(directive, why),
    }
    for inner in directive.children() {
        context.ledger.left(inner, "the `if` around it is left out");
    }
    is_guard
}
