//! Whether the answer of a server is kept for others, and whether other machines are asked for it.

use afpa_config::{CacheMode, SiteCache};

/// How the shared cache treats such a request, and why.
pub(super) fn kept(
    cache: &SiteCache,
    mode: CacheMode,
    method: &str,
    fields: &[(String, String)],
) -> String {
    let has = |wanted: &str| fields.iter().any(|(name, _)| name.eq_ignore_ascii_case(wanted));
    if mode == CacheMode::Off {
        return "off: no answer is kept".to_owned();
    }
    match method {
        "GET" => {}
        "HEAD" => return "answered from what GET has kept, else passed on".to_owned(),
        "OPTIONS" | "TRACE" | "CONNECT" => return format!("not used for {method}"),
        "PURGE" if !cache.purge_from.is_empty() => {
            return "drops what is kept for the URL, for clients in `purge_from`".to_owned();
        }
        _ => return format!("{method} drops what is kept for the URL, if it succeeds"),
    }
    if let Some(name) = cache.bypass_headers.iter().find(|name| has(name)) {
        return format!("not used: the request has the field {name} (`bypass_headers`)");
    }
    let cookies = fields.iter().filter(|(name, _)| name.eq_ignore_ascii_case("cookie"));
    let cookies = cookies.flat_map(|(_, value)| value.split(';'));
    let named = |cookie: &str| cookie.trim().split('=').next().unwrap_or_default().to_owned();
    let lists = |name: &str| {
        cache.bypass_cookies.iter().any(|listed| match listed.strip_suffix('*') {
            Some(begin) => name.starts_with(begin),
            None => name == listed,
        })
    };
    if let Some(name) = cookies.map(named).find(|name| lists(name)) {
        return format!("not used: the request has the cookie {name} (`bypass_cookies`)");
    }
    if has("if-match") || has("if-unmodified-since") {
        return "not used: the server alone can tell whether the condition holds".to_owned();
    }
    let mut text = match mode {
        CacheMode::Heuristic => "heuristic: kept unless the answer forbids it".to_owned(),
        _ => "auto: kept if the answer says so".to_owned(),
    };
    if has("authorization") {
        text.push_str(", and says that it is for others (public, s-maxage, must-revalidate)");
    }
    text
}

/// Whether other machines are asked for the answer to such a request, as far as its fields say.
pub(super) fn asks_others(method: &str, fields: &[(String, String)]) -> bool {
    const NOT_WITH: [&str; 5] =
        ["authorization", "range", "if-match", "if-unmodified-since", "upgrade"];
    let is_out =
        |(name, _): &(String, String)| NOT_WITH.iter().any(|out| name.eq_ignore_ascii_case(out));
    method == "GET" && !fields.iter().any(is_out)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn other_machines_are_asked_for_what_they_may_keep() {
        let field = |name: &str| vec![(name.to_owned(), "x".to_owned())];
        assert!(asks_others("GET", &[]) && asks_others("GET", &field("Cookie")));
        assert!(!asks_others("HEAD", &[]) && !asks_others("GET", &field("Authorization")));
        assert!(!asks_others("GET", &field("Range")));
    }
}
