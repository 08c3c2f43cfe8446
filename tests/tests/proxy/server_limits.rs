//! Limits of requests to servers in a place: the length of content, and the patience with a server.

use std::fs;
use std::io::Write as _;
use std::net::TcpStream;
use std::process::Command;
use std::thread::sleep;
use std::time::Duration;

use afpa_testkit::Server;
use afpa_testkit::server::program;
use afpa_tests::h2::{self, H2Client};
use afpa_tests::proxy::{Raw, read_content, read_head};

/// A server that takes all content, and for `/slow` its time.
fn app() -> Raw {
    Raw::start(|mut stream: TcpStream| {
        while let Some(head) = read_head(&mut stream) {
            let Some(_) = read_content(&mut stream, &head) else { return };
            if head.contains("/slow") {
                sleep(Duration::from_secs(2));
            }
            if stream.write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\napp").is_err() {
                return;
            }
        }
    })
}

fn serve(settings: &str) -> Server {
    Server::start("/", |launch| {
        launch.written(|listen| {
            format!("http2.cleartext = true\n[[site]]\nlisten = [\"{listen}\"]\n{settings}\n")
        });
    })
}

#[test]
fn content_has_the_length_that_its_place_allows() {
    let app = app();
    let to = app.to();
    let server = serve(&format!(
        "to = \"{to}\"\nlargest_content = \"100B\"\n\
         [[site.path]]\nprefix = \"/upload/\"\nto = \"{to}\"\nlargest_content = \"1MiB\"\n\
         [[site.path.content]]\nextensions = [\"txt\"]\nto = \"{to}\"\nlargest_content = \"10B\"\n\
         [[site.path]]\nprefix = \"/as-outside/\"\nto = \"{to}\"\n"
    ));
    for (target, length, status) in [
        ("/a", 100, 200),
        ("/a", 101, 413),
        ("/as-outside/a", 100, 200),
        ("/as-outside/a", 101, 413),
        ("/upload/a", 100_000, 200),
        ("/upload/a", (1 << 20) + 1, 413),
        ("/upload/a.txt", 10, 200),
        ("/upload/a.txt", 11, 413),
    ] {
        let content = "x".repeat(length);
        let head = format!("POST {target} HTTP/1.1\r\nHost: a\r\n");
        // Without the content: the length alone is enough to refuse it.
        let announced = format!("{head}Content-Length: {length}\r\n\r\n");
        let sent = if status == 200 { format!("{announced}{content}") } else { announced };
        assert_eq!(server.connect().exchange(sent).status, status, "{target} {length}");
        if length < 1000 {
            let chunked = format!(
                "{head}Transfer-Encoding: chunked\r\n\r\n{length:x}\r\n{content}\r\n0\r\n\r\n"
            );
            assert_eq!(server.connect().exchange(chunked).status, status, "{target} {length}");
            let mut http2 = H2Client::connect(&server);
            let stream = http2.request(&h2::request("POST", target), content.as_bytes());
            assert_eq!(http2.response(stream).status, status, "{target} {length}");
        }
    }
}

#[test]
fn a_server_has_the_time_that_its_place_gives_it() {
    let app = app();
    let to = app.to();
    let server = serve(&format!(
        "to = \"{to}\"\nfirst_byte = \"100ms\"\n\
         [[site.path]]\nprefix = \"/patient/\"\nto = \"{to}\"\nfirst_byte = \"1m\"\n"
    ));
    assert_eq!(server.get("/slow").status, 504);
    assert_eq!(server.get("/patient/slow").status, 200);
}

#[test]
fn a_route_names_its_limits_and_a_wrong_one_has_its_line() {
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("afpa.toml");
    let told = |value: &str, command: &[&str]| {
        let text = format!(
            "[[site]]\nto = \"127.0.0.1:1\"\nlargest_content = \"1KiB\"\nfirst_byte = \"{value}\"\n"
        );
        fs::write(&file, text).expect("written");
        let output = Command::new(program()).args(command).arg(&file).output().expect("it runs");
        format!(
            "{}{}",
            String::from_utf8_lossy(&output.stdout),
            String::from_utf8_lossy(&output.stderr)
        )
    };
    let text = told("5s", &["route", "/a", "--config"]);
    assert!(text.contains("limits       content 1.0 KiB, first byte within 5s"), "{text}");
    let text = told("5 apples", &["check"]);
    assert!(text.contains("afpa.toml:4:") && text.contains("first_byte"), "{text}");
}
