//! `if`, `rewrite` and `return` of a server, which go before all of its locations.

use crate::conditions::{self, Subject};
use crate::facts::Facts;
use crate::kind::{Kind, kind, matches, may_match};
use crate::model::{Group, Path};
use crate::redirects::{self, Matched};
use crate::rewrites;
use crate::syntax::Directive;
use crate::upstream::{Context, texts};
use crate::values::{expression, quoted};

/// Their sum.
#[derive(Default)]
pub(crate) struct Rules {
    /// Answers under conditions, for all paths.
    front: Vec<Group>,
    /// The methods that everything else is for, and the answer to others.
    methods: Option<(Vec<String>, Group)>,
    /// Redirects of paths.
    paths: Vec<Path>,
    /// The answer to everything else.
    pub(crate) whole: Option<Group>,
    /// Answers by host.
    pub(crate) hosts: Vec<(String, Group)>,
    /// The answer to requests without TLS.
    pub(crate) plain: Option<Group>,
}

impl Rules {
    /// Paths with what goes before them.
    pub(crate) fn before(&self, mut paths: Vec<Path>) -> Vec<Path> {
        for path in &mut paths {
            let meets = |group: &&Group| match &group.pattern {
                Some((text, any_case)) if path.exact => matches(text, *any_case, &path.prefix),
                Some((text, _)) => may_match(text, &path.prefix),
                None => true,
            };
            let front: Vec<Group> = self.front.iter().filter(meets).cloned().collect();
            path.groups.splice(0..0, front);
        }
        let is_new = |new: &&Path| {
            !paths.iter().any(|path| path.prefix == new.prefix && path.exact == new.exact)
        };
        let new: Vec<Path> = self.paths.iter().filter(is_new).cloned().collect();
        paths.extend(new);
        if let Some((methods, answer)) = &self.methods {
            let condition = texts("if_methods", methods);
            for path in &mut paths {
                for group in &mut path.groups {
                    group.conditions.push(condition.clone());
                }
                path.groups.push(answer.clone());
            }
        }
        paths
    }
}

/// The rules of a server.
pub(crate) fn of(context: &Context<'_>, facts: &Facts<'_>) -> Rules {
    let mut rules = Rules::default();
    for directive in facts.scope.here() {
        match &*directive.name {
            "return" => {
                rules.whole = Some(whole(context, facts, directive));
                break;
            }
            "rewrite" if rewrite(context, facts, directive, &mut rules) => break,
            "if" if facts.fallback.is_some() && rewrites::is_fallback(directive) => {}
            "if" if condition(context, facts, directive, &mut rules) => {
                rules.whole = Some(Group::closed());
                break;
            }
            _ => {}
        }
    }
    rules
}

fn whole(context: &Context<'_>, facts: &Facts<'_>, directive: &Directive) -> Group {
    if directive.word(0) == "444" {
        context.ledger.differs(directive, "the answer is 421");
        return Group::status(421);
    }
    redirects::answer(facts, &facts.scope, "/", directive, None).unwrap_or_else(|why| {
        context.ledger.refused(directive, format!("{why}: the answer is 501"));
        Group::status(501)
    })
}

/// Whether nothing comes behind it.
fn rewrite(
    context: &Context<'_>,
    facts: &Facts<'_>,
    directive: &Directive,
    rules: &mut Rules,
) -> bool {
    let (prefix, exact, group) = match redirects::rewrite(facts, directive) {
        Ok((Matched::All, group)) => {
            rules.whole = Some(group);
            return true;
        }
        Ok((Matched::Below(path), group)) => (path, false, group),
        Ok((Matched::Exactly(path), group)) => (path, true, group),
        Ok((Matched::Some, group)) => {
            rules.front.push(group);
            return false;
        }
        Err(_) if matches!(directive.word(2), "" | "last") && is_inner(directive) => {
            match rewrites::inner(facts, directive) {
                Ok(group) => rules.front.push(group),
                Err(why) => refuse(context, directive, &why, rules),
            }
            return false;
        }
        Err(why) => {
            refuse(context, directive, &why, rules);
            return false;
        }
    };
    // A longer path would go before it.
    let mut locations = facts.scope.here().iter().filter(|one| one.is("location"));
    let longer = |one: &Directive| match kind(one) {
        Kind::Exact(path) | Kind::Prefix(path, _) => path.starts_with(&prefix),
        _ => false,
    };
    if !exact && locations.any(longer) || rules.paths.iter().any(|path| path.prefix == prefix) {
        refuse(context, directive, "a location is for a part of it", rules);
        return false;
    }
    rules.paths.push(Path { prefix, exact, groups: vec![group] });
    false
}

/// Whether a `rewrite` stays inside.
fn is_inner(directive: &Directive) -> bool {
    directive.word(1).starts_with('/')
}

/// The paths of a `rewrite` that is not kept get an error.
fn refuse(context: &Context<'_>, directive: &Directive, why: &str, rules: &mut Rules) {
    match expression(directive.word(0), false) {
        Ok(pattern) => {
            context.ledger.refused(directive, format!("{why}: its paths are answered with 501"));
            let conditions = vec![format!("if_path = [{}]", quoted(&pattern))];
            let pattern = Some((directive.word(0).to_owned(), false));
            rules.front.push(Group { conditions, pattern, ..Group::status(501) });
        }
        Err(also) => {
            context
                .ledger
                .refused(directive, format!("{why}, and {also}: everything is answered with 501"));
            rules.whole = Some(Group::status(501));
        }
    }
}

/// Whether everybody has to be refused.
fn condition(
    context: &Context<'_>,
    facts: &Facts<'_>,
    directive: &Directive,
    rules: &mut Rules,
) -> bool {
    let answer = conditions::answer(context, facts, (&facts.scope, "/"), directive);
    let why = match (conditions::subject(directive), answer) {
        (Ok(Subject::Lines(conditions)), Ok(group)) => {
            let by_path = conditions.iter().any(|line| line.starts_with("if_path"));
            let group = if by_path { group.guarded_if_forbidden() } else { group };
            conditions::note_names(context, directive, &conditions);
            rules.front.push(Group { conditions, ..group });
            return false;
        }
        (Ok(Subject::Host(host)), Ok(group)) => {
            if !rules.hosts.iter().any(|(known, _)| *known == host) {
                rules.hosts.push((host, group));
            }
            return false;
        }
        (Ok(Subject::AllBut(methods)), Ok(group))
            if !asks_method(facts.scope.here(), directive) =>
        {
            rules.methods = Some((methods, group));
            return false;
        }
        (Ok(Subject::AllBut(_)), Ok(_)) => "AFPA keeps one condition on the method".to_owned(),
        (Ok(Subject::Plain), Ok(group)) => {
            rules.plain.get_or_insert(group);
            return false;
        }
        (Err(why), _) | (_, Err(why)) => why,
    };
    conditions::give_up(context, directive, &why)
}

/// Whether anything but this directive asks for the method.
fn asks_method(block: &[Directive], but: &Directive) -> bool {
    block.iter().filter(|one| one.id != but.id).any(|one| {
        let is_if = one.is("if") && one.words.iter().any(|word| word.contains("$request_method"));
        is_if || one.is("limit_except") || asks_method(one.children(), but)
    })
}
