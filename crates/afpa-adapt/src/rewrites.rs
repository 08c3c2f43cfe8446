//! `rewrite` with groups, and `rewrite` that stays inside: AFPA's `if_path` with `redirect` or `rewrite`.

use crate::facts::Facts;
use crate::kind::{matches, may_match};
use crate::model::Group;
use crate::syntax::Directive;
use crate::values::{expression, is_plain, quoted};

/// A text in which `$1` and `$name` stand for groups of an expression, as AFPA writes them; `None`: it has other variables.
pub(crate) fn with_groups(text: &str, expression: &str) -> Option<String> {
    let mut builder = regex::bytes::RegexBuilder::new(expression);
    let built = builder.unicode(false).size_limit(200 << 10).build().ok()?;
    let (mut out, mut rest) = (String::new(), text);
    while let Some((before, behind)) = rest.split_once('$') {
        out += before;
        let (braced, behind) = match behind.strip_prefix('{') {
            Some(behind) => (true, behind),
            None => (false, behind),
        };
        let is_number = behind.starts_with(|c: char| c.is_ascii_digit());
        let fits = |c: char| c.is_ascii_alphanumeric() || c == '_';
        let end = match is_number {
            true => 1,
            false => behind.find(|c| !fits(c)).unwrap_or(behind.len()),
        };
        let (name, behind) = behind.split_at(end);
        let is_group = match name.parse::<usize>() {
            Ok(number) => (1..built.captures_len()).contains(&number),
            Err(_) => built.capture_names().flatten().any(|known| known == name),
        };
        if !is_group {
            return None;
        }
        out += &format!("{{{name}}}");
        rest = if braced { behind.strip_prefix('}')? } else { behind };
    }
    Some(out + rest)
}

/// The condition on the path for an expression.
pub(crate) fn condition(text: &str, any_case: bool) -> Result<String, String> {
    expression(text, any_case).map(|pattern| format!("if_path = [{}]", quoted(&pattern)))
}

/// The group for a `rewrite` that stays inside, and is routed again.
pub(crate) fn inner(facts: &Facts<'_>, directive: &Directive) -> Result<Group, String> {
    let text = directive.word(0);
    let new = text_of(directive)?;
    let path = new.split('?').next().unwrap_or_default();
    // Rewrites of the server run once in nginx.
    if let Some(other) = facts.scope.here().iter().find(|one| may_rewrite(one, path)) {
        return Err(format!("{} {} would meet it again", other.name, other.word(0)));
    }
    let action = vec![format!("rewrite = {}", quoted(&new))];
    let pattern = Some((text.to_owned(), false));
    Ok(Group { conditions: vec![condition(text, false)?], action, pattern, ..Group::default() })
}

/// Whether a directive of the server looks at a path, and may meet this one.
fn may_rewrite(directive: &Directive, path: &str) -> bool {
    let looks = ["$uri", "$document_uri", "$request_uri", "$request_filename"];
    match &*directive.name {
        "rewrite" => match path.split_once('{') {
            None => matches(directive.word(0), false, path),
            Some((begin, _)) => may_match(directive.word(0), begin),
        },
        "if" => directive.words.iter().any(|word| looks.iter().any(|look| word.contains(look))),
        _ => false,
    }
}

/// The text of AFPA's `rewrite`: a path, and a query behind which that of the client stands, unless nginx drops it.
pub(crate) fn text_of(directive: &Directive) -> Result<String, String> {
    let new = directive.word(1);
    let (new, drops) = match new.strip_suffix('?') {
        Some(new) => (new, true),
        None => (new, false),
    };
    let printable = |byte: u8| (b'!'..=b'~').contains(&byte);
    let braces = new.replace("${", "").contains('{');
    if !new.starts_with('/') || new.starts_with("//") || braces || !new.bytes().all(printable) {
        return Err("AFPA takes a path".to_owned());
    }
    let text = with_groups(new, directive.word(0));
    let text = text.ok_or("its path has variables that AFPA has not (docs/rewrites.md)")?;
    Ok(match (text.contains('?'), drops) {
        (true, false) => text + "{query}",
        (false, true) => text + "?",
        _ => text,
    })
}

/// The file or script that an `if` gives for what is no file, and the `rewrite` that says so.
pub(crate) fn of_if(directive: &Directive) -> Option<(&Directive, &str)> {
    let text = directive.words.join(" ").replace(' ', "");
    let asks = ["(!-e$request_filename)", "(!-f$request_filename)"].contains(&&*text);
    let (rewrite, behind) = directive.children().split_first()?;
    let all = ["^", ".", "^.*$", "^(.*)$", ".*", "^/(.*)$", "^(.+)$", "^/(.+)$"];
    // A `break` before it keeps nginx from the rewrite, one behind it or as its flag from the location of the new path. The
    // other flags redirect.
    let goes_on = match rewrite.word(2) {
        "last" => behind.iter().all(|one| one.is("break")),
        "" => behind.is_empty(),
        _ => false,
    };
    let is_all = rewrite.is("rewrite") && asks && goes_on && all.contains(&rewrite.word(0));
    let new = rewrite.word(1);
    let (path, query) = new.split_once('?').unwrap_or((new, ""));
    let path = path.strip_suffix("/$1").filter(|path| path.ends_with(".php")).unwrap_or(path);
    let queries = ["", "$args", "$query_string", "q=$1", "q=$1&$args", "$1", "/$1", "q=$uri&$args"];
    let fits = is_all && queries.contains(&query) && is_plain(path) && path.starts_with('/');
    fits.then_some((rewrite, path))
}

/// Whether an `if` gives a file or script for what is no file.
pub(crate) fn is_fallback(directive: &Directive) -> bool {
    directive.is("if") && of_if(directive).is_some()
}
