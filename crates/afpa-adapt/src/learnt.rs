//! Fields of the answer to `auth_request`, and the variables that stand for them.

use crate::scope::Scope;
use crate::syntax::Directive;

/// The `auth_request` that counts.
pub(crate) fn asked<'d>(scope: &Scope<'d>) -> Option<&'d Directive> {
    scope.last("auth_request").filter(|one| one.word(0) != "off")
}

/// The fields of the server's answer that servers get under the same name, anywhere in the server: no client may send
/// one of them, wherever it asks.
pub(crate) fn copied(scope: &Scope<'_>) -> Vec<String> {
    let mut names: Vec<String> = Vec::new();
    for directive in all(scope, "proxy_set_header") {
        let name = directive.word(0);
        let is_new = !names.iter().any(|known| known.eq_ignore_ascii_case(name));
        if is_new && is_copied(scope, name, directive.word(1)) {
            names.push(name.to_owned());
        }
    }
    names
}

/// Whether a variable is the field of this name of the server's answer.
pub(crate) fn is_copied(scope: &Scope<'_>, name: &str, value: &str) -> bool {
    let field = name.to_ascii_lowercase().replace('-', "_");
    is_learnt(scope, value).is_some_and(|learnt| learnt == field)
}

/// The field of the server's answer that a variable stands for, in lower case and with `_`.
pub(crate) fn is_learnt<'d>(scope: &Scope<'d>, variable: &str) -> Option<&'d str> {
    if !variable.starts_with('$') {
        return None;
    }
    let set = all(scope, "auth_request_set").into_iter();
    let mut own = set.filter(|one| one.word(0) == variable).map(|one| one.word(1));
    let first = own.next()?;
    own.all(|other| other == first).then(|| first.strip_prefix("$upstream_http_")).flatten()
}

/// All directives of a name around a place, and in all places of its server.
fn all<'d>(scope: &Scope<'d>, name: &str) -> Vec<&'d Directive> {
    let server = scope.server();
    let around = server.everything().filter(|one| !one.is("server") && !one.is("location"));
    let mut found: Vec<_> = around.filter(|one| one.is(name)).collect();
    let mut open: Vec<_> = server.here().iter().filter(|one| one.is("location")).collect();
    while let Some(location) = open.pop() {
        found.extend(location.children().iter().filter(|one| one.is(name)));
        open.extend(location.children().iter().filter(|one| one.is("location")));
    }
    found
}
