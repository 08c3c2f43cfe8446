//! Which names a request may use. Paths come normalised; beside hidden names, these checks are a second line of
//! defence.

use super::ResolveError;

/// Checks every component of `path`, which must begin with `/` and may end with one.
pub(super) fn check(path: &[u8], dotfiles: bool) -> Result<(), ResolveError> {
    let [b'/', names @ ..] = path else { return Err(ResolveError::NotFound) };
    let names = names.strip_suffix(b"/").unwrap_or(names);
    if names.is_empty() {
        // "/" itself; "//" has an empty component.
        return if path.len() == 1 { Ok(()) } else { Err(ResolveError::NotFound) };
    }
    names.split(|&byte| byte == b'/').try_for_each(|name| match name {
        b".." => Err(ResolveError::Forbidden),
        b"" | b"." => Err(ResolveError::NotFound),
        name if name.contains(&0) => Err(ResolveError::NotFound),
        name if !dotfiles && is_hidden(name) => Err(ResolveError::NotFound),
        _ => Ok(()),
    })
}

/// Whether a name is hidden unless dotfiles are allowed. `.well-known` never is (RFC 8615).
pub(crate) fn is_hidden(name: &[u8]) -> bool {
    name.starts_with(b".") && name != b".well-known"
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refused(path: &[u8], dotfiles: bool) -> Option<&'static str> {
        match check(path, dotfiles) {
            Ok(()) => None,
            Err(ResolveError::NotFound) => Some("not found"),
            Err(ResolveError::Forbidden) => Some("forbidden"),
            Err(other) => panic!("unexpected {other:?}"),
        }
    }

    #[test]
    fn ordinary_paths_pass() {
        for path in ["/", "/a", "/a/", "/a/b.c", "/a..b", "/a.", "/..."] {
            assert_eq!(refused(path.as_bytes(), true), None, "{path}");
        }
    }

    #[test]
    fn what_normalisation_should_have_removed_is_refused() {
        for path in ["", "a", "//", "/a//b", "/a//", "/./a", "/a/.", "/a\0b"] {
            assert_eq!(refused(path.as_bytes(), true), Some("not found"), "{path:?}");
        }
        for path in ["/..", "/a/../b", "/../"] {
            assert_eq!(refused(path.as_bytes(), true), Some("forbidden"), "{path:?}");
        }
    }

    #[test]
    fn hidden_names_are_not_found_but_well_known_ones_are() {
        for path in ["/.git", "/.git/config", "/a/.htaccess", "/.well-known2", "/..."] {
            assert_eq!(refused(path.as_bytes(), false), Some("not found"), "{path}");
        }
        for path in ["/.well-known", "/.well-known/security.txt", "/a.b"] {
            assert_eq!(refused(path.as_bytes(), false), None, "{path}");
        }
    }
}
