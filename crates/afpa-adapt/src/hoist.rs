//! Puts settings that all places of a site share into the site, so that the text is short.

use crate::facts::Facts;
use crate::guards;
use crate::kind::{matches, may_match};
use crate::model::{Group, Path, Site};
use crate::scope::Scope;
use crate::syntax::Directive;
use crate::upstream::{Context, texts};
use crate::values::{is_plain, quoted, table};
use crate::{files, model, php};

/// A site while it is put together.
pub(crate) struct Hoisted<'h, 'd> {
    pub(crate) context: &'h Context<'d>,
    pub(crate) facts: &'h Facts<'d>,
    /// The lines of `[site.limits]`.
    pub(crate) limits: Vec<String>,
}

impl Hoisted<'_, '_> {
    /// Gives the site its paths.
    pub(crate) fn finish(self, site: &mut Site, mut paths: Vec<Path>) {
        open_within(&mut paths);
        let mut sections = Vec::new();
        for (name, field) in FIELDS {
            for lines in shared(&mut paths, *field) {
                sections.push(((*name).to_owned(), lines));
            }
        }
        let compress = shared_line(&mut paths, "compress");
        let cache = shared_line(&mut paths, "cache");
        // Every place that asks a server has this one, so that it shows them to the others.
        let largest = shared_line(&mut paths, "largest_content");
        self.listing(site, &paths);
        let serves = files_of(&paths)
            .any(|group| !group.action.iter().any(|line| line.starts_with("root =")));
        let has_files = files_of(&paths).next().is_some();
        if serves {
            site.lines.extend(file_lines(self.facts, self.context));
        } else if has_files {
            let lines = file_lines(self.facts, self.context).into_iter();
            site.lines.extend(lines.filter(|line| !line.starts_with("root =")));
        }
        let index = texts("index", &files::index(&self.facts.scope));
        let usual = "index = [\"index.html\"]";
        if has_files && index != usual {
            site.lines.push(index.clone());
        }
        let fallback = whole_site(&mut paths, &mut site.lines, &index);
        quiet(&mut paths, &index, fallback);
        site.lines.extend(largest.filter(|line| !line.contains("1TiB")));
        site.lines.extend(compress);
        let types = types(&self.facts.scope);
        if has_files && !types.is_empty() {
            site.lines.push(format!("types = {}", table(&types)));
        }
        site.sections.extend(
            (!self.limits.is_empty()).then(|| ("[site.limits]".to_owned(), self.limits.clone())),
        );
        site.sections.extend(self.cache(cache));
        site.sections.extend(self.charset(has_files));
        site.sections.extend(sections);
        site.paths = paths;
    }

    fn cache(&self, off: Option<String>) -> Option<(String, Vec<String>)> {
        let mut lines = Vec::new();
        if off.is_some() {
            lines.push("mode = \"off\"".to_owned());
        }
        let (cookies, fields) = &*self.facts.bypass.borrow();
        for (key, names) in [("bypass_cookies", cookies), ("bypass_headers", fields)] {
            let names: Vec<String> = names.iter().cloned().collect();
            if !names.is_empty() {
                lines.push(texts(key, &names));
            }
        }
        (!lines.is_empty()).then(|| ("[site.cache]".to_owned(), lines))
    }

    /// nginx says no charset unless `charset` names one.
    fn charset(&self, has_files: bool) -> Option<(String, Vec<String>)> {
        let charset = match &*self.facts.scope.value("charset").to_ascii_lowercase() {
            "" | "off" => "none".to_owned(),
            "utf-8" => return None,
            other => other.to_owned(),
        };
        let lines = vec![format!("charset = {}", quoted(&charset))];
        has_files.then(|| ("[[site.filter]]".to_owned(), lines))
    }

    /// `autoindex`, which is for a whole site here.
    fn listing(&self, site: &mut Site, paths: &[Path]) {
        let listings = self.facts.listings.borrow();
        if listings.is_empty() {
            return;
        }
        if files_of(paths).all(|group| group.is_listing) {
            site.lines.push("listing = true".to_owned());
            return;
        }
        for directive in &*listings {
            self.context
                .ledger
                .left(directive, "AFPA lists the directories of a whole site or none");
        }
    }
}

