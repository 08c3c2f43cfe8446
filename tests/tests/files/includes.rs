//! Server-side includes: the expansion of a page, and the changes that make it another one.

use std::fs;
use std::thread;
use std::time::Duration;

use afpa_testkit::{Endpoint, Server, Tree, eventually};
use afpa_tests::codings::decode;

use crate::becomes;

/// A configuration of one site with `more` behind its own settings.
pub(crate) fn configuration(endpoint: &Endpoint, tree: &Tree, more: &str) -> String {
    let root = tree.path().display();
    format!(
        "[[site]]\nlisten = [\"{endpoint}\"]\nroot = \"{root}\"\n\
         index = [\"index.shtml\", \"index.html\"]\n{more}"
    )
}

const SHTML: &str = "[[site.filter]]\nextensions = [\"shtml\"]\nincludes = true\n";

/// A server that expands `.shtml`, with `more` in its configuration.
fn server(tree: &Tree, more: &str) -> Server {
    Server::start(tree.path(), |launch| {
        let more = format!("{SHTML}{more}");
        launch.written(|endpoint| configuration(endpoint, tree, &more));
    })
}

fn loads(server: &Server) -> u64 {
    let output = server.command(&["stats", "--json"]);
    let stats: serde_json::Value = serde_json::from_slice(&output.stdout).expect("JSON");
    stats["cache"]["loads"].as_u64().expect("a count")
}

#[test]
fn a_page_is_expanded_once_and_changes_with_what_it_includes() {
    let tree = Tree::new();
    tree.file("menu.html", "menu 1");
    tree.file("part.shtml", "(<!--#include virtual=\"/menu.html\" -->)");
    tree.file("page.shtml", "a <!--#include file=\"part.shtml\" --> z");
    let server = server(&tree, "");
    let page = server.get("/page.shtml");
    assert_eq!((page.status, page.text()), (200, "a (menu 1) z"));
    assert_eq!(page.field("content-type"), Some("text/html; charset=utf-8"));
    let before = loads(&server);
    for _ in 0..20 {
        assert_eq!(server.get("/page.shtml").text(), "a (menu 1) z");
    }
    assert_eq!(loads(&server), before, "a hit costs no load");

    tree.replace("menu.html", "menu 2");
    becomes(&server, "/page.shtml", 200, "a (menu 2) z");
    tree.file("part.shtml", "[<!--#include virtual=\"/menu.html\" -->]");
    becomes(&server, "/page.shtml", 200, "a [menu 2] z");
    tree.remove("menu.html");
    let error = "[an error occurred while processing this directive]";
    becomes(&server, "/page.shtml", 200, &format!("a [{error}] z"));
    assert!(server.log().contains("/menu.html: there is no such file"), "{}", server.log());
    tree.file("menu.html", "menu 3");
    becomes(&server, "/page.shtml", 200, "a [menu 3] z");
}

#[test]
fn what_is_asked_of_a_page_is_asked_of_the_expanded_page() {
    let tree = Tree::new();
    let text = "words and more words, ".repeat(200);
    tree.file("text.html", &text);
    tree.file("page.shtml", "<p><!--#include virtual=\"text.html\" --></p>");
    let expanded = format!("<p>{text}</p>");
    let server = server(&tree, "");
    let page = server.get("/page.shtml");
    assert_eq!(page.text(), expanded);
    let (tag, modified) = (page.field("etag").expect("a tag"), page.field("last-modified"));
    let mut client = server.connect();
    let head = client.head_with("/page.shtml", "");
    assert_eq!(head.field("content-length"), Some(&*expanded.len().to_string()));
    let same = client.get_with("/page.shtml", &format!("If-None-Match: {tag}\r\n"));
    assert_eq!((same.status, same.field("etag")), (304, Some(tag)));
    let modified = modified.expect("a date");
    let since = client.get_with("/page.shtml", &format!("If-Modified-Since: {modified}\r\n"));
    assert_eq!(since.status, 304);
    let range = format!("Range: bytes=3-12\r\nIf-Range: {tag}\r\n");
    let part = client.get_with("/page.shtml", &range);
    assert_eq!((part.status, part.text()), (206, &expanded[3..13]));
    eventually("a coding is made", || {
        let coded = client.get_with("/page.shtml", "Accept-Encoding: gzip\r\n");
        let made = coded.field("content-encoding") == Some("gzip");
        if made {
            assert_eq!(decode(Some("gzip"), &coded.body), expanded.as_bytes());
            assert_ne!(coded.field("etag"), Some(tag), "a coding has its own tag");
            assert!(coded.lists("vary", "accept-encoding"));
        }
        made
    });
    let plain = client.get_with("/page.shtml", "");
    assert_eq!((plain.text(), plain.field("etag")), (&*expanded, Some(tag)));
}

