//! Files: `root`, `alias`, `index`, `try_files`, `autoindex`.

use crate::facts::{Facts, Place, limits};
use crate::guards::gives;
use crate::model::Group;
use crate::syntax::Directive;
use crate::upstream::{Context, texts};
use crate::values::{is_plain, quoted};
use crate::{proxy, rewrites, scope::Scope};

/// Where relative names of `root` begin in Debian's nginx.
const HOME: &str = "/usr/share/nginx";

/// The directory of a scope, absolute; `None`: there is none, or it depends on a variable.
pub(crate) fn root(scope: &Scope<'_>) -> Option<String> {
    let root = scope.value("root");
    if root.is_empty() || !is_plain(root) {
        return None;
    }
    let absolute = match root.starts_with('/') {
        true => root.to_owned(),
        false => format!("{HOME}/{root}"),
    };
    Some(match absolute.trim_end_matches('/') {
        "" => "/".to_owned(),
        trimmed => trimmed.to_owned(),
    })
}

/// The names of index files.
pub(crate) fn index(scope: &Scope<'_>) -> Vec<String> {
    let words = scope.all("index").into_iter().flat_map(|directive| &directive.words);
    let fits = |word: &&String| is_plain(word) && !word.contains('/');
    let names: Vec<String> = words.filter(fits).cloned().collect();
    if names.is_empty() { vec!["index.html".to_owned()] } else { names }
}

/// Serves files.
pub(crate) fn group(
    context: &Context<'_>,
    facts: &Facts<'_>,
    place: &Place<'_>,
    fallback: Option<String>,
) -> Group {
    let mut group = Group { is_files: true, ..Group::default() };
    let directory = match directory(facts, place) {
        Ok(directory) => directory,
        Err((directive, why)) => {
            match directive.or(place.location) {
                Some(directive) => context.ledger.refused(directive, why + ": the answer is 501"),
                None => return Group::status(404),
            }
            return Group::status(501);
        }
    };
    group.action.extend(directory.as_ref().map(|root| format!("root = {}", quoted(root))));
    group.action.push(match only_files(place) {
        true => "index = [\".none\"] # a directory is no file here".to_owned(),
        false => texts("index", &index(&place.scope)),
    });
    for directive in place.scope.all("index") {
        if directive.words.iter().any(|word| !is_plain(word) || word.contains('/')) {
            context.ledger.left(directive, "AFPA takes names of files in the directory");
        }
    }
    group.is_listing = place.scope.is_on("autoindex");
    if let Some(listing) = place.scope.last("autoindex").filter(|_| group.is_listing) {
        facts.listings.borrow_mut().push(listing.clone());
    }
    let given = place.scope.here().iter().find(|directive| directive.is("try_files"));
    let own = facts.fallback.clone().filter(|_| directory.is_none());
    let found = match (given, own.clone().or(fallback)) {
        (_, Some(fallback)) if own.is_some() => Ok((fallback, Vec::new())),
        (Some(directive), _) => try_files(context, facts, place, directive, directory.is_some()),
        (None, fallback) => Ok((fallback.unwrap_or_else(|| "404".to_owned()), Vec::new())),
    };
    let (fallback, sent) = found.unwrap_or_else(|why| {
        let directive = given.or(place.location);
        if let Some(directive) = directive {
            let why = format!("{why}: what is no file is answered with 501");
            context.ledger.refused(directive, why);
        }
        ("501".to_owned(), Vec::new())
    });
    group.sent.extend((!sent.is_empty()).then_some(sent));
    let is_status = fallback.bytes().all(|byte| byte.is_ascii_digit());
    let value = match (&*fallback, given) {
        ("404", Some(_)) if own.is_none() && only_files(place) => {
            "404 # of a directory without index file as well".to_owned()
        }
        (fallback, _) if is_status => fallback.to_owned(),
        (fallback, _) => quoted(fallback),
    };
    group.action.push(format!("fallback = {value}"));
    if facts.php.is_some() && !place.runs_scripts {
        group.action.push("php = \"none\"".to_owned());
    }
    let asks_server = !is_status && (!fallback.starts_with('/') || fallback.ends_with(".php"));
    if asks_server {
        group.rules.extend(limits(context, place, "proxy"));
        group.rules.push("cache = \"off\"".to_owned());
    }
    group
}

