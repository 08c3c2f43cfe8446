//! Directories: their files, what stands in for those that are not there, errors, fields.

use afpa_testkit::{eventually, skip};

use super::apps::App;
use super::place::{Page, Place, all_say, route, send};

#[test]
pub(super) fn the_readme() {
    let page = Page::of("../README.md");
    let app = match App::node() {
        Ok(app) => app,
        Err(why) => skip!("{why}"),
    };
    let mut place = Place::default();
    place.file("/var/www/html/index.html", "<p>hello");
    place.file("/static/a.css", "css");
    let mut serve = page.command("afpa serve /var/www/html");
    serve.truncate(3); // an authority issues no certificate here
    let daemon = place.run(&serve);
    assert_eq!(daemon.get("/").text(), "<p>hello");
    assert_eq!(daemon.get("/none").status, 404);
    drop(daemon);

    place.replace("127.0.0.1:3000", app.to());
    let daemon = place.run(&page.command("afpa proxy --root static"));
    assert_eq!(daemon.get("/a.css").text(), "css");
    for target in ["/", "/socket.io/socket.io.js", "/users/42"] {
        let said = daemon.get(target);
        assert!(said.text().starts_with(&format!("node GET {target} 0\n")), "{said:?}");
    }
}

#[test]
pub(super) fn fallbacks() {
    let page = Page::of("fallback.md");
    let [example] = page.blocks("toml");
    let app = match App::node() {
        Ok(app) => app,
        Err(why) => skip!("{why}"),
    };
    let mut place = Place::default();
    for folder in ["/srv/shop", "/dist", "/static"] {
        place.file(&format!("{folder}/index.html"), "<p>home");
        place.file(&format!("{folder}/assets/a.js"), "js");
    }
    place.replace("127.0.0.1:3000", app.to());
    let server = place.serve(&example);
    let mut client = server.connect();
    all_say(
        &mut client,
        &[
            ("/", 200, "<p>home"),
            ("/basket/7", 200, "<p>home"),
            ("/assets/a.js", 200, "js"),
            ("/assets/none.js", 404, ""),
            ("/api/basket?id=7", 200, "node GET /api/basket?id=7 0\n"),
            // A name that begins with a dot is asked of servers.
            ("/api/.env", 200, "node GET /api/.env 0\n"),
            ("/.env", 404, ""),
        ],
    );
    page.claims("any method, with content, WebSocket, the shared cache");
    let large = "x".repeat(300_000);
    let sent = send(&mut client, "PUT", "/api/basket", &large);
    assert!(sent.text().starts_with("node PUT /api/basket 300000\n"), "{sent:?}");
    let mut socket = server.connect();
    socket.send(
        "GET /api/socket HTTP/1.1\r\nHost: a\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\
         Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n",
    );
    let head = String::from_utf8_lossy(&socket.take(34)).into_owned();
    assert_eq!(head, "HTTP/1.1 101 Switching Protocols\r\n");
    let kept = |client: &mut afpa_testkit::Client| {
        client.get("/api/kept?age=60").text().lines().last().unwrap_or_default().to_owned()
    };
    let first = kept(&mut client);
    assert_eq!(kept(&mut client), first, "the shared cache has it");
    page.claims("A file that appears is served at once");
    place.file("/srv/shop/basket/7", "a file");
    eventually("the file", || client.get("/basket/7").text() == "a file");
    assert!(route(&server, &["/basket/7"]).contains("may answer with the file"));
    place.remove("/srv/shop/basket/7");
    eventually("the fallback", || client.get("/basket/7").text() == "<p>home");
    assert!(route(&server, &["/basket/7"]).contains("never answers"));
    page.claims("Another method than GET and HEAD on a file that is there gets 405");
    assert_eq!(send(&mut client, "POST", "/assets/a.js", "x").status, 405);

    let daemon = place.run(&page.command("afpa serve dist --fallback"));
    assert_eq!(daemon.get("/users/42").text(), "<p>home");
    drop(daemon);
    let daemon = place.run(&page.command("afpa proxy --root static --to"));
    assert_eq!(daemon.get("/assets/a.js").text(), "js");
    assert!(daemon.get("/assets/none.js").text().starts_with("node GET /assets/none.js 0\n"));
}

