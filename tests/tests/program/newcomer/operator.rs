//! An operator's jobs: files of configuration, logs, numbers, orders, an upgrade, a move from nginx.

use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};

use afpa_testkit::server::{free_address, program};
use afpa_testkit::{Client, Endpoint, Running, Server, curl::curl, eventually, skip};
use serde_json::Value;

use super::apps::App;
use super::place::{Page, Place, route};
use crate::upgrade::Next;

/// The lines of a log, as soon as there are so many.
fn log_lines(path: &Path, count: usize) -> Vec<String> {
    let lines = || fs::read_to_string(path).unwrap_or_default();
    eventually("the log has its lines", || lines().lines().count() >= count);
    lines().lines().map(str::to_owned).collect()
}

#[test]
pub(super) fn several_files() {
    let page = Page::of("several-files.md");
    let [example] = page.blocks("toml");
    let mut place = Place::default();
    let (own, other) = (free_address().to_string(), free_address());
    place.env("ADDRESS", &own);
    place.beside("www/index.html", "main");
    place.beside("release.txt", "one\n");
    let site = format!("[[site]]\nlisten = [\"{other}\"]\nroot = \"../www\"\n");
    place.beside("sites/other.toml", &site);
    place.beside("sites/.hidden.toml", "nonsense = 1");
    let server = place.serve_with(&example, |launch| {
        launch.endpoint(Endpoint::Tcp(own.parse().expect("an address")));
    });
    let said = server.get("/");
    assert_eq!((said.text(), said.field("x-release")), ("main", Some("one")), "{said:?}");
    page.claims("`$${` stands for `${`");
    assert_eq!(said.field("x-price"), Some("5 ${USD}"));
    assert_eq!(Client::to(other).get("/").text(), "main");
    let print = page.command("afpa check --print");
    let mut check = Command::new(program());
    let output = check.args(&print[1..]).arg(server.configuration()).env("ADDRESS", &own).output();
    let printed = String::from_utf8(output.expect("it runs").stdout).expect("UTF-8");
    assert!(printed.contains("workers = 2\n") && printed.contains(&other.to_string()), "{printed}");
    page.claims("A variable that is not set, or a file that does not exist, is an error");
    let output = check.env_remove("ADDRESS").output().expect("it runs");
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(!output.status.success() && said.contains("the variable ADDRESS is not set"), "{said}");
}

#[test]
pub(super) fn the_access_log() {
    let page = Page::of("access-log.md");
    let [example] = page.blocks("toml");
    let [line] = page.blocks("text");
    let app = match App::node() {
        Ok(app) => app,
        Err(why) => skip!("{why}"),
    };
    let mut place = Place::default();
    place.open_folder("/var/log/afpa");
    place.replace("127.0.0.1:3000", app.to());
    let server = place.serve(&example);
    server.get("/a%20b?c=d%20status=404");
    let lines = log_lines(&place.at("/var/log/afpa/access.log"), 1);
    let names = |line: &str| -> Vec<String> {
        let pairs = line.split(' ').filter_map(|pair| pair.split_once('='));
        pairs.map(|(name, _)| name.to_owned()).collect()
    };
    assert_eq!(names(&lines[0]), names(line.trim()), "{lines:?}");
    for part in [" client=127.0.0.1 ", " status=200 ", &format!(" server={} ", app.to())] {
        assert!(lines[0].contains(part), "{part}: {lines:?}");
    }
    page.claims("SIGUSR1 opens the file anew");
    let renamed = place.at("/var/log/afpa/access.1");
    fs::rename(place.at("/var/log/afpa/access.log"), renamed).expect("renamed");
    server.signal(rustix::process::Signal::USR1);
    eventually("the file is there again", || place.at("/var/log/afpa/access.log").exists());
}

#[test]
pub(super) fn ids_and_traces() {
    let page = Page::of("tracing.md");
    let [example] = page.blocks("toml");
    let app = match App::node() {
        Ok(app) => app,
        Err(why) => skip!("{why}"),
    };
    let mut place = Place::default();
    place.open_folder("/var/log/afpa");
    // The prefix gives way to the directory.
    place.file("/srv/static/a.css", "css");
    place.replace("127.0.0.1:3000", app.to());
    let server = place.serve(&example);
    let trace = "traceparent: 00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01\r\n";
    let said = server.connect().get_with("/x", &format!("X-Request-Id: forged\r\n{trace}"));
    let id = said.field("x-request-id").expect("an id").to_owned();
    assert!(id.len() == 32 && id.bytes().all(|b| b.is_ascii_hexdigit()), "{id}");
    let told = said.text().to_lowercase();
    assert!(told.contains(&format!("\nx-request-id: {id}\n")), "{told}");
    assert!(told.contains("\ntraceparent: 00-4bf92f3577b34da6a3ce929d0e0e4736-"), "{told}");
    assert!(!told.contains("00f067aa0ba902b7") && !told.contains("forged"), "a new step: {told}");
    let file = server.get("/static/a.css");
    assert_eq!((file.text(), file.field("x-request-id")), ("css", None), "{file:?}");
    let lines = log_lines(&place.at("/var/log/afpa/access.log"), 2);
    let lines: Vec<Value> =
        lines.iter().map(|line| serde_json::from_str(line).expect("JSON")).collect();
    let line = lines.iter().find(|line| line["target"] == "/x").expect("its line");
    assert_eq!(
        (&line["request_id"], &line["trace_id"]),
        (&id.into(), &"4bf92f3577b34da6a3ce929d0e0e4736".into())
    );
}

