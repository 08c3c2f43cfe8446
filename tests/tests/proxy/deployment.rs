//! The configurations of docs/scenarios, run: with addresses and folders of the test in the place of
//! those of the files.

use std::fs;
use std::io::Write as _;
use std::net::{IpAddr, SocketAddr, TcpStream};
use std::path::Path;
use std::time::Duration;

use afpa_testkit::server::free_address;
use afpa_testkit::{Client, Endpoint, Response, Server, Tree, eventually_within, skip};
use afpa_tests::proxy::{Backend, Kind, Raw, Traffic, read_head, state};

/// The text of a scenario, with `[from, to]` replaced; each must be there.
fn scenario(name: &str, replaced: &[[&str; 2]]) -> String {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs/scenarios");
    let mut text = fs::read_to_string(folder.join(name)).expect("a scenario");
    // One address does: that for IPv6, which is replaced.
    for everyone in ["\"0.0.0.0:80\", ", "\"0.0.0.0:8080\", "] {
        text = text.replace(everyone, "");
    }
    for [from, to] in replaced {
        let from = format!("\"{from}\"");
        assert!(text.contains(&from), "{name} has no {from}");
        text = text.replace(&from, &format!("\"{to}\""));
    }
    text
}

/// A server that answers with its name and the request; sets no cookies of its own.
fn named(name: &'static str) -> Raw {
    Raw::start(move |mut stream: TcpStream| {
        while let Some(head) = read_head(&mut stream) {
            let content = format!("{name} {head}");
            let length = content.len();
            let answer = format!("HTTP/1.1 200 OK\r\nContent-Length: {length}\r\n\r\n{content}");
            if stream.write_all(answer.as_bytes()).is_err() {
                return;
            }
        }
    })
}

fn files() -> (Tree, String) {
    let tree = Tree::new();
    tree.file("logo.png", "an image");
    tree.file("index.html", "the index");
    let root = tree.path().display().to_string();
    (tree, root)
}

fn start(text: impl FnOnce(&Endpoint) -> String) -> Server {
    Server::start("/", |launch| {
        launch.written(text);
    })
}

#[track_caller]
fn get(client: &mut Client, host: &str, target: &str, lines: &str) -> Response {
    client.exchange(format!("GET {target} HTTP/1.1\r\nHost: {host}\r\n{lines}\r\n"))
}

/// Which server answered.
fn who(response: &Response) -> &str {
    assert_eq!(response.status, 200, "{response:?}");
    response.text().split(' ').next().unwrap_or_default()
}

#[test]
fn beside_a_server_on_the_same_machine() {
    let (app, (_tree, root)) = (named("app"), files());
    let server = start(|listen| {
        let (listen, app) = (listen.to_string(), app.to());
        let replaced = [["[::]:80", &listen], ["/var/www/html", &root], ["127.0.0.1:3000", &app]];
        scenario("colocated.toml", &replaced)
    });
    let mut client = server.connect();
    for _ in 0..2 {
        assert_eq!(get(&mut client, "any", "/logo.png", "").text(), "an image");
        assert_eq!(who(&get(&mut client, "any", "/", "")), "app");
        assert_eq!(who(&get(&mut client, "any", "/basket.php?x=1", "")), "app");
    }
}

#[test]
fn dedicated_to_static_content() {
    let (_tree, root) = files();
    let server = start(|listen| {
        let listen = listen.to_string();
        let text = scenario("static.toml", &[["[::]:80", &listen], ["/var/www/html", &root]]);
        // The test is not alone on its machine.
        text.replace("\"75%\"", "\"1%\"")
    });
    let mut client = server.connect();
    let image = get(&mut client, "static.example.org", "/logo.png", "");
    assert_eq!(image.text(), "an image");
    assert_eq!(image.field("cache-control"), Some("max-age=86400"));
    assert_eq!(get(&mut client, "static.example.org", "/", "").text(), "the index");
    assert_eq!(get(&mut client, "static.example.org", "/health", "").text(), "ok\n");
    assert_eq!(get(&mut client, "example.org", "/logo.png", "").status, 421);
}

#[test]
fn before_several_servers() {
    let servers = [named("page1"), named("page2"), named("shop1"), named("shop2")];
    let (_tree, root) = files();
    let server = start(|listen| {
        let listen = listen.to_string();
        let [a, b, c, d] = servers.each_ref().map(Raw::to);
        let replaced = [
            ["[::]:80", &listen],
            ["/var/www/html", &root],
            ["10.0.0.1:80", &a],
            ["10.0.0.2:80", &b],
            ["10.0.0.3:80", &c],
            ["10.0.0.4:80", &d],
        ];
        scenario("front-end.toml", &replaced)
    });
    let mut client = server.connect();
    assert_eq!(get(&mut client, "example.org", "/logo.png", "").text(), "an image");
    let mut pages = Vec::new();
    for _ in 0..6 {
        pages.push(who(&get(&mut client, "www.example.org", "/news", "")).to_owned());
    }
    // One to the first, two to the second, whichever comes first.
    let first = pages.iter().filter(|page| *page == "page1").count();
    assert_eq!((first, pages.len()), (2, 6), "{pages:?}");

    let basket = get(&mut client, "example.org", "/shop/add", "");
    let own = who(&basket).to_owned();
    assert!(own.starts_with("shop"), "{own}");
    let cookie =
        basket.field("set-cookie").expect("a cookie").split(';').next().unwrap_or_default();
    let lines = format!("Cookie: {cookie}\r\n");
    for _ in 0..6 {
        assert_eq!(who(&get(&mut client, "example.org", "/shop/pay", &lines)), own);
    }
    let moved = get(&mut client, "example.org", "/catalogue/a?b", "");
    assert_eq!((moved.status, moved.field("location")), (308, Some("/shop/a?b")));
    assert_eq!(get(&mut client, "other.test", "/", "").status, 421);
    let limited = (0..300).any(|_| get(&mut client, "example.org", "/news", "").status == 429);
    assert!(limited, "300 requests at once are more than a client may ask");
}

