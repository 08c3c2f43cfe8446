//! `if`: conditions that AFPA has as well.

use crate::facts::Facts;
use crate::model::Group;
use crate::scope::Scope;
use crate::syntax::Directive;
use crate::upstream::Context;
use crate::values::{expression, is_network, is_plain, quoted, table};
use crate::{headers, names, php, redirects};

/// The subject of an `if`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Subject {
    /// Requests that meet these conditions.
    Lines(Vec<String>),
    /// Requests with other methods than these.
    AllBut(Vec<String>),
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
        ("$request_method", "!~", list) => Ok(Subject::AllBut(methods(list)?)),
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

/// The methods of `^(GET|HEAD|POST)$`.
fn methods(expression: &str) -> Result<Vec<String>, String> {
    let list = expression.strip_prefix("^(").and_then(|list| list.strip_suffix(")$"));
    let list = list.map(|list| list.strip_prefix("?:").unwrap_or(list));
    let names: Vec<String> = list.unwrap_or_default().split('|').map(str::to_owned).collect();
    let fits = |name: &String| !name.is_empty() && name.bytes().all(|b| b.is_ascii_uppercase());
    let has = |name: &str| names.iter().any(|one| one == name);
    match names.iter().all(fits) && has("GET") && has("HEAD") {
        true => Ok(names),
        false => Err("AFPA keeps a list of methods with GET and HEAD".to_owned()),
    }
}

/// Conditions on a field, a parameter, or a cookie.
fn valued(variable: &str, operator: &str, value: &str) -> Result<Vec<String>, String> {
    let unknown = || "AFPA has no such condition".to_owned();
    let kinds = [("$http_", "if_headers"), ("$arg_", "if_query"), ("$cookie_", "if_cookies")];
    let found = kinds.iter().find_map(|(start, key)| Some((variable.strip_prefix(start)?, *key)));
    let (name, key) = found.filter(|(name, _)| !name.is_empty()).ok_or_else(unknown)?;
    // nginx compares `%2e` and `+` as they are sent, AFPA what they stand for: it would never find them.
    if key == "if_query" && value.contains(['%', '+']) && !operator.is_empty() {
        return Err("AFPA compares parameters without their escapes".to_owned());
    }
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

/// Notes how AFPA finds parameters and cookies, where conditions are about some.
pub(crate) fn note_names(context: &Context<'_>, directive: &Directive, lines: &[String]) {
    if lines.iter().any(|line| line.starts_with("if_query") || line.starts_with("if_cookies")) {
        let how =
            "AFPA finds the name in its own case alone, nginx in any, and of several the first";
        context.ledger.differs(directive, how);
    }
}

/// The answer of the block of an `if`, if it gives one.
pub(crate) fn answer(
    context: &Context<'_>,
    facts: &Facts<'_>,
    (scope, path): (&Scope<'_>, &str),
    directive: &Directive,
) -> Result<Group, String> {
    let acting: Vec<&Directive> =
        directive.children().iter().filter(|inner| changes(&inner.name)).collect();
    let [only] = acting[..] else {
        return Err("AFPA keeps an `if` with one `return` or `rewrite`".to_owned());
    };
    let scope = scope.within(directive.children());
    let group = match &*only.name {
        "return" => redirects::answer(facts, &scope, path, only, None),
        "rewrite" => match redirects::rewrite(facts, only)? {
            (redirects::Matched::All, group) => Ok(group),
            _ => Err("AFPA keeps an `if` with a `rewrite` of all paths".to_owned()),
        },
        _ => Err("AFPA keeps an `if` with one `return` or `rewrite`".to_owned()),
    }?;
    let has_own = directive.children().len() > 1;
    let headers = if has_own { headers::answers(context, &scope) } else { Vec::new() };
    Ok(Group { headers, ..group })
}

/// Directives that leave the answer as it is, but for its fields, its speed and the log.
const HARMLESS: &[&str] = &[
    "access_log",
    "add_header",
    "add_trailer",
    "charset",
    "default_type",
    "error_log",
    "expires",
    "gzip",
    "limit_rate",
    "limit_rate_after",
    "log_not_found",
    "more_clear_headers",
    "more_set_headers",
    "rewrite_log",
    "set",
    "uninitialized_variable_warn",
];

/// Whether a directive in an `if` may change the answer.
fn changes(name: &str) -> bool {
    !HARMLESS.contains(&name) && !names::decided(name)
}

/// Whether an `if` of a location may keep somebody out.
pub(crate) fn may_guard(location: &Directive, directive: &Directive) -> bool {
    let by_agent = directive.word(0).trim_start_matches('(') == "$http_user_agent";
    directive.children().iter().any(|inner| changes(&inner.name))
        && !by_agent
        && !php::is_look_for_script(location, directive)
}

/// Notes that an `if` is not kept; whether it may change an answer, so that its place must refuse everybody.
pub(crate) fn give_up(context: &Context<'_>, directive: &Directive, why: &str) -> bool {
    let acts = directive.children().iter().any(|inner| changes(&inner.name));
    match acts {
        true => context.ledger.refused(
            directive,
            format!("{why}; it may keep somebody out, so that this place refuses everybody"),
        ),
        false => context.ledger.left(directive, why),
    }
    for inner in directive.children() {
        context.ledger.left(inner, "the `if` around it is left out");
    }
    acts
}