#[test]
pub(super) fn monitoring() {
    let page = Page::of("monitoring.md");
    let [example] = page.blocks("toml");
    let [scrape] = page.blocks("yaml");
    let (mut place, admin) = (Place::default(), free_address());
    place.file("/srv/a.txt", "text");
    place.replace("127.0.0.1:9090", admin.to_string());
    let server = place.serve(&format!("{example}\n[[site]]\nroot = \"/srv/\"\n"));
    eventually("the pages are served", || Client::connect(&Endpoint::Tcp(admin)).is_ok());
    for _ in 0..5 {
        assert_eq!(server.get("/a.txt").text(), "text");
    }
    for (target, content) in [
        ("/status", "<!doctype html>"),
        ("/metrics", "\nafpa_http_responses_total{"),
        ("/stats", "\"pid\":"),
        ("/health", "ok\n"),
    ] {
        page.claims(target);
        let said =
            Client::to(admin).exchange(format!("GET {target} HTTP/1.1\r\nHost: localhost\r\n\r\n"));
        let text = said.text().to_lowercase();
        assert!(said.status == 200 && text.contains(content), "{target}: {text}");
    }
    for (command, content) in
        [("afpa top -n 1", "workers"), ("afpa stats", "requests"), ("afpa stats --all", "workers")]
    {
        let words = page.command(command);
        let words: Vec<&str> = words.iter().skip(1).map(|word| &**word).collect();
        let done = server.command(&words);
        let said = String::from_utf8_lossy(&done.stdout).to_lowercase();
        assert!(done.status.success() && said.contains(content), "{words:?}: {said}");
    }
    page.claims("`curl --unix-socket` to the control socket gets the same pages");
    let Endpoint::Unix(socket) = server.control() else { panic!("a unix socket") };
    let socket = socket.display().to_string();
    let Some(said) = curl(["--unix-socket", &socket, "http://afpa/health"]) else {
        skip!("no curl")
    };
    assert_eq!(String::from_utf8_lossy(&said.output), "ok\n");
    let alerts = Path::new(env!("CARGO_MANIFEST_DIR")).join("../monitoring/afpa-alerts.yml");
    place.file("/afpa-alerts.yml", fs::read(alerts).expect("the alerts"));
    let file = place.file("/prometheus.yml", scrape);
    let Ok(done) = Command::new("promtool").args(["check", "config"]).arg(file).output() else {
        skip!("promtool is not there: install prometheus")
    };
    assert!(done.status.success(), "{done:?}");
}

#[test]
pub(super) fn operations() {
    let page = Page::of("operations.md");
    let place = Place::default();
    place.file("/srv/a.md", "text");
    let server = place.serve("[[site]]\nroot = \"/srv/\"\n");
    let call = |server: &Server, words: &[String]| {
        let words: Vec<&str> = words[1..].iter().map(|word| word.trim_matches('\'')).collect();
        let done = server.command(&words);
        assert!(done.status.success(), "{words:?}: {done:?}");
        String::from_utf8_lossy(&done.stdout).into_owned()
    };
    let list = call(&server, &["afpa", "call"].map(str::to_owned));
    for line in ["GET  /health", "GET  /metrics", "GET  /stats", "GET  /status", "GET  /deny"] {
        page.claims(&line.replace("  ", " "));
        assert!(list.contains(line), "{list}");
    }
    let said = call(&server, &page.command("afpa call deny/add"));
    page.claims(said.trim());
    let typed = |server: &Server| server.get("/a.md").field("content-type").map(str::to_owned);
    // The type has a blank, and stands in quotes.
    let mut words = page.command("afpa call types/set");
    let rest = words.split_off(4).join(" ").replace('\'', "");
    words.push(rest);
    call(&server, &words);
    assert_eq!(typed(&server).as_deref(), Some("text/plain; charset=utf-8"));
    call(&server, &["afpa", "call", "types/remove", "extension=md"].map(str::to_owned));
    assert_ne!(typed(&server).as_deref(), Some("text/plain; charset=utf-8"));
}

