//! Turns the names in elements into URL paths below the same root.

use afpa_http::target;

/// The document that `include` and its kin name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Link<'a> {
    /// `virtual`: a URL path, absolute or relative to the document. A query is not heeded.
    Virtual(&'a [u8]),
    /// `file`: a name of a file in the document's directory, or below.
    File(&'a [u8]),
}

/// The normalised path that a link of the document at `from` leads to; `None` if it leads nowhere.
pub(crate) fn resolve(from: &[u8], link: Link<'_>) -> Option<Vec<u8>> {
    let directory = directory(from);
    let raw = match link {
        Link::Virtual(url) => {
            let path = memchr::memchr2(b'?', b'#', url).map_or(url, |end| &url[..end]);
            match path.first()? {
                b'/' => path.to_vec(),
                _ => [&encoded(directory), path].concat(),
            }
        }
        Link::File(name) if name.first()? == &b'/' => return None,
        Link::File(name) => encoded(&[directory, name].concat()),
    };
    let mut room = Vec::new();
    // No file name has a slash in it.
    let path = target::normalise(&raw, &mut room).ok()?;
    if path.contains(&target::ESCAPED_SLASH) {
        return None;
    }
    let stays = match link {
        Link::Virtual(_) => true,
        Link::File(_) => path.starts_with(directory) && !path.ends_with(b"/"),
    };
    stays.then(|| path.to_vec())
}

/// With its last slash.
fn directory(path: &[u8]) -> &[u8] {
    let end = memchr::memrchr(b'/', path).map_or(0, |slash| slash + 1);
    path.get(..end).unwrap_or_default()
}

fn encoded(path: &[u8]) -> Vec<u8> {
    let mut encoded = Vec::with_capacity(path.len());
    target::encode(path, &mut encoded);
    encoded
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_virtual_path_is_a_url_of_this_site() {
        let resolve = |url: &str| resolve(b"/a b/page.shtml", Link::Virtual(url.as_bytes()));
        assert_eq!(resolve("/menu.html").as_deref(), Some(&b"/menu.html"[..]));
        assert_eq!(resolve("menu.html?x=1#y").as_deref(), Some(&b"/a b/menu.html"[..]));
        assert_eq!(resolve("../c%20d/").as_deref(), Some(&b"/c d/"[..]));
        for nowhere in ["", "../../x", "/../x", "%2e%2e/%2e%2e/x", "a%2fb", "a\0b", "?x"] {
            assert_eq!(resolve(nowhere), None, "{nowhere:?}");
        }
    }

    #[test]
    fn a_file_stays_in_its_directory() {
        let resolve = |name: &str| resolve(b"/dir/page.shtml", Link::File(name.as_bytes()));
        assert_eq!(resolve("menu.html").as_deref(), Some(&b"/dir/menu.html"[..]));
        assert_eq!(resolve("sub/a%41.html").as_deref(), Some(&b"/dir/sub/a%41.html"[..]));
        for nowhere in ["", "/etc/passwd", "../x", "sub/../../x", "..", "a\nb", "a\0b", "sub/"] {
            assert_eq!(resolve(nowhere), None, "{nowhere:?}");
        }
    }
}