/// The same before nginx, Apache, a Python and a Node application, one of each group killed.
#[test]
fn before_several_servers_of_which_two_are_killed() {
    let kinds = [Kind::Nginx, Kind::Apache, Kind::Python, Kind::Node];
    let names = ["page1", "page2", "shop1", "shop2"];
    let started = kinds.into_iter().zip(names).map(|(kind, name)| Backend::start(kind, name));
    let mut servers = match started.collect::<Result<Vec<_>, _>>() {
        Ok(servers) => servers,
        Err(why) => skip!("{why}"),
    };
    let (_tree, root) = files();
    let server = start(|listen| {
        let listen = listen.to_string();
        let places: Vec<_> = servers.iter().map(Backend::to).collect();
        let replaced = [
            ["[::]:80", &listen],
            ["/var/www/html", &root],
            ["10.0.0.1:80", &places[0]],
            ["10.0.0.2:80", &places[1]],
            ["10.0.0.3:80", &places[2]],
            ["10.0.0.4:80", &places[3]],
            ["example.org", "site"],
        ];
        // The traffic is one client, and impatient: limits have tests of their own.
        let text = scenario("front-end.toml", &replaced);
        text.replace("client_requests_per_second = 100", "client_requests_per_second = 0")
    });
    let mut client = server.connect();
    let basket = get(&mut client, "site", "/shop/add", "");
    let own = who(&basket).to_owned();
    let cookie =
        basket.field("set-cookie").expect("a cookie").split(';').next().unwrap_or_default();
    let lines = format!("Cookie: {cookie}\r\n");
    let traffic = Traffic::start(&server, 4, Duration::from_millis(5));
    traffic.pass(100);
    let shop = names.iter().position(|name| *name == own).expect("one of the shop's");
    for killed in [1, shop] {
        servers[killed].kill();
        traffic.pass(100);
        // Its clients lose their basket, and not their way.
        assert!(who(&get(&mut client, "site", "/shop/pay", &lines)).starts_with("shop"));
    }
    eventually_within(Duration::from_secs(5), "one is seen to be gone", || {
        state(&server, &servers[1].to()) == "refused"
    });
    assert_ne!(who(&get(&mut client, "site", "/shop/pay", &lines)), own);
    for sample in traffic.end() {
        assert!(sample.answer.as_ref().is_ok_and(|(status, _)| *status == 200), "{sample:?}");
    }
}

#[test]
fn behind_a_router() {
    let (app, (_tree, root)) = (named("app"), files());
    let second = free_address();
    let server = start(|listen| {
        let (listen, second, app) = (listen.to_string(), second.to_string(), app.to());
        let replaced = [
            ["[::]:80", &listen],
            ["[::]:8080", &second],
            ["/var/www/html", &root],
            ["10.0.0.1:80", &app],
            ["10.1.0.0/24", "127.0.0.1"],
        ];
        scenario("behind-router.toml", &replaced)
    });
    let from = |from: &str, to: SocketAddr| {
        let from: IpAddr = from.parse().expect("an address");
        Client::connect_from(from, to).expect("connect")
    };
    let first = server.address();
    let mut router = from("127.0.0.1", first);
    let header = "PROXY TCP4 1.2.3.4 9.9.9.9 5 80\r\n";
    let page = router.exchange(format!("{header}GET / HTTP/1.1\r\nHost: a\r\n\r\n"));
    assert!(page.text().contains("X-Forwarded-For: 1.2.3.4\r\n"), "{page:?}");
    assert_eq!(get(&mut router, "a", "/logo.png", "").text(), "an image");

    eventually_within(Duration::from_secs(5), "the second address is open", || {
        Client::connect(&Endpoint::Tcp(second)).is_ok()
    });
    let mut router = from("127.0.0.1", second);
    let page = get(&mut router, "a", "/", "X-Forwarded-For: 6.6.6.6, 1.2.3.4\r\n");
    let told = page.text();
    assert!(told.contains("X-Forwarded-For: 6.6.6.6, 1.2.3.4, 127.0.0.1\r\n"), "{told}");
    // A stranger's word on other clients is worth nothing.
    let page = get(&mut from("127.0.0.9", second), "a", "/", "X-Forwarded-For: 1.2.3.4\r\n");
    assert!(page.text().contains("X-Forwarded-For: 127.0.0.9\r\n"), "{page:?}");
}