/// Where changes are not watched, a page is expanded again when it is old, and stays the same if it is.
#[test]
fn without_a_watch_an_old_page_is_expanded_again() {
    let tree = Tree::new();
    tree.file("menu.html", "menu 1");
    tree.file("page.shtml", "<!--#include virtual=\"menu.html\" -->");
    let server = Server::start(tree.path(), |launch| {
        let more = format!("{SHTML}[coherency]\nwatch = false\n");
        launch.written(|endpoint| configuration(endpoint, &tree, &more));
    });
    let first = server.get("/page.shtml");
    let before = loads(&server);
    eventually("it is expanded again", || {
        let again = server.get("/page.shtml");
        assert_eq!(again.field("etag"), first.field("etag"));
        assert_eq!(again.field("last-modified"), first.field("last-modified"));
        loads(&server) >= before + 2
    });
    tree.file("menu.html", "menu 2");
    becomes(&server, "/page.shtml", 200, "menu 2");
}

/// An older file in the place of an included one makes the page another one: no condition may call it unchanged.
#[test]
fn validators_follow_the_page_and_not_the_times_of_its_files() {
    let tree = Tree::new();
    tree.file("menu.html", "new");
    tree.file("page.shtml", "<!--#include virtual=\"menu.html\" -->");
    tree.set_modified("page.shtml", 1_000_000_000);
    let server = server(&tree, "");
    let first = server.get("/page.shtml");
    // Last-Modified has whole seconds.
    thread::sleep(Duration::from_millis(1_100));
    let old = tree.outside("old.html", "old");
    fs::File::options()
        .write(true)
        .open(&old)
        .and_then(|file| {
            let long_ago = std::time::UNIX_EPOCH + Duration::from_secs(784_111_777);
            file.set_modified(long_ago)
        })
        .expect("an old file");
    fs::rename(old, tree.at("menu.html")).expect("moved");
    becomes(&server, "/page.shtml", 200, "old");
    let mut client = server.connect();
    let ask = |client: &mut afpa_testkit::Client, name: &str, value: Option<&str>| {
        let line = format!("{name}: {}\r\n", value.expect("a validator"));
        client.get_with("/page.shtml", &line).status
    };
    assert_eq!(ask(&mut client, "If-None-Match", first.field("etag")), 200);
    assert_eq!(ask(&mut client, "If-Modified-Since", first.field("last-modified")), 200);
    let second = server.get("/page.shtml");
    assert_eq!(ask(&mut client, "If-None-Match", second.field("etag")), 304);
    // The same bytes have the same tag.
    tree.replace("menu.html", "new");
    becomes(&server, "/page.shtml", 200, "new");
    assert_eq!(server.get("/page.shtml").field("etag"), first.field("etag"));
}

#[test]
fn nothing_outside_of_the_root_is_included() {
    let tree = Tree::new();
    let secret = tree.outside("secret.txt", "SECRET");
    tree.link("link.html", &secret);
    tree.file(".hidden", "SECRET");
    tree.file("dir/page.shtml", "");
    let server = server(&tree, "");
    let outside = secret.display();
    for element in [
        "include virtual=\"/link.html\"".to_owned(),
        "include file=\"../link.html\"".to_owned(),
        "include virtual=\"/.hidden\"".to_owned(),
        "include virtual=\"/../secret.txt\"".to_owned(),
        "include virtual=\"%2e%2e/%2e%2e/secret.txt\"".to_owned(),
        "include virtual=\"..%2f..%2fsecret.txt\"".to_owned(),
        format!("include file=\"{outside}\""),
        format!("include virtual=\"{outside}\""),
        format!("fsize file=\"{outside}\""),
        "exec cmd=\"cat secret.txt\"".to_owned(),
    ] {
        tree.file("dir/page.shtml", format!("[<!--#config errmsg=\"no\" --><!--#{element} -->]"));
        becomes(&server, "/dir/page.shtml", 200, "[no]");
    }
}

