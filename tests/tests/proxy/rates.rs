//! How often the clients of a place may ask, and the time-outs of places.

use std::fs;
use std::io::Write as _;
use std::net::TcpStream;
use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread::sleep;
use std::time::{Duration, Instant};

use afpa_testkit::server::{free_listener, program};
use afpa_testkit::{Client, Server, Tree, eventually};
use afpa_tests::h2::{self, H2Client};
use afpa_tests::proxy::{Raw, read_content, read_head};
use rustix::process::Signal;

/// A server that counts what it is asked.
fn app() -> (Raw, Arc<AtomicUsize>) {
    let asked = Arc::new(AtomicUsize::new(0));
    let count = Arc::clone(&asked);
    let raw = Raw::start(move |mut stream: TcpStream| {
        while let Some(head) = read_head(&mut stream) {
            let Some(_) = read_content(&mut stream, &head) else { return };
            count.fetch_add(1, Ordering::SeqCst);
            let kept = if head.contains("/kept") { "max-age=600" } else { "no-store" };
            let answer =
                format!("HTTP/1.1 200 OK\r\nCache-Control: {kept}\r\nContent-Length: 3\r\n\r\napp");
            if stream.write_all(answer.as_bytes()).is_err() {
                return;
            }
        }
    });
    (raw, asked)
}

fn tree() -> Tree {
    let tree = Tree::new();
    for name in ["a.txt", "own/a.txt", "free/a.txt", "429.html"] {
        tree.file(name, name);
    }
    tree.file("users", "ann:{SHA}5en6G6MezRroT3XKqkdPOmY/BfQ=\n");
    tree
}

/// `top`: settings of the whole program.
fn serve(tree: &Tree, settings: &str, top: &str) -> Server {
    let root = tree.path().display();
    Server::start("/", |launch| {
        launch.admin().written(|listen| {
            format!(
                "{top}http2.cleartext = true\n[[site]]\nlisten = [\"{listen}\"]\nroot = \"{root}\"\n{settings}\n"
            )
        });
    })
}

/// The statuses of so many requests for a target, one after the other.
fn statuses(client: &mut Client, target: &str, count: usize) -> Vec<u16> {
    (0..count).map(|_| client.get(target).status).collect()
}

#[test]
fn each_client_has_a_rate_in_each_place_that_says_one() {
    let ((app, asked), tree) = (app(), tree());
    let to = app.to();
    let server = serve(
        &tree,
        &format!(
            "client_rate = \"3/h\"\nforwarded_from = [\"127.0.0.0/8\"]\n\
             [[site.path]]\nprefix = \"/own/\"\nclient_rate = \"2/h\"\nroot = \"{root}/own\"\n\
             [[site.path.content]]\nextensions = [\"app\"]\nto = \"{to}\"\nclient_rate = \"1/h\"\n\
             [[site.path.content]]\nextensions = [\"txt\"]\n\
             [[site.path]]\nprefix = \"/free/\"\nclient_rate = \"none\"\nroot = \"{root}/free\"\n\
             [[site.path]]\nprefix = \"/inner/\"\nto = \"{to}\"\n\
             [[site.path]]\nprefix = \"/old/\"\nrewrite = \"/own/a.txt\"\nclient_rate = \"1000/h\"\n",
            root = tree.path().display()
        ),
        "",
    );
    let ask = |client: &str, target: &str| {
        server.connect().get_with(target, &format!("X-Forwarded-For: {client}\r\n"))
    };
    let status = |client: &str, target: &str| ask(client, target).status;
    // The site's rate is for all places that say none, and for whatever answers.
    let targets = ["/a.txt", "/no", "/inner/a", "/a.txt", "/no", "/inner/a"];
    assert_eq!(targets.map(|target| status("192.0.2.1", target)), [200, 404, 200, 429, 429, 429]);
    assert_eq!(asked.load(Ordering::SeqCst), 1);
    let refused = ask("192.0.2.1", "/a.txt");
    let seconds: u64 = refused.field("retry-after").expect("a time").parse().expect("a number");
    assert!((1100..=1200).contains(&seconds), "a third of an hour: {seconds}");
    assert_eq!(status("192.0.2.2", "/a.txt"), 200, "another client");
    // A place with a rate of its own counts for itself.
    assert_eq!(["/own/a.txt"; 3].map(|target| status("192.0.2.1", target)), [200, 200, 429]);
    assert_eq!(["/own/b.app"; 2].map(|target| status("192.0.2.1", target)), [200, 429]);
    assert_eq!(["/free/a.txt"; 5].map(|target| status("192.0.2.1", target)), [200; 5]);
    // A rewritten request counts where it comes from and where it leads.
    assert_eq!(["/old/x"; 3].map(|target| status("192.0.2.3", target)), [200, 200, 429]);
    // All of a /64 are one client.
    let own = ["2001:db8::1", "2001:db8::2", "2001:db8::3", "2001:db8:0:1::3"];
    assert_eq!(own.map(|client| status(client, "/own/a.txt")), [200, 200, 429, 200]);
    let mut http2 = H2Client::connect(&server);
    let got: Vec<u16> = (0..4)
        .map(|_| {
            let stream = http2.request(&h2::request("GET", "/own/a.txt"), b"");
            http2.response(stream).status
        })
        .collect();
    assert_eq!(got, [200, 200, 429, 429]);
    let metrics = Client::connect(&server.admin()).expect("connect").get("/metrics");
    assert!(
        metrics.text().contains("afpa_rate_refused_total{limit=\"client_rate\"} 10\n"),
        "{}",
        metrics.text()
    );
}

