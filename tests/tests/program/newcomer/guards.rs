//! Access: by address, by password, by the word of a server.

use afpa_testkit::{curl::curl, skip};

use super::apps::App;
use super::place::{Page, Place, route};

#[test]
pub(super) fn access() {
    let page = Page::of("access.md");
    let [example] = page.blocks("toml");
    let app = match App::node() {
        Ok(app) => app,
        Err(why) => skip!("{why}"),
    };
    let mut place = Place::default();
    place.file("/srv/shop/a.txt", "text");
    place.replace("127.0.0.1:3000", app.to());
    place.believe_clients();
    let server = place.serve(&example);
    let mut client = server.connect();
    for (target, from, status) in [
        ("/a.txt", "198.51.100.1", 200),
        ("/a.txt", "198.51.100.200", 403),
        ("/admin/", "10.1.2.3", 200),
        ("/admin/", "10.9.2.3", 403),
        ("/admin/", "198.51.100.1", 403),
        ("/%61dmin//x", "198.51.100.1", 403),
        ("/x/../admin/", "198.51.100.1", 403),
    ] {
        let said = client.get_with(target, &format!("X-Forwarded-For: {from}\r\n"));
        assert_eq!(said.status, status, "{target} {from}: {said:?}");
    }
    let told = route(&server, &["/admin/"]);
    assert!(told.contains("access       allow 10.0.0.0/8, deny 10.9.0.0/16"), "{told}");
    assert!(told.contains("kernel       never answers"), "{told}");
}

#[test]
pub(super) fn names_and_passwords() {
    let page = Page::of("basic-auth.md");
    let [example] = page.blocks("toml");
    let app = match App::node() {
        Ok(app) => app,
        Err(why) => skip!("{why}"),
    };
    let mut place = Place::default();
    place.file("/srv/shop/a.txt", "text");
    place.replace("127.0.0.1:3000", app.to());
    let mut htpasswd = page.command("htpasswd -cB ");
    if !std::path::Path::new("/usr/bin/htpasswd").exists() {
        skip!("no htpasswd");
    }
    // It asks at the terminal, unless it is to read.
    htpasswd.insert(1, "-i".to_owned());
    std::fs::create_dir_all(place.at("/etc/afpa")).expect("a folder");
    let made = Place::default();
    std::fs::create_dir_all(made.at("/etc/afpa")).expect("a folder");
    let done = made.done(&htpasswd, "secret");
    assert!(done.status.success(), "{done:?}");
    let users = std::fs::read(made.at("/etc/afpa/staff.htpasswd")).expect("its file");
    place.file("/etc/afpa/staff.htpasswd", users);
    let server = place.serve(&example);
    for (login, target, status) in [
        ("", "/a.txt", "200"),
        ("", "/admin/", "401"),
        ("ann:secret", "/admin/", "200"),
        ("ann:wrong", "/admin/", "401"),
        ("bob:secret", "/admin/", "401"),
        ("", "/admin/health", "200"),
        ("", "/admin/health/x", "401"),
    ] {
        let url = format!("{}{target}", server.url());
        let login = if login.is_empty() { vec![] } else { vec!["--user", login] };
        let all = [&login[..], &["--include", &url]].concat();
        let Some(said) = curl(all) else { skip!("no curl") };
        let said = String::from_utf8_lossy(&said.output).into_owned();
        assert!(said.starts_with(&format!("HTTP/1.1 {status} ")), "{login:?} {target}: {said}");
        assert_eq!(said.contains("realm=\"staff only\""), status == "401", "{said}");
        let passed = status == "200" && login.len() == 2;
        assert_eq!(said.contains("Authorization: Basic "), passed, "as it came: {said}");
    }
    let told = route(&server, &["/admin/"]);
    assert!(told.contains("realm \"staff only\"  (by /admin/ *)"), "{told}");
}

#[test]
pub(super) fn a_server_that_says_who_may() {
    let page = Page::of("forward-auth.md");
    let [example] = page.blocks("toml");
    let (app, portal) = match (App::node(), App::portal()) {
        (Ok(app), Ok(portal)) => (app, portal),
        (Err(why), _) | (_, Err(why)) => skip!("{why}"),
    };
    let mut place = Place::default();
    place.replace("127.0.0.1:3000", app.to());
    place.replace("127.0.0.1:9091", portal.to());
    let server = place.serve(&example);
    let mut client = server.connect();
    let said = client.get("/orders?id=1");
    let to = "/authelia/?rd=http://test/orders?id=1&rm=GET";
    assert_eq!((said.status, said.field("location")), (302, Some(to)), "{said:?}");
    assert_eq!(client.get("/authelia/?rd=x").text(), "who are you?");
    page.claims("Fields of these names that clients send");
    let known = "Cookie: session=ann\r\nRemote-User: root\r\nRemote_Groups: wheel\r\n";
    let said = client.get_with("/orders", known);
    assert!(said.text().starts_with("node GET /orders 0\n"), "{said:?}");
    assert!(said.text().contains("\nRemote-User: ann\nRemote-Groups: staff\n"), "{said:?}");
    assert!(!said.text().contains("root") && !said.text().contains("wheel"), "{said:?}");
    page.claims("its Set-Cookie reaches the client");
    assert_eq!(said.field("set-cookie"), Some("seen=1"));
    let told = route(&server, &["/orders"]);
    assert!(told.contains("consent      ") && told.contains("never answers"), "{told}");
    drop(portal);
    page.claims("Without an answer the client gets 502 or 504");
    assert_eq!(client.get_with("/orders", "Cookie: session=ann\r\n").status, 502);
}
