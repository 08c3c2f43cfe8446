//! Servers of FastCGI that lie, break off or hang.

use std::io::{Read as _, Write as _};
use std::net::TcpStream;
use std::thread;
use std::time::Duration;

use afpa_testkit::server::program;
use afpa_testkit::{Server, Tree};
use afpa_tests::proxy::Raw;

/// Reads a request, up to the end of its content. Returns its parameters.
fn read_request(stream: &mut TcpStream) -> Option<Vec<u8>> {
    let mut params = Vec::new();
    loop {
        let mut header = [0; 8];
        stream.read_exact(&mut header).ok()?;
        let length = u16::from_be_bytes([header[4], header[5]]).into();
        let mut content = vec![0; length];
        stream.read_exact(&mut content).ok()?;
        match (header[1], length) {
            (4, _) => params.extend(content),
            (5, 0) => return Some(params),
            _ => {}
        }
    }
}

fn record(kind: u8, id: u8, content: &[u8]) -> Vec<u8> {
    let length = u16::try_from(content.len()).expect("short").to_be_bytes();
    [&[1, kind, 0, id, length[0], length[1], 0, 0], content].concat()
}

fn out(text: &str) -> Vec<u8> {
    record(6, 1, text.as_bytes())
}

fn end(status: u8) -> Vec<u8> {
    record(3, 1, &[0, 0, 0, 0, status, 0, 0, 0])
}

const OK: &str = "Content-Type: text/plain\r\nContent-Length: 2\r\n\r\nok";

/// The bytes of the server for a script, whether it closes the connection then, and the status that the client gets; 0: an
/// answer that breaks off.
fn cases() -> Vec<(Vec<u8>, bool, u16)> {
    let mut version = out(OK);
    version[0] = 7;
    let long = format!("A: {}\r\n\r\n", "x".repeat(60_000));
    vec![
        ([out(OK), end(0)].concat(), false, 200),
        ([version, end(0)].concat(), false, 502),
        ([record(6, 9, OK.as_bytes()), end(0)].concat(), false, 502),
        (end(0), false, 502),
        ([out("Content-Type: a/b\r\n"), end(0)].concat(), false, 502),
        ([out(&long), end(0)].concat(), false, 502),
        ([out("Content-Length: 9x\r\n\r\n"), end(0)].concat(), false, 502),
        (end(1), false, 502),
        (end(2), false, 503),
        (end(3), false, 502),
        (Vec::new(), true, 502),
        (out("Content-Type: a/b\r\n"), true, 502),
        (vec![1, 6, 0], true, 502),
        (Vec::new(), false, 504),
        // The content has no length, and no record ends it.
        (out("Content-Type: a/b\r\n\r\nsome"), true, 0),
        ([out("Content-Length: 9\r\n\r\nsome"), end(0)].concat(), false, 0),
        ([out("A: b\r\n\r\nsome"), record(6, 4, b"other")].concat(), false, 0),
        // Bytes behind the end are nobody's answer.
        ([out(OK), end(0), out("A: b\r\n\r\nmixed"), end(0)].concat(), false, 200),
    ]
}

#[test]
fn a_broken_server_gives_an_error_and_never_a_mixed_answer() {
    let raw = Raw::start(|mut stream| {
        while let Some(params) = read_request(&mut stream) {
            let text = String::from_utf8_lossy(&params);
            let name = text.split("SCRIPT_NAME/").nth(1).expect("a script");
            let number: usize =
                name.split('.').next().and_then(|n| n.parse().ok()).expect("a number");
            let (bytes, closes, _) = cases().swap_remove(number);
            let hangs = bytes.is_empty() && !closes;
            if stream.write_all(&bytes).is_err() || closes {
                return;
            }
            if hangs {
                thread::sleep(Duration::from_secs(2));
            }
        }
    });
    let tree = Tree::new();
    for number in 0..cases().len() {
        tree.file(format!("{number}.php"), "<?php");
    }
    let server = Server::start("/", |launch| {
        launch.written(|listen| {
            format!(
                "[[server_group]]\nname = \"php\"\nservers = [\"{}\"]\nconnections.idle = 8\n\
                 connections.repeats = 0\ntimeouts.first_byte = \"500ms\"\nhealth.timeouts = 100\nerrors.percent = 0\n\
                 [[site]]\nlisten = [\"{listen}\"]\nroot = \"{}\"\nphp = \"php\"\ncache.mode = \"off\"\n",
                raw.to(),
                tree.path().display()
            )
        });
    });
    for _ in 0..2 {
        for (number, (_, _, status)) in cases().into_iter().enumerate() {
            let mut client = server.connect();
            let bytes = client.exchange_until_close(&format!("/{number}.php"));
            let text = String::from_utf8_lossy(&bytes);
            match status {
                0 => {
                    assert!(
                        text.starts_with("HTTP/1.1 200") || text.starts_with("HTTP/1.1 502"),
                        "{number}: {text}"
                    );
                    assert!(
                        !text.ends_with("0\r\n\r\n") && !text.contains("other"),
                        "{number}: {text}"
                    );
                }
                _ => assert!(text.starts_with(&format!("HTTP/1.1 {status} ")), "{number}: {text}"),
            }
            assert!(!text.contains("mixed"), "{number}: {text}");
            // The next answer on whatever is kept is the right one.
            let next = server.get("/0.php");
            assert_eq!((next.status, next.text()), (200, "ok"), "after {number}: {next:?}");
        }
    }
    let before = raw.connections();
    let mut client = server.connect();
    for _ in 0..20 {
        assert_eq!(client.get("/0.php").text(), "ok");
    }
    assert!(raw.connections() <= before + 1, "{} connections more", raw.connections() - before);
}

