//! Servers: where requests go, what they are asked for, what is kept of their answers, PHP.

use std::fs;

use afpa_testkit::{Server, eventually, skip};
use afpa_tests::codings::decode;
use afpa_tests::proxy::{Backend, Kind, PhpFpm};
use rustix::process::Signal;

use super::apps::App;
use super::place::{Page, Place, all_say, route, send};

#[test]
pub(super) fn compression() {
    let page = Page::of("compression.md");
    let [example] = page.blocks("toml");
    let app = match App::node() {
        Ok(app) => app,
        Err(why) => skip!("{why}"),
    };
    let mut place = Place::default();
    place.replace("127.0.0.1:3000", app.to());
    let server = place.serve(&example);
    let mut client = server.connect();
    for (target, wanted, coding) in [
        ("/?lines=500", "gzip, br", Some("br")),
        ("/?lines=500", "gzip", Some("gzip")),
        ("/?lines=500", "zstd", Some("zstd")),
        ("/?lines=500", "identity", None),
        ("/?lines=1", "gzip, br", None),
        ("/?lines=500&age=60", "gzip", Some("gzip")),
        ("/?lines=500&age=60", "gzip", Some("gzip")),
        ("/account/?lines=500", "gzip, br", None),
    ] {
        let said = client.get_with(target, &format!("Accept-Encoding: {wanted}\r\n"));
        assert_eq!(said.field("content-encoding"), coding, "{target} {wanted}: {said:?}");
        let content = decode(coding, &said.body);
        let text = String::from_utf8_lossy(&content).into_owned();
        assert!(text.starts_with(&format!("node GET {target} 0\n")), "{text}");
        let varies = said.field("vary").is_some_and(|vary| vary.contains("Accept-Encoding"));
        assert!(varies || target != "/?lines=500", "{target} {wanted}: {said:?}");
    }
    let command = page.command("afpa proxy --compress");
    let more = [command, ["--to", app.to()].map(str::to_owned).to_vec()].concat();
    let daemon = Place::default().run(&more);
    let url = format!("http://{}/?lines=500", daemon.at());
    let asked = afpa_testkit::curl::curl(["--include", "-H", "Accept-Encoding: gzip", &url]);
    let Some(asked) = asked else { skip!("no curl") };
    let said = String::from_utf8_lossy(&asked.output).to_lowercase();
    assert!(said.contains("content-encoding: gzip"), "{said}");
}

#[test]
pub(super) fn conditions() {
    let page = Page::of("conditions.md");
    let [example] = page.blocks("toml");
    let servers = [(Kind::Node, "app"), (Kind::Python, "report"), (Kind::Nginx, "debug")];
    let servers = servers.map(|(kind, name)| Backend::start(kind, name));
    let [Ok(app), Ok(report), Ok(debug)] = &servers else { skip!("{servers:?}") };
    let mut place = Place::default();
    for (from, server) in
        [("127.0.0.1:3000", app), ("127.0.0.1:3001", report), ("127.0.0.1:3002", debug)]
    {
        place.replace(from, server.to());
    }
    place.believe_clients();
    let server = place.serve(&example);
    let mut client = server.connect();
    for (host, method, target, from, content) in [
        ("shop.example", "GET", "/report/7?year=2026", "192.0.2.1", "report"),
        ("WWW2.shop.example:80", "GET", "/a.csv?year=2026", "192.0.2.1", "report"),
        ("shop.example", "GET", "/report/7?year=1999", "192.0.2.1", "app"),
        ("shop.example", "GET", "/report/x?year=2026", "192.0.2.1", "app"),
        ("shop.example", "POST", "/report/7?year=2026", "192.0.2.1", "content"),
        ("shop.example", "GET", "/?debug", "10.1.2.3", "debug"),
        ("shop.example", "GET", "/?debug", "192.0.2.1", "app"),
        ("www.shop.example", "GET", "/", "192.0.2.1", "421"),
    ] {
        let length = if method == "POST" { "Content-Length: 7\r\n\r\ncontent" } else { "\r\n" };
        let said = client.exchange(format!(
            "{method} {target} HTTP/1.1\r\nHost: {host}\r\nX-Forwarded-For: {from}\r\n{length}"
        ));
        match content {
            "421" => assert_eq!(said.status, 421, "{host} {target}"),
            content => assert_eq!(said.text(), content, "{host} {method} {target} {from}"),
        }
    }
    let told = route(&server, &["http://shop.example/?debug", "--client", "10.1.2.3"]);
    assert!(told.contains(&debug.to()) && told.contains("never answers"), "{told}");
}