/// Whether a `try_files` looks for no directory; names that begin with a dot are never served.
fn only_files(place: &Place<'_>) -> bool {
    let given = place.scope.here().iter().find(|directive| directive.is("try_files"));
    given.is_some_and(|given| !given.words.iter().any(|word| word == "$uri/"))
}

/// The directory in the place of the prefix, where it is not that of the site; the error is about a directive.
fn directory<'d>(
    facts: &Facts<'_>,
    place: &Place<'d>,
) -> Result<Option<String>, (Option<&'d Directive>, String)> {
    let alias = place.scope.here().iter().find(|directive| directive.is("alias"));
    if let Some(alias) = alias {
        let path = alias.word(0);
        if !is_plain(path) || !path.starts_with('/') {
            return Err((Some(alias), "AFPA takes an absolute path without variables".to_owned()));
        }
        if place.is_regex || !place.prefix.ends_with('/') || place.exact {
            return Err((
                Some(alias),
                "AFPA puts a directory in the place of a path that ends with a slash".to_owned(),
            ));
        }
        let trimmed = path.trim_end_matches('/');
        return Ok(Some(if trimmed.is_empty() { "/" } else { trimmed }.to_owned()));
    }
    let Some(root) = root(&place.scope) else {
        let directive = place.scope.last("root");
        return Err((directive, "there is no `root` without variables here".to_owned()));
    };
    if facts.root.as_deref() == Some(&root) {
        return Ok(None);
    }
    let directive = place.scope.last("root");
    if place.exact || !place.prefix.ends_with('/') {
        let why = "AFPA takes another directory for a path that ends with a slash";
        return Err((directive, why.to_owned()));
    }
    let below = format!("{}{}", root.trim_end_matches('/'), place.prefix.trim_end_matches('/'));
    Ok(Some(if below.is_empty() { "/".to_owned() } else { below }))
}

/// The value of `fallback` for a `try_files`, and the fields of requests that go with it.
fn try_files(
    context: &Context<'_>,
    facts: &Facts<'_>,
    place: &Place<'_>,
    directive: &Directive,
    foreign: bool,
) -> Result<(String, Vec<String>), String> {
    let alone = |value: String| (value, Vec::new());
    let Some((last, first)) = directive.words.split_last() else {
        return Err("it says nothing".to_owned());
    };
    let files = ["$uri", "$document_uri", "$fastcgi_script_name"];
    let shapes = first
        .iter()
        .all(|word| files.contains(&&**word) || word == "$uri/" || word == "$uri/index.html");
    if !shapes || !first.iter().any(|word| files.contains(&&**word)) {
        return Err("AFPA looks for the file of the URL alone".to_owned());
    }
    if last == "=404" {
        return Ok(alone("404".to_owned()));
    }
    if let Some(code) = last.strip_prefix('=') {
        let fits = |code: &u16| matches!(code, 200 | 204 | 400 | 402..=406 | 408..=599);
        let code = code.parse::<u16>().ok().filter(fits);
        return code
            .map(|code| alone(code.to_string()))
            .ok_or("AFPA has no such answer".to_owned());
    }
    if last.starts_with('@') {
        return proxy::named(context, facts, place, last);
    }
    let (path, query) = last.split_once('?').unwrap_or((last, ""));
    let path = path.strip_suffix("$is_args$args").unwrap_or(path);
    let with_path = path.strip_suffix("$request_uri").or_else(|| path.strip_suffix("$uri"));
    let path = match with_path.filter(|script| script.ends_with(".php")) {
        Some(script) => {
            let why = "the script finds the path in REQUEST_URI, not in PATH_INFO";
            context.ledger.differs(directive, why);
            script
        }
        None => path,
    };
    if !matches!(query, "" | "$args" | "$query_string" | "$is_args$args" | "q=$uri&$args")
        || !is_plain(path)
    {
        return Err("AFPA takes a file, a server or a status".to_owned());
    }
    if query.starts_with("q=") {
        context
            .ledger
            .differs(directive, "scripts find the path in REQUEST_URI, not in a parameter q");
    }
    if !gives(context, facts, path, &place.scope) {
        return Err("others may use its file than may use this place".to_owned());
    }
    file(facts, place, path, foreign).map(alone)
}

