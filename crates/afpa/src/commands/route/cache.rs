//! Whether the answer of a server is kept for others, and whether other machines are asked for it.

use afpa_router::{GroupId, RequestSet, Verdict};

use super::told::{Look, Told};
use afpa_config::{CacheMode, SiteCache};

impl Told<'_> {
    /// The path that a server is asked for, and whether it has to be asked.
    pub(super) fn distributed(
        &mut self,
        look: &Look<'_>,
        verdict: &Verdict<'_, '_>,
        set: &RequestSet,
        group: GroupId,
    ) {
        let Look { question, method, spelled, .. } = *look;
        let (fields, _) = question.fields;
        let mut room = Vec::new();
        let at_server = match verdict.content.target() {
            None => verdict.path.spelled(spelled, question.path.len(), &mut room),
            Some(_) => {
                room = verdict.target(&question, spelled).unwrap_or_default();
                &room
            }
        };
        self.row("asks for", &String::from_utf8_lossy(at_server));
        let config = &self.loaded.config;
        let Some(site) = config.sites.get(set.site.0 as usize) else { return };
        let mode = site.cache_mode(set.path, set.content);
        self.row("cache", &kept(&site.cache, mode, method, fields));
        let group = config.groups.get(group.0 as usize);
        let is_http = group.is_some_and(|group| !group.settings.fastcgi);
        let is_same = verdict.content.target().is_none() && !site.compresses(set.path, set.content);
        if config.peers_listen().is_some()
            && (is_http && is_same && mode != CacheMode::Off)
            && asks_others(method, fields)
        {
            self.row("fleet", "a miss asks the machine that keeps the answer, then the server");
        }
        self.limits(site.server_limits(set.path, set.content));
        self.mirror(site.mirror_of(set.path, set.content));
    }
}

/// How the shared cache treats such a request, and why.
fn kept(cache: &SiteCache, mode: CacheMode, method: &str, fields: &[(String, String)]) -> String {
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
fn asks_others(method: &str, fields: &[(String, String)]) -> bool {
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