#[test]
pub(super) fn error_pages() {
    let page = Page::of("errors.md");
    let [example] = page.blocks("toml");
    let (app, pages) = match (App::node(), App::node()) {
        (Ok(app), Ok(pages)) => (app, pages),
        (Err(why), _) | (_, Err(why)) => skip!("{why}"),
    };
    let mut place = Place::default();
    place.file("/srv/shop/a.css", "css");
    let closed = place.file("/srv/shop/closed.txt", "closed");
    let mode = std::os::unix::fs::PermissionsExt::from_mode(0o000);
    std::fs::set_permissions(closed, mode).expect("closed");
    place.beside("errors/404.html", "own 404");
    place.beside("errors/502.html", "own 502");
    place.replace("127.0.0.1:3000", app.to());
    place.replace("127.0.0.1:3001", pages.to());
    let server = place.serve(&example);
    let mut client = server.connect();
    all_say(
        &mut client,
        &[
            ("/a.css", 200, "css"),
            ("/none", 404, "own 404"),
            ("/closed.txt", 404, "own 404"),
            ("/api/x?status=404", 404, "node GET /errors?code=404 0\n"),
            ("/api/x?status=500", 500, "node GET /errors?code=500 0\n"),
            ("/api/x?status=409", 409, "node GET /api/x?status=409 0\n"),
        ],
    );
    let head = "DELETE /a.css HTTP/1.1\r\nHost: a\r\nAccept: application/json\r\n\r\n";
    let said = client.exchange(head);
    assert_eq!((said.status, said.field("content-type")), (405, Some("application/problem+json")));
    page.claims("if that fails, the built-in page");
    drop(pages);
    let said = client.get_with("/api/x?status=500", "Accept: text/plain\r\n");
    assert!(said.status == 500 && said.text().starts_with("500 "), "{said:?}");
    page.claims("a status before its class");
    drop(app);
    all_say(&mut client, &[("/api/x", 502, "own 502")]);
}

#[test]
pub(super) fn fields_and_cors() {
    let page = Page::of("headers.md");
    let [example] = page.blocks("toml");
    let app = match App::node() {
        Ok(app) => app,
        Err(why) => skip!("{why}"),
    };
    let mut place = Place::default();
    place.file("/srv/shop/index.html", "<p>home");
    place.replace("127.0.0.1:3000", app.to());
    let server = place.serve(&example);
    let mut client = server.connect();
    page.claims("Answers of every kind have these fields, kept ones too");
    for (target, status, cache) in [
        ("/", 200, None),
        ("/none", 404, Some("no-store")),
        ("/api/x", 200, None),
        ("/api/x?age=60", 200, Some("max-age=60")),
        ("/api/x?age=60", 200, Some("max-age=60")),
        ("/api/x?status=503", 503, Some("no-store")),
    ] {
        let said = client.get(target);
        assert_eq!(said.status, status, "{said:?}");
        assert_eq!(said.field("x-content-type-options"), Some("nosniff"), "{said:?}");
        assert_eq!(said.field("content-security-policy"), Some("default-src 'self'"), "{said:?}");
        assert_eq!((said.field("server"), said.field("x-powered-by")), (None, None), "{said:?}");
        assert_eq!(said.field("cache-control"), cache, "{target}: {said:?}");
    }
    assert!(client.get("/api/x").text().contains("\nX-Tenant: shop\n"));
    for (origin, allowed) in [
        ("https://app.example.org", true),
        ("https://a.example.net", true),
        ("https://example.net", false),
        ("http://app.example.org", false),
    ] {
        let lines = format!("Host: a\r\nOrigin: {origin}\r\n");
        let ask = "Access-Control-Request-Method: PUT\r\nAccess-Control-Request-Headers: x-a\r\n";
        let preflight = client.exchange(format!("OPTIONS /api/x HTTP/1.1\r\n{lines}{ask}\r\n"));
        let said = client.exchange(format!("GET /api/x HTTP/1.1\r\n{lines}\r\n"));
        let expected = allowed.then_some(origin);
        for answer in [&preflight, &said] {
            assert_eq!(answer.field("access-control-allow-origin"), expected, "{answer:?}");
            let credentials = answer.field("access-control-allow-credentials");
            assert_eq!(credentials, allowed.then_some("true"), "{answer:?}");
        }
        assert!(!allowed || preflight.status == 204, "{preflight:?}");
        assert_eq!(said.status, 200, "{said:?}");
    }
    let told = route(&server, &["/api/x"]);
    assert!(told.contains("cors") && told.contains("kernel       never answers"), "{told}");
}