/// A file that stands in for what is none.
fn file(facts: &Facts<'_>, place: &Place<'_>, path: &str, foreign: bool) -> Result<String, String> {
    let name = path.rsplit('/').next().unwrap_or_default();
    if !path.starts_with('/')
        || !name.contains('.')
        || path.contains(['%', '#'])
        || path.contains("//")
    {
        return Err("AFPA takes the path of a file".to_owned());
    }
    if path.ends_with(".php") && facts.php.is_none() {
        return Err("nothing runs this script".to_owned());
    }
    if path.ends_with(".php") && foreign {
        return Err("its script is in another directory".to_owned());
    }
    match foreign {
        false => Ok(path.to_owned()),
        true => {
            let rest = path.strip_prefix(&place.prefix);
            rest.map(|rest| format!("/{rest}")).ok_or("its file is in another directory".to_owned())
        }
    }
}

/// The value of `fallback` for `if (!-e $request_filename) { rewrite ^ /index.php last; }`.
pub(crate) fn fallback_of_if(
    context: &Context<'_>,
    facts: &Facts<'_>,
    place: &Place<'_>,
    directive: &Directive,
) -> Option<String> {
    let (rewrite, script) = rewrites::of_if(directive)?;
    let is_script = script.ends_with(".php");
    let fits = file(facts, place, script, !is_script && directory(facts, place).ok()?.is_some());
    if fits.as_deref() != Ok(script) || !gives(context, facts, script, &place.scope) {
        return None;
    }
    if is_script && rewrite.word(1).contains("$1") {
        let why = "scripts find the path in REQUEST_URI, not in PATH_INFO or a parameter";
        context.ledger.differs(rewrite, why);
    }
    Some(script.to_owned())
}

/// The same for an `if` of the server, which goes before all of its locations: they must leave what is no file to it.
pub(crate) fn fallback_of_server(context: &Context<'_>, facts: &Facts<'_>) -> Option<String> {
    let here = facts.scope.here();
    let directive = here.iter().find(|one| rewrites::is_fallback(one))?;
    let others = |one: &Directive| matches!(&*one.name, "if" | "rewrite" | "return");
    let alone = here.iter().filter(|one| others(one)).all(|one| one.id == directive.id);
    let place = Place {
        scope: facts.scope.clone(),
        prefix: "/".to_owned(),
        exact: false,
        location: None,
        is_regex: false,
        runs_scripts: false,
    };
    let found = || fallback_of_if(context, facts, &place, directive);
    (alone && leave_absent(here)).then(found).flatten()
}

/// Whether locations answer with files or scripts alone, or refuse.
fn leave_absent(block: &[Directive]) -> bool {
    block.iter().filter(|one| one.is("location")).all(|location| {
        let refuses = location
            .children()
            .iter()
            .any(|one| one.is("return") && one.word(0).starts_with('4') && one.words.len() == 1);
        let others = ["alias", "root", "rewrite", "return", "if", "error_page"];
        let answers = |one: &Directive| {
            others.contains(&&*one.name) || one.name.ends_with("_pass") && !one.is("fastcgi_pass")
        };
        let acts = location.children().iter().any(answers);
        (refuses || !acts) && leave_absent(location.children())
    })
}
