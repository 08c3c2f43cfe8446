//! The extension of a path.

/// The longest extension that a content group may list.
pub const MAX_EXTENSION: usize = 64;

/// The extension of a path: the lowest level of the hierarchy decides by it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Extension<'q> {
    /// None: the path ends with a slash, or its last segment has no dot, only a leading one, or nothing behind
    /// the dot.
    None,
    /// The text behind the last dot, in its original case.
    Some(&'q [u8]),
}

impl<'q> Extension<'q> {
    /// The extension of a normalised path.
    pub fn of(path: &'q [u8]) -> Self {
        let name = memchr::memrchr(b'/', path).map_or(path, |slash| &path[slash + 1..]);
        match memchr::memrchr(b'.', name) {
            None | Some(0) => Extension::None,
            Some(dot) if dot + 1 == name.len() => Extension::None,
            Some(dot) => Extension::Some(&name[dot + 1..]),
        }
    }
}

/// `text` in lower case, written to `room`; `None` if it does not fit.
#[inline]
pub(crate) fn lower<'r>(text: &[u8], room: &'r mut [u8]) -> Option<&'r [u8]> {
    let lower = room.get_mut(..text.len())?;
    for (to, from) in lower.iter_mut().zip(text) {
        *to = from.to_ascii_lowercase();
    }
    Some(lower)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_extension_stands_behind_the_last_dot_of_the_last_segment() {
        for (path, extension) in
            [("/a.html", "html"), ("/a.tar.gz", "gz"), ("/a.d/b.PNG", "PNG"), ("/..a", "a")]
        {
            assert_eq!(Extension::of(path.as_bytes()), Extension::Some(extension.as_bytes()));
        }
        for path in ["/", "/a", "/a.d/b", "/.htaccess", "/a.", "/a.d/", ""] {
            assert_eq!(Extension::of(path.as_bytes()), Extension::None, "{path}");
        }
    }
}
