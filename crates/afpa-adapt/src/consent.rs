//! `auth_request`: a server that says who may.

use crate::kind::{Kind, kind, located};
use crate::learnt::{asked, copied};
use crate::scope::Scope;
use crate::syntax::Directive;
use crate::upstream::{Context, texts};
use crate::values::{is_plain, quoted};
use crate::{headers, names, target};

/// Fields that AFPA's question has by itself, and the variables that say the same.
const DESCRIBING: &[(&str, &[&str])] = &[
    ("x-original-url", &["$scheme://$http_host$request_uri", "$scheme://$host$request_uri"]),
    ("x-original-uri", &["$request_uri"]),
    ("x-forwarded-uri", &["$request_uri"]),
    ("x-original-method", &["$request_method"]),
    ("x-forwarded-method", &["$request_method"]),
    ("x-forwarded-host", &["$http_host", "$host"]),
    ("x-forwarded-proto", &["$scheme"]),
    ("x-forwarded-for", &["$proxy_add_x_forwarded_for", "$remote_addr"]),
    ("content-length", &[""]),
    ("content-type", &[""]),
    ("transfer-encoding", &[""]),
];

/// Fields of a connection, which AFPA writes itself.
const OWN: &[&str] = &["connection", "upgrade", "te", "keep-alive"];

/// Fields without which such servers decide the same.
const HARMLESS: &[&str] = &["x-real-ip", "x-auth-request-redirect", "accept-encoding"];

/// Directives of the location of the question that change nothing about it: AFPA asks each time, whatever nginx keeps.
const FITTING: &[&str] = &[
    "internal",
    "proxy_pass",
    "proxy_pass_request_body",
    "proxy_set_header",
    "proxy_read_timeout",
    "proxy_send_timeout",
    "proxy_connect_timeout",
    "proxy_redirect",
    "proxy_cache",
    "proxy_cache_bypass",
    "proxy_cache_key",
    "proxy_cache_methods",
    "proxy_cache_use_stale",
    "proxy_cache_valid",
    "proxy_no_cache",
    "proxy_ssl_verify",
    "proxy_ssl_name",
    "proxy_ssl_trusted_certificate",
    "access_log",
    "error_log",
    "auth_request",
    "allow",
    "deny",
];

/// The lines of `forward_auth` for a scope; none: nobody is asked. The error says why they are not known.
pub(crate) fn lines(context: &Context<'_>, scope: &Scope<'_>) -> Result<Vec<String>, String> {
    let Some(directive) = asked(scope) else { return Ok(Vec::new()) };
    let uri = directive.word(0);
    let server = scope.server();
    // nginx takes all of it for a path, and asks for `%3F`.
    let fits_path = is_plain(uri) && uri.starts_with('/') && !uri.contains(['?', '#', '%']);
    let found = located(&server, uri).filter(|_| fits_path);
    let (location, scope_of_question) = found.ok_or("there is no location for its question")?;
    let prefix = match kind(location) {
        Kind::Exact(path) | Kind::Prefix(path, _) => path,
        Kind::Regex(..) | Kind::Named => return Err("its question has an expression".to_owned()),
    };
    let mut inner = location.children().iter();
    let fits = |one: &&Directive| FITTING.contains(&&*one.name) || names::decided(&one.name);
    if let Some(odd) = inner.clone().find(|one| !fits(one)) {
        return Err(format!("the location of its question has {}", odd.name));
    }
    let pass = inner.find(|one| one.is("proxy_pass")).ok_or("its question reaches no server")?;
    let host = question(context, &scope_of_question)?;
    let (to, own) = target::asked(context, &scope_of_question, pass, host)?;
    let path = match own {
        None => uri.to_owned(),
        Some(own) => format!("{own}{}", uri.get(prefix.len()..).unwrap_or_default()),
    };
    let mut lines = vec![
        format!("forward_auth = {}", quoted(&to)),
        format!("forward_auth_path = {}", quoted(&path)),
    ];
    let copied = copied(scope);
    if !copied.is_empty() {
        lines.push(texts("forward_auth_copy", &copied));
    }
    context.ledger.differs(
        directive,
        "every answer that is not 2xx reaches the client as the server says it, without `error_page`",
    );
    Ok(lines)
}

/// The Host of the question, if one is set; the error names a field on which the answer may depend.
fn question(context: &Context<'_>, scope: &Scope<'_>) -> Result<Option<String>, String> {
    let mut host = None;
    for directive in scope.all("proxy_set_header") {
        let (name, value) = (directive.word(0).to_ascii_lowercase(), directive.word(1));
        let same = |(field, values): &(&str, &[&str])| *field == name && values.contains(&value);
        match &*name {
            "host" => host = Some(headers::host(value)),
            _ if DESCRIBING.iter().any(same) => {}
            field if value == format!("$http_{}", field.replace('-', "_")) => {}
            field if OWN.contains(&field) => {}
            field if HARMLESS.contains(&field) => {
                context.ledger.left(directive, "AFPA's question has no such field");
            }
            _ => return Err(format!("AFPA's question has no {name}: {value}")),
        }
    }
    Ok(host.flatten())
}
