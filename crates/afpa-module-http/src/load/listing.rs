//! Directory listings.

use afpa_cache::root::{Listed, ListedKind};
use afpa_http::{HttpDate, page::escape, target};

use crate::settings::DocRootSettings;

/// Names in a listing; of a directory with more the first ones are shown.
pub(super) const MOST: usize = 10_000;

/// Whether a link to a name in the directory `path` leads to the file with this name. A URL's path has no control
/// bytes, its request line has an end, and a tilde may begin the name of a user.
pub(super) fn has_link(settings: &DocRootSettings, path: &[u8], name: &[u8]) -> bool {
    let mut line = settings.mount.clone().into_bytes();
    target::encode(path, &mut line);
    target::encode(name, &mut line);
    let around = "GET / HTTP/1.1".len();
    let is_home = settings.homes.is_some() && path == b"/" && name.starts_with(b"~");
    !name.iter().any(u8::is_ascii_control)
        && line.len() + around <= settings.limits.request_line
        && !is_home
}

/// The page for the directory that is known to the client as `path`, which ends with a slash: its first names, each with a link
/// or not, and how many it has besides.
pub(super) fn page(
    path: &[u8],
    names: impl Iterator<Item = (Listed, bool)>,
    more: usize,
) -> Vec<u8> {
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
    for (listed, has_link) in names {
        row(&mut html, &listed, has_link);
    }
    html.push_str("</table>\n");
    if more > 0 {
        html.push_str(&format!("<p>{more} more names are not shown.</p>\n"));
    }
    html.push_str("</html>\n");
    html.into_bytes()
}

fn row(html: &mut String, listed: &Listed, has_link: bool) {
    let (slash, size) = match listed.kind {
        ListedKind::Directory => ("/", String::new()),
        ListedKind::File(size) => ("", size.to_string()),
        ListedKind::Link => ("", String::new()),
    };
    let shown: Vec<u8> = listed.name.iter().map(|byte| shown(*byte)).collect();
    let name = escape(&shown);
    let named = match has_link {
        true => {
            // "./" keeps a name with a colon from being read as a scheme.
            let mut link = b"./".to_vec();
            target::encode(&listed.name, &mut link);
            format!("<a href=\"{}{slash}\">{name}{slash}</a>", escape(&link))
        }
        false => format!("{name}{slash}"),
    };
    let date = HttpDate::new(listed.modified);
    html.push_str(&format!("<tr><td>{named}<td>{size}<td>{}\n", date.as_str()));
}

/// A control byte is shown as one that is no character.
fn shown(byte: u8) -> u8 {
    if byte.is_ascii_control() { 0xff } else { byte }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn listed(name: &[u8], kind: ListedKind) -> (Listed, bool) {
        let has_link = has_link(&DocRootSettings::default(), b"/d/", name);
        (Listed { name: name.to_vec(), kind, modified: 0 }, has_link)
    }

    fn html(path: &[u8], names: Vec<(Listed, bool)>, more: usize) -> String {
        String::from_utf8(page(path, names.into_iter(), more)).expect("the page is UTF-8")
    }

    #[test]
    fn names_are_shown_and_linked_as_they_are() {
        let names = vec![
            listed(b"a&b <c>.txt", ListedKind::File(7)),
            listed(b"javascript:x", ListedKind::Directory),
        ];
        let page = html(b"/d/", names, 0);
        assert!(
            page.contains("<a href=\"./a&amp;b%20%3Cc%3E.txt\">a&amp;b &lt;c&gt;.txt</a>"),
            "{page}"
        );
        assert!(page.contains("<a href=\"./javascript:x/\">"), "{page}");
        assert!(page.contains("href=\"../\"") && !page.contains("not shown"));
        assert!(!html(b"/", Vec::new(), 0).contains("../"));
        assert!(html(b"/", Vec::new(), 3).contains("3 more names are not shown"));
    }

    /// Every byte that a name may have, and every length.
    #[test]
    fn a_link_leads_to_its_name_or_there_is_none() {
        let long = [b'\xff'; 255];
        let bytes = (1..=255).filter(|byte| *byte != b'/').map(|byte| vec![byte, b'x', byte]);
        for name in bytes.chain([long.to_vec(), b"..x".to_vec(), b"%41".to_vec(), b"~u".to_vec()]) {
            let page = html(b"/d/", vec![listed(&name, ListedKind::File(1))], 0);
            let link = page.split("<a href=\"./").nth(1).and_then(|rest| rest.split('"').next());
            let control = name.iter().any(u8::is_ascii_control);
            assert_eq!(link.is_none(), control, "{}", name.escape_ascii());
            let Some(link) = link.map(|link| link.replace("&amp;", "&").replace("&#39;", "'"))
            else {
                continue;
            };
            let path = [b"/d/./", link.as_bytes()].concat();
            let mut room = Vec::new();
            let normal = target::normalise(&path, &mut room);
            assert_eq!(normal, Ok(&[b"/d/", &*name].concat()[..]), "{}", name.escape_ascii());
        }
        let settings = DocRootSettings { homes: Some("www".into()), ..Default::default() };
        assert!(!has_link(&settings, b"/", b"~u") && has_link(&settings, b"/d/", b"~u"));
        assert!(!has_link(&settings, &[b'/'; 8000], &long));
    }
}