#[test]
pub(super) fn rewrites() {
    let page = Page::of("rewrites.md");
    let [example] = page.blocks("toml");
    let app = match App::node() {
        Ok(app) => app,
        Err(why) => skip!("{why}"),
    };
    let mut place = Place::default();
    place.file("/srv/www/user.html", "user");
    place.replace("127.0.0.1:3000", app.to());
    let server = place.serve(&example);
    let mut client = server.connect();
    all_say(
        &mut client,
        &[
            ("/u/42", 200, "user"),
            ("/u/x", 404, ""),
            ("/img/42/a%20b", 200, "node GET /resize?w=42&name=a%20b 0\n"),
            ("/img/x/a", 404, ""),
            ("/blog/7", 404, ""),
        ],
    );
    let moved = client.get("/blog/7/a?x=1");
    let to = "https://blog.example/7-a?x=1";
    assert_eq!((moved.status, moved.field("location")), (301, Some(to)));
    assert!(route(&server, &["/u/42"]).contains("rewritten to /user.html?id=42\n"));
}

#[test]
pub(super) fn limits() {
    let page = Page::of("limits.md");
    let [example] = page.blocks("toml");
    let app = match App::node() {
        Ok(app) => app,
        Err(why) => skip!("{why}"),
    };
    let mut place = Place::default();
    place.replace("127.0.0.1:3000", app.to());
    place.replace("\"30s\"", "\"300ms\"");
    let server = place.serve(&example);
    let post = |target: &str, length: usize| {
        let content = "x".repeat(length);
        send(&mut server.connect(), "POST", target, &content)
    };
    for target in ["/a", "/reports/a"] {
        let head = format!("POST {target} HTTP/1.1\r\nHost: a\r\nContent-Length: 1048577\r\n\r\n");
        assert_eq!(server.connect().exchange(head).status, 413, "{target}");
    }
    for (target, length) in [("/a", 1 << 20), ("/upload/a", 2 << 20), ("/reports/a", 1 << 20)] {
        let said = post(target, length);
        assert!(said.text().starts_with(&format!("node POST {target} {length}\n")), "{said:?}");
    }
    assert_eq!(server.get("/a?wait=2000").status, 504);
    assert_eq!(server.get("/reports/a?wait=1000").status, 200);
    let guesses: Vec<u16> = (0..6).map(|_| server.get("/login").status).collect();
    assert_eq!(guesses, [200, 200, 200, 200, 200, 429]);
    drop(server);
    place.replace("\"100/m\"", "\"1/m\"");
    let server = place.serve(&example);
    let of_all = ["/reports/a", "/reports/b", "/a"].map(|target| server.get(target).status);
    assert_eq!(of_all, [200, 503, 200]);
}

#[test]
pub(super) fn the_router() {
    let page = Page::of("router.md");
    let [example] = page.blocks("toml");
    let app = match App::node() {
        Ok(app) => app,
        Err(why) => skip!("{why}"),
    };
    let mut place = Place::default();
    place.file("/var/www/html/a.css", "css");
    place.replace("127.0.0.1:3000", app.to());
    let server = place.serve(&example);
    let mut client = server.connect();
    all_say(&mut client, &[("/a.css", 200, "css"), ("/x", 200, "node GET /x 0\n")]);
    let told = route(&server, &["http://www.example.org/b/../a.css"]);
    for row in
        ["address", "site", "path         /a.css  (normalised from", "request set", "behaviour"]
    {
        assert!(told.lines().any(|line| line.starts_with(row)), "{row}: {told}");
    }
    // The server of the page is one of a group there; here it is the only one.
    for (order, state) in [("drain", "draining"), ("ready", "up")] {
        let words = page.command(&format!("afpa server {order} "));
        let done = server.command(&["server", &words[2], app.to()]);
        assert!(done.status.success(), "{done:?}");
        eventually(state, || afpa_tests::proxy::state(&server, app.to()) == state);
    }
}

#[test]
pub(super) fn the_shared_cache() {
    let page = Page::of("shared-cache.md");
    let [snapshot] = page.blocks("toml");
    let app = match App::node() {
        Ok(app) => app,
        Err(why) => skip!("{why}"),
    };
    let place = Place::default();
    place.open_folder("/var/lib/afpa");
    let to = app.to();
    let mut server = place.serve(&format!("{snapshot}\n[[site]]\nto = \"{to}\"\n"));
    let count = |server: &Server, target: &str| {
        let said = server.get(target);
        assert_eq!(said.status, 200, "{said:?}");
        said.text().lines().find(|line| line.starts_with("count: ")).map(str::to_owned)
    };
    for purge in ["afpa purge http://www", "afpa purge --below", "afpa purge --host"] {
        let mut words = page.command(purge);
        words.remove(0);
        for word in &mut words {
            *word = word.replace("www.example.org", "test").replace("/news/a", "/news/a?age=600");
        }
        let before = count(&server, "/news/a?age=600");
        assert_eq!(count(&server, "/news/a?age=600"), before, "it is kept");
        let done = server.command(&words.iter().map(|word| &**word).collect::<Vec<_>>());
        assert!(done.status.success(), "{done:?}");
        assert_ne!(count(&server, "/news/a?age=600"), before, "{words:?}");
    }
    let before = count(&server, "/kept?age=600");
    server.end_and_restart(Signal::TERM, || ());
    // The first start says it, too: it found none.
    let told = || server.log().matches("taken over").count() == 2;
    eventually("it says what it has taken over", told);
    assert_eq!(count(&server, "/kept?age=600"), before, "{}", server.log());
}

