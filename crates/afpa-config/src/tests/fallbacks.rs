//! Fallbacks in whole files.

use std::fs;

use super::*;

#[test]
fn a_fallback_is_a_file_a_server_or_a_status() {
    let text = r#"
        [[server_group]]
        name = "app"
        servers = ["127.0.0.1:3000"]
        [[site]]
        root = "/srv"
        fallback = "/index.html"
        [[site.path]]
        prefix = "/api/"
        fallback = "app"
        [[site.path]]
        prefix = "/one/"
        fallback = "127.0.0.1:4000"
        [[site.path]]
        prefix = "/gone/"
        fallback = 410
        [[site.path]]
        prefix = "/own/"
        root = "/own"
        [[site.path]]
        prefix = "/groups/"
        root = "/groups"
        fallback = 404
        [[site.path.content]]
        extensions = ["html"]
        [[site.path.content]]
        extensions = ["others", "none"]
        fallback = "app"
    "#;
    let shown = parsed(text).unwrap().request_sets();
    for row in [
        "/         *            cached from /srv, else /index.html",
        "/api/     *            cached from /srv, else distributed to app",
        "/one/     *            cached from /srv, else distributed to 127.0.0.1:4000",
        "/gone/    *            cached from /srv, else answered with 410",
        "/own/     *            cached from /own ",
        "/groups/  html         cached from /groups, else answered with 404",
        "/groups/  none,others  cached from /groups, else distributed to app",
    ] {
        let spaces = |text: &str| text.split_whitespace().collect::<Vec<_>>().join(" ");
        assert!(spaces(&shown).contains(&spaces(row)), "{row}\n{shown}");
    }
    assert!(!shown.contains("/own, else"), "a directory of its own has its own fallback: {shown}");
}

#[test]
fn a_fallback_that_names_nothing_or_does_nothing_is_refused() {
    for (text, place, cause) in [
        ("fallback = \"ap\"\nroot = \"/srv\"", "2:12", "there is no server group \"ap\""),
        ("fallback = \"/../x\"\nroot = \"/srv\"", "2:12", "not the path of a file below `root`"),
        ("fallback = \"/a/\"\nroot = \"/srv\"", "2:12", "not the path of a file below `root`"),
        ("fallback = \"/a?b\"\nroot = \"/srv\"", "2:12", "not the path of a file below `root`"),
        ("fallback = \"\"\nroot = \"/srv\"", "2:12", "is not a name for a server group"),
        ("fallback = 99\nroot = \"/srv\"", "2:12", "99 is not the status of an answer"),
        ("fallback = 600\nroot = \"/srv\"", "2:12", "600 is not the status of an answer"),
        (
            "fallback = 206\nroot = \"/srv\"",
            "2:12",
            "206 is not the status of an answer without more",
        ),
        (
            "fallback = 301\nroot = \"/srv\"",
            "2:12",
            "301 is not the status of an answer without more",
        ),
        (
            "fallback = 401\nroot = \"/srv\"",
            "2:12",
            "401 is not the status of an answer without more",
        ),
        (
            "fallback = \"index.html\"\nroot = \"/srv\"",
            "2:12",
            "for the file below `root` write \"/index.html\"",
        ),
        ("fallback = 404\nto = \"127.0.0.1:1\"", "2:12", "no effect without `root`"),
        (
            "root = \"/srv\"\nfallback = \"127.0.0.1:8080\"",
            "3:12",
            "127.0.0.1:8080 is an address of this site: it would ask itself",
        ),
        (
            "root = \"/srv\"\n[[site.path]]\nprefix = \"/a/\"\nstatus = 200\nfallback = 404",
            "6:12",
            "no effect: no file is looked for",
        ),
    ] {
        let refused = refused(&format!("[[site]]\n{text}\n"));
        assert!(refused.starts_with(&format!("afpa.toml:{place}: error")), "{refused}");
        assert!(refused.contains(cause), "{refused}");
        assert!(refused.contains("\n  = ") || refused.contains("\n   = "), "a remedy: {refused}");
    }
}

#[test]
fn the_file_of_a_fallback_has_to_be_below_its_root() {
    let folder = tempfile::tempdir().expect("a folder");
    let root = folder.path().join("www");
    fs::create_dir_all(root.join("folder")).expect("a folder");
    for name in ["www/index.html", "www/.hidden", "outside"] {
        fs::write(folder.path().join(name), name).expect("a file");
    }
    std::os::unix::fs::symlink(folder.path().join("outside"), root.join("out")).expect("a link");
    let found = |fallback: &str| {
        let file = folder.path().join("afpa.toml");
        let text = format!("[[site]]\nroot = {root:?}\nfallback = \"{fallback}\"\n");
        fs::write(&file, text).expect("written");
        let loaded = load(Some(&file), &Overrides::default(), &Machine::probe());
        loaded.err().map(|error| error.to_string()).unwrap_or_default()
    };
    assert_eq!(found("/index.html"), "");
    for (fallback, cause) in [
        ("/none.html", "www/none.html does not exist"),
        ("/folder", "www/folder is not a file"),
        ("/.hidden", "/.hidden is hidden"),
        ("/out", "www/out leads out of"),
    ] {
        let error = found(fallback);
        assert!(error.contains(cause) && error.contains(":3:12: error"), "{error}");
    }
}