#[test]
fn all_clients_together_have_a_rate() {
    let tree = tree();
    let settings = "forwarded_from = [\"127.0.0.0/8\"]\nrate = \"2/h\"\nclient_rate = \"1/h\"\n";
    let server = serve(&tree, settings, "");
    let status = |client: &str| {
        server.connect().get_with("/a.txt", &format!("X-Forwarded-For: {client}\r\n")).status
    };
    // A client beyond its own rate costs others nothing.
    let clients = ["192.0.2.1", "192.0.2.1", "192.0.2.2", "192.0.2.3"];
    assert_eq!(clients.map(status), [200, 429, 200, 503]);
}

#[test]
fn a_rate_counts_before_passwords_once_and_its_error_has_its_page() {
    let (tree, (app, asked)) = (tree(), app());
    let (root, to) = (tree.path().display(), app.to());
    let server = serve(
        &tree,
        &format!(
            "client_rate = \"3/h\"\nbasic_auth = \"{root}/users\"\n\
             [[site.errors]]\nstatus = [429]\nfile = \"{root}/429.html\"\n\
             [[site.path]]\nprefix = \"/served/\"\nstatus = 200\nbasic_auth = \"none\"\n\
             [[site.path.errors]]\nstatus = [429]\nto = \"{to}\"\n"
        ),
        "",
    );
    let with = |password: &str| {
        // ann:secret, ann:wrong
        let line = format!("Authorization: Basic {password}\r\n");
        server.connect().get_with("/a.txt", &line)
    };
    let (right, wrong) = ("YW5uOnNlY3JldA==", "YW5uOndyb25n");
    assert_eq!([with(wrong), with(right), with(wrong)].map(|got| got.status), [401, 200, 401]);
    let beyond = with(right);
    assert_eq!((beyond.status, beyond.text()), (429, "429.html"));
    assert!(beyond.field("retry-after").is_some());
    let served = server.get("/served/");
    assert_eq!((served.status, asked.load(Ordering::SeqCst)), (429, 0), "a limit asks no server");
}

#[test]
fn tokens_come_back_and_stay_counted_after_a_reload() {
    let tree = tree();
    let server = serve(&tree, "client_rate = \"60/m burst 2\"", "");
    let mut client = server.connect();
    let got = statuses(&mut client, "/a.txt", 4);
    assert_eq!(got.iter().filter(|status| **status == 200).count(), 2, "{got:?}");
    eventually("there is another token", || client.get("/a.txt").status == 200);
    let server = serve(&tree, "client_rate = \"1/h\"", "");
    assert_eq!(server.get("/a.txt").status, 200);
    server.signal(Signal::HUP);
    eventually("it was reloaded", || server.log().contains("reload"));
    assert_eq!(server.get("/a.txt").status, 429);
}

#[test]
fn allowed_clients_of_the_police_have_no_rate() {
    let (tree, top) = (tree(), "police.allow = [\"127.0.0.0/8\"]\n");
    let server = serve(&tree, "client_rate = \"1/h\"", top);
    assert_eq!(statuses(&mut server.connect(), "/a.txt", 3), [200; 3]);
}

