//! Early data (0-RTT) as OpenSSL's client sends it, and replays of it by an attacker who has recorded it.

use std::fs;
use std::io::{Read, Write};
use std::net::TcpStream;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::thread::JoinHandle;
use std::time::Duration;

use afpa_h2::PREFACE;
use afpa_h2::frame::{flag, kind, put};
use afpa_testkit::{Tree, eventually};
use afpa_tests::h2::{block, request};
use afpa_tests::proxy::{Raw, read_head};
use afpa_tests::tls::{Authority, Plan, TlsServer};
use rustix::process::Signal;

use crate::site;
use crate::tap::Tap;

/// Bytes of the longest answer that the tests ask for in early data: more than all that a handshake says.
const LONG: u64 = 8000;

const GET: &str = "GET /long.txt HTTP/1.1\r\nHost: localhost\r\n\r\n";
const LAST: &str = "GET /hello.txt HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n";

struct Bed {
    authority: Authority,
    server: TlsServer,
    tree: Tree,
}

impl Bed {
    /// A server with these keys of `[tls]`, more sections, and keys of its site.
    fn new(tls: &str, sections: &str, site_keys: &str) -> Self {
        let (tree, authority) = (site(), Authority::new());
        tree.file("long.txt", "x".repeat(LONG as usize));
        let sections =
            format!("[log]\naccess = \"-\"\naccess_format = \"json\"\n[tls]\n{tls}\n{sections}\n");
        let plan = Plan { sections, site: site_keys.to_owned(), ..Plan::default() };
        let server = TlsServer::with(&authority, tree.path(), plan);
        Self { authority, server, tree }
    }

    fn accepting() -> Self {
        Self::new("early_data = true", "", "")
    }

    /// The file with a session that may begin with early data.
    fn session(&self, name: &str, protocol: &str) -> PathBuf {
        let file = self.authority.folder().join(name);
        let out = file.display().to_string();
        // It stays until it has a session.
        let wait = format!("for i in $(seq 200); do test -s {out} && break; sleep 0.05; done");
        let input = if protocol == "h2" { "" } else { LAST };
        let said = self.client(protocol, self.server.tls, &["-sess_out", &out], input, &wait);
        let said = said.join().expect("it ended");
        assert!(file.exists(), "{said}");
        file
    }

    /// `openssl s_client`, which says this once its handshake is complete, and stays a while.
    fn client(
        &self,
        protocol: &str,
        to: impl std::fmt::Display,
        arguments: &[&str],
        input: &str,
        wait: &str,
    ) -> JoinHandle<String> {
        let input_file = self.authority.folder().join(format!("input-{}", input.len()));
        fs::write(&input_file, input).expect("written");
        let script = format!(
            "(cat {}; {wait}) | timeout 20 openssl s_client -connect {to} -CAfile {} -tls1_3 \
             -servername localhost -alpn {protocol} {}",
            input_file.display(),
            self.authority.path().display(),
            arguments.join(" "),
        );
        std::thread::spawn(move || {
            let mut command = Command::new("sh");
            let command = command.arg("-c").arg(script).stdin(Stdio::null());
            let output = command.output().expect("openssl runs");
            String::from_utf8_lossy(&[output.stdout, output.stderr].concat()).into_owned()
        })
    }

    /// A client that comes back by `to`, with this early data; then it asks for the end.
    fn early(
        &self,
        session: &Path,
        to: impl std::fmt::Display,
        early: &[u8],
    ) -> JoinHandle<String> {
        self.early_by("http/1.1", session, to, early)
    }

    fn early_by(
        &self,
        protocol: &str,
        session: &Path,
        to: impl std::fmt::Display,
        early: &[u8],
    ) -> JoinHandle<String> {
        let data = session.with_extension("early");
        fs::write(&data, early).expect("written");
        let (session, data) = (session.display().to_string(), data.display().to_string());
        let arguments = ["-ign_eof", "-sess_in", &session, "-early_data", &data];
        // One of HTTP/2 ends when somebody ends its connection.
        let input = if protocol == "h2" { "" } else { LAST };
        self.client(protocol, to, &arguments, input, "sleep 0.1")
    }

