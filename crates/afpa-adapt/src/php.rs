//! PHP by `fastcgi_pass`.

use crate::facts::{Facts, Place, limits};
use crate::model::Group;
use crate::scope::Scope;
use crate::syntax::Directive;
use crate::upstream::{Context, Settings};
use crate::values::{is_plain, quoted};

/// The usual expressions for scripts.
const SCRIPTS: &[&str] = &[
    "\\.php$",
    "\\.php",
    "\\.php(/|$)",
    "\\.php(?:$|/)",
    "[^/]\\.php(/|$)",
    "^(.+\\.php)(/.+)?$",
    "\\.php(?:/|$)",
    "^.+\\.php$",
    ".php$",
    "^(.+?\\.php)(/.*)?$",
    "^.+\\.php(/|$)",
    "\\.php(/.*)?$",
    "\\.php($|/)",
    "(.+)\\.php$",
];

/// Whether an expression is for scripts: all of them, or one by its name.
pub(crate) fn is_for_scripts(expression: &str) -> bool {
    SCRIPTS.contains(&expression) || is_for_one(expression)
}

/// `^/index\.php(/|$)`
fn is_for_one(expression: &str) -> bool {
    let ends = ["\\.php(/|$)", "\\.php$", "\\.php(?:$|/)", "\\.php(?:/|$)", "\\.php"];
    let name = expression.strip_prefix("^/");
    let name = name.and_then(|name| ends.iter().find_map(|end| name.strip_suffix(end)));
    let fits = |c: char| c.is_ascii_alphanumeric() || "/_-".contains(c);
    name.is_some_and(|name| !name.is_empty() && name.chars().all(fits))
}

/// Whether an `if` of a location that runs scripts gives 404 for one that is not there, as AFPA does by itself.
pub(crate) fn is_look_for_script(location: &Directive, directive: &Directive) -> bool {
    let asked = directive.words.join("").replace(' ', "");
    let files = ["$document_root$fastcgi_script_name", "$request_filename"];
    let looks =
        files.iter().any(|file| asked == format!("(!-f{file})") || asked == format!("(!-e{file})"));
    let [only] = directive.children() else { return false };
    let runs = location.children().iter().any(|inner| inner.is("fastcgi_pass"));
    looks && runs && only.is("return") && only.words.len() == 1 && only.word(0) == "404"
}

/// The beginnings of `rewrite ^/(?!index|remote) /index.php$request_uri;`, behind which scripts are run.
pub(crate) fn only(place: &Place<'_>, directive: &Directive) -> Option<String> {
    let location = place.location.filter(|_| place.is_regex)?;
    let list = directive.word(0).strip_prefix("^/(?!")?.strip_suffix(')')?;
    let is_php = location.children().iter().any(|one| one.is("fastcgi_pass"));
    let to_script = directive.word(1).starts_with("/index.php");
    (is_php && to_script && !list.contains('(')).then(|| list.to_owned())
}

/// Runs the scripts with these beginnings, and no others.
pub(crate) fn some(main: Group, only: &str, front: &mut Vec<Group>) -> Group {
    let by_path = |pattern: &str| vec![format!("if_path = [{}]", quoted(pattern))];
    let conditions = by_path(&format!("~^/(?:{only}).*\\.php(?:$|/)"));
    let none = Group {
        conditions: by_path("~\\.php(?:$|/)"),
        action: vec!["fallback = 404".to_owned(), "php = \"none\"".to_owned()],
        is_files: true,
        ..Group::default()
    };
    front.push(Group { conditions, ..main });
    none
}

/// The servers of PHP-FPM, and the value of `php_root` if it is another directory; the error says why they are not
/// asked.
pub(crate) fn servers(
    context: &Context<'_>,
    scope: &Scope<'_>,
    pass: &Directive,
) -> Result<(String, Option<String>), String> {
    let to = context.destination(pass.word(0), 9000, Settings::new())?;
    let script = parameter(scope, "SCRIPT_FILENAME");
    let usual = [
        "$document_root$fastcgi_script_name",
        "$request_filename",
        "$realpath_root$fastcgi_script_name",
        "$document_root/$fastcgi_script_name",
        "$document_root$fastcgi_path_info",
        "",
    ];
    if usual.contains(&script) {
        return Ok((to, None));
    }
    let root = script.strip_suffix("$fastcgi_script_name").map(|root| root.trim_end_matches('/'));
    match root.filter(|root| root.starts_with('/') && is_plain(root)) {
        Some(root) => Ok((to, Some(root.to_owned()))),
        None => Err("AFPA runs the file of the URL alone".to_owned()),
    }
}