/// A part of a group that a site can have as well.
type Field = fn(&mut Group) -> &mut Vec<Vec<String>>;

const FIELDS: &[(&str, Field)] = &[
    ("[[site.header]]", |group| &mut group.sent),
    ("[[site.header]]", |group| &mut group.headers),
    ("[[site.errors]]", |group| &mut group.errors),
];

fn files_of(paths: &[Path]) -> impl Iterator<Item = &Group> {
    paths.iter().flat_map(|path| &path.groups).filter(|group| group.is_files)
}

fn groups_of(paths: &mut [Path]) -> impl Iterator<Item = &mut Group> {
    paths.iter_mut().flat_map(|path| &mut path.groups)
}

/// Takes sections out of all groups, if they have the same.
fn shared(paths: &mut [Path], field: Field) -> Vec<Vec<String>> {
    let mut all = groups_of(paths);
    let Some(first) = all.next().map(|group| field(group).clone()) else { return Vec::new() };
    let agree = all.all(|group| *field(group) == first);
    drop(all);
    if !agree {
        return Vec::new();
    }
    for group in groups_of(paths) {
        field(group).clear();
    }
    first
}

/// Takes a line out of all groups that have one with this key, if it is the same.
fn shared_line(paths: &mut [Path], key: &str) -> Option<String> {
    let start = format!("{key} =");
    let is_it = |line: &String| line.starts_with(&start);
    let needs =
        |group: &Group| group.rules.iter().any(|line| line.starts_with("largest_content ="));
    let mut lines = groups_of(paths).filter(|group| needs(group) || group.rules.iter().any(is_it));
    let first = lines.next()?.rules.iter().find(|line| is_it(line))?.clone();
    if !lines.all(|group| group.rules.contains(&first)) {
        return None;
    }
    drop(lines);
    for group in groups_of(paths) {
        group.rules.retain(|line| !is_it(line));
    }
    Some(first)
}

/// A closed group and its path.
struct Closed {
    prefix: String,
    exact: bool,
    conditions: Vec<String>,
    pattern: Option<(String, bool)>,
}

impl Closed {
    /// Whether it would close what nginx leaves open in a longer path.
    fn is_around(&self, path: &Path) -> bool {
        let is_longer = !self.exact
            && path.prefix.starts_with(&self.prefix)
            && (self.prefix != path.prefix || path.exact);
        let has_it = |group: &Group| group.is_closed() && group.conditions == self.conditions;
        let meets = self.pattern.as_ref().is_none_or(|(text, any_case)| match path.exact {
            true => path.prefix.ends_with('/') || matches(text, *any_case, &path.prefix),
            false => may_match(text, &path.prefix),
        });
        is_longer && meets && !path.groups.iter().any(has_it)
    }
}

/// All closed places.
fn closed_of(paths: &[Path]) -> Vec<Closed> {
    let of = |path: &Path| {
        let groups = path.groups.iter().filter(|group| group.is_closed());
        let (prefix, exact) = (path.prefix.clone(), path.exact);
        let closed = groups.map(move |group| Closed {
            prefix: prefix.clone(),
            exact,
            conditions: group.conditions.clone(),
            pattern: group.pattern.clone(),
        });
        closed.collect::<Vec<_>>()
    };
    paths.iter().flat_map(of).collect()
}

/// Access of a path is that of longer ones, too: those that nginx leaves open say so.
fn open_within(paths: &mut [Path]) {
    let guarded: Vec<(String, bool)> = paths
        .iter()
        .filter(|path| path.groups.iter().any(|group| group.is_guarded))
        .map(|path| (path.prefix.clone(), path.exact))
        .collect();
    let closed = closed_of(paths);
    let asks = groups_of(paths)
        .any(|group| group.rules.iter().any(|rule| rule.starts_with("forward_auth =")));
    for path in paths.iter_mut() {
        let outer = guarded.iter().any(|(prefix, exact)| {
            !exact && path.prefix.starts_with(prefix) && (*prefix != path.prefix || path.exact)
        });
        let own = path.groups.iter().any(|group| group.is_guarded);
        let around = closed.iter().any(|one| one.is_around(path));
        let last_closed = path.groups.iter().rposition(Group::is_closed);
        for (at, group) in path.groups.iter_mut().enumerate() {
            let is_before = last_closed.is_some_and(|last| at < last);
            if group.refuses() || !(outer || own || around || is_before) {
                continue;
            }
            let missing = guards::open().into_iter().filter(|line| {
                let key = line.split(" =").next().unwrap_or_default();
                let has = |one: &str| {
                    group.rules.iter().any(|rule| rule.starts_with(&format!("{one} =")))
                };
                match key {
                    "basic_auth" | "forward_auth" if !outer && !own => false,
                    "forward_auth" if !asks => false,
                    "allow" => !has("allow") && !has("deny"),
                    key => !has(key),
                }
            });
            let missing: Vec<String> = missing.collect();
            group.rules.splice(0..0, missing);
        }
    }
}

