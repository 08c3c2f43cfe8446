//! The treatment of requests of one location.

use crate::facts::{Facts, Place};
use crate::guards::{Guard, guard};
use crate::kind::{Kind, kind};
use crate::model::Group;
use crate::redirects::Matched;
use crate::syntax::Directive;
use crate::upstream::Context;
use crate::{
    conditions, errors, files, headers, mirrors, php, proxy, rates, redirects, rewrites, values,
};

/// Rules about a request that come before its content is looked for.
#[derive(Default)]
struct Before<'d> {
    /// Answers under conditions.
    front: Vec<Group>,
    /// The answer to all.
    all: Option<Group>,
    /// A `rewrite` that stays inside.
    strip: Option<&'d Directive>,
    /// An `if` that gives a script for what is no file.
    fallback: Option<String>,
    /// Conditions, each with the path that servers are asked for then.
    asked: Vec<(String, String)>,
    /// The beginnings of the scripts that are run, where others are not.
    only: Option<String>,
}

/// The content groups of a location; the last has no conditions.
pub(crate) fn groups(context: &Context<'_>, facts: &Facts<'_>, place: &Place<'_>) -> Vec<Group> {
    let before = match place.location {
        Some(_) => before(context, facts, place),
        None => Before::default(),
    };
    let mut groups = before.front;
    let main = match before.all {
        Some(all) => all,
        None => guarded(context, facts, place, before.strip, before.fallback, &mut groups),
    };
    let asks = main.action.iter().any(|line| line.starts_with("to ="));
    for (condition, path) in before.asked.into_iter().filter(|_| asks) {
        let mut group = main.clone();
        group.conditions.push(condition);
        group.action.retain(|line| !line.starts_with("rewrite ="));
        group.action.push(format!("rewrite = {}", values::quoted(&path)));
        groups.push(group);
    }
    let main = match before.only.filter(|_| main.is_files) {
        Some(only) => php::some(main, &only, &mut groups),
        None => main,
    };
    groups.push(main);
    for group in &mut groups {
        if group.headers.is_empty() {
            group.headers.extend(headers::answers(context, &place.scope));
        }
        group.errors = errors::pages(context, facts, &place.scope);
    }
    groups
}

/// `return`, `rewrite` and `if`, in their order.
fn before<'d>(context: &Context<'_>, facts: &Facts<'_>, place: &Place<'d>) -> Before<'d> {
    let mut before = Before::default();
    for directive in place.scope.here() {
        match &*directive.name {
            "return" => {
                let pattern = place.location.map(kind).and_then(|kind| match kind {
                    Kind::Regex(text, any_case) => Some((text, any_case)),
                    _ => None,
                });
                let (scope, prefix) = (&place.scope, &place.prefix);
                let answer = redirects::answer(facts, scope, prefix, directive, pattern);
                if directive.word(0) == "444" {
                    context.ledger.differs(directive, "the answer is 403");
                }
                let answer = answer.unwrap_or_else(|why| {
                    context.ledger.refused(directive, format!("{why}: the answer is 501"));
                    Group::status(501)
                });
                before.all = Some(answer.guarded_if_forbidden());
                return before;
            }
            "rewrite" => {
                if let Some(all) = rewrite(context, facts, place, directive, &mut before) {
                    before.all = Some(all);
                    return before;
                }
            }
            "if" => {
                if let Some(all) = condition(context, facts, place, directive, &mut before) {
                    before.all = Some(all);
                    return before;
                }
            }
            _ => {}
        }
    }
    before
}

fn rewrite<'d>(
    context: &Context<'_>,
    facts: &Facts<'_>,
    place: &Place<'d>,
    directive: &'d Directive,
    before: &mut Before<'d>,
) -> Option<Group> {
    let why = match redirects::rewrite(facts, directive) {
        Ok((Matched::All, group)) => return Some(group),
        Ok((Matched::Below(path), group)) if path == place.prefix && !place.is_regex => {
            return Some(group);
        }
        Ok((Matched::Exactly(path), group)) if path == place.prefix && place.exact => {
            return Some(group);
        }
        Ok((Matched::Some, group)) if !place.is_regex => {
            before.front.push(group);
            return None;
        }
        Ok(_) => "it is for a part of the location".to_owned(),
        Err(_) if php::only(place, directive).is_some() => {
            before.only = php::only(place, directive);
            context.ledger.differs(directive, "other scripts are answered with 403");
            return None;
        }
        Err(_) if directive.word(2) == "break" && proxy::strips(place, directive) => {
            before.strip = Some(directive);
            return None;
        }
        Err(why) => match inner(facts, place, directive, before) {
            Ok(()) => return None,
            Err(other) if why == "it stays inside" => other,
            Err(_) => why,
        },
    };
    context.ledger.refused(directive, format!("{why}: the location answers with 501"));
    Some(Group::status(501))
}

/// A `rewrite` that stays inside.
fn inner(
    facts: &Facts<'_>,
    place: &Place<'_>,
    directive: &Directive,
    before: &mut Before<'_>,
) -> Result<(), String> {
    let here = place.scope.here();
    let is_rule = |one: &&Directive| {
        matches!(&*one.name, "rewrite" | "return" | "if" | "break") && one.id != directive.id
    };
    let last = here.iter().rfind(|one| one.is("rewrite")).is_some_and(|one| one.id == directive.id);
    let alone = last && !here.iter().any(|one| is_rule(&one) && !one.is("rewrite"));
    match directive.word(2) {
        _ if place.is_regex => return Err("AFPA has one expression for a path".to_owned()),
        "last" => before.front.push(rewrites::inner(facts, directive)?),
        "" if alone => before.front.push(rewrites::inner(facts, directive)?),
        "break" if here.iter().any(|one| one.is("proxy_pass")) => {
            let condition = rewrites::condition(directive.word(0), false)?;
            before.asked.push((condition, rewrites::text_of(directive)?));
        }
        _ => return Err("AFPA routes a rewritten path again, or asks a server for it".to_owned()),
    }
    Ok(())
}

