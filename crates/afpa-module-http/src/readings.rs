//! Other readings of a path, by files and servers, so that no spelling leads around a guard.

use std::borrow::Cow;

use afpa_http::Coding;
use afpa_http::target::ESCAPED_SLASH;
use afpa_router::{Action, Fields, Question, Rewritten, Router, Verdict};

use crate::script;

/// A path with escaped slashes as a server reads it that takes these for separators: before it drops parameters, and after
/// that. No segment of dots is beside them ([`HiddenDots`](afpa_http::target::PathError::HiddenDots)).
pub fn separated(path: &[u8]) -> Vec<Vec<u8>> {
    let has_some = |path: &[u8]| memchr::memchr(ESCAPED_SLASH, path).is_some();
    if !has_some(path) {
        return Vec::new();
    }
    let dropped = path.contains(&b';').then(|| without_parameters(path));
    let dropped = dropped.filter(|dropped| has_some(dropped));
    let apart = |path: &[u8]| {
        let slash = |byte: &u8| if *byte == ESCAPED_SLASH { b'/' } else { *byte };
        let mut whole: Vec<u8> = path.iter().map(slash).collect();
        whole.dedup_by(|byte, before| *byte == b'/' && *before == b'/');
        whole
    };
    std::iter::once(path).chain(dropped.as_deref()).map(apart).collect()
}

/// The verdict on a path with escaped slashes if it leads, read as [`separated`], to a place that answers with an error of
/// its own: such a place is shut however its path is written.
pub fn shut<'r, F: Fields + Copy>(
    router: &'r Router,
    question: &Question<'_, F>,
    separated: &[Vec<u8>],
) -> Option<Verdict<'r, 'static>> {
    separated.iter().find_map(|path| {
        let found = router.route(&Question { path, ..*question }).ok()?;
        let Verdict { site, set, action, content, prefix_len, certain, .. } = found;
        let is_shut = matches!(action, Action::Fixed(fixed) if fixed.status.code() >= 400);
        let path = Rewritten { head: b"", tail: b"" };
        is_shut.then_some(Verdict { site, set, action, content, path, prefix_len, certain })
    })
}

/// Whether servers and scripts may read a path as another one, too: it has parameters, an escaped slash, or something behind
/// the name of a script.
#[inline]
pub(crate) fn are_several(path: &[u8]) -> bool {
    memchr::memchr2(b';', ESCAPED_SLASH, path).is_some()
        || script::ends(path).any(|end| end < path.len())
}

/// The paths whose rights a request for `path` needs beside its own. `separated`: the result of [`separated`]. `index`: the names of
/// files that answer for a directory. `is_file`: files answer, also as codings of other files.
pub fn readings<'p>(
    path: &'p [u8],
    separated: &'p [Vec<u8>],
    index: &[String],
    is_file: bool,
) -> Vec<Cow<'p, [u8]>> {
    let mut found = of_one(path, index, is_file);
    for path in separated {
        found.push(Cow::Borrowed(path));
        found.append(&mut of_one(path, index, is_file));
    }
    found
}

fn of_one<'p>(path: &'p [u8], index: &[String], is_file: bool) -> Vec<Cow<'p, [u8]>> {
    let mut found = Vec::new();
    if path.ends_with(b"/") {
        found.extend(index.iter().map(|name| Cow::Owned([path, name.as_bytes()].concat())));
    }
    // A script answers for all that stands behind its name (PATH_INFO of RFC 3875 section 4.1.5).
    let ends = script::ends(path).filter(|end| *end < path.len());
    found.extend(ends.filter_map(|end| path.get(..end)).map(Cow::Borrowed));
    if is_file {
        let suffixes = Coding::ALL.iter().map(|coding| coding.file_suffix().as_bytes());
        let coded = suffixes.filter(|suffix| !suffix.is_empty());
        found.extend(coded.filter_map(|suffix| path.strip_suffix(suffix)).map(Cow::Borrowed));
    }
    if path.contains(&b';') {
        found.push(Cow::Owned(without_parameters(path)));
    }
    found
}

/// The path without what stands behind a semicolon in each of its parts, as servlet containers read it: they do so before
/// they look at dots (Jakarta Servlet 6.0 section 3.5.2).
fn without_parameters(path: &[u8]) -> Vec<u8> {
    let mut parts: Vec<&[u8]> = Vec::new();
    let mut is_directory = false;
    for part in path.split(|&byte| byte == b'/') {
        let name = part.split(|&byte| byte == b';').next().unwrap_or_default();
        is_directory = matches!(name, b"" | b"." | b"..");
        match name {
            b"" | b"." => {}
            b".." => drop(parts.pop()),
            name => parts.push(name),
        }
    }
    let mut whole = Vec::with_capacity(path.len());
    for part in parts {
        whole.push(b'/');
        whole.extend_from_slice(part);
    }
    if is_directory || whole.is_empty() {
        whole.push(b'/');
    }
    whole
}

#[cfg(test)]
mod tests {
    use super::*;
    use afpa_http::target;

    #[test]
    fn a_path_is_read_as_files_scripts_and_servers_read_it() {
        let index = ["index.html".to_owned(), "index.php".to_owned()];
        for (path, is_file, expected) in [
            ("/a", true, &[][..]),
            ("/a/", true, &["/a/index.html", "/a/index.php"]),
            ("/admin.php/x", true, &["/admin.php"]),
            (
                "/a.php/b.PHP/",
                false,
                &["/a.php/b.PHP/index.html", "/a.php/b.PHP/index.php", "/a.php", "/a.php/b.PHP"],
            ),
            ("/admin.php", true, &[]),
            ("/report.html.gz", true, &["/report.html"]),
            ("/report.html.zst", true, &["/report.html"]),
            ("/report.html.gz", false, &[]),
            ("/admin;a/users", false, &["/admin/users"]),
            ("/x/..;/admin/users;b=c", false, &["/admin/users"]),
            ("/admin/;a", false, &["/admin/"]),
            ("/x/.;/y", false, &["/x/y"]),
            ("/..;", false, &["/"]),
            ("/admin%2Fusers", false, &["/admin/users"]),
            ("/%2Fadmin%2F%2f/x", false, &["/admin/x"]),
            ("/a%252Fb", false, &[]),
            ("/admin%2F", false, &["/admin/", "/admin/index.html", "/admin/index.php"]),
            ("/admin.php%2Fx", false, &["/admin.php/x", "/admin.php"]),
            ("/x.php/a%2Fb", false, &["/x.php", "/x.php/a/b", "/x.php"]),
            ("/a;b%2Fadmin", false, &["/a", "/a;b/admin", "/a/admin"]),
            ("/x%2Fa;b%2Fc", false, &["/x\0a", "/x/a;b/c", "/x/a/c", "/x/a"]),
            ("/x/..;/admin%2Fy", false, &["/admin\0y", "/x/..;/admin/y", "/admin/y", "/admin/y"]),
        ] {
            let mut room = Vec::new();
            let normal = target::normalise(path.as_bytes(), &mut room).unwrap();
            let apart = separated(normal);
            let found = readings(normal, &apart, &index, is_file);
            let found: Vec<_> = found.iter().map(|path| String::from_utf8_lossy(path)).collect();
            assert_eq!(found, expected, "{path}");
        }
    }
}
