//! Which targets may be kept, and which of them a purge is about.

use afpa_http::target::{ESCAPED_SLASH, is_simplest, normalise};

/// The targets that may be kept.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct KeptScope {
    /// Paths: each stands for itself and for all below it. None: nothing is kept.
    pub prefixes: Vec<String>,
    /// Paths that are left to the server, in the same form, even below one of `prefixes`.
    pub excluded: Vec<String>,
    /// How many targets are looked at, kept or not.
    pub most: usize,
    /// A target with a query is asked for only after this many clients have asked for it: anybody can think of
    /// queries.
    pub clients: usize,
}

/// The targets of a purge.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Which {
    /// Everything.
    All,
    /// A path, and a query; `None`: with any query.
    Url(Vec<u8>, Option<Vec<u8>>),
    /// Everything whose path begins so.
    Below(Vec<u8>),
}

impl KeptScope {
    /// Whether anything is kept at all.
    pub fn is_empty(&self) -> bool {
        self.prefixes.is_empty()
    }

    /// Whether a request target may be kept. Its path must be in its simplest spelling, because unsafe requests for any other
    /// count for all targets, and one for this counts for no other; so no spelling leads around an exclusion, either. It has no
    /// escaped slash, which a server may take for a separator.
    pub fn covers(&self, target: &[u8]) -> bool {
        let plain =
            target.iter().all(|byte| matches!(byte, b'!'..=b'~')) && !target.contains(&b'#');
        let (path, _) = split(target);
        let mut scratch = Vec::new();
        if !is_simplest(path) {
            return false;
        }
        let Ok(path) = normalise(path, &mut scratch) else { return false };
        if path.contains(&ESCAPED_SLASH) {
            return false;
        }
        let below = |prefixes: &[String]| prefixes.iter().any(|prefix| is_below(path, prefix));
        plain && below(&self.prefixes) && !below(&self.excluded)
    }
}

impl Which {
    /// Whether it is about this target.
    pub fn is_about(&self, target: &[u8]) -> bool {
        let (path, query) = split(target);
        let mut scratch = Vec::new();
        let path = normalise(path, &mut scratch).unwrap_or_default();
        match self {
            Which::All => true,
            Which::Url(wanted, queries) => {
                path == wanted && queries.as_ref().is_none_or(|wanted| query == Some(&**wanted))
            }
            Which::Below(start) => path.starts_with(start),
        }
    }
}

/// Path and query.
fn split(target: &[u8]) -> (&[u8], Option<&[u8]>) {
    let mut parts = target.splitn(2, |byte| *byte == b'?');
    (parts.next().unwrap_or_default(), parts.next())
}

fn is_below(path: &[u8], prefix: &str) -> bool {
    let rest = path.strip_prefix(prefix.trim_end_matches('/').as_bytes());
    rest.is_some_and(|rest| rest.is_empty() || rest.starts_with(b"/"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn prefixes_exclusions_and_spellings() {
        let scope = KeptScope {
            prefixes: vec!["/api/".into(), "/news".into()],
            excluded: vec!["/api/private".into()],
            most: 1,
            clients: 1,
        };
        for target in ["/api", "/api/", "/api/a?b=c", "/news?x", "/api/%C3%B6", "/api/a%20b?%61"] {
            assert!(scope.covers(target.as_bytes()), "{target}");
        }
        let outside = [
            "/",
            "/apis",
            "/newsletter",
            "/api/private",
            "/api/private/a",
            "/api/%70rivate/a",
            "/api/x/../private",
            "/api/x/%2e%2e/private",
            "/api/../secret",
            "/n%65ws",
            "/api/%c3%b6",
            "/api/x/../y",
            "/api//a",
            "/api/a b",
            "/api/a#b",
            "/api/%zz",
            "http://x/api/",
            "*",
        ];
        for target in outside {
            assert!(!scope.covers(target.as_bytes()), "{target}");
        }
        assert!(!KeptScope::default().covers(b"/"));
        let all = KeptScope { prefixes: vec!["/".into()], ..KeptScope::default() };
        assert!(all.covers(b"/") && all.covers(b"/x?y"));
    }

    #[test]
    fn purges() {
        let url = |path: &str, query: Option<&str>| {
            Which::Url(path.into(), query.map(|query| query.as_bytes().to_vec()))
        };
        assert!(url("/a", None).is_about(b"/a") && url("/a", None).is_about(b"/a?x=1"));
        assert!(url("/a", None).is_about(b"/%61"), "another spelling of it");
        assert!(url("/a", Some("x")).is_about(b"/a?x") && !url("/a", Some("x")).is_about(b"/a"));
        assert!(!url("/a", None).is_about(b"/ab"));
        assert!(Which::Below(b"/a".to_vec()).is_about(b"/ab/c?d"));
        assert!(!Which::Below(b"/a/".to_vec()).is_about(b"/ab"));
        assert!(Which::All.is_about(b"/x"));
    }
}
