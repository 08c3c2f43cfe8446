//! Which texts are valid conditions of paths, content groups and sites.

use afpa_router::{BadExpression, Expression, Pattern};

use super::{host_pattern, token};
use crate::suggest;
use crate::units::Unfit;

/// Methods: those that IANA has registered, and three that caches and devices use.
const METHODS: [&str; 42] = [
    "ACL",
    "BAN",
    "BASELINE-CONTROL",
    "BIND",
    "CHECKIN",
    "CHECKOUT",
    "CONNECT",
    "COPY",
    "DELETE",
    "GET",
    "HEAD",
    "LABEL",
    "LINK",
    "LOCK",
    "MERGE",
    "MKACTIVITY",
    "MKCALENDAR",
    "MKCOL",
    "MKREDIRECTREF",
    "MKWORKSPACE",
    "MOVE",
    "NOTIFY",
    "OPTIONS",
    "ORDERPATCH",
    "PATCH",
    "POST",
    "PROPFIND",
    "PROPPATCH",
    "PURGE",
    "PUT",
    "QUERY",
    "REBIND",
    "REPORT",
    "SEARCH",
    "TRACE",
    "UNBIND",
    "UNCHECKOUT",
    "UNLINK",
    "UNLOCK",
    "UPDATE",
    "UPDATEREDIRECTREF",
    "VERSION-CONTROL",
];

/// A method; they are written in capitals.
pub(crate) fn method(text: &str) -> Result<String, Unfit> {
    let method = token(text)?;
    if METHODS.contains(&text) {
        return Ok(method);
    }
    let upper = method.to_ascii_uppercase();
    if METHODS.contains(&&*upper) {
        let cause = format!("\"{text}\": case matters in methods");
        return Err(Unfit::new(cause, format!("did you mean \"{upper}\"?")));
    }
    let remedy = match suggest::nearest(&upper, METHODS.into_iter()) {
        Some(near) => format!("did you mean \"{near}\"?"),
        None => "methods are GET, POST, PUT, PATCH, DELETE, OPTIONS and those of WebDAV".to_owned(),
    };
    Err(Unfit::new(format!("there is no method \"{text}\""), remedy))
}

/// A text with stars at its ends, or a tilde and a regular expression.
pub(crate) fn pattern(text: &str) -> Result<String, Unfit> {
    Pattern::read(text).map(|_| text.to_owned()).map_err(|why| unfit(text, &why))
}

/// A field or cookie and what its value must be.
pub(crate) fn condition(name: &str, value: &str) -> Result<(String, String), Unfit> {
    Ok((token(name)?, pattern(value)?))
}

/// A parameter of the query, as applications name it, and what its value must be.
pub(crate) fn parameter(name: &str, value: &str) -> Result<(String, String), Unfit> {
    if name.is_empty() || name.contains(['&', '=']) {
        let cause = format!("\"{name}\" is not the name of a parameter");
        return Err(Unfit::new(cause, "write the name and the value apart: { page = \"2\" }"));
    }
    Ok((name.to_owned(), pattern(value)?))
}

/// A pattern for normalised paths.
pub(crate) fn path_pattern(text: &str) -> Result<String, Unfit> {
    if !text.starts_with(['/', '*', '~']) {
        let cause = format!("no path fits \"{text}\": paths begin with a slash");
        let remedy =
            format!("write \"~{text}\" for a regular expression, or \"*{text}\" for an end");
        return Err(Unfit::new(cause, remedy));
    }
    pattern(text)
}

/// A host name as a site answers to it: a name, `*.` before one, or a tilde and a regular expression.
pub(crate) fn site_host(text: &str) -> Result<String, Unfit> {
    match Expression::marked(text) {
        Some(read) => read.map(|_| text.to_owned()).map_err(|why| unfit(text, &why)),
        None => host_pattern(text),
    }
}

/// The fault of a text that is no regular expression.
pub(crate) fn unfit(text: &str, why: &BadExpression) -> Unfit {
    Unfit::new(format!("\"{text}\" is no regular expression: {why}"), why.remedy())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn methods_are_known_and_in_capitals() {
        assert_eq!(method("PROPFIND").as_deref(), Ok("PROPFIND"));
        for (text, remedy) in [
            ("get", "did you mean \"GET\"?"),
            ("GTE", "did you mean \"GET\"?"),
            ("Fetch", "methods are GET"),
            ("A B", "use letters"),
        ] {
            assert!(method(text).unwrap_err().remedy.starts_with(remedy), "{text}");
        }
        assert!(METHODS.is_sorted());
    }

    #[test]
    fn patterns_compile_before_they_are_used() {
        for text in ["*", "a*", "~^a|b$", "~*A", ""] {
            assert!(pattern(text).is_ok(), "{text}");
        }
        let refused = pattern("~(a").unwrap_err();
        assert_eq!(refused.cause, "\"~(a\" is no regular expression: unclosed group");
        let refused = pattern("~((a{1,200}){1,200}){1,200}").unwrap_err();
        assert!(refused.cause.ends_with("takes more than 262144 bytes of memory"), "{refused:?}");
        let refused = path_pattern("^/a").unwrap_err();
        assert_eq!(
            refused.remedy,
            "write \"~^/a\" for a regular expression, or \"*^/a\" for an end"
        );
        assert!(parameter("", "1").is_err() && parameter("a=b", "1").is_err());
        assert!(parameter("ids[]", "~^\\d+$").is_ok());
        assert_eq!(site_host("~^www\\d+[.]").as_deref(), Ok("~^www\\d+[.]"));
        assert_eq!(site_host("*.A.org").as_deref(), Ok("*.a.org"));
        assert!(site_host("~(").is_err() && site_host("a*.org").is_err());
    }
}
