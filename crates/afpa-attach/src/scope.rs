//! Which paths may be pinned.

/// Paths that may be pinned.
#[derive(Clone, Debug)]
pub struct Scope {
    /// Extensions without their dot, in lower case.
    pub extensions: Vec<String>,
    /// Path prefixes that are left to the server: `/private` stands for `/private` and all below it.
    pub excluded: Vec<String>,
    /// Largest file, and longest answer.
    pub longest: usize,
}

impl Scope {
    /// Head and content that fit into one Ethernet segment.
    pub const ONE_SEGMENT: usize = afpa_bpf::ANSWER_MAX;
    /// Head and content of the longest answer that the kernel can give.
    pub const LONGEST: usize = afpa_bpf::LONGEST_ANSWER;

    /// Whether a path is in scope. Directories, which end with a slash, are in scope for their index.
    pub fn covers(&self, path: &[u8]) -> bool {
        let left_out = |prefix: &String| {
            let rest = path.strip_prefix(prefix.trim_end_matches('/').as_bytes());
            rest.is_some_and(|rest| rest.is_empty() || rest.starts_with(b"/"))
        };
        if self.excluded.iter().any(left_out) || hidden(path) {
            return false;
        }
        let name = path.rsplit(|byte| *byte == b'/').next().unwrap_or_default();
        let dot = name.iter().rposition(|byte| *byte == b'.');
        let extension = dot.and_then(|dot| name.get(dot + 1..)).unwrap_or_default();
        name.is_empty()
            || self.extensions.iter().any(|have| have.as_bytes().eq_ignore_ascii_case(extension))
    }
}

/// Most servers are configured not to serve such names.
fn hidden(path: &[u8]) -> bool {
    path.windows(2).any(|pair| pair == b"/.")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn extensions_and_exclusions() {
        let scope = Scope {
            extensions: vec!["html".into()],
            excluded: vec!["/admin/".into(), "/x.html".into()],
            longest: 0,
        };
        for path in ["/", "/a/", "/a.html", "/a/b.HTML", "/administer/a.html"] {
            assert!(scope.covers(path.as_bytes()), "{path}");
        }
        for path in ["/a", "/html", "/a.php", "/admin/", "/admin/a.html", "/x.html", "/.a/b.html"] {
            assert!(!scope.covers(path.as_bytes()), "{path}");
        }
    }
}