#[test]
pub(super) fn an_upgrade() {
    let page = Page::of("upgrade.md");
    page.claims("then send USR2");
    let place = Place::default();
    place.file("/srv/a.txt", "text");
    let server = place.serve("[[site]]\nroot = \"/srv/\"\n");
    let mut before = server.connect();
    assert_eq!(before.get("/a.txt").text(), "text");
    let next = Next::of(&server, None);
    assert_eq!(server.get("/a.txt").text(), "text");
    drop(next);

    page.claims("AFPA takes sockets of systemd (`LISTEN_FDS`)");
    let activate = "/usr/bin/systemd-socket-activate";
    if !Path::new(activate).exists() {
        skip!("no {activate}");
    }
    let at = free_address();
    let mut command = Command::new(activate);
    command.args(["--listen", &at.to_string()]).arg(program()).arg("serve");
    command.arg(place.at("/srv")).args(["--fast-path", "off", "--listen", &at.to_string()]);
    command.arg("--control").arg(place.at("../control.sock"));
    let _running = Running::start(command.stdin(Stdio::null()).stderr(Stdio::null()));
    // The first client waits in the queue of the socket until the program has begun.
    eventually("the socket is there", || Client::connect(&Endpoint::Tcp(at)).is_ok());
    assert_eq!(Client::to(at).get("/a.txt").text(), "text");
}

/// A first configuration of nginx, as its guide for beginners has it.
const NGINX: &str = "
events { worker_connections 512; }
http {
    sendfile on;
    server {
        listen 80;
        server_name shop.example;
        root /srv/shop;
        location / { try_files $uri $uri/ /index.html; }
        location /api/ {
            proxy_pass http://127.0.0.1:3000;
            proxy_set_header X-Real-IP $remote_addr;
            proxy_set_header X-Request-Start t=$msec;
        }
        location ~ /\\.ht { deny all; }
        location /old { return 301 /new; }
        location /staff/ {
            satisfy any;
            allow 10.0.0.0/8;
            deny all;
            auth_basic staff;
            auth_basic_user_file staff.htpasswd;
        }
    }
}
";

#[test]
pub(super) fn a_move_from_nginx() {
    let page = Page::of("adapt.md");
    let [commands] = page.blocks("sh");
    assert_eq!(commands.lines().count(), 2, "{commands}");
    let app = match App::node() {
        Ok(app) => app,
        Err(why) => skip!("{why}"),
    };
    let mut place = Place::default();
    place.file("/srv/shop/index.html", "<p>home");
    place.replace("127.0.0.1:3000", app.to());
    let nginx = NGINX.replace("127.0.0.1:3000", app.to());
    let shop = place.at("/srv/shop").display().to_string();
    let nginx = nginx.replace("/srv/shop", &shop).replace("listen 80", "listen 127.0.0.1:8080");
    place.file("/etc/nginx/nginx.conf", nginx);
    let moved = Place::default();
    let conf = place.at("/etc/nginx/nginx.conf").display().to_string();
    let mut adapt = page.command("afpa adapt /etc/nginx/nginx.conf -o");
    adapt[2] = conf;
    let done = moved.done(&adapt, "");
    let said = String::from_utf8_lossy(&done.stderr).into_owned();
    assert_eq!(done.status.code(), Some(1), "a directive is left out: {said}");
    // Its notes are those of the page, but for the numbers of lines.
    for line in page.lines("nginx.conf:") {
        let (_, note) = line.split_once(": ").expect("a note");
        assert!(said.contains(&format!(": {note}\n")), "{note}: {said}");
    }
    assert!(said.contains(" directives translated ("), "{said}");
    let checked = moved.done(&page.command("afpa check afpa.toml"), "");
    assert!(checked.status.success(), "{checked:?}");
    let text = fs::read_to_string(moved.at("/afpa.toml")).expect("the translation");
    let mut served = Place::default();
    served.replace("127.0.0.1:8080", free_address().to_string());
    let at = served.text("127.0.0.1:8080", "").parse().expect("an address");
    let server = served.serve_with(&text, |launch| {
        launch.endpoint(Endpoint::Tcp(at));
    });
    let get = |target: &str| {
        let head = format!("GET {target} HTTP/1.1\r\nHost: shop.example\r\n\r\n");
        server.connect().exchange(head)
    };
    assert_eq!(get("/users/42").text(), "<p>home");
    assert!(get("/api/x").text().starts_with("node GET /api/x 0\n"), "{:?}", get("/api/x"));
    assert_eq!((get("/old").status, get("/.htaccess").status), (301, 404));
    assert_eq!(get("/staff/").status, 403);
    let told = route(&server, &["http://shop.example/api/x"]);
    assert!(told.contains("behaviour    distributed to"), "{told}");
}
