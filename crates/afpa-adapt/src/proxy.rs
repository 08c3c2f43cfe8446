//! `proxy_pass` and what goes with it.

use crate::facts::{Facts, Place, limits};
use crate::guards::{follows, gives};
use crate::model::Group;
use crate::redirects::{Matched, matched};
use crate::scope::Scope;
use crate::syntax::Directive;
use crate::target::{servers, target};
use crate::upstream::Context;
use crate::values::{is_plain, quoted};
use crate::{cache, names};

/// Passes requests on.
pub(crate) fn group(
    context: &Context<'_>,
    facts: &Facts<'_>,
    place: &Place<'_>,
    pass: &Directive,
    strip: Option<&Directive>,
) -> Result<Group, String> {
    let target = target(pass.word(0))?;
    let rewrite = match (target.path, strip) {
        (Some(_), Some(_)) => return Err("its `rewrite` and its path contradict".to_owned()),
        (Some(path), None) => replaced(place, path)?,
        (None, Some(strip)) => stripped(place, strip),
        (None, None) => None,
    };
    let (to, section) = servers(context, &place.scope, pass, &target)?;
    let mut group = Group { action: vec![format!("to = {}", quoted(&to))], ..Group::default() };
    group.action.extend(rewrite.map(|new| format!("rewrite = {}", quoted(&new))));
    group.sent.extend((!section.is_empty()).then_some(section));
    group.rules.extend(limits(context, place, "proxy"));
    group.rules.extend(cache::line(context, facts, &place.scope));
    redirects(context, &place.scope);
    Ok(group)
}

fn redirects(context: &Context<'_>, scope: &Scope<'_>) {
    for directive in scope.all("proxy_redirect") {
        if !matches!(directive.word(0), "off" | "default") {
            context.ledger.left(directive, "AFPA does not change where servers redirect to");
        }
    }
}

/// The path in the place of the location's.
fn replaced(place: &Place<'_>, path: &str) -> Result<Option<String>, String> {
    if path == place.prefix && !place.is_regex {
        return Ok(None);
    }
    let same_end = path.ends_with('/') == place.prefix.ends_with('/');
    if place.is_regex || !same_end || path.contains(['?', '#', '%']) || path.contains("//") {
        return Err(
            "AFPA puts a path in the place of another that ends with a slash as it does".to_owned()
        );
    }
    Ok(Some(path.to_owned()))
}

/// Whether a `rewrite ^/api/(.*)$ /$1 break;` takes the location's path away.
pub(crate) fn strips(place: &Place<'_>, directive: &Directive) -> bool {
    let passes = place.scope.here().iter().any(|one| one.is("proxy_pass"));
    passes && stripped(place, directive).is_some()
}

fn stripped(place: &Place<'_>, directive: &Directive) -> Option<String> {
    let Some(Matched::Below(path)) = matched(directive.word(0)) else { return None };
    let new = directive.word(1).strip_suffix("$1")?;
    let fits = path == place.prefix && path.ends_with('/') && !place.is_regex;
    (fits && is_plain(new) && new.starts_with('/') && new.ends_with('/')).then(|| new.to_owned())
}

/// The servers of a named location, for `fallback`, and the fields of requests that go with them.
pub(crate) fn named(
    context: &Context<'_>,
    facts: &Facts<'_>,
    place: &Place<'_>,
    name: &str,
) -> Result<(String, Vec<String>), String> {
    let mut locations = facts.scope.here().iter();
    let location = locations.find(|one| one.is("location") && one.word(0) == name);
    let location = location.ok_or("there is no such location")?;
    let scope = facts.scope.within(location.children());
    if !follows(context, &scope, &place.scope) {
        return Err("others may use its location than may use this place".to_owned());
    }
    let mut handlers = location.children().iter();
    let Some(pass) = handlers.find(|one| one.is("proxy_pass")) else {
        let script = front_controller(facts, location)?;
        if !gives(context, facts, &script, &place.scope) {
            return Err("others may use its script than may use this place".to_owned());
        }
        return Ok((script, Vec::new()));
    };
    let odd = ["rewrite", "if", "return", "auth_basic", "allow", "deny", "limit_except", "satisfy"];
    let is_odd = |one: &&Directive| {
        odd.contains(&&*one.name) || names::guards(&one.name) || one.name.starts_with("limit_")
    };
    if let Some(odd) = location.children().iter().find(is_odd) {
        return Err(format!("its location has {}", odd.name));
    }
    for header in location.children().iter().filter(|one| one.is("add_header")) {
        context.ledger.left(header, "fields of a fallback are those of its location");
    }
    let target = target(pass.word(0))?;
    if target.path.is_some() {
        return Err("the path of its `proxy_pass` stands for nothing".to_owned());
    }
    servers(context, &scope, pass, &target)
}

/// The script of `rewrite ^ /index.php last;` in a named location.
fn front_controller(facts: &Facts<'_>, location: &Directive) -> Result<String, String> {
    let mut inner = location.children().iter();
    let rewrite = inner.next().filter(|one| one.is("rewrite") && inner.next().is_none());
    let all = ["^", "^(.*)$", "^/(.*)$", ".*", "^.*$", "^(.+)$"];
    let script = rewrite.filter(|one| all.contains(&one.word(0))).map(|one| one.word(1));
    let script = script.map(|script| script.split_once('?').map_or(script, |(path, _)| path));
    let fits = |script: &&str| script.ends_with(".php") && is_plain(script) && facts.php.is_some();
    script
        .filter(fits)
        .map(str::to_owned)
        .ok_or_else(|| format!("{} asks no server of HTTP", location.word(0)))
}

/// The servers of a `proxy_pass` without a path.
pub(crate) fn plain(
    context: &Context<'_>,
    scope: &Scope<'_>,
    here: &[Directive],
) -> Result<String, String> {
    let pass = here.iter().find(|one| one.is("proxy_pass")).ok_or("there is no server")?;
    let target = target(pass.word(0))?;
    servers(context, scope, pass, &target).map(|(to, _)| to)
}
