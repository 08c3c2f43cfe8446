//! Other readings of a path, by files and servers, so that no spelling leads around a guard.

use std::borrow::Cow;

use afpa_http::Coding;

use crate::script;

/// The paths whose rights a request for `path` needs beside its own. `index`: the names of files that answer for a
/// directory. `is_file`: files answer, also as codings of other files.
pub fn readings<'p>(path: &'p [u8], index: &[String], is_file: bool) -> Vec<Cow<'p, [u8]>> {
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
        ] {
            let found = readings(path.as_bytes(), &index, is_file);
            let found: Vec<_> = found.iter().map(|path| String::from_utf8_lossy(path)).collect();
            assert_eq!(found, expected, "{path}");
        }
    }
}