/// The answer to everybody, where an `if` that keeps somebody out cannot be kept.
fn condition(
    context: &Context<'_>,
    facts: &Facts<'_>,
    place: &Place<'_>,
    directive: &Directive,
    before: &mut Before<'_>,
) -> Option<Group> {
    if let Some(fallback) = files::fallback_of_if(context, facts, place, directive) {
        before.fallback = Some(fallback);
        return None;
    }
    if place.location.is_some_and(|location| php::is_look_for_script(location, directive)) {
        return None;
    }
    // A server whose addresses agree has one scheme.
    let by_scheme = directive.word(0).trim_start_matches('(') == "$scheme";
    let kept = match conditions::subject(directive) {
        Ok(conditions::Subject::Lines(lines)) => {
            let answer =
                conditions::answer(context, facts, (&place.scope, &place.prefix), directive);
            if answer.is_ok() {
                conditions::note_names(context, directive, &lines);
            }
            answer.map(|group| Group { conditions: lines, ..group.guarded_if_forbidden() })
        }
        Ok(conditions::Subject::Plain) if by_scheme && facts.scheme == Some("https") => {
            return None;
        }
        Ok(conditions::Subject::Plain) if by_scheme && facts.scheme == Some("http") => {
            let all = conditions::answer(context, facts, (&place.scope, &place.prefix), directive);
            match all {
                Ok(group) => return Some(group.guarded_if_forbidden()),
                Err(why) => Err(why),
            }
        }
        Ok(_) => Err("AFPA keeps this `if` in a `server` only".to_owned()),
        Err(why) => Err(why),
    };
    match kept {
        Ok(group) => before.front.push(group),
        Err(why) if conditions::give_up(context, directive, &why) => {
            return Some(Group::closed());
        }
        Err(_) => {}
    }
    None
}

/// The content, for those who may have it.
fn guarded(
    context: &Context<'_>,
    facts: &Facts<'_>,
    place: &Place<'_>,
    strip: Option<&Directive>,
    fallback: Option<String>,
    front: &mut Vec<Group>,
) -> Group {
    let lines = match guard(context, &place.scope, facts.limited) {
        Guard::Unknown(directive, why) => {
            context.ledger.refused(directive, why);
            return Group::closed();
        }
        Guard::Nobody => return Group::closed(),
        Guard::Open => Vec::new(),
        Guard::Lines(lines) => lines,
    };
    let by_address = lines.iter().any(|line| line.starts_with("allow") || line.starts_with("deny"));
    if let (true, Some(router)) = (by_address, facts.unknown_client) {
        context.ledger.refused(router, "AFPA would not know the client whose address decides");
        return Group::closed();
    }
    let mut group = content(context, facts, place, strip, fallback);
    group.is_guarded = !lines.is_empty();
    group.rules.splice(0..0, lines);
    if !facts.limited {
        group.rules.extend(rates::line(context, &place.scope));
    }
    if group.action.iter().any(|line| line.starts_with("to =")) {
        group.rules.extend(mirrors::line(context, &place.scope));
    }
    methods(context, place, group, front)
}

/// `limit_except METHOD... { deny all; }`.
fn methods(
    context: &Context<'_>,
    place: &Place<'_>,
    group: Group,
    front: &mut Vec<Group>,
) -> Group {
    let Some(limit) = place.scope.here().iter().find(|one| one.is("limit_except")) else {
        return group;
    };
    let is_kept = matches!(limit.children(), [only] if only.is("deny") && only.word(0) == "all");
    if !is_kept {
        context.ledger.refused(limit, "AFPA keeps `deny all` alone: the answer is 403");
        return Group::closed();
    }
    let conditions = vec![format!("if_methods = {}", values::list(&limit.words))];
    front.push(Group { conditions, ..group });
    Group::closed()
}

fn content(
    context: &Context<'_>,
    facts: &Facts<'_>,
    place: &Place<'_>,
    strip: Option<&Directive>,
    fallback: Option<String>,
) -> Group {
    let here = place.scope.here();
    if here.iter().any(|directive| directive.is("internal")) {
        return Group::status(404);
    }
    let handler = here.iter().find(|directive| is_handler(&directive.name));
    let Some(handler) = handler.filter(|_| place.location.is_some()) else {
        return files::group(context, facts, place, fallback);
    };
    let group = match &*handler.name {
        "proxy_pass" | "grpc_pass" => proxy::group(context, facts, place, handler, strip),
        "fastcgi_pass" => php::group(context, facts, place, handler),
        name => Err(format!("AFPA has no {name}")),
    };
    group.unwrap_or_else(|why| {
        context.ledger.refused(handler, format!("{why}: the answer is 501"));
        Group::status(501)
    })
}

fn is_handler(name: &str) -> bool {
    let others = ["empty_gif", "stub_status", "flv", "mp4", "perl", "dav_methods", "random_index"];
    name.ends_with("_pass") || name.starts_with("content_by_") || others.contains(&name)
}