#[test]
fn hits_of_kept_answers_and_files_count() {
    let ((app, asked), tree) = (app(), tree());
    let to = app.to();
    let settings = format!(
        "[[site.path]]\nprefix = \"/app/\"\nto = \"{to}\"\nclient_rate = \"3/h\"\n\
         [[site.path]]\nprefix = \"/\"\nclient_rate = \"3/h\"\n"
    );
    let server = serve(&tree, &settings, "");
    let mut client = server.connect();
    assert_eq!(statuses(&mut client, "/app/kept", 5), [200, 200, 200, 429, 429]);
    assert_eq!(statuses(&mut client, "/a.txt", 5), [200, 200, 200, 429, 429]);
    assert_eq!(asked.load(Ordering::SeqCst), 1);
}

/// A server may drop parameters, or take an escaped slash for one.
#[test]
fn other_readings_of_a_path_count_as_well() {
    let ((app, asked), tree) = (app(), tree());
    let to = app.to();
    let settings = format!(
        "[[site.path]]\nprefix = \"/\"\nto = \"{to}\"\n\
         [[site.path]]\nprefix = \"/login/\"\nto = \"{to}\"\nclient_rate = \"4/h\"\n"
    );
    let server = serve(&tree, &settings, "");
    let mut client = server.connect();
    let targets = ["/login/x", "/login;a=b/x", "/login%2Fx", "/y/..;/login/x"];
    let all = targets.map(|target| client.get(target).status);
    assert_eq!(all, [200; 4], "each counts once");
    let all = targets.map(|target| client.get(target).status);
    assert_eq!(all, [429; 4]);
    assert_eq!(client.get("/log;in/x").status, 200, "no reading leads there");
    let mut route = Command::new(program());
    route.args(["route", "/login;a=b/x", "--config"]).arg(server.configuration());
    let told = String::from_utf8_lossy(&route.output().expect("run").stdout).into_owned();
    assert!(told.contains("rate         4/h for a client, by the path\n"), "{told}");
    assert_eq!(asked.load(Ordering::SeqCst), 5);
}

#[test]
fn a_reload_keeps_what_all_clients_have_used() {
    let tree = tree();
    let server =
        serve(&tree, "rate = \"2/h\"\n[[site.path]]\nprefix = \"/own/\"\nrate = \"1/h\"\n", "");
    let mut client = server.connect();
    assert_eq!(statuses(&mut client, "/a.txt", 1), [200]);
    assert_eq!(statuses(&mut client, "/own/a.txt", 2), [200, 503]);
    server.signal(Signal::HUP);
    eventually("it has reloaded", || server.log().contains("reloaded"));
    assert_eq!(statuses(&mut client, "/a.txt", 2), [200, 503]);
    assert_eq!(statuses(&mut client, "/own/a.txt", 1), [503]);
}

#[test]
fn places_have_time_outs() {
    // It begins an answer, and goes on after two seconds.
    let slow = Raw::start(|mut stream: TcpStream| {
        while read_head(&mut stream).is_some() {
            let _ = stream.write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 6\r\n\r\nslo");
            sleep(Duration::from_secs(2));
            if stream.write_all(b"wly").is_err() {
                return;
            }
        }
    });
    let (to, silent) = (slow.to(), free_listener());
    let silent = silent.local_addr().expect("an address");
    let tree = tree();
    let server = serve(
        &tree,
        &format!(
            "to = \"{to}\"\nidle = \"100ms\"\n\
             [[site.path]]\nprefix = \"/patient/\"\nto = \"{to}\"\nidle = \"1m\"\n\
             [[site.path]]\nprefix = \"/whole/\"\nto = \"{to}\"\nidle = \"1m\"\ntotal = \"200ms\"\n\
             [[site.path]]\nprefix = \"/any/\"\nto = \"{to}\"\nidle = \"1m\"\ntotal = \"0s\"\n\
             [[site.path]]\nprefix = \"/silent/\"\nto = \"{silent}\"\ntotal = \"200ms\"\n"
        ),
        "",
    );
    let broken = |target: &str| {
        let request = format!("GET {target} HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n");
        let begun = Instant::now();
        let mut client = server.connect();
        client.send(request);
        let got = client.read_to_close().expect("an end");
        (got.ends_with(b"slo"), begun.elapsed() < Duration::from_millis(1900))
    };
    assert_eq!(broken("/a"), (true, true));
    assert_eq!(broken("/whole/a"), (true, true));
    assert_eq!(server.get("/patient/a").text(), "slowly");
    assert_eq!(server.get("/any/a").text(), "slowly");
    assert_eq!(server.get("/silent/a").status, 504);
}

