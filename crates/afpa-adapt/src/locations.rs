//! The location that answers: from nginx's order to paths with content groups.

use std::collections::BTreeSet;
use std::rc::Rc;

use crate::facts::{Facts, Place};
use crate::kind::{Kind, extensions, is_hidden, kind, matches, may_match, without_looks};
use crate::model::{Group, NOBODY, Path};
use crate::place::groups;
use crate::scope::Scope;
use crate::syntax::Directive;
use crate::upstream::{Context, texts};
use crate::values::{expression, quoted};
use crate::{errors, files, headers, php};

/// A regular expression that is tried, with the scope of its location.
type Tried<'d> = (&'d Directive, Scope<'d>);

/// A location with the expressions that are tried before it, in their order.
struct Spot<'d> {
    place: Place<'d>,
    chain: Rc<[Tried<'d>]>,
}

/// The paths of a server.
pub(crate) fn paths(context: &Context<'_>, facts: &Facts<'_>) -> Vec<Path> {
    let mut spots = Vec::new();
    walk(context, &facts.scope, &Rc::from([]), &mut spots);
    let is_root = |spot: &Spot<'_>| spot.place.prefix == "/" && !spot.place.exact;
    if !spots.iter().any(is_root) {
        let (scope, chain) = (facts.scope.clone(), tried(&facts.scope).into());
        let place = Place {
            scope,
            prefix: "/".to_owned(),
            exact: false,
            location: None,
            is_regex: false,
            runs_scripts: false,
        };
        spots.push(Spot { place, chain });
    }
    let taken = spots.iter().map(|spot| spot.place.prefix.clone()).collect();
    let mut built = Built { context, facts, paths: Vec::new(), hides: false, taken };
    let (orphans, others): (Vec<_>, Vec<_>) =
        spots.into_iter().partition(|spot| is_orphan(facts, &spot.place));
    for spot in others {
        built.path(spot);
    }
    for spot in orphans {
        built.orphan(spot.place);
    }
    built.indexes();
    built.fallbacks();
    built.well_known();
    built.paths
}

/// The regular expressions of a block.
fn tried<'d>(scope: &Scope<'d>) -> Vec<Tried<'d>> {
    let locations = scope.here().iter().filter(|one| one.is("location"));
    let regexes = locations.filter(|one| matches!(kind(one), Kind::Regex(..)));
    regexes.map(|one| (one, scope.within(one.children()))).collect()
}