/// Moves the path `/` into the site, if it says no more than a site can; the fallback of the site.
fn whole_site(paths: &mut Vec<Path>, lines: &mut Vec<String>, index: &str) -> Option<String> {
    let at = paths.iter().position(|path| path.prefix == "/" && !path.exact)?;
    let [only] = &*paths[at].groups else { return None };
    let movable = |line: &String| {
        // A rule that gives 404 for directories would hold for all other places, too.
        ["to =", "index =", "fallback ="].iter().any(|start| line.starts_with(start))
            && !line.starts_with("fallback = 404 ")
    };
    if !only.is_bare() || !only.action.iter().all(movable) {
        return None;
    }
    let group: model::Group = only.clone();
    // With `to`, a `root` of the site would have some extensions.
    let has_to = group.action.iter().any(|line| line.starts_with("to ="));
    if has_to && lines.iter().any(|line| line.starts_with("root =")) {
        return None;
    }
    if group.is_files && !group.action.iter().any(|line| line == index) {
        return None;
    }
    paths.remove(at);
    let moved = group.action.iter().filter(|line| !line.starts_with("index ="));
    let moved: Vec<String> = moved.filter(|line| *line != "fallback = 404").cloned().collect();
    lines.extend(moved.iter().cloned());
    moved.into_iter().find(|line| line.starts_with("fallback ="))
}

/// Leaves out lines that the site has already.
fn quiet(paths: &mut [Path], index: &str, fallback: Option<String>) {
    for group in groups_of(paths) {
        group.action.retain(|line| line != index && Some(line) != fallback.as_ref());
        if fallback.is_none() {
            group.action.retain(|line| line != "fallback = 404");
        }
    }
}

/// The settings of files that are those of the site.
fn file_lines(facts: &Facts<'_>, context: &Context<'_>) -> Vec<String> {
    let mut lines = Vec::new();
    lines.extend(facts.root.as_ref().map(|root| format!("root = {}", quoted(root))));
    let Some((to, root)) = &facts.php else { return lines };
    lines.push(format!("php = {}", quoted(to)));
    lines.extend(root.as_ref().map(|root| format!("php_root = {}", quoted(root))));
    let scope = script_scope(&facts.scope);
    let pairs = php::parameters(context, &scope).unwrap_or_default();
    if !pairs.is_empty() {
        lines.push(format!("php_params = {}", table(&pairs)));
    }
    lines
}

/// That of the first location that runs scripts.
fn script_scope<'d>(scope: &Scope<'d>) -> Scope<'d> {
    let mut locations = scope.here().iter().filter(|one| one.is("location"));
    let runs = |one: &&Directive| one.children().iter().any(|inner| inner.is("fastcgi_pass"));
    locations.find(runs).map_or_else(|| scope.clone(), |one| scope.within(one.children()))
}

/// Media types of the server's own.
fn types(scope: &Scope<'_>) -> Vec<(String, String)> {
    let Some(types) = scope.last("types") else { return Vec::new() };
    if types.file.ends_with("mime.types") {
        return Vec::new();
    }
    let mut pairs: Vec<(String, String)> = Vec::new();
    for line in types.children() {
        for extension in line.words.iter().filter(|one| is_plain(one) && !one.contains(['.', '/']))
        {
            if line.name.contains('/') && !pairs.iter().any(|(known, _)| known == extension) {
                pairs.push((extension.to_ascii_lowercase(), line.name.clone()));
            }
        }
    }
    pairs
}
