//! `proxy_cache` and what goes with it.

use crate::facts::Facts;
use crate::scope::Scope;
use crate::syntax::Directive;
use crate::upstream::Context;

/// Keys that say no more than AFPA's own.
const KEYS: &[&str] = &[
    "$scheme$proxy_host$request_uri",
    "$scheme$request_method$host$request_uri",
    "$scheme$host$request_uri",
    "$host$request_uri",
    "$scheme$proxy_host$uri$is_args$args",
    "$scheme$host$uri$is_args$args",
    "$scheme://$host$request_uri",
    "$scheme$request_method$host$uri$is_args$args",
    "$host$uri$is_args$args",
];

/// The line of a place; `None`: as AFPA does.
pub(crate) fn line(context: &Context<'_>, facts: &Facts<'_>, scope: &Scope<'_>) -> Option<String> {
    let off = Some("cache = \"off\"".to_owned());
    if matches!(scope.value("proxy_cache"), "" | "off") {
        return off;
    }
    for directive in scope.all("proxy_cache_valid") {
        let why = "`times` of [site.cache] would go before what answers say themselves";
        context.ledger.left(directive, why);
    }
    if let Some(directive) = scope.last("proxy_cache_use_stale").filter(|one| one.word(0) != "off")
    {
        context.ledger.left(directive, "`grace` of [site.cache] says how long");
    }
    let gives_up = |directive: &Directive, why: &str| {
        context.ledger.left(directive, format!("{why}, so that nothing is kept here"));
    };
    if let Some(key) = scope.last("proxy_cache_key").filter(|key| !KEYS.contains(&key.word(0))) {
        gives_up(key, "AFPA's key is the host, the path and the query");
        return off;
    }
    for name in ["proxy_cache_bypass", "proxy_no_cache"] {
        for directive in scope.all(name) {
            if !directive.words.iter().all(|word| bypass(facts, word)) {
                gives_up(directive, "AFPA asks the server for cookies and fields alone");
                return off;
            }
        }
    }
    let methods = scope.last("proxy_cache_methods");
    if let Some(methods) = methods.filter(|methods| methods.words.iter().any(|one| one == "POST")) {
        context.ledger.left(methods, "AFPA keeps answers to GET and HEAD");
    }
    None
}

/// Takes a variable for which the cache is not used.
fn bypass(facts: &Facts<'_>, word: &str) -> bool {
    let mut lists = facts.bypass.borrow_mut();
    if let Some(cookie) = word.strip_prefix("$cookie_") {
        lists.0.insert(cookie.to_owned());
    } else if let Some(field) = word.strip_prefix("$http_") {
        lists.1.insert(field.replace('_', "-"));
    } else {
        return false;
    }
    true
}
