//! `error_page`.

use crate::facts::Facts;
use crate::files;
use crate::kind::located;
use crate::proxy;
use crate::scope::Scope;
use crate::syntax::Directive;
use crate::upstream::Context;
use crate::values::quoted;

/// The pages of a place.
pub(crate) fn pages(
    context: &Context<'_>,
    facts: &Facts<'_>,
    scope: &Scope<'_>,
) -> Vec<Vec<String>> {
    let intercepts =
        scope.is_on("proxy_intercept_errors") || scope.is_on("fastcgi_intercept_errors");
    let mut pages = Vec::new();
    let mut known: Vec<String> = Vec::new();
    for directive in scope.all("error_page") {
        match page(context, facts, directive, intercepts) {
            // The first page of a status counts.
            Ok((codes, lines)) => {
                let new: Vec<String> =
                    codes.into_iter().filter(|code| !known.contains(code)).collect();
                if !new.is_empty() {
                    let mut section = vec![format!("status = [{}]", new.join(", "))];
                    section.extend(lines);
                    pages.push(section);
                }
                known.extend(new);
            }
            Err(why) => context.ledger.left(directive, why),
        }
    }
    pages
}

fn page(
    context: &Context<'_>,
    facts: &Facts<'_>,
    directive: &Directive,
    intercepts: bool,
) -> Result<(Vec<String>, Vec<String>), String> {
    let Some((uri, words)) = directive.words.split_last() else {
        return Err("it says nothing".to_owned());
    };
    let (codes, answer): (Vec<&String>, Vec<&String>) =
        words.iter().partition(|word| !word.starts_with('='));
    let fits = |code: &&String| code.parse::<u16>().is_ok_and(|code| (400..600).contains(&code));
    if codes.is_empty() || !codes.iter().all(fits) {
        return Err("AFPA has pages for statuses from 400 to 599".to_owned());
    }
    let mut lines = source(context, facts, uri)?;
    match answer.first().map(|answer| &answer[1..]) {
        None => {}
        Some("" | "200") => lines.push("answer = 200".to_owned()),
        Some(code)
            if code.parse::<u16>().is_ok_and(|code| {
                matches!(code, 201..=204 | 400..=599) && ![401, 405, 407].contains(&code)
            }) =>
        {
            lines.push(format!("answer = {code}"));
        }
        Some(code) => return Err(format!("an error page cannot have the status {code}")),
    }
    if intercepts {
        lines.push("intercept = true".to_owned());
    }
    Ok((codes.into_iter().cloned().collect(), lines))
}

/// Where the page comes from.
fn source(context: &Context<'_>, facts: &Facts<'_>, uri: &str) -> Result<Vec<String>, String> {
    let only = || "AFPA takes a file or the path of a server".to_owned();
    if uri.starts_with('@') || !uri.starts_with('/') || uri.contains(['$', '%', '{', '?']) {
        return Err(only());
    }
    let location = located(&facts.scope, uri);
    let here = location.as_ref().map(|(location, _)| location.children()).unwrap_or_default();
    let scope: Scope<'_> = location.map_or_else(|| facts.scope.clone(), |(_, scope)| scope);
    if here.iter().any(|one| one.is("proxy_pass") && one.word(0).matches('/').count() == 2) {
        let pass = proxy::plain(context, &scope, here)?;
        return Ok(vec![format!("to = {}", quoted(&pass)), format!("path = {}", quoted(uri))]);
    }
    let other = ["return", "rewrite", "alias", "proxy_pass", "fastcgi_pass", "if", "uwsgi_pass"];
    if here.iter().any(|one| other.contains(&&*one.name)) || uri.ends_with(".php") {
        return Err(only());
    }
    let root = files::root(&scope).ok_or_else(only)?;
    Ok(vec![format!("file = {}", quoted(&format!("{}{uri}", root.trim_end_matches('/'))))])
}