    fn accepted(&self) -> u64 {
        self.server.number("/tls/early_data/accepted")
    }

    fn refused(&self) -> u64 {
        self.server.number("/tls/early_data/refused")
    }
}

#[test]
fn a_get_is_answered_before_the_handshake_is_complete_and_a_replay_is_not() {
    let bed = Bed::accepting();
    let session = bed.session("get", "http/1.1");
    let tap = Tap::to(bed.server.tls);
    let client = bed.early(&session, tap.address(), GET.as_bytes());
    eventually("the answer is there, and the client knows nothing yet", || {
        tap.server_has_sent() > LONG
    });
    assert_eq!((bed.accepted(), bed.server.number("/tls/in_progress")), (1, 1));
    let recorded = tap.client_has_sent();
    tap.release();
    let said = client.join().expect("it ended");
    assert!(said.contains("Early data was accepted") && said.contains("Reused, "), "{said}");
    assert!(said.contains(&"x".repeat(LONG as usize)) && said.contains("hello"), "{said}");
    eventually("the lines of all three requests are written", || {
        let log = bed.server.server.log();
        log.contains("/long.txt") && log.matches("/hello.txt").count() == 2
    });
    let log = bed.server.server.log();
    let early: Vec<_> = log.lines().filter(|line| line.contains("\"early_data\":true")).collect();
    assert!(early.len() == 1 && early[0].contains("/long.txt"), "{log}");
    assert_eq!(bed.server.number("/tls/in_progress"), 0);

    let answers = bed.server.number("/requests/responses");
    let mut replay = TcpStream::connect(bed.server.tls).expect("connected");
    replay.write_all(&recorded).expect("sent");
    replay.set_read_timeout(Some(Duration::from_millis(500))).expect("set");
    let mut got = Vec::new();
    let _ = replay.read_to_end(&mut got);
    // ServerHello to Finished, with the certificate: a whole handshake is offered.
    assert!(!got.is_empty() && (got.len() as u64) < LONG, "{}", got.len());
    assert_eq!((bed.accepted(), bed.server.number("/requests/responses")), (1, answers));
}

#[test]
fn a_client_whose_session_nobody_has_gets_a_whole_handshake() {
    let (bed, other) = (Bed::accepting(), Bed::accepting());
    let session = bed.session("other", "http/1.1");
    let trusting = format!("-CAfile {}", other.authority.path().display());
    let data = session.with_extension("early");
    fs::write(&data, GET).expect("written");
    let (from, data) = (session.display().to_string(), data.display().to_string());
    let arguments = ["-ign_eof", &trusting, "-sess_in", &from, "-early_data", &data];
    let said = bed.client("http/1.1", other.server.tls, &arguments, LAST, "sleep 0.1");
    let said = said.join().expect("it ended");
    assert!(said.contains("Early data was rejected") && said.contains("hello"), "{said}");
    assert!(said.contains("New, ") && !said.contains("xxxx"), "{said}");
    eventually("it is counted", || (other.accepted(), other.refused()) == (0, 1));
}

#[test]
fn sessions_outlive_a_reload() {
    let bed = Bed::accepting();
    let session = bed.session("reload", "http/1.1");
    bed.server.server.signal(Signal::HUP);
    eventually("it is reloaded", || bed.server.server.log().contains("reloaded"));
    let said = bed.early(&session, bed.server.tls, GET.as_bytes()).join().expect("it ended");
    assert!(said.contains("Early data was accepted") && said.contains("xxxx"), "{said}");
    // Now early data is off, and the server refuses to resume the session of a client that comes back.
    let session = bed.session("off", "http/1.1");
    let path = bed.server.server.configuration();
    let text = fs::read_to_string(&path).expect("read");
    fs::write(path, text.replace("early_data = true", "early_data = false")).expect("written");
    bed.server.server.signal(Signal::HUP);
    eventually("it is off", || {
        !bed.early(&session, bed.server.tls, b"").join().expect("it ended").contains("Reused")
    });
    assert!(bed.tree.path().exists());
}