trait UntilClose {
    fn exchange_until_close(&mut self, target: &str) -> Vec<u8>;
}

impl UntilClose for afpa_testkit::Client {
    fn exchange_until_close(&mut self, target: &str) -> Vec<u8> {
        self.send(format!("GET {target} HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n"));
        let mut all = Vec::new();
        let mut room = [0; 4096];
        while let Ok(n @ 1..) = self.read_raw(&mut room) {
            all.extend_from_slice(&room[..n]);
        }
        all
    }
}

#[test]
fn settings_that_cannot_work_are_refused_with_their_remedy() {
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("afpa.toml");
    let root = folder.path().display();
    for (text, wanted) in [
        (
            "[[site]]\nphp = \"unix:/run/fpm.sock\"\n".to_owned(),
            "`php` has no effect without `root`",
        ),
        (
            format!("[[site]]\nroot = \"{root}\"\nphp = \"fpm\"\n"),
            "there is no server group \"fpm\"",
        ),
        (
            format!(
                "[[site]]\nroot = \"{root}\"\nphp = \"127.0.0.1:9000\"\nfallback = \"127.0.0.1:9000\"\n"
            ),
            "is asked by HTTP in another place",
        ),
        (
            format!("[[site]]\nroot = \"{root}\"\nphp_root = \"/x\"\n"),
            "`php_root` has no effect without `php`",
        ),
        (
            format!(
                "[[site]]\nroot = \"{root}\"\nphp = \"127.0.0.1:9000\"\nphp_params = {{ CONTENT_LENGTH = \"1\" }}\n"
            ),
            "each request has a CONTENT_LENGTH of its own",
        ),
        (
            format!(
                "[[site]]\nroot = \"{root}\"\nphp = \"127.0.0.1:9000\"\n[[site.path]]\nprefix = \"/a/\"\nstatus = 404\nphp = \"none\"\n"
            ),
            "`php` has no effect: no file is looked for",
        ),
    ] {
        std::fs::write(&file, &text).expect("a file");
        let mut command = std::process::Command::new(program());
        let output = command.arg("check").arg(&file).output().expect("it runs");
        let said = String::from_utf8_lossy(&output.stderr);
        assert!(!output.status.success() && said.contains(wanted), "{text}\n{said}");
    }
}

#[test]
fn the_route_of_a_url_names_its_script() {
    let tree = Tree::new();
    tree.file("index.php", "<?php");
    tree.file("a.css", "css");
    let file = tree.outside(
        "afpa.toml",
        format!(
            "[[site]]\nlisten = [\"127.0.0.1:80\"]\nroot = \"{}\"\nphp = \"127.0.0.1:9000\"\nphp_root = \"/app\"\nfallback = \"/index.php\"\n",
            tree.path().display()
        ),
    );
    for (target, script, info) in [
        ("/", Some("/app/index.php"), None),
        ("/index.php/x", Some("/app/index.php"), Some("/x")),
        ("/posts/1", Some("/app/index.php"), None),
        ("/a.css", None, None),
    ] {
        let mut command = std::process::Command::new(program());
        let url = format!("http://a{target}");
        let output =
            command.args(["route", &url, "--config"]).arg(&file).output().expect("it runs");
        let said = String::from_utf8_lossy(&output.stdout);
        let row = |name: &str| said.lines().find_map(|line| line.strip_prefix(name)).map(str::trim);
        assert_eq!(row("script "), script, "{said}");
        assert_eq!(row("path info "), info, "{said}");
        assert!(row("kernel ").is_some(), "{said}");
    }
}