#[test]
fn a_page_that_shows_the_time_is_kept_only_as_long_as_somebody_says() {
    let tree = Tree::new();
    tree.file("now.shtml", "<!--#config timefmt=\"%s\" --><!--#echo var=\"DATE_GMT\" -->");
    tree.file("news/now.shtml", "<!--#config timefmt=\"%s\" --><!--#echo var=\"DATE_GMT\" -->");
    let server = server(&tree, "[[site.hint]]\nprefix = \"/news/\"\nexpiry = \"1h\"\n");
    let time = |path: &str| server.get(path).text().parse::<u64>().expect("seconds");
    let (first, kept) = (time("/now.shtml"), time("/news/now.shtml"));
    eventually("the time goes on", || time("/now.shtml") > first);
    assert_eq!(time("/news/now.shtml"), kept);
    let part = server.connect().get_with("/now.shtml", "Range: bytes=0-1\r\n");
    assert_eq!((part.status, part.body.len()), (206, 2));
}

#[test]
fn pages_are_expanded_where_the_configuration_says_so_and_within_its_limits() {
    let tree = Tree::new();
    tree.file("page.html", "<!--#echo var=\"DOCUMENT_NAME\" -->");
    tree.file("page.shtml", "<!--#echo var=\"DOCUMENT_NAME\" -->");
    tree.file("page.shtml.gz", "no coding of the expanded page");
    tree.file("dir/index.shtml", "<!--#echo var=\"DOCUMENT_URI\" -->");
    tree.file("large.html", "x".repeat(300_000));
    tree.file("large.shtml", "<!--#include virtual=\"large.html\" -->");
    tree.file("larger.shtml", "<!--#include virtual=\"large.html\" -->".repeat(4));
    let server = server(&tree, "");
    assert_eq!(server.get("/page.html").text(), "<!--#echo var=\"DOCUMENT_NAME\" -->");
    let page = server.connect().get_with("/page.shtml", "Accept-Encoding: gzip\r\n");
    assert_eq!((page.text(), page.field("content-encoding")), ("page.shtml", None));
    assert_eq!(server.get("/dir/").text(), "/dir/index.shtml");
    for _ in 0..3 {
        assert_eq!(server.get("/large.shtml").body.len(), 300_000, "too long to be pinned");
    }
    let part = server.connect().get_with("/large.shtml", "Range: bytes=299990-\r\n");
    assert_eq!((part.status, part.text()), (206, "xxxxxxxxxx"));
    assert_eq!(server.get("/larger.shtml").status, 500);
    assert!(server.log().contains("too long"), "{}", server.log());
}

#[test]
fn charsets_and_fields_are_set_by_path() {
    let tree = Tree::new();
    tree.file("archive/old.html", "old");
    tree.file("archive/old.png", "png");
    tree.file("page.html", "a page");
    let more = "[[site.filter]]\nprefix = \"/archive/\"\ncharset = \"iso-8859-1\"\n\
                headers = { Cache-Control = \"max-age=60\", X-A = \"\" }\n\
                [[site.filter]]\nextensions = [\"png\"]\nheaders = { Cache-Control = \"no-cache\" }\n";
    let server = Server::start(tree.path(), |launch| {
        let more = format!("headers = {{ X-A = \"a\", X-B = \"b\" }}\n{more}");
        launch.written(|endpoint| configuration(endpoint, &tree, &more));
    });
    let fields = |path: &str| {
        let answer = server.get(path);
        let field = |name: &str| answer.field(name).unwrap_or("-").to_owned();
        ["content-type", "cache-control", "x-a", "x-b"].map(field)
    };
    let utf8 = "text/html; charset=utf-8";
    assert_eq!(fields("/page.html"), [utf8, "-", "a", "b"]);
    let latin = "text/html; charset=iso-8859-1";
    assert_eq!(fields("/archive/old.html"), [latin, "max-age=60", "-", "b"]);
    assert_eq!(fields("/archive/old.png"), ["image/png", "no-cache", "-", "b"]);
}

#[test]
fn a_directory_that_stands_for_a_prefix_has_urls_below_it() {
    let tree = Tree::new();
    tree.file("menu.html", "menu");
    tree.file(
        "page.shtml",
        "<!--#echo var=\"DOCUMENT_URI\" --> <!--#include virtual=\"/docs/menu.html\" -->",
    );
    tree.file(
        "above.shtml",
        "<!--#config errmsg=\"no\" --><!--#include virtual=\"/menu.html\" -->",
    );
    let server = Server::start(tree.path(), |launch| {
        let root = tree.path().display();
        launch.written(|endpoint| {
            format!(
                "[[site]]\nlisten = [\"{endpoint}\"]\n{SHTML}\
                 [[site.path]]\nprefix = \"/docs/\"\nroot = \"{root}\"\n"
            )
        });
    });
    assert_eq!(server.get("/docs/page.shtml").text(), "/docs/page.shtml menu");
    assert_eq!(server.get("/docs/above.shtml").text(), "no");
}