#[test]
fn without_the_setting_no_client_may_send_early_data() {
    let bed = Bed::new("", "", "");
    let session = bed.session("none", "http/1.1");
    let said = bed.early(&session, bed.server.tls, GET.as_bytes()).join().expect("it ended");
    assert!(said.contains("Early data was not sent") && said.contains("Reused, "), "{said}");
    assert!(said.contains("Max Early Data: 0"), "{said}");
    assert_eq!((bed.accepted(), bed.refused()), (0, 0));
}

#[test]
fn the_handshake_has_its_time_whatever_was_answered() {
    let bed = Bed::new("early_data = true", "[timeouts]\nhead = \"700ms\"", "");
    let session = bed.session("slow", "http/1.1");
    let tap = Tap::to(bed.server.tls);
    let client = bed.early(&session, tap.address(), GET.as_bytes());
    eventually("the answer is there", || tap.server_has_sent() > LONG);
    eventually("it took too long", || bed.server.number("/tls/failed/timed_out") == 1);
    assert_eq!(bed.server.number("/tls/in_progress"), 0);
    tap.release();
    client.join().expect("it ended");
}

/// A server behind, which answers with this and says what it was asked.
fn behind(status: &'static str) -> Raw {
    Raw::start(move |mut stream| {
        while let Some(head) = read_head(&mut stream) {
            let content = format!("<{head}>");
            let length = content.len();
            let said = format!(
                "HTTP/1.1 {status}\r\nCache-Control: max-age=60\r\nContent-Length: {length}\r\n\r\n{content}"
            );
            if stream.write_all(said.as_bytes()).is_err() {
                return;
            }
        }
    })
}

fn before(app: &Raw, policy: &str) -> Bed {
    let sections = format!(
        "[[server_group]]\nname = \"app\"\nservers = [\"{}\"]\n[server_group.request]\n{policy}\n",
        app.to()
    );
    let site = "[site.cache]\nmode = \"auto\"\npurge_from = [\"127.0.0.0/8\"]\n\
                [[site.path]]\nprefix = \"/app/\"\nto = \"app\"\n";
    Bed::new("early_data = true", &sections, site)
}

fn head(method: &str, more: &str) -> String {
    format!("{method} /app/page HTTP/1.1\r\nHost: localhost\r\n{more}\r\n")
}

#[test]
fn what_may_change_something_waits_for_the_end_of_the_handshake() {
    let app = behind("200 OK");
    let bed = before(&app, "early_data = true");
    let session = bed.session("post", "http/1.1");
    let tap = Tap::to(bed.server.tls);
    let early = head("POST", "Content-Length: 0\r\n");
    let client = bed.early(&session, tap.address(), early.as_bytes());
    eventually("it has arrived", || bed.accepted() == 1);
    std::thread::sleep(Duration::from_millis(300));
    assert_eq!(app.connections(), 0, "nobody has asked the server");
    tap.release();
    let said = client.join().expect("it ended");
    assert!(said.contains("<POST /app/page HTTP/1.1") && said.contains("hello"), "{said}");
    assert!(!said.contains("Early-Data: 1"), "{said}");
}

#[test]
fn a_server_that_knows_early_data_is_asked_at_once_and_may_say_that_it_is_too_early() {
    let app = behind("425 Too Early");
    let bed = before(&app, "early_data = true");
    let session = bed.session("too-early", "http/1.1");
    let tap = Tap::to(bed.server.tls);
    let client = bed.early(&session, tap.address(), head("GET", "early-data: 1\r\n").as_bytes());
    eventually("the server is asked", || app.connections() == 1);
    tap.release();
    let said = client.join().expect("it ended");
    assert!(said.contains("425 Too Early") && said.contains("<GET /app/page"), "{said}");
    assert_eq!(said.to_ascii_lowercase().matches("early-data: 1\r\n").count(), 1, "{said}");
    // It was said of that request alone.
    for _ in 0..2 {
        let text = bed.server.curl(&bed.authority, &[&bed.server.url("/app/page")]).1;
        let text = String::from_utf8_lossy(&text).into_owned();
        assert!(text.contains("<GET") && !text.contains("Early-Data"), "{text}");
    }
    let asked = bed.server.number("/shared_cache/objects");
    assert_eq!(asked, 0, "nothing is kept");
}

