//! Filters in whole files.

use super::*;

#[test]
fn filters_are_those_of_urls_and_keep_their_order() {
    let text = r#"
        [[site]]
        [[site.filter]]
        extensions = ["SHTML"]
        includes = true
        [[site.filter]]
        prefix = "/docs/old/"
        charset = "iso-8859-1"
        headers = { X-Age = "old", X-Empty = "" }
        [[site.filter]]
        prefix = "/other/"
        charset = "none"
        [[site.path]]
        prefix = "/docs/"
        root = "/srv/docs"
    "#;
    let loaded = parsed(text).unwrap();
    let hierarchy = ListenerNumbers::default().hierarchy(&loaded.config);
    let root = &hierarchy.roots[0];
    assert_eq!(root.mount, "/docs");
    assert_eq!(root.filters.len(), 2);
    assert_eq!((&*root.filters[0].prefix, root.filters[0].includes), ("/", true));
    assert_eq!(root.filters[0].extensions, ["shtml"]);
    assert_eq!((&*root.filters[1].prefix, &*root.filters[1].charset), ("/old/", "iso-8859-1"));
    assert_eq!(root.filters[1].headers.len(), 2);
}

#[test]
fn a_field_that_afpa_writes_itself_is_refused() {
    let text = "\
[[site]]
root = \"/srv\"
[[site.filter]]
headers = { Content-Length = \"3\" }
";
    let refused = refused(text);
    assert!(refused.starts_with("afpa.toml:4:30: error"), "{refused}");
    assert!(refused.contains("AFPA writes the field Content-Length itself"), "{refused}");
    let charset = self::refused("[[site]]\nroot = \"/srv\"\n[[site.filter]]\ncharset = \"a b\"\n");
    assert!(charset.starts_with("afpa.toml:4:11: error"), "{charset}");
}

#[test]
fn a_filter_without_effect_is_a_warning() {
    let warned = |text: &str| {
        let warnings = parsed(text).unwrap().warnings;
        assert_eq!(warnings.len(), 1, "{warnings:?}");
        format!("{:?}", warnings[0])
    };
    let nothing = warned("[[site]]\nroot = \"/srv\"\n[[site.filter]]\nprefix = \"/a/\"\n");
    assert!(nothing.contains("changes nothing"), "{nothing}");
    let files = warned("[[site]]\nto = \"127.0.0.1:3000\"\n[[site.filter]]\nincludes = true\n");
    assert!(files.contains("no files"), "{files}");
}