/// Collects prefixes: expressions inside of a location go before those around it, and `^~` keeps out those beside it.
fn walk<'d>(
    context: &Context<'_>,
    scope: &Scope<'d>,
    outer: &Rc<[Tried<'d>]>,
    spots: &mut Vec<Spot<'d>>,
) {
    let own = tried(scope);
    let all: Rc<[Tried<'d>]> = own.iter().chain(outer.iter()).cloned().collect();
    for location in scope.here().iter().filter(|one| one.is("location")) {
        let (prefix, exact, stops) = match kind(location) {
            Kind::Exact(path) => (path, true, true),
            Kind::Prefix(path, stops) => (path, false, stops),
            Kind::Regex(..) => {
                nested(context, location);
                continue;
            }
            Kind::Named => continue,
        };
        if !prefix.starts_with('/') || prefix.contains("//") || prefix.contains("/../") {
            context.ledger.refused(location, "no path begins with this: nothing answers there");
            continue;
        }
        let inner = scope.within(location.children());
        let rest = if exact {
            Rc::from([])
        } else if stops {
            Rc::clone(outer)
        } else {
            Rc::clone(&all)
        };
        let chain = tried(&inner).into_iter().chain(rest.iter().cloned()).collect();
        let place = Place {
            scope: inner.clone(),
            prefix: prefix.to_owned(),
            exact,
            location: Some(location),
            is_regex: false,
            runs_scripts: false,
        };
        spots.push(Spot { place, chain });
        walk(context, &inner, &rest, spots);
    }
}

/// Locations inside of one with a regular expression.
fn nested(context: &Context<'_>, location: &Directive) {
    for inner in location.children().iter().filter(|one| one.is("location")) {
        context.ledger.refused(
            inner,
            "AFPA has no place inside of an expression: all of it answers with 403",
        );
    }
}

/// Whether it is one file of another directory.
fn is_orphan(facts: &Facts<'_>, place: &Place<'_>) -> bool {
    let other = ["alias", "return", "rewrite", "internal"];
    let acts = |one: &Directive| other.contains(&&*one.name) || one.name.ends_with("_pass");
    let root = files::root(&place.scope);
    place.exact && !place.scope.here().iter().any(acts) && root.is_some() && root != facts.root
}

struct Built<'b, 'd> {
    context: &'b Context<'d>,
    facts: &'b Facts<'d>,
    paths: Vec<Path>,
    /// Whether `/.well-known/` is refused with all names that begin with a dot.
    hides: bool,
    /// The paths of all locations.
    taken: BTreeSet<String>,
}

impl Built<'_, '_> {
    fn path(&mut self, spot: Spot<'_>) {
        let Spot { mut place, chain } = spot;
        self.end_with_slash(&mut place);
        let scripts = |one: &Tried<'_>| is_script(one.0);
        place.runs_scripts = chain.iter().any(scripts)
            || place.scope.here().iter().any(|one| one.is("fastcgi_pass"));
        let main = groups(self.context, self.facts, &place);
        let asks = main.iter().any(|group| {
            group.action.iter().any(|line| line.starts_with("to =") || asks_server(line))
        });
        let mut all = Vec::new();
        for (index, one) in chain.iter().enumerate() {
            let later = chain.get(index + 1..).unwrap_or_default();
            all.extend(self.tried(&place, one, later, asks));
        }
        all.extend(main);
        self.without_slash(&place, &all);
        let same = |path: &Path| path.prefix == place.prefix && path.exact == place.exact;
        if self.paths.iter().any(same) {
            if let Some(location) = place.location {
                self.context.ledger.refused(location, "another location has this path");
            }
            return;
        }
        let groups = merged(all);
        self.behind_script(&place, &groups);
        self.paths.push(Path { prefix: place.prefix, exact: place.exact, groups });
    }

    /// AFPA runs a script for all that stands behind its name: the answers before it are for that as well.
    fn behind_script(&mut self, place: &Place<'_>, groups: &[Group]) {
        let prefix = format!("{}/", place.prefix);
        let runs = |group: &Group| group.is_files && group.conditions.is_empty();
        let is_plain = groups.iter().all(runs) || groups.last().is_some_and(Group::is_closed);
        if place.exact
            && place.prefix.ends_with(".php")
            && !is_plain
            && !self.taken.contains(&prefix)
        {
            self.paths.push(Path { prefix, exact: false, groups: groups.to_vec() });
        }
    }

    /// nginx redirects to a path with a slash that a server answers.
    fn without_slash(&mut self, place: &Place<'_>, groups: &[Group]) {
        let bare = place.prefix.trim_end_matches('/');
        let by_server = groups
            .last()
            .is_some_and(|group| group.action.iter().any(|line| line.starts_with("to =")));
        if place.exact
            || bare.is_empty()
            || bare == place.prefix
            || !by_server
            || self.taken.contains(bare)
        {
            return;
        }
        let target = format!("redirect = {}", quoted(&format!("{bare}/{{query}}")));
        let action = vec![target, "redirect_status = \"301\"".to_owned()];
        let like = groups.last().cloned().unwrap_or_default();
        let group =
            Group { action, headers: like.headers, errors: like.errors, ..Group::default() };
        self.paths.push(Path { prefix: bare.to_owned(), exact: true, groups: vec![group] });
    }

    /// Settings of an index file are for its directory, too: nginx looks for a location again.
    fn indexes(&mut self) {
        let names = files::index(&self.facts.scope);
        let mut new: Vec<Path> = Vec::new();
        for path in &self.paths {
            let Some((folder, name)) = path.prefix.rsplit_once('/') else { continue };
            let prefix = format!("{folder}/");
            let is_there = |one: &Path| one.exact && one.prefix == prefix;
            let is_first = names.first().is_some_and(|first| first == name);
            let counts =
                |group: &Group| group.is_files || group.refuses() || !group.conditions.is_empty();
            let serves = path.groups.iter().all(counts);
            if is_first && serves && !self.paths.iter().any(is_there) {
                new.push(Path { prefix, exact: true, groups: path.groups.clone() });
            }
        }
        self.paths.extend(new);
    }

    /// A file that stands in for others keeps its own fields, where they have none.
    fn fallbacks(&mut self) {
        let own = |path: &Path| Some((path.prefix.clone(), path.groups.last()?.headers.clone()));
        let exact: Vec<(String, Vec<Vec<String>>)> =
            self.paths.iter().filter(|path| path.exact).filter_map(own).collect();
        for group in self.paths.iter_mut().flat_map(|path| &mut path.groups) {
            let to = |one: &&(String, Vec<Vec<String>>)| {
                group.action.contains(&format!("fallback = {}", quoted(&one.0)))
            };
            let Some((path, headers)) = exact.iter().find(to) else { continue };
            if group.headers.is_empty() {
                let with_prefix = headers.iter().map(|lines| {
                    let first = format!("prefix = {}", quoted(path));
                    std::iter::once(first).chain(lines.iter().cloned()).collect()
                });
                group.headers.extend(with_prefix);
            } else if group.headers != *headers {
                let location =
                    self.facts.scope.here().iter().find(|one| kind(one) == Kind::Exact(path));
                if let Some(location) = location {
                    let why = "as a fallback it has the fields of the place that was asked for";
                    self.context.ledger.differs(location, why);
                }
            }
        }
    }

    /// A directory of its own needs a path that ends with a slash.
    fn end_with_slash(&self, place: &mut Place<'_>) {
        let here = place.scope.here();
        let acts = |one: &Directive| {
            one.name.ends_with("_pass") || matches!(&*one.name, "return" | "rewrite" | "internal")
        };
        let foreign = here.iter().any(|one| one.is("alias"))
            || (files::root(&place.scope).is_some()
                && files::root(&place.scope) != self.facts.root);
        let Some(location) = place.location.filter(|_| foreign && !here.iter().any(acts)) else {
            return;
        };
        if !place.exact && !place.prefix.ends_with('/') {
            place.prefix.push('/');
            self.context.ledger.differs(location, format!("it is for {} alone", place.prefix));
        }
    }

    /// The groups for an expression that is tried before a place.
    fn tried(
        &mut self,
        place: &Place<'_>,
        one: &Tried<'_>,
        later: &[Tried<'_>],
        asks: bool,
    ) -> Vec<Group> {
        let (location, scope) = one;
        let Kind::Regex(text, any_case) = kind(location) else { return Vec::new() };
        if !may_match(text, &place.prefix) {
            return Vec::new();
        }
        let inner = Place {
            scope: scope.clone(),
            prefix: place.prefix.clone(),
            exact: false,
            location: Some(location),
            is_regex: true,
            runs_scripts: place.runs_scripts,
        };
        let has_nested = location.children().iter().any(|one| one.is("location"));
        let found = match has_nested {
            true => vec![Group::closed()],
            false => groups(self.context, self.facts, &inner),
        };
        let refuses = found.iter().all(Group::refuses);
        if refuses && is_hidden(text) && !asks {
            self.hides |= matches(text, any_case, "/.well-known/x");
            self.context
                .ledger
                .differs(location, "AFPA serves no name that begins with a dot: the answer is 404");
            return Vec::new();
        }
        let with_rest = self.with_rest(text, &found);
        let text = with_rest.as_deref().unwrap_or(text);
        let condition = condition(text, any_case, later);
        // An index file that is refused is not given for its directory either.
        let index = files::index(&self.facts.scope);
        let of_index = index.iter().any(|name| matches(text, any_case, &format!("/{name}")));
        let condition = match (refuses && of_index, condition) {
            (true, Ok(_)) => expression(text, any_case)
                .map(|pattern| texts("if_path", &[pattern, "*/".to_owned()])),
            (_, condition) => condition,
        };
        let (condition, found) = match condition {
            Ok(condition) => (condition, found),
            Err(why) => self.widened(location, (text, any_case), &why),
        };
        let conditioned = found.into_iter().map(|mut group| {
            let own = ["extensions", "if_path"];
            if !group.conditions.iter().any(|line| own.iter().any(|own| line.starts_with(own))) {
                group.conditions.insert(0, condition.clone());
            }
            group.pattern = Some((text.to_owned(), any_case));
            let by_kernel =
                |line: &String| line.starts_with("extensions") && !line.contains("\"php\"");
            if group.conditions.iter().any(by_kernel) && !asks {
                // Nothing but the name of a file ends so: it has one reading.
                group.rules.retain(|line| line != NOBODY);
            }
            group
        });
        conditioned.collect()
    }

    /// An expression for the end of a path, with all that may stand behind the name of a script: AFPA runs that script.
    /// A guard looks at its name by itself.
    fn with_rest(&self, text: &str, found: &[Group]) -> Option<String> {
        let is_error = found.iter().any(|group| group.refuses() && !group.is_closed());
        let is_for_scripts =
            extensions(text).is_none_or(|found| found.iter().any(|one| one == "php"));
        let start = text.strip_suffix('$').filter(|start| !start.ends_with('\\'))?;
        let top = !start.contains('|') || start.contains('(');
        (is_error && is_for_scripts && top && self.facts.php.is_some())
            .then(|| format!("(?:{start})(?:/|$)"))
    }

    /// An expression that AFPA has not: all that it may be for is refused.
    fn widened(
        &self,
        location: &Directive,
        (text, any_case): (&str, bool),
        why: &str,
    ) -> (String, Vec<Group>) {
        let wide = without_looks(text);
        let pattern = expression(&wide, any_case).unwrap_or_else(|_| "*".to_owned());
        let shown = if pattern == "*" { "everything" } else { &pattern };
        self.context.ledger.refused(location, format!("{why}: {shown} is answered with 403"));
        (format!("if_path = [{}]", quoted(&pattern)), vec![Group::closed()])
    }

    /// A file of another directory becomes a condition of the path around it.
    fn orphan(&mut self, mut place: Place<'_>) {
        let uri = place.prefix.clone();
        let around = |path: &&mut Path| {
            !path.exact && path.prefix.ends_with('/') && uri.starts_with(&path.prefix)
        };
        let Some(path) = self.paths.iter_mut().filter(around).max_by_key(|path| path.prefix.len())
        else {
            return;
        };
        place.prefix.clone_from(&path.prefix);
        place.exact = false;
        let mut found = groups(self.context, self.facts, &place);
        for group in &mut found {
            group.conditions.insert(0, format!("if_path = [{}]", quoted(&uri)));
        }
        path.groups.splice(0..0, found);
    }

    /// AFPA serves `/.well-known/` where nginx has refused it.
    fn well_known(&mut self) {
        let known = self.paths.iter().any(|path| path.prefix.starts_with("/.well-known"));
        if self.hides && !known {
            let scope = &self.facts.scope;
            let group = Group {
                headers: headers::answers(self.context, scope),
                errors: errors::pages(self.context, self.facts, scope),
                ..Group::status(403)
            };
            let groups = vec![group];
            self.paths.push(Path { prefix: "/.well-known/".to_owned(), exact: false, groups });
        }
    }
}

fn asks_server(line: &str) -> bool {
    line.strip_prefix("fallback = \"").is_some_and(|value| !value.starts_with('/'))
}

fn is_script(location: &Directive) -> bool {
    let passes = location.children().iter().any(|one| one.is("fastcgi_pass"));
    matches!(kind(location), Kind::Regex(text, _) if php::is_for_scripts(text)) && passes
}

/// An extension belongs to the first group that lists it; a group with none left has no request.
fn merged(groups: Vec<Group>) -> Vec<Group> {
    let mut taken: Vec<String> = Vec::new();
    let mut kept = Vec::new();
    for mut group in groups {
        let listed = match &*group.conditions {
            [one] => one.strip_prefix("extensions = [").and_then(|list| list.strip_suffix(']')),
            _ => None,
        };
        if let Some(listed) = listed {
            let names = listed.split(", ").map(|name| name.trim_matches('"').to_owned());
            let new: Vec<String> = names.filter(|name| !taken.contains(name)).collect();
            if new.is_empty() {
                continue;
            }
            group.conditions = vec![texts("extensions", &new)];
            taken.extend(new);
        }
        kept.push(group);
    }
    kept
}

/// The condition for an expression. Extensions are left to the kernel; but conditions go before them, so that all behind
/// have to be extensions, too.
fn condition(text: &str, any_case: bool, later: &[Tried<'_>]) -> Result<String, String> {
    let plain = |one: &Tried<'_>| match kind(one.0) {
        Kind::Regex(text, any_case) => {
            is_hidden(text) || is_script(one.0) || (any_case && extensions(text).is_some())
        }
        _ => false,
    };
    if let Some(found) = extensions(text).filter(|_| any_case && later.iter().all(plain)) {
        return Ok(texts("extensions", &found));
    }
    expression(text, any_case).map(|pattern| format!("if_path = [{}]", quoted(&pattern)))
}