#[test]
fn a_server_of_which_nothing_is_known_is_asked_behind_the_handshake() {
    let app = behind("200 OK");
    let bed = before(&app, "");
    let session = bed.session("unknown", "http/1.1");
    let tap = Tap::to(bed.server.tls);
    let client = bed.early(&session, tap.address(), head("GET", "").as_bytes());
    eventually("it has arrived", || bed.accepted() == 1);
    std::thread::sleep(Duration::from_millis(300));
    assert_eq!(app.connections(), 0);
    tap.release();
    let said = client.join().expect("it ended");
    assert!(said.contains("<GET /app/page") && !said.contains("Early-Data"), "{said}");
    // The answer that is kept now is sent before the handshake is complete.
    let session = bed.session("kept", "http/1.1");
    let tap = Tap::to(bed.server.tls);
    let client = bed.early(&session, tap.address(), head("GET", "").as_bytes());
    eventually("a kept answer is sent", || bed.server.number("/shared_cache/hits") > 0);
    tap.release();
    assert!(client.join().expect("it ended").contains("<GET /app/page"));
    assert_eq!(app.connections(), 1);
}

#[test]
fn a_purge_that_may_be_a_replay_is_too_early() {
    let app = behind("200 OK");
    let bed = before(&app, "");
    let session = bed.session("purge", "http/1.1");
    let answers = bed.server.number("/requests/responses");
    let tap = Tap::to(bed.server.tls);
    let client = bed.early(&session, tap.address(), head("PURGE", "").as_bytes());
    eventually("it is answered", || bed.server.number("/requests/responses") > answers);
    tap.release();
    let said = client.join().expect("it ended");
    assert!(said.contains("425 Too Early"), "{said}");
    // Another proxy may say so, too.
    let mut plain = bed.server.server.connect();
    plain.send(head("PURGE", "Early-Data: 1\r\n"));
    assert_eq!(plain.receive().status, 425);
    plain.send(head("PURGE", ""));
    assert_eq!(plain.receive().status, 200);
}

/// The first frames of a client of HTTP/2, with one request.
fn frames(method: &str, target: &str) -> Vec<u8> {
    let mut bytes = PREFACE.to_vec();
    put(&mut bytes, kind::SETTINGS, 0, 0, &[]);
    let block = block(&request(method, target));
    put(&mut bytes, kind::HEADERS, flag::END_HEADERS | flag::END_STREAM, 1, &block);
    bytes
}

#[test]
fn streams_of_http2_are_answered_early_or_wait() {
    let app = behind("200 OK");
    let bed = before(&app, "");
    let session = bed.session("h2-get", "h2");
    let tap = Tap::to(bed.server.tls);
    let client = bed.early_by("h2", &session, tap.address(), &frames("GET", "/long.txt"));
    eventually("the answer is there", || tap.server_has_sent() > LONG);
    tap.release();
    eventually("its handshake is complete", || bed.server.number("/tls/in_progress") == 0);
    tap.cut();
    let said = client.join().expect("it ended");
    assert!(said.contains("Early data was accepted"), "{said}");

    let session = bed.session("h2-post", "h2");
    let tap = Tap::to(bed.server.tls);
    let client = bed.early_by("h2", &session, tap.address(), &frames("POST", "/app/page"));
    eventually("it has arrived", || bed.accepted() == 2);
    std::thread::sleep(Duration::from_millis(300));
    assert_eq!(app.connections(), 0);
    tap.release();
    eventually("the server is asked", || app.connections() == 1);
    tap.cut();
    client.join().expect("it ended");

    // Its client goes away without the end of the handshake: the server is never asked.
    let session = bed.session("h2-gone", "h2");
    let tap = Tap::to(bed.server.tls);
    let client = bed.early_by("h2", &session, tap.address(), &frames("DELETE", "/app/other"));
    eventually("it has arrived", || bed.accepted() == 3);
    tap.cut();
    client.join().expect("it ended");
    eventually("the handshake has failed", || bed.server.number("/tls/failed/gone") >= 1);
    assert_eq!((app.connections(), bed.server.number("/tls/in_progress")), (1, 0));
}
