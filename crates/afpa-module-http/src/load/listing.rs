//! Directory listings.

use afpa_cache::root::{Listed, ListedKind};
use afpa_http::{HttpDate, page::escape, target};

/// Names in a listing; a directory with more is not listed.
pub(super) const MOST: usize = 10_000;

/// The page for the directory that is known to the client as `path`, which ends with a slash.
pub(super) fn page(path: &[u8], names: &[Listed]) -> Vec<u8> {
    let title = escape(path);
    let mut html = format!(
        "<!DOCTYPE html>\n<html lang=\"en\">\n<meta charset=\"utf-8\">\n\
         <meta name=\"viewport\" content=\"width=device-width\">\n<title>{title}</title>\n\
         <style>body{{font:1rem system-ui;margin:2rem}}td{{padding:.1rem 1rem .1rem 0}}\
         td+td{{text-align:right}}:root{{color-scheme:light dark}}</style>\n\
         <h1>{title}</h1>\n<table>\n"
    );
    if path != b"/" {
        html.push_str("<tr><td><a href=\"../\">../</a><td><td>\n");
    }
    for listed in names {
        row(&mut html, listed);
    }
    html.push_str("</table>\n</html>\n");
    html.into_bytes()
}

fn row(html: &mut String, listed: &Listed) {
    let (slash, size) = match listed.kind {
        ListedKind::Directory => ("/", String::new()),
        ListedKind::File(size) => ("", size.to_string()),
        ListedKind::Link => ("", String::new()),
    };
    // "./" keeps a name with a colon from being read as a scheme.
    let mut link = b"./".to_vec();
    target::encode(&listed.name, &mut link);
    let (link, name) = (escape(&link), escape(&listed.name));
    let date = HttpDate::new(listed.modified);
    html.push_str(&format!(
        "<tr><td><a href=\"{link}{slash}\">{name}{slash}</a><td>{size}<td>{}\n",
        date.as_str()
    ));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_shown_and_linked_as_they_are() {
        let names = [
            Listed { name: b"a&b <c>.txt".to_vec(), kind: ListedKind::File(7), modified: 0 },
            Listed { name: b"javascript:x".to_vec(), kind: ListedKind::Directory, modified: 0 },
        ];
        let html = String::from_utf8(page(b"/d/", &names)).expect("the page is UTF-8");
        assert!(
            html.contains("<a href=\"./a&amp;b%20%3Cc%3E.txt\">a&amp;b &lt;c&gt;.txt</a>"),
            "{html}"
        );
        assert!(html.contains("<a href=\"./javascript:x/\">"), "{html}");
        assert!(html.contains("href=\"../\""));
        assert!(!String::from_utf8(page(b"/", &[])).expect("UTF-8").contains("../"));
    }
}