#[test]
fn a_route_names_its_rates_and_time_outs_and_nonsense_has_its_line() {
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("afpa.toml");
    let told = |settings: &str, command: &[&str]| {
        fs::write(&file, format!("[[site]]\n{settings}\n")).expect("written");
        let output = Command::new(program()).args(command).arg(&file).output().expect("it runs");
        let text = [output.stdout, output.stderr].concat();
        String::from_utf8_lossy(&text).into_owned()
    };
    let route = &["route", "/a/b", "--config"][..];
    let site = "root = \"/\"\nclient_rate = \"5/s burst 9\"\nrate = \"100/m\"\n";
    let path = "[[site.path]]\nprefix = \"/a/\"\nto = \"127.0.0.1:1\"\n";
    let times = "connect = \"1s\"\nidle = \"2m\"\ntotal = \"0s\"\ntunnel_idle = \"1h\"\n";
    let text = told(&format!("{site}{path}client_rate = \"1/s\"\n{times}"), route);
    for wanted in [
        "rate         1/s for a client, by the path; 100/m for all clients, by the site\n",
        "kernel       never answers: it counts no request by its place\n",
        "limits       connection within 1s, next byte within 120s, whole answer without a limit, next byte of a tunnel within 3600s\n",
    ] {
        assert!(text.contains(wanted), "{wanted}{text}");
    }
    let text = told(&format!("{site}{path}client_rate = \"none\"\nrate = \"none\"\n"), route);
    assert!(!text.contains("rate    "), "{text}");
    for nonsense in ["client_rate = \"often\"", "rate = \"5\"", "client_rate = 5", "idle = \"0s\""]
    {
        let text = told(&format!("to = \"127.0.0.1:1\"\n{nonsense}"), &["check"]);
        assert!(text.contains("afpa.toml:3:"), "{nonsense}: {text}");
    }
}

#[test]
fn the_page_about_crawlers_has_a_configuration_that_does_what_it_says() {
    let ((app, asked), tree) = (app(), tree());
    let page = concat!(env!("CARGO_MANIFEST_DIR"), "/../docs/crawlers.md");
    let page = fs::read_to_string(page).expect("the page");
    let example = page.split("```toml\n").nth(1).and_then(|rest| rest.split("```").next());
    let example = example.expect("an example").replace("127.0.0.1:3000", &app.to());
    let root = tree.path().display().to_string();
    let server = Server::start("/", |launch| {
        launch.written(|listen| {
            let listen = format!("[[site]]\nlisten = [\"{listen}\"]");
            example.replacen("[[site]]", &listen, 1).replace("/srv/shop", &root)
        });
    });
    let robots = server.get("/robots.txt");
    assert!(robots.text().starts_with("User-agent: GPTBot\nUser-agent: CCBot\nDisallow: /\n\n"));
    let mut client = server.connect();
    let mut status =
        |agent: &str| client.get_with("/catalog/a", &format!("User-Agent: {agent}\r\n")).status;
    for agent in ["Mozilla/5.0 (compatible; GPTBot/1.2)", "ccbot/2.0"] {
        assert_eq!(status(agent), 403);
    }
    assert_eq!(asked.load(Ordering::SeqCst), 0);
    let crawlers: Vec<u16> = (0..80)
        .map(|number| status(if number % 2 == 0 { "Googlebot" } else { "a spider" }))
        .collect();
    let let_in = crawlers.iter().filter(|status| **status == 200).count();
    assert!((60..80).contains(&let_in), "{crawlers:?}");
    assert_eq!(crawlers.last(), Some(&503), "{crawlers:?}");
    // They do not take from others.
    let browser: Vec<u16> = (0..200).map(|_| status("Mozilla/5.0")).collect();
    assert!(browser.iter().take(50).all(|status| *status == 200), "{browser:?}");
    assert!(browser.contains(&429), "{browser:?}");
    assert_eq!(server.get("/a.txt").status, 200);
}