/// Says how it was called.
const FRONT: &str = "<?php $s = $_SERVER; \
    echo 'front ', $s['REQUEST_URI'], ' ', $s['SCRIPT_NAME'], ' ', $s['PATH_INFO'] ?? '';";

/// Files of WordPress and Nextcloud, and PHP-FPM in the place of that of the pages.
fn with_php() -> Result<(Place, PhpFpm), String> {
    let fpm = PhpFpm::start(true, 2, "")?;
    let mut place = Place::default();
    for script in ["index", "wp-login", "remote", "wp-content/uploads/evil", "xmlrpc", "lib/x"] {
        place.file(&format!("/srv/www/{script}.php"), FRONT);
    }
    place.file("/srv/www/config/config.php", "<?php /* secret */");
    place.file("/srv/www/data/owncloud.log", "secret");
    place.file("/srv/www/core/css/a.css", "css");
    place.file("/srv/www/wp-content/uploads/a.txt", "text");
    place.file("/srv/www/x.php.gz", "<?php /* secret */");
    place.replace("unix:/run/php/php-fpm.sock", fpm.to());
    Ok((place, fpm))
}

#[test]
pub(super) fn php() {
    let page = Page::of("php.md");
    let [plain, wordpress] = page.blocks("toml");
    let (place, _fpm) = match with_php() {
        Ok(both) => both,
        Err(why) => skip!("{why}"),
    };
    let plainly = [
        ("/", 200, "front / /index.php "),
        ("/core/css/a.css", 200, "css"),
        ("/wp-login.php/a?b", 200, "front /wp-login.php/a?b /wp-login.php /a"),
        ("/none", 404, ""),
        ("/none.php", 404, ""),
    ];
    all_say(&mut place.serve(&plain).connect(), &plainly);
    let daemon = place.run(&page.command("afpa serve /srv/www --php"));
    assert_eq!(daemon.get("/").text(), "front / /index.php ");
    drop(daemon);
    all_say(
        &mut place.serve(&wordpress).connect(),
        &[
            ("/2026/11/hello/", 200, "front /2026/11/hello/ /index.php "),
            ("/wp-login.php", 200, "front /wp-login.php /wp-login.php "),
            ("/wp-content/uploads/evil.php", 403, ""),
            ("/wp-content/uploads/a.txt", 200, "text"),
            ("/wp-content/uploads/none.jpg", 404, ""),
            ("/xmlrpc.php", 403, ""),
        ],
    );
}

#[test]
pub(super) fn nextcloud() {
    let page = Page::of("php-nextcloud.md");
    let [example] = page.blocks("toml");
    let (place, _fpm) = match with_php() {
        Ok(both) => both,
        Err(why) => skip!("{why}"),
    };
    let server = place.serve(&example);
    let mut client = server.connect();
    all_say(
        &mut client,
        &[
            ("/apps/files", 200, "front /apps/files /index.php "),
            ("/remote.php/dav/files", 200, "front /remote.php/dav/files /remote.php /dav/files"),
            ("/core/css/a.css", 200, "css"),
            ("/config/config.php", 404, ""),
            ("/data/owncloud.log", 404, ""),
            ("/lib/x.php", 404, ""),
        ],
    );
    let moved = client.get("/.well-known/carddav");
    assert_eq!((moved.status, moved.field("location")), (301, Some("/remote.php/dav/")));
    page.claims("Uploads larger than 64 KiB go to PHP as they arrive");
    place.file("/srv/www/take.php", "<?php echo strlen(file_get_contents('php://input'));");
    let taken = || send(&mut server.connect(), "PUT", "/take.php", &"x".repeat(200_000));
    eventually("the script is there", || taken().status == 200);
    assert_eq!(taken().text(), "200000");
}

#[test]
pub(super) fn php_details() {
    let page = Page::of("php-details.md");
    let [example] = page.blocks("toml");
    let (place, _fpm) = match with_php() {
        Ok(both) => both,
        Err(why) => skip!("{why}"),
    };
    // PHP's container has the files elsewhere.
    fs::create_dir_all(place.at("/var/www")).expect("a folder");
    std::os::unix::fs::symlink(place.at("/srv/www"), place.at("/var/www/html")).expect("a link");
    place.file(
        "/srv/www/where.php",
        "<?php header('Location: /there'); echo $_SERVER['DOCUMENT_ROOT'];",
    );
    let server = place.serve(&example);
    let mut client = server.connect();
    all_say(
        &mut client,
        &[
            ("/index.php", 200, "front /index.php /index.php "),
            ("/core/css/a.css", 200, "css"),
            // A stored coding of a script is a script.
            ("/x.php.gz", 403, ""),
            ("/core/css/a.css/index.php", 404, ""),
        ],
    );
    let said = client.get("/where.php");
    assert_eq!((said.status, said.field("location")), (302, Some("/there")), "{said:?}");
    assert_eq!(said.text(), place.at("/var/www/html").display().to_string());
    eventually("checks of /ping find it", || afpa_tests::proxy::state(&server, "fpm.sock") == "up");
}