fn parameter<'d>(scope: &Scope<'d>, name: &str) -> &'d str {
    let found = scope.all("fastcgi_param").into_iter().rfind(|param| param.word(0) == name);
    found.map_or("", |param| param.word(1))
}

/// Parameters beside the usual ones. The error names one that has to be there.
pub(crate) fn parameters<'d>(
    context: &Context<'_>,
    scope: &Scope<'d>,
) -> Result<Vec<(String, String)>, (&'d Directive, String)> {
    let mut pairs: Vec<(String, String)> = Vec::new();
    for directive in scope.all("fastcgi_param") {
        let (name, value) = (directive.word(0), directive.word(1));
        let is_name = name.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_');
        if is_usual(name, value) {
            continue;
        }
        if is_plain(value) && is_name {
            pairs.retain(|(known, _)| known != name);
            pairs.push((name.to_owned(), value.to_owned()));
        } else if name.starts_with("PHP_") {
            return Err((directive, "AFPA's parameters have no variables".to_owned()));
        } else {
            context.ledger.left(directive, "AFPA's parameters have no variables");
        }
    }
    Ok(pairs)
}

/// Whether AFPA says it itself.
fn is_usual(name: &str, value: &str) -> bool {
    let own = [
        "SCRIPT_FILENAME",
        "PATH_INFO",
        "PATH_TRANSLATED",
        "QUERY_STRING",
        "REQUEST_METHOD",
        "CONTENT_TYPE",
        "CONTENT_LENGTH",
        "SCRIPT_NAME",
        "REQUEST_URI",
        "DOCUMENT_URI",
        "DOCUMENT_ROOT",
        "SERVER_PROTOCOL",
        "REQUEST_SCHEME",
        "GATEWAY_INTERFACE",
        "SERVER_SOFTWARE",
        "REMOTE_ADDR",
        "REMOTE_PORT",
        "REMOTE_USER",
        "SERVER_ADDR",
        "SERVER_PORT",
        "SERVER_NAME",
        "REDIRECT_STATUS",
        "HTTP_PROXY",
        "HTTP_HOST",
    ];
    own.contains(&name) || (name == "HTTPS" && value == "$https")
}

/// Runs scripts.
pub(crate) fn group(
    context: &Context<'_>,
    facts: &Facts<'_>,
    place: &Place<'_>,
    pass: &Directive,
) -> Result<Group, String> {
    let expression = place.location.map_or("", |location| match crate::kind::kind(location) {
        crate::kind::Kind::Regex(text, _) => text,
        _ => "",
    });
    if place.is_regex && !is_for_scripts(expression) {
        return Err("AFPA runs all files whose names end in .php, and nothing else".to_owned());
    }
    if !place.is_regex && !place.prefix.contains(".php") {
        return Err("AFPA runs files whose names end in .php".to_owned());
    }
    let (to, root) = servers(context, &place.scope, pass)?;
    let mut group = Group { is_files: true, ..Group::default() };
    if place.is_regex && !is_for_one(expression) {
        group.conditions.push("extensions = [\"php\"]".to_owned());
    }
    group.action.push(match &facts.fallback {
        Some(fallback) => format!("fallback = {}", quoted(fallback)),
        None => "fallback = 404".to_owned(),
    });
    if facts.php.as_ref() != Some(&(to.clone(), root.clone())) {
        group.action.push(format!("php = {}", quoted(&to)));
        group.action.extend(root.map(|root| format!("php_root = {}", quoted(&root))));
    }
    group.rules.extend(limits(context, place, "fastcgi"));
    group.rules.push("cache = \"off\"".to_owned());
    Ok(group)
}
